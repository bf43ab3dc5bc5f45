"""Parts: their kinds, how they are marked, found and described, and the messages if one fails."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from traceback import walk_tb
from types import FrameType
from typing import Any, TypeVar

from opinionsim.errors import Interrupt, OpinionSimError, SpecError, in_short, is_interrupt, meant
from opinionsim.foundation.provenance import code_of, docstring
from opinionsim.foundation.redaction import redacted
from opinionsim.registry._own_folder import prepare_import
from opinionsim.registry._tables import AGENTS, KINDS, names, places

_Target = TypeVar("_Target")

#: An import path: a module, a colon, and a name inside it.
PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
#: Entry points of other distributions, ``KIND.NAME = package.module:Name``: names for their parts.
_ENTRIES = "opinionsim.parts"
#: A name that is given to a part.
_NAME = re.compile(r"[A-Za-z0-9][\w-]*")


@dataclass(frozen=True, eq=False)
class Part:
    """A class, function or declaration that a specification or a command can name.

    Attributes
    ----------
    kind : str
        One of :data:`KINDS`.
    name : str
        Name in specifications: that of a built-in part, or an import path ``package.module:Name``.
    target : object
        The class, function or declaration.
    version : int or str
        Raised by the author when the behaviour changes; enters identities where it is not 0.
    outside : bool
        Whether the part comes from outside this package.
    importable : bool
        Whether other processes can import the part by its name.
    code : str
        Code of a user's part when it was marked (:func:`opinionsim.foundation.provenance.code_of`).
    declared : mapping
        Its declarations about itself, by name.
    """

    kind: str
    name: str
    target: Any
    version: int | str = 0
    outside: bool = False
    importable: bool = True
    code: str = ""
    declared: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """The name as identities contain it, with the version if that is not 0."""
        return f"{self.name}@{self.version}" if self.version else self.name

    def shows(self, study: str) -> bool:
        """Whether a table or figure can show a kind of study."""
        return study in self.declared.get("studies", (AGENTS,))

    def arguments(self) -> Mapping[str, inspect.Parameter]:
        """Parameters of the target, by name."""
        try:
            return inspect.signature(self.target).parameters
        except (TypeError, ValueError):
            return {}

    def fields(self) -> list[str]:
        """Names of the valid fields or options."""
        if fields := getattr(self.target, "model_fields", None):
            return [name for name in fields if name != "kind"]
        return [name for name in self.arguments() if name not in KINDS[self.kind].given]

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Refuse unknown options and missing required ones.

        Parameters
        ----------
        options : mapping
            Options from a specification.

        Raises
        ------
        SpecError
            If an option is unknown or missing; names it.
        """
        parameters = self.arguments()
        kinds = inspect.Parameter
        own = {
            name: each
            for name, each in parameters.items()
            if name not in KINDS[self.kind].given and each.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
        }
        what = f"{KINDS[self.kind].words} {self.name!r}"
        unknown = sorted(set(options) - set(own))
        if unknown and not any(each.kind is kinds.VAR_KEYWORD for each in parameters.values()):
            raise SpecError(
                f"unknown option {', '.join(map(repr, unknown))} for {what}; valid options: {', '.join(own) or 'none'}"
            )
        missing = [name for name, each in own.items() if each.default is kinds.empty and name not in options]
        if missing:
            raise SpecError(f"{what} needs the option {', '.join(map(repr, missing))}")

    def build(self, *arguments: Any, options: Mapping[str, Any], **given: Any) -> Any:
        """Call the part with its options and return the result.

        Raises
        ------
        SpecError
            If a user's part fails; names the part and the exception.
        """
        with blamed(self):
            return self.target(*arguments, **given, **options)

    def expect(self, right: bool, wanted: str, found: Any) -> None:
        """Refuse the part's result unless it is valid, with a sentence that begins with the part."""
        if not right:
            raise SpecError(
                f"{KINDS[self.kind].words} {self.name} {wanted}; got {in_short(repr(found)):.80}", part=self.name
            )


#: What parts declare other than by a function: each with its form, and what it must be.
_FORMS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("metrics", "states"), ("true or false", lambda value: isinstance(value, bool))),
    "studies": ("a tuple of names", lambda value: isinstance(value, tuple)),
}
#: Parts by kind and name, and by ``id`` of the marked object: an attribute would be inherited by subclasses.
_BY_NAME: dict[str, dict[str, Part]] = {kind: {} for kind in KINDS}
_BY_TARGET: dict[int, Part] = {}


# -- what code of the user's own raises ------------------------------------------------------------------------------

#: What such code may raise, a request to end the process included. It ends no more than its run, and :func:`raised`
#: puts it into words.
RAISED = (Exception, SystemExit, KeyboardInterrupt)


def raised(error: BaseException, *, placed: bool = True) -> str:
    """An exception from user code in words: its kind, its message without credentials, and its part.

    Parameters
    ----------
    error : BaseException
        One of :data:`RAISED`.
    placed : bool
        Whether to name the part.

    Raises
    ------
    Interrupt
        If the exception is a Ctrl-C or was caused by one.
    """
    if is_interrupt(error):
        raise Interrupt from error
    found = part_at(error) if placed else None
    said = redacted(f"{type(error).__name__}: {error}".removesuffix(": "))
    return said if found is None else f"{said} (in {found[0].name}, {found[1]})"


def part_at(error: BaseException) -> tuple[Part, str] | None:
    """The user's part that an exception came from, with file and line; None if it came from none."""
    return part_among(walk_tb(error.__traceback__))


def part_among(calls: Iterable[tuple[FrameType, int]]) -> tuple[Part, str] | None:
    """The user's part that the innermost of some calls belongs to, with file and line; None if there is none.

    Parameters
    ----------
    calls : iterable of (frame, int)
        Each call with its line, outermost first.
    """
    found = None
    for frame, line in calls:
        for each in (each for each in _BY_TARGET.values() if each.outside):
            # A module may hold several parts, and functions that are none of them.
            own = getattr(each.target, "__qualname__", each.name)
            its_own = f"{frame.f_code.co_qualname}.".startswith(f"{own}.")
            if frame.f_globals.get("__name__") == each.target.__module__ and (its_own or found is None):
                found = each, f"{frame.f_code.co_filename}:{line}"
    return found


def ordinary(error: BaseException) -> BaseException:
    """The error of one run for an exception with which user code would end the process; others unchanged."""
    return SpecError(f"your code raised {raised(error)}") if isinstance(error, RAISED[1:]) else error


@contextmanager
def blamed(part: Part) -> Iterator[None]:
    """Name the user's part in every exception that it raises; errors of this package pass unchanged."""
    try:
        yield
    except OpinionSimError:
        raise
    except RAISED as error:
        if not part.outside:
            raise
        raise SpecError(f"{KINDS[part.kind].words} {part.name} failed with {raised(error)}", part=part.name) from error


def part(kind: str, *, name: str = "", version: int | str = 0, **declared: Any) -> Callable[[_Target], _Target]:
    """Mark a class, a function or a declaration as a part that specifications and commands can name.

    Parameters
    ----------
    kind : str
        The kind of part: one of :data:`KINDS`.
    name : str
        Name of a part that no other process can import, because it is in a notebook, in a script or inside a function.
        All other parts are named by their import path.
    version : int or str
        Raise it when you change the part's behaviour; it distinguishes runs and opinions.
    **declared
        Declarations of the part. A scripted answer: `states`, whether the task states the position instead of giving an
        occasion to change it. A figure: `numbers`, a function that takes settings of the figure and returns the frame
        of its numbers, or an object with that `frame`; and `shown`, a function of results that yields one
        :class:`opinionsim.plots.Shown` for each time that a report shows the figure. A table: `fits`, a function of the
        request that says whether the table applies to such results. Both: `studies`, the kinds of study that it can
        show, by default only ``agents``; and `metrics`, whether it shows metrics that a specification names, or
        contrasts of these.

    Returns
    -------
    callable
        A decorator that returns its argument unchanged.

    Raises
    ------
    SpecError
        If the kind is unknown, has no such declaration, or has one of another type; if the marked object is not a
        class, a function or an object with `name` and `home`, or is marked as another kind; if the name is not a word
        or belongs to a built-in part; if a part that cannot be imported lacks a name or a version, or a part that can
        be imported has a name.

    Examples
    --------
    >>> import opinionsim
    >>> @opinionsim.part("selector", name="most-words", version=1)
    ... def most_words(texts):
    ...     return max(range(len(texts)), key=lambda i: len(texts[i].split()))
    """
    if kind not in KINDS:
        raise SpecError(f"part: unknown kind {kind!r}; valid: {', '.join(KINDS)}")
    if isinstance(version, bool) or not isinstance(version, int | str):
        raise SpecError(f"part: version must be a whole number or a text; got {version!r}")
    if unknown := sorted(declared.keys() - {*KINDS[kind].declares}):
        valid = ", ".join(KINDS[kind].declares) or "nothing"
        raise SpecError(f"part: a {KINDS[kind].words} declares no {unknown[0]!r}; valid: {valid}")
    for each, value in declared.items():
        form, fits = _FORMS.get(each, ("a function", callable))
        if not fits(value):
            raise SpecError(f"part: {each!r} of a {KINDS[kind].words} must be {form}; got {value!r:.60}")

    def mark(target: _Target) -> _Target:
        _enter(kind, target, name, version, declared)
        return target

    return mark


def _enter(kind: str, target: Any, name: str, version: int | str, declared: Mapping[str, Any]) -> None:
    is_object = _is_declaration(target)
    if not is_object and not inspect.isclass(target) and not inspect.isfunction(inspect.unwrap(target)):
        raise SpecError(
            "part: only a class or a function can be a part, but this is an object of the class "
            f"{type(target).__name__}; mark a function that returns it"
        )
    module, place = (target.home, target.name) if is_object else (target.__module__, target.__qualname__)
    path = f"{module}:{place}"
    outside = not f"{module}.".startswith(f"{__package__.partition('.')[0]}.")
    importable = module != "__main__" and bool(PATH.fullmatch(path))
    if is_object and not outside:
        name = target.name
    marked = _BY_TARGET.get(id(target))
    if marked is not None and marked.kind != kind:
        raise SpecError(f"part: {path} is already marked as a part of kind {marked.kind!r}")
    if outside and not importable and not (name and version):
        raise SpecError(
            f"part: {path} is not importable by other processes; give it a name and a version: "
            f"@opinionsim.part({kind!r}, name=..., version=1)"
        )
    if outside and importable and name:
        raise SpecError(f"part: {path} takes its name from its import path; leave out name")
    if outside and name and not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise SpecError(f"part: name must be a word of letters, digits and hyphens; got {name!r}")
    if outside and name and (name in names(kind) or name in KINDS[kind].reserved):
        raise SpecError(f"part: {name!r} is the name of a built-in {KINDS[kind].words}; give {path} another name")
    code = code_of(target) if outside else ""
    entered = Part(kind, name or path, target, version, outside, importable, code, declared)
    _BY_NAME[kind][entered.name] = entered
    _BY_TARGET[id(target)] = entered
    if hasattr(target, "named"):
        # A mapping with a kind states it in all its objects.
        target.named(entered.name)


def _part_of(target: Any) -> Part | None:
    """The part that an object is; a declaration says its kind itself, and is marked where it is found."""
    if id(target) not in _BY_TARGET and _is_declaration(target) and hasattr(target, "part_kind"):
        _enter(target.part_kind, target, "", 0, {})
    return _BY_TARGET.get(id(target))


def _is_declaration(target: Any) -> bool:
    """Whether an object knows the module that makes it, and its name there."""
    return all(isinstance(getattr(target, each, None), str) for each in ("name", "home"))


def _built_in(kind: str, name: str) -> Part | None:
    """A built-in part, whose module alone is loaded; None without one of that name."""
    if name not in _BY_NAME[kind] and (place := places(kind).get(name)):
        for each in list(vars(place.imported(kind, name)).values()):
            _part_of(each)
    found = _BY_NAME[kind].get(name)
    return None if found is None or found.outside else found


def built_in(kind: str) -> dict[str, Part]:
    """The built-in parts of a kind by name."""
    return {name: each for name in names(kind) if (each := _built_in(kind, name))}


class Catalogue(Mapping[str, Any]):
    """The built-in parts of a kind by name, each loaded on first use.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    made : callable
        Makes the listed entry from a part.
    """

    def __init__(self, kind: str, made: Callable[[Part], Any] = lambda part: part.target) -> None:
        self._kind, self._made = kind, cache(made)

    def __getitem__(self, name: str) -> Any:
        found = _built_in(self._kind, name) if isinstance(name, str) else None
        if found is None:
            raise KeyError(name)
        return self._made(found)

    def __contains__(self, name: object) -> bool:
        return name in places(self._kind)

    def __iter__(self) -> Iterator[str]:
        return iter(names(self._kind))

    def __len__(self) -> int:
        return len(names(self._kind))


def is_path(reference: str) -> bool:
    """Whether a text has the form of an import path, ``package.module:Name``."""
    return bool(PATH.fullmatch(reference))


def known(kind: str, name: str) -> bool:
    """Whether a part of this name is marked in this process; imports nothing."""
    return name in _BY_NAME[kind]


def installed(kind: str, reference: str) -> bool:
    """Whether a part that a store names exists; it does not if its folder or package was removed.

    Nothing is imported; a user's part that is named by its path is assumed to exist.
    """
    if is_path(reference) or known(kind, reference) or reference in names(kind):
        return True
    return bool(entry_points(group=_ENTRIES, name=f"{kind}.{reference}"))


def loaded(kind: str, name: str) -> Any:
    """The part of this name that is built in or already marked in this process; None for any other."""
    found = _BY_NAME[kind].get(name) or _built_in(kind, name)
    return None if found is None else found.target


def find(kind: str, reference: str) -> Part:
    """The part that a specification names.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    reference : str
        A name, or an import path, whose module is imported.

    Raises
    ------
    SpecError
        If there is no such part, its module cannot be imported, it is not marked as that kind, or it lacks a method.
    """
    words = KINDS[kind].words
    found = _BY_NAME[kind].get(reference) or _built_in(kind, reference)
    if found is None and not is_path(reference):
        # To look through all distributions takes long.
        entries = entry_points(group=_ENTRIES, name=f"{kind}.{reference}")
        found = next((_imported(kind, each.value) for each in entries), None)
    if found is None and not is_path(reference):
        own = names(kind)
        raise SpecError(
            f"unknown {words} {reference!r}{meant(reference, own)}; valid: "
            f"{''.join(f'{each}, ' for each in sorted(own))}{'or ' * bool(own)}the import path of your own, "
            "package.module:Name"
        )
    found = found or _imported(kind, reference)
    for group in KINDS[kind].methods if found.outside else ():
        if not any(hasattr(found.target, method) for method in group):
            raise SpecError(f"{words} {reference} has no {' and no '.join(group)}, which every {words} needs")
    return found


def told_of(parts: Iterable[Part]) -> dict[str, dict[str, Any]]:
    """Entries of a manifest about the user's parts: kind, version, code, and whether they can be imported."""
    own = {part.name: part for part in parts if part.outside}
    return {
        name: {"kind": part.kind, "version": part.version, "code": part.code, "importable": part.importable}
        for name, part in sorted(own.items())
    }


def _imported(kind: str, reference: str) -> Part:
    """The marked object at an import path."""
    module, _, qualname = reference.partition(":")
    try:
        # What a module prints is no part of a command's output.
        with redirect_stdout(sys.stderr):
            prepare_import(module)
            target: Any = import_module(module)
    except RAISED as error:
        found_at = ""
        for frame, line in walk_tb(error.__traceback__):
            if frame.f_globals.get("__name__") == module:
                found_at = f" (in {frame.f_code.co_filename}:{line})"
        raise SpecError(f"{reference}: cannot import {module!r}: {raised(error, placed=False)}{found_at}") from error
    for name in qualname.split("."):
        try:
            target = getattr(target, name)
        except AttributeError:
            raise SpecError(f"{reference}: the module {module!r} has no {qualname}") from None
    found = _part_of(target)
    if found is None or found.target is not target:
        raise SpecError(f"{reference} is not marked as a part; mark it with @opinionsim.part({kind!r})")
    if found.kind != kind:
        raise SpecError(f"{reference} is a part of kind {found.kind!r}; expected one of kind {kind!r}")
    if not hasattr(target, "__qualname__") and found.name != reference:
        raise SpecError(f"{reference} is named {found.name}; a declaration must have its name in the module")
    _BY_NAME[kind].setdefault(reference, found)
    return found


def name_of(value: Any) -> Any:
    """The name of a marked object; a plain value is returned unchanged.

    Raises
    ------
    SpecError
        If a class, function or chat model is not marked.
    """
    if value is None or isinstance(value, (str, int, float, bool, Mapping, list, tuple)):
        return value
    found = _part_of(value)
    if found is not None and found.target is value:
        if (latest := _BY_NAME[found.kind][found.name]) is not found and latest.target is not value:
            raise SpecError(f"{found.name} is now the name of another part; give this one another name")
        return found.name
    if callable(value) or hasattr(value, "invoke"):
        raise SpecError(f"{value!r:.80} is not marked as a part; mark it with @opinionsim.part(KIND)")
    return value


#: An item of a docstring: ``- Name: text``, its further lines indented.
_ITEM = re.compile(r"^- ([A-Z]\w+): (.+(?:\n  .+)*)", re.MULTILINE)


def summary(part: Part) -> str:
    """The first line of a part's docstring."""
    return described(part.target)[0]


def described(target: Any) -> tuple[str, str, dict[str, list[str]]]:
    """The pieces of an object's docstring: its first line, the paragraphs after it, and its items by name.

    An item is ``- Name: text``, whose further lines are indented; several may have one name. Line ends are spaces.
    """
    first, _, rest = docstring(target).strip().partition("\n")
    items: dict[str, list[str]] = {}
    for name, text in _ITEM.findall(rest):
        items.setdefault(name, []).append(" ".join(text.split()))
    return first, " ".join(_ITEM.sub("", rest).split()), items
