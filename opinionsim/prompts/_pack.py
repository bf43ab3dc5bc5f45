"""A prompt pack: a folder of templates with a declaration of its delimiters and cues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import Field

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import DocumentModel, parse_value, read_text, validate
from opinionsim.messages import ChatMessage
from opinionsim.personas import BARE
from opinionsim.prompts._act import Act
from opinionsim.prompts._agent_prompts import AgentPrompts, Frame, Wording
from opinionsim.prompts._binding import PERSON, bind_acts, bind_frames
from opinionsim.prompts._brief import Addressee, texts_for
from opinionsim.prompts._check import check_effects, check_use
from opinionsim.prompts._marks import Marks
from opinionsim.prompts._named_texts import Texts
from opinionsim.prompts._prompt_settings import Conditions
from opinionsim.prompts._templates import FRAMES, SUFFIX, TASKS, Library, check_names, render
from opinionsim.registry import names, places

#: The pack that is used where none is named.
DEFAULT = "default"
_DECLARATION, _TEXTS = "pack.yaml", "texts.yaml"
#: The cues of templates that join a pack, and the line of its declaration below which they come to stand.
_CUES, _BELOW = "cues.yaml", "cues:\n"
#: The wording of a pack's own files; others are folders inside the one named here.
USUAL, _WORDINGS = "usual", "wordings"
#: Most words of a report, where the limit of replies leaves room for more.
_REPORT_WORDS = 150
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
    language: str = Field("en", pattern=r"^[a-z]{2,3}$")


#: Source of a pack: its name in errors, and its files.
_Origin = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class PromptPack:
    """The wording of every prompt.

    Attributes
    ----------
    name : str
        Name from its ``pack.yaml``.
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
        """Names of the other templates: ``system``, and the other :data:`FRAMES` that are present."""
        return tuple(name for name in FRAMES if name in self._wording.frames)

    @property
    def place(self) -> str:
        """Name of the pack in errors."""
        return self._wording.place

    @property
    def attributes(self) -> frozenset[str]:
        """Attributes of personas that its templates use by name."""
        return self._library.attributes

    def bind(
        self, acts: Iterable[Act], frames: Iterable[str | Frame] = (), conditions: Conditions | None = None
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
        conditions : Conditions, optional
            What the study says of all prompts; default what :class:`Conditions` does.

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
        return _bind(self._origin, *_plain(acts, frames), conditions or Conditions())

    def check(
        self, acts: Iterable[Act], frames: Iterable[str | Frame] = (), conditions: Conditions | None = None
    ) -> None:
        """Render what a run uses in a few cases with sample values, and check the required parts.

        That is the system message, the templates of its acts, and the frames: delimiters stand in pairs, what is
        inserted stands between its own, cues stand where they belong, and conditions make a difference.

        Parameters
        ----------
        acts, frames, conditions
            As for :meth:`bind`.

        Raises
        ------
        SpecError
            At the first thing that fails, is missing, out of place, ambiguous or without effect.
        """
        plain = _plain(acts, frames)
        check_use(self.bind(*plain, conditions), *plain, conditions or Conditions())

    def check_effects(
        self, acts: Iterable[Act], values: Mapping[str, Iterable[Any]], conditions: Conditions | None = None
    ) -> None:
        """Check that the values of conditions each give a text of their own.

        Parameters
        ----------
        acts : iterable of Act
            The acts of the run; without one that writes, its words do not matter.
        values : mapping of str to iterable
            The values of each condition, by its name, or by that of another field of :class:`Addressee`.
        conditions
            As for :meth:`bind`; all but the one that is varied.

        Raises
        ------
        SpecError
            At the first two values that give the same system message, or of `post_words` the same request of a post.
        """
        check_effects(self, _plain(acts)[0], values, conditions or Conditions())

    def for_agent(self, told: Addressee) -> AgentPrompts:
        """The prompts of one agent.

        Parameters
        ----------
        told : Addressee
            The agent, and the conditions of its prompts.

        Returns
        -------
        AgentPrompts
            Immutable; the system message is rendered once, here.

        Raises
        ------
        SpecError
            If the opinion is off the scale, the persona has no attributes where only these are shown, the brief names a
            text that the pack does not have, or the system template fails for this persona.
        """
        shown, claim, scale, defang = told.conditions.persona_shown, told.claim, told.scale, self._wording.defang
        player = BARE if told.persona is None or shown == "none" else told.persona
        role_play = player != BARE
        attributes = player.attributes if shown in ("full", "demographics") else {}
        if shown == "demographics" and role_play and not attributes:
            raise SpecError(
                f"persona_shown is 'demographics', but persona {player.name!r} has no attributes; "
                "give it some, or show full, name or none"
            )
        texts = {
            "name": player.name if shown in ("full", "name") else "",
            "role": told.role,
            "claim": "" if claim is None else claim.text,
            "question": "" if claim is None else claim.question,
            "background": player.background if shown == "full" else "",
            "initial_belief": scale.label(told.opinion) if role_play and told.opinion is not None else "",
            **texts_for(told, self.named, self._wording.place),
        }
        safe = {
            name: defang(text) if isinstance(text, str) else tuple(map(defang, text)) for name, text in texts.items()
        }
        room, posts = told.answer_words, told.conditions.post_words
        variables = {
            **dict(told.conditions),
            "post_words": posts if posts is None or room is None else min(posts, room),
            "answer_words": room,
            "report_words": None if room is None else min(_REPORT_WORDS, room),
            **safe,
            "role_play": role_play,
            "truth": claim is not None and claim.accepted is not None,
            "reads": told.reads,
            "writes": told.writes,
            "scale": tuple((point, defang(label)) for point, label in zip(scale.points, scale.labels, strict=True)),
            "attributes": {defang(key): defang(value) for key, value in attributes.items()},
        }
        system = render(self._wording.place, self._wording.frame("system"), variables)
        name = str(safe["name"])
        return AgentPrompts(
            name,
            told.agent,
            name if told.brief.author is None else told.brief.author,
            self._wording,
            MappingProxyType(variables),
            ChatMessage("system", system) if system else None,
        )


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
        labels["marker"] = named.file.automatic.marker
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
    shown = MappingProxyType(frames), MappingProxyType(tasks)
    stated = {name: library.sources[f"{name}{SUFFIX}"].names.keys() for name in tasks}
    wording = Wording(place, *shown, marks, defang, declared.language, stated=MappingProxyType(stated))
    return PromptPack(declared.name, contents, marks, MappingProxyType({}), named, origin, library, wording)


def _plain(acts: Iterable[Act], frames: Iterable[str | Frame] = ()) -> tuple[tuple[Act, ...], tuple[str | Frame, ...]]:
    """Acts that ask, without what prompts do not use of them, and frames, each once."""
    plain = ({each.name: getattr(act, each.name) for each in fields(Act)} for act in acts if act.template)
    told = (Act(**{**each, "values": dict(each["values"])}) for each in plain)
    return tuple(dict.fromkeys(told)), tuple(dict.fromkeys(frames))


@lru_cache(maxsize=512)
def _bind(
    origin: _Origin, acts: tuple[Act, ...], frames: tuple[str | Frame, ...], conditions: Conditions
) -> PromptPack:
    """Bind a pack; cached, since every run of a sweep binds the same one."""
    pack = _build(origin)
    wording, texts = bind_acts(pack._library, bind_frames(pack._library, pack._wording, frames), acts)
    bound = replace(pack, texts=MappingProxyType(texts), _wording=wording)
    if pack.contents not in map(_shipped, names("pack")):
        check_use(bound, acts, frames, conditions)
    elif own := [act for act in acts if act.name in texts]:
        check_use(bound, own, (), conditions)
    return bound


@cache
def _shipped(name: str) -> Mapping[str, str]:
    """The files of a built-in pack. Its tests check it, so that no process spends time on that."""
    return pack_files(name)


def _read_declaration(place: str, contents: Mapping[str, str]) -> _Declaration:
    """The declarations in the pack's ``pack.yaml``."""
    where = f"{place}/{_DECLARATION}"
    if _DECLARATION not in contents:
        raise SpecError(f"{where}: no such file; it must declare name, delimiters and cues")
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
            raise SpecError(f"{where}: cues.{task}: is not a task; a cue names a task template or reflect")
    return declared


def _check_files(place: str, contents: Mapping[str, str], marks: Marks) -> None:
    """Check that the system message and a template for every cue exist, and that every file is known."""
    system = f"system{SUFFIX}"
    if system not in contents:
        raise SpecError(f"{place}/{system}: no such template; every pack needs it")
    named = {f"{name}{SUFFIX}" for name in marks.cues}
    for file in sorted(named - contents.keys()):
        raise SpecError(f"{place}/{file}: no such template, though {_DECLARATION} has a cue for it")
    known = named | {f"{name}{SUFFIX}" for name in FRAMES}
    for file in contents:
        partial = file.startswith(("_", PERSON)) and file.endswith(SUFFIX)
        if file not in known and file not in (_DECLARATION, _TEXTS) and not partial:
            raise SpecError(
                f"{place}/{file}: unknown file; a pack contains {_DECLARATION}, {', '.join(sorted(known))}, templates "
                f"to include named _*{SUFFIX}, questions for persons in {PERSON}*{SUFFIX}, further tasks that have a "
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
        raise SpecError(f"{path}: not a text file; it contains a zero byte")
    return text.replace("\r\n", "\n")
