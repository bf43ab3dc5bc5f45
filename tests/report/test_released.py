"""What may not be passed on stands nowhere in what others get: frames, prompts, transcripts, manifest, archive."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import opinionsim as osim
from opinionsim.llm import Question, Seat
from opinionsim.prompts import load_pack
from opinionsim.report import released, study, tables_of, verify, write_archive
from opinionsim.store import Results, SeatRow, open_store
from tests.support.archives import STUDY, all_bytes, carried_out
from tests.support.examples import few
from tests.support.provider import StubProvider

pytestmark = pytest.mark.usefixtures("without_figures")

ASKED = {
    "name": "asked",
    "replicates": 2,
    "task": "Should the library open on Sundays?",
    "cast": [{"persona": "a teacher"}, {"name": "Guest", "seat": {}}, {"persona": "a nurse"}],
    "interaction": {"kind": "tests.support.talking:Talk", "steps": 1, "order": "cast", "reading": "all"},
}
SAID = "Zanzibar marmalade is what I think of Sundays."


class Speaking:
    """A double of a person who says one thing, or one in each run."""

    evidence = "human"

    def __init__(self, text: str) -> None:
        self.text = text

    async def answer(self, question: Question) -> str:
        return self.text.format(run=question.run_id)


def told(results: Results) -> str:
    """Everything that results show, as one text."""
    frames = [getattr(results, name).to_csv() for name in ("runs", "agents", "turns", "opinions", "calls")]
    prompts = [json.dumps(each, ensure_ascii=False) for each in results.prompts()]
    keys = results.calls[["run_id", "turn"]].itertuples(index=False, name=None)
    literal = [str(results.prompt(run, turn)) for run, turn in keys]
    said = [osim.transcript(results, row) for row in range(len(results.runs))]
    said += [osim.transcript(results, row, shifts=3) for row in range(len(results.runs))]
    stated = json.dumps([results.spec, results.manifest], ensure_ascii=False)
    return "\n".join([*frames, *prompts, *literal, *said, stated])


def nowhere(secrets: list[str], results: Results, tmp_path: Path) -> None:
    """No secret stands in what is shown, or in any file of an archive; all of them stand in the results themselves."""
    shown = released(results)
    for secret in secrets:
        assert secret in told(results)
        assert secret not in told(shown)
    assert "[withheld sha256:" in told(shown)
    write_archive(results, tmp_path / "archive")
    written = all_bytes(tmp_path / "archive")
    assert [secret for secret in secrets if secret.encode() in written] == []
    assert all(sentence.encode() in written for sentence in shown.withheld)


def test_where_nothing_is_withheld_the_results_are_those_that_were_given(small: Results) -> None:
    assert released(small) is small
    assert small.withheld == ()


def test_words_of_a_person_who_was_not_asked(tmp_path: Path) -> None:
    results = carried_out(ASKED, tmp_path, seats={1: Seat(Speaking(SAID))})
    nowhere([SAID], results, tmp_path)
    shown = released(results)
    assert len(shown.withheld) == 1
    assert "2 seats" in shown.withheld[0]
    texts = shown.turns.set_index("agent")["message"]
    assert all(texts[1].str.fullmatch(r"\[withheld sha256:[0-9a-f]{24}\]"))
    assert texts[[0, 2]].equals(results.turns.set_index("agent")["message"][[0, 2]])


def test_one_word_is_withheld_where_it_is_a_message_and_stays_where_it_is_a_word(tmp_path: Path) -> None:
    results = carried_out(ASKED, tmp_path, seats={1: Seat(Speaking("Sundays"))})
    shown = released(results)
    row = results.turns[results.turns["agent"] == 2].iloc[0]
    before, after = (str(each.prompt(row["run_id"], int(row["turn"]))) for each in (results, shown))
    assert ASKED["task"] in after
    assert before.count("Sundays") == after.count("Sundays") + 1


def test_a_short_text_with_blanks_before_it(tmp_path: Path) -> None:
    results = carried_out(ASKED, tmp_path, seats={1: Seat(Speaking("  Zanzibar\tmarmalade  "))})
    nowhere(["Zanzibar"], results, tmp_path)


def test_characters_that_no_file_holds_are_released_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with StubProvider(lambda messages, seed: f"Half a pair \ud800 of {seed}.") as stub:
        model = {"name": "openai:stub", "options": {"base_url": stub.base_url}}
        spec = {**STUDY, "model": model, "measurement": {"classifier": "lexicon"}, "sweep": {}}
        results = carried_out(spec, tmp_path)
    assert any("\ud800" in reply for reply in results.calls["reply"])
    assert released(results, anonymous=True).calls["reply"].equals(results.calls["reply"])
    write_archive(results, tmp_path / "archive", anonymous=True)
    assert verify(tmp_path / "archive").problems == ()


def test_paths_are_left_out_for_blind_review(tmp_path: Path) -> None:
    results = carried_out(
        {**STUDY, "sweep": {}, "description": "Files: /home/ada/x.csv, file:///srv/ada/y.csv"}, tmp_path
    )
    model = {**results.spec["model"], "options": {"organization": "org-ada", "weights": "C:\\Ada L\\w.bin"}}
    row = replace(results.design_row, spec={**results.spec, "model": model})
    shown = released(Results(results.url, row), anonymous=True).spec
    assert shown["description"] == "Files: x.csv, file://y.csv"
    assert shown["model"]["options"] == {"organization": None, "weights": "w.bin"}


def test_words_of_a_person_who_consents_are_passed_on(tmp_path: Path) -> None:
    results = carried_out(ASKED, tmp_path, seats={1: Seat(Speaking("I am for it, as in {run}."))})
    first, second = results.run_ids
    with open_store(results.url) as store:
        for run_id, publishes in ((first, True), (second, False)):
            seat = SeatRow(run_id, 1, consent="hash", consented_at=1.0, publishes=publishes)
            store.change_seat(run_id, 1, lambda _, seat=seat: seat)
    shown = released(osim.load(results.url))
    assert dict(study(shown).design)["People"] == "2 of 6 in the cast; words of 1 may be published"
    assert "2 of 6 in the cast" in study(shown).methods
    said = shown.turns[shown.turns["agent"] == 1].set_index("run_id")["message"]
    assert said[first] == f"I am for it, as in {first}."
    assert said[second].startswith("[withheld sha256:")


def test_equal_words_have_equal_checksums_that_follow_from_all_that_is_withheld(tmp_path: Path) -> None:
    once = [released(carried_out(ASKED, folder, seats={1: Seat(Speaking(SAID))})) for folder in (tmp_path, tmp_path)]
    texts = [set(each.turns.loc[each.turns["agent"] == 1, "message"]) for each in once]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 1


def _survey(folder: Path, **mapping: Any) -> dict[str, Any]:
    rows = {"job": [f"lighthouse keeper {n} of Umbria" for n in range(8)], "sex": ["F", "M"] * 4}
    pd.DataFrame(rows).to_csv(folder / "village.csv", index=False)
    columns = [{"column": "job", "clause": "You are a ${value}"}, {"column": "sex", "clause": "You are ${value}"}]
    (folder / "village.yaml").write_text(yaml.safe_dump({"name": "village", "columns": columns, **mapping}))
    survey = {"file": str(folder / "village.csv"), "mapping": str(folder / "village.yaml")}
    population = {"personas": "survey", "size": 4, "initial_opinions": "uniform"}
    return {**STUDY, "survey": survey, "population": population}


def test_respondents_of_a_survey_unless_its_mapping_says_that_they_may_be_passed_on(tmp_path: Path) -> None:
    results = carried_out(_survey(tmp_path), tmp_path)
    nowhere(["lighthouse", "keeper 3", "Respondent 1"], results, tmp_path)
    agents = released(results).agents
    assert agents["sex"].nunique() == len(agents), "equal values of two respondents must not be seen to be equal"


def test_respondents_that_may_be_passed_on(tmp_path: Path) -> None:
    results = carried_out(_survey(tmp_path, licence="CC0", pass_on=True), tmp_path)
    assert released(results) is results


def _pack(folder: Path) -> str:
    for name, text in load_pack("default").contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text + "\npass_on: false\n" if name == "pack.yaml" else text)
    return str(folder)


FILES: Mapping[str, tuple[dict[str, Any], list[str]]] = {
    "personas": (
        {
            "name": "villagers",
            "pass_on": False,
            "personas": [
                {
                    "name": "Ada",
                    "attributes": {"work": "keeper of the blue lighthouse"},
                    "background": "Ada keeps bees.",
                },
                {"name": "Bo", "attributes": {"work": "warden of the old quarry"}},
            ],
        },
        ["blue lighthouse", "Ada keeps bees", "old quarry"],
    ),
    "topics": (
        {
            "pass_on": False,
            "topics": [
                {"name": "quarry", "masked": False, "claims": {"for": "the quarry of Umbria should be flooded"}}
            ],
        },
        ["quarry of Umbria should be flooded"],
    ),
    "messages": (
        {"messages": ["The blue lighthouse was sold.", "Nobody asked the keeper of it."], "pass_on": False},
        ["lighthouse was sold", "Nobody asked the keeper"],
    ),
}


@pytest.mark.parametrize("kind", few([*FILES, "prompts"], 2))
def test_files_that_say_so(kind: str, tmp_path: Path) -> None:
    spec: dict[str, Any] = {**STUDY, "sweep": {}}
    secrets = ["You are going to play one particular person"]
    if kind == "prompts":
        spec["prompts"] = _pack(tmp_path / "pack")
    else:
        content, secrets = FILES[kind]
        path = tmp_path / f"{kind}.yaml"
        path.write_text(yaml.safe_dump(content))
        spec |= {
            "personas": {"population": {"personas": str(path), "initial_opinions": "uniform"}},
            "topics": {"topic": {"file": str(path), "name": "quarry"}},
            "messages": {"interaction": {"kind": "external", "steps": 4, "messages": str(path)}},
        }[kind]
    nowhere(secrets, carried_out(spec, tmp_path), tmp_path)


def test_tables_are_those_of_the_results_themselves(tmp_path: Path) -> None:
    results = carried_out(_survey(tmp_path), tmp_path)
    assert [each.to_text() for each in tables_of(released(results))] == [each.to_text() for each in tables_of(results)]
