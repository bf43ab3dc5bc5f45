"""Make a forecast: count calls with dry runs, then price and time them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from statistics import fmean
from typing import NamedTuple

import numpy as np

from opinionsim import specification, store as stores
from opinionsim.assembly import LoadedParts, RunParts, assemble, instruments_by_run
from opinionsim.classifiers import asks
from opinionsim.errors import SpecError
from opinionsim.foundation import background
from opinionsim.foundation.streams import canonical_json
from opinionsim.foundation.templates import sentences
from opinionsim.lanes import OPEN_RUNS
from opinionsim.llm import Usage
from opinionsim.opinions import OpinionScale
from opinionsim.planning._assumptions import Model, Rates, SeenCalls, check_assumptions, observe
from opinionsim.planning._cards import card_of
from opinionsim.planning._dry_run import Counted, CountedTurns, DryRun, Sort, questions
from opinionsim.planning._forecast import Forecast, ModelForecast, spell_money, spell_price
from opinionsim.planning._lanes import costs_by_lane, forecast_lanes
from opinionsim.registry import serving

#: Calls that are acted out: about so many at most, shared out over the conditions; and least number for each.
_ACTED_OUT = 2_000
_FEWEST_ACTED_OUT = 50
#: From so many blocks on, topics may share blocks at little cost.
_FEW_BLOCKS = 8
#: Standard errors of which the width of a scale is so many times one are small: 0.1 on -2 to 2.
_PRECISE = 40
#: Characters of a person's answer.
_WRITTEN = 400
#: Fields of a run that change what prompts say, but not who acts when.
_TOLD = ("topic", "cognition", "prompts", "independent")


def plan(
    experiment: specification.Experiment,
    *,
    max_concurrency: int | None = None,
    only: Collection[str] | None = None,
    reply_tokens: float | None = None,
    latency: float | None = None,
    calls_per_reply: float | None = None,
    store: str | None = None,
    loaded: LoadedParts | None = None,
) -> Forecast:
    """Forecast calls, tokens, money, time and attainable concurrency without making calls.

    The forecast acts out one run of every condition, with its random schedule, real prompts and memories, and
    placeholders for replies. It derives the length of prompts in other runs from the number of turns that their agents
    remember in each call. In an experiment with many conditions or very long runs, it acts out only the first turns of
    some agents; `acted_out` is the number of calls acted out.

    Parameters
    ----------
    experiment : Experiment
        From :func:`opinionsim.load_experiment`.
    max_concurrency : int, optional
        Maximum number of calls in flight; default that of the specification.
    only : collection of str, optional
        Ids of the runs to forecast; default all.
    reply_tokens : float, optional
        Length of every reply of an agent in tokens of four characters, >= 1. Default: the mean in `store`; otherwise
        1.4 tokens for each word that the prompt asks for, 6 for a closed question, and 200 if the prompt states no
        length. A reply is never longer than the model's `max_tokens`. Replies of a judge have the mean length in
        `store`, or otherwise 200 or its `max_tokens`, whichever is less.
    latency : float, optional
        Duration of a call in seconds, >= 0. Default: the mean in `store`, otherwise 1.
    calls_per_reply : float, optional
        Calls of an agent for each reply that is kept, >= 1; 1 means that no reply is rejected. Default: the mean in
        `store`, otherwise 1.
    store : str, optional
        Address of a store. If it contains calls of the experiment, the forecast takes the length of replies, tokens per
        character and latency from them. The forecast includes the work that the store lacks.
    loaded : LoadedParts, optional
        Models and classifiers of the experiment; default they are loaded to plan.

    Returns
    -------
    Forecast
        Calls are exact for static schedules, and an upper bound for adaptive ones. A run with an unusable draw, such as
        a random network without an edge, counts no calls.

    Raises
    ------
    SpecError, MeasurementError
        If `experiment` is not an Experiment, `only` contains ids of other runs, a number is out of range, or a model or
        classifier cannot be loaded.
    StoreError
        If the store cannot be read.
    """
    specification.require_experiment(experiment)
    slots = experiment.spec.execution.max_concurrency if max_concurrency is None else max_concurrency
    if slots < 1:
        raise SpecError(f"max_concurrency must be at least 1; got {slots}")
    check_assumptions(reply_tokens, latency, calls_per_reply)
    planning = _Planning(experiment, loaded or LoadedParts(experiment, to_plan=True), _chosen(experiment, only))
    if latency is not None:
        planning.timed = ("now", "flex")

    def work(seen: Mapping[tuple[str, bool], SeenCalls]) -> dict[str, _Work]:
        def rates(model: Model) -> Rates:
            own = seen.get((model.name, model.judges), SeenCalls())
            card = None if model.judges or calls_per_reply or own.calls else card_of(model.name)
            kept = card["lines"]["kept"]["value"] if card else calls_per_reply
            return Rates(model, own, reply_tokens, latency, kept)

        return planning.work({model: rates(model) for model in planning.models})

    if store is None:
        return planning.forecast(work({}), slots)
    with stores.open_store(store, write=False) as opened:
        experiment.spec.execution.require_alone(opened.shared)
        states = {run_id: state.status for run_id, state in opened.states(list(planning.runs)).items()}
        begun = [run_id for run_id, status in states.items() if status != "pending"]
        whole = work(observe(experiment, opened, begun, planning.judges))
        complete = [run_id for run_id, status in states.items() if status == "complete"]
        missing = planning.missing(whole, opened, complete)
    return replace(planning.forecast(whole, slots), missing=planning.forecast(missing, slots))


class RunCounts(NamedTuple):
    """Numbers of a run that are known before it begins: its calls, and the turns that events drop."""

    calls: int
    dropped: int


def counts_by_run(
    experiment: specification.Experiment, loaded: LoadedParts | None = None, only: Collection[str] | None = None
) -> dict[str, RunCounts]:
    """Count the calls of each run before it begins, without making prompts of agents.

    Parameters
    ----------
    experiment : Experiment
        From :func:`opinionsim.load_experiment`.
    loaded : LoadedParts, optional
        Models and classifiers of the experiment; default they are loaded to plan.
    only : collection of str, optional
        Ids of the runs; default all.

    Returns
    -------
    dict of str to RunCounts
        By run id. Calls are counted as in :func:`opinionsim.plan`, including those of judges, if no reply is rejected.

    Raises
    ------
    SpecError, MeasurementError
        As :func:`opinionsim.plan`.
    """
    specification.require_experiment(experiment)
    planning = _Planning(experiment, loaded or LoadedParts(experiment, to_plan=True), _chosen(experiment, only))
    return {
        run_id: RunCounts(sum(map(len, planning.asked(run_id).values())), planning.dropped.get(run_id, 0))
        for run_id in planning.runs
    }


def _chosen(experiment: specification.Experiment, only: Collection[str] | None) -> dict[str, specification.PlannedRun]:
    """Distinct runs by id: all of them, or those in `only`."""
    runs = {run.run_id: run for run in experiment.runs}
    if only is None:
        return runs
    if isinstance(only, str):
        raise SpecError(f"only must be a collection of run ids; got the text {only!r}")
    for run_id in only:
        if run_id not in runs:
            raise SpecError(f"only: {run_id!r} is not the id of a run of {experiment.spec.name}")
    wanted = frozenset(only)
    return {run_id: run for run_id, run in runs.items() if run_id in wanted}


@dataclass(frozen=True)
class _Work:
    """Calls, characters and texts of one run.

    Attributes
    ----------
    calls, characters : Counter of (Model, str)
        Number of calls, and characters of their prompts, by model and kind of call.
    written : Counter of (Model, str)
        Tokens of their replies.
    chains : (int, int)
        Length of the chain of dependent calls of agents, and of that of judges.
    texts : int
        Texts to be coded, once for each instrument.
    adaptive : bool
        Whether the schedule depends on measured opinions.
    shared : Counter of (Model, str)
        Characters of the beginnings of prompts that earlier prompts of the run had.
    """

    calls: Counter[tuple[Model, str]]
    characters: Counter[tuple[Model, str]]
    chains: tuple[int, int]
    texts: int
    adaptive: bool = False
    shared: Counter[tuple[Model, str]] = field(default_factory=Counter)
    written: Counter[tuple[Model, str]] = field(default_factory=Counter)

    @property
    def width(self) -> float:
        """Average number of calls in flight with unlimited slots."""
        return sum(self.calls.values()) / max(sum(self.chains), 1)

    def chain_s(self, rates: Mapping[Model, Rates]) -> float:
        """Time of the longest chain, at the mean latency of calls of agents and of judges."""
        total = 0.0
        for judges, chain in enumerate(self.chains):
            own = [(calls, rates[model]) for (model, _), calls in self.calls.items() if model.judges == bool(judges)]
            taken = sum(calls * each.latency_s for calls, each in own)
            total += chain * taken / max(sum(calls for calls, _ in own), 1)
        return total


class _Planning:
    """The making of a forecast.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    loaded : LoadedParts
        Models and classifiers of the experiment.
    runs : dict of str to PlannedRun
        The runs to forecast, by id.

    Attributes
    ----------
    models : list of Model
        Models of the agents, in the order of the cells, then those of judges.
    judges : dict of str to Model
        The model behind each instrument that asks one, by the identity of the instrument.
    dropped : dict of str to int
        Turns of each run that drop out because of events.
    timed : tuple of str
        Lanes for which the latency of a call is assumed or given.
    """

    def __init__(
        self, experiment: specification.Experiment, loaded: LoadedParts, runs: Mapping[str, specification.PlannedRun]
    ) -> None:
        self.runs = runs
        self._resources = experiment.resources
        self._cells = [(run.run_id, id(run.cell)) for run in experiment.runs]
        self._loaded = loaded
        self._instruments = instruments_by_run(experiment.runs, loaded)
        self._unusual: dict[str, None] = {}
        self._unset: list[SpecError] = []
        self.dropped: dict[str, int] = {}
        self.timed: tuple[str, ...] = ("now",)
        self._turns = self._counted()
        read = {each.instrument_id: each for run_id in runs for each in self._instruments[run_id]}
        self.judges: dict[str, Model] = {}
        self._questions: dict[str, int] = {}
        #: Instruments that ask the authors of texts.
        self._of_authors = {identity: each for identity, each in read.items() if each.asks_author}
        for identity, each in read.items():
            if asks(each.classifier):
                if each.classifier.endpoint is not None:
                    endpoint, name = each.classifier.endpoint, str(each.classifier.options["model"])
                    self.judges[identity] = Model(name, True, endpoint.max_tokens, endpoint.price, endpoint.lane)
                self._questions[identity] = background.run(questions(each))
        cells = {id(run.cell): run for run in runs.values()}.values()
        agents = [self._agent(model, run) for run in cells for model in run.spec.chat_models]
        asked = [each for run in cells for each in self._judges(run.run_id).items()]
        self.judges |= dict(asked)
        self.models = list(dict.fromkeys([*agents, *(model for _, model in asked)]))
        self._rates: Mapping[Model, Rates] = {}
        self._acted_out = 0

    def _agent(self, model: specification.ModelSpec, run: specification.PlannedRun) -> Model:
        endpoint = self._loaded.endpoint(model, run.spec, self._resources.pack(run.spec.pack))
        return Model(model.name, False, model.max_tokens, endpoint.price, endpoint.lane)

    def _judges(self, run_id: str) -> dict[str, Model]:
        """The models that answer instruments; for those that ask authors, where a run has several, its first."""
        run = self.runs[run_id]
        first = [self._agent(model, run)._replace(judges=True, max_tokens=1) for model in run.spec.chat_models[:1]]
        return {**self.judges, **{identity: model for identity in self._of_authors for model in first}}

    def _claim(self, run_id: str) -> str:
        claim = self._resources.claim(self.runs[run_id].spec)
        return "" if claim is None else claim.text

    def _counted(self) -> dict[str, CountedTurns]:
        """The turns, counted, of each run that makes calls and can be drawn; equal schedules are counted once."""
        known: dict[str, CountedTurns | None] = {}
        found = {}
        for run_id, run in self.runs.items():
            acting = {name: value for name, value in run.cell.fields.items() if name not in _TOLD}
            key = canonical_json(
                [acting, run.spec.cognition.model_dump(mode="json", include={"memory", "draws"}), run.block]
            )
            if key not in known:
                known[key] = self._turns_of(run) if run.spec.chat_models or run.spec.seats else None
            if (turns := known[key]) is None:
                continue
            self.dropped[run_id] = turns.dropped
            if turns.calls or run.spec.seats:
                found[run_id] = turns
        if self._unset and len(self._unset) == len(known):
            # No draw can be used: what was specified is at fault, and not chance.
            raise self._unset[0]
        return found

    def _turns_of(self, run: specification.PlannedRun) -> CountedTurns | None:
        """The turns of a run; None if it cannot be set up, as where its network is drawn without an edge."""
        try:
            parts = assemble(run, self._resources)
        except SpecError as error:
            self._unset.append(error)
            return None
        with specification.naming_own_part(run.spec):
            return CountedTurns(parts)

    def _awaited(self, run_id: str) -> set[str]:
        """The instruments whose opinions of reports a run's schedule waits for."""
        first = {each.variable: each.instrument_id for each in reversed(self._instruments[run_id]) if not each.about}
        return {first[variable] for variable in self._turns[run_id].needs if variable in first}

    def asked(self, run_id: str) -> dict[Sort, np.ndarray]:
        """Turns that the agent remembers before each call of a run, by sort of call; 0 for calls of judges."""
        if run_id not in self._turns:
            return {}
        turns, awaited = self._turns[run_id], self._awaited(run_id)
        found = dict(turns.remembered)
        for each in self._instruments[run_id]:
            if each.instrument_id in self._questions:
                # A schedule has reports judged even by an instrument that does not read reports.
                kinds = each.coded | (turns.awaited if each.instrument_id in awaited else set())
                for act, items in turns.items(kinds, each.about).items():
                    found[each.instrument_id, act] = np.zeros(items * self._questions[each.instrument_id], int)
        return {sort: remembered for sort, remembered in found.items() if len(remembered)}

    def work(self, rates: Mapping[Model, Rates]) -> dict[str, _Work]:
        """The work of each run, from acting out one run of every condition.

        Conditions that differ only in their topic count as one. The length of a prompt grows with that of its claim, so
        the run whose claim is nearest to the mean length represents all.
        """
        self._rates = rates
        conditions: defaultdict[str, list[str]] = defaultdict(list)
        for run_id, run in self.runs.items():
            told = {name: value for name, value in run.cell.fields.items() if name not in ("topic", "independent")}
            conditions[canonical_json([told, run.spec.topic.masked])].append(run_id)
        most = max(_FEWEST_ACTED_OUT, _ACTED_OUT // max(len(conditions), 1))
        found: dict[str, _Work] = {}
        for alike in conditions.values():
            usable = [run_id for run_id in alike if run_id in self._turns]
            lengths = {run_id: len(self._claim(run_id)) for run_id in usable or alike}
            mean = fmean(lengths.values())
            dry = self._act_out(min(lengths, key=lambda run_id: abs(lengths[run_id] - mean)), usable, most)
            found.update((run_id, self._takes(run_id, dry)) for run_id in alike)
        return {run_id: found[run_id] for run_id in self.runs}

    def _act_out(self, run_id: str, alike: Collection[str], most: int) -> DryRun | None:
        """Act out one run, with the judges of all runs it represents; None if it makes no call or cannot be drawn."""
        run = self.runs[run_id]
        try:
            parts = assemble(run, self._resources)
        except SpecError:
            return None
        self._unusual.update(dict.fromkeys(_unusual(run, parts)))
        if run_id not in self._turns:
            return None
        turns, models = self._turns[run_id], self._models(run_id)

        @cache
        def reply(sort: Sort) -> str:
            rates = self._rates.get(models[sort[0]])
            # What persons write is assumed to be as long as what most models do.
            return "x" * (_WRITTEN if rates is None else rates.reply(sort[1], dry.words.get(sort)).characters)

        judges = {each.instrument_id: each for other in alike for each in self._instruments[other]}
        asking = [each for identity, each in judges.items() if identity in self.judges]
        dry = DryRun(parts, reply)
        with specification.naming_own_part(run.spec):
            background.run(dry.act_out(most / max(turns.calls, 1), most, asking))
        self._acted_out += sum(len(dry.asked.get(sort, ())) for sort in self.asked(run_id))
        return dry

    def _models(self, run_id: str) -> dict[str, Model]:
        """The models of a run, by the first entry of a sort of call."""
        labels = self._turns[run_id].models
        agents = {label: self._agent(model, self.runs[run_id]) for label, model in labels.items()}
        return {**self._judges(run_id), **agents}

    def _takes(self, run_id: str, dry: DryRun | None) -> _Work:
        """The work of a run that the dry run represents."""
        if dry is None or run_id not in self._turns:
            return _Work(Counter(), Counter(), (0, 0), 0)
        turns, models = self._turns[run_id], self._models(run_id)
        calls, characters, shared, written = (Counter[tuple[Model, str]]() for _ in range(4))
        for sort, remembered in self.asked(run_id).items():
            key = models[sort[0]], sort[1]
            calls[key] += len(remembered)
            characters[key] += dry.characters(sort, remembered)
            shared[key] += dry.characters(sort, remembered, self._served(key[0]))
            size = self._rates[key[0]].reply(sort[1], dry.words.get(sort))
            written[key] += len(remembered) * size.tokens  # type: ignore[assignment]
        judged = [self._questions[each] for each in self._awaited(run_id) if each in self.judges]
        awaited = max(judged, default=0) * sum(turns.items(turns.awaited).values())
        path = turns.calls if turns.path is None else turns.path
        texts = sum(sum(turns.items(each.coded, each.about).values()) for each in self._instruments[run_id])
        chain = max(awaited, int(any(model.judges for model, _ in calls)))
        return _Work(calls, characters, (path, chain), texts, turns.path is None, shared, written)

    def _served(self, model: Model) -> Counted:
        """Gives the characters that a provider's cache serves of beginnings with so many characters."""
        rule, tokens = model.price and model.price.cache, self._rates[model].tokens_per_character
        return lambda characters: rule.served(characters * tokens) / tokens if rule else characters

    def missing(self, whole: Mapping[str, _Work], store: stores.Store, complete: Collection[str]) -> dict[str, _Work]:
        """The remaining work: runs that are not complete, and texts of complete runs that are not coded."""
        found = {run_id: work for run_id, work in whole.items() if run_id not in complete}
        readers: defaultdict[tuple[str, frozenset[str], str], list[str]] = defaultdict(list)
        for run_id in complete:
            for each in self._instruments[run_id]:
                readers[each.instrument_id, each.coded, each.about].append(run_id)
        for (identity, kinds, about), run_ids in readers.items():
            for run_id, items in store.uncoded(run_ids, identity, kinds, about=about).items():
                work = found.get(run_id, _Work(Counter(), Counter(), (0, 0), 0))
                chains = 0, work.chains[1] | (identity in self.judges)
                found[run_id] = replace(work, texts=work.texts + len(items), chains=chains)
                own = [key for key in whole[run_id].calls if key[0] == self._judges(run_id).get(identity)]
                if own:
                    calls = len(items) * self._questions[identity]
                    asked, characters = (
                        sum(each[key] for key in own) for each in (whole[run_id].calls, whole[run_id].characters)
                    )
                    work.calls[own[0]] += calls
                    size = self._rates[own[0][0]].reply(own[0][1])
                    work.written[own[0]] += calls * size.tokens  # type: ignore[assignment]
                    work.characters[own[0]] += round(calls * characters / asked)
        return found

    def forecast(self, work: Mapping[str, _Work], slots: int) -> Forecast:
        """The forecast of several runs together."""
        prices = self._loaded.prices
        models = self._by_model(work.values())
        calls = sum(model.calls for model in models)
        chain = max((sum(each.chains) for each in work.values()), default=0)
        work_s = sum(model.attempts * model.latency_s for model in models)
        chain_s = max((each.chain_s(self._rates) for each in work.values()), default=0.0)
        adaptive = any(each.adaptive for each in work.values())
        # Of an adaptive run, nothing is known but that it has a round.
        known = max(
            (min(sum(each.chains), 1) if each.adaptive else sum(each.chains) for each in work.values()), default=0
        )
        time_s = max(chain_s, work_s / slots), min(work_s, work_s / slots + (1 - 1 / slots) * chain_s)
        found = Forecast(
            cells=len({cell for run_id, cell in self._cells if run_id in work}),
            runs=len(work),
            calls=calls,
            texts=sum(each.texts for each in work.values()),
            longest_path=None if adaptive else chain,
            width=sum(each.width for each in work.values()),
            slots=slots,
            useful_slots=-(-calls // chain) if chain else 1,
            rounds=max(chain, calls / slots),
            least_s=time_s[0],
            most_s=time_s[1],
            sequential_s=work_s,
            models=models,
            acted_out=self._acted_out,
            currency=prices.currency,
            price_date=prices.date,
            # Where not all runs are open at a time, others begin when these have ended.
            lanes=forecast_lanes(
                models, (known, chain * -(-len(work) // OPEN_RUNS)), dict.fromkeys(self.timed, time_s)
            ),
        )
        return replace(found, notes=tuple(self._notes(found)), lacking=tuple(self._loaded.missing))

    def _by_model(self, work: Iterable[_Work]) -> tuple[ModelForecast, ...]:
        """The forecast for each model."""
        counted: dict[Model, np.ndarray] = {model: np.zeros(4) for model in self._rates}
        for each in work:
            for place, counter in enumerate((each.calls, each.characters, each.shared, each.written)):
                for (model, _), n in counter.items():
                    counted[model][place] += n
        return tuple(self._model_forecast(model, *figures.tolist()) for model, figures in counted.items())

    def _model_forecast(self, model: Model, n: float, prompts: float, begun: float, replies: float) -> ModelForecast:
        rates, n = self._rates[model], round(n)
        asked = rates.calls_per_reply
        received = round(prompts * rates.tokens_per_character * asked)
        cached = round(begun * rates.tokens_per_character * asked)
        written = round(replies * asked)
        price = None if model.price is None else model.price.at(model.lane)
        lanes = {} if model.price is None else costs_by_lane(model.price, received, written, cached, asked)
        rebate = None if price is None else price.saved(lanes[model.lane].cached_tokens)
        return ModelForecast(
            name=model.name,
            judges=model.judges,
            calls=n,
            input_characters=round(prompts),
            calls_per_reply=asked,
            input_tokens=received,
            output_tokens=written,
            cost=None if rebate is None else lanes[model.lane].cost + rebate,
            price=spell_price(price, self._loaded.prices.currency),
            tokens_per_character=rates.tokens_per_character,
            reply_tokens=replies / n if n else rates.reply("").tokens,
            latency_s=rates.latency_s,
            observed=rates.calls,
            shared_tokens=cached,
            rebate=rebate,
            lanes=lanes,
        )

    def _notes(self, forecast: Forecast) -> list[str]:
        """Notes on the basis of the figures, on the agents and on the models."""
        limits, tokens = self._loaded.limits, forecast.input_tokens + forecast.output_tokens
        exceeded = limits.exceeded_by(Usage(forecast.attempts, tokens, forecast.cost or 0.0))
        return sentences(
            "opinionsim.planning",
            "notes.txt",
            f=forecast,
            money=partial(spell_money, currency=forecast.currency),
            exceeded=[(name, getattr(limits, name)) for name in exceeded],
            missing=self._loaded.missing,
            read_by={each.classifier.name for run_id in self.runs for each in self._instruments[run_id]},
            unset=str(self._unset[0]) if self._unset else "",
            unusual=self._unusual,
            scales={each.scale: _sampled(each.scale) for each in self._of_authors.values()},
            shared_blocks=_shared_blocks(self.runs.values()),
            few=_FEW_BLOCKS,
            serving=serving,
            cards={model.name: card_of(model.name) for model in forecast.models if not model.judges},
            warnings=list(self._loaded.warnings()),
        )


def _sampled(scale: OpinionScale) -> tuple[float, float]:
    """A small standard error on a scale, and the number of answers spread evenly over it whose mean has that error.

    The standard error of a mean of n draws is SD / sqrt(n), so that n = variance / error ** 2.
    """
    error = (scale.highest - scale.lowest) / _PRECISE
    return error, float(scale.values.var()) / error**2


def _shared_blocks(runs: Iterable[specification.PlannedRun]) -> int:
    """Number of blocks that topics share, where they are so few that intervals for topics like these would be long."""
    pairs = {(run.block, str(run.cell.fields.get("topic", {}).get("name"))) for run in runs}
    blocks = len({block for block, _ in pairs})
    return blocks if blocks < _FEW_BLOCKS and len(pairs) > blocks else 0


def _unusual(run: specification.PlannedRun, parts: RunParts) -> Iterator[str]:
    """Notes on unusual populations and networks."""
    n, network = len(parts.population), parts.network
    if network is not None and not network.complete:
        joined = np.union1d(network.speakers, network.listeners)
        given = run.spec.interaction.contacts
        if given is not None and given.kind in ("file", "edges") and joined[-1] + 1 < n:
            yield f"The network has {joined[-1] + 1} agents and the population {n}."
        if len(joined) < n:
            yield f"{n - len(joined)} of {n} agents have no neighbour in the network and meet nobody."
    yield from specification.reader_notes(run.spec)
