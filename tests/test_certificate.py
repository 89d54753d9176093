"""regret <= certificate <= bound, also when the labels are chosen against the forecast."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from each import for_each
from regretless import AIOLI, FOLKLORE, GAF, ONS, NoBound, NoCertificate, VovkAzouryWarmuth
from regretless.core.numbers.tally import LOSS
from regretless.streams import adversarial


def best_in_rows(X, Y, radius, rows):
    """The loss of a good comparator: every row of W in the ball (`rows`), or W in the Frobenius ball.

    Projected quasi-Newton through a smooth map onto the ball; any comparator makes a valid test, a better one a
    sharper one.
    """
    K, d = Y.shape[1], X.shape[1]

    axis = 1 if rows else None

    def loss(v):
        """And its gradient."""
        V = v.reshape(K, d)
        size = np.sqrt(1 + (V**2).sum(axis=axis, keepdims=True))
        Z = X @ (radius * V / size).T
        total = logsumexp(Z, axis=1, keepdims=True)
        G = radius * (np.exp(Z - total) - Y).T @ X / size
        G -= V * (G * V).sum(axis=axis, keepdims=True) / size**2
        return float(total.sum() - (Y * Z).sum()), G.ravel()

    starts = [np.zeros(K * d), np.random.default_rng(0).normal(size=K * d)]
    return min(minimize(loss, v, jac=True, method="L-BFGS-B").fun for v in starts)


def best_margin(X, y, radius):
    """The same for weights that give the margin."""

    def loss(v):
        """And its gradient."""
        size = np.sqrt(1 + v @ v)
        u = X @ (radius * v / size)
        g = radius * (expit(u) - y) @ X / size
        return float((np.logaddexp(0, u) - y * u).sum()), g - v * (g @ v) / size**2

    return min(minimize(loss, v, jac=True, method="L-BFGS-B").fun for v in (np.zeros(X.shape[1]), np.ones(X.shape[1])))


def rows_of(kind, n, d, rng):
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    if kind == "drifting":
        X[:, 0] = np.linspace(-1, 1, n)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X * rng.uniform(0.3, 1, size=(n, 1))


def play(learner, kind, n=150, d=3, K=2, seed=0):
    """A stream of one kind; in the adversarial one the label is the class the learner gives least."""
    rng = np.random.default_rng(seed)
    X = rows_of(kind, n, d, rng)
    truth = rng.normal(size=(K, d)) * 3
    Y = np.zeros((n, K))
    learner.partial_fit(X[:1], np.eye(K)[:1], classes=range(K))
    Y[0, 0] = 1
    for t in range(1, n):
        if kind == "adversarial":
            k = int(np.argmin(learner.predict_proba_one(X[t])))
        else:
            drift = truth if kind == "iid" else np.roll(truth, int(4 * t / n), axis=0)
            k = int(np.argmax(X[t] @ drift.T + rng.gumbel(size=K)))
        learner.learn_one(X[t], k)
        Y[t, k] = 1
    return X, Y


KINDS = ["iid", "drifting", "adversarial"]
RADII = [0.5, 3.0, 10.0, 100.0]


@pytest.mark.parametrize("kind", KINDS)
@for_each("radius", RADII)
@for_each("curvature", ["sharp", "gaf", "aioli"])
@for_each("virtual_weight", [1.0, 0.5])
def test_aioli(kind, radius, curvature, virtual_weight):
    learner = AIOLI(radius=radius, curvature=curvature, virtual_weight=virtual_weight)
    X, Y = play(learner, kind)
    regret = learner.state_.tally[LOSS] - best_margin(X, Y[:, 1], radius)
    assert regret <= learner.regret_certificate() <= learner.regret_bound()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("K", [2, 3, 5])
def test_folklore(kind, radius, K):
    learner = FOLKLORE(radius=radius)
    X, Y = play(learner, kind, K=K, n=100)
    regret = learner.state_.tally[LOSS] - best_in_rows(X, Y, radius, rows=True)
    assert regret <= learner.regret_certificate() <= learner.regret_bound()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("K", [2, 3, 4])
def test_gaf(kind, radius, K):
    learner = GAF(radius=radius, regularization=1.0)
    X, Y = play(learner, kind, K=K, n=80)
    regret = learner.state_.tally[LOSS] - best_in_rows(X, Y, radius, rows=False)
    assert regret <= learner.regret_certificate()
    with pytest.raises(NoBound):
        learner.regret_bound()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("K", [2, 3])
def test_gaf_with_the_theorems_regularization(kind, K):
    learner = GAF(radius=3.0, smoothing=0.01)
    X, Y = play(learner, kind, K=K, n=80)
    regret = learner.state_.tally[LOSS] - best_in_rows(X, Y, 3.0, rows=False)
    assert regret <= learner.regret_certificate() <= learner.regret_bound()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("radius", [0.5, 2.0])
@pytest.mark.parametrize("K", [2, 3])
def test_ons(kind, radius, K):
    learner = ONS(radius=radius, feature_bound=1.0)
    X, Y = play(learner, kind, K=K)
    best = best_margin(X, Y[:, 1], radius) if K == 2 else best_in_rows(X, Y, radius, rows=False)
    assert learner.state_.tally[LOSS] - best <= learner.regret_certificate() <= learner.regret_bound()


@pytest.mark.parametrize("kind", ["iid", "adversarial"])
def test_vovk_azoury_warmuth(kind):
    rng = np.random.default_rng(0)
    X = rows_of("iid", 200, 3, rng)
    learner = VovkAzouryWarmuth(0.5)
    y = np.empty(200)
    for t in range(200):
        forecast = learner.predict_one(X[t]) if t else 0.0
        y[t] = (1.0 if forecast < 0 else -1.0) if kind == "adversarial" else X[t, 0] + rng.normal()
        learner.learn_one(X[t], y[t])
    theta = np.linalg.solve(X.T @ X + 0.5 * np.eye(3), X.T @ y)
    size = float(np.linalg.norm(theta))
    regret = learner.state_.tally[LOSS] - ((y - X @ theta) ** 2).sum()
    assert learner.regret_certificate(size) == pytest.approx(regret), "an equality for the ridge solution"
    assert regret <= learner.regret_bound(comparator_norm=size)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("learner", [AIOLI, FOLKLORE, GAF])
def test_on_the_stream_that_ruins_proper_learners(learner, seed):
    stream = adversarial(300, seed)
    player = learner(radius=stream.radius)
    player.predict_then_learn(stream.X, stream.y)
    u = np.linspace(-1, 1, 4001) * stream.radius * (1 if learner is AIOLI else 2 if learner is FOLKLORE else 2**0.5)
    margins = stream.X * u
    best = np.logaddexp(0, -stream.y[:, None] * margins).sum(axis=0).min()
    assert player.state_.tally[LOSS] - best <= player.regret_certificate()


def test_certificate_is_nearly_tight_under_adversarial_labels():
    learner = AIOLI(radius=3.0)
    X, Y = play(learner, "adversarial", n=400)
    regret = learner.state_.tally[LOSS] - best_margin(X, Y[:, 1], 3.0)
    assert learner.regret_certificate(comparator_norm=0.0) <= 1.02 * regret


def test_weights_and_soft_labels_are_covered():
    rng = np.random.default_rng(0)
    X, Y, weight = rows_of("iid", 200, 3, rng), rng.dirichlet(np.full(3, 0.2), 200), rng.exponential(size=200)
    for learner in (FOLKLORE(radius=2.0), GAF(radius=2.0)):
        learner.partial_fit(X, Y, sample_weight=weight)
        for _ in range(200):
            W = rng.normal(size=(3, 3))
            W *= 2.0 / np.linalg.norm(W)
            Z = X @ W.T
            loss = weight @ (logsumexp(Z, axis=1) - (Y * Z).sum(axis=1))
            assert learner.state_.tally[LOSS] - loss <= learner.regret_certificate(comparator_norm=2.0)
        with pytest.raises(NoBound, match="weight 1"):
            learner.regret_bound()


@pytest.mark.parametrize("curvature", ["folklore", 0.5])
def test_a_curvature_without_proof_gives_an_error_not_a_number(curvature):
    learner = AIOLI(radius=3.0, curvature=curvature)
    play(learner, "iid", n=20)
    with pytest.raises(NoCertificate, match="sharp"):
        learner.regret_certificate()
    with pytest.raises(NoBound):
        learner.regret_bound()


def test_a_small_enough_number_is_proved():
    learner = AIOLI(radius=3.0, curvature=0.05)
    play(learner, "iid", n=20)
    assert learner.regret_certificate() > 0


def test_ons_beyond_its_theory_has_no_certificate():
    learner = ONS(radius=3.0, gamma=0.25)
    play(learner, "iid", n=20)
    with pytest.raises(NoCertificate, match="gamma"):
        learner.regret_certificate()


def test_comparators_outside_the_class_are_refused():
    learner = AIOLI(radius=3.0)
    play(learner, "iid", n=20)
    assert learner.regret_certificate(1.0) < learner.regret_certificate(3.0) == learner.regret_certificate()
    with pytest.raises(NoCertificate, match="outside"):
        learner.regret_certificate(3.1)


def test_exp_concavity_behind_onss_gamma():
    """l(v) >= l(w) + g.(v-w) + (gamma/2)(g.(v-w))^2 for the theory's gamma, in the ball, by search."""
    from regretless.learners.second_order.ons import theory_gamma

    rng = np.random.default_rng(0)
    for K in (2, 3, 5):
        for BR in (0.3, 1.0, 3.0):
            gamma = theory_gamma(BR, 1.0, K)
            n = 3000
            z, v = rng.normal(size=(2, n, K))
            for points in (z, v):
                size = BR / (2**0.5 if K == 2 else 1.0)  # two classes: |z_1 - z_0| <= BR
                centre = points.mean(axis=1, keepdims=True) if K == 2 else 0.0
                points *= size * rng.random((n, 1)) ** 0.2 / np.linalg.norm(points - centre, axis=1, keepdims=True)
            k, t = rng.integers(K, size=n), np.arange(n)
            p = np.exp(z - logsumexp(z, axis=1, keepdims=True))
            slope = ((p - np.eye(K)[k]) * (v - z)).sum(axis=1)
            loss_z, loss_v = logsumexp(z, axis=1) - z[t, k], logsumexp(v, axis=1) - v[t, k]
            assert (loss_v >= loss_z + slope + gamma / 2 * slope**2 - 1e-12).all()
