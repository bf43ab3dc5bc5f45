"""Statements about results: the kind of evidence, and the validation of the instrument."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from opinionsim.errors import MeasurementError, SpecError

if TYPE_CHECKING:
    import pandas as pd

#: Level of a condition that a cell does not have, such as a swept axis of another grid.
NOT_SET = "not set"


def kinds_in_order(kinds: Iterable[str], texts: Iterable[str]) -> list[str]:
    """Return the distinct kinds of text; the first is the one shown by default.

    Parameters
    ----------
    kinds : iterable of str
        Kinds of text; repetitions are allowed.
    texts : iterable of str
        Values of the column `texts` of runs: the kinds of each run, in order, separated by commas.
    """
    places: dict[str, int] = {}
    for order in dict.fromkeys(texts):
        for place, kind in enumerate(order.split(",")):
            places[kind] = min(place, places.get(kind, place))
    return sorted({*kinds}, key=lambda kind: (places.get(kind, len(places)), kind))


def chosen_kind(kind: str | None, kinds: Iterable[str], runs: pd.DataFrame, none: str = "") -> str:
    """Return the named kind of text, or the first kind whose stance was measured; empty if there is none.

    Raises
    ------
    SpecError
        If there is none and `none` gives the message for this case, or if the named kind is not among them.
    """
    present = kinds_in_order(kinds, runs.get("texts", ()))
    if none and not present:
        raise SpecError(f"{none}: {TO_MEASURE}")
    if none and kind not in (None, *present):
        raise SpecError(f"no stance was measured on texts of kind {kind!r}; give one of {', '.join(present)}")
    return kind or next(iter(present), "")


#: An agent's own answer to a closed question, which no classifier interprets.
SELF_REPORT = "self-report"
#: Name of the classifier whose values are expectations over the probabilities of an agent's answers.
BELIEF = "belief"

#: Statement on opinions that a classifier read from a chat model's texts without an audit against human labels.
NOT_VALIDATED = "instrument not validated on this model's text"

#: What to do where no opinion was measured.
TO_MEASURE = (
    "set topic and measurement.classifier in the specification and run it again, or read what was said with "
    "`opinionsim show`"
)

#: Statement in a title for each value of the `evidence` column.
EVIDENCE: Mapping[str, str] = {
    "scripted": "SCRIPTED STAND-IN, not evidence about people or models",
    "mixed": "Authors of several kinds in one run, a SCRIPTED STAND-IN may be among them",
    "human+model": "People and language models in one run",
    "equation+model": "Language models and equations in one run",
    "model": "Language-model agents",
    "equation": "Equation-based model",
    "human": "Human participants",
}
#: Kinds of evidence that allow no finding: a scripted stand-in is, or may be, among the authors.
WITHOUT_FINDING = ("scripted", "mixed")
#: Kinds of evidence with language models among the authors, or maybe so.
BY_MODELS = frozenset({"model", "mixed", "human+model", "equation+model"})


def evidence_of(evidence: Iterable[str]) -> str:
    """Return the kind of evidence of a result from several runs or agents, joined as in ``human+model``.

    The kind is ``mixed`` if one of several kinds is, or may be, scripted.
    """
    joined = "+".join(sorted({kind for each in evidence for kind in each.split("+")}))
    return joined if joined in EVIDENCE else "mixed"


def evidence_statement(evidence: Iterable[str]) -> str:
    """State the kind of evidence behind a result.

    Parameters
    ----------
    evidence : iterable of str
        Values of an `evidence` column; repetitions are allowed.

    Returns
    -------
    str
        The statements of all kinds present, joined by " + " in the order of :data:`EVIDENCE`.

    Raises
    ------
    MeasurementError
        If a value is not in :data:`EVIDENCE`, or there is no value.
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
        The names of the chat models and equations. The scripted model is named only in runs with several kinds of
        authors, whose title does not say which kinds; the titles of purely scripted runs already name it.
    """
    pairs = dict.fromkeys(zip(models, evidence, strict=True))
    players = list(dict.fromkeys(model for model, kind in pairs if model and kind != "equation"))
    equations = list(dict.fromkeys(model for model, kind in pairs if kind == "equation"))
    said = []
    if players and (players != ["scripted"] or ("scripted", "mixed") in pairs):
        said.append(f"agents played by {', '.join(players)}")
    if equations:
        said.append(f"equation{'s' if len(equations) > 1 else ''}: {', '.join(equations)}")
    return "; ".join(said)


def instrument_validation(evidence: str, kinds: Collection[str], audited: str = "") -> str:
    """State the validation of an instrument on the texts of a run.

    Parameters
    ----------
    evidence : str
        The evidence of the run.
    kinds : collection of str
        Kinds of text the instrument codes. A self-report needs no interpretation.
    audited : str
        Findings of recorded audits for the instrument and the model of the run; empty without audits.

    Returns
    -------
    str
        The findings of audits. Without audits, :data:`NOT_VALIDATED` if a classifier reads texts that chat models wrote
        or may have written; otherwise empty.
    """
    if not set(kinds) - {SELF_REPORT}:
        return ""
    return audited or (NOT_VALIDATED if evidence in BY_MODELS else "")


def validation_statement(validation: Iterable[object], kind: str | None = None) -> str:
    """State the validation of the instruments behind a result.

    Parameters
    ----------
    validation : iterable
        Column `validation` of the runs frame, one value per run; empty texts and NaN are ignored.
    kind : str, optional
        Kind of text that the result is based on; for self-reports, the statement is empty. Default any other kind.

    Returns
    -------
    str
        Each distinct text, with its number of runs unless it applies to all; empty if there is no text.
    """
    if kind == SELF_REPORT:
        return ""
    said = [text if isinstance(text, str) else "" for text in validation]
    counts = Counter(text for text in said if text)
    return "; ".join(
        text if count == len(said) else f"{text} ({count} of {len(said)} runs)" for text, count in counts.items()
    )


def named_models(returned: Mapping[str, Iterable[tuple[str, str]]]) -> dict[str, list[str]]:
    """Return the models that answered, with their fingerprints in brackets, by the name of the requested model.

    Parameters
    ----------
    returned : mapping of str to iterable of (str, str)
        Models and fingerprints that replies returned, from a store.
    """
    return {
        name: [f"{model} ({fingerprint})" if fingerprint else model for model, fingerprint in sorted(found)]
        for name, found in sorted(returned.items())
    }


def answered_otherwise(models: Mapping[str, Collection[str]]) -> list[str]:
    """Return a sentence about each requested model that answered under another name or under several names.

    Parameters
    ----------
    models : mapping of str to collection of str
        As :func:`named_models` returns them. For a model that an instrument asks, only the instrument is known, not
        ``provider:model``.
    """
    told = []
    for name, found in models.items():
        asked = name.partition(" (")[0]
        own = ("", asked.partition(":")[2])
        others = [each for each in found if each.partition(" (")[0] not in own and not each.startswith(asked)]
        if len(found) > 1 or (others and ":" in asked):
            told.append(f"Replies of {name} came from {', '.join(found)}.")
    return told
