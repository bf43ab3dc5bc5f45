"""Sources of figures: frames, and runs picked out of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import update_wrapper
from inspect import signature
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeGuard, TypeVar, get_type_hints

import pandas as pd

from opinionsim.errors import SpecError
from opinionsim.metrics import chosen_kind, one_wording, order_levels, stance_rows, wording_statement

P = ParamSpec("P")
Counted = TypeVar("Counted")
Drawn = TypeVar("Drawn")


def drawn_from(count: Callable[P, Counted]) -> Callable[[Callable[[Counted], Drawn]], Callable[P, Drawn]]:
    """Turn a draw step into a figure that takes the arguments of its data step `count` and draws the result."""

    def of(draw: Callable[[Counted], Drawn]) -> Callable[P, Drawn]:
        def figure(*args: P.args, **kwargs: P.kwargs) -> Drawn:
            return draw(count(*args, **kwargs))

        drawn: Any = update_wrapper(figure, draw)
        made = get_type_hints(draw)["return"]
        drawn.__annotations__ = {**count.__annotations__, "return": made}
        drawn.__signature__ = signature(count).replace(return_annotation=made)
        drawn.__wrapped__ = count  # whose module knows the names in its annotations
        return figure

    return of


@dataclass(frozen=True, eq=False)
class FigureNumbers:
    """Numbers that a figure is drawn from, and the notes above it.

    Attributes
    ----------
    frame : DataFrame
        The numbers.
    evidence : str
        Kind of evidence the runs are, in words.
    notes : tuple of str
        Settings that all runs share, and notes on the runs and on how they were measured.
    """

    frame: pd.DataFrame
    evidence: str
    notes: tuple[str, ...]


class HasFrames(Protocol):
    """Any object with the tidy frames of a store, such as :class:`opinionsim.Results`."""

    @property
    def runs(self) -> pd.DataFrame:
        """One row per run and cell."""

    @property
    def agents(self) -> pd.DataFrame:
        """One row per run and agent."""

    @property
    def opinions(self) -> pd.DataFrame:
        """One row per coded text and instrument."""


def has_frames(source: object) -> TypeGuard[HasFrames]:
    """Whether an object has the frames of a store."""
    return hasattr(source, "runs")


def acts_of(source: object) -> pd.DataFrame | None:
    """The turns of a source, or None if it has none. Results give them without texts, which takes half the time."""
    read = getattr(source, "read", None)
    found: pd.DataFrame | None = getattr(source, "turns", None) if read is None else read("acts")[0]
    return found


class Frames(NamedTuple):
    """Frames to draw without a store."""

    runs: pd.DataFrame
    """One row per run and cell."""
    agents: pd.DataFrame
    """One row per run and agent."""
    opinions: pd.DataFrame
    """One row per coded text and instrument; figures use the stance of participants."""
    edges: pd.DataFrame | None = None
    """One row per connection of a run's network; only :func:`opinionsim.plots.network_snapshots` needs it."""
    turns: pd.DataFrame | None = None
    """One row per turn; only :func:`opinionsim.plots.before_after` needs it."""


def pick_run(results: HasFrames, run: str | int | None) -> Frames:
    """The frames of the participants of one run, with their stance by the run's instrument.

    Parameters
    ----------
    results : Results or Frames
        Frames of a store.
    run : str, int or None
        Identity of the run, or its position in ``results.runs`` from 0. None for the first complete run of the lowest
        replicate, among cells with an instrument of stance.

    Raises
    ------
    SpecError
        If there is no such run, or `run` is None and no run is complete.
    """
    runs = results.runs
    if run is None:
        complete = runs[runs["status"] == "complete"].sort_values("replicate", kind="stable")
        if complete.empty:
            raise SpecError("no run is complete; pass run= to draw one that is not")
        read = complete[complete["instrument_id"].notna()]
        row = (complete if read.empty else read).iloc[[0]]
    elif isinstance(run, str):
        row = runs[runs["run_id"] == run].iloc[:1]
        if row.empty:
            raise SpecError(f"there is no run {run!r}; column run_id of the runs frame lists the {len(runs)} there are")
    elif 0 <= run < len(runs):
        row = runs.iloc[[run]]
    else:
        raise SpecError(f"run must be a position from 0 to {len(runs) - 1}; got {run}")
    run_id, cell, instrument, n = (row[name].iloc[0] for name in ("run_id", "cell", "instrument_id", "n_agents"))
    stance, agents = stance_rows(row, results.opinions), results.agents
    return Frames(
        row,
        agents[(agents["run_id"] == run_id) & (agents["agent"] < n)],
        stance[(stance["cell"] == cell) & (stance["instrument_id"] == instrument)],
    )


def pick_kind(kind: str | None, kinds: Iterable[str], runs: pd.DataFrame) -> str:
    """The kind of text to draw, as :func:`opinionsim.metrics.chosen_kind` chooses it."""
    return chosen_kind(kind, kinds, runs, "no stance was measured, so there is nothing to draw")


def read_for_stance(runs: pd.DataFrame, kind: str | None) -> tuple[pd.DataFrame, str]:
    """Runs of cells with an instrument of stance, and a note on how many complete runs of other cells are left out.

    Raises
    ------
    SpecError
        If there are complete runs, but none belongs to a cell with an instrument of stance.
    """
    read = runs["instrument_id"].notna()
    complete = runs["status"] == "complete"
    n = int((complete & ~read).sum())
    if n and not (complete & read).any():
        pick_kind(kind, (), runs)
    runs_of = "run of a cell" if n == 1 else "runs of cells"
    return runs[read], f"{n} {runs_of} without an instrument of stance left out" if n else ""


def of_one_wording(results: HasFrames, where: Mapping[str, Any], wording: str | None) -> tuple[pd.DataFrame, str]:
    """Runs of one wording of the prompts (:func:`opinionsim.metrics.one_wording`), and a note on runs left out.

    The choice considers all runs, so figures of different parts of an experiment show the same wording. The note
    counts the runs with the values in `where` that were left out.

    Raises
    ------
    SpecError
        If there is no such wording.
    """
    # In the order of the specification, where it is known, as in tables.
    taken, left_out = one_wording(getattr(results, "ordered_runs", results.runs).astype({"cell": object}), wording)
    return taken, wording_statement(matching(left_out, where)["wording"], wording) if len(left_out) else ""


def select(runs: pd.DataFrame, where: Mapping[str, Any]) -> pd.DataFrame:
    """Complete runs with the values in `where`.

    Raises
    ------
    SpecError
        If there are none, or a column does not exist; the message lists the valid values.
    """
    chosen = runs[runs["status"] == "complete"] if "status" in runs else runs
    if chosen.empty:
        raise SpecError("no run is complete, so there is nothing to draw")
    for column in where:
        if column not in runs.columns:
            raise SpecError(f"the runs have no column {column!r}; there are {', '.join(map(str, runs.columns))}")
    return having(chosen, where)


def runs_to_draw(
    results: HasFrames, kind: str | None, where: Mapping[str, Any], wording: str | None
) -> tuple[pd.DataFrame, list[str]]:
    """Complete runs of one wording with the values in `where` and an instrument of stance, and notes on others.

    Raises
    ------
    SpecError
        As for :func:`of_one_wording`, :func:`select` and :func:`read_for_stance`.
    """
    taken, others = of_one_wording(results, where, wording)
    with mentioning(others):
        chosen = select(taken, where)
    read, unread = read_for_stance(chosen, kind)
    return read, list(filter(None, [unread, others]))


def having(runs: pd.DataFrame, where: Mapping[str, Any], of: str = "") -> pd.DataFrame:
    """Return the given complete runs that have the values in `where`; `of` names their replicate in errors.

    Raises
    ------
    SpecError
        If no run is left; the message names the valid levels of the first condition that leaves none.
    """
    for column, value in where.items():
        levels = order_levels(runs[column])
        runs = runs[runs[column] == value]
        if runs.empty:
            valid = ", ".join(map(str, levels))
            raise SpecError(f"no complete run{of} has {column} = {value!r}; valid: {valid}")
    return runs


def matching(runs: pd.DataFrame, where: Mapping[str, Any]) -> pd.DataFrame:
    """Runs with the values in `where`; columns that do not exist are ignored."""
    for column in where.keys() & set(runs.columns):
        runs = runs[runs[column] == where[column]]
    return runs


@contextmanager
def mentioning(left_out: str) -> Iterator[None]:
    """Add to a SpecError the note on runs left out, which may be why there is nothing to draw."""
    try:
        yield
    except SpecError as error:
        if not left_out:
            raise
        raise SpecError(f"{error}; {left_out}") from error
