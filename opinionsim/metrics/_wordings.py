"""Runs of one wording of the prompts; runs of other wordings are not averaged with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import pandas as pd

from opinionsim.errors import SpecError


def one_wording(runs: pd.DataFrame, wording: str | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The runs of one wording of each prompt pack, and the complete runs of other wordings.

    Parameters
    ----------
    runs : DataFrame
        Frame of a store. Column ``wording`` contains the name of the prompt pack, ``@`` and a hash of the wording, NaN
        for runs without prompts; ``begun_at`` contains the Unix time at which a run first began. If the frame lacks
        the column ``wording``, all of its runs are taken.
    wording : str, optional
        The wording to take from its pack: its hash, the whole value of the column, or a unique prefix of either. By
        default, each pack's wording is that of the complete run that began last or, if times are unknown, of the last
        complete run in the frame.

    Returns
    -------
    taken, left_out : DataFrame
        Rows of `runs`. Runs left out are complete and have another wording of their pack. Runs without a wording and
        incomplete runs are taken. Each pack has its own wording because you may compare packs.

    Raises
    ------
    SpecError
        If `wording` fits no wording of a complete run, or several; the message lists the wordings and the number of
        complete runs of each.
    """
    texts = _of_complete(runs)
    chosen = _begun_last(runs, texts)
    if wording is not None:
        chosen |= {pack_of(text): text for text in _asked_for(wording, texts)}
    is_left_out = texts.notna() & ~texts.isin(chosen.values())
    return runs[~is_left_out], runs[is_left_out]


def wording_statement(left_out: Iterable[str], wording: str | None = None) -> str:
    """State how many complete runs with other wordings of the prompts are left out.

    Parameters
    ----------
    left_out : iterable of str
        The wording of each run that is left out.
    wording : str, optional
        The requested wording, as in :func:`one_wording`; if it is missing, the result calls the other wordings earlier
        ones.

    Returns
    -------
    str
        Number of runs left out, in total and by wording; empty if there are none.
    """
    counts = Counter(left_out)
    if not counts:
        return ""
    one, several = ("an earlier", "earlier") if wording is None else ("another", "other")
    which = f"{one} wording" if len(counts) == 1 else f"{several} wordings"
    return f"runs of {which} of the prompts, left out: {counts.total()} ({_listed(counts)})"


def pack_of(wording: str) -> str:
    """Name of the prompt pack of a wording."""
    return wording.rpartition("@")[0]


def _of_complete(runs: pd.DataFrame) -> pd.Series[str]:
    """The wording of each run, missing for runs that are not complete or have none."""
    if "wording" not in runs.columns:
        return pd.Series(None, index=runs.index, dtype=object)
    return runs["wording"].astype(object).where(runs["status"] == "complete")


def _begun_last(runs: pd.DataFrame, texts: pd.Series[str]) -> dict[str, str]:
    """The wording of the run begun last of each pack, by the name of the pack."""
    known = pd.DataFrame({"text": texts, "begun_at": runs.get("begun_at", 0.0)}).dropna(subset="text")
    in_order = known.sort_values("begun_at", kind="stable", na_position="first")["text"]
    return {pack_of(text): text for text in in_order}


def _asked_for(wording: str, texts: pd.Series[str]) -> list[str]:
    """The wordings that begin with `wording`; one for each pack if several packs have the same wording."""
    counts = Counter(texts.dropna())
    found = [text for text in counts if (text if "@" in wording else _hash_of(text)).startswith(wording)]
    if len({_hash_of(text) for text in found}) == 1:
        return found
    if not counts:
        raise SpecError(f"no complete run has a wording of the prompts to choose; got {wording!r}")
    problem = "several wordings of the prompts begin" if found else "no wording of the prompts begins"
    raise SpecError(f"{problem} with {wording!r}; complete runs have these, with counts: {_listed(counts)}")


def _hash_of(wording: str) -> str:
    return wording.rpartition("@")[2]


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{wording}: {count}" for wording, count in counts.items())
