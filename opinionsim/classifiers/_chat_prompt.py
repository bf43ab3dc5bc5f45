"""The question of the chat classifier about an item."""

from __future__ import annotations

from opinionsim.classifiers._base import Context, Item
from opinionsim.foundation.templates import filled
from opinionsim.messages import ChatMessage, printable
from opinionsim.opinions import OpinionScale

#: Version of the wording; raise it with every change, so that results record it.
WORDING = 4


def chat_prompt(item: Item, scale: OpinionScale, question: str = "", reason: str = "") -> ChatMessage:
    """The single message to a judge.

    Parameters
    ----------
    item : Item
        The item to code. Each part has separate delimiters, which no part can close.
    scale : OpinionScale
        The answers to choose from.
    question : str
        The question. By default, it asks for the author's opinion of the claim; only this question needs a claim.
    reason : str
        Why the last answer could not be used; empty the first time.

    Returns
    -------
    ChatMessage
        A message of role ``user``.

    Notes
    -----
    The wording is that of ``templates/closed_question.txt``. Text that looks like a placeholder is not expanded.
    """
    context = item.context or Context()
    opinion = context.assigned_opinion
    # For another question, the labels of the scale do not describe opinions.
    labelled = not question and opinion in scale.points
    persona = "\n".join(f"{attribute}: {value}" for attribute, value in context.persona)
    told = {
        "claim": [] if item.claim is None else [item.claim.text],
        "read": context.received,
        "author": [persona] if context.persona else [],
        "opinion": [] if opinion is None else [scale.label(opinion) if labelled else f"{float(opinion):z.12g}"],
        "text": [item.text],
        "second": [] if item.about is None else [item.about],
    }
    kinds = [kind for kind, texts in told.items() if texts]
    asked = filled(
        "opinionsim.classifiers",
        "closed_question.txt",
        told={kind: [_defused(text, kinds) for text in texts] for kind, texts in told.items()},
        kinds=kinds,
        labelled=labelled,
        question=_defused(question, kinds),
        reason=_defused(reason, kinds),
        anchors=list(zip(scale.points, scale.labels, strict=True)),
    )
    return ChatMessage("user", asked.removesuffix("\n"))


def _defused(text: str, kinds: list[str]) -> str:
    """A printable text in which a space stands after the first character of every delimiter that occurs in it."""
    text = printable(text)
    for kind in kinds:
        for delimiter in (f"<<<{kind}", f"{kind}>>>"):
            text = text.replace(delimiter, f"{delimiter[0]} {delimiter[1:]}")
    return text
