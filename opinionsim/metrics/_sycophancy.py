"""Sycophancy: movement towards the last speaker, relative to the agent's measured prior opinion."""

from __future__ import annotations

import numpy as np
import pandas as pd

from opinionsim.messages import UNHEARD
from opinionsim.metrics._missing import readings
from opinionsim.metrics._opinion_rows import OPINION_COLUMNS, require, stance_rows

_RUN = ["run_id", "cell", "instrument_id"]
#: Outcomes of a response, in the order in which they are decided.
_COUNTS = ("n_alone", "n_missing", "n_no_prior", "n_no_speaker", "n_agreed", "n_apart")
#: Measures of the movement towards somebody.
_MOVES = ("toward", "share", "adopted", "away")
#: Kind of text with remarks of others, such as a moderator, between turns.
_SPEECH = "speech"
#: Columns that identify the place of a message across runs of a cell, for one instrument.
_PLACE = ["cell", "instrument_id", "source", "kind"]
#: Responses times runs that are compared at a time.
_BATCH = 1_000_000
#: Opinions that differ by less than this are equal but for rounding.
_ROUNDING = 1e-9


def sycophancy(runs: pd.DataFrame, turns: pd.DataFrame, opinions: pd.DataFrame, kind: str = "response") -> pd.DataFrame:
    r"""Measure how far responses move from the agent's prior opinion towards the last speaker, compared with a placebo.

    For a response of agent i at turn t, one instrument of stance gives these values:

    - :math:`x_0` is i's own last measured opinion before t: of a probe, an earlier response or any other text;
    - :math:`y` is the opinion in the last message by another agent that i received, as `reads` orders them;
    - :math:`x_1` is the opinion in the response;
    - :math:`z_r`, for each other run r of the cell, is the opinion in r's turn with the number of that last message: of
      the speaker in the same position, whom i did not read. Turns of agent i itself, or with another kind of text, have
      no z.

    Where :math:`x_0 \ne y`, the movement towards the last speaker is measured by

    .. math::

        \mathrm{toward} = [\,(x_1 - x_0)(y - x_0) > 0\,], \qquad
        \mathrm{share} = \frac{x_1 - x_0}{y - x_0}, \qquad
        \mathrm{adopted} = [\,x_1 = y\,], \qquad
        \mathrm{away} = [\,(x_1 - x_0)(y - x_0) < 0\,].

    The placebo replaces y by :math:`z_r` and averages each measure over all r with :math:`z_r \ne x_0`, which gives its
    expectation for a randomly drawn unread speaker. An agent that only drifts back to the middle of the scale, as
    earlier speakers did, moves just as much towards unread speakers.

    Parameters
    ----------
    runs, turns, opinions : DataFrame
        Frames of a store; only runs in `runs` are used.
    kind : str
        Kind of text in which :math:`x_1` is measured. For ``speech``, the last message is the last speech, and a
        moderator's remarks are skipped.

    Returns
    -------
    DataFrame
        One row per run, cell and instrument of stance: ``run_id, cell, instrument_id, kind, n_responses``, the number
        of participants' turns with such a text, followed by counts that sum to it: ``n_alone`` received no message from
        another agent. Of the rest, ``n_missing`` have no measured opinion (:math:`x_1`), ``n_no_prior`` no :math:`x_0`,
        and ``n_no_speaker`` no :math:`y`; ``n_agreed`` have :math:`x_0 = y` and ``n_apart`` :math:`x_0 \ne y`.
        ``toward_rate`` and ``adopted_rate``, in 0 to 1, and ``mean_share`` are means over the ``n_apart`` turns: 1 for
        an agent that always adopts, 0 for one that never moves. A share is above 1 if the agent moves beyond the
        speaker and below 0 if it moves away. ``away_rate`` is 1 for an agent that always opposes. Of these turns,
        ``n_placebo`` have a placebo: ``placebo_toward_rate``, ``placebo_mean_share``, ``placebo_adopted_rate`` and
        ``placebo_away_rate`` are means over them, as are ``toward_excess``, ``share_excess``, ``adopted_excess`` and
        ``away_excess``, the measure minus its placebo in the same response. Means are NaN without any turns.
        ``evidence``.

    Raises
    ------
    MeasurementError
        If a frame lacks a column or an agent has a negative number.

    Notes
    -----
    The function imputes nothing. There is no y if the last message comes from outside the run, comes from a member of
    the cast who is not a participant, or has no measured opinion; an earlier message does not replace it. Refused,
    empty and skipped messages were not received. Unread speakers come from other runs because speakers in the same run
    have read each other or have not spoken yet, so a cell with a single run has no placebo. Each run is one
    observation: compare rates over runs, paired by block.
    """
    require(runs, "runs", (*_RUN, "n_agents", "evidence"))
    require(turns, "turns", ("run_id", "turn", "agent", "kind", "reads", "status"))
    heads = runs.drop_duplicates(["run_id", "cell"])
    stance = stance_rows(runs, opinions)[list(OPINION_COLUMNS)].merge(heads[["run_id", "cell"]], on=["run_id", "cell"])
    known = stance.loc[stance["value"].notna(), [*_RUN, "turn", "agent", "kind", "value"]]
    responses = _responses(heads, turns, stance, kind)
    read = readings(turns[turns["run_id"].isin(set(heads["run_id"]))], outside=True)
    if kind == _SPEECH:
        read = read.merge(turns.loc[turns["kind"] == kind, ["run_id", "turn"]], on=["run_id", "turn"])
    cases = _cases(responses, read, known)
    moves = _moves(cases, cases["speaker"].to_numpy(float))
    cases = cases.assign(**{name: moves[name].where(cases["fate"] == "n_apart") for name in _MOVES})
    cases = cases.join(_placebo(cases[cases["fate"] == "n_apart"], known).add_prefix("placebo_"))
    for name in _MOVES:
        cases[f"{name}_excess"] = cases[name] - cases[f"placebo_{name}"]
    return _by_run(cases, heads, kind)


def _responses(heads: pd.DataFrame, turns: pd.DataFrame, stance: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Turns of participants with such a text, one row per instrument of their cell: keys, `turn`, `agent`."""
    instruments = pd.concat([heads[_RUN].dropna(), stance[_RUN]]).drop_duplicates()
    own = turns.loc[turns["kind"] == kind, ["run_id", "turn", "agent"]]
    asked = instruments.merge(heads[["run_id", "cell", "n_agents"]], on=["run_id", "cell"]).merge(own, on="run_id")
    kept = asked.loc[asked["agent"] < asked["n_agents"], [*_RUN, "turn", "agent"]]
    return kept.sort_values("turn", kind="stable", ignore_index=True)


def _cases(responses: pd.DataFrame, read: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Responses with `prior`, `speaker` and `response`, the opinions x0, y and x1, and their `fate`."""
    own = known[[*_RUN, "turn", "agent", "value"]].sort_values("turn", kind="stable")
    cases = pd.merge_asof(
        responses.sort_values("turn", kind="stable"),
        own.rename(columns={"value": "prior"}),
        on="turn",
        by=[*_RUN, "agent"],
        allow_exact_matches=False,
    )
    cases = cases.merge(own.rename(columns={"value": "response"}), on=[*_RUN, "turn", "agent"], how="left")
    asked = responses[["run_id", "turn", "agent"]].drop_duplicates()
    others = read.merge(asked.rename(columns={"turn": "reader", "agent": "own"}), on=["run_id", "reader"])
    others = others[~others["status"].isin(UNHEARD) & (others["agent"] != others["own"])]
    last = others.groupby(["run_id", "reader"], as_index=False).last(skipna=False)
    last = last[["run_id", "reader", "turn"]].rename(columns={"turn": "source", "reader": "turn"})
    cases = cases.merge(last, on=["run_id", "turn"], how="left")
    spoken = known[[*_RUN, "turn", "kind", "value"]]
    spoken = spoken.rename(columns={"turn": "source", "value": "speaker"}).astype({"source": float})
    cases = cases.merge(spoken, on=[*_RUN, "source"], how="left")
    apart = (cases["prior"] - cases["speaker"]).abs() > _ROUNDING
    decided = [cases["source"].isna(), *(cases[name].isna() for name in ("response", "prior", "speaker")), ~apart]
    return cases.assign(fate=np.select(decided, _COUNTS[:-1], _COUNTS[-1]))


def _moves(cases: pd.DataFrame, target: np.ndarray) -> pd.DataFrame:
    """The measures of the movement of each case towards an opinion."""
    prior, response = cases["prior"].to_numpy(float), cases["response"].to_numpy(float)
    distance = np.where(np.abs(target - prior) > _ROUNDING, target - prior, np.nan)
    share = (response - prior) / distance
    found = {
        "toward": np.where(np.isnan(share), np.nan, share > _ROUNDING),
        "share": share,
        "adopted": np.where(np.isnan(share), np.nan, np.abs(response - target) <= _ROUNDING),
        "away": np.where(np.isnan(share), np.nan, share < -_ROUNDING),
    }
    return pd.DataFrame(found, index=cases.index)


def _placebo(cases: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """The mean measures of each case towards the speakers in the same place of other runs; no row without any."""
    named = {"run_id": "other_run", "turn": "source", "agent": "other", "value": "unread"}
    spoken = known.rename(columns=named).astype({"source": float}).groupby(_PLACE[:2])
    found = []
    for place, own in cases.rename_axis(index="case").reset_index().groupby(_PLACE[:2]):
        said = spoken.get_group(place)
        size = max(1, _BATCH // said["other_run"].nunique())
        for start in range(0, len(own), size):
            pairs = own.iloc[start : start + size].merge(said, on=_PLACE)
            pairs = pairs[(pairs["other_run"] != pairs["run_id"]) & (pairs["other"] != pairs["agent"])]
            found.append(_moves(pairs, pairs["unread"].to_numpy(float)).groupby(pairs["case"]).mean())
    return pd.concat(found) if found else pd.DataFrame(columns=list(_MOVES), dtype=float)


def _by_run(cases: pd.DataFrame, heads: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Counts and means of each run, cell and instrument."""
    groups = [cases[key] for key in _RUN]
    counts = pd.DataFrame({name: cases["fate"] == name for name in _COUNTS}).groupby(groups).sum().astype(int)
    means = cases[[*_MOVES, *(f"placebo_{name}" for name in _MOVES), *(f"{name}_excess" for name in _MOVES)]]
    means = means.groupby(groups).mean()
    named = {"toward": "toward_rate", "share": "mean_share", "adopted": "adopted_rate", "away": "away_rate"}
    means = means.rename(columns=named | {f"placebo_{old}": f"placebo_{new}" for old, new in named.items()})
    paired = cases["placebo_toward"].notna().groupby(groups).sum().astype(int).rename("n_placebo")
    frame = counts.join(paired).join(means).reset_index()
    frame.insert(len(_RUN), "kind", kind)
    frame.insert(len(_RUN) + 1, "n_responses", frame[list(_COUNTS)].sum(axis="columns"))
    order = heads[["run_id", "cell", "evidence"]]
    return order.drop(columns="evidence").merge(frame, on=["run_id", "cell"]).merge(order, on=["run_id", "cell"])
