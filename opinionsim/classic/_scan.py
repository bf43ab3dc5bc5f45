"""The kind of study that simulates a classic model over a grid of values, and keeps what it measures of each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from opinionsim.classic.sweeps import SCAN
from opinionsim.registry import part
from opinionsim.study import StudyKind, stored_units

if TYPE_CHECKING:
    import pandas as pd

    from opinionsim.store import Results


@part("study", name=SCAN)
class Scan(StudyKind):
    """Equations over a grid. A unit is a run of the model at one point of the grid."""

    frames: ClassVar[tuple[str, ...]] = ("points",)
    tables: ClassVar[tuple[str, ...]] = ("points",)
    about = "a classic sweep, which stores only measures"
    texts = "opinionsim.classic:scan"

    def takes(self, document: Mapping[str, Any]) -> bool:
        """Whether it names a classic model."""
        model = document.get("model")
        return isinstance(model, Mapping) and "classic" in model

    def commands(self) -> Mapping[str, Callable[..., None]]:
        """Functions that carry out commands."""
        from opinionsim.classic.command._scan_commands import plan, run

        return {"run": run, "plan": plan}

    def units(self, results: Results) -> pd.DataFrame:
        """One row per run.

        Returns
        -------
        DataFrame
            ``model``, then one column per swept axis by its short name (a parameter or scheme option, ``n``,
            ``network``, ``network.k``, ``initial``, ``range``; lists and mappings as JSON), ``replicate``, then one
            column per measure (``bias`` at the end of the run, ``bias@10`` after 10 steps; NaN where it was not asked
            for, or the run failed), ``time`` (steps carried out), ``stopped`` (whether the run ended before its limit
            of steps), ``error`` (why it failed, else empty), ``evidence`` (``equation``). Its ``attrs`` hold what does
            not vary: model, parameters, scheme, range, n, steps, seed.
        """
        from opinionsim.classic.points import sweep_frame
        from opinionsim.classic.sweeps import run_of

        return sweep_frame(results.design_row.units, map(run_of, stored_units(results)), results.manifest["shared"])

    def axes(self, results: Results) -> Sequence[str]:
        """Columns of what varies."""
        from opinionsim.classic.sweeps import point_axes

        return point_axes(results.units)

    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of scans."""
        from opinionsim.classic.sweeps import SweepSpec

        return SweepSpec.model_json_schema()

    def words(self, results: Results) -> dict[str, str]:
        """Model, steps, parameters and scheme."""
        from opinionsim.report import parameters

        attrs = results.units.attrs
        told = {"Model": attrs["model"], "Steps": str(attrs["steps"])}
        return told | {
            name.capitalize(): ", ".join(parameters(attrs.get(name, {}))) for name in ("parameters", "scheme")
        }

    def parts(self, results: Results) -> Iterator[tuple[str, str]]:
        """The model."""
        yield from (("classic_model", name) for name in results.units["model"].unique())
