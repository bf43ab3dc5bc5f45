from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from opinionsim import plots, prompts
from opinionsim.analysis import Table, missing_tables, reply_table, table, table1, table2, tables
from opinionsim.errors import SpecError
from opinionsim.metrics import EVIDENCE, NOT_VALIDATED, run_metrics
from opinionsim.store import load
from tests.support.examples import few
from tests.support.frames import Frames, final, make, one_run, opinion_rows, run_row, study
from tests.support.instruments import assert_same, beside, measured, moderated, plain
from tests.support.running import SMALL, carry_out, changed

#: What is said of runs that carry an error although they are complete.
OUTDATED = "an earlier wording of the prompts than the current one, or could not be coded; see runs.error"

PACK = Path(prompts.__file__).parent / "default"
FRAMINGS = ("falsehood", "truth")
BIASES = ("none", "weak", "strong")
MEMORIES = ("reflective", "cumulative")
TOPICS = {"flat-earth": "science", "palmistry": "science", "moon-landing": "history"}


def _study(steps: int = 40) -> Frames:
    conditions = [
        {"topic": topic, "category": category, "framing": f, "confirmation_bias": b, "memory": m}
        for topic, category in TOPICS.items()
        for f in FRAMINGS
        for b in BIASES
        for m in MEMORIES
    ]
    return study(conditions, steps=steps)


def _metrics(frames: Frames, ddof: int = 0) -> pd.DataFrame:
    return run_metrics(frames.runs, frames.opinions, frames.agents, ddof)


def _of_finals(finals: list[tuple[dict[str, object], list[float]]]) -> Frames:
    """One run a condition, whose agents end at the given opinions."""
    rows = [run_row(f"r{i}", **({"cell": f"c{i}", "n_agents": len(end)} | row)) for i, (row, end) in enumerate(finals)]
    opinions = [new for row, (_, end) in zip(rows, finals, strict=True) for new in opinion_rows(row, final(end))]
    return make(rows, [0] * 10, opinions)


def _cells(made: Table, name: str, above: str = "") -> list[str]:
    """The printed column under a heading, and under another heading above it."""
    (place,) = [i for i, names in enumerate(zip(*made.header, strict=True)) if (names[-1], names[0]) == (name, above)]
    return [row[place] for row in made.rows]


def _ends(made: Table) -> list[str]:
    return _cells(made, "end [95 % CI]", "mean opinion")


def test_layout_of_table_1() -> None:
    frames = _study()
    made = table1(frames.runs, _metrics(frames))
    assert made.header == (
        ("", "", "cumulative", "cumulative", "reflective", "reflective"),
        ("", "", "mean opinion", "diversity", "mean opinion", "diversity"),
        ("framing", "confirmation bias", "± SE", "± SE", "± SE", "± SE"),
    )
    assert [row[:2] for row in made.rows] == [
        ("falsehood", "none"),
        ("", "weak"),
        ("", "strong"),
        ("truth", "none"),
        ("", "weak"),
        ("", "strong"),
    ]
    assert len(made.frame) == 12
    assert set(made.frame["n"]) == {3}


def test_cells_are_mean_and_population_standard_error_over_topics() -> None:
    frames = _of_finals([({"topic": "a"}, [2.0] * 8 + [-2.0] * 2), ({"topic": "b"}, [-2.0] * 8 + [2.0] * 2)])
    made = table1(frames.runs, _metrics(frames))
    # B is 1.2 and -1.2: mean 0, population SD 1.2, over the square root of two topics 0.85.
    assert made.rows == (("falsehood", "none", "0.00 ± 0.85", "1.60 ± 0"),)
    assert made.frame["bias_se"].iloc[0] == pytest.approx(1.2 / math.sqrt(2))
    sample = table1(frames.runs, _metrics(frames, ddof=1))
    assert sample.rows[0][3] == "1.69 ± 0"
    assert any("ddof 1" in note for note in sample.notes)


def test_negative_means_carry_a_minus_sign_and_zero_none() -> None:
    frames = _of_finals([({"framing": "falsehood"}, [-1.0, -2.0]), ({"framing": "truth"}, [0.0, -0.0])])
    cells = [row[2] for row in table1(frames.runs, _metrics(frames)).rows]
    assert cells == ["\N{MINUS SIGN}1.50", "0.00"]


def test_layout_of_table_2() -> None:
    frames = _study()
    made = table2(frames.runs, _metrics(frames))
    assert made.header[-1][:3] == ("category", "framing", "confirmation bias")
    assert [row[0] for row in made.rows] == ["science", *[""] * 5, "history", *[""] * 5]
    assert made.frame.groupby("category")["n"].unique().map(list).to_dict() == {"history": [1], "science": [2]}
    # One topic says nothing about spread.
    assert all("±" not in cell for cell in made.rows[6][3:])


def test_notes_say_what_the_numbers_rest_on() -> None:
    frames = _study()
    frames.runs.loc[[0, 1], "status"] = "incomplete"
    frames.runs.loc[2, "status"] = "pending"
    made = table1(frames.runs, _metrics(frames))
    notes = "\n".join(made.notes)
    assert made.notes[0] == f"Evidence: {EVIDENCE['scripted']}."
    assert made.title.startswith(EVIDENCE["scripted"])
    for part in (
        "ddof 0",
        "population SD/\N{SQUARE ROOT}n over topics (n = 2 to 3)",
        "Runs used: 33 complete. Excluded (not complete): 2 incomplete, 1 pending.",
        "Agents never measured: 5 of 330. Texts without an opinion: 40 of 1,320 (40 off scale).",
        "texts of kind report, coded by lexicon",
    ):
        assert part in notes


def test_counts_of_what_is_missing_stand_in_the_notes() -> None:
    frames = _of_finals([({"framing": "falsehood"}, [1.0, math.nan]), ({"framing": "truth"}, [math.nan, math.nan])])
    made = table1(frames.runs, _metrics(frames))
    notes = "\n".join(made.notes)
    assert "Agents never measured: 3 of 4. Texts without an opinion: 3 of 4 (3 off scale)." in notes
    assert "1 of 2 runs have no mean and no diversity, because fewer than 50 % of the agents" in notes
    assert made.rows[1][2:] == ("\N{EN DASH}", "\N{EN DASH}")


def test_the_causes_of_missing_values_are_told_apart_and_neutral_is_none_of_them() -> None:
    conditions = ["answered", "answered", "refused", "refused", "truncated", "empty"]
    texts = [(turn, 1, turn, math.nan if turn else 0.0, "report", why) for turn, why in enumerate(conditions)]
    frames = one_run(texts, [0] * 6)
    made = table(frames.runs, _metrics(frames))
    # One of six is too few for a mean, and the bounds are of all.
    assert _ends(made) == ["\N{EN DASH}"]
    assert _cells(made, "withheld") == ["1"]
    counted = "Texts without an opinion: 5 of 6 (2 refused, 1 empty, 1 cut off, 1 off scale)."
    assert any(note.endswith(counted) for note in made.notes)
    causes = {"refused": "33.3%", "empty": "16.7%", "cut off": "16.7%", "off scale": "16.7%", "unmeasured": "83.3%"}
    assert {cause: _cells(made, cause)[0] for cause in causes} == causes
    assert "skipped" not in made.header[-1]
    assert _cells(made, "mean within") == ["\N{MINUS SIGN}1.67 to 1.67"]
    rates = made.frame[["missing_rate", "refused_rate", "empty_rate", "truncated_rate"]].iloc[0]
    assert rates.tolist() == [5 / 6, 2 / 6, 1 / 6, 1 / 6]
    whole = one_run(final([1.0, 0.0]), [0, 0])
    nothing = table(*_of(whole))
    assert "Agents never measured: 0 of 2. Texts without an opinion: 0 of 2." in nothing.notes
    assert nothing.header[-1] == ("runs", "start", "end [95 % CI]", "start", "end [95 % CI]")
    assert not any(note.startswith("Missing") for note in nothing.notes)


def _of(frames: Frames) -> tuple[pd.DataFrame, pd.DataFrame]:
    return frames.runs, _metrics(frames)


def test_what_is_known_of_the_instrument_stands_in_notes_and_numbers() -> None:
    frames = study([{"framing": f, "evidence": "model", "validation": NOT_VALIDATED} for f in FRAMINGS], steps=10)
    made = table1(*_of(frames))
    assert f"Validation of this instrument: {NOT_VALIDATED}." in made.notes
    assert set(made.frame["validation"]) == {NOT_VALIDATED}
    audited = "agrees with human labels (kappa 0.8)"
    frames.runs["validation"] = [NOT_VALIDATED, audited]
    mixed = table1(*_of(frames))
    assert f"Validation of this instrument: {NOT_VALIDATED} (1 of 2 runs); {audited} (1 of 2 runs)." in mixed.notes
    assert mixed.frame["validation"].tolist() == [NOT_VALIDATED, audited]
    frames.opinions["kind"] = "self-report"
    spoken = table1(*_of(frames))
    assert not any("Validation of this instrument" in note for note in spoken.notes)
    assert set(spoken.frame["validation"]) == {""}
    assert any(note.startswith("Instrument: self-reports,") for note in spoken.notes)


def test_self_reports_are_the_last_choice() -> None:
    texts = [(0, 1, 0, 2.0, "self-report"), (1, 1, 0, 1.0, "probe")]
    frames = one_run(texts, [0])
    assert _ends(table(*_of(frames))) == ["1.00"]
    assert _ends(table(*_of(frames), kind="self-report")) == ["2.00"]


def test_complete_runs_without_such_texts_are_counted() -> None:
    frames = study([{"framing": "falsehood"}, {"framing": "truth"}], steps=10)
    frames.opinions.loc[frames.opinions["run_id"] == "r1", "kind"] = "post"
    notes = table1(frames.runs, _metrics(frames)).notes
    assert "Complete runs left out because they have no text of kind report: 1." in notes


def test_text_is_aligned_and_begins_with_the_evidence() -> None:
    frames = _study()
    lines = table1(frames.runs, _metrics(frames)).to_text().splitlines()
    assert lines[0].startswith(EVIDENCE["scripted"])
    rules = [i for i, line in enumerate(lines) if line and not line.strip("-")]
    body = lines[rules[1] + 1 : rules[2]]
    assert len(body) == 6
    assert {len(line) for line in body} == {len(lines[rules[0]])}
    assert lines[rules[2] + 1] == f"Evidence: {EVIDENCE['scripted']}."


def test_csv_carries_evidence_and_the_unrounded_numbers(tmp_path: Path) -> None:
    frames = _study()
    made = table2(frames.runs, _metrics(frames))
    path = made.to_csv(tmp_path / "new" / "table.csv")
    read = pd.read_csv(path)
    assert set(read["evidence"]) == {"scripted"}
    assert "category,framing" in path.read_text().splitlines()[0]
    # An empty text is a missing one in a CSV file.
    assert read.pop("validation").isna().all()
    expected = made.frame.drop(columns="validation")
    pd.testing.assert_frame_equal(read, expected, check_dtype=False, rtol=1e-12)
    (tmp_path / "file").write_text("")
    with pytest.raises(SpecError, match="cannot write"):
        made.to_csv(tmp_path / "file" / "table.csv")


def test_general_table_has_a_row_a_condition() -> None:
    frames = study(
        [{"memory": m, "population.size": size} for m in MEMORIES for size in (20, 5)], replicates=2, steps=10
    )
    made = table(frames.runs, _metrics(frames))
    assert made.header[0][:7] == ("", "", "", "mean opinion", "mean opinion", "diversity", "diversity")
    assert made.header[1][:7] == ("memory", "size", "runs", "start", "end [95 % CI]", "start", "end [95 % CI]")
    assert [row[:2] for row in made.rows] == [("cumulative", "5"), ("", "20"), ("reflective", "5"), ("", "20")]
    assert set(_cells(made, "runs")) == {"2"}
    lacking = "too few independent units (2 blocks), at least 3 are needed."
    assert any(note.startswith("No interval in any row") and note.endswith(lacking) for note in made.notes)


def test_a_table_of_one_condition_and_one_of_topics() -> None:
    one = study([{}], steps=10)
    assert table(one.runs, _metrics(one)).n_labels == 0
    topics = study([{"topic": topic} for topic in TOPICS], steps=10)
    assert [row[0] for row in table(topics.runs, _metrics(topics)).rows] == list(TOPICS)


def _titles(made: list[Table]) -> list[str]:
    return [one.title.split(" | ")[1].split(":")[0] for one in made]


def test_tables_that_fit_the_experiment() -> None:
    # Long enough that everybody is measured.
    frames = _study(steps=150)
    frames.opinions["value"] = frames.opinions["value"].fillna(0)
    assert _titles(tables(frames.runs, _metrics(frames))) == ["Opinions by condition"]
    assert _titles(tables(frames.runs, _metrics(frames), as_published=True)) == ["Table 1", "Table 2"]
    frames.opinions.loc[0, "value"] = math.nan
    whole = ["Table 1", "Table 2", "Opinions by condition"]
    assert _titles(tables(frames.runs, _metrics(frames), as_published=True)) == whole
    quick = study([{"framing": f, "confirmation_bias": b} for f in FRAMINGS for b in BIASES], steps=10)
    assert _titles(tables(quick.runs, _metrics(quick))) == ["Opinions by condition"]
    other = study([{"framing": f, "world": w} for f in FRAMINGS for w in ("closed", "open")], steps=10)
    assert _titles(tables(other.runs, _metrics(other))) == ["Opinions by condition"]


def test_evidence_of_different_kinds_shares_no_row_and_not_the_tables_of_the_study() -> None:
    frames = study([{"framing": f, "evidence": e} for f in FRAMINGS for e in ("model", "scripted")], steps=10)
    with pytest.raises(SpecError, match="model, scripted"):
        table1(frames.runs, _metrics(frames))
    (made,) = tables(frames.runs, _metrics(frames))
    assert [row[:2] for row in made.rows] == [
        ("falsehood", "model"),
        ("", "scripted"),
        ("truth", "model"),
        ("", "scripted"),
    ]
    assert EVIDENCE["scripted"] in made.title


def test_rows_stand_in_the_order_of_the_specification(tmp_path: Path) -> None:
    levels = ["strong", "none", "weak"]
    _, results = carry_out(
        changed(SMALL, sweep={"cognition.confirmation_bias": levels}), str(tmp_path / "results.sqlite")
    )
    (given,) = tables(results.ordered_runs, results.metrics)
    assert _cells(given, "confirmation bias") == levels
    (other,) = tables(results.runs, results.metrics)
    assert _cells(other, "confirmation bias") == list(BIASES)
    key = "confirmation_bias"
    assert_same(
        given.frame.astype({key: str}).set_index(key).sort_index(),
        other.frame.astype({key: str}).set_index(key).sort_index(),
    )


def test_start_is_what_agents_were_assigned_and_the_end_has_an_interval() -> None:
    ends = [({"replicate": 0}, [1.0] * 10), ({"replicate": 1}, [1.5] * 10), ({"replicate": 2}, [1.0] * 9 + [2.0])]
    frames = _of_finals([(row | {"cell": "c0"}, end) for row, end in ends])
    frames.agents["assigned_opinion"] = -1.0
    made = table(*_of(frames))
    assert _cells(made, "start", "mean opinion") == ["\N{MINUS SIGN}1.00"]
    assert _cells(made, "start", "diversity") == ["0.00"]
    # Means 1, 1.5 and 1.1: mean 1.2, sample SD 0.2646, over the square root of three 0.1528, times t of 2 and 97.5 %.
    assert _ends(made) == ["1.20 [0.54, 1.86]"]
    assert made.frame[["bias_ci_low", "bias_ci_high"]].iloc[0].tolist() == pytest.approx(
        [1.2 - 0.6572, 1.2 + 0.6572], abs=1e-4
    )
    assert (
        "Interval: 95% confidence, about these topics only. Independent unit: block (3 blocks). Method: t over blocks."
        in made.notes
    )
    published = table(*_of(frames), as_published=True)
    # As published: population SD 0.216, over the square root of three runs 0.125.
    assert _cells(published, "end ± SE", "mean opinion") == ["1.20 ± 0.12"]
    (said,) = [note for note in published.notes if note.startswith("± SE")]
    assert said.startswith("± SE: as published, population SD/\N{SQUARE ROOT}n over blocks (n = 3)")
    assert "bias_se" not in made.frame


def test_intervals_of_tables_end_where_the_scale_does() -> None:
    """Means 0, 1, 1 with an SD of 0.577: t reaches from -0.77 to 2.10; diversities 0, 0, 1 from -1.10 to 1.77."""
    ends = [[0.0] * 10, [1.0] * 10, [0.0] * 5 + [2.0] * 5]
    frames = _of_finals([({"replicate": number, "cell": "c0"}, end) for number, end in enumerate(ends)])
    row = table(*_of(frames)).frame.iloc[0]
    assert row[["bias_ci_low", "bias_ci_high"]].tolist() == pytest.approx([-0.7676, 2.0], abs=1e-4)
    assert row[["diversity_ci_low", "diversity_ci_high"]].tolist() == pytest.approx([0.0, 1.7676], abs=1e-4)


def test_no_line_is_wider_than_100_columns_and_no_cell_is_lost() -> None:
    long = {
        name: [f"{name} {words} with a description of its own that goes on" for words in ("one", "two")]
        for name in ("interaction.network", "population.shown", "model.options")
    }
    conditions = [dict(zip(long, levels, strict=True)) for levels in zip(*long.values(), strict=True)]
    frames = study([dict(each) for each in conditions], replicates=2, steps=10)
    frames.opinions.loc[::3, "status"] = "refused"
    frames.opinions.loc[::3, "value"] = math.nan
    made = table(*_of(frames))
    text = made.to_text()
    assert max(map(len, text.splitlines())) <= 100
    words = text.split()
    for cell in [*made.header[-1], *(cell for row in made.rows for cell in row[made.n_labels :])]:
        assert set(cell.split()) <= set(words)
    # Each part has a rule above and below its head, and names its rows.
    rules = sum(not line.strip("-") for line in text.splitlines())
    assert sum(re.match("network +shown", line) is not None for line in text.splitlines()) == (rules - 1) / 2 > 1


def test_words_of_labels_stay_whole_and_names_are_folded_behind_their_marks() -> None:
    finding = "cognition.confirmation_bias=strong, interaction.network=watts-strogatz"
    candidates = ["hegselmann-krause", "friedkin-johnsen"]
    labels = {"cell": [finding] * 2, "candidate": candidates, "finding": ["undecided"] * 2}
    numbers = {f"number {place} of the candidate": [1.5, 2.5] for place in range(6)}
    made = Table.of("Findings", pd.DataFrame({**labels, **numbers, "evidence": "scripted"}), [*labels])
    text = made.to_text()
    assert max(map(len, text.splitlines())) <= 100
    parts = {"cognition.", "bias=strong,", "confirmation_", "interaction.", "network=watts-", "strogatz", "undecided"}
    assert parts | {"hegselmann-", "krause", "friedkin-johnsen"} <= set(text.split())


@pytest.mark.parametrize(
    ("conditions", "status", "kind", "message"),
    [
        ([{"world": "open"}, {"world": "closed"}], "complete", None, r"differ in world \(closed, open\)"),
        ([{}], "incomplete", None, "nothing to tabulate"),
        ([{}], "complete", "post", "kind 'post'; give one of report"),
    ],
)
def test_what_cannot_be_tabulated_is_named(
    conditions: list[dict[str, str]], status: str, kind: str | None, message: str
) -> None:
    frames = study(conditions, steps=10)
    with pytest.raises(SpecError, match=message):
        table1(frames.runs.assign(status=status), _metrics(frames), kind)


def _of_sweep(folder: Path, sweep: object, **values: object) -> Table:
    _, results = carry_out(changed(SMALL, sweep=sweep, **values), str(folder / "results.sqlite"))
    (made,) = tables(results.ordered_runs, results.metrics)
    return made


def test_prompt_packs_and_scales_that_are_swept_have_rows_of_their_own(tmp_path: Path) -> None:
    pack = tmp_path / "terse"
    shutil.copytree(PACK, pack)
    made = _of_sweep(tmp_path, {"prompts": ["default", str(pack)]})
    assert set(_cells(made, "prompts")) == {"default", str(pack)}
    assert _cells(made, "runs") == ["1", "1"]
    scales = [{"points": [-1, 0, 1], "label": "short"}, {"points": [-2, -1, 0, 1, 2], "label": "long"}]
    made = _of_sweep(tmp_path, {"scale": scales})
    assert _cells(made, "scale") == ["short", "long"]
    assert _cells(made, "runs") == ["1", "1"]


def test_seeds_are_averaged_over(tmp_path: Path) -> None:
    made = _of_sweep(tmp_path, {"seed": [1, 2, 3]})
    assert _cells(made, "runs") == ["3"]
    assert any("Independent unit: block (3 blocks)" in note for note in made.notes)


def test_a_label_is_shown_once_under_the_name_of_its_path(tmp_path: Path) -> None:
    interactions = [
        {"kind": "dyadic", "network": "ring", "steps": 6, "label": "whispers"},
        {"kind": "broadcast", "network": "complete", "steps": 2, "label": "everybody hears"},
    ]
    made = _of_sweep(tmp_path, {"interaction": interactions})
    assert made.header[-1][:2] == ("interaction", "runs")
    assert _cells(made, "interaction") == ["whispers", "everybody hears"]


def test_headings_that_would_repeat_are_whole_paths() -> None:
    frames = study([{"population.size": s, "audience.size": a} for s in (1, 2) for a in (3, 4)], steps=10)
    assert table(frames.runs, _metrics(frames)).header[-1][:2] == ("population.size", "audience.size")


def test_runs_that_answer_an_earlier_wording_are_counted() -> None:
    frames = study([{"framing": f} for f in FRAMINGS], steps=10)
    assert not any("earlier wording" in note for note in table1(frames.runs, _metrics(frames)).notes)
    frames.runs["error"] = ["run r0: the prompts were edited", ""]
    notes = table1(frames.runs, _metrics(frames)).notes
    assert f"1 of the runs used answers {OUTDATED}." in notes
    frames.runs["error"] = "edited"
    notes = table1(frames.runs, _metrics(frames)).notes
    assert f"2 of the runs used answer {OUTDATED}." in notes


def test_an_edited_template_is_said_in_table_and_figure(tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    shutil.copytree(PACK, pack)
    before = _of_sweep(tmp_path, {"topic.framing": list(FRAMINGS)}, prompts=str(pack))
    assert not any("earlier wording" in note for note in before.notes)
    for template in ("report.j2", "write.j2"):
        (pack / template).write_text((pack / template).read_text(encoding="utf-8") + "Be brief.", encoding="utf-8")
    after = _of_sweep(tmp_path, {"topic.framing": list(FRAMINGS)}, prompts=str(pack))
    assert f"2 of the runs used answer {OUTDATED}." in after.notes
    note = plots.panels_data(load(f"sqlite:///{tmp_path / 'results.sqlite'}")).note
    assert f"2 of the runs drawn answer {OUTDATED}" in note


OLD, NEW = "default@00aa11bb22cc", "default@00ff11bb22cc"
LEFT_OUT = f"Runs of an earlier wording of the prompts, left out: 2 ({OLD}: 2); --wording takes them instead."


def _reworded(evidence: str = "scripted") -> Frames:
    """Two framings, replicate 0 before the prompts were reworded and replicate 1 after."""
    frames = study([{"framing": f} | ({"evidence": evidence} if f == "truth" else {}) for f in FRAMINGS], replicates=2)
    frames.runs["wording"] = [OLD, NEW] * 2
    frames.runs["begun_at"] = [1.0, 3.0, 2.0, 4.0]
    return frames


@pytest.mark.parametrize("maker", [table, table1, table2])
def test_a_table_does_not_average_two_wordings(maker: Callable[..., Table]) -> None:
    frames = _reworded()
    metrics = _metrics(frames)
    made, other = maker(frames.runs, metrics), maker(frames.runs, metrics, wording="00aa")
    for each, replicate in ((made, 1), (other, 0)):
        alone = frames.runs["replicate"] == replicate
        assert_same(each.frame, maker(frames.runs[alone].drop(columns="wording"), metrics).frame)
        assert "Runs used: 2 complete. Excluded (not complete): none." in each.notes
    assert made.notes[-1] == LEFT_OUT
    assert other.notes[-1] == (
        f"Runs of another wording of the prompts, left out: 2 ({NEW}: 2); --wording takes them instead."
    )
    with pytest.raises(SpecError, match=f"complete runs have these, with counts: {OLD}: 2, {NEW}: 2"):
        maker(frames.runs, metrics, wording="00")


def test_every_table_of_an_experiment_takes_the_same_wording_and_says_so_once() -> None:
    frames = _reworded(evidence="model")
    (made,) = tables(frames.runs, _metrics(frames))
    assert set(made.frame["evidence"]) == {"scripted", "model"}
    assert made.notes.count(LEFT_OUT) == 1
    # Chat models were asked before the prompts were reworded, and scripted ones after.
    frames.runs["wording"] = [NEW, NEW, OLD, OLD]
    frames.runs["begun_at"] = [3.0, 4.0, 1.0, 2.0]
    (one,) = tables(frames.runs, _metrics(frames))
    assert (set(one.frame["evidence"]), one.notes[-1]) == ({"scripted"}, LEFT_OUT)
    (other,) = tables(frames.runs, _metrics(frames), wording=OLD)
    assert set(other.frame["evidence"]) == {"model"}


def test_runs_that_are_not_complete_are_excluded_as_such_whatever_their_wording() -> None:
    frames = _reworded()
    frames.runs.loc[0, "status"] = "incomplete"
    frames.runs.loc[1, "error"] = "edited since"
    notes = table1(frames.runs, _metrics(frames)).notes
    assert "Runs used: 2 complete. Excluded (not complete): 1 incomplete." in notes
    assert notes[-1] == LEFT_OUT.replace("out: 2", "out: 1").replace(": 2)", ": 1)")
    # Of runs that are left out it does not matter that they answer an earlier wording.
    assert f"1 of the runs used answers {OUTDATED}." in notes
    frames.runs["error"] = ["", "", "edited", ""]
    assert not any("runs.error" in note for note in table1(frames.runs, _metrics(frames)).notes)


def test_a_ragged_union_of_sweeps_is_drawn_cell_by_cell(tmp_path: Path) -> None:
    sweep = [
        {"cognition.confirmation_bias": ["none", "strong"], "population.shown": ["full", "name"]},
        {"interaction": [{"kind": "broadcast", "network": "ring", "steps": 4}]},
    ]
    _, results = carry_out(changed(SMALL, sweep=sweep), str(tmp_path / "results.sqlite"))
    drawn = plots.panels_data(results).panels
    assert len({panel.title for panel in drawn}) == len(drawn) == 5


MAKERS = {
    "table": table,
    "table1": table1,
    "table2": table2,
    "tables": tables,
    "by topic": lambda runs, metrics: table(runs, metrics, by=["topic", "framing", "confirmation_bias"]),
}


@pytest.mark.parametrize("maker", few(MAKERS, 2))
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "plain"])
def test_a_second_instrument_and_a_moderator_change_no_table(maker: str, whole: bool) -> None:
    alone = measured()
    both = moderated(beside(alone, pairs=whole))
    if not whole:
        alone, both = plain(alone), plain(both)
    made, expected = (MAKERS[maker](f.runs, run_metrics(f.runs, f.opinions, f.agents)) for f in (both, alone))
    assert_same(made, expected)


def test_cells_without_an_instrument_of_stance_are_counted_and_make_no_condition() -> None:
    frames = study([{"framing": "falsehood"}, {"framing": "truth"}, {"framing": "falsehood"}], steps=10)
    frames.runs["shown"] = ["x", "x", "y"]
    frames.opinions.loc[frames.opinions["run_id"] == "r2", "variable"] = "civility"
    frames.runs.loc[2, ["instrument_id", "classifier"]] = None
    (made,) = tables(frames.runs, _metrics(frames))
    assert _cells(made, "framing") == ["falsehood", "truth"]
    assert "Runs used: 2 complete. Excluded (not complete): none." in made.notes
    assert "Complete runs left out because they have no text of kind report: 1." in made.notes
    general = table(frames.runs, _metrics(frames))
    assert general.n_labels == 1
    frames.runs["instrument_id"] = None
    frames.opinions["variable"] = "civility"
    for maker in MAKERS.values():
        with pytest.raises(SpecError, match="no complete run has a text with a measured stance"):
            maker(frames.runs, _metrics(frames))


def test_evidence_of_which_no_stance_is_read_has_no_table() -> None:
    frames = study([{"evidence": "model"}, {"evidence": "human"}], steps=10)
    frames.opinions.loc[frames.opinions["run_id"] == "r0", "variable"] = "civility"
    frames.runs.loc[0, "instrument_id"] = None
    assert [set(one.frame["evidence"]) for one in tables(frames.runs, _metrics(frames))] == [{"human"}]


def test_a_run_counts_as_read_by_the_instrument_that_its_cell_names() -> None:
    row = run_row("r0", n_agents=2)
    again = row | {"instrument_id": "a9", "classifier": "flan_t5"}
    asked = [(9, 9, 0, -1.0, "probe")]
    opinions = [*opinion_rows(again, [*final([2.0, 2.0]), *asked]), *opinion_rows(row, final([1.0, 1.0]))]
    frames = make([row], [0, 0], opinions)
    made = table(frames.runs, _metrics(frames))
    assert _ends(made) == ["1.00"]
    assert any(
        note.startswith("These runs also have readings by other instruments of stance: 1.") for note in made.notes
    )
    assert "Instrument: texts of kind report, coded by lexicon." in made.notes
    # Where its own instrument reads no such texts, another one of the cell does.
    other = table(frames.runs, _metrics(frames), kind="probe")
    assert _ends(other) == ["\N{MINUS SIGN}1.00"]
    assert "Instrument: texts of kind probe, coded by flan_t5." in other.notes
    assert not any("further instruments" in note for note in other.notes)


def test_runs_with_authors_of_several_kinds_have_a_table_that_says_so() -> None:
    frames = study([{"evidence": e, "model": "scripted + a"} for e in ("scripted", "mixed")], steps=10)
    (made,) = tables(frames.runs, _metrics(frames))
    assert made.notes[0] == f"Evidence: {EVIDENCE['scripted']} + {EVIDENCE['mixed']}."
    assert made.title.startswith(made.notes[0].removeprefix("Evidence: ").rstrip("."))
    assert _cells(made, "evidence") == ["scripted", "mixed"]
    assert "Agents played by scripted + a." in made.notes


def test_numbers_without_flagged_texts_say_of_which_agents_they_are() -> None:
    rows = [run_row(f"r{run}", replicate=run, n_agents=3) for run in range(2)]
    texts = [each for row in rows for each in opinion_rows(row, final([-1, 0, 1]))]
    frames = make(rows, [0, 0, 0], texts)
    shared = {"kind": "report", "reads": (), "status": "answered", "first_status": "answered", "taken": ""}
    # One text of three is left of the second run: the run has no mean, and its agent counts in no other.
    turns = frames.opinions[["run_id", "turn", "step", "agent"]].assign(failed_reflections=0, signs="")
    turns = pd.DataFrame([shared | row for row in turns.to_dict("records")])
    turns.loc[(turns["run_id"] == "r1") & (turns["agent"] > 0), "signs"] = "role"
    metrics = run_metrics(frames.runs, frames.opinions, frames.agents, turns=turns)
    (made,) = missing_tables(frames.runs, frames.opinions, frames.agents, turns, metrics)
    told = made.frame[["texts", "n_withheld", "agents", "measured"]].to_numpy().tolist()
    assert told == [["as tabulated", 0, 6, 6], ["flagged texts left out", 1, 6, 3]]
    # What was refused stands by kind, then by side.
    refused = turns.assign(first_status="refused")
    refused = pd.concat([refused, refused.assign(turn=refused["turn"] + 3, kind="post")], ignore_index=True)
    by_side = reply_table(frames.runs, frames.opinions[:0], make(rows, [1, -1, 0], texts).agents, refused)
    assert by_side is not None
    sides = ["negative", "neutral", "positive"]
    assert by_side.frame[["kind", "side"]].to_numpy().tolist() == [[k, s] for k in ("post", "report") for s in sides]
