"""What people at seats can learn and take back: whose answers count, reports of harm, and new links to seats."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
import yaml

from tests.support.rooms import Browser, RoomServer, room

YES, NO = "strongly positive", "strongly negative"
CONSENT = {name: f"What is said of {name}." for name in
           ("version", "purpose", "speakers", "provider", "observers", "keeping", "contact", "debriefing")}  # fmt: skip
SPEC = {
    "name": "seats",
    "topic": {"definition": {
        "name": "sundays", "title": "Sundays", "category": "policy",
        "claims": {"for": "The library should open on Sundays", "against": "It should stay closed on Sundays"}},
        "framing": "for"},
    "cast": [{"name": "Ada"}, {"name": "Guest", "seat": {}}, {"name": "Visitor", "seat": {}}],
    "roles": {"moderator": {}},
    "interaction": {"kind": "room", "steps": 6, "every": 3, "analyze_every": 0},
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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RoomServer]:
    """A room of many sessions, for a session each."""
    folder = tmp_path_factory.mktemp("seats")
    (folder / "consent.yaml").write_text(yaml.safe_dump(CONSENT), encoding="utf-8")
    (folder / "seats.yaml").write_text(yaml.safe_dump({**SPEC, "replicates": 12}), encoding="utf-8")
    with room("seats.yaml", folder) as found:
        yield found


@pytest.fixture(scope="module")
def owner(server: RoomServer) -> Browser:
    owner = Browser(server)
    owner.come_in(server.link)
    return owner


@pytest.fixture(scope="module")
def free(owner: Browser) -> list[str]:
    """Paths of the sessions that no test has taken."""
    return owner.sessions()


@pytest.fixture
def session(server: RoomServer, owner: Browser, free: list[str]) -> Session:
    run, people = free.pop(), (Browser(server), Browser(server))
    for seat, person in enumerate(people, 1):
        person.come_in(owner.invite(run, seat))
    return Session(owner, people, (people[0].consent(), people[1].consent()))


def test_nothing_about_a_foreign_question_can_be_told_from_the_reply(session: Session) -> None:
    guest, visitor = session.people
    asked = guest.question()
    never = {**asked, "turn": "999999"}
    for when in ("open", "answered"):
        told = {(each.status, each.text) for key in (asked, never) for text in (YES, NO, "") for each in [
            visitor.answer(key, text)]}  # fmt: skip
        assert len(told) == 1, when
        assert next(iter(told))[0] == 409
        if when == "open":
            assert guest.answer(asked, YES).status == 200
    assert guest.answer(asked, NO).status == 409


@pytest.mark.parametrize("texts", [[YES] * 8, [YES] * 4 + [NO] * 4])
def test_answers_at_once_are_told_what_is_on_record(session: Session, texts: list[str]) -> None:
    guest, _ = session.people
    asked = guest.question()
    with ThreadPoolExecutor(len(texts)) as pool:
        told = list(pool.map(lambda text: guest.answer(asked, text), texts))
    on_record = {text for text, each in zip(texts, told, strict=True) if each.status == 200}
    assert len(on_record) == 1
    for text, each in zip(texts, told, strict=True):
        assert each.status == (200 if text in on_record else 409)
