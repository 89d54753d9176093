"""Every learner equals a brute-force minimisation (or integration) of its paper's definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import expit, softmax

import reference
from regretless import AIOLI, FOLKLORE, GAF, ONS, VovkAzouryWarmuth
from regretless.core.numbers.tally import EXCESS

CURVATURES = ["sharp", "gaf", "folklore", 0.2]
RADII = [0.5, 10.0, 100.0]


def every_other(*factors):
    """All combinations of all but the first factor; its values take turns."""
    return [(factors[0][i % len(factors[0])], *rest) for i, rest in enumerate(itertools.product(*factors[1:]))]


def stream(seed, n, d, K, soft):
    """Rows of norm 0, 1e-8, 1 and 30, weights with zeros among them, hard or soft labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X *= rng.choice([0, 1e-8, 1, 30], p=[0.1, 0.1, 0.6, 0.2], size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    Y = rng.dirichlet(np.full(K, 0.3), size=n) if soft else np.eye(K)[rng.integers(0, K, n)]
    return X, Y, rng.choice([0, 0.5, 1, 2.5], size=n)


def check_certificate(learner, norm_part, expected):
    assert norm_part + learner.state_.tally[EXCESS] == pytest.approx(float(expected), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("soft", "radius", "curvature", "virtual_weight"),
    every_other([0, 1, 1, 0], RADII, [*CURVATURES, "aioli"], [1, 0.5]),
)
def test_aioli(soft, radius, curvature, virtual_weight):
    X, Y, weight = stream(0, 12, 3, 2, soft)
    options = {"radius": radius, "curvature": curvature, "virtual_weight": virtual_weight}
    learner, slow = AIOLI(**options), reference.ReferenceAIOLI(**options)
    p = learner.predict_then_learn(X, Y, sample_weight=weight)
    for t in range(len(X)):
        margin = slow.learn(X[t], Y[t, 1], weight[t])  # that of the forecast
        assert p[t, 1] == pytest.approx(float(expit(margin)), abs=1e-9)
    np.testing.assert_allclose(learner.state_.w, np.asarray(slow.leader(), float), rtol=1e-8, atol=1e-9)
    check_certificate(learner, 1.0, slow.certificate())  # lam B^2 = 1


@pytest.mark.parametrize(
    ("soft", "radius", "K", "curvature"), every_other([0, 1, 1, 0, 1], RADII, [2, 3, 5], CURVATURES)
)
def test_folklore(soft, radius, K, curvature):
    X, Y, weight = stream(1, 10, 2, K, soft)
    learner = FOLKLORE(radius=radius, curvature=curvature)
    slow = reference.ReferenceFOLKLORE(radius=radius, curvature=curvature, n_classes=K)
    p = learner.predict_then_learn(X, Y, sample_weight=weight)
    for t in range(len(X)):
        logits = slow.learn(X[t], Y[t], weight[t])  # those of the forecast
        np.testing.assert_allclose(p[t], softmax(np.asarray(logits, float)), atol=1e-9)
    check_certificate(learner, 2 / radius * K * radius**2, slow.certificate())


@pytest.mark.parametrize("K", [7, 10])
def test_folklore_of_many_classes(K):
    """Four rows of P and four updates at a time, and those that are left over."""
    X, Y, weight = stream(5, 6, 5, K, soft=False)
    learner = FOLKLORE(radius=2.0)
    slow = reference.ReferenceFOLKLORE(radius=2.0, curvature="sharp", n_classes=K)
    p = learner.predict_then_learn(X, Y, sample_weight=weight)
    for t in range(len(X)):
        logits = slow.learn(X[t], Y[t], weight[t])
        np.testing.assert_allclose(p[t], softmax(np.asarray(logits, float)), atol=1e-9)


@pytest.mark.parametrize(
    ("soft", "K", "radius", "curvature"), every_other([0, 1, 1, 0], [2, 3, 5], RADII, ["sharp", 0.2])
)
def test_gaf(soft, radius, K, curvature):
    X, Y, weight = stream(2, 8, 2, K, soft)
    options = {"radius": radius, "curvature": curvature, "smoothing": 0.01, "regularization": 1.0}
    learner, slow = GAF(**options), reference.ReferenceGAF(**options, n_classes=K)
    p = learner.predict_then_learn(X, Y, sample_weight=weight)
    for t in range(len(X)):
        if K == 2 or (K == 3 and t % 2):  # integrals over three classes take long
            np.testing.assert_allclose(p[t], np.asarray(slow.forecast(X[t]), float), atol=1e-10 if K == 2 else 1e-8)
        slow.learn(X[t], Y[t], weight[t], forecast=p[t])
    check_certificate(learner, radius**2, slow.certificate())


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize(
    ("radius", "gamma", "epsilon"), [(0.5, None, None), (2.0, 0.3, 0.1), (2.0, 0.01, 1.0), (1.0, 0.5, 10.0)]
)
def test_ons(K, radius, gamma, epsilon):
    X, Y, weight = stream(3, 15, 3, K, soft=False)
    X = np.clip(X, -1, 1) / np.sqrt(3)
    learner = ONS(radius=radius, gamma=gamma, epsilon=epsilon)
    slow = reference.ReferenceONS(radius=radius, gamma=gamma, epsilon=epsilon, n_classes=K)
    p = learner.predict_then_learn(X, Y, sample_weight=weight)
    for t in range(len(X)):
        np.testing.assert_allclose(p[t], np.asarray(slow.learn(X[t], Y[t], weight[t]), float), atol=1e-9)
    c = learner._constants
    check_certificate(learner, c.gamma * c.epsilon / 2 * radius**2, slow.certificate())


def test_ons_projections_really_happen():
    X, Y, _ = stream(3, 15, 3, 3, soft=False)
    learner = ONS(radius=0.5, gamma=0.3, epsilon=0.1)
    sizes = [np.linalg.norm(learner.partial_fit(X[t : t + 1] / 30, Y[t : t + 1]).state_.w) for t in range(15)]
    assert max(sizes) == pytest.approx(0.5, rel=1e-14)
    assert sum(np.isclose(sizes, 0.5, rtol=1e-14)) > 3


@pytest.mark.parametrize("regularization", [0.01, 1.0, 100.0])
def test_vovk_azoury_warmuth(regularization):
    X, _, weight = stream(4, 15, 3, 2, soft=False)
    y = np.random.default_rng(0).normal(size=15)
    learner, slow = VovkAzouryWarmuth(regularization), reference.ReferenceVAW(regularization)
    forecast = learner.predict_then_learn(X, y, sample_weight=weight)
    for t in range(len(X)):
        assert forecast[t] == pytest.approx(float(slow.forecast(X[t])), abs=1e-9)
        slow.learn(X[t], y[t], weight[t])
    certificate = float(slow.certificate(2.0))
    assert regularization * 4.0 + learner.state_.tally[EXCESS] == pytest.approx(certificate, rel=1e-9)
    assert certificate <= learner.regret_certificate(2.0) <= certificate * (1 + 1e-7)


def test_folklore_of_two_classes_is_aioli_with_half_the_virtual_weight():
    X, Y, _ = stream(5, 40, 4, 2, soft=True)
    folklore = FOLKLORE(radius=3.0, regularization=0.7, curvature=0.1)
    aioli = AIOLI(radius=6.0, regularization=0.35, curvature=0.1, virtual_weight=0.5)
    np.testing.assert_allclose(folklore.predict_then_learn(X, Y), aioli.predict_then_learn(X, Y), atol=1e-12)


def test_gafs_squared_loss_form_is_vovk_azoury_warmuth():
    """Mixing the squared loss over N(w, A^-1/(2 alpha)), alpha = 1/(2 Y^2), by the substitution function of [-Y, Y]."""
    X, _, _ = stream(6, 10, 2, 2, soft=False)
    y = np.random.default_rng(1).uniform(-1, 1, 10)
    alpha = 0.5
    forecast = VovkAzouryWarmuth(1.0).predict_then_learn(X, y)
    A, b = np.eye(2), np.zeros(2)
    for t in range(10):
        m, variance = X[t] @ np.linalg.solve(A, b), X[t] @ np.linalg.solve(A, X[t]) / (2 * alpha)
        spread = 1 + 2 * alpha * variance

        def generalised(label, m=m, spread=spread):
            return (label - m) ** 2 / spread + np.log(spread) / (2 * alpha)

        assert forecast[t] == pytest.approx((generalised(-1) - generalised(1)) / 4, abs=1e-10)
        A += np.outer(X[t], X[t])
        b += y[t] * X[t]


@pytest.mark.parametrize("K", [2, 3])
def test_ons_without_a_declared_bound_has_the_gamma_of_rows_of_norm_1(K: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, size=(20, 3)), np.arange(20) % K
    undeclared, declared, larger = (ONS(radius=0.5, feature_bound=bound) for bound in (None, 1.0, 2.0))
    said = [learner.predict_then_learn(X, y) for learner in (undeclared, declared, larger)]
    np.testing.assert_array_equal(said[0], said[1])
    assert np.abs(said[0] - said[2]).max() > 1e-6
