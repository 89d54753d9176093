"""Traffic: requests, their status and latency; since the start, and per second for the last minutes.

Unlike the sums of a model it is not in the log, and starts from zero with the process.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, deque
from typing import Any

SECONDS = 300
EDGES = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0]  # of the latency, in seconds


class Traffic:
    """Counts of requests."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()  # (path, status)
        self.latency = [0] * (len(EDGES) + 1)
        self.latency_sum = 0.0
        self._second = int(time.time())
        self._now = [0, 0.0, 0.0]  # requests, sum and maximum of their seconds
        self._past: deque[tuple[int, int, float, float]] = deque(maxlen=SECONDS)

    def add(self, path: str, status: int, seconds: float, n: int = 1) -> None:
        """Count a request; `n` is the number of its operations."""
        self.requests[path, status] += 1
        self.latency[bisect_left(EDGES, seconds)] += 1
        self.latency_sum += seconds
        second = int(time.time())
        if second != self._second:
            self._turn(second)
        now = self._now
        now[0] += n
        now[1] += seconds
        if seconds > now[2]:
            now[2] = seconds

    def _turn(self, second: int) -> None:
        n, total, most = self._now
        self._past.append((self._second, int(n), total / n if n else 0.0, most))
        for empty in range(max(self._second + 1, second - SECONDS), second):
            self._past.append((empty, 0, 0.0, 0.0))
        self._second, self._now = second, [0, 0.0, 0.0]

    def recent(self) -> list[tuple[int, int, float, float]]:
        """For each of the last seconds: the second, operations, mean and largest latency of requests in seconds."""
        second = int(time.time())
        if second != self._second:
            self._turn(second)
        return [*self._past]

    def quantile(self, share: float) -> float | None:
        """An upper bound on this quantile of the latency since the start."""
        total = sum(self.latency)
        if not total:
            return None
        below = 0
        for edge, count in zip([*EDGES, float("inf")], self.latency, strict=True):
            below += count
            if below >= share * total:
                return edge if edge < float("inf") else None
        return None

    def summary(self) -> dict[str, Any]:
        """Totals since the start."""
        return {
            "requests": sum(self.requests.values()),
            "p50_seconds": self.quantile(0.5),
            "p99_seconds": self.quantile(0.99),
        }
