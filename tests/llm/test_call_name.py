"""Names of calls: texts and fields, both ways, and the one place that spells them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import opinionsim
from opinionsim.llm import REFLECT, SELECT, CallName

PACKAGE = Path(opinionsim.__file__).parent
ID = "0a1b2c3d4e5f"

NAMES = {
    "reply": CallName("reply"),
    "reply.2": CallName("reply", 2),
    "reflect": CallName("reflect"),
    "select": CallName("select"),
    "source": CallName("source"),
    "judge": CallName("judge"),
    "judge.3": CallName("judge", 3),
    "judge.0a1b2c3d": CallName("judge", instrument="0a1b2c3d"),
    "judge.12345678": CallName("judge", instrument="12345678"),
    "judge.0a1b2c3d.0": CallName("judge", instrument="0a1b2c3d", about=0),
    "judge.0a1b2c3d.7.2": CallName("judge", 2, "0a1b2c3d", 7),
    "judge.0a1b2c3d.weigh": CallName("judge", instrument="0a1b2c3d", word="weigh"),
    "rating.0a1b2c3d.7": CallName("rating", instrument="0a1b2c3d", about=7),
    "rating.stance": CallName("rating", instrument="stance"),
    "reply.short": CallName("reply", word="short"),
    "reply.1": CallName("reply", word="1"),
    "replying": CallName("own", word="replying"),
    "think twice": CallName("own", word="think twice"),
}


@pytest.mark.parametrize(("text", "name"), NAMES.items(), ids=str)
def test_a_text_and_its_fields_say_the_same(text: str, name: CallName) -> None:
    assert (CallName.of(text), str(name)) == (name, text)


@given(st.lists(st.sampled_from((*NAMES, "", "0", "01", "2", "17", "é", "a\n")) | st.text(max_size=9), max_size=5))
def test_every_text_is_kept_whatever_it_says(pieces: list[str]) -> None:
    text = ".".join(pieces)
    assert str(CallName.of(text)) == text


def test_what_an_instrument_says_has_the_beginning_of_its_id() -> None:
    assert str(CallName.coding("rating", ID, None)) == "rating.0a1b2c3d"
    assert str(CallName.coding("rating", ID, 4)) == "rating.0a1b2c3d.4"


@pytest.mark.parametrize(
    ("asked", "end"),
    [("judge", ""), ("judge.2", ".2"), ("weigh", ".weigh"), ("judge.weigh", ".judge.weigh"), ("own.2", ".own.2")],
)
@pytest.mark.parametrize("about", [None, 0, 12])
def test_a_judge_names_its_questions_as_it_likes_and_stays_a_judge(asked: str, end: str, about: int | None) -> None:
    name = CallName.coding("judge", ID, about, asked)
    assert str(name) == "judge.0a1b2c3d" + ("" if about is None else f".{about}") + end
    read = CallName.of(str(name))
    assert (read.role, read.instrument, read.judge) == ("judge", "0a1b2c3d", "judge.0a1b2c3d")


def test_only_the_model_of_an_instrument_is_asked_in_its_name() -> None:
    assert {text for text, name in NAMES.items() if name.judge} == {
        text for text in NAMES if re.match(r"judge\.[0-9a-f]{8}", text)
    }


def test_replies_and_judgements_are_priced_as_their_act() -> None:
    priced = {text: name.priced_as("review") for text, name in NAMES.items()}
    assert {text for text, kind in priced.items() if kind == "review"} == {
        text for text, name in NAMES.items() if name.role in ("reply", "judge")
    }
    assert (priced[REFLECT], priced[SELECT], priced["think twice"]) == (REFLECT, SELECT, "think twice")


#: What asks under a name, or compares the beginning of one.
_TAKING = {"ask", "EntryKey", "startswith", "removeprefix", "match", "fullmatch"}


def spelled(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines and texts of a module in which a string is the name of a call, or the beginning of one."""
    roles = "reply|reflect|select|judge|rating"
    told = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        beside: list[ast.expr | None] = []
        match node:
            case ast.Constant(value=str(text)) if node not in told and re.match(rf"({roles})\\?\.(?!\s|$|j2$)", text):
                yield node.lineno, text
            case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]) if re.fullmatch(rf"({roles})\.", text):
                yield node.lineno, text
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                beside = [*(node.args if name in _TAKING else ()), *(k.value for k in node.keywords if k.arg == "call")]
            case ast.Compare(left=left, comparators=others):
                sides = [left, *others]
                if any(_called(side) for side in sides):
                    beside = [each for side in sides for each in (side.elts if isinstance(side, ast.Tuple) else [side])]
            case ast.arguments():
                named = [*node.posonlyargs, *node.args][::-1]
                beside = [value for arg, value in zip(named, node.defaults[::-1], strict=False) if arg.arg == "call"]
        for each in beside:
            for value in each.elts if isinstance(each, ast.Tuple) else [each]:
                if isinstance(value, ast.Constant) and re.fullmatch(rf"({roles})\.?", str(value.value)):
                    yield value.lineno, str(value.value)


def _called(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr="call") | ast.Name(id="call") | ast.Subscript(slice=ast.Constant(value="call")):
            return True
    return False


def test_one_module_spells_names_of_calls() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "_call_name.py":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found += [f"{path.relative_to(PACKAGE)}:{line} {text!r}" for line, text in spelled(tree)]
    assert found == []


@pytest.mark.parametrize(
    ("code", "is_one"),
    [
        ("await ask('reply', messages)", True),
        ("ask('weigh', messages)", False),
        ("row.call.startswith('judge')", True),
        ("text.startswith(('reply', 'judge'))", True),
        ("row.call == 'reply'", True),
        ("calls[calls['call'] == 'reflect']", True),
        ("row.call in ('reply', 'select')", True),
        ("call == 'select'", True),
        ("f'judge.{identity}'", True),
        ("name = 'reply.2'", True),
        (r"entries.str.match(r'rating\.\w+')", True),
        ("EntryKey(turn, 'reply', 0)", True),
        ("def prompt(turn, call='reply', attempt=0): ...", True),
        ("store.prompts(run, call='reply')", True),
        ("CallName('reply', 2)", False),
        ("CallName.of(row.call).role == 'judge'", False),
        ("part('selector', name='judge')", False),
        ("frame['reply'] == 'rating'", False),
        ("print('rating. More follows.')", False),
        ("'''reply.2 of a second draw'''", False),
    ],
)
def test_names_are_found_in_code(code: str, is_one: bool) -> None:
    assert bool(list(spelled(ast.parse(code)))) == is_one
