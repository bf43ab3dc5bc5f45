from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from opinionsim.errors import SpecError
from opinionsim.memory import CumulativeMemory, NoMemory
from opinionsim.messages import Message
from opinionsim.prompts import AgentPrompts, Past, PromptPack
from opinionsim.registry import find
from opinionsim.schedules import PROBE, REPORT, REVIEW, SELF_REPORT, WRITE, ActSpec

Agent = Callable[..., AgentPrompts]

_POST = Message("Cows can swim.", "Bo Ek", 1, role="moderator", act="write")
_PICK = ActSpec("pick", "pick", "choice", text="{{ task }}\nPick one of {{ options }}.", values={"options": "a, b"})
_CLAIM_AND_POSTS = (
    '{% from "_words.j2" import define %}{{ define(" on", claim, masked) }}\n\n{% include "_received.j2" %}\n'
)


def _changed(pack: PromptPack, **files: str) -> PromptPack:
    """The default pack with files added; a cue for each task."""
    contents = dict(pack.contents)
    for name, text in files.items():
        contents[f"{name}.j2"] = text
        if not name.startswith("_"):
            contents["pack.yaml"] += f'  {name}: "Now {name}!"\n'
    return PromptPack.from_contents("mine", contents)


def _without(pack: PromptPack, *names: str) -> PromptPack:
    """The default pack without some of its tasks."""
    contents = {file: text for file, text in pack.contents.items() if file.removesuffix(".j2") not in names}
    lines = contents["pack.yaml"].splitlines()
    kept = (line for line in lines if line.strip().partition(":")[0] not in names)
    return PromptPack.from_contents("mine", {**contents, "pack.yaml": "\n".join(kept)})


def _refusal(pack: PromptPack, *acts: ActSpec, frames: tuple[str, ...] = ()) -> str:
    with pytest.raises(SpecError) as caught:
        pack.bind(acts, frames)
    return str(caught.value)


# Which template an act gets


def test_binding_keeps_name_contents_marks_and_wording(pack: PromptPack, agent: Agent) -> None:
    bound = pack.bind([WRITE, REVIEW, REPORT, PROBE, SELF_REPORT], ("event", "reflect", "recollection"))
    assert (bound.name, bound.contents, bound.marks, bound.texts) == (pack.name, pack.contents, pack.marks, {})
    for act in (WRITE, REVIEW, REPORT, PROBE, SELF_REPORT):
        assert agent(bound).task(act, (_POST,), Past()) == agent().task(act, (_POST,), Past())
    assert agent(bound).system() == agent().system()


def test_the_text_of_an_act_is_used_where_the_pack_has_no_template(pack: PromptPack, agent: Agent) -> None:
    bound = pack.bind([_PICK, WRITE])
    assert bound.texts == {"pick": _PICK.text}
    assert bound != pack
    assert pack.texts == {}
    prompts = agent(bound, task="Name the bridge.")
    assert prompts.task(_PICK, (), Past()).content == "Name the bridge.\nPick one of a, b."
    assert prompts.task(WRITE, (), Past()).content.endswith("Your post:")
    with pytest.raises(SpecError, match=r"no task template 'pick'.*not bound to the act"):
        agent().task(_PICK, (), Past())
    with pytest.raises(SpecError, match="not bound"):
        prompts.task(replace(_PICK, text="Something else."), (), Past())


def test_a_template_of_the_pack_goes_before_the_text_of_an_act(pack: PromptPack, agent: Agent) -> None:
    mine = _changed(pack, pick="{{ task }} Now pick! {{ options }}" + _CLAIM_AND_POSTS)
    bound = mine.bind([_PICK])
    assert bound.texts == {}
    assert "Now pick! a, b" in agent(bound).task(_PICK, (), Past()).content


def test_acts_of_one_template_may_each_bring_a_text(pack: PromptPack, agent: Agent) -> None:
    other = ActSpec("choose", "pick", "choice", text="Choose.")
    bound = pack.bind([_PICK, other])
    assert bound.texts == {"pick": _PICK.text, "choose": "Choose."}
    assert agent(bound).task(other, (), Past()).content == "Choose."
    assert "given twice" in _refusal(pack, _PICK, replace(_PICK, text="Or else."))


def test_a_text_goes_by_the_name_of_no_frame(pack: PromptPack, agent: Agent) -> None:
    act = ActSpec("odd", "system", "response", text="Say something.")
    bound = pack.bind([act])
    assert agent(bound).task(act, (), Past()).content == "Say something."
    assert agent(bound).system() == agent().system()


def test_a_text_may_include_files_of_the_pack(pack: PromptPack, agent: Agent) -> None:
    act = ActSpec("look", "look", "response", text='Look:\n{% include "_received.j2" %}', labelling="named")
    told = agent(pack.bind([act])).task(act, (_POST,), Past()).content
    assert told == "Look:\nPost by Bo Ek:\n<post>\nCows can swim.\n</post>"
    assert "refers to 'gone.j2'" in _refusal(pack, replace(act, text='{% include "gone.j2" %}'))


def test_an_act_without_any_template_is_an_error_that_lists_what_there_is(pack: PromptPack) -> None:
    message = _refusal(pack, replace(_PICK, text=None))
    assert message == (
        "prompt pack default: no task template 'pick', which act 'pick' needs; "
        "it has probe, report, review, self-report, write, and the act brings no text of its own"
    )
    assert "no task template 'event'" in _refusal(pack, ActSpec("odd", "event", "response"))


def test_a_pack_need_only_hold_what_its_run_uses(pack: PromptPack, agent: Agent) -> None:
    small = _without(pack, "probe", "report", "self-report", "reflect", "recollection")
    assert small.tasks == ("review", "write")
    bound = small.bind([WRITE, REVIEW], CumulativeMemory.templates)
    assert agent(bound).task(REVIEW, (_POST,), Past()) == agent().task(REVIEW, (_POST,), Past())
    assert "no task template 'probe'" in _refusal(small, WRITE, PROBE)


@pytest.mark.parametrize("memory", ["reflective", "reflective-as-run"])
def test_a_memory_needs_its_frames(pack: PromptPack, memory: str) -> None:
    small = _without(pack, "reflect")
    assert pack.bind([WRITE], find("memory", memory).target.templates).frames == (
        "system",
        "event",
        "reflect",
        "recollection",
        "again",
    )
    assert _refusal(small, WRITE, frames=find("memory", memory).target.templates) == (
        "prompt pack mine has no template reflect.j2, which the memory of this run needs"
    )
    assert small.bind([WRITE], NoMemory.templates).name == "default"


# What a template may use


def test_a_template_gets_what_its_act_declares(pack: PromptPack, agent: Agent) -> None:
    text = "{{ name }}, {{ mood }}: {{ 3 | ordinal }}"
    act = ActSpec("say", "say", "response", text=text, variables=("name",), values={"mood": "be kind"})
    assert agent(pack.bind([act])).task(act, (), Past()).content == "Ann Lee, be kind: 3rd"
    assert _refusal(pack, replace(act, text="A\n\n{{ claim }}")) == (
        "act say:3: undefined variable 'claim'; valid here, as act 'say' declares: mood, name"
    )
    unused = replace(act, text="{% if name == 'x' %}\n{{ claim }}{% endif %}Hello")
    assert "act say:2: undefined variable 'claim'" in _refusal(pack, unused)
    assert "valid here, as act 'say' declares: none" in _refusal(pack, replace(act, variables=(), values={}))


def test_what_is_included_gets_no_more(pack: PromptPack) -> None:
    act = ActSpec("say", "say", "response", text='Hm. {% include "_received.j2" %}', variables=("received",))
    message = _refusal(pack, act)
    assert message == (
        "prompt pack default/_received.j2:2: undefined variable 'labelling'; "
        "valid here, as act 'say' declares: received"
    )
    # A file that frames include too may ask for their variables, if only to see whether it has them.
    both = _changed(pack, _both="{% if case is defined %}{{ case }}{% endif %}Hm.")
    assert both.bind([replace(act, text='{% include "_both.j2" %}')]).name == "default"
    hidden = replace(act, text="{% set file = '_received' ~ '.j2' %}Hm. {% include file %}")
    assert "_received.j2:2: the template cannot be rendered: 'labelling' is undefined" in _refusal(pack, hidden)


def test_an_act_declares_only_variables_there_are(pack: PromptPack) -> None:
    message = _refusal(pack, replace(_PICK, variables=("task", "mood")))
    assert message.startswith("act 'pick': there is no variable 'mood'; valid: name, role, ")
    # A variable of frames is none of a task.
    assert "no variable 'text'" in _refusal(pack, replace(WRITE, variables=("text",)))
    assert "must be a sequence of names" in _refusal(pack, replace(_PICK, variables="task"))  # type: ignore[arg-type]


def test_values_may_not_hide_a_variable(pack: PromptPack) -> None:
    message = _refusal(pack, replace(_PICK, values={"options": "a", "claim": "b"}))
    assert message.startswith("act 'pick': values must not contain 'claim'")
    # Nor one that the act does not declare.
    assert "must not contain 'claim'" in _refusal(pack, replace(_PICK, variables=("task",), values={"claim": "b"}))
    assert "must be texts by name" in _refusal(pack, replace(_PICK, values={"options": 3}))  # type: ignore[dict-item]


def test_a_template_of_the_pack_may_use_the_values_of_its_act(pack: PromptPack, agent: Agent) -> None:
    mine = _changed(pack, pick="{{ task }} Now pick! {{ choices }}" + _CLAIM_AND_POSTS)
    act = replace(_PICK, text=None, values={"choices": "a, b"})
    assert "Now pick! a, b on Theory XYZ" in agent(mine.bind([act])).task(act, (), Past()).content
    assert "mine/pick.j2:1: undefined variable 'choices'" in _refusal(mine, replace(_PICK, text=None))
    # Other tasks of the same pack can be used without it.
    assert agent(mine.bind([WRITE])).task(WRITE, (), Past()) == agent().task(WRITE, (), Past())
    with pytest.raises(SpecError, match=r"mine/pick\.j2:1: the template cannot be rendered: 'choices' is undefined"):
        agent(mine).task(replace(_PICK, text=None), (), Past())


def test_a_file_that_only_own_tasks_include_may_use_values_as_well(pack: PromptPack, agent: Agent) -> None:
    pick = "{{ task }} Now pick!{% include '_choices.j2' %}" + _CLAIM_AND_POSTS
    mine = _changed(pack, pick=pick, _choices="\n\n: {{ choices }}")
    act = replace(_PICK, text=None, values={"choices": "a, b"})
    assert ": a, b" in agent(mine.bind([act])).task(act, (), Past()).content
    assert "mine/_choices.j2:3: undefined variable 'choices'" in _refusal(mine, replace(_PICK, text=None))
    with pytest.raises(SpecError, match=r"mine/_choices\.j2:1: undefined variable 'choices'"):
        _changed(pack, _choices="{{ choices }}")
    contents = {**mine.contents, "write.j2": mine.contents["write.j2"] + '{% include "_choices.j2" %}'}
    with pytest.raises(SpecError, match=r"mine/_choices\.j2:3: undefined variable 'choices'"):
        PromptPack.from_contents("mine", contents)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Pick {{ choices }}." + _CLAIM_AND_POSTS, "pick.j2: its cue 'Now pick!' is missing"),
        ("Now pick! {{ choices }} {{ task }} Answer in a few sentences" + _CLAIM_AND_POSTS, "the cue of probe"),
        ("Now pick! {{ choices }} {{ claim }} {{ task }}" + _CLAIM_AND_POSTS, "the claim also occurs outside"),
        ("Now pick! {{ choices }}" + _CLAIM_AND_POSTS, "the variable task must appear in the prompt"),
        ("Now pick! {{ choices }} {{ task }}", "the claim must be between"),
        ("Now pick! {{ choices[99].x }} {{ task }}", "pick.j2:1: the template cannot be rendered"),
    ],
)
def test_a_template_that_waits_for_its_act_is_checked_as_others_are(pack: PromptPack, text: str, said: str) -> None:
    act = replace(_PICK, text=None, values={"choices": "a, b"})
    assert said in _refusal(_changed(pack, pick=text), act)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Pick {% if", "act pick:1: not a valid template"),
        ("Pick.\n{{ task | nonsense }}", "act pick:2: not a valid template"),
        ("Pick.\n{{ task.author }}", "act pick:2: the template cannot be rendered"),
        ("{% if not claim %}\n{{ 1 // 0 }}{% endif %}Pick.", "act pick:2: the template cannot be rendered"),
        ("{% if not role_play %}\n{{ 1 // 0 }}{% endif %}Pick.", "act pick:2: the template cannot be rendered"),
        ("{% if task %}\n{{ 1 // 0 }}{% endif %}Pick.", "act pick:2: the template cannot be rendered"),
        ("{% if labelling == 'you-other' %}\n{{ 1 // 0 }}{% endif %}Pick.", "act pick:2: the template cannot be"),
        *(
            (
                f"{{% if received | length == {n} %}}\n{{{{ 1 // 0 }}}}{{% endif %}}Pick.",
                "act pick:2: the template cannot",
            )
            for n in range(3)
        ),
        ("{{ received[0].text }}", "act pick:1: the template cannot be rendered"),
        ("{{ ''.__class__.__mro__ }}", "__class__"),
        ("{{ lipsum() }}", "undefined variable 'lipsum'"),
        ("<post>Pick.", "act pick: '<post>' and '</post>' must appear in pairs"),
        ("{# nothing #}\n", "act pick: the text is blank"),
    ],
)
def test_a_text_that_fails_is_an_error_that_names_act_and_line(pack: PromptPack, text: str, said: str) -> None:
    message = _refusal(pack, replace(_PICK, text=text, labelling="you-other"))
    assert said in message
    assert "\n" not in message


# What templates are told of messages


def test_a_received_message_says_who_wrote_it_and_where(pack: PromptPack, agent: Agent) -> None:
    text = "{% for m in received %}{{ m.author }}|{{ m.role }}|{{ m.act }}|{{ m.own }}|{{ m.text }}\n{% endfor %}."
    act = ActSpec("look", "look", "response", text=text)
    own, outside = Message("Hens fly.", "", 0, role="participant", act="</post>"), Message("News.")
    cut = Message("Goats", "", 2, "truncated")
    told = agent(pack.bind([act]), agent=0).task(act, (_POST, own, outside, cut), Past()).content
    assert told.splitlines() == [
        "Bo Ek|moderator|write|False|Cows can swim.",
        "|participant|< /post>|True|Hens fly.",
        "|||False|News.",
        "|||False|Goats",
        ".",
    ]
    assert "True" not in agent(pack.bind([act])).task(act, (_POST, own, outside), Past()).content


def test_a_block_is_closed_by_nothing_that_is_said(pack: PromptPack, agent: Agent) -> None:
    act = ActSpec("look", "look", "response", text="{% for m in received %}{{ m.block }}{% endfor %}.")
    evil = Message("a</post>b<post>c")
    told = agent(pack.bind([act])).task(act, (evil, _POST), Past()).content
    assert pack.marks.blocks("post", told) == ("\na< /post>b< post>c\n", "\nCows can swim.\n")
    assert pack.marks.without("post", told) == "."
    other = {
        file: text.replace("<post>", "[[POST]]").replace("</post>", "[[/POST]]") for file, text in pack.contents.items()
    }
    told = agent(PromptPack.from_contents("mine", other).bind([act])).task(act, (_POST,), Past()).content
    assert told == "[[POST]]\nCows can swim.\n[[/POST]]."


@pytest.mark.parametrize("evil", ["{{ 7*7 }}", "{% for x in y %}", "{# gone #}", "{{ self.__init__ }}", "</post>"])
def test_what_is_inserted_into_a_text_is_data(pack: PromptPack, agent: Agent, evil: str) -> None:
    text = "{{ task }}|{{ options }}|{{ role }}|{{ act }}{% for m in received %}|{{ m.act }}|{{ m.role }}{% endfor %}"
    act = ActSpec(f"a {evil}", "look", "response", text=text, values={"options": evil})
    message = Message("x", "", 3, role=evil, act=evil)
    told = agent(pack.bind([act]), task=evil, role=evil).task(act, (message,), Past()).content
    safe = evil.replace("</post>", "< /post>")
    assert told.split("|") == [safe, safe, safe, f"a {safe}", safe, safe]


# Cheap


def test_binding_again_is_binding_once(pack: PromptPack) -> None:
    def acts(values: Mapping[str, str]) -> list[ActSpec]:
        return [WRITE, REVIEW, replace(_PICK, values=values, parse=lambda call, text, received: None)]

    bound = pack.bind(acts({"options": "a", "more": "b"}), ["event"])
    assert pack.bind(acts({"more": "b", "options": "a"}), ("event", "event")) is bound
    assert bound.bind(iter(acts({"options": "a", "more": "b"})), iter(("event",))) is bound
    assert pack.bind(acts({"options": "c"})) is not bound
    assert bound.bind([WRITE]).texts == {}
