"""Changes made to a specification from outside its file, as with ``--set a.b=value``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from opinionsim.documents import Document, parse_value, show_value
from opinionsim.errors import SpecError

__all__ = ["apply_overrides", "replaced", "split_path"]

Overrides = Mapping[str, Any] | Iterable[str]


def split_path(path: str) -> tuple[str, ...]:
    """Keys of a dotted path.

    Raises
    ------
    ValueError
        If a part of it is empty.
    """
    keys = tuple(path.split("."))
    if not all(keys):
        raise ValueError(f"{path!r} is no dotted path; valid is one like topic.framing")
    return keys


def replaced(root: Mapping[str, Any], keys: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A copy of a nested mapping with another value at a key path; all else is shared.

    Raises
    ------
    ValueError
        If the path leads through something that is no mapping.
    """
    copy = dict(root)
    key = next((own for own in copy if own == keys[0] or json.dumps(own) == keys[0]), keys[0])
    if len(keys) == 1:
        copy[key] = value
        return copy
    child = copy.get(key)
    if child is not None and not isinstance(child, Mapping):
        raise ValueError(f"there is no field {keys[1]!r} in {show_value(child)}; give the whole node a mapping instead")
    copy[key] = replaced(child or {}, keys[1:], value)
    return copy


def apply_overrides(document: Document, overrides: Overrides) -> Document:
    """A specification with some of its values replaced.

    Parameters
    ----------
    document : Document
        The specification as written.
    overrides : mapping or iterable of str
        Dotted paths with values, or texts of the form ``a.b=value`` whose value is YAML. What follows
        ``sweep.`` is the name of an axis, dots included.

    Returns
    -------
    Document
        Errors about a replaced value name the override.

    Raises
    ------
    SpecError
        If an override is malformed, or would have no effect because a sweep sets the field.
    """
    changes = _read(overrides)
    for origin, path, value in changes:
        if _is_sweep(path):
            document = _override_sweep(document, origin, path, value)
    axes = _axes(document.value.get("sweep"))
    for origin, path, value in changes:
        if _is_sweep(path):
            continue
        for axis in axes:
            if path == axis or path.startswith(f"{axis}."):
                raise SpecError(
                    f"{origin}: {path} is set by the sweep axis {axis}; set sweep.{axis}=[...] to change the axis"
                )
        try:
            keys = split_path(path)
            content = replaced(document.value, keys, value)
        except ValueError as error:
            raise SpecError(f"{origin}: {error}") from None
        document = document.with_value(content, (keys, origin))
    return document


def _read(overrides: Overrides) -> list[tuple[str, str, Any]]:
    """Origin, dotted path and value of every override."""
    if isinstance(overrides, str):
        raise SpecError(f"overrides must be a mapping or a list of texts like a.b=value; got {overrides!r}")
    if isinstance(overrides, Mapping):
        return [(f"override {path}", str(path), value) for path, value in overrides.items()]
    changes = []
    for text in overrides:
        path, equals, spelled = text.partition("=")
        if not equals or not path.strip():
            raise SpecError(f"--set {text!r}: must have the form a.b=value")
        origin = f"--set {path.strip()}"
        changes.append((origin, path.strip(), parse_value(spelled, origin)))
    return changes


def _is_sweep(path: str) -> bool:
    return path == "sweep" or path.startswith("sweep.")


def _axes(sweep: Any) -> list[str]:
    """Axes of all grids, as far as they can be read."""
    grids = sweep if isinstance(sweep, list) else [sweep]
    return [str(axis) for grid in grids if isinstance(grid, Mapping) for axis in grid]


def _override_sweep(document: Document, origin: str, path: str, value: Any) -> Document:
    """Replace the sweep, or one axis in every grid that has it."""
    axis = path.removeprefix("sweep").removeprefix(".")
    sweep = document.value.get("sweep") or {}
    if not axis:
        return document.with_value({**document.value, "sweep": value}, (("sweep",), origin))
    if isinstance(sweep, Mapping):
        changed: Any = {**sweep, axis: value}
        return document.with_value({**document.value, "sweep": changed}, (("sweep", axis), origin))
    places = [i for i, grid in enumerate(sweep) if isinstance(grid, Mapping) and axis in grid]
    if not places:
        valid = ", ".join(dict.fromkeys(_axes(sweep)))
        raise SpecError(f"{origin}: no grid of the sweep has the axis {axis}; valid: {valid}, or the whole sweep")
    changed = [{**grid, axis: value} if i in places else grid for i, grid in enumerate(sweep)]
    origins = [(("sweep", i, axis), origin) for i in places]
    return document.with_value({**document.value, "sweep": changed}, *origins)
