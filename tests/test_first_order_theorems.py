"""What the texts promise of first-order learners, on random and on adversarial streams."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from regretless import (
    OGD,
    ExponentiatedGradient,
    LinearizedFTRL,
    MirrorDescent,
    MirrorDescentAggregator,
    NoBound,
    Perceptron,
    StronglyConvexOGD,
    bounds,
)
from regretless.core.numbers.tally import LOSS
from regretless.learners.first_order.linear import LARGEST
from regretless.learners.first_order.schedules import AdaGrad, AdaGradNorm
from regretless.theory.domains import Ball, Box, Octahedron, Simplex

# ---------------------------------------------------------------------- linear losses: any gradients at all


def random_gradients(rng: np.random.Generator, t: int, w: np.ndarray, G: np.ndarray) -> np.ndarray:
    return rng.normal(size=w.size) * rng.choice([0.1, 1.0, 3.0])


def against_the_weights(rng: np.random.Generator, t: int, w: np.ndarray, G: np.ndarray) -> np.ndarray:
    """The gradient that makes what was just played expensive."""
    size = np.linalg.norm(w)
    return w / size if size else np.eye(w.size)[t % w.size]


def alternating(rng: np.random.Generator, t: int, w: np.ndarray, G: np.ndarray) -> np.ndarray:
    """1/2, -1, 1, -1, ...: the leader is always at the wrong end."""
    first = 0.5 if t == 0 else (-1.0) ** t
    return first * np.eye(w.size)[0]


def drifting_away(rng: np.random.Generator, t: int, w: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Gradients that agree with their sum so far: no two cancel."""
    size = np.linalg.norm(G)
    return G / size if size else np.ones(w.size) / math.sqrt(w.size)


ADVERSARIES: dict[str, Callable[..., np.ndarray]] = {
    "random": random_gradients,
    "against": against_the_weights,
    "alternating": alternating,
    "drifting": drifting_away,
}


def linear_game(learner: Any, adversary: str, T: int, d: int, seed: int = 0) -> tuple[float, np.ndarray]:
    """Play gradients chosen after the weights are seen: x is the gradient, y = 1. Returns loss and gradient sum."""
    rng = np.random.default_rng(seed)
    loss, G = 0.0, np.zeros(d)
    w = np.zeros(d)
    for t in range(T):
        g = ADVERSARIES[adversary](rng, t, w, G)
        learner.learn_one(g, 1.0)
        loss += g @ w
        G += g
        w = learner.coef_[0]
        if t == 0:
            assert loss == 0.0 or learner.state_.tally[LOSS] == pytest.approx(loss)
    assert learner.state_.tally[LOSS] == pytest.approx(loss, rel=1e-9, abs=1e-9)
    return loss, G


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("step", ["theory", "adagrad-norm", 0.1])
@pytest.mark.parametrize(("T", "d", "U"), [(1, 2, 1.0), (17, 1, 0.5), (400, 3, 2.0)])
def test_descent_keeps_its_bound_whatever_the_gradients(adversary: str, step: Any, T: int, d: int, U: float) -> None:
    learner = OGD(loss="linear", radius=U, step=step)
    loss, G = linear_game(learner, adversary, T, d)
    regret = loss + U * np.linalg.norm(G)  # against the best of the ball, exactly
    assert learner.regret_certificate() == pytest.approx(regret, rel=1e-9, abs=1e-9)  # linear losses: nothing is lost
    assert regret <= learner.regret_bound() * (1 + 1e-12)
    if step == "theory":
        assert learner.regret_bound() == pytest.approx(U * learner.state_.tally[LARGEST] * math.sqrt(8 * T))


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_a_declared_gradient_bound_does_as_well(adversary: str) -> None:
    learner = OGD(loss="linear", radius=1.0, gradient_bound=12.0)
    loss, G = linear_game(learner, adversary, 300, 2)
    assert loss + np.linalg.norm(G) <= learner.regret_bound() == pytest.approx(12.0 * math.sqrt(8 * 300))
    with pytest.raises(NoBound, match="beyond gradient_bound"):
        learner.partial_fit([[13.0, 0.0]], [1.0]).regret_bound()


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize(
    "learner",
    [
        MirrorDescent("linear", Simplex(2.0), "entropy", averaging=False, gradient_bound=9.0),
        MirrorDescent("linear", Octahedron(1.0), "power", averaging=False, gradient_bound=9.0),
        MirrorDescent("linear", Octahedron(1.0), "p-norm", averaging=False, gradient_bound=9.0),
        MirrorDescent("linear", Ball(1.0), "euclidean", averaging=False, gradient_bound=20.0),
        MirrorDescent("linear", Ball(1.0), "euclidean", lazy=False, averaging=False, gradient_bound=20.0),
        MirrorDescent("linear", Ball(1.0), "euclidean", AdaGradNorm(1.0), lazy=False, averaging=False),
        MirrorDescent("linear", Box(1.0), "euclidean", AdaGrad(1.0), lazy=False, averaging=False),
        MirrorDescent("linear", Simplex(1.0), "entropy", 0.05, averaging=False),
        MirrorDescent("linear", Simplex(1.0), "entropy", 0.05, lazy=False, averaging=False),
        LinearizedFTRL("linear", alpha=1.0, radius=1.0),
        LinearizedFTRL("linear", alpha=0.3, radius=1.0, beta=0.0, l1=0.5, l2=2.0),
    ],
    ids=repr,
)
def test_mirror_descent_keeps_its_bound_whatever_the_gradients(adversary: str, learner: Any) -> None:
    played = type(learner)(**learner.get_params())
    rng = np.random.default_rng(1)
    T, d = 200, 4
    G, loss = np.zeros(d), 0.0
    played.partial_fit(np.zeros((1, d)), [1.0])  # a row of no gradient: the weights before the first
    for t in range(T):
        w = played.coef_[0]
        g = ADVERSARIES[adversary](rng, t, w, G)
        played.learn_one(g, 1.0)
        loss, G = loss + g @ w, G + g
    domain = played.competes_with.domain
    regret = loss - G @ domain.minimise_linear(G)
    assert played.regret_certificate() == pytest.approx(regret, rel=1e-9, abs=1e-9)
    assert regret <= played.regret_bound() * (1 + 1e-12)


def test_on_the_alternating_stream_the_leader_loses_every_round_and_descent_does_not() -> None:
    """In [-1, 1] the leader suffers T - 1 and some fixed point at most 0; descent stays under its bound."""
    T = 1000
    g = np.array([0.5 if t == 0 else (-1.0) ** t for t in range(T)])
    leader = np.concatenate([[0.0], -np.sign(np.cumsum(g)[:-1])])
    assert g @ leader == T - 1
    assert -abs(g.sum()) <= 0
    learner = OGD(loss="linear", radius=1.0).fit(g[:, None], np.ones(T))
    assert learner.state_.tally[LOSS] + abs(g.sum()) <= learner.regret_bound() < T / 10


# ---------------------------------------------------------------------- strongly convex losses


def svm_stream(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) / 2
    return X, np.where(X @ rng.normal(size=4) + 0.3 * rng.normal(size=n) > 0, 1, -1)


def regularised(learner: StronglyConvexOGD, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """What a run suffers of hinge + lam/2 |w|^2, and the least any weights do."""
    lam, suffered = learner.regularization, 0.0
    for x, label in zip(X, y, strict=True):
        w = learner.coef_[0] if hasattr(learner, "state_") else np.zeros(X.shape[1])
        suffered += max(0.0, 1 - label * (w @ x)) + lam / 2 * w @ w
        learner.learn_one(x, label, **({} if hasattr(learner, "state_") else {"classes": [-1, 1]}))

    def total(w: np.ndarray) -> float:
        return float(np.maximum(0, 1 - y * (X @ w)).sum() + len(y) * lam / 2 * w @ w)

    best = min(total(minimize(total, start, method="Powell", options={"xtol": 1e-10, "ftol": 1e-14}).x)
               for start in (np.zeros(X.shape[1]), learner.coef_[0]))  # fmt: skip
    return suffered, best


@pytest.mark.parametrize("lam", [0.01, 0.3])
def test_the_online_svm_has_logarithmic_regret(lam: float) -> None:
    regrets = []
    for n in (250, 1000):
        learner = StronglyConvexOGD(regularization=lam)
        suffered, best = regularised(learner, *svm_stream(n))
        regrets.append(suffered - best)
        assert regrets[-1] <= learner.regret_certificate() * (1 + 1e-9)
        assert learner.regret_certificate() <= learner.regret_bound()
    assert regrets[1] <= regrets[0] + 1.5 * (learner.regret_certificate() - regrets[0])  # no root of n in it


@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_known_curvature_gives_logarithmic_regret(sigma: float) -> None:
    """(z - y)^2 with |x|^2 >= sigma/2 in one dimension is sigma-strongly convex in w."""
    rng = np.random.default_rng(3)
    growth = []
    for n in (100, 10_000):
        x = rng.choice([-1, 1], size=n) * rng.uniform(math.sqrt(sigma / 2), math.sqrt(sigma / 2) + 0.5, size=n)
        y = 0.7 * x + rng.choice([-1.0, 1.0], size=n)
        learner = StronglyConvexOGD("squared", regularization=0.0, sigma=sigma, radius=5.0)
        forecasts = learner.predict_then_learn(x[:, None], y)
        best = np.sum((x * (x @ y) / (x @ x) - y) ** 2)
        regret = np.sum((forecasts - y) ** 2) - best
        assert regret <= learner.regret_certificate() <= learner.regret_bound()
        growth.append(learner.regret_certificate())
    assert growth[1] <= growth[0] * 3  # ln 10^4 / ln 10^2 = 2, and sqrt would be 10


def test_the_bound_of_strong_convexity_is_the_sum_of_the_steps() -> None:
    for n in (1, 10, 1000):
        harmonic = sum(1 / t for t in range(1, n + 1))
        assert harmonic <= 1 + math.log(n)
        assert bounds.strongly_convex(n, sigma=2.0, gradient_bound=3.0) >= 9 * harmonic / 4


# ---------------------------------------------------------------------- the Perceptron


def hinge(u: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.maximum(0, 1 - y * (X @ u)).sum())


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 300), d=st.integers(1, 6), noise=st.floats(0, 2))
def test_the_perceptrons_mistakes_are_bounded_for_every_comparator(seed: int, n: int, d: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    X, v = rng.normal(size=(n, d)), rng.normal(size=d)
    y = np.where(X @ v + noise * rng.normal(size=n) > 0, 1, -1)
    learner = Perceptron().partial_fit(X, y, classes=[-1, 1])
    scores = Perceptron().predict_then_learn(X, y, classes=[-1, 1])
    mistakes = np.count_nonzero(y * scores <= 0)
    assert learner.mistakes_ == mistakes
    directions = (v, -v, rng.normal(size=d))
    for u in [np.zeros(d), *(size * direction for size in (0.1, 1.0, 5.0) for direction in directions)]:
        L = hinge(u, X, y)
        bound = learner.mistake_bound(u, X, y)
        assert bound == pytest.approx(bounds.perceptron(
            comparator_norm=np.linalg.norm(u), feature_bound=np.linalg.norm(X, axis=1).max(), hinge_loss=L
        ))  # fmt: skip
        assert mistakes <= bound + 1e-9
        norm = float(np.linalg.norm(u))
        assert mistakes - L <= learner.regret_certificate(norm) + 1e-9
        assert learner.regret_certificate(norm) <= learner.regret_bound(comparator_norm=norm) + 1e-9


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), K=st.integers(3, 5))
def test_keslers_mistakes_are_bounded_for_every_comparator(seed: int, K: int) -> None:
    rng = np.random.default_rng(seed)
    X, V = rng.normal(size=(150, 4)), rng.normal(size=(K, 4))
    y = np.argmax(X @ V.T + 0.2 * rng.normal(size=(150, K)), axis=1)
    learner = Perceptron().partial_fit(X, y, classes=range(K))
    for U in (np.zeros((K, 4)), V, 4 * V, rng.normal(size=(K, 4))):
        assert learner.mistakes_ <= learner.mistake_bound(U, X, y) + 1e-9
        z = X @ U.T
        true = z[np.arange(150), y]
        z[np.arange(150), y] = -np.inf
        L = np.maximum(0, 1 + z.max(axis=1) - true).sum()
        assert learner.mistakes_ - L <= learner.regret_certificate(np.linalg.norm(U)) + 1e-9


def test_with_a_margin_mistakes_stop() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5))
    u = rng.normal(size=5)
    X = X[np.abs(X @ u) >= 1]
    learner = Perceptron().fit(X, X @ u > 0)
    assert (
        learner.mistakes_
        <= learner.mistake_bound(u)
        == pytest.approx((np.linalg.norm(u) * np.linalg.norm(X, axis=1).max()) ** 2)
    )


# ---------------------------------------------------------------------- mirror descent with averaging


def best_expert_risk(loss: str, p: np.ndarray) -> Callable[[np.ndarray], float]:
    """The risk of theta when base function j is right with probability p_j, independently: y h_j = +-1.

    For losses linear on [-1, 1] (the hinge) it is exactly linear in theta.
    """
    assert loss == "hinge"
    return lambda theta: 1.0 - float(theta @ (2 * p - 1))


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [None, 100])
@pytest.mark.parametrize(("mirror", "domain"), [("entropy", "simplex"), ("p-norm", "simplex"), ("power", "octahedron")])
def test_the_excess_risk_is_within_the_theorem(mirror: str, domain: str, horizon: int | None) -> None:
    """200 repetitions of 100 rows; the best element is the best base function, and its risk is known exactly."""
    M, n = 20, 100
    p = np.full(M, 0.5)
    p[3] = 0.8
    risk = best_expert_risk("hinge", p)
    best = risk(np.eye(M)[3])
    excess = []
    for repetition in range(200):
        rng = np.random.default_rng(repetition)
        y = rng.choice([-1, 1], size=n)
        H = np.where(rng.random((n, M)) < p, 1.0, -1.0) * y[:, None]
        learner = MirrorDescentAggregator(mirror=mirror, domain=domain, horizon=horizon)
        learner.partial_fit(H, y, classes=[-1, 1])
        excess.append(risk(learner.average_theta_) - best)
    mean, error = np.mean(excess), np.std(excess) / math.sqrt(200)
    assert mean + 3 * error <= learner.excess_risk_bound()
    assert mean > 0
    if horizon is not None and mirror == "entropy":
        assert learner.excess_risk_bound(100) == pytest.approx(math.sqrt(2 * math.log(M) / 100))


@pytest.mark.slow
def test_the_excess_risk_grows_like_the_root_of_ln_M() -> None:
    """From 10 base functions to 10,000 with the same number of rows, one of them better by what is hardest to see.

    ln M grows by 4, so the excess doubles; the root of M would be 31 times.
    """
    n, found = 200, {}
    for M in (10, 100, 1000, 10_000):
        gap = math.sqrt(math.log(M) / n)
        p = np.full(M, 0.5)
        p[0] += gap / 2
        excess = []
        for repetition in range(30):
            rng = np.random.default_rng(repetition)
            H = np.where(rng.random((n, M)) < p, 1.0, -1.0)  # y = 1 always: nothing else matters
            learner = MirrorDescentAggregator().partial_fit(H, np.ones(n), classes=[-1, 1])
            excess.append(gap * (1 - learner.average_theta_[0]))
            assert learner.excess_risk_bound() == pytest.approx(2 * math.sqrt(math.log(M) * (n + 2)) / (n + 1))
        found[M] = np.mean(excess)
        assert found[M] <= learner.excess_risk_bound()
    ratios = [excess / math.sqrt(math.log(M)) for M, excess in found.items()]
    assert max(ratios) <= 1.4 * min(ratios)
    assert max(ratios[1:]) <= 1.1 * min(ratios[1:])


def test_the_average_is_of_all_weights_from_the_first() -> None:
    """After n rows the mean of theta_0..theta_n, the text's estimate of index n + 1."""
    rng = np.random.default_rng(0)
    H, y = rng.choice([-1.0, 1.0], size=(30, 5)), rng.choice([-1, 1], size=30)
    learner = MirrorDescentAggregator()
    thetas = [np.full(5, 0.2)]
    for h, label in zip(H, y, strict=True):
        learner.learn_one(h, label, **({} if hasattr(learner, "state_") else {"classes": [-1, 1]}))
        thetas.append(learner.theta_)
        np.testing.assert_allclose(learner.average_theta_, np.mean(thetas, axis=0), rtol=1e-12)
    assert learner.excess_risk_bound() == learner.excess_risk_bound(31)
    np.testing.assert_allclose(learner.decision_function(H), H @ np.mean(thetas, axis=0), rtol=1e-12)


@pytest.mark.parametrize("horizon", [None, 300])
@pytest.mark.parametrize("signed", [False, True])
def test_exponentiated_gradient_keeps_its_bound(horizon: int | None, signed: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 8))
    y = rng.random(300) < 0.5
    learner = ExponentiatedGradient(scale=3.0, signed=signed, horizon=horizon).fit(X, y)
    assert learner.regret_certificate() <= learner.regret_bound()
    assert np.abs(learner.coef_).sum() <= 3.0 * (1 + 1e-12)


def test_with_a_horizon_the_update_is_multiplicative() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(40, 4)), rng.uniform(-1, 1, size=40)
    learner = ExponentiatedGradient("absolute", horizon=40)
    theta = np.full(4, 0.25)
    eta = math.sqrt(2 * math.log(4) / 40)  # 1 / (beta sqrt(T)), L = lam = 1
    for x, target in zip(X, y, strict=True):
        learner.learn_one(x, target)
        theta = theta * np.exp(-eta * np.sign(theta @ x - target) * x)
        theta /= theta.sum()
        np.testing.assert_allclose(learner.coef_[0], theta, rtol=1e-10)
