"""Templates of a package for pages, files and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def templates(package: str) -> Environment:
    """Templates in the folder ``templates`` of a package, one object per package.

    A template can include one of another package, as ``PACKAGE:NAME``. In templates of pages, every value is escaped.
    A missing value is an error. Filters: ``line`` puts a text on one line, ``capital`` begins it with a capital letter,
    ``number`` separates thousands with commas, ``counted`` gives a number of things, named in the singular, and
    ``spans`` gives each heading of a table with the number of equal ones beside one another.
    """
    from jinja2 import ChoiceLoader, Environment, FunctionLoader, PackageLoader, StrictUndefined, select_autoescape

    made = Environment(
        loader=ChoiceLoader([PackageLoader(package), FunctionLoader(_elsewhere)]),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["line"] = lambda text: " ".join(text.split())
    made.filters["capital"] = lambda text: f"{text[:1].upper()}{text[1:]}"
    made.filters["number"] = "{:,}".format
    made.filters["counted"] = lambda number, one: f"{number:,} {one}{'' if number == 1 else 's'}"
    made.filters["spans"] = _spans
    return made


def _spans(names: Iterable[str]) -> Iterator[tuple[str, int]]:
    for name, group in groupby(names):
        width = len(list(group))
        yield from [(name, width)] if name else [("", 1)] * width


def _elsewhere(name: str) -> str | None:
    """The text of a template of another package."""
    package, _, file = name.partition(":")
    place = files(package) / "templates" / file if file else None
    return place.read_text(encoding="utf-8") if place is not None and place.is_file() else None


def filled(package: str, template: str, /, **values: Any) -> str:
    """Fill in a template."""
    return templates(package).get_template(template).render(**values)


def sentences(package: str, template: str, /, **values: Any) -> list[str]:
    """The nonblank lines of a filled template, each one sentence or more."""
    return [line for each in filled(package, template, **values).splitlines() if (line := each.strip())]
