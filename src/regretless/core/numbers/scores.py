"""Scores of a stream of forecasts, summed block by block."""

from __future__ import annotations

import math

import numpy as np

from regretless.core.kernels.jit import inlined_kernel, kernel
from regretless.core.types import Array

# Rows, log loss (regression: squared error), wrong labels (regression: absolute error), Brier score.
N_SCORED, TOTAL_LOSS, N_WRONG, TOTAL_BRIER = range(4)
BINS = 20  # of the reliability table: number of forecasts, sum of confidences, number of right ones


def new_scores() -> tuple[Array, Array]:
    """Scores before the first row: four totals, and one row per bin."""
    return np.zeros(4), np.zeros((BINS, 3))


@inlined_kernel
def score_row(p: Array, Y: Array, t: int, log_loss: bool, scores: Array, reliability: Array) -> None:
    """Score row t of probabilities: error, Brier score, reliability of the likeliest class, and log loss.

    A soft label counts by its expectation. The log loss is half of the work: `log_loss` is False if the learner sums it
    itself.
    """
    winner = most_probable(p, t)
    scores[N_SCORED] += 1.0
    scores[N_WRONG] += 1.0 - Y[t, winner]
    brier = loss = 0.0
    for k in range(p.shape[1]):
        brier += p[t, k] * p[t, k] - 2.0 * p[t, k] * Y[t, k] + Y[t, k]
        if log_loss and Y[t, k] > 0.0:
            loss -= Y[t, k] * math.log(max(p[t, k], 1e-300))
    scores[TOTAL_BRIER] += brier
    scores[TOTAL_LOSS] += loss
    sure = p[t, winner]
    i = min(int(min(sure, 1.0) * BINS), BINS - 1) if sure > 0.0 else 0  # NaN is in the first bin, not outside
    reliability[i, 0] += 1.0
    reliability[i, 1] += p[t, winner]
    reliability[i, 2] += Y[t, winner]


@inlined_kernel
def most_probable(scores: Array, t: int) -> int:
    """The first class with the largest score in row t."""
    winner = 0
    for k in range(1, scores.shape[1]):
        if scores[t, k] > scores[t, winner]:
            winner = k
    return winner


@kernel
def score_classes(forecasts: Array, Y: Array, probabilities: bool, scores: Array, reliability: Array) -> None:
    """Add a block of rows. For scores that are not probabilities, only count errors."""
    for t in range(forecasts.shape[0]):
        if probabilities:
            score_row(forecasts, Y, t, True, scores, reliability)
        else:
            scores[N_SCORED] += 1.0
            scores[N_WRONG] += 1.0 - Y[t, most_probable(forecasts, t)]


@kernel
def score_numbers(forecasts: Array, y: Array, scores: Array) -> None:
    """Sum squared and absolute errors of forecasts (n, m)."""
    for t in range(y.shape[0]):
        scores[N_SCORED] += 1.0
        for k in range(y.shape[1]):
            error = forecasts[t, k] - y[t, k]
            scores[TOTAL_LOSS] += error * error
            scores[N_WRONG] += abs(error)
