"""What an experiment will take, before anything is spent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opinionsim.actors import PersonaActor
from opinionsim.errors import SpecError
from opinionsim.experiments._assembly import assemble
from opinionsim.experiments._assumptions import Assumptions, Rates, observe
from opinionsim.experiments._dry_run import Sort, Tally, count_characters, model_keys, survey
from opinionsim.experiments._forecast import Forecast, ModelForecast
from opinionsim.experiments._judges import JUDGE, Judge, Judges
from opinionsim.experiments._model_spec import ModelSpec, models_of
from opinionsim.experiments._pricing import model_price
from opinionsim.experiments._resources import Resources
from opinionsim.experiments._sweep import Experiment, PlannedRun, require_experiment
from opinionsim.llm import PriceTable, load_prices
from opinionsim.measurement import SELF_REPORT
from opinionsim.messages import ChatMessage, Message, as_message
from opinionsim.schedules import AdaptiveSchedule, AnySchedule, CriticalPath, critical_path, outline
from opinionsim.streams import canonical_json
from opinionsim.topics import Claim

__all__ = ["Forecast", "Preview", "count_calls", "only_scripted", "plan", "preview"]

#: Stands in a preview where a run would show another agent's words.
PLACEHOLDER = "(the text of another agent's post)"

#: Calls that are acted out at most, about, for a forecast that is not asked to be exact: a second or two.
_ACTED_OUT = 10_000
#: The same for each kind of cells, however many there are.
_FEWEST_ACTED_OUT = 100


@dataclass(frozen=True)
class _Size:
    """Calls of the agents of one run, their critical path, and the kind of text of each act.

    `reads` has how many earlier messages a turn of each act is shown on average.
    """

    calls_of: Mapping[Sort, int]
    path: CriticalPath | None
    kinds: Mapping[str, str]
    reads: Mapping[str, float]

    def items(self, sort: Sort, reading: _Reading) -> float:
        """Items that an instrument codes of the texts of one sort of call."""
        if self.kinds.get(sort.kind) not in reading.kinds:
            return 0
        return self.calls_of[sort] * (self.reads[sort.kind] if reading.about else 1)

    @property
    def calls(self) -> int:
        """All calls."""
        return sum(self.calls_of.values())

    @property
    def chain(self) -> int:
        """Calls that must follow one another; an adaptive schedule is taken to make all of them so."""
        return self.calls if self.path is None else self.path.length


@dataclass(frozen=True)
class _Reading:
    """What one instrument codes of a run, and whether the run's schedule acts on it."""

    kinds: frozenset[str]
    judge: Judge | None
    needed: bool
    about: str


@dataclass(frozen=True)
class _Judging:
    """What judges are asked about one run, and how many of their calls follow one another."""

    tallies: Mapping[Sort, Tally]
    chain: int

    @property
    def calls(self) -> int:
        """All calls."""
        return sum(tally.calls for tally in self.tallies.values())


@dataclass(frozen=True)
class _Work:
    """One run: its agents' calls, and then its judges'."""

    size: _Size
    tallies: Mapping[Sort, Tally]
    judging: _Judging

    @property
    def calls(self) -> int:
        """All calls."""
        return self.size.calls + self.judging.calls

    @property
    def chain(self) -> int:
        """Calls that must follow one another."""
        return self.size.chain + self.judging.chain

    @property
    def width(self) -> float:
        """Calls in flight on average."""
        return self.calls / self.chain if self.chain else 0.0

    def seconds(self, rates: Mapping[str, Rates]) -> float:
        """Time of all calls, one at a time."""
        return _seconds(self.tallies, rates) + _seconds(self.judging.tallies, rates)

    def chain_s(self, rates: Mapping[str, Rates]) -> float:
        """Time of the longest chain, whose calls take as long as those of agents, or of judges, do on average."""
        return sum(
            chain * _seconds(tallies, rates) / calls
            for chain, tallies, calls in (
                (self.size.chain, self.tallies, self.size.calls),
                (self.judging.chain, self.judging.tallies, self.judging.calls),
            )
            if calls
        )


def plan(
    experiment: Experiment,
    *,
    max_concurrency: int | None = None,
    only: Collection[str] | None = None,
    reply_tokens: float | None = None,
    latency: float | None = None,
    store: str | None = None,
    exact: bool = False,
) -> Forecast:
    """Forecast calls, tokens, money, time and attainable concurrency; calls nobody.

    Runs are acted out with placeholders for replies: the drawn schedules, the real prompts and memories. Of an
    experiment of more than some 10,000 calls a sample of runs, evenly over the kinds of cells, is acted out, and of a
    long run some agents for the first of their turns; `acted_out` of the forecast says how many calls that were.

    Parameters
    ----------
    experiment : Experiment
        From :func:`opinionsim.load_experiment`.
    max_concurrency : int, optional
        Calls in flight at most; default that of the specification.
    only : collection of str, optional
        Ids of the runs to forecast; default all.
    reply_tokens : float, optional
        Length of every reply of an agent, >= 1, four characters a token. Default what `store` shows, else 200. A
        reply is never longer than the model's `max_tokens`; a judge's answers are what `store` shows, else as
        long as they may be, up to 200.
    latency : float, optional
        Seconds a call takes, >= 0. Default what `store` shows, else 1.
    store : str, optional
        Address of a store. Where it holds calls of the experiment, length of replies, tokens a character and latency
        are those of these calls.
    exact : bool
        Act out every run, however long that takes.

    Returns
    -------
    Forecast
        Calls are exact for static schedules; those of an adaptive one are as many as it can make. A run whose draw
        cannot be used, such as a random network without an edge, counts no call.

    Raises
    ------
    SpecError
        If `experiment` is something else, a run is not one of its own, or a number is out of range.
    StoreError
        If the store cannot be read.
    """
    require_experiment(experiment)
    slots = experiment.spec.execution.max_concurrency if max_concurrency is None else max_concurrency
    if slots < 1:
        raise SpecError(f"max_concurrency must be at least 1; got {slots}")
    assumptions = Assumptions(reply_tokens, latency, observe(experiment, store) if store is not None else None)
    prices = load_prices(experiment.resources.path(experiment.spec.execution.prices))
    runs = _chosen(experiment, only)
    readings = _readings(experiment)
    sizes = _sizes(runs, experiment)
    models = _models(runs)
    rates = {key: assumptions.rates(model) for key, model in models.items()}
    judges = {
        reading.judge.key: reading.judge.model for run in runs for reading in readings[run.run_id] if reading.judge
    }
    rates |= {key: assumptions.rates(model, judges=True) for key, model in judges.items()}
    tallies, acted_out = _tallies(runs, sizes, experiment.resources, rates, exact)
    work = [
        _Work(size, tally, _judging(size, readings[run.run_id], _claim(run, experiment), rates))
        for run, size, tally in zip(runs, sizes, tallies, strict=True)
    ]
    by_model = (
        *_by_model([each.tallies for each in work], models, rates, prices),
        *_by_model([each.judging.tallies for each in work], judges, rates, prices, judges=True),
    )
    calls = sum(each.calls for each in work)
    # What a judge is asked is known as soon as the length of the texts is.
    acted_out += sum(each.judging.calls for each in work)
    chain = max((each.chain for each in work), default=0)
    adaptive = any(size.path is None for size in sizes)
    work_s = sum(each.seconds(rates) for each in work)
    chain_s = max((each.chain_s(rates) for each in work), default=0.0)
    chosen = {run.run_id for run in runs}
    return Forecast(
        cells=len({id(run.cell) for run in experiment.runs if run.run_id in chosen}),
        runs=len(runs),
        calls=calls,
        texts=sum(_texts(size, readings[run.run_id]) for run, size in zip(runs, sizes, strict=True)),
        longest_path=None if adaptive else chain,
        width=sum(each.width for each in work),
        slots=slots,
        useful_slots=-(-calls // chain) if chain else 1,
        rounds=max(chain, calls / slots),
        least_s=max(chain_s, work_s / slots),
        most_s=min(work_s, work_s / slots + (1 - 1 / slots) * chain_s),
        sequential_s=work_s,
        models=by_model,
        acted_out=acted_out,
        exact=acted_out == calls and not adaptive,
        currency=prices.currency,
        price_date=prices.date,
    )


def count_calls(experiment: Experiment, *, only: Collection[str] | None = None) -> int:
    """How many calls an experiment makes, judges' included, if no reply is rejected; no prompt is made.

    Parameters
    ----------
    experiment : Experiment
        From :func:`opinionsim.load_experiment`.
    only : collection of str, optional
        Ids of the runs to count; default all.

    Returns
    -------
    int
        As `calls` of :func:`opinionsim.plan`, some fifteen times faster.

    Raises
    ------
    SpecError
        If `experiment` is something else, or a run is not one of its own.
    """
    require_experiment(experiment)
    return sum(calls_by_run(experiment, only=only).values())


def calls_by_run(experiment: Experiment, *, only: Collection[str] | None = None) -> dict[str, int]:
    """How many calls each run makes, judges' included, if no reply is rejected; parameters as :func:`count_calls`."""
    runs = _chosen(experiment, only)
    readings = _readings(experiment)
    assumed = Assumptions()
    rates = {key: assumed.rates(model) for key, model in _models(runs).items()}
    return {
        run.run_id: size.calls + _judging(size, readings[run.run_id], _claim(run, experiment), rates).calls
        for run, size in zip(runs, _sizes(runs, experiment), strict=True)
    }


def only_scripted(experiment: Experiment) -> bool:
    """Whether the scripted stand-in, which takes neither money nor time, is all the experiment asks."""
    agents = _models(list(experiment.runs)).values()
    return all(model.name == "scripted" for model in agents) and not Judges(experiment.runs).all()


def _chosen(experiment: Experiment, only: Collection[str] | None) -> list[PlannedRun]:
    """Distinct runs, or those of them that are asked for."""
    runs = {run.run_id: run for run in experiment.runs}
    if only is None:
        return list(runs.values())
    if isinstance(only, str):
        raise SpecError(f"only must be a collection of run ids; got the text {only!r}")
    for run_id in only:
        if run_id not in runs:
            raise SpecError(f"only: {run_id!r} is not the id of a run of {experiment.spec.name}")
    wanted = frozenset(only)
    return [run for run_id, run in runs.items() if run_id in wanted]


def _readings(experiment: Experiment) -> dict[str, list[_Reading]]:
    """What is coded of each run: cells may share one and differ in how they measure it."""
    judges = Judges(experiment.runs)
    kinds: dict[str, dict[str, frozenset[str]]] = {}
    needed: dict[str, set[str]] = {}
    about = {each.instrument_id: each.about for cell in experiment.cells for each in cell.instruments}
    for run in experiment.runs:
        found = kinds.setdefault(run.run_id, {})
        acted_on = set(run.spec.interaction.needs)
        for each in run.cell.instruments:
            before = found.get(each.instrument_id, frozenset())
            # Self-reports say themselves what they say.
            found[each.instrument_id] = before | each.kinds - {SELF_REPORT}
            if each.variable in acted_on and not each.about:
                acted_on.remove(each.variable)
                needed.setdefault(run.run_id, set()).add(each.instrument_id)
    return {
        run_id: [
            _Reading(each, judges.of(identity), identity in needed.get(run_id, ()), about[identity])
            for identity, each in found.items()
        ]
        for run_id, found in kinds.items()
    }


def _claim(planned: PlannedRun, experiment: Experiment) -> Claim:
    return experiment.resources.topic(planned.spec.topic).claim(planned.spec.topic.framing)


def _texts(size: _Size, readings: Sequence[_Reading]) -> int:
    """Texts of a run that are coded, once for each instrument."""
    return round(sum(size.items(sort, reading) for reading in readings for sort in size.calls_of))


def _judging(size: _Size, readings: Sequence[_Reading], claim: Claim, rates: Mapping[str, Rates]) -> _Judging:
    """What judges are asked about a run.

    A schedule that acts on opinions waits for their ratings of what agents report; all else is judged side by side in
    the end.
    """
    tallies: dict[Sort, Tally] = {}
    rated = 0
    for reading in readings:
        judge = reading.judge
        if judge is None:
            continue
        for sort, calls in size.calls_of.items():
            awaited = reading.needed and size.kinds.get(sort.kind) == "report"
            texts = calls if awaited else round(size.items(sort, reading))
            if not texts:
                continue
            judged = judge.judged(claim, rates[sort.model].of(sort.kind).characters)
            own = Sort(judge.key, JUDGE)
            before = tallies.get(own, Tally(0, 0.0))
            tallies[own] = Tally(before.calls + texts * judged.calls, before.characters + texts * judged.characters)
            rated += texts * judged.calls if awaited else 0
    return _Judging(tallies, max(rated, 1 if tallies else 0))


def _sizes(runs: list[PlannedRun], experiment: Experiment) -> list[_Size]:
    """The size of each run; runs of equal schedules and models are looked at once."""
    known: dict[tuple[str, str], _Size] = {}
    cells: dict[int, str] = {}
    found = []
    for planned in runs:
        spec = planned.spec
        if id(planned.cell) not in cells:
            parts = (
                spec.model,
                spec.population,
                spec.interaction,
                spec.measurement.probe,
                spec.measurement.self_report,
            )
            cells[id(planned.cell)] = canonical_json([*map(_dumped, parts), spec.cognition.memory])
        key = cells[id(planned.cell)], planned.block
        if key not in known:
            known[key] = _size(planned, experiment)
        found.append(known[key])
    return found


def _dumped(node: Any) -> Any:
    """A part of a specification as JSON values."""
    return [_dumped(each) for each in node] if isinstance(node, tuple) else node.model_dump(mode="json")


def _size(planned: PlannedRun, experiment: Experiment) -> _Size:
    """Calls and critical path of the agents of one run."""
    nothing = _Size({}, CriticalPath(0, 0, 0), {}, {})
    try:
        parts = assemble(planned, experiment.resources)
    except SpecError:
        return nothing
    if parts.equation is not None:
        return nothing
    calls_of = {sort: len(remembered) for sort, remembered in survey(parts).items()}
    kinds = {name: act.kind for name, act in parts.schedule.acts.items()}
    reads = _mean_reads(parts.schedule)
    if isinstance(parts.schedule, AdaptiveSchedule):
        return _Size(calls_of, None, kinds, reads)
    return _Size(calls_of, critical_path(parts.schedule, calls_per_event=parts.calls_per_event), kinds, reads)


def _mean_reads(schedule: AnySchedule) -> dict[str, float]:
    """How many earlier messages a turn of each act reads on average."""
    turns, reads = Counter[str](), Counter[str]()
    for turn in outline(schedule):
        turns[turn.act] += 1
        reads[turn.act] += sum(isinstance(ref, int) for ref in turn.reads)
    return {act: reads[act] / count for act, count in turns.items()}


def _models(runs: list[PlannedRun]) -> dict[str, ModelSpec]:
    """All chat models of agents by key, in the order of the cells."""
    specs = {id(run.cell): run.spec for run in runs}.values()
    return {model_keys([model])[0]: model for spec in specs for model in models_of(spec.model)}


_Tallies = dict[Sort, Tally]


def _tallies(
    runs: list[PlannedRun], sizes: list[_Size], resources: Resources, rates: Mapping[str, Rates], exact: bool
) -> tuple[list[_Tallies], int]:
    """Calls and characters of prompts of each run, and how many calls were acted out for it."""
    found: list[_Tallies] = [{} for _ in runs]
    acted_out = 0
    strata = _strata(runs, sizes)
    whole = exact or sum(size.calls for size in sizes) <= _ACTED_OUT
    allowance = max(_FEWEST_ACTED_OUT, _ACTED_OUT // max(1, len(strata)))
    for stratum in strata:
        left = float("inf") if whole else allowance
        left_out = []
        for position in stratum:
            calls = sizes[position].calls
            # The first run of a stratum is acted out in part where it is too long; the others wholly or not at all.
            if left < calls and left < allowance:
                left_out.append(position)
                continue
            parts = assemble(runs[position], resources)
            most = None if calls <= left else int(left)
            found[position], acted = count_characters(parts, rates, most)
            acted_out += acted
            left -= acted
        acted_for = [found[position] for position in stratum if found[position]]
        for position in left_out:
            found[position] = _like(sizes[position], acted_for)
    return found, acted_out


def _strata(runs: list[PlannedRun], sizes: list[_Size]) -> list[list[int]]:
    """Positions of runs that make calls, by all that shapes their prompts but the topic, and mixed."""
    strata: dict[str, list[int]] = {}
    keys: dict[int, str] = {}
    for position, run in enumerate(runs):
        spec = run.spec
        if id(run.cell) not in keys:
            asked = (spec.measurement.probe, spec.measurement.self_report)
            parts = (spec.model, spec.population, spec.interaction, spec.cognition, *asked)
            keys[id(run.cell)] = canonical_json([*map(_dumped, parts), spec.topic.masked, spec.prompts])
        if sizes[position].calls:
            strata.setdefault(keys[id(run.cell)], []).append(position)
    # Identities of runs are hashes: sorted by them, cells and replicates are mixed.
    return [sorted(stratum, key=lambda position: runs[position].run_id) for stratum in strata.values()]


def _like(size: _Size, others: Sequence[_Tallies]) -> _Tallies:
    """A run whose prompts are, by sort of call, as long as those of others on average."""
    pooled: dict[object, Tally] = {}
    for tallies in others:
        for sort, tally in tallies.items():
            for key in (sort, sort.kind, None):
                before = pooled.get(key, Tally(0, 0.0))
                pooled[key] = Tally(before.calls + tally.calls, before.characters + tally.characters)
    means = {key: tally.characters / tally.calls for key, tally in pooled.items()}
    return {
        # Of several models, one may have played nobody in the others.
        sort: Tally(calls, calls * next(means[key] for key in (sort, sort.kind, None) if key in means))
        for sort, calls in size.calls_of.items()
    }


def _by_model(
    tallies: list[Mapping[Sort, Tally]],
    models: Mapping[str, ModelSpec],
    rates: Mapping[str, Rates],
    prices: PriceTable,
    *,
    judges: bool = False,
) -> tuple[ModelForecast, ...]:
    """What each model is asked; specifications of one model that differ in options are taken together."""
    total: dict[Sort, Tally] = {}
    for each in tallies:
        for sort, tally in each.items():
            before = total.get(sort, Tally(0, 0.0))
            total[sort] = Tally(before.calls + tally.calls, before.characters + tally.characters)
    groups: dict[tuple[str, str], list[str]] = {}
    for key, model in models.items():
        groups.setdefault((model.name, model_price(model, prices)[1]), []).append(key)
    return tuple(
        _model_forecast(
            models[keys[0]],
            {sort: tally for sort, tally in total.items() if sort.model in keys},
            rates[keys[0]],
            rates,
            prices,
            judges,
        )
        for keys in groups.values()
    )


def _model_forecast(
    model: ModelSpec, total: _Tallies, first: Rates, rates: Mapping[str, Rates], prices: PriceTable, judges: bool
) -> ModelForecast:
    calls = sum(tally.calls for tally in total.values())
    received = sum(tally.characters * rates[sort.model].tokens_per_character for sort, tally in total.items())
    written = sum(tally.calls * rates[sort.model].of(sort.kind).tokens for sort, tally in total.items())
    price, reason = model_price(model, prices)
    return ModelForecast(
        name=model.name,
        judges=judges,
        calls=calls,
        input_characters=round(sum(tally.characters for tally in total.values())),
        input_tokens=round(received),
        output_tokens=round(written),
        cost=None if price is None else price.cost(round(received), round(written)),
        price=reason,
        tokens_per_character=first.tokens_per_character,
        reply_tokens=written / calls if calls else first.reply.tokens,
        latency_s=first.latency_s,
        observed=first.calls,
    )


def _seconds(tallies: Mapping[Sort, Tally], rates: Mapping[str, Rates]) -> float:
    """Time of calls, one at a time."""
    return sum(tally.calls * rates[sort.model].latency_s for sort, tally in tallies.items())


@dataclass(frozen=True)
class Preview:
    """The prompts of the first turn of each act of a run.

    Attributes
    ----------
    run_id, cell : str
        The run previewed.
    prompts : dict of str to tuple of ChatMessage
        By act, as the first agent to perform it would be asked if nothing had happened yet.
    equation : str
        The model that agents follow who ask nobody; empty where chat models play them.
    """

    run_id: str
    cell: str
    prompts: dict[str, tuple[ChatMessage, ...]]
    equation: str = ""


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
    if parts.equation is not None:
        return Preview(planned.run_id, planned.cell.label, {}, parts.equation.setup.model.title)
    # Nobody is asked: prompts are rendered from agents as they are before the first turn.
    cast = parts.cast()
    prompts: dict[str, tuple[ChatMessage, ...]] = {}
    for turn in outline(parts.schedule):
        if turn.act not in prompts:
            received = [
                Message(PLACEHOLDER) if isinstance(ref, int) else as_message(parts.schedule.externals[ref.name])
                for ref in turn.reads
            ]
            actor = cast[turn.agent].actor
            if isinstance(actor, PersonaActor):
                prompts[turn.act] = actor.preview(turn.act, received)
    return Preview(planned.run_id, planned.cell.label, prompts)
