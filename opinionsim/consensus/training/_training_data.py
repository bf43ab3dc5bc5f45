"""Training data: tables of ratings, their splits, pairs of statements, and high-quality statements."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from opinionsim.consensus._question_turns import same_question
from opinionsim.consensus._splits import check_split
from opinionsim.errors import SpecError, in_short
from opinionsim.foundation.streams import stream

#: Ends of the scale of agreement and quality (Bakker et al. 2022, D3).
_LOWEST, _HIGHEST = 1, 7
#: The sides of a split that take part in a training.
_TRAIN, _VALIDATION = "train", "validation"


class TrainingPair(NamedTuple):
    """Two statements on a question, and the opinion of a person who agrees more with the first."""

    question: str
    opinion: str
    preferred: str
    other: str


class StatementExample(NamedTuple):
    """A statement drafted for a group, the opinions of its citizens, and their rating of its quality.

    The quality, 1 to 7, is averaged over passes and then over the raters who count.
    """

    question: str
    opinions: tuple[str, ...]
    statement: str
    quality: float


def read_ratings(source: pd.DataFrame | str | Path, rated: Literal["agreement", "quality"]) -> pd.DataFrame:
    """Read ratings of statements for training, one row per rating.

    Parameters
    ----------
    source : DataFrame, str or Path
        A table, or a .csv or .parquet file. Columns: `question`, `opinion` (what the rater wrote), `statement`,
        `citizen` (the rater), and the column named by `rated`, from 1 to 7; for quality also `group`. Optional ones:
        `group`, `round`, `pass` (repeated ratings are averaged), `candidate` (rows with ``position`` rate the position
        statement and are left out), `reliable` (if false, the rating is left out, but the opinion still belongs to its
        group), `topic`, `split` (``train``, ``validation``, or another word for rows in neither), and `evidence`, which
        the card repeats.
    rated : {"agreement", "quality"}
        The column of ratings.

    Returns
    -------
    DataFrame
        The rows with an opinion. A rating is NaN if missing, without statement, or if it does not count.

    Raises
    ------
    SpecError
        If the source cannot be read or lacks columns, a question, citizen or group is missing, a text is not a string,
        or a rating is not a number or off the scale.
    """
    if not isinstance(source, pd.DataFrame | str | Path):
        raise SpecError(f"data: must be a table of ratings or its path; got {source!r:.60}")
    name = "data" if isinstance(source, pd.DataFrame) else str(source)
    table = source if isinstance(source, pd.DataFrame) else _file(Path(source))
    needed = ["question", "opinion", "statement", "citizen", rated, *(["group"] if rated == "quality" else [])]
    if table.empty or not table.columns.is_unique:
        raise SpecError(f"{name}: {'has no rows' if table.empty else 'has a column twice'}")
    if missing := [column for column in needed if column not in table.columns]:
        present = ", ".join(map(str, table.columns)) or "none"
        raise SpecError(f"{name}: lacks the columns {', '.join(missing)}; it has: {present}")
    chosen = table.reset_index(drop=True)
    _check_ratings(chosen, rated, name)
    if "candidate" in chosen:
        chosen = chosen[chosen["candidate"] != "position"]
    chosen = chosen[_said(chosen["opinion"])].copy()
    counts = _said(chosen["statement"])
    if "reliable" in chosen:
        counts &= chosen["reliable"].astype(bool)
    chosen[rated] = chosen[rated].astype(float).where(counts)
    return chosen


def _said(texts: pd.Series) -> pd.Series:
    return texts.fillna("").str.strip() != ""


def _file(path: Path) -> pd.DataFrame:
    try:
        if path.suffix.lower() == ".csv":
            return pd.read_csv(path, encoding="utf-8-sig", keep_default_na=False, na_values=["", "NA", "NaN"])
        if path.suffix.lower() == ".parquet":
            return pd.read_parquet(path)
    except Exception as error:  # damaged files, or a package of the extra parquet that is missing
        raise SpecError(f"{path}: cannot be read: {in_short(error)}") from None
    raise SpecError(f"{path}: ratings are read from a .csv or .parquet file; got {path.suffix or 'no suffix'}")


def _check_ratings(table: pd.DataFrame, rated: str, name: str) -> None:
    """Refuse values that no rating can have, naming the first row, counted from 1."""

    def refuse(wrong: Any, column: str, valid: str) -> None:
        if rows := np.flatnonzero(wrong).tolist():
            value = table[column].iloc[rows[0]]
            raise SpecError(
                f"{name}: row {rows[0] + 1}, {column}: {value!r:.60} must be {valid} ({len(rows)} such rows)"
            )

    for column in ("question", "opinion", "statement"):
        wrong = ~table[column].map(lambda text: isinstance(text, str))
        refuse(wrong if column == "question" else wrong & table[column].notna(), column, "a text")
    refuse(table["question"].str.strip() == "", "question", "a text that is not blank")
    for column in table.columns.intersection(["citizen", "group", "topic"]):
        refuse(table[column].isna(), column, "given")
    if "reliable" in table:
        refuse(~table["reliable"].isin([True, False]), "reliable", "true or false")
    if table[rated].dtype.kind not in "if":
        refuse([not isinstance(value, int | float) for value in table[rated]], rated, "a number")
    ratings = table[rated].astype(float)
    refuse(ratings.notna() & ~ratings.between(_LOWEST, _HIGHEST), rated, f"from {_LOWEST} to {_HIGHEST}, or missing")


def split_ratings(
    table: pd.DataFrame, by: Literal["question", "topic"], validation: float, seed: int
) -> list[pd.DataFrame]:
    """Split ratings into those to train on and those to validate on.

    Parameters
    ----------
    table : DataFrame
        Ratings. A column `split` gives the sides. If no row is ``validation``, that side is drawn from ``train``, or
        from all rows if there is no such column.
    by : {"question", "topic"}
        The unit to keep whole: all rows of a question, or of a topic with all its questions.
    validation : float
        Share of questions or topics for validation, in (0, 1); each side gets at least one.
    seed : int
        Seed of the draw.

    Returns
    -------
    list of DataFrame
        Two tables; rows whose `split` is neither ``train`` nor ``validation`` are in neither.

    Raises
    ------
    SpecError
        If a question or topic is on two sides; if there is only one, or a side is empty; or if there is no column
        `topic` to split by. Other sides, such as test data, are compared by question. Questions that differ only in
        case or white space count as one.
    """
    if by not in table:
        raise SpecError(f"split_by: {by!r} needs a column {by}, which the data lack; valid: question")
    units = table[by].map(same_question) if by == "question" else table[by]
    sides = table["split"].astype(str) if "split" in table else units.map(lambda _: _TRAIN)
    if not (sides == _VALIDATION).any():
        names = sorted(units[sides == _TRAIN].unique())
        n = min(max(1, round(validation * len(names))), len(names) - 1)
        drawn = stream(seed, "split of ratings", 0, by).permutation(len(names))[:n]
        sides = sides.mask((sides == _TRAIN) & units.isin([names[place] for place in drawn]), _VALIDATION)
    check_split(table[["question"]].assign(split=sides))
    if by == "topic":
        # A test of new questions has topics that are trained on.
        check_split(table.assign(split=sides)[sides.isin([_TRAIN, _VALIDATION])], whole=(_VALIDATION,))
    for side in (_TRAIN, _VALIDATION):
        if not (sides == side).any():
            raise SpecError(
                f"split: no row is in {side!r}, only in {', '.join(sorted(sides.unique()))}; a split needs two or more "
                f"{by}s, with at least one on each side"
            )
    return [table[sides == side] for side in (_TRAIN, _VALIDATION)]


def preference_pairs(table: pd.DataFrame, min_difference: float = 1.0) -> list[TrainingPair]:
    """All pairs of statements that one person rated clearly differently on one question.

    Parameters
    ----------
    table : DataFrame
        Ratings of agreement from :func:`read_ratings`.
    min_difference : float
        Minimum difference: ratings, averaged over passes, differ by more than this (Bakker et al. 2022, D5: 1).

    Returns
    -------
    list of Pair
        In the order of the table.
    """
    keys = [key for key in ("group", "round", "question", "citizen", "opinion") if key in table]
    means: Any = table.dropna(subset=["agreement"]).groupby([*keys, "statement"], sort=False, dropna=False)
    return [
        TrainingPair(one.question, one.opinion, one.statement, two.statement)
        for _, rated in means["agreement"].mean().reset_index().groupby(keys, sort=False, dropna=False)
        for one, two in itertools.permutations(rated.itertuples(), 2)
        if one.agreement - two.agreement > min_difference
    ]


def statement_examples(table: pd.DataFrame) -> list[StatementExample]:
    """Statements of each group, with the opinions that they were drafted from.

    Parameters
    ----------
    table : DataFrame
        Ratings of quality from :func:`read_ratings`. If it has rounds, only the first of each group and question
        counts, because later statements also depend on critiques. If it has the columns `left_out` and `policy`, as in
        :func:`opinionsim.consensus.ratings`, drafts without one of the opinions and texts that nobody drafted do not
        count.

    Returns
    -------
    list of StatementExample
        In the order of the table, without statements that have no rating that counts.

    Raises
    ------
    SpecError
        If a citizen has two opinions on a question in one group.
    """
    examples = []
    for (group, question), rows in table.groupby(["group", "question"], sort=False):
        if "round" in rows:
            rows = rows[rows["round"] == rows["round"].min()]
        opinions = rows[["citizen", "opinion"]].drop_duplicates()
        if "left_out" in rows:
            rows = rows[rows["left_out"].isna()]
        if "policy" in rows:
            rows = rows[~rows["policy"].isin(["own opinion", "control"])]
        for who in opinions["citizen"][opinions["citizen"].duplicated()]:
            raise SpecError(f"opinion: citizen {who} of group {group} has two opinions on {str(question)[:80]!r}")
        texts = tuple(opinions["opinion"])
        of_raters = rows.groupby(["statement", "citizen"], sort=False)["quality"].mean()
        quality = of_raters.groupby("statement", sort=False).mean().dropna()
        examples += [StatementExample(str(question), texts, str(each), float(value)) for each, value in quality.items()]
    return examples
