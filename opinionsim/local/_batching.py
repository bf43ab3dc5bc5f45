"""A thread that answers simultaneous questions together."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")

#: Answers a batch in order, with an exception for a question that cannot be answered. The second argument says by
#: position whether an answer is no longer wanted.
Work = Callable[[Sequence[Q], Callable[[int], bool]], "Sequence[A | Exception]"]

#: Longest time a batch waits to fill, in multiples of `quiet_s`.
_PATIENCE = 20

#: Longest wait for the thread to end, seconds.
_FAREWELL_S = 5.0


@dataclass(eq=False)
class Call(Generic[Q, A]):
    """One question, and the future of its answer."""

    question: Q
    length: int
    answer: Future[A] = field(default_factory=Future)


class Batcher(Generic[Q, A]):
    """Gathers questions into batches and passes them, one after the other, to `work` on a separate thread.

    Answers arrive through futures that belong to no event loop, so several loops and threads can ask. If you cancel a
    future, its question is dropped. The batcher halves a batch that fails as a whole until one question causes the
    failure; only this question receives the error. In this way, a batch too large for memory is answered in parts.

    Parameters
    ----------
    work : callable
        Answers a batch.
    size : int
        Maximum number of questions in one batch, >= 1.
    quiet_s : float
        A batch that is not full begins if nothing arrives for this time, in seconds.
    """

    def __init__(self, work: Work[Q, A], size: int, quiet_s: float = 0.005) -> None:
        self._queue = queue = _Waiting(work, size, quiet_s)
        thread = threading.Thread(target=queue.run, name="opinionsim-local-model", daemon=True)
        thread.start()
        # The thread holds the queue and not this object, so it ends with the last user of this object, or the process.
        self._end = weakref.finalize(self, queue.close, thread)

    def submit(self, question: Q, length: int) -> Future[A]:
        """Queue a question; questions of similar `length` are answered together."""
        return self._queue.put(Call(question, length))

    def close(self) -> None:
        """Stop; waiting questions receive an error."""
        self._end()


class _Waiting(Generic[Q, A]):
    """The waiting questions, and the work of the thread."""

    def __init__(self, work: Work[Q, A], size: int, quiet_s: float) -> None:
        self._work = work
        self._size = size
        self._quiet_s = quiet_s
        self._waiting: list[Call[Q, A]] = []
        self._changed = threading.Condition()
        self._closed = False

    def put(self, call: Call[Q, A]) -> Future[A]:
        with self._changed:
            if self._closed:
                raise RuntimeError("this model was closed")
            self._waiting.append(call)
            self._changed.notify()
        return call.answer

    def close(self, thread: threading.Thread) -> None:
        """End the thread, which runs this queue."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if thread is not threading.current_thread():
            thread.join(_FAREWELL_S)

    def run(self) -> None:
        """Serve until closed."""
        while batch := self._gather():
            self._answer(batch)
            # Free the memory of the last batch while waiting for the next.
            del batch
        for call in self._waiting:
            _settle(call, RuntimeError("this model was closed"))

    def _gather(self) -> list[Call[Q, A]]:
        """The next batch; empty when closed."""
        with self._changed:
            while True:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                self._await_company()
                if self._closed:
                    return []
                ready = [call for call in self._waiting if not call.answer.cancelled()]
                batch = alike(ready, self._size)
                self._waiting = [call for call in ready if call not in batch]
                if batch:
                    return batch

    def _await_company(self) -> None:
        """Wait for the batch to fill: agents that were answered together ask again within moments."""
        seen, until = 0, time.monotonic() + _PATIENCE * self._quiet_s
        while seen < len(self._waiting) < self._size and not self._closed and time.monotonic() < until:
            seen = len(self._waiting)
            self._changed.wait(self._quiet_s)

    def _answer(self, batch: list[Call[Q, A]]) -> None:
        """Answer a batch, by halves where it fails as a whole."""
        batch = [call for call in batch if not call.answer.cancelled()]
        if not batch:
            return
        answers: Sequence[A | BaseException] = ()
        try:
            answers = self._work(
                [call.question for call in batch], lambda index: self._closed or batch[index].answer.cancelled()
            )
        except BaseException as error:  # of any kind: the caller must receive it
            if len(batch) == 1:
                answers = [error]
        if self._closed:
            # Answers under way were broken off.
            answers = [RuntimeError("this model was closed")] * len(batch)
        if answers:
            for call, answer in zip(batch, answers, strict=True):
                _settle(call, answer)
        else:
            # Outside the except block, where the error would hold the memory of the attempt.
            middle = len(batch) // 2
            self._answer(batch[:middle])
            self._answer(batch[middle:])


def _settle(call: Call[Q, A], answer: A | BaseException) -> None:
    with suppress(InvalidStateError):  # cancelled meanwhile
        if isinstance(answer, BaseException):
            call.answer.set_exception(answer)
        else:
            call.answer.set_result(answer)


def alike(calls: list[Call[Q, A]], size: int) -> list[Call[Q, A]]:
    """The oldest call and those nearest to it in length, shortest first. No call starves, and padding is small."""
    nearest = sorted(calls, key=lambda call: abs(call.length - calls[0].length))[:size]
    return sorted(nearest, key=lambda call: call.length)
