"""The rows that a store accepts and returns: plain, frozen, with keys independent of the order of insertion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import add
from typing import Any, Literal, NamedTuple

from opinionsim.errors import Cause, StoreError
from opinionsim.foundation.streams import run_name
from opinionsim.messages import ReplyStatus
from opinionsim.registry import AGENTS

#: Status of a run: not begun, under way or cut off, finished, ended before it was finished, or withdrawn for good by a
#: person who took part.
RunStatus = Literal["pending", "running", "complete", "incomplete", "withdrawn"]

#: Columns of a run beside its identity: what tables and figures group by.
SUMMARY = (
    *("seed", "topic", "category", "framing", "claim", "task", "truth", "confirmation_bias", "memory", "world"),
    *("model", "interaction", "network", "n_agents", "steps", "event_steps", "dropped_turns"),
)


class AbsentError(StoreError):
    """The store does not contain the requested item."""


@dataclass(frozen=True, slots=True)
class ExperimentRun:
    """One cell and replicate of an experiment, with its run and how that run is measured.

    Attributes
    ----------
    run_id : str
        The run. Cells that differ only in how they are measured share it.
    instrument_id : str or None
        The first stance instrument of the cell; None if it has none.
    replicate : int
        From 0.
    block : str
        Runs of one block share their random draws; contrasts are paired by it.
    cell : str
        Label of the cell, equal for its replicates.
    axes : dict of str to JSON value
        Value on each swept axis, by dotted path.
    instruments : dict of str to tuple of str
        Every instrument of the cell, by id, with the kinds of text that it reads there.
    every_report : bool
        Whether all reports of an agent count in tables of the cell, because none depends on another.
    uncounted : tuple of str
        Statuses and signs of conduct of texts whose opinions count in no table or figure of the cell.
    least_measured : float
        Minimum share of the participants with a turn that must be measured for a run to have a mean.
    topic_title : str
        Name of the topic in figures; it does not affect runs.
    declared : dict of JSON values
        Information that the interaction declares about itself for readers of a store.
    redraw : int
        From 0: number of the run within its replicate; redraws differ only in the seeds of their calls.
    """

    run_id: str
    instrument_id: str | None
    replicate: int
    block: str
    cell: str
    axes: Mapping[str, Any] = field(default_factory=dict)
    instruments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    every_report: bool = False
    uncounted: tuple[str, ...] = ("truncated",)
    least_measured: float = 0.5
    topic_title: str = ""
    declared: Mapping[str, Any] = field(default_factory=dict)
    redraw: int = 0

    def counts(self, turn: Any) -> bool:
        """Whether an opinion coded from the text of a turn, a row with `status` and `signs`, counts."""
        return self.status_of(turn) not in (*self.uncounted, "left_out")

    def status_of(self, turn: Any) -> str:
        """Status of such a text in tables: ``left_out`` if one of its signs excludes an answer from them."""
        out = turn.status not in self.uncounted and not set(self.uncounted).isdisjoint(turn.signs.split())
        return "left_out" if out else str(turn.status)

    @property
    def name(self) -> str:
        """Name of the run for display (:func:`opinionsim.foundation.streams.run_name`)."""
        return run_name(self.cell, self.replicate, self.redraw)


@dataclass(frozen=True, slots=True)
class DesignRow:
    """A design of a declared experiment: its cells and instruments as they were at one time.

    Attributes
    ----------
    experiment_id : str
        Identity of the experiment.
    name : str
        As in its specification.
    design_id : str
        Identity of its set of cells and instruments. Saving again under it replaces all fields below.
    spec, manifest : dict of JSON values
        The resolved specification and the manifest.
    runs : tuple of ExperimentRun
        Every cell and replicate.
    design : int
        Number of the design within its experiment, from 1; given by the store.
    saved_at : float
        Unix time; given by the store.
    """

    experiment_id: str
    name: str
    design_id: str
    spec: Mapping[str, Any]
    manifest: Mapping[str, Any]
    runs: tuple[ExperimentRun, ...] = ()
    design: int = 0
    saved_at: float = 0.0

    @property
    def study(self) -> str:
        """Name of the kind of study."""
        return str(self.manifest.get("study", AGENTS))

    @property
    def units(self) -> Sequence[tuple[str, Mapping[str, Any]]]:
        """The units of a study that keeps no runs, each with the values by which it differs from others."""
        found: Sequence[tuple[str, Mapping[str, Any]]] = self.manifest.get("units", ())
        return found

    @property
    def rows(self) -> list[ExperimentRun]:
        """The runs in the order of the rows of ``Results.runs``."""
        return sorted(self.runs, key=lambda x: (x.cell, x.replicate, x.redraw, x.run_id, x.instrument_id or ""))


class UnitRow(NamedTuple):
    """A replicate of a unit of work of a study that keeps no runs.

    Attributes
    ----------
    unit_id : str
        Identity of the unit: a hash of everything that determines its values, except the replicate.
    replicate : int
        From 0.
    values : mapping of str to JSON value
        What is kept, by name; of one that failed, at most what was known before.
    error : str
        Why it failed; empty if it did not.
    """

    unit_id: str
    replicate: int
    values: Mapping[str, Any]
    error: str = ""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as it is registered, before anything has happened.

    Attributes
    ----------
    run_id : str
        Hash of everything that can reach a prompt, a draw or a model.
    replicate : int
        From 0.
    block : str
        Runs of one block share their random draws.
    evidence : str
        ``scripted``, ``model``, ``equation`` or ``human``; ``human+model``, ``equation+model`` or ``mixed`` if its
        agents differ in it.
    fields : dict of JSON values
        The resolved identity fields.
    summary : dict
        One value for each name in :data:`SUMMARY`; ``seed``, ``n_agents``, ``steps`` and ``dropped_turns`` are int,
        ``truth`` is a scale point or None, the others str or None.
    expected : int or None
        Expected number of calls; None where that is not known.
    inputs : str
        Digest of everything that its prompts are made of, including the version of the package.
    wording : str or None
        Name of its prompt pack, ``@``, and a digest of the wording; None for runs without prompts.
    parts : dict of str to str
        The code of each user-written part that can affect it, by name (:attr:`opinionsim.registry.Part.code`).
    """

    run_id: str
    replicate: int
    block: str
    evidence: str
    fields: Mapping[str, Any]
    summary: Mapping[str, Any]
    expected: int | None = None
    inputs: str = ""
    wording: str | None = None
    parts: Mapping[str, str] = field(default_factory=dict)


class RunState(NamedTuple):
    """State of a run."""

    status: RunStatus
    """``pending``, ``running``, ``complete``, ``incomplete`` or ``withdrawn``."""
    epoch: int
    """How often the run has been leased."""
    owner: str
    """Owner of the last lease, to carry it out or to add opinions; empty before the first lease."""
    error: str
    """Why it is incomplete; empty otherwise."""
    held: bool = False
    """Whether the last lease has not been given back; its owner may have died."""
    generation: int = 0
    """How often it was begun anew."""
    inputs: str = ""
    """Digest of all that its prompts are made of, as last put on record."""
    expected: int | None = None
    """Expected number of calls; None where that is not known."""
    parts: Mapping[str, str] = {}
    """The code of the parts of the user's own that can reach it, by name, as last put on record."""
    cause: Cause = Cause()
    """The same as a value."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent of a run.

    Attributes
    ----------
    agent : int
        Index from 0.
    name : str
        Name of its persona.
    role : str
        ``participant``, ``moderator``, ...
    evidence : str
        What its texts come from: ``scripted``, ``model``, ``equation`` or ``human``.
    assigned_opinion : float or None
        Opinion assigned to the persona; None if there is none.
    persona : dict of JSON values
        Attributes of the persona.
    model : str
        Name of its chat model.
    """

    agent: int
    name: str
    role: str
    evidence: str
    assigned_opinion: float | None
    persona: Mapping[str, Any]
    model: str


class EdgeRow(NamedTuple):
    """A tie between two agents at the start of a run."""

    source: int
    """Speaker, where the network is directed."""
    target: int
    """Listener."""
    weight: float = 1.0
    """Weight of the tie."""


class TieRow(NamedTuple):
    """A tie that moved during a run with its weight, was added with weight 1, or was removed."""

    step: int
    """Last step it served in its old place; it serves in the new one from the next on."""
    old_source: int | None
    """Speaker before the change; None where the tie is added."""
    old_target: int | None
    """Listener before the change; likewise."""
    source: int | None
    """Speaker after the change; None where the tie is removed."""
    target: int | None
    """Listener after the change; likewise."""


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn and its message; `reads` names earlier turns (int) and external messages (str), in order.

    `signs` names the signs of conduct of the reply, `taken` those that were removed, separated by blanks.
    """

    turn: int
    step: int
    agent: int
    act: str
    kind: str
    reads: tuple[int | str, ...]
    text: str
    status: ReplyStatus = "answered"
    signs: str = ""
    taken: str = ""


class Doing(NamedTuple):
    """What a process at work on a store is doing."""

    in_flight: int
    """Calls in flight, over all its runs."""
    limit: int
    """Most calls in flight at once."""
    runs: int
    """Runs under way."""
    waiting: Mapping[str, float] = {}
    """Seconds until the rate limit of each account lets calls through again, for those that wait for it."""
    stopping: bool = False
    """Whether nothing more is begun."""


class Extent(NamedTuple):
    """The stored extent of a run.

    Attributes
    ----------
    seq : int
        Number of its last turn, tie or opinion; 0 before the first.
    paid : Paid
        Usage of its calls.
    """

    seq: int
    paid: Paid


class Columns(NamedTuple):
    """The rows of a run without its texts, with the columns of the store's tables.

    Attributes
    ----------
    state : RunState
        State of the run.
    seq : int
        Number of the last row.
    turns, ties : list
        Turns by index, and ties that moved, in order.
    opinions : list
        Opinions in the order of their turns; `about` is -1 if absent, `value` is None without an answer.
    """

    state: RunState
    seq: int
    turns: list[Any]
    ties: list[Any]
    opinions: list[Any]


@dataclass(frozen=True, slots=True)
class OpinionRow:
    """The opinion that an instrument read from the text of one turn.

    Attributes
    ----------
    instrument_id : str
        The instrument.
    turn : int
        Turn whose text was coded.
    value : float
        Most probable scale point; NaN for no answer.
    off_scale : float
        Probability in [0, 1] that the text is not an answer.
    probabilities : tuple of float, length k
        Over the scale points of the instrument; NaN for no answer.
    about : int or None
        An earlier turn of the run whose text was judged together with it, if any.
    """

    instrument_id: str
    turn: int
    value: float
    off_scale: float
    probabilities: tuple[float, ...]
    about: int | None = None


@dataclass(frozen=True, slots=True)
class InstrumentRow:
    """An instrument, which reads opinions from texts.

    Attributes
    ----------
    instrument_id : str
        Its identity.
    variable : str
        What it measures: ``stance``, ...
    classifier : str
        Name of its classifier.
    options : dict of JSON values
        The classifier's options.
    points, labels : tuple of int, tuple of str
        Scale points, lowest first, and the anchor of each.
    context : bool
        Whether the classifier sees what the author had read, its persona and its assigned opinion.
    about : str
        ``reads`` if each text is judged together with each message that its author saw; empty if it is judged
        separately.
    code : str
        Code of a user-written classifier (:attr:`opinionsim.registry.Part.code`); empty for any other.
    """

    instrument_id: str
    variable: str
    classifier: str
    options: Mapping[str, Any]
    points: tuple[int, ...]
    labels: tuple[str, ...]
    context: bool = False
    about: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A sample of texts that coders label to estimate the errors of an instrument.

    Attributes
    ----------
    audit_id : str
        Its identity.
    experiment_id : str
        The experiment whose texts it samples.
    sample : dict of JSON values
        How it was drawn, and the ``texts``: a list of run_id, turn, generation of the run, code and inclusion
        probability.
    coders : dict of str to str
        The evidence of each coder who labelled the sample: ``human`` or ``model``.
    findings : tuple of dict
        Findings: instrument_id, model, whether people gave the labels, and a statement.
    made_at : float
        Unix time at which it was drawn.
    """

    audit_id: str
    experiment_id: str
    sample: Mapping[str, Any]
    coders: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Mapping[str, Any], ...] = ()
    made_at: float = 0.0


class LabelRow(NamedTuple):
    """The label that a coder gives a text."""

    audit_id: str
    """The audit whose sample has the text."""
    coder: str
    """Name of the coder."""
    run_id: str
    """The run of the text."""
    turn: int
    """Its turn."""
    value: float
    """The scale point; NaN where the coder finds no opinion."""
    evidence: str
    """``human`` or ``model``."""


class Paid(NamedTuple):
    """Usage of stored calls."""

    calls: int = 0
    """Number of replies that arrived, rejected ones included."""
    input_tokens: int = 0
    """As the providers counted them; calls without a count add nothing."""
    output_tokens: int = 0
    """Likewise; reasoning included."""
    cost: float = 0.0
    """Money by the price tables in use at the time; calls without a price add nothing."""
    uncounted: int = 0
    """Number of replies whose tokens the provider did not count, prompts it refused to answer left out."""
    cached_tokens: int = 0
    """How many of `input_tokens` came from the caches of providers."""
    saved: float = 0.0
    """What that saved, as `cost`."""

    def __add__(self, other: object) -> Paid:
        if not isinstance(other, Paid):
            return NotImplemented
        return Paid(*map(add, self, other))


@dataclass(frozen=True, slots=True)
class WaitRow:
    """An unanswered question to a person.

    Attributes
    ----------
    run_id : str
        The run.
    turn, call, attempt : int, str, int
        Key of the answer.
    agent : int
        The seat.
    question : mapping of JSON values
        The question, as :meth:`opinionsim.llm.Question.as_json` returns it.
    asked_at : float
        Unix time of the question; a resumed run asks anew.
    deadline : float or None
        Unix time at which the time limit ends; None for no limit.
    """

    run_id: str
    turn: int
    call: str
    attempt: int
    agent: int
    question: Mapping[str, Any]
    asked_at: float
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class SeatRow:
    """A seat of a run and its person.

    Attributes
    ----------
    run_id, agent : str, int
        The seat.
    token : str or None
        Hash of the person's means of entry: the invitation until somebody sits down, then that person's token.
    joined_at, consented_at : float or None
        Unix times at which the person sat down and consented; None before.
    link : str or None
        Hash of the link by which the person sat down.
    consent : str or None
        Hash of the text to which the person consented.
    withdrawal : str or None
        Hash of the code by which the person can withdraw.
    trial : bool
        Whether the owner sits there for a trial.
    publishes : bool
        Whether the person consented to publication of their texts.
    events : tuple of mapping
        Events outside turns, in order: `at`, a Unix time; `what`, which is ``analysis``, ``pause``, ``end`` or ``harm``
        for a request of the person, ``link`` for a new link, which invalidates earlier links and the person's access,
        ``left`` if the person left for good, or ``withdrawn``; `text` of a report of harm, empty once withdrawn; and
        `done`, how the owner dealt with it.
    """

    run_id: str
    agent: int
    token: str | None = None
    joined_at: float | None = None
    link: str | None = None
    consent: str | None = None
    consented_at: float | None = None
    withdrawal: str | None = None
    trial: bool = False
    publishes: bool = False
    events: tuple[Mapping[str, Any], ...] = ()


class Mark(NamedTuple):
    """An event of a run: the step at which it begins, and its name."""

    step: int
    label: str


def marks_of(run: Mapping[Any, Any]) -> tuple[Mark, ...]:
    """The events in a row of the frame ``runs``, in the order of the specification; none without the column."""
    told = run.get("event_steps")
    found = []
    for event in told.split("; ") if isinstance(told, str) and told else ():
        label, _, step = event.rpartition(" at ")
        found.append(Mark(int(step), label))
    return tuple(found)
