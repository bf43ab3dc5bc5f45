"""The codebook of an export, and names of columns that R takes unquoted."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from opinionsim.report import codebook, plain_names
from opinionsim.store import documented_columns
from tests.support.running import SMALL, carry_out, changed

FRAMES = ("runs", "agents", "edges", "turns", "opinions", "calls", "metrics")
#: Names that R takes unquoted: letters, digits, dots and underscores, after a letter or a dot without a digit.
R_NAME = re.compile(r"(?:[A-Za-z]|\.(?!\d))[A-Za-z0-9._]*")


def test_every_column_of_every_frame_has_a_type_and_a_meaning(tmp_path: Path) -> None:
    spec = changed(SMALL, sweep={"cognition.confirmation_bias": ["none", "strong"], "population.size": [4, 5]})
    _, results = carry_out(spec, str(tmp_path / "results.sqlite"))
    frames = {name: getattr(results, name) for name in FRAMES}
    book = codebook(frames)
    assert list(book) == ["frame", "column", "name", "type", "unit", "meaning"]
    for frame, data in frames.items():
        own = book[book["frame"] == frame]
        assert list(own["name"]) == list(data.columns)
        assert own["meaning"].str.len().min() > 2
        assert own["column"].map(lambda name: bool(R_NAME.fullmatch(name))).all()
        for row in own.itertuples():
            if row.name in documented_columns()[frame]:
                told = documented_columns()[frame][row.name]["type"]
                assert row.type == ("string" if told == "tuple" else told), (frame, row.name)
    assert not book["meaning"].str.contains("](", regex=False).any()
    assert book.set_index(["frame", "name"]).loc[("opinions", "p_-2"), "column"] == "p_minus2"


def test_the_page_on_frames_is_made_from_the_same_file(checkout: Path) -> None:
    space: dict[str, object] = {"__name__": "frames", "__file__": str(checkout / "docs" / "frames.py")}
    exec((checkout / "docs" / "frames.py").read_text(encoding="utf-8"), space)  # noqa: S102
    page = (checkout / "docs" / "frames.md").read_text(encoding="utf-8")
    assert space["renewed"](page) == page, "run python docs/frames.py"  # type: ignore[operator]


@pytest.mark.parametrize(
    ("column", "plain"),
    [
        ("topic.framing", "topic.framing"),
        ("p_-2", "p_minus2"),
        ("bias@10", "bias_10"),
        ("years of school", "years_of_school"),
        ("2nd language", "X2nd_language"),
        ("_hidden", "X_hidden"),
        ("repeat", "repeat."),
    ],
)
def test_plain_names(column: str, plain: str) -> None:
    assert plain_names([column]) == {column: plain}
    assert R_NAME.fullmatch(plain)


def test_plain_names_stay_apart_and_lead_back() -> None:
    columns = ["a b", "a_b", "a-b", "a_b."]
    found = plain_names(columns)
    assert len(set(found.values())) == 4
    frame = pd.DataFrame([[1, 2, 3, 4]], columns=columns).rename(columns=found)
    back = {plain: column for column, plain in found.items()}
    assert list(frame.rename(columns=back)) == columns
