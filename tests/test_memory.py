"""A stream costs the memory of the state and of one block, however long it is."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from regretless import AIOLI, OGD, OnlineLogisticRegression, play

BLOCK, BLOCKS = 4096, 40  # one number kept per row would be more than a block


def blocks(d: int, n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """A generator that keeps nothing: each block is made when it is asked for."""
    for i in range(n):
        X = np.full((BLOCK, d), 0.1)
        X[:, i % d] = np.linspace(-1, 1, BLOCK)
        yield X, (X[:, 0] > 0).astype(np.int64)
        del X


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "d", "n"),
    [(AIOLI(), 24, BLOCKS), (OGD(), 24, BLOCKS), (OnlineLogisticRegression(radii=(1.0,)), 64, 4), (AIOLI(), 256, 4)],
    ids=["AIOLI", "OGD", "OnlineLogisticRegression", "panels"],
)
def test_peak_memory_is_that_of_the_state_and_one_block(learner: Any, d: int, n: int) -> None:
    play(clone(learner), blocks(d, 1), hindsight=False, progress=False, classes=[0, 1])  # compiled by then
    gc.collect()  # what compilation has left
    learner = clone(learner)
    tracemalloc.start()
    try:
        trace = play(learner, blocks(d, n), hindsight=False, progress=False, classes=[0, 1])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert trace.rows[-1] == n * BLOCK
    state = sum(array.nbytes for array in learner.state_)
    block = BLOCK * d * 8 + BLOCK * 8  # rows and labels
    assert peak <= 1.4 * (state + block), f"{peak / (state + block):.2f} times the state and a block"
