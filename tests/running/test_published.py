"""The experiments that come with the package, and every condition they or a user may set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.assembly import assemble
from opinionsim.errors import SpecError
from opinionsim.foundation.data import data_folder
from opinionsim.messages import ChatMessage
from opinionsim.planning import preview
from opinionsim.specification import load_experiment
from opinionsim.store import Results
from tests.support.running import SMALL, carry_out, changed

pytestmark = pytest.mark.long

FOLDER = data_folder("experiments")
NAMES = sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.yaml"))

#: Cells, runs and calls that each shipped experiment stands for.
SIZES = {
    "demo": (2, 6, 6 * 200),
    "classic_quickstart": (4, 20, 5 * (20 + 2 * 200)),
    "compare_quickstart": (5, 50, 20 * 2 * 60),
    "consensus_quickstart": (1, 1, 141),
    "controls": (10, 20, 1400),
    "events": (4, 20, 2911),
    "quickstart": (3, 6, 6 * 80),
    "room_models": (1, 1, 32),
    "room_quickstart": (1, 1, 45),
    "selective_refusal": (3, 90, 60 * 200 + 30 * 100),
    "real_model": (2, 6, 6 * 60),
    "real_small": (2, 4, 4 * 12),
    "structures": (4, 20, 20 * 40),
    "bakker2022/appendix": (2, 24, 24 * 138),
    "bakker2022/people": (1, 1, 8),
    "plurals/personas": (16, 16, 16 * 30),
    "plurals/instructions": (6, 30, 30 * 4),
    "plurals/solar": (2, 30, 15 * 11 + 15),
    "plurals/charter_school": (1, 15, 15 * 5),
    "plurals/shelter": (1, 15, 15 * 5),
    "plurals/choices": (7, 63, 15 * (11 + 1 + 5 + 5) + 3 * 20 * 15),
    "plurals/values": (12, 360, 360 * 2),
    "chuang2024/tables": (180, 180, 90 * 200 + 90 * 400),
    "chuang2024/figure4": (8, 8, 6 * 200 + 2 * 100),
    "chuang2024/figure5": (8, 8, 8 * 200),
    "chuang2024/figure6": (8, 8, 6 * 400 + 2 * 100),
    "chuang2024/controls": (8, 8, 2 * (200 + 3 * 100)),
    "chuang2024/worlds": (2, 6, 6 * 200),
}

#: Agents of those that have other than ten.
AGENTS = {
    "bakker2022/appendix": 5,
    "bakker2022/people": 4,
    "classic_quickstart": 20,
    "consensus_quickstart": 5,
    "room_models": 3,
    "room_quickstart": 3,
}

SHORT: dict[str, dict[str, Any]] = {
    "dyadic": {"kind": "dyadic", "steps": 4},
    "broadcast": {"kind": "broadcast", "steps": 2},
    "similarity": {"kind": "similarity", "steps": 4},
    "bounded-confidence": {"kind": "bounded-confidence", "steps": 6, "confidence": 2.0},
    "rewiring": {"kind": "rewiring", "steps": 6, "tolerance": 1.0, "network": "ring"},
    "feed": {"kind": "feed", "steps": 3, "posts": 2},
    "independent": {"kind": "independent", "reports": 2},
    "remembered": {"kind": "remembered", "steps": 6},
    "no-role-play": {"kind": "no-role-play", "reports": 2},
    "external": {"kind": "external", "steps": 4, "messages": ["One.", "Two."]},
    "placebo": {"kind": "placebo", "steps": 4},
}

STRUCTURES: dict[str, dict[str, Any]] = {
    "chain": {"kind": "chain", "cycles": 2},
    "debate": {"kind": "debate", "cycles": 2},
    "ensemble": {"kind": "ensemble", "cycles": 2},
    "graph": {"kind": "graph", "edges": [[0, 1], [0, 2], [1, 3]]},
    "rounds": {"kind": "rounds", "network": "ring"},
}

NETWORKS: list[Any] = [
    "complete",
    "ring",
    "path",
    "star",
    {"kind": "watts-strogatz", "k": 2, "p": 0.5},
    {"kind": "erdos-renyi", "p": 0.9},
    {"kind": "barabasi-albert", "m": 2},
    {"kind": "random-regular", "d": 3},
    {"kind": "lattice", "sides": [2, 3], "periodic": False},
    {"kind": "stochastic-block-model", "shares": [1, 2], "p_within": 0.9, "p_between": 0.4},
    {"kind": "configuration", "degrees": [1, 2, 3, 1, 2, 1]},
    {"edges": [[0, 1], [1, 2]]},
]


def test_every_shipped_experiment_is_known_here() -> None:
    assert set(SIZES) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_experiment_loads_plans_and_previews(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    experiment = osim.load_experiment(name)
    forecast = osim.plan(experiment)
    assert (forecast.cells, forecast.runs, forecast.calls) == SIZES[name]
    if not name.startswith("plurals/"):
        assert {cell.spec.size for cell in experiment.cells} == {AGENTS.get(name, 10)}
    for run in range(0, len(experiment.runs), 7):
        prompts = preview(experiment, run).prompts
        assert all(messages[-1].role == "user" for messages in prompts.values())


def test_the_table_experiment_has_the_published_design() -> None:
    experiment = osim.load_experiment("chuang2024/tables")
    axes = {path: {cell.axes[path] for cell in experiment.cells} for path in experiment.cells[0].axes}
    assert {path: len(values) for path, values in axes.items()} == {
        "topic.name": 15,
        "topic.framing": 2,
        "cognition.confirmation_bias": 3,
        "cognition.memory": 2,
    }
    assert {run.spec.interaction.steps_for(10) for run in experiment.runs} == {100}
    # Each topic has draws of its own; the twelve cells of a topic share theirs.
    assert len({run.block for run in experiment.runs}) == 15


@pytest.mark.parametrize("name", [name for name in NAMES if name != "chuang2024/tables"])
def test_a_shipped_experiment_runs(name: str) -> None:
    # Nobody has a counterpart in a single replicate.
    replicates = 2 if name in ("controls", "selective_refusal") else 1
    short = {**_cut(load_experiment(name).source.value), "replicates": replicates}
    if short.pop("model", {"name": "scripted"})["name"] != "scripted":
        # A real model is stood in for by the scripted one, and an instrument with weights by the one without.
        short["measurement"]["classifier"] = "lexicon"
    if name in ("room_quickstart", "bakker2022/people"):
        with pytest.raises(SpecError, match="has a seat for a person"):
            carry_out(short, "short.sqlite")
        return
    summary, results = carry_out(short, "short.sqlite")
    assert summary.errors == {}
    assert set(results.runs["status"]) == {"complete"}
    authors = {"scripted", "equation"} if name in ("classic_quickstart", "compare_quickstart") else {"scripted"}
    assert set(results.runs["evidence"]) == authors
    # Where there is a task and no topic, no stance is measured.
    assert set(results.metrics["run_id"]) == set(results.runs.loc[results.runs["topic"] != "none", "run_id"])


def _cut(value: Any) -> Any:
    """A specification with every length cut to two."""
    if isinstance(value, dict):
        return {key: 2 if key in ("steps", "step", "reports") else _cut(child) for key, child in value.items()}
    return [_cut(child) for child in value] if isinstance(value, list) else value


@pytest.mark.parametrize("memory", ["cumulative", "reflective", "reflective-as-run"])
@pytest.mark.parametrize("kind", SHORT)
def test_every_interaction_runs_with_every_memory(kind: str, memory: str) -> None:
    spec = changed(
        SMALL, interaction=SHORT[kind], cognition={"memory": memory}, measurement={"probe": {"before": 1, "after": 1}}
    )
    summary, results = carry_out(spec, "short.sqlite")
    assert summary.errors == {}
    turns = results.turns
    assert len(turns[turns["act"] == "probe"]) == 8
    assert results.runs[["interaction", "memory"]].to_numpy().tolist() == [[kind, memory]]
    reflections = (results.calls["call"] == "reflect").sum()
    kept = (~turns["act"].isin(["probe", "report-once"])).sum()
    assert reflections == (0 if memory == "cumulative" else kept)
    read = turns["reads"].map(len)
    assert (read[turns["act"] == "review"] == (2 if kind == "feed" else 1)).all()
    assert (read[turns["act"] != "review"] == 0).all()


@pytest.mark.parametrize("memory", ["none", "reflective"])
@pytest.mark.parametrize("kind", STRUCTURES)
def test_agents_of_structures_have_a_memory_where_they_are_to_remember(kind: str, memory: str) -> None:
    remember = memory != "none"
    spec = changed(
        SMALL,
        population={"size": 2 if kind == "debate" else 4},
        interaction={**STRUCTURES[kind], "remember": remember, "order": "cast"},
        cognition={"memory": memory} if remember else {},
        measurement={"probe": {"before": 1, "after": 1}},
    )
    summary, results = carry_out(spec, "short.sqlite")
    assert summary.errors == {}
    turns = results.turns
    assert results.runs[["interaction", "memory"]].to_numpy().tolist() == [[kind, memory]]
    assert (results.calls["call"] == "reflect").sum() == (turns["act"] == "respond").sum() * ("reflective" in memory)
    last = turns[(turns["act"] == "probe") & (turns["step"] > 0)]
    own = turns[turns["act"] == "respond"].groupby("agent")["turn"].max()
    # Whoever remembers its last answer is not shown it again.
    assert all((own[probe.agent] in probe.reads) != remember for probe in last.itertuples())


@pytest.mark.parametrize("network", NETWORKS, ids=str)
@pytest.mark.parametrize("kind", ["dyadic", "broadcast", "similarity", "feed"])
def test_posts_travel_along_edges_alone(kind: str, network: Any) -> None:
    spec = changed(SMALL, population={"size": 6}, interaction={"kind": kind, "steps": 5, "network": network})
    results = carry_out(spec, "short.sqlite")[1]
    edges = {frozenset(pair) for pair in results.edges[["source", "target"]].itertuples(index=False)}
    writer = results.turns.set_index("turn")["agent"]
    met = {frozenset((turn.agent, writer[post])) for turn in results.turns.itertuples() for post in turn.reads}
    assert met
    assert all(len(pair) == 2 for pair in met)
    assert network == "complete" or met <= edges
    assert (network == "complete") == (len(edges) == 0)


def test_directions_and_weights_written_out_are_stored_and_kept_to() -> None:
    network = {"edges": [[2, 0], [0, 1]], "weights": [-0.5, 2], "directed": True}
    interaction = {"kind": "dyadic", "steps": 6, "network": network}
    results = carry_out(changed(SMALL, population={"size": 3}, interaction=interaction), "short.sqlite")[1]
    edges = results.edges[["source", "target", "weight"]]
    assert [tuple(row) for row in edges.itertuples(index=False)] == [(0, 1, 2.0), (2, 0, -0.5)]
    writer = results.turns.set_index("turn")["agent"]
    met = {(writer[post], turn.agent) for turn in results.turns.itertuples() for post in turn.reads}
    assert met == {(0, 1), (2, 0)}


# -- conditions must reach the prompt ------------------------------------------------------------------------


def _prompt(results: Results, act: str) -> list[ChatMessage]:
    """The literal prompt of the last turn with an act."""
    turns = results.turns[results.turns["act"] == act]
    return results.prompt(0, int(turns["turn"].iloc[-1]))


def _asked(**values: Any) -> dict[str, str]:
    """The literal prompts of a short run, by act."""
    results = carry_out(changed(SMALL, **values), "asked.sqlite")[1]
    return {act: "\n".join(m.content for m in _prompt(results, act)) for act in set(results.turns["act"])}


def test_every_condition_gives_prompts_of_its_own(tmp_path: Path) -> None:
    conditions: dict[str, list[Any]] = {
        "cognition.confirmation_bias": ["none", "weak", "strong"],
        "cognition.world": ["closed", "open"],
        "cognition.memory": ["cumulative", "reflective"],
        "cognition.belief_tense": ["present", "past"],
        "population.shown": ["full", "demographics", "name", "none"],
        "topic.masked": [True, False],
        "topic.framing": ["falsehood", "truth"],
        "population.initial_opinions": ["all-positive", "all-negative"],
    }
    for path, values in conditions.items():
        spec = changed(SMALL, sweep={path: values})
        results = carry_out(spec, str(tmp_path / f"{path}.sqlite"))[1]
        last = results.turns.groupby("run_id")["turn"].max()
        assert len(last) == len(values), path
        prompts = {tuple(results.prompt(str(run_id), int(turn))) for run_id, turn in last.items()}
        assert len(prompts) == len(values), path


def test_posts_are_short_by_default_and_of_any_length_in_the_published_study() -> None:
    def tasks(name: str) -> list[str]:
        experiment = load_experiment(name)
        shown = (preview(experiment, run).prompts for run in range(len(experiment.runs)))
        return [prompts["write"][-1].content for prompts in shown if "write" in prompts]

    told = {name: tasks(name) for name in NAMES}
    writing = {name: texts for name, texts in told.items() if texts}
    assert {"quickstart", "real_model", "controls", "chuang2024/tables"} <= set(writing)
    for name, texts in writing.items():
        short = {"in at most 60 words" in text for text in texts}
        assert short == {not name.startswith("chuang2024/")}, name


def test_agents_are_told_of_writing_and_reading_only_where_they_do() -> None:
    told = {}
    for kind, interaction in SHORT.items():
        spec = changed(SMALL, interaction=interaction, measurement={"probe": {"after": 1}})
        prompts = preview(load_experiment(spec)).prompts
        systems = [messages[0].content for messages in prompts.values() if messages[0].role == "system"]
        told[kind] = any("write posts" in text for text in systems)
        assert told[kind] == ("write" in prompts), kind
        strangers = any("stranger" in message.content for messages in prompts.values() for message in messages)
        assert strangers == ("review" in prompts), kind
    assert {kind for kind, writes in told.items() if not writes} == {
        "external",
        "remembered",
        "independent",
        "no-role-play",
    }
    probes = changed(SMALL, interaction={"kind": "dyadic", "steps": 0}, measurement={"probe": {"after": 1}})
    ((system, task),) = preview(load_experiment(probes)).prompts.values()
    assert "write posts" not in system.content
    assert "stranger" not in system.content + task.content


@pytest.mark.parametrize("replicate", [0, 2])
def test_controls_share_the_listeners_of_the_block(replicate: int) -> None:
    messages = {"kind": "external", "steps": 30, "messages": ["One.", "Two."], "label": "external"}
    cells = [
        {"kind": "dyadic", "steps": 30, "label": "dyadic"},
        {"kind": "remembered", "steps": 30, "label": "remembered"},
        messages,
        {**messages, "order": "sequence", "label": "in sequence"},
    ]
    experiment = load_experiment(changed(SMALL, replicates=3, sweep={"interaction": cells}))
    drawn = {
        run.cell.label: [turn.agent for turn in turns if turn.act != "write"]
        for run in experiment.runs
        if run.replicate == replicate
        for turns in [list(assemble(run, experiment.resources).schedule.turns())]
    }
    assert len(drawn) == 4
    assert len({tuple(agents) for agents in drawn.values()}) == 1


def test_the_independent_control_remembers_nothing_and_the_other_does() -> None:
    assert "<memory>" not in _asked(interaction=SHORT["independent"])["report-once"]
    assert "<persona>" not in _asked(interaction=SHORT["no-role-play"])["report-once"]
    results = carry_out(changed(SMALL, interaction=SHORT["remembered"]), "memory.sqlite")[1]
    counts: dict[int, int] = {}
    for turn in results.turns.itertuples():
        text = "\n".join(message.content for message in results.prompt(0, turn.turn))
        assert text.count("<memory>") == counts.setdefault(turn.agent, 0)
        counts[turn.agent] += 1


def test_a_cumulative_prompt_extends_the_one_before() -> None:
    results = carry_out(changed(SMALL, interaction__steps=12), "memory.sqlite")[1]
    before: dict[int, list[ChatMessage]] = {}
    for turn in results.turns.itertuples():
        prompt = results.prompt(0, turn.turn)
        earlier = before.get(turn.agent)
        if earlier is not None:
            # All but the task of the earlier prompt comes again, then what was said.
            assert prompt[: len(earlier) - 1] == earlier[:-1]
            assert turn.message not in prompt[-1].content
        before[turn.agent] = prompt


def test_a_token_budget_leaves_out_the_oldest_and_counts_them() -> None:
    spec = changed(SMALL, interaction__steps=12, cognition={"token_budget": 200})
    results = carry_out(spec, "budget.sqlite")[1]
    assert results.calls["dropped"].max() > 0
    for call in results.calls.itertuples():
        remembered = [m for m in results.prompt(0, call.turn) if "<memory>" in m.content]
        assert sum(-(-len(m.content) // 4) for m in remembered) <= 200


def test_a_refusal_is_an_opinion_that_is_missing() -> None:
    spec = changed(SMALL, model={"options": {"refusal_rate": 1.0}})
    results = carry_out(spec, "refused.sqlite")[1]
    assert results.opinions["value"].isna().all()
    # Every one is taken for what it is, after it was asked for three times.
    assert set(results.turns["status"]) == {"refused", "skipped"}
    assert results.calls["attempt"].value_counts().tolist() == [6, 6, 6]
    assert results.runs["status"].tolist() == ["complete"]


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("chuang2024/")])
def test_files_of_the_study_end_replies_where_the_study_did_and_count_them(name: str) -> None:
    for cell in osim.load_experiment(name).cells:
        (model,) = cell.spec.model.chat_models
        assert (model.max_tokens, model.replies.truncated.reask, cell.spec.uncounted) == (300, 0, ())
        assert cell.spec.cognition.post_words is None
