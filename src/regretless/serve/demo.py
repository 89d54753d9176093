"""A demonstration: a service with a client of its own. Labels come late, and the world changes all the time."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Iterator

import httpx
import numpy as np

from regretless.serve.client import Client
from regretless.serve.models import ModelSpec
from regretless.serve.replies import Label, Predict, ServiceError
from regretless.serve.service import Service
from regretless.streams.synthetic import drifting

COLUMNS = ["age", "amount", "balance", "hour", "visits"]
CLASSES = ["no", "yes"]
MODELS = {"default": "OnlineLogisticRegression(drift='track')", "steady": "OnlineLogisticRegression(effort='low')"}
PER_SECOND = 40
TURN, TURNS = 4000, 50  # rows after which the world has turned once around
LONGEST_DELAY = 5.0  # seconds


def add_models(service: Service) -> None:
    """The models of the demonstration: one that follows a changing world, and one that does not."""
    for name, recipe in MODELS.items():
        service.add_model(ModelSpec.of(recipe, COLUMNS, CLASSES, name=name))


def world(seed: int) -> Iterator[tuple[dict[str, float], str]]:
    """Rows and labels without end."""
    some = drifting(TURNS * TURN, d=len(COLUMNS), turns=TURNS, radius=6.0, seed=seed)
    while True:
        for x, y in zip(some.X, some.y, strict=True):
            yield dict(zip(COLUMNS, x.round(4).tolist(), strict=True)), CLASSES[int(y > 0)]


class Demo:
    """The client: about `PER_SECOND` rows per second to every model, each labelled within `LONGEST_DELAY` seconds."""

    def __init__(self, url: str) -> None:
        self._clients = [Client(url, model=name) for name in MODELS]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="regretless-demo", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._stop.set()
        self._thread.join()
        for client in self._clients:
            client.close()

    def _run(self) -> None:
        rng = np.random.default_rng()
        waiting: list[tuple[float, str, str]] = []
        prefix = f"demo-{time.time_ns() // 1000}"
        for i, (x, y) in enumerate(world(int(rng.integers(1 << 30)))):
            asked: list[Predict | Label] = [Predict(x, f"{prefix}-{i}")]
            heapq.heappush(waiting, (time.monotonic() + rng.uniform(0.1, LONGEST_DELAY), f"{prefix}-{i}", y))
            while waiting and waiting[0][0] <= time.monotonic():
                _, id, label = heapq.heappop(waiting)
                asked.append(Label(id, label))
            for client in self._clients:
                try:
                    client.bulk(asked)
                except (ServiceError, httpx.TransportError, RuntimeError):  # the service ends
                    return
            if self._stop.wait(1.0 / PER_SECOND):
                return
