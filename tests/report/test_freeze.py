from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.errors import SpecError
from opinionsim.foundation.documents import validate
from opinionsim.foundation.frozen import Frozen
from opinionsim.report import freeze, history, preregistration
from opinionsim.specification import load_experiment, recorded_manifest
from opinionsim.store import Results
from tests.support.examples import brought
from tests.support.running import SMALL, changed
from tests.support.shipped import shipped

STUDY = changed(SMALL, sweep={"cognition.confirmation_bias": ["none", "strong"]})
CODED = {"measurement": {"classifier": "lexicon"}}
#: Weights without a commit, and people without a text for them.
NO_FREEZE = {"real_model", "real_small", "room_quickstart", "people"}
EXPERIMENTS = [
    pytest.param(file, marks=[brought("endpoint", "classic")] if "classic: " in file.read_text() else [])
    for file in shipped()
    if file.stem not in NO_FREEZE
]


def _frozen(spec: Any) -> dict[str, Any]:
    """What `freeze` writes, as it is read back."""
    found: dict[str, Any] = json.loads(json.dumps(freeze(load_experiment(spec))))
    return found


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_what_was_frozen_is_read_back_without_a_difference(file: Path) -> None:
    frozen = _frozen(file)
    again = load_experiment(frozen)
    kept = recorded_manifest(again)["frozen"]
    assert (kept["hash"], kept["changed"]) == (frozen["frozen"]["hash"], {})
    assert len(again.runs) == frozen["frozen"]["runs"]


def test_the_seed_is_drawn_from_what_is_frozen_and_from_nothing_else() -> None:
    first = _frozen(STUDY)
    for same in ({"seed": 77}, {"description": "told better"}, {"execution": {"max_concurrency": 3}}):
        assert _frozen(changed(STUDY, **same))["spec"]["seed"] == first["spec"]["seed"]
    for other in ({"replicates": 3}, {"measurement": {"classifier": "lexicon", "texts": ["post"]}}):
        assert _frozen(changed(STUDY, **other))["spec"]["seed"] != first["spec"]["seed"]
    pilot, runs = load_experiment(changed(STUDY, seed=first["spec"]["seed"] - 1)), load_experiment(first).runs
    assert not {run.run_id for run in runs} & {run.run_id for run in pilot.runs}


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"replicates": 9}, {"design"}),
        ({"measurement": {"classifier": "lexicon", "texts": ["post"]}}, {"analysis"}),
        ({"prompts": {"variant": "second"}}, {"prompts"}),
        ({"model": {"name": "scripted", "temperature": 0.1}}, {"models"}),
    ],
)
def test_a_change_alters_the_hash_of_its_own_part(change: dict[str, Any], parts: set[str]) -> None:
    before, after = (_frozen(spec)["frozen"]["parts"] for spec in (STUDY, changed(STUDY, **change)))
    assert {part for part in before if before[part] != after[part]} == parts


def test_an_edited_file_is_refused_by_what_was_edited() -> None:
    frozen = _frozen(STUDY)
    for place, key, value, named in (
        (("spec",), "replicates", 7, "replicates"),
        (("frozen", "spec"), "replicates", 7, "design"),
        (("contents", "prompts", "default"), "review.j2", "Be brief.", "contents.prompts/default"),
        (("frozen",), "hash", "0" * 64, "hash"),
    ):
        edited = copy.deepcopy(frozen)
        node = edited
        for step in place:
            node = node[step]
        node[key] = value
        with pytest.raises(SpecError, match="edited since") as caught:
            load_experiment(edited)
        assert named in str(caught.value)
        assert "\n" not in str(caught.value)


def test_another_seed_is_refused_and_other_changes_are_not() -> None:
    frozen = _frozen(STUDY)
    with pytest.raises(SpecError, match="seed: got 3, but frozen runs"):
        load_experiment(frozen, {"seed": 3})
    kept = recorded_manifest(load_experiment(frozen, {"replicates": 2}))
    assert kept["frozen"]["changed"] == {"replicates": [1, 2]}
    assert load_experiment(kept).spec.replicates == 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sweep": {"seed": [1, 2]}}, "seed cannot be frozen"),
        ({"measurement": {"classifier": "flan-t5"}}, "flan-t5: these weights may change"),
    ],
)
def test_what_cannot_be_fixed_is_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError, match=told):
        freeze(load_experiment(changed(SMALL, **change)))


def test_a_frozen_file_cannot_be_frozen_again() -> None:
    with pytest.raises(SpecError, match="freeze its specification instead"):
        freeze(load_experiment(_frozen(STUDY)))


def test_the_form_is_filled_and_says_what_only_its_author_can() -> None:
    contrast = {"contrasts": {"strength": {"of": {"cognition.confirmation_bias": "strong"}}}}
    osim.run(load_experiment(STUDY), "pilot.sqlite")
    frozen = _frozen(changed(STUDY, analysis=contrast, replicates=4))
    form = preregistration(frozen, "pilot.sqlite")
    assert "`strength`" in form
    assert "8 runs, 4 in every cell" in form
    assert "`opinionsim plan SPEC --half-width W --pilot STORE`" in form
    assert "chuang2024: 10 personas" in form
    assert "2 runs begun" in form
    assert frozen["frozen"]["hash"] in form
    assert str(frozen["spec"]["seed"]) in form
    assert form.count("**AUTHOR:**") >= 5
    assert "| Conditions | cognition.confirmation_bias: none, strong |" in form
    assert '{"' not in form
    bare = preregistration(_frozen(STUDY), "sqlite:///none.sqlite")
    assert "declares no contrast" in bare
    assert "none.sqlite contains no run" in bare
    assert not Path("none.sqlite").exists()


def test_history_tells_pilot_confirmatory_runs_and_every_deviation() -> None:
    url, frozen = "study.sqlite", _frozen(STUDY)
    osim.run(load_experiment(STUDY), url)
    unfrozen = history(osim.load(url))
    assert (unfrozen.frozen, unfrozen.deviations) == (None, ())
    assert unfrozen.counts[0].endswith(": unfrozen.")

    experiment = load_experiment(frozen)
    as_frozen = history(osim.run(experiment, url, only=experiment.pilot))
    assert as_frozen.frozen is not None
    assert (as_frozen.frozen["hash"], as_frozen.deviations) == (frozen["frozen"]["hash"], ())
    assert "1 pilot design (1), 1 confirmatory design (2)" in as_frozen.counts[0]
    assert "does not cover" in as_frozen.counts[-1]
    assert [label.split(" (")[0] for label in as_frozen.reach] == ["One model family", "One wording of the prompts"]

    more = history(osim.run(load_experiment(frozen, {"replicates": 2}), url))
    assert "replicates: 2 instead of 1, which was frozen." in more.deviations
    assert "The store has 4 runs, but the frozen design has 2." in more.deviations

    worded = history(osim.run(load_experiment(frozen, {"prompts": {"variant": "second"}}), url))
    assert any(each.startswith("2 runs had the wording") for each in worded.deviations)
    assert any(each.startswith("prompts: ") for each in worded.deviations)
    assert "1 pilot design (1), 2 confirmatory designs (2, 3)" in worded.counts[0]
    assert "2 wordings of prompts" in worded.counts[2]
    first = history(osim.load(url, design=2))
    assert any(each.startswith("Design 3 was run from the same freeze") for each in first.deviations)


def test_runs_that_are_missing_and_instruments_added_are_deviations() -> None:
    experiment = load_experiment(_frozen(changed(STUDY, replicates=2)))
    partly = osim.run(experiment, "part.sqlite", only=experiment.pilot)
    assert "2 of the 4 runs in the frozen design are complete (2 pending)." in history(partly).deviations
    added = {"measurement.instruments": [{"variable": "tone", "classifier": "lexicon"}]}
    again = history(osim.run(load_experiment(partly.manifest, added), "part.sqlite"))
    (told,) = [each for each in again.deviations if each.startswith("measurement.instruments: ")]
    assert '"variable":"tone"' in told
    assert told.endswith("instead of nothing, which was frozen.")


def test_another_version_of_the_package_is_a_deviation(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = load_experiment(_frozen(STUDY))
    frozen_with = osim.__version__
    monkeypatch.setattr(osim, "__version__", "9.9")
    told = history(osim.run(experiment, "later.sqlite")).deviations
    assert f"opinionsim: version 9.9 instead of {frozen_with}, which was frozen." in told


def test_variants_that_were_run_widen_what_a_claim_rests_on() -> None:
    varied = changed(
        STUDY,
        analysis={"contrasts": {"strength": {"of": {"cognition.confirmation_bias": "strong"}}}},
        robustness=[{"label": "other words", "change": {"prompts": {"variant": "second"}}}],
    )
    experiment = load_experiment(_frozen(varied))
    osim.run(experiment.variants["other words"], "varied.sqlite")
    told = history(osim.run(experiment, "varied.sqlite"))
    assert [label.split(" (")[0] for label in told.reach] == ["One model family"]
    assert told.deviations == ()
    assert "2 confirmatory designs" in told.counts[0]


def test_a_freeze_cannot_be_dated_otherwise() -> None:
    frozen = _frozen(STUDY)
    dated = {**frozen, "frozen": {**frozen["frozen"], "at": "2020-01-01T00:00:00+00:00"}}
    with pytest.raises(SpecError, match="edited since, in at; use the file as it was written"):
        load_experiment(dated)


def test_runs_made_beside_the_freeze_are_deviations(monkeypatch: pytest.MonkeyPatch) -> None:
    url, frozen = "beside.sqlite", _frozen(STUDY)
    unmarked = {name: value for name, value in frozen.items() if name != "frozen"}
    osim.run(load_experiment(unmarked, {"interaction.steps": 4}), url)
    told = history(osim.run(load_experiment(frozen), url)).deviations
    assert told == ("Design 1 has the seed of the freeze but was run from a file that is not frozen.",)

    results = osim.load(url)
    entry = validate(Frozen, frozen["frozen"])
    later = entry.model_copy(update={"at": "2999-01-01T00:00:00+00:00"}).model_dump(mode="json")
    row = replace(results.design_row, manifest={**results.manifest, "frozen": later})
    assert "2 runs began before the freeze." in history(Results(url, row)).deviations


def test_a_copy_without_the_mark_does_not_undo_the_freeze() -> None:
    url, frozen = "copied.sqlite", _frozen(STUDY)
    unmarked = {name: value for name, value in frozen.items() if name != "frozen"}
    osim.run(load_experiment(frozen), url)
    same = history(osim.run(load_experiment(unmarked), url))
    assert same.frozen is not None
    assert (same.frozen["hash"], same.deviations) == (frozen["frozen"]["hash"], ())
    more = history(osim.run(load_experiment(unmarked, {"replicates": 2}), url))
    assert "replicates: 2 instead of 1, which was frozen." in more.deviations
