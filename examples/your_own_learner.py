r"""
Your own learner in 40 lines
============================

CoinBetting: logistic regression without a learning rate, by coin betting. A learner implements `_prepare`, `_start`,
`_limits`, `_run` and `_forecast`, and its guarantee in `competes_with`, `regret_certificate` and `regret_bound`.
Everything else (blocks and single rows, the scikit-learn methods, input checks, saving and loading) comes from
`OnlineClassifier`. `regretless.load` finds the class once its module is imported. Everything learned is in `state_`, a
NamedTuple of arrays that `_run` changes in place. The loop here is NumPy; for speed, put it into a function compiled by
`numba.njit`. The page on the architecture lists all methods that a learner can override. Run it with
``python examples/your_own_learner.py``.

The algorithm (Orabona and Pal, 2016) bets a fraction of its wealth on the direction of the gradients so far::

    w_t = (-g_1 - ... - g_{t-1}) / t * wealth,    wealth = start - g_1.w_1 - ... - g_{t-1}.w_{t-1}

for rows of norm at most 1. The log loss lies above its tangents, so the regret against u is at most the sum of
g_t.(w_t - u), which needs only two sums: this is the certificate. The bound is that of the paper.
"""

from __future__ import annotations

import tempfile
from math import log, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

import regretless
from regretless import OnlineClassifier, domains
from regretless.core.numbers.tally import EXCESS, ROWS, TALLIES, record, require_unit_weights
from regretless.core.rows import validate


class Betting(NamedTuple):
    """The state of the learner."""

    gradients: np.ndarray  # (d,), the sum of the gradients
    tally: np.ndarray  # rows, loss, sum of g.w ("excess") and so on: regretless.core.numbers.tally


class CoinBetting(OnlineClassifier):
    """Two classes, rows of norm at most 1, no tuning; `radius` only bounds the comparators."""

    binary_only = True

    def __init__(self, radius: float = 10.0, wealth: float = 1.0) -> None:
        self.radius = radius
        self.wealth = wealth

    def _prepare(self, n_features: int, n_classes: int) -> tuple[float, float]:  # stored as `_constants`
        return validate.positive("radius", self.radius), validate.positive("wealth", self.wealth)

    def _start(self, n_features: int, n_classes: int) -> Betting:
        return Betting(np.zeros(n_features), np.zeros(TALLIES))

    def _limits(self) -> tuple[float, float]:
        return 1.0, 1e6

    def _weights(self) -> np.ndarray:
        gradients, tally = self.state_
        return -gradients * ((self._constants[1] - tally[EXCESS]) / (tally[ROWS] + 1.0))

    def _run(self, X: Any, Y: np.ndarray, weight: np.ndarray, out: np.ndarray) -> None:
        for t, x in enumerate(X):
            w = self._weights()
            margin = (w * x).sum()
            out[t] = -margin / 2, margin / 2  # logits
            if weight[t] == 0.0:
                continue
            g = weight[t] * (expit(margin) - Y[t, 1]) * x
            loss = weight[t] * (np.logaddexp(0.0, margin) - Y[t, 1] * margin)
            self.state_.gradients[:] += g
            record(self.state_.tally, weight[t], loss, (g * w).sum(), sqrt((x * x).sum()))

    def _forecast(self, X: Any, out: np.ndarray) -> None:
        w = self._weights()
        for t, x in enumerate(X):
            margin = (w * x).sum()
            out[t] = -margin / 2, margin / 2

    @property
    def competes_with(self) -> domains.Competition:
        """Weights of the margin, of norm at most `radius`."""
        radius = self._constants[0] if hasattr(self, "_constants") else self.radius
        return domains.Competition("logistic", domains.Ball(radius))

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        """The maximum of the sum of g.(w - u) over |u| <= radius, or over |u| <= comparator_norm."""
        size = self._constants[0] if comparator_norm is None else comparator_norm
        return float(self.state_.tally[EXCESS] + size * np.linalg.norm(self.state_.gradients))

    def regret_bound(self, n: int | None = None) -> float:
        """The bound of Orabona and Pal (2016) for betting with the Krichevsky-Trofimov estimator, over the ball."""
        require_unit_weights(self.state_.tally)
        n = int(self.state_.tally[ROWS]) if n is None else n
        radius, wealth = self._constants
        return radius * sqrt(n * log(1 + 24 * (n * radius / wealth) ** 2)) + wealth


# %%
# It plays with the others, and has a regret, a certificate and a bound like them.
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 5))
X /= np.linalg.norm(X, axis=1, keepdims=True)
y = rng.random(3000) < 1 / (1 + np.exp(-X @ [3, -3, 2, 0, 1]))
learners = {
    "CoinBetting": CoinBetting(),
    "OGD": regretless.OGD(radius=10.0),
    "AIOLI": regretless.AIOLI(radius=10.0),
}
traces = regretless.play(learners, X, y, progress=False)
for name, trace in traces.items():
    promise = f"<= {trace.certificate[-1]:6.1f} <= {trace.bound[-1]:7.1f}"
    print(f"{name:<12} log loss {trace.mean_log_loss:.4f}, regret {trace.regret[-1][1]:6.2f} {promise}")

# %%
# A saved learner continues where it stopped, row by row or in blocks, with identical results.
whole = CoinBetting().fit(X, y)
half = CoinBetting().fit(X[:1500], y[:1500])
with tempfile.TemporaryDirectory() as folder:
    half.save(Path(folder, "half.npz"))
    later = regretless.load(Path(folder, "half.npz"))
for x, label in zip(X[1500:], y[1500:], strict=True):
    later.learn_one(x, label)
same = (later.predict_proba(X) == whole.predict_proba(X)).all()
print(f"saved, loaded, continued row by row: identical results: {same}")

# %%
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, trace in traces.items():
    [line] = axes.plot(trace.rows, [high for _, high in trace.regret], label=name)
    axes.plot(trace.rows, trace.certificate, linestyle="-.", color=line.get_color())
axes.set(xscale="log", xlabel="rows", ylabel="regret, and certificate (dash-dotted)")
axes.legend(frameon=False)
plt.show()
