"""A prompt pack: a folder of templates with a declaration of its delimiters and cues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Unpack, get_args

from pydantic import Field

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import DocumentModel, parse_value, read_text, validate
from opinionsim.messages import ChatMessage
from opinionsim.opinions import OpinionScale
from opinionsim.personas import BARE, Persona
from opinionsim.prompts._agent_prompts import Act, AgentPrompts, Frame, Wording
from opinionsim.prompts._binding import PERSON, PlainAct, bind_acts, bind_frames
from opinionsim.prompts._brief import Brief, told_by
from opinionsim.prompts._check import check_effects, check_use
from opinionsim.prompts._marks import Marks
from opinionsim.prompts._named_texts import Texts
from opinionsim.prompts._prompt_settings import BeliefTense, Conditions, ConfirmationBias, PersonaShown, World
from opinionsim.prompts._templates import FRAMES, SUFFIX, TASKS, Library, check_names, render
from opinionsim.registry import names, places
from opinionsim.topics import Claim

#: The pack that is used where none is named.
DEFAULT = "default"
_DECLARATION, _TEXTS = "pack.yaml", "texts.yaml"
#: The cues of templates that join a pack, and the line of its declaration below which they come to stand.
_CUES, _BELOW = "cues.yaml", "cues:\n"
#: The wording of a pack's own files; others are folders inside the one named here.
USUAL, _WORDINGS = "usual", "wordings"
#: What stands between a pack and a wording in its name.
_MARK = "::"


class _Delimiters(DocumentModel):
    """Opening and closing text of each kind of block."""

    persona: tuple[str, str]
    history: tuple[str, str]
    post: tuple[str, str]
    claim: tuple[str, str]
    disposition: tuple[str, str]


class _Labels(DocumentModel):
    """Lines that introduce received messages."""

    numbered: str = ""
    named: str = ""
    own: str = ""
    other: str = ""
    outside: str = ""


class _Declaration(DocumentModel):
    """The contents of ``pack.yaml``."""

    name: str = Field(min_length=1)
    description: str = ""
    delimiters: _Delimiters
    cues: dict[str, str] = Field(default_factory=dict)
    labels: _Labels = Field(default_factory=lambda: _Labels())
    pass_on: bool = True


#: Source of a pack: its name in errors, and its files.
_Origin = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class PromptPack:
    """The wording of every prompt.

    Attributes
    ----------
    name : str
        As its ``pack.yaml`` states it.
    contents : mapping of str to str
        File name to text: ``pack.yaml``, all templates, and ``texts.yaml`` if there is one. Enough to build the pack
        again.
    marks : Marks
        Delimiters and cues.
    texts : mapping of str to str
        Acts' own texts, by act, for acts whose template the pack does not have; empty until :meth:`bind`.
    named : Texts or None
        The named texts of ``texts.yaml``; None for a pack without that file.

    Notes
    -----
    Inserted values are data: they are never expanded as templates, and a delimiter that occurs in one
    gets a space after its first character, so that no text can open or close a block.
    """

    name: str
    contents: Mapping[str, str]
    marks: Marks
    texts: Mapping[str, str]
    named: Texts | None = field(repr=False, compare=False)
    _origin: _Origin = field(repr=False, compare=False)
    _library: Library = field(repr=False, compare=False)
    _wording: Wording = field(repr=False, compare=False)

    @classmethod
    def from_contents(cls, name: str, contents: Mapping[str, str]) -> PromptPack:
        """Build a pack, and check its files and the variables of its templates.

        No template is rendered: :meth:`bind` does that with what a run uses, and
        :class:`opinionsim.testing.PromptPackContract` with everything, under all conditions.

        Parameters
        ----------
        name : str
            Name of the pack in errors: its folder, or the name of a built-in pack.
        contents : mapping of str to str
            File name to text.

        Raises
        ------
        SpecError
            If a template, variable, delimiter or cue is missing or unknown, or :meth:`Texts.parse` refuses the named
            texts.
        """
        return _build((name, tuple(sorted(contents.items()))))

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the task templates, sorted."""
        return tuple(sorted(self._wording.tasks))

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of the other templates: ``system``, and ``event``, ``reflect``, ``recollection`` if present."""
        return tuple(name for name in FRAMES if name in self._wording.frames)

    @property
    def place(self) -> str:
        """Name of the pack in errors."""
        return self._wording.place

    @property
    def attributes(self) -> frozenset[str]:
        """Attributes of personas that its templates ask for by name."""
        return self._library.attributes

    def bind(
        self, acts: Iterable[Act], frames: Iterable[str | Frame] = (), **conditions: Unpack[Conditions]
    ) -> PromptPack:
        """The pack as a run uses it.

        Every act gets the template that it names. Where the pack has none, the act's own text takes its place. What the
        run uses is rendered in a few cases with sample values: acts' own texts and, of a pack that does not come with
        the package, all that :meth:`check` checks. Binding a bound pack binds it anew.

        Parameters
        ----------
        acts : iterable of Act
            The acts of the run.
        frames : iterable of str or Frame
            Templates that the memories of the run use: ``event``, ``reflect``, ``recollection``, and their own.
        **conditions
            Those of the arguments of :meth:`for_agent` that :class:`Conditions` names; default a closed world, and
            otherwise those that :meth:`for_agent` has.

        Returns
        -------
        PromptPack
            A pack with the same name, contents and marks; cached.

        Raises
        ------
        SpecError
            If a template is missing or fails, an act declares or uses a variable that is not valid, or :meth:`check`
            finds a fault.
        """
        return _bind(self._origin, *_plain(acts, frames), tuple(sorted(conditions.items())))

    def check(self, acts: Iterable[Act], frames: Iterable[str | Frame] = (), **conditions: Unpack[Conditions]) -> None:
        """Render what a run uses in a few cases with sample values, and check the required parts.

        That is the system message, the templates of its acts, and the frames: delimiters stand in pairs, what is
        inserted stands between its own, cues stand where they belong, and conditions make a difference.

        Parameters
        ----------
        acts, frames, **conditions
            As for :meth:`bind`.

        Raises
        ------
        SpecError
            At the first thing that fails, is missing, out of place, ambiguous or without effect.
        """
        plain = _plain(acts, frames)
        check_use(self.bind(*plain, **conditions), *plain, conditions)

    def check_effects(
        self, acts: Iterable[Act], values: Mapping[str, Iterable[Any]], **conditions: Unpack[Conditions]
    ) -> None:
        """Check that the values of conditions each give a text of their own.

        Parameters
        ----------
        acts : iterable of Act
            The acts of the run; without one that writes, its words do not matter.
        values : mapping of str to iterable
            The values of each condition, by argument of :meth:`for_agent`.
        **conditions
            As for :meth:`bind`; all but the one that is varied.

        Raises
        ------
        SpecError
            At the first two values that give the same system message, or of `post_words` the same request of a post.
        """
        check_effects(self, _plain(acts)[0], values, conditions)

    def for_agent(
        self,
        *,
        scale: OpinionScale,
        world: World,
        persona: Persona | None = None,
        opinion: int | None = None,
        claim: Claim | None = None,
        task: str = "",
        persona_shown: PersonaShown = "full",
        masked: bool = True,
        confirmation_bias: ConfirmationBias = "none",
        belief_tense: BeliefTense = "present",
        post_words: int | None = None,
        reads: bool = True,
        writes: bool = True,
        agent: int | None = None,
        role: str = "participant",
        brief: Brief | None = None,
    ) -> AgentPrompts:
        """The prompts of one agent.

        Parameters
        ----------
        scale : OpinionScale
            Source of the verbal anchors.
        world : {"closed", "open"}
            Whether prompts shut out all other sources of information (A6).
        persona : Persona, optional
            Persona of the agent. With None (default) and ``BARE`` there is no role-play, regardless of `persona_shown`.
        opinion : int, optional
            The opinion assigned at the start, a point of `scale`; with role-play, prompts state its verbal anchor.
            Default none.
        claim : Claim, optional
            The claim that opinions are about; None (default) where the run has no claim.
        task : str
            Free text that every task states; empty (default) for none.
        persona_shown : {"full", "demographics", "name", "none"}
            Name, attributes and background; attributes only; the name only; or no role-play at all.
        masked : bool
            Call the claim "Theory XYZ" after its first mention in a message (A5).
        confirmation_bias : {"none", "weak", "strong"}
            Instruction on confirmation bias (A6).
        belief_tense : {"present", "past"}
            Whether the initial belief is a noun phrase without a verb (A4), or stated in the past tense.
        post_words : int or None
            Most words that a post is asked to have, >= 1; None (default) says nothing of length.
        reads, writes : bool
            Whether the agent is ever shown posts, and whether it ever writes any; what it never does stands in no
            prompt, nor do strangers in the closed world of one that never reads (A12).
        agent : int, optional
            Its number in the cast, which marks its own among received messages; None (default) marks none.
        role : str
            Its role in the run; default that of a participant.
        brief : Brief, optional
            Named texts of the pack that address it, or texts in their place; default those named ``default``, if the
            pack has named texts.

        Returns
        -------
        AgentPrompts
            Immutable; the system message is rendered once, here.

        Raises
        ------
        SpecError
            If a condition is unknown, the opinion is off the scale, the persona has no attributes where only these are
            shown, the brief names a text that the pack does not have, or the system template fails for this persona.
        """
        _check_choice("persona_shown", persona_shown, PersonaShown)
        _check_choice("confirmation_bias", confirmation_bias, ConfirmationBias)
        _check_choice("world", world, World)
        _check_choice("belief_tense", belief_tense, BeliefTense)
        if post_words is not None and post_words < 1:
            raise SpecError(f"post_words must be a number of words >= 1, or none for no limit; got {post_words}")
        player = BARE if persona is None or persona_shown == "none" else persona
        role_play = player != BARE
        defang = self._wording.defang
        told = told_by(brief or Brief(), self.named, role, task, self._wording.place, topic=claim is not None)
        name = defang(player.name) if persona_shown in ("full", "name") else ""
        shared = {
            "name": name,
            "role": defang(role),
            "role_play": role_play,
            "claim": "" if claim is None else defang(claim.text),
            "question": "" if claim is None else defang(claim.question),
            "truth": claim is not None and claim.accepted is not None,
            # A moderator whose system message states the task is not told it again.
            "task": "" if told.knows_task else defang(task),
            "masked": masked,
            "confirmation_bias": confirmation_bias,
            "world": world,
            "post_words": post_words,
            "reads": reads,
            "writes": writes,
            "scale": tuple((point, defang(label)) for point, label in zip(scale.points, scale.labels, strict=True)),
            "instructions": tuple(map(defang, told.instructions)),
            "automatic": defang(told.automatic),
        }
        belief = scale.label(opinion) if role_play and opinion is not None else ""
        shown = {
            **_shown(player, persona_shown, defang),
            "initial_belief": defang(belief),
            "belief_tense": belief_tense,
            "system": defang(told.system),
            "frame": tuple(map(defang, told.frame)),
        }
        system = render(self._wording.place, self._wording.frame("system"), {**shared, **shown})
        return AgentPrompts(
            name,
            agent,
            name if brief is None or brief.author is None else brief.author,
            self._wording,
            MappingProxyType(shared),
            ChatMessage("system", system) if system else None,
        )


def _shown(player: Persona, persona_shown: PersonaShown, defang: Callable[[str], str]) -> dict[str, Any]:
    """Variables of the system message about a persona, beside its name."""
    listed = player.attributes if persona_shown in ("full", "demographics") else {}
    if persona_shown == "demographics" and not listed and player != BARE:
        raise SpecError(
            f"persona_shown is 'demographics', but persona {player.name!r} has no attributes; "
            "give it some, or show full, name or none"
        )
    return {
        "attributes": {defang(key): defang(value) for key, value in listed.items()},
        "background": defang(player.background) if persona_shown == "full" else "",
    }


def _check_choice(field_name: str, value: str, choices: object) -> None:
    valid = get_args(choices)
    if value not in valid:
        raise SpecError(f"{field_name} must be one of {', '.join(valid)}; got {value!r}")


@lru_cache(maxsize=16)
def _build(origin: _Origin) -> PromptPack:
    """Build a pack; cached, since every run of a sweep builds the same one."""
    name, items = origin
    contents = MappingProxyType(dict(items))
    place = f"prompt pack {name}"
    declared = _read_declaration(place, contents)
    named = Texts.parse(contents[_TEXTS], f"{place}/{_TEXTS}") if _TEXTS in contents else None
    labels = declared.labels.model_dump(exclude_defaults=True)
    if named is not None:
        labels["marker"] = named.marker
    marks = Marks(
        **declared.delimiters.model_dump(),
        cues=MappingProxyType(dict(sorted(declared.cues.items()))),
        labels=MappingProxyType(labels),
    )
    problem = marks.problem()
    if problem:
        raise SpecError(f"{place}/{_DECLARATION}: {problem}")
    _check_files(place, contents, marks)
    defang = marks.defanger()
    library = Library.of(place, contents, defang)
    check_names(library)
    frames = {name: template for name, template in library.templates.items() if name in FRAMES}
    tasks = {name: template for name, template in library.templates.items() if name not in FRAMES}
    wording = Wording(place, MappingProxyType(frames), MappingProxyType(tasks), marks, defang)
    return PromptPack(declared.name, contents, marks, MappingProxyType({}), named, origin, library, wording)


def _plain(
    acts: Iterable[Act], frames: Iterable[str | Frame] = ()
) -> tuple[tuple[PlainAct, ...], tuple[str | Frame, ...]]:
    """Acts that ask, and frames, as hashable values, each once."""
    return tuple(dict.fromkeys(PlainAct.of(act) for act in acts if act.template)), tuple(dict.fromkeys(frames))


@lru_cache(maxsize=512)
def _bind(
    origin: _Origin,
    acts: tuple[PlainAct, ...],
    frames: tuple[str | Frame, ...],
    conditions: tuple[tuple[str, Any], ...],
) -> PromptPack:
    """Bind a pack; cached, since every run of a sweep binds the same one."""
    pack = _build(origin)
    wording, texts = bind_acts(pack._library, bind_frames(pack._library, pack._wording, frames), acts)
    bound = replace(pack, texts=MappingProxyType(texts), _wording=wording)
    if pack.contents not in map(_shipped, names("pack")):
        check_use(bound, acts, frames, dict(conditions))
    elif own := [act for act in acts if act.name in texts]:
        check_use(bound, own, (), dict(conditions))
    return bound


@cache
def _shipped(name: str) -> Mapping[str, str]:
    """The files of a built-in pack. Its tests check it, so that no process spends time on that."""
    return pack_files(name)


def _read_declaration(place: str, contents: Mapping[str, str]) -> _Declaration:
    """The declarations in the pack's ``pack.yaml``."""
    where = f"{place}/{_DECLARATION}"
    if _DECLARATION not in contents:
        raise SpecError(f"{where}: no such file; it declares name, delimiters and cues")
    value = parse_value(contents[_DECLARATION], where)
    if not isinstance(value, dict):
        raise SpecError(f"{where}: must be a mapping with the fields name, description, delimiters and cues")
    declared = validate(_Declaration, value, where)
    for task in (*TASKS, "reflect"):
        if f"{task}{SUFFIX}" in contents and task not in declared.cues:
            raise SpecError(f"{where}: cues.{task}: missing; give a phrase that only that task's prompts contain")
    for task, cue in declared.cues.items():
        if not cue.strip():
            raise SpecError(f"{where}: cues.{task}: must be a phrase; got {cue!r}")
        if (task in FRAMES and task != "reflect") or task.startswith("_"):
            raise SpecError(f"{where}: cues.{task}: is no task; a cue names a task template or reflect")
    return declared


def _check_files(place: str, contents: Mapping[str, str], marks: Marks) -> None:
    """Check that the system message and a template for every cue exist, and that every file is known."""
    system = f"system{SUFFIX}"
    if system not in contents:
        raise SpecError(f"{place}/{system}: no such template; every pack has one")
    named = {f"{name}{SUFFIX}" for name in marks.cues}
    for file in sorted(named - contents.keys()):
        raise SpecError(f"{place}/{file}: no such template, though {_DECLARATION} has a cue for it")
    known = named | {f"{name}{SUFFIX}" for name in FRAMES}
    for file in contents:
        partial = file.startswith(("_", PERSON)) and file.endswith(SUFFIX)
        if file not in known and file not in (_DECLARATION, _TEXTS) and not partial:
            raise SpecError(
                f"{place}/{file}: unknown file; a pack holds {_DECLARATION}, {', '.join(sorted(known))}, templates "
                f"to include named _*{SUFFIX}, what persons are asked in {PERSON}*{SUFFIX}, further tasks that have a "
                f"cue in {_DECLARATION}, and {_TEXTS}"
            )


def load_pack(name_or_path: str | Path = DEFAULT) -> PromptPack:
    """Load a prompt pack.

    Parameters
    ----------
    name_or_path : str or Path
        Name of a built-in pack, or a folder with a ``pack.yaml`` and templates; with a wording as
        :func:`worded` names it.

    Returns
    -------
    PromptPack
        As :meth:`PromptPack.from_contents` builds it.

    Raises
    ------
    SpecError
        If there is no such folder, a file is not UTF-8 text, or :meth:`PromptPack.from_contents` refuses it.
    """
    return PromptPack.from_contents(str(name_or_path), pack_files(name_or_path))


def pack_files(name_or_path: str | Path) -> dict[str, str]:
    """The files of a prompt pack, unchecked.

    Parameters
    ----------
    name_or_path : str or Path
        Name of a built-in pack, or a folder; with a wording as :func:`worded` names it.

    Returns
    -------
    dict of str to str
        File name to text, in order of names. Names that start with a dot or end in ``~``, Markdown files, licences and
        subfolders are no part of a pack. Templates that other folders of the package bring for a built-in pack are,
        and stand for those of the same name, as files of a wording, in ``wordings/NAME``, do.

    Raises
    ------
    SpecError
        If there is no such folder or wording, or a file is not UTF-8 text.
    """
    name, _, wording = str(name_or_path).partition(_MARK)
    place = places("pack").get(name)
    folder = Path(name) if place is None else place.path
    if not folder.is_dir():
        raise SpecError(f"prompt pack {name!r} is neither {', '.join(map(repr, names('pack')))} nor a folder")
    files = _files(folder) if place is None else _joined(name, _files(folder))
    if not wording:
        return files
    valid = [USUAL, *sorted(path.name for path in folder.glob(f"{_WORDINGS}/*/"))]
    if wording not in valid[1:]:
        raise SpecError(f"prompt pack {name!r} has no wording {wording!r}; valid: {', '.join(valid)}")
    return files | _files(folder / _WORDINGS / wording)


def _joined(pack: str, files: dict[str, str]) -> dict[str, str]:
    """The files of a built-in pack, with the templates that other folders of the package bring for it."""
    for place in (each for each in places("templates").values() if each.value["joins"] == pack):
        joining = _files(place.path)
        cues = "".join(f"  {line}" for line in joining.pop(_CUES).splitlines(keepends=True))
        files = {**files, **joining, _DECLARATION: files[_DECLARATION].replace(_BELOW, f"{_BELOW}{cues}", 1)}
    return dict(sorted(files.items()))


def worded(pack: str, wording: str) -> str:
    """The name of a pack with one of its wordings, ``PACK::WORDING``; the pack's own for the usual one."""
    return pack if wording == USUAL else f"{pack}{_MARK}{wording}"


def pack_name(reference: str) -> str:
    """The pack of such a name."""
    return reference.partition(_MARK)[0]


def _files(folder: Path) -> dict[str, str]:
    """The files of a folder that belong to a pack."""
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file() and _belongs(path.name))
        return {path.name: _read(path) for path in files}
    except OSError as error:
        raise SpecError(f"prompt pack {folder}: cannot be read: {error.strerror}") from None


def _belongs(file: str) -> bool:
    return not (file.startswith((".", "LICENSE", "LICENCE")) or file.endswith(("~", ".md")))


def _read(path: Path) -> str:
    """Text of one file, with plain newlines."""
    text = read_text(path)
    if "\0" in text:
        raise SpecError(f"{path}: not a text file; it holds a zero byte")
    return text.replace("\r\n", "\n")
