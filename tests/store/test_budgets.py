"""What workers that share a database reserve and pay under one name."""

from __future__ import annotations

import pytest

from opinionsim.llm import Call, Limits, Usage
from opinionsim.store import EXPIRY_S, Store, open_store
from tests.store._children import killed
from tests.support.postgres import age
from tests.support.rows import begun, call

ONE = Usage(1, 100, 0.5)
KEYS: list[Call] = [("r1", turn, "reply", 0) for turn in range(9)]

_HOLDER = """
import sys
from opinionsim.llm import Limits, Usage
from opinionsim.store import open_store
from tests.support.rows import begun, call

store = open_store(sys.argv[1])
record = begun(store, owner="child", payer="study")
for turn in range(3):
    store.reserve("study", "child", ("r1", turn, "reply", 0), Usage(1, 100, 0.5), Limits(calls=9))
record.append(call(0, "kept", input_tokens=10, output_tokens=5, cost=0.25))
record.flush()
print(1, flush=True)
sys.stdin.read()
"""


def reserved(store: Store, turn: int, limits: Limits, owner: str = "one", worst: Usage = ONE) -> bool:
    return store.reserve("study", owner, KEYS[turn], worst, limits)[0]


def test_what_one_worker_holds_the_other_cannot_have(url: str) -> None:
    with open_store(url) as one, open_store(url) as two:
        begun(one, "r1", owner="one")
        begun(two, "r2", owner="two")
        limits = Limits(calls=2)
        assert reserved(one, 0, limits)
        assert reserved(two, 1, limits, "two")
        assert not reserved(two, 2, limits, "two")
        assert reserved(one, 0, limits), "the same call twice is one call"
        one.release_call(KEYS[0])
        assert reserved(two, 2, limits, "two")
        assert not reserved(one, 0, limits)


@pytest.mark.parametrize(
    ("limits", "fits"),
    [
        (Limits(calls=3), True),
        (Limits(calls=2), False),
        (Limits(tokens=215), True),
        (Limits(tokens=214), False),
        (Limits(money=1.25), True),
        (Limits(money=1.24), False),
        (Limits(), True),
    ],
)
def test_a_reply_on_record_counts_what_it_cost(url: str, limits: Limits, fits: bool) -> None:
    with open_store(url) as store:
        record = begun(store, owner="one", payer="study")
        assert reserved(store, 0, Limits())
        assert reserved(store, 1, Limits())
        record.append(call(0, "reply", input_tokens=10, output_tokens=5, cost=0.25))
        record.flush()
        assert store.reserve("study", "one", KEYS[2], ONE, limits) == (fits, Usage(1, 15, 0.25))


def test_a_reply_without_counts_costs_what_was_reserved_and_a_filtered_one_nothing(url: str) -> None:
    with open_store(url) as store:
        record = begun(store, owner="one", payer="study")
        assert all(reserved(store, turn, Limits()) for turn in (0, 1))
        record.append(call(0, "reply", input_tokens=None, output_tokens=None, cost=None))
        record.append(call(1, "", input_tokens=None, output_tokens=None, cost=None, finish_reason="content_filter"))
        record.flush()
        assert store.reserve("study", "one", KEYS[2], ONE, Limits())[1] == Usage(2, 100, 0.5)


def test_what_a_dead_worker_held_is_free_counted_and_taken_over(url: str, ask) -> None:
    assert killed(_HOLDER, url) == [1]
    with open_store(url) as store:
        limits = Limits(calls=3)
        assert store.left_behind() == {}
        assert not reserved(store, 5, limits)
        age(ask, EXPIRY_S + 1)
        assert store.left_behind() == {"study": 2}
        begun(store, owner="one", payer="study")
        assert [reserved(store, turn, limits) for turn in (1, 2, 3)] == [True, True, False]
        assert store.left_behind() == {}


def test_a_run_begun_anew_leaves_no_reservation_and_what_was_paid_stays(url: str) -> None:
    with open_store(url) as store:
        record = begun(store, owner="one", payer="study")
        assert reserved(store, 0, Limits())
        assert reserved(store, 1, Limits())
        record.append(call(0, "reply", input_tokens=10, output_tokens=5, cost=0.25))
        record.flush()
        store.forget(["r1"])
        assert store.spending()["study"].calls == 1
        assert store.reserve("study", "one", KEYS[2], ONE, Limits(calls=2)) == (True, Usage(1, 15, 0.25))
