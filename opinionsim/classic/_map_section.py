"""The phase map of a sweep on its page of results, whose places lead to single runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isnan
from typing import TYPE_CHECKING, Any, cast

from opinionsim import plots
from opinionsim.classic.figures._levels import Levels, level_text, levels_of, number_text
from opinionsim.classic.figures._phase_data import phase_data
from opinionsim.classic.points import cell, described
from opinionsim.classic.sweeps import SCAN, point_measures, run_again, runs_at
from opinionsim.drawing import keep_caption
from opinionsim.errors import SpecError
from opinionsim.foundation.templates import filled
from opinionsim.metrics import evidence_statement
from opinionsim.registry import find
from opinionsim.store import Results, load
from opinionsim.watching import level_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opinionsim.studio import PageAddress

#: Places of a map that lead to runs, at most.
_PLACES = 4_000


def section(results: Results, asked: PageAddress) -> str:
    """The map with its levels as links to runs; of a run that the address names, its course and its measures."""
    if results.design_row.study != SCAN:
        return ""
    drawn = _drawn(results, asked)
    x, y, _, where = drawn["settings"].values()
    frame = phase_data(results.study.source(results), **drawn["settings"]).frame
    across, up = (name and levels_of(frame[name], name, {}) for name in (x, y))
    units = results.design_row.units
    cells = {point_id: {name: cell(each) for name, each in values.items()} for point_id, values in units}
    points = {(own[x], y and own[y]): point_id for point_id, own in cells.items() if where.items() <= own.items()}
    means = {(row[x], y and row[y]): _number(row["mean"]) for row in frame.to_dict("records")}
    told = {"few": len(points) <= _PLACES, "points": points, "means": means, "across": across, "up": up, "run": None}
    if told["few"] and y:
        figure = picture(results, asked, "map")
        told |= {"size": figure.get_size_inches() * 72, "caption": plots.caption_of(figure)}
        told |= {"places": list(_places(figure, across, up))}
    if asked.query.get("run"):
        whole, point_id, replicate = _named(results, asked)
        said = described(dict(whole.design_row.units)[point_id]).removesuffix(", ")
        told |= {"run": {"point": point_id, "replicate": replicate, "where": said}, "runs": runs_at(whole, point_id)}
    return filled(
        "opinionsim.classic", "map_section.html", asked=asked, drawn=drawn, text=level_text, number=_number, **told
    )


def picture(results: Results, asked: PageAddress, name: str) -> Figure:
    """The ``map``, or the course of the ``run`` that the address names."""
    if name == "run":
        return _course(*_named(results, asked))
    return plots.drawn(find("figure", "phase"), results, _drawn(results, asked)["settings"])


def _whole(results: Results) -> Results:
    """The results without filters."""
    return load(results.url, results.design_row.experiment_id, design=results.design)


def _drawn(results: Results, asked: PageAddress) -> dict[str, Any]:
    """What the address asks for, with the first of what there is where it does not say.

    The `levels` of each axis that varies by their texts in addresses, all `measures`, the one that is `held` of each
    axis that is not drawn, and the `settings` of the figure.
    """
    levels: dict[str, dict[str, Any]] = {}
    for _, values in _whole(results).design_row.units:
        for axis, label in level_labels(values).items():
            levels.setdefault(axis, {})[label] = cell(values[axis])
    levels = {axis: each for axis, each in levels.items() if len(each) > 1}
    if not levels:
        raise SpecError("Nothing varies in this sweep.")
    measures, query = [*point_measures(results.units), "time"], asked.query
    x = query["x"] if query.get("x") in levels else next(iter(levels))
    others = [axis for axis in levels if axis != x]
    y = query["y"] if query.get("y") in others else next(iter(others), None)
    value = query["value"] if query.get("value") in measures else measures[0]
    held = {axis: asked.where.get(axis, next(iter(levels[axis]))) for axis in others if axis != y}
    where = {axis: levels[axis][label] for axis, label in held.items()}
    settings = {"x": x, "y": y, "value": value, "where": where}
    return {"levels": levels, "measures": measures, "held": held, "settings": settings, **settings}


def _places(figure: Figure, across: Levels, up: Levels) -> Iterator[tuple[Any, Any, tuple[float, ...]]]:
    """The levels of each place of a map, and its left and upper end, width and height in points from the corner."""
    figure.set_dpi(72)
    figure.draw_without_rendering()
    high, axes = figure.get_figheight() * 72, figure.axes[0]
    lefts = axes.transData.transform([(edge, up.edges[0]) for edge in across.edges])[:, 0]
    uppers = high - axes.transData.transform([(across.edges[0], edge) for edge in up.edges])[:, 1]
    for i, x in enumerate(across.levels):
        for j, y in enumerate(up.levels):
            size = lefts[i + 1] - lefts[i], uppers[j] - uppers[j + 1]
            yield x, y, tuple(round(float(each), 1) for each in (lefts[i], uppers[j + 1], *size))


def _number(value: float | None) -> str:
    return "-" if value is None or isnan(value) else number_text(value)


def _named(results: Results, asked: PageAddress) -> tuple[Results, str, int]:
    """All results, and the point and the replicate that an address names as ``POINT/REPLICATE``."""
    whole, (point_id, _, number) = _whole(results), asked.query.get("run", "").partition("/")
    known = runs_at(whole, point_id) if point_id in dict(whole.design_row.units) else {}
    if number not in map(str, known):
        raise SpecError(f"This sweep has stored no run {asked.query.get('run', '')!r:.60}.")
    return whole, point_id, int(number)


def _course(whole: Results, point_id: str, replicate: int) -> Figure:
    """The opinions of a run that was simulated again, with a note on whether its end is that on record."""
    found, differing = run_again(whole, point_id, replicate)
    notes = ["The run was simulated again, and its end has the stored measures"]
    if differing:
        notes = [f"The run was simulated again, but it differs from the stored one in {', '.join(differing)}"]
    if found.opinions.ndim > 3:
        notes.append(f"The first of {found.opinions.shape[-1]} numbers of each opinion is drawn")
        found = replace(found, opinions=found.opinions[..., 0])
    figure = cast("Figure", plots.trajectories(found).get_figure(root=True))
    keep_caption(figure, [evidence_statement(["equation"]), *notes])
    return figure
