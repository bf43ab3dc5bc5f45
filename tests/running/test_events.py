"""Events in specifications: what is refused, what enters identities and sweeps, and runs with events."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.analysis import tables
from opinionsim.assembly import assemble
from opinionsim.errors import SpecError
from opinionsim.planning import preview
from opinionsim.prompts import load_pack
from opinionsim.running import replay
from opinionsim.schedules import External, StaticSchedule
from opinionsim.specification import load_experiment, manifest as manifest_of
from opinionsim.watching import transcript
from tests.support.running import SMALL, assert_same, changed, ended, finished

#: What stands in the prompts for posts alone.
WRITES = load_pack().marks.cues["write"]
NEWS = {"kind": "message", "step": 3, "text": "There is news."}
ZEALOT = {"kind": "zealot", "step": 2, "agents": [1], "text": ["I am sure.", "Quite sure."]}
MEDIA = {"kind": "media", "step": 1, "probability": 0.5, "text": "The paper says so."}
LEAVE = {"kind": "leave", "step": 5, "agents": [0]}
JOIN = {"kind": "join", "step": 4, "agents": [3]}
ALL = [NEWS, ZEALOT, MEDIA, LEAVE, JOIN]


def _spec(*events: Any, **values: Any) -> dict[str, Any]:
    return {**changed(SMALL, interaction__steps=20, **values), "events": list(events)}


def _problem(*events: Any, **values: Any) -> str:
    with pytest.raises(SpecError) as caught:
        load_experiment(_spec(*events, **values))
    return str(caught.value)


BAD: list[tuple[list[dict[str, Any]], str]] = [
    ([{**NEWS, "step": 21}], "events[0].step: 21 is after the last step; valid: 1..20"),
    ([{**NEWS, "step": 0}], "events[0].step: must be at least 1; got 0"),
    ([{**NEWS, "step": True}], "events[0].step: must be a whole number; got true"),
    (
        [{"kind": "news", "step": 1}],
        "events[0].kind: unknown value 'news'; valid: message, zealot, media, leave, join, ties",
    ),
    ([{"step": 1}], "events[0].kind: is required but missing"),
    ([NEWS, {**NEWS, "text": " "}], "events[1].text: must not be blank"),
    ([{**ZEALOT, "text": ["yes", ""]}], "events[0].text: must not be blank"),
    ([{**ZEALOT, "text": []}], "events[0].text: must have at least 1 entry"),
    ([{"kind": "message", "step": 1}], "events[0]: needs exactly one of text and file"),
    ([{**NEWS, "file": "x.txt"}], "events[0]: needs exactly one of text and file"),
    ([{"kind": "message", "step": 1, "file": "no.txt"}], "events[0].file: no.txt: no such file"),
    ([{**MEDIA, "probability": 1.5}], "events[0].probability: must be at most 1; got 1.5"),
    ([{**MEDIA, "until": 21}], "events[0].until: must be a step from 1 to 20; got 21"),
    ([{**ZEALOT, "until": 1}], "events[0].until: must be a step from 2 to 20; got 1"),
    ([{**NEWS, "until": 9}], "events[0].until: unknown field; valid: kind, step, agents, text, file"),
    ([{**NEWS, "agents": ["Nobody"]}], "events[0].agents[0]: no agent has the name 'Nobody'; valid names: "),
    ([{**NEWS, "agents": [0, 4]}], "events[0].agents[1]: agent 4 does not exist; valid: 0..3"),
    ([{**NEWS, "agents": [-1]}], "events[0].agents[0]: must be at least 0; got -1"),
    ([{**NEWS, "agents": [1, 1]}], "events[0].agents[1]: lists the same agent twice: 1"),
    ([{**NEWS, "agents": []}], "events[0].agents: must list at least one agent"),
    ([{**NEWS, "agents": {}}], "events[0].agents: needs where, share or both"),
    ([{**NEWS, "agents": {"share": 0.1}}], "events[0].agents.share: 0.1 of 4 agents rounds to 0"),
    ([{**NEWS, "agents": {"share": 0}}], "events[0].agents.share: must be greater than 0; got 0"),
    (
        [{**NEWS, "agents": {"where": {"gender": "robot"}}}],
        "events[0].agents.where: no persona has gender = 'robot'; it",
    ),
    ([{**NEWS, "agents": {"where": {"shoe": 9}}}], "events[0].agents.where: no persona has shoe = '9'; attributes are"),
    ([{**LEAVE, "agents": [3]}, JOIN, LEAVE, LEAVE], "events[3].agents: agent 0 cannot leave twice (events[2])"),
    (
        [JOIN, {**LEAVE, "step": 4, "agents": [3]}],
        "events[1].agents: agent 3 must join before it leaves at step 4; got 4",
    ),
    ([ZEALOT, {**ZEALOT, "step": 9}], "events[1].agents: agent 1 is a zealot in another event at the same steps"),
    (
        [{**LEAVE, "agents": {"share": 0.6}}, {**LEAVE, "agents": {"share": 0.7}}],
        "events[1].agents: share takes 3 agents, but other events leave only 2",
    ),
]


#: Events that could change nothing under the rest of the specification.
IDLE: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"interaction": {"kind": "independent", "reports": 9}}, NEWS, "'message' has no effect in 'independent'"),
    ({"interaction": {"kind": "remembered", "steps": 9}}, MEDIA, "'media' has no effect in 'remembered'"),
    ({"interaction": {"kind": "remembered", "steps": 9}}, ZEALOT, "'zealot' has no effect in 'remembered'"),
    ({"interaction": {"kind": "similarity", "steps": 9}}, NEWS, "events: need turns that are known in advance"),
    ({"interaction": {"kind": "dyadic", "steps": 0}}, NEWS, "valid: none, because the run has no steps"),
]


@pytest.mark.parametrize(
    ("values", "events", "message"),
    [*(({}, *each) for each in BAD), *((values, [event], message) for values, event, message in IDLE)],
    ids=[message[:60] for *_, message in (*BAD, *IDLE)],
)
def test_an_event_that_cannot_be_is_one_clear_error(values: dict[str, Any], events: list[Any], message: str) -> None:
    found = _problem(*events, **values)
    assert message in found
    assert "\n" not in found


def test_agents_are_named_only_where_every_run_has_them() -> None:
    """Four of ten personas are drawn in each replicate."""
    experiment = load_experiment(SMALL)
    name = assemble(experiment.runs[0], experiment.resources).population.personas[0].name
    assert "events[0].agents: names need population.size to be the number of personas in the set, 10" in _problem(
        {**NEWS, "agents": [name]}
    )
    whole = load_experiment(_spec({**NEWS, "agents": [name]}, population__size=10))
    (event,) = assemble(whole.runs[0], whole.resources).events
    population = assemble(whole.runs[0], whole.resources).population
    assert [population.personas[agent].name for agent in event.agents] == [name]


# -- identity and sweeps -------------------------------------------------------------------------------------


def _ids(spec: dict[str, Any]) -> list[str]:
    return [run.run_id for run in load_experiment(spec).runs]


def test_events_enter_the_identity_by_content_and_only_where_there_are_some(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("There is news.\n")
    given = {"kind": "message", "step": 3}
    files = [{**given, "file": str(tmp_path / name)} for name in ("a.txt", "b.txt")]
    assert _ids(_spec()) == _ids(changed(SMALL, interaction__steps=20))
    assert _ids(_spec(NEWS)) == _ids(_spec(files[0])) == _ids(_spec(files[1]))
    different = [_spec(), _spec(NEWS), _spec({**NEWS, "step": 4}), _spec({**NEWS, "text": "x"}), _spec(NEWS, JOIN)]
    different.append(_spec({**NEWS, "agents": [0]}))
    assert len({_ids(spec)[0] for spec in different}) == len(different)


def test_lists_of_events_are_swept_under_readable_labels() -> None:
    spec = {**_spec(), "sweep": {"events": [[], [NEWS], [NEWS, ZEALOT]]}}
    experiment = load_experiment(spec)
    assert [cell.label for cell in experiment.cells] == [
        "events=none",
        "events=message at 3",
        "events=message at 3 + zealot at 2",
    ]
    assert len({run.block for run in experiment.runs}) == 1
    twice = load_experiment({**_spec(), "sweep": {"events": [[NEWS], [{**NEWS, "text": "Other news."}]]}})
    assert len({cell.label for cell in twice.cells}) == 2


def test_a_field_of_an_event_is_swept_by_its_place_in_the_list() -> None:
    spec = {**_spec(NEWS, MEDIA), "sweep": {"events.1.probability": [0.1, 0.9], "events.0.step": [2, 5]}}
    found = [[event.step for event in cell.spec.events] for cell in load_experiment(spec).cells]
    assert found == [[2, 1], [5, 1], [2, 1], [5, 1]]
    with pytest.raises(SpecError, match=r"events has no entry '2'; valid: 0, 1"):
        load_experiment({**spec, "sweep": {"events.2.step": [1]}})
    assert load_experiment(_spec(NEWS), {"events.0.step": 7}).spec.events[0].step == 7


def test_a_larger_share_includes_a_smaller_one_and_shares_of_zealots_are_apart() -> None:
    def agents(*events: dict[str, Any]) -> list[set[int]]:
        experiment = load_experiment({**_spec(*events, population__size=10), "replicates": 2})
        return [set(event.agents) for event in assemble(experiment.runs[1], experiment.resources).events]

    nested = [agents({**NEWS, "agents": {"share": share}})[0] for share in (0.2, 0.5, 0.9, 1)]
    assert [len(each) for each in nested] == [2, 5, 9, 10]
    assert all(small < large for small, large in pairwise(nested))
    camps = agents(*({**ZEALOT, "agents": {"share": share}} for share in (0.3, 0.4)), {**ZEALOT, "agents": [0, 1]})
    assert [len(each) for each in camps] == [3, 4, 2]
    assert len(set.union(*camps)) == 9


def test_agents_by_attribute_are_those_with_it() -> None:
    experiment = load_experiment(_spec({**NEWS, "agents": {"where": {"gender": "female"}}}, population__size=10))
    parts = assemble(experiment.runs[0], experiment.resources)
    women = [i for i, persona in enumerate(parts.population.personas) if persona.attributes["gender"] == "female"]
    assert 0 < len(women) < 10
    assert list(parts.events[0].agents) == women


# -- runs ----------------------------------------------------------------------------------------------------

FULL = {
    **_spec(*ALL, measurement={"classifier": "lexicon", "probe": {"before": 1}, "self_report": {"after": 1}}),
    "replicates": 2,
}


def test_a_run_with_events_is_planned_recorded_and_replayed() -> None:
    results = finished(FULL)
    assert osim.plan(load_experiment(FULL)).calls == len(results.calls)
    assert [each.difference for each in replay(results)] == ["", ""]
    runs, turns = results.runs, results.turns
    assert set(runs["event_steps"]) == {"message at 3; zealot (1) at 2; media at 1; leave (0) at 5; join (3) at 4"}
    # Two posts and two reviews a step, four probes on each side, and one review of the news an agent.
    per_run = turns.groupby("run_id").size().to_numpy() + runs.set_index("run_id")["dropped_turns"].sort_index()
    assert per_run.tolist() == [2 * 20 + 2 * 4 + 4] * 2
    read = turns.explode("reads")["reads"]
    assert {"event-0", "event-1.0-agent-1", "event-1.1-agent-1", "event-2"} <= set(read)
    assert turns.loc[(turns["agent"] == 0) & (turns["step"] >= 5)].empty
    assert turns.loc[(turns["agent"] == 3) & (turns["step"] < 4)].empty
    assert set(turns.loc[turns["agent"] == 1, "step"]) <= {0, 1}
    assert dict(turns.loc[turns["kind"] == "self-report"].groupby("run_id")["agent"].agg(list)) == {
        run_id: [2, 3] for run_id in runs["run_id"]
    }


def test_a_run_that_was_stopped_and_resumed_with_other_slots_equals_one_that_was_not() -> None:
    whole = finished(FULL, slots=1)
    for calls in (10, 30):
        assert ended({**FULL, "execution": {"budget": {"calls": calls}}}, "b.sqlite").exceeded
    assert_same(finished(FULL, "b.sqlite", slots=9), whole)


def _pairs(results: osim.Results, cell: str) -> dict[tuple[int, int, int], tuple[int, int]]:
    """Author and reader of each review of a post, by replicate, step and reader."""
    runs = results.runs[results.runs["cell"] == cell].set_index("run_id")
    found = {}
    for run_id, turns in results.turns[results.turns["run_id"].isin(runs.index)].groupby("run_id"):
        authors = turns.set_index("turn")["agent"]
        for row in turns[turns["act"] == "review"].itertuples():
            peers = [authors[ref] for ref in row.reads if isinstance(ref, int)]
            if peers:
                found[int(runs.loc[run_id, "replicate"]), row.step, row.agent] = (int(peers[0]), row.agent)
    return found


def test_cells_of_a_block_share_their_pairs_with_and_without_events() -> None:
    spec = {**_spec(), "replicates": 2, "sweep": {"events": [[], [NEWS, MEDIA], ALL]}}
    results = finished(spec)
    cells = list(dict.fromkeys(results.runs["cell"]))
    bare, told, most = (_pairs(results, cell) for cell in sorted(cells, key=len, reverse=False))
    assert bare == told
    assert len(bare) == 40
    assert 0 < len(most) < 40
    assert most.items() <= bare.items()


@pytest.mark.parametrize("kind", ["broadcast", "remembered", "external"])
def test_other_interactions_have_events_too(kind: str) -> None:
    fields = {"messages": ["One.", "Two."]} if kind == "external" else {}
    spec = _spec(NEWS, LEAVE, interaction={"kind": kind, "steps": 10, **fields})
    results = finished(spec)
    assert set(results.turns.loc[[reads == ("event-0",) for reads in results.turns["reads"]], "agent"]) == {0, 1, 2, 3}
    assert results.turns.loc[(results.turns["agent"] == 0) & (results.turns["step"] >= 5)].empty
    assert results.runs["dropped_turns"].iloc[0] > 0


def test_one_agent_alone_reads_the_news() -> None:
    results = finished(_spec(NEWS, interaction={"kind": "remembered", "steps": 5}, population__size=1))
    assert results.turns["act"].tolist() == ["report", "report", "review", "report", "report", "report"]


def test_a_run_all_of_whose_agents_leave_at_once_is_complete_and_counts_its_turns() -> None:
    results = finished(_spec({**LEAVE, "step": 1, "agents": "all"}))
    assert (len(results.turns), results.runs["dropped_turns"].iloc[0]) == (0, 40)


def test_the_prompt_of_a_reader_has_the_words_of_the_event_and_never_expands_them() -> None:
    text = "{{ name }} ${name} {% raw %} {0}"
    results = finished(_spec({**NEWS, "text": text}, {**MEDIA, "probability": 1, "text": "Extra! $$"}))
    for row in results.turns.itertuples():
        if row.reads == ("event-0",):
            assert text in results.prompt(row.run_id, row.turn, "reply", 0)[-1].content
        elif "event-1" in row.reads:
            assert "Extra! $$" in results.prompt(row.run_id, row.turn, "reply", 0)[-1].content


# -- ties ----------------------------------------------------------------------------------------------------

RING = {"kind": "dyadic", "steps": 40, "network": "ring"}
TIES = {"kind": "ties", "step": 21, "remove": [[0, 1], [2, 3]], "add": [[3, 1]]}


@pytest.mark.parametrize("kind", ["dyadic", "broadcast"])
def test_pairs_after_a_change_of_ties_are_drawn_from_the_changed_network(kind: str) -> None:
    spec = {**_spec(interaction={**RING, "kind": kind}), "sweep": {"events": [[], [TIES]]}}
    results = finished(spec)
    assert osim.plan(load_experiment(spec)).calls == len(results.calls)
    assert [each.difference for each in replay(results)] == ["", ""]
    before, after = (_pairs(results, cell) for cell in ("events=none", "events=ties at 21"))
    joined = {tuple(sorted(pair)) for (_, step, _), pair in after.items() if step > 20}
    assert joined == {(1, 2), (0, 3), (1, 3)}
    # The draws are those of the block until ties change.
    early = [{key: pair for key, pair in pairs.items() if key[1] <= 20} for pairs in (before, after)]
    assert early[0] == early[1]
    assert {tuple(sorted(pair)) for pair in early[0].values()} == {(0, 1), (1, 2), (2, 3), (0, 3)}
    run_id = results.runs.set_index("cell")["run_id"]["events=ties at 21"]
    edges = results.edges[results.edges["run_id"] == run_id]
    found = edges[["source", "target", "since", "until"]].astype(object).where(edges.notna(), None)
    assert sorted(map(tuple, found.to_numpy().tolist()), key=str) == [
        (0, 1, 0, 20),
        (0, 3, 0, None),
        (1, 2, 0, None),
        (1, 3, 20, None),
        (2, 3, 0, 20),
    ]


def test_ties_change_several_times_beside_other_events_and_probes_and_a_run_is_resumed() -> None:
    later = {"kind": "ties", "step": 31, "remove": [[1, 3]]}
    spec = _spec(later, LEAVE, TIES, NEWS, interaction=RING, measurement={"probe": {"before": 1, "after": 1}})
    whole = finished(spec, slots=1)
    assert ended({**spec, "execution": {"budget": {"calls": 30}}}, "b.sqlite").exceeded
    assert_same(finished(spec, "b.sqlite"), whole)
    late = {tuple(sorted(pair)) for (_, step, _), pair in _pairs(whole, "small").items() if step > 30}
    assert late == {(1, 2)}  # agent 0 has left


@pytest.mark.parametrize(
    ("event", "interaction", "message"),
    [
        (
            TIES,
            {"kind": "dyadic", "steps": 40},
            "'ties' needs a network that lists its ties; 'complete' connects everybody",
        ),
        (TIES, {"kind": "remembered", "steps": 40}, "'ties' has no effect in 'remembered', which has no network"),
        ({**TIES, "add": [[0, 4]]}, RING, "events[0].add[0]: agent 4 does not exist; valid: 0..3"),
        ({**TIES, "add": [[1, 1]]}, RING, "events[0].add[0]: connects agent 1 to itself"),
        ({"kind": "ties", "step": 2}, RING, "events[0]: needs add, remove or both"),
        ({**TIES, "remove": [[0, 1], [0, 1]]}, RING, "events[0].remove: entries must be distinct"),
        ({**TIES, "agents": [0]}, RING, "events[0].agents: unknown field; valid: kind, step, add, remove"),
    ],
)
def test_a_change_of_ties_that_cannot_be_is_one_clear_error(
    event: dict[str, Any], interaction: dict[str, Any], message: str
) -> None:
    found = _problem(event, interaction=interaction)
    assert message in found
    assert "\n" not in found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"remove": [[0, 2]]}, r"events\[0\].remove\[0\]: agents 0 and 2 are not connected"),
        ({"add": [[1, 0]]}, r"events\[0\].add\[0\]: agents 1 and 0 are already connected"),
        ({"remove": [[0, 1], [1, 2], [2, 3], [0, 3]]}, r"events\[0\].remove: removes the last tie"),
    ],
)
def test_a_change_that_does_not_fit_the_drawn_network_ends_its_run_before_a_call(
    change: dict[str, Any], message: str
) -> None:
    experiment = load_experiment(_spec({"kind": "ties", "step": 9, **change}, interaction=RING))
    with pytest.raises(SpecError, match=message):
        assemble(experiment.runs[0], experiment.resources)
    with pytest.raises(SpecError, match=message):
        ended(experiment, "s.sqlite")


# -- where they are shown ------------------------------------------------------------------------------------


def test_preview_transcript_and_table_tell_of_events() -> None:
    experiment = load_experiment(FULL)
    assert preview(experiment).events[:3] == (
        "step 3: message, agents 0, 1, 2, 3: 'There is news.'",
        "step 2 to the end: zealot, agents 1: 'I am sure.'; 'Quite sure.'",
        "step 1 to the end: media, agents 0, 1, 2, 3, probability 0.5: 'The paper says so.'",
    )
    results = finished(FULL)
    told = transcript(results)
    name = results.agents.loc[results.agents["agent"] == 1, "name"].iloc[0]
    assert "\nevents: message at 3; zealot (1) at 2;" in told
    assert f"after reading {name} (event-1.0)" in told
    assert "after reading the message event-0" in told
    dropped = results.runs["dropped_turns"].mean()
    made = tables(results.runs, results.metrics)
    assert f"Events in 2 of 2 runs; they dropped {dropped:.1f} turns per run." in made[0].to_text()


def test_figures_over_time_mark_events() -> None:
    spec = {**_spec(), "sweep": {"events": [[], [NEWS, LEAVE]]}}
    results = finished(spec)
    runs = results.runs.set_index("cell")
    marks = ((3, "message"), (5, "leave (0)"))
    at = {cell: osim.plots.trajectory_data(results, run_id).events for cell, run_id in runs["run_id"].items()}
    assert at == {"events=none": (), "events=message at 3 + leave at 5": marks}
    assert osim.plots.ribbon_data(results).events == marks
    density = osim.plots.density_data(results).events
    assert sorted(density.values(), key=len) == [(), marks]
    ax = osim.plots.ribbons(results)
    assert [
        line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--" and len(set(line.get_xdata())) == 1
    ] == [3, 5]
    assert {"message", "leave (0)"} <= {text.get_text() for text in ax.texts}


def test_a_manifest_has_messages_by_content_and_gives_the_same_runs(tmp_path: Path) -> None:
    file = tmp_path / "news.yaml"
    file.write_text("messages: [One., Two.]\n")
    spec = {**_spec(), "sweep": {"events": [[], [{"kind": "message", "step": 2, "file": str(file)}]]}}
    experiment = load_experiment(spec)
    written = manifest_of(experiment)
    file.unlink()
    again = load_experiment(written)
    assert [run.run_id for run in again.runs] == [run.run_id for run in experiment.runs]
    by_place = {**_spec(NEWS), "sweep": [{"events.0.step": [2, 5]}, {"seed": [1]}]}
    experiment = load_experiment(by_place)
    assert [run.run_id for run in load_experiment(manifest_of(experiment)).runs] == [
        run.run_id for run in experiment.runs
    ]


def test_files_of_events_named_in_changes_start_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The specification is in another folder than the file that a change names."""
    (tmp_path / "specs").mkdir()
    (tmp_path / "news.txt").write_text("One.\n")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "specs" / "s.yaml"
    path.write_text("name: s\ntopic: {name: flat-earth}\ninteraction: {kind: dyadic, steps: 4}\n")
    found = load_experiment(path, ["events=[{kind: message, step: 1, file: news.txt}]"])
    parts = assemble(found.runs[0], found.resources)
    assert isinstance(parts.schedule, StaticSchedule)
    assert next(turn.reads for turn in parts.schedule.turns()) == (External("event-0"),)
    assert parts.events[0].texts == ("One.",)
