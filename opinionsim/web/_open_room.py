"""The room: an experiment that runs with people at its seats, and the visitors that its pages know."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse

from opinionsim.errors import StoreError
from opinionsim.foundation.forms import Form
from opinionsim.foundation.templates import templates
from opinionsim.messages import spelled_out
from opinionsim.schedules import CONSENT
from opinionsim.specification import consent_of, participant_names, seat_numbers
from opinionsim.store import SeatRow, WaitRow
from opinionsim.web._desk import Desk
from opinionsim.web._live import Watch
from opinionsim.web._rights import Keys, Visitor, happened, hashed, invited, new_code, new_key
from opinionsim.web._session_view import CLOSED, Sight, standing

if TYPE_CHECKING:
    from opinionsim.llm import Entry, EntryKey
    from opinionsim.specification import Experiment, PlannedRun, SeatSpec
    from opinionsim.store import Store, StoreReader

#: What people at all seats can report out of turn, with a text.
HARM = "harm"


class Room:
    """The sessions of an experiment, one for each replicate, and their seats.

    It keeps no part of a session in memory: pages read what they show from the store each time.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    store : Store
        The open store in which the experiment runs.
    reader : StoreReader
        The same store, open for reading.
    desk : Desk
        Answers for the seats.
    withdrawing : callable
        ``await withdrawing(run_id, agent)`` ends a run and deletes everything from a person's first text on.

    Attributes
    ----------
    keys : Keys
        Links and cookies.
    templates : Environment
        The templates of its pages; every value is escaped.
    consent_text : Consent or None
        The text to which people consent.
    error : str
        Why the experiment has stopped; empty while it runs.
    forms : dict
        Forms of the questions that were answered here, by run, seat and key: a question that is over has none.
    links : dict
        Keys of links that are not used yet, by run and seat, or None for observers.
    held : list of SeatRow or None
        Who sits where, kept because every request needs it; None after a change, which only this room makes.
    watch : Watch
        Says when something has happened in a session.
    """

    def __init__(
        self,
        experiment: Experiment,
        store: Store,
        reader: StoreReader,
        desk: Desk,
        withdrawing: Callable[[str, int], Awaitable[None]],
    ) -> None:
        self.experiment = experiment
        self.store = store
        self.reader = reader
        self.desk = desk
        desk.wanted = self.wanted
        self.withdrawing = withdrawing
        self.consent_text = consent_of(experiment)
        self.templates = templates("opinionsim.web")
        self.keys = Keys()
        self.error = ""
        self.links: dict[tuple[str, int | None], str] = {}
        self._holding = threading.Lock()
        self.held: list[SeatRow] | None = None
        self.forms: dict[tuple[str, int, EntryKey], Form] = {}
        self.watch = Watch(self)
        for seat in self.seated():
            if happened(seat, "left"):
                desk.leave(seat.run_id, seat.agent)
        for run_id in self.runs:
            self._begin_if_taken(run_id)

    @cached_property
    def runs(self) -> Mapping[str, PlannedRun]:
        """The runs by id, in the order of the design; cells that share a run show it once."""
        return {planned.run_id: planned for planned in reversed(self.experiment.runs)}

    def planned(self, run_id: str) -> PlannedRun:
        """The run of a session.

        Raises
        ------
        HTTPException
            If there is none.
        """
        if run_id not in self.runs:
            raise HTTPException(404, "There is no such session.")
        return self.runs[run_id]

    def seats(self, run_id: str) -> Mapping[int, SeatSpec]:
        """The seats of a session, by number in the cast."""
        return seat_numbers(self.planned(run_id).spec)

    def seat_name(self, run_id: str, agent: int) -> str:
        """The name of a seat."""
        spec = self.planned(run_id).spec
        names = participant_names(spec)
        return spelled_out(names[agent]) if agent < len(names) else f"Seat {agent}"

    def page(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A page made from a template."""
        return HTMLResponse(self.templates.get_template(template).render(room=self, **values), status)

    def seat(self, run_id: str, agent: int) -> SeatRow:
        """The person at a seat."""
        own = (row for row in self.seated() if (row.run_id, row.agent) == (run_id, agent))
        return next(own, SeatRow(run_id, agent))

    # Who is known

    def visitor(self, cookie: str) -> Visitor:
        """The visitor with a cookie."""
        return self.keys.visitor(cookie, self.seated())

    def seated(self) -> list[SeatRow]:
        """Who sits where, read again after a seat has changed."""
        with self._holding:
            self.held = self.reader.seats() if self.held is None else self.held
            return self.held

    def invite(self, run_id: str, agent: int | None) -> None:
        """Make a new link to a seat, which ends earlier links and the access of its person; None is for observers.

        Raises
        ------
        StoreError
            If the session is over, the owner is trying it, it has no text to consent to, or the person has left.
        """
        if agent is None:
            self.links[run_id, agent] = self.keys.link(run_id)
            return
        if self.consent_text is None:
            raise StoreError(
                "To invite people, name the text that they consent to in the specification, as ethics: {consent: "
                "FILE}; /static/consent.yaml is a template. Without one, you can only try it yourself."
            )
        link = new_key()

        def invited(seat: SeatRow) -> SeatRow:
            if seat.trial:
                raise StoreError("You are trying this session yourself, so nobody else can take a seat.")
            if happened(seat, "left"):
                raise StoreError("The person in this seat has left for good, so the seat stays vacant.")
            # Who has consented comes back to its own seat; the next person at another one is asked anew.
            kept = SeatRow(run_id, agent, events=seat.events) if seat.consented_at is None else seat
            return replace(kept, token=hashed(link), link=None, joined_at=None, events=(*seat.events, _event("link")))

        self._change(run_id, agent, invited)
        self.links[run_id, agent] = link

    def take(self, link: str, key: str) -> str:
        """Give the seat of a link to the browser whose cookie has this hash, and return its run.

        Raises
        ------
        StoreError
            If the link is not valid, or another browser has used it.
        """
        found = invited(link, key, self.reader.seats())

        def taken(seat: SeatRow) -> SeatRow:
            if (seat.token, seat.joined_at) != (found.token, None):
                raise StoreError("This seat is taken.")
            return replace(seat, token=key, link=seat.token, joined_at=time.time())

        if found.joined_at is None:
            self._change(found.run_id, found.agent, taken)
            self.links.pop((found.run_id, found.agent), None)
        return found.run_id

    def sit(self, run_id: str, agent: int, key: str) -> None:
        """Seat the owner alone in a session to try it, and mark the run as a trial.

        Raises
        ------
        StoreError
            If the seat is taken, or the session has others.
        """
        if list(self.seats(run_id)) != [agent]:
            raise StoreError("You can only try a session with one seat by yourself; for more seats, send links.")

        def taken(seat: SeatRow) -> SeatRow:
            if (seat.joined_at, seat.consented_at) != (None, None):
                raise StoreError("This seat is taken.")
            return replace(seat, token=key, joined_at=time.time(), trial=True)

        self._change(run_id, agent, taken)

    def _change(self, run_id: str, agent: int, change: Callable[[SeatRow], SeatRow]) -> None:
        """Change who sits at a seat of a session that is not over; the last one to come lets it begin."""
        if standing(self.reader, run_id)[0] in CLOSED:
            raise StoreError("This session is over.")
        self._save(run_id, agent, change)
        self._begin_if_taken(run_id)

    def _save(self, run_id: str, agent: int, change: Callable[[SeatRow], SeatRow]) -> None:
        with self._holding:
            self.store.change_seat(run_id, agent, change)
            self.held = None

    def want(self, run_id: str, agent: int, what: str, text: str = "") -> None:
        """Record what a person requests out of turn; the next signal turn of its seat takes it up."""
        wanted = _event(what, text)
        self._save(run_id, agent, lambda seat: replace(seat, events=(*seat.events, wanted)))

    def handle(self, run_id: str, agent: int, number: int, done: str) -> None:
        """Record how a report of harm was dealt with; `number` is its place among the events of the seat."""

        def handled(seat: SeatRow) -> SeatRow:
            events = [{**event, "done": done} if place == number else event for place, event in enumerate(seat.events)]
            return replace(seat, events=tuple(events))

        self._save(run_id, agent, handled)

    def wanted(self, run_id: str, agent: int) -> tuple[str, ...]:
        """Requests of a person that no recorded signal turn has taken up."""
        events = next((row.events for row in self.store.seats(run_id) if row.agent == agent), ())
        interaction = self.planned(run_id).spec.interaction
        can, acts = {*interaction.wants, HARM}, interaction.acts
        wants = [": ".join(filter(None, (each["what"], each["text"]))) for each in events if each["what"] in can]
        if not wants:
            return ()
        signals = {name for name, act in acts.items() if isinstance(act.form, Form) and act.form.kind == "signal"}
        told = (entry for entry in self.store.entries(run_id) if entry.agent == agent and entry.act in signals)
        return tuple(wants[sum(len(entry.text.splitlines()) for entry in told) :])

    def consent(self, run_id: str, agent: int, text_hash: str, *, publishes: bool = False) -> str:
        """Record that the person at a seat consents to a text, and return the code for withdrawing.

        Parameters
        ----------
        run_id, agent : str, int
            The seat.
        text_hash : str
            Hash of the text.
        publishes : bool
            Whether the person also consents to publication of what they write.

        Raises
        ------
        StoreError
            If the person has consented already, because the code is shown only once.
        """
        code = new_code()

        def consenting(seat: SeatRow) -> SeatRow:
            if seat.joined_at is None or seat.trial or seat.consented_at is not None:
                raise StoreError("Your consent is not needed now. Your private code appeared once and was not stored.")
            given = replace(seat, consent=text_hash, consented_at=time.time(), publishes=publishes)
            return replace(given, withdrawal=hashed(code))

        self._change(run_id, agent, consenting)
        return "-".join(code[place : place + 4] for place in range(0, len(code), 4))

    def leave(self, run_id: str, agent: int) -> None:
        """Give up the seat of a person for good; before the session begins, free it for somebody else."""
        begun = standing(self.reader, run_id)[0] not in ("", "pending")

        def left(seat: SeatRow) -> SeatRow:
            events = (*seat.events, *([_event("left")] if begun else []))
            return replace(seat if begun else SeatRow(run_id, agent), events=events)

        self._save(run_id, agent, left)
        if begun:
            self.desk.leave(run_id, agent)

    async def withdraw(self, code: str) -> None:
        """Withdraw what the person with a code wrote, and end its session for good.

        Raises
        ------
        StoreError
            If nobody has this code.
        """
        key = hashed("".join(code.casefold().replace("-", " ").split()))
        row = next((each for each in self.reader.seats() if each.withdrawal == key), None)
        if row is None:
            raise StoreError("Nobody has this code; please check the spelling.")
        await self.withdrawing(row.run_id, row.agent)
        gone = _event("withdrawn")
        self._save(row.run_id, row.agent, lambda seat: replace(seat, events=(*seat.events, gone)))

    def _begin_if_taken(self, run_id: str) -> None:
        """Let a session begin once all its seats are taken, and all people at them have consented."""
        taken = (row for row in self.reader.seats(run_id) if row.joined_at is not None)
        ready = {row.agent for row in taken if row.trial or row.consented_at is not None}
        if standing(self.reader, run_id)[0] not in CLOSED and ready >= set(self.seats(run_id)):
            self.desk.open(run_id)

    # What pages show

    def sight(self, run_id: str, visitor: Visitor) -> Sight:
        """What a visitor sees of a session."""
        return Sight(self.planned(run_id), self.reader.agents(run_id), visitor)

    def asked(self, run_id: str, agent: int, key: EntryKey | None = None) -> WaitRow | None:
        """The current question to the person at a seat, or the one with a key; None if there is none."""
        own = [row for row in self.questions(self.reader, run_id) if row.agent == agent]
        return next((row for row in own if key in (None, (row.turn, row.call, row.attempt))), None)

    def questions(self, reader: StoreReader, run_id: str | None = None) -> list[WaitRow]:
        """The questions that are open to people, in a session or by default in all."""
        # The desk knows of the consent, which was given before the session began.
        return [row for row in reader.waits(run_id) if row.question["act"] != CONSENT.name]

    def entry(self, run_id: str, agent: int, key: EntryKey) -> Entry | None:
        """The record of a seat for a key."""
        own = (entry for entry in self.reader.entries(run_id, key.turn) if entry.agent == agent)
        return next((entry for entry in own if entry.key == key), None)


def _event(what: str, text: str = "") -> dict[str, Any]:
    """Something that happens at a seat now."""
    return {"at": time.time(), "what": what, "text": text, "done": ""}
