"""A consensus session on the page of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from opinionsim.consensus._selections import Recorded, rows_of, selections, sessions_of
from opinionsim.registry import part
from opinionsim.store import Results
from opinionsim.watching import grid, lines, said, section


@part("record", name="consensus")
def consensus(found: Results) -> dict[str, Any]:
    """The rounds of a session, from the frames of one run."""
    elections = {each["round"]: each for each in rows_of(selections(found)) if each["elects"]}
    for _, session in sessions_of(found):
        begun = range(1, min(session.interaction.rounds + 1, max(row["step"] for row in session.turns.values())) + 1)
        blocks = [_round(session, step, elections.get(step - 1, {})) for step in begun]
        last = session.interaction.rounds
        return {"blocks": blocks + _winner(session, last + 2, elections.get(last, {}).get("winner"))}
    return {}


def _winner(session: Recorded, step: int, winner: Any) -> list[dict[str, Any]]:
    """What citizens said of the winner once it was known; nothing where they were not asked."""
    if not session.of_step(step) or not isinstance(winner, int):
        return []
    means = session.means(winner, step)
    note = ", ".join(f"{name} {_number(means[name])}" for name in ("agreement", "quality"))
    return [section("Ratings of the winner after the result was known", lines([said(turn=winner, note=note)]))]


def _round(session: Recorded, step: int, election: Mapping[str, Any]) -> dict[str, Any]:
    """A round; `election` has the row of its election, empty before it is over."""
    blocks = [lines(_candidates(session, step, election))]
    if ballots := _ballots(session, step):
        blocks.append(grid("Ballots", ("by", "order", "ratings"), ballots))
    own = (session.turns[turn] for turn in session.of_step(step))
    critiques = [said(row["message"], agent=row["agent"], turn=row["turn"]) for row in own if row["kind"] == "critique"]
    if critiques:
        blocks.append(section("Critiques", lines(critiques)))
    return section(f"Round {step - 1}, by the rule {session.interaction.rule_label}", *blocks)


def _ballots(session: Recorded, step: int) -> list[list[Any]]:
    """The author, the order and the ratings of each citizen that ranked or rated statements in a round."""
    own = session.of_step(step)
    by: dict[int, list[Any]] = {}
    ratings: dict[int, dict[int, str]] = {}
    for turn in own:
        row = session.turns[turn]
        agent = row["agent"]
        if row["kind"] == "ballot":
            by[agent] = [said(agent=agent, turn=turn), row["message"]]
        elif row["kind"] == "rating":
            by.setdefault(agent, [said(agent=agent), ""])
            rated = ratings.setdefault(agent, {})
            rated[row["reads"][-1]] = _number(session.mean("agreement", row["reads"][-1], agent, own))
    told = {
        agent: [said(turn=about, note=note) for about, note in each.items() if note] for agent, each in ratings.items()
    }
    return [[*by[agent], told.get(agent, [])] for agent in sorted(by)]


def _candidates(session: Recorded, step: int, election: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Statements of a round by their places; those that did not stand, or stand while ballots are missing, last."""
    standing, winner = election.get("standing", ()), election.get("winner")
    places = {turn: rank + 1 for turn, rank in zip(standing, election.get("ranks", ()), strict=False)}
    turns = dict.fromkeys([*standing, *session.statements(step)])
    found = []
    for turn in sorted(turns, key=lambda turn: places.get(turn, len(turns))):
        notes = [f"place {places[turn]}" if turn in places else "no place"]
        if agreement := _number(session.means(turn, step)["agreement"]):
            notes.append(f"agreement {agreement}")
        # Where no ballot counts, the winner is a missing value, which equals nothing.
        won = isinstance(winner, int) and winner == turn
        marks = ("selected",) if won else ()
        found.append(said(session.turns[turn]["message"], turn=turn, marks=marks, note=", ".join(notes), own=won))
    return found


def _number(value: float) -> str:
    """A number in a note, with at most two decimals; empty where there is none."""
    return "" if math.isnan(value) else f"{value:.2f}".rstrip("0").rstrip(".")
