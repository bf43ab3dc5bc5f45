"""Addressees of prompts, and the named texts that address them: persona template, instructions, moderators' texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import show_value
from opinionsim.opinions import OpinionScale
from opinionsim.personas import Persona
from opinionsim.prompts._named_texts import Texts, fill, pieces
from opinionsim.prompts._prompt_settings import Conditions
from opinionsim.topics import Claim

#: Placeholders of the texts.
_PERSONA, _RESPONSES, _TASK, _VALUES = "persona", "previous_responses", "task", "values"
#: A placeholder with the one full stop behind it.
_STOPPED = re.compile(r"(\$\{(\w+)\})\.(?!\.)")


@dataclass(frozen=True)
class Brief:
    """How prompts address one agent, as far as its persona does not determine it.

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
    task : str or None
        Its task; None for that of all.
    author : str or None
        The name under which others are shown its messages; None for that of its persona.
    """

    system: str | None = None
    template: str | None = None
    instructions: str | None = None
    persona: str | None = None
    values: str | None = None
    without: tuple[str, ...] = ()
    task: str | None = None
    author: str | None = None


@dataclass(frozen=True)
class Addressee:
    """An agent to whom prompts are addressed, and what they are about.

    Attributes
    ----------
    scale : OpinionScale
        Source of the verbal anchors.
    conditions : Conditions
        What the study varies in all its prompts.
    persona : Persona or None
        Persona of the agent. With None and ``BARE`` there is no role-play, whatever the conditions say.
    opinion : int or None
        The opinion assigned at the start, a point of `scale`; with role-play, prompts state its verbal anchor.
    claim : Claim or None
        The claim that opinions are about; None if the run has no claim.
    task : str
        Free text that every task states, unless the brief has another; empty for none.
    reads, writes : bool
        Whether the agent ever reads posts, and whether it ever writes any. No prompt mentions what it never does, or
        strangers in the closed world of an agent that never reads (A12).
    agent : int or None
        Its number in the cast, which marks its own among received messages; None marks none.
    role : str
        Its role in the run.
    answer_words : int or None
        Maximum number of words within the limit of its model's replies; None if prompts do not mention it.
    brief : Brief
        Named texts of the pack that address it, or texts in their place; by default those named ``default``, if the
        pack has named texts.
    """

    scale: OpinionScale
    conditions: Conditions = field(default_factory=Conditions)
    persona: Persona | None = None
    opinion: int | None = None
    claim: Claim | None = None
    task: str = ""
    reads: bool = True
    writes: bool = True
    agent: int | None = None
    role: str = "participant"
    answer_words: int | None = None
    brief: Brief = field(default_factory=Brief)

    def varied(self, name: str, value: Any) -> Addressee:
        """The same agent with another value of a condition, or of one of its fields."""
        if name in Conditions.model_fields:
            return replace(self, conditions=self.conditions.model_copy(update={name: value}))
        return replace(self, **{name: value})


def texts_for(told: Addressee, texts: Texts | None, place: str) -> dict[str, str | tuple[str, ...]]:
    """The texts of an agent's brief, as variables of templates.

    Parameters
    ----------
    told : Addressee
        The agent.
    texts : Texts or None
        The named texts of the pack; None if it has none.
    place : str
        Name of the pack in errors.

    Returns
    -------
    dict
        ``task``, empty for a moderator whose system message states it; ``system``, empty where template and persona
        make it; ``frame``, the persona template, split where the persona stands; ``instructions``, split where received
        messages stand; and ``automatic``, the request for a moderator's instructions. A pack without named texts has
        only the first two.

    Raises
    ------
    SpecError
        If the pack does not have a text that the brief names, or has no named texts, or a text states a task without
        there being one.
    """
    brief = told.brief
    task = told.task if brief.task is None else brief.task
    if texts is None:
        for name in ("template", "instructions", "persona", "values", "without"):
            if given := getattr(brief, name):
                raise SpecError(f"{place} has no texts.yaml, so {name} {given!r} has no effect")
        system = "" if brief.system is None else _filled(brief.system, {_TASK: task})
        return {"task": task, "system": system, "frame": (), "instructions": (), "automatic": ""}
    # A topic stands for the task where there is none.
    values = {_TASK: task or ("" if told.claim is None else texts.file.discussion)}
    moderates = told.role != "participant"
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
        values, system = {**values, _VALUES: brief.values}, texts.file.values
    instruct = texts.moderation if moderates else texts.instructions
    return {
        "task": "" if moderates and f"${{{_TASK}}}" in system else task,
        "system": _filled(system, values),
        "frame": _split(texts.persona(template, without(template)), _PERSONA, values),
        "instructions": _split(instruct(instructions, without(instructions)), _RESPONSES, values),
        "automatic": fill(texts.file.automatic.request, values),
    }


def _filled(template: str, values: Mapping[str, str]) -> str:
    """A template with its values; the task, where it holds one, must not be blank.

    The full stop behind a placeholder is left out where the value ends a sentence itself.
    """
    if not values[_TASK].strip() and f"${{{_TASK}}}" in template:
        raise SpecError(f"task: is required, because the text {show_value(template)} contains ${{{_TASK}}}")
    ended = {name for name, value in values.items() if value.rstrip().endswith((".", "!", "?"))}
    return fill(_STOPPED.sub(lambda found: found[1] if found[2] in ended else found[0], template), values)


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _split(template: str, name: str, values: Mapping[str, str]) -> tuple[str, ...]:
    """The texts between the occurrences of a placeholder, with values in the place of the other ones."""
    return tuple(_filled(piece, values).strip() for piece in pieces(template, name))
