"""Tables of recorded sessions: statements, their ratings, and the choices of other rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.consensus._consensus import ConsensusInteraction
from opinionsim.consensus._selections import Recorded, rows_of, selections, sessions_of
from opinionsim.consensus.voting import RULES, compare_rules
from opinionsim.errors import MeasurementError
from opinionsim.store import Results

#: Columns of the statements.
_COLUMNS = ["group", "cell", "round", "candidate", "policy", "left_out", "stands", "winner", "rank", "statement"]
_COLUMNS += ["turn", "evidence"]


def sessions(results: Results) -> Iterator[tuple[Mapping[str, Any], Recorded]]:
    """Yield each session of some results with its row of the frame `runs`.

    Raises
    ------
    MeasurementError
        If the results contain no consensus session.
    """
    found = list(sessions_of(results))
    if not found:
        raise MeasurementError(f"{results.name} has no consensus session (interaction kind consensus) that has begun")
    yield from found


def statements(results: Results) -> pd.DataFrame:
    """The statements of sessions.

    Parameters
    ----------
    results : Results
        A store's results.

    Returns
    -------
    DataFrame
        One row per usable statement. Columns: group (run id), cell, round (0: the opinion round; -1: the position
        statement, rated before opinions are stated, if it does not stand for election), candidate (turn; ``position``
        for the position statement), policy (the drafter's label or style, ``position``, ``own opinion`` or
        ``control``), left_out (citizen whose opinion the drafter did not read; missing if it read all), stands (whether
        it stood for election), winner (of its round), rank (mean over stated ballots, 1 for the best; NaN without any),
        statement (the text), turn, evidence.

    Raises
    ------
    MeasurementError
        As :func:`sessions`.
    """
    records = []
    chosen = selections(results)
    won = set(chosen.loc[chosen["elects"], ["run_id", "cell", "round", "winner"]].itertuples(index=False, name=None))
    for run, session in sessions(results):
        authors = {turn: agent for agent, turn in session.opinions.items()}
        for step in range(1, session.interaction.rounds + 2):
            stood = [each[3] for each in won if each[:3] == (run["run_id"], run["cell"], step - 2)]
            stays = stood if session.interaction.incumbent else []
            for turn in [*stays, *session.statements(step)]:
                row, stands = session.turns[turn], session.stands(turn)
                position = row["reads"] == ("position",)
                before = position and not stands and session.interaction.ratings.position == "before"
                left = set(authors) - set(row["reads"]) if row["act"].startswith("draft") else set()
                records.append(
                    {
                        "group": run["run_id"],
                        "cell": run["cell"],
                        "round": -1 if before else step - 1,
                        "candidate": "position" if position else turn,
                        "policy": _policy(session.interaction, row),
                        "left_out": authors[left.pop()] if len(left) == 1 else None,
                        "stands": stands,
                        "winner": (run["run_id"], run["cell"], step - 1, turn) in won,
                        "rank": session.mean("rank", turn, None, session.of_step(step)),
                        "statement": row["message"],
                        "turn": turn,
                        "evidence": run["evidence"],
                    }
                )
    return pd.DataFrame(records, columns=_COLUMNS).astype({"left_out": "Int64"})


def asked(run: Mapping[Any, Any]) -> str:
    """The question that citizens answer in a run: its topic's question, its task, or else the claim."""
    given = [run[name] for name in ("question", "task") if isinstance(run[name], str) and run[name]]
    return str([*given, run["claim"]][0])


def _policy(interaction: ConsensusInteraction, row: Mapping[str, Any]) -> str:
    """Who a statement is from: of drafts the label or style of the drafter."""
    if row["act"] != "put":
        return row["act"].partition(".")[2] or interaction.ways[0].name
    (source,) = row["reads"]
    return "own opinion" if isinstance(source, int) else "position" if source == "position" else "control"


def ratings(results: Results, *, winner: bool = False) -> pd.DataFrame:
    """Collect citizens' ratings of statements, one row each, in the format for the evaluation functions.

    Cells that differ only in the voting rule or the instruments share runs. Such a run counts once, for the first cell.
    Sessions are left out if a person withdrew or only tried them.

    Parameters
    ----------
    results : Results
        A store's results.
    winner : bool
        Whether to return ratings of the winner of the last round, given once it was known; by default, the ratings in
        passes.

    Returns
    -------
    DataFrame
        Columns: group, candidate, policy, left_out, evidence as in :func:`statements`; round, as there, and -1 for the
        position statement if rated before opinions were stated; citizen (agent number), pass (1, 2, ...), agreement and
        quality (1 to 7; NaN where missing), predicted_agreement (by role or instrument; NaN without one), rank and
        predicted_rank (by the citizen in this round, and predicted; NaN without one), question, opinion (the citizen's
        own, as text) and statement.

    Raises
    ------
    MeasurementError
        As :func:`sessions`, or if nothing was rated.
    """
    known = {(each["group"], each["cell"], each["turn"]): each for each in rows_of(statements(results))}
    records, seen = [], set[str]()
    for run, session in sessions(results):
        if run["run_id"] in seen or run["status"] in ("withdrawn", "trial"):
            continue
        seen.add(run["run_id"])
        passes = Counter[tuple[int, int, int]]()
        for turn, row in session.turns.items():
            if row["kind"] != "rating":
                continue
            citizen, rated, step = int(row["agent"]), int(row["reads"][-1]), int(row["step"])
            last = session.interaction.rounds + 1
            each = known.get((run["run_id"], run["cell"], rated))
            if each is None or (step > last) != winner:
                continue
            step = min(step, last)
            opinion = session.opinions.get(citizen)
            number = -1 if opinion is not None and turn < opinion else step - 1
            passes[citizen, rated, number] += 1
            records.append(
                {
                    **{name: each[name] for name in ("group", "candidate", "policy", "left_out", "evidence")},
                    "round": number,
                    "citizen": citizen,
                    "pass": passes[citizen, rated, number],
                    "agreement": session.number("agreement", turn, rated),
                    "quality": session.number("quality", turn, rated),
                    "predicted_agreement": session.predicted(rated, citizen),
                    "rank": session.mean("rank", rated, citizen, session.of_step(step)),
                    "predicted_rank": session.mean("predicted_rank", rated, citizen, session.of_step(step)),
                    "question": asked(run),
                    "opinion": None if opinion is None else session.turns[opinion]["message"],
                    "statement": each["statement"],
                }
            )
    if not records:
        raise MeasurementError(f"{results.name} has no ratings of statements; give interaction.ratings: {{passes: 1}}")
    return pd.DataFrame(records).astype({"left_out": "Int64"})


def other_rules(results: Results) -> pd.DataFrame:
    """Compute what each voting rule would have chosen from the ballots of each election.

    Parameters
    ----------
    results : Results
        A store's results.

    Returns
    -------
    DataFrame
        One row per election and rule that its ballots allow. Columns: group, cell, round, ballots, rule, winner (turn;
        for ties, the session's winner under its own rule, otherwise the first), first (turns of all statements in first
        place), tied (whether there are several), same (whether they include the statement that the session's own rule
        chose), evidence.
    """
    # Whether rules that need no option count scores; these must be positive, for they are power means.
    rules = {name: each.scores for name, each in RULES.items() if set(each.options) <= {"transform"}}
    found = {(run["run_id"], run["cell"]): session for run, session in sessions(results)}
    records = []
    held = selections(results)
    for row in rows_of(held[held["counted"] > 0]):
        session = found[row["run_id"], row["cell"]]
        ballots = session.ballots(row["round"] + 1, row["ballots"], row["standing"])
        scores = session.interaction.scores(row["ballots"])
        usable = [name for name, needed in rules.items() if not needed or (scores and np.nanmin(ballots) > 0)]
        of_election = [row[name] for name in ("run_id", "cell", "round", "ballots")]
        for name, first in zip(usable, compare_rules(ballots, usable, scores=scores).first[:, 0], strict=True):
            tied = tuple(each for each, is_first in zip(row["standing"], first, strict=True) if is_first)
            same = row["winner"] in tied
            chosen = row["winner"] if same and name == row["rule"] else tied[0]
            records.append([*of_election, name, chosen, tied, len(tied) > 1, same, row["evidence"]])
    columns = ["group", "cell", "round", "ballots", "rule", "winner", "first", "tied", "same", "evidence"]
    return pd.DataFrame(records, columns=columns)
