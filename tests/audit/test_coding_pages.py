"""Hand-coding in the browser: from a sample to scores, by keys and by links, into files that spreadsheets open."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

import opinionsim as osim
from opinionsim.audit import Sample, draw, labels_of, read_files, sample_of, score_tables, write_files
from opinionsim.store import open_store
from tests.audit.conftest import SPEC, fill, rows_of, save
from tests.support.pages import HOSTILE, accessible, looking
from tests.support.rooms import Browser, RoomServer, room
from tests.support.waiting import wait_until

#: Labels in turn, as files have them, and the keys of the same.
LABELS, KEYS = ("-2", "-1", "0", "1", "2", "N"), "12345n"


class Coding:
    """A sample of a store of its own, with a folder of files that pages write.

    Attributes
    ----------
    store : Path
        The store.
    name : str
        Its name in addresses.
    folder : Path
        Where the files of coders lie.
    """

    def __init__(self, server: RoomServer, store: Path) -> None:
        self.store, self.folder = store, store.with_name(f"{store.stem}-coding")
        self.name = quote(store.relative_to(server.folder).as_posix())

    def drawn(self, *coders: str, labels: int = 3) -> tuple[Sample, list[Path]]:
        """A sample, and its files."""
        sample = draw(osim.load(str(self.store)), labels)
        return sample, write_files(sample, coders, self.folder)[:-1]

    def page(self, file: Path, **more: Any) -> str:
        """The address of the page of a coder."""
        return f"/section/coding/{self.name}?coder={quote(file.stem)}" + "".join(f"&{k}={v}" for k, v in more.items())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RoomServer]:
    """A studio of a folder, to which tests add studies."""
    folder = tmp_path_factory.mktemp("studio").resolve()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        with room(".", folder, command="studio") as opened:
            yield opened


@pytest.fixture(scope="module")
def owner(server: RoomServer) -> Browser:
    found = Browser(server)
    found.come_in(server.link)
    return found


@pytest.fixture
def coding(server: RoomServer, finished: Path) -> Coding:
    """A study with complete runs in a folder of its own, whose name needs escapes in addresses."""
    return _coding(server, finished, f"{len(list(server.folder.iterdir()))} ü&")


def _coding(server: RoomServer, finished: Path, name: str) -> Coding:
    study = server.folder / name
    (study / "results").mkdir(parents=True)
    (study / "study.yaml").write_text(yaml.safe_dump(SPEC), encoding="utf-8")
    return Coding(server, Path(shutil.copy(finished, study / "results" / "audited.sqlite")))


def invited(owner: Browser, coding: Coding, file: Path) -> str:
    """A link to the page of a coder."""
    answer = owner.ask(f"/section/coding/{coding.name}", {"guest": file.stem})
    assert answer.status == 303, answer.text
    page = owner.ask(f"/section/coding/{coding.name}").text.partition(f'value="{file.stem}"')[2]
    found = re.search(r"http://[\w.:]+/enter/[\w-]+", page)
    assert found is not None, page
    return found[0]


def labelled(browser: Browser, coding: Coding, file: Path, labels: dict[str, str]) -> None:
    """Send labels by item."""
    for item, label in labels.items():
        answer = browser.ask(coding.page(file), {"item": item, "label": label})
        assert answer.status == 303, answer.text


# -- by keys ---------------------------------------------------------------------------------------------------


def test_from_a_form_to_scores_by_keys_alone(server: RoomServer, owner: Browser, coding: Coding, browser: Any) -> None:
    with looking(browser, server, viewport={"width": 390, "height": 800}) as page:
        _sign_in(page, server, owner)
        page.goto(f"{server.address}/results/{coding.name}")
        page.locator("summary:text('Draw texts for coders')").press("Enter")
        page.locator("[name=labels]").fill("3")
        page.locator("[name=coders]").press_sequentially("Ada")
        page.keyboard.press("Enter")
        page.locator("a:text('code as Ada')").press("Enter", timeout=60_000)
        page.wait_for_url(re.compile("coder="))
        accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        (file,) = coding.folder.glob("*.csv")
        first = rows_of(file)
        for row, key in zip(first, KEYS, strict=True):
            assert page.locator(".shown").inner_text() == row["text"]
            with page.expect_navigation():
                page.keyboard.press(key)
        assert [row["label"] for row in rows_of(file)] == list(LABELS)
        accessible(page)
        # The last label is taken back.
        with page.expect_navigation():
            page.keyboard.press("ArrowLeft")
        assert page.locator("[aria-pressed]").inner_text() == "N no opinion"
        with page.expect_navigation():
            page.keyboard.press("4")
        assert [row["label"] for row in rows_of(file)] == [*LABELS[:-1], "1"]
        assert page.locator("[data-key='1']").count() == 0
        page.goto(f"{server.address}/section/coding/{coding.name}")
        accessible(page)
        page.locator("button:text('Score these labels')").press("Enter")
        page.wait_for_url(re.compile("/results/"))
    results = osim.load(str(coding.store))
    wait_until(lambda: "Ada" in sample_of(results).audit.coders, 0.2)
    sample = sample_of(results)
    assert "Errors of the instrument" in owner.ask(f"/part/sections/{coding.name}").text
    study = coding.name.replace("results/audited.sqlite", "study.yaml")
    wait_until(lambda: "Tables now state" in owner.ask(f"/state/{study}").text, 0.2)
    kept = dict(zip(sample.texts["code"], labels_of(results, sample)["Ada"], strict=True))
    assert {row["item"]: row["label"].replace("N", "nan") for row in rows_of(file)} == {
        code: f"{value:.0f}" for code, value in kept.items()
    }


def _sign_in(page: Any, server: RoomServer, owner: Browser) -> None:
    """Give a page the cookie of the owner, whose link has been used."""
    name, _, value = owner.cookie.partition("=")
    page.context.add_cookies([{"name": name, "value": value, "url": server.address}])


def test_texts_are_texts(server: RoomServer, owner: Browser, coding: Coding, browser: Any) -> None:
    _, (file,) = coding.drawn("Ada", labels=4)
    save(file, [{**row, "text": text, "claim": text} for row, text in zip(rows_of(file), HOSTILE, strict=True)])
    with looking(browser, server) as page:
        _sign_in(page, server, owner)
        for number, text in enumerate(HOSTILE, 1):
            page.goto(server.address + coding.page(file, at=number))
            assert page.locator(".shown").text_content() == text
            assert page.title() == "Hand-coding"
            assert page.locator("main script, main img, main svg, main style").count() == 0


# -- files -----------------------------------------------------------------------------------------------------


def test_labels_of_pages_score_as_labels_of_a_spreadsheet(owner: Browser, coding: Coding, tmp_path: Path) -> None:
    sample, (file,) = coding.drawn("Ada")
    (typed,) = write_files(sample, ["Ada"], tmp_path)[:-1]
    before = file.read_text(encoding="utf-8")
    fill(typed, sample, lambda value: f"{value:.0f}")
    labelled(owner, coding, file, {row["item"]: row["label"] for row in rows_of(typed)})
    assert rows_of(file) == rows_of(typed)
    # Apart from the labels, no byte is another.
    assert re.sub(r"(?m),(-?\d|N)$", ",", file.read_text(encoding="utf-8")) == before
    tables = [score_tables(*kept(coding, sample, each)) for each in (file, typed)]
    for one, other in zip(*tables, strict=True):
        assert (one.title, one.rows, one.notes) == (other.title, other.rows, other.notes)


def kept(coding: Coding, sample: Sample, file: Path) -> tuple[Any, Sample]:
    """Results and sample once the labels of a file are in the store."""
    results = osim.load(str(coding.store))
    return results, osim.audit.keep(results, sample, read_files([file], sample), "human")


def test_a_file_that_a_spreadsheet_saved_goes_on(owner: Browser, coding: Coding) -> None:
    sample, (file,) = coding.drawn("Ada")
    rows = [{**row, "label": "", "remark": '\'=1; "so"'} for row in rows_of(file)]
    rows[0]["label"] = "n"
    heads = list(rows[0])
    lines = [heads, *([row[name] for name in heads] for row in rows)]
    quoted = [";".join('"' + cell.replace('"', '""') + '"' for cell in line) for line in lines]
    file.write_bytes("\ufeffsep=;\r\n".encode() + "\r\n".join(quoted).encode() + b"\r\n")
    assert f"text 2 of {len(rows)}" in owner.ask(coding.page(file)).text
    labelled(owner, coding, file, {row["item"]: "-1" for row in rows[1:]})
    labels = read_files([file], sample)["Ada"]
    assert labels.isna().sum() == 1
    assert labels[rows[0]["item"]] != labels[rows[0]["item"]]
    assert file.read_text(encoding="utf-8").count(',"\'=1; ""so"""\n') == len(rows)


def test_a_label_outlives_the_server(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with room(".", tmp_path.resolve(), command="studio") as opened:
        own = Browser(opened)
        own.come_in(opened.link)
        coding = _coding(opened, finished, "own")
        _, (file,) = coding.drawn("Ada")
        item = rows_of(file)[2]["item"]
        labelled(own, coding, file, {item: "2"})
        opened.kill()
    assert [row["item"] for row in rows_of(file) if row["label"] == "2"] == [item]


def test_two_browsers_of_one_coder_lose_no_label(server: RoomServer, owner: Browser, coding: Coding) -> None:
    _, (file,) = coding.drawn("Ada", labels=10)
    guest = Browser(server)
    guest.come_in(invited(owner, coding, file))
    items = [row["item"] for row in rows_of(file)]
    halves = [(owner, items[::2], "1"), (guest, items[1::2], "-1")]
    with ThreadPoolExecutor() as threads:
        sent = [threads.submit(labelled, who, coding, file, dict.fromkeys(own, label)) for who, own, label in halves]
    assert all(each.result() is None for each in sent)
    assert [row["label"] for row in rows_of(file)] == ["1", "-1"] * 10


# -- who sees what ---------------------------------------------------------------------------------------------


def test_a_coder_is_blind(owner: Browser, coding: Coding) -> None:
    sample, (file, other) = coding.drawn("Ada", "Ben")
    labelled(owner, coding, other, {row["item"]: "2" for row in rows_of(other)})
    row = rows_of(file)[0]
    page = owner.ask(coding.page(file)).text
    said = page.replace(row["text"], "").replace(row["claim"], "").replace(coding.name, "")
    shown = {"Ben", "framing", "falsehood", "lexicon", "report", *map(str, sample.texts["run_id"])}
    assert [each for each in shown if each in said] == []
    assert "aria-pressed" not in page


def test_a_guest_has_one_page(server: RoomServer, owner: Browser, coding: Coding) -> None:
    _, (file, other) = coding.drawn("Ada", "Ben")
    link = invited(owner, coding, file)
    guest = Browser(server)
    assert guest.come_in(link).headers["location"] == coding.page(file)
    assert guest.ask(coding.page(file)).status == 200
    assert "To the results" not in guest.ask(coding.page(file)).text
    answer = guest.ask(coding.page(file), {"item": rows_of(file)[0]["item"], "label": "1", "back": "1"})
    assert answer.headers["location"] == coding.page(file, at=2)
    assert guest.ask(answer.headers["location"]).status == 200
    assert Browser(server).come_in(link).status == 404
    study = coding.name.replace("results/audited.sqlite", "study.yaml")
    named = ["results", "progress", "runs", "part/tables", "part/coding", "figure/outcome", "picture/outcome"]
    named += ["numbers/outcome", "csv/outcome", "section/coding", "section/none"]
    paths = [f"/{each}/{coding.name}" for each in named]
    paths += [f"/{each}/{study}" for each in ("study", "state", "check", "save", "allow", "do/run")]
    paths += [
        f"/{each}?store={coding.name}"
        for each in ("data/search", "data/runs/0", "data/runs/0/turns/1", "live/0", "changes")
    ]
    paths += ["/", "/new", f"/made/{coding.name}", coding.page(other), coding.page(file, by=1)]
    paths += [f"{coding.page(file)}&coder={other.stem}", coding.page(file).replace(coding.name, "other.sqlite")]
    found = {path: {guest.ask(path).status, guest.ask(path, {"guest": other.stem}).status} for path in paths}
    # What is only sent or only asked for is not there the other way.
    assert {path: status for path, status in found.items() if not {401} <= status <= {401, 404, 405}} == {}
    assert [row["label"] for row in rows_of(other)] == [""] * 6


def test_a_viewer_codes_nothing(coding: Coding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    _, (file,) = coding.drawn("Ada")
    with room(coding.store, tmp_path, command="view") as opened:
        own = Browser(opened)
        own.come_in(opened.link)
        address = coding.page(file).replace(coding.name, coding.store.name)
        assert "A viewer changes nothing" in own.ask(address).text
        assert own.ask(address, {"item": rows_of(file)[0]["item"], "label": "1"}).status == 403
        assert "Draw texts" not in own.ask(f"/part/sections/{coding.store.name}").text
    assert {row["label"] for row in rows_of(file)} == {""}


# -- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"labels": "3", "coders": "Ada, Ada"}, "distinct names"),
        ({"labels": "3", "coders": "../x"}, "distinct names"),
        ({"labels": "3", "coders": ""}, "distinct names"),
        ({"guest": "../../study"}, "no coder"),
        ({"score": "a0000000"}, "Not all coders"),
    ],
)
def test_a_form_is_refused_in_one_sentence(owner: Browser, coding: Coding, given: dict[str, str], said: str) -> None:
    answer = owner.ask(f"/section/coding/{coding.name}", given)
    assert answer.status == 400
    assert said in answer.text
    assert not coding.folder.exists()


def test_a_label_that_does_not_fit_is_refused(owner: Browser, coding: Coding) -> None:
    _, (file,) = coding.drawn("Ada")
    item = rows_of(file)[0]["item"]
    for label, code in (("3", item), ("1", "t0000000"), ("=1+1", item), ("", item)):
        assert "does not fit" in owner.ask(coding.page(file), {"item": code, "label": label}).text
    assert {row["label"] for row in rows_of(file)} == {""}
    answer = owner.ask(f"/section/coding/{coding.name}", {"score": file.stem.partition("-")[0]})
    assert "Not all coders" in answer.text


def test_nothing_is_drawn_while_a_run_writes(owner: Browser, coding: Coding) -> None:
    with open_store(str(coding.store)):
        answer = owner.ask(f"/section/coding/{coding.name}", {"labels": "3", "coders": "Ada"})
    assert "is writing the store" in answer.text
    assert not coding.folder.exists()


def test_a_damaged_or_foreign_file_is_one_line(owner: Browser, coding: Coding) -> None:
    _, (file, other) = coding.drawn("Ada", "Ben")
    whole = rows_of(file)
    stranger = file.with_name("a0000000-Eve.csv")
    damages = {
        "does not have each item": whole[1:],
        "once for Ada": [{**row, "coder": "Ben"} for row in whole],
    }
    for said, rows in damages.items():
        save(file, rows)
        assert said in owner.ask(coding.page(file)).text
        listed = owner.ask(f"/section/coding/{coding.name}").text
        assert said in listed
        assert "0 of 6 texts are coded" in listed
        assert "Score these labels" not in listed
    file.write_bytes(b'audit,coder\n"open')
    assert "cannot be read" in owner.ask(coding.page(file)).text
    shutil.copy(other, stranger)
    assert "no sample a0000000" in owner.ask(coding.page(stranger)).text
