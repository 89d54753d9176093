"""How fast OnlineLogisticRegression is: against River's one logistic regression, and against one FOLKLORE.

    python -m benchmarks.automatic

All take the same rows in turns; least and median of the repeats.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from noregret import FOLKLORE, OnlineLogisticRegression


def stream(n: int, d: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    z = X @ rng.normal(size=(d, n_classes)) * 2 / np.sqrt(d)
    return X, np.argmax(z + rng.gumbel(size=z.shape), axis=1)


def seconds(run: Callable[[], Any]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def compare(title: str, n: int, runs: dict[str, Callable[[], Any]], repeats: int) -> None:
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            times[name].append(seconds(run))
    first = min(next(iter(times.values())))
    print(title)
    for name, found in times.items():
        least, median = 1e6 * min(found) / n, 1e6 * statistics.median(found) / n
        print(f"  {name:42} {least:8.2f} us a row (median {median:8.2f}); ours is {first / min(found):6.2f} of it")


def river_game(X: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    from river import linear_model

    rows = [dict(enumerate(row)) for row in X.tolist()]
    labels = [bool(label) for label in y]

    def run() -> None:
        model = linear_model.LogisticRegression()
        for row, label in zip(rows, labels, strict=True):
            model.predict_proba_one(row)
            model.learn_one(row, label)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    n = 20_000
    X, y = stream(n, 20, 2)
    learner = OnlineLogisticRegression()
    clone(learner).fit(X[:100], y[:100])  # compiles
    runs = {"ours, in blocks": lambda: clone(learner).predict_then_learn(X, y, classes=[0, 1])}
    try:
        runs["River's LogisticRegression, no scaler"] = river_game(X, y)
    except ImportError:
        print("River is not installed: it is left out.")
    compare(f"two classes, 20 features, {n:,} rows", n, runs, options.repeats)
    rows = 300
    X, y = stream(rows, 64, 10)
    declared = {"classes": np.arange(10)}
    clone(learner).fit(X[:20], y[:20], **declared)
    compare(
        f"ten classes, 64 features, {rows:,} rows",
        rows,
        {
            "ours, in blocks": lambda: clone(learner).predict_then_learn(X, y, **declared),
            "one FOLKLORE": lambda: FOLKLORE().predict_then_learn(X, y, **declared),
        },
        options.repeats,
    )


if __name__ == "__main__":
    main()
