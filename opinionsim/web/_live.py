"""Server-sent events of a session; one look at the store serves all pages of a room."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.concurrency import run_in_threadpool

from opinionsim.errors import StoreError
from opinionsim.store import TurnRow
from opinionsim.web._session_view import Line, Sight, name_of

if TYPE_CHECKING:
    from opinionsim.web._open_room import Room

#: Seconds between two looks at the store.
_PAUSE_S = 0.15


class SessionState(NamedTuple):
    """State of a session."""

    rows: tuple[int, int]
    """How often its run was restarted, and the number of the last row."""
    asked: Mapping[int, str]
    """Keys of the open questions, by seat."""
    tokens: Mapping[int, str | None]
    """What opens each seat."""
    status: str
    """Status of its run."""
    stopped: bool
    """Whether the experiment of the room is no longer running."""


class Watch:
    """Watches all sessions of a room for all its pages; used on the event loop of the pages.

    Parameters
    ----------
    room : Room
        The room.
    """

    def __init__(self, room: Room) -> None:
        self._room = room
        #: Where the sessions that are on record stood at the last look.
        self.last: Mapping[str, SessionState] = {}
        self._next: dict[str, asyncio.Future[None]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def after(
        self, run_id: str, known: SessionState | None, within_s: float | None = None
    ) -> SessionState | None:
        """Return the state of a session once it differs from `known`, or when the time is over.

        Raises
        ------
        StoreError
            If the store cannot be read.
        """
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        while (now := self.last.get(run_id, known)) == known:
            changed = self._next.setdefault(run_id, asyncio.get_running_loop().create_future())
            done, _ = await asyncio.wait((self._looking, changed), timeout=within_s, return_when="FIRST_COMPLETED")
            if self._looking in done:
                self._looking.result()
            if not done:
                break
        return now

    async def _look(self) -> None:
        while True:
            found = await run_in_threadpool(self._standings)
            changed = [run_id for run_id, standing in found.items() if standing != self.last.get(run_id)]
            self.last = found
            for run_id in changed:
                if run_id in self._next:
                    self._next.pop(run_id).set_result(None)
            await asyncio.sleep(_PAUSE_S)

    def _standings(self) -> dict[str, SessionState]:
        asked, stopped = defaultdict[str, dict[int, str]](dict), bool(self._room.error)
        tokens = defaultdict[str, dict[int, str | None]](dict)
        for seat in self._room.seated():
            tokens[seat.run_id][seat.agent] = seat.token
        with self._room.reader.moment() as moment:
            rows, extents = moment.registered(self._room.runs), moment.progress(self._room.runs)
            for question in self._room.questions(moment):
                asked[question.run_id].setdefault(question.agent, name_of(question))
        return {
            run_id: SessionState(
                (row.generation, extents[run_id].seq), asked[run_id], tokens[run_id], row.status, stopped
            )
            for run_id, row in rows.items()
        }


class _Viewer:
    """What one viewer is told of a session."""

    def __init__(self, room: Room, run_id: str, sight: Sight, known: tuple[int, int], key: str) -> None:
        self._room, self._sight, self._own = room, sight, (run_id, sight.seat, key)
        self._follower = room.reader.follow(run_id, after=known[1], generation=known[0])
        if sight.seat is not None:
            sight.heed(room.reader.turns(run_id, sight.seat))

    def look(self, before: SessionState | None, now: SessionState) -> list[dict[str, str]] | None:
        """Return what has happened since the last look, as events; None for a person who has lost the seat."""
        found: list[dict[str, str]] = []
        events = self._follower.poll() if before is None or before.rows != now.rows else []
        if events and not self._sight.agents:
            # The cast is on record once the run has begun.
            self._sight.know(self._room.reader.agents(self._follower.run_id))
        self._sight.heed(event.row for event in events if isinstance(event.row, TurnRow))
        template = self._room.templates.get_template("_line.html")
        for event in events:
            row = event.row
            for line in self._lines(row) if isinstance(row, TurnRow) else ():
                content = {"turn": float(line.turn), "html": template.render(line=line)}
                found.append({"event": "line", "data": json.dumps(content)})
                # What a turn shows comes before it: after a break in the connection, both come again.
                found[-1] |= {} if line.blind else {"id": f"{event.generation}.{event.seq}"}
            if isinstance(row, TurnRow) and row.kind in self._sight.beside:
                found.append({"event": "beside", "data": row.kind})
        if before is None or before[3:] != now[3:]:
            found.append({"event": "state", "data": f"{now.status}{' stopped' if now.stopped else ''}"})
        seat = self._sight.seat
        if seat is not None and (before is None or before.asked.get(seat) != now.asked.get(seat)):
            found.append({"event": "seat", "data": now.asked.get(seat, "")})
        # What another person at the seat has said by now is among these events only if the seat has changed before.
        kept = seat is None or any(self._own == (row.run_id, row.agent, row.token) for row in self._room.seated())
        return found if kept else None

    def _lines(self, row: TurnRow) -> list[Line]:
        """A message that the viewer sees, and before it those that it was the first to show."""
        first = self._sight.first_shown(row)
        shown = self._room.reader.turns(self._own[0], only=first) if first else []
        found = self._sight.lines([each for each in shown if not self._sight.hears(each)])
        return [*found, self._sight.line(row)] if self._sight.hears(row) else found


async def events(
    room: Room, run_id: str, sight: Sight, known: tuple[int, int], key: str
) -> AsyncIterator[dict[str, Any]]:
    """Yield to a viewer what happens in a session, until it leaves or loses its seat.

    Parameters
    ----------
    room : Room
        The room.
    run_id : str
        The run of the session.
    sight : Sight
        What the viewer sees.
    known : (int, int)
        Generation and number of the last row that it has received.
    key : str
        Hash of its cookie, which identifies its seat.

    Yields
    ------
    dict of str to str
        `event`, `data` and `id`: ``line`` is a message, ``seat`` says that the person's question has changed,
        ``beside`` that there is a new text of a kind that stands beside the dialogue, ``state`` gives the state of the
        session, ``lost`` that it cannot be read.
    """
    before = None
    try:
        # A viewer follows a run, which is on record then.
        await room.watch.after(run_id, None)
        viewer = await run_in_threadpool(lambda: _Viewer(room, run_id, sight, known, key))
        while (now := await room.watch.after(run_id, before)) is not None:
            if (found := await run_in_threadpool(viewer.look, before, now)) is None:
                return
            for each in found:
                yield each
            before = now
    except StoreError as error:
        yield {"event": "lost", "data": str(error)}
