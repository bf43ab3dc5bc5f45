"""A checklist of what a paper must report about a study with language models as subjects, from the record."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from opinionsim.report._describing import data_files
from opinionsim.report._page_templates import sentences
from opinionsim.report._study_tables import only_in_reports

if TYPE_CHECKING:
    from opinionsim.report._study import Study


def checklist(study: Study) -> tuple[tuple[str, str], ...]:
    """Items to report, with what the record says about each; empty for a study without language models.

    Missing items begin with ``MISSING``, and items that only the authors know begin with ``AUTHOR``.
    """
    results = study.results
    if not results.run_ids or not set(results.agents["evidence"]) & {"model", "scripted"}:
        return ()
    calls = results.calls
    agents = results.agents.drop_duplicates(["run_id", "agent"])
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
        calls=calls,
        agents=agents,
        audits=[each.name for each in study.tables if only_in_reports(each)],
        analysis=defaultdict(str, results.spec.get("analysis") or {}),
        anonymous=getattr(results, "_anonymous", False),
        data=data_files(results),
    )
    return tuple((label, what) for label, _, what in (line.partition(" :: ") for line in lines))
