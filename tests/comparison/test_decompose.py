"""What opinions are made of: each part against its equation, worked out by hand from the frames."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import opinionsim as osim
from opinionsim.comparison import decompose, events
from opinionsim.errors import MeasurementError

SHARED: dict[str, Any] = {
    "name": "parts",
    "seed": 4,
    "replicates": 6,
    "population": {"personas": "chuang2024", "size": 8, "initial_opinions": "uniform", "assignment": "random"},
    "topic": {"name": "flat-earth", "framing": "falsehood"},
    "model": {"name": "scripted"},
    "interaction": {"kind": "dyadic", "steps": 24},
    "measurement": {"texts": ["post", "report"]},
}
CELLS = [
    {"kind": "dyadic", "steps": 24},
    {"kind": "placebo", "steps": 24},
    {"kind": "remembered", "steps": 24},
    {"kind": "independent", "reports": 2},
]


def _carried_out(folder: Path, **fields: Any) -> osim.Results:
    return osim.run(osim.load_experiment({**SHARED, **fields}), f"sqlite:///{folder / 'store.sqlite'}")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> osim.Results:
    """Every control in both framings."""
    sweep = {"interaction": CELLS, "topic.framing": ["truth", "falsehood"]}
    return _carried_out(tmp_path_factory.mktemp("parts"), sweep=sweep)


@pytest.fixture(scope="module")
def parts(results: osim.Results) -> pd.DataFrame:
    return decompose(results).frame.set_index("part")


def _last(results: osim.Results, kind: str) -> pd.DataFrame:
    """The last report of each agent in the runs of a kind of interaction, with topic and block."""
    runs = results.runs[results.runs["interaction"] == kind][["run_id", "framing"]]
    reports = results.opinions[results.opinions["kind"] == "report"].merge(runs, on="run_id")
    return reports.sort_values("turn").groupby(["run_id", "agent"]).tail(1)


def _by_framing(results: osim.Results, kind: str) -> pd.Series[float]:
    return _last(results, kind).groupby(["framing", "block", "run_id"])["value"].mean().groupby("framing").mean()


def test_prior_and_agreement_are_half_difference_and_half_sum(results: osim.Results, parts: pd.DataFrame) -> None:
    mean = _by_framing(results, "independent")
    assert parts.loc["topic prior", "value"] == pytest.approx((mean["truth"] - mean["falsehood"]) / 2)
    assert parts.loc["agreement bias", "value"] == pytest.approx((mean["truth"] + mean["falsehood"]) / 2)
    added = _by_framing(results, "dyadic") - mean
    assert parts.loc["non-additivity", "value"] == pytest.approx((added["truth"] - added["falsehood"]) / 2)


def test_anchoring_is_a_difference_of_slopes_on_assigned_opinions(results: osim.Results, parts: pd.DataFrame) -> None:
    slopes = {
        kind: np.mean(
            [
                np.polyfit(rows["assigned_opinion"], rows["value"], 1)[0]
                for _, rows in _last(results, kind).groupby("run_id")
            ]
        )
        for kind in ("remembered", "independent")
    }
    assert parts.loc["anchoring", "value"] == pytest.approx(slopes["remembered"] - slopes["independent"])


def test_the_first_speaker_has_the_jackknife_of_its_slope(results: osim.Results, parts: pd.DataFrame) -> None:
    first = results.turns[results.turns["turn"] == 0].set_index("run_id")["agent"]
    others: dict[str, pd.Series[float]] = {}
    for kind in ("dyadic", "placebo"):
        last = _last(results, kind)
        others[kind] = last[last["agent"] != last["run_id"].map(first)].groupby(["block", "run_id"])["value"].mean()
        others[kind] = others[kind].groupby("block").mean()
    agents = results.agents.merge(results.runs[["run_id", "block"]], on="run_id")
    spoke = agents[agents["agent"] == agents["run_id"].map(first)]
    x = spoke[spoke["run_id"].isin(_last(results, "dyadic")["run_id"])].groupby("block")["assigned_opinion"].mean()
    y = (others["dyadic"] - others["placebo"]).loc[x.index]
    n = len(x)
    without = [np.polyfit(np.delete(x.to_numpy(), at), np.delete(y.to_numpy(), at), 1)[0] for at in range(n)]
    expected = n * np.polyfit(x, y, 1)[0] - (n - 1) * np.mean(without)
    assert parts.loc["first speaker", "value"] == pytest.approx(expected)


def test_social_influence_is_what_the_read_message_adds(parts: pd.DataFrame) -> None:
    """The scripted agents move a third to half of the way; a message that was not read moves nobody."""
    row = parts.loc["social influence"]
    assert 0.2 < row["value_ci_low"] < row["value_ci_high"] < 0.7
    assert (row["cell"], row["control"], row["claim"]) == ("dyadic", "placebo", "effect")


def test_agents_that_barely_listen_show_less_influence(tmp_path: Path, parts: pd.DataFrame) -> None:
    deaf = _carried_out(
        tmp_path,
        model={"name": "scripted", "options": {"preset": "attractor"}},
        sweep={"interaction": CELLS[:2]},
    )
    found = decompose(deaf).frame.set_index("part")
    assert float(found["value"]["social influence"]) < float(parts["value"]["social influence"]) / 2


def test_nothing_is_found_of_a_script(results: osim.Results, parts: pd.DataFrame) -> None:
    assert parts["p"].isna().all()
    text = decompose(results).to_text()
    assert text.startswith("SCRIPTED STAND-IN")
    assert "Missing" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_evidence_of_several_kinds_is_told(results: osim.Results) -> None:
    again = osim.load(results.url)
    again.runs["evidence"] = again.runs["interaction"].map({"placebo": "equation"}).fillna("model")
    found = decompose(again).frame
    assert set(found["evidence"]) == {"mixed"}
    assert found["p"].isna().all()


def test_what_is_missing_is_named_with_lines_that_supply_it(tmp_path: Path) -> None:
    bare = _carried_out(tmp_path)
    found = decompose(bare)
    assert found.rows == ()
    lines = {line for text in found.frame["missing"] for line in re.findall("`(.+?)`", text)}
    cells = [yaml.safe_load(line) for line in lines if line.startswith("{")]
    (framing,) = (yaml.safe_load(line) for line in lines if line.startswith("topic"))
    again = _carried_out(tmp_path, sweep={"interaction": [SHARED["interaction"], *cells], **framing})
    assert (decompose(again).frame["missing"] == "").all()


def test_controls_without_a_reader_are_no_updates(results: osim.Results) -> None:
    assert {cell.split(",")[0] for cell in events(results)["cell"]} == {"interaction=dyadic"}


def test_a_store_without_readers_has_one_message(tmp_path: Path) -> None:
    alone = _carried_out(tmp_path, interaction={"kind": "independent", "reports": 2}, measurement={"texts": ["report"]})
    with pytest.raises(MeasurementError, match=r"\[post, report\]"):
        decompose(alone)
