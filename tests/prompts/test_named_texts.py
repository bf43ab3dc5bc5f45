"""Named texts: what is put into them, what the shipped ones hold, what a user may give, and which errors there are."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

import opinionsim.prompts
from opinionsim.errors import SpecError
from opinionsim.prompts import Texts, fill, load_pack, pack_files, pieces, placeholders
from opinionsim.registry import places

SHIPPED = Texts.parse(pack_files("deliberation")["texts.yaml"])
FILE = SHIPPED.file

#: Every template of the library of Plurals (B3).
LIBRARY = {
    "personas": ["default", "anes", "first_wave", "second_wave"],
    "instructions": [
        "default", "chain", "debate", "debate_minimal", "jury", "debate_jury", "debate_emotional", "debate_win",
        "debate_first_wave", "debate_second_wave", "voting", "critique_revise", "minimal_discussion", "first_wave",
        "second_wave",
    ],
    "moderators": ["default", "voting", "first_wave", "second_wave", "divergent"],
    "moderation": [
        *("default", "voting", "synthesis", "critique_revise", "first_wave", "second_wave", "divergent"),
        "verdict",
    ],
}  # fmt: skip
NEEDED = {
    "personas": "persona",
    "instructions": "previous_responses",
    "moderators": "task",
    "moderation": "previous_responses",
}
OF_WAVES = [(section, name) for section, names in LIBRARY.items() for name in names if name.endswith("wave")]

#: Texts that a careless way of inserting would expand, delete or stumble over.
NASTY = [
    "None of the above", "Nonetheless", "$$5", "$5", "${task}", "${previous_responses}", "$persona", "${", "}", "{x}",
    "{{ claim }}", "{% if x %}", "{# x #}", "%s", "\\1", "\\g<0>", "<post>", "</post>", "\r\n", "\0",
]  # fmt: skip
TEXTS = st.lists(st.one_of(st.sampled_from(NASTY), st.text(max_size=8)), max_size=6).map("".join)
NAMES = st.sampled_from(["task", "persona", "previous_responses", "seed", "x"])


def _get(texts: Texts, section: str, given: str, without: Any = ()) -> str:
    method = {"personas": "persona", "moderators": "moderator"}.get(section, section)
    return str(getattr(texts, method)(given, without))


def _refused(texts: Texts, section: str, given: Any, without: Any = ()) -> str:
    with pytest.raises(SpecError) as caught:
        _get(texts, section, given, without)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# What fill does


def _oracle(template: str, values: dict[str, str]) -> str:
    """The template read character by character."""
    written, i = "", 0
    while i < len(template):
        name = next((name for name in values if template.startswith("${" + name + "}", i)), None)
        written += template[i] if name is None else values[name]
        i += 1 if name is None else len(name) + 3
    return written


@given(st.lists(st.one_of(TEXTS, NAMES.map(lambda name: f"${{{name}}}"))).map("".join), st.dictionaries(NAMES, TEXTS))
def test_a_template_is_read_once_and_values_stand_in_it_as_they_are(template: str, values: dict[str, str]) -> None:
    assert fill(template, values) == _oracle(template, values)


@given(st.lists(TEXTS), NAMES, TEXTS)
def test_pieces_joined_by_a_value_are_the_template_filled(parts: list[str], name: str, value: str) -> None:
    template = f"${{{name}}}".join(parts)
    assert value.join(pieces(template, name)) == fill(template, {name: value})
    assert len(pieces(template, name)) == template.count(f"${{{name}}}") + 1


def test_nothing_is_deleted_or_expanded_twice() -> None:
    """Plurals deletes "None" and substitutes twice (B9, defects 2 and 3)."""
    answers = "None of the above. Nonetheless it costs $$5 {now} and ${previous_responses}."
    prompt = fill("Said by ${persona}:\n${previous_responses}", {"previous_responses": answers})
    assert prompt == "Said by ${persona}:\n" + answers


@pytest.mark.parametrize("template", ["$task", "$$", "{task}", "${ task }", "${a-b}", "${}", "$ {task}", "{{task}}"])
def test_what_is_no_placeholder_stays(template: str) -> None:
    assert fill(template, {"task": "x", "a": "y"}) == template
    assert placeholders(template) == ()


# What is shipped


def test_the_library_is_complete() -> None:
    assert {section: list(SHIPPED.names(section)) for section in LIBRARY} == LIBRARY
    assert SHIPPED.names("ideals") == ("first_wave", "second_wave")
    assert SHIPPED.names("interviews") == ("american_voices",)


@pytest.mark.parametrize("section", LIBRARY)
def test_every_template_holds_its_placeholder_on_a_line_of_its_own(section: str) -> None:
    for name in LIBRARY[section]:
        text = _get(SHIPPED, section, name)
        assert placeholders(text) == (NEEDED[section],)
        assert text.split("\n").count(f"${{{NEEDED[section]}}}") == 1
        assert text == text.strip()


def test_templates_that_differ_by_name_differ_in_words() -> None:
    for section, names in LIBRARY.items():
        assert len({_get(SHIPPED, section, name) for name in names}) == len(names)


@pytest.mark.parametrize(("section", "name"), OF_WAVES)
def test_templates_of_a_wave_hold_its_ideals_and_each_can_be_left_out(section: str, name: str) -> None:
    wave = "first_wave" if name.endswith("first_wave") else "second_wave"
    ideals = FILE.ideals[wave]
    whole = _get(SHIPPED, section, name).split("\n")
    rows = [whole.index(f"- {ideal.line}") for ideal in ideals]
    assert rows == list(range(rows[0], rows[0] + len(ideals)))
    for ideal, row in zip(ideals, rows, strict=True):
        assert _get(SHIPPED, section, name, [ideal.name]).split("\n") == whole[:row] + whole[row + 1 :]
    bare = _get(SHIPPED, section, name, [ideal.name for ideal in ideals])
    assert bare.split("\n") == whole[: rows[0]] + whole[rows[-1] + 1 :]


def test_ideals_are_those_of_the_table_with_their_sources() -> None:
    assert [ideal.name for ideal in FILE.ideals["first_wave"]] == [
        "respect",
        "reasons",
        "consensus",
        "common_good",
    ]
    assert [ideal.name for ideal in FILE.ideals["second_wave"]] == [
        "respect", "empathy", "considerations", "clarifying_conflict", "common_good", "self_interest",
    ]  # fmt: skip
    assert [each.name for each in FILE.excluded] == [
        "absence of power", "equality", "publicity", "accountability", "sincerity",
    ]  # fmt: skip
    ideals = [*FILE.ideals["first_wave"], *FILE.ideals["second_wave"]]
    for source in [*(ideal.source for ideal in ideals), *(each.source for each in FILE.excluded)]:
        assert "table 2" in source
        assert source.endswith("(B3)")


def test_one_line_tells_rational_from_emotional_debate() -> None:
    """The two conditions of the fidelity study of Plurals, appendix D."""
    rational = SHIPPED.instructions("debate_first_wave", ["respect", "consensus", "common_good"]).split("\n")
    emotional = SHIPPED.instructions(
        "debate_second_wave", ["respect", "empathy", "clarifying_conflict", "common_good", "self_interest"]
    ).split("\n")
    differing = [pair for pair in zip(rational, emotional, strict=True) if pair[0] != pair[1]]
    assert differing == [(f"- {FILE.ideals['first_wave'][1].line}", f"- {FILE.ideals['second_wave'][2].line}")]
    plain = SHIPPED.instructions("debate").split("\n")
    assert [line for line in emotional if line not in plain] == [differing[0][1]]
    assert SHIPPED.instructions("debate_emotional").split("\n") == emotional


@pytest.mark.parametrize("name", [name for name in LIBRARY["instructions"] if name.startswith("debate")])
def test_debaters_answer_each_other_in_the_first_person(name: str) -> None:
    text = SHIPPED.instructions(name)
    assert "last points of the other" in text
    assert "never in the third person" in text


@pytest.mark.parametrize("name", ["anes", "first_wave", "second_wave"])
def test_survey_personas_do_not_disclose_who_they_are(name: str) -> None:
    added = set(SHIPPED.persona(name).split("\n")) - set(SHIPPED.persona("default").split("\n"))
    assert any("party" in line for line in added)
    assert set(SHIPPED.persona("default").split("\n")) <= set(SHIPPED.persona(name).split("\n"))


def test_the_interview_asks_about_nine_subjects() -> None:
    asked = SHIPPED.interview("american_voices")
    assert (len(asked.questions), asked.words) == (9, 250)
    subjects = ["your life", "another direction", "family", "Who else", "neighbourhood", "week", "work", "vote", "poli"]
    assert all(subject in question for subject, question in zip(subjects, asked.questions, strict=True))
    assert placeholders(asked.voice) == ("seed",)


def test_the_requests_say_what_replies_must_look_like() -> None:
    assert placeholders(FILE.automatic.request) == ("task",)
    assert FILE.automatic.marker in FILE.automatic.request
    assert "50 words" in FILE.automatic.request
    assert placeholders(FILE.values) == ("values",)
    assert all(f"Verdict: {verdict}" in FILE.values for verdict in ("accepted", "rejected", "undecided"))
    assert FILE.values.index("Verdict:") < FILE.values.index("Rationale:")


# What a user may give


@given(TEXTS, TEXTS)
def test_a_text_of_ones_own_stays_as_it_is(before: str, after: str) -> None:
    before, after = (text.replace("$", "S") for text in (before, after))
    assert (
        SHIPPED.instructions(f"{before} ${{previous_responses}} {after}") == f"{before} ${{previous_responses}} {after}"
    )


def test_in_a_text_of_ones_own_the_placeholder_needs_no_braces() -> None:
    given = "Conclude from these: $previous_responses\n$previous_responses_x costs $$5 and ${other}"
    assert SHIPPED.moderation(given) == given.replace("$previous_responses\n", "${previous_responses}\n")
    assert SHIPPED.moderator("Oversee $task, all of it.") == "Oversee ${task}, all of it."
    assert SHIPPED.moderator("Sum up as neutrally as possible.") == "Sum up as neutrally as possible."


@pytest.mark.parametrize(
    ("section", "given", "said"),
    [
        (
            "personas",
            "anse",
            "(did you mean anes?); valid: default, anes, first_wave, second_wave, or a text that holds",
        ),
        ("instructions", "critique", "unknown name 'critique'"),
        ("instructions", "synthesis", "valid: default, chain, debate,"),
        ("moderators", "synthesis", "valid: default, voting, first_wave, second_wave, divergent, or a text"),
        ("moderation", "synthesise", "did you mean synthesis?"),
        ("personas", "Play this person.", "must contain ${persona}"),
        ("instructions", "Build on these.", "must contain ${previous_responses}"),
        ("moderation", "Build on {previous_responses}.", "must contain ${previous_responses}"),
        ("moderators", "Keep to these:\n${ideals}", "${ideals} has no meaning in your own text"),
        ("personas", " ", "must be a name or a text that holds ${persona}; got ' '"),
        ("personas", True, "must be a name or a text that holds ${persona}; got true"),
        ("moderators", "", "must be a name or a text; got ''"),
    ],
)
def test_a_name_or_text_that_is_not_valid(section: str, given: Any, said: str) -> None:
    assert said in _refused(SHIPPED, section, given)


@pytest.mark.parametrize(
    ("section", "given", "without", "said"),
    [
        ("personas", "second_wave", ["reasons"], "persona template 'second_wave': ideal: unknown name 'reasons'"),
        ("personas", "second_wave", "empaty", "did you mean empathy?); valid: respect, empathy, considerations,"),
        ("personas", "anes", ["respect"], "persona template 'anes': has no ideals to leave out"),
        ("instructions", "Use ${previous_responses}", ["respect"], "has no ideals to leave out"),
    ],
)
def test_an_ideal_that_cannot_be_left_out(section: str, given: str, without: Any, said: str) -> None:
    assert said in _refused(SHIPPED, section, given, without)


def test_unknown_sections_and_interviews_are_named() -> None:
    with pytest.raises(SpecError, match=r"unknown name 'persona' \(did you mean personas\?\); valid: personas, instr"):
        SHIPPED.names("persona")
    with pytest.raises(SpecError, match="interview: unknown name 'mine'; valid: american_voices"):
        SHIPPED.interview("mine")


# A file of texts


def _small() -> dict[str, Any]:
    """The least that a file of texts holds, with one wave of two ideals."""
    ideals = [{"name": name, "line": f"Heed {name}.", "source": "S"} for name in ("one", "two")]
    return {
        "personas": {"default": "Be ${persona}.", "of_calm": "Be ${persona}.\n\n* ${ideals} (rule)\nEnd."},
        "instructions": {"default": "See ${previous_responses}"},
        "moderators": {"default": "Moderate."},
        "moderation": {"default": "Combine ${previous_responses}"},
        "automatic": {"marker": "Do:", "request": "Begin with Do: for ${task}"},
        "values": "Judge by ${values}.",
        "discussion": "Discuss it.",
        "ideals": {"calm": ideals},
    }


def _parse(content: dict[str, Any]) -> Texts:
    return Texts.parse(yaml.safe_dump(content), "mine/texts.yaml")


def test_the_line_of_the_ideals_is_repeated_whole() -> None:
    assert _parse(_small()).persona("of_calm") == "Be ${persona}.\n\n* Heed one. (rule)\n* Heed two. (rule)\nEnd."
    assert _parse(_small()).persona("of_calm", "one") == "Be ${persona}.\n\n* Heed two. (rule)\nEnd."


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"personas": {"default": "Be calm."}},
            "personas.default: must contain ${persona} exactly once; it occurs 0 times",
        ),
        ({"moderation": {"default": "${previous_responses} ${previous_responses}"}}, "it occurs 2 times"),
        ({"instructions": {"default": "${previous_responses} ${taks}"}}, "unknown placeholder ${taks}; valid: ${prev"),
        ({"instructions": {"chain": "See ${previous_responses}"}}, "instructions: needs a template called default"),
        ({"moderators": {"default": "Keep to ${ideals}"}}, "its name does not end in that of a wave under ideals"),
        ({"moderators": {"default": " "}}, "moderators.default: must not be empty"),
        ({"personas": {"default": "${persona}", "calm": "${persona} ${ideals} ${ideals}"}}, "only once"),
        ({"personas": {"default": "${persona}", "of calm": "${persona}"}}, "of calm"),
        ({"automatic": {"marker": "Go:", "request": "Do: ${task}"}}, "request: must contain the marker 'Go:'"),
        ({"automatic": {"marker": "Do:", "request": "Do: it"}}, "automatic.request: must contain ${task} exactly once"),
        ({"values": "Judge."}, "values: must contain ${values} exactly once"),
        ({"interviews": {"a": {"questions": [], "words": 9, "voice": "${seed}"}}}, "interviews.a.questions"),
        ({"interviews": {"a": {"questions": ["q"], "words": 0, "voice": "${seed}"}}}, "must be at least 1"),
        ({"interviews": {"a": {"questions": ["q"], "words": True, "voice": "${seed}"}}}, "must be a whole number"),
        (
            {"interviews": {"a": {"questions": ["q"], "words": 9, "voice": "you"}}},
            "interviews.a.voice: must contain ${seed}",
        ),
        ({"ideals": {"calm": [{"name": "one", "line": "One.\nTwo.", "source": "S"}]}}, "must be one line"),
        ({"ideals": {"calm": [{"name": "one", "line": "Be ${persona}.", "source": "S"}]}}, "without placeholders"),
        ({"ideals": {"calm": [{"name": "a", "line": "A", "source": "S"}] * 2}}, "ideals.calm[1].name: duplicate 'a'"),
        ({"ideals": {"calm": [{"name": "a", "line": "A"}]}}, "ideals.calm[0].source: is required but missing"),
        ({"persona": {}}, "unknown field (did you mean personas?)"),
    ],
)
def test_a_file_that_is_not_valid_is_refused_with_file_line_and_field(change: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as caught:
        _parse({**_small(), **change})
    assert said in str(caught.value)
    assert str(caught.value).startswith("mine/texts.yaml:")


def test_what_is_left_out_of_a_file_is_named() -> None:
    for section in ("personas", "instructions", "moderators", "moderation", "automatic", "values"):
        with pytest.raises(SpecError, match=f"{section}: is required but missing"):
            _parse({key: value for key, value in _small().items() if key != section})


# Packs


def test_a_pack_has_the_named_texts_of_its_folder(folder: Path) -> None:
    assert load_pack(folder).named is None
    shutil.copy(Path(opinionsim.prompts.__file__).parent / "deliberation" / "texts.yaml", folder)
    mine = load_pack(folder)
    assert mine.named.file == FILE
    assert mine.bind(()).named == mine.named
    (folder / "texts.yaml").write_text("personas: {}", encoding="utf-8")
    with pytest.raises(SpecError, match=r"mine/texts\.yaml:1: instructions: is required but missing"):
        load_pack(folder)


def test_built_in_packs_are_found_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where the current folder holds a folder of that name."""
    monkeypatch.chdir(tmp_path)
    for name in places("pack"):
        (tmp_path / name).mkdir()
    assert "write.j2" in pack_files("default")
    assert "texts.yaml" in pack_files("deliberation")
    assert pack_files("./deliberation") == {}
