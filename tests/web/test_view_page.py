"""The page of the viewer in a browser: what it shows is what the store holds, live, later and offline."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

import opinionsim as osim
from opinionsim.evidence import KINDS as TEXTS
from opinionsim.store import open_store
from tests.support.pages import HOSTILE, accessible
from tests.support.provider import StubProvider
from tests.support.running import SMALL, Watch, WatchedModel, changed, finished
from tests.support.viewers import KINDS, Viewed, drawn, offline, viewing
from tests.support.waiting import wait_until

#: The axes that a run's page shows: figures, in their order.
FIGURES = ("Opinions over the steps", "Network at this step", "Metric by step", "Distribution at this step")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one experiment of every kind."""
    path = tmp_path_factory.mktemp("viewed") / "every kind.sqlite"
    for spec in KINDS.values():
        finished(spec, str(path))
    return path


@pytest.fixture(scope="module")
def viewed(store: Path, browser: Any) -> Iterator[Viewed]:
    """The store of every kind, shown."""
    with viewing(browser, store) as found:
        yield found


def run_of(store: Path, name: str, row: int = 0) -> str:
    """The identity of a run of an experiment."""
    return str(osim.load(str(store), name).runs["run_id"].iloc[row])


def table(page: Any, name: str) -> list[list[str]]:
    """The numbers of a figure: opened as a reader would, row by row with the head first."""
    box = page.locator("figure", has_text=name)
    if not box.locator("details").evaluate("box => box.open"):
        box.locator("summary").click()
    rows = box.locator("table").evaluate(
        "table => [...table.rows].map((row) => [...row.cells].map((c) => c.innerText))"
    )
    return list(rows)


def at_step(page: Any, step: int) -> None:
    """Wait until the scrubber is at a step, and the numbers that are open too."""
    page.wait_for_function("step => document.getElementById('step').value === String(step)", arg=step)


def printed(value: float) -> str:
    """A number as the page prints it."""
    if math.isnan(value):
        return "\N{EN DASH}"
    rounded = Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP) + 0
    return f"{rounded.normalize():f}".replace("-", "\N{MINUS SIGN}")


# -- what is shown is what the store holds -------------------------------------------------------------------


def test_experiments_lead_to_cells_and_cells_to_runs(browser: Any, viewed: Viewed) -> None:
    with viewed.page(browser) as page:
        assert sorted(page.locator("#view h2").all_inner_texts()) == sorted(KINDS)
        assert "SCRIPTED STAND-IN" in page.title()
        assert "SCRIPTED STAND-IN" in page.locator(".top .stamp").inner_text()
        accessible(page)
        page.get_by_role("link", name="dyads").click()
        page.wait_for_selector(".square.complete")
        runs = osim.load(str(viewed.store), "dyads").runs
        assert page.locator(".square").count() == len(runs)
        accessible(page)
        page.get_by_label("Colour").select_option("diversity")
        page.wait_for_selector(".square[title*='diversity'][style*='rgb']")
        page.wait_for_function("() => !document.querySelector('#view').innerText.includes('to come')")
        accessible(page)
        page.get_by_label("Columns").select_option("cognition.memory")
        page.wait_for_selector("th[scope=col]:text-is('reflective')")
        square = page.locator(".square[title*='diversity']").first
        words = square.get_attribute("aria-label")
        assert re.match(r"run \d+, .*, replicate 0, complete, scripted: diversity [\d.]+", words)
        square.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("figure canvas[aria-label]")
        assert f"run {words.split(',')[0].removeprefix('run ')}" in page.title()
        page.go_back()
        page.wait_for_selector(".square")
        page.go_back()
        page.go_back()
        page.go_back()
        page.wait_for_selector("article h2")
        page.go_forward()
        page.wait_for_selector(".square")


@pytest.mark.parametrize("name", KINDS)
def test_a_run_of_every_kind_shows_the_numbers_of_its_frames(browser: Any, viewed: Viewed, name: str) -> None:
    results = osim.load(str(viewed.store), name)
    run = results.runs.iloc[0]
    opinions = results.opinions[results.opinions["run_id"] == run["run_id"]]
    with viewed.page(browser, f"#/run/{run['run_id']}") as page:
        assert page.locator("figcaption").all_inner_texts() == list(FIGURES)
        accessible(page)
        if opinions.empty:
            return
        kind = next(each for each in TEXTS if each in set(opinions["kind"]))
        found = osim.metrics.trajectories(results.runs[:1], results.agents, results.opinions, kind)
        wide = found.pivot(index="agent", columns="step", values="value")
        head, *rows = table(page, FIGURES[0])
        assert head[2:] == [str(step) for step in wide.columns]
        assert [[cell.rstrip("*") for cell in row[2:]] for row in rows] == [
            [printed(v) for v in row] for row in wide.values
        ]
        measured = found.pivot(index="agent", columns="step", values="measured").to_numpy().tolist()
        assert [[cell.endswith("*") for cell in row[2:]] for row in rows] == measured
        assert [row[1] for row in rows] == [printed(v) for v in found.groupby("agent")["assigned_opinion"].first()]
        last = wide[wide.columns[-1]].dropna()
        bars = table(page, FIGURES[3])[1:]
        assert sum(int(row[1]) for row in bars) == len(last)
        assert str(len(last)) in page.locator("canvas").first.get_attribute("aria-label")


def test_metrics_ties_and_events_are_those_of_the_frames(browser: Any, viewed: Viewed) -> None:
    results = osim.load(str(viewed.store), "classic")
    with viewed.page(browser, f"#/run/{run_of(viewed.store, 'classic')}") as page:
        steps = osim.metrics.step_metrics(results.runs, results.opinions, "report")
        page.get_by_label("Metric").select_option("diversity")
        page.wait_for_selector("canvas[aria-label^='diversity']")
        shown = {int(step): value for step, value in table(page, FIGURES[2])[1:]}
        expected = dict(zip(steps["step"], steps["diversity"], strict=True))
        assert all(
            abs(float(shown[step].replace("\N{MINUS SIGN}", "-")) - value) < 1e-4
            for step, value in expected.items()
            if value == value
        )
        assert len(table(page, FIGURES[1])) - 1 == len(results.edges)
    with viewed.page(browser, f"#/run/{run_of(viewed.store, 'events')}") as page:
        assert "at step 8" in page.locator("dl.terms").inner_text()


def test_an_agents_story_down_to_the_prompts(browser: Any, viewed: Viewed) -> None:
    results, run = osim.load(str(viewed.store), "dyads"), run_of(viewed.store, "dyads")
    with viewed.page(browser, f"#/run/{run}") as page:
        # The first row is the agent that changed most; its last cell leads to the turn, and that to what was read.
        row = page.locator("details:has-text('largest change first') tbody tr").first
        name = row.locator("th").inner_text()
        row.locator("td a").click()
        drawn(page)
        turn = int(page.url.rpartition("/")[2])
        said = results.turns[(results.turns["run_id"] == run) & (results.turns["turn"] == turn)].iloc[0]
        agents = results.agents[results.agents["run_id"] == run].set_index("agent")["name"]
        assert agents[said["agent"]] == name
        assert said["message"] in page.locator(".line > .text").inner_text()
        read = results.turns[(results.turns["run_id"] == run) & (results.turns["turn"].isin(said["reads"]))]
        assert page.locator("blockquote .text").all_inner_texts() == list(read["message"])
        calls = results.calls[(results.calls["run_id"] == run) & (results.calls["turn"] == turn)]
        assert f"{calls['input_tokens'].sum():,} tokens in" in page.locator("#view").inner_text()
        assert page.locator("details.card").count() == len(calls)
        assert page.locator("details.card .shown").last.inner_text() == said["message"]
        accessible(page)
        page.get_by_role("link", name=name).click()
        drawn(page)
        accessible(page)
        page.get_by_label("Order").select_option("change")
        page.wait_for_url(re.compile("order=change"))
        drawn(page)
        sizes = [
            abs(int(text.rpartition(" ")[2].replace("\N{MINUS SIGN}", "-")))
            for text in page.locator("strong.chip").all_inner_texts()
        ]
        assert sizes == sorted(sizes, reverse=True)
        own = results.turns[(results.turns["run_id"] == run) & (results.turns["agent"] == said["agent"])]
        assert page.locator("ol.lines > li").count() == len(own)


@pytest.mark.parametrize("name", ["dyads", "structure", "consensus", "room"])
def test_dialogues_are_read_as_what_they_are(browser: Any, viewed: Viewed, name: str) -> None:
    results, run = osim.load(str(viewed.store), name), run_of(viewed.store, name)
    turns = results.turns[results.turns["run_id"] == run]
    with viewed.page(browser, f"#/run/{run}/dialogue") as page:
        accessible(page)
        text = page.locator("#view").inner_text()
        first = turns[turns["kind"].isin(["post", "response", "speech", "statement"])]["message"].iloc[0]
        assert " ".join(first.split()) in " ".join(text.split())
        if name == "consensus":
            assert page.locator(".line.own").count() == 2
            assert "selected" in text
            assert page.locator("caption", has_text="Ballots").count() == 2
        elif name == "room":
            assert page.locator(".analysis h3").first.inner_text() == "Summary"
        else:
            assert "has read" in text


def test_search_finds_and_filters(browser: Any, viewed: Viewed) -> None:
    results = osim.load(str(viewed.store), "dyads")
    with viewed.page(browser) as page:
        page.get_by_role("link", name="dyads").click()
        page.get_by_role("link", name="search the texts").click()
        page.get_by_label("Text to find").fill("THEORY")
        page.get_by_role("button", name="Search").click()
        page.wait_for_selector("mark")
        found = results.turns["message"].str.contains("theory", case=False)
        assert f"of {found.sum():,}" in page.locator("#view").inner_text()
        accessible(page)
        page.get_by_label("Act").select_option("write")
        page.wait_for_url(re.compile("act=write"))
        drawn(page)
        assert f"of {(found & (results.turns['act'] == 'write')).sum():,}" in page.locator("#view").inner_text()
        page.reload()
        drawn(page)
        assert page.get_by_label("Text to find").input_value() == "THEORY"
        page.locator(".line a", has_text="turn").first.click()
        page.wait_for_selector("details.card")


def test_a_sweep_of_a_classic_model_is_a_grid_of_means(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "swept.sqlite"
    given = ["--over", "epsilon=[0.1,0.9]", "--over", "mu=[0.2,0.5]", "--steps", "200", "--agents", "20"]
    command = [sys.executable, "-m", "opinionsim", "abm", "deffuant", *given, "--replicates", "2", "--store", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    with viewing(browser, path) as viewed, viewed.page(browser) as page:
        page.get_by_role("link", name="deffuant").click()
        page.wait_for_selector(".swatch")
        assert page.locator("td .swatch").count() == 4
        assert "Equation-based model" in page.title()
        page.get_by_label("Colour").select_option("diversity")
        page.wait_for_selector("caption:text('Means of diversity')")
        low, high = page.locator("tbody tr").first.locator("td").all_inner_texts()
        # Agents that hear everybody but those far away end closer together.
        assert float(high) < float(low)
        accessible(page)


# -- the scrubber --------------------------------------------------------------------------------------------


def test_scrubbing_by_keys_playing_and_two_runs_side_by_side(browser: Any, viewed: Viewed) -> None:
    results = osim.load(str(viewed.store), "dyads")
    first, other = results.runs[results.runs["block"] == results.runs["block"].iloc[0]]["run_id"].iloc[:2]
    with viewed.page(browser, f"#/run/{first}?step=3") as page:
        step = page.get_by_label("Step", exact=True)
        step.focus()
        page.keyboard.press("ArrowRight")
        at_step(page, 4)
        page.keyboard.press("End")
        at_step(page, 30)
        page.keyboard.press("Home")
        at_step(page, 0)
        # The address follows, so that it can be sent to a colleague.
        page.wait_for_url(re.compile("step=0"))
        assert step.get_attribute("aria-valuetext") == "step 0 of 30"
        page.wait_for_selector("canvas[aria-label*='At step 0 nobody is measured yet']")
        page.get_by_label("Beside it").select_option(other)
        page.wait_for_function("() => document.querySelectorAll('figure').length === 8")
        drawn(page)
        accessible(page)
        page.get_by_label("Speed").select_option("100")
        page.get_by_role("button", name="Play").click()
        at_step(page, 30)
        page.wait_for_selector("button:text-is('Play')")
        kind = "report"
        found = osim.metrics.trajectories(results.runs, results.agents, results.opinions, kind)
        for place, run in enumerate((first, other)):
            held = found[(found["run_id"] == run) & (found["step"] == 30)]["value"].dropna()
            label = page.locator("canvas[aria-label^='Opinions of']").nth(place).get_attribute("aria-label")
            assert f"{len(held)} of 6 agents are measured: mean {printed(held.mean())}" in label


# -- live ----------------------------------------------------------------------------------------------------


def test_a_run_is_watched_while_another_process_carries_it_out_is_killed_and_goes_on(
    browser: Any, tmp_path: Path
) -> None:
    spec, path = tmp_path / "live.yaml", tmp_path / "live.sqlite"
    environment = {**os.environ, "OPENAI_API_KEY": "none", "NO_COLOR": "1"}

    def begin() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "opinionsim", "run", str(spec), "--store", str(path), "--max-concurrency", "1"]
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    with StubProvider(latency=0.05) as stub:
        document = changed(
            SMALL, name="live", interaction__steps=60,
            model={"name": "openai:stub", "options": {"base_url": stub.base_url}},
            measurement={"classifier": "lexicon", "texts": ["report"]},
        )  # fmt: skip
        spec.write_text(yaml.safe_dump(document), encoding="utf-8")
        process = begin()
        try:
            wait_until(lambda: len(stub.log) >= 4)
            with viewing(browser, path) as viewed, viewed.page(browser) as page:
                page.wait_for_selector("#view >> text=under way")
                page.get_by_role("link", name="live").click()
                page.locator(".square.under-way").click()
                end = "step => Number(document.getElementById('step')?.max) >= step"
                page.wait_for_function(end, arg=6)
                assert "Language-model agents" in page.title()
                # Looking back while it goes on: the scrubber stays where it was put.
                page.get_by_label("Step", exact=True).fill("2")
                page.wait_for_function(end, arg=9)
                assert page.get_by_label("Step", exact=True).input_value() == "2"
                process.send_signal(signal.SIGKILL)
                process.wait()
                page.wait_for_selector(".state:text('cut off')")
                process = begin()
                page.keyboard.press("End")
                page.wait_for_selector(".state:text-is('complete')", timeout=60_000)
                at_step(page, 60)
                accessible(page)
        finally:
            process.kill()
            process.wait()


def test_a_run_begun_anew_is_drawn_anew(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "again.sqlite"
    finished(changed(SMALL, name="again", measurement__texts=["report"]), str(path))
    run = run_of(path, "again")
    with viewing(browser, path) as viewed, viewed.page(browser, f"#/run/{run}") as page:
        at_step(page, 6)
        with open_store(f"sqlite:///{path}") as opened:
            opened.forget([run])
        page.wait_for_selector(".state:text-is('pending')")
        page.wait_for_selector("#said:text('begun anew')")
        at_step(page, 0)
        page.wait_for_selector("canvas[aria-label*='nobody is measured yet']")


def test_a_run_begun_anew_is_followed_to_its_end(browser: Any, tmp_path: Path) -> None:
    path, spec = tmp_path / "again.sqlite", changed(SMALL, name="again", measurement__texts=["report"])
    finished(spec, str(path))
    run = run_of(path, "again")
    with viewing(browser, path) as viewed, viewed.page(browser, f"#/run/{run}") as page:
        with open_store(f"sqlite:///{path}") as opened:
            opened.forget([run])
        page.wait_for_selector(".state:text-is('pending')")
        finished(spec, str(path))
        page.wait_for_selector(".state:text-is('complete')")


def test_a_store_that_is_deleted_and_a_server_that_ends_are_said(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "gone.sqlite"
    finished(changed(SMALL, name="gone", measurement__texts=["report"]), str(path))
    with viewing(browser, path) as viewed, viewed.page(browser, f"#/run/{run_of(path, 'gone')}") as page:
        for each in path.parent.glob("gone.sqlite*"):
            each.unlink()
        page.wait_for_selector("#said:text('gone.sqlite')")
        viewed.go(page, "#/")
        page.reload()
        page.wait_for_selector(".problem:text('gone.sqlite')")
        viewed.server.kill()
        page.evaluate("location.hash = '#/search'")
        page.wait_for_selector(".problem:text('connection')")


# -- offline -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dyads", "room"])
def test_one_file_opens_from_the_disk_without_a_network(
    browser: Any, viewed: Viewed, tmp_path: Path, name: str
) -> None:
    run, path = run_of(viewed.store, name), tmp_path / "run.html"
    with viewed.page(browser) as page:
        offline(viewed, page, run, path)
    context = browser.new_context(offline=True)
    page = context.new_page()
    failed: list[str] = []
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.on("requestfailed", lambda request: failed.append(request.url))
    try:
        page.goto(path.as_uri())
        drawn(page)
        assert "SCRIPTED STAND-IN" in page.title()
        assert "Nothing is left out" in page.locator("main").inner_text()
        page.wait_for_selector("canvas[aria-label^='Opinions of'], canvas[aria-label^='No metric']")
        accessible(page)
        page.locator("details:has-text('largest change first') tbody th a").first.click()
        drawn(page)
        assert page.locator("ol.lines > li").count() > 1
        page.get_by_role("link", name="its dialogue").click()
        drawn(page)
        page.locator("ol.lines a", has_text="turn").first.click()
        page.wait_for_selector("h2:text('Calls')")
        page.reload()
        page.wait_for_selector("h2:text('Calls')")
        page.go_back()
        page.wait_for_selector(".step")
        page.goto(f"{path.as_uri()}#/search?q=x")
        page.wait_for_selector(".problem:text('one run')")
        assert not failed
    finally:
        context.close()


# -- what may come -------------------------------------------------------------------------------------------


class HostileModel(WatchedModel):
    """Says what would do something on a page that took it for anything but text."""

    async def _agenerate(self, *arguments: Any, **options: Any) -> Any:
        found = await super()._agenerate(*arguments, **options)
        found.generations[0].message.content = "\n".join(HOSTILE) + "</script>" + "w" * 100_000
        return found


def test_what_was_refused_and_skipped_is_marked(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "refused.sqlite"
    model = {"name": "scripted", "options": {"refusal_rate": 0.6}}
    spec = changed(SMALL, name="refused", measurement__texts=["report"], interaction__steps=20, model=model)
    turns = finished(spec, str(path)).turns
    with viewing(browser, path) as viewed, viewed.page(browser, f"#/run/{run_of(path, 'refused')}") as page:
        words = page.locator("canvas[aria-label^='Opinions of']").get_attribute("aria-label")
        counts = turns["condition"].value_counts()
        assert counts["skipped"] > 0
        assert f"{counts['refused']} refused, {counts['skipped']} skipped" in words
        viewed.go(page, f"#/run/{run_of(path, 'refused')}/dialogue")
        assert page.locator(".wordless:text-is('refused')").count() == counts["refused"]


def test_hostile_texts_are_texts(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "hostile.sqlite"
    cast = [{"name": HOSTILE[1], "persona": HOSTILE[0]}, {"name": HOSTILE[6], "persona": HOSTILE[2]}]
    spec = {
        "name": "hostile",
        "seed": 1,
        "task": HOSTILE[0],
        "cast": cast,
        "interaction": {"kind": "chain", "cycles": 2},
    }
    model = HostileModel()
    model._watch = Watch()
    finished(spec, str(path), model)
    run = run_of(path, "hostile")
    views = ("#/", f"#/run/{run}", f"#/run/{run}/agent/0", f"#/run/{run}/turn/1", f"#/run/{run}/dialogue",
             f"#/run/{run}?instrument=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&kind=%22&step=-1&with=")  # fmt: skip
    with viewing(browser, path) as viewed, viewed.page(browser, viewport={"width": 360, "height": 740}) as page:
        for address in views:
            viewed.go(page, address)
            assert "taken" not in page.title() or HOSTILE[1] in page.title()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
            assert page.locator("#view img, #view svg, #view script, #view style").count() == 0
            accessible(page)
        viewed.go(page, f"#/run/{run}/turn/1")
        assert HOSTILE[0] in page.locator(".line > .text").inner_text()
        offline(viewed, page, run, tmp_path / "hostile.html")
        context = browser.new_context(offline=True)
        alone = context.new_page()
        alone.goto(f"{(tmp_path / 'hostile.html').as_uri()}#/run/{run}/turn/1")
        drawn(alone)
        assert alone.locator(".line > .text").inner_text() == page.locator(".line > .text").inner_text()
        context.close()


@pytest.mark.parametrize(
    "address",
    [
        "#/nonsense",
        "#/run/0123",
        "#/run/../../etc",
        "#/experiment/99999?design=x",
        "#/run/RUN/agent/99",
        "#/run/RUN/turn/9999",
        "#/run/RUN?with=zzz",
        "#/search",
        "#/%E0%A4%A",
        "#/<script>alert(1)</script>",
    ],
)
def test_nonsense_in_the_address_gives_a_sentence_and_a_way_home(browser: Any, viewed: Viewed, address: str) -> None:
    with viewed.page(browser) as page:
        page.goto(f"{viewed.server.address}/{address.replace('RUN', run_of(viewed.store, 'dyads'))}")
        page.wait_for_selector(".problem")
        assert len(page.locator(".problem").inner_text().split()) > 3
        accessible(page)
        page.get_by_role("link", name="To the start").click()
        page.wait_for_selector("article h2")


def test_an_answer_that_comes_late_does_not_mix_with_another(browser: Any, viewed: Viewed) -> None:
    first, other = run_of(viewed.store, "dyads"), run_of(viewed.store, "classic")
    held: list[Any] = []
    with viewed.page(browser) as page:
        page.route(f"**/data/runs/{first}?*", lambda route: held.append(route))
        page.evaluate("hash => { location.hash = hash }", f"#/run/{first}")
        page.wait_for_function("() => document.querySelector('#view [aria-busy]')")
        page.evaluate("hash => { location.hash = hash }", f"#/run/{other}")
        page.wait_for_selector("figure")
        for route in held:
            route.continue_()
        drawn(page)
        assert "classic" in page.title()
        assert page.locator("figure").count() == 4


def test_the_width_of_a_phone_and_the_dark(browser: Any, viewed: Viewed) -> None:
    run, room = run_of(viewed.store, "dyads"), run_of(viewed.store, "room")
    with viewed.page(browser, viewport={"width": 360, "height": 740}, color_scheme="dark") as page:
        experiment = viewed.asked(page, f"runs/{run}")["about"]["experiment_id"]
        read = (f"#/run/{run}/agent/1", f"#/run/{run}/turn/3", f"#/run/{room}/dialogue")
        found = f"#/search?experiment={experiment}&q=theory"
        for address in (f"#/experiment/{experiment}?colour=bias", f"#/run/{run}", *read, found):
            viewed.go(page, address)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
            accessible(page)
        viewed.go(page, f"#/run/{run}")
        pixels = "() => document.querySelector('canvas').toDataURL()"
        page.wait_for_selector("canvas[aria-label]")
        dark = page.evaluate(pixels)
        page.emulate_media(color_scheme="light")
        page.wait_for_function("dark => document.querySelector('canvas').toDataURL() !== dark", arg=dark)
