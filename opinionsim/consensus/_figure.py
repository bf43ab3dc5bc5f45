"""Figure of one consensus session: support of candidates, winners by rule, opinions before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from opinionsim.consensus._selections import rows_of
from opinionsim.drawing import INK, SHARES, colour_bar, is_narrow, legend_below, new_figure, pt, tidy, write_numbers
from opinionsim.errors import SpecError
from opinionsim.metrics import evidence_statement, provenance
from opinionsim.plots import drawn_from, pick_run
from opinionsim.registry import part
from opinionsim.store import Results

#: Colours of an opinion before and after.
_BEFORE, _AFTER = "#9AA5AD", "#123C57"
#: Colour of the frame of the winner, and the look of what a rule puts first.
_WON = "#D55E00"
_DOT: Mapping[str, Any] = {"marker": "o", "markersize": 6, "markeredgecolor": INK, "linestyle": "none"}


@dataclass(frozen=True, eq=False)
class ConsensusData:
    """Data of the figure of a session.

    Attributes
    ----------
    frame : DataFrame
        One row per citizen, round and candidate: ``round, candidate, citizen, name, agreement, rank, winner, policy``;
        agreement is the mean over passes (NaN without ratings), and rank comes from the citizen's ballot (NaN without
        one).
    rules : DataFrame
        Result of :func:`opinionsim.consensus.other_rules` for the ballots that elect.
    opinions : DataFrame
        Measured opinions of citizens in order: ``citizen, name, turn, kind, value, scale``.
    lines : tuple of str
        Evidence, question and replicate.
    rule : str
        The rule that elects, in words.
    """

    frame: pd.DataFrame
    rules: pd.DataFrame
    opinions: pd.DataFrame
    lines: tuple[str, ...]
    rule: str


def consensus_data(source: Results, run: str | int | None = None) -> ConsensusData:
    """Compute the numbers of the figure of a session.

    Parameters
    ----------
    source : Results
        A store's results.
    run : str or int, optional
        Run id, or row of ``runs``; default the first complete run.

    Raises
    ------
    MeasurementError
        If there is no consensus session.
    SpecError
        If there is no such run, or it is not a consensus session.
    """
    from opinionsim.consensus import asked, other_rules, sessions, statements

    about = pick_run(source, run).runs.iloc[0]
    wanted = about["run_id"], about["cell"]
    session = next((each for row, each in sessions(source) if (row["run_id"], row["cell"]) == wanted), None)
    if session is None:
        raise SpecError(f"run {wanted[0]} has no consensus interaction; choose another run, such as run=0")
    listed = statements(source)
    listed = listed[(listed["group"] == wanted[0]) & (listed["cell"] == wanted[1]) & listed["stands"]]
    people = source.agents[(source.agents["run_id"] == wanted[0]) & (source.agents["role"] == "participant")]
    names = dict(zip(people["agent"], people["name"], strict=True))
    frame = pd.DataFrame(
        {
            "round": row["round"],
            "candidate": row["turn"],
            "citizen": citizen,
            "name": name,
            "agreement": session.mean("agreement", row["turn"], citizen, session.of_step(row["round"] + 1)),
            "rank": session.mean("rank", row["turn"], citizen, session.of_step(row["round"] + 1)),
            "winner": row["winner"],
            "policy": row["policy"],
        }
        for row in rows_of(listed)
        for citizen, name in names.items()
    )
    rules = other_rules(source)
    elects = session.interaction.elects
    rules = rules[(rules["group"] == wanted[0]) & (rules["cell"] == wanted[1]) & (rules["ballots"] == elects)]
    told = source.opinions
    told = told[(told["run_id"] == wanted[0]) & (told["cell"] == wanted[1]) & (told["variable"] == "stance")]
    told = told[told["about"].isna() & told["agent"].isin(names) & told["value"].notna()].sort_values("turn")
    opinions = told.rename(columns={"agent": "citizen"}).assign(name=told["agent"].map(names))
    replicates = int((source.runs["cell"] == wanted[1]).sum())
    lines = (evidence_statement([about["evidence"]]), asked(about.to_dict()), provenance(about, replicates))
    opinions = opinions[["citizen", "name", "turn", "kind", "value", "scale"]]
    return ConsensusData(frame, rules, opinions, lines, session.interaction.rule_label)


@part("figure", name="consensus", numbers=consensus_data)
@drawn_from(consensus_data)
def session_figure(data: ConsensusData) -> Figure:
    """Draw the support for statements in the first session. Dots mark winners under each rule, and rings mark ties.

    The figure shows how each citizen rates each candidate, what each rule chooses, and each citizen's first and last
    opinion.

    Parameters
    ----------
    source, run
        As for :func:`consensus_data`.

    Returns
    -------
    Figure
        A column of panels for each round, candidates from the best mean support to the worst; the winner is framed.
        Cells show the mean agreement if statements were rated, and otherwise the rank. A dot marks the choice of a
        rule; open dots share the first place. The panel on the right shows the first and last measured opinion of each
        citizen.

    Raises
    ------
    MeasurementError, SpecError
        As for :func:`consensus_data`.
    """
    rounds = sorted(data.frame["round"].unique())
    citizens, rules = list(dict.fromkeys(data.frame["name"])), list(dict.fromkeys(data.rules["rule"]))
    widths = [0.42 * data.frame.loc[data.frame["round"] == each, "candidate"].nunique() + 0.3 for each in rounds]
    # On a narrow page rounds stand below each other, and opinions below them.
    stacked, moved = is_narrow(), bool(len(data.opinions))
    high = 0.2 * (len(citizens) + len(rules)) * len(rounds) + 0.2 * moved * len(citizens) + 0.8 * len(rounds) + 0.6
    if not stacked:
        high = 0.3 * (len(citizens) + len(rules)) + 1.5
    figure = new_figure(data.lines, max(sum(widths) + 2.6 + 2.0 * moved, 7.0), high)
    ratios = [max(len(rules), 1), len(citizens)]
    if stacked:
        heights = [*ratios * len(rounds), *[len(citizens)] * moved]
        grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    else:
        widths += [2.0] * moved
        grid = figure.add_gridspec(2, len(widths), width_ratios=widths, height_ratios=ratios)
    rated = bool(data.frame["agreement"].notna().any())
    panels = []
    for place, number in enumerate(rounds):
        own = data.frame[data.frame["round"] == number]
        mean = own.groupby("candidate")["agreement" if rated else "rank"].mean()
        order = mean.sort_values(ascending=not rated, kind="stable").index.tolist()
        spots = (2 * place, 2 * place + 1) if stacked else ((0, place), (1, place))
        above, below = (figure.add_subplot(grid[spot]) for spot in spots)
        _draw_rules(data.rules[data.rules["round"] == number], order, rules, above)
        above.set_title("opinion round" if number == 0 else f"critique round {number}", fontsize=pt(9), loc="left")
        mesh = _draw_support(own, order, citizens, rated, below)
        for ax, names in ((above, rules), (below, citizens)):
            shown = names if stacked or place == 0 else [""] * len(names)
            ax.set_yticks(np.arange(len(names)) + 0.5, shown, fontsize=pt(8))
        panels.append(below)
    if moved:
        changes = figure.add_subplot(grid[-1] if stacked else grid[1, -1])
        _draw_changes(data.opinions, citizens, changes, named=stacked)
    won = Patch(fill=False, edgecolor=_WON, linewidth=2.2, label=f"winner ({data.rule})")
    marks = {False: (INK, "first by the rule of the row"), True: ("white", "tied for first place")}
    seen = [marks[tied] for tied in sorted(data.rules["tied"].astype(bool).unique())]
    dots = [Line2D([], [], **_DOT, markerfacecolor=face, label=said) for face, said in seen]
    legend_below(figure, [won, *dots])
    colour_bar(mesh, panels, "agreement, 1 to 7" if rated else "rank, 1 is best", shrink=0.9, pad=0.02, aspect=18)
    return figure


def _draw_support(own: pd.DataFrame, order: list[int], citizens: list[str], rated: bool, ax: Axes) -> Any:
    """Draw what each citizen made of each candidate, and return the mesh for a colour bar."""
    matrix = own.pivot_table(index="name", columns="candidate", values="agreement" if rated else "rank", dropna=False)
    values = matrix.reindex(index=citizens, columns=order).to_numpy(float)
    lowest, highest = (1, 7) if rated else (1, max(len(order), 2))
    shades = SHARES if rated else SHARES.reversed()
    mesh = ax.pcolormesh(np.ma.masked_invalid(values), cmap=shades, vmin=lowest, vmax=highest, edgecolors="white")
    ax.set_facecolor("#EFEFEF")
    places = [np.arange(n) + 0.5 for n in (len(order), len(citizens))]
    write_numbers(mesh, values, lambda value: f"{value:g}", (places[0], places[1]))
    for winner in own.loc[own["winner"], "candidate"].unique():
        place = order.index(winner), 0
        ax.add_patch(Rectangle(place, 1, len(citizens), fill=False, edgecolor=_WON, linewidth=2.2, clip_on=False))
    policies = dict(zip(own["candidate"], own["policy"], strict=True))
    names = [f"{each} {policies[each]}" for each in order]
    ax.set_xticks(np.arange(len(order)) + 0.5, names, fontsize=pt(8), rotation=90)
    ax.set_xlabel("turn, by mean, best first", fontsize=pt(9))
    _bare(ax)
    return mesh


def _draw_rules(rules: pd.DataFrame, order: list[int], names: list[str], ax: Axes) -> None:
    """Mark the choice of each rule among the candidates of a round."""
    for row in rows_of(rules):
        face = "white" if row["tied"] else INK
        x, y = [order.index(each) + 0.5 for each in row["first"]], names.index(row["rule"]) + 0.5
        ax.plot(x, [y] * len(x), **_DOT, markerfacecolor=face)
    ax.set(xlim=(0, len(order)), ylim=(len(names), 0), xticks=[])
    ax.grid(axis="y", color="#E4E4E4", linewidth=0.8)
    _bare(ax)


def _bare(ax: Axes) -> None:
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _draw_changes(opinions: pd.DataFrame, citizens: Sequence[str], ax: Axes, *, named: bool) -> None:
    """Draw the first and the last opinion of each citizen, `named` at the axis."""
    for place, name in enumerate(citizens):
        own = opinions.loc[opinions["name"] == name, "value"].to_numpy()
        if len(own):
            ax.plot(own[[0, -1]], [place + 0.5] * 2, color="#C5CCD1", linewidth=1.5, zorder=1)
            ax.scatter(own[0], place + 0.5, s=46, facecolor="white", edgecolor=_BEFORE, linewidth=1.6, zorder=2)
            ax.scatter(own[-1], place + 0.5, s=20, color=_AFTER, zorder=3)
    points = [float(point) for point in opinions["scale"].iloc[0].split(",")]
    ax.set(xlim=(points[0] - 0.3, points[-1] + 0.3), ylim=(0, len(citizens)))
    ax.set_yticks(np.arange(len(citizens)) + 0.5, citizens if named else [""] * len(citizens))
    ax.set_xlabel("first (ring) and \nlast (dot) opinion", fontsize=pt(9))
    ax.grid(axis="both", color="#E4E4E4", linewidth=0.8)
    tidy(ax)
