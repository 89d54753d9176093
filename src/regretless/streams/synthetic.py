"""Random streams, each with one property to show. Equal arguments give equal streams.

Rows are normal with norm about 1, |w| is the `radius` of the stream, and two classes have the labels -1 and +1.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit
from scipy.special import softmax as probabilities

from regretless.core.types import Array
from regretless.streams.types import Stream


def logistic(n: int, d: int = 10, radius: float = 10.0, seed: int = 0) -> Stream:
    r"""Labels of a logistic model: :math:`P(y = 1) = 1 / (1 + e^{-w \cdot x})`, with |w| = radius.

    >>> stream = logistic(1000, d=5)
    >>> stream.X.shape, stream.classes
    ((1000, 5), [-1, 1])
    """
    rng = _start(n, d, seed)
    w = radius * _direction(rng, d)
    return _two_classes("logistic", rng, _rows(rng, n, d), w, radius, "labels of a logistic model")


def sparse_signal(n: int, d: int = 100, relevant: int = 5, radius: float = 10.0, seed: int = 0) -> Stream:
    """A logistic model in which only `relevant` of the d weights, at random places, are not zero."""
    rng = _start(n, d, seed)
    if not 1 <= relevant <= d:
        raise ValueError(f"relevant={relevant} must be from 1 to d={d}.")
    w = np.zeros(d)
    w[rng.choice(d, relevant, replace=False)] = radius * _direction(rng, relevant)
    about = f"labels of a logistic model with {relevant} nonzero weights"
    return _two_classes("sparse-signal", rng, _rows(rng, n, d), w, radius, about)


def drifting(n: int, d: int = 10, turns: float = 1.0, radius: float = 10.0, seed: int = 0) -> Stream:
    """A logistic model whose weights turn at constant speed in a plane, `turns` times around in all.

    `weights` has one row for every row of the stream. No fixed weights do well over a whole turn.
    """
    rng = _start(n, d, seed)
    if d < 2:
        raise ValueError(f"d={d}: the weights turn in a plane, which needs at least 2 features.")
    plane, _ = np.linalg.qr(rng.normal(size=(d, 2)))
    angle = 2 * math.pi * turns * np.arange(n) / n
    w = radius * (np.cos(angle)[:, None] * plane[:, 0] + np.sin(angle)[:, None] * plane[:, 1])
    about = f"labels of a logistic model whose weights turn {turns:g} times around"
    return _two_classes("drifting", rng, _rows(rng, n, d), w, radius, about)


def softmax(n: int, d: int = 10, classes: int = 3, radius: float = 10.0, seed: int = 0) -> Stream:
    r"""Labels 0, ..., K-1 of a softmax model: :math:`P(y = k) \propto e^{w_k \cdot x}`, each |w_k| = radius."""
    rng = _start(n, d, seed)
    if classes < 2:
        raise ValueError(f"classes={classes} must be 2 or more.")
    W = radius * np.stack([_direction(rng, d) for _ in range(classes)])
    X = _rows(rng, n, d)
    reached = probabilities(X @ W.T, axis=1).cumsum(axis=1) > rng.random((n, 1))
    reached[:, -1] = True  # the sum of probabilities may round to less than 1
    about = f"{n} rows, {d} features, {classes} classes; labels of a softmax model, by seed {seed}"
    return Stream("softmax", X, reached.argmax(axis=1), list(range(classes)), radius, about, W)


def separable(n: int, d: int = 10, margin: float = 0.1, seed: int = 0) -> Stream:
    r"""Two classes with a gap: :math:`y\, u \cdot x \ge` margin for a unit vector u.

    The radius is 1/margin: `weights` = u/margin has hinge loss 0, so a Perceptron makes at most (max |x| / margin)^2
    mistakes.
    """
    rng = _start(n, d, seed)
    X, y, u = _with_gap(rng, n, d, margin)
    about = f"{n} rows, {d} features, 2 classes {2 * margin:g} apart, by seed {seed}"
    return Stream("separable", X, y, [-1, 1], 1 / margin, about, u / margin)


def label_noise(n: int, d: int = 10, flip: float = 0.1, margin: float = 0.1, seed: int = 0) -> Stream:
    """`separable`, and then every label is flipped with probability `flip`, whatever the row."""
    rng = _start(n, d, seed)
    if not 0 <= flip <= 0.5:
        raise ValueError(f"flip={flip} must be a probability <= 1/2.")
    X, y, u = _with_gap(rng, n, d, margin)
    y = np.where(rng.random(n) < flip, -y, y)
    about = f"{n} rows, {d} features, 2 classes {2 * margin:g} apart, {flip:.0%} of labels flipped, by seed {seed}"
    return Stream("label-noise", X, y, [-1, 1], 1 / margin, about, u / margin)


def adversarial(n: int, seed: int = 0, epsilon: float = 0.01) -> Stream:
    """The stream of Hazan, Koren and Levy (2014) on which every proper learner does badly; AIOLI's section 5.

    One feature, B = ln n. The seed determines the sign chi: with probability sqrt(eps)/(2B) + chi eps/B the row is
    (1 - sqrt(eps)/(2B), +1), else (sqrt(eps)/B, -1).
    """
    rng = _start(n, 1, seed)
    B = max(1.0, math.log(n))
    chi = 1 if seed % 2 == 0 else -1
    rare = rng.random(n) < math.sqrt(epsilon) / (2 * B) + chi * epsilon / B
    x = np.where(rare, 1 - math.sqrt(epsilon) / (2 * B), math.sqrt(epsilon) / B)
    return Stream(
        name="adversarial",
        X=x[:, None],
        y=np.where(rare, 1, -1),
        classes=[-1, 1],
        radius=B,
        about=f"{n} rows, 1 feature, radius ln n = {B:.3g}, chi = {chi:+d} by seed {seed}",
    )


def _start(n: int, d: int, seed: int) -> np.random.Generator:
    if n < 1 or d < 1:
        raise ValueError(f"n={n}, d={d}: a stream needs at least 1 row and 1 feature.")
    return np.random.default_rng(seed)


def _rows(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.normal(size=(n, d)) / math.sqrt(d)


def _direction(rng: np.random.Generator, d: int) -> Array:
    u = rng.normal(size=d)
    return u / np.linalg.norm(u)


def _two_classes(name: str, rng: np.random.Generator, X: Array, w: Array, radius: float, how: str) -> Stream:
    """Labels drawn by weights that are the same for all rows, or one row of them a row."""
    n, d = X.shape
    y = np.where(rng.random(n) < expit((X * w).sum(axis=1)), 1, -1)
    return Stream(name, X, y, [-1, 1], radius, f"{n} rows, {d} features, 2 classes; {how}", w)


def _with_gap(rng: np.random.Generator, n: int, d: int, margin: float) -> tuple[Array, Array, Array]:
    """Normal rows pushed away from a hyperplane, their sides, and its unit normal."""
    if not 0 < margin <= 1:
        raise ValueError(f"margin={margin} must be in (0, 1].")
    u = _direction(rng, d)
    X = _rows(rng, n, d)
    side = np.where(X @ u > 0, 1, -1)
    return X + margin * side[:, None] * u, side, u
