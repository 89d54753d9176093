"""Classes that nobody announced: digits 0 to 4 for 600 rows, and then all ten.

    python examples/new_classes.py

The learner is not told which labels there are. It keeps a little probability for one it has never seen, takes a new
label up when it comes, and forgets nothing. What is printed, per 200 rows: the classes known, and the share of errors.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from regretless import OnlineLogisticRegression


def main() -> None:
    """Learn the digits, the small ones first."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    early = order[y[order] < 5][:600]
    order = np.concatenate([early, np.setdiff1d(order, early, assume_unique=True)])
    X, y = X[order], np.array([f"digit {label}" for label in y[order]])

    learner = OnlineLogisticRegression()
    for first in range(0, len(y), 200):
        block = slice(first, first + 200)
        p = learner.predict_then_learn(X[block], y[block])  # one column for each class known after the block
        wrong = np.mean(learner.classes_[p.argmax(axis=1)] != y[block])
        print(f"rows {first:4d} to {first + len(p) - 1:4d}: {learner.classes_.size:2d} classes, {wrong:6.1%} errors")
    print()
    print(learner.report())


if __name__ == "__main__":
    main()
