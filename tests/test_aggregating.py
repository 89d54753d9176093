"""The aggregating forecaster against its definition: integrals by quadrature, and walkers that follow them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import softmax

from learners import assert_same_game, fingerprint
from reference import aggregating as reference
from regretless import AggregatingForecaster, NoBound, NoCertificate, best_in_hindsight, bounds
from regretless.core.numbers.tally import LOSS
from regretless.streams import adversarial
from regretless.theory.domains import Ball, Competition

SHAPES = [(1, 2), (2, 2), (1, 3)]  # features and classes of one and two parameters
TWO_PARAMETERS = SHAPES[1:]


def rows(d: int, n: int = 6) -> np.ndarray:
    return np.random.default_rng([7, d, n]).normal(size=(n, d))


def learner_of(X: np.ndarray, Y: np.ndarray, weight: Any = 1.0, **params: Any) -> AggregatingForecaster:
    """One that has learned the rows; of none, it knows the shapes."""
    learner = AggregatingForecaster(**params)
    K, d = Y.shape[1], X.shape[1]
    learner.partial_fit(np.zeros((1, d)), np.full((1, K), 1 / K), sample_weight=0.0, classes=np.arange(K))
    return learner.partial_fit(X, Y, sample_weight=weight) if len(X) else learner


# ---------------------------------------------------------------------- quadrature


def cases(d: int, K: int) -> dict[str, tuple[np.ndarray, np.ndarray, Any, np.ndarray, float]]:
    """Rows, labels, weights, the row to forecast, and the radius."""
    rng = np.random.default_rng([8, d, K])
    X, x = rows(d), np.full(d, 0.7)
    hard, soft = np.eye(K)[rng.integers(0, K, 6)], rng.dirichlet(np.ones(K), 6)
    apart = np.eye(K)[(X[:, 0] > 0).astype(int)]
    return {
        "no rows": (X[:0], hard[:0], 1.0, x, 5.0),
        "few rows": (X, hard, 1.0, x, 5.0),
        "a wide ball": (X, hard, 1.0, x, 50.0),
        "soft labels and weights": (X, soft, rng.uniform(0.0, 3.0, 6), x, 10.0),
        "a zero row": (X, hard, 1.0, np.zeros(d), 5.0),
        "a ridge": (np.ones((K, d)), np.eye(K), 1e6 * np.arange(1.0, K + 1), x, 10.0),
        "a needle": (X, soft, 1e6, x, 10.0),
        "at the border": (X, apart, 1e5, x, 1.0),
        "apart": (X, apart, 1e3, x, 30.0),
        "one row": (np.ones((1, d)), np.eye(K)[:1], 1e4, x, 10.0),
        "tiny probabilities": (X, apart, 1e5, 8 * d * x, 50.0),
        "a large row": (X, hard, 1.0, 30 * x, 5.0),
        "small rows": (1e-7 * X, hard, 1.0, x, 5.0),
    }


HARD = ("a ridge", "a needle", "at the border", "tiny probabilities")
OTHERS = [case for case in cases(1, 2) if case not in HARD]
# both shapes of two parameters meet the hard cases, and share the others: the integrals of the definition take long
QUADRATURES = [
    *((1, 2, case) for case in cases(1, 2)),
    *((d, K, case) for d, K in TWO_PARAMETERS for case in HARD),
    *((2, 2, case) for case in OTHERS[::2]),
    *((1, 3, case) for case in OTHERS[1::2]),
]
ABOUT_ZERO = ("few rows", "a wide ball", "a large row")  # their corners are lines through 0


@pytest.mark.parametrize(
    ("d", "K", "case"),
    [pytest.param(*each, marks=[pytest.mark.slow] * (i % 5 > 0)) for i, each in enumerate(QUADRATURES)],
)
def test_quadrature_is_the_integral(d: int, K: int, case: str) -> None:
    X, Y, weight, x, radius = cases(d, K)[case]
    learner = learner_of(X, Y, weight, radius=radius)
    p = learner.predict_proba(x[None])[0]
    counted = np.broadcast_to(weight, len(X))[:, None] * Y
    polar = case in ABOUT_ZERO and (d, K) in TWO_PARAMETERS
    evidence = reference.log_evidence_about_zero if polar else reference.log_evidence
    expected = np.exp(reference.log_probabilities(X, counted, x, radius, evidence))
    np.testing.assert_allclose(p, expected, rtol=1e-8)
    if case == "tiny probabilities":
        assert p.min() < 1e-90


@pytest.mark.slow
@pytest.mark.parametrize(("d", "K"), TWO_PARAMETERS)
def test_corners_at_a_thousandth_of_the_ball_are_seen(d: int, K: int) -> None:
    X, x = rows(d), np.full(d, 0.7)
    Y = np.eye(K)[(X[:, 0] > 0).astype(int)]
    p = learner_of(X, Y, radius=1000.0).predict_proba(x[None])[0]
    evidence = reference.log_evidence_about_zero
    np.testing.assert_allclose(p, np.exp(reference.log_probabilities(X, Y, x, 1000.0, evidence)), rtol=1e-8)


def test_beyond_a_hundred_million_rows_rounding_decides() -> None:
    """A needle of weight 1e9 takes no longer than another, and forecasts what the needle says."""
    for d, K in SHAPES:
        Y = softmax(rows(1, 3) @ np.arange(float(K))[None], axis=1)
        p = learner_of(np.ones((3, d)), Y, 1e9, radius=10.0).predict_proba(np.ones((1, d)))[0]
        np.testing.assert_allclose(p, Y.mean(axis=0), rtol=1e-5)


def test_without_rows_all_labels_are_as_likely() -> None:
    for d, K in itertools.product([1, 2, 5], [2, 3, 4]):
        p = learner_of(np.empty((0, d)), np.empty((0, K)), n_samples=4096).predict_proba(rows(d))
        np.testing.assert_allclose(p, 1 / K, atol=1e-9 if (K - 1) * d <= 2 else 0.03)


def test_the_same_row_again_is_its_weight() -> None:
    for d, K in SHAPES:
        X, Y = rows(d), np.eye(K)[[0, 1, 0, 1, 1, 0]]
        thrice = learner_of(np.tile(X, (3, 1)), np.tile(Y, (3, 1)), radius=5.0)
        assert thrice.state_.X.shape == X.shape
        assert thrice.diagnostics_ == {"method": "quadrature", "parameters": (K - 1) * d, "distinct_rows": 6}
        once = learner_of(X, Y, 3.0, radius=5.0)
        np.testing.assert_allclose(thrice.predict_proba(X), once.predict_proba(X), rtol=1e-8)


# ---------------------------------------------------------------------- what mixtures do


@st.composite
def games(draw: Any) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Rows, labels, number of classes and radius, with one or two parameters."""
    d, K = draw(st.sampled_from(SHAPES))
    n = draw(st.integers(1, 5))
    entry = st.floats(-3.0, 3.0)
    X = draw(st.lists(st.lists(entry, min_size=d, max_size=d), min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, K - 1), min_size=n, max_size=n))
    return np.array(X), np.array(y), K, draw(st.sampled_from([0.5, 3.0, 20.0, 200.0]))


@pytest.mark.slow
@settings(max_examples=15)
@given(games(), st.randoms(use_true_random=False))
@example((np.ones((4, 1)), np.array([0, 1, 1, 1]), 3, 20.0), None)
def test_losses_are_the_evidence_and_certificates_the_regret(game: Any, random: Any) -> None:
    X, y, K, radius = game
    n, d = X.shape
    learner = AggregatingForecaster(radius=radius)
    p = learner.predict_then_learn(X, y, classes=np.arange(K))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    suffered = -np.log(p[np.arange(n), y]).sum()
    assert learner.state_.tally[LOSS] == pytest.approx(suffered, rel=1e-12)
    if (d, K) == (1, 2):
        evidence = reference.log_evidence(reference.logits_of(X, K), np.eye(K)[y], radius) - math.log(2 * radius)
        assert suffered == pytest.approx(-evidence, abs=1e-7)

    order = list(range(n))[::-1]
    if random is not None:
        random.shuffle(order)
    other = AggregatingForecaster(radius=radius).fit(X[order], y[order], classes=np.arange(K))
    assert other.state_.tally[LOSS] == pytest.approx(suffered, abs=1e-8 * n)

    best = best_in_hindsight(X, y, domain=Ball(radius), classes=np.arange(K))
    regret = suffered - best.loss
    assert regret - 1e-9 <= learner.regret_certificate() <= regret + best.gap + 1e-5
    assert learner.regret_certificate() <= learner.regret_bound() + 1e-9
    assert learner.regret_certificate(0.0) == pytest.approx(suffered - n * math.log(K), abs=1e-9)
    assert learner.regret_certificate(radius / 2) <= learner.regret_certificate() + 1e-5


@settings(max_examples=30)
@given(games(), st.floats(1e-3, 1.0), st.integers(0, 2**32 - 1))
def test_the_inequality_behind_the_bound(game: Any, a: float, seed: int) -> None:
    """For every comparator u and every shrinking by a, and not only for the best."""
    X, y, K, radius = game
    n, d = X.shape
    N = (K - 1) * d
    learner = AggregatingForecaster(radius=radius).fit(X, y, classes=np.arange(K))
    A = reference.logits_of(X, K)
    u = np.random.default_rng(seed).normal(size=N)
    u *= radius / np.linalg.norm(u)
    regret = learner.state_.tally[LOSS] + float(reference.log_likelihood(A, np.eye(K)[y], u))
    R = np.linalg.norm(X, axis=1).max()
    s = radius * R * (0.5 if K == 2 else math.sqrt((K - 1) / 2)) / math.sqrt(N + 2)
    rhs = N * math.log(1 / a) + a * n * math.log(K) + n * min(a * s, (a * s) ** 2 / 2)
    assert regret <= rhs + 1e-8 * n
    assert bounds.aggregating(n, n_features=d, n_classes=K, radius=radius, feature_bound=R) <= rhs + 1e-12


@pytest.mark.parametrize(("d", "K"), [(1, 2), (3, 2), (1, 3), (2, 5), (4, 4)])
def test_how_far_logits_of_the_ball_spread(d: int, K: int) -> None:
    """The two numbers of the proof: the mean of the largest logit and of half the variance, for x of norm 1."""
    rng = np.random.default_rng(0)
    N = (K - 1) * d
    v = rng.normal(size=(100_000, N))
    v *= (rng.random(100_000) ** (1 / N) / np.linalg.norm(v, axis=1))[:, None]
    first = v.reshape(-1, K - 1, d)[:, :, 0]  # x = the first unit vector
    basis = np.array([[-0.5], [0.5]]) if K == 2 else np.linalg.svd(np.eye(K) - 1 / K)[0][:, : K - 1]
    z = first @ basis.T
    s = (0.5 if K == 2 else math.sqrt((K - 1) / 2)) / math.sqrt(N + 2)
    assert z.max(axis=1).mean() <= s
    assert np.mean((z.max(axis=1) - z.min(axis=1)) ** 2) / 4 <= s**2 * 1.01


ADVERSARIAL = {100: 1.2, 1000: 2.6, 10_000: 4.7}


@pytest.mark.parametrize("n", [100, *(pytest.param(n, marks=pytest.mark.slow) for n in (1000, 10_000))])
def test_the_regret_on_the_adversarial_stream(n: int) -> None:
    """The worse of the two signs, by the mean of ten runs (of the longest: two), within three standard errors."""
    means, errors = [], []
    for sign in (0, 1):
        found = []
        for seed in range(sign, 20 if n < 10_000 else 4, 2):
            stream = adversarial(n, seed=seed)
            learner = AggregatingForecaster(radius=stream.radius)
            learner.partial_fit(stream.X, stream.y, classes=stream.classes)
            found.append(learner.regret_certificate())
            assert found[-1] <= learner.regret_bound()
        means.append(np.mean(found))
        errors.append(np.std(found) / math.sqrt(len(found)))
    worse = int(np.argmax(means))
    assert abs(means[worse] - ADVERSARIAL[n]) <= 3 * errors[worse] + 0.05


# ---------------------------------------------------------------------- walkers


def stream_of(d: int, K: int, n: int, size: float = 2.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, d, K, n])
    X = rng.normal(size=(n, d))
    y = np.argmax(size * X @ rng.normal(size=(d, K)) + rng.gumbel(size=(n, K)), axis=1)
    return X, y


def error_of_walkers(learners: list[Any], X: np.ndarray, expected: np.ndarray) -> float:
    """The root mean square error of probabilities, in their posterior standard deviations / root of n_samples."""
    errors, variances = [], []
    for learner in learners:
        G, K = learner._constants.G, expected.shape[1]
        Z = np.zeros((learner.n_samples, len(X), K))
        Z[..., 1:] = np.einsum("mrd,nd,kr->mnk", learner.state_.walkers.reshape(-1, K - 1, X.shape[1]), X, G)
        weight = softmax(learner.state_.log_weight)
        errors.append(learner.predict_proba(X) - expected)
        variances.append(np.einsum("m,mnk->nk", weight, (softmax(Z, axis=2) - expected) ** 2) / learner.n_samples)
    return float(np.sqrt(np.mean(np.mean(np.square(errors), axis=0) / np.mean(variances, axis=0))))


@pytest.mark.slow
@pytest.mark.parametrize(("d", "K"), SHAPES)
@pytest.mark.parametrize("n", [5, 16])
@pytest.mark.parametrize("radius", [2.0, 30.0])
def test_walkers_find_the_integral(d: int, K: int, n: int, radius: float) -> None:
    """As well as a quarter as many independent draws would."""
    X, y = stream_of(d, K, n)
    tests = stream_of(d, K, 4, seed=1)[0]
    expected = AggregatingForecaster(radius=radius).fit(X, y, classes=range(K)).predict_proba(tests)
    walkers = [AggregatingForecaster(radius, "langevin", n_samples=256, random_state=seed) for seed in range(10)]
    assert error_of_walkers([w.fit(X, y, classes=range(K)) for w in walkers], tests, expected) <= 2.0


def importance(A: np.ndarray, Y: np.ndarray, radius: float, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Parameters and their log weights: draws of Student's t around the likeliest point, with the Hessian's axes."""
    rng = np.random.default_rng(0)
    N = A.shape[2]

    def slope(u: np.ndarray) -> np.ndarray:
        p = softmax(A @ u, axis=1)
        return np.einsum("nk,nkj->j", Y.sum(axis=1, keepdims=True) * p - Y, A) + u / radius**2

    best = minimize(
        lambda u: -float(reference.log_likelihood(A, Y, u)) + u @ u / (2 * radius**2), np.zeros(N), jac=slope
    ).x
    p = softmax(A @ best, axis=1)
    H = np.einsum("nk,nki,nkj->ij", p, A, A) - np.einsum("nk,nki,nl,nlj->ij", p, A, p, A) + np.eye(N) / radius**2
    freedom = 6.0
    normal = rng.normal(size=(draws, N)) / np.sqrt(rng.chisquare(freedom, size=(draws, 1)) / freedom)
    u = best + np.linalg.solve(np.linalg.cholesky(H).T, normal.T).T
    log_weight = reference.log_likelihood(A, Y, u) + (freedom + N) / 2 * np.log1p(np.sum(normal**2, axis=1) / freedom)
    return u, np.where(np.sum(u**2, axis=1) <= radius**2, log_weight, -np.inf)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "K", "n", "radius"), [(5, 2, 20, 4.0), (5, 2, 200, 10.0), (2, 3, 20, 3.0), (2, 3, 150, 10.0)]
)
def test_walkers_agree_with_importance_sampling(d: int, K: int, n: int, radius: float) -> None:
    X, y = stream_of(d, K, n, size=1.0)
    tests = stream_of(d, K, 5, seed=1)[0]
    u, log_weight = importance(reference.logits_of(X, K), np.eye(K)[y], radius, 40_000)
    weight = np.exp(log_weight - log_weight.max())
    assert weight.sum() ** 2 / np.sum(weight**2) > 10_000
    p = softmax(np.einsum("nkj,mj->mnk", reference.logits_of(tests, K), u), axis=2)
    expected = np.einsum("m,mnk->nk", weight / weight.sum(), p)
    found = []
    for seed in range(6):
        learner = AggregatingForecaster(radius=radius, n_samples=512, random_state=seed).fit(X, y)
        found.append(learner)
        report = learner.diagnostics_
        assert (report["method"], report["parameters"], report["distinct_rows"]) == ("langevin", (K - 1) * d, n)
        assert 256 <= report["effective_samples"] <= 512.001
        assert 0.9 < report["r_hat"] < 1.1
        assert 0.1 < report["acceptance"] <= 1.0
        assert 0.0 <= report["memory"] < 0.5
        assert 1 <= report["moves"] < 20 * math.log(n)
    assert error_of_walkers(found, tests, expected) <= 2.0


def test_walkers_are_determined_by_their_seed() -> None:
    X, y = stream_of(3, 3, 40)

    def played(seed: int, cut: int = 0) -> tuple[Any, np.ndarray]:
        learner = AggregatingForecaster(radius=5.0, n_samples=64, random_state=seed)
        parts = [slice(0, cut), slice(cut, 40)] if cut else [slice(0, 40)]
        return learner, np.vstack([learner.predict_then_learn(X[s], y[s], classes=range(3)) for s in parts])

    assert_same_game(played(1), played(1))
    assert_same_game(played(1), played(1, cut=17))
    assert not np.array_equal(played(1)[1], played(2)[1])


def test_forecasting_draws_nothing() -> None:
    X, y = stream_of(4, 2, 30)
    learner = AggregatingForecaster(n_samples=64).fit(X, y)
    before = fingerprint(learner)
    np.testing.assert_array_equal(learner.predict_proba(X), learner.predict_proba(X))
    assert fingerprint(learner) == before


def test_a_row_that_says_everything_is_let_in_by_degrees() -> None:
    """One row of weight 1e6: walkers arrive where its labels say."""
    x, Y = np.array([[1.0, -1.0, 0.5]]), np.array([[0.2, 0.8]])
    learner = learner_of(x, Y, 1e6, radius=10.0, n_samples=256)
    np.testing.assert_allclose(learner.predict_proba(x), Y, atol=2e-3)
    assert learner.diagnostics_["r_hat"] < 1.1


def test_the_certificate_of_walkers_is_their_regret() -> None:
    X, y = stream_of(3, 3, 80)
    learner = AggregatingForecaster(radius=4.0, n_samples=256).fit(X, y)
    best = best_in_hindsight(X, y, domain=Ball(4.0))
    assert learner.competes_with == Competition("softmax", Ball(4.0))
    assert learner.regret_certificate() == pytest.approx(learner.state_.tally[LOSS] - best.loss, abs=1e-5)
    # as small as the theorem has it for the exact mixture
    R = float(np.linalg.norm(X, axis=1).max())
    assert learner.regret_certificate() < bounds.aggregating(80, n_features=3, n_classes=3, radius=4.0, feature_bound=R)
    with pytest.raises(NoBound, match="sampled"):
        learner.regret_bound()


# ---------------------------------------------------------------------- smoothing and refusals


@pytest.mark.parametrize("method", ["quadrature", "langevin"])
@pytest.mark.parametrize("mu", [1e-3, 0.3, 1.0])
def test_smoothing_mixes_in_the_uniform_forecast(method: str, mu: float) -> None:
    X, y = stream_of(2, 2, 12)
    params = {"radius": 5.0, "method": method, "n_samples": 64}
    plain, smooth = AggregatingForecaster(**params), AggregatingForecaster(**params, smoothing=mu)
    p, q = plain.predict_then_learn(X, y), smooth.predict_then_learn(X, y)
    np.testing.assert_allclose(q, (1 - mu) * p + mu / 2, rtol=1e-12)
    if method == "quadrature" and mu < 1:
        assert smooth.regret_certificate() <= smooth.regret_bound()
        assert smooth.regret_bound() == pytest.approx(plain.regret_bound() - 12 * math.log1p(-mu))
    elif method == "quadrature":
        with pytest.raises(NoBound, match="smoothing"):
            smooth.regret_bound()


@pytest.mark.parametrize(
    ("params", "d", "K", "message"),
    [
        ({"method": "quadrature"}, 3, 2, "one or two parameters"),
        ({"method": "quadrature"}, 2, 3, "one or two parameters"),
        ({"method": "laplace"}, 1, 2, "unknown"),
        ({"n_samples": 3}, 1, 2, "n_samples"),
        ({"n_samples": 64.0}, 3, 2, "n_samples"),
        ({"n_samples": 12}, 2, 3, "at least 16"),
        ({"radius": 0.0}, 1, 2, "radius"),
        ({"radius": math.inf}, 1, 2, "radius"),
        ({"smoothing": -0.1}, 1, 2, "smoothing"),
        ({"smoothing": 1.1}, 1, 2, "smoothing"),
        ({"random_state": -1}, 1, 2, "random_state"),
        ({"random_state": None}, 1, 2, "random_state"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], d: int, K: int, message: str) -> None:
    X, y = stream_of(d, K, 10)
    with pytest.raises(ValueError, match=message):
        AggregatingForecaster(**params).fit(X, y, classes=range(K))


def test_comparators_outside_the_ball_and_weights_are_refused() -> None:
    X, y = stream_of(1, 2, 10)
    learner = AggregatingForecaster(radius=2.0).fit(X, y)
    assert learner.competes_with == Competition("logistic", Ball(2.0))
    with pytest.raises(NoCertificate, match="outside"):
        learner.regret_certificate(2.1)
    assert learner.regret_bound(1000) > learner.regret_bound()
    with pytest.raises(NoBound, match="weight"):
        learner.partial_fit(X[:1], y[:1], sample_weight=0.5).regret_bound()
