"""Questions of a chat model that judges, as calls of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from opinionsim.classifiers import ChatClassifier
from opinionsim.errors import ModelCallError
from opinionsim.llm import EntryKey, MemoryJournal, RunCalls, SlotPool
from opinionsim.measurement import Author, Instrument, Measuring, Queues, Text
from opinionsim.testing import run_virtual
from tests.support.judge import CLAIM, Bench, judge_model


@dataclass(frozen=True)
class _Site:
    index: int
    step: int = 1
    agent: int = 0
    act: str = "write"


def _instrument(bench: Bench, identity: str, **options: Any) -> Instrument:
    reads = {key: options.pop(key) for key in ("context", "about") if key in options}
    return Instrument(
        identity, "stance", ChatClassifier(model=judge_model(bench), **options), frozenset(["post"]), **reads
    )


async def _coded(instrument: Instrument, texts: list[Text], journal: MemoryJournal, claim: Any = CLAIM) -> list[float]:
    """Values of all texts, coded as those of one run."""
    author = Author((("name", "Ann"),), -1.0)
    measuring = Measuring([instrument], Queues(), RunCalls("run", journal, (), SlotPool(2)), claim, [author])
    by_turn = {text.site.index: text for text in texts}
    keys = [key for text in texts for key in instrument.keys(text)]
    return [estimate.value for _, _, estimate in await measuring.code(instrument, keys, by_turn.__getitem__)]


def test_what_arrived_beside_a_failure_is_on_record() -> None:
    async def story() -> None:
        bench, journal = Bench(answer=lambda text: "0", fails=lambda number: number == 3), MemoryJournal()
        texts = [Text(_Site(index), "post", f"text {index}") for index in range(50)]
        with pytest.raises(ModelCallError, match="the judge is gone"):
            await _coded(_instrument(bench, "0123456789"), texts, journal)
        assert 2 <= len(journal.records) == len(bench.prompts) - 1 < 20
        assert {record.key.call for record in journal.records} == {"judge.01234567"}
        bench.fails = lambda number: False
        assert await _coded(_instrument(bench, "0123456789"), texts, journal) == [0.0] * 50
        assert len(bench.prompts) == 51

    run_virtual(story())


def test_keys_tell_measurements_apart() -> None:
    async def story() -> None:
        bench, journal = Bench(answer=lambda text: "1"), MemoryJournal()
        texts = [Text(_Site(4, 2, 1, "review"), "post", "I agree.")]
        for identity in ("aaaaaaaabb", "bbbbbbbbcc"):
            assert await _coded(_instrument(bench, identity), texts, journal) == [1.0]
        assert [record.key for record in journal.records] == [
            EntryKey(4, "judge.aaaaaaaa", 0),
            EntryKey(4, "judge.bbbbbbbb", 0),
        ]
        assert {(record.step, record.agent, record.act) for record in journal.records} == {(2, 1, "review")}

    run_virtual(story())


def test_a_question_about_pairs_of_texts_with_what_their_author_knew() -> None:
    async def story() -> None:
        bench, journal = Bench(answer=lambda text: "1"), MemoryJournal()
        texts = [
            Text(_Site(0), "post", "It is flat."),
            Text(_Site(1), "post", "Nonsense.", reads=(0,), received=("It is flat.",)),
        ]
        instrument = _instrument(bench, "aaaaaaaabb", question="How civil is it?", context=True, about="reads")
        assert await _coded(instrument, texts, journal, None) == [1.0]
        (prompt,) = bench.prompts
        for part in ("<<<text\nNonsense.\n", "<<<second\nIt is flat.\n", "<<<read\nIt is flat.\n", "name: Ann"):
            assert part in prompt
        assert [record.key for record in journal.records] == [EntryKey(1, "judge.aaaaaaaa.0", 0)]

    run_virtual(story())
