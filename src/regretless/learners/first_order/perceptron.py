"""The Perceptron for two classes, and in Kesler's form for more."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from regretless.core.errors import NoBound, NoCertificate
from regretless.core.kernels.jit import kernel, shared_kernel
from regretless.core.kernels.one_row import RowKernels
from regretless.core.learner import ONE
from regretless.core.numbers.tally import LOSS, WIDEST, require_unit_weights
from regretless.core.rows import validate
from regretless.core.rows.compressed import Entries, parts
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.setting import Setting
from regretless.core.types import Array
from regretless.learners.first_order.learner import LinearLearner
from regretless.learners.first_order.linear import (
    FIRST_ORDER_TALLIES,
    WEIGHTS,
    count,
    forecast_table,
    loss_and_slope,
    move,
    product,
    publish,
    scores,
)
from regretless.theory import bounds
from regretless.theory.domains import Competition, WholeSpace
from regretless.theory.losses import LOSSES, rival


class PerceptronState(NamedTuple):
    """What the Perceptron has learned."""

    table: Array  # (d, 1, r): the weights
    tally: Array  # see tally.py and linear.py; the loss is the number of mistakes, the excess is 0


class PerceptronConstants(NamedTuple):
    """The loss of the comparators; the kernel reads no number."""

    loss: int


class Perceptron(LinearLearner):
    r"""The Perceptron: on a mistake the row is added to the weights of its class, otherwise nothing changes.

    **Choose it when** classes are almost separable, you need labels and no probabilities, and there should be nothing
    to tune.

    .. math:: \hat y = \mathrm{sign}(w \cdot x), \qquad w \leftarrow w + y x \ \text{ if } \ y\,w \cdot x \le 0

    With K > 2 classes each class has its own weights; on a mistake the row is added to those of the true class and
    subtracted from those of the highest-scoring other class (Kesler's construction).

    **Guarantee.** For every u, with L the total hinge loss of u and X the largest \|x\|, the mistakes are at most
    :math:`L + (|u|X)^2 + |u|X\sqrt L` (`mistake_bound`; [notes]_). For K > 2 the hinge loss is the multiclass one and
    X counts :math:`\sqrt 2` times.

    Parameters
    ----------
    None: a step size would scale the weights and change no forecast. No intercept is added: append a constant column.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of scores.
    coef_ : the weights, (1, d) for two classes and (K, d) for more.
    mistakes_ : the number of mistakes, weighted by the weights of the rows.
    state_ : `table` and `tally`.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import Perceptron
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 10))
    >>> u = rng.normal(size=10)
    >>> margin = X @ u
    >>> X, margin = X[abs(margin) > 1], margin[abs(margin) > 1]
    >>> learner = Perceptron().fit(X, margin > 0)
    >>> print(f"{learner.mistakes_:.0f} mistakes <= {learner.mistake_bound(u):.0f}")
    25 mistakes <= 180

    References
    ----------
    .. [notes] Key `ogd-notes` of REFERENCES.bib.
    """

    state_: PerceptronState
    _constants: PerceptronConstants
    loss = "hinge"
    multiclass = "hinge"

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        return {"Perceptron": cls()}

    def _prepare(self, n_features: int, n_classes: int) -> PerceptronConstants:
        return PerceptronConstants(LOSSES[self._chosen_loss(n_classes).name].code)

    def _start(self, n_features: int, n_classes: int) -> PerceptronState:
        return PerceptronState(np.zeros((n_features, 1, self._n_scores)), np.zeros(FIRST_ORDER_TALLIES))

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        return n_features

    @property
    def competes_with(self) -> Competition:
        """Every linear predictor under the hinge loss; the Perceptron's own loss is 1 per mistake."""
        return Competition(self._loss_name, WholeSpace())

    @property
    def mistakes_(self) -> float:
        """The mistakes so far, weighted by the weights of the rows."""
        check_is_fitted(self, "state_")
        return float(self.state_.tally[LOSS])

    @property
    def _reach(self) -> float:
        """The largest change of the weights in one update: X, or sqrt(2) X where two classes change."""
        return float(self.state_.tally[WIDEST]) * (math.sqrt(2.0) if self._n_scores > 1 else 1.0)

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        """An upper bound on the mistakes minus the hinge loss of any weights of the given norm: norm times |w|.

        On a mistake the hinge loss of u is at least 1 - y u.x, and w is the sum of the y x.
        """
        check_is_fitted(self, "state_")
        return self._norm(comparator_norm, NoCertificate) * float(np.linalg.norm(self.state_.table))

    def regret_bound(self, n: int | None = None, comparator_norm: float | None = None) -> float:
        """An upper bound on the mistakes minus the hinge loss of u, for any rows: |u| X sqrt(mistakes)."""
        check_is_fitted(self, "state_")
        require_unit_weights(self.state_.tally)
        if n is not None:
            raise NoBound("n: the Perceptron's bound depends on its mistakes, not on n. Use mistake_bound(u).")
        return self._norm(comparator_norm, NoBound) * self._reach * math.sqrt(self.mistakes_)

    def _norm(self, comparator_norm: float | None, refusal: type[ValueError]) -> float:
        if comparator_norm is None:
            raise refusal("the Perceptron competes with all linear predictors: give comparator_norm.")
        return validate.positive("comparator_norm", comparator_norm, zero=True)

    def mistake_bound(self, u: Any, X: Any = None, y: Any = None) -> float:
        """An upper bound on the mistakes, from the hinge loss of the weights u on the rows X with labels y.

        Without rows, u is assumed to have a margin of at least 1 on every row so far, so that its hinge loss is 0.
        """
        check_is_fitted(self, "state_")
        require_unit_weights(self.state_.tally)
        u = np.ascontiguousarray(np.asarray(u, dtype=np.float64).reshape(self._n_scores, self.n_features_in_).T)
        hinge = 0.0
        if X is not None:
            rows = self._rows(X, reset=False)
            self._check_rows(rows, ONE)
            Y, code = self._targets(y, None), self._constants.loss
            hinge = math.fsum(total_loss(u, part, Y[some], code) for some, part in parts(rows))
        return bounds.perceptron(comparator_norm=float(np.linalg.norm(u)), feature_bound=self._reach, hinge_loss=hinge)

    def _row_kernels(self) -> RowKernels | None:
        return self._rows_by(run_rows, forecast_table)

    def _learn(self, rows: Entries, Y: Array, weight: Array, out: Array) -> None:
        run(self.state_, rows, Y, weight, out)


@kernel
def mistake(z: Array, y: Array, s: Array) -> float:
    """1 if the scores predict another class than y, else 0; s becomes the direction to subtract from the weights.

    For a soft label, the mean over the classes.
    """
    s[:] = 0.0
    wrong = 0.0
    for k in range(y.size):
        if z.size == 1:
            sign = 2.0 * k - 1.0
            if sign * z[0] <= 0.0:
                s[0] -= y[k] * sign
                wrong += y[k]
        else:
            j = rival(z, k)
            if z[j] >= z[k]:
                s[j] += y[k]
                s[k] -= y[k]
                wrong += y[k]
    return wrong


@shared_kernel
def run(state: PerceptronState, rows: Entries, Y: Array, weight: Array, out: Array) -> None:
    """Play the game over a block: forecast, read the label, count the mistake, update."""
    indptr, indices, data = rows
    w, tally = state.table[:, WEIGHTS], state.tally
    z, s = np.empty(w.shape[1]), np.empty(w.shape[1])
    for t in range(indptr.size - 1):
        first, last = indptr[t], indptr[t + 1]
        square = scores(w, indices, data, first, last, z)
        publish(z, out[t])
        if weight[t] == 0.0:
            continue
        wrong = mistake(z, Y[t], s)
        count(tally, weight[t], wrong, 0.0, square, weight[t] * math.sqrt(product(s, s) * square))
        move(w, indices, data, first, last, -weight[t], s)


@kernel
def run_rows(state: PerceptronState, rows: Entries, Y: Array, weight: Array, constants: Any, out: Array) -> None:
    """`run`, which needs no constants."""
    run(state, rows, Y, weight, out)


@kernel
def total_loss(u: Array, rows: Entries, Y: Array, code: int) -> float:
    """The loss of fixed weights over a block."""
    indptr, indices, data = rows
    z, s, scratch = np.empty(u.shape[1]), np.empty(u.shape[1]), np.empty(u.shape[1])
    total = 0.0
    for t in range(indptr.size - 1):
        first, last = indptr[t], indptr[t + 1]
        scores(u, indices, data, first, last, z)
        total += loss_and_slope(code, z, Y[t], s, scratch)
    return total
