"""Requests for tables or figures: the frames of an experiment, read and counted once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from opinionsim.analysis._means import Estimand
from opinionsim.analysis._printed_table import Table
from opinionsim.analysis._units import MEASURES
from opinionsim.metrics import cut, named_metrics, run_metrics, scale_of, variable_means
from opinionsim.registry import KINDS, Part, blamed
from opinionsim.specification import AnalysisSpec, analysis_of
from opinionsim.store import Results


@dataclass(eq=False)
class Asked:
    """Request for the tables of an experiment. A table is a function that takes the attributes that its arguments name.

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
        The requested table, if there is only one.
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
        if self.results.design_row.runs:
            self._runs, self.opinions, self.agents, self.turns = self.results.counted()
            self.kind = self.kind or _of_people(self.opinions)

    @property
    def analysis(self) -> AnalysisSpec:
        """Analysis with the contrasts to compare."""
        return analysis_of(self.results.spec, self.results.left_out)

    @property
    def units(self) -> pd.DataFrame:
        """The units of work."""
        return self.results.units

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The runs, in the order of the specification."""
        return self.results.ordered_runs

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """Metrics of the runs (:func:`opinionsim.metrics.run_metrics`)."""
        if not self.ddof:
            # Whoever else reads these results has them already.
            return self.results.metrics
        return run_metrics(self._runs, self.opinions, self.agents, self.ddof, turns=self.turns)

    @cached_property
    def values(self) -> pd.DataFrame | None:
        """Further metrics, and means of variables other than stance; None if there are none."""
        # Bias and diversity are among the metrics that every run has.
        further = [name for name in self.results.named_metrics if name not in MEASURES]
        beside = variable_means(self._runs, self.opinions)
        if not (further or len(beside)):
            return None
        found = named_metrics(self._runs, self.opinions, further, scale_of(cut(self.opinions)), self.turns)
        return found.merge(beside, on=["run_id", "cell"], how="left")

    @property
    def stance(self) -> bool:
        """Whether to make tables of stance: if stance is measured, or if there is nothing else to tabulate."""
        return not self.made or bool(self.runs["instrument_id"].notna().any())

    def make(self, table: Part) -> list[Table]:
        """Return the tables that a function makes from these results; none if it does not apply to them."""
        fits = table.declared.get("fits", lambda asked: True)
        with blamed(table):
            if not table.shows(self.results.design_row.study) or not fits(self):
                return []
        table.check_options({})
        given = {name: getattr(self, name) for name in table.arguments() if name in KINDS["table"].given}
        found: Any = table.build(options={}, **given)
        with blamed(table):
            made = list(found or ()) if isinstance(found, list | tuple | Iterator | None) else [found]
            for each in made:
                is_one = isinstance(each, Table) and re.fullmatch(r"[\w-]*", each.name)
                table.expect(bool(is_one), "must return a Table, several tables or None, each named by a word", each)
                if table.outside:
                    # What cannot be printed is found out here.
                    each.to_text()
        return made


def _of_people(opinions: pd.DataFrame) -> str | None:
    """The kind of the last ratings of people on record, by which their twins are measured too; None without people."""
    kinds = opinions.loc[opinions["classifier"] == "recorded", "kind"]
    return None if kinds.empty else str(kinds.iloc[-1])
