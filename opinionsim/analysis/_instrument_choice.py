"""The instrument whose readings are the opinions of an analysis."""

from __future__ import annotations

from dataclasses import replace

from opinionsim.errors import SpecError
from opinionsim.metrics import STANCE
from opinionsim.store import Results, open_store


def read_by(results: Results, name: str) -> Results:
    """Return results that use the readings of one instrument of stance as opinions, in every cell that it has read.

    Parameters
    ----------
    results : Results
        Results, whose cells name the instrument used by default.
    name : str
        Classifier of the instrument, or the beginning of its id.

    Raises
    ------
    SpecError
        If no cell has such an instrument, or a cell has several.
    """
    design = results.design_row
    with open_store(results.url, write=False) as opened:
        known = {each.instrument_id: each.classifier for each in opened.instruments() if each.variable == STANCE}
    told = {key: known[key] for run in design.runs for key in run.instruments if key in known}
    named = [key for key, classifier in told.items() if name and (classifier == name or key.startswith(name))]
    own = [[key for key in named if key in run.instruments] for run in design.runs]
    if max(map(len, own), default=0) != 1:
        problem = "stands for several instruments of one cell" if named else "is no instrument of stance here"
        valid = ", ".join(sorted(f"{classifier} (id {key[:6]})" for key, classifier in told.items())) or "none"
        raise SpecError(f"{name!r} {problem}; valid: {valid}, each by its name or its id")
    runs = tuple(replace(run, instrument_id=next(iter(keys), None)) for run, keys in zip(design.runs, own, strict=True))
    found = replace(design, runs=runs)
    return Results(results.url, found, results.designs, results.under_way, own_parts=results.own_parts)
