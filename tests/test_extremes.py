"""Rows far outside any sensible scale: no overflow, no NaN, and no promise that rounding could break."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from each import for_each
from regretless import AIOLI, FOLKLORE, GAF, ONS, BadRow, NoCertificate, StronglyConvexOGD, VovkAzouryWarmuth
from regretless.core.numbers.tally import LOSS
from regretless.learners.second_order.algebra import workspace
from regretless.learners.second_order.curvature import lambert_of_exp
from regretless.learners.second_order.forecasts import solve_logits

SCALES = [1e-300, 1e-160, 1e-8, 1e5, 1e8, 1e12, 1e16, 1e50, 1e100, 1e150]


def against_the_forecast(learner, scale, K, n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * scale / 2
    learner.partial_fit(X[:1], [0], classes=range(K))
    for x in X[1:]:
        learner.learn_one(x, int(np.argmin(learner.predict_proba_one(x))))
    return X


LEARNERS = [(AIOLI, 2), (FOLKLORE, 2), (FOLKLORE, 3), (FOLKLORE, 4), (GAF, 2), (GAF, 3), (GAF, 4), (FOLKLORE, 10)]


@pytest.mark.parametrize(("kind", "K"), LEARNERS)
@for_each("scale", SCALES)
def test_states_stay_finite_and_certificates_true_or_refused(kind, K, scale):
    learner = kind(radius=10.0)
    X = against_the_forecast(learner, scale, K)
    assert all(np.isfinite(array).all() for array in learner.state_)
    p = learner.predict_proba(X)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    regret_against_zero = learner.state_.tally[LOSS] - len(X) * np.log(K)
    try:
        certificate = learner.regret_certificate(comparator_norm=0.0)
    except NoCertificate as refusal:
        assert scale >= 1e12
        words = "A has grown to" if scale >= 1e50 else "forecasts and losses are so large that rounding may change"
        assert str(refusal).startswith(words)
    else:
        assert regret_against_zero <= certificate * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("scale", SCALES)
def test_ons_and_vovk_stay_finite(scale):
    learner = ONS(radius=1.0, gamma=0.1, epsilon=1.0)
    against_the_forecast(learner, scale, 3)
    assert all(np.isfinite(array).all() for array in learner.state_)
    regressor = VovkAzouryWarmuth()
    X = np.random.default_rng(0).normal(size=(40, 3)) * scale / 2
    forecast = regressor.predict_then_learn(X, np.sign(X[:, 0]))
    assert np.isfinite(forecast).all()
    assert all(np.isfinite(array).all() for array in regressor.state_)


@pytest.mark.parametrize("K", [3, 4, 10])
@pytest.mark.parametrize("size", [1e9, 1e12, 1e50, 1e300])
def test_the_solve_at_symmetry_is_uniform_however_large_the_uncertainty(K, size):
    Q = size * (np.eye(K) - 1 / K)
    z, p = np.empty(K), np.empty(K)
    solve_logits(np.diag(Q) / 4, Q, z, p, workspace(K, K - 1))
    np.testing.assert_allclose(p, 1 / K, rtol=1e-6)
    np.testing.assert_allclose(softmax(z), p)


def test_lambert_has_no_ceiling():
    assert lambert_of_exp(1e300) == pytest.approx(1e300)


def test_margins_of_ten_thousand():
    X = np.tile([[100.0, 0.0], [0.0, 100.0]], (2000, 1))
    for learner in (AIOLI(radius=100.0), FOLKLORE(radius=100.0), GAF(radius=100.0, regularization=1e-4)):
        p = learner.predict_then_learn(X, [0, 1] * 2000)
        assert np.isfinite(p).all()
        assert np.isfinite(learner.decision_function(X[:2])).all()
        assert np.isfinite(learner.partial_fit(X[:1], [1]).state_.tally).all()


@pytest.mark.parametrize("learner", [AIOLI, FOLKLORE, GAF])
def test_comparators_beyond_floating_point_are_refused(learner: Any) -> None:
    """The curvature constant of logits of size 1e308 is NaN."""
    X, y = np.array([[10.0, 1.0], [1.0, -10.0]]), [0, 1]
    with pytest.raises(ValueError, match=r"radius=3 times feature_bound=1e.308 is too large"):
        learner(radius=3.0, feature_bound=1e308, regularization=1.0).fit(X, y)
    with pytest.raises(BadRow, match="too large for floating point"):
        learner(radius=1e300, regularization=1.0).fit(X, y)
    assert np.isfinite(learner(radius=1e298, regularization=1.0).fit(X, y).predict_proba(X)).all()


def test_strong_convexity_whose_square_overflows_is_refused() -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 3
    for given in ({"regularization": 1e308}, {"regularization": 1e308, "sigma": 50.0}, {"sigma": 1e200}):
        with pytest.raises(ValueError, match=r"regularization=\S+ and sigma=\S+: their sum is above 1e\+150"):
            StronglyConvexOGD(**given).partial_fit(X, y)
    learner = StronglyConvexOGD(regularization=1e150, radius=1.0).partial_fit(X, y)
    assert all(np.isfinite(array).all() for array in learner.state_)
