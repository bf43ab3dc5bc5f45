"""A prompt pack: a folder of templates with a declaration of its delimiters and cues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from jinja2 import FunctionLoader, StrictUndefined, Template, TemplateSyntaxError, nodes
from jinja2.meta import find_referenced_templates, find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import Field

from opinionsim.documents import DocumentModel, parse_value, validate
from opinionsim.errors import SpecError
from opinionsim.messages import ChatMessage
from opinionsim.opinions import OpinionScale
from opinionsim.personas import BARE, Persona
from opinionsim.prompts._agent import AgentPrompts, ConfirmationBias, PersonaShown, World, render
from opinionsim.prompts._check import check_pack
from opinionsim.prompts._marks import Marks
from opinionsim.topics import Claim

__all__ = ["VARIABLES", "PromptPack", "load_pack"]

_DECLARATION = "pack.yaml"
_SUFFIX = ".j2"

#: Task templates every pack has: those of the acts in the dyadic family. A cue declares further ones.
_TASKS = ("write", "review", "report", "probe")
#: Templates every pack has beside its tasks.
_FRAME = ("system", "event", "reflect", "recollection")

_SHARED = ("name", "role_play", "claim", "masked", "confirmation_bias", "world", "interactive", "scale")
_SCENE = (
    *_SHARED,
    "act",
    "received",
    "labelling",
    "previous",
    "previous_reads",
    "posts_written",
    "posts_seen",
    "reports_given",
)

#: Variables of each template; ``task`` stands for all task templates.
VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "system": (*_SHARED, "attributes", "background", "initial_belief"),
        "task": _SCENE,
        "event": (*_SCENE, "case", "text"),
        "reflect": ("name", "experience", "past"),
        "recollection": ("name", "text"),
    }
)


class _Delimiters(DocumentModel):
    """Opening and closing text of each kind of block."""

    persona: tuple[str, str]
    history: tuple[str, str]
    post: tuple[str, str]
    claim: tuple[str, str]
    bias: tuple[str, str]


class _Declaration(DocumentModel):
    """What ``pack.yaml`` says."""

    name: str = Field(min_length=1)
    description: str = ""
    delimiters: _Delimiters
    cues: dict[str, str]


def _ordinal(number: int) -> str:
    """English ordinal in digits: 1st, 2nd, 3rd, 4th, 11th, 21st, 112th."""
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def _heading(name: str) -> str:
    """The name of an attribute as a heading: ``political_leaning`` becomes ``Political leaning``."""
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


def _environment(contents: Mapping[str, str], defang: Callable[[str], str]) -> ImmutableSandboxedEnvironment:
    """Where templates run: no file beyond the pack, no attribute beyond data, no chance."""

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


@dataclass(frozen=True)
class PromptPack:
    """The wording of every prompt.

    Attributes
    ----------
    name : str
        As its ``pack.yaml`` states it.
    contents : mapping of str to str
        File name to text: ``pack.yaml`` and all templates. Enough to build the pack again.
    marks : Marks
        Delimiters and cues.

    Notes
    -----
    Inserted values are data: they are never expanded as templates, and a delimiter that occurs in one
    gets a space after its first character, so that no text can open or close a block.
    """

    name: str
    contents: Mapping[str, str]
    marks: Marks
    _place: str = field(repr=False, compare=False)
    _templates: Mapping[str, Template] = field(repr=False, compare=False)
    _defang: Callable[[str], str] = field(repr=False, compare=False)

    @classmethod
    def from_contents(cls, name: str, contents: Mapping[str, str]) -> PromptPack:
        """Build and check a pack.

        Every template is rendered in every case with sample values, under all conditions.

        Parameters
        ----------
        name : str
            What errors call it: its folder, or the name of a built-in one.
        contents : mapping of str to str
            File name to text.

        Raises
        ------
        SpecError
            If a template, variable, delimiter or cue is missing, unknown, ambiguous or out of place.
        """
        return _build(name, tuple(sorted(contents.items())))

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the task templates, sorted."""
        return tuple(sorted(self.marks.cues.keys() - {"reflect"}))

    def for_agent(
        self,
        *,
        persona: Persona | None,
        opinion: int | None,
        claim: Claim,
        scale: OpinionScale,
        persona_shown: PersonaShown,
        masked: bool,
        confirmation_bias: ConfirmationBias,
        world: World,
        interactive: bool = True,
    ) -> AgentPrompts:
        """The prompts of one agent.

        Parameters
        ----------
        persona : Persona or None
            Who the agent plays. None and ``BARE`` play nobody, whatever `persona_shown` says.
        opinion : int or None
            The opinion assigned at the start, a point of `scale`, told in its verbal anchor wherever
            there is role-play; None tells none.
        claim : Claim
            What the opinions are about.
        scale : OpinionScale
            Where the anchors come from.
        persona_shown : {"full", "demographics", "name", "none"}
            Name, attributes and background; attributes only; the name only; or no role-play at all.
        masked : bool
            Call the claim "Theory XYZ" after its first mention in a message (A5).
        confirmation_bias : {"none", "weak", "strong"}
            Which instruction is given (A6).
        world : {"closed", "open"}
            Whether prompts shut out all other sources of information (A6).
        interactive : bool
            Whether strangers' posts may ever reach the agent; False leaves them out of the system
            message and of the closed world, as in the no-interaction controls (A12).

        Returns
        -------
        AgentPrompts
            Immutable; the system message is rendered once, here.

        Raises
        ------
        SpecError
            If a condition is unknown, the opinion is off the scale, nothing of the persona is left to
            show, or the system template fails for this persona.
        """
        _check_choice("persona_shown", persona_shown, PersonaShown)
        _check_choice("confirmation_bias", confirmation_bias, ConfirmationBias)
        _check_choice("world", world, World)
        player = BARE if persona is None or persona_shown == "none" else persona
        role_play = player != BARE
        defang = self._defang
        name = defang(player.name) if persona_shown in ("full", "name") else ""
        shared = {
            "name": name,
            "role_play": role_play,
            "claim": defang(claim.text),
            "masked": masked,
            "confirmation_bias": confirmation_bias,
            "world": world,
            "interactive": interactive,
            "scale": tuple((point, defang(label)) for point, label in zip(scale.points, scale.labels, strict=True)),
        }
        belief = scale.label(opinion) if role_play and opinion is not None else ""
        shown = {**_shown(player, persona_shown, defang), "initial_belief": defang(belief)}
        system = render(self._place, self._templates["system"], {**shared, **shown})
        return AgentPrompts(
            name,
            self._place,
            self._templates,
            frozenset(self.tasks),
            defang,
            MappingProxyType(shared),
            ChatMessage("system", system) if system else None,
        )


def _shown(player: Persona, persona_shown: PersonaShown, defang: Callable[[str], str]) -> dict[str, Any]:
    """What the system message may tell of a persona beside its name."""
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
def _build(name: str, items: tuple[tuple[str, str], ...]) -> PromptPack:
    """Build and check a pack; kept, for every run of a sweep builds the same one."""
    contents = MappingProxyType(dict(items))
    place = f"prompt pack {name}"
    declared = _read_declaration(place, contents)
    marks = Marks(**declared.delimiters.model_dump(), cues=MappingProxyType(dict(sorted(declared.cues.items()))))
    problem = marks.problem()
    if problem:
        raise SpecError(f"{place}/{_DECLARATION}: {problem}")
    _check_files(place, contents, marks)
    defang = marks.defanger()
    environment = _environment(contents, defang)
    mentioned = _check_templates(place, contents, environment, marks)
    loaded = {file: environment.get_template(file) for file in contents if file.endswith(_SUFFIX)}
    for template in loaded.values():
        # Every rendering walks the globals, which Jinja keeps as a chain of mappings: a plain one is far quicker.
        template.globals = dict(template.globals)
    templates = {file.removesuffix(_SUFFIX): template for file, template in loaded.items() if not file.startswith("_")}
    pack = PromptPack(declared.name, contents, marks, place, MappingProxyType(templates), defang)
    check_pack(pack, place, mentioned)
    return pack


def _read_declaration(place: str, contents: Mapping[str, str]) -> _Declaration:
    """What the pack's ``pack.yaml`` declares."""
    where = f"{place}/{_DECLARATION}"
    if _DECLARATION not in contents:
        raise SpecError(f"{where}: no such file; it declares name, delimiters and cues")
    value = parse_value(contents[_DECLARATION], where)
    if not isinstance(value, dict):
        raise SpecError(f"{where}: must be a mapping with the fields name, description, delimiters and cues")
    declared = validate(_Declaration, value, where)
    for task in (*_TASKS, "reflect"):
        if task not in declared.cues:
            raise SpecError(f"{where}: cues.{task}: missing; give a phrase that only that task's prompts contain")
    for task, cue in declared.cues.items():
        if not cue.strip():
            raise SpecError(f"{where}: cues.{task}: must be a phrase; got {cue!r}")
        if task in _FRAME and task != "reflect":
            raise SpecError(f"{where}: cues.{task}: is no task; a cue names a task template or reflect")
    return declared


def _check_files(place: str, contents: Mapping[str, str], marks: Marks) -> None:
    """Every template is there, and every file is known."""
    wanted = {f"{name}{_SUFFIX}" for name in (*_FRAME, *marks.cues)}
    for file in sorted(wanted - contents.keys()):
        raise SpecError(f"{place}/{file}: no such template; a pack needs {', '.join(sorted(wanted))}")
    for file in contents:
        partial = file.startswith("_") and file.endswith(_SUFFIX)
        if file not in wanted and file != _DECLARATION and not partial:
            raise SpecError(
                f"{place}/{file}: unknown file; a pack holds {_DECLARATION}, {', '.join(sorted(wanted))}, templates "
                f"to include named _*{_SUFFIX}, and further tasks that have a cue in {_DECLARATION}"
            )


def _check_templates(
    place: str, contents: Mapping[str, str], environment: ImmutableSandboxedEnvironment, marks: Marks
) -> frozenset[str]:
    """Compile every template, and check the names it uses in all its branches.

    Returns
    -------
    frozenset of str
        Attributes of personas that templates ask for by name.
    """
    mentioned: set[str] = set()
    for file in (name for name in contents if name.endswith(_SUFFIX)):
        try:
            tree = environment.parse(contents[file], file, file)
            environment.get_template(file)
        except TemplateSyntaxError as error:
            raise SpecError(f"{place}/{file}:{error.lineno}: not a valid template: {error.message}") from None
        valid = _variables(file, marks)
        for unknown in sorted(find_undeclared_variables(tree) - valid):
            line = next((node.lineno for node in tree.find_all(nodes.Name) if node.name == unknown), 1)
            raise SpecError(
                f"{place}/{file}:{line}: undefined variable {unknown!r}; valid here: {', '.join(sorted(valid))}"
            )
        for other in find_referenced_templates(tree):
            if other is not None and other not in contents:
                raise SpecError(f"{place}/{file}: refers to {other!r}, which is no template of this pack")
        mentioned.update(_attributes_named(tree))
    return frozenset(mentioned)


def _variables(file: str, marks: Marks) -> set[str]:
    """Variables a template may use; one to include may use any."""
    name = file.removesuffix(_SUFFIX)
    if file.startswith("_"):
        return {variable for group in VARIABLES.values() for variable in group}
    return set(VARIABLES[name if name in VARIABLES else "task"])


def _attributes_named(tree: nodes.Template) -> set[str]:
    """Keys of ``attributes`` that a template spells out."""
    keys = {node.attr for node in tree.find_all(nodes.Getattr) if _is_attributes(node.node)}
    for item in tree.find_all(nodes.Getitem):
        if _is_attributes(item.node) and isinstance(item.arg, nodes.Const) and isinstance(item.arg.value, str):
            keys.add(item.arg.value)
    return keys - set(dir(dict))


def _is_attributes(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Name) and node.name == "attributes"


def load_pack(name_or_path: str | Path = "default") -> PromptPack:
    """Load a prompt pack.

    Parameters
    ----------
    name_or_path : str or Path
        ``"default"``, or a folder with a ``pack.yaml`` and templates. Names that start with a dot or end
        in ``~``, Markdown files, licences and subfolders are no part of a pack.

    Returns
    -------
    PromptPack
        Checked.

    Raises
    ------
    SpecError
        If there is no such folder, a file is not UTF-8 text, or :meth:`PromptPack.from_contents` refuses it.
    """
    folder = Path(__file__).parent / "default" if name_or_path == "default" else Path(name_or_path)
    if not folder.is_dir():
        raise SpecError(f"prompt pack {str(name_or_path)!r} is neither 'default' nor a folder")
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file() and _belongs(path.name))
        contents = {path.name: _read(path) for path in files}
    except OSError as error:
        raise SpecError(f"prompt pack {folder}: cannot be read: {error.strerror}") from None
    return PromptPack.from_contents(str(name_or_path), contents)


def _belongs(file: str) -> bool:
    return not (file.startswith((".", "LICENSE", "LICENCE")) or file.endswith(("~", ".md")))


def _read(path: Path) -> str:
    """Text of one file, with plain newlines."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError(f"{path}: not a text file; UTF-8 is expected") from None
    if "\0" in text:
        raise SpecError(f"{path}: not a text file; it holds a zero byte")
    return text.replace("\r\n", "\n")
