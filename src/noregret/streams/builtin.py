"""Streams that need no download: scikit-learn's small data sets, and an adversarial one."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from noregret._types import Array

DATA_SETS = {
    "breast-cancer": "load_breast_cancer",
    "digits": "load_digits",
    "wine": "load_wine",
    "iris": "load_iris",
}
NAMES = (*DATA_SETS, "adversarial")


class Stream(NamedTuple):
    """Rows in order, their labels, and the radius of the comparators that suit them."""

    name: str
    X: Array
    y: np.ndarray[Any, Any]
    classes: list[Any]
    radius: float
    about: str


def builtin(name: str, rows: int | None = None, seed: int = 0) -> Stream:
    """A stream by name: at most `rows` rows, in the order `seed` gives.

    >>> stream = builtin("iris", rows=100)
    >>> stream.X.shape, stream.classes
    ((100, 5), [0, 1, 2])
    """
    if rows is not None and rows < 1:
        raise ValueError(f"rows={rows}: a stream has at least 1 row.")
    if name == "adversarial":
        return adversarial(1000 if rows is None else rows, seed)
    if name not in DATA_SETS:
        raise ValueError(f"there is no stream {name!r}: choose one of {', '.join(NAMES)}.")
    return data_set(name, rows, seed)


def data_set(name: str, rows: int | None, seed: int) -> Stream:
    """One of scikit-learn's data sets: columns standardised, a constant appended, rows scaled to norm about 1."""
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    X, y = getattr(datasets, DATA_SETS[name])(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))[:rows]
    X = np.column_stack([StandardScaler().fit_transform(X), np.ones(len(y))])[order] / math.sqrt(X.shape[1] + 1)
    return Stream(
        name=name,
        X=X,
        y=y[order],
        classes=np.unique(y).tolist(),
        radius=10.0,
        about=f"{len(order)} rows, {X.shape[1]} features, {len(np.unique(y))} classes; columns standardised, "
        f"rows of norm about 1, order by seed {seed}",
    )


def adversarial(n: int, seed: int, epsilon: float = 0.01) -> Stream:
    """The stream of Hazan, Koren and Levy (2014) on which every proper learner does badly; AIOLI's section 5.

    One feature, B = ln n; seed decides the sign chi: with probability sqrt(eps)/(2B) + chi eps/B the row is
    (1 - sqrt(eps)/(2B), +1), else (sqrt(eps)/B, -1).
    """
    rng = np.random.default_rng(seed)
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
