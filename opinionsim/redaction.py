"""Leaving credentials out of texts that are kept in stores and shown to others."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import quote, unquote

#: Environment variables named like this hold credentials.
_CREDENTIAL = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|(^|_)(PASS|PAT|AUTH)$", re.IGNORECASE)
#: Shorter values of such variables are flags and numbers, and stand in ordinary text.
_SHORTEST = 8
#: Further values that must not be shown.
HIDDEN: set[str] = set()
#: The alphabet of base 64 that addresses take.
_IN_ADDRESSES = str.maketrans("+/", "-_")

#: Scheme, then user and password.
_USERINFO = re.compile(r"\b([a-z][a-z0-9+.-]{0,30}://)([^\s/?#@'\"]+)@", re.IGNORECASE)
_QUERY = re.compile(r"\b([a-z][a-z0-9+.-]{0,30}://[^\s?'\"<>]{1,2000})\?[^\s'\"<>]*", re.IGNORECASE)

_SHAPES = re.compile(
    r"""
    -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)
    # What introduces a credential is kept; then the credential, as sentences, headers, JSON and shells write it.
    | (?P<kept>
        (?<![a-z0-9]) (?: Bearer | Basic ) \s+
        | (?<![a-z0-9]) (?: (?: api | access | secret | account ) [ _-]? key | (?: access | api | auth ) [ _-]? token
            | (?: client [ _-]? )? secret | password | passwd | authorization )
          (?: [ ]provided | [ ]is )? \\?['"]? \s* [:=] \s* \\?['"]? (?: (?: Bearer | Basic ) \s+ )?
      ) [^\s'",;)}\]\\]+
    # Keys by their prefix, whole or with their middle masked.
    | \b (?: sk | pk | rk ) [-_] [a-z0-9_*.…-]{6,}
    | \b (?: key | token ) [-_] (?= [a-z_-]{0,40} [0-9*] ) [a-z0-9_*.…-]{8,}
    | \b (?: hf_ | gsk_ | r8_ | ghp_ | gho_ | github_pat_ | glpat- | xai- | pplx- | nvapi- | AIza | AKIA | xox[abprs]- )
         [a-z0-9_*.…-]{6,}
    | \b eyJ [a-z0-9_-]{8,} \. [a-z0-9_.-]+
    # Anything with its middle masked by asterisks.
    | (?<![a-z0-9_-]) [a-z0-9_-]* \*{3,} [a-z0-9_-]*
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


def redacted(text: str) -> str:
    """A text without credentials: errors are kept in stores and shown to others.

    Left out are the values of environment variables that are named like credentials (of at least 8 characters, also
    in the form addresses give them), passwords of addresses in any variable, user and query string of every address
    in the text, what a word such as ``api_key`` or ``Bearer`` introduces, and what looks like a key, its middle
    masked or not. So are those of :data:`HIDDEN` (of at least 4).
    """
    for secret in sorted(set(_secrets()), key=len, reverse=True):
        text = text.replace(secret, "***")
    text = _USERINFO.sub(r"\1***@", text)
    text = _QUERY.sub(r"\1?***", text)
    return _SHAPES.sub(lambda found: f"{found['kept'] or ''}***", text)


def _secrets() -> Iterator[str]:
    """Every literal value that must not be shown."""
    for part in (each for each in tuple(HIDDEN) if len(each) >= _SHORTEST // 2):
        yield from {part, quote(part, safe=""), *_in_base64(part)}
    for name, value in os.environ.items():
        if _CREDENTIAL.search(name):
            # A value of several lines, such as a private key, may be quoted in part or on one line.
            for part in {value, value.strip(), *(line.strip() for line in value.splitlines())}:
                if len(part) >= _SHORTEST:
                    yield from {part, quote(part, safe=""), *_in_base64(part)}
        for userinfo in _USERINFO.finditer(value):
            password = userinfo[2].partition(":")[2]
            if len(password) >= _SHORTEST:
                yield from {password, unquote(password)}


def _in_base64(secret: str) -> set[str]:
    """A text in base 64, in both of its alphabets and without its padding."""
    spelled = b64encode(secret.encode("utf-8", "surrogateescape")).decode().rstrip("=")
    return {spelled, spelled.translate(_IN_ADDRESSES)}
