"""The check of a prompt pack: every template, in every case, with sample values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, get_args

from opinionsim.errors import SpecError
from opinionsim.messages import ChatMessage, Message
from opinionsim.opinions import OpinionScale
from opinionsim.personas import Persona
from opinionsim.prompts._agent import AgentPrompts, ConfirmationBias, Past, PersonaShown, World
from opinionsim.prompts._marks import BLOCKS, Block
from opinionsim.topics import Claim, Framing

if TYPE_CHECKING:
    from opinionsim.prompts._pack import PromptPack

__all__ = ["check_pack"]

# Sample values: words that no pack contains, so that each is found where it was put and nowhere else.
_NAME, _BACKGROUND, _ANCHOR = "Qzname", "Qzbackground", "qzanchor"
_CLAIM, _OWN, _PAST = "qzclaim is qzso", "Qzown words", "Qzpast words"
_SCALE = OpinionScale((-1, 1), ("qzopposite", _ANCHOR))
_POSTS = (Message("Qzpost one", "Qzauthor one"), Message("Qzpost two", ""))
_PASTS = (
    Past(),
    Past("write", 0, 1, 0, 0),
    Past("review", 1, 0, 1, 0),
    Past("review", 2, 1, 2, 1),
    Past("report", 0, 0, 0, 1),
)
_COMMON_ATTRIBUTES = ("political_leaning", "age", "gender", "ethnicity", "education", "occupation")


@dataclass(frozen=True)
class _Act:
    """A sample act."""

    name: str
    template: str
    kind: str
    labelling: str = "anonymous"


@dataclass(frozen=True)
class _Place:
    """Which template is looked at, under which condition: what an error must say."""

    pack: PromptPack
    place: str
    template: str
    condition: str

    def error(self, problem: str) -> SpecError:
        return SpecError(f"{self.place}/{self.template}.j2: {problem} ({self.condition})")

    def balanced(self, text: str) -> None:
        """Every block that is opened is closed, and the other way round."""
        for kind in BLOCKS:
            opening, closing = self.pack.marks.pair(kind)
            opened, closed = text.count(opening), text.count(closing)
            whole = all(closing in part for part in text.split(opening)[1:])
            if opened != closed or not whole:
                raise self.error(f"{opening!r} and {closing!r} must stand in pairs; found {opened} and {closed}")

    def enclosed(self, text: str, kind: Block, value: str, what: str) -> None:
        """A value stands between its delimiters, and only there."""
        opening, closing = self.pack.marks.pair(kind)
        if not any(value in block for block in self.pack.marks.blocks(kind, text)):
            raise self.error(f"{what} must stand between {opening!r} and {closing!r}; it does not")
        if value in self.pack.marks.without(kind, text):
            raise self.error(f"{what} also stands outside {opening!r} and {closing!r}")

    def absent(self, text: str, kind: Block, why: str) -> None:
        """There is no block of a kind."""
        if self.pack.marks.pair(kind)[0] in text:
            raise self.error(f"{self.pack.marks.pair(kind)[0]!r} must not be there: {why}")

    def wrapped(self, text: str, value: str) -> None:
        """The whole text is one history block that holds a value."""
        opening, closing = self.pack.marks.history
        if not (text.startswith(opening) and text.endswith(closing)) or text.count(opening) != 1:
            raise self.error(f"must be wrapped whole, and once, in {opening!r} and {closing!r}")
        self.enclosed(text, "history", value, "the agent's text")

    def cue(self, text: str, own: str) -> None:
        """The template's own cue is there, outside all blocks, and no other one."""
        bare = text
        for kind in BLOCKS:
            bare = self.pack.marks.without(kind, bare)
        if own and self.pack.marks.cues[own] not in bare:
            raise self.error(f"its cue {self.pack.marks.cues[own]!r} is missing outside delimiters")
        for task, cue in self.pack.marks.cues.items():
            if task != own and cue in text:
                raise self.error(f"contains {cue!r}, the cue of {task}; a cue must tell its task from all other text")


def check_pack(pack: PromptPack, place: str, attributes: frozenset[str]) -> None:
    """Render every template in every case and look for all that must be there.

    Parameters
    ----------
    pack : PromptPack
        What to check.
    place : str
        What errors call it.
    attributes : frozenset of str
        Attributes of personas that its templates ask for by name.

    Raises
    ------
    SpecError
        At the first thing that is missing, out of place, ambiguous or without effect.
    """
    names = [*_COMMON_ATTRIBUTES, *sorted(attributes.difference(_COMMON_ATTRIBUTES))]
    persona = Persona(_NAME, None, {name: f"Qzattribute {name}" for name in names}, _BACKGROUND)
    for condition in _conditions():
        prompts = pack.for_agent(persona=persona, claim=_claim(), scale=_SCALE, **condition)
        spelled = ", ".join(f"{key}: {value}" for key, value in condition.items())
        _check_system(_Place(pack, place, "system", spelled), prompts, condition)
        # The rest depends on neither the attributes nor the opinion.
        if condition["persona_shown"] in ("full", "none") and condition["opinion"] is None:
            usual = {"confirmation_bias": "weak", "world": "closed", "interactive": True}
            thorough = all(condition[key] == value for key, value in usual.items())
            _check_tasks(pack, place, spelled, prompts, _scenes(thorough))
            _check_events(pack, place, spelled, prompts, _scenes(thorough))
            _check_reflection(pack, place, spelled, prompts)
    _check_effects(pack, place, persona)


def _claim() -> Claim:
    return Claim(_CLAIM, "sample", Framing.TRUTH)


def _conditions() -> Iterator[dict[str, Any]]:
    """Every combination of conditions."""
    grid = {
        "persona_shown": ("full", "demographics", "name", "none"),
        "confirmation_bias": ("none", "weak", "strong"),
        "world": ("closed", "open"),
        "masked": (True, False),
        "interactive": (True, False),
        "opinion": (None, 1),
    }
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _check_system(at: _Place, prompts: AgentPrompts, condition: dict[str, Any]) -> None:
    """Persona, initial belief, claim and bias stand in the system message when they should."""
    message = prompts.system()
    text = message.content if message else ""
    at.balanced(text)
    at.cue(text, "")
    at.absent(text, "history", "the system message is no memory")
    at.absent(text, "post", "nobody has posted yet")
    if condition["confirmation_bias"] == "none":
        at.absent(text, "bias", "there is no bias")
    elif not any(block.strip() for block in at.pack.marks.blocks("bias", text)):
        raise at.error(f"no instruction stands between {' and '.join(map(repr, at.pack.marks.bias))}")
    shown = condition["persona_shown"]
    if shown == "none":
        at.absent(text, "persona", "there is no role-play")
        return
    at.enclosed(text, "claim", _CLAIM, "the claim")
    opening, closing = at.pack.marks.persona
    inside = "".join(at.pack.marks.blocks("persona", text))
    if shown != "demographics" and _NAME not in inside:
        raise at.error(f"the name must stand between {opening!r} and {closing!r}; it does not")
    if shown in ("full", "demographics"):
        at.enclosed(text, "persona", "Qzattribute", "an attribute")
    if shown == "full":
        at.enclosed(text, "persona", _BACKGROUND, "the background")
    if condition["opinion"] is not None:
        at.enclosed(text, "persona", _ANCHOR, "the initial belief")


def _scenes(thorough: bool) -> list[tuple[Past, tuple[Message, ...], str]]:
    """Pasts with received messages and a labelling: all of them, or the commonest."""
    if not thorough:
        return [(past, received, "anonymous") for past in (Past(), _PASTS[2]) for received in ((), _POSTS[:1])]
    labellings = ("anonymous", "numbered", "named")
    return [(past, _POSTS[:n], labelling) for past, n, labelling in product(_PASTS, (0, 1, 2), labellings)]


def _check_posts(at: _Place, text: str, received: tuple[Message, ...]) -> None:
    """Every received message stands in a block of its own."""
    opening, closing = at.pack.marks.post
    blocks = at.pack.marks.blocks("post", text)
    if len(blocks) != len(received) or any(m.text not in b for m, b in zip(received, blocks, strict=True)):
        raise at.error(f"each of {len(received)} received messages must stand once between {opening!r} and {closing!r}")
    for message in received:
        at.enclosed(text, "post", message.text, "a received message")


def _check_tasks(
    pack: PromptPack,
    place: str,
    spelled: str,
    prompts: AgentPrompts,
    scenes: list[tuple[Past, tuple[Message, ...], str]],
) -> None:
    """Claim, received messages and cue stand in every task."""
    for task, (past, received, labelling) in product(pack.tasks, scenes):
        at = _Place(pack, place, task, f"{spelled}, {_spell(past, received, labelling)}")
        text = prompts.task(_Act("qzact", task, "post" if task == "write" else "report", labelling), received, past)
        at.balanced(text.content)
        at.cue(text.content, task)
        at.enclosed(text.content, "claim", _CLAIM, "the claim")
        at.absent(text.content, "persona", "the persona stands in the system message")
        at.absent(text.content, "history", "a task is no memory")
        _check_posts(at, text.content, received)


def _spell(past: Past, received: tuple[Message, ...], labelling: str) -> str:
    """A scene, for errors."""
    return f"after {past.previous or 'nothing'}, {len(received)} messages {labelling}"


def _check_events(
    pack: PromptPack,
    place: str,
    spelled: str,
    prompts: AgentPrompts,
    scenes: list[tuple[Past, tuple[Message, ...], str]],
) -> None:
    """Events are wrapped, and hold what was received and what was answered."""
    for kind, (past, received, labelling) in product(("post", "report"), scenes):
        at = _Place(pack, place, "event", f"{spelled}, {kind} {_spell(past, received, labelling)}")
        told = prompts.event(_Act("qzact", "qzact", kind, labelling), received, _OWN, past).content
        at.balanced(told)
        at.cue(told, "")
        at.wrapped(told, _OWN)
        _check_posts(at, told, received)
        if _OWN in "".join(pack.marks.blocks("post", told)):
            raise at.error("the agent's own text must stand outside the delimiters of posts")


def _check_reflection(pack: PromptPack, place: str, spelled: str, prompts: AgentPrompts) -> None:
    """Recollections are wrapped; requests to reflect hold the experience and the past reflection."""
    recollection = prompts.recollection(_PAST).content
    at = _Place(pack, place, "recollection", spelled)
    at.balanced(recollection)
    at.cue(recollection, "")
    at.wrapped(recollection, _PAST)
    event = ChatMessage("user", "".join((pack.marks.history[0], _OWN, pack.marks.history[1])))
    for experience, earlier in ((event, None), (event, _PAST), (None, event)):
        at = _Place(pack, place, "reflect", f"{'with' if earlier else 'without'} a past reflection")
        text = prompts.reflection(experience, earlier).content
        at.balanced(text)
        at.cue(text, "reflect")
        at.enclosed(text, "history", _OWN, "the experience")
        if earlier is _PAST:
            at.enclosed(text, "history", _PAST, "the past reflection")


def _check_effects(pack: PromptPack, place: str, persona: Persona) -> None:
    """Every condition a study may vary changes what agents are told."""
    usual: dict[str, Any] = {
        "persona_shown": "full",
        "confirmation_bias": "none",
        "world": "closed",
        "masked": True,
        "opinion": 1,
    }
    axes: dict[str, tuple[Any, ...]] = {
        "persona_shown": get_args(PersonaShown),
        "confirmation_bias": get_args(ConfirmationBias),
        "world": get_args(World),
        "masked": (True, False),
        "opinion": (None, -1, 1),
    }
    for axis, values in axes.items():
        told: dict[ChatMessage | None, Any] = {}
        for value in values:
            system = pack.for_agent(persona=persona, claim=_claim(), scale=_SCALE, **{**usual, axis: value}).system()
            if system in told:
                raise SpecError(f"{place}/system.j2: {axis} {value!r} and {told[system]!r} give the same text")
            told[system] = value
