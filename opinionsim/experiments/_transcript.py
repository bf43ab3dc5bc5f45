"""What was said in a run, as text a person can read."""

from __future__ import annotations

from typing import Any

import pandas as pd

from opinionsim.errors import SpecError
from opinionsim.store import Results

__all__ = ["transcript"]


def transcript(results: Results, run: int | str = 0, agent: int | None = None, turn: int | None = None) -> str:
    """The messages of one run, in order, with what each agent read and how its text was coded.

    Everybody is shown, and who is no participant is named with its role. A text that is no answer is marked by its
    condition: refused, empty, truncated or skipped. Codes are those of the run's own instrument of stance for a text by
    itself. Where agents differ in what plays them, each is named with its own model and kind of evidence.

    Parameters
    ----------
    results : Results
        From :func:`opinionsim.load` or :func:`opinionsim.run`.
    run : int or str
        Row number in ``results.runs``, or a run id.
    agent : int, optional
        Only the turns of this agent.
    turn : int, optional
        Only the turn of this index.

    Returns
    -------
    str
        One paragraph a turn.

    Raises
    ------
    SpecError
        If there is no such run, agent or turn.
    """
    row = _row(results, run)
    agents = results.agents[results.agents["run_id"] == row["run_id"]].set_index("agent")
    if agent is not None and agent not in agents.index:
        raise SpecError(f"agent {agent} does not exist; valid: {_span(len(agents))}")
    turns = results.turns[results.turns["run_id"] == row["run_id"]]
    coded = results.opinions
    coded = coded[(coded["run_id"] == row["run_id"]) & (coded["instrument_id"] == row["instrument_id"])]
    if "about" in coded.columns:
        coded = coded[coded["about"].isna()]
    values = coded.drop_duplicates("turn").set_index("turn")["value"]
    names = _names(agents)
    authors = turns.set_index("turn")["agent"]
    if turn is not None and turn not in set(turns["turn"]):
        raise SpecError(f"turn {turn} does not exist; valid: {_span(len(turns))}")
    shown = turns if agent is None else turns[turns["agent"] == agent]
    shown = shown if turn is None else shown[shown["turn"] == turn]
    lines = [
        f"run {row['run_id']} · {row['cell']} · replicate {row['replicate']} · {row['status']} · "
        f"evidence: {row['evidence']}",
        f"claim: {row['claim']}",
    ]
    if isinstance(row["validation"], str) and row["validation"]:
        lines.append(f"coded by {row['classifier']}: {row['validation']}")
    told = agents[[column for column in ("model", "evidence") if agents[column].nunique() > 1]]
    # A scripted agent beside others is called what it is, and once, as its model has the same name.
    played = {
        each: ", ".join(dict.fromkeys(str(kind) for kind in kinds if not pd.isna(kind)))
        for each, *kinds in told.itertuples()
    }
    for each in shown.itertuples():
        read = [_author(ref, names, authors) for ref in each.reads]
        after = f" after reading {', '.join(read)}" if read else ""
        player = f", {played[each.agent]}" if played.get(each.agent) else ""
        lines.append(
            f"\nstep {each.step}, turn {each.turn}: {names.get(each.agent, each.agent)} (agent {each.agent}{player}) "
            f"{each.act}{after}{_mark(each, values)}\n{each.message}"
        )
    return "\n".join(lines)


def _row(results: Results, run: int | str) -> pd.Series:
    """The row of a run, by number or id."""
    runs = results.runs.reset_index(drop=True)
    if isinstance(run, int):
        if not 0 <= run < len(runs):
            raise SpecError(f"run {run} does not exist; valid: {_span(len(runs))}")
        return runs.iloc[run]
    found = runs[runs["run_id"].str.startswith(run)]
    if found["run_id"].nunique() != 1:
        raise SpecError(f"run {run!r} names {found['run_id'].nunique()} runs; give a row number or a longer run id")
    return found.iloc[0]


def _names(agents: pd.DataFrame) -> pd.Series:
    """Name of each agent, with the role of one that is no participant unless its name says it."""
    if "role" not in agents.columns:
        return agents["name"]
    others = agents["role"].notna() & (agents["role"] != "participant")
    others &= agents["name"].str.casefold() != agents["role"].str.casefold()
    return agents["name"].where(~others, agents["name"] + ", " + agents["role"]).str.removeprefix(", ")


def _span(count: int) -> str:
    return f"0..{count - 1}" if count else "none, nothing is on record yet"


def _author(ref: Any, names: pd.Series, authors: pd.Series) -> str:
    """Who wrote what a turn read."""
    if isinstance(ref, str):
        return f"the message {ref}"
    return f"{names.get(authors.get(ref), '?')} (turn {ref})"


def _mark(turn: Any, values: pd.Series) -> str:
    """What a turn's text is worth: why it is no answer, or how it was coded if it was."""
    if turn.condition != "answered":
        return f"  [{turn.condition}]"
    return f"  [{_coded(values[turn.turn])}]" if turn.turn in values.index else ""


def _coded(value: float) -> str:
    if pd.isna(value):
        return "no answer"
    return f"coded {value:+g}" if value else "coded 0"
