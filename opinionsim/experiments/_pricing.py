"""What a chat model costs: what the price table says, and nothing where a server of one's own answers."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from opinionsim.experiments._model_spec import ModelSpec
from opinionsim.llm import Price, PriceTable


def model_price(model: ModelSpec, prices: PriceTable) -> Price | None:
    """Price of a model's tokens; None where it is not known.

    Parameters
    ----------
    model : ModelSpec
        With the address of its server, if it names one.
    prices : PriceTable
        What others cost.
    """
    price = prices.price(model.name)
    # A server of one's own may serve a model under any name, listed ones included: only the user's own table tells
    # what it costs, as where it hands calls on.
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
