"""What every journal and every store must do; inherit, say how to make one, and run under pytest."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from opinionsim.errors import SpecError, StoreError
from opinionsim.llm import CallKey, CallRecord, Journal
from opinionsim.messages import ChatMessage, prompt_hash
from opinionsim.store import (
    AgentRow,
    CanaryRow,
    EdgeRow,
    ExperimentRow,
    ExperimentRun,
    HeldElsewhereError,
    MeasurementRow,
    OpinionRow,
    Paid,
    RunOutcome,
    RunRow,
    SQLJournal,
    Store,
    TurnRow,
    open_store,
)

__all__ = [
    "JournalContract",
    "StoreContract",
    "call",
    "claimed",
    "experiment_row",
    "measurement_row",
    "outcome",
    "run_row",
]


def call(turn: int = 0, text: str = "It is warmer.", prompt: Sequence[str] = ("Hello.",), **fields: Any) -> CallRecord:
    """A journal entry for the reply of a turn: a system message, then user messages.

    Parameters
    ----------
    turn : int
        Index of the turn.
    text : str
        The reply.
    prompt : sequence of str
        Contents of the messages, the first a system message.
    **fields : Any
        Other fields of the record; ``part`` and ``attempt`` enter the key.
    """
    roles = ("system", *("user",) * (len(prompt) - 1))
    messages = tuple(ChatMessage(role, content) for role, content in zip(roles, prompt, strict=True))  # type: ignore[arg-type]
    key = CallKey(turn, fields.pop("part", "reply"), fields.pop("attempt", 0))
    return CallRecord(key, turn + 1, turn % 2, "write", prompt_hash(messages), text, prompt=messages, **fields)


def run_row(run_id: str = "r1", **fields: Any) -> RunRow:
    """A registered run of two agents over two steps; keyword arguments replace fields of it or of its summary."""
    summary = {
        "seed": 7,
        "topic": "global-warming",
        "category": "science",
        "framing": "falsehood",
        "claim": "the planet is not getting warmer",
        "truth": -2,
        "confirmation_bias": "none",
        "memory": "cumulative",
        "world": "closed",
        "model": "scripted",
        "interaction": "dyadic",
        "network": "complete",
        "n_agents": 2,
        "steps": 2,
    }
    summary.update({name: fields.pop(name) for name in list(fields) if name in summary})
    row = RunRow(run_id, 0, "block 0", "scripted", {"temperature": 0.7}, summary)
    return replace(row, **fields)


def measurement_row(measurement_id: str = "m1", points: tuple[int, ...] = (-2, -1, 0, 1, 2)) -> MeasurementRow:
    """A measurement with the lexicon."""
    labels = tuple(f"label {point}" for point in points)
    return MeasurementRow(measurement_id, "lexicon", {"strict": True}, points, labels, ("post", "report"))


def opinion_row(turn: int = 0, measurement_id: str = "m1", **fields: Any) -> OpinionRow:
    """An opinion of 1 on the five-point scale; keyword arguments replace fields."""
    return replace(OpinionRow(measurement_id, "stance", turn, 1.0, 0.1, (0.0, 0.0, 0.25, 0.5, 0.25)), **fields)


def outcome(**fields: Any) -> RunOutcome:
    """Two agents, one edge, two turns, one opinion; keyword arguments replace fields."""
    agents = (
        AgentRow(0, "Ada", -2.0, {"age": 30, "city": "Utrecht"}, "scripted"),
        AgentRow(1, "Ben", None, {"age": 41, "city": "Porto"}, "scripted"),
    )
    turns = (
        TurnRow(0, 1, 0, "write", "post", (), "It is warmer."),
        TurnRow(1, 1, 1, "review", "report", (0, "news"), "I doubt it."),
    )
    made = RunOutcome("complete", agents, (EdgeRow(0, 1, 0.5),), turns, (opinion_row(),))
    return replace(made, **fields)


def experiment_row(experiment_id: str = "e1", name: str = "quick", runs: Sequence[str] = ("r1",)) -> ExperimentRow:
    """An experiment with one cell a run, all read with measurement ``m1``."""
    cells = tuple(
        ExperimentRun(run_id, "m1", 0, "block 0", f"framing={run_id}", {"topic.framing": run_id}) for run_id in runs
    )
    return ExperimentRow(experiment_id, name, 12.5, {"name": name, "seed": 7}, {"versions": {"mesa": "3"}}, cells)


def claimed(store: Store, run_id: str = "r1", owner: str = "host 1") -> int:
    """Epoch of a claim that must succeed."""
    epoch = store.claim(run_id, owner)
    assert epoch is not None
    return epoch


class JournalContract(ABC):
    """Tests of :class:`opinionsim.llm.Journal`."""

    @abstractmethod
    def journal(self, folder: Path) -> Journal:
        """An empty journal; `folder` is the test's own."""

    def test_an_entry_is_found_as_soon_as_it_is_appended(self, tmp_path: Path) -> None:
        journal = self.journal(tmp_path)
        for turn in range(50):
            journal.append(call(turn, f"text {turn}"))
            found = journal.lookup(CallKey(turn, "reply", 0))
            assert found is not None
            assert found.text == f"text {turn}"

    def test_what_was_never_appended_is_not_found(self, tmp_path: Path) -> None:
        journal = self.journal(tmp_path)
        journal.append(call(1, part="reply", attempt=0))
        for key in (CallKey(0, "reply", 0), CallKey(1, "reflect", 0), CallKey(1, "reply", 1)):
            assert journal.lookup(key) is None

    def test_the_first_entry_under_a_key_stays(self, tmp_path: Path) -> None:
        journal = self.journal(tmp_path)
        journal.append(call(0, "first"))
        journal.append(call(0, "second"))
        found = journal.lookup(CallKey(0, "reply", 0))
        assert found is not None
        assert found.text == "first"

    def test_parts_and_attempts_are_keys_of_their_own(self, tmp_path: Path) -> None:
        journal = self.journal(tmp_path)
        for part in ("reply", "reply.2", "reflect"):
            for attempt in (0, 1):
                journal.append(call(3, f"{part} {attempt}", part=part, attempt=attempt))
        for part in ("reply", "reply.2", "reflect"):
            for attempt in (0, 1):
                found = journal.lookup(CallKey(3, part, attempt))
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

    def test_a_record_comes_back_whole_but_for_its_prompt(self, tmp_path: Path) -> None:
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
        rating = CallRecord(CallKey(5, "rating", 0), 2, 1, "write", "", "1.0", outcome="rating")
        with open_store(self.url(tmp_path)) as store:
            _, journal = self._claimed(store)
            journal.append(rating)
            journal.append(full)
        with open_store(self.url(tmp_path)) as store:
            assert store.journal("r1", claimed(store, owner="host 2")).lookup(full.key) == replace(full, prompt=None)
            assert store.records("r1") == [replace(full, prompt=None), rating]

    def test_a_flushed_entry_is_read_by_others_at_once(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            _, journal = self._claimed(store)
            journal.append(call(0))
            journal.flush()
            with open_store(self.url(tmp_path), write=False) as reader:
                assert [record.key.turn for record in reader.records("r1")] == [0]

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
                store.journal("r1", first)
            other.append(call(0))
            other.flush()
            assert [record.text for record in store.records("r1")] == ["kept"]
            assert len(store.records("r2")) == 1
            assert store.states(["r1"])["r1"].status == "running"

    def test_a_run_must_be_registered_to_be_claimed(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store, pytest.raises(StoreError, match="run nope is not registered"):
            store.claim("nope", "host 1")

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

    def test_turns_come_back_with_their_condition(self, tmp_path: Path) -> None:
        refused = replace(outcome().turns[1], text="", condition="refused")
        turns = (outcome().turns[0], refused)
        with open_store(self.url(tmp_path)) as store:
            epoch, _ = self._claimed(store)
            store.finish("r1", epoch, outcome(turns=turns))
            assert tuple(store.turns("r1")) == turns

    def test_what_was_paid_is_summed_over_the_runs_asked_for(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            assert store.usage([]) == store.usage(["absent"]) == Paid(0, 0, 0, 0.0)
            for run_id in ("r1", "r2", "r3"):
                _, journal = self._claimed(store, run_id)
                journal.append(call(0, input_tokens=10, output_tokens=3, cost=0.5))
                journal.append(call(1, outcome="rejected", input_tokens=7, cost=0.25))
                journal.append(call(2))
                journal.append(CallRecord(CallKey(3, "rating", 0), 2, 1, "write", "", "1.0", outcome="rating"))
                journal.append(call(4, condition="refused", finish_reason="content_filter"))
            assert store.usage(["r1"]) == Paid(4, 17, 3, 0.75, 2)
            assert store.usage(["r1", "r3", "absent"]) == Paid(8, 34, 6, 1.5, 4)

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

    def test_a_stored_opinion_is_never_replaced(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            epoch, _ = self._claimed(store)
            assert store.measured("r1") == set()
            store.finish("r1", epoch, outcome())
            before = _tables(store)["opinions"]
            store.save_opinions("r1", [opinion_row(value=-2.0)])
            store.finish("r1", epoch, outcome(opinions=(opinion_row(value=2.0),)))
            assert _tables(store)["opinions"] == before
            nan = math.nan
            store.save_opinions("r1", [opinion_row(1, "m2", value=nan, off_scale=1.0, probabilities=(nan,) * 5)])
            assert store.measured("r1") == {"m1", "m2"}
            assert len(_tables(store)["opinions"]) == 2

    def test_forgetting_leaves_other_runs_and_fences_the_old_claim(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            for run_id in ("r1", "r2"):
                epoch, journal = self._claimed(store, run_id)
                journal.append(call(0))
                store.finish(run_id, epoch, outcome())
            kept = store.journal("r1", 1)
            store.forget(["r1"])
            assert store.records("r1") == []
            assert store.measured("r1") == set()
            assert store.states()["r1"].status == "pending"
            assert {row[0] for name in ("agents", "edges", "turns") for row in _tables(store)[name]} == {"r2"}
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
            with pytest.raises(StoreError, match="spec must hold only JSON values"):
                store.save_experiment(replace(first, spec={"x": math.nan}))

    def test_measurements_come_back_as_saved(self, tmp_path: Path) -> None:
        with open_store(self.url(tmp_path)) as store:
            for row in (measurement_row("m2", (1, 2)), measurement_row(), measurement_row()):
                store.save_measurement(row)
            assert store.measurements() == [measurement_row(), measurement_row("m2", (1, 2))]

    def test_kinds_of_text_are_added_to_a_measurement_of_the_same_instrument_only(self, tmp_path: Path) -> None:
        first = replace(measurement_row(), options={"weights": "one", "gain": (1, 2.0)})
        with open_store(self.url(tmp_path)) as store:
            store.save_measurement(first)
            store.save_measurement(replace(first, options={"gain": [1, 2], "weights": "one"}, kinds=("probe", "post")))
            before = store.measurements()
            assert [row.kinds for row in before] == [("post", "report", "probe")]
            for options in ({"weights": "other", "gain": [1, 2]}, {"gain": [1, 2]}):
                with pytest.raises(SpecError, match=r"'lexicon' has coded .*: weights was 'one' and is"):
                    store.save_measurement(replace(first, options=options, kinds=("response",)))
            assert store.measurements() == before

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
                lambda: store.save_measurement(measurement_row()),
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


def _tables(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Every table but the ones that hold times, sorted."""
    names = ("runs", "agents", "edges", "turns", "texts", "opinions")
    with store.reading() as connection:
        return {
            name: sorted((tuple(row) for row in connection.exec_driver_sql(f"SELECT * FROM {name}")), key=repr)  # noqa: S608
            for name in names
        }
