"""Twins: an experiment in which agents play the people of a record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import read_document
from opinionsim.metrics import between_points
from opinionsim.specification import Experiment, load_experiment
from opinionsim.store import Results

#: Fields of a specification that say who plays the twins, in which words, and how they are measured.
_FIELDS = ("name", "description", "model", "cognition", "prompts", "measurement", "execution")


def twins_experiment(people: Results, spec: Mapping[str, Any] | str | Path) -> Experiment:
    """Build an experiment in which an agent plays each person of a record, together with the record.

    A twin has the attributes and the first opinion of its person, sees the statement in the same wording, and reads the
    same messages in the same order. It then says what it believes, and answers off the record with a point of the
    scale. Run it in the store of the record: ``osim.run(experiment, people.url)``.

    Parameters
    ----------
    people : Results
        From :func:`opinionsim.import_panel`, with the claims of every topic.
    spec : mapping, str or Path
        Who plays the twins: the fields `model`, `cognition`, `prompts`, `measurement` and `execution` of a
        specification, or a YAML file of them, and `name`, by default that of the record with ``-twins``.

    Returns
    -------
    Experiment
        Two cells for each cell of the record, ``interaction=people`` and ``interaction=twins``, with common blocks. A
        twin's opinions refer to the statement as worded and are not reversed.

    Raises
    ------
    SpecError
        If the results are not a record of people, a topic has no claim, or `spec` has another field.
    """
    given = dict(spec if isinstance(spec, Mapping) else read_document(spec).value)
    if unknown := sorted(given.keys() - set(_FIELDS)):
        raise SpecError(f"{unknown[0]!r} of twins comes from the record of people; valid: {', '.join(_FIELDS)}")
    base = dict(people.manifest.get("spec", {}))
    grids = list(base.get("sweep") or ())
    if not grids or any(grid.get("interaction", [{}])[0].get("kind") != "recorded" for grid in grids):
        raise SpecError(f"{people.name!r} is not a record of people, so it cannot have twins; import a table first")
    if between_points(people.opinions):
        raise SpecError("people rated between points, but twins state points; import the ratings with points")
    rated = grids[0]["interaction"][0]["rated"]
    listed = {"instruments": base.get("measurement", {}).get("instruments", [])}
    asked = {"after": 1} if len(rated) <= 2 else {"after": 1, "every": 1}
    measurement = {**listed, "self_report": asked, **given.get("measurement", {})}
    kept = {name: base[name] for name in ("seed", "replicates", "population", "scale") if name in base}
    return load_experiment(
        {
            "name": f"{people.name}-twins",
            **kept,
            **given,
            "measurement": measurement,
            "sweep": [*grids, *(_of_twins(grid) for grid in grids)],
        }
    )


def _of_twins(grid: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """The cell of the twins of a cell of people."""
    (record,), (topic,) = grid["interaction"], grid["topic"]
    against = record["conditions"].get("wording") == "against"
    claims, title = topic["definition"]["claims"], topic["definition"]["title"]
    side = "against" if against else "for"
    if claims.get(side, title) == title:
        raise SpecError(f"twins need the statement that people rated; in the mapping, give claims.{title}.{side}")
    source = ", ".join(f"{path}={_label(value)}" for path, (value,) in grid.items())
    interaction = {
        "label": "twins",
        "kind": "twins",
        "source": {"cell": source},
        "steps": record["steps"],
        "conditions": record["conditions"],
    }
    return {**grid, "topic": [{**topic, "framing": side}], "interaction": [interaction]}


def _label(value: Any) -> str:
    return str(value["label"] if isinstance(value, Mapping) else value)
