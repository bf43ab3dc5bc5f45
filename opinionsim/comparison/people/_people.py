"""Compare people with agents in their places, published answers of models, and equations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd

from opinionsim.analysis import Table
from opinionsim.comparison.people._answer_agreement import resampled
from opinionsim.comparison.people._panel import RETEST
from opinionsim.comparison.people._predictions import equations, folds, shares
from opinionsim.errors import MeasurementError
from opinionsim.foundation.streams import stream
from opinionsim.foundation.templates import sentences
from opinionsim.measurement import STANCE
from opinionsim.metrics import ANY, SELF_REPORT, evidence_of, evidence_statement
from opinionsim.store import Results

#: Draws of an equation's answers.
_DRAWS = 10
#: Reliabilities of one rating between which its slope is corrected where nobody was asked again.
_RELIABILITIES = (0.7, 0.8, 0.9)
#: People who were asked again, as a column.
_AGAIN = "people, asked again"
_KEYS = ("topic", "unit", "agent", "step")


def updates(results: Results) -> pd.DataFrame:
    """Updates in a record of people, one row for each pair of successive ratings of a person.

    Parameters
    ----------
    results : Results
        From :func:`opinionsim.import_panel`, or from the experiment of its twins.

    Returns
    -------
    DataFrame
        ``unit`` (number of the unit), ``run_id``, ``topic``, ``group`` (the run if people in a group read one another,
        else the topic; with the step), ``agent``, ``step`` of the later rating, ``first``, ``last``; a column for each
        model with answers in the table, ``retest`` if people rated again, and ``twins`` if there are any, all on the
        scale of the people; and the columns of conditions.

    Raises
    ------
    MeasurementError
        If no person has two ratings.
    """
    runs = results.runs.drop_duplicates("run_id")
    people = runs[runs["interaction"] == "recorded"]
    if people.empty:
        raise MeasurementError(f"{results.name!r} is not a record of people; import a table first")
    factors = [name for name in map(str, runs) if name.startswith("interaction.conditions.")]
    told = people[["run_id", "replicate", "n_agents", "framing", *factors]].rename(columns={"replicate": "unit"})
    own = results.opinions[["run_id", "variable", "turn", "agent", "step", "value"]].merge(
        told.assign(topic=people["topic"]), on="run_id"
    )
    keys = ["run_id", "agent", "turn"]
    wide = own.pivot_table(index=keys, columns="variable", values="value", aggfunc="first").reset_index()
    stance = own[own["variable"] == STANCE].drop(columns=["variable", "value"])
    rated = stance.merge(wide, on=keys).dropna(subset=[STANCE]).sort_values(keys)
    by_person = rated.groupby(["run_id", "agent"])
    rated["first"] = by_person[STANCE].shift()
    if RETEST in rated:
        rated[RETEST] = by_person[RETEST].shift()
    found = rated.dropna(subset=["first"]).rename(columns={STANCE: "last"})
    if found.empty:
        raise MeasurementError("no person of the record has two ratings; an update needs one before and one after")
    alone = people["n_agents"].max() == 1
    found["group"] = (found["topic"] if alone else found["run_id"]) + "@" + found["step"].astype(str)
    twins = _twins(results, runs)
    if twins is not None:
        found = found.merge(twins, on=list(_KEYS), how="left")
        points = _points(results)
        turned = found["framing_twins"].ne(found["framing"]) & found["twins"].notna()
        found.loc[turned, "twins"] = points[0] + points[-1] - found.loc[turned, "twins"]
    names = {name: name.rpartition(".")[2] for name in factors}
    return found.drop(columns=["n_agents", "framing", "framing_twins"], errors="ignore").rename(columns=names)


def _twins(results: Results, runs: pd.DataFrame) -> pd.DataFrame | None:
    """What twins stated of the statement as it was worded, by topic, unit, agent and step; None without twins."""
    of = runs[runs["interaction"] == "twins"]
    if of.empty:
        return None
    said = results.opinions[(results.opinions["variable"] == STANCE) & (results.opinions["kind"] == SELF_REPORT)]
    told = of[["run_id", "topic", "replicate", "framing"]].rename(columns={"replicate": "unit"})
    found = said[["run_id", "agent", "step", "turn", "value"]].merge(told, on="run_id").sort_values("turn")
    found = found.rename(columns={"value": "twins", "framing": "framing_twins"}).drop(columns=["run_id", "turn"])
    return found.drop_duplicates(list(_KEYS), keep="last")


def _points(results: Results) -> np.ndarray:
    """The points of the scale of a record."""
    return np.array(results.spec["scale"]["points"], dtype=float)


@dataclass(frozen=True)
class _Column:
    """One column of the table: whose next opinions they are, and how well they were predicted.

    Attributes
    ----------
    last : ndarray of int, shape (n, d)
        Position of the next opinion, in d draws; -1 where there is none.
    evidence : str
        What they are evidence of.
    scores : dict of str to ndarray, shape (n,)
        Log scores of people's next opinions, by measure.
    guess : ndarray of int, shape (n,), or None
        The one best guess of each next opinion; None where `last` is one.
    """

    last: np.ndarray
    evidence: str
    scores: Mapping[str, np.ndarray]
    guess: np.ndarray | None = None


def people_table(results: Results, *, cutoffs: Mapping[str, date] | None = None) -> Table:
    """Compare people with models in their places and with equations, in one table with intervals over units.

    Parameters
    ----------
    results : Results
        From :func:`opinionsim.import_panel`, or from the experiment of its twins.
    cutoffs : mapping of str to date, optional
        Last day that a model's training data may cover, by the name of its column (``twins`` for the twins).

    Returns
    -------
    Table
        Its frame has one row per ``measure`` and ``of`` with ``value``, ``low``, ``high``, the number ``n`` of updates,
        and ``evidence``. Intervals extend 1.96 bootstrap standard errors to either side. The bootstrap resamples units
        with all their updates and does not repeat the fits.

    Raises
    ------
    MeasurementError
        If there are no updates, or fewer than three units.
    """
    table, points = updates(results), _points(results)
    if not table[["first", "last"]].stack().isin(points).all():
        raise MeasurementError("people rated between points, but this table counts points; opinionsim table has means")
    units = pd.factorize(table["unit"])[0]
    n_units = int(units.max()) + 1
    if n_units < 3:
        raise MeasurementError(f"the record has {n_units} units with two ratings, but an interval needs at least 3")
    measuring = _Measuring(table, points, units)
    runs = results.runs
    columns = dict(measuring.columns(evidence_of(runs.loc[runs["interaction"] == "twins", "evidence"])))
    rows = []
    for of, column in columns.items():

        def of_units(counts: np.ndarray, column: _Column = column) -> dict[str, float]:
            return measuring.measures(column, counts[units].astype(float))

        n = int((column.last[:, 0] >= 0).sum())
        for measure, value, half in resampled(n_units, of_units, "people intervals"):
            low, high = np.clip([value - half, value + half], *_limits(measure))
            rows.append((measure, of, value, low, high, n, column.evidence))
    frame = pd.DataFrame(rows, columns=["measure", "of", "value", "low", "high", "n", "evidence"])
    frame = pd.concat([frame, _corrected(frame)] if RETEST not in table else [frame], ignore_index=True)
    return _printed(results, frame, n_units, cutoffs or {})


class _Measuring:
    """The updates of a record as arrays, and what is measured of the next opinions in a column of the table."""

    def __init__(self, table: pd.DataFrame, points: np.ndarray, units: np.ndarray) -> None:
        self._table, self._points, self._k = table, points, len(points)
        self._first, self._last = self._places("first"), self._places("last")
        self._fold = folds(units)
        self._topic, self._group = (pd.factorize(table[name])[0] for name in ("topic", "group"))
        self._groups = bool((table["group"] != table["topic"] + "@" + table["step"].astype(str)).any())

    def _places(self, name: str) -> np.ndarray:
        """Positions on the scale, -1 where there is no opinion."""
        values = self._table[name].to_numpy(dtype=float)
        found = np.searchsorted(self._points, np.nan_to_num(values, nan=self._points[0]))
        return np.where(np.isnan(values), -1, found)

    def columns(self, evidence_of_twins: str) -> Iterator[tuple[str, _Column]]:
        """The columns of the table, people first."""
        known = self._score(self._first)
        topics = self._score(self._first + self._k * self._topic)
        alone = self._score(np.zeros_like(self._first))
        of_people = {"log score": known, "log score, with topic": topics, "log score of shares alone": alone}
        yield "people", _Column(self._last[:, None], "human", of_people)
        if RETEST in self._table:
            yield _AGAIN, _Column(self._places(RETEST)[:, None], "human", {})
        listed = set(self._table.columns) - {*_KEYS, "run_id", "turn", "first", "last", "group", RETEST, "twins"}
        models = [name for name in sorted(listed) if self._table[name].dtype.kind == "f"]
        for name in [*models, *(["twins"] if "twins" in self._table else [])]:
            said = self._places(name)
            scores = {
                "log score": self._score(said + 1),
                "log score, with first opinion": self._score(said + 1 + (self._k + 1) * self._first),
            }
            yield name, _Column(said[:, None], evidence_of_twins if name == "twins" else "model", scores)
        draws = stream(0, "people draws")
        for name, predicted in equations(self._points, self._first, self._last, self._means(), self._fold):
            drawn = (predicted.cumsum(axis=1)[:, None, :-1] < draws.random((len(predicted), _DRAWS, 1))).sum(axis=2)
            guess = self._first if name == "persistence" else predicted.argmax(axis=1)
            last = self._first[:, None] if name == "persistence" else drawn
            yield name, _Column(last, "equation", {"log score": self._log(predicted)}, guess)

    def _means(self) -> np.ndarray:
        """The mean first opinion of the others of each person's group."""
        x = self._points[self._first]
        n, total = np.bincount(self._group), np.bincount(self._group, weights=x)
        others = n[self._group] - 1
        # One that is alone has nobody to be drawn to.
        return np.asarray(np.where(others > 0, (total[self._group] - x) / np.maximum(others, 1), x))

    def _score(self, given: np.ndarray) -> np.ndarray:
        return self._log(shares(self._last, given, self._k, self._fold))

    def _log(self, predicted: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(predicted[np.arange(len(predicted)), self._last]))

    def measures(self, column: _Column, weights: np.ndarray) -> dict[str, float]:
        """All measures of a column; each update counts `weights` (n,) times."""
        n, d = column.last.shape
        there = (column.last >= 0).ravel()
        place = column.last.ravel()[there]
        w = np.repeat(weights / d, d)[there]
        first, people, topic = (np.repeat(each, d)[there] for each in (self._first, self._last, self._topic))
        group = (np.repeat(self._group, d) * d + np.tile(np.arange(d), n))[there]
        x, y = self._points[first], self._points[place]
        change, total = y - x, w.sum()

        def mean(values: np.ndarray) -> float:
            # Not by a product of vectors, whose last digits depend on the number of threads.
            return float((w * values).sum() / total)

        centred = x - mean(x)
        found = {
            "share that changed": mean(place != first),
            "mean |change|": mean(np.abs(change)),
            "mean change": mean(change),
            "slope of change on first opinion": _ratio(mean(centred * change), mean(centred**2)),
            "variance ratio within groups": _ratio(_variance(y, w, group), _variance(x, w, group)),
        }
        for position, point in enumerate(self._points):
            at = first == position
            found[f"change from {point:g}"] = _ratio(mean(at * change), mean(at))
        if self._groups:
            found["share of groups that converged"] = _converged(x, y, w, group)
        if column.last is not self._last and not np.array_equal(place, people):
            joint = self._shares(first * self._k + place, w, self._k**2) - self._shares(
                first * self._k + people, w, self._k**2
            )
            found["distance of transitions from people's"] = float(np.abs(joint).sum() / 2)
            found["Wasserstein distance of last opinions"] = self._moved(topic, place, people, w)
            guess = place if column.guess is None else np.repeat(column.guess, d)[there]
            found["share of guesses that are right"] = mean(guess == people)
            found["mean error of a guess"] = mean(np.abs(self._points[guess] - self._points[people]))
        for measure, scores in column.scores.items():
            found[measure] = float((weights * scores).sum() / weights.sum())
        return found

    def _shares(self, values: np.ndarray, w: np.ndarray, size: int) -> np.ndarray:
        return np.asarray(np.bincount(values, weights=w, minlength=size) / w.sum())

    def _moved(self, topic: np.ndarray, place: np.ndarray, people: np.ndarray, w: np.ndarray) -> float:
        """Wasserstein-1 distance of last opinions within topics, in points of the scale; topics count by updates."""
        k, size = self._k, (int(self._topic.max()) + 1) * self._k
        gap = self._shares(topic * k + place, w, size) - self._shares(topic * k + people, w, size)
        below = np.abs(gap.reshape(-1, k).cumsum(axis=1))[:, :-1]
        return float((below * np.diff(self._points)).sum())


def _limits(measure: str) -> tuple[float, float]:
    """What a measure can be, beyond which no interval reaches."""
    signed = measure.startswith(("mean change", "slope", "change", "log"))
    return ANY if signed else (0.0, 1.0 if measure.startswith(("share", "distance")) else np.inf)


def _ratio(above: float, below: float) -> float:
    """Their ratio; NaN where there is nothing to compare with."""
    return above / below if below > 0 else np.nan


def _variance(values: np.ndarray, w: np.ndarray, group: np.ndarray) -> float:
    """The pooled variance within groups."""
    spread, size = _spreads(values, w, group)
    return _ratio(float(spread.sum()), float(size.sum()))


def _spreads(values: np.ndarray, w: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted sum of squares around the mean, and sum of weights, of each group."""
    size = np.bincount(group, weights=w)
    total = np.bincount(group, weights=w * values)
    squares = np.bincount(group, weights=w * values**2)
    return squares - total**2 / np.maximum(size, 1e-12), size


def _converged(x: np.ndarray, y: np.ndarray, w: np.ndarray, group: np.ndarray) -> float:
    """The share, among groups that differed at first, of those that differ less in the end."""
    before, size = _spreads(x, w, group)
    after, _ = _spreads(y, w, group)
    apart = before > 1e-9
    n = np.bincount(group)
    counts = np.where(apart, size / np.maximum(n, 1), 0.0)
    return _ratio(float((counts * (after < before - 1e-9)).sum()), float(counts.sum()))


def _corrected(frame: pd.DataFrame) -> pd.DataFrame:
    """People's slope if the first rating had some reliability: that of the last opinion grows by its inverse."""
    slope = frame[(frame["measure"] == "slope of change on first opinion") & (frame["of"] == "people")]
    numbers = ["value", "low", "high"]
    return pd.concat(
        slope.assign(
            measure=f"slope if reliability is {each}", **{name: (slope[name] + 1) / each - 1 for name in numbers}
        )
        for each in _RELIABILITIES
    )


def _printed(results: Results, frame: pd.DataFrame, n_units: int, cutoffs: Mapping[str, date]) -> Table:
    """The table, measures in rows."""
    ofs, measures = list(dict.fromkeys(frame["of"])), list(dict.fromkeys(frame["measure"]))
    cells = {(measure, of): _cell(*numbers) for measure, of, *numbers in frame.iloc[:, :5].itertuples(index=False)}
    models = [of for of in ofs if of in cutoffs or (frame.loc[frame["of"] == of, "evidence"] == "model").any()]
    collected = results.manifest["spec"]["sweep"][0]["interaction"][0].get("collected")
    dates = {"people": collected or "no date given", **{of: str(cutoffs.get(of, "no cutoff given")) for of in models}}
    rows = [("data collected, or training data until", *(dates.get(of, "") for of in ofs))]
    rows += [(measure, *(cells.get((measure, of), "") for of in ofs)) for measure in measures]
    notes = sentences(
        "opinionsim.comparison.people",
        "people.txt",
        n=int(frame["n"].max()),
        n_units=n_units,
        asked_again=_AGAIN if _AGAIN in ofs else "",
        may_know=[of for of in models if not _is_later(collected, cutoffs.get(of))],
    )
    statement = evidence_statement(frame["evidence"])
    return Table(f"{statement} | People and their replacements", (("", *ofs),), tuple(rows), 1, frame, tuple(notes))


def _is_later(collected: str | None, cutoff: date | None) -> bool:
    """Whether the data were collected after the training data of a model end."""
    return collected is not None and cutoff is not None and date.fromisoformat(collected) > cutoff


def _cell(value: float, low: float, high: float) -> str:
    if np.isnan(value):
        return "undefined"
    return f"{value:.3f}" if np.isnan(low) else f"{value:.3f} [{low:.3f}, {high:.3f}]"
