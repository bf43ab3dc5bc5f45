"""Write the folder of an archive: the files of one study with their checksums."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import TypeAdapter

from opinionsim.analysis import latex_text
from opinionsim.errors import SpecError
from opinionsim.foundation.outputs import require_free
from opinionsim.foundation.spreadsheets import write_csv
from opinionsim.report._describing import bibtex, crate, odd
from opinionsim.report._frame_files import FileKind, new_folder, write_frames, write_json
from opinionsim.report._page_templates import WORDS, filled
from opinionsim.report._released import released
from opinionsim.report._study_tables import resting_on_own
from opinionsim.store import DesignRow, Results

if TYPE_CHECKING:
    from opinionsim.analysis import Table
    from opinionsim.report._study import Study

#: The list of checksums, and the file with its own.
SUMS, SUM = "SHA256SUMS", "SHA256SUMS.sha256"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
#: Version of the layout of archives.
LAYOUT = 1
#: The design of an archive as JSON values.
DESIGN = TypeAdapter(DesignRow)


def write_archive(results: Results, path: str | Path, *, anonymous: bool = False, kind: FileKind = "csv") -> list[Path]:
    """Write the archive of an experiment, completely or, on failure, not.

    In every file, checksums replace what may not be passed on (:func:`opinionsim.report.released`).

    Parameters
    ----------
    results : Results
        One experiment.
    path : str or Path
        A new or empty folder, or one that contains only an unchanged earlier archive, which is replaced; or a file
        name that ends in ``.zip``, for a file that contains such a folder.
    anonymous : bool
        Whether it is for blind review. If so, it omits the state of the repository, paths, server addresses and the
        protocol number of the ethics board.
    kind : FileKind
        Kind of file for the frames.

    Returns
    -------
    list of Path
        The files written, or the single packed file.

    Raises
    ------
    SpecError
        If the folder or file contains anything else, or an earlier archive that was changed; if a package is missing;
        or if there is no table of the declared contrasts.
    StoreError
        If the store cannot be read.
    OSError
        If the folder cannot be written.
    """
    # Checking an archive needs none of what draws its figures.
    from opinionsim.report._page import write_page
    from opinionsim.report._study import study

    folder = Path(path)
    if folder.suffix == ".zip":
        return _packed(results, folder, anonymous=anonymous, kind=kind)
    _require_own(folder)
    parts = WORDS["parts"]
    with new_folder(folder, [name.rstrip("/") for name in parts], kind) as place:
        told = study(released(results, anonymous=anonymous))
        shown = told.results
        if lacking := missing_contrasts(shown.spec, told.tables):
            gone = (
                f"left out: {', '.join(shown.left_out)}" if shown.left_out else "not every condition has a complete run"
            )
            raise SpecError(
                f"{shown.name} declares analysis.contrasts, and an archive would lack {', '.join(lacking)} ({gone}); "
                "finish the runs, or allow your own parts with --allow-parts (own_parts=True)"
            )
        for name in parts:
            if name.endswith("/"):
                (place / name).mkdir()
        empty = write_frames(shown, place / "frames", kind)
        rests = resting_on_own(shown, told.tables)
        tables = [_write_table(table, place / "tables", number) for number, table in enumerate(told.tables, 1)]
        tables = [each | ({"own": own} if own else {}) for each, own in zip(tables, rests, strict=True)]
        _write_figures(told, place / "figures")
        write_page(told, place / "report.html")
        if shown.run_ids:
            _write_texts(shown, place)
        # As a specification states it, labels included; that of the store is resolved for the first condition.
        of_kind = {name: shown.manifest[name] for name in ("study",) if name in shown.manifest}
        (place / "specification.yaml").write_text(_yaml({**of_kind, **shown.manifest.get("spec", shown.spec)}), "utf-8")
        write_json(shown.manifest, place / "manifest.json")
        write_json(_about(shown, tables, empty, anonymous=anonymous), place / "archive.json")
        _write(place / "odd.md", odd(told))
        _write(place / "checklist.md", filled("checklist.md", study=told))
        _write(place / "references.bib", bibtex(shown, told.tables))
        _write(place / "rebuild.py", filled("rebuild.py.j2", main=_main(told.tables, tables)))
        _write(place / "README.md", filled("readme.md", study=told, parts=parts, anonymous=anonymous))
        listed = [(name, (place / name).stat().st_size) for name in files_of(place)]
        day = datetime.now(UTC).date().isoformat()
        _write(place / "ro-crate-metadata.json", crate(told, listed, day))
        sums = "".join(f"{checksum(place / name)}  {name}\n" for name in files_of(place))
        (place / SUMS).write_bytes(sums.encode())
        (place / SUM).write_bytes(f"{checksum(place / SUMS)}  {SUMS}\n".encode())
        written = files_of(place)
    return [folder / name for name in written]


def missing_contrasts(spec: Mapping[str, Any], tables: Iterable[Table], archived: Iterable[Path] = ()) -> list[str]:
    """Declared contrasts that have no row in the tables or in files of tables."""
    there = {name for table in tables if table.name == "contrasts" for name in table.frame["contrast"]}
    for file in archived:
        there |= {row.get("contrast") for row in csv.DictReader(file.read_text("utf-8", "replace").splitlines())}
    return [name for name in (spec.get("analysis") or {}).get("contrasts") or () if name not in there]


def _packed(results: Results, path: Path, *, anonymous: bool, kind: FileKind) -> list[Path]:
    """Write an archive as one zip file, whole or not at all."""
    require_free(path, _is_packed, force=None)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.stem}-", dir=path.parent) as scratch:
        write_archive(results, Path(scratch, path.stem), anonymous=anonymous, kind=kind)
        Path(shutil.make_archive(f"{scratch}/packed", "zip", scratch, path.stem)).replace(path)
    return [path]


def _is_packed(path: Path) -> bool:
    """Whether a path is a zip file with the folder of an archive."""
    if not (path.is_file() and zipfile.is_zipfile(path)):
        return False
    with zipfile.ZipFile(path) as packed:
        return any(name.endswith(f"/{SUMS}") and name.count("/") == 1 for name in packed.namelist())


def _require_own(folder: Path) -> None:
    """Refuse a folder with a file that no archive wrote, or that was changed since: it would be lost."""
    if not folder.is_dir():
        return
    listed = {name: found for found, name in lines_of(folder / SUMS)} if (folder / SUMS).is_file() else {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_dir() or name in (SUMS, SUM) or listed.get(name) == checksum(path)):
            raise SpecError(f"{folder} contains {name!r}, which is new or changed; give a new or empty folder")


def lines_of(sums: Path) -> list[tuple[str, str]]:
    """Checksum and name from each line of a list; for an invalid line, an empty checksum and the line."""
    lines = sums.read_text("utf-8", "replace").splitlines()
    return [found.groups() if (found := _LINE.fullmatch(line)) else ("", line) for line in lines]  # type: ignore[misc]


def files_of(folder: Path) -> list[str]:
    """Paths of all files below a folder, with slashes, in order."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def checksum(path: Path) -> str:
    """The SHA-256 of a file, 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "backslashreplace"))


def _yaml(value: Mapping[str, Any]) -> str:
    return yaml.safe_dump(json.loads(json.dumps(value)), sort_keys=False, allow_unicode=True, width=120)


def forms(table: Table) -> dict[str, str]:
    """A table in every form that archives contain, by suffix."""
    return {"csv": str(write_csv(table.frame)), "txt": table.to_text(), "tex": table.to_latex()}


def _write_table(table: Table, folder: Path, number: int) -> dict[str, Any]:
    """Write a table in all its forms; returns what the archive says of it."""
    name = f"{number}-{table.name or 'opinions'}"
    for suffix, text in forms(table).items():
        _write(folder / f"{name}.{suffix}", text)
    return {"file": name, "title": table.title}


def _write_figures(told: Study, folder: Path) -> None:
    """Write every figure as PDF, and a file that shows them all in LaTeX."""
    shown = ["% Needs \\usepackage{graphicx}; to input it from the folder above, \\graphicspath{{figures/}}."]
    for each in told.figures:
        each.save(folder / f"{each.name}.pdf")
        image = f"\\includegraphics[width=\\linewidth]{{{{{each.name}}}.pdf}}"
        caption = f"\\caption{{{latex_text(each.caption)}}}\n\\label{{fig:{each.name}}}"
        shown.append(f"\\begin{{figure}}\n\\centering\n{image}\n{caption}\n\\end{{figure}}")
    _write(folder / "figures.tex", "\n\n".join(shown) + "\n")


def _write_texts(results: Results, place: Path) -> None:
    """Write prompts, the packs they were made from, and transcripts."""
    from opinionsim.watching import transcript

    names = ("prompt", "before", "role", "text")
    lines = (json.dumps(dict(zip(names, each, strict=True)), ensure_ascii=False) for each in sorted(results.prompts()))
    _write(place / "prompts" / "prompts.jsonl", "".join(f"{line}\n" for line in lines))
    for pack, contents in results.manifest.get("contents", {}).get("prompts", {}).items():
        for name, text in contents.items():
            target = place / "prompts" / "packs" / _plain(pack) / Path(*map(_plain, name.split("/")))
            target.parent.mkdir(parents=True, exist_ok=True)
            _write(target, text)
    for row, run_id in enumerate(results.runs["run_id"]):
        if not (target := place / "transcripts" / f"{run_id}.txt").exists():
            _write(target, transcript(results, row) + "\n")


def _plain(name: str) -> str:
    """A name of a file or folder that stays where it is put."""
    return "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in name).lstrip(".") or "_"


def _about(
    results: Results,
    tables: list[dict[str, Any]],
    empty: Mapping[str, list[str]],
    *,
    anonymous: bool,
) -> dict[str, Any]:
    """What verification needs beside the frames."""
    return {
        "opinionsim_archive": LAYOUT,
        "opinionsim": results.manifest.get("environment", {}).get("opinionsim", ""),
        "anonymous": anonymous,
        "withheld": list(results.withheld),
        "tables": tables,
        "empty": dict(empty),
        "answered": results.answered,
        # What does not vary among units, which their table tells.
        "same": json.loads(json.dumps(results.units.attrs, default=float)),
        "design": DESIGN.dump_python(results.design_row, mode="json", exclude={"spec", "manifest", "saved_at"}),
    }


def _main(made: Sequence[Table], told: Sequence[Mapping[str, str]]) -> dict[str, Any] | None:
    """What the script that makes the main table again has to know: None where no table is of its form."""
    for table, each in zip(made, told, strict=True):
        columns = list(map(str, table.frame.columns))
        if not table.name and {"kind", "bias", "diversity", "ddof", "n_runs"} <= set(columns):
            kind, ddof = str(table.frame["kind"].iloc[0]), int(table.frame["ddof"].iloc[0])
            return {
                "table": f"tables/{each['file']}.csv",
                "kind": kind,
                "ddof": ddof,
                "axes": columns[: columns.index("kind")],
            }
    return None
