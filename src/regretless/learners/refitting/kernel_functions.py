r"""Positive definite kernels, with the parameters of scikit-learn.

============  ==================================
"linear"      x.y
"rbf"         exp(-gamma \|x - y\|^2)
"polynomial"  (gamma x.y + coef0)^degree
a function    its value for two rows
============  ==================================

Distances are summed from differences, so that k(x, x) = 1 for "rbf" for rows of any size. (From \|x\|^2 - 2 x.y +
\|y\|^2, as in `sklearn.metrics.pairwise`, a row of norm 1e9 may have distance 10 to itself.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.core.kernels.jit import kernel
from regretless.core.rows import validate
from regretless.core.types import Array

LINEAR, RBF, POLYNOMIAL = range(3)
NAMES = {"linear": LINEAR, "rbf": RBF, "polynomial": POLYNOMIAL}


@dataclass(frozen=True)
class Kernel:
    """A kernel k(x, y).

    >>> rbf = Kernel.of("rbf", gamma=0.5, degree=3, coef0=1.0, n_features=2)
    >>> rbf.against(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([3.0, 4.0]))
    array([3.72665317e-06, 1.00000000e+00])
    """

    code: int
    gamma: float
    degree: int
    coef0: float
    function: Callable[[Array, Array], float] | None  # instead of a name

    @classmethod
    def of(cls, name: Any, gamma: float | None, degree: int, coef0: float, n_features: int) -> Kernel:
        """The kernel of these validated hyper-parameters."""
        if not callable(name) and not (isinstance(name, str) and name in NAMES):
            raise ValueError(
                f"kernel={name!r} is unknown: choose one of {sorted(NAMES)}, or give a function of two rows."
            )
        validate.whole("degree", degree, 1)
        return cls(
            code=-1 if callable(name) else NAMES[name],
            gamma=1.0 / n_features if gamma is None else validate.positive("gamma", gamma),
            degree=int(degree),
            coef0=validate.positive("coef0", coef0, zero=True),
            function=name if callable(name) else None,
        )

    def against(self, points: Array, x: Array) -> Array:
        """k(point, x) for every point."""
        if self.function is not None:
            return np.array([self.function(point, x) for point in points], dtype=np.float64)
        out = np.empty(points.shape[0])
        compare(self.code, self.gamma, self.degree, self.coef0, points, x, out)
        return out

    def squares(self, X: Array) -> Array:
        """k(x, x) for every row."""
        return np.array([self.against(X[t : t + 1], X[t])[0] for t in range(X.shape[0])], dtype=np.float64)

    def gram(self, X: Array) -> Array:
        """k(x, y) for every two rows."""
        return np.array([self.against(X, x) for x in X], dtype=np.float64).reshape(X.shape[0], X.shape[0])


@kernel
def compare(code: int, gamma: float, degree: int, coef0: float, points: Array, x: Array, out: Array) -> None:
    """out = k(point, x) for every point."""
    for i in range(points.shape[0]):
        total = 0.0
        if code == RBF:
            for j in range(x.size):
                total += (points[i, j] - x[j]) * (points[i, j] - x[j])
            out[i] = math.exp(-gamma * total)
            continue
        for j in range(x.size):
            total += points[i, j] * x[j]
        out[i] = (gamma * total + coef0) ** degree if code == POLYNOMIAL else total
