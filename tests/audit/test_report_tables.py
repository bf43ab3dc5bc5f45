"""Tables of an audit on the page of a study, and what is left of one where the folder is deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

import opinionsim as osim
from opinionsim.audit import draw, keep, keep_findings, sample_of
from opinionsim.registry import serving
from opinionsim.report import study, write_page
from opinionsim.store import Results, copy_store
from tests.report.conftest import modelled as modelled
from tests.slices import ROOT, commanded, without


def _labelled(results: Results) -> Results:
    """Results of which every text has a label, so that the corrected mean is that of the labels."""
    sample = draw(results, 99)
    keep(results, sample, {"ann": dict.fromkeys(sample.texts["code"], 1.0)}, "human")
    keep_findings(results, sample_of(results))
    return osim.load(results.url)


@pytest.mark.usefixtures("without_figures")
def test_numbers_corrected_by_labels_of_people_are_told_beside_those_read(modelled: Results, tmp_path: Path) -> None:
    copy_store(modelled.url, f"sqlite:///{tmp_path / 'b.sqlite'}")
    results = osim.load(f"sqlite:///{tmp_path / 'b.sqlite'}")
    told = study(_labelled(results))
    assert {"audit-agreement", "audit-bias", "audit-contrasts"} <= {each.name for each in told.tables}
    assert len({each.name for each in told.tables if each.name}) == len([each for each in told.tables if each.name])
    assert any("corrected by labels of people 1.00" in said for said in told.statements)
    assert dict(told.checklist)["Audit of the instruments"].startswith("labels of people: tables audit-agreement, ")


@pytest.mark.usefixtures("without_figures")
def test_a_page_has_them_behind_a_heading_and_before_the_variants(results: Results, tmp_path: Path) -> None:
    page_of = tmp_path / "report.html"
    write_page(results, page_of)
    assert "Audit and correction" not in page_of.read_text(encoding="utf-8")
    write_page(_labelled(results), page_of)
    assert ">Audit and correction<" in page_of.read_text(encoding="utf-8")


def test_commands_of_this_folder_are_those_that_the_core_refers_to() -> None:
    found = [serving(purpose) for purpose in ("labels", "readings", "card")]
    assert found == [["audit"], ["audit instruments"], ["check-model"]]


@pytest.mark.whole
def test_what_was_labelled_is_shown_where_the_folder_is_deleted(results: Results, tmp_path: Path) -> None:
    store = _labelled(results).url.removeprefix("sqlite:///")
    without(["audit"], tmp_path / "left")
    report, archive = f"report {store} --out {{}}.html", f"export {store} {{}} --archive"
    shown = (f"table {store}", f"status {store}", f"store check {store}")
    whole, *_ = commanded(ROOT, *shown, report.format(tmp_path / "whole"))
    rest, *_ = commanded(tmp_path / "left", *shown, report.format(tmp_path / "rest"), archive.format(tmp_path / "rest"))
    assert "audited by labels of 1 person" in " ".join(rest.split())
    assert rest == whole
    pages = [(tmp_path / name).read_text(encoding="utf-8") for name in ("whole.html", "rest.html")]
    assert ["Audit and correction" in page for page in pages] == [True, False]
    assert ["opinionsim audit" in page for page in pages] == [False, False]
