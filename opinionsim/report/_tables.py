"""The tables of an experiment: what `opinionsim table` prints, a report shows and an archive holds."""

from __future__ import annotations

from dataclasses import replace

from opinionsim import analysis
from opinionsim.metrics import cut, named_metrics, run_metrics, scale_of, several_answered, variable_means
from opinionsim.registry import find, is_path
from opinionsim.specification import analysis_of
from opinionsim.store import Results


def tables_of(
    results: Results,
    kind: str | None = None,
    wording: str | None = None,
    ddof: int = 0,
    estimand: analysis.Estimand | None = None,
    *,
    as_published: bool = False,
    with_own_metrics: bool = False,
) -> list[analysis.Table]:
    """All tables that fit an experiment: opinions, contrasts, robustness, what is missing, further metrics.

    Parameters
    ----------
    results : Results
        The results; of a classic sweep there is one table, of its points.
    kind, wording, estimand
        As for :func:`opinionsim.analysis.table`; where people are on record, the default is a kind that they have.
    ddof : int
        Correction of the standard deviation, 0 or 1.
    as_published : bool
        Whether errors, layout and tests are those of Chuang et al. 2023.
    with_own_metrics : bool
        Whether metrics of the user's own are imported, which runs their code; :func:`own_metrics` names those that are
        left out otherwise.

    Returns
    -------
    list of Table
        Those without a name are of what the experiment measures; `name` tells the others apart.

    Raises
    ------
    SpecError
        If no run is complete or has that wording, or none measures anything that can be tabulated.
    """
    if results.swept:
        return [analysis.points_table(results.points)]
    kind = kind or _of_people(results)
    found, opinions, agents, turns = results.counted()
    measured = run_metrics(found, opinions, agents, ddof, turns=turns)
    runs, declared = results.ordered_runs, analysis_of(results.spec)
    verdicts = analysis.verdict_table(runs, opinions, wording)
    brought = [find("table", name).target(results) for name in results.extras("tables")]
    made = [each for each in (verdicts, *brought) if each is not None]
    own = () if with_own_metrics else own_metrics(results)
    further = [each for each in results.spec.get("measurement", {}).get("metrics", []) if _name(each) not in own]
    estimand = estimand or declared.estimand
    beside = variable_means(results.runs, opinions)
    values = None
    if further or len(beside):
        values = named_metrics(results.runs, opinions, further, scale_of(cut(opinions)))
        values = values.merge(beside, on=["run_id", "cell"], how="left")
    if not made or runs["instrument_id"].notna().any():
        made += analysis.tables(runs, measured, kind, wording, estimand, as_published=as_published)
        if as_published:
            made += analysis.published_tests(runs, measured, kind, wording)
        else:
            made += analysis.contrast_tables(runs, measured, declared, values, kind, wording, estimand)
            if declared.choices or results.spec.get("robustness"):
                made.append(analysis.robustness_table(results, kind, estimand, wording))
        made += analysis.missing_tables(runs, opinions, agents, turns, measured, kind, wording)
    if values is not None:
        made.append(analysis.further_table(runs, measured, values, kind, wording, estimand))
    answered = several_answered(results.answered)
    return [replace(each, notes=(*each.notes, *answered)) for each in made]


def _of_people(results: Results) -> str | None:
    """The kind of the last ratings of people on record, by which their twins are measured too; None without people."""
    kinds = results.opinions.loc[results.opinions["classifier"] == "recorded", "kind"]
    return None if kinds.empty else str(kinds.iloc[-1])


def own_metrics(results: Results) -> list[str]:
    """Import paths of the metrics of the user's own that an experiment names."""
    return [name for name in map(_name, results.spec.get("measurement", {}).get("metrics", [])) if is_path(name)]


def _name(metric: object) -> str:
    """Name of a metric, which a specification gives with options or without."""
    return str(metric["name"]) if isinstance(metric, dict) else str(metric)
