"""KernelGAF: GAF on the features of a kernel, exact or approximated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import regretless
from regretless import GAF, KernelAIOLI, KernelGAF, NoBound, bounds


def stream(n: int, d: int, K: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X @ rng.normal(size=(d, K)) + rng.gumbel(size=(n, K))).argmax(axis=1)
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.0], size=n)


@pytest.mark.parametrize("K", [2, 3, 4])
@pytest.mark.parametrize("approximation", ["exact", "nystrom"])
def test_with_the_linear_kernel_it_is_gaf(K: int, approximation: str) -> None:
    X, y, weight = stream(30, 3, K)
    budget = 5 if approximation == "nystrom" else None
    learner = KernelGAF("linear", approximation=approximation, budget=budget, radius=2.0, regularization=0.3)
    linear = GAF(radius=2.0, regularization=0.3)
    classes = np.arange(K)
    said = learner.predict_then_learn(X, y, classes=classes, sample_weight=weight)
    assert np.abs(said - linear.predict_then_learn(X, y, classes=classes, sample_weight=weight)).max() < 1e-9
    assert np.abs(learner.predict_proba(X) - linear.predict_proba(X)).max() < 1e-9
    assert learner.regret_certificate() == pytest.approx(linear.regret_certificate(), abs=1e-6)


def test_the_exact_form_is_gaf_on_the_kernels_features() -> None:
    """The rows of a root of the kernel matrix are features with its inner products."""
    X, y, _ = stream(40, 2, 3, seed=1)
    values, vectors = np.linalg.eigh(rbf_kernel(X, gamma=0.5))
    phi = vectors * np.sqrt(np.maximum(values, 0.0))
    said = KernelGAF(gamma=0.5, radius=3.0).predict_then_learn(X, y, classes=range(3))
    assert np.abs(said - GAF(radius=3.0).predict_then_learn(phi, y, classes=range(3))).max() < 1e-9


def test_random_features_approach_the_kernel() -> None:
    X, y, _ = stream(60, 2, 3, seed=2)
    exact = KernelGAF(gamma=0.5).predict_then_learn(X, y, classes=range(3))
    far = [
        np.abs(
            KernelGAF(gamma=0.5, approximation="random-features", budget=m).predict_then_learn(X, y, classes=range(3))
            - exact
        ).mean()
        for m in (10, 400)
    ]
    assert far[1] < 0.3 * far[0] and far[1] < 0.02


@pytest.mark.parametrize("form", [{}, {"approximation": "nystrom", "budget": 8}])
def test_regret_is_below_certificate_and_bound(form: dict[str, Any]) -> None:
    """Against the best function found in hindsight in the span of the rows."""
    X, y, _ = stream(80, 2, 3, seed=3)
    learner = KernelGAF(gamma=0.5, radius=2.0, **form)
    trace = regretless.play(learner, X, y, progress=False)
    low, high = trace.regret[-1]
    assert low <= high <= learner.regret_certificate() + 1e-9
    assert learner.regret_certificate() <= learner.regret_bound()


def test_the_bound_has_its_constants_and_assumptions() -> None:
    X, y, _ = stream(25, 2, 3)
    learner = KernelGAF(gamma=0.5, radius=2.0, curvature=0.1).fit(X, y)
    lam = 4 / (2 * np.log(2))
    growth = np.linalg.slogdet(np.eye(25) + 0.1 / (2 * lam) * rbf_kernel(X, gamma=0.5)).logabsdet
    assert learner.regret_bound() == pytest.approx(lam * 4 + 2 * (0.5 + 3**0.5 / 0.1) * growth)
    with pytest.raises(NoBound, match="leave n out"):
        learner.regret_bound(n=100)
    with pytest.raises(NoBound, match="regularization"):
        KernelGAF(gamma=0.5, regularization=0.1).fit(X, y).regret_bound()
    with pytest.raises(NoBound, match="exact expectations"):
        KernelGAF(gamma=0.5, expectation="sobol").fit(X, y).regret_bound()
    with pytest.raises(NoBound, match="mu <= 1/2"):
        bounds.kernel_gaf(
            10,
            log_determinant=1,
            n_classes=2,
            radius=1,
            feature_bound=1,
            regularization=9,
            curvature=0.1,
            smoothing=0.6,
        )


def test_it_goes_on_from_a_file(tmp_path: Any) -> None:
    X, y, _ = stream(30, 2, 3)
    learner = KernelGAF(gamma=0.5).fit(X[:15], y[:15], classes=range(3))
    learner.save(tmp_path / "model.npz")
    again = regretless.load(tmp_path / "model.npz")
    assert np.array_equal(
        again.partial_fit(X[15:], y[15:]).state_.alpha, learner.partial_fit(X[15:], y[15:]).state_.alpha
    )
    with pytest.raises(ValueError, match="damaged"):
        damaged = again.state_._replace(factors=again.state_.factors + 1.0)
        again.state_ = damaged
        again.save(tmp_path / "damaged.npz")
        regretless.load(tmp_path / "damaged.npz")


def test_two_classes_are_near_kernel_aioli() -> None:
    X, y, _ = stream(60, 2, 2, seed=5)
    losses = [
        -np.log(learner.predict_then_learn(X, y)[np.arange(60), y]).mean()
        for learner in (KernelGAF(gamma=0.5, regularization=0.1), KernelAIOLI(gamma=0.5, regularization=0.1))
    ]
    assert abs(losses[0] - losses[1]) < 0.1
