"""The templates and the words of this room."""

from __future__ import annotations

import tomllib
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

#: Words of a design, by what they are called: columns of the runs, and fields of a specification; captions of figures.
WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def templates() -> Environment:
    """The templates; in those of pages every value is escaped."""
    return Environment(
        loader=PackageLoader("opinionsim.report"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
