"""Reads surveys from CSV, Parquet, Stata and SPSS files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionsim.errors import SpecError, SurveyError, in_short
from opinionsim.foundation.data import data_folder
from opinionsim.foundation.documents import is_one_line, normal
from opinionsim.foundation.tables import read_table, tell
from opinionsim.surveys._respondents import Survey
from opinionsim.surveys._survey_mapping import SurveyColumn, SurveyMapping, load_mapping, spelled

if TYPE_CHECKING:
    import pandas as pd

#: Packages that read a format in addition to pandas, by suffix of the file.
_NEEDS = {".csv": "", ".parquet": "pyarrow", ".dta": "", ".sav": "pyreadstat"}
#: Suffixes of the files that can be read.
TABLE_SUFFIXES = tuple(_NEEDS)
#: A float may not represent whole numbers from here on exactly.
_EXACT = 2**53
#: Maximum number of values outside a mapping to list, the most frequent first.
_MOST_TOLD = 10


def load_survey(file: str | Path, mapping: SurveyMapping | str | Path) -> Survey:
    """Load the respondents of a survey.

    Parameters
    ----------
    file : str or Path
        Path of a .csv, .parquet, .dta (Stata) or .sav (SPSS) file, or the name of a survey of the package. Categories
        of Stata and SPSS are read as their labels. :func:`opinionsim.foundation.tables.read_table` reads CSV files.
    mapping : SurveyMapping, str or Path
        The mapping, its name, or its path; see :func:`load_mapping`.

    Returns
    -------
    Survey
        The survey without respondents who have no weight, as in Plurals; `n_dropped` is the number of these.

    Raises
    ------
    SurveyError
        If the file cannot be read or needs a package that is not installed; if it lacks columns of the mapping or has
        one twice; if a weight is not a number, negative or infinite, or all weights are 0; if a value to subtract is
        not a number; or if no respondent remains.
    """
    chosen = mapping if isinstance(mapping, SurveyMapping) else load_mapping(mapping)
    path = _path(file)
    table = _read(path, chosen.data_columns, chosen.missing)
    return _survey(path, table, chosen)


def unmapped_survey(file: str | Path) -> Survey:
    """A survey with all columns of its file, without weights and sentences, from which you can write a mapping."""
    path = _path(file)
    table = _read(path)
    columns = tuple(SurveyColumn(column=str(name)) for name in table.columns)
    return _survey(path, table, SurveyMapping.model_construct(name=path.stem, columns=columns))


def _path(file: str | Path) -> Path:
    """Path of a file, or of a survey of the package that is named."""
    path = Path(file)
    if isinstance(file, Path) or path.suffix or path.name != file:
        return path
    folder = data_folder("personas") / "surveys"
    if not (folder / f"{file}.csv").is_file():
        known = ", ".join(sorted(each.stem for each in folder.glob("*.csv")))
        formats = ", ".join(TABLE_SUFFIXES)
        raise SurveyError(f"unknown survey {file!r}; valid: {known}, or the path of a file of these types: {formats}")
    return folder / f"{file}.csv"


def _read(path: Path, wanted: Sequence[str] | None = None, missing: Sequence[str] | None = None) -> pd.DataFrame:
    """The wanted columns of a file, or all."""
    suffix = path.suffix.lower()
    if suffix not in _NEEDS:
        raise SurveyError(f"{path}: a survey must be one of {', '.join(_NEEDS)}; got {path.suffix or 'no suffix'}")
    if not path.is_file():
        raise SurveyError(f"{path}: {'is a folder; a file is expected' if path.is_dir() else 'no such file'}")
    try:
        return _read_csv(path, wanted, missing) if suffix == ".csv" else _read_as(suffix, path, wanted)
    except SpecError as error:
        raise SurveyError(error.problem, error.places, error.advice) from None
    except ImportError:
        package = _NEEDS[suffix]
        raise SurveyError(
            f"{path}: {suffix} files need the package {package}; install with pip install 'opinionsim[surveys]'"
        ) from None
    except Exception as error:
        # Damaged files make the readers raise almost anything.
        raise SurveyError(f"{path}: cannot be read as {suffix}: {in_short(error)}") from None


def _read_csv(path: Path, wanted: Sequence[str] | None, missing: Sequence[str] | None) -> pd.DataFrame:
    import pandas as pd

    table = read_table(path, needed=wanted, missing=missing)
    if path.parent != data_folder("personas") / "surveys":
        table.tell(wanted)
    chosen = table.header if wanted is None else wanted
    return pd.DataFrame({name: pd.Series(table.values(name), dtype=object) for name in chosen})


def _read_as(suffix: str, path: Path, wanted: Sequence[str] | None) -> pd.DataFrame:
    import pandas as pd

    if suffix == ".dta":
        # Only the wanted columns, for one with labels that are not distinct cannot be read.
        with pd.read_stata(path, iterator=True) as reader:
            present = list(reader.variable_labels())
        return pd.read_stata(path, columns=_checked_columns(path, present, wanted))
    table = pd.read_parquet(path) if suffix == ".parquet" else pd.read_spss(path)
    return table[_checked_columns(path, list(map(str, table.columns)), wanted)]


def _checked_columns(path: Path, present: list[str], wanted: Sequence[str] | None) -> list[str]:
    """The wanted columns, each present once; by default all."""
    chosen = present if wanted is None else list(wanted)
    for name in chosen:
        if present.count(name) > 1:
            raise SurveyError(f"{path}: column {name!r} occurs {present.count(name)} times")
    missing = [name for name in chosen if name not in present]
    if missing:
        shown = ", ".join(present[:20] or ["no columns"]) + (", …" if len(present) > 20 else "")
        raise SurveyError(f"{path}: lacks {', '.join(map(repr, missing))}, which the mapping names; it has {shown}")
    return chosen


def _survey(path: Path, table: pd.DataFrame, mapping: SurveyMapping) -> Survey:
    """The respondents of a table."""
    weights = None
    kept = np.arange(len(table))
    if mapping.weight is not None:
        weights = _numbers(path, mapping.weight, _values(path, table[mapping.weight]), kept, "weights")
        kept = np.flatnonzero(~np.isnan(weights))
        weights = weights[kept]
        for row, weight in zip(kept, weights, strict=True):
            if not 0 <= weight < np.inf:
                raise SurveyError(
                    f"{path}: {mapping.weight!r} of row {row + 1} is {weight:g}; weights must be 0 or more, and finite"
                )
        if len(weights) and not weights.any():
            raise SurveyError(f"{path}: all weights in {mapping.weight!r} are 0, so nobody can be drawn")
    if not len(kept):
        raise SurveyError(f"{path}: contains no respondent{' with a weight' if mapping.weight else ''}")
    values = {}
    unused: list[str] = []
    for column in mapping.columns:
        found = _values(path, table[column.column])[kept]
        if column.subtract_from is not None:
            skipped = np.isin([spelled(value) for value in found.tolist()], list(map(spelled, column.skip)))
            asked = found.astype(object)
            asked[skipped] = None
            found = column.subtract_from - _numbers(path, column.column, asked, kept, "what is subtracted")
        if found.dtype != object and np.isinf(found).any():
            raise SurveyError(f"{path}: {column.column!r} of row {kept[np.isinf(found)][0] + 1} is infinite")
        values[column.variable] = found
        unused += _unused(column.column, found, [*column.recode, *column.answers], list(map(spelled, column.skip)))
    opinions: tuple[int | None, ...] = (None,) * len(kept)
    if mapping.opinion is not None:
        answers = _values(path, table[mapping.opinion.column])[kept]
        opinions = tuple(mapping.opinion.recode.get(spelled(answer)) for answer in answers.tolist())
        unused += _unused(f"{mapping.opinion.column}` as `opinion", answers, list(mapping.opinion.recode), [])
    if unused:
        tell(f"{path}: the mapping {mapping.name!r} does not fit all values: {'; '.join(unused)}")
    return Survey(mapping, kept + 1, values, weights, opinions, n_dropped=len(table) - len(kept))


def _unused(column: str, values: np.ndarray, named: list[str], skipped: list[str]) -> list[str]:
    """Values that a mapping names and a column never has, and values that it has and the mapping does not name."""
    counts = Counter(spelled(value) for value in values.tolist() if value is not None and value == value)
    never = [value for value in named if value not in counts]
    others = [f"{value!r} ({count})" for value, count in counts.most_common() if value not in {*named, *skipped}]
    found = [f"`{column}` is never {', '.join(map(repr, never))}"] if never else []
    return [*found, f"`{column}` is also {', '.join(others[:_MOST_TOLD])}"] if named and others else found


def _values(path: Path, series: pd.Series[Any]) -> np.ndarray:
    """Values of a column: floats with NaN, or texts and None; also floats where all are missing."""
    import pandas as pd

    dtype = series.dtype
    if pd.api.types.is_integer_dtype(dtype) and (series.abs() >= _EXACT).any():
        series = series.astype(object).map(str, na_action="ignore")
        dtype = series.dtype
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    cells: list[Any] = [None if missing else cell for cell, missing in zip(series, series.isna(), strict=True)]
    if all(
        cell is None or (isinstance(cell, (int, float, np.number)) and not isinstance(cell, (bool, np.bool_)))
        for cell in cells
    ):
        return np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
    if any(isinstance(cell, (list, dict, np.ndarray)) for cell in cells):
        raise SurveyError(f"{path}: {series.name!r} contains lists; remove the column or make a column for each entry")
    texts = {cell: " ".join(normal(spelled(cell)).split()) for cell in set(cells) if cell is not None}
    for text in texts.values():
        if not is_one_line(text):
            raise SurveyError(f"{path}: {series.name!r} contains control characters: {text!r}")
    found = np.array([texts.get(cell) or None for cell in cells] or [None], dtype=object)[: len(cells)]
    return found if any(cell is not None for cell in found) else np.full(len(cells), np.nan)


def _numbers(path: Path, column: str, values: np.ndarray, rows: np.ndarray, what: str) -> np.ndarray:
    """Numbers with NaN, from numbers or from texts that spell some; errors count rows from 1."""
    if values.dtype != object:
        return values
    found = np.full(len(values), np.nan)
    for i, value in enumerate(values):
        try:
            found[i] = np.nan if value is None else float(value)
        except ValueError:
            raise SurveyError(f"{path}: {column!r} of row {rows[i] + 1} is {value!r}; {what} must be numbers") from None
    return found
