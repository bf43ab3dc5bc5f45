"""Bounded confidence in the plural: Hegselmann & Krause 2002, exact in O(N) a step on the complete graph."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._contacts import visited
from opinionsim.classic._model import ClassicModel, Parameter
from opinionsim.classic._stepping import step_kernel
from opinionsim.classic._transition import Received
from opinionsim.compilation import inlined


class Parameters(NamedTuple):
    """Parameters, as the kernel takes them."""

    epsilon: Any = Parameter(
        0.2, "confidence: largest distance at which an opinion counts", r"\varepsilon", scaled=True
    )
    with_self: Any = Parameter(True, "whether an agent's own opinion counts, with weight 1")
    threshold: Any = Parameter("<=", "whether opinions at exactly that distance count", choices=("<=", "<"))


def _prepare(p: Parameters) -> Parameters:
    """Have the kernel compare with `<` alone, and read epsilon from an array of one number, or of one an agent."""
    epsilon = np.nextafter(p.epsilon, np.inf) if p.threshold == 0 else p.epsilon
    return p._replace(epsilon=np.atleast_1d(np.asarray(epsilon, dtype=np.float64)))


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


@inlined
def _step_in_rank(ranked, before, heads, tails, lows, highs, epsilon):
    """One step of agents in the order of their opinions, which it keeps; returns whether anyone moved."""
    n = ranked.size
    if epsilon <= 0.0:
        return False
    before[:n] = ranked
    before[n:] = np.inf
    _sum_up(ranked, heads, tails)
    _find_windows(before, n, epsilon, lows, highs)
    last, moved = ranked[0], False
    for place in range(n):
        low, high = lows[place], highs[place]
        total = (heads[high] - heads[low]) + (tails[high] - tails[low])
        mean = total / (np.int64(high) - np.int64(low))
        mean = min(max(mean, before[low]), before[high - 1])
        # Means rise with rank; rounding must not undo it.
        last = max(last, mean)
        moved |= last != before[place]
        ranked[place] = last
    return moved


@inlined
def _step_by_search(ranked, heads, tails, order, epsilon, with_self, opinions):
    """One step where every agent has a confidence of its own, or leaves itself out: ends of windows are searched."""
    _sum_up(ranked, heads, tails)
    n, own_confidence = ranked.size, np.int64(epsilon.size > 1)
    for place in range(n):
        agent = order[place]
        reach = epsilon[own_confidence * agent]
        low, high = _first_near(ranked, place, reach), _first_far(ranked, place, n, reach)
        opinions[agent] = _mean(ranked, heads, tails, place, low, high, with_self)


@inlined
def _complete(opinions, timing, p, record):
    """Synchronous steps on the complete graph."""
    n = opinions.size
    heads, tails = np.zeros(n + 1), np.zeros(n + 1)
    keeps_order = p.with_self and p.epsilon.size == 1
    order = np.argsort(opinions)
    # Adding 0 turns -0 into 0, so that agents of equal opinions are equal to the last bit.
    ranked, before = opinions[order] + 0.0, np.empty(n + 1)
    lows, highs = np.zeros(n + 1, dtype=np.uint32), np.zeros(n + 1, dtype=np.uint32)
    moved = True
    for step in range(timing.steps):
        if keeps_order:
            # A step that moves nobody is followed by none that does.
            if moved:
                moved = _step_in_rank(ranked, before, heads, tails, lows, highs, p.epsilon[0])
        else:
            _step_by_search(ranked, heads, tails, order, p.epsilon, p.with_self, opinions)
            order = np.argsort(opinions)
            ranked = opinions[order] + 0.0
        if (step + 1) % timing.every == 0:
            record[(step + 1) // timing.every - 1][order] = ranked
    opinions[order] = ranked


@inlined
def _heard(contacts, agent):
    """The ends of an agent's row of partners; in the complete graph the row of all agents, itself included."""
    if contacts.complete:
        return np.int64(0), np.int64(contacts.n)
    return contacts.starts[agent], contacts.starts[agent + 1]


@inlined
def _by_neighbours(opinions, before, contacts, timing, p, queue, state, spare, space):
    """One step in which the agents whose turn it is go through all whom they hear."""
    # Fields of their own: a tuple of arrays that is handed on costs more than the sums.
    others, weights, complete = contacts.others, contacts.weights, contacts.complete
    weighted, own_confidence = contacts.weights.size > 0, np.int64(p.epsilon.size > 1)
    for event in range(timing.events):
        agent = visited(timing.order, event, state, queue)
        own, reach = before[agent], p.epsilon[own_confidence * agent]
        moved, weighed = 0.0, np.float64(p.with_self)
        first, end = _heard(contacts, agent)
        for place in range(first, end):
            other = place if complete else np.int64(others[place])
            weight = weights[place] if weighted else np.float64(other != agent)
            gap = before[other] - own
            weight *= np.float64(abs(gap) < reach)
            moved += weight * gap
            weighed += weight
        if weighed > 0.0:
            opinions[agent] = own + moved / weighed


@inlined
def _by_vectors(opinions, before, contacts, timing, p, queue, state, spare, moved):
    """One step of opinions (N, D), as :func:`_by_neighbours` does for numbers."""
    others, weights, complete = contacts.others, contacts.weights, contacts.complete
    weighted, own_confidence = contacts.weights.size > 0, np.int64(p.epsilon.size > 1)
    for event in range(timing.events):
        agent = visited(timing.order, event, state, queue)
        reach, weighed = p.epsilon[own_confidence * agent], np.float64(p.with_self)
        moved[:] = 0.0
        first, end = _heard(contacts, agent)
        for place in range(first, end):
            other = place if complete else np.int64(others[place])
            weight = weights[place] if weighted else np.float64(other != agent)
            squares = 0.0
            for d in range(moved.size):
                squares += (before[other, d] - before[agent, d]) ** 2
            weight *= np.float64(np.sqrt(squares) < reach)
            for d in range(moved.size):
                moved[d] += weight * (before[other, d] - before[agent, d])
            weighed += weight
        if weighed > 0.0:
            for d in range(moved.size):
                opinions[agent, d] = before[agent, d] + moved[d] / weighed


@inlined
def _room(opinions, contacts, p, spare):
    """The sum of an agent's distances in each dimension."""
    return np.empty(opinions.shape[1])


_one_by_one = inlined(step_kernel(_by_neighbours))


def _kernel(opinions, start, contacts, timing, p, pairs, state, spare, record):
    if contacts.complete and timing.order == 3:
        _complete(opinions, timing, p, record)
    else:
        _one_by_one(opinions, start, contacts, timing, p, pairs, state, spare, record)


def _transition(received: Received, p: Parameters) -> np.ndarray:
    distances = np.abs(received.said - received.own[:, None])
    reach = np.broadcast_to(p.epsilon, received.own.shape)[:, None]
    counted = (distances <= reach if p.threshold == 0 else distances < reach) * received.weights
    total = (counted * received.said).sum(axis=1) + p.with_self * received.own
    size = counted.sum(axis=1) + p.with_self
    return np.where(size > 0, total / np.where(size > 0, size, 1.0), received.own)


MODEL = ClassicModel(
    name="hegselmann-krause",
    title="Hegselmann-Krause bounded confidence",
    family="similarity-biased",
    summary="Every agent takes the mean of all opinions it hears that are no farther from its own than its confidence, "
    "its own included.",
    equation=r"x_i \leftarrow \frac{1}{|I_i|} \sum_{j \in I_i} x_j,\quad "
    r"I_i = \{j \in N(i) \cup \{i\} : |x_j - x_i| \le \varepsilon\}",
    behaviour="Opinions on the complete graph come to rest after finitely many steps, in clusters farther apart than "
    "epsilon; synchronous steps keep their order there. From uniform opinions on [0, 1] there is consensus for "
    "epsilon well above 0.2, and about 1/(2 epsilon) clusters or fewer below.",
    source=(
        "Hegselmann & Krause (2002). Opinion dynamics and bounded confidence models, analysis, and simulation. "
        "Journal of Artificial Societies and Social Simulation 5(3), 2",
    ),
    parameters=Parameters,
    kernel=_kernel,
    vector=step_kernel(_by_vectors, _room),
    transition=_transition,
    prepare=_prepare,
    orders=("synchronous", "random", "permutation", "sequential"),
    conserves=frozenset({"order"}),
    example={"steps": 12, "epsilon": 0.15},
)
