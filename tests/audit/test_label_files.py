"""Files of coders, as those of all places that read tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from opinionsim.audit import Sample, read_files
from opinionsim.opinions import OpinionScale
from opinionsim.store import AuditRow
from tests.foundation.test_tables import BAD, GOOD, Place, as_written, is_one_error


def _labels(file: Path) -> Any:
    audit = AuditRow("a1", "e", {"texts": [{"code": f"t{n}"} for n in (1, 2, 3)]}, {}, ())
    return read_files([file], Sample(audit, pd.DataFrame(), OpinionScale()))["eve"].to_dict()


LABELS = Place(
    [["audit", "coder", "item", "label"], *(["a1", "eve", f"t{n}", str(n - 2)] for n in (1, 2, 3))], 2, 3, _labels
)


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_one_error_that_names_file_and_line(tmp_path: Path, kind: str) -> None:
    is_one_error(LABELS, kind, tmp_path)


@pytest.mark.parametrize("kind", GOOD)
def test_a_file_says_the_same_however_it_is_written(tmp_path: Path, kind: str) -> None:
    plain, other = as_written(LABELS, kind, tmp_path)
    assert plain == other
