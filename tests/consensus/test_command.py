"""The command `consensus`."""

from __future__ import annotations

from pathlib import Path

import yaml
from typer.testing import CliRunner

from opinionsim import consensus, load
from opinionsim.cli import app
from tests.consensus.test_rating_tables import SPEC
from tests.support.command import refused
from tests.support.running import SMALL


def test_an_experiment_that_looks_for_no_consensus_is_refused(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(SMALL), encoding="utf-8")
    said = refused("consensus", tmp_path / "spec.yaml", "--store", tmp_path / "none.sqlite")
    assert "is no consensus session" in said
    assert "deliberate" in said
    assert not (tmp_path / "none.sqlite").exists()


def test_what_a_run_says_next_can_be_done_and_a_session_tells_how_it_was_won(tmp_path: Path) -> None:
    """Nobody states a stance here, which the default figure draws."""
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump({**SPEC, "replicates": 1, "sweep": {}}), encoding="utf-8")
    store, invoke = str(tmp_path / "s.sqlite"), CliRunner().invoke
    done = invoke(app, ["run", str(tmp_path / "spec.yaml"), "--store", store])
    (plot,) = (line.split()[1:] for line in done.stderr.splitlines() if line.startswith("  opinionsim plot "))
    assert plot[:2] == ["plot", "consensus"]
    assert invoke(app, plot).exit_code == 0
    assert "plot consensus" in refused("plot", store)

    results = load(store)
    figure = consensus.session_figure(results)
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert entries[0].startswith("winner (")
    assert set(entries[1:]) <= {"first by the rule of the row", "tied for first place"}
    assert len(figure.axes) == 3, "rules, support and its colours; nobody was asked before and after"
    told = consensus.session_text(results)
    (won,) = consensus.statements(results).query("winner")["turn"]
    means = consensus.ratings(results, winner=True)[["agreement", "quality"]].mean()
    assert f"Rated after it won: agreement {means['agreement']:.2f}, quality {means['quality']:.2f}" in told
    assert f"WINNER, turn {won} (" in told
    assert told.count("Rated before opinions were stated:") == 1
    tied = len(consensus.selections(results)["tied"].iloc[0]) > 0
    assert ("tied; the winner was decided by chance" in told) == tied
