"""A survey of six people, small enough to be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from opinionsim.surveys import Survey, load_mapping, load_survey

#: The fourth row has no weight; Ines has no party.
VILLAGE = """\
born,sex,party,job,w
1990,F,left,baker,1
1950,M,right,,2.5
2000,F,,"clerk, typist",0.5
1970,M,left,baker,
1970,X,none,None,0
1985,M,not sure,${value},4
"""
MAPPING: dict[str, Any] = {
    "name": "village",
    "source": "A walk.",
    "licence": "CC0",
    "weight": "w",
    "columns": [
        {
            "column": "born",
            "name": "age",
            "label": "Age",
            "subtract_from": 2024,
            "clause": "you are ${value} years old",
        },
        {"column": "sex", "recode": {"F": "a woman.", "M": "a man"}, "clause": "You are ${value}."},
        {"column": "party", "skip": ["not sure"], "clause": "your party: ${value}"},
        {"column": "job", "name": "line of work", "clause": "Your work is ${value}"},
    ],
    "opinion": {"column": "party", "recode": {"left": -2, "right": 2}},
    "groups": {"left": "party == 'left'", "young": "age < 40"},
}


class Village:
    """Writes the survey and its mapping, with changes, and reads them."""

    def __init__(self, folder: Path) -> None:
        self.data, self.map = folder / "village.csv", folder / "village.yaml"
        self.data.write_text(VILLAGE, encoding="utf-8")
        self.map.write_text(yaml.safe_dump(MAPPING, sort_keys=False), encoding="utf-8")

    def load(self, data: str | None = None, **changes: Any) -> Survey:
        """The survey with another text of the file, and other fields of the mapping."""
        if data is not None:
            self.data.write_text(data, encoding="utf-8")
        self.map.write_text(yaml.safe_dump({**MAPPING, **changes}, sort_keys=False), encoding="utf-8")
        return load_survey(self.data, load_mapping(self.map))


@pytest.fixture
def village(tmp_path: Path) -> Village:
    return Village(tmp_path)


@pytest.fixture
def survey(village: Village) -> Survey:
    return village.load()
