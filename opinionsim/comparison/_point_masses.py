"""Fits to recorded numeric opinions with point masses instead of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opinionsim.classic import Transition, transition
from opinionsim.comparison._candidates import Bounds, Candidate
from opinionsim.comparison._fit import Problem
from opinionsim.comparison._update_arrays import Updates

#: Bounds of the standard deviation around what a candidate says, in parts of the range of opinions.
_SMALLEST, _LARGEST = 1e-4, 0.1


@dataclass(frozen=True, eq=False)
class ExactProblem(Problem):
    """The recorded numbers of a study. A normal density with a fitted width smooths the candidate's predictions."""

    #: Far from the optimum the likelihood of a narrow density is flat, so the density is narrowed step by step.
    ladder: ClassVar[tuple[Mapping[str, float], ...]] = ({"log_sd": -2.0}, {"log_sd": -4.0}, {"log_sd": -6.0})

    def bounds(self, candidate: Candidate) -> list[Bounds]:
        """Parameters of a candidate to fit, and the log standard deviation."""
        smallest, largest = np.log(np.array([_SMALLEST, _LARGEST]) * (self.grid.high - self.grid.low)).tolist()
        return [*candidate.bounds(self.grid, noise=False), Bounds("log_sd", smallest, largest)]

    def _next(
        self, candidate: Candidate, values: Mapping[str, float], own: np.ndarray, said: np.ndarray, start: np.ndarray
    ) -> Transition:
        """What reading leads to, by the candidate's model."""
        if candidate.model is None:
            share = np.full(len(own), values.get("anchored", 0.0))
            back = own + values.get("back", 0.0) * (start - own)
            return Transition(np.stack([own, back], axis=1), np.stack([1.0 - share, share], axis=1))
        given = {"start": start} if "start" in candidate.model.needs else {}
        fitted = {name: value for name, value in values.items() if name in candidate.declared}
        span = (self.grid.low, self.grid.high)
        return transition(candidate.model, own, said, range=span, **given, **candidate.fixed, **fitted)

    def _moved(self, values: Mapping[str, float], places: np.ndarray) -> np.ndarray:
        """Where the innate pull or shift leads."""
        pull, towards = values.get("pull", 0.0), values.get("towards", 0.0)
        moved = places + pull * (towards - places) + values.get("shift", 0.0)
        return np.clip(moved, self.grid.low, self.grid.high)

    def by_turn(self, candidate: Candidate, values: Mapping[str, float]) -> np.ndarray:
        """Logarithm of the density of each opinion after an update, (M,); 0 elsewhere."""
        study, known = self.study, self.study.updated
        own, said, after = study.held[known], study.said[known], study.value[known]
        found = self._next(candidate, values, own, said, study.start[known])
        sd, stay, jump = np.exp(values["log_sd"]), values.get("stay", 0.0), values["jump"]

        def near(places: np.ndarray) -> np.ndarray:
            scaled = (after[:, None] - self._moved(values, places)) / sd
            return np.asarray(np.exp(-(scaled**2) / 2) / (sd * np.sqrt(2 * np.pi)))

        led = (near(found.values) * found.probabilities).sum(axis=1)
        kept = (1.0 - stay) * led + stay * near(own[:, None])[:, 0]
        out = np.zeros(len(study.agent))
        out[known] = np.log((1.0 - jump) * kept + jump / (self.grid.high - self.grid.low))
        return out

    def redrawn(
        self, candidate: Candidate, values: Mapping[str, float], rng: np.random.Generator, *, begun: bool = False
    ) -> Updates:
        """Replace opinions with those that a candidate produces on the same turns from the recorded starts."""
        study, sd = self.study, float(np.exp(values["log_sd"]))
        value = study.value.copy()
        holds: dict[tuple[int, int], float] = {}
        for at in range(len(value)):
            who = (int(study.run[at]), int(study.agent[at]))
            reads = study.reads[study.first_read[at] : study.first_read[at + 1]]
            # The first opinion on record is where an agent starts, also where it comes after a message.
            own, reads = (holds[who], reads) if who in holds else (float(study.start[at]), reads[:0])
            if study.passed_over[at]:
                own, reads = own if np.isnan(study.value[at]) else float(study.value[at]), reads[:0]
            for read in reads:
                fate, way = rng.random(2)
                if fate < values["jump"]:
                    own = float(rng.uniform(self.grid.low, self.grid.high))
                    continue
                if fate >= values["jump"] + (1.0 - values["jump"]) * values.get("stay", 0.0):
                    start = study.start[[at]]
                    found = self._next(candidate, values, np.array([own]), value[[read]], start)
                    own = float(found.values[0, np.searchsorted(np.cumsum(found.probabilities[0]), way)])
                own = float(self._moved(values, np.array([own + sd * rng.standard_normal()]))[0])
            holds[who] = own
            value[at] = np.nan if np.isnan(study.value[at]) else own
        return study.of_values(value)
