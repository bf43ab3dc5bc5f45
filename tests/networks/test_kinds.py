"""What every kind of network does, those of users among them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from pydantic import Field, ValidationError

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import DocumentModel, validate
from opinionsim.networks import Network, NetworkField, NetworkKind, build_network
from opinionsim.registry import built_in, find, part, summary

KINDS = built_in("network")
#: What cannot be known before the draws.
BY_CHANCE = re.compile("has no edge|the degrees that were drawn")

small = st.integers(1, 8)
chances = st.floats(0, 1)
agents = st.integers(0, 7)
FIELDS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "complete": st.just({}),
    "path": st.just({}),
    "star": st.just({}),
    "ring": st.fixed_dictionaries({}, optional={"k": small.map(lambda half: 2 * half)}),
    "lattice": st.fixed_dictionaries(
        {"periodic": st.booleans(), "neighbours": st.sampled_from([4, 8])}, optional={"sides": st.tuples(small, small)}
    ),
    "watts-strogatz": st.fixed_dictionaries({"k": small.map(lambda half: 2 * half), "p": chances}),
    "erdos-renyi": st.one_of(
        st.fixed_dictionaries({"p": st.floats(0, 1, exclude_min=True)}),
        st.fixed_dictionaries({"mean_degree": st.floats(0, 12, exclude_min=True)}),
    ),
    "barabasi-albert": st.fixed_dictionaries({"m": small}),
    "random-regular": st.fixed_dictionaries({"d": small}),
    "stochastic-block-model": st.one_of(
        st.fixed_dictionaries(
            {"shares": st.lists(st.floats(0.1, 9), min_size=1, max_size=3), "p_within": chances, "p_between": chances}
        ),
        st.fixed_dictionaries(
            {
                "sizes": st.tuples(agents, agents),
                "p": st.tuples(chances, chances, chances).map(lambda p: ((p[0], p[1]), (p[1], p[2]))),
            }
        ),
    ),
    "configuration": st.one_of(
        st.fixed_dictionaries({"degrees": st.lists(agents, min_size=2, max_size=10)}),
        st.fixed_dictionaries({"exponent": st.floats(-3, 4), "min_degree": small}),
        small.map(lambda d: {"exponent": 2.5, "min_degree": d, "max_degree": d}),
    ),
    "edges": st.fixed_dictionaries(
        {"edges": st.lists(st.tuples(agents, agents), min_size=1, max_size=6), "directed": st.booleans()}
    ),
}
kinds = st.sampled_from(sorted(FIELDS)).flatmap(lambda kind: FIELDS[kind].map(lambda given: {"kind": kind, **given}))


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def _edges(network: Network) -> tuple[Any, ...]:
    pairs, weights = network.edges
    return network.n, network.complete, network.directed, pairs.tolist(), None if weights is None else weights.tolist()


def _refusal(ask: Callable[[], object]) -> str:
    try:
        ask()
    except SpecError as error:
        return str(error)
    return ""


def test_every_kind_is_among_those_tested() -> None:
    assert {*FIELDS, "file"} == set(KINDS)
    assert all(summary(kind) for kind in KINDS.values())


@given(kinds)
def test_fields_come_back_as_they_were(given: dict[str, Any]) -> None:
    kind = NetworkKind.read(given)
    assert type(kind) is KINDS[given["kind"]].target
    for dump in (kind.model_dump(mode="json"), kind.model_dump(), kind.stated(), json.loads(kind.model_dump_json())):
        assert NetworkKind.read(dump) == kind
    assert KINDS[given["kind"]].target(**kind.model_dump()) == kind


@given(kinds, st.integers(2, 10), st.integers(0, 2**32 - 1))
def test_what_is_refused_beforehand_is_what_cannot_be_built(given: dict[str, Any], size: int, seed: int) -> None:
    kind = NetworkKind.read(given)
    refused = _refusal(lambda: kind.check(size))
    built = _refusal(lambda: kind.build(size, _rng(seed)))
    assert built == refused or (not refused and BY_CHANCE.search(built))
    if problem := kind.problem(size):
        assert problem == refused
    assert _refusal(lambda: build_network(given, size, seed)) == (built and f"network: {built}")


@given(kinds, st.integers(2, 10), st.integers(0, 2**32 - 1))
def test_equal_seeds_give_equal_networks_on_all_agents(given: dict[str, Any], size: int, seed: int) -> None:
    kind = NetworkKind.read(given)
    assume(not _refusal(lambda: kind.build(size, _rng(seed))))
    network = kind.build(size, _rng(seed))
    assert network.n == size
    assert _edges(network) == _edges(kind.build(size, _rng(seed))) == _edges(build_network(given, size, seed))


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "complete"},
        {"kind": "path"},
        {"kind": "star"},
        {"kind": "ring", "k": 4},
        {"kind": "lattice", "sides": [2, 5], "neighbours": 8},
        {"kind": "watts-strogatz", "k": 4, "p": 0.5},
        {"kind": "erdos-renyi", "mean_degree": 3},
        {"kind": "barabasi-albert", "m": 1},
        {"kind": "random-regular", "d": 3},
        {"kind": "stochastic-block-model", "shares": [1, 1], "p_within": 1, "p_between": 0},
        {"kind": "configuration", "exponent": 2.5, "max_degree": 4},
    ],
    ids=lambda given: given["kind"],
)
def test_kinds_that_are_drawn_need_a_size_and_enter_identities_as_stated(given: dict[str, Any]) -> None:
    kind = NetworkKind.read(given)
    assert _refusal(lambda: kind.build(None, _rng())) == f"'{kind.kind}' needs n, the number of agents"
    assert kind.build(10, _rng()).n == 10
    assert kind.identity(10) == given


def test_what_is_given_enters_identities_by_its_edges(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 1 2\n1 2 1\n", encoding="utf-8")
    file = NetworkKind.read({"kind": "file", "path": str(tmp_path / "a.txt")})
    edges = NetworkKind.read({"edges": [[2, 1], [0, 1]], "weights": [1, 2]})
    assert file.identity(5) == edges.identity(5)
    assert set(file.identity(5)) == {"edges"}
    assert edges.identity(5) != NetworkKind.read({"edges": [[2, 1], [0, 1]]}).identity(5)
    assert edges.identity(5) != edges.model_copy(update={"directed": True}).identity(5)


def test_files_are_read_as_the_caller_says() -> None:
    file = NetworkKind.read({"kind": "file", "path": "friends", "directed": True})
    asked = []

    def read(path: str, options: Mapping[str, Any]) -> Network:
        asked.append((path, options))
        return Network.from_edges([[0, 1]])

    assert _edges(file.build(4, _rng(), read)) == (4, False, False, [[0, 1]], None)
    assert file.identity(4, read) == NetworkKind.read({"edges": [[0, 1]]}).identity(4)
    assert "agents must be 0..2 (N = 3); got agent 3" in _refusal(
        lambda: file.check(3, lambda *_: Network.from_edges([[0, 3]]))
    )
    assert asked == [("friends", {"directed": True})] * 2


# -- as a field of a document ----------------------------------------------------------------------------------------


class _Holder(DocumentModel):
    network: NetworkField = Field("complete", validate_default=True)


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        ("ring", {"kind": "ring"}),
        ({"edges": [[0, 1]]}, {"kind": "edges", "edges": [[0, 1]]}),
        ({"kind": "edge-list", "edges": [[0, 1]]}, {"kind": "edges", "edges": [[0, 1]]}),
    ],
)
def test_short_forms(spelled: Any, meant: dict[str, Any]) -> None:
    short, long = (validate(_Holder, {"network": network}) for network in (spelled, meant))
    assert short == long
    assert validate(_Holder, short.model_dump(mode="json")) == short


def test_a_document_holds_any_kind() -> None:
    held = validate(_Holder, {"network": {"kind": "lattice", "sides": [2, 3]}})
    assert held.model_dump(exclude_defaults=True) == {"network": {"sides": (2, 3)}}
    assert held.model_dump(mode="json")["network"]["sides"] == [2, 3]
    assert _Holder().network == NetworkKind.read("complete")


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("rign", "network: unknown network 'rign' (did you mean ring?)"),
        ({"kind": "ring", "K": 2}, "network.K: unknown field; valid: kind, k"),
        ({"edges": [[0, 1]], "weight": [1]}, "network.weight: unknown field (did you mean weights?)"),
        ({"kind": "ring", "k": 3}, "network.k: must be a multiple of 2; got 3"),
        ({"kind": "lattice", "neighbours": 5}, "network.neighbours: unknown value 5; valid: 4 or 8"),
        ({"kind": "erdos-renyi"}, "network: set either p"),
        ({"k": 2}, "network: kind is required but missing"),
        (5, "network: must be a mapping of fields; got 5"),
    ],
)
def test_bad_fields_are_named(network: Any, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        validate(_Holder, {"network": network})
    assert message in str(caught.value)


def test_the_schema_has_every_kind() -> None:
    names, paths, *forms, outside = NetworkKind.model_json_schema()["anyOf"]
    assert names["enum"] == ["complete", "lattice", "path", "ring", "star"]
    assert re.search(paths["pattern"], "package.module:Name")
    assert outside["required"] == ["kind"]
    found = {each["properties"].pop("kind")["const"]: each["properties"] for each in forms}
    assert set(found) == set(KINDS)
    for name, fields in found.items():
        assert list(fields) == [field for field in KINDS[name].target.model_fields if field != "kind"]
        assert all(field["description"] for field in fields.values())


# -- of a user's own -------------------------------------------------------------------------------------------------


@part("network", version=2)
class Wheel(NetworkKind):
    """A ring around a hub."""

    spokes: Annotated[int, Field(ge=1)] = 1

    def problem(self, size: int) -> str:
        return f"a wheel needs 4 agents; N = {size}" if size < 4 else ""

    def pairs(self, size: int, rng: np.random.Generator) -> Any:
        return nx.wheel_graph(size)


@part("network")
class Odd(NetworkKind):
    """A network of given pairs."""

    made: ClassVar[Any] = None

    def pairs(self, size: int, rng: np.random.Generator) -> Any:
        return self.made(size)


def test_a_kind_of_ones_own_is_a_kind() -> None:
    name = f"{__name__}:Wheel"
    for network in (name, {"kind": name, "spokes": 2}):
        kind = validate(_Holder, {"network": network}).network
        assert isinstance(kind, Wheel)
        assert nx.is_isomorphic(kind.build(6, _rng()).graph(), nx.wheel_graph(6))
        assert _refusal(lambda kind=kind: kind.build(3, _rng())) == "a wheel needs 4 agents; N = 3"
        assert kind.identity(6) == {"kind": name} | ({} if kind.spokes == 1 else {"spokes": 2})
    assert build_network({"kind": name}, 6).n == 6
    assert build_network(Wheel(), 6).n == 6
    assert find("network", name).outside
    with pytest.raises(SpecError, match=r"^network\.spokes: must be at least 1; got 0"):
        build_network({"kind": name, "spokes": 0}, 6)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda n: nx.path_graph(n - 1), "it has 4 agents, but 5 are needed"),
        (lambda n: nx.empty_graph(n), "the network of 5 agents has no edge"),
        (lambda n: (np.arange(n), np.arange(1, n + 1)), "edges must connect agents 0..4 (N = 5); got agent 5"),
        (lambda n: (np.arange(n), np.arange(n)), "an agent cannot be connected to itself"),
        (lambda n: (np.arange(n), np.arange(n - 1)), f"network {__name__}:Odd failed with ValueError"),
        (lambda n: (np.arange(n) + 0.5, np.arange(n)), "edges must connect agents with the numbers"),
        (lambda n: 1 / 0, f"network {__name__}:Odd failed with ZeroDivisionError: division by zero"),
        (lambda n: "all", "must be a Network, a number of agents"),
    ],
)
def test_what_a_kind_of_ones_own_makes_is_checked(
    made: Callable[[int], Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Odd, "made", staticmethod(made))
    assert message in _refusal(lambda: Odd().build(5, _rng()))
    assert message in _refusal(lambda: build_network({"kind": f"{__name__}:Odd"}, 5))


@pytest.mark.parametrize(
    ("made", "directed", "edges"),
    [
        (lambda n: (np.array([0, 1]), np.array([1, 2])), False, [[0, 1], [1, 2]]),
        (lambda n: nx.DiGraph([(0, 1), (1, 2), (2, 0)]), True, [[0, 1], [1, 2], [2, 0]]),
        (lambda n: [[0, 1], [1, 2]], False, [[0, 1], [1, 2]]),
        (lambda n: Network.from_edges([[0, 1]], n), False, [[0, 1]]),
    ],
)
def test_what_pairs_may_be(
    made: Callable[[int], Any], directed: bool, edges: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Odd, "made", staticmethod(made))
    assert _edges(Odd().build(3, _rng())) == (3, False, directed, edges, None)


def test_a_class_that_is_no_kind_of_network_is_refused() -> None:
    @part("network", name="no-kind", version=1)
    class _NoKind(DocumentModel):
        def build(self) -> None:
            """Nothing."""

    with pytest.raises(ValidationError, match=r"must be a class that inherits from opinionsim\.networks\.NetworkKind"):
        NetworkKind.read("no-kind")


# -- in the documentation --------------------------------------------------------------------------------------------


def _row(name: str) -> str:
    """A line of the table of kinds."""
    kind, fields = KINDS[name].target, []
    described = kind.model_json_schema()["properties"]
    for field, info in kind.model_fields.items():
        default = "" if info.is_required() or info.default is None else f" = {json.dumps(info.default)}"
        fields.append(f"`{field}`{default}: {' '.join(str(described[field].get('description')).split())}")
    what = " ".join((kind.__doc__ or "").split())
    linked = re.sub(r"doi:(\S+\w)", lambda doi: f"[{doi[0]}](https://doi.org/{quote(doi[1])})", what)
    return f"| `{name}` | {linked} | {'<br>'.join(fields[1:])} |"


def test_the_table_of_the_documentation_is_that_of_the_registry(checkout: Path) -> None:
    text = (checkout / "docs" / "networks.md").read_text(encoding="utf-8")
    table = "\n".join(["| `kind` | What it is | Parameters |", "|---|---|---|", *map(_row, sorted(KINDS))])
    assert table in text, f"docs/networks.md must hold this table:\n{table}"
