"""Audits and labels in every kind of store."""

from __future__ import annotations

import math
from dataclasses import replace

from opinionsim.store import AuditRow, LabelRow, open_store
from tests.support.rows import completed, design_row, instrument_row

TEXT = {"run_id": "r1", "turn": 0, "generation": 0}
AUDIT = AuditRow("a1", "e1", {"texts": [TEXT, {**TEXT, "turn": 1}]}, made_at=1.0)


def _labels(coder: str, *values: float) -> list[LabelRow]:
    return [LabelRow("a1", coder, "r1", turn, value, "human") for turn, value in enumerate(values)]


def test_labels_come_back_and_later_ones_replace_those_of_their_coder(each_url: str) -> None:
    with open_store(each_url) as store:
        store.save_instrument(instrument_row())
        completed(store, "r1")
        store.save_audit(AUDIT)
        audit = replace(AUDIT, coders={"ann": "human", "ben": "human"})
        store.save_audit(audit, [*_labels("ann", 1, math.nan), *_labels("ben", 0, 2)])
        store.save_audit(audit, _labels("ben", -1, -2))
        assert store.audits() == [audit]
        assert [label.value for label in store.labels("a1") if label.coder == "ben"] == [-1, -2]
        assert [math.isnan(label.value) for label in store.labels("a1") if label.coder == "ann"] == [False, True]
        assert not list(store.damage())


def test_coders_with_too_few_labels_and_labels_without_an_audit_are_named(each_url: str) -> None:
    with open_store(each_url) as store:
        completed(store, "r1")
        store.save_audit(replace(AUDIT, coders={"ann": "human"}), _labels("ann", 1))
        store.save_audit(replace(AUDIT, audit_id="a2"), [label._replace(audit_id="a3") for label in _labels("eve", 1)])
        said = "\n".join(store.damage())
    assert "1 labels of the coder 'ann' in audit a1 are missing" in said
    assert "audits lacks the row a3" in said


def test_people_go_before_models_and_the_last_before_the_first(each_url: str) -> None:
    finding = {"instrument_id": "m1", "model": "scripted", "people": True, "text": "by people"}
    with open_store(each_url) as store:
        store.save_instrument(instrument_row())
        store.save_design(design_row())
        completed(store, "r1")
        (design,) = store.designs()
        for number, (people, text) in enumerate([(True, "first"), (True, "last"), (False, "by a model")]):
            found = ({**finding, "people": people, "text": text},)
            store.save_audit(replace(AUDIT, audit_id=f"a{number}", findings=found, made_at=float(number)))
        assert [row["validation"] for row in store.cells(design)] == ["last"]
