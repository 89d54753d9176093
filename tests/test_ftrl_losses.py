"""FTRL with the losses and sets of the library: its leaders against a general solver, its certificate and its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize

import regretless
from regretless import FTRL, NoBound, NoCertificate, bounds
from regretless.theory.domains import Ball, Box, Octahedron, RowBall, Simplex, SubSimplex, WholeSpace
from regretless.theory.losses import Custom

SETS = [WholeSpace(), Ball(0.6), Simplex(1.0), SubSimplex(0.8), Octahedron(0.7), Box(0.4)]
LOSSES = {
    "hinge": lambda z, y: np.maximum(0.0, 1 - y * z),
    "squared": lambda z, y: (z - y) ** 2,
    "absolute": lambda z, y: np.abs(z - y),
    "linear": lambda z, y: z * y,
    "log": lambda z, y: np.logaddexp(0.0, -y * z),
    "logit": lambda z, y: np.logaddexp(0.0, -y * z) / np.log(2),
}


def rows(n=9, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d))
    return X, X @ np.array([1.0, -2.0])[:d] + 0.3 * rng.normal(size=n)


def leader(loss, X, y, lam, domain):
    """argmin of lam |w|^2 + sum of losses over the set: kinks as slack variables, so that the problem is smooth."""
    n, d = X.shape
    project = domain.project
    if loss in ("hinge", "absolute"):
        # v = (w, slack): slack >= each piece
        def objective(v):
            return lam * v[:d] @ v[:d] + v[d:].sum()

        def gradient(v):
            return np.concatenate([2 * lam * v[:d], np.ones(n)])

        eye = np.eye(n)
        if loss == "hinge":
            pieces = [(np.hstack([y[:, None] * X, eye]), np.ones(n)), (np.hstack([np.zeros((n, d)), eye]), np.zeros(n))]
        else:
            pieces = [(np.hstack([X, eye]), y), (np.hstack([-X, eye]), -y)]
        constraints = [LinearConstraint(A, b, np.inf) for A, b in pieces]
        start = np.concatenate([project(np.zeros(d)), np.full(n, 9.0)])
        size = d + n
    else:
        slopes = {
            "squared": lambda z: 2 * (z - y),
            "linear": lambda z: y,
            "log": lambda z: -y / (1 + np.exp(y * z)),
            "logit": lambda z: -y / (1 + np.exp(y * z)) / np.log(2),
        }

        def objective(v):
            return lam * v @ v + LOSSES[loss](X @ v, y).sum()

        def gradient(v):
            return 2 * lam * v + X.T @ slopes[loss](X @ v)

        constraints, start, size = [], project(np.zeros(d)), d
    pad = np.zeros((1, size - d))
    if isinstance(domain, Ball):
        constraints.append(NonlinearConstraint(lambda v: v[:d] @ v[:d], 0, domain.radius**2))
    elif isinstance(domain, Box):
        constraints.append(LinearConstraint(np.eye(d, size), -domain.radius, domain.radius))
    elif isinstance(domain, Octahedron):
        signs = np.array([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 1.0)])
        constraints.append(LinearConstraint(np.hstack([signs, np.repeat(pad, 4, 0)]), -np.inf, domain.size))
    elif isinstance(domain, Simplex | SubSimplex):
        constraints.append(LinearConstraint(np.eye(d, size), 0, np.inf))
        least = domain.size if isinstance(domain, Simplex) else 0.0
        constraints.append(LinearConstraint(np.hstack([np.ones((1, d)), pad]), least, domain.size))
    found = minimize(objective, start, jac=gradient, constraints=constraints, method="SLSQP",
                     options={"ftol": 1e-15, "maxiter": 500})  # fmt: skip
    w = project(found.x[:d])  # it leaves the set by its tolerance
    return w, lam * w @ w + LOSSES[loss](X @ w, y).sum()


@pytest.mark.parametrize("domain", SETS, ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_leaders_certificate_and_bound(loss, domain):
    X, y = rows()
    labels = loss in ("hinge", "log", "logit")
    y = np.sign(y) if labels else y
    lam = 0.7
    learner = FTRL(loss, lam, domain=domain)
    suffered = 0.0
    for t in range(len(X)):
        if t and t not in (1, 2, len(X) - 1) and t % 3:  # the slow solver is asked at a third of the rows
            suffered += float(LOSSES[loss](X[t] @ learner.state_.w, y[t]))
            learner.partial_fit(X[t : t + 1], y[t : t + 1])
            continue
        w, least = leader(loss, X[:t], y[:t], lam, domain) if t else (domain.project(np.zeros(2)), None)
        if t:
            np.testing.assert_allclose(learner.state_.w, w, atol=2e-5)  # as far as the slow solver goes
            mine = lam * learner.state_.w @ learner.state_.w + LOSSES[loss](X[:t] @ learner.state_.w, y[:t]).sum()
            assert mine <= least + 1e-9  # and never worse
            assert domain.contains(learner.state_.w)
            suffered += float(LOSSES[loss](X[t] @ learner.state_.w, y[t]))
        else:
            suffered += float(LOSSES[loss](X[t] @ w, y[t]))
        learner.partial_fit(X[t : t + 1], y[t : t + 1], **({"classes": [-1, 1]} if labels and t == 0 else {}))
    assert learner.total_loss_ == pytest.approx(suffered, rel=1e-5)
    total = learner.total_loss_
    norm = 0.4 if isinstance(domain, WholeSpace) else None
    certificate = learner.regret_certificate(norm)
    for u in np.random.default_rng(1).normal(size=(100, 2)):
        u = Ball(0.4).project(u) if norm else domain.project(u)
        assert total - LOSSES[loss](X @ u, y).sum() <= certificate + 1e-9
    if loss == "squared" and norm:
        with pytest.raises(NoBound, match="give radius or domain"):
            learner.regret_bound(comparator_norm=norm)
    else:
        assert certificate <= learner.regret_bound(comparator_norm=norm) + 1e-9


def test_the_leaders_are_exact_where_there_is_a_formula():
    X, y = rows(30, 2)
    learner = FTRL("squared", 0.3).fit(X, y)
    np.testing.assert_allclose(learner.state_.w, np.linalg.solve(0.3 * np.eye(2) + X.T @ X, X.T @ y), atol=1e-9)
    linear = FTRL("linear", 0.3, radius=5.0).fit(X, y)
    np.testing.assert_allclose(linear.state_.w, Ball(5.0).project(-X.T @ y / 0.6), atol=1e-9)
    for k in (1, 2, 3, 9):  # hinge, one feature: the leader of k rows (1, +1) is min(k / (2 lam), 1)
        hinge = FTRL("hinge", 1.0).fit(np.ones((k, 1)), np.ones(k), classes=[-1, 1])
        best = min(k / 2, 1.0)
        assert hinge.state_.w[0] == pytest.approx(best, abs=1e-6)
        assert hinge.state_.w[0] ** 2 + k * max(0, 1 - hinge.state_.w[0]) == pytest.approx(best**2 + k * (1 - best))
    absolute = FTRL("absolute", 1.0).fit(np.ones((5, 1)), np.full(5, 3.0))  # k / (2 lam), below the median
    assert absolute.state_.w[0] == pytest.approx(2.5, abs=1e-6)


def test_regularization_saves_the_leader_of_the_notes():
    """w/2, -w, w, ... on [-1, 1]: without regularization the leader loses T - 1, with it at most about sqrt(T)."""
    T = 200
    slope = np.where(np.arange(T) % 2, -1.0, 1.0)
    slope[0] = 0.5
    learner = FTRL("linear", math.sqrt(T) / 2, domain=Box(1.0)).fit(np.ones((T, 1)), slope)
    assert learner.regret_certificate() <= learner.regret_bound() == pytest.approx(math.sqrt(T))
    assert learner.regret_bound() == bounds.ftrl(T, comparator_norm=1.0, gradient_bound=1.0, regularization=T**0.5 / 2)


def test_a_custom_loss_with_curvature():
    X, y = rows(12)
    own = Custom("squared by hand", lambda z, y: (z - y) ** 2, lambda z, y: 2 * (z - y), curvature=lambda z, y: 2.0)
    for domain in (Ball(0.6), Simplex(1.0)):
        mine, theirs = (FTRL(each, 0.5, domain=domain).fit(X, y) for each in (own, "squared"))
        np.testing.assert_allclose(mine.state_.w, theirs.state_.w, atol=1e-7)
        assert mine.regret_certificate() == pytest.approx(theirs.regret_certificate(), abs=1e-7)


def test_more_classes_regression_and_files(tmp_path):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(20, 2)), rng.integers(0, 3, 20)
    for learner in (FTRL("hinge", domain=RowBall(1.0)), FTRL(domain=Box(0.5))):
        learner.fit(X, y)
        assert learner.state_.w.shape == (3, 2)
        assert learner.regret_certificate() <= learner.regret_bound()
        assert set(learner.predict(X)) <= {0, 1, 2}
    assert hasattr(learner, "predict_proba") and not hasattr(FTRL("hinge"), "predict_proba")
    regressor = FTRL("absolute", domain=Octahedron(1.0)).fit(X, X[:, 0])
    assert regressor.predict(X).shape == (20,) and regressor.score(X, X[:, 0]) > 0.3
    regressor.save(tmp_path / "model.npz")
    again = regretless.load(tmp_path / "model.npz")
    assert np.array_equal(again.predict(X), regressor.predict(X))
    assert np.array_equal(again.partial_fit(X, X[:, 1]).state_.w, regressor.partial_fit(X, X[:, 1]).state_.w)


def test_what_ftrl_refuses():
    X, y = rows()
    for learner, words in (
        (FTRL("exponential"), "FTRL supports"),
        (FTRL("softmax"), "FTRL supports"),
        (FTRL("no loss"), "is unknown"),
        (FTRL(radius=1.0, domain=Ball(1.0)), "give one of them"),
        (FTRL(domain="ball"), "give a set of regretless.domains"),
    ):
        with pytest.raises(ValueError, match=words):
            learner.fit(X, y > 0)
    with pytest.raises(ValueError, match="for two classes, and there are 3"):
        FTRL("logit").fit(X, np.arange(9) % 3)
    with pytest.raises(NoCertificate, match="give comparator_norm"):
        FTRL("squared").fit(X, y).regret_certificate()
