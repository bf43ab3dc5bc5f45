"""The tables of parts: what they name is there, and whatever is marked stands in them."""

from __future__ import annotations

import importlib.metadata
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import opinionsim as osim
from opinionsim.errors import SpecError
from opinionsim.prompts import load_pack
from opinionsim.registry import KINDS, Catalogue, built_in, find, general, names, places


@pytest.mark.parametrize("kind", KINDS)
def test_tables_and_marks_are_equal(kind: str) -> None:
    for name, place in places(kind).items():
        found = find(kind, name)
        assert (found.name, found.kind, found.outside) == (name, kind, False)
        assert find(kind, name) is built_in(kind)[name]
        home = getattr(found.target, "home", None) or found.target.__module__
        assert home == place.module, f"{name} is marked in another module than its table says"


def test_every_mark_of_the_package_stands_in_a_table(checkout: Path) -> None:
    marks = re.compile(r'\bpart\(\s*"(\w+)"(?:, name="([\w-]+)"|\)\(\s*\w+\(\s*name="([\w-]+)")')
    files = [path for path in (checkout / "opinionsim").rglob("_*.py") if path.parent.name != "registry"]
    for path in files:
        for kind, *named in marks.findall(path.read_text(encoding="utf-8")):
            assert "".join(named) in names(kind), f"{path}: {kind} {''.join(named)}"


def test_a_catalogue_knows_names_and_loads_values() -> None:
    figures = Catalogue("figure")
    assert "ribbons" in figures
    assert list(figures) == list(names("figure"))
    assert len(figures) == len(names("figure"))
    assert figures["ribbons"] is osim.plots.ribbons
    with pytest.raises(KeyError):
        figures["none of them"]


def test_entry_points_of_other_distributions_name_their_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    lines = "import opinionsim", "@opinionsim.part('metric')", "def width(opinions):", "    return max(opinions)"
    (tmp_path / "elsewhere.py").write_text("\n".join(lines), encoding="utf-8")
    told = tmp_path / "elsewhere-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text("[opinionsim.parts]\nmetric.width = elsewhere:width\n")
    assert find("metric", "width").name == "elsewhere:width"
    with pytest.raises(SpecError, match="unknown table 'width'"):
        find("table", "width")


def test_names_of_the_package_are_found_without_a_look_at_other_distributions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.metadata.Distribution, "discover", lambda **_: 1 / 0)
    assert find("figure", "density").target is osim.plots.density
    with pytest.raises(ZeroDivisionError):
        find("figure", "none of them")


def test_a_metric_of_ones_own_is_computed_like_any_other() -> None:
    @osim.part("metric", name="spanned", version=1)
    def spanned(opinions: np.ndarray) -> np.ndarray:
        return opinions.max(axis=-1) - opinions.min(axis=-1)

    found = osim.metrics.compute_metrics([[1, 2, 4], [0, 0, 0]], ["bias", "spanned"])
    assert found["spanned"].tolist() == [3, 0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[table", "Expected ']'"),
        ("[tabel]\nown = '_own'", r"unknown table \[tabel\]; valid: interaction, "),
        ("[table]\nown = '_own'", r"\[table\] own already exists in first/parts\.toml; give it another name"),
        ("[figure]\nown = '_missing'", r"\[figure\] own: there is no opinionsim\.second\._missing"),
    ],
)
def test_a_faulty_table_of_parts_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, problem: str
) -> None:
    for folder, told in {"first": "[slice]\nneeds = []\n[table]\nown = '_own'", "second": text}.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "parts.toml").write_text(told + ("" if folder == "first" else "\n[slice]\nneeds = []"))
    tables = import_module(places.__module__)
    monkeypatch.setattr(tables, "_ROOT", tmp_path)
    tables._read.cache_clear()
    tables._tables.cache_clear()
    try:
        with pytest.raises(SpecError, match=rf"second.parts\.toml: {problem}"):
            find("figure", "own")
    finally:
        tables._read.cache_clear()
        tables._tables.cache_clear()


def test_only_what_a_kind_declares_is_declared() -> None:
    with pytest.raises(SpecError, match="a figure declares no 'number'; valid: numbers, shown, studies"):
        osim.part("figure", number=len)
    with pytest.raises(SpecError, match="a memory declares no 'shown'; valid: nothing"):
        osim.part("memory", shown=len)


def test_every_prompt_pack_of_the_tables_is_a_folder() -> None:
    assert [load_pack(name).place for name in names("pack")] == [f"prompt pack {name}" for name in names("pack")]


def test_every_command_of_the_tables_is_there() -> None:
    for place in places("command").values():
        module, _, attribute = place.module.partition(":")
        assert hasattr(import_module(module), attribute)


def test_figures_of_the_gallery_are_those_of_the_tables(checkout: Path) -> None:
    page = (checkout / "docs" / "gallery.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"\n\| Figure \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", page)
    listed = [row.rsplit("`", 2)[1] for row in table.splitlines()]
    assert sorted(listed) == sorted(general("figure"))


def test_the_page_on_parts_names_every_kind(checkout: Path) -> None:
    page = (checkout / "docs" / "parts.md").read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f"| `{kind}` |" not in page] == ["endpoint", "record", "page"]
