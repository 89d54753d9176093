"""The cost of evaluation: `play` compared with the learner's own `predict_then_learn`, on the same rows in turns.

    python -m benchmarks.evaluate
    python -m benchmarks.evaluate --rows 200000

Both forecast every row; `play` also computes mistakes, log loss, Brier score and calibration, and the certificate and
bound at ten checkpoints per decade. The best comparator in hindsight is not included: it is computed when the regret is
requested, and its time is printed below.
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc

import numpy as np
from sklearn.base import clone

from regretless import AIOLI, FOLKLORE, OGD, play


def stream(n: int, d: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    z = X @ (3 * rng.normal(size=(d, n_classes)))
    return X, np.argmax(z + rng.gumbel(size=z.shape), axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(f"{options.rows:,} rows, {options.repeats} repeats in turns, smallest and median")
    for learner, d, n_classes in (
        (AIOLI(), 20, 2), (AIOLI(), 50, 2), (FOLKLORE(), 20, 4), (OGD(), 20, 2),
    ):  # fmt: skip
        X, y = stream(options.rows, d, n_classes)
        classes = np.arange(n_classes)
        learner.fit(X[:10], y[:10], classes=classes)  # compiles
        play(clone(learner), X[:10], y[:10], classes=classes)
        own, played = [], []
        for _ in range(options.repeats):
            started = time.perf_counter()
            clone(learner).predict_then_learn(X, y, classes=classes)
            own.append(time.perf_counter() - started)
            started = time.perf_counter()
            trace = play(clone(learner), X, y, classes=classes, progress=False)
            played.append(time.perf_counter() - started)
        a, b = min(own), min(played)
        print(
            f"  {type(learner).__name__:9} d = {d:3}, K = {n_classes}: {1e9 * a / len(y):7.0f} ns per row alone, "
            f"{1e9 * b / len(y):7.0f} played: {b / a - 1:+.1%} (medians "
            f"{statistics.median(played) / statistics.median(own) - 1:+.1%})"
        )
    tracemalloc.start()
    play(clone(learner), X, y, classes=classes, progress=False)
    print(f"  peak memory of a game of {len(y):,} rows: {tracemalloc.get_traced_memory()[1] / 2**20:.1f} MiB")
    tracemalloc.stop()
    started = time.perf_counter()
    low, high = trace.regret[-1]
    found = f"{len(trace.rows)} comparators found in {time.perf_counter() - started:.1f} s"
    print(f"  {found}; regret in [{low:.4f}, {high:.4f}]")


if __name__ == "__main__":
    main()
