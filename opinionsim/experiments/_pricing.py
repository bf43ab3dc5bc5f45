"""What a chat model costs: what the price table says, and nothing where a server of one's own answers."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from opinionsim.experiments._model_spec import ModelSpec
from opinionsim.llm import Price, PriceTable

__all__ = ["model_price"]


def model_price(model: ModelSpec, prices: PriceTable) -> tuple[Price | None, str]:
    """Price of a model's tokens, and what it rests on.

    Parameters
    ----------
    model : ModelSpec
        With the address of its server, if it names one.
    prices : PriceTable
        What others cost.

    Returns
    -------
    price : Price or None
        None where it is not known.
    reason : str
        Where the price comes from, or why there is none.
    """
    price = prices.price(model.name)
    # A server of one's own may serve a model under any name, listed ones included: only the user's own table tells
    # what it costs, as where it hands calls on.
    if _is_local(str(model.options.get("base_url") or "")) and (price is None or prices.packaged):
        price = Price(0.0, 0.0, 0.0, prices.date)
    if price is None:
        return None, "not in the price table; execution.prices may name one of your own"
    if not (price.input or price.output):
        return price, "free"
    tariff = f"{1e6 * price.input:,.4g} and {1e6 * price.output:,.4g} {prices.currency} a million tokens in and out"
    return price, f"{tariff}, {price.date}"


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
