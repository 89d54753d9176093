"""Protocol: HTTP by uvicorn, with each answer in one write, and limits on the time in which a request must arrive."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from regretless.serve.replies import Refused
from regretless.serve.settings import Limits

CONTINUE = b"HTTP/1.1 100 "


class Joined:
    """A transport that holds the head of an answer back until its body comes.

    uvicorn writes head and body apart, and each write is a system call that wakes the client.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._held: bytes | None = None
        self._begun = False  # whether the head of the present answer was written
        self.is_closing, self.get_extra_info = transport.is_closing, transport.get_extra_info
        self.pause_reading, self.resume_reading = transport.pause_reading, transport.resume_reading

    def write(self, data: bytes) -> None:
        """Write, or hold the head of an answer back."""
        if self._held is not None:
            data, self._held = self._held + data, None
        elif not self._begun and not data.startswith(CONTINUE):
            self._held, self._begun = data, True
            return
        self._transport.write(data)

    def end_answer(self) -> None:
        """Write what is held back: an answer may have no body."""
        self._begun = False
        if self._held is not None:
            held, self._held = self._held, None
            self._transport.write(held)

    def close(self) -> None:
        """Write what is held back, and close."""
        self.end_answer()
        self._transport.close()


class Protocol(HttpToolsProtocol):
    """One connection. uvicorn itself waits for ever for a client that sends its request slowly."""

    def __init__(self, limits: Limits, **options: Any) -> None:
        super().__init__(**options)
        self._limits = limits

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        self._joined = Joined(transport)
        super().connection_made(self._joined)  # type: ignore[arg-type]  # it has all methods that uvicorn calls
        self._since = self.loop.time()  # the beginning of the request, or of the wait for it
        self._timer = self.loop.call_later(self._limits.head_seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._timer.cancel()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Note when the request began."""
        self._since = self.loop.time()
        super().on_message_begin()

    def on_response_complete(self) -> None:
        """Send the answer, and wait for the next request."""
        self._joined.end_answer()
        self._since = self.loop.time()
        super().on_response_complete()

    def _look(self) -> None:
        """Close the connection if the request that is arriving takes too long; otherwise look again when it would."""
        if self._joined.is_closing():
            return
        cycle = self.cycle
        in_head = cycle is None or cycle.scope is not self.scope
        in_body = not in_head and cycle.more_body
        seconds = self._limits.body_seconds if in_body else self._limits.head_seconds
        left = seconds
        if (in_head or in_body or cycle.response_complete) and not self.flow.read_paused:
            left += self._since - self.loop.time()
        if left > 0.0:
            self._timer = self.loop.call_later(left, self._look)
            return
        if self.scope is not None and (in_head or not cycle.response_complete):
            what = "body" if in_body else "head"
            self._joined.write(_refusal(f"the {what} of the request did not arrive within {seconds:g} seconds."))
        self._joined.close()


def _refusal(error: str) -> bytes:
    body = msgspec.json.encode(Refused(408, error))
    head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
    return STATUS_LINE[408] + head + body


def protocol_of(limits: Limits) -> Any:
    """For `uvicorn.Config(http=...)`, which calls it like a class."""
    return partial(Protocol, limits)
