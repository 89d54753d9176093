"""The aggregating forecaster by its definition: integrals over an interval or a disc, on a fixed grid of panels.

The posterior is log-concave, so along a line it has one top and falls on both sides. Panels cover it down to e^-50 of
the top, ever smaller towards the top and towards both ends, with Gauss's rule on each. A disc is a line of lines.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

Array = np.ndarray
DEPTH = 50.0


def logits_of(X: Array, n_classes: int) -> Array:
    """(n, K, N): parameters to logits. Two classes: weights of the margin; three: of mean zero."""
    if n_classes == 2:
        basis = np.array([[-0.5], [0.5]])
    else:
        basis = np.array([[1, 1], [-1, 1], [0, -2]]) / np.sqrt([2, 6])
    return np.einsum("kr,nd->nkrd", basis, X).reshape(len(X), n_classes, -1)


def log_likelihood(A: Array, Y: Array, u: Array) -> Array:
    """Of parameters u (..., N): Y (n, K) is what each class weighs in each row."""
    total = np.zeros(u.shape[:-1])
    for a, y in zip(A, Y, strict=True):
        z = np.tensordot(a, u, axes=(1, -1))  # (K, ...): sums over a first axis are fast
        z -= z.max(axis=0)
        total += np.tensordot(y, z, axes=1) - y.sum() * np.log(np.exp(z).sum(axis=0))
    return total


def refine(score: Callable[[Array], Array], low: Array, high: Array, steps: int = 14) -> Array:
    """Where a function with one top is largest, for each of several intervals at once, to 8^-steps of its length."""
    for _ in range(steps):
        grid = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, 17)
        best = score(grid).argmax(axis=1)
        places = np.arange(len(low))
        low, high = grid[places, np.maximum(best - 1, 0)], grid[places, np.minimum(best + 1, 16)]
    return 0.5 * (low + high)


def line(f: Callable[[Array], Array], low: Array, high: Array) -> tuple[Array, Array]:
    """Nodes and weights (m, J) for the integrals of exp f over the intervals; f is concave on each."""
    top = refine(f, low, high)
    edge = f(top[:, None]) - DEPTH
    # where e^-50 is reached need not be known as well as the top
    left = refine(lambda t: np.where(f(t) >= edge, -t, -np.inf), low, top, 9)
    right = refine(lambda t: np.where(f(t) >= edge, t, -np.inf), top, high, 9)
    shares = 0.5 * 0.25 ** np.arange(7, -1, -1)
    cuts = np.concatenate([[0.0], shares, 1.0 - shares[-2::-1], [1.0]])
    sides = [low[:, None] + (high - low)[:, None] * cuts for low, high in ((left, top), (top, right))]
    ends = np.concatenate([sides[0], sides[1][:, 1:]], axis=1)
    return gauss(ends)


def gauss(ends: Array, n: int = 16) -> tuple[Array, Array]:
    """Nodes and weights of Gauss's rule on the panels between the ends, for each of several lines."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    half, middle = 0.5 * np.diff(ends, axis=1), 0.5 * (ends[:, 1:] + ends[:, :-1])
    shape = (len(ends), -1)
    return (middle[..., None] + half[..., None] * nodes).reshape(shape), (half[..., None] * weights).reshape(shape)


def integral(f: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """log of the integrals of exp f."""
    nodes, weights = line(f, low, high)
    return logsumexp(f(nodes), b=weights, axis=1)


def log_evidence(A: Array, Y: Array, radius: float) -> float:
    """log of the integral of the likelihood over the ball."""
    one = np.array([radius])
    if A.shape[2] == 1:  # in two halves: at 0 is a corner
        ends = np.array([-radius, 0.0, radius])
        return float(logsumexp(integral(lambda t: log_likelihood(A, Y, t[..., None]), ends[:-1], ends[1:])))
    # across the posterior first, and then along it
    turn = axes_at(A, Y, radius)

    def at(s: Array, t: Array) -> Array:
        return log_likelihood(A, Y, np.stack(np.broadcast_arrays(s, t), axis=-1) @ turn)

    def reach(s: Array) -> Array:
        return np.sqrt(np.maximum((radius - s) * (radius + s), 0.0))

    def profile(s: Array) -> Array:
        flat = s.ravel()
        t = refine(lambda t: at(flat[:, None], t), -reach(flat), reach(flat), 9)  # it is flat at its top
        return at(flat, t).reshape(s.shape)

    s, weights = line(profile, -one, one)
    inner = integral(lambda t: at(s[0][:, None], t), -reach(s[0]), reach(s[0]))
    return float(logsumexp(inner, b=weights[0]))


def log_evidence_about_zero(A: Array, Y: Array, radius: float) -> float:
    """The same for two parameters, in polar coordinates: for posteriors that are no needles.

    Where two logits of a row are equal is a line through 0, and at large radii a corner.
    """
    across = np.concatenate([A[:, j] - A[:, k] for j in range(A.shape[1]) for k in range(j)])
    corners = np.arctan2(across[:, 0], -across[:, 1])[:, None] + [0.0, np.pi]
    steps = np.pi * 0.5 ** np.arange(2, 14)
    cuts = (corners.reshape(-1, 1) + np.concatenate([-steps, [0.0], steps])).ravel() % (2 * np.pi)
    ends = np.unique(np.round(np.concatenate([[0.0], cuts, [2 * np.pi]]), 14))  # rows may share corners
    angle, angle_weights = gauss(ends[None], 12)
    r, r_weights = gauss(radius * np.append(0.0, 0.5 ** np.arange(16, -1, -1))[None])
    u = r[0][:, None] * np.stack([np.cos(angle[0]), np.sin(angle[0])], axis=-1)[:, None, :]
    return float(logsumexp(log_likelihood(A, Y, u), b=angle_weights[0][:, None] * r_weights[0] * r[0]))


def axes_at(A: Array, Y: Array, radius: float) -> Array:
    """The axes of the Hessian at the likeliest point, the most curved first."""
    best = minimize(
        lambda u: -log_likelihood(A, Y, u),
        np.zeros(2),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda u: radius**2 - u @ u},
    ).x
    H = np.zeros((2, 2))
    for a, y in zip(A, Y, strict=True):
        z = a @ best
        p = np.exp(z - logsumexp(z))
        H += y.sum() * (a.T * p @ a - np.outer(p @ a, p @ a))
    return np.linalg.eigh(H)[1].T[::-1]


def log_probabilities(
    X: Array, Y: Array, x: Array, radius: float, evidence: Callable[..., float] = log_evidence
) -> Array:
    """Of the labels of x, after rows X of which Y says what each class weighs."""
    K = Y.shape[1]
    A = logits_of(np.vstack([X, x]), K)
    found = np.array([evidence(A, np.vstack([Y, np.eye(K)[k]]), radius) for k in range(K)])
    return found - logsumexp(found)
