"""Run a service by uvicorn: where it listens, how it ends, and what the garbage collector may do."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import uvicorn

from regretless.serve.api import make_app
from regretless.serve.collector import calm
from regretless.serve.keys import Keys
from regretless.serve.protocol import protocol_of
from regretless.serve.service import Service
from regretless.serve.traffic import Traffic

GRACE_SECONDS = 3
BACKLOG = 2048


def is_local(host: str) -> bool:
    """Whether an address is reached from this machine only.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def require_keys(host: str, keys: Path | None) -> None:
    """Refuse to listen publicly without keys."""
    if keys is None and not is_local(host):
        raise ValueError(
            f"--host {host} lets other machines in, and there are no keys: make some with `regretless keys add NAME "
            "--file keys.json` and pass --keys keys.json, or listen on 127.0.0.1."
        )


def listen(host: str, port: int) -> socket.socket:
    """A socket at this address; an OSError if it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(BACKLOG)  # from now on, requests wait instead of failing
    except OSError as error:
        found.close()
        raise ValueError(f"cannot listen on {host}, port {port} ({error.strerror}): choose another --port.") from None
    return found


@contextmanager
def surviving_signals() -> Iterator[None]:
    """uvicorn ends by raising the signal that stopped it once more: without this, no snapshot would be written."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught = {each: signal.signal(each, lambda *_: None) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, before in caught.items():
            signal.signal(each, before)


class Beside(uvicorn.Server):
    """A server in an event loop that has other work too, and handles signals itself."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


def _server_of(service: Service, keys: Path | None, kind: type[uvicorn.Server] = uvicorn.Server) -> uvicorn.Server:
    server: uvicorn.Server | None = None
    app = make_app(service, Keys(keys), Traffic(), ending=lambda: server is not None and server.should_exit)
    server = kind(
        uvicorn.Config(
            app,
            http=protocol_of(service.limits),
            ws="none",
            access_log=False,
            log_level="warning",
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            backlog=BACKLOG,
            lifespan="off",
        )
    )
    return server


def _address_of(host: str, place: socket.socket) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{place.getsockname()[1]}"


def run(
    service: Service,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    keys: Path | None = None,
    started: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until SIGTERM or Ctrl-C, then end within seconds, open streams included. The caller closes the service."""
    require_keys(host, keys)
    with listen(host, port) as place:
        server = _server_of(service, keys)
        for each in [*service.hosts.values()]:
            service.call(each.warm_up).result()
        calm()
        started(_address_of(host, place))
        with surviving_signals():
            server.run(sockets=[place])


@asynccontextmanager
async def serving(service: Service, *, host: str, port: int, keys: Path | None) -> AsyncIterator[str]:
    """Serve from this event loop until the block ends. Yields the address."""
    require_keys(host, keys)
    with listen(host, port) as place:
        server = _server_of(service, keys, Beside)
        task = asyncio.create_task(server.serve(sockets=[place]))
        try:
            yield _address_of(host, place)
        finally:
            server.should_exit = True
            await task
