"""Sparse streams: clicks with 2^18 columns, clicks of fields, and bags of words.

`clicks`: all entries are 1, one of them constant. The others are distinct and drawn from a power law; the labels come
from a logistic model with few weights, with about one in four positive.

    python -m benchmarks.clicks              # 100,000 clicks of fields and 20,000 bags of words, against VW and River
    python -m benchmarks.clicks --quick

prints log loss, time per row and memory of OnlineLogisticRegression and of Vowpal Wabbit's default. (Its members were
chosen on seed 0 of both streams; the table is of other seeds.)
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from regretless import OnlineLogisticRegression
from regretless.core.types import Array

FEATURES = 1 << 18
NONZEROS = 100
BLOCK = 1000
REPEATS = 3  # the smallest time counts; times are those of the processor, so that a busy machine can measure


class Block(NamedTuple):
    X: csr_array
    y: np.ndarray  # 0 or 1
    truth: Array  # the probability of y = 1


def distinct_ranks(rng: np.random.Generator, law: Array, shape: tuple[int, int]) -> np.ndarray:
    """Rows of distinct ranks: draws from the cumulative distribution, with duplicates drawn again."""
    ranks = np.sort(np.searchsorted(law, rng.random(shape)), axis=1)
    while True:
        repeated = ranks[:, 1:] == ranks[:, :-1]
        rows = np.flatnonzero(repeated.any(axis=1))
        if rows.size == 0:
            return ranks
        some, again = ranks[rows], repeated[rows]
        some[:, 1:][again] = np.searchsorted(law, rng.random(int(again.sum())))
        ranks[rows] = np.sort(some, axis=1)


def clicks(
    rows: int,
    nonzeros: int = NONZEROS,
    exponent: float = 1.1,
    density: float = 0.2,
    scale: float = 0.7,
    seed: int = 0,
) -> Iterator[Block]:
    """Blocks of the stream. Id 0 is the constant; rank r of the others is drawn with probability ~ r^-exponent."""
    rng = np.random.default_rng(seed)
    law = np.cumsum(np.arange(1, FEATURES) ** -exponent)
    law /= law[-1]
    id_of_rank = 1 + rng.permutation(FEATURES - 1)  # popular ids are anywhere, as after hashing
    weights = rng.normal(scale=scale, size=FEATURES) * (rng.random(FEATURES) < density)
    pilot = weights[id_of_rank[distinct_ranks(rng, law, (2000, nonzeros - 1))]].sum(axis=1)
    low, high = -30.0, 30.0
    for _ in range(50):  # find the constant's weight that makes one label in four positive
        weights[0] = 0.5 * (low + high)
        low, high = (weights[0], high) if expit(pilot + weights[0]).mean() < 0.25 else (low, weights[0])
    for start in range(0, rows, BLOCK):
        n = min(BLOCK, rows - start)
        ids = np.zeros((n, nonzeros), dtype=np.int32)
        ids[:, 1:] = np.sort(id_of_rank[distinct_ranks(rng, law, (n, nonzeros - 1))], axis=1)
        truth = expit(weights[ids].sum(axis=1))
        ends = np.arange(0, n * nonzeros + 1, nonzeros, dtype=np.int32)
        X = csr_array((np.ones(n * nonzeros), ids.ravel(), ends), shape=(n, FEATURES))
        yield Block(X, (rng.random(n) < truth).astype(np.int64), truth)


def fields(rows: int, n_fields: int = 30, positive: float = 0.1, seed: int = 0) -> Block:
    """Clicks of 30 fields with 4 to 200,000 ids each, drawn by Zipf's law and hashed to 2^18 columns; 10 % clicks."""
    rng = np.random.default_rng(seed)
    ids, logits = np.empty((rows, n_fields), dtype=np.int32), np.zeros(rows)
    for f, levels in enumerate(np.geomspace(4, 200_000, n_fields).astype(int)):
        law = np.cumsum(np.arange(1, levels + 1) ** -1.1)
        drawn = np.searchsorted(law / law[-1], rng.random(rows))
        logits += rng.normal(scale=0.35, size=levels)[drawn]
        ids[:, f] = rng.integers(0, FEATURES, size=levels)[drawn]
    low, high = -30.0, 30.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if expit(logits + middle).mean() < positive else (low, middle)
    truth = expit(logits + low)
    X = csr_array((np.ones(ids.size), ids.ravel(), np.arange(0, ids.size + 1, n_fields)), shape=(rows, FEATURES))
    X.sum_duplicates()
    X.data[:] = 1.0
    return Block(X, (rng.random(rows) < truth).astype(np.int64), truth)


def words(rows: int, vocabulary: int = 50_000, length: int = 60, seed: int = 0) -> Block:
    """Bags of words: log(1 + count) of words drawn by Zipf's law; one word in seven has a weight."""
    rng = np.random.default_rng(seed)
    law = np.cumsum(np.arange(1, vocabulary + 1) ** -1.05)
    weights = rng.normal(scale=0.7, size=vocabulary) * (rng.random(vocabulary) < 0.15)
    weights[:50] = 0.0
    ends = np.r_[0, np.cumsum(np.maximum(5, rng.poisson(length, size=rows)))]
    drawn = np.searchsorted(law / law[-1], rng.random(ends[-1]))
    X = csr_array((np.ones(ends[-1]), drawn, ends), shape=(rows, vocabulary))
    X.sum_duplicates()
    X.data = np.log1p(X.data)
    truth = expit(X @ weights)
    return Block(X, (rng.random(rows) < truth).astype(np.int64), truth)


def log_loss(p: Array, y: np.ndarray) -> float:
    p = np.clip(p, 1e-12, 1.0 - 1e-12)
    return float(-np.mean(np.where(y == 1, np.log(p), np.log1p(-p))))


def ours(stream: Block) -> dict[str, float]:
    """Blocks of 1000 rows: forecast and learn; then forecasts alone."""
    warm = OnlineLogisticRegression()
    warm.predict_then_learn(stream.X[:50], stream.y[:50], classes=[0, 1])
    warm.predict_proba(stream.X[:50])
    blocks = [slice(i, i + BLOCK) for i in range(0, len(stream.y), BLOCK)]
    pairs = [(stream.X[some], stream.y[some]) for some in blocks]
    learning, forecasting = [], []
    for _ in range(REPEATS):
        learner = OnlineLogisticRegression()
        began = time.process_time()
        p = np.concatenate([learner.predict_then_learn(X, y, classes=[0, 1])[:, 1] for X, y in pairs])
        between = time.process_time()
        for X, _ in pairs:
            learner.predict_proba(X)
        learning.append((between - began) / len(p))
        forecasting.append((time.process_time() - between) / len(p))
    memory = sum(array.nbytes for array in learner.state_) + learner._encoder.index.buckets.nbytes
    return {
        "loss": log_loss(p, stream.y),
        "learn": 1e6 * min(learning),
        "forecast": 1e6 * min(forecasting),
        "MiB": memory / 2**20,
    }


def wabbits(stream: Block) -> dict[str, float]:
    """Vowpal Wabbit's default with logistic loss on examples that are ready: learning forecasts too."""
    from vowpalwabbit import Workspace

    options = "--loss_function logistic --link logistic --quiet -b 18"
    X = stream.X
    maker = Workspace(options)
    examples = []
    for t, label in enumerate(stream.y):
        some = slice(X.indptr[t], X.indptr[t + 1])
        entries = zip(X.indices[some].tolist(), X.data[some].tolist(), strict=True)
        examples.append(maker.parse(f"{2 * label - 1} | " + " ".join(f"{j}:{x:.9g}" for j, x in entries)))
    examples = [each[0] if isinstance(each, list) else each for each in examples]
    learning, forecasting = [], []
    for _ in range(REPEATS):
        model: Any = Workspace(options)
        p = []
        began = time.process_time()
        for example in examples:
            model.learn(example)
            p.append(example.get_simplelabel_prediction())
        between = time.process_time()
        for example in examples:
            model.predict(example)
        learning.append((between - began) / len(p))
        forecasting.append((time.process_time() - between) / len(p))
    return {
        "loss": log_loss(np.array(p), stream.y),
        "learn": 1e6 * min(learning),
        "forecast": 1e6 * min(forecasting),
        "MiB": 2**18 * 16 / 2**20,  # four numbers of 4 bytes per column
    }


def dictionary_rows(n: int = 1000, keys: int = 20, repeats: int = 7) -> dict[str, float]:
    """Microseconds to predict and learn one dictionary of numbers."""
    rng = np.random.default_rng(0)
    rows = [{f"f{j}": x for j, x in enumerate(row)} for row in rng.normal(size=(n, keys)).tolist()]
    y = (rng.random(n) < 0.3).tolist()
    contenders: dict[str, Any] = {
        "OnlineLogisticRegression": OnlineLogisticRegression(sparse=True, classes=[False, True])
    }
    if find_spec("river"):
        from river import linear_model

        contenders["River's LogisticRegression"] = linear_model.LogisticRegression()
    found = dict.fromkeys(contenders, float("inf"))
    for _ in range(repeats):
        for name, model in contenders.items():
            model.learn_one(rows[0], y[0])
            began = time.process_time()
            for row, label in zip(rows, y, strict=True):
                model.predict_proba_one(row)
                model.learn_one(row, label)
            found[name] = min(found[name], 1e6 * (time.process_time() - began) / n)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows")
    part = 20 if parser.parse_args().quick else 1
    players = {"OnlineLogisticRegression": ours} | ({"Vowpal Wabbit": wabbits} if find_spec("vowpalwabbit") else {})
    print("| stream | learner | log loss | learn, us/row | forecast, us/row | MiB |")
    print("| --- | --- | --: | --: | --: | --: |")
    for name, stream in (("clicks", fields(100_000 // part, seed=1)), ("words", words(20_000 // part, seed=1))):
        for player, play in players.items():
            found = play(stream)
            numbers = f"{found['loss']:.4f} | {found['learn']:.2f} | {found['forecast']:.2f} | {found['MiB']:.1f}"
            print(f"| {name} | {player} | {numbers} |")
        print(f"| {name} | the truth | {log_loss(stream.truth, stream.y):.4f} | | | |")
    for player, took in dictionary_rows().items():
        print(f"dictionaries of 20 numbers, predict and learn: {player} {took:.1f} us")


if __name__ == "__main__":
    main()
