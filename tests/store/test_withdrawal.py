"""What a person withdraws is gone, with everything that came after it but what other people said."""

from __future__ import annotations

from pathlib import Path

import pytest

import opinionsim as osim
from opinionsim.errors import SpecError
from opinionsim.llm import Question, Seat
from opinionsim.store import AuditRow, LabelRow, open_store

SPEC = {
    "name": "withdrawn",
    "replicates": 2,
    "task": "Should the library open on Sundays?",
    "cast": [
        {"persona": "a teacher"},
        {"name": "Guest", "seat": {}},
        {"persona": "a nurse"},
        {"name": "Other", "seat": {}},
    ],
    "interaction": {"kind": "tests.support.talking:Talk", "steps": 1, "order": "cast", "reading": "all"},
}
OWN, OTHER = "Zanzibar marmalade, I say.", "Quince jelly is what I prefer."


class Speaking:
    """A double that says one thing."""

    evidence = "human"

    def __init__(self, text: str) -> None:
        self.text = text

    async def answer(self, question: Question) -> str:
        return f"{self.text} {question.run_id[:4]}" if question.form.kind == "text" else ""


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 's.sqlite'}"
    osim.run(osim.load_experiment(SPEC), url, seats={1: Seat(Speaking(OWN)), 3: Seat(Speaking(OTHER))})
    return url


def _bytes(url: str) -> bytes:
    path = Path(url.removeprefix("sqlite:///"))
    return b"".join(each.read_bytes() for each in sorted(path.parent.glob(path.name + "*")))


def test_labels_of_a_withdrawn_run_go_and_those_of_other_runs_stay(url: str) -> None:
    run_id, other = osim.load(url).runs["run_id"].unique()
    with open_store(url) as store:
        texts = [{"run_id": each, "turn": 0, "generation": 0} for each in (run_id, other)]
        audit = AuditRow("a1", "e1", {"texts": texts}, {"ann": "human"})
        store.save_audit(audit, [LabelRow("a1", "ann", each, 0, 1.0, "human") for each in (run_id, other)])
        store.withdraw(run_id, 1)
        assert [label.run_id for label in store.labels("a1")] == [other]
        assert not list(store.damage())


def test_no_byte_of_a_withdrawn_text_stays_and_other_people_keep_theirs(url: str) -> None:
    run_id, rest = osim.load(url).runs["run_id"].unique()
    with open_store(url) as store:
        store.withdraw(run_id, 1)
        assert store.states([run_id])[run_id].status == "withdrawn"
        kept = [(row.agent, row.text) for row in store.turns(run_id)]
        # What was said before the first text stays, what other people said as well; the nurse had read it.
        assert [agent for agent, _ in kept] == [0, 3]
        assert kept[1][1] == f"{OTHER} {run_id[:4]}"
        assert not store.entries(run_id)
        assert list(store.damage()) == []
    left = _bytes(url)
    assert f"{OWN} {run_id[:4]}".encode() not in left
    assert f"{OWN} {rest[:4]}".encode() in left
    assert f"{OTHER} {run_id[:4]}".encode() in left


def test_a_withdrawn_run_is_in_no_result_and_is_never_carried_out_again(url: str) -> None:
    run_id, rest = osim.load(url).runs["run_id"].unique()
    with open_store(url) as store:
        store.withdraw(run_id, 1)
    seats = {1: Seat(Speaking(OWN)), 3: Seat(Speaking(OTHER))}
    again = osim.run(osim.load_experiment(SPEC), url, seats=seats)
    told = again.runs.set_index("run_id")["status"]
    assert told[run_id] == "withdrawn"
    assert told[rest] == "complete"
    assert f"{OWN} {run_id[:4]}".encode() not in _bytes(url)


def test_a_reader_goes_on_after_the_file_was_rewritten(url: str) -> None:
    run_id, rest = osim.load(url).runs["run_id"].unique()
    with open_store(url) as store, open_store(url, write=False) as reader:
        assert reader.turns(run_id)
        store.withdraw(run_id, 1)
        assert len(reader.turns(run_id)) == 2
        assert len(reader.turns(rest)) == 4


def test_seats_of_nobody_are_refused() -> None:
    with pytest.raises(SpecError, match="seats"):
        osim.run(osim.load_experiment(SPEC), "unused.sqlite", seats={9: Seat(Speaking(OWN))})
