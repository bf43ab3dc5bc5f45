"""The templates and the words of this room."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from opinionsim.foundation.templates import filled as of_package, sentences as sentences_of_package, templates
from opinionsim.registry import serving

#: Words of a design, by what they are called: columns of the runs, and fields of a specification; captions of figures;
#: the parts of an archive, folders with a slash behind them.
WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
#: What LaTeX reads as commands. BibTeX counts braces behind a backslash, too.
_BIBTEX = {ord(sign): f"\\{sign}" for sign in "&%$#_"} | {
    ord(sign): f"\\text{name}{{}}"
    for sign, name in zip("{}\\~^", ["braceleft", "braceright", "backslash", "asciitilde", "asciicircum"], strict=True)
}
#: Accents as Unicode combines them and as LaTeX has them, and letters without parts.
_ACCENTS = dict(zip("\u0300\u0301\u0302\u0303\u0308\u030a\u030c\u0327\u0328\u030b", "`'^~\"rvckH", strict=True))
_LETTERS = {ord(sign): f"{{\\{name}}}" for sign, name in {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "ß": "ss"}.items()}
_ACCENTED = re.compile(f"([A-Za-z])([{''.join(_ACCENTS)}])")


def _ascii(text: str) -> str:
    """A text with accents as LaTeX commands, which every style of BibTeX can shorten and sort."""
    apart = _ACCENTED.sub(lambda found: f"{{\\{_ACCENTS[found[2]]}{{{found[1]}}}}}", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", apart).translate(_LETTERS)


def _printed(value: str) -> str:
    """A value of the bibliography as BibTeX reads it; its braces keep capitals."""
    return re.sub(r"(?<=\d)-(?=\d)", "--", _ascii(re.sub(r"[&%$#_]", r"\\\g<0>", value)))


def spelled(value: Any) -> str:
    """Fields with their values, as in ``steps: 40; network (kind: ring)``, without empty ones."""
    if isinstance(value, Mapping):
        told = {name: each for name, each in value.items() if each not in (None, "", [], {})}
        return "; ".join(
            f"{name} ({spelled(each)})" if isinstance(each, Mapping) else f"{name}: {spelled(each)}"
            for name, each in told.items()
        )
    if isinstance(value, list | tuple):
        return ", ".join(f"({spelled(each)})" if isinstance(each, Mapping) else spelled(each) for each in value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else " ".join(str(value).split())


#: The templates of this room; in those of pages every value is escaped.
TEMPLATES = templates("opinionsim.report")
TEMPLATES.filters["cell"] = lambda value: " ".join(str(value).split()).replace("|", r"\|")
TEMPLATES.filters["bib"] = lambda text: _ascii(" ".join(text.split()).translate(_BIBTEX))
TEMPLATES.filters["printed"] = _printed
TEMPLATES.filters["slug"] = lambda text: re.sub(r"[^a-z0-9]+", "-", text).strip("-")
TEMPLATES.filters["fields"] = lambda value: spelled(value).replace("|", r"\|")
TEMPLATES.globals["serving"] = serving
TEMPLATES.tests["known"] = lambda value: value is not None and value == value

filled, sentences = partial(of_package, "opinionsim.report"), partial(sentences_of_package, "opinionsim.report")
