"""Overrides of a specification, as with ``--set a.b=value``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import Document, is_one_line, parse_value, show_value
from opinionsim.registry import name_of, names
from opinionsim.specification._resources import is_path

Overrides = Mapping[str, Any] | Iterable[str]

#: Fields that can hold paths, each with a test of whether a text is a path and not a name.
_PATHS: Mapping[tuple[str, ...], Callable[[str], bool]] = {
    ("population", "personas"): is_path,
    ("survey", "file"): is_path,
    ("survey", "mapping"): is_path,
    ("topic", "file"): bool,
    ("prompts",): lambda text: text not in ("", *names("pack")),
    ("prompts", "pack"): lambda text: text not in ("", *names("pack")),
    ("interaction", "messages"): bool,
    ("interaction", "controls"): bool,
    ("interaction", "drafters", "examples"): bool,
    ("interaction", "network", "path"): bool,
    ("events", "file"): bool,
    ("ethics", "consent"): bool,
    ("execution", "prices"): bool,
}


def split_path(path: str) -> tuple[str, ...]:
    """Keys of a dotted path.

    Raises
    ------
    ValueError
        If a key is empty, or the path contains a line break or another control character.
    """
    keys = tuple(path.split("."))
    if not all(keys) or not is_one_line(path):
        raise ValueError(f"{path!r} is not a dotted path such as topic.framing")
    return keys


def replaced(root: Mapping[str, Any], keys: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Return a copy of a nested mapping with another value at a key path; other values are shared.

    Entries of a list are named by their position, from 0, as in ``events.0.step``.

    Raises
    ------
    ValueError
        If the path leads through a value that is neither mapping nor list, or to an entry that a list lacks.
    """
    copy = dict(root)
    key = next((own for own in copy if own == keys[0] or json.dumps(own) == keys[0]), keys[0])
    if len(keys) == 1:
        copy[key] = value
        return copy
    child = copy.get(key)
    if isinstance(child, (list, tuple)):
        entries = {str(position): entry for position, entry in enumerate(child)}
        if keys[1] not in entries:
            raise ValueError(f"{key} has no entry {keys[1]!r}; valid: {', '.join(entries) or 'none, it is empty'}")
        copy[key] = list(replaced(entries, keys[1:], value).values())
        return copy
    if child is not None and not isinstance(child, Mapping):
        raise ValueError(f"there is no field {keys[1]!r} in {show_value(child)}; set the whole node to a mapping")
    copy[key] = replaced(child or {}, keys[1:], value)
    return copy


def apply_overrides(document: Document, overrides: Overrides) -> Document:
    """Replace some values of a specification.

    Parameters
    ----------
    document : Document
        The specification as written.
    overrides : mapping or iterable of str
        Dotted paths with values, or texts of the form ``a.b=value`` whose value is YAML. The rest of a path after
        ``sweep.`` is the name of an axis, dots included. Relative paths of files and folders start from the current
        folder.

    Returns
    -------
    Document
        The new specification. Its errors about a replaced value name the override.

    Raises
    ------
    SpecError
        If an override is malformed, or would have no effect because a sweep sets the field.
    """
    folder = document.path.parent if document.path is not None else Path()
    changes = [(origin, path, _anchored(folder, path, value)) for origin, path, value in _read(overrides)]
    for origin, path, value in changes:
        if _is_sweep(path):
            document = _override_sweep(document, origin, path, value)
    return with_changes(document, [each for each in changes if not _is_sweep(each[1])])


def with_changes(document: Document, changes: Iterable[tuple[str, str, Any]]) -> Document:
    """Change values of a specification. A change has an origin for errors, a dotted path, and a value.

    Raises
    ------
    SpecError
        If a path is malformed, or would have no effect because a sweep sets the field.
    """
    axes = axes_of(document.value.get("sweep"))
    for origin, path, value in changes:
        for axis in axes:
            if path == axis or path.startswith(f"{axis}."):
                raise SpecError(
                    f"{path} is set by the sweep axis {axis}; set sweep.{axis}=[...] to change the axis", origin
                )
        try:
            keys = split_path(path)
            content = replaced(document.value, keys, value)
        except ValueError as error:
            raise SpecError(str(error), origin) from None
        document = document.with_value(content, (keys, origin))
    return document


def _read(overrides: Overrides) -> list[tuple[str, str, Any]]:
    """Origin, dotted path and value of every override."""
    if isinstance(overrides, str):
        raise SpecError(f"overrides must be a mapping or a list of strings such as a.b=value; got {overrides!r}")
    if isinstance(overrides, Mapping):
        return [(f"override {path}", str(path), _plain(f"override {path}", value)) for path, value in overrides.items()]
    changes = []
    for text in overrides:
        path, equals, spelled = text.partition("=")
        if not equals or not path.strip():
            raise SpecError(f"--set {text!r}: must have the form a.b=value")
        origin = f"--set {path.strip()}"
        changes.append((origin, path.strip(), parse_value(spelled, origin)))
    return changes


def _plain(origin: str, value: Any) -> Any:
    """The value of an override as a plain value that JSON can hold."""
    found = plain_values(value)
    try:
        json.dumps(found)
    except (TypeError, ValueError, RecursionError) as error:
        raise SpecError(f"contains something other than plain values, lists and mappings: {error}", origin) from None
    return found


def plain_values(value: Any) -> Any:
    """A value with numpy numbers and arrays made plain, and marked parts replaced by their names."""
    if isinstance(value, Mapping):
        return {key: plain_values(child) for key, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(child) for child in value]
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else name_of(value)


def _anchored(folder: Path, path: str, value: Any) -> Any:
    """The value of an override for a specification in `folder`: paths relative to the current folder made absolute."""
    if folder.resolve() == Path().resolve():
        return value
    keys = tuple(path.split("."))
    if keys[0] != "sweep":
        return _absolute(keys, value)
    axis = keys[1:]
    if isinstance(value, (list, tuple)):
        return [_absolute(axis, each) if axis else _anchored(folder, path, each) for each in value]
    if isinstance(value, Mapping) and not axis:
        return {axis: _anchored(folder, f"{path}.{axis}", values) for axis, values in value.items()}
    return value


def _absolute(keys: tuple[str, ...], value: Any) -> Any:
    """A value with the paths in it made absolute."""
    if isinstance(value, Mapping):
        return {key: _absolute((*keys, *str(key).split(".")), child) for key, child in value.items()}
    if isinstance(value, (list, tuple)) and all(isinstance(child, Mapping) for child in value):
        return [_absolute(keys, child) for child in value]
    # Entries of a list are named by their position.
    named = tuple(key for key in keys if not key.isdigit())
    if isinstance(value, str) and named in _PATHS and _PATHS[named](value):
        return str(Path(value).absolute())
    return value


def _is_sweep(path: str) -> bool:
    return path == "sweep" or path.startswith("sweep.")


def axes_of(sweep: Any) -> list[str]:
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
        valid = ", ".join(dict.fromkeys(axes_of(sweep)))
        raise SpecError(f"no grid of the sweep has the axis {axis}; valid: {valid}, or the whole sweep", origin)
    changed = [{**grid, axis: value} if i in places else grid for i, grid in enumerate(sweep)]
    origins = [(("sweep", i, axis), origin) for i in places]
    return document.with_value({**document.value, "sweep": changed}, *origins)
