"""The page that draws runs, in a browser: what it shows is what the store holds, live, later and offline."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

import opinionsim as osim
from opinionsim.metrics import evidence_statement, kinds_in_order
from opinionsim.store import open_store
from tests.support.pages import HOSTILE, accessible
from tests.support.processes import Command
from tests.support.provider import StubProvider
from tests.support.running import SMALL, changed, finished
from tests.support.viewers import HOSTILE_SPEC, KINDS, CutOffModel, HostileModel, Viewed, drawn, kinds, offline, viewing
from tests.support.waiting import wait_until

#: The axes that a run's page shows: figures, in their order.
FIGURES = ("Opinions over the steps", "Network at this step", "bias by step", "Distribution at this step")


#: Texts that were refused, or cut off and counted or not.
REPLIES = {
    "refused": ({"name": "scripted", "options": {"refusal_rate": 0.6}}, None),
    "cut-off": ({"name": "scripted", "replies": {"truncated": {"reask": 0, "then": "missing"}}}, CutOffModel),
    "counted": ({"name": "scripted", "replies": {"truncated": {"reask": 0, "then": "measure"}}}, CutOffModel),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one experiment of every kind, and some of what may come."""
    path = tmp_path_factory.mktemp("viewed") / "every kind.sqlite"
    for spec in KINDS.values():
        finished(spec, str(path))
    for seed, (name, (model, played)) in enumerate(REPLIES.items()):
        # Runs that ask the same are the same, however they are counted.
        spec = changed(SMALL, name=name, seed=seed, measurement__texts=["report"], model=model)
        spec["interaction"] = {"kind": "dyadic", "steps": 20}
        finished(spec, str(path), played and played())
    finished(HOSTILE_SPEC, str(path), HostileModel())
    finished(changed(SMALL, name="marked", replicates=3), str(path))
    trial, withdrawn = (run_of(path, "marked", row) for row in (1, 2))
    with open_store(str(path)) as opened:
        opened.change_seat(trial, 1, lambda seat: replace(seat, trial=True))
        opened.withdraw(withdrawn, 0)
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
    details = page.locator("figure", has_text=name).locator("details")
    if not details.evaluate("box => box.open"):
        details.locator("summary").click()
    return rows_of(page, name)


def rows_of(page: Any, name: str) -> list[list[str]]:
    """The rows of the table in a figure."""
    rows = (
        page.locator("figure", has_text=name)
        .locator("table")
        .evaluate("table => [...table.rows].map((row) => [...row.cells].map((c) => c.innerText))")
    )
    return list(rows)


def at_step(page: Any, step: int) -> None:
    """Wait until the scrubber is at a step, and the numbers that are open too."""
    page.wait_for_function("step => document.getElementById('step').value === String(step)", arg=step)


def seen(page: Any) -> None:
    """Tell a page that it has come into sight, or gone out of it."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def printed(value: float) -> str:
    """A number as the page prints it."""
    if math.isnan(value):
        return "\N{EN DASH}"
    rounded = Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP) + 0
    return f"{rounded.normalize():f}".replace("-", "\N{MINUS SIGN}")


# -- what is shown is what the store holds -------------------------------------------------------------------


@pytest.mark.parametrize("name", kinds("classic"))
def test_a_run_of_every_kind_shows_the_numbers_of_its_frames(browser: Any, viewed: Viewed, name: str) -> None:
    results = osim.load(str(viewed.store), name)
    run = results.runs.iloc[0]
    opinions = results.opinions[results.opinions["run_id"] == run["run_id"]]
    with viewed.page(browser, f"#/run/{run['run_id']}") as page:
        scaled = not opinions.empty or results.agents["assigned_opinion"].notna().any()
        shown = page.locator("figcaption:visible").all_inner_texts()
        assert shown == list(FIGURES if scaled else FIGURES[1:2])
        assert page.locator("text=A line has the colour").count() == results.agents["assigned_opinion"].notna().any()
        if name in ("events", "classic"):
            accessible(page)
        if opinions.empty:
            return
        kind = kinds_in_order(opinions["kind"], results.runs["texts"])[0]
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
        bars = rows_of(page, FIGURES[3])[1:]
        assert sum(int(row[1]) for row in bars) == len(last)
        assert f"{len(last)} of" in page.locator("canvas[role=img]").first.get_attribute("aria-label")


def test_metrics_ties_and_events_are_those_of_the_frames(browser: Any, viewed: Viewed) -> None:
    results = osim.load(str(viewed.store), "classic")
    with viewed.page(browser, f"#/run/{run_of(viewed.store, 'classic')}") as page:
        steps = osim.metrics.step_metrics(results.runs, results.opinions, "report")
        page.get_by_label("Metric").select_option("diversity")
        page.wait_for_selector("canvas[aria-label^='diversity']")
        shown = {int(step): value for step, value in table(page, "diversity by step")[1:]}
        expected = dict(zip(steps["step"], steps["diversity"], strict=True))
        assert all(
            abs(float(shown[step].replace("\N{MINUS SIGN}", "-")) - value) < 1e-4
            for step, value in expected.items()
            if value == value
        )
        assert len(table(page, FIGURES[1])) - 1 == len(results.edges)
    results, run = osim.load(str(viewed.store), "events"), run_of(viewed.store, "events")
    names = results.agents.set_index("agent")["name"]
    with viewed.page(browser, f"#/run/{run}?step=4") as page:
        assert "at step 8" in page.locator("dl.terms").inner_text()
        assert "3 events" in page.locator("canvas[aria-label^='Opinions of']").get_attribute("aria-label")
        page.locator("figure.net summary").click()
        for step in (3, 4):
            page.get_by_label("Step", exact=True).fill(str(step))
            edges = results.edges
            there = edges[(edges["since"] <= step) & ~(edges["until"] <= step).fillna(False)]
            expected = [f"{names[row.source]}-{names[row.target]}" for row in there.itertuples()]
            assert len(expected) == len(edges) - 1
            page.wait_for_function(
                """expected => {
                  const rows = [...document.querySelectorAll("figure.net tbody tr")];
                  const pairs = rows.map(({ cells: [one, other] }) => `${one.innerText}-${other.innerText}`);
                  return pairs.sort().join() === expected;
                }""",
                arg=",".join(sorted(expected)),
            )


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
        page.get_by_label("Order").select_option("change")
        page.wait_for_url(re.compile("order=change"))
        drawn(page)
        sizes = [
            abs(int(text.rpartition(" ")[2].replace("\N{MINUS SIGN}", "-")))
            for text in page.locator(".who .chip").all_inner_texts()
        ]
        assert sizes == sorted(sizes, reverse=True)
        own = results.turns[(results.turns["run_id"] == run) & (results.turns["agent"] == said["agent"])]
        assert page.locator("ol.lines > li").count() == len(own)


def test_dialogues_are_read_as_what_they_are(browser: Any, viewed: Viewed) -> None:
    results, run = osim.load(str(viewed.store), "dyads"), run_of(viewed.store, "dyads")
    turns = results.turns[results.turns["run_id"] == run]
    with viewed.page(browser, f"#/run/{run}/dialogue") as page:
        accessible(page)
        text = page.locator("#view").inner_text()
        first = turns[turns["kind"] == "post"]["message"].iloc[0]
        assert " ".join(first.split()) in " ".join(text.split())
        assert "has read" in text


def test_agents_of_one_name_have_their_numbers(browser: Any, viewed: Viewed) -> None:
    run = run_of(viewed.store, "classic")
    names = osim.load(str(viewed.store), "classic").agents.set_index("agent")["name"]
    expected = {f"{name} (agent {agent})" if (names == name).sum() > 1 else name for agent, name in names.items()}
    twice = names[names.duplicated(keep=False)]
    assert 0 < len(twice) < len(names)
    with viewed.page(browser, f"#/run/{run}") as page:
        assert {row[0] for row in table(page, FIGURES[0])[1:]} == expected
        assert set(page.locator("section > details tbody th").all_inner_texts()) == expected
        viewed.go(page, f"#/run/{run}/agent/{twice.index[0]}")
        words = f"{twice.iloc[0]} (agent {twice.index[0]})"
        assert page.title().startswith(words)
        assert page.locator(".who a").first.inner_text() == words


def test_search_finds_and_filters(browser: Any, viewed: Viewed) -> None:
    results = osim.load(str(viewed.store), "dyads")
    with viewed.page(browser, viewed.results("dyads")) as page:
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


ADDRESSED = {"1.5": 2, "-1": 0, "-7.2": 0, "1e9": 30, "Infinity": 30, "text": 30, "": 0, "%00": 30}


def test_any_step_in_the_address_is_one_of_the_run(browser: Any, viewed: Viewed) -> None:
    with viewed.page(browser, "#/search") as page:
        for given, shown in ADDRESSED.items():
            page.goto("about:blank")
            viewed.go(page, f"#/run/{run_of(viewed.store, 'dyads')}?step={given}")
            at_step(page, shown)
            page.wait_for_selector(f"canvas[aria-label*='At step {shown}']")


# -- live ----------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_run_is_watched_while_another_process_carries_it_out_is_killed_and_goes_on(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, path = tmp_path / "live.yaml", tmp_path / "live.sqlite"
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def begin() -> Command:
        return Command("run", spec, "--store", path, "--max-concurrency", "1")

    with StubProvider(latency=0.05) as stub:
        document = changed(
            SMALL, name="live", interaction__steps=40,
            model={"name": "openai:stub", "options": {"base_url": stub.base_url}},
            measurement={"classifier": "lexicon", "texts": ["report"]},
        )  # fmt: skip
        spec.write_text(yaml.safe_dump(document), encoding="utf-8")
        process = begin()
        try:
            wait_until(lambda: len(stub.log) >= 4)
            with viewing(browser, path) as viewed, viewed.page(browser) as page:
                page.wait_for_selector("[data-live] >> text=under way")
                page.get_by_text("All of them, with their numbers").click()
                page.locator("tr", has_text="under way").get_by_role("link").click()
                end = "step => Number(document.getElementById('step')?.max) >= step"
                page.wait_for_function(end, arg=6)
                assert "Language-model agents" in page.title()
                # Looking back while it goes on: the scrubber stays where it was put.
                page.get_by_label("Step", exact=True).fill("2")
                page.wait_for_function(end, arg=9)
                assert page.get_by_label("Step", exact=True).input_value() == "2"
                process.kill()
                page.wait_for_selector(".state:text('cut off')")
                process = begin()
                page.keyboard.press("End")
                page.wait_for_selector(".state:text-is('complete')", timeout=60_000)
                at_step(page, 40)
                accessible(page)
        finally:
            process.kill()


@pytest.mark.long
def test_a_run_begun_anew_is_drawn_anew_and_followed_to_its_end(browser: Any, tmp_path: Path) -> None:
    path, spec = tmp_path / "again.sqlite", changed(SMALL, name="again", measurement__texts=["report"])
    finished(spec, str(path))
    run = run_of(path, "again")
    with viewing(browser, path) as viewed, viewed.page(browser, f"#/run/{run}") as page:
        at_step(page, 6)
        with open_store(f"sqlite:///{path}") as opened:
            opened.forget([run])
        # A run that has ended is looked at again when its page comes into sight; an answer holds for a moment.
        page.wait_for_function(
            "() => document.querySelector('.state').textContent === 'pending'"
            " || void document.dispatchEvent(new Event('visibilitychange'))",
            polling=500,
        )
        page.wait_for_selector("#said:text('begun anew')")
        at_step(page, 0)
        page.wait_for_selector("canvas[aria-label*='nobody is measured yet']")
        finished(spec, str(path))
        page.wait_for_selector(".state:text-is('complete')")
        at_step(page, 6)


@pytest.mark.long
def test_a_store_that_is_deleted_and_a_server_that_ends_are_said(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "gone.sqlite"
    finished(changed(SMALL, name="gone", measurement__texts=["report"]), str(path))
    with open_store(f"sqlite:///{path}") as opened:
        opened.forget([run_of(path, "gone")])
    with viewing(browser, path) as viewed, viewed.page(browser, f"#/run/{run_of(path, 'gone')}") as page:
        for each in path.parent.glob("gone.sqlite*"):
            each.unlink()
        page.wait_for_selector("#said:text('gone.sqlite')")
        page.reload()
        page.wait_for_selector(".problem:text('gone.sqlite')")
        viewed.go(page, "/")
        page.wait_for_selector(".problem:text('gone.sqlite')")
        page.go_back()
        page.wait_for_selector(".problem:text('gone.sqlite')")
        viewed.server.kill()
        page.evaluate("location.hash = '#/search'")
        page.wait_for_selector(".problem:text('connection')")


@pytest.mark.whole
def test_runs_that_have_ended_hold_no_stream_and_a_refusal_is_said(browser: Any, viewed: Viewed) -> None:
    address = f"#/run/{run_of(viewed.store, 'dyads')}"
    with viewed.page(browser, address) as first:
        # Browsers keep six streams to a host open; the seventh page is drawn all the same.
        pages = [first.context.new_page() for _ in range(6)]
        for page in pages:
            viewed.go(page, address)
        first.context.clear_cookies()
        seen(first)
        first.wait_for_selector("#said:text('Please open the link')")


def test_a_page_out_of_sight_holds_no_stream(browser: Any, viewed: Viewed) -> None:
    with viewed.page(browser, f"#/run/{run_of(viewed.store, 'dyads')}") as page:
        asked: list[str] = []
        page.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
        # What was asked for while the page was in sight may still be on its way.
        seen(page)
        page.on("request", lambda request: asked.append(request.url))
        seen(page)
        assert not asked
        page.evaluate("delete document.hidden")
        with page.expect_request("**/live/*since=*"):
            seen(page)


# -- offline -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", kinds("dyads"))
def test_one_file_opens_from_the_disk_without_a_network(
    browser: Any, viewed: Viewed, tmp_path: Path, name: str
) -> None:
    run, path = run_of(viewed.store, name), tmp_path / "run.html"
    shown = "canvas[role=img], .terms dd, .lines .text"
    with offline(browser, viewed.store, run, path) as page, viewed.page(browser, f"#/run/{run}") as live:

        def same(view: str) -> None:
            """The file shows what the host shows."""
            page.goto(f"{path.as_uri()}{view}")
            drawn(page)
            viewed.go(live, view)
            for each in (page, live):
                # Figures are described when they are drawn.
                each.wait_for_function(
                    "() => [...document.querySelectorAll('figure:not([hidden]) canvas[role=img]')]"
                    ".every((each) => each.ariaLabel)"
                )
            texts = "parts => parts.map((part) => part.getAttribute('aria-label') ?? part.textContent)"
            found, expected = (each.locator(shown).evaluate_all(texts) for each in (page, live))
            assert found == expected

        same(f"#/run/{run}?metric=diversity")
        assert page.title() == live.title()
        assert "Exported" in page.locator("main").inner_text()
        if name == "dyads":
            accessible(page)
        same(f"#/run/{run}/agent/0?order=change")
        same(f"#/run/{run}/dialogue")
        same(f"#/run/{run}/turn/2")
        prompts = [each.locator(".card .shown").all_inner_texts() for each in (page, live)]
        assert prompts[0] == prompts[1]
        page.goto(f"{path.as_uri()}#/run/{run}/turn/999999")
        page.wait_for_selector(".problem:text('one run')")


def test_a_file_is_searched_as_a_store_is(browser: Any, tmp_path: Path) -> None:
    store = tmp_path / "one.sqlite"
    results = finished(changed(SMALL, name="one", replicates=1), str(store))
    run, told = results.runs["run_id"].iloc[0], ".lines .line, #view select"
    with ExitStack() as opened:
        viewed = opened.enter_context(viewing(browser, store))
        live = opened.enter_context(viewed.page(browser, f"#/run/{run}"))
        page = opened.enter_context(offline(browser, store, run, tmp_path / "run.html"))
        for each in (live, page):
            each.get_by_role("link", name="search", exact=True).click()
            each.wait_for_selector("input[type=search]")
        places = [f"{each.url}&q=" for each in (page, live)]
        for query in ("THEORY", "i", "(", "no such words", ""):
            for each, place in zip((page, live), places, strict=True):
                each.goto(place + query)
                each.wait_for_function("q => document.querySelector('input[type=search]')?.value === q", arg=query)
            found, expected = (each.locator(told).all_inner_texts() for each in (page, live))
            assert found == expected
            assert (len(found) > 4) == (query not in ("(", "no such words")), query
        page.get_by_label("Act").select_option("write")
        page.wait_for_url(re.compile("act=write"))
        drawn(page)
        assert f"of {(results.turns['act'] == 'write').sum():,}" in page.locator("#view").inner_text()
        accessible(page)
        page.locator(".line a", has_text="turn").first.click()
        page.wait_for_selector("#view[data-at*='/turn/']")


def test_a_file_says_what_was_left_out_of_it(
    browser: Any, viewed: Viewed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, path = run_of(viewed.store, "dyads"), tmp_path / "small.html"
    monkeypatch.setattr("opinionsim.web._export.MOST_BYTES", 1)
    with offline(browser, viewed.store, run, path) as page:
        page.goto(f"{path.as_uri()}#/run/{run}/turn/2")
        page.wait_for_selector("p:text-is('Calls were left out of this file.')")
        assert page.locator("text=No model was asked").count() == 0


# -- what may come -------------------------------------------------------------------------------------------


def test_what_was_refused_and_skipped_is_marked(browser: Any, viewed: Viewed) -> None:
    run, turns = run_of(viewed.store, "refused"), osim.load(str(viewed.store), "refused").turns
    with viewed.page(browser, f"#/run/{run}") as page:
        page.wait_for_selector("canvas[aria-label^='Opinions of']")
        words = page.locator("canvas[aria-label^='Opinions of']").get_attribute("aria-label")
        counts = turns["status"].value_counts()
        assert counts["skipped"] > 0
        assert f"{counts['refused']} refused, {counts['skipped']} skipped" in words
        viewed.go(page, f"#/run/{run}/dialogue")
        assert page.locator(".wordless:text-is('refused')").count() == counts["refused"]


@pytest.mark.parametrize("name", ["counted", pytest.param("cut-off", marks=pytest.mark.whole)])
def test_texts_that_were_cut_off_are_marked_and_count_where_they_shall(browser: Any, viewed: Viewed, name: str) -> None:
    results, run = osim.load(str(viewed.store), name), run_of(viewed.store, name)
    found = osim.metrics.trajectories(results.runs, results.agents, results.opinions, "report")
    cut_off = (results.turns["status"] == "truncated").sum()
    with viewed.page(browser, f"#/run/{run}") as page:
        assert viewed.asked(page, f"runs/{run}")["about"]["uncounted"] == ([] if name == "counted" else ["truncated"])
        rows = table(page, FIGURES[0])[1:]
        measured = found.pivot(index="agent", columns="step", values="measured").to_numpy().tolist()
        assert [[cell.endswith("*") for cell in row[2:]] for row in rows] == measured
        words = page.locator("canvas[aria-label^='Opinions of']").get_attribute("aria-label")
        assert cut_off > 0
        assert f"{cut_off} cut off" in words
        viewed.go(page, f"#/run/{run}/dialogue")
        assert page.locator(".wordless:text('cut off')").count() == cut_off


@pytest.mark.whole
def test_trials_and_withdrawn_runs_say_so_in_every_title(browser: Any, viewed: Viewed) -> None:
    with viewed.page(browser, "#/nowhere") as page:
        for row, state in ((0, ""), (1, "TRIAL"), (2, "WITHDRAWN")):
            run = run_of(viewed.store, "marked", row)
            for view in ("", "/agent/0", "/turn/0", "/dialogue"):
                viewed.go(page, f"#/run/{run}{view}")
                marks = [evidence_statement(["scripted"]), *([state] if state else [])]
                assert page.locator(".top .stamp").inner_text() == " \N{MIDDLE DOT} ".join(marks)
                assert all(mark in page.title() for mark in marks)
            viewed.go(page, f"#/run/{run}")
            assert page.locator(".problem").count() == bool(state)


@pytest.mark.whole
def test_a_run_of_models_of_two_kinds_says_both(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    path = tmp_path / "mixed.sqlite"
    with StubProvider() as stub:
        model = {"name": "openai:stub", "share": 0.5, "options": {"base_url": stub.base_url}}
        finished(
            changed(
                SMALL,
                name="mixed",
                model=[{"name": "scripted", "share": 0.5}, model],
                measurement__classifier="lexicon",
            ),
            str(path),
        )
    stamp = evidence_statement(["mixed"])
    with viewing(browser, path) as viewed, viewed.page(browser, f"#/run/{run_of(path, 'mixed')}") as page:
        assert stamp in page.title()
        assert page.locator(".top .stamp").inner_text() == stamp
        viewed.go(page, "/")
        assert stamp in page.title()


def test_hostile_texts_are_texts(browser: Any, viewed: Viewed, tmp_path: Path) -> None:
    run = run_of(viewed.store, "hostile")
    views = (f"#/run/{run}", f"#/run/{run}/agent/0", f"#/run/{run}/turn/1", f"#/run/{run}/dialogue",
             f"#/run/{run}?instrument=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&kind=%22&step=-1&with=")  # fmt: skip
    said = ".line > .text"
    with viewed.page(browser, viewport={"width": 360, "height": 740}) as page:
        for address in views:
            viewed.go(page, address)
            assert "taken" not in page.title() or HOSTILE[1] in page.title()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
            assert page.locator("#view img, #view svg, #view script, #view style").count() == 0
            if address in views[1:3]:
                accessible(page)
        viewed.go(page, f"#/run/{run}/turn/1")
        assert HOSTILE[0] in page.locator(said).inner_text()
        with offline(browser, viewed.store, run, tmp_path / "hostile.html") as alone:
            for address in views:
                alone.goto(f"{(tmp_path / 'hostile.html').as_uri()}{address}")
                drawn(alone)
                assert "taken" not in alone.title() or HOSTILE[1] in alone.title()
                assert alone.locator("#view img, #view svg, #view script, #view style").count() == 0
            alone.goto(f"{(tmp_path / 'hostile.html').as_uri()}#/run/{run}/turn/1")
            drawn(alone)
            assert alone.locator(said).inner_text() == page.locator(said).inner_text()


NONSENSE = (
    "#/nonsense", "#/run/0123", "#/run/../../etc", "#/experiment/99999?design=x", "#/run/RUN/agent/99",
    "#/run/RUN/turn/9999", "#/run/RUN?with=zzz", "#/search", "#/%E0%A4%A", "#/<script>alert(1)</script>",
)  # fmt: skip


def test_nonsense_in_the_address_gives_a_sentence_and_a_way_home(browser: Any, viewed: Viewed) -> None:
    with viewed.page(browser, "#/nowhere") as page:
        for address in NONSENSE:
            page.goto(viewed.address(address.replace("RUN", run_of(viewed.store, "dyads"))))
            page.wait_for_selector(".problem[role=alert]")
            assert len(page.locator(".problem").inner_text().split()) > 3, address
            if address == NONSENSE[0]:
                accessible(page)
            page.get_by_role("link", name="To the start").click()
            page.wait_for_selector("h2:text-is('Outcome')")


@pytest.mark.whole
def test_an_answer_that_comes_late_does_not_mix_with_another(browser: Any, viewed: Viewed) -> None:
    first, other = run_of(viewed.store, "dyads"), run_of(viewed.store, "classic")
    held: list[Any] = []
    with viewed.page(browser, f"#/run/{other}/dialogue") as page:
        page.route(f"**/data/runs/{first}?*", lambda route: held.append(route))
        page.evaluate("hash => { location.hash = hash }", f"#/run/{first}")
        page.wait_for_selector("#view[aria-busy]")
        page.evaluate("hash => { location.hash = hash }", f"#/run/{other}")
        page.wait_for_selector("figure")
        for route in held:
            route.continue_()
        drawn(page)
        assert "classic" in page.title()
        assert page.locator("figure").count() == 4


def test_the_width_of_a_phone_and_the_dark(browser: Any, viewed: Viewed) -> None:
    run = run_of(viewed.store, "dyads")
    with viewed.page(browser, viewport={"width": 360, "height": 740}, color_scheme="dark") as page:
        experiment = viewed.asked(page, f"runs/{run}")["about"]["experiment_id"]
        read = (f"#/run/{run}/agent/1", f"#/run/{run}/turn/3", f"#/run/{run}/dialogue")
        found = f"#/search?experiment={experiment}&q=theory"
        for address in (f"#/run/{run}", *read, found):
            viewed.go(page, address)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
            # In the dark every kind of page is looked at; in the light the tests above do.
            accessible(page)
        viewed.go(page, f"#/run/{run}")
        pixels = "() => document.querySelector('canvas').toDataURL()"
        page.wait_for_selector("canvas[aria-label]")
        dark = page.evaluate(pixels)
        page.emulate_media(color_scheme="light")
        page.wait_for_function("dark => document.querySelector('canvas').toDataURL() !== dark", arg=dark)
