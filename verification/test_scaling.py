"""What docs/scaling.md states is what its script finds, and the script's short cuts are exact."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from opinionsim.engine import critical_path
from opinionsim.foundation.streams import stream
from opinionsim.memory import estimated_tokens
from opinionsim.networks import Neighbours, build_network
from opinionsim.schedules import GivenDyads

_TOP = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def scaling() -> Any:
    name = "docs_images_scaling"
    spec = importlib.util.spec_from_file_location(name, _TOP / "docs" / "images" / "scaling.py")
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[name]


@pytest.fixture(scope="module")
def small(scaling: Any) -> Any:
    """Shapes at the sizes that are quick."""
    return scaling.shapes(scaling.QUICK)


@pytest.mark.parametrize("network", ["complete", "ring", "watts-strogatz", "erdos-renyi", "barabasi-albert", "star"])
@pytest.mark.parametrize("calls_per_event", [0, 1, 2])
@pytest.mark.parametrize("n_agents", [10, 57])
def test_recursion_is_that_of_the_engine(scaling: Any, network: str, calls_per_event: int, n_agents: int) -> None:
    graph = build_network(scaling.NETWORKS[network][0](n_agents), n_agents, 3)
    pairs = Neighbours(graph).draw_pairs(8 * n_agents, stream(5, "schedule"))
    widths = scaling.in_flight(pairs, n_agents, calls_per_event)
    path = critical_path(GivenDyads(graph, pairs), calls_per_event=calls_per_event)  # type: ignore[arg-type]
    assert (len(widths), int(widths.sum()), int(widths.max())) == (path.length, path.calls, path.peak_width)


def test_recursion_goes_on_over_portions(scaling: Any) -> None:
    # One pair that talks for longer than a portion: with one agent always speaking, each step adds one call.
    steps = (1 << 16) + 10
    widths = scaling.in_flight(np.tile([0, 1], (steps, 1)), 2, 0)
    assert len(widths) == steps + 1
    assert widths.sum() == 2 * steps


@pytest.mark.parametrize("calls_per_event", [0, 1])
def test_bound_holds_as_often_as_it_says(scaling: Any, calls_per_event: int) -> None:
    n_agents, steps, odds = 20, 100, 0.5
    bound, drawn = scaling.depth_bound(n_agents, steps, calls_per_event, odds), Neighbours(n_agents)
    depths = [
        len(scaling.in_flight(drawn.draw_pairs(steps, stream(seed, "schedule")), n_agents, calls_per_event))
        for seed in range(200)
    ]
    assert np.mean(np.array(depths) > bound) <= odds
    assert bound < scaling.depth_bound(n_agents, steps, calls_per_event, 0.01)


@pytest.mark.parametrize(("calls_per_event", "speed"), [(0, 7.99), (1, 13.64)])
def test_depth_an_exposure_tends_to_the_front_speed(scaling: Any, calls_per_event: int, speed: float) -> None:
    long = 10**5
    bound = scaling.depth_bound(10**6, long * 10**6, calls_per_event)
    assert bound / long == pytest.approx(speed, rel=0.005)


def _star_depth_bounds(n_agents: int, steps: int, calls_per_event: int) -> tuple[int, int]:
    """The centre acts in every step; a leaf's post adds a call only where the leaf acted just before."""
    own = 1 + calls_per_event
    return own * steps, (own + 1) * steps + 1


@pytest.mark.parametrize("calls_per_event", [0, 1])
def test_star_is_as_deep_as_its_centre_is_busy(scaling: Any, calls_per_event: int) -> None:
    pairs = Neighbours(build_network("star", 500)).draw_pairs(5000, stream(1, "schedule"))
    depth = len(scaling.in_flight(pairs, 500, calls_per_event))
    low, high = _star_depth_bounds(500, 5000, calls_per_event)
    assert low <= depth <= high
    assert depth == pytest.approx(low, rel=0.01)


@pytest.mark.parametrize("network", ["complete", "barabasi-albert"])
def test_remembered_events_in_closed_form(scaling: Any, network: str) -> None:
    """Only events have a size, so that the input counts the remembered events in all prompts."""
    n_agents, steps = 30, 300
    zero = dict.fromkeys(scaling.PromptSizes.__dataclass_fields__, 0.0)
    events = scaling.PromptSizes(**{**zero, "wrote": 1.0, "reviewed": 1.0})
    graph = build_network(scaling.NETWORKS[network][0](n_agents), n_agents, 1)
    degrees = np.array([degree for _, degree in graph.graph().degree()])
    concentration = float(((degrees / degrees.sum()) ** 2).sum())
    counted = []
    for seed in range(100):
        before = np.zeros(n_agents, dtype=int)
        total = 0
        for speaker, listener in Neighbours(graph).draw_pairs(steps, stream(seed, "schedule")).tolist():
            total += before[speaker] + before[listener]
            before[speaker] += 1
            before[listener] += 1
        counted.append(total)
    expected = scaling.expected_tokens(events, "cumulative", n_agents, steps, concentration).input
    error = np.std(counted) / np.sqrt(len(counted))
    assert abs(np.mean(counted) - expected) < 4 * error


@pytest.mark.parametrize("memory", ["cumulative", "reflective"])
def test_tokens_of_a_scripted_run_in_closed_form(scaling: Any, memory: str) -> None:
    """Ten agents and another length than the one the sizes were taken from."""
    steps = 160
    records = scaling.prompts_of_a_run(memory, steps)
    sent = sum(estimated_tokens(message.content) for record in records for message in record.prompt)
    received = sum(estimated_tokens(record.text) for record in records)
    expected = scaling.expected_tokens(scaling.scripted_sizes(), memory, 10, steps)
    assert sent == pytest.approx(expected.input, rel=0.05)
    assert received == pytest.approx(expected.output, rel=0.05)
    assert _fresh(records) == pytest.approx(expected.fresh, rel=0.05)


def _fresh(records: list[Any]) -> int:
    """Tokens of messages that no earlier prompt of the agent holds at the same place after the same messages."""
    seen: set[tuple[Any, ...]] = set()
    fresh = 0
    for record in records:
        contents = tuple(message.content for message in record.prompt)
        for end in range(1, len(contents) + 1):
            prefix = (record.agent, contents[:end])
            if prefix not in seen:
                fresh += estimated_tokens(contents[end - 1])
                seen.add(prefix)
    return fresh


def test_cumulative_input_grows_with_the_square_of_exposures(scaling: Any) -> None:
    sizes, n_agents = scaling.scripted_sizes(), 1000
    at = {tau: scaling.expected_tokens(sizes, "cumulative", n_agents, tau * n_agents).input for tau in (100, 200, 400)}
    second = at[400] - 2 * at[200]
    assert second == pytest.approx((sizes.wrote + sizes.reviewed) * n_agents * (400**2 - 2 * 200**2), rel=1e-6)


def test_tables_of_the_page_are_what_the_script_prints(scaling: Any, small: Any) -> None:
    page = (_TOP / "docs" / "scaling.md").read_text(encoding="utf-8")
    made = scaling.tables(small, scaling.QUICK)
    assert set(made) | {"growth"} == set(_marks(page))
    for name, table in made.items():
        stated = page.partition(f"<!-- table: {name} -->\n")[2].partition("\n\n")[0].splitlines()
        printed = scaling.markdown(table).splitlines()
        assert stated[: len(printed)] == printed, f"{name}: run python docs/images/scaling.py --update"


def _marks(page: str) -> list[str]:
    return [line[12:-4] for line in page.splitlines() if line.startswith("<!-- table: ")]


def test_update_replaces_tables_only(scaling: Any) -> None:
    table = [["a"], ["1"]]
    page = "before\n\n<!-- table: x -->\n| old |\n| --- |\n\nafter\n"
    assert scaling.updated(page, {"x": table}) == "before\n\n<!-- table: x -->\n| a |\n| --- |\n| 1 |\n\nafter\n"
    with pytest.raises(SystemExit, match="'y'"):
        scaling.updated(page, {"y": table})
