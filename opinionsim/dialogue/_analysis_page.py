"""Analyses of a room on pages: beside the dialogue of a session, and of a run on record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from opinionsim.dialogue._arguments import Analysis, AnalysisItem, analyses
from opinionsim.foundation.templates import filled
from opinionsim.registry import part
from opinionsim.store import Results
from opinionsim.watching import point


@part("page", name="analysis")
def panel(texts: Sequence[tuple[int, str]]) -> str:
    """The last valid analysis of a session, with the number of later ones that failed."""
    found = analyses(texts)
    age = sum(turn > found[-1].turn for turn, _ in texts) if found else 0
    return filled("opinionsim.dialogue", "analysis.html", found=found[-1] if found else None, age=age)


@part("record", name="room")
def argument(found: Results) -> dict[str, Any]:
    """The argument of a room as it was seen at each moment."""
    told = found.turns[found.turns["kind"] == "analysis"]
    moments = [
        {"title": f"As of turn {each.turn}", "parts": list(_parts(each))}
        for each in analyses(list(zip(told["turn"].tolist(), told["message"], strict=True)))
    ]
    return {"beside": {"title": "The argument", "moments": moments}} if moments else {}


def _parts(found: Analysis) -> Iterator[dict[str, Any]]:
    """An analysis, part by part."""
    yield {"title": "Summary", "text": found.summary}
    listed = {"Agreed": found.agreements, "Open questions": found.questions, "Claims": found.claims}
    for title, items in listed.items():
        yield {"title": title, "points": [_item(each) for each in items]}
    weak = [point(f"{each.fallacy}: {each.explanation}", turns=[each.turn]) for each in found.fallacies]
    yield {"title": "Weak reasoning", "points": weak}


def _item(item: AnalysisItem) -> dict[str, Any]:
    """An item, and below a claim what speaks for and against it."""
    below = []
    if item.claim is not None:
        below += [f"because {premise}" for premise in item.claim.premises]
        for each in item.claim.counterarguments:
            below += [f"but {each.counterargument}", *([f"answer: {each.rebuttal}"] if each.rebuttal else [])]
    turns = () if item.claim is None else item.claim.turns
    return point(item.text, *map(point, below), note=item.id, change=item.change, turns=turns)
