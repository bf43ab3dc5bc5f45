from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer
import yaml
from PIL import Image

import opinionsim as osim
from opinionsim.cli import app
from opinionsim.metrics import run_metrics
from opinionsim.planning import plan, preview
from opinionsim.registry import built_in
from opinionsim.report import plain_names, write_export
from opinionsim.specification import json_schema, load_experiment
from tests.cli.conftest import SMALL, Invoke
from tests.support.command import refused
from tests.support.editing import edit
from tests.support.running import changed

#: Name of a figure of one run.
RUN_FIGURE = "small-trajectories-run-cognition.confirmation_bias_strong_0.svg"
PNG = b"\x89PNG\r\n\x1a\n"


def test_plan_states_the_forecast(invoke: Invoke, spec: Path) -> None:
    forecast = plan(load_experiment(spec), max_concurrency=2)
    found = json.loads(invoke("plan", spec, "--max-concurrency", 2, "--latency", 0.5, "--json").stdout)
    assert (found["cells"], found["runs"], found["calls"], found["texts"]) == (2, 4, 48, 48)
    assert (found["longest_path"], found["slots"]) == (forecast.longest_path, 2)
    assert found["least_s"] == forecast.rounds * 0.5 == 12.0
    assert found["sequential_s"] == 24.0
    text = invoke("plan", spec, "--max-concurrency", 2, "--latency", 0.5).stdout
    assert "12.0 s" in text
    assert f"{forecast.longest_path} " in text


def test_preview_prints_prompts_as_they_are_sent(invoke: Invoke, spec: Path) -> None:
    shown = invoke("preview", spec, "--run", "strong/1").stdout
    assert shown.startswith("small: run cognition.confirmation_bias=strong/1 (")
    found = preview(load_experiment(spec), 3)
    assert set(found.prompts) == {"write", "review"}
    for messages in found.prompts.values():
        for message in messages:
            assert message.content in shown


def test_preview_of_a_run_without_a_step_says_so(invoke: Invoke, spec: Path) -> None:
    assert "This run has no steps and no probes" in invoke("preview", spec, "--set", "interaction.steps=0").stdout


def test_schema_is_that_of_the_specification(invoke: Invoke) -> None:
    assert json.loads(invoke("schema").stdout) == json_schema()


def test_status_counts_runs(invoke: Invoke, store: Path) -> None:
    (found,) = json.loads(invoke("status", store, "--json").stdout)
    assert found.pop("experiment_id")
    calls = osim.load(str(store)).calls
    counts = {
        "runs": 4, "complete": 4, "incomplete": 0, "under_way": 0, "cut_off": 0, "pending": 0, "being_coded": 0,
        "withdrawn": 0,
    }  # fmt: skip
    assert found == {
        "experiment": "small", **counts, "errors": {},
        "calls": 48, "tokens_in": calls["input_tokens"].sum(), "tokens_out": calls["output_tokens"].sum(),
        "tokens_cached": 0, "money": 0.0, "money_saved": 0.0,
        "batches": [],
        "asking_a_person": 0,
        "calls_left_behind": 0, "models": {"scripted": ["scripted"]},
        "designs": [{"design": 1, "frozen": False, "run_last": True, **counts}],
    }  # fmt: skip
    listed = invoke("status", store, "--runs").stdout.splitlines()
    rows = osim.load(str(store)).runs.itertuples()
    assert [line.split() for line in listed[-4:]] == [[f"{x.cell}/{x.replicate}", x.run_id, "complete"] for x in rows]


def test_a_damaged_store_is_named_by_status_and_check(invoke: Invoke, store: Path, tmp_path: Path) -> None:
    assert invoke("store", "check", store).stdout == "The store is sound.\n"
    path, run_id = tmp_path / "damaged.sqlite", osim.load(str(store)).runs["run_id"][0]
    shutil.copy(store, path)
    edit(path, "DELETE FROM journal WHERE run_id = ? AND turn = 3", run_id)
    lost = f"table journal has 11 rows of run {run_id}, not 12"
    (found,) = json.loads(invoke("status", path, "--json").stdout)
    assert found["errors"] == {run_id: f"run {run_id}: the store is damaged: {lost}"}
    # What was paid stays what it was.
    assert found["calls"] == 48
    assert f"1 run: run {run_id}: the store is damaged: {lost}" in invoke("status", path).stdout
    checked = invoke("store", "check", path)
    assert checked.exit_code == 1
    assert checked.stdout.splitlines()[0] == lost
    assert "damaged; restore it from a backup" in checked.stdout


def test_show_prints_one_run(invoke: Invoke, store: Path) -> None:
    results = osim.load(str(store))
    by_name = invoke("show", store, "--run", "strong/0").stdout
    assert by_name.startswith("run cognition.confirmation_bias=strong/0 · ")
    for name in (results.runs["run_id"][2][:8], "confirmation_bias=strong/0", "cognition.confirmation_bias = strong/0"):
        assert by_name == invoke("show", store, "--run", name).stdout
    assert by_name == osim.transcript(results, 2) + "\n" == osim.transcript(results, "strong/0") + "\n"
    assert by_name.count("\nstep ") == 12


def test_a_run_has_one_name_wherever_it_stands_also_once_a_study_has_grown(invoke: Invoke, tmp_path: Path) -> None:
    levels = ["weak", "none"]
    for more in ({}, {"replicates": 2, "sweep": {"cognition.confirmation_bias": ["strong", *levels]}}):
        spec = changed(
            yaml.safe_load(SMALL), **{"replicates": 1, "sweep": {"cognition.confirmation_bias": levels}, **more}
        )
        experiment = load_experiment(spec)
        file = tmp_path / "grown.yaml"
        file.write_text(yaml.safe_dump(spec), encoding="utf-8")
        osim.run(experiment, "grown.sqlite")
        listed = invoke("status", "grown.sqlite", "--runs").stdout
        for level in levels:
            name = f"cognition.confirmation_bias={level}/0"
            (run,) = [each for each in experiment.runs if (each.cell.label, each.replicate) == (name[:-2], 0)]
            shown = invoke("preview", file, "--run", f"{level}/0")
            assert shown.stdout.startswith(f"small: run {name} ({run.run_id[:8]})")
            shown = invoke("show", "grown.sqlite", "--run", f"{level}/0")
            assert shown.stdout.startswith(f"run {name} · {run.run_id} · ")
            assert json.loads(invoke("show", "grown.sqlite", "--run", run.run_id[:8], "--json").stdout)["run"] == name
            assert re.search(rf"^{name} +{run.run_id} +complete", listed, re.MULTILINE)
        refused = invoke("show", "grown.sqlite", "--run", "0")
        assert (refused.exit_code, f"run 0: {len(experiment.cells)} runs" in refused.stderr) == (2, True)


def test_show_prints_one_turn_and_its_literal_prompt(invoke: Invoke, store: Path) -> None:
    results = osim.load(str(store))
    shown = invoke("show", store, "--run", "none/1", "--turn", 5, "--prompt").stdout
    assert shown.count("\nstep ") == 1
    for message in results.prompt(1, 5):
        assert f"[{message.role}]\n{message.content}\n" in shown
    own = results.calls[(results.calls["run_id"] == results.runs["run_id"][1]) & (results.calls["turn"] == 5)]
    assert shown.endswith(f"[reply]\n{own['reply'].item()}\n")


def test_table_in_text_csv_and_json_says_the_same(invoke: Invoke, store: Path, tmp_path: Path) -> None:
    result = invoke("table", store, "--csv", "deep/t.csv", "--ddof", 1)
    assert result.stdout.startswith("SCRIPTED STAND-IN, not evidence about people or models | Opinions by condition")
    assert "ddof 1" in result.stdout
    saved = pd.read_csv(tmp_path / "deep" / "t.csv")
    made, *_ = json.loads(invoke("table", store, "--ddof", 1, "--json").stdout)
    assert saved["refused_rate"].tolist() == [row["refused_rate"] for row in made["rows"]]
    assert saved["diversity"].tolist() == pytest.approx([row["diversity"] for row in made["rows"]], rel=1e-12)
    assert set(saved["evidence"]) == {"scripted"}
    results = osim.load(str(store))
    measured = run_metrics(results.runs, results.opinions, results.agents, 1)
    unbiased = measured[(measured["kind"] == "report") & (measured["cell"] == results.runs["cell"][0])]
    assert made["rows"][0]["diversity"] == pytest.approx(unbiased["diversity"].mean())


def test_of_tables_and_figures_that_are_not_installed_the_names_are_shown(
    invoke: Invoke, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = invoke("table", store)
    monkeypatch.setattr(osim.Results, "declared", {"a cell": {"tables": ["gone"], "figures": ["lost"]}})
    left = invoke("table", store)
    assert left.stderr == "left out because it is not installed here: table gone, figure lost\n"
    assert left.stdout == whole.stdout
    assert invoke("report", store, "--out", "r.html").exit_code == 0
    assert "Not installed, and left out: table gone, figure lost." in Path("r.html").read_text(encoding="utf-8")


def test_two_tables_go_into_two_files(invoke: Invoke, spec: Path) -> None:
    axes = (
        "--set",
        "sweep={topic.name: [t-rex, bicycle-wheels], topic.framing: [falsehood, truth], "
        "cognition.memory: [cumulative, reflective]}",
    )
    assert invoke("run", spec, *axes, "--store", "two.sqlite").exit_code == 0
    result = invoke("table", "two.sqlite", "--as-published", "--csv", "t.csv")
    assert ("Table 1" in result.stdout, "Table 2" in result.stdout) == (True, True)
    assert "category" not in pd.read_csv("t-1.csv").columns
    assert set(pd.read_csv("t-2.csv")["category"]) == {"Science", "Common sense"}


@pytest.mark.parametrize(
    ("options", "name", "start"),
    [
        ((), "small-outcome.png", PNG),
        (
            ("panels", "--where", "confirmation_bias=strong", "--set", "replicate=1"),
            "small-panels-confirmation_bias-strong-replicate-1.png",
            PNG,
        ),
        (("trajectories", "--run", "strong/0", "--format", "svg"), RUN_FIGURE, b"<?xml"),
        (("distribution", "--format", "pdf"), "small-distribution.pdf", b"%PDF"),
    ],
)
def test_plot_writes_a_figure_and_prints_its_path(
    invoke: Invoke, store: Path, options: tuple[object, ...], name: str, start: bytes
) -> None:
    result = invoke("plot", *options, store, "--out", "figures")
    assert result.stdout == f"figures/{name}\n", result.stderr
    assert Path("figures", name).read_bytes().startswith(start)


def test_export_holds_the_frames_and_a_manifest_that_runs(invoke: Invoke, store: Path) -> None:
    written = invoke("export", store, "out/all").stdout.split()
    results = osim.load(str(store))
    assert [Path(path).name for path in written] == [
        "runs.csv", "agents.csv", "edges.csv", "turns.csv", "opinions.csv", "calls.csv", "metrics.csv", "codebook.csv",
        "manifest.json",
    ]  # fmt: skip
    for path in written[:-2]:
        frame = pd.read_csv(path)
        assert len(frame) == len(getattr(results, Path(path).stem))
        assert "evidence" in frame.columns
    assert json.loads(pd.read_csv("out/all/turns.csv")["reads"][1]) == [0]
    assert invoke("run", "out/all/manifest.json", "--store", "again.sqlite").exit_code == 0
    assert invoke("table", "again.sqlite").stdout == invoke("table", store).stdout


def test_export_replaces_an_earlier_one_and_nothing_else(invoke: Invoke, store: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert invoke("export", store, "out").exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (tmp_path / "out" / "notes.txt").write_text("mine")
    (tmp_path / "out" / "runs.csv").write_text("old")
    assert "'notes.txt'" in refused("export", store, "out")
    assert (tmp_path / "out" / "runs.csv").read_text() == "old"


def test_an_export_as_parquet_holds_the_same_and_is_replaced_by_one_as_csv(
    invoke: Invoke, store: Path, tmp_path: Path
) -> None:
    results = osim.load(f"sqlite:///{store}")
    assert invoke("export", store, "out", "--format", "parquet").exit_code == 0
    for name in ("runs", "agents", "edges", "turns", "opinions", "calls", "metrics"):
        found, frame = pd.read_parquet(f"out/{name}.parquet"), getattr(results, name)
        assert list(found.columns) == list(plain_names(frame.columns).values())
        found.columns = frame.columns
        numbers = frame.select_dtypes("number")
        pd.testing.assert_frame_equal(found[numbers.columns], numbers, check_dtype=False, check_like=True)
    assert invoke("export", store, "out").exit_code == 0
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".csv", ".json"}


def test_export_spells_out_what_no_file_can_hold(invoke: Invoke, spec: Path) -> None:
    assert invoke("run", spec, "--store", "s.sqlite").exit_code == 0
    results = osim.load("s.sqlite")
    results.turns.loc[0, "message"] = "half \ud83d, none \0, whole \U0001f600"
    write_export(results, Path("out"))
    found = pd.read_csv("out/turns.csv")["message"]
    assert found[0] == "half \\ud83d, none \\x00, whole \U0001f600"
    assert found[1:].tolist() == results.turns["message"][1:].tolist()


def test_replay_finds_what_was_tampered_with(invoke: Invoke, spec: Path) -> None:
    assert invoke("run", spec, "--store", "s.sqlite").exit_code == 0
    result = invoke("replay", "s.sqlite")
    assert (result.exit_code, result.stdout) == (0, "4 of 4 complete runs are equal after replay (48 turns)\n")
    with sqlite3.connect("s.sqlite") as connection:
        run_id = connection.execute("select min(run_id) from runs").fetchone()[0]
        connection.execute("update turns set agent = 3 - agent where run_id = ? and turn = 4", (run_id,))
    connection.close()
    changed = invoke("replay", "s.sqlite", "--json")
    assert changed.exit_code == 1
    differing = [each for each in json.loads(changed.stdout) if each["difference"]]
    damage = f"the store is damaged: in table turns the row of run_id {run_id}, turn 4 has changed since it was written"
    assert differing == [{"run_id": run_id, "turns": 0, "difference": damage}]


def test_classify_gives_value_and_probabilities(invoke: Invoke) -> None:
    texts = "I am completely certain that this theory is true.\n\nIt is nonsense, I do not believe it, not at all.\n"
    result = invoke("classify", "-", "--claim", "the moon is made of cheese", text=texts)
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [(row["id"], float(row["value"])) for row in rows] == [("1", 2.0), ("3", -2.0)]
    for row in rows:
        assert sum(float(row[f"p_{point}"]) for point in range(-2, 3)) == pytest.approx(1)
    Path("texts.txt").write_text(texts)
    as_json = json.loads(invoke("classify", "texts.txt", "--claim", "the moon is made of cheese", "--json").stdout)
    assert [row["value"] for row in as_json] == [2.0, -2.0]


def test_classify_leaves_a_refusal_without_a_value(invoke: Invoke) -> None:
    result = invoke("classify", "-", "--claim", "x", "--json", text="I'm sorry, but I can't help with that.")
    assert json.loads(result.stdout)[0]["value"] is None


TABLE = b"""\xef\xbb\xbfpost, text ,about\r
a7,"It is nonsense, I do not believe it,
not at all.",the moon is made of cheese\r
b2,,bicycles have four wheels\r
c9,"I am ""completely"" certain that this theory is true.",bicycles have four wheels.\r
"""


def _coded(result: Any) -> list[tuple[str, str, str]]:
    assert result.exit_code == 0, result.stderr
    return [(row["id"], row["claim"], row["value"]) for row in csv.DictReader(io.StringIO(result.stdout))]


def test_classify_reads_the_texts_of_a_csv_and_not_its_header(invoke: Invoke) -> None:
    Path("own.csv").write_bytes(TABLE)
    result = invoke("classify", "own.csv", "--text", "text", "--id", "post", "--claim-column", "about")
    cheese, wheels = "the moon is made of cheese", "bicycles have four wheels"
    assert _coded(result) == [("a7", cheese, "-2.0"), ("b2", wheels, ""), ("c9", wheels, "2.0")]
    assert "rows without a text, left without a value: 1" in result.stderr
    texts = [row["text"] for row in csv.DictReader(io.StringIO(result.stdout, newline=""))]
    assert texts == [
        "It is nonsense, I do not believe it,\nnot at all.",
        "",
        'I am "completely" certain that this theory is true.',
    ]


def test_classify_codes_each_text_once_a_claim(invoke: Invoke) -> None:
    claims = ("--claim", "tea is healthy", "--claim", "tea is bad.")
    result = invoke("classify", "-", "--text", "t", *claims, text="n;t\n1;Tea is healthy.\n2;Tea is bad.\n")
    found = [(identity, claim) for identity, claim, _ in _coded(result)]
    assert found == [("1", "tea is healthy"), ("1", "tea is bad"), ("2", "tea is healthy"), ("2", "tea is bad")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_classify_reads_any_line_ends(invoke: Invoke, end: str) -> None:
    rows = end.join(["n,t", "1,Tea is healthy.", '2,"Tea, I think, is bad."', ""])
    result = invoke("classify", "-", "--text", "t", "--id", "n", "--claim", "tea is bad", "--json", text=rows)
    assert [(row["id"], row["text"]) for row in json.loads(result.stdout)] == [
        ("1", "Tea is healthy."),
        ("2", "Tea, I think, is bad."),
    ]


def test_classify_counts_empty_texts_and_no_blank_lines(invoke: Invoke) -> None:
    result = invoke("classify", "-", "--text", "t", "--claim", "tea is bad", text='\n\nt\n""\n\n \nNA\n\n')
    assert [identity for identity, _, _ in _coded(result)] == ["1", "2", "3"]
    assert "rows without a text, left without a value: 2" in result.stderr


def test_classify_writes_to_a_file_what_it_prints(invoke: Invoke) -> None:
    Path("own.csv").write_bytes(TABLE)
    arguments = ("classify", "own.csv", "--text", "text", "--claim", "tea is bad")
    for form in ((), ("--json",)):
        invoke(*arguments, *form, "-o", "coded")
        assert Path("coded").read_bytes().decode() == invoke(*arguments, *form).stdout


EXPECTED: dict[str, set[str]] = {
    "topics": {"t-rex", "global-warming"},
    "personas": {"chuang2024"},
    "models": {"scripted", "PROVIDER:MODEL"},
    "classifiers": {"lexicon", "exact"},
    "templates": {"system", "write", "reflect", "anes", "debate_second_wave", "second_wave", "american_voices"},
    "experiments": {"demo", "quickstart", "chuang2024/tables"},
    "interactions": {"dyadic", "similarity", "bounded-confidence", "rewiring", "feed", "no-role-play"},
    "networks": set(built_in("network")),
    "memories": {"cumulative", "reflective"},
    "selectors": {"first", "shortest", "longest"},
    "metrics": {"bias", "diversity"},
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_lists(invoke: Invoke, kind: str) -> None:
    rows: list[dict[str, Any]] = json.loads(invoke("list", kind, "--json").stdout)
    assert EXPECTED[kind] <= {row["name"] for row in rows}
    printed = invoke("list", kind).stdout
    assert len(printed.splitlines()) == len(rows) + 1
    assert all(row["name"] in printed for row in rows)


def test_a_template_is_shown_whole_in_each_section_that_has_it(invoke: Invoke) -> None:
    rows: list[dict[str, Any]] = json.loads(invoke("list", "templates", "voting", "--json").stdout)
    assert [row["section"] for row in rows] == ["instructions", "moderators", "moderation"]
    printed = invoke("list", "templates", "voting").stdout
    assert all(f"# {row['section']}.voting, pack deliberation\n\n{row['text']}\n" in printed for row in rows)
    (one,) = json.loads(invoke("list", "templates", "moderators.first_wave", "--json").stdout)
    assert "common good" not in one["text"]
    assert "what is good for all" in one["text"]
    assert "- ${ideals}" not in one["text"]
    assert "{% include" in invoke("list", "templates", "write").stdout


def test_a_topic_is_shown_with_its_claims(invoke: Invoke, tmp_path: Path) -> None:
    (shown,) = json.loads(invoke("list", "topics", "flat-earth", "--json").stdout)
    assert shown["claims"]["falsehood"] == "the Earth is flat"
    assert (shown["accepted"], shown["masked"]) == ("truth", True)
    printed = dict(line.split(maxsplit=1) for line in invoke("list", "topics", "flat-earth").stdout.splitlines())
    assert printed["claims"] == "falsehood: the Earth is flat"
    assert printed["masked"] == "yes"
    own = {"name": "square", "claims": {"market": "the square should stay a market"}}
    asked = {**own, "name": "other", "question": "Should the square stay a market?"}
    (tmp_path / "own.json").write_text(json.dumps({"topics": [own, asked]}))
    printed = invoke("list", "topics", tmp_path / "own.json").stdout
    assert printed.count("market: the square should stay a market") == 2
    assert printed.count("Should the square stay a market?") == printed.count("question") == 1
    assert "other" in printed


def test_personas_are_shown_one_a_row(invoke: Invoke, tmp_path: Path) -> None:
    rows = json.loads(invoke("list", "personas", "chuang2024", "--json").stdout)
    assert len(rows) == 10
    assert rows[0]["attributes"]["occupation"] == "Financial Analyst"
    (tmp_path / "own.csv").write_text("name,opinion,age\nAda,2,50\nBo,1,30\n")
    printed = invoke("list", "personas", tmp_path / "own.csv").stdout
    assert [line.split() for line in printed.splitlines()] == [
        ["name", "opinion", "age"],
        ["Ada", "2", "50"],
        ["Bo", "1", "30"],
    ]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("listed", [*((kind,) for kind in EXPECTED), ("personas", "chuang2024")])
def test_no_list_is_wider_than_its_terminal(
    monkeypatch: pytest.MonkeyPatch, listed: tuple[str, ...], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout", terminal := _Terminal())
    typer.main.get_command(app)(["list", *listed], standalone_mode=False)
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    words = {word.strip(",") for line in lines for word in line.split()}
    assert EXPECTED[listed[0]] <= words or len(listed) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("list", "templates", "debat"), "no template is called 'debat' (did you mean debate?)"),
        (("list", "templates", "persona.anes"), "did you mean personas.anes?"),
        (("list", "topics", "t-rx"), "no topic is called 't-rx' (did you mean t-rex?); valid: flat-earth, t-rex, "),
        (
            ("list", "personas", "chuang"),
            "no persona set is called 'chuang' (did you mean chuang2024?); valid: ",
        ),
        (("list", "networks", "rings"), "unknown network 'rings' (did you mean ring?); valid: "),
        (("list", "models", "scripted"), "list models takes no name; "),
    ],
)
def test_a_name_that_is_not_there(invoke: Invoke, arguments: tuple[str, ...], said: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert said in result.output


def _description(figure: Path) -> str:
    with Image.open(figure) as image:
        return str(image.info["Description"])


@pytest.mark.whole
def test_demo_writes_what_it_lists_and_can_be_repeated(invoke: Invoke, tmp_path: Path, checkout: Path) -> None:
    first, second = invoke("demo", "--out", "shown"), invoke("demo", "--out", "shown")
    assert (first.exit_code, second.exit_code) == (0, 0), first.stderr + second.stderr
    assert first.stdout == second.stdout
    assert first.stdout.startswith("SCRIPTED STAND-IN")
    assert "say nothing about people" in first.stdout
    listed = {line.strip() for line in first.stdout.splitlines() if line.startswith("  shown/")}
    assert listed == {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert {Path(name).suffix for name in listed} == {".sqlite", ".txt", ".csv", ".png", ".html"}
    runs = osim.load("shown/demo.sqlite").runs
    assert set(runs["sweep.model"]) == {"influence", "attractor"}
    assert "opinionsim show shown/demo.sqlite\n" in first.stdout
    assert not osim.load("shown/demo.sqlite").manifest["contents"]["topics"]["package"]["global-warming"]["sensitive"]
    documented = _description(checkout / "docs" / "images" / "demo.png")
    outcome = osim.plots.outcome(osim.load("shown/demo.sqlite"))
    assert documented == osim.plots.caption_of(outcome), "make the figure again with docs/images/demo.py"
    assert "SCRIPTED STAND-IN" in documented


def test_an_agent_is_shown_by_its_number_or_the_beginning_of_its_name(invoke: Invoke, store: Path) -> None:
    results = osim.load(str(store))
    turns = results.turns[results.turns["run_id"] == results.runs["run_id"][0]]
    shown = invoke("show", store, "--agent", 1).stdout
    assert shown.count("\nstep ") == (turns["agent"] == 1).sum()
    assert "(agent 0) write" not in shown
    first = results.agents[results.agents["run_id"] == results.runs["run_id"][0]]
    name = first["name"][first["agent"] == 1].iloc[0]
    by_name = invoke("show", store, "--agent", name[:-1].lower())
    assert by_name.exit_code == 0, by_name.stderr
    assert by_name.stdout == shown
    assert f"1 {name}" in refused("show", store, "--agent", "Nobody")


def test_metrics_name_the_replicate_of_each_run(store: Path) -> None:
    results = osim.load(str(store))
    both = results.metrics.merge(results.runs[["run_id", "cell", "replicate"]], on=["run_id", "cell"])
    assert len(both) == len(results.metrics)
    assert both["replicate_x"].tolist() == both["replicate_y"].tolist()
