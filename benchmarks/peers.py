"""Speed of classic models beside other packages on the same work: NDlib, cnvm, doces, and a plain loop in Mesa.

Rates are events a second, of one thread, the best of several. An event is what the peer does at a time: of NDlib's
voter families one agent or one group; of its other models, as of cnvm's unit of time, N of them are a step. NDlib's
Hegselmann-Krause counts as many agents as it works out, though it keeps one change of them. doces simulates no model
that is simulated here: in one iteration of it an agent posts, those tied to it move by a fixed amount or not at all,
and each may move its tie. Kan, Feng and Porter's model, which is compared, moves at most one tie in an event and lets
two agents meet. The ratio says how much co-evolution a second buys, not that one does the other's work faster; the
ratio of agents who hear something stands beside it. Peers go into a virtual environment of their own, with what NDlib
needs and does not declare. A missed bar makes the exit code 1.

Run: python benchmarks/peers.py [--quick] [--environment FOLDER] [--json FILE]
"""

# Mesa is untyped.
# mypy: disable-error-code="misc, no-any-return, no-untyped-call"

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mesa
import numpy as np

from opinionsim.classic import Batch, find_model, set_up
from opinionsim.networks import Network, build_network
from opinionsim.opinions import draw_initial

#: A sparse network of mean degree 10.
_SPARSE = {"kind": "watts-strogatz", "k": 10, "p": 0.1}
_PEERS = ("ndlib==6.0.1", "six", "scikit-learn", "cnvm==0.2.0", "doces==0.1.0")
#: The least ratio to cnvm.
_BAR = 10


@dataclass(frozen=True)
class Work:
    """A model on a network, here and as a class of NDlib, whose iterations are N events or one."""

    model: str
    peer: str
    settings: dict[str, Any] = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=dict)
    sweeps: bool = False
    sparse: bool = True
    n: int = 1000

    @property
    def name(self) -> str:
        """What it is, in words."""
        return f"{self.model} ({self.peer}), {'k = 10' if self.sparse else 'complete'}, N = {self.n:,}"

    @property
    def network(self) -> Network:
        """The network it is carried out on."""
        return build_network(_SPARSE, self.n, 1) if self.sparse else Network.of(self.n)


_PAIR = {"pick": "listener"}
_CONFIDENT = {"epsilon": 0.2, "threshold": "<"}
_BIASED = {**_CONFIDENT, "gamma": 1.5}
WORKS = (
    Work("voter", "VoterModel", _PAIR, {"fraction_infected": 0.5}),
    Work("voter", "VoterZealotModel", {**_PAIR, "zealot": [1] * 10 + [0] * 990}, {"fraction_infected": 0.5}),
    Work("q-voter", "QVoterModel", {"q": 4}, {"fraction_infected": 0.5, "q": 4}),
    Work("majority", "MajorityRuleModel", {"r": 5, "ties": "bias"}, {"fraction_infected": 0.5, "q": 5}, sparse=False),
    Work("sznajd", "SznajdModel", {}, {"fraction_infected": 0.5}),
    Work("deffuant", "AlgorithmicBiasModel", {**_PAIR, **_CONFIDENT}, {"epsilon": 0.2, "gamma": 0}, True),
    Work("algorithmic-bias", "AlgorithmicBiasModel", _BIASED, {"epsilon": 0.2, "gamma": 1.5}, True),
    Work("algorithmic-bias", "AlgorithmicBiasModel", _BIASED, {"epsilon": 0.2, "gamma": 1.5}, True, sparse=False),
    Work("algorithmic-bias", "AlgorithmicBiasMediaModel", {**_BIASED, "media": 0.3, "media_opinions": [0.5]},
         {"epsilon": 0.2, "gamma": 1.5, "gamma_media": 1.5, "p": 0.3, "k": 1}, True),
    Work("hegselmann-krause", "HKModel", {"epsilon": 0.2}, {"epsilon": 0.2}, True, sparse=False),
    Work("weighted-hegselmann-krause", "WHKModel", {"epsilon": 0.32, "threshold": "<"}, {"epsilon": 0.32}, True),
    Work("attraction-repulsion", "ARWHKModel", {"epsilon": 0.32, "threshold": "<"},
         {"epsilon": 0.32, "method_variant": 3}, True),
    Work("friedkin-johnsen", "FJModel", {"susceptibility": 0.9}, {}, True),
    Work("altafini", "AltafiniModel", {"self_weight": 0}, {}, True),
    Work("cognitive", "CognitiveOpDynModel", {"information": [0.15]},
         {"I": 0.15, "T_range_min": 0, "T_range_max": 1, "B_range_min": 0, "B_range_max": 1,
          "R_fraction_negative": 1 / 3, "R_fraction_neutral": 1 / 3, "R_fraction_positive": 1 / 3}, True),
    Work("deffuant", "AlgorithmicBiasModel", {**_PAIR, **_CONFIDENT}, {"epsilon": 0.2, "gamma": 0}, True, n=10_000),
)  # fmt: skip
_NOISE, _VOTERS, _TIED = 0.01, 10_000, 1000

#: Runs in the peers' environment: reads what to do as JSON, prints events a second by name, as JSON.
_DRIVER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import networkx as nx
import numpy as np

given = json.load(sys.stdin)
found = {}


def best(work, events):
    work()
    rates = []
    for _ in range(3):
        began, done = time.perf_counter(), 0
        while time.perf_counter() - began < given["seconds"]:
            work()
            done += events
        rates.append(done / (time.perf_counter() - began))
    return max(rates)


import ndlib.models.ModelConfig as configurations
import ndlib.models.opinions as opinions

for work in given["works"]:
    n = work["n"]
    graph = nx.watts_strogatz_graph(n, 10, 0.1, seed=1) if work["sparse"] else nx.complete_graph(n)
    model, configuration = getattr(opinions, work["peer"])(graph), configurations.Configuration()
    for name, value in work["given"].items():
        configuration.add_model_parameter(name, value)
    if work["peer"] in ("WHKModel", "ARWHKModel"):
        for edge in graph.edges:
            configuration.add_edge_configuration("weight", edge, 0.1)
    if work["peer"] == "AltafiniModel":
        for edge in graph.edges:
            configuration.add_edge_configuration("sign", edge, 1)
    if work["peer"] == "VoterZealotModel":
        for node in range(n):
            configuration.add_node_configuration("zealot", node, int(node < 10))
    model.set_initial_status(configuration)
    model.iteration(node_status=False)
    found[work["name"]] = best(lambda: model.iteration(node_status=False), n if work["sweeps"] else 1)

import cnvm

noise, n = given["noise"], given["voters"]
for name, graph in (("complete", None), ("k = 10", nx.watts_strogatz_graph(n, 10, 0.1, seed=1))):
    rates = np.array([[0, noise / 2], [noise / 2, 0]])
    model = cnvm.CNVM(cnvm.Parameters(num_opinions=2, num_agents=n, network=graph, r=1 - noise, r_tilde=rates))
    found["cnvm, " + name] = best(lambda: model.simulate(20, len_output=2), 20 * n)

import doces

n = given["tied"]
edges = np.array(nx.watts_strogatz_graph(n, 10, 0.1, seed=1).edges)
model = doces.Opinion_dynamics(n, edges, directed=False, verbose=False)
start, steps = np.random.default_rng(1).uniform(-1, 1, n), 200_000


def post():
    model.simulate_dynamics(
        steps, 0.0, 0.1, doces.UNIFORM, doces.UNIFORM, b=start, rewire=True, verbose=False, rand_seed=1
    )


found["doces"] = best(post, steps)
print(json.dumps(found))
"""


class Person(mesa.Agent):
    """Holds an opinion, and knows whom it hears."""

    def __init__(self, model: mesa.Model, opinion: float) -> None:
        super().__init__(model)
        self.opinion = opinion
        self.heard: list[Person] = []

    def meet(self) -> None:
        """Deffuant: both move closer if they are close."""
        other = self.random.choice(self.heard)
        gap = other.opinion - self.opinion
        if abs(gap) < 0.2:
            self.opinion += 0.5 * gap
            other.opinion -= 0.5 * gap


class Society(mesa.Model):
    """Everybody acts once a step, in random order."""

    def __init__(self, work: Work) -> None:
        super().__init__(seed=1)
        network = work.network
        self.people = [Person(self, value) for value in np.random.default_rng(1).random(work.n).tolist()]
        for listener, speaker in zip(network.listeners.tolist(), network.speakers.tolist(), strict=True):
            self.people[listener].heard.append(self.people[speaker])

    def step(self) -> None:
        """A sweep."""
        self.agents.shuffle_do("meet")


def _rate(model: str, network: Network, settings: dict[str, Any], seconds: float, steps: int = 50) -> float:
    """Events a second here, from the start that a run has, so that none is timed at rest; setting up included."""
    found = find_model(model)
    given = {name: np.array(value) if isinstance(value, list) else value for name, value in settings.items()}
    setup = set_up(found, network, settings=given)
    start = draw_initial(
        "uniform", np.random.default_rng(1).random(network.n), setup.range, discrete=found.kind == "discrete"
    )
    Batch(setup, start[None], 1).advance(1)
    least, until = float("inf"), time.perf_counter() + 3 * seconds
    while time.perf_counter() < until:
        began = time.perf_counter()
        Batch(setup, start[None], 1).advance(steps)
        least = min(least, time.perf_counter() - began)
    return steps * network.n / least


def _theirs(folder: Path, seconds: float) -> dict[str, float]:
    """Events a second of the peers by name of the work."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        _quietly([sys.executable, "-m", "venv", str(folder)])
    _quietly([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *_PEERS])
    works = [
        {"name": work.name, "peer": work.peer, "given": work.given, "sweeps": work.sweeps, "sparse": work.sparse,
         "n": work.n}
        for work in WORKS
    ]  # fmt: skip
    given = {"works": works, "seconds": seconds, "noise": _NOISE, "voters": _VOTERS, "tied": _TIED}
    rates: dict[str, float] = json.loads(_quietly([str(python), "-c", _DRIVER], json.dumps(given)).splitlines()[-1])
    return rates


def _quietly(command: list[str], given: str | None = None) -> str:
    """What a command prints."""
    return subprocess.run(command, input=given, check=True, capture_output=True, text=True, timeout=1800).stdout


def main() -> None:
    """Print every rate beside that of the peer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="shorter measurements")
    parser.add_argument("--environment", type=Path, metavar="FOLDER", help="keep the peers' environment, or use it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rates to a file")
    options = parser.parse_args()
    seconds, rows, missed = 0.3 if options.quick else 1.0, [], []
    print(f"load {os.getloadavg()[0]:.2f}, {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as temporary:
        theirs = _theirs(options.environment or Path(temporary) / "peers", seconds)

    def told(name: str, own: float, peer: float, bar: float = 0.0) -> None:
        ratio = own / peer
        verdict = "" if not bar else f"  [bar >= {bar:g} x: {'met' if ratio >= bar else 'MISSED'}]"
        print(f"{name:74s} {own:9.3g} {peer:9.3g} {ratio:11,.1f} x{verdict}", flush=True)
        rows.append({"name": name, "own": own, "peer": peer, "ratio": ratio, "bar": bar})
        if ratio < bar:
            missed.append(name)

    print(f"{'events a second':74s} {'here':>9s} {'peer':>9s}")
    for work in WORKS:
        # Hegselmann-Krause comes to rest within a few steps.
        steps = 10 if work.model == "hegselmann-krause" else 50
        told(work.name, _rate(work.model, work.network, work.settings, seconds, steps), theirs[work.name])
    for name, network in (("complete", Network.of(_VOTERS)), ("k = 10", build_network(_SPARSE, _VOTERS, 1))):
        own = _rate("noisy-voter", network, {"noise": _NOISE, **_PAIR}, seconds)
        told(f"noisy-voter (cnvm), {name}, N = {_VOTERS:,}", own, theirs[f"cnvm, {name}"], _BAR)
    own = _rate("kan-feng-porter", build_network(_SPARSE, _TIED, 1), {}, seconds)
    told(f"kan-feng-porter (doces: another model), k = 10, N = {_TIED:,}", own, theirs["doces"])
    told("the same, by agents who hear something: 2 an event here, 10 there", 2 * own, 10 * theirs["doces"])
    work = WORKS[-1]
    society = Society(work)
    society.step()
    began = time.perf_counter()
    for _ in range(5):
        society.step()
    plain = 5 * work.n / (time.perf_counter() - began)
    own = _rate(work.model, work.network, {**work.settings, "order": "permutation"}, seconds)
    told(f"deffuant in random order (plain loop in Mesa {mesa.__version__}), k = 10, N = {work.n:,}", own, plain)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    if missed:
        raise SystemExit("missed: " + "; ".join(missed))


if __name__ == "__main__":
    main()
