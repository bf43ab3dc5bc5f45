"""Prices of calls, from a dated table that users may replace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from opinionsim.errors import meant
from opinionsim.foundation.documents import DocumentModel, read_document, validate
from opinionsim.llm._own import in_process

if TYPE_CHECKING:
    import numpy as np

_PACKAGED = Path(__file__).with_name("prices.yaml")

#: Suffix that providers append to the name of a family of models for one version.
_VERSION = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|latest)$")

#: The scripted model, and models of a server that is the user's own.
_FREE = re.compile(r"ollama:.|scripted$")


def _is_day(text: str) -> str:
    """The day, if spelled as in 2025-12-31; the standard library takes other forms as well."""
    try:
        spelled = date.fromisoformat(text).isoformat()
    except ValueError:
        spelled = ""
    if spelled != text:
        raise ValueError(f"must be a day such as 2025-12-31; got {text!r}")
    return text


_Day = Annotated[str, AfterValidator(_is_day)]


class Rebate(DocumentModel):
    """What a lane charges, and where that is stated."""

    factor: float = Field(gt=0, le=1)
    """Share of the list price."""
    date: _Day
    source: str = Field(min_length=1)
    """Page that states the factor."""
    models: tuple[str, ...] | None = None
    """Models that have the lane. Null means all models of the provider."""
    part: str | None = None
    """Part that submits batches, as by its import path. Null means the package's part for the provider."""
    cached: bool = False
    """For batches: whether forecasts count on the provider's cache, which later batches usually find expired. For other
    lanes they always do."""


class CacheRule(DocumentModel):
    """Which beginnings of prompts a provider's cache serves, and where that is stated."""

    least: int = Field(ge=0)
    """Tokens of the shortest beginning that is served."""
    step: int = Field(1, ge=1)
    """The cache serves whole multiples of this number of tokens."""
    date: _Day
    source: str = Field(min_length=1)
    """Page that states both."""

    def served(self, tokens: np.ndarray) -> np.ndarray:
        """Tokens that the cache serves of beginnings with these numbers of tokens."""
        return tokens // self.step * self.step * (tokens >= self.least)


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of one token by kind, in the currency of the table.

    Attributes
    ----------
    input, output : float
        Cost of a token of the prompt, and of the reply including reasoning.
    cached_input : float
        Cost of a token of the prompt from the provider's cache.
    date : str
        Day of the price, ISO 8601; empty for a free model.
    lanes : mapping of str to Rebate
        Lanes that cost less, by name.
    cache : CacheRule or None
        Which beginnings of prompts the provider's cache serves; None if the table does not say.
    """

    input: float
    output: float
    cached_input: float
    date: str = ""
    lanes: Mapping[str, Rebate] = field(default_factory=dict, hash=False)
    cache: CacheRule | None = field(default=None, hash=False)

    def at(self, lane: str) -> Price:
        """The price of a token that was bought through a lane; the list price for one that is not listed."""
        if lane not in self.lanes:
            return self
        factor = self.lanes[lane].factor
        return Price(factor * self.input, factor * self.output, factor * self.cached_input, self.date)

    def cost(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """Cost of a call.

        Parameters
        ----------
        input_tokens, output_tokens : int
            Tokens of the prompt and of the reply.
        cached_tokens : int
            Number of `input_tokens` from the provider's cache.
        """
        cached = min(cached_tokens, input_tokens)
        return (input_tokens - cached) * self.input + cached * self.cached_input + output_tokens * self.output

    def saved(self, cached_tokens: int) -> float:
        """Money that the provider's cache saves for the tokens of a prompt."""
        return cached_tokens * (self.input - self.cached_input)


@dataclass(frozen=True)
class PriceTable:
    """Prices by model name.

    Attributes
    ----------
    date : str
        Day of prices without a separate date, ISO 8601.
    currency : str
        ISO 4217 code.
    source : mapping of str to str
        Where the prices of a provider come from.
    prices : mapping of str to Price
        By name, as in :func:`opinionsim.llm.load_chat_model`.
    packaged : bool
        Whether the table comes with the package instead of from the user.
    """

    date: str
    currency: str
    source: Mapping[str, str]
    prices: Mapping[str, Price] = field(repr=False)
    packaged: bool = True

    def price(self, model: str) -> Price | None:
        """Price of a model.

        Parameters
        ----------
        model : str
            Name as in :func:`opinionsim.llm.load_chat_model`, such as ``openai:gpt-4o-mini``.

        Returns
        -------
        Price or None
            The price listed under the name or, failing that, under the name without its date; zero for ``scripted``,
            ``ollama:...`` and models in this process; None if no price is known.
        """
        listed = self.prices.get(model) or self.prices.get(_VERSION.sub("", model))
        if listed is None and (in_process(model) or _FREE.match(model)):
            return Price(0.0, 0.0, 0.0)
        return listed


class _PriceModel(DocumentModel):
    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(None, ge=0)
    date: _Day | None = None


class _PriceTableModel(DocumentModel):
    date: _Day
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    per: int = Field(ge=1)
    source: dict[str, str] = Field(default_factory=dict)
    lanes: dict[str, dict[Literal["flex", "batch"], Rebate]] = Field(default_factory=dict)
    cache: dict[str, CacheRule] = Field(default_factory=dict)
    models: dict[str, _PriceModel] = Field(min_length=1)

    @model_validator(mode="after")
    def _names_are_of_listed_models(self) -> _PriceTableModel:
        providers = {name.partition(":")[0] for name in self.models}
        named = [model for each in self.lanes.values() for lane in each.values() for model in lane.models or ()]
        keys = [(key, name) for key in ("lanes", "cache") for name in getattr(self, key).keys() - providers]
        for key, name in (*keys, *(("lanes", name) for name in named)):
            if name not in self.models:
                valid = {*self.models, *(() if name in named else providers)}
                raise ValueError(f"{key}: {name!r}{meant(name, valid)} is not listed under models")
        return self

    def lanes_of(self, name: str) -> dict[str, Rebate]:
        """The lanes of a model, by name."""
        own = self.lanes.get(name, self.lanes.get(name.partition(":")[0], {}))
        return {lane: each for lane, each in own.items() if each.models is None or name in each.models}

    def cache_of(self, name: str) -> CacheRule | None:
        """The cache of a model."""
        return self.cache.get(name, self.cache.get(name.partition(":")[0]))


def load_prices(path: str | Path | None = None) -> PriceTable:
    """Load a table of prices.

    Parameters
    ----------
    path : str or Path, optional
        YAML or JSON file with ``date, currency, per, source, lanes, cache, models``, like the file of the package,
        which is the default. `lanes` maps a provider, or a model, to the :class:`Rebate` of each lane, and `cache` to a
        :class:`CacheRule`; a model's entry replaces that of its provider.

    Raises
    ------
    SpecError
        If the file is missing or not valid; the message names file, line and field.
    """
    model = validate(_PriceTableModel, read_document(_PACKAGED if path is None else path))
    prices = {
        name: Price(
            price.input / model.per,
            price.output / model.per,
            # Where no price of cached tokens is stated, there is no rebate.
            (price.input if price.cached_input is None else price.cached_input) / model.per,
            price.date or model.date,
            model.lanes_of(name),
            model.cache_of(name),
        )
        for name, price in model.models.items()
    }
    return PriceTable(model.date, model.currency, model.source, prices, packaged=path is None)
