"""What people at seats can learn and take back: whose answers count, reports of harm, and new links to seats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from tests.support.rooms import Browser, RoomServer, room
from tests.support.seats import CONSENT, NO, YES, Session, seats


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RoomServer]:
    """A room of many sessions, for a session each."""
    with seats(tmp_path_factory.mktemp("seats"), 10, interaction={"kind": "independent", "reports": 3}) as found:
        yield found


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


def test_ballots_and_ratings_sent_again_are_told_what_is_on_record(tmp_path: Path, checkout: Path) -> None:
    spec = yaml.safe_load((checkout / "experiments" / "consensus_quickstart.yaml").read_text(encoding="utf-8"))
    del spec["population"]
    cast = [{"name": "Guest", "seat": {}}, *({"name": name} for name in ("Ada", "Ben", "Cleo"))]
    spec |= {"cast": cast, "ethics": {"consent": "consent.yaml"}}
    (tmp_path / "consent.yaml").write_text(yaml.safe_dump(CONSENT), encoding="utf-8")
    (tmp_path / "ballots.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    found = set[str]()
    with room("ballots.yaml", tmp_path) as server, ThreadPoolExecutor(8) as pool:
        owner, guest = Browser(server), Browser(server)
        owner.come_in(server.link)
        guest.come_in(owner.invite(owner.sessions()[0], 0))
        guest.consent()
        while len(found) < 2:
            asked, page = guest.question(), guest.ask(f"{guest.run}/seat").text
            if not (items := re.findall(r'name="(item-\d+)"', page)):
                chosen = re.search(r'name="text" value="([^"]*)"', page)
                guest.answer(asked, chosen[1] if chosen else "It should open.")
                continue
            found.add("ratings" if 'type="radio"' in page else "ranking")
            first, other = dict.fromkeys(items, "1"), {**dict.fromkeys(items, "1"), "item-0": "2"}
            told = [*pool.map(lambda form: _filled_in(guest, form), [{**asked, **first}] * 8)]
            told += [_filled_in(guest, {**asked, **form}) for form in (first, other)]
            assert told == [200] * 9 + [409], (found, asked)


def _filled_in(person: Browser, form: dict[str, str]) -> int:
    """The status of a reply to a form."""
    return person.ask(f"{person.run}/answer", form, accept="application/json").status


def _stored(server: RoomServer, *words: str) -> dict[str, bool]:
    """Whether words are in a byte of the store or its log."""
    kept = b"".join(path.read_bytes() for path in server.folder.rglob("*.sqlite*"))
    return {word: word.encode() in kept for word in words}


def test_withdrawal_takes_every_word_and_leaves_that_harm_was_reported(server: RoomServer, session: Session) -> None:
    guest, visitor = session.people
    guest.answer(guest.question(), YES)
    assert guest.want("harm", "Xylophone quagmire.").status == visitor.want("harm", "Kazoo.").status == 200
    assert _stored(server, "Xylophone quagmire", "Kazoo") == {"Xylophone quagmire": True, "Kazoo": True}
    number, seat = session.owner.report("Xylophone")
    session.owner.ask(f"{session.run}/handle", {"seat": seat, "report": number, "text": "Spoke to both."})
    guest.ask("/withdrawal", {"code": session.codes[0]})
    assert _stored(server, "Xylophone", "quagmire", "Kazoo") == {"Xylophone": False, "quagmire": False, "Kazoo": True}
    page = session.owner.ask("/").text
    assert "withdrew their texts" in page
    told = [person.ask(f"{session.run}/seat").text for person in session.people]
    assert ["not be used in any result" in each for each in told] == [True, True]
    assert ["Another person has withdrawn" in each for each in told] == [False, True]
    assert ['href="/withdrawal"' in each for each in told] == [False, True]
    assert "the text was withdrawn" in page
    assert "Spoke to both." in page


def test_who_leaves_is_asked_first_and_nobody_waits_for_it(session: Session) -> None:
    guest, visitor = session.people
    asked, page = guest.question(), guest.ask(f"{session.run}/debriefing").text
    assert ("You cannot come back" in page, CONSENT["debriefing"] in page) == (True, False)
    assert guest.answer(asked, YES).status == 200
    assert CONSENT["debriefing"] in guest.ask(f"{session.run}/debriefing", {}).text
    # There is no time limit, so that a seat that waits would hold the session up for ever.
    while "This session is over" not in (page := visitor.until('data-key="', "/seat")):
        if 'id="answer"' in page:
            choices = re.findall(r'name="text" value="([^"]*)"', page)
            visitor.answer(visitor.question(), choices[0] if choices else "Well.")
    assert "what this study is about" in page
    assert "left for good" in session.owner.ask("/").text
    assert guest.ask(session.run).headers["location"].endswith("/debriefing")
    assert CONSENT["debriefing"] in guest.ask(f"{session.run}/debriefing").text


def test_a_link_is_shown_until_it_is_used_by_a_browser_without_a_seat_there(
    server: RoomServer, owner: Browser, free: list[str]
) -> None:
    run, person = free.pop(), Browser(server)
    links = [owner.invite(run, seat) for seat in (1, 2)]
    home = owner.ask("/").text
    assert [link in home for link in links] == [True, True]
    assert home.count("not used yet") == 2
    person.come_in(links[0])
    told = person.come_in(links[1])
    assert (told.status, "already has a seat in this session" in told.text) == (400, True)
    person.run = run
    person.consent()
    assert [link in owner.ask("/").text for link in links] == [False, True]
    # Before the session begins, the seat of somebody who leaves is free for another person.
    assert CONSENT["debriefing"] in person.ask(f"{run}/debriefing", {}).text
    assert person.ask(run).status == 401
    owner.invite(run, 1)


def test_a_seat_is_given_anew_and_its_person_comes_back(server: RoomServer, owner: Browser, free: list[str]) -> None:
    run, opened, person, other = free.pop(), Browser(server), Browser(server), Browser(server)
    link = owner.invite(run, 1)
    opened.come_in(link)
    assert opened.want("harm", "Too soon.").status == 400
    for part in ("", "/seat", "/beside/analysis", "/debriefing"):
        assert opened.ask(f"{run}{part}").headers["location"].endswith(f"{run}/consent")
    with opened.following() as lines:
        assert next(lines, "") == ""
    # It never consents: a new link gives its seat to somebody else.
    second = owner.invite(run, 1)
    assert opened.ask(run).status == 401
    assert opened.come_in(link).status == 400
    person.come_in(second)
    code = person.consent()
    assert person.come_in(second).headers["location"].endswith(run)
    assert other.come_in(second).status == 400
    # It has lost its cookie: a third link keeps its consent and its code.
    third = owner.invite(run, 1)
    assert person.ask(run).status == 401
    again = Browser(server)
    again.come_in(third)
    assert "Waiting for others" in again.ask(f"{run}/seat").text
    assert "nobody" not in again.ask("/withdrawal", {"code": code}).text


def test_who_has_lost_the_seat_is_told_nothing_more(server: RoomServer, session: Session) -> None:
    old, visitor = session.people
    visitor.answer(visitor.question(), YES)
    with old.following() as lines:
        assert any("event: seat" in line for line in lines)
        new = Browser(server)
        new.come_in(session.owner.invite(session.run, 1))
        for text in (YES, "A report."):
            new.answer(new.question(), text)
        # The lines end with the stream.
        for line in lines:
            assert '"html"' not in line
    with new.following() as lines:
        assert any('"html"' in line for line in lines)
