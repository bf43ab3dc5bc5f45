"""Opinions before and after structures of an outside way of interacting, and of runs written down by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import opinionsim as osim
from opinionsim import plots
from opinionsim.errors import SpecError
from opinionsim.metrics import EVIDENCE
from opinionsim.store import Results
from tests.support.frames import make, one_run, opinion_rows, run_row

NAN = math.nan


def structures(replicates: int = 2, size: int = 4) -> dict[str, Any]:
    """An experiment with four structures, one of which is the control."""
    return {
        "name": "structures",
        "seed": 3,
        "replicates": replicates,
        "population": {"size": size},
        "topic": {"name": "flat-earth"},
        "interaction": {"kind": "tests.support.talking:Talk", "steps": 1},
        "model": {"name": "scripted"},
        "measurement": {
            "classifier": "lexicon",
            "texts": ["response", "probe"],
            "probe": {"before": 1, "after": 1},
        },
        "sweep": {"interaction.reading": ["nobody", "last", "all", "first"]},
    }


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    path = tmp_path_factory.mktemp("structures") / "structures.sqlite"
    return osim.run(osim.load_experiment(structures()), store=f"sqlite:///{path}")


def written(
    run_id: str, before: list[float], after: list[float], speakers: list[int], *, reading: bool = True, **values: Any
) -> tuple[dict[str, Any], list[dict[str, Any]], pd.DataFrame]:
    """A run of three participants and a moderator, who is agent 3 and speaks first."""
    row = run_row(run_id, n_agents=3, steps=2, **values)
    probes = [(agent, 0, agent, value, "probe") for agent, value in enumerate(before)]
    said = [(3 + place, 1, agent, 2, "response") for place, agent in enumerate(speakers)]
    later = [(90 + agent, 2, agent, value, "probe") for agent, value in enumerate(after)]
    turns = [
        {"run_id": run_id, "turn": turn, "agent": agent, "kind": kind, "reads": ()}
        for turn, _, agent, _, kind in [*probes, *said, *later]
    ]
    for turn in turns[4:6] if reading else ():
        turn["reads"] = (turn["turn"] - 1,)
    return row, opinion_rows(row, [*probes, *said, *later]), pd.DataFrame(turns)


def frames_of(*runs: tuple[dict[str, Any], list[dict[str, Any]], pd.DataFrame]) -> plots.Frames:
    made = make([row for row, _, _ in runs], [NAN] * 3, [one for _, opinions, _ in runs for one in opinions])
    return plots.Frames(*made, turns=pd.concat([turns for _, _, turns in runs], ignore_index=True))


CHAIN = {"cell": "chain", "interaction": "chain"}
ALONE = {"cell": "alone", "interaction": "ensemble", "reading": False}
WRITTEN = frames_of(
    written("r0", [0, 2, -2], [0, 0, 1], [3, 2, 0, 1, 2], **CHAIN),
    written("r1", [1, NAN, -1], [1, 2, 1], [3, 1, 2], replicate=1, **CHAIN),
    written("r2", [0, 0, 0], [1, 0, 0], [0, 1, 2], **ALONE),
)


def test_the_numbers_are_those_of_participants_probed_before_and_after() -> None:
    data = plots.before_after_data(WRITTEN, by="interaction")
    # The control was begun as the others, and comes last.
    assert data.means["cell"].tolist() == ["interaction: chain", "interaction: ensemble"]
    assert data.controls == ("interaction: ensemble",)
    columns = ["run_id", "agent", "position", "before", "after", "change"]
    expected = [
        ["r0", 0, 2, 0, 0, 0],
        ["r0", 1, 3, 2, 0, 2],
        ["r0", 2, 1, -2, 1, 3],
        ["r1", 0, NAN, 1, 1, 0],
        ["r1", 1, 1, NAN, 2, NAN],
        ["r1", 2, 2, -1, 1, 2],
        ["r2", 0, 1, 0, 1, 1],
        ["r2", 1, 2, 0, 0, 0],
        ["r2", 2, 3, 0, 0, 0],
    ]
    pd.testing.assert_frame_equal(data.frame[columns], pd.DataFrame(expected, columns=columns), check_dtype=False)
    chain, alone = data.means.to_dict("records")
    # Each run counts once: means 0 and 0 before, 1/3 and 1 after, 5/3 and 1 of the distance.
    assert (chain["n_runs"], chain["n_both"], chain["n_participants"]) == (2, 5, 6)
    assert [chain[name] for name in ("before", "after", "change")] == pytest.approx([0, 2 / 3, 4 / 3])
    assert alone["change"] == pytest.approx(1 / 3)
    assert all(math.isnan(each[name]) for each in (chain, alone) for name in ("after_low", "change_high"))
    places = data.by_position[data.by_position["cell"] == "interaction: chain"]
    assert places[["position", "mean", "n_runs"]].to_numpy().tolist() == [[1, 3, 1], [2, 1, 2], [3, 2, 1]]
    assert data.evidence == EVIDENCE["scripted"]
    assert data.notes[-1] == "1 of 9 participants without both opinions left out"
    assert data.band == "small diamonds: single runs of conditions with fewer than 8 runs"


def test_signed_changes_keep_their_direction() -> None:
    data = plots.before_after_data(WRITTEN, where={"interaction": "chain"}, change="signed")
    np.testing.assert_array_equal(data.frame["change"], [0, -2, 3, 0, NAN, 2])
    assert data.means.loc[0, "change"] == pytest.approx((1 / 3 + 1) / 2)
    assert data.controls == ()


@pytest.mark.parametrize(
    ("reader", "reads", "control"),
    [(0, (4,), True), (0, (4, 5), False), (0, ("news",), False), (3, (4, 5), True)],
    ids=["own", "another", "from outside", "a moderator"],
)
def test_a_control_is_where_no_participant_reads_another(reader: int, reads: tuple[Any, ...], control: bool) -> None:
    """Agents 1, 0, 2 speak in turns 3, 4, 5; whoever reads does so in turn 6."""
    row, opinions, turns = written("r0", [0] * 3, [1] * 3, [1, 0, 2, reader], reading=False)
    turns["reads"] = [reads if turn == 6 else () for turn in turns["turn"]]
    assert bool(plots.before_after_data(frames_of((row, opinions, turns))).controls) == control


def test_a_condition_without_opinions_has_empty_panels() -> None:
    silent = written("r3", [NAN] * 3, [NAN] * 3, [0, 1, 2], cell="silent", interaction="debate")
    chain = written("r0", [0, 2, -2], [0, 0, 1], [3, 2, 0, 1, 2], **CHAIN)
    figure = plots.before_after(frames_of(silent, chain), by="interaction")
    figure.draw_without_rendering()
    (left, right), _ = panels_of(figure)
    assert left.get_title(loc="left") == "interaction: debate (0 runs)"
    assert not len(right.collections[0].get_offsets())


def test_opinions_after_are_measured_after() -> None:
    """What an agent says along the way stands for no probe that found nothing."""
    data = plots.before_after_data(frames_of(written("r0", [0, 1, 2], [NAN, 1, 2], [0, 1, 2])))
    np.testing.assert_array_equal(data.frame["after"], [NAN, 1, 2])


@pytest.mark.parametrize(
    ("source", "options", "told"),
    [
        (WRITTEN, {"change": "relative"}, "change must be 'distance' or 'signed'; got 'relative'"),
        (WRITTEN, {"kind": "report"}, "kind must be 'probe' or 'self-report'"),
        (WRITTEN, {"kind": "self-report"}, "no stance was measured on texts of kind 'self-report'"),
        (WRITTEN, {"by": "topic"}, "runs of one condition differ in interaction"),
        (WRITTEN._replace(turns=None), {}, "Results, or Frames with turns"),
        (frames_of(written("r0", [0, NAN, 0], [NAN, 1, NAN], [0])), {}, "no participant has a measured opinion"),
        (one_run([(0, 1, 0, 2)], [NAN]), {}, "Results, or Frames with turns"),
        (WRITTEN._replace(opinions=WRITTEN.opinions.iloc[:0]), {}, "no participant was asked off the record; set meas"),
    ],
)
def test_figures_that_cannot_be_drawn_are_refused(source: plots.Frames, options: Any, told: str) -> None:
    with pytest.raises(SpecError) as raised:
        plots.before_after(source, **options)
    assert told in str(raised.value)


def panels_of(figure: Figure) -> list[tuple[Axes, Axes]]:
    """The two panels of each condition."""
    return list(zip(figure.axes[::2], figure.axes[1::2], strict=True))


def test_equal_participants_share_a_disc_as_large_as_their_number() -> None:
    same = frames_of(written("r0", [1, 1.1, -2], [0, 0.2, 2], [0, 1, 2]))
    ((left, right),) = panels_of(plots.before_after(same))
    (discs,) = (each for each in left.collections if len(each.get_offsets()) == 2)
    assert discs.get_offsets().tolist() == [[1, 0], [-2, 2]]
    assert discs.get_sizes()[0] == pytest.approx(2 * discs.get_sizes()[1])
    assert [tuple(colour) for colour in discs.get_facecolors()] == [to_rgba("#66C2FF"), to_rgba("#E60000")]
    assert right.collections[0].get_offsets().tolist() == [[1, 1], [2, pytest.approx(0.9)], [3, 4]]


@pytest.mark.parametrize("speakers", [[0, 1, 0, 2], [2, 2, 0, 1]])
def test_those_who_do_not_speak_in_turn_have_no_positions_and_are_counted_by_change(speakers: list[int]) -> None:
    """One run out of turn is enough: its condition has no order."""
    orderly = written("r0", [0, 2, -2], [0, 0, 1], [0, 1, 2], cell="dyads")
    frames = frames_of(orderly, written("r1", [0, 1, 0], [2, 1, 0], speakers, cell="dyads", replicate=1))
    data = plots.before_after_data(frames)
    assert data.frame["position"].isna().all()
    assert data.by_position.empty
    ((_, right),) = panels_of(plots.before_after(frames))
    assert right.get_xlabel() == "participants"
    bars = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in right.patches}
    assert bars == {0: 0.5, 2: pytest.approx(1 / 3), 3: pytest.approx(1 / 6)}


def test_panels_name_conditions_and_show_the_control_beside() -> None:
    figure = plots.before_after(WRITTEN, by="interaction")
    assert figure.get_suptitle().startswith(EVIDENCE["scripted"])
    panels = panels_of(figure)
    titles = [" ".join(left.get_title(loc="left").split()) for left, _ in panels]
    assert titles == [
        "interaction: chain (2 runs)",
        "interaction: ensemble (1 run, control)",
    ]
    assert len({left.get_ylim() for left, _ in panels}) == len({right.get_ylim() for _, right in panels}) == 1
    for _, right in panels:
        dashed = [line for line in right.lines if line.get_linestyle() == "--"]
        assert [line.get_ydata()[0] for line in dashed] == [pytest.approx(1 / 3)]
    without = plots.before_after(WRITTEN, where={"interaction": "chain"})
    assert not [line for line in without.axes[1].lines if line.get_linestyle() == "--"]
    assert "control" in figure.legends[0].get_texts()[-1].get_text()
    assert len(without.legends[0].get_texts()) == 3


@pytest.mark.long
@pytest.mark.parametrize(("width", "columns"), [(84, 1), (174, 2)])
def test_structures_of_a_store_are_compared_at_the_width_of_a_column_and_of_a_page(
    results: Results, width: float, columns: int
) -> None:
    data = plots.before_after_data(results)
    assert data.controls == ("reading: nobody",)
    assert sorted(data.frame["position"].unique()) == [1, 2, 3, 4]
    with plots.paper(width):
        figure = plots.before_after(results)
    figure.draw_without_rendering()
    assert figure.get_figwidth() == pytest.approx(width / 25.4)
    assert len(figure.axes) == 8
    assert figure.axes[0].get_subplotspec().get_topmost_subplotspec().get_gridspec().ncols == columns
    # Nothing is cut off, and no panel is squeezed to nothing.
    edge = figure.bbox
    for box in [*(ax.get_tightbbox() for ax in figure.axes), figure.legends[0].get_window_extent()]:
        assert edge.x0 <= box.x0 < box.x1 <= edge.x1 + 1
    assert all(ax.get_window_extent().width > 0.15 * edge.width / columns for ax in figure.axes)


def test_positions_are_those_in_which_participants_spoke(results: Results) -> None:
    data = plots.before_after_data(results)
    spoken = results.turns[results.turns["kind"] == "response"].sort_values("turn")
    for run_id, part in data.frame.groupby("run_id"):
        order = part.sort_values("position")["agent"].tolist()
        assert order == spoken.loc[spoken["run_id"] == run_id, "agent"].tolist()


def test_measures_of_texts_and_sycophancy_of_a_store(results: Results) -> None:
    lexical = osim.metrics.lexical_frame(results.runs, results.turns)
    assert lexical["n_texts"].tolist() == [4] * 8
    assert not lexical[["ttr_1", "hdd_5"]].isna().any(axis=None)
    scores = osim.metrics.diversity_component(lexical).scores
    assert scores.groupby(lexical["cell"]).mean().nunique() == 4
    found = osim.metrics.sycophancy(results.runs, results.turns, results.opinions).set_index("cell")
    assert found.loc["interaction.reading=nobody", "n_alone"].tolist() == [4, 4]
    # Whoever speaks first has read nobody.
    assert found.loc["interaction.reading=all", "n_alone"].tolist() == [1, 1]
    assert set(found["n_responses"]) == {4}
