"""Tidy frames as a store gives them, made from numbers written down in a test or drawn from a generator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

POINTS = (-2, -1, 0, 1, 2)
COLUMNS = (
    *("run_id", "cell", "block", "instrument_id", "classifier", "variable", "kind", "turn", "step", "agent"),
    *(
        "assigned_opinion",
        "status",
        "value",
        "expectation",
        "margin",
        "off_scale",
        *(f"p_{point}" for point in POINTS),
        "evidence",
    ),
)


class Frames(NamedTuple):
    runs: pd.DataFrame
    agents: pd.DataFrame
    opinions: pd.DataFrame


def run_row(run_id: str, **values: Any) -> dict[str, Any]:
    """One row of the runs frame."""
    row = {
        **{"run_id": run_id, "experiment": "test", "cell": "c0", "replicate": 0, "block": "", "status": "complete"},
        **{"evidence": "scripted", "seed": 1, "topic": "global-warming", "category": "science", "framing": "falsehood"},
        **{
            "claim": "a claim",
            "task": "",
            "truth": -2.0,
            "confirmation_bias": "none",
            "memory": "cumulative",
            "world": "closed",
        },
        **{"model": "scripted", "interaction": "dyadic", "network": "complete", "n_agents": 10, "steps": 100},
        **{"instrument_id": "m0", "classifier": "lexicon", "validation": "", "error": None},
        "texts": "report,response,speech,post,probe,self-report,opinion",
    }
    row |= values
    return row if "block" in values else row | {"block": f"b{row['replicate']}"}


def opinion_rows(row: Mapping[str, Any], texts: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Opinion rows of a run from (turn, step, agent, value), then a kind, then a condition of the text."""
    shared = {key: row[key] for key in ("run_id", "cell", "block", "instrument_id", "classifier", "evidence")}
    return [
        shared
        | {"status": text[5] if len(text) > 5 else "answered"}
        | {"variable": "stance", "kind": text[4] if len(text) > 4 else "report", "value": float(text[3])}
        | dict(zip(("turn", "step", "agent"), text[:3], strict=True))
        for text in texts
    ]


def make(runs: Sequence[Mapping[str, Any]], assigned: Sequence[float], opinions: Sequence[Mapping[str, Any]]) -> Frames:
    """The three frames; every run gives its agents the same assigned opinions, as far as it has agents."""
    agents = [
        {"run_id": row["run_id"], "agent": agent, "name": f"Agent {agent}", "assigned_opinion": assigned[agent]}
        | {"model": row["model"], "evidence": row["evidence"]}
        for row in runs
        for agent in range(row["n_agents"])
    ]
    agents_frame = pd.DataFrame(agents).drop_duplicates(["run_id", "agent"])
    return Frames(pd.DataFrame(list(runs)), agents_frame, pd.DataFrame(list(opinions), columns=list(COLUMNS)))


def one_run(texts: Iterable[tuple[Any, ...]], assigned: Sequence[float], steps: int = 100, **values: Any) -> Frames:
    """Frames of a single run."""
    row = run_row("r0", n_agents=len(assigned), steps=steps, **values)
    return make([row], assigned, opinion_rows(row, texts))


def final(values: Sequence[float]) -> list[tuple[int, int, int, float]]:
    """Every agent reports once, agent i at step i + 1."""
    return [(agent, agent + 1, agent, value) for agent, value in enumerate(values)]


def study(
    conditions: Sequence[Mapping[str, Any]],
    *,
    replicates: int = 1,
    n_agents: int = 10,
    steps: int = 100,
    refusal_rate: float = 0.03,
    seed: int = 0,
) -> Frames:
    """Frames in which one listener a step moves towards the run's truth, more slowly the stronger the bias."""
    draw = np.random.default_rng(seed)
    rows, parts = [], []
    start = np.resize([-2.0, -1.0, 0.0, 1.0, 2.0], n_agents)
    for cell, condition in enumerate(conditions):
        for replicate in range(replicates):
            row = run_row(f"r{len(rows)}", cell=f"c{cell}", replicate=replicate, block=f"b{replicate}")
            row |= {"n_agents": n_agents, "steps": steps} | dict(condition)
            rows.append(row)
            parts.append(_walk(row, start[: row["n_agents"]], draw, refusal_rate))
    opinions = pd.concat(parts, ignore_index=True).reindex(columns=list(COLUMNS))
    return Frames(*make(rows, start, [])[:2], opinions)


def _walk(row: Mapping[str, Any], start: np.ndarray, draw: np.random.Generator, refusal_rate: float) -> pd.DataFrame:
    n, steps = row["n_agents"], row["steps"]
    pull = {"none": 0.5, "weak": 0.3, "strong": 0.08}[row["confirmation_bias"]]
    truth = -2.0 if row["framing"] == "falsehood" else 1.0
    agent = draw.integers(n, size=steps)
    state, value = start.copy(), np.empty(steps)
    for step, who in enumerate(agent):
        state[who] += pull * (truth - state[who]) * draw.random() + 0.3 * draw.normal()
        value[step] = np.clip(np.round(state[who]), -2, 2)
    value[draw.random(steps) < refusal_rate] = np.nan
    frame = pd.DataFrame(
        {"turn": 2 * np.arange(steps) + 1, "step": np.arange(1, steps + 1), "agent": agent, "value": value}
    )
    shared = {key: row[key] for key in ("run_id", "cell", "block", "instrument_id", "classifier", "evidence")}
    return frame.assign(variable="stance", kind="report", status="answered", **shared)
