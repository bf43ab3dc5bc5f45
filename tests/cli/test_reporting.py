"""What tables, figures, transcripts and status say of runs with chat models; a model of fixed replies stands in."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from PIL import Image

import opinionsim as osim
from opinionsim.metrics import NOT_VALIDATED, answered_otherwise
from opinionsim.planning import card_file
from opinionsim.registry import serving
from opinionsim.report import study
from opinionsim.specification import load_experiment
from tests.cli.conftest import Invoke
from tests.support.command import refused
from tests.support.running import SMALL, changed

SPEC = changed(
    SMALL,
    name="talk",
    model={"name": "openai:fake"},
    measurement={"classifier": "lexicon", "texts": ["report", "post"]},
    sweep={"topic.framing": ["falsehood", "truth"]},
)
#: What the fixed model says, with how it ends.
SAYINGS = (
    ("I am completely certain that this theory is true.", "stop"),
    ("I'm sorry, but I can't help with that.", "stop"),
    ("It is nonsense, I do not believe it, not at", "length"),
    ("", "stop"),
    ("I had porridge for breakfast.", "stop"),
)
STATUSES = dict(zip(SAYINGS, ("answered", "refused", "truncated", "empty", "answered"), strict=True))
THOUGHT = "Hmm.\x1b[31m {{ 7 * 7 }}"


class Talker(BaseChatModel):
    """Answers by what it is asked; thinks aloud and counts tokens."""

    changes: str = ""

    def told(self, number: int) -> dict[str, str]:
        """What is said of the model; every other reply says something else where it changes."""
        told = {"model_name": "fake-2026", "system_fingerprint": "fp_0"}
        return told | ({self.changes: f"{told[self.changes]}b"} if self.changes and number % 2 else {})

    @property
    def _llm_type(self) -> str:
        return "talker"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        # What is added where the same is asked again changes no reply.
        number = zlib.crc32("|".join([*(each.text for each in messages[:-1]), messages[-1].text[:80]]).encode())
        text, end = SAYINGS[number % len(SAYINGS)]
        message = AIMessage(
            content=f"<think>{THOUGHT}</think>{text}",
            response_metadata={"finish_reason": end, **self.told(number)},
            usage_metadata={
                "input_tokens": 1200,
                "output_tokens": 30,
                "total_tokens": 1230,
                "input_token_details": {"cache_read": 500},
                "output_token_details": {"reasoning": 12},
            },
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The store of an experiment with a chat model; to be read only."""
    store = str(tmp_path_factory.mktemp("talk") / "talk.sqlite")
    osim.run(load_experiment(SPEC), store, chat_model=Talker())
    return store


def test_missing_values_keep_their_cause(talk: str) -> None:
    results = osim.load(talk)
    told = results.opinions.merge(results.turns[["run_id", "turn", "message"]], on=["run_id", "turn"])
    expected = {text: status for (text, _), status in STATUSES.items()}
    assert set(told["status"]) == set(expected.values())
    assert all(expected[row.message] == row.status for row in told.itertuples())
    assert told.loc[told["status"] != "answered", "value"].isna().all()
    for row in results.metrics.itertuples():
        own = told[(told["run_id"] == row.run_id) & (told["kind"] == row.kind)]
        for cause in ("refused", "empty", "truncated"):
            assert getattr(row, f"n_{cause}") == (own["status"] == cause).sum()


def test_reports_tell_the_card_beside_the_store_of_the_model_that_played(talk: str) -> None:
    results = osim.load(talk)
    (name,) = results.agents["model"].unique()
    assert not any("Card of" in each for each in study(results).caveats)
    lines = {line: {"text": f"[{line}]"} for line in ("usable", "kept", "readable", "follows", "retest")}
    card = {"model": name, "calls": 100, "asked_on": "2026-11-28", "lines": lines}
    path = card_file(name, results.url)
    path.write_text(json.dumps(card), encoding="utf-8")
    try:
        (told,) = (each for each in study(results).caveats if "Card of" in each)
    finally:
        path.unlink()
    made_by = "".join(f"opinionsim {each}, " for each in serving("card"))
    assert told.startswith(f"Card of {name} ({made_by}100 calls of 2026-11-28): usable texts [usable], ")


@pytest.mark.long
def test_tables_figures_and_files_say_that_nobody_has_validated_the_instrument(
    invoke: Invoke, talk: str, tmp_path: Path
) -> None:
    printed = invoke("table", talk, "--csv", "t.csv").stdout
    assert printed.startswith("Language-model agents | ")
    assert f"Validation of this instrument: {NOT_VALIDATED}." in printed
    assert "Texts without an opinion: " in printed
    made, *_ = json.loads(invoke("table", talk, "--json").stdout)
    assert {row["validation"] for row in made["rows"]} == {NOT_VALIDATED}
    assert set(pd.read_csv("t.csv")["validation"]) == {NOT_VALIDATED}
    assert invoke("plot", talk, "--out", "figures").exit_code == 0
    with Image.open("figures/talk-outcome.png") as image:
        # Titles are broken to the width of the figure.
        assert NOT_VALIDATED in image.info["Description"].replace("; ", " ")
    assert invoke("export", talk, "out").exit_code == 0
    for name in ("runs", "metrics"):
        assert set(pd.read_csv(f"out/{name}.csv")["validation"]) == {NOT_VALIDATED}
    assert f"coded by lexicon: {NOT_VALIDATED}\n" in invoke("show", talk).stdout


def test_self_reports_and_scripted_agents_need_no_validation(invoke: Invoke, store: Path) -> None:
    assert set(osim.load(str(store)).runs["validation"]) == {""}
    asked = {"classifier": "lexicon", "texts": ["report"], "self_report": {"after": 1}}
    results = osim.run(load_experiment(changed(SPEC, measurement=asked)), "asked.sqlite", chat_model=Talker())
    assert set(zip(results.metrics["kind"], results.metrics["validation"], strict=True)) == {
        ("report", NOT_VALIDATED),
        ("self-report", ""),
    }
    printed = invoke("table", "asked.sqlite", "--kind", "self-report").stdout
    assert ("Instrument: self-reports" in printed, NOT_VALIDATED in printed) == (True, False)


def test_transcripts_mark_what_is_no_answer(invoke: Invoke, talk: str) -> None:
    results = osim.load(talk)
    blocks = invoke("show", talk).stdout.split("\n\nstep ")[1:]
    turns = results.turns[results.turns["run_id"] == results.runs["run_id"][0]]
    assert len(blocks) == len(turns)
    for block, turn in zip(blocks, turns.itertuples(), strict=True):
        heading = block.split("\n")[0]
        if turn.status == "answered":
            assert heading.endswith("[no opinion found]") == ("porridge" in turn.message)
        elif turn.status == "truncated":
            assert "  [truncated, " in heading
        else:
            assert heading.endswith(f"  [{turn.status}]")


def test_a_call_is_shown_with_its_reasoning_as_data(invoke: Invoke, talk: str) -> None:
    shown = invoke("show", talk, "--turn", 0, "--prompt").stdout
    assert "\n[reasoning]\nHmm.\\x1b[31m {{ 7 * 7 }}\n" in shown
    assert "\x1b" not in shown
    assert "model fake-2026 · 1,200 tokens in · 500 of them cached · 30 tokens out · 12 of them reasoning · " in shown
    results = osim.load(talk)
    own = results.calls[results.calls["run_id"] == results.runs["run_id"][0]]
    call = own[own["turn"] == 0].iloc[0]
    assert f"=====\n{call['status']} · finish reason {call['finish_reason']} · " in shown
    assert shown.index("[reasoning]") < shown.index("[reply]")


def test_status_tells_what_was_used(invoke: Invoke, talk: str) -> None:
    (found,) = json.loads(invoke("status", talk, "--json").stdout)
    calls = len(osim.load(talk).calls)
    assert (found["calls"], found["tokens_in"], found["tokens_out"]) == (calls, 1200 * calls, 30 * calls)
    header, line = invoke("status", talk).stdout.splitlines()[:2]
    assert header.split()[-8:] == ["calls", "tokens", "in", "tokens", "cached", "tokens", "out", "money"]
    cached = [f"{500 * calls:,}", "(42%)"]
    assert line.split()[-6:] == [str(calls), f"{1200 * calls:,}", *cached, f"{30 * calls:,}", "-"]


def test_status_tells_what_caches_saved(invoke: Invoke, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    price = "{input: 4, cached_input: 1, output: 0}"
    prices.write_text(f"{{date: 2026-01-02, currency: USD, per: 1000, models: {{'openai:fake': {price}}}}}")
    store, spec = str(tmp_path / "priced.sqlite"), changed(SPEC, execution={"prices": str(prices)})
    osim.run(load_experiment(spec), store, chat_model=Talker())
    calls = osim.load(store).calls
    (found,) = json.loads(invoke("status", store, "--json").stdout)
    assert found["tokens_cached"] == 500 * len(calls)
    # 500 tokens at 1 instead of 4 a thousand; the other 700 cost the whole.
    assert found["money_saved"] == pytest.approx(1.5 * len(calls))
    assert found["money"] == pytest.approx(3.3 * len(calls))
    header, line = invoke("status", store).stdout.splitlines()[:2]
    assert header.endswith("money saved")
    assert line.split()[-1] == f"{1.5 * len(calls):,.4f}"


@pytest.mark.parametrize(
    ("changes", "returned"),
    [
        ("model_name", ["fake-2026 (fp_0)", "fake-2026b (fp_0)"]),
        ("system_fingerprint", ["fake-2026 (fp_0)", "fake-2026 (fp_0b)"]),
    ],
)
def test_status_and_tables_tell_where_several_models_answered_under_one_name(
    invoke: Invoke, changes: str, returned: list[str]
) -> None:
    osim.run(load_experiment(SPEC), "s.sqlite", chat_model=Talker(cache=False, changes=changes))
    (found,) = json.loads(invoke("status", "s.sqlite", "--json").stdout)
    assert found["models"] == {"openai:fake": returned}
    said = f"Replies of openai:fake came from {', '.join(returned)}."
    assert f"\ntalk: {said}\n" in invoke("status", "s.sqlite").stdout
    evidence = [each["notes"][0] for each in json.loads(invoke("table", "s.sqlite", "--json").stdout)]
    assert all(each.startswith("Evidence: ") and each.endswith(said) for each in evidence)


def test_a_name_that_a_model_gives_itself_stands_beside_the_evidence_of_every_table(invoke: Invoke, talk: str) -> None:
    said = "Replies of openai:fake came from fake-2026 (fp_0)."
    assert said in invoke("status", talk).stdout
    tables = json.loads(invoke("table", talk, "--json").stdout)
    assert tables
    assert all(each["notes"][0].endswith(said) for each in tables)


@pytest.mark.parametrize(
    ("name", "returned"),
    [
        ("openai:fake", ["fake (fp_0)"]),
        ("openai:fake (temperature=0)", ["fake"]),
        ("openai:fake", [""]),
        ("hf:tiny", ["hf:tiny@0a1b"]),
        ("scripted", ["scripted"]),
        ("judge.abc", ["fake-2026"]),
    ],
)
def test_nothing_is_said_of_models_that_answer_by_their_names(name: str, returned: list[str]) -> None:
    assert answered_otherwise({name: returned}) == []


MIXED = [
    {"name": "scripted", "share": 0.5, "options": {"pull": 2.0}},
    {"name": "scripted", "share": 0.5, "options": {"pull": -2.0}},
]


def test_agents_of_several_models_are_told_apart(invoke: Invoke) -> None:
    results = osim.run(load_experiment(changed(SMALL, model=MIXED)), "mixed.sqlite")
    names = {"scripted (pull=2.0)", "scripted (pull=-2.0)"}
    assert set(results.agents["model"]) == names
    shown = invoke("show", "mixed.sqlite").stdout
    for agent in results.agents.itertuples():
        assert f"(agent {agent.agent}, {agent.model}) " in shown or agent.agent not in set(results.turns["agent"])
    drawn = invoke("plot", "trajectories", "mixed.sqlite", "--set", "color_by=model", "--out", "figures")
    assert drawn.stdout == "figures/small-trajectories-color_by-model.png\n", drawn.stderr
    said = refused("plot", "distribution", "mixed.sqlite", "--set", "color_by=model")
    assert "color_by: unknown field" in said
