"""What happens in a session as server-sent events, read from the store by each viewer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool

from opinionsim.errors import StoreError
from opinionsim.store import TurnRow
from opinionsim.web._session_view import Sight, name_of, standing

if TYPE_CHECKING:
    from opinionsim.store import Follower
    from opinionsim.web._open_room import Room

#: Seconds between two looks at a session: soon after something has happened, and at most.
_OFTEN_S, _SELDOM_S = 0.15, 0.5


class _Viewer:
    """The state of one viewer: what it was told so far."""

    def __init__(self, room: Room, run_id: str, sight: Sight, known: tuple[int, int]) -> None:
        self._room, self._run_id, self._sight = room, run_id, sight
        self._generation, self._seq = known
        self._follower: Follower | None = None
        self._told: dict[str, str] = {}

    def look(self) -> list[dict[str, str]]:
        """What has happened since the last look, as events."""
        room, run_id = self._room, self._run_id
        status = standing(room.reader, run_id)[0]
        found: list[dict[str, str]] = []
        if status and self._follower is None:
            self._follower = room.reader.follow(run_id, after=self._seq, generation=self._generation)
            self._sight.know(room.reader.agents(run_id))
            if self._sight.seat is not None:
                self._sight.heed(room.reader.turns(run_id, self._sight.seat))
        events = [] if self._follower is None else self._follower.poll()
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
        found += self._changed("state", f"{status or 'pending'}{' stopped' if room.error else ''}")
        if self._sight.seat is not None:
            found += self._changed("seat", name_of(room.asked(run_id, self._sight.seat)))
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
    viewer = _Viewer(room, run_id, sight, known)
    pause = _OFTEN_S
    while True:
        try:
            found = await run_in_threadpool(viewer.look)
        except StoreError as error:
            yield {"event": "lost", "data": str(error)}
            return
        for each in found:
            yield each
        pause = _OFTEN_S if found else min(1.5 * pause, _SELDOM_S)
        await asyncio.sleep(pause)
