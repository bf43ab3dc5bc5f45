"""From a sample to statements in tables: what coders are given, what is taken from them, and what is kept."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import opinionsim as osim
from opinionsim.audit import (
    Sample,
    asked,
    combined,
    correction_tables,
    draw,
    keep,
    keep_findings,
    labels_of,
    misreadings,
    read_files,
    sample_of,
    score_tables,
    write_files,
)
from opinionsim.classifiers import ChatClassifier, Item, LexiconClassifier
from opinionsim.errors import SpecError, StoreError
from opinionsim.opinions import OpinionEstimates
from opinionsim.running import Invocation, under_way
from opinionsim.specification import load_experiment
from opinionsim.store import Results, open_store
from tests.audit.conftest import SPEC, Rule, fill, rows_of, save
from tests.support.judge import Bench, judge_model


def labelled(results: Results, folder: Path, *rules: Rule, labels: int = 10) -> Sample:
    """A sample labelled by one person a rule."""
    sample = draw(results, labels)
    files = write_files(sample, [f"coder-{number}" for number in range(len(rules))], folder)[:-1]
    for path, rule in zip(files, rules, strict=True):
        fill(path, sample, rule)
    return keep(results, sample, read_files(files, sample), "human")


def higher(value: float) -> str:
    """A label one point above the reading."""
    return f"{min(value + 1, 2):.0f}"


def same(value: float) -> str:
    return f"{value:.0f}"


# -- samples ---------------------------------------------------------------------------------------------------


def test_a_sample_has_as_many_texts_of_each_condition_spread_over_its_runs(results: Results) -> None:
    sample = draw(results, 12)
    assert sample.audit.sample["by"] == ["framing"]
    assert Counter(sample.texts["framing"]) == {"falsehood": 12, "truth": 12}
    assert set(Counter(sample.texts["run_id"]).values()) == {4}
    assert set(sample.texts["probability"]) == {12 / 30}


def test_all_texts_of_a_condition_with_fewer(results: Results) -> None:
    sample = draw(results, 1000, by=[])
    assert (len(sample.texts), set(sample.texts["probability"])) == (60, {1.0})
    # The texts that count are those of the metrics.
    of_reports = results.metrics[results.metrics["kind"] == "report"]
    assert sample.texts.groupby("run_id")["value"].mean().mean() == pytest.approx(of_reports["bias"].mean())


def test_the_same_arguments_give_the_same_sample_and_another_seed_another(results: Results) -> None:
    first, again, other = (draw(results, 10, seed=seed).audit for seed in (1, 1, 2))
    assert (first, first == other) == (again, False)
    with open_store(results.url, write=False) as store:
        assert {each.audit_id for each in store.audits()} == {first.audit_id, other.audit_id}


def test_files_tell_neither_condition_nor_author_nor_reading(results: Results, tmp_path: Path) -> None:
    sample = draw(results, 10)
    paths = write_files(sample, ["ann", "ben"], tmp_path / "files")
    first, second = rows_of(paths[0]), rows_of(paths[1])
    assert list(first[0]) == ["audit", "coder", "item", "claim", "text", "label"]
    orders = [[row["item"] for row in rows] for rows in (first, second)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
    assert {row["label"] for row in first} == {""}
    assert "N  the text expresses no opinion" in paths[-1].read_text(encoding="utf-8")


def test_texts_that_a_spreadsheet_would_run_are_escaped_and_keep_their_labels(results: Results, tmp_path: Path) -> None:
    sample = draw(results, 5)
    odd = ['=HYPERLINK("x")', "a\x0b\u2028b", '"', "a\nb,c", "-1"]
    texts = sample.texts.assign(text=(odd * len(sample.texts))[: len(sample.texts)])
    (path, _) = write_files(replace(sample, texts=texts), ["ann"], tmp_path / "files")
    assert {row["text"] for row in rows_of(path)} == {"'" + odd[0], *odd[1:]}
    fill(path, sample, same)
    found = read_files([path], sample)["ann"]
    assert found[sample.texts["code"]].tolist() == sample.texts["value"].tolist()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"labels": 0}, "labels"),
        ({"labels": 5, "by": ["flavour"]}, "unknown condition 'flavour'; valid: framing"),
        ({"labels": 5, "kind": "probe"}, "no stance was measured on texts of kind 'probe'; give one of report, post"),
    ],
)
def test_samples_that_cannot_be_drawn_are_refused(results: Results, options: dict[str, object], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        draw(results, **options)  # type: ignore[arg-type]
    with open_store(results.url, write=False) as store:
        assert store.audits() == []


def test_conditions_are_by_default_those_of_the_primary_contrast(results: Results) -> None:
    spec = {**SPEC, "name": "declared", "sweep": {**SPEC["sweep"], "cognition.confirmation_bias": ["none", "strong"]}}
    spec |= {"replicates": 1, "analysis": {"contrasts": {"bias": {"of": "strong - none"}}}}
    assert draw(osim.run(load_experiment(spec), results.url), 3).audit.sample["by"] == ["cognition.confirmation_bias"]


def test_where_no_run_is_complete_there_is_no_text(tmp_path: Path) -> None:
    with under_way(Invocation(load_experiment(SPEC), str(tmp_path / "none.sqlite"), only=())):
        pass
    with pytest.raises(SpecError, match=r"^no run is complete, so there is nothing to label \(\d+ pending\): continue"):
        draw(osim.load(str(tmp_path / "none.sqlite")), 5)


def test_of_another_design_a_sample_is_looked_for_where_it_was_drawn(results: Results) -> None:
    draw(results, 5)
    other = osim.run(load_experiment({**SPEC, "seed": 99}), results.url)
    with pytest.raises(StoreError, match=r"design 2 has no texts of audit .*; it belongs to design 1; pass --design 1"):
        sample_of(other)


def test_files_with_labels_are_never_replaced(results: Results, tmp_path: Path) -> None:
    sample = draw(results, 5)
    write_files(sample, ["ann"], tmp_path)
    with pytest.raises(SpecError, match=r"ann\.csv already exists .*; give another name$"):
        write_files(sample, ["ben", "ann"], tmp_path)
    for names in (["a/b"], ["ann", "ann"], []):
        with pytest.raises(SpecError, match="distinct names"):
            write_files(sample, names, tmp_path / "other")


# -- labels ----------------------------------------------------------------------------------------------------


def test_labels_are_kept_with_their_evidence_and_checked(results: Results, tmp_path: Path) -> None:
    sample = labelled(results, tmp_path / "files", same, higher)
    with open_store(results.url, write=False) as store:
        rows = store.labels(sample.audit.audit_id)
        assert not list(store.damage())
    assert Counter((row.coder, row.evidence) for row in rows) == {("coder-0", "human"): 20, ("coder-1", "human"): 20}
    # Labels of a coder are replaced by later ones.
    keep(results, sample, {"coder-1": pd.Series(0.0, index=sample.texts["code"].to_numpy())}, "human")
    assert set(labels_of(results, sample)["coder-1"]) == {0.0}


FAULTS = {
    "missing": ":4: item .* has no label",
    "off the scale": ":4: the label '7' is off the scale; give one of -2, -1, 0, 1, 2, N",
    "foreign": ":4: item 'tfffffff' .* does not belong to audit",
    "twice": ":4: item .* occurs twice",
    "two coders": ":4: the coder is 'eve'",
    "row lost": "1 of 20 items are missing",
    "column lost": "lacks 'label'",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_labels_that_do_not_fit_are_one_error_that_names_file_and_row(
    results: Results, tmp_path: Path, fault: str
) -> None:
    sample = draw(results, 10)
    good, bad, _ = write_files(sample, ["ann", "ben"], tmp_path)
    for path in (good, bad):
        fill(path, sample, same)
    rows = rows_of(bad)
    changes = {
        "missing": {"label": " "},
        "off the scale": {"label": "7"},
        "foreign": {"item": "tfffffff"},
        "twice": {"item": rows[0]["item"]},
        "two coders": {"coder": "eve"},
    }
    rows[2] |= changes.get(fault, {})
    if fault == "row lost":
        del rows[2]
    if fault == "column lost":
        rows = [{name: value for name, value in row.items() if name != "label"} for row in rows]
    save(bad, rows)
    with pytest.raises(SpecError, match=FAULTS[fault]) as error:
        read_files([good, bad], sample)
    assert str(bad) in str(error.value)
    with pytest.raises(SpecError, match="two files"):
        read_files([good, good], sample)
    with pytest.raises(SpecError, match="has no labels yet"):
        labels_of(results, sample)


def test_a_coder_whose_name_is_written_in_two_ways_is_one(results: Results, tmp_path: Path) -> None:
    sample = labelled(results, tmp_path / "files", same)
    (path, _) = write_files(sample, ["Coder-0"], tmp_path)
    fill(path, sample, same)
    with pytest.raises(SpecError, match="'Coder-0' is 'coder-0' elsewhere; use one spelling"):
        read_files([path], sample)


def test_empty_rows_of_a_spreadsheet_are_none(results: Results, tmp_path: Path) -> None:
    sample = draw(results, 5)
    (path, _) = write_files(sample, ["ann"], tmp_path)
    fill(path, sample, same)
    path.write_text(path.read_text(encoding="utf-8") + ",,,,,\n" * 2, encoding="utf-8")
    assert len(read_files([path], sample)["ann"]) == 10


@pytest.mark.parametrize("written", ["1", "+1", "1.0", " 1 "])
def test_labels_as_spreadsheets_write_them(results: Results, tmp_path: Path, written: str) -> None:
    sample = draw(results, 5)
    (path, _) = write_files(sample, ["ann"], tmp_path)
    fill(path, sample, lambda value: written)
    path.write_text(path.read_text(encoding="utf-8"), encoding="utf-8-sig")
    assert set(read_files([path], sample)["ann"]) == {1.0}


def test_labels_are_combined_by_their_median() -> None:
    table = pd.DataFrame({"a": [1.0, 1, None, None], "b": [2.0, 2, None, 1], "c": [2.0, None, 1, 2]})
    assert combined(table).tolist()[:2] == [2, 1.5]
    assert pd.isna(combined(table)[2])
    assert combined(table)[3] == 1.5


# -- what is said of them --------------------------------------------------------------------------------------


def test_tables_say_what_people_found(results: Results, tmp_path: Path) -> None:
    sample = labelled(results, tmp_path / "files", same, labels=30)
    (said,) = keep_findings(results, sample)
    assert said.startswith("audited by labels of 1 person on 60 texts of kind report: mean error 0.00")
    assert "weighted kappa 1.00" in said
    assert set(osim.load(results.url).runs["validation"]) == {said}


def test_texts_without_an_opinion_or_a_reading_are_drawn_and_stand_in_every_statement(results: Results) -> None:
    """Half of the texts of one framing state no opinion, which is read as -2; of the other a fifth cannot be read."""
    reports = results.opinions[results.opinions["kind"] == "report"].groupby(["run_id", "agent"]).tail(1)
    framing = reports["run_id"].map(results.runs.set_index("run_id")["framing"])
    empty, unread = (reports[framing == level][::step].index for level, step in (("truth", 2), ("falsehood", 5)))
    true = results.opinions["value"].where(~results.opinions.index.isin(empty))
    every = results.opinions["agent"].isin(range(10)) & results.opinions["run_id"].isin(set(reports["run_id"]))
    results.opinions.loc[empty, "value"] = -2.0
    lost = results.opinions.loc[unread, ["run_id", "agent"]].apply(tuple, axis=1)
    same_agents = results.opinions[["run_id", "agent"]].apply(tuple, axis=1).isin(set(lost))
    results.opinions.loc[every & same_agents, "value"] = np.nan
    sample = draw(results, 30)
    assert sample.texts["value"].isna().sum() == len(unread) == 6
    keys = ["run_id", "turn"]
    of_people = results.opinions[keys].assign(label=true).set_index(keys)["label"]
    labels = of_people.reindex(pd.MultiIndex.from_frame(sample.texts[keys])).to_numpy()
    sample = keep(results, sample, {"ann": pd.Series(labels, sample.texts["code"].to_numpy())}, "human")
    (said,) = keep_findings(results, sample)
    assert said.startswith("audited by labels of 1 person on 60 texts of kind report, 15 of them without an opinion: ")
    assert "kappa 0." in said
    assert "with no opinion as a category" in said
    agreement, matrices, _ = score_tables(results, sample)
    assert agreement.frame.loc[0, ["n", "placed"]].tolist() == [60, 39]
    assert agreement.frame.loc[0, ["kappa", "weighted_kappa"]].isna().tolist() == [False, True]
    counts = matrices.frame[matrices.frame["texts"] == "all"].set_index("label").filter(like="read")
    assert (counts.to_numpy().sum(), counts.loc["N", "read -2"], counts["read N"].sum()) == (60, 15, 6)
    bias, contrasts, diversity = correction_tables(results, sample, simulations=0)
    runs = sample.texts.assign(label=labels).groupby(["framing", "run_id"])["label"].mean().groupby("framing").mean()
    assert bias.frame.set_index("framing")["corrected"].to_dict() == pytest.approx(runs.to_dict())
    assert contrasts.frame["corrected"].iloc[0] == pytest.approx(runs["truth"] - runs["falsehood"])
    assert any("15 of 60 labels find no opinion" in note for note in diversity.notes)


@pytest.mark.parametrize("silent", [["truth"], ["falsehood", "truth"]], ids=["one condition", "all"])
def test_conditions_of_which_all_labels_find_no_opinion_stay_in_tables(results: Results, silent: list[str]) -> None:
    sample = draw(results, 20)
    read = sample.texts.set_index("code")
    sample = keep(results, sample, {"ann": read["value"].where(~read["framing"].isin(silent))}, "human")
    bias, contrasts, diversity = correction_tables(results, sample, simulations=0)
    shown = {row[0]: row[-1] for row in diversity.rows}
    assert {framing for framing, free in shown.items() if free == "-"} == set(silent)
    assert set(shown) == {"falsehood", "truth"}
    assert diversity.frame["evidence"].notna().all()
    assert contrasts.rows[0][-1] == "-"
    (reason,) = contrasts.frame["no_interval"]
    assert reason.startswith("no run has a value of corrected where framing = ")
    assert any("In 3 runs, no label finds an opinion" in note for note in bias.notes) == (silent == ["truth"])


def test_below_50_texts_only_matrices_are_given(results: Results, tmp_path: Path) -> None:
    few = score_tables(results, labelled(results, tmp_path / "few", same, higher))
    agreement, matrices, errors = few
    assert agreement.frame["weighted_kappa"].isna().all()
    assert "-" in agreement.rows[0]
    whole = matrices.frame[matrices.frame["texts"] == "all"].filter(like="read")
    assert whole.to_numpy().sum() == 20
    assert errors.frame["texts"].tolist() == ["all", "framing=falsehood", "framing=truth"]


def test_coders_stand_beside_the_instrument(results: Results, tmp_path: Path) -> None:
    made = score_tables(results, labelled(results, tmp_path / "files", same, higher, same, labels=30))
    frame = made[0].frame.set_index("of")
    assert frame.loc["coder-0 and coder-2", "weighted_kappa"] == 1
    assert frame.loc["coder-0 and coder-1", "weighted_kappa"] < 1
    assert frame.loc["coder-0 and coder-1 and coder-2", "alpha_interval"] < 1
    assert all("SCRIPTED STAND-IN" in each.title and "SCRIPTED STAND-IN" in each.notes[0] for each in made)


def test_errors_that_differ_between_conditions_are_named(results: Results, tmp_path: Path) -> None:
    sample = draw(results, 30)
    true = sample.texts["value"] - (sample.texts["framing"] == "truth")
    labels = pd.Series(true.clip(-2, 2).to_numpy(), index=sample.texts["code"])
    sample = keep(results, sample, {"ann": labels}, "human")
    assert any("Errors differ between conditions" in note for note in score_tables(results, sample)[2].notes)


def test_models_are_a_check_of_consistency_and_correct_nothing(results: Results) -> None:
    sample = draw(results, 10)
    sample = keep(results, sample, {"judge": asked(sample, ChatClassifier(model=judge_model(Bench())))}, "model")
    (said,) = keep_findings(results, sample)
    assert said.startswith("instrument not validated on this model's text; consistency with labels of the model judge")
    assert "not of validity" in score_tables(results, sample)[0].notes[1]
    with pytest.raises(SpecError, match="no labels from people; add them with"):
        correction_tables(results, sample)


def test_errors_of_the_instrument_are_those_that_people_found(results: Results, tmp_path: Path) -> None:
    sample = labelled(results, tmp_path / "files", same, labels=30)
    (matrix, least, most), said = misreadings(results)
    assert said == f"audit {sample.audit.audit_id}, 60 labels"
    for each in (matrix, least, most):
        np.testing.assert_allclose(each.sum(axis=1), 1.0)
        assert (each >= 0).all()
    assert (np.diag(least) > np.diag(matrix)).all()
    assert (np.diag(matrix) > np.diag(most)).all()
    assert np.diag(most).min() >= 0.5
    assert np.median(np.diag(most)) > 0.8
    labelled(results, tmp_path / "others", higher, labels=31)
    (shifted, *_), _ = misreadings(results)
    assert (np.diag(shifted, -1) > 0.5).any()


def test_models_do_not_say_how_an_instrument_errs(results: Results) -> None:
    sample = draw(results, 10)
    keep(results, sample, {"judge": sample.texts.set_index("code")["value"]}, "model")
    with pytest.raises(SpecError, match="no labels from people"):
        misreadings(results)


def test_corrected_numbers_stand_beside_raw_ones(results: Results, tmp_path: Path) -> None:
    sample = labelled(results, tmp_path / "files", same, labels=30)
    bias, contrasts, diversity = correction_tables(results, sample, simulations=0)
    assert bias.frame["corrected"].tolist() == pytest.approx(bias.frame["raw"].tolist())
    assert contrasts.frame["contrast"].tolist() == ["truth less falsehood"]
    assert diversity.frame["free"].tolist() == pytest.approx(diversity.frame["raw"].tolist(), abs=0.1)


def test_mirrored_claims_stand_for_the_names_of_masked_ones(results: Results, tmp_path: Path) -> None:
    """Scripted agents call every claim Theory XYZ, of which the rules of the lexicon read the same for either side."""
    sample = labelled(results, tmp_path / "files", same)
    asked_for: list[tuple[str, str]] = []

    def classify(self: LexiconClassifier, items: Sequence[Item]) -> OpinionEstimates:
        asked_for.extend((item.text, item.claim.framing) for item in items if item.claim)
        told = [2.0 if item.claim and item.claim.text in item.text else -2.0 for item in items]
        return OpinionEstimates.from_probabilities(self.scale, np.eye(5)[[self.scale.index(value) for value in told]])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LexiconClassifier, "classify", classify)
        table = score_tables(results, sample, mirror=True)[-1]
    assert table.frame[["n", "opposite"]].iloc[0].tolist() == [20, 1.0]
    assert not any("XYZ" in text for text, _ in asked_for)
    assert Counter(framing for _, framing in asked_for) == {"truth": 20, "falsehood": 20}
    assert "In 20 texts, the claim replaces a stand-in name" in table.notes[1]


# -- what becomes of them --------------------------------------------------------------------------------------


def test_texts_of_runs_that_were_begun_anew_do_not_count(results: Results, tmp_path: Path) -> None:
    sample = labelled(results, tmp_path / "files", same)
    gone = sample.texts["run_id"].iloc[0]
    with open_store(results.url) as store:
        store.forget([gone])
        assert not list(store.damage())
    again = osim.load(results.url)
    assert gone not in set(sample_of(again).texts["run_id"])


def test_labels_that_vanish_are_named(results: Results, tmp_path: Path) -> None:
    sample = labelled(results, tmp_path / "files", same)
    path = results.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM labels WHERE turn = (SELECT max(turn) FROM labels)")
        connection.execute("UPDATE labels SET value = value + 1 WHERE turn = (SELECT min(turn) FROM labels)")
    with open_store(results.url, write=False) as store:
        said = "\n".join(store.damage())
    assert "labels" in said
    with pytest.raises(StoreError, match="in table labels"):
        labels_of(results, sample)


def test_an_unknown_sample_is_one_error(results: Results) -> None:
    with pytest.raises(StoreError, match="draw one with"):
        sample_of(results)
    known = draw(results, 5).audit.audit_id
    with pytest.raises(StoreError, match=f"valid: {known}"):
        sample_of(results, "a0000000")
