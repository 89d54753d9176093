"""The best constant forecast in hindsight, and the best sequence of experts with few shifts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.core.kernels.jit import kernel
from regretless.core.rows import validate
from regretless.core.types import Array
from regretless.theory.domains import WholeSpace
from regretless.theory.hindsight.problem import game


class Constant(NamedTuple):
    """The best constant forecast and its total loss."""

    forecast: Any  # probabilities (K,) under the log loss; otherwise a margin or a number
    loss: float


def best_constant(y: Any, loss: str = "log", sample_weight: Any = None, *, classes: Any = None) -> Constant:
    """The constant forecast of smallest total loss; under the log loss, the class frequencies.

    Examples
    --------
    >>> best_constant(["a", "b", "b", "b"]).forecast
    array([0.25, 0.75])
    >>> best_constant([1.0, 2.0, 9.0], loss="absolute")
    Constant(forecast=2.0, loss=8.0)
    """
    one = np.ones((len(y), 1))
    played = game(one, y, loss, WholeSpace(), 0.0, sample_weight, classes)
    weight, targets = played.weight, played.y
    if played.loss.name in ("logistic", "softmax"):
        mass = weight @ targets
        p = mass / mass.sum() if mass.sum() > 0 else np.full(mass.size, 1 / mass.size)
        used = mass > 0
        return Constant(p, float(-(mass[used] @ np.log(p[used]))))
    if played.loss.name == "squared":
        mean = float(np.average(targets, weights=weight)) if weight.any() else 0.0
        return Constant(mean, float(weight @ (targets - mean) ** 2))
    if played.loss.name == "absolute":
        order = np.argsort(targets, kind="stable")
        middle = np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)
        median = float(targets[order][min(int(middle), targets.size - 1)])
        return Constant(median, float(weight @ np.abs(targets - median)))
    found = played.solve(len(y), 1e-12)
    return Constant(float(found.w[0]) if found.w.size == 1 else found.w[:, 0], found.loss)


class Shifting(NamedTuple):
    """The best sequence of experts with a bounded number of shifts."""

    path: NDArray[np.int64]  # the expert of each row
    loss: float


def best_shifting_constants(losses: Any, k: int) -> Shifting:
    """The best sequence of experts, one per row, with at most k shifts, for an (n, N) array of losses.

    Dynamic programming over rows: O(n N k) time, and n N (k + 1) bytes of memory for backtracking.

    Examples
    --------
    >>> best_shifting_constants([[0, 1], [0, 1], [1, 0], [1, 0]], k=1)
    Shifting(path=array([0, 0, 1, 1]), loss=0.0)
    """
    table = np.ascontiguousarray(losses, dtype=np.float64)
    if table.ndim != 2 or 0 in table.shape or not np.isfinite(table).all():
        raise ValueError(f"losses has shape {table.shape}: pass finite numbers, (rounds, experts).")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 0:
        raise ValueError(f"k={k!r} must be an integer >= 0, the number of shifts.")
    path = np.empty(table.shape[0], dtype=np.int64)
    total = shifting(validate.writable(table), int(min(k, table.shape[0] - 1)), path)
    return Shifting(path, float(total))


@kernel
def shifting(losses: Array, k: int, path: NDArray[np.int64]) -> float:
    """Write the best path to `path`; returns its total loss.

    best[s, i] is the smallest total of the rows so far that ends at expert i after s shifts. It comes from i with s
    shifts or, after a shift now, from the best of all experts with s - 1.
    """
    n, N = losses.shape
    best, shifted = np.full((k + 1, N), np.inf), np.zeros((n, k + 1, N), dtype=np.bool_)
    leader = np.zeros((n, k + 1), dtype=np.int64)
    for i in range(N):
        best[0, i] = losses[0, i]
    for t in range(1, n):
        for s in range(k, -1, -1):  # downwards: best[s - 1] still belongs to the previous row
            top = 0
            if s > 0:
                for i in range(1, N):
                    if best[s - 1, i] < best[s - 1, top]:
                        top = i
                leader[t, s] = top
            for i in range(N):
                if s > 0 and best[s - 1, top] < best[s, i]:
                    best[s, i] = best[s - 1, top]
                    shifted[t, s, i] = True
                best[s, i] += losses[t, i]
    s, i = 0, 0
    for a in range(k + 1):
        for b in range(N):
            if best[a, b] < best[s, i]:
                s, i = a, b
    total = best[s, i]
    for t in range(n - 1, -1, -1):
        path[t] = i
        if shifted[t, s, i]:
            i = leader[t, s]
            s -= 1
    return total
