"""The sketched member of OnlineLogisticRegression on wide rows: log loss and time per row by its rank.

    python -m benchmarks.sketch
    python -m benchmarks.sketch --quick

Streams: clicks and bags of words (benchmarks/clicks.py), words of topics, scikit-learn's digits, a9a, and MNIST (odd
digits against even ones; all ten). The members' certainties and variances were chosen with two classes, on digits, on
the first 10,000 rows of MNIST and on other seeds of the drawn streams.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.datasets import load_digits

from benchmarks.clicks import BLOCK, fields, words
from regretless import OnlineLogisticRegression
from regretless.streams import load_dataset

RANKS = (0, 5, 10, 20)
REPEATS = 2  # the smallest time counts


def topics(rows: int, n_topics: int = 10, vocabulary: int = 5000, length: int = 60, seed: int = 0) -> tuple[Any, Any]:
    """Bags of words of a few topics each: log(1 + count). Topics have weights, and so has one word in three."""
    rng = np.random.default_rng(seed)
    law = np.arange(1, vocabulary + 1) ** -1.05
    said = np.array([rng.permutation(law) * rng.gamma(0.3, size=vocabulary) for _ in range(n_topics)])
    said = np.cumsum(said, axis=1) / said.sum(axis=1, keepdims=True)
    mixed = rng.dirichlet(np.full(n_topics, 0.1), size=rows)
    drawn = [[rng.multinomial(length, each)] for each in mixed]
    columns = [
        np.concatenate([np.searchsorted(said[k], rng.random(n)) for k, n in enumerate(counts)]) for (counts,) in drawn
    ]
    ends = np.arange(0, length * rows + 1, length)
    X = sparse.csr_array((np.ones(length * rows), np.concatenate(columns), ends), shape=(rows, vocabulary))
    X.sum_duplicates()
    X.data = np.log1p(X.data)
    weights = rng.normal(scale=0.3, size=vocabulary) * (rng.random(vocabulary) < 0.3)
    logits = mixed @ rng.normal(scale=3.0, size=n_topics) + X @ weights
    return X, rng.random(rows) < expit(logits - logits.mean())


def streams(part: int) -> Iterator[tuple[str, Any, Any]]:
    """Name, rows and labels."""
    clicked, said = fields(100_000 // part, seed=1), words(20_000 // part, seed=1)
    yield "clicks", clicked.X, clicked.y
    yield "words", said.X, said.y
    yield "words of 10 topics", *topics(20_000 // part, seed=1)
    yield "words of 40 topics", *topics(20_000 // part, n_topics=40, seed=1)
    X, y = load_digits(return_X_y=True)
    yield "digits, ten classes", sparse.csr_array(X), y
    for name, n in (("a9a", 30_000), ("mnist", 20_000)):
        data = load_dataset(name)
        X, y = sparse.csr_array(data.X)[: n // part], np.asarray(data.y)[: n // part]
        if name == "mnist":
            yield "MNIST, odd or even", X, y.astype(int) % 2
        yield name.replace("mnist", "MNIST, ten classes"), X, y


def play(X: Any, y: Any, rank: int) -> tuple[float, float]:
    """Log loss per row, and microseconds per row to forecast and learn blocks of 1000 rows."""
    classes, took = np.unique(y), []
    blocks = [(X[i : i + BLOCK], y[i : i + BLOCK]) for i in range(0, len(y), BLOCK)]
    for _ in range(REPEATS):
        learner = OnlineLogisticRegression(sparse=True, sketch=rank)
        learner.predict_then_learn(X[:40], y[:40], classes=classes)  # compiled, and the first turn of the sketch
        learner = OnlineLogisticRegression(sparse=True, sketch=rank)
        began = time.process_time()
        for some, labels in blocks:
            learner.predict_then_learn(some, labels, classes=classes)
        took.append((time.process_time() - began) / len(y))
    return learner.total_loss_ / len(y), 1e6 * min(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    print("| stream | rows | entries per row | " + " | ".join(f"r = {rank}" for rank in RANKS) + " |")
    print("| --- | --: | --: |" + " --: |" * len(RANKS))
    for name, X, y in streams(10 if parser.parse_args().quick else 1):
        found = [play(X, y, rank) for rank in RANKS]
        cells = " | ".join(f"{loss:.4f}, {took:.1f} us" for loss, took in found)
        print(f"| {name} | {len(y):,} | {X.nnz / len(y):.0f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
