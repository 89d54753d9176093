"""The cost of boosting per row, by stages and by classes, compared with the weak learners alone; and its gain.

    python -m benchmarks.boosting

The stages' own work is O(N K); it is measured with a weak learner that does almost nothing (one column). Mistakes are
for digits, in one order.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.datasets import load_digits

from regretless import OnlineBoosting


def microseconds(learner: OnlineBoosting, X: np.ndarray, y: np.ndarray, n_classes: int) -> float:
    learner.partial_fit(X[:10], y[:10], classes=np.arange(n_classes))
    found = []
    for _ in range(3):
        started = time.perf_counter()
        learner.partial_fit(X, y)
        found.append(time.perf_counter() - started)
    return 1e6 * min(found) / len(y)


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1))
    print("us per row, one column: stages N by classes K")
    sizes = (5, 10, 20, 40, 80)
    print("   N  " + "".join(f"{f'K = {K}':>10}" for K in (2, 4, 8, 16)))
    for N in sizes:
        row = [microseconds(OnlineBoosting(n_estimators=N), X, rng.integers(0, K, 2000), K) for K in (2, 4, 8, 16)]
        print(f"{N:4}  " + "".join(f"{value:10.1f}" for value in row))
    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(y))
    print("\ndigits, 1,797 rows: mistakes of the drawn labels")
    for weak in ("stump", "naive-bayes"):
        for N in (1, 5, 20, 60):
            learner = OnlineBoosting(weak, n_estimators=N).fit(X[order], y[order])
            print(f"  {weak:12} N = {N:2}: {learner.mistakes_ / len(y):6.1%}, largest edge {learner.edges_.max():.3f}")


if __name__ == "__main__":
    main()
