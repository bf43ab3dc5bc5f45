"""A checklist of what a paper must report of a study with language models in the place of people, from the record."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from opinionsim.report._describing import data_files
from opinionsim.report._page_templates import sentences

if TYPE_CHECKING:
    from opinionsim.report._study import Study


def checklist(study: Study) -> tuple[tuple[str, str], ...]:
    """What to report and what the record says of it; empty for a study without language models.

    What is missing begins with ``MISSING``, and what only the authors know with ``AUTHOR``.
    """
    results = study.results
    if results.swept or not set(results.agents["evidence"]) & {"model", "scripted"}:
        return ()
    calls, turns = results.calls, results.turns
    agents = results.agents.drop_duplicates(["run_id", "agent"])
    people = agents[agents["evidence"] == "human"]
    measured = results.opinions.dropna(subset="value")[["run_id", "agent"]].drop_duplicates()
    days = sorted({datetime.fromtimestamp(at, UTC).date().isoformat() for at in calls["arrived_at"].dropna()})
    frozen = results.manifest.get("frozen") or {}
    lines = sentences(
        "checklist.txt",
        study=study,
        results=results,
        told=defaultdict(str, study.design),
        specified=sorted(set(agents.loc[agents["evidence"] != "human", "model"].dropna())),
        asked="model" in set(agents["evidence"]),
        weights=[f"{name} {told}" for name, told in frozen.get("fixed", {}).items() if name != "opinionsim"],
        dates=" to ".join(dict.fromkeys((days[0], days[-1]))) if days else "",
        wordings=list(results.runs["wording"].dropna().unique()),
        calls=calls,
        seeded=int(calls["seed"].notna().sum()),
        again=int((calls["attempt"] > 0).sum()),
        states=results.runs.drop_duplicates("run_id")["status"].value_counts().to_dict(),
        agents=len(agents),
        unmeasured=len(agents) - len(agents.merge(measured)),
        turns=len(turns),
        replies=turns["status"].value_counts().to_dict(),
        audits=[each.name for each in study.tables if each.name.startswith("audit-")],
        frozen=study.history.frozen,
        analysis=defaultdict(str, results.spec.get("analysis") or {}),
        anonymous=getattr(results, "_anonymous", False),
        people=len(people),
        published=int(people["publishes"].fillna(value=False).sum()),
        data=data_files(results),
    )
    return tuple((label, what) for label, _, what in (line.partition(" :: ") for line in lines))
