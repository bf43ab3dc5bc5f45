"""Personas, and populations drawn from them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim.errors import SpecError
from opinionsim.foundation.streams import stream
from opinionsim.opinions import OpinionScale
from opinionsim.personas import (
    BARE,
    Persona,
    PersonaSet,
    Population,
    draw_population,
    load_personas,
    parse_personas,
)

GOOD = """\
name: village
source: A walk.
licence: CC0
card: Three friends.
personas:
  - name: Ann
    opinion: -2
    attributes:
      age: 37
      job: baker
    background: Keeps bees.
  - name: Bob
    opinion: 0
  - name: Cy
    opinion: 2
"""
FIVE = OpinionScale()


def _file(folder: Path, text: str) -> Path:
    path = folder / "village.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def _crowd(size: int, opinions: tuple[int | None, ...] = (None,)) -> PersonaSet:
    return PersonaSet("crowd", tuple(Persona(f"p{i}", opinions[i % len(opinions)]) for i in range(size)))


def _drawn(personas: PersonaSet, size: int, seed: int = 1, replicate: int = 0, **options: object) -> Population:
    return draw_population(
        personas,
        size,
        scale=options.pop("scale", FIVE),  # type: ignore[arg-type]
        replicate=replicate,
        opinions_rng=stream(seed, "initial opinions", replicate),
        assignment_rng=stream(seed, "assignment", replicate),
        **options,  # type: ignore[arg-type]
    )


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    village = load_personas(_file(tmp_path, GOOD))
    assert (village.name, village.source, village.licence, village.card) == (
        "village",
        "A walk.",
        "CC0",
        "Three friends.",
    )
    ann, bob, cy = village.personas
    assert ann == Persona("Ann", -2, {"age": "37", "job": "baker"}, "Keeps bees.")
    assert list(ann.attributes) == ["age", "job"]
    assert (bob.opinion, bob.attributes, bob.background, cy.opinion) == (0, {}, "", 2)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("opinion: -2", "belief: -2", 7, r"personas\[0\]\.belief: .*opinion"),
        ("opinion: -2", "opinion: 0.5", 7, r"personas\[0\]\.opinion: .*0\.5"),
        ("opinion: -2", "opinion: true", 7, r"personas\[0\]\.opinion: must be a whole number; got true"),
        ("opinion: -2", "opinion: '2'", 7, r"personas\[0\]\.opinion: must be a whole number; got '2'"),
        ("opinion: -2", "opinion: agree", 7, r"personas\[0\]\.opinion: .*agree"),
        ("age: 37", "age: [37]", 9, r"personas\[0\]\.attributes\.age: "),
        ("  - name: Bob\n", "  - name: Ann\n", 12, r"personas\[1\]\.name: duplicate 'Ann'; names must be distinct"),
        ("  - name: Bob\n", "  - name: ''\n", 12, r"personas\[1\]\.name: "),
        ("  - name: Bob\n    opinion: 0\n", "  - opinion: 1\n", 12, r"personas\[1\].*name"),
        ("  - name: Bob\n    opinion: 0\n", "  - name: Bob\n", 12, r"personas\[1\]: has no opinion, but 'Ann' has one"),
        ("  - name: Bob\n    opinion: 0\n", "  - Bob\n", 12, r"personas\[1\]: "),
        ("licence: CC0", "license: CC0", 3, r"license: .*licence"),
    ],
)
def test_a_mistake_is_reported_with_file_line_and_field(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    assert GOOD.count(old) == 1
    path = _file(tmp_path, GOOD.replace(old, new))
    with pytest.raises(SpecError, match=rf"village\.yaml:{line}: {message}") as caught:
        load_personas(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "is empty"), ("- Ann\n", ":1: contains a list"), ("name: x\npersonas: []\n", ":2: personas: .*at least 1")],
)
def test_a_file_that_holds_no_personas(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load_personas(_file(tmp_path, text))


def test_a_mapping_is_called_what_the_caller_calls_it() -> None:
    with pytest.raises(SpecError, match=r"^population\.personas: personas\[1\]\.name: duplicate 'Ann'"):
        parse_personas({"name": "x", "personas": [{"name": "Ann"}, {"name": "Ann"}]}, "population.personas")


def test_the_personas_of_the_founding_study(checkout: Path) -> None:
    """Ten persons, two an opinion, and a card that says that person and opinion are confounded (A4)."""
    study = load_personas(checkout / "personas" / "chuang2024.yaml")
    assert len(study.personas) == 10
    assert Counter(persona.opinion for persona in study.personas) == dict.fromkeys(FIVE.points, 2)
    assert all(len(persona.attributes) == 6 for persona in study.personas)
    assert "confounded" in study.card


def test_a_population_needs_an_opinion_for_every_persona() -> None:
    with pytest.raises(SpecError, match="2 personas and 1 opinions"):
        Population((BARE, BARE), (1,))
    with pytest.raises(SpecError, match="at least one"):
        Population((), ())


def test_a_bare_population_plays_nobody_and_holds_nothing() -> None:
    population = Population.bare(3)
    assert len(population) == 3
    assert population.personas == (BARE,) * 3
    assert population.opinions == (None,) * 3


@pytest.mark.parametrize(
    ("initial", "size", "counts"),
    [
        ("uniform", 10, {-2: 2, -1: 2, 0: 2, 1: 2, 2: 2}),
        ("skewed-positive", 10, {2: 8, -2: 2}),
        ("skewed-negative", 10, {-2: 8, 2: 2}),
        ("skewed-positive", 4, {2: 4}),
        ("skewed-negative", 13, {-2: 11, 2: 2}),
        ("all-positive", 7, {2: 7}),
        ("all-negative", 7, {-2: 7}),
        ({-1: 3, 2: 4}, 7, {-1: 3, 2: 4}),
        ({"-1": 3, "2.0": 4}, 7, {-1: 3, 2: 4}),
        ({-1: 0, 0: 1}, 1, {0: 1}),
    ],
)
@pytest.mark.parametrize("assignment", ["fixed", "random", "latin-square"])
def test_initial_distributions(initial: object, size: int, counts: dict[int, int], assignment: str) -> None:
    population = _drawn(_crowd(13), size, initial_opinions=initial, assignment=assignment)
    assert Counter(population.opinions) == counts


@given(st.integers(1, 40), st.integers(0, 50), st.sampled_from([2, 3, 4, 5, 7]))
def test_uniform_differs_by_one_at_most_and_sums_to_n(size: int, seed: int, points: int) -> None:
    scale = OpinionScale.of_size(points)
    counts = Counter(_drawn(_crowd(5), size, seed, scale=scale).opinions)
    shares = [counts[point] for point in scale.points]
    assert sum(shares) == size
    assert sorted(shares) == [size // points] * (points - size % points) + [size // points + 1] * (size % points)


def test_the_remainder_of_a_uniform_start_is_drawn() -> None:
    extras = Counter(
        point
        for seed in range(200)
        for point, count in Counter(_drawn(_crowd(6), 6, seed).opinions).items()
        if count == 2
    )
    # 200 draws over 5 points: each is Binomial(200, 1/5), standard deviation 5.7.
    assert sum(extras.values()) == 200
    assert all(abs(extras[point] - 40) < 5 * 5.7 for point in FIVE.points)


def test_ends_are_those_of_the_scale() -> None:
    scale = OpinionScale((1, 2, 3))
    assert set(_drawn(_crowd(5), 5, scale=scale, initial_opinions="skewed-negative").opinions) == {1, 3}


def test_opinions_as_the_file_pairs_them() -> None:
    crowd = _crowd(5, (2, -1))
    assert _drawn(crowd, 5, initial_opinions="personas").opinions == (2, -1, 2, -1, 2)
    shuffled = _drawn(crowd, 5, initial_opinions="personas", assignment="random")
    assert Counter(shuffled.opinions) == {2: 3, -1: 2}


def test_fixed_gives_everybody_their_own_opinion_while_it_is_to_be_had() -> None:
    crowd = _crowd(6, (2, 2, None, -2, 1, 0))
    population = _drawn(crowd, 6, initial_opinions={2: 1, -2: 2, -1: 1, 1: 1, 0: 1})
    # p1 finds its 2 taken and p2 has none: they take what is left, in order of the scale.
    assert population.opinions == (2, -2, -1, -2, 1, 0)
    assert [persona.name for persona in population.personas] == [f"p{i}" for i in range(6)]


def test_fixed_is_the_same_in_every_replicate() -> None:
    crowd = _crowd(10, FIVE.points)
    populations = [_drawn(crowd, 10, replicate=replicate) for replicate in range(5)]
    assert all(population == populations[0] for population in populations)
    assert populations[0].opinions == FIVE.points * 2


def test_random_assigns_every_opinion_to_everybody_equally_often() -> None:
    crowd = _crowd(5, FIVE.points)
    seen = Counter(
        (agent, opinion)
        for replicate in range(500)
        for agent, opinion in enumerate(_drawn(crowd, 5, replicate=replicate, assignment="random").opinions)
    )
    # Chi-square over 25 cells of expectation 100 with 16 degrees of freedom: 99.9 % quantile 39.3.
    assert sum((seen[agent, point] - 100) ** 2 / 100 for agent in range(5) for point in FIVE.points) < 39.3


@given(st.integers(1, 12), st.integers(0, 100))
def test_a_latin_square_gives_everybody_every_place_once_over_n_replicates(size: int, start: int) -> None:
    """With counts of one at each of N points, places are opinions."""
    scale = OpinionScale(tuple(range(max(size, 2))), tuple(map(str, range(max(size, 2)))))
    counts = dict.fromkeys(range(size), 1)
    rows = [
        _drawn(
            _crowd(size),
            size,
            replicate=start + r,
            scale=scale,
            initial_opinions=counts,
            assignment="latin-square",
        ).opinions
        for r in range(size)
    ]
    assert all(sorted(row) == list(range(size)) for row in rows)
    assert all(sorted(column) == list(range(size)) for column in zip(*rows, strict=True))


def test_a_latin_square_breaks_the_confound_of_person_and_opinion() -> None:
    crowd = _crowd(10, FIVE.points)
    held = Counter(
        (agent, opinion)
        for replicate in range(10)
        for agent, opinion in enumerate(_drawn(crowd, 10, replicate=replicate, assignment="latin-square").opinions)
    )
    assert set(held.values()) == {2}
    assert len(held) == 50


def test_a_smaller_population_is_a_draw_without_replacement_in_file_order() -> None:
    crowd = _crowd(10)
    drawn = {tuple(p.name for p in _drawn(crowd, 4, seed).personas) for seed in range(50)}
    assert len(drawn) > 25
    for names in drawn:
        assert len(set(names)) == 4
        assert list(names) == sorted(names)


def test_everybody_is_equally_likely_to_be_drawn() -> None:
    seen = Counter(p.name for seed in range(1000) for p in _drawn(_crowd(10), 3, seed).personas)
    # Binomial(1000, 0.3): standard deviation 14.5.
    assert all(abs(seen[f"p{i}"] - 300) < 5 * 14.5 for i in range(10))


def test_a_larger_population_repeats_the_file_and_draws_the_remainder() -> None:
    population = _drawn(_crowd(4), 11)
    names = [persona.name for persona in population.personas]
    assert names[:8] == ["p0", "p1", "p2", "p3"] * 2
    assert len(set(names[8:])) == 3
    assert names[8:] == sorted(names[8:])


def test_equal_streams_give_equal_populations_and_others_do_not() -> None:
    options = {"initial_opinions": "uniform", "assignment": "random"}
    assert _drawn(_crowd(20), 12, 5, 3, **options) == _drawn(_crowd(20), 12, 5, 3, **options)
    assert _drawn(_crowd(20), 12, 5, 3, **options) != _drawn(_crowd(20), 12, 5, 4, **options)
    assert _drawn(_crowd(20), 12, 5, 3, **options) != _drawn(_crowd(20), 12, 6, 3, **options)


def test_the_distribution_and_who_gets_what_are_drawn_from_streams_of_their_own() -> None:
    def population(opinions_seed: int, assignment_seed: int) -> Population:
        return draw_population(
            _crowd(6),
            6,
            scale=FIVE,
            assignment="random",
            opinions_rng=np.random.default_rng(opinions_seed),
            assignment_rng=np.random.default_rng(assignment_seed),
        )

    for seed in range(10):
        assert Counter(population(3, seed).opinions) == Counter(population(3, 0).opinions)


@pytest.mark.parametrize(
    ("size", "options", "message"),
    [
        (0, {}, r"population\.size must be at least 1; got 0"),
        (-1, {}, r"population\.size must be at least 1; got -1"),
        (6, {"initial_opinions": "bimodal"}, r"initial_opinions: unknown 'bimodal'; valid: uniform, skewed-positive"),
        (6, {"assignment": "square"}, r"assignment: unknown 'square'; valid: fixed, random, latin-square"),
        (6, {"initial_opinions": {1: 5}}, r"sum to population\.size = 6; got \{1: 5\}, which sums to 5"),
        (6, {"initial_opinions": {1: 7, 2: -1}}, "must be non-negative"),
        (6, {"initial_opinions": {1: 3.5, 2: 2.5}}, r"must be whole numbers; got 3\.5"),
        (6, {"initial_opinions": {1: "six"}}, "must be whole numbers; got 'six'"),
        (6, {"initial_opinions": {3: 6}}, r"opinion 3.* is not on the scale; valid values are -2, -1, 0, 1, 2"),
        (6, {"initial_opinions": {"agree": 6}}, "opinion 'agree' is not on the scale"),
        (6, {"initial_opinions": {None: 6}}, "opinion None is not on the scale"),
        (6, {"initial_opinions": "personas"}, r"'personas' needs an opinion for every persona; 'p0' has none"),
    ],
)
def test_impossible_populations(size: int, options: dict, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        _drawn(_crowd(6), size, **options)


def test_an_opinion_of_the_file_must_be_on_the_scale() -> None:
    with pytest.raises(SpecError, match="opinion 2 is not on the scale; valid values are -1, 0, 1"):
        _drawn(_crowd(3, (2,)), 3, scale=OpinionScale.of_size(3), initial_opinions="personas")


@pytest.mark.parametrize(
    ("personas", "message"),
    [
        ([{"name": " "}], r"personas\[0\]\.name: must not be blank"),
        ([{"name": "A\nB"}], r"personas\[0\]\.name: must be one line"),
        ([{"name": "A\x1b"}], r"personas\[0\]\.name: must be one line"),
        ([{"name": "A"}, {"name": "A "}], r"personas\[1\]\.name: duplicate 'A'"),
        ([{"name": "A", "attributes": {" ": "x"}}], r"personas\[0\]\.attributes: the name of an attribute must"),
        ([{"name": "A", "attributes": {"a\u2028b": "x"}}], r"personas\[0\]\.attributes: the name of an attribute must"),
        ([{"name": "A", "attributes": {"a": "x", "a ": "y"}}], r"personas\[0\]\.attributes: duplicate 'a'"),
        ([{"name": "A", "attributes": {"a": "x\ny"}}], r"personas\[0\]\.attributes\.a: must be one line"),
    ],
)
def test_names_and_attributes_are_one_line_each(personas: list[dict[str, object]], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_personas({"name": "x", "personas": personas})


def test_white_space_around_a_name_does_not_count_and_a_background_may_have_lines() -> None:
    written = [{"name": " A ", "attributes": {" a": "x"}, "background": "One.\nTwo."}]
    (persona,) = parse_personas({"name": "x", "personas": written}).personas
    assert persona == Persona("A", None, {"a": "x"}, "One.\nTwo.")


def _table(folder: Path, text: str) -> Path:
    path = folder / "village.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    text = '\ufeffname,opinion,age,job,background\nAnn,-2,37,"baker, once","Keeps\nbees."\nBob,0, ,clerk,\n'
    village = load_personas(_table(tmp_path, text))
    assert village.name == "village"
    assert village.personas == (
        Persona("Ann", -2, {"age": "37", "job": "baker, once"}, "Keeps\nbees."),
        Persona("Bob", 0, {"job": "clerk"}),
    )


def test_a_table_without_names_numbers_its_persons(tmp_path: Path) -> None:
    village = load_personas(_table(tmp_path, "age,job\n37,baker\n,None\n"))
    first, second = village.personas
    assert first == Persona("Person 1", None, {"age": "37", "job": "baker"})
    assert second == Persona("Person 2", None, {"job": "None"})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty; expected a table with a header"),
        ("name\n", "needs a header and at least one row"),
        ("name,age,age\nAnn,1,2\n", r"village.csv:1: columns must have distinct names, not blank; got 'age'"),
        ("name,\nAnn,1\n", r"village.csv:1: columns must have distinct names, not blank; got ''"),
        ("name,age\nAnn,1\nBob\n", r"village.csv:3: must have 2 cells, as line 1 has; got 1"),
        ("name,opinion\nAnn,1\nBob,very\n", "village.csv:3: 'opinion' is 'very', which is not a number"),
        ("name,opinion\nAnn,1\nBob,0.5\n", r"village.csv:3: personas\[1\].opinion: must be a whole number; got 0.5"),
        ("name,age\nAnn,1\nAnn,2\n", r"village.csv:3: personas\[1\].name: duplicate 'Ann'"),
        ("name,age\n,1\n", r"village.csv:2: personas\[0\].name: must not be blank"),
        ('name,age\nAnn,"1\n2"\n', r"village.csv:2: personas\[0\].attributes.age: must be one line"),
        ('name,age\nAnn,"1"2\n', "cannot be read"),
    ],
)
def test_a_table_that_is_none_is_refused_by_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        load_personas(_table(tmp_path, text))


def test_a_table_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"gone.csv: no such file"):
        load_personas(tmp_path / "gone.csv")
    (tmp_path / "koi8.csv").write_bytes(b"name\n\xc3\xe9\xfe\xf1\n")
    with pytest.raises(SpecError, match=r"koi8.csv: not a text file in UTF-8, UTF-16 or Windows-1252"):
        load_personas(tmp_path / "koi8.csv")
