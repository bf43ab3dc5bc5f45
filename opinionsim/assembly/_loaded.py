"""Models, prices and instruments of an experiment, each loaded once before the first call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opinionsim import llm
from opinionsim.assembly._assemble import RunParts
from opinionsim.assembly._copies import check_copies
from opinionsim.classifiers import Classifier, asks, load_classifier
from opinionsim.engine import Member
from opinionsim.errors import MeasurementError, SpecError, meant
from opinionsim.foundation.addresses import is_near
from opinionsim.foundation.documents import KeyPath
from opinionsim.foundation.streams import canonical_json
from opinionsim.llm import (
    Endpoint,
    Person,
    Price,
    PriceTable,
    ReplayOnly,
    Seat,
    load_prices,
    planning,
    settle,
    warnings_for,
)
from opinionsim.measurement import Instrument, check_abilities
from opinionsim.metrics import evidence_of
from opinionsim.prompts import PromptPack
from opinionsim.registry import find
from opinionsim.specification import Cell, Experiment, ExperimentSpec, InstrumentSpec, ModelSpec, SeatSpec

#: Models that an error names.
_LISTED = 4
#: Fields of a run's identity that change nothing but prompts.
_WORDS = ("cognition", "prompts", "task")

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class LoadedParts:
    """Models, prices and classifiers of an experiment, each loaded once before the first call.

    Parameters
    ----------
    experiment : Experiment
        The experiment that names them.
    chat_model : BaseChatModel, optional
        Replaces every model that plays agents; classifiers keep their own models. Names in the specification still
        identify the runs, so the scripted model, and no other, must be named ``scripted``.
    chat_models : mapping of str to BaseChatModel, optional
        Models by the names that the specification uses for them; these need not be names of real models.
    seats : mapping of int or str to Seat
        People at seats of the specification, by number for participants and by role for other members. If a seat does
        not set a limit, the limit of the specification applies.
    people : Person, optional
        Answers at every other seat of the specification.
    to_plan : bool
        Whether to load them only for planning, which makes no calls and needs no keys or weights.

    Attributes
    ----------
    missing : list of str
        One sentence for each missing key, extra or file of weights that a run needs.
    prices : PriceTable
        Prices of tokens.
    limits : Limits
        The experiment's budget.

    Raises
    ------
    SpecError, MeasurementError
        If a model, classifier or price table cannot be loaded, or money is limited but a price is unknown.
    """

    def __init__(
        self,
        experiment: Experiment,
        chat_model: BaseChatModel | None = None,
        *,
        chat_models: Mapping[str, BaseChatModel] | None = None,
        seats: Mapping[int | str, Seat] | None = None,
        people: Person | None = None,
        to_plan: bool = False,
    ) -> None:
        self._chat_model = chat_model
        self._chat_models = dict(chat_models or {})
        self._seats = dict(seats or {})
        self._people = people
        self._to_plan = to_plan
        self._source = experiment.source
        self._specs: dict[str, ModelSpec] = {}
        self._models: dict[str, BaseChatModel] = {}
        self._clients: dict[str, llm.ModelClient] = {}
        self._endpoints: dict[str, Endpoint] = {}
        self._classifiers: dict[str, Classifier] = {}
        self._instruments: dict[str, Instrument] = {}
        self._judges: dict[str, llm.ModelClient] = {}
        self._named: set[str] = set()
        self._execution = execution = experiment.spec.execution
        self.prices: PriceTable = load_prices(experiment.resources.path(execution.prices))
        self.limits = execution.budget
        self.missing: list[str] = []
        self._unheeded = list(_unheeded(experiment.cells))
        if to_plan:
            with planning() as self.missing:
                self._load(experiment)
        else:
            self._load(experiment)

    def _load(self, experiment: Experiment) -> None:
        self._check_seats([cell.spec for cell in experiment.cells])
        check_copies(experiment)
        for cell in experiment.cells:
            pack = experiment.resources.pack(cell.spec.pack)
            for model in cell.spec.chat_models:
                self._check_name(model.name)
                self._check_price(self.endpoint(model, cell.spec, pack), model.name)
            self.instruments(cell.spec)
        lanes = self._execution.lane
        for name in sorted({*lanes} - self._named) if isinstance(lanes, dict) else ():
            valid = ", ".join(sorted(self._named)) or "none"
            raise SpecError(f"execution.lane: no model {name!r}{meant(name, self._named)}; valid: {valid}")

    def _check_seats(self, specs: Sequence[ExperimentSpec]) -> None:
        """Refuse a person for a seat that no run has."""
        known = {member for spec in specs for member in spec.seats}
        for member in self._seats.keys() - known:
            valid = ", ".join(sorted(map(str, known))) or "none"
            raise SpecError(
                f"seats: no run has a seat {member!r}; valid: {valid}; a member of the specification has one with "
                "`seat: {}`"
            )
        if self._people is not None:
            Seat(self._people)  # who cannot answer is refused

    def require_people(self, experiment: Experiment) -> None:
        """Check that a person is given for every seat.

        Raises
        ------
        SpecError
            If a seat has no person.
        """
        for cell in experiment.cells:
            for member, seat in cell.spec.seats.items():
                if self._seat(member, seat) is None:
                    raise SpecError(
                        f"{experiment.spec.name} has a seat for a person ({member}), whom `run` cannot ask. Take the "
                        "seat with `opinionsim room SPEC`, or in Python pass people=PERSON to run."
                    )

    def _seat(self, member: int | str, seat: SeatSpec) -> Seat | None:
        """The seat with its person; None where there is none."""
        given = self._seats.get(member) or (None if self._people is None else Seat(self._people))
        if given is None:
            return None
        limits = {name: getattr(given, name) or getattr(seat, name) for name in ("timeout_s", "words", "min_words")}
        return replace(given, **limits)

    def _check_name(self, name: str) -> None:
        """Refuse a scripted model under another name, or another model as ``scripted``, because names identify runs."""
        given = self._chat_model
        if given is not None and isinstance(given, llm.ScriptedChatModel) != (name == "scripted"):
            raise SpecError(
                f"the experiment names {name!r} but chat_model is a {type(given).__name__}; give the model its own "
                "name in the specification; only the scripted model is named 'scripted'",
                "model.name",
            )

    def _check_price(self, endpoint: Endpoint, name: str) -> None:
        """Refuse to limit money if the price of a model is unknown."""
        if self.limits.money is not None and endpoint.price is None:
            raise SpecError(
                f"execution.budget.money: the price of {name!r} is not known; add it to a copy of the price table "
                "named by execution.prices, or limit tokens instead"
            )

    def _terms(self, model: ModelSpec) -> dict[str, Any]:
        """Price and lane of a model, with the settings of the lane.

        Raises
        ------
        SpecError
            If the price table lists no such lane of the model.
        """
        price, lane = _price_of(model, self.prices), self._execution.lane_of(model.name)
        self._named.add(model.name)
        if lane != "now" and (price is None or lane not in price.lanes):
            listed = sorted({name for name, each in self.prices.prices.items() if lane in each.lanes})
            listed[_LISTED:] = [f"{len(listed) - _LISTED} more"] if len(listed) > _LISTED else []
            where = " on your own server" if price != self.prices.price(model.name) else ""
            raise SpecError(
                f"execution.lane: the price table lists no lane {lane!r} for {model.name!r}{where}; it lists it for "
                f"{', '.join(listed) or 'no model'}; add it to a copy of the table, or choose the lane by model, as in "
                "lane: {openai:o3: flex}"
            )
        return {"price": price, "lane": lane, "terms": self._execution}

    def endpoint(self, model: ModelSpec, spec: ExperimentSpec, pack: PromptPack) -> Endpoint:
        """The endpoint of a model; the scripted model is bound to the run's prompt pack and scale."""
        key = self._key(model, spec)
        if key not in self._endpoints:
            terms = {"max_tokens": model.max_tokens, "replies": model.replies, **self._terms(model)}
            if self._to_plan and self._chat_model is None and _valid_script(model, spec):
                self._endpoints[key] = Endpoint(ReplayOnly(), model.name, False, **terms)
            else:
                client = self.client(model, spec, pack)
                self._endpoints[key] = endpoint = Endpoint(client, client.account, client.networked, **terms)
                _check_lane(endpoint)
        return self._endpoints[key]

    def endpoints(self) -> list[Endpoint]:
        """All models that play agents or code texts."""
        judges = (each.endpoint for each in self._classifiers.values() if asks(each))
        return [*self._endpoints.values(), *(each for each in judges if each is not None)]

    def client(self, model: ModelSpec, spec: ExperimentSpec, pack: PromptPack) -> llm.ModelClient:
        """The client of a chat model."""
        key = self._key(model, spec)
        if key not in self._clients:
            found = self._model(model)
            if isinstance(found, llm.ScriptedChatModel):
                with _field("model.options"):
                    found = found.bound(pack.marks.answering(spec.acts), spec.scale.scale())
            self._clients[key] = llm.ModelClient(found, model.name, model.max_reply_bytes)
        return self._clients[key]

    def contents(self, model: ModelSpec, spec: ExperimentSpec, pack: PromptPack) -> str:
        """Name and fingerprint of a model in this process, as in its replies; empty for other models."""
        found = getattr(self.client(model, spec, pack).model, "model", "")
        return found if isinstance(found, str) and llm.in_process(found) else ""

    def cast(self, spec: ExperimentSpec, parts: RunParts) -> tuple[Member, ...]:
        """The cast of a run: who answers for each member, and the kind of evidence of its texts.

        Texts of a person at a seat, and texts written beforehand, count as those of people.
        """
        members = list(parts.cast())
        for agent, (member, model) in enumerate(zip(members, parts.models, strict=False)):
            if agent in spec.given:
                members[agent] = replace(member, evidence="human")
            elif (key := parts.seats.get(agent)) is not None:
                seat = self._seat(key, spec.seats[key])
                members[agent] = replace(member, endpoint=seat or member.endpoint, evidence=_evidence(seat))
            else:
                client, endpoint = self.client(model, spec, parts.pack), self.endpoint(model, spec, parts.pack)
                members[agent] = replace(member, endpoint=endpoint, evidence=client.evidence)
        return tuple(members)

    def _key(self, model: ModelSpec, spec: ExperimentSpec) -> str:
        stated = model.model_dump(mode="json", exclude={"share"})
        bound = model.name == "scripted" or isinstance(self._model(model), llm.ScriptedChatModel)
        if not bound:
            return canonical_json([stated])
        answers = sorted(act.scripted for act in spec.acts)
        return canonical_json([stated, spec.pack, spec.scale.model_dump(mode="json"), answers])

    def _given(self, name: str) -> BaseChatModel | None:
        """The object that stands for a model of this name, if there is one."""
        return self._chat_model or self._chat_models.get(name)

    def _model(self, model: ModelSpec) -> BaseChatModel:
        key = canonical_json(model.model_dump(mode="json", exclude={"share", "replies"}))
        if key not in self._models:
            self._specs[key] = model
            self._models[key] = self._given(model.name) or llm.load_chat_model(
                model.name, temperature=model.temperature, max_tokens=model.max_tokens, **model.options
            )
        return self._models[key]

    def warnings(self) -> list[str]:
        """Notes for readers of the results on models, and on conditions without effect on equations."""
        agents: list[tuple[str, dict[str, Any]]] = []
        if self._chat_model is None:
            agents = [(model.name, model.options) for model in self._specs.values()]
        agents += [(client.name, {}) for client in self._judges.values()]
        found = (warnings_for(name, options) for name, options in agents)
        return list(dict.fromkeys([*self._unheeded, *(text for texts in found for text in texts)]))

    def evidence(self, spec: ExperimentSpec, pack: PromptPack) -> str:
        """Kind of evidence of a run, joined from the kinds of all its authors."""
        if not spec.prompted:
            return "human" if spec.interaction.recorded else spec.model.evidence
        kinds = {self.client(model, spec, pack).evidence for model in spec.chat_models}
        kinds |= {_evidence(self._seat(*each)) for each in spec.seats.items()} | ({"human"} if spec.given else set())
        return evidence_of(kinds)

    def instruments(self, spec: ExperimentSpec) -> tuple[Instrument, ...]:
        """The instruments of a run, each with its classifier, in the order of the specification."""
        return tuple(self._of_claim(wanted, spec) for wanted in spec.instruments)

    def _of_claim(self, wanted: InstrumentSpec, spec: ExperimentSpec) -> Instrument:
        """An instrument, if there is a claim where its classifier needs one."""
        found = self._instrument(wanted, spec)
        if found.classifier.needs_claim and not spec.has_topic:
            problem = f"classifier {wanted.classifier.name!r} needs a claim, which a task does not have; give a topic"
            raise self._source.error(_place(wanted, spec), problem)
        if found.asks_author:
            # An object may stand for a name, but never for that of the scripted model.
            named = [each for each in spec.chat_models if each.name == "scripted" or not self._given(each.name)]
            why = [no for each in named if (no := llm.without_log_probabilities(each.name, each.options))]
            if why or not spec.chat_models:
                problem = f"classifier {wanted.classifier.name!r} reads token probabilities; "
                raise self._source.error(_place(wanted, spec), problem + (why or ["an equation has none"])[0])
        return found

    def _instrument(self, wanted: InstrumentSpec, spec: ExperimentSpec) -> Instrument:
        key = canonical_json([wanted.instrument_id, sorted(wanted.kinds)])
        if key not in self._instruments:
            try:
                classifier = self.classifier(wanted)
                about, whole = wanted.about or "", bool(wanted.replies)
                check_abilities(classifier, wanted.variable, context=wanted.context, about=about, whole=whole)
            except SpecError as error:
                raise self._source.error(_place(wanted, spec), str(error)) from error.__cause__
            part = find("classifier", wanted.classifier.name)
            self._instruments[key] = Instrument(
                wanted.instrument_id,
                wanted.variable,
                classifier,
                wanted.kinds,
                wanted.context,
                about,
                part.identity,
                part.code,
                whole,
            )
        return self._instruments[key]

    def classifier(self, wanted: InstrumentSpec) -> Classifier:
        """The classifier of an instrument."""
        named, scale = wanted.classifier, wanted.opinions
        key = canonical_json([named.model_dump(mode="json"), scale.points, scale.labels])
        if key not in self._classifiers:
            target = find("classifier", named.name).target
            if self._to_plan and getattr(target, "loads_weights", False):
                # A forecast needs only the class, and says what a run lacks to load its weights.
                try:
                    load_classifier(named.name, scale, **named.options)
                except llm.NotLoaded:
                    pass
                except MeasurementError as error:
                    llm.lacking(error)
                return target  # type: ignore[no-any-return]
            self._classifiers[key] = found = load_classifier(named.name, scale, **named.options)
            if asks(found) and found.endpoint is not None:
                name = str(found.options["model"])
                judge = ModelSpec(name=name, options=dict(named.options.get("options") or {}))
                found.endpoint = replace(found.endpoint, **self._terms(judge))
                _check_lane(found.endpoint)
                self._check_price(found.endpoint, name)
                if isinstance(found.endpoint.client, llm.ModelClient):
                    self._judges[key] = found.endpoint.client
        return self._classifiers[key]


def _check_lane(endpoint: Endpoint) -> None:
    """Refuse a batch lane if the provider has no queue that is known, or the model cannot be asked through it.

    Raises
    ------
    SpecError
        If so.
    """
    if endpoint.lane != "batch":
        return
    from langchain_core.language_models import FakeListChatModel

    client = endpoint.client
    # While planning, a model of a package that is not installed has a substitute.
    if isinstance(client, llm.ModelClient) and not isinstance(client.model, FakeListChatModel):
        with _field("execution.lane"):
            find("lane", endpoint.queue).target(client)


def _price_of(model: ModelSpec, prices: PriceTable) -> Price | None:
    """Price of a model's tokens: zero on your own server, and None if unknown."""
    price = prices.price(model.name)
    # A local server may use any name for its model, one in the package's table included. Only a table of the user's own
    # can set a price, for example if the server forwards calls.
    if is_near(str(model.options.get("base_url") or "")) and (price is None or prices.packaged):
        return Price(0.0, 0.0, 0.0, prices.date)
    return price


def _unheeded(cells: Iterable[Cell]) -> Iterator[str]:
    """Notes on axes that have no effect on an equation because it reads no prompts."""
    groups = defaultdict[str, list[Cell]](list)
    for cell in cells:
        if not cell.spec.model.prompted:
            heeded = {name: each for name, each in cell.fields.items() if name not in _WORDS}
            groups[canonical_json(heeded)].append(cell)
    for own in groups.values():
        if len({canonical_json(cell.fields) for cell in own}) > 1:
            axes = [axis for axis in own[0].axes if len({str(cell.axes.get(axis)) for cell in own}) > 1]
            yield (
                f"{', '.join(axes)}: an equation reads no prompts, so {len(own)} conditions of "
                f"{own[0].spec.model.label} have the same numbers; give it a separate grid under `sweep`."
            )


def _evidence(seat: Seat | None) -> str:
    """Kind of evidence of the texts of a seat; people if the seat is not taken yet."""
    return "human" if seat is None else str(seat.evidence)


def _place(wanted: InstrumentSpec, spec: ExperimentSpec) -> KeyPath:
    """The field of a specification that names the classifier of an instrument."""
    named = [each.variable for each in spec.measurement.instruments]
    own = [each for each in spec.instruments if each.variable == wanted.variable].index(wanted)
    places = [place for place, variable in enumerate(named) if variable == wanted.variable][own:]
    return ("measurement", *(("instruments", places[0]) if places else ()), "classifier")


def _valid_script(model: ModelSpec, spec: ExperimentSpec) -> bool:
    """Whether a model is the scripted one with valid options; does not load LangChain, which is slow."""
    if model.name != "scripted":
        return False
    options: dict[str, Any] = {} if model.temperature is None else {"temperature": model.temperature}
    try:
        settle(spec.scale.scale(), **options, **model.options)
    except (SpecError, TypeError):  # loading the model says it better
        return False
    return True


@contextmanager
def _field(name: str) -> Iterator[None]:
    """Add the name of a field to an error."""
    try:
        yield
    except SpecError as error:
        raise SpecError(f"{name}: {error}") from error.__cause__
