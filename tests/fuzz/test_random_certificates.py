"""Certificates are above the regret, or refused: random scales, collinear columns, regularizations and adversaries."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.base import clone

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
)

pytestmark = pytest.mark.slow


def hard_rows(rng: np.random.Generator, n: int, d: int, widest: float) -> np.ndarray:
    """Rows in columns of very different units, some columns nearly the same, some empty at first."""
    X = rng.normal(size=(n, d)) + rng.choice([0.0, 3.0])
    for j in range(1, d):
        if rng.random() < 0.2:
            X[:, j] = X[:, j - 1] * (1.0 + 10.0 ** rng.uniform(-12, -1) * rng.normal(size=n))
        if rng.random() < 0.1:
            X[: n // 2, j] = 0.0
    if rng.random() < 0.3:
        X = X[rng.integers(0, min(n, 3), n)]  # the same few rows again and again
    return X * 10.0 ** rng.uniform(-widest, widest, d)


def test_numbers(cases):
    refused = 0
    for rng in cases:
        n, d = int(rng.integers(1, 400)), int(rng.integers(1, 6))
        X = hard_rows(rng, n, d, 6.0)
        learner = VovkAzouryWarmuth(10.0 ** rng.uniform(-10, 2))
        y = np.sign(rng.normal(size=n)) if rng.random() < 0.3 else X @ (rng.normal(size=d) / np.abs(X).max())
        y[n // 2 :] *= rng.choice([1.0, -1.0])
        forecasts = learner.predict_then_learn(X, y)
        scale = np.where(X.any(axis=0), np.abs(X).max(axis=0), 1.0)
        Z = X.astype(np.longdouble) / scale  # a comparator must be linear in X
        ridge = Z.T @ Z + np.diag(learner.regularization / scale**2)
        theta = np.linalg.lstsq(ridge.astype(float), (Z.T @ y).astype(float), rcond=None)[0]
        loss = np.sum((y - forecasts.astype(np.longdouble)) ** 2)
        comparator = np.sum((y - Z @ theta) ** 2)
        norm = float(np.linalg.norm(theta / scale))
        try:
            certificate = learner.regret_certificate(norm)
            assert certificate <= learner.regret_bound(comparator_norm=norm) * (1 + 1e-9) + 1e-6
        except (NoCertificate, NoBound):
            refused += 1
            continue
        assert float(loss - comparator) <= certificate + 1e-15 * float(comparator), (n, d)
    assert refused < max(2, cases.played)


CLASSIFIERS = [
    (AIOLI(radius=3.0), 2),
    (AIOLI(radius=3.0, virtual_weight=0.5), 2),
    (FOLKLORE(radius=2.0), 3),
    (GAF(radius=2.0), 2),
    (ONS(radius=1.0), 2),
    (KernelAIOLI("linear", radius=3.0), 2),
    (KernelAIOLI("linear", radius=3.0, approximation="nystrom", budget=4), 2),
    (Mixture([AIOLI(radius=1.0), AIOLI(radius=3.0)]), 2),
]


def test_labels_against_the_forecast(cases):
    refused = 0
    for rng in cases:
        prototype, K = CLASSIFIERS[int(rng.integers(len(CLASSIFIERS)))]
        learner = clone(prototype)
        lam = 10.0 ** rng.uniform(-13, 1)
        for each in learner.estimators if isinstance(learner, Mixture) else [learner]:
            each.set_params(**{"epsilon" if isinstance(each, ONS) else "regularization": lam})
        n, d = int(rng.integers(2, 120)), int(rng.integers(1, 4))
        X = hard_rows(rng, n, d, 0.0 if isinstance(learner, ONS) else 2.0)
        X /= max(1.0, np.linalg.norm(X, axis=1).max() / 10.0 ** rng.uniform(0, 0.5))
        if isinstance(learner, ONS):
            learner.set_params(feature_bound=max(1.0, float(np.linalg.norm(X, axis=1).max()) * (1 + 1e-12)))
        y = np.zeros(n, dtype=int)
        learner.partial_fit(X[:1], [0], classes=range(K))
        for t in range(1, n):
            y[t] = np.argmin(learner.predict_proba_one(X[t])) if rng.random() < 0.8 else rng.integers(K)
            learner.learn_one(X[t], y[t])
        competition = learner.competes_with
        best = best_in_hindsight(
            learner.for_comparators(X), y, loss=competition.loss, domain=competition.domain, classes=range(K)
        )
        try:
            certificate = learner.regret_certificate()
        except NoCertificate as refusal:
            refused += 1
            assert re.search(r"A has grown to|forecasts and losses are so large|is not proved", str(refusal))
            continue
        regret = learner.total_loss_ - best.loss
        assert regret <= certificate * (1 + 1e-12) + 1e-9, (learner, n, d, lam)
    assert refused < max(2, cases.played)
