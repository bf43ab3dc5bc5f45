"""What agents said, in a study: the largest changes of opinion with what was read, and the beginnings of some runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from opinionsim.evidence import KINDS
from opinionsim.metrics import stance_rows
from opinionsim.store import Results

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

    A change is from the last opinion of the same author coded from the same kind of text.
    """
    runs, codes = _complete(results), _codes(results)
    kinds = set(codes["kind"])
    kind = next((name for name in KINDS if name in kinds), None)
    own = codes[(codes["kind"] == kind) & codes["run_id"].isin(runs["run_id"])]
    own = own.sort_values(["run_id", "agent", "turn"], kind="stable")
    changes = own.assign(change=own.groupby(["run_id", "agent"])["value"].diff()).dropna(subset="change")
    changes = changes[changes["change"] != 0]
    size = changes["change"].abs()
    found = changes.assign(size=-size).sort_values(["size", "run_id", "turn"], kind="stable").head(_SHIFTS)
    rows = dict(zip(runs["run_id"], runs.index, strict=True))
    told = []
    for run_id, turn, change in found[["run_id", "turn", "change"]].itertuples(index=False):
        (line,) = _Said(results, codes, run_id).lines([turn])
        place = f"run {rows[run_id]}, {runs.loc[rows[run_id], 'cell']}, {line.place}"
        told.append(Line(**{**vars(line), "place": place, "change": float(change)}))
    return tuple(told)


def samples(results: Results) -> tuple[Sample, ...]:
    """The beginnings of some complete runs: the first of the first condition, of one in the middle, and of the last."""
    codes = _codes(results)
    runs = _complete(results).sort_values(["replicate", "redraw"], kind="stable")
    firsts = runs.drop_duplicates("cell").sort_index()
    places = sorted({round(at * (len(firsts) - 1) / (_SAMPLES - 1)) for at in range(_SAMPLES) if len(firsts)})
    found = []
    for row, run in firsts.iloc[places].iterrows():
        said = _Said(results, codes, str(run["run_id"]))
        shown = list(said.turns.index[:_TURNS])
        heading = f"{run['cell']}, replicate {run['replicate']}" if run["cell"] else f"replicate {run['replicate']}"
        found.append(Sample(int(str(row)), heading, tuple(said.lines(shown)), len(said.turns) - len(shown)))
    return tuple(found)


def _complete(results: Results) -> pd.DataFrame:
    """Complete runs, each once; the index is the row in the frame `runs`."""
    runs = results.runs.reset_index(drop=True)
    return runs[runs["status"] == "complete"].drop_duplicates("run_id")


def _codes(results: Results) -> pd.DataFrame:
    """Opinions by the first instrument of stance of each run, a row a text."""
    runs = results.runs.drop_duplicates("run_id")
    keys = ["run_id", "cell", "instrument_id"]
    return stance_rows(runs, results.opinions).merge(runs[keys], on=keys)


class _Said:
    """The turns of one run."""

    def __init__(self, results: Results, codes: pd.DataFrame, run_id: str) -> None:
        own = results.turns[results.turns["run_id"] == run_id]
        self.turns = own.set_index("turn").sort_index()
        read = codes[codes["run_id"] == run_id]
        self._codes = dict(zip(read["turn"], read["value"], strict=True))
        agents = results.agents[results.agents["run_id"] == run_id]
        self._names = {row.agent: _named(row.name, row.role, row.agent) for row in _rows(agents, "agent name role")}
        events = results.spec.get("events") or ()
        self._outside = {f"event-{place}": str(event.get("text") or "") for place, event in enumerate(events)}

    def lines(self, shown: list[int]) -> Iterator[Line]:
        """Some turns, with what each has read."""
        for turn in shown:
            row: Any = self.turns.loc[turn]
            value = self._codes.get(turn)
            condition = "" if row["condition"] == "answered" else str(row["condition"])
            coded = None if value is None or pd.isna(value) else float(value)
            read = tuple(self._message(ref) for ref in row["reads"][-_QUOTED:])
            what, place = str(row["kind"] or row["act"]), f"step {row['step']}, turn {turn}"
            yield Line(place, self._names[row["agent"]], what, str(row["message"] or ""), condition, coded, None, read)

    def _message(self, ref: int | str) -> tuple[str, str]:
        """Author and text of a message that was read."""
        if isinstance(ref, str) or ref not in self.turns.index:
            event = str(ref).rpartition("-agent-")[0] or str(ref)
            return str(ref), self._outside.get(event, "")
        row = self.turns.loc[ref]
        return f"{self._names.get(row['agent'], '')} (turn {ref})", str(row["message"] or "")


def _rows(frame: pd.DataFrame, columns: str) -> Iterator[Any]:
    """Rows of a frame with some columns, as named tuples."""
    return iter(frame[columns.split()].itertuples(index=False, name="Row"))


def _named(name: Any, role: Any, agent: int) -> str:
    """Name of an agent, with its role if it is no participant."""
    known = str(name) if isinstance(name, str) and name else f"agent {agent}"
    return known if role in ("", "participant") or not isinstance(role, str) else f"{known}, {role}"
