"""What `opinionsim plan` prints."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from opinionsim.cli._plan_preview import comparison_text
from opinionsim.cli._run import _compare
from opinionsim.planning import plan
from opinionsim.running import Summary
from opinionsim.specification import load_experiment
from opinionsim.store import Paid
from tests.cli.conftest import Invoke
from tests.support.command import refused

KEYS = [
    "experiment", "models", "cells", "runs", "calls", "texts", "longest_path", "width", "slots", "useful_slots",
    "rounds", "least_s", "most_s", "sequential_s", "acted_out", "currency", "price_date", "lanes", "notes", "lacking",
    "run_width",
    "speedup", "input_characters", "input_tokens", "shared_tokens", "output_tokens", "cost", "latency_s", "by_model",
    "missing",
]  # fmt: skip


def test_who_takes_part_stands_first(invoke: Invoke, spec: Path) -> None:
    printed = invoke("plan", spec, "--set", "population.size=25").stdout.splitlines()
    assert printed[1].startswith("Taking part: 25 agents who play the 10 personas of chuang2024, some more than once;")


def test_json_has_the_figures_of_the_forecast(invoke: Invoke, spec: Path) -> None:
    found = json.loads(invoke("plan", spec, "--reply-tokens", 40, "--json").stdout)
    forecast = plan(load_experiment(spec), reply_tokens=40)
    assert list(found) == KEYS
    assert found["input_characters"] == forecast.input_characters
    assert found["input_tokens"] == forecast.input_tokens
    assert found["output_tokens"] == 40 * forecast.calls
    assert found["shared_tokens"] == forecast.shared_tokens > 0
    assert (found["cost"], found["notes"], found["missing"]) == (0, list(forecast.notes), None)
    (model,) = found["by_model"]
    assert (model["name"], model["calls"], model["observed"]) == ("scripted", forecast.calls, 0)


def test_text_and_json_show_the_same_lanes(invoke: Invoke, spec: Path) -> None:
    priced = ("--set", "model={name: 'openai:gpt-5.4', temperature: null}", "--set", "sweep=null")
    found = json.loads(invoke("plan", spec, *priced, "--latency", 30, "--json").stdout)
    now, flex, batch = found["lanes"]
    assert [each["lane"] for each in found["lanes"]] == ["now", "flex", "batch"]
    assert batch["rounds"] == [found["longest_path"]] * 2
    assert batch["times_s"] == [60 * minutes * found["longest_path"] for minutes in (7, 27, 60)]
    assert now["times_s"] == flex["times_s"] == [found["least_s"], found["most_s"]]
    assert batch["cost"] == pytest.approx(found["cost"] / 2)
    assert {lane: each["cost"] for lane, each in found["by_model"][0]["lanes"].items()} == {
        each["lane"]: each["cost"] for each in found["lanes"]
    }
    printed = invoke("plan", spec, *priced, "--latency", 30).stdout
    rows = {line.split()[0]: line.split()[1:3] for line in printed.splitlines() if line}
    for each in found["lanes"]:
        assert rows[each["lane"]] == [f"{each['cost']:.2f}" if each["cost"] >= 0.1 else f"{each['cost']:.2g}", "USD"]
    assert found["notes"][0] in printed
    assert found["notes"][0].startswith("Cheapest lane for this study: ")


def test_text_says_what_is_counted_and_what_assumed(invoke: Invoke, spec: Path) -> None:
    text = invoke("plan", spec).stdout
    forecast = plan(load_experiment(spec))
    for fragment in (
        f"{forecast.input_tokens:,} tokens",
        f"{forecast.input_characters:,} characters",
        "free",
        "useful slots",
        "--reply-tokens",
        f"the prompts of {forecast.acted_out} of {forecast.calls} calls",
    ):
        assert fragment in text


def test_a_store_tells_what_is_missing_and_how_long_replies_are(invoke: Invoke, spec: Path, store: Path) -> None:
    more = ("--set", "replicates=3", "--store", store)
    found = json.loads(invoke("plan", spec, *more, "--json").stdout)
    assert (found["runs"], found["missing"]["runs"], found["missing"]["calls"]) == (6, 2, 24)
    assert found["by_model"][0]["observed"] == 48
    text = invoke("plan", spec, *more).stdout
    assert "missing" in text
    assert "48 calls in the store" in text
    assert "all are complete in the store" in invoke("plan", spec, "--store", store).stdout


def test_models_with_their_prices(invoke: Invoke, spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (spec.parent / "prices.yaml").write_text(
        "{date: 2025-01-02, currency: EUR, per: 1000, source: {}, models: {'openai:dear': {input: 2, output: 8}}}"
    )
    result = invoke(
        "plan", spec, "--set", "sweep={model.name: ['openai:dear', 'openai:unknown']}",
        "--set", "execution.prices=prices.yaml",
    )  # fmt: skip
    assert result.exit_code == 0
    assert "2,000 and 8,000 EUR a million tokens in and out, 2025-01-02" in result.stdout
    assert "no price for openai:unknown" in result.stdout


def test_a_model_that_cannot_be_loaded_is_one_error(invoke: Invoke, spec: Path) -> None:
    refused = [invoke(command, spec, "--set", "model.name=maker:unknown") for command in ("plan", "run")]
    assert [result.exit_code for result in refused] == [2, 2]
    assert refused[0].stderr == refused[1].stderr
    assert "maker:unknown" in refused[0].stderr
    assert refused[0].stdout == ""


def test_a_budget_that_will_not_do(invoke: Invoke, spec: Path) -> None:
    text = invoke("plan", spec, "--set", "execution.budget.calls=20").stdout
    assert "execution.budget.calls = 20 will stop the experiment" in text
    assert "will stop" not in invoke("plan", spec, "--set", "execution.budget.calls=48").stdout


def test_an_adaptive_schedule_says_so(invoke: Invoke, spec: Path) -> None:
    changed = ("--set", "interaction.kind=similarity")
    assert "Later turns depend on what agents say" in invoke("plan", spec, *changed).stdout
    assert "more do not lower the least time" in invoke("plan", spec).stdout
    assert "more do not lower the least time" not in invoke("plan", spec, *changed).stdout
    lines = dict(line.split(None, 1) for line in invoke("plan", spec, *changed).stdout.splitlines() if " " in line)
    assert lines["width"].startswith("not known"), "calls of a stage may be made at once"
    assert "at most, at 1 s a call" in invoke("plan", spec, *changed).stdout
    assert "later turns depend on what is said before" in invoke("plan", spec, *changed).stdout
    assert json.loads(invoke("plan", spec, *changed, "--json").stdout)["longest_path"] is None


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (("--reply-tokens", "nan"), "--reply-tokens"),
        (("--reply-tokens", "inf"), "--reply-tokens: must be a finite number; got inf"),
        (("--latency", "inf"), "--latency: must be a finite number; got inf"),
        (("--reply-tokens", "0"), "--reply-tokens"),
        (("--latency", "-1"), "--latency"),
        (("--store", "nowhere.sqlite"), "no store"),
        (("--store", "notes.txt"), "store address"),
    ],
    ids=str,
)
def test_options_that_cannot_be_used(spec: Path, arguments: tuple[str, str], fragment: str) -> None:
    assert fragment in refused("plan", spec, *arguments)


def test_a_judge_has_a_row_of_its_own(invoke: Invoke, spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    judge = "{name: chat, options: {model: 'openai:judge'}}"
    rows = [
        line.split() for line in invoke("plan", spec, "--set", f"measurement.classifier={judge}").stdout.splitlines()
    ]
    assert ["judge", "openai:judge"] in [row[:2] for row in rows]
    (table,) = [row for row in rows if row[:2] == ["openai:judge", "(judge)"] and len(row) > 5]
    assert table[2] == "48"


def test_a_key_goes_to_a_strange_host_only_where_the_command_allows_it(
    invoke: Invoke, spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPINIONSIM_KEYS", "")  # what the command adds to it ends with the test
    options = "{base_url: 'https://llm.example.org/v1', api_key_env: OPENAI_API_KEY}"
    arguments = ("--set", "model.name=openai:m", "--set", f"model.options={options}", "--set", "sweep=null")
    for command in ("plan", "run"):
        assert "OPENAI_API_KEY would be sent to llm.example.org" in refused(command, spec, *arguments)
    found = invoke("plan", spec, *arguments, "--allow-key", "OPENAI_API_KEY=llm.example.org", "--json")
    assert "example.org=" not in found.stdout + found.stderr
    assert json.loads(found.stdout)["calls"] > 0


def test_a_file_beside_a_specification_is_imported_for_a_part_named_by_its_path_alone(
    invoke: Invoke, spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    for package in ("langchain_fireworks", "peft_of_nobody"):
        Path(f"{package}.py").write_text("open('imported', 'w').close()\nraise ImportError\n", encoding="utf-8")
    assert "langchain-fireworks" in refused("run", spec, "--set", "model.name=fireworks:m")
    assert not Path("imported").exists()
    # A part of one's own, and what it imports from beside it.
    Path("beside_mine.py").write_text("SIZE = 2\n", encoding="utf-8")
    Path("nets_of_mine.py").write_text(
        "import opinionsim as osim\nfrom opinionsim.networks import NetworkKind\n"
        "@osim.part('network')\nclass Star(NetworkKind):\n    def pairs(self, size, rng):\n"
        "        from beside_mine import SIZE\n        return [(0, each) for each in range(SIZE - 1, size) if each]\n",
        encoding="utf-8",
    )
    assert invoke("plan", spec, "--set", "interaction.network=nets_of_mine:Star").exit_code == 0
    # The name of a dependency is never taken from there, whoever asks for it.
    monkeypatch.setattr("opinionsim.registry._own_folder._dependencies", lambda: frozenset(("peft_of_nobody",)))
    assert "cannot import" in refused("plan", spec, "--set", "interaction.network=peft_of_nobody:Net")
    assert not Path("imported").exists()


def test_a_run_without_a_key_for_its_judge_spends_nothing(spec: Path) -> None:
    judge = "{name: chat, options: {model: 'maker:judge'}}"
    assert "measurement.classifier" in refused("plan", spec, "--set", f"measurement.classifier={judge}")


def test_a_pilot_of_scripted_agents_is_compared_with_nothing(invoke: Invoke, spec: Path) -> None:
    said = invoke("run", spec, "--pilot").stderr
    assert "forecast" not in said
    assert "The rest of the sweep: 24 calls. To continue, repeat the command without --pilot." in said
    assert "rest of the sweep" not in invoke("run", spec).stderr


def test_a_pilot_of_models_is_compared_and_tells_what_the_rest_takes(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forecast = plan(load_experiment(spec), only=load_experiment(spec).pilot, reply_tokens=40)
    forecast = replace(forecast, models=(replace(forecast.models[0], name="maker:dear", cost=1.0),))
    summary = Summary(2, 2, 0, {}, False, None, 24, 0, 0, Paid(24, 9_000, 1_000, 1.5), 12.0)
    _compare(forecast, summary, 72)
    said = capsys.readouterr().err
    assert "money (USD)" in said
    assert "The rest of the sweep: 72 calls, 30,000 tokens, 4.50 USD, at most 36.0 s at the pace of the pilot." in said


def test_a_comparison_leaves_out_what_there_is_nothing_to_say_of(spec: Path) -> None:
    forecast = plan(load_experiment(spec), reply_tokens=40)
    lines = comparison_text(forecast, Paid(48, 10_000, 3840, 0.0), None).splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == ["calls", "input tokens", "output tokens"]
    assert len({len(line) for line in lines}) == 1


def test_a_comparison_has_a_line_a_figure(spec: Path) -> None:
    forecast = plan(load_experiment(spec), reply_tokens=40)
    paid = Paid(96, 1000, 3840, 0.25, uncounted=1, cached_tokens=400, saved=0.125)
    lines = comparison_text(forecast, paid, 60.0).splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == [
        "calls", "input tokens", "output tokens", "cached (at most)", "money (USD)", "saved (at most)",
        "seconds (at least)",
    ]  # fmt: skip
    assert lines[1].split()[-3:] == ["48", "96", "2.00"]
    assert "not known" in lines[2]
    assert (lines[4].split()[-2], lines[6].split()[-1]) == ("400", "0.125")
