"""What a result rests on, in words: its kind of evidence, and what is known of the instrument."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from opinionsim.errors import MeasurementError

__all__ = [
    "EVIDENCE",
    "KINDS",
    "NOT_VALIDATED",
    "evidence_statement",
    "instrument_validation",
    "played_by",
    "validation_statement",
]

#: Kinds of text that opinions are read from, in the order of preference where none is named.
KINDS = ("report", "response", "post", "probe", "self-report")
#: The kind that is a closed answer of the agent itself, which no classifier interprets.
_SELF_REPORT = "self-report"

#: What is said of opinions that a classifier read from a chat model's texts while no audit has compared the two.
NOT_VALIDATED = "instrument not validated on this model's text"

#: What each value of the `evidence` column says in a title.
EVIDENCE: Mapping[str, str] = {
    "scripted": "SCRIPTED STAND-IN, not evidence about people or models",
    "mixed": "Authors of several kinds in one run, a SCRIPTED STAND-IN may be among them",
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
        One statement; several kinds are joined by " + ", with the scripted stand-in first, then runs whose authors
        are of several kinds.

    Raises
    ------
    MeasurementError
        If a value is none of ``scripted``, ``mixed``, ``model``, ``equation``, ``human``, or there is none at all.
    """
    present = set(evidence)
    unknown = sorted(str(value) for value in present if value not in EVIDENCE)
    if unknown or not present:
        found = ", ".join(unknown) or "nothing"
        raise MeasurementError(f"evidence must be one of {', '.join(EVIDENCE)}; got {found}")
    return " + ".join(statement for name, statement in EVIDENCE.items() if name in present)


def played_by(models: Iterable[str], evidence: Iterable[str]) -> str:
    """Name the chat models that played the agents, and the equations that agents followed.

    Parameters
    ----------
    models, evidence : iterable of str
        Values of ``runs.model`` and ``runs.evidence``; repetitions are allowed.

    Returns
    -------
    str
        The names of chat models; nothing where none but the scripted stand-in played, which every title says. The
        stand-in is named where authors are of several kinds, since the title does not say that it is among them.
    """
    pairs = dict.fromkeys(zip(models, evidence, strict=True))
    players = list(dict.fromkeys(model for model, kind in pairs if kind != "equation"))
    equations = list(dict.fromkeys(model for model, kind in pairs if kind == "equation"))
    said = []
    if players and (players != ["scripted"] or ("scripted", "mixed") in pairs):
        said.append(f"agents played by {', '.join(players)}")
    if equations:
        said.append(f"equation{'s' if len(equations) > 1 else ''}: {', '.join(equations)}")
    return "; ".join(said)


def instrument_validation(evidence: str, kinds: Collection[str]) -> str:
    """What is known of an instrument on the texts of a run, where no audit against human labels is on record.

    Parameters
    ----------
    evidence : str
        The evidence of the run; where authors are of several kinds, ``mixed``, chat models may be among them.
    kinds : collection of str
        Kinds of text the instrument codes. A self-report needs no interpretation.

    Returns
    -------
    str
        :data:`NOT_VALIDATED` where a classifier reads what chat models wrote, or may have written; empty otherwise.
    """
    return NOT_VALIDATED if evidence in ("model", "mixed") and set(kinds) - {_SELF_REPORT} else ""


def validation_statement(validation: Iterable[object], kind: str | None = None) -> str:
    """State what is known of the instrument behind a result.

    Parameters
    ----------
    validation : iterable
        Values of column `validation` of the runs frame, one a run; an empty text or NaN says nothing.
    kind : str, optional
        Kind of text the result is read from: of self-reports nothing needs to be said. Default any other.

    Returns
    -------
    str
        Each different text, with the number of its runs where it does not stand for all; empty where there is none.
    """
    if kind == _SELF_REPORT:
        return ""
    said = [text if isinstance(text, str) else "" for text in validation]
    counts = Counter(text for text in said if text)
    return "; ".join(
        text if count == len(said) else f"{text} ({count} of {len(said)} runs)" for text, count in counts.items()
    )
