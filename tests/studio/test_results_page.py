"""The page of results in a browser: its counts, runs, figures and filters are those of the store."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import opinionsim as osim
from opinionsim.metrics import evidence_statement, kinds_in_order
from opinionsim.store import open_store
from tests.support.command import invoked
from tests.support.pages import accessible
from tests.support.running import SMALL, changed, finished
from tests.support.sweeps import DIAGRAM
from tests.support.viewers import HOSTILE_SPEC, KINDS, HostileModel, Viewed, drawn, settled, viewing

#: What opens the table of runs.
OPEN_RUNS = "All of them, with their numbers"
#: Where links lead to.
HREFS = "links => links.map((link) => link.href)"
#: A grid, one axis of which has numbers that letters would sort otherwise.
GRID = changed(
    SMALL, name="grid", seed=9, replicates=2, measurement={"classifier": "lexicon", "texts": ["report", "post"]},
    sweep={"population.size": [4, 10, 6], "topic.framing": ["falsehood", "truth"]},
)  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a grid, a sweep of a classic model, texts that do something elsewhere, and runs that are marked."""
    path = tmp_path_factory.mktemp("results") / "grid & more.sqlite"
    finished(HOSTILE_SPEC, str(path), HostileModel())
    finished(changed(SMALL, name="marked", replicates=3, measurement={"classifier": "lexicon"}), str(path))
    swept = path.with_name("diagram.yaml")
    swept.write_text(yaml.safe_dump({**DIAGRAM, "study": "scan", "replicates": 2}), encoding="utf-8")
    assert invoked("run", swept, "--store", path).exit_code == 0
    finished(GRID, str(path))
    rows = osim.load(str(path), "marked").runs["run_id"]
    with open_store(str(path)) as opened:
        opened.change_seat(rows.iloc[1], 1, lambda seat: replace(seat, trial=True))
        opened.withdraw(rows.iloc[2], 0)
    return path


@pytest.fixture(scope="module")
def viewed(store: Path, browser: Any) -> Iterator[Viewed]:
    """The store, shown."""
    with viewing(browser, store) as found:
        yield found


def rows(page: Any) -> list[dict[str, str]]:
    """The table of runs, opened as a reader would."""
    opened(page, OPEN_RUNS)
    head, *found = page.locator("table.sortable").evaluate(
        "table => [...table.rows].map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    return [dict(zip(head, row, strict=True)) for row in found]


def opened(page: Any, summary: str) -> None:
    """Open a part of the page, and wait until it has loaded."""
    part = page.locator("details", has=page.locator(f"summary:text('{summary}')")).last
    if not part.evaluate("box => box.open"):
        part.locator("summary").first.click()
    settled(page)


def commands(page: Any) -> list[list[str]]:
    """Arguments of the commands that the page names for what it shows."""
    return [shlex.split(each)[1:] for each in page.locator("code").all_inner_texts()]


def same_numbers(page: Any, viewed: Viewed, address: str, command: list[str], path: Path) -> None:
    """What an address gives as CSV is what the command of the page writes."""
    told = page.request.get(f"{viewed.server.address}{address}")
    assert told.status == 200
    assert invoked(*command).exit_code == 0
    assert list(csv.reader(io.StringIO(told.text()))) == list(csv.reader(io.StringIO(path.read_text("utf-8"))))


# -- what is shown is what the store holds -------------------------------------------------------------------


@pytest.mark.long
def test_experiments_lead_to_runs_and_runs_back(browser: Any, viewed: Viewed) -> None:
    with viewed.page(browser) as page:
        stamp = evidence_statement(["scripted"])
        assert page.locator("h1").inner_text() == "grid"
        assert stamp in page.title()
        assert page.locator(".top .stamp").inner_text() == stamp
        others = page.locator("nav[aria-label='This study'] a").all_inner_texts()
        assert {f"other experiment: {name}" for name in ("hostile", "marked", "diagram")} < set(others)
        page.get_by_role("link", name="other experiment: marked", exact=True).click()
        settled(page)
        assert "2 complete, 1 withdrawn" in page.locator("[data-live]").inner_text()
        page.get_by_role("link", name="other experiment: grid", exact=True).click()
        settled(page)
        assert "12 complete" in page.locator("[data-live]").inner_text()
        results = osim.load(str(viewed.store), "grid")
        found = rows(page)
        accessible(page)
        assert [each["state"] for each in found] == ["complete"] * len(results.runs)
        run = results.runs.iloc[0]
        page.locator(f"a[href*='{run['run_id']}']").click()
        drawn(page)
        assert page.title().startswith("grid, run ")
        page.get_by_role("link", name="grid", exact=True).click()
        settled(page)
        assert "12 complete" in page.locator("[data-live]").inner_text()
        page.go_back()
        drawn(page)


@pytest.mark.parametrize("kind", ["", "post"])
def test_the_table_of_runs_is_that_of_the_frames(browser: Any, viewed: Viewed, kind: str) -> None:
    results = osim.load(str(viewed.store), "grid")
    first = kinds_in_order(results.metrics["kind"], results.runs["texts"])[0]
    values = results.metrics[results.metrics["kind"] == (kind or first)].set_index("run_id")
    with viewed.page(browser, viewed.results("grid", kind=kind)) as page:
        found = rows(page)
        assert len(found) == len(results.runs) == 12
        shown_ids = [each.rpartition("/")[2] for each in page.locator("table.sortable a").evaluate_all(HREFS)]
        runs = results.runs.set_index("run_id", drop=False).loc[shown_ids]
        for shown, run in zip(found, runs.itertuples(), strict=True):
            assert (shown["n_agents"], shown["framing"]) == (str(run.n_agents), run.framing)
            assert shown["replicate"] == str(run.replicate)
            for name in ("bias", "diversity"):
                assert float(shown[name]) == pytest.approx(values.loc[run.run_id, name], abs=0.005, nan_ok=True)


def test_marked_runs_say_so_among_the_others(browser: Any, viewed: Viewed) -> None:
    with viewed.page(browser, viewed.results("marked")) as page:
        assert [each["state"] for each in rows(page)] == ["complete", "trial", "withdrawn"]


def test_the_headings_sort_numbers_as_numbers(browser: Any, viewed: Viewed) -> None:
    with viewed.page(browser, viewed.results("grid")) as page:
        unsorted = [each["n_agents"] for each in rows(page)]
        assert unsorted == ["4"] * 4 + ["10"] * 4 + ["6"] * 4
        heading = page.locator("table.sortable th", has_text="n_agents")
        heading.get_by_role("button").focus()
        page.keyboard.press("Enter")
        assert [each["n_agents"] for each in rows(page)] == ["4"] * 4 + ["6"] * 4 + ["10"] * 4
        assert heading.get_attribute("aria-sort") == "ascending"
        page.keyboard.press("Enter")
        assert [each["n_agents"] for each in rows(page)] == ["10"] * 4 + ["6"] * 4 + ["4"] * 4
        page.locator("table.sortable th", has_text="diversity").get_by_role("button").click()
        shown = [float(each["diversity"]) for each in rows(page)]
        assert shown == sorted(shown)
        assert page.locator("th[aria-sort]").count() == 1
        accessible(page)


def test_a_filter_changes_all_that_is_shown_and_can_be_taken_away(browser: Any, viewed: Viewed) -> None:
    with viewed.page(browser, viewed.results("grid")) as page:
        outcome = page.locator("section", has=page.locator("h2:text-is('Outcome')"))
        whole = outcome.locator("figcaption").inner_text(), len(rows(page))
        with page.expect_navigation():
            page.get_by_label("framing").select_option("truth")
        settled(page)
        # What is not chosen does not enter the address.
        assert re.search(r"\?experiment=grid&by\.[\w.]*framing=truth$", page.url)
        assert page.get_by_label("framing").input_value() == "truth"
        runs = osim.load(str(viewed.store), "grid").runs
        rows(page)
        shown = {each.rpartition("/")[2] for each in page.locator("table.sortable a").evaluate_all(HREFS)}
        assert shown == {*runs[runs["framing"] == "truth"]["run_id"]}
        assert outcome.locator("figcaption").inner_text() != whole[0]
        page.reload()
        settled(page)
        assert len(rows(page)) == len(shown)
        page.get_by_role("link", name="Clear filters").click()
        settled(page)
        assert len(rows(page)) == whole[1]
        page.go_back()
        settled(page)
        assert page.get_by_label("framing").input_value() == "truth"


def test_figures_and_tables_are_those_of_the_commands_that_the_page_names(
    browser: Any, viewed: Viewed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with viewed.page(browser, viewed.results("grid")) as page:
        image = page.locator("section", has_text="Outcome").locator("img").first
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 300
        caption = page.locator("section", has_text="Outcome").locator("figcaption").first.inner_text()
        assert image.get_attribute("alt") == caption
        assert evidence_statement(["scripted"]) in image.get_attribute("alt")
        plot, table = commands(page)[:2]
        assert (plot[0], table[0]) == ("plot", "table")
        numbers, figure = tmp_path / "numbers.csv", tmp_path / "figure.svg"
        own = [*plot, "--csv", numbers, "--out", figure]
        same_numbers(page, viewed, page.locator("a:text('numbers (CSV)')").first.get_attribute("href"), own, numbers)
        plain = re.compile(r"<dc:date>.*?</dc:date>|clip\w+|[pm]\w{10}")
        drawn_here = page.request.get(f"{viewed.server.address}{image.get_attribute('src')}").text()
        assert plain.sub("", drawn_here) == plain.sub("", figure.read_text("utf-8"))
        rows_of = tmp_path / "table.csv"
        address = page.locator("a:text('unrounded (CSV)')").first.get_attribute("href")
        same_numbers(page, viewed, address, [*table, "--csv", rows_of], rows_of)


def test_the_numbers_of_a_figure_and_other_figures_open(browser: Any, viewed: Viewed) -> None:
    with viewed.page(browser, viewed.results("grid")) as page:
        opened(page, "Numbers of this figure")
        assert page.locator("table", has=page.locator("th:text('diversity')")).count() > 0
        opened(page, "Choose a figure")
        opened(page, "distribution")
        image = page.locator("details:has(> summary:text('distribution')) img")
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 300
        accessible(page)


def test_a_sweep_of_a_classic_model_has_its_figure_and_its_units(browser: Any, viewed: Viewed) -> None:
    with viewed.page(browser, viewed.results("diagram")) as page:
        assert "16 complete" in page.locator("[data-live]").inner_text()
        assert commands(page)[0][:2] == ["plot", "phase"]
        image = page.locator("section", has_text="Outcome").locator("img").first
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 300
        found = rows(page)
        assert [each["state"] for each in found] == ["complete"] * 16
        assert page.locator("h2:text-is('Units')").count() == 1
        assert page.locator("table.sortable a").count() == 0
        accessible(page)


def test_a_page_follows_its_store_and_keeps_what_is_open(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "one.sqlite"
    finished(changed(SMALL, name="one", replicates=2, measurement={"classifier": "lexicon"}), str(path))
    with viewing(browser, path) as viewed, viewed.page(browser) as page:
        assert len(rows(page)) == 2
        page.clock.install()
        with open_store(str(path)) as opened_store:
            opened_store.forget(osim.load(str(path)).runs["run_id"][:1])
        page.wait_for_selector("[data-live] >> text=1 pending")
        # Figures and tables wait a while for more.
        page.clock.fast_forward(10_000)
        page.wait_for_selector("table.sortable td:text-is('pending')")
        assert len(rows(page)) == 2


# -- what may come -------------------------------------------------------------------------------------------


def test_hostile_texts_are_texts_and_a_phone_shows_all_parts(browser: Any, viewed: Viewed) -> None:
    for name, scheme in (("hostile", "light"), ("grid", "dark")):
        window = {"viewport": {"width": 360, "height": 740}, "color_scheme": scheme}
        with viewed.page(browser, viewed.results(name), **window) as page:
            rows(page)
            opened(page, "Choose a figure")
            assert "taken" not in page.title()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
            assert page.locator("main svg, main script, main style").count() == 0
            accessible(page)


def test_nothing_to_measure_is_said(browser: Any, viewed: Viewed) -> None:
    with viewed.page(browser, viewed.results("hostile")) as page:
        outcome = page.locator("section", has=page.locator("h2:text-is('Outcome')"))
        assert len(outcome.locator(".problem").inner_text().split()) > 4
        assert "1 complete" in page.locator("[data-live]").inner_text()


@pytest.mark.parametrize("name", ["events", pytest.param("dyads", marks=pytest.mark.whole)])
def test_an_experiment_of_every_kind_has_results(browser: Any, tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.sqlite"
    results = finished(KINDS[name], str(path))
    with viewing(browser, path) as viewed, viewed.page(browser) as page:
        assert len(rows(page)) == len(results.runs)
        assert page.locator("img").count() >= 2
        assert page.locator(".problem").count() == 0
        accessible(page)
