"""Speed of the flan-t5 classifier on this CPU beside one-by-one generation, at the true shapes of Flan-T5.

Weights are random, for speed does not depend on them; nothing here is about accuracy. Prompts have some 210 tokens,
as reports in the classifier's question have. Run: python benchmarks/classifier.py [--quick]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from transformers import T5Config, T5ForConditionalGeneration

from opinionsim.classifiers._flan_t5_weights import sharpen
from opinionsim.classifiers._label_scorer import LabelScorer
from opinionsim.classifiers._label_trie import LabelTrie
from opinionsim.foundation.streams import stream

#: Layers a side, width, heads, feed-forward width.
SHAPES = {"flan-t5-small": (8, 512, 6, 1024), "flan-t5-base": (12, 768, 12, 2048)}
#: What -2, -1, 0, 1, 2 are in the vocabulary of T5.
LABELS = ((3, 4949), (3, 2292), (3, 632), (209,), (204,))
BAR = 3.0


def _model(layers: int, width: int, heads: int, inner: int) -> T5ForConditionalGeneration:
    config = T5Config(
        vocab_size=32128, d_model=width, d_kv=64, d_ff=inner, num_layers=layers, num_decoder_layers=layers,
        num_heads=heads, feed_forward_proj="gated-gelu", decoder_start_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    return T5ForConditionalGeneration(config).eval()


def _prompts(count: int) -> list[list[int]]:
    draws = stream(1, "benchmark")
    lengths = np.clip(draws.normal(210, 50, count), 60, 400).astype(int)
    return [[*draws.integers(3, 32000, length - 1).tolist(), 1] for length in lengths]


def _rate(work: Callable[[list[list[int]]], object], prompts: list[list[int]]) -> float:
    """Items a second, after a first pass that is not counted."""
    work(prompts[:2])
    return len(prompts) / _seconds(lambda: work(prompts))


def _generation(model: T5ForConditionalGeneration) -> Callable[[list[list[int]]], object]:
    """As the original did: one text at a time, greedy, a number and its end."""

    def work(prompts: list[list[int]]) -> None:
        for prompt in prompts:
            ids = torch.tensor([prompt])
            model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                min_new_tokens=3,
                max_new_tokens=3,
                do_sample=False,
                num_beams=1,
            )

    return work


def _encoder(model: T5ForConditionalGeneration) -> Callable[[list[list[int]]], object]:
    """Only what no method can do without."""

    def work(prompts: list[list[int]]) -> None:
        with torch.inference_mode():
            for prompt in prompts:
                model.encoder(input_ids=torch.tensor([prompt]))

    return work


def _exhaustive(model: T5ForConditionalGeneration, prompts: list[list[int]]) -> np.ndarray:
    """Log-probability of each label, encoder and decoder run anew for each."""
    found = np.empty((len(prompts), len(LABELS)))
    with torch.inference_mode():
        for row, prompt in enumerate(prompts):
            for column, label in enumerate(LABELS):
                logits = model(
                    input_ids=torch.tensor([prompt]), decoder_input_ids=torch.tensor([[0, *label[:-1]]])
                ).logits[0]
                logs = torch.log_softmax(logits.float(), dim=-1)
                found[row, column] = sum(float(logs[place, token]) for place, token in enumerate(label))
    return found


def _bf16_units() -> list[str]:
    """Instruction sets for bfloat16 that this CPU reports."""
    info = Path("/proc/cpuinfo")
    words = set(info.read_text(encoding="utf-8").split()) if info.exists() else set()
    return sorted(words & {"avx512_bf16", "amx_bf16", "bf16"})


def _flops(dtype: torch.dtype) -> float:
    """Arithmetic in 10^9 operations a second, of the matrix product that takes most of an encoder's time."""
    rows, inner, columns = 208, 768, 2048
    left, right = torch.randn(rows, inner, dtype=dtype), torch.randn(columns, inner, dtype=dtype)
    with torch.inference_mode():
        best = min(_seconds(lambda: torch.nn.functional.linear(left, right)) for _ in range(30))
    return 2 * rows * inner * columns / best / 1e9


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Print rates, the check against exhaustive scoring, the bar and the ceiling for each shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="16 prompts a method instead of 48")
    parser.add_argument("--threads", type=int, help="threads of torch; one is best where other work shares the cores")
    arguments = parser.parse_args()
    count = 16 if arguments.quick else 48
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    units = _bf16_units()
    print(
        f"{torch.get_num_threads()} thread(s); instructions for bf16: {', '.join(units) or 'none, so no bar applies'}"
    )
    single, half = _flops(torch.float32), _flops(torch.bfloat16)
    print(f"matrix products: {single:.0f} Gflop/s in fp32, {half:.0f} in bf16: bf16 can gain {half / single:.1f}x here")
    trie, prompts = LabelTrie(LABELS), _prompts(count)
    print(f"{count} prompts of {min(map(len, prompts))} to {max(map(len, prompts))} tokens; items/s\n")
    for name, shape in SHAPES.items():
        model = _model(*shape)
        scorer = LabelScorer(model, trie)
        difference = np.abs(scorer.log_masses(prompts[:4]) - _exhaustive(model, prompts[:4])).max()
        one_by_one = _rate(_generation(model), prompts)
        reference, ceiling = _rate(scorer.log_masses, prompts), _rate(_encoder(model), prompts)
        model.to(torch.bfloat16)
        sharpen(model)
        alone = _rate(LabelScorer(model, trie).log_masses, prompts)
        sorted_8 = _rate(LabelScorer(model, trie, batch_size=8).log_masses, prompts)
        low_ceiling = _rate(_encoder(model), prompts)
        print(f"{name} shape, random weights; labels equal exhaustive scoring to {difference:.1e} (bar 1e-5)")
        print(f"  greedy generation, one by one, fp32   {one_by_one:7.2f}")
        print(f"  label trie, fp32                      {reference:7.2f}   encoder alone {ceiling:.2f}")
        print(f"  label trie, bf16                      {alone:7.2f}   encoder alone {low_ceiling:.2f}")
        print(f"  label trie, bf16, 8 a batch, filled  {sorted_8:7.2f}")
        best = max(alone, sorted_8) / one_by_one
        print(f"  bf16 trie over fp32 generation: {best:.1f}x" + (f" (bar {BAR:.0f}x)" if units else "") + "\n")


if __name__ == "__main__":
    main()
