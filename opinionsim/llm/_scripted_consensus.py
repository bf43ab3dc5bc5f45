"""What the scripted model says in a session that looks for a consensus: statements, ballots, ratings and critiques.

It reads a position off every text as off any post, and follows it: a draft states the mean of the positions that it
was shown, a ballot orders statements by their distance from one position, a rating falls with that distance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from opinionsim.llm import phrases
from opinionsim.llm._scripted_words import Draws

_LETTERED = re.compile(r"^Statement ([A-Z]{1,2}):$", re.MULTILINE)
#: Levels from the one end of the scale to the other, in steps of points of agreement.
_POINTS_A_LEVEL = 1.5


def _statement(told: str, received: Sequence[int | None], spread: float, draws: Draws) -> str:
    """A statement at the mean of the positions shown, with noise."""
    known = [level for level in received if level is not None] or [0]
    level = round(min(max(sum(known) / len(known) + spread * draws.normal(), -2), 2))
    stance = draws.pick(phrases.POSTS[level]).replace("{x}", "the claim")
    return f"<statement>{draws.pick(phrases.STATEMENTS)}: {phrases.capitalised(stance)}</statement>"


def _distances(received: Sequence[int | None], n: int) -> list[float]:
    """Distances of the last n texts from the first one; a position that cannot be read counts as neutral."""
    levels = [0 if level is None else level for level in received]
    return [abs(level - levels[0]) for level in levels[-n:]]


def _ranking(told: str, received: Sequence[int | None], spread: float, draws: Draws) -> str:
    """All statements by their distance from the opinion shown, those at one distance tied or in any order."""
    letters = _LETTERED.findall(told)
    noisy = [each + spread * draws.normal() for each in _distances(received, len(letters))]
    order = sorted(zip(noisy, letters, strict=True))
    groups = [" = ".join(letter for _, letter in group) for _, group in groupby(order, lambda each: each[0])]
    return f"<ranking>{' > '.join(groups)}</ranking>"


def _agreement(told: str, received: Sequence[int | None], spread: float, draws: Draws) -> str:
    """Agreement that falls with the distance from the opinion shown."""
    (distance,) = _distances(received, 1)
    return f"Agreement: {min(max(round(7 - _POINTS_A_LEVEL * distance + spread * draws.normal()), 1), 7)}"


def _rating(told: str, received: Sequence[int | None], spread: float, draws: Draws) -> str:
    """Agreement, and a quality that has nothing to do with it."""
    return f"{_agreement(told, received, spread, draws)}\nQuality: {3 + int(draws.uniform() * 4)}"


def _critique(told: str, received: Sequence[int | None], spread: float, draws: Draws) -> str:
    """Where the own position stands, seen from the statement."""
    own, level = received[0] or 0, received[-1] or 0
    stance = draws.pick(phrases.REPORTS[own]).replace("{x}", "the claim")
    asked = draws.pick(phrases.CRITIQUES[0 if own == level else 1 if own > level else -1])
    return f"{asked}. {phrases.capitalised(stance)}"


#: What is said to a task, by its template: from the text of the prompt outside messages, the positions of the messages
#: shown, the noise, and draws.
REPLIES: Mapping[str, Callable[[str, Sequence[int | None], float, Draws], str]] = MappingProxyType(
    {
        "draft": _statement,
        "revise": _statement,
        "rank": _ranking,
        "predict": _ranking,
        "rate": _rating,
        "predict-rating": _agreement,
        "criticise": _critique,
    }
)
