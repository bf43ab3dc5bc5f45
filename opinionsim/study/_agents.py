"""The kind of study of the core: runs of agents on a schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import unwrap
from typing import TYPE_CHECKING, Any, ClassVar

from opinionsim.registry import AGENTS, part
from opinionsim.study._kind_of_study import StudyKind

if TYPE_CHECKING:
    import pandas as pd

    from opinionsim.store import Results


@part("study", name=AGENTS)
class AgentStudy(StudyKind):
    """Agents on a schedule. A unit is a run; cells that differ only in how they are measured share it."""

    frames: ClassVar[tuple[str, ...]] = ("runs", "agents", "edges", "turns", "opinions", "calls", "metrics")
    about = "a study of agents, which stores what they say"
    texts = "opinionsim.report:agents"

    def commands(self) -> Mapping[str, Callable[..., None]]:
        """Functions that carry out commands."""
        from opinionsim.cli import plan, preview, run

        return {each.__name__: unwrap(each) for each in (run, plan, preview)}

    def units(self, results: Results) -> pd.DataFrame:
        """The frame ``runs`` in the order of the specification."""
        return results.ordered_runs

    def states(self, results: Results) -> pd.Series[Any]:
        """The status of each run, once."""
        return results.runs["status"][~results.runs["run_id"].duplicated()]

    def axes(self, results: Results) -> Sequence[str]:
        """Columns of the runs whose values make the conditions."""
        from opinionsim.metrics import condition_axes

        return condition_axes(results.ordered_runs)

    def frame(self, results: Results, name: str) -> pd.DataFrame:
        """A frame of the store."""
        found: pd.DataFrame = getattr(results, name)
        return found

    def source(self, results: Results) -> Any:
        """The results themselves."""
        return results

    def rows(self, results: Results) -> pd.DataFrame | None:
        """None."""
        return None

    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of experiments."""
        from opinionsim.specification import json_schema

        return json_schema()

    def words(self, results: Results) -> dict[str, str]:
        """Topics, personas, memory, instruments and more."""
        from opinionsim.report import words_of_runs

        return words_of_runs(results)

    def parts(self, results: Results) -> Iterator[tuple[str, str]]:
        """Interactions, networks, memories, models of equations and classifiers."""
        from opinionsim.report import parts_of_runs

        return parts_of_runs(results)
