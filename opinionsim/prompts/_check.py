"""The check of a prompt pack as a run uses it: its templates in a few cases, with sample values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from opinionsim.errors import SpecError
from opinionsim.messages import ChatMessage, Message, Reply
from opinionsim.opinions import OpinionScale
from opinionsim.personas import Persona
from opinionsim.prompts._act import Act
from opinionsim.prompts._agent_prompts import AgentPrompts, Frame, Past
from opinionsim.prompts._binding import PERSON
from opinionsim.prompts._brief import Addressee
from opinionsim.prompts._marks import BLOCKS, Block
from opinionsim.prompts._prompt_settings import Conditions
from opinionsim.prompts._templates import SUFFIX
from opinionsim.topics import Claim

if TYPE_CHECKING:
    from opinionsim.prompts._pack import PromptPack

# Sample values: words that no pack contains, so that every occurrence in a prompt is an inserted one.
_NAME, _BACKGROUND, _ANCHOR, _ROLE = "Qzname", "Qzbackground", "qzanchor", "qzrole"
_CLAIM, _TASK, _OWN, _PAST = "qzclaim is qzso", "Qztask to do.", "Qzown words", "Qzpast words"
#: The opinion shown is none of the ends, whose labels a pack may explain anywhere.
_SCALE = OpinionScale((-1, 0, 1), ("qzlowest", _ANCHOR, "qzhighest"))
_SAMPLE_CLAIM = Claim(_CLAIM, "sample", "truth")
_TRUE_CLAIM = Claim(_CLAIM, "sample", "truth", "truth")
#: The agent that prompts are made for; the second post is its own.
_AGENT = 0
_POSTS = (Message("Qzpost one", "Qzauthor one"), Message("Qzpost two", "", _AGENT, role=_ROLE, act="qzact"))
_PASTS = (
    Past(),
    Past("write", 0, 1, 0, 0),
    Past("review", 1, 0, 1, 0),
    Past("review", 2, 1, 2, 1),
    Past("report", 0, 0, 0, 1),
)
_COMMON_ATTRIBUTES = ("political_leaning", "age", "gender", "ethnicity", "education", "occupation")

#: A past, and messages that are received.
_Scene = tuple[Past, tuple[Message, ...]]
_SCENES: list[_Scene] = [(past, _POSTS[:n]) for past, n in product(_PASTS, (0, 1, 2))]
_FEW_SCENES: list[_Scene] = [(_PASTS[0], ()), (_PASTS[2], _POSTS)]
#: Who may be asked, and about what, under any condition: changed fields of the addressee.
_OCCASIONS: tuple[dict[str, Any], ...] = (
    {},
    {"opinion": 0},
    {"opinion": 0, "claim": _TRUE_CLAIM},
    {"persona": None},
    {"claim": None},
    {"claim": None, "task": _TASK},
    {"task": _TASK, "role": _ROLE},
    {"reads": False},
    {"writes": False},
)


@dataclass(frozen=True)
class _Place:
    """The template that is checked and its condition, as errors name them."""

    pack: PromptPack
    where: str
    condition: str

    def error(self, problem: str) -> SpecError:
        return SpecError(f"{self.where}: {problem} ({self.condition})")

    def balanced(self, text: str) -> None:
        """Check that every opening delimiter has a closing one, and vice versa."""
        for kind in BLOCKS:
            opening, closing = self.pack.marks.pair(kind)
            opened, closed = text.count(opening), text.count(closing)
            whole = all(closing in part for part in text.split(opening)[1:])
            if opened != closed or not whole:
                raise self.error(f"{opening!r} and {closing!r} must appear in pairs; found {opened} and {closed}")

    def enclosed(self, text: str, kind: Block, value: str, what: str) -> None:
        """Check that a value occurs between its delimiters, and only there."""
        opening, closing = self.pack.marks.pair(kind)
        if not any(value in block for block in self.pack.marks.blocks(kind, text)):
            raise self.error(f"{what} must be between {opening!r} and {closing!r}; it is not")
        if value in self.pack.marks.without(kind, text):
            raise self.error(f"{what} also occurs outside {opening!r} and {closing!r}")

    def absent(self, text: str, kind: Block, why: str) -> None:
        """Check that there is no block of a kind."""
        if self.pack.marks.pair(kind)[0] in text:
            raise self.error(f"{self.pack.marks.pair(kind)[0]!r} must not occur: {why}")

    def wrapped(self, text: str, value: str) -> None:
        """Check that the whole text is one history block that holds a value."""
        opening, closing = self.pack.marks.history
        if not (text.startswith(opening) and text.endswith(closing)) or text.count(opening) != 1:
            raise self.error(f"must be wrapped as a whole, exactly once, in {opening!r} and {closing!r}")
        self.enclosed(text, "history", value, "the agent's text")

    def cue(self, text: str, own: str) -> None:
        """Check that the template's own cue, and no other, occurs outside all blocks."""
        bare = text
        for kind in BLOCKS:
            bare = self.pack.marks.without(kind, bare)
        if own and self.pack.marks.cues[own] not in bare:
            raise self.error(f"its cue {self.pack.marks.cues[own]!r} is missing outside delimiters")
        for task, cue in self.pack.marks.cues.items():
            if task != own and cue in text:
                raise self.error(f"contains {cue!r}, the cue of {task}; a cue must occur only in its own task")

    def posts(self, text: str, received: tuple[Message, ...]) -> None:
        """Check that every received message has a separate block, with messages of others in their order."""
        opening, closing = self.pack.marks.post
        blocks = self.pack.marks.blocks("post", text)
        own = [message.text for message in received if message.agent == _AGENT]
        others = [message.text for message in received if message.agent != _AGENT]
        found = [block for block in blocks if not any(each in block for each in own)]
        if (len(blocks), len(found)) != (len(received), len(others)) or any(
            each not in block for each, block in zip(others, found, strict=True)
        ):
            raise self.error(
                f"each of {len(received)} received messages must appear once between {opening!r} and {closing!r}"
            )
        for message in received:
            self.enclosed(text, "post", message.text, "a received message")


@dataclass(frozen=True)
class _Setting:
    """The prompts of a sample agent on one occasion."""

    pack: PromptPack
    told: Addressee
    spelled: str
    prompts: AgentPrompts

    @classmethod
    def of(cls, pack: PromptPack, told: Addressee, occasion: Mapping[str, Any]) -> _Setting:
        """The setting of one addressee, whose fields the occasion changes."""
        told = replace(told, agent=_AGENT, **occasion)
        stated = {**dict(told.conditions), **occasion}
        values = [f"{key}: {value}" for key, value in stated.items() if key not in ("persona", "claim")]
        values += [f"no {key}" for key in ("persona", "claim") if getattr(told, key) is None]
        return cls(pack, told, ", ".join(values), pack.for_agent(told))

    @property
    def system(self) -> str:
        """The text of the system message."""
        message = self.prompts.system()
        return message.content if message else ""

    def at(self, template: str, scene: str = "") -> _Place:
        """A template of the pack, in a scene."""
        return self.within(f"{self.pack.place}/{template}{SUFFIX}", scene)

    def within(self, where: str, scene: str) -> _Place:
        """A template anywhere, in a scene."""
        return _Place(self.pack, where, f"{self.spelled}, {scene}" if scene else self.spelled)

    def check_claim(self, at: _Place, text: str) -> None:
        """Check that the claim is in its block, or that there is no block without a claim."""
        if self.told.claim is None:
            at.absent(text, "claim", "there is no claim")
        else:
            at.enclosed(text, "claim", _CLAIM, "the claim")

    def check_task(self, at: _Place, text: str) -> None:
        """Check that the free task is stated, here or in the system message."""
        task = self.told.task
        if task and task not in text and task not in self.system:
            raise at.error("the variable task must appear in the prompt, here or in the system message; it is missing")


def check_use(pack: PromptPack, acts: Iterable[Act], frames: Collection[str | Frame], conditions: Conditions) -> None:
    """Render what a run uses of a pack in a few cases, and check the required parts.

    Parameters
    ----------
    pack : PromptPack
        A pack bound to the acts.
    acts : iterable of Act
        The acts of the run.
    frames : collection of str or Frame
        Templates that the memories of the run use.
    conditions : Conditions
        The conditions of the run.

    Raises
    ------
    SpecError
        If anything is missing, out of place, ambiguous or without effect. An act's own text must only have
        whole blocks, and not be blank.
    """
    usual = _usual(pack, conditions)
    plain = Conditions(world="open", persona_shown="none", masked=False, post_words=None)
    blank = {act.name for act in acts}
    for occasion in _OCCASIONS:
        setting, scenes = _Setting.of(pack, usual, occasion), _FEW_SCENES if occasion else _SCENES
        _check_system(setting)
        for act in acts:
            if sum(_check_task(setting, act, *scene) for scene in scenes):
                blank.discard(act.name)
            # Events show the same messages, and are four texts each: every fourth scene is enough.
            for past, received in scenes[::-4] if "event" in frames else ():
                _check_event(setting, act, past, received)
        _check_reflection(setting, frames)
    if blank:
        raise SpecError(f"act {min(blank)}: the text is blank; it must ask for something")
    check_effects(pack, acts, {name: (least, getattr(conditions, name)) for name, least in plain}, conditions)


def check_effects(
    pack: PromptPack, acts: Iterable[Act], values: Mapping[str, Iterable[Any]], conditions: Conditions
) -> None:
    """Check that the values of conditions each give another system message, or of `post_words` another request.

    Parameters
    ----------
    pack : PromptPack
        The pack.
    acts : iterable of Act
        Without one that writes, nothing needs to depend on whether, or in how many words, an agent writes.
    values : mapping of str to iterable
        Values to tell apart, by name of the condition, or of another field of an addressee.
    conditions : Conditions
        All other conditions. Without role-play nothing needs to depend on how persona and claim are introduced.

    Raises
    ------
    SpecError
        At the first two values that give the same text.
    """
    usual = replace(_usual(pack, conditions), opinion=0)
    write = next((act for act in acts if act.template == "write"), None)
    silent = {"belief_tense", "masked"} if conditions.persona_shown == "none" else set()
    silent |= set() if write else {"post_words", "writes"}
    for name in sorted(values.keys() - silent):
        template = "write" if name == "post_words" else "system"
        told: dict[ChatMessage | None, Any] = {}
        for value in dict.fromkeys(values[name]):
            prompts = pack.for_agent(usual.varied(name, value))
            text = prompts.task(write, (), Past()) if write and template == "write" else prompts.system()
            if text in told:
                where = f"{pack.place}/{template}{SUFFIX}"
                raise SpecError(f"{where}: {name} {value!r} and {told[text]!r} give the same text")
            told[text] = value


def _usual(pack: PromptPack, conditions: Conditions) -> Addressee:
    """A sample persona, with all attributes that templates may ask for, and a claim, under some conditions."""
    names = [*_COMMON_ATTRIBUTES, *sorted(pack.attributes.difference(_COMMON_ATTRIBUTES))]
    persona = Persona(_NAME, None, {name: f"Qzattribute {name}" for name in names}, _BACKGROUND)
    return Addressee(_SCALE, conditions, persona, claim=_SAMPLE_CLAIM)


def _spell(past: Past, received: tuple[Message, ...], labelling: str) -> str:
    """A scene, for errors."""
    return f"after {past.previous or 'nothing'}, {len(received)} messages {labelling}"


def _check_system(setting: _Setting) -> None:
    """Check persona, initial belief, claim and disposition in the system message."""
    at, text, told = setting.at("system"), setting.system, setting.told
    at.balanced(text)
    at.cue(text, "")
    at.absent(text, "history", "the system message is no memory")
    at.absent(text, "post", "nobody has posted yet")
    if told.conditions.confirmation_bias == "none":
        at.absent(text, "disposition", "there is no confirmation bias")
    elif not any(block.strip() for block in at.pack.marks.blocks("disposition", text)):
        raise at.error(f"there is no instruction between {' and '.join(map(repr, at.pack.marks.disposition))}")
    shown = "none" if told.persona is None else told.conditions.persona_shown
    if shown == "none":
        at.absent(text, "persona", "there is no role-play")
    if shown != "none" or told.claim is None:
        setting.check_claim(at, text)
    if shown != "none":
        _check_persona(at, text, shown, told.opinion is not None)


def _check_persona(at: _Place, text: str, shown: str, opinion: bool) -> None:
    """Check that the parts of a persona that are shown stand in its block."""
    opening, closing = at.pack.marks.persona
    inside = "".join(at.pack.marks.blocks("persona", text))
    if shown != "demographics" and _NAME not in inside:
        raise at.error(f"the name must be between {opening!r} and {closing!r}; it is not")
    if shown in ("full", "demographics"):
        at.enclosed(text, "persona", "Qzattribute", "an attribute")
    if shown == "full":
        at.enclosed(text, "persona", _BACKGROUND, "the background")
    if opinion:
        at.enclosed(text, "persona", _ANCHOR, "the initial belief")


def _check_task(setting: _Setting, act: Act, past: Past, received: tuple[Message, ...]) -> bool:
    """Check claim, task, received messages and cue in the prompt of an act; return whether it says anything."""
    # Persons are shown messages and claim apart from what they are asked.
    own = act.template not in setting.pack.tasks or act.template.startswith(PERSON)
    scene = _spell(past, received, act.labelling)
    at = setting.within(f"act {act.name}", scene) if own else setting.at(act.template, scene)
    text = setting.prompts.task(act, received, past).content
    at.balanced(text)
    if not own:
        at.cue(text, act.template)
        setting.check_claim(at, text)
        setting.check_task(at, text)
        at.absent(text, "persona", "the persona stands in the system message")
        at.absent(text, "history", "a task is no memory")
        at.posts(text, received)
    return bool(text)


def _check_event(setting: _Setting, act: Act, past: Past, received: tuple[Message, ...]) -> None:
    """Check that an event is wrapped, holds the received messages and the reply, and says where there was none."""
    at = setting.at("event", f"{act.name} {_spell(past, received, act.labelling)}")
    told, blank, *silent = (
        setting.prompts.event(act, received, reply, past).content
        for reply in (Reply(_OWN), Reply(""), Reply(_OWN, "refused"), Reply("", "empty"))
    )
    for text in (told, *silent):
        at.balanced(text)
        at.cue(text, "")
        at.posts(text, received)
    at.wrapped(told, _OWN)
    if setting.told.claim is None:
        setting.check_claim(at, told)
    if _OWN in "".join(at.pack.marks.blocks("post", told)):
        raise at.error("the agent's own text must be outside the delimiters of posts")
    for status, text in zip(("refused", "empty"), silent, strict=True):
        if text == blank:
            raise at.error(f"the event of a reply with status {status!r} must say that there was none")


def _check_reflection(setting: _Setting, frames: Collection[str | Frame]) -> None:
    """Check that recollections are wrapped, and that requests to reflect hold experience and past reflection."""
    opening, closing = setting.pack.marks.history
    past = ChatMessage("user", f"{opening}{_PAST}{closing}")
    if "recollection" in frames:
        past = setting.prompts.recollection(Reply(_PAST))
        at = setting.at("recollection")
        at.balanced(past.content)
        at.cue(past.content, "")
        at.wrapped(past.content, _PAST)
    if "reflect" not in frames:
        return
    event = ChatMessage("user", f"{opening}{_OWN}{closing}")
    for experience, earlier in (([event], None), ([event, event], past), ([], event)):
        at = setting.at("reflect", f"{'with' if earlier else 'without'} a past reflection")
        text = setting.prompts.reflection(experience, earlier).content
        at.balanced(text)
        at.cue(text, "reflect")
        at.enclosed(text, "history", _OWN, "the experience")
        if earlier is past:
            at.enclosed(text, "history", _PAST, "the past reflection")
