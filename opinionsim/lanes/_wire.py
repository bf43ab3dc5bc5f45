"""JSON over HTTP to a provider's batch queue, with the address and the key of a LangChain chat model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from io import BytesIO
from typing import Any, Self

from opinionsim.foundation.redaction import redacted
from opinionsim.lanes._protocol import BadLine

#: Seconds for one request; results of a large batch take minutes.
_TIMEOUT_S = 600.0


class WireError(Exception):
    """An answer of a provider that is not a success."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str]) -> None:
        self.status_code, self.headers = status, headers
        self.body = read_json(text)
        told = self.body.get("error", self.body) if isinstance(self.body, Mapping) else None
        told = told.get("message", told) if isinstance(told, Mapping) else told
        super().__init__(redacted(f"HTTP {status}: {str(told or text)[:400]}"))


class Wire:
    """Requests to one provider.

    Parameters
    ----------
    base : str
        Address in front of every path.
    headers : mapping of str to str
        Headers of every request, the key among them.
    """

    def __init__(self, base: str, headers: Mapping[str, Any]) -> None:
        self._base = base.rstrip("/")
        # The transport sets those that belong to a body itself; clients mark headers to leave out by other types.
        self._headers = {
            name: value
            for name, value in headers.items()
            if isinstance(value, str) and name.lower() not in ("content-type", "accept", "accept-encoding")
        }

    @classmethod
    def of(cls, client: Any, path: str = "") -> Self:
        """The provider of a client of OpenAI's kind, below `path`."""
        return cls(
            str(client.base_url).rstrip("/") + path, {**client.default_headers, **getattr(client, "auth_headers", {})}
        )

    async def text(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        data: Any = None,
    ) -> str:
        """The text of an answer; redirections are not followed.

        Parameters
        ----------
        method, path : str
            HTTP method, and path below the base or a whole address of the same host.
        params : mapping, optional
            Query.
        body : JSON value, optional
            Body.
        data : aiohttp.FormData or bytes, optional
            Body instead of `body`.

        Raises
        ------
        WireError
            If the answer is no success.
        aiohttp.ClientError, TimeoutError
            If there is no answer.
        """
        import aiohttp

        headers = self._headers
        if body is not None:
            data, headers = json.dumps(body).encode(), {**headers, "Content-Type": "application/json"}
        # The transport sends a stream piece by piece, and large bytes at once.
        data = BytesIO(data) if isinstance(data, bytes) else data
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S, sock_connect=30.0)
        url = path if path.startswith(self._base) else self._base + path
        async with (
            aiohttp.ClientSession(headers=headers, timeout=timeout, trust_env=True) as session,
            session.request(method, url, params=params, data=data, allow_redirects=False) as answer,
        ):
            text = await answer.text("utf-8", "replace")
            if not 200 <= answer.status < 300:
                raise WireError(answer.status, text, answer.headers)
            return text

    async def json(self, method: str, path: str, **sent: Any) -> Any:
        """The JSON value of an answer; see :meth:`text`."""
        return json.loads(await self.text(method, path, **sent))

    async def form(self, path: str, fields: Mapping[str, str], name: str = "", content: str = "") -> Any:
        """Send a form, with a file if it has a `name`, and return the JSON value of the answer."""
        import aiohttp

        form = aiohttp.FormData()
        for field, value in fields.items():
            # A stated type makes the form one of several parts, as providers want it even without a file.
            form.add_field(field, value, content_type="text/plain")
        if name:
            form.add_field("file", BytesIO(content.encode()), filename=name, content_type="application/jsonl")
        return await self.json("POST", path, data=form)


def unix_time(spelled: str | None) -> float | None:
    """Unix time of a moment, spelled as in 2026-11-29T12:00:00Z; None for none."""
    return datetime.fromisoformat(spelled).timestamp() if spelled else None


def read_json(text: str) -> Any:
    """A JSON value; None if the text is none."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def read_lines(text: str) -> Iterator[dict[str, Any] | BadLine]:
    """The JSON objects of a file with one on each line."""
    for number, line in enumerate(text.splitlines(), 1):
        found = read_json(line)
        if isinstance(found, dict):
            yield found
        elif line.strip():
            yield BadLine(f"line {number} is cut off or is no JSON object: {line[:60]!r}")
