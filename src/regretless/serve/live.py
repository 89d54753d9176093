"""Server-sent events: what changed, once per second, to everyone who listens. `page_data.py` describes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from regretless.serve.host import encode
from regretless.serve.log import now
from regretless.serve.page_data import forecast_of, point_now, summary
from regretless.serve.service import Service
from regretless.serve.traffic import Traffic

EVERY = 1.0  # seconds
STEP = 0.1  # seconds between two looks at whether the service ends


async def events(
    service: Service, traffic: Traffic, ending: Callable[[], bool], only: str | None = None
) -> AsyncIterator[bytes]:
    """The stream of one listener."""
    seen: dict[str, tuple[int, int]] = {}  # model -> forecasts and labels
    shown: dict[str, dict[str, bool]] = {}  # model -> id -> labelled
    second = 0
    yield b"retry: 2000\n\n"
    while not ending():

        def look() -> dict[str, Any]:
            return {
                name: _changes(service, name, seen, shown) for name in service.hosts if only is None or name == only
            }

        changed = {name: found for name, found in (await service.read(look)).items() if found}
        recent = [each for each in traffic.recent() if each[0] > second]
        if recent:
            second = recent[-1][0]
        if changed or any(each[1] for each in recent):
            data = {"models": changed, "traffic": traffic.summary() | {"seconds": recent}}
            yield b"event: update\ndata: " + encode(data) + b"\n\n"
        else:
            yield b": nothing new\n\n"
        for _ in range(round(EVERY / STEP)):
            if ending():
                return
            await asyncio.sleep(STEP)


def _changes(
    service: Service, name: str, seen: dict[str, tuple[int, int]], shown: dict[str, dict[str, bool]]
) -> dict[str, Any] | None:
    """What is new about a model; None if nothing is."""
    host = service.hosts[name]
    state = host.sums.forecasts, host.version
    if seen.get(name) == state:
        return None
    seen[name] = state
    before = shown.get(name, {})
    shown[name] = {entry.id: entry.y is not None for entry in host.recent}
    new = [entry for entry in host.recent if before.get(entry.id) is not (entry.y is not None)]
    return summary(host, service.seq) | {
        "point": point_now(host, now()),
        "last": [forecast_of(host, entry) for entry in new],
    }
