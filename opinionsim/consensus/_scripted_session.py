"""Replies of the scripted model in consensus sessions.

The scripted model reads a position from every text, as it does from posts. A draft states the mean of the positions
shown, a ballot orders statements by their distance from one position, and a rating decreases with that distance.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from opinionsim.llm import Draws, Scene, phrases
from opinionsim.registry import part

_SAID: dict[str, Any] = tomllib.loads(Path(__file__).with_name("scripted.toml").read_text(encoding="utf-8"))
_LETTERED = re.compile(r"^Statement ([A-Z]{1,2}):$", re.MULTILINE)
#: Levels from the one end of the scale to the other, in steps of points of agreement.
_POINTS_A_LEVEL = 1.5


def _shown(scene: Scene) -> Sequence[int | None]:
    """Positions of the texts shown; a statement that is shown alone is compared with the position held."""
    return scene.received if len(scene.received) > 1 else (round(scene.position), *scene.received)


def _distances(scene: Scene, n: int) -> list[float]:
    """Distances of the last n texts from the first one; a position that cannot be read counts as neutral."""
    levels = [0 if level is None else level for level in _shown(scene)]
    return [abs(level - levels[0]) for level in levels[-n:]]


@part("scripted", name="state", states=True)
def opinion(scene: Scene, draws: Draws) -> str:
    """The position held, with reasons."""
    return scene.stance(draws)


@part("scripted", name="revise")
@part("scripted", name="draft")
def statement(scene: Scene, draws: Draws) -> str:
    """A statement at the mean of the positions shown, with noise."""
    known = [level for level in _shown(scene) if level is not None] or [0]
    level = round(min(max(sum(known) / len(known) + scene.spread * draws.normal(), -2), 2))
    stance = draws.pick(phrases.POSTS[level]).replace("{x}", "the claim")
    return f"<statement>{draws.pick(_SAID['statements'])}: {phrases.capitalised(stance)}</statement>"


@part("scripted", name="predict")
@part("scripted", name="rank")
def ranking(scene: Scene, draws: Draws) -> str:
    """All statements by their distance from the opinion shown; those at equal distance are tied or in any order."""
    letters = _LETTERED.findall(scene.told)
    noisy = [each + scene.spread * draws.normal() for each in _distances(scene, len(letters))]
    order = sorted(zip(noisy, letters, strict=True))
    groups = [" = ".join(letter for _, letter in group) for _, group in groupby(order, lambda each: each[0])]
    return f"<ranking>{' > '.join(groups)}</ranking>"


@part("scripted", name="predict-rating")
def agreement(scene: Scene, draws: Draws) -> str:
    """Agreement that decreases with the distance from the opinion shown."""
    (distance,) = _distances(scene, 1)
    return f"Agreement: {min(max(round(7 - _POINTS_A_LEVEL * distance + scene.spread * draws.normal()), 1), 7)}"


@part("scripted", name="rate")
def rating(scene: Scene, draws: Draws) -> str:
    """Agreement, and an unrelated quality."""
    return f"{agreement(scene, draws)}\nQuality: {3 + int(draws.uniform() * 4)}"


@part("scripted", name="criticise")
def critique(scene: Scene, draws: Draws) -> str:
    """The citizen's own position relative to the statement."""
    shown = _shown(scene)
    own, level = shown[0] or 0, shown[-1] or 0
    stance = draws.pick(phrases.REPORTS[own]).replace("{x}", "the claim")
    asked = draws.pick(_SAID["critiques"][str((own > level) - (own < level))])
    return f"{asked}. {phrases.capitalised(stance)}"


@part("scripted", name="question")
def question(scene: Scene, draws: Draws) -> str:
    """A question for discussion."""
    return f"Question: {draws.pick(_SAID['questions'])}".replace("{n}", str(1 + int(draws.uniform() * 200)))
