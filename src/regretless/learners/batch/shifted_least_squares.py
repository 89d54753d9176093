"""ShiftedLeastSquares: linear regression whose risk is small with high probability."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from regretless.core.errors import NoBound
from regretless.core.kernels.jit import kernel
from regretless.core.rows import validate
from regretless.core.rows.validate import LARGEST_TARGET
from regretless.core.scikit_learn import RegressorMixin, check_is_fitted
from regretless.core.types import Array
from regretless.learners.batch.rows import BatchPredictor
from regretless.learners.second_order.algebra import dot
from regretless.theory import bounds

MOST_MASS = 1e12  # of sum |x|^2 / regularization: beyond, the inverse loses its digits


class Run(NamedTuple):
    """The n forecasters of the run: forecaster t has learned the first t rows."""

    gains: Array  # (n, d): P x / sqrt(1 + q)
    steps: Array  # (n,): (shifted label - ridge forecast) / sqrt(1 + q)


class ShiftedLeastSquares(RegressorMixin, BatchPredictor):
    r"""Linear regression by the mean of all forecasters of an online run on shifted labels.

    **Choose it when** you have independent rows, and want linear regression from one pass with a bound on its risk that
    holds with high probability.

    The rows are met once, in order. Row t is forecast by the Vovk-Azoury-Warmuth forecaster, clipped to [-Y, Y], which
    then learns a label that is shifted away from the forecast:

    .. math:: \hat y_t = \mathrm{clip}\Bigl(\frac{x_t^T w_t}{1 + x_t^T A_t^{-1} x_t}\Bigr), \qquad
              \tilde y_t = 2y_t - \hat y_t

    with w the ridge solution of the rows so far, and A its matrix. A new row is forecast by the mean of the n clipped
    forecasts. The squared loss of f on the shifted label is four times that of :math:`(f + \hat y)/2` on the label: the
    learner competes with means of its own forecast and the comparator, which leaves a term of second order in the
    regret that pays for the deviations of the losses from their expectations.

    The n forecasters are stored as n d numbers, from the rank-one updates of the inverse matrix; a new row costs
    O(n d), and fitting O(d^2) per row.

    **Guarantee.** For independent rows of one distribution with :math:`|y| \le Y`, with probability :math:`1 - \delta`
    the excess risk over the linear predictor u is at most
    :math:`\frac1n[\frac12(\lambda|u|^2 + \text{excess}) + \frac1\eta\ln\frac1\delta]`, where the excess, the
    learner's loss on shifted labels above the minimum of the ridge problem, is at most
    :math:`9Y^2d\ln(1+nR^2/(\lambda d))`, and :math:`1/\eta` is about :math:`18.6Y^2` if predictions of u are at most Y
    (`regretless.bounds.shifted_average`). `excess_risk_bound()` is this number. The mean forecast of
    `VovkAzouryWarmuth` without the shift, and ridge regression, have no such bound.

    Parameters
    ----------
    regularization : lambda, the coefficient of :math:`|w|^2`. No intercept is added: append a constant column.
    label_bound : Y; a larger label is rejected. None means the largest one; there is then no bound, because earlier
        forecasts are clipped at a later label.
    feature_bound : R; a row with a larger norm is rejected. None means the largest norm of the fitted rows.

    Attributes
    ----------
    label_bound_, feature_bound_ : Y and R.
    excess_ : the loss on shifted labels above the minimum of the ridge problem, for the bound.
    n_rows_ : the number of fitted rows.
    n_features_in_ : the number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import ShiftedLeastSquares
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(4000, 3))
    >>> y = np.clip(X @ [1.0, -0.5, 0.2] + 0.1 * rng.normal(size=4000), -1, 1)
    >>> model = ShiftedLeastSquares(label_bound=1.0, feature_bound=0.87).fit(X[:3000], y[:3000])
    >>> print(f"{((model.predict(X[3000:]) - y[3000:]) ** 2).mean():.4f}")
    0.0097
    >>> bound = model.excess_risk_bound(comparator_norm=1.15, failure=0.01)
    >>> print(f"with probability 0.99, excess risk <= {bound:.4f}")
    with probability 0.99, excess risk <= 0.0290

    References
    ----------
    van der Hoeven, Zhivotovskiy and Cesa-Bianchi (2023), key `shifted` of REFERENCES.bib; the forecaster is that of
    keys `vovk` and `azoury-warmuth`.
    """

    label_bound_: float
    feature_bound_: float
    excess_: float
    n_rows_: int
    n_features_in_: int
    _run: Run
    _params: tuple[float, bool]  # lambda, and whether Y was declared

    def __init__(
        self, regularization: float = 1.0, label_bound: float | None = None, feature_bound: float | None = None
    ) -> None:
        self.regularization = regularization
        self.label_bound = label_bound
        self.feature_bound = feature_bound

    def fit(self, X: Any, y: Any) -> Self:
        """Run once over the rows in the given order. An error changes nothing."""
        return self._all_or_nothing(self._fit, X, y)

    def _fit(self, X: Any, y: Any) -> None:
        lam = validate.positive("regularization", self.regularization)
        most = LARGEST_TARGET if self.label_bound is None else validate.positive("label_bound", self.label_bound)
        longest = math.inf if self.feature_bound is None else validate.positive("feature_bound", self.feature_bound)
        X = self._rows(X, reset=True)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: pass one number per row.")
        y = validate.numbers(y, LARGEST_TARGET)
        if y.size != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and y has {y.size} numbers: pass one number per row.")
        beyond = validate.beyond(np.abs(y), most)
        if beyond.any():
            i = int(np.argmax(beyond))
            raise ValueError(
                f"row {i}: y = {y[i]:.6g} is beyond label_bound = {most:.6g}: scale y, or raise the bound."
            )
        self._check(X, np.ones(1), longest)
        mass = float((X**2).sum()) / lam
        if mass > MOST_MASS:
            raise ValueError(
                f"the sum of |x|^2 / regularization is {mass:.2g}, and beyond {MOST_MASS:.0e} the fit loses digits. "
                "Scale the features, for example to unit variance, or raise regularization."
            )
        self.label_bound_ = float(np.abs(y).max()) if self.label_bound is None else most
        self.feature_bound_ = math.sqrt(float(validate.largest_square(X))) if math.isinf(longest) else longest
        self._run = Run(np.empty_like(X), np.empty(y.size))
        self.excess_ = run(X, y, lam, self.label_bound_, self._run)
        self.n_rows_, self._params = y.size, (lam, self.label_bound is not None)

    def predict(self, X: Any) -> Array:
        """The mean of the n forecasts of each row."""
        check_is_fitted(self, "excess_")
        X = self._rows(X, reset=False)
        self._check(X, np.ones(1), math.inf if self.feature_bound is None else self.feature_bound_)
        out = np.empty(X.shape[0])
        self._forecast_in_parts(
            X.shape[0],
            lambda part: mean_forecasts(self._run, X[part], self._params[0], self.label_bound_, out[part]),
        )
        return out

    def excess_risk_bound(self, comparator_norm: float, failure: float = 0.05) -> float:
        """An upper bound on the excess risk over weights of this norm, except with probability `failure`.

        For i.i.d. rows of norm at most `feature_bound` (default: the largest so far, which new rows must not exceed).
        """
        check_is_fitted(self, "excess_")
        lam, declared = self._params
        size = validate.positive("comparator_norm", comparator_norm, zero=True)
        if not declared:
            raise NoBound(
                "forecasts were clipped at the largest label, which is random: declare label_bound and refit."
            )
        return bounds.shifted_average(
            self.n_rows_,
            regret=max(lam * size**2 + self.excess_, 0.0),
            label_bound=self.label_bound_,
            prediction_bound=size * self.feature_bound_,
            failure=failure,
        )


@kernel
def clipped(value: float, most: float) -> float:
    """The nearest number in [-most, most]."""
    return min(max(value, -most), most)


@kernel
def run(X: Array, y: Array, lam: float, label_bound: float, forecasters: Run) -> float:
    """Forecast and learn all rows. Returns the loss on shifted labels above the minimum of the ridge problem."""
    gains, steps = forecasters
    d = X.shape[1]
    P, w, excess = np.eye(d) / lam, np.zeros(d), 0.0
    for t in range(X.shape[0]):
        x, gain = X[t], gains[t]
        for i in range(d):
            gain[i] = dot(P[i], x)
        q, m = max(dot(gain, x), 0.0), dot(w, x)
        forecast = clipped(m / (1.0 + q), label_bound)
        shifted = 2.0 * y[t] - forecast
        root = math.sqrt(1.0 + q)
        steps[t] = (shifted - m) / root
        excess += (forecast - shifted) ** 2 - steps[t] ** 2  # the second is the growth of the minimum
        for i in range(d):
            gain[i] /= root
            w[i] += gain[i] * steps[t]
        for i in range(d):
            for j in range(d):
                P[i, j] -= gain[i] * gain[j]
    return excess


@kernel
def mean_forecasts(forecasters: Run, X: Array, lam: float, label_bound: float, out: Array) -> None:
    """For every row, the mean of the clipped forecasts before row 1, ..., n was learned."""
    gains, steps = forecasters
    n = steps.size
    for s in range(X.shape[0]):
        x = X[s]
        m, q, total = 0.0, dot(x, x) / lam, 0.0
        for t in range(n):
            total += clipped(m / (1.0 + q), label_bound)
            along = dot(gains[t], x)
            m += along * steps[t]
            q = max(q - along * along, 0.0)
        out[s] = total / n
