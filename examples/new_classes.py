"""New classes in the middle of a stream: digits 0 to 4 for 600 rows, then all ten.

    python examples/new_classes.py

The classes are not declared. The learner reserves a small probability for unseen labels and adds a new class when its
first label appears. The script prints, for every 200 rows, the number of known classes and the error rate.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from regretless import OnlineLogisticRegression


def main() -> None:
    """Learn the digits, small ones first."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    early = order[y[order] < 5][:600]
    order = np.concatenate([early, np.setdiff1d(order, early, assume_unique=True)])
    X, y = X[order], np.array([f"digit {label}" for label in y[order]])

    learner = OnlineLogisticRegression()
    for first in range(0, len(y), 200):
        block = slice(first, first + 200)
        p = learner.predict_then_learn(X[block], y[block])  # one column per class known after the block
        wrong = np.mean(learner.classes_[p.argmax(axis=1)] != y[block])
        print(f"rows {first:4d} to {first + len(p) - 1:4d}: {learner.classes_.size:2d} classes, {wrong:6.1%} errors")
    print()
    print(learner.report())


if __name__ == "__main__":
    main()
