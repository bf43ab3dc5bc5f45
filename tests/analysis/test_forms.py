"""The forms that a table is written in, recorded."""

from __future__ import annotations

import io

import pandas as pd

from opinionsim.analysis import Table

TABLE = Table(
    "Language-model agents | Opinions by condition",
    (("", "", "diversity", "diversity"), ("framing", "runs", "start", "end [95 % CI]")),
    (("falsehood", "12", "1.41", "0.51 [0.34, 0.67]"), ("for_all|& none", "12", "-", "\N{MINUS SIGN}0.54")),
    1,
    pd.DataFrame({"framing": ["falsehood", "for_all|& none"], "diversity": [0.51234, -0.54]}),
    ("Evidence: Language-model agents.", "Interval: 95% confidence."),
)


def test_text() -> None:
    assert TABLE.to_form("text") == (
        "Language-model agents | Opinions by condition\n"
        "--------------------------------------------------\n"
        "                      diversity          diversity\n"
        "framing         runs      start      end [95 % CI]\n"
        "--------------------------------------------------\n"
        "falsehood         12       1.41  0.51 [0.34, 0.67]\n"
        "for_all|& none    12          -              \N{MINUS SIGN}0.54\n"
        "--------------------------------------------------\n"
        "Evidence: Language-model agents.\n"
        "Interval: 95% confidence.\n"
    )


def test_markdown() -> None:
    assert TABLE.to_form("markdown") == (
        "**Language-model agents | Opinions by condition**\n\n"
        "| framing | runs | diversity start | diversity end [95 % CI] |\n"
        "|---|---:|---:|---:|\n"
        "| falsehood | 12 | 1.41 | 0.51 [0.34, 0.67] |\n"
        "| for_all\\|& none | 12 | - | \N{MINUS SIGN}0.54 |\n\n"
        "- Evidence: Language-model agents.\n"
        "- Interval: 95% confidence.\n"
    )


def test_latex() -> None:
    assert TABLE.to_form("latex") == (
        "\\begin{table}\n"
        "\\centering\n"
        "\\caption{Language-model agents $|$ Opinions by condition}\n"
        "\\begin{tabular}{@{}lrrr@{}}\n"
        "\\toprule\n"
        " &  & \\multicolumn{2}{c}{diversity} \\\\\n"
        "\\cmidrule(lr){3-4}\n"
        "framing & runs & start & end [95 \\% CI] \\\\\n"
        "\\midrule\n"
        "falsehood & 12 & 1.41 & 0.51 [0.34, 0.67] \\\\\n"
        "for\\_all$|$\\& none & 12 & - & $-$0.54 \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n\n"
        "\\medskip\n"
        "\\begin{minipage}{\\linewidth}\\footnotesize Evidence: Language-model agents. Interval: 95\\% confidence."
        "\\end{minipage}\n"
        "\\end{table}\n"
    )


def test_csv_has_the_unrounded_numbers() -> None:
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(TABLE.to_form("csv"))), TABLE.frame)
