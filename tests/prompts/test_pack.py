from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import opinionsim.prompts
from opinionsim.errors import SpecError
from opinionsim.messages import Reply
from opinionsim.personas import Persona
from opinionsim.prompts import BLOCKS, VARIABLES, AgentPrompts, CognitionFields, Conditions, Past, PromptPack, load_pack
from opinionsim.schedules import PROBE, REPORT, REVIEW, SELF_REPORT, WRITE
from tests.support.editing import reword

Agent = Callable[..., AgentPrompts]

_ACTS = (WRITE, REVIEW, REPORT, PROBE, SELF_REPORT)
_CUE_IF_OPEN = '{% if world == "open" %}Answer in a few sentences.{% elif world == "closed" %}'
_FRAMES = ("event", "reflect", "recollection")


def _refusal(folder: Path, **conditions: Any) -> str:
    """The error of a run under some conditions, whose acts and memory use every template."""
    with pytest.raises(SpecError) as caught:
        load_pack(folder).bind(_ACTS, _FRAMES, Conditions(**conditions))
    message = str(caught.value)
    assert "\n" not in message
    assert "mine" in message
    return message


def test_a_pack_is_built_again_from_its_contents(pack: PromptPack, agent: Agent) -> None:
    again = PromptPack.from_contents("elsewhere", dict(pack.contents))
    assert again == pack
    assert agent(again).system() == agent().system()
    assert set(pack.contents) >= {"pack.yaml", "system.j2", "write.j2", "event.j2"}
    assert "README.md" not in pack.contents


def test_a_copied_and_edited_pack_just_works(folder: Path, pack: PromptPack, agent: Agent) -> None:
    reword(folder / "pack.yaml", "Your post:", "Tweet:")
    reword(folder / "write.j2", "Your post:", "Tweet:")
    reword(folder / "pack.yaml", '["<post>", "</post>"]', '["[[POST]]", "[[/POST]]"]')
    reword(folder / "_received.j2", "<post>", "[[POST]]")
    reword(folder / "_received.j2", "</post>", "[[/POST]]")
    mine = load_pack(folder)
    assert agent(mine).task(WRITE, (), Past()).content.endswith("Tweet:")
    assert mine.marks.post == ("[[POST]]", "[[/POST]]")
    assert mine != pack


def test_windows_files_render_as_others_do(folder: Path, agent: Agent) -> None:
    for path in folder.glob("*.j2"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert agent(load_pack(folder)).system() == agent().system()


def test_a_further_task_needs_only_template_and_cue(folder: Path, agent: Agent) -> None:
    (folder / "vote.j2").write_text(
        '{% from "_words.j2" import define %}\n{{ task }} Cast your vote{{ define(" on", claim, masked) }}.\n'
        '{% include "_received.j2" %}\n',
        encoding="utf-8",
    )
    reword(folder / "pack.yaml", "cues:", 'cues:\n  vote: "Cast your vote"')
    mine = load_pack(folder)
    assert mine.tasks == ("probe", "report", "review", "self-report", "vote", "write")


def test_templates_may_ask_for_attributes_by_name(folder: Path, agent: Agent) -> None:
    reword(
        folder / "system.j2",
        "{% if background %}",
        "{% if attributes %}\nPays {{ attributes.rent }}\n{% endif %}\n{% if background %}",
    )
    mine = load_pack(folder)
    rich = Persona("Bo Ek", None, {"rent": "twelve"})
    assert "Pays twelve" in (agent(mine, persona=rich).system() or ("", ""))[1]
    with pytest.raises(SpecError, match=r"system\.j2:\d+: .*rent"):
        agent(mine)


def test_other_files_of_a_folder_are_left_alone(folder: Path) -> None:
    for name in (".DS_Store", "write.j2~", "NOTES.md", "LICENSE"):
        (folder / name).write_bytes(b"\xff\x00")
    (folder / "old").mkdir()
    assert load_pack(folder).name == "default"


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("pack.yaml", "name: default", "name: default\nnme: x", "nme"),
        ("pack.yaml", "name: default", "name: [", "pack.yaml:"),
        ("pack.yaml", "name: default", "name: 3", "name"),
        ("pack.yaml", '  write: "Your post:"\n', "", "cues.write: missing"),
        ("pack.yaml", '"Your post:"', '" "', "cues.write: must be a phrase"),
        ("pack.yaml", "  write:", '  system: "You"\n  write:', "cues.system: is not a task"),
        ("pack.yaml", "  write:", '  vote: "Vote now"\n  write:', "vote.j2: no such template"),
        ("pack.yaml", '  disposition: ["<note>", "</note>"]\n', "", "disposition"),
        ("pack.yaml", '["<note>", "</note>"]', '["<note>"]', "disposition"),
        ("pack.yaml", '["<note>", "</note>"]', '["<post>", "</note>"]', "used twice"),
        ("pack.yaml", '["<note>", "</note>"]', '["<note>", "<note>"]', "used twice"),
        ("pack.yaml", '["<note>", "</note>"]', '["a", "</note>"]', "three or more"),
        ("pack.yaml", '["<note>", "</note>"]', '["BIAS START", "</note>"]', "no whitespace"),
        ("pack.yaml", '["<note>", "</note>"]', '["x<post>", "</note>"]', "contains"),
        ("pack.yaml", '["<note>", "</note>"]', '["###", "</note>"]', "begins as"),
        ("pack.yaml", "Your post:", "Write it now", "cue 'Write it now' is missing"),
        ("pack.yaml", "Your post:", "Benjamin", "is missing"),
        ("pack.yaml", "Now that you have read", "honestly believe", "the cue of review"),
        ("write.j2", "Your post:", "Answer in a few sentences. Your post:", "the cue of probe"),
        ("write.j2", "Your post:", "Your post: {% if", "write.j2:"),
        ("write.j2", "Your post:", "Your post: {{ tweet }}", "undefined variable 'tweet'"),
        (
            "write.j2",
            "Your post:",
            "{% if masked == 3 %}{{ tweet }}{% endif %}Your post:",
            "undefined variable 'tweet'",
        ),
        ("write.j2", "Your post:", "Your post: {{ claim.author }}", "write.j2:16: "),
        ("write.j2", "Your post:", "Your post: {{ claim | nonsense }}", "nonsense"),
        ("write.j2", "Your post:", "Your post: {{ lipsum() }}", "lipsum"),
        ("write.j2", "Your post:", "Your post: {{ ''.__class__.__mro__ }}", "__class__"),
        ("write.j2", "Your post:", "Your post: {{ 1 // 0 }}", "write.j2:"),
        ("write.j2", '"_situation.j2"', '"../system.j2"', "is not a template of this pack"),
        ("write.j2", '"_situation.j2"', '"/etc/hostname"', "is not a template of this pack"),
        ("write.j2", "Your post:", "{% include name %}Your post:", "write.j2:"),
        ("write.j2", '{{ define(" about", claim, masked) }}', "it", "the claim must be between"),
        ("write.j2", "Your post:", "Your post: {{ claim }}", "also occurs outside"),
        ("write.j2", "Your post:", "Your post: {{ '<claim>it</claim>' if not claim }}", "there is no claim"),
        ("event.j2", "{{ text }}", "{{ text }}{{ '<claim>it</claim>' if not claim }}", "there is no claim"),
        (
            "system.j2",
            '{{ define(" The subject',
            "{{ '<claim></claim>' if not claim }}{{ define(\" The subject",
            "no claim",
        ),
        ("write.j2", "{{ task }}", "", "write.j2: the variable task must appear in the prompt"),
        ("write.j2", '{% include "_received.j2" %}', "", "received messages"),
        ("review.j2", '{% include "_received.j2" %}', "{{ received[0].text if received }}", "received messages"),
        ("_received.j2", "</post>", "", "in pairs"),
        ("_received.j2", "{{ post.text }}", "{{ post.txt }}", "txt"),
        ("system.j2", "<persona>", "", "in pairs"),
        ("system.j2", "Name: {{ name }}", "Name", "the name must be between"),
        ("system.j2", "Background: {{ background }}", "", "the background"),
        ("system.j2", "{{ initial_belief }} opinion", "your opinion", "the initial belief"),
        ("system.j2", "{% if role_play %}", "{{ initial_belief }}{% if role_play %}", "outside"),
        ("system.j2", "{{ value }}", "", "an attribute"),
        ("event.j2", 'condition in ("refused", "empty")', 'condition == "refused"', "status 'empty' must say"),
        ("event.j2", 'condition in ("refused", "empty")', "false", "status 'refused' must say that there was none"),
        ("_situation.j2", '"closed"', '"shut"', "world"),
        ("event.j2", "<memory>", "", "in pairs"),
        ("event.j2", "<memory>", "Long ago: <memory>", "wrapped"),
        ("event.j2", "{{ text }}", "", "the agent's text"),
        ("event.j2", "{{ text }}", "<post>{{ text }}</post>", "received messages"),
        ("recollection.j2", "{{ text }}", "", "the agent's text"),
        ("reflect.j2", "{{ experience }}", "", "the experience"),
        ("reflect.j2", "{{ past }}", "", "reflect.j2: "),
        ("reflect.j2", "{{ past }}", "{{ claim }}", "undefined variable 'claim'"),
    ],
)
def test_a_malformed_pack_gives_one_error_that_names_file_and_fault(
    folder: Path, file: str, old: str, new: str, said: str
) -> None:
    reword(folder / file, old, new)
    assert said in _refusal(folder)


@pytest.mark.parametrize(
    ("file", "old", "new", "conditions", "said"),
    [
        ("pack.yaml", '["<note>", "</note>"]', '["<b>", "</b>"]', {"confirmation_bias": "weak"}, "'<b>'"),
        ("_situation.j2", '== "weak" %}', '== "weak" %}{{ 1 // 0 }}', {"confirmation_bias": "weak"}, "_situation.j2:6"),
        ("_situation.j2", '{% if world == "closed" %}', _CUE_IF_OPEN, {"world": "open"}, "the cue of probe"),
        (
            "system.j2",
            'belief_tense == "past"',
            "false",
            {"belief_tense": "past"},
            "'past' and 'present' give the same",
        ),
        (
            "write.j2",
            "{% if post_words %}",
            "{% if false %}",
            {"post_words": 7},
            "write.j2: post_words 7 and None give",
        ),
    ],
)
def test_a_fault_in_a_condition_is_refused_where_a_run_has_it(
    folder: Path, file: str, old: str, new: str, conditions: dict[str, Any], said: str
) -> None:
    reword(folder / file, old, new)
    load_pack(folder).bind(_ACTS, _FRAMES, Conditions(post_words=None))
    assert said in _refusal(folder, **conditions)


def test_an_undefined_variable_is_reported_with_its_line_and_what_is_valid(folder: Path) -> None:
    path = folder / "probe.j2"
    lines = path.read_text(encoding="utf-8").count("\n")
    path.write_text(path.read_text(encoding="utf-8") + "{{ mood }}\n", encoding="utf-8")
    message = _refusal(folder)
    assert f"probe.j2:{lines + 1}: undefined variable 'mood'" in message
    assert "confirmation_bias" in message


@pytest.mark.parametrize("file", ["pack.yaml", "write.j2", "reflect.j2", "system.j2", "_words.j2"])
def test_every_file_that_something_refers_to_is_needed(folder: Path, file: str) -> None:
    (folder / file).unlink()
    assert file in _refusal(folder)


@pytest.mark.parametrize("task", ["probe", "self-report", "reflect"])
def test_a_template_of_the_package_needs_its_cue(folder: Path, task: str) -> None:
    declared = (folder / "pack.yaml").read_text(encoding="utf-8")
    kept = [line for line in declared.splitlines() if not line.startswith(f"  {task}:")]
    (folder / "pack.yaml").write_text("\n".join(kept), encoding="utf-8")
    assert f"cues.{task}: missing" in _refusal(folder)


def test_a_pack_may_hold_nothing_but_the_system_message(pack: PromptPack, agent: Agent) -> None:
    declaration = pack.contents["pack.yaml"].partition("cues:")[0]
    kept = ("system.j2", "_words.j2", "_situation.j2")
    bare = PromptPack.from_contents("bare", {"pack.yaml": declaration, **{file: pack.contents[file] for file in kept}})
    assert bare.tasks == ()
    assert bare.frames == ("system",)
    assert agent(bare).system() == agent().system()
    with pytest.raises(SpecError, match=r"no task template 'write'.*it has none"):
        agent(bare).task(WRITE, (), Past())
    with pytest.raises(SpecError, match=r"prompt pack bare has no template event\.j2"):
        agent(bare).event(WRITE, (), Reply("My words."), Past())


def test_the_kinds_of_blocks_are_public(pack: PromptPack) -> None:
    assert [kind for kind, _ in pack.marks.delimiters()][::2] == list(BLOCKS)


@pytest.mark.parametrize(
    "content", [b"", b"- 1\n- 2\n", b"just words", b"\xff\xfe\x00p", b"name: a\x00b", b"a: 1\na: 2"]
)
def test_a_declaration_that_is_no_mapping_is_refused(folder: Path, content: bytes) -> None:
    (folder / "pack.yaml").write_bytes(content)
    assert "pack.yaml" in _refusal(folder)


def test_a_binary_template_and_an_unknown_file_are_refused(folder: Path) -> None:
    (folder / "wirte.j2").write_text("Your post:", encoding="utf-8")
    assert "wirte.j2: unknown file" in _refusal(folder)
    (folder / "wirte.j2").unlink()
    (folder / "write.j2").write_bytes(b"\x89PNG\xff")
    assert "write.j2: not a text file" in _refusal(folder)


@pytest.mark.parametrize("where", ["nowhere", "pack.yaml"])
def test_a_pack_that_is_no_folder_is_refused(folder: Path, where: str) -> None:
    with pytest.raises(SpecError, match="neither 'default', 'deliberation'"):
        load_pack(folder / where if where == "pack.yaml" else where)


def test_the_readme_lists_every_variable(pack: PromptPack) -> None:
    readme = (Path(opinionsim.prompts.__file__).parent / "default" / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(\w+)`", readme))
    # Conditions that a study states are listed with the fields of a specification.
    assert {name for group in VARIABLES.values() for name in group} - CognitionFields.model_fields.keys() <= listed
    assert {file for file in pack.contents if not file.startswith("_")} <= set(re.findall(r"`([\w.-]+)`", readme))
