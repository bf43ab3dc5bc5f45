"""Pages of sweeps: filters of units, the phase map with its sliders, and single runs that are simulated again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import opinionsim as osim
from opinionsim.classic.sweeps import load_sweep, run_again, run_sweep
from opinionsim.errors import SpecError
from opinionsim.store import UnitRow, open_store
from tests.support.pages import HOSTILE
from tests.support.studios import serving
from tests.support.sweeps import DIAGRAM

STORE, PAGE = "/results/diagram.sqlite", "/section/phase-map/results/diagram.sqlite"
SPEC: dict[str, Any] = {
    **DIAGRAM,
    "replicates": 2,
    "interaction": {**DIAGRAM["interaction"], "until": "frozen"},
    "sweep": {
        "model.parameters.epsilon": [0.1, 0.2, 0.3],
        "population.size": [20, 30],
        "model.parameters.mu": [0.2, 0.5],
    },
}


def stored(folder: Path, spec: dict[str, Any]) -> osim.Results:
    """Carry out a sweep in the folder of a studio."""
    store = folder / "results" / f"{spec['name']}.sqlite"
    store.parent.mkdir(exist_ok=True)
    run_sweep(load_sweep(spec), str(store), threads=1)
    return osim.load(str(store))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> osim.Results:
    """A sweep over three parameters."""
    return stored(tmp_path_factory.mktemp("sweep"), SPEC)


@pytest.fixture(scope="module")
def client(sweep: osim.Results) -> Iterator[httpx.Client]:
    """A studio that shows it."""
    with serving(Path(sweep.url.removeprefix("sqlite:///")).parent.parent) as client:
        yield client


def numbers(html: str) -> list[str]:
    """The means in the table of a map."""
    return re.findall(r'">([\d.]+)<span class="unseen">', html)


def test_a_slider_changes_figure_and_table(client: httpx.Client, sweep: osim.Results) -> None:
    pages = [client.get(PAGE, params={"by.mu": mu}) for mu in ("0.2", "0.5")]
    units = sweep.units
    for page, mu in zip(pages, (0.2, 0.5), strict=True):
        means = units[units["mu"] == mu].groupby(["n", "epsilon"])["diversity"].mean()
        assert [float(each) for each in numbers(page.text)] == pytest.approx(means.to_list(), rel=1e-3)
        assert "n" in re.findall(r"<option selected>([^<]+)<", page.text)
        assert f">{mu}</output>" in page.text
        assert f"mu: {mu}" in page.text.lower()
    drawn = [client.get(f"/picture/phase-map:map{STORE}", params={"by.mu": mu}).text for mu in ("0.2", "0.5")]
    assert drawn[0] != drawn[1]
    assert drawn[0] == client.get(f"/picture/phase-map:map{STORE}").text
    other = client.get(PAGE, params={"x": "mu", "y": "n", "value": "disagreement@4"}).text
    assert 'name="by.epsilon"' in other
    assert len(numbers(other)) == 4


def test_every_place_of_the_map_leads_to_a_run_of_its_point(client: httpx.Client, sweep: osim.Results) -> None:
    html = client.get(PAGE).text
    places = re.findall(r'<a href="([^"]+)" tabindex="-1"><rect x="([\d.]+)" y="([\d.]+)"', html)
    links = re.findall(r'<a href="([^"]+)">[\d.]+<span class="unseen">', html)
    assert sorted(link for link, _, _ in places) == sorted(links)
    points = {f"{point}%2F0": values for point, values in sweep.design_row.units}
    found = [(points[link.rpartition("run=")[2]], float(x), -float(y)) for link, x, y in places]
    assert len(found) == 6
    for values, x, up in found:
        assert sum(x > other for _, other, _ in found) == sum(
            values["epsilon"] > other["epsilon"] for other, _, _ in found
        )
        assert sum(up > other for *_, other in found) == sum(values["n"] > other["n"] for other, _, _ in found)


def test_the_run_that_is_drawn_is_the_one_on_record(client: httpx.Client, sweep: osim.Results) -> None:
    for point, _ in sweep.design_row.units:
        for replicate in range(2):
            assert run_again(sweep, point, replicate)[1] == ()
    point, values = sweep.design_row.units[3]
    shown = client.get(PAGE, params={"run": f"{point}/1"}).text
    units = sweep.units
    row = units[np.logical_and.reduce([units[name] == value for name, value in values.items()])].iloc[1]
    assert f"{row['diversity']:.4g}" in shown
    figure = client.get(f"/figure/phase-map:run{STORE}", params={"run": f"{point}/1"}).text
    assert "The run was simulated again, and its end has the stored measures." in figure
    assert client.get(f"/picture/phase-map:run{STORE}", params={"run": f"{point}/1"}).text.startswith("<?xml")


def test_a_run_that_differs_from_its_record_is_said_to(tmp_path: Path) -> None:
    results = stored(tmp_path, {**SPEC, "replicates": 1})
    point = results.design_row.units[0][0]
    with open_store(results.url) as store:
        (row,) = store.units([point])
        store.save_units(
            [UnitRow(point, 0, {**row.values, "diversity": 9.0})], {point: store.unit_keys([point])[point]}
        )
    assert run_again(results, point, 0)[1] == ("diversity",)
    with serving(tmp_path) as client:
        figure = client.get(f"/figure/phase-map:run{STORE}", params={"run": f"{point}/0"}).text
    assert "it differs from the stored one in diversity" in figure


def test_a_sweep_whose_random_numbers_are_others_is_not_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = stored(tmp_path, {**SPEC, "replicates": 1})
    monkeypatch.setattr("opinionsim.classic.points._points.STREAMS", -1)
    with pytest.raises(SpecError, match="so this would not be the same run"):
        run_again(results, results.design_row.units[0][0], 0)


@pytest.mark.parametrize("run", ["x/0", "{point}/2", "{point}", "{point}/-1", "{point}/9999999999", HOSTILE[0]])
def test_a_run_that_is_not_there_is_named(client: httpx.Client, sweep: osim.Results, run: str) -> None:
    answer = client.get(PAGE, params={"run": run.replace("{point}", sweep.design_row.units[0][0])})
    assert answer.status_code == 400
    assert "This sweep has stored no run" in answer.text
    assert "<script" not in answer.text.replace("<script type", "")


def test_filters_hold_for_all_parts_of_the_page(client: httpx.Client) -> None:
    page = client.get(f"/results{STORE}").text
    assert re.findall(r'<select name="(by\.\w+)">', page) == ["by.epsilon", "by.n", "by.mu"]
    assert "search the texts" not in page
    assert "side by side" not in page
    rows = client.get(f"/part/runs{STORE}", params={"by.mu": "0.5", "by.n": "30"}).text
    assert "6 rows" in rows
    assert "No unit has all of" in client.get(f"/part/tables{STORE}", params={"by.mu": "0.7"}).text.replace(
        "no unit", "No unit"
    )
    assert "the first" not in rows


def test_labels_are_texts(tmp_path: Path) -> None:
    network = {"kind": "watts-strogatz", "k": 4, "p": 0.1}
    stored(tmp_path, {**SPEC, "name": "diagram", "sweep": {
        "model.parameters.epsilon": [0.1, 0.2],
        "population.initial_opinions": ["uniform", {"kind": "share", "high": 0.3}],
        "interaction.network": [network, {**network, "p": 0.5}],
    }})  # fmt: skip
    with serving(tmp_path) as client:
        html = client.get(PAGE).text
        (levels,) = (json.loads(unescape(each)) for each in re.findall(r'data-levels="([^"]+)"', html))
        assert levels == [json.dumps({**network, "p": p}) for p in (0.1, 0.5)]
        other = client.get(PAGE, params={"by.network": levels[1]}).text
        assert numbers(html) != numbers(other)
        for hostile in HOSTILE:
            answer = client.get(PAGE, params={"x": hostile, "value": hostile, "more": hostile})
            assert answer.status_code == 200
            assert "<" not in hostile or hostile not in answer.text


def test_a_sweep_in_which_nothing_varies_has_no_map(tmp_path: Path) -> None:
    stored(tmp_path, {**SPEC, "sweep": {}})
    with serving(tmp_path) as client:
        page = client.get(f"/part/sections{STORE}")
    assert page.status_code == 200
    assert "Nothing varies in this sweep." in page.text
