"""OnlineBoosting: AdaBoost.OLM++ over weak learners, with boosting regression by FOLKLORE."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.core.errors import BadRow, NoBound, NoCertificate
from regretless.core.files import state_checks
from regretless.core.interrupts import listen, uninterrupted
from regretless.core.kernels.copying import copy_lines
from regretless.core.kernels.jit import kernel
from regretless.core.learner import ONE, OnlineClassifier
from regretless.core.numbers.deviations import joined, standardised
from regretless.core.numbers.draws import uniform
from regretless.core.numbers.links import leader, softmax
from regretless.core.numbers.tally import ROWS, TALLIES, record, require_unit_weights
from regretless.core.rows import validate
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.types import Array
from regretless.learners.ensembles import boost_regression as regression
from regretless.learners.ensembles.weak import (
    COMPILED,
    COUNT,
    MEAN,
    SQUARE,
    WeakLearner,
    Weighted,
    check_memory,
    hear,
    memory_shape,
    new_memory,
    say,
)
from regretless.theory import bounds

LARGEST = 1e150
FARTHEST = 1e100  # standard deviations: sums of their squares do not overflow
begin, learn, move = regression.begin, regression.learn, regression.move


class BoostingConstants(NamedTuple):
    """The numbers the kernel reads."""

    n_estimators: int
    kind: int  # of a compiled weak learner, or -1
    seed: int


class BoostingState(NamedTuple):
    """The state of the stages, one row per stage."""

    moments: Array  # (3, d) count, mean and sum of squared deviations of the columns: see core/numbers/deviations.py
    memory: Array  # of compiled weak learners: see weak.py
    regression: Array  # (N, 6): see boost_regression.py
    log_weight: Array  # (N,) of Hedge: minus the mistakes
    edges: Array  # (N, 2) sums of the costs of the predicted labels, and of 1 - p(y)
    drawn: Array  # (1,) mistakes of the drawn labels
    tally: Array


class OnlineBoosting(OnlineClassifier):
    r"""Online multiclass boosting: N weak learners, each with costs that reflect the errors of those before it.

    **Choose it when** the share of errors counts and not the probabilities, with many classes and columns that act
    together.

    Stage i receives the scores :math:`s^{i-1}` of the stages before (0 for the first). With p their softmax, its weak
    learner predicts a label under the costs

    .. math:: C(y, l) = \frac{p_l - p_y + 1}{K}\ (l \ne y), \qquad C(y, y) = 0;

    boosting regression then moves the score of that label (`BoostingRegression`). The forecast is the most
    probable label of one stage, drawn in proportion to exp(-mistakes of the stage) (Hedge); probabilities are the mean
    of the stages' probabilities with the same weights. The cost per row is O(N K) plus that of the weak learners.

    **Guarantee.** With probability :math:`1-\delta` the drawn labels are wrong at most :math:`16\,(n \ln K + N
    R(n))/\sum_i\gamma_i^2 + 2\ln(N/\delta)` times, :math:`\gamma_i` being the edges of the weak learners (`edges_`) and
    :math:`R(n) = O(\log^2 n)` (Proposition 12 and Theorem 13 of [FOLKLORE]_; `mistake_bound`).

    Parameters
    ----------
    estimator : "ferns" (20 random tables of four columns, each column in four parts: the label of least mean cost),
        "stump" (one column in eight parts, each with the label of least cost), "naive-bayes" (normal features, rows
        weighted by their cost), any classifier of this library (rows weighted by their cost, see
        `regretless.learners.ensembles.weak.Weighted`), or an object with the methods of
        `regretless.learners.ensembles.weak.WeakLearner`. Each stage has a copy. The compiled ones, named by a string,
        scale the columns by running moments. A fern has 256 K numbers: N stages take 41 N K kilobytes.
    n_estimators : N, the number of stages.
    random_state : seed of ferns, cuts and draws. Draws depend on the seed and the number of the row.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of probabilities.
    edges_ : (N,) gamma, the edge of each weak learner over chance.
    stage_mistakes_ : (N,) the mistakes of the label of each stage.
    mistakes_ : the mistakes of the drawn labels.
    estimators_ : the fitted learners of the stages, if they are learners of this library.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from regretless import OnlineBoosting
    >>> X, y = load_digits(return_X_y=True)
    >>> boosted = OnlineBoosting(n_estimators=20).fit(X, y)
    >>> lone = OnlineBoosting(n_estimators=1).fit(X, y)
    >>> boosted.mistakes_ < 0.8 * lone.mistakes_
    True

    References
    ----------
    .. [FOLKLORE] Agarwal, Kale and Zimmert (2022), key `folklore` of REFERENCES.bib, Algorithms 3 and 4.
    """

    state_: BoostingState
    _constants: BoostingConstants
    holds_copies = True
    _learned = ("_weak",)
    _weak: list[WeakLearner]

    def __init__(self, estimator: Any = "ferns", n_estimators: int = 20, random_state: int = 0) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.random_state = random_state

    def _prepare(self, n_features: int, n_classes: int) -> BoostingConstants:
        n_estimators = validate.whole("n_estimators", self.n_estimators, 1)
        seed = validate.whole("random_state", self.random_state, 0)
        weak, kind = self.estimator, -1
        if isinstance(weak, str):
            if weak not in COMPILED:
                raise ValueError(f"estimator={weak!r} is unknown: choose one of {list(COMPILED)}, or give an object.")
            kind = COMPILED[weak]
        elif not isinstance(weak, OnlineClassifier) and not all(
            callable(getattr(weak, verb, None)) for verb in ("start", "predict", "update")
        ):
            raise ValueError(
                f"estimator={weak!r} must implement start(), predict() and update(), or be a classifier of regretless."
            )
        return BoostingConstants(n_estimators, kind, seed)

    def _start(self, n_features: int, n_classes: int) -> BoostingState:
        c = self._constants
        stages = np.empty((c.n_estimators, regression.MEMORY))
        for stage in stages:
            begin(stage, regression.REGULARIZATION)
        if c.kind >= 0:
            memory = new_memory(c.kind, c.n_estimators, n_features, n_classes, c.seed)
        else:
            memory = np.empty((c.n_estimators, 0, 0))
            weak = self.estimator
            weak = Weighted(weak) if isinstance(weak, OnlineClassifier) else weak
            self._weak = [deepcopy(weak) for _ in range(c.n_estimators)]
            for i, weak in enumerate(self._weak):
                weak.start(n_features, n_classes, c.seed + i)
        return BoostingState(
            moments=np.zeros((3, n_features)),
            memory=memory,
            regression=stages,
            log_weight=np.zeros(c.n_estimators),
            edges=np.zeros((c.n_estimators, 2)),
            drawn=np.zeros(1),
            tally=np.zeros(TALLIES),
        )

    def _n_copies(self, n_classes: int) -> int:
        """The number of stages."""
        return self.n_estimators

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        stages = self.n_estimators if isinstance(self.n_estimators, int) else 0
        if isinstance(self.estimator, str) and self.estimator in COMPILED:
            return math.prod(memory_shape(COMPILED[self.estimator], stages, n_features, n_classes))
        return stages

    def _check_state(self) -> None:
        c, state = self._constants, self.state_
        state_checks.tally(state.tally)
        state_checks.moments("moments", state.moments, float(state.tally[ROWS]), LARGEST)
        if c.kind >= 0:
            check_memory(c.kind, state.memory, self.n_features_in_)
        regression.check(state.regression)
        state_checks.within("log_weight", state.log_weight, -state_checks.LARGEST, 0.0)
        state_checks.sums("edges", state.edges)
        state_checks.within("edges, 1 - p(y)", state.edges[:, 1], -state_checks.ROUNDING, math.inf)
        state_checks.within("drawn", state.drawn, 0.0, state_checks.LARGEST)

    def _limits(self) -> tuple[float, float]:
        return math.inf, LARGEST

    @property
    def holds(self) -> dict[str, str]:  # type: ignore[override]
        """The stages, if they are learners of this library."""
        given = self.__dict__.get("params_", {}).get("estimator", self.estimator)
        return {"estimator": "estimators_"} if isinstance(given, OnlineClassifier | Weighted) else {}

    @property
    def estimators_(self) -> list[OnlineClassifier]:
        """The learners of the stages, if these are learners of this library."""
        check_is_fitted(self, "state_")
        return [weak.learner_ for weak in getattr(self, "_weak", []) if isinstance(weak, Weighted)]

    # ------------------------------------------------------------------ the game

    def _targets(self, y: Any, classes: Any) -> Array:
        return hard(super()._targets(y, classes))

    def _target(self, y: Any, classes: Any) -> Array:
        return hard(super()._target(y, classes))

    def _run(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        c = self._constants
        if c.kind >= 0:
            run(self.state_, X, Y, weight, c, out)
            return
        for t in range(X.shape[0]):
            self._run_row(X[t], Y[t], float(weight[t]), out[t])
            listen()

    def _forecast(self, X: Array, out: Array) -> None:
        state, c = self.state_, self._constants
        if c.kind >= 0:
            forecast(state, X, c, out)
            return
        for t in range(X.shape[0]):
            decide(state.log_weight, self._climb(X[t])[1], c.seed, state.tally[ROWS], out[t])

    @uninterrupted()
    def _run_row(self, x: Array, Y: Array, weight: float, out: Array) -> None:
        """Play one row with weak learners that are Python objects."""
        state = self.state_
        clip = math.log(state.tally[ROWS] + 2.0)
        scores, p, labels, costs = self._climb(x)
        said = decide(state.log_weight, p, self._constants.seed, state.tally[ROWS], out)
        if weight == 0.0:
            return
        y = int(Y.argmax())
        score(state, p, labels, said, y, weight, out)
        for i, weak in enumerate(self._weak):
            weak.update(x, costs[i], y)
            learn(state.regression[i], scores[i], labels[i], y, clip, weight)

    def _climb(self, x: Array) -> tuple[Array, Array, NDArray[np.int64], Array]:
        """Scores and probabilities before and after every stage, the predicted labels, and the costs."""
        state, N, K = self.state_, len(self._weak), self._n_classes
        clip = math.log(state.tally[ROWS] + 2.0)
        scores, p = np.zeros((N + 1, K)), np.empty((N + 1, K))
        labels: NDArray[np.int64] = np.empty(N, np.int64)
        costs = np.empty((N, K, K))
        for i, weak in enumerate(self._weak):
            softmax(scores[i], p[i])
            costs[i] = (p[i][None, :] - p[i][:, None] + 1.0) / K
            np.fill_diagonal(costs[i], 0.0)
            labels[i] = weak.predict(x, costs[i])
            if not 0 <= labels[i] < K:
                raise ValueError(
                    f"the weak learner of stage {i} predicted {labels[i]}: predict() must return 0 to {K - 1}."
                )
            move(state.regression[i], scores[i], labels[i], clip, scores[i + 1])
        softmax(scores[N], p[N])
        return scores, p, labels, costs

    # ------------------------------------------------------------------ results

    @property
    def edges_(self) -> Array:
        """The edge of each weak learner over chance: 1 is always right, 0 is chance."""
        check_is_fitted(self, "state_")
        edges: Array = -self.state_.edges[:, 0] / np.maximum(self.state_.edges[:, 1], 1e-300)
        return edges

    @property
    def stage_mistakes_(self) -> Array:
        """The mistakes of each stage's label."""
        check_is_fitted(self, "state_")
        return -self.state_.log_weight

    @property
    def stage_weights_(self) -> Array:
        """Hedge's weights, which sum to 1."""
        check_is_fitted(self, "state_")
        weights: Array = np.exp(self.state_.log_weight - self.state_.log_weight.max())
        return weights / weights.sum()

    def stage_scores(self, X: Any) -> Array:
        """The scores after every stage, (n, N, K); a stage's label has the largest. Changes nothing."""
        check_is_fitted(self, "state_")
        rows = np.asarray(self._rows(X, reset=False))
        self._check_rows(rows, ONE)
        state, c = self.state_, self._constants
        out = np.zeros((len(rows), c.n_estimators, self._n_classes))
        if c.kind >= 0:
            stage_scores(state, rows, c.kind, out)
            return out
        for t, x in enumerate(rows):
            out[t] = self._climb(x)[0][1:]
        return out

    @property
    def mistakes_(self) -> float:
        """The mistakes of the drawn labels."""
        check_is_fitted(self, "state_")
        return float(self.state_.drawn[0])

    @property
    def stage_regret_(self) -> Array:
        """An upper bound on the regret of each stage's boosting regression, against every alpha in [-2, 2]."""
        check_is_fitted(self, "state_")
        return regression.regret(self.state_.regression)

    def mistake_bound(self, failure: float = 0.05) -> float:
        """An upper bound on the mistakes of the drawn labels, with probability 1 - `failure`.

        That of Proposition 12 (`regretless.bounds.boosting`), or the number of rows if this is smaller.
        """
        check_is_fitted(self, "state_")
        require_unit_weights(self.state_.tally)
        n = int(self.state_.tally[ROWS])
        promised = bounds.boosting(
            n,
            n_classes=self._n_classes,
            edges=np.clip(self.edges_, -1.0, 1.0).tolist(),
            regret=float(self.stage_regret_.max()),
            failure=failure,
        )
        return min(float(n), promised)

    @property
    def competes_with(self) -> None:  # type: ignore[override]
        """None: the guarantee bounds mistakes, not regret."""
        return None

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        """Raises `NoCertificate`: see `mistake_bound` and `stage_regret_`."""
        check_is_fitted(self, "state_")
        raise NoCertificate("OnlineBoosting competes with no fixed set, so it has no regret: use mistake_bound().")

    def regret_bound(self, n: int | None = None) -> float:
        """Raises `NoBound`: see `mistake_bound`."""
        check_is_fitted(self, "state_")
        raise NoBound("OnlineBoosting competes with no fixed set, so it has no regret: use mistake_bound().")


def hard(Y: Array) -> Array:
    """Label distributions that are sure of a class; others are refused."""
    if (Y.max(axis=1) < 1.0).any():
        i = int(np.argmax(Y.max(axis=1) < 1.0))
        raise BadRow(f"row {i}: a soft label {Y[i].tolist()}. OnlineBoosting counts mistakes: give one class per row.")
    return Y


@kernel
def decide(log_weight: Array, p: Array, seed: int, row: float, out: Array) -> int:
    """The log of the mean of the stages' probabilities p[1:], by Hedge's weights; returns the drawn label."""
    N = log_weight.size
    top = np.max(log_weight)
    total = 0.0
    for i in range(N):
        total += math.exp(log_weight[i] - top)
    mark = uniform(seed, row) * total
    said = -1
    out[:] = 0.0
    reached = 0.0
    for i in range(N):
        weight = math.exp(log_weight[i] - top)
        reached += weight
        if said < 0 and (mark < reached or i == N - 1):
            said = leader(p[i + 1])
        for k in range(out.size):
            out[k] += weight / total * p[i + 1, k]
    for k in range(out.size):
        out[k] = math.log(max(out[k], 1e-300))
    return said


@kernel
def score(
    state: BoostingState, p: Array, labels: NDArray[np.int64], said: int, y: int, weight: float, out: Array
) -> None:
    """Count the mistakes of every stage and of the drawn label, and the edges."""
    log_weight, edges, drawn = state.log_weight, state.edges, state.drawn
    for i in range(log_weight.size):
        edges[i, 0] += weight * (p[i, labels[i]] - (1.0 if labels[i] == y else 0.0))
        edges[i, 1] += weight * (1.0 - p[i, y])
        if leader(p[i + 1]) != y:
            log_weight[i] -= weight
    if said != y:
        drawn[0] += weight
    record(state.tally, weight, -weight * out[y], 0.0, 1.0)


@kernel
def standardise(moments: Array, x: Array, z: Array) -> None:
    """Standardise features by the means and deviations of the rows before."""
    for j in range(x.size):
        away = standardised(moments[SQUARE, j], x[j] - moments[MEAN, j], moments[COUNT, j])
        z[j] = min(max(away, -FARTHEST), FARTHEST)


@kernel
def climb(
    memory: Array, stages: Array, z: Array, kind: int, clip: float, scores: Array, p: Array, labels: NDArray[np.int64]
) -> None:
    """For each stage: the probabilities so far, the weak learner's label, and the scores moved towards it."""
    N = labels.size
    scores[0] = 0.0
    for i in range(N):
        softmax(scores[i], p[i])
        labels[i] = say(kind, memory, i, z)
        move(stages[i], scores[i], labels[i], clip, scores[i + 1])
    softmax(scores[N], p[N])


@kernel
def stage_scores(state: BoostingState, X: Array, kind: int, out: Array) -> None:
    """The scores after every stage, (n, N, K)."""
    n, N, K = out.shape
    z, scores, p, labels = np.empty(X.shape[1]), np.empty((N + 1, K)), np.empty((N + 1, K)), np.empty(N, np.int64)
    for t in range(n):
        standardise(state.moments, X[t], z)
        climb(state.memory, state.regression, z, kind, math.log(state.tally[ROWS] + 2.0), scores, p, labels)
        copy_lines(scores[1:], out[t])


@kernel
def forecast(state: BoostingState, X: Array, constants: BoostingConstants, out: Array) -> None:
    """The forecasts of a block, with compiled weak learners."""
    N, K, rows = state.log_weight.size, out.shape[1], state.tally[ROWS]
    z, scores, p, labels = np.empty(X.shape[1]), np.zeros((N + 1, K)), np.empty((N + 1, K)), np.empty(N, np.int64)
    for t in range(X.shape[0]):
        standardise(state.moments, X[t], z)
        climb(state.memory, state.regression, z, constants.kind, math.log(rows + 2.0), scores, p, labels)
        decide(state.log_weight, p, constants.seed, rows, out[t])


@kernel
def run(state: BoostingState, X: Array, Y: Array, weight: Array, constants: BoostingConstants, out: Array) -> None:
    """The game over a block, with compiled weak learners."""
    moments, memory, stages, tally, kind = state.moments, state.memory, state.regression, state.tally, constants.kind
    log_weight = state.log_weight
    n, d = X.shape
    N, K = log_weight.size, Y.shape[1]
    z, scores, p = np.empty(d), np.zeros((N + 1, K)), np.empty((N + 1, K))
    labels, cost = np.empty(N, np.int64), np.empty(K)
    for t in range(n):
        clip = math.log(tally[ROWS] + 2.0)
        standardise(moments, X[t], z)
        climb(memory, stages, z, kind, clip, scores, p, labels)
        said = decide(log_weight, p, constants.seed, tally[ROWS], out[t])
        if weight[t] == 0.0:
            continue
        y = leader(Y[t])
        score(state, p, labels, said, y, weight[t], out[t])
        for i in range(N):
            for k in range(K):
                cost[k] = (p[i, k] - p[i, y] + 1.0) / K if k != y else 0.0
            hear(kind, memory, i, z, cost, y, weight[t])
            learn(stages[i], scores[i], labels[i], y, clip, weight[t])
        for j in range(d):
            moments[COUNT, j] += 1.0
            away = X[t, j] - moments[MEAN, j]
            moments[MEAN, j] += away / moments[COUNT, j]
            moments[SQUARE, j] = joined(moments[SQUARE, j], away, X[t, j] - moments[MEAN, j], 1.0)
