"""The named texts of a pack that address one agent: persona template, instructions, and what a moderator is told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import show_value
from opinionsim.prompts._named_texts import Texts, fill, pieces

#: Placeholders of the texts.
_PERSONA, _RESPONSES, _TASK, _VALUES = "persona", "previous_responses", "task", "values"
#: A placeholder with the one full stop behind it.
_STOPPED = re.compile(r"(\$\{(\w+)\})\.(?!\.)")


@dataclass(frozen=True)
class Brief:
    """How an agent is addressed, as far as its persona and task do not say.

    Attributes
    ----------
    system : str or None
        The whole system message, in which ${task} stands for the task; None for that of persona and template.
    template : str or None
        Persona template: a name of the pack, or a text that holds ${persona}.
    instructions : str or None
        Instructions on received messages: a name of the pack, or a text that holds ${previous_responses}.
    persona : str or None
        For a moderator: a name of the pack, or a text, in the place of a system message.
    values : str or None
        For a moderator: the values by which alone it decides.
    without : tuple of str
        Ideals of deliberation that are left out.
    author : str or None
        The name under which others are shown its messages; None for that of its persona.
    """

    system: str | None = None
    template: str | None = None
    instructions: str | None = None
    persona: str | None = None
    values: str | None = None
    without: tuple[str, ...] = ()
    author: str | None = None


@dataclass(frozen=True)
class Told:
    """The texts of a brief, resolved.

    Attributes
    ----------
    system : str
        The whole system message; empty where template and persona make it.
    frame : tuple of str
        The persona template, split where the persona stands; empty for a pack without named texts.
    instructions : tuple of str
        The instructions, split where received messages stand; empty for a pack without named texts.
    automatic : str
        The request for a moderator's instructions; empty for a pack without named texts.
    knows_task : bool
        Whether the system message of a moderator states its task.
    """

    system: str = ""
    frame: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    automatic: str = ""
    knows_task: bool = False


def told_by(brief: Brief, texts: Texts | None, role: str, task: str, place: str, *, topic: bool = False) -> Told:
    """Resolve a brief.

    Parameters
    ----------
    brief : Brief
        The brief.
    texts : Texts or None
        The named texts of the pack; None where it has none.
    role : str
        The agent's role: a moderator has instructions of its own.
    task : str
        The agent's task.
    place : str
        Name of the pack in errors.
    topic : bool
        Whether there is a topic, which stands for the task where there is none.

    Raises
    ------
    SpecError
        If the pack does not have a text that the brief names, or has none at all, or a text states a task and there is
        none.
    """
    if texts is None:
        for field in ("template", "instructions", "persona", "values", "without"):
            if given := getattr(brief, field):
                raise SpecError(f"{place} has no texts.yaml, so that {field} {given!r} has no effect")
        return Told("" if brief.system is None else _filled(brief.system, {_TASK: task}))
    values = {_TASK: task or (texts.discussion if topic else "")}
    moderates = role != "participant"
    template = brief.template or "default"
    instructions = brief.instructions or ("default" if brief.values is None else "verdict")
    held = {ideal for given in (template, instructions, brief.persona or "") for ideal in texts.ideals_of(given)}
    for ideal in brief.without:
        if ideal not in held:
            raise SpecError(f"without: no text of this agent has the ideal {ideal!r}; valid: {_listed(held)}")

    def without(given: str) -> list[str]:
        return [ideal for ideal in brief.without if ideal in texts.ideals_of(given)]

    system = brief.system or ""
    if brief.persona is not None:
        system = texts.moderator(brief.persona, without(brief.persona))
    if brief.values is not None:
        # One pass over both: values may name ${task} or not, and are themselves never expanded.
        values, system = {**values, _VALUES: brief.values}, texts.values
    instruct = texts.moderation if moderates else texts.instructions
    wanted = instruct(instructions, without(instructions))
    frame = texts.persona(template, without(template))
    return Told(
        _filled(system, values),
        _split(frame, _PERSONA, values),
        _split(wanted, _RESPONSES, values),
        fill(texts.automatic, values),
        moderates and f"${{{_TASK}}}" in system,
    )


def _filled(template: str, values: Mapping[str, str]) -> str:
    """A template with its values; the task, where it holds one, must not be blank.

    The full stop behind a placeholder is left out where the value ends a sentence itself.
    """
    if not values[_TASK].strip() and f"${{{_TASK}}}" in template:
        raise SpecError(f"task: is needed and missing: the text {show_value(template)} holds ${{{_TASK}}}")
    ended = {name for name, value in values.items() if value.rstrip().endswith((".", "!", "?"))}
    return fill(_STOPPED.sub(lambda found: found[1] if found[2] in ended else found[0], template), values)


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _split(template: str, name: str, values: Mapping[str, str]) -> tuple[str, ...]:
    """The texts between the occurrences of a placeholder, with values in the place of the other ones."""
    return tuple(_filled(piece, values).strip() for piece in pieces(template, name))
