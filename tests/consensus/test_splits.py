"""Clusters of questions, splits that hold topics out, and the check that nothing is on two sides."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from hypothesis import assume, given, strategies as st
from sklearn.metrics import silhouette_score

from opinionsim.consensus import BRITISH_GOVERNMENT, check_split, cluster_questions, split_questions
from opinionsim.errors import MeasurementError, SpecError
from tests.support.examples import examples
from tests.support.tiny import save_tiny

#: Three groups of questions that share no word with another group.
GROUPS = {
    "buses": ["Should buses run at night?", "Should buses cost less?", "Should night buses cost less?"],
    "school": ["May school pupils vote?", "May school pupils cook lunch?", "Do school pupils need lunch?"],
    "parks": ["Are parks with benches worth it?", "Are more parks with trees worth it?", "Are trees in parks safe?"],
}
QUESTIONS = [question for group in GROUPS.values() for question in group]


def _same_groups(labels: np.ndarray, groups: list[int]) -> bool:
    """Whether two partitions are one, whatever their numbers."""
    return len(set(zip(labels.tolist(), groups, strict=True))) == len(set(groups)) == len(set(labels.tolist()))


def test_groups_without_a_common_word_are_the_clusters() -> None:
    found = cluster_questions(QUESTIONS, ks=range(2, 6), restarts=5)
    assert found.k == 3
    assert _same_groups(found.labels, [0, 0, 0, 1, 1, 1, 2, 2, 2])
    assert found.silhouettes.keys() == {2, 3, 4, 5}
    assert found.silhouettes[3] == pytest.approx(silhouette_score(found.vectors, found.labels))
    assert max(found.silhouettes.values()) == found.silhouettes[3]


def test_an_encoder_gets_texts_without_the_phrases() -> None:
    asked = [
        "Should the Government  fund the arts?",
        "Should we leave the UK, or should we not?",
        "Ukulele for Britain?",
    ]
    seen: list[str] = []

    def encoder(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return [[0.0], [1.0], [5.0]]

    found = cluster_questions(asked, encoder=encoder, without=BRITISH_GOVERNMENT, ks=[2])
    assert seen == ["fund the arts?", "leave the , or not?", "Ukulele for ?"]
    assert len(BRITISH_GOVERNMENT) == 7
    assert _same_groups(found.labels, [0, 0, 1])


def test_clusters_are_the_same_with_the_same_seed() -> None:
    points = np.random.default_rng(0).normal(size=(40, 3))
    asked = [f"Should it be {i}?" for i in range(40)]
    one, two, other = (
        cluster_questions(asked, encoder=lambda texts: points, ks=[7], restarts=1, seed=s) for s in (4, 4, 5)
    )
    assert one.labels.tolist() == two.labels.tolist()
    assert one.labels.tolist() != other.labels.tolist()
    assert cluster_questions(asked, encoder=lambda texts: points, restarts=1).silhouettes.keys() == set(range(5, 40, 5))


def test_a_folder_of_a_model_is_an_encoder(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "tiny")
    found = cluster_questions(QUESTIONS, encoder=folder, ks=[2])
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        ids = tokenizer(QUESTIONS[4], return_tensors="pt")["input_ids"]
        expected = model(input_ids=ids).last_hidden_state[0].mean(0).float().numpy()
    np.testing.assert_allclose(found.vectors[4], expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(SpecError, match="is not a folder"):
        cluster_questions(QUESTIONS, encoder=tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SpecError, match=r"empty' cannot be used: \w"):
        cluster_questions(QUESTIONS, encoder=tmp_path / "empty")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"questions": "Should it?"}, "must be non-blank texts"),
        ({"questions": [*QUESTIONS, " "]}, "must be non-blank texts"),
        ({"questions": QUESTIONS[:2]}, "ks: from 2 to 1 is valid, as 2 questions differ; got none"),
        ({"questions": ["Should we?"] * 9, "without": ["should we"]}, "contain no usable words"),
        ({"ks": [3, 9]}, "ks: from 2 to 8 is valid, as 9 questions differ; got 9"),
        ({"ks": [1]}, "ks: .*; got 1"),
        ({"ks": [2.5]}, "ks must be a whole number"),
        ({"ks": []}, "got none"),
        ({"restarts": 0}, "restarts must be a whole number of at least 1"),
        ({"encoder": lambda texts: [[1.0]]}, "one vector of finite numbers for each of 9 texts; got shape"),
        ({"encoder": lambda texts: [[float("nan")]] * 9}, "finite"),
    ],
)
def test_bad_arguments_of_clusters(change: dict[str, Any], said: str) -> None:
    with pytest.raises((SpecError, MeasurementError), match=said):
        cluster_questions(**{"questions": QUESTIONS, **change})


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__
    for name in [each for each in sys.modules if each.partition(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)

    def refuse(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "sklearn":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr("opinionsim.errors.import_module", refuse)
    with pytest.raises(
        MeasurementError, match=r"extra 'consensus' \(scikit-learn is missing\).*'opinionsim\[consensus\]'"
    ):
        cluster_questions(QUESTIONS, ks=[2])


def _line(sizes: list[int], places: list[float]) -> tuple[list[str], list[int], np.ndarray]:
    """Questions of topics that lie on a line: so many of each, all in one place."""
    topics = [topic for topic, size in enumerate(sizes) for _ in range(size)]
    return [f"Should it be {i}?" for i in range(len(topics))], topics, np.array([[places[t]] for t in topics])


def test_the_topics_held_out_lie_as_far_apart_as_the_others() -> None:
    # Distances: 0-1 is 1, 2-3 is 1, and every other pair of topics leaves a pair of another distance.
    asked, topics, vectors = _line([2, 2, 2, 2], [0, 1, 10, 11])
    found = split_questions(asked, topics, vectors, held_out=3, test=0.0, draws=200)
    held = set(found.loc[found["split"] == "ood_test", "topic"])
    assert held in ({0, 1}, {2, 3})
    # {0, 2} and {1, 3} are equal as well.
    unequal = split_questions(asked, topics, np.array([[0], [0], [1], [1], [10], [10], [13], [13.0]]), held_out=3)
    assert set(unequal.loc[unequal["split"] == "ood_test", "topic"]) in ({0, 1}, {2, 3}, {0, 2}, {1, 3}, {0, 3}, {1, 2})
    distances = {frozenset({0, 1}): 1, frozenset({2, 3}): 3, frozenset({0, 2}): 10, frozenset({1, 3}): 12}
    distances |= {frozenset({0, 3}): 13, frozenset({1, 2}): 9}
    chosen = frozenset(unequal.loc[unequal["split"] == "ood_test", "topic"])
    rest = frozenset(range(4)) - chosen
    best = min(abs(distances[pair] - distances[frozenset(range(4)) - pair]) for pair in distances)
    assert abs(distances[chosen] - distances[rest]) == best == 2


@examples(60)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=5, max_size=9),
    test=st.floats(0, 0.9),
    held_out=st.integers(2, 8),
    seed=st.integers(0, 5),
)
def test_a_split_keeps_its_promises(sizes: list[int], test: float, held_out: int, seed: int) -> None:
    asked, topics, vectors = _line(sizes, [float(i * i) for i in range(len(sizes))])
    try:
        found = split_questions(asked, topics, vectors, held_out=held_out, test=test, draws=30, seed=seed)
    except SpecError:  # of too few topics on either side
        assume(False)
    check_split(found)
    assert list(found["question"]) == asked
    assert list(found["topic"]) == topics
    out, inside = found[found["split"] == "ood_test"], found[found["split"] != "ood_test"]
    assert held_out <= len(out)
    # The last topic was needed.
    assert len(out) - held_out < max(sizes)
    assert out["topic"].nunique() >= 2
    assert inside["topic"].nunique() >= 2
    assert set(inside["topic"]) == set(inside.loc[inside["split"] == "train", "topic"])
    tested = (inside["split"] == "iid_test").sum()
    assert tested == min(round(test * len(inside)), len(inside) - inside["topic"].nunique())
    pd.testing.assert_frame_equal(
        found, split_questions(asked, topics, vectors, held_out=held_out, test=test, draws=30, seed=seed)
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"held_out": 0}, "held_out must be a whole number of at least 1"),
        ({"draws": 0}, "draws must be"),
        ({"test": 1.0}, r"test: must be a share in \[0, 1\); got 1.0"),
        ({"topics": [1, 2]}, "9 questions, 2 topics"),
        ({"vectors": [1.0] * 9}, r"vectors of shape \(9,\)"),
        ({"topics": [None, *range(8)]}, "needs the column topic, with a value in each row"),
        ({"questions": [*QUESTIONS[:-1], QUESTIONS[0].upper()]}, "'SHOULD BUSES RUN AT NIGHT.' is there twice"),
        ({"held_out": 9}, "held_out: 9 of 9 leave one side with fewer than two of 9 topics"),
        ({"topics": [1] * 9}, "fewer than two of 1 topics"),
    ],
)
def test_bad_arguments_of_splits(change: dict[str, Any], said: str) -> None:
    given = {"questions": QUESTIONS, "topics": list(range(9)), "held_out": 3, "draws": 5, **change}
    with pytest.raises(SpecError, match=said):
        split_questions(**given)


def _table(*rows: tuple[str, Any, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["question", "topic", "split"])


GOOD = _table(("A?", 1, "train"), ("a? ", 1, "train"), ("B?", 1, "iid_test"), ("C?", 2, "ood_test"))


def test_a_topic_may_be_trained_and_tested_on_unless_it_is_to_be_whole() -> None:
    check_split(GOOD)
    with pytest.raises(SpecError, match="the topic '1' is on the sides train and iid_test"):
        check_split(GOOD, whole={"iid_test"})
    with pytest.raises(SpecError, match="the topic '1' is on the sides train and iid_test"):
        check_split(GOOD, whole="iid_test")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (_table(("A?", 1, "train"), ("a?", 1, "iid_test")), "the question 'a.' is on the sides train and iid_test"),
        (_table(("A?", 1, "train"), ("B?", 1, "ood_test")), "the topic '1' is on the sides train and ood_test"),
        (_table(("A?", "Tax", "train"), ("B?", "tax ", "ood_test")), "the topic 'tax' is on the sides"),
        (
            _table(("caf\u00e9?", 1, "train"), ("cafe\u0301?", 1, "iid_test")),
            "the question 'caf\u00e9.' is on the sides",
        ),
        (_table(("A?", None, "train")), "needs the column topic"),
        (GOOD.drop(columns="split"), "needs the column split"),
        (GOOD.drop(columns="question"), "needs the column question"),
    ],
)
def test_what_is_on_two_sides_is_named(table: pd.DataFrame, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        check_split(table)


def test_questions_without_topics_are_checked_too() -> None:
    check_split(GOOD.drop(columns="topic"))

    def split(side: str) -> pd.DataFrame:
        return pd.DataFrame({"question": ["A?", "A?"], "split": ["train", side]})

    check_split(split("train"))
    with pytest.raises(SpecError, match="on the sides"):
        check_split(split("validation"))
