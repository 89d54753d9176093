"""Blocked exact updates: the forecasts of row by row, whatever the shapes, cuts, weights and labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from regretless import AIOLI, FOLKLORE, GAF, ONS, NoCertificate, VovkAzouryWarmuth, best_in_hindsight, load
from regretless.core.numbers.tally import EXCESS, LOSS
from regretless.learners.second_order import panels
from regretless.theory.domains import Ball

NEVER = 10**9
LEARNERS: list[tuple[Any, list[int]]] = [
    (AIOLI(radius=5.0), [2]),
    (AIOLI(radius=2.0, virtual_weight=0.5, curvature="gaf"), [2]),
    (FOLKLORE(radius=3.0), [2, 3, 6]),
    (GAF(radius=2.0), [2]),
    (GAF(radius=2.0, expectation="sobol", n_samples=16), [4]),
    (GAF(radius=2.0, expectation="monte-carlo", n_samples=8), [3]),
    (VovkAzouryWarmuth(regularization=0.3), [0]),
    (ONS(radius=0.7, gamma=0.5, epsilon=0.5), [2, 4]),  # it leaves its ball
    (ONS(radius=50.0, gamma=0.5, epsilon=0.5), [3]),  # it does not
]
GAMES = [(learner, K) for learner, counts in LEARNERS for K in counts]


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Panels of every block, however small."""
    monkeypatch.setattr(panels, "LEAST_SIZE", 0)
    monkeypatch.setattr(panels, "LEAST_ROWS", 1)
    yield


def a_stream(n: int, d: int, K: int, seed: int, soft: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, n, d, K])
    X = rng.normal(size=(n, d)) * rng.choice([0.1, 1.0, 3.0], size=(n, 1)) / np.sqrt(d)
    X[n // 2] = X[0]  # rows may come again
    weight = rng.choice([0.0, 0.3, 1.0, 1.0, 4.0], size=n)
    if K == 0:
        return X, X @ rng.normal(size=d) + rng.normal(size=n), weight
    Y = rng.dirichlet(np.ones(K), size=n) if soft else np.eye(K)[rng.integers(0, K, size=n)]
    return X, Y, weight


def game(learner: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray, cuts: list[int]) -> tuple[Any, np.ndarray]:
    learner, said = clone(learner), []
    for rows in np.split(np.arange(len(X)), cuts):
        if rows.size:
            said.append(learner.predict_then_learn(X[rows], y[rows], sample_weight=weight[rows]))
    return learner, np.concatenate(said)


@pytest.mark.parametrize(
    ("learner", "K"), GAMES, ids=[f"{type(learner).__name__}-{K}-{i}" for i, (learner, K) in enumerate(GAMES)]
)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    n=st.integers(2, 300),
    d=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
    soft=st.booleans(),
    cuts=st.lists(st.integers(1, 299), max_size=3),
)
def test_panels_are_rows(
    everywhere: None, learner: Any, K: int, n: int, d: int, seed: int, soft: bool, cuts: list[int]
) -> None:
    require_rows(learner, a_stream(n, d, K, seed, soft), sorted(cut for cut in cuts if cut < n))


def require_rows(learner: Any, stream: tuple[np.ndarray, np.ndarray, np.ndarray], cuts: list[int]) -> None:
    """Panels give the forecasts and the state of the rows one by one."""
    X, y, weight = stream
    blocked, p = game(learner, X, y, weight, cuts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panels, "LEAST_SIZE", NEVER)
        rowwise, q = game(learner, X, y, weight, [])
    np.testing.assert_allclose(p, q, rtol=1e-10, atol=1e-10)
    for name, mine, theirs in zip(rowwise.state_._fields, blocked.state_, rowwise.state_, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(theirs).max()), err_msg=name)
    assert np.array_equal(blocked.state_.P, blocked.state_.P.T)


@pytest.mark.parametrize(
    ("learner", "K"), [(AIOLI(radius=5.0), 2), (FOLKLORE(radius=3.0), 4), (VovkAzouryWarmuth(), 0)]
)
def test_products_in_pieces_are_rows(everywhere: None, learner: Any, K: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large matrices are divided by columns, and panels by rows, so that threads can share the products."""
    for name, value in {"LARGE": 1, "COLUMNS_PER_THREAD": 7, "ROWS_PER_THREAD": 5}.items():
        monkeypatch.setattr(panels, name, value)
    require_rows(learner, a_stream(90, 24, K, 0, soft=False), [40])


@pytest.mark.parametrize(("learner", "K", "d"), [(AIOLI(), 2, 256), (FOLKLORE(), 5, 64), (VovkAzouryWarmuth(), 0, 240)])
def test_they_are_chosen_where_they_pay(learner: Any, K: int, d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, weight = a_stream(100, d, K, 0, soft=False)
    asked: list[int] = []
    begin = panels.begin
    monkeypatch.setattr(panels, "begin", lambda *given: asked.append(1) or begin(*given))
    blocked, p = game(learner, X, y, weight, [])
    assert asked
    asked.clear()
    rowwise, q = game(learner, X, y, weight, list(range(10, 100, 10)))
    assert not asked, "ten rows at a time go row by row"
    np.testing.assert_allclose(p, q, rtol=1e-10, atol=1e-10)
    assert blocked.state_.tally[LOSS] == pytest.approx(rowwise.state_.tally[LOSS], rel=1e-12)
    assert blocked.state_.tally[EXCESS] == pytest.approx(rowwise.state_.tally[EXCESS], rel=1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1e-3, 1e3, 1e80])
@pytest.mark.parametrize("learner", [AIOLI(), FOLKLORE(), GAF()])
def test_states_stay_finite_at_every_scale(everywhere: None, learner: Any, scale: float) -> None:
    X, y, _ = a_stream(300, 4, 2, 0, soft=False)
    X[100:200] = X[100]
    blocked, p = game(learner, scale * X, y, np.ones(300), [])
    assert np.isfinite(p).all()
    for array in blocked.state_:
        assert np.isfinite(array).all()


def test_certificates_hold_against_an_adversary(everywhere: None) -> None:
    """Labels against the forecast, a panel at a time: the certificate covers the best in hindsight."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(640, 5)) / np.sqrt(5)
    learner, y = AIOLI(radius=3.0), rng.integers(0, 2, 640)
    learner.partial_fit(X[:64], y[:64], classes=[0, 1])
    for t in range(64, 640, 64):
        y[t : t + 64] = learner.predict_proba(X[t : t + 64])[:, 1] < 0.5
        learner.partial_fit(X[t : t + 64], y[t : t + 64])
    best = best_in_hindsight(X, y, loss="logistic", domain=Ball(3.0), classes=[0, 1])
    assert learner.total_loss_ - best.loss + best.gap <= learner.regret_certificate() <= learner.regret_bound()


def test_a_long_run_stays_near_a_fresh_factorisation(everywhere: None) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100_000, 6))
    learner = VovkAzouryWarmuth(regularization=0.1).fit(X, X[:, 0])
    np.testing.assert_allclose(learner.state_.P, np.linalg.inv(0.1 * np.eye(6) + X.T @ X), rtol=1e-8, atol=1e-14)


# ---------------------------------------------------------------------- single precision


@pytest.mark.parametrize("blocked", [True, False])
@pytest.mark.parametrize(
    ("learner", "K"),
    [(AIOLI(radius=10.0), 2), (AIOLI(radius=100.0), 2), (FOLKLORE(radius=3.0), 3)],
)
def test_single_precision_is_near_double(
    learner: Any, K: int, blocked: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(panels, "LEAST_SIZE", 0 if blocked else NEVER)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 8)) / np.sqrt(8)
    y = np.argmax(X @ rng.normal(size=(8, K)) * 4 + rng.gumbel(size=(3000, K)), axis=1)
    double = clone(learner)
    single = clone(learner).set_params(precision="single")
    p, q = (each.predict_then_learn(X, y) for each in (double, single))
    np.testing.assert_allclose(q, p, atol=1e-4 if learner.radius > 10 else 2e-6)
    assert single.state_.P.dtype == np.float32
    assert single.state_.w.dtype == single.state_.tally.dtype == np.float64
    with pytest.raises(NoCertificate, match='precision="double"'):
        single.regret_certificate()  # 3000 rows are too many for what can be proved of 24 bits
    short = clone(single).fit(X[:20], y[:20], classes=range(K)), clone(double).fit(X[:20], y[:20], classes=range(K))
    if learner.radius <= 10:
        assert short[1].regret_certificate() < short[0].regret_certificate() < 1.1 * short[1].regret_certificate()
    single.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict_proba(X), single.predict_proba(X))
    assert again.merge(clone(single).fit(X, y)).state_.P.dtype == np.float32


@pytest.mark.parametrize(("learner", "K", "d"), [(AIOLI(radius=5.0), 2, 240), (FOLKLORE(radius=3.0), 3, 120)])
@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_cuts_in_single_precision_agree_to_1e_6(learner: Any, K: int, d: int, scale: float) -> None:
    X, y, weight = a_stream(120, d, K, 0, soft=False)
    X *= scale / np.linalg.norm(X, axis=1, keepdims=True)
    single = clone(learner).set_params(precision="single")
    blocked, p = game(single, X, y, weight, [])
    rowwise, q = game(single, X, y, weight, list(range(20, 120, 20)))
    assert blocked.state_.P.dtype == rowwise.state_.P.dtype == np.float32
    np.testing.assert_allclose(p, q, rtol=0, atol=1e-6)


def test_single_precision_refuses_what_it_cannot_promise() -> None:
    X = np.eye(3) * 1e5
    learner = AIOLI(radius=10.0, precision="single").fit(X, [0, 1, 0])
    with pytest.raises(NoCertificate, match='precision="double"'):
        learner.regret_certificate()
    with pytest.raises(ValueError, match="precision='half'"):
        AIOLI(precision="half").fit(X, [0, 1, 0])
