"""Commands from a design to a paper: freeze, report, export and verify."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from opinionsim.cli._console import Force, note, say, say_json
from opinionsim.cli._options import AsJson, Changes, DesignNumber, read_spec
from opinionsim.cli._run import store_of
from opinionsim.cli._stores import note_left_out, read_results
from opinionsim.errors import SpecError
from opinionsim.foundation.outputs import put, require_free


def freeze(
    spec: str, out: Path | None = None, store: str | None = None, changes: Changes = None, prompts: str | None = None
) -> None:
    """Fix design, analysis, prompts and models before the runs, and write a manifest to run and a preregistration form.

    Parameters
    ----------
    out : FILE
        File for the frozen study, such as STUDY.frozen.json. The form is written next to it. Default: NAME.frozen.json.
    """
    from opinionsim.report import freeze, preregistration

    experiment = read_spec(spec, changes, prompts)
    name = experiment.spec.name
    file = out or Path(f"{name}.frozen.json")
    form = file.with_name(f"{file.name.removesuffix('.json').removesuffix('.frozen')}-preregistration.md")
    for path in (file, form):
        require_free(path, lambda _: False, force=None)
    frozen = freeze(experiment)
    text = preregistration(frozen, store_of(experiment, store))
    put(file, lambda part: part.write_text(json.dumps(frozen, indent=1, ensure_ascii=False), encoding="utf-8"))
    put(form, lambda part: part.write_text(text, encoding="utf-8"))
    say(f"{file}\n{form}")
    note(f"Complete {form}, deposit both files, and then: opinionsim run {file}")


def report(
    store: str,
    experiment: str | None = None,
    design: DesignNumber = None,
    out: Path | None = None,
    force: Force = False,
    allow_parts: bool = False,
) -> None:
    """Write everything about an experiment into one HTML file that opens without a network, and print its path.

    Parameters
    ----------
    out : FILE
        File to write. Default: NAME-report.html, next to the store.
    """
    from opinionsim.report import write_page

    results = read_results(store, experiment, design, allow_parts=allow_parts)
    is_file = results.url.startswith("sqlite:///")
    folder = Path(results.url.removeprefix("sqlite:///")).parent if is_file else Path()
    path = out or folder / f"{results.name}-report.html"
    for left_out in write_page(results, path, force=force):
        note(left_out)
    note_left_out(results)
    say(f"{path}: {path.stat().st_size / 1e6:,.1f} MB; open it in a browser, no network needed")


def export(
    store: str,
    folder: Path,
    kind: Annotated[Literal["csv", "parquet"], typer.Option("--format")] = "csv",
    archive: Annotated[bool, typer.Option("--archive")] = False,
    anonymous: Annotated[bool, typer.Option("--anonymous")] = False,
    experiment: str | None = None,
    design: DesignNumber = None,
    allow_parts: bool = False,
) -> None:
    """Write all frames and the manifest to a folder, or write an archive of a study for publication.

    Parameters
    ----------
    folder : DIR
        New or empty folder to write to. For an archive, it can also be a file that ends in .zip.
    kind
        File format. parquet needs the extra of that name.
    archive
        Add prompts, transcripts, tables, figures, report, documents and checksums, without texts that may not be passed
        on.
    anonymous
        Prepare the archive for blind review.
    """
    from opinionsim.report import write_archive, write_export

    if anonymous and not archive:
        raise SpecError("--anonymous applies to an archive; add --archive")
    results = read_results(store, experiment, design, allow_parts=allow_parts if archive else allow_parts or None)
    if not archive:
        for path in write_export(results, folder, kind):
            say(str(path))
        return
    written = write_archive(results, folder, anonymous=anonymous, kind=kind)
    note_left_out(results)
    told = f"{len(written)} files to {folder}" if folder.is_dir() else str(folder)
    say(f"wrote {told}; check it with: opinionsim verify {folder}")


def verify(archive: Annotated[Path, typer.Argument(metavar="FOLDER|FILE")], as_json: AsJson = False) -> None:
    """Check every file of an archive, and rebuild its tables from its frames.

    Parameters
    ----------
    archive
        Folder or zip file that `export --archive` wrote.
    """
    from dataclasses import asdict

    from opinionsim.report import verify as verified

    found = verified(archive)
    if as_json:
        say_json(asdict(found))
    else:
        whole = () if found.problems else ("each one is unchanged",)
        told = {"problem": found.problems, "files": whole, "the same, made again": found.rebuilt}
        told["not made again"] = found.not_rebuilt
        for label, lines in told.items():
            for line in lines:
                say(f"{label}: {line}")
        say(f"archive: sha256:{found.identity}")
    if found.problems:
        raise typer.Exit(SpecError.exit_code)
