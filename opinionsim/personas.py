"""Personas as data, and the population of a run drawn from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from opinionsim.errors import SpecError
from opinionsim.foundation import documents
from opinionsim.foundation.tables import read_table
from opinionsim.opinions import OpinionScale

InitialOpinions = Literal[
    "uniform", "skewed-positive", "skewed-negative", "all-positive", "all-negative", "personas", "none"
]
Assignment = Literal["fixed", "random", "latin-square"]


@dataclass(frozen=True)
class Persona:
    """The person that an agent plays.

    Attributes
    ----------
    name : str
        How prompts address the agent.
    opinion : int or None
        The opinion that its file gives it, a point of the scale; None if there is none.
    attributes : mapping of str to str
        Demographic and other attributes, in the order in which prompts list them.
    background : str
        Free text about the person.
    record : mapping of str to str
        Information about the person that no prompt contains: original values, for tables and queries. Its names differ
        from those of the attributes and from ``background``.
    """

    name: str
    opinion: int | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    background: str = ""
    record: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if both := self.record.keys() & {*self.attributes, "background"}:
            raise SpecError(f"persona {self.name!r} has {min(both)!r} in both record and attributes; names must differ")

    @property
    def traits(self) -> dict[str, str]:
        """Attributes and record."""
        return {**self.attributes, **self.record}


#: The chat model itself, playing nobody (the no-role-play control, A12).
BARE = Persona("")


@dataclass(frozen=True)
class PersonaSet:
    """A file of personas.

    Attributes
    ----------
    name, source, licence : str
        Name, source of the attributes, and terms of their use.
    personas : tuple of Persona
        At least one, with distinct names.
    pass_on : bool
        Whether these terms let others have it; if not, reports and archives withhold it.
    card : str
        What you must know before you use the set, such as how opinions are paired with personas.
    """

    name: str
    personas: tuple[Persona, ...]
    source: str = ""
    licence: str = ""
    card: str = ""
    pass_on: bool = True


class _PersonaModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    name: str
    opinion: int | None = Field(None, strict=True)
    attributes: dict[str, str] = Field(default_factory=dict)
    background: str = ""


class _PersonaSetModel(documents.DocumentModel):
    name: str = Field(min_length=1)
    source: str = ""
    licence: str = ""
    card: str = ""
    pass_on: bool = True
    personas: list[_PersonaModel] = Field(min_length=1)


def parse_personas(document: documents.Document | Mapping[str, Any], source: str = "personas") -> PersonaSet:
    """Personas from a document.

    Parameters
    ----------
    document : Document or mapping
        Keys ``name, source, licence, pass_on, card, personas``; each persona has ``name`` and may have
        ``opinion``, ``attributes`` and ``background``.
    source : str
        Name of a bare mapping in errors.

    Raises
    ------
    SpecError
        If a field is unknown, missing or of the wrong type, a name or the key of an attribute is blank, one of
        these or an attribute contains a line break or another control character, two personas share a name, or some
        have an opinion and others none. White space around names and keys is ignored.
    """
    origin = documents.Document.of(document, source)
    model = documents.validate(_PersonaSetModel, origin)
    for i, persona in enumerate(model.personas):
        _check_texts(origin, ("personas", i), persona)
    names = [documents.normal(persona.name.strip()) for persona in model.personas]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise origin.error(("personas", i, "name"), f"duplicate {name!r}; names must be distinct")
    with_one = [persona for persona in model.personas if persona.opinion is not None]
    for i, persona in enumerate(model.personas):
        if with_one and persona.opinion is None:
            problem = f"has no opinion, but {with_one[0].name!r} has one; give one to all or to none"
            raise origin.error(("personas", i), problem)
    personas = tuple(
        Persona(
            name,
            persona.opinion,
            {key.strip(): value for key, value in persona.attributes.items()},
            persona.background,
        )
        for name, persona in zip(names, model.personas, strict=True)
    )
    return PersonaSet(model.name, personas, model.source, model.licence, model.card, model.pass_on)


def _check_texts(document: documents.Document, place: documents.KeyPath, persona: _PersonaModel) -> None:
    """Refuse blank names and keys, and line breaks, which would garble prompts and tables."""
    one_line = "must be one line, without line breaks or other control characters"
    if not persona.name.strip():
        raise document.error((*place, "name"), "must not be blank")
    if not documents.is_one_line(persona.name):
        raise document.error((*place, "name"), f"{one_line}; got {persona.name!r}")
    keys: set[str] = set()
    for key, value in persona.attributes.items():
        if not key.strip() or not documents.is_one_line(key):
            raise document.error((*place, "attributes"), f"the name of an attribute {one_line}, not blank; got {key!r}")
        if key.strip() in keys:
            raise document.error((*place, "attributes"), f"duplicate {key.strip()!r}; attributes must be distinct")
        if not documents.is_one_line(value):
            raise document.error((*place, "attributes", key), f"{one_line}; got {value!r}")
        keys.add(key.strip())


def load_personas(path: str | Path) -> PersonaSet:
    """Personas from a file.

    Parameters
    ----------
    path : str or Path
        A YAML or JSON file as in :func:`parse_personas`, or a .csv file with a header and one persona per row, which
        :func:`opinionsim.foundation.tables.read_table` reads. Its columns ``name``, ``opinion`` and ``background``,
        each of which may be missing, are the fields of a persona; all others are attributes. Without names personas
        are ``Person 1`` and so on; a missing cell is no attribute.

    Raises
    ------
    SpecError
        As for :func:`parse_personas` and :func:`opinionsim.foundation.tables.read_table`; for a .csv file also if an
        opinion is not a whole number.
    """
    path = Path(path)
    return parse_personas(_read_rows(path) if path.suffix == ".csv" else documents.read_document(path), str(path))


def _read_rows(path: Path) -> documents.Document:
    """A .csv file of personas as a document, whose errors name the line."""
    table = read_table(path, known=("name", "opinion", "background"))
    if not table.rows:
        raise SpecError(f"{path}: needs a header and at least one row")
    document = documents.Document({}, name=str(path)).with_value(
        {"name": path.stem, "personas": []},
        *(((("personas", i)), f"{path}:{line}") for i, line in enumerate(table.lines)),
    )
    columns = {name: table.texts(name) for name in table.header if name != "opinion"}
    opinions = table.numbers("opinion") if "opinion" in table.header else [None] * len(table.rows)
    for i, opinion in enumerate(opinions):
        cells = {name: found[i] for name, found in columns.items() if found[i] is not None}
        persona: dict[str, Any] = {
            "name": cells.pop("name", "" if "name" in columns else f"Person {i + 1}"),
            "background": cells.pop("background", ""),
        }
        if opinion is not None and not opinion.is_integer():
            raise document.error(("personas", i, "opinion"), f"must be a whole number; got {opinion:g}")
        persona |= {} if opinion is None else {"opinion": int(opinion)}
        document.value["personas"].append({**persona, "attributes": cells})
    table.tell()
    return document


@dataclass(frozen=True)
class Population:
    """The agents of a run: the persona and the assigned opinion of each.

    Attributes
    ----------
    personas : tuple of Persona, length N
        Persona of agent i.
    opinions : tuple of int or None, length N
        Assigned opinion of agent i, a scale point; None for an agent without one. An assigned opinion is a condition of
        the run, never a measurement.
    """

    personas: tuple[Persona, ...]
    opinions: tuple[int | None, ...]

    def __post_init__(self) -> None:
        if not self.personas or len(self.personas) != len(self.opinions):
            raise SpecError(
                f"a population needs at least one persona and one opinion for each; got {len(self.personas)} personas "
                f"and {len(self.opinions)} opinions"
            )

    def __len__(self) -> int:
        return len(self.personas)

    @classmethod
    def bare(cls, size: int = 1) -> Population:
        """Agents without a persona or an assigned opinion (the no-role-play control, A12)."""
        return cls((BARE,) * size, (None,) * size)


def _choose(available: Sequence[Persona], size: int, rng: np.random.Generator) -> list[Persona]:
    """`size` personas: a draw without replacement, after as many whole rounds as are needed; file order within each."""
    rounds, rest = divmod(size, len(available))
    chosen = list(available) * rounds
    if rest:
        picked = np.sort(rng.choice(len(available), rest, replace=False))
        chosen += [available[int(i)] for i in picked]
    return chosen


def _initial_counts(
    size: int, initial: InitialOpinions, scale: OpinionScale, rng: np.random.Generator
) -> dict[int, int]:
    """Number of agents that start at each point (A10: uniform N/k each; skewed N - N//5 against N//5)."""
    minority = size // 5
    if initial == "uniform":
        share, rest = divmod(size, len(scale))
        extra = {int(i) for i in rng.choice(len(scale), rest, replace=False)} if rest else set()
        return {point: share + (i in extra) for i, point in enumerate(scale.points)}
    counts = dict.fromkeys(scale.points, 0)
    majority_at, minority_at = (
        (scale.highest, scale.lowest) if initial.endswith("positive") else (scale.lowest, scale.highest)
    )
    counts[majority_at] = size
    if initial.startswith("skewed"):
        counts[majority_at], counts[minority_at] = size - minority, minority
    return counts


def _assign_fixed(personas: Sequence[Persona], counts: dict[int, int]) -> list[int]:
    """Give every persona its own opinion while it is available; the others take the rest in order."""
    left = dict(counts)
    opinions: list[int | None] = []
    for persona in personas:
        own = persona.opinion if persona.opinion is not None and left.get(persona.opinion, 0) > 0 else None
        if own is not None:
            left[own] -= 1
        opinions.append(own)
    remaining = iter([point for point, count in left.items() for _ in range(count)])
    return [next(remaining) if opinion is None else opinion for opinion in opinions]


def _opinions_of_file(personas: Sequence[Persona], scale: OpinionScale) -> list[int]:
    """The opinions the file pairs with the personas."""
    for persona in personas:
        if persona.opinion is None:
            raise SpecError(
                f"population.initial_opinions: 'personas' needs an opinion for every persona; {persona.name!r} has none"
            )
        scale.index(persona.opinion)
    return [persona.opinion for persona in personas if persona.opinion is not None]


def _explicit_counts(counts: Mapping[Any, int], size: int, scale: OpinionScale) -> dict[int, int]:
    """Counts given by the user, checked against the scale and the size."""
    result = dict.fromkeys(scale.points, 0)
    for point, count in counts.items():
        # Points are text where the counts come from a document.
        try:
            value = float(point)
        except (TypeError, ValueError):
            value = point
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
            raise SpecError(f"population.initial_opinions.counts must be whole numbers; got {count!r} for {point!r}")
        result[scale.points[scale.index(value)]] += int(count)
    if min(result.values()) < 0 or sum(result.values()) != size:
        raise SpecError(
            f"population.initial_opinions.counts must be non-negative and sum to population.size = {size}; "
            f"got {dict(counts)}, which sums to {sum(result.values())}"
        )
    return result


def draw_population(
    personas: PersonaSet,
    size: int,
    *,
    scale: OpinionScale,
    initial_opinions: InitialOpinions | Mapping[Any, int] = "uniform",
    assignment: Assignment = "fixed",
    replicate: int = 0,
    opinions_rng: np.random.Generator,
    assignment_rng: np.random.Generator,
) -> Population:
    """The population of one run.

    Parameters
    ----------
    personas : PersonaSet
        Personas to draw from. A population smaller than the set is a draw without replacement; a larger
        one repeats the set and draws the remainder.
    size : int
        N >= 1.
    scale : OpinionScale
        Scale of the opinions.
    initial_opinions : str or mapping of point to count
        ``uniform`` (N/k at each point, a remainder at points drawn at random), ``skewed-positive`` and
        ``skewed-negative`` (N - N//5 at that end, N//5 at the other), ``all-positive``, ``all-negative``,
        ``personas`` (as the file pairs them), ``none`` (no agent starts with one), or explicit counts that sum to N
        (A10).
    assignment : str
        Pairing of opinions with personas. ``fixed``: each persona has its own opinion if the distribution contains it,
        the rest in order. ``random``: a permutation drawn for each replicate.
        ``latin-square``: replicate r shifts the sorted opinions by r places, so that over N replicates
        every persona holds every place once; this breaks the confound of persona and opinion (A4). It needs
        the same streams in every replicate.
    replicate : int
        Replicate number from 0.
    opinions_rng, assignment_rng : numpy.random.Generator
        Random streams for the distribution and for the assignment.

    Returns
    -------
    Population
        N agents in the order of the persona file.

    Raises
    ------
    SpecError
        If the size is below 1, a name is unknown, counts do not sum to N, or an opinion is off the scale.
    """
    if size < 1:
        raise SpecError(f"population.size must be at least 1; got {size}")
    for name, given, valid in (
        ("initial_opinions", initial_opinions, get_args(InitialOpinions)),
        ("assignment", assignment, get_args(Assignment)),
    ):
        if isinstance(given, str) and given not in valid:
            raise SpecError(f"population.{name}: unknown {given!r}; valid: {', '.join(valid)}")
    chosen = _choose(personas.personas, size, assignment_rng)
    if initial_opinions == "none":
        return Population(tuple(chosen), (None,) * size)
    if initial_opinions == "personas":
        opinions = _opinions_of_file(chosen, scale)
        counts = {point: opinions.count(point) for point in scale.points}
    elif isinstance(initial_opinions, str):
        counts = _initial_counts(size, initial_opinions, scale, opinions_rng)
    else:
        counts = _explicit_counts(initial_opinions, size, scale)
    spread = [point for point, count in counts.items() for _ in range(count)]
    if assignment == "fixed":
        assigned = _assign_fixed(chosen, counts)
    elif assignment == "random":
        assigned = [spread[int(i)] for i in assignment_rng.permutation(size)]
    else:
        assigned = [spread[(i + replicate) % size] for i in range(size)]
    return Population(tuple(chosen), tuple(assigned))
