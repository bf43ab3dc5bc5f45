"""What agents said, in a study: the largest changes of opinion with what was read, and the beginnings of some runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import pandas as pd

from opinionsim.evidence import KINDS
from opinionsim.metrics import stance_rows
from opinionsim.store import Results
from opinionsim.watching import transcript_data

#: Numbers of changes of opinion that are shown, of runs, and of turns of each of these.
_SHIFTS, _SAMPLES, _TURNS = 6, 3, 12
#: Most messages that are quoted as read before one turn.
_QUOTED = 5


@dataclass(frozen=True)
class Line:
    """One turn as a study shows it.

    Attributes
    ----------
    place : str
        Step and turn, and of a change of opinion its run.
    author : str
        Name of the agent, with its role if it is no participant.
    what : str
        Kind of text or act.
    text : str
        What was said.
    condition : str
        Empty for an answer; else why it is none.
    coded : float or None
        Opinion that the first instrument of stance has read.
    change : float or None
        Change from the author's opinion before; None where it is not what the turn is shown for.
    read : tuple of (str, str)
        Name of the author and text of each message read; of many, the last.
    """

    place: str
    author: str
    what: str
    text: str
    condition: str
    coded: float | None
    change: float | None
    read: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Sample:
    """The beginning of a run.

    Attributes
    ----------
    run : int
        Row of the run in the frame ``runs``.
    heading : str
        Its condition and replicate.
    lines : tuple of Line
        Its first turns.
    further : int
        Number of turns that are not shown.
    """

    run: int
    heading: str
    lines: tuple[Line, ...]
    further: int


def shifts(results: Results) -> tuple[Line, ...]:
    """The largest changes of opinion of complete runs, the largest first, with what was read just before.

    A change is from the last opinion of the same author coded from the same kind of text. Equations state numbers, of
    which there is nothing to read.
    """
    runs = _complete(results)
    runs = runs[runs["evidence"] != "equation"]
    keys = ["run_id", "cell", "instrument_id"]
    codes = stance_rows(runs, results.opinions).merge(runs[keys], on=keys)
    kinds = set(codes["kind"])
    own = codes[codes["kind"] == next((name for name in KINDS if name in kinds), None)]
    own = own.sort_values(["run_id", "agent", "turn"], kind="stable")
    changes = own.assign(change=own.groupby(["run_id", "agent"])["value"].diff()).dropna(subset="change")
    changes = changes[changes["change"] != 0]
    size = changes["change"].abs()
    found = changes.assign(size=-size).sort_values(["size", "run_id", "turn"], kind="stable").head(_SHIFTS)
    rows = {run_id: int(str(row)) for row, run_id in runs["run_id"].items()}
    told = []
    for run_id, turn, change in found[["run_id", "turn", "change"]].itertuples(index=False):
        data = transcript_data(results, rows[run_id], turn=int(turn))
        (line,) = _lines(data)
        place = f"run {rows[run_id]}, {data['cell']}, {line.place}"
        told.append(replace(line, place=place, change=float(change)))
    return tuple(told)


def samples(results: Results) -> tuple[Sample, ...]:
    """The beginnings of some complete runs: the first of the first condition, of one in the middle, and of the last."""
    runs = _complete(results).sort_values(["replicate", "redraw"], kind="stable")
    # Conditions have the order of the specification; runs are numbered in another.
    firsts = runs.drop_duplicates("cell").astype({"cell": results.ordered_runs["cell"].dtype}).sort_values("cell")
    places = sorted({round(at * (len(firsts) - 1) / (_SAMPLES - 1)) for at in range(_SAMPLES) if len(firsts)})
    found = []
    for row in map(int, firsts.index[places]):
        data = transcript_data(results, row)
        heading = ", ".join(filter(None, (data["cell"], f"replicate {data['replicate']}")))
        lines = tuple(islice(_lines(data), _TURNS))
        found.append(Sample(row, heading, lines, len(data["turns"]) - len(lines)))
    return tuple(found)


def _complete(results: Results) -> pd.DataFrame:
    """Complete runs, each once; the index is the row in the frame `runs`."""
    runs = results.runs.reset_index(drop=True)
    return runs[runs["status"] == "complete"].drop_duplicates("run_id")


def _lines(data: Mapping[str, Any]) -> Iterator[Line]:
    """Turns of a run, which is told as JSON values."""
    names = {each["agent"]: _named(each) for each in data["agents"]}
    for each in data["turns"]:
        codes = {code["instrument"]: code["value"] for code in each["codes"] if code["about"] is None}
        yield Line(
            place=f"step {each['step']}, turn {each['turn']}",
            author=names[each["agent"]],
            what=each["kind"] or each["act"],
            text=each["text"],
            condition="" if each["condition"] == "answered" else each["condition"],
            coded=codes.get(data["instrument_id"]),
            change=None,
            read=tuple(_message(ref, data["read"][ref], names) for ref in each["reads"][-_QUOTED:]),
        )


def _message(ref: str, read: Mapping[str, Any], names: Mapping[int, str]) -> tuple[str, str]:
    """Author and text of a message that was read."""
    author = f"{names[read['agent']]} (turn {ref})" if ref.isdecimal() else read["name"]
    return author, read["text"] or ""


def _named(agent: Mapping[str, Any]) -> str:
    """Name of an agent, with its role if it is no participant."""
    name = agent["name"] or f"agent {agent['agent']}"
    return name if agent["role"] in ("", "participant") else f"{name}, {agent['role']}"
