"""The keys of providers, and the hosts that each key may be sent to."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from opinionsim.errors import SpecError
from opinionsim.foundation.addresses import is_near

#: Variable of the pairs that the user allows, as in ``MY_KEY=llm.example.org``; several are separated by commas.
ALLOWED = "OPINIONSIM_KEYS"


@cache
def provider_hosts() -> dict[str, tuple[str, ...]]:
    """The hosts of known providers by the variables of their keys."""
    listed = tomllib.loads(Path(__file__).with_name("keys.toml").read_text(encoding="utf-8"))
    return {variable: tuple(hosts) for variable, hosts in listed.items()}


def is_at(address: str, domains: Sequence[str]) -> bool:
    """Whether an address is encrypted and its host is one of these, or a subdomain of one."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    return parts.scheme == "https" and any(host == domain or host.endswith(f".{domain}") for domain in domains)


def check_key(variable: str, address: str) -> None:
    """Raise an error if a key would go to a host that neither its provider nor the user allows.

    Parameters
    ----------
    variable : str
        Environment variable of the key.
    address : str
        The destination: an address, or the name of a provider whose address LangChain knows.

    Raises
    ------
    SpecError
        If only the specification sends the key there; the message tells how to allow it.
    """
    host = urlsplit(address).hostname or address
    known = provider_hosts().get(variable)
    if is_at(address, known or ()) or (variable, host.lower()) in set(_allowed()):
        return
    if known is None and variable.endswith("_API_KEY") and is_near(address):
        return
    whose = f"which is the key of {' and '.join(known)} (https)" if known else "which only the specification names"
    raise SpecError(
        f"model.options: api_key_env: {variable} would be sent to {host}, {whose}; if it belongs there, allow it with "
        f"--allow-key {variable}={host}, or set the environment variable {ALLOWED}={variable}={host}"
    )


def allow_keys(pairs: Iterable[str]) -> None:
    """Allow keys to go to hosts, in this process and in its child processes.

    Parameters
    ----------
    pairs : iterable of str
        Pairs ``NAME=HOST``: the environment variable of a key, and a host.

    Raises
    ------
    SpecError
        If a pair has another form.
    """
    os.environ[ALLOWED] = ",".join(filter(None, (os.environ.get(ALLOWED), *pairs)))
    list(_allowed())


def _allowed() -> Iterator[tuple[str, str]]:
    for pair in filter(None, re.split(r"[\s,]+", os.environ.get(ALLOWED, ""))):
        variable, _, host = pair.partition("=")
        if not variable.isidentifier() or not re.fullmatch(r"[\w.:-]+", host):
            raise SpecError(
                f"{ALLOWED}: {pair!r} must give the variable of a key and its allowed host, as in "
                "MY_KEY=llm.example.org"
            )
        yield variable, host.lower()
