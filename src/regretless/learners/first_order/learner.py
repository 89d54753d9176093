"""LinearLearner, the base class of the first-order learners: a linear model under a convex loss.

`ScoringLearner`, above it, decides between classification and regression by the loss; `FTRL` shares it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Self

import numpy as np

from regretless.core.errors import NoBound, NoCertificate
from regretless.core.files import state_checks
from regretless.core.kernels.one_row import RowCall, RowKernels
from regretless.core.learner import OnlineClassifier
from regretless.core.numbers.tally import EXCESS, ROWS, UNEVEN, require_unit_weights
from regretless.core.rows import validate
from regretless.core.rows.compressed import Entries, parts, single
from regretless.core.scikit_learn import RegressorMixin, RegressorTags, available_if, check_is_fitted
from regretless.core.turns import reads
from regretless.core.types import Array
from regretless.learners.first_order.linear import GRADIENTS, LARGEST, MASS, SQUARES, WEIGHTS, forecast_block
from regretless.theory import losses
from regretless.theory.domains import Ball, Box, Domain, WholeSpace
from regretless.theory.losses import Custom, Loss, Oracle

MULTICLASS = {"softmax": "softmax", "hinge": "multiclass hinge"}
WITH_PROBABILITIES = ("logistic", "logit", "softmax")
NAMES = {each.code: each.name for each in losses.LOSSES.values()}
LIKELIHOODS = frozenset(code for code, name in NAMES.items() if name in WITH_PROBABILITIES)
REAL = frozenset(key for each in losses.LOSSES.values() if each.kind == "real" for key in (each.name, each.code))
LARGEST_ROW = 1e70  # of rows and targets: the squared norm of their gradients does not overflow
LARGEST_MARGIN = 300.0  # of the exponential loss: the square of its slope does not overflow


def _classifies(learner: ScoringLearner) -> bool:
    return not learner._regresses


def _has_probabilities(learner: ScoringLearner) -> bool:
    constants = learner.__dict__.get("_constants")  # by its code: this runs twice per row
    if constants is not None and type(constants.loss) is int:
        return constants.loss in LIKELIHOODS
    return learner._loss_name in WITH_PROBABILITIES


def _takes_gradients(learner: ScoringLearner) -> bool:
    if learner._loss_name != "linear":
        raise AttributeError(
            f'{type(learner).__name__} takes gradients only with loss="linear": it computes those of other losses.'
        )
    return True


class ScoringLearner(OnlineClassifier):
    """The loss decides between classification and regression, and whether scores are probabilities."""

    loss: str | Custom
    multiclass: str

    # ------------------------------------------------------------------ the loss

    @property
    def _loss_name(self) -> str:
        """The loss of the game in play, or of the next one as far as it is known."""
        if "_constants" in self.__dict__ and type(self._constants.loss) is int:
            return NAMES[self._constants.loss]
        loss = self._custom_loss
        if loss is not None:
            return loss.name
        return self.loss if isinstance(self.loss, str) else ""

    @property
    def _custom_loss(self) -> Custom | None:
        """The loss of the game in play, or of the next one, if it is a custom one."""
        given = self.__dict__.get("params_", self.__dict__).get("loss")
        if isinstance(given, str) and given in losses.LOSSES:
            return None
        try:
            found = losses.loss(given)
        except ValueError:
            return None
        return found if isinstance(found, Custom) else None

    @property
    def _regresses(self) -> bool:
        constants = self.__dict__.get("_constants")  # by its code: this runs twice per row
        if constants is not None and type(constants.loss) is int:
            return constants.loss in REAL
        custom = self._custom_loss
        return self._loss_name in REAL if custom is None else custom.kind == "real"

    def _chosen_loss(self, n_classes: int) -> Loss | Custom:
        """`loss`, or with more than two classes the loss that `multiclass` names."""
        if self.multiclass not in MULTICLASS:
            raise ValueError(f"multiclass={self.multiclass!r} is unknown: choose one of {sorted(MULTICLASS)}.")
        chosen = losses.loss(self.loss)
        if chosen.kind == "multiclass":
            raise ValueError(f"loss={self.loss!r} is for three or more classes: set it with `multiclass`.")
        if n_classes > 2 and isinstance(chosen, Custom):
            raise ValueError(
                f"the loss {chosen.name!r} is for two classes, and there are {n_classes}: use a named loss, or learn "
                "one class against the rest."
            )
        return losses.loss(MULTICLASS[self.multiclass]) if n_classes > 2 else chosen

    @property
    def _n_scores(self) -> int:
        """r: the number of scores per row."""
        return self._n_classes if self._n_classes > 2 else 1

    # ------------------------------------------------------------------ classification or regression

    @property
    def _n_classes(self) -> int:  # type: ignore[override]
        return 1 if self._regresses else len(self.classes_)

    def _meet_targets(self, y: Any, classes: Any) -> None:
        self._chosen_loss(2)
        if not self._regresses:
            super()._meet_targets(y, classes)
        else:
            self._refuse_classes(classes)

    def _refuse_classes(self, classes: Any) -> None:
        if classes is not None:
            raise ValueError(f"loss={self.loss!r} is for regression, which takes no classes.")

    def _targets(self, y: Any, classes: Any) -> Array:
        if self._regresses:
            self._refuse_classes(classes)
            return validate.numbers(y, LARGEST_ROW).reshape(-1, 1)
        return super()._targets(y, classes)

    def _target(self, y: Any, classes: Any) -> Array:
        return self._targets([y], classes) if self._regresses else super()._target(y, classes)

    def predict_then_learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Array:
        """Play the game: row t's forecast is made before row t's label is used.

        Returns probabilities (n, K) under the logistic losses, numbers (n,) for regression, and otherwise scores, as
        `decision_function` does.
        """
        return super().predict_then_learn(X, y, classes, sample_weight)

    def _said(self, out: Array) -> Array:
        return super()._said(out) if _has_probabilities(self) else self._scores(out)

    def _scores(self, out: Array) -> Array:
        if self._regresses:
            return out[:, 0]
        return out[:, 1] - out[:, 0] if out.shape[1] == 2 else out

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K), columns in the order of `classes_`. Changes nothing."""
        return super().predict_proba(X)

    predict_proba_one = available_if(_has_probabilities)(OnlineClassifier.predict_proba_one)

    @available_if(_classifies)
    @reads
    def decision_function(self, X: Any) -> Array:
        """The margin (n,) of the second class for two classes, else scores (n, K)."""
        return self._scores(self._forecasts(X))

    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest score, or the predicted number, for each row. Changes nothing."""
        return self._forecasts(X)[:, 0] if self._regresses else super().predict(X)

    def predict_one(self, x: Any) -> Any:
        """The class with the largest score, or the predicted number, for one row."""
        if not self._regresses:
            return super().predict_one(x)
        scores = self._ask(x, RowCall.scores)
        return float((self._forecast_of_one(x) if scores is None else scores)[0, 0])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy, or for regression the coefficient of determination."""
        if self._regresses:
            return float(RegressorMixin.score(self, X, y, sample_weight))
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self._regresses:
            tags.estimator_type = "regressor"
            tags.classifier_tags = None
            tags.regressor_tags = RegressorTags()
            tags.target_tags.required = True
        return tags


class LinearLearner(ScoringLearner):
    """A linear model that follows the gradients of its loss."""

    takes_sparse = True
    _one_step = True

    def _limits(self) -> tuple[float, float]:
        return math.inf, LARGEST_ROW

    def _run(self, X: Any, Y: Array, weight: Array, out: Array) -> None:
        if type(self._constants.loss) is Oracle:
            self._run_custom(X, Y, weight, out)
            return
        if len(Y) == 1 and type(X) is np.ndarray:
            self._learn(single(X), Y, weight, out)
            return
        for rows, part in parts(X):
            self._learn(part, Y[rows], weight[rows], out[rows])

    def _rows_by(self, run: Any, forecast: Any, **limits: Any) -> RowKernels | None:
        """The kernels of one row, unless a step needs more: a user's loss, or a table that gets longer."""
        c = self._constants
        if type(c.loss) is Oracle or isinstance(getattr(c, "number", None), tuple):
            return None
        return self._by_kernels(run, forecast, entries=True, **{"largest_target": LARGEST_ROW} | limits)

    def _run_custom(self, X: Any, Y: Array, weight: Array, out: Array) -> None:
        """Learn rows under a user's loss; if it fails, nothing is learned from them."""
        before = [array.copy() for array in self.state_]
        for rows, part in parts(X):
            self._learn(part, Y[rows], weight[rows], out[rows])
        errors = [callback.take_error() for callback in self._constants.loss]
        if all(np.isfinite(array).all() for array in self.state_):
            return
        for array, old in zip(self.state_, before, strict=True):
            array[...] = old
        nothing = f"Nothing was learned from these {len(Y)} rows."
        for error in errors:
            if error is not None:
                error.add_note(f"It was raised by the loss {self._loss_name!r}. {nothing}")
                raise error
        raise ValueError(
            f"the loss {self._loss_name!r} returned NaN or infinity, or its slopes were so large that the steps "
            f"overflowed: its value and slope must be finite for every score and target. {nothing}"
        )

    def _check_state(self) -> None:
        """Check the sums, and that the weights are in their set and small enough for every row."""
        tally = self.state_.tally
        state_checks.tally(tally)
        rows, largest, mass = float(tally[ROWS]), float(tally[LARGEST]), float(tally[MASS])
        state_checks.within("tally, the largest gradient", largest, 0.0, math.inf)
        slack, square = 1 + state_checks.ROUNDING, largest * largest
        state_checks.within("tally, squares of gradients", tally[SQUARES], square / slack, rows * square * slack)
        state_checks.within("tally, the sum of weights", mass, 0.0, rows * validate.HEAVIEST * slack)
        state_checks.require(tally[UNEVEN] or mass == rows, "tally: rows of weight 1 and another sum of weights")
        state_checks.weights("the weights", self._weights, min(self._largest))
        domain = self.competes_with.domain
        state_checks.require(domain.contains(self.coef_, state_checks.ROUNDING), f"the weights are not in {domain}")
        if hasattr(self.state_, "table"):
            state_checks.weights("table, the weights", self.state_.table[:, WEIGHTS], min(self._largest))
            state_checks.sums("table, the sums", self.state_.table[:, WEIGHTS + 1 :])

    @available_if(_takes_gradients)
    def learn_gradient(self, gradient: Any) -> Self:
        r"""One step with your own gradient (d,), taken at `weights_`: a stochastic or subgradient oracle.

        For loss="linear". The step is that of the algorithm, and the losses are :math:`g_t \cdot w`. If :math:`g_t` is
        a subgradient of your convex loss at `weights_`, the regret of your losses is at most that of these, so that
        certificate and bounds hold for them (with averaging, the bound on the excess risk).
        """
        self.learn_one(gradient, 1.0)
        return self

    @abstractmethod
    def _learn(self, rows: Entries, Y: Array, weight: Array, out: Array) -> None:
        """Play the game over rows in compressed form."""

    def _forecast(self, X: Any, out: Array) -> None:
        table, factor = self._forecaster
        for rows, part in parts(X):
            forecast_block(table, factor, part, out[rows])

    def _iterate(self) -> Array | None:
        return self._weights

    def _forecast_by(self, weights: Array, X: Any, out: Array) -> None:
        table = np.ascontiguousarray(weights)[:, None, :]
        for rows, part in parts(X):
            forecast_block(table, 1.0, part, out[rows])

    @property
    def _forecaster(self) -> tuple[Array, float]:
        """The table of the weights that forecast, and their common factor."""
        return self.state_.table, 1.0

    # ------------------------------------------------------------------ weights, certificate and bound

    @property
    def _weights(self) -> Array:
        """The weights (d, r) that forecast."""
        table, factor = self._forecaster
        return table[:, WEIGHTS] * factor

    def _gradients(self) -> Array:
        """The sum (d, r) of the weighted gradients; learners without a certificate do not keep it."""
        return self.state_.table[:, GRADIENTS]

    @property
    def _iterate_now(self) -> Array:
        """The weights (d, r) at which the next gradient is taken."""
        return self._weights

    @property
    def weights_(self) -> Array:
        """The weights at which the next gradient is taken: (d,) for two classes or regression, (K, d) for more."""
        check_is_fitted(self, "state_")
        weights = self._iterate_now
        return weights[:, 0].copy() if weights.shape[1] == 1 else weights.T.copy()

    @property
    def coef_(self) -> Array:
        """The weights that forecast, one row per score: (1, d) for two classes or regression, else (K, d)."""
        check_is_fitted(self, "state_")
        return self._weights.T

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        r"""An upper bound on the regret against every comparator of the class (or of a given norm).

        A convex loss lies above its tangents, so the regret against u is at most
        :math:`\sum_t g_t \cdot (w_t - u)`. The largest value over the class is a linear problem in the sum of
        gradients: it needs no solver and no second pass.
        """
        check_is_fitted(self, "state_")
        G, domain = self._gradients(), self.competes_with.domain
        return float(self.state_.tally[EXCESS]) + _farthest(G, domain, comparator_norm)

    def _rounds(self, n: int | None) -> int:
        """The number of rows of a bound, after checking that the bound applies."""
        check_is_fitted(self, "state_")
        require_unit_weights(self.state_.tally)
        return int(self.state_.tally[ROWS]) if n is None else n


def _farthest(G: Array, domain: Domain, comparator_norm: float | None) -> float:
    """The largest -G.u over the set, or over its elements of at most the given Euclidean norm."""
    size = math.inf
    if comparator_norm is not None:
        largest = domain.diameter(G.size) / 2 if isinstance(domain, Box) else domain.largest_norm(1)
        size = validate.comparator_norm(comparator_norm, domain, largest)
    if isinstance(domain, WholeSpace):
        if comparator_norm is None:
            raise NoCertificate(
                "this learner competes with all linear predictors, and its regret grows with their "
                "norm: give comparator_norm."
            )
        return size * float(np.linalg.norm(G))
    most = -float(np.sum(G * domain.minimise_linear(G)))
    return most if math.isinf(size) else min(most, size * float(np.linalg.norm(G)))


def require_bounded_scores(loss: Loss | Custom, remedy: str) -> None:
    """Refuse losses whose slopes grow with the scores if the scores are unbounded."""
    if isinstance(loss, Custom) and loss.slope_bound is None:
        raise ValueError(
            f"the loss {loss.name!r} needs bounded weights, unless its slopes are bounded: give its slope_bound. "
            f"{remedy}"
        )
    if loss.name in ("squared", "exponential"):
        raise ValueError(f"loss={loss.name!r} needs bounded weights: its slope grows with the scores. {remedy}")


def require_gradients_within(largest: float, bound: float) -> None:
    """Refuse a bound whose assumption on the gradients was violated."""
    if validate.beyond(largest, bound):
        raise NoBound(
            f"the norm of a gradient was {largest:.6g}, beyond gradient_bound={bound:.6g}, and the theorem does not "
            "apply: raise gradient_bound, or use regret_certificate(), which is still valid."
        )


def ball_of(radius: float) -> Domain:
    """The ball, or all of space for an infinite radius."""
    return WholeSpace() if math.isinf(radius) else Ball(radius)
