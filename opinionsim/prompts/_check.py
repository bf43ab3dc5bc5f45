"""The check of a prompt pack: every template, in every case, with sample values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, get_args

from opinionsim.errors import SpecError
from opinionsim.messages import ChatMessage, Message, Reply
from opinionsim.opinions import OpinionScale
from opinionsim.personas import Persona
from opinionsim.prompts._agent import Act, AgentPrompts, BeliefTense, ConfirmationBias, Past, PersonaShown, World
from opinionsim.prompts._binding import PlainAct
from opinionsim.prompts._marks import BLOCKS, Block
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

#: A past, received messages and how they are labelled.
_Scene = tuple[Past, tuple[Message, ...], str]


@dataclass(frozen=True)
class _Place:
    """The template that is checked and its condition, as errors name them."""

    pack: PromptPack
    where: str
    condition: str

    def error(self, problem: str) -> SpecError:
        return SpecError(f"{self.where}: {problem} ({self.condition})")

    def balanced(self, text: str) -> None:
        """Check that every opening delimiter has a closing one, and the reverse."""
        for kind in BLOCKS:
            opening, closing = self.pack.marks.pair(kind)
            opened, closed = text.count(opening), text.count(closing)
            whole = all(closing in part for part in text.split(opening)[1:])
            if opened != closed or not whole:
                raise self.error(f"{opening!r} and {closing!r} must stand in pairs; found {opened} and {closed}")

    def enclosed(self, text: str, kind: Block, value: str, what: str) -> None:
        """Check that a value stands between its delimiters, and only there."""
        opening, closing = self.pack.marks.pair(kind)
        if not any(value in block for block in self.pack.marks.blocks(kind, text)):
            raise self.error(f"{what} must stand between {opening!r} and {closing!r}; it does not")
        if value in self.pack.marks.without(kind, text):
            raise self.error(f"{what} also stands outside {opening!r} and {closing!r}")

    def absent(self, text: str, kind: Block, why: str) -> None:
        """Check that there is no block of a kind."""
        if self.pack.marks.pair(kind)[0] in text:
            raise self.error(f"{self.pack.marks.pair(kind)[0]!r} must not be there: {why}")

    def wrapped(self, text: str, value: str) -> None:
        """Check that the whole text is one history block that holds a value."""
        opening, closing = self.pack.marks.history
        if not (text.startswith(opening) and text.endswith(closing)) or text.count(opening) != 1:
            raise self.error(f"must be wrapped whole, and once, in {opening!r} and {closing!r}")
        self.enclosed(text, "history", value, "the agent's text")

    def cue(self, text: str, own: str) -> None:
        """Check that the template's own cue, and no other, stands outside all blocks."""
        bare = text
        for kind in BLOCKS:
            bare = self.pack.marks.without(kind, bare)
        if own and self.pack.marks.cues[own] not in bare:
            raise self.error(f"its cue {self.pack.marks.cues[own]!r} is missing outside delimiters")
        for task, cue in self.pack.marks.cues.items():
            if task != own and cue in text:
                raise self.error(f"contains {cue!r}, the cue of {task}; a cue must tell its task from all other text")

    def posts(self, text: str, received: tuple[Message, ...]) -> None:
        """Check that every received message stands in a block of its own: those of others in their order."""
        opening, closing = self.pack.marks.post
        blocks = self.pack.marks.blocks("post", text)
        own = [message.text for message in received if message.agent == _AGENT]
        others = [message.text for message in received if message.agent != _AGENT]
        found = [block for block in blocks if not any(each in block for each in own)]
        if (len(blocks), len(found)) != (len(received), len(others)) or any(
            each not in block for each, block in zip(others, found, strict=True)
        ):
            raise self.error(
                f"each of {len(received)} received messages must stand once between {opening!r} and {closing!r}"
            )
        for message in received:
            self.enclosed(text, "post", message.text, "a received message")


@dataclass(frozen=True)
class _Setting:
    """The prompts of a sample agent under one condition."""

    pack: PromptPack
    place: str
    condition: Mapping[str, Any]
    spelled: str
    prompts: AgentPrompts

    @classmethod
    def of(cls, pack: PromptPack, place: str, condition: Mapping[str, Any]) -> _Setting:
        """Under a condition: arguments of :meth:`PromptPack.for_agent`."""
        values = [f"{key}: {value}" for key, value in condition.items() if key not in ("persona", "claim")]
        values += [f"no {key}" for key in ("persona", "claim") if condition[key] is None]
        return cls(pack, place, condition, ", ".join(values), pack.for_agent(scale=_SCALE, agent=_AGENT, **condition))

    @property
    def system(self) -> str:
        """The text of the system message."""
        message = self.prompts.system()
        return message.content if message else ""

    def at(self, template: str, scene: str = "") -> _Place:
        """A template of the pack, in a scene."""
        return self.within(f"{self.place}/{template}{SUFFIX}", scene)

    def within(self, where: str, scene: str) -> _Place:
        """A template anywhere, in a scene."""
        return _Place(self.pack, where, f"{self.spelled}, {scene}" if scene else self.spelled)

    def check_claim(self, at: _Place, text: str) -> None:
        """Check that the claim stands in its block, or that there is no block without a claim."""
        if self.condition["claim"] is None:
            at.absent(text, "claim", "there is no claim")
        else:
            at.enclosed(text, "claim", _CLAIM, "the claim")

    def check_task(self, at: _Place, text: str) -> None:
        """Check that the free task is stated, here or in the system message."""
        task = self.condition.get("task", "")
        if task and task not in text and task not in self.system:
            raise at.error("the variable task must stand in the prompt, here or in the system message; it does not")


def check_pack(pack: PromptPack, place: str, attributes: frozenset[str], tasks: Iterable[str]) -> None:
    """Render every template in every case and check the required parts.

    Parameters
    ----------
    pack : PromptPack
        The pack to check.
    place : str
        Name of the pack in errors.
    attributes : frozenset of str
        Attributes of personas that its templates ask for by name.
    tasks : iterable of str
        Task templates to check; the other ones need values of an act.

    Raises
    ------
    SpecError
        At the first thing that is missing, out of place, ambiguous or without effect.
    """
    persona = _persona(attributes)
    acts = tuple(PlainAct("qzact", task, "post" if task == "write" else "report") for task in sorted(tasks))
    for condition in _conditions():
        setting = _Setting.of(pack, place, {"persona": persona, "claim": _SAMPLE_CLAIM, **condition})
        _check_system(setting)
        # The rest depends on neither the attributes nor the opinion.
        if condition["persona_shown"] in ("full", "none") and condition["opinion"] is None:
            usual = {"confirmation_bias": "weak", "world": "closed", "reads": True}
            scenes = _scenes() if all(condition[key] == value for key, value in usual.items()) else _FEW_SCENES
            _check_tasks(setting, acts, scenes)
            _check_events(setting, scenes)
            _check_reflection(setting)
    for condition, scenes in _rarer_conditions():
        setting = _Setting.of(pack, place, {"persona": persona, **condition})
        _check_system(setting)
        _check_tasks(setting, acts, scenes)
        _check_events(setting, scenes)
    _check_effects(pack, place, persona)


def check_bound(pack: PromptPack, place: str, attributes: frozenset[str], acts: Iterable[PlainAct]) -> None:
    """Render the template of every act in a few cases.

    Parameters
    ----------
    pack : PromptPack
        A pack bound to the acts.
    place : str
        Name of the pack in errors.
    attributes : frozenset of str
        Attributes of personas that its templates ask for by name.
    acts : iterable of PlainAct
        The acts of the run.

    Raises
    ------
    SpecError
        If a template fails, or one of the pack lacks a part that :func:`check_pack` requires. An act's own text must
        only not be blank.
    """
    usual = {"persona": _persona(attributes), "claim": _SAMPLE_CLAIM, "world": "closed"}
    settings = [
        _Setting.of(pack, place, {**usual, **change})
        for change in ({}, {"persona": None}, {"claim": None}, {"task": _TASK})
    ]
    for act in acts:
        scenes = [(past, _POSTS[:n], act.labelling) for past, n in ((_PASTS[0], 0), (_PASTS[1], 1), (_PASTS[2], 2))]
        if act.template in pack.tasks:
            for setting in settings:
                _check_tasks(setting, (act,), scenes)
        else:
            _check_own_text(settings, act, scenes)


def _persona(attributes: frozenset[str]) -> Persona:
    """A sample persona with all attributes that templates may ask for."""
    names = [*_COMMON_ATTRIBUTES, *sorted(attributes.difference(_COMMON_ATTRIBUTES))]
    return Persona(_NAME, None, {name: f"Qzattribute {name}" for name in names}, _BACKGROUND)


def _conditions() -> Iterator[dict[str, Any]]:
    """Every combination of conditions."""
    grid = {
        "persona_shown": ("full", "demographics", "name", "none"),
        "confirmation_bias": ("none", "weak", "strong"),
        "world": ("closed", "open"),
        "masked": (True, False),
        "reads": (True, False),
        "opinion": (None, 0),
    }
    for values in product(*grid.values()):
        condition = dict(zip(grid, values, strict=True))
        yield {**condition, "writes": condition["reads"]}


def _rarer_conditions() -> Iterator[tuple[dict[str, Any], list[_Scene]]]:
    """No claim, a task, another role, and the rest of what varies, with the scenes to look at."""
    every_past = [(past, _POSTS[: i % 3], "anonymous") for i, past in enumerate(_PASTS)]
    for reads, tense, words in ((True, "past", 7), (False, "present", 1)):
        usual = {"world": "closed", "claim": _SAMPLE_CLAIM, "opinion": 0}
        yield {**usual, "reads": reads, "writes": not reads, "belief_tense": tense, "post_words": words}, _FEW_SCENES
    for shown, world in (("full", "closed"), ("none", "open")):
        for claim, task, role in ((None, "", ""), (None, _TASK, ""), (_SAMPLE_CLAIM, _TASK, _ROLE)):
            condition: dict[str, Any] = {"persona_shown": shown, "world": world, "claim": claim}
            if task:
                condition["task"] = task
            if role:
                condition["role"] = role
            yield condition, _FEW_SCENES if task else [*_FEW_SCENES, *every_past]


def _scenes() -> list[_Scene]:
    """All pasts with all received messages and labellings."""
    labellings = ("anonymous", "numbered", "named")
    told_apart = [(past, _POSTS[:n], "you-other") for past, n in product((Past(), _PASTS[2]), (1, 2))]
    return [(past, _POSTS[:n], label) for past, n, label in product(_PASTS, (0, 1, 2), labellings)] + told_apart


#: The commonest pasts, received messages and labelling.
_FEW_SCENES: list[_Scene] = [
    (past, received, "anonymous") for past in (Past(), _PASTS[2]) for received in ((), _POSTS[:1])
]


def _spell(past: Past, received: tuple[Message, ...], labelling: str) -> str:
    """A scene, for errors."""
    return f"after {past.previous or 'nothing'}, {len(received)} messages {labelling}"


def _check_system(setting: _Setting) -> None:
    """Check persona, initial belief, claim and disposition in the system message."""
    at, text, condition = setting.at("system"), setting.system, setting.condition
    at.balanced(text)
    at.cue(text, "")
    at.absent(text, "history", "the system message is no memory")
    at.absent(text, "post", "nobody has posted yet")
    if condition.get("confirmation_bias", "none") == "none":
        at.absent(text, "disposition", "there is no confirmation bias")
    elif not any(block.strip() for block in at.pack.marks.blocks("disposition", text)):
        raise at.error(f"no instruction stands between {' and '.join(map(repr, at.pack.marks.disposition))}")
    shown = condition.get("persona_shown", "full")
    if shown == "none":
        at.absent(text, "persona", "there is no role-play")
    if shown != "none" or condition["claim"] is None:
        setting.check_claim(at, text)
    if shown != "none":
        _check_persona(at, text, shown, condition.get("opinion") is not None)


def _check_persona(at: _Place, text: str, shown: PersonaShown, opinion: bool) -> None:
    """Check that the parts of a persona that are shown stand in its block."""
    opening, closing = at.pack.marks.persona
    inside = "".join(at.pack.marks.blocks("persona", text))
    if shown != "demographics" and _NAME not in inside:
        raise at.error(f"the name must stand between {opening!r} and {closing!r}; it does not")
    if shown in ("full", "demographics"):
        at.enclosed(text, "persona", "Qzattribute", "an attribute")
    if shown == "full":
        at.enclosed(text, "persona", _BACKGROUND, "the background")
    if opinion:
        at.enclosed(text, "persona", _ANCHOR, "the initial belief")


def _check_tasks(setting: _Setting, acts: Iterable[PlainAct], scenes: list[_Scene]) -> None:
    """Check claim, task, received messages and cue in the prompt of every act."""
    for act in acts:
        labelled = {label: _labelled(act, label) for _, _, label in scenes}
        for past, received, label in scenes:
            at = setting.at(act.template, _spell(past, received, label))
            text = setting.prompts.task(labelled[label], received, past).content
            at.balanced(text)
            at.cue(text, act.template)
            setting.check_claim(at, text)
            setting.check_task(at, text)
            at.absent(text, "persona", "the persona stands in the system message")
            at.absent(text, "history", "a task is no memory")
            at.posts(text, received)


def _labelled(act: PlainAct, labelling: str) -> Act:
    """The same act with another labelling."""
    return PlainAct(act.name, act.template, act.kind, labelling, act.text, act.variables, act.pairs)


def _check_own_text(settings: Iterable[_Setting], act: PlainAct, scenes: list[_Scene]) -> None:
    """Check that an act's own text renders, with whole blocks, and is not always blank."""
    where = f"act {act.name}"
    said = False
    for setting, scene in product(settings, scenes):
        past, received, _ = scene
        text = setting.prompts.task(act, received, past).content
        setting.within(where, _spell(*scene)).balanced(text)
        said = said or bool(text)
    if not said:
        raise SpecError(f"{where}: the text is blank; it has to ask for something")


def _check_events(setting: _Setting, scenes: list[_Scene]) -> None:
    """Check that events are wrapped, and hold the received messages and the reply."""
    if "event" not in setting.pack.frames:
        return
    for kind, (past, received, labelling) in product(("post", "report", "response"), scenes):
        at = setting.at("event", f"{kind} {_spell(past, received, labelling)}")
        act = PlainAct("qzact", "qzact", kind, labelling)
        told = setting.prompts.event(act, received, Reply(_OWN), past).content
        at.balanced(told)
        at.cue(told, "")
        at.wrapped(told, _OWN)
        at.posts(told, received)
        if setting.condition["claim"] is None:
            setting.check_claim(at, told)
        if _OWN in "".join(at.pack.marks.blocks("post", told)):
            raise at.error("the agent's own text must stand outside the delimiters of posts")
        _check_silence(setting, at, act, (past, received, labelling))


def _check_silence(setting: _Setting, at: _Place, act: PlainAct, scene: _Scene) -> None:
    """Check that the event of a reply that was none says so, and shows what was received."""
    past, received, _ = scene
    blank = setting.prompts.event(act, received, Reply(""), past).content
    for reply in (Reply(_OWN, "refused"), Reply("", "empty")):
        told = setting.prompts.event(act, received, reply, past).content
        if told == blank:
            raise at.error(f"the event of a reply with condition {reply.condition!r} must say that there was none")
        at.balanced(told)
        at.cue(told, "")
        at.posts(told, received)


def _check_reflection(setting: _Setting) -> None:
    """Check that recollections are wrapped, and that requests to reflect hold experience and past reflection."""
    opening, closing = setting.pack.marks.history
    past = ChatMessage("user", f"{opening}{_PAST}{closing}")
    if "recollection" in setting.pack.frames:
        past = setting.prompts.recollection(Reply(_PAST))
        at = setting.at("recollection")
        at.balanced(past.content)
        at.cue(past.content, "")
        at.wrapped(past.content, _PAST)
    if "reflect" not in setting.pack.frames:
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


def _check_effects(pack: PromptPack, place: str, persona: Persona) -> None:
    """Check that every condition a study may vary changes the system message, or the request of a post."""
    usual: dict[str, Any] = {
        "persona_shown": "full",
        "confirmation_bias": "none",
        "world": "closed",
        "masked": True,
        "opinion": 0,
        "belief_tense": "present",
        "reads": True,
        "writes": True,
    }
    axes: dict[str, tuple[Any, ...]] = {
        "persona_shown": get_args(PersonaShown),
        "confirmation_bias": get_args(ConfirmationBias),
        "world": get_args(World),
        "masked": (True, False),
        "opinion": (None, -1, 0, 1),
        "belief_tense": get_args(BeliefTense),
        "reads": (True, False),
        "writes": (True, False) if "write" in pack.tasks else (True,),
    }
    for axis, values in axes.items():
        told: dict[ChatMessage | None, Any] = {}
        for value in values:
            condition = {**usual, axis: value}
            system = pack.for_agent(persona=persona, claim=_SAMPLE_CLAIM, scale=_SCALE, **condition).system()
            if system in told:
                raise SpecError(f"{place}/system{SUFFIX}: {axis} {value!r} and {told[system]!r} give the same text")
            told[system] = value
    if "write" in pack.tasks:
        write = PlainAct("qzact", "write", "post")
        lengths = [pack.for_agent(scale=_SCALE, world="open", post_words=words) for words in (None, 7)]
        if len({prompts.task(write, (), Past()) for prompts in lengths}) == 1:
            raise SpecError(f"{place}/write{SUFFIX}: post_words 7 and None give the same text")
