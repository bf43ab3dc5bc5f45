"""Remove credentials from texts and options before they are stored or shown to others."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

from opinionsim.foundation.streams import canonical_json, digest

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
    """Return a text without credentials. Errors, for example, are stored and shown to others.

    It removes the values of environment variables that are named like credentials (of at least 8 characters, also
    in the form addresses give them), passwords of addresses in any variable, user and query string of every address
    in the text, what a word such as ``api_key`` or ``Bearer`` introduces, and what looks like a key, its middle
    masked or not. It also removes the values of :data:`HIDDEN` (of at least 4 characters).
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


# -- options -----------------------------------------------------------------------------------------------------------


#: Names of options that hold credentials; names that end in ``_env`` are of options that name a variable.
_SECRET = re.compile(
    r"(?!.*_env$).*(api[-_]?key|secret|password|authorization|(access|auth|bearer)[-_]?token)", re.IGNORECASE
)
#: The same for options of chat models, where every name that ends in token or key counts.
_STRICT = re.compile(
    r"(?!.*_env$).*(api[-_]?key|secret|passw|credential|authorization|bearer|(^|[_-])(token|key)$)", re.IGNORECASE
)
#: An address with a user in it, with or without a password.
_SIGNED_IN = re.compile(r"://([^/\s?#]*)@")


def all_options(options: Any) -> Iterator[tuple[str, Any]]:
    """Options by name, including those inside nested mappings and lists."""
    if isinstance(options, Mapping):
        for name, value in options.items():
            yield str(name), value
            yield from all_options(value)
    elif isinstance(options, list | tuple):
        for value in options:
            yield from all_options(value)


def secret_in(options: Mapping[str, Any], *, strict: bool = False) -> str:
    """The problem with a credential among options, in words; empty if there is none.

    Parameters
    ----------
    options : mapping
        Options of a specification, which stores and manifests copy.
    strict : bool
        Whether every name that ends in ``token`` or ``key`` counts, and every address with a user name.
    """
    for name, value in all_options(options):
        harmless = not value or isinstance(value, bool) or (strict and isinstance(value, Mapping | list | tuple))
        if not harmless and (_STRICT if strict else _SECRET).match(name):
            return f"{name}: a specification must not contain credentials; put this one into an environment variable"
        signed_in = _SIGNED_IN.search(value) if isinstance(value, str) else None
        if signed_in and (strict or ":" in signed_in[1]):
            return f"{name}: an address must not contain a user or password"
    return ""


#: Options of chat models whose values reach a provider and may be credentials, also inside a dotted path, and
#: their digests.
_UNKEPT = re.compile(r"(^|\.)default_(headers|query)(\.|$)")
_DIGEST = re.compile(r"sha256:[0-9a-f]{24}")


def kept(value: Any, *, within: bool = False) -> Any:
    """JSON values for identities, stores and manifests, with digests instead of values that must not be stored.

    Parameters
    ----------
    value : JSON value
        Values of ``default_headers`` and ``default_query`` in it are replaced by their digests, and left out of
        messages from now on. Digests stay unchanged.
    within : bool
        Whether the value is inside one of these.
    """
    if isinstance(value, Mapping):
        return {name: kept(each, within=within or bool(_UNKEPT.search(str(name)))) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [kept(each, within=within) for each in value]
    if not within or value is None or is_digest(value):
        return value
    HIDDEN.add(str(value))
    return f"sha256:{digest(canonical_json(value))}"


def is_digest(value: Any) -> bool:
    """Whether a value is the digest of a value that was not stored."""
    return isinstance(value, str) and bool(_DIGEST.fullmatch(value))
