"""The protocol of Bakker et al. for people: two seats over HTTP from the consent to the rating of the winner."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import opinionsim as osim
from opinionsim import consensus
from opinionsim.errors import SpecError
from opinionsim.report import tables_of
from tests.support.people import NEVER_S, Double
from tests.support.rooms import Browser, room
from tests.support.running import beyond, finished
from tests.support.seats import CONSENT

#: What tells who wrote a statement: roles, names of members, models, labels and acts.
TELLING = ("drafter", "plaincoat", "deepdive", "draft.", "mediator", "zero-shot", "revise", ">scripted<")
#: What the two people write and how they rate, which the other one must not see.
SAID = {"Ada": ("Xylophone quagmire: it should be open for all who work in the week.", "7", "6"),
        "Ben": ("Kazoo marmalade: it should stay closed, since somebody has to work there.", "1", "2")}  # fmt: skip

#: A session of models, in small.
SESSION: dict[str, Any] = {"name": "winner", "task": "Should the centre be closed to cars?", "cast": [{}, {}],
                           "roles": {"mediator": {}}, "measurement": {}}  # fmt: skip


def _spec(checkout: Path, folder: Path, **interaction: Any) -> Path:
    spec = yaml.safe_load((checkout / "experiments" / "bakker2022" / "people.yaml").read_text(encoding="utf-8"))
    ways = [
        {"count": 2, "label": "plaincoat"},
        {"count": 2, "style": "reasoned", "label": "deepdive", "role": "drafter"},
    ]
    seat = {"min_words": 10, "words": 200, "timeout_s": 300}
    spec |= {
        "cast": [
            {"name": "Ada", "seat": seat},
            {"name": "Ben", "seat": seat},
            {"name": "Cleo", "text": "Now and then."},
        ],
        "roles": {"mediator": {}, "drafter": {}},
        "interaction": {**spec["interaction"], "drafters": ways, **interaction},
        "ethics": {"consent": "consent.yaml"},
        "replicates": 2,
    }
    (folder / "consent.yaml").write_text(yaml.safe_dump(CONSENT), encoding="utf-8")
    (folder / "people.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    return folder / "people.yaml"


class Seated:
    """A person at a seat, with all that its pages have told."""

    def __init__(self, browser: Browser, name: str, code: str, when: str) -> None:
        self.browser, self.name, self.code, self.when = browser, name, code, when
        self.told: list[str] = []
        self.places: list[str] = []

    def looks(self, part: str = "") -> str:
        self.told.append(self.browser.ask(f"{self.browser.run}{part}").text)
        return self.told[-1]

    def answers(self) -> bool:
        """Answer the question that is open; False where there is none."""
        page = self.looks("/seat")
        if 'id="answer"' not in page:
            return False
        text, *ratings = SAID[self.name]
        form: dict[str, Any] = dict(re.findall(r'name="(turn|call|attempt)" value="([^"]*)"', page))
        items = dict.fromkeys(re.findall(r'name="(item-\d)"', page))
        self.places += re.findall(r"(?:New s|S)tatement \d of .*(?=</p>)", page)
        form |= dict(zip(items, ratings, strict=False)) if items else {"text": f"{text} {self.when}."}
        told = self.browser.ask(f"{self.browser.run}/answer", form, accept="application/json")
        assert told.status == 200, told.text
        return True


def _seated(server: Any, owner: Browser, run: str, when: str) -> list[Seated]:
    found = []
    for seat, name in enumerate(SAID):
        person = Browser(server)
        person.come_in(owner.invite(run, seat))
        found.append(Seated(person, name, person.consent(), when))
    return found


def _play(people: list[Seated], most: int = 500) -> int:
    """Answer in turn until the session is over; returns the number of answers."""
    answered = 0
    while answered < most and not all("This session is over" in each.looks("/seat") for each in people):
        answered += sum(each.answers() for each in people)
    return answered


def test_two_people_rate_blindly_and_one_withdraws(checkout: Path, tmp_path: Path) -> None:
    spec = _spec(checkout, tmp_path)
    with room(spec, tmp_path) as server:
        owner = Browser(server)
        owner.come_in(server.link)
        first, second = owner.sessions()
        people, port = _seated(server, owner, first, "First"), server.port
        _play(people, most=9)
        asked = people[0].browser.question()
    with room(spec, tmp_path, "--port", str(port)) as server:
        # What is on record stays, and the question that was open is asked again.
        assert people[0].browser.question() == asked
        owner = Browser(server)
        owner.come_in(server.link)
        assert people[1].browser.want("harm", "Quince.").status == 200
        _play(people)
        assert "Report of harm" in owner.ask("/").text.partition("Quince.")[0]
        for each in people:
            for part in ("", "/seat", "/analysis"):  # the debriefing says who were models, and not what they wrote
                each.looks(part)
            with each.browser.following() as lines:
                for line in lines:
                    each.told.append(line)
                    if "complete" in line:
                        break
        # Nobody has written the position statement, and the owner is told so.
        assert re.findall(r"<strong>([^<]+)", owner.ask(first).text)[:2] == ["Given text", "Ada"]
        others = _seated(server, owner, second, "Again")
        _play(others)
        others[0].browser.ask("/withdrawal", {"code": others[0].code})
    results = osim.load(f"sqlite:///{next(tmp_path.glob('results/*.sqlite'))}")
    assert sorted(results.runs["status"]) == ["complete", "withdrawn"]
    run_id = results.runs.set_index("status")["run_id"]["complete"]
    turns = results.turns[results.turns["run_id"] == run_id]
    written = turns[turns["kind"] == "statement"]
    for each, other in (people, people[::-1]):
        told = "\n".join(each.told)
        for word in TELLING:
            assert (at := told.casefold().find(word)) < 0, told[at - 200 : at + 100]
        assert SAID[other.name][0] not in told
        # Nor does it see how it rated before: that would tell it what to say the second time.
        assert not [rated for rated in ("greement: ", "agreement 7", "agreement 1") if rated in told]
        _shown_in_the_order_of_its_own_turns(each, turns)
        again, new = ". You rate each once more, in another order", ", written after the critiques"
        first = [f"tatement {n} of 8{{}}{again if n > 4 else ''}." for n in range(1, 9)]
        assert each.places == [f"S{each.format('')}" for each in first] + [f"New s{each.format(new)}" for each in first]
        assert all(text in told for text in written["message"])
    _tables(results, run_id)
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*.sqlite*"))
    told = {(who, when): f"{SAID[who][0]} {when}.".encode() in kept for who in SAID for when in ("First", "Again")}
    assert [each for each, there in told.items() if not there] == [("Ada", "Again")]


def _shown_in_the_order_of_its_own_turns(each: Seated, turns: Any) -> None:
    """Neither numbers nor the order of statements on a page are those in which they were written."""
    page = next(page for page in reversed(each.told) if 'id="lines"' in page)
    lines = re.findall(r'<li class="line[^"]*" id="turn-([\d.]+)".*?class="text"[^>]*>(.*?)</div>', page, re.DOTALL)
    own = turns[turns["agent"] == list(SAID).index(each.name)]
    texts = turns.set_index("turn")["message"]
    shown = dict.fromkeys(ref for reads in own["reads"] for ref in reads if isinstance(ref, int))
    known = dict.fromkeys(texts[ref] for ref in shown if turns.set_index("turn")["kind"][ref] == "statement")
    listed = [text for number, text in lines if "." in number]
    assert list(dict.fromkeys(listed)) == list(known)
    assert {int(number) for number, _ in lines if "." not in number} <= set(own["turn"])


def _tables(results: Any, run_id: str) -> None:
    """The tables hold the complete session alone; what was said of the winner is in no pass."""
    found = {table.name: table.frame for table in tables_of(results)}
    assert set(consensus.ratings(results)["group"]) == {run_id}
    assert found["ratings"]["groups"].max() == 1
    assert found["ratings-reliability"]["rated twice"].tolist() == [2]
    assert found["ratings-winner"]["mean"].tolist() == [4]
    passes = consensus.ratings(results)
    assert passes.groupby(["round", "citizen"])["pass"].max().to_dict() == {
        **{(-1, 0): 1, (-1, 1): 1, (0, 0): 2, (0, 1): 2}, **{(1, 0): 2, (1, 1): 2}}  # fmt: skip
    (elections,) = tables_of(results, what="elections")
    assert set(elections.frame["elections"]) == {2}


def test_what_cannot_be_taken_is_one_line_and_what_was_written_stays(checkout: Path, tmp_path: Path) -> None:
    with room(_spec(checkout, tmp_path), tmp_path) as server:
        owner = Browser(server)
        owner.come_in(server.link)
        ada, ben = (each.browser for each in _seated(server, owner, owner.sessions()[0], "First"))
        for given in ("8", "0", "3.5", "", "seven"):
            told = ada.ask(f"{ada.run}/answer", {**ada.question(), "item-0": given}, accept="application/json")
            assert (told.status, told.text) == (400, '{"problem":"Agreement: choose a number from 1 to 7"}'), given
        for person in (ada, ben):
            asked = person.question()
            person.ask(f"{person.run}/answer", {**asked, "item-0": "4"})
        short = ada.ask(f"{ada.run}/answer", {**ada.question(), "text": "Only five words of mine"})
        assert "the text has 5 words; at least 10 are needed" in short.text
        assert "Only five words of mine</textarea>" in short.text, "what was written is put back"
        assert "(10 to 200 words)" in short.text
        # Nobody rates a statement that it was not asked about, nor in another person's place.
        assert ben.ask(f"{ben.run}/answer", {**asked, "turn": "1", "item-0": "7"}).status == 409


def test_a_limit_that_no_text_can_meet_is_refused() -> None:
    with pytest.raises(SpecError, match=r"cast\[0\].seat.min_words: must not exceed words, which is 5"):
        osim.load_experiment(
            {**SESSION, "interaction": {"kind": "consensus"}, "cast": [{"seat": {"words": 5, "min_words": 6}}, {}]}
        )


@pytest.mark.parametrize(
    "fields", [{"ratings": {"winner": True, "passes": 0}}, {"ratings": {"winner": True, "passes": 1}, "rounds": 1}]
)
def test_models_rate_the_winner_too_and_each_election_is_held_again(fields: dict[str, Any]) -> None:
    """What is said of the winner changes no ballot; a rule that a winner depends on is part of what a run is."""
    spec = {**SESSION, "interaction": {"kind": "consensus", "candidates": 3, "rounds": 0, **fields}}
    results = finished(spec)
    held = consensus.selections(results)
    (winner,) = held.loc[held["elects"] & (held["round"] == held["round"].max()), "winner"]
    told = consensus.ratings(results, winner=True)
    assert (set(told["candidate"]), sorted(told["citizen"])) == ({winner}, [0, 1])
    others = osim.load_experiment({**spec, "interaction": {**spec["interaction"], "rule": "borda"}})
    assert {each.run_id for each in others.runs} != set(results.runs["run_id"])
    (*_, shown) = beyond(results)["blocks"]
    (line,) = shown["blocks"][0]["lines"]
    assert (shown["title"], line["turn"]) == ("Ratings of the winner after the result was known", winner)
    assert line["note"] == f"agreement {told['agreement'].mean():g}, quality {told['quality'].mean():g}"
    names = {table.name for table in tables_of(results)}
    assert names & {"ratings", "ratings-winner"} == {
        "ratings-winner",
        *(["ratings"] if fields["ratings"]["passes"] else []),
    }


def test_own_opinions_that_stand_are_rated_and_people_are_told_so() -> None:
    person = Double()
    fields = {"kind": "consensus", "candidates": 1, "rounds": 0, "standing": ["opinions"], "ratings": {"passes": 1}}
    results = finished({**SESSION, "cast": [{"seat": {}}, {}], "interaction": fields}, people=person)
    told = {act: [each for each in person.asked if each.act == act] for act in ("rate", "rank")}
    for each in (*told["rate"], *told["rank"]):
        assert each.text.endswith("Opinions of people in your group stand among the statements, your own too.")
        assert {message.author for message in each.messages} == {""}
    (own,) = results.turns[results.turns["act"] == "state"].query("agent == 0")["message"]
    assert sum(each.messages[-1].text == own for each in told["rate"]) == 1
    assert consensus.selections(results)["counted"].tolist() == [2]


@pytest.mark.parametrize(
    ("act", "why"),
    [
        ("state", "0 citizens have stated an opinion; a group needs at least 2"),
        ("rate", "round 0: no citizen voted on all candidates, so there is no winner"),
        ("criticise", "round 1: no critique is usable, so drafters have nothing to revise by"),
        ("rate-winner", ""),
    ],
)
def test_a_session_that_people_leave_says_so_in_one_line_and_keeps_what_was_said(act: str, why: str) -> None:
    person = Double(late=lambda question: NEVER_S if question.act == act else 0.0)
    fields = {"kind": "consensus", "candidates": 2, "rounds": 1, "ballot": "rating", "ratings": {"winner": True}}
    cast = [{"seat": {"timeout_s": 0.05}}, {"seat": {"timeout_s": 0.05}}]
    spec = osim.load_experiment({**SESSION, "cast": cast, "interaction": fields})
    results = osim.run(spec, "left.sqlite", people=person)
    assert results.runs[["status", "error"]].to_numpy().tolist() == [["incomplete" if why else "complete", why]]
    said = results.turns[results.turns["status"] == "answered"]
    before = {question.turn for question in person.asked if question.act != act}
    assert before <= set(said["turn"])
