"""Ratings with a planted preference, and tiny models that can learn it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

#: What the tiny models read.
WORDS = ("we should the city fund spend save more less", "libraries parks roads schools", "question opinion statement")
_SIGNS = [":", ".", "?", *map(str, range(40))]


def word_tokenizer() -> PreTrainedTokenizerFast:
    """One token a word of a short list; all others are one unknown token."""
    vocabulary = {
        word: place
        for place, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *" ".join(WORDS).split(), *_SIGNS])
    }
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.normalizer = normalizers.Lowercase()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",  # noqa: S106
        unk_token="[UNK]",  # noqa: S106
        cls_token="[CLS]",  # noqa: S106
        sep_token="[SEP]",  # noqa: S106
    )


def save_encoder(folder: Path, *, dropout: float = 0.0, layers: int = 2) -> Path:
    """A BERT of 32 dimensions with random weights, as a base for reward models; returns the folder."""
    tokenizer = word_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=48,
        initializer_range=0.1,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        pad_token_id=0,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertForSequenceClassification(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def planted_ratings(n_questions: int = 30, n_citizens: int = 6, seed: int = 0) -> pd.DataFrame:
    """Ratings of two statements each, of which citizens prefer the one that says what their opinion says.

    Neither statement is preferred by more than half of the citizens in expectation, so that statements alone tell
    nothing.
    """
    draw = np.random.default_rng(seed)
    subjects = ["libraries", "parks", "roads", "schools"]
    rows: list[dict[str, Any]] = []
    for question in range(n_questions):
        for citizen in range(n_citizens):
            wish = ("spend", "save")[draw.integers(2)]
            for candidate, verb in enumerate(("spend", "save")):
                filler = " ".join(draw.choice(["city", "parks", "roads", "fund"], 3))
                rating = (6.0 if verb == wish else 2.0) + draw.uniform(-1, 1)
                rows.append(
                    {
                        "question": f"should we fund the {subjects[question % 4]} {question} ?",
                        "topic": subjects[question % 4],
                        "group": f"group {question}",
                        "citizen": citizen,
                        "opinion": f"the city should {wish}",
                        "candidate": candidate,
                        "statement": f"we should {verb} . {filler}",
                        "agreement": rating,
                        "quality": rating,
                    }
                )
    return pd.DataFrame(rows)
