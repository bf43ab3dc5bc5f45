"""Reports and archives of people on record and of their twins: what they say, and what they pass on."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import opinionsim as osim
from opinionsim import plots
from opinionsim.comparison import PanelMapping, import_panel, twins_experiment
from opinionsim.report import released, study, write_archive
from tests.report.test_released import told
from tests.support.examples import few


@pytest.fixture
def _without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take most of the time, and are what is tested elsewhere."""
    monkeypatch.setattr("opinionsim.report._study.figures_of", lambda results: iter(()))


def test_people_stand_beside_their_twins_and_nobody_is_said_to_play_personas() -> None:
    table = pd.DataFrame({"who": list("ABCD"), "before": (-2, 1, 0, 2), "after": (-1, 1, 1, 1), "read": "Yes."})
    claims = {"b": {"for": "it is so"}}
    mapping = PanelMapping(
        name="b", source="a survey", person="who", rating=("before", "after"), read=("read",), claims=claims
    )
    people = import_panel(table, mapping, store="people.sqlite")
    told = study(osim.run(twins_experiment(people, {"model": {"name": "scripted"}}), people.url))
    assert set(told.tables[0].frame["evidence"]) == {"human", "scripted"}
    assert not {"Personas", "Initial opinions"} & set(dict(told.design))
    assert "personas" not in told.methods
    assert told.references[-1] == "b (4 records): a survey"
    # Each person is one run, which has no diversity, and no replicate.
    assert "replicate" not in told.methods
    assert "Replicates" not in dict(told.design)
    assert told.statements
    assert not any("diversity" in each for each in told.statements)
    assert "panels" not in {each.name for each in told.figures}
    assert "stance, as people rated it (in texts of kind self-report)" in dict(told.design)["Measured"]
    assert not any("Personas" in each for each in told.caveats)


@pytest.mark.usefixtures("_without_figures")
@pytest.mark.parametrize("pass_on", few([False, True], 1))
def test_people_of_an_imported_table_and_their_twins(pass_on: bool, tmp_path: Path) -> None:
    post, town = "Buses of Zanzibar are cheap for all of us.", "Hamlet on the blue hill"
    table = pd.DataFrame(
        {"who": ["A", "B"], "before": [-2, 1], "after": [-1, 1], "said": [post, "No."], "read": ["A flyer on tea."] * 2}
    ).assign(town=town)
    mapping = PanelMapping(
        name="buses", person="who", rating=("before", "after"), text="said", read=("read",), attributes=("town",),
        claims={"buses": {"for": "buses should be free"}}, pass_on=pass_on,
    )  # fmt: skip
    people = osim.import_panel(table, mapping, store=f"sqlite:///{tmp_path / 'people.sqlite'}")
    twins = osim.run(twins_experiment(people, {"model": {"name": "scripted"}}), people.url)
    # The study itself chooses the names of its points, so they may appear.
    assert released(twins).spec["scale"] == twins.spec["scale"]
    assert (post in told(released(people))) == pass_on
    for secret in (post, town, "A flyer on tea."):
        assert secret in told(twins)
        assert (secret in told(released(twins))) == pass_on


@pytest.mark.usefixtures("_without_figures")
def test_what_people_said_is_told_as_theirs(tmp_path: Path) -> None:
    table = pd.DataFrame({"who": ["A", "B"], "before": [-2, 1], "after": [-1, 1]})
    mapping = PanelMapping(
        name="buses", person="who", rating=("before", "after"), claims={"buses": {"for": "buses should be free"}}
    )
    results = osim.import_panel(table, mapping, store=f"sqlite:///{tmp_path / 'people.sqlite'}")
    write_archive(results, tmp_path / "archive")
    told, odd = study(results), (tmp_path / "archive" / "odd.md").read_text()
    said = " ".join((told.methods, *told.references, *told.caveats, *(what for _, what in told.design), odd))
    assert "imported from a table" in told.methods
    assert "Nothing was simulated" in said
    before_fields = said.partition("The table lists every field")[0]
    assert [word for word in ("chuang", "Chuang", "0.7", "replicate", "agents of") if word in before_fields] == []


def test_opinions_of_people_who_only_rated_are_drawn_before_and_after() -> None:
    table = pd.DataFrame({"who": ["A", "B"], "before": [-2, 1], "after": [-1, 1]})
    mapping = PanelMapping(name="buses", person="who", rating=("before", "after"))
    data = plots.before_after_data(import_panel(table, mapping, store="people.sqlite"))
    assert data.frame[["before", "after"]].values.tolist() == [[-2, -1], [1, 1]]
