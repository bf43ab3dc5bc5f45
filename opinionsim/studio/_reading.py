"""The process that reads stores: figures as SVG, tables as HTML, and numbers as CSV."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from opinionsim import plots, report
from opinionsim.analysis import Table
from opinionsim.errors import OpinionSimError, SpecError
from opinionsim.foundation.spreadsheets import write_csv
from opinionsim.foundation.templates import filled
from opinionsim.metrics import evidence_of, kinds_in_order
from opinionsim.planning import card_of
from opinionsim.registry import Part, find, general, is_path, places, summary
from opinionsim.store import Results, find_design, load, open_store
from opinionsim.studio._child import answer
from opinionsim.studio._filtered import filtered
from opinionsim.studio._kept_frames import kept
from opinionsim.studio._page_address import PageAddress
from opinionsim.studio._side_by_side import side_by_side
from opinionsim.watching import level_labels

if TYPE_CHECKING:
    import pandas as pd

#: Settings of figures on pages, where they are not those of a report.
_SETTINGS: Mapping[str, Mapping[str, Any]] = {"ribbons": {"band": "mean"}}
#: Rows of a table that are shown at most.
_ROWS = 2_000
#: Metrics in the table of runs.
MEASURES = ("bias", "diversity")
#: Results that are kept in memory, with what is computed of them.
_KEPT = 6


def _results(asked: PageAddress) -> Results:
    """The results that a page asks for, as they stand in the store now."""
    with open_store(asked.url, write=False) as store, store.moment() as moment:
        design, _ = find_design(moment, asked.query.get("experiment") or None, asked.design)
        run_ids = {run.run_id for run in design.runs}
        rows, extents = moment.registered(run_ids), moment.progress(run_ids)
        # Tables and figures take complete runs; of others only their number counts.
        mark = {
            (run_id, row.status, row.generation, extents[run_id].seq if row.status == "complete" else 0)
            for run_id, row in rows.items()
        }
        units = moment.unit_counts([name for name, _ in design.units]) if design.units else {}
    at = design.experiment_id, design.design, hash((frozenset(mark), frozenset(units.items())))
    return _shown(asked.url, *at, json.dumps(asked.where), asked.query.get("instrument", ""))


@lru_cache(_KEPT)
def _shown(url: str, experiment: str, design: int, mark: int, where: str, instrument: str) -> Results:
    """Results with a filter; `mark` differs once the store has others."""
    if where == "{}" and not instrument:
        return kept(load(url, experiment, design=design))
    return filtered(_shown(url, experiment, design, mark, "{}", ""), json.loads(where), instrument)


# -- figures -------------------------------------------------------------------------------------------------


def picture(asked: Mapping[str, Any], name: str) -> dict[str, str]:
    """A figure by its name, or a picture of a section as ``SECTION:PICTURE``: SVG and caption."""
    own, (first, _, second) = PageAddress(**asked), name.partition(":")
    results = _results(own)
    if first in places("section"):
        made = places("section")[first].imported("section", first).picture(results, own, second)
        if isinstance(made, tuple):
            return dict(zip(("svg", "caption"), made, strict=True))
    else:
        made = plots.drawn(*_drawn(results, own, name))
    with TemporaryDirectory() as folder:
        file = plots.save(made, Path(folder, "figure.svg"))
        return {"svg": file.read_text(encoding="utf-8"), "caption": plots.caption_of(made)}


def _drawn(results: Results, asked: PageAddress, name: str) -> tuple[Part, Results, dict[str, Any]]:
    """A figure, what it is drawn from, and its settings: those of a report, and the kind of text of the address."""
    figure = find("figure", _shipped(name))
    settings = {**next((each.settings for each in report.shown_as(figure, results)), {}), **_SETTINGS.get(name, {})}
    told: dict[str, Any] = {"kind": asked.query.get("kind"), "run": asked.query.get("run")}
    told["steps"] = None if (step := asked.number("step")) is None else [step]
    settings |= {each: value for each, value in told.items() if value and each in figure.arguments()}
    return figure, results, settings


def _shipped(name: str) -> str:
    """The name of a figure or table; raises a SpecError for one of the user's own, whose code would run."""
    if is_path(name):
        raise SpecError("Figures and tables of your own are made by `plot` and `table` with --allow-parts.")
    return name


def numbers(asked: Mapping[str, Any], name: str) -> dict[str, str]:
    """The numbers of a figure, as a table of a page and as CSV."""
    own = PageAddress(**asked)
    figure, results, settings = _drawn(_results(own), own, name)
    plots.check_numbers(figure)
    frame = plots.numbers(results, figure, settings)
    shown = frame.drop(columns="evidence", errors="ignore").head(_ROWS)
    table = Table.of(f"Numbers of the figure {name}", shown.assign(evidence=evidence_of(results.units["evidence"])))
    return {"html": _html("numbers.html", table=table, rows=len(frame)), "csv": str(write_csv(frame))}


# -- tables --------------------------------------------------------------------------------------------------


def tables(asked: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """All tables that fit, by section, with what they say; or those of one name. As a part of a page, and as CSV."""
    own = PageAddress(**asked)
    results = _results(own)
    made = report.tables_of(results, own.query.get("kind") or None, what=_shipped(name) or None)
    place = {id(each): number for number, each in enumerate(made)}
    told = {
        "sections": {
            title: [(place[id(each)], each) for each in found] for title, found in report.by_section(made).items()
        },
        "statements": [*report.statements(made)],
        "lacking": [*report.left_out(results)],
        "usable": report.usable(made),
    }
    return {"html": _html("tables.html", asked=own, **told), "csv": [str(write_csv(each.frame)) for each in made]}


def runs(asked: Mapping[str, Any]) -> str:
    """Every unit of the study with its condition, state and numbers."""
    own = PageAddress(**asked)
    results = _results(own)
    frame, axes = results.units, [*results.study.axes(results)]
    if results.run_ids:
        metrics = results.metrics
        kind = own.query.get("kind") or next(iter(kinds_in_order(metrics["kind"], results.runs["texts"])), "")
        values = metrics[metrics["kind"] == kind][["run_id", "cell", *MEASURES]].round(3)
        frame = frame.astype({"cell": object}).merge(values, on=["run_id", "cell"], how="left")
        states, shown = _states(frame, own.url), ["replicate", *MEASURES]
    else:
        states = results.study.states(results)
        shown = [str(name) for name in frame if name not in (*axes, "error", "evidence")]
    rows = frame.assign(state=states)[[*axes, *shown, "state"]].head(_ROWS)
    rows = rows.astype(object).where(rows.notna(), "\N{EN DASH}")
    ids = frame["run_id"] if results.run_ids else [""] * len(frame)
    listed = list(zip(ids, rows.itertuples(index=False), strict=False))
    return _html("runs.html", asked=own, columns=list(rows), rows=listed, n=len(frame))


def _states(runs: pd.DataFrame, url: str) -> pd.Series[str]:
    """The state of each run; of those that have begun, whether a process carries them out."""
    with open_store(url, write=False) as opened:
        alive = opened.under_way(opened.states())
    begun = runs["run_id"].isin(alive).map({True: "under way", False: "cut off"})
    return runs["status"].where(runs["status"] != "running", begun)


def section(asked: Mapping[str, Any], name: str, given: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A section that a slice brings, as a page of its own: its HTML, or what comes of a form that was sent.

    Its module has ``section(results, asked)``, which returns HTML or nothing where it does not fit, ``picture(results,
    asked, name)``, which draws the figures that it shows as ``picture/SECTION:NAME`` or returns the SVG and the caption
    of one that was drawn before, and, where it has forms, ``act(asked, given)``: a mapping that may have a `command` to
    start, the `query` of a page that a `guest` may use, and what is to change in the `query` of the page. With
    ``page(asked)``, which needs no results, its own page shows something else than the page of results, and the latter
    can load that as ``part/SECTION``.
    """
    own = PageAddress(**asked)
    module = places("section")[name].imported("section", name)
    if given is not None:
        return dict(module.act(own, given))
    return {"html": module.page(own) if hasattr(module, "page") else _section(_results(own), own, name)}


def _section(results: Results, asked: PageAddress, name: str) -> str:
    return str(places("section")[name].imported("section", name).section(results, asked) or "")


def sections(asked: Mapping[str, Any]) -> str:
    """All sections that fit, and the cards of the models."""
    own = PageAddress(**asked)
    results = _results(own)
    found = {}
    for name, place in places("section").items():
        try:
            found[place.value["heading"]] = _section(results, own, name)
        except OpinionSimError as error:
            found[place.value["heading"]] = _html("lacking.html", text=str(error))
    models = results.runs["model"].dropna().unique() if results.run_ids else ()
    cards = [card for name in models if (card := card_of(str(name), results.url))]
    return _html("sections.html", found=found, cards=cards)


def figures(asked: Mapping[str, Any]) -> str:
    """The figures that show studies of this kind, each drawn when it is opened; those that the study names first."""
    own = PageAddress(**asked)
    results = _results(own)
    kind = results.design_row.study
    fit = (find("figure", name) for name in dict.fromkeys((*results.extras("figures"), *general("figure"))))
    return _html("figures.html", asked=own, figures={each.name: summary(each) for each in fit if each.shows(kind)})


def beside(asked: Mapping[str, Any]) -> str:
    """Two conditions side by side at one step, or what there is to choose."""
    own = PageAddress(**asked)
    results = _results(own)
    levels: dict[str, list[str]] = {}
    for run in results.design_row.runs:
        for axis, level in level_labels(run.axes).items():
            levels.setdefault(axis, []).append(level)
    axes = {axis: list(dict.fromkeys(own)) for axis, own in levels.items()}
    one, other = own.side("one."), own.side("other.")
    found = side_by_side(results, one, other, own.number("step")) if one and other else None
    return _html("beside.html", asked=own, axes=axes, found=found)


def _html(template: str, **values: Any) -> str:
    return filled("opinionsim.studio", template, **values)


if __name__ == "__main__":
    answer(picture, numbers, tables, runs, section, sections, figures, beside)
