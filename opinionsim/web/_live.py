"""What happens in a session as server-sent events: one look at the store serves all pages of a room."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.concurrency import run_in_threadpool

from opinionsim.errors import StoreError
from opinionsim.store import TurnRow
from opinionsim.web._session_view import Sight, name_of

if TYPE_CHECKING:
    from opinionsim.store import Follower
    from opinionsim.web._open_room import Room

#: Seconds between two looks at the store: soon after something has happened, and at most.
_OFTEN_S, _SELDOM_S = 0.1, 0.5


class Standing(NamedTuple):
    """Where a session stands."""

    status: str
    """Status of its run; empty before that is registered."""
    generation: int
    """How often the run was begun anew."""
    seq: int
    """Number of its last row."""
    asked: Mapping[int, str]
    """What tells the questions that are open from all others, by seat."""
    stopped: bool
    """Whether the room is not being carried out any more."""


class Watch:
    """Looks at all sessions of a room, for as many pages as there are; used on the event loop of the pages.

    Parameters
    ----------
    room : Room
        The room.
    """

    def __init__(self, room: Room) -> None:
        self._room = room
        #: Where the sessions stood at the last look.
        self.last: Mapping[str, Standing] = {}
        self._next: dict[str, asyncio.Future[None]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()

    async def after(self, run_id: str, known: Standing | None, within_s: float | None = None) -> Standing | None:
        """Where a session stands once that is not `known` any more, or when the time is over.

        Raises
        ------
        StoreError
            If the store cannot be read.
        """
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        while (now := self.last.get(run_id, known)) == known:
            changed = self._next.setdefault(run_id, asyncio.get_running_loop().create_future())
            first = asyncio.FIRST_COMPLETED
            done, _ = await asyncio.wait((self._looking, changed), timeout=within_s, return_when=first)
            if self._looking in done:
                self._looking.result()
            if not done:
                break
        return now

    def hurry(self) -> None:
        """Look again soon, since something is about to happen."""
        self._wanted.set()

    async def _look(self) -> None:
        pause = _OFTEN_S
        while True:
            found = await run_in_threadpool(self._standings)
            changed = [run_id for run_id, standing in found.items() if standing != self.last.get(run_id)]
            self.last = found
            for run_id in changed:
                if run_id in self._next:
                    self._next.pop(run_id).set_result(None)
            pause = _OFTEN_S if changed or self._wanted.is_set() else min(1.5 * pause, _SELDOM_S)
            self._wanted.clear()
            await asyncio.sleep(_OFTEN_S)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), pause - _OFTEN_S)

    def _standings(self) -> dict[str, Standing]:
        runs, asked = list(self._room.runs), defaultdict[str, dict[int, str]](dict)
        with self._room.reader.moment() as moment:
            rows, extents = moment.registered(runs), moment.progress(runs)
            for question in self._room.questions(moment):
                asked[question.run_id].setdefault(question.agent, name_of(question))
        stopped = bool(self._room.error)
        return {
            run_id: Standing(
                "" if (row := rows.get(run_id)) is None else row.status,
                0 if row is None else row.generation,
                extents[run_id].seq,
                asked[run_id],
                stopped,
            )
            for run_id in runs
        }


class _Viewer:
    """The state of one viewer: what it was told so far."""

    def __init__(self, room: Room, run_id: str, sight: Sight, known: tuple[int, int]) -> None:
        self._room, self._run_id, self._sight = room, run_id, sight
        self._generation, self._seq = known
        self._rows = known
        self._follower: Follower | None = None
        self._told: dict[str, str] = {}

    def look(self, now: Standing) -> list[dict[str, str]]:
        """What has happened since the last look, as events."""
        room, run_id = self._room, self._run_id
        found: list[dict[str, str]] = []
        if now.status and self._follower is None:
            self._follower = room.reader.follow(run_id, after=self._seq, generation=self._generation)
            self._sight.know(room.reader.agents(run_id))
            if self._sight.seat is not None:
                self._sight.heed(room.reader.turns(run_id, self._sight.seat))
        same, self._rows = self._rows == (now.generation, now.seq), (now.generation, now.seq)
        events = [] if same or self._follower is None else self._follower.poll()
        rows = [event.row for event in events if isinstance(event.row, TurnRow)]
        self._sight.heed(rows)
        template = room.templates.get_template("_line.html")
        for event in events:
            row = event.row
            if isinstance(row, TurnRow) and self._sight.sees(row):
                content = {"turn": row.turn, "html": template.render(line=self._sight.line(row))}
                found.append({"event": "line", "id": f"{event.generation}.{event.seq}", "data": json.dumps(content)})
            if isinstance(row, TurnRow) and row.kind == "analysis":
                found.append({"event": "analysis", "data": str(row.turn)})
        found += self._changed("state", f"{now.status or 'pending'}{' stopped' if now.stopped else ''}")
        if self._sight.seat is not None:
            found += self._changed("seat", now.asked.get(self._sight.seat, ""))
        return found

    def _changed(self, event: str, value: str) -> list[dict[str, str]]:
        if self._told.get(event) == value:
            return []
        self._told[event] = value
        return [{"event": event, "data": value}]


async def events(room: Room, run_id: str, sight: Sight, known: tuple[int, int]) -> AsyncIterator[dict[str, Any]]:
    """Tell a viewer what happens in a session, until it goes away.

    Parameters
    ----------
    room : Room
        The room.
    run_id : str
        The run of the session.
    sight : Sight
        What the viewer sees.
    known : (int, int)
        Generation and number of the last row that it knows.

    Yields
    ------
    dict of str to str
        `event`, `data` and `id`: ``line`` is a message, ``seat`` says that something else is asked of the person,
        ``analysis`` that there is a new one, ``state`` where the session stands, ``lost`` that it cannot be read.
    """
    viewer, now = _Viewer(room, run_id, sight, known), None
    while True:
        try:
            now = await room.watch.after(run_id, now)
            found = [] if now is None else await run_in_threadpool(viewer.look, now)
        except StoreError as error:
            yield {"event": "lost", "data": str(error)}
            return
        for each in found:
            yield each
