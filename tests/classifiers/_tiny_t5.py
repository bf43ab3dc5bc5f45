"""Tiny T5 models with random weights, on disk as a published model is."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from transformers import ByT5Tokenizer, T5Config, T5ForConditionalGeneration, T5Tokenizer

# Models this small only lose by threads, above all where test processes share the cores.
torch.set_num_threads(1)

SENTENCES = (
    "I believe that the claim is true, and I have thought about it for a long time.",
    "I do not believe that the theory is right; it goes against all I have read.",
    "Having read this post, I am undecided, though I lean towards the other side.",
    "Nobody knows whether tea tastes better than coffee, and I would not say.",
    "A person who reads and writes posts on social media made this statement:",
    "What did this person believe about the claim when making the statement?",
    "Choose a point of this scale and answer with one of the numbers and nothing else.",
    "strongly negative, slightly negative, neutral, slightly positive, strongly positive",
    "The museum should not charge an entry fee, says the post. Step by step: first, I doubt it.",
)


def save_model(folder: Path, tokenizer: Any, *, seed: int = 0) -> Path:
    """A model of one layer a side for a tokenizer; like Flan-T5 gated and with an output head of its own."""
    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=1,
        num_decoder_layers=1,
        num_heads=4,
        feed_forward_proj="gated-gelu",
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
    )
    torch.manual_seed(seed)
    model = T5ForConditionalGeneration(config)
    with torch.no_grad():
        # Attention that tells texts apart and logits far from equal, so that a wrong place or text is seen.
        for name, weight in model.named_parameters():
            if weight.ndim == 2 and "shared" not in name:
                weight.mul_(3.0)
        model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.lm_head.weight) * 0.4)
    model.config.tie_word_embeddings = False
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def byte_tokenizer() -> Any:
    """A token for each byte; needs no files."""
    return ByT5Tokenizer()


def sentencepiece_tokenizer() -> Any:
    """A Unigram vocabulary in which, as in that of T5, -2, -1 and 0 share their first token and 1 and 2 do not."""
    written = io.BytesIO()
    numbers = [f"rate it {point} of {other}" for point in (-2, -1, 0, 1, 2) for other in (-3, 3, 4, 5)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*SENTENCES, *numbers] * 5),
        model_writer=written,
        model_type="unigram",
        vocab_size=110,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        pad_piece="<pad>",
        eos_piece="</s>",
        unk_piece="<unk>",
        user_defined_symbols=["-2", "-1", "0", "\u25811", "\u25812"],
        minloglevel=2,
    )
    trained = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    vocabulary = [(trained.id_to_piece(i), trained.get_score(i)) for i in range(len(trained))]
    return T5Tokenizer(vocab=vocabulary, extra_ids=10)


def sentencepiece_folder(folder: Path) -> Path:
    """A tiny model with the vocabulary of :func:`sentencepiece_tokenizer`."""
    return save_model(folder, sentencepiece_tokenizer())


def byte_folder(folder: Path) -> Path:
    """A tiny model with a byte vocabulary."""
    return save_model(folder, byte_tokenizer())
