"""The templates of a pack: their valid variables, their references, and their rendering."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from itertools import islice
from pathlib import PurePath
from traceback import extract_tb
from types import MappingProxyType
from typing import Any

from jinja2 import FunctionLoader, StrictUndefined, Template, TemplateSyntaxError, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.meta import find_referenced_templates, find_undeclared_variables
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment

from opinionsim.errors import SpecError
from opinionsim.prompts._prompt_settings import VARIABLES

SUFFIX = ".j2"

#: Templates that are no tasks; every pack has the first, and those of the others that its memories need.
FRAMES = ("system", "event", "reflect", "recollection", "again")
#: Tasks of the package's own acts, which declare all task variables and no values.
TASKS = ("write", "review", "report", "probe", "self-report")

#: Characters that a template may make, in its text or on the way to it, beside those of the texts that it is given.
LONGEST = 1_000_000
#: The values that the template under way is given.
_given: ContextVar[Mapping[str, Any]] = ContextVar("given", default=MappingProxyType({}))
#: What a template may still do while it is rendered, one a character that it makes and `_STEP` a step; and how much.
_left: ContextVar[list[int] | None] = ContextVar("left", default=None)
_STEP, _MOST_WORK = 100, 100 * LONGEST
#: Pieces that are taken from a template before their lengths are looked at.
_AT_ONCE = 64
_TOO_LONG = f"a template may make {LONGEST:,} characters at most"
#: Filters and methods that fill up to a width, those that write numbers into a pattern, and those that repeat a text.
_WIDE = frozenset(
    "batch center expandtabs indent ljust rjust round slice tojson truncate wordwrap zfill".split()  # noqa: SIM905
)
_PATTERNED = frozenset(("format", "format_map"))
#: A width in a pattern: of seven digits, or one that is an argument.
_WIDTH, _GIVEN_WIDTH = re.compile(r"\d{7}"), re.compile(r"%[^a-zA-Z%]*\*|\{[^{}]*\{")

_ANY = frozenset(variable for group in VARIABLES.values() for variable in group)


def _location(place: str, file: str, line: int | None = None) -> str:
    """Place of a template in errors; only files of a pack are placed in the pack."""
    where = f"{place}/{file}" if PurePath(file).suffix == SUFFIX else file
    return f"{where}:{line}" if line else where


def render(place: str, template: Template, context: Mapping[str, Any]) -> str:
    """Render a template; any exception inside it becomes an error about the template.

    Raises
    ------
    SpecError
        If rendering fails; the message names pack, file and line.
    """
    try:
        _given.set(context)
        _left.set([_MOST_WORK])
        return template.render(context).strip()
    except Exception as error:  # a template is a user's program: any exception may come out of it
        own = str(template.name)
        files = [(frame.filename, frame.lineno) for frame in extract_tb(error.__traceback__)]
        known = (f for f in reversed(files) if f[0] == own or PurePath(f[0]).suffix == SUFFIX)
        where = _location(place, *next(known, (own, None)))
        raise SpecError(f"{where}: the template cannot be rendered: {error or type(error).__name__}") from None


@dataclass(frozen=True, slots=True)
class Source:
    """The references of a template.

    Attributes
    ----------
    file : str
        Its name in errors.
    names : mapping of str to int
        Undefined variables in all its branches, with the line of the first mention.
    shares : frozenset of str
        Files that see its variables: those it includes, extends, or imports with context.
    attributes : frozenset of str
        Attributes of personas that it asks for by name.
    """

    file: str
    names: Mapping[str, int]
    shares: frozenset[str]
    attributes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Library:
    """All templates of a pack, compiled.

    Attributes
    ----------
    place : str
        What errors call the pack.
    sources : mapping of str to Source
        By file.
    templates : mapping of str to Template
        By name, without those that are only included.
    """

    place: str
    sources: Mapping[str, Source]
    templates: Mapping[str, Template]
    _environment: ImmutableSandboxedEnvironment

    @classmethod
    def of(cls, place: str, contents: Mapping[str, str], defang: Callable[[str], str]) -> Library:
        """Compile the templates of a pack.

        Parameters
        ----------
        place : str
            What errors call the pack.
        contents : mapping of str to str
            File name to text.
        defang : callable
            Makes a text safe to insert.

        Raises
        ------
        SpecError
            If one is no valid template, or refers to a file that is not there.
        """
        environment = _environment(contents, defang)
        files = tuple(name for name in contents if name.endswith(SUFFIX))
        sources = {file: _read(environment, place, file, contents[file], files) for file in files}
        loaded = {file: _compiled(place, file, partial(environment.get_template, file)) for file in files}
        templates = {file.removesuffix(SUFFIX): found for file, found in loaded.items() if not file.startswith("_")}
        return cls(place, MappingProxyType(sources), MappingProxyType(templates), environment)

    def of_text(self, file: str, text: str) -> tuple[Template, Source]:
        """Compile a template that is no file of the pack, and may include files of the pack.

        Parameters
        ----------
        file : str
            Its name in errors.
        text : str
            The template.

        Raises
        ------
        SpecError
            If it is no valid template, or refers to a file that the pack does not have.
        """
        environment = self._environment
        source = _read(environment, self.place, file, text, self.sources)
        code = _compiled(self.place, file, partial(environment.compile, text, file, file))
        return _quick(Template.from_code(environment, code, environment.make_globals(None))), source

    def reached(self, sources: Iterable[Source]) -> dict[str, Source]:
        """Files that see the variables of given templates, directly or through other files, without these templates."""
        found: dict[str, Source] = {}
        left = [file for source in sources for file in source.shares]
        while left:
            file = left.pop()
            if file not in found:
                found[file] = self.sources[file]
                left.extend(found[file].shares)
        return found

    @property
    def attributes(self) -> frozenset[str]:
        """Attributes of personas that some template asks for by name."""
        return frozenset(name for source in self.sources.values() for name in source.attributes)


class _CheckedJoins(CodeGenerator):
    """Compiles ``a ~ b`` to a call that a bound is kept on."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("environment.concat(map(str, (")
        for each in node.nodes:
            self.visit(each, frame)
            self.write(", ")
        self.write(")))")


class _Bounded(ImmutableSandboxedEnvironment):
    """An environment without access beyond data, in which no template makes a text longer than `LONGEST`.

    Raises
    ------
    OverflowError
        By a template that would; it is raised before the text is made.
    """

    intercepted_binops = frozenset(("*", "+", "%", "**"))
    code_generator_class = _CheckedJoins

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Jinja joins what a template, a macro or a block writes by this function.
        self.concat = _joined  # type: ignore[method-assign]
        self.filters |= {"counted": _counted}
        self.filters = {name: each if each is len else _bounded(name, each) for name, each in self.filters.items()}
        #: Templates by name: Jinja's own cache takes longer to make its keys than a short template to be rendered.
        self._found: dict[Any, Template] = {}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """The syntax tree of a template, whose loops are counted."""
        tree = super()._parse(source, name, filename)
        for loop in tree.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, "counted", [], [], None, None, lineno=loop.lineno)
        return tree

    def get_template(self, name: Any, parent: str | None = None, globals: Any = None) -> Template:
        """A template of the pack."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = _quick(super().get_template(name, parent, globals))
        return found

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """The value of an operator that might make much of little."""
        if operator == "*":
            text, times = (right, left) if isinstance(left, int) else (left, right)
            number = not isinstance(times, int) or isinstance(text, int | float)
            _require(number or _within(_weight(text) * times))
        elif operator == "+":
            _require(isinstance(left, int | float) or _within(_weight(left) + _weight(right)))
        elif operator == "%" and isinstance(left, str):
            _check_arguments("format", (left, *(right if isinstance(right, tuple) else (right,))))
        elif operator == "**" and isinstance(left, int) and isinstance(right, int):
            _require(_within(left.bit_length() * right))
        return super().call_binop(context, operator, left, right)

    def call(self, context: Any, called: Any, /, *arguments: Any, **named: Any) -> Any:
        """The value of a function or method."""
        _spend(_STEP)
        if type(called) is Macro:  # what it writes is joined under the bound, and it runs in this sandbox itself
            named.pop("_loop_vars", None)
            named.pop("_block_vars", None)
            odd = named or called.catch_kwargs or called.catch_varargs or called.caller or context.eval_ctx.autoescape
            if not odd and len(arguments) == len(called.arguments):  # nothing to find out, which takes half of a call
                return called._func(*arguments)
            return called(context.eval_ctx, *arguments, **named)
        # The sandbox wraps the method `format` of a text.
        name, owner = getattr(called, "__name__", ""), getattr(getattr(called, "__wrapped__", called), "__self__", None)
        if isinstance(owner, str | bytes):
            _check_arguments(name, (owner, *arguments, *named.values()))
        return _checked(super().call(context, called, *arguments, **named))


def _bounded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose arguments and value are checked."""

    @wraps(function)
    def checked(*arguments: Any, **named: Any) -> Any:
        # The context or environment, which some filters get first, is no value.
        values = arguments[1:] if hasattr(function, "jinja_pass_arg") else arguments
        _check_arguments(name, (*values, *named.values()))
        return _checked(function(*arguments, **named))

    return checked


def _check_arguments(name: str, values: tuple[Any, ...]) -> None:
    """Refuse the arguments of a filter or method that would make too long a text; the first is what it works on."""
    subject, *others = values or ("",)
    numbers = [value for value in others if isinstance(value, int)]
    if name in _PATTERNED:
        _require(not _WIDTH.search(str(subject)))
    if name in _WIDE or (name in _PATTERNED and _GIVEN_WIDTH.search(str(subject))):
        _require(all(_within(abs(number) + 1) for number in numbers))
    elif name == "replace" and len(others) > 1:
        old, new = str(others[0]), str(others[1])
        _require(_within(len(str(subject)) + str(subject).count(old) * len(new)))
    elif name == "join":
        between, pieces = (subject, others[0]) if isinstance(subject, str) and others else ("", subject)
        if isinstance(pieces, list | tuple):
            gap = between or (others[0] if others and isinstance(others[0], str) else "")
            _require(_within(_weight(pieces) + len(str(gap)) * len(pieces)))


def _weight(value: Any) -> int:
    """Characters of a text, or of the texts in a list or mapping, and one for any other item."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        value = [*value.values()]
    return sum(max(_weight(each), 1) for each in value) if isinstance(value, list | tuple) else 1


def _checked(value: Any) -> Any:
    _require(not isinstance(value, str) or _within(len(value)))
    return value


def _joined(pieces: Iterable[str]) -> str:
    """All pieces as one text."""
    left = iter(pieces)
    taken = pieces if isinstance(pieces, list) else list(islice(left, _AT_ONCE))
    length = sum(map(len, taken))
    if length > LONGEST:
        _require(_within(length))
    # Most templates, and all macros, are done by now.
    while len(taken) >= _AT_ONCE and taken is not pieces and (some := list(islice(left, _AT_ONCE))):
        length += sum(map(len, some))
        _require(_within(length))
        taken += some
    return "".join(taken)


def _counted(values: Iterable[Any]) -> Iterator[Any]:
    """The values of a loop, each of which is a step."""
    for each in values:
        _spend(_STEP)
        yield each


def _spend(work: int) -> None:
    left = _left.get()
    if left is not None:
        left[0] -= work
        if left[0] < 0:
            raise OverflowError(f"a template may take {_MOST_WORK // _STEP:,} steps at most, and fewer that make texts")


def _within(characters: int) -> bool:
    _spend(min(characters, LONGEST))
    # Few templates make so much that what they are given has to be measured.
    return characters <= LONGEST or characters <= LONGEST + _weight([*_given.get().values()])


def _require(fits: bool) -> None:
    if not fits:
        raise OverflowError(_TOO_LONG)


def _environment(contents: Mapping[str, str], defang: Callable[[str], str]) -> ImmutableSandboxedEnvironment:
    """The Jinja environment of a pack: no other files, no attributes beyond data, no randomness."""

    def source(name: str) -> tuple[str, str, Callable[[], bool]] | None:
        return (contents[name], name, lambda: True) if name in contents else None

    environment = _Bounded(
        loader=FunctionLoader(source),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
    )
    environment.filters["ordinal"] = _ordinal
    environment.filters["heading"] = lambda name: defang(_heading(name))
    # A prompt is a function of its values.
    del environment.filters["random"], environment.globals["lipsum"]
    return environment


def _ordinal(number: int) -> str:
    """English ordinal in digits: 1st, 2nd, 3rd, 4th, 11th, 21st, 112th."""
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def _heading(name: str) -> str:
    """The name of an attribute as a heading: ``political_leaning`` becomes ``Political leaning``."""
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


def _quick(template: Template) -> Template:
    """The same template with plain globals: Jinja keeps a chain of mappings, which every rendering walks."""
    template.globals = dict(template.globals)
    return template


def _compiled(place: str, file: str, compiling: Callable[[], Any]) -> Any:
    """The result of parsing or compiling; an invalid template is an error that names its line."""
    try:
        return compiling()
    except TemplateSyntaxError as error:
        raise SpecError(f"{_location(place, file, error.lineno)}: not a valid template: {error.message}") from None


def _read(environment: ImmutableSandboxedEnvironment, place: str, file: str, text: str, files: Iterable[str]) -> Source:
    """The references of one template."""
    tree: nodes.Template = _compiled(place, file, partial(environment.parse, text, file, file))
    for other in find_referenced_templates(tree):
        if other is not None and other not in files:
            raise SpecError(f"{_location(place, file)}: refers to {other!r}, which is not a template of this pack")
    lines: dict[str, int] = {}
    for node in tree.find_all(nodes.Name):
        lines.setdefault(node.name, node.lineno)
    # The analysis generates code, and so meets errors that parsing does not, such as an unknown filter.
    names: set[str] = _compiled(place, file, partial(find_undeclared_variables, tree))
    return Source(
        file,
        MappingProxyType({name: lines.get(name, 1) for name in sorted(names)}),
        frozenset(_shares(tree)),
        frozenset(_attributes_named(tree)),
    )


def _shares(tree: nodes.Template) -> set[str]:
    """Files that see the variables of a template."""
    found: set[str] = set()
    for node in tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)):
        if getattr(node, "with_context", True):
            found.update(file for file in find_referenced_templates(nodes.Template([node])) if file is not None)
    return found


def _attributes_named(tree: nodes.Template) -> set[str]:
    """Keys of ``attributes`` that a template spells out."""
    keys = {node.attr for node in tree.find_all(nodes.Getattr) if _is_attributes(node.node)}
    for item in tree.find_all(nodes.Getitem):
        if _is_attributes(item.node) and isinstance(item.arg, nodes.Const) and isinstance(item.arg.value, str):
            keys.add(item.arg.value)
    return keys - set(dir(dict))


def _is_attributes(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Name) and node.name == "attributes"


def check_names(library: Library) -> None:
    """Check the variables of every template, as far as they are known before the acts are.

    Parameters
    ----------
    library : Library
        The templates of a pack.

    Raises
    ------
    SpecError
        At the first name that no act can declare; the message names file, line and valid names.
    """
    later = _own_files(library)
    for file, source in library.sources.items():
        if file not in later:
            _check_valid(library.place, source, _valid(file))


def _own_files(library: Library) -> set[str]:
    """Files that only task templates for users' acts include: they may use variables that acts declare."""
    own = {name: library.sources[f"{name}{SUFFIX}"] for name in library.templates if name not in (*FRAMES, *TASKS)}
    rest = [library.sources[f"{name}{SUFFIX}"] for name in library.templates if name not in own]
    reached = library.reached(own.values()).keys() | {source.file for source in own.values()}
    return reached - library.reached(rest).keys()


def _valid(file: str) -> frozenset[str]:
    """Variables that a template may use; an included file may use any."""
    name = file.removesuffix(SUFFIX)
    return _ANY if file.startswith("_") else frozenset(VARIABLES[name if name in VARIABLES else "task"])


def check_own_names(library: Library, source: Source, declared: frozenset[str], owner: str) -> None:
    """Check the variables of the template of an act or of a memory's own, and of the files it includes.

    Parameters
    ----------
    library : Library
        The templates of the pack.
    source : Source
        References of the template.
    declared : frozenset of str
        Variables and values that the act or the memory declares.
    owner : str
        What errors call it.

    Raises
    ------
    SpecError
        At a variable that is not declared.
    """
    whose = f", as {owner} declares"
    _check_valid(library.place, source, declared, whose)
    # Frames may include the file too, and no act can declare their variables.
    frames = _ANY.difference(VARIABLES["task"])
    for shared in library.reached([source]).values():
        _check_valid(library.place, shared, declared, whose, passing=frames)


def _check_valid(
    place: str, source: Source, valid: frozenset[str], whose: str = "", passing: frozenset[str] = frozenset()
) -> None:
    """Check the variables of one template.

    Parameters
    ----------
    place : str
        What errors call the pack.
    source : Source
        References of the template.
    valid : frozenset of str
        Variables it may use.
    whose : str
        Origin of the valid variables, for errors.
    passing : frozenset of str
        Further variables that are accepted.

    Raises
    ------
    SpecError
        At a variable that is in neither.
    """
    for name, line in source.names.items():
        if name not in valid and name not in passing:
            where = _location(place, source.file, line)
            raise SpecError(
                f"{where}: undefined variable {name!r}; valid here{whose}: {', '.join(sorted(valid)) or 'none'}"
            )
