"""Connections that close if a request does not arrive completely."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: Most seconds from the beginning of a connection, or of a later request, until the request is whole.
_WHOLE_S = 10.0


class PromptConnection(H11Protocol):
    """A connection that the server closes if a request is not complete in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._late = self.loop.call_later(_WHOLE_S, transport.close)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._late.cancel()
        elif self._late.cancelled():
            self._late = self.loop.call_later(_WHOLE_S, self.transport.close)
