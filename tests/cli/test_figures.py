"""Figures of ``opinionsim plot`` beside panels, one run and its end."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.cli.conftest import Invoke


@pytest.mark.parametrize(
    ("options", "name", "columns"),
    [
        (("ribbons", "--measure", "diversity"), "small-ribbons-diversity", {"mean", "low", "high", "n_runs"}),
        (("density", "--where", "confirmation_bias=strong"), "small-density-strong", {"opinion", "share"}),
        (("network", "--run", 1, "--step", 0, "--step", 2), "small-network-run1", {"agent", "x", "y", "value"}),
        (("transitions", "--by", "confirmation_bias"), "small-transitions-confirmation_bias", {"before", "after"}),
        (("phase", "--x", "confirmation_bias"), "small-phase-confirmation_bias", {"confirmation_bias", "mean"}),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_figures_and_their_numbers_are_written(
    invoke: Invoke, store: Path, options: tuple[object, ...], name: str, columns: set[str]
) -> None:
    result = invoke("plot", store, "--figure", *options, "--out", "figures", "--csv", "numbers/n.csv")
    assert result.stdout == f"figures/{name}.png\n", result.stderr
    assert Path("figures", f"{name}.png").read_bytes().startswith(b"\x89PNG")
    numbers = pd.read_csv("numbers/n.csv")
    assert columns < set(numbers.columns)
    assert set(numbers["evidence"]) == {"scripted"}


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
        assert invoke("plot", store, "--out", folder).stdout == f"{folder}/small-panels.png\n"


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
        (("phase",), ["--what phase needs --x"]),
        (("phase", "--x", "mood"), ["no column 'mood'", "confirmation_bias"]),
        (("density", "--x", "topic"), ["--x goes with --what phase", "got --what density"]),
        (("panels", "--csv", "n.csv"), ["--csv goes with --what ribbons"]),
        (("ribbons", "--measure", "mood"), ["no measure 'mood'", "diversity"]),
        (("ribbons", "--csv", "/dev/null/n.csv"), ["cannot write /dev/null/n.csv"]),
        (("network", "--step", "999"), ["known from step 0", "got 999"]),
        (("network", "--run", "9"), ["--run 9"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_figures_that_cannot_be_drawn(
    invoke: Invoke, store: Path, options: tuple[str, ...], fragments: list[str]
) -> None:
    result = invoke("plot", store, "--what", *options, "--out", "figures")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    for fragment in fragments:
        assert fragment in result.stderr
