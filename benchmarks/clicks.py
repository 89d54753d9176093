"""A sparse stream similar to clicks: 2^18 features, all entries 1, one of them constant.

The other entries are distinct and drawn from a power law; the labels come from a logistic model with few weights, with
about one in four positive.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from regretless.core.types import Array

FEATURES = 1 << 18
NONZEROS = 100
BLOCK = 1000


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
