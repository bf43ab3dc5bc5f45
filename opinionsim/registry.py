"""The parts that a specification can name: built-in parts by name, parts of users by import path.

A part is a class or a function, marked with :func:`part`, which enters it into this registry. Its kind says what it is
for. Specifications, lists, the JSON Schema and the documentation read the registry.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from opinionsim.documents import DocumentModel
from opinionsim.errors import Interrupt, OpinionSimError, SpecError, is_interrupt, meant
from opinionsim.provenance import code_of
from opinionsim.redaction import redacted, secret_in

_Target = TypeVar("_Target")

#: An import path: a module, a colon, and a name inside it.
_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
#: A name that is given to a part.
_NAME = re.compile(r"[A-Za-z0-9][\w-]*")


class _Kind(NamedTuple):
    """A kind of part."""

    words: str
    """Name of the kind in a sentence."""
    home: str
    """The subpackage whose modules hold the built-in parts."""
    methods: tuple[tuple[str, ...], ...]
    """Groups of methods; a part must have at least one method of each group."""
    given: tuple[str, ...] = ()
    """Arguments that the package itself passes; they are no options."""
    reserved: tuple[str, ...] = ()
    """Names that mean something else."""
    declared: str = ""
    """Class of which a part may be an object, which declares it; otherwise parts are classes and functions."""


#: The kinds of part.
KINDS: Mapping[str, _Kind] = {
    "interaction": _Kind("interaction", "opinionsim.schedules", (("schedule",), ("model_fields",))),
    "network": _Kind("network", "opinionsim.networks", (("build",), ("model_fields",))),
    "memory": _Kind(
        "memory",
        "opinionsim.memory",
        (("prompt",), ("remember",), ("templates",), ("calls_per_event",)),
        ("prompts", "token_budget", "start", "past", "kept", "leads"),
    ),
    "classifier": _Kind("classifier", "opinionsim.classifiers", (("classify", "rate"),), ("scale",)),
    "chat_model": _Kind(
        "chat model",
        "opinionsim.llm",
        (("invoke", "__call__"),),
        ("temperature", "max_tokens"),
        ("scripted", "human", "replay", "equation"),
    ),
    "selector": _Kind("selector", "opinionsim.schedules", (("__call__",),), ("texts",)),
    "metric": _Kind(
        "metric", "opinionsim.metrics", (("__call__",),), ("opinions", "range", "network", "groups", "initial", "truth")
    ),
    "figure": _Kind("figure", "opinionsim.plots", (("draw",),), ("results",)),
    "classic_model": _Kind("classic model", "opinionsim.classic", (("update",),), declared="ClassicModel"),
    "table": _Kind("table", "opinionsim.analysis", (("__call__",),), ("results",)),
    "record": _Kind("page of a run", "opinionsim.watching", (("__call__",),), ("results",)),
    "command": _Kind("command", "opinionsim.cli", ()),
}


@dataclass(frozen=True, eq=False)
class Part:
    """A class or function that a specification can name.

    Attributes
    ----------
    kind : str
        One of :data:`KINDS`.
    name : str
        Name in specifications: that of a built-in part, or an import path ``package.module:Name``.
    target : object
        The class or function.
    version : int or str
        Raised by the author when the behaviour changes; enters identities where it is not 0.
    outside : bool
        Whether the part is not one of this package.
    importable : bool
        Whether other processes can import the part by its name.
    code : str
        Code of a part of the user's own at the time it was marked, as :func:`opinionsim.provenance.code_of` gives it.
    """

    kind: str
    name: str
    target: Any
    version: int | str = 0
    outside: bool = False
    importable: bool = True
    code: str = ""

    @property
    def identity(self) -> str:
        """The name as identities hold it: with the version where that is not 0."""
        return f"{self.name}@{self.version}" if self.version else self.name

    def arguments(self) -> Mapping[str, inspect.Parameter]:
        """Parameters of the target, by name."""
        try:
            return inspect.signature(self.target).parameters
        except (TypeError, ValueError):
            return {}

    def fields(self) -> list[str]:
        """Names of the fields or options that a specification may give."""
        if isinstance(self.target, type) and issubclass(self.target, BaseModel):
            return list(self.target.model_fields)
        return [name for name in self.arguments() if name not in KINDS[self.kind].given]

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Refuse unknown options and missing required ones.

        Parameters
        ----------
        options : mapping
            As a specification gives them.

        Raises
        ------
        SpecError
            Naming the option.
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
            If a part of the user's own fails; names the part and the exception.
        """
        with blamed(self):
            return self.target(*arguments, **given, **options)


#: Parts by kind and name, and by ``id`` of the marked object: an attribute would be inherited by subclasses.
_BY_NAME: dict[str, dict[str, Part]] = {kind: {} for kind in KINDS}
_BY_TARGET: dict[int, Part] = {}


# -- what code of the user's own raises ------------------------------------------------------------------------------

#: What such code may raise, a request to end the process included. It ends no more than its run, and :func:`raised`
#: puts it into words.
RAISED = (Exception, SystemExit, KeyboardInterrupt)


def raised(error: BaseException, *, placed: bool = True) -> str:
    """An exception of code of the user's own in words: its kind, its message without credentials, and its part.

    Parameters
    ----------
    error : BaseException
        One of :data:`RAISED`.
    placed : bool
        Whether the part is named.

    Raises
    ------
    Interrupt
        Where the exception is, or came of, a Ctrl-C.
    """
    if is_interrupt(error):
        raise Interrupt from error
    found = part_at(error) if placed else None
    said = redacted(f"{type(error).__name__}: {error}".removesuffix(": "))
    return said if found is None else f"{said} (in {found[0].name}, {found[1]})"


def part_at(error: BaseException) -> tuple[Part, str] | None:
    """The part of the user's own that an exception came from, with file and line; None where it came from none."""
    return part_among(walk_tb(error.__traceback__))


def part_among(calls: Iterable[tuple[FrameType, int]]) -> tuple[Part, str] | None:
    """The part of the user's own that the innermost of some calls belongs to, with file and line; None without one.

    Parameters
    ----------
    calls : iterable of (frame, int)
        Each call with its line, outermost first.
    """
    found = None
    for frame, line in calls:
        for each in (each for each in _BY_TARGET.values() if each.outside):
            # A module may hold several parts, and functions that are none of them.
            its_own = f"{frame.f_code.co_qualname}.".startswith(f"{each.target.__qualname__}.")
            if frame.f_globals.get("__name__") == each.target.__module__ and (its_own or found is None):
                found = each, f"{frame.f_code.co_filename}:{line}"
    return found


def ordinary(error: BaseException) -> BaseException:
    """The error of one run for what code of the user's own raised to end the process; any other as it is."""
    return SpecError(f"code of your own raised {raised(error)}") if isinstance(error, RAISED[1:]) else error


@contextmanager
def blamed(part: Part) -> Iterator[None]:
    """Name the part of the user's own in whatever it raises; errors of this package pass unchanged."""
    try:
        yield
    except OpinionSimError:
        raise
    except RAISED as error:
        if not part.outside:
            raise
        raise SpecError(f"{KINDS[part.kind].words} {part.name} failed with {raised(error)}") from error


def part(kind: str, *, name: str = "", version: int | str = 0) -> Callable[[_Target], _Target]:
    """Mark a class or function as a part that specifications can name.

    Parameters
    ----------
    kind : {"interaction", "network", "memory", "classifier", "chat_model", "selector", "metric"}
        What it is for.
    name : str
        Name of a part that no other process can import: one in a notebook, in a script that is run, or inside a
        function. Any other part is named by its import path.
    version : int or str
        Raise it when the behaviour of the part changes: it distinguishes runs and opinions.

    Returns
    -------
    callable
        A decorator that returns its argument unchanged.

    Raises
    ------
    SpecError
        If the kind is unknown; what is marked is neither a class nor a function, or is marked as another kind; the
        name is that of a built-in part or no word; a part that cannot be imported lacks a name or a version, or a part
        that can be imported has a name.

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

    def mark(target: _Target) -> _Target:
        _enter(kind, target, name, version)
        return target

    return mark


def _enter(kind: str, target: Any, name: str, version: int | str) -> None:
    declared = KINDS[kind].declared and type(target).__name__ == KINDS[kind].declared
    if not declared and not inspect.isclass(target) and not inspect.isfunction(inspect.unwrap(target)):
        raise SpecError(
            f"part: only a class or a function can be marked, and this is an object of the class "
            f"{type(target).__name__}; mark a function that returns it"
        )
    module = target.home if declared else target.__module__
    path = f"{module}:{target.name.replace('-', '_') if declared else target.__qualname__}"
    outside = not f"{module}.".startswith(f"{__package__}.")
    importable = module != "__main__" and bool(_PATH.fullmatch(path))
    if declared and not outside:
        name = target.name
    marked = _BY_TARGET.get(id(target))
    if marked is not None and marked.kind != kind:
        raise SpecError(f"part: {path} is marked as a part of kind {marked.kind!r} already")
    if outside and not importable and not (name and version):
        raise SpecError(
            f"part: {path} cannot be imported by another process; give it a name and a version: "
            f"@opinionsim.part({kind!r}, name=..., version=1)"
        )
    if outside and importable and name:
        raise SpecError(
            f"part: {path} is named by its import path, under which other processes find it; leave out name"
        )
    if outside and name and not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise SpecError(f"part: name must be a word of letters, digits and hyphens; got {name!r}")
    if outside and name and (name in names(kind) or name in KINDS[kind].reserved):
        raise SpecError(f"part: {name!r} is the name of a built-in {KINDS[kind].words}; give {path} another name")
    entered = Part(
        kind,
        name or path,
        target,
        version,
        outside,
        importable,
        (code_of(target) if hasattr(target, "__qualname__") else "") if outside else "",
    )
    _BY_NAME[kind][entered.name] = entered
    _BY_TARGET[id(target)] = entered
    if isinstance(target, type) and issubclass(target, KindModel):
        target.named(entered.name)


@cache
def _tables() -> dict[str, dict[str, str]]:
    """The module of each built-in part, by kind and name: what the folders that are there say of themselves."""
    found: dict[str, dict[str, str]] = {}
    root = Path(__file__).parent
    for folder in sorted(each.name for each in os.scandir(root) if each.is_dir()):
        try:
            text = (root / folder / "parts.toml").read_text(encoding="utf-8")
        except FileNotFoundError:
            continue
        for kind, parts in tomllib.loads(text).items():
            found.setdefault(kind, {}).update(
                {name: f"{__package__}.{folder}.{module}" for name, module in parts.items()}
            )
    return found


def names(kind: str) -> tuple[str, ...]:
    """Names of the built-in parts of a kind, none of which is loaded."""
    return tuple(_tables().get(kind, ()))


def _built_in(kind: str, name: str) -> Part | None:
    """A built-in part, whose module alone is loaded; None without one of that name."""
    if name not in _BY_NAME[kind] and (module := _tables().get(kind, {}).get(name)):
        import_module(module)
    found = _BY_NAME[kind].get(name)
    return None if found is None or found.outside else found


def built_in(kind: str) -> dict[str, Part]:
    """The built-in parts of a kind by name."""
    return {name: each for name in names(kind) if (each := _built_in(kind, name))}


class Catalogue(Mapping[str, Any]):
    """The built-in parts of a kind by name, each loaded when it is asked for.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    made : callable
        Makes what is listed of a part.
    """

    def __init__(self, kind: str, made: Callable[[Part], Any] = lambda part: part.target) -> None:
        self._kind, self._made = kind, cache(made)

    def __getitem__(self, name: str) -> Any:
        found = _built_in(self._kind, name) if isinstance(name, str) else None
        if found is None:
            raise KeyError(name)
        return self._made(found)

    def __contains__(self, name: object) -> bool:
        return name in _tables().get(self._kind, {})

    def __iter__(self) -> Iterator[str]:
        return iter(names(self._kind))

    def __len__(self) -> int:
        return len(names(self._kind))


def is_path(reference: str) -> bool:
    """Whether a text has the form of an import path, ``package.module:Name``."""
    return bool(_PATH.fullmatch(reference))


def known(kind: str, name: str) -> bool:
    """Whether a part of this name is marked in this process; imports nothing."""
    return name in _BY_NAME[kind]


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
        own = names(kind)
        raise SpecError(
            f"unknown {words} {reference!r}{meant(reference, own)}; valid: {', '.join(sorted(own))}, or the import "
            "path of one of your own, package.module:Name"
        )
    found = found or _imported(kind, reference)
    for group in KINDS[kind].methods if found.outside else ():
        if not any(hasattr(found.target, method) for method in group):
            raise SpecError(f"{words} {reference} has no {' and no '.join(group)}, which every {words} needs")
    return found


def _imported(kind: str, reference: str) -> Part:
    """The marked object at an import path."""
    module, _, qualname = reference.partition(":")
    try:
        # What a module prints is no part of a command's output.
        with redirect_stdout(sys.stderr):
            target: Any = import_module(module)
    except RAISED as error:
        raise SpecError(f"{reference}: cannot import {module!r}: {raised(error)}") from error
    for name in qualname.split("."):
        try:
            target = getattr(target, name)
        except AttributeError:
            raise SpecError(f"{reference}: the module {module!r} has no {qualname}") from None
    found = _BY_TARGET.get(id(target))
    if found is None or found.target is not target:
        raise SpecError(f"{reference} is not marked as a part; only what is marked @opinionsim.part({kind!r}) is used")
    if found.kind != kind:
        raise SpecError(
            f"{reference} is marked as a part of kind {found.kind!r}; one of kind {kind!r} is expected here"
        )
    _BY_NAME[kind].setdefault(reference, found)
    return found


def name_of(value: Any) -> Any:
    """The name of a marked object; a plain value as it is.

    Raises
    ------
    SpecError
        If a class, function or chat model is not marked.
    """
    if value is None or isinstance(value, (str, int, float, bool, Mapping, list, tuple)):
        return value
    found = _BY_TARGET.get(id(value))
    if found is not None and found.target is value:
        if (latest := _BY_NAME[found.kind][found.name]) is not found and latest.target is not value:
            raise SpecError(f"{found.name} is the name of another part by now; mark this one under another name")
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
    """The docstring of an object taken apart: its first line, the paragraphs after it, and its items by name.

    An item is ``- Name: text``, whose further lines are indented; several may have one name. Line ends are spaces.
    """
    # Without docstrings (python -OO) classes would show texts that Python or their bases make.
    text = "" if sys.flags.optimize > 1 else inspect.getdoc(target) or ""
    first, _, rest = text.strip().partition("\n")
    items: dict[str, list[str]] = {}
    for name, text in _ITEM.findall(rest):
        items.setdefault(name, []).append(" ".join(text.split()))
    return first, " ".join(_ITEM.sub("", rest).split()), items


# -- in specifications -----------------------------------------------------------------------------------------------


#: JSON Schema of a mapping whose kind is a part of the user's own.
_OUTSIDE = {
    "type": "object",
    "properties": {"kind": {"type": "string", "pattern": f"^{_PATH.pattern}$"}},
    "required": ["kind"],
}


class KindModel(DocumentModel):
    """Base of interactions and networks: a mapping with `kind` and the fields of that kind."""

    part_kind: ClassVar[str]

    kind: str = ""
    """Name of a built-in kind, or import path of one of your own, package.module:Name."""

    @classmethod
    def named(cls, name: str) -> None:
        """Make `name` the kind of all objects of this class."""
        cls.model_fields["kind"].default = name
        cls.__pydantic_complete__ and cls.model_rebuild(force=True)

    @classmethod
    def form_of(cls, value: Any) -> type[BaseModel]:
        """The class that the kind of a mapping names; this class where the kind is not known."""
        kind = value.get("kind") if isinstance(value, Mapping) else None
        try:
            found = find(cls.part_kind, kind) if isinstance(kind, str) and not cls.kind_name() else None
        except SpecError:
            return cls
        return cls if found is None else found.target

    @classmethod
    def kind_name(cls) -> str:
        """The kind of all objects of this class; empty for a base class."""
        return str(cls.model_fields["kind"].default)

    @classmethod
    def read(cls, value: Any) -> Any:
        """Turn a mapping of a specification into an object of the class that its `kind` names."""
        if isinstance(value, cls) or not isinstance(value, Mapping):
            return value
        kind = value.get("kind")
        if not isinstance(kind, str):
            valid = ", ".join(names(cls.part_kind))
            raise _at_kind(f"kind is required and missing; valid: {valid}, or the import path of one of your own", kind)
        try:
            found = find(cls.part_kind, kind)
        except SpecError as error:
            raise _at_kind(str(error), kind) from error
        if not (isinstance(found.target, type) and issubclass(found.target, cls)):
            home = KINDS[cls.part_kind].home
            raise _at_kind(f"{kind} must be a class that inherits {home}.{cls.__name__}", kind)
        return found.target.model_validate_json(json.dumps({**value, "kind": found.name}))

    def stated(self, *without: str) -> dict[str, Any]:
        """The kind and the fields that differ from their defaults, as JSON values."""
        fields = self.model_dump(mode="json", exclude_defaults=True, exclude=set(without))
        return {**fields, "kind": self.kind}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        if not cls.kind_name():
            kinds = [each.target for each in built_in(cls.part_kind).values()]
            forms = [each.__get_pydantic_json_schema__(each.__pydantic_core_schema__, handler) for each in kinds]
            return {"anyOf": [*forms, _OUTSIDE]}
        form = super().__get_pydantic_json_schema__(core, handler)
        schema = handler.resolve_ref_schema(form)
        schema["properties"]["kind"] = {"const": cls.kind_name(), "title": "Kind", "type": "string"}
        schema["required"] = ["kind", *(field for field in schema.get("required", ()) if field != "kind")]
        return form


def _at_kind(problem: str, kind: Any) -> ValidationError:
    """An error about the field `kind` of a mapping."""
    error = PydanticCustomError("value_error", "{error}", {"error": problem})
    return ValidationError.from_exception_data("kind", [{"type": error, "loc": ("kind",), "input": kind}])


def _no_secrets(options: dict[str, Any]) -> dict[str, Any]:
    if problem := secret_in(options):
        raise ValueError(problem)
    return options


Options = Annotated[dict[str, Any], AfterValidator(_no_secrets)]


class NamedPart(DocumentModel):
    """A part by name, with its options; a name alone stands for a part without options."""

    name: str
    """Name of a built-in part, or import path of one of your own, package.module:Name."""
    options: Options = Field(default_factory=dict)
    """Options of the part."""

    def found(self, kind: str) -> Part:
        """The named part, once its options are checked; raises as :func:`find` and `Part.check_options` do."""
        part = find(kind, self.name)
        part.check_options(self.options)
        return part

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, super().__get_pydantic_json_schema__(core, handler)]}

    @model_serializer(mode="wrap")
    def _plain(self, handler: Callable[[Any], dict[str, Any]]) -> Any:
        return handler(self) if self.options else self.name
