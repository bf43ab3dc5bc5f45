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
