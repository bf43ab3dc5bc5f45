"""The folders of DEBATE (Chuang et al. 2026, arXiv 2510.25110) as one table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from opinionsim.errors import SpecError

#: Columns of a file that are read.
_COLUMNS = ("event_order", "event_type", "worker_id", "recipient_id", "text", "sliderValue", "validity")
#: Events that are public posts and messages to a partner.
_SAID = ("tweet", "message_sent")


def read_debate(folder: str | Path) -> pd.DataFrame:
    """Read the opinions and messages of all groups in a folder, in the form that the mapping ``debate`` expects.

    Parameters
    ----------
    folder : str or Path
        ``raw`` or ``golden`` of the data set, or a folder of it: one file per group, in a folder of its topic. Fetch it
        yourself, and read the licence in its repository first.

    Returns
    -------
    DataFrame
        One row per opinion or message: ``group``, ``topic``, ``person``, ``wave`` (0 the first opinion, 1 the rounds, 2
        the last opinion), ``order``, ``kind``, ``text``, ``rating`` (1 to 6, NaN for messages) and ``recipient`` (None
        for all). Rows marked as invalid are left out.

    Raises
    ------
    SpecError
        If there is no file of such a group, or one lacks a column.
    """
    files = sorted(Path(folder).rglob("*.csv"))
    rows = [row for file in files for row in _group(file)]
    if not rows:
        raise SpecError(f"{folder}: contains no .csv files of groups; give the folder raw or golden of the data set")
    return pd.DataFrame(rows)


def _group(file: Path) -> Iterator[dict[Any, Any]]:
    """The rows of one group."""
    table = pd.read_csv(file)
    if absent := [name for name in _COLUMNS if name not in table.columns]:
        raise SpecError(f"{file}: lacks {', '.join(map(repr, absent))}, which group files must have")
    valid = table["validity"].isna() | (table["validity"] == "VALID")
    events = table[valid & table["worker_id"].notna()].sort_values("event_order", kind="stable")
    said = events["event_type"].isin(_SAID)
    begun = events.loc[said, "event_order"].min()
    rated = events[events["event_type"].str.contains("opinion", case=False, na=False)]
    of = {"group": file.stem, "topic": file.parent.name}
    for (person, last), own in rated.groupby(["worker_id", rated["event_order"] > begun]):
        # Words and slider may be events of their own: together they are one opinion.
        texts, ratings = own["text"].dropna(), own["sliderValue"].dropna()
        if len(ratings):
            told = {"kind": "opinion", "text": " ".join(dict.fromkeys(texts.astype(str))), "recipient": None}
            order, wave = own["event_order"].max(), 2 if last else 0
            yield {**of, "person": str(person), "wave": wave, "order": order, **told, "rating": ratings.iloc[-1]}
    names = {"worker_id": "person", "event_order": "order", "recipient_id": "recipient", "text": "text"}
    posts = events[said].dropna(subset=["text"])[list(names)].rename(columns=names)
    yield from posts.assign(**of, wave=1, kind="post", rating=None).to_dict("records")
