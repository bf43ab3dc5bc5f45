"""The published data of the Habermas Machine: small files of the same shape, and what is said about others."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from opinionsim.consensus import candidate_table, check_split, import_habermas, policy_table
from opinionsim.errors import SpecError

QUESTIONS = "230118_chinchilla_questions.json"
NAN = float("nan")

QUESTION = {
    "metadata.version": "TRAINING_DATA_V1",
    "launch_id": "L1",
    "question.id": "S17",
    "question.text": "Should the arts be funded?",
    "question.topic": 3,
    "question.split": "TRAIN",
    "question.affirming_statement": "The arts should be funded.",
    "question.negating_statement": "The arts should NOT be funded.",
}


def comparison(citizen: str, **changed: Any) -> dict[str, Any]:
    """A row of candidate comparisons: one person, one round, two candidates."""
    return {
        **QUESTION,
        "metadata.participant_id": citizen,
        "worker_id": f"w-{citizen}",
        "iteration_index": 0,
        "own_opinion.text": f"I am {citizen}.",
        "own_opinion.metadata.provenance": "HUMAN_CITIZEN",
        "candidates.metadata.id": ["A", "B"],
        "candidates.text": ["Fund them.", "Do not."],
        "candidates.metadata.provenance": ["MODEL_MEDIATOR", "HUMAN_MEDIATOR"],
        "candidates.metadata.generative_model.api_version": ["sft-70b", None],
        "candidates.metadata.reward_model.api_version": ["rm", None],
        "ratings.agreement": ["STRONGLY_AGREE", "SOMEWHAT_DISAGREE"],
        "ratings.quality": ["EXCELLENT_QUALITY", "TERRIBLE_QUALITY"],
        # In another order than the candidates.
        "rankings.candidate_ids": ["B", "A"],
        "rankings.numerical_ranks": [1, 0],
        "candidates.prompt_text": ["long", "long"],
        **changed,
    }


def position(citizen: str, index: int, agreement: str, **changed: Any) -> dict[str, Any]:
    """A row of position statement ratings."""
    return {
        **QUESTION,
        "metadata.participant_id": citizen,
        "worker_id": f"w-{citizen}",
        "metadata.provenance": "HUMAN_CITIZEN",
        "rating_index": index,
        "ratings.agreement": [agreement],
        **changed,
    }


def published() -> dict[str, list[dict[str, Any]]]:
    """Rows of each file."""
    survey = {
        "metadata.participant_id": "c1",
        "question.id": "S17",
        "opinion.text": "I am c1.",
        "candidate.text": "Fund them.",
    }
    return {
        "hm_all_candidate_comparisons.parquet": [
            comparison("c1"),
            comparison("c2", **{"ratings.quality": ["MOCK", "NEUTRAL"]}),
            comparison("bot", **{"own_opinion.metadata.provenance": "BOT_CITIZEN"}),
            comparison("c1", iteration_index=1, **{"candidates.metadata.id": ["C", "C"]}),
        ],
        "hm_all_position_statement_ratings.parquet": [
            position("c1", 0, "DISAGREE"),
            position("c1", 1, "AGREE"),
            position("c3", 0, "NEUTRAL"),
            position("c4", 0, "", **{"ratings.agreement": None}),
            position("bot", 0, "MOCK", **{"metadata.provenance": "BOT_CITIZEN"}),
        ],
        "hm_all_final_preference_rankings.parquet": [{"worker_id": "w-c1", "numerical_ranks": [0, 1]}],
        "hm_all_round_survey_responses.parquet": [survey],
    }


ENTRIES = [
    {
        "id": "S17",
        "question": "Should the arts be funded?",
        "affirming_statement": "The arts should be funded.",
        "negating_statement": "The arts should NOT be funded.",
        "topic": 3,
        "split": "train",
    },
    {
        "id": "S18",
        "question": "Is pornography wrong?",
        "affirming_statement": "Pornography is wrong",
        "negating_statement": "Pornography is NOT wrong.",
        "topic": 4,
        "split": "ood_test",
    },
]


def write(folder: Path, tables: dict[str, list[dict[str, Any]]], entries: Any = ENTRIES) -> Path:
    for name, rows in tables.items():
        pd.DataFrame(rows).to_parquet(folder / name)
    (folder / QUESTIONS).write_text(json.dumps(entries), encoding="utf-8")
    return folder


def test_every_rating_by_a_person_is_a_row(tmp_path: Path) -> None:
    found = import_habermas(write(tmp_path, published())).ratings
    assert list(found.columns) == [
        *("group", "round", "citizen", "candidate", "policy", "pass", "agreement", "quality", "rank", "question"),
        *("opinion", "statement", "topic", "split", "launch", "worker", "evidence"),
    ]
    assert set(found["group"]) == {"TRAINING_DATA_V1/L1/S17"}
    assert set(found["evidence"]) == {"human"}
    shown = found[["citizen", "round", "candidate", "pass", "agreement", "quality", "rank"]]
    expected = pd.DataFrame(
        [
            ("c1", 0, "A", 1, 7, 7, 1),
            ("c1", 0, "B", 1, 3, 1, 2),
            ("c2", 0, "A", 1, 7, NAN, 1),
            ("c2", 0, "B", 1, 3, 4, 2),
            ("c1", 1, "C", 1, 7, 7, NAN),
            ("c1", 1, "C", 2, 3, 1, NAN),
            ("c1", 0, "position", 1, 2, NAN, NAN),
            ("c1", 1, "position", 1, 6, NAN, NAN),
            ("c3", 0, "position", 1, 4, NAN, NAN),
        ],
        columns=shown.columns,
    )
    pd.testing.assert_frame_equal(shown, expected, check_dtype=False)
    assert set(found.loc[found["candidate"] == "A", "policy"]) == {"model_mediator/sft-70b/rm"}
    assert set(found.loc[found["candidate"] == "B", "policy"]) == {"human_mediator"}
    positions = found[found["policy"] == "position"]
    assert set(positions["statement"]) == {"The arts should be funded."}
    assert list(positions["opinion"].fillna("none")) == ["I am c1.", "I am c1.", "none"]
    assert set(found["split"]) == {"train"}
    assert set(found["worker"]) == {"w-c1", "w-c2", "w-c3"}


def test_questions_become_topics_with_two_position_statements(tmp_path: Path) -> None:
    found = import_habermas(write(tmp_path, published()))
    assert list(found.topics) == ["s17", "s18"]
    arts, wrong = found.topics.values()
    assert (arts.question, arts.title, arts.category) == (ENTRIES[0]["question"], ENTRIES[0]["question"], "Topic 3")
    assert arts.claims["negating"] == "The arts should NOT be funded."
    assert arts.claim("affirming").statement == "The arts should be funded."
    assert wrong.claim("affirming").statement == "Pornography is wrong."
    assert arts.accepted is None
    check_split(found.questions)
    assert list(found.survey["evidence"]) == ["human"]
    assert list(found.preferences.columns) == ["worker_id", "numerical_ranks", "evidence"]


def test_a_question_with_one_statement_for_both_sides_has_no_topic(tmp_path: Path) -> None:
    same = {**ENTRIES[1], "id": "S19", "affirming_statement": "typo", "negating_statement": "typo "}
    found = import_habermas(write(tmp_path, published(), [*ENTRIES, same]))
    assert list(found.topics) == ["s17", "s18"]
    assert list(found.questions["id"]) == ["S17", "S18", "S19"]


def test_equal_and_missing_ranks(tmp_path: Path) -> None:
    tables = published()
    lists = {"candidates.metadata.id": ["A", "B", "C"], "rankings.candidate_ids": ["A", "B", "C"]}
    three = ["candidates.text", "candidates.metadata.provenance", "ratings.agreement", "ratings.quality"]
    row = comparison("c1", **lists, **{"rankings.numerical_ranks": [1, 0, 0]})
    models = [name for name in row if name.endswith("api_version")]
    row |= {name: [*row[name], row[name][1]] for name in (*three, *models, "candidates.prompt_text")}
    tables["hm_all_candidate_comparisons.parquet"] = [row, {**row, "rankings.numerical_ranks": [-1, -1, -1]}]
    found = import_habermas(write(tmp_path, tables)).ratings
    assert list(found["rank"][:3]) == [3, 1, 1]
    assert found["rank"][3:].isna().all()
    assert list(found["pass"][:6]) == [1, 1, 1, 2, 2, 2]


def test_the_models_that_wrote_need_not_be_known(tmp_path: Path) -> None:
    tables = published()
    for row in tables["hm_all_candidate_comparisons.parquet"]:
        for role in ("generative", "reward"):
            del row[f"candidates.metadata.{role}_model.api_version"]
    policies = set(import_habermas(write(tmp_path, tables)).ratings["policy"])
    assert policies == {"model_mediator", "human_mediator", "position"}


def test_all_that_is_missing_is_named_in_one_error(tmp_path: Path) -> None:
    tables = published()
    for row in tables["hm_all_candidate_comparisons.parquet"]:
        del row["ratings.quality"], row["launch_id"]
    write(tmp_path, tables, [{key: value for key, value in each.items() if key != "topic"} for each in ENTRIES])
    (tmp_path / "hm_all_round_survey_responses.parquet").unlink()
    with pytest.raises(SpecError) as raised:
        import_habermas(tmp_path)
    said = str(raised.value)
    assert "hm_all_candidate_comparisons.parquet lacks launch_id, ratings.quality;" in said
    assert "hm_all_round_survey_responses.parquet is missing;" in said
    assert said.endswith(f"{QUESTIONS} lacks topic")


def _with(name: str, **changed: Any) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        tables = published()
        tables[name] = [{**row, **changed} for row in tables[name]]
        return write(folder, tables)

    return make


def _cut(folder: Path) -> Path:
    write(folder, published())
    (folder / "hm_all_round_survey_responses.parquet").write_bytes(b"PAR1")
    return folder


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_with("hm_all_candidate_comparisons.parquet", **{"candidates.text": ["one"]}), "lists of different lengths"),
        (
            _with("hm_all_candidate_comparisons.parquet", **{"ratings.agreement": ["AGREE", "PERHAPS"]}),
            "agreement: 'PERHAPS' is none of STRONGLY_DISAGREE",
        ),
        (_with("hm_all_position_statement_ratings.parquet", **{"ratings.agreement": ["5"]}), "'5' is none of"),
        (_cut, "survey_responses.parquet: cannot be read"),
        (lambda folder: write(folder, published(), [{**ENTRIES[0], "id": None}, ENTRIES[1]]), "question 0, .*lacks"),
        (lambda folder: write(folder, published(), [ENTRIES[0], ENTRIES[0]]), "duplicate 's17'"),
        (lambda folder: write(folder, published(), {"questions": 3}), "cannot be read"),
        (lambda folder: folder / "nowhere", "comparisons.parquet is missing; .*questions.json is missing"),
    ],
)
def test_bad_files(tmp_path: Path, make: Callable[[Path], Path], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        import_habermas(make(tmp_path))


def test_a_rating_of_nobody_is_no_row(tmp_path: Path) -> None:
    make = _with("hm_all_candidate_comparisons.parquet", **{
        "ratings.agreement": ["MOCK", "MOCK"], "ratings.quality": ["MOCK", "MOCK"],
        "rankings.numerical_ranks": [-1, -1],
    })  # fmt: skip
    found = import_habermas(make(tmp_path)).ratings
    assert set(found["candidate"]) == {"position"}
    assert np.isnan(found["quality"]).all()


def test_published_ratings_are_evaluated_like_those_of_a_session(tmp_path: Path) -> None:
    found = import_habermas(write(tmp_path, published())).ratings
    table = candidate_table(found)
    assert set(table["candidate"]) >= {"A", "B"}
    assert set(policy_table(found)["policy"]) >= {"model_mediator/sft-70b/rm", "human_mediator"}


def test_the_extra_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, published())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SpecError, match=r"needs .*\(pyarrow is missing\); .* pip install 'opinionsim\[parquet\]'"):
        import_habermas(tmp_path)
