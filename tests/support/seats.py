"""Sessions with two people at their seats, who have consented."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.support.rooms import Browser, RoomServer, room

YES, NO = "strongly positive", "strongly negative"
#: The text to which they consent.
CONSENT = {name: f"What is said of {name}." for name in
           ("version", "purpose", "speakers", "provider", "observers", "keeping", "contact", "debriefing")}  # fmt: skip
_SPEC = {
    "name": "seats",
    "topic": {"definition": {
        "name": "sundays", "title": "Sundays", "category": "policy",
        "claims": {"for": "The library should open on Sundays", "against": "It should stay closed on Sundays"}},
        "framing": "for"},
    "cast": [{"name": "Ada\u202e"}, {"name": "Guest", "seat": {}}, {"name": "Visitor", "seat": {}}],
    "measurement": {"self_report": {"before": 1, "after": 0}},
    "ethics": {"consent": "consent.yaml"},
}  # fmt: skip


class Session(NamedTuple):
    """A session under way: its owner, and the people at its two seats with their private codes."""

    owner: Browser
    people: tuple[Browser, Browser]
    codes: tuple[str, str]

    @property
    def run(self) -> str:
        """Path of the session."""
        return self.people[0].run

    @classmethod
    def begun(cls, server: RoomServer, owner: Browser, run: str) -> Session:
        """A session with two people who have come in and consented."""
        people = Browser(server), Browser(server)
        for seat, person in enumerate(people, 1):
            person.come_in(owner.invite(run, seat))
        return cls(owner, people, (people[0].consent(), people[1].consent()))


@contextmanager
def seats(folder: Path, sessions: int, **fields: Any) -> Iterator[RoomServer]:
    """A room of some sessions of an interaction, with two seats each."""
    (folder / "consent.yaml").write_text(yaml.safe_dump(CONSENT), encoding="utf-8")
    (folder / "seats.yaml").write_text(yaml.safe_dump({**_SPEC, "replicates": sessions, **fields}), encoding="utf-8")
    with room("seats.yaml", folder) as found:
        yield found


@pytest.fixture(scope="module")
def owner(server: RoomServer) -> Browser:
    """The owner of the room that the module has opened."""
    owner = Browser(server)
    owner.come_in(server.link)
    return owner


@pytest.fixture(scope="module")
def free(owner: Browser) -> list[str]:
    """Paths of the sessions that no test has taken."""
    return owner.sessions()


@pytest.fixture
def session(server: RoomServer, owner: Browser, free: list[str]) -> Session:
    """A session with two people, begun for the test."""
    return Session.begun(server, owner, free.pop())
