"""Tests of measuring: instruments do not change, and no text is coded twice or left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opinionsim.errors import SpecError, StoreError
from opinionsim.store import Store
from tests.support.rows import completed, instrument_row, measured, opinion_row, run_row, turn_row
from tests.support.store_case import StoreCase


class MeasuringContract(StoreCase):
    """Tests of what a store keeps of instruments, whatever database is behind it."""

    def test_of_runs_without_rows_nothing_is_left_to_code(self, store: Store) -> None:
        store.register([run_row()])
        completed(store, "r2", turns=(), opinions=())
        for about in ("", "reads"):
            assert store.uncoded(["r1", "r2", "absent"], "m1", ["post", "report"], about=about) == {}
            assert store.uncoded([], "m1", ["post"], about=about) == {}

    def test_what_an_instrument_has_not_coded_is_found_by_kind(self, store: Store) -> None:
        kinds = ("post", "report", "probe")
        turns = [turn_row(turn, kind=kinds[turn % 3]) for turn in range(12)]
        turns[3] = replace(turns[3], text="", status="skipped")
        turns[6] = replace(turns[6], text="", status="refused")
        for run_id in ("r2", "r1", "elsewhere"):
            completed(store, run_id, turns=tuple(turns), opinions=())
        runs = ["r2", "r1"]
        posts: list[tuple[int, int | None]] = [(0, None), (6, None), (9, None)]
        reports: list[tuple[int, int | None]] = [(1, None), (4, None), (7, None), (10, None)]
        assert store.uncoded(runs, "m1", ["post"]) == {"r1": posts, "r2": posts}
        assert list(store.uncoded(runs, "m1", ["post"])) == ["r1", "r2"]
        assert store.uncoded(runs, "m1", {"report", "post"}) == dict.fromkeys(runs, sorted(posts + reports))
        assert store.uncoded(runs, "m1", []) == store.uncoded(runs, "m1", ["response"]) == {}
        # Half coded: neither another instrument nor a judgement of two texts counts.
        coded = [opinion_row(0), opinion_row(9), opinion_row(6, "m2"), opinion_row(6, about=0), opinion_row(1)]
        measured(store, "r1", coded)
        assert store.uncoded(runs, "m1", ["post"]) == {"r1": [(6, None)], "r2": posts}
        assert store.uncoded(runs, "m2", ["post"]) == {"r1": [(0, None), (9, None)], "r2": posts}
        measured(store, "r1", [opinion_row(6)])
        assert store.uncoded(runs, "m1", ["post"]) == {"r2": posts}
        assert store.uncoded(["r1"], "m1", ["post", "report"]) == {"r1": reports[1:]}

    def test_what_is_judged_beside_what_it_reads_is_found_by_pairs(self, store: Store) -> None:
        turns = (
            turn_row(0),
            turn_row(1, (0, "news"), kind="report"),
            turn_row(2, text="", status="refused"),
            turn_row(3, (1, 2, 0, "1"), status="truncated"),
            turn_row(4, (3, 0), text="", status="skipped"),
            turn_row(5, (0, 4, 3, 0), text="", status="empty"),
            turn_row(6, ("news",)),
        )
        for run_id in ("r1", "r2"):
            completed(store, run_id, turns=turns, opinions=())
        pairs = [(3, 0), (3, 1), (5, 0), (5, 3)]
        assert store.uncoded(["r2", "r1"], "m1", ["post"], about="reads") == {"r1": pairs, "r2": pairs}
        assert store.uncoded(["r1"], "m1", ["report"], about="reads") == {"r1": [(1, 0)]}
        assert store.uncoded(["r1"], "m1", ["post", "report"], about="reads") == {"r1": [(1, 0), *pairs]}
        # A text coded by itself, and another instrument's pair, are not this instrument's pair.
        measured(store, "r1", [opinion_row(3), opinion_row(3, "m2", about=0), opinion_row(3, about=1)])
        assert store.uncoded(["r1"], "m1", ["post"], about="reads") == {"r1": [(3, 0), (5, 0), (5, 3)]}
        measured(store, "r1", [opinion_row(turn, about=about) for turn, about in pairs])
        assert store.uncoded(["r1", "r2"], "m1", ["post"], about="reads") == {"r2": pairs}
        with pytest.raises(StoreError, match="about must be empty or 'reads'; got 'self'"):
            store.uncoded(["r1"], "m1", ["post"], about="self")

    def test_many_runs_are_looked_through_at_once(self, store: Store) -> None:
        names = [f"r{number:04}" for number in range(1001)]
        store.register([run_row(name) for name in names])
        for name in (names[0], names[-1]):
            completed(store, name, opinions=())
        for about, key in (("", (1, None)), ("reads", (1, 0))):
            expected = {names[0]: [key], names[-1]: [key]}
            assert store.uncoded(names, "m1", ["report"], about=about) == expected

    def test_instruments_come_back_as_saved(self, store: Store) -> None:
        paired = instrument_row("m2", (1, 2), variable="tone", context=True, about="reads")
        for row in (paired, instrument_row(), instrument_row()):
            store.save_instrument(row)
        assert store.instruments() == [instrument_row(), paired]
        assert store.instruments()[1].context is True

    def test_another_instrument_under_the_same_id_is_refused(self, store: Store) -> None:
        first = replace(instrument_row(), options={"weights": "one", "gain": (1, 2.0)})
        store.save_instrument(first)
        store.save_instrument(replace(first, options={"gain": [1, 2], "weights": "one"}))
        before = store.instruments()
        assert before == [replace(first, options={"weights": "one", "gain": [1, 2]})]
        for options in ({"weights": "other", "gain": [1, 2]}, {"gain": [1, 2]}):
            with pytest.raises(SpecError, match=r"'lexicon' coded .*: weights was 'one' and is"):
                store.save_instrument(replace(first, options=options))
        assert store.instruments() == before
