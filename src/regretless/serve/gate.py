"""Gate: the outermost ASGI application: keys, rates and sizes, and the paths that are asked most.

`/predict`, `/label` and `/bulk` are answered here, by plain ASGI: FastAPI takes two to three times as long for them.
All other requests pass to FastAPI (`api.py`) once key, rate and size are checked. `openapi.py` describes all paths.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from regretless.serve.host import ModelHost, encode
from regretless.serve.keys import Keys
from regretless.serve.replies import Label, Operation, Predict, Refused, Reply, ServiceError
from regretless.serve.service import BUSY, GROUP, LoopDoor, Service
from regretless.serve.traffic import Traffic

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

VERBS = ("predict", "label", "bulk")
PUBLIC = ("/", "/healthz", "/readyz", "/openapi.json")
JSON, LINES = b"application/json", b"application/x-ndjson"
MOST_ADDRESSES = 10_000


class Line(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A line of /bulk: a row x to forecast, or the label y of an earlier forecast."""

    id: str | None = None
    x: Any = msgspec.UNSET
    y: Any = msgspec.UNSET
    weight: float | None = None

    def operation(self) -> Operation:
        """What the line asks for."""
        if self.x is not msgspec.UNSET and self.y is msgspec.UNSET and self.weight is None:
            return Predict(self.x, self.id)
        if self.y is not msgspec.UNSET and self.x is msgspec.UNSET and self.id is not None:
            return Label(self.id, self.y, self.weight)
        raise ValueError("a line has x and perhaps an id, or an id, y and perhaps a weight.")


read_predict = msgspec.json.Decoder(Predict).decode
read_label = msgspec.json.Decoder(Label).decode
read_line = msgspec.json.Decoder(Line).decode


class Route(NamedTuple):
    """A path that is answered here."""

    verb: str
    path: str  # for the counts of traffic
    host: ModelHost


class Buckets:
    """Rates: each key, or address, may ask `rate` times per second, and twice that after a pause."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._left: dict[str, tuple[float, float]] = {}

    def allows(self, who: str) -> bool:
        """Take one from the bucket of this key or address."""
        clock = time.monotonic()
        left, then = self._left.get(who, (2.0 * self.rate, clock))
        left = min(2.0 * self.rate, left + (clock - then) * self.rate)
        if len(self._left) > MOST_ADDRESSES:
            self._left.clear()
        self._left[who] = (left - 1.0 if left >= 1.0 else left), clock
        return left >= 1.0


class Problem(Exception):
    """A request that is answered by an error."""

    def __init__(self, status: int, error: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(error)
        self.status, self.error, self.headers = status, error, headers


class Gate:
    """The ASGI application of a service; `rest` answers what is not answered here."""

    def __init__(self, service: Service, rest: App, keys: Keys, traffic: Traffic) -> None:
        self.service, self.rest, self.keys, self.traffic = service, rest, keys, traffic
        self.limits = service.limits
        self._buckets = Buckets(self.limits.requests_per_second) if self.limits.requests_per_second else None
        self._routes: dict[str, Route] = {}  # of as many models as
        self._models = 0
        self._door: LoopDoor | None = None
        self._collected: list[tuple[ModelHost, Sequence[Operation], asyncio.Future[list[Reply]]]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.rest(scope, receive, send)
            return
        started = time.perf_counter()
        path: str = scope["path"]
        if len(self.service.hosts) != self._models:  # a new model may be the default one
            self._routes, self._models = {}, len(self.service.hosts)
        route = self._routes.get(path) or self._find(path)
        name, status, n = path, 500, 1
        try:
            try:
                if route is None:
                    name, status = await self._pass_on(scope, receive, send)
                    return
                name = route.path
                status, kind, body, n = await self._answer(route, scope, receive)
                headers: tuple[tuple[bytes, bytes], ...] = ((b"retry-after", b"1"),) if status == 503 else ()
            except Problem as problem:
                status, kind, headers = problem.status, JSON, problem.headers
                body = encode(Refused(status, problem.error))
                name = route.path if route else "other"
            head = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *headers]
            await send({"type": "http.response.start", "status": status, "headers": head})
            await send({"type": "http.response.body", "body": body})
        finally:
            if not name.endswith("/live"):  # a stream lasts as long as someone listens
                self.traffic.add(name, status, time.perf_counter() - started, n)

    def _find(self, path: str) -> Route | None:
        """The route of a path, remembered once found."""
        parts = path.split("/")
        if len(parts) == 2 and parts[1] in VERBS:
            try:
                host, name = self.service.host(), path
            except ServiceError:
                return None
        elif len(parts) == 4 and parts[1] == "models" and parts[3] in VERBS and parts[2] in self.service.hosts:
            host, name = self.service.hosts[parts[2]], f"/models/{{name}}/{parts[3]}"
        else:
            return None
        found = self._routes[path] = Route(parts[-1], name, host)
        return found

    # ------------------------------------------------------------------ who may ask, and how much

    def _admit(self, scope: Scope, headers: dict[bytes, bytes], *needed: str) -> None:
        who = None
        if self.keys.file is not None:
            given = headers.get(b"authorization", b"")
            secret = given[7:] if given[:7].lower() == b"bearer " else headers.get(b"x-api-key")
            key = self.keys.find(None if secret is None else secret.decode("latin-1"))
            if key is None:
                raise Problem(
                    401,
                    "a key is needed: send it as `Authorization: Bearer KEY`.",
                    (b"www-authenticate", b"Bearer"),
                )
            for each in needed:
                if each not in key.scopes:
                    raise Problem(403, f"the key {key.name!r} may not do this: it needs the scope {each!r}.")
            who = key.name
        if self._buckets is not None:
            address = scope.get("client")
            if not self._buckets.allows(who or (address[0] if address else "")):
                raise Problem(
                    429, f"more than {self._buckets.rate:g} requests per second: wait.", (b"retry-after", b"1")
                )

    async def _body(self, receive: Receive, headers: dict[bytes, bytes], most: int) -> bytes:
        length = headers.get(b"content-length")
        if length is not None and (not length.isdigit() or int(length) > most):
            raise Problem(413, f"the body has more than {most} bytes.")
        parts: list[bytes] = []
        n = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Problem(400, "the connection ended within the body.")
            part: bytes = message.get("body", b"")
            n += len(part)
            if n > most:
                raise Problem(413, f"the body has more than {most} bytes.")
            if not message.get("more_body", False):
                return b"".join([*parts, part]) if parts else part
            parts.append(part)

    # ------------------------------------------------------------------ the paths that are asked most

    async def _answer(self, route: Route, scope: Scope, receive: Receive) -> tuple[int, bytes, bytes, int]:
        """Status, content type and body of the answer, and the number of its operations."""
        if scope["method"] != "POST":
            raise Problem(405, "use POST.", (b"allow", b"POST"))
        headers = dict(scope["headers"])
        verb = route.verb
        if verb == "bulk":
            return await self._bulk(route, scope, receive, headers)
        self._admit(scope, headers, verb)
        if not headers.get(b"content-type", b"").startswith(JSON):
            raise Problem(415, "send JSON, with the content type application/json.")
        body = await self._body(receive, headers, self.limits.body_bytes)
        try:
            operation: Operation = read_predict(body) if verb == "predict" else read_label(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            _require_plain(headers)
            raise Problem(422, f"the body is not a request for {route.path}: {error}.") from None
        reply = (await self._ask(route.host, (operation,)))[0]
        return reply.status, JSON, encode(reply), 1

    async def _bulk(
        self, route: Route, scope: Scope, receive: Receive, headers: dict[bytes, bytes]
    ) -> tuple[int, bytes, bytes, int]:
        self._admit(scope, headers, "predict", "label")
        if not headers.get(b"content-type", b"").startswith((LINES, JSON)):
            raise Problem(415, "send one JSON object per line, with the content type application/x-ndjson.")
        _require_plain(headers)
        body = await self._body(receive, headers, self.limits.bulk_bytes)
        lines = [line for line in body.split(b"\n") if line and not line.isspace()]
        if len(lines) > self.limits.bulk_rows:
            raise Problem(413, f"the body has {len(lines)} lines; the limit is {self.limits.bulk_rows}.")
        said: list[bytes] = []
        status = 200
        for at in range(0, len(lines), GROUP):
            replies: list[Reply] = []
            places, operations = [], []
            for line in lines[at : at + GROUP]:
                try:
                    operations.append(read_line(line).operation())
                    places.append(len(replies))
                    replies.append(BUSY)
                except (ValueError, RecursionError) as error:
                    replies.append(Refused(422, f"line {at + len(replies) + 1}: {error}"))
            if operations:
                for place, reply in zip(places, await self._ask(route.host, operations), strict=True):
                    replies[place] = reply
                    if reply.status == 503:
                        status = 503
            said += [encode(r) if type(r) is Refused else b'{"status":200,' + encode(r)[1:] for r in replies]
        said.append(b"")
        return status, LINES, b"\n".join(said), max(1, len(lines))

    def _ask(self, host: ModelHost, operations: Sequence[Operation]) -> asyncio.Future[list[Reply]]:
        """Collect what arrives in one turn of the loop, so that the writer is woken once."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Reply]] = loop.create_future()
        self._collected.append((host, operations, future))
        if len(self._collected) == 1:
            loop.call_soon(self._flush)
        return future

    def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        if self._door is None or self._door.loop is not loop:
            self._door = LoopDoor(loop)
        collected, self._collected = self._collected, []
        for host, operations, future in collected:
            if not self.service.submit(host, operations, self._door, future):
                future.set_result([BUSY] * len(operations))

    # ------------------------------------------------------------------ all others

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> tuple[str, int]:
        """Let FastAPI answer; returns the path for the counts, and the status."""
        headers, path, method = dict(scope["headers"]), scope["path"], scope["method"]
        if path not in PUBLIC and not path.startswith("/page/"):
            self._admit(scope, headers, "read" if method in ("GET", "HEAD", "OPTIONS") else "admin")
        if method not in ("GET", "HEAD"):
            receive = _after(await self._body(receive, headers, self.limits.body_bytes), receive)
        status = 500

        async def watch(message: dict[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        await self.rest(scope, receive, watch)
        route = scope.get("route")
        return getattr(route, "path", "other"), status


def _require_plain(headers: dict[bytes, bytes]) -> None:
    coding = headers.get(b"content-encoding", b"identity")
    if coding.lower() != b"identity":
        raise Problem(415, f"send the body as it is, not in the encoding {coding.decode('latin-1')[:50]!r}.")


def _after(body: bytes, receive: Receive) -> Receive:
    """`receive` of a request whose body has been read."""
    messages = iter([{"type": "http.request", "body": body}])

    async def receive_again() -> dict[str, Any]:
        return next(messages, None) or await receive()

    return receive_again
