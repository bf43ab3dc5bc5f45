"""Tokens of models in this process are drawn as often as they are probable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy.stats import chisquare

from opinionsim.local._decoder import (
    Decoder,
    Sampling,
    SeededSampling,
    ToDecode,
    load_decoder,
)
from opinionsim.local._hugging_face import HuggingFaceOptions
from tests.support.tiny import save_tiny


def decoder_at(folder: Path, sampling: Sampling, **options: Any) -> Decoder:
    return load_decoder(str(folder), HuggingFaceOptions(**{"device": "cpu", **options}), sampling)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model whose replies end by themselves now and then."""
    return save_tiny(tmp_path_factory.mktemp("models") / "tiny")


def assert_drawn_from(probability: torch.Tensor, drawn: Sequence[int]) -> None:
    """Token counts are those of draws from a distribution, by a chi-square test that pools rare tokens."""
    counts = Counter(drawn)
    expected = {token: weight * len(drawn) for token, weight in enumerate(probability.double().tolist())}
    assert {token for token in counts if not expected[token]} == set(), "a token that was to be left out was drawn"
    common = [token for token, count in expected.items() if count >= 5]
    assert len(common) > 2, "the distribution is too narrow to test"
    observed, predicted = [counts[token] for token in common], [expected[token] for token in common]
    rest = len(drawn) - sum(predicted)
    if rest >= 5:
        observed, predicted = [*observed, len(drawn) - sum(observed)], [*predicted, rest]
    scale = sum(observed) / sum(predicted)
    assert chisquare(observed, [count * scale for count in predicted]).pvalue > 1e-3


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
@pytest.mark.parametrize(("top_k", "top_p"), [(None, None), (6, None), (None, 0.8)])
def test_noisy_scores_are_greatest_as_often_as_tokens_are_probable(
    temperature: float, top_k: int | None, top_p: float | None
) -> None:
    scores = torch.tensor([2.0, -1.0, 0.5, 1.9, -3.0, 0.0, 1.0, 0.9, -0.5, 1.5, 0.4, -8.0])
    rows = scores.expand(3000, -1)
    sampler = SeededSampling(Sampling(temperature, top_p, top_k), range(len(rows)), scores.device)
    probability = (scores / temperature).softmax(0)
    ranked = probability.argsort(descending=True)
    kept = top_k or (1 + int((probability[ranked].cumsum(0) < top_p).sum()) if top_p else len(scores))
    probability[ranked[kept:]] = 0
    probability /= probability.sum()
    first, second = (sampler(torch.zeros(1), rows).argmax(-1) for _ in range(2))
    # The second token of a reply is drawn as the first is, and independently of it.
    assert_drawn_from(torch.outer(probability, probability).flatten(), (first * len(scores) + second).tolist())


def test_sampled_tokens_are_as_frequent_as_their_probability(folder: Path) -> None:
    decoder = decoder_at(folder, Sampling(0.8, max_tokens=1))
    prompt = ({"role": "user", "content": "a"},)
    answers = decoder.answer([ToDecode(prompt, seed) for seed in range(1500)], lambda row: False)
    ids = decoder._tokenizer(decoder.rendered(prompt), add_special_tokens=False)["input_ids"]
    probability = (decoder._model(torch.tensor([ids])).logits[0, -1].double() / 0.8).softmax(0)
    # Control tokens leave no text, so they count as one.
    texts = [decoder._tokenizer.decode([token], skip_special_tokens=True) for token in range(len(probability))]
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    merged = torch.zeros(len(places), dtype=torch.double)
    for text, weight in zip(texts, probability, strict=True):
        merged[places[text]] += weight
    assert_drawn_from(merged, [places[answer.text] for answer in answers])
