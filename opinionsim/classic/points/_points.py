"""Points of a sweep: everything that runs need except their replicate, checked before the first run."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from opinionsim.classic._declaration import ClassicModel
from opinionsim.classic._registry import MODELS, find_model
from opinionsim.classic._simulate import counts_agents, draw_network, find_network, given_opinions, starts_of
from opinionsim.classic._simulated import Metrics, metrics_of_runs, plain
from opinionsim.classic.kernels._contacts import Contacts
from opinionsim.classic.kernels._process import Batch, Setup, check_names, check_steps, set_up
from opinionsim.classic.kernels._random import STREAMS
from opinionsim.classic.points._ranges import moments_of, values_of
from opinionsim.errors import OpinionSimError, SpecError, whole_number
from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.networks import Network, NetworkKind
from opinionsim.opinions import is_distribution
from opinionsim.registry import is_path

_MOST_RUNS = 10_000_000
#: Axes beside the parameters and scheme options of a model; ``network.FIELD`` and ``initial.FIELD`` are others.
AXES = ("n", "network", "initial", "range")
_OF_FIELDS = ("network.", "initial.")


@dataclass(frozen=True, eq=False)
class Point:
    """Everything that runs need except their replicate.

    Attributes
    ----------
    model : str or ClassicModel
        Name of the model, or the model itself if it is not one of the package.
    n : int
        Number of agents N.
    network : str, mapping or Network
        The network, or the kind that it is drawn from.
    drawn : bool
        Whether the network is drawn for each replicate. Points with equal networks share these draws.
    initial : str, mapping or ndarray (N,) or (N, D)
        Initial opinions, or the distribution they are drawn from for each replicate.
    range : (float, float) or None
        Range of opinions; None for that of the model.
    isolates : str
        As in :func:`opinionsim.classic.simulate`.
    settings : mapping
        Parameters and scheme options.
    steps : int
        Maximum number of steps of a run.
    until : None, str or mapping
        Event that ends a run early: ``frozen``, ``consensus`` or ``{"change": tolerance}``.
    at : tuple of int
        Steps after which measures are computed in addition to the end, ascending.
    seed : int
        Root seed of all random numbers.
    values : mapping
        The values that vary in the sweep, by name.
    key : mapping
        Everything except the replicate that determines the numbers of a run, as JSON values. Given networks and
        opinions enter by their content.
    """

    model: str | ClassicModel
    n: int
    network: Any
    drawn: bool
    initial: Any
    range: tuple[float, float] | None
    isolates: str
    settings: Mapping[str, Any]
    steps: int
    until: Any
    at: tuple[int, ...]
    seed: int
    values: Mapping[str, Any] = field(default_factory=dict)
    key: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def id(self) -> str:
        """Identity: a hash of the key."""
        return digest(canonical_json(self.key))

    @cached_property
    def group(self) -> str:
        """Key that points with equal networks and numbers of agents share."""
        return canonical_json([self.key["network"], self.n, self.seed])

    @property
    def vectors(self) -> bool:
        """Whether an opinion consists of several numbers: dimensions or traits."""
        if find_model(self.model).states == "traits":
            return True
        if isinstance(self.initial, Mapping):
            return bool(self.initial.get("dimensions", 1) != 1)
        return not isinstance(self.initial, str) and np.ndim(self.initial) > 1

    @property
    def size(self) -> int:
        """Number of values in the opinions of a run."""
        if not is_distribution(self.initial):
            return int(np.size(self.initial))
        each = self.key.get("parameters", {}).get("features", 1)
        return self.n * int(self.initial.get("dimensions", each) if isinstance(self.initial, Mapping) else each)

    def network_of(self, replicate: int) -> Network:
        """Build the network of a replicate."""
        return draw_network(self.network, self.n, self.seed, replicate)[0]

    def setup(self, network: Network, known: dict[tuple[int, bool], Contacts] | None = None) -> Setup:
        """Set up the model on a network; `known` contains forms of the network that other setups have stored there."""
        return set_up(
            find_model(self.model),
            network,
            span=self.range,
            settings=self.settings,
            isolates=self.isolates,
            until=self.until,
            known=known,
        )

    def starts(self, setup: Setup, replicates: Sequence[int]) -> np.ndarray:
        """Return initial opinions of replicates, (R, N) or (R, N, D)."""
        if is_distribution(self.initial):
            return starts_of(setup, self.initial, self.seed, replicates)
        own = starts_of(setup, self.initial, self.seed, [0])
        return np.broadcast_to(own, (len(replicates), *own.shape[1:]))


def points_of(
    model: str | ClassicModel,
    over: Mapping[str, Any],
    *,
    network: Any = None,
    initial: Any = "uniform",
    n: int | None = None,
    range: tuple[float, float] | None = None,
    isolates: str = "error",
    settings: Mapping[str, Any] | None = None,
    steps: int = 100,
    until: Any = None,
    at: Any = (),
    seed: int = 0,
    replicates: int = 1,
    metrics: Metrics = (),
) -> list[Point]:
    """Make and check the points of a grid.

    Parameters
    ----------
    model : str or ClassicModel
        The model.
    over : mapping
        Values of each axis, as in :func:`opinionsim.classic.sweep`.
    network, initial, n, range, isolates, steps, seed
        As in :func:`opinionsim.classic.simulate`; initial opinions are (N,) or (N, D), for all replicates.
    settings : mapping, optional
        Parameters and scheme options that do not vary.
    until : None, str or mapping
        Event that ends a run before its limit of steps, as in :func:`opinionsim.classic.simulate`.
    at : sequence of int, range or mapping
        Steps after which measures are computed in addition to the end; ``{log: K}`` for K logarithmically spaced ones.
    replicates : int
        Number of runs of each point, to check the total.
    metrics : sequence of str, or mapping of str to callable
        Measures. Their names are checked.

    Returns
    -------
    list of Point
        In the order of the grid, the last axis varying fastest.

    Raises
    ------
    SpecError, MeasurementError
        If anything is unknown, out of range or impossible. The error names the point.
    """
    found = find_model(model)
    settings = dict(settings or {})
    steps, seed, replicates = (
        whole_number("steps", steps, 0),
        whole_number("seed", seed, 0),
        whole_number("replicates", replicates, 1),
    )
    at, initial = moments_of(at, steps), given_opinions(initial)
    _check_axes(found, over, settings, network, initial)
    if twice := [name for name in metrics if name in over]:
        raise SpecError(f"{twice[0]} cannot be both a measure and a varied parameter; both need its column")
    axes = {name: values_of(name, given, whole=_is_whole(found, name, network)) for name, given in over.items()}
    count = math.prod(len(values) for values in axes.values())
    if count * replicates > _MOST_RUNS:
        raise SpecError(f"{count} points make {count * replicates} runs; at most {_MOST_RUNS} are possible")
    named = is_path(found.name) or MODELS.get(found.name) is found
    common = {"model": found.name if named else found, "isolates": isolates, "steps": steps, "until": until}
    points: dict[int, Point] = {}
    # Points of one network are checked one after another, so that a single network is held at a time.
    grid = list(enumerate(dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())))
    given = {place: _given(values, network, initial, n) for place, values in grid}
    grid.sort(key=lambda each: given[each[0]].group)
    for _, members in itertools.groupby(grid, key=lambda each: given[each[0]].group):
        checked: set[Any] = set()
        held: _Net | None = None
        for place, values in members:
            try:
                if held is None:
                    held = _held(given[place], seed)
                own = {name: value for name, value in values.items() if name not in AXES and "." not in name}
                point = Point(
                    n=held.network.n,
                    network=held.spec,
                    drawn=held.drawn,
                    initial=given[place].initial,
                    range=values.get("range", range),
                    settings={**settings, **own},
                    at=at,
                    seed=seed,
                    values=values,
                    **common,
                )
                points[place] = _checked(point, held, metrics, checked)
            except OpinionSimError as error:
                raise type(error)(f"{_where(values)}{error}") from None
    in_order = [points[place] for place, _ in enumerate(grid)]
    _check_distinct(in_order)
    return in_order


@dataclass(frozen=True)
class _Stated:
    """What a point says of its network and its opinions."""

    network: Any
    initial: Any
    n: int | None
    group: str


@dataclass(frozen=True)
class _Net:
    """The network of the first replicate, for all points that share it."""

    spec: Any
    network: Network
    drawn: bool
    identity: Any
    contacts: dict[tuple[int, bool], Contacts]


def _check_axes(
    model: ClassicModel, over: Mapping[str, Any], settings: Mapping[str, Any], network: Any, initial: Any
) -> None:
    """Refuse unknown axes, and what is given twice."""
    parts = [name for name in over if name.startswith(_OF_FIELDS)]
    check_names(model, [*(name for name in over if name not in (*AXES, *parts)), *settings])
    if both := sorted(set(over) & set(settings)):
        raise SpecError(f"{both[0]} is both fixed and varied; give it once")
    for part in parts:
        whole = part.partition(".")[0]
        if whole in over:
            raise SpecError(f"{whole} and {part} cannot both vary; vary {whole} only, with its parameters")
        given = network if whole == "network" else initial
        if not isinstance(given, (str, Mapping)):
            kind = "a network" if whole == "network" else "a distribution"
            raise SpecError(f"{part} needs {kind} given by name or as a mapping with kind; got {given!r:.60}")


def _is_whole(model: ClassicModel, name: str, network: Any) -> bool:
    """Whether an axis takes whole numbers."""
    if name == "n":
        return True
    if name in model.declared:
        default = model.declared[name].default
        return isinstance(default, int) and not isinstance(default, bool)
    if name.startswith("network."):
        kind = NetworkKind.form_of({"kind": network} if isinstance(network, str) else dict(network))
        held = kind.model_fields.get(name.removeprefix("network."))
        return held is not None and held.annotation is int
    return False


def _given(values: Mapping[str, Any], network: Any, initial: Any, n: int | None) -> _Stated:
    """Network, opinions and number of agents of a point, as they are given."""
    network, n = values.get("network", network), values.get("n", n)
    initial = given_opinions(values["initial"]) if "initial" in values else initial
    for name, value in values.items():
        whole, dot, part = name.partition(".")
        if dot and whole == "network":
            network = {**({"kind": network} if isinstance(network, str) else network), part: value}
        elif dot:
            initial = {**({"kind": initial} if isinstance(initial, str) else initial), part: value}
    return _Stated(network, initial, n, f"{_spelled(network)} {n!r} {np.shape(initial)}")


def _spelled(value: Any) -> str:
    """A value as text that is equal for equal values; objects are like none but themselves."""
    try:
        return canonical_json(value)
    except (TypeError, ValueError):
        return f"object {id(value)}"


def _held(given: _Stated, seed: int) -> _Net:
    """Build the network of a point's first replicate."""
    built, drawn = find_network(given.network, given.initial, given.n, seed)
    spec = "complete" if given.network is None else given.network
    if not isinstance(spec, (str, Mapping)) or counts_agents(spec):
        # By content: a file may change, and other machines have none.
        spec = "complete" if built.complete else built
    by_name = isinstance(spec, (str, Mapping))
    identity = NetworkKind.read(spec).identity(built.n) if by_name else {"edges": _content(built)}
    return _Net(spec, built, drawn, _keyed(identity), {})


def _checked(point: Point, held: _Net, metrics: Metrics, checked: set[Any]) -> Point:
    """The point with its key, if its first run can begin and be measured."""
    setup = point.setup(held.network, held.contacts)
    check_steps(setup, point.steps)
    initial = point.initial if is_distribution(point.initial) else {"opinions": _digested(point.initial)}
    key = {
        "streams": STREAMS,
        "model": setup.model.name,
        "n": point.n,
        "network": held.identity,
        "initial": _keyed(initial),
        "range": [end if math.isfinite(end) else None for end in setup.range],
        "isolates": point.isolates,
        "parameters": _keyed(setup.parameters),
        "scheme": _keyed(setup.scheme),
        "steps": point.steps,
        "until": None if setup.until is None else _keyed(setup.until.plain),
        "delta": setup.delta,
        "seed": point.seed,
    }
    start = canonical_json([key["initial"], key["range"]])
    if start not in checked:
        begun = point.starts(setup, [0])
        # Opinions that the model cannot have, or from which the end cannot come, are found out here.
        Batch(setup, begun, point.seed)
        if not isinstance(metrics, Mapping):
            # A measure that fails on initial opinions would fail on final ones.
            metrics_of_runs(begun, begun, metrics, setup.range, held.network, setup.delta)
        checked.add(start)
    return replace(point, key=key)


def _check_distinct(points: Sequence[Point]) -> None:
    """Refuse points that stand for the same runs."""
    seen: dict[str, Point] = {}
    for point in points:
        other = seen.setdefault(point.id, point)
        if other is not point:
            raise SpecError(f"{_where(point.values)}this point has the same runs as that {_where(other.values)[:-2]}")


def _keyed(value: Any) -> Any:
    """A value as it enters a key: 1 for 1.0, arrays by content."""
    if isinstance(value, Mapping):
        return {str(name): _keyed(child) for name, child in value.items()}
    if isinstance(value, (np.ndarray, list, tuple)):
        if isinstance(value, np.ndarray) or all(isinstance(each, (int, float)) for each in value):
            return {"numbers": _digested(value)}
        return [_keyed(child) for child in value]
    value = plain(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _digested(values: Any) -> str:
    """Hash of an array of numbers."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    return digest(f"{array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}")


def _content(network: Network) -> str:
    """Hash of the pairs of a network."""
    hashed = hashlib.sha256(f"{network.n} {network.directed} {network.complete}".encode())
    for array in (network.speakers, network.listeners, network.weights):
        hashed.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    return digest(hashed.hexdigest())


def cell(value: Any) -> Any:
    """Convert a value of an axis for tables: to a number or a text; lists, mappings and networks become texts."""
    if isinstance(value, Network):
        return f"network {_content(value)[:8]} of {value.n} agents"
    if np.ndim(value) and not isinstance(value, Mapping):
        return canonical_json(np.asarray(value).tolist())
    value = plain(value)
    return value if value is None or isinstance(value, (str, int, float)) else _spelled(value)


def described(values: Mapping[str, Any]) -> str:
    """Describe a point for messages."""
    return "".join(f"{name}={cell(value)!s:.40}, " for name, value in values.items())


def _where(values: Mapping[str, Any]) -> str:
    """The point of an error."""
    return f"at {described(values)[:-2]}: " if values else ""


def by_group(points: Sequence[Point]) -> Iterator[list[int]]:
    """Group the indices of points that share networks and number of agents."""
    groups: dict[str, list[int]] = {}
    for place, point in enumerate(points):
        groups.setdefault(point.group, []).append(place)
    yield from groups.values()
