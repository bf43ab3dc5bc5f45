"""Two conditions side by side at one step: their numbers, and the agents that differ most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from opinionsim import metrics, plots
from opinionsim.analysis import Estimate, estimate, no_estimate
from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionScale
from opinionsim.store import Results, open_store
from opinionsim.studio._filtered import filtered
from opinionsim.watching import level_labels

#: Largest number of pairs of agents that the page lists.
_MOST_PAIRS = 5
#: What identifies the opinions of a cell.
_SERIES = ["run_id", "cell", "instrument_id"]


@dataclass(frozen=True, eq=False)
class Side:
    """A condition at a step.

    Attributes
    ----------
    name : str
        The condition in words.
    runs : DataFrame
        Rows of its complete runs, in the order of the specification.
    opinions : DataFrame
        One row per run and participant: ``run_id, cell, block, agent, value, turn``. ``value`` is the last opinion
        measured by this step, and ``turn`` the turn whose text it was read from; NaN where there was none.
    bias, diversity : Estimate
        Mean opinion and diversity over runs, with intervals, as in the table of conditions.
    distribution : Distribution
        Number of agents of all its runs at each point of the scale, and of those without a measured opinion.
    n_withheld : int
        Runs without a mean, because too few of their agents were measured.
    """

    name: str
    runs: pd.DataFrame
    opinions: pd.DataFrame
    bias: Estimate
    diversity: Estimate
    distribution: metrics.Distribution
    n_withheld: int


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Two conditions at a step.

    Attributes
    ----------
    step : int
        The step.
    sides : tuple of Side
        The conditions.
    pairs : list of dict
        The agents whose opinions differ the most between runs of the same block, the largest difference first:
        ``block, agent, name``, and ``run_id, turn, value, text`` with `` one`` and `` other`` behind them.
    scale : OpinionScale
        The scale of opinions.
    kind : str
        Kind of text that they are read from.
    notes : tuple of str
        Kind of evidence, and what figures say of the instruments and of runs that are left out.
    """

    step: int
    sides: tuple[Side, Side]
    pairs: list[dict[str, Any]]
    scale: OpinionScale
    kind: str
    notes: tuple[str, ...]

    @property
    def same_block(self) -> tuple[str, str]:
        """The ids of one run of each: the first of both that have the same block, or else the first of each."""
        one, other = (side.runs.drop_duplicates("block").set_index("block")["run_id"] for side in self.sides)
        shared = [block for block in one.index if block in other.index]
        at = (shared[0], shared[0]) if shared else (one.index[0], other.index[0])
        return str(one[at[0]]), str(other[at[1]])


def side_by_side(
    results: Results, one: Mapping[str, str], other: Mapping[str, str], step: int | None = None
) -> SideBySide:
    """Compare two conditions at a step.

    Parameters
    ----------
    results : Results
        Results of a study of agents. Only complete runs of one wording of the prompts count.
    one, other : mapping of str to str
        Values of the runs of each condition, as for :func:`opinionsim.studio.filtered`.
    step : int, optional
        The step, at most the last one that all these runs have, which is the default.

    Returns
    -------
    SideBySide
        An agent keeps its last measured opinion. Nothing is put in for agents that were not measured.

    Raises
    ------
    SpecError
        If a condition has no complete run with an instrument of stance, or there is no such step.
    """
    taken, left_out = plots.runs_to_draw(results, None, {}, None)
    both = [_complete(filtered(results, where), taken, where) for where in (one, other)]
    runs = pd.concat(both).drop_duplicates(_SERIES)
    last = int(runs["steps"].min())
    if step is not None and not 0 <= step <= last:
        raise SpecError(f"step must be from 0 to {last}, the last step of all these runs; got {step}")
    at = last if step is None else step
    opinions = metrics.stance_rows(runs, results.opinions).merge(runs[_SERIES], on=_SERIES)
    kind = metrics.chosen_kind(None, opinions["kind"], runs, "no stance was measured in these runs")
    scale, acts = metrics.scale_of_all(opinions[opinions["kind"] == kind]), results.read("acts")[0]
    until = opinions[(opinions["kind"] == kind) & (opinions["step"] <= at)], acts[acts["step"] <= at]
    left, right = (
        _side(_named(where), own.assign(steps=at), *until, kind=kind, scale=scale)
        for where, own in zip((one, other), both, strict=True)
    )
    notes = (
        metrics.evidence_statement(runs["evidence"]),
        metrics.validation_statement(runs["validation"], kind),
        metrics.outdated([row for _, row in runs.iterrows()]),
        *left_out,
    )
    pairs = _pairs(results, left, right)
    return SideBySide(at, (left, right), pairs, scale, kind, tuple(filter(None, notes)))


def _complete(own: Results, taken: pd.DataFrame, where: Mapping[str, str]) -> pd.DataFrame:
    """The runs of a condition among those that figures take."""
    keys = pd.MultiIndex.from_frame(own.runs[["run_id", "cell"]])
    found = taken[pd.MultiIndex.from_frame(taken[["run_id", "cell"]]).isin(keys)]
    if found.empty:
        raise SpecError(f"no complete run has {_named(where)}")
    return found


def _named(where: Mapping[str, str]) -> str:
    return ", ".join(f"{metrics.axis_name(column)}: {value}" for column, value in where.items())


def _side(
    name: str, runs: pd.DataFrame, opinions: pd.DataFrame, acts: pd.DataFrame, *, kind: str, scale: OpinionScale
) -> Side:
    """A condition at the last step of its runs, from the opinions and turns until then."""
    own = opinions.merge(runs[_SERIES], on=_SERIES)
    told = metrics.step_metrics(runs, own, kind, turns=acts).groupby(_SERIES).tail(1)
    told = told.merge(runs[[*_SERIES, "topic", "block"]], on=_SERIES)
    last = own.dropna(subset="value").sort_values("turn").drop_duplicates([*_SERIES, "agent"], keep="last")
    agents = runs.loc[runs.index.repeat(runs["n_agents"]), [*_SERIES, "block"]]
    agents = agents.assign(agent=agents.groupby(_SERIES).cumcount())
    held = agents.merge(last[[*_SERIES, "agent", "value", "turn"]], on=[*_SERIES, "agent"], how="left")
    means = []
    for measure in ("bias", "diversity"):
        limits = metrics.limits_of(measure, scale.lowest, scale.highest)
        none = told[measure].isna().all()
        found = estimate(told["topic"], told["block"], told[measure], limits=limits) if not none else no_estimate("")
        means.append(found)
    counts = metrics.distribution(held["value"], scale)
    return Side(name, runs, held.drop(columns="instrument_id"), means[0], means[1], counts, int(told["withheld"].sum()))


def _pairs(results: Results, one: Side, other: Side) -> list[dict[str, Any]]:
    """The agents of both conditions whose opinions differ the most between runs of the same block.

    Runs of a block that differ on an axis whose levels both conditions have are no pair.
    """
    axes = {run.cell: level_labels(run.axes) for run in results.design_row.runs}
    levels = [{pair for cell in side.runs["cell"] for pair in axes[cell].items()} for side in (one, other)]
    compared = {axis for axis, _ in levels[0] ^ levels[1]}
    rest = {cell: str([pair for pair in own.items() if pair[0] not in compared]) for cell, own in axes.items()}
    acts, sides = results.read("acts")[0][["run_id", "turn", "message"]], []
    for side in (one, other):
        known = side.opinions.dropna(subset="value").merge(results.agents[["run_id", "agent", "name"]])
        known = known.merge(side.runs[["run_id", "cell", "redraw"]]).merge(acts)
        sides.append(known.assign(rest=known["cell"].map(rest)))
    both = sides[0].merge(sides[1], on=["block", "agent", "name", "redraw", "rest"], suffixes=(" one", " other"))
    both["gap"] = (both["value one"] - both["value other"]).abs()
    order = both[both["gap"] > 0].sort_values(["gap", "block", "agent"], ascending=[False, True, True], kind="stable")
    found = order.head(_MOST_PAIRS)
    with open_store(results.url, write=False) as opened:
        # A text is found by its content: it is the one that was coded, whatever has become of the run.
        texts = opened.texts({*found["message one"], *found["message other"]})
    for side_name in ("one", "other"):
        found = found.assign(**{f"text {side_name}": found[f"message {side_name}"].map(texts.get)})
    return [{str(name): value for name, value in row.items()} for row in found.to_dict("records")]
