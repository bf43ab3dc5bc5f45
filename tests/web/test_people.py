"""People as subjects: consent, age, a private code, debriefing, withdrawal; and owners who only try."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import opinionsim as osim
from opinionsim.analysis import tables
from opinionsim.errors import SpecError
from opinionsim.specification import consent_of
from opinionsim.store import open_store
from opinionsim.web import serve
from tests.support.pages import accessible, looking, my_turn, say, sit_down
from tests.support.rooms import RoomServer, room

CHECK = {"question": "Who speaks beside you?", "answers": ["people", "language models"], "right": "language models"}
CONSENT = {
    "version": "2026-1",
    "purpose": "We study how people argue with machines.",
    "speakers": "All other speakers are language models.",
    "provider": "Your texts stay on this machine.",
    "observers": "Nobody reads along.",
    "keeping": "Your texts are kept for a year.",
    "contact": "Write to the office.",
    "debriefing": "We wanted to know whether you would change your mind.",
}


def _invited(folder: Path, spec: Callable[..., Path], **changed: Any) -> Path:
    (folder / "consent.yaml").write_text(yaml.safe_dump({**CONSENT, "comprehension": [CHECK]}), encoding="utf-8")
    return spec(ethics={"consent": "consent.yaml"}, **changed)


def _invite(owner: Any, name: str = "Guest") -> None:
    owner.get_by_role("button", name=re.compile(f"Make a (new )?link to {name}")).click()


def _come_in(person: Any, link: str) -> None:
    person.goto(link)
    person.get_by_role("button", name="Join").click()


def _agree(person: Any, *others: str) -> None:
    for field in ("[name=age]", *others, "[name=agree]"):
        person.check(field)
    person.get_by_role("button", name="Take part", exact=True).click()


def _withdraw(person: Any, code: str) -> None:
    person.fill("#code", code)
    person.get_by_role("button", name="Withdraw permanently").click()


@pytest.mark.whole
@pytest.mark.parametrize("agrees", [True, False])
def test_publication_is_asked_for_apart_from_taking_part(
    browser: Any, spec: Callable[..., Path], tmp_path: Path, agrees: bool
) -> None:
    told = {**CONSENT, "publication": "Word for word, in an open archive."}
    (tmp_path / "consent.yaml").write_text(yaml.safe_dump(told), encoding="utf-8")
    asked = spec(ethics={"consent": "consent.yaml"})
    with room(asked, tmp_path) as server, looking(browser, server) as owner, looking(browser, server) as person:
        owner.goto(server.link)
        _invite(owner)
        _come_in(person, owner.locator(".link code").inner_text())
        person.locator("main").get_by_text(told["publication"]).wait_for()
        accessible(person)
        _agree(person, *(["[name=publish]"] if agrees else []))
        person.locator(".code").wait_for()
    with open_store(f"sqlite:///{next(tmp_path.glob('results/*.sqlite'))}", write=False) as store:
        (row,) = [row for row in store.seats() if row.consented_at is not None]
        assert row.publishes == agrees


def test_a_person_is_asked_told_and_can_withdraw_everything(
    browser: Any, spec: Callable[..., Path], tmp_path: Path
) -> None:
    with room(_invited(tmp_path, spec), tmp_path) as server:
        with looking(browser, server) as owner, looking(browser, server) as person:
            owner.goto(server.link)
            _invite(owner)
            link = owner.locator(".link code").inner_text()
            person.goto(link)
            # A program that looks at the link does not use it up.
            assert person.request.get(link).status == 200
            person.get_by_role("button", name="Join").click()
            person.wait_for_url("**/consent")
            accessible(person)
            for text in CONSENT.values():
                assert (text in person.locator("main").inner_text()) == (text != CONSENT["debriefing"])
            # Without both boxes nobody takes part.
            run = person.url.removesuffix("/consent")
            person.goto(f"{run}/debriefing")
            assert person.url == f"{run}/consent"
            sent = person.request.post(f"{run}/consent", form={"agree": "yes"}, headers={"origin": server.address})
            assert sent.status == 400
            _agree(person, "[name=check-0][value=people]")
            assert "Some answers" in person.locator(".problem").inner_text()
            _agree(person, "[name=check-0][value='language models']")
            code = person.locator(".code").inner_text()
            accessible(person)
            person.get_by_role("link", name="Continue to the session").click()
            my_turn(person)
            say(person, "Xylophone quagmire.")
            my_turn(person)
            # A link opens a seat once: in another browser it opens nothing.
            with looking(browser, server) as thief:
                _come_in(thief, link)
                assert "not valid" in thief.locator(".notice").inner_text()
            person.get_by_role("link", name="Leave and read about this study").click()
            assert CONSENT["debriefing"] not in person.locator("main").inner_text()
            accessible(person)
            person.get_by_role("button", name="Leave for good").click()
            assert CONSENT["debriefing"] in person.locator("main").inner_text()
            assert "language models" in person.locator("main").inner_text()
            accessible(person)
            person.goto(f"{server.address}/withdrawal")
            _withdraw(person, "abcd-efgh-ijkl-mnop")
            assert "Nobody has this code" in person.locator(".problem").inner_text()
            _withdraw(person, code.upper().replace("-", ""))
            assert "deleted" in person.locator(".notice").inner_text()
            accessible(person)
            owner.goto(server.address)
            assert owner.locator(".state").inner_text() == "withdrawn"
            owner.goto(run)
            assert "Xylophone" not in owner.locator("main").inner_text()
        kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*.sqlite*"))
        assert b"Xylophone" not in kept
        for secret in (code, link.rpartition("/")[2], server.link.rpartition("/")[2]):
            assert secret.encode() not in kept
            assert secret not in "".join(server.said[2:])
    found = osim.load(f"sqlite:///{next(tmp_path.glob('results/*.sqlite'))}")
    assert found.runs["status"].tolist() == ["withdrawn"]


@pytest.mark.whole
def test_without_a_text_to_consent_to_nobody_is_invited(
    browser: Any, spec: Callable[..., Path], tmp_path: Path
) -> None:
    with room(spec(), tmp_path) as server, looking(browser, server) as owner:
        owner.goto(server.link)
        _invite(owner)
        assert "ethics: {consent: FILE}" in owner.locator(".notice").inner_text()


def test_an_owner_who_tries_alone_is_asked_nothing_and_stays_out_of_tables(
    browser: Any, spec: Callable[..., Path], tmp_path: Path
) -> None:
    path = _invited(tmp_path, spec, interaction={"kind": "dyadic", "steps": 6}, measurement={
        "self_report": {"after": 1}}, topic={"definition": {
            "name": "sundays", "title": "Sundays", "category": "policy",
            "claims": {"for": "The library should open on Sundays", "against": "It should stay closed on Sundays"}},
            "framing": "for"}, model={"name": "scripted"})  # fmt: skip
    with room(path, tmp_path) as server, looking(browser, server) as page:
        sit_down(page, server)
        assert not re.search("/consent", page.url)
        while True:
            page.wait_for_selector("#answer, #seat h2:text('This session is over')")
            if not page.locator("#answer").count():
                break
            key = page.get_attribute("#seat", "data-key")
            if page.locator("#answer textarea").count():
                page.fill("#answer textarea", "I am only trying.")
            else:
                page.locator("#answer [type=radio]").last.check()
                page.reload()
                assert page.locator("#answer [type=radio]").last.is_checked()
            page.get_by_role("button", name="Send").click()
            page.wait_for_function("key => document.getElementById('seat').dataset.key !== key", arg=key)
    found = osim.load(f"sqlite:///{next(tmp_path.glob('results/*.sqlite'))}")
    assert found.runs["status"].tolist() == ["trial"]
    with pytest.raises(SpecError, match="1 trial"):
        tables(found.runs, found.metrics)


@pytest.mark.whole
def test_sensitive_topics_need_a_protocol(spec: Callable[..., Path], tmp_path: Path) -> None:
    definition = {
        "name": "delicate", "title": "Delicate", "category": "policy", "sensitive": True,
        "claims": {"for": "This should be allowed", "against": "This should be forbidden"},
    }  # fmt: skip
    topic = {"definition": definition, "framing": "for"}
    with pytest.raises(RuntimeError, match=re.escape("ethics: {protocol: ID}")):
        RoomServer(_invited(tmp_path, spec, topic=topic), tmp_path)
    assert not (tmp_path / "results").exists()
    with room(spec(topic=topic, ethics={"consent": "consent.yaml", "protocol": "2026-17"}), tmp_path) as server:
        assert server.link


@pytest.mark.long
def test_who_declines_frees_the_seat_and_who_read_another_text_is_asked_again(
    browser: Any, spec: Callable[..., Path], tmp_path: Path
) -> None:
    with room(_invited(tmp_path, spec), tmp_path) as server, looking(browser, server) as owner:
        owner.goto(server.link)
        _invite(owner)
        with looking(browser, server) as person:
            _come_in(person, owner.locator(".link code").inner_text())
            sent = person.request.post(person.url, form={"agree": "yes", "age": "yes", "text": "another"},
                                       headers={"origin": server.address})  # fmt: skip
            assert (sent.status, "was changed" in sent.text()) == (400, True)
            person.get_by_role("button", name="I do not want to take part").click()
            assert "no data of yours is kept" in person.locator(".notice").inner_text()
        _invite(owner)
        assert owner.locator(".link code").count() == 1


@pytest.mark.long
def test_a_session_that_was_withdrawn_before_it_began_never_begins(
    browser: Any, spec: Callable[..., Path], tmp_path: Path
) -> None:
    cast = [{"name": "Ada"}, {"name": "Guest", "seat": {}}, {"name": "Visitor", "seat": {}}]
    path = _invited(tmp_path, spec, cast=cast, interaction={"kind": "dyadic", "steps": 4})
    with room(path, tmp_path) as server, looking(browser, server) as owner, looking(browser, server) as person:
        owner.goto(server.link)
        _invite(owner)
        _come_in(person, owner.locator(".link code").inner_text())
        _agree(person, "[name=check-0][value='language models']")
        code = person.locator(".code").inner_text()
        person.goto(f"{server.address}/withdrawal")
        _withdraw(person, code)
        assert "deleted" in person.locator(".notice").inner_text()
        owner.goto(server.address)
        assert owner.get_by_role("button", name="Make a link to Visitor").count() == 0
    with room(path, tmp_path) as server, looking(browser, server) as owner:
        owner.goto(server.link)
        assert owner.locator(".state").inner_text() == "withdrawn"


@pytest.mark.parametrize(
    ("address", "told", "wanted"),
    [
        ("http://127.0.0.1:8000/v1", "Your texts stay here.", None),
        ("http://192.168.0.7/v1", "Your texts stay here.", None),
        ("https://llm.example.org/v1", "Texts are sent to llm.example.org.", None),
        ("https://llm.example.org/v1", "A server that speaks like OpenAI.", "llm.example.org"),
        (None, "Texts are sent to OpenAI.", None),
        (None, "Your texts stay here.", "openai"),
    ],
)
def test_a_consent_names_where_texts_are_sent(
    spec: Callable[..., Path], tmp_path: Path, address: str | None, told: str, wanted: str | None
) -> None:
    (tmp_path / "consent.yaml").write_text(yaml.safe_dump({**CONSENT, "provider": told}), encoding="utf-8")
    model = {"name": "openai:own", "options": {"base_url": address} if address else {}}
    experiment = osim.load_experiment(spec(ethics={"consent": "consent.yaml"}, model=model))
    if wanted is None:
        assert consent_of(experiment) is not None
        return
    with pytest.raises(SpecError, match=f"must name {re.escape(wanted)}, which receives"):
        serve(experiment, f"sqlite:///{tmp_path / 'room.sqlite'}", browser=False)
    assert not list(tmp_path.glob("*.sqlite*"))
