"""Tiny randomly initialised chat models with tokenizers of their own, saved as real ones are."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

#: Ends every message, and so the turn of the model.
END = "<|end|>"

TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% if enable_thinking %}<think>{% endif %}{% endif %}"
)

#: Control tokens.
CONTROL = ["<|pad|>", "<|unknown|>", END, "<|system|>", "<|user|>", "<|assistant|>"]

#: Printable ASCII, space and line feed as a byte-level tokenizer spells them.
_LETTERS = [chr(code) for code in range(0x21, 0x7F)] + ["\u0120", "\u010a"]


def tiny_tokenizer(template: str | None = TEMPLATE) -> PreTrainedTokenizerFast:
    """One token a byte, printable ASCII apart and all else alike, and control tokens."""
    vocabulary = {token: index for index, token in enumerate([*CONTROL, *_LETTERS])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token=CONTROL[1]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=CONTROL[0],
        unk_token=CONTROL[1],
        eos_token=END,
        additional_special_tokens=CONTROL[3:],
    )
    fast.chat_template = template
    return fast


def save_tiny(
    folder: Path,
    *,
    seed: int = 0,
    context: int = 4096,
    template: str | None = TEMPLATE,
) -> Path:
    """Save a Llama of two layers; returns the folder.

    Parameters
    ----------
    folder : Path
        Where to.
    seed : int
        Seed of the weights.
    context : int
        Positions it has.
    template : str or None
        Chat template.
    """
    tokenizer = tiny_tokenizer(template)
    end = tokenizer.eos_token_id
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        initializer_range=0.3,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    # Servers sample only where the checkpoint says so.
    model.generation_config = GenerationConfig(do_sample=True, eos_token_id=end, pad_token_id=tokenizer.pad_token_id)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
