"""Texts of agents in a study: the largest changes of opinion with what was read, and the beginnings of some runs."""

from __future__ import annotations

from typing import Any

import pandas as pd

from opinionsim.metrics import chosen_kind, stance_rows
from opinionsim.store import Results
from opinionsim.watching import transcript_data

#: Numbers of changes of opinion that are shown, of runs, and of turns of each of these.
_SHIFTS, _SAMPLES, _TURNS = 6, 3, 12


def shifts(results: Results) -> tuple[dict[str, Any], ...]:
    """The largest changes of opinion of complete runs, the largest first, with what was read just before.

    A change is from the last opinion of the same author coded from the same kind of text. Equations state numbers
    and have no texts.

    Returns
    -------
    tuple of dict of JSON values
        The result of :func:`opinionsim.watching.transcript_data` for each turn, with the row of its ``run``.
    """
    runs = _complete(results)
    runs = runs[runs["evidence"] != "equation"]
    keys = ["run_id", "cell", "instrument_id"]
    codes = stance_rows(runs, results.opinions).merge(runs[keys], on=keys)
    own = codes[codes["kind"] == chosen_kind(None, codes["kind"], runs)]
    own = own.sort_values(["run_id", "agent", "turn"], kind="stable")
    changes = own.assign(change=own.groupby(["run_id", "agent"])["value"].diff()).dropna(subset="change")
    changes = changes[changes["change"] != 0]
    found = changes.assign(size=-changes["change"].abs()).sort_values(["size", "run_id", "turn"], kind="stable")
    pairs = found[["run_id", "turn"]].head(_SHIFTS).itertuples(index=False)
    return tuple(transcript_data(results, str(run), turn=int(turn)) for run, turn in pairs)


def samples(results: Results) -> tuple[dict[str, Any], ...]:
    """The beginnings of some complete runs: the first run of the first, a middle and the last condition.

    Returns
    -------
    tuple of dict of JSON values
        The result of :func:`opinionsim.watching.transcript_data` for the first turns of each run, and its number of
        ``further`` turns.
    """
    runs = _complete(results).sort_values(["replicate", "redraw"], kind="stable")
    # Conditions have the order of the specification; runs are numbered in another.
    firsts = runs.drop_duplicates("cell").astype({"cell": results.ordered_runs["cell"].dtype}).sort_values("cell")
    places = sorted({round(at * (len(firsts) - 1) / (_SAMPLES - 1)) for at in range(_SAMPLES) if len(firsts)})
    found = []
    for row in map(int, firsts.index[places]):
        data = transcript_data(results, row)
        shown = data["turns"][:_TURNS]
        found.append(data | {"turns": shown, "further": len(data["turns"]) - len(shown)})
    return tuple(found)


def _complete(results: Results) -> pd.DataFrame:
    """Complete runs, each once; the index is the row in the frame `runs`."""
    runs = results.runs.reset_index(drop=True)
    return runs[runs["status"] == "complete"].drop_duplicates("run_id")
