"""What every journal and every store must do; inherit, say how to make one, and run under pytest."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import pytest

from opinionsim.errors import SpecError, StoreError
from opinionsim.llm import Entry, EntryKey, Journal, Source
from opinionsim.messages import ChatMessage
from opinionsim.store import CanaryRow, ExperimentRun, HeldElsewhereError, Paid, SQLJournal, Store, open_store
from opinionsim.testing._store_rows import (
    call,
    claimed,
    completed,
    experiment_row,
    instrument_row,
    opinion_row,
    outcome,
    run_row,
    turn_row,
)

__all__ = ["JournalContract", "StoreContract"]


class JournalContract(ABC):
    """Tests of :class:`opinionsim.llm.Journal`."""

    @abstractmethod
    def journal(self, folder: Path) -> Journal:
        """An empty journal; `folder` is the test's own."""

    def test_an_entry_is_found_as_soon_as_it_is_appended(self, tmp_path: Path) -> None:
        journal = self.journal(tmp_path)
        for turn in range(50):
            journal.append(call(turn, f"text {turn}"))
            found = journal.lookup(EntryKey(turn, "reply", 0))
            assert found is not None
            assert found.text == f"text {turn}"

    def test_what_was_never_appended_is_not_found(self, tmp_path: Path) -> None:
        journal = self.journal(tmp_path)
        journal.append(call(1, part="reply", attempt=0))
        for key in (EntryKey(0, "reply", 0), EntryKey(1, "reflect", 0), EntryKey(1, "reply", 1)):
            assert journal.lookup(key) is None

    def test_the_first_entry_under_a_key_stays(self, tmp_path: Path) -> None:
        journal = self.journal(tmp_path)
        journal.append(call(0, "first"))
        journal.append(call(0, "second"))
        found = journal.lookup(EntryKey(0, "reply", 0))
        assert found is not None
        assert found.text == "first"

    def test_parts_and_attempts_are_keys_of_their_own(self, tmp_path: Path) -> None:
        journal = self.journal(tmp_path)
        for part in ("reply", "reply.2", "reflect"):
            for attempt in (0, 1):
                journal.append(call(3, f"{part} {attempt}", part=part, attempt=attempt))
        for part in ("reply", "reply.2", "reflect"):
            for attempt in (0, 1):
                found = journal.lookup(EntryKey(3, part, attempt))
                assert found is not None
                assert found.text == f"{part} {attempt}"


class StoreContract(JournalContract):
    """Tests of :class:`opinionsim.store.Store`, whatever database is behind it."""

    _kept: Store | None = None

    @abstractmethod
    def url(self, folder: Path) -> str:
        """Address of a store that is the test's own; equal for equal folders."""

    def journal(self, folder: Path) -> Journal:
        """A journal of a claimed run."""
        self._kept = open_store(self.url(folder))
        _, journal = self._claimed(self._kept)
        return journal

    @pytest.fixture(autouse=True)
    def _close_kept(self) -> Iterator[None]:
        yield
        if self._kept is not None:
            self._kept.close()

    @staticmethod
    def _claimed(store: Store, run_id: str = "r1") -> tuple[int, SQLJournal]:
        store.register([run_row(run_id)])
        epoch = claimed(store, run_id)
        return epoch, store.journal(run_id, epoch)

    def test_an_entry_comes_back_whole_but_for_its_prompt(self, tmp_path: Path) -> None:
        full = call(
            4,
            "reply",
            outcome="rejected",
            reason="too long",
            seed=2**31 - 1,
            dropped=3,
            finish_reason="stop",
            model="m-2",
            input_tokens=10,
            output_tokens=5,
            latency_s=0.25,
            arrived_at=1.7e9,
            condition="truncated",
            reasoning="Let me think.",
            cached_tokens=4,
            reasoning_tokens=2,
            cost=1.25e-5,
        )
        rating = Entry(EntryKey(5, "rating.m1", 0), 2, 1, "write", "", "1.0", source="instrument")
        with open_store(self.url(tmp_path)) as store:
            _, journal = self._claimed(store)
            journal.append(rating)
            journal.append(full)
        with open_store(self.url(tmp_path)) as store:
            assert store.journal("r1", claimed(store, owner="host 2")).lookup(full.key) == replace(full, prompt=None)
            assert store.entries("r1") == [replace(full, prompt=None), rating]

    def test_entries_come_back_with_their_source_and_calls_are_those_of_models(self, tmp_path: Path) -> None:
        sources: tuple[Source, ...] = get_args(Source)
        entries = [call(turn, source=source) for turn, source in enumerate(sources)]
        judged = call(0, part="judge.m1", outcome="unparsed", reason="no number")
        with open_store(self.url(tmp_path)) as store:
            _, journal = self._claimed(store)
            _, other = self._claimed(store, "r2")
            for entry in (*entries[::-1], judged):
                journal.append(entry)
            other.append(call(9))
            found = [replace(entry, prompt=None) for entry in (judged, *entries)]
            assert store.entries("r1") == found
            assert store.calls("r1") == [entry for entry in found if entry.source == "model"] == found[:2]
            assert store.journal("r1", journal.epoch).entries == found
            for turn in range(len(sources)):
                assert store.prompt("r1", turn) == [ChatMessage("system", "Hello.")]

    def test_a_flushed_entry_is_read_by_others_at_once(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            _, journal = self._claimed(store)
            journal.append(call(0))
            journal.flush()
            with open_store(self.url(tmp_path), write=False) as reader:
                assert [entry.key.turn for entry in reader.entries("r1")] == [0]

    def test_the_literal_prompt_of_a_call_is_kept(self, tmp_path: Path) -> None:
        system, post = "You are Ada.\nBe brief: always.", "user:A post\n\nwith lines"
        with open_store(self.url(tmp_path)) as store:
            _, journal = self._claimed(store)
            journal.append(call(0, post, (system, "Write.")))
            journal.append(call(1, "Yes.", (system, post, post), part="reflect", attempt=1))
            expected = [ChatMessage("system", system), ChatMessage("user", post), ChatMessage("user", post)]
            assert store.prompt("r1", 1, "reflect", 1) == expected
            assert store.prompt("r1", 0) == [ChatMessage("system", system), ChatMessage("user", "Write.")]
            with pytest.raises(StoreError, match="no prompt for run r1, turn 9"):
                store.prompt("r1", 9)

    def test_claims_count_up_and_end_earlier_ones(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            first, stale = self._claimed(store)
            _, other = self._claimed(store, "r2")
            stale.append(call(0, "kept"))
            store.flush()
            second = store.claim("r1", "host 2")
            assert (first, second) == (1, 2)
            assert store.states()["r1"][:3] == ("running", 2, "host 2")
            stale.append(call(1, "lost"))
            with pytest.raises(HeldElsewhereError, match="run r1 has been claimed by somebody else"):
                stale.flush()
            with pytest.raises(HeldElsewhereError, match="r1"):
                stale.append(call(2))
            with pytest.raises(HeldElsewhereError, match="epoch 1"):
                store.finish("r1", first, outcome())
            with pytest.raises(HeldElsewhereError, match="epoch 1"):
                store.save_outcome("r1", first, outcome())
            with pytest.raises(HeldElsewhereError, match="epoch 1"):
                store.save_opinions("r1", first, [opinion_row()])
            with pytest.raises(HeldElsewhereError, match="epoch 1"):
                store.release("r1", first)
            with pytest.raises(HeldElsewhereError, match="epoch 1"):
                store.journal("r1", first)
            assert not any(_tables(store)[name] for name in ("agents", "edges", "turns", "opinions"))
            other.append(call(0))
            other.flush()
            assert [entry.text for entry in store.entries("r1")] == ["kept"]
            assert len(store.entries("r2")) == 1
            assert store.states(["r1"])["r1"].status == "running"

    def test_a_run_must_be_registered_to_be_claimed(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            for claim in (store.claim, store.claim_complete):
                with pytest.raises(StoreError, match="run nope is not registered"):
                    claim("nope", "host 1")

    def test_a_complete_run_is_not_claimed_and_an_incomplete_one_is(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            epoch, _ = self._claimed(store)
            store.finish("r1", epoch, outcome(status="incomplete", error="stopped"))
            assert store.claim("r1", "host 2") == 2
            store.finish("r1", 2, outcome())
            assert store.claim("r1", "host 2") is None
            assert store.states()["r1"] == ("complete", 2, "host 2", "")
            store.forget(["r1"])
            assert store.claim("r1", "host 2") == 4

    def test_a_worker_may_claim_again_what_it_holds(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            self._claimed(store)
            assert store.claim("r1", "host 1") == 2
            store.finish("r1", 2, outcome())
            assert [store.claim_complete("r1", "host 1") for _ in range(2)] == [3, 4]

    def test_only_a_complete_run_is_claimed_to_add_opinions(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            store.register([run_row()])
            assert store.claim_complete("r1", "host 1") is None
            assert store.states()["r1"] == ("pending", 0, "", "")
            epoch = claimed(store)
            assert store.claim_complete("r1", "host 1") is None
            assert store.states()["r1"] == ("running", epoch, "host 1", "")
            store.finish("r1", epoch, outcome(status="incomplete", error="stopped"))
            assert store.claim_complete("r1", "host 1") is None
            assert store.states()["r1"] == ("incomplete", epoch, "host 1", "stopped")

    def test_adding_opinions_leaves_the_status_and_the_error_alone(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            first = completed(store, error="could not be coded", opinions=())
            late = store.journal("r1", first)
            assert store.claim_complete("r1", "host 2") == first + 1
            state = ("complete", first + 1, "host 2", "could not be coded")
            assert store.states()["r1"] == state
            late.append(call(9, "late"))
            with pytest.raises(HeldElsewhereError, match="run r1 has been claimed by somebody else"):
                late.flush()
            journal = store.journal("r1", first + 1)
            journal.append(call(0, part="judge.m1"))
            store.save_opinions("r1", first + 1, [opinion_row()])
            assert store.states()["r1"] == state
            store.release("r1", first + 1)
            assert store.states()["r1"] == state
            assert [entry.key.part for entry in store.entries("r1")] == ["judge.m1"]
            assert len(_tables(store)["opinions"]) == 1

    def test_whoever_adds_opinions_excludes_others_and_is_excluded(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as one:
            completed(one, "done")
            completed(one, "wanted")
            one.register([run_row("begun")])
            claimed(one, "begun")
            measuring = one.claim_complete("done", "one")
            assert measuring is not None
            if not one.shared:
                with pytest.raises(StoreError, match="in use"):
                    open_store(self.url(tmp_path))
                return
            with open_store(self.url(tmp_path)) as two:
                assert two.claim_complete("done", "two") is None
                assert two.claim("done", "two") is None
                assert two.claim("begun", "two") is None
                with pytest.raises(HeldElsewhereError, match="run done is being measured by one and cannot be"):
                    two.forget(["wanted", "done"])
                wanted = two.claim_complete("wanted", "two")
                assert wanted is not None
                assert one.claim_complete("wanted", "one") is None
                two.release("wanted", wanted)
                assert one.claim_complete("wanted", "one") == wanted + 1
                one.release("done", measuring)
                assert two.claim_complete("done", "two") == measuring + 1
                assert {state.status for state in two.states(["done", "wanted"]).values()} == {"complete"}

    def test_a_run_that_was_released_goes_on_from_where_it_stood(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            epoch, journal = self._claimed(store)
            journal.append(call(0))
            store.release("r1", epoch)
            assert store.states()["r1"] == ("running", epoch, "host 1", "")
            assert len(store.journal("r1", claimed(store, owner="host 2")).entries) == 1
            with pytest.raises(HeldElsewhereError, match=f"epoch {epoch}"):
                store.release("r1", epoch)

    def test_turns_come_back_with_their_condition(self, tmp_path: Path) -> None:
        refused = replace(outcome().turns[1], text="", condition="refused")
        turns = (outcome().turns[0], refused)
        with open_store(self.url(tmp_path)) as store:
            epoch, _ = self._claimed(store)
            store.finish("r1", epoch, outcome(turns=turns))
            assert tuple(store.turns("r1")) == turns

    def test_what_was_paid_is_summed_over_the_runs_asked_for(self, tmp_path: Path) -> None:
        spent: dict[str, Any] = {
            "input_tokens": 1000,
            "output_tokens": 1000,
            "cost": 1000.0,
            "model": "not one of theirs",
        }
        with open_store(self.url(tmp_path)) as store:
            assert store.usage([]) == store.usage(["absent"]) == Paid(0, 0, 0, 0.0)
            for run_id in ("r1", "r2", "r3"):
                _, journal = self._claimed(store, run_id)
                journal.append(call(0, input_tokens=10, output_tokens=3, cost=0.5, model=f"of {run_id}"))
                journal.append(call(1, outcome="rejected", input_tokens=7, cost=0.25))
                journal.append(call(2))
                for turn, source in enumerate(("person", "instrument", "import"), start=3):
                    journal.append(call(turn, source=source, **spent))
                journal.append(call(6, condition="refused", finish_reason="content_filter"))
            assert store.usage(["r1"]) == Paid(4, 17, 3, 0.75, 2)
            assert store.usage(["r1", "r3", "absent"]) == Paid(8, 34, 6, 1.5, 4)
            assert store.models(["r1", "r3", "absent"]) == {"of r1", "of r3"}

    def test_canaries_of_repeated_sweeps_add_up(self, tmp_path: Path) -> None:
        moments: tuple[tuple[Literal["start", "end"], float], ...] = (("start", 1.5), ("end", 2.5), ("start", 3.5))
        rows = [
            CanaryRow("e1", "m", moment, position, at, f"answer {position}", "m-1", "fp", 7, 3, 0.25)
            for moment, at in moments
            for position in (0, 1)
        ]
        other = CanaryRow("e2", "m", "start", 0, 1.5, "other", "", "")
        with open_store(self.url(tmp_path)) as store:
            assert store.canaries("e1") == []
            store.save_canary([*rows[2:], other])
            store.save_canary(rows[:4])
            assert store.canaries("e1") == rows
            assert store.canaries("e2") == [other]

    def test_registering_again_changes_nothing(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            store.register([run_row("r1")])
            store.finish("r1", claimed(store), outcome())
            store.register([run_row("r1", steps=9), run_row("r2")])
            states = store.states()
            assert list(states) == ["r1", "r2"]
            assert [state.status for state in states.values()] == ["complete", "pending"]
            assert store.states(["r2", "absent"]) == {"r2": states["r2"]}

    def test_many_runs_are_asked_for_at_once(self, tmp_path: Path) -> None:
        names = [f"r{number:04}" for number in range(1201)]
        with open_store(self.url(tmp_path)) as store:
            store.register([run_row(name) for name in names])
            assert list(store.states(names)) == names

    def test_finishing_twice_equals_finishing_once(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            epoch, journal = self._claimed(store)
            journal.append(call(0))
            store.finish("r1", epoch, outcome(status="incomplete", error="turn 1 failed", turns=outcome().turns[:1]))
            assert store.states()["r1"] == ("incomplete", epoch, "host 1", "turn 1 failed")
            store.finish("r1", epoch, outcome())
            once = _tables(store)
            store.finish("r1", epoch, outcome())
            assert _tables(store) == once
            assert len(once["turns"]) == 2
            assert store.states()["r1"] == ("complete", epoch, "host 1", "")

    def test_an_outcome_is_saved_without_a_change_of_status(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            epoch, journal = self._claimed(store)
            journal.append(call(0))
            so_far = outcome(status="incomplete", error="not told yet", turns=outcome().turns[:1], opinions=())
            store.save_outcome("r1", epoch, so_far)
            assert store.states()["r1"] == ("running", epoch, "host 1", "")
            assert {name: len(rows) for name, rows in _tables(store).items()} == {
                **{"runs": 1, "agents": 2, "edges": 1, "turns": 1, "opinions": 0},
                "texts": 2,
            }
            store.save_outcome("r1", epoch, outcome())
            saved = _tables(store)
            assert [len(saved[name]) for name in ("turns", "opinions")] == [2, 1]
            store.finish("r1", epoch, outcome())
            finished = _tables(store)
            assert store.states()["r1"] == ("complete", epoch, "host 1", "")
            assert {**finished, "runs": []} == {**saved, "runs": []}

    def test_a_stored_opinion_is_never_replaced(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            epoch = completed(store)
            before = _tables(store)["opinions"]
            assert len(before) == 1
            store.save_opinions("r1", epoch, [opinion_row(value=-2.0)])
            store.finish("r1", epoch, outcome(opinions=(opinion_row(value=2.0),)))
            assert _tables(store)["opinions"] == before
            nan = math.nan
            unread = opinion_row(1, "m2", value=nan, off_scale=1.0, probabilities=(nan,) * 5)
            store.save_opinions("r1", epoch, [opinion_row(value=2.0), unread, opinion_row(1, about=0)])
            after = _tables(store)["opinions"]
            assert [row for row in after if row in before] == before
            assert len(after) == 3

    def test_of_runs_without_rows_nothing_is_left_to_code(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            store.register([run_row()])
            completed(store, "r2", turns=(), opinions=())
            for about in ("", "reads"):
                assert store.uncoded(["r1", "r2", "absent"], "m1", ["post", "report"], about=about) == {}
                assert store.uncoded([], "m1", ["post"], about=about) == {}

    def test_what_an_instrument_has_not_coded_is_found_by_kind(self, tmp_path: Path) -> None:
        kinds = ("post", "report", "probe")
        turns = [turn_row(turn, kind=kinds[turn % 3]) for turn in range(12)]
        turns[3] = replace(turns[3], text="", condition="skipped")
        turns[6] = replace(turns[6], text="", condition="refused")
        with open_store(self.url(tmp_path)) as store:
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
            store.save_opinions("r1", 1, coded)
            assert store.uncoded(runs, "m1", ["post"]) == {"r1": [(6, None)], "r2": posts}
            assert store.uncoded(runs, "m2", ["post"]) == {"r1": [(0, None), (9, None)], "r2": posts}
            store.save_opinions("r1", 1, [opinion_row(6)])
            assert store.uncoded(runs, "m1", ["post"]) == {"r2": posts}
            assert store.uncoded(["r1"], "m1", ["post", "report"]) == {"r1": reports[1:]}

    def test_what_is_judged_beside_what_it_reads_is_found_by_pairs(self, tmp_path: Path) -> None:
        turns = (
            turn_row(0),
            turn_row(1, (0, "news"), kind="report"),
            turn_row(2, text="", condition="refused"),
            turn_row(3, (1, 2, 0, "1"), condition="truncated"),
            turn_row(4, (3, 0), text="", condition="skipped"),
            turn_row(5, (0, 4, 3, 0), text="", condition="empty"),
            turn_row(6, ("news",)),
        )
        with open_store(self.url(tmp_path)) as store:
            for run_id in ("r1", "r2"):
                completed(store, run_id, turns=turns, opinions=())
            pairs = [(3, 0), (3, 1), (5, 0), (5, 3)]
            assert store.uncoded(["r2", "r1"], "m1", ["post"], about="reads") == {"r1": pairs, "r2": pairs}
            assert store.uncoded(["r1"], "m1", ["report"], about="reads") == {"r1": [(1, 0)]}
            assert store.uncoded(["r1"], "m1", ["post", "report"], about="reads") == {"r1": [(1, 0), *pairs]}
            # A text coded by itself, and another instrument's pair, are not this instrument's pair.
            store.save_opinions("r1", 1, [opinion_row(3), opinion_row(3, "m2", about=0), opinion_row(3, about=1)])
            assert store.uncoded(["r1"], "m1", ["post"], about="reads") == {"r1": [(3, 0), (5, 0), (5, 3)]}
            store.save_opinions("r1", 1, [opinion_row(turn, about=about) for turn, about in pairs])
            assert store.uncoded(["r1", "r2"], "m1", ["post"], about="reads") == {"r2": pairs}
            with pytest.raises(StoreError, match="about must be empty or 'reads'; got 'self'"):
                store.uncoded(["r1"], "m1", ["post"], about="self")

    def test_many_runs_are_looked_through_at_once(self, tmp_path: Path) -> None:
        names = [f"r{number:04}" for number in range(1001)]
        with open_store(self.url(tmp_path)) as store:
            store.register([run_row(name) for name in names])
            for name in (names[0], names[-1]):
                store.save_outcome(name, claimed(store, name), outcome(opinions=()))
            for about, key in (("", (1, None)), ("reads", (1, 0))):
                expected = {names[0]: [key], names[-1]: [key]}
                assert store.uncoded(names, "m1", ["report"], about=about) == expected

    def test_forgetting_leaves_other_runs_and_fences_the_old_claim(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            for run_id in ("r1", "r2"):
                epoch, journal = self._claimed(store, run_id)
                journal.append(call(0))
                store.finish(run_id, epoch, outcome())
            kept = store.journal("r1", 1)
            store.forget(["r1"])
            assert store.entries("r1") == []
            assert store.states()["r1"] == ("pending", 2, "", "")
            produced = ("agents", "edges", "turns", "opinions", "journal")
            assert [{row[0] for row in _tables(store, produced)[name]} for name in produced] == [{"r2"}] * 5
            assert store.prompt("r2", 0) == [ChatMessage("system", "Hello.")]
            kept.append(call(1))
            with pytest.raises(StoreError, match="r1"):
                kept.flush()

    def test_experiments_come_back_as_saved_and_the_last_saved_comes_last(self, tmp_path: Path) -> None:
        first, second = experiment_row("e1", "one"), experiment_row("e2", "two", ("r1", "r2"))
        with open_store(self.url(tmp_path)) as store:
            for row in (first, second):
                store.save_experiment(row)
            assert store.experiments() == [first, second]
            edited = replace(first, name="uno", created_at=99.0, runs=())
            store.save_experiment(edited)
            assert store.experiments() == [second, replace(edited, created_at=12.5)]
            bare = ExperimentRun("r1", None, 0, "block 0", "unread")
            several = replace(bare, instrument_id="m1", instruments={"m2": ("probe",), "m1": ("post", "report")})
            store.save_experiment(replace(first, runs=(bare, several)))
            assert store.experiments()[-1].runs == (bare, several)
            assert list(store.experiments()[-1].runs[1].instruments) == ["m2", "m1"]
            with pytest.raises(StoreError, match="spec must hold only JSON values"):
                store.save_experiment(replace(first, spec={"x": math.nan}))

    def test_instruments_come_back_as_saved(self, tmp_path: Path) -> None:
        paired = instrument_row("m2", (1, 2), variable="tone", context=True, about="reads")
        with open_store(self.url(tmp_path)) as store:
            for row in (paired, instrument_row(), instrument_row()):
                store.save_instrument(row)
            assert store.instruments() == [instrument_row(), paired]
            assert store.instruments()[1].context is True

    def test_another_instrument_under_the_same_id_is_refused(self, tmp_path: Path) -> None:
        first = replace(instrument_row(), options={"weights": "one", "gain": (1, 2.0)})
        with open_store(self.url(tmp_path)) as store:
            store.save_instrument(first)
            store.save_instrument(replace(first, options={"gain": [1, 2], "weights": "one"}))
            before = store.instruments()
            assert before == [replace(first, options={"weights": "one", "gain": [1, 2]})]
            for options in ({"weights": "other", "gain": [1, 2]}, {"gain": [1, 2]}):
                with pytest.raises(SpecError, match=r"'lexicon' has coded .*: weights was 'one' and is"):
                    store.save_instrument(replace(first, options=options))
            assert store.instruments() == before

    def test_a_text_is_stored_once(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            epoch, journal = self._claimed(store)
            for turn in range(5):
                journal.append(call(turn, "It is warmer.", ("You are Ada.", "It is warmer.")))
            store.finish("r1", epoch, outcome())
            stored = sorted(row[1] for row in _tables(store)["texts"])
            assert stored == ["I doubt it.", "It is warmer.", "You are Ada."]

    def test_a_reader_changes_nothing(self, tmp_path: Path) -> None:
        open_store(self.url(tmp_path)).close()
        with open_store(self.url(tmp_path), write=False) as store:
            for change in (
                lambda: store.register([run_row()]),
                lambda: store.forget(["r1"]),
                lambda: store.journal("r1", 0),
                lambda: store.save_instrument(instrument_row()),
                lambda: store.claim_complete("r1", "host 1"),
                lambda: store.release("r1", 0),
                lambda: store.save_opinions("r1", 0, [opinion_row()]),
            ):
                with pytest.raises(StoreError, match="opened for reading only"):
                    change()

    def test_a_closed_store_says_so(self, tmp_path: Path) -> None:
        store = open_store(self.url(tmp_path))
        _, journal = self._claimed(store)
        store.close()
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.states()
        with pytest.raises(StoreError, match="closed"):
            journal.append(call(0))


def _tables(
    store: Store, names: Sequence[str] = ("runs", "agents", "edges", "turns", "texts", "opinions")
) -> dict[str, list[tuple[Any, ...]]]:
    """Whole tables, by default all that hold no times, sorted."""
    with store.reading() as connection:
        return {
            name: sorted((tuple(row) for row in connection.exec_driver_sql(f"SELECT * FROM {name}")), key=repr)  # noqa: S608
            for name in names
        }
