"""The binding of a pack to the acts of a run: the template of each act, and the check of its variables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType

from jinja2 import Template

from opinionsim.errors import SpecError
from opinionsim.prompts._act import Act
from opinionsim.prompts._agent_prompts import Frame, Wording
from opinionsim.prompts._prompt_settings import TASK_VARIABLES
from opinionsim.prompts._templates import SUFFIX, Library, check_own_names

#: Beginning of the names of templates for persons at seats, who are shown the messages beside the text.
PERSON = "person-"


def bind_frames(library: Library, wording: Wording, frames: Iterable[str | Frame]) -> Wording:
    """Give memories their templates: the pack's, otherwise those that they provide.

    Raises
    ------
    SpecError
        If a template is missing or uses a variable that the memory does not declare; names the first one.
    """
    own: dict[str, Template] = {}
    for frame in frames:
        if isinstance(frame, str):
            wording.frame(frame)
        elif frame.name in wording.tasks:
            own[frame.name] = wording.tasks[frame.name]
        elif frame.name not in wording.frames:
            own[frame.name], source = library.of_text(f"template {frame.name} of the memory", frame.text)
            check_own_names(library, source, frozenset(("name", *frame.variables)), "the memory")
    return replace(wording, frames=MappingProxyType({**wording.frames, **own}))


def bind_acts(library: Library, wording: Wording, acts: Iterable[Act]) -> tuple[Wording, dict[str, str]]:
    """Give every act its template: the pack's, or else its own text.

    Parameters
    ----------
    library : Library
        The templates of the pack.
    wording : Wording
        The pack's, unbound.
    acts : iterable of Act
        The acts of a run.

    Returns
    -------
    wording : Wording
        Bound.
    texts : dict of str to str
        The acts' own texts that are used, by act, with the prefix ``person-`` for texts for people.

    Raises
    ------
    SpecError
        If an act declares or uses a variable that is not valid, or has no template.
    """
    own: dict[tuple[str, str], Template] = {}
    texts: dict[str, str] = {}
    for act in acts:
        _check_declared(act)
        if act.template in wording.tasks or act.text is None:
            wording.task(act)
            source = library.sources[f"{act.template}{SUFFIX}"]
        else:
            template, source = library.of_text(f"act {act.name}", act.text)
            name = f"{PERSON if act.template.startswith(PERSON) else ''}{act.name}"
            if texts.setdefault(name, act.text) != act.text:
                raise SpecError(f"act {act.name!r} is given twice, with different texts")
            own[act.name, act.text] = template
        check_own_names(library, source, frozenset((*_variables(act), *act.values)), f"act {act.name!r}")
    return replace(wording, own=MappingProxyType(own)), texts


def _variables(act: Act) -> tuple[str, ...]:
    """The task variables that a template of an act may use."""
    return TASK_VARIABLES if act.variables is None else act.variables


def _check_declared(act: Act) -> None:
    """Check that an act declares variables that exist, and texts as values under other names."""
    catalogue = TASK_VARIABLES
    if isinstance(act.variables, str):
        raise SpecError(f"act {act.name!r}: variables must be a sequence of names; got {act.variables!r}")
    for name, value in act.values.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise SpecError(f"act {act.name!r}: values must be texts by name; got {value!r} for {name!r}")
    for name in _variables(act):
        if name not in catalogue:
            raise SpecError(f"act {act.name!r}: there is no variable {name!r}; valid: {', '.join(catalogue)}")
    for name in act.values:
        if name in catalogue:
            raise SpecError(
                f"act {act.name!r}: values must not contain {name!r}, which is a variable of all tasks; choose a name "
                f"other than {', '.join(catalogue)}"
            )
