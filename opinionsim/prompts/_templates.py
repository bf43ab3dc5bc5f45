"""The templates of a pack: their valid variables, their references, and their rendering."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from traceback import extract_tb
from types import MappingProxyType
from typing import Any

from jinja2 import FunctionLoader, StrictUndefined, Template, TemplateSyntaxError, nodes
from jinja2.meta import find_referenced_templates, find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from opinionsim.errors import SpecError

SUFFIX = ".j2"

#: Templates that are no tasks; every pack has the first, and those of the others that its memories need.
FRAMES = ("system", "event", "reflect", "recollection")
#: Tasks of the package's own acts, which declare all task variables and no values.
TASKS = ("write", "review", "report", "probe", "self-report")

_SHARED = (
    "name", "role", "role_play", "claim", "task", "masked", "confirmation_bias", "world", "post_words",
    "reads", "writes", "scale",
)  # fmt: skip
_SCENE = (
    *_SHARED, "act", "received", "labelling", "previous", "previous_reads", "posts_written", "posts_seen",
    "reports_given",
)  # fmt: skip

#: Variables of each template; ``task`` stands for all task templates.
VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "system": (*_SHARED, "attributes", "background", "initial_belief", "belief_tense"),
        "task": _SCENE,
        "event": (*_SCENE, "case", "condition", "text"),
        "reflect": ("name", "experience", "past"),
        "recollection": ("name", "text"),
    }
)

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
        loaded = {file: _quick(_compiled(place, file, partial(environment.get_template, file))) for file in files}
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


def _environment(contents: Mapping[str, str], defang: Callable[[str], str]) -> ImmutableSandboxedEnvironment:
    """The Jinja environment of a pack: no other files, no attributes beyond data, no randomness."""

    def source(name: str) -> tuple[str, str, Callable[[], bool]] | None:
        return (contents[name], name, lambda: True) if name in contents else None

    environment = ImmutableSandboxedEnvironment(
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
            raise SpecError(f"{_location(place, file)}: refers to {other!r}, which is no template of this pack")
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


def undecided(library: Library) -> frozenset[str]:
    """Task templates that use, themselves or in files they include, unlisted variables, which acts must declare."""
    return frozenset(
        name
        for name, source in _own_tasks(library).items()
        if source.names.keys() - set(VARIABLES["task"])
        or any(shared.names.keys() - _ANY for shared in library.reached([source]).values())
    )


def _own_tasks(library: Library) -> dict[str, Source]:
    """Task templates for users' acts, by name."""
    return {name: library.sources[f"{name}{SUFFIX}"] for name in library.templates if name not in (*FRAMES, *TASKS)}


def _own_files(library: Library) -> set[str]:
    """Files that only task templates for users' acts include: they may use variables that acts declare."""
    own = _own_tasks(library)
    rest = [library.sources[f"{name}{SUFFIX}"] for name in library.templates if name not in own]
    reached = library.reached(own.values()).keys() | {source.file for source in own.values()}
    return reached - library.reached(rest).keys()


def _valid(file: str) -> frozenset[str]:
    """Variables that a template may use; an included file may use any."""
    name = file.removesuffix(SUFFIX)
    return _ANY if file.startswith("_") else frozenset(VARIABLES[name if name in VARIABLES else "task"])


def check_act_names(library: Library, source: Source, declared: frozenset[str], act: str) -> None:
    """Check the variables of the template of an act, and of the files it includes.

    Parameters
    ----------
    library : Library
        The templates of the pack.
    source : Source
        References of the act's template.
    declared : frozenset of str
        Variables and values that the act declares.
    act : str
        Its name.

    Raises
    ------
    SpecError
        At a variable that the act does not declare.
    """
    whose = f", as act {act!r} declares"
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
