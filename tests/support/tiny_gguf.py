"""Tiny randomly initialised chat models as GGUF files, written byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.tiny import CONTROL, TEMPLATE

_WIDTH, _HEADS, _INNER, CONTEXT = 32, 4, 64, 2048
#: Codes of the kinds of values, and of tokens.
_U32, _F32, _I32, _TEXT, _LIST = 4, 6, 5, 8, 9
_NORMAL, _CONTROL = 1, 3


def _bytes_as_letters() -> list[str]:
    """How byte-level tokenizers spell each of the 256 bytes."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", _TEXT) + _text(value)
    if isinstance(value, list):
        of_texts = not value or isinstance(value[0], str)
        kind, items = (_TEXT, map(_text, value)) if of_texts else (_I32, (struct.pack("<i", each) for each in value))
        return struct.pack("<IIQ", _LIST, kind, len(value)) + b"".join(items)
    return struct.pack("<If", _F32, value) if isinstance(value, float) else struct.pack("<II", _U32, value)


def save_gguf(path: Path, changes: Mapping[str, Any] | None = None, seed: int = 1) -> Path:
    """A model of one block with one token a byte; changed values of the header, where None leaves one out."""
    tokens = [*CONTROL, *_bytes_as_letters()]
    header = {
        "general.architecture": "llama",
        "llama.context_length": CONTEXT,
        "llama.embedding_length": _WIDTH,
        "llama.block_count": 1,
        "llama.feed_forward_length": _INNER,
        "llama.attention.head_count": _HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": _WIDTH // _HEADS,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [_CONTROL] * len(CONTROL) + [_NORMAL] * 256,
        "tokenizer.ggml.merges": [],
        "tokenizer.ggml.eos_token_id": CONTROL.index("<|end|>"),
        "tokenizer.ggml.bos_token_id": CONTROL.index("<|pad|>"),
        "tokenizer.chat_template": TEMPLATE,
        **(changes or {}),
    }
    told = {key: value for key, value in header.items() if value is not None}
    generator = np.random.default_rng(seed)
    square = (_WIDTH, _WIDTH)
    shapes = {"token_embd": (_WIDTH, len(tokens)), "output": (_WIDTH, len(tokens)), "output_norm": (_WIDTH,)}
    shapes |= {f"blk.0.attn_{each}": square for each in ("q", "k", "v", "output")}
    shapes |= {f"blk.0.ffn_{each}": (_WIDTH, _INNER) for each in ("gate", "up")} | {"blk.0.ffn_down": (_INNER, _WIDTH)}
    shapes |= {"blk.0.attn_norm": (_WIDTH,), "blk.0.ffn_norm": (_WIDTH,)}
    made, infos, data = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(told)), b"", b""
    for name, shape in shapes.items():
        infos += _text(f"{name}.weight") + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
        numbers = generator.normal(0, 0.5, shape) if len(shape) == 2 else np.ones(shape)
        data += numbers.astype("<f4").tobytes()
    made += b"".join(_text(key) + _value(value) for key, value in told.items()) + infos
    path.write_bytes(made + b"\0" * (-len(made) % 32) + data)
    return path
