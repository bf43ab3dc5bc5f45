"""Addresses of stores: parsing them, and showing them without their password."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Self

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from opinionsim.errors import StoreError

_SUFFIXES = (".sqlite", ".sqlite3", ".db")
VALID = f"give sqlite:///PATH, a path that ends in {', '.join(_SUFFIXES)}, or postgresql+psycopg://USER@HOST/DATABASE"
_SQLITE = ("sqlite", "sqlite+pysqlite")
_POSTGRESQL = ("postgresql+psycopg", "postgresql", "postgres")
#: Names in a query string whose values may be secrets, misspelled ones included.
_SECRET = re.compile(r"pass(?!file$)|pwd|secret|token", re.IGNORECASE)


class Address(str):
    """Address of a PostgreSQL store that hides its password.

    As text, it has no password. In the process that made it, :func:`opinionsim.store.open_store` opens it with its
    password.
    """

    __slots__ = ("_whole",)
    _whole: URL

    def __new__(cls, whole: URL) -> Self:
        """Hide the password of an address."""
        self = super().__new__(cls, _without_password(whole).render_as_string(hide_password=False))
        self._whole = whole
        return self

    def __str__(self) -> Self:
        return self

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        # A pickle may be written to a file: it holds no password.
        return str, (str.__str__(self),)

    @property
    def whole(self) -> URL:
        """The address with its password."""
        return self._whole


def parse(url: str) -> Path | Address:
    """The file or the PostgreSQL database that a store address names.

    Parameters
    ----------
    url : str
        ``sqlite:///PATH``; a bare path ending in ``.sqlite``, ``.sqlite3`` or ``.db``; or
        ``postgresql+psycopg://USER@HOST/DATABASE``, also spelled ``postgresql://``.

    Raises
    ------
    StoreError
        For any other address. If the address may contain a password, the message shows only its scheme.
    """
    if isinstance(url, Address):
        return url
    scheme = re.match(r"([A-Za-z][\w+.-]*)://", url)
    if scheme and scheme[1] in _POSTGRESQL:
        return Address(_parse_postgresql(url))
    if scheme and scheme[1] not in _SQLITE:
        raise StoreError(f"stores of kind {scheme[1]!r} are not supported; {VALID}")
    path = url[scheme.end() :].removeprefix("/") if scheme else url
    if scheme and not url[scheme.end() :].startswith("/"):
        raise StoreError(f"store address {url!r} needs three slashes before a path; {VALID}")
    if path in ("", ":memory:") or path.startswith("file:"):
        raise StoreError(f"store address {url!r} does not name a file; {VALID}")
    if "?" in path or "\x00" in path:
        raise StoreError(f"store address {url!r} has a '?' or NUL in its path; {VALID}")
    if not scheme and Path(path).suffix not in _SUFFIXES:
        raise StoreError(f"{url!r} is not a store address; {VALID}")
    return Path(path)


def shown(url: str) -> str:
    """A store's address without its password, for display.

    Parameters
    ----------
    url : str
        Any text. Of an invalid address with a scheme, only the scheme is shown.
    """
    try:
        parsed = parse(url)
    except StoreError:
        scheme, separator, _ = url.partition("://")
        return f"{scheme}://..." if separator else url
    return str.__str__(parsed) if isinstance(parsed, Address) else url


def _parse_postgresql(url: str) -> URL:
    problem = "the PostgreSQL address is not valid (not shown, because it may contain a password)"
    try:
        whole = make_url(url)
    except (ArgumentError, ValueError):
        raise StoreError(f"{problem}; {VALID}") from None
    if "@" in (whole.host or "") + (whole.database or "") or "\x00" in url:
        raise StoreError(f"{problem}: write '@', ':' and '/' in user names and passwords as %40, %3A, %2F; {VALID}")
    return whole


def _without_password(whole: URL) -> URL:
    open_parts = whole.difference_update_query([name for name in whole.query if _SECRET.search(name)])
    return URL.create(whole.drivername, whole.username, None, whole.host, whole.port, whole.database, open_parts.query)
