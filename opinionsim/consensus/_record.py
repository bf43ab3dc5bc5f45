"""A session that looks for a consensus, as the page of a run shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opinionsim.consensus._selections import Recorded, rows_of, selections, sessions_of
from opinionsim.registry import part
from opinionsim.store import Results
from opinionsim.watching import plain


@part("record", name="consensus")
def consensus(found: Results) -> dict[str, Any]:
    """A session that looks for a consensus, round by round; the frames are those of one run."""
    elections = {each["round"]: each for each in rows_of(selections(found)) if each["elects"]}
    names = dict(zip(found.agents["agent"], found.agents["name"], strict=True))
    told: dict[str, Any] = {"kind": "consensus", "rule": "", "rounds": []}
    for _, session in sessions_of(found):
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
