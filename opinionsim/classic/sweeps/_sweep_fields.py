"""Specifications of classic sweeps: what they simulate, measure and vary, in the same terms as other experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from opinionsim.classic._equation_agents import ClassicModelSpec
from opinionsim.classic._registry import find_model
from opinionsim.classic.kernels._process import check_names
from opinionsim.classic.points import Point, moments_of, points_of, read_until, values_of
from opinionsim.classic.sweeps._points_table import SCAN
from opinionsim.errors import OpinionSimError
from opinionsim.foundation.documents import MAX_INT, Document, DocumentModel, KeyPath, read_document, validate
from opinionsim.metrics import find_metric
from opinionsim.schedules import MAX_SIZE
from opinionsim.specification import Overrides, apply_overrides, of_kind

#: Fields that may vary, by the short name that frames and the command line use.
_FIELDS = {
    "n": "population.size",
    "initial": "population.initial_opinions",
    "range": "population.range",
    "network": "interaction.network",
}
#: Fields of a network, and of a distribution of initial opinions, likewise.
_PARTS = {"network.": "interaction.network.", "initial.": "population.initial_opinions."}
_PARAMETERS = "model.parameters."


class SweepPopulationSpec(DocumentModel):
    """The agents and their initial opinions."""

    size: int | None = Field(None, ge=2)
    """Number of agents N. Null uses the size of the network or of the list of opinions, or otherwise 100."""
    initial_opinions: str | dict[str, Any] | list[Any] = "uniform"
    """Name of a distribution that is drawn for each replicate, a mapping with its kind and parameters, as in {kind:
    share, high: 0.3}, or a list with one number per agent."""
    range: list[float] | None = None
    """Range of opinions, [low, high]. Null uses the range of the model."""


class SweepInteractionSpec(DocumentModel):
    """Who meets whom, and for how long."""

    network: str | dict[str, Any] = "complete"
    """Name of a network, or a mapping with its kind and parameters. Random networks are drawn for each replicate."""
    steps: int = Field(100, ge=0, le=MAX_INT)
    """Maximum number of steps of a run. A step consists of one elementary update per agent."""
    until: str | dict[str, Any] | None = None
    """Condition that ends a run early: `frozen`, `consensus` or `{change: 1e-4}`. Null runs all steps."""
    isolates: Literal["error", "keep"] = "error"
    """What happens if an agent has no partner: an error, or it keeps its opinion."""


class SweepMeasurementSpec(DocumentModel):
    """What to keep from a run."""

    metrics: Annotated[tuple[str, ...], Field(min_length=1)] = ("bias", "diversity")
    """Measures to compute. `opinionsim list metrics` lists them."""
    at: list[int] | str | dict[str, Any] = Field(default_factory=list)
    """Steps after which to compute measures in addition to the end: a list, a range, or `{log: 20}`."""


class SweepSpec(DocumentModel):
    """A sweep of a classic model, which keeps only the measures of each run."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)
    """Name of the sweep. It may contain letters, digits, dots, hyphens and underscores."""
    description: str = ""
    """Purpose of the sweep."""
    seed: int = Field(0, ge=0, le=MAX_INT)
    """Root seed of all random numbers."""
    replicates: int = Field(1, ge=1, le=MAX_SIZE)
    """Number of runs of each point."""
    model: ClassicModelSpec
    """The model, its parameters and scheme options."""
    population: SweepPopulationSpec = Field(default_factory=SweepPopulationSpec)
    """The agents and their initial opinions."""
    interaction: SweepInteractionSpec = Field(default_factory=SweepInteractionSpec)
    """Who meets whom, and for how long."""
    measurement: SweepMeasurementSpec = Field(default_factory=SweepMeasurementSpec)
    """What to keep from a run."""
    sweep: dict[str, Any] = Field(default_factory=dict)
    """Grid of axes. Each axis is the dotted path of a field with a list of values, a range as in 0.05:0.5:0.05, or
    {from: 10, to: 10000, number: 7, scale: log}."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """A checked sweep.

    Attributes
    ----------
    spec : SweepSpec
        The specification.
    points : tuple of Point
        Every combination of values, in the order of the grid.
    """

    spec: SweepSpec
    points: tuple[Point, ...]

    @property
    def axes(self) -> list[str]:
        """Short names of the fields that vary."""
        return list(self.points[0].values)

    @property
    def total(self) -> int:
        """Number of runs."""
        return len(self.points) * self.spec.replicates

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures, without repetition."""
        return tuple(dict.fromkeys(self.spec.measurement.metrics))


def _measure(name: str) -> None:
    if name in ("time", "stopped"):
        raise OpinionSimError(f"{name} is a column of every sweep, not a metric; name a metric")
    find_metric(name)


def load_sweep(source: str | Path | Mapping[str, Any], overrides: Overrides = ()) -> Sweep:
    """Read and check a sweep.

    Parameters
    ----------
    source : str, Path or mapping
        Path of a specification, or the specification itself. Relative paths in a file start from its folder.
    overrides : mapping or iterable of str
        Replacements: dotted paths with values, or texts such as ``a.b=value`` with a YAML value.

    Returns
    -------
    Sweep
        The sweep, with every point checked.

    Raises
    ------
    SpecError, MeasurementError
        If a field or a point is not valid. The error names file, line and field, or the point.
    """
    document = Document(dict(source)) if isinstance(source, Mapping) else read_document(source)
    document = apply_overrides(document, overrides)
    spec = validate(SweepSpec, of_kind(document, SCAN))
    model = _placed(document, ("model", "classic"), find_model, spec.model.classic)
    for name in spec.model.parameters:
        _placed(document, ("model", "parameters", name), check_names, model, [name])
    for place, name in enumerate(spec.measurement.metrics):
        _placed(document, ("measurement", "metrics", place), _measure, name)
    at = _placed(document, ("measurement", "at"), moments_of, spec.measurement.at, spec.interaction.steps)
    _placed(
        document, ("interaction", "until"), partial(read_until, span=(0.0, 1.0), discrete=True), spec.interaction.until
    )
    over = {}
    for path, given in spec.sweep.items():
        name = _placed(document, ("sweep", path), _short, path)
        if name not in _FIELDS and not name.startswith(tuple(_PARTS)):
            _placed(document, ("sweep", path), check_names, model, [name])
        if not isinstance(given, Mapping):
            _placed(document, ("sweep", path), values_of, name, given)
        over[name] = given
    folder = Path() if document.path is None else document.path.parent
    found = _placed(
        document,
        ("sweep",) if over else (),
        points_of,
        model,
        _anchored_all(folder, over),
        network=_anchored(folder, spec.interaction.network),
        initial=spec.population.initial_opinions,
        n=spec.population.size,
        range=spec.population.range,
        isolates=spec.interaction.isolates,
        settings={name: value for name, value in spec.model.parameters.items() if name not in over},
        steps=spec.interaction.steps,
        until=spec.interaction.until,
        at=at,
        seed=spec.seed,
        replicates=spec.replicates,
        metrics=spec.measurement.metrics,
    )
    return Sweep(spec, tuple(found))


def field_named(name: str) -> str:
    """Return the field of a short name: ``population.size`` for ``n``, a parameter for ``epsilon``."""
    part = next(filter(name.startswith, _PARTS), "")
    return _FIELDS.get(name) or _PARTS.get(part, _PARAMETERS) + name.removeprefix(part)


def _short(path: str) -> str:
    """The short name of a field that may vary."""
    shorts = {field: name for name, field in _FIELDS.items()}
    if path in shorts:
        return shorts[path]
    for part, field in _PARTS.items():
        if path.startswith(field) and path.count(".") == 2:
            return f"{part}{path.removeprefix(field)}"
    if path.startswith(_PARAMETERS):
        return path.removeprefix(_PARAMETERS)
    valid = ", ".join([f"{_PARAMETERS}NAME", *_FIELDS.values(), *(f"{field}FIELD" for field in _PARTS.values())])
    raise OpinionSimError(f"cannot be swept; valid: {valid}")


def _placed(document: Document, keys: KeyPath, function: Any, *arguments: Any, **options: Any) -> Any:
    """What a function returns; its error names a place of the document."""
    try:
        return function(*arguments, **options)
    except OpinionSimError as error:
        raise document.error(keys, error.unplaced if error.places == keys[-1:] else str(error)) from None


def _anchored(folder: Path, network: Any) -> Any:
    """A network whose file is found from the folder of the specification."""
    if isinstance(network, Mapping) and isinstance(network.get("path"), str):
        return {**network, "path": str(folder / network["path"])}
    return network


def _anchored_all(folder: Path, over: Mapping[str, Any]) -> dict[str, Any]:
    """Axes, with the networks of files found from the folder of the specification."""
    if not isinstance(over.get("network"), Sequence):
        return dict(over)
    return {**over, "network": [_anchored(folder, each) for each in over["network"]]}
