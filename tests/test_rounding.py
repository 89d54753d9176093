"""Where the digits of P run out: learners go on learning, certificates stay true or are refused (docs/rounding.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from reference.long_numbers import LongAIOLI, LongFOLKLORE, LongVAW
from regretless import (
    AIOLI,
    FOLKLORE,
    GAF,
    ONS,
    KernelAIOLI,
    Mixture,
    NoBound,
    NoCertificate,
    VovkAzouryWarmuth,
    best_in_hindsight,
    load,
    merge,
)
from regretless.learners.second_order import panels
from regretless.learners.second_order.rounding import FULL, MASS, ROOT, SPREAD, covariance
from regretless.theory.domains import Ball


def salaries(n: int, size: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns (1, salary), and a target whose slope changes its sign half way."""
    rng = np.random.default_rng(seed)
    salary = 1.0 + 0.2 * rng.normal(size=n)
    slope = np.where(np.arange(n) < n // 2, 1.0, -1.0)
    return np.column_stack([np.ones(n), size * salary]), slope * (salary - 1.0) + 0.1 * rng.normal(size=n)


def ridge_regret(X: np.ndarray, y: np.ndarray, forecasts: np.ndarray) -> tuple[float, float]:
    """Regret against the ridge solution, found on scaled columns, and its norm."""
    scale = np.abs(X).max(axis=0)
    Z = X / scale
    theta = np.linalg.solve(Z.T @ Z + np.diag(scale**-2.0), Z.T @ y) / scale
    return float(np.sum((y - forecasts) ** 2) - np.sum((y - X @ theta) ** 2)), float(np.linalg.norm(theta))


@pytest.mark.parametrize(("size", "n"), [(1e5, 60_000), (1e4, 200_000), (1e7, 5_000), (1e10, 5_000)])
def test_large_columns_are_learned_and_certified(size: float, n: int) -> None:
    X, y = salaries(n, size)
    learner = VovkAzouryWarmuth()
    regret, norm = ridge_regret(X, y, learner.predict_then_learn(X, y))
    assert learner.state_.tally[ROOT] >= 1
    assert 0 < regret <= learner.regret_certificate(norm) <= learner.regret_bound(comparator_norm=norm)
    assert learner.regret_certificate(norm) < 1.01 * regret + 1.0


def test_a_certificate_that_was_false() -> None:
    """x = 1 with the least likely label, at a tiny regularization."""
    learner, labels = AIOLI(radius=1.0, regularization=1e-12), []
    x = np.ones(1)
    learner.partial_fit(np.zeros((1, 1)), [0], classes=[0, 1])
    for _ in range(3030):
        labels.append(int(learner.predict_proba_one(x)[1] < 0.5))
        learner.learn_one(x, labels[-1])
    best = best_in_hindsight(np.ones((3030, 1)), labels, loss="logistic", domain=Ball(1.0), classes=[0, 1])
    regret = learner.total_loss_ - np.log(2.0) - best.loss + best.gap  # the first row told nothing
    assert regret <= learner.regret_certificate() <= learner.regret_bound()


def hard_rows(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "large":
        return np.column_stack([np.ones(n), 1e7 * (1.0 + 0.1 * rng.normal(size=n))])
    if kind == "late":  # a column that is empty at first
        return np.column_stack([np.ones(n), np.where(np.arange(n) < n // 2, 0.0, 1e8 * rng.normal(size=n))])
    if kind == "twice":  # two columns that differ in the ninth digit
        x = 1e6 * rng.normal(size=n)
        return np.column_stack([x, x * (1.0 + 1e-9 * rng.normal(size=n))])
    return 10.0 ** rng.uniform(-3.0, 8.0, size=(n, 2)) * rng.choice([-1.0, 1.0], size=(n, 2))


KINDS = ["large", "late", "twice", "wild"]


@pytest.mark.parametrize("kind", KINDS)
def test_vovk_azoury_warmuth_agrees_with_long_numbers(kind: str) -> None:
    rng = np.random.default_rng(0)
    X = hard_rows(kind, 80, rng)
    y = X @ rng.normal(size=2) / np.abs(X).max() + 0.1 * rng.normal(size=80)
    learner, slow = VovkAzouryWarmuth(), LongVAW(2)
    loss = constant = 0.0
    for t, forecast in enumerate(learner.predict_then_learn(X, y)):
        expected = slow.forecast(X[t])
        assert forecast == pytest.approx(expected, abs=1e-6 * max(1.0, abs(expected)))
        slow.learn(X[t], y[t])
        loss, constant = loss + (y[t] - expected) ** 2, constant + y[t] ** 2
    assert learner.state_.tally[ROOT] >= 1
    try:
        certificate = learner.regret_certificate(0.0)
    except NoCertificate:
        assert kind == "twice"
    else:
        assert loss - slow.minimum(constant) <= certificate + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_aioli_agrees_with_long_numbers(kind: str) -> None:
    rng = np.random.default_rng(1)
    X = hard_rows(kind, 60, rng) / 1e3
    y = rng.integers(0, 2, 60)
    learner, slow = AIOLI(radius=1e-2, regularization=1e-8), LongAIOLI(2, 1e-2, 1e-8)
    p = learner.predict_then_learn(X, y, classes=[0, 1])[:, 1]
    for t in range(60):
        assert p[t] == pytest.approx(slow.forecast(X[t]), abs=1e-6)
        slow.learn(X[t], y[t])
    assert learner.state_.tally[ROOT] >= 1


def test_folklore_agrees_with_long_numbers() -> None:
    rng = np.random.default_rng(2)
    X = np.column_stack([np.ones(40), 1e4 * (1.0 + 0.1 * rng.normal(size=40))])
    y = rng.integers(0, 3, 40)
    learner, slow = FOLKLORE(regularization=1e-3, curvature=0.1), LongFOLKLORE(2, 3, 1e-3, 0.1)
    p = learner.predict_then_learn(X, y, classes=range(3))
    for t in range(40):
        np.testing.assert_allclose(p[t], slow.forecast(X[t]), atol=1e-6)
        slow.learn(X[t], y[t])
    assert learner.state_.tally[ROOT] >= 1


GAMES: list[tuple[Any, int]] = [
    (AIOLI(radius=1.0, regularization=1e-10), 2),
    (FOLKLORE(radius=1.0, regularization=1e-10), 3),
    (GAF(radius=1.0, regularization=1e-10), 2),
    (ONS(radius=1.0, gamma=0.05, epsilon=1e-10, feature_bound=1.0), 2),
    (KernelAIOLI("linear", radius=1.0, regularization=1e-10, approximation="nystrom", budget=3), 2),
    (Mixture([AIOLI(radius=0.5, regularization=1e-10), AIOLI(radius=1.0)]), 2),
    (KernelAIOLI("linear", radius=1.0, regularization=1e-6), 2),
]


@pytest.mark.parametrize(("learner", "K"), GAMES, ids=lambda each: type(each).__name__)
def test_certificates_hold_at_tiny_regularization(learner: Any, K: int) -> None:
    """The least likely label, of rows along few directions, which a learner must not take for rounding."""
    rng = np.random.default_rng(3)
    directions = rng.normal(size=(2, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    learner, n = clone(learner), 400
    X, y = directions[rng.integers(0, 2, n)], np.zeros(n, dtype=int)
    learner.partial_fit(X[:1], [0], classes=range(K))
    for t in range(1, n):
        y[t] = np.argmin(learner.predict_proba_one(X[t]))
        learner.learn_one(X[t], y[t])
    loss = "logistic" if K == 2 and not isinstance(learner, FOLKLORE | GAF) else "softmax"
    domain = learner.competes_with.domain
    best = best_in_hindsight(X, y, loss=loss, domain=domain, classes=range(K))
    assert learner.total_loss_ - best.loss + best.gap <= learner.regret_certificate() * (1 + 1e-12)


@pytest.mark.parametrize("learner", [VovkAzouryWarmuth(1e-6), AIOLI(regularization=1e-9)])
def test_cuts_do_not_show_where_the_form_changes(learner: Any) -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(200, 12)), rng.integers(0, 2, 200)
    whole, cut = clone(learner), clone(learner)
    first = {"classes": [0, 1]} if isinstance(learner, AIOLI) else {}
    forecasts = whole.predict_then_learn(X, y, **first)
    pieces = []
    for rows in np.split(np.arange(200), [1, 2, 7, 60, 61, 130]):
        pieces.append(cut.predict_then_learn(X[rows], y[rows], **first))
        first = {}
    assert whole.state_.tally[ROOT] >= 1
    np.testing.assert_array_equal(np.concatenate(pieces), forecasts)
    for mine, theirs in zip(cut.state_, whole.state_, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("learner", "K"),
    [(VovkAzouryWarmuth(1e-5), 1), (AIOLI(regularization=1e-8), 2), (FOLKLORE(regularization=1e-8), 3)],
    ids=lambda each: type(each).__name__,
)
def test_panels_of_the_root_are_rows(learner: Any, K: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    n, d = 400, 6
    X = rng.normal(size=(n, d))
    X[250:, 3] *= 1e4  # growth beyond what a panel has digits for
    y = rng.integers(0, K, n) if K > 1 else X[:, 0] + rng.normal(size=n)
    first = {"classes": range(K)} if K > 1 else {}
    monkeypatch.setattr(panels, "LEAST_SIZE", 10**9)
    rowwise = clone(learner)
    expected = rowwise.predict_then_learn(X, y, **first)
    monkeypatch.setattr(panels, "LEAST_SIZE", 0)
    blocked = clone(learner)
    np.testing.assert_allclose(blocked.predict_then_learn(X, y, **first), expected, rtol=1e-6, atol=1e-6)
    assert blocked.state_.tally[ROOT] >= 1
    np.testing.assert_allclose(blocked.state_.tally, rowwise.state_.tally, rtol=1e-5)
    mine, theirs = (covariance(each.state_.P, each.state_.tally) for each in (blocked, rowwise))
    np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-9 * np.abs(theirs).max())


def test_roots_merge_and_are_saved(tmp_path: Any) -> None:
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(300, 3)) * [1.0, 1.0, 1e4], rng.normal(size=300)
    one, other, both = (VovkAzouryWarmuth() for _ in range(3))
    one.partial_fit(X[:150], y[:150])
    other.partial_fit(X[150:], y[150:])
    both.partial_fit(X, y)
    assert both.state_.tally[ROOT] >= 1
    together = merge([one, other])
    np.testing.assert_allclose(together.predict(X), both.predict(X), atol=1e-6)
    both.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(load(tmp_path / "model.npz").predict(X), both.predict(X))


def test_what_rounding_has_eaten_is_refused() -> None:
    """Columns that cannot be told apart in 16 digits, at a regularization that does not help."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(2000, 1))
    X = np.hstack([x, x, x]) * 1e9
    learner = VovkAzouryWarmuth(1e-6).fit(X, x[:, 0])
    with pytest.raises(NoCertificate, match="rounding cannot separate"):
        learner.regret_certificate(1.0)
    with pytest.raises(NoBound, match="drop columns that depend on others"):
        learner.regret_bound(comparator_norm=1.0)
    assert np.isfinite(learner.predict(X)).all()


def test_the_mass_is_the_trace_of_a() -> None:
    X = np.random.default_rng(8).normal(size=(50, 4))
    learner = VovkAzouryWarmuth(0.5).fit(X, X[:, 0])
    trace = np.trace(np.linalg.inv(learner.state_.P))
    assert learner.state_.tally[MASS] < FULL
    assert learner.state_.tally[MASS] == pytest.approx(trace / 0.5 - 4)


@pytest.mark.parametrize(
    ("learner", "K"),
    [
        (VovkAzouryWarmuth(), 2),
        (AIOLI(curvature=0.2), 2),
        (FOLKLORE(curvature=0.2), 2),
        (FOLKLORE(curvature=0.2), 3),
        (GAF(curvature=0.2, regularization=1.0, radius=1.0), 2),
        (GAF(curvature=0.2, regularization=1.0, radius=1.0), 3),
    ],
)
def test_certificates_allow_for_rows_along_which_a_jumps(learner: Any, K: int) -> None:
    """A row of the root form that multiplies A along itself by more than 2 may raise tau to the whole mass."""
    learner, classes = clone(learner), None if isinstance(learner, VovkAzouryWarmuth) else range(K)
    rows = 1e9 * np.eye(5)
    for t in range(20):
        learner.partial_fit(rows[:1], [t % K], classes=classes)
    assert learner.state_.tally[ROOT] != 0.0
    before, size = learner.state_.tally.copy(), learner.state_.w.size
    learner.partial_fit(rows[1:2], [0], classes=classes)
    assert learner.state_.tally[SPREAD] - before[SPREAD] >= 0.999 * size * (size + before[MASS])
