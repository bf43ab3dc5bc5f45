"""Tables of people, good and bad, through the suite of all places that read tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opinionsim.comparison import PanelMapping, import_panel
from tests.foundation.test_tables import BAD, GOOD, Place, as_written, is_one_error


def _people(file: Path) -> Any:
    mapping = PanelMapping(name="t", person="who", rating="after", text="said")
    found = import_panel(file, mapping, store=file.with_name(f"{len(list(file.parent.iterdir()))}.sqlite"))
    return found.turns["message"].tolist(), found.opinions["value"].tolist(), found.agents["name"].tolist()


ROWS = [["who", "after", "said"], ["A", "1", "Yes."], ["B", "-1", "No."], ["C", "0", "So."]]
PEOPLE = Place(ROWS, 0, 1, _people)


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_table_is_one_error_that_names_file_and_line(tmp_path: Path, kind: str) -> None:
    is_one_error(PEOPLE, kind, tmp_path)


@pytest.mark.parametrize("kind", GOOD)
def test_a_table_says_the_same_however_it_is_written(tmp_path: Path, kind: str) -> None:
    plain, other = as_written(PEOPLE, kind, tmp_path)
    assert plain == other
