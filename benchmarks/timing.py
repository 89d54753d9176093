"""Contenders take turns: in every round each runs once, so that a busy minute of the machine affects all."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

_began = time.perf_counter()


class Contender(NamedTuple):
    """A timed function: `run()` processes `rows` rows, and returns seconds (float) if it measures the time itself."""

    rows: int
    run: Callable[[], Any]


def progress(text: str) -> None:
    """One line on stderr, with the seconds since the start."""
    print(f"[{time.perf_counter() - _began:5.0f} s] {text}", file=sys.stderr, flush=True)


def seconds_of(contender: Contender) -> float:
    started = time.perf_counter()
    own = contender.run()
    seconds = time.perf_counter() - started
    return own if isinstance(own, float) else seconds


def in_turns(label: str, contenders: dict[str, Contender], budget: float, most: int = 15) -> dict[str, dict[str, Any]]:
    """Smallest and median nanoseconds per row of each, in three rounds after a warm-up, or more if time allows."""
    progress(label)
    for contender in contenders.values():
        contender.run()
    found: dict[str, list[float]] = {name: [] for name in contenders}
    started = time.perf_counter()
    for rounds in range(most):
        if rounds >= 3 and time.perf_counter() - started > budget:
            break
        for name, contender in contenders.items():
            found[name].append(1e9 * seconds_of(contender) / contender.rows)
    return {
        name: {
            "rows": contenders[name].rows,
            "repeats": len(times),
            "least_ns": min(times),
            "median_ns": statistics.median(times),
        }
        for name, times in found.items()
    }


def ratio(times: dict[str, dict[str, Any]], above: str, below: str) -> float:
    """The smallest time of one contender divided by that of another."""
    return float(times[above]["least_ns"] / times[below]["least_ns"])


def ratio_of_medians(times: dict[str, dict[str, Any]], above: str, below: str) -> float:
    return float(times[above]["median_ns"] / times[below]["median_ns"])
