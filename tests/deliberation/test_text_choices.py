"""Judges choose between texts of two conditions: what they are shown, what is counted, and what the table says."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.stats import beta
from typer.testing import CliRunner

import opinionsim as osim
from opinionsim.analysis import Table
from opinionsim.cli import app
from opinionsim.deliberation import choices, mixed_logit, read_choice
from opinionsim.errors import Rejected, SpecError
from opinionsim.llm import GivenReplies, Question
from opinionsim.messages import ChatMessage
from opinionsim.report import tables_of
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from tests.support.people import Double
from tests.support.running import assert_same, changed, ended, finished

GROUP, ALONE = {"cell": "cast=group, task=wishes"}, {"cell": "cast=alone, task=idea"}
JUDGES = [{"persona": f"A buyer from town {place}."} for place in range(8)]
#: Texts of a group, whose last is that of its second member, beside those of one writer; and within the group.
SPEC: dict[str, Any] = {
    "name": "pairs",
    "seed": 4,
    "replicates": 10,
    "task": "Which would you buy?",
    "interaction": {"kind": "chain", "order": "cast"},
    "model": {"name": "given"},
    "sweep": [
        {"cast": [{"label": "group", "value": [{}, {}]}], "task": [{"label": "wishes", "value": "What do you want?"}]},
        {"cast": [{"label": "alone", "value": [{}]}], "task": [{"label": "idea", "value": "Have an idea."}]},
        {
            "interaction": [
                {"label": "buying", "kind": "choices", "text": GROUP, "other": ALONE},
                {"label": "second", "kind": "choices", "text": GROUP, "other": {**GROUP, "agent": 0}},
            ],
            "cast": [{"label": "judges", "value": JUDGES}],
        },
    ],
}
GOOD, PLAIN = "A lamp that saves power.", "A lamp."


def judged_by(choose: Callable[[str], str], written: Callable[[str], str] = lambda asked: GOOD) -> GivenReplies:
    """A model that answers by `choose` as a judge, by `written` after others, and plainly where it is the first."""

    def reply(prompt: list[ChatMessage]) -> str:
        asked = prompt[-1].content
        if "Which of these two texts" in asked:
            return choose("\n".join(each.content for each in prompt))
        return written(asked) if PLAIN in asked else PLAIN

    return GivenReplies(reply)


def better(asked: str) -> str:
    """The letter of the good text."""
    return "A" if asked.index(GOOD) < asked.index(f"{PLAIN}\n") else "B"


def table_of(results: osim.Results) -> Table:
    """The table of choices."""
    (found,) = tables_of(results, what="choices")
    return found


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("A", "A"),
        ("**B**", "B"),
        ("Text b.", "B"),
        ("It is cheaper.\n\nAnswer: A\n", "A"),
        ("A\nA", "A"),
        ("A good offer", None),
        ("A\nB", None),
        ("Neither.", None),
        ("", None),
    ],
)
def test_a_choice_is_a_letter_on_a_line_of_its_own(text: str, letter: str | None) -> None:
    if letter is not None:
        assert read_choice("reply", text, ()).decision == letter
        return
    with pytest.raises(Rejected, match="the letter A or B is needed on a line of its own"):
        read_choice("reply", text, ())


def test_each_judge_is_shown_each_pair_once_in_places_that_are_drawn() -> None:
    results = finished(SPEC, model=judged_by(better), slots=7)
    found = choices(results)
    assert found.groupby(["cell", "judge"])["pair"].apply(sorted).tolist() == [list(range(10))] * 16
    # Runs of one block share draws: of each judge of one there is one like it in the other.
    assert found.groupby("judge")["pair"].apply(tuple).nunique() == len(JUDGES)
    # What is good is chosen wherever it stands.
    assert (found["chosen"] == 1).all()
    # 160 fair draws lie within four standard errors of one half.
    assert abs(found["first"].mean() - 0.5) < 4 * 0.5 / math.sqrt(len(found))
    turns = results.turns[results.turns["kind"] == "choice"]
    assert {frozenset(reads) for reads in turns["reads"]} == {
        frozenset((f"text-{pair}", f"other-{pair}")) for pair in range(10)
    }
    prompt = results.prompt(turns["run_id"].iloc[0], 0)
    assert JUDGES[0]["persona"] in prompt[0].content
    assert prompt[-1].content.startswith("Which would you buy?\n\nText A:\n")
    assert all(word not in prompt[-1].content for word in ("group", "alone", "other-", "text-"))
    assert all(each.difference == "" for each in replay(results))
    assert osim.plan(load_experiment({**SPEC, "model": {"name": "scripted"}})).calls == len(results.calls)
    assert_same(finished(SPEC, "one.sqlite", judged_by(better), slots=1), results, but_for=("store",))


def test_a_judge_who_always_says_a_shows_in_the_share_of_what_stood_first() -> None:
    table = table_of(finished(SPEC, model=judged_by(lambda asked: "A")))
    rows = table.frame.set_index("topic")
    assert rows.index.tolist() == ["overall", "buying", "second"]
    assert (rows["first shown"] == 1).all()
    assert abs(rows.loc["overall", "share"] - 0.5) < 4 * 0.5 / math.sqrt(160)
    assert rows["p"].isna().all()
    assert any(note.startswith("No p-value") for note in table.notes)


def test_what_is_refused_or_not_readable_counts_nowhere() -> None:
    def choose(asked: str) -> str:
        # The judge of town 1 refuses, and that of town 2 gives no letter, however often it is asked.
        said = {"town 1.": "I'm sorry, but I can't help with that.", "town 2.": "Both."}
        return next((text for town, text in said.items() if town in asked), None) or better(asked)

    results = finished(SPEC, model=judged_by(choose))
    found, table = choices(results), table_of(results)
    lost = found[found["chosen"].isna()]
    assert lost.groupby(["judge", "status"]).size().tolist() == [10] * 4
    assert table.frame["choices"].tolist() == [120, 60, 60]
    assert table.frame["missing"].tolist() == [40, 20, 20]
    assert (table.frame["share"] == 1).all()
    (told,) = [note for note in table.notes if note.startswith("Missing: ")]
    assert {"20 unreadable", "20 refused"} == set(told[9:].partition(";")[0].split(", "))


def test_a_pair_without_a_text_is_left_out() -> None:
    number = iter(range(10))

    def written(asked: str) -> str:
        return "I'm sorry, but I can't help with that." if next(number) in (2, 5) else GOOD

    spec = changed(SPEC, model__replies={"refused": {"reask": 0}})
    found = choices(finished(spec, model=judged_by(better, written), slots=1))
    assert found["pair"].nunique() == 8
    assert found.groupby(["cell", "judge"]).size().tolist() == [8] * 16
    assert found["chosen"].notna().all()


def test_a_text_is_never_judged_beside_itself(tmp_path: Path) -> None:
    pair = {"kind": "choices", "text": {"cell": "cast=two"}, "other": {"cell": "cast=two", "agent": 1}}
    sweep = [
        {"cast": [{"label": "two", "value": [{"name": "Ada"}, {"name": "Ben"}]}]},
        {"cast": [{"label": "judges", "value": [{"persona": "a tenant"}]}], "interaction": [pair]},
    ]
    chain = {"kind": "chain", "order": "shuffled"}
    spec = {
        "name": "same",
        "seed": 1,
        "task": "Open on Sundays?",
        "replicates": 8,
        "interaction": chain,
        "sweep": sweep,
    }
    results = osim.run(load_experiment(spec), str(tmp_path / "s.sqlite"))
    written = results.turns[results.turns["kind"] != "choice"]
    last = written.sort_values("turn").groupby("run_id")["agent"].last()
    assert 0 < len(choices(results)) == (last != 1).sum() < 8


def test_a_run_of_judges_goes_on_where_it_stopped_and_refuses_texts_that_are_not_there() -> None:
    whole = finished(SPEC, "whole.sqlite", judged_by(better))
    stopped = ended(changed(SPEC, execution={"budget": {"calls": 90}}), "s.sqlite", judged_by(better), slots=3)
    assert stopped.exceeded
    assert_same(finished(SPEC, model=judged_by(better)), whole, but_for=("store",))

    def fails(asked: str) -> str:
        raise PermissionError("no such luck")

    summary = ended(SPEC, "none.sqlite", judged_by(better, fails))
    judges = [run for run in load_experiment(SPEC).runs if run.sources]
    assert [len(run.sources) for run in judges] == [20, 20]
    for run in judges:
        told = f"it takes turns from run {run.sources[0].run_id} of cell 'cast=group, task=wishes', which is not "
        assert summary.errors[run.run_id] == f"run {run.run_id}: {told}complete; complete that run first"


def _judging(**fields: Any) -> dict[str, Any]:
    """The specification with one kind of judges, some fields of whose interaction are others."""
    kind = {"label": "buying", "kind": "choices", "text": GROUP, "other": ALONE, **fields}
    cast = [{"label": "judges", "value": JUDGES}]
    return {**SPEC, "sweep": [*SPEC["sweep"][:2], {"interaction": [kind], "cast": cast}]}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (_judging(other=GROUP), "selects the same texts as text; give another cell, or another agent"),
        (_judging(other={"cell": "alone"}), r"interaction\.other\.cell: no cell has the label 'alone'; valid: 'cast"),
        (_judging(other={**GROUP, "agent": 2}), "other.cell: the cell 'cast=.*' has no agent 2; valid: 0 to 1"),
        (_judging(other={**GROUP, "agent": -1}), "must be at least 0; got -1"),
        (
            {**_judging(), "cast": [{}], "sweep": [
                {"cast": [{"label": "group", "value": [{"seat": {}}]}], "task": [{"label": "wishes", "value": "?"}]},
                *_judging()["sweep"][1:]]},
            "people take part in the cell",
        ),
    ],
)  # fmt: skip
def test_pairs_that_cannot_be_are_refused(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        osim.plan(load_experiment({**spec, "model": {"name": "scripted"}}))


def test_people_judge_at_seats_and_88_of_100_are_tested_exactly() -> None:
    spec = _judging()
    spec["sweep"][2]["cast"] = [{"label": "people", "value": [{"seat": {}}] * 10}]

    # Twelve of the hundred go the other way: those of the first judge, and two of the second.
    def says(question: Question) -> str:
        assert question.form.items == ("A", "B")
        assert question.text.endswith("Two texts stand above. Which of them do you choose?")
        own = "AB"[[message.text for message in question.messages].index(GOOD)]
        return own if question.turn >= 12 else "AB".replace(own, "")

    results = finished(spec, model=judged_by(better), people=Double(says, evidence="human"))
    (row,) = table_of(results).frame.to_dict("records")
    assert (row["choices"], row["chosen"], row["judges"], row["evidence"]) == (100, 88, 10, "human")
    tail = sum(math.comb(100, k) for k in range(88, 101)) / 2**100
    assert row["p"] == pytest.approx(2 * tail, rel=1e-9)
    exact = (beta.ppf(0.025, 88, 13), beta.ppf(0.975, 89, 12))
    assert (row["share_ci_low"], row["share_ci_high"]) == pytest.approx(exact, rel=1e-9)
    logit = mixed_logit(*(choices(results)[name] for name in ("chosen", "judge", "cell")))
    assert row["odds"] == pytest.approx(math.exp(logit.intercept))
    assert (row["var. persons"] > 1, math.isnan(row["var. topics"])) == (True, True)
    (printed,) = table_of(results).rows
    assert "< 0.001" in printed


def _drawn(seed: int, between: float, topics: int = 1, judges: int = 30, pairs: int = 15) -> tuple[np.ndarray, ...]:
    """Outcomes of judges whose log odds lie around 1 with a variance, with the judges and the topics."""
    rng = np.random.default_rng(seed)
    judge = np.repeat(np.arange(judges * topics), pairs)
    odds = 1 + rng.normal(0, math.sqrt(between), judges * topics)[judge]
    return rng.random(odds.size) < 1 / (1 + np.exp(-odds)), judge, judge // judges


def test_a_mixed_logit_recovers_the_intercept_and_the_variance() -> None:
    found = [mixed_logit(*_drawn(seed, 2.0)) for seed in range(40)]
    # A right procedure holds the truth in fewer than 34 of 40 intervals once in a thousand times.
    assert sum(each.low <= 1 <= each.high for each in found) >= 34
    assert np.mean([each.persons for each in found]) == pytest.approx(2.0, abs=0.4)
    assert np.mean([each.intercept for each in found]) == pytest.approx(1.0, abs=0.15)
    with_topics = mixed_logit(*_drawn(0, 2.0, topics=3))
    assert with_topics.topics == pytest.approx(0, abs=0.2)
    assert with_topics.high - with_topics.low > found[0].high - found[0].low, "three topics are few"


def test_a_mixed_logit_without_variance_is_the_plain_logit() -> None:
    # Each judge gives the same outcomes, so that no two differ.
    outcomes, judge = np.tile([1, 1, 1, 0], 30), np.repeat(np.arange(10), 12)
    found = mixed_logit(outcomes, judge, judge % 2)
    error = 1 / math.sqrt(120 * 0.75 * 0.25)
    assert found.intercept == pytest.approx(math.log(3), abs=1e-3)
    assert (found.persons, found.topics) == pytest.approx((0, 0), abs=1e-4)
    assert (found.high - found.low) / 2 == pytest.approx(12.706205 * error, rel=1e-2)
    assert all(math.isnan(each) for each in mixed_logit(np.ones(12), judge[:12], judge[:12]))


def test_a_person_at_the_terminal_judges_what_was_written_first(tmp_path: Path) -> None:
    spec = {**_judging(), "model": {"name": "scripted"}, "replicates": 2}
    spec["sweep"][2]["cast"] = [{"label": "one", "value": [{"seat": {}}]}]
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    asked = ["room", str(tmp_path / "s.yaml"), "--terminal", "--store", str(tmp_path / "s.sqlite")]
    done = CliRunner().invoke(app, asked, input="1\nB\n")
    assert done.exit_code == 0, done.output
    results = osim.load(str(tmp_path / "s.sqlite"))
    assert results.turns.query("kind == 'choice'")["message"].tolist() == ["A", "B"]
    assert choices(results).empty, "a trial is no result"
