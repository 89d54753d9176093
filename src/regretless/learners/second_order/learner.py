"""SurrogateClassifier: constants, checks and certificate of AIOLI, FOLKLORE and GAF."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy

from regretless.core.effects import from_logits
from regretless.core.errors import NoBound, NoCertificate
from regretless.core.files import state_checks
from regretless.core.learner import OnlineClassifier
from regretless.core.numbers.tally import EXCESS, ROWS, WIDEST, require_unit_weights
from regretless.core.rows import validate
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.types import Array
from regretless.learners.second_order import curvature, panels
from regretless.learners.second_order.device import PlaysOnDevice
from regretless.learners.second_order.merging import STRENGTHS, balance, sum_of
from regretless.learners.second_order.rounding import allowance, require_digits
from regretless.learners.second_order.surrogate import SurrogateState, check, first_invalid, helmert, start

PRECISIONS = ("double", "single")
MERGING = {"priors", "pull"}  # what a model file has of merging
LARGEST_LOGIT = 1e300  # of a comparator: beyond it the curvature constants overflow


class Constants(NamedTuple):
    """The constants of the kernels of every surrogate classifier; learners may add more."""

    radius: float
    regularization: float
    code: int  # the curvature rule
    number: float  # the curvature, if it is given as a number
    feature_bound: float  # 0: each row uses its own norm


class SurrogateClassifier(PlaysOnDevice, OnlineClassifier):
    """A classifier that replaces each loss by a quadratic below it (AIOLI, FOLKLORE, GAF)."""

    radius: float
    regularization: float | None
    curvature: str | float
    feature_bound: float | None
    precision: str = "double"
    state_: SurrogateState
    _constants: Any  # the fields of `Constants`, and more of the learner
    _one_step = True
    _learned: ClassVar[tuple[str, ...]] = ("_priors", "_pull")
    _priors: float = 1.0  # how many times lambda counts at most, in a merged learner
    _pull: float = 1.0  # the factor of the forecast's pull in a merged learner
    _weighs_columns: ClassVar[bool] = True  # False if the weights are those of other features
    _makes_up_for_pull: ClassVar[bool] = False  # the leader: if it does, merged learners need a larger pull
    # Comparators have logits up to C = radius |x| times this: 1/2 if the weights give the margin z_1 - z_0.
    _logits_per_weight: ClassVar[float] = 1.0

    @property
    def _radius(self) -> float:
        """B of the current game, or of the next one if none has started."""
        return float(self._in_play.radius)

    @abstractmethod
    def _default_regularization(self, radius: float, n_classes: int) -> float:
        """The lambda of the theory, for regularization=None."""

    def _prepare(self, n_features: int, n_classes: int) -> Any:
        """The validated constants. Learners with more constants extend this method."""
        return self._shared_constants(n_classes)

    def _shared_constants(self, n_classes: int) -> Constants:
        radius = validate.positive("radius", self.radius)
        bound = 0.0 if self.feature_bound is None else validate.positive("feature_bound", self.feature_bound)
        if radius * bound > LARGEST_LOGIT:
            raise ValueError(
                f"radius={radius:.4g} times feature_bound={bound:.4g} is too large for floating point arithmetic: give "
                f"numbers whose product is at most {LARGEST_LOGIT:g}."
            )
        lam = self._default_regularization(radius, n_classes) if self.regularization is None else self.regularization
        code, number = curvature.rule(self.curvature, n_classes)
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision={self.precision!r} is unknown: choose one of {PRECISIONS}.")
        return Constants(
            radius=radius,
            regularization=validate.positive("regularization", lam),
            code=code,
            number=number,
            feature_bound=bound,
        )

    def _start(self, n_features: int, n_classes: int) -> SurrogateState:
        return start((n_classes - 1) * n_features, self._constants.regularization, self.precision == "single")

    @property
    def coef_(self) -> Array:
        """The weights of the leader: (1, d) of the log-odds for two classes, else (K, d).

        A forecast is near the product of x with these, and closer to equal probabilities where few rows like x were
        learned.
        """
        if not self._weighs_columns:
            raise AttributeError(f"{type(self).__name__} has no weights of columns.")
        check_is_fitted(self, "state_")
        W = self.state_.w.reshape(self._n_classes - 1, -1)
        return W.copy() if self.binary_only else from_logits(helmert(self._n_classes) @ W)

    @property
    def least_rows(self) -> int:
        """See `OnlineLearner`."""
        return panels.least_rows(self.state_.w.size)

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        return ((n_classes - 1) * n_features) ** 2

    def _check_state(self) -> None:
        check(self.state_, self._constants.regularization, min(self._largest))

    def _first_invalid(self, stack: Any) -> int:
        if self.state_.w.size > state_checks.MOST_COMPILED:
            return super()._first_invalid(stack)
        return first_invalid(stack, self._constants.regularization, min(self._largest))

    def _merged(self, states: Sequence[Any], common: Any, rule: str | float) -> Any:
        if rule == "sum" or common.tally[ROWS] > 0:  # rows of the past may count only once
            return sum_of(states, common)
        balanced = balance(states, self._constants.regularization, None if isinstance(rule, str) else rule)
        self._priors += balanced.priors
        self._pull_by(balanced.pull if self._makes_up_for_pull else 1.0)
        return sum_of(states, common, balanced)

    def _rule_by(self, states: Sequence[Any], X: Any, Y: Array, weight: Array) -> str | float:
        """The mean strength of a balance, weighed by the likelihood of the labels."""
        strengths = np.array([balance(states, self._constants.regularization).strength, *STRENGTHS])
        gains = np.empty(strengths.size)
        for i, strength in enumerate(strengths):
            trial = copy.copy(self)
            trial.state_ = trial._merged(states, self.state_, float(strength))
            out = trial._new_forecasts(X.shape[0])
            trial._forecast(X, out)
            gains[i] = weight @ (Y * scipy.special.log_softmax(out, axis=1)).sum(axis=1)
        return float(scipy.special.softmax(gains) @ strengths)

    def _follow(self, parts: Sequence[Any]) -> None:
        super()._follow(parts)
        self._priors = 1.0 + sum(part._priors - 1.0 for part in parts)
        self._pull_by(sum(part._pull for part in parts) / len(parts))

    def _pull_by(self, factor: float) -> None:
        """Multiply the forecast's pull towards equal probabilities, within the limit for this number of parts."""
        self._pull = min(self._pull * factor, self._most_pull)
        self._constants = self._prepare(self.n_features_in_, self._n_classes)

    @property
    def _most_pull(self) -> float:
        return STRENGTHS[-1] * self._parts

    def _aside(self) -> dict[str, Any]:
        merging = {"priors": self._priors, "pull": self._pull} if self._parts > 1 else {}
        return super()._aside() | merging

    def _take_up(self, aside: dict[str, Any]) -> None:
        super()._take_up({name: value for name, value in aside.items() if name not in MERGING})
        for name in MERGING & aside.keys():
            state_checks.require(self._parts > 1, f"{name} belongs to merged learners, and this one is not")
            most = self._most_pull if name == "pull" else float(self._parts)
            state_checks.within(name, validate.positive(name, aside[name]), 1.0, most)
            setattr(self, f"_{name}", float(aside[name]))

    def _limits(self) -> tuple[float, float]:
        c = self._constants
        return c.feature_bound or math.inf, min(validate.reach(c.regularization), LARGEST_LOGIT / c.radius)

    def _largest_row(self) -> float:
        """R: the declared bound, or the largest norm so far."""
        return self._constants.feature_bound or float(self.state_.tally[WIDEST])

    def _matrix(self) -> Array:
        """P or a root of it, for the bounds on rounding errors."""
        return self.state_.P

    def _require_proof(self, refusal: type[ValueError]) -> None:
        c = self._constants
        R = self._largest_row()
        P = self._matrix()
        if P.dtype == np.float32 and self.params_["device"] is not None:
            raise refusal(
                'precision="single" on a device computes products in single precision, for which nothing is proved: '
                'use precision="double".'
            )
        require_digits(P, self.state_.tally, refusal, self._n_classes - 1)
        C = c.radius * R * self._logits_per_weight
        if not curvature.proved(c.code, c.number, C, self._n_classes):
            sharp = curvature.kappa(curvature.SHARP, 0.0, C, self._n_classes)
            raise refusal(
                f"curvature={self.params_['curvature']!r} is not proved to keep the quadratics below the loss for "
                f'rows of norm up to {R:.4g} at radius {c.radius:.4g}: use "sharp", or a number up to {sharp:.4g}.'
            )

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        r"""An upper bound on the regret against every comparator in the domain (or of a given norm).

        :math:`\lambda |W|^2 + \sum loss - \min_V [\lambda |V|^2 + \sum_s q_s(V)]`, valid because every quadratic
        :math:`q_s` lies below its loss on the domain. It needs no solver and no second pass. Raises `NoCertificate` if
        the curvature has no proof. After `merge`, lambda counts as often as in the merged sum.
        """
        check_is_fitted(self, "state_")
        self._require_proof(NoCertificate)
        domain = self.competes_with.domain
        norm = validate.comparator_norm(comparator_norm, domain, domain.largest_norm(self._n_classes))
        tally, rank = self.state_.tally, self._n_classes - 1
        excess = float(tally[EXCESS]) + allowance(self._matrix(), tally, merged=self._parts > 1, rank=rank)
        return self._priors * self._constants.regularization * norm**2 + excess

    def _theorem(self, n: int | None) -> dict[str, Any]:
        """The arguments that all bounds share: n, d, R, B, lam, and kappa at R."""
        check_is_fitted(self, "state_")
        self._require_proof(NoBound)
        self._require_one_game()
        require_unit_weights(self.state_.tally)
        c = self._constants
        R = self._largest_row()
        C = c.radius * R * self._logits_per_weight
        return {
            "n": int(self.state_.tally[ROWS]) if n is None else n,
            "n_features": self.n_features_in_,
            "radius": c.radius,
            "feature_bound": R,
            "regularization": c.regularization,
            "curvature": float(curvature.kappa(c.code, c.number, C, self._n_classes)),
        }
