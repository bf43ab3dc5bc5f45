from __future__ import annotations

import math

import numpy as np
import pytest

from opinionsim.drawing import line_style, model_colours, opinion_colours
from opinionsim.errors import SpecError
from opinionsim.metrics import EVIDENCE, NOT_VALIDATED
from opinionsim.opinions import OpinionScale
from opinionsim.plots import Frames, final_data, panels_data, trajectory_data
from tests.support.frames import final, make, one_run, opinion_rows, run_row, study

#: What is said of runs that carry an error although they are complete.
OUTDATED = "an earlier wording of the prompts than the current one, or could not be coded; see runs.error"

FRAMINGS = ("falsehood", "truth")
BIASES = ("none", "weak", "strong")
CONTROLS = [{"interaction": "no-role-play", "n_agents": 1}, {"interaction": "remembered"}]


def test_lines_start_where_an_agent_is_first_measured() -> None:
    frames = one_run([(0, 2, 0, -1), (1, 4, 0, 1), (2, 4, 1, math.nan)], assigned=[2, -2, math.nan], steps=4)
    data = trajectory_data(frames)
    np.testing.assert_array_equal(data.steps, np.arange(5))
    np.testing.assert_array_equal(data.values[0], [math.nan, math.nan, -1, -1, 1])
    assert np.isnan(data.values[1:]).all()
    np.testing.assert_array_equal(data.measured[0], [False, False, True, False, True])
    np.testing.assert_array_equal(data.assigned, [2, -2, math.nan])
    np.testing.assert_allclose(data.offsets, [-0.03, 0, 0.03])
    assert data.evidence == EVIDENCE["scripted"]
    assert "reports coded by lexicon" in data.title


def test_jitter_of_a_large_group_stays_with_its_own_opinion() -> None:
    offsets = trajectory_data(study([{}], n_agents=200, steps=10)).offsets
    assert np.abs(offsets).max() <= 0.35 + 1e-12
    assert offsets.sum() == pytest.approx(0, abs=1e-9)
    assert (np.diff(offsets) > 0).all()


@pytest.mark.parametrize(
    ("classifier", "values", "apart"),
    [
        ("lexicon", [2, 2, -1], True),
        ("exact", [2, 2, -1], False),
        ("exact", [2, 1.99, -1], False),
        ("lexicon", [2, 0.5, -1], False),
        ("lexicon", [math.nan, 2, math.nan], True),
    ],
)
def test_only_ratings_are_set_apart(classifier: str, values: list[float], apart: bool) -> None:
    data = trajectory_data(one_run(final(values), assigned=[2, 2, 0], classifier=classifier))
    np.testing.assert_allclose(data.offsets, [-0.03, 0, 0.03] if apart else 0)
    np.testing.assert_array_equal(data.values[:, -1], values)


def test_panels_say_which_lines_are_set_apart_where_some_are_not() -> None:
    rows = [{"model": "scripted"}, {"model": "voter", "classifier": "exact", "evidence": "equation"}]
    said = "equal ratings are drawn apart"
    assert said in panels_data(study(rows, steps=5)).note
    assert said not in panels_data(study(rows[:1], steps=5)).note
    assert said not in panels_data(study(rows[1:], steps=5)).note


def test_the_default_run_is_the_first_complete_one_of_the_lowest_replicate() -> None:
    frames = study([{}, {"framing": "truth"}], replicates=2, steps=10)
    frames.runs.loc[0, "status"] = "incomplete"
    assert "framing: truth" in trajectory_data(frames).title
    assert "replicate 0 (of 2)" in trajectory_data(frames).title
    assert "framing: falsehood" in trajectory_data(frames, run=1).title
    np.testing.assert_array_equal(trajectory_data(frames, "r3").values, trajectory_data(frames, 3).values)


def test_a_run_in_two_cells_is_drawn_under_the_measurement_of_the_cell() -> None:
    row = run_row("r0", n_agents=1, steps=1)
    other = row | {"cell": "c1", "instrument_id": "m1", "classifier": "flan_t5"}
    opinions = opinion_rows(row, [(0, 1, 0, 2)]) + opinion_rows(other, [(0, 1, 0, -2)])
    frames = make([row, other], [0], opinions)
    assert trajectory_data(frames, 0).values[0, -1] == 2
    assert trajectory_data(frames, 1).values[0, -1] == -2
    assert trajectory_data(frames, 1).instrument == "reports coded by flan_t5"


def test_kinds_of_text_are_never_mixed() -> None:
    frames = one_run([(0, 1, 0, 2, "post"), (1, 1, 1, -1, "post")], assigned=[0, 0], steps=1)
    assert trajectory_data(frames).instrument == "posts coded by lexicon"
    with pytest.raises(SpecError, match="kind 'report'; give one of post"):
        trajectory_data(frames, kind="report")


def test_final_counts_bias_and_diversity() -> None:
    frames = one_run(final([2] * 8 + [-2, math.nan]), assigned=[0] * 10)
    data = final_data(frames)
    np.testing.assert_array_equal(data.counts, [1, 0, 0, 0, 8])
    assert (data.n_agents, data.n_never) == (10, 1)
    assert data.bias == pytest.approx(14 / 9)
    assert data.diversity == pytest.approx(math.sqrt(8 / 81) * 4)
    assert final_data(frames, ddof=1).diversity == pytest.approx(math.sqrt(8 / 81) * 4 * math.sqrt(9 / 8))
    assert data.moments == ("mean 1.56", "diversity 1.26")


def test_nobody_measured_has_no_bias() -> None:
    data = final_data(one_run([(0, 1, 0, math.nan)], assigned=[2], steps=1))
    assert data.moments == ("mean \N{EN DASH}", "diversity \N{EN DASH}")
    assert data.counts.sum() == 0


def test_colours_are_the_published_ones_and_interpolate_between_them() -> None:
    assert opinion_colours(OpinionScale()) == {
        -2: "#E60000",
        -1: "#FF8080",
        0: "#999999",
        1: "#66C2FF",
        2: "#0066FF",
    }
    seven = opinion_colours(OpinionScale.of_size(7))
    assert (seven[-3], seven[0], seven[3]) == ("#E60000", "#999999", "#0066FF")
    assert len(set(seven.values())) == 7
    assert opinion_colours(OpinionScale.of_size(2)) == {-1: "#E60000", 1: "#0066FF"}


def test_panels_of_the_study_with_controls() -> None:
    conditions = [{"framing": f, "confirmation_bias": b} for f in FRAMINGS for b in BIASES]
    frames = study([*conditions, *CONTROLS], replicates=2, steps=30)
    data = panels_data(frames)
    assert (data.n_rows, data.n_columns) == (4, 2)
    assert data.column_titles == ("framing: falsehood", "framing: truth")
    assert data.row_titles == tuple(f"confirmation bias: {bias}" for bias in BIASES)
    drawn = {(panel.row, panel.column): panel for panel in data.panels}
    expected = {(row, column): f"r{2 * (3 * column + row)}" for row in range(3) for column in range(2)}
    assert {place: drawn[place].run_id for place in expected} == expected
    assert all(drawn[place].final is not None for place in expected)
    below = [drawn[3, 0], drawn[3, 1]]
    assert [panel.run_id for panel in below] == ["r14", "r12"]
    assert [panel.final for panel in below] == [None, None]
    assert below[1].title == "no role play, no interaction\nframing: falsehood"
    assert "replicate 0 (of 2)" in data.note


def test_panels_hold_what_else_varies_and_say_so() -> None:
    conditions = [
        {"topic": topic, "framing": framing, "memory": memory}
        for topic in ("flat-earth", "palmistry")
        for framing in FRAMINGS
        for memory in ("reflective", "cumulative")
    ]
    data = panels_data(study(conditions, steps=20))
    assert data.row_titles == ("memory: cumulative", "memory: reflective")
    assert "topic held at flat-earth (first of 2)" in data.note
    assert data.title == "flat-earth, no confirmation bias"
    chosen = panels_data(study(conditions, steps=20), where={"topic": "palmistry", "memory": "reflective"})
    assert [panel.run_id for panel in chosen.panels] == ["r4", "r6"]
    assert "held" not in chosen.note


@pytest.mark.parametrize(("n", "shape"), [(2, (1, 2)), (3, (3, 1)), (4, (2, 2)), (5, (3, 2))])
def test_a_single_condition_is_wrapped(n: int, shape: tuple[int, int]) -> None:
    names = ["all-positive", "skewed-positive", "uniform", "skewed-negative", "all-negative"][:n]
    data = panels_data(study([{"population.initial_opinions": name} for name in names], steps=20))
    assert (data.n_rows, data.n_columns) == shape
    assert [panel.title for panel in data.panels] == [f"initial opinions: {name}" for name in names]


def test_rows_and_columns_can_be_given() -> None:
    frames = study([{"framing": f, "confirmation_bias": b} for f in FRAMINGS for b in BIASES], steps=20)
    data = panels_data(frames, rows="framing", columns="confirmation_bias")
    assert (data.n_rows, data.n_columns) == (2, 3)
    assert data.row_titles == ("framing: falsehood", "framing: truth")


def test_incomplete_runs_leave_their_place_empty_and_controls_alone_are_drawn() -> None:
    frames = study([{"framing": f, "confirmation_bias": b} for f in FRAMINGS for b in BIASES], steps=20)
    frames.runs.loc[4, "status"] = "incomplete"
    assert (1, 1) not in {(panel.row, panel.column) for panel in panels_data(frames).panels}
    alone = panels_data(study([{"interaction": "independent"}], steps=20))
    assert (len(alone.panels), alone.n_rows) == (1, 1)


def test_mixed_evidence_is_stated() -> None:
    data = panels_data(study([{"framing": "falsehood", "evidence": "model"}, {"framing": "truth"}], steps=20))
    assert data.evidence == f"{EVIDENCE['scripted']} + {EVIDENCE['model']}"


def test_a_condition_that_is_not_set_keeps_its_panel() -> None:
    frames = study([{"prompts.budget": 100.0}, {"prompts.budget": math.nan}], steps=20)
    assert [panel.title for panel in panels_data(frames).panels] == ["budget: 100.0", "budget: not set"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: trajectory_data(f, "nowhere"), "no run 'nowhere'"),
        (lambda f: trajectory_data(f, 9), "position from 0 to 0; got 9"),
        (
            lambda f: trajectory_data(Frames(f.runs.assign(status="pending"), f.agents, f.opinions)),
            "no run is complete",
        ),
        (lambda f: trajectory_data(f, kind="probe"), "kind 'probe'; give one of report"),
        (lambda f: panels_data(f, where={"topic": "moon"}), "topic = 'moon'; valid: global-warming"),
        (lambda f: panels_data(f, replicate=3), "replicate 3"),
        (lambda f: panels_data(f, rows="bias"), "no column 'bias'; conditions that vary: none"),
        (lambda f: panels_data(f, where={"bias": "none"}), "no column 'bias'"),
    ],
)
def test_what_cannot_be_drawn_is_named(call: object, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        call(study([{}], steps=10))  # type: ignore[operator]


RAGGED = [
    *({"confirmation_bias": b, "population.shown": shown} for b in ("none", "strong") for shown in ("full", "name")),
    {"interaction": "broadcast", "network": "ring"},
]


def test_conditions_that_form_no_grid_have_a_panel_a_cell() -> None:
    data = panels_data(study(RAGGED, steps=20))
    assert [panel.title for panel in data.panels] == [
        "confirmation bias: none, interaction: dyadic, network: complete, shown: full",
        "confirmation bias: none, interaction: dyadic, network: complete, shown: name",
        "confirmation bias: none, interaction: broadcast, network: ring",
        "confirmation bias: strong, interaction: dyadic, network: complete, shown: full",
        "confirmation bias: strong, interaction: dyadic, network: complete, shown: name",
    ]
    assert (data.n_rows, data.n_columns, data.row_titles, data.column_titles) == (3, 2, (), ())
    assert data.title == "global-warming, framing: falsehood, cumulative memory"
    assert "held" not in data.note


def test_axes_are_held_only_at_levels_that_runs_are_left_with() -> None:
    data = panels_data(study(RAGGED, steps=20), columns="interaction")
    assert data.column_titles == ("interaction: dyadic",)
    assert [panel.run_id for panel in data.panels] == ["r0", "r2"]
    assert "shown held at full (first of 3)" in data.note
    rows = [{"topic": "a", "memory": "reflective"}, {"topic": "b", "memory": "cumulative", "framing": "truth"}]
    kept = panels_data(study(rows, steps=20), rows="framing", columns="world")
    assert [panel.run_id for panel in kept.panels] == ["r1"]
    assert "memory held at cumulative (first of 2); topic held at b (one of 2)" in kept.note


def test_cells_beyond_twelve_are_counted() -> None:
    rows = [{f"model.{name}": level} for name in ("x", "y", "z") for level in range(5)]
    data = panels_data(study(rows, steps=5))
    assert (len(data.panels), data.n_rows, data.n_columns) == (12, 4, 3)
    assert "3 of 15 conditions left out" in data.note


def test_cells_without_a_common_topic_show_one_each() -> None:
    rows = [{"topic": "a", "model.x": 1}, {"topic": "a", "model.y": 1}, {"topic": "b", "model.z": 2}, {"topic": "b"}]
    data = panels_data(study([*rows, {"topic": "a"}], steps=5))
    assert [panel.run_id for panel in data.panels] == ["r0", "r1", "r2", "r4"]
    assert "one topic per condition, a where there is one" in data.note


def test_a_grid_with_a_condition_left_out_stays_a_grid() -> None:
    rows = [{"framing": f, "confirmation_bias": b} for f in FRAMINGS for b in BIASES][:-1]
    data = panels_data(study(rows, steps=5))
    assert (len(data.panels), len(data.row_titles), len(data.column_titles)) == (5, 3, 2)


def test_one_seed_is_drawn_and_named() -> None:
    data = panels_data(study([{"seed": seed, "sweep.seed": seed} for seed in (4, 5)], steps=5))
    assert [panel.run_id for panel in data.panels] == ["r0"]
    assert "seed held at 4 (first of 2)" in data.note


def test_runs_that_answer_an_earlier_wording_are_stated() -> None:
    frames = study([{"framing": f, "error": "" if f == "truth" else "edited"} for f in FRAMINGS], steps=5)
    assert f"1 of the runs drawn answers {OUTDATED}" in panels_data(frames).note
    assert "earlier wording" in trajectory_data(frames, 0).title
    assert "earlier wording" not in trajectory_data(frames, 1).title


def test_several_scales_share_an_axis_named_by_numbers() -> None:
    frames = study([{"scale": size, "instrument_id": f"m{size}"} for size in (5, 7)], steps=5)
    opinions = frames.opinions.assign(**{"p_-3": math.nan, "p_3": math.nan})
    for size in (5, 7):
        for point in OpinionScale.of_size(size).points:
            opinions.loc[opinions["instrument_id"] == f"m{size}", f"p_{point}"] = 1 / size
    mixed = Frames(frames.runs, frames.agents, opinions)
    shared = panels_data(mixed).panels[0].trajectory.scale
    assert shared.points == tuple(range(-3, 4))
    assert shared.labels[0] == "\N{MINUS SIGN}3"
    assert trajectory_data(mixed, 0).scale == OpinionScale()
    assert panels_data(mixed, where={"scale": 5}).panels[0].trajectory.scale == OpinionScale()


def test_what_is_known_of_the_instrument_is_stated_but_of_self_reports() -> None:
    frames = study([{"framing": f, "evidence": "model", "validation": NOT_VALIDATED} for f in FRAMINGS], steps=5)
    for text in (trajectory_data(frames).title, final_data(frames).title, panels_data(frames).note):
        assert NOT_VALIDATED in text
    frames.opinions["kind"] = "self-report"
    for text in (trajectory_data(frames).title, final_data(frames).title, panels_data(frames).note):
        assert NOT_VALIDATED not in text
        assert "self-reports" in text
        assert "coded by" not in text


def test_models_of_agents_are_in_the_order_of_the_agents() -> None:
    frames = one_run([(0, 1, 1, 1.0)], assigned=[0, 0, 0])
    agents = frames.agents.assign(model=["a", "b", "a"]).iloc[[2, 0, 1]]
    assert trajectory_data(frames._replace(agents=agents)).models == ("a", "b", "a")
    assert trajectory_data(frames._replace(agents=agents.iloc[:2])).models == ("a", "model not on record", "a")


def test_colours_of_models_differ_and_do_not_depend_on_the_order() -> None:
    for n in (1, 2, 6, 7, 30):
        names = [f"model {i:02d}" for i in range(n)]
        colours = model_colours(names)
        assert len(set(colours.values())) == min(n, 6)
        assert len({(colours[name], line_style(place)) for place, name in enumerate(names)}) == n
        assert colours == model_colours([*reversed(names), *names])
    assert not set(model_colours(["a", "b", "c"]).values()) & set(opinion_colours(OpinionScale()).values())


SQUARE = {"topic": "square", "topic_title": "What the square is for"}
HOURS = {"topic": "hours", "topic_title": "Opening hours"}


def test_figures_show_the_title_of_a_topic() -> None:
    frames = study([SQUARE, HOURS], steps=5)
    assert trajectory_data(frames).title.startswith("What the square is for, framing: falsehood, ")
    data = panels_data(frames)
    assert [panel.title for panel in data.panels] == ["What the square is for", "Opening hours"]
    assert panels_data(frames, where={"topic": "hours"}).title.startswith("Opening hours, ")
    both = study([SQUARE, HOURS, {**SQUARE, "framing": "truth"}, {**HOURS, "framing": "truth"}], steps=5)
    assert "topic held at What the square is for (first of 2)" in panels_data(both).note
    assert panels_data(both, rows="topic").row_titles == ("What the square is for", "Opening hours")


def test_topics_without_a_title_of_their_own_go_by_their_names() -> None:
    untitled = study([SQUARE | {"topic_title": math.nan}, HOURS | {"topic_title": ""}], steps=5)
    alike = study([SQUARE, HOURS | {"topic_title": SQUARE["topic_title"]}], steps=5)
    for frames in (untitled, alike):
        assert [panel.title for panel in panels_data(frames).panels] == ["topic: square", "topic: hours"]
    assert trajectory_data(untitled).title.startswith("square, ")
