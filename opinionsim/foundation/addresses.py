"""Addresses of servers: whether what is sent there stays on this machine or in its private network."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit


def is_near(address: str) -> bool:
    """Whether an address, or a host alone, is that of this machine or of one in its private network."""
    host = ""
    with suppress(ValueError):
        host = urlsplit(address if "//" in address else f"//{address}").hostname or ""
        found = ip_address(host)
        return found.is_private and not found.is_link_local
    return host == "localhost" or host.endswith((".localhost", ".local"))
