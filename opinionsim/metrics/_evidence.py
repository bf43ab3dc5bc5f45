"""What kind of evidence a result is, in words that stand in every title."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from opinionsim.errors import MeasurementError

__all__ = ["EVIDENCE", "evidence_statement"]

#: What each value of the `evidence` column says in a title.
EVIDENCE: Mapping[str, str] = {
    "scripted": "SCRIPTED STAND-IN, not evidence about people or models",
    "model": "Language-model agents",
    "equation": "Equation-based model",
    "human": "Human participants",
}


def evidence_statement(evidence: Iterable[str]) -> str:
    """State what kind of evidence a result rests on.

    Parameters
    ----------
    evidence : iterable of str
        Values of an `evidence` column; repetitions are allowed.

    Returns
    -------
    str
        One statement; several kinds are joined by " + ", with the scripted stand-in first.

    Raises
    ------
    MeasurementError
        If a value is none of ``scripted``, ``model``, ``equation``, ``human``, or there is none at all.
    """
    present = set(evidence)
    unknown = sorted(str(value) for value in present if value not in EVIDENCE)
    if unknown or not present:
        found = ", ".join(unknown) or "nothing"
        raise MeasurementError(f"evidence must be one of {', '.join(EVIDENCE)}; got {found}")
    return " + ".join(statement for name, statement in EVIDENCE.items() if name in present)
