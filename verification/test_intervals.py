"""Coverage of intervals of means over topics and blocks: 20,000 simulated frames a cell, with a known mean.

Values are a mean of 0.3, an effect of the topic, an effect of the block and a rest, all normal. The seed was stated
before anything was simulated. ``pytest verification/test_intervals.py -s`` prints the coverage of every cell, and what
it exceeds 95 % by.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from opinionsim.analysis import ESTIMANDS, spread_of
from opinionsim.foundation.streams import stream
from opinionsim.metrics import run_band

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
    assert 0.94 <= found <= 0.97


@pytest.mark.parametrize(
    ("sizes", "sds"),
    [
        ((3, 12), (3.0, 0.5)),
        ((3, 8), (1.0, 0.3)),
        ((3, 8), (0.3, 1.0)),
        ((3, 3, 12), (3.0, 3.0, 0.5)),
        ((5, 20), (1.0, 1.0)),
        ((3,) * 14 + (12,), (1.0,) * 15),
    ],
    ids=str,
)
def test_nested_blocks_of_unequal_numbers_and_spread(sizes: tuple[int, ...], sds: tuple[float, ...]) -> None:
    """About these topics each has a variance of its own, which three blocks hardly show: 92 % is the worst there is."""
    grid = MEAN + np.array(sds)[:, None] * stream(SEED, "unequal", *sizes).normal(size=(FRAMES, len(sizes), max(sizes)))
    grid[:, np.arange(max(sizes)) >= np.array(sizes)[:, None]] = np.nan
    found = _coverage(*spread_of(grid, "nested", "these-topics").interval(LEVEL))
    _told(f"nested, these topics, {sizes[:3]}", (len(sizes), max(sizes)), str(sds[:3]), found)
    assert 0.93 <= found <= 0.97


def _gaps(shape: tuple[int, int], draw: np.random.Generator) -> np.ndarray:
    """Places of 15 % of the values, without which those left have an interval."""
    while True:
        gaps = draw.permutation(math.prod(shape)).reshape(shape) < round(0.15 * math.prod(shape))
        tried = np.where(gaps, np.nan, draw.normal(size=shape))
        if not any(np.isnan(spread_of(tried, "crossed", each).sd) for each in ESTIMANDS):
            return gaps


@pytest.mark.parametrize("sds", COMPONENTS)
@pytest.mark.parametrize("shape", [(2, 12), (3, 8), *SHAPES], ids=str)
def test_crossed_blocks_with_gaps(shape: tuple[int, int], sds: str) -> None:
    """With 15 % of the values missing, in 25 patterns of gaps, both estimands are covered as they are without gaps.

    What least squares lose beside weights by known components is printed too, and is at most 20 % of the variance.
    """
    draw = stream(SEED, "gaps", *shape, *(int(100 * sd) for sd in COMPONENTS[sds]))
    topics, blocks, rest = COMPONENTS[sds]
    covered, lost = [], []
    for _ in range(25):
        gaps, size = _gaps(shape, draw), (FRAMES // 25, *shape)
        of_topics = topics * draw.normal(size=(*size[:2], 1))
        values = MEAN + of_topics + blocks * draw.normal(size=(size[0], 1, shape[1])) + rest * draw.normal(size=size)
        grid = np.where(gaps, np.nan, values)
        like, these = (spread_of(grid, "crossed", each) for each in ESTIMANDS)
        studied = MEAN + of_topics.mean(axis=(1, 2))
        covered.append((_coverage(*like.interval(LEVEL)), _coverage(*these.interval(LEVEL), studied)))
        lost.append(_lost(gaps, COMPONENTS[sds]))
    found = np.mean(covered, axis=0)
    for each, share in zip(ESTIMANDS, found, strict=True):
        _told(f"crossed with gaps, {each}", shape, sds, float(share))
    print(f"{'least squares lose':36s} {np.mean(lost):7.2%}, at most {np.max(lost):.2%}")
    assert found[0] >= 0.935
    assert 0.94 <= found[1] <= 0.97
    assert np.mean(lost) <= 0.2


def _lost(gaps: np.ndarray, components: tuple[float, float, float]) -> float:
    """Variance of the mean by least squares over that of the best linear one (of known components), less 1."""
    (row, column), (topics, blocks, rest) = np.nonzero(~gaps), components
    cells = [np.eye(size)[place] for size, place in zip(gaps.shape, (row, column), strict=True)]
    variance = topics**2 * cells[0] @ cells[0].T + blocks**2 * cells[1] @ cells[1].T + rest**2 * np.eye(len(row))
    weights = np.linalg.pinv(np.hstack(cells))
    mean = weights[: len(gaps)].mean(axis=0) + weights[len(gaps) :].mean(axis=0)
    return float(mean @ variance @ mean * np.linalg.inv(variance).sum()) - 1


@pytest.mark.parametrize("n_runs", [8, 10, 20])
@pytest.mark.parametrize("kind", ["normal", "near an end of the scale", "diversity near 0"])
def test_bands_of_means_over_runs(kind: str, n_runs: int) -> None:
    """The t interval of figures, of runs that are normal, and of means and diversities that lie at a limit."""
    drawn = stream(SEED, "bands", n_runs).normal(size=(n_runs, FRAMES))
    many = stream(SEED, "bands", 0).normal(size=10**6)
    change, limits = {
        "normal": (lambda x: x, (-math.inf, math.inf)),
        "near an end of the scale": (lambda x: np.clip(1.5 + 0.5 * x, -2, 2), (-2.0, 2.0)),
        "diversity near 0": (lambda x: np.clip(0.3 + 0.4 * x, 0, 2), (0.0, 2.0)),
    }[kind]
    _, low, high, _ = run_band(change(drawn), "mean", LEVEL, limits)
    found = _coverage(low, high, float(change(many).mean()))
    print(f"mean over {n_runs:2d} runs, {kind:26s} {found:7.2%} {found - LEVEL:+7.2%}")
    assert 0.93 <= found <= 0.97
    assert low.min() >= limits[0]
    assert high.max() <= limits[1]


def test_a_difference_of_0_is_called_significant_in_5_percent_of_frames() -> None:
    """P-values of nested blocks are uniform, and those of crossed ones at most that small."""
    for design in ("nested", "crossed"):
        grid = _frames((15, 5), (1.0, 0.5, 1.0), nested=design == "nested") - MEAN
        spread = spread_of(grid, design, "topics-like-these")
        p = 2 * np.minimum(spread.p_above(0), spread._replace(mean=-spread.mean).p_above(0))
        share = float((p < 1 - LEVEL).mean())
        assert share <= 0.065
        if design == "nested":
            assert math.isclose(share, 0.05, abs_tol=4 * math.sqrt(0.05 * 0.95 / FRAMES))
