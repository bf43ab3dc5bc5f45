"""Phase diagrams of ``opinionsim plot``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.cli.conftest import Invoke

WHAT = ("plot", "phase")


def test_the_figure_and_its_numbers_are_written(invoke: Invoke, store: Path) -> None:
    result = invoke(*WHAT, store, "--x", "confirmation_bias", "--out", "figures", "--csv", "numbers/n.csv")
    assert result.stdout == "figures/small-phase-confirmation_bias.png\n", result.stderr
    assert Path("figures/small-phase-confirmation_bias.png").read_bytes().startswith(b"\x89PNG")
    numbers = pd.read_csv("numbers/n.csv")
    assert {"confirmation_bias", "mean"} < set(numbers.columns)
    assert set(numbers["evidence"]) == {"scripted"}


def test_phase_diagrams_take_measures_lines_and_curves(invoke: Invoke, store: Path) -> None:
    for name, label in (("curve", "mean field"), ("other", "fitted"), ("same", "fitted")):
        Path(f"{name}.csv").write_text(f"x,{label}\n0,0.5\n1,1\n", encoding="utf-8")
    what = (*WHAT, store, "--out", "figures", "--x", "replicate")
    by_bias = ("--set", "lines=confirmation_bias", "--width", "84", "--font-size", "7")
    many = invoke(*what, *by_bias, "--metric", "bias", "--metric", "diversity", "--csv", "n.csv")
    assert many.stdout == "figures/small-phase-bias-diversity-replicate-lines-confirmation_bias.png\n", many.stderr
    assert set(pd.read_csv("n.csv")["measure"]) == {"bias", "diversity"}
    drawn = invoke(
        *what, *by_bias, "--set", "theory=curve.csv", "--set", "scale={diversity: linear}", "--format", "svg"
    )
    assert "mean field" in Path(drawn.stdout.strip()).read_text(encoding="utf-8"), drawn.stderr
    both = invoke(*what, "--set", "lines=confirmation_bias", "--set", "theory=[curve.csv,other.csv]", "--format", "svg")
    assert "fitted" in Path(both.stdout.strip()).read_text(encoding="utf-8"), both.stderr
    alike = invoke(*what, "--set", "lines=confirmation_bias", "--set", "theory=[other.csv,same.csv]")
    assert "theory same.csv: another file has the same label, 'fitted'; rename one" in alike.stderr
    spread = invoke(*WHAT, store, "--x", "confirmation_bias", "--set", "show=both", "--out", "figures")
    assert spread.stdout == "figures/small-phase-confirmation_bias-show-both.png\n", spread.stderr


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        ((), ["figure phase: --x: is required but missing"]),
        (("--x", "mood"), ["no column 'mood'", "confirmation_bias"]),
        (
            ("--x", "replicate", "--y", "confirmation_bias", "--set", "contours=[2]"),
            ["two levels of each parameter"],
        ),
        (
            ("--x", "replicate", "--set", "lines=confirmation_bias", "--set", "scale={replicate: ln}"),
            ["figure phase: --set scale.replicate: unknown value 'ln'", "valid: linear, log"],
        ),
        (("--x", "replicate", "--set", "scale=log"), ["scale: must be a mapping", "got 'log'"]),
        (("--x", "replicate", "--set", "theory=3"), ["figure phase: --set theory: must be", "text or a list; got 3"]),
        (("--x", "replicate", "--set", "theory=no.csv"), ["cannot read the curve no.csv"]),
        (("--x", "replicate", "--set", f"theory=[{__file__}]"), ["line 1: must be two numbers"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_phase_diagrams_that_cannot_be_drawn(
    invoke: Invoke, store: Path, options: tuple[str, ...], fragments: list[str]
) -> None:
    result = invoke(*WHAT, *options, store, "--out", "figures")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    for fragment in fragments:
        assert fragment in result.stderr


def test_they_take_one_wording(invoke: Invoke, reworded: Path) -> None:
    more = ("--x", "confirmation_bias")
    result = invoke(*WHAT, reworded, "--wording", "00aa", *more, "--out", "figures")
    assert result.stdout == "figures/small-phase-confirmation_bias-wording-00aa.png\n", result.stderr
    assert "begins with '99'" in invoke(*WHAT, reworded, "--wording", "99", *more).stderr
