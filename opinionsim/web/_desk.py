"""The desk: questions to people at seats, and the answers that their pages send."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable

from opinionsim.foundation import background
from opinionsim.llm import Question
from opinionsim.schedules import CONSENT

#: A question: run, turn, call, attempt.
Key = tuple[str, int, str, int]


class Desk:
    """Answers for all seats of a server with what people send; also says when a session may begin.

    Everything but :meth:`give` and :meth:`open` is used on the package's loop alone.
    """

    evidence = "human"

    def __init__(self) -> None:
        self._waiting: dict[Key, asyncio.Future[str]] = {}
        #: Gives what the person at a seat of a run wants out of turn; set by the room.
        self.wanted: Callable[[str, int], Iterable[str]] = lambda run_id, agent: ()
        self._open: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def answer(self, question: Question) -> str:
        """What the person sends; to a signal, what it wants so far; asked for its consent, that it has given it."""
        if question.act == CONSENT.name:
            # It was given before the session began, and is on record with the seat.
            return str(question.form.items[0])
        if question.form.kind == "signal":
            return "\n".join(await asyncio.to_thread(self.wanted, question.run_id, question.agent))
        key = question.run_id, question.turn, question.call, question.attempt
        self._waiting[key] = future = asyncio.get_running_loop().create_future()
        try:
            text: str = await future
            return text
        finally:
            self._waiting.pop(key, None)

    async def ready(self, run_id: str) -> None:
        """Wait until the session of a run may begin."""
        await self._open[run_id].wait()

    # From other threads

    async def give(self, key: Key, text: str) -> bool:
        """Hand in an answer; returns whether somebody waits for it. The first one counts."""

        async def hand_in() -> bool:
            future = self._waiting.get(key)
            if future is None or future.done():
                return False
            future.set_result(text)
            return True

        return await asyncio.wrap_future(background.submit(hand_in()))

    def open(self, run_id: str) -> None:
        """Let the session of a run begin."""
        background.call_soon(lambda: self._open[run_id].set())
