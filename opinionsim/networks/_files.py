"""Networks from files: edge lists and GraphML."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.networks._reading import Edges, agent_numbers, from_graph, is_weight, named

__all__ = ["read_network"]

#: How errors call the parameter that names a file.
_WHERE = "interaction.network.path"


def read_network(path: str | Path, n: int) -> Edges:
    """Edges of GraphML, or of a text with two agents a line.

    Parameters
    ----------
    path : str or Path
        A name that ends in ``.graphml`` is read as GraphML.
    n : int
        Number of agents.
    """
    file = Path(path)
    try:
        graph = _graphml(file) if file.suffix.lower() == ".graphml" else None
        lines = None if graph is not None else _edge_list(file)
    except FileNotFoundError:
        raise SpecError(f"{_WHERE}: no such file: {path}") from None
    except SpecError:
        raise
    except Exception as error:  # networkx lets parser errors of several libraries through
        raise SpecError(f"{_WHERE}: {path} is not a readable edge list or GraphML: {error}") from None
    with named("interaction.network"):
        if graph is not None:
            return from_graph(graph, n)
        labels, weights = lines or ([], None)
        return labelled(labels, weights, n)


def labelled(labels: list[Any], weights: list[float] | None, n: int, *, directed: bool = False) -> Edges:
    """Edges between labels, two after the other an edge; names are numbered as they come."""
    distinct = list(dict.fromkeys(labels))
    numbers = dict(zip(distinct, agent_numbers(distinct, n), strict=True))
    ends = np.fromiter((numbers[label] for label in labels), dtype=np.int64, count=len(labels)).reshape(-1, 2)
    return Edges(n, ends[:, 0], ends[:, 1], None if weights is None else np.asarray(weights, dtype=float), directed)


def _edge_list(file: Path) -> tuple[list[str], list[float] | None]:
    """Two labels a line and, in braces, attributes of which the weight counts; ``#`` starts a comment."""
    labels: list[str] = []
    weights: list[float] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        weight = _stated_weight(file, number, line)
        words = re.sub(r"\s\{.*\}\s*$", "", line).partition("#")[0].split()
        if len(words) not in (0, 2):
            raise SpecError(f"{_WHERE}: {file}:{number}: must hold two agents, separated by a space; got {line!r}")
        if words:
            labels += words
            weights.append(weight)
    return labels, weights if any(weight != 1 for weight in weights) else None


def _stated_weight(file: Path, number: int, line: str) -> float:
    """The weight a line states, 1 if it states none."""
    stated = re.search(r"""\{.*["']weight["']\s*:\s*([^,}]*)""", line)
    if stated is None:
        return 1.0
    weight = _number(stated[1])
    if not is_weight(weight):
        raise SpecError(f"{_WHERE}: {file}:{number}: the weight must be a finite number; got {stated[1].strip()!r}")
    return weight


def _number(text: str) -> float:
    """The number a text spells; NaN when it spells none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _graphml(file: Path) -> Any:
    """A graph from GraphML; declarations, whose entities could expand without end, are refused."""
    import networkx as nx

    # Without NUL bytes, the declarations of UTF-16 read as those of UTF-8 do.
    content = file.read_bytes().replace(b"\0", b"").upper()
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise SpecError(
            f"{_WHERE}: {file} holds a document type or entity declaration; GraphML without declarations is expected"
        )
    return nx.read_graphml(file)
