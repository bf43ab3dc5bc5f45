"""Documents: what is read, what is refused, and where an error is said to be."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from hypothesis import given, strategies as st
from pydantic import Field

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import (
    Document,
    DocumentModel,
    fields_at,
    parse_value,
    read_document,
    spell_path,
    validate,
)


class _Cat(DocumentModel):
    kind: Literal["cat"]
    lives: int = Field(9, ge=1)


class _Dog(DocumentModel):
    kind: Literal["dog"]
    breed: Literal["collie", "poodle"]
    tricks: tuple[str, ...] = ()


class _Home(DocumentModel):
    name: str
    weight: float = 1.0
    pets: tuple[Annotated[_Cat | _Dog, Field(discriminator="kind")], ...] = ()
    food: str | dict[str, int] = "meat"
    notes: dict[str, Any] = Field(default_factory=dict)


def _write(folder: Path, text: str | bytes, name: str = "home.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def _refusal(path: Path) -> str:
    with pytest.raises(SpecError) as caught:
        read_document(path)
    return str(caught.value).replace(f"{path}", "FILE")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "FILE: is empty; expected a mapping of fields"),
        ("# only a comment\n", "FILE: is empty; expected a mapping of fields"),
        ("- a\n- b\n", "FILE:1: contains a list; expected a mapping of fields"),
        ("words", "FILE:1: contains the single value 'words'; expected a mapping of fields"),
        ("a: 1\nb: 2\na: 3\n", "FILE:3: duplicate key 'a', first given on line 1"),
        ("a:\n  b: 1\n  b: 2\n", "FILE:3: duplicate key 'b', first given on line 2"),
        ("1: x\n'1': y\n", "FILE:2: duplicate key '1', first given on line 1"),
        ("? [a]\n: 1\n", "FILE:1: a key must be a word or a number"),
        ("~: 1\n", "FILE:1: a key must be a word or a number"),
        ("a: &x [*x]\n", "FILE:1: an alias refers to a value that contains it"),
        (b"\xff\xfe\x00a", "FILE: not a text file; expected UTF-8"),
        (b"a: \x00", "FILE:1: contains a control character; expected a text file"),
        ("a: " + "[" * 5000, "FILE: values are nested too deeply"),
        ("a: " + "9" * 5000, "FILE: contains a number with too many digits"),
        ("a: !!python/object/apply:os.getcwd []\n", "FILE:1: the tag !!python/object/apply:os.getcwd is not allowed"),
        ("a: !local x\n", "FILE:1: the tag !local is not allowed"),
        ("a: 1\nb: [1,\n", "FILE:3: not valid YAML"),
        ("a: 1\n\tb: 2\n", "FILE:2: not valid YAML"),
        ("a: 1\n---\nb: 2\n", "FILE:2: not valid YAML"),
    ],
)
def test_files_that_are_no_document(tmp_path: Path, text: str | bytes, message: str) -> None:
    found = _refusal(_write(tmp_path, text))
    assert found.startswith(message)
    assert "\n" not in found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "FILE: not valid JSON: duplicate key 'a'"),
        ('{"a": NaN}', "FILE: not valid JSON: NaN is not a number"),
        ('{"a":\n 1,}', "FILE:2: not valid JSON"),
        ("[1]", "FILE:1: contains a list"),
        ("", "FILE: is empty"),
        ('{"a": ' + "[" * 100_000, "FILE: values are nested too deeply"),
    ],
)
def test_json_files_that_are_no_document(tmp_path: Path, text: str, message: str) -> None:
    assert _refusal(_write(tmp_path, text, "home.json")).startswith(message)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    assert _refusal(tmp_path / "none.yaml") == "FILE: no such file"
    assert _refusal(tmp_path) == "FILE: is a folder; expected a file"
    if Path("/dev/zero").exists():
        assert _refusal(Path("/dev/zero")) == "FILE: is longer than 256 MiB, the limit for text files"


def test_aliases_cannot_make_a_small_file_enormous(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "aliases expand to more than two million values" in _refusal(_write(tmp_path, "\n".join(lines)))


def test_scalars_are_those_of_yaml_1_2(tmp_path: Path) -> None:
    text = "a: on\nb: no\nc: 2020-01-01\nd: 1e-3\ne: 010\nf:\ng: -.5\nh: '3'\ni: true\nj: 1:30\n"
    assert read_document(_write(tmp_path, text)).value == {
        "a": "on",
        "b": "no",
        "c": "2020-01-01",
        "d": 0.001,
        "e": 10,
        "f": None,
        "g": -0.5,
        "h": "3",
        "i": True,
        "j": "1:30",
    }


def test_merge_keys_and_a_byte_order_mark_are_understood(tmp_path: Path) -> None:
    text = "\ufeffbase: &base {x: 1, y: 2}\nother:\n  <<: *base\n  y: 3\n"
    assert read_document(_write(tmp_path, text)).value["other"] == {"x": 1, "y": 3}


_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(string.ascii_letters + " :#-'\"{}[],&*!|>%@", max_size=12)
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(string.ascii_letters, min_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(value=st.dictionaries(st.text(string.ascii_lowercase, min_size=1, max_size=5), _VALUES, min_size=1, max_size=4))
def test_yaml_and_json_spell_the_same_values(tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any]) -> None:
    folder = tmp_path_factory.mktemp("spelling")
    as_json = json.dumps(value)
    assert read_document(_write(folder, as_json, "home.json")).value == value
    assert read_document(_write(folder, yaml.safe_dump(value))).value == value


def test_values_given_on_the_command_line() -> None:
    assert parse_value("[a, 1, 2.5, {b: null}]") == ["a", 1, 2.5, {"b": None}]
    assert parse_value("") is None
    with pytest.raises(SpecError, match=r"^--set a:1: not valid YAML"):
        parse_value("[", "--set a")


HOME = """\
name: burrow
weight: 2
pets:
  - kind: cat
    lives: 7
  - kind: dog
    breed: collie
"""


def test_a_valid_document_becomes_a_model(tmp_path: Path) -> None:
    home = validate(_Home, read_document(_write(tmp_path, HOME)))
    assert home.weight == 2.0
    assert isinstance(home.pets[0], _Cat)
    assert home.pets[0].lives == 7
    assert isinstance(home.pets[1], _Dog)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lives: 7", "lives: 0", "FILE:5: pets[0].lives: must be at least 1; got 0"),
        ("lives: 7", "lives: '7'", "FILE:5: pets[0].lives: must be a whole number; got '7'"),
        ("lives: 7", "lives: true", "FILE:5: pets[0].lives: must be a whole number; got true"),
        ("lives: 7", "lifes: 7", "FILE:5: pets[0].lifes: unknown field (did you mean lives?); valid: kind, lives"),
        ("breed: collie", "breed: colly", "(did you mean collie?); valid: collie, poodle"),
        ("breed: collie", "x: 1", "FILE:6: pets[1].breed: is required but missing"),
        ("kind: dog", "kind: cow", "FILE:6: pets[1].kind: unknown value 'cow'; valid: cat, dog"),
        ("  - kind: dog\n", "  - size: 3\n", "FILE:6: pets[1].kind: is required but missing; valid: cat, dog"),
        ("weight: 2", "weight: .inf", "FILE:2: weight: must be a finite number; got inf"),
        ("weight: 2", "notes: {a: [1, .nan]}", "FILE:2: notes.a[1]: must be a finite number; got nan"),
        ("weight: 2", "food: 3", "FILE:2: food: must be text or a mapping; got 3"),
        ("weight: 2", "food: {a: b}", "FILE:2: food.a: must be a whole number; got 'b'"),
        ("name: burrow\n", "", "FILE:1: name: is required but missing"),
        ("weight: 2", "pets_: 2", "valid: name, weight, pets, food, notes"),
    ],
)
def test_each_problem_is_placed_and_says_what_is_valid(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = _write(tmp_path, HOME.replace(old, new))
    with pytest.raises(SpecError) as caught:
        validate(_Home, read_document(path))
    found = str(caught.value).replace(str(path), "FILE")
    assert message in found
    assert "pydantic" not in found.lower()
    assert "http" not in found


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    path = _write(tmp_path, HOME.replace("lives: 7", "lives: 0").replace("weight: 2", "weight: heavy"))
    with pytest.raises(SpecError) as caught:
        validate(_Home, read_document(path))
    assert sorted(line.split(": ")[1] for line in str(caught.value).splitlines()) == ["pets[0].lives", "weight"]


def test_a_mapping_from_python_is_checked_too() -> None:
    with pytest.raises(SpecError, match=r"^burrow: name: is required but missing$"):
        validate(_Home, {}, "burrow")
    with pytest.raises(SpecError, match="other than plain values"):
        validate(_Home, {"name": object()})


def test_places_of_sections_and_of_replaced_values(tmp_path: Path) -> None:
    path = _write(tmp_path, "top:\n  inner:\n    x: 1\n  y: 2\n")
    document = read_document(path)
    assert document.line(("top", "inner", "x")) == 3
    assert document.line(("top", "inner", "missing")) == 2
    assert document.section("top").line(("y",)) == 4
    changed = document.with_value({"top": {"inner": {"x": 5}}}, (("top", "inner"), "--set top.inner"))
    assert changed.locate(("top", "inner", "x")) == "--set top.inner"
    assert changed.section("top").locate(("inner", "x")) == "--set top.inner"
    assert changed.locate(("top", "y")) == f"{path}:4"
    with pytest.raises(SpecError, match=r"top\.y: must be a mapping of fields; got 2"):
        document.section("top", "y")


def test_json_documents_have_lines(tmp_path: Path) -> None:
    path = _write(tmp_path, '{\n "name": "burrow",\n "weight": "x"\n}', "home.json")
    with pytest.raises(SpecError, match=":3: weight: must be a number; got 'x'"):
        validate(_Home, read_document(path))


def test_fields_follow_what_the_document_selects() -> None:
    value = {"pets": [{"kind": "dog"}]}
    assert fields_at(_Home, ("pets", 0), value) == ["kind", "breed", "tricks"]
    assert fields_at(_Home, ("notes", "anything"), value) == []


def test_key_paths_read_as_people_write_them() -> None:
    assert spell_path(("a", "b", 0, "c")) == "a.b[0].c"
    assert str(Document({}, name="spec").error(("a",), "is wrong")) == "spec: a: is wrong"
