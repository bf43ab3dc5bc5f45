"""Processes of opinions: a checked model, network and opinions that advance step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.classic._declaration import OPINIONS, ORDERS, ClassicModel
from opinionsim.classic.kernels._contacts import EDGE, LISTENER, SPEAKER, Contacts, Variant
from opinionsim.classic.kernels._random import keyed_words
from opinionsim.classic.kernels._stepping import Maker, Stop, Timing
from opinionsim.classic.kernels._ties import unmovable
from opinionsim.classic.kernels._until import CHANGE, CONSENSUS, FROZEN, Until, read_until
from opinionsim.errors import SpecError, meant
from opinionsim.foundation.compilation import compiled
from opinionsim.networks import Network

_PICKED = {"listener": LISTENER, "speaker": SPEAKER, "edge": EDGE}
#: Checks of rest that were made, by what they are made of.
_STOPS: dict[tuple[Any, ...], Stop] = {}
#: Updates of a run at most, a sixteenth of what a 64-bit number counts to.
_MOST_UPDATES = 2**59
#: Width of clusters at rest where no confidence tells them apart: metrics do so by gaps above it.
_NARROW = 0.01
_NO_PAIRS = np.empty((0, 2), dtype=np.uint32)


@dataclass(frozen=True, eq=False)
class Setup:
    """A model with everything it needs except opinions. Replicates share it.

    Attributes
    ----------
    model : ClassicModel
        The model.
    network : Network
        Who hears whom.
    range : (float, float)
        Range of opinions.
    parameters, scheme : dict
        Every parameter and every scheme option, as recorded with the run.
    p : NamedTuple
        The parameters: numbers, or arrays (N,) if agents differ.
    contacts : Contacts
        The network in the form that the kernel uses.
    until : Until or None
        The event that ends a run before its last step.
    """

    model: ClassicModel
    network: Network
    range: tuple[float, float]
    parameters: dict[str, Any]
    scheme: dict[str, Any]
    p: Any
    contacts: Contacts
    until: Until | None = None
    _variants: dict[tuple[bool, bool, bool], Variant] = field(default_factory=dict, init=False, repr=False)

    def variant(self, *, given: bool = False, records: bool = False, vectors: bool = False) -> Variant:
        """Return the case for which the kernel is made; pairs can be `given`, and opinions recorded or `vectors`."""
        key = (given, records, vectors)
        if key not in self._variants:
            self._variants[key] = self._made(*key)
        return self._variants[key]

    def _made(self, given: bool, records: bool, vectors: bool) -> Variant:
        contacts, scheme, values, declared = self.contacts, self.scheme, self.p._asdict(), self.model.declared
        options = {name: values[name] for name, each in declared.items() if each.choices or type(each.default) is bool}
        options |= {name: bool(np.any(values[name])) for name, each in declared.items() if each.idle}
        return Variant(
            complete=contacts.complete,
            weighted=contacts.weights.size > 0,
            alone=contacts.firsts.size < contacts.n,
            with_self=contacts.with_self,
            pick=contacts.pick,
            order=0 if given else ORDERS.index(scheme.get("order", "random")),
            two_sided=scheme.get("sides") == "two" and not given,
            given=given,
            records=records,
            until="" if self.until is None else self.until.event,
            options=tuple(options.items()),
            own=tuple(name for name, each in declared.items() if each.per_agent and np.ndim(values[name]) == 1),
            vectors=vectors,
        )

    @cached_property
    def stop(self) -> Stop | None:
        """Return the event that ends a run, in the form that kernels check."""
        if self.until is None:
            return None
        if self.until.event == "frozen":
            found = require_frozen(self)
            # One for all setups of a kind, so that no kernel is made twice.
            return _STOPS.setdefault((self.model.frozen, self.variant(), found.check.__code__), found)
        return CONSENSUS if self.until.event == "consensus" else CHANGE

    @cached_property
    def tolerance(self) -> float:
        """Width, distance or change at which the event occurs; 0 if nothing may move."""
        if self.until is None or (self.until.event == "frozen" and not self.model.shrinks):
            return 0.0
        return _NARROW if self.until == FROZEN and self.delta is None else self.until.tolerance

    @cached_property
    def delta(self) -> float | None:
        """The largest gap within a cluster of runs at rest, if it differs from the default of the metrics.

        It is the confidence, if that is one number, for runs until frozen on the complete graph in models whose
        clusters keep shrinking. No meeting bridges a wider gap, so clusters at rest are those of an infinitely long
        run.
        """
        if self.until is None or self.until.event != "frozen" or not self.model.shrinks:
            return None
        if not self.network.complete or np.ndim(self.p.epsilon):
            return None
        # The confidence as kernels compare with it: gaps from there on are no cluster's.
        return max(float(np.nextafter(self.p.epsilon, -np.inf)), 0.0)

    @cached_property
    def events(self) -> int:
        """Number of elementary updates in a step: one for each agent that has, or can get, a partner."""
        everybody = self.contacts.pick == EDGE or self.model.ties is not None
        return self.network.n if everybody else self.contacts.firsts.size


def set_up(
    model: ClassicModel,
    network: Network,
    *,
    span: tuple[float, float] | None = None,
    settings: Mapping[str, Any] | None = None,
    isolates: str = "error",
    met: bool = False,
    until: Any = None,
    known: dict[tuple[int, bool], Contacts] | None = None,
) -> Setup:
    """Check a model's parameters, scheme and network, and convert them to the form that its kernel uses.

    Parameters
    ----------
    model : ClassicModel
        The model.
    network : Network
        Who hears whom.
    span : (float, float), optional
        Range of opinions; default that of the model.
    settings : mapping, optional
        Parameters and scheme options by name. Others have their defaults.
    isolates : str
        ``error`` refuses agents without a partner. ``keep`` lets them keep their opinion; they have no turns, so noise,
        media and information do not reach them.
    met : bool
        Whether pairs are given instead of drawn. If so, the network and the scheme have no effect.
    until : str, mapping or Until, optional
        The event that ends a run, as in :func:`opinionsim.classic.simulate`.
    known : dict, optional
        Kernel forms of the network that other setups on it have stored here.

    Raises
    ------
    SpecError
        If anything is unknown, out of range, or impossible on the network.
    """
    settings = dict(settings or {})
    check_names(model, settings)
    span = model.span(span, settings)
    if met and (given := [name for name in settings if name in model.schemes]):
        raise SpecError(f"{given[0]} has no effect if pairs are given; leave it out")
    if met:
        check_untrusted(model, network)
    scheme = _scheme(model, settings, network)
    parameters = model.with_defaults(settings, span)
    if network.n < 2:
        raise SpecError(f"{model.name} needs at least 2 agents; got {network.n}")
    pick = _PICKED[scheme.get("pick", "listener")]
    with_self = bool(scheme.get("meets_itself", False))
    known = {} if known is None else known
    if (pick, with_self) not in known:
        known[pick, with_self] = Contacts.of(network, pick, with_self=with_self)
    contacts = known[pick, with_self]
    if not met:
        _check_network(model, network, contacts, isolates)
    p = model.arrays(parameters, network.n, span)
    for name, each in model.declared.items():
        alone = each.beside and each.beside not in settings and not model.declared[each.beside].default
        if alone and name in settings:
            raise SpecError(f"{name} of {model.name} has no effect without {each.beside}; give both, or leave it out")
    if "limits" in p._fields:
        p = p._replace(limits=span)
    event = read_until(until, span, discrete=model.kind == "discrete")
    setup = Setup(model, network, span, parameters, scheme, p, contacts, event)
    model.prepared(p)
    _check_until(setup, met=met)
    return setup


def check_untrusted(model: ClassicModel, network: Network) -> None:
    """Refuse edge weights that mean trust if meetings are given, because agents may meet without an edge."""
    if "shares" in model.needs and network.weights is not None:
        raise SpecError(
            f"network weights mean trust in {model.name}, which does not apply to given meetings; leave out the "
            "weights, or let the model draw who meets whom (kind: native in a specification)"
        )


def check_steps(setup: Setup, steps: int) -> None:
    """Refuse more updates than kernels can count."""
    if steps > _MOST_UPDATES // setup.network.n:
        raise SpecError(
            f"steps must be at most {_MOST_UPDATES // setup.network.n} for {setup.network.n} agents; got {steps}"
        )


def _check_until(setup: Setup, *, met: bool) -> None:
    """Refuse events that cannot come, or that are no proof of anything."""
    model, event = setup.model, setup.until
    if event is None:
        return
    if met:
        raise SpecError("until has no effect if pairs are given; leave it out")
    if event.event == "frozen":
        require_frozen(setup)
    if event.event == "change" and (model.update is not None or model.states == "traits"):
        raise SpecError(
            f"until: change does not detect rest if random pairs meet, as in {model.name}: many agents can move after "
            f"a step without moves; valid: {'frozen, ' if model.frozen else ''}consensus"
        )


def _check_reachable(setup: Setup, initial: np.ndarray) -> None:
    """Refuse events that cannot come from the opinions (R, N) or (R, N, D) at the start."""
    model, event = setup.model.name, setup.until
    if event is None or event.event == "change":
        return
    if event.event == "frozen" and initial.ndim == 3 and setup.model.states != "traits":
        raise SpecError(f"until: frozen needs one number per opinion; opinions of {model} have {initial.shape[2]}")
    zealots = np.flatnonzero(np.broadcast_to(getattr(setup.p, "zealot", 0), setup.network.n))
    if not zealots.size:
        return
    near = event.tolerance if event.event == "consensus" else 0.0
    apart = np.abs(initial[:, zealots] - initial[:, zealots[:1]]) > near
    if apart.any():
        other = zealots[np.argmax(apart.reshape(len(initial), zealots.size, -1).any(axis=(0, 2)))]
        why = f"zealots {zealots[0]} and {other} differ at the start and never change"
        looked_for = "is not checked" if event.event == "frozen" and setup.model.shrinks else "cannot be reached"
        raise SpecError(f"until: {event.event} {looked_for}: {why}")


def require_frozen(setup: Setup) -> Stop:
    """Return the check of whether nothing can change.

    Raises
    ------
    SpecError
        If the model has no such criterion, or never comes to rest with its settings.
    """
    for name in ("noise", "media"):
        if setup.variant().option(name):
            raise SpecError(f"until: frozen cannot be reached with {setup.model.name} if {name} is above 0")
    if setup.model.frozen is None:
        why = setup.model.at_rest or "no exact criterion for its rest is known"
        raise SpecError(f"until: frozen cannot be reached with {setup.model.name}: {why}")
    if not setup.model.shrinks and setup.until != FROZEN:
        raise SpecError(f"until: frozen takes no width in {setup.model.name}, where nothing moves at rest")
    return setup.model.frozen(setup)


def check_names(model: ClassicModel, settings: Iterable[str], *, schemes: bool = True) -> None:
    """Refuse settings that are not parameters of a model or, if `schemes` is true, scheme options.

    Raises
    ------
    SpecError
        If there is one. The message gives the first and the valid names.
    """
    valid = [*model.declared, *(model.schemes if schemes else ())]
    unknown = [name for name in settings if name not in valid]
    if unknown:
        wrong = f"{unknown[0]!r}{meant(unknown[0], valid)}"
        raise SpecError(f"{model.name} has no parameter {wrong}; valid: {', '.join(valid) or 'none'}")


def _scheme(model: ClassicModel, settings: Mapping[str, Any], network: Network) -> dict[str, Any]:
    """Every scheme option: as set, or the default, or the one that is possible where the default is not."""
    scheme = {}
    for name, valid in model.schemes.items():
        value = settings.get(name, valid[0])
        if value not in valid or isinstance(value, bool) != isinstance(valid[0], bool):
            raise SpecError(f"{name} of {model.name} must be {_one_of(valid)}; got {value!r:.60}")
        scheme[name] = value

    def give_way(name: str, to: Any, why: str) -> None:
        if name in settings:
            raise SpecError(f"{model.name}: {why}")
        scheme[name] = to

    if scheme.get("order") == "synchronous" and scheme.get("sides") == "two":
        give_way("sides", "one", "sides 'two' needs meetings one after another; use another order than 'synchronous'")
    if scheme.get("meets_itself") and not network.complete:
        give_way("meets_itself", False, "meets_itself is only possible on the complete graph")
    if network.directed and scheme.get("sides") == "two":
        give_way("sides", "one", "sides 'two' needs pairs that hear each other, but this network is directed")
    if scheme.get("order", "random") != "random" and (pick := scheme.get("pick", "listener")) != "listener":
        why = f"with order {scheme['order']!r}, the listener is picked first"
        give_way("pick", "listener", f"pick {pick!r} needs order 'random'; {why}")
    return scheme


def _one_of(valid: tuple[Any, ...]) -> str:
    spelled = [str(each).lower() if isinstance(each, bool) else repr(each) for each in valid]
    return spelled[0] if len(spelled) == 1 else f"one of {', '.join(spelled)}"


def _check_network(model: ClassicModel, network: Network, contacts: Contacts, isolates: str) -> None:
    if isolates not in ("error", "keep"):
        raise SpecError(f"isolates must be 'error' or 'keep'; got {isolates!r}")
    if model.ties is not None and (why := unmovable(network)):
        raise SpecError(f"{model.name} moves ties: {why}")
    if not network.complete and network.listeners.size == 0:
        raise SpecError(f"{model.name} needs a network with at least one edge; the {network.n} agents have none")
    weights = network.weights
    if weights is not None and "signs" not in model.needs and (weights < 0).any():
        place = int(np.argmax(weights < 0))
        raise SpecError(
            f"weights must not be negative in {model.name}; the edge from agent {network.speakers[place]} to agent "
            f"{network.listeners[place]} has {weights[place]:g}"
        )
    if weights is not None and "shares" in model.needs and (weights > 1).any():
        raise SpecError(f"weights mean trust in {model.name} and must be from 0 to 1; got {weights.max():g}")
    if weights is not None and "signs" not in model.needs:
        heard = np.bincount(network.listeners, weights=weights, minlength=network.n)
        silent = np.bincount(network.listeners, minlength=network.n).astype(bool) & (heard <= 0)
        if silent.any():
            raise SpecError(f"the edges to agent {int(np.argmax(silent))} all have weight 0; one must be positive")
    if isolates == "error" and "partners" in model.needs and contacts.firsts.size < network.n:
        alone = np.setdiff1d(np.arange(network.n), contacts.firsts)
        verb = "is heard by nobody" if contacts.pick == SPEAKER else "hears nobody"
        raise SpecError(
            f"{model.name}: agent {alone[0]} {verb} on this network ({len(alone)} such agents); "
            "connect them, or set isolates='keep' so that they keep their opinions"
        )


def check_opinions(
    model: ClassicModel, opinions: ArrayLike, n: int, span: tuple[float, float], features: int | None = None
) -> np.ndarray:
    """Return initial opinions as floats, (N,) or (N, D); (N, `features`) for a model of traits.

    Models that copy opinions or have two states accept booleans: False is the lower end of the range, True the upper.

    Raises
    ------
    SpecError
        If there is not one opinion per agent, or if one is missing, outside the range, or not a possible state.
    """
    try:
        given = np.asarray(opinions)
    except (TypeError, ValueError):
        given = np.empty(0, dtype=object)
    if given.dtype == bool and model.states != "any":
        given = np.where(given, span[1], span[0])
    # A masked value is missing, but would be read as the number behind the mask.
    if given.dtype.kind not in "iuf" or np.ma.is_masked(opinions):
        raise SpecError(f"initial must contain one number per agent; got {opinions!r:.60}")
    values = given.astype(np.float64)
    if values.ndim not in (1, 2) or values.shape[0] != n:
        raise SpecError(
            f"initial must contain one opinion for each of the {n} agents; got an array of shape {values.shape}"
        )
    if values.ndim == 2 and model.vector is None:
        raise SpecError(f"opinions of {model.name} must be one number per agent; got {values.shape[1]}")
    if model.states == "traits" and values.shape[1:] != (features,):
        raise SpecError(
            f"initial must contain {features} traits (features) for each of the {n} agents; got an array of shape "
            f"{values.shape}"
        )
    low, high = (f"{end:g}" for end in span)
    inside = (values >= span[0]) & (values <= span[1]) & np.isfinite(values)
    valid = {f"opinions must be numbers from {low} to {high}": inside}
    if model.states == "two":
        valid[f"opinions of {model.name} must be {low} or {high}"] = np.isin(values, span)
    if model.states == "traits":
        valid["traits must be whole numbers"] = values == np.floor(values)
    for told, right in valid.items():
        if not right.all():
            agent = int(np.argmax(~right.reshape(n, -1).all(axis=1)))
            raise SpecError(f"initial: {told}; agent {agent} has {values[agent].tolist()}")
    return np.ascontiguousarray(values)


@cache
def _kernel_of(maker: Maker, variant: Variant, stop: Stop | None, name: str) -> Callable[..., None]:
    """The kernel of a variant, compiled if it has a name."""
    return maker(variant, stop, partial(compiled, name=f"{name}, {variant}") if name else lambda kernel: kernel)


class Batch:
    """Runs that differ only in their replicate and advance together.

    Parameters
    ----------
    setup : Setup
        The model with everything it needs.
    initial : ndarray (R, N) or (R, N, D)
        Checked initial opinions of each run.
    seed : int
        Root seed of all random numbers.
    replicates : sequence of int
        Numbers of the replicates, which are the keys of their random streams.
    pairs : ndarray (T, 2) of int, optional
        (speaker, listener) of every step, instead of drawn pairs. Only the listener updates.
    machine : bool
        Whether to compile the kernel. Otherwise it runs as plain Python, with the same result.
    halt : ndarray (1,) of uint8, optional
        If another thread sets it to 1, :meth:`advance` ends within a step.

    Attributes
    ----------
    steps : int
        Number of steps so far.
    """

    def __init__(
        self,
        setup: Setup,
        initial: np.ndarray,
        seed: int,
        replicates: Sequence[int] = (0,),
        *,
        pairs: np.ndarray | None = None,
        machine: bool = True,
        halt: np.ndarray | None = None,
    ) -> None:
        self.setup = setup
        self.steps = 0
        self._halt = np.zeros(1, dtype=np.uint8) if halt is None else halt
        self._start = np.require(setup.model.units.encode(initial, setup.range), np.float64, ["C", "W"])
        self._states = self._start.copy()
        if setup.model.carried:
            rest = np.zeros((len(self._start), setup.model.carried, *self._start.shape[1:]))
            self._start = np.concatenate([self._start[:, None], rest], axis=1)
        self._initial = initial
        self._pairs = pairs
        maker = setup.model.kernel if self._states.ndim == 2 else setup.model.vector
        if self._states.ndim == 3 and setup.variant(given=pairs is not None).option("media"):
            raise SpecError(f"{setup.model.name}: media have one dimension, but opinions have {self._states.shape[2]}")
        if maker is None:
            raise SpecError(f"{setup.model.name} does not support vectors of opinions")
        self._maker, self._machine = maker, machine
        if setup.until is not None:
            _check_reachable(setup, initial)
        self._p = setup.model.prepared(setup.p)
        ties = setup.model.ties
        self._ties = None if ties is None else [ties(setup.network, states, self._p) for states in self._states]
        words = keyed_words(seed, "classic", replicates, 8)
        self._streams, self._spares = words[:, :4].copy(), words[:, 4:].copy()

    @property
    def opinions(self) -> np.ndarray:
        """Copy of the current opinions, (R, N) or (R, N, D)."""
        return self._decoded(self._states.copy())

    @property
    def networks(self) -> list[Network]:
        """The current network of each run."""
        if self._ties is None:
            return [self.setup.network] * len(self._states)
        return [ties.network for ties in self._ties]

    def advance(self, steps: int, moments: Sequence[int] = (), record: np.ndarray | None = None) -> np.ndarray:
        """Advance opinions.

        Parameters
        ----------
        steps : int
            Number of steps.
        moments : sequence of int
            Steps after which opinions are recorded, ascending; 0 is the start of this call.
        record : ndarray (R, K, N) or (R, K, N, D), optional
            Contiguous array of float64 or float32 to fill with opinions at each of `moments`. Runs that have ended keep
            their opinions.

        Returns
        -------
        ndarray (R,) of int
            Step after which the event `until` ended each run; -1 if it did not occur. Further calls do not advance runs
            that have ended.

        Raises
        ------
        SpecError
            If opinions have grown to infinity.
        CancelledError
            If `halt` ended the call; opinions are then those of some step.
        """
        setup, given = self.setup, self._pairs is not None
        noted = np.asarray(moments, dtype=np.int64)
        if record is None:
            record = np.empty((len(self._states), noted.size, *self._states.shape[1:]))
        timing = Timing(steps, 1 if given else setup.events, setup.tolerance)
        variant = setup.variant(given=given, records=noted.size > 0, vectors=self._states.ndim == 3)
        kernel = _kernel_of(self._maker, variant, setup.stop, setup.model.name if self._machine else "")
        ended = np.full(len(self._states), -1, dtype=np.int64)
        pairs = _NO_PAIRS if self._pairs is None else self._pairs[self.steps : self.steps + steps]
        # Machine words wrap around, which scalars of numpy otherwise warn of.
        with nullcontext() if self._machine else np.errstate(over="ignore"):
            for rows, contacts in self._parts():
                kernel(
                    self._states[rows], self._start[rows], contacts, timing, self._p, pairs, self._streams[rows],
                    self._spares[rows], noted, record[rows], ended[rows], self._halt,
                )  # fmt: skip
        if self._halt[0]:
            raise CancelledError("another thread ended the simulation")
        self.steps += steps
        if not np.isfinite(self._decoded(self._states)).all():
            raise SpecError(f"{setup.model.name}: opinions have grown to infinity, as its parameters allow")
        if setup.model.units is not OPINIONS and noted.size:
            record[...] = self._decoded(record)
        return ended

    def _parts(self) -> Iterator[tuple[slice, Any]]:
        """The runs that a call of a kernel carries forward, and their contacts: runs that move ties have their own."""
        if self._ties is None:
            yield slice(None), self.setup.contacts
            return
        for row, ties in enumerate(self._ties):
            yield slice(row, row + 1), ties

    def _decoded(self, states: np.ndarray) -> np.ndarray:
        if self.setup.model.units is OPINIONS:
            return states
        # An agent that has not moved holds the very opinion given, whatever the way there and back rounds.
        begun = self._start[:, 0] if self.setup.model.carried else self._start
        start, initial = begun.astype(states.dtype), self._initial
        if states.ndim > start.ndim:
            start, initial = start[:, None], initial[:, None]
        return np.where(states == start, initial, self.setup.model.units.decode(states, self.setup.range))


class Process:
    """Opinions of one run that advance step by step.

    Parameters
    ----------
    setup : Setup
        The model with everything it needs.
    initial : ndarray (N,) or (N, D)
        Checked initial opinions.
    seed, replicate : int
        Key of the random stream.
    machine : bool
        As for :class:`Batch`.
    """

    def __init__(
        self, setup: Setup, initial: np.ndarray, seed: int, replicate: int = 0, *, machine: bool = True
    ) -> None:
        self._batch = Batch(setup, initial[None].copy(), seed, [replicate], machine=machine)
        self.setup = setup

    @property
    def opinions(self) -> np.ndarray:
        """Copy of the current opinions, (N,) or (N, D)."""
        return np.asarray(self._batch.opinions[0])

    @property
    def network(self) -> Network:
        """The current network."""
        return self._batch.networks[0]

    def advance(self, steps: int) -> np.ndarray:
        """Advance by some steps, and return opinions (steps, N) or (steps, N, D) after each of them."""
        record = np.empty((1, steps, *self.opinions.shape))
        self._batch.advance(steps, range(1, steps + 1), record)
        return np.asarray(record[0])
