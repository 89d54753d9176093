"""merge and fit_sharded: sums of quadratics by brute force, the certificate of the union, and who is refused."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.utils import shuffle

from learners import LEARNERS, assert_same_state, fingerprint, make_stream, through_file, within
from regretless import (
    AIOLI,
    FOLKLORE,
    GAF,
    OGD,
    BadRow,
    GeneralGAF,
    NoBound,
    VovkAzouryWarmuth,
    best_in_hindsight,
    fit_sharded,
    merge,
)
from regretless.core.numbers.tally import EXCESS, LOSS, ROWS, UNEVEN
from regretless.learners.second_order.curvature import kappa
from regretless.learners.second_order.merging import STRENGTHS, balance, sum_of
from regretless.learners.second_order.rounding import ENERGY, MASS, SHIFT, SUMS
from regretless.learners.second_order.surrogate import SurrogateState, helmert
from regretless.learners.second_order.surrogate import start as empty
from regretless.theory.domains import Ball

MERGEABLE: list[tuple[Any, int]] = [
    (AIOLI(radius=3.0), 2),
    (AIOLI(radius=2.0, virtual_weight=0.5, feature_bound=3.0), 2),
    (FOLKLORE(radius=2.0), 2),
    (FOLKLORE(radius=2.0), 3),
    (GAF(radius=2.0), 2),
    (GAF(radius=2.0, expectation="monte-carlo", n_samples=16), 3),
    (VovkAzouryWarmuth(regularization=0.3), 1),
]
mergeable = pytest.mark.parametrize(("learner", "K"), MERGEABLE, ids=[f"{a!r}-{K}" for a, K in MERGEABLE])


def stream(K: int, n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = make_stream("iid", n, 3, K, seed=seed)
    return within(X, 1.0), y, np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0], size=n)


def parts(learner: Any, K: int, sizes: tuple[int, ...] = (50, 40, 30), weighted: bool = True) -> list[Any]:
    """Learners of stretches of one stream."""
    X, y, weight = stream(K, sum(sizes))
    found = []
    for start, size in zip(np.cumsum((0, *sizes)), sizes, strict=False):
        rows = slice(start, start + size)
        given = {"classes": range(K)} if K > 1 else {}
        found.append(clone(learner).fit(X[rows], y[rows], sample_weight=weight[rows] if weighted else None, **given))
    return found


def with_strength(parts: list[Any], strength: float) -> Any:
    """Merged parts with a balance of a given strength."""
    merged = clone(parts[0]).begin(parts[0].n_features_in_, classes=parts[0].classes_)
    merged._parts = len(parts)
    merged.state_ = merged._merged([part.state_ for part in parts], merged.state_, strength)
    return merged


def quadratic(learner: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """A, b and the constant of the sum that a state stands for."""
    P, w, tally = learner.state_
    A = np.linalg.inv(P)
    b = A @ w
    return A, b, float(tally[LOSS] - tally[EXCESS] + b @ w)


def assert_alike(one: Any, other: Any) -> None:
    for mine, others in zip(one.state_, other.state_, strict=True):
        np.testing.assert_allclose(mine, others, rtol=1e-9, atol=1e-9)
    assert one._parts == other._parts


# ---------------------------------------------------------------------- the sum


@mergeable
def test_the_order_does_not_matter(learner: Any, K: int) -> None:
    a, b, c = parts(learner, K)
    for order in itertools.permutations([a, b, c]):
        assert_alike(merge(order), merge([a, b, c]))
    exact = merge([a, b, c], rule="sum")
    assert_alike(a.merge(b, rule="sum").merge(c, rule="sum"), exact)
    assert_alike(a.merge(b.merge(c, rule="sum"), rule="sum"), a.merge(b, c, rule="sum"))
    for P in (exact.state_.P, a.merge(b, c).state_.P):
        assert np.array_equal(P, P.T)


def brute_force(
    learner: Any, K: int, X: np.ndarray, y: np.ndarray, P: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """The sum of the quadratics of rows that were forecast P, from their definition; without the lambda."""
    d = X.shape[1]
    r = max(1, K - 1)
    A, b, const = np.zeros((r * d, r * d)), np.zeros(r * d), 0.0
    code, number, radius = (getattr(learner._constants, name, 0) for name in ("code", "number", "radius"))
    for x, label, p in zip(X, y, P, strict=True):
        size = learner._constants.feature_bound or np.linalg.norm(x) if K > 1 else 0.0
        if K == 1:
            z, J = np.zeros(1), x[None, :]
            loss, g, S = label**2, np.array([-2.0 * label]), np.ones((1, 1))
        elif isinstance(learner, AIOLI):
            z, J = np.log(p[1:] / p[0]), x[None, :]
            k = kappa(code, number, 0.5 * radius * size, 2)
            loss, g, S = -np.log(p[label]), p[1:] - label, k * p[1:, None] * p[0]
        else:
            z, J = np.log(p), np.kron(helmert(K), x)
            k = kappa(code, number, radius * size, K)
            loss, g, S = -np.log(p[label]), p - np.eye(K)[label], k * (np.diag(p) - np.outer(p, p))
        A += J.T @ S @ J
        b += J.T @ (S @ z - g / 2)
        const += loss - g @ z + z @ S @ z
    return A, b, const


@pytest.mark.parametrize(("learner", "K"), [case for case in MERGEABLE if not isinstance(case[0], GAF)], ids=str)
@pytest.mark.parametrize("sizes", [(1,) * 8, (1, 20, 5), (30, 30)], ids=str)
def test_the_definition(learner: Any, K: int, sizes: tuple[int, ...]) -> None:
    X, y, _ = stream(K, sum(sizes))
    learners, said = [], []
    for start, size in zip(np.cumsum((0, *sizes)), sizes, strict=False):
        learners.append(clone(learner))
        given = {"classes": range(K)} if K > 1 else {}
        said.append(learners[-1].predict_then_learn(X[start : start + size], y[start : start + size], **given))
    merged = merge(learners, rule="sum")
    A, b, const = brute_force(merged, K, X, y, np.concatenate(said))
    A += merged._constants.regularization * np.eye(len(b))
    for mine, defined in zip(quadratic(merged), (A, b, const), strict=True):
        np.testing.assert_allclose(mine, defined, rtol=1e-9, atol=1e-9)
    if K == 1:
        assert_alike(merge(learners).fit(X, y), clone(learner).fit(X, y))
        np.testing.assert_allclose(merged.state_.w, clone(learner).fit(X, y).state_.w, rtol=1e-9)


def test_the_definition_for_gaf() -> None:
    """Its point lies where the leader stands after the label: from nothing, margin u = (q/2)(y - sigmoid(u))."""
    X, y, _ = stream(2, 6)
    learners = [
        GAF(radius=2.0, regularization=1.0).fit(x[None], [label], classes=[0, 1]) for x, label in zip(X, y, strict=True)
    ]
    merged = merge(learners, rule="sum")
    points = []
    for x, label in zip(X, y, strict=True):
        q = x @ x  # of each logit: lambda is 1, and the margin has twice its variance
        u = brentq(lambda u, q=q, label=label: u + q * (expit(u) - label), -50, 50, xtol=1e-14)
        points.append(softmax([-u / 2, u / 2]))
    A, b, const = brute_force(merged, 2, X, y, np.array(points))
    for mine, defined in zip(quadratic(merged), (A + np.eye(3), b, const), strict=True):
        np.testing.assert_allclose(mine, defined, rtol=1e-9, atol=1e-9)


@mergeable
def test_the_tally(learner: Any, K: int) -> None:
    found = parts(learner, K)
    tally, of_parts = merge(found, rule="sum").state_.tally, np.array([part.state_.tally for part in found])
    sums = (ROWS, UNEVEN, LOSS, MASS, SHIFT, ENERGY)
    for each in sums:
        assert tally[each] == pytest.approx(of_parts[:, each].sum(), rel=1e-14)
    for largest in set(range(tally.size)) - {*sums, EXCESS}:
        assert tally[largest] == of_parts[:, largest].max()
    assert merge(found).total_loss_ == pytest.approx(sum(part.total_loss_ for part in found), rel=1e-14)


# ---------------------------------------------------------------------- one pass


def forecast_of_a_leader(gamma: float, lam: float, theta: float, pull: float, until: float) -> float:
    """w - delta of a leader that follows its equation from w = 0 at A = lam to A = `until`; delta = pull/A."""

    def slope(A: float, w: float) -> float:
        return gamma / A * (theta + (1 - 1 / gamma) * pull / A - w)

    found = solve_ivp(slope, (lam, until), [0.0], rtol=1e-11, atol=1e-12)
    return float(found.y[0, -1] - pull / until)


@pytest.mark.parametrize("gamma", [1.0, 1.3, 4.0, 30.0])
@pytest.mark.parametrize("growth", [1e-3, 0.5, 20.0])
@pytest.mark.parametrize("k", [2, 8])
def test_balanced_parts_forecast_as_one_pass(gamma: float, growth: float, k: int) -> None:
    lam, theta, pull = 0.3, 2.0, 0.4
    A = lam * (1 + growth)
    w = forecast_of_a_leader(gamma, lam, theta, pull, A) + pull / A
    tally = np.zeros(SUMS)
    tally[EXCESS] = 0.5 * gamma * np.log(A / lam)
    part = SurrogateState(P=np.array([[1 / A]]), w=np.array([w]), tally=tally)
    common = empty(1, lam)
    found = balance([part] * k, lam, 1.0)
    merged = sum_of([part] * k, common, found)
    once = forecast_of_a_leader(gamma, lam, theta, pull, lam * (1 + k * growth))
    assert merged.w[0] - found.pull * pull * merged.P[0, 0] == pytest.approx(once, rel=1e-6)
    assert 0 <= found.priors <= k - 1
    assert 1 / merged.P[0, 0] == pytest.approx(lam * (1 + k * growth + found.priors))
    if gamma == 1.0:
        assert found.priors == pytest.approx(0, abs=1e-9)
        assert found.pull == pytest.approx(1)


@pytest.mark.parametrize("gamma", [1.0, 4.0, 30.0])
@pytest.mark.parametrize("wide", [0.0, 0.5, 1.0, 3.0])
def test_the_strength_is_the_spread_of_the_leaders(gamma: float, wide: float) -> None:
    """Relative to that of random labels, from its equation; a weaker balance counts lambda and the pull for less."""
    lam, k, growth = 0.3, 4, np.array([0.2, 5.0])
    tally = np.zeros(SUMS)
    tally[EXCESS] = 0.5 * gamma * np.log1p(growth).sum()
    v = [
        float(solve_ivp(lambda _, v: gamma / 2 - (2 * gamma - 1) * v, (0, t), [0.0], rtol=1e-10).y[0, -1])
        for t in np.log1p(growth)
    ]
    A = lam * (1 + growth)
    signs = np.array([1.0, -1.0, 1.0, -1.0]) * np.sqrt(0.75)  # a sample variance of 1
    leaders = np.array([7.0, -2.0]) + wide * signs[:, None] * np.sqrt(v / A)
    states = [SurrogateState(P=np.diag(1 / A), w=w, tally=tally) for w in leaders]
    found, full = balance(states, lam), balance(states, lam, 1.0)
    expected = (k - 1) * sum(v)
    assert found.strength == pytest.approx(min(1.0, (1 + wide**2 * expected) / (1 + expected)), rel=1e-6)
    assert found.priors == pytest.approx(found.strength * full.priors)
    np.testing.assert_allclose(found.prior, found.strength * full.prior)
    assert found.pull == pytest.approx(full.pull**found.strength)
    assert balance(states, lam, 0.0)[1:3] == (0.0, 1.0)
    assert balance(states, lam, 1.5).pull == pytest.approx(1.5 * full.pull)


@pytest.mark.parametrize("learner", [AIOLI(radius=5.0), FOLKLORE(radius=5.0), GAF(radius=5.0)], ids=str)
def test_labels_that_are_less_random_make_it_weaker(learner: Any) -> None:
    found: dict[str, list[float]] = {"random": [], "separable": []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1000, 5)) / np.sqrt(5)
        z = X @ [3, -3, 2, 0, 1]
        for name, y in (("random", rng.random(1000) < expit(z)), ("separable", z > 0)):
            shards = [clone(learner).fit(X[i::8], y[i::8]) for i in range(8)]
            lam = shards[0]._constants.regularization
            found[name].append(balance([part.state_ for part in shards], lam).strength)
    assert np.mean(found["random"]) > 0.6
    assert np.mean(found["separable"]) < 0.75 * np.mean(found["random"])


@pytest.mark.parametrize(
    ("learner", "K", "n"),
    [
        (AIOLI(radius=5.0), 2, 500),
        (FOLKLORE(radius=5.0), 3, 4000),
        (GAF(radius=2.0), 2, 500),
    ],
    ids=str,
)
@pytest.mark.parametrize("rule", ["balanced", "rows"])
def test_it_is_better_than_its_parts(learner: Any, K: int, n: int, rule: str) -> None:
    """The mean log loss of new rows above that of the true model, on five streams."""
    losses = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n + 4400, 5)) / np.sqrt(5)
        W = rng.normal(size=(K, 5))
        W *= 0.8 * learner.radius / np.linalg.norm(W, axis=1, keepdims=True) / (2 if K == 2 else 1)
        true = softmax(X @ W.T, axis=1)
        y = (true.cumsum(axis=1) < rng.random((n + 4400, 1))).sum(axis=1)
        found = [clone(learner).fit(X[i:n:8], y[i:n:8], classes=range(K)) for i in range(8)]
        given = {"X": X[n:-4000], "y": y[n:-4000]} if rule == "rows" else {}
        once, added = clone(learner).fit(X[:n], y[:n]), merge(found, rule="sum")
        chosen = np.arange(4000), y[-4000:]
        losses.append(
            [
                np.log(true[-4000:][chosen] / fitted.predict_proba(X[-4000:])[chosen]).mean()
                for fitted in (merge(found, rule=rule, **given), once, added, *found)
            ]
        )
    mine, once, added, *each = np.mean(losses, axis=0)
    few = 1.3 if rule == "balanced" else 2.0  # 400 rows decide with some noise
    assert mine < min(few * once, added, *each)


@pytest.mark.parametrize("learner", [AIOLI(radius=10.0), FOLKLORE(radius=10.0), FOLKLORE(radius=30.0)], ids=str)
def test_a_rare_class(learner: Any) -> None:
    """With radii beyond the true weights, the forecasts of the parts are too extreme; those of the sum still more."""
    losses = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(size=(6000, 10)) / np.sqrt(10), np.ones(6000)]) / np.sqrt(2)
        true = expit(X @ np.append(rng.normal(size=10), -6.0))
        y = (rng.random(6000) < true).astype(int)
        found = [clone(learner).fit(X[i:2000:8], y[i:2000:8], classes=[0, 1]) for i in range(8)]
        likely = np.column_stack([1 - true, true])[np.arange(2000, 6000), y[2000:]]
        fitted = (merge(found), merge(found, rule="sum"), *found)
        said = [each.predict_proba(X[2000:])[np.arange(4000), y[2000:]] for each in fitted]
        losses.append([np.log(likely / each).mean() for each in said])
    mine, added, *each = np.mean(losses, axis=0)
    assert mine < min(added, *each)


@pytest.mark.parametrize("learner", [AIOLI(radius=3.0), FOLKLORE(radius=10.0), FOLKLORE(radius=30.0)], ids=str)
def test_classes_that_can_almost_be_separated(learner: Any) -> None:
    """There one pass is closer to the sum than to the balance of converged parts."""
    X, y = shuffle(*load_breast_cancer(return_X_y=True), random_state=0)
    X = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(y))])
    X /= np.linalg.norm(X, axis=1).max()

    def loss(fitted: Any) -> float:
        return float(-np.log(fitted.predict_proba(X[400:])[np.arange(len(y) - 400), y[400:]]).mean())

    found = [clone(learner).fit(X[i:400:8], y[i:400:8], classes=[0, 1]) for i in range(8)]
    once = loss(clone(learner).fit(X[:400], y[:400]))
    assert loss(merge(found)) < min(1.3 * once, loss(with_strength(found, 1.0)) / 1.05, *map(loss, found))


@pytest.mark.parametrize(("learner", "K"), [case for case in MERGEABLE if not isinstance(case[0], GAF)], ids=str)
def test_balanced_learns_on_by_the_definition(learner: Any, K: int) -> None:
    """The quadratics of later rows are taken at their forecasts, and the certificate covers all rows."""
    merged = merge(parts(learner, K, weighted=False))
    before = quadratic(merged)
    X, y, _ = stream(K, 40, seed=5)
    new = brute_force(merged, K, X, y, merged.predict_then_learn(X, y))
    for later, earlier, added in zip(quadratic(merged), before, new, strict=True):
        np.testing.assert_allclose(later, earlier + added, rtol=1e-9, atol=1e-9)
    if K > 1:
        assert merged._pull > 1
        assert merged._priors > 1
        np.testing.assert_allclose(merged.predict_proba_one(X[0]), merged.predict_proba(X[:1])[0], rtol=1e-12)
        rows, labels = (np.concatenate([old, new]) for old, new in zip(stream(K)[:2], (X, y), strict=True))
        best = best_in_hindsight(rows, labels, domain=merged.competes_with.domain, loss=merged.competes_with.loss)
        assert merged.total_loss_ - best.loss <= merged.regret_certificate()


@pytest.mark.parametrize("aside", [{"pull": 4.6}, {"priors": 0.5}, {"priors": np.inf}, {"pull": "1"}, {"rule": "sum"}])
def test_a_file_with_impossible_merging_is_refused(aside: dict[str, Any]) -> None:
    learner = AIOLI()
    with pytest.raises(ValueError, match=next(iter(aside))):
        learner._take_up({"parts": 3} | aside)
    with pytest.raises(ValueError, match=r"belongs to merged learners|not expected"):
        AIOLI()._take_up(dict.fromkeys(aside, 1.0))


@pytest.mark.parametrize(("learner", "K"), [case for case in MERGEABLE if case[1] > 1], ids=str)
def test_rows_weigh_the_strengths(learner: Any, K: int) -> None:
    """By the likelihood of their labels; they are not learned."""
    found = parts(learner, K)
    before = [fingerprint(part) for part in found]
    X, y, _ = stream(K, 30, seed=7)
    measured = balance([part.state_ for part in found], found[0]._constants.regularization).strength
    strengths = np.array([measured, *STRENGTHS])
    said = np.array([with_strength(found, strength).predict_proba(X)[np.arange(30), y] for strength in strengths])
    likelihood = said.prod(axis=1)
    merged = merge(found, rule="rows", X=X, y=y)
    assert_alike(merged, with_strength(found, float(likelihood @ strengths / likelihood.sum())))
    assert merged.state_.tally[ROWS] == sum(part.state_.tally[ROWS] for part in found)
    assert_same_state(merged, found[0].merge(*found[1:], rule="rows", X=X, y=y))
    assert [fingerprint(part) for part in found] == before


def test_rows_decide() -> None:
    """Labels that are as forecast, or the opposite: the pull is least, or largest."""
    found = parts(AIOLI(radius=3.0), 2)
    X = within(np.random.default_rng(0).normal(size=(5000, 3)), 1.0)
    y = merge(found).predict(X)
    assert_alike(merge(found, rule="rows", X=X, y=y), merge(found, rule="sum"))
    opposite = merge(found, rule="rows", X=X, y=1 - y)
    assert opposite._pull == pytest.approx(1.5 * balance([part.state_ for part in found], 1 / 9, 1.0).pull)
    assert opposite.merge(opposite, rule="rows", X=X, y=1 - y)._pull <= 1.5 * 6


def test_rows_of_an_exact_sum_change_nothing() -> None:
    found = parts(VovkAzouryWarmuth(regularization=0.3), 1)
    X, y, _ = stream(1, 20, seed=7)
    assert_same_state(merge(found, rule="rows", X=X, y=y), merge(found))


def test_bad_rows_for_the_rule_are_refused() -> None:
    found = parts(AIOLI(radius=3.0), 2)
    before = [fingerprint(part) for part in found]
    X, y, _ = stream(2, 20, seed=7)
    X_with_a_hole = X.copy()
    X_with_a_hole[4, 1] = np.nan
    for rule, rows, words in (
        ("rows", {}, 'pass X and y, rows that no part has learned, with rule="rows"'),
        ("rows", {"X": X}, "pass X and y"),
        ("rows", {"y": y}, "pass X and y"),
        ("balanced", {"X": X, "y": y}, "pass X and y"),
        ("sum", {"y": y}, "pass X and y"),
        ("rows", {"X": X_with_a_hole, "y": y}, "row 4, column 1"),
        ("rows", {"X": X[:, :2], "y": y}, "2 features"),
        ("rows", {"X": X[:5], "y": y}, "inconsistent numbers of samples"),
        ("rows", {"X": X[:0], "y": y[:0]}, "0 sample"),
        ("rows", {"X": X, "y": y + 5}, "is not one of"),
    ):
        with pytest.raises(ValueError, match=words):
            merge(found, rule=rule, **rows)
    assert [fingerprint(part) for part in found] == before


def test_the_rule_is_checked() -> None:
    found = parts(AIOLI(radius=3.0), 2)
    for call in (lambda: merge(found, rule="mean"), lambda: fit_sharded(AIOLI(), *stream(2)[:2], 2, rule="mean")):
        with pytest.raises(ValueError, match="rule='mean' is unknown: choose one of"):
            call()


# ---------------------------------------------------------------------- the certificate


@mergeable
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sizes", [(1,) * 40, (60, 60), (200, 3, 50)], ids=len)
def test_the_certificate_is_above_the_regret_of_the_union(
    learner: Any, K: int, weighted: bool, sizes: tuple[int, ...]
) -> None:
    X, y, weight = stream(K, sum(sizes))
    found = parts(learner, K, sizes, weighted)
    competition = found[0].competes_with
    domain = Ball(2.0) if K == 1 else competition.domain
    given = {} if K == 1 else {"classes": range(K)}
    best = best_in_hindsight(
        X, y, loss=competition.loss, domain=domain, sample_weight=weight if weighted else None, **given
    )
    for rule in ("balanced", "sum", "rows"):
        rows = dict(zip("Xy", stream(K, 30, seed=7), strict=False)) if rule == "rows" else {}
        merged = merge(found, rule, **rows)
        assert merged.competes_with == competition
        certificate = merged.regret_certificate(2.0 if K == 1 else None)
        assert merged.total_loss_ - best.loss <= certificate, rule
        with pytest.raises(NoBound, match="learner that sees all rows"):
            merged.regret_bound(**({"comparator_norm": 2.0} if K == 1 else {}))


def test_a_merged_certificate_is_at_most_the_sum() -> None:
    """One comparator for all rows is no better than one for each part; lambda is paid once."""
    found = parts(AIOLI(radius=3.0), 2)
    assert merge(found).regret_certificate() <= sum(part.regret_certificate() for part in found)


# ---------------------------------------------------------------------- what is merged is a learner


@mergeable
def test_it_learns_on_is_saved_and_is_merged_again(learner: Any, K: int, tmp_path: Path) -> None:
    found = parts(learner, K)
    before = [fingerprint(part) for part in found]
    merged = merge(found)
    again = through_file(merged, tmp_path)
    assert_same_state(merged, again)
    assert again._parts == 3
    assert merged.regret_certificate(1.0) == again.regret_certificate(1.0)
    X, y, _ = stream(K, 40, seed=5)
    assert np.array_equal(merged.predict_then_learn(X, y), again.predict_then_learn(X, y))
    assert_same_state(merged, again)
    assert merge([merged, again, found[0]])._parts == 7
    assert [fingerprint(part) for part in found] == before
    assert clone(merged)._parts == merged.fit(X, y)._parts == 1
    assert_same_state(merged, clone(learner).fit(X, y))


def test_a_running_game_keeps_its_parameters() -> None:
    a, b = parts(AIOLI(radius=3.0), 2, (20, 20))
    a.set_params(radius=7.0)
    assert a.merge(b).radius == 3.0


def test_names_and_labels_are_kept() -> None:
    X, y, _ = stream(2, 40)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    labels = np.array(["no", "yes"])[y]
    found = [AIOLI().fit(frame[i::2], labels[i::2]) for i in range(2)]
    merged = merge(found)
    assert list(merged.feature_names_in_) == ["a", "b", "c"]
    assert set(merged.predict(frame)) <= {"no", "yes"}
    with pytest.raises(ValueError, match=r"learners\[1\] has 3 features \(c, b, a\)"):
        merge([found[0], AIOLI().fit(frame[["c", "b", "a"]], labels)])


@pytest.mark.parametrize("entry", LEARNERS, ids=str)
def test_others_are_refused(entry: Any) -> None:
    if isinstance(entry.learner, AIOLI | FOLKLORE | GAF | GeneralGAF | VovkAzouryWarmuth):
        return
    X, y = entry.stream("iid", n=12, d=3)
    learner = entry.new().partial_fit(X, y, **entry.first)
    with pytest.raises(ValueError, match=r"cannot be merged: (each of its steps|it stores|its weights)"):
        learner.merge(learner)
    with pytest.raises(ValueError, match="cannot be merged"):
        fit_sharded(entry.new(), X, y, 2, **entry.first)


def test_different_learners_are_refused() -> None:
    X, y, _ = stream(2)
    a = AIOLI(radius=3.0).fit(X, y)
    for other, words in (
        ([], "1 learners given"),
        ([AIOLI(radius=3.0)], "is not fitted"),
        ([3], "not a learner of regretless"),
        ([FOLKLORE().fit(X, y)], "the same class"),
        ([AIOLI(radius=4.0).fit(X, y)], "has radius=4.0"),
        ([AIOLI(radius=3.0).fit(X, y, classes=[1, 0])], r"classes \[1, 0\]"),
        ([AIOLI(radius=3.0).fit(X[:, :2], y)], "2 features"),
    ):
        with pytest.raises(ValueError, match=words):
            merge([a, *other])


def test_what_rounding_has_eaten_is_refused() -> None:
    X, y, _ = stream(2)
    with pytest.raises(ValueError, match="ill-conditioned"):
        merge([AIOLI(radius=1.0).fit(X[rows] * [1.0, 1.0, 1e12], y[rows]) for rows in (slice(60), slice(60, None))])
    learner = AIOLI(radius=1.0).fit(X, y)
    for lost in (np.diag([1.0, 1.0, 1e-13]), np.diag([1.0, 1.0, -1e-17])):
        learner.state_ = learner.state_._replace(P=lost)
        with pytest.raises(ValueError, match="ill-conditioned"):
            merge([learner, learner])


# ---------------------------------------------------------------------- shards


@mergeable
def test_one_shard_is_one_pass(learner: Any, K: int) -> None:
    X, y, weight = stream(K)
    for m in (None, 7, 1000):
        game = fit_sharded(learner, X, y, 1, sync_every=m, sample_weight=weight)
        assert_same_state(game, clone(learner).fit(X, y, sample_weight=weight))
        assert game._parts == 1


@mergeable
@pytest.mark.parametrize("n", [1, 2, 119, 120])
def test_without_syncs_it_is_merge(learner: Any, K: int, n: int) -> None:
    X, y, weight = (array[:n] for array in stream(K))
    given = {"classes": range(K)} if K > 1 else {}
    game = fit_sharded(learner, X, y, 4, sample_weight=weight, **given)
    m = -(-n // 4)
    found = [
        clone(learner).fit(X[i : i + m], y[i : i + m], sample_weight=weight[i : i + m], **given) for i in range(0, n, m)
    ]
    assert_alike(game, merge(found) if len(found) > 1 else found[0])
    assert not hasattr(learner, "state_")


@pytest.mark.parametrize(("n_shards", "m"), [(2, 1), (3, 5), (4, 50), (7, 16)])
def test_syncs_count_the_past_once(n_shards: int, m: int) -> None:
    """The same by hand: the forecasts of each stretch from its beginning, and the sum of all quadratics."""
    X, y, _ = stream(2, 130)
    learner = AIOLI(radius=3.0)
    game = fit_sharded(learner, X, y, n_shards, sync_every=m, rule="sum")
    said: list[np.ndarray] = []
    for start in range(0, len(y), n_shards * m):
        stop = min(start + n_shards * m, len(y))
        if start:
            before = fit_sharded(learner, X[:start], y[:start], n_shards, sync_every=m, classes=[0, 1], rule="sum")
        else:
            before = clone(learner).partial_fit(X[:1], y[:1], classes=[0, 1], sample_weight=[0.0])
        for i in range(start, stop, m):
            part = slice(i, min(i + m, stop))
            said.append(copy.deepcopy(before).predict_then_learn(X[part], y[part]))
    A, b, const = brute_force(game, 2, X, y, np.concatenate(said))
    A += game._constants.regularization * np.eye(3)
    for mine, defined in zip(quadratic(game), (A, b, const), strict=True):
        np.testing.assert_allclose(mine, defined, rtol=1e-9, atol=1e-9)
    assert game.state_.tally[ROWS] == len(y)
    best = best_in_hindsight(X, y, domain=Ball(3.0))
    assert game.total_loss_ - best.loss <= game.regret_certificate()


@mergeable
def test_the_second_stretch_weighs_the_rules(learner: Any, K: int) -> None:
    """Before it is learned: the first one is merged as by `merge`, whatever comes after the second."""
    X, y, weight = stream(K, 120)
    given = {"classes": range(K)} if K > 1 else {}
    game = fit_sharded(learner, X, y, 3, 20, rule="rows", **given)
    found = [clone(learner).fit(X[i : i + 20], y[i : i + 20], **given) for i in (0, 20, 40)]
    first = merge(found, rule="rows", X=X[60:], y=y[60:])
    if K > 1:
        assert (game._pull, game._priors) == (first._pull, first._priors)
        assert game.state_.tally[ROWS] == 120
        best = best_in_hindsight(X, y, domain=game.competes_with.domain, loss=game.competes_with.loss)
        assert game.total_loss_ - best.loss <= game.regret_certificate()
        weighted = fit_sharded(learner, X, y, 3, 20, rule="rows", sample_weight=np.r_[np.ones(60), weight[60:]])
        assert weighted._pull != game._pull or weighted._pull == 1.0
    else:
        assert_same_state(game, fit_sharded(learner, X, y, 3, 20))
    assert_same_state(fit_sharded(learner, X, y, 1, rule="rows", **given), clone(learner).fit(X, y, **given))
    for m in (None, 40):
        with pytest.raises(ValueError, match=r'rule="rows" uses the rows after the first 120, and there are 120'):
            fit_sharded(learner, X, y, 3, m, rule="rows", **given)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", "loky", "sequential"])
def test_workers_of_any_kind_give_the_same_bits(backend: str) -> None:
    X, y, _ = stream(3, 90)
    alone = fit_sharded(FOLKLORE(radius=2.0), X, y, 3, sync_every=15)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert_same_state(fit_sharded(FOLKLORE(radius=2.0), X, y, 3, sync_every=15), alone)
    assert_same_state(fit_sharded(FOLKLORE(radius=2.0), X, y, 3, sync_every=15, n_jobs=1), alone)


def test_more_shards_and_rarer_syncs_cost_more() -> None:
    X, y, _ = stream(2, 2000, seed=1)
    one = AIOLI(radius=3.0).fit(X, y).total_loss_
    often, rarely, never = (fit_sharded(AIOLI(radius=3.0), X, y, 16, m).total_loss_ for m in (1, 25, None))
    assert one - 1.0 < often < rarely < never


def test_bad_rows_are_named_by_their_place_in_the_whole() -> None:
    X, y, _ = stream(2, 60)
    X[47, 1] = np.nan
    with pytest.raises(BadRow, match="row 47, column 1"):
        fit_sharded(AIOLI(), X, y, 4)
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="n_shards"):
            fit_sharded(AIOLI(), X[:40], y[:40], wrong)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="sync_every"):
            fit_sharded(AIOLI(), X[:40], y[:40], 2, sync_every=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cannot be merged"):
        fit_sharded(OGD(), X[:40], y[:40], 2)
