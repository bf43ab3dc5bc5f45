"""What an experiment takes, as numbers and in words, and how that compares with what it took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from opinionsim.llm import Entry

__all__ = ["Actual", "Compared", "Forecast", "ModelForecast", "compare_forecast", "spell_money", "spell_seconds"]

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True)
class ModelForecast:
    """What an experiment takes of one chat model.

    Attributes
    ----------
    name : str
        As the specification names it.
    judges : bool
        Whether it codes texts, for a classifier that asks a chat model; else it plays agents.
    calls : int
        If no reply is rejected.
    input_characters : int
        Of all prompts.
    input_tokens, output_tokens : int
        By the assumptions below.
    cost : float or None
        Money; None where no price is known.
    price : str
        The price of its tokens, or why none is known.
    tokens_per_character : float
        Of prompts.
    reply_tokens : float
        Mean over all calls.
    latency_s : float
        Seconds a call takes.
    observed : int
        Stored calls the last three rest on; 0 where they are assumed.
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

    @property
    def label(self) -> str:
        """Its name, and its part if it plays no agents."""
        return f"{self.name} (judge)" if self.judges else self.name


@dataclass(frozen=True)
class Forecast:
    """What an experiment takes.

    Attributes
    ----------
    cells, runs : int
        Combinations of conditions, and distinct runs.
    calls : int
        Model calls of all runs, those of judges included, if no reply is rejected or asked for again.
    texts : int
        Texts to be coded, once for each classifier; self-reports need none.
    longest_path : int or None
        Calls on the longest chain of dependent calls of any run: no number of slots makes the sweep faster. A judge
        is asked when a run is over, about all its texts side by side: one call more on the chain.
        None where a schedule is adaptive, so that its chain is not known in advance.
    width : float
        Calls that can be in flight on average, over all runs, with slots without end.
    slots : int
        Calls in flight at most.
    useful_slots : int
        From here on the longest path sets the least time, and slots no longer do.
    rounds : float
        Lower bound of the time of the sweep, in units of one call's latency: the longer of the longest path
        and calls / slots. A run with an adaptive schedule is taken to make one call after another, a judge's ratings
        of what the schedule waits for included.
    least_s, most_s : float
        Bounds of the time of the sweep where calls take `ModelForecast.latency_s` each and no slot stands idle while
        a call is ready: the longer of the longest path and the work a slot has to do; and Graham's bound on list
        scheduling, w + (1 - 1/slots) p for work w a slot and longest path p. Coding texts is counted where a chat
        model does it.
    sequential_s : float
        Time of one call at a time.
    models : tuple of ModelForecast
        One a chat model, in the order of the cells; then those of judges.
    acted_out : int
        Calls of which the prompts were made and counted; those of the other calls follow from them.
    exact : bool
        Whether input characters are those of the very prompts, given the length of replies: all were counted, and
        no schedule is adaptive.
    currency, price_date : str
        Of the price table.
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
    exact: bool
    currency: str
    price_date: str

    @property
    def speedup(self) -> float:
        """Largest possible speed-up over one call at a time."""
        return self.calls / self.rounds if self.rounds else 1.0

    @property
    def run_width(self) -> float:
        """Calls of one run that can be in flight on average, over its runs."""
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
    def output_tokens(self) -> int:
        """Tokens of all replies."""
        return sum(model.output_tokens for model in self.models)

    @property
    def cost(self) -> float | None:
        """Money for all calls; None where the price of a model is not known."""
        costs = [model.cost for model in self.models]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        return "\n".join(f"{a:<{widths[0]}}   {b:<{widths[1]}}   {c}".rstrip() for a, b, c in rows)

    def rows(self) -> list[tuple[str, str, str]]:
        """The forecast in words: name, value, and what it means."""
        return [
            *self._who_rows(),
            ("cells", f"{self.cells:,}", "combinations of conditions"),
            ("runs", f"{self.runs:,}", "distinct runs, replicates counted"),
            ("model calls", f"{self.calls:,}", "if no reply is rejected"),
            *self._token_rows(),
            self._money_row(),
            ("coded texts", f"{self.texts:,}", ""),
            *self._time_rows(),
        ]

    def _who_rows(self) -> list[tuple[str, str, str]]:
        rows = []
        for what, judges in (("model", False), ("judge", True)):
            models = [model for model in self.models if model.judges == judges]
            names = list(dict.fromkeys(model.name for model in models))
            meaning = f"codes texts in {sum(model.calls for model in models):,} of the calls" if judges else ""
            if len(names) == 1:
                rows.append((what, names[0], meaning))
            elif names or not judges:
                listed = ", ".join(names)
                rows.append((f"{what}s", f"{len(names)}", f"{listed}: {meaning}" if meaning else listed))
        return rows

    def _token_rows(self) -> list[tuple[str, str, str]]:
        ratios = _range(f"{model.tokens_per_character:.3g}" for model in self.models)
        replies = _range(f"{model.reply_tokens:,.0f}" for model in self.models)
        counted = (
            "each prompt counted"
            if self.acted_out == self.calls
            else f"from the prompts of {self.acted_out:,} calls, the rest by rule"
        )
        return [
            (
                "input",
                f"{self.input_tokens:,} tokens",
                f"{self.input_characters:,} characters, {counted}; {ratios} tokens a character",
            ),
            ("output", f"{self.output_tokens:,} tokens", f"{replies} tokens a reply"),
        ]

    def _money_row(self) -> tuple[str, str, str]:
        unknown = [model.label for model in self.models if model.cost is None]
        known = sum(model.cost for model in self.models if model.cost is not None)
        if len(self.models) == 1:
            model = self.models[0]
            return "money", "not known" if unknown else spell_money(known, self.currency), model.price
        if unknown:
            amount = f"{spell_money(known, self.currency)} and more" if len(unknown) < len(self.models) else "not known"
            return "money", amount, f"no price for {', '.join(unknown)}"
        return "money", spell_money(known, self.currency), f"by the prices of {self.price_date}" if known else "free"

    def _time_rows(self) -> list[tuple[str, str, str]]:
        path = self.longest_path
        critical = "calls that must follow one another: the critical path"
        if path is None:
            critical = "known only as the run goes: each step waits for measured opinions"
        advice = "more do not lower the least time: the longest path sets it"
        latency = _range(f"{model.latency_s:.3g}" for model in self.models)
        rows = [
            ("longest path", "not known" if path is None else f"{path:,}", critical),
            (
                "width",
                f"{self.width:,.1f}",
                f"calls in flight on average, had you slots without end; {self.run_width:,.1f} a run",
            ),
            ("slots", f"{self.slots:,}", "calls in flight at most (--max-concurrency)"),
            ("useful slots", f"{self.useful_slots:,}", advice),
            ("speed-up", f"{self.speedup:,.1f}x", "at most, over one call at a time"),
            (
                "time",
                _span(self.least_s, self.most_s),
                f"at {latency} s a call; one at a time: {spell_seconds(self.sequential_s)}",
            ),
        ]
        if self.least_s:
            a_minute = 60.0 / self.least_s
            tokens = (self.input_tokens + self.output_tokens) * a_minute
            rows.append(
                (
                    "pace",
                    f"{self.calls * a_minute:,.0f} calls a minute",
                    f"and {tokens:,.0f} tokens, at full speed: your provider may allow less",
                )
            )
        return rows


@dataclass(frozen=True)
class Actual:
    """What calls did take.

    Attributes
    ----------
    calls : int
        Replies that arrived, rejected ones included.
    input_tokens, output_tokens : int or None
        As the provider counted them; None where it did not for some.
    cost : float or None
        Money; None where some have no price.
    seconds : float or None
        Wall time; None where it is not known, as of calls that were made on several occasions.
    """

    calls: int
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    seconds: float | None

    @classmethod
    def of(cls, records: Iterable[Entry], seconds: float) -> Actual:
        """What the calls on record took.

        Parameters
        ----------
        records : iterable of Entry
            Calls of any runs, as :meth:`opinionsim.store.Store.calls` gives them.
        seconds : float
            Wall time.
        """
        calls = list(records)
        return cls(
            len(calls),
            _total(record.input_tokens for record in calls),
            _total(record.output_tokens for record in calls),
            _total(record.cost for record in calls),
            seconds,
        )


class Compared(NamedTuple):
    """One figure of a forecast beside what came of it."""

    what: str
    """``calls``, ``input tokens``, ``output tokens``, ``money`` or ``seconds``."""
    forecast: float | None
    """None where there is no forecast."""
    actual: float | None
    """None where it is not known."""

    @property
    def ratio(self) -> float | None:
        """Actual / forecast; None where one of them is not known or nothing was forecast."""
        return self.actual / self.forecast if self.forecast and self.actual is not None else None


def compare_forecast(forecast: Forecast, actual: Actual) -> tuple[Compared, ...]:
    """A forecast beside what came of it.

    Parameters
    ----------
    forecast : Forecast
        Of the runs that were carried out; see `only` of :func:`opinionsim.plan`.
    actual : Actual
        What they took.

    Returns
    -------
    tuple of Compared
        Calls, input tokens, output tokens, money, and seconds, whose forecast is the least time.
    """
    return (
        Compared("calls", forecast.calls, actual.calls),
        Compared("input tokens", forecast.input_tokens, actual.input_tokens),
        Compared("output tokens", forecast.output_tokens, actual.output_tokens),
        Compared("money", forecast.cost, actual.cost),
        Compared("seconds", forecast.least_s, actual.seconds),
    )


def spell_seconds(seconds: float) -> str:
    """A duration in the unit that suits it."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"


def spell_money(amount: float, currency: str) -> str:
    """An amount of money; small ones with as many digits as they need."""
    return f"{amount:,.2f} {currency}" if amount == 0 or amount >= 0.1 else f"{amount:.2g} {currency}"


def _span(least_s: float, most_s: float) -> str:
    least, most = spell_seconds(least_s), spell_seconds(most_s)
    return least if least == most else f"{least} to {most}"


def _range(values: Iterable[str]) -> str:
    """Distinct values, in order."""
    return " / ".join(dict.fromkeys(values)) or "0"


def _total(values: Iterable[_Number | None]) -> _Number | None:
    """The sum; None where a value is missing."""
    total: _Number = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
