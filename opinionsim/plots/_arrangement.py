"""Arrange runs and conditions in a grid that follows the factors of the design."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import pandas as pd

from opinionsim import metrics
from opinionsim.drawing import Facets
from opinionsim.errors import SpecError
from opinionsim.plots._inputs import having, matching

#: Panel titles of the interactions in which no agent reads another (Chuang et al. 2023, controls; A12).
_CONTROLS: Mapping[str, str] = {
    "independent": "role play, no interaction (independent reports)",
    "remembered": "role play, no interaction (remembered reports)",
    "no-role-play": "no role play, no interaction",
}

#: Most panels of a figure whose conditions form no grid, and most that stand in two columns.
_MAX_CELLS, _TWO_COLUMNS = 12, 6


class Spot(NamedTuple):
    """A run and the place of its panel."""

    row: int
    column: int
    title: str
    run: pd.Series


@dataclass(frozen=True)
class Arrangement:
    """Places of all panels.

    Attributes
    ----------
    places, controls : sequence of Place
        Conditions, and below them controls without interaction.
    n_columns : int
        Columns of panels.
    row_titles, column_titles : tuple of str
        Headings of a grid; empty if each panel has its own title.
    notes : sequence of str
        Conditions that are held at one level, and cells that are left out.
    """

    places: Sequence[Spot]
    n_columns: int
    row_titles: tuple[str, ...] = ()
    column_titles: tuple[str, ...] = ()
    notes: Sequence[str] = ()
    controls: Sequence[Spot] = ()


def facets(
    factors: pd.DataFrame, rows: str | None = None, columns: str | None = None, *, lines: bool = False
) -> Facets | None:
    """Places of conditions, chosen as for :func:`arrange`.

    Parameters
    ----------
    factors : DataFrame
        One row per condition, whose name is the index, with its level of each factor in words.
    rows, columns : str, optional
        Factors that vary down and across.
    lines : bool
        Whether conditions may share a panel if they differ only in factors other than `rows` and `columns`. If
        neither is given and two factors vary, one varies across panels and the other within them.

    Returns
    -------
    Facets or None
        None if the conditions do not fill a grid, or if no grid is needed.

    Raises
    ------
    SpecError
        If `rows` and `columns` are not two different factors that vary.
    """
    axes = [str(axis) for axis in factors if factors[axis].nunique() > 1]
    given = [axis for axis in (rows, columns) if axis is not None]
    if not {*given} <= {*axes} or len({*given}) < len(given):
        raise SpecError(
            f"rows and columns must be two of {', '.join(axes) or 'the conditions, none of which varies'}; "
            f"got {' and '.join(given)}"
        )
    if len(factors) < prod(factors[axis].nunique() for axis in axes) or (len(axes) < 2 and not given):
        return None
    if not given:
        rows, columns = _layout(axes, None, None)
        columns = columns or next((axis for axis in axes if axis != rows), None)
        rows = None if lines and len(axes) == 2 else rows
    within = [axis for axis in axes if axis not in (rows, columns)]
    if within and not lines:
        return None
    down, across = (list(factors[axis].unique()) if axis else [""] for axis in (rows, columns))
    levels = factors.to_dict("index")
    return Facets(
        down,
        across,
        {str(name): (down.index(own[rows]) if rows else 0, across.index(own[columns]) if columns else 0)
         for name, own in levels.items()},
        {str(name): ", ".join(own[axis] for axis in within) for name, own in levels.items()},
    )  # fmt: skip


class _Level(NamedTuple):
    """The level at which a condition is held, and all its levels."""

    level: Any
    levels: list[Any]


def arrange(
    runs: pd.DataFrame, rows: str | None, columns: str | None, where: Mapping[str, Any], replicate: int
) -> Arrangement:
    """Choose runs and give each its place; parameters and errors as for :func:`opinionsim.plots.panels_data`."""
    metrics.check_columns(runs, [axis for axis in (rows, columns, *where) if axis is not None])
    planned = matching(runs, {"replicate": replicate, **where})
    complete = runs[(runs["status"] == "complete") & (runs["replicate"] == replicate)]
    if complete.empty:
        raise SpecError(f"there is no complete run of replicate {replicate} to draw")
    chosen = having(complete, where, f" of replicate {replicate}")
    is_control = chosen["interaction"].isin(list(_CONTROLS))
    main = chosen[~is_control] if (~is_control).any() else chosen
    planned = planned[planned["interaction"].isin(set(main["interaction"]))]
    if rows is None and columns is None and not _is_grid(planned):
        held: dict[str, _Level] = {}
        grid = _by_cell(main)
    else:
        rows, columns = _layout(metrics.condition_axes(main), rows, columns)
        main = _all_named(main, rows, columns)
        others = [axis for axis in (*metrics.condition_axes(main), "seed") if axis not in (rows, columns)]
        main, held = _hold(main, others)
        grid = _grid(main, rows, columns)
    controls = chosen[is_control & ~chosen["run_id"].isin(main["run_id"])]
    titles = metrics.topic_titles(chosen)
    notes = [*(_say_held(axis, one, titles) for axis, one in held.items()), *grid.notes]
    return replace(grid, notes=notes, controls=_control_places(controls, main, held, grid))


def _all_named(runs: pd.DataFrame, *more: str | None) -> pd.DataFrame:
    """The runs with a level of each varying condition in every row, so that a run without one keeps its panel."""
    axes = {*metrics.condition_axes(runs), *(axis for axis in more if axis is not None)}
    return runs.assign(**{axis: runs[axis].astype(object).where(runs[axis].notna(), metrics.NOT_SET) for axis in axes})


def _is_grid(runs: pd.DataFrame) -> bool:
    """Whether runs fill the crossings of all conditions, or most crossings of two."""
    axes = [axis for axis in metrics.condition_axes(runs) if axis != "topic"]
    cells = len(_all_named(runs)[axes].drop_duplicates()) if axes else 1
    crossed = prod(runs[axis].nunique(dropna=False) for axis in axes)
    return cells == crossed or (len(axes) == 2 and 2 * cells > crossed)


def _layout(axes: Iterable[str], rows: str | None, columns: str | None) -> tuple[str | None, str | None]:
    """The condition that varies down and the one that varies across, chosen where the caller names none."""
    varying = [axis for axis in axes if axis not in (rows, columns)]
    free = [axis for axis in varying if axis != "topic"]
    if not free and rows is None and columns is None:
        free = varying
    if columns is None and "framing" in free and (rows or len(free) > 1):
        columns = "framing"
    if rows is None and "confirmation_bias" in free and (columns or len(free) > 1):
        rows = "confirmation_bias"
    free = [axis for axis in free if axis not in (rows, columns)]
    if columns is None and free and (rows or len(free) > 1):
        columns = free.pop(0)
    if rows is None and free:
        rows = free.pop(0)
    return rows, columns


def _hold(runs: pd.DataFrame, axes: Sequence[str]) -> tuple[pd.DataFrame, dict[str, _Level]]:
    """Hold conditions one after the other, each at the first level of the runs that are left."""
    held = {}
    levels = {axis: metrics.order_levels(runs[axis]) for axis in axes}
    for axis in axes:
        if len(levels[axis]) > 1:
            held[axis] = _Level(metrics.order_levels(runs[axis])[0], levels[axis])
            runs = runs[runs[axis] == held[axis].level]
    return runs, held


def _say_held(axis: str, held: _Level, titles: Mapping[str, str]) -> str:
    """A held condition in words."""
    which = "first" if held.level == held.levels[0] else "one"
    level = titles.get(held.level, held.level) if axis == "topic" else held.level
    return f"{metrics.axis_name(axis)} held at {level} ({which} of {len(held.levels)})"


def _by_cell(runs: pd.DataFrame) -> Arrangement:
    """One panel per condition, on the topic of most runs; and notes on what is left out."""
    axes = [axis for axis in metrics.condition_axes(runs) if axis != "topic"]
    shared = runs["topic"].mode()[0]
    ranked = _all_named(runs).assign(other=runs["topic"] != shared).sort_values(["other", "seed"], kind="stable")
    kept, _, notes = metrics.named_conditions(
        runs.loc[ranked.drop_duplicates(axes).index.sort_values()], most=_MAX_CELLS
    )
    n_columns = 2 if len(kept) <= _TWO_COLUMNS else 3
    places = [Spot(*divmod(at, n_columns), str(run["condition"]), run) for at, (_, run) in enumerate(kept.iterrows())]
    if runs["topic"].nunique() > 1:
        notes.append(f"one topic per condition, {metrics.topic_titles(runs).get(shared, shared)} where there is one")
    if runs["seed"].nunique() > 1:
        notes.append("one seed a condition")
    return Arrangement(places, n_columns, notes=notes)


def _grid(runs: pd.DataFrame, rows: str | None, columns: str | None) -> Arrangement:
    """Put one run at each crossing of the levels."""
    if rows is not None and columns is None:
        return _wrapped(runs, rows)
    down = metrics.order_levels(runs[rows]) if rows else [None]
    across = metrics.order_levels(runs[columns]) if columns else [None]
    places = []
    for row, low in enumerate(down):
        for column, wide in enumerate(across):
            at = runs if rows is None else runs[runs[rows] == low]
            at = at if columns is None else at[at[columns] == wide]
            if len(at):
                places.append(Spot(row, column, "", at.iloc[0]))
    titles = metrics.topic_titles(runs)
    row_titles = tuple(metrics.level_name(rows, level, titles) for level in down) if rows else ()
    column_titles = tuple(metrics.level_name(columns, level, titles) for level in across) if columns else ()
    return Arrangement(places, len(across), row_titles, column_titles)


def _wrapped(runs: pd.DataFrame, axis: str) -> Arrangement:
    """Places of the levels of a single condition: in one column if there are one or three, else in two."""
    levels, titles = metrics.order_levels(runs[axis]), metrics.topic_titles(runs)
    n_columns = 1 if len(levels) in (1, 3) else 2
    places = [
        Spot(*divmod(position, n_columns), metrics.level_name(axis, level, titles), runs[runs[axis] == level].iloc[0])
        for position, level in enumerate(levels)
    ]
    return Arrangement(places, n_columns)


def _control_places(
    controls: pd.DataFrame, main: pd.DataFrame, held: Mapping[str, _Level], grid: Arrangement
) -> list[Spot]:
    """Controls on the topics drawn above, below the conditions from left to right."""
    own = controls[controls["topic"].isin(main["topic"])]
    for axis, (level, _) in held.items():
        # A control that lacks the condition, such as one without memory, still belongs to the figure.
        if axis != "topic" and (own[axis] == level).any():
            own = own[own[axis] == level]
    order = {name: position for position, name in enumerate(_CONTROLS)}
    own = own.sort_values("interaction", key=lambda names: names.map(order), kind="stable")
    beyond = ("topic", "memory") if own["confirmation_bias"].nunique() > 1 else ("topic", "memory", "confirmation_bias")
    lowest = max(place.row for place in grid.places)
    return [
        Spot(
            lowest + 1 + position // grid.n_columns,
            position % grid.n_columns,
            "\n".join(filter(None, [_CONTROLS[run["interaction"]], metrics.describe(run, without=beyond)])),
            run,
        )
        for position, (_, run) in enumerate(own.iterrows())
    ]
