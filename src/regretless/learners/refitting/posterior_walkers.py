r"""The posterior of the aggregating forecaster by sampling: weighted walkers that follow it from row to row.

Walkers start as draws from the uniform prior. A row multiplies the weight of each walker by the likelihood of its
label. When the weights have become uneven (the effective number of walkers has fallen below half), walkers are
resampled in proportion to their weights, and moved by steps of Langevin dynamics that leave the posterior invariant. A
row that would leave few effective walkers is added in several fractions.

The Langevin step is that of a Gaussian, the one with the walkers' mean m and covariance S, for which it is
exact:

    w' = m + rho (w - m) + sqrt(1 - rho^2) S^{1/2} xi

A Metropolis test accepts or rejects it, which corrects for the true posterior and the ball. Where the posterior is
nearly Gaussian rho may be 0, and one step forgets the past; elsewhere rho grows until a fifth of the steps are
accepted. A move takes steps until the correlation with the start has fallen to a tenth.

Walkers form four clouds, each resampled separately, so that the clouds stay nearly independent: the differences of
their means measure the error.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import solve_triangular

from regretless.core.kernels.jit import kernel
from regretless.core.types import Array
from regretless.learners.refitting.posterior import loss
from regretless.learners.second_order.algebra import dot

CLOUDS = 4
FORGOTTEN = 0.1
MOST_STEPS = 30
MOST_DEGREES = 24  # fractions of a row: more would not help rows whose losses exceed the digits of a float
FEWEST = 4  # walkers per parameter: fewer do not determine the covariance
STRIDE, ACCEPTED, MEMORY, MOVES = range(4)


def scatter(n: int, size: int, rng: np.random.Generator) -> Array:
    """Draws from the uniform distribution on the unit ball."""
    walkers = rng.standard_normal((n, size))
    walkers *= (rng.random(n) ** (1.0 / size) / np.linalg.norm(walkers, axis=1))[:, None]
    return walkers


def effective(log_weight: Array) -> float:
    """The effective number of walkers: that many of equal weight would do as well."""
    weight = np.exp(log_weight - log_weight.max())
    return float(weight.sum() ** 2 / (weight @ weight))


def log_forecast(walkers: Array, log_weight: Array, G: Array, x: Array) -> Array:
    """The log probabilities of a row: the softmax averaged over the walkers."""
    r = G.shape[0]
    Z = np.zeros((walkers.shape[0], r + 1))
    Z[:, 1:] = walkers.reshape(-1, r, x.size) @ x @ G.T
    log_p = Z - np.logaddexp.reduce(Z, axis=1, keepdims=True)
    total = np.logaddexp.reduce(log_weight[:, None] + log_p, axis=0)
    mixed: Array = total - np.logaddexp.reduce(total)
    return mixed


def learn(
    walkers: Array, log_weight: Array, move: Array, X: Array, Y: Array, G: Array, rng: np.random.Generator
) -> None:
    """Add the last of the rows. Updates walkers, weights and `move` (about the last move) in place."""
    n = log_weight.size
    news = np.empty(n)
    losses(walkers, X[-1:], Y[-1:], G, news)
    part = Y.copy()
    done = 0.0
    for degree in range(MOST_DEGREES):
        step = 1.0 - done
        if degree < MOST_DEGREES - 1:
            while effective(log_weight - step * news) < 0.5 * n and step > 1e-20:
                step *= 0.5
        log_weight -= step * news
        done += step
        if done == 1.0 and effective(log_weight) >= 0.5 * n:
            break
        part[-1] = done * Y[-1]
        renew(walkers, log_weight, move, X, part, G, rng)
        if done == 1.0:
            break
        losses(walkers, X[-1:], Y[-1:], G, news)
    log_weight -= log_weight.max()


def renew(
    walkers: Array, log_weight: Array, move: Array, X: Array, Y: Array, G: Array, rng: np.random.Generator
) -> None:
    """Resample the walkers to equal weights, and move them."""
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ walkers
    deviations = walkers - mean
    scales = np.sqrt(weight @ deviations**2)
    scales = np.where(scales > 0.0, scales, 1.0)
    correlation = (deviations / scales).T @ (weight[:, None] * deviations / scales)
    root = scales[:, None] * np.linalg.cholesky(correlation + 1e-12 * np.eye(scales.size))
    for cloud in np.array_split(np.arange(weight.size), CLOUDS):
        share = np.cumsum(weight[cloud])
        marks = (rng.random() + np.arange(cloud.size)) * (share[-1] / cloud.size)
        walkers[cloud] = walkers[cloud[np.minimum(np.searchsorted(share, marks), cloud.size - 1)]]
    log_weight[:] = 0.0
    wander(walkers, move, mean, root, X, Y, G, rng)


def wander(
    walkers: Array, move: Array, mean: Array, root: Array, X: Array, Y: Array, G: Array, rng: np.random.Generator
) -> None:
    """Langevin steps of the Gaussian with that mean and root of the covariance, corrected for the posterior."""
    n = walkers.shape[0]
    places = solve_triangular(root, (walkers - mean).T, lower=True).T
    now, then = np.empty(n), np.empty(n)
    losses(walkers, X, Y, G, now)
    stride, memory = float(move[STRIDE]), 1.0
    rate = 0.0
    for _ in range(MOST_STEPS):
        rho = math.sqrt(1.0 - stride * stride)
        new_places = rho * places + stride * rng.standard_normal(places.shape)
        new = mean + new_places @ root.T
        inside = np.einsum("ij,ij->i", new, new) <= 1.0
        new[~inside] = walkers[~inside]
        losses(new, X, Y, G, then)
        gain = now - then + 0.5 * (new_places**2 - places**2).sum(axis=1)
        taken = inside & (np.log(rng.random(n)) < gain)
        walkers[taken], places[taken], now[taken] = new[taken], new_places[taken], then[taken]
        rate = float(taken.mean())
        memory *= 1.0 - rate * (1.0 - rho)
        if memory <= FORGOTTEN:
            break
        if rate < 0.2:
            stride *= 0.5
        elif rate > 0.5:
            stride = min(1.0, 2.0 * stride)
    move[STRIDE], move[ACCEPTED], move[MEMORY] = stride, rate, memory
    move[MOVES] += 1.0


@kernel
def losses(walkers: Array, X: Array, Y: Array, G: Array, out: Array) -> None:
    """The total loss of each walker."""
    r, d = G.shape[0], X.shape[1]
    V, z = np.empty((r, d)), np.zeros(r + 1)
    for m in range(walkers.shape[0]):
        for k in range(r):
            for j in range(d):
                V[k, j] = 0.0
                for a in range(r):
                    V[k, j] += G[k, a] * walkers[m, a * d + j]
        out[m] = 0.0
        for i in range(X.shape[0]):
            for k in range(r):
                z[k + 1] = dot(V[k], X[i])
            out[m] += loss(z, Y[i])


def spread_of_clouds(walkers: Array, log_weight: Array) -> float:
    """The largest R-hat of a parameter. Close to 1, the means of the clouds differ only by chance."""
    weight = np.exp(log_weight - log_weight.max())
    means, variances = [], []
    for cloud in np.array_split(np.arange(weight.size), CLOUDS):
        share = weight[cloud] / weight[cloud].sum()
        means.append(share @ walkers[cloud])
        variances.append(share @ (walkers[cloud] - means[-1]) ** 2)
    within = np.mean(variances, axis=0)
    ratio = np.var(means, axis=0, ddof=1) / np.where(within > 0.0, within, 1.0)
    return float(np.sqrt(1.0 - CLOUDS / weight.size + ratio.max()))
