"""Who may do what: one table for all routes, and the keys that identify visitors."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from opinionsim.errors import StoreError
from opinionsim.store import SeatRow

#: Roles that may use a route, by its name: the owner of the experiment; somebody at a seat of a session, or who looks
#: on, each in that session alone; anybody. A route that is not listed is refused.
RIGHTS: Mapping[str, frozenset[str]] = {
    route: frozenset(roles.split())
    for roles, routes in {
        "anybody": "static enter home withdrawal",
        "owner seat observer": "session live beside",
        "seat": "seat consent answer signal debriefing",
        "owner": "invite sit handle download settings",
    }.items()
    for route in routes.split()
}


def new_key() -> str:
    """A secret that cannot be guessed, for a link or a cookie."""
    return secrets.token_urlsafe(32)


def new_code() -> str:
    """A secret that a person can write down: no letter looks like a digit, and case does not matter."""
    return "".join(secrets.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(16))


def hashed(key: str) -> str:
    """The stored form of a key: its SHA-256, which is enough because keys are random and long."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True)
class Visitor:
    """The visitor who requests a page.

    Attributes
    ----------
    owner : bool
        Whether the visitor is the owner.
    seats : mapping of str to int
        The visitor's seat in each session, by run.
    watches : frozenset of str
        Runs whose sessions the visitor may observe.
    owing : frozenset of str
        Runs in which the visitor has a seat but has not given consent yet; an owner's trial needs none.
    gone : frozenset of str
        Runs in which the visitor has left the seat for good.
    """

    owner: bool = False
    seats: Mapping[str, int] = field(default_factory=dict)
    watches: frozenset[str] = frozenset()
    owing: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()

    @property
    def known(self) -> bool:
        """Whether this server knows the visitor."""
        return bool(self.owner or self.seats or self.watches)

    def roles(self, run_id: str) -> set[str]:
        """Roles of the visitor in the session of a run; with an empty `run_id`, roles outside sessions."""
        held = {"owner": self.owner, "seat": run_id in self.seats, "observer": run_id in self.watches}
        return {"anybody", *(role for role, own in held.items() if own)}

    def may(self, route: str, run_id: str = "") -> bool:
        """Whether the visitor may use a route."""
        return bool(self.roles(run_id) & RIGHTS.get(route, frozenset()))


class Keys:
    """The keys of a server: links that work once, and the cookies they become; only hashes are kept.

    The store keeps cookies of seats; those of owner and observers end with the server. An empty run means all runs,
    which only the owner may see.
    """

    def __init__(self) -> None:
        self._links: dict[str, str] = {}
        self._known: dict[str, set[str]] = {}

    def link(self, run_id: str = "") -> str:
        """Make a key for a link that lets one browser observe the session of a run; by default, the owner's link."""
        key = new_key()
        self._links[hashed(key)] = run_id
        return key

    def owns(self, link: str) -> bool:
        """Whether a link is the owner's and unused."""
        return self._links.get(hashed(link)) == ""

    def enter(self, link: str, cookie: str) -> str | None:
        """Use up a link of the owner or an observer. Return its run, empty for the owner, or None if it is not valid.

        Parameters
        ----------
        link : str
            The key of the link.
        cookie : str
            Hash of the cookie of the browser that brings it.
        """
        run_id = self._links.pop(hashed(link), None)
        if run_id is not None:
            self._known.setdefault(cookie, set()).add(run_id)
        return run_id

    def visitor(self, cookie: str, seats: Sequence[SeatRow]) -> Visitor:
        """The visitor with a cookie, by its key, among those who have seats."""
        if not cookie:
            return Visitor()
        key = hashed(cookie)
        own = [row for row in seats if row.token == key and row.joined_at is not None]
        owing = frozenset(row.run_id for row in own if not row.trial and row.consented_at is None)
        gone = frozenset(row.run_id for row in own if happened(row, "left"))
        known = self._known.get(key, set())
        return Visitor("" in known, {row.run_id: row.agent for row in own}, frozenset(known - {""}), owing, gone)


def happened(seat: SeatRow, what: str) -> float | None:
    """When an event last happened at a seat; None for never."""
    return max((event["at"] for event in seat.events if event["what"] == what), default=None)


def invited(link: str, key: str, seats: Sequence[SeatRow]) -> SeatRow:
    """The seat that a link is for, or that it has given to the browser whose cookie has the hash `key`.

    Raises
    ------
    StoreError
        If the link is for no seat, another browser has its seat, or this browser has a seat there already.
    """
    token = hashed(link)
    for row in seats:
        if (row.token == token and row.joined_at is None) or (row.link, row.token) == (token, key):
            if any((each.run_id, each.token) == (row.run_id, key) and each.agent != row.agent for each in seats):
                raise StoreError("This browser already has a seat in this session; each person takes one seat.")
            return row
    raise StoreError("This link is not valid or has been used; a link opens a seat once, in one browser.")
