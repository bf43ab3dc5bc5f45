"""Addresses of servers: whether data sent there stay on this machine or in its private network."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit


def is_near(address: str) -> bool:
    """Whether an address or host belongs to this machine or to its private network."""
    host = ""
    with suppress(ValueError):
        host = urlsplit(address if "//" in address else f"//{address}").hostname or ""
        found = ip_address(host)
        return found.is_private and not found.is_link_local
    return host == "localhost" or host.endswith((".localhost", ".local"))
