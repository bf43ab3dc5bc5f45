"""Runs that are more than turns in a row: sessions that look for a consensus, rooms, structures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opinionsim.dialogue import Analysis, AnalysisItem, analyses
from opinionsim.store import Results
from opinionsim.watching._places import place_of, plain

if TYPE_CHECKING:
    from opinionsim.schedules import Recorded
    from opinionsim.store import StoreReader

#: Kind of text of an analysis of a room.
_ANALYSIS = "analysis"
#: Ways of interacting in which agents answer in an order that is part of the experiment.
_STRUCTURES = frozenset(("chain", "debate", "ensemble", "graph", "interview", "rounds"))


def deliberation(reader: StoreReader, run_id: str) -> dict[str, Any]:
    """What a run is beyond its turns.

    Parameters
    ----------
    reader : StoreReader
        An open store.
    run_id : str
        The run.

    Returns
    -------
    dict of JSON values
        Its `kind`: ``consensus``, with candidates, ballots and critiques by round; ``room``, with its analyses;
        ``structure``, with its name; None for any other.

    Raises
    ------
    AbsentError
        If there is no such run.
    """
    with reader.moment() as moment:
        place = place_of(moment, run_id)
        interaction = moment.registered([run_id])[run_id].interaction
        if place.cell.chooses:
            return _consensus(Results(reader.url, replace(place.design, runs=(place.cell,)), under_way=1))
        if interaction == "room":
            texts = [(row.turn, row.text) for row in moment.turns(run_id) if row.kind == _ANALYSIS]
            return {"kind": "room", "analyses": [_analysis(each) for each in analyses(texts)]}
        if interaction in _STRUCTURES:
            return {"kind": "structure", "structure": interaction}
        return {"kind": None}


def _consensus(found: Results) -> dict[str, Any]:
    """A session that looks for a consensus, round by round; its frames are those of one run, read together."""
    sessions = list(found.sessions)
    if not sessions:
        return {"kind": "consensus", "rule": "", "rounds": []}
    names = dict(zip(found.agents["agent"], found.agents["name"], strict=True))
    ((_, session),) = sessions
    elections = [each for each in found.selections.to_dict("records") if each["elects"]]
    steps = sorted({int(row["step"]) for row in session.turns.values() if row["step"] > 0})
    rounds = [
        _round(session, step, next((each for each in elections if each["round"] == step - 1), {}), names)
        for step in steps
        if step <= session.interaction.rounds + 1
    ]
    return {"kind": "consensus", "rule": session.interaction.rule_label, "rounds": rounds}


def _round(session: Recorded, step: int, election: Mapping[Any, Any], names: Mapping[int, str]) -> dict[str, Any]:
    """A round; `election` has the row of its election, empty before it is over."""
    standing = list(election.get("standing", ()))
    own = session.of_step(step)
    rows = {turn: session.turns[turn] for turn in own}

    def said(kind: str) -> list[int]:
        return [turn for turn, row in rows.items() if row["kind"] == kind]

    def author(turn: int) -> dict[str, Any]:
        agent = int(session.turns[turn]["agent"])
        return {"agent": agent, "name": names.get(agent, ""), "turn": turn}

    statements = dict.fromkeys([*standing, *session.statements(step)])
    ranks = dict(zip(standing, election.get("ranks", ()), strict=False))
    ballots: dict[int, dict[str, Any]] = {
        int(rows[turn]["agent"]): {**author(turn), "order": rows[turn]["message"], "rating": {}}
        for turn in said("ballot")
    }
    for turn in said("rating"):
        who = author(turn)
        ballot = ballots.setdefault(who["agent"], {**who, "turn": None, "order": "", "rating": {}})
        about = int(rows[turn]["reads"][-1])
        agreement = session.mean("agreement", about, who["agent"], own)
        if not math.isnan(agreement):
            ballot["rating"][str(about)] = agreement
    return {
        "round": step - 1,
        "candidates": [
            {
                "turn": turn,
                "author": author(turn)["name"],
                "text": session.turns[turn]["message"],
                "agreement": plain(session.means(turn, step)["agreement"]),
                "winner": turn == election.get("winner"),
                "place": None if turn not in ranks else int(ranks[turn]) + 1,
            }
            for turn in statements
        ],
        "ballots": [ballots[agent] for agent in sorted(ballots)],
        "critiques": [{**author(turn), "text": rows[turn]["message"]} for turn in said("critique")],
    }


def _analysis(found: Analysis) -> dict[str, Any]:
    """An analysis of a room as JSON values."""
    return {
        "turn": found.turn,
        "summary": found.summary,
        **{name: [_item(each) for each in getattr(found, name)] for name in ("agreements", "questions", "claims")},
        "fallacies": [each.model_dump() for each in found.fallacies],
    }


def _item(item: AnalysisItem) -> dict[str, Any]:
    """An item of an analysis: a claim with what is said for and against it, and the turns it stands in."""
    told = {"id": item.id, "text": item.text, "change": item.change}
    return told if item.claim is None else {**told, **item.claim.model_dump(mode="json", exclude={"claim"})}
