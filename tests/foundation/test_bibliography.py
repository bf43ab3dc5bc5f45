"""The bibliography: complete entries, and an entry for whatever code, docs and data cite."""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path
from urllib.parse import unquote

import pytest

from opinionsim.foundation.bibliography import bibliography, cited
from opinionsim.metrics import METRICS
from tests.support.bibtex import entries_of

#: Works of others that one page compares the package with.
_COMPARED = ("docs/scaling.md",)
_NEEDED = {
    "article": {"journal"},
    "inproceedings": {"booktitle"},
    "book": {"publisher"},
    "incollection": {"booktitle", "publisher"},
    "misc": set(),
}
_CITATION = re.compile(r"(?<!, )(?<![\w-])[^\W\d_][\w'-]+(?:,? et al\.| & [^\W\d_][\w'-]+),? \(?(?:19|20)\d\d\b[a-z]?")
_IDENTIFIER = re.compile(
    r"(?:doi[: ]+|doi\.org/)(10\.\d{4,9}/[^\s\]}>\"'`|]*[\w])|arXiv[: ]*(\d{4}\.\d{5})", re.IGNORECASE
)


def _cited_in(checkout: Path, pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """What matches in all texts of the package, its docs and its data, each with its file."""
    folders = ("opinionsim", "docs", "personas", "topics", "experiments", "studies")
    files = [path for folder in folders for path in (checkout / folder).rglob("*")] + [checkout / "README.md"]
    kinds = (".py", ".md", ".yaml", ".toml", ".txt", ".j2")
    texts = {path.relative_to(checkout).as_posix(): path for path in files if path.suffix in kinds and path.is_file()}
    return [
        (name, found[0])
        for name, path in texts.items()
        if name not in _COMPARED
        for found in pattern.finditer(" ".join(path.read_text(encoding="utf-8").split()))
    ]


def test_every_entry_is_whole_and_names_what_it_was_checked_against() -> None:
    text = Path(inspect.getfile(cited)).with_suffix(".bib").read_text(encoding="utf-8")
    parsed = {key: fields for _, key, fields in entries_of(text)}
    assert parsed == {key: dict(work.fields) for key, work in bibliography().items()}
    for key, work in bibliography().items():
        fields = work.fields
        assert {"author", "title", "year", "note"} | _NEEDED[work.kind] <= fields.keys(), key
        assert re.match(r"checked against \S|unverified", fields["note"]), key
        assert fields["year"] in key, key
        assert cited(work.short) == [work], work.short
        assert cited(f"see {work.text}") == [work] or not work.doi, key
        assert not re.search(r"[{}]", work.text), key
    dois = [work.doi for work in bibliography().values() if work.doi]
    assert len(dois) == len({each.lower() for each in dois})


@pytest.mark.parametrize("pattern", [_CITATION, _IDENTIFIER], ids=["author and year", "identifier"])
def test_whatever_code_docs_and_data_cite_is_in_it(checkout: Path, pattern: re.Pattern[str]) -> None:
    found = _cited_in(checkout, pattern)
    assert len(found) > 50
    assert sorted({(name, text) for name, text in found if not cited(unquote(text))}) == []


def test_every_sourced_metric_cites_it() -> None:
    assert [name for name, each in METRICS.items() if each.source and not cited(each.source)] == []


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Chuang et al. 2023; Sirbu et al. 2019, van der Eijk (2001)", ["chuang2024", "sirbu2019", "eijk2001"]),
        ("Watts and Strogatz 1998, and once more Watts & Strogatz (1998)", ["watts1998"]),
        ("A. Author (2024). https://doi.org/10.1126/SCIENCE.adq2852.", ["tessler2024"]),
        ("Nobody et al. 1999, Holm 1978, in January 2024", []),
    ],
)
def test_texts_cite_by_author_and_year_or_doi(text: str, keys: list[str]) -> None:
    assert [work.key for work in cited(text)] == keys


def test_the_page_is_what_the_bibliography_says(checkout: Path) -> None:
    page = (checkout / "docs" / "references.md").read_text(encoding="utf-8")
    script = runpy.run_path(str(checkout / "docs" / "references.py"))
    assert script["renewed"](page) == page, "run python docs/references.py"
