"""The experiments that come with the package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from opinionsim.foundation.data import data_folder
from opinionsim.registry import names


def _kinds(node: Any, *, here: bool = False) -> Iterator[str]:
    """The ways of interacting that a specification names; `here`, in a node that holds one, or a list of them."""
    if isinstance(node, list):
        for each in node:
            yield from _kinds(each, here=here)
    elif isinstance(node, dict):
        yield from [node["kind"]] if here and "kind" in node else ()
        for key, value in node.items():
            yield from _kinds(value, here=key == "interaction")


def shipped() -> list[Path]:
    """Their files, but for those in ways of interacting that are not there, since their slice was deleted."""
    there = {*names("interaction")}
    files = sorted(data_folder("experiments").rglob("*.yaml"))
    return [file for file in files if there.issuperset(_kinds(yaml.safe_load(file.read_text(encoding="utf-8"))))]
