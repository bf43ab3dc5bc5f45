"""Parts of an opinions frame by variable or instrument, and the scales of their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from opinionsim.errors import MeasurementError
from opinionsim.opinions import OpinionScale

#: The variable that metrics, tables and figures of opinions are about.
STANCE = "stance"

#: Columns of an opinions frame that metrics need. A user's frame may lack `scale` and `about`.
OPINION_COLUMNS = (
    "run_id", "cell", "instrument_id", "classifier", "variable", "kind", "turn", "step", "agent", "status",
    "value",
)  # fmt: skip


def require(frame: pd.DataFrame, name: str, columns: Sequence[str]) -> None:
    """Check that a frame has the columns.

    Raises
    ------
    MeasurementError
        If it lacks one; the message names the frame and the columns.
    """
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise MeasurementError(f"the {name} frame lacks the column(s) {', '.join(missing)}")


def point_columns(opinions: pd.DataFrame) -> dict[str, int]:
    """The columns ``p_<point>`` of an opinions frame, each with its point.

    Raises
    ------
    MeasurementError
        If the part after ``p_`` is not an integer.
    """
    named = [str(column) for column in opinions.columns if str(column).startswith("p_")]
    try:
        return {column: int(column[2:]) for column in named}
    except ValueError:
        raise MeasurementError(f"columns p_<point> of the opinions frame must name integers; got {named}") from None


def points_of(opinions: pd.DataFrame) -> tuple[int, ...]:
    """Points of the scales that rows of an opinions frame are coded on, increasing; empty if they are unknown.

    The points come from column `scale`; for rows without it, they are the points with a probability in any such row.

    Raises
    ------
    MeasurementError
        If the names of columns or a scale are not valid.
    """
    columns = point_columns(opinions)
    found: set[int] = set()
    untold = opinions
    if "scale" in opinions.columns:
        told = opinions["scale"].notna()
        found.update(point for text in opinions.loc[told, "scale"].unique() for point in _parsed(text))
        untold = opinions[~told]
    found.update(point for column, point in columns.items() if untold[column].notna().any())
    return tuple(sorted(found))


def between_points(opinions: pd.DataFrame) -> bool:
    """Whether opinions lie between the points of their scale, as those from equations and sliders do."""
    return not opinions["value"].dropna().isin(points_of(opinions)).all()


def _parsed(text: object) -> Iterable[int]:
    """Points of a scale written as "-2,-1,0,1,2"."""
    try:
        points = {int(point) for point in str(text).split(",")}
    except ValueError:
        points = set()
    if len(points) < 2:
        raise MeasurementError(
            f"column scale of the opinions frame must list points, as in '-2,-1,0,1,2'; got {text!r}"
        )
    return points


def scale_of(opinions: pd.DataFrame) -> OpinionScale:
    """The scale an opinions frame is coded on.

    Parameters
    ----------
    opinions : DataFrame
        With column ``scale``, as in ``"-2,-1,0,1,2"``, or one column ``p_<point>`` per scale point, as in ``p_-2``.
        Rows of all variables and instruments count; use :func:`cut` to choose the rows of one.

    Returns
    -------
    OpinionScale
        The points of column ``scale``. Rows without it add the points that have a probability in any of them. If there
        are none, all points that have a column. For rows with several scales, the result is their union. Labels are the
        default ones, or the points if the package has no default labels for them.

    Raises
    ------
    MeasurementError
        If there are fewer than two points, or a scale or the name of a column is not valid.
    """
    columns = point_columns(opinions)
    points = points_of(opinions) or tuple(sorted(set(columns.values())))
    if len(points) < 2:
        raise MeasurementError(
            f"the opinions frame must have a column p_<point> for each scale point; got {list(columns)}"
        )
    known = {size: OpinionScale.of_size(size) for size in (2, 3, 4, 5, 7)}
    if len(points) in known and known[len(points)].points == points:
        return known[len(points)]
    return OpinionScale(points, tuple(f"{point:+d}" if point else "0" for point in points))


def cut(opinions: pd.DataFrame, variable: str = STANCE, instrument_id: str | None = None) -> pd.DataFrame:
    """Select the rows of one variable or one instrument from an opinions frame.

    Parameters
    ----------
    opinions : DataFrame
        Frame of a store.
    variable : str
        Variable that was measured, such as ``stance``.
    instrument_id : str, optional
        Instrument whose rows to select instead, regardless of its variable.

    Returns
    -------
    DataFrame
        These rows in their order, numbered from 0. The frame keeps only the columns ``p_<point>`` for points on the
        scales of these rows, or all of them if neither column ``scale`` nor a probability in any of these rows gives a
        scale. Rows about a second text are included; column ``about`` marks them.

    Raises
    ------
    MeasurementError
        If the frame lacks the column to select by, or a scale or the name of a column is not valid.
    """
    column, level = ("variable", variable) if instrument_id is None else ("instrument_id", instrument_id)
    require(opinions, "opinions", [column])
    kept = opinions[opinions[column] == level].reset_index(drop=True)
    points = points_of(kept)
    foreign = [name for name, point in point_columns(kept).items() if points and point not in points]
    return kept.drop(columns=foreign)


def by_participants(rows: pd.DataFrame, runs: pd.DataFrame) -> pd.Series[bool]:
    """Whether each row of a frame belongs to a participant of one of the `runs`.

    Participants are agents 0 to ``n_agents`` - 1 of their run; others of its cast, such as a moderator, have higher
    numbers. `rows` has columns ``run_id`` and ``agent``.
    """
    n_agents = runs.drop_duplicates("run_id").set_index("run_id")["n_agents"]
    # Where no row is left, mapped identifiers would stay text.
    return rows["agent"] < rows["run_id"].map(n_agents).astype(float)


def stance_rows(runs: pd.DataFrame, opinions: pd.DataFrame) -> pd.DataFrame:
    """The rows of an opinions frame that metrics, tables and figures of opinions use.

    Parameters
    ----------
    runs, opinions : DataFrame
        Frames of a store.

    Returns
    -------
    DataFrame
        Rows of `opinions` with the stance of a participant of one of the `runs` in a text judged singly, by any number
        of instruments.

    Raises
    ------
    MeasurementError
        If a frame lacks a column or an agent has a negative number.
    """
    require(runs, "runs", ["run_id", "n_agents"])
    require(opinions, "opinions", OPINION_COLUMNS)
    kept = (opinions["variable"] == STANCE) & by_participants(opinions, runs)
    if "about" in opinions.columns:
        kept &= opinions["about"].isna()
    rows = opinions[kept]
    stray = rows[rows["agent"] < 0]
    if len(stray):
        first = stray.iloc[0]
        raise MeasurementError(
            f"run {first['run_id']!r} has an opinion of agent {first['agent']}; agents are numbered from 0"
        )
    return rows


def scale_of_all(opinions: pd.DataFrame) -> OpinionScale:
    """The scale of all instruments; if they differ, a scale of all their points, labelled by numbers."""
    parts = [part for _, part in opinions.groupby("instrument_id", sort=True)]
    scales = {scale_of(part) for part in parts or [opinions]}
    if len(scales) == 1:
        return scales.pop()
    points = tuple(sorted({point for scale in scales for point in scale.points}))
    return OpinionScale(
        points, tuple(f"{point:+d}".replace("-", "\N{MINUS SIGN}") if point else "0" for point in points)
    )
