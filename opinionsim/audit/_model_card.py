"""The card of a chat model: how it acts as an agent, from the stored calls of ``opinionsim check-model``."""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.analysis import Table
from opinionsim.classifiers import parse_closed
from opinionsim.errors import SpecError
from opinionsim.foundation.templates import sentences
from opinionsim.metrics import SELF_REPORT, SIDES, none_complete, tokenise
from opinionsim.opinions import OpinionScale
from opinionsim.store import Results

_HERE = Path(__file__).parent
#: Column that tells the parts of a check apart; pairs or texts below which there is nothing but their number.
_PART, _ENOUGH = "sweep.interaction", 10
#: Statuses of texts that are not usable, as the card counts them; the first are refusals.
_INSTEAD = (("refused", "filtered"), ("off_role",), ("truncated",), ("empty",))


def model_card(results: Results) -> dict[str, Any]:
    """Make the card of a checked model from stored results only.

    Returns
    -------
    dict
        JSON values: ``model``, its name in specifications; ``settings``, the other fields of ``model``; ``evidence``,
        ``asked_on``, the number of ``calls``, and ``lines`` by name. Each line has its ``text``, the number ``n`` of
        texts, pairs or calls, and its ``value`` with the ends ``low`` and ``high`` of its 95 % interval, or None.

    Raises
    ------
    SpecError
        If the results are not a check of a model, or a run is not complete.
    """
    runs, spec, calls = results.runs, results.spec, results.calls
    if "posts" not in set(runs.get(_PART, ())):
        raise SpecError(f"{results.name!r} is not a check of a model; to make one, run `opinionsim check-model MODEL`")
    if set(runs["status"]) != {"complete"}:
        raise none_complete(runs, "for a card")
    assigned = results.agents[["run_id", "agent", "assigned_opinion"]]
    # A report on a post that was refused is skipped: nobody was asked.
    turns = results.turns[results.turns["status"] != "skipped"].merge(runs[["run_id", _PART]])
    turns = turns.merge(assigned, on=["run_id", "agent"])
    told = turns[turns["kind"] != SELF_REPORT]
    kept, posts, signs = told["status"] == "answered", told[told["kind"] == "post"], told["signs"].str.split()
    counted, limit = Counter(signs.sum()).most_common(), spec["cognition"]["post_words"] or math.inf
    scale = OpinionScale(tuple(spec["scale"]["points"]), tuple(spec["scale"]["labels"]))
    refused, side = turns["status"].isin(_INSTEAD[0]), np.sign(turns["assigned_opinion"] - scale.neutral)
    lines = {
        "usable": _share(kept),
        "instead": _line(", ".join(str(told["status"].isin(each).sum()) for each in _INSTEAD), len(told)),
        "signs": _line(", ".join(f"{name} {n}" for name, n in counted) or "none", len(told)),
        "words": _share(posts["message"].map(lambda text: len(tokenise(text)) <= limit)),
        "echo": _share(signs.map(lambda each: not {"echo", "echo_task"}.isdisjoint(each))),
        "distinct": _share(~posts["message"].duplicated()),
        **_answers(turns[turns["kind"] == SELF_REPORT].sort_values("turn"), scale),
        **{f"refused_{name}": _share(refused[side == sign]) for sign, name in SIDES.items()},
        "kept": _line(f"{len(told) / kept.sum():.2f}" if kept.any() else "none is kept", len(told)),
    }
    written = calls[calls["act"] != SELF_REPORT]
    for name, figure in {
        "tokens": written["output_tokens"].astype(float).mean(),
        "reasoning": written["reasoning_tokens"].astype(float).fillna(0).mean(),
        "latency": written["latency_s"].median(),
    }.items():
        text = f"{figure:,.0f}" if figure >= 10 else f"{figure:.2g}"
        lines[name] = _line("not counted" if math.isnan(figure) else text, len(written), figure)
    return {
        "model": spec["model"]["name"],
        "settings": {name: value for name, value in spec["model"].items() if name not in ("name", "replies")},
        "evidence": "+".join(sorted(set(runs["evidence"]))),
        "asked_on": str(pd.Timestamp(calls["arrived_at"].max(), unit="s").date()),
        "calls": len(calls),
        "lines": lines,
    }


def _answers(asked: pd.DataFrame, scale: OpinionScale) -> dict[str, Any]:
    """Lines on answers to the closed question."""
    from scipy.stats import pearsonr, t

    read = [parse_closed(text, scale) for text in asked["message"].where(asked["status"] == "answered", "")]
    nth = asked.groupby([_PART, "agent"]).cumcount()
    asked = asked.assign(point=pd.Series(read, asked.index, dtype=float), nth=nth)
    points = asked.pivot(index="agent", columns=[_PART, "nth"], values="point")
    twice, usual = points["posts"].dropna(), points[["posts"]].mean(axis=1)
    ranks = pd.concat([usual, asked.groupby("agent")["assigned_opinion"].first()], axis=1).dropna().rank()
    known = len(ranks) >= _ENOUGH and (ranks.nunique() > 1).all()
    ends = pearsonr(*ranks.to_numpy().T).confidence_interval() if known else ()
    found = {
        "readable": _share(asked["point"].notna()),
        "follows": _pairs(len(ranks), float(ranks.corr().to_numpy()[0, 1]), ends),
        "retest": _share(twice[0] == twice[1]),
    }
    for name, more, less in (
        ("sides", points["a post for", 0], points["a post against", 0]),
        ("falling", points["falling", 0], usual),
        ("spelling", points["words", 0], usual),
    ):
        move = (more - less).dropna()
        half = move.sem() * t.ppf(0.975, max(len(move) - 1, 1))
        found[name] = _pairs(len(move), move.mean(), (move.mean() - half, move.mean() + half))
    return found


def _pairs(n: int, value: float, ends: Sequence[float]) -> dict[str, Any]:
    """A figure of pairs; where they are few, or all alike, their number alone."""
    known = n >= _ENOUGH and not math.isnan(value)
    pairs = f"{n} pair{'s' if n != 1 else ''}"
    return _line(f"{value:+.2f}, {pairs}", n, value, ends) if known else _line(pairs, n)


def _share(of: pd.Series[bool]) -> dict[str, Any]:
    """A count of all, with the interval of its share (Wilson 1927) where they are not few."""
    from scipy.stats import binomtest

    count, n = int(of.sum()), len(of)
    ends = binomtest(count, n).proportion_ci(method="wilson") if n >= _ENOUGH else ()
    return _line(f"{count} of {n}", n, count / max(n, 1), ends)


def _line(text: str, n: int, value: float = math.nan, ends: Sequence[float] = ()) -> dict[str, Any]:
    figures = [None if math.isnan(each) else float(each) for each in (value, *(ends or (math.nan, math.nan)))]
    return {"text": text, "n": n, **dict(zip(("value", "low", "high"), figures, strict=True))}


def card_table(card: dict[str, Any]) -> Table:
    """Make a table that compares a card with the cards of the package."""
    words = tomllib.loads((_HERE / "card.toml").read_text(encoding="utf-8"))
    shipped = {title: _HERE / "cards" / f"{name}.json" for name, title in words["references"].items()}
    beside = {title: json.loads(path.read_text(encoding="utf-8")) for title, path in shipped.items()}
    rows = []
    for name, label in words["lines"].items():
        line = card["lines"][name]
        interval = "" if line["low"] is None else f"{line['low']:.2f} to {line['high']:.2f}"
        others = {title: each["lines"][name]["text"] for title, each in beside.items()}
        rows.append({"line": label, "this model": line["text"], "interval": interval, **others})
    notes = sentences("opinionsim.audit", "card.txt", card=card, beside=beside, enough=_ENOUGH)
    frame = pd.DataFrame(rows).assign(evidence=card["evidence"])
    return Table.of(f"How {card['model']} acts as an agent", frame, ["line"], notes, "card")
