"""How fast a chat model in this process is: tokens a second, calls a minute, and the share of prompts read before.

Calls are those of an agent with a cumulative memory: each prompt begins like the one before it and is a post longer.

Run ``python benchmarks/local.py [MODEL] [--calls N] [--set OPTION=VALUE ...]``; MODEL is ``gguf:smollm2`` by default.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from typing import Any, NamedTuple

_POST = "The hospitals of my town say so, and I have no reason to doubt what nurses and doctors see every single day."
#: Posts that a prompt of about 770 tokens holds, and tokens of the replies that are timed.
_POSTS, _LONG, _SHORT = 18, 60, 40


class Speed(NamedTuple):
    """Figures of one model."""

    first_s: float
    """From the start to the first reply, loading included."""
    prompt_tokens: int
    tokens_in: float
    """Tokens of a prompt that is new, a second."""
    tokens_out: float
    """Tokens of a reply, a second."""
    calls_a_minute: float
    """Cumulative calls, one after the other."""
    cached: float
    """Share of their prompts that had been read before."""
    memory_mib: float
    """Most memory of the process."""


def _prompt(posts: int, name: str) -> list[tuple[str, str]]:
    read = [("user", f"You read a post: {_POST} That was number {number}.") for number in range(posts)]
    return [("system", f"You are {name}, a nurse of 45."), *read, ("user", "Write a post on it, in two sentences.")]


def measured(name: str, calls: int, **options: Any) -> Speed:
    """The speed of a model.

    Parameters
    ----------
    name : str
        ``gguf:...`` or ``hf:...``.
    calls : int
        How many cumulative calls are made.
    **options
        Of the model.
    """
    begun = time.perf_counter()
    from opinionsim import load_chat_model

    model = load_chat_model(name, temperature=0.7, max_tokens=_LONG, **options)

    def timed(prompt: list[tuple[str, str]], seed: int, max_tokens: int) -> tuple[float, dict[str, Any]]:
        start = time.perf_counter()
        reply = model.invoke(prompt, seed=seed, max_tokens=max_tokens)
        return time.perf_counter() - start, dict(reply.usage_metadata or {})

    timed(_prompt(1, "Ann"), 1, _LONG)
    first_s = time.perf_counter() - begun
    # Names differ from the first line on, so that no prompt has been read before.
    read_s, used = timed(_prompt(_POSTS, "Berta"), 2, 1)
    # The same short prompt, which the cache holds: one token of reply, then as many as there are.
    timed(_prompt(1, "Clara"), 3, 1)
    one_s = min(timed(_prompt(1, "Clara"), 3, 1)[0] for _ in range(3))
    spoken = [timed(_prompt(1, "Clara"), seed, _LONG) for seed in range(3)]
    rates = sorted((told["output_tokens"] - 1) / (took - one_s) for took, told in spoken)
    start, usages = time.perf_counter(), []
    for number in range(calls):
        usages.append(timed(_prompt(number + 1, "Dora"), number, _SHORT)[1])
    took_s = time.perf_counter() - start
    prompts = sum(each["input_tokens"] for each in usages)
    cached = sum(each.get("input_token_details", {}).get("cache_read", 0) for each in usages)
    return Speed(
        first_s,
        used["input_tokens"],
        used["input_tokens"] / read_s,
        rates[1],
        60 * calls / took_s,
        cached / prompts,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default="gguf:smollm2")
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help="an option of the model")
    asked = parser.parse_args()
    options = {key: json.loads(value) for key, _, value in (each.partition("=") for each in asked.set)}
    speed = measured(asked.model, asked.calls, **options)
    print(f"{asked.model} {options or ''}")
    print(f"  start to first reply  {speed.first_s:6.1f} s")
    print(f"  prompt of {speed.prompt_tokens:4d} tokens {speed.tokens_in:6.0f} tokens a second")
    print(f"  reply                 {speed.tokens_out:6.0f} tokens a second")
    print(f"  cumulative calls      {speed.calls_a_minute:6.1f} a minute, {speed.cached:.0%} of prompts read before")
    print(f"  memory                {speed.memory_mib:6.0f} MiB")


if __name__ == "__main__":
    main()
