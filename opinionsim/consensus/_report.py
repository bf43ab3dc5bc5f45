"""A session as text: opinions, candidates with their support, winners, critiques, and opinions before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import indent
from typing import Any

import pandas as pd

from opinionsim.consensus._selections import Recorded, rows_of
from opinionsim.consensus._sessions import asked, other_rules, sessions, statements
from opinionsim.errors import MeasurementError
from opinionsim.metrics import evidence_statement
from opinionsim.store import Results

#: Kinds of text in which citizens say what they think off the record.
_ASKED = ("self-report", "probe")


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
        The opinions; for each round, its statements with mean ratings and ranks (winner first), the choices of other
        rules, and critiques; and the citizens' answers before and after.

    Raises
    ------
    MeasurementError
        If there is no such session.
    """
    listed = results.runs[["run_id", "cell"]]
    wanted = tuple(listed.iloc[run]) if -len(listed) <= run < len(listed) else None
    found = [each for each in sessions(results) if (each[0]["run_id"], each[0]["cell"]) == wanted]
    if not found or wanted is None:
        raise MeasurementError(f"{results.name}: run {run} is not a session with recorded turns")
    about, session = found[0]
    own = results.agents[results.agents["run_id"] == about["run_id"]]
    names = dict(zip(own["agent"], own["name"], strict=True))
    listed, rules = (each[(each["group"] == wanted[0]) & (each["cell"] == wanted[1])]
                     for each in (statements(results), other_rules(results)))  # fmt: skip
    place = f"{about['cell']}, replicate {about['replicate']}: {about['status']}"
    lines = [f"{evidence_statement([about['evidence']])} | {place}", asked(about)]
    for agent, turn in session.opinions.items():
        lines += ["", f"{names[agent]}:", indent(session.turns[turn]["message"], "  ")]
    held = session.elections(str(about["block"])) if about["status"] == "complete" else ()
    tied = {each["round"] for each in held if each["elects"] and each["tied"]}
    for number, each in listed.groupby("round"):
        untied = f"  The first place was tied; the winner was decided by {session.interaction.untied}."
        told = _round(int(number), each, rules[rules["round"] == number], session)
        lines += ["", *told, *([untied] if number in tied else [])]
        for row in session.turns.values():
            if row["kind"] == "critique" and row["step"] == number + 1 and row["message"]:
                lines += ["", f"Critique by {names[row['agent']]}:", indent(row["message"], "  ")]
    changes = list(_changes(results, about, names))
    return "\n".join([*lines, *(["", "Asked before and after (scale point):", *changes] if changes else [])])


def _round(number: int, listed: pd.DataFrame, rules: pd.DataFrame, session: Recorded) -> Iterator[str]:
    """Statements of a round, the winner first, and what each rule would have chosen."""
    fields, stand = session.interaction, int(listed["stands"].sum())
    if number < 0:
        yield "Rated before opinions were stated:"
    else:
        yield f"{f'Critique round {number}' if number else 'Opinion round'}: {stand} statements stand"
        yield f"  The winner is that of {fields.elects} ballots by {fields.rule_label}. Means are over citizens."
    for row in rows_of(listed.sort_values(["winner", "rank"], ascending=[False, True])):
        begins = f"  {'WINNER, ' if row['winner'] else ''}turn {row['turn']} ({row['policy']})"
        ranked = [f"rank {row['rank']:.2f} of {stand}"] if row["rank"] == row["rank"] else []
        ranked += [] if row["stands"] else ["not to be elected"]
        yield ", ".join([begins, *_means(session, row["turn"], max(number, 0) + 1), *ranked])
        yield indent(row["statement"], "    ")
        if row["winner"] and number == fields.rounds and fields.ratings.winner:
            yield f"    Rated after it won: {', '.join(_means(session, row['turn'], number + 2))}"
    for ballots, each in rules.groupby("ballots", sort=False):
        chosen = (f"{row['rule']} turn {' = '.join(map(str, row['first']))}" for row in rows_of(each))
        yield f"  First by {ballots} ballots: {', '.join(chosen)}"


def _means(session: Recorded, turn: int, step: int) -> list[str]:
    """Mean ratings of a statement in a round, in words."""
    return [f"{name} {value:.2f}" for name, value in session.means(turn, step).items() if value == value]


def _changes(results: Results, about: Mapping[str, Any], names: dict[int, str]) -> Iterator[str]:
    """What each citizen answered off the record, in the order of turns."""
    found = results.opinions
    found = found[(found["run_id"] == about["run_id"]) & (found["cell"] == about["cell"]) & found["about"].isna()]
    found = found[(found["variable"] == "stance") & found["kind"].isin(_ASKED)]
    for agent, own in found.sort_values("turn").groupby("agent"):
        told = (f"{value:g}" if value == value else "no answer" for value in own["value"])
        yield f"  {names[agent]}: {' -> '.join(told)}"
