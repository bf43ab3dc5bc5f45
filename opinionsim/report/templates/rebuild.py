"""Makes the main table of this archive again from its frames, with pandas alone: python rebuild.py

It prints the mean of final opinions and their diversity by condition, and compares them with the table in the archive.
Nothing else of the archive is needed than frames, the table and archive.json, and no other package than pandas (and
pyarrow, where frames are Parquet files).
"""

import json
import re
import sys
from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).resolve().parent
#: Beginnings of cells that a spreadsheet would run: such texts have an apostrophe before them in CSV files.
RUN = re.compile("'('*(?:\\s*[=+\\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]).*)", re.DOTALL)


def read(path: Path) -> pd.DataFrame:
    """A frame or table, its texts as they were written, empty where they are missing."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""], float_precision="round_trip", low_memory=False)
    frame.columns = [RUN.sub(r"\1", name) for name in frame.columns]
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            frame[name] = [RUN.sub(r"\1", each) if isinstance(each, str) else each for each in frame[name]]
    return frame


def frame_of(name: str) -> pd.DataFrame:
    """A frame, with the names of columns that the package has."""
    path = next(
        path for path in (FOLDER / "frames" / f"{name}.csv", FOLDER / "frames" / f"{name}.parquet") if path.exists()
    )
    book = read(FOLDER / "frames" / "codebook.csv")
    names = book[book["frame"] == name].set_index("column")["name"].to_dict()
    return read(path).rename(columns=names)


def used(runs: pd.DataFrame) -> pd.DataFrame:
    """Complete runs with an instrument of stance; of each prompt pack those of the wording of the run begun last."""
    complete = runs[(runs["status"] == "complete") & runs["instrument_id"].notna()]
    wording = complete["wording"].fillna("").astype(str)
    pack = wording.str.split("@").str[0]
    last = wording[complete["begun_at"].sort_values(kind="stable", na_position="first").index].groupby(pack).last()
    return complete[wording == pack.map(last)]


def final(runs: pd.DataFrame, kind: str) -> pd.DataFrame:
    """The opinions that count: the last measured one of every participant, or all where none depends on another."""
    opinions, agents = frame_of("opinions"), frame_of("agents")
    own = runs[["run_id", "cell", "instrument_id", "every_report", "n_agents"]]
    found = opinions.merge(own, on=["run_id", "cell", "instrument_id"])
    found = found[(found["kind"] == kind) & found["about"].isna() & found["value"].notna()]
    # Participants are numbered first; moderators and others follow.
    found = found[found["agent"] < found["n_agents"]].sort_values("turn", kind="stable")
    every = found["every_report"].astype(str) == "True"
    last = ~found.duplicated(["run_id", "cell", "agent"], keep="last")
    return found[every | last]


def rebuilt(main: dict) -> pd.DataFrame:
    """The numbers of the main table: one row a condition."""
    runs, axes = used(frame_of("runs")), main["axes"]
    opinions = final(runs, main["kind"]).groupby(["run_id", "cell"])["value"]
    measured = pd.DataFrame({"bias": opinions.mean(), "diversity": opinions.std(ddof=main["ddof"])}).reset_index()
    joined = runs.merge(measured, on=["run_id", "cell"], how="inner")
    for axis in axes:
        joined[axis] = joined[axis].astype(object).where(joined[axis].notna(), "")
    # Every topic counts once, where there are several; else every block, whose runs share their random draws.
    unit = "topic" if "topic" not in axes and joined["topic"].nunique() > 1 else "block"
    keys = axes or ["experiment"]
    units = joined.groupby([*keys, unit], sort=False)[["bias", "diversity"]].mean()
    found = units.groupby(level=list(range(len(keys))), sort=False).mean()
    found["n_runs"] = joined.groupby(keys, sort=False).size().to_numpy()
    return found.reset_index()[[*axes, "bias", "diversity", "n_runs"]]


def main() -> int:
    """Print the table that was made again, and say whether it is that of the archive."""
    about = json.loads((FOLDER / "archive.json").read_text(encoding="utf-8"))["main"]
    if about is None:
        print("This archive has no table of opinions by condition that this script could make again.")
        return 0
    made, archived = rebuilt(about), read(FOLDER / about["table"])
    print(made.to_string(index=False))
    axes = about["axes"]
    key = lambda frame: [tuple(map(str, row)) for row in frame[axes].fillna("").itertuples(index=False)]  # noqa: E731
    there = dict(zip(key(archived), archived[["bias", "diversity", "n_runs"]].itertuples(index=False), strict=True))
    wrong = [
        (condition, name)
        for condition, row in zip(key(made), made.itertuples(index=False), strict=True)
        for name in ("bias", "diversity", "n_runs")
        if not same(getattr(row, name), getattr(there.get(condition), name, None))
    ]
    if wrong or set(there) != set(key(made)):
        print(f"NOT the table in the archive, {about['table']}:", *wrong, sep="\n  ")
        return 1
    print(f"The same numbers as in {about['table']}.")
    return 0


def same(one: float, other: "float | None") -> bool:
    """Whether two numbers are equal but for rounding."""
    return other is not None and (abs(one - other) <= 1e-9 or (pd.isna(one) and pd.isna(other)))


if __name__ == "__main__":
    sys.exit(main())
