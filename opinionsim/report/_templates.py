"""The templates and the words of this room."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Undefined, select_autoescape

#: Words of a design, by what they are called: columns of the runs, and fields of a specification; captions of figures;
#: the parts of an archive, folders with a slash behind them.
WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
#: What BibTeX reads as commands.
_BIBTEX = {ord(sign): f"\\{sign}" for sign in "&%$#_{}"} | {
    ord("\\"): r"\textbackslash{}",
    ord("~"): r"\textasciitilde{}",
}


def templates(undefined: type[Undefined] = StrictUndefined) -> Environment:
    """The templates; in those of pages every value is escaped, and by default one that is missing is an error."""
    environment = Environment(
        loader=PackageLoader("opinionsim.report"),
        autoescape=select_autoescape(),
        undefined=undefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["cell"] = lambda value: " ".join(str(value).split()).replace("|", r"\|")
    environment.filters["bib"] = lambda text: " ".join(text.split()).translate(_BIBTEX)
    environment.filters["fields"] = lambda value: _fields(value).replace("|", r"\|")
    environment.filters["line"] = lambda text: " ".join(text.split())
    environment.tests["known"] = lambda value: value is not None and value == value
    return environment


def _fields(value: Any) -> str:
    """Fields with their values, as in ``steps: 40; network (kind: ring)``, without those that say nothing."""
    if isinstance(value, Mapping):
        told = {name: each for name, each in value.items() if each not in (None, "", [], {})}
        return "; ".join(
            f"{name} ({_fields(each)})" if isinstance(each, Mapping) else f"{name}: {_fields(each)}"
            for name, each in told.items()
        )
    if isinstance(value, list | tuple):
        return ", ".join(f"({_fields(each)})" if isinstance(each, Mapping) else _fields(each) for each in value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else " ".join(str(value).split())


def filled(template: str, /, **values: Any) -> str:
    """A template with its values."""
    return templates().get_template(template).render(**values)


def sentences(template: str, /, **values: Any) -> list[str]:
    """The lines of a template that say something, each a sentence."""
    return [line for each in filled(template, **values).splitlines() if (line := each.strip())]
