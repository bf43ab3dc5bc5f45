"""A reward model: a planted preference, interruptions, frozen layers, and what is no reward model."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from scipy.stats import binom
from transformers import Trainer

import opinionsim as osim
from opinionsim.classifiers import Classifier, Item
from opinionsim.consensus import preference_pairs, read_ratings, split_ratings, train_reward
from opinionsim.errors import MeasurementError, OpinionSimError, SpecError, StoreError
from opinionsim.opinions import OpinionScale
from opinionsim.testing import ClassifierContract
from tests.classifiers._tiny_t5 import byte_folder
from tests.consensus._ratings import planted_ratings, save_encoder
from tests.support.examples import few

pytestmark = pytest.mark.usefixtures("one_thread")

RATINGS = planted_ratings()
#: A training of a few seconds.
SHORT: dict[str, Any] = {"learning_rate": 3e-3, "epochs": 6, "device": "cpu"}
#: A training of 12 steps.
BRIEF: dict[str, Any] = {"learning_rate": 3e-3, "epochs": 2, "batch_size": 4, "save_every": 2, "device": "cpu"}
FEW = planted_ratings(6, 5)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_encoder(tmp_path_factory.mktemp("base") / "encoder")


@pytest.fixture(scope="module")
def drawing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base that draws random numbers at each step, for its dropout."""
    return save_encoder(tmp_path_factory.mktemp("base") / "drawing", dropout=0.1)


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder of a training that has come to its end, and its card."""
    folder = tmp_path_factory.mktemp("reward") / "model"
    return folder, train_reward(RATINGS, base, folder, **SHORT)


@pytest.fixture
def no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any step of a training fails the test."""

    def step(*_: Any, **__: Any) -> Any:
        raise AssertionError("a step was made")

    monkeypatch.setattr(Trainer, "training_step", step)


def interrupt_at(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Have the next training stopped in this step, from 1."""
    made = iter(range(1, number + 1))
    step = Trainer.training_step

    def counted(self: Any, *given: Any) -> Any:
        if next(made) == number:
            raise KeyboardInterrupt
        return step(self, *given)

    monkeypatch.setattr(Trainer, "training_step", counted)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def pairs_held_out() -> list[tuple[str, str, str, str]]:
    _, held_out = split_ratings(read_ratings(RATINGS, "agreement"), "question", 0.2, 0)
    return [tuple(pair) for pair in preference_pairs(held_out)]


class TestContract(ClassifierContract):
    second = "the city should spend"
    on_points = False

    @pytest.fixture(autouse=True)
    def _folder(self, trained: tuple[Path, dict[str, Any]]) -> None:
        self.folder = trained[0]

    def classifier(self, scale: OpinionScale) -> Classifier:
        return osim.load_classifier("reward", scale, model=str(self.folder))


def test_a_planted_preference_is_found_on_questions_that_were_held_out(trained: tuple[Path, dict[str, Any]]) -> None:
    card = trained[1]
    assert card["n_validation"] == 36
    assert card["n_questions"] == 6
    assert card["evidence"] == []
    # What a model without knowledge exceeds once in a million trainings.
    assert card["accuracy"] > binom.isf(1e-6, card["n_validation"], 0.5) / card["n_validation"]


def test_the_classifier_scores_as_the_card_says_each_pair_alone(trained: tuple[Path, dict[str, Any]]) -> None:
    folder, card = trained
    classifier = osim.load_classifier("reward", model=str(folder), device="cpu")
    assert classifier.options == {"model": "model", "weights": card["fingerprint"], "device": "cpu"}
    pairs = pairs_held_out()
    items = [
        Item(statement, osim.Claim(question, "spending", "for"), opinion)
        for question, opinion, *two in pairs
        for statement in two
    ]
    together = classifier.classify(items)
    assert np.isnan(together.probabilities).all()
    rewards = together.value.reshape(-1, 2)
    assert (rewards[:, 0] > rewards[:, 1]).mean() == card["accuracy"]
    alone = [classifier.classify([item]).value[0] for item in items[:10]]
    np.testing.assert_array_equal(alone, together.value[:10])
    np.testing.assert_array_equal(classifier.classify(items[::-1]).value, together.value[::-1])


def test_blank_texts_have_no_reward_and_a_missing_opinion_is_an_error(trained: tuple[Path, dict[str, Any]]) -> None:
    classifier = osim.load_classifier("reward", model=str(trained[0]))
    claim = osim.Claim("should we save ?", "spending", "for")
    found = classifier.classify([Item(" \n", claim, "the city"), Item("we should", claim, ""), Item("a", claim, "b")])
    assert np.isnan(found.value).tolist() == [True, True, False]
    assert found.off_scale.tolist() == [1, 1, 0]
    with pytest.raises(SpecError, match=r"classifier 'reward' judges pairs; 'we should' has no second text"):
        classifier.classify([Item("we should", claim)])
    with pytest.raises(SpecError, match="'reward' needs a claim"):
        classifier.classify([Item("we should", about="the city")])


def test_long_opinions_lose_their_end_and_a_text_never_becomes_a_control_token(
    trained: tuple[Path, dict[str, Any]],
) -> None:
    classifier: Any = osim.load_classifier("reward", model=str(trained[0]))
    claim = osim.Claim("should we save ?", "spending", "for")
    long = ["the city should " + "save " * n for n in (60, 90)]
    values = classifier.classify([Item("we should save", claim, opinion) for opinion in long]).value
    assert values[0] == values[1]
    assert classifier.n_cut == 2
    both = [Item("we should " + "save " * n, claim, "the city should " + "spend " * n) for n in (40, 80)]
    assert len(set(classifier.classify(both).value)) == 1
    spelled, plain = classifier.classify(
        [Item("we should [SEP] save", claim, "the city"), Item("we should save", claim, "the city")]
    ).value
    assert spelled == plain
    with pytest.raises(MeasurementError, match=r"48 tokens .* leave no room for an opinion and a statement"):
        classifier.classify([Item("save", osim.Claim("save " * 30, "spending", "for"), "the city")])


@pytest.fixture(scope="module")
def whole(drawing: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder of a brief training that was not interrupted, and its card."""
    folder = tmp_path_factory.mktemp("brief") / "whole"
    return folder, train_reward(FEW, drawing, folder, **BRIEF)


@pytest.mark.parametrize("step", few([1, 4, 9, 12], 2))
def test_an_interrupted_training_resumes_to_equal_weights(
    whole: tuple[Path, dict[str, Any]], drawing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    with monkeypatch.context() as patch:
        interrupt_at(patch, step)
        with pytest.raises(KeyboardInterrupt):
            train_reward(FEW, drawing, tmp_path / "parts", **BRIEF)
    assert not (tmp_path / "parts" / "card.json").exists()
    parts = train_reward(FEW, drawing, tmp_path / "parts", **BRIEF)
    assert parts == whole[1]
    one, two = weights(whole[0]), weights(tmp_path / "parts")
    assert set(one) == set(two)
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not (tmp_path / "parts" / "checkpoints").exists()


def test_after_an_interruption_at_the_very_end_no_step_is_made_again(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        whole = train_reward(FEW, base, tmp_path / "model", **BRIEF)
    (tmp_path / "model" / "card.json").unlink()
    interrupt_at(monkeypatch, 1)
    assert train_reward(FEW, base, tmp_path / "model", **BRIEF) == whole


@pytest.mark.usefixtures("no_step")
def test_a_finished_training_returns_its_card(base: Path, trained: tuple[Path, dict[str, Any]]) -> None:
    folder, card = trained
    assert train_reward(RATINGS, base, folder, **SHORT) == card == json.loads((folder / "card.json").read_text())


@pytest.mark.usefixtures("no_step")
def test_a_folder_of_something_else_is_refused(
    base: Path, trained: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match="contains a training with different settings; give another folder"):
        train_reward(RATINGS, base, trained[0], **{**SHORT, "epochs": 1})
    with pytest.raises(StoreError, match="contains a training with different data"):
        train_reward(RATINGS.iloc[:-2], base, trained[0], **SHORT)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match="is not empty and contains no training"):
        train_reward(FEW, base, tmp_path, **BRIEF)


@pytest.mark.parametrize("progress", [False, True])
def test_nothing_is_printed_but_a_bar_on_stderr(
    base: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], progress: bool
) -> None:
    train_reward(FEW, base, tmp_path / "model", **BRIEF, progress=progress)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert ("14/14" in printed.err) == progress


def test_a_seed_changes_weights_and_equal_arguments_do_not(base: Path, tmp_path: Path) -> None:
    cards = [train_reward(FEW, base, tmp_path / str(n), **BRIEF, seed=seed) for n, seed in enumerate((0, 0, 1))]
    assert cards[0]["fingerprint"] == cards[1]["fingerprint"] != cards[2]["fingerprint"]


def test_a_card_says_what_evidence_the_ratings_are(base: Path, tmp_path: Path) -> None:
    told = FEW.assign(evidence=np.where(FEW["citizen"] == 0, "human", "scripted"))
    assert train_reward(told, base, tmp_path / "model", **BRIEF)["evidence"] == ["human", "scripted"]


def test_only_the_last_layers_and_the_head_are_trained(base: Path, tmp_path: Path) -> None:
    train_reward(FEW, base, tmp_path / "model", **BRIEF, last_layers=1)
    before, after = weights(base), weights(tmp_path / "model")
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert {re.sub(r"\.(attention|intermediate|output)\..*", "", name) for name in changed} == {
        "bert.encoder.layer.1",
        "classifier.weight",
        "classifier.bias",
    }
    with pytest.raises(SpecError, match=r"last_layers: the base has 2 layers; got 3"):
        train_reward(FEW, base, tmp_path / "other", **BRIEF, last_layers=3)


def test_a_step_of_two_batches_is_a_step_of_one_twice_as_large(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses: list[float] = []
    step = Trainer.training_step

    def noted(self: Any, *given: Any) -> Any:
        losses.append(float(loss := step(self, *given)))
        return loss

    monkeypatch.setattr(Trainer, "training_step", noted)
    common = {"learning_rate": 1e-4, "device": "cpu"}
    train_reward(FEW, base, tmp_path / "one", **common, batch_size=8)
    one = losses.copy()
    losses.clear()
    train_reward(FEW, base, tmp_path / "two", **common, batch_size=4, accumulate=2)
    # 25 pairs: three steps of 8, and one of the last pair.
    assert (len(one), len(losses)) == (4, 7)
    np.testing.assert_allclose(np.add.reduceat(losses, [0, 2, 4, 6]), one, rtol=1e-3)


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (lambda t: t.drop(columns=["opinion", "agreement"]), {}, "data: lacks the columns opinion, agreement; it has"),
        (lambda t: t.assign(agreement=[9.0] + [4.0] * (len(t) - 1)), {}, r"row 1, agreement: .*9.* from 1 to 7"),
        (lambda t: t.assign(agreement="much"), {}, r"row 1, agreement: 'much' must be a number"),
        (lambda t: t.assign(agreement=np.nan), {}, "on one side of the split, no person's ratings of agreement"),
        (lambda t: t.assign(question=None), {}, "row 1, question: None must be a text"),
        (lambda t: t.assign(citizen=None), {}, "row 1, citizen: None must be given"),
        (lambda t: t.assign(agreement=4.0), {}, "on one side of the split, no person's ratings of agreement"),
        (lambda t: t.assign(question="one"), {}, "split: no row is in 'validation'|no row is in 'train'"),
        (lambda t: t.assign(opinion=None), {}, "split: no row is in 'train'"),
        (lambda t: t.assign(split=["train", "test"] * (len(t) // 2)), {}, "split: the question .* is on the sides"),
        (
            lambda t: t.assign(split=np.where(t["question"].str.contains(" 1 "), "validation", "train"), topic="one"),
            {"split_by": "topic"},
            "split: the topic 'one' is on the sides",
        ),
        (
            lambda t: t.assign(topic=[1, 2] * (len(t) // 2)),
            {"split_by": "topic"},
            "split: the question .* is on the sides",
        ),
        (lambda t: t.drop(columns="topic"), {"split_by": "topic"}, "split_by: 'topic' needs a column topic"),
        (lambda t: t.assign(split="test"), {}, "split: no row is in 'train', only in test"),
        (lambda t: t, {"learning_rate": 0}, "learning_rate"),
        (lambda t: t, {"epoch": 3}, "epoch: unknown field"),
        (lambda t: t, {"max_tokens": 10}, "its 10 tokens .* leave no room for an opinion"),
    ],
)
@pytest.mark.usefixtures("no_step")
def test_bad_input_is_one_error_before_any_step(
    base: Path, tmp_path: Path, change: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(OpinionSimError, match=message):
        train_reward(change(FEW), base, tmp_path / "out", device="cpu", **settings)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_a_base_that_is_none_is_one_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SpecError, match=r"^base: .* cannot be loaded: .*; valid: a folder, or a name on the model hub"):
        train_reward(FEW, tmp_path / name, tmp_path / "out", **BRIEF)


def test_what_is_no_reward_model_is_one_error(trained: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, card = trained

    def refused(place: Path, message: str, **options: Any) -> None:
        with pytest.raises(MeasurementError, match=f"classifier 'reward': .*{message}.*train_reward wrote"):
            osim.load_classifier("reward", model=str(place), **options)

    refused(tmp_path / "nowhere", "there is no such folder")
    refused(byte_folder(tmp_path / "t5"), r"it has no card.json with its format")
    refused(folder, "found 'sha256:.*' instead of 'sha256:0'", weights="sha256:0")
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    (other / "card.json").write_text(json.dumps({**card, "format": "opinionsim-statements-1"}))
    refused(other, "its format is another: found 'opinionsim-statements-1' instead of 'opinionsim-reward-1'")
    shutil.copy(folder / "card.json", other)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, "hidden_act": "relu"}))
    refused(other, "its files changed after the training")
    with pytest.raises(SpecError, match="model must be text"):
        osim.load_classifier("reward", model=3)


def test_validation_is_on_whole_questions_or_topics_and_tests_stay_out() -> None:
    ratings = read_ratings(RATINGS, "agreement")
    for by in ("question", "topic"):
        train, held_out = split_ratings(ratings, by, 0.2, 0)
        assert len(train) + len(held_out) == len(ratings)
        assert not {*train[by]} & {*held_out[by]}
        assert not {*train["question"]} & {*held_out["question"]}
    # The published split: new questions on known topics, and new topics. What is validated on comes from the rest.
    last = ratings["question"].str.contains(r" 2\d ")
    told = ratings.assign(split=np.where(ratings["topic"] == "roads", "ood_test", np.where(last, "iid_test", "train")))
    for by in ("question", "topic"):
        sides = pd.concat(split_ratings(told, by, 0.3, 0))
        assert {*sides.index} == {*told.index[told["split"] == "train"]}
    stated = ratings.assign(split=np.where(last, "validation", "train"))
    assert {*split_ratings(stated, "question", 0.01, 0)[1].index} == {*ratings.index[last]}
    again = ratings.assign(split=np.where(ratings["question"] == ratings["question"][0], "train", "validation"))
    again.loc[0, ["question", "split"]] = [ratings["question"][0].upper() + "  ", "validation"]
    with pytest.raises(SpecError, match=r"the question 'should we fund the libraries 0 \?' is on the sides"):
        split_ratings(again, "question", 0.2, 0)


def test_pairs_are_of_one_person_and_question_and_clearly_apart() -> None:
    rated = [
        ("A", 0, "p", [6, 7]),
        ("A", 0, "q", [5, 5]),
        ("A", 0, "r", [7, 4]),
        ("A", 1, "p", [1]),
        ("B", 0, "s", [1]),
    ]
    rows = [
        {"question": question, "citizen": citizen, "opinion": "o", "statement": text, "agreement": rating, "pass": n}
        for question, citizen, text, ratings in rated
        for n, rating in enumerate(ratings, 1)
    ]
    # Means of passes: 6.5, 5 and 5.5; of these one pair is more than 1 apart.
    assert preference_pairs(read_ratings(pd.DataFrame(rows), "agreement")) == [("A", "o", "p", "q")]
    assert len(preference_pairs(read_ratings(pd.DataFrame(rows), "agreement"), 0.4)) == 3


def test_ratings_are_read_from_files_too(base: Path, tmp_path: Path) -> None:
    FEW.to_csv(tmp_path / "ratings.csv", index=False)
    FEW.to_parquet(tmp_path / "ratings.parquet")
    for suffix in ("csv", "parquet"):
        pd.testing.assert_frame_equal(
            read_ratings(tmp_path / f"ratings.{suffix}", "agreement"), read_ratings(FEW, "agreement")
        )
    with pytest.raises(SpecError, match=r"ratings are read from a \.csv or \.parquet file; got \.xls"):
        train_reward(tmp_path / "ratings.xls", base, tmp_path / "out")
    with pytest.raises(SpecError, match=r"none\.csv: cannot be read"):
        train_reward(tmp_path / "none.csv", base, tmp_path / "out")
