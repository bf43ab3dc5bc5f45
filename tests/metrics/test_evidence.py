"""What a result rests on, in words."""

from __future__ import annotations

import pytest

from opinionsim.metrics import (
    EVIDENCE,
    NOT_VALIDATED,
    evidence_of,
    evidence_statement,
    instrument_validation,
    played_by,
)


def test_players_and_equations_are_told_apart() -> None:
    assert played_by(["scripted", "scripted"], ["scripted", "scripted"]) == ""
    assert played_by(["openai:a", "scripted"], ["scripted", "scripted"]) == "agents played by openai:a, scripted"
    assert played_by(["deffuant"], ["equation"]) == "equation: deffuant"
    mixed = played_by(["openai:a", "deffuant", "voter"], ["model", "equation", "equation"])
    assert mixed == "agents played by openai:a; equations: deffuant, voter"


def test_a_run_with_authors_of_several_kinds_says_so_and_that_a_stand_in_may_be_among_them() -> None:
    assert "several kinds" in EVIDENCE["mixed"]
    assert "SCRIPTED STAND-IN" in EVIDENCE["mixed"]
    said = evidence_statement(["human", "mixed", "model", "scripted", "mixed"])
    assert said == " + ".join(EVIDENCE[kind] for kind in ("scripted", "mixed", "model", "human"))


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        (["human", "model", "human"], "human+model"),
        (["model", "equation"], "equation+model"),
        (["human+model", "human"], "human+model"),
        (["human", "scripted"], "mixed"),
        (["human+model", "mixed"], "mixed"),
        (["human"], "human"),
    ],
)
def test_no_stand_in_is_named_where_none_is(kinds: list[str], found: str) -> None:
    assert evidence_of(kinds) == found
    assert ("SCRIPTED" in evidence_statement([evidence_of(kinds)])) == (found == "mixed")


def test_a_scripted_player_is_named_where_the_title_does_not_say_that_it_played() -> None:
    assert played_by(["scripted"], ["mixed"]) == "agents played by scripted"
    assert played_by(["scripted", "scripted"], ["scripted", "mixed"]) == "agents played by scripted"
    assert played_by(["scripted + openai:a"], ["mixed"]) == "agents played by scripted + openai:a"


@pytest.mark.parametrize("evidence", ["model", "mixed", "human+model", "scripted", "equation", "human"])
def test_texts_that_chat_models_may_have_written_are_not_validated(evidence: str) -> None:
    by_models = evidence in ("model", "mixed", "human+model")
    assert instrument_validation(evidence, ["report"]) == (NOT_VALIDATED if by_models else "")
    assert instrument_validation(evidence, ["report", "self-report"]) == (NOT_VALIDATED if by_models else "")
    assert instrument_validation(evidence, ["self-report"]) == instrument_validation(evidence, []) == ""


def test_what_an_audit_found_stands_in_the_place_of_no_validation() -> None:
    assert instrument_validation("model", ["report"], "audited by Ann") == "audited by Ann"
    assert instrument_validation("scripted", ["report"], "audited by Ann") == "audited by Ann"
    assert instrument_validation("model", ["self-report"], "audited by Ann") == ""
