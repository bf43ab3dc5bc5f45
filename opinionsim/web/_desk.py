"""The desk: questions to people at seats, and the answers that their pages send."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable

from opinionsim.foundation import background
from opinionsim.llm import LEFT, EntryKey, Left, Question
from opinionsim.schedules import CONSENT


class Desk:
    """Answers for all seats of a server with what people send, and decides when a session may begin.

    Everything but :meth:`give`, :meth:`leave` and :meth:`open` is used only on the package's event loop.
    """

    evidence = "human"

    def __init__(self) -> None:
        #: The last question to each seat of a run, whose questions follow each other, its answer, and whether that
        #: came in time.
        self._asked: dict[tuple[str, int], tuple[EntryKey, asyncio.Future[str | Left], asyncio.Future[bool]]] = {}
        #: The seats of runs whose person has left for good.
        self._left: set[tuple[str, int]] = set()
        #: Gives what the person at a seat of a run wants out of turn; set by the room.
        self.wanted: Callable[[str, int], Iterable[str]] = lambda run_id, agent: ()
        self._open: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def answer(self, question: Question) -> str | Left:
        """Return what the person sends: an answer, its requests so far for a signal, or its consent."""
        if question.act == CONSENT.name:
            # It was given before the session began, and is on record with the seat.
            return str(question.form.items[0])
        if question.form.kind == "signal":
            return "\n".join(await asyncio.to_thread(self.wanted, question.run_id, question.agent))
        if (question.run_id, question.agent) in self._left:
            return LEFT
        loop = asyncio.get_running_loop()
        answer, counts = loop.create_future(), loop.create_future()
        key = EntryKey(question.turn, question.call, question.attempt)
        self._asked[question.run_id, question.agent] = key, answer, counts
        try:
            text: str | Left = await answer
        except asyncio.CancelledError:
            counts.set_result(False)
            raise
        counts.set_result(True)
        return text

    async def ready(self, run_id: str) -> None:
        """Wait until the session of a run may begin."""
        await self._open[run_id].wait()

    # From other threads

    async def give(self, run_id: str, agent: int, key: EntryKey, text: str) -> str | None:
        """Submit an answer for a seat. Return the first one, which counts, or None if the seat has no open question."""

        async def hand_in() -> str | None:
            asked, answer, counts = self._asked.get((run_id, agent), (None, None, None))
            if asked != key or answer is None or counts is None:
                return None
            if not answer.done():
                answer.set_result(text)
            given = answer.result()
            return given if await counts and isinstance(given, str) else None

        return await asyncio.wrap_future(background.submit(hand_in()))

    def leave(self, run_id: str, agent: int) -> None:
        """Ask a seat no more questions because its person has left, and stop waiting for it."""

        def left() -> None:
            self._left.add((run_id, agent))
            _, answer, _ = self._asked.get((run_id, agent), (None, None, None))
            if answer is not None and not answer.done():
                answer.set_result(LEFT)

        background.call_soon(left)

    def open(self, run_id: str) -> None:
        """Let the session of a run begin."""
        background.call_soon(lambda: self._open[run_id].set())
