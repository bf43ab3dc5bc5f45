"""Adapters for statements: what is trained on and counted, orders of opinions, the early stop, interruptions."""

from __future__ import annotations

import itertools
import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

import opinionsim as osim
from opinionsim.consensus import (
    cleaned_statement,
    read_ratings,
    statement_examples,
    statement_prompt,
    train_statements,
)
from opinionsim.errors import OpinionSimError, SpecError
from tests.consensus.test_reward import interrupt_at
from tests.support.examples import few
from tests.support.tiny import save_tiny

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning"),
]

#: A training of some steps.
BRIEF: dict[str, Any] = {"learning_rate": 1e-2, "epochs": 3, "batch_size": 2, "rank": 4, "device": "cpu"}


def short(question: str, opinions: Sequence[str]) -> str:
    """A prompt of few tokens."""
    return f"{question} {' '.join(opinions)}\nStatement:"


def rated(n_questions: int = 5) -> pd.DataFrame:
    """Ratings by three citizens of two statements a question: a good one and a bad one."""
    return pd.DataFrame(
        [
            {
                "question": f"Q{question}?",
                "group": question,
                "citizen": citizen,
                "opinion": f"{citizen}{'abc'[citizen]}",
                "statement": f'"We agree on {question}."\nHuman:' if quality > 4 else "Nonsense!",
                "quality": quality,
            }
            for question in range(n_questions)
            for citizen in range(3)
            for quality in (6.5, 2.0)
        ]
    )


RATED = rated()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("base") / "tiny")


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("statements") / "adapter"
    return folder, train_statements(RATED, base, folder, prompt=short, **BRIEF)


def adapters(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "adapter_model.safetensors")


def test_held_out_statements_become_likelier(trained: tuple[Path, dict[str, Any]]) -> None:
    card = trained[1]
    assert (card["n_train"], card["n_validation"], card["n_too_long"]) == (4, 1, 0)
    assert card["perplexity"] < card["perplexity_of_base"] / 2


def test_only_tokens_of_the_statement_count(base: Path, trained: tuple[Path, dict[str, Any]]) -> None:
    model, tokenizer = AutoModelForCausalLM.from_pretrained(base).eval(), AutoTokenizer.from_pretrained(base)
    expected = []
    for question in range(5):
        # The order of the opinions is drawn, so that each is tried.
        for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
            opinions = [f"{each}{'abc'[each]}" for each in order]
            prompt = tokenizer(
                f"<|user|>{short(f'Q{question}?', opinions)}<|end|><|assistant|>", add_special_tokens=False
            )["input_ids"]
            statement = tokenizer(f"We agree on {question}.", add_special_tokens=False)["input_ids"]
            statement.append(tokenizer.eos_token_id)
            with torch.inference_mode():
                scores = model(torch.tensor([prompt + statement])).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
            expected.append(math.exp(-scores[torch.arange(len(statement)), statement].mean()))
    assert min(abs(one - trained[1]["perplexity_of_base"]) / one for one in expected) < 1e-5


def test_a_run_names_the_fingerprint_of_the_adapter(base: Path, trained: tuple[Path, dict[str, Any]]) -> None:
    pytest.importorskip("opinionsim.local", reason="the folder of models in the process is deleted")
    folder, card = trained
    model: Any = osim.load_chat_model(f"hf:{base}", adapter=str(folder), max_tokens=4, device="cpu")
    plain: Any = osim.load_chat_model(f"hf:{base}", max_tokens=4, device="cpu")
    digest = card["fingerprint"].removeprefix("sha256:")[:12]
    assert model.model.startswith(f"hf:{base}+{folder}#{digest}@")
    assert model.model.rpartition("@")[2] != plain.model.rpartition("@")[2]
    assert model.invoke("Q1?").response_metadata["model_name"] == model.model
    model.close()
    plain.close()


@pytest.mark.parametrize("step", few([1, 4, 6], 1))
def test_an_interrupted_training_resumes_to_equal_weights(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    whole = train_statements(RATED, base, tmp_path / "whole", prompt=short, **BRIEF)
    with monkeypatch.context() as patch:
        interrupt_at(patch, step)
        with pytest.raises(KeyboardInterrupt):
            train_statements(RATED, base, tmp_path / "parts", prompt=short, **BRIEF)
    assert train_statements(RATED, base, tmp_path / "parts", prompt=short, **BRIEF) == whole
    one, two = adapters(tmp_path / "whole"), adapters(tmp_path / "parts")
    assert set(one) == set(two)
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_training_stops_early_and_keeps_the_best_epoch(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Held-out statements that are unlike those that are trained on become less likely in the end.
    table = RATED.assign(split=np.where(RATED["group"] == 4, "validation", "train"))
    table.loc[(table["group"] == 4) & (table["quality"] > 4), "statement"] = "{zzzz} ~yyyy~"
    settings = {**BRIEF, "epochs": 30, "learning_rate": 5e-2, "patience": 2}
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        card = train_statements(table, base, tmp_path / "model", prompt=short, **settings)
    assert card["epochs"] < 30
    last = max((tmp_path / "model" / "checkpoints").iterdir(), key=lambda each: int(each.name.split("-")[1]))
    state = json.loads((last / "trainer_state.json").read_text())
    perplexities = [entry["eval_perplexity"] for entry in state["log_history"]]
    assert card["perplexity"] == pytest.approx(min(perplexities[1:]), rel=1e-6)
    assert perplexities.index(min(perplexities[1:])) == len(perplexities) - 3

    # Begun again, it makes no step, and takes the best epoch, wherever its folder is by now.
    (tmp_path / "model" / "card.json").unlink()
    (tmp_path / "model").rename(tmp_path / "elsewhere")
    interrupt_at(monkeypatch, 1)
    assert train_statements(table, base, tmp_path / "elsewhere", prompt=short, **settings) == card


@pytest.mark.parametrize("progress", [False, True])
def test_nothing_is_printed_but_a_bar_on_stderr(
    base: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], progress: bool
) -> None:
    train_statements(RATED, base, tmp_path / "model", prompt=short, **BRIEF, progress=progress)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert ("6/6" in printed.err) == progress


def test_opinions_stand_in_a_new_order_in_each_epoch(base: Path, tmp_path: Path) -> None:
    def carried_out(name: str, seed: int) -> list[tuple[str, tuple[str, ...]]]:
        seen: list[tuple[str, tuple[str, ...]]] = []

        def noting(question: str, opinions: Sequence[str]) -> str:
            seen.append((question, tuple(opinions)))
            return short(question, opinions)

        settings = {**BRIEF, "epochs": 5, "patience": 5, "learning_rate": 1e-6, "seed": seed}
        train_statements(RATED.assign(split=split), base, tmp_path / name, prompt=noting, **settings)
        return seen

    split = np.where(RATED["group"] == 4, "validation", "train")
    first = carried_out("first", 0)
    assert all(set(opinions) == {"0a", "1b", "2c"} for question, opinions in first if question != "QUESTION")
    assert len({opinions for question, opinions in first if question == "Q1?"}) > 2
    assert carried_out("again", 0) == first
    assert carried_out("other", 1) != first


def test_thresholds_are_on_mean_quality_of_reliable_raters(base: Path, tmp_path: Path) -> None:
    table = RATED.assign(split=np.where(RATED["group"] == 4, "validation", "train"))
    good = table["quality"] > 4
    # One rater finds the statements of group 0 bad: its mean falls to 4.67.
    low = table.assign(quality=table["quality"].where(~((table["group"] == 0) & good & (table["citizen"] == 2)), 1.0))
    assert train_statements(low, base, tmp_path / "low", prompt=short, **BRIEF)["n_train"] == 3
    # A rater who is not reliable does not count, and its opinion is still read.
    unreliable = low.assign(reliable=low["citizen"] != 2)
    examples = statement_examples(read_ratings(unreliable, "quality"))
    assert (examples[0].quality, examples[0].opinions) == (6.5, ("0a", "1b", "2c"))
    middling = table.assign(quality=table["quality"].replace({6.5: 5.5}))
    with pytest.raises(SpecError, match=r"none of 2 statements in 'validation' has a mean quality above 6; .* 5\.50"):
        train_statements(middling, base, tmp_path / "middling", prompt=short, **BRIEF)


def test_statements_of_later_rounds_and_the_position_are_left_out() -> None:
    later = RATED[RATED["group"] == 0].assign(round=2, opinion="changed", statement="Revised.")
    position = RATED[RATED["group"] == 0].assign(statement="Yes.", candidate="position")
    table = pd.concat([RATED.assign(round=1, candidate=0), later.assign(candidate=1), position.assign(round=1)])
    assert statement_examples(read_ratings(table, "quality")) == statement_examples(read_ratings(RATED, "quality"))
    drafted = RATED.assign(policy="zero-shot", left_out=None)
    others = [RATED.assign(statement=kind, policy=kind, left_out=None) for kind in ("own opinion", "control")]
    without = RATED.assign(statement="Without one.", policy="zero-shot", left_out=1)
    told = read_ratings(pd.concat([drafted, *others, without]), "quality")
    assert statement_examples(told) == statement_examples(read_ratings(RATED, "quality"))
    with pytest.raises(SpecError, match=r"citizen 0 of group 0 has two opinions on 'Q0\?'"):
        statement_examples(read_ratings(table.drop(columns="round"), "quality"))


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("  We agree.\nHuman: more", "We agree."),
        ("\n\n We agree. ", "We agree."),
        ('"We agree."', "We agree."),
        ("\u201cWe agree.\u201d", "We agree."),
        ('We "agree" to "differ"', 'We "agree" to "differ"'),
        ("Statement: We agree.", "We agree."),
        ("Q? yes no\nStatement: We agree.\nStatement: other", "We agree."),
        ("Statement: \" 'We agree.' \"\n", "We agree."),
        ('""', ""),
        ('"', '"'),
        ("Statement:", ""),
        ("", ""),
    ],
)
def test_drafts_are_cleaned(text: str, statement: str) -> None:
    assert cleaned_statement(text, short("Q?", ["yes", "no"])) == statement
    assert cleaned_statement(statement) == statement


class Noting(BaseChatModel):
    """Notes each prompt, and answers with something that can be read."""

    seen: list[list[str]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "noting"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.seen.append([str(message.content) for message in messages])
        answer = "I </response> agree.\n<ranking>A > B</ranking>"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])


def test_statements_are_trained_with_the_prompt_that_runs_ask_with(tmp_path: Path) -> None:
    question = "Should the library be open on Sundays?"
    given = ["Yes.", "Only if the </response> staff agrees.\n\nOpinion 9:", "No <|end|>!"]
    specification = {
        "name": "drafts",
        "model": {"name": "noting"},
        "cast": [{"name": f"C{number}", "text": text} for number, text in enumerate(given)],
        "task": question,
        "interaction": {
            "kind": "consensus",
            "drafters": [{"count": 2, "style": "completion"}],
            "rounds": 0,
            "ballots": ["predicted"],
        },
        "roles": {"mediator": {}, "predictor": {}},
    }
    model = Noting(cache=False)
    osim.run(osim.load_experiment(specification), store=f"sqlite:///{tmp_path}/runs.sqlite", chat_model=model)
    drafts = [prompt for prompt in model.seen if "Draft one statement" in prompt[-1]]
    assert len(drafts) == 2
    for prompt in drafts:
        orders = itertools.permutations(given)
        assert prompt in [[statement_prompt(question, order)] for order in orders]


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (lambda t: t.drop(columns=["group", "quality"]), {}, "data: lacks the columns quality, group"),
        (lambda t: t.assign(group=None), {}, "row 1, group: None must be given"),
        (lambda t: t.assign(reliable="yes"), {}, "row 1, reliable: 'yes' must be true or false"),
        (lambda t: t.assign(quality=0.5), {}, "quality: .*0.5.* must be from 1 to 7"),
        (lambda t: t.assign(question="One?", citizen=range(len(t))), {}, "a split needs two or more questions"),
        (lambda t: t, {"train_above": 7}, "train_above"),
        (lambda t: t, {"max_tokens": 12}, "max_tokens: every example is longer than 12; the shortest: "),
    ],
)
def test_bad_input_is_one_error_before_any_step(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, settings: dict[str, Any], message: str
) -> None:
    interrupt_at(monkeypatch, 1)
    with pytest.raises(OpinionSimError, match=message):
        train_statements(change(RATED), base, tmp_path / "out", **{**BRIEF, **settings})
    assert not (tmp_path / "out").exists()


def test_control_tokens_in_texts_are_broken_up(base: Path, tmp_path: Path) -> None:
    spelled = RATED.assign(statement=RATED["statement"] + " <|end|> x", opinion="<|user|>" + RATED["opinion"])
    spelled = spelled.assign(statement=spelled["statement"].str.replace("\n", " "))
    broken = spelled.assign(
        statement=spelled["statement"].str.replace("<|end|>", "< |end|>"), opinion="< |user|>" + RATED["opinion"]
    )
    cards = [
        train_statements(table, base, tmp_path / name, prompt=short, **{**BRIEF, "epochs": 1})
        for name, table in {"spelled": spelled, "broken": broken}.items()
    ]
    assert cards[0]["fingerprint"] == cards[1]["fingerprint"]
