"""Previews of the first prompts of a run."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import shorten

from opinionsim.assembly import RunParts, assemble
from opinionsim.engine import PersonaActor
from opinionsim.errors import SpecError
from opinionsim.messages import ChatMessage, Message, as_message
from opinionsim.schedules import Event, outline
from opinionsim.specification import Experiment, naming_own_part, require_experiment

#: Text in a preview in the place of another agent's post.
PLACEHOLDER = "(the text of another agent's post)"
#: The same for a message of the agent itself.
OWN_PLACEHOLDER = "(the text of its own earlier message)"
#: Members of a cast whose prompts a preview shows.
_MEMBERS_SHOWN = 10


@dataclass(frozen=True)
class Preview:
    """The prompts of the first turn of each act of a run.

    Attributes
    ----------
    run_id, cell : str
        Run id, and label of the cell.
    prompts : dict of str to tuple of ChatMessage
        Prompts by act: the prompt of the first agent to perform it, as if nothing had happened before; then, as
        ``ACT, after reading``, that of the first turn that reads something, if the first one does not. With a cast, the
        same for each of its first ten members, as ``ACT of NAME``.
    endpoint : str
        What the agents do, as in ``follow an equation (NAME)``; empty if chat models play them.
    events : tuple of str
        External events of the run, with their agents and steps.
    """

    run_id: str
    cell: str
    prompts: dict[str, tuple[ChatMessage, ...]]
    endpoint: str = ""
    events: tuple[str, ...] = ()


def preview(experiment: Experiment, run: int = 0) -> Preview:
    """Render the first prompts of a run. Makes no calls.

    Parameters
    ----------
    experiment : Experiment
        From :func:`opinionsim.load_experiment`.
    run : int
        Position among the planned runs of the experiment.

    Raises
    ------
    SpecError
        If there is no such run, or `experiment` is not an Experiment.
    """
    require_experiment(experiment)
    if not 0 <= run < len(experiment.runs):
        raise SpecError(f"run {run} does not exist; valid: 0..{len(experiment.runs) - 1}")
    planned = experiment.runs[run]
    parts = assemble(planned, experiment.resources)
    if parts.endpoint is not None:
        return Preview(planned.run_id, planned.cell.label, {}, parts.endpoint.told)
    with naming_own_part(planned.spec):
        told = tuple(map(_told_event, parts.events))
        return Preview(planned.run_id, planned.cell.label, _first_prompts(parts), events=told)


#: Characters of a text that is shown where an event is told, and most agents that are named there.
_SHOWN_TEXT, _SHOWN_AGENTS = 60, 12


def _told_event(event: Event) -> str:
    """An event of a run in one line."""
    if event.kind == "ties":
        return f"step {event.step}: ties change"
    lasting = "" if event.kind in ("message", "join", "leave") else f" to {event.until or 'the end'}"
    some = ", ".join(map(str, event.agents[:_SHOWN_AGENTS]))
    more = f" and {len(event.agents) - _SHOWN_AGENTS} more" if len(event.agents) > _SHOWN_AGENTS else ""
    chance = f", probability {event.probability:g}" if event.kind == "media" else ""
    texts = "; ".join(shorten(repr(text), _SHOWN_TEXT, placeholder="…'") for text in event.texts)
    return f"step {event.step}{lasting}: {event.kind}, agents {some}{more}{chance}" + (f": {texts}" if texts else "")


def _seen(message: Message, reader: int) -> Message:
    """A placeholder as it is shown to a reader: its own message is not another agent's."""
    return message._replace(text=OWN_PLACEHOLDER) if message.agent == reader else message


def _first_prompts(parts: RunParts) -> dict[str, tuple[ChatMessage, ...]]:
    """The prompt of the first turn of each act, as if nothing had happened yet.

    Where that turn reads nothing and a later one does, both are given. Members of a cast have prompts of their own.
    """
    cast = parts.cast()
    listed = any(each.author is not None for each in parts.directions)
    prompts: dict[str, tuple[ChatMessage, ...]] = {}
    alone: set[str] = set()
    authors: list[Message] = []
    for turn in outline(parts.schedule):
        member = cast[turn.agent]
        authors.append(Message(PLACEHOLDER, member.name, turn.agent, role=member.role, act=turn.act))
        own = listed and turn.agent < min(parts.schedule.n_agents, _MEMBERS_SHOWN)
        name = f"{turn.act} of {member.name}" if own else turn.act
        if name in alone and turn.reads:
            name += ", after reading"
        asks = parts.schedule.acts[turn.act].draws > 0
        if turn.step < parts.begins or name in prompts or not asks or not isinstance(member.actor, PersonaActor):
            continue
        if not turn.reads:
            alone.add(name)
        received = [
            _seen(authors[ref], turn.agent) if isinstance(ref, int) else as_message(parts.schedule.externals[ref.name])
            for ref in turn.reads
        ]
        prompts[name] = member.actor.preview(turn.act, received)
    return prompts
