"""What OnlineLogisticRegression has learned, and how it grows: a class more, or a column more."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from regretless.core import state_checks
from regretless.core.scores import N_SCORED, new_scores
from regretless.core.tally import ROWS, TALLIES
from regretless.core.types import Array
from regretless.learners.logistic import newton
from regretless.learners.logistic.adagrad import GRADIENTS, SQUARES, WEIGHTS
from regretless.learners.logistic.members import Members
from regretless.learners.logistic.reading import LARGEST
from regretless.learners.logistic.scaling import COUNT
from regretless.learners.second_order.rounding import ROOT, SUMS, check_matrix


class LogisticState(NamedTuple):
    """Members lie along the first axis. Slots are classes in the order of their first sight, two at least."""

    moments: Array  # (3, d) of the columns: see scaling.py
    P: Array  # (M, r d', r d') of AIOLI or FOLKLORE, d' = d + 1 with the intercept
    w: Array  # (M, r d')
    tallies: Array  # (M, SUMS)
    matrices: Array  # (N, K, d', d') of Newton's members; (N, 1, d', d') for two classes
    weights: Array  # (N, K, d')
    tables: Array  # (R, 3, K, d') of AdaGrad's: see adagrad.py
    slopes: Array  # (R,) the sums of g.w
    log_weight: Array  # (members,) of the mixture, up to a constant
    losses: Array  # (members,) suffered
    slots: Array  # (K,) the place of each slot's class in `classes_`; -1 where no class has it yet
    scores: Array  # see scores.py
    bins: Array
    tally: Array


def start(n_columns: int, intercept: bool, n_classes: int, members: Members) -> LogisticState:
    """Nothing learned yet."""
    d = n_columns + intercept
    M, N, R = len(members.radii), len(members.newton), len(members.rates)
    C, r = n_classes if n_classes > 2 else 1, n_classes - 1
    # AIOLI's lambda is of the margin's weights, sqrt(2) times longer than the reduced ones: see `with_class`
    regularization = members.regularization / (2.0 if n_classes == 2 else 1.0)
    variance = newton.first_variance(members.newton[:, 1], n_classes)
    scores, bins = new_scores()
    return LogisticState(
        moments=np.zeros((3, n_columns)),
        P=_multiples(1.0 / regularization, r * d),
        w=np.zeros((M, r * d)),
        tallies=np.zeros((M, SUMS)),
        matrices=_multiples(np.repeat(variance, C), d).reshape(N, C, d, d),
        weights=np.zeros((N, C, d)),
        tables=np.zeros((R, 3, C, d)),
        slopes=np.zeros(R),
        log_weight=np.zeros(members.count),
        losses=np.zeros(members.count),
        slots=np.full(n_classes, -1.0),
        scores=scores,
        bins=bins,
        tally=np.zeros(TALLIES),
    )


def _multiples(factors: Array, size: int) -> Array:
    """Multiples of the identity, (len(factors), size, size): no more is allocated."""
    found = np.zeros((len(factors), size, size))
    found[:, np.arange(size), np.arange(size)] = factors[:, None]
    return found


def size_in_bytes(n_columns: int, intercept: bool, n_classes: int, members: Members) -> int:
    """What a state takes."""
    d = n_columns + intercept
    M, N, R = len(members.radii), len(members.newton), len(members.rates)
    C, r = n_classes if n_classes > 2 else 1, n_classes - 1
    numbers = M * (r * d) * (r * d + 1) + N * C * d * (d + 1) + R * 3 * C * d + 3 * d + n_classes
    return numbers * np.dtype(np.float64).itemsize


def check(state: LogisticState, members: Members) -> None:
    """Refuse a state that no game of these members can have led to."""
    rows, n_classes = float(state.tally[ROWS]), state.slots.size
    state_checks.tally(state.tally)
    for member in state.tallies:
        state_checks.tally(member, "tallies")
        state_checks.require(member[ROWS] == rows, "tallies: a member has learned other rows")
    state_checks.moments("moments", state.moments, rows, LARGEST)
    halves = 2.0 if n_classes == 2 else 1.0
    for P, tally, lam in zip(state.P, state.tallies, members.regularization, strict=True):
        check_matrix(P, tally, halves / lam)
    first = newton.first_variance(members.newton[:, 1], n_classes)
    state_checks.covariance("matrices", state.matrices, np.repeat(first[:, None], state.matrices.shape[1], axis=1))
    for name in ("w", "weights", "tables", "slopes"):
        state_checks.sums(name, getattr(state, name))
    state_checks.within("tables, squares", state.tables[:, SQUARES], 0.0, math.inf)
    state_checks.log_weights("log_weight", state.log_weight, mixed=False)
    state_checks.within("losses", state.losses, -state_checks.ROUNDING, math.inf)
    most = rows + state_checks.ROUNDING
    state_checks.require(state.scores[N_SCORED] == rows, "scores are of other rows")
    state_checks.within("scores", state.scores[1:], -state_checks.ROUNDING, 2.0 * most)
    state_checks.whole("bins", state.bins[:, 0], rows)
    state_checks.require(state.bins[:, 0].sum() == rows, "bins are of other rows")
    state_checks.within("bins", state.bins, -state_checks.ROUNDING, most)


def kept(state: LogisticState, before: Members, after: Members) -> LogisticState:
    """The state without the members that are too dear now: the weights of the others grow in proportion."""
    M, N = len(after.radii), len(after.newton)
    first = len(before.radii)
    stay = np.r_[0:M, first : first + N, first + len(before.newton) : before.count]
    return state._replace(
        P=state.P[:M],
        w=state.w[:M],
        tallies=state.tallies[:M],
        matrices=state.matrices[:N],
        weights=state.weights[:N],
        log_weight=state.log_weight[stay] - state.log_weight[stay].max(),
        losses=state.losses[stay],
    )


def with_class(state: LogisticState, members: Members, x: Array, intercept: bool) -> LogisticState:
    """The state with one slot more, for a class that row x brings.

    What was learned stays as it was: the losses so far were among the classes of their time, which the new weights do
    not enter, so their quadratics have neither slope nor curvature there. AIOLI and FOLKLORE begin the new class at 0;
    Newton's and AdaGrad's members, where an intercept can say so, as a class that is met once in the rows so far.
    """
    K, d = state.slots.size, state.tables.shape[3]
    P, w = state.P, state.w
    matrices, weights, tables = state.matrices, state.weights, state.tables
    if K == 2:  # from the margin m to reduced coordinates, m / sqrt(2), and to a matrix and weights a class
        P, w = P * _power(0.5, state)[:, None, None], w / math.sqrt(2.0)
        matrices = np.repeat(matrices / 2.0, 2, axis=1)
        weights = np.concatenate([-weights, weights], axis=1) / 2.0
        halves = np.array([0.5, 1.0, 1.0])[:, None, None]
        signs = np.array([-1.0, 1.0, -1.0])[:, None, None]
        tables = np.concatenate([tables * halves * signs, tables * halves], axis=2)
    variance = newton.first_variance(members.newton[:, 1], K + 1)
    return state._replace(
        P=_bordered(P, d, _power(1.0 / members.regularization, state)),
        w=np.pad(w, ((0, 0), (0, d))),
        matrices=np.concatenate([matrices, _multiples(variance, d)[:, None]], axis=1),
        weights=_met_once(weights, x, state.tally[ROWS], intercept),
        tables=np.stack(
            [
                _met_once(tables[:, WEIGHTS], x, state.tally[ROWS], intercept),
                *(np.pad(tables[:, part], ((0, 0), (0, 1), (0, 0))) for part in (SQUARES, GRADIENTS)),
            ],
            axis=1,
        ),
        slots=np.append(state.slots, -1.0),
    )


def _power(variance: Array | float, state: LogisticState) -> Array:
    """A factor of P, for each member that has one, or of the root that is kept in its place."""
    found: Array = np.where(state.tallies[:, ROOT] != 0.0, np.sqrt(variance), variance)
    return found


def _bordered(P: Array, d: int, variance: Array) -> Array:
    """P with d rows and columns more, a multiple of the identity."""
    size = P.shape[1]
    wider = np.zeros((len(P), size + d, size + d))
    wider[:, :size, :size] = P
    wider[:, size:, size:] = _multiples(variance, d)
    return wider


def _met_once(weights: Array, x: Array, rows: float, intercept: bool) -> Array:
    """Weights (members, K, d) with one class more, of probability 1 in `rows` + 1 at x."""
    new = np.zeros((len(weights), 1, x.size))
    if intercept:
        new[:, 0, -1] = np.logaddexp.reduce(weights @ x, axis=1) - math.log(rows + 1.0)
    return np.concatenate([weights, new], axis=1)


def with_columns(state: LogisticState, members: Members, met: Array, intercept: bool) -> LogisticState:
    """The state as it would be had more columns been there from the start.

    `met` says in how many rows each of them had a value, which was 0: all so far for a category, none for a number.
    """
    more, d = met.size, state.tables.shape[3]
    old = np.r_[0 : d - intercept, d - intercept + more : d + more]  # the intercept stays last
    K = state.slots.size
    r = K - 1
    moments = np.pad(state.moments, ((0, 0), (0, more)))
    moments[COUNT, d - intercept :] = met
    fresh = start(d - intercept + more, intercept, K, members)
    M, rooted = len(state.P), state.tallies[:, ROOT] != 0.0
    fresh.P[rooted] = np.sqrt(fresh.P[rooted])
    P = fresh.P.reshape(M, r, d + more, r, d + more)
    P[np.ix_(range(M), range(r), old, range(r), old)] = state.P.reshape(M, r, d, r, d)
    w = fresh.w.reshape(M, r, d + more)
    w[:, :, old] = state.w.reshape(M, r, d)
    matrices = fresh.matrices
    matrices[:, :, old[:, None], old] = state.matrices
    weights, tables = fresh.weights, fresh.tables
    weights[:, :, old] = state.weights
    tables[:, :, :, old] = state.tables
    return state._replace(moments=moments, P=fresh.P, w=fresh.w, matrices=matrices, weights=weights, tables=tables)
