"""Codes the texts of a run while the run is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from opinionsim.classifiers import asks
from opinionsim.errors import OpinionSimError
from opinionsim.measurement._instruments import Instrument, OpinionKey, Reading, Text
from opinionsim.measurement._measuring import Measuring

#: An estimate of an instrument: the turn, the second turn or None, and the estimate.
Coded = tuple[int, int | None, Reading]
_Keys = list[tuple[int, int | None]]


class LiveCoding:
    """Codes the texts of one run as they arrive.

    Parameters
    ----------
    measuring : Measuring
        The run's instruments.
    text_of : callable
        The text of a turn.
    known : callable
        ``known(instrument_id, turn, about)`` returns whether a text has been coded before.
    keep : callable
        ``keep(instrument, coded)`` receives the estimates of an instrument, a list of :data:`Coded`.

    Notes
    -----
    A classifier that computes codes all texts that arrived while it was busy as one batch. A classifier that asks codes
    each text separately. After a failure, an instrument codes no more texts of the run. Use this class from a single
    event loop.
    """

    def __init__(
        self,
        measuring: Measuring,
        text_of: Callable[[int], Text],
        known: Callable[[str, int, int | None], bool],
        keep: Callable[[Instrument, list[Coded]], None],
    ) -> None:
        self._measuring = measuring
        self._text_of = text_of
        self._known = known
        self._keep = keep
        self._arrived: dict[str, _Keys] = {}
        self._failed: dict[str, BaseException] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, turn: int) -> None:
        """Start coding the text of a turn by all instruments that read it."""
        text = self._text_of(turn)
        for instrument in self._measuring.instruments:
            identity = instrument.instrument_id
            keys = [key for key in instrument.keys(text) if not self._known(identity, *key)]
            if not keys or identity in self._failed:
                continue
            if asks(instrument.classifier):
                self._start(self._code(instrument, keys))
            elif identity in self._arrived:
                self._arrived[identity] += keys
            else:
                self._arrived[identity] = keys
                self._start(self._code_arrived(instrument))

    async def end(self) -> OpinionSimError | None:
        """Wait until every text is coded or has failed; return the first failure, or None."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        for failure in self._failed.values():
            if isinstance(failure, OpinionSimError):
                return failure
            if not isinstance(failure, asyncio.CancelledError):
                raise failure
        return None

    def cancel(self) -> None:
        """Cancel all coding immediately."""
        for task in list(self._tasks):
            task.cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _code_arrived(self, instrument: Instrument) -> None:
        """Code what has arrived for an instrument until there is nothing more."""
        identity = instrument.instrument_id
        while keys := self._arrived[identity]:
            self._arrived[identity] = []
            await self._code(instrument, keys)
        del self._arrived[identity]

    async def _code(self, instrument: Instrument, keys: _Keys) -> None:
        """Code texts; where some fail, keep the estimates of the others."""
        identity = instrument.instrument_id
        if identity in self._failed:
            return
        try:
            coded: Iterable[Coded] = await self._measuring.code(instrument, keys, self._text_of)
        except (Exception, asyncio.CancelledError) as failure:
            self._failed.setdefault(identity, failure)
            estimates = self._measuring.estimates
            there = [(key, OpinionKey(identity, *key)) for key in keys]
            coded = [(*key, estimates[known]) for key, known in there if known in estimates]
        try:
            self._keep(instrument, list(coded))
        except OpinionSimError as failure:
            self._failed.setdefault(identity, failure)
