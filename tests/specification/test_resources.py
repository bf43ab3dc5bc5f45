"""Resources: where references lead, and contents that stand in for all files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import validate
from opinionsim.networks import Network, NetworkKind
from opinionsim.specification import ExperimentSpec, Resources

PERSONAS = {
    "name": "pair",
    "personas": [
        {"name": "Zoe", "opinion": 1, "attributes": {"work": "baker", "age": "40"}, "background": "Bakes."},
        {"name": "Abe", "opinion": -1, "attributes": {"work": "cook", "age": "30"}},
    ],
}
TOPICS = {"topics": [{"name": "tea", "claims": {"truth": "tea is a drink", "falsehood": "tea is a stone"}}]}


def _write(folder: Path, name: str, value: Any) -> Path:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def _spec(**fields: Any) -> ExperimentSpec:
    given = {"name": "read", "topic": {"name": "flat-earth"}, "interaction": {"kind": "dyadic", "steps": 1}, **fields}
    return validate(ExperimentSpec, given)


def _people(personas: Any = None) -> Any:
    return _spec(population={} if personas is None else {"personas": personas}).population


def _topic(**fields: Any) -> Any:
    return _spec(topic=fields).topic


def _network(resources: Resources, path: str, size: int) -> Network:
    kind: NetworkKind = NetworkKind.read({"kind": "file", "path": path})
    return kind.build(size, np.random.default_rng(0), resources.network)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    _write(tmp_path, "people.json", PERSONAS)
    _write(tmp_path, "topics.json", TOPICS)
    _write(tmp_path, "posts.txt", "First post.\n\n  Second post.  \n")
    _write(tmp_path, "posts.yaml", "messages: [First post., Second post.]\n")
    _write(tmp_path, "ring.edges", "0 1\n1 2\n2 0\n")
    nx.write_graphml(nx.DiGraph([(0, 1), (1, 2)]), tmp_path / "arrows.graphml")
    return tmp_path


def _ask_all(resources: Resources) -> list[Any]:
    """The answer to every kind of question."""
    arrows = _network(resources, "arrows.graphml", 4)
    return [
        resources.personas(_people("people.json")),
        resources.personas(_people()),
        resources.topic(_topic(name="tea", file="topics.json")),
        resources.topic(_topic(name="flat-earth")),
        resources.pack("default").contents,
        resources.messages("posts.txt"),
        _network(resources, "ring.edges", 3).edges[0].tolist(),
        (arrows.directed, arrows.edges[0].tolist(), arrows.n),
    ]


def test_paths_start_from_the_folder_of_the_specification(folder: Path) -> None:
    people, study, tea, earth, pack, posts, ring, arrows = _ask_all(Resources(folder))
    assert [persona.name for persona in people.personas] == ["Zoe", "Abe"]
    assert len(study.personas) == 10
    assert tea.claim("truth").text == "tea is a drink"
    assert earth.claim("falsehood").text == "the Earth is flat"
    assert "pack.yaml" in pack
    assert posts == ("First post.", "Second post.")
    assert len(ring) == 3
    assert arrows == (True, [[0, 1], [1, 2]], 4)


def test_contents_stand_in_for_every_file(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    original = Resources(folder)
    answers = _ask_all(original)
    carried = json.loads(json.dumps(original.contents()))
    elsewhere = Resources.from_contents(carried, tmp_path_factory.mktemp("empty"))
    again = _ask_all(elsewhere)
    assert again == answers
    assert list(again[0].personas[0].attributes) == ["work", "age"]
    assert elsewhere.contents() == carried


def test_contents_win_over_files(folder: Path) -> None:
    original = Resources(folder)
    _ask_all(original)
    carried = original.contents()
    _write(folder, "posts.txt", "Something else.")
    assert Resources.from_contents(carried, folder).messages("posts.txt")[0] == "First post."
    assert Resources(folder).messages("posts.txt") == ("Something else.",)


def test_only_topics_in_use_are_carried(folder: Path) -> None:
    resources = Resources(folder)
    resources.topic(_topic(name="flat-earth"))
    assert [list(found) for found in resources.contents()["topics"].values()] == [["flat-earth"]]


def test_files_are_read_once(folder: Path) -> None:
    resources = Resources(folder)
    first = resources.personas(_people("people.json"))
    (folder / "people.json").unlink()
    assert resources.personas(_people("people.json")) == first


def test_what_a_specification_writes_out_needs_no_file() -> None:
    resources = Resources()
    assert [p.name for p in resources.personas(_people(PERSONAS)).personas] == ["Zoe", "Abe"]
    topic = resources.topic(_topic(definition=TOPICS["topics"][0]))
    assert topic.claim("falsehood").text == "tea is a stone"
    assert resources.messages(("Hello.",)) == ("Hello.",)
    assert resources.messages(("Hello.",)) == ("Hello.",)
    assert not any(resources.contents().values())


def test_both_forms_of_a_message_file_agree(folder: Path) -> None:
    resources = Resources(folder)
    assert resources.messages("posts.txt") == resources.messages("posts.yaml")


def test_weights_and_directions_of_a_network_are_kept(folder: Path, tmp_path: Path) -> None:
    nx.write_graphml(nx.DiGraph([(2, 0, {"weight": -0.5}), (0, 1)]), folder / "heavy.graphml")
    resources = Resources(folder)
    for size in (3, 5):
        network = _network(resources, "heavy.graphml", size)
        assert (network.n, network.directed) == (size, True)
        assert [each.tolist() for each in network.edges] == [[[0, 1], [2, 0]], [1.0, -0.5]]
    pinned = Resources.from_contents(resources.contents(), tmp_path / "elsewhere")
    again = _network(pinned, "heavy.graphml", 4)
    assert [each.tolist() for each in again.edges] == [[[0, 1], [2, 0]], [1.0, -0.5]]
    assert again.directed


def test_one_network_file_serves_populations_of_several_sizes(folder: Path) -> None:
    resources = Resources(folder)
    assert _network(resources, "ring.edges", 5).n == 5
    assert _network(resources, "ring.edges", 3).n == 3
    with pytest.raises(SpecError, match=r"agents must be 0\.\.1 \(N = 2\); got agent 2"):
        _network(resources, "ring.edges", 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "contains no messages; write one per line"),
        (b"\xff\xfe", "not a text file; expected UTF-8"),
    ],
)
def test_useless_message_files(tmp_path: Path, content: str | bytes, message: str) -> None:
    (tmp_path / "posts.txt").write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(SpecError, match=message):
        Resources(tmp_path).messages("posts.txt")


def test_references_that_lead_nowhere(tmp_path: Path) -> None:
    resources = Resources(tmp_path)
    with pytest.raises(SpecError, match=r"unknown persona set 'chuang' .did you mean chuang2024.*; valid: chuang2024"):
        resources.personas(_people("chuang"))
    with pytest.raises(SpecError, match=r"crowd\.yaml: no such file"):
        resources.personas(_people("crowd.yaml"))
    with pytest.raises(SpecError, match="unknown topic 'tea'; valid: flat-earth, t-rex"):
        resources.topic(_topic(name="tea"))
    with pytest.raises(SpecError, match=r"posts\.txt: no such file"):
        resources.messages("posts.txt")
    with pytest.raises(SpecError, match="no such file"):
        _network(resources, "none.edges", 3)
    with pytest.raises(SpecError, match="neither 'default', 'deliberation'"):
        resources.pack("nowhere")


def test_contents_are_checked() -> None:
    with pytest.raises(
        SpecError, match=r"contents: topic: unknown field \(did you mean topics\?\); valid: personas, topics"
    ):
        Resources.from_contents({"topic": {}})
    with pytest.raises(SpecError, match=r"contents: messages\.a: must be a mapping of fields; got 3"):
        Resources.from_contents({"messages": {"a": 3}})


def test_a_blank_message_in_a_file(tmp_path: Path) -> None:
    _write(tmp_path, "posts.yaml", "messages:\n- One.\n- ' '\n")
    with pytest.raises(SpecError, match=r"posts\.yaml:3: messages\[1\]: must not be blank"):
        Resources(tmp_path).messages("posts.yaml")
