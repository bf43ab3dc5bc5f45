"""A trained chat model in a GGUF file, from the package that `make whole` installs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from opinionsim import load_chat_model
from opinionsim.classifiers import Item, load_classifier
from opinionsim.llm import ModelClient
from opinionsim.messages import ChatMessage, Prompt, Reply
from opinionsim.opinions import OpinionScale
from opinionsim.topics import Claim

pytestmark = pytest.mark.whole

#: Every token of this model that has a meaning of its own.
CONTROL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "<file_sep>", "<filename>"),
    *("<gh_stars>", "<issue_start>", "<issue_comment>", "<issue_closed>", "<jupyter_start>", "<jupyter_text>"),
    *("<jupyter_code>", "<jupyter_output>", "<jupyter_script>", "<empty_output>"),
)


@pytest.fixture(scope="module")
def model() -> Iterator[Any]:
    loaded: Any = load_chat_model("gguf:smollm2", temperature=0.7, max_tokens=12, exact=True)
    yield loaded
    loaded.close()


def test_twenty_replies_are_the_same_in_another_order(model: Any) -> None:
    client = ModelClient(model)
    calls = [
        ([ChatMessage("system", "You are Ann."), *[ChatMessage("user", f"Post {n}: I trust it.")] * (n % 4 + 1)], n)
        for n in range(20)
    ]

    async def texts(order: list[int]) -> dict[int, str]:
        return {number: (await client.call(*calls[number])).text for number in order}

    forward = asyncio.run(texts(list(range(20))))
    assert asyncio.run(texts(np.random.default_rng(1).permutation(20).tolist())) == forward
    assert len(set(forward.values())) > 15


@pytest.mark.parametrize("token", CONTROL)
def test_a_control_token_in_a_text_is_read_as_its_letters(model: Any, token: str) -> None:
    written, spaced = (
        model.invoke(f"I say {text} and no more.", max_tokens=1).usage_metadata["input_tokens"]
        for text in (token, f"{token[0]} {token[1:]}")
    )
    assert written == spaced


def test_readings_of_beliefs_are_what_answers_tend_to() -> None:
    """Five contexts, 400 answers of one token in each."""
    model: Any = load_chat_model("gguf:smollm2", temperature=0.7, max_tokens=1)
    client = ModelClient(model)
    belief: Any = load_classifier("belief")
    claim, points, z = Claim("the Earth is getting warmer", "warming", "truth"), np.arange(-2, 3), []

    async def compared(number: int, held: str) -> float:
        system = f"You are Ann, with a {held} opinion about the claim that the Earth is getting warmer."
        asked: list[Prompt] = []

        async def ask(call: str, messages: Iterable[ChatMessage], **_: Any) -> Reply:
            asked.append(Prompt.of(messages))
            # llama.cpp computes a prompt that it has in its cache otherwise, by the rounding of these weights.
            await client.call(asked[-1], 0)
            return Reply(str((await client.tokens.call(asked[-1], 0)).content))

        found = await belief.rate(ask, Item("", claim, fork=Prompt.of([ChatMessage("system", system)])))
        drawn = [(await client.call(asked[0], 10_000 * number + each)).text.strip() for each in range(400)]
        answers = [points["ABCDE".index(each)] for each in drawn if each and each in "ABCDE"]
        spread = found.probabilities[0] @ (points - found.value[0]) ** 2
        assert 50 < len(answers) < 400
        return float((np.mean(answers) - found.value[0]) / np.sqrt(spread / len(answers)))

    for number, held in enumerate(OpinionScale().labels):
        z.append(asyncio.run(compared(number, held)))
    model.close()
    assert np.sqrt(np.mean(np.square(z))) < 1.5, z
