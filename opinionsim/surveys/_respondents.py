"""Respondents of a survey, with queries and seeded draws by weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from opinionsim.errors import SurveyError, whole_number
from opinionsim.foundation.documents import Document, DocumentModel, validate
from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.personas import Persona, PersonaSet
from opinionsim.surveys._query import Query
from opinionsim.surveys._survey_mapping import WEIGHT, SurveyMapping, checked_mapping, spelled

#: Expected number of draws from which a respondent is certainly drawn; one, minus a margin for rounding.
_CERTAIN = 1 - 1e-12


class _Content(DocumentModel):
    """A survey as JSON values."""

    mapping: dict[str, Any]
    rows: tuple[int, ...]
    values: dict[str, tuple[str | int | float | None, ...]]
    weights: tuple[float, ...] | None
    opinions: tuple[int | None, ...]
    n_dropped: int


@dataclass(frozen=True)
class Respondents:
    """Respondents drawn from a survey.

    Attributes
    ----------
    rows : ndarray of int, shape (size,)
        Positions in the survey, from 0, in the order of the draw.
    weights : ndarray of float, shape (size,), or None
        Weights for analysis; None if the draw was by weight. Analyse such a sample without weights.
    personas : PersonaSet
        The persona of each respondent. If a respondent is drawn again, the number of the draw follows the name.
    weighting : {"draw", "analysis"}
        Whether the weights of the survey count in the draw or in the analysis.
    """

    rows: np.ndarray
    weights: np.ndarray | None
    personas: PersonaSet
    weighting: Literal["draw", "analysis"]


@dataclass(frozen=True, eq=False)
class Survey:
    """Respondents of a survey, with their personas and the values that queries use.

    Attributes
    ----------
    mapping : SurveyMapping
        How columns become personas.
    rows : ndarray of int, shape (n,)
        Number of each respondent's row in the file, from 1, without the header.
    values : mapping of str to ndarray, shape (n,)
        Original values by variable: floats, with NaN if missing, or texts, with None if missing.
    weights : ndarray of float, shape (n,), or None
        Weights, none negative; None for a survey without weights.
    opinions : tuple of int or None, length n
        Initial opinion of each respondent.
    n_dropped : int
        Number of rows of the file that were left out because they have no weight.
    """

    mapping: SurveyMapping
    rows: np.ndarray
    values: Mapping[str, np.ndarray]
    weights: np.ndarray | None
    opinions: tuple[int | None, ...]
    n_dropped: int = 0

    @property
    def n(self) -> int:
        """Number of respondents."""
        return len(self.rows)

    def variables(self) -> dict[str, dict[str | float | None, float]]:
        """Variables that queries can use.

        Returns
        -------
        dict of str to dict
            The values of each variable in order, each with the share of respondents who have it, weighted if the survey
            has weights. None stands for missing values and comes last. The shares of a variable sum to 1.
        """
        weights = np.ones(self.n) if self.weights is None else self.weights
        found: dict[str, dict[str | float | None, float]] = {}
        for name, values in self.values.items():
            sums: dict[str | float | None, float] = {}
            for value, weight in zip(_plain(values), weights.tolist(), strict=True):
                sums[value] = sums.get(value, 0.0) + weight
            # None last, after texts or numbers in order.
            ordered = sorted(sums, key=lambda value: (value is None, value))
            found[name] = {value: sums[value] / float(weights.sum()) for value in ordered}
        return found

    def group(self, name: str) -> str:
        """Query of a group that the mapping defines.

        Raises
        ------
        SurveyError
            If the mapping does not define the group.
        """
        if name not in self.mapping.groups:
            valid = ", ".join(self.mapping.groups) or "none"
            raise SurveyError(f"survey {self.mapping.name!r} has no group {name!r}; valid: {valid}")
        return self.mapping.groups[name]

    def matching(self, query: str | None = None) -> np.ndarray:
        """Respondents for whom a query is true.

        Parameters
        ----------
        query : str or None
            Comparisons of variables with original values, such as ``age < 40 and party in ['left', 'none']``. Queries
            can also contain ``or``, ``not``, parentheses, and names in backticks. None selects all respondents.

        Returns
        -------
        ndarray of int
            Their positions from 0, in order.

        Raises
        ------
        SurveyError
            If the text is not a query, contains an unknown variable or a value that the variable does not have, or
            matches nobody.
        """
        if query is None:
            return np.arange(self.n)
        found = np.flatnonzero(Query(query).mask(self.values, self._known))
        if not len(found):
            raise SurveyError(f"query {query!r} matches none of the {self.n} respondents of {self.mapping.name!r}")
        return found

    @cached_property
    def _known(self) -> dict[str, frozenset[str]]:
        """Values that variables of texts can have: those that occur, and those that the mapping names."""
        return {
            column.variable: frozenset(values) - {None} | set(column.recode) | set(map(spelled, column.skip))
            for column in self.mapping.columns
            if (values := self.values[column.variable]).dtype == object
        }

    def persona(self, row: int) -> Persona:
        """Persona of the respondent at a position from 0.

        Returns
        -------
        Persona
            Its name is the number of its row, because names suggest gender and ethnicity. Its background has a sentence
            for each column with a clause. Its record contains the original values. It has no attributes.
        """
        values = {name: _plain(each[row : row + 1])[0] for name, each in self.values.items()}
        known = {name: spelled(value) for name, value in values.items() if value is not None}
        sentences = (
            column.sentence(known[column.variable]) for column in self.mapping.columns if column.variable in known
        )
        return Persona(
            f"Respondent {self.rows[row]}",
            self.opinions[row],
            background=" ".join(filter(None, sentences)),
            record=known,
        )

    def personas(self, query: str | None = None) -> PersonaSet:
        """Personas of all respondents for whom a query is true; errors as for :meth:`matching`."""
        return self._set([self.persona(int(row)) for row in self.matching(query)])

    def _set(self, personas: list[Persona]) -> PersonaSet:
        return PersonaSet(self.mapping.name, tuple(personas), self.mapping.source, self.mapping.licence)

    def draw(
        self,
        size: int,
        rng: np.random.Generator,
        query: str | None = None,
        *,
        weighted: bool = True,
        replace: bool = False,
        without: Collection[int] = (),
    ) -> Respondents:
        """Draw a random sample of respondents.

        Parameters
        ----------
        size : int
            Number of respondents, >= 1.
        rng : numpy.random.Generator
            Random generator.
        query : str or None
            Query that respondents must match; None draws from all.
        weighted : bool
            True draws by weight, for an unweighted analysis. False gives all respondents the same chance and records
            the weights for the analysis. Without weights, all have the same chance and none
            are recorded.
        replace : bool
            Whether a respondent can be drawn more than once.
        without : collection of int
            Positions of respondents to leave out, from 0.

        Returns
        -------
        Respondents
            The sample in random order. With replacement, draws are independent, each with probability w_i / sum(w).
            Without replacement, a weighted draw is systematic over a random order (Madow 1949; Hartley and Rao 1962):
            the probability of being in the sample is exactly size w_i / sum(w). If that is 1 or more, the respondent is
            certainly in the sample, and the formula applies to the others and the remaining size. The more respondents
            are certain, the less the sample follows the weights. An unweighted draw is a simple random sample.

        Raises
        ------
        SurveyError
            If the size is below 1; if `replace` is False and the size is above the number of matching respondents, or
            of those with a weight above 0; or as for :meth:`matching`.
        """
        whole_number("size", size, 1, SurveyError)
        rows = self.matching(query)
        rows = rows[~np.isin(rows, list(without))]
        by_weight = weighted and self.weights is not None
        weights = np.ones(len(rows)) if self.weights is None or not by_weight else self.weights[rows]
        rows, weights = rows[weights > 0], weights[weights > 0]
        if not len(rows) or (size > len(rows) and not replace):
            among = "" if query is None else f" for whom {query!r} is true"
            positive = " with a weight above 0" if by_weight else ""
            there = f"there are {len(rows)} respondents{among}{positive}"
            raise SurveyError(f"{there}; {size} cannot be drawn{' without replacement' if len(rows) else ''}")
        if replace:
            drawn = rows[rng.choice(len(rows), size, p=weights / weights.sum())]
        else:
            drawn = rows[_systematic(weights, int(size), rng) if by_weight else rng.permutation(len(rows))[:size]]
        analysed = None if weighted or self.weights is None else self.weights[drawn]
        personas = self._set(list(self._drawn(drawn, analysed)))
        return Respondents(drawn, analysed, personas, "draw" if weighted else "analysis")

    def _drawn(self, rows: np.ndarray, weights: np.ndarray | None) -> Iterator[Persona]:
        """Personas of drawn respondents, with distinct names and the weights for analysis on record."""
        known = {row: self.persona(row) for row in dict.fromkeys(rows.tolist())}
        seen: Counter[int] = Counter()
        for i, row in enumerate(rows.tolist()):
            persona = known[row]
            seen[row] += 1
            if seen[row] > 1:
                persona = replace(persona, name=f"{persona.name} ({seen[row]})")
            if weights is not None:
                persona = replace(persona, record={**persona.record, WEIGHT: spelled(float(weights[i]))})
            yield persona

    def content(self) -> dict[str, Any]:
        """The survey as JSON values, including the data; :meth:`from_content` turns them into a survey again."""
        return {
            "mapping": self.mapping.model_dump(mode="json", exclude_defaults=True),
            "rows": self.rows.tolist(),
            "values": {name: _whole(_plain(values)) for name, values in self.values.items()},
            "weights": None if self.weights is None else self.weights.tolist(),
            "opinions": list(self.opinions),
            "n_dropped": self.n_dropped,
        }

    @classmethod
    def from_content(cls, content: Mapping[str, Any], name: str = "survey") -> Survey:
        """Make a survey from the result of :meth:`content`.

        Parameters
        ----------
        content : mapping
            JSON values.
        name : str
            Name for the content in error messages.

        Raises
        ------
        SpecError
            If the content does not have that form.
        """
        document = Document(dict(content), name=name)
        found = validate(_Content, document)
        mapping = checked_mapping(document.section("mapping"))
        lengths = {
            len(found.opinions),
            *map(len, found.values.values()),
            *([] if found.weights is None else [len(found.weights)]),
        }
        if lengths != {len(found.rows)} or set(found.values) != set(mapping.variables):
            raise document.error((), "must have one opinion, one weight and one value per column for each respondent")
        return cls(
            mapping,
            np.array(found.rows),
            {variable: _array(found.values[variable]) for variable in mapping.variables},
            None if found.weights is None else np.array(found.weights),
            found.opinions,
            found.n_dropped,
        )

    @cached_property
    def identity(self) -> str:
        """Hash of everything that can affect a prompt or a draw; it excludes file names, source and labels."""
        told = [
            [column.variable, column.clause, column.recode, list(map(spelled, column.skip))]
            for column in self.mapping.columns
        ]
        return digest(canonical_json({**self.content(), "mapping": told, "n_dropped": 0}))


def _plain(values: np.ndarray) -> list[Any]:
    """Values as texts, floats and None."""
    listed: list[Any] = values.tolist()
    return listed if values.dtype == object else [None if value != value else value for value in listed]


def _whole(values: list[Any]) -> list[Any]:
    """The same values with whole numbers as such, which are shorter."""
    return [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]


def _array(values: tuple[Any, ...]) -> np.ndarray:
    """The array of plain values."""
    if any(isinstance(value, str) for value in values):
        return np.array(values, dtype=object)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _systematic(weights: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Positions of a systematic sample with probability proportional to weight, in random order."""
    order = rng.permutation(len(weights))
    start = rng.random()
    expected = size * weights / weights.sum()
    certain = np.zeros(len(weights), dtype=bool)
    while (new := (expected >= _CERTAIN) & ~certain).any():
        certain |= new
        rest = weights[~certain]
        expected[~certain] = (size - certain.sum()) * (rest / rest.sum() if len(rest) else rest)
    others = order[~certain[order]]
    left = size - int(certain.sum())
    ends = np.cumsum(expected[others])
    places = np.searchsorted(ends, start + np.arange(left), side="right")
    # Rounding can leave the last end just below the number of draws.
    drawn = others[np.minimum(places, len(others) - 1)] if left else others[:0]
    return rng.permutation(np.concatenate([np.flatnonzero(certain), drawn]))
