r"""AIOLI's forecast by gradient descent: Algorithm 2 of the paper, for `AIOLI(solver="descent")`.

With A = LL^T and r = L^T theta, the paper descends from 0 in the plane of :math:`L^{-1}b` and :math:`L^{-1}x`,

.. math:: r \leftarrow r - \gamma\,(2r - 2L^{-1}b + \tanh(\tfrac12 r \cdot L^{-1}x)\, L^{-1}x),
          \qquad \gamma = \frac{\lambda}{4\lambda + R^2},

in coordinates from an eigendecomposition. In the coordinates :math:`r = \alpha L^{-1}b + \beta L^{-1}x` the same steps
need only m and q, and neither L nor the decomposition: :math:`\theta \cdot x = \alpha m + \beta q`.

The state is that of AIOLI in its root form (roots.py). The forecast is not exact, so e = (forecast margin) - m is not
-q T / 2 as in `aioli.run_rows`; the certificate holds for every forecast.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from regretless.core.kernels.jit import kernel
from regretless.core.numbers.tally import ROWS, WIDEST, record
from regretless.core.rows import validate
from regretless.core.types import Array
from regretless.learners.second_order.algebra import dot
from regretless.learners.second_order.curvature import kappa_of
from regretless.learners.second_order.forecasts import tanh_of_half
from regretless.learners.second_order.roots import shrink
from regretless.learners.second_order.rounding import ROOT, begin_root, charge, note_jump, watch
from regretless.learners.second_order.surrogate import SurrogateState, look_one, product_one

LOG_2 = math.log(2.0)
LARGEST_REACH = 1e5  # of R^2 / lambda, for steps=None: some millions of steps per row
BY_RULE = -1  # steps=None


class DescentConstants(NamedTuple):
    """The constants of the kernels: those of AIOLI, and the number of steps."""

    radius: float
    regularization: float
    code: int  # the curvature rule
    number: float  # the curvature, if it is given as a number
    feature_bound: float  # 0: each row uses its own norm
    virtual_weight: float  # 1
    steps: int  # of gradient descent per row, or BY_RULE


def constants_of(shared: Any, steps: int | None) -> DescentConstants:
    """The constants, from those that all surrogate classifiers share."""
    if steps is not None:
        return DescentConstants._make([*shared, 1.0, validate.whole("steps", steps, 0)])
    reach = shared.feature_bound**2 / shared.regularization
    if reach > LARGEST_REACH:
        raise ValueError(
            f"feature_bound^2 / regularization = {reach:.4g}: gradient descent would take millions of steps per row. "
            f'Set steps, or use solver="exact"; up to {LARGEST_REACH:g} the number of steps is chosen here.'
        )
    return DescentConstants._make([*shared, 1.0, BY_RULE])


def largest_row(constants: Any) -> float:
    """The largest |x| for which the number of steps is chosen here."""
    by_rule = isinstance(constants, DescentConstants) and constants.steps == BY_RULE
    return math.sqrt(LARGEST_REACH * constants.regularization) if by_rule else math.inf


@kernel
def steps_for(row: float, reach: float) -> int:
    """Enough steps for an error of 1 / (t (t + 1)) in the regret of row t = 1, 2, ...; reach = R^2 / lambda."""
    error = 2.0 * row * row * (row + 1.0) * reach * ((row + 1.0) * reach / 8.0 + 1.0)
    return math.ceil((2.0 + 0.5 * reach) * math.log(error)) if error > 1.0 else 0


@kernel
def descend(m: float, q: float, reach: float, steps: int) -> float:
    """The margin after that many steps of gradient descent from 0."""
    size = 1.0 / (4.0 + reach)
    alpha, beta = 0.0, 0.0
    for _ in range(steps):
        T = tanh_of_half(alpha * m + beta * q)
        alpha -= size * (2.0 * alpha - 2.0)
        beta -= size * (2.0 * beta + T)
    return alpha * m + beta * q


@kernel
def forecast(m: float, q: float, square: float, tally: Array, constants: DescentConstants) -> float:
    """The margin of a row with |x|^2 = square. R is the declared bound, or the largest norm up to this row."""
    bound, steps = constants.feature_bound, constants.steps
    R2 = bound * bound if bound > 0.0 else max(square, tally[WIDEST] * tally[WIDEST])
    reach = R2 / constants.regularization
    return descend(m, q, reach, steps_for(tally[ROWS] + 1.0, reach) if steps == BY_RULE else steps)


@kernel
def run(state: SurrogateState, X: Array, Y: Array, weight: Array, constants: DescentConstants, out: Array) -> None:
    """Play a block: forecast by descent, see the label, compute the loss, update."""
    S, w, tally = state
    lam = constants.regularization
    f = np.empty(w.size)
    for t in range(X.shape[0]):
        if tally[ROOT] == 0.0 and weight[t] != 0.0:
            begin_root(S, tally)
        m, square = product_one(S, w, X, t, f)
        q = look_one(f, X, t) if tally[ROOT] == 0.0 else dot(f, f)
        margin = forecast(m, q, square, tally, constants)
        out[t, 0] = -0.5 * margin
        out[t, 1] = 0.5 * margin
        if weight[t] == 0.0:
            continue
        y, T, size = Y[t, 1], tanh_of_half(margin), math.sqrt(square)
        c = 0.25 * weight[t] * kappa_of(constants, size, 0.5, 2) * (1.0 - T * T)
        g = weight[t] * (0.5 * T + (0.5 - y))
        e = margin - m
        shrunk = 1.0 / (1.0 + c * q)
        step = (c * e - 0.5 * g) * shrunk
        first, second = e * ((g - c * e) * shrunk), 0.25 * g * q * (g * shrunk)
        loss = max(margin, 0.0) - y * margin - math.log(0.5 + 0.5 * abs(T))
        shrink(S, w, X[t], f, q, c, step)
        note_jump(tally, w.size, c * q, c * square / lam)
        record(tally, weight[t], weight[t] * loss, first + second, size)
        charge(tally, c * square / lam, step * step * q, weight[t] * (LOG_2 + abs(m)) + abs(first) + second)
        watch(S, tally)


@kernel
def forecast_block(state: SurrogateState, X: Array, constants: DescentConstants, out: Array) -> None:
    """The forecasts of a block of rows, all from the same state."""
    P, w, tally = state
    v = np.empty(w.size)
    for t in range(X.shape[0]):
        m, square = product_one(P, w, X, t, v)
        q = look_one(v, X, t) if tally[ROOT] == 0.0 else dot(v, v)
        margin = forecast(m, q, square, tally, constants)
        out[t, 0] = -0.5 * margin
        out[t, 1] = 0.5 * margin
