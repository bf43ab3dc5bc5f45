"""Figures of ``opinionsim plot`` beside panels, one run and its end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from opinionsim import store as stores
from tests.cli.conftest import Invoke
from tests.support.command import refused

OLD, NEW = "default@00aa11bb22cc", "default@00ff11bb22cc"


@pytest.mark.parametrize(
    ("options", "name", "columns"),
    [
        (("ribbons", "--metric", "diversity"), "small-ribbons-diversity", {"mean", "low", "high", "n_runs"}),
        (
            ("density", "--where", "confirmation_bias=strong"),
            "small-density-confirmation_bias-strong",
            {"opinion", "share"},
        ),
        (
            ("network", "--run", "none/1", "--set", "steps=[0,2]"),
            "small-network-run-cognition.confirmation_bias_none_1-steps-0-2",
            {"agent", "x", "y", "value"},
        ),
        (("transitions", "--by", "confirmation_bias"), "small-transitions-confirmation_bias", {"before", "after"}),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_figures_and_their_numbers_are_written(
    invoke: Invoke, store: Path, options: tuple[object, ...], name: str, columns: set[str]
) -> None:
    result = invoke("plot", *options, store, "--out", "figures", "--csv", "numbers/n.csv")
    assert result.stdout == f"figures/{name}.png\n", result.stderr
    assert Path("figures", f"{name}.png").read_bytes().startswith(b"\x89PNG")
    numbers = pd.read_csv("numbers/n.csv")
    assert columns < set(numbers.columns)
    assert set(numbers["evidence"]) == {"scripted"}


def test_opinions_before_and_after_are_drawn_where_participants_were_probed(
    invoke: Invoke, store: Path, spec: Path
) -> None:
    probed = spec.read_text(encoding="utf-8").replace("[report, post]", "[probe], probe: {before: 1, after: 1}")
    spec.write_text(probed, encoding="utf-8")
    assert invoke("run", spec, "--store", "probed.sqlite").exit_code == 0
    result = invoke("plot", "before-after", "probed.sqlite", "--by", "confirmation_bias", "--csv", "n.csv")
    assert Path(result.stdout.strip()).name == "small-before-after-confirmation_bias.png", result.stderr
    numbers = pd.read_csv("n.csv")
    assert len(numbers) == 2 * 2 * 4
    assert numbers["change"].tolist() == (numbers["after"] - numbers["before"]).abs().tolist()
    assert "set measurement.probe: {before: 1, after: 1}" in refused("plot", "before-after", store)


@pytest.mark.parametrize(
    ("name", "start"), [("one.png", b"\x89PNG"), ("deep/er/one.PDF", b"%PDF"), ("a.svg", b"<?xml")]
)
def test_out_may_name_the_file(invoke: Invoke, store: Path, name: str, start: bytes) -> None:
    result = invoke("plot", store, "--out", name)
    assert result.stdout == f"{name}\n", result.stderr
    assert Path(name).read_bytes().startswith(start)


def test_out_is_a_folder_where_it_looks_like_none_of_the_formats_or_is_there(invoke: Invoke, store: Path) -> None:
    Path("there.png").mkdir()
    for folder in ("results.v2", "there.png"):
        assert invoke("plot", store, "--out", folder).stdout == f"{folder}/small-outcome.png\n"


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        (("--out", "x/one.jpg"), [".png, .svg or .pdf", "one.jpg"]),
        (("--out", "x/one.pdf", "--format", "png"), ["--out x/one.pdf", "--format png"]),
    ],
)
def test_files_that_cannot_be_written_are_refused_before_anything_is_made(
    invoke: Invoke, store: Path, options: tuple[str, ...], fragments: list[str]
) -> None:
    before = set(Path().rglob("*"))
    result = invoke("plot", store, *options)
    assert result.exit_code == 2
    for fragment in fragments:
        assert fragment in result.stderr
    assert set(Path().rglob("*")) == before


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        (
            ("ribbons", "--metric", "bias", "--metric", "diversity"),
            ["figure ribbons: --metric: must be text", "bias", "diversity"],
        ),
        (
            ("ribbons", "--set", "levels=0.5"),
            [
                "figure ribbons: --set levels: unknown field (did you mean --set level?)",
                "valid: --metric, --kind, --where, --by, --set band, --set level",
            ],
        ),
        (("density", "--set", "bins=many"), ["bins: must be a whole number; got 'many'"]),
        (("density", "--set", "bins"), ["--set 'bins': must have the form NAME=VALUE"]),
        (("ribbons", "--by", "topic", "--set", "by=framing"), ["--set by is also given as an option"]),
        (("ribbons", "--set", "metric=own.part:share"), ["add --allow-parts to import it"]),
        (("ribbons", "--set", "ax=1"), ["ax: unknown field"]),
        (
            ("density", "--x", "topic"),
            ["figure density: --x: unknown field", "valid: --kind, --where, --by, --set bins"],
        ),
        (("panels", "--csv", "n.csv"), ["--csv goes with the figures ", "ribbons, density, network"]),
        (("ribbons", "--metric", "mood"), ["unknown metric 'mood'", "diversity"]),
        (("ribbons", "--csv", "/dev/null/n.csv"), ["cannot write /dev/null/n.csv"]),
        (("network", "--set", "steps=[999]"), ["known from step 0", "got 999"]),
        (("network", "--run", "9"), ["run 9: no runs have such a name or id"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_figures_that_cannot_be_drawn(
    invoke: Invoke, store: Path, options: tuple[str, ...], fragments: list[str]
) -> None:
    result = invoke("plot", *options, store, "--out", "figures")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    for fragment in fragments:
        assert fragment in result.stderr


class Reworded:
    """Results whose second replicate was begun after the prompts had been reworded."""

    def __init__(self, results: stores.Results) -> None:
        self._results = results

    def __getattr__(self, name: str) -> Any:
        return getattr(self._results, name)

    @property
    def runs(self) -> pd.DataFrame:
        runs = self._results.runs
        return runs.assign(wording=runs["replicate"].map({0: OLD, 1: NEW}), begun_at=runs["replicate"] + 1.0)

    @property
    def ordered_runs(self) -> pd.DataFrame:
        return self.runs


@pytest.fixture
def reworded(store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same store as if the prompts had been reworded after the first replicate."""
    load = stores.load
    monkeypatch.setattr(stores, "load", lambda *given, **more: Reworded(load(*given, **more)))
    return store


def test_tables_take_one_wording_and_another_on_request(invoke: Invoke, reworded: Path) -> None:
    printed = " ".join(invoke("table", reworded).stdout.split())
    assert f"Runs of an earlier wording of the prompts, left out: 2 ({OLD}: 2); --wording takes them" in printed
    assert "Runs used: 2 complete." in printed
    made, *_ = json.loads(invoke("table", reworded, "--wording", "00aa", "--json").stdout)
    assert made["notes"][-1].startswith(f"Runs of another wording of the prompts, left out: 2 ({NEW}: 2)")
    refused = invoke("table", reworded, "--wording", "00")
    assert refused.exit_code == 2
    said = " ".join(refused.stderr.split())
    assert said.startswith("error: several wordings of the prompts begin with '00'")
    assert f"{OLD}: 2, {NEW}: 2" in said


@pytest.mark.parametrize("what", ["panels", "ribbons", "density", "transitions"])
def test_figures_of_several_runs_take_one_wording(invoke: Invoke, reworded: Path, what: str) -> None:
    result = invoke("plot", what, reworded, "--wording", "00aa", "--out", "figures")
    assert result.stdout == f"figures/small-{what}-wording-00aa.png\n", result.stderr
    assert "begins with '99'" in invoke("plot", what, reworded, "--wording", "99").stderr


def test_a_figure_of_one_run_has_no_wording_to_choose(reworded: Path) -> None:
    said = refused("plot", "trajectories", reworded, "--wording", "00aa")
    assert "figure trajectories: --wording: unknown field" in said
