"""GAF's Gaussian expectations against the slow quadratures of tests/reference."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

import reference
from each import for_each
from regretless.learners.second_order import expectation
from regretless.learners.second_order.expectation import (
    fresh_points,
    over_points,
    sobol_points,
    three_classes,
    two_classes,
    uniform,
)
from regretless.learners.second_order.smoothed_sigmoid import log_smoothed, smoothed, smoother
from regretless.learners.second_order.surrogate import helmert


def random_case(rng, K, largest):
    """A mean and a covariance: any scale, any anisotropy."""
    factor = rng.normal(size=(K, K)) * 10 ** rng.uniform(-3, 0, size=(1, K))
    Sigma = factor @ factor.T
    Sigma *= 10 ** rng.uniform(-6, largest) / np.abs(Sigma).max()
    return rng.normal(size=K) * 10 ** rng.uniform(-2, 1 + largest / 4), Sigma


@for_each("seed", range(60))
def test_two_classes_to_1e_10_even_in_logarithm(seed):
    m, Sigma = random_case(np.random.default_rng(seed), 2, largest=8)
    log_p = np.empty(2)
    two_classes(m, Sigma, log_p)
    expected = reference.log_softmax_normal_expectation(m, 2 * Sigma)
    np.testing.assert_allclose(np.exp(log_p), np.exp(expected), rtol=0, atol=1e-10)
    likely = expected > -600
    np.testing.assert_allclose(log_p[likely], expected[likely], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 25))])
def test_three_classes_to_1e_8(seed):
    m, Sigma = random_case(np.random.default_rng(seed), 3, largest=8)
    log_p = np.empty(3)
    three_classes(m, Sigma, helmert(3), log_p)
    expected = reference.softmax_normal_expectation(m, 2 * Sigma)
    np.testing.assert_allclose(np.exp(log_p), expected, rtol=0, atol=1e-8)
    assert np.isfinite(log_p).all()


@for_each(("s", "share"), [(s, share) for s in (8.0, 20.0, 30.0) for share in (0.8, 0.9, 0.99)])
def test_rare_classes_between_the_gaussian_and_the_exponential_tail(s, share):
    """The mean of the difference is nearly s^2 below 0: the expectation is a Gaussian's tail, flattened by the link."""
    m, Sigma = np.array([0.0, -share * s * s]), np.array([[0.0, 0.0], [0.0, s * s]])
    log_p = np.empty(2)
    two_classes(m, Sigma, log_p)
    np.testing.assert_allclose(log_p[1], reference.expectation.log_expected_sigmoid(m[1], s), rtol=1e-9)


@pytest.mark.parametrize("scale", [*expectation.PAIR_WITHIN, *expectation.PLANE_WITHIN])
@pytest.mark.parametrize("side", [0.999, 1.001])
def test_every_rule_is_exact_to_the_end_of_its_range(scale, side):
    """The standard deviation of the difference of two logits is where one rule ends and the next begins."""
    for K, within, tolerance in ((2, two_classes, 1e-12), (3, plane, 1e-9)):
        for seed in range(6):
            rng = np.random.default_rng(seed)
            m, Sigma = rng.normal(size=K) * 10 ** rng.uniform(-1, 1), np.zeros((K, K))
            Sigma[:2, :2] = (scale * side) ** 2 * np.array([[0.25, -0.25], [-0.25, 0.25]])
            log_p = np.empty(K)
            within(m, Sigma, log_p)
            expected = reference.log_softmax_normal_expectation(m, 2 * Sigma)
            np.testing.assert_allclose(log_p, expected, rtol=0, atol=tolerance)


def plane(m, Sigma, log_p):
    three_classes(m, Sigma, helmert(3), log_p)


@pytest.mark.parametrize("K", [2, 4, 7])
@pytest.mark.parametrize("far", [0.1, 3.0, 1e3])  # the last needs logarithms
def test_means_over_points(K, far):
    rng = np.random.default_rng(0)
    m, F, points = 5.0 * rng.normal(size=K), far * rng.normal(size=(K, K)), rng.normal(size=(40, K - 1))
    Sigma, log_p = F @ F.T, np.empty(K)
    over_points(m, Sigma, helmert(K), points, log_p)
    z = m + points @ expectation.covariance_root(Sigma, helmert(K)).T
    expected = logsumexp(log_softmax(z, axis=1), axis=0) - np.log(len(points))
    np.testing.assert_allclose(log_p, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 12))])
def test_three_classes_of_large_variance_keep_rare_classes(seed):
    rng = np.random.default_rng(seed)
    m, Sigma = random_case(rng, 3, largest=5)
    Sigma *= 300.0 / np.abs(Sigma).max() * 10 ** rng.uniform(0, 3)
    m *= np.sqrt(np.abs(Sigma).max()) * rng.choice([0.3, 1.0, 3.0]) / np.abs(m).max()
    log_p = np.empty(3)
    three_classes(m, Sigma, helmert(3), log_p)
    expected = reference.log_softmax_normal_expectation(m, 2 * Sigma)
    np.testing.assert_allclose(np.exp(log_p), np.exp(expected), rtol=0, atol=1e-8)
    likely = expected > -600
    np.testing.assert_allclose(log_p[likely], expected[likely], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0, 2.5, 7.9, 8.1, 30.0])
def test_the_smoothed_sigmoid(tau):
    by = smoother(tau)
    for mu in tau * np.linspace(-9, 9, 7) + np.array([-30, -9, -1, 0, 0.5, 7, 20]):
        expected = reference.expectation.log_expected_sigmoid(mu, tau)
        assert smoothed(mu, by) == pytest.approx(np.exp(expected), abs=1e-12)
        assert log_smoothed(mu, by) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("scale", [0.0, 1e-12, 1e4, 1e150])
def test_degenerate_and_absurd_covariances_stay_finite(scale):
    for K, exact in ((2, two_classes), (3, lambda m, S, out: three_classes(m, S, helmert(3), out))):
        Sigma = scale * (np.eye(K) - 1 / K)
        log_p = np.empty(K)
        exact(np.zeros(K), Sigma, log_p)
        np.testing.assert_allclose(np.exp(log_p), 1 / K, atol=1e-8)
        rank_one = scale * np.outer(np.arange(K) - 1.0, np.arange(K) - 1.0)
        exact(np.arange(K) * 1e3, rank_one, log_p)
        assert np.isfinite(log_p).all()
        assert np.exp(log_p).sum() == pytest.approx(1, abs=1e-9)


def test_points_average_to_the_expectation():
    rng = np.random.default_rng(0)
    m, Sigma = random_case(rng, 3, largest=1)
    exact, sobol, monte_carlo = np.empty(3), np.empty(3), np.empty(3)
    three_classes(m, Sigma, helmert(3), exact)
    over_points(m, Sigma, helmert(3), sobol_points(4096, 2, 0), sobol)
    points = np.empty((4096, 2))
    fresh_points(0, 0, points)
    over_points(m, Sigma, helmert(3), points, monte_carlo)
    assert np.abs(np.exp(sobol) - np.exp(exact)).max() < 2e-3
    assert np.abs(np.exp(monte_carlo) - np.exp(exact)).max() < 3e-2


def test_fresh_points_are_normal_and_depend_on_seed_and_round():
    points = np.empty((20_000, 3))
    fresh_points(1, 2, points)
    assert np.abs(points.mean(axis=0)).max() < 0.03
    assert np.abs(np.cov(points.T) - np.eye(3)).max() < 0.04
    others = [np.empty_like(points) for _ in range(3)]
    for seed, round_, other in zip((1, 1, 2), (2, 3, 2), others, strict=True):
        fresh_points(seed, round_, other)
    assert np.array_equal(points, others[0])
    assert not np.array_equal(points, others[1])
    assert not np.array_equal(points, others[2])
    assert len({uniform(0, t, i) for t in range(50) for i in range(50)}) == 2500
