"""The specification: what it accepts, and the one clear error for everything else."""

from __future__ import annotations

from typing import Any

import pytest

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import validate
from opinionsim.networks import build_network
from opinionsim.registry import built_in
from opinionsim.specification import ExperimentSpec, json_schema, load_experiment
from tests.support.running import changed

BASE: dict[str, Any] = {
    "name": "small",
    "topic": {"name": "flat-earth"},
    "interaction": {"kind": "dyadic", "steps": 5},
}


def _with(path: str, value: Any) -> dict[str, Any]:
    return changed(BASE, **{path.replace(".", "__"): value})


def test_defaults_are_those_of_the_study() -> None:
    spec = load_experiment(BASE).cells[0].spec
    assert (spec.seed, spec.replicates, spec.population.size, spec.population.personas) == (0, 1, 10, "chuang2024")
    assert spec.population.initial_opinions == "personas"
    assert (spec.topic.framing, spec.topic.masked) == (None, True)
    assert (spec.cognition.memory.name, spec.cognition.confirmation_bias, spec.world) == (
        "cumulative",
        "none",
        "closed",
    )
    assert (spec.model.name, spec.model.temperature) == ("scripted", 0.7)
    assert (spec.measurement.classifier.name, spec.measurement.texts, spec.stating) == (
        "lexicon",
        None,
        ("post", "report"),
    )
    assert spec.scale.scale().points == (-2, -1, 0, 1, 2)
    assert spec.interaction.kind == "dyadic"
    assert spec.interaction.network.kind == "complete"


def test_a_specification_cannot_be_changed() -> None:
    spec = validate(ExperimentSpec, BASE)
    with pytest.raises(ValueError, match="frozen"):
        spec.seed = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("interaction", "steps"),
    [
        ({"kind": "dyadic", "steps": 0}, 0),
        ({"kind": "broadcast", "exposures": 10}, 60),
        ({"kind": "similarity", "exposures": 0.5, "strength": 2}, 3),
        ({"kind": "similarity", "steps": 2, "form": "power", "floor": 0.1}, 2),
        ({"kind": "bounded-confidence", "exposures": 2, "confidence": 1, "choose": "near", "strict": True}, 12),
        ({"kind": "rewiring", "steps": 9, "tolerance": 0.5, "rewire": 0.2, "target": "friend-of-friend"}, 9),
        ({"kind": "feed", "exposures": 5, "posts": 4, "ranking": "recency"}, 30),
        ({"kind": "independent"}, 10),
        ({"kind": "no-role-play", "reports": 4}, 4),
        ({"kind": "remembered", "steps": 7}, 7),
        ({"kind": "external", "steps": 2, "messages": ["One thing."]}, 2),
    ],
)
def test_length_of_every_interaction(interaction: dict[str, Any], steps: int) -> None:
    assert validate(ExperimentSpec, _with("interaction", interaction)).interaction.steps_for(6) == steps


_PARAMETERS = {
    "watts-strogatz": {"k": 2, "p": 0.1},
    "erdos-renyi": {"p": 0.5},
    "barabasi-albert": {"m": 2},
    "random-regular": {"d": 3},
    "stochastic-block-model": {"sizes": [4, 6], "p": [[0.5, 0.1], [0.1, 0.8]]},
    "configuration": {"exponent": 2.5, "max_degree": 4},
}


@pytest.mark.parametrize("kind", sorted(set(built_in("network")) - {"file"}))
def test_every_network_can_be_specified_and_built(kind: str) -> None:
    network = {"edges": [[0, 1]]} if kind == "edges" else {"kind": kind, **_PARAMETERS.get(kind, {})}
    spec = load_experiment(_with("interaction", {"kind": "dyadic", "steps": 1, "network": network})).spec
    assert spec.interaction.kind == "dyadic"
    assert build_network(spec.interaction.network.model_dump(mode="json"), 10, 1).n == 10


@pytest.mark.parametrize(
    "spelled",
    [
        ({"kind": "ring"}, "ring"),
        ({"kind": "edges", "edges": [[0, 1]]}, {"edges": [[0, 1]]}, {"kind": "edge-list", "edges": [[0, 1]]}),
    ],
)
def test_a_network_may_be_spelled_in_several_ways(spelled: tuple[Any, ...]) -> None:
    first, *others = (validate(ExperimentSpec, _with("interaction.network", network)) for network in spelled)
    assert [first] * len(others) == others
    assert first.interaction.network.kind == spelled[0]["kind"]


def test_a_file_of_messages_or_the_messages() -> None:
    for messages in ("posts.txt", ("One thing.", "Another.")):
        spec = validate(ExperimentSpec, _with("interaction", {"kind": "external", "steps": 1, "messages": messages}))
        assert spec.interaction.kind == "external"
        assert spec.interaction.messages == messages


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        # unknown fields
        ("populaton", {}, "populaton: unknown field (did you mean population?); valid: name, description, seed"),
        ("population.siz", 3, "population.siz: unknown field (did you mean size?); valid: personas, size"),
        ("interaction.reports", 3, "interaction.reports: unknown field; valid: kind, steps, exposures, network"),
        ("topic.nam", "x", "topic.nam: unknown field (did you mean name?); valid: name, file, framing"),
        # wrong types
        ("seed", "1", "seed: must be a whole number; got '1'"),
        ("seed", True, "seed: must be a whole number; got true"),
        ("seed", 1.5, "seed: must be a whole number; got 1.5"),
        ("seed", -1, "seed: must be at least 0; got -1"),
        ("seed", 10**30, "seed: must be at most 9223372036854775807"),
        ("seed", float("nan"), "seed: must be a finite number; got nan"),
        ("replicates", 0, "replicates: must be at least 1; got 0"),
        ("name", "a b", "name: must match the pattern"),
        ("name", None, "name: must be text; got null"),
        ("topic", "flat-earth", "topic: must be a mapping of fields; got 'flat-earth'; valid: name"),
        ("population", [1], "population: must be a mapping of fields; got [1]; valid: personas, size"),
        ("population.personas", 3, "population.personas: must be text or a mapping; got 3"),
        ("topic.masked", "yes", "topic.masked: must be true or false; got 'yes'"),
        ("model.temperature", "hot", "model.temperature: must be a number; got 'hot'"),
        ("model.temperature", float("inf"), "model.temperature: must be a finite number; got inf"),
        ("model.temperature", 3, "model.temperature: must be at most 2"),
        ("model.options", {"x": [float("nan")]}, "model.options.x[0]: must be a finite number; got nan"),
        (
            "measurement.classifier",
            3,
            "measurement.classifier: must be a mapping of fields; got 3; valid: name, options",
        ),
        ("interaction.messages", 3, "interaction.messages: unknown field"),
        ("scale.points", 5, "scale.points: must be a list; got 5"),
        # unknown choices
        ("topic.framing", "lie", "topic.framing: topic 'flat-earth' has no framing 'lie'; valid: falsehood, truth"),
        ("cognition.confirmation_bias", "mild", "unknown value 'mild'; valid: none, weak, strong"),
        ("cognition.memory", "reflexive", "(did you mean reflective?); valid: cumulative, none, reflective"),
        ("cognition.world", "flat", "cognition.world: unknown value 'flat'; valid: closed, open"),
        ("cognition.belief_tense", "future", "cognition.belief_tense: unknown value 'future'; valid: present, past"),
        ("cognition.post_words", 0, "cognition.post_words: must be at least 1; got 0"),
        ("cognition.post_words", "few", "cognition.post_words: must be a whole number; got 'few'"),
        ("population.initial_opinions", "unifrm", "(did you mean uniform?); valid: uniform, skewed-positive"),
        ("population.assignment", "latin", "valid: fixed, random, latin-square"),
        ("population.shown", "some", "valid: full, demographics, name, none"),
        ("interaction.kind", "dyads", "interaction.kind: unknown interaction 'dyads' (did you mean dyadic?); valid: "),
        ("interaction", {}, "interaction: kind is required but missing; valid: dyadic, "),
        ("interaction.network", "ringg", "interaction.network: unknown network 'ringg' (did you mean ring?); valid: "),
        ("measurement.texts", ["probe"], "measurement.texts[0]: unknown value 'probe'; valid: post, report"),
        ("measurement.texts", ["posts"], "measurement.texts[0]: unknown value 'posts' (did you mean post?)"),
        # missing and contradictory
        ("topic", {}, "topic.name: is required but missing"),
        ("interaction", {"kind": "dyadic"}, "interaction: needs exactly one of steps (T, >= 0) and exposures"),
        ("interaction.exposures", 2, "interaction: needs exactly one of steps (T, >= 0) and exposures"),
        ("interaction.network", {"kind": "watts-strogatz", "k": 2}, "interaction.network.p: is required but missing"),
        ("measurement.texts", [], "measurement.texts: must have at least 1 entry"),
        ("measurement.texts", ["post", "post"], "measurement.texts: entries must be distinct; 'post' is given twice"),
        ("scale.points", [1], "scale.points: must have at least 2 entries"),
        ("scale.points", [1, 0], "scale: points must be strictly increasing"),
        ("scale.labels", ["no", "yes"], "scale: labels must have one entry for each of the 5 points"),
        ("scale.points", [0, 1, 2, 3, 4, 5], "scale: labels are required for 6 points"),
        ("model.options", {"headers": {"api_key": "x"}}, "api_key: a specification must not contain credentials"),
        # impossible sizes
        ("population.size", 0, "population.size: must be at least 1; got 0"),
        ("population.size", 1, "population.size: must be at least 2 for interaction kind 'dyadic'; got 1"),
        ("population.size", 10**12, "population.size: must be at most 1000000"),
        ("interaction.steps", -1, "interaction.steps: must be at least 0; got -1"),
        ("population.initial_opinions", {"counts": {0: 9}}, "must sum to population.size = 10; the sum is 9"),
        ("population.initial_opinions", {"counts": {3: 10}}, "opinion 3 is not on the scale; valid: -2, -1, 0, 1, 2"),
        ("population.initial_opinions", {"counts": {0: -1}}, "counts.0: must be at least 0; got -1"),
        ("population.initial_opinions", {"counts": {"x": 1}}, "counts.x: must be a whole number; got 'x'"),
        ("interaction.network", {"kind": "watts-strogatz", "k": 12, "p": 0}, "k must be at most N = 10"),
        ("interaction.network", {"kind": "barabasi-albert", "m": 10}, "m must be below N = 10"),
        ("interaction.network", {"kind": "random-regular", "d": 10}, "d must be below N = 10"),
        *(
            ("interaction.network", network, message)
            for network, message in (
                ({"kind": "ring", "k": 3}, "interaction.network.k: must be a multiple of 2; got 3"),
                ({"kind": "ring", "k": 12}, "k must be at most N = 10"),
                ({"kind": "watts-strogatz", "k": 3, "p": 0}, "interaction.network.k: must be a multiple of 2; got 3"),
                ({"kind": "lattice", "sides": [2, 4]}, "product of the sides must be N = 10; got 2 times 4"),
                ({"kind": "lattice", "neighbours": 6}, "interaction.network.neighbours: "),
                ({"kind": "erdos-renyi"}, "set either p (a probability, > 0) or mean_degree"),
                ({"kind": "erdos-renyi", "p": 0.1, "mean_degree": 2}, "set either p"),
                (
                    {"kind": "erdos-renyi", "mean_degree": 9.5},
                    "mean_degree must be at most N - 1, with N = 10",
                ),
                ({"kind": "configuration"}, "set either degrees"),
                ({"kind": "configuration", "degrees": [1, 1]}, "degrees must contain N = 10 numbers; got 2"),
                ({"kind": "configuration", "degrees": [1] * 9 + [2]}, "degrees must have an even sum; got 11"),
                ({"kind": "configuration", "degrees": [1] * 9 + [11]}, "degrees must be below N = 10"),
                ({"kind": "configuration", "degrees": [1] * 10, "max_degree": 2}, "have no effect on given degrees"),
                (
                    {"kind": "configuration", "exponent": 2, "max_degree": 10},
                    "max_degree must be below N = 10",
                ),
                ({"kind": "configuration", "exponent": 2, "min_degree": 3, "max_degree": 2}, "at least min_degree = 3"),
                ({"kind": "stochastic-block-model", "p_within": 1, "p_between": 0}, "set either sizes"),
                ({"kind": "stochastic-block-model", "sizes": [4, 6], "p_within": 1}, "set either p (a matrix) or"),
                (
                    {"kind": "stochastic-block-model", "sizes": [4, 5], "p_within": 1, "p_between": 0},
                    "sizes must sum to N = 10; the sum is 9",
                ),
                (
                    {"kind": "stochastic-block-model", "shares": [1, 1], "p": [[1, 0], [1, 1]]},
                    "p must be a symmetric matrix with a row and a column for each of 2 blocks",
                ),
                ({"edges": [[0, 1]], "weights": [1, 2]}, "weights must contain one number per edge, 1; got 2"),
            )
        ),
        ("interaction.network", {"edges": [[0, 1, 2]]}, "interaction.network.edges[0]: must have at most 2 entries"),
        ("interaction.network", {"edges": [[0, -1]]}, "interaction.network.edges[0][1]: must be at least 0; got -1"),
        ("interaction.network", {"edges": [[0, 10]]}, "agents must be 0..9 (N = 10); got agent 10"),
        ("interaction.network", {"edges": [[1, 1]]}, "an agent cannot be connected to itself"),
        ("interaction.network", {"edges": [[1, 1]]}, "specification: interaction.network: an agent"),
        ("interaction.steps", 10**9, "interaction.steps: must be at most 10000000; got 1000000000"),
        ("interaction", {"kind": "dyadic", "exposures": 1e7}, "interaction.exposures: makes 100000000 turns"),
        ("interaction", {"kind": "broadcast", "steps": 10**7}, "interaction.steps: makes 100000000 turns"),
        ("interaction", {"kind": "independent", "reports": 10**7}, "interaction.reports: makes 100000000 turns"),
        ("measurement.probe", {"before": 10**7}, "measurement.probe: makes 100000000 turns"),
        (
            "interaction",
            {"kind": "dyadic", "exposures": 0.01},
            "exposures: 0.01 gives no step for population.size = 10",
        ),
        ("interaction", {"kind": "external", "steps": 1, "messages": ["a", " "]}, "messages[1]: must not be blank"),
        ("name", "a\n", "name: must match the pattern"),
        ("topic.definition", {}, "topic.name: cannot be given together with definition"),
        ("topic", {"definition": {}}, "\nspecification: topic.definition: claims: is required but missing"),
        ("model.name", "scriptd", "got model 'scriptd' (did you mean 'scripted'?) and no classifier"),
        ("model.name", "nope", "got model 'nope' (your own name, neither 'scripted' nor 'provider:model')"),
        (
            "population.personas",
            {"name": "x", "personas": [{"name": "A", "opinion": 9}, {"name": "B", "opinion": 0}]},
            "population.personas: the opinion 9 of persona 'A' is not on the scale; valid: -2, -1, 0, 1, 2",
        ),
        # ways of meeting
        ("interaction", {"kind": "bounded-confidence", "steps": 3}, "confidence: is required but missing"),
        (
            "interaction",
            {"kind": "bounded-confidence", "steps": 3, "confidence": -1},
            "interaction.confidence: must be at least 0",
        ),
        (
            "interaction",
            {"kind": "rewiring", "steps": 3, "tolerance": 1},
            "interaction.network: 'complete' leaves nobody else to follow",
        ),
        (
            "interaction",
            {"kind": "rewiring", "steps": 3, "tolerance": 1, "network": "ring", "rewire": 1.5},
            "interaction.rewire: must be at most 1",
        ),
        ("interaction", {"kind": "feed", "steps": 3, "posts": 0}, "interaction.posts: must be at least 1; got 0"),
        (
            "interaction",
            {"kind": "feed", "steps": 3, "ranking": "age"},
            "interaction.ranking: unknown value 'age'; valid: similarity, recency, random",
        ),
        (
            "interaction",
            {"kind": "similarity", "steps": 3, "floor": 0.1},
            "interaction.floor: has no effect with form 'exponential'; it belongs to form: power",
        ),
        # references
        ("topic.name", "round-earth", "topic.name: unknown topic 'round-earth'; valid: flat-earth"),
        ("topic.file", "none.yaml", "specification: topic.file: none.yaml: no such file"),
        ("population.personas", "nobody", "unknown persona set 'nobody'; valid: chuang2024"),
        ("population.personas", "nobody.yaml", "nobody.yaml: no such file"),
        ("population.personas", {"name": "x"}, "personas: is required but missing"),
        ("prompts", "nowhere", "nowhere' is neither 'default', 'deliberation'"),
        (
            "interaction.network",
            {"kind": "file", "path": "none.edges"},
            "specification: interaction.network: no such file: none.edges",
        ),
        ("model.name", "openai:gpt-4o-mini", "measurement.classifier: is required when the model is not 'scripted'"),
        # sweeps
        ("sweep", {"topic.framings": ["truth"]}, "topic.framings: unknown field (did you mean framing?)"),
        (
            "sweep",
            {"topic.framing": ["truth", "lie"]},
            "sweep topic.framing=lie: topic.framing: topic 'flat-earth' has no framing 'lie'",
        ),
        ("sweep", {"topic.framing": []}, "must be a list of at least one value; got []"),
        ("sweep", {"topic.framing": "truth"}, "must be a list of at least one value; got 'truth'"),
        ("sweep", {"seed": [1, 1]}, "sweep.seed[1]: repeats the value or label '1'"),
        ("sweep", {"model.temperature": [1, 1.0]}, "repeats the value or label"),
        ("sweep", {"model.temperature": [float("nan")]}, "must be a finite number"),
        ("sweep", {"execution.timeout_s": [1]}, "cannot be swept; valid: fields under seed, population"),
        ("sweep", {"replicates": [1]}, "cannot be swept"),
        ("sweep", {"a..b": [1]}, "'a..b' is not a dotted path"),
        ("sweep", {"seed.x": [1]}, "seed: must be a whole number"),
        ("sweep", 3, "sweep: must be a mapping of axes to lists of values"),
        ("sweep", [3], "sweep[0]: must be a mapping of axes to lists of values"),
        ("sweep", {f"model.options.x{i}": list(range(10)) for i in range(9)}, "has 1000000000 cells; at most"),
        ("independent_over", ["topic.nam"], "'topic.nam' is not a field of a run; valid after topic: name"),
        ("independent_over", ["execution.timeout_s"], "is not a field of a run; valid: fields under population"),
        ("independent_over", ["topic.name", "topic.name"], "entries must be distinct"),
    ],
)
def test_bad_input_gives_one_clear_error(path: str, value: Any, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_experiment(_with(path, value))
    found = str(caught.value)
    assert message in found
    assert found.startswith("specification: ")
    assert "pydantic" not in found


def test_a_sweep_through_something_that_is_no_mapping() -> None:
    with pytest.raises(SpecError, match=r"sweep\.seed\.x: there is no field 'x' in 3"):
        load_experiment({**BASE, "seed": 3, "sweep": {"seed.x": [1]}})


def test_demographics_need_attributes() -> None:
    personas = {"name": "two", "personas": [{"name": "A"}, {"name": "B"}]}
    with pytest.raises(SpecError, match=r"population\.shown: 'demographics' needs attributes .* 'A' has none"):
        load_experiment({**BASE, "population": {"size": 2, "personas": personas, "shown": "demographics"}})


def test_the_schema_explains_every_field() -> None:
    schema = json_schema()
    assert "sweep" in schema["properties"]
    unexplained = [
        f"{name}.{field}"
        for name, definition in {**schema["$defs"], "ExperimentSpec": schema}.items()
        for field, content in definition.get("properties", {}).items()
        if field != "kind" and not content.keys() & {"description", "$ref"}
    ]
    assert unexplained == []
    assert "#/$defs/NetworkKind" in str(schema["$defs"]["Dyads"]["properties"]["network"])
    assert "'complete'" in str(schema["$defs"]["NetworkKind"])
