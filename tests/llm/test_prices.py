"""Prices: what a call costs, which name has which price, and what a bad table is told."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from opinionsim.errors import SpecError
from opinionsim.llm import Price, load_prices

SMALL = """\
date: 2026-01-31
currency: EUR
per: 1000
source: {openai: a page}
models:
  openai:one: {input: 2.0, cached_input: 0.5, output: 8}
  openai:one-2025-01-01: {input: 3.0, output: 9.0, date: 2025-06-30}
  ollama:rented: {input: 1.0, output: 1.0}
"""


HALF = "factor: 0.5, date: 2026-01-31, source: a page"


def test_an_entry_of_a_model_replaces_that_of_its_provider(small: Path) -> None:
    small.write_text(f"{SMALL}lanes: {{openai: {{flex: {{{HALF}}}}}, openai:one-2025-01-01: {{}}}}\n")
    table = load_prices(small)
    assert [[*table.prices[name].lanes] for name in table.prices] == [["flex"], [], []]
    assert table.prices["openai:one"].at("flex") == Price(1e-3, 4e-3, 0.25e-3, "2026-01-31")
    assert table.prices["openai:one"].at("now") is table.prices["openai:one"]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "prices.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def test_a_call_costs_its_tokens() -> None:
    price = Price(input=2e-6, output=8e-6, cached_input=0.5e-6)
    assert price.cost(1000, 100) == pytest.approx(1000 * 2e-6 + 100 * 8e-6)
    assert price.cost(1000, 100, 400) == pytest.approx(600 * 2e-6 + 400 * 0.5e-6 + 100 * 8e-6)
    assert price.cost(0, 0) == 0.0
    # No more can have been cached than was sent.
    assert price.cost(10, 0, 50) == pytest.approx(10 * 0.5e-6)


def test_a_table_of_the_user_counts_by_its_own_unit(small: Path) -> None:
    table = load_prices(str(small))
    assert (table.date, table.currency, table.source) == ("2026-01-31", "EUR", {"openai": "a page"})
    assert table.price("openai:one") == Price(2e-3, 8e-3, 0.5e-3, "2026-01-31")
    # Without a price for cached tokens there is no rebate.
    assert table.price("openai:one-2025-01-01") == Price(3e-3, 9e-3, 3e-3, "2025-06-30")
    assert table.price("openai:gpt-4o") is None


@pytest.mark.parametrize("ending", ["2025-02-01", "20250201", "0613", "latest"])
def test_a_dated_name_has_the_price_of_its_family(small: Path, ending: str) -> None:
    table = load_prices(small)
    assert table.price(f"openai:one-{ending}") == table.price("openai:one")


@pytest.mark.parametrize("ending", ["mini", "preview", "audio-2025-02-01", "2025-02-01-preview", "5", "latest-x", ""])
def test_another_model_of_the_name_has_no_price(small: Path, ending: str) -> None:
    assert load_prices(small).price(f"openai:one-{ending}") is None


@pytest.mark.parametrize("name", ["one", "azure_openai:one", "OPENAI:one", "", "ollama:", "scripted-2", "my-scripted"])
def test_an_unlisted_name_has_no_price(small: Path, name: str) -> None:
    assert load_prices(small).price(name) is None


def test_what_runs_at_home_costs_nothing_unless_it_is_listed(small: Path) -> None:
    table = load_prices(small)
    for name in ("scripted", "ollama:llama3:8b"):
        price = table.price(name)
        assert price.cost(10**6, 10**6) == 0.0
    rented = table.price("ollama:rented")
    assert rented.cost(1000, 0) == pytest.approx(1.0)


def test_the_packaged_table_is_sound() -> None:
    table = load_prices()
    today = datetime.datetime.now(datetime.UTC).date()
    assert table.currency == "USD"
    for name, price in table.prices.items():
        provider, _, model = name.partition(":")
        assert model
        assert table.source[provider].startswith("https://")
        assert 0 < price.cached_input <= price.input < price.output < 1e-3, name
        assert datetime.date.fromisoformat(price.date) <= today


# For a million tokens in and a million out.
@pytest.mark.parametrize(
    ("name", "cost"),
    [
        ("openai:gpt-4o-mini", 0.75),
        ("openai:gpt-4o-mini-2024-07-18", 0.75),
        ("openai:gpt-4o-2024-11-20", 12.5),
        ("openai:gpt-4o-2024-05-13", 20.0),
        ("openai:gpt-4.1-2025-04-14", 10.0),
        ("openai:gpt-3.5-turbo-0125", 2.0),
        ("openai:gpt-3.5-turbo-1106", 3.0),
        ("anthropic:claude-3-5-haiku-latest", 4.8),
        ("anthropic:claude-sonnet-4-5-20250929", 18.0),
        ("anthropic:claude-opus-4-20250514", 90.0),
    ],
)
def test_known_models_have_their_list_price(name: str, cost: float) -> None:
    price = load_prices().price(name)
    assert price.cost(10**6, 10**6) == pytest.approx(cost)


@pytest.mark.parametrize(
    "name", ["openai:gpt-4o-audio-preview", "openai:gpt-4o-realtime-preview-2024-12-17", "openai:gpt-5-pro"]
)
def test_relatives_with_other_prices_are_not_taken_for_the_family(name: str) -> None:
    assert load_prices().price(name) is None


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**5))
def test_more_tokens_never_cost_less_and_caching_never_costs_more(inputs, outputs, cached, more) -> None:
    price = Price(3e-6, 15e-6, 0.3e-6)
    cost = price.cost(inputs, outputs, cached)
    assert cost <= price.cost(inputs, outputs) * (1 + 1e-12)
    assert cost <= price.cost(inputs + more, outputs + more, cached) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("old", "wrong", "complaint"),
    [
        ("date: 2026-01-31", "date: soon", ":1: date: must be a day such as 2025-12-31; got 'soon'"),
        ("date: 2026-01-31", "date: 2026-02-30", ":1: date: must be a day"),
        ("date: 2026-01-31", "date: 20260131", ":1: date: must be text"),
        ("date: 2026-01-31\n", "", "date: "),
        ("currency: EUR", "currency: euros", ":2: currency: must match"),
        ("per: 1000", "per: 0", ":3: per: must be at least 1"),
        ("input: 2.0", "input: -2.0", ":6: models.openai:one.input: must be at least 0"),
        ("input: 2.0", "input: .inf", ":6: models.openai:one.input: must be a finite number"),
        ("input: 2.0", "input: '2.0'", ":6: models.openai:one.input: must be a number"),
        ("input: 2.0, ", "", ":6: models.openai:one.input: "),
        ("output: 8", "outputs: 8", ":6: models.openai:one.outputs: unknown field"),
        ("date: 2025-06-30", "date: 2025-6-30", ":7: models.openai:one-2025-01-01.date: must be a day"),
        ("per: 1000", "per: [", "not valid YAML"),
        (
            "source: ",
            "lanes: {opneai: {}}\nsource: ",
            "'opneai' (did you mean openai?) is not listed under models",
        ),
        (
            "source: ",
            "cache: {opneai: {least: 1, date: 2026-01-31, source: a page}}\nsource: ",
            "cache: 'opneai' (did you mean openai?) is not listed under models",
        ),
        (
            "source: ",
            "cache: {openai: {least: 1, step: 0, date: 2026-01-31, source: a page}}\nsource: ",
            "cache.openai.step: must be at least 1",
        ),
        ("source: ", f"lanes: {{openai: {{flex: {{models: [one], {HALF}}}}}}}\nsource: ", "lanes: 'one' is not listed"),
        ("source: ", f"lanes: {{openai: {{now: {{{HALF}}}}}}}\nsource: ", "lanes.openai.now"),
        ("source: ", f"lanes: {{openai: {{flex: {{{HALF.replace('0.5', '0')}}}}}}}\nsource: ", "factor: must be"),
    ],
)
def test_a_bad_table_is_told_file_line_and_field(small: Path, old: str, wrong: str, complaint: str) -> None:
    assert SMALL.count(old) == 1
    small.write_text(SMALL.replace(old, wrong), encoding="utf-8")
    with pytest.raises(SpecError, match=re.escape(complaint)) as caught:
        load_prices(small)
    assert str(small) in str(caught.value)


def test_a_table_that_is_not_there_or_empty_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"gone\.yaml: no such file"):
        load_prices(tmp_path / "gone.yaml")
    path = tmp_path / "empty.yaml"
    path.write_text("date: 2026-01-31\ncurrency: EUR\nper: 1\nmodels: {}\n", encoding="utf-8")
    with pytest.raises(SpecError, match="models: must have at least 1 entry"):
        load_prices(path)
