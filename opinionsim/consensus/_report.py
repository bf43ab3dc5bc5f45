"""A session as text: opinions, candidates with their support, winners, critiques, and opinions before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import indent
from typing import TYPE_CHECKING, Any

from opinionsim.consensus._sessions import asked, other_rules, sessions, statements
from opinionsim.evidence import evidence_statement
from opinionsim.schedules import Recorded, rows_of

if TYPE_CHECKING:
    import pandas as pd

    from opinionsim.store import Results


def session_text(results: Results, run: int = 0) -> str:
    """A session as text.

    Parameters
    ----------
    results : Results
        A store's results.
    run : int
        Row of the session in the frame `runs`.

    Returns
    -------
    str
        Opinions; of each round its candidates with their mean ranks and ratings, the winner, what other rules would
        have chosen, and critiques; last what citizens answered before and after.

    Raises
    ------
    MeasurementError
        If there is no such session.
    """
    wanted = tuple(results.runs[["run_id", "cell"]].iloc[run])
    about, session = next(each for each in sessions(results) if (each[0]["run_id"], each[0]["cell"]) == wanted)
    own = results.agents[results.agents["run_id"] == about["run_id"]]
    names = dict(zip(own["agent"], own["name"], strict=True))
    listed = statements(results)
    listed = listed[(listed["group"] == about["run_id"]) & (listed["cell"] == about["cell"])]
    rules = other_rules(results)
    rules = rules[(rules["group"] == about["run_id"]) & (rules["cell"] == about["cell"])]
    place = f"{about['cell']}, replicate {about['replicate']}: {about['status']}"
    lines = [f"{evidence_statement([about['evidence']])} | {place}", asked(about)]
    for agent, turn in session.opinions.items():
        lines += ["", f"{names[agent]}:", indent(session.turns[turn]["message"], "  ")]
    for number, each in listed.groupby("round"):
        lines += ["", *_round(int(number), each, rules[rules["round"] == number])]
        for row in session.turns.values():
            if row["kind"] == "critique" and row["step"] == number + 1 and row["message"]:
                lines += ["", f"Critique by {names[row['agent']]}:", indent(row["message"], "  ")]
    changes = list(_changes(results, about, session, names))
    return "\n".join([*lines, *(["", "Opinions before and after", *changes] if changes else [])])


def _round(number: int, listed: pd.DataFrame, rules: pd.DataFrame) -> Iterator[str]:
    """Candidates of a round, the winner, and what other rules would have chosen."""
    yield f"Round {number}: {int(listed['stands'].sum())} statements stand"
    for row in rows_of(listed.sort_values(["winner", "rank"], ascending=[False, True])):
        rank = f", mean rank {row['rank']:.1f}" if row["rank"] == row["rank"] else ""
        beside = "" if row["stands"] else ", does not stand"
        yield f"  {'WINNER, ' if row['winner'] else ''}turn {row['turn']}, {row['policy']}{rank}{beside}:"
        yield indent(row["statement"], "    ")
    for ballots, each in rules.groupby("ballots", sort=False):
        named = (f"{row['rule']} turn {row['winner']}{' (tied)' if row['tied'] else ''}" for row in rows_of(each))
        yield f"  By {ballots} ballots: {', '.join(named)}"


def _changes(results: Results, about: Mapping[str, Any], session: Recorded, names: dict[int, str]) -> Iterator[str]:
    """Measured opinions of each citizen, in the order of turns."""
    found = results.opinions
    found = found[(found["run_id"] == about["run_id"]) & (found["cell"] == about["cell"]) & found["about"].isna()]
    for agent, own in found[found["variable"] == "stance"].groupby("agent"):
        told = [f"{row['value']:g} ({row['kind']}, step {row['step']})" for row in rows_of(own.sort_values("turn"))]
        yield f"  {names[agent]}: {', '.join(told)}"
