"""Check an archive: its checksums, and its tables against its frames."""

from __future__ import annotations

import json
import math
import re
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from opinionsim.errors import MeasurementError, OpinionSimError, SpecError
from opinionsim.foundation.spreadsheets import write_csv
from opinionsim.report._archive import DESIGN, LAYOUT, SUM, SUMS, checksum, files_of, forms, lines_of, missing_contrasts
from opinionsim.report._frame_files import read_frames
from opinionsim.report._page_templates import WORDS
from opinionsim.report._study_tables import tables_of
from opinionsim.store import Results

#: Most bytes that a compressed archive may unfold to.
_MOST = 20 * 2**30
#: Bytes that any archive may unfold to, and how many times its own length a larger one may.
_ALWAYS, _MOST_TIMES = 2**30, 100
#: Parts of an archive that are made again, or that these are made from. Numbers in other files are not checked.
_MADE = ("frames/", "tables/", "specification.yaml", "manifest.json", "archive.json")


@dataclass(frozen=True)
class Verification:
    """Result of checking an archive.

    Attributes
    ----------
    problems : tuple of str
        One sentence for each file that was changed, is missing or does not belong there, and each table that differs
        from the frames. Empty for an unchanged archive.
    rebuilt : tuple of str
        Titles of the tables that were rebuilt from the frames and equal those of the archive.
    not_rebuilt : tuple of str
        One sentence for each table that could not be rebuilt, with the reason, and one on the files that no table
        uses: only their checksums show whether they were changed.
    identity : str
        Checksum of the list of checksums, which identifies the whole archive.
    """

    problems: tuple[str, ...]
    rebuilt: tuple[str, ...]
    not_rebuilt: tuple[str, ...]
    identity: str


def verify(path: str | Path) -> Verification:
    """Check every file of an archive, and rebuild its tables from its frames. Nothing in the archive is executed.

    Parameters
    ----------
    path : str or Path
        The folder of an archive (:func:`opinionsim.report.write_archive`), or a zip file with one.

    Returns
    -------
    Verification
        A table equals the archived one if its texts are equal and its numbers differ only by rounding.

    Raises
    ------
    SpecError
        If there is no archive, or it contains links, paths that lead outside, or two files of one name.
    """
    place = Path(path)
    if place.is_file() and zipfile.is_zipfile(place):
        with tempfile.TemporaryDirectory() as scratch:
            return _verified(_unpacked(place, Path(scratch)))
    if not place.is_dir():
        raise SpecError(f"{place} is not an archive folder or zip file; to make one, run `opinionsim export --archive`")
    return _verified(place)


def _unpacked(file: Path, scratch: Path) -> Path:
    """The archive in a zip file, unpacked after a look at every name in it."""
    try:
        with zipfile.ZipFile(file) as packed:
            entries = [entry for entry in packed.infolist() if not entry.is_dir()]
            _check_entries(file, entries)
            packed.extractall(scratch, entries)
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise SpecError(f"{file} cannot be unpacked: {error}") from None
    inside = list(scratch.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else scratch


def _check_entries(file: Path, entries: Iterable[zipfile.ZipInfo]) -> None:
    """Refuse files that unpack to somewhere else, to more than there is room for, or over one another."""
    size, names = 0, set[PurePosixPath]()
    for entry in entries:
        name, size = PurePosixPath(entry.filename.replace("\\", "/")), size + entry.file_size
        if stat.S_ISLNK(entry.external_attr >> 16) or _leads_outside(entry.filename):
            raise SpecError(f"{file}: {entry.filename!r} points outside the archive; do not unpack it")
        if name in names:
            raise SpecError(f"{file} has two files named {entry.filename!r}; which one is unpacked depends on the tool")
        names.add(name)
    most = min(_MOST, max(_ALWAYS, _MOST_TIMES * file.stat().st_size))
    if size > most:
        raise SpecError(
            f"{file} unfolds to more than {most / 2**30:.0f} GiB; unpack it yourself, and verify the folder"
        )
    if size > (free := shutil.disk_usage(tempfile.gettempdir()).free):
        raise SpecError(f"{file} unfolds to {size:,} bytes, but the temporary folder has room for only {free:,}")


def _leads_outside(name: str) -> bool:
    parts = PurePosixPath(name.replace("\\", "/"))
    return parts.is_absolute() or ".." in parts.parts or ":" in (parts.parts or ("",))[0]


def _verified(place: Path) -> Verification:
    for link in place.rglob("*"):
        if link.is_symlink() or not (link.is_file() or link.is_dir()):
            name = link.relative_to(place).as_posix()
            raise SpecError(f"{place}: {name!r} is not a plain file; an archive contains only plain files")
    if not (place / SUMS).is_file():
        raise SpecError(f"{place} has no {SUMS}: it is not an archive, or this file is missing")
    identity = checksum(place / SUMS)
    problems = list(_of_files(place, identity))
    try:
        found = list(_of_tables(place, _about(place)))
    except (OpinionSimError, LookupError, ValueError, TypeError, AttributeError, OSError, ArithmeticError,
            RecursionError) as error:  # fmt: skip
        # An archive that somebody has changed may hold anything, and thus end in any of these errors.
        found = [("problem", f"No table can be rebuilt: {error}")]
    others = [name for name in WORDS["parts"] if not name.startswith((*_MADE, SUMS)) and (place / name).exists()]
    found.append(
        (
            "not",
            f"{', '.join(others)}, and texts, calls and edges in frames: no table uses them, so only their "
            "checksums were compared. Someone could change both, but not the published checksum of the whole archive",
        )
    )
    told = {kind: tuple(text for each, text in found if each == kind) for kind in ("problem", "rebuilt", "not")}
    return Verification((*problems, *told["problem"]), told["rebuilt"], told["not"], identity)


def _of_files(place: Path, identity: str) -> Iterator[str]:
    """A sentence for each file that is not as it was written."""
    own = place / SUM
    if not own.is_file():
        yield f"{SUM} is missing"
    elif own.read_bytes() != f"{identity}  {SUMS}\n".encode():
        yield f"{SUMS} or {SUM} was changed: their checksums do not agree"
    listed: dict[str, str] = {}
    for found, name in lines_of(place / SUMS):
        if not found:
            yield f"{SUMS} was changed: {name[:80]!r} is not a checksum with a file name"
        elif _leads_outside(name):
            raise SpecError(f"{place / SUMS}: {name!r} points outside the archive")
        elif name in listed:
            yield f"{SUMS} was changed: it has two lines for {name}"
        else:
            listed[name] = found
    there = {*files_of(place)} - {SUMS, SUM}
    for name in sorted(listed.keys() | there):
        if name not in there:
            yield f"{_shown(name)} is missing"
        elif name not in listed:
            yield f"{_shown(name)} does not belong to the archive"
        elif checksum(place / name) != listed[name]:
            yield f"{_shown(name)} was changed"


def _shown(name: str) -> str:
    """A name of a file in one line: as it is, or spelled out where it holds what cannot be seen."""
    return name if name.isprintable() else repr(name)


def _about(place: Path) -> dict[str, Any]:
    """What an archive says of itself."""
    try:
        about = json.loads((place / "archive.json").read_text("utf-8"))
        layout = about["opinionsim_archive"]
    except (OSError, ValueError, KeyError, TypeError):
        raise SpecError("archive.json is missing or was changed") from None
    if layout != LAYOUT:
        raise SpecError(f"archive.json: layout {layout!r}; this version of opinionsim knows layout {LAYOUT}")
    return dict(about)


def results_of(place: Path, about: Mapping[str, Any]) -> Results:
    """Return the results in an archive from its frames, specification and manifest only.

    Raises
    ------
    SpecError
        If one of them cannot be read.
    """
    try:
        spec = yaml.safe_load((place / "specification.yaml").read_text("utf-8"))
        manifest = json.loads((place / "manifest.json").read_text("utf-8"))
        if spec != manifest.get("spec", spec):
            raise ValueError("the first two describe different experiments")
        if spec.get("robustness"):
            # Variants are other designs, whose runs are in no frame of this one.
            spec |= {"robustness": [], "analysis": {**(spec.get("analysis") or {}), "choices": None}}
        row = DESIGN.validate_python(about["design"] | {"spec": spec, "manifest": manifest})
        frames = read_frames(place / "frames", about["empty"])
        for frame in frames.values() if not row.runs else ():
            frame.attrs.update(about["same"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, yaml.YAMLError) as error:
        raise SpecError(f"specification.yaml, manifest.json or archive.json was changed: {error}") from None
    return Results.of_frames(row, frames, answered=about["answered"])


def _of_tables(place: Path, about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is found of each table: whether it is made again, cannot be, or is another (a problem), and a sentence."""
    results = results_of(place, about)
    for metrics in read_frames(place / "frames", about["empty"], ["metrics"]).values():
        if not _alike(*(str(write_csv(frame)) for frame in (metrics, results.metrics))):
            yield "problem", "frames/metrics differs from what the other frames give"
    try:
        made = tables_of(results)
    except (SpecError, MeasurementError):
        if not all("own" in told for told in about["tables"]):
            raise
        made = []
    # A table of the study's own may have the title of one that is made again.
    for told in sorted(about["tables"], key=lambda each: "own" in each):
        title, stem = told["title"], f"tables/{told['file']}"
        if _leads_outside(stem):
            raise SpecError(f"{place / 'archive.json'}: {stem!r} points outside the archive")
        table = next((each for each in made if each.title == title), None)
        if table is not None:
            made.remove(table)
        if "own" in told:
            own = ", ".join(told["own"])
            yield "not", f"{title} ({stem}): it uses the study's own parts, whose code is not run: {own}"
            continue
        if table is None:
            yield "not", f"{title} ({stem}): no frame of this archive has the data behind it"
            continue
        wrong = [
            f"{stem}.{suffix}" for suffix, text in forms(table).items() if not _same(place / f"{stem}.{suffix}", text)
        ]
        if wrong:
            yield "problem", f"{title}: {', '.join(wrong)} differs from what the frames give"
        else:
            yield "rebuilt", title
    archived = [place / f"tables/{told['file']}.csv" for told in about["tables"]]
    if gone := missing_contrasts(results.spec, made, [file for file in archived if file.is_file()]):
        yield "problem", f"analysis.contrasts: the study declares {', '.join(gone)}, which no table of the archive has"
    for table in made:
        yield "problem", f"{table.title}: the frames give this table, but the archive does not have it"


_NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")


def _same(file: Path, text: str) -> bool:
    """Whether a file holds a text, or one with numbers that differ by no more than the last digits of a float."""
    return _alike(file.read_bytes().decode("utf-8", "replace") if file.is_file() else "", text)


def _alike(archived: str, text: str) -> bool:
    """Whether two texts are equal but for the last digits of floats."""
    if archived == text:
        return True
    if _NUMBER.sub("#", archived) != _NUMBER.sub("#", text):
        return False
    pairs = zip(_NUMBER.findall(archived), _NUMBER.findall(text), strict=True)
    return all(
        one == other or math.isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1e-12) for one, other in pairs
    )
