"""Exponentiated gradient: multiplicative updates."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from regretless.core.errors import BadRow
from regretless.core.kernels.one_row import RowKernels
from regretless.core.rows import validate
from regretless.core.rows.compressed import SparseRows, largest_entry
from regretless.core.setting import Setting
from regretless.core.types import Array
from regretless.learners.first_order.learner import LARGEST_MARGIN, LARGEST_ROW
from regretless.learners.first_order.mirror_learner import MirrorLearner, Scheme, start_of
from regretless.learners.first_order.mirrors import Mirror
from regretless.learners.first_order.schedules import GrowingTemperature, KnownHorizon, Schedule
from regretless.theory.domains import Domain, Octahedron, Simplex
from regretless.theory.losses import EXPONENTIAL, LINEAR, SQUARED, Custom, Loss


class ExponentiatedGradient(MirrorLearner):
    r"""Exponentiated gradient: multiplicative updates on the simplex, for many features of which few matter.

    **Choose it when** few of very many features matter: its regret grows with the logarithm of their number.

    .. math:: \theta_j \propto \exp\Bigl(-\frac{1}{\beta_t} \sum_{s \le t} g_{s,j}\Bigr), \qquad
              \sum_j \theta_j = \lambda

    With a known horizon the temperature is constant, and this is the multiplicative update :math:`\theta_j \leftarrow
    \theta_j e^{-\eta g_j} / \mathrm{sum}` ([MDA]_, eq. 23); otherwise it grows like :math:`\sqrt t`. `signed` adds the
    negative of every feature, so that weights may be negative (EG+-). The cost per row is proportional to the number of
    weights.

    **Guarantee.** For features :math:`|x_j| \le R` regret at most :math:`2\lambda L\sqrt{(n+1) \ln d}`, or
    :math:`\lambda L\sqrt{2n \ln d}` at a known horizon n; L is R times the largest slope of the loss at scores up to
    :math:`\lambda R`, and d counts twice with signs (`regretless.bounds.dual_averaging`, `mirror_descent`).

    Parameters
    ----------
    loss : as in `OGD`, for two classes or regression. Absolute targets are at most :math:`\lambda R` with the squared
        loss, and at most 1 with the linear loss.
    scale : lambda, the sum of the (absolute) weights.
    signed : whether weights may be negative.
    feature_bound : R; rows with a larger entry are refused.
    horizon : the number of rows to come, if known.
    start : :math:`\theta_0`, the first weights (d,), positive (with signs: inside the set) and of sum lambda; None
        means equal weights. The update is then :math:`\theta_j \propto \theta_{0,j} e^{\ldots}` ([MDA]_, eq. 23), and
        the bounds have :math:`\ln(\lambda/\min_j \theta_{0,j})` in place of :math:`\ln d`.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of forecasts.
    coef_ : the weights, (1, d).
    state_ : `theta`, `zeta`, `average`, `gradients`, `mass` and `tally`.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import ExponentiatedGradient
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(3000, 1000))
    >>> y = X[:, 7] + 0.1 * rng.normal(size=3000)
    >>> learner = ExponentiatedGradient(loss="absolute").fit(X, y)
    >>> print(learner.coef_.argmax(), f"{learner.coef_.max():.2f}")
    7 0.99

    References
    ----------
    .. [MDA] Key `mda` of REFERENCES.bib; Kivinen and Warmuth (1997), key `eg`.
    """

    multiclass = "softmax"

    def __init__(
        self,
        loss: str | Custom = "logistic",
        scale: float = 1.0,
        signed: bool = False,
        feature_bound: float = 1.0,
        horizon: int | None = None,
        start: ArrayLike | None = None,
    ) -> None:
        self.loss = loss
        self.scale = scale
        self.signed = signed
        self.feature_bound = feature_bound
        self.horizon = horizon
        self.start = start

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        if setting.n_classes > 2:
            return {}
        return {"EG+-": cls(scale=setting.matrix_radius, signed=True, feature_bound=setting.entry_bound)}

    binary_only = True

    def _chosen_domain(self) -> Domain:
        if not isinstance(self.signed, bool | np.bool_):
            raise ValueError(f"signed={self.signed!r} must be True or False.")
        size = validate.positive("scale", self.scale)
        return Octahedron(size) if self.signed else Simplex(size)

    def _chosen_scheme(self, n_features: int, n_classes: int) -> Scheme:
        domain, loss = self._chosen_domain(), self._chosen_loss(n_classes)
        R = validate.positive("feature_bound", self.feature_bound)
        L = largest_gradient(loss, R, R * self.scale)
        mirror = Mirror.on("entropy", domain, n_features)
        start = start_of(self.start, n_features, 1, domain, mirror)
        V = None if start is None else mirror.spread_from(start)
        return Scheme(loss, domain, mirror, schedule_of(mirror, L, self.horizon, V), True, False, L, start)

    def _limits(self) -> tuple[float, float]:
        return math.inf, LARGEST_ROW  # scores are bounded by those of the entries, however many there are

    def _targets(self, y: Any, classes: Any) -> Array:
        targets = super()._targets(y, classes)
        if self._regresses:
            R, scale = self._played_with_or("feature_bound"), self._played_with_or("scale")
            check_targets(targets[:, 0], self._loss_name, R * scale)
        return targets

    def _played_with_or(self, name: str) -> float:
        """A parameter of the game in play, or of the next one."""
        return validate.positive(name, getattr(self, "params_", self.get_params(deep=False))[name])

    def _row_kernels(self) -> RowKernels | None:
        found = super()._row_kernels()
        if found is None or self._regresses:  # targets have limits of their own
            return None
        return found._replace(largest_entry=self.params_["feature_bound"])

    def _check_rows(self, X: Array | SparseRows, weight: Array) -> None:
        super()._check_rows(X, weight)
        check_entries(X, self.params_["feature_bound"], getattr(self, "feature_names_in_", None))


def largest_gradient(loss: Loss | Custom, R: float, reach: float) -> float:
    """L: R times the largest slope, for scores (and targets of a regression) of absolute value at most `reach`."""
    if loss.code == SQUARED:
        return R * loss.lipschitz(2 * reach)
    if loss.code == EXPONENTIAL and reach > LARGEST_MARGIN:
        raise ValueError(
            f"loss='exponential': scores may reach {reach:.6g}, and beyond {LARGEST_MARGIN:g} the squares of its "
            "slopes overflow: lower scale."
        )
    return R * loss.lipschitz(1.0 if loss.code == LINEAR else reach)


def schedule_of(mirror: Mirror, L: float, horizon: Any, spread: float | None = None) -> Schedule:
    """The schedule of the theorem: for a known number of rows, or for any; `spread` is V* from a given start."""
    if horizon is None:
        return GrowingTemperature.of(mirror, L, spread)
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
        raise ValueError(f"horizon={horizon!r} must be a whole number of rows, or None.")
    return KnownHorizon.of(mirror, L, int(horizon), spread)


def check_targets(y: Array, loss: str, largest: float) -> None:
    """Refuse targets larger than the theorem assumes."""
    largest = {"squared": largest, "linear": 1.0}.get(loss, math.inf)
    beyond = validate.beyond(np.abs(y), largest)
    if beyond.any():
        i = int(np.argmax(beyond))
        raise BadRow(
            f"row {i}: y = {y[i]:.6g} is beyond {largest:.6g}, the largest target of the {loss} loss here. "
            "Scale the targets down, or raise scale. Nothing was learned from this call."
        )


def check_entries(X: Array | SparseRows, bound: float, names: Any, what: str = "feature_bound", first: int = 0) -> None:
    """Refuse rows with an entry beyond the bound. Rows are numbered from `first`."""
    if isinstance(X, SparseRows):
        indptr, indices, data = X.entries
        values = data[indptr[0] : indptr[-1]]  # a block may be a view of a larger one
    else:
        values = X.reshape(-1)
    if not validate.beyond(largest_entry(values), bound):
        return
    if isinstance(X, SparseRows):
        at = int(indptr[0] + np.argmax(validate.beyond(np.abs(values), bound)))
        i = int(np.searchsorted(indptr, at, side="right")) - 1
        j, value = int(indices[at]), float(data[at])
    else:
        i, j = (int(k) for k in np.argwhere(validate.beyond(np.abs(X), bound))[0])
        value = float(X[i, j])
    column = f"column {j}" if names is None else f"column {j} ({names[j]!r})"
    raise BadRow(
        f"row {first + i}, {column}: {value:.6g} is beyond {what} = {bound:.6g}. Scale the features down, or raise "
        f"{what}. Nothing was learned from this call."
    )
