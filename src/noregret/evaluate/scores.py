"""The score of a stream of forecasts, added up block by block."""

from __future__ import annotations

import math

import numpy as np

from noregret._jit import kernel
from noregret._types import Array

ROWS, LOSS, WRONG, BRIER = range(4)  # log loss and Brier score of probabilities; squared and absolute error of numbers
BINS = 20  # of the reliability table: forecasts, how sure they were, how often they were right


def new_scores() -> tuple[Array, Array]:
    """Nothing played yet: four totals, and a row a bin."""
    return np.zeros(4), np.zeros((BINS, 3))


@kernel
def score_classes(
    forecasts: Array, Y: Array, probabilities: bool, log_loss: bool, scores: Array, reliability: Array
) -> None:
    """Add up errors, and for probabilities Brier score, the reliability table of the class named, and the log loss.

    A row of soft labels counts by its expectation. The log loss is half the work: `log_loss` is False where the learner
    adds it up itself.
    """
    n, K = forecasts.shape
    wrong = brier = loss = 0.0
    for t in range(n):
        winner = 0
        for k in range(1, K):
            if forecasts[t, k] > forecasts[t, winner]:
                winner = k
        wrong += 1.0 - Y[t, winner]
        if not probabilities:
            continue
        for k in range(K):
            p, y = forecasts[t, k], Y[t, k]
            brier += p * p - 2.0 * p * y + y
            if log_loss and y > 0.0:
                loss -= y * math.log(max(p, 1e-300))
        sure = forecasts[t, winner]
        i = min(int(sure * BINS), BINS - 1)
        reliability[i, 0] += 1.0
        reliability[i, 1] += sure
        reliability[i, 2] += Y[t, winner]
    scores[ROWS] += n
    scores[LOSS] += loss
    scores[WRONG] += wrong
    scores[BRIER] += brier


@kernel
def score_numbers(forecasts: Array, y: Array, scores: Array) -> None:
    """Add up squared and absolute errors."""
    for t in range(y.size):
        error = forecasts[t] - y[t]
        scores[ROWS] += 1.0
        scores[LOSS] += error * error
        scores[WRONG] += abs(error)
