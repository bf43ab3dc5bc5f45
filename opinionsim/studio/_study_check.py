"""The process that reads the text of one study, says what it means, and what it will cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opinionsim.errors import OpinionSimError
from opinionsim.foundation.documents import edited, read_document
from opinionsim.foundation.templates import filled
from opinionsim.registry import AGENTS, find, is_path, search_folder, summary
from opinionsim.specification import Experiment, load_experiment, seat_numbers, study_of, taking_part
from opinionsim.studio._child import answer

if TYPE_CHECKING:
    from opinionsim.planning import Forecast

#: Most rows of the grid of conditions that are shown, and most characters of a prompt.
_ROWS, _PROMPT = 60, 6_000


def check(path: str, edit: str, text: str, allowed: list[str]) -> dict[str, Any]:
    """Say what a study means with the text of one of its files as edited.

    Parameters
    ----------
    path : str
        The file of the study.
    edit : str
        The file that is edited: that of the study, or one that it names, such as that of its topic.
    text : str
        The text of that file.
    allowed : list of str
        Parts of the user's own that may be imported.

    Returns
    -------
    dict
        `problem`, the error of the command line, or `html`, what it means; `own`, parts that nobody has allowed yet,
        which are not imported; `store`, and `kind`: ``agents``, ``room`` if people take part, or ``other``.
    """
    file = Path(path)
    with edited(Path(edit), text):
        try:
            if own := sorted({*_own_parts(read_document(file).value)} - {*allowed}):
                return {"own": own}
            search_folder(str(file.parent))
            kind = study_of(file)
            return _agents(file) if kind == AGENTS else _other(file, kind)
        except OpinionSimError as error:
            return {"problem": str(error).replace(f"{file.parent}/", "")}


def _own_parts(value: Any) -> Iterator[str]:
    """Every text of a document that has the form of an import path."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _own_parts(name)
            yield from _own_parts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _own_parts(each)
    elif isinstance(value, str) and is_path(value):
        yield value


def _agents(file: Path) -> dict[str, Any]:
    """What a study of agents means."""
    from opinionsim.planning import plan, preview
    from opinionsim.report import spelled
    from opinionsim.running import default_store

    experiment = load_experiment(file)
    forecast, spec = plan(experiment), experiment.spec
    asked = next((n for n, run in enumerate(experiment.runs) if not run.spec.interaction.recorded), 0)
    shown = preview(experiment, asked)
    store = file.parent / default_store(experiment).removeprefix("sqlite:///")
    prompts = {
        act: [(each.role, each.content[:_PROMPT]) for each in each_act] for act, each_act in shown.prompts.items()
    }
    meets = spelled(spec.interaction.model_dump(mode="json"))
    html = filled(
        "opinionsim.studio",
        "meaning.html",
        taking_part=taking_part(experiment).removeprefix("Taking part: "),
        meets=f"{summary(find('interaction', spec.interaction.kind))} {meets}",
        events=shown.events,
        grid=_grid(experiment),
        forecast=forecast,
        pilot=plan(experiment, only=experiment.pilot).usage,
        width=_width(experiment, forecast, store),
        prompts=prompts,
        endpoint=shown.endpoint,
        run=experiment.runs[asked].name,
        budget=spec.execution.budget.model_dump(exclude_none=True),
    )
    return {
        "html": html,
        "store": str(store),
        "kind": "room" if seat_numbers(spec) else "agents",
        "lacking": forecast.lacking,
    }


def _other(file: Path, kind: str) -> dict[str, Any]:
    """What a study of another kind means: what its command ``plan`` prints."""
    commands, said = find("study", kind).target().commands(), StringIO()
    if "plan" in commands:
        with redirect_stdout(said), suppress(SystemExit):
            commands["plan"](str(file))
    html = filled("opinionsim.studio", "said.html", kind=kind, text=said.getvalue().strip())
    return {"html": html, "kind": "other", "lacking": []}


def _grid(experiment: Experiment) -> dict[str, Any]:
    """Numbers of runs by condition: the last axis across, the others down."""
    axes = list(dict.fromkeys(name for cell in experiment.cells for name in cell.axes))
    *down, across = axes or [""]
    counts: dict[tuple[str, ...], dict[str, int]] = {}
    for cell in experiment.cells:
        row = tuple(str(cell.axes.get(name, "-")) for name in down)
        own = counts.setdefault(row, {})
        level = str(cell.axes.get(across, "runs")) if across else "runs"
        own[level] = own.get(level, 0) + len(cell.replicates) * cell.spec.redraws
    levels = list(dict.fromkeys(level for own in counts.values() for level in own))
    shown = [(*row, *(own.get(level, "") for level in levels)) for row, own in list(counts.items())[:_ROWS]]
    return {"down": down, "across": across, "levels": levels, "rows": shown, "more": max(0, len(counts) - _ROWS)}


def _width(experiment: Experiment, forecast: Forecast, store: Path) -> str:
    """What the runs in the store let expect of the interval of the primary contrast."""
    from opinionsim.analysis import size_table
    from opinionsim.store import load

    analysis = experiment.spec.analysis
    if analysis.decides is None:
        return "No contrast is primary (analysis.primary), so no half-width is expected."
    if not store.exists():
        return "Three replicates will tell the half-width to expect of the main contrast."
    try:
        # The half-width that is asked for changes other rows alone.
        rows = size_table(experiment, forecast, load(str(store), experiment.spec.name), analysis.smallest or 1.0).frame
    except OpinionSimError as error:
        return f"The half-width of the main contrast is not known yet: {error}."
    row = rows[(rows["variance"] == "pilot") & (rows["size"] == "as specified")].iloc[0]
    return (
        f"Main contrast, {analysis.decides}: expect an interval of ±{row['half_width']:.2g}, and to detect a "
        f"difference of {row['detectable']:.2g} or more, by the variance of the runs so far."
    )


if __name__ == "__main__":
    answer(check)
