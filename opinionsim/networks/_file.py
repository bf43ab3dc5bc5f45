"""The network in a file: edge lists and GraphML."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from opinionsim.networks._kind import GivenNetwork, Reader
from opinionsim.networks._network import Network
from opinionsim.networks._reading import Unfit, agent_numbers, from_graph, from_labels, refuse
from opinionsim.registry import part

#: First rows that are taken for headers, not for edges between agents of these names.
_HEADERS = frozenset({("from", "to"), ("source", "target"), ("speaker", "listener"), ("src", "dst")})


@part("network", name="file")
class FileNetwork(GivenNetwork):
    """GraphML, if the file name ends in .graphml, or an edge list."""

    path: str = Field(min_length=1)
    """The file; an edge list has two agents, by number or name, and perhaps a weight, a line."""

    def network(self, read: Reader | None = None) -> Network:
        """The network on as many agents as the file names."""
        return (read or _read)(self.path)


class _Row(NamedTuple):
    """A line of an edge list: its place, its columns, and the weight stated in braces, if any."""

    place: str
    words: list[str]
    weight: str | None


def _read(path: str) -> Network:
    """The network in a file."""
    file = Path(path)
    try:
        if file.suffix.lower() != ".graphml":
            return Network._from(from_labels(*_edge_list(file)))
        graph = _graphml(file)
        return Network._from(from_graph(graph, *agent_numbers(list(graph))))
    except FileNotFoundError:
        refuse(f"no such file: {path}")
    except Unfit:
        raise
    except Exception as error:  # networkx lets parser errors of several libraries through
        refuse(f"{path} is not a readable edge list or GraphML: {error}")


def _edge_list(file: Path) -> tuple[list[str], list[float] | None]:
    """Labels, two in a row for each edge, and the weight of each edge; None where all are 1."""
    # Spreadsheet programs put a byte order mark before the text.
    lines = file.read_text(encoding="utf-8-sig").splitlines()
    rows: list[_Row] = []
    commas = False
    for number, line in enumerate(lines, 1):
        text = re.sub(r"\s\{.*\}\s*$", "", line).partition("#")[0].strip()
        if not text:
            continue
        place = f"{file}:{number}"
        commas = commas if rows else "," in text
        words = _columns(place, text, commas=commas)
        if rows and len(words) != len(rows[0].words):
            refuse(f"{place}: has {len(words)} columns, and {rows[0].place} has {len(rows[0].words)}")
        rows.append(_Row(place, words, _weight_in_braces(line)))
    if not rows:
        refuse(f"{file} has no edge")
    if _has_header(rows):
        del rows[0]
    weights = [_weight(row) for row in rows]
    labels = [word for row in rows for word in row.words[:2]]
    return labels, weights if any(weight != 1 for weight in weights) else None


def _columns(place: str, text: str, *, commas: bool) -> list[str]:
    """Two agents and perhaps a weight."""
    words = [word.strip() for word in next(csv.reader([text], skipinitialspace=True))] if commas else text.split()
    mixed = ";" in text or (not commas and "," in text)
    if mixed or not 2 <= len(words) <= 3 or not all(words):
        refuse(
            f"{place}: must hold two agents and perhaps a weight, separated by spaces or tabs, or in all lines by "
            f"commas; got {text!r:.80}",
        )
    return words


def _has_header(rows: list[_Row]) -> bool:
    """Whether the first row names the columns of rows that hold numbers alone."""
    if len(rows) < 2 or any(_number(word) is not None for word in rows[0].words):
        return False
    if all(_number(word) is not None for row in rows[1:] for word in row.words):
        return True
    first = rows[0]
    title = (first.words[0].lower(), first.words[1].lower())
    again = any(word in first.words for row in rows[1:] for word in row.words[:2])
    if len(first.words) == 3 or (title in _HEADERS and not again):
        refuse(
            f"{first.place}: {' '.join(first.words)!r:.80} may be a header, which is skipped only where all other "
            "lines hold numbers; put # before it",
        )
    return False


def _weight_in_braces(line: str) -> str | None:
    """The weight among the attributes of a line, None if they state none."""
    stated = re.search(r"""\{.*["']weight["']\s*:\s*([^,}]*)""", line)
    return stated and stated[1].strip()


def _weight(row: _Row) -> float:
    """The weight of an edge, 1 if none is stated."""
    stated = [*row.words[2:], *([] if row.weight is None else [row.weight])]
    if len(stated) > 1:
        refuse(f"{row.place}: states a weight twice, as a column and in braces")
    weight = _number(stated[0]) if stated else 1.0
    if weight is None or not math.isfinite(weight):
        refuse(f"{row.place}: the weight must be a finite number; got {stated[0]!r:.60}")
    return weight


def _number(text: str) -> float | None:
    """The number that a text spells, NaN and infinity included; None for any other text."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _graphml(file: Path) -> Any:
    """A graph from GraphML; declarations, whose entities could expand without end, are refused."""
    import networkx as nx

    # Without NUL bytes, the declarations of UTF-16 read as those of UTF-8 do.
    content = file.read_bytes().replace(b"\0", b"").upper()
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        refuse(f"{file} holds a document type or entity declaration; GraphML without declarations is expected")
    return nx.read_graphml(file)
