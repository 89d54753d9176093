"""AIOLI with a kernel is AIOLI on the features of the kernel: exactly, or on those that approximate it."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.metrics.pairwise import pairwise_kernels

from each import for_each
from learners import LABELLINGS, assert_same_state, directions, fingerprint, through_file
from regretless import AIOLI, BadRow, KernelAIOLI, NoBound, NoCertificate, bounds
from regretless.core.numbers.tally import EXCESS, LOSS, ROWS
from regretless.learners.refitting.kernel_functions import Kernel
from regretless.theory.domains import Ball, Competition

PARAMS = {"linear": {}, "rbf": {"gamma": 0.3}, "polynomial": {"gamma": 0.5, "degree": 2, "coef0": 0.7}}
FORMS = {
    "exact": {},
    "nystrom": {"approximation": "nystrom", "budget": 12},
    "random features": {"approximation": "random-features", "budget": 24},
}


def rows(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, some of them twice; labels of a curved border; weights, some of them 0."""
    rng = np.random.default_rng([seed, n, d])
    X = rng.normal(size=(n, d))
    X[n // 2] = X[0]
    y = (np.sum(X**2, axis=1) + rng.normal(size=n) < d).astype(int)
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.0], size=n)


def explicit(K: np.ndarray) -> np.ndarray:
    """Features with the inner products K."""
    sizes, basis = np.linalg.eigh(K)
    return basis * np.sqrt(np.maximum(sizes, 0.0))


def kernel_of(name: str, X: np.ndarray, Y: np.ndarray | None = None) -> np.ndarray:
    return pairwise_kernels(X, Y, metric=name, **PARAMS[name])


def suffered(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -np.log(p[np.arange(len(y)), y])


# ---------------------------------------------------------------------- the exact form


@pytest.mark.parametrize("radius", [0.5, 10.0, 100.0])
@pytest.mark.parametrize("virtual_weight", [1.0, 0.5])
@pytest.mark.parametrize("curvature", ["sharp", 0.2])
def test_the_linear_kernel_is_aioli(radius: float, virtual_weight: float, curvature: Any) -> None:
    X, y, weight = rows(120, 4)
    params = {"radius": radius, "virtual_weight": virtual_weight, "curvature": curvature}
    linear, learner = AIOLI(**params), KernelAIOLI("linear", **params)
    expected = linear.predict_then_learn(X, y, sample_weight=weight)
    np.testing.assert_allclose(learner.predict_then_learn(X, y, sample_weight=weight), expected, atol=1e-8)
    np.testing.assert_allclose(learner.state_.alpha @ learner.state_.X, linear.state_.w, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(learner.state_.tally, linear.state_.tally, rtol=1e-8)


@pytest.mark.parametrize("name", PARAMS)
@pytest.mark.parametrize("soft", [False, True])
def test_a_kernel_is_aioli_on_its_features(name: str, soft: bool) -> None:
    X, y, weight = rows(80, 3)
    labels = np.random.default_rng(1).dirichlet([0.4, 0.4], size=80) if soft else y
    linear, learner = AIOLI(radius=4.0), KernelAIOLI(name, **PARAMS[name], radius=4.0)
    expected = linear.predict_then_learn(explicit(kernel_of(name, X)), labels, sample_weight=weight)
    np.testing.assert_allclose(learner.predict_then_learn(X, labels, sample_weight=weight), expected, atol=1e-8)
    assert learner.regret_certificate() == pytest.approx(linear.regret_certificate(), rel=1e-8)
    new = np.random.default_rng(2).normal(size=(20, 3))
    features = explicit(kernel_of(name, np.vstack([X, new])))
    again = AIOLI(radius=4.0).fit(features[:80], labels, sample_weight=weight, classes=[0, 1])
    np.testing.assert_allclose(learner.predict_proba(new), again.predict_proba(features[80:]), atol=1e-8)


def test_a_function_of_two_rows_is_a_kernel() -> None:
    X, y, _ = rows(40, 3)
    named = KernelAIOLI("rbf", gamma=0.3).predict_then_learn(X, y)
    given_ = KernelAIOLI(lambda a, b: math.exp(-0.3 * np.sum((a - b) ** 2))).predict_then_learn(X, y)
    np.testing.assert_allclose(given_, named, atol=1e-12)


@pytest.mark.parametrize("name", PARAMS)
def test_kernels_are_those_of_scikit_learn(name: str) -> None:
    X, _, _ = rows(30, 5)
    kernel = Kernel.of(name, **{"gamma": None, "degree": 3, "coef0": 1.0, **PARAMS[name]}, n_features=5)
    np.testing.assert_allclose(kernel.gram(X), kernel_of(name, X), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(kernel.squares(X), np.diagonal(kernel_of(name, X)), rtol=1e-10)
    default = Kernel.of(name, gamma=None, degree=3, coef0=1.0, n_features=5)
    np.testing.assert_allclose(default.gram(X), pairwise_kernels(X, metric=name), rtol=1e-10, atol=1e-12)


def test_distances_of_large_rows_are_not_rounding() -> None:
    X = 1e9 + np.arange(4.0)[:, None] * np.ones(3)
    distances = np.subtract.outer(np.arange(4.0), np.arange(4.0))
    kernel = Kernel.of("rbf", gamma=0.1, degree=3, coef0=1.0, n_features=3)
    np.testing.assert_allclose(kernel.gram(X), np.exp(-0.3 * distances**2), rtol=1e-12)


def test_the_exact_form_grows_by_a_row_a_row() -> None:
    X, y, weight = rows(50, 3)
    learner = KernelAIOLI().fit(X, y, sample_weight=weight)
    n = np.count_nonzero(weight)
    assert [len(array) for array in learner.state_] == [n, n, n * (n + 1) // 2, n, 11]
    L = np.zeros((n, n))
    L[np.tril_indices(n)] = learner.state_.triangle
    s, lam = learner.state_.roots, 0.01
    K = pairwise_kernels(learner.state_.X, metric="rbf")
    np.testing.assert_allclose(L @ L.T, lam * np.eye(n) + s[:, None] * K * s, atol=1e-12)


# ---------------------------------------------------------------------- the approximations


@pytest.mark.parametrize("name", PARAMS)
def test_nystrom_with_enough_landmarks_is_exact(name: str) -> None:
    X, y, weight = rows(60, 3)
    exact = KernelAIOLI(name, **PARAMS[name], radius=3.0)
    learner = KernelAIOLI(name, **PARAMS[name], radius=3.0, approximation="nystrom", budget=60)
    expected = exact.predict_then_learn(X, y, sample_weight=weight)
    np.testing.assert_allclose(learner.predict_then_learn(X, y, sample_weight=weight), expected, atol=1e-7)
    assert learner.regret_certificate() == pytest.approx(exact.regret_certificate(), rel=1e-6)
    assert learner.effective_dimension(0.1) == pytest.approx(exact.effective_dimension(0.1), rel=1e-6)


def projections(X: np.ndarray, weight: np.ndarray, budget: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Of every row onto the landmarks before it and itself, by QR of the features of the whole stream."""
    features = explicit(kernel_of(name, X))
    basis = np.zeros((len(X), 0))
    found, landmarks = np.zeros((len(X), budget)), []
    for t in range(len(X)):
        inside = features[t] @ basis
        outside = features[t] - basis @ inside
        found[t, : inside.size] = inside
        if basis.shape[1] < budget and outside @ outside > 1e-10 * (features[t] @ features[t]):
            found[t, inside.size] = np.linalg.norm(outside)
            if weight[t] > 0:
                basis = np.column_stack([basis, outside / np.linalg.norm(outside)])
                landmarks.append(t)
    return found, X[landmarks]


@pytest.mark.parametrize("name", PARAMS)
@pytest.mark.parametrize("budget", [1, 4, 9])
def test_nystrom_is_aioli_on_projections(name: str, budget: int) -> None:
    """Onto the span of the landmarks so far: rows that came before a landmark have no coordinate along it."""
    X, y, weight = rows(60, 3)
    features, landmarks = projections(X, weight, budget, name)
    linear = AIOLI(radius=3.0)
    learner = KernelAIOLI(name, **PARAMS[name], radius=3.0, approximation="nystrom", budget=budget)
    expected = linear.predict_then_learn(features, y, sample_weight=weight)
    np.testing.assert_allclose(learner.predict_then_learn(X, y, sample_weight=weight), expected, atol=1e-8)
    assert np.array_equal(learner.state_.points[: len(landmarks)], landmarks)
    assert learner.regret_certificate() == pytest.approx(linear.regret_certificate(), rel=1e-8)


def test_random_features_approximate_the_kernel() -> None:
    X, y, _ = rows(50, 3)
    learner = KernelAIOLI(gamma=0.3, radius=3.0, approximation="random-features", budget=1000).fit(X, y)
    angles = X @ learner.state_.points.T
    features = np.hstack([np.cos(angles), np.sin(angles)]) / math.sqrt(500)
    np.testing.assert_allclose(features @ features.T, kernel_of("rbf", X), atol=0.15)
    linear = AIOLI(radius=3.0)
    expected = linear.predict_then_learn(features, y)
    learner = clone(learner)
    np.testing.assert_allclose(learner.predict_then_learn(X, y), expected, atol=1e-8)
    other = clone(learner).set_params(random_state=1).fit(X, y)
    assert not np.array_equal(other.state_.points, learner.state_.points)


def test_the_approximations_learn_what_the_exact_form_learns() -> None:
    X, y, _ = rows(400, 2)
    losses = {
        name: suffered(KernelAIOLI(gamma=0.3, radius=5.0, **form).predict_then_learn(X, y), y).mean()
        for name, form in FORMS.items()
    }
    linear = suffered(AIOLI(radius=5.0).predict_then_learn(X, y), y).mean()
    assert max(losses.values()) < linear - 0.1
    assert max(losses.values()) - min(losses.values()) < 0.05


# ---------------------------------------------------------------------- what is promised


@pytest.mark.parametrize("name", PARAMS)
@pytest.mark.parametrize("feature_bound", [None, 20.0])
def test_regret_is_within_the_certificate_within_the_bound(name: str, feature_bound: float | None) -> None:
    """Against functions of the ball: any, and the best."""
    X, y, _ = rows(100, 2)
    B = 3.0
    learner = KernelAIOLI(name, **PARAMS[name], radius=B, feature_bound=feature_bound)
    total = suffered(learner.predict_then_learn(X, y), y).sum()
    assert learner.state_.tally[LOSS] == pytest.approx(total, rel=1e-9)
    assert learner.competes_with == Competition("logistic", Ball(B))
    features = explicit(kernel_of(name, X))[:, -20:]  # the others are rounding
    signs = 2 * y - 1

    def loss(f: np.ndarray) -> float:
        return float(np.logaddexp(0.0, -signs * (features @ f)).sum())

    ball = {"type": "ineq", "fun": lambda f: B**2 - f @ f}
    best = Ball(B).project(minimize(loss, np.zeros(20), method="SLSQP", constraints=ball).x)
    rng = np.random.default_rng(0)
    for f in [np.zeros(20), best, *(Ball(B).project(10.0 * rng.normal(size=(20, 20))[i]) for i in range(20))]:
        assert total - loss(f) <= learner.regret_certificate(np.linalg.norm(f)) + 1e-9 * total
    assert total - loss(best) > 0
    assert learner.regret_certificate() <= learner.regret_bound()
    with pytest.raises(NoCertificate, match="outside Ball"):
        learner.regret_certificate(2 * B)


@pytest.mark.parametrize("form", ["nystrom", "random features"])
def test_on_features_the_promises_are_those_of_aioli(form: str) -> None:
    X, y, _ = rows(100, 2)
    learner = KernelAIOLI(radius=3.0, **FORMS[form]).fit(X, y)
    c = learner._constants
    expected = bounds.aioli(
        100,
        n_features=c.approximation.budget,
        radius=3.0,
        feature_bound=learner.state_.tally[4],
        regularization=1 / 9,
        curvature=learner._theorem(None)["curvature"],
    )
    assert learner.regret_certificate() <= learner.regret_bound() == expected < learner.regret_bound(1000)


def test_the_bound_of_the_exact_form_is_the_determinant() -> None:
    X, y, _ = rows(50, 2)
    learner = KernelAIOLI(gamma=0.3, radius=3.0, virtual_weight=0.5).fit(X, y)
    kappa = learner._theorem(None)["curvature"]
    sizes = np.linalg.eigvalsh(kernel_of("rbf", X))
    expected = 1.0 + 0.5 / (2 * kappa) * np.log1p(kappa * 9 / 4 * np.maximum(sizes, 0)).sum()
    assert learner.regret_bound() == pytest.approx(expected, rel=1e-9)
    assert learner.regret_bound(50) == learner.regret_bound()
    with pytest.raises(NoBound, match="rows so far"):
        learner.regret_bound(51)
    with pytest.raises(NoBound, match="virtual_weight"):
        KernelAIOLI(virtual_weight=0.4).fit(X, y).regret_bound()
    with pytest.raises(NoBound, match="weight 1"):
        KernelAIOLI().fit(X, y, sample_weight=2.0).regret_bound()
    with pytest.raises(NoCertificate, match="not proved"):
        KernelAIOLI(curvature="folklore").fit(X, y).regret_certificate()


@settings(max_examples=50)
@given(sizes=st.lists(st.floats(0, 1e6), min_size=1, max_size=20), mu=st.floats(1e-3, 1e3))
def test_the_determinant_is_the_effective_dimension_up_to_a_logarithm(sizes: list[float], mu: float) -> None:
    s = np.array(sizes) / mu
    dimension, growth = np.sum(s / (1 + s)), np.log1p(s).sum()
    assert dimension * (1 - 1e-9) <= growth <= dimension * (1 + math.log1p(s.sum())) * (1 + 1e-9)


def test_the_text_forgets_the_logarithm_and_the_size_of_rows() -> None:
    """AIOLI, section 4.1: d_eff for d in Theorem 1, without its logarithm, and d_eff(lambda) <= n/lambda."""
    X, y, _ = rows(200, 2)
    learner = KernelAIOLI("linear", radius=3.0).fit(3.0 * X, y)
    n, R = 200, np.linalg.norm(3.0 * X, axis=1).max()
    sizes = np.linalg.eigvalsh(9.0 * X @ X.T).clip(0.0)
    assert learner.effective_dimension(500.0) == pytest.approx(np.sum(sizes / (sizes + 500.0)), rel=1e-9)
    assert n / 500.0 < learner.effective_dimension(500.0) <= n * R**2 / 500.0
    assert np.log1p(sizes).sum() > 4 * learner.effective_dimension(1.0)


def test_the_effective_dimension_counts_directions() -> None:
    X, y, _ = rows(100, 3)
    learner = KernelAIOLI(gamma=0.3).fit(X, y)
    K = kernel_of("rbf", X)
    dimensions = [learner.effective_dimension(mu) for mu in (1e-9, 0.1, 10.0, 1e9)]
    for mu, found in zip((1e-9, 0.1, 10.0, 1e9), dimensions, strict=True):
        assert found == pytest.approx(np.trace(K @ np.linalg.inv(K + mu * np.eye(100))), rel=1e-5)
    assert 100 > dimensions[0] > dimensions[1] > dimensions[2] > dimensions[3] > 0
    features = KernelAIOLI(**FORMS["random features"]).fit(X, y)
    M = features.state_.moment
    assert features.effective_dimension(0.1) == pytest.approx(np.trace(M @ np.linalg.inv(M + 0.1 * np.eye(24))))
    with pytest.raises(ValueError, match="regularization=0"):
        learner.effective_dimension(0)
    fresh = KernelAIOLI().partial_fit(X[:1], y[:1], classes=[0, 1], sample_weight=0.0)
    assert fresh.effective_dimension(1.0) == 0.0


# ---------------------------------------------------------------------- the promises of every learner


@pytest.mark.parametrize("form", FORMS)
def test_cuts_files_and_predictions(form: str, tmp_path: Path) -> None:
    X, y, weight = rows(60, 3)
    learner, again = (KernelAIOLI(gamma=0.3, radius=3.0, **FORMS[form]) for _ in range(2))
    forecasts = learner.predict_then_learn(X, y, sample_weight=weight)
    pieces = [again.predict_then_learn(X[:1], y[:1], sample_weight=weight[:1], classes=[0, 1])]
    for t in range(1, 60):
        before = fingerprint(again)
        expected = again.predict_proba(X[t : t + 1])
        again.predict(X)
        again.regret_certificate(0.5)
        assert fingerprint(again) == before
        if t % 20 == 0:
            again = through_file(again, tmp_path)
        pieces.append(again.predict_then_learn(X[t : t + 1], y[t : t + 1], sample_weight=weight[t : t + 1]))
        assert np.array_equal(pieces[-1], expected)
    assert np.array_equal(np.concatenate(pieces), forecasts)
    assert_same_state(learner, again)
    assert learner.state_.tally[ROWS] == np.count_nonzero(weight)


@pytest.mark.parametrize("form", FORMS)
def test_weight_zero_changes_nothing(form: str) -> None:
    X, y, _ = rows(30, 3)
    learner = KernelAIOLI(**FORMS[form]).fit(X[:10], y[:10], classes=[0, 1])
    before = [array.tobytes() for array in learner.state_]
    expected = learner.predict_proba(X)
    assert np.array_equal(learner.predict_then_learn(X, y, sample_weight=np.zeros(30)), expected)
    assert [array.tobytes() for array in learner.state_] == before


EXTREMES = {
    "huge": 1e150 * directions(50, 3),
    "axes": 1e150 * np.tile(np.eye(3), (17, 1)),
    "tiny": 1e-300 * directions(50, 3),
    "rising": 10.0 ** np.linspace(-300, 150, 50)[:, None] * directions(50, 3),
    "falling": 10.0 ** np.linspace(150, -300, 50)[:, None] * directions(50, 3),
    "columns": directions(50, 3) * [1e150, 1.0, 1e-150],
    "zeros": np.zeros((50, 3)),
    "equal": np.tile(directions(1, 3), (300, 1)),
}


@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize("name", ["linear", "rbf"])
@for_each("form", FORMS)
@for_each("labels", LABELLINGS)
@pytest.mark.filterwarnings("error")
def test_extreme_rows_stay_finite(extreme: str, name: str, form: str, labels: str) -> None:
    if name == "linear" and form == "random features":
        name = "rbf"
    X = EXTREMES[extreme]
    y = LABELLINGS[labels](X, 2)
    learner = KernelAIOLI(name, radius=3.0, **FORMS[form])
    p = learner.predict_then_learn(X, y, classes=[0, 1])
    assert np.isfinite(p).all()
    assert all(np.isfinite(array).all() for array in learner.state_)
    try:
        assert learner.state_.tally[LOSS] - len(y) * math.log(2) <= learner.regret_certificate(0.0) + 1e-9 * len(y)
    except NoCertificate as refusal:
        assert name == "linear" and extreme in ("huge", "axes", "rising", "falling", "columns")
        assert re.match("A has grown to|forecasts and losses are so large that rounding may move", str(refusal))


def test_a_row_whose_variance_is_rounding_teaches_nothing() -> None:
    """The first row leaves 4e-15 of the variance that there was."""
    learner = KernelAIOLI("linear", radius=1.0).fit([[1e15]], [1], classes=[0, 1])
    before = learner.state_
    learner.partial_fit([[1e-3]], [0])
    after = learner.state_
    assert after.X[:, 0].tolist() == [1e15, 1e-3]
    assert after.roots.tolist() == [before.roots[0], 0.0]
    assert after.alpha.tolist() == [before.alpha[0], 0.0]
    assert after.tally[EXCESS] == before.tally[EXCESS]
    assert after.tally[LOSS] > before.tally[LOSS]


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"kernel": "sigmoid"}, "kernel='sigmoid'"),
        ({"gamma": 0.0}, "gamma"),
        ({"degree": 1.5}, "degree"),
        ({"coef0": -1.0}, "coef0"),
        ({"approximation": "sketch"}, "approximation='sketch'"),
        ({"budget": 10}, "budget=10"),
        ({"approximation": "nystrom", "budget": 0}, "budget=0"),
        ({"approximation": "random-features", "budget": 7}, "even"),
        ({"approximation": "random-features", "kernel": "linear"}, "rbf"),
        ({"random_state": -1}, "random_state"),
        ({"virtual_weight": -1.0}, "virtual_weight"),
        ({"radius": 0.0}, "radius"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(params: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        KernelAIOLI(**params).fit([[0.0], [1.0]], [0, 1])


def test_rows_the_kernel_cannot_take_are_refused() -> None:
    learner = KernelAIOLI("polynomial", feature_bound=2.0)
    with pytest.raises(BadRow, match=r"row 1: \|x\| = sqrt\(k\(x, x\)\) = .* beyond feature_bound"):
        learner.fit([[0.1], [3.0]], [0, 1])
    with pytest.raises(BadRow, match=r"row 0: k\(x, x\) = .* too large.*Scale the features"):
        KernelAIOLI("polynomial").fit([[1e120], [3.0]], [0, 1])
    with pytest.raises(BadRow, match="negative"):
        KernelAIOLI(lambda a, b: -1.0).fit([[0.1], [3.0]], [0, 1])
    with pytest.raises(BadRow, match=r"too large.*Scale the features"):
        KernelAIOLI().fit([[1e200], [3.0]], [0, 1])
    assert not hasattr(learner, "state_")


def test_a_function_cannot_be_saved(tmp_path: Path) -> None:
    learner = KernelAIOLI(lambda a, b: float(a @ b)).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="kernel"):
        learner.save(tmp_path / "model.npz")
