"""The tables of an experiment: what `opinionsim table` prints, a report shows and an archive holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd

from opinionsim.analysis import Estimand, Table
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.metrics import answered_otherwise, cut, named_metrics, run_metrics, scale_of, variable_means
from opinionsim.registry import KINDS, Part, blamed, find, general
from opinionsim.specification import AnalysisSpec, analysis_of
from opinionsim.store import Results

#: What is so where a table has nothing in it.
_NOTHING = {
    "missing": "no number rests on a doubtful text, and no refusal changed who was heard; see opinions and replies",
    "replies": "no reply was refused, filtered or stripped",
}


@dataclass(eq=False)
class Asked:
    """What tables are asked of an experiment; a table, which is a function, takes those of the attributes it names.

    Attributes
    ----------
    results : Results
        The results.
    kind, wording, estimand
        As for :func:`opinionsim.analysis.table`.
    ddof : int
        Correction of the standard deviation.
    as_published : bool
        Whether errors, layout and tests are those of Chuang et al. 2023.
    what : str, optional
        The one table that is asked for.
    made : list of Table
        The tables before this one.
    """

    results: Results
    kind: str | None = None
    wording: str | None = None
    ddof: int = 0
    estimand: Estimand | None = None
    as_published: bool = False
    what: str | None = None
    made: list[Table] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.estimand = self.estimand or self.analysis.estimand
        if not self.results.swept:
            self.kind = self.kind or _of_people(self.results)
            self._runs, self.opinions, self.agents, self.turns = self.results.counted()

    @property
    def analysis(self) -> AnalysisSpec:
        """What is compared."""
        return analysis_of(self.results.spec, self.results.left_out)

    @property
    def points(self) -> pd.DataFrame:
        """The runs of a classic sweep."""
        return self.results.points

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The runs, in the order of the specification."""
        return self.results.ordered_runs

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """Metrics of the runs (:func:`opinionsim.metrics.run_metrics`)."""
        return run_metrics(self._runs, self.opinions, self.agents, self.ddof, turns=self.turns)

    @cached_property
    def values(self) -> pd.DataFrame | None:
        """Further metrics, and means of variables beside stance; None without any."""
        beside, further = variable_means(self._runs, self.opinions), self.results.named_metrics
        if not (further or len(beside)):
            return None
        found = named_metrics(self._runs, self.opinions, further, scale_of(cut(self.opinions)), self.turns)
        return found.merge(beside, on=["run_id", "cell"], how="left")

    @property
    def stance(self) -> bool:
        """Whether tables of stance are to be made: where it is measured, or nothing else is there to be tabulated."""
        return not self.made or bool(self.runs["instrument_id"].notna().any())

    def make(self, table: Part) -> list[Table]:
        """The tables that a function makes of these results; none where it is not of them."""
        fits = table.declared.get("fits", lambda asked: True)
        with blamed(table):
            if bool(table.declared.get("points")) != self.results.swept or not fits(self):
                return []
        table.check_options({})
        given = {name: getattr(self, name) for name in table.arguments() if name in KINDS["table"].given}
        found: Any = table.build(options={}, **given)
        with blamed(table):
            made = list(found or ()) if isinstance(found, list | tuple | Iterator | None) else [found]
            for each in made:
                is_one = isinstance(each, Table) and re.fullmatch(r"[\w-]*", each.name)
                table.expect(bool(is_one), "must return a Table, several, or None, each named by a word", each)
                if table.outside:
                    # What cannot be printed is found out here.
                    each.to_text()
        return made


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
    what : str, optional
        Name of one table, or the import path of one of the user's own, which is imported.

    Returns
    -------
    list of Table
        Those without a name are of what the experiment measures; `name` tells the others apart.

    Raises
    ------
    SpecError
        If no run is complete or has that wording, or none measures anything that can be tabulated; if there is no
        table `what`, or it fails or does not fit the experiment.

    Notes
    -----
    Without `what`, tables that ways of interacting name and metrics of the user's own that fail are left out by name
    (`failed` of the results), and the rest is there.
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
    """Tables whose first note, on the evidence, has the names that models gave themselves where these are others."""
    answered = [] if results.swept else answered_otherwise(results.answered)
    return [replace(each, notes=(" ".join([*each.notes[:1], *answered]), *each.notes[1:])) for each in tables]


def resting_on_own(results: Results, made: Sequence[Table]) -> list[list[str]]:
    """For each of the tables made of results, the parts of the user's own without which it is another, or not there."""
    own = [each for each in results.own if results.own_parts and each not in results.failed]
    lacking = {each: list[str]() for each in own}
    for each in own:
        rest = copy(results)
        rest.failed = results.failed | {each: ""}
        with suppress(SpecError, MeasurementError):
            lacking[each] = [table.to_text() for table in tables_of(rest)]
    texts = ("" if each.name.startswith("audit-") else each.to_text() for each in made)
    return [[each for each in own if text and text not in lacking[each]] for text in texts]


def _of_people(results: Results) -> str | None:
    """The kind of the last ratings of people on record, by which their twins are measured too; None without people."""
    kinds = results.opinions.loc[results.opinions["classifier"] == "recorded", "kind"]
    return None if kinds.empty else str(kinds.iloc[-1])
