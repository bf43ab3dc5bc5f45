"""What is told of a study: sentences of numbers, the design in words, texts, and what must stand in every title."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import opinionsim as osim
from opinionsim.analysis import Table, number_text
from opinionsim.cli import app
from opinionsim.lanes import Pace
from opinionsim.metrics import EVIDENCE
from opinionsim.report import Study, study, tables_of
from opinionsim.report._study_words import design, statements
from opinionsim.specification import load_experiment
from opinionsim.store import Results
from tests.report.conftest import SCRIPTED
from tests.support.batches import BatchProvider
from tests.support.running import SMALL, changed


@pytest.fixture(scope="module")
def of_script(scripted: Results) -> Study:
    """What is told of a study of the scripted model."""
    return study(scripted)


@pytest.fixture(scope="module")
def of_model(modelled: Results) -> Study:
    """What is told of a study of a model."""
    return study(modelled)


def test_a_scripted_study_is_stamped_and_finds_nothing(of_script: Study) -> None:
    told = of_script
    assert told.title == f"scripted-study: {EVIDENCE['scripted']}"
    assert told.stamp == EVIDENCE["scripted"]
    assert told.question == "Is it so?"
    assert told.statements == ()
    assert "stand-in" in told.methods


def test_no_mean_is_told_of_withheld_runs(of_model: Study) -> None:
    main = of_model.tables[0]
    assert of_model.usable.startswith("Usable: opinions of ")
    frame = main.frame.assign(n_withheld=[1, *main.frame["n_runs"][1:]])
    frame.loc[frame.index[1:], ["bias", "diversity"]] = float("nan")
    some, none = statements([replace(main, frame=frame)])
    assert "over 2 of 3 runs" in some
    assert "there is no mean opinion and no diversity, because in all 3 runs opinions of too few agents" in none


def test_shares_and_moved_means_are_told_with_their_turns_and_agents(of_model: Study) -> None:
    main = of_model.tables[0]
    one, _ = statements([replace(main, frame=main.frame.assign(missing_rate=0.45, n_turns=20))])
    assert one.endswith("; 9 of 20 turns of kind report (45.0%) are without an opinion.")
    numbers = {"texts": ["as tabulated", "flagged texts left out"], "agents": [12, 12], "measured": [10, 3]}
    for bias, told in ((-1 / 3, ["-0.33, of 3 of 12 agents; as tabulated it is 0.10, of 10."]), (0.1, [])):
        frame = pd.DataFrame({**numbers, "bias": [0.1, bias], "evidence": "model"})
        said = statements([Table.of("With and without", frame, ["texts"], [], "doubtful")])
        begun = "Flagged texts left out: the mean opinion is "
        assert [*said] == [begun + each.replace("-", "\N{MINUS SIGN}") for each in told]


def test_statements_are_made_of_numbers_of_the_tables(of_model: Study) -> None:
    told = of_model
    tables = {each.name: each for each in told.tables}
    rows = tables[""].frame.to_dict("records")
    for row, said in zip(rows, told.statements, strict=False):
        assert said.startswith(f"Confirmation bias {row['confirmation_bias']}: the mean opinion at the end is ")
        assert number_text(row, "bias") in said
        assert number_text(row, "diversity") in said
    (contrast,) = tables["contrasts"].frame.to_dict("records")
    assert told.statements[len(rows)].startswith("D rises (primary): the difference is ")
    assert number_text(contrast, "difference") in told.statements[len(rows)]
    # Nothing is said that is in no table.
    numbers = {
        each for table in told.tables for row in table.rows for cell in row for each in re.findall(r"\d\.\d+", cell)
    }
    assert {each for said in told.statements for each in re.findall(r"\d\.\d\d+", said)} <= numbers
    assert told.stamp == ""


def test_the_design_and_the_methods_name_what_was_done(modelled: Results, of_model: Study) -> None:
    told = of_model
    design = dict(told.design)
    assert design["Runs"] == "6 (6 complete)"
    assert design["Varied: confirmation bias"] == "none, strong"
    assert (design["Answered by"], design["Replicates"], design["Seed"]) == ("openai:stub", "3", "5")
    for part in ("openai:stub", "seed 5", "none, strong", "4 agents and 10 steps", osim.__version__, "3 replicates"):
        assert part in told.methods
    assert any("10.18653/v1/2024.findings-naacl.211" in each for each in told.references)
    assert any(name == "model openai:stub" and "stub-1" in what for name, what in told.versions)
    ((model, calls, *_),) = told.cost
    assert (model, calls) == ("stub-1", str(len(modelled.calls)))


def test_methods_and_cost_tell_which_replies_came_through_a_batch_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_figures: None
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "prices.yaml").write_text(
        "date: 2026-11-29\ncurrency: USD\nper: 1\nmodels: {'openai:m': {input: 1, output: 1}}\n"
        "lanes: {openai: {batch: {factor: 0.5, date: 2026-11-29, source: a page}}}\n"
    )
    # At least one of the twelve answers is a refusal and at least one is not, on any port of the provider.
    with BatchProvider(refuse=0.5, prices=(1.0, 1.0)) as provider:
        spec = changed(
            SMALL,
            model={"name": "openai:m", "options": {"base_url": provider.url("openai")}},
            measurement={"classifier": "lexicon"},
            execution={"lane": "batch", "prices": str(tmp_path / "prices.yaml")},
        )
        pace = Pace(settle_s=0.05, look_s=0.02, slowest_look_s=0.05)
        results = osim.run(load_experiment(spec), tmp_path / "a.sqlite", pace=pace)
    told, queued, again = study(results), provider.bought.total(), provider.at_once.total()
    assert min(queued, again) > 0
    share = f"{queued / (queued + again):.1%}"
    assert f"Of {queued + again} replies of models, {queued} ({share}) came through a provider's batch queue." in (
        told.methods
    )
    assert {row[0]: int(row[1]) for row in told.cost} == {"m": again, "m (batch)": queued}
    money = {row[0]: float(row[4].replace(",", "")) for row in told.cost}
    assert money == {"m": provider.cost("now"), "m (batch)": provider.cost("batch")}


def test_the_largest_changes_are_shown_with_what_was_read(scripted: Results, of_script: Study) -> None:
    told = of_script
    turns = [(data, each) for data in told.shifts for each in data["turns"]]
    sizes = [abs(each["change"] or 0) for _, each in turns]
    assert sizes == sorted(sizes, reverse=True)
    assert min(sizes) > 0
    opinions = scripted.opinions[scripted.opinions["kind"] == "report"].sort_values("turn")
    assert sizes[0] == opinions.groupby(["run_id", "agent"])["value"].diff().abs().max()
    texts = set(scripted.turns["message"])
    for data, each in turns:
        assert each["text"] in texts
        assert each["reads"]
        assert {data["read"][ref]["text"] for ref in each["reads"]} <= texts


def test_sample_transcripts_are_the_beginnings_of_the_first_runs(scripted: Results, of_script: Study) -> None:
    first, last = of_script.samples
    places = [scripted.runs.iloc[row] for row in (0, 3)]
    assert [first["run"], last["run"]] == [f"{each.cell}/{each.replicate}" for each in places]
    turns = scripted.turns[scripted.turns["run_id"] == scripted.runs["run_id"].iloc[0]].sort_values("turn")
    assert [each["text"] for each in first["turns"]] == list(turns["message"])[: len(first["turns"])]
    assert first["further"] == len(turns) - len(first["turns"])
    assert study(scripted).samples == (first, last)


@pytest.mark.usefixtures("without_figures")
def test_an_event_that_was_read_is_quoted(tmp_path: Path) -> None:
    events = [{"kind": "message", "step": 2, "text": "A new study says otherwise."}]
    told = study(osim.run(load_experiment(changed(SCRIPTED, events=events)), str(tmp_path / "a.sqlite")))
    read = {(each["name"], each["text"]) for sample in told.samples for each in sample["read"].values()}
    assert ("event-0", "A new study says otherwise.") in read


def test_without_a_complete_run_a_study_says_so(tmp_path: Path) -> None:
    budget = {"budget": {"calls": 3}}
    results = osim.run(load_experiment(changed(SCRIPTED, execution=budget)), str(tmp_path / "a.sqlite"))
    told = study(results)
    assert (told.tables, told.figures, told.samples) == ((), (), ())
    assert told.caveats[0].startswith("No table of results: no run is complete")
    assert "incomplete" in dict(told.design)["Runs"]
    assert f"Not all runs are complete: {dict(told.design)['Runs']}." in told.methods


def test_tables_are_those_that_the_command_prints(modelled: Results) -> None:
    printed = CliRunner().invoke(app, ["table", modelled.url]).stdout
    assert printed == "\n".join(each.to_text() for each in tables_of(modelled))


@pytest.mark.usefixtures("without_figures")
def test_what_varies_is_told_in_the_order_and_words_of_the_specification(tmp_path: Path) -> None:
    several = [
        {"population.size": [4, 6], "cognition.confirmation_bias": ["weak", "none"]},
        {"interaction": [{"kind": "no-role-play", "reports": 2, "label": "nobody played"}]},
    ]
    told = study(osim.run(load_experiment(changed(SCRIPTED, sweep=several)), str(tmp_path / "a.sqlite")))
    varied = {label for label, _ in told.design if label.startswith("Varied")}
    # Agents that play nobody have no world: none varies.
    assert varied == {"Varied: agents", "Varied: confirmation bias", "Varied: interaction"}
    assert "Each run had 4 or 6 agents and " in told.methods
    headings = [each["cell"] for each in told.samples]
    assert headings[0].startswith("population.size=4, cognition.confirmation_bias=weak")
    assert headings[-1].startswith("interaction=nobody played")


def test_runs_that_nobody_carries_out_any_more_are_cut_off(scripted: Results) -> None:
    runs = scripted.runs.assign(status="running")
    frames = {name: getattr(scripted, name) for name in ("agents", "turns", "opinions")} | {"runs": runs}
    dead = Results.of_frames(scripted.design_row, frames, {})
    assert design(dead)["Runs"] == "6 (6 cut off)"
    dead.under_way = 6
    assert design(dead)["Runs"] == "6 (6 running)"


def test_the_checklist_says_what_is_on_record_and_what_is_missing(of_model: Study, of_script: Study) -> None:
    told = dict(of_model.checklist)
    assert "openai:stub answered as stub-1" in told["Models as returned"]
    assert re.search(r"\d{4}-\d\d-\d\d", told["Dates of the calls"])
    assert f"{len(of_model.results.calls)} calls" in told["Seeds"] + told["Calls, tokens and cost"]
    assert "scripted (a stand-in, which is not a language model)" in dict(of_script.checklist)["Models as specified"]
    missing = {label for label, what in of_script.checklist if "MISSING" in what}
    assert missing == {"Audit of the instruments", "Preregistration", "Primary outcome and smallest effect of interest"}
    assert {label for label, _ in of_script.checklist} < {*told}, "a provider's model has weights to be stated"
