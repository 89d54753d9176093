"""OnlineToBatch: from a learner on a stream to one fixed predictor."""

from __future__ import annotations

import copy
import inspect
import math
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, Self

import numpy as np

from regretless.core.errors import NoBound, NoCertificate
from regretless.core.interrupts import uninterrupted
from regretless.core.learner import OnlineLearner
from regretless.core.numbers.tally import WIDEST, require_unit_weights
from regretless.core.rows import validate
from regretless.core.rows.labels import Labels
from regretless.core.scikit_learn import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    _num_samples,
    available_if,
    check_is_fitted,
    clone,
    is_regressor,
    validate_data,
)
from regretless.core.turns import TakesTurns, reads
from regretless.core.types import Array
from regretless.theory import bounds
from regretless.theory.domains import Ball

METHODS = ("random", "average", "last", "suffix")


def _offers(name: str) -> Callable[[OnlineToBatch], bool]:
    """Whether the learner has this method."""
    return lambda estimator: hasattr(getattr(estimator, "estimator_", estimator.estimator), name)


class OnlineToBatch(TakesTurns, BaseEstimator):
    r"""One fixed predictor from the n forecasters of an online run, as a scikit-learn estimator.

    **Choose it when** rows are independent draws, and you want one fixed scikit-learn estimator from one pass, with a
    bound on its risk.

    `fit` runs the learner once over the rows, in the given order. The forecaster of row t has learned the t - 1 rows
    before it. The n forecasters are combined into one:

    - "random": the forecaster of a row :math:`\tau` drawn uniformly from 1, ..., n. Only one copy is stored at a time:
      row t replaces it with probability 1/t, so that n need not be known (`partial_fit`). The rows of replacement,
      about ln n of them, are drawn by skips, :math:`t' = 1 + \lfloor t/U \rfloor` with U uniform, and the rows between
      are learned in blocks.
    - "average": the mean of the n weights, for proper learners, whose forecasts are linear. By Jensen's inequality it
      has the same guarantee.
    - "suffix": the mean of the last half of the weights.
    - "last": the learner after all rows.

    An improper learner, such as `AIOLI`, solves an optimisation problem for each new row: "random" and "last" store its
    whole state.

    **Guarantee.** For independent rows of one distribution, "random" and "average" have an expected excess risk over
    the best comparator of at most the regret bound divided by n, because row t is independent of the rows that its
    forecaster has learned ([AIOLI]_ Corollary 6, [FOLKLORE]_ section 4.3). `excess_risk_bound()` is this number. "last"
    and "suffix" are often better, but have no such proof.

    With high probability: for the log loss over a ball, the mean weights of a proper learner (`OGD`, `ONS`) have with
    probability :math:`1 - \delta` an excess risk of at most
    :math:`O((\mathrm{regret} + e^{BR}\ln\frac1\delta)/n)`, without the :math:`\sqrt{\ln(1/\delta)/n}` of other losses,
    because the log loss is exp-concave ([Mehta]_). `excess_risk_bound(failure=delta)` is this number. A random
    forecaster has no such bound, and improper forecasters need another algorithm: see `ShiftedLeastSquares`.

    Parameters
    ----------
    estimator : the learner. It is cloned, and not changed.
    method : "random", "average", "suffix" or "last".
    random_state : seed of the random row. Draws depend only on it and on the row, so there is no generator to save.

    Attributes
    ----------
    estimator_ : the learner after all rows.
    kept_ : the learner that makes the forecasts, which can be saved (`kept_.save(path)`); None if weights are averaged.
    weights_ : the averaged weights, in the learner's format; None if a state is stored.
    n_rows_ : the number of rows learned (with weight above 0).
    n_rows_kept_ : the number of rows that `kept_` has learned; if weights are averaged, the number of weights in the
        average.
    classes_, n_features_in_ : as in the learner.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import AIOLI, OnlineToBatch
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 5)) / np.sqrt(5)
    >>> y = rng.random(3000) < 1 / (1 + np.exp(-X @ [3, -3, 2, 0, 1]))
    >>> model = OnlineToBatch(AIOLI(radius=5.0), random_state=1).fit(X[:2000], y[:2000])
    >>> p = model.predict_proba(X[2000:])
    >>> print(model.n_rows_kept_, f"{-np.log(np.where(y[2000:], p[:, 1], p[:, 0])).mean():.4f}")
    683 0.4454
    >>> print(f"expected excess risk <= {model.excess_risk_bound():.4f}")
    expected excess risk <= 0.0791

    References
    ----------
    .. [AIOLI] Jézéquel, Gaillard and Rudi (2020), key `aioli` of REFERENCES.bib.
    .. [FOLKLORE] Agarwal, Kale and Zimmert (2022), key `folklore`.
    .. [Mehta] Mehta (2017), key `mehta`; the proof and its constants are in `bounds.averaged_log_loss`.
    """

    estimator_: Any
    kept_: Any
    weights_: Array | None
    n_rows_: int
    n_rows_kept_: int
    _next_row: int  # the next row before which something is stored, counted from 1
    _learned: ClassVar[tuple[str, ...]] = ("_next_row",)

    def __init__(self, estimator: OnlineLearner, method: str = "random", random_state: int = 0) -> None:
        self.estimator = estimator
        self.method = method
        self.random_state = random_state

    @classmethod
    def _example(cls) -> Self:
        """A small example for tests."""
        from regretless.learners.second_order.aioli import AIOLI

        return cls(AIOLI())

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Start from scratch: run once over the rows in the given order, and store one predictor."""
        return self._learn(X, y, classes, sample_weight, fresh=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Continue with more rows. The first call needs `classes` if its labels do not include all of them."""
        if self.method == "suffix":
            raise ValueError(
                'method="suffix" needs the number of rows in advance, for the last half of the rows: use fit.'
            )
        return self._learn(X, y, classes, sample_weight, fresh=not hasattr(self, "estimator_"))

    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any, fresh: bool) -> Self:
        before, block = dict(vars(self)), None
        try:
            if fresh:
                self._begin(y, sample_weight)
                if y is not None and not is_regressor(self.estimator):
                    classes = Labels.of(y, classes).classes  # so that the learner starts with the first row
            block = self.estimator_._open_block(X, y, classes, sample_weight, keep=False)
            self._learn_block(block)
        except BaseException:
            if fresh or block is None or block.at == 0:
                self.__dict__.clear()
                self.__dict__.update(before)
            else:  # the first rows of the block are learned
                self._conclude()
            raise
        self._conclude()
        return self

    def _learn_block(self, block: Any) -> None:
        """Learn a block, with a stop before every row at which something is stored."""
        counted = np.flatnonzero(block.weight)  # rows of weight 0 do not count
        learned = self.n_rows_
        try:
            while self._next_row <= learned + counted.size:
                block.learn_to(int(counted[self._next_row - learned - 1]))
                with uninterrupted():
                    self._keep(self._next_row)
            block.learn_to(block.n)
        finally:
            self.n_rows_ = learned + int(np.searchsorted(counted, block.at))

    def _conclude(self) -> None:
        """Set the fitted attributes."""
        if self.method == "last" or self.n_rows_ == 0:
            self.kept_, self.n_rows_kept_ = self.estimator_, self.n_rows_
        self.n_features_in_ = self.estimator_.n_features_in_
        for name in ("feature_names_in_", "classes_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))

    def _begin(self, y: Any, sample_weight: Any) -> None:
        if not isinstance(self.estimator, OnlineLearner):
            raise ValueError(f"estimator={self.estimator!r} is not a learner of regretless: pass one, such as AIOLI().")
        if self.method not in METHODS:
            raise ValueError(f"method={self.method!r} is unknown: choose one of {METHODS}.")
        validate.whole("random_state", self.random_state, 0)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.estimator_ = clone(self.estimator)
        self.kept_, self.weights_, self.n_rows_, self.n_rows_kept_ = None, None, 0, 0
        self._next_row = 1
        if self.method == "last":
            self._next_row = sys.maxsize
        elif self.method == "suffix" and y is not None:
            n = _num_samples(y)
            self._next_row = int(np.count_nonzero(validate.weights(sample_weight, n))) // 2 + 1

    def _keep(self, t: int) -> None:
        """Store the learner after t - 1 rows, or add its weights to the mean, and set the next row to stop at."""
        if self.method == "random":
            self.kept_, self.n_rows_kept_ = copy.deepcopy(self.estimator_), t - 1
            u = 1.0 - np.random.default_rng([int(self.random_state), t]).random()  # in (0, 1]
            self._next_row = 1 + math.floor(t / u)
            return
        weights = self.estimator_._iterate()
        if weights is None:
            raise ValueError(
                f"method={self.method!r} needs a learner whose forecasts are linear in the row, and those of "
                f'{type(self.estimator_).__name__} do not depend on weights alone. Use method="random" or "last".'
            )
        self.n_rows_kept_ += 1
        self.weights_ = np.zeros_like(weights) if self.weights_ is None else self.weights_
        self.weights_ += (weights - self.weights_) / self.n_rows_kept_
        self._next_row = t + 1

    # ------------------------------------------------------------------ forecasts

    def _predictor(self, X: Any) -> Any:
        """The learner that makes the forecasts."""
        check_is_fitted(self, "estimator_")
        if len(getattr(X, "shape", ())) == 2:
            validate_data(self, X, reset=False, skip_check_array=True)
        if self.weights_ is None:
            return self.kept_
        learner, weights = copy.copy(self.estimator_), self.weights_
        learner._forecast = lambda X, out: learner._forecast_by(weights, X, out)
        return learner

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row, or its predicted number."""
        found: np.ndarray = self._predictor(X).predict(X)
        return found

    @available_if(_offers("predict_proba"))
    @reads
    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K), columns in the order of `classes_`."""
        found: Array = self._predictor(X).predict_proba(X)
        return found

    @available_if(_offers("decision_function"))
    @reads
    def decision_function(self, X: Any) -> Array:
        """The margin (n,) of the second class for two classes, else scores (n, K)."""
        found: Array = self._predictor(X).decision_function(X)
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy for classifiers, the coefficient of determination for regressors."""
        kind = RegressorMixin if is_regressor(self) else ClassifierMixin
        return float(kind.score(self, X, y, sample_weight))

    # ------------------------------------------------------------------ guarantee

    def excess_risk_bound(self, comparator_norm: float | None = None, failure: float | None = None) -> float:
        """An upper bound on the excess risk over the best comparator, for i.i.d. rows, in the loss of `competes_with`.

        Without `failure`: on the expected excess risk, the learner's regret bound for the n rows, divided by n. The
        expectation is over the rows and the random choice. If the learner has no declared bound on the rows, the
        theorem is applied with the largest row so far, and the number is itself random: its expectation is the bound.

        With `failure`, a probability: on the excess risk itself, except with this probability, for the mean weights of
        a proper learner with log loss and a ball. The regret is that of the certificate, if it is smaller. If the
        learner has no declared bound on the rows, new rows must not be longer than the longest so far.
        """
        check_is_fitted(self, "estimator_")
        if self.method not in ("random", "average"):
            raise NoBound(
                f"method={self.method!r} has no theorem, because the regret covers all forecasters of the run. Use "
                '"random", or for proper learners "average".'
            )
        if hasattr(self.estimator_, "mistake_bound"):
            raise NoBound(
                "the Perceptron's theorem bounds its mistakes by the hinge loss of comparators, which is not an excess "
                "risk: use another learner."
            )
        if self.n_rows_ == 0:
            raise NoBound("no row was learned: fit rows of weight above 0 first.")
        if failure is not None:
            return self._risk_bound_with_probability(failure, comparator_norm)
        asks = "comparator_norm" in inspect.signature(self.estimator_.regret_bound).parameters
        return (
            float(self.estimator_.regret_bound(**({"comparator_norm": comparator_norm} if asks else {}))) / self.n_rows_
        )

    def _risk_bound_with_probability(self, failure: float, comparator_norm: float | None) -> float:
        """See `bounds.averaged_log_loss`."""
        learner = self.estimator_
        loss, domain, regularization = learner.competes_with
        if self.method != "average":
            raise NoBound(
                f"method={self.method!r} has no bound with high probability: the risk of one forecaster of the run may "
                'be far above the mean. Use "average".'
            )
        if loss not in ("logistic", "softmax") or not isinstance(domain, Ball) or regularization:
            raise NoBound(
                f"the theorem is about the log loss over a ball, and {type(learner).__name__} competes under the "
                f"{loss} loss{' with regularization' if regularization else ''} over {domain}: use OGD or ONS, or for "
                "the squared loss ShiftedLeastSquares."
            )
        if comparator_norm is not None and comparator_norm != domain.radius:
            raise NoBound(
                "the theorem compares with the best weights of the whole ball: omit comparator_norm, or refit with "
                "a smaller radius."
            )
        tally = learner.state_.tally
        require_unit_weights(tally)
        regrets = []
        for verb in (learner.regret_certificate, learner.regret_bound):
            with suppress(NoBound, NoCertificate):
                regrets.append(float(verb()))
        return bounds.averaged_log_loss(
            self.n_rows_,
            regret=max(min(regrets), 0.0) if regrets else learner.regret_bound(),  # which says why there is none
            n_classes=len(self.classes_),
            radius=domain.radius,
            feature_bound=getattr(learner._constants, "feature_bound", 0.0) or float(tally[WIDEST]),
            failure=failure,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, OnlineLearner):
            of_base = self.estimator.__sklearn_tags__()
            for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags", "input_tags"):
                setattr(tags, name, getattr(of_base, name))
        return tags
