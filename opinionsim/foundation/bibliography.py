"""The publications that the package cites, from the file ``bibliography.bib``.

A text cites a publication by author and year: "DeGroot 1974", "Esteban & Ray 1994", "Deffuant et al. (2000)".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import ascii_lowercase

_ENTRY = re.compile(r"^@(\w+)\{([a-z]+\d{4}[a-z]?),\n((?:  \w+ = \{.+\},?\n)+)\}$", re.MULTILINE)
_FIELD = re.compile(r"^  (\w+) = \{(.+)\},?$", re.MULTILINE)
#: The first author, perhaps others, and the year; a bracket may stand before the year.
_CITATION = re.compile(r"([^\W\d_][\w'-]+)(?:,? et al\.| (?:&|and) [^\W\d_][\w'-]+)?,? [(\[]?((?:19|20)\d\d[a-z]?)\b")
_DOI = re.compile(r"\b10\.\d{4,9}/[^\s\]}>\"'`|]+")
_ARXIV, _BY_ARXIV = re.compile(r"arxiv[:. ]*(\d{4}\.\d{5})", re.IGNORECASE), "10.48550/arxiv.{}".format


@dataclass(frozen=True)
class Publication:
    """One entry of the bibliography.

    Attributes
    ----------
    kind : str
        Kind of entry, such as ``article``.
    key : str
        Last word of the first author's family name and the year.
    fields : mapping of str to str
        Fields as BibTeX names them, in Unicode.
    """

    kind: str
    key: str
    fields: Mapping[str, str]

    @property
    def names(self) -> list[str]:
        """Family names of the authors, with ``others`` last if the entry leaves some out."""
        return [name.partition(",")[0].strip("{}") for name in self.fields["author"].split(" and ")]

    @property
    def short(self) -> str:
        """The citation, such as ``Esteban & Ray 1994``."""
        first, *others = self.names
        more = f" & {others[0]}" if len(others) == 1 and others != ["others"] else " et al." if others else ""
        return f"{first}{more} {self.key.lstrip(ascii_lowercase)}"

    @property
    def doi(self) -> str:
        """The DOI, or the arXiv DOI of a preprint; empty without either."""
        own, eprint = self.fields.get("doi", ""), self.fields.get("eprint")
        return own or (f"10.48550/arXiv.{eprint}" if eprint else "")

    @property
    def printed(self) -> Mapping[str, str]:
        """The fields that a list of references uses."""
        return {name: value for name, value in self.fields.items() if name != "models"}

    @property
    def text(self) -> str:
        """The whole reference in one line, as in a list of references."""
        told = self.fields
        *first, last = self.names
        who = f"{', '.join(first)} {'et al.' if last == 'others' else f'& {last}'}" if first else last
        number = f"({told['number']})" if "number" in told else ""
        where = [told.get(name, "") for name in ("journal", "booktitle", "publisher") if name in told]
        place = " ".join(filter(None, [*where, told.get("volume", "") + number]))
        title = re.sub(r"[{}]", "", told["title"])
        within = ", ".join(filter(None, (place, told.get("pages", ""))))
        ends = f"doi:{self.doi}" if self.doi else told.get("url", "")
        return ". ".join(filter(None, (f"{who} ({told['year']})", title, within, ends)))


@cache
def bibliography() -> Mapping[str, Publication]:
    """All publications by key."""
    text = Path(__file__).with_suffix(".bib").read_text(encoding="utf-8")
    return {key: Publication(kind, key, dict(_FIELD.findall(fields))) for kind, key, fields in _ENTRY.findall(text)}


@cache
def _cited_as() -> Mapping[str, Publication]:
    """Publications by key, by DOI, and by the year of their preprint."""
    known = bibliography()
    found = {each.doi.lower(): each for each in known.values() if each.doi}
    for key, each in known.items():
        if eprint := each.fields.get("eprint"):
            found |= {_BY_ARXIV(eprint): each, f"{key.rstrip(ascii_lowercase)[:-4]}20{eprint[:2]}": each}
    return found | dict(known)


def cited(text: str) -> list[Publication]:
    """Publications that a text cites by author and year or by DOI, each once. Unknown publications are left out."""
    plain = "".join(sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign))
    keys = [f"{re.sub('[^a-z]', '', name.lower())}{year}" for name, year in _CITATION.findall(plain)]
    keys += [each.lower().rstrip(".,;") for each in _DOI.findall(plain)] + list(map(_BY_ARXIV, _ARXIV.findall(plain)))
    return list({each.key: each for key in keys if (each := _cited_as().get(key))}.values())
