"""Cells, planned runs, overrides, and what gives a run its identity."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, strategies as st

from opinionsim.errors import SpecError
from opinionsim.foundation.data import data_folder
from opinionsim.planning import plan, preview
from opinionsim.specification import Experiment, ExperimentSpec, load_experiment
from tests.support.examples import examples
from tests.support.running import changed

BASE: dict[str, Any] = {
    "name": "small",
    "seed": 7,
    "topic": {"name": "flat-earth"},
    "interaction": {"kind": "dyadic", "steps": 5},
}
PERSONAS = {
    "name": "pair",
    "personas": [{"name": "Zoe", "opinion": 1, "attributes": {"work": "baker"}}, {"name": "Abe", "opinion": -1}],
}


def _changed(spec: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    return changed(spec, **{path.replace(".", "__"): value})


def _write(folder: Path, value: Any, name: str = "spec.yaml") -> Path:
    path = folder / name
    path.write_text(value if isinstance(value, str) else yaml.safe_dump(value, sort_keys=False), encoding="utf-8")
    return path


def _id(spec: dict[str, Any] | Path, overrides: Any = ()) -> str:
    (run,) = load_experiment(spec, overrides).runs
    return run.run_id


# --- cells ---------------------------------------------------------------------------------------------


def test_without_a_sweep_there_is_one_cell() -> None:
    experiment = load_experiment({**BASE, "replicates": 3})
    (cell,) = experiment.cells
    assert (cell.label, cell.axes) == ("small", {})
    assert [run.replicate for run in experiment.runs] == [0, 1, 2]
    assert len({run.run_id for run in experiment.runs}) == 3
    assert experiment.spec == cell.spec


def test_a_grid_crosses_its_axes_in_the_order_written() -> None:
    sweep = {"topic.framing": ["falsehood", "truth"], "cognition.confirmation_bias": ["none", "weak", "strong"]}
    experiment = load_experiment({**BASE, "replicates": 2, "sweep": sweep})
    assert [tuple(cell.axes.values()) for cell in experiment.cells] == [
        (framing, bias) for framing in ("falsehood", "truth") for bias in ("none", "weak", "strong")
    ]
    assert experiment.cells[1].label == "topic.framing=falsehood, cognition.confirmation_bias=weak"
    assert experiment.cells[5].spec.topic.framing == "truth"
    assert experiment.cells[5].spec.cognition.confirmation_bias == "strong"
    assert not experiment.cells[5].spec.sweep
    assert len({run.run_id for run in experiment.runs}) == 12


def test_a_sweep_may_supply_what_the_base_lacks() -> None:
    spec = {"name": "small", "interaction": BASE["interaction"], "sweep": {"topic.name": ["flat-earth", "t-rex"]}}
    assert [cell.spec.topic.name for cell in load_experiment(spec).cells] == ["flat-earth", "t-rex"]


def test_a_mapping_replaces_its_node_whole_and_may_carry_a_label() -> None:
    spec = {
        **BASE,
        "interaction": {"kind": "dyadic", "steps": 5, "network": "ring"},
        "sweep": {"interaction": [{"kind": "dyadic", "steps": 5}, {"label": "alone", "kind": "independent"}]},
    }
    dyadic, alone = load_experiment(spec).cells
    assert [dyadic.axes, alone.axes] == [{"interaction": "dyadic"}, {"interaction": "alone"}]
    assert dyadic.spec.interaction.network.kind == "complete"
    assert alone.spec.interaction.reports == 10


def test_values_of_one_kind_are_told_apart() -> None:
    values = [
        {"kind": "dyadic", "steps": 1},
        {"kind": "dyadic", "steps": 2},
        {"label": "long", "kind": "dyadic", "steps": 9},
    ]
    labels = [cell.axes["interaction"] for cell in load_experiment({**BASE, "sweep": {"interaction": values}}).cells]
    assert labels == ['{"kind":"dyadic","steps":1}', '{"kind":"dyadic","steps":2}', "long"]
    values[0]["label"] = "long"
    with pytest.raises(SpecError, match=r"sweep\.interaction\[2\]: repeats the value or label 'long'"):
        load_experiment({**BASE, "sweep": {"interaction": values}})


def test_an_axis_inside_the_node_of_another() -> None:
    sweep = {
        "interaction.steps": [1, 2],
        "interaction": [{"kind": "dyadic", "steps": 0}, {"kind": "broadcast", "steps": 0}],
    }
    cells = load_experiment({**BASE, "sweep": sweep}).cells
    found = {(cell.spec.interaction.kind, cell.spec.interaction.steps_for(10)) for cell in cells}
    assert found == {("dyadic", 1), ("dyadic", 2), ("broadcast", 1), ("broadcast", 2)}


def test_a_list_of_grids_is_their_union() -> None:
    sweep = [
        {"topic.framing": ["falsehood", "truth"]},
        {"topic.framing": ["truth"], "cognition.memory": ["cumulative", "reflective"]},
    ]
    cells = load_experiment({**BASE, "sweep": sweep}).cells
    assert [(cell.spec.topic.framing, cell.spec.cognition.memory.name) for cell in cells] == [
        ("falsehood", "cumulative"),
        ("truth", "cumulative"),
        ("truth", "reflective"),
    ]


def test_one_grid_must_not_hold_one_run_twice() -> None:
    values = [{"kind": "dyadic", "steps": 20}, {"kind": "dyadic", "exposures": 2}]
    with pytest.raises(SpecError, match="describe the same runs"):
        load_experiment({**BASE, "sweep": {"interaction": values}})


def test_null_is_a_value_of_an_axis() -> None:
    cells = load_experiment({**BASE, "sweep": {"cognition.token_budget": [None, 500]}}).cells
    assert [cell.label for cell in cells] == ["cognition.token_budget=null", "cognition.token_budget=500"]


def test_errors_in_cells_are_reported_together_and_once(tmp_path: Path) -> None:
    text = """\
name: small
topic: {name: flat-earth}
interaction: {kind: dyadic, steps: 5, networks: ring}
sweep:
  population.size: [4, 0, 1]
  cognition.world:
    - open
    - flat
"""
    path = _write(tmp_path, text)
    with pytest.raises(SpecError) as caught:
        load_experiment(path)
    found = sorted(str(caught.value).replace(str(path), "FILE").splitlines())
    assert found == [
        "FILE:3: interaction.networks: unknown field (did you mean network?); valid: kind, steps, exposures, network",
        "FILE:5: sweep population.size=0: population.size: must be at least 1; got 0",
        "FILE:8: sweep cognition.world=flat: cognition.world: unknown value 'flat'; valid: closed, open",
    ]


def test_many_errors_are_cut_short() -> None:
    with pytest.raises(SpecError) as caught:
        load_experiment({**BASE, "sweep": {"population.size": [-i for i in range(1, 500)]}})
    lines = str(caught.value).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "and more"


def test_more_agents_than_models_can_play_are_refused_at_once() -> None:
    many = {**BASE, "population": {"size": 1_000_000}}
    with pytest.raises(SpecError, match=r"population\.size: must be at most 100,000 when language models play"):
        load_experiment(many)
    assert load_experiment({**many, "population": {"size": 100_000}}).cells


def test_too_many_runs_are_refused() -> None:
    with pytest.raises(SpecError, match="2 cells make 2000000 runs; at most 1000000"):
        load_experiment({**BASE, "replicates": 1_000_000, "sweep": {"seed": [1, 2]}})


# --- files, names and manifests ----------------------------------------------------------------------------


def test_paths_start_from_the_folder_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = tmp_path / "study"
    study.mkdir()
    _write(study, PERSONAS, "people.yaml")
    path = _write(study, {**BASE, "population": {"size": 2, "personas": "people.yaml"}})
    monkeypatch.chdir(tmp_path)
    experiment = load_experiment("study/spec.yaml")
    assert experiment.resources.personas(experiment.spec.population).name == "pair"
    assert experiment.source.path == Path("study/spec.yaml")
    assert _id(path) == experiment.runs[0].run_id


def test_an_experiment_of_the_package_goes_by_its_name() -> None:
    folder = data_folder("experiments")
    inner = load_experiment(folder / "chuang2024" / "figure4.yaml").spec
    assert load_experiment("quickstart").spec == load_experiment(folder / "quickstart.yaml").spec != inner
    assert load_experiment("chuang2024/figure4").spec == load_experiment("chuang2024/figure4.yaml").spec == inner
    with pytest.raises(
        SpecError,
        match=r"third: no such file or experiment; .*: bakker2022/.*, chuang2024/.*, quickstart,",
    ):
        load_experiment("third")


def test_folders_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="is a folder"):
        load_experiment(tmp_path)
    with pytest.raises(SpecError, match="no such file"):
        load_experiment(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match="is empty"):
        load_experiment(_write(tmp_path, ""))


def test_a_manifest_needs_no_other_file(tmp_path: Path) -> None:
    study, elsewhere = tmp_path / "study", tmp_path / "elsewhere"
    study.mkdir()
    elsewhere.mkdir()
    _write(study, PERSONAS, "people.yaml")
    _write(study, "Read this.\n", "posts.txt")
    spec = {
        **BASE,
        "population": {"size": 2, "personas": "people.yaml"},
        "interaction": {"kind": "external", "messages": "posts.txt", "steps": 3},
        "sweep": {"topic.framing": ["falsehood", "truth"]},
    }
    first = load_experiment(_write(study, spec), ["replicates=2"])
    manifest = {
        "opinionsim_manifest": 1,
        "spec": first.source.value,
        "contents": first.resources.contents(),
        "environment": {"python": "3.11"},
    }
    path = elsewhere / "manifest.json"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    again = load_experiment(path)
    assert [run.run_id for run in again.runs] == [run.run_id for run in first.runs]
    assert again.resources.contents() == first.resources.contents()


def test_malformed_manifests(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="opinionsim_manifest: unknown value 2"):
        load_experiment({"opinionsim_manifest": 2, "spec": BASE})
    with pytest.raises(SpecError, match="spec: is required but missing"):
        load_experiment({"opinionsim_manifest": 1})
    text = "opinionsim_manifest: 1\nspec:\n  name: small\n  topic: {name: flat-earth}\n  seed: x\n"
    with pytest.raises(SpecError, match=r"manifest\.yaml:5: seed: must be a whole number"):
        load_experiment(_write(tmp_path, text, "manifest.yaml"))


# --- overrides ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "overrides",
    [
        ["seed=3", "population.size=4", "interaction.network={kind: watts-strogatz, k: 2, p: 0.5}"],
        {"seed": 3, "population.size": 4, "interaction.network": {"kind": "watts-strogatz", "k": 2, "p": 0.5}},
    ],
)
def test_overrides_replace_values(overrides: Any) -> None:
    spec = load_experiment(BASE, overrides).spec
    assert (spec.seed, spec.population.size, spec.interaction.network.kind) == (3, 4, "watts-strogatz")
    assert BASE["seed"] == 7


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["population.siz=3"], "--set population.siz: unknown field (did you mean size?); valid: "),
        (["populatio.size=3"], "populatio: unknown field (did you mean population?)"),
        ({"seed": -1}, "override seed: must be at least 0; got -1"),
        (["seed"], "--set 'seed': must have the form a.b=value"),
        (["=3"], "--set '=3': must have the form a.b=value"),
        (["seed=[1"], "--set seed:1: not valid YAML"),
        (["seed.x=1"], "--set seed.x: there is no field 'x' in 7"),
        (["a..b=1"], "--set a..b: 'a..b' is not a dotted path"),
        (
            ["topic.framing=truth"],
            "topic.framing is set by the sweep axis topic.framing; set sweep.topic.framing=[...]",
        ),
        (
            ["interaction.steps=3"],
            "interaction.steps is set by the sweep axis interaction; set sweep.interaction=[...]",
        ),
        (["sweep.topic.framing=truth"], "--set sweep.topic.framing: must be a list"),
        ("seed=3", "overrides must be a mapping or a list of strings"),
    ],
)
def test_bad_overrides(overrides: Any, message: str) -> None:
    sweep = {"topic.framing": ["falsehood", "truth"], "interaction": [{"kind": "independent"}]}
    with pytest.raises(SpecError) as caught:
        load_experiment({**BASE, "sweep": sweep}, overrides)
    assert message in str(caught.value)


def test_overrides_of_the_sweep() -> None:
    swept = {**BASE, "sweep": {"topic.framing": ["falsehood", "truth"]}}
    assert [cell.label for cell in load_experiment(swept, ["sweep.topic.framing=[truth]"]).cells] == [
        "topic.framing=truth"
    ]
    assert len(load_experiment(swept, ["sweep.topic.name=[flat-earth, t-rex]"]).cells) == 4
    assert len(load_experiment(swept, ["topic.framing=truth", "sweep={}"]).cells) == 1
    union = {**BASE, "sweep": [{"seed": [1]}, {"seed": [1], "topic.framing": ["truth"]}]}
    assert len(load_experiment(union, ["sweep.seed=[1, 2]"]).cells) == 4
    with pytest.raises(SpecError, match=r"no grid of the sweep has the axis topic\.name; valid: seed, topic\.framing"):
        load_experiment(union, ["sweep.topic.name=[t-rex]"])


def test_a_count_given_by_override_replaces_the_one_in_the_file(tmp_path: Path) -> None:
    path = _write(tmp_path, {**BASE, "population": {"size": 3, "initial_opinions": {"counts": {-2: 1, 2: 1}}}})
    spec = load_experiment(path, ["population.initial_opinions.counts.2=2"]).spec
    assert spec.population.initial_opinions.counts == {-2: 1, 2: 2}


# --- identity ------------------------------------------------------------------------------------------------


def _defaults_of(model: ExperimentSpec) -> dict[str, Any]:
    """A specification with every default spelled out."""
    spelled = model.model_dump(mode="json", exclude={"sweep"})
    spelled["interaction"] = {key: value for key, value in spelled["interaction"].items() if value is not None}
    return spelled


_SPECS = st.fixed_dictionaries(
    {
        "name": st.just("small"),
        "topic": st.fixed_dictionaries(
            {"name": st.sampled_from(["flat-earth", "t-rex"])},
            optional={"framing": st.sampled_from(["falsehood", "truth"]), "masked": st.booleans()},
        ),
        "interaction": st.fixed_dictionaries(
            {"kind": st.sampled_from(["dyadic", "broadcast", "similarity"]), "steps": st.integers(0, 50)},
            optional={"network": st.sampled_from(["complete", "ring", {"kind": "barabasi-albert", "m": 1}])},
        ),
    },
    optional={
        "seed": st.integers(0, 5),
        "population": st.fixed_dictionaries(
            {}, optional={"size": st.integers(2, 12), "shown": st.sampled_from(["full", "none"])}
        ),
        "cognition": st.fixed_dictionaries(
            {}, optional={"memory": st.sampled_from(["cumulative", "reflective"]), "token_budget": st.just(100)}
        ),
        "model": st.fixed_dictionaries(
            {}, optional={"temperature": st.sampled_from([0, 0.7, 1]), "options": st.just({"pull": 1})}
        ),
        "measurement": st.fixed_dictionaries({}, optional={"probe": st.just({"before": 1})}),
    },
)


def _reordered(value: Any, rnd: Any) -> Any:
    if not isinstance(value, dict):
        return value
    keys = list(value)
    rnd.shuffle(keys)
    return {key: _reordered(value[key], rnd) for key in keys}


def _as_floats(spec: dict[str, Any]) -> dict[str, Any]:
    """The same numbers in another spelling, where a field takes fractions."""
    spelled = copy.deepcopy(spec)
    model = spelled.get("model", {})
    if "temperature" in model:
        model["temperature"] = float(model["temperature"])
    if "options" in model:
        model["options"] = {key: float(value) for key, value in model["options"].items()}
    return spelled


def _flat(spec: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in spec.items():
        if isinstance(value, dict) and key in ("topic", "population", "cognition", "model"):
            flat.update(_flat(value, f"{key}."))
        else:
            flat[prefix + key] = value
    return flat


@examples(40)
@given(spec=_SPECS, rnd=st.randoms(use_true_random=False))
def test_identity_does_not_depend_on_the_spelling(
    tmp_path_factory: pytest.TempPathFactory, spec: dict[str, Any], rnd: Any
) -> None:
    experiment = load_experiment(spec)
    expected = experiment.runs[0].run_id
    assert _id(_reordered(spec, rnd)) == expected
    assert _id(_defaults_of(experiment.spec)) == expected
    assert _id(_as_floats(spec)) == expected
    assert _id(_write(tmp_path_factory.mktemp("spec"), spec)) == expected
    minimal = {"name": "small", "interaction": spec["interaction"]}
    assert _id(minimal, _flat({key: value for key, value in spec.items() if key not in minimal})) == expected
    assert _id(minimal, [f"{path}={json.dumps(value)}" for path, value in _flat(spec).items()]) == expected
    size = experiment.spec.population.size
    if spec["interaction"]["steps"]:
        by_exposure = {key: value for key, value in spec["interaction"].items() if key != "steps"}
        by_exposure["exposures"] = spec["interaction"]["steps"] / size
        assert _id({**spec, "interaction": by_exposure}) == expected


#: Each would reach a prompt, a draw or a model.
_MATTERS: list[tuple[str, Any]] = [
    ("seed", 8),
    ("population.size", 9),
    ("population.personas", PERSONAS),
    ("population.initial_opinions", "all-positive"),
    ("population.initial_opinions", "uniform"),
    ("population.initial_opinions", {"counts": {0: 10}}),
    ("population.assignment", "random"),
    ("population.shown", "name"),
    ("topic.name", "t-rex"),
    ("topic.framing", "truth"),
    ("topic.masked", False),
    ("cognition.memory", "reflective"),
    ("cognition.token_budget", 100),
    ("cognition.confirmation_bias", "weak"),
    ("cognition.world", "open"),
    ("cognition.belief_tense", "past"),
    ("cognition.post_words", None),
    ("interaction.kind", "broadcast"),
    ("interaction.steps", 6),
    ("interaction.network", "ring"),
    ("interaction.network", {"edges": [[0, 1]]}),
    ("interaction.network", {"edges": [[0, 2]]}),
    ("interaction", {"kind": "independent"}),
    ("interaction", {"kind": "independent", "reports": 5}),
    ("interaction", {"kind": "no-role-play"}),
    ("interaction", {"kind": "remembered", "steps": 5}),
    ("interaction", {"kind": "similarity", "steps": 5}),
    ("interaction", {"kind": "similarity", "steps": 5, "strength": 2}),
    ("interaction", {"kind": "similarity", "steps": 5, "form": "power"}),
    ("interaction", {"kind": "bounded-confidence", "steps": 5, "confidence": 1}),
    ("interaction", {"kind": "bounded-confidence", "steps": 5, "confidence": 1, "choose": "near"}),
    ("interaction", {"kind": "bounded-confidence", "steps": 5, "confidence": 1, "strict": True}),
    ("interaction", {"kind": "rewiring", "steps": 5, "tolerance": 1, "network": "ring"}),
    ("interaction", {"kind": "rewiring", "steps": 5, "tolerance": 1, "network": "ring", "target": "similar"}),
    ("interaction", {"kind": "feed", "steps": 5}),
    ("interaction", {"kind": "feed", "steps": 5, "posts": 2}),
    ("interaction", {"kind": "feed", "steps": 5, "ranking": "random"}),
    ("interaction", {"kind": "external", "steps": 5, "messages": ["a"]}),
    ("interaction", {"kind": "external", "steps": 5, "messages": ["b"]}),
    ("interaction", {"kind": "external", "steps": 5, "messages": ["a"], "order": "sequence"}),
    ("model.temperature", 0),
    ("model.max_tokens", 20),
    ("model.options", {"pull": 1}),
    ("measurement.probe", {"before": 1}),
    ("measurement.probe", {"after": 1}),
    ("scale", {"points": [-1, 0, 1]}),
    ("scale", {"labels": ["a", "b", "c", "d", "e"]}),
    ("independent_over", ["topic.name"]),
]

#: None of these can change a reply.
_MATTERS_NOT: list[tuple[str, Any]] = [
    ("name", "other"),
    ("description", "words"),
    ("execution.max_concurrency", 2),
    ("execution.timeout_s", 5),
    ("execution.lookahead", 3),
    ("measurement.classifier", {"name": "flan-t5", "options": {"off_scale_threshold": 0.3}}),
    ("measurement.classifier", "flan-t5"),
    ("measurement.texts", ["post"]),
    ("scale", {"points": [-2, -1, 0, 1, 2]}),
    ("population.initial_opinions", "personas"),
]


def test_identity_depends_on_everything_that_can_reach_a_reply() -> None:
    variants = [BASE, *(_changed(BASE, path, value) for path, value in _MATTERS)]
    assert len({_id(variant) for variant in variants}) == len(variants)


@pytest.mark.parametrize(("path", "value"), _MATTERS_NOT)
def test_identity_depends_on_nothing_else(path: str, value: Any) -> None:
    assert _id(_changed(BASE, path, value)) == _id(BASE)


def test_a_sweep_and_more_replicates_leave_identities_as_they_were() -> None:
    single = _id(BASE)
    widened = load_experiment({**BASE, "replicates": 5, "sweep": {"topic.framing": ["truth", "falsehood"]}})
    assert widened.runs[5].run_id == single
    assert len({run.run_id for run in widened.runs}) == 10


def test_an_adaptive_schedule_makes_the_classifier_part_of_the_run() -> None:
    spec = {**BASE, "interaction": {"kind": "similarity", "steps": 5}}
    assert _id(_changed(spec, "measurement.classifier", "flan-t5")) != _id(spec)


def test_cells_that_differ_in_the_classifier_share_runs() -> None:
    cells = {"measurement.classifier": ["lexicon", "flan-t5"]}
    first, second = load_experiment({**BASE, "sweep": cells}).runs
    assert first.run_id == second.run_id
    assert first.cell.instrument_id != second.cell.instrument_id


def test_instrument_identity() -> None:
    def measured(path: str, value: Any) -> str:
        return load_experiment(_changed(BASE, path, value)).cells[0].instrument_id

    plain = load_experiment(BASE).cells[0].instrument_id
    assert measured("measurement.classifier", {"name": "lexicon"}) == plain
    assert measured("measurement.texts", ["post"]) == plain
    assert measured("topic.name", "t-rex") == plain
    coder = measured("measurement.classifier", "flan-t5")
    assert coder != plain
    assert measured("measurement.classifier", {"name": "flan-t5", "options": {"off_scale_threshold": 0.3}}) != coder
    assert measured("scale", {"points": [-1, 0, 1]}) != plain


def test_files_enter_by_content_and_not_by_name(tmp_path: Path) -> None:
    def identity(spec: dict[str, Any]) -> str:
        return _id(_write(tmp_path, spec))

    people = {**BASE, "population": {"size": 2, "personas": "people.yaml"}}
    _write(tmp_path, PERSONAS, "people.yaml")
    _write(tmp_path, {**PERSONAS, "name": "renamed", "card": "A note."}, "others.yaml")
    expected = identity(people)
    assert identity(_changed(people, "population.personas", "others.yaml")) == expected
    assert identity(_changed(people, "population.personas", PERSONAS)) == expected
    edited = copy.deepcopy(PERSONAS)
    edited["personas"][0]["attributes"]["work"] = "cook"
    _write(tmp_path, edited, "people.yaml")
    assert identity(people) != expected

    (tmp_path / "a.edges").write_text("0 1\n1 2\n")
    (tmp_path / "b.edges").write_text("2 1\n0 1\n")
    by_file = [
        identity(_changed(BASE, "interaction.network", {"kind": "file", "path": name}))
        for name in ("a.edges", "b.edges")
    ]
    assert by_file[0] == by_file[1] == identity(_changed(BASE, "interaction.network", {"edges": [[1, 0], [1, 2]]}))
    for other in ({"directed": True}, {"weights": [1, 2]}, {"weights": [2, 1]}):
        spec = _changed(BASE, "interaction.network", {"edges": [[1, 0], [1, 2]], **other})
        assert identity(spec) == identity(spec) != by_file[0]
    (tmp_path / "c.edges").write_text("source,target,weight\n0,1,1\n1,2,2\n")
    weighted = identity(_changed(BASE, "interaction.network", {"kind": "file", "path": "c.edges"}))
    assert weighted == identity(_changed(BASE, "interaction.network", {"edges": [[1, 0], [1, 2]], "weights": [1, 2]}))


def test_an_edited_prompt_pack_keeps_the_identity(tmp_path: Path) -> None:
    experiment = load_experiment(BASE)
    pack = tmp_path / "mine"
    pack.mkdir()
    for name, text in experiment.resources.pack("default").contents.items():
        (pack / name).write_text(text, encoding="utf-8")
    path = _write(tmp_path, {**BASE, "prompts": "mine"})
    before = _id(path)
    system = pack / "system.j2"
    system.write_text(system.read_text(encoding="utf-8") + "\nOne more line.\n", encoding="utf-8")
    assert _id(path) == before
    assert before != _id(BASE)


# --- shared draws ------------------------------------------------------------------------------------------------


def _blocks(experiment: Experiment) -> list[str]:
    return [run.block for run in experiment.runs]


def test_cells_that_differ_in_treatment_share_blocks() -> None:
    sweep = {"topic.framing": ["falsehood", "truth"], "cognition.confirmation_bias": ["none", "strong"]}
    experiment = load_experiment({**BASE, "replicates": 2, "sweep": sweep})
    assert _blocks(experiment) == ["seed=7/replicate=0", "seed=7/replicate=1"] * 4
    assert {run.cell.stream_key for run in experiment.runs} == {()}


def test_independent_axes_have_draws_and_blocks_of_their_own() -> None:
    spec = {
        **BASE,
        "sweep": {"topic.name": ["flat-earth", "t-rex"], "topic.framing": ["falsehood", "truth"]},
        "independent_over": ["topic.name"],
    }
    experiment = load_experiment(spec)
    assert [run.cell.stream_key for run in experiment.runs] == [
        ("flat-earth",),
        ("flat-earth",),
        ("t-rex",),
        ("t-rex",),
    ]
    assert _blocks(experiment)[0] == _blocks(experiment)[1] == "seed=7/replicate=0/topic.name=flat-earth"
    assert _blocks(experiment)[2] != _blocks(experiment)[0]
    alone = load_experiment({**BASE, "independent_over": ["topic.name"]})
    assert alone.runs[0].run_id == experiment.runs[0].run_id


def test_a_separating_node_enters_by_content(tmp_path: Path) -> None:
    _write(tmp_path, PERSONAS, "people.yaml")
    spec = {**BASE, "population": {"size": 2, "personas": PERSONAS}, "independent_over": ["population.personas"]}
    by_file = load_experiment(_write(tmp_path, _changed(spec, "population.personas", "people.yaml")))
    written_out = load_experiment(spec)
    assert by_file.runs[0].cell.stream_key == written_out.runs[0].cell.stream_key
    assert by_file.runs[0].run_id == written_out.runs[0].run_id


def test_paths_of_overrides_start_from_the_current_folder(tmp_path: Path) -> None:
    folder = tmp_path / "deep"
    folder.mkdir()
    spec = _write(folder, {**BASE, "population": {"size": 2}})
    people = _write(tmp_path, PERSONAS, "people.yaml")
    _write(tmp_path, {"topics": [{"name": "tea", "claims": {"falsehood": "tea is a stone"}}]}, "tea.yaml")
    for overrides in (
        ["population.personas=people.yaml", "topic={name: tea, file: ./tea.yaml}"],
        {"population": {"size": 2, "personas": "people.yaml"}, "topic.file": "tea.yaml", "topic.name": "tea"},
        ["sweep.population.personas=[people.yaml]", "topic.file=tea.yaml", "topic.name=tea"],
        ["sweep={population.personas: [people.yaml]}", "topic.file=tea.yaml", "topic.name=tea"],
    ):
        experiment = load_experiment(spec, overrides)
        assert experiment.spec.population.personas == str(people)
        assert experiment.resources.topic(experiment.spec.topic).claims == {"falsehood": "tea is a stone"}
    assert load_experiment(spec, ["population.personas=chuang2024"]).spec.population.personas == "chuang2024"
    found = load_experiment(spec, ["ethics.consent=consent.yaml", "execution.prices=prices.yaml"]).spec
    named = [str(tmp_path / "consent.yaml"), str(tmp_path / "prices.yaml")]
    assert [found.ethics.consent, found.execution.prices] == named
    with pytest.raises(SpecError, match=r"gone\.yaml: no such file"):
        load_experiment(spec, ["population.personas=gone.yaml"])


def test_numbers_of_numpy_are_numbers() -> None:
    overrides = {"seed": np.int64(3), "model.temperature": np.float32(0.5), "scale.points": np.arange(-1, 2)}
    found = load_experiment(BASE, overrides).spec
    assert (found.seed, found.model.temperature, found.scale.points) == (3, 0.5, (-1, 0, 1))
    with pytest.raises(SpecError, match=r"^override seed: contains something other than plain values"):
        load_experiment(BASE, {"seed": object()})


def test_a_label_is_one_line() -> None:
    labelled = {"kind": "independent", "label": "two\nlines"}
    with pytest.raises(SpecError, match=r"sweep\.interaction\[0\]\.label: must be one line"):
        load_experiment({**BASE, "sweep": {"interaction": [labelled]}})
    sweep = {"model.options.text": ["two\nlines", "one"]}
    labels = [cell.label for cell in load_experiment({**BASE, "sweep": sweep}).cells]
    assert labels == ['model.options.text="two\\nlines"', "model.options.text=one"]


def test_only_an_experiment_can_be_planned() -> None:
    for function in (plan, preview):
        with pytest.raises(SpecError, match=r"experiment must be an Experiment, from .*load_experiment; got a dict"):
            function({})  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="an experiment must be a path, a name or a mapping; got an object of type int"):
        load_experiment(3)  # type: ignore[arg-type]
