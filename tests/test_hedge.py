"""Hedge: against its definition and its theorem; and learners side by side, each as if alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import regretless
from learners import assert_same_state, through_file
from regretless import (
    AIOLI,
    FOLKLORE,
    OGD,
    BadRow,
    Hedge,
    Mixture,
    OneVsRest,
    OnlineBoosting,
    Perceptron,
    Stack,
    bounds,
    play,
)
from regretless.learners.ensembles import hedge, side_by_side


def some_rows(n: int = 300, K: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, n, K])
    X = rng.normal(size=(n, 4)) / 2
    return X, np.argmax(X @ rng.normal(size=(4, K)) * 3 + rng.gumbel(size=(n, K)), axis=1)


def by_definition(wrong: np.ndarray) -> tuple[np.ndarray, float]:
    """The weights before every row, (n + 1, N), and the sum of the gaps: AdaHedge as it is defined."""
    N = wrong.shape[1]
    total, gap, weights = np.zeros(N), 0.0, []
    for row in wrong:
        eta = math.log(N) / gap if gap > 0 else math.inf
        w = (total == total.min()).astype(float) if gap == 0 else np.exp(-eta * (total - total.min()))
        w /= w.sum()
        weights.append(w)
        h = float(w @ row)
        m = row[w > 0].min() if gap == 0 else -math.log(float(w @ np.exp(-eta * row))) / eta
        gap += max(0.0, h - m)
        total += row
    eta = math.log(N) / gap if gap > 0 else math.inf
    w = (total == total.min()).astype(float) if gap == 0 else np.exp(-eta * (total - total.min()))
    return np.vstack([weights, w / w.sum()]), gap


def play_mistakes(wrong: np.ndarray) -> tuple[hedge.HedgeState, np.ndarray]:
    """Hedge over experts of which expert i errs on row t where wrong[t, i]: label 0 is right."""
    n, N = wrong.shape
    state = hedge.HedgeState(np.zeros(N), np.zeros(1), np.zeros(6))
    said = np.zeros((N, n, 2))
    said[:, :, 0] = 1 - wrong.T
    said[:, :, 1] = wrong.T
    out = np.empty((n, 2))
    hedge.run(state, said, np.tile([1.0, 0.0], (n, 1)), np.ones(n), out)
    return state, out


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 6), st.integers(1, 80), st.integers(0, 2**32 - 1), st.floats(0.05, 0.95))
def test_it_is_adahedge(N: int, n: int, seed: int, rate: float) -> None:
    wrong = (np.random.default_rng(seed).random((n, N)) < rate).astype(float)
    state, out = play_mistakes(wrong)
    weights, gap = by_definition(wrong)
    np.testing.assert_allclose(out[:, 1], (weights[:-1] * wrong).sum(axis=1), atol=1e-9)
    assert state.gap[0] == pytest.approx(gap, abs=1e-9)
    regret = state.tally[2] - wrong.sum(axis=0).min()
    assert regret <= 2 * state.gap[0] + 1e-9
    assert 2 * state.gap[0] <= bounds.hedge(n, n_experts=N)


def test_the_bound_holds_against_an_adversary() -> None:
    """Who has the larger share errs, row after row: the worst for two experts."""
    n = 4000
    state = hedge.HedgeState(np.zeros(2), np.zeros(1), np.zeros(6))
    w, out = np.empty(2), np.empty((1, 2))
    for _ in range(n):
        hedge.weigh(state.losses, state.gap[0], w)
        wrong = np.eye(2)[int(w[1] > w[0])]
        said = np.stack([1 - wrong, wrong], axis=1)[:, None, :]
        hedge.run(state, np.ascontiguousarray(said), np.array([[1.0, 0.0]]), np.ones(1), out)
    regret = state.tally[2] - state.losses.min()
    assert 0.1 * math.sqrt(n) < regret <= 2 * state.gap[0] <= bounds.hedge(n, n_experts=2)


def test_it_follows_the_best_and_keeps_its_promises(tmp_path: Any) -> None:
    X, y = some_rows(400)
    learner = Hedge(
        [Perceptron(), FOLKLORE(radius=5.0), OnlineBoosting(n_estimators=2), OGD(loss="hinge", multiclass="hinge")]
    )
    whole = clone(learner)
    votes = whole.predict_then_learn(X, y, classes=range(3))
    np.testing.assert_allclose(votes.sum(axis=1), 1.0, atol=1e-12)
    alone = [(clone(each).fit(X, y, classes=range(3)), i) for i, each in enumerate(learner.estimators)]
    for each, i in alone:
        assert_same_state(whole.estimators_[i], each)
    assert whole.total_loss_ == pytest.approx(float((1 - votes[np.arange(400), y]).sum()))
    assert 0 <= whole.regret_certificate() <= whole.regret_bound()
    assert whole.weights_.sum() == pytest.approx(1.0)
    assert not hasattr(whole, "predict_proba")

    rows = clone(learner).partial_fit(X[:1], y[:1], classes=range(3))
    for t in range(1, 50):
        assert rows.predict_one(X[t]) == votes[t].argmax()
        rows.learn_one(X[t], y[t])
    rows = through_file(rows, tmp_path)
    np.testing.assert_array_equal(rows.predict_then_learn(X[50:], y[50:]), votes[50:])
    assert_same_state(rows, whole)

    before = [array.copy() for array in whole.state_]
    with pytest.raises(BadRow, match="row 1, column 2: NaN"):
        whole.partial_fit([[0, 0, 0, 0], [0, 0, np.nan, 0]], [0, 1])
    whole.predict(X)
    whole.partial_fit(X[:5], y[:5], sample_weight=np.zeros(5))
    for array, old in zip(whole.state_, before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_one_expert_is_that_expert() -> None:
    X, y = some_rows(100)
    learner = Hedge([Perceptron()]).fit(X, y)
    assert learner.regret_certificate() == 0.0
    np.testing.assert_array_equal(learner.predict(X), Perceptron().fit(X, y).predict(X))


def test_it_can_be_played() -> None:
    X, y = some_rows(200)
    trace = play(Hedge([Perceptron(), OGD()]), X, y, progress=False)
    assert trace.kind == "scores"
    assert trace.certificate[-1] <= trace.bound[-1]
    with pytest.raises(ValueError, match="no comparators, so no regret"):
        _ = trace.regret


@pytest.mark.parametrize("estimators", [[], [3], Perceptron(), None])
def test_what_is_refused(estimators: Any) -> None:
    with pytest.raises(ValueError, match=r"estimators"):
        Hedge(estimators).fit(*some_rows(20))


# ---------------------------------------------------------------------- side by side


@pytest.mark.parametrize("threads", [1, 2])
def test_members_of_a_stack_are_what_they_are_alone(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """States on one axis, few rows at a time, on threads: not a bit differs."""
    monkeypatch.setattr(side_by_side, "CACHED", 40)
    monkeypatch.setattr(side_by_side, "WORTH_A_THREAD", 0 if threads > 1 else 1 << 60)
    X, y = some_rows(500, 5)
    one_vs_rest = OneVsRest(AIOLI(radius=3.0)).fit(X, y)
    for k, member in enumerate(one_vs_rest.estimators_):
        assert_same_state(member, AIOLI(radius=3.0).fit(X, y == k))
        assert member.state_.P.base is one_vs_rest.estimators_[0].state_.P.base, "one axis"
        assert member.state_.P.base.shape == (5, 4, 4)
    grid = [FOLKLORE(radius=radius) for radius in (0.5, 1.0, 2.0)]
    mixture = Mixture([*grid, Mixture([OGD(), FOLKLORE()])]).fit(X, y)
    for member, alone in zip(mixture.estimators_, grid, strict=False):
        assert_same_state(member, alone.fit(X, y))
    assert_same_state(mixture.estimators_[3], Mixture([OGD(), FOLKLORE()]).fit(X, y))
    np.testing.assert_array_equal(
        one_vs_rest.predict_proba(X), regretless.load(_saved(one_vs_rest, monkeypatch)).predict_proba(X)
    )


def test_a_stack_is_its_members_one_by_one() -> None:
    X, y = some_rows(500, 2)
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.0], 500)
    grid = [AIOLI(radius=0.5), AIOLI(radius=5.0), OGD(), Perceptron(), Mixture([AIOLI(), OGD()])]
    stacked = Stack(grid)
    p = np.concatenate(
        [stacked.predict_then_learn(X[s], y[s], [0, 1], weight[s]) for s in (slice(0, 123), slice(123, 500))], axis=1
    )
    assert p.shape == (5, 500, 2)
    for i, learner in enumerate(grid):
        alone = clone(learner)
        said = alone.predict_then_learn(X, y, classes=[0, 1], sample_weight=weight)
        assert_same_state(stacked.estimators_[i], alone)
        if said.shape == p[i].shape:
            np.testing.assert_array_equal(p[i], said)
            np.testing.assert_array_equal(stacked.predict_proba(X)[i], alone.predict_proba(X))
        assert stacked.total_losses_[i] == alone.total_loss_
    assert stacked.best_ is stacked.estimators_[int(stacked.total_losses_.argmin())]
    before = [array.copy() for array in stacked.estimators_[1].state_]
    with pytest.raises(BadRow, match="row 1, column 0: NaN"):
        stacked.partial_fit([[0, 0, 0, 0], [np.nan, 0, 0, 0]], [0, 1])
    for array, old in zip(stacked.estimators_[1].state_, before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_what_a_stack_refuses() -> None:
    for learners in ([], AIOLI(), [3], [regretless.OnlineLogisticRegression()], [regretless.VovkAzouryWarmuth()]):
        with pytest.raises(ValueError, match="estimators"):
            Stack(learners)
    with pytest.raises(NotFittedError):
        Stack([AIOLI()]).predict_proba(np.eye(2))


def _saved(learner: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    import tempfile
    from pathlib import Path

    path = Path(tempfile.mkdtemp()) / "model.npz"
    learner.save(path)
    return path
