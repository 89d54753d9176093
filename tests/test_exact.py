"""FTRL, refitted exactly, and following the leader, which fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logsumexp, softmax

from each import for_each
from learners import LABELLINGS, Stream, assert_same_state, directions, fingerprint, through_file
from regretless import FTRL, OGD, FollowTheLeader, NoBound, NoCertificate, bounds
from regretless.core.numbers.tally import EXCESS, LOSS
from regretless.learners.refitting.ftrl import GAP, gap_of
from regretless.streams import adversarial
from regretless.theory.domains import Ball, Box, Competition, Octahedron, RowBall, Simplex, SubSimplex, WholeSpace

# ---------------------------------------------------------------------- the objective, from its definition


def losses(W: np.ndarray, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    z = X @ np.atleast_2d(W).T
    if z.shape[1] == 1:
        z = np.hstack([np.zeros_like(z), z])
    return np.sum(Y * (logsumexp(z, axis=1)[:, None] - z), axis=1)


def gradient(W: np.ndarray, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, lam: float) -> np.ndarray:
    if W.ndim == 1:
        slopes = expit(X @ W) - Y[:, 1]
        return (weight * slopes) @ X + 2 * lam * W
    return (weight[:, None] * (softmax(X @ W.T, axis=1) - Y)).T @ X + 2 * lam * W


def some_rows(n: int, d: int, K: int, soft: bool, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of very different norms, some of zeros, some twice; labels hard or soft; weights, some of them 0."""
    rng = np.random.default_rng([seed, n, d, K])
    X = rng.normal(size=(n, d)) * rng.choice([0.0, 1e-3, 1.0, 20.0], p=[0.1, 0.1, 0.6, 0.2], size=(n, 1))
    Y = rng.dirichlet(np.full(K, 0.3), size=n) if soft else np.eye(K)[rng.integers(0, K, n)]
    X[n // 2], Y[n // 2] = X[0], Y[0]
    return X, Y, rng.choice([0.0, 0.5, 1.0, 2.5], size=n)


# ---------------------------------------------------------------------- FTRL


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("lam", [1.0, 1e-4])
@pytest.mark.parametrize("radius", [None, 0.1])
def test_the_leader_is_the_minimiser_after_every_row(K: int, soft: bool, lam: float, radius: float | None) -> None:
    X, Y, weight = some_rows(30, 3, K, soft)
    learner = FTRL(regularization=lam, radius=radius)
    borders = 0
    for t in range(len(X)):
        learner.partial_fit(X[t : t + 1], Y[t : t + 1], sample_weight=weight[t : t + 1])
        w = learner.state_.w
        g = gradient(w, X[: t + 1], Y[: t + 1], weight[: t + 1], lam)
        inward = 0.0
        if radius is not None:
            assert np.linalg.norm(w) <= radius * (1 + 1e-12)
            if np.linalg.norm(w) >= radius * (1 - 1e-12):  # only then may the gradient point out of the ball
                inward = max(0.0, -np.sum(g * w) / (2 * radius**2))
                borders += 1
        assert np.abs(g + 2 * inward * w).max() <= 1e-11 * (1 + np.abs(X[: t + 1]).sum())
        assert learner.state_.tally[GAP] <= 1e-12
    assert radius is None or borders > 10


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("radius", [None, 1.0])
def test_forecasts_are_those_of_a_refit_by_another_solver(K: int, radius: float | None) -> None:
    X, Y, weight = some_rows(20, 2, K, soft=True)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    p = FTRL(regularization=0.1, radius=radius).predict_then_learn(X, Y, sample_weight=weight)
    shape = (2,) if K == 2 else (K, 2)
    for t in range(len(X)):
        past = X[:t], Y[:t], weight[:t]
        ball = {"type": "ineq", "fun": lambda w: radius**2 - w @ w}
        found = minimize(
            lambda w, past=past: past[2] @ losses(w.reshape(shape), *past[:2]) + 0.1 * w @ w,
            np.zeros(2 if K == 2 else 2 * K),
            jac=lambda w, past=past: gradient(w.reshape(shape), *past, 0.1).ravel(),
            method="BFGS" if radius is None else "SLSQP",
            constraints=[] if radius is None else [ball],
            options={"gtol": 1e-9} if radius is None else {"ftol": 1e-15},
        )
        z = X[t] @ np.atleast_2d(found.x.reshape(shape)).T
        expected = softmax(np.append(0.0, z)) if K == 2 else softmax(z)
        np.testing.assert_allclose(p[t], expected, atol=1e-6)


def regret_on(n: int, seed: int, **params: Any) -> float:
    """Against the best of the ball of radius ln n."""
    stream = adversarial(n, seed)
    learner = FTRL(**params).fit(stream.X, stream.y, classes=stream.classes)

    def total(w: float) -> float:
        return float(np.logaddexp(0.0, -stream.y * stream.X[:, 0] * w).sum())

    found = minimize_scalar(total, bounds=(-stream.radius, stream.radius), method="bounded", options={"xatol": 1e-9})
    best = min(found.fun, total(stream.radius), total(-stream.radius))
    regret = learner.state_.tally[LOSS] - best
    assert regret <= learner.regret_certificate(stream.radius)
    return regret


@pytest.mark.slow
@pytest.mark.parametrize(("n", "seen"), [(100, 1.35), (1000, 10.3), (10_000, 62.7)])
def test_the_adversarial_stream_costs_a_power_of_n(n: int, seen: float) -> None:
    """AIOLI's Figure 2: the mean regret of ten runs for the worse sign of chi, up to twice its standard error.

    `seen` was measured with another implementation and other seeds.
    """
    regrets = np.array([regret_on(n, seed) for seed in range(20)]).reshape(10, 2)
    worse = int(regrets.mean(axis=0).argmax())
    assert regrets.mean(axis=0)[worse] == pytest.approx(seen, abs=2 * regrets[:, worse].std() / np.sqrt(10))


def test_a_leader_beyond_the_ball_may_beat_all_of_it() -> None:
    n = 10_000
    for seed, matters in ((1, False), (9, True)):
        free, confined = (regret_on(n, seed, radius=radius) for radius in (None, np.log(n)))
        assert (free < confined) == matters


@pytest.mark.parametrize("K", [2, 3])
def test_equal_rows_are_merged(K: int) -> None:
    X, Y, _ = some_rows(10, 3, K, soft=False)
    X[5] = X[5] + 0.1
    twice = FTRL(regularization=0.3).fit(np.vstack([X, X]), np.vstack([Y, Y]))
    heavy = FTRL(regularization=0.3).fit(X, Y, sample_weight=2.0)
    assert len(twice.state_.X) == len(np.unique(np.hstack([X, Y]), axis=0))
    np.testing.assert_allclose(twice.state_.w, heavy.state_.w, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("radius", [None, 1.0])
def test_the_certificate_is_the_regret_of_the_leader(K: int, radius: float | None) -> None:
    X, Y, weight = some_rows(60, 3, K, soft=True)
    learner = FTRL(regularization=0.2, radius=radius).fit(X, Y, sample_weight=weight)
    w, tally = learner.state_.w, learner.state_.tally
    regret = tally[LOSS] - weight @ losses(w, X, Y)
    assert learner.regret_certificate(np.linalg.norm(w)) == pytest.approx(regret, rel=1e-9)
    assert tally[EXCESS] > 0


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), K=st.sampled_from([2, 3]), radius=st.sampled_from([None, 2.0]))
def test_regret_is_within_the_certificate_within_the_bound(seed: int, K: int, radius: float | None) -> None:
    rng = np.random.default_rng(seed)
    X, Y, _ = some_rows(40, 2, K, soft=False, seed=seed)
    learner = FTRL(regularization=float(rng.choice([0.01, 1.0, 30.0])), radius=radius)
    p = learner.predict_then_learn(X, Y)
    suffered = -np.log((p * Y).sum(axis=1)).sum()
    assert learner.state_.tally[LOSS] == pytest.approx(suffered, rel=1e-9)
    for size in (0.0, 0.1, 2.0):
        u = rng.normal(size=learner.state_.w.shape)
        u *= size / np.linalg.norm(u)
        certificate = learner.regret_certificate(size)
        assert suffered - losses(u, X, Y).sum() <= certificate + 1e-9 * (1 + suffered)
        assert certificate <= learner.regret_bound(comparator_norm=size)


@settings(max_examples=100)
@given(seed=st.integers(0, 10_000), K=st.sampled_from([2, 3]), radius=st.sampled_from([np.inf, 1.0]))
def test_the_gap_never_lies(seed: int, K: int, radius: float) -> None:
    """At any point, and not only where a refit ends: no point of the set is lower by more."""
    rng = np.random.default_rng(seed)
    X, Y, weight = some_rows(15, 2, K, soft=True, seed=seed)
    learner = FTRL(regularization=0.3, radius=None if np.isinf(radius) else radius)
    w = learner.fit(X, Y, sample_weight=weight, classes=range(K)).state_.w
    near = w + rng.normal(size=w.shape) * 10.0 ** rng.uniform(-6, 0)
    near *= min(1.0, radius / np.linalg.norm(near))
    least, there = (weight @ losses(v, X, Y) + 0.3 * np.sum(v**2) for v in (w, near))
    gap = gap_of(near.ravel(), gradient(near, X, Y, weight, 0.3).ravel(), 0.3, radius)
    assert there - least <= gap + 1e-12 * (1 + there)


def test_the_bound_is_its_formula_and_is_reached_in_order() -> None:
    assert bounds.ftrl(400, comparator_norm=3.0, gradient_bound=2.0, regularization=5.0) == 5 * 9 + 400 * 4 / 20
    given = {"comparator_norm": 3.0, "gradient_bound": 2.0}
    best = 2.0 * np.sqrt(400) / (2 * 3.0)
    assert bounds.ftrl(400, **given, regularization=best) == pytest.approx(3.0 * 2.0 * np.sqrt(400))
    with pytest.raises(NoBound, match="regularization"):
        bounds.ftrl(400, **given, regularization=0.0)


def test_promises_that_cannot_be_made_are_refused() -> None:
    X, Y, _ = some_rows(20, 2, 2, soft=False)
    free, confined = FTRL().fit(X, Y), FTRL(radius=2.0).fit(X, Y)
    assert free.competes_with == Competition("logistic", WholeSpace())
    assert confined.competes_with == Competition("logistic", Ball(2.0))
    assert FTRL().fit(*some_rows(9, 2, 3, soft=True)[:2]).competes_with.loss == "softmax"
    with pytest.raises(NoCertificate, match="comparator_norm"):
        free.regret_certificate()
    with pytest.raises(NoBound, match="comparator_norm"):
        free.regret_bound()
    assert confined.regret_certificate() == confined.regret_certificate(2.0)
    assert confined.regret_bound(10) < confined.regret_bound()
    for refusal, promise in ((NoCertificate, confined.regret_certificate), (NoBound, confined.regret_bound)):
        with pytest.raises(refusal, match="outside Ball"):
            promise(comparator_norm=3.0)
    with pytest.raises(NoBound, match="weight 1"):
        FTRL(radius=2.0).fit(X, Y, sample_weight=2.0).regret_bound()
    with pytest.raises(NoCertificate, match="rounding"):
        FTRL(radius=2.0).fit(1e7 * X, Y).regret_certificate()


@pytest.mark.parametrize("size", [1e3, 1e5])
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("labels", LABELLINGS)
def test_the_certificate_holds_for_large_rows(size: float, K: int, labels: str) -> None:
    X = size * directions(200, 3)
    y = LABELLINGS[labels](X, K)
    learner = FTRL().fit(X, y, classes=range(K))
    Y = np.eye(K)[y]
    tally, w = learner.state_.tally, learner.state_.w
    assert tally[GAP] <= 1e-6
    for u in (0.0 * w, w):
        regret = tally[LOSS] - losses(u, X, Y).sum()
        assert regret <= learner.regret_certificate(np.linalg.norm(u)) + 1e-9 * (1 + tally[LOSS])


@pytest.mark.parametrize(
    "X",
    [
        1e150 * directions(60, 3),
        1e150 * np.tile(np.eye(3), (20, 1)),
        10.0 ** np.linspace(-300, 150, 60)[:, None] * directions(60, 3),
        10.0 ** np.linspace(150, -300, 60)[:, None] * directions(60, 3),
        directions(60, 3) * [1e150, 1.0, 1e-150],
        np.zeros((60, 3)),
    ],
    ids=["huge", "axes", "rising", "falling", "columns", "zeros"],
)
@for_each("labels", LABELLINGS)
@for_each("K", [2, 3])
@for_each("radius", [None, 100.0])
@pytest.mark.filterwarnings("error")
def test_extreme_rows_stay_finite(X: np.ndarray, labels: str, K: int, radius: float | None) -> None:
    learner = FTRL(radius=radius)
    p = learner.predict_then_learn(X, LABELLINGS[labels](X, K), classes=range(K))
    assert np.isfinite(p).all()
    assert all(np.isfinite(array).all() for array in learner.state_)


@pytest.mark.parametrize(
    "params", [{"loss": "exponential"}, {"regularization": 0.0}, {"regularization": -1.0}, {"radius": 0.0}], ids=str
)
def test_bad_parameters_are_named(params: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(params))):
        FTRL(**params).fit([[0.0], [1.0]], [0, 1])


# ---------------------------------------------------------------------- following the leader


def alternating(T: int) -> Stream:
    """w/2, then -w, w, -w, ..."""
    slope = np.where(np.arange(T) % 2, -1.0, 1.0)
    slope[0] = 0.5
    return Stream(np.ones((T, 1)), slope)


@pytest.mark.parametrize("T", [1, 2, 3, 10, 999, 1000])
def test_following_the_leader_loses_one_a_row(T: int) -> None:
    """The notes: T - 1 against 0."""
    X, slope = alternating(T)
    learner = FollowTheLeader(Box(1.0))
    forecast = learner.predict_then_learn(X, slope)
    assert forecast.tolist() == [0.0, *(np.where(np.arange(T - 1) % 2, 1.0, -1.0))]
    assert forecast @ slope == T - 1
    best = -abs(slope.sum())  # of a linear function on [-1, 1]; that of w = 0 is 0
    assert learner.regret_certificate() == forecast @ slope - best == T - 0.5
    assert learner.regret_certificate(comparator_norm=0.0) == T - 1


def test_regularization_helps() -> None:
    X, slope = alternating(1000)
    learner = OGD(loss="linear", radius=1.0, gradient_bound=1.0)
    forecast = learner.predict_then_learn(X, slope)
    assert forecast @ slope + abs(slope.sum()) <= learner.regret_bound() < 100


@pytest.mark.parametrize("domain", [Box(2.0), Ball(2.0), Simplex(2.0), SubSimplex(2.0), Octahedron(2.0)], ids=str)
def test_the_leader_of_linear_losses_is_the_best_of_the_set(domain: Any) -> None:
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(50, 3)), rng.normal(size=50), rng.choice([0.0, 1.0, 2.5], size=50)
    learner = FollowTheLeader(domain)
    forecast = learner.predict_then_learn(X, y, sample_weight=weight)
    assert np.array_equal(forecast[0], X[0] @ domain.project(np.zeros(3)))
    for t in range(1, 50):
        total = (weight * y)[:t] @ X[:t]
        if total.any():
            assert forecast[t] == pytest.approx(X[t] @ domain.minimise_linear(total), rel=1e-12)
    total = (weight * y) @ X
    best = total @ domain.minimise_linear(total)
    assert learner.regret_certificate() == pytest.approx((weight * y) @ forecast - best, rel=1e-12)
    assert np.array_equal(learner.coef_[0], domain.minimise_linear(learner.state_.table[:, 1, 0]))
    assert learner.competes_with == Competition("linear", domain)


def test_following_the_leader_promises_nothing() -> None:
    learner = FollowTheLeader().fit(*alternating(10))
    with pytest.raises(NoBound, match="no regret bound"):
        learner.regret_bound()
    with pytest.raises(NoCertificate, match="outside Box"):
        learner.regret_certificate(comparator_norm=3.0)


@pytest.mark.parametrize("domain", [WholeSpace(), RowBall(1.0), "box", 1.0], ids=str)
def test_a_set_without_a_leader_is_refused(domain: Any) -> None:
    with pytest.raises(ValueError, match=r"domain=.*bounded"):
        FollowTheLeader(domain).fit(*alternating(10))


# ---------------------------------------------------------------------- promises of both


def streams() -> list[Any]:
    X, Y, _ = some_rows(40, 3, 2, soft=False)
    X3, Y3, _ = some_rows(40, 3, 3, soft=False)
    y = np.random.default_rng(1).normal(size=40)
    return [
        pytest.param(FTRL(regularization=0.3), Stream(X, Y.argmax(axis=1)), id="two classes"),
        pytest.param(FTRL(regularization=0.3, radius=1.0), Stream(X3, Y3.argmax(axis=1)), id="three, in a ball"),
        pytest.param(FollowTheLeader(Ball(1.0)), Stream(X, y), id="the leader"),
    ]


@pytest.mark.parametrize(("learner", "stream"), streams())
def test_cuts_files_and_predictions(learner: Any, stream: Stream, tmp_path: Path) -> None:
    X, y = stream
    first = {} if isinstance(learner, FollowTheLeader) else {"classes": np.unique(y)}
    weight = np.where(np.arange(40) % 7 == 3, 0.0, 1.0)
    forecasts = learner.predict_then_learn(X, y, sample_weight=weight, **first)
    again = type(learner)(**learner.get_params())
    pieces = [again.predict_then_learn(X[:1], y[:1], sample_weight=weight[:1], **first)]
    for t in range(1, 40):
        before = fingerprint(again)
        again.predict(X)
        again.regret_certificate(0.5)
        assert fingerprint(again) == before
        if t % 10 == 0:
            again = through_file(again, tmp_path)
        pieces.append(again.predict_then_learn(X[t : t + 1], y[t : t + 1], sample_weight=weight[t : t + 1]))
    assert np.array_equal(np.concatenate(pieces), forecasts)
    assert_same_state(learner, again)
