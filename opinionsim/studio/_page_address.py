"""What a page of results is asked to show, which its address says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

#: How names of factors begin in addresses.
FACTOR = "by."


@dataclass(frozen=True)
class PageAddress:
    """A store, one of its experiments, and the filters of a page.

    Attributes
    ----------
    store : str
        Name of the store in addresses.
    url : str
        Its address for :func:`opinionsim.store.open_store`.
    query : mapping of str to str
        What the address of the page says: ``experiment, design, kind, instrument``, ``by.FACTOR``, and whatever the
        parts of a page read.
    may_write : bool
        Whether the page may change or start anything; not in a viewer.
    links : mapping of str to str
        Links that were made for guests, by the address of the page that they lead to.
    """

    store: str
    url: str
    query: Mapping[str, str] = field(default_factory=dict)
    may_write: bool = False
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def where(self) -> dict[str, str]:
        """Level of each factor that is chosen."""
        return self.side(FACTOR)

    def side(self, start: str) -> dict[str, str]:
        """Level of each factor whose name in the address begins in some way, which is left out."""
        return {
            name.removeprefix(start): level for name, level in self.query.items() if name.startswith(start) and level
        }

    @property
    def design(self) -> int | None:
        """Number of the design; None for the one that ran last."""
        return self.number("design")

    def number(self, name: str) -> int | None:
        """A whole number of the address; None if there is none."""
        told = self.query.get(name, "")
        return int(told) if re.fullmatch(r"[0-9]{1,9}", told) else None

    def address(self, page: str = "results", **changes: Any) -> str:
        """The address of a page on the same store; it shows the same as this one apart from the changes."""
        kept = {name: value for name, value in {**self.query, **changes}.items() if value not in ("", None)}
        return f"/{page}/{quote(self.store)}{'?' if kept else ''}{urlencode(kept)}"
