"""Questions for discussion that runs have written, and a person's selection from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from opinionsim.consensus._question_turns import same_question
from opinionsim.errors import SpecError
from opinionsim.foundation.spreadsheets import read_csv, write_csv
from opinionsim.store import Results

#: Reasons to leave a question out (Bakker et al. 2022; D1), each with what it says of the question.
EXCLUSIONS: Mapping[str, str] = {
    "nonsensical": "it makes no sense",
    "jargon": "it needs words that few people know",
    "extremist": "it is extreme, or could discriminate against a protected group",
    "violence": "it is about violence",
    "elsewhere": "it is about other people than those who are asked",
    "scope": "it is too specific or too broad for people to disagree on it reasonably",
    "presupposition": "it takes something for granted that is false",
}
#: Columns of a curation file before and after those of the reasons.
_QUESTION, _PERSON = "question", "decided_by"
#: What a person may write in the column of a reason.
_MARKS = {"": False, "no": False, "0": False, "yes": True, "x": True, "1": True}


def generated_questions(results: Results) -> pd.DataFrame:
    """Collect the questions that runs with the interaction ``questions`` have written (D1).

    Parameters
    ----------
    results : Results
        Return value of :func:`opinionsim.load` or :func:`opinionsim.run`.

    Returns
    -------
    DataFrame
        ``question, run_id, turn, evidence``: one row per question, in the order of runs and turns. Questions that
        differ from an earlier one only in case and spaces are left out, as are replies that were not accepted, such as
        repeated examples.
    """
    calls = results.calls
    accepted = calls.loc[(calls["act"] == "question") & (calls["acceptance"] == "accepted"), ["run_id", "turn"]]
    turns = results.turns.merge(accepted.drop_duplicates(), on=["run_id", "turn"])
    found = turns.loc[turns["status"] == "answered", ["run_id", "turn", "message", "evidence"]]
    found.insert(0, _QUESTION, found.pop("message"))
    return found[~found[_QUESTION].map(same_question).duplicated()].reset_index(drop=True)


def write_curation(questions: Iterable[str], path: str | Path) -> None:
    """Write a CSV file in which a person decides which questions to leave out, and why.

    It has one row per question and the columns ``question``, those of :data:`EXCLUSIONS`, and ``decided_by``. For each
    question, the person writes ``yes`` (or ``x``, or 1) for every reason that applies, and their name in the last
    column.

    Raises
    ------
    SpecError
        If there is no question, a question is blank, or the file exists, because it may contain decisions.
    """
    listed = list(questions)
    if not listed or not all(isinstance(each, str) and each.strip() for each in listed):
        raise SpecError("questions: needs at least one, and no blank ones")
    if Path(path).exists():
        raise SpecError(f"{path}: exists and may contain decisions; give the path of a new file")
    table = pd.DataFrame({_QUESTION: listed, **dict.fromkeys([*EXCLUSIONS, _PERSON], "")})
    write_csv(table, path, encoding="utf-8")


def read_curation(path: str | Path) -> pd.DataFrame:
    """Read a person's decisions from a file of :func:`write_curation`.

    Returns
    -------
    DataFrame
        ``question``, a column of bool for each of :data:`EXCLUSIONS`, ``decided_by``, and ``kept``, whether no reason
        applies. One row per question, in the order of the file.

    Raises
    ------
    SpecError
        If the file cannot be read or has other columns, a question is blank or repeated, a reason is not yes, x, 1, no,
        0 or empty, or a row does not say who decided. The message names the row, counted from 1.
    """
    try:
        table = read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: cannot be read: {' '.join(str(error).split())[:200]}") from None
    valid = [_QUESTION, *EXCLUSIONS, _PERSON]
    if list(table.columns) != valid:
        raise SpecError(f"{path}: the columns must be {', '.join(valid)}; got {', '.join(table.columns)}")
    keys, marks = table[_QUESTION].map(same_question), table[list(EXCLUSIONS)].map(lambda mark: mark.strip().lower())
    wrong = {
        (_QUESTION, "must not be blank"): keys == "",
        (_QUESTION, "is there twice"): keys.duplicated(),
        (_PERSON, "lacks the name of the person who decided; give a name"): table[_PERSON].str.strip() == "",
        **{(reason, "must be yes, x, 1, no, 0 or empty"): ~marks[reason].isin(_MARKS) for reason in EXCLUSIONS},
    }
    for (column, problem), rows in wrong.items():
        if rows.any():
            row = int(rows.argmax())
            raise SpecError(f"{path}: row {row + 1}, {column}: {problem}; got {table[column].iloc[row]!r:.80}")
    table[list(EXCLUSIONS)] = marks.isin([mark for mark, holds in _MARKS.items() if holds])
    return table.assign(kept=~table[list(EXCLUSIONS)].any(axis=1))
