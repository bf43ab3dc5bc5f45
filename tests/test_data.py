"""The data that comes with the package, against the published study (A4, A5)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import yaml

from opinionsim.errors import SpecError
from opinionsim.foundation.data import data_folder


def _content(kind: str, name: str) -> dict[str, Any]:
    content = yaml.safe_load((data_folder(kind) / name).read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


@pytest.fixture
def topics() -> list[dict[str, Any]]:
    return _content("topics", "chuang2024.yaml")["topics"]  # type: ignore[no-any-return]


def test_claims_can_follow_that(topics: list[dict[str, Any]]) -> None:
    names = ("US", "Barack", "Washington")
    for claim in (claim for topic in topics for claim in topic["claims"].values()):
        assert claim == " ".join(claim.split())
        assert not claim.endswith((".", "!", "?"))
        assert claim[0].islower() or claim.split()[0] in names


def test_sensitive_topics(topics: list[dict[str, Any]]) -> None:
    assert {topic["name"] for topic in topics if topic["sensitive"]} == {
        "twin-towers",
        "holocaust",
        "obama-birthplace",
    }


def test_personas_state_the_published_attributes_in_order() -> None:
    personas = _content("personas", "chuang2024.yaml")["personas"]
    order = ["political_leaning", "age", "gender", "ethnicity", "education", "occupation"]
    assert all(list(persona["attributes"]) == order for persona in personas)
    # Sums over the columns of A4 that a slip of one row would change.
    assert sum(persona["attributes"]["age"] for persona in personas) == 337
    assert Counter(persona["attributes"]["gender"] for persona in personas) == {"male": 4, "female": 6}
    assert Counter(persona["attributes"]["political_leaning"] for persona in personas) == {
        "Lean Democrat": 2,
        "Strong Democrat": 2,
        "Moderate": 3,
        "Lean Republican": 2,
        "Strong Republican": 1,
    }


@pytest.mark.parametrize("kind", ["topics", "personas"])
def test_every_file_states_source_and_licence(kind: str) -> None:
    files = sorted(data_folder(kind).glob("*.yaml"))
    readme = (data_folder(kind) / "README.md").read_text(encoding="utf-8")
    assert files
    for file in files:
        content = _content(kind, file.name)
        assert content["source"].strip()
        assert content["licence"].strip()
        assert f"`{file.name}`" in readme


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(SpecError, match="experiments, personas, studies, topics"):
        data_folder("../secrets")
