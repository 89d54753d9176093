"""Boosting: its cost per row, and its errors compared with the boosting of other libraries.

    python -m benchmarks.boosting                       # the cost, and the errors of OnlineBoosting
    REGRETLESS_DATA=folder python -m benchmarks.boosting --against river vw sklearn --rows 2000

The stages' own work is O(N K); it is measured with one column, where the weak learners do almost nothing. Errors are
those of online forecasts in the second half of a stream, in one random order, with as many stages for everybody. The
constants of "ferns" were chosen on digits, segment and vehicle: pendigits, letter and satimage are new to them. River
boosts Hoeffding trees, by far the slowest here: --rows shortens the streams. Vowpal Wabbit boosts linear models, one
ensemble per class. scikit-learn's AdaBoost (SAMME) learns the first half as a batch.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from regretless import OGD, OnlineBoosting, load_dataset

STREAMS = ("digits", "pendigits", "letter", "satimage")
N = 20


def microseconds(learner: OnlineBoosting, X: np.ndarray, y: np.ndarray, n_classes: int) -> float:
    learner.partial_fit(X[:10], y[:10], classes=np.arange(n_classes))
    found = []
    for _ in range(3):
        started = time.perf_counter()
        learner.partial_fit(X, y)
        found.append(time.perf_counter() - started)
    return 1e6 * min(found) / len(y)


def cost() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1))
    print("us per row, one column: stages N by classes K")
    print("   N  " + "".join(f"{f'K = {K}':>10}" for K in (2, 4, 8, 16)))
    for n_stages in (5, 10, 20, 40, 80):
        row = [microseconds(OnlineBoosting("stump", n_stages), X, rng.integers(0, K, 2000), K) for K in (2, 4, 8, 16)]
        print(f"{n_stages:4}  " + "".join(f"{value:10.1f}" for value in row))


def ours(estimator: Any, n_stages: int = N) -> Callable[..., float]:
    def error(X: np.ndarray, y: np.ndarray, K: int) -> float:
        p = OnlineBoosting(estimator, n_stages).predict_then_learn(X, y, classes=range(K))
        return second_half(p.argmax(axis=1) != y)

    return error


def second_half(wrong: Any) -> float:
    return float(np.mean(np.asarray(wrong)[len(wrong) // 2 :]))


def river(kind: str) -> Callable[..., float]:
    def error(X: np.ndarray, y: np.ndarray, K: int) -> float:
        from river import ensemble, tree

        model = getattr(ensemble, kind)(tree.HoeffdingTreeClassifier(), n_models=N, seed=0)
        wrong = []
        for x, label in zip(X.tolist(), y.tolist(), strict=True):
            row = dict(enumerate(x))
            wrong.append(model.predict_one(row) != label)
            model.learn_one(row, label)
        return second_half(wrong)

    return error


def wabbit(X: np.ndarray, y: np.ndarray, K: int) -> float:
    from vowpalwabbit import Workspace

    model = Workspace(f"--oaa {K} --boosting {N} --quiet")
    wrong = []
    for x, label in zip(X.tolist(), y.tolist(), strict=True):
        line = "| " + " ".join(f"{j}:{value:.9g}" for j, value in enumerate(x) if value)
        wrong.append(model.predict(line) != label + 1)
        model.learn(f"{label + 1} {line}")
    return second_half(wrong)


def samme(depth: int) -> Callable[..., float]:
    def error(X: np.ndarray, y: np.ndarray, K: int) -> float:
        from sklearn.ensemble import AdaBoostClassifier
        from sklearn.tree import DecisionTreeClassifier

        half = len(y) // 2
        model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=depth), n_estimators=N, random_state=0)
        return second_half(model.fit(X[:half], y[:half]).predict(X) != y)

    return error


OURS = {
    "ferns": ours("ferns"),
    "one stage of ferns": ours("ferns", 1),
    "stumps": ours("stump"),
    "10 OGD": ours(OGD(), 10),
}
RIVALS = {
    "river": {"River AdaBoost": river("AdaBoostClassifier"), "River ADWIN boosting": river("ADWINBoostingClassifier")},
    "vw": {"VW --boosting": wabbit},
    "sklearn": {"batch SAMME, depth 1": samme(1), "batch SAMME, depth 2": samme(2)},
}


def errors(against: list[str], rows: int | None) -> None:
    learners = dict(OURS)
    for name in against:
        learners |= RIVALS[name]
    print(f"\nerrors in the second half; {N} stages")
    print(f"{'':22}" + "".join(f"{name:>11}" for name in STREAMS))
    streams = []
    for name in STREAMS:
        stream = load_dataset(name)
        order = np.random.default_rng(0).permutation(len(stream.y))[:rows]
        labels = np.searchsorted(stream.classes, np.asarray(stream.y))
        streams.append((np.ascontiguousarray(stream.X[order]), labels[order], len(stream.classes)))
    for name, error in learners.items():
        print(f"{name:22}", end="", flush=True)
        for each in streams:
            print(f"{error(*each):11.3f}", end="", flush=True)
        print()


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost and the errors of online boosting.")
    parser.add_argument("--against", nargs="*", default=[], choices=sorted(RIVALS), help="libraries to compare with")
    parser.add_argument("--rows", type=int, help="rows of each stream (default: all)")
    given = parser.parse_args()
    cost()
    errors(given.against, given.rows)


if __name__ == "__main__":
    main()
