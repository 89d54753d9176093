"""Plan: how many rows and orders a race has, so that it ends within a time budget."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

ORDERS = 10
FEWEST_ORDERS = 3  # to which orders are reduced before rows are
FEWEST_ROWS = 100
SMALL = 20_000  # rows in all orders of a race that is not measured first
PILOT = (200, 400)  # rows of the games that are measured: the first one compiles


class Plan(NamedTuple):
    """Rows of each stream, the number of orders, and the seconds that the race will take, if they were measured."""

    rows: list[int]
    orders: int
    seconds: float | None

    def to_json(self) -> list[object]:
        """As numbers and lists."""
        return [self.rows, self.orders, self.seconds]


def plan(
    rows: Sequence[int],
    orders: int,
    jobs: int,
    budget: float | None,
    measure: Callable[[int, int], float],
    fixed: tuple[bool, bool] = (False, False),
) -> Plan:
    """Choose rows and orders for a budget in seconds.

    Parameters
    ----------
    rows : the rows of each stream.
    orders : the number of orders that is wanted.
    measure : a function of a stream and a number of rows: plays all its learners and returns the seconds.
    fixed : whether the user has chosen the rows, and the orders.

    >>> plan([50_000], 10, 2, 60.0, lambda stream, rows: 0.001 * rows)
    Plan(rows=[40000], orders=3, seconds=60.0)
    """
    if budget is None or sum(rows) * orders <= SMALL:
        return Plan(list(rows), orders, None)
    seconds = []
    for stream, n in enumerate(rows):
        few, more = (min(n, each) for each in PILOT)
        measure(stream, few)
        seconds.append(measure(stream, more) / more * n / jobs)
    once = sum(seconds)
    if not fixed[1]:
        orders = min(orders, max(FEWEST_ORDERS, math.floor(budget / once)), orders)
    share = 1.0 if fixed[0] else min(1.0, budget / (once * orders))
    chosen = [min(n, max(FEWEST_ROWS, math.floor(share * n))) for n in rows]
    expected = sum(each * some / n for each, some, n in zip(seconds, chosen, rows, strict=True))
    return Plan(chosen, orders, expected * orders)


def timed(play: Callable[[], object]) -> float:
    """The seconds that a call takes."""
    start = time.perf_counter()
    play()
    return time.perf_counter() - start
