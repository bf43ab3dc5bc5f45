"""Prices of chat models: from the price table, and zero for local servers."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from opinionsim.llm import Price, PriceTable
from opinionsim.specification import ModelSpec


def model_price(model: ModelSpec, prices: PriceTable) -> Price | None:
    """Price of a model's tokens; None where it is not known.

    Parameters
    ----------
    model : ModelSpec
        The chat model, with the address of its server if it names one.
    prices : PriceTable
        The price table.
    """
    price = prices.price(model.name)
    # A local server may use any name for its model, one in the package's table included. Only a table of the user's own
    # can set a price, for example if the server forwards calls.
    if _is_local(str(model.options.get("base_url") or "")) and (price is None or prices.packaged):
        return Price(0.0, 0.0, 0.0, prices.date)
    return price


def _is_local(address: str) -> bool:
    """Whether an address is that of this machine or of a private network."""
    try:
        host = urlsplit(address if "//" in address else f"//{address}").hostname or ""
    except ValueError:
        return False
    try:
        return ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local"))
