"""The forecast of an experiment, as numbers and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from opinionsim.foundation.templates import sentences
from opinionsim.llm import Price
from opinionsim.planning._lanes import ROUND_MINUTES, LaneCost, LaneForecast


@dataclass(frozen=True)
class ModelForecast:
    """The forecast for one chat model.

    Attributes
    ----------
    name : str
        Name in the specification.
    judges : bool
        Whether it is a judge, which codes texts; otherwise it plays agents.
    calls : int
        Number of calls if no reply is rejected.
    input_characters : int
        Characters of all prompts.
    input_tokens, output_tokens : int
        Tokens of prompts and of replies, from the figures below.
    cost : float or None
        Money in the lane of the specification without a rebate for cached prompts; None if no price is known.
    price : str
        The price of its tokens, or why it is unknown.
    tokens_per_character : float
        Tokens for each character of a prompt.
    reply_tokens : float
        Mean tokens of a reply, over all calls.
    latency_s : float
        Seconds of a call.
    observed : int
        Number of stored calls behind the last three figures; 0 if these are assumed.
    shared_tokens : int
        Tokens at the beginning of prompts shared with earlier prompts of the run to the same model, as far as the price
        table says that the provider's cache serves them.
    rebate : float or None
        Money that the cache would save in the lane of the specification; None if no price is known.
    lanes : mapping of str to LaneCost
        Money by lane; empty if no price is known.
    calls_per_reply : float
        Calls for each reply that is kept; multiplies tokens, money and time. 1 if no reply is rejected.
    """

    name: str
    judges: bool
    calls: int
    input_characters: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    price: str
    tokens_per_character: float
    reply_tokens: float
    latency_s: float
    observed: int
    shared_tokens: int
    rebate: float | None
    lanes: Mapping[str, LaneCost] = field(default_factory=dict)
    calls_per_reply: float = 1.0

    @property
    def attempts(self) -> int:
        """Calls, including those for rejected replies."""
        return round(self.calls * self.calls_per_reply)

    @property
    def label(self) -> str:
        """The name, with "(judge)" for a judge."""
        return f"{self.name} (judge)" if self.judges else self.name


@dataclass(frozen=True)
class Forecast:
    """The forecast of an experiment.

    Attributes
    ----------
    cells, runs : int
        Combinations of conditions, and distinct runs.
    calls : int
        Calls of all runs, including those of judges, if no reply is rejected or requested again; an upper bound for
        adaptive schedules.
    texts : int
        Texts to be coded, once for each instrument, without self-reports.
    longest_path : int or None
        Calls on the longest chain of dependent calls of any run: the limit of speed with any number of slots. A judge
        codes the texts of a run at the same time, which adds one call to the chain. None for adaptive schedules, whose
        chain is not known in advance.
    width : float
        Average number of calls in flight, over all runs, if every call starts as soon as its inputs are there.
    slots : int
        Maximum number of calls in flight.
    useful_slots : int
        Number of slots beyond which only the longest path limits the time.
    rounds : float
        Lower bound of the time of the sweep, in units of one call's latency: the longer of the longest path
        and calls / slots. A run with an adaptive schedule counts as one call after another, including a judge's
        ratings that the schedule waits for.
    least_s, most_s : float
        Bounds of the time of the sweep if each call takes `ModelForecast.latency_s` and no slot is idle while a call
        is ready. The lower bound is the longer of the longest path and the work of a slot; the upper one is Graham's
        bound on list scheduling, w + (1 - 1/slots) p for work w of a slot and longest path p. Coding counts if a
        chat model codes.
    sequential_s : float
        Time if calls are made one at a time.
    models : tuple of ModelForecast
        One for each chat model, in the order of the cells; then those of judges.
    acted_out : int
        Number of calls whose prompts were made and measured; the lengths of other prompts are derived from these.
    currency, price_date : str
        Currency and date of the price table.
    lanes : tuple of LaneForecast
        Money, rounds and time by lane; empty if no model has a cheaper lane, or if a price is unknown.
    notes : tuple of str
        Notes on the basis of the figures, and on unusual features of the experiment.
    missing : Forecast or None
        The work that the given store lacks: runs that are not complete, and texts of complete runs that an instrument
        has not coded. None without a store.
    lacking : tuple of str
        Missing keys, extras and weights that a run needs, each with a remedy; the notes include them, too.
    """

    cells: int
    runs: int
    calls: int
    texts: int
    longest_path: int | None
    width: float
    slots: int
    useful_slots: int
    rounds: float
    least_s: float
    most_s: float
    sequential_s: float
    models: tuple[ModelForecast, ...]
    acted_out: int
    currency: str
    price_date: str
    lanes: tuple[LaneForecast, ...] = ()
    notes: tuple[str, ...] = ()
    missing: Forecast | None = None
    lacking: tuple[str, ...] = ()

    @property
    def attempts(self) -> int:
        """Calls of all runs, including those for rejected replies."""
        return sum(model.attempts for model in self.models)

    @property
    def speedup(self) -> float:
        """Maximum speed-up over one call at a time."""
        return self.calls / self.rounds if self.rounds else 1.0

    @property
    def run_width(self) -> float:
        """Average number of calls of one run in flight, over all runs."""
        return self.width / self.runs if self.runs else 0.0

    @property
    def input_characters(self) -> int:
        """Characters of all prompts."""
        return sum(model.input_characters for model in self.models)

    @property
    def input_tokens(self) -> int:
        """Tokens of all prompts."""
        return sum(model.input_tokens for model in self.models)

    @property
    def shared_tokens(self) -> int:
        """Maximum tokens of prompts in a provider's cache: beginnings that earlier prompts share."""
        return sum(model.shared_tokens for model in self.models)

    @property
    def rebate(self) -> float:
        """Maximum that such a cache would save, over models with a known price."""
        return sum(model.rebate or 0.0 for model in self.models)

    @property
    def output_tokens(self) -> int:
        """Tokens of all replies."""
        return sum(model.output_tokens for model in self.models)

    @property
    def cost(self) -> float | None:
        """Cost of all calls; None if the price of a model is unknown."""
        known = [model.cost for model in self.models if model.cost is not None]
        return sum(known) if len(known) == len(self.models) else None

    @property
    def usage(self) -> str:
        """Calls, tokens and any cost, in words."""
        money = f", {spell_money(self.cost, self.currency)}" if self.cost else ""
        return f"{self.calls:,} calls, {self.input_tokens + self.output_tokens:,} tokens{money}"

    def __str__(self) -> str:
        parts = ["\n".join(self.notes)]
        for rows in reversed(self.tables()):
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            parts.insert(0, "\n".join("   ".join(map(str.ljust, row, widths)).rstrip() for row in rows))
        return "\n\n".join(parts)

    def tables(self) -> list[list[tuple[str, ...]]]:
        """The forecast as tables.

        The first has rows of name, value and meaning. With several models, a table has one row for each, and if there
        are cheaper lanes, a table has one row for each lane.
        """
        found = [self._filled("forecast.txt")]
        if len(self.models) > 1:
            titles = ("model", "calls", "tokens in", "tokens out", "money", "price")
            found.append([titles, *map(self._row, self.models)])
        return [*found, self._filled("lanes.txt")] if self.lanes else found

    def _filled(self, template: str) -> list[tuple[str, ...]]:
        """The rows of a template."""
        told = {"money": partial(spell_money, currency=self.currency), "seconds": spell_seconds, "each": self._each}
        lines = sentences("opinionsim.planning", template, f=self, minutes=ROUND_MINUTES, **told)
        return [tuple(part.strip() for part in line.split("::")) for line in lines]

    def _row(self, model: ModelForecast) -> tuple[str, ...]:
        money = "not known" if model.cost is None else spell_money(model.cost, self.currency)
        figures = (f"{figure:,}" for figure in (model.calls, model.input_tokens, model.output_tokens))
        return (model.label, *figures, money, model.price)

    def _each(self, name: str, form: str) -> str:
        """Distinct values of a figure of the models, in order."""
        values = (f"{getattr(model, name):{form}}" for model in self.models)
        return " / ".join(dict.fromkeys(values)) or "0"


def spell_seconds(seconds: float) -> str:
    """A duration in a suitable unit."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"


def spell_money(amount: float, currency: str) -> str:
    """An amount of money, with two decimals, or two digits if it is small."""
    return f"{amount:,.2f} {currency}" if amount == 0 or amount >= 0.1 else f"{amount:.2g} {currency}"


def spell_price(price: Price | None, currency: str) -> str:
    """The price of a model's tokens, or why it is unknown."""
    if price is None:
        return "not in the price table; name your own table in execution.prices"
    if not (price.input or price.output):
        return "free"
    tariff = f"{1e6 * price.input:,.4g} and {1e6 * price.output:,.4g} {currency} a million tokens in and out"
    return f"{tariff}, {price.date}"
