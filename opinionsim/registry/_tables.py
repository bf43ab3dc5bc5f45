"""The tables of parts: what each folder of the package says it brings, which loads none of it."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

#: The file in which a folder names its parts: ``[kind]``, then ``name = "module"``.
TABLE = "parts.toml"
_ROOT = Path(__file__).parents[1]


class Place(NamedTuple):
    """Where a built-in part is."""

    folder: str
    """The folder of the package whose table names it."""
    value: Any
    """What the table says: the module in that folder, of a prompt pack the folder in it; or a mapping with these under
    `of`. That of a command has the heading above it (`under`), its `help`, and whether it has `parameters`, which are
    no options; that of a table or figure, `named`: whether it is shown only where a way of interacting names it; that
    of templates, the pack that they join (`joins`).
    """

    @property
    def inside(self) -> str:
        """The module or folder in the folder, or of a command also its name in the module."""
        return str(self.value["of"] if isinstance(self.value, Mapping) else self.value)

    @property
    def module(self) -> str:
        """The module that marks the part, or of a command also its name there."""
        return f"{__name__.partition('.')[0]}.{self.folder}.{self.inside}"

    @property
    def path(self) -> Path:
        """The folder of a part that is one."""
        return _ROOT / self.folder / self.inside


@cache
def _tables() -> Mapping[str, Mapping[str, Place]]:
    """The places of all built-in parts, by kind and name; those of slices come last."""
    read = {}
    for folder in sorted(each.name for each in os.scandir(_ROOT) if each.is_dir()):
        try:
            read[folder] = tomllib.loads((_ROOT / folder / TABLE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
    found: dict[str, dict[str, Place]] = {}
    for folder in sorted(read, key=lambda each: "slice" in read[each]):
        for kind, parts in read[folder].items():
            found.setdefault(kind, {}).update({name: Place(folder, value) for name, value in parts.items()})
    return found


def places(kind: str) -> Mapping[str, Place]:
    """Where the built-in parts of a kind are, by name, in the order of the tables."""
    return _tables().get(kind, {})


def general(kind: str) -> tuple[str, ...]:
    """Names of the built-in tables or figures that need not be named to be shown."""
    return tuple(name for name, each in places(kind).items() if isinstance(each.value, str))


def names(kind: str) -> tuple[str, ...]:
    """Names of the built-in parts of a kind."""
    return tuple(places(kind))
