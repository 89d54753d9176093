"""The game of OnlineLogisticRegression over a block of rows: one compiled pass, members one after another."""

from __future__ import annotations

import math

import numpy as np

from regretless.core.jit import kernel
from regretless.core.types import Array
from regretless.learners.logistic import adagrad, newton
from regretless.learners.logistic.members import VIRTUAL_WEIGHT
from regretless.learners.logistic.mixing import blend, mix
from regretless.learners.logistic.scaling import rescale
from regretless.learners.second_order import aioli, folklore
from regretless.learners.second_order.curvature import SHARP
from regretless.learners.second_order.rounding import ROOT
from regretless.learners.second_order.surrogate import four_pay, in_four

AT_ONCE = 256  # rows that a member meets before the next one does: its matrices stay in the cache
ENTRIES = 2**22  # of rows and forecasts that are kept meanwhile

newton_run, adagrad_run, aioli_run, folklore_run = newton.run, adagrad.run, aioli.run, folklore.run
newton_forecast, adagrad_forecast = newton.forecast_block, adagrad.forecast_block
aioli_forecast, folklore_forecast = aioli.forecast_block, folklore.forecast_block


@kernel
def play(
    moments: Array,
    P: Array,
    w: Array,
    tallies: Array,
    matrices: Array,
    weights: Array,
    tables: Array,
    slopes: Array,
    log_weight: Array,
    losses: Array,
    slots: Array,
    scores: Array,
    bins: Array,
    tally: Array,
    X: Array,
    Y: Array,
    weight: Array,
    radii: Array,
    regularization: Array,
    steps: Array,
    rates: Array,
    H: Array,
    shares: bool,
    reserves: bool,
    out: Array,
) -> None:
    """Forecast every row (log probabilities, a column a slot) before its label is used; learn from rows of weight > 0.

    Members do not depend on one another nor on the mixture, so each may run over some rows before the next does: what
    comes out is the same, bit for bit.
    """
    M, N, R = P.shape[0], matrices.shape[0], tables.shape[0]
    n, K, d = X.shape[0], Y.shape[1], tables.shape[3]
    m = min(n, AT_ONCE, max(1, ENTRIES // (d + (M + N + R) * K)))
    Z, logits, sizes = np.empty((m, d)), np.empty((M + N + R, m, K)), np.empty(m)
    for start in range(0, n, max(m, 1)):
        stop = min(n, start + m)
        rows, Ys, ws = Z[: stop - start], Y[start:stop], weight[start:stop]
        rescale(moments, X[start:stop], ws, rows)
        for t in range(stop - start):
            square = 0.0
            for j in range(d):
                square += rows[t, j] * rows[t, j]
            sizes[t] = math.sqrt(square)
        for i in range(M):
            said = logits[i, : stop - start]
            if K == 2:
                lam, B, a = 0.5 * regularization[i], 2.0 * radii[i], VIRTUAL_WEIGHT
                if four_pay(d, stop - start) and tallies[i, ROOT] == 0.0:
                    four = in_four(P[i])
                    aioli_run(P[i], w[i], tallies[i], rows, Ys, ws, lam, B, SHARP, 0.0, 0.0, a, four, said)
                else:
                    aioli_run(P[i], w[i], tallies[i], rows, Ys, ws, lam, B, SHARP, 0.0, 0.0, a, None, said)
            else:
                folklore_run(
                    P[i], w[i], tallies[i], rows, Ys, ws, H, regularization[i], radii[i], SHARP, 0.0, 0.0, said
                )
        for i in range(N):
            said = logits[M + i, : stop - start]
            newton_run(matrices[i], weights[i], steps[i, 0], steps[i, 1], steps[i, 2], rows, Ys, ws, said)
        for i in range(R):
            adagrad_run(tables[i], slopes, i, rates[i], rows, Ys, ws, logits[M + N + i, : stop - start])
        said = logits[:, : stop - start]
        mix(log_weight, losses, scores, bins, tally, said, Ys, ws, sizes, shares, reserves, out[start:stop])


@kernel
def forecast(
    moments: Array,
    P: Array,
    w: Array,
    tallies: Array,
    weights: Array,
    tables: Array,
    log_weight: Array,
    X: Array,
    H: Array,
    out: Array,
) -> None:
    """What `play` forecasts of rows of weight 0, from a state that other threads may be reading too."""
    M, N, R = P.shape[0], weights.shape[0], tables.shape[0]
    n, K, d = X.shape[0], out.shape[1], tables.shape[3]
    m = min(n, AT_ONCE, max(1, ENTRIES // (d + (M + N + R) * K)))
    Z, logits, nothing = np.empty((m, d)), np.empty((M + N + R, m, K)), np.zeros(m)
    for start in range(0, n, max(m, 1)):
        stop = min(n, start + m)
        rows = Z[: stop - start]
        rescale(moments, X[start:stop], nothing, rows)
        for i in range(M):
            said = logits[i, : stop - start]
            if K == 2:
                aioli_forecast(P[i], w[i], tallies[i], rows, VIRTUAL_WEIGHT, said)
            else:
                folklore_forecast(P[i], w[i], tallies[i], rows, H, said)
        for i in range(N):
            newton_forecast(weights[i], rows, logits[M + i, : stop - start])
        for i in range(R):
            adagrad_forecast(tables[i], rows, logits[M + N + i, : stop - start])
        blend(log_weight, logits[:, : stop - start], out[start:stop])
