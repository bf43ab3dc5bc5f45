"""Who may do what: the table of rights against every route, and the keys by which visitors are known."""

from __future__ import annotations

import pytest
from starlette.routing import Mount, Route

from opinionsim.errors import StoreError
from opinionsim.store import SeatRow
from opinionsim.web._rights import RIGHTS, Keys, Visitor, hashed, invited
from opinionsim.web._routes import application

OWN, FOREIGN = "run-1", "run-2"
VISITORS = {
    "owner": Visitor(owner=True),
    "seat": Visitor(seats={OWN: 2}),
    "observer": Visitor(watches=frozenset({OWN})),
    "anybody": Visitor(),
}


@pytest.mark.parametrize("role", VISITORS)
@pytest.mark.parametrize("route", RIGHTS)
def test_each_role_may_use_exactly_the_routes_of_the_table_in_its_own_session(route: str, role: str) -> None:
    visitor = VISITORS[role]
    assert visitor.may(route, OWN) == bool({role, "anybody"} & RIGHTS[route])
    everywhere = role == "owner" and "owner" in RIGHTS[route]
    assert visitor.may(route, FOREIGN) == (everywhere or "anybody" in RIGHTS[route])


def test_every_route_has_rights_and_every_right_a_route() -> None:
    class Bare:
        templates = None

    found = application(Bare(), frozenset({"127.0.0.1:1"})).routes  # type: ignore[arg-type]
    assert {each.name for each in found if isinstance(each, Route | Mount)} == set(RIGHTS)


def test_nobody_may_use_a_route_that_is_not_listed() -> None:
    assert not VISITORS["owner"].may("unheard-of", OWN)


def test_a_link_of_the_owner_works_once_and_makes_one_cookie_the_owners() -> None:
    keys = Keys()
    link = keys.link()
    assert keys.enter(link, hashed("cookie")) == ""
    assert keys.enter(link, hashed("another")) is None
    assert keys.visitor("cookie", []).owner
    assert not keys.visitor("another", []).owner
    assert not keys.visitor("", []).owner
    # What is kept are hashes: whoever reads them cannot come in with them.
    assert not keys.visitor(hashed("cookie"), []).owner


def test_a_link_for_looking_on_opens_one_session_once() -> None:
    keys = Keys()
    link = keys.link(OWN)
    assert keys.enter(link, hashed("cookie")) == OWN
    assert keys.enter(link, hashed("other")) is None
    assert keys.visitor("cookie", []).may("session", OWN)
    assert not keys.visitor("cookie", []).may("session", FOREIGN)


@pytest.mark.parametrize("guess", ["", "x", "../../etc/passwd", "\N{SNOWMAN}", "\ud800", "0" * 100_000])
def test_guessed_links_open_nothing(guess: str) -> None:
    keys = Keys()
    keys.link()
    assert keys.enter(guess, hashed("cookie")) is None
    with pytest.raises(StoreError, match="not valid"):
        invited(guess, hashed("cookie"), [SeatRow(OWN, 2, token=hashed("link"))])


def test_an_invitation_is_a_seat_that_nobody_has_taken() -> None:
    free, taken = SeatRow(OWN, 2, token=hashed("link")), SeatRow(OWN, 3, hashed("gone"), 1.0, hashed("used"))
    assert invited("link", hashed("cookie"), [taken, free]).agent == 2
    # The browser that has used a link comes back by it, and no other.
    assert invited("used", hashed("gone"), [taken, free]).agent == 3
    for link, key in (("used", hashed("cookie")), ("gone", hashed("gone")), ("gone", hashed("cookie"))):
        with pytest.raises(StoreError, match="has been used"):
            invited(link, key, [taken, free])
    # The key of an invitation is no cookie: a seat is had by who sat down.
    assert Keys().visitor("link", [free]).seats == {}
    assert Keys().visitor("gone", [taken]).seats == {OWN: 3}
