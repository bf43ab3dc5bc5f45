"""Named texts of a pack: persona templates, instructions, moderators and interviews of deliberation."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated

from pydantic import Field, StringConstraints

from opinionsim.errors import SpecError, meant
from opinionsim.foundation import documents

_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")
_NAME = re.compile(r"\w+")
_IDEALS = "ideals"

_Name = Annotated[str, Field(pattern=r"^\w+$")]
_Text = Annotated[str, Field(min_length=1)]
_Template = Annotated[str, StringConstraints(strip_whitespace=True)]


def fill(template: str, values: Mapping[str, str]) -> str:
    """A template with values instead of its placeholders.

    Parameters
    ----------
    template : str
        Text with placeholders such as ``${task}``: a name of letters, digits and underscores in braces after a dollar.
    values : mapping of str to str
        Name to value.

    Returns
    -------
    str
        The template, read once from beginning to end. A placeholder without a value stays unchanged, like all
        other text: there are no escapes, and nothing inside a value is read as a placeholder.
    """
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), template)


def pieces(template: str, name: str) -> tuple[str, ...]:
    """The texts between the occurrences of a placeholder: one text more than occurrences.

    ``value.join(pieces(template, name))`` is ``fill(template, {name: value})``.
    """
    return tuple(template.split(f"${{{name}}}"))


def placeholders(template: str) -> tuple[str, ...]:
    """Names of the placeholders of a template, each once, in order."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(template)))


class Ideal(documents.DocumentModel):
    """An ideal of deliberation as one line of a template (Plurals, table 2; B3)."""

    name: _Name
    """What `without` calls it."""
    line: _Text
    """The line; it holds no placeholder."""
    source: _Text
    """Work, and place in it."""


class Excluded(documents.DocumentModel):
    """An ideal that no template has."""

    name: _Text
    """The ideal, in the words of its source."""
    reason: _Text
    """Why it was left out."""
    source: _Text
    """Work, and place in it."""


class InterviewTexts(documents.DocumentModel):
    """The questions of an interview and the voice that answers them (B6)."""

    questions: Annotated[tuple[_Text, ...], Field(min_length=1)]
    """In the order in which they are asked, at least one."""
    words: int = Field(ge=1)
    """Most words of the answer to each."""
    voice: _Template
    """How the interviewee speaks; holds ``${seed}``, which stands for who that is."""


class _Automatic(documents.DocumentModel):
    marker: _Text
    """Words that a reply to `request` begins with."""
    request: _Template
    """Request for the instructions of a moderator; holds ``${task}`` and `marker`."""


class _File(documents.DocumentModel):
    """The contents of ``texts.yaml``, as written."""

    personas: dict[_Name, _Template]
    instructions: dict[_Name, _Template]
    moderators: dict[_Name, _Template]
    moderation: dict[_Name, _Template]
    automatic: _Automatic
    values: _Template
    """Request for a verdict on a task by a set of values; holds ``${values}``."""
    discussion: Annotated[_Template, Field(min_length=1)]
    """The value of ``${task}`` if there is a topic and no task."""
    ideals: dict[_Name, tuple[Ideal, ...]] = Field(default_factory=dict)
    """Wave to its ideals, in order."""
    excluded: tuple[Excluded, ...] = ()
    """Ideals that no template has."""
    interviews: dict[_Name, InterviewTexts] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Section:
    """What the templates of a section are called, the placeholder each must hold once, and others each may hold."""

    noun: str
    needed: str = ""
    others: tuple[str, ...] = ()

    @property
    def own_text(self) -> str:
        """The form of a text that can replace a name, in words."""
        return "a text" + (f" that holds ${{{self.needed}}}" if self.needed else "")


_SECTIONS: Mapping[str, _Section] = MappingProxyType(
    {
        "personas": _Section("persona template", "persona", ("task",)),
        "instructions": _Section("instructions", "previous_responses"),
        "moderators": _Section("moderator", others=("task",)),
        "moderation": _Section("instructions", "previous_responses"),
    }
)


@dataclass(frozen=True)
class Texts:
    """The named texts of a pack.

    Attributes
    ----------
    place : str
        Their origin, as errors name it.
    file : _File
        What ``texts.yaml`` has: personas, instructions, moderators and moderation by name, automatic, values,
        discussion, ideals by wave, excluded ideals, and interviews by name.

    Notes
    -----
    The methods :meth:`persona`, :meth:`instructions`, :meth:`moderator` and :meth:`moderation` take what a user gives:
    one word of letters, digits and underscores is the name of a template, anything else a text of the user's own. What
    they return still holds its placeholders, for :func:`fill` or :func:`pieces`. In a text of the user's own, the
    placeholder may stand without braces (``$previous_responses``).

    The templates of a wave, whose names end in its name, have the ideals of that wave: the line that holds
    ``${ideals}`` is repeated for each. `without` names ideals that are left out; the template is otherwise the same.
    """

    place: str
    file: _File

    @classmethod
    def parse(cls, source: str | documents.Document, name: str = "texts.yaml") -> Texts:
        """Named texts from a document.

        Parameters
        ----------
        source : str or Document
            YAML text, or its document. Needed are the sections ``personas``, ``instructions``, ``moderators`` and
            ``moderation``, each with a ``default``, ``automatic``, ``values`` and ``discussion``; ``ideals``,
            ``excluded`` and ``interviews`` are not.
        name : str
            The file, as errors name it.

        Raises
        ------
        SpecError
            If a field is missing or unknown, or a template lacks a placeholder or contains an unknown one.
        """
        document = source if isinstance(source, documents.Document) else documents.parse_document(source, name)
        file = documents.validate(_File, document)
        if problems := list(_problems(file)):
            raise SpecError.joined(document.error(*each) for each in problems)
        return cls(name, file)

    def names(self, section: str) -> tuple[str, ...]:
        """Names in a section, in order: of templates, of the waves of ``ideals``, or of ``interviews``.

        Raises
        ------
        SpecError
            If there is no such section.
        """
        sections = (*_SECTIONS, _IDEALS, "interviews")
        return tuple(getattr(self.file, _one_of(section, sections, f"{self.place}: section")))

    def persona(self, given: str, without: Collection[str] = ()) -> str:
        """A persona template; contains ``${persona}``.

        Parameters
        ----------
        given : str
            Name of a template, or a text that holds ``${persona}``.
        without : collection of str
            Ideals to leave out of the template of a wave.

        Raises
        ------
        SpecError
            If the name is unknown, the text lacks its placeholder, or `without` names what the template does not have.
        """
        return self.template("personas", given, without)

    def instructions(self, given: str, without: Collection[str] = ()) -> str:
        """Instructions about previous responses; contains ``${previous_responses}``. See :meth:`persona`."""
        return self.template("instructions", given, without)

    def moderator(self, given: str, without: Collection[str] = ()) -> str:
        """The system text of a moderator; can contain ``${task}``. See :meth:`persona`."""
        return self.template("moderators", given, without)

    def moderation(self, given: str, without: Collection[str] = ()) -> str:
        """Moderators' instructions about responses; contains ``${previous_responses}``. See :meth:`persona`."""
        return self.template("moderation", given, without)

    def ideals_of(self, given: str) -> tuple[str, ...]:
        """Names of the ideals in a template of a wave; none for other templates and texts."""
        return tuple(ideal.name for ideal in self.file.ideals.get(_wave(given, self.file.ideals), ()))

    def interview(self, name: str) -> InterviewTexts:
        """The interview with a name.

        Raises
        ------
        SpecError
            If there is none.
        """
        return self.file.interviews[_one_of(name, self.file.interviews, f"{self.place}: interview")]

    def template(self, section: str, given: str, without: Collection[str] = ()) -> str:
        """A template by its name, with the ideals of its wave, or a text of the user's own."""
        kind = _SECTIONS[section]
        if not isinstance(given, str) or not given.strip():
            raise SpecError(f"must be a name or {kind.own_text}; got {documents.show_value(given)}", kind.noun)
        if not _NAME.fullmatch(given):
            return _own(kind, given, without)
        known = getattr(self.file, section)
        template = known[_one_of(given, known, kind.noun, f", or {kind.own_text}")]
        ideals = self.file.ideals.get(_wave(given, self.file.ideals), ()) if _IDEALS in placeholders(template) else ()
        left_out = _left_out(without, ideals, f"{kind.noun} {given!r}")
        return _with_lines(template, [ideal.line for ideal in ideals if ideal.name not in left_out])


def _own(kind: _Section, text: str, without: Collection[str]) -> str:
    """A text of the user's own, its placeholder in braces."""
    shown = documents.show_value(text)
    braced = text
    for name in filter(None, (kind.needed, *kind.others)):
        braced = re.sub(rf"\${name}\b", f"${{{name}}}", braced)
    if kind.needed and kind.needed not in placeholders(braced):
        raise SpecError(f"a text must contain ${{{kind.needed}}}; got {shown}", kind.noun)
    if _IDEALS in placeholders(braced):
        raise SpecError(f"${{{_IDEALS}}} has no meaning in your own text; got {shown}", kind.noun)
    _left_out(without, (), f"{kind.noun} {shown}")
    return braced


def _left_out(without: Collection[str], ideals: Iterable[Ideal], what: str) -> frozenset[str]:
    """The names of ideals to leave out, checked."""
    given = frozenset((without,) if isinstance(without, str) else without)
    known = [ideal.name for ideal in ideals]
    if given and not known:
        raise SpecError(f"has no ideals to leave out; got without={sorted(given)}", what)
    for name in sorted(given):
        _one_of(name, known, f"{what}: ideal")
    return given


def _one_of(given: str, known: Collection[str], what: str, otherwise: str = "") -> str:
    """A name that is known.

    Raises
    ------
    SpecError
        If it is not; the message says what is valid, `otherwise` included.
    """
    if given in known:
        return given
    wrong = f"{documents.show_value(given)}{meant(given, known)}"
    raise SpecError(f"unknown name {wrong}; valid: {', '.join(known) or 'none'}{otherwise}", what)


def _wave(name: str, waves: Iterable[str]) -> str:
    """The wave whose name ends the name of a template; empty where there is none."""
    return max((wave for wave in waves if f"_{name}".endswith(f"_{wave}")), key=len, default="")


def _with_lines(template: str, lines: list[str]) -> str:
    """A template whose line with the ideals is repeated for each of the given lines."""
    written: list[str] = []
    for line in template.split("\n"):
        around = pieces(line, _IDEALS)
        written += [each.join(around) for each in lines] if len(around) > 1 else [line]
    return "\n".join(written)


def _problems(file: _File) -> Iterator[tuple[documents.KeyPath, str]]:
    """What is wrong with texts whose fields are of the right form, each with its key path."""
    for section, kind in _SECTIONS.items():
        templates = getattr(file, section)
        if "default" not in templates:
            yield (section,), "needs a template called default"
        for name, text in templates.items():
            others = (*kind.others, _IDEALS) if _wave(name, file.ideals) else kind.others
            for problem in _holding(text, kind.needed, others):
                yield (section, name), problem
    for wave, ideals in file.ideals.items():
        for i, ideal in enumerate(ideals):
            if ideal.name in [each.name for each in ideals[:i]]:
                yield (_IDEALS, wave, i, "name"), f"duplicate {ideal.name!r}; names must be distinct within a wave"
            if not ideal.line.strip() or not documents.is_one_line(ideal.line) or placeholders(ideal.line):
                yield (
                    (_IDEALS, wave, i, "line"),
                    f"must be one line without placeholders; got {documents.show_value(ideal.line)}",
                )
    for name, interview in file.interviews.items():
        for problem in _holding(interview.voice, "seed"):
            yield ("interviews", name, "voice"), problem
    for problem in _holding(file.automatic.request, "task"):
        yield ("automatic", "request"), problem
    if file.automatic.marker not in file.automatic.request:
        yield ("automatic", "request"), f"must contain the marker {file.automatic.marker!r}; it does not"
    for problem in _holding(file.values, "values"):
        yield ("values",), problem


def _holding(text: str, needed: str, others: tuple[str, ...] = ()) -> Iterator[str]:
    """Problems of a template's placeholders: `needed` must occur once, `others` may, and nothing else."""
    if not text.strip():
        yield "must not be empty"
        return
    found = _PLACEHOLDER.findall(text)
    if needed and found.count(needed) != 1:
        yield f"must contain ${{{needed}}} exactly once; it occurs {found.count(needed)} times"
    if found.count(_IDEALS) > 1:
        yield f"can contain ${{{_IDEALS}}} only once; it occurs {found.count(_IDEALS)} times"
    valid = [name for name in (needed, *others) if name]
    for name in dict.fromkeys(found):
        if name == _IDEALS and name not in valid:
            yield f"holds ${{{_IDEALS}}}, but its name does not end in that of a wave under {_IDEALS}"
        elif name not in valid:
            listed = ", ".join(f"${{{each}}}" for each in valid) or "none"
            yield f"contains the unknown placeholder ${{{name}}}; valid: {listed}"
