"""Online boosting: against its definition, its theorem, and its own weak learner."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.base import clone
from sklearn.datasets import load_digits, load_svmlight_file

import regretless
from learners import assert_same_state, through_file
from regretless import (
    AIOLI,
    FOLKLORE,
    OGD,
    BadRow,
    BoostingRegression,
    NoBound,
    NoCertificate,
    OnlineBoosting,
    bounds,
    play,
)
from regretless.learners.ensembles import boost_regression as regression
from regretless.learners.ensembles.weak import FERN_PARTS, FERN_WIDE, PARTS, WIDE, Weighted, part


def some_rows(n: int = 200, d: int = 4, K: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, n, d, K])
    X = rng.normal(size=(n, d)) * [1.0, 100.0, 0.01, 5.0][:d] + 3.0
    z = np.sin(2 * (X - X.mean(axis=0)) / X.std(axis=0)) @ rng.normal(size=(d, K)) * 3
    return X, np.argmax(z + rng.gumbel(size=z.shape), axis=1)


# ---------------------------------------------------------------------- boosting regression


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 8), st.floats(-3.0, 3.0), st.integers(0, 2**32 - 1))
def test_a_margin_that_adds_alpha_gives_the_softmax_that_adds_it(K: int, alpha: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    s, label = 5 * rng.normal(size=K), int(rng.integers(K))
    out = np.empty(K)
    others = np.delete(s, label)
    regression.expand(s, label, float(s[label] - logsumexp(others) + alpha), out)
    np.testing.assert_allclose(softmax(out), softmax(s + alpha * np.eye(K)[label]), atol=1e-12)


def played(regression: BoostingRegression, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A game of boosting regression: scores, labels named, true ones, losses suffered."""
    K = regression.n_classes
    rng = np.random.default_rng([seed, K, n])
    S = rng.normal(size=(n, K)) * rng.choice([0.1, 2.0, 30.0], size=(n, 1))
    named = rng.integers(0, K, size=n)
    y = np.where(rng.random(n) < 0.5, named, rng.integers(0, K, size=n))
    losses = np.empty(n)
    for t in range(n):
        losses[t] = -log_softmax(regression.predict(S[t], named[t]))[y[t]]
        regression.update(S[t], named[t], y[t])
    return S, named, y, losses


@pytest.mark.parametrize("horizon", [None, 60])
@pytest.mark.parametrize("K", [2, 3, 7])
def test_boosting_regression_is_folklore_on_two_features(K: int, horizon: int | None) -> None:
    """Algorithm 3, by the public FOLKLORE with the parameters of the text (corrected: F8)."""
    boosting = BoostingRegression(K, horizon)
    S, named, y, losses = played(boosting, 60, 1)
    rows = np.arange(60)
    others = np.array([logsumexp(np.delete(s, label)) for s, label in zip(S, named, strict=True)])
    clip = np.log(rows + 2.0) if horizon is None else np.full(60, math.log(60))
    x = np.column_stack([np.clip((S[rows, named] - others) / 2, -clip, clip), np.ones(60)])
    lam = 0.25 if horizon is None else 2 * math.sqrt(1 + math.log(60) ** 2) / math.sqrt(2)
    learner = FOLKLORE(radius=math.sqrt(2), regularization=lam)
    p = learner.predict_then_learn(x, named == y, classes=[False, True])
    share = np.where(named == y, 0.0, S[rows, y] - others)  # of the true class among the others
    expected = -np.log(np.where(named == y, p[:, 1], p[:, 0])) - share
    np.testing.assert_allclose(losses, expected, rtol=1e-9)
    assert boosting.total_loss_ == pytest.approx(losses.sum(), rel=1e-12)
    clipping = 60 * math.log1p(math.e**2 / 3600) if horizon else math.e**2 * (math.pi**2 / 6 - 1)
    assert boosting.regret_certificate() == pytest.approx(learner.regret_certificate() + clipping, rel=1e-9)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("K", [2, 5])
@pytest.mark.parametrize("seed", range(2))
def test_boosting_regression_keeps_its_promise(K: int, seed: int, known: bool) -> None:
    found = []
    for n in (100, 1000, 3000):
        boosting = BoostingRegression(K, n if known else None)
        S, named, y, losses = played(boosting, n, seed)
        best = min(
            -log_softmax(S + alpha * np.eye(K)[named], axis=1)[np.arange(n), y].sum()
            for alpha in np.linspace(-2, 2, 81)
        )
        assert losses.sum() - best <= boosting.regret_certificate() <= boosting.regret_bound()
        found.append(boosting.regret_certificate())
    # no faster than the square of the logarithm
    assert found[-1] <= found[0] * (math.log(3000) / math.log(100)) ** 2


def test_the_bound_of_boosting_regression_is_for_what_is_played() -> None:
    known, unknown = BoostingRegression(3, horizon=500), BoostingRegression(3)
    assert known.regret_bound(500) < bounds.boosting_regression(500)  # the text's curvature is smaller
    assert known.regret_bound(100) < known.regret_bound(500)
    assert unknown.regret_bound(500) < bounds.boosting_regression_anytime(500)
    with pytest.raises(NoBound, match="n=501 and horizon=500"):
        known.regret_bound(501)


def test_boosting_regression_refuses_what_it_cannot_use() -> None:
    boosting = BoostingRegression(3, horizon=1)
    before = boosting.state_.copy()
    for scores, label, y, words in (
        ([0.0, 1.0], 0, 0, "3 numbers"),
        ([0.0, 1.0, math.nan], 0, 0, "3 numbers"),
        ([0.0, 1.0, "a"], 0, 0, "scores"),
        ([0.0, 1.0, 2.0], 3, 0, "label=3 must be at most 2"),
        ([0.0, 1.0, 2.0], 0, -1, "y=-1"),
        ([0.0, 1.0, 2.0], 0.5, 0, "label=0.5"),
    ):
        with pytest.raises(ValueError, match=words):
            boosting.update(scores, label, y)
    np.testing.assert_array_equal(boosting.state_, before)
    boosting.update([0.0, 1.0, 2.0], 0, 1)
    with pytest.raises(ValueError, match="all 1 rounds"):
        boosting.update([0.0, 1.0, 2.0], 0, 1)
    for wrong, word in (({"n_classes": 1}, "n_classes"), ({"n_classes": 3, "horizon": 0}, "horizon")):
        with pytest.raises(ValueError, match=word):
            BoostingRegression(**wrong)


# ---------------------------------------------------------------------- the whole, from its definition


class SlowStump:
    """The stump, in plain Python."""

    def __init__(self, shifts: np.ndarray | None = None) -> None:
        self.shifts = shifts

    def start(self, n_features: int, n_classes: int, seed: int) -> None:
        self.sums = np.zeros((n_features, PARTS, n_classes))
        self.shifts = np.zeros(n_features) if self.shifts is None else self.shifts
        self.count, self.seen = 0, np.zeros((0, n_features))

    def parts(self, x: np.ndarray) -> np.ndarray:
        z = np.zeros(x.size)
        if len(self.seen) > 1:
            deviation = self.seen.std(axis=0)
            z = np.where(deviation > 0, (x - self.seen.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0), 0.0)
        return np.clip((z - self.shifts) / WIDE + PARTS / 2, 0, PARTS - 1).astype(int)

    def predict(self, x: np.ndarray, cost: np.ndarray) -> int:
        best = int(np.argmin(self.sums.min(axis=2).sum(axis=1)))
        return int(np.argmin(self.sums[best, self.parts(x)[best]]))

    def update(self, x: np.ndarray, cost: np.ndarray, y: int) -> None:
        self.sums[np.arange(x.size), self.parts(x)] += cost[y]
        self.seen = np.vstack([self.seen, x])

    def take(self, memory: np.ndarray) -> None:
        """The random numbers of a compiled stage."""
        self.shifts = memory[:, 0].copy()


class SlowFerns(SlowStump):
    """Ferns, in plain Python: tables of cells, and the mean cost of each label in the row's cells."""

    def start(self, n_features: int, n_classes: int, seed: int) -> None:
        self.seen, self.n_classes = np.zeros((0, n_features)), n_classes
        self.tables: list[dict[tuple[int, ...], np.ndarray]] = []

    def take(self, memory: np.ndarray) -> None:
        m = min(4, self.seen.shape[1])
        self.columns, self.cuts = memory[:, :m].astype(int), memory[:, m : 2 * m].copy()
        assert all(len(set(columns)) == m for columns in self.columns.tolist())
        self.tables = [{} for _ in memory]

    def cells(self, x: np.ndarray) -> list[tuple[int, ...]]:
        deviation = self.seen.std(axis=0) if len(self.seen) > 1 else np.zeros(x.size)
        middle = self.seen.mean(axis=0) if len(self.seen) else x
        z = np.where(deviation > 0, (x - middle) / np.where(deviation > 0, deviation, 1.0), 0.0)
        places = (z[self.columns] - self.cuts) / FERN_WIDE + FERN_PARTS / 2 if self.tables else np.zeros((0, 1))
        return [tuple(row) for row in np.clip(places, 0, FERN_PARTS - 1).astype(int).tolist()]

    def predict(self, x: np.ndarray, cost: np.ndarray) -> int:
        nothing = np.zeros(self.n_classes)
        found = [table.get(cell, nothing) for table, cell in zip(self.tables, self.cells(x), strict=True)]
        return int(np.argmin(sum((costs / (1 + costs.sum()) for costs in found), nothing)))

    def update(self, x: np.ndarray, cost: np.ndarray, y: int) -> None:
        for table, cell in zip(self.tables, self.cells(x), strict=True):
            table[cell] = table.get(cell, 0.0) + cost[y]
        self.seen = np.vstack([self.seen, x])


@pytest.mark.parametrize("weak", ["stump", "ferns"])
@pytest.mark.parametrize(("d", "K"), [(3, 2), (6, 4)])
def test_compiled_stages_are_those_of_the_definition(weak: str, d: int, K: int) -> None:
    X, y = np.random.default_rng(d).normal(size=(80, d)), some_rows(80, 3, K)[1]
    X[:, 0] += y
    fast = OnlineBoosting(weak, n_estimators=4, random_state=3)
    p = fast.predict_then_learn(X, y, classes=range(K))
    slow = OnlineBoosting({"stump": SlowStump, "ferns": SlowFerns}[weak](), n_estimators=4, random_state=3)
    slow.partial_fit(X[:1], y[:1], classes=range(K), sample_weight=0.0)
    for i, stage in enumerate(slow._weak):
        stage.take(fast.state_.memory[i])
    q = slow.predict_then_learn(X, y)
    scores = fast.stage_scores(X[:5])
    np.testing.assert_allclose(scores, slow.stage_scores(X[:5]), atol=1e-9)
    mixed = np.einsum("i,tik->tk", fast.stage_weights_, softmax(scores, axis=2))
    np.testing.assert_allclose(fast.predict_proba(X[:5]), mixed, atol=1e-12)
    np.testing.assert_allclose(p, q, atol=1e-9)
    for name in ("regression", "log_weight", "edges", "drawn", "tally"):
        np.testing.assert_allclose(getattr(fast.state_, name), getattr(slow.state_, name), atol=1e-9)


def test_costs_are_those_of_the_text() -> None:
    class Listener(SlowStump):
        heard: list[np.ndarray] = []

        def predict(self, x: np.ndarray, cost: np.ndarray) -> int:
            self.heard.append(cost.copy())
            return 1

        def update(self, x: np.ndarray, cost: np.ndarray, y: int) -> None: ...

    X, y = some_rows(20)
    OnlineBoosting(Listener(), n_estimators=3).fit(X, y)
    for C in Listener.heard:
        assert not np.diagonal(C).any()
        assert C.min() >= 0.0
        assert C.sum(axis=1).max() <= 1.0 + 1e-12
    np.testing.assert_allclose(Listener.heard[0], (1 - np.eye(3)) / 3)  # before the first stage all are alike


# ---------------------------------------------------------------------- it boosts


def test_the_default_weak_learner_is_worth_boosting() -> None:
    """Errors in the second half of digits: 20 stumps make 0.51, OGD alone 0.18; ten boosted OGD 0.08."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    p = OnlineBoosting().predict_then_learn(X[order], y[order])
    assert (p.argmax(axis=1) != y[order])[len(y) // 2 :].mean() < 0.06


def test_more_stages_make_fewer_mistakes() -> None:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    mistakes = [OnlineBoosting(n_estimators=N).fit(X[order], y[order]).mistakes_ for N in (1, 5, 20)]
    assert mistakes[1] < 0.95 * mistakes[0]
    assert mistakes[2] < 0.8 * mistakes[0]


@pytest.mark.parametrize("file", ["segment.scale", "letter.scale.gz"])
def test_boosting_beats_its_weak_learner_on_data(file: str) -> None:
    folder = os.environ.get("REGRETLESS_DATA")
    if not folder or not (Path(folder) / file).exists():
        pytest.skip(f"{file} is not in the folder named by REGRETLESS_DATA")
    X, y = load_svmlight_file(str(Path(folder) / file))
    order = np.random.default_rng(0).permutation(len(y))[:3000]
    X, y = X.toarray()[order], y[order]
    mistakes = [OnlineBoosting(n_estimators=N).fit(X, y).mistakes_ for N in (1, 10, 40)]
    assert mistakes[2] < 0.97 * mistakes[1] < 0.95 * mistakes[0]


@pytest.mark.parametrize("weak", ["ferns", "stump", "naive-bayes"])
@pytest.mark.parametrize("K", [2, 3])
def test_mistakes_are_within_the_bound(weak: str, K: int) -> None:
    X, y = some_rows(600, 4, K)
    learner = OnlineBoosting(weak, n_estimators=10).fit(X, y)
    assert learner.mistakes_ <= learner.mistake_bound() <= 600
    assert learner.stage_mistakes_.min() <= learner.mistakes_ + 20
    assert np.all(np.abs(learner.edges_) <= 1.0)
    assert learner.stage_weights_.sum() == pytest.approx(1.0)
    # Hedge in expectation: no more than the best stage and a half, and a logarithm
    assert learner.mistakes_ <= 1.6 * learner.stage_mistakes_.min() + 3 * math.log(10) + 30


def test_any_learner_with_weights_can_be_boosted() -> None:
    X, y = some_rows(300, 4, 3)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    learner = OnlineBoosting(OGD(), n_estimators=3)
    p = learner.predict_then_learn(X, y)
    assert np.isfinite(p).all()
    assert learner.edges_[0] > 0.05


# ---------------------------------------------------------------------- promises


@pytest.mark.parametrize(
    "weak",
    ["ferns", "stump", "naive-bayes", OGD(), Weighted(AIOLI(radius=2.0))],
    ids=["ferns", "stump", "naive-bayes", "OGD", "AIOLI"],
)
def test_blocks_are_rows_and_files_resume(weak: Any, tmp_path: Any) -> None:
    K = 2 if isinstance(weak, Weighted) else 3
    X, y = some_rows(120, 4, K)
    learner = OnlineBoosting(weak, n_estimators=5, random_state=7)
    whole = clone(learner)
    p = whole.predict_then_learn(X, y, classes=range(K))
    rows = clone(learner).partial_fit(X[:1], y[:1], classes=range(K))
    for t in range(1, 60):
        np.testing.assert_array_equal(rows.predict_proba_one(X[t]), p[t])
        rows.learn_one(X[t], y[t])
    rows = through_file(rows, tmp_path)
    np.testing.assert_array_equal(rows.predict_then_learn(X[60:], y[60:]), p[60:])
    assert_same_state(rows, whole)
    for one, other in zip(rows.estimators_, whole.estimators_, strict=True):
        assert_same_state(one, other)


class Chance:
    """A weak learner that is nobody's."""

    def start(self, n_features: int, n_classes: int, seed: int) -> None:
        self.n_classes = n_classes

    def predict(self, x: np.ndarray, cost: np.ndarray) -> int:
        return int(abs(x[0])) % self.n_classes

    def update(self, x: np.ndarray, cost: np.ndarray, y: int) -> None:
        pass


def test_what_is_refused() -> None:
    X, y = some_rows(20)
    for params, word in (
        ({"estimator": "tree"}, "estimator"),
        ({"estimator": 3}, "must implement start"),
        ({"n_estimators": 0}, "n_estimators"),
        ({"random_state": -1}, "random_state"),
    ):
        with pytest.raises(ValueError, match=word):
            OnlineBoosting(**params).fit(X, y)
    learner = OnlineBoosting(n_estimators=2).fit(X, y)
    with pytest.raises(BadRow, match="soft label"):
        learner.partial_fit(X, np.full((20, 3), 1 / 3))
    with pytest.raises(BadRow, match="row 3, column 1: NaN"):
        spoilt = X.copy()
        spoilt[3, 1] = np.nan
        learner.partial_fit(spoilt, y)
    with pytest.raises(NoCertificate, match="mistake_bound"):
        learner.regret_certificate()
    with pytest.raises(NoBound, match="mistake_bound"):
        learner.regret_bound()
    with pytest.raises(ValueError, match="cannot be saved"):
        OnlineBoosting(Chance(), n_estimators=1).fit(X, y).save("nowhere.npz")


def test_it_can_be_played() -> None:
    X, y = some_rows(200)
    trace = play(OnlineBoosting(n_estimators=3), X, y, progress=False)
    assert math.isnan(trace.certificate[-1])
    assert trace.mean_log_loss == pytest.approx(
        regretless.OnlineBoosting(n_estimators=3).fit(X, y, classes=range(3)).total_loss_ / 200, rel=1e-6
    )


@pytest.mark.parametrize("weak", ["ferns", "stump", "naive-bayes"])
def test_tiny_spreads_are_standardised(weak: str) -> None:
    """0 times infinity once was an index."""
    X, y = np.array([[0.0], [1e-160], [5e-161]]), [0, 1, 0]
    learner = OnlineBoosting(weak).fit(X, y)
    assert np.isfinite(learner.predict_proba(X)).all()
    assert all(np.isfinite(array).all() for array in learner.state_)
    X, y = some_rows()
    plain = OnlineBoosting(weak, n_estimators=3).fit(X, y).predict_proba(X)
    for power in (-1000, -450, 400):
        small = np.ldexp(X, power)
        assert np.array_equal(OnlineBoosting(weak, n_estimators=3).fit(small, y).predict_proba(small), plain)


def test_what_is_no_number_is_within_the_parts() -> None:
    for z in (np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, 0.0):
        for shift in (0.0, np.nan, WIDE):
            assert 0 <= part(z, shift, PARTS, WIDE) < PARTS
