"""OnlineLogisticRegression's state, regret and report, tested directly."""

from __future__ import annotations

import math

import numpy as np
import pytest

from logistic_reference import some_rows
from regretless import NoBound, NoCertificate, OnlineLogisticRegression
from regretless.core.numbers.tally import LOSS, ROWS, WIDEST
from regretless.learners.logistic import regret, state
from regretless.learners.logistic.game import Game
from regretless.learners.logistic.members import RADII, Constants
from regretless.learners.logistic.report import calibration_error
from regretless.learners.logistic.settings import Settings
from regretless.learners.logistic.state import LogisticState
from regretless.theory import bounds
from regretless.theory.domains import Ball, RowBall


def played(K: int, n: int = 80, d: int = 3, **parameters: object) -> tuple[LogisticState, Constants]:
    """A state and its constants after some rows, without an estimator."""
    chosen = Settings(**parameters)  # type: ignore[arg-type]
    constants = chosen.constants(d, K)
    found = state.start(d, chosen.fit_intercept, K, constants.members)
    found.slots[:] = np.arange(K)
    X, y = some_rows(n, d, K)
    Game(found, constants).run(X, np.eye(K)[y], np.ones(n), False, np.empty((n, K)))
    return found, constants


# ---------------------------------------------------------------------- state


def test_a_state_that_is_not_contiguous_is_refused() -> None:
    found, constants = played(2)
    for other in (np.asfortranarray(found.moments), found.moments[:, ::-1]):
        with pytest.raises(ValueError, match="not contiguous"):
            Game(found._replace(moments=other), constants)


@pytest.mark.parametrize("K", [2, 4])
def test_the_size_of_a_state(K: int) -> None:
    found, constants = played(K)
    fixed = ("tallies", "slopes", "log_weight", "losses", "scores", "bins", "tally")
    growing = sum(array.size for name, array in found._asdict().items() if name not in fixed)
    assert state.size(3, True, K, constants.members) == growing
    state.check(found, constants.members)
    with pytest.raises(ValueError, match="scores count other rows"):
        state.check(found._replace(scores=found.scores + 1.0), constants.members)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_class_more_leaves_the_others_as_they_were(K: int, intercept: bool) -> None:
    found, constants = played(K, fit_intercept=intercept)
    after = Settings(fit_intercept=intercept).constants(3, K + 1)
    X, _ = some_rows(20, 3, K)
    grown = state.add_class(found, constants.members, after.members, X[:1])
    assert [array.shape for array in grown] == [
        array.shape for array in state.start(3, intercept, K + 1, after.members)
    ]
    said = np.empty((20, K + 1))
    Game(grown, after).forecast(X, said)
    np.testing.assert_allclose(np.exp(said).sum(axis=1), 1.0)
    for i in range(found.weights.shape[0]):  # the members' odds among the old classes
        odds = np.diff(found.weights[i], axis=0) if K > 2 else found.weights[i]
        np.testing.assert_allclose(np.diff(grown.weights[i][:K], axis=0), odds, atol=1e-12)
    assert grown.slots[-1] == -1.0
    assert grown.tally[LOSS] == found.tally[LOSS]


# ---------------------------------------------------------------------- regret


def test_what_it_competes_with() -> None:
    assert regret.competition(np.array([1.0, 3.0]), 2).domain == Ball(6.0)
    assert regret.competition(np.array([1.0, 3.0]), 3).domain == RowBall(3.0)
    assert regret.competition(np.empty(0), 2).domain == Ball(2.0 * RADII[-1])


@pytest.mark.parametrize("K", [2, 3])
def test_the_certificate_of_a_state(K: int) -> None:
    found, constants = played(K)
    whole = regret.certificate(found, constants.members, None)
    assert regret.certificate(found, constants.members, 0.0) <= whole
    assert regret.certificate(found, constants.members, 0.0) >= found.tally[LOSS] - 80 * math.log(K)
    with pytest.raises(NoCertificate, match=r"comparator_norm=1000 is outside .*: give at most"):
        regret.certificate(found, constants.members, 1000.0)


def test_the_bound_of_a_state() -> None:
    found, constants = played(2)
    theorem = regret.theorem(found, constants, None)
    assert theorem["n"] == 80
    assert theorem["radius"] == 2.0 * RADII[-1]
    assert theorem["feature_bound"] == found.tally[WIDEST]
    assert regret.theorem(found, constants, 1000)["n"] == 1000
    closed = regret.mixing_cost(80, constants, is_open=False)
    assert closed == -math.log(constants.prior[2])  # of the largest radius
    assert regret.mixing_cost(80, constants, is_open=True) == pytest.approx(closed + math.log(2))
    tracking = constants._replace(shares=True)
    assert regret.mixing_cost(80, tracking, is_open=False) == pytest.approx(closed + math.log(81))
    assert regret.certificate(found, constants.members, None) <= bounds.aioli(**theorem) + closed
    for other in (played(3), played(2, radii=())):
        with pytest.raises(NoBound, match="two classes and a learner with radii"):
            regret.theorem(*other, None)


# ---------------------------------------------------------------------- report


def test_the_calibration_error() -> None:
    bins = np.zeros((20, 3))
    assert calibration_error(bins) == 0.0
    bins[10] = 4.0, 2.1, 3.0  # four forecasts that were 52.5 % sure and three times right
    bins[19] = 6.0, 5.9, 5.0
    assert calibration_error(bins) == pytest.approx((0.9 + 0.9) / 10)


def test_the_report() -> None:
    X, y = some_rows(300, 4, 3)
    learner = OnlineLogisticRegression(on_bad_row="skip").fit(X, y)
    learner.learn_one([np.inf] * 4, 1)
    text = learner.report()
    for word in ("300 (and 1 bad)", "3 (0, 1, 2)", "log loss per row", "Brier", "calibration", "guarantee", "weight"):
        assert word in text
    assert learner.state_.scores[0] == learner.state_.tally[ROWS] == 300
    assert f"{learner.total_loss_ / 300:.4f}" in text


def test_the_report_lists_few_classes() -> None:
    X, y = some_rows(200, 2, 12)
    assert "12 (0, 1, 2, 3, 4, 5, 6, 7, ...)" in OnlineLogisticRegression(classes=range(12)).fit(X, y).report()
