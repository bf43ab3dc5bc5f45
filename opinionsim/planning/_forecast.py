"""The forecast of an experiment, as numbers and in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from opinionsim.llm import Price


@dataclass(frozen=True)
class ModelForecast:
    """The forecast for one chat model.

    Attributes
    ----------
    name : str
        Name in the specification.
    judges : bool
        Whether it is a judge, which codes texts; else it plays agents.
    calls : int
        Number of calls if no reply is rejected.
    input_characters : int
        Characters of all prompts.
    input_tokens, output_tokens : int
        Tokens of prompts and of replies, by the figures below.
    cost : float or None
        Money; None where no price is known.
    price : str
        The price of its tokens, or why none is known.
    tokens_per_character : float
        Tokens for each character of a prompt.
    reply_tokens : float
        Mean tokens of a reply, over all calls.
    latency_s : float
        Seconds of a call.
    observed : int
        Stored calls from which the last three figures are taken; 0 where they are assumed.
    shared_tokens : int
        Tokens of prompts that an earlier prompt of the run began with: what a provider's cache can hold at most.
    rebate : float or None
        Money that they would save; None where no price is known.
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
        Calls of all runs, those of judges included, if no reply is rejected or asked for again; an upper bound for
        adaptive schedules.
    texts : int
        Texts to be coded, once for each instrument, without self-reports.
    longest_path : int or None
        Calls on the longest chain of dependent calls of any run: the limit of speed with any number of slots. A judge
        codes the texts of a run side by side, which adds one call to the chain. None for adaptive schedules, whose
        chain is not known in advance.
    width : float
        Calls in flight on average, over all runs, if every call started as soon as its inputs are there.
    slots : int
        Calls in flight at most.
    useful_slots : int
        Number of slots from which on the longest path alone sets the least time.
    rounds : float
        Lower bound of the time of the sweep, in units of one call's latency: the longer of the longest path
        and calls / slots. A run with an adaptive schedule counts as one call after another, including a judge's
        ratings that the schedule waits for.
    least_s, most_s : float
        Bounds of the time of the sweep if each call takes `ModelForecast.latency_s` and no slot is idle while a call
        is ready. The lower bound is the longer of the longest path and the work of a slot; the upper one is Graham's
        bound on list scheduling, w + (1 - 1/slots) p for work w of a slot and longest path p. Coding counts where a
        chat model does it.
    sequential_s : float
        Time if calls are made one at a time.
    models : tuple of ModelForecast
        One for each chat model, in the order of the cells; then those of judges.
    acted_out : int
        Calls whose prompts were made and measured; the lengths of other prompts follow from them.
    currency, price_date : str
        Currency and date of the price table.
    notes : tuple of str
        Notes on the basis of the figures, and on unusual features of the experiment.
    missing : Forecast or None
        The work that the given store lacks: runs that are not complete, and texts of complete runs that an instrument
        has not coded. None without a store.
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
    notes: tuple[str, ...] = ()
    missing: Forecast | None = None

    @property
    def speedup(self) -> float:
        """Largest possible speed-up over one call at a time."""
        return self.calls / self.rounds if self.rounds else 1.0

    @property
    def run_width(self) -> float:
        """Calls of one run in flight on average, over its runs."""
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
        """Tokens of prompts that a provider's cache can hold at most: beginnings that earlier prompts had."""
        return sum(model.shared_tokens for model in self.models)

    @property
    def rebate(self) -> float:
        """What such a cache would save at most, of models whose price is known."""
        return sum(model.rebate or 0.0 for model in self.models)

    @property
    def output_tokens(self) -> int:
        """Tokens of all replies."""
        return sum(model.output_tokens for model in self.models)

    @property
    def cost(self) -> float | None:
        """Money for all calls; None if the price of a model is not known."""
        known = [model.cost for model in self.models if model.cost is not None]
        return sum(known) if len(known) == len(self.models) else None

    @property
    def usage(self) -> str:
        """Calls, tokens, and money if there is any, in words."""
        money = f", {spell_money(self.cost, self.currency)}" if self.cost else ""
        return f"{self.calls:,} calls, {self.input_tokens + self.output_tokens:,} tokens{money}"

    def __str__(self) -> str:
        parts = ["\n".join(self.notes)]
        for rows in reversed(self.tables()):
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            parts.insert(0, "\n".join("   ".join(map(str.ljust, row, widths)).rstrip() for row in rows))
        return "\n\n".join(parts)

    def tables(self) -> list[list[tuple[str, ...]]]:
        """The forecast as tables: rows of name, value and meaning, and for several models a row for each."""
        rows = [
            *self._who_rows(),
            ("cells", f"{self.cells:,}", "combinations of conditions"),
            ("runs", f"{self.runs:,}", "distinct runs, replicates counted"),
            ("model calls", f"{self.calls:,}", "if no reply is rejected"),
            *self._token_rows(),
            self._money_row(),
            ("coded texts", f"{self.texts:,}", ""),
            *self._time_rows(),
        ]
        if self.missing is not None:
            left = f"left to do in the store: at most {self.missing.usage}"
            meaning = left if self.missing.runs else "all are complete in the store"
            rows.append(("missing", f"{self.missing.runs:,} runs", meaning))
        if len(self.models) < 2:
            return [rows]
        return [rows, [("model", "calls", "tokens in", "tokens out", "money", "price"), *map(self._row, self.models)]]

    def _row(self, model: ModelForecast) -> tuple[str, ...]:
        money = "not known" if model.cost is None else spell_money(model.cost, self.currency)
        figures = (f"{figure:,}" for figure in (model.calls, model.input_tokens, model.output_tokens))
        return (model.label, *figures, money, model.price)

    def _who_rows(self) -> Iterator[tuple[str, ...]]:
        for what, judges in (("model", False), ("judge", True)):
            own = [model for model in self.models if model.judges == judges]
            names = list(dict.fromkeys(model.name for model in own))
            if names:
                calls = sum(model.calls for model in own)
                meaning = f"codes texts in {calls:,} of the calls" if judges else ""
                yield what if len(names) == 1 else f"{what}s", ", ".join(names), meaning

    def _token_rows(self) -> list[tuple[str, ...]]:
        ratios = _range(f"{model.tokens_per_character:.3g}" for model in self.models)
        replies = _range(f"{model.reply_tokens:,.0f}" for model in self.models)
        counted = f"{self.input_characters:,} characters; {ratios} tokens a character"
        share = self.shared_tokens / self.input_tokens if self.input_tokens else 0.0
        saved = f"; saves {spell_money(self.rebate, self.currency)}" if self.rebate else ""
        return [
            ("input", f"{self.input_tokens:,} tokens", counted),
            ("cached", f"{self.shared_tokens:,} tokens", f"{share:.0%} of the input at most{saved}"),
            ("output", f"{self.output_tokens:,} tokens", f"{replies} tokens a reply"),
        ]

    def _money_row(self) -> tuple[str, ...]:
        unknown = [model.label for model in self.models if model.cost is None]
        known = sum(model.cost for model in self.models if model.cost is not None)
        if len(self.models) == 1:
            return "money", "not known" if unknown else spell_money(known, self.currency), self.models[0].price
        if unknown:
            amount = f"{spell_money(known, self.currency)} and more" if len(unknown) < len(self.models) else "not known"
            return "money", amount, f"no price for {', '.join(unknown)}"
        return "money", spell_money(known, self.currency), f"by the prices of {self.price_date}" if known else "free"

    def _time_rows(self) -> list[tuple[str, ...]]:
        path, critical = "not known", "known only as the run goes: later turns depend on what is said before"
        useful, limit, bound = "at least: the calls of a run are taken to follow one another", "so taken", "at most, "
        if self.longest_path is not None:
            path, critical = f"{self.longest_path:,}", "calls that must follow one another: the critical path"
            useful, limit, bound = "more do not lower the least time: the longest path sets it", "at most", ""
        latency = _range(f"{model.latency_s:.3g}" for model in self.models)
        least, most = spell_seconds(self.least_s), spell_seconds(self.most_s)
        rows: list[tuple[str, ...]] = [
            ("longest path", path, critical),
            (
                "width",
                f"{self.width:,.1f}",
                f"calls in flight on average if slots set no limit; {self.run_width:,.1f} a run",
            ),
            ("slots", f"{self.slots:,}", "calls in flight at most (--max-concurrency)"),
            ("useful slots", f"{self.useful_slots:,}", useful),
            ("speed-up", f"{self.speedup:,.1f}x", f"{limit}, over one call at a time"),
            (
                "time",
                least if least == most else f"{least} to {most}",
                f"{bound}at {latency} s a call; one at a time: {spell_seconds(self.sequential_s)}",
            ),
        ]
        if self.least_s:
            calls = 60.0 / self.least_s * self.calls
            tokens = 60.0 / self.least_s * (self.input_tokens + self.output_tokens)
            limits = f"and {tokens:,.0f} tokens, at full speed: your provider may allow less"
            rows.append(("pace", f"{calls:,.0f} calls a minute", limits))
        return rows


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
    """The price of a model's tokens, or why none is known."""
    if price is None:
        return "not in the price table; execution.prices may name one of your own"
    if not (price.input or price.output):
        return "free"
    tariff = f"{1e6 * price.input:,.4g} and {1e6 * price.output:,.4g} {currency} a million tokens in and out"
    return f"{tariff}, {price.date}"


def _range(values: Iterable[str]) -> str:
    """Distinct values, in order."""
    return " / ".join(dict.fromkeys(values)) or "0"
