"""Verification: every changed byte is named, and numbers that were changed with their checksum are found."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, strategies as st
from typer.testing import CliRunner

from opinionsim.cli import app
from opinionsim.errors import SpecError
from opinionsim.report import Verification, verify
from tests.support.examples import examples, few

SUMS = "SHA256SUMS"


@pytest.fixture
def archive(small_archive: Path, tmp_path: Path) -> Path:
    """A copy of an archive, to be changed."""
    return Path(shutil.copytree(small_archive, tmp_path / "archive"))


def sealed(archive: Path) -> None:
    """Write the checksums of an archive anew, as somebody would who changes a file and hides it."""
    files = sorted(path for path in archive.rglob("*") if path.is_file() and not path.name.startswith(SUMS))
    sums = [(hashlib.sha256(path.read_bytes()).hexdigest(), path.relative_to(archive).as_posix()) for path in files]
    listed(archive, "".join(f"{digest}  {name}\n" for digest, name in sums))


def listed(archive: Path, sums: str) -> None:
    """Write the list of checksums, and the checksum of the list."""
    (archive / SUMS).write_text(sums)
    own = hashlib.sha256((archive / SUMS).read_bytes()).hexdigest()
    (archive / f"{SUMS}.sha256").write_text(f"{own}  {SUMS}\n")


def stated(archive: Path, change: Callable[[dict[str, Any]], Any]) -> Any:
    """Change what an archive says of itself, and hide it; returns what the change returns."""
    about = json.loads((archive / "archive.json").read_text())
    found = change(about)
    (archive / "archive.json").write_text(json.dumps(about))
    sealed(archive)
    return found


def files_of(archive: Path) -> list[Path]:
    return sorted(path for path in archive.rglob("*") if path.is_file())


def flip(path: Path, place: float, bit: int = 0) -> None:
    """Change one bit of a file, at a share of its length."""
    content = bytearray(path.read_bytes())
    content[int(place * (len(content) - 1))] ^= 1 << bit
    path.write_bytes(bytes(content))


def named(found: Verification, name: str) -> bool:
    return any(re.search(rf"(^|\s){re.escape(name)}( |$)", problem) for problem in found.problems)


def test_an_archive_as_it_was_written(small_archive: Path) -> None:
    found = verify(small_archive)
    assert found.problems == ()
    (told,) = found.not_rebuilt
    assert all(name in told for name in ("report.html", "odd.md", "figures/", "transcripts/", "only their checksums"))
    assert len(found.rebuilt) == len(list((small_archive / "tables").glob("*.csv")))
    assert found.identity == hashlib.sha256((small_archive / SUMS).read_bytes()).hexdigest()


def test_one_byte_changed_in_every_file_is_named_for_every_file(archive: Path) -> None:
    changed = [path for path in files_of(archive) if not path.name.startswith(SUMS)]
    for path in changed:
        flip(path, 0.5)
    found = verify(archive)
    assert [path for path in changed if not named(found, path.relative_to(archive).as_posix())] == []


@examples(24, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(which=st.integers(0, 10_000), place=st.floats(0, 1), bit=st.integers(0, 7))
def test_one_bit_changed_anywhere_is_named(
    small_archive: Path, archive: Path, which: int, place: float, bit: int
) -> None:
    files = files_of(archive)
    path = files[which % len(files)]
    before = path.read_bytes()
    flip(path, place, bit)
    try:
        found = verify(archive)
    finally:
        path.write_bytes(before)
    assert named(found, path.name if path.name.startswith(SUMS) else path.relative_to(archive).as_posix())


@pytest.mark.parametrize("name", [SUMS, f"{SUMS}.sha256"])
@pytest.mark.parametrize("place", [0.0, 1.0, *(pytest.param(place, marks=pytest.mark.whole) for place in (0.01, 0.5))])
def test_lists_of_checksums_are_checked_too(name: str, place: float, archive: Path) -> None:
    flip(archive / name, place)
    assert named(verify(archive), name)


def test_files_that_are_missing_or_foreign(archive: Path) -> None:
    (archive / "odd.md").unlink()
    (archive / "tables" / "9-mine.csv").write_text("a\n1\n")
    problems = verify(archive).problems
    assert "odd.md is missing" in problems
    assert "tables/9-mine.csv does not belong to the archive" in problems


@pytest.mark.parametrize(
    ("name", "old", "new"),
    few(
        [
            ("tables/1-opinions.csv", r"(?m)^(none,.*?,)(-?\d+\.\d+)", r"\g<1>0.123"),
            ("tables/1-opinions.txt", r"(?m)^(none .*?)(\d+\.\d\d)", r"\g<1>9.99"),
            ("tables/1-opinions.tex", r"(?m)^(none .*?)(\d+\.\d\d)", r"\g<1>9.99"),
            ("frames/opinions.csv", r"(?m)^(.*?,report,.*?,)(-?[12]\.0)(,-?[12]\.0,)", r"\g<1>0.0\g<3>"),
            ("frames/metrics.csv", r"(?m)^(.*?,report,)(-?\d+\.\d+)", r"\g<1>0.123"),
        ],
        3,
    ),
)
def test_a_number_changed_together_with_its_checksum_is_found(name: str, old: str, new: str, archive: Path) -> None:
    path = archive / name
    changed, n = re.subn(old, new, path.read_text())
    assert n, "nothing to change"
    path.write_text(changed)
    sealed(archive)
    found = verify(archive)
    assert len(found.problems) >= 1
    assert all("differs from what the" in problem for problem in found.problems)


def test_a_table_that_no_frame_gives_is_told(archive: Path) -> None:
    stated(archive, lambda about: about["tables"].append({"file": "7-audit", "title": "Labels of people"}))
    found = verify(archive)
    assert found.problems == ()
    assert [each.partition(" (")[0] for each in found.not_rebuilt[:-1]] == ["Labels of people"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        # What an archive says of itself may be anything, and what no reader can follow.
        *(("archive.json", content) for content in ("", "[]", "{}", '{"opinionsim_archive": 1}')),
        ("archive.json", '{"opinionsim_archive": 9}'),
        *((name, "[" * 100_000) for name in ("archive.json", "manifest.json", "specification.yaml")),
    ],
)
def test_files_that_say_nothing_are_problems(name: str, content: str, archive: Path) -> None:
    (archive / name).write_text(content)
    sealed(archive)
    assert [each.partition(":")[0] for each in verify(archive).problems] == ["No table can be rebuilt"]


def test_a_name_that_no_file_can_have_is_a_problem(archive: Path) -> None:
    stated(archive, lambda about: about["tables"][0].update(file="a" * 5000))
    assert verify(archive).problems[0].startswith("No table can be rebuilt")


def test_a_specification_that_is_not_that_of_the_manifest_is_a_problem(archive: Path) -> None:
    path = archive / "specification.yaml"
    for content in (path.read_text().replace("name: scripted", "name: openai:gpt-4o"), "name: other\n", "a: b\n"):
        path.write_text(content)
        sealed(archive)
        (problem,) = verify(archive).problems
        assert "different experiments" in problem


def test_the_name_of_a_foreign_file_writes_no_line_of_its_own(archive: Path) -> None:
    (archive / "x\nthe same, made again: all\x1b[2J").write_text("x")
    (told,) = verify(archive).problems
    assert told.isprintable()
    assert told.endswith("does not belong to the archive")


def test_a_second_line_for_a_file_is_a_problem(archive: Path) -> None:
    listed(archive, f"{'0' * 64}  odd.md\n{(archive / SUMS).read_text()}")
    assert f"{SUMS} was changed: it has two lines for odd.md" in verify(archive).problems


def test_a_table_that_was_taken_away_is_missed(archive: Path) -> None:
    taken = stated(archive, lambda about: about["tables"].pop())
    for path in (archive / "tables").glob(f"{taken['file']}.*"):
        path.unlink()
    sealed(archive)
    problems = verify(archive).problems
    assert problems == (f"{taken['title']}: the frames give this table, but the archive does not have it",)


def test_rebuild_script_is_never_run(archive: Path, tmp_path: Path) -> None:
    (archive / "rebuild.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    sealed(archive)
    verify(archive)
    assert not (tmp_path / "ran").exists()


def _link(archive: Path) -> None:
    (archive / "odd.md").unlink()
    (archive / "odd.md").symlink_to("/etc/hostname")


def _linked_folder(archive: Path) -> None:
    shutil.rmtree(archive / "figures")
    (archive / "figures").symlink_to("/etc")


def _listed(name: str) -> Callable[[Path], None]:
    return lambda archive: listed(archive, f"{(archive / SUMS).read_text()}{'0' * 64}  {name}\n")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_link, "'odd.md' is not a plain file"),
        (_linked_folder, "'figures' is not a plain file"),
        (lambda archive: os.mkfifo(archive / "tables" / "pipe.csv"), "'tables/pipe.csv' is not a plain file"),
        (_listed("../outside.csv"), "'../outside.csv' points outside"),
        (_listed("/etc/passwd"), "'/etc/passwd' points outside"),
        (_listed("C:\\windows"), "points outside"),
        (lambda archive: (archive / SUMS).unlink(), "has no SHA256SUMS"),
    ],
)
def test_what_leads_outside_is_one_clear_error(change: Callable[[Path], None], told: str, archive: Path) -> None:
    change(archive)
    with pytest.raises(SpecError, match=re.escape(told)):
        verify(archive)


@pytest.mark.parametrize("within", ["", "study/"])
def test_a_zip_file_of_an_archive(within: str, small_archive: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for path in files_of(small_archive):
            packed.write(path, within + path.relative_to(small_archive).as_posix())
    assert verify(tmp_path / "a.zip").problems == ()


def _linking() -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo("odd.md")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


OUTSIDE = ("../outside.txt", "/opt/outside.txt", "a/../../outside.txt", "..\\outside.txt", _linking())


def test_a_small_zip_that_unfolds_to_much_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opinionsim.report._verify._ALWAYS", 1_000_000)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("study/zeros", b"0" * 20_000_000)
    monkeypatch.setattr(zipfile.ZipFile, "extractall", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(SpecError, match=r"bomb\.zip unfolds to more than .*; unpack it yourself"):
        verify(tmp_path / "bomb.zip")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("entries", "told"),
    [
        *(([entry], "points outside the archive") for entry in OUTSIDE),
        *((["a/odd.md", name], "has two files named") for name in ("a/odd.md", "a/./odd.md", "a//odd.md")),
    ],
)
def test_a_zip_file_whose_entries_lead_outside_or_are_alike(entries: list[Any], told: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for entry in entries:
            packed.writestr(entry, "/etc/passwd")
    with pytest.raises(SpecError, match=told):
        verify(tmp_path / "a.zip")
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_a_zip_file_whose_content_is_damaged(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("odd.md", "all work and no play " * 200)
    content = bytearray((tmp_path / "a.zip").read_bytes())
    content[36:40] = b"\xff" * 4
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(SpecError, match="cannot be unpacked"):
        verify(tmp_path / "a.zip")


@pytest.mark.parametrize("path", ["nothing", "file.txt"])
def test_what_is_no_archive(path: str, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("x")
    with pytest.raises(SpecError, match="is not an archive folder or zip file"):
        verify(tmp_path / path)


def test_the_command(archive: Path) -> None:
    whole = CliRunner().invoke(app, ["verify", str(archive)])
    assert (whole.exit_code, "the same, made again: " in whole.stdout) == (0, True)
    flip(archive / "odd.md", 0.3)
    changed = CliRunner().invoke(app, ["verify", str(archive)])
    assert changed.exit_code == 2
    assert "problem: odd.md was changed" in changed.stdout
    told = json.loads(CliRunner().invoke(app, ["verify", str(archive), "--json"]).stdout)
    assert told["problems"] == ["odd.md was changed"]


@pytest.mark.usefixtures("without_figures")
def test_the_command_that_writes_it(small_archive: Path, small: object, tmp_path: Path) -> None:
    url = getattr(small, "url")  # noqa: B009
    for more, told in ((["--archive"], "wrote"), (["--anonymous"], "add --archive")):
        done = CliRunner().invoke(app, ["export", url, str(tmp_path / "out"), *more])
        assert told in done.output
    assert verify(tmp_path / "out").problems == ()
