r"""Your own learner in 40 lines: CoinBetting, logistic regression without a rate, by betting on a coin.

    python examples/your_own_learner.py

The hooks (`_prepare`, `_start`, `_limits`, `_run`, `_forecast`) and what is promised (`competes_with`,
`regret_certificate`, `regret_bound`) are all that a learner writes; blocks, rows, scikit-learn's verbs, checks of bad
input, save and load come from `OnlineClassifier` (`regretless.load` finds the class once its module is imported). All
that is learned is in `state_`, a NamedTuple of arrays which `_run` changes in place. This loop is NumPy; for speed put
it into a function compiled by `numba.njit`.

The algorithm (Orabona and Pal, 2016) bets a share of its wealth on the direction of the gradients so far,

    w_t = (-g_1 - ... - g_{t-1}) / t * wealth,    wealth = start - g_1.w_1 - ... - g_{t-1}.w_{t-1},

for rows of norm at most 1. The log loss lies above its tangents, so regret against u is at most the sum of
g_t.(w_t - u): that is the certificate, and it needs two sums. The bound is theirs, for all streams of such rows.
"""

from __future__ import annotations

import tempfile
from math import log, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

import regretless
from regretless.core import validate
from regretless.core.learner import OnlineClassifier
from regretless.core.tally import EXCESS, ROWS, TALLIES, record, require_unit_weights
from regretless.theory.domains import Ball, Competition


class Betting(NamedTuple):
    """What has been learned."""

    gradients: np.ndarray  # (d,), their sum
    tally: np.ndarray  # rows, loss, sum of g.w ("excess") and so on: regretless.core.tally


class CoinBetting(OnlineClassifier):
    """Two classes, rows of norm at most 1, and nothing to tune; `radius` only says which weights regret is about."""

    _binary_only = True

    def __init__(self, radius: float = 10.0, wealth: float = 1.0) -> None:
        self.radius = radius
        self.wealth = wealth

    def _prepare(self, n_features: int, n_classes: int) -> tuple[float, float]:  # at the first row: `_constants`
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
    def competes_with(self) -> Competition:
        """Weights of the margin, of norm at most `radius`."""
        return Competition("logistic", Ball(self._constants[0] if hasattr(self, "_constants") else self.radius))

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        """The sum of g.(w - u) at its largest over |u| <= radius, or over |u| of a given norm."""
        size = self._constants[0] if comparator_norm is None else comparator_norm
        return float(self.state_.tally[EXCESS] + size * np.linalg.norm(self.state_.gradients))

    def regret_bound(self, n: int | None = None) -> float:
        """That of Orabona and Pal (2016) for betting by the Krichevsky-Trofimov estimator, over the ball."""
        require_unit_weights(self.state_.tally)
        n = int(self.state_.tally[ROWS]) if n is None else n
        radius, wealth = self._constants
        return radius * sqrt(n * log(1 + 24 * (n * radius / wealth) ** 2)) + wealth


def main() -> None:
    """It plays beside the others, and what is saved in the middle goes on as if nothing had been."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.random(3000) < 1 / (1 + np.exp(-X @ [3, -3, 2, 0, 1]))
    learners = {
        "CoinBetting": CoinBetting(),
        "OGD": regretless.OGD(radius=10.0),
        "AIOLI": regretless.AIOLI(radius=10.0),
    }
    for name, trace in regretless.play(learners, X, y, checkpoints=[3000], progress=False).items():
        promise = f"<= {trace.certificate[-1]:6.1f} <= {trace.bound[-1]:7.1f}"
        print(f"{name:<12} log loss {trace.mean_log_loss:.4f}, regret {trace.regret[-1][1]:6.2f} {promise}")

    whole = CoinBetting().fit(X, y)
    half = CoinBetting().fit(X[:1500], y[:1500])
    with tempfile.TemporaryDirectory() as folder:
        half.save(Path(folder, "half.npz"))
        later = regretless.load(Path(folder, "half.npz"))
    for x, label in zip(X[1500:], y[1500:], strict=True):
        later.learn_one(x, label)
    same = (later.predict_proba(X) == whole.predict_proba(X)).all()
    print(f"saved, loaded, and on from there row by row: the same bits, {same}")


if __name__ == "__main__":
    main()
