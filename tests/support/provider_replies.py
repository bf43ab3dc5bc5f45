"""Replies of a stub provider: plain sentences, or those of the scripted model."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from langchain_core.messages import convert_to_messages

from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.llm import ScriptedChatModel
from opinionsim.messages import ChatMessage
from opinionsim.opinions import OpinionScale
from opinionsim.prompts import load_pack

#: Makes a stub's reply from the messages and the seed of a request.
Replier = Callable[[tuple[ChatMessage, ...], int | None], str]

_OPENINGS = ("I have thought about it.", "Let me be brief.", "People ask me this often.", "It came up again today.")
_VIEWS = (
    "I believe it is true.",
    "I believe it is probably true.",
    "I am not sure either way.",
    "I doubt that it is true.",
    "I do not believe it at all.",
)
_CLOSINGS = ("That is how I see it.", "I may think again.", "Nobody told me to say so.", "We shall see.")


def request_identity(messages: Iterable[ChatMessage], seed: int | None) -> str:
    """Identity of a request: equal for equal messages and an equal seed."""
    return digest(canonical_json([[list(message) for message in messages], seed]))


def plain_reply(messages: Iterable[ChatMessage], seed: int | None) -> str:
    """Three short sentences, drawn by the identity of the request; cheap, and blind to what is asked."""
    draw = int(request_identity(messages, seed), 16)
    sentences = []
    for choices in (_OPENINGS, _VIEWS, _CLOSINGS):
        draw, index = divmod(draw, len(choices))
        sentences.append(choices[index])
    return " ".join(sentences)


def scripted_reply(*, pack: str = "default", temperature: float = 0.7) -> Replier:
    """Replies of the scripted model, so that simulations through the stub give sensible texts.

    Parameters
    ----------
    pack : str
        Prompt pack whose marks the model reads.
    temperature : float
        In [0, 2]; the temperature a request names is not looked at.

    Returns
    -------
    callable
        ``reply(messages, seed) -> str``, equal to what the scripted model says in the process.
    """
    model = ScriptedChatModel(temperature=temperature).bound(load_pack(pack).marks, OpinionScale())

    def reply(messages: tuple[ChatMessage, ...], seed: int | None) -> str:
        prompt = convert_to_messages([(each.role, each.content) for each in messages])
        return model._generate(prompt, seed=seed).generations[0].text

    return reply
