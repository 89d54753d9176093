"""Client and AsyncClient: ask a service over HTTP, and ask again with the same id when no answer comes.

A request whose answer was lost may have been carried out. Because it is repeated with the same id, a forecast is not
made twice and a label is not learned twice.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable, Iterator
from typing import Any, Self
from uuid import uuid4

import httpx
import msgspec

from regretless.serve.replies import Forecast, Label, Learned, Predict, Refused, Reply, ServiceError

AGAIN = (408, 429, 503)  # worth another attempt


class _Requests:
    """What both clients share: requests, and what to make of their answers."""

    def __init__(self, url: str, key: str | None, model: str | None, attempts: int, timeout: float) -> None:
        if attempts < 1:
            raise ValueError(f"attempts={attempts}: at least one is needed.")
        self.attempts = attempts
        self._prefix = "" if model is None else f"/models/{model}"
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        self._options: dict[str, Any] = {"base_url": url, "headers": headers, "timeout": timeout}

    def _post(self, path: str, body: bytes, kind: str = "application/json") -> dict[str, Any]:
        headers = {"content-type": kind}
        return {"method": "POST", "url": self._prefix + path, "content": body, "headers": headers}

    def _get(self, path: str) -> dict[str, Any]:
        return {"method": "GET", "url": self._prefix + path}

    def _waits(self) -> Iterator[float]:
        """Seconds before each further attempt: they double, with chance, so that clients do not return together."""
        for i in range(self.attempts - 1):
            yield min(5.0, 0.1 * 2.0**i) * random.uniform(0.5, 1.0)

    @staticmethod
    def _predict(x: Any, id: str | None) -> bytes:
        return msgspec.json.encode(Predict(x, uuid4().hex if id is None else id))

    @staticmethod
    def _bulk(operations: Iterable[Predict | Label]) -> bytes:
        lines = []
        for each in operations:
            if isinstance(each, Predict) and each.id is None:
                each = Predict(each.x, uuid4().hex)
            lines.append(msgspec.json.encode(each))
        return b"\n".join(lines)

    @staticmethod
    def _replies(response: httpx.Response) -> list[Reply]:
        found: list[Reply] = []
        for line in response.content.splitlines():
            told = msgspec.json.decode(line)
            kind: Any = Refused if "error" in told else Learned if "learned" in told else Forecast
            found.append(msgspec.convert(told, kind))
        return found

    @staticmethod
    def _checked(response: httpx.Response) -> httpx.Response:
        if response.status_code >= 400:
            try:
                told = str(response.json()["error"])
            except (ValueError, KeyError, TypeError):
                told = response.text[:200]
            raise ServiceError(response.status_code, told)
        return response


class Client(_Requests):
    """Ask a service.

    Parameters
    ----------
    url : where the service is, "http://127.0.0.1:8000".
    key : an API key, if the service needs one.
    model : the name of a model; None means the default one.
    attempts : how often a request is sent at most, if no answer comes or the service is not available.
    timeout : seconds to wait for an answer.
    transport : for tests; see httpx.

    Refusals raise `ServiceError`, whose `status` is that of HTTP.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        model: str | None = None,
        *,
        attempts: int = 6,
        timeout: float = 10.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(url, key, model, attempts, timeout)
        self._http = httpx.Client(transport=transport, **self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _send(self, request: dict[str, Any]) -> httpx.Response:
        waits = self._waits()
        while True:
            try:
                response = self._http.request(**request)
                if response.status_code not in AGAIN:
                    return response
                wait = next(waits, None)
                if wait is None:
                    return response
            except httpx.TransportError:
                wait = next(waits, None)
                if wait is None:
                    raise
            time.sleep(wait)

    def predict(self, x: Any, id: str | None = None) -> Forecast:
        """The forecast of a row: a dictionary, or a list of values."""
        response = self._checked(self._send(self._post("/predict", self._predict(x, id))))
        return msgspec.json.decode(response.content, type=Forecast)

    def label(self, id: str, y: Any, weight: float | None = None) -> Learned:
        """Tell the label of an earlier forecast."""
        response = self._checked(self._send(self._post("/label", msgspec.json.encode(Label(id, y, weight)))))
        return msgspec.json.decode(response.content, type=Learned)

    def bulk(self, operations: Iterable[Predict | Label]) -> list[Reply]:
        """Many operations in one request: one reply each, refusals included."""
        response = self._send(self._post("/bulk", self._bulk(operations), "application/x-ndjson"))
        return self._replies(response if "ndjson" in response.headers["content-type"] else self._checked(response))

    def get(self, path: str) -> Any:
        """What the service says at a path, such as "/regret" or "/explain/order-1"."""
        return self._checked(self._send(self._get(path))).json()


class AsyncClient(_Requests):
    """`Client` for an event loop."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        model: str | None = None,
        *,
        attempts: int = 6,
        timeout: float = 10.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(url, key, model, attempts, timeout)
        self._http = httpx.AsyncClient(transport=transport, **self._options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, request: dict[str, Any]) -> httpx.Response:
        waits = self._waits()
        while True:
            try:
                response = await self._http.request(**request)
                if response.status_code not in AGAIN:
                    return response
                wait = next(waits, None)
                if wait is None:
                    return response
            except httpx.TransportError:
                wait = next(waits, None)
                if wait is None:
                    raise
            await asyncio.sleep(wait)

    async def predict(self, x: Any, id: str | None = None) -> Forecast:
        """The forecast of a row: a dictionary, or a list of values."""
        response = self._checked(await self._send(self._post("/predict", self._predict(x, id))))
        return msgspec.json.decode(response.content, type=Forecast)

    async def label(self, id: str, y: Any, weight: float | None = None) -> Learned:
        """Tell the label of an earlier forecast."""
        response = self._checked(await self._send(self._post("/label", msgspec.json.encode(Label(id, y, weight)))))
        return msgspec.json.decode(response.content, type=Learned)

    async def bulk(self, operations: Iterable[Predict | Label]) -> list[Reply]:
        """Many operations in one request: one reply each, refusals included."""
        response = await self._send(self._post("/bulk", self._bulk(operations), "application/x-ndjson"))
        return self._replies(response if "ndjson" in response.headers["content-type"] else self._checked(response))

    async def get(self, path: str) -> Any:
        """What the service says at a path, such as "/regret" or "/explain/order-1"."""
        return self._checked(await self._send(self._get(path))).json()
