r"""Mixing forecasts: the weighted mean of probabilities, with weights in proportion to exp(-loss).

The log loss is 1-mixable: the mixture suffers :math:`-\ln\sum_i v_i p_i(y)`, with weights v, and after
:math:`v_i \leftarrow v_i p_i(y)`, made to sum to 1, the losses telescope to at most :math:`\min_i L_i + \ln N`. For a
soft label :math:`\prod_k p_k^{y_k}` is concave in p, so the same holds.

To track change the weights are pulled to the uniform ones after row t, by 1/(t+1) (fixed share, with a share that
falls): a member that was bad for long is never more than :math:`\ln(N(t+1))` away from being heard again.
"""

from __future__ import annotations

import math

import numpy as np

from regretless.core.jit import inlined_kernel, kernel
from regretless.core.scores import score_row
from regretless.core.tally import ROWS, record
from regretless.core.types import Array

LEAST = 1e-300  # a probability that underflowed


@kernel
def mix(
    log_weight: Array,
    losses: Array,
    scores: Array,
    bins: Array,
    tally: Array,
    logits: Array,
    Y: Array,
    weight: Array,
    sizes: Array,
    shares: bool,
    reserves: bool,
    out: Array,
) -> None:
    """Mix the logits (N, n, K) of members into log probabilities `out`, row by row, and learn the weights.

    `reserves` says that 1/(t+2)^2 of row t's probability is kept for labels never seen: less than ln 2 in all.
    """
    N, n, K = logits.shape
    p, mixture, suffered, portion = np.empty((N, K)), np.empty((n, K)), np.empty(N), np.empty(N)
    for t in range(n):
        portions(log_weight, portion)
        for k in range(K):
            mixture[t, k] = 0.0
        for i in range(N):
            suffered[i] = suffer(logits, Y, i, t, p)
            for k in range(K):
                mixture[t, k] += portion[i] * p[i, k]
        loss = 0.0
        for k in range(K):
            out[t, k] = math.log(max(mixture[t, k], LEAST))
            loss -= Y[t, k] * out[t, k]
        if weight[t] == 0.0:
            continue
        score_row(mixture, Y, t, False, scores, bins)
        if reserves:
            loss -= math.log1p(-reserve(tally[ROWS]))
        record(tally, weight[t], weight[t] * loss, 0.0, sizes[t])
        top = -math.inf
        for i in range(N):
            losses[i] += weight[t] * suffered[i]
            log_weight[i] -= weight[t] * suffered[i]
            top = max(top, log_weight[i])
        for i in range(N):
            log_weight[i] -= top
        if shares:
            portions(log_weight, portion)
            share = 1.0 / (tally[ROWS] + 1.0)
            for i in range(N):
                log_weight[i] = math.log((1.0 - share) * portion[i] + share / N)


@kernel
def blend(log_weight: Array, logits: Array, out: Array) -> None:
    """What `mix` says of a block, all by the same weights."""
    N, n, K = logits.shape
    p, portion, none = np.empty((N, K)), np.empty(N), np.zeros((n, K))
    portions(log_weight, portion)
    for t in range(n):
        for k in range(K):
            out[t, k] = 0.0
        for i in range(N):
            suffer(logits, none, i, t, p)
            for k in range(K):
                out[t, k] += portion[i] * p[i, k]
        for k in range(K):
            out[t, k] = math.log(max(out[t, k], LEAST))


@inlined_kernel
def portions(log_weight: Array, portion: Array) -> None:
    """The weights, which sum to 1."""
    total = 0.0
    for i in range(portion.size):
        portion[i] = math.exp(log_weight[i])
        total += portion[i]
    for i in range(portion.size):
        portion[i] /= total


@inlined_kernel
def suffer(logits: Array, Y: Array, i: int, t: int, p: Array) -> float:
    """The log loss of member i on row t, and its probabilities in p[i]."""
    K = p.shape[1]
    top = logits[i, t, 0]
    for k in range(1, K):
        top = max(top, logits[i, t, k])
    total = 0.0
    loss = top
    for k in range(K):
        p[i, k] = math.exp(logits[i, t, k] - top)
        total += p[i, k]
        loss -= Y[t, k] * logits[i, t, k]
    for k in range(K):
        p[i, k] /= total
    return loss + math.log(total)


@kernel
def reserve(rows: float) -> float:
    """The probability kept for a label never seen, once so many rows were learned."""
    return 1.0 / ((rows + 2.0) * (rows + 2.0))
