"""Hand-coding in the browser: the section of a page of results, the page of each coder, and its file."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import lru_cache
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import Any

from opinionsim.audit._sample import COLUMNS, NO_OPINION, require_names, sample_of
from opinionsim.audit._score import score_tables
from opinionsim.errors import SpecError
from opinionsim.foundation.outputs import put
from opinionsim.foundation.spreadsheets import unescaped
from opinionsim.foundation.tables import number_in, read_table
from opinionsim.foundation.templates import filled
from opinionsim.metrics import SELF_REPORT, condition_axes
from opinionsim.opinions import OpinionScale
from opinionsim.store import AuditRow, Results, find_design, open_store, writer_of
from opinionsim.studio import PageAddress

#: Name of a coder's file without its suffix, as `audit sample` makes it: sample and coder.
_NAME = re.compile(r"(a[0-9a-f]{7})-(\w[\w-]*)")
#: Keys of the points, lowest first; further points have none.
_KEYS = "1234567890"


# -- what is shown -------------------------------------------------------------------------------------------


def section(results: Results, asked: PageAddress) -> str:
    """A form that draws a sample, the coders of each sample, and what came of the labels."""
    if not results.run_ids or (results.metrics["kind"] == SELF_REPORT).all():
        return ""
    design = results.design_row.experiment_id, results.design
    with open_store(results.url, write=False) as opened:
        audits = [each for each in opened.audits() if (each.experiment_id, each.sample["design"]) == design]
    scored = [each.audit_id for each in audits if each.coders]
    tables = score_tables(results, sample_of(results, scored[-1])) if scored else []
    if not (tables or asked.may_write):
        return ""
    return filled("opinionsim.audit", "coding.html", asked=asked, axes=condition_axes(results.runs), tables=tables)


def page(asked: PageAddress) -> str:
    """The page of a coder, or the list of all coders.

    Raises
    ------
    SpecError
        If there is no such coder, or its file cannot be read.
    """
    if not asked.may_write:
        raise SpecError("A viewer changes nothing, so texts cannot be coded in it; use `opinionsim studio`.")
    if "coder" not in asked.query:
        rows = [_row(asked, name) for name in _names(asked.url)]
        samples = {audit: list(own) for audit, own in groupby(rows, lambda row: row["audit"])}
        return filled("opinionsim.audit", "coders.html", asked=asked, samples=samples)
    file, told = CoderFile(asked.url, asked.query["coder"]), asked.query.get("at", "")
    at, last = int(told[:9]) if told.isdecimal() else 0, len(file.items)
    place = at - 1 if 0 < at <= last else file.following()
    choices = [*zip(file.points, file.anchors, _KEYS.ljust(len(file.points)), strict=False)]
    choices.append((NO_OPINION, "no opinion", NO_OPINION))
    return filled("opinionsim.audit", "coder.html", asked=asked, file=file, place=place, last=last, choices=choices)


def _row(asked: PageAddress, name: str) -> dict[str, Any]:
    """A coder as the list shows it; without a `file` if that cannot be read."""
    address = PageAddress(asked.store, asked.url, {"coder": name}).address("section/coding")
    audit, _, coder = name.partition("-")
    told = {"name": name, "audit": audit, "coder": coder, "address": address, "link": asked.links.get(address, "")}
    try:
        return {**told, "file": CoderFile(asked.url, name)}
    except SpecError as error:
        return {**told, "problem": str(error)}


def act(asked: PageAddress, given: Mapping[str, str]) -> dict[str, Any]:
    """Keep a label, make a link for a coder, draw a sample, or score labels.

    Raises
    ------
    SpecError
        If what was sent does not fit, or another process writes the store.
    """
    if "coder" in asked.query:
        # A guest comes no further than here.
        file = CoderFile(asked.url, asked.query["coder"])
        place = file.following(file.keep(given.get("item", ""), given.get("label", "")))
        return {"query": {"at": "" if place is None else place + 1}}
    if "guest" in given:
        return {"guest": {"coder": CoderFile(asked.url, given["guest"]).path.stem}}
    store = asked.url.removeprefix("sqlite:///")
    if number := writer_of(Path(store)):
        raise SpecError(f"Process {number} is writing the store of this study; stop it, or wait for it to end.")
    if "score" in given:
        files = [CoderFile(asked.url, name) for name in _names(asked.url) if name.startswith(f"{given['score']}-")]
        if not files or any(file.left for file in files):
            raise SpecError("Not all coders of this sample are done.")
        of, paths = files[0].audit, (str(file.path) for file in files)
        told = {"audit": of.audit_id, "experiment": of.experiment_id, "design": of.sample["design"]}
        return {"command": ["audit", "score", store, *paths, *(f"--{name}={value}" for name, value in told.items())]}
    coders = [name.strip() for name in given.get("coders", "").split(",")]
    require_names(coders)
    told = {"labels": given.get("labels"), "coders": ",".join(coders), "by": given.get("by"), "out": _folder(asked.url)}
    told |= {"experiment": asked.query.get("experiment"), "design": asked.design}
    return {"command": ["audit", "sample", store, *(f"--{name}={value}" for name, value in told.items() if value)]}


# -- the files of coders -------------------------------------------------------------------------------------


@lru_cache(32)
def _drawn(url: str, audit_id: str) -> tuple[AuditRow, OpinionScale]:
    """A sample and the scale of its labels, which never change; no frame is loaded for them."""
    with open_store(url, write=False) as opened:
        audit = next((each for each in opened.audits() if each.audit_id == audit_id), None)
        if audit is None:
            raise SpecError(f"The store has no sample {audit_id}, so its files cannot be coded here.")
        runs = find_design(opened, audit.experiment_id, audit.sample["design"])[0].runs
        read_by = {run.run_id: run.instrument_id for run in reversed(runs)}[audit.sample["texts"][0]["run_id"]]
        found = next(each for each in opened.instruments() if each.instrument_id == read_by)
    return audit, OpinionScale(found.points, found.labels)


def _folder(url: str) -> Path:
    """The folder beside a store for the files of its coders."""
    store = Path(url.removeprefix("sqlite:///"))
    return store.with_name(f"{store.stem}-coding")


def _names(url: str) -> list[str]:
    """Names of the files of all coders, without the suffix."""
    return sorted(path.stem for path in _folder(url).glob("*.csv") if _NAME.fullmatch(path.stem))


class CoderFile:
    """The file of a coder as it stands now.

    Parameters
    ----------
    url : str
        Address of the store.
    name : str
        Name of the file, without its suffix.

    Attributes
    ----------
    path : Path
        The file.
    audit : AuditRow
        The sample.
    coder : str
        Name of the coder.
    points, anchors : list of str
        The scale, lowest first.
    items : list of dict
        Cells of each item by column, in the order of the file.
    labels : list of str
        The label of each item: a point or :data:`NO_OPINION`; empty where it has no valid one.
    left : int
        Number of items without a label.

    Raises
    ------
    SpecError
        If there is no such file, it is damaged, or it does not have the items of its sample.
    """

    def __init__(self, url: str, name: str) -> None:
        if name not in _names(url):
            raise SpecError(f"There is no coder {name!r:.80} here.")
        self.path, (audit_id, _, self.coder) = _folder(url) / f"{name}.csv", name.partition("-")
        self.audit, scale = _drawn(url, audit_id)
        self.points, self.anchors = [*map(str, scale.points)], scale.labels
        table = read_table(self.path, needed=COLUMNS)
        # Spreadsheets may save empty rows among the others.
        self._rows = [list(table.header), *filter(any, table.rows)]
        self.items = [dict(zip(table.header, map(unescaped, row), strict=True)) for row in self._rows[1:]]
        found = sorted((each["audit"], each["coder"], each["item"]) for each in self.items)
        if found != sorted((audit_id, self.coder, text["code"]) for text in self.audit.sample["texts"]):
            raise SpecError(f"{self.path.name} does not have each item of sample {audit_id} once for {self.coder}.")
        self.labels = [self._label(each["label"], comma=table.comma) for each in self.items]
        self.left = self.labels.count("")

    def _label(self, mark: str, *, comma: bool) -> str:
        number = number_in(mark, comma=comma)
        label = mark.upper() if number is None else f"{number:g}"
        return label if label in (*self.points, NO_OPINION) else ""

    def following(self, place: int = -1) -> int | None:
        """The next item without a label behind a place, or else the first one; None if all have labels."""
        unlabelled = [n for n, label in enumerate(self.labels) if not label]
        return next((n for n in unlabelled if n > place), next(iter(unlabelled), None))

    def keep(self, code: str, label: str) -> int:
        """Write the label of an item into the file; return the item's place.

        Raises
        ------
        SpecError
            If the sample has no such item, or the scale no such point.
        """
        place = next((n for n, each in enumerate(self.items) if each["item"] == code), None)
        if place is None or label not in (*self.points, NO_OPINION):
            raise SpecError(f"The label {label!r:.20} of item {code!r:.20} does not fit this sample.")
        self._rows[place + 1][self._rows[0].index("label")] = self.labels[place] = label
        content = StringIO(newline="")
        csv.writer(content, lineterminator="\n").writerows(self._rows)
        put(self.path, lambda part: part.write_text(content.getvalue(), encoding="utf-8", newline=""))
        return place
