"""What the kernels of all models share: the loop over runs and steps, what is recorded, and when a run ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic.kernels._contacts import PERMUTATION, SYNCHRONOUS, Variant, shuffle
from opinionsim.foundation.compilation import allocating, inlined

Machine = Callable[[Callable[..., Any]], Callable[..., Any]]
#: ``maker(variant, stop, machine)``: the kernel of a variant.
Maker = Callable[[Variant, "Stop | None", Machine], Callable[..., None]]


class Timing(NamedTuple):
    """How long a kernel runs.

    Attributes
    ----------
    steps : int
        Steps: of as many updates as there are agents, or of one recorded pair each.
    events : int
        Elementary updates a step.
    tolerance : float
        Change or distance below which a run ends; 0 where it ends by another event, or at the last step.
    """

    steps: int
    events: int
    tolerance: float


class Stop(NamedTuple):
    """The event at which a run ends before its last step: functions that kernels call.

    Attributes
    ----------
    check : callable
        ``check(opinions, previous, contacts, p, timing, memory) -> bool``: whether it holds. It is made after every
        step, and should see soon that a run goes on. `previous` are the opinions before the step.
    room : callable
        ``room(opinions, contacts, p)``: the arrays that each check is handed as its `memory`. They hold no more than
        where to look first: what a check says does not rest on them.
    compares : bool
        Whether the check compares opinions with those before the step, so that the start alone shows nothing.
    """

    check: Callable[..., Any]
    room: Callable[..., Any]
    compares: bool = False


@inlined
def confined(opinion, p):
    """An opinion, or the end of the range that it has passed."""
    return min(max(opinion, p.limits[0]), p.limits[1])


@inlined
def copy(source, target):
    """Copy numbers one by one: assigned as a whole they take the compiler many times as long."""
    for place in range(source.size):
        target[place] = source[place]


@inlined
def copy_rows(source, target):
    """Copy a table of numbers."""
    for row in range(source.shape[0]):
        copy(source[row], target[row])


@allocating
def no_room(opinions, contacts, p, spare):
    """The space of steps that need none."""
    return np.empty(0)


def _untouched(*given: Any) -> Any:
    """In the place of a check where none is made: compilers leave it out."""
    raise AssertionError(given)


def step_kernel(
    make: Callable[[Variant], tuple[Callable[..., None], Callable[..., Any]]], *, on_pairs: Maker | None = None
) -> Maker:
    """The kernels of a model that is written as one step.

    Parameters
    ----------
    make : callable
        ``make(variant) -> (step, room)``, both marked :func:`opinionsim.foundation.compilation.inlined`:
        ``step(opinions, before, start, contacts, timing, p, queue, state, spare, space)`` changes `opinions` in
        place. `before` are those that updates start from: a copy, where all update at once, else `opinions`
        themselves; `start` those at the start of the run. `queue` holds the agents in the order in which they update,
        where it is not random with replacement, and where pairs are given that of the step, speaker first.
        ``room(opinions, contacts, p, spare)`` makes the arrays that the steps of a run are handed as their `space`;
        :func:`no_room` makes none.
    on_pairs : callable, optional
        The kernels of variants whose pairs are given, where they are others.

    Returns
    -------
    callable
        ``maker(variant, stop, machine)``: the kernel of a variant, ``kernel(rows, starts, contacts, timing, p, pairs,
        states, spares, moments, record, ended, halt)``. It carries each row of `rows` (R, N) forward in place, fills
        `record` (R, K, N) after the steps named by `moments` (K,), and `ended` (R,) with the step after which a run
        came to its `stop`, which stays -1 where it did not. `machine` compiles, or leaves the Python as it is.
    """

    def maker(variant: Variant, stop: Stop | None, machine: Machine) -> Callable[..., None]:
        if variant.given and on_pairs is not None:
            return on_pairs(variant, stop, machine)
        return machine(_loop(variant, stop, *make(variant)))

    return maker


def _loop(
    variant: Variant, stop: Stop | None, step: Callable[..., None], room: Callable[..., Any]
) -> Callable[..., None]:
    """The loop over runs and steps around one step of a model."""
    shuffles, records, stops = variant.order == PERMUTATION, variant.records, stop is not None
    check, memory_of, compares = Stop(_untouched, _untouched) if stop is None else stop
    at_once, checks_start = variant.order == SYNCHRONOUS, stops and not compares
    keeps, copied = at_once or compares, copy_rows if variant.vectors else copy
    given = variant.given

    def kernel(rows, starts, contacts, timing, p, pairs, states, spares, moments, record, ended, halt):
        queue = np.empty(contacts.firsts.size, np.uint32) if shuffles else contacts.firsts
        previous = np.empty_like(rows[0]) if keeps else rows[0]
        for row in range(rows.shape[0]):
            opinions, start, state, spare = rows[row], starts[row], states[row], spares[row]
            before = previous if at_once else opinions
            space = room(opinions, contacts, p, spare)
            number, noted, aim = 0, 0, timing.steps
            if records and moments[0] == 0:
                copied(opinions, record[row, 0])
                noted = 1
            if stops:
                memory = memory_of(opinions, contacts, p)
            if checks_start and check(opinions, opinions, contacts, p, timing, memory):
                ended[row], aim = 0, 0
            while number < aim and not halt[0]:
                if keeps:
                    copied(opinions, previous)
                if shuffles:
                    shuffle(contacts, state, queue)
                taking_part = pairs[number] if given else queue
                step(opinions, before, start, contacts, timing, p, taking_part, state, spare, space)
                number += 1
                if records and noted < moments.size and moments[noted] == number:
                    copied(opinions, record[row, noted])
                    noted += 1
                if stops and check(opinions, previous, contacts, p, timing, memory):
                    ended[row], aim = number, number
            if records:
                while noted < moments.size:
                    copied(opinions, record[row, noted])
                    noted += 1

    return kernel


#: ``begin(start, spare) -> (step, low, high)``.
Begin = Callable[[np.ndarray, np.ndarray], tuple[Callable[[np.ndarray], np.ndarray], Any, Any]]


def array_kernel(make: Callable[..., Begin]) -> Maker:
    """The kernels of a model whose step is a function of arrays, outside compiled code.

    Parameters
    ----------
    make : callable
        ``make(contacts, p, machine) -> begin``, where `machine` compiles functions, and
        ``begin(start, spare) -> (step, low, high)``: ``step(opinions) -> opinions`` returns a new array; `low` and
        `high` are the bounds that rounding must not take opinions beyond; `spare` is the state of a generator.

    Returns
    -------
    callable
        As :func:`step_kernel` returns it.
    """

    def maker(variant: Variant, stop: Stop | None, machine: Machine) -> Callable[..., None]:
        stops, compares = stop is not None, stop is not None and stop.compares
        check, room = (machine(stop.check), machine(stop.room)) if stop is not None else (_untouched, _untouched)

        def kernel(rows, starts, contacts, timing, p, pairs, states, spares, moments, record, ended, halt):
            begin = make(contacts, p, machine)
            for row in range(rows.shape[0]):
                step, low, high = begin(starts[row], spares[row])
                now, noted = rows[row], 0
                memory = room(now, contacts, p) if stops else None
                if moments.size and moments[0] == 0:
                    record[row, 0] = now
                    noted = 1
                if stops and not compares and check(now, now, contacts, p, timing, memory):
                    ended[row] = 0
                for number in range(1, timing.steps + 1):
                    if ended[row] >= 0 or halt[0]:
                        break
                    last, now = now, step(now)
                    now.clip(low, high, out=now)
                    if noted < moments.size and moments[noted] == number:
                        record[row, noted] = now
                        noted += 1
                    if stops and check(now, last, contacts, p, timing, memory):
                        ended[row] = number
                record[row, noted:] = now
                rows[row] = now

        return kernel

    return maker
