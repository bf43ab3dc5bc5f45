"""Bounded confidence in the plural: Hegselmann & Krause 2002, exact in O(N) a step on the complete graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import ClassicModel, Parameter
from opinionsim.classic._transition import Received
from opinionsim.classic.kernels._contacts import RANDOM, SYNCHRONOUS, Contacts, Variant, visitor
from opinionsim.classic.kernels._influences import MEETS, NOISE, ZEALOT, disturbed, turns
from opinionsim.classic.kernels._stepping import Begin, Machine, Stop, array_kernel, no_room, step_kernel
from opinionsim.classic.kernels._until import CHANGE, one_number
from opinionsim.foundation.compilation import allocating, inlined

if TYPE_CHECKING:
    from opinionsim.classic.kernels._process import Setup


class Parameters(NamedTuple):
    r"""Hegselmann-Krause bounded confidence.

    Every agent takes the mean of its own opinion and all opinions it hears that are no farther from it than its
    confidence.

    - Equation: x_i \leftarrow \frac{1}{|I_i|} \sum_{j \in I_i} x_j,\quad I_i = \{j \in N(i) \cup \{i\} : |x_j - x_i|
      \le \varepsilon\}
    - Behaviour: On the complete graph, opinions come to rest after finitely many steps, in clusters farther apart than
      epsilon, and synchronous steps preserve the order of opinions. From uniform opinions on [0, 1], there is consensus
      for epsilon well above 0.2, and about 1/(2 epsilon) clusters or fewer below. With noise, opinions never come to
      rest, and above a critical noise they spread evenly.
    - Source: Hegselmann & Krause 2002
    - Source: Pineda et al. 2013
    """

    epsilon: Any = Parameter(
        0.2, "confidence: largest distance at which an opinion counts", r"\varepsilon", scaled=True, reaches="threshold"
    )
    with_self: Any = Parameter(True, "whether an agent's own opinion counts, with weight 1")
    threshold: Any = Parameter("<=", "whether opinions at exactly that distance count", choices=("<=", "<"))
    noise: Any = NOISE
    zealot: Any = ZEALOT
    limits: tuple[float, float] = (0.0, 1.0)


def _prepare(p: Parameters) -> Parameters:
    """Have the kernel read epsilon from an array of one number, or of one an agent."""
    return p._replace(epsilon=np.atleast_1d(np.asarray(p.epsilon, dtype=np.float64)))


@inlined
def _sum_up(ranked, heads, tails):
    """Sums of the first numbers, each in two parts: what fits a float, and what was rounded away (Knuth's TwoSum).

    Differences of plain sums would lose the digits that the sum of ten thousand numbers has no room for.
    """
    head, tail = 0.0, 0.0
    for place in range(ranked.size):
        value = ranked[place]
        total = head + value
        back = total - head
        tail += (head - (total - back)) + (value - back)
        head = total
        heads[place + 1], tails[place + 1] = head, tail


@inlined
def _mean(ranked, heads, tails, place, low, high, with_self):
    """The mean of ranks low..high-1, never outside them."""
    size = high - low
    total = (heads[high] - heads[low]) + (tails[high] - tails[low])
    if not with_self:
        if size == 1:
            return ranked[place]
        size -= 1
        total -= ranked[place]
    return min(max(total / size, ranked[low]), ranked[high - 1])


@inlined
def _first_near(ranked, place, epsilon):
    """The lowest rank within confidence of a rank."""
    low, above = np.int64(0), np.int64(place)
    while low < above:
        middle = (low + above) >> 1
        if ranked[place] - ranked[middle] < epsilon:
            above = middle
        else:
            low = middle + 1
    return low


@inlined
def _first_far(ranked, place, n, epsilon):
    """The rank above the highest within confidence of a rank."""
    low, above = np.int64(place + 1), np.int64(n)
    while low < above:
        middle = (low + above) >> 1
        if ranked[middle] - ranked[place] < epsilon:
            low = middle + 1
        else:
            above = middle
    return low


@inlined
def _after(ranked, n, epsilon, events):
    """The number of windows that have closed after so many events of :func:`_find_windows`."""
    low, above = max(0, events - n), min(events, n)
    while low < above:
        middle = (low + above) >> 1
        if ranked[events - 1 - middle] - ranked[middle] < epsilon:
            above = middle
        else:
            low = middle + 1
    return low


@inlined
def _find_windows(ranked, n, epsilon, lows, highs):
    """The ranks lows[k]..highs[k]-1 within one confidence of each rank k; behind the ranks stands infinity.

    Ranks k join from below while windows of ranks j <= k close, in 2 n events: if k is near j, the window of k begins
    no later than at j, and the next rank joins; otherwise that of j ends before k, and the next window is up for
    closing. Which of the two happens cannot be guessed, so nothing branches on it; and each event waits for the one
    before, so four stretches of events are gone through side by side.
    """
    stretch = n // 2
    s1, s2 = _after(ranked, n, epsilon, stretch), _after(ranked, n, epsilon, 2 * stretch)
    s3 = _after(ranked, n, epsilon, 3 * stretch)
    # Unsigned, for a signed index could count from the end, and is looked at for it.
    j0, j1, j2, j3 = np.uint64(0), np.uint64(s1), np.uint64(s2), np.uint64(s3)
    k0, k1, k2, k3 = np.uint64(0), np.uint64(stretch - s1), np.uint64(2 * stretch - s2), np.uint64(3 * stretch - s3)
    one = np.uint64(1)
    for _ in range(stretch):
        highs[j0], highs[j1], highs[j2], highs[j3] = k0, k1, k2, k3
        lows[k0], lows[k1], lows[k2], lows[k3] = j0, j1, j2, j3
        near0, near1 = np.uint64(ranked[k0] - ranked[j0] < epsilon), np.uint64(ranked[k1] - ranked[j1] < epsilon)
        near2, near3 = np.uint64(ranked[k2] - ranked[j2] < epsilon), np.uint64(ranked[k3] - ranked[j3] < epsilon)
        k0, k1, k2, k3 = k0 + near0, k1 + near1, k2 + near2, k3 + near3
        j0, j1, j2, j3 = j0 + (one - near0), j1 + (one - near1), j2 + (one - near2), j3 + (one - near3)
    for _ in range(2 * n - 4 * stretch):
        highs[j3], lows[k3] = k3, j3
        near3 = np.uint64(ranked[k3] - ranked[j3] < epsilon)
        k3, j3 = k3 + near3, j3 + (one - near3)
    # Where one stretch ended, it wrote down last what the next had found out.
    for later in range(3):
        j = (s1, s2, s3)[later]
        k = (later + 1) * stretch - j
        if j < n:
            highs[j] = _first_far(ranked, j, n, epsilon)
        if k < n:
            lows[k] = _first_near(ranked, k, epsilon)


@allocating
def _room_in_rank(opinions, contacts, p, spare):
    n = opinions.size
    heads, tails, padded = np.zeros(n + 1), np.zeros(n + 1), np.empty(n + 1)
    return heads, tails, padded, np.zeros(n + 1, np.uint32), np.zeros(n + 1, np.uint32), np.ones(1, np.bool_)


@inlined
def _step_in_rank(ranked, before, start, contacts, timing, p, queue, state, spare, space):
    """One step of agents in the order of their opinions, which it keeps."""
    heads, tails, padded, lows, highs, moving = space
    n, epsilon = ranked.size, p.epsilon[0]
    # A step that moves nobody is followed by none that does.
    if epsilon <= 0.0 or not moving[0]:
        return
    for place in range(n):
        padded[place] = before[place]
    padded[n] = np.inf
    _sum_up(ranked, heads, tails)
    _find_windows(padded, n, epsilon, lows, highs)
    last, moved = ranked[0], False
    for place in range(n):
        low, high = lows[place], highs[place]
        total = (heads[high] - heads[low]) + (tails[high] - tails[low])
        mean = total / (np.int64(high) - np.int64(low))
        mean = min(max(mean, padded[low]), padded[high - 1])
        # Means rise with rank; rounding must not undo it.
        last = max(last, mean)
        moved |= last != padded[place]
        ranked[place] = last
    moving[0] = moved


def _in_rank(variant: Variant, stop: Stop | None, machine: Machine) -> Callable[..., None]:
    """The kernel of the complete graph: rows are sorted, and put back into the order of agents at the end."""
    kernel = step_kernel(lambda _: (_step_in_rank, _room_in_rank))(variant, stop, machine)

    def sorted_first(rows, starts, contacts, timing, p, pairs, states, spares, moments, record, ended, halt):
        order = np.argsort(rows, axis=1)
        # Adding 0 turns -0 into 0, so that agents of equal opinions are equal to the last bit.
        ranked = np.take_along_axis(rows, order, axis=1) + 0.0
        kernel(ranked, ranked, contacts, timing, p, pairs, states, spares, moments, record, ended, halt)
        np.put_along_axis(rows, order, ranked, axis=1)
        for row in range(len(rows)):
            for moment in record[row]:
                moment[order[row]] = moment.copy()

    return sorted_first


def _step_by_search(ranked, order, heads, tails, epsilon, with_self, opinions):
    """One step where every agent has a confidence of its own, or leaves itself out: ends of windows are searched."""
    _sum_up(ranked, heads, tails)
    n, own_confidence = ranked.size, np.int64(epsilon.size > 1)
    for place in range(n):
        agent = order[place]
        reach = epsilon[own_confidence * agent]
        low, high = _first_near(ranked, place, reach), _first_far(ranked, place, n, reach)
        opinions[agent] = _mean(ranked, heads, tails, place, low, high, with_self)


def _searching(variant: Variant) -> Callable[[Contacts, Parameters, Machine], Begin]:
    """The step that searches the ends of windows, with noise and zealots."""
    (vary, fate_of, jump, rests), zealots = turns(variant), variant.option("zealot")

    def disturb(before, p, spare, opinions):
        for agent in range(opinions.size):
            if rests(agent, p):
                opinions[agent] = before[agent]
            if fate_of(agent, p, spare) != MEETS and not rests(agent, p):
                opinions[agent] = jump(agent, p, spare)

    def make(contacts: Contacts, p: Parameters, machine: Machine) -> Begin:
        search, heads, tails = machine(_step_by_search), np.zeros(contacts.n + 1), np.zeros(contacts.n + 1)
        disturbance = machine(disturb) if vary or zealots else None

        def begin(start: np.ndarray, spare: np.ndarray) -> tuple[Callable[[np.ndarray], np.ndarray], Any, Any]:
            def step(opinions: np.ndarray) -> np.ndarray:
                order, found = np.argsort(opinions), np.empty_like(opinions)
                search(opinions[order] + 0.0, order, heads, tails, p.epsilon, p.with_self, found)
                if disturbance is not None:
                    disturbance(opinions, p, spare, found)
                return found

            return (step, *p.limits) if vary else (step, start.min(), start.max())

        return begin

    return make


@inlined
def _row_of_all(contacts, agent):
    return np.int64(0), np.int64(contacts.n)


@inlined
def _row(contacts, agent):
    return contacts.starts[agent], contacts.starts[agent + 1]


@inlined
def _anyone(contacts, place):
    return place


@inlined
def _in_row(contacts, place):
    return np.int64(contacts.others[place])


@inlined
def _all_but_oneself(contacts, place, other, agent):
    return np.float64(other != agent)


@inlined
def _weight(contacts, place, other, agent):
    return contacts.weights[place]


def _next_opinion(variant: Variant) -> Callable[..., Any]:
    """``next(before, contacts, p, agent)``: the mean that an agent comes to, going through all whom it hears."""
    heard, at_place = (_row_of_all, _anyone) if variant.complete else (_row, _in_row)
    weight_of, own_confidence = _weight if variant.weighted else _all_but_oneself, np.int64("epsilon" in variant.own)
    rests = turns(variant).rests

    def next_opinion(before, contacts, p, agent):
        if rests(agent, p):
            return before[agent]
        own, reach = before[agent], p.epsilon[own_confidence * agent]
        moved, weighed = 0.0, np.float64(p.with_self)
        first, end = heard(contacts, agent)
        for place in range(first, end):
            other = at_place(contacts, place)
            gap = before[other] - own
            weight = weight_of(contacts, place, other, agent) * np.float64(abs(gap) < reach)
            moved += weight * gap
            weighed += weight
        return own + moved / weighed if weighed > 0.0 else own

    return inlined(next_opinion)


def _by_neighbours(variant: Variant) -> tuple[Callable[..., None], Callable[..., Any]]:
    next_opinion, visit, (vary, fate_of, jump, rests) = _next_opinion(variant), visitor(variant), turns(variant)

    def step(opinions, before, start, contacts, timing, p, queue, state, spare, space):
        for event in range(timing.events):
            agent = visit(event, state, queue)
            if vary and fate_of(agent, p, spare) != MEETS:
                if not rests(agent, p):
                    opinions[agent] = jump(agent, p, spare)
                continue
            opinions[agent] = next_opinion(before, contacts, p, agent)

    return inlined(step), no_room


@allocating
def _room_of_vectors(opinions, contacts, p, spare):
    """The sum of an agent's distances in each dimension."""
    return np.empty(opinions.shape[1])


def _by_vectors(variant: Variant) -> tuple[Callable[..., None], Callable[..., Any]]:
    """One step of opinions (N, D), as :func:`_by_neighbours` does for numbers."""
    heard, at_place = (_row_of_all, _anyone) if variant.complete else (_row, _in_row)
    weight_of, own_confidence = _weight if variant.weighted else _all_but_oneself, np.int64("epsilon" in variant.own)
    visit, (vary, fate_of, jump, rests) = visitor(variant), turns(variant)

    def step(opinions, before, start, contacts, timing, p, queue, state, spare, moved):
        for event in range(timing.events):
            agent = visit(event, state, queue)
            if rests(agent, p):
                continue
            if vary and fate_of(agent, p, spare) != MEETS:
                for d in range(moved.size):
                    opinions[agent, d] = jump(agent, p, spare)
                continue
            reach, weighed = p.epsilon[own_confidence * agent], np.float64(p.with_self)
            for d in range(moved.size):
                moved[d] = 0.0
            first, end = heard(contacts, agent)
            for place in range(first, end):
                other = at_place(contacts, place)
                squares = 0.0
                for d in range(moved.size):
                    squares += (before[other, d] - before[agent, d]) ** 2
                weight = weight_of(contacts, place, other, agent) * np.float64(np.sqrt(squares) < reach)
                for d in range(moved.size):
                    moved[d] += weight * (before[other, d] - before[agent, d])
                weighed += weight
            if weighed > 0.0:
                for d in range(moved.size):
                    opinions[agent, d] = before[agent, d] + moved[d] / weighed

    return inlined(step), _room_of_vectors


_one_by_one = step_kernel(_by_neighbours)


def _kernel(variant: Variant, stop: Stop | None, machine: Machine) -> Callable[..., None]:
    if not (variant.complete and variant.order == SYNCHRONOUS):
        return _one_by_one(variant, stop, machine)
    disturbed_order = variant.option("noise") or variant.option("zealot")
    if variant.option("with_self") and "epsilon" not in variant.own and not disturbed_order:
        return _in_rank(variant, stop, machine)
    return array_kernel(_searching(variant))(variant, stop, machine)


def _would_move(variant: Variant) -> Stop:
    """The check of whether anybody would move whose turn it was, beginning with the agent that did last."""
    next_opinion = _next_opinion(variant)

    def check(opinions, previous, contacts, p, timing, memory):
        begun = memory[0]
        for looked in range(contacts.firsts.size):
            place = begun + looked
            place -= contacts.firsts.size * np.int64(place >= contacts.firsts.size)
            agent = np.int64(contacts.firsts[place])
            if next_opinion(opinions, contacts, p, agent) != opinions[agent]:
                memory[0] = place
                return False
        return True

    return Stop(inlined(check), one_number)


def _frozen(setup: Setup) -> Stop:
    variant = setup.variant()
    return _would_move(variant) if variant.order == RANDOM else CHANGE


@disturbed
def _transition(received: Received, p: Parameters) -> np.ndarray:
    distances = np.abs(received.said - received.own[:, None])
    reach = np.broadcast_to(p.epsilon, received.own.shape)[:, None]
    counted = (distances < reach) * received.weights
    total = (counted * received.said).sum(axis=1) + p.with_self * received.own
    size = counted.sum(axis=1) + p.with_self
    return np.where(size > 0, total / np.where(size > 0, size, 1.0), received.own)


MODEL = ClassicModel(
    name="hegselmann-krause",
    family="similarity-biased",
    parameters=Parameters,
    kernel=_kernel,
    vector=step_kernel(_by_vectors),
    transition=_transition,
    prepare=_prepare,
    orders=("synchronous", "random", "permutation", "sequential"),
    frozen=_frozen,
    at_rest="no agent has moved in a step, or, with updates in random order, no agent would move.",
    conserves=frozenset({"order"}),
    example={"steps": 12, "epsilon": 0.15},
)
