"""Published data of the Habermas Machine: ratings by people, and questions as topics."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from opinionsim.errors import SpecError, in_short, packages
from opinionsim.topics import Topic, parse_topics

#: Names of the points of a scale, from 1 to 7; those of bots are MOCK.
_SCALES = {
    "agreement": "STRONGLY_DISAGREE DISAGREE SOMEWHAT_DISAGREE NEUTRAL SOMEWHAT_AGREE AGREE STRONGLY_AGREE",
    "quality": "TERRIBLE_QUALITY POOR_QUALITY SOMEWHAT_POOR_QUALITY NEUTRAL SOMEWHAT_GOOD_QUALITY GOOD_QUALITY "
    "EXCELLENT_QUALITY",
}


def _columns(listed: str) -> dict[str, str]:
    """Names of columns, each with the one it gets here: ``published=here``, or the same."""
    return {name: here or name for name, _, here in (each.partition("=") for each in listed.split())}


#: Columns of both tables of ratings.
_SHARED = _columns(
    "metadata.version=version launch_id=launch question.id=id metadata.participant_id=citizen worker_id=worker "
    "question.text=question question.topic=topic question.split=split"
)
#: Columns with one entry a candidate, and those of the models that wrote and chose it, which need not be there.
_LISTS = _columns(
    "candidates.metadata.id=candidate candidates.text=statement candidates.metadata.provenance=policy "
    "ratings.agreement=agreement ratings.quality=quality rankings.candidate_ids=ranked rankings.numerical_ranks=rank"
)
_MODELS = {f"candidates.metadata.{role}_model.api_version": role for role in ("generative", "reward")}
_COMPARISONS, _POSITIONS = "hm_all_candidate_comparisons.parquet", "hm_all_position_statement_ratings.parquet"
_PREFERENCES, _SURVEY = "hm_all_final_preference_rankings.parquet", "hm_all_round_survey_responses.parquet"
_QUESTIONS = "230118_chinchilla_questions.json"
#: The columns that each file must have.
_COLUMNS: Mapping[str, Mapping[str, str]] = {
    _COMPARISONS: _SHARED
    | _LISTS
    | _columns("iteration_index=round own_opinion.text=opinion own_opinion.metadata.provenance=author"),
    _POSITIONS: _SHARED
    | _columns("rating_index=round ratings.agreement=agreement question.affirming_statement=statement")
    | _columns("metadata.provenance=author"),
    _PREFERENCES: _columns("worker_id"),
    _SURVEY: _columns("metadata.participant_id question.id opinion.text candidate.text"),
    _QUESTIONS: _columns("id question affirming_statement negating_statement topic split"),
}
#: Columns of the ratings, in their order.
_RATINGS = [
    "group", "round", "citizen", "candidate", "policy", "pass", "agreement", "quality", "rank", "question", "opinion",
    "statement", "topic", "split", "launch", "worker", "evidence",
]  # fmt: skip
_SOURCE = "Tessler et al. 2024, doi:10.1126/science.adq2852; github.com/google-deepmind/habermas_machine"


@dataclass(frozen=True, eq=False)
class HabermasData:
    """What :func:`import_habermas` returns."""

    ratings: pd.DataFrame
    """One row per rating of a statement by a person."""
    questions: pd.DataFrame
    """``id, question, affirming_statement, negating_statement, topic, split``: one row per question."""
    topics: Mapping[str, Topic]
    """A topic for each question with two different statements, by its id in lower case; the sides are ``affirming`` and
    ``negating``."""
    preferences: pd.DataFrame
    """The final rankings, in the columns of their file and ``evidence``."""
    survey: pd.DataFrame
    """Answers after each round, in the columns of their file and ``evidence``."""


def import_habermas(folder: str | Path) -> HabermasData:
    """Read ratings and questions of the Habermas Machine from its published files (D8).

    Parameters
    ----------
    folder : str or Path
        Folder with the four Parquet files and the file of questions, under their original names.

    Returns
    -------
    HabermasData
        Its `ratings` have the columns ``group`` (version of the study, id of its launch and of the question), ``round``
        (0 before critiques), ``citizen``, ``candidate``, ``policy`` (who wrote the statement, with the names of the
        models), ``pass`` (1, with further numbers if a citizen rated a candidate of a round again), ``agreement`` and
        ``quality`` (1 to 7, NaN where missing), ``rank`` (1 is best; ties share the lowest rank), ``question``,
        ``opinion``, ``statement``, ``topic``, ``split``, ``launch`` (the people who took part together in several
        questions), ``worker`` (the person across all launches) and ``evidence``, which is ``human``. Candidate and
        policy of the position statement are ``position``; its round is 0 before the discussion, 1 after it. Opinions
        and ratings of bots are left out, as are rows without any rating.

    Raises
    ------
    SpecError
        If files or columns are missing (the message names all of them), a file cannot be read, a value does not occur
        in the published data, or the extra ``parquet`` is not installed.
    """
    tables = _read(Path(folder))
    candidates, positions = _of_candidates(tables[_COMPARISONS]), _of_people(tables[_POSITIONS]).explode("agreement")
    opinions = candidates[["group", "citizen", "opinion"]].drop_duplicates(["group", "citizen"])
    positions = positions.assign(candidate="position", policy="position").merge(opinions, how="left")
    ratings = pd.concat([candidates, positions.reindex(columns=candidates.columns)], ignore_index=True)
    for what, listed in _SCALES.items():
        names, points = ratings[what], listed.split()
        if len(unknown := names[names.notna() & ~names.isin([*points, "MOCK"])]):
            raise SpecError(f"{what}: {unknown.iloc[0]!r:.80} is none of {', '.join(points)}, MOCK")
        ratings[what] = names.map({name: point for point, name in enumerate(points, 1)}).astype(float)
    ratings = ratings.dropna(subset=[*_SCALES, "rank"], how="all", ignore_index=True)
    again = ratings.groupby(["group", "round", "citizen", "candidate"], sort=False).cumcount()
    ratings = ratings.assign(evidence="human", split=ratings["split"].str.lower(), **{"pass": again + 1})
    questions = tables[_QUESTIONS]
    if (empty := questions.isna().any(axis=1)).any():
        raise SpecError(f"{_QUESTIONS}: question {int(empty.argmax())}, counted from 0, lacks a value")
    sides = [
        {
            "name": re.sub("[^a-z0-9]+", "-", str(each.id).lower()).strip("-"),
            "title": each.question,
            "category": f"Topic {each.topic}",
            "claims": {"affirming": each.affirming_statement, "negating": each.negating_statement},
            "question": each.question,
        }
        # One published question has the word "typo" for both.
        for each in questions.itertuples()
        if str(each.affirming_statement).strip() != str(each.negating_statement).strip()
    ]
    topics = parse_topics({"topics": sides, "source": _SOURCE, "licence": "CC BY 4.0"}, _QUESTIONS)
    others = (tables[name].assign(evidence="human") for name in (_PREFERENCES, _SURVEY))
    return HabermasData(ratings[_RATINGS], questions, topics, *others)


def _read(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables under the names of columns here, after all that is missing has been named."""
    _, parquet = packages("import_habermas", "parquet", "pyarrow", "pyarrow.parquet", kind=SpecError)
    tables, problems = {}, []
    for name, columns in _COLUMNS.items():
        path, few = folder / name, [*columns, *_MODELS] if name in (_COMPARISONS, _POSITIONS) else None
        if not path.is_file():
            problems.append(f"{name} is missing")
            continue
        try:
            if path.suffix == ".json":
                tables[name] = pd.DataFrame(json.loads(path.read_text(encoding="utf-8")))
            else:
                # Columns that are not there are not read, and named below.
                tables[name] = parquet.ParquetFile(path).read(few).to_pandas()
        except Exception as error:  # damaged files make the readers raise almost anything
            raise SpecError(f"{path}: cannot be read: {in_short(error)}") from error
        if lacking := [column for column in columns if column not in tables[name]]:
            problems.append(f"{name} lacks {', '.join(lacking)}")
    if problems:
        raise SpecError(f"{folder}: these files differ from the published ones: {'; '.join(problems)}")
    return {name: table.rename(columns={**_COLUMNS[name], **_MODELS}) for name, table in tables.items()}


def _of_people(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of people, not of bots, with the group that they belong to."""
    people = table[table["author"] == "HUMAN_CITIZEN"].reset_index(drop=True)
    return people.assign(group=[f"{row.version}/{row.launch}/{row.id}" for row in people.itertuples()])


def _of_candidates(table: pd.DataFrame) -> pd.DataFrame:
    """One row for each candidate that a person has seen."""
    people, models = _of_people(table), [each for each in _MODELS.values() if each in table]
    try:
        seen = people.rename_axis("row").reset_index().explode([*_LISTS.values(), *models], ignore_index=True)
    except ValueError:
        raise SpecError(f"{_COMPARISONS}: a row has lists of different lengths in {', '.join(_LISTS)}") from None
    place = seen["rank"].astype(float)
    ranks = seen[["row", "ranked"]].rename(columns={"ranked": "candidate"})
    ranks["rank"] = place.where(place >= 0).groupby(seen["row"]).rank(method="min")
    seen["policy"] = seen["policy"].str.lower()
    for model in models:
        seen["policy"] += ("/" + seen[model].astype(object)).where(seen[model].notna(), "")
    return seen.drop(columns="rank").merge(ranks.drop_duplicates(["row", "candidate"]), how="left")
