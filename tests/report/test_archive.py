"""An archive: what is in it, what it says of itself, and the script that rebuilds its main table with pandas alone."""

from __future__ import annotations

import getpass
import json
import re
import shutil
import socket
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import example, given, strategies as st

import opinionsim as osim
from opinionsim.errors import SpecError
from opinionsim.foundation.spreadsheets import read_csv
from opinionsim.report import tables_of, verify, write_archive
from opinionsim.report._describing import bibtex
from opinionsim.store import Results
from tests.support.archives import STUDY, all_bytes, carried_out, rebuild
from tests.support.bibtex import entries_of
from tests.support.examples import few


def test_every_part_that_is_promised_is_there(small: Results, small_archive: Path) -> None:
    names = [line.split("`")[1] for line in (small_archive / "README.md").read_text().splitlines() if line[:3] == "| `"]
    assert {path.name + "/" * path.is_dir() for path in small_archive.iterdir()} == set(names)
    assert {path.name for path in (small_archive / "frames").iterdir()} >= {"codebook.csv", "opinions.csv", "turns.csv"}
    assert {path.stem for path in (small_archive / "transcripts").iterdir()} == set(small.run_ids)
    drawn = list((small_archive / "figures").glob("*.pdf"))
    assert drawn
    assert all(path.read_bytes().startswith(b"%PDF") for path in drawn)
    shown = (small_archive / "figures" / "figures.tex").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\{\{(.*?)\}\.pdf\}", shown)) == sorted(path.stem for path in drawn)
    assert shown.count("SCRIPTED STAND-IN") == shown.count("\\caption{") == len(drawn)
    stated = json.loads((small_archive / "manifest.json").read_text())["spec"]
    assert yaml.safe_load((small_archive / "specification.yaml").read_text()) == stated
    tables = [path.read_text() for path in sorted((small_archive / "tables").glob("*.txt"))]
    assert tables == [table.to_text() for table in tables_of(small)]
    message = str(small.turns["message"].iloc[0])
    assert message in (small_archive / "transcripts" / f"{small.turns['run_id'].iloc[0]}.txt").read_text()


def test_every_prompt_can_be_read_literally_and_stands_there_once(small: Results, small_archive: Path) -> None:
    lines = (small_archive / "prompts" / "prompts.jsonl").read_text().splitlines()
    links = {line["prompt"]: line for line in map(json.loads, lines)}
    assert len(links) == len(lines)
    for call in small.calls.iloc[[0, -1]].to_dict("records"):
        found, at = [], call["prompt_hash"]
        while at:
            found.append((links[at]["role"], links[at]["text"]))
            at = links[at]["before"]
        prompt = small.prompt(call["run_id"], call["turn"], call["call"], call["attempt"])
        assert found[::-1] == [(message.role, message.content) for message in prompt]


def test_the_manifest_runs_again(small: Results, small_archive: Path, tmp_path: Path) -> None:
    manifest = json.loads((small_archive / "manifest.json").read_text())
    again = osim.run(osim.load_experiment(manifest), f"sqlite:///{tmp_path / 'again.sqlite'}")
    assert again.turns["message"].tolist() == small.turns["message"].tolist()


@pytest.mark.usefixtures("without_figures")
def test_the_archived_specification_runs_and_gives_the_tables(tmp_path: Path) -> None:
    """Labels that contrasts name stay, and files that it names are in the manifest beside it."""
    people = {"personas": [{"name": name, "opinion": 0, "attributes": {"role": name}} for name in ("A", "B", "C")]}
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump({"name": "mine", **people}))
    networks = [{"kind": "ring", "k": 2, "label": "round"}, {"label": "all", "value": "complete"}]
    axis = "interaction.network"
    contrast = {"of": "round - all", "measure": "diversity"}
    spec = {
        **STUDY,
        "population": {"personas": str(file), "size": 3},
        "sweep": {axis: networks},
        "analysis": {"contrasts": {"shape": contrast}},
    }
    results = carried_out(spec, tmp_path)
    write_archive(results, tmp_path / "archive")
    odd, page = ((tmp_path / "archive" / name).read_text() for name in ("odd.md", "report.html"))
    # Parameters of levels, data with their number, and every value of what varies.
    for text in (odd, page):
        assert "round (ring, k = 2); all (complete)" in text
        assert "mine.yaml (n = 3)" in text
    assert "- `mine.yaml`: 3 personas. No source is stated. No licence is stated." in odd
    assert re.search(r"`interaction` \| .*network: varied: .*k: 2.*complete", odd)
    file.unlink()
    again = osim.load_experiment(tmp_path / "archive" / "specification.yaml")
    made = osim.run(again, f"sqlite:///{tmp_path / 'again.sqlite'}")
    assert made.run_ids == results.run_ids
    texts = [[table.to_text() for table in tables_of(each)] for each in (results, made)]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 2
    # A folder with files of these names that is no archive is read as a plain specification.
    (tmp_path / "archive" / "manifest.json").write_text("{}\n")
    with pytest.raises(SpecError, match=r"mine\.yaml: no such file"):
        osim.load_experiment(tmp_path / "archive" / "specification.yaml")


def test_the_documents_are_filled(small_archive: Path) -> None:
    odd, bib = ((small_archive / name).read_text() for name in ("odd.md", "references.bib"))
    assert odd.count("\n## ") == 7
    assert "| `interaction` |" in odd
    assert "a random speaker writes a post" in odd
    assert "Root seed of all random numbers" in odd
    assert ":func:" not in odd
    assert "doi = {10.18653/v1/2024.findings-naacl.211}" in bib
    assert "author = {Chuang, Yun-Shiuan and Goyal, Agam and" in bib
    assert {"chuang2024", "grimm2020"} <= {key for _, key, _ in entries_of(bib)}
    assert "Licence: " in bib
    crate = json.loads((small_archive / "ro-crate-metadata.json").read_text())
    listed = {each["@id"] for each in crate["@graph"] if each["@type"] == "File"}
    there = {path.relative_to(small_archive).as_posix() for path in small_archive.rglob("*") if path.is_file()}
    assert there - listed == {"ro-crate-metadata.json", "SHA256SUMS", "SHA256SUMS.sha256"}
    assert listed <= there


def test_checksums_are_those_of_sha256sum(small_archive: Path) -> None:
    for name in ("SHA256SUMS", "SHA256SUMS.sha256"):
        subprocess.run(["sha256sum", "--check", "--strict", name], cwd=small_archive, check=True)  # noqa: S607


@pytest.mark.usefixtures("without_figures")
@pytest.mark.parametrize("kind", few(["csv", "parquet"], 1))
def test_the_script_makes_the_main_table_again_without_this_package(kind: Any, tmp_path: Path, small: Results) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    write_archive(small, tmp_path / "archive", kind=kind)
    done = rebuild(tmp_path / "archive")
    assert done.returncode == 0, done.stderr
    assert "The same numbers as in tables/1-opinions.csv" in done.stdout
    assert "import opinionsim" not in (tmp_path / "archive" / "rebuild.py").read_text()
    main = tmp_path / "archive" / "tables" / "1-opinions.csv"
    frame = read_csv(main)
    frame.loc[0, "bias"] += 0.001
    frame.to_csv(main, index=False)
    assert rebuild(tmp_path / "archive").returncode == 1


RULES = [
    {"sweep": {"topic.name": ["t-rex", "flat-earth"], "cognition.confirmation_bias": ["none", "strong"]}},
    {"sweep": {"interaction": [{"kind": "independent"}, {"kind": "dyadic", "steps": 6}]}},
    {"measurement": {"classifier": "lexicon", "texts": ["post"], "probe": {"before": 1, "after": 1}}},
    {"sweep": {"topic": [{"label": "=1+1", "name": "t-rex"}, {"label": "@other", "name": "flat-earth"}]}},
]


@pytest.mark.usefixtures("without_figures")
@pytest.mark.parametrize("change", few(RULES, 2))
def test_script_and_verification_agree_with_tables_of_all_kinds(change: dict[str, Any], tmp_path: Path) -> None:
    write_archive(carried_out({**STUDY, **change}, tmp_path), tmp_path / "archive")
    done = rebuild(tmp_path / "archive")
    assert done.returncode == 0, done.stdout + done.stderr
    found = verify(tmp_path / "archive")
    assert found.problems == ()
    assert found.rebuilt


@pytest.mark.usefixtures("without_figures")
def test_numbers_that_are_missing_are_read_back_from_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    topics = [{"name": name, "claims": {"for": f"{name} is tall"}, "masked": False} for name in ("oak", "elm")]
    (tmp_path / "trees.yaml").write_text(yaml.safe_dump({"topics": topics}))
    topic = {"file": str(tmp_path / "trees.yaml"), "name": "oak"}
    results = carried_out({**STUDY, "topic": topic, "sweep": {"topic.name": ["oak", "elm"]}}, tmp_path)
    write_archive(results, tmp_path / "archive", kind="parquet")
    found = verify(tmp_path / "archive")
    assert (found.problems, len(found.rebuilt)) == ((), 1)


@pytest.mark.usefixtures("without_figures")
def test_for_blind_review_nothing_tells_who_made_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("init -q", "-c user.name=Q -c user.email=q@example.org commit -q --allow-empty -m begun"):
        subprocess.run(["git", *command.split()], check=True)  # noqa: S607
    personas = tmp_path / "Ada Quick" / "villagers.yaml"
    personas.parent.mkdir()
    personas.write_text(yaml.safe_dump({"name": "v", "personas": [{"name": name} for name in ("Ada", "Bo", "Cy")]}))
    model = {"name": "scripted"}
    spec = {**STUDY, "sweep": {}, "population": {"personas": str(personas)}, "ethics": {"protocol": "IRB-QX-4417"}}
    results = carried_out({**spec, "model": model}, tmp_path)
    write_archive(results, tmp_path / "open")
    write_archive(results, tmp_path / "blind", anonymous=True)
    commit = results.manifest["environment"]["git"]["commit"]
    telling = [commit, "IRB-QX-4417", str(tmp_path), "Ada Quick", str(Path.home()) + "/", "store.sqlite"]
    # Shorter names stand in any text.
    telling += [name for name in (getpass.getuser(), socket.gethostname()) if len(name) > 4]
    shown, blind = all_bytes(tmp_path / "open"), all_bytes(tmp_path / "blind")
    assert [text for text in telling[:4] if text.encode() not in shown] == []
    assert [text for text in telling if text.encode() in blind] == []
    assert b"villagers.yaml" in blind
    assert verify(tmp_path / "blind").problems == ()


@pytest.mark.usefixtures("without_figures")
def test_an_archive_replaces_an_earlier_one_and_nothing_else(
    small: Results, small_archive: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(small_archive, tmp_path / "archive"))
    (folder / "tables" / "1-opinions.csv").unlink()
    write_archive(small, folder)
    assert verify(folder).problems == ()


@pytest.mark.parametrize("name", ["diary.txt", "figures/drawn-by-hand.svg", "odd.md"])
@pytest.mark.parametrize("bare", [False, True])
def test_what_somebody_wrote_into_a_folder_stays(
    name: str, bare: bool, small: Results, small_archive: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "archive"
    if not bare:
        shutil.copytree(small_archive, folder)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("mine")
    before = all_bytes(folder)
    with pytest.raises(SpecError, match=rf"contains '{name}', which is new or changed; give a new or empty"):
        write_archive(small, folder)
    assert all_bytes(folder) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive"]


def test_a_file_of_something_else_stays(small: Results, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as packed:
        packed.writestr("data/mine.csv", "a")
    (tmp_path / "study.zip").write_text("mine")
    before = all_bytes(tmp_path)
    for name in ("data.zip", "study.zip"):
        with pytest.raises(SpecError, match=rf"{name} already exists and was not made by this command"):
            write_archive(small, tmp_path / name)
    assert all_bytes(tmp_path) == before


def test_an_archive_that_fails_leaves_nothing(small: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    with pytest.raises(OSError, match="No space"):
        write_archive(small, tmp_path / "archive")
    assert list(tmp_path.iterdir()) == []


def test_truth_values_of_a_frame_are_read_back(small_archive: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(small_archive, tmp_path / "archive"))
    opinions = copy / "frames" / "opinions.csv"
    opinions.write_text(opinions.read_text().replace(",FALSE,", ",TRUE,"))
    assert "frames/metrics differs from what the other frames give" in verify(copy).problems


@pytest.mark.usefixtures("without_figures")
def test_an_archive_as_one_file_holds_the_same(small: Results, small_archive: Path, tmp_path: Path) -> None:
    packed = tmp_path / "new" / "study.zip"
    assert write_archive(small, packed) == [packed]
    assert [path.name for path in packed.parent.iterdir()] == ["study.zip"]
    with zipfile.ZipFile(packed) as file:
        names = {name.removeprefix("study/") for name in file.namelist() if not name.endswith("/")}
    there = {path.relative_to(small_archive) for path in small_archive.rglob("*") if path.is_file()}
    assert names == {path.as_posix() for path in there if path.suffix != ".pdf"}
    assert verify(packed).problems == ()
    write_archive(small, packed)


@given(texts=st.lists(st.text(min_size=1), min_size=3, max_size=3))
@example(texts=["Ærø & 50 % {of} ~x_1^2\\", "@misc{x,", "}\n"])
def test_what_authors_write_makes_no_other_bibtex(small: Results, texts: list[str]) -> None:
    personas = dict(zip(("name", "source", "licence"), texts, strict=True)) | {"personas": [{}]}
    contents = {"personas": {"mine": personas, "mine.csv": personas}}
    row = replace(small.design_row, manifest=small.manifest | {"contents": contents})
    told = Results.of_frames(row, {name: getattr(small, name) for name in ("runs", "agents", "opinions")}, {})
    entries = entries_of(bibtex(told, []))
    assert [key.partition("-")[0] for _, key, _ in entries if "20" not in key] == ["opinionsim", "data1", "data2"]
    assert not re.search(r"(?<!\\)[&%$#_^~]", entries[-1][2]["note"])
