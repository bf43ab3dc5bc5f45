"""Records of people: what a table becomes in a store, agents in people's places, and tables that are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import opinionsim as osim
from opinionsim.analysis import tables
from opinionsim.audit import draw
from opinionsim.comparison import (
    PanelMapping,
    import_panel,
    load_panel_mapping,
    people_figure,
    people_table,
    read_debate,
    twins_experiment,
    updates,
)
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.running import replay
from opinionsim.store import open_store
from tests.comparison._panels import CROSSED, TALKS, crossed, talks
from tests.comparison._studies import studies
from tests.support.command import refused

ROWS = [
    {"who": "A", "wave": 1, "rating": 2, "text": "", "sort": 1},
    {"who": "B", "wave": 1, "rating": -1, "text": "I doubt it.", "sort": 2},
    {"who": "A", "wave": 2, "rating": 1, "text": "", "sort": 3},
]
PLAIN = PanelMapping(name="plain", person="who", wave="wave", rating="rating", text="text")


def _imported(rows: list[dict[str, Any]], mapping: PanelMapping = PLAIN, **more: Any) -> osim.Results:
    return import_panel(pd.DataFrame(rows), mapping, store="people.sqlite", **more)


def test_a_table_of_waves_becomes_runs_of_people() -> None:
    results = _imported(ROWS)
    assert list(results.runs["evidence"]) == ["human", "human"]
    assert list(results.runs["status"]) == ["complete", "complete"]
    assert list(results.runs["block"]) == ["seed=0/replicate=0", "seed=0/replicate=1"]
    found = results.turns.merge(results.agents[["run_id", "name"]], on="run_id").sort_values(["name", "turn"])
    said = found[["name", "step", "kind", "message"]].to_numpy().tolist()
    assert said == [
        ["A", 0, "report", "strongly positive"],
        ["A", 1, "report", "slightly positive"],
        ["B", 0, "report", "I doubt it."],
    ]
    values = results.opinions.merge(results.agents[["run_id", "name"]], on="run_id").sort_values(["name", "turn"])
    assert list(values["value"]) == [2.0, 1.0, -1.0]


def test_texts_and_ratings_are_imports_that_nobody_paid_for_and_replay_without_a_model() -> None:
    results = _imported(ROWS)
    assert results.calls.empty
    with open_store("people.sqlite", write=False) as store:
        entries = [entry for run_id in results.run_ids for entry in store.entries(run_id)]
        assert {entry.source for entry in entries} == {"import"}
        assert {entry.key.call for entry in entries} == {"reply", "rating.stance", "source"}
        assert store.usage(results.run_ids).calls == 0
    assert [each.difference for each in replay(results)] == ["", ""]


def test_importing_again_changes_nothing_and_another_table_is_another_design() -> None:
    first = _imported(ROWS)
    assert _imported(ROWS).run_ids == first.run_ids
    other = _imported([{**row, "rating": 0} for row in ROWS])
    assert other.designs == (1, 2)
    assert not set(other.run_ids) & set(first.run_ids)


def test_a_record_is_carried_out_by_its_import_alone() -> None:
    experiment = osim.load_experiment(_imported(ROWS).manifest)
    results = osim.run(experiment, "elsewhere.sqlite")
    assert list(results.runs["status"]) == ["incomplete", "incomplete"]
    assert "import the table again" in results.runs["error"].iloc[0]


def test_who_reads_whom_follows_from_the_order_of_a_conversation() -> None:
    rows = [
        {"who": "A", "wave": 0, "rating": 2, "text": ""},
        {"who": "B", "wave": 0, "rating": -2, "text": ""},
        {"who": "C", "wave": 0, "rating": 0, "text": ""},
        {"who": "A", "wave": 1, "rating": None, "text": "Yes.", "to": "B"},
        {"who": "B", "wave": 1, "rating": None, "text": "No."},
        {"who": "C", "wave": 2, "rating": 1, "text": "Well."},
        {"who": "B", "wave": 2, "rating": 0, "text": ""},
    ]
    mapping = PLAIN.model_copy(update={"group": "room", "recipient": "to"})
    results = _imported([{"room": "r", "to": None, **row} for row in rows], mapping)
    assert results.runs["n_agents"].tolist() == [3]
    reads = results.turns.set_index("turn")["reads"]
    assert reads[3] == ()
    assert reads[4] == (3,)
    assert reads[5] == (4,), "what A said was for B alone"
    assert reads[6] == (3,), "a rating reads all since the last rating"


def test_rows_that_tell_what_a_person_received_are_messages() -> None:
    rows = [
        {"who": "A", "wave": 0, "rating": 2, "text": "", "from": ""},
        {"who": "A", "wave": 1, "rating": None, "text": "Hear me.", "from": "Radio"},
        {"who": "A", "wave": 2, "rating": 0, "text": "", "from": "A"},
    ]
    results = _imported(rows, PLAIN.model_copy(update={"sender": "from"}))
    assert results.turns["reads"].tolist() == [(), ("read-0",)]


def test_statements_worded_against_are_turned_round() -> None:
    table = crossed(8)
    results = import_panel(table, CROSSED, store="people.sqlite")
    found = updates(results)
    sign = np.where(table["worded"] == "Con", -1, 1)
    given = sorted(zip(sign * table["before"], sign * table["after"], strict=True))
    assert sorted(zip(found["first"], found["last"], strict=True)) == given
    assert (found["parrot"] == found["first"]).all()
    assert set(found["wording"]) == {"for", "against"}


def test_instruments_code_texts_beside_the_ratings() -> None:
    listed = [{"variable": "stance", "classifier": {"name": "lexicon"}, "texts": ["report"]}]
    results = _imported(ROWS, instruments=listed, name="coded")
    coded = results.opinions[results.opinions["classifier"] == "lexicon"]
    assert coded["kind"].tolist() == ["report"] * 3
    assert results.name == "coded"


# -- twins -------------------------------------------------------------------------------------------------


def test_twins_have_the_attributes_opinion_wording_and_messages_of_their_persons() -> None:
    table = crossed(3)
    people = import_panel(table, CROSSED, store="people.sqlite")
    before = people.run_ids
    experiment = twins_experiment(people, {"model": {"name": "scripted"}})
    assert osim.plan(experiment).calls == 12
    results = osim.run(experiment, people.url)
    assert set(before) < set(results.run_ids), "the people are the runs that were imported"
    twins = results.runs[results.runs["interaction"] == "twins"]
    assert set(twins["status"]) == {"complete"}
    assert set(twins["evidence"]) == {"scripted"}
    assert set(twins["block"]) == set(people.runs["block"])
    first = {f"{row.who}/{row.topic}": row for row in table.itertuples()}
    agents = results.agents.set_index("run_id")
    for run in twins.itertuples():
        row = first[f"{agents.at[run.run_id, 'name']}/{run.topic}"]
        assert agents.at[run.run_id, "assigned_opinion"] == row.before
        prompts = results.prompt(run.run_id, 0)
        words = "should cost money" if row.worded == "Con" else "should be free of charge"
        assert f"{run.topic} {words}" in prompts[0].content
        assert f"Age: {row.age}".lower() in prompts[0].content.lower()
        assert prompts[-1].content.index("I disagree with it.") < prompts[-1].content.index("Trains save energy.")
    assert [each.difference for each in replay(results)] == [""] * 12
    assert "twins" in set(people_table(results).frame["of"])


def test_a_twin_answers_after_each_wave_and_remembers_those_before() -> None:
    rows = [
        {"who": who, "wave": wave, "rating": (wave + place) % 3} for wave in (5, 6, 9) for place, who in enumerate("AB")
    ]
    mapping = PanelMapping(
        name="waves", person="who", wave="wave", rating="rating", claims={"waves": {"for": "the sea is rough"}}
    )
    people = _imported(rows, mapping)
    results = osim.run(twins_experiment(people, {"model": {"name": "scripted"}}), people.url)
    twins = results.runs.loc[results.runs["interaction"] == "twins", "run_id"]
    turns = results.turns[results.turns["run_id"] == twins.iloc[0]]
    assert turns[["step", "act"]].to_numpy().tolist() == [
        [1, "report"], [1, "self-report"], [2, "report"], [2, "self-report"]
    ]  # fmt: skip
    assert "<memory>" in "".join(each.content for each in results.prompt(twins.iloc[0], 2))
    found = updates(results)
    assert found["twins"].notna().all()
    assert found["step"].tolist() == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"scale": {"points": [0, 1]}}, "'scale' of twins comes from the record of people"),
        ({"model": {"name": "scripted"}}, "in the mapping, give claims.plain.for"),
    ],
)
def test_twins_without_a_statement_or_with_another_record_are_refused(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        twins_experiment(_imported(ROWS), spec)


def test_only_records_of_people_have_twins() -> None:
    spec = {"name": "other", "topic": {"name": "palms"}, "interaction": {"kind": "dyadic", "steps": 1}}
    spec["topic"] = {"name": "global-warming"}
    with pytest.raises(SpecError, match="is not a record of people"):
        twins_experiment(osim.run(osim.load_experiment(spec), "other.sqlite"), {})


# -- tables that are refused -------------------------------------------------------------------------------


def _with(place: int, **cells: Any) -> list[dict[str, Any]]:
    return [{**row, **(cells if number == place else {})} for number, row in enumerate(ROWS)]


@pytest.mark.parametrize(
    ("rows", "changes", "problem"),
    [
        (
            _with(2, wave=1),
            {},
            r"^row 3: person 'A' has two ratings of 'plain' at the same time \(wave 1\); give one row",
        ),
        ([ROWS[2], ROWS[0]], {}, "^row 2: wave 1 of 'A' comes after wave 2; sort the table by wave"),
        (_with(1, rating=7), {}, r"^row 2: 'rating' is 7, which is not on the scale; valid: -2, -1, 0, 1, 2"),
        (_with(1, rating="high"), {}, "^row 2: 'rating' is 'high', which is not a number"),
        (_with(0, who=None), {}, "^row 1: 'who' is empty; every row needs one"),
        (_with(0, wave=None), {}, "^row 1: 'wave' is empty; every row needs one"),
        (ROWS, {"person": "name"}, "names 'name', which the table must have once; it has who, wave, rating, text"),
        (ROWS, {"conditions": ("sort",)}, "^row 3: the condition 'sort' is '3', and '1' in another row of 'A'"),
        (ROWS, {"kind": "text"}, "^row 2: 'text' is 'I doubt it.'; valid: opinion, post, "),
        (_with(0, rating=None)[:1], {}, "has no rating in rating"),
        ([], {}, "which the table must have once"),
    ],
)
def test_tables_that_do_not_fit_are_refused_before_anything_is_written(
    rows: list[dict[str, Any]], changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SpecError, match=problem):
        _imported(rows, PLAIN.model_copy(update=changes))
    assert not Path("people.sqlite").exists()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: x\nperson: p\n", "rating"),
        ("name: x\nperson: p\nrating: r\ncolour: c\n", "colour"),
        ("name: x\nperson: p\nrating: r\ncollected: soon\n", "collected"),
    ],
)
def test_mappings_that_are_not_valid_name_the_field(tmp_path: Path, text: str, problem: str) -> None:
    (file := tmp_path / "m.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=problem):
        load_panel_mapping(file)


def test_an_unknown_mapping_lists_those_of_the_package() -> None:
    with pytest.raises(SpecError, match="valid: belief-updates, belief-updates-numeric, debate"):
        load_panel_mapping("beliefs")


def test_a_file_that_is_no_table_is_refused() -> None:
    with pytest.raises(SpecError, match=r"missing\.csv: no such file"):
        import_panel("missing.csv", PLAIN)
    with pytest.raises(SpecError, match="cannot be read as a table"):
        import_panel("missing.parquet", PLAIN)


def test_missing_cells_of_pandas_are_empty_and_ids_keep_their_digits() -> None:
    cells = {"who": [11, 12, 12], "wave": [1, 1, 2], "rating": [1, 2, pd.NA], "text": [pd.NA, "", "So."]}
    rows = pd.DataFrame(cells, dtype=object)
    results = import_panel(rows, PLAIN, store="people.sqlite")
    assert set(results.agents["name"]) == {"11", "12"}
    with pytest.raises(SpecError, match="1234567890123456768 has lost digits; store its column as text"):
        _imported([{**ROWS[0], "who": 1234567890123456789.0}])


# -- DEBATE ------------------------------------------------------------------------------------------------


def _debate(folder: Path) -> Path:
    """One group of two, whose words and slider are events of their own."""
    rows = [
        (1, "Initial Opinion", "w1", None, "It is fine.", None, None),
        (2, "Initial Opinion", "w1", None, None, 5, "VALID"),
        (3, "Initial Opinion", "w2", None, "It is not.", 2, "VALID"),
        (4, "tweet", "w1", None, "Look here.", None, None),
        (5, "message_sent", "w2", "w1", "I did.", None, None),
        (6, "message_sent", "w2", "w1", "spam", None, "INVALID"),
        (7, "Final Opinion", "w1", None, "Still fine.", 4, "VALID"),
        (8, "Final Opinion", "w2", None, "Better.", 3, "VALID"),
    ]
    names = ["event_order", "event_type", "worker_id", "recipient_id", "text", "sliderValue", "validity"]
    file = folder / "golden" / "depth" / "FISH" / "20250101_000000_FISH_a_1.csv"
    file.parent.mkdir(parents=True)
    pd.DataFrame(rows, columns=names).to_csv(file, index=False)
    return folder / "golden"


def test_a_group_of_debate_keeps_its_order_opinions_and_readers(tmp_path: Path) -> None:
    results = import_panel(read_debate(_debate(tmp_path)), "debate", store="people.sqlite")
    turns = results.turns
    assert turns["kind"].tolist() == ["opinion", "opinion", "post", "post", "opinion", "opinion"]
    assert turns["message"].tolist()[0] == "It is fine."
    assert turns["reads"].tolist() == [(), (), (), (2,), (3,), (2,)]
    found = updates(results)
    assert sorted(zip(found["first"], found["last"], strict=True)) == [(2.0, 3.0), (5.0, 4.0)]


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda folder: None, "contains no .csv files of groups"),
        (lambda folder: (folder / "a.csv").write_text("text\nhello\n"), "lacks 'event_order'"),
    ],
)
def test_folders_without_groups_are_refused(tmp_path: Path, spoil: Callable[[Path], object], problem: str) -> None:
    spoil(tmp_path)
    with pytest.raises(SpecError, match=problem):
        read_debate(tmp_path)


# -- the table ---------------------------------------------------------------------------------------------


def test_the_table_has_people_models_and_equations_with_intervals() -> None:
    results = import_panel(crossed(12), CROSSED, store="people.sqlite")
    table = people_table(results)
    frame = table.frame
    assert list(dict.fromkeys(frame["of"])) == ["people", "parrot", "persistence", "linear", "pull to the mean"]
    assert dict(zip(frame["of"], frame["evidence"], strict=True))["parrot"] == "model"
    changed = frame[frame["measure"] == "share that changed"].set_index("of")
    assert changed.at["parrot", "value"] == changed.at["persistence", "value"] == 0
    found = updates(results)
    assert changed.at["people", "value"] == pytest.approx((found["first"] != found["last"]).mean())
    assert changed.at["people", "low"] < changed.at["people", "value"] < changed.at["people", "high"]
    assert "2026-03-01" in table.rows[0]
    assert "may be in the training data of parrot" in table.to_text()
    assert "the ceiling is unknown" in table.to_text()
    assert people_table(results).to_form("csv") == table.to_form("csv")
    assert len(people_figure(table).axes) == 5


def test_people_who_were_asked_again_are_the_ceiling_and_later_data_are_safe() -> None:
    from datetime import date

    table = crossed(12).assign(again=lambda frame: frame["before"])
    results = import_panel(table, CROSSED.model_copy(update={"retest": "again"}), store="people.sqlite")
    found = people_table(results, cutoffs={"parrot": date(2025, 6, 1)})
    again = found.frame[found.frame["of"] == "people, asked again"].set_index("measure")["value"]
    assert again["share that changed"] == 0
    assert not found.frame["measure"].str.startswith("slope if reliability").any()
    assert "training data of" not in found.to_text()


def test_groups_that_talk_converge_and_the_pull_to_their_mean_predicts_it() -> None:
    frame = people_table(import_panel(talks(8), TALKS, store="people.sqlite")).frame
    values = frame.set_index(["measure", "of"])["value"]
    assert values["variance ratio within groups", "people"] < 0.5
    assert values["share of groups that converged", "people"] > 0.7
    assert values["log score", "pull to the mean"] > values["log score", "linear"]


def test_intervals_of_shares_end_at_0_and_1_and_what_never_varies_has_none() -> None:
    rows = pd.DataFrame({"who": list("ABCDEF"), "before": [0] * 6, "after": [0, 0, 0, 0, 0, 1]})
    mapping = PanelMapping(name="few", person="who", rating=("before", "after"))
    frame = people_table(import_panel(rows, mapping, store="few.sqlite")).frame.set_index(["measure", "of"])
    changed = frame.loc["share that changed"]
    assert (changed.at["people", "low"], changed.at["people", "high"]) == (0, pytest.approx(0.465, abs=0.05))
    assert np.isnan(changed.at["persistence", "low"])


def test_nobody_is_drawn_to_the_mean_of_others_who_are_not_there() -> None:
    """Each person alone on a topic goes half of the way to 0, as to a mean of nobody."""
    rows = pd.DataFrame({"who": list("ABCDEFGHIJKL"), "on": list("abcdefghijkl"), "before": [4, 6] * 6})
    rows["after"] = rows["before"] // 2
    mapping = PanelMapping(
        name="alone", person="who", topic="on", rating=("before", "after"), points=tuple(range(1, 8))
    )
    frame = people_table(import_panel(rows, mapping, store="alone.sqlite")).frame.set_index(["measure", "of"])
    assert frame.at[("log score", "linear"), "value"] > -0.1
    assert frame.at[("log score", "pull to the mean"), "value"] < -1


def test_too_few_units_or_ratings_make_no_table() -> None:
    with pytest.raises(MeasurementError, match="1 units with two ratings"):
        people_table(_imported(ROWS))
    with pytest.raises(MeasurementError, match="no person of the record has two ratings"):
        updates(_imported(ROWS[:2], name="single"))


# -- continuous scales -------------------------------------------------------------------------------------

SLIDERS = pd.DataFrame({"who": list("ABCD"), "before": [0, 12.5, 50, 100], "after": [30, 12.5, 62.5, 99]})


def _slid(table: pd.DataFrame = SLIDERS, **more: Any) -> osim.Results:
    fields = {"name": "sliders", "person": "who", "rating": ("before", "after"), "points": {"from": 0, "to": 100}}
    return import_panel(table, PanelMapping(**{**fields, **more}), store="sliders.sqlite")  # type: ignore[arg-type]


def test_ratings_between_points_are_in_frames_metrics_and_tables() -> None:
    results = _slid()
    found = updates(results).sort_values("unit")
    assert found[["first", "last"]].to_numpy().tolist() == SLIDERS[["before", "after"]].to_numpy().tolist()
    assert sorted(results.metrics["bias"]) == [12.5, 30.0, 62.5, 99.0]
    assert "51.00 [" in tables(results.runs, results.metrics)[0].to_text()
    assert set(results.turns["message"]) >= {"12.5", "62.5"}
    turned = updates(_slid(SLIDERS.assign(side="no"), name="turned", reversed={"side": ("no",)}))
    assert sorted(turned["first"]) == [0.0, 50.0, 87.5, 100.0]


def test_ratings_between_points_are_compared_as_numbers() -> None:
    talk = pd.DataFrame({"who": list("ABAB"), "wave": [1, 1, 2, 2], "rating": [10.5, 80, 40, 60.5]})
    talk = talk.assign(team="t", said=list("abcd"), sort="post")
    columns = {"group": "team", "wave": "wave", "rating": "rating", "text": "said", "kind": "sort"}
    (study,) = studies(_slid(talk, **columns)).values()
    assert study.exact
    # Nothing is on record before B's first number, so that it is no update.
    assert study.value[study.updated].tolist() == [40, 60.5]
    first = _slid(talk[talk["wave"] == 1], name="once", **columns)
    with pytest.raises(MeasurementError, match="with a recorded opinion just before; there are none"):
        osim.compare(first, "degroot")


def test_what_compares_points_refuses_ratings_between_them() -> None:
    results = _slid()
    with pytest.raises(MeasurementError, match="people rated between points, but this table counts points"):
        people_table(results)
    with pytest.raises(SpecError, match="people rated between points, but twins state points"):
        twins_experiment(results, {"model": {"name": "scripted"}})
    with pytest.raises(SpecError, match="opinions are numbers between points, but labels, kappa and alpha"):
        draw(_slid(SLIDERS.assign(said="Buses are cheap."), name="texts", text="said"), 3)
    why = refused("measure", "sliders.sqlite", "--experiment", "sliders", "--classifier", "lexicon")
    assert "people rated between points, but instruments code points" in why
    lexicon = [{"variable": "tone", "classifier": "lexicon"}]
    mapping = PanelMapping(name="x", person="who", rating=("before", "after"), points={"from": 0, "to": 100})
    with pytest.raises(SpecError, match="instruments code points, but ratings are numbers between two ends"):
        import_panel(SLIDERS, mapping, store="x.sqlite", instruments=lexicon)


@pytest.mark.parametrize(
    ("points", "after", "message"),
    [
        ({"from": 0, "to": 100}, 100.5, "'after' is 100.5, which is not on the scale; valid: 0 to 100"),
        ({"from": 100, "to": 0}, 1, "points: must be points, or {from: LOW, to: HIGH}"),
        ({"from": 0}, 1, "points: must be points, or {from: LOW, to: HIGH}"),
        ((0, 50, 100), 12.5, "which is not on the scale; valid: 0, 50, 100"),
    ],
)
def test_ratings_beyond_a_continuous_scale_are_refused(points: Any, after: float, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        _slid(SLIDERS.assign(before=0, after=after), points=points)
