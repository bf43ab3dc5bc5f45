"""How many batches a study takes: as many as its longest chain of calls, since all that is ready goes out together."""

from __future__ import annotations

import resource
import time
from typing import Any

import pytest

from opinionsim.lanes import Pace
from tests.support.batch_runs import (
    BOUGHT,
    assert_settled,
    at_once,
    batches,
    complete,
    deepest,
    study,
)
from tests.support.batches import BatchProvider
from tests.support.running import assert_same, changed

#: Batches at a server that answers at once: what gathers calls is all that takes time.
BRISK = Pace(settle_s=0.25, longest_s=60.0, look_s=0.02, slowest_look_s=0.1, crowded_s=0.1, lost_s=2.0, begins_s=60.0)


def dyads(provider: BatchProvider, replicates: int, size: int, steps: int, **others: Any) -> dict[str, Any]:
    """Pairs that meet at random, in three cells of a sweep or in one."""
    spec = study(provider)
    return changed(spec, replicates=replicates, population__size=size, interaction__steps=steps, **others)


def test_a_study_takes_as_many_batches_as_its_longest_chain() -> None:
    with BatchProvider() as provider:
        spec = dyads(provider, 3, 10, 20, sweep={"topic.framing": ["falsehood", "truth"]})
        found = complete(provider, spec, "batch.sqlite", pace=BRISK)
        assert_settled(provider, "batch.sqlite")
        rounds, depth = len(provider.batches), deepest(found)
        # Every call is bought once, and calls of all runs share batches.
        assert provider.bought.total() == len(found.turns) == 6 * 40
        assert depth <= rounds <= depth + 2
        now = complete(provider, at_once(spec), "now.sqlite")
    assert_same(found, now, but_for=BOUGHT)


def test_refused_calls_take_few_batches_more_since_they_are_asked_again_at_once() -> None:
    with BatchProvider(refuse=0.05) as provider:
        spec = dyads(provider, 3, 10, 20, sweep={"topic.framing": ["falsehood", "truth"]})
        found = complete(provider, spec, pace=BRISK)
        assert_settled(provider)
        assert (found.calls["attempt"] > 0).any()
        assert len(provider.batches) <= deepest(found) + 3


@pytest.mark.long
@pytest.mark.parametrize(
    ("runs", "size", "steps", "refuse", "more"),
    [(20, 10, 100, 0.0, 2), (20, 10, 100, 0.05, 3), (1, 1000, 2000, 0.0, 2)],
)
def test_the_studies_of_the_issue(runs: int, size: int, steps: int, refuse: float, more: int) -> None:
    with BatchProvider(refuse=refuse) as provider:
        cells = {"topic.framing": ["falsehood", "truth"]} if runs > 1 else None
        spec = dyads(provider, runs, size, steps, sweep=cells)
        began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
        found = complete(provider, spec, pace=Pace(**{**BRISK._asdict(), "settle_s": 0.5}))
        spent = resource.getrusage(resource.RUSAGE_SELF)
        assert_settled(provider)
        rounds, depth, calls = len(batches()), deepest(found), provider.bought.total() + provider.at_once.total()
        cpu_s = spent.ru_utime + spent.ru_stime - used.ru_utime - used.ru_stime
        print(
            f"\n{runs} runs a cell, N={size}, T={steps}, {refuse:.0%} refused: {calls} calls, depth {depth}, "
            f"{rounds} rounds, {time.monotonic() - began:.0f} s, {cpu_s:.0f} s of CPU with the server's, "
            f"{provider.cost('batch'):.4f} in batches, {provider.cost('now'):.4f} at once"
        )
        assert depth <= rounds <= depth + more
        listed = sum(provider._spent.values()) + provider.cost("batch")
        assert provider.cost("batch") <= 0.5 * (listed - provider.cost("now")) + 1e-9
