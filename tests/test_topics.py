"""Topics: the bundled ones, a user's own, and what is said about a bad file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionScale
from opinionsim.topics import Claim, Topic, load_topics, parse_topic, parse_topics

GOOD = """\
source: A seminar.
licence: CC0
topics:
  - name: tea
    category: Taste
    claims:
      falsehood: coffee tastes better than tea
      truth: tea tastes better than coffee
    accepted: truth
    sensitive: true
    source: A survey.
  - name: four-day-week
    claims: {truth: "a week of four working days would do people good"}
"""


def _file(folder: Path, text: str) -> Path:
    path = folder / "topics.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    topics = load_topics(_file(tmp_path, GOOD))
    assert list(topics) == ["tea", "four-day-week"]
    assert topics["tea"] == Topic(
        name="tea",
        title="Tea",
        category="Taste",
        claims={"falsehood": "coffee tastes better than tea", "truth": "tea tastes better than coffee"},
        accepted="truth",
        sensitive=True,
        source="A survey.",
        masked=False,
        question="",
        licence="CC0",
        pass_on=True,
    )
    week = topics["four-day-week"]
    assert (week.title, week.category, week.accepted) == ("Four day week", "Other", None)
    assert (week.sensitive, week.source) == (False, "A seminar.")


@pytest.mark.parametrize("scale", [OpinionScale(), OpinionScale.of_size(2), OpinionScale((1, 2, 3, 4, 5, 6, 7))])
@pytest.mark.parametrize("accepted", ["stay", "leave"])
@pytest.mark.parametrize("framing", ["stay", "leave", "split"])
def test_the_truth_is_the_end_of_the_scale_that_agrees_with_what_is_accepted(
    scale: OpinionScale, accepted: str, framing: str
) -> None:
    claim = Claim("x", "t", framing, accepted)
    assert claim.truth(scale) == (scale.highest if framing == accepted else scale.lowest)
    assert Claim("x", "t", framing).truth(scale) is None


def test_a_claim_carries_what_its_topic_says(tmp_path: Path) -> None:
    tea = load_topics(_file(tmp_path, GOOD))["tea"]
    claim = tea.claim("falsehood")
    assert claim == Claim("coffee tastes better than tea", "tea", "falsehood", "truth", True)
    assert tea.claim() == claim
    assert claim.truth(OpinionScale()) == -2
    assert tea.claim("truth").truth(OpinionScale()) == 2


def test_a_framing_the_topic_lacks_is_named_with_those_it_has(tmp_path: Path) -> None:
    topics = load_topics(_file(tmp_path, GOOD))
    with pytest.raises(SpecError, match=r"topic 'four-day-week' has no framing 'falsehood'; valid: truth$"):
        topics["four-day-week"].claim("falsehood")
    with pytest.raises(SpecError, match=r"topic 'tea' has no framing 'Truth'; valid: falsehood, truth$"):
        topics["tea"].claim("Truth")


def test_an_open_question_has_sides_of_its_own_names() -> None:
    parking = {"for": "the square should be a car park", "against": "the square should stay a market"}
    topic = parse_topic({"name": "square", "claims": parking})
    assert topic.claims == parking
    claim = topic.claim("against")
    assert (claim.text, claim.framing, claim.truth(OpinionScale())) == (parking["against"], "against", None)
    with pytest.raises(SpecError, match=r"^topic 'square' needs a framing; valid: for, against$"):
        topic.claim()


def test_the_only_side_is_taken_where_none_is_named() -> None:
    assert parse_topic({"name": "tea", "claims": {"for": "tea is best"}}).claim().framing == "for"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("accepted: truth", "acepted: truth", 9, r"topics\[0\]\.acepted: .*accepted"),
        (
            "accepted: truth",
            "accepted: yes",
            9,
            r"topics\[0\]\.accepted: 'yes' is not a side.*falsehood, truth, or null",
        ),
        ("sensitive: true", "sensitive: perhaps", 10, r"topics\[0\]\.sensitive: "),
        ("sensitive: true", "sensitive: 1", 10, r"topics\[0\]\.sensitive: must be true or false; got 1"),
        (
            "truth: tea tastes better than coffee",
            "truth: coffee tastes better than tea ",
            7,
            r"topics\[0\]\.claims\.falsehood: repeats the claim of another side; got 'coffee tastes better than tea'",
        ),
        ("name: tea", "name: Green Tea", 4, r"topics\[0\]\.name: .*'Green Tea'"),
        ("name: tea", "name: four-day-week", 12, r"topics\[1\]\.name: duplicate 'four-day-week'; .*distinct"),
        ("  - name: tea\n    category: Taste", "  - category: Taste", 4, r"topics\[0\].*name"),
        ("truth: tea tastes better than coffee", "big lie: tea is a soup", 8, r"topics\[0\]\.claims.*big lie"),
        ("truth: tea tastes better than coffee", "truth: 7", 8, r"topics\[0\]\.claims\.truth: .*7"),
        (
            "truth: tea tastes better than coffee",
            "truth: Tea is best.",
            8,
            r"topics\[0\]\.claims\.truth: .*without a full stop",
        ),
        (
            "truth: tea tastes better than coffee",
            "truth: '  '",
            8,
            r"topics\[0\]\.claims\.truth: .*follow 'that'.*'  '",
        ),
        (
            'claims: {truth: "a week of four working days would do people good"}',
            "claims: {}",
            13,
            r"topics\[1\]\.claims: .*at least 1",
        ),
        ("    category: Taste", '    title: "Tea\\nor"', 5, r"topics\[0\]\.title: must be one line; got 'Tea\\nor'"),
        ("licence: CC0", "license: CC0", 2, r"license: .*licence"),
    ],
)
def test_a_mistake_is_reported_with_file_line_and_field(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    assert GOOD.count(old) == 1
    path = _file(tmp_path, GOOD.replace(old, new))
    with pytest.raises(SpecError, match=rf"topics\.yaml:{line}: {message}") as caught:
        load_topics(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; expected a mapping of fields"),
        ("- name: tea\n", r":1: contains a list"),
        ("topics: []\n", r":1: topics: .*at least 1"),
        ("source: x\n", "topics"),
        ("topics: tea\n", r":1: topics: "),
        ("topics: [tea]\n", r":1: topics\[0\]: "),
    ],
)
def test_a_file_that_holds_no_topics(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load_topics(_file(tmp_path, text))


def test_a_mapping_is_called_what_the_caller_calls_it() -> None:
    bad = {"name": "tea", "claims": {"truth": "Tea is best."}}
    with pytest.raises(SpecError, match=r"^topic\.definition: claims\.truth: must be a clause"):
        parse_topic(bad, "topic.definition")
    with pytest.raises(SpecError, match=r"^mine: topics\[1\]\.name: duplicate 'tea'"):
        parse_topics({"topics": [{"name": "tea", "claims": {"truth": "tea is best"}}] * 2}, "mine")


def test_one_topic_from_a_mapping() -> None:
    topic = parse_topic({"name": "tea", "claims": {"truth": "  tea is best  "}, "source": "me"})
    assert topic.claims == {"truth": "tea is best"}
    assert (topic.title, topic.source) == ("Tea", "me")


def test_the_topics_of_the_founding_study(checkout: Path) -> None:
    """Fifteen topics in three categories, each in both framings with the truth on the other side (A5)."""
    topics = load_topics(checkout / "topics" / "chuang2024.yaml")
    assert len(topics) == 15
    assert Counter(topic.category for topic in topics.values()) == {"Science": 5, "History": 5, "Common sense": 5}
    scale = OpinionScale()
    texts = set()
    for topic in topics.values():
        assert topic.accepted == "truth"
        assert list(topic.claims) == ["falsehood", "truth"]
        assert [topic.claim(framing).truth(scale) for framing in ("falsehood", "truth")] == [-2, 2]
        texts |= set(topic.claims.values())
    assert len(texts) == 30


def test_a_claim_is_one_line() -> None:
    with pytest.raises(SpecError, match=r"claims\.truth: must be one line, .* got 'tea is\\na drink'"):
        parse_topic({"name": "tea", "claims": {"truth": "tea is\na drink"}})
    assert parse_topic({"name": "tea", "claims": {"truth": "tea is a drink\n"}}).claims == {"truth": "tea is a drink"}


QUESTION = {
    "name": "arts",
    "question": " Should the arts be funded? ",
    "claims": {"affirming": "The arts should be funded.", "negating": "The arts should NOT be funded! "},
}


def test_position_statements_on_a_question_are_sentences() -> None:
    topic = parse_topic(QUESTION)
    assert topic.question == "Should the arts be funded?"
    assert topic.claims["affirming"] == "The arts should be funded."
    affirming, negating = topic.claim("affirming"), topic.claim("negating")
    assert (affirming.text, affirming.question) == ("The arts should be funded", topic.question)
    assert (affirming.statement, negating.statement) == ("The arts should be funded.", "The arts should NOT be funded!")
    assert affirming.truth(OpinionScale()) is None


@pytest.mark.parametrize("text", ["tea is best", "Tea is best", "Tea is best!", "Is tea best?", "t"])
def test_any_claim_is_a_statement(text: str) -> None:
    statement = parse_topic({"name": "tea", "claims": {"for": text}}).claim().statement
    assert statement[:1].isupper()
    assert statement[-1] in ".!?"
    assert statement.removesuffix(".").casefold() == text.casefold()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"question": " "}, "question: must be one line with a question; got ' '"),
        ({"question": "Should it\nbe?"}, "question: must be one line"),
        ({"question": 7}, "question"),
        ({"claims": {"for": " . "}}, r"claims\.for: must be a sentence; got ' \. '"),
        ({"claims": {"for": "One.\nTwo."}}, r"claims\.for: must be one line"),
        ({"question": None}, r"claims\.affirming: must be a clause that can follow 'that', without a full stop"),
    ],
)
def test_bad_questions_and_statements(changed: dict[str, object], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        parse_topic({**QUESTION, **changed})


@pytest.mark.parametrize(
    ("stated", "question", "text"),
    [
        ("A four-day week is good for all", None, "a four-day week is good for all"),
        ("The library should open", None, "the library should open"),
        ("US astronauts landed on the moon", None, "US astronauts landed on the moon"),
        ("Ann Lee is right", None, "Ann Lee is right"),
        ("The library should open.", "Should the library open?", "The library should open"),
    ],
)
def test_a_claim_follows_that_without_the_capital_of_a_sentence(stated: str, question: str | None, text: str) -> None:
    claim = Topic(name="one", claims={"for": stated}, question=question).claim()
    assert (claim.text, claim.statement) == (text, f"{stated.removesuffix('.')}.")
