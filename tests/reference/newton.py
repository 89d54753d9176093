"""Minimise a strongly convex function by damped Newton steps, and prove the answer right.

Everything is evaluated in extended precision (``numpy.longdouble``); only the linear systems are
solved in double precision and then corrected by iterative refinement. On return the gradient is
asserted to be rounding noise and the remaining Newton step |H^{-1} gradient| to be below 1e-12
(or, for Hessians of condition number beyond 1e6, what the arithmetic's precision allows):
the Hessians here (constant, or of logistic losses) change by a factor of at most e^{2 |dz|_inf} when
the logits change by dz, so a step that short is the distance to the minimum.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Long = np.longdouble
Array = NDArray[np.longdouble]
#: W (k x d) -> value, gradient (k x d), Hessian (kd x kd, row-major vec(W)).
Objective = Callable[[Array], tuple[np.longdouble, Array, Array]]


def long(values: ArrayLike) -> Array:
    """A fresh extended-precision array."""
    return np.array(values, dtype=Long)


def norm(values: Array) -> np.longdouble:
    """The Euclidean (Frobenius) norm, in extended precision."""
    return Long(np.sqrt(np.sum(values * values)))


def solve(matrix: Array, right: Array) -> Array:
    """matrix^{-1} right, refined with residuals in extended precision."""
    double = matrix.astype(np.float64)
    answer = long(np.linalg.solve(double, right.astype(np.float64)))
    for _ in range(4):
        residual = right - matrix @ answer
        answer = answer + np.linalg.solve(double, residual.astype(np.float64))
    return answer


def total(*terms: Objective) -> Objective:
    """The sum of several objectives."""

    def objective(W: Array) -> tuple[np.longdouble, Array, Array]:
        value = Long(0)
        gradient = np.zeros_like(W)
        hessian = np.zeros((W.size, W.size), dtype=Long)
        for term in terms:
            v, g, h = term(W)
            value, gradient, hessian = value + v, gradient + g, hessian + h
        return value, gradient, hessian

    return objective


def minimise(objective: Objective, shape: tuple[int, int]) -> tuple[Array, float]:
    """The minimiser and the minimum of a strongly convex objective over k x d matrices."""
    W = np.zeros(shape, dtype=Long)
    value, gradient, hessian = objective(W)
    for _ in range(1000):  # damped Newton: halve the step until the value falls enough (Armijo)
        step = -solve(hessian, gradient.ravel()).reshape(shape)
        decrement = -np.sum(gradient * step)
        if decrement <= 1e-16 * (1 + abs(value)):
            break
        size = Long(1)
        while objective(W + size * step)[0] > value - size * decrement / 10:
            size /= 2
        W = W + size * step
        value, gradient, hessian = objective(W)
    for _ in range(20):  # polish: full Newton steps, as long as the gradient shrinks
        candidate = W - solve(hessian, gradient.ravel()).reshape(shape)
        v, g, h = objective(candidate)
        if norm(g) >= norm(gradient):
            break
        W, value, gradient, hessian = candidate, v, g, h
    assert norm(gradient) <= 1e-12 * (1 + norm(hessian @ W.ravel())), "the gradient is not 0"
    error = norm(solve(hessian, gradient.ravel()))
    floor = 10 * np.finfo(Long).eps * np.linalg.cond(hessian.astype(np.float64))
    assert error <= max(1e-12, floor) * (1 + norm(W)), f"{float(error)} away from the minimum"
    return W, float(value)
