"""(f) Threads: blocks of rows with BLAS threads as a user has them (unset), and with fixed numbers."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks.floors import a_stream
from benchmarks.page import goal, least_and_median, table
from benchmarks.timing import Contender, in_turns
from regretless import AIOLI, FOLKLORE, GAF, OnlineLogisticRegression, VovkAzouryWarmuth
from regretless.core.types import Array

TITLE = "Threads"
UNSET = "unset"
SLOWER = 1.15  # than the best fixed number, at most


def a_pass(learner: Any, X: Array, y: np.ndarray, threads: int | None) -> Callable[[], None]:
    """`partial_fit` of a new learner, with this limit (None: no limit)."""

    def run() -> None:
        if threads is None:
            clone(learner).partial_fit(X, y)
        else:
            with threadpool_limits(threads):
                clone(learner).partial_fit(X, y)

    return run


def one_size(learner: Any, d: int, K: int, n: int, budget: float) -> dict[str, Any]:
    X, y = a_stream(n, d, K)
    target = y - 0.5 if isinstance(learner, VovkAzouryWarmuth) else y
    fixed = [threads for threads in (1, 2, 4, 8) if threads <= (os.cpu_count() or 1)]
    contenders = {UNSET: Contender(n, a_pass(learner, X, target, None))}
    contenders |= {str(threads): Contender(n, a_pass(learner, X, target, threads)) for threads in fixed}
    times = in_turns(f"threads: {type(learner).__name__}, d = {d}, K = {K}", contenders, budget, most=25)
    best = min(times[str(threads)]["median_ns"] for threads in fixed)
    return {
        "learner": type(learner).__name__,
        "d": d,
        "K": K,
        "times": times,
        "of_best": times[UNSET]["median_ns"] / best,
    }


def measure(quick: bool) -> dict[str, Any]:
    """All numbers of the section."""
    budget = 0.3 if quick else 4.0
    sizes: list[tuple[Any, int, int, int]] = [(AIOLI(), 300, 2, 512), (FOLKLORE(), 64, 10, 64)]
    if not quick:
        sizes = [(AIOLI(), d, 2, n) for d, n in ((300, 2048), (500, 2048), (1000, 1024), (2000, 512), (3000, 256))]
        sizes += [(VovkAzouryWarmuth(), 1000, 2, 1024), (FOLKLORE(), 64, 10, 256), (FOLKLORE(), 200, 10, 64)]
        sizes += [(GAF(), 64, 10, 256), (OnlineLogisticRegression(classes=list(range(10))), 64, 10, 256)]
    lines = [one_size(*size, budget) for size in sizes]
    worst = max(lines, key=lambda line: float(line["of_best"]))
    what = f"unset threads over the best fixed number, at worst ({worst['learner']}, d = {worst['d']}; medians)"
    return {"lines": lines, "goals": [goal(what, worst["of_best"], SLOWER, False)]}


def markdown(result: dict[str, Any]) -> list[str]:
    """The section as Markdown."""
    fixed = [name for name in result["lines"][0]["times"] if name != UNSET]
    body = [
        [line["learner"], str(line["d"]), str(line["K"])]
        + [least_and_median(line["times"][name]) for name in (UNSET, *fixed)]
        + [f"{line['of_best']:.2f} x"]
        for line in result["lines"]
    ]
    return [
        "Time per row of `partial_fit`, smallest (median), by the number of BLAS threads. The library chooses its",
        "own number within the user's limit, by the sizes of the products (`core/kernels/products.py`).",
        "",
        *table(["learner", "d", "K", UNSET, *fixed, "unset / best"], body),
    ]
