"""Every kernel once with `NUMBA_BOUNDSCHECK=1`, where an index outside an array is an error and not a silent read.

Skipped where code is compiled without: CI runs these in a process, and a cache, of their own (.ci/run).
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import config
from scipy import sparse
from subjects import SUBJECTS, Subject

import regretless
from regretless import (
    AIOLI,
    FOLKLORE,
    GAF,
    ONS,
    AggregatingForecaster,
    KernelAIOLI,
    KeyedLearner,
    MirrorDescent,
    MirrorDescentAggregator,
    OnlineBoosting,
    OnlineLogisticRegression,
    VovkAzouryWarmuth,
    best_in_hindsight,
    stumps,
)
from regretless.learners.first_order.schedules import AdaGrad
from regretless.theory.domains import Simplex, WholeSpace

pytestmark = [
    pytest.mark.boundscheck,
    pytest.mark.skipif(not getattr(config, "BOUNDSCHECK", None), reason="compiled without NUMBA_BOUNDSCHECK=1"),
]
ROWS = 40  # enough for blocks that are folded four rows of P at a time
COLUMNS = 9


def test_an_index_outside_is_an_error() -> None:
    from regretless.core.rows.labels import mark

    with pytest.raises(IndexError):
        mark(np.zeros(3, dtype=np.int64), np.zeros((2, 2)))


MORE_KERNELS = [
    Subject(GAF(radius=2.0, expectation="sobol", n_samples=8), 4),
    Subject(GAF(radius=2.0, expectation="monte-carlo", n_samples=8), 3),
    Subject(OnlineBoosting("naive-bayes", n_estimators=2), 3),
    Subject(KernelAIOLI(approximation="random-features", budget=8)),
    Subject(MirrorDescentAggregator(stumps(np.eye(COLUMNS), 2), symmetric=True)),
    Subject(MirrorDescent("hinge", WholeSpace(), schedule=AdaGrad(0.1), lazy=False, averaging=False)),
    Subject(MirrorDescent(domain=Simplex(2.0), mirror="entropy", gradient_bound=1.0)),
    Subject(OnlineLogisticRegression(drift="track", missing="indicator"), 3),
]


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
def test_rows_without_columns(effort: str) -> None:
    """No names, no intercept; no label at first, then more and more classes."""
    learner = OnlineLogisticRegression(fit_intercept=False, effort=effort)
    rows, labels = [{} for _ in range(12)], [0, 0, 1, 1, 0, 2, 1, 2, 3, 0, 3, 1]
    learner.predict_then_learn(rows[:2], labels[:2], sample_weight=[0.0, 0.0])
    for t in range(6):
        learner.learn_one(rows[t], labels[t])
        learner.predict_proba_one(rows[t])
    learner.partial_fit(rows[6:], labels[6:])
    assert learner.state_.tables.shape[-1] == 0


@pytest.mark.parametrize("subject", [*SUBJECTS, *MORE_KERNELS], ids=lambda subject: repr(subject.learner)[:40])
def test_a_short_game(subject: Subject, tmp_path: Path) -> None:
    """A block, rows one at a time, weights of 0, sparse rows, a file and back."""
    learner = subject.new() if hasattr(subject.learner, "get_params") else copy.deepcopy(subject.learner)
    few = isinstance(learner, AggregatingForecaster)  # its walkers are as many as four a column
    X, y = subject.stream(np.random.default_rng(0), ROWS, 4 if few else COLUMNS)
    if subject.is_bandit:
        for x, label in zip(X, y, strict=True):
            action, _ = learner.act(x)
            learner.feedback(x, action, bool(action == label))
    else:
        learner.partial_fit(X, y, **subject.first, sample_weight=np.arange(ROWS) % 3)
        if hasattr(learner, "learn_one"):
            learner.predict_one(X[0])
            learner.learn_one(X[0], y[0])
        learner.predict(X) if hasattr(learner, "predict") else learner.predict_proba(X)
        if getattr(learner, "takes_sparse", False):
            learner.partial_fit(sparse.csr_array(np.where(X > 0.0, X, 0.0)), y)
    if hasattr(learner, "save"):
        learner.save(tmp_path / "model.npz")
        regretless.load(tmp_path / "model.npz")


@pytest.mark.parametrize(
    ("learner", "n_classes", "columns"),
    [
        (AIOLI(radius=2.0), 2, 230),
        (FOLKLORE(radius=2.0), 3, 115),
        (GAF(radius=2.0), 3, 115),
        (VovkAzouryWarmuth(), 1, 230),
        (ONS(radius=0.5, feature_bound=1.0), 3, 115),
    ],
    ids=str,
)
def test_panels(learner: Any, n_classes: int, columns: int) -> None:
    subject = Subject(learner, n_classes)
    X, y = subject.stream(np.random.default_rng(1), 100, columns)
    subject.new().partial_fit(X, y, **subject.first).predict(X[:5])


def test_classes_and_columns_that_come_later() -> None:
    learner = OnlineLogisticRegression()
    for i in range(30):
        learner.learn_one({"size": float(i), "colour": "rgbcmyk"[i % 7]}, "abc"[(i // 10 + i) % 3])
    learner.predict_one({"size": 3.0, "colour": "r"})


def test_offsets_of_categories() -> None:
    learner = OnlineLogisticRegression(max_categories=3)
    rows = [{"size": float(i), "shop": f"shop {i % 11}", "town": f"town {i % 5}"} for i in range(40)]
    learner.partial_fit(rows[:30], [i % 2 for i in range(30)]).predict_proba(rows)
    learner.learn_one(rows[30], 1)


def test_keyed_learners(tmp_path: Path) -> None:
    X, rng = np.random.default_rng(0).normal(size=(200, 3)), np.random.default_rng(1)
    numbers, y = rng.integers(0, 40, size=200), rng.integers(0, 2, size=200)
    for keys in (numbers, np.array([f"key {i}" for i in numbers]), [f"key {i}" for i in numbers]):
        for pooled in (False, True):
            learner = KeyedLearner(AIOLI(radius=2.0), pooled=pooled)
            learner.learn(keys, X, y, classes=[0, 1]).predict_proba(keys, X)
            learner.learn(keys[:1], X[:1], y[:1])
    learner.save(tmp_path / "model")
    regretless.load(tmp_path / "model")


def test_one_and_two_parameters_by_quadrature() -> None:
    for columns in (1, 2):
        subject = Subject(AggregatingForecaster(radius=3.0))
        X, y = subject.stream(np.random.default_rng(3), 8, columns)
        subject.new().partial_fit(X, y, **subject.first).regret_certificate()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_best_in_hindsight(n_classes: int) -> None:
    subject = Subject(FOLKLORE(radius=2.0), n_classes)
    X, y = subject.stream(np.random.default_rng(2), 60, 4)
    best_in_hindsight(X, y, domain=subject.new().partial_fit(X, y).competes_with.domain)
