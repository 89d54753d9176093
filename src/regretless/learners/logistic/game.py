"""The game of OnlineLogisticRegression over a block of rows: one compiled pass, one member after another."""

from __future__ import annotations

import math

import numpy as np

from regretless.core.jit import kernel
from regretless.core.types import Array
from regretless.learners.logistic import adagrad, certified, newton
from regretless.learners.logistic.adagrad import WEIGHTS
from regretless.learners.logistic.linear import forecast_block
from regretless.learners.logistic.members import Constants
from regretless.learners.logistic.mixing import MixtureState, blend, mix
from regretless.learners.logistic.newton import Step
from regretless.learners.logistic.scaling import rescale
from regretless.learners.logistic.state import LogisticState

AT_ONCE = 256  # rows that a member plays before the next one does: its matrices stay in the cache
ENTRIES = 2**22  # of the rows and forecasts that are held meanwhile

certified_run, newton_run, adagrad_run = certified.run, newton.run, adagrad.run
certified_forecast = certified.forecast


@kernel
def run(
    state: LogisticState, X: Array, Y: Array, weight: Array, constants: Constants, reserves: bool, out: Array
) -> None:
    """Forecast every row (log probabilities, one column per slot) before its label is used; learn rows of weight > 0.

    Members depend neither on one another nor on the mixture, so each may play some rows before the next member does:
    the result is the same to the bit. `reserves`: see `mix`.
    """
    steps, rates = constants.members.newton, constants.members.rates
    M, N, R = state.P.shape[0], state.matrices.shape[0], state.tables.shape[0]
    n, K, d = X.shape[0], Y.shape[1], state.tables.shape[3]
    mixture = MixtureState(state.log_weight, state.losses, state.scores, state.bins, state.tally)
    m = min(n, AT_ONCE, max(1, ENTRIES // (d + (M + N + R) * K)))
    Z, logits, sizes = np.empty((m, d)), np.empty((M + N + R, m, K)), np.empty(m)
    for start in range(0, n, max(m, 1)):
        stop = min(n, start + m)
        rows, Ys, ws, said = Z[: stop - start], Y[start:stop], weight[start:stop], logits[:, : stop - start]
        rescale(state.moments, X[start:stop], ws, rows)
        for t in range(stop - start):
            square = 0.0
            for j in range(d):
                square += rows[t, j] * rows[t, j]
            sizes[t] = math.sqrt(square)
        for i in range(M):
            certified_run(state, i, rows, Ys, ws, constants, logits[i, : stop - start])
        for i in range(N):
            step = Step(steps[i, 0], steps[i, 1], steps[i, 2])
            newton_run(state.matrices[i], state.weights[i], step, rows, Ys, ws, logits[M + i, : stop - start])
        for i in range(R):
            slope, mine = state.slopes[i : i + 1], logits[M + N + i, : stop - start]
            adagrad_run(state.tables[i], slope, rates[i], rows, Ys, ws, mine)
        mix(mixture, said, Ys, ws, sizes, constants.shares, reserves, out[start:stop])


@kernel
def forecast(state: LogisticState, X: Array, constants: Constants, out: Array) -> None:
    """What `run` forecasts for rows of weight 0. No array of the state is written: other threads may be reading it."""
    M, N, R = state.P.shape[0], state.weights.shape[0], state.tables.shape[0]
    n, K, d = X.shape[0], out.shape[1], state.tables.shape[3]
    m = min(n, AT_ONCE, max(1, ENTRIES // (d + (M + N + R) * K)))
    Z, logits, nothing = np.empty((m, d)), np.empty((M + N + R, m, K)), np.zeros(m)
    for start in range(0, n, max(m, 1)):
        stop = min(n, start + m)
        rows = Z[: stop - start]
        rescale(state.moments, X[start:stop], nothing, rows)
        for i in range(M):
            certified_forecast(state, i, rows, constants, logits[i, : stop - start])
        for i in range(N):
            forecast_block(state.weights[i], rows, logits[M + i, : stop - start])
        for i in range(R):
            forecast_block(state.tables[i, WEIGHTS], rows, logits[M + N + i, : stop - start])
        blend(state.log_weight, logits[:, : stop - start], out[start:stop])
