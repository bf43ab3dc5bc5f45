"""The pages of the room, one function each, with the name of its route in the table of rights."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from opinionsim.errors import OpinionSimError, SpecError, StoreError
from opinionsim.foundation.forms import Form
from opinionsim.llm import EntryKey
from opinionsim.messages import printable, spelled_out
from opinionsim.planning import plan
from opinionsim.registry import find, places
from opinionsim.specification import Experiment, PlannedRun
from opinionsim.store import TurnRow
from opinionsim.web._live import events
from opinionsim.web._open_room import HARM, Room
from opinionsim.web._rights import happened
from opinionsim.web._session_view import CLOSED, Sight, as_csv, export, given_up, name_of, stamp, standing
from opinionsim.web._settings import changed, saved, settings as listed
from opinionsim.web._trial import tried

SIGN_IN = "Please open the link that you received. The terminal in which the room was started shows the owner's link."
NOT_YOURS = "You do not have access to this page."
#: Most characters of an answer.
MOST_CHARACTERS = 20_000
#: Longest wait for an answer to be on record, and time between two looks at whether the run has come to it, seconds.
_DURABLE_S, _LOOK_S = 10.0, 0.1
#: Parts of the text to which people consent, in order.
_CONSENT = ("purpose", "speakers", "provider", "observers", "keeping", "contact")
#: Seconds before a wrong code is answered.
_GUESS_S = 1.0


# -- coming in -----------------------------------------------------------------------------------------------


def enter(room: Room, request: Request) -> Response:
    """Turn a link into a cookie: the owner's, an observer's, or one to a seat."""
    link, key = request.path_params["key"], request.state.key
    if request.method != "POST" and not room.keys.owns(link):
        # Programs that look at links in messages must not use them up.
        return room.page("enter.html", title="Join the discussion", link=link)
    run_id = room.keys.enter(link, key)
    if run_id is None:
        # The browser that has used a link already comes back by it.
        run_id = room.take(link, key)
    room.links.pop((run_id, None), None)
    return RedirectResponse(request.url_for("session", run=run_id) if run_id else request.url_for("home"), 303)


def home(room: Room, request: Request) -> Response:
    """The sessions, with unused links: all for the owner, otherwise those that the visitor takes part in."""
    visitor, listed = request.state.visitor, []
    states = room.reader.registered(room.runs)
    for number, (run_id, planned) in enumerate(sorted(room.runs.items(), key=lambda each: each[1].replicate), 1):
        if not visitor.may("session", run_id):
            continue
        state = states.get(run_id)
        seats = [
            {
                "agent": agent,
                "name": room.seat_name(run_id, agent),
                "row": row,
                "gone": bool(row.consented_at) and given_up(room.reader.turns(run_id, agent)),
            }
            for agent in room.seats(run_id)
            for row in [room.seat(run_id, agent)]
        ]
        listed.append(
            {"number": number, "run_id": run_id, "label": planned.cell.label,
             "status": "pending" if state is None else state.status,
             "error": state.error if state is not None and state.status == "incomplete" else "",
             "evidence": stamp("" if state is None else state.evidence),
             "seats": seats}
        )  # fmt: skip
    if not listed and not visitor.owner:
        return room.page("notice.html", title="The room", notice=SIGN_IN)
    title, clock = room.experiment.spec.name, lambda at: time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
    told = {"sessions": listed, "owner": visitor.owner, "clock": clock, "happened": happened}
    return room.page("home.html", title=title, address=str(request.url_for("enter", key="-"))[:-1], **told)


def invite(room: Room, request: Request) -> Response:
    """Make a link to a seat or for an observer."""
    run_id, given = request.path_params["run"], request.state.given
    room.planned(run_id)
    room.invite(run_id, None if given.get("seat") == "none" else _seat(room, request))
    # A page that is loaded again makes no link again.
    return RedirectResponse(f"{request.url_for('home')}#{run_id}", 303)


def sit(room: Room, request: Request) -> Response:
    """Seat the owner, alone, to try a session."""
    run_id = request.path_params["run"]
    room.sit(run_id, _seat(room, request), request.state.key)
    return RedirectResponse(request.url_for("session", run=run_id), 303)


def handle(room: Room, request: Request) -> Response:
    """Record how the owner has dealt with a report of harm."""
    run_id, given = request.path_params["run"], request.state.given
    room.handle(run_id, _seat(room, request), _number(given, "report"), _line(given) or "dealt with")
    return RedirectResponse(request.url_for("home"), 303)


def consent(room: Room, request: Request) -> Response:
    """Ask the person at a seat for consent and age, and show the code for withdrawing."""
    run_id, given, text = request.path_params["run"], request.state.given, room.consent_text
    if text is None:
        raise HTTPException(404, "This session needs no consent.")

    def page(problem: str = "") -> Response:
        parts = [(name.capitalize(), getattr(text, name)) for name in _CONSENT]
        title, status = f"{room.experiment.spec.name}: consent", 400 if problem else 200
        return room.page("consent.html", status=status, run_id=run_id, title=title, parts=parts, problem=problem)

    if request.method == "GET":
        return page()
    if given.get("want") == "decline" and run_id in request.state.visitor.owing:
        room.leave(run_id, request.state.visitor.seats[run_id])
        return room.page("notice.html", title="Thank you", notice="You are not taking part; no data of yours is kept.")
    if given.get("text") != text.hash:
        return page("This text changed after you opened it; please read the new version.")
    if given.get("age") != "yes" or given.get("agree") != "yes":
        return page("To take part, you must be old enough and agree. Otherwise, close this page.")
    if any(given.get(f"check-{place}") != check.right for place, check in enumerate(text.comprehension)):
        return page("Some answers about the text are wrong; please read it again.")
    publishes = bool(text.publication) and given.get("publish") == "yes"
    code = room.consent(run_id, request.state.visitor.seats[run_id], text.hash, publishes=publishes)
    return room.page("consented.html", run_id=run_id, title="Your private code", code=code)


def debriefing(room: Room, request: Request) -> Response:
    """The debriefing for a person who leaves for good, after a confirmation, or whose session is over."""
    run_id, visitor = request.path_params["run"], request.state.visitor
    planned, agent = room.planned(run_id), visitor.seats[run_id]
    title, over = planned.spec.name, standing(room.reader, run_id)[0] in CLOSED or run_id in visitor.gone
    if not over and request.method == "POST":
        room.leave(run_id, agent)
    elif not over and not given_up(room.reader.turns(run_id, agent)):
        return room.page("leave.html", run_id=run_id, title=f"{title}: leaving")
    claim = room.experiment.resources.claim(planned.spec)
    wrong = claim is not None and claim.accepted is not None and claim.framing != claim.accepted
    return room.page(
        "debriefing.html",
        title=f"{title}: about this study",
        speakers=[spelled_out(row.name) for row in room.reader.agents(run_id) if row.evidence in ("model", "scripted")],
        false_claim=claim.statement if wrong and claim is not None else "",
        withdrawn=happened(room.seat(run_id, agent), "withdrawn"),
    )


async def withdrawal(room: Room, request: Request) -> Response:
    """Withdraw what a person wrote, by its private code."""
    problem, done = "", request.method == "POST"
    if done:
        try:
            await room.withdraw(request.state.given.get("code", "").strip())
        except StoreError as error:
            problem, done = str(error), False
            await asyncio.sleep(_GUESS_S)
    return room.page("withdrawal.html", status=400 if problem else 200, title="Withdrawal", problem=problem, done=done)


# -- a session -----------------------------------------------------------------------------------------------


def session(room: Room, request: Request, problem: str = "") -> Response:
    """A session: its dialogue, what stands beside it, and the visitor's question."""
    run_id, visitor = request.path_params["run"], request.state.visitor
    planned = room.planned(run_id)
    status, evidence = standing(room.reader, run_id)
    began = room.reader.follow(run_id) if status else None
    known = 0 if began is None else max((event.seq for event in began.poll()), default=0)
    turns = room.reader.turns(run_id) if status else []
    sight = room.sight(run_id, visitor)
    return room.page(
        "session.html",
        status=400 if problem else 200,
        title=f"{planned.spec.name}: session {planned.replicate + 1}",
        run_id=run_id,
        state=status or "pending",
        evidence=stamp(evidence),
        about=about(room, planned),
        lines=sight.lines(turns),
        since=f"{0 if began is None else began.state.generation}.{known}",
        beside=_beside(planned, turns).values(),
        owner=visitor.owner,
        **_asked(room, request, sight, problem),
    )


def _asked(room: Room, request: Request, sight: Sight, problem: str = "") -> dict[str, Any]:
    """What the part of a page shows in which a person answers."""
    run_id = request.path_params["run"]
    asked = None if sight.seat is None else room.asked(run_id, sight.seat)
    seat = None if sight.seat is None else room.seats(run_id)[sight.seat]
    left = None if asked is None or asked.deadline is None else asked.deadline - time.time()
    # Where not everybody hears everything, what is shown with a question is not in the dialogue yet.
    question = {} if asked is None else asked.question
    apart = () if room.planned(run_id).spec.interaction.public else question.get("reads", ())
    own = room.reader.turns(run_id, sight.seat) if sight.seat is not None else []
    sight.heed(own)
    form = Form.of_json(question.get("form", {}))
    if asked is not None:
        sight.show(asked.turn, question["act"], apart)
    # What a form shows itself is not shown twice.
    shown = [line for line in sight.lines(room.reader.turns(run_id, only=apart)) if line.text not in form.shown]
    taken = {row.agent for row in room.reader.seats(run_id) if row.joined_at is not None}
    kept = request.state.given
    if asked is not None and asked.attempt and not kept:
        # What could not be used is put back, to be mended.
        before = room.entry(run_id, asked.agent, EntryKey(asked.turn, asked.call, asked.attempt - 1))
        kept = {"text": "" if before is None else before.text}
    return {
        "gone": given_up(own),
        "missed": [row.status for row in own if row.kind != "signal"][-1:] == ["empty"],
        "withdrew": sight.seat is not None and happened(room.seat(run_id, sight.seat), "withdrawn"),
        "seated": sight.seat is not None,
        "asked": asked,
        "question": question,
        "name": name_of(asked),
        "shown": shown,
        "form": form,
        "waiting_for": len(set(room.seats(run_id)) - taken),
        "typed": seat is not None and not seat.paste,
        "left_s": None if left is None else max(0, round(left)),
        "problem": problem or question.get("reason", ""),
        "kept": kept,
        "signals": room.planned(run_id).spec.interaction.wants,
        "stopped": room.error,
    }


def seat(room: Room, request: Request) -> Response:
    """The part of a session in which a person answers."""
    run_id = request.path_params["run"]
    sight = room.sight(run_id, request.state.visitor)
    state = standing(room.reader, run_id)[0] or "pending"
    return room.page("_seat.html", run_id=run_id, state=state, **_asked(room, request, sight))


def beside(room: Room, request: Request) -> Response:
    """A part of a session that stands beside its dialogue."""
    run_id = request.path_params["run"]
    found = _beside(room.planned(run_id), room.reader.turns(run_id)).get(request.path_params["kind"])
    if found is None:
        raise HTTPException(404, "There is no such part of this session.")
    return HTMLResponse(found)


async def live(room: Room, request: Request) -> Response:
    """Stream what happens in a session."""
    run_id = request.path_params["run"]
    since = request.headers.get("last-event-id") or request.query_params.get("since", "")
    generation, _, seq = since.partition(".")
    known = (int(generation), int(seq)) if re.fullmatch(r"\d{1,9}\.\d{1,12}", since) else (0, 0)
    sight = await run_in_threadpool(room.sight, run_id, request.state.visitor)
    told: AsyncIterator[dict[str, str]] = events(room, run_id, sight, known, request.state.key)
    return EventSourceResponse(told, ping=15)


# -- what a person sends -------------------------------------------------------------------------------------


async def answer(room: Room, request: Request) -> Response:
    """Accept an answer once, and confirm it when it is recorded."""
    run_id, given = request.path_params["run"], request.state.given
    agent = request.state.visitor.seats[run_id]
    key = EntryKey(_number(given, "turn"), given.get("call", ""), _number(given, "attempt"))

    async def refused(problem: str, status: int) -> Response:
        """The problem and, on a page, everything that was filled in."""
        if _wants_json(request):
            return JSONResponse({"problem": problem}, status)
        return await run_in_threadpool(session, room, request, problem)

    text, first, until = given.get("text"), None, time.monotonic() + _DURABLE_S
    known = room.watch.last.get(run_id)
    # The question ends in the transaction that stores the answer.
    while (asked := await run_in_threadpool(room.asked, run_id, agent, key)) is not None:
        try:
            form = room.forms[run_id, agent, key] = Form.of_json(asked.question["form"])
            text = _written(form, given)
        except SpecError as error:
            return await refused(str(error), 400)
        # After a restart the question is on record before the run has come to it again.
        first = await room.desk.give(run_id, agent, key, text) if first is None else first
        if time.monotonic() > until and first is not None:
            raise HTTPException(503, "Your answer arrived but is not saved yet; please look again in a minute.")
        if time.monotonic() > until or (room.error and first is None):
            problem = (
                "The session is not running at the moment, so your answer was not saved. Please send it again later."
            )
            return await refused(problem, 503)
        within_s = _LOOK_S if first is None else until - time.monotonic()
        known = await room.watch.after(run_id, known, within_s)
    what = "sent"
    if first is None:
        # A repeated request, or one from a second tab: what is on record stands.
        entry = await run_in_threadpool(room.entry, run_id, agent, key)
        what, first = "already", None if entry is None or entry.finish_reason else entry.text
        if first is not None and (run_id, agent, key) in room.forms:
            text = _written(room.forms[run_id, agent, key], given)
    if first is None:
        raise HTTPException(409, "The time for this question has run out. Your answer was not saved.")
    if text is None or text.split() != first.split():
        raise HTTPException(
            409, "This question already has an answer. The first answer counts, and this one was not saved."
        )
    return _sent(request, what, "#now")


def _sent(request: Request, what: str, place: str) -> Response:
    """That something was taken in; on a page, at a place of it."""
    if _wants_json(request):
        return JSONResponse({"sent": what})
    return RedirectResponse(f"{request.url_for('session', run=request.path_params['run'])}{place}", 303)


def _written(form: Form, given: Mapping[str, str]) -> str:
    """The text that stands for what was filled in.

    Raises
    ------
    SpecError
        If something is missing, too long, or no text.
    """
    if form.kind == "ranking":
        return form.written([given.get(f"item-{place}", "").strip() for place in range(len(form.items))])
    if form.kind == "ratings":
        return form.written({item: given.get(f"item-{place}", "") for place, item in enumerate(form.items)})
    text = given.get("text", "").replace("\r\n", "\n")
    if len(text) > MOST_CHARACTERS:
        raise SpecError(f"The text has {len(text):,} characters; at most {MOST_CHARACTERS:,} are allowed.")
    if printable(text) != text:
        raise SpecError("This contains characters that are not text, such as parts of a file.")
    if form.kind == "text" and not form.optional and not text.strip():
        raise SpecError("There is no text to send.")
    return form.written(text)


def signal(room: Room, request: Request) -> Response:
    """Accept what a person requests out of turn, for the next step; the owner sees every report of harm."""
    run_id, given = request.path_params["run"], request.state.given
    wanted, can = given.get("want", ""), (*room.planned(run_id).spec.interaction.wants, HARM)
    if wanted not in can:
        raise SpecError(f"This request must be one of: {', '.join(can)}.")
    harm = wanted == HARM
    if standing(room.reader, run_id)[0] in CLOSED and not harm:
        raise SpecError("This session does not take such requests now.")
    text = _line(given) if harm else ""
    if harm and not text:
        raise SpecError("Please write what is harmful; an empty report cannot be sent.")
    room.want(run_id, request.state.visitor.seats[run_id], wanted, text)
    return _sent(request, "reported" if harm else "wanted", "#now")


# -- what the owner takes away -------------------------------------------------------------------------------


def download(room: Room, request: Request) -> Response:
    """A session as a file: JSON, CSV or HTML."""
    run_id, form, reader = request.path_params["run"], request.path_params["form"], room.reader
    planned, (status, evidence) = room.planned(run_id), standing(reader, run_id)
    agents, turns = reader.agents(run_id), reader.turns(run_id)
    content = export(planned, agents, turns, evidence)
    if form == "json":
        found = Response(json.dumps(content, ensure_ascii=False, indent=1), media_type="application/json")
    elif form == "csv":
        found = Response(as_csv(content), media_type="text/csv; charset=utf-8")
    elif form == "html":
        lines = [room.sight(run_id, request.state.visitor).line(row) for row in turns]
        title = f"{planned.spec.name}: session {planned.replicate + 1}"
        found = room.page("download.html", title=title, lines=lines, evidence=stamp(evidence), state=status)
    else:
        raise HTTPException(404, "You can download a session as json, csv or html.")
    name = f"{planned.spec.name}-{planned.replicate + 1}.{form}"
    found.headers["content-disposition"] = f'attachment; filename="{name}"'
    return found


def settings(room: Room, request: Request) -> Response:
    """The form that changes the specification, forecasts its cost, tries it, and saves it as a new file."""
    given = request.state.given
    told: dict[str, Any] = {"problem": "", "saved": "", "forecast": "", "trial": None}
    try:
        if given:
            altered = changed(room.experiment, given)
            told["forecast"] = _takes(altered)
            if given.get("do") == "save":
                told["saved"] = str(saved(altered, given.get("name", "")))
            if given.get("do") == "try":
                told["trial"] = tried(altered)
    except OpinionSimError as error:
        told["problem"] = str(error)
    fields, status = listed(room.experiment), 400 if told["problem"] else 200
    return room.page("settings.html", status=status, title="Settings", settings=fields, kept=given, **told)


def _takes(experiment: Experiment) -> str:
    """What a forecast says, in a sentence."""
    found = plan(experiment)
    tokens = sum(each.input_tokens + each.output_tokens for each in found.models)
    costs = [each.cost for each in found.models if each.cost is not None]
    money = f", {sum(costs):,.2f} {found.currency}" if len(costs) == len(found.models) else ""
    return f"At most {found.calls:,} calls, about {tokens:,} tokens{money}."


def about(room: Room, planned: PlannedRun) -> str:
    """The subject of a session: its question, its claim, or its task."""
    claim = room.experiment.resources.claim(planned.spec)
    return planned.spec.task or ("" if claim is None else claim.question or claim.statement)


def _beside(planned: PlannedRun, turns: Iterable[TurnRow]) -> dict[str, str]:
    """What stands beside the dialogue of a session, by kind of text. Pages run no code of the user's own."""
    texts = {
        kind: [(row.turn, row.text) for row in turns if row.kind == kind] for kind in planned.spec.interaction.beside
    }
    return {kind: find("page", kind).target(texts[kind]) for kind in texts if kind in places("page")}


# -- requests ------------------------------------------------------------------------------------------------


def _number(given: Mapping[str, str], name: str) -> int:
    value = given.get(name, "")
    if not (value.isascii() and value.isdecimal() and len(value) < 10):
        raise HTTPException(400, "What was sent cannot be read.")
    return int(value)


def _seat(room: Room, request: Request) -> int:
    """The seat that a form names."""
    agent = _number(request.state.given, "seat")
    if agent not in room.seats(request.path_params["run"]):
        raise HTTPException(404, "There is no such seat.")
    return agent


def _line(given: Mapping[str, str]) -> str:
    """The text of a form as one line."""
    return " ".join(printable(given.get("text", "")).split())[:MOST_CHARACTERS]


def _wants_json(request: Request) -> bool:
    return "application/json" in request.headers.get("accept", "")
