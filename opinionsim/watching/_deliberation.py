"""Runs that are more than turns in a row: sessions that look for a consensus, rooms, structures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from opinionsim.dialogue import Analysis, analyses
from opinionsim.schedules import rows_of
from opinionsim.store import Results
from opinionsim.watching._one_run import OneRun, plain

if TYPE_CHECKING:
    from opinionsim.schedules import Recorded
    from opinionsim.store import StoreReader

#: Kind of text of an analysis of a room.
_ANALYSIS = "analysis"
#: Ways of interacting in which agents answer in an order that is part of the experiment.
_STRUCTURES = frozenset(("chain", "debate", "ensemble", "graph", "interview", "rounds"))


def deliberation(reader: StoreReader, run: str) -> dict[str, Any]:
    """What a run is beyond its turns.

    Parameters
    ----------
    reader, run
        As for :func:`run_record`.

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
        one = OneRun.of(moment, run)
        interaction = one.registered.interaction
        if one.cell.chooses:
            # Read together, as what is under way is.
            return _consensus(Results(reader.url, replace(one.design, runs=(one.cell,)), under_way=1))
        if interaction == "room":
            texts = [(row.turn, row.text) for row in moment.turns(run) if row.kind == _ANALYSIS]
            found = TypeAdapter(list[Analysis]).dump_python(analyses(texts), mode="json")
            for claim in (each for analysis in found for each in analysis["claims"]):
                claim |= claim.pop("claim")
            return {"kind": "room", "analyses": found}
        if interaction in _STRUCTURES:
            return {"kind": "structure", "structure": interaction}
        return {"kind": None}


def _consensus(found: Results) -> dict[str, Any]:
    """A session that looks for a consensus, round by round; the frames are those of one run."""
    elections = {each["round"]: each for each in rows_of(found.selections) if each["elects"]}
    names = dict(zip(found.agents["agent"], found.agents["name"], strict=True))
    told: dict[str, Any] = {"kind": "consensus", "rule": "", "rounds": []}
    for _, session in found.sessions:
        begun = range(1, min(session.interaction.rounds + 1, max(row["step"] for row in session.turns.values())) + 1)
        told["rule"] = session.interaction.rule_label
        told["rounds"] = [_round(session, step, elections.get(step - 1, {}), names) for step in begun]
    return told


def _round(session: Recorded, step: int, election: Mapping[str, Any], names: Mapping[int, str]) -> dict[str, Any]:
    """A round; `election` has the row of its election, empty before it is over."""
    own = session.of_step(step)
    standing = election.get("standing", ())
    ranks = dict(zip(standing, election.get("ranks", ()), strict=False))

    def said(kind: str) -> list[tuple[dict[str, Any], str, int]]:
        """Who said it and when, the text, and the last turn that was read."""
        found = []
        for turn in own:
            row = session.turns[turn]
            if row["kind"] == kind:
                who = {"agent": row["agent"], "name": names.get(row["agent"], ""), "turn": turn}
                found.append((who, row["message"], row["reads"][-1]))
        return found

    ballots = {who["agent"]: {**who, "order": text, "rating": {}} for who, text, _ in said("ballot")}
    for who, _, about in said("rating"):
        ballot = ballots.setdefault(who["agent"], {**who, "turn": None, "order": "", "rating": {}})
        value = plain(session.mean("agreement", about, who["agent"], own))
        if value is not None:
            ballot["rating"][str(about)] = value
    candidates = []
    for turn in dict.fromkeys([*standing, *session.statements(step)]):
        row = session.turns[turn]
        told = {"turn": turn, "author": names.get(row["agent"], ""), "text": row["message"]}
        told |= {"agreement": plain(session.means(turn, step)["agreement"]), "winner": turn == election.get("winner")}
        candidates.append(told | {"place": ranks[turn] + 1 if turn in ranks else None})
    return {
        "round": step - 1,
        "candidates": candidates,
        "ballots": [ballots[agent] for agent in sorted(ballots)],
        "critiques": [{**who, "text": text} for who, text, _ in said("critique")],
    }
