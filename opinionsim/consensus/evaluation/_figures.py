"""Figures of ratings: reliability of raters, win rates, distributions, divisiveness, and pairwise accuracy.

After figures S4 to S11 of the appendix of Bakker et al. 2022.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from opinionsim.classifiers import Item
from opinionsim.consensus.evaluation import _measures as measures
from opinionsim.consensus.evaluation._baselines import BaselineClassifier
from opinionsim.consensus.evaluation._choices import picked
from opinionsim.drawing import INK, legend_below, model_colours, new_panels, pt, tidy
from opinionsim.errors import MeasurementError
from opinionsim.metrics import evidence_of, evidence_statement, named_conditions, one_wording, wording_statement
from opinionsim.plots import Shown, drawn_from
from opinionsim.registry import find, part, summary
from opinionsim.store import Results

_Names = str | Sequence[str]
_By = _Names | None
_Marks = Iterator[dict[str, Any]]
#: The baselines that the source sets a reward model beside (D5).
_BASELINES = ("tfidf", "longest", "rouge1", "rouge2", "rougeL", "bleu")
#: What win rates are by, and the welfare functions beside the rules that pick by them (D6, D7).
_TWO, _WELFARE, _RULES = ("mean", "median"), ["mean", "nash", "egalitarian"], ["utilitarian", "nash", "egalitarian"]
#: Of measures whose axis has a span of its own: its ends, and a place on it with its name.
_SPANS = {
    "win rate": (-0.03, 1.03, 0.5, "both win as often"),
    "share of pairs in order": (0, 1, 0.5, "chance"),
    "mean agreement": (1, 7, 4, "neutral"),
}
#: The look of the line at that place.
_LINE: Mapping[str, Any] = {"color": INK, "linestyle": "--", "linewidth": 0.9}
#: Marks of series, which tell them apart without colours.
_SIGNS = "osD^vPX"


def _numbers(results: Results, by: _By, reliable: bool, of: Callable[..., Any], said: str) -> pd.DataFrame:
    """What `of` makes of the ratings of each condition, which names the marks that have no series."""
    from opinionsim.consensus import ratings

    taken, others = one_wording(results.ordered_runs.astype({"cell": object}))
    runs, _, notes = named_conditions(taken[taken["status"] == "complete"].drop_duplicates("run_id"), by)
    rated = runs[["run_id", "condition"]].merge(ratings(results), left_on="run_id", right_on="group")
    found = [
        pd.DataFrame(of(own)).assign(condition=condition, evidence=evidence_of(own["evidence"]))
        for condition, own in (measures.reliable(rated) if reliable else rated).groupby("condition", sort=False)
    ]
    frame = pd.concat([rated.iloc[:0, :0], *found], ignore_index=True)
    if frame.empty:
        needed = "give interaction.ratings: {passes: 2, position: before}, and two or more drafters"
        raise MeasurementError(f"{results.name} has no complete run with ratings for this figure ({said}); {needed}")
    if "series" in frame:
        own, several = frame["series"] != "", frame["condition"].nunique() > 1
        frame["panel"] = frame["panel"].mask(own & several, frame["panel"] + ", " + frame["condition"])
        frame["series"] = frame["series"].where(own, frame["condition"])
        notes.append("bars: 95 % interval over resampled groups")
    notes += [f"only raters with a kappa of at least {measures.RELIABLE}"] if reliable else []
    frame.attrs["notes"] = list(filter(None, [said, *notes, wording_statement(others["wording"])]))
    return frame


def _mark(rows: pd.DataFrame, values: Any, measure: str, panel: str, at: Any, series: str = "") -> dict[str, Any]:
    """A mean of values of rows, as a mark."""
    found = measures.interval(measures.estimate(rows.assign(value=values), "value"), "value")
    return {"panel": panel, "at": at, "series": series, "measure": measure, **found}


def _shares(rated: pd.DataFrame, value: str, panel: str, series: str = "") -> _Marks:
    """Shares of ratings at each point of the scale."""
    known = rated.dropna(subset=[value])
    for point in range(measures.LOWEST, measures.HIGHEST + 1) if len(known) else ():
        yield _mark(known, known[value] == point, "share of ratings", panel, point, series)


def kappas_data(results: Results, value: str = "agreement", by: _By = None) -> pd.DataFrame:
    """Compute the numbers for the figure of reliability.

    Parameters
    ----------
    results : Results
        A store's results; only complete runs count.
    value : str
        The rating to compare between the first two passes, ``agreement`` or ``quality``.
    by : str or sequence of str, optional
        Columns of ``runs`` that define conditions; by default, each cell is a condition.

    Returns
    -------
    DataFrame
        One row per rater who rated twice, as in :func:`opinionsim.consensus.reliability`, with ``condition`` and
        ``evidence``.

    Raises
    ------
    MeasurementError
        If nobody rated twice.
    SpecError
        If a column does not exist, or conditions would be mixed.
    """
    said = f"linearly weighted kappa of two passes of {value}, reliable from {measures.RELIABLE} (dashed)"
    return _numbers(results, by, False, lambda own: measures.reliability(own, value=value).query("n > 0"), said)


def wins_data(
    results: Results, aggregate: _Names = _TWO, rules: Sequence[str] = (), by: _By = None, reliable: bool = False
) -> pd.DataFrame:
    """Compute the numbers for the figure of win rates.

    Parameters
    ----------
    results, by
        As for :func:`kappas_data`.
    aggregate : str or sequence of str
        How to aggregate the agreement of a group, as for :func:`opinionsim.consensus.win_rates`; one panel each:
        ``mean`` (utilitarian), ``median``, ``nash``, ``egalitarian``.
    rules : sequence of str
        Rules that pick statements by predicted agreement; the figure compares these instead of drafters.
    reliable : bool
        Whether to include only raters who are reliable by :func:`opinionsim.consensus.reliability`.

    Returns
    -------
    DataFrame
        One row per mark, as in all figures of ratings except kappas: ``panel``; ``at``, its row; ``series``;
        ``measure``, the meaning of the value; ``value``; ``low`` and ``high``, its 95 % interval over resampled groups
        (NaN for a single group); ``n`` of ``n_groups``; ``condition`` and ``evidence``. This figure also has
        ``policy``, ``other`` and ``ties``, which do not count in win rates.

    Raises
    ------
    MeasurementError
        If fewer than two policies were rated, or `rules` are given but there is no predicted agreement.
    SpecError
        If a column, an aggregate or a rule does not exist, or conditions would be mixed.
    """

    def of(own: pd.DataFrame) -> pd.DataFrame:
        aggregates = [aggregate] if isinstance(aggregate, str) else aggregate
        found = measures.win_rates(picked(own, rules) if rules else own, aggregates=aggregates)
        found["at"], found["panel"] = found["policy"] + " over " + found["other"], "by " + found["aggregate"]
        return found.rename(columns={"win_rate": "value"}).assign(series="", measure="win rate")

    first = "winners of the first rule by predicted agreement" if rules else "statements of the first drafter"
    return _numbers(results, by, reliable, of, f"share of groups that agree more with {first} (without ties)")


def ratings_data(results: Results, by: _By = None, reliable: bool = False) -> pd.DataFrame:
    """Compute the numbers for the figure of distributions.

    Parameters
    ----------
    results, by, reliable
        As for :func:`wins_data`.

    Returns
    -------
    DataFrame
        Shares of ratings at each point of the scale, by policy, without the position statement; one panel for agreement
        and one for quality. All passes count.

    Raises
    ------
    MeasurementError, SpecError
        As for :func:`wins_data`.
    """

    def of(own: pd.DataFrame) -> _Marks:
        drafted = measures.whole(own[own["policy"] != measures.POSITION])
        for value in ("agreement", "quality"):
            for policy, each in drafted.groupby("policy", sort=False):
                yield from _shares(each, value, value, str(policy))

    return _numbers(results, by, reliable, of, "ratings of statements by drafter")


def divisiveness_data(results: Results, by: _By = None, reliable: bool = False) -> pd.DataFrame:
    """Compute the numbers for the figure of divisiveness.

    Parameters
    ----------
    results, by, reliable
        As for :func:`wins_data`.

    Returns
    -------
    DataFrame
        Shares of ratings of the position statement; shares of groups by internal agreement on it (0 for an even split,
        1 if all lean the same way); and the mean agreement with statements of each policy on divisive questions (below
        1) and on others.

    Raises
    ------
    MeasurementError
        If no position statement was rated.
    SpecError
        As for :func:`wins_data`.
    """

    def of(own: pd.DataFrame) -> _Marks:
        # A position statement that was rated in several rounds counts as in the first.
        first = own["policy"].ne(measures.POSITION) | own["round"].eq(own.groupby("group")["round"].transform("min"))
        table = measures.candidate_table(own := measures.whole(own[first]))
        groups = table[table["policy"] == measures.POSITION].dropna(subset=["divisive"])
        yield from _shares(own[own["policy"] == measures.POSITION], "agreement", "ratings of the position statement")
        leaning = groups["internal_agreement"].round(2)
        for level in leaning.unique():
            yield _mark(groups, leaning == level, "share of groups", "internal agreement on it", level)
        kinds = groups.set_index("group")["divisive"].map({1.0: "divisive", 0.0: "not divisive"})
        drafted = table[table["policy"] != measures.POSITION].assign(kind=table["group"].map(kinds))
        for (policy, kind), each in drafted.groupby(["policy", "kind"], sort=False) if len(kinds) else ():
            yield _mark(each, each["mean"], "mean agreement", "statements", policy, f"{kind} questions")

    return _numbers(results, by, reliable, of, "divisive: citizens of a group lean both ways on the position statement")


def accuracy_data(results: Results, by: _By = None, reliable: bool = False) -> pd.DataFrame:
    """Compute the numbers for the figure of pairwise accuracy.

    Parameters
    ----------
    results, by, reliable
        As for :func:`wins_data`.

    Returns
    -------
    DataFrame
        The mean of :func:`opinionsim.consensus.pairs_in_order` for predicted agreement, if there is any, and for the
        six baselines of the source.

    Raises
    ------
    MeasurementError
        If no citizen with an opinion rated two statements differently, or the extra ``consensus`` is missing.
    SpecError
        As for :func:`wins_data`.
    """

    def of(own: pd.DataFrame) -> _Marks:
        known = own[own["opinion"].notna() & (own["policy"] != measures.POSITION)]
        items = [Item(text, about=opinion) for text, opinion in known[["statement", "opinion"]].to_numpy()]
        scores: dict[str, Any] = {"predicted agreement": known["predicted_agreement"]}
        scores |= {method: BaselineClassifier(method=method).classify(items).value for method in _BASELINES}
        for name, score in scores.items():
            pairs = measures.pairs_in_order(known.assign(predicted_agreement=score))
            if len(pairs):
                yield _mark(pairs, pairs["right"], "share of pairs in order", "statements rated apart", name)

    return _numbers(results, by, reliable, of, "predictions that agree with a citizen's preference; ties count half")


def _lines(data: pd.DataFrame) -> list[str]:
    """The title of a figure."""
    return [evidence_statement(data["evidence"]), *data.attrs["notes"]]


def _drawn(data: pd.DataFrame) -> Figure:
    """Draw marks with intervals, one panel each, in rows."""
    panels = {str(name): own for name, own in data.groupby("panel", sort=False)}
    colours, drawn, lines = model_colours(data["series"]), dict[str, Any](), dict[str, Any]()
    signs = dict(zip(colours, _SIGNS * len(colours), strict=False))
    height = 0.1 * max(own["at"].nunique() * (1 + own["series"].nunique()) for own in panels.values()) + 0.7
    figure, axes = new_panels(list(panels), _lines(data), (4.6, height), n_columns=min(2, len(panels)))
    for ax, own in zip(axes, panels.values(), strict=True):
        rows, series = (list(dict.fromkeys(own[name])) for name in ("at", "series"))
        if not isinstance(rows[0], str):
            rows = sorted(rows, reverse=True)
        for number, name in enumerate(series):
            marks = own[own["series"] == name]
            at = marks["at"].map(rows.index) + (number - (len(series) - 1) / 2) * 0.7 / len(series)
            ends = marks[["low", "high"]].sub(marks["value"], axis=0).abs().to_numpy().T
            drawn[name] = ax.errorbar(marks["value"], at, xerr=ends, fmt=signs[name], c=colours[name], ms=4, label=name)
        ax.set(yticks=range(len(rows)), yticklabels=rows, ylim=(len(rows) - 0.5, -0.5))
        ax.set_xlabel(measure := str(own["measure"].iloc[0]), fontsize=pt(9))
        low, high, even, said = _SPANS.get(measure, (-0.02, None, None, ""))
        ax.set_xlim(low, high)
        if even is not None:
            lines[said] = ax.axvline(even, **_LINE, label=said)
        ax.grid(axis="x", color="#E4E4E4", linewidth=0.8)
        tidy(ax)
    bar = Line2D([], [], color=INK, linewidth=1.5, label="95% interval over resampled groups")
    legend_below(figure, [*(drawn.values() if len(drawn) > 1 else ()), bar, *lines.values()])
    return figure


def _figure(name: str, count: Callable[..., pd.DataFrame], *more: Shown) -> Callable[[Any], Callable[..., Figure]]:
    """Mark the draw step of a figure; reports show its variants for which there are numbers."""

    def shown(results: Results) -> Iterator[Shown]:
        for each in (Shown(name, summary(find("figure", name))), *more):
            with suppress(MeasurementError):
                count(results, **each.settings)
                yield each

    return lambda draw: part("figure", name=name, numbers=count, shown=shown)(drawn_from(count)(draw))


@_figure("kappas", kappas_data)
def kappas_figure(data: pd.DataFrame) -> Figure:
    """Draw the distribution of kappa over raters, and the threshold for reliable raters.

    Parameters
    ----------
    results, value, by
        As for :func:`kappas_data`.

    Returns
    -------
    Figure
        Bars for each condition, side by side. The legend shows the number of reliable raters. A rater whose kappa is
        undefined has no bar and is not reliable.

    Raises
    ------
    MeasurementError, SpecError
        As for :func:`kappas_data`.

    Notes
    -----
    Figure S4 of the appendix of Bakker et al. 2022 (D3).
    """
    figure, (ax,) = new_panels([""], _lines(data), (6.0, 2.6))
    parts = {str(name): own for name, own in data.groupby("condition", sort=False)}
    names = [f"{name}: {own['reliable'].sum()} of {len(own)} raters reliable" for name, own in parts.items()]
    kappas = [own["kappa"].dropna().to_numpy() for own in parts.values()]
    lowest = int(10 * min([measures.RELIABLE, *data["kappa"].dropna()]) // 1)
    colours = [model_colours(parts)[name] for name in parts]
    ax.hist(kappas, [tenth / 10 for tenth in range(lowest, 11)], color=colours, label=names)
    ax.axvline(measures.RELIABLE, **_LINE, label=f"minimum kappa of a reliable rater, {measures.RELIABLE}")
    ax.set_xlabel("kappa", fontsize=pt(9))
    ax.set_ylabel("raters", fontsize=pt(9))
    tidy(ax)
    legend_below(figure, ax.get_legend_handles_labels()[0])
    return figure


_PICKS = Shown("wins-welfare", "The same for winners by welfare function.", {"aggregate": _WELFARE, "rules": _RULES})


@_figure("wins", wins_data, _PICKS)
def wins_figure(data: pd.DataFrame) -> Figure:
    """Draw the share of groups that agree more with the statements of one drafter than with those of another.

    Parameters
    ----------
    results, aggregate, rules, by, reliable
        As for :func:`wins_data`.

    Returns
    -------
    Figure
        One panel per aggregate and one row per pair; right of the dashed line, the first policy wins more often.

    Raises
    ------
    MeasurementError, SpecError
        As for :func:`wins_data`.

    Notes
    -----
    Figures S6, S8 and S9 of the appendix of Bakker et al. 2022 (D6, D7).
    """
    return _drawn(data)


@_figure("ratings", ratings_data)
def ratings_figure(data: pd.DataFrame) -> Figure:
    """Draw the ratings of each drafter's statements for agreement and quality.

    Parameters
    ----------
    results, by, reliable
        As for :func:`ratings_data`.

    Returns
    -------
    Figure
        One panel for agreement and one for quality in each condition, from the highest rating to the lowest.

    Raises
    ------
    MeasurementError, SpecError
        As for :func:`ratings_data`.

    Notes
    -----
    Figure S7 of the appendix of Bakker et al. 2022 (D7).
    """
    return _drawn(data)


@_figure("divisiveness", divisiveness_data)
def divisiveness_figure(data: pd.DataFrame) -> Figure:
    """Draw how divided groups are over the position statement, and how far they agree with statements.

    Parameters
    ----------
    results, by, reliable
        As for :func:`divisiveness_data`.

    Returns
    -------
    Figure
        Ratings of the position statement; internal agreement of groups; and the mean agreement with statements of each
        policy on divisive and other questions. The dashed line marks neutral.

    Raises
    ------
    MeasurementError, SpecError
        As for :func:`divisiveness_data`.

    Notes
    -----
    Figures S10 and S11 of the appendix of Bakker et al. 2022 (D7).
    """
    return _drawn(data)


@_figure("pairwise-accuracy", accuracy_data)
def accuracy_figure(data: pd.DataFrame) -> Figure:
    """Draw the share of pairs that predictions order as citizens do, compared with six baselines.

    Parameters
    ----------
    results, by, reliable
        As for :func:`accuracy_data`.

    Returns
    -------
    Figure
        One row per predictor; the dashed line marks chance.

    Raises
    ------
    MeasurementError, SpecError
        As for :func:`accuracy_data`.

    Notes
    -----
    Figure S5b of the appendix of Bakker et al. 2022 (D5).
    """
    return _drawn(data)
