"""The tables of parts, in which each folder of the package lists its parts; reading them loads no part."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from opinionsim.errors import SpecError

#: The file in which a folder names its parts: ``[kind]``, then ``name = "module"``.
TABLE = "parts.toml"
_ROOT = Path(__file__).parents[1]
#: The kind of study of a specification that names none: runs of agents.
AGENTS = "agents"


class _Kind(NamedTuple):
    """A kind of part."""

    words: str
    """Name of the kind in a sentence."""
    home: str = ""
    """The subpackage with the base class or the contract of such parts."""
    methods: tuple[tuple[str, ...], ...] = (("__call__",),)
    """Groups of methods; a part must have at least one method of each group."""
    given: tuple[str, ...] = ()
    """Arguments that the package itself passes; they are no options."""
    reserved: tuple[str, ...] = ()
    """Names that mean something else."""
    declares: tuple[str, ...] = ()
    """What a part can declare about itself when it is marked."""


@cache
def _read() -> Mapping[str, Mapping[str, Any]]:
    """The table of each folder, those of slices last.

    Raises
    ------
    SpecError
        If a table cannot be read; names the file.
    """
    read = {}
    for folder in sorted(each.name for each in os.scandir(_ROOT) if each.is_dir()):
        try:
            read[folder] = tomllib.loads((_ROOT / folder / TABLE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except ValueError as error:
            raise SpecError(f"{_ROOT / folder / TABLE}: {error}") from error
    return {folder: read[folder] for folder in sorted(read, key=lambda each: "slice" in read[each])}


#: The kinds of part that are marked. Prompt packs, which are folders, and commands stand in the same tables.
KINDS: Mapping[str, _Kind] = {
    "interaction": _Kind("interaction", "opinionsim.schedules", (("schedule",), ("model_fields",))),
    "network": _Kind("network", "opinionsim.networks", (("build",), ("model_fields",))),
    "memory": _Kind(
        "memory",
        "opinionsim.memory",
        (("prompt",), ("remember",), ("templates",), ("calls_per_event",)),
        ("prompts", "token_budget", "start", "past", "kept", "leads"),
    ),
    "classifier": _Kind("classifier", "opinionsim.classifiers", (("classify", "rate"),), ("scale",)),
    "chat_model": _Kind(
        "chat model",
        "opinionsim.llm",
        (("invoke", "__call__"),),
        ("temperature", "max_tokens"),
        ("scripted", "human", "replay", "equation"),
    ),
    "lane": _Kind(
        "lane of a provider", "opinionsim.lanes", (("submit",), ("find",), ("look",), ("fetch",)), given=("client",)
    ),
    "selector": _Kind("selector", given=("texts",)),
    "sign": _Kind("sign of conduct", "opinionsim.conduct", given=("text", "speech", "prompt", "received")),
    "judge": _Kind("judge of replies", "opinionsim.conduct", given=("text", "status", "speech", "prompt", "received")),
    "metric": _Kind("metric", given=("opinions", "range", "network", "groups", "initial", "truth")),
    "table": _Kind(
        "table",
        given=(
            *("results", "runs", "opinions", "agents", "turns", "metrics", "values", "units", "analysis"),
            *("kind", "wording", "ddof", "estimand", "as_published"),
        ),
        declares=("fits", "studies", "metrics"),
    ),
    "figure": _Kind("figure", given=("results", "source", "ax"), declares=("numbers", "shown", "studies", "metrics")),
    "study": _Kind("kind of study", "opinionsim.study", (("commands",), ("units",))),
    "endpoint": _Kind("endpoint of agents", "opinionsim.specification"),
    "record": _Kind("record of a run", given=("results",)),
    "page": _Kind("part of a session's page", given=("texts",)),
    "scripted": _Kind("scripted answer", given=("scene", "draws"), declares=("states",)),
    **{name: _Kind(**told) for table in _read().values() for name, told in table.get("kind", {}).items()},
}

#: Further tables: commands, what lists of parts are called, prompt packs, templates that join a pack, tables that only
#: a report shows, sections of pages of results, chat models in this process, what makes a folder a slice, and kinds of
#: part that a slice brings, with the fields of :class:`_Kind`.
_UNMARKED = ("command", "list", "pack", "templates", "report", "section", "local", "slice", "kind")


class Place(NamedTuple):
    """Where a built-in part is."""

    folder: str
    """The folder of the package whose table names it."""
    value: Any
    """What the table says: the module in that folder, of a prompt pack the folder in it; or a mapping with these under
    `of`. That of a command has the heading above it (`under`), its `help`, whether it has `parameters`, which are no
    options, and what it serves for (:func:`serving`); that of a table or figure, `named`: whether it is shown only
    where a way of interacting names it; that of templates, the pack that they join (`joins`); that of tables of a
    report, and of a section of pages of results, the `heading` above them; that of a chat model in this process, the
    `form` of its name, and how it is `listed`. Of a list, the kind of its parts.
    """

    @property
    def inside(self) -> str:
        """The module or folder in the folder; for a command, also its name in the module."""
        return str(self.value["of"] if isinstance(self.value, Mapping) else self.value)

    @property
    def module(self) -> str:
        """The module that marks the part; for a command, also its name there."""
        return f"{__name__.partition('.')[0]}.{self.folder}.{self.inside}"

    def imported(self, kind: str, name: str) -> ModuleType:
        """The module, imported; raises a SpecError that names the table if there is no such module."""
        try:
            return import_module(self.module)
        except ModuleNotFoundError as error:
            if not f"{self.module}.".startswith(f"{error.name}."):
                raise
            raise SpecError(f"{_ROOT / self.folder / TABLE}: [{kind}] {name}: there is no {self.module}") from None

    @property
    def path(self) -> Path:
        """The folder of a part that is a folder."""
        return _ROOT / self.folder / self.inside


@cache
def _tables() -> Mapping[str, Mapping[str, Place]]:
    """The places of all built-in parts, by kind and name; parts of slices come last.

    Raises
    ------
    SpecError
        If a table cannot be read, has an unknown kind, or repeats a name from another table; names the file.
    """
    found: dict[str, dict[str, Place]] = {kind: {} for kind in (*KINDS, *_UNMARKED)}
    for folder, table in _read().items():
        for kind, parts in table.items():
            if kind not in found:
                raise SpecError(f"{_ROOT / folder / TABLE}: unknown table [{kind}]; valid: {', '.join(found)}")
            for name, value in parts.items():
                other = found[kind].setdefault(name, Place(folder, value))
                if other.folder != folder and kind != "slice":
                    raise SpecError(
                        f"{_ROOT / folder / TABLE}: [{kind}] {name} already exists in {other.folder}/{TABLE}; give it "
                        "another name"
                    )
    return found


def places(kind: str) -> Mapping[str, Place]:
    """Places of the built-in parts of a kind, by name, in the order of the tables."""
    return _tables().get(kind, {})


def serving(purpose: str) -> list[str]:
    """Commands for a purpose, as their tables spell them under its name, after `opinionsim`.

    Purposes: `evidence` that models can stand for people, `labels` of people, `readings` of the same texts side by
    side, and the `card` of a model, whose name follows.
    """
    return [each.value[purpose] for each in places("command").values() if purpose in each.value]


def general(kind: str) -> tuple[str, ...]:
    """Names of the built-in tables or figures that are shown even if nobody names them."""
    return tuple(name for name, each in places(kind).items() if isinstance(each.value, str))


def names(kind: str) -> tuple[str, ...]:
    """Names of the built-in parts of a kind."""
    return tuple(places(kind))
