"""What an experiment will take, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from opinionsim.engine import CriticalPath, critical_path
from opinionsim.errors import SpecError
from opinionsim.experiments._assembly import assemble
from opinionsim.experiments._sweep import Experiment, PlannedRun, require_experiment
from opinionsim.llm import MemoryJournal, ReplayOnly, RunCalls, SlotPool
from opinionsim.messages import ChatMessage, Message
from opinionsim.schedules import ACTS, AdaptiveSchedule, IndependentReports, StaticSchedule
from opinionsim.streams import canonical_json

__all__ = ["Forecast", "Preview", "plan", "preview"]

#: Stands in a preview where a run would show another agent's words.
PLACEHOLDER = "(the text of another agent's post)"


@dataclass(frozen=True)
class Forecast:
    """What an experiment takes.

    Attributes
    ----------
    cells, runs : int
        Combinations of conditions, and distinct runs.
    calls : int
        Model calls of all runs, if no reply is rejected.
    texts : int
        Texts to be coded.
    longest_path : int or None
        Calls on the longest chain of dependent calls of any run: no number of slots makes the sweep faster.
        None where a schedule is adaptive, so that its chain is not known in advance.
    width : float
        Calls that can be in flight on average, over all runs, with slots without end.
    slots : int
        Calls in flight at most.
    rounds : float
        Lower bound of the time of the sweep, in units of one call's latency: the longer of the longest path
        and calls / slots. A run with an adaptive schedule is taken to make one call after another.
    """

    cells: int
    runs: int
    calls: int
    texts: int
    longest_path: int | None
    width: float
    slots: int
    rounds: float

    @property
    def speedup(self) -> float:
        """Largest possible speed-up over one call at a time."""
        return self.calls / self.rounds if self.rounds else 1.0


@dataclass(frozen=True)
class _Size:
    """Calls, coded texts and critical path of one run."""

    calls: int
    texts: int
    path: CriticalPath | None


def plan(experiment: Experiment, *, max_concurrency: int | None = None) -> Forecast:
    """Forecast calls, coded texts and attainable concurrency from the drawn schedules.

    Parameters
    ----------
    experiment : Experiment
        From :func:`opinionsim.load_experiment`.
    max_concurrency : int, optional
        Calls in flight at most; default that of the specification.

    Returns
    -------
    Forecast
        Exact for static schedules; calls of an adaptive one are those of as many dyads. A run whose draw
        cannot be used, such as a random network without an edge, counts no call.

    Raises
    ------
    SpecError
        If `experiment` is something else.
    """
    require_experiment(experiment)
    slots = max_concurrency or experiment.spec.execution.max_concurrency
    runs = list({run.run_id: run for run in experiment.runs}.values())
    sizes: dict[str, _Size] = {}
    total = []
    for planned in runs:
        spec = planned.spec
        key = canonical_json(
            [
                spec.interaction.model_dump(mode="json"),
                spec.population.size,
                spec.cognition.memory,
                spec.measurement.model_dump(mode="json"),
                planned.block,
            ]
        )
        if key not in sizes:
            sizes[key] = _size(planned, experiment)
        total.append(sizes[key])
    calls = sum(size.calls for size in total)
    paths = [size.path.length if size.path is not None else None for size in total]
    known = [path for path in paths if path is not None]
    longest = max(known, default=0) if len(known) == len(paths) else None
    return Forecast(
        cells=len(experiment.cells),
        runs=len(runs),
        calls=calls,
        texts=sum(size.texts for size in total),
        longest_path=longest,
        width=sum(size.path.mean_width if size.path is not None else 1.0 for size in total),
        slots=slots,
        rounds=max(
            max((size.calls if size.path is None else size.path.length for size in total), default=0), calls / slots
        ),
    )


def _size(planned: PlannedRun, experiment: Experiment) -> _Size:
    """Calls, coded texts and critical path of one run."""
    try:
        parts = assemble(planned, experiment.resources)
    except SpecError:
        return _Size(0, 0, CriticalPath(0, 0, 0))
    after = parts.cognition.calls_per_event
    schedule = parts.schedule
    if isinstance(schedule, AdaptiveSchedule):
        dyads, probes = schedule.steps, _probes(planned)
        coded = sum(kind in parts.kinds for kind in ("post", "report")) * dyads
        return _Size(2 * dyads * (1 + after) + probes, coded + probes, None)
    path = critical_path(schedule, calls_per_event=after)
    texts = sum(ACTS[turn.act].kind in parts.kinds for turn in schedule.turns())
    return _Size(path.calls, texts, path)


def _probes(planned: PlannedRun) -> int:
    """Off-record questions of one run."""
    probe = planned.spec.measurement.probe
    return (probe.before + probe.after) * planned.spec.population.size


@dataclass(frozen=True)
class Preview:
    """The prompts of the first turn of each act of a run.

    Attributes
    ----------
    run_id, cell : str
        The run previewed.
    prompts : dict of str to tuple of ChatMessage
        By act, as the first agent to perform it would be asked if nothing had happened yet.
    """

    run_id: str
    cell: str
    prompts: dict[str, tuple[ChatMessage, ...]]


def preview(experiment: Experiment, run: int = 0) -> Preview:
    """Render the first prompts of a run without any call.

    Parameters
    ----------
    experiment : Experiment
        From :func:`opinionsim.load_experiment`.
    run : int
        Position among the experiment's planned runs.

    Raises
    ------
    SpecError
        If there is no such run, or `experiment` is something else.
    """
    require_experiment(experiment)
    if not 0 <= run < len(experiment.runs):
        raise SpecError(f"run {run} does not exist; valid: 0..{len(experiment.runs) - 1}")
    planned = experiment.runs[run]
    parts = assemble(planned, experiment.resources)
    # Nobody is asked: prompts are rendered from agents as they are before the first turn.
    calls = RunCalls(planned.run_id, MemoryJournal(), ReplayOnly(), SlotPool(1))
    actors = replace(parts, schedule=IndependentReports(len(parts.population), 0)).simulation(calls, None).actors
    prompts: dict[str, tuple[ChatMessage, ...]] = {}
    for agent, act, reads in _first_turns(parts.schedule, _probes(planned)):
        if act not in prompts:
            received = [
                Message(PLACEHOLDER) if isinstance(ref, int) else parts.schedule.externals[ref.name] for ref in reads
            ]
            prompts[act] = actors[agent].preview(act, received)
    return Preview(planned.run_id, planned.cell.label, prompts)


def _first_turns(schedule: StaticSchedule | AdaptiveSchedule, probes: int) -> list[tuple[int, str, tuple[Any, ...]]]:
    """Agent, act and reads of turns that between them show every act; of an adaptive schedule, a dyad."""
    if isinstance(schedule, AdaptiveSchedule):
        return [*([(0, "probe", ())] if probes else []), (0, "write", ()), (1, "review", (0,))]
    return [(turn.agent, turn.act, turn.reads) for turn in schedule.turns()]
