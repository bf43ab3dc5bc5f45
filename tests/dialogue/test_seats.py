"""What people in a room may do out of turn, and what the room shows them of others."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.rooms import Browser, RoomServer
from tests.support.seats import YES, Session, seats


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RoomServer]:
    """Some rooms, for a session each."""
    fields = {"roles": {"moderator": {}}, "interaction": {"kind": "room", "steps": 6, "every": 3, "analyze_every": 0}}
    with seats(tmp_path_factory.mktemp("seats"), 3, **fields) as found:
        yield found


def test_reports_of_harm_are_kept_whenever_they_come(session: Session) -> None:
    guest, visitor = session.people
    assert guest.want("harm", " ").status == 400
    told = [f"Report number {number}." for number in range(20)]
    with ThreadPoolExecutor(20) as pool:
        assert {each.status for each in pool.map(lambda text: guest.want("harm", text), told)} == {200}
    # The pause that was wanted at the same time is not lost either.
    assert visitor.want("end").status == 200
    for person in session.people:
        person.answer(person.question(), YES)
    guest.until("This session is over")
    assert guest.want("pause").status == 400
    assert visitor.want("harm", "After the last step.").status == 200
    page = session.owner.ask("/").text
    assert all(text in page for text in [*told, "After the last step."])


def test_characters_that_turn_a_line_are_spelled_out_in_names(session: Session) -> None:
    guest, visitor = session.people
    for person in session.people:
        person.answer(person.question(), YES)
    # Whom the moderator calls first is its own choice.
    while 'id="answer"' not in guest.ask(f"{guest.run}/seat").text:
        if 'id="answer"' in visitor.ask(f"{visitor.run}/seat").text:
            visitor.answer(visitor.question(), "Well.")
    guest.answer(guest.question(), "A point.")
    told = [guest.until("Ada\\u202e", ""), guest.ask(f"{guest.run}/debriefing", {}).text]
    assert ["Ada\\u202e" in page and "<strong>Ada\u202e" not in page for page in told] == [True, True]


def test_who_waits_for_others_is_told_by_name_what_is_said(server: RoomServer, owner: Browser, free: list[str]) -> None:
    run, early, late = free.pop(), Browser(server), Browser(server)
    early.come_in(owner.invite(run, 1))
    early.consent()
    with early.following() as lines:
        late.come_in(owner.invite(run, 2))
        late.consent()
        for person in (early, late):
            person.answer(person.question(), YES)
        assert "Moderator" in next(line for line in lines if '"html"' in line)
