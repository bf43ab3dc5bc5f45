"""How much text a template may make."""

from __future__ import annotations

from pathlib import Path
from time import thread_time

import pytest

from opinionsim.errors import SpecError
from opinionsim.prompts import load_pack
from opinionsim.prompts._templates import LONGEST, Library, render
from opinionsim.schedules import WRITE

LONG = "{% set b = 'x' * 900000 %}"


def rendered(text: str) -> str:
    library = Library.of("mine", {"write.j2": text}, str)
    return render("mine", library.templates["write"], {})


@pytest.mark.parametrize(
    "text",
    [
        '{{ "x" * 3000000000 }}',
        '{{ 3000000000 * "x" }}',
        "{{ [1] * 3000000000 }}",
        '{{ "%3000000000d" | format(1) }}',
        '{{ "%*d" | format(3000000000, 1) }}',
        '{{ "%3000000000d" % 1 }}',
        '{{ "{:3000000000}".format(1) }}',
        '{{ "{:{w}}".format(1, w=3000000000) }}',
        '{{ "x".ljust(3000000000) }}',
        '{{ "x" | center(3000000000) }}',
        '{{ "x" | indent(3000000000, true) }}',
        '{{ {"a": 1} | tojson(indent=3000000000) }}',
        "{{ 10 ** (10 ** 10) }}",
        LONG + '{{ b | replace("x", b) }}',
        LONG + '{{ b.replace("x", b) }}',
        LONG + "{{ ([b] * 90000) | join }}",
        LONG + "{{ b.join([1, 2, 3] | map('string') | list) }}",
        LONG + "{% for i in range(90000) %}{{ b }}{% endfor %}",
        LONG + "{% set c %}{% for i in range(90000) %}{{ b }}{% endfor %}{% endset %}",
        LONG + "{% macro m() %}{% for i in range(90000) %}{{ b }}{% endfor %}{% endmacro %}{{ m() }}",
        "{% set n = namespace(x='x') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
        "{% set n = namespace(x='x') %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
        "{% set n = namespace(x=['x']) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}{% endfor %}",
    ],
)
def test_more_than_the_longest_is_refused_before_it_is_made(text: str) -> None:
    with pytest.raises(SpecError, match=r"^mine/write.j2.*a template may make 1,000,000 characters at most$"):
        rendered(text)


@pytest.mark.parametrize(
    "text",
    [
        "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}",
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
        LONG + "{% for i in range(90000) %}{% set c = b | upper %}{% endfor %}",
    ],
)
def test_more_steps_than_a_prompt_can_need_are_refused_within_seconds(text: str) -> None:
    begun = thread_time()
    with pytest.raises(SpecError, match=r"^mine/write.j2:1: .*a template may take 1,000,000 steps at most"):
        rendered(text)
    assert thread_time() - begun < 10


def test_loops_know_their_length_and_their_place() -> None:
    each = "{% for x in 'ab' %}{{ loop.index }}/{{ loop.length }}{{ ', ' if not loop.last }}{% endfor %}"
    assert rendered(each) == "1/2, 2/2"


def test_a_loop_has_an_end() -> None:
    with pytest.raises(SpecError, match=r"^mine/write.j2:1: .*Range too big"):
        rendered("{% for i in range(10**9) %}{% endfor %}")


def test_the_longest_text_is_made() -> None:
    assert rendered(f"{{{{ 'x' * {LONGEST} }}}}") == "x" * LONGEST


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("{{ 'a' ~ 1 ~ none }}", "a1None"),
        ("{{ '%d' | format(5000000000) }}", "5000000000"),
        ("{{ '%s of %5.2f' % ('a', 1.5) }}", "a of  1.50"),
        ("{{ '{:>4}'.format(7) }}.", "7."),
        ("{{ 7 % 3 }}{{ 2 ** 10 }}{{ 2.5 * 2 }}{{ 'ab' * 2 }}{{ [1] + [2] }}{{ 'a' + 'b' }}", "110245.0abab[1, 2]ab"),
        ("{{ [1, 2] | join(', ') }} {{ 'ab'.replace('a', 'c') }} {{ 'x' | center(3) }}.", "1, 2 cb  x ."),
        ("{{ [{'a': 1}] | map(attribute='a') | list }} {{ 3 | ordinal }}", "[1] 3rd"),
        ("{{ 20000000 | abs }}", "20000000"),
    ],
)
def test_other_templates_are_left_alone(text: str, made: str) -> None:
    assert rendered(text) == made


def test_the_pack_is_named_when_a_run_uses_it(folder: Path) -> None:
    (folder / "write.j2").write_text('{{ "x" * 3000000000 }}\nYour post:\n', encoding="utf-8")
    with pytest.raises(SpecError, match=r"mine.*write.j2:1: .*1,000,000 characters"):
        load_pack(folder).bind([WRITE])
