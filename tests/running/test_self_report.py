from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import opinionsim as osim
from opinionsim.errors import SpecError
from opinionsim.llm import GivenReplies
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from tests.support.editing import own_pack
from tests.support.running import SMALL, assert_same, carry_out, changed, ended, watched

ASKED = changed(SMALL, measurement={"self_report": {"before": 1, "after": 2}})


def test_agents_place_themselves_on_the_scale() -> None:
    summary, results = carry_out(ASKED, "asked.sqlite")
    assert summary.complete == 1
    opinions = results.opinions
    own = opinions[opinions["kind"] == "self-report"]
    assert own["agent"].tolist() == [0, 1, 2, 3] * 3
    assert own["step"].tolist() == [0] * 4 + [6] * 8
    assert not own["value"].isna().any()
    turns = results.turns[results.turns["kind"] == "self-report"]
    assert [float(text) for text in turns["message"]] == own["value"].tolist()
    assert set(turns["act"]) == {"self-report"}
    assert [each.difference for each in replay(results)] == [""]
    # Before anything happened they hold what they were assigned, up to the model's noise.
    first = own[own["step"] == 0]
    assert (first["value"] - first["assigned_opinion"]).abs().max() <= 1
    # The other instrument codes what it always codes.
    assert set(opinions["kind"]) == {"self-report", "post", "report"}


def test_they_leave_no_trace() -> None:
    plain = load_experiment(SMALL)
    asked = load_experiment(ASKED)
    assert plain.runs[0].run_id != asked.runs[0].run_id
    prompts = {}
    for name, spec in (("plain", SMALL), ("asked", ASKED)):
        results = carry_out(changed(spec, model={"temperature": 0.0}), f"{name}.sqlite")[1]
        turns = results.turns[results.turns["kind"] != "self-report"]
        prompts[name] = turns[["step", "agent", "act", "message"]].reset_index(drop=True)
    pd.testing.assert_frame_equal(prompts["plain"], prompts["asked"])


def test_refusals_are_missing_and_keep_their_rate() -> None:
    model = {"options": {"refusal_rate": 0.5}, "replies": {"refused": {"reask": 0}}}
    spec = changed(ASKED, model=model, population={"size": 20})
    results = carry_out(spec, "refused.sqlite")[1]
    turns = results.turns[results.turns["kind"] == "self-report"]
    numbers = turns["message"].str.fullmatch(r"-?\d")
    own = results.opinions[results.opinions["kind"] == "self-report"]
    assert 10 < numbers.sum() < 50
    np.testing.assert_array_equal(own["value"].isna(), ~numbers)
    seen = own["status"] == "answered"
    np.testing.assert_array_equal(own["off_scale"][seen], (~numbers).astype(float)[seen.to_numpy()])
    # No instrument saw what the caller took for a refusal already.
    assert own["off_scale"][~seen].isna().all()


@pytest.mark.parametrize(
    "reply", ["I'm sorry, but I can't answer that. 2", "As an AI I cannot answer this question. 1"]
)
def test_whoever_declines_and_names_a_point_in_passing_has_none(reply: str) -> None:
    told = GivenReplies(lambda prompt: reply if "closest" in prompt[-1].content else "I strongly believe Theory XYZ.")
    given = {"name": "given", "replies": {"refused": {"reask": 0}}}
    spec = changed(ASKED, model=given, measurement={**ASKED["measurement"], "classifier": "lexicon"})
    results = osim.run(load_experiment(spec), "declined.sqlite", chat_model=told)
    own = results.opinions[results.opinions["kind"] == "self-report"]
    assert set(own["status"]) == {"refused"}
    assert own["value"].isna().all()


def test_every_measurement_of_a_run_has_them() -> None:
    first = carry_out(ASKED, "twice.sqlite")[1]
    model, watch = watched()
    blunt = changed(ASKED, measurement={**ASKED["measurement"], "classifier": "tests.support.running:BluntClassifier"})
    summary, second = carry_out(blunt, "twice.sqlite", model)
    assert (summary.complete, watch.asked) == (1, [])
    columns = ["turn", "value", "off_scale"]
    one, two = (r.opinions[r.opinions["kind"] == "self-report"][columns] for r in (first, second))
    pd.testing.assert_frame_equal(one.reset_index(drop=True), two.reset_index(drop=True))
    assert len(two) == 12


def test_slots_change_nothing_and_adaptive_schedules_take_them_too() -> None:
    spec = changed(
        ASKED,
        interaction={"kind": "similarity", "steps": 6},
        measurement={"self_report": {"before": 1, "after": 1}, "probe": {"before": 1, "after": 1}},
    )
    one = carry_out(spec, "one.sqlite", watched()[0], slots=1)[1]
    many = carry_out(spec, "many.sqlite", watched()[0], slots=64)[1]
    assert_same(many, one)
    assert one.turns["kind"].value_counts()[["probe", "self-report"]].tolist() == [8, 8]


def test_specifications_without_them_keep_their_runs() -> None:
    experiment = load_experiment(SMALL)
    zero = load_experiment(changed(SMALL, measurement={"self_report": {"before": 0, "after": 0}}))
    assert zero.runs[0].run_id == experiment.runs[0].run_id


def test_a_pack_without_the_template_is_told_at_once(tmp_path: Path) -> None:
    folder = own_pack(tmp_path / "mine")
    (folder / "self-report.j2").unlink()
    declared = (folder / "pack.yaml").read_text(encoding="utf-8").splitlines()
    kept = [line for line in declared if not line.startswith("  self-report:")]
    (folder / "pack.yaml").write_text("\n".join(kept), encoding="utf-8")
    assert ended(changed(SMALL, prompts=str(folder)), "plain.sqlite").complete == 1
    with pytest.raises(
        SpecError,
        match=r"prompts: prompt pack .*mine: no task template 'self-report', which act 'self-report' needs",
    ):
        ended(changed(ASKED, prompts=str(folder)), "asked.sqlite")
    assert not Path("asked.sqlite").exists()
