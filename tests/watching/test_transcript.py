from __future__ import annotations

import json
import re
import shutil
import sqlite3
import time
from collections.abc import Sequence
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.errors import SpecError, StoreError
from opinionsim.store import AgentRow, OpinionRow, Results, open_store
from opinionsim.watching import transcript_data
from opinionsim.watching._transcript import paragraphs
from tests.support.running import SMALL, carry_out, changed, watched


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    spec = changed(SMALL, replicates=2, measurement={"texts": ["report"]})
    return carry_out(spec, f"sqlite:///{tmp_path_factory.mktemp('told') / 'told.sqlite'}")[1]


def test_everything_that_was_said_is_told_in_order(results: Results) -> None:
    told = osim.transcript(results, run=1)
    run = results.runs.iloc[1]
    turns = results.turns[results.turns["run_id"] == run["run_id"]]
    places = [told.index(f"turn {turn.turn}: ") for turn in turns.itertuples()]
    assert places == sorted(places)
    assert told.count("\nstep ") == len(turns) == 12
    for turn in turns.itertuples():
        assert f"\n{turn.message}" in told
    other = results.turns[results.turns["run_id"] != run["run_id"]]
    assert not any(message in told for message in other["message"] if message not in set(turns["message"]))
    assert f"run small/1 · {run['run_id']} · complete · evidence: scripted" in told
    assert f"claim: {run['claim']}" in told


def test_who_read_whom_and_how_it_was_coded(results: Results) -> None:
    run_id = results.runs["run_id"][0]
    names = results.agents[results.agents["run_id"] == run_id].set_index("agent")["name"]
    turns = results.turns[results.turns["run_id"] == run_id].set_index("turn")
    coded = results.opinions[results.opinions["run_id"] == run_id].set_index("turn")["value"]
    for turn, row in turns[turns["act"] == "review"].iterrows():
        (read,) = row["reads"]
        heading = osim.transcript(results, 0, turn=int(turn)).split("\n")[3]
        author = names[turns["agent"][read]]
        value = coded[turn]
        expected = "no opinion found" if value != value else "coded 0" if value == 0 else f"coded {value:+g}"
        assert heading == (
            f"step {row['step']}, turn {turn}: {names[row['agent']]} (agent {row['agent']}) report "
            f"after reading {author} (turn {read})  [{expected}]"
        )
    written = osim.transcript(results, 0, turn=0).split("\n")[3]
    assert written.endswith(" post")


def test_the_turns_of_one_agent(results: Results) -> None:
    run_id = results.runs["run_id"][0]
    turns = results.turns[(results.turns["run_id"] == run_id) & (results.turns["agent"] == 2)]
    told = osim.transcript(results, run_id[:10], agent=2)
    assert told.count("\nstep ") == len(turns) > 0


def test_messages_from_outside_and_refusals_are_named() -> None:
    interaction = {"kind": "external", "steps": 2, "messages": ["It is round."]}
    spec = changed(SMALL, interaction=interaction, model={"options": {"refusal_rate": 1.0}})
    told = osim.transcript(carry_out(spec, "outside.sqlite")[1])
    assert told.count("after reading the message external-0  [refused]") == 2


def test_a_bare_model_has_no_name() -> None:
    spec = changed(SMALL, interaction={"kind": "no-role-play", "reports": 1})
    assert "(no role) (agent 3) report" in osim.transcript(carry_out(spec, "bare.sqlite")[1])


def test_what_does_not_exist(results: Results) -> None:
    with pytest.raises(SpecError, match=r"run 2: there is no such run; valid: 0 to 1, a name, or a run id"):
        osim.transcript(results, 2)
    with pytest.raises(SpecError, match=r"agent 4 does not exist; valid: 0\.\.3"):
        osim.transcript(results, 0, agent=4)
    with pytest.raises(SpecError, match=r"turn 12 does not exist; valid: 0\.\.11"):
        osim.transcript(results, 0, turn=12)
    with pytest.raises(SpecError, match="run xyz: no runs have such a name or id"):
        osim.transcript(results, "xyz")


def test_a_run_that_has_not_got_anywhere() -> None:
    model, _ = watched(fails=lambda number: True)
    results = carry_out(SMALL, "nothing.sqlite", model)[1]
    told = osim.transcript(results)
    assert "incomplete" in told
    assert "step" not in told.split("claim:")[1]
    with pytest.raises(SpecError, match="turn 0 does not exist; valid: none, because nothing is stored yet"):
        osim.transcript(results, turn=0)


def _line(turn: int, agent: int, kind: str, reads: tuple[int, ...], **others: Any) -> dict[str, Any]:
    """A turn as it is told, with what the instrument m0 read from it."""
    value = others.pop("value", None)
    codes = [] if value is None else [{"instrument": "m0", "about": None, "value": value}]
    line = {"turn": turn, "step": 1, "agent": agent, "act": kind, "kind": kind, "text": "", "status": "answered"}
    line |= dict.fromkeys(("alone", "signs", "taken", "reply"), "")
    return {**line, "given": False, "reads": [*map(str, reads)], "codes": codes, **others}


#: A moderator's post, which each of two participants reads and reports on.
MEETING = (
    _line(0, 2, "post", (), text="Welcome.", value=0.0),
    _line(1, 0, "report", (0,), text="I agree.", value=2.0),
    _line(2, 1, "report", (0, 1), status="skipped"),
)
CAST = (("Ada", "participant"), ("Ben", "participant"), ("Kim", "moderator"))
PLAYED = (("openai:a", "model"), ("openai:a", "human"), ("scripted", "scripted"))


def _headings(lines: Sequence[dict[str, Any]], cast: Sequence[tuple[str, str]] = CAST, **options: Any) -> list[str]:
    agents = [
        AgentRow(number, name, role, evidence, None, {}, model)
        for number, ((name, role), (model, evidence)) in enumerate(zip(cast, PLAYED, strict=True))
    ]
    read = {str(line["turn"]): {name: line[name] for name in ("agent", "status", "given")} for line in lines}
    told = paragraphs({"turns": lines, "read": read}, agents, "m0", **options)
    return [paragraph.split("\n")[1] for paragraph in told]


def test_everybody_is_shown_with_a_role_and_what_was_skipped() -> None:
    assert _headings(MEETING) == [
        "step 1, turn 0: Kim, moderator (agent 2, scripted) post  [coded 0]",
        "step 1, turn 1: Ada (agent 0, openai:a, model) report after reading Kim, moderator (turn 0)  [coded +2]",
        "step 1, turn 2: Ben (agent 1, openai:a, human) report after reading Kim, moderator (turn 0), Ada (turn 1)"
        "  [skipped]",
    ]


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        ({"status": "off_role"}, "off role"),
        ({"status": "left_out", "signs": "loop preamble", "taken": "preamble"}, "left out by a sign: loop"),
        (
            {"value": 2.0, "signs": "preamble markup", "taken": "preamble markup"},
            "coded +2, taken out: preamble, markup",
        ),
        ({"value": 0.0, "signs": "role markup", "taken": "markup"}, "coded 0, reply showed role, taken out: markup"),
        ({"codes": [{"instrument": "m0", "about": None, "value": None}]}, "no opinion found"),
    ],
)
def test_what_a_text_is_and_shows_is_said_in_plain_words(line: dict[str, Any], mark: str) -> None:
    (heading,) = _headings([_line(0, 0, "post", (), **line)])
    assert heading.split("  ")[1].startswith(f"[{mark}")


def test_headings_name_the_last_of_many_messages_and_all_where_one_turn_is_asked_for() -> None:
    lines = [*(_line(turn, 0, "post", ()) for turn in range(6)), _line(6, 1, "report", tuple(range(6)))]
    tail = "Ada (turn 3), Ada (turn 4), Ada (turn 5)"
    assert _headings(lines)[-1].endswith(f"report after reading 3 earlier messages, {tail}")
    assert _headings(lines, whole=True)[-1].count("(turn") == 6


@pytest.mark.parametrize(("name", "shown"), [("Moderator", "Moderator"), ("", "moderator")])
def test_a_role_that_is_a_name_is_said_once(name: str, shown: str) -> None:
    cast = (*CAST[:2], (name, "moderator"))
    assert _headings(MEETING, cast)[0].startswith(f"step 1, turn 0: {shown} (agent 2, ")


def test_a_cell_in_which_no_stance_is_read_codes_nothing() -> None:
    civility = {"variable": "civility", "classifier": "lexicon", "texts": ["report"]}
    spec = changed(SMALL, measurement={"classifier": None, "instruments": [civility]})
    told = osim.transcript(carry_out(spec, "silent.sqlite")[1])
    assert "coded" not in told
    assert told.count("\nstep ") == 12


def test_codes_are_of_texts_by_themselves_and_of_the_cells_own_instrument() -> None:
    results = carry_out(SMALL, "coded.sqlite")[1]
    run_id, own = results.runs.loc[0, ["run_id", "instrument_id"]]
    coded = results.opinions.set_index("turn")["value"]
    turn = int(coded.first_valid_index())
    with sqlite3.connect("coded.sqlite") as connection:
        assert connection.execute("select count(distinct instrument_id) from opinions").fetchone() == (1,)
    connection.close()
    with open_store("coded.sqlite") as store:
        epoch = store.lease(run_id, "another", complete=True)
        assert epoch is not None
        record = store.record(run_id, epoch)
        others = [OpinionRow(own, turn, 7.0, 0.0, (1.0,), about=0), OpinionRow("a9", turn, 6.0, 0.0, (1.0,))]
        record.add_opinions(others)
        store.release(run_id, epoch)
    assert f"[coded {coded[turn]:+g}]" in osim.transcript(osim.load("coded.sqlite"), turn=turn)


def test_rows_are_those_of_the_frame() -> None:
    cells = changed(SMALL, replicates=2)
    several = [{"variable": "stance", "classifier": name} for name in ("lexicon", "exact")]
    cells["sweep"] = {"topic.framing": ["truth", "falsehood"], "measurement.instruments": [[each] for each in several]}
    results = carry_out(cells, "rows.sqlite")[1]
    assert results.runs["run_id"].nunique() < len(results.runs) == 8
    for row in results.runs.itertuples():
        heading = f"run {row.cell}/{row.replicate} · {row.run_id} · "
        assert osim.transcript(results, int(row.Index)).startswith(heading)


def test_other_runs_are_not_read(results: Results) -> None:
    """One run of many is told as fast as one of few: damage to another one goes unseen."""
    shutil.copy(results.url.removeprefix("sqlite:///"), "damaged.sqlite")
    with sqlite3.connect("damaged.sqlite") as connection:
        connection.execute("update turns set step = 99 where run_id = ?", (results.run_ids[1],))
        connection.execute("delete from opinions where run_id = ?", (results.run_ids[1],))
    connection.close()
    first, second = (list(results.runs["run_id"]).index(run_id) for run_id in results.run_ids)
    damaged = osim.load("damaged.sqlite")
    assert osim.transcript(damaged, first) == osim.transcript(results, first)
    with pytest.raises(StoreError, match="the store is damaged"):
        osim.transcript(damaged, second)


def test_a_run_is_told_as_far_as_it_is_on_record() -> None:
    """Also while it is being written; results that were loaded before show what came after."""
    told = []

    def look(number: int) -> None:
        if number in (6, 12):
            time.sleep(0.3)
            told.append(osim.transcript(osim.load("open.sqlite")))

    results = carry_out(SMALL, "open.sqlite", watched(noticed=look)[0], slots=1)[1]
    whole = osim.transcript(results)
    first, second, last = (each.count("\nstep ") for each in (*told, whole))
    assert 0 < first < second < last == 12
    assert all("· running ·" in each for each in told)
    uncoded = [re.sub(r"  \[.*\]\n", "\n", each).split("\n\n")[1:] for each in (*told, whole)]
    assert set(uncoded[0]) < set(uncoded[1]) < set(uncoded[2])


def test_the_largest_changes_come_first_with_what_was_read_just_before(results: Results) -> None:
    found = transcript_data(results, shifts=3)
    sizes = [abs(turn["change"]) for turn in found["turns"]]
    assert sizes == sorted(sizes, reverse=True)
    assert 0 < len(sizes) <= 3
    told = osim.transcript(results, shifts=3)
    for turn in found["turns"]:
        assert f"change {turn['change']:+g}" in told
        for ref in turn["reads"]:
            assert f"> {found['read'][ref]['name']}: {found['read'][ref]['text']}" in told
    with pytest.raises(SpecError, match="shifts must be 1 or more"):
        osim.transcript(results, shifts=0)


def test_json_holds_all_turns_and_agents(results: Results) -> None:
    found = json.loads(json.dumps(transcript_data(results, run=1), allow_nan=False))
    assert [turn["turn"] for turn in found["turns"]] == list(range(12))
    assert found["run_id"] == results.runs.iloc[1]["run_id"]
    assert len(found["agents"]) == results.runs.iloc[1]["n_agents"]
