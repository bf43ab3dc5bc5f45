"""Experiments: specifications with their cells and planned runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field

from opinionsim.errors import OpinionSimError, SpecError
from opinionsim.foundation.data import data_folder
from opinionsim.foundation.documents import (
    Document,
    DocumentModel,
    KeyPath,
    is_one_line,
    read_document,
    show_value,
    validate,
)
from opinionsim.foundation.frozen import Frozen
from opinionsim.foundation.redaction import kept
from opinionsim.foundation.streams import canonical_json, digest, run_name
from opinionsim.measurement import STANCE
from opinionsim.registry import AGENTS, find, known, names
from opinionsim.specification import _identity
from opinionsim.specification._analysis import checked_analysis
from opinionsim.specification._checks import Checks
from opinionsim.specification._fields import ExperimentSpec
from opinionsim.specification._measurement import InstrumentSpec, text_problems
from opinionsim.specification._overrides import (
    Overrides,
    apply_overrides,
    plain_values,
    replaced,
    split_path,
    with_changes,
)
from opinionsim.specification._own_parts import require_importable
from opinionsim.specification._resources import Resources
from opinionsim.specification._source_cells import with_sources

#: The field that names the kind of study.
_STUDY = "study"
#: Fields that a sweep may vary.
_SWEEPABLE = ("seed", *_identity.TOP_FIELDS)
_MAX_RUNS = 1_000_000
_MAX_PROBLEMS = 20


@dataclass(frozen=True)
class Cell:
    """One combination of conditions.

    Attributes
    ----------
    label : str
        The values of its axes in words; the name of the experiment if nothing is swept.
    axes : dict of str to value
        Value or label of each axis in this cell, by dotted path, in the order of the sweep.
    spec : ExperimentSpec
        Specification of its runs, without a sweep.
    fields : dict
        Fields that enter the identity of its runs, as JSON values.
    sources : tuple of Cell
        The cells from whose runs it copies content; empty if there are none.
    """

    label: str
    axes: dict[str, Any]
    spec: ExperimentSpec
    fields: dict[str, Any] = field(repr=False)
    sources: tuple[Cell, ...] = field(default=(), repr=False)

    @cached_property
    def instruments(self) -> tuple[InstrumentSpec, ...]:
        """Instruments of its runs; cells that share runs may differ in these."""
        return self.spec.instruments

    @cached_property
    def instrument_id(self) -> str | None:
        """Identity of its first instrument of stance, which tables and figures use; None if there is none."""
        found = (each for each in self.instruments if each.variable == STANCE and not each.about)
        return next((each.instrument_id for each in found), None)

    @property
    def replicates(self) -> Sequence[int]:
        """Numbers of its replicates; for recorded people and their twins, those on record."""
        (there,) = self.sources if self.spec.interaction.stands_in else (self,)
        return there.spec.interaction.replicates(self.spec.replicates)

    @property
    def stream_key(self) -> tuple[Any, ...]:
        """Values of the fields in `independent_over`, which enter the key of its random streams."""
        return tuple(self.fields.get("independent", {}).values())


@dataclass(frozen=True)
class PlannedRun:
    """One replicate of a cell.

    Replicates with equal `run_id` are one run: their cells differ only in their instruments.

    Attributes
    ----------
    cell : Cell
        The cell of the run.
    replicate : int
        Number of the replicate, from 0.
    run_id : str
        Identity: a hash of everything that can affect a prompt, a draw or a model.
    block : str
        Name of the set of runs that share random draws.
    redraw : int
        Number of the redraw of this cell and replicate, from 0; redraws differ in the seeds of their calls.
    """

    cell: Cell
    replicate: int
    run_id: str
    block: str
    redraw: int = 0

    @classmethod
    def of(cls, cell: Cell, replicate: int, redraw: int = 0) -> PlannedRun:
        """A replicate of a cell, or one of its redraws."""
        others: dict[str, Any] = {"redraw": redraw} if redraw else {}
        if cell.sources and cell.spec.fork is None:
            there = cell.spec.interaction.counterparts(replicate, cell.spec.replicates)
            others["counterparts"] = there[0] if len(there) == 1 else list(there)
        identity = _identity.run_id(cell.spec, cell.fields, replicate, others)
        return cls(cell, replicate, identity, _identity.block(cell.spec, cell.fields, replicate), redraw)

    @property
    def name(self) -> str:
        """Its name in all lists of runs."""
        return run_name(self.cell.label, self.replicate, self.redraw)

    @property
    def spec(self) -> ExperimentSpec:
        """The specification of the run."""
        return self.cell.spec

    @cached_property
    def sources(self) -> tuple[PlannedRun, ...]:
        """The runs that it copies content from, ordered by cell."""
        there = self.spec.interaction.counterparts(self.replicate, self.spec.replicates)
        return tuple(PlannedRun.of(cell, number, self.redraw) for cell in self.cell.sources for number in there)


@dataclass(frozen=True)
class Experiment:
    """A checked experiment: every cell is valid, and all resources have been read.

    Attributes
    ----------
    spec : ExperimentSpec
        The specification. A field that the sweep varies has the value of the first cell.
    source : Document
        The document that was read, with overrides applied.
    resources : Resources
        Its topics, personas, prompts, messages and networks.
    cells : tuple of Cell
        All distinct combinations of conditions, in the order of the sweep.
    variants : dict of str to Experiment
        Its variants by label: experiments of the same name with the same conditions and blocks.
    frozen : Frozen or None
        The parts fixed before its runs; None if nothing was fixed, and in variants.
    """

    spec: ExperimentSpec
    source: Document
    resources: Resources
    cells: tuple[Cell, ...]
    variants: Mapping[str, Experiment] = field(default_factory=dict)
    frozen: Frozen | None = None

    @cached_property
    def runs(self) -> tuple[PlannedRun, ...]:
        """Every replicate of every cell with its redraws, cell by cell; for recorded people, those on record."""
        return tuple(
            PlannedRun.of(cell, replicate, redraw)
            for cell in self.cells
            for replicate in cell.replicates
            for redraw in range(cell.spec.redraws)
        )

    @cached_property
    def pilot(self) -> frozenset[str]:
        """Ids of the runs of a pilot: the first of every cell, and the runs that these copy content from."""
        first = [run for run in self.runs if run.replicate == run.redraw == 0]
        return frozenset(run.run_id for each in first for run in (each, *each.sources))


class _Manifest(DocumentModel):
    """A specification with all its resources, by content."""

    opinionsim_manifest: Literal[1]
    spec: dict[str, Any]
    contents: dict[str, Any] = Field(default_factory=dict)
    environment: dict[str, Any] = Field(default_factory=dict)
    frozen: Frozen | None = None


class _Value(NamedTuple):
    """One value of a sweep axis."""

    label: Any
    value: Any


class _Axis(NamedTuple):
    """One axis of a grid."""

    path: str
    keys: tuple[str, ...]
    values: list[_Value]
    place: KeyPath


def load_experiment(source: str | Path | Mapping[str, Any], overrides: Overrides = ()) -> Experiment:
    """Read and check an experiment.

    Parameters
    ----------
    source : str, Path or mapping
        Path of a specification or manifest, name of an experiment of the package (``chuang2024/tables``), or a
        specification itself. Relative paths inside it start from its folder.
    overrides : mapping or iterable of str
        Replacements: dotted paths with values, or texts like ``a.b=value`` whose value is YAML. Relative paths of
        files and folders in them start from the current folder.

    Returns
    -------
    Experiment
        The experiment, with every cell checked.

    Raises
    ------
    SpecError
        If there are problems: one line each, with file, line, field, and valid values.
    """
    if not isinstance(source, (str, Path, Mapping)):
        raise SpecError(
            f"an experiment must be a path, a name or a mapping; got an object of type {type(source).__name__}"
        )
    document, resources, frozen = _open(source)
    document = apply_overrides(document, overrides)
    if frozen is not None:
        frozen.require_seed(document.value.get("seed", 0))
    return replace(_build(of_kind(document, AGENTS), resources), frozen=frozen)


def study_of(source: str | Path) -> str:
    """The kind of study that a specification names in its field ``study``.

    One that names none is of agents if it has a kind of interaction; otherwise it is of the first kind that takes it.

    Parameters
    ----------
    source : str or Path
        As for :func:`load_experiment`.
    """
    document = _open(source)[0]
    if "units" in document.value:
        raise document.error((), "this is a manifest without a specification; run the specification itself")
    return _kind_in(document.value)


def _kind_in(value: Mapping[str, Any]) -> str:
    interaction, swept = value.get("interaction"), value.get("sweep") or {}
    has_kind = isinstance(interaction, Mapping) and "kind" in interaction
    if _STUDY in value or has_kind or not isinstance(swept, Mapping) or {"interaction", "interaction.kind"} & {*swept}:
        return str(value.get(_STUDY, AGENTS))
    return next((name for name in names("study") if find("study", name).target().takes(value)), AGENTS)


def of_kind(document: Document, kind: str) -> Document:
    """A specification of a kind of study, without the field that says so.

    Raises
    ------
    SpecError
        If it is of another kind.
    """
    stated = _kind_in(document.value) if kind == AGENTS else document.value.get(_STUDY, kind)
    if stated != kind:
        raise document.error(
            (_STUDY,), f"this is a study of kind {stated!r}, not {kind!r}; `opinionsim run FILE` takes every kind"
        )
    return document.with_value({name: value for name, value in document.value.items() if name != _STUDY})


def require_experiment(value: object) -> None:
    """Refuse anything but a loaded experiment.

    Raises
    ------
    SpecError
        If `value` is not an Experiment.
    """
    if not isinstance(value, Experiment):
        raise SpecError(
            f"experiment must be an Experiment, from opinionsim.load_experiment; got a {type(value).__name__}"
        )


def _open(source: str | Path | Mapping[str, Any]) -> tuple[Document, Resources, Frozen | None]:
    """A specification, its resources, and what of it was frozen."""
    if isinstance(source, Mapping):
        document, folder = Document(plain_values(source), name="specification"), Path()
    else:
        path = _find(source)
        document, folder = read_document(path), path.parent
        archive, beside = (path.with_name(name) for name in ("archive.json", "manifest.json"))
        archived = path.name == "specification.yaml" and archive.is_file() and beside.is_file()
        # The files that the specification of an archive names are in the manifest beside it.
        if archived and "contents" in (told := read_document(beside)).value:
            return document, Resources.from_contents(told.section("contents"), folder), None
    if "opinionsim_manifest" not in document.value:
        return document, Resources(folder), None
    manifest = validate(_Manifest, document)
    if manifest.frozen is not None:
        manifest.frozen.require_unedited(document.value, document.locate())
    parts = manifest.environment.get("parts", {})
    require_importable({name: told for name, told in parts.items() if not known(str(told["kind"]), name)})
    held: Document | dict[str, Any] = document.section("contents") if manifest.contents else {}
    return document.section("spec"), Resources.from_contents(held, folder), manifest.frozen


def _find(source: str | Path) -> Path:
    """The file of a path or name."""
    path = Path(source)
    if path.is_file() or isinstance(source, Path) or path.is_absolute():
        return path
    folder = data_folder("experiments")
    for named in (folder / f"{source}.yaml", folder / source):
        if named.is_file():
            return named
    if path.is_dir():
        return path
    names = sorted(file.relative_to(folder).with_suffix("").as_posix() for file in folder.rglob("*.yaml"))
    raise SpecError(f"{source}: no such file or experiment; valid names: {', '.join(names) or 'none'}")


def _build(document: Document, resources: Resources) -> Experiment:
    """Build the experiment from all distinct cells, or raise all problems."""
    grids = list(_grids(document))
    problems: dict[str, OpinionSimError] = {}
    cells: dict[str, Cell] = {}
    failing: dict[str, Cell] = {}
    checked = Checks(resources)
    for grid in grids:
        seen: dict[str, str] = {}
        for values in product(*(axis.values for axis in grid)):
            try:
                cell = _cell(document, grid, values, checked)
            except SpecError as error:
                problems.update((str(each), each) for each in error.problems)
                if len(problems) > _MAX_PROBLEMS:
                    break
                continue
            measured = [[each.instrument_id, sorted(each.kinds)] for each in cell.instruments]
            read = [cell.spec.uncounted, cell.spec.measurement.least_measured, cell.spec.interaction.declared]
            key = canonical_json([cell.spec.seed, cell.fields, measured, *read])
            shared = failing.setdefault(canonical_json([cell.spec.seed, cell.fields]), cell)
            twice = []
            if shared.spec.ends_runs != cell.spec.ends_runs:
                twice += [(shared.label, ", which one of them ends where the other goes on (then: fail)")]
            if key in seen:
                twice += [(seen[key], "; each must differ in its conditions")]
            for other, told in twice:
                place, alike = (document.locate(grid[0].place[:-1]), "sweep"), f"cells {other!r} and {cell.label!r}"
                clash = SpecError(f"{alike} describe the same runs{told}", place)
                problems[str(clash)] = clash
            seen[key] = cell.label
            cells.setdefault(key, cell)
    if problems:
        more = [SpecError("and more")] if len(problems) > _MAX_PROBLEMS else []
        raise SpecError.joined([*list(problems.values())[:_MAX_PROBLEMS], *more])
    found = tuple(with_sources(list(cells.values())))
    total = sum(cell.spec.replicates * cell.spec.redraws for cell in found)
    if total > _MAX_RUNS:
        raise document.error(("replicates",), f"{len(found)} cells make {total} runs; at most {_MAX_RUNS} are possible")
    sweep = [{axis.path: tuple(value.value for value in axis.values) for axis in grid} for grid in grids]
    first = found[0].spec
    named = [metric.name for metric in first.measurement.metrics]
    texts = {kind: codes for cell in found for kind, codes in cell.spec.ratable.items()}
    unknown = text_problems((cell.spec.measurement for cell in found), texts)
    analysis, unfitting = checked_analysis(first.analysis, found, named)
    if unfit := dict.fromkeys([*unknown, *unfitting]):
        raise SpecError.joined(document.error(*each) for each in unfit)
    whole = first.model_copy(update={"sweep": sweep[0] if len(sweep) == 1 else tuple(sweep), "analysis": analysis})
    made = Experiment(whole, document, resources, found)
    return replace(made, variants=_variants(made)) if first.robustness else made


#: Fields that a variant may change; others make conditions, units, measurement or execution.
_VARIED = ("cognition", "events", "interaction", "model", "population", "prompts", "roles", "task", "topic.masked")


def _variants(reference: Experiment) -> dict[str, Experiment]:
    """The variants of an experiment, each checked; one that changes the design, or nothing, is refused."""
    document, found = reference.source, dict[str, Experiment]()
    if reference.spec.analysis.decides is None:
        raise document.error(("robustness",), "variants are compared in the primary contrast; set analysis.primary")
    bare = document.with_value({key: value for key, value in document.value.items() if key != "robustness"})
    known = {tuple(sorted(run.run_id for run in reference.runs)): "the specification itself"}
    for position, variant in enumerate(reference.spec.robustness):
        place, named = ("robustness", position), f"variant {variant.label!r}"
        for path in variant.change:
            if not any(f"{path}.".startswith(f"{field}.") for field in _VARIED):
                problem = f"{named} changes {path}, part of the design; valid: fields under {', '.join(_VARIED)}"
                raise document.error((*place, "change"), problem)
        if variant.label in found:
            raise document.error((*place, "label"), f"{variant.label!r} labels two variants; use distinct labels")
        origin = f"{document.locate(place)}: {named}"
        changes = [(f"{origin}: {path}", path, value) for path, value in variant.change.items()]
        try:
            made = _build(with_changes(bare, changes), reference.resources)
        except SpecError as error:
            placed = {place for place, _, _ in changes}
            told = (each if placed.intersection(each.places) else each.at(origin) for each in error.problems)
            raise SpecError.joined(told) from None
        if _conditions(made) != _conditions(reference):
            raise document.error(place, f"{named} changes the design (conditions, blocks or instruments)")
        twin = known.setdefault(tuple(sorted(run.run_id for run in made.runs)), named)
        if twin != named:
            raise document.error(place, f"{named} changes nothing: its runs are those of {twin}")
        found[variant.label] = made
    return found


def _conditions(experiment: Experiment) -> list[tuple[Any, ...]]:
    """What runs of two experiments are paired by, and measured with."""
    return [
        (
            *(run.cell.label, run.replicate, run.redraw, run.block),
            {**run.cell.fields.get("topic", {}), "masked": None},
            [each.instrument_id for each in run.cell.instruments],
        )
        for run in experiment.runs
    ]


def _cell(document: Document, grid: list[_Axis], values: tuple[_Value, ...], checked: Checks) -> Cell:
    """One checked cell. Places of values are worked out only for a cell with problems."""
    raw = {key: value for key, value in document.value.items() if key != "sweep"}
    chosen = sorted(zip(grid, values, strict=True), key=lambda pair: len(pair[0].keys))
    try:
        for axis, value in chosen:
            raw = replaced(raw, axis.keys, value.value)
    except ValueError as error:
        raise document.error(axis.place, str(error)) from None
    try:
        spec = checked.resources.resolved(validate(ExperimentSpec, raw))
        checked.check(spec, Document(raw))
    except SpecError:
        origins = [
            (
                axis.keys,
                f"{document.locate((*axis.place, _index(axis, value)))}: sweep {axis.path}={_spell(value.label)}",
            )
            for axis, value in chosen
        ]
        located = document.with_value(raw, *origins)
        checked.check(checked.resources.resolved(validate(ExperimentSpec, located)), located)
        raise
    fields = _identity.run_fields(spec, checked.resources)
    axes = kept({axis.path: value.label for axis, value in zip(grid, values, strict=True)})
    label = ", ".join(f"{path}={_spell(value)}" for path, value in axes.items())
    return Cell(label or spec.name, axes, spec, fields)


def _index(axis: _Axis, value: _Value) -> int:
    """Position of a value on its axis."""
    return next(position for position, own in enumerate(axis.values) if own is value)


def _spell(label: Any) -> str:
    return label if isinstance(label, str) else canonical_json(label)


def _grids(document: Document) -> Iterator[list[_Axis]]:
    """The grids of a sweep, each a list of axes; one empty grid if nothing is swept."""
    sweep = document.value.get("sweep")
    if sweep in (None, {}, []):
        yield []
        return
    if isinstance(sweep, Mapping):
        yield _grid(document, ("sweep",), sweep)
    elif isinstance(sweep, list):
        for position, grid in enumerate(sweep):
            place: KeyPath = ("sweep", position)
            if not isinstance(grid, Mapping) or not grid:
                raise document.error(place, f"must be a mapping of axes to lists of values; got {show_value(grid)}")
            yield _grid(document, place, grid)
    else:
        raise document.error(
            ("sweep",), f"must be a mapping of axes to lists of values, or a list of them; got {show_value(sweep)}"
        )


def _grid(document: Document, place: KeyPath, grid: Mapping[Any, Any]) -> list[_Axis]:
    """The axes of one grid."""
    axes = [_axis(document, (*place, str(path)), str(path), values) for path, values in grid.items()]
    size = prod(len(axis.values) for axis in axes)
    if size > _MAX_RUNS:
        raise document.error(place, f"has {size} cells; at most {_MAX_RUNS} are possible")
    return axes


def _axis(document: Document, place: KeyPath, path: str, values: Any) -> _Axis:
    """One axis: a field and the distinct values it takes."""
    try:
        keys = split_path(path)
    except ValueError as error:
        raise document.error(place, str(error)) from None
    if keys[0] not in _SWEEPABLE:
        raise document.error(place, f"cannot be swept; valid: fields under {', '.join(_SWEEPABLE)}")
    if not isinstance(values, (list, tuple)) or not values:
        raise document.error(place, f"must be a list of at least one value; got {show_value(values)}")
    spelled = [_canonical_text(document, (*place, i), value) for i, value in enumerate(values)]
    for i, value in enumerate(values):
        if isinstance(value, Mapping) and not is_one_line(str(value.get("label", ""))):
            raise document.error(
                (*place, i, "label"),
                f"must be one line, without line breaks or other control characters; got {value['label']!r}",
            )
    found = [_labelled(value) for value in values]
    if len({_spell(value.label) for value in found}) < len(found):
        # Values with one kind or name are labelled by their content, unless the user labels them.
        found = [
            own if isinstance(value, Mapping) and "label" in value else _Value(_plain_label(own.value), own.value)
            for own, value in zip(found, values, strict=True)
        ]
    seen: set[tuple[str, str]] = set()
    for position, (value, text) in enumerate(zip(found, spelled, strict=True)):
        marks = {("value", text), ("label", _spell(value.label))}
        if marks & seen:
            raise document.error((*place, position), f"repeats the value or label {_spell(value.label)!r}")
        seen |= marks
    return _Axis(path, keys, found, place)


def _canonical_text(document: Document, place: KeyPath, value: Any) -> str:
    """The canonical text of an axis value, without its label."""
    try:
        return canonical_json(_identity.canonical(_labelled(value).value))
    except (TypeError, ValueError):
        raise document.error(
            place, f"must be a finite number, text, list or mapping; got {show_value(value)}"
        ) from None


def _labelled(value: Any) -> _Value:
    """An axis value with its label: its own label, kind or name, those of the entries of a list, or its content.

    ``{label: ..., value: ...}`` labels a value that is no mapping, such as a list or a long text.
    """
    if isinstance(value, (list, tuple)) and all(isinstance(each, Mapping) and "kind" in each for each in value):
        return _Value(" + ".join(map(_entry_label, value)) or "none", value)
    if not isinstance(value, Mapping):
        return _Value(_plain_label(value), value)
    if value.keys() == {"label", "value"}:
        return _Value(_plain_label(str(value["label"])), value["value"])
    content = {key: child for key, child in value.items() if key != "label"}
    naming = ("kind", "name", *names("endpoint"))
    label = value.get("label", next((content[each] for each in naming if each in content), None))
    return _Value(_plain_label(str(label)) if label is not None else _plain_label(content), content)


def _entry_label(entry: Mapping[str, Any]) -> str:
    """Label of an entry of a list: its kind, and its step if it has one."""
    step = f" at {_plain_label(entry['step'])}" if "step" in entry else ""
    return f"{_plain_label(entry['kind'])}{step}"


def _plain_label(value: Any) -> Any:
    """A scalar or one-line text as it is; any other value as JSON."""
    if value is None or isinstance(value, (int, float, bool)) or (isinstance(value, str) and is_one_line(value)):
        return value
    try:
        return canonical_json(_identity.canonical(value))
    except (TypeError, ValueError):
        return show_value(value)


def design_id(experiment: Experiment) -> str:
    """Identity of a design: a hash of its cells and instruments, without replicates, labels and budget."""
    cells = {
        canonical_json([run.spec.seed, run.cell.fields, sorted(each.instrument_id for each in run.cell.instruments)])
        for run in experiment.runs
    }
    return digest(canonical_json(sorted(cells)))
