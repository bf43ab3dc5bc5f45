"""Whatever a user gets wrong: exit code 2, one message that names the field and what is valid, nothing left behind."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pytest
from typer.testing import Result

from tests.cli.conftest import SMALL, Invoke, backup
from tests.support.editing import own_pack

#: One change to a valid specification, and what the message says.
CHANGES = [
    ("replcates=3", ["replcates", "did you mean replicates?"]),
    ("interaction.steps=four", ["interaction.steps", "a whole number", "'four'"]),
    ("population.size=1", ["population.size", "at least 2", "got 1"]),
    ("population.size=-3", ["population.size", "at least 1", "got -3"]),
    ("interaction.steps=-1", ["interaction.steps", "at least 0", "got -1"]),
    ("replicates=0", ["replicates", "at least 1"]),
    ("population.initial_opinions={counts: {1: 3}}", ["initial_opinions.counts", "sum to population.size = 4"]),
    ("population.initial_opinions={counts: {7: 4}}", ["7 is not on the scale", "-2, -1, 0, 1, 2"]),
    ("population.initial_opinions=sideways", ["population.initial_opinions", "uniform"]),
    ("topic.name=flat-mars", ["topic.name", "'flat-mars'", "flat-earth"]),
    ("topic.framing=lie", ["topic.framing", "falsehood, truth"]),
    ("topic=3", ["topic", "must be a mapping"]),
    ("measurement.texts=[essay]", ["measurement.texts", "'essay'", "valid: post, report"]),
    ("cognition.memory=perfect", ["cognition.memory", "cumulative, none, reflective, reflective-as-run"]),
    ("cognition.world=flat", ["cognition.world", "closed, open"]),
    ("sweep.cognition.confirmation_bias=[huge]", ["cognition.confirmation_bias", "none, weak, strong"]),
    ("sweep.cognition.mood=[good]", ["cognition.mood", "confirmation_bias"]),
    ("model={name: nobody, temperature: 0}", ["'nobody'", "provider:model"]),
    ("model.options={presett: influence}", ["model.options", "'presett'", "preset"]),
    ("model.options={preset: sheep}", ["model.options", "'sheep'", "influence, attractor"]),
    ("model.options={api_key: x}", ["model.options", "credential"]),
    ("measurement.classifier=oracle", ["classifier", "'oracle'", "lexicon"]),
    ("measurement.classifier={name: lexicon, options: {depth: 3}}", ["'depth'", "lexicon"]),
    ("measurement.classifier={name: flan-t5, options: {dtype: float99}}", ["'float99'", "valid: float32, bfloat16"]),
    ("interaction.network=web", ["interaction.network", "'web'", "complete", "ring"]),
    ("interaction.network={kind: watts-strogatz, k: 6, p: 0.1}", ["k must be at most N = 4"]),
    ("interaction.network={kind: file, path: gone.graphml}", ["interaction.network", "gone.graphml"]),
    ("interaction={kind: shouting}", ["interaction.kind", "'shouting'", "bounded-confidence, broadcast"]),
    ("population.personas=nobody", ["population.personas", "'nobody'", "chuang2024"]),
    ("population.personas=gone.yaml", ["population.personas", "gone.yaml"]),
    ("prompts=gone", ["prompts", "gone"]),
    ("scale.points=[2, 1]", ["scale", "strictly increasing"]),
    ("name=../up", ["name", "'../up'"]),
    ("name=" + "n" * 101, ["--set name: must have at most 100 characters"]),
    ("execution.max_concurrency=0", ["execution.max_concurrency", "at least 1"]),
    ("population", ["--set 'population'", "a.b=value"]),
    ("population.size=[1", ["population.size", "not valid YAML"]),
]  # fmt: skip

#: Whole files, and what the message says.
FILES = [
    (b"", ["is empty", "mapping"]),
    (b"# nothing but a comment\n", ["is empty", "mapping"]),
    (bytes(range(256)), ["not a text file", "UTF-8"]),
    (b"- a\n- b\n", ["contains a list", "mapping"]),
    (b"just a sentence\n", ["just a sentence", "mapping"]),
    (b"name: [1\ntopic: x\n", ["bad.yaml:2", "not valid YAML"]),
    (b"name: a\nname: b\n", ["bad.yaml:2", "duplicate key 'name'"]),
    (b"name: " + b"[" * 5000, ["nested too deeply"]),
    (b"name: !!python/object/apply:os.getcwd []\n", ["not allowed"]),
    (SMALL.encode() + b"'[bold]odd[/nope]': 1\n", ["[bold]odd[/nope]: unknown field"]),
]


def _is_one_clear_error(result: Result, fragments: list[str]) -> None:
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("error: ") == 1
    assert "Traceback" not in result.stderr
    for fragment in fragments:
        assert fragment in result.stderr


@pytest.mark.parametrize(("change", "fragments"), CHANGES, ids=[change for change, _ in CHANGES])
def test_a_bad_value(invoke: Invoke, spec: Path, change: str, fragments: list[str]) -> None:
    before = set(spec.parent.rglob("*"))
    refused, planned = (invoke(command, spec, "--set", change) for command in ("run", "plan"))
    _is_one_clear_error(refused, fragments)
    assert (planned.exit_code, planned.stdout, planned.stderr) == (2, "", refused.stderr)
    assert set(spec.parent.rglob("*")) == before


@pytest.mark.parametrize(("content", "fragments"), FILES, ids=[repr(content[:12]) for content, _ in FILES])
@pytest.mark.parametrize("command", ["run", "plan", "preview"])
def test_a_bad_file(invoke: Invoke, tmp_path: Path, command: str, content: bytes, fragments: list[str]) -> None:
    (tmp_path / "bad.yaml").write_bytes(content)
    _is_one_clear_error(invoke(command, "bad.yaml"), fragments)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.yaml"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("model={name: 'openai:gpt-4o-mini', max_tokens: 9}", "set the environment variable OPENAI_API_KEY"),
        ("measurement.classifier={name: flan-t5, options: {model: gone/t5}}", "hf download gone/t5"),
    ],
)
@pytest.mark.parametrize("extra", [True, False])
def test_what_is_missing_leaves_the_forecast_standing(
    invoke: Invoke, spec: Path, change: str, said: str, extra: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    if not extra and "t5" in said:
        monkeypatch.setattr("opinionsim.llm._providers.find_spec", lambda name: None)
        monkeypatch.setitem(sys.modules, "torch", None)
        said = "install with pip install 'opinionsim[local]'"
        assert said in invoke("run", spec, "--set", change).stderr
    forecast, strict = (invoke("plan", spec, "--set", change, *more) for more in ((), ("--strict",)))
    assert (forecast.exit_code, strict.exit_code) == (0, 2)
    assert said in " ".join(forecast.stdout.split())
    assert "48" in forecast.stdout
    assert strict.stdout == forecast.stdout
    assert invoke("plan", spec, "--strict").exit_code == 0


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("openai:gpt-4o-mini", "install with pip install 'opinionsim[llm]'"),
        ("cohere:command-r", "pip install langchain-cohere"),
    ],
)
def test_a_provider_whose_package_is_missing_leaves_the_forecast_standing(
    invoke: Invoke, spec: Path, model: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for provider in ("OPENAI", "COHERE"):
        monkeypatch.setenv(f"{provider}_API_KEY", "none")
    for module in ("langchain.chat_models",) if "llm" in said else ("langchain_cohere",):
        monkeypatch.setitem(sys.modules, module, None)
    change = ("--set", f"model={{name: '{model}', max_tokens: 9}}")
    refused = invoke("run", spec, *change)
    _is_one_clear_error(refused, [said])
    forecast, strict = (invoke("plan", spec, *change, *more) for more in ((), ("--strict",)))
    assert (forecast.exit_code, strict.exit_code) == (0, 2)
    assert " ".join(refused.stderr.removeprefix("error: ").split()) in " ".join(forecast.stdout.split())


def test_runs_without_a_step_have_a_report(invoke: Invoke, spec: Path) -> None:
    assert invoke("run", spec, "--set", "interaction.steps=0", "--store", "none.sqlite").exit_code == 0
    assert invoke("report", "none.sqlite", "--out", "none.html").exit_code == 0
    assert "0 steps" in Path("none.html").read_text(encoding="utf-8")


def test_several_mistakes_are_told_at_once(invoke: Invoke, spec: Path) -> None:
    result = invoke("run", spec, "--set", "population.size=0", "--set", "model.temperature=-1")
    _is_one_clear_error(result, ["population.size", "model.temperature"])
    assert len(result.stderr.splitlines()) == 2


@pytest.mark.parametrize("command", ["run", "plan", "preview"])
def test_a_missing_specification(invoke: Invoke, tmp_path: Path, command: str) -> None:
    _is_one_clear_error(invoke(command, "gone.yaml"), ["gone.yaml", "no such file", "quickstart"])
    _is_one_clear_error(invoke(command, tmp_path), ["is a folder"])


def test_duplicate_personas(invoke: Invoke, spec: Path, tmp_path: Path) -> None:
    (tmp_path / "twins.yaml").write_text("name: twins\npersonas:\n- {name: A, opinion: 1}\n- {name: A, opinion: 1}\n")
    result = invoke("run", spec, "--set", "population.personas=twins.yaml")
    _is_one_clear_error(result, ["twins.yaml", "'A'", "distinct"])


def test_opinions_of_personas_off_the_scale(invoke: Invoke, spec: Path, tmp_path: Path) -> None:
    (tmp_path / "far.yaml").write_text("name: far\npersonas:\n- {name: A, opinion: 9}\n- {name: B, opinion: 0}\n")
    changes = ["population.personas=far.yaml", "population.initial_opinions=personas", "population.size=2"]
    result = invoke("run", spec, *(part for change in changes for part in ("--set", change)))
    _is_one_clear_error(result, ["9", "-2, -1, 0, 1, 2"])


@pytest.mark.parametrize("command", ["run", "plan", "preview"])
def test_an_undefined_variable_in_a_copied_pack(invoke: Invoke, spec: Path, command: str) -> None:
    with (own_pack(spec.parent / "pack") / "write.j2").open("a", encoding="utf-8") as template:
        template.write("{{ mood }}")
    result = invoke(command, spec, "--prompts", "pack")
    _is_one_clear_error(result, ["prompts", "write.j2", "undefined variable 'mood'", "claim"])


def test_a_missing_template(invoke: Invoke, spec: Path) -> None:
    pack = own_pack(spec.parent / "pack")
    (pack / "review.j2").unlink()
    _is_one_clear_error(invoke("run", spec, "--prompts", pack), ["prompts", "review.j2", "no such template"])


@pytest.mark.parametrize(
    ("address", "fragments"),
    [
        ("taken/deep/x.sqlite", ["taken"]),
        ("folder.sqlite", ["folder.sqlite is a folder", "sqlite:///PATH"]),
        ("results/x", ["'results/x' is not a store address", ".sqlite"]),
        ("mysql://me:secret@host/db", ["'mysql'", "sqlite:///PATH"]),
        ("sqlite:///:memory:", ["does not name a file"]),
        ("", ["--store", "got ''"]),
        ("loop.sqlite", ["loop.sqlite", "symbolic links"]),
    ],
)
def test_an_unusable_store(invoke: Invoke, spec: Path, address: str, fragments: list[str]) -> None:
    (spec.parent / "taken").write_text("a file")
    (spec.parent / "folder.sqlite").mkdir()
    (spec.parent / "loop.sqlite").symlink_to("loop.sqlite")
    before = set(spec.parent.rglob("*"))
    result = invoke("run", spec, "--store", address)
    _is_one_clear_error(result, fragments)
    assert "secret" not in result.stderr
    assert set(spec.parent.rglob("*")) == before


def _foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("create table recipes (name text)")
    connection.close()


READERS = [("status",), ("show",), ("table",), ("plot",), ("export", "out"), ("replay",)]


@pytest.mark.parametrize("reader", READERS, ids=[" ".join(reader) for reader in READERS])
def test_a_store_that_is_none(invoke: Invoke, tmp_path: Path, reader: tuple[str, ...]) -> None:
    _foreign(tmp_path / "foreign.sqlite")
    (tmp_path / "corrupt.sqlite").write_bytes(b"certainly no database" * 99)
    command, *rest = reader
    _is_one_clear_error(invoke(command, "foreign.sqlite", *rest), ["foreign.sqlite", "another program"])
    _is_one_clear_error(invoke(command, "corrupt.sqlite", *rest), ["corrupt.sqlite", "not a database"])
    _is_one_clear_error(invoke(command, "gone.sqlite", *rest), ["no store at gone.sqlite"])
    assert {path.name for path in tmp_path.iterdir()} == {"foreign.sqlite", "corrupt.sqlite"}


@pytest.mark.parametrize("reader", READERS, ids=[" ".join(reader) for reader in READERS])
def test_a_store_of_a_later_version(invoke: Invoke, store: Path, tmp_path: Path, reader: tuple[str, ...]) -> None:
    later = backup(store, tmp_path / "later.sqlite")
    connection = sqlite3.connect(later)
    connection.execute("insert into schema_version values (99, 0)")
    connection.commit()
    connection.close()
    before = later.read_bytes()
    command, *rest = reader
    result = invoke(command, later, *rest)
    _is_one_clear_error(result, ["later.sqlite", "99", "opinionsim"])
    assert len(result.stderr.splitlines()) == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"later.sqlite": before}


def test_running_into_a_file_of_another_program_leaves_it_alone(invoke: Invoke, spec: Path) -> None:
    foreign, corrupt = spec.parent / "foreign.sqlite", spec.parent / "corrupt.sqlite"
    _foreign(foreign)
    corrupt.write_bytes(b"certainly no database" * 99)
    before = {path: path.read_bytes() for path in spec.parent.iterdir()}
    _is_one_clear_error(invoke("run", spec, "--store", foreign), ["another program"])
    _is_one_clear_error(invoke("run", spec, "--store", corrupt), ["not a database"])
    assert {path: path.read_bytes() for path in spec.parent.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (("show", "--experiment", "large"), ["'large'", "it contains small"]),
        (("show", "--run", "4"), ["run 4: no runs have such", "such as 'cognition.confirmation_bias=none/0'"]),
        (("show", "--run", "1"), ["run 1: 2 runs have such a name or id"]),
        (("show", "--run", "ias=none/1"), ["run ias=none/1: no runs have such a name"]),
        (("show", "--run", ""), ["no runs have such a name"]),
        (("plot", "--run", "zz", "trajectories"), ["run zz: no runs have such a name"]),
        (("plot", "ribons"), ["unknown figure 'ribons' (did you mean ribbons?)", "import path of your own"]),
        (("table", "missing", "metrics"), ["give one table and then one store; got missing, metrics, "]),
        (("table", "--design", "2"), ["has no design 2; it has 1"]),
        (("replay", "--experiment", "large"), ["'large'", "it contains small"]),
        (("show", "--agent", "4"), ["--agent 4: no agent has such a number or name", "3 Lucas Johnson"]),
        (("show", "--turn", "12"), ["turn 12", "0..11"]),
        (("table", "--kind", "probe"), ["kind 'probe'", "report, post"]),
        (("table", "--csv", "/dev/null/x.csv"), ["x.csv"]),
        (("table", "--csv", "."), ["error: . is a folder; give the name of a file"]),
        (("plot", "--set", "replicate=2", "panels"), ["replicate 2"]),
        (("plot", "--where", "topic"), ["--where 'topic'", "COLUMN=VALUE"]),
        (("plot", "--where", "topic=flat-earth", "panels"), ["topic = 'flat-earth'", "t-rex"]),
        (("plot", "--where", "colour=red", "panels"), ["colour"]),
        (("plot", "--run", "0"), ["figure outcome: --run: unknown field"]),
        (("plot", "--where", "topic=t-rex", "distribution"), ["figure distribution: --where: unknown field"]),
        (("plot", "--set", "replicate=0", "trajectories"), ["figure trajectories: --set replicate: unknown field"]),
    ],
)  # fmt: skip
def test_asking_a_store_for_what_it_does_not_have(
    invoke: Invoke, store: Path, arguments: tuple[str, ...], fragments: list[str]
) -> None:
    command, *options = arguments
    result = invoke(command, *options, store)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    for fragment in fragments:
        assert fragment in result.stderr


@pytest.mark.parametrize(("command", "sole"), [("plot", "ribbons"), ("plot", "own:x"), ("table", "metricks")])
def test_a_sole_argument_of_plot_and_table_is_a_store(invoke: Invoke, command: str, sole: str) -> None:
    kind, valid = ("figure", " outcome, ") if command == "plot" else ("table", " verdicts, ")
    message = f"there is no store at {sole}; give the path of a store, or a {kind} and then a store; valid {kind}s: "
    _is_one_clear_error(invoke(command, sole), [message, valid, "package.module:NAME"])


@pytest.mark.parametrize(
    ("arguments", "text", "fragments"),
    [
        (("gone.txt", "--claim", "x"), None, ["gone.txt"]),
        (("-", "--claim", "x"), "\n \n", ["standard input", "no text"]),
        (("-", "--claim", "x"), b"\xff\xfe", ["standard input", "UTF-8"]),
        (("-", "--claim", " "), "a", ["--claim"]),
        (("-", "--claim", "x", "--classifier", "oracle"), "a", ["'oracle'", "lexicon"]),
        (("-",), "a", ["'lexicon' needs a claim", "--claim-column"]),
        (("-", "--claim", "x", "--id", "n"), "a", ["--id", "--text"]),
        (("own.csv", "--claim", "x"), b"id,words\n1,a\n", ["own.csv", "--text", "columns are id, words"]),
        (("-", "--claim", "x", "--text", "text"), "id,words\n1,a\n", ["no column", "'text'", "are id, words"]),
        (("-", "--text", "words", "--claim-column", "x"), "id,words\n1,a\n", ["--claim-column 'x'", "id, words"]),
        (("-", "--claim", "x", "--text", "a"), "a,a\n1,2\n", ["--text 'a'", "more than one column"]),
        (("-", "--claim", "x", "--text", "t"), "t,u\n1,2\n3\n", ["input:3: must have 2 cells", "got 1"]),
        (("-", "--claim", "x", "--text", "t"), "t,u\n1,2,3\n", ["input:2: must have 2 cells", "got 3"]),
        (("-", "--claim", "x", "--text", "t"), 't,u\n1,"2\n', ["input:2: cannot be read as a row"]),
        (("-", "--claim", "x", "--text", "t"), "t,u\n", ["no row below its header"]),
        (("-", "--claim", "x", "--text", "t"), "\n", ["standard input: holds no row below its header"]),
        (("-", "--text", "t", "--claim-column", "u"), "t,u\n1,2\n3, \n", ["row 2", "column 'u'", "''"]),
        (("-", "--text", "t", "--claim-column", "u", "--claim", "x"), "t,u\n1,2\n", ["--claim and --claim-column"]),
        (("-", "--claim", "x", "--out", "/dev/null/a.csv"), "a", ["cannot write /dev/null/a.csv"]),
    ],
)
def test_texts_that_cannot_be_classified(
    invoke: Invoke, arguments: tuple[str, ...], text: str | bytes | None, fragments: list[str]
) -> None:
    if arguments[0] == "own.csv":
        assert isinstance(text, bytes)
        Path("own.csv").write_bytes(text)
    _is_one_clear_error(invoke("classify", *arguments, text=text), fragments)


def test_an_option_that_names_its_field_does_not_name_it_twice(invoke: Invoke, spec: Path) -> None:
    result = invoke("run", spec, "--prompts", "gone")
    _is_one_clear_error(result, ["--set prompts: prompt pack"])


def test_paths_after_set_start_from_the_current_folder(invoke: Invoke, spec: Path) -> None:
    deep = spec.parent / "deep"
    deep.mkdir()
    spec = spec.rename(deep / spec.name)
    Path("two.yaml").write_text("name: two\npersonas:\n- {name: A}\n- {name: B}\n")
    assert invoke("plan", spec, "--set", "population.personas=two.yaml").exit_code == 0
