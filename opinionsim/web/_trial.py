"""A trial of changed settings: one session with stand-ins at its seats, in a separate store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from opinionsim.llm import Question
from opinionsim.running import run
from opinionsim.specification import Experiment, seat_numbers
from opinionsim.store import open_store
from opinionsim.web._rights import Visitor
from opinionsim.web._session_view import Sight, stamp


class _StandIn:
    """Answers every question at once, always in the same way."""

    evidence = "scripted"

    async def answer(self, question: Question) -> str:
        """A meaningless answer that fits the form."""
        form = question.form
        if form.kind == "ranking":
            return form.written([str(place) for place, _ in enumerate(form.items, 1)])
        if form.kind == "ratings":
            return form.written({item: str(form.points[len(form.points) // 2]) for item in form.items})
        if form.kind == "choice":
            return str(form.items[0])
        words = ["A", "stand-in", "speaks", "here", "in", "the", "place", "of", "a", "person."]
        return "" if form.optional else " ".join((words * (form.min_words or 1))[: form.words])


def tried(experiment: Experiment) -> dict[str, Any]:
    """Run the first session of an experiment, or show it again, in the form that a page shows.

    It is marked as a trial, so that no table counts it.

    Raises
    ------
    OpinionSimError
        If it cannot run.
    """
    planned, url = experiment.runs[0], f"sqlite:///results/{experiment.spec.name}-trial.sqlite"
    with open_store(url) as opened:
        for agent in seat_numbers(planned.spec):
            opened.change_seat(planned.run_id, agent, lambda seat: replace(seat, trial=True))
    run(experiment, url, people=_StandIn(), only=[each.run_id for each in (planned, *planned.sources)])
    with open_store(url, write=False) as reader:
        row = reader.registered([planned.run_id])[planned.run_id]
        sight = Sight(planned, reader.agents(planned.run_id), Visitor(owner=True))
        lines = sight.lines(reader.turns(planned.run_id))
    return {"lines": lines, "evidence": stamp(row.evidence), "status": row.status, "error": row.error, "store": url}
