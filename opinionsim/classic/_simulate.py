"""Simulating classic models."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.classic._declaration import ClassicModel
from opinionsim.classic._initial import drawn_rows, drawn_traits
from opinionsim.classic._registry import find_model
from opinionsim.classic._simulated import Trajectories
from opinionsim.classic.kernels._process import Batch, Setup, check_opinions, check_steps, set_up
from opinionsim.errors import SpecError, whole_number
from opinionsim.foundation.streams import stream
from opinionsim.networks import Network, build_network
from opinionsim.opinions import is_distribution

#: Steps where none are given.
_STEPS = 100
#: Agents where neither a network nor opinions say how many there are.
_AGENTS = 100

#: Bytes of recorded opinions above which a simulation is refused: a slip of the finger, or a run to be thinned out.
_MOST_RECORDED = 16 * 2**30


def simulate(
    model: str | ClassicModel,
    network: Any = None,
    initial: ArrayLike | str | Mapping[str, Any] = "uniform",
    steps: int | None = None,
    seed: int = 0,
    *,
    n: int | None = None,
    replicates: int = 1,
    replicate: int = 0,
    until: Any = None,
    record_every: int = 1,
    pairs: ArrayLike | None = None,
    range: tuple[float, float] | None = None,
    isolates: str = "error",
    dtype: Any = "float64",
    threads: int | None = None,
    machine: bool = True,
    **settings: Any,
) -> Trajectories:
    """Simulate a classic opinion model.

    Parameters
    ----------
    model : str or ClassicModel
        The model or its name; :data:`opinionsim.classic.MODELS` lists the names.
    network : Network, networkx graph, matrix, edge list, int, str or mapping, optional
        Who hears whom. A number means the complete graph of that many agents. A name, or a mapping with ``kind`` and
        that kind's parameters, means a network of :func:`opinionsim.networks.build_network`, drawn once for all
        replicates. Default: the complete graph.
    initial : array_like (N,), (N, D) or (R, N), or str or mapping
        Initial opinions; (R, N) gives each replicate separate ones. A distribution is drawn for each replicate:
        ``uniform`` over the range (in discrete models, among its ends), ``normal``, ``beta``, ``share``, ``even``, or a
        mapping such as ``{kind: share, high: 0.3}``. With ``dimensions: D`` in the mapping, opinions are (N, D), for
        models that take vectors. Traits are drawn ``uniform`` or from ``{kind: poisson, mean: m}``. See
        :func:`opinionsim.opinions.draw_initial`. Discrete models take booleans: False for the lower end of the range,
        True for the upper.
    steps : int, optional
        Number of steps, each with one elementary update per agent; default 100. Leave it out with `pairs`, where each
        pair is a step.
    seed : int
        Root of all randomness, >= 0.
    n : int, optional
        Number of agents, if neither a network nor opinions determine it; default 100.
    replicates : int
        Number of simulations R, each with a separate random stream.
    replicate : int
        Number of the first replicate; replicates of a sweep are numbered from 0.
    until : str or mapping
        The event that ends a simulation before its last step, at the first step after which it is true: ``frozen`` (no
        cluster can change any more, by the exact criterion on the model's page), ``{frozen: width}`` (and none is
        wider, for models whose clusters keep shrinking), ``consensus`` or ``{consensus: tolerance}``, ``{change:
        tolerance}`` (no opinion has moved farther in a step; for models without random pairs).
    record_every : int
        Steps between records. The last opinions are always recorded.
    pairs : array_like (T, 2) of int, optional
        The (speaker, listener) of every step, as recorded from another run. Only the listener updates, whether or not
        the network connects the two. For models whose agents meet in pairs.
    range : (float, float), optional
        Range of opinions; default that of the model. Defaults of parameters in units of opinion scale with it; values
        that you give are used unchanged.
    isolates : str
        Treatment of agents without a partner: ``error``, or ``keep`` their opinions. They then have no turns, so noise,
        media and information do not reach them.
    dtype : str
        Type of the record: ``float64``, or ``float32``, which takes half the memory. Simulations use double precision
        in both cases.
    threads : int, optional
        Number of replicates that run at once; by default one per processor. It does not change results.
    machine : bool
        Whether to compile the kernel; plain Python gives the same result, slowly.
    **settings
        Parameters and scheme options of the model.

    Returns
    -------
    Trajectories
        Opinions after every `record_every` steps, the initial ones first.

    Raises
    ------
    SpecError
        If anything is unknown, out of range, of the wrong size, or impossible on the network.

    Examples
    --------
    >>> import opinionsim as osim
    >>> found = osim.classic.simulate("deffuant", 200, steps=50, seed=1, epsilon=0.3)
    >>> found.opinions.shape
    (1, 51, 200)
    """
    found, given_steps = find_model(model), steps
    steps = whole_number("steps", _STEPS if steps is None else steps, 0)
    seed, replicates = whole_number("seed", seed, 0), whole_number("replicates", replicates, 1)
    record_every = whole_number("record_every", record_every, 1)
    replicate = whole_number("replicate", replicate, 0)
    joined, _ = find_network(network, initial, n, seed, replicates, replicate)
    setup = set_up(found, joined, span=range, settings=settings, isolates=isolates, met=pairs is not None, until=until)
    met = None if pairs is None else _given_pairs(found, pairs, joined)
    if met is not None:
        if given_steps is not None and given_steps != len(met):
            raise SpecError(f"pairs already determine {len(met)} steps; leave steps out")
        steps = len(met)
        setup.scheme.update(order="given", pick="given", sides="one")
    numbers: Any = np.arange(replicate, replicate + replicates)
    check_steps(setup, steps)
    kind = str(getattr(dtype, "__name__", dtype))
    if kind not in ("float64", "float32"):
        raise SpecError(f"dtype must be 'float64' or 'float32'; got {dtype!r:.60}")
    if not isinstance(machine, bool):
        raise SpecError(f"machine must be True or False; got {machine!r:.60}")
    starts = starts_of(setup, initial, seed, numbers)
    moments = -(-steps // record_every) + 1
    if np.dtype(kind).itemsize * moments * starts.size > _MOST_RECORDED:
        raise SpecError(
            f"recording {replicates} x {moments} x {starts[0].size} opinions takes more than "
            f"{_MOST_RECORDED >> 30} GiB; raise record_every"
        )
    times: Any = np.arange(0, steps + 1, record_every)
    if times[-1] < steps:
        times = np.append(times, steps)
    opinions = np.empty((replicates, times.size, *starts.shape[1:]), dtype=kind)
    ended, networks = np.empty(replicates, dtype=np.int64), [joined] * replicates
    most = processors() if threads is None else whole_number("threads", threads, 1)
    parts = [part for part in np.array_split(np.arange(replicates), min(replicates, most)) if part.size]

    def one(place: int, halt: np.ndarray) -> None:
        own = slice(parts[place][0], parts[place][-1] + 1)
        batch = Batch(setup, starts[own], seed, numbers[own], pairs=met, machine=machine, halt=halt)
        # Straight into place: memory that is written for the first time costs more than most models.
        ended[own] = batch.advance(steps, times, opinions[own])
        networks[own] = batch.networks

    _each_of(len(parts), one, most)
    if until is not None and (ended >= 0).all():
        # Nothing happens after the last end.
        kept = int(np.searchsorted(times, ended.max())) + 1
        times, opinions = times[:kept], opinions[:, :kept]
    moved = tuple(networks) if found.ties is not None else ()
    return Trajectories(
        found.name,
        setup.parameters,
        setup.scheme,
        setup.range,
        joined,
        seed,
        times,
        opinions,
        ended,
        moved,
        setup.delta,
    )


def _each_of(number: int, one: Callable[[int, np.ndarray], None], most: int) -> None:
    """Call ``one(0, halt), ..., one(number - 1, halt)`` on up to `most` threads; the first error is raised.

    Compiled code cannot be interrupted: an interrupt, which this thread waits for, sets `halt` for the others.
    """
    halt = np.zeros(1, dtype=np.uint8)
    with ThreadPoolExecutor(min(number, most), "opinionsim-classic") as pool:
        try:
            for ended in [pool.submit(one, each, halt) for each in range(number)]:
                ended.result()
        except BaseException:
            halt[0] = 1
            raise


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def find_network(
    network: Any, initial: Any, n: int | None, seed: int, replicates: int = 1, replicate: int = 0
) -> tuple[Network, bool]:
    """Return the network, with `n` agents or one for each opinion, and whether it is random.

    A random network is drawn for the given replicate.
    """
    shape = np.shape(given_opinions(initial))
    if n is not None:
        n = whole_number("n", n, 2)
    elif shape and isinstance(network, (str, Mapping, list, tuple, type(None))):
        n = shape[1] if len(shape) > 1 and shape[0] == replicates > 1 else shape[0]
    if network is None:
        return Network.of(_AGENTS if n is None else n), False
    if isinstance(network, (str, Mapping)) and n is None and not counts_agents(network):
        n = _AGENTS
    return draw_network(network, n, seed, replicate)


def counts_agents(network: Any) -> bool:
    """Return whether a network determines its number of agents itself, as files and listed edges do."""
    return isinstance(network, Mapping) and network.get("kind", "edges") in ("edges", "edge-list", "file")


def draw_network(network: Any, n: int | None, seed: int, replicate: int) -> tuple[Network, bool]:
    """Return the network of a replicate, and whether it is random."""
    if not isinstance(network, (str, Mapping)):
        return Network.of(network, n), False
    rng = np.random.default_rng(int(stream(seed, "network", replicate).integers(2**32)))
    before = rng.bit_generator.state
    # A generator in the place of its seed is used as it is.
    built = build_network(network, n, rng)  # type: ignore[arg-type]
    return built, rng.bit_generator.state != before


def given_opinions(initial: Any) -> Any:
    """Return initial opinions as an array, or a distribution unchanged."""
    if is_distribution(initial):
        return initial
    try:
        found = np.asanyarray(initial)
    except ValueError:  # rows of different lengths
        found = np.empty(0)
    if not found.ndim or not found.size:
        raise SpecError(f"initial must be a distribution or one number per agent; got {initial!r:.60}")
    if len(found) < 2:
        raise SpecError(f"initial must give opinions for at least 2 agents; got {len(found)}")
    return found


def _given_pairs(model: ClassicModel, pairs: ArrayLike, network: Network) -> np.ndarray:
    if model.update is None:
        raise SpecError(f"agents of {model.name} do not meet in pairs; leave pairs out")
    try:
        given = np.asarray(pairs)
    except ValueError:
        given = np.empty(0)
    if given.ndim != 2 or given.shape[1] != 2 or (given.size and given.dtype.kind not in "iu"):
        raise SpecError(f"pairs must contain two whole numbers, (speaker, listener), for each step; got {pairs!r:.60}")
    if not len(given):
        raise SpecError("pairs must contain at least one (speaker, listener)")
    if given.size and not ((given >= 0) & (given < network.n)).all():
        raise SpecError(f"pairs must name agents 0..{network.n - 1}; got {int(given.min())}..{int(given.max())}")
    alone = given[:, 0] == given[:, 1]
    if alone.any() and True not in model.meets_itself:
        raise SpecError(f"pairs: in step {int(np.argmax(alone)) + 1} agent {given[np.argmax(alone), 0]} meets itself")
    return np.ascontiguousarray(given, dtype=np.uint32)


def starts_of(setup: Setup, initial: Any, seed: int, replicates: Sequence[int]) -> np.ndarray:
    """Return initial opinions of replicates, (R, N) or (R, N, D)."""
    n, features = setup.network.n, None
    if setup.model.states == "traits":
        features = setup.p.features
        if is_distribution(initial):
            return drawn_traits(initial, n, features, setup.p.traits, seed, replicates)
    if is_distribution(initial):
        discrete = setup.model.kind == "discrete"
        levels = initial.get("count", 2) if isinstance(initial, Mapping) and initial.get("kind") == "levels" else 2
        if setup.model.states == "two" and levels != 2:
            raise SpecError(f"initial: {setup.model.name} has only two opinions; got levels with count {levels!r:.60}")
        drawn = drawn_rows(initial, n, setup.range, seed, replicates, discrete=discrete)
        if drawn.ndim == 3 and setup.model.vector is None:
            raise SpecError(f"initial: opinions of {setup.model.name} must have one dimension; got {drawn.shape[2]}")
        return drawn
    given = np.asarray(initial, dtype=object if isinstance(initial, list) and not initial else None)
    own_rows = given.ndim >= (2 if features is None else 3) and given.shape[:2] == (len(replicates), n)
    if own_rows and len(replicates) > 1:
        return np.stack([check_opinions(setup.model, values, n, setup.range, features) for values in given])
    return np.stack([check_opinions(setup.model, initial, n, setup.range, features)] * len(replicates))
