"""Common parts of all kernels: the loop over runs and steps, recording, and the end of a run."""

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
    """Duration of a kernel.

    Attributes
    ----------
    steps : int
        Number of steps, each with one update per agent or one recorded pair.
    events : int
        Number of elementary updates in a step.
    tolerance : float
        Change or distance below which a run ends; 0 if it ends by another event or at the last step.
    """

    steps: int
    events: int
    tolerance: float


class Stop(NamedTuple):
    """Functions that kernels call to detect the event that ends a run before its last step.

    Attributes
    ----------
    check : callable
        ``check(opinions, previous, contacts, p, timing, memory) -> bool``: whether the event has occurred. Kernels call
        it after every step, so it should quickly detect that a run continues. `previous` are the opinions before the
        step.
    room : callable
        ``room(opinions, contacts, p)``: makes the arrays that each check receives as its `memory`. They only record
        where to look first; the result of a check does not depend on them.
    compares : bool
        Whether the check compares opinions with those before the step. If so, it needs at least one step.
    """

    check: Callable[..., Any]
    room: Callable[..., Any]
    compares: bool = False


@inlined
def confined(opinion, p):
    """Return an opinion, or the end of the range if the opinion is beyond it."""
    return min(max(opinion, p.limits[0]), p.limits[1])


@inlined
def copy(source, target):
    """Copy numbers one by one, because assignment of whole arrays takes the compiler many times as long."""
    for place in range(source.size):
        target[place] = source[place]


@inlined
def copy_rows(source, target):
    """Copy a table of numbers."""
    for row in range(source.shape[0]):
        copy(source[row], target[row])


@allocating
def no_room(opinions, contacts, p, spare):
    """Working memory of steps that need none."""
    return np.empty(0)


def _untouched(*given: Any) -> Any:
    """In the place of a check where none is made: compilers leave it out."""
    raise AssertionError(given)


def step_kernel(
    make: Callable[[Variant], tuple[Callable[..., None], Callable[..., Any]]], *, on_pairs: Maker | None = None
) -> Maker:
    """Make the kernels of a model that is written as one step.

    Parameters
    ----------
    make : callable
        ``make(variant) -> (step, room)``, both marked :func:`opinionsim.foundation.compilation.inlined`:
        ``step(opinions, before, start, contacts, timing, p, queue, state, spare, space)`` changes `opinions` in
        place. Updates start from `before`, which is a copy if all agents update at once and otherwise `opinions`
        itself; `start` contains the opinions at the start of the run. `queue` contains the agents in the order of their
        updates, unless it is random with replacement, or the pair of the step, speaker first, if pairs are given.
        ``room(opinions, contacts, p, spare)`` makes the arrays that the steps of a run receive as their `space`;
        :func:`no_room` makes none.
    on_pairs : callable, optional
        The kernels of variants with given pairs, if they differ.

    Returns
    -------
    callable
        ``maker(variant, stop, machine)``: the kernel of a variant, ``kernel(rows, starts, contacts, timing, p, pairs,
        states, spares, moments, record, ended, halt)``. It updates each row of `rows` (R, N) in place, fills `record`
        (R, K, N) after the steps in `moments` (K,), and sets `ended` (R,) to the step after which `stop` ended a run;
        other values stay -1. `machine` compiles the kernel; otherwise it stays plain Python.
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
    """Make the kernels of a model whose step is a function of arrays, outside compiled code.

    Parameters
    ----------
    make : callable
        ``make(contacts, p, machine) -> begin``, where `machine` compiles functions, and
        ``begin(start, spare) -> (step, low, high)``: ``step(opinions) -> opinions`` returns a new array; rounding must
        not move opinions beyond the bounds `low` and `high`; `spare` is the state of a generator.

    Returns
    -------
    callable
        As from :func:`step_kernel`.
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
