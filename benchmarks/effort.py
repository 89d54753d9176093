"""What each effort of OnlineLogisticRegression costs per row and gains, and River's forests on the same streams.

    REGRETLESS_DATA=folder python -m benchmarks.effort --rows 2000            # all streams, without the forests
    REGRETLESS_DATA=folder python -m benchmarks.effort --rows 2000 --forests --streams segment vowel

Every row is forecast before its label is used. Log loss as in `benchmarks/quality.py`; errors are the share of rows
whose most probable class was wrong; time is that of the processor per row, to forecast and learn, in one block. The
forests are River's `AMFClassifier` (aggregated Mondrian forest) and `ARFClassifier` (adaptive random forest), with ten
trees each.

Streams: those of `benchmarks/quality.py` with numbers alone, and drawn ones whose best model is not linear.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import page, quality
from benchmarks.quality import Rows, first, mean_loss
from regretless import OnlineLogisticRegression

EFFORTS = ("low", "medium", "high")


def modes(n: int, d: int, K: int, each: int, noise: float, seed: int) -> Rows:
    """Classes that are mixtures of normal distributions: like vowels (d = 10, K = 11) or phonemes (d = 5, K = 2)."""
    rng = np.random.default_rng(seed)
    centres, y = 1.3 * rng.normal(size=(K, each, d)), rng.integers(0, K, n)
    return Rows(centres[y, rng.integers(0, each, n)] + noise * rng.normal(size=(n, d)), y, K)


def checkerboard(n: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    return Rows(X, (np.floor(4.0 * X).sum(axis=1) % 2).astype(np.int64), 2)


def friedman(n: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 10))
    score = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2 + 10.0 * X[:, 3] + 5.0 * X[:, 4]
    return Rows(X, (score + rng.normal(size=n) > 14.4).astype(np.int64), 2)


def steps(n: int, seed: int) -> Rows:
    """Loans by age and salary (Agrawal's second function), 5 % of the labels wrong, and seven columns of noise."""
    rng = np.random.default_rng(seed)
    salary, age = rng.uniform(20.0, 150.0, n), rng.uniform(20.0, 80.0, n)
    low, high = (
        np.select([age < 40.0, age < 60.0], [50.0, 75.0], 25.0),
        np.select([age < 40.0, age < 60.0], [100.0, 125.0], 75.0),
    )
    y = ((low < salary) & (salary < high)) ^ (rng.random(n) < 0.05)
    return Rows(np.column_stack([salary, age, rng.random((n, 7))]), y.astype(np.int64), 2)


STREAMS: dict[str, Callable[[int], Rows]] = {
    **{name: make for name, make in quality.STREAMS.items() if name != "category_5000"},
    "vowels": lambda seed: modes(990, 10, 11, 3, 0.7, seed),
    "phonemes": lambda seed: modes(5_000, 5, 2, 8, 0.5, seed),
    "checkerboard": lambda seed: checkerboard(10_000, seed),
    "friedman": lambda seed: friedman(10_000, seed),
    "steps": lambda seed: steps(10_000, seed),
}


class Score(NamedTuple):
    loss: float
    errors: float
    microseconds: float

    def __str__(self) -> str:
        return f"{self.loss:.4f} / {self.errors:.2%} / {self.microseconds:.0f}"


def score(p: np.ndarray, rows: Rows, seconds: float) -> Score:
    n = rows.y.size
    return Score(mean_loss(p[np.arange(n), rows.y]), float(np.mean(p.argmax(axis=1) != rows.y)), 1e6 * seconds / n)


def ours(rows: Rows, effort: str) -> Score:
    learner = OnlineLogisticRegression(classes=list(range(rows.K)), effort=effort)
    started = time.process_time()
    p = learner.predict_then_learn(rows.X, rows.y)
    return score(p, rows, time.process_time() - started)


def forest(rows: Rows, name: str) -> Score:
    from river import forest

    model: Any = getattr(forest, name)(10, seed=0)
    p, started = np.zeros((rows.y.size, rows.K)), time.process_time()
    for t, label in enumerate(rows.y.tolist()):
        x = dict(enumerate(rows.X[t].tolist()))
        for known, share in model.predict_proba_one(x).items():
            p[t, known] = share
        model.learn_one(x, label)
    seconds, total = time.process_time() - started, p.sum(axis=1, keepdims=True)
    return score(np.where(total > 0.0, p / np.where(total > 0.0, total, 1.0), 1.0 / rows.K), rows, seconds)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--streams", nargs="+", metavar="NAME", choices=STREAMS, help=f"of {', '.join(STREAMS)}")
    arguments.add_argument("--rows", type=int, help="use only the first rows of every stream")
    arguments.add_argument("--forests", action="store_true", help="run River's forests too")
    given = arguments.parse_args()
    players: dict[str, Callable[[Rows], Score]] = {
        effort: lambda rows, effort=effort: ours(rows, effort) for effort in EFFORTS
    }
    if given.forests:
        players |= {name: lambda rows, name=name: forest(rows, name) for name in ("AMFClassifier", "ARFClassifier")}
    body = []
    with threadpool_limits(1):
        for effort in EFFORTS:  # compiled before anything is timed
            ours(first(STREAMS["iris"](0), 60), effort)
            ours(first(STREAMS["phonemes"](0), 60), effort)
        for name in given.streams or STREAMS:
            if not quality.is_there(name):
                continue
            rows = first(STREAMS[name](0), given.rows)
            found = [play(rows) for play in players.values()]
            body.append([name, str(rows.y.size), str(rows.X.shape[1]), str(rows.K), *map(str, found)])
            print(" | ".join(body[-1]), flush=True)
    print("\nlog loss / errors / microseconds per row")
    print("\n".join(page.table(["stream", "rows", "features", "classes", *players], body, words=(0,))))


if __name__ == "__main__":
    main()
