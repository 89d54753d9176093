"""Mirror descent, lazy or eager, with or without averaging: the general first-order learner."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from regretless.core.rows import validate
from regretless.core.setting import Setting
from regretless.learners.first_order.learner import (
    require_bounded_scores,
)
from regretless.learners.first_order.mirror_learner import MirrorLearner, Scheme, start_of
from regretless.learners.first_order.mirrors import Mirror
from regretless.learners.first_order.schedules import (
    AdaGrad,
    AdaGradNorm,
    ConstantStep,
    GrowingTemperature,
    InverseRootStep,
    Schedule,
)
from regretless.theory.domains import Ball, Domain, Growing
from regretless.theory.losses import Custom


class MirrorDescent(MirrorLearner):
    r"""Mirror descent, for any convex loss, set, mirror and schedule of steps.

    **Choose it when** you study first-order learners: any convex loss, set, mirror map and schedule of steps, each with
    its certificate.

    .. math:: \text{lazy:} \quad \zeta \leftarrow \zeta + \gamma_t g_t, \quad
              \theta_t = \arg\min_{\theta \in \Theta} \zeta \cdot \theta + \beta_t V(\theta)
    .. math:: \text{eager:} \quad
              \theta_t = \arg\min_{\theta \in \Theta} \tfrac{\gamma_t}{\beta_t}\, g_t \cdot \theta
              + D_V(\theta, \theta_{t-1})

    :math:`g_t` is the gradient of the loss of row t at :math:`\theta_{t-1}`, and :math:`\theta_0` minimises V. With
    averaging, forecasts use the mean of :math:`\theta_0..\theta_t`, weighted by :math:`\gamma_1..\gamma_{t+1}`
    ([MDA]_). With loss="linear" you may bring your own gradients: see `learn_gradient`. The cost per row is
    proportional to the number of weights.

    **Guarantee.** That of the schedule (see `regretless.learners.first_order.schedules`): on the regret without
    averaging, on the excess risk for i.i.d. rows with it.

    Parameters
    ----------
    loss : as in `OGD`.
    domain : a set of `regretless.domains`: Ball, Simplex, SubSimplex, Octahedron, Box or WholeSpace; or `Growing`, one
        of them whose size grows with the rows (then the certificate is for the present set).
    mirror : "euclidean", "entropy", "p-norm" or "power" (`MIRRORS` in `mirrors.py` lists their sets).
    schedule : "theory" (`GrowingTemperature` for the lazy scheme, `InverseRootStep` for the eager Euclidean one on a
        ball; without `gradient_bound` both use `AdaGradNorm`, for which the lazy scheme has no bound here), a number
        (a constant step), or a schedule from `regretless.learners.first_order.schedules`, where `Sequence` has any
        steps and temperatures.
    lazy : whether to use the lazy scheme.
    averaging : whether forecasts use the mean of the weights.
    gradient_bound : a bound on the gradients, in the dual norm: l2 for the Euclidean mirror, else the largest entry.
    multiclass : the loss for more than two classes: "softmax" or "hinge".
    start : :math:`\theta_0`, the first weights, in the set and in the shape of `weights_`; None means the minimiser of
        V. For other weights V is replaced, also in the bounds, by :math:`D_V(\cdot, \theta_0)`, whose minimiser they
        are.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of forecasts.
    coef_ : the weights that forecast, (1, d) for two classes or regression, (K, d) for more.
    weights_ : the weights at which the next gradient is taken, (d,) or (K, d).
    state_ : `theta`, `zeta`, `average`, `gradients`, `mass` and `tally`.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import MirrorDescent
    >>> from regretless.theory.domains import Octahedron
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1.0, 1.0], size=(2000, 500))
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-X @ (np.arange(500) < 3)))
    >>> for mirror, G in [("entropy", 1.0), ("euclidean", 500**0.5)]:
    ...     learner = MirrorDescent(domain=Octahedron(3.0), mirror=mirror, averaging=False, gradient_bound=G)
    ...     p = learner.predict_then_learn(X, y)
    ...     loss = -np.log(np.where(y, p[:, 1], p[:, 0])).mean()
    ...     print(f"{mirror}: {loss:.3f}, regret <= {learner.regret_bound():.0f}")
    entropy: 0.528, regret <= 705
    euclidean: 0.582, regret <= 4244

    References
    ----------
    .. [MDA] Juditsky, Nazin, Tsybakov and Vayatis (2005), key `mda` of REFERENCES.bib.
    """

    def __init__(
        self,
        loss: str | Custom = "logistic",
        domain: Domain | Growing = Ball(10.0),  # noqa: B008 (frozen)
        mirror: str = "euclidean",
        schedule: str | float | Schedule = "theory",
        lazy: bool = True,
        averaging: bool = True,
        gradient_bound: float | None = None,
        multiclass: str = "softmax",
        start: ArrayLike | None = None,
    ) -> None:
        self.loss = loss
        self.domain = domain
        self.mirror = mirror
        self.schedule = schedule
        self.lazy = lazy
        self.averaging = averaging
        self.gradient_bound = gradient_bound
        self.multiclass = multiclass
        self.start = start

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        slope = 1.0 if setting.n_classes == 2 else 2**0.5  # |p - y| at most
        domain = Ball(setting.matrix_radius)
        return {
            "Mirror descent, lazy": cls(domain=domain, averaging=False, gradient_bound=slope * setting.feature_bound)
        }

    def _chosen_domain(self) -> Domain:
        return self.domain.at(0) if isinstance(self.domain, Growing) else self.domain

    def _chosen_scheme(self, n_features: int, n_classes: int) -> Scheme:
        for name, flag in (("lazy", self.lazy), ("averaging", self.averaging)):
            if not isinstance(flag, bool | np.bool_):
                raise ValueError(f"{name}={flag!r} must be True or False.")
        loss = self._chosen_loss(n_classes)
        domain, growing = self._chosen_domain(), self.domain if isinstance(self.domain, Growing) else None
        mirror = _mirror_on(self.mirror, domain, n_features * self._n_scores)
        if math.isinf(mirror.spread) or growing is not None:
            require_bounded_scores(loss, "Choose a bounded domain that does not grow.")
        if growing is not None and mirror.proxy not in ("euclidean", "entropy"):
            raise ValueError(
                f"mirror={self.mirror!r} changes with the size of the set: a domain that grows needs 'euclidean' or "
                "'entropy'."
            )
        L = math.inf if self.gradient_bound is None else validate.positive("gradient_bound", self.gradient_bound)
        start = start_of(self.start, n_features, self._n_scores, domain, mirror)
        V = mirror.spread if start is None else mirror.spread_from(start)
        schedule = self._schedule(mirror, L, V)
        return Scheme(loss, domain, mirror, schedule, bool(self.lazy), bool(self.averaging), L, start, growing)

    def _schedule(self, mirror: Mirror, L: float, V: float) -> Schedule:
        if isinstance(self.schedule, AdaGrad):
            if self.lazy or mirror.proxy != "euclidean" or mirror.domain not in ("box", "whole"):
                raise ValueError(
                    "schedule=AdaGrad has one step per weight: it needs lazy=False, mirror='euclidean' and the domain "
                    "Box or WholeSpace, where weights are projected separately."
                )
            return self.schedule
        if isinstance(self.schedule, Schedule):
            return self.schedule
        if self.schedule == "theory":
            if math.isinf(mirror.spread):
                raise ValueError(
                    f'schedule="theory": {self.domain} is unbounded, so no step is best: give a schedule or a number.'
                )
            if self.lazy and math.isinf(L):  # the gradients so far replace L sqrt(t)
                return AdaGradNorm(math.sqrt(mirror.strong_convexity * V) or 1.0)
            if self.lazy:
                return GrowingTemperature.of(mirror, L, V)
            domain = self._chosen_domain()
            if mirror.proxy == "euclidean" and math.isinf(L):
                return AdaGradNorm.of_diameter(domain.diameter(mirror.dimension) or 1.0)
            if isinstance(domain, Ball) and mirror.proxy == "euclidean":
                return InverseRootStep.of_ball(domain.radius, L)
            raise ValueError(
                f'schedule="theory": the eager scheme has a theorem only for the Euclidean mirror on a Ball, not for '
                f"mirror={self.mirror!r} on {self.domain}. Use lazy=True, or give a schedule."
            )
        if isinstance(self.schedule, int | float):
            return ConstantStep(validate.positive("schedule", self.schedule))
        raise ValueError(f'schedule={self.schedule!r}: give "theory", a number, or a schedule.')


def _mirror_on(proxy: Any, domain: Any, dimension: int) -> Mirror:
    """The mirror; errors name this learner's parameters."""
    try:
        return Mirror.on(proxy, domain, dimension)
    except ValueError as error:
        raise ValueError(f"mirror={proxy!r}, {error}") from None
