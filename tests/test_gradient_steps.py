"""Gradients that a user brings: `learn_gradient` is a step of the algorithm, and its certificate is the linear one."""

from __future__ import annotations

import numpy as np
import pytest

from regretless import OGD, ExponentiatedGradient, LinearizedFTRL, MirrorDescent, NoBound, bounds
from regretless.learners.first_order.schedules import ConstantStep, GrowingTemperature
from regretless.theory.domains import Ball, Simplex, WholeSpace


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max())
    return e / e.sum()


def test_ogd_takes_the_steps_of_the_notes():
    rng = np.random.default_rng(0)
    learner = OGD("linear", radius=1.0, gradient_bound=2.0).begin(3)
    w = np.zeros(3)
    for t in range(1, 200):
        np.testing.assert_allclose(learner.weights_, w, atol=1e-9)
        g = rng.normal(size=3) / 2
        learner.learn_gradient(g)
        w = w - np.sqrt(2) / (2 * np.sqrt(t)) * g
        w = w / max(1.0, float(np.linalg.norm(w)))


def test_mirror_descent_takes_the_steps_of_eq_13():
    rng = np.random.default_rng(0)
    learner = MirrorDescent("linear", Simplex(2.0), "entropy", GrowingTemperature(0.7), averaging=False).begin(4)
    zeta = np.zeros(4)
    for t in range(100):
        beta = 0.7 * np.sqrt(t + 1)
        np.testing.assert_allclose(learner.weights_, 2 * softmax(-zeta / beta), atol=1e-9)
        g = rng.normal(size=4)
        zeta += g
        learner.learn_gradient(g)


LEARNERS = {
    "OGD": OGD("linear", radius=1.0),
    "lazy": MirrorDescent("linear", Ball(1.0), averaging=False, gradient_bound=6.0),
    "eager": MirrorDescent("linear", Ball(1.0), lazy=False, averaging=False, gradient_bound=6.0),
    "EG": ExponentiatedGradient("linear", signed=True, feature_bound=6.0),
    "FTRL-Proximal": LinearizedFTRL("linear", radius=1.0),
}


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_certificate_and_bound_hold_for_the_losses_behind_the_gradients(learner):
    """f_t(w) = |A_t w - b_t| of vectors: no row x and target y, only subgradients at the weights."""
    rng = np.random.default_rng(1)
    learner = type(learner)(**learner.get_params()).begin(3)
    A, b = rng.uniform(-1, 1, size=(150, 2, 3)), rng.uniform(-1, 1, size=(150, 2))
    suffered = 0.0
    for At, bt in zip(A, b, strict=True):
        r = At @ learner.weights_ - bt
        suffered += float(np.linalg.norm(r))
        learner.learn_gradient(At.T @ (r / np.linalg.norm(r)))
    domain = learner.competes_with.domain
    for u in rng.normal(size=(100, 3)):
        u = domain.project(u)
        regret = suffered - np.linalg.norm(np.einsum("tij,j->ti", A, u) - b, axis=1).sum()
        assert regret <= learner.regret_certificate() + 1e-9 <= learner.regret_bound() + 2e-9


def test_stochastic_gradients_with_averaging_keep_theorem_2():
    """A(w) = E |w - Z|^2 / 2, and only noisy gradients w - Z_i are seen."""
    mean = np.array([0.3, -0.2])
    risks = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        learner = MirrorDescent("linear", Ball(1.0), gradient_bound=2.0).begin(2)
        for _ in range(200):
            z = mean + rng.choice([-0.5, 0.5], size=2)
            learner.learn_gradient(learner.weights_ - z)
        risks.append(float(np.sum((learner.coef_[0] - mean) ** 2)) / 2)
    assert np.mean(risks) <= learner.excess_risk_bound()


def test_without_projection_the_weights_are_minus_eta_times_the_gradients():
    rng = np.random.default_rng(2)
    G = rng.normal(size=(50, 3))
    for learner in (
        OGD("linear", radius=None, step=0.1),
        MirrorDescent("linear", WholeSpace(), schedule=ConstantStep(0.1), averaging=False),
    ):
        w, suffered = np.zeros(3), 0.0
        learner.begin(3)
        for g in G:
            np.testing.assert_allclose(learner.weights_, w, atol=1e-12)
            suffered += g @ w
            learner.learn_gradient(g)
            w = w - 0.1 * g
        for norm in (0.0, 1.0, 7.0):
            regret = suffered + norm * np.linalg.norm(G.sum(axis=0))
            assert learner.regret_certificate(norm) == pytest.approx(regret)
            assert regret <= learner.regret_bound(comparator_norm=norm)
            largest = np.linalg.norm(G, axis=1).max()
            assert learner.regret_bound(comparator_norm=norm) == pytest.approx(
                bounds.gradient_descent(50, comparator_norm=norm, gradient_bound=largest, step=0.1)
            )
        with pytest.raises(NoBound, match="comparator_norm"):
            learner.regret_bound()


def test_without_projection_other_losses_and_their_limits():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + rng.normal(size=80) > 0
    learner = OGD("hinge", radius=None, step=0.05).fit(X, y)
    w = np.zeros(3)
    for x, sign in zip(X, np.where(y, 1.0, -1.0), strict=True):
        w = w + 0.05 * sign * x * (sign * (x @ w) < 1)
    np.testing.assert_allclose(learner.coef_[0], w, atol=1e-9)
    with pytest.raises(ValueError, match="'theory' is for a ball, and radius=None: give a number"):
        OGD("hinge", radius=None).fit(X, y)
    with pytest.raises(ValueError, match="'squared' needs bounded weights"):
        OGD("squared", radius=None, step=0.1).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="at most 1e\\+70 without projection"):
        OGD("hinge", radius=None, step=1e100).fit(X, y)


def test_gradients_are_for_linear_losses_and_begin_is_called_once():
    with pytest.raises(AttributeError, match="learn_gradient"):
        OGD().learn_gradient([1.0])
    learner = OGD("linear")
    learner.learn_gradient([1.0, 2.0])  # begins by itself
    assert learner.weights_.shape == (2,)
    with pytest.raises(ValueError, match="has begun"):
        learner.begin(2)
    with pytest.raises(ValueError, match="expects 2 features"):
        learner.learn_gradient([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="features"):
        OGD("linear").begin(0)
