"""Networks whose nodes are names of personas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import opinionsim as osim
from opinionsim.assembly import assemble
from opinionsim.errors import SpecError
from opinionsim.networks import Network
from opinionsim.personas import Persona, Population
from opinionsim.schedules import Dyads, Setting
from opinionsim.specification import load_experiment, manifest
from tests.support.running import SMALL, carry_out, changed

NAMES = ["Ann Lee", "Bob Roy", "Cy Fox", "Di Ott"]
FAMILY = {"name": "family", "personas": [{"name": name} for name in NAMES]}
#: Whom each of them is joined to: a star around the last one, in another order than that of the personas.
TIES = [("Di Ott", "Cy Fox"), ("Di Ott", "Ann Lee"), ("Bob Roy", "Di Ott")]
STAR = {(0, 3), (1, 3), (2, 3)}


def _experiment(network: Any, **values: Any) -> Any:
    return load_experiment(changed(SMALL, population__personas=FAMILY, interaction__network=network, **values))


def _edges(experiment: Any) -> set[tuple[int, ...]]:
    (run,) = experiment.runs
    return {tuple(pair) for pair in assemble(run, experiment.resources).network.edges[0].tolist()}


def _in_a_file(form: str) -> dict[str, Any]:
    path = Path(f"ties.{form}").absolute()
    if form == "graphml":
        nx.write_graphml(nx.Graph(TIES), path)
    else:
        path.write_text("".join(f"{speaker}, {listener}\n" for speaker, listener in TIES), encoding="utf-8")
    return {"kind": "file", "path": str(path)}


@pytest.mark.parametrize("form", ["edges", "graphml", "csv"])
def test_a_name_is_the_agent_who_plays_the_persona(form: str) -> None:
    network = {"edges": TIES} if form == "edges" else _in_a_file(form)
    assert _edges(_experiment(network)) == STAR


def test_results_join_the_people_that_the_network_names() -> None:
    results = carry_out(_experiment({"edges": TIES}), "named.sqlite")[1]
    called = results.agents.set_index("agent")["name"]
    met = {frozenset((called[source], called[target])) for source, target in results.edges[["source", "target"]].values}
    assert met == {frozenset(pair) for pair in TIES}


def test_a_run_is_told_apart_by_whom_names_stand_for() -> None:
    named, numbered = _experiment({"edges": TIES}), _experiment({"edges": sorted(STAR)})
    swapped = _experiment({"edges": [("Ann Lee", name) for name in NAMES[1:]]})
    assert named.runs[0].run_id == numbered.runs[0].run_id != swapped.runs[0].run_id


def test_a_manifest_keeps_who_is_who() -> None:
    experiment = _experiment(_in_a_file("csv"))
    assert _edges(experiment) == STAR
    Path("manifest.json").write_text(json.dumps(manifest(experiment)), encoding="utf-8")
    Path("ties.csv").unlink()
    again = load_experiment("manifest.json")
    assert _edges(again) == STAR
    assert again.runs[0].run_id == experiment.runs[0].run_id


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"interaction__network": {"edges": [["Ann Lee", "Zoe Day"], ["Yan Low", "Bob Roy"]]}},
            "interaction.network: 'Zoe Day', 'Yan Low' are neither a number nor the name of an agent; nodes are the "
            "numbers 0 to 3, or names: 'Ann Lee', 'Bob Roy', 'Cy Fox', 'Di Ott'",
        ),
        ({"population__size": 3}, "interaction.network: named nodes need one name per agent"),
        ({"population__size": 5}, "there are 4 names and N = 5 agents. Number the nodes, or set N to 4"),
        ({"population__personas": {"name": "twins", "personas": [{"name": "Ann Lee"}] * 2}}, "duplicate 'Ann Lee'"),
    ],
)
def test_names_that_lead_to_no_one_agent_are_one_error(values: dict[str, Any], message: str) -> None:
    spec = changed(SMALL, population__personas=FAMILY, interaction__network={"edges": TIES})
    with pytest.raises(SpecError) as caught:
        load_experiment(changed(spec, **values))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_typing_error_is_named_although_it_makes_an_agent_too_many() -> None:
    with pytest.raises(SpecError, match="'Di Otto' is neither a number nor the name of an agent"):
        _experiment({"edges": [*TIES, ("Di Otto", "Ann Lee")]})


def test_two_people_of_one_name_make_a_network_of_names_unclear() -> None:
    people = Population((Persona("Ann"), Persona("Bob"), Persona("Ann")), (0, 0, 0))
    names = [persona.name for persona in people.personas]
    graph = nx.Graph([("Ann", "Bob")])
    with pytest.raises(SpecError, match="two agents have the name 'Ann'"):
        Network.of(graph, names=names)
    with pytest.raises(SpecError, match="nodes have names, such as 'Ann'"):
        osim.OpinionModel(people, schedule=Dyads(steps=3).schedule(Setting.of(graph)))
