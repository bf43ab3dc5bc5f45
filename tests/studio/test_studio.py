"""A studio over HTTP: studies that are made, changed, checked, run, paused and read, by two browsers and a terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import opinionsim as osim
from tests.studio.conftest import Studio, write
from tests.support.pages import HOSTILE

#: Enough runs to be stopped in the middle.
MANY = 400


def _finished(studio: Studio, study: str) -> str:
    """What is going on in a study, once its command has ended."""
    until = time.monotonic() + 90
    while any(
        words in (page := studio.ask(f"/state/{study}").text) for words in ("Pause after", "Pausing", "Starting")
    ):
        assert time.monotonic() < until, page
        time.sleep(0.1)
    return page


def _complete(store: Path) -> int:
    return int((osim.load(str(store)).runs["status"] == "complete").sum())


@pytest.mark.parametrize("origin", ["dyads", pytest.param("people", marks=pytest.mark.long), "room_quickstart"])
def test_a_template_is_made_by_a_click_and_can_run_as_it_is(studio: Studio, origin: str) -> None:
    assert f'value="{origin}"' in studio.ask("/").text
    made = studio.ask("/new", {"name": "mine", "origin": origin})
    assert made.status == 303, made.text
    study = made.headers["location"].removeprefix("/study/")
    text = (studio.folder / study).read_text(encoding="utf-8")
    found = studio.check(study, text, version=studio.version(study))
    assert "problem" not in found, found
    assert "calls" in found["html"]
    assert not found["changed"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "cannot name a study"),
        ("--help", "cannot name a study"),
        ("../mine", "cannot name a study"),
        ("mine", "already exists"),
        ("<b>", "&lt;b&gt;"),
    ],
)
def test_a_name_that_cannot_be_taken_is_said(studio: Studio, name: str, said: str) -> None:
    (studio.folder / "mine").mkdir()
    answer = studio.ask("/new", {"name": name, "origin": "dyads"})
    assert answer.status == 400
    assert said in answer.text
    assert [each.name for each in studio.folder.iterdir()] == ["mine"]


def test_a_text_is_checked_in_the_words_of_the_command_line(studio: Studio) -> None:
    path = write(studio.folder)
    text = path.read_text(encoding="utf-8").replace("seed: ", "seed: x")
    path.with_name("bad.yaml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "opinionsim", "plan", "bad.yaml"]
    said = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False).stderr
    path.with_name("bad.yaml").unlink()
    found = studio.check("small/study.yaml", text, version=studio.version("small/study.yaml"))
    assert found["problem"] == said.strip().removeprefix("error: ").replace("bad.yaml", "study.yaml")
    assert "study.yaml:" in found["problem"]


def test_another_text_of_a_study_is_checked_with_it(studio: Studio) -> None:
    studio.ask("/new", {"name": "mine", "origin": "dyads"})
    topic = (studio.folder / "mine" / "topic.yaml").read_text(encoding="utf-8")
    told = {"file": "topic.yaml", "version": studio.version("mine/study.yaml", "topic.yaml")}
    assert (
        "unknown topic" in studio.check("mine/study.yaml", topic.replace("evening-market", "other"), **told)["problem"]
    )
    found = studio.check("mine/study.yaml", topic.replace("the weekly market", "the daily market"), **told)
    assert "the daily market" in found["html"]
    assert "the daily market" not in (studio.folder / "mine" / "topic.yaml").read_text(encoding="utf-8")


def test_what_is_saved_can_be_undone_and_nothing_is_overwritten(studio: Studio) -> None:
    path = write(studio.folder)
    first = path.read_text(encoding="utf-8")
    known = studio.version("small/study.yaml")
    assert studio.save("small/study.yaml", first + "# second\n").status == 303
    # A page that was opened before: both texts are shown, and neither is lost.
    answer = studio.ask("/save/small/study.yaml", {"text": first + "# third\n", "version": known})
    assert answer.status == 409
    assert "# second" in answer.text
    assert "# third" in answer.text
    assert path.read_text(encoding="utf-8") == first + "# second\n"
    assert studio.check("small/study.yaml", first, version=known)["changed"]
    page = studio.ask("/study/small/study.yaml").text
    (older,) = re.findall(r"older=([\w-]+)", page)
    shown = studio.ask(f"/study/small/study.yaml?older={older}").text
    assert "an older copy" in shown
    assert "# second" not in shown
    assert studio.ask("/study/small/study.yaml?older=../../../etc/passwd").status == 404


def test_line_ends_of_forms_do_not_enter_the_file(studio: Studio) -> None:
    path = write(studio.folder)
    studio.save("small/study.yaml", path.read_text(encoding="utf-8").replace("\n", "\r\n") + "# end\r\n")
    assert b"\r" not in path.read_bytes()


def test_parts_of_ones_own_are_not_imported_until_they_are_allowed(studio: Studio, tmp_path: Path) -> None:
    write(studio.folder, interaction={"kind": "mine:Own", "steps": 2})
    mark = tmp_path / "imported"
    code = f"""
        from pathlib import Path
        Path({str(mark)!r}).touch()
        import opinionsim as osim
        from opinionsim.schedules import Dyadic
        @osim.part("interaction")
        class Own(Dyadic):
            '''Own meetings.'''
    """
    import textwrap

    (studio.folder / "small" / "mine.py").write_text(textwrap.dedent(code), encoding="utf-8")
    text = (studio.folder / "small" / "study.yaml").read_text(encoding="utf-8")
    found = studio.check("small/study.yaml", text, version="")
    assert found["own"] == ["mine:Own"]
    assert "uses parts of your own" in studio.ask("/do/run/small/study.yaml", {}).text
    assert not mark.exists()
    assert studio.ask("/allow/small/study.yaml", {"mine:Own": ""}).status == 303
    found = studio.check("small/study.yaml", text, version="")
    assert "own" not in found
    assert mark.exists()


@pytest.mark.parametrize("name", ["yaml", "random"])
def test_files_of_a_folder_are_not_taken_for_modules(studio: Studio, tmp_path: Path, name: str) -> None:
    path, mark = write(studio.folder), tmp_path / "imported"
    for folder in (studio.folder, path.parent):
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').close()\n", encoding="utf-8")
    assert "html" in studio.check("small/study.yaml", path.read_text(encoding="utf-8"), version="")
    studio.ask("/do/run/small/study.yaml", {})
    assert "1 complete" in _finished(studio, "small/study.yaml")
    assert studio.ask("/part/tables/small/results/small.sqlite").status == 200
    assert not mark.exists()


def test_an_address_imports_nothing(studio: Studio, tmp_path: Path) -> None:
    path, mark = write(studio.folder), tmp_path / "imported"
    osim.run(osim.load_experiment(path), str(path.parent / "results" / "small.sqlite"))
    (studio.folder / "mine.py").write_text(f"open({str(mark)!r}, 'w').close()\n", encoding="utf-8")
    store = "small/results/small.sqlite"
    for address in (f"/figure/mine:Own/{store}", f"/numbers/mine:Own/{store}", f"/part/tables/{store}?table=mine:Own"):
        answer = studio.ask(address)
        assert answer.status == 400
        assert "--allow-parts" in answer.text
    assert not mark.exists()


def test_a_study_whose_name_was_deleted_can_be_mended(studio: Studio) -> None:
    path = write(studio.folder)
    before = path.read_text(encoding="utf-8")
    assert studio.save("small/study.yaml", "seed: 1\n").status == 303
    assert "/study/small/study.yaml" in studio.ask("/").text
    (older,) = re.findall(r"older=([\w-]+)", studio.ask("/study/small/study.yaml").text)
    assert "name: small" in studio.ask(f"/study/small/study.yaml?older={older}").text
    studio.save("small/study.yaml", before)
    assert path.read_text(encoding="utf-8") == before


def test_line_ends_of_a_file_stay(studio: Studio) -> None:
    path = write(studio.folder)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    studio.save("small/study.yaml", path.read_text(encoding="utf-8").replace("\n", "\r\n") + "# end\r\n")
    assert b"\n" not in path.read_bytes().replace(b"\r\n", b"")


def test_a_study_is_piloted_run_and_read(studio: Studio) -> None:
    path = write(studio.folder, replicates=2, sweep={"topic.framing": ["falsehood", "truth"]})
    assert "Nothing has been run yet" in studio.ask("/state/small/study.yaml").text
    assert studio.ask("/do/pilot/small/study.yaml", {}).status == 303
    assert "2 complete" in _finished(studio, "small/study.yaml")
    studio.ask("/do/run/small/study.yaml", {})
    assert "4 complete" in _finished(studio, "small/study.yaml")
    store = path.parent / "results" / "small.sqlite"
    before = osim.load(str(store)).runs["run_id"].tolist()
    command = [sys.executable, "-m", "opinionsim", "run", "study.yaml"]
    said = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=True).stderr
    assert "complete already" in said
    assert osim.load(str(store)).runs["run_id"].tolist() == before
    page = studio.ask("/results/small/results/small.sqlite").text
    assert "SCRIPTED STAND-IN" in page
    assert '<option value="truth">' in page
    for act, file in {"report": "small-report.html", "archive": "small-archive.zip"}.items():
        studio.ask(f"/do/{act}/small/study.yaml", {})
        assert file in _finished(studio, "small/study.yaml")
        answer = studio.ask(f"/made/small/results/{file}")
        assert answer.status == 200
        assert answer.headers["content-disposition"].startswith("attachment")
    assert studio.ask("/made/small/results/small.sqlite").status == 400
    assert studio.ask("/made/small/study.yaml").status == 400


def test_pausing_going_on_and_a_terminal_beside(studio: Studio) -> None:
    path = write(studio.folder, replicates=MANY)
    store = path.parent / "results" / "small.sqlite"
    studio.ask("/do/run/small/study.yaml", {})
    studio.until("under way", "/state/small/study.yaml")
    # A second start, from a browser or from a terminal, is refused in one line.
    again = studio.ask("/do/run/small/study.yaml", {})
    assert again.status == 400
    assert "already" in again.text or "still going on" in again.text
    command = [sys.executable, "-m", "opinionsim", "run", "study.yaml"]
    said = subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)
    assert said.returncode == 2
    assert "is in use by another run" in said.stderr
    studio.ask("/do/stop/small/study.yaml", {})
    # A second time, it would end at once.
    studio.ask("/do/stop/small/study.yaml", {})
    ended = _finished(studio, "small/study.yaml")
    assert re.search(r"<summary>\s*(Paused|Ended, but not everything is complete):", ended), ended
    assert 0 < _complete(store) < MANY
    assert "there is nothing to stop" in studio.ask("/do/stop/small/study.yaml", {}).text
    # A terminal goes on, the studio sees and pauses it, and goes on itself.
    process = subprocess.Popen(command, cwd=path.parent, stderr=subprocess.DEVNULL)
    studio.until("which was not started here", "/state/small/study.yaml")
    refused = studio.ask("/do/run/small/study.yaml", {})
    assert f"Process {process.pid} is writing" in refused.text
    studio.ask("/do/stop/small/study.yaml", {})
    assert process.wait(60) == 130
    studio.ask("/do/run/small/study.yaml", {})
    assert f"{MANY} complete" in _finished(studio, "small/study.yaml")


def test_what_is_started_does_not_compete_with_what_is_typed(studio: Studio) -> None:
    path = write(studio.folder)
    text, version = path.read_text(encoding="utf-8"), studio.version("small/study.yaml")
    with ThreadPoolExecutor(8) as pool:
        typed = [
            pool.submit(studio.ask, "/check/small/study.yaml", {"text": text, "version": version}) for _ in range(7)
        ]
        assert studio.ask("/do/run/small/study.yaml", {}).status == 303
        typed += [
            pool.submit(studio.ask, "/check/small/study.yaml", {"text": text, "version": version}) for _ in range(7)
        ]
    found = {each.result().status for each in typed}
    assert found <= {200, 204}
    assert 200 in found


@pytest.mark.long
def test_runs_go_on_when_the_studio_is_killed(opened: Callable[[], Studio]) -> None:
    first = opened()
    path = write(first.folder, replicates=MANY)
    first.ask("/do/run/small/study.yaml", {})
    first.until("under way", "/state/small/study.yaml")
    first.server.kill()
    second = opened()
    page = second.until("which was not started here", "/state/small/study.yaml")
    number = int(re.findall(r"Process (\d+)", page)[0])
    os.kill(number, signal.SIGKILL)
    second.until("cut off", "/state/small/study.yaml")
    second.ask("/do/run/small/study.yaml", {})
    assert f"{MANY} complete" in _finished(second, "small/study.yaml")
    assert _complete(path.parent / "results" / "small.sqlite") == MANY


def test_a_budget_is_raised_in_the_file_and_nowhere_else(studio: Studio) -> None:
    path = write(studio.folder, replicates=2, execution={"budget": {"calls": 5}})
    path.write_text(path.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    studio.ask("/do/run/small/study.yaml", {})
    page = _finished(studio, "small/study.yaml")
    assert "Stopped by the budget" in page
    assert "raise execution.budget.calls" in page
    before = path.read_text(encoding="utf-8")
    version = studio.version("small/study.yaml")
    refused = studio.ask("/do/budget/small/study.yaml", {"calls": "many", "version": version})
    assert "must be a number above 0" in refused.text
    studio.ask("/do/budget/small/study.yaml", {"calls": "500", "version": version})
    assert path.read_text(encoding="utf-8") == before.replace("calls: 5", "calls: 500")
    studio.ask("/do/run/small/study.yaml", {})
    assert "2 complete" in _finished(studio, "small/study.yaml")


def test_a_missing_key_is_named_and_never_asked_for(studio: Studio) -> None:
    path = write(studio.folder, model={"name": "openai:gpt-4o-mini"}, measurement={"classifier": "lexicon"})
    found = studio.check("small/study.yaml", path.read_text(encoding="utf-8"), version="")
    assert "OPENAI_API_KEY" in found["html"]
    assert "OPENAI_API_KEY" in " ".join(found["lacking"])


def test_hostile_names_and_texts_are_texts(studio: Studio) -> None:
    path = write(studio.folder, description=HOSTILE[0])
    hostile = studio.folder / "<img src=x onerror=alert(1)>"
    hostile.mkdir()
    (hostile / 'a"b&<i>.yaml').write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    page = studio.ask("/").text
    assert HOSTILE[0] not in page
    assert "<img src=x" not in page
    for link in re.findall(r'href="(/study/[^"]+)"', page):
        shown = studio.ask(link).text
        assert "<img src=x" not in shown
        assert HOSTILE[0] not in shown
        assert "</textarea><" not in shown.partition("<textarea")[2].partition("</textarea>")[0]


NOWHERE = """
    /study/../x.yaml /study/%2e%2e/x.yaml /study//etc/passwd /results/../s.sqlite /made/../../x/results/r.html
    /runs/nowhere /part/nothing/s /csv/99/s
"""


@pytest.mark.parametrize("path", NOWHERE.split())
def test_what_is_not_in_the_folder_is_not_there(studio: Studio, path: str) -> None:
    answer = studio.ask(path)
    assert answer.status in (400, 404), answer
    assert "Traceback" not in answer.text


def test_only_the_owner_comes_in_and_only_from_the_page_itself(studio: Studio) -> None:
    write(studio.folder)
    form = {"text": "x", "version": ""}
    for path in ("/new", "/check/small/study.yaml", "/save/small/study.yaml", "/allow/small/study.yaml",
                 "/do/run/small/study.yaml"):  # fmt: skip
        assert studio.ask(path, form, cookie="").status == 401
        assert studio.ask(path, form, origin="http://evil.example").status == 403
        assert studio.ask(path, form, host="evil.example").status == 421
    assert not (studio.folder / "small" / "results").exists()


def test_the_name_of_a_file_is_no_option(studio: Studio) -> None:
    path = write(studio.folder)
    option = path.rename(path.with_name("--pilot.yaml"))
    assert studio.ask("/do/pilot/small/--pilot.yaml", {}).status == 303
    assert "Done" in _finished(studio, "small/--pilot.yaml")
    assert _complete(option.parent / "results" / "small.sqlite") == 1


def test_what_no_page_can_show_hides_nothing_else(studio: Studio) -> None:
    path = write(studio.folder)
    (path.parent / "gone.sqlite").symlink_to("nowhere")
    (path.parent / "gone.yaml").symlink_to("nowhere")
    os.mkfifo(path.parent / "pipe.yaml")
    os.mkfifo(path.parent / "pipe.txt")
    for name in (b"\xff.yaml", b"\xff.txt", b"\xff.sqlite", b"line\nbreak.yaml"):
        Path(os.fsdecode(os.fsencode(path.parent) + b"/" + name)).write_bytes(path.read_bytes())
    (path.parent / "long.yaml").write_text(path.read_text() + "#" * 1_000_000)
    assert re.findall(r'href="/study/([^"]*)"', studio.ask("/").text) == ["small/study.yaml"]
    assert studio.ask("/study/small/study.yaml").status == 200
    assert "no study" in studio.ask("/study/small/long.yaml").text


@pytest.mark.skipif(os.geteuid() == 0, reason="a superuser writes everywhere")
def test_a_folder_that_cannot_be_written_is_shown(opened: Callable[[], Studio], tmp_path: Path) -> None:
    path = write(tmp_path / "studies")
    path.parent.chmod(0o555)
    studio = opened()
    assert "cannot" in studio.save("small/study.yaml", "name: x\n").text
    path.parent.chmod(0o755)
