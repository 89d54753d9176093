"""AggregatingForecaster: Vovk's aggregating algorithm for logistic regression, with a uniform prior on a ball."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from regretless.core.errors import NoBound
from regretless.core.files import state_checks
from regretless.core.numbers.tally import LOSS, ROWS, TALLIES, WIDEST, record, require_unit_weights
from regretless.core.rows import validate
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.types import Array
from regretless.learners.refitting import posterior_walkers as walkers
from regretless.learners.refitting.ftrl import find
from regretless.learners.refitting.posterior import scale, total_loss
from regretless.learners.refitting.posterior_centre import centre
from regretless.learners.refitting.posterior_quadrature import log_evidence
from regretless.learners.refitting.remembering import RememberingClassifier
from regretless.learners.second_order.algebra import norm
from regretless.theory import bounds
from regretless.theory.domains import Ball, Competition

METHODS = ("quadrature", "langevin")
LARGEST_MARGIN = {  # radius |x| sqrt(weight)
    "quadrature": 1e70,  # squares of gradients do not overflow
    "langevin": 1e6,  # walkers still follow the posterior, also in ten dimensions
}


class AggregatingConstants(NamedTuple):
    """The validated numbers."""

    radius: float
    method: str
    n_samples: int
    mu: float
    seed: int
    feature_bound: float  # infinity: none declared
    G: Array  # weights to logits: see posterior.py


class QuadratureState(NamedTuple):
    """The state of the quadrature method."""

    X: Array  # (m, d) distinct rows
    Y: Array  # (m, K) their labels
    weight: Array  # (m,) the sums of their weights
    w: Array  # (r, d) the centre of the posterior, in units of the radius: the first guess of the next one
    tally: Array  # see tally.py


class WalkersState(NamedTuple):
    """The state of the Langevin method."""

    X: Array
    Y: Array
    weight: Array
    walkers: Array  # (n_samples, r d), in units of the radius
    log_weight: Array  # (n_samples,)
    move: Array  # about the last move: see posterior_walkers.py
    tally: Array


class AggregatingForecaster(RememberingClassifier):
    r"""Logistic regression by Vovk's aggregating algorithm: the mean of all softmaxes under their posterior.

    **Choose it when** you have one or two weights, or study the best possible rate: it is the reference that others
    approximate, and slow.

    The prior is uniform on a ball of weights, and the forecast is the mixture

    .. math:: p(y \mid x) = E_{w \sim \pi} \, \mathrm{softmax}(Wx)_y, \qquad
              \pi(w) \propto e^{-\sum_s \ell_s(w)} \ \text{on}\ |w| \le B,

    then :math:`(1-\mu) p + \mu/K`. For two classes w are the weights of the margin; for more, W is a matrix with one
    row per class, of mean zero over the classes (the softmax does not depend on the mean), and the ball is that of the
    Frobenius norm: N = (K-1) d parameters.

    **Quadrature** (N = 1 or 2) integrates each probability to a relative error of 1e-8, also where the posterior is
    very narrow or concentrated at the border of the ball. (Beyond a total weight of 1e7 the error is rounding: 1e-16
    times that weight.) The time of a forecast is proportional to the number of distinct rows learned: about 10
    microseconds per row for N = 1, and 0.1 to 1 milliseconds for N = 2.

    **Langevin** (any N) keeps `n_samples` weighted walkers, which follow the posterior from row to row. The error is
    about that of as many draws from the posterior: the standard error of a probability is one to two times its
    posterior standard deviation divided by the root of `n_samples`. A forecast takes n_samples N operations.
    Occasionally, when the posterior has shrunk, the walkers move, which takes a small multiple of n_samples times rows
    times N operations. `diagnostics_` reports their condition. A label that no walker expects has a larger loss than
    under the exact mixture: `smoothing` bounds it. Rows are refused where B |x| times the root of the weight exceeds
    1e6.

    **Guarantee.** For every comparator of norm at most B, with forecasts by quadrature, regret is at most
    about :math:`N \ln(n \ln K/N)` on every stream (`regretless.bounds.aggregating`): it has no factor :math:`e^B`, and
    for large n no B. `regret_certificate()` is the regret itself, with either method.

    Parameters
    ----------
    radius : B, the largest norm of the comparators. No intercept is added: append a constant column.
    method : "quadrature", "langevin", or "auto": quadrature for one or two parameters.
    n_samples : the number of walkers, at least 4 per parameter.
    smoothing : mu.
    random_state : seed of the walkers. Draws depend only on the seed and the number of rows learned.
    feature_bound : R, the largest norm of a row, for `regret_bound`; a row with a larger norm is rejected. None means
        the largest norm so far.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of probabilities.
    state_ : `X`, `Y` and `weight` (distinct rows and the sums of their weights), `tally`; with quadrature `w` (where
        the posterior is centred), with Langevin `walkers`, `log_weight` and `move`.
    diagnostics_ : a report on the posterior.

    Examples
    --------
    >>> from regretless import AggregatingForecaster
    >>> from regretless.streams import adversarial
    >>> stream = adversarial(1000)
    >>> learner = AggregatingForecaster(radius=stream.radius)
    >>> p = learner.predict_then_learn(stream.X, stream.y)
    >>> print(f"regret <= {learner.regret_certificate():.2f} <= {learner.regret_bound():.2f}")
    regret <= 1.87 <= 7.55

    References
    ----------
    Foster, Kale, Luo, Mohri and Sridharan (2018), key `foster2018` of REFERENCES.bib; for two classes Kakade and Ng
    (2005), key `kakade-ng`.
    """

    state_: Any
    _constants: AggregatingConstants

    def __init__(
        self,
        radius: float = 10.0,
        method: str = "auto",
        n_samples: int = 512,
        smoothing: float = 0.0,
        random_state: int = 0,
        feature_bound: float | None = None,
    ) -> None:
        self.radius = radius
        self.method = method
        self.n_samples = n_samples
        self.smoothing = smoothing
        self.random_state = random_state
        self.feature_bound = feature_bound

    @classmethod
    def _example(cls) -> Self:
        return cls(method="langevin", n_samples=16)

    def _prepare(self, n_features: int, n_classes: int) -> AggregatingConstants:
        radius = validate.positive("radius", self.radius)
        size = (n_classes - 1) * n_features
        method = self.method
        if method == "auto":
            method = "quadrature" if size <= 2 else "langevin"
        if method not in METHODS:
            raise ValueError(f'method={method!r} is unknown: choose "auto" or one of {METHODS}.')
        if method == "quadrature" and size > 2:
            raise ValueError(
                f'method="quadrature" supports one or two parameters, but {n_features} features and {n_classes} '
                f'classes have {size}: use method="langevin".'
            )
        validate.whole("n_samples", self.n_samples, walkers.FEWEST)
        if method == "langevin" and self.n_samples < walkers.FEWEST * size:
            raise ValueError(
                f"n_samples={self.n_samples} walkers are too few for {size} parameters: give at least "
                f"{walkers.FEWEST * size}."
            )
        mu = validate.positive("smoothing", self.smoothing, zero=True)
        if mu > 1.0:
            raise ValueError(f"smoothing={mu} must be at most 1.")
        validate.whole("random_state", self.random_state, 0)
        bound = math.inf if self.feature_bound is None else validate.positive("feature_bound", self.feature_bound)
        return AggregatingConstants(
            radius, method, int(self.n_samples), mu, int(self.random_state), bound, scale(n_classes, radius)
        )

    def _start(self, n_features: int, n_classes: int) -> QuadratureState | WalkersState:
        c = self._constants
        rows = {"X": np.empty((0, n_features)), "Y": np.empty((0, n_classes)), "weight": np.empty(0)}
        if c.method == "quadrature":
            return QuadratureState(**rows, w=np.zeros((n_classes - 1, n_features)), tally=np.zeros(TALLIES))
        size = (n_classes - 1) * n_features
        return WalkersState(
            **rows,
            walkers=walkers.scatter(c.n_samples, size, np.random.default_rng([c.seed, 0])),
            log_weight=np.zeros(c.n_samples),
            move=np.array([1.0, 1.0, 0.0, 0.0]),
            tally=np.zeros(TALLIES),
        )

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        size = (n_classes - 1) * n_features
        walks = self.method == "langevin" or (self.method == "auto" and size > 2)
        return size * self.n_samples if walks and isinstance(self.n_samples, int) else size

    def _check_state(self) -> None:
        super()._check_state()
        state, inside = self.state_, 1.0 + state_checks.ROUNDING
        if self._constants.method == "quadrature":
            state_checks.require(np.linalg.norm(state.w) < 1.0, "w lies outside the ball")
            return
        norms = np.linalg.norm(state.walkers, axis=1)
        state_checks.require(np.all(norms <= inside), "walkers lie outside the ball")
        state_checks.within("log_weight", state.log_weight, -math.inf, state_checks.ROUNDING)
        state_checks.within(
            "log_weight, the largest", state.log_weight.max(), -state_checks.ROUNDING, state_checks.ROUNDING
        )
        state_checks.within("move", state.move[: walkers.MOVES], 0.0, inside)
        state_checks.require(state.move[walkers.STRIDE] > 0.0, "move: the stride is not positive")
        state_checks.whole("move, how many", state.move[walkers.MOVES])

    def _limits(self) -> tuple[float, float]:
        c = self._constants
        return c.feature_bound, LARGEST_MARGIN[c.method] / max(1.0, c.radius)

    @property
    def competes_with(self) -> Competition:
        """The best weights in the ball, under the log loss."""
        many = hasattr(self, "classes_") and self._n_classes > 2
        return Competition("softmax" if many else "logistic", Ball(self._in_play.radius))

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        r"""The regret so far against the best weights of the ball (or of norm at most `comparator_norm`).

        The total loss minus a lower bound on the least loss of such weights on the remembered rows: the minimum of the
        tangent plane at a point where the losses are within 1e-6 of their minimum.
        """
        check_is_fitted(self, "state_")
        c = self._constants
        size = validate.comparator_norm(comparator_norm, self.competes_with.domain, c.radius)
        X, Y = self._rows_learned()
        U, Z = np.zeros((self._n_classes - 1, self.n_features_in_)), np.zeros(Y.shape)
        M = np.zeros((U.size, U.size))
        excess = 0.0
        if size > 0.0:
            for mu in (1.0, 1e-2, 1e-4, 1e-6):
                excess = centre(X, Y, scale(self._n_classes, size), U, mu, Z, M)
        return float(self.state_.tally[LOSS]) - (total_loss(Z, Y) - excess)

    def regret_bound(self, n: int | None = None) -> float:
        """The theorem for the exact mixture, with R the largest norm so far (or `feature_bound`)."""
        check_is_fitted(self, "state_")
        c = self._constants
        tally = self.state_.tally
        require_unit_weights(tally)
        if c.method != "quadrature":
            raise NoBound(
                'method="langevin": the theorem is about the exact mixture, and this one is sampled. '
                "regret_certificate() is the regret so far."
            )
        return bounds.aggregating(
            int(tally[ROWS]) if n is None else n,
            n_features=self.n_features_in_,
            n_classes=self._n_classes,
            radius=c.radius,
            feature_bound=float(tally[WIDEST]) if c.feature_bound == math.inf else c.feature_bound,
            smoothing=c.mu,
        )

    @property
    def diagnostics_(self) -> dict[str, Any]:
        """A report on the approximation of the posterior.

        `method`, `parameters`, `distinct_rows`; for walkers also `effective_samples` (of `n_samples`), `r_hat` (the
        disagreement of four clouds of walkers: 1 means differences by chance only, more than 1.1 is bad), for the last
        move `acceptance` and `memory` (the correlation with the positions before: 0.1, or more if that would have
        needed too many steps), and the number of `moves` so far.
        """
        check_is_fitted(self, "state_")
        state, c = self.state_, self._constants
        report: dict[str, Any] = {
            "method": c.method,
            "parameters": (self._n_classes - 1) * self.n_features_in_,
            "distinct_rows": state.X.shape[0],
        }
        if c.method == "langevin":
            report |= {
                "effective_samples": walkers.effective(state.log_weight),
                "r_hat": walkers.spread_of_clouds(state.walkers, state.log_weight),
                "acceptance": float(state.move[walkers.ACCEPTED]),
                "memory": float(state.move[walkers.MEMORY]),
                "moves": int(state.move[walkers.MOVES]),
            }
        return report

    def _rows_learned(self) -> tuple[Array, Array]:
        """Distinct rows, and the weight of each class in them."""
        state = self.state_
        return state.X, state.weight[:, None] * state.Y

    def _rows_and(self, x: Array, y: Array) -> tuple[Array, Array]:
        """The rows learned and one more."""
        X, Y = self._rows_learned()
        return np.vstack([X, x]), np.vstack([Y, y])

    def _forecast_row(self, x: Array, out: Array) -> None:
        c, K = self._constants, self._n_classes
        if c.method == "langevin":
            out[:] = walkers.log_forecast(self.state_.walkers, self.state_.log_weight, c.G, x)
        else:
            X, Y = self._rows_and(x, np.zeros(K))
            for k in range(K):
                Y[-1] = 0.0
                Y[-1, k] = 1.0
                out[k] = log_evidence(X, Y, c.G, self.state_.w.copy())
            out -= np.logaddexp.reduce(out)
        if c.mu > 0.0:
            kept = math.log1p(-c.mu) if c.mu < 1.0 else -math.inf
            np.logaddexp(kept + out, math.log(c.mu / K), out=out)

    def _learn_row(self, x: Array, y: Array, weight: float, forecast: Array) -> None:
        c, state = self._constants, self.state_
        record(state.tally, weight, -weight * float(y @ forecast), 0.0, norm(x))
        if c.method == "langevin":
            X, Y = self._rows_and(x, weight * y)
            rng = np.random.default_rng([c.seed, int(state.tally[ROWS])])
            walkers.learn(state.walkers, state.log_weight, state.move, X, Y, c.G, rng)
        same = find(state.X, state.Y, x, y)
        if same < 0:
            self._remember(x, y, weight)
        else:
            state.weight[same] += weight
        if c.method == "quadrature":
            X, Y = self._rows_learned()
            centre(X, Y, c.G, state.w, 1.0, np.empty(Y.shape), np.zeros((state.w.size, state.w.size)))
