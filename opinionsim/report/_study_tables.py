"""The tables of an experiment that `opinionsim table` prints, a report shows and an archive contains."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace

from opinionsim.analysis import Asked, Estimand, Table
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.metrics import answered_otherwise
from opinionsim.registry import find, general, places
from opinionsim.store import Results

#: What is so where a table has nothing in it.
_NOTHING = {
    "missing": "no number uses a doubtful text, and no refusal changed who was heard; see opinions and replies",
    "replies": "no reply was refused, filtered or stripped",
}


def tables_of(
    results: Results,
    kind: str | None = None,
    wording: str | None = None,
    ddof: int = 0,
    estimand: Estimand | None = None,
    *,
    as_published: bool = False,
    what: str | None = None,
) -> list[Table]:
    """Return all tables that fit an experiment: opinions, contrasts, robustness, missing values, further metrics.

    Parameters
    ----------
    results : Results
        The results.
    kind, wording, estimand
        As for :func:`opinionsim.analysis.table`; if people are recorded, the default is a kind of their texts.
    ddof : int
        Correction of the standard deviation, 0 or 1.
    as_published : bool
        Whether errors, layout and tests are those of Chuang et al. 2023.
    what : str, optional
        Name of one table, or the import path of your own table, which is imported.

    Returns
    -------
    list of Table
        Tables without a name show what the experiment measures; others have a `name`.

    Raises
    ------
    SpecError
        If no run is complete or has that wording, or none has a measure to tabulate; if there is no table
        `what`, or it fails or does not fit the experiment.

    Notes
    -----
    Without `what`, tables that interactions name and your own metrics are left out if they fail (`failed` of the
    results names them), and all others are returned.
    """
    asked = Asked(results, kind, wording, ddof, estimand, as_published, what)
    # What the ways of interacting bring stands first.
    named = results.extras("tables")
    for name in dict.fromkeys((*named, *general("table"))) if what is None else [what]:
        try:
            asked.made += asked.make(find("table", name))
        except (SpecError, MeasurementError) as error:
            if what is not None or not (name in named or "part" in error.fields):
                raise
            if results.leave_out("table", name, error) != name:
                # Without that metric all is made again, contrasts too.
                return tables_of(results, kind, wording, ddof, estimand, as_published=as_published)
    if what is not None and not asked.made:
        raise SpecError(f"{results.name}: {_NOTHING.get(what, f'there is nothing to tabulate in the table {what}')}")
    return naming_models(results, asked.made)


def naming_models(results: Results, tables: Sequence[Table]) -> list[Table]:
    """Add the names that models gave themselves to the first note of tables, if these differ."""
    answered = answered_otherwise(results.answered)
    return [replace(each, notes=(" ".join([*each.notes[:1], *answered]), *each.notes[1:])) for each in tables]


def only_in_reports(table: Table) -> bool:
    """Whether a table of a study is one that only a report shows."""
    return table.name.partition("-")[0] in places("report")


def resting_on_own(results: Results, made: Sequence[Table]) -> list[list[str]]:
    """For each table, the user's own parts that change it or that it needs."""
    own = [each for each in results.own if results.own_parts and each not in results.failed]
    lacking = {each: list[str]() for each in own}
    for each in own:
        rest = copy(results)
        rest.failed = results.failed | {each: ""}
        with suppress(SpecError, MeasurementError):
            lacking[each] = [table.to_text() for table in tables_of(rest)]
    texts = ("" if only_in_reports(each) else each.to_text() for each in made)
    return [[each for each in own if text and text not in lacking[each]] for text in texts]
