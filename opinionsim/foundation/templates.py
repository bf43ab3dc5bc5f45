"""Templates of a room: its pages, its files, and sentences that are made of what was found."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def templates(package: str) -> Environment:
    """The templates in the folder ``templates`` of a package, one object for each package.

    In those of pages every value is escaped, and a value that is missing is an error. Filters: ``line`` puts
    a text in one line, ``capital`` begins it with a capital letter, ``number`` parts thousands by commas, and
    ``counted`` says how many there are of something that is named in the singular.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    made = Environment(
        loader=PackageLoader(package),
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
    return made


def filled(package: str, template: str, /, **values: Any) -> str:
    """A template with its values."""
    return templates(package).get_template(template).render(**values)


def sentences(package: str, template: str, /, **values: Any) -> list[str]:
    """The lines of a template that say something, each a sentence or more."""
    return [line for each in filled(package, template, **values).splitlines() if (line := each.strip())]
