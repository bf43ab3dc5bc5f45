"""Loads experiments: finds the experiment and design, and reads the frames for users and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opinionsim.errors import OpinionSimError, SpecError, StoreError
from opinionsim.llm import REPLY, CallName
from opinionsim.messages import ChatMessage
from opinionsim.metrics import named_models
from opinionsim.registry import blamed, find, installed, is_path
from opinionsim.store._rows import AbsentError, DesignRow
from opinionsim.store._sql import open_store

if TYPE_CHECKING:
    import pandas as pd

    from opinionsim.store._reader import StoreReader


def load(store: str, experiment: str | None = None, *, design: int | None = None, own_parts: bool = False) -> Results:
    """Open the results of one experiment, which may still be running in another process.

    Parameters
    ----------
    store : str
        Store address, as for :func:`opinionsim.store.open_store`; opened for reading only.
    experiment : str, optional
        Name or id. Default: the experiment that ran most recently.
    design : int, optional
        Number of a design of the experiment, from 1. An experiment has several designs if its cells or instruments were
        changed under the same name. Default: the design that ran last.
    own_parts : bool
        Whether to import the experiment's user-written metrics, tables and figures, which runs their code.

    Returns
    -------
    Results
        Frames are read from the store on first use, and all at once if the experiment is still running.

    Raises
    ------
    StoreError
        If the store cannot be read, or contains no such experiment or design.
    """
    with open_store(store, write=False) as opened:
        found, numbers = find_design(opened, experiment, design)
        states = opened.states(sorted({run.run_id for run in found.runs}))
        return Results(opened.url, found, numbers, len(opened.under_way(states)), own_parts=own_parts)


def find_design(
    opened: StoreReader, experiment: str | None = None, design: int | None = None
) -> tuple[DesignRow, tuple[int, ...]]:
    """A design of an experiment, and the numbers of all its designs.

    Parameters
    ----------
    opened : StoreReader
        An open store.
    experiment, design
        As for :func:`load`.

    Raises
    ------
    AbsentError
        If there is none.
    """
    rows = opened.designs()
    chosen = [row for row in rows if experiment in (None, row.name, row.experiment_id)]
    if not chosen:
        names = ", ".join(sorted({row.name for row in rows}))
        lacking = f"has no experiment {experiment!r}; it contains {names}" if rows else "holds no experiment yet"
        raise AbsentError(f"the store {opened.url} {lacking}")
    found = {row.design: row for row in chosen if row.experiment_id == chosen[-1].experiment_id}
    number = chosen[-1].design if design is None else design
    if number not in found:
        valid = ", ".join(map(str, sorted(found)))
        raise AbsentError(f"experiment {chosen[-1].name!r} in {opened.url} has no design {design}; it has {valid}")
    return found[number], tuple(sorted(found))


class Results:
    """One experiment's frames.

    Every frame is tidy, sorted by its key, and has a column ``evidence``: ``scripted``, ``model``, ``equation`` or
    ``human``. If agents of one run differ in their evidence, it is ``human+model``, ``equation+model`` or ``mixed`` in
    ``runs`` and ``edges``, and that of the author in other frames. Frames are read once, and those of a running
    experiment all in one state of the store; load again to see later rows. ``runs`` lists each registered cell and
    replicate. Cells that differ only in how they are measured share a run, so ``run_id`` repeats in ``runs`` and
    ``opinions``, distinguished by ``cell``, and nowhere else. docs/frames.md,
    :func:`opinionsim.store.documented_columns` and the codebook of an export describe every column.

    Attributes
    ----------
    url : str
        Address of the store, without a password.
    name : str
        Name of the experiment.
    spec, manifest : dict
        The resolved specification and the manifest.
    design : int
        Number of the design of these results.
    designs : tuple of int
        Numbers of all designs of the experiment.
    under_way : int
        Number of runs in progress when the results were loaded.
    own_parts : bool
        Whether to import the user's own metrics, tables and figures, which runs their code. Otherwise they are left out
        (`left_out`), and everything else is available.
    failed : dict of str to str
        Metrics, tables and figures that failed and were left out, by name, each with a sentence that describes the
        failure.
    design_row : DesignRow
        The design as the store keeps it.
    withheld : tuple of str
        One sentence for each item that is withheld from display; empty for results as loaded.

    Notes
    -----
    Types: identities, names and texts are strings (NaN where missing); ``replicate, redraw, seed, n_agents, steps,
    turn, step, agent, source, target, attempt, dropped`` int64; ``opinions.about``, ``calls.seed`` and token counts
    nullable Int64; scale values, probabilities, seconds, ``cost`` and ``arrived_at`` (Unix time) float64; ``reads`` a
    tuple of turn numbers (int) and names of external messages (str).
    """

    def __init__(
        self,
        url: str,
        design: DesignRow,
        designs: tuple[int, ...] = (),
        under_way: int = 0,
        frames: Mapping[str, pd.DataFrame] | None = None,
        *,
        own_parts: bool = False,
    ) -> None:
        self.url = url
        self.design = design.design
        self.designs = designs or (design.design,)
        self.under_way = under_way
        self.own_parts = own_parts
        self.failed: dict[str, str] = {}
        self.withheld: tuple[str, ...] = ()
        self.design_row = design
        # Frames that are given are not read.
        self._frames: dict[str, pd.DataFrame] = dict(frames or {})

    @classmethod
    def of_frames(cls, design: DesignRow, frames: Mapping[str, pd.DataFrame], answered: Mapping[str, Any]) -> Results:
        """Results made only of frames, without anything that the frames do not contain.

        Parameters
        ----------
        design : DesignRow
            Their design.
        frames : mapping of str to DataFrame
            Frames by name, as the properties return them.
        answered : mapping
            As :attr:`answered` returns it.
        """
        acts = {"acts": frames["turns"]} if "turns" in frames else {}
        found = cls("", design, frames={**acts, **frames})
        found.__dict__["answered"] = dict(answered)
        if not design.runs:
            (found.__dict__["units"],) = frames.values()
        return found

    def __repr__(self) -> str:
        more = f", {self.under_way} of its runs in progress" if self.under_way else ""
        return f"Results({self.name!r}, {self.url!r}{more})"

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return self.design_row.name

    @property
    def spec(self) -> dict[str, Any]:
        """The resolved specification."""
        return dict(self.design_row.spec)

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest."""
        return dict(self.design_row.manifest)

    def shown(self, run_id: str, value: Any) -> Any:
        """A text of a run, or JSON values with its turns, as shown to others; here unchanged."""
        return value

    @cached_property
    def study(self) -> Any:
        """The kind of study, a :class:`opinionsim.study.StudyKind`.

        Raises
        ------
        SpecError
            If it is not installed here, or is the user's own and `own_parts` is false.
        """
        name = self.design_row.study
        if not installed("study", name):
            raise SpecError(f"{self.name} is a study of kind {name!r}, which is not installed here")
        if is_path(name) and not self.own_parts:
            raise SpecError(f"{self.name} is a study of your own kind {name}; allow your own parts with --allow-parts")
        part = find("study", name)
        with blamed(part):
            return part.target()

    @cached_property
    def units(self) -> pd.DataFrame:
        """One row per replicate of a unit of work.

        For agents, these are the runs in the order of the specification. A study of another kind has no rows in other
        frames, and its columns are those that the kind documents.
        """
        found: pd.DataFrame = self.study.units(self)
        return found

    @property
    def runs(self) -> pd.DataFrame:
        """One row per cell and replicate; key ``cell, replicate, redraw, run_id, instrument_id``."""
        return self.read("runs")[0]

    @property
    def agents(self) -> pd.DataFrame:
        """One row per agent of a run; key ``run_id, agent``."""
        return self.read("agents")[0]

    @property
    def edges(self) -> pd.DataFrame:
        """One row per tie of a run's network and the time it lasts; key ``run_id, source, target, since``."""
        return self.read("edges")[0]

    @property
    def turns(self) -> pd.DataFrame:
        """One row per turn; key ``run_id, turn``."""
        return self.read("turns")[0]

    @property
    def opinions(self) -> pd.DataFrame:
        """One row per cell, instrument and coded text; key ``cell, run_id, instrument_id, turn, about``."""
        return self.read("opinions")[0]

    @property
    def calls(self) -> pd.DataFrame:
        """One row per call; key ``run_id, turn, call, attempt``. For its prompt, see :meth:`prompt`."""
        return self.read("calls")[0]

    @property
    def entries(self) -> pd.DataFrame:
        """The entries needed to repeat elections: calls, answers of people, and opinions that a schedule waited for.

        Key and columns are those of `calls`, without texts: ``reply`` contains only the numbers of awaited opinions.
        """
        found = self.read("entries")[0][["run_id", "turn", "call", "attempt", "acceptance", "reply"]]
        rated = found["call"].map(lambda call: CallName.of(call).role == "rating").astype(bool)
        return found.assign(reply=found["reply"].where(rated, ""))

    @property
    def declared(self) -> dict[str, Mapping[str, Any]]:
        """The information that each cell's interaction declares about itself, by cell."""
        return {run.cell: run.declared for run in self.design_row.runs}

    def extras(self, what: str) -> list[str]:
        """Names of the shown tables or figures that the interactions add, each once."""
        kind, gone = what.removesuffix("s"), self.not_installed
        return [name for name in self._brought(what) if self._shows(name) and f"{kind} {name}" not in gone]

    @property
    def not_installed(self) -> list[str]:
        """Tables and figures, as ``table NAME``, that the interactions add but that are not installed here."""
        brought = [(kind, name) for kind in ("table", "figure") for name in self._brought(f"{kind}s")]
        return [f"{kind} {name}" for kind, name in brought if not installed(kind, name)]

    def _brought(self, what: str) -> list[str]:
        first = getattr(self.study, what) if what in ("tables", "figures") else ()
        return list(dict.fromkeys((*first, *(name for each in self.declared.values() for name in each.get(what, ())))))

    @property
    def own(self) -> list[str]:
        """Import paths of the user-written metrics, tables and figures that the experiment names."""
        return list(filter(is_path, (*self.own_metrics, *self._brought("tables"), *self._brought("figures"))))

    @property
    def own_metrics(self) -> list[str]:
        """The metrics in `own`; empty for a study without runs, whose values are stored."""
        return [] if not self.design_row.runs else list(dict.fromkeys(filter(is_path, map(_name, self._named))))

    @property
    def left_out(self) -> list[str]:
        """The parts that are omitted because `own_parts` is false or because they failed."""
        return [*(() if self.own_parts else self.own), *self.failed]

    def leave_out(self, kind: str, name: str, error: OpinionSimError) -> str:
        """Leave out the part that an error names, or else the one that was being made, and record the error.

        Parameters
        ----------
        kind, name : str
            The part that was being made.
        error : OpinionSimError
            The error.

        Returns
        -------
        str
            Name of the part that is now left out (see `failed`).
        """
        cause = error.fields.get("part", name)
        part: str = name if cause in self.failed else cause
        self.failed[part] = str(error if part in str(error) else error.at(f"{kind} {name}"))
        return part

    @property
    def _named(self) -> list[Any]:
        return list(self.spec.get("measurement", {}).get("metrics", []))

    @property
    def named_metrics(self) -> list[Any]:
        """The shown metrics of the specification, under the names used there."""
        return [each for each in self._named if self._shows(_name(each))]

    def _shows(self, name: str) -> bool:
        return name not in self.failed and (self.own_parts or not is_path(name))

    def read(self, *names: str) -> list[pd.DataFrame]:
        """Frames by name; those not read before are read from one state of the store."""
        if new := [name for name in names if name not in self._frames]:
            from opinionsim.store._frames import read_frames

            with open_store(self.url, write=False) as store, store.reading() as connection:
                found = read_frames(connection, self.design_row, None if self.under_way else new)
                self._frames.update({name: self._passed_on(name, frame) for name, frame in found.items()})
        return [self._frames[name] for name in names]

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """One row per run, cell, instrument and kind of text: :func:`opinionsim.metrics.run_metrics` with ddof 0."""
        from opinionsim.metrics import run_metrics

        runs, opinions, agents, turns = self.counted()
        return run_metrics(runs, opinions, agents, ddof=0, turns=turns)

    def by_condition(self, **settings: Any) -> pd.DataFrame:
        """Mean opinion and diversity by condition over steps: the frame of :func:`opinionsim.analysis.condition_table`.

        Parameters
        ----------
        **settings
            ``kind, wording, estimand, steps`` of that function, which raises the same errors.

        Returns
        -------
        DataFrame
            One row per condition and step: the conditions, ``step``, ``end`` (whether it is the end of the runs),
            ``n_runs, n_withheld, n_measured, n_never``, ``bias`` and ``diversity`` with their intervals, what these
            rest on, ``kind, evidence``.
        """
        found: pd.DataFrame = find("table", "conditions").build(options={}, results=self, **settings).frame
        return found

    @cached_property
    def answered(self) -> dict[str, list[str]]:
        """Models that answered, by the name of the requested model (:func:`opinionsim.metrics.named_models`)."""
        with open_store(self.url, write=False) as store:
            return named_models(store.models(self.run_ids))

    def counted(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Runs, opinions, agents and turns, which tables count, from one state of the store.

        The turns contain the identity of each text instead of the message, because counting needs no texts.
        """
        runs, opinions, agents, turns = self.read("runs", "opinions", "agents", "acts")
        return runs, opinions, agents, turns

    def prompt(self, run: str | int, turn: int, call: str = REPLY, attempt: int = 0) -> list[ChatMessage]:
        """The literal prompt of a call, or of a person's answer.

        Parameters
        ----------
        run : str or int
            Run id, or row of ``runs``.
        turn, call, attempt
            Key of the entry within the run.

        Raises
        ------
        StoreError
            If there is no such row or entry, or the entry does not answer a prompt.
        """
        if not isinstance(run, str):
            if not 0 <= run < len(self.runs):
                raise StoreError(f"run {run} is not a row of runs; valid: 0 to {len(self.runs) - 1}")
            run = str(self.runs["run_id"].iloc[run])
        with open_store(self.url, write=False) as store:
            found = store.prompt(run, turn, call, attempt)
        return [ChatMessage(each.role, self._prompted(each.content)) for each in found]

    def prompts(self) -> Iterator[tuple[str, str, str, str]]:
        """All literal prompts of calls, each once, as a chain.

        Yields
        ------
        tuple of str
            Identity of the prompt (``prompt_hash`` of calls); identity of the prompt without its last message, or empty
            if there is none; role and text of that message.
        """
        with open_store(self.url, write=False) as store:
            for link in store.prompt_links(self.calls["prompt_hash"].unique()):
                yield link.prompt_id, link.before, link.role, self._prompted(link.text)

    @property
    def run_ids(self) -> tuple[str, ...]:
        """Ids of the runs, each once, in the order of the design."""
        return tuple(dict.fromkeys(run.run_id for run in self.design_row.runs))

    @property
    def ordered_runs(self) -> pd.DataFrame:
        """The frame `runs` in the order of the specification: ``cell`` is an ordered categorical of all its cells."""
        import pandas as pd

        cells = pd.CategoricalDtype(list(dict.fromkeys(run.cell for run in self.design_row.runs)), ordered=True)
        return self.runs.astype({"cell": cells}).sort_values("cell", kind="stable")

    def _prompted(self, text: str) -> str:
        """A message of a prompt as it is shown to others: here as it is."""
        return text

    def _passed_on(self, name: str, frame: pd.DataFrame) -> pd.DataFrame:
        """A frame that was read as it is shown to others: here as it is."""
        return frame


def _name(metric: Any) -> str:
    """Name of a metric, which a specification gives with options or without."""
    return str(metric["name"]) if isinstance(metric, dict) else str(metric)
