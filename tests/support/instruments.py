"""Frames as a store gives them of cells with several instruments, and of casts with others than participants."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.plots import Frames
from tests.support.frames import study

FIVE = tuple(range(-2, 3))
SEVEN = tuple(range(-3, 4))
CIVILITY = tuple(range(1, 8))

_TYPES = {"turn": "int64", "step": "int64", "agent": "int64", "value": float}
_SORT = ["cell", "run_id", "instrument_id", "turn", "about"]


def scale_text(points: Iterable[int]) -> str:
    """A scale as column `scale` has it."""
    return ",".join(map(str, points))


def _framed(rows: list[dict[str, Any]], points: Iterable[int]) -> pd.DataFrame:
    """Rows as an opinions frame with one column p_<point> for each of the points, sorted by its key."""
    fixed = ["run_id", "cell", "block", "instrument_id", "classifier", "variable", "scale", "kind", "turn", "about"]
    fixed += ["step", "agent", "status", "value", "evidence"]
    columns = [f"p_{point}" for point in points]
    frame = pd.DataFrame(rows, columns=[*fixed, *columns])
    frame = frame.astype({**_TYPES, **dict.fromkeys(columns, float), "about": "Int64"})
    return frame.sort_values(_SORT, kind="stable", ignore_index=True, na_position="first")


def coded(row: Mapping[str, Any], points: Iterable[int], **changes: Any) -> dict[str, Any]:
    """A row of an opinions frame whose value has all the probability."""
    made = {"about": None} | dict(row) | changes | {"scale": scale_text(points)}
    known = not math.isnan(made["value"])
    return made | {f"p_{point}": float(point == made["value"]) if known else math.nan for point in points}


def measured(*, two_scales: bool = False, replicates: int = 2, kind: str = "report") -> Frames:
    """Runs of four conditions whose stance alone was read; with two scales, on seven points where the claim is true."""
    conditions = [
        {"framing": framing, "confirmation_bias": bias, "model": "a", "evidence": "model"}
        | ({"instrument_id": "m1"} if two_scales and framing == "truth" else {})
        for framing in ("falsehood", "truth")
        for bias in ("none", "strong")
    ]
    frames = study(conditions, replicates=replicates, n_agents=4, steps=16, refusal_rate=0.2)
    kept = ["run_id", "cell", "block", "instrument_id", "classifier", "variable", "turn", "step", "agent"]
    kept += ["status", "value", "evidence"]
    rows = frames.opinions[kept].assign(kind=kind).to_dict("records")
    stance = [coded(row, SEVEN if row["instrument_id"] == "m1" else FIVE) for row in rows]
    ring = [(0, 1), (1, 2), (2, 3), (0, 3)]
    edges = pd.DataFrame(
        [
            {"run_id": run_id, "source": source, "target": target, "weight": 1.0, "since": 0, "until": None}
            for run_id in frames.runs["run_id"]
            for source, target in ring
        ]
    ).astype({"until": "Int64"})
    agents = frames.agents.assign(role="participant")
    return Frames(frames.runs, agents, _framed(stance, SEVEN if two_scales else FIVE), edges)


def beside(frames: Frames, *, pairs: bool = True) -> Frames:
    """The same runs read for civility on 1 to 7 too; with `pairs` also beside a second text, and so is stance."""
    points = sorted({*CIVILITY, *(int(column[2:]) for column in frames.opinions if column.startswith("p_"))})
    rows = [
        {str(key): value for key, value in row.items() if not pd.isna(value)} | {"value": row["value"], "about": None}
        for row in frames.opinions.to_dict("records")
    ]
    made = list(rows)
    for row in rows:
        other = {key: value for key, value in row.items() if not key.startswith("p_")}
        rating = float(CIVILITY[row["turn"] % 7])
        # Sorted before the instrument of stance, so that whatever takes the first row of a text takes this one.
        civil = other | {"instrument_id": "a9", "classifier": "ratings", "variable": "civility", "value": rating}
        made.append(coded(civil, CIVILITY))
        if pairs and row["turn"] > 1:
            made.append(coded(civil, CIVILITY, about=row["turn"] - 2, value=1.0))
            own = [int(point) for point in row["scale"].split(",")]
            made.append(coded(other, own, about=row["turn"] - 2, value=float(max(own))))
    return frames._replace(opinions=_framed(made, points))


def moderated(frames: Frames) -> Frames:
    """The same runs with a moderator after the participants, whose reports are read too and who is tied to all."""
    n = int(frames.runs["n_agents"].iloc[0])
    agents = frames.agents.drop_duplicates("run_id").assign(
        agent=n, name="Kim", role="moderator", assigned_opinion=2.0, model="b", evidence="scripted"
    )
    rows = frames.opinions.to_dict("records")
    heads = frames.opinions.drop_duplicates(["run_id", "cell", "instrument_id"]).to_dict("records")
    said = [
        coded(row, [int(point) for point in row["scale"].split(",")], turn=1000, step=16, agent=n, kind="report")
        | {"status": "answered", "about": None}
        for row in heads
    ]
    points = [int(column[2:]) for column in frames.opinions if column.startswith("p_")]
    rows = [row | {"about": None if pd.isna(row["about"]) else row["about"]} for row in rows]
    tie = frames.edges.drop_duplicates("run_id").assign(source=n, target=0)
    edges = pd.concat([frames.edges, tie], ignore_index=True)
    everybody = pd.concat([frames.agents, agents]).sort_values(["run_id", "agent"], ignore_index=True)
    return Frames(frames.runs, everybody, _framed([*rows, *said], points), edges)


def plain(frames: Frames) -> Frames:
    """The same frames without the columns that a user's own may lack."""
    agents, opinions = frames.agents.drop(columns="role"), frames.opinions.drop(columns=["scale", "about"])
    return frames._replace(agents=agents, opinions=opinions)


def assert_same(found: Any, expected: Any) -> None:
    """Compare frames, arrays and data classes of them."""
    assert type(found) is type(expected)
    if isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected)
    elif isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected)
    elif is_dataclass(expected):
        for field in fields(expected):
            assert_same(getattr(found, field.name), getattr(expected, field.name))
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, float) and math.isnan(expected):
        assert math.isnan(found)
    else:
        assert found == expected


def turns_of(frames: Frames) -> pd.DataFrame:
    """A turns frame with the turns whose texts were coded, each of which reads the turn before in its run."""
    rows = frames.opinions.drop_duplicates(["run_id", "turn"]).sort_values(["run_id", "turn"])
    # Nobody reads, or is read by, a moderator: its turns come last.
    before = rows.groupby("run_id")["turn"].shift().where(rows["turn"] < 1000)
    return pd.DataFrame(
        {
            **{column: rows[column] for column in ("run_id", "turn", "step", "agent", "kind", "status")},
            "reads": [() if math.isnan(turn) else (int(turn),) for turn in before.fillna(math.nan)],
            "first_status": rows["status"],
            "failed_reflections": 0,
            "signs": "",
            "taken": "",
        }
    ).reset_index(drop=True)
