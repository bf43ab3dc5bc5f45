"""Panels of both shapes, made from stated latents."""

from __future__ import annotations

import numpy as np
import pandas as pd

from opinionsim.comparison import PanelMapping

#: The latents: how much of people keep their opinion, and what moves the others.
KEPT, SLOPE, INTERCEPT, NOISE, PULL = 0.5, 0.4, 0.6, 0.5, 0.7

CROSSED = PanelMapping(
    name="crossed",
    collected="2026-03-01",
    person="who",
    topic="topic",
    rating=("before", "after"),
    text="why",
    read=("one", "two"),
    messages={"m1": "Trains save energy.", "m2": "I disagree with it."},
    reversed={"worded": ("Con",)},
    attributes=("age",),
    answers={"parrot": "parrot"},
    claims={
        name: {"for": f"{name} should be free of charge", "against": f"{name} should cost money"}
        for name in ("trains", "museums")
    },
)

TALKS = PanelMapping(
    name="talks",
    person="who",
    group="room",
    wave="wave",
    order="order",
    text="text",
    rating="rating",
    points=(1, 2, 3, 4, 5, 6),
    labels=("none", "little", "some", "much", "most", "all"),
)


def crossed(n_people: int, seed: int = 1) -> pd.DataFrame:
    """Persons crossed with two topics: some keep their opinion, others move to a + b x; half are worded against."""
    rng, rows = np.random.default_rng(seed), []
    for person in range(n_people):
        for topic in ("trains", "museums"):
            first = int(rng.integers(-2, 3))
            moved = int(np.clip(np.rint(rng.normal(INTERCEPT + SLOPE * first, NOISE)), -2, 2))
            last = first if rng.random() < KEPT else moved
            sign = -1 if rng.random() < 0.5 else 1
            rows.append(
                {"who": f"P{person}", "topic": topic, "worded": "Con" if sign < 0 else "Pro", "age": 20 + person % 50,
                 "before": sign * first, "after": sign * last, "parrot": sign * first, "one": "m2", "two": "m1",
                 "why": f"Because of {topic}."}
            )  # fmt: skip
    return pd.DataFrame(rows)


def talks(n_groups: int, seed: int = 2) -> pd.DataFrame:
    """Groups of four who each say one thing, and then move towards the mean of the others."""
    rng, rows = np.random.default_rng(seed), []
    for group in range(n_groups):
        first = rng.integers(1, 7, size=4)
        others = (first.sum() - first) / 3
        last = np.clip(np.rint(first + PULL * (others - first) + rng.normal(0, 0.3, 4)), 1, 6).astype(int)
        rows += [(group, agent, 0, agent, "", first[agent]) for agent in range(4)]
        rows += [(group, agent, 1, agent, f"I hold {first[agent]}.", None) for agent in range(4)]
        rows += [(group, agent, 2, agent, "", last[agent]) for agent in range(4)]
    table = pd.DataFrame(rows, columns=["room", "who", "wave", "order", "text", "rating"])
    return table.assign(who="P" + table["room"].astype(str) + "-" + table["who"].astype(str))
