"""Coverage of intervals of means over topics and blocks: 20,000 simulated frames a cell, with a known mean.

Values are a mean of 0.3, an effect of the topic, an effect of the block and a rest, all normal. The seed was stated
before anything was simulated. ``pytest verification/test_intervals.py -s`` prints the coverage of every cell, and what
it exceeds 95 % by.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from opinionsim.analysis import spread_of
from opinionsim.foundation.streams import stream

SEED, FRAMES, MEAN, LEVEL = 20261125, 20_000, 0.3, 0.95
#: Standard deviations of topics, of blocks and of the rest.
COMPONENTS = {
    "rest alone": (0.0, 0.0, 1.0),
    "topics": (1.0, 0.0, 0.5),
    "blocks": (0.0, 1.0, 0.5),
    "topics, few blocks": (1.0, 0.3, 0.5),
    "all alike": (1.0, 1.0, 1.0),
}
SHAPES = [(3, 3), (5, 3), (15, 3), (5, 8), (15, 8), (30, 20)]


def _frames(shape: tuple[int, int], sds: tuple[float, float, float], *, nested: bool) -> np.ndarray:
    """Frames (20,000, T, R); nested blocks belong to one topic each, so that theirs is another rest."""
    draw = stream(SEED, "coverage", *shape, *(int(100 * sd) for sd in sds), int(nested))
    topics, blocks, rest = sds
    values = MEAN + topics * draw.normal(size=(FRAMES, shape[0], 1)) + rest * draw.normal(size=(FRAMES, *shape))
    between = (FRAMES, *shape) if nested else (FRAMES, 1, shape[1])
    return np.asarray(values + blocks * draw.normal(size=between))


def _coverage(low: np.ndarray, high: np.ndarray, truth: np.ndarray | float = MEAN) -> float:
    return float(((low <= truth) & (truth <= high)).mean())


def _told(what: str, shape: tuple[int, int], sds: str, coverage: float) -> None:
    print(f"{what:36s} {shape[0]:3d} topics {shape[1]:3d} blocks  {sds:20s} {coverage:7.2%} {coverage - LEVEL:+7.2%}")


@pytest.mark.parametrize("sds", COMPONENTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_nested_blocks(shape: tuple[int, int], sds: str) -> None:
    """Topics like these are covered as often as stated, whatever the blocks within them do."""
    grid = _frames(shape, COMPONENTS[sds], nested=True)
    found = _coverage(*spread_of(grid, "nested", "topics-like-these").interval(LEVEL))
    _told("nested, topics like these", shape, sds, found)
    assert 0.94 <= found <= 0.96


@pytest.mark.parametrize("sds", COMPONENTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_crossed_blocks(shape: tuple[int, int], sds: str) -> None:
    """Topics like these are covered nearly as often as stated or oftener; the excess is printed."""
    grid = _frames(shape, COMPONENTS[sds], nested=False)
    found = _coverage(*spread_of(grid, "crossed", "topics-like-these").interval(LEVEL))
    _told("crossed, topics like these", shape, sds, found)
    assert found >= 0.935


@pytest.mark.parametrize("nested", [True, False], ids=["nested", "crossed"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_these_topics(shape: tuple[int, int], *, nested: bool) -> None:
    """The mean of the very topics that were drawn is covered as often as stated."""
    draw = stream(SEED, "these topics", *shape, int(nested))
    topics = MEAN + draw.normal(size=shape[0])
    blocks = draw.normal(size=(FRAMES, *shape) if nested else (FRAMES, 1, shape[1]))
    grid = topics[:, None] + blocks + draw.normal(size=(FRAMES, *shape))
    ends = spread_of(grid, "nested" if nested else "crossed", "these-topics").interval(LEVEL)
    found = _coverage(*ends, topics.mean())
    _told(f"{'nested' if nested else 'crossed'}, these topics", shape, "all alike", found)
    assert 0.94 <= found <= 0.96


def test_a_difference_of_0_is_called_significant_in_5_percent_of_frames() -> None:
    """P-values of nested blocks are uniform, and those of crossed ones at most that small."""
    for design in ("nested", "crossed"):
        grid = _frames((15, 5), (1.0, 0.5, 1.0), nested=design == "nested") - MEAN
        spread = spread_of(grid, design, "topics-like-these")  # type: ignore[arg-type]
        p = 2 * np.minimum(spread.p_above(0), spread._replace(mean=-spread.mean).p_above(0))
        share = float((p < 1 - LEVEL).mean())
        assert share <= 0.065
        if design == "nested":
            assert math.isclose(share, 0.05, abs_tol=4 * math.sqrt(0.05 * 0.95 / FRAMES))
