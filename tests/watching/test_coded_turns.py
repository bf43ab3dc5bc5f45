"""Turns of a run as they are read: pages of them, what was read before, changes of opinion, calls with prompts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import opinionsim as osim
from opinionsim import watching
from opinionsim.errors import SpecError
from opinionsim.store import AbsentError, StoreReader, open_store
from tests.support.running import SMALL, changed

SPEC = changed(SMALL, interaction__steps=30, measurement={"classifier": "lexicon", "texts": ["report", "post"]})


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> osim.Results:
    return osim.run(osim.load_experiment(SPEC), str(tmp_path_factory.mktemp("lines") / "s.sqlite"))


@pytest.fixture
def reader(results: osim.Results) -> Iterator[StoreReader]:
    with open_store(results.url, write=False) as opened:
        yield opened


@pytest.fixture
def run(results: osim.Results) -> str:
    return str(results.runs["run_id"].iloc[0])


def _changes(results: osim.Results, kind: str) -> dict[int, float]:
    """Change of each opinion from the last one of its author before, by turn."""
    own = results.opinions[(results.opinions["kind"] == kind) & results.opinions["value"].notna()].sort_values("turn")
    return dict(zip(own["turn"], own.groupby("agent")["value"].diff(), strict=True))


def test_pages_hold_every_turn_once_with_what_was_read(reader: StoreReader, run: str, results: osim.Results) -> None:
    turns = results.turns.set_index("turn")
    seen: list[int] = []
    while len(seen) < len(turns):
        told = watching.run_turns(reader, run, start=len(seen), count=7)
        assert (told["total"], told["from"]) == (len(turns), len(seen))
        for line in told["turns"]:
            row = turns.loc[line["turn"]]
            assert [line[name] for name in ("step", "agent", "act", "kind", "status", "text")] == [
                row[name] for name in ("step", "agent", "act", "kind", "status", "message")
            ]
            assert line["reads"] == [str(ref) for ref in row["reads"]]
            for ref in row["reads"]:
                assert told["read"][str(ref)]["text"] == turns.loc[ref]["message"]
                assert told["read"][str(ref)]["agent"] == turns.loc[ref]["agent"]
        seen += [line["turn"] for line in told["turns"]]
    assert seen == sorted(turns.index)
    assert watching.run_turns(reader, run, start=10_000)["turns"] == []


def test_each_text_stands_with_its_codes(reader: StoreReader, run: str, results: osim.Results) -> None:
    opinions = results.opinions.set_index("turn")
    for line in watching.run_turns(reader, run, count=200)["turns"]:
        (code,) = line["codes"]
        row = opinions.loc[line["turn"]]
        assert code["instrument"] == row["instrument_id"]
        assert pd.isna(row["value"]) if code["value"] is None else code["value"] == row["value"]
        points = [name for name in opinions.columns if name.startswith("p_")]
        expected = row[sorted(points, key=lambda name: int(name[2:]))].tolist()
        assert [each is None for each in code["probabilities"]] == [pd.isna(each) for each in expected]
        assert [each for each in code["probabilities"] if each is not None] == pytest.approx(
            [each for each in expected if not pd.isna(each)]
        )


@pytest.mark.parametrize("kind", ["report", "post"])
def test_the_largest_changes_of_an_agent_come_first(
    reader: StoreReader, run: str, results: osim.Results, kind: str
) -> None:
    expected = _changes(results, kind)
    for agent in range(4):
        lines = watching.run_turns(reader, run, agent=agent, order="change", kind=kind, count=200)["turns"]
        assert {line["agent"] for line in lines} <= {agent}
        for line in lines:
            want = expected.get(line["turn"])
            assert line["change"] == (None if want is None or pd.isna(want) else want)
        sizes = [abs(line["change"] or 0.0) for line in lines]
        assert sizes == sorted(sizes, reverse=True)
        in_order = watching.run_turns(reader, run, agent=agent, count=200)["turns"]
        assert sorted(line["turn"] for line in lines) == [line["turn"] for line in in_order]


def test_a_turn_has_every_call_with_its_literal_prompt(reader: StoreReader, run: str, results: osim.Results) -> None:
    calls = results.calls
    for turn in results.turns["turn"].head(6):
        told = watching.run_turn(reader, run, int(turn))
        own = calls[calls["turn"] == turn]
        asked = [call for call in told["calls"] if call["source"] == "model"]
        assert [(call["call"], call["attempt"], call["reply"]) for call in asked] == [
            *own[["call", "attempt", "reply"]].itertuples(index=False, name=None)
        ]
        for call in asked:
            prompt = results.prompt(run, int(turn), call["call"], call["attempt"])
            assert [(each["role"], each["text"]) for each in call["prompt"]] == [
                (message.role, message.content) for message in prompt
            ]
        assert told["turn"] == watching.run_turns(reader, run, start=int(turn), count=1)["turns"][0]
        assert told["currency"]


def test_messages_from_outside_are_named(tmp_path: Path) -> None:
    spec = changed(SPEC, events=[{"kind": "message", "step": 3, "text": "The library is closed."}])
    results = osim.run(osim.load_experiment(spec), str(tmp_path / "s.sqlite"))
    run = str(results.runs["run_id"].iloc[0])
    with open_store(results.url, write=False) as reader:
        record, told = watching.run_record(reader, run), watching.run_turns(reader, run, count=200)
    assert record["events"] == [{"step": 3, "label": "message"}]
    outside = {ref: each for ref, each in told["read"].items() if not ref.isdecimal()}
    assert outside
    names = {each["agent"]: each["name"] for each in record["agents"]}
    for ref, each in outside.items():
        event, _, agent = ref.rpartition("-agent-")
        expected = (int(agent), f"{names[int(agent)]} ({event})") if event else (None, ref)
        assert (each["agent"], each["name"], each["text"]) == (*expected, "The library is closed.")


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"instrument": "nothing"}, AbsentError, "has no instrument 'nothing'"),
        ({"kind": "song"}, SpecError, "reads no text of kind 'song'; valid: report, post"),
        ({"order": "up"}, SpecError, "order must be change"),
    ],
)
def test_what_cannot_be_listed_is_said(
    reader: StoreReader, run: str, given: dict[str, str], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        watching.run_turns(reader, run, **given)


def test_what_is_not_there_is_said(reader: StoreReader, run: str) -> None:
    for call, said in (
        (lambda: watching.run_turn(reader, run, 10_000), "no stored turn 10000"),
        (lambda: watching.run_agent(reader, run, 99), "no agent 99"),
        (lambda: watching.run_turns(reader, "nowhere"), "no run 'nowhere'"),
        (lambda: watching.run_record(reader, run, since="0.9999"), "last row is 120"),
    ):
        with pytest.raises((AbsentError, SpecError), match=said):
            call()
    for spelled in ("", "1", "a.b", "-1.0", "0.-1", "1" * 30 + ".0", "٣.٣"):
        with pytest.raises(SpecError, match="must have the form GENERATION"):
            watching.run_record(reader, run, since=spelled)
