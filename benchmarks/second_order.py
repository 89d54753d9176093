"""Second-order learners against their floor: a bare loop with one product and one low-rank update a row.

    python -m benchmarks.second_order            # everything, a few minutes
    python -m benchmarks.second_order --quick

Every figure is a ratio of times taken in the same run, alternating, the least of several repeats: machines are noisy.
`fresh` is the learner's compiled loop from its first row on, `running` the same loop on a learner that has seen the
stream before, `call` is `partial_fit` on a fresh learner, checks and labels included.
"""

from __future__ import annotations

import argparse
import math
import platform
import time
from collections.abc import Callable

import numba
import numpy as np

import noregret
from noregret import AIOLI, FOLKLORE, GAF, VovkAzouryWarmuth
from noregret._jit import kernel
from noregret._types import Array
from noregret.second_order import aioli, folklore
from noregret.second_order.curvature import SHARP
from noregret.second_order.surrogate import flush, helmert, product
from noregret.tally import TALLIES


@kernel
def floor_binary(P: Array, X: Array, v: Array) -> None:
    """v = P x, then P -= u u^T with u a multiple of v: nothing else."""
    n, d = X.shape
    for t in range(n):
        for i in range(d):
            v[i] = 0.0
        for j in range(d):
            xj = X[t, j]
            for i in range(d):
                v[i] += xj * P[j, i]
        for i in range(d):
            v[i] *= 1e-9
        for j in range(d):
            u = v[j]
            for i in range(d):
                P[j, i] -= u * v[i]


@kernel
def floor_multiclass(P: Array, X: Array, V: Array) -> None:
    """V = P (I ⊗ x), then P -= U^T U with U a multiple of V."""
    for t in range(X.shape[0]):
        product(P, X[t], V)
        for k in range(V.shape[0]):
            for i in range(V.shape[1]):
                V[k, i] *= 1e-9
        flush(P, V)


def least(repeats: int, **contenders: Callable[[], object]) -> dict[str, float]:
    """The least time of each contender, taken in turns after a warm-up."""
    for contender in contenders.values():
        contender()
    best = dict.fromkeys(contenders, math.inf)
    for _ in range(repeats):
        for name, contender in contenders.items():
            started = time.perf_counter()
            contender()
            best[name] = min(best[name], time.perf_counter() - started)
    return best


def a_stream(n: int, d: int, K: int) -> tuple[Array, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) / math.sqrt(d)
    y = np.argmax(X @ rng.normal(size=(d, K)) * 3 + rng.gumbel(size=(n, K)), axis=1)
    y[:K] = np.arange(K)
    return X, y


def binary(d: int, repeats: int) -> None:
    n = max(64, min(20_000, 40_000_000 // (d * d)))
    X, y = a_stream(n, d, 2)
    Y, weight, out = np.eye(2)[y], np.ones(n), np.empty((n, 2))
    target = y - 0.5

    def loop(P: Array, w: Array) -> None:
        aioli.run(P, w, np.zeros(TALLIES), X, Y, weight, 0.01, 10.0, SHARP, 0.0, 0.0, 1.0, out)

    P, w = np.eye(d) * 100, np.zeros(d)
    seconds = least(
        repeats,
        floor=lambda: floor_binary(np.eye(d), X, np.zeros(d)),
        fresh=lambda: loop(np.eye(d) * 100, np.zeros(d)),
        running=lambda: loop(P, w),
        call=lambda: AIOLI().partial_fit(X, y),
        vovk=lambda: VovkAzouryWarmuth().partial_fit(X, target),
    )
    floor = seconds["floor"]
    print(
        f"AIOLI    d={d:5d} K= 2  floor {1e9 * floor / n:10.0f} ns/row {4 * d * d * n / floor / 1e9:6.1f} GFLOP/s   "
        f"running {1e9 * seconds['running'] / n:8.0f} ns/row = {seconds['running'] / floor:4.2f} x   "
        f"fresh {seconds['fresh'] / floor:4.2f} x   call {seconds['call'] / floor:4.2f} x   "
        f"Vovk call {seconds['vovk'] / floor:4.2f} x"
    )


def multiclass(d: int, K: int, repeats: int) -> None:
    size = (K - 1) * d
    n = max(8, min(4000, 60_000_000 // (size * size * K)))
    X, y = a_stream(max(n, K), d, K)
    n = len(y)
    Y, weight, out = np.eye(K)[y], np.ones(n), np.empty((n, K))

    def loop(P: Array, w: Array) -> None:
        folklore.run(P, w, np.zeros(TALLIES), X, Y, weight, helmert(K), 0.2, 10.0, SHARP, 0.0, 0.0, out)

    P, w = np.eye(size) * 5, np.zeros(size)
    seconds = least(
        repeats,
        floor=lambda: floor_multiclass(np.eye(size), X, np.empty((K - 1, size))),
        fresh=lambda: loop(np.eye(size) * 5, np.zeros(size)),
        running=lambda: loop(P, w),
        call=lambda: FOLKLORE().partial_fit(X, y),
        gaf=lambda: GAF(expectation="sobol").partial_fit(X, y),
    )
    floor, work = seconds["floor"], 2 * size * size * K
    print(
        f"FOLKLORE d={d:5d} K={K:2d}  floor {1e9 * floor / n:10.0f} ns/row {work * n / floor / 1e9:6.1f} GFLOP/s   "
        f"running {1e9 * seconds['running'] / n:8.0f} ns/row = {seconds['running'] / floor:4.2f} x   "
        f"fresh {seconds['fresh'] / floor:4.2f} x   call {seconds['call'] / floor:4.2f} x   "
        f"GAF call {seconds['gaf'] / floor:4.2f} x"
    )


def one_row(d: int) -> None:
    X, y = a_stream(2000, d, 2)
    learner = AIOLI().partial_fit(X, y)
    label = y.tolist()

    def learn() -> None:
        for x, k in zip(X, label, strict=True):
            learner.learn_one(x, k)

    def predict() -> None:
        for x in X:
            learner.predict_proba_one(x)

    seconds = least(5, learn=learn, predict=predict)
    print(
        f"one row  d={d:5d}       learn_one {1e6 * seconds['learn'] / 2000:.1f} µs   "
        f"predict_proba_one {1e6 * seconds['predict'] / 2000:.1f} µs"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--quick", action="store_true", help="small sizes, few repeats")
    quick = arguments.parse_args().quick
    repeats = 5 if quick else 25
    print(
        f"noregret {noregret.__version__}, numba {numba.__version__}, numpy {np.__version__}, "
        f"Python {platform.python_version()}, {platform.processor() or platform.machine()}"
    )
    for d in (5, 20, 100) if quick else (5, 10, 20, 50, 100, 200, 500, 1000):
        binary(d, repeats)
    for d, K in ((5, 3), (20, 5)) if quick else ((5, 3), (20, 3), (100, 3), (20, 5), (100, 5), (20, 10), (64, 10)):
        multiclass(d, K, repeats)
    for d in (20, 100):
        one_row(d)


if __name__ == "__main__":
    main()
