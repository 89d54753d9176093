"""OnlineToBatch: which row is kept, what is averaged, what is promised, and scikit-learn's tools around it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from learners import assert_same_state, fingerprint, make_stream, within
from regretless import (
    AIOLI,
    FOLKLORE,
    FTRL,
    GAF,
    OGD,
    ONS,
    BadRow,
    KernelAIOLI,
    LinearizedFTRL,
    MirrorDescent,
    MirrorDescentAggregator,
    Mixture,
    NoBound,
    OneVsRest,
    OnlineLogisticRegression,
    OnlineToBatch,
    Perceptron,
    StronglyConvexOGD,
    VovkAzouryWarmuth,
    bounds,
)

IMPROPER: list[tuple[Any, int]] = [
    (AIOLI(radius=3.0), 2),
    (FOLKLORE(radius=2.0), 3),
    (GAF(radius=2.0), 2),
    (FTRL(), 2),
    (KernelAIOLI(), 2),
    (Mixture([AIOLI(), OGD()]), 2),
    (OneVsRest(AIOLI()), 3),
    (OnlineLogisticRegression(), 3),
    (MirrorDescentAggregator(), 2),
    (VovkAzouryWarmuth(), 1),
]
PROPER: list[tuple[Any, int]] = [
    (ONS(radius=2.0, gamma=0.5, epsilon=0.5), 2),
    (ONS(radius=2.0, gamma=0.5, epsilon=0.5), 3),
    (OGD(radius=2.0), 2),
    (OGD(radius=2.0), 3),
    (OGD(loss="squared", radius=2.0), 1),
    (StronglyConvexOGD(), 2),
    (LinearizedFTRL(alpha=0.5), 3),
    (MirrorDescent(averaging=False), 2),
    (Perceptron(), 2),
]


def ids(cases: list[tuple[Any, int]]) -> list[str]:
    return [f"{learner!r}-{K}" for learner, K in cases]


def stream(K: int, n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_stream("iid", n, 3, K, seed=seed)
    return within(X, 1.0), y


def says(model: Any, X: np.ndarray) -> np.ndarray:
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


# ---------------------------------------------------------------------- the random row


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_the_row_is_uniform(n: int) -> None:
    X, y = stream(2, n)
    kept = [OnlineToBatch(OGD(), random_state=seed).fit(X, y, classes=[0, 1]).n_rows_kept_ for seed in range(100 * n)]
    counts = np.bincount(kept, minlength=n)
    assert counts.size == n
    if n > 1:
        assert stats.chisquare(counts).pvalue > 1e-3


def test_few_copies_are_made() -> None:
    X, y = stream(2, 20_000)
    model = OnlineToBatch(AIOLI())
    kept = []
    keep = model._keep
    model._keep = lambda t: (kept.append(t), keep(t))  # type: ignore[method-assign,assignment,return-value,func-returns-value]
    model.fit(X, y)
    assert 1 <= len(kept) <= 40
    assert model.n_rows_kept_ == kept[-1] - 1
    assert model._next_row > 20_000


@pytest.mark.parametrize(("base", "K"), IMPROPER + PROPER, ids=ids(IMPROPER + PROPER))
@pytest.mark.parametrize("seed", [0, 3])
def test_the_kept_learner_has_learned_the_rows_before(base: Any, K: int, seed: int) -> None:
    X, y = stream(K)
    given = {"classes": range(K)} if K > 1 else {}
    model = OnlineToBatch(base, random_state=seed).fit(X, y, **given)
    s = model.n_rows_kept_
    assert 0 <= s < 60
    alone = clone(base).partial_fit(X, y, sample_weight=np.where(np.arange(60) < s, 1.0, 0.0), **given)
    assert_same_state(model.estimator_, clone(base).fit(X, y, **given))
    if not isinstance(base, OnlineLogisticRegression):  # which counts the rows it has met, to rescale them
        assert_same_state(model.kept_, alone)
        assert np.array_equal(says(model, X), says(alone, X))
    if s:
        assert_same_state(model.kept_, clone(base).fit(X[:s], y[:s], **given))
    assert not hasattr(base, "state_")


@pytest.mark.parametrize("method", ["random", "average", "last"])
def test_blocks_are_rows(method: str) -> None:
    X, y = stream(3, 200)
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.0], size=200)
    whole = OnlineToBatch(OGD(), method, random_state=2).fit(X, y, sample_weight=weight)
    cut = OnlineToBatch(OGD(), method, random_state=2)
    for start, stop in ((0, 1), (1, 30), (30, 31), (31, 200)):
        cut.partial_fit(X[start:stop], y[start:stop], classes=range(3), sample_weight=weight[start:stop])
    assert np.array_equal(whole.predict_proba(X), cut.predict_proba(X))
    assert whole.n_rows_kept_ == cut.n_rows_kept_
    assert whole.n_rows_ == cut.n_rows_ == np.count_nonzero(weight)


def test_rows_of_weight_0_are_left_out() -> None:
    X, y = stream(2, 90)
    weight = np.tile([1.0, 0.0, 0.0], 30)
    for method in ("random", "average", "suffix", "last"):
        one = OnlineToBatch(OGD(), method, random_state=5).fit(X, y, sample_weight=weight)
        other = OnlineToBatch(OGD(), method, random_state=5).fit(X[::3], y[::3], classes=[0, 1])
        assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    nothing = OnlineToBatch(OGD(), "average").fit(X, y, sample_weight=0.0)
    np.testing.assert_array_equal(nothing.predict_proba(X), 0.5)
    with pytest.raises(NoBound, match="no row"):
        nothing.excess_risk_bound()


# ---------------------------------------------------------------------- averages


@pytest.mark.parametrize(("base", "K"), PROPER, ids=ids(PROPER))
@pytest.mark.parametrize("method", ["average", "suffix"])
def test_the_mean_of_the_weights(base: Any, K: int, method: str) -> None:
    X, y = stream(K)
    given = {"classes": range(K)} if K > 1 else {}
    learner = clone(base).partial_fit(X[:1], y[:1], sample_weight=[0.0], **given)
    scores = []
    for x, label in zip(X, y, strict=True):  # linear in the weights, so that scores are averaged with them
        scores.append(learner.predict(X) if K == 1 else learner.decision_function(X))
        learner.learn_one(x, label)
    first = 0 if method == "average" else 30
    model = OnlineToBatch(base, method).fit(X, y, **given)
    mean = np.mean(scores[first:], axis=0)
    found = model.predict(X) if K == 1 else model.decision_function(X)
    if isinstance(base, ONS) and K > 2:  # up to a constant
        found, mean = (z - z.mean(axis=1, keepdims=True) for z in (found, mean))
    np.testing.assert_allclose(found, mean, rtol=1e-10, atol=1e-12)
    assert_same_state(model.estimator_, learner)
    assert model.n_rows_kept_ == 60 - first
    assert model.kept_ is None


@pytest.mark.parametrize(("base", "K"), IMPROPER, ids=ids(IMPROPER))
@pytest.mark.parametrize("method", ["average", "suffix"])
def test_improper_learners_have_no_average(base: Any, K: int, method: str) -> None:
    X, y = stream(K)
    model = OnlineToBatch(base, method)
    with pytest.raises(ValueError, match=r'linear in the row.*"random" or "last"'):
        model.fit(X, y)
    assert set(vars(model)) == {"estimator", "method", "random_state"}


# ---------------------------------------------------------------------- the promise


def test_the_corollary() -> None:
    X, y = stream(2, 500)
    B, R = 3.0, 1.0
    base = AIOLI(radius=B, curvature="aioli", feature_bound=R)
    found = OnlineToBatch(base).fit(X, y).excess_risk_bound()
    assert found == pytest.approx(bounds.aioli_excess_risk(500, n_features=3, radius=B, feature_bound=R), rel=1e-12)
    three = FOLKLORE(radius=1.0, feature_bound=1.0)
    X, y = stream(3, 500)
    model = OnlineToBatch(three).fit(X, y)
    assert model.excess_risk_bound() == clone(three).fit(X, y).regret_bound(500) / 500
    assert OnlineToBatch(OGD(radius=2.0), "average").fit(X, y).excess_risk_bound() > 0
    numbers = OnlineToBatch(VovkAzouryWarmuth()).fit(*stream(1))
    assert numbers.excess_risk_bound(comparator_norm=2.0) > 0


@pytest.mark.parametrize(
    ("base", "method", "words"),
    [
        (OGD(), "last", "no theorem"),
        (OGD(), "suffix", "no theorem"),
        (Perceptron(), "average", "Perceptron"),
        (VovkAzouryWarmuth(), "random", "pass comparator_norm"),
        (GAF(regularization=0.1), "random", "lambda|regularization"),
    ],
    ids=str,
)
def test_no_bound_is_said_not_guessed(base: Any, method: str, words: str) -> None:
    X, y = stream(1 if is_regressor(base) else 2)
    with pytest.raises(NoBound, match=words):
        OnlineToBatch(base, method).fit(X, y).excess_risk_bound()


@pytest.mark.slow
def test_the_excess_risk_is_within_the_bound() -> None:
    """Over many streams: the mean risk of the kept predictor, on fresh rows, above that of the true weights."""
    w = np.array([2.0, -1.0, 0.5])
    excess, bound = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = within(rng.normal(size=(1100, 3)), 1.0)
        p = expit(X @ w)
        y = rng.random(1100) < p
        model = OnlineToBatch(AIOLI(radius=3.0, feature_bound=1.0), random_state=seed).fit(X[:100], y[:100])
        q = model.predict_proba(X[100:])[:, 1]
        q_p = p[100:]
        excess.append(np.mean(q_p * np.log(q_p / q) + (1 - q_p) * np.log((1 - q_p) / (1 - q))))
        bound.append(model.excess_risk_bound())
    assert 0 < np.mean(excess) < np.mean(bound)


# ---------------------------------------------------------------------- with high probability

SUPPORT = np.array([[1.0, 0.0], [0.6, 0.8], [-0.6, 0.8], [0.0, -1.0]])
CHANCES = {  # of the labels of these rows, which no weights explain
    2: np.array([[0.03, 0.97], [0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]),
    3: np.array([[0.9, 0.05, 0.05], [0.0, 0.2, 0.8], [0.5, 0.5, 0.0], [0.1, 0.8, 0.1]]),
}


@pytest.mark.parametrize(
    ("base", "K"),
    [(ONS(radius=1.0, feature_bound=1.0), 2), (OGD(radius=1.0), 2), (OGD(radius=0.7), 3)],
    ids=str,
)
def test_the_excess_risk_is_within_the_bound_with_its_probability(base: Any, K: int) -> None:
    """Exact risks over many samples: the bound fails at most as often as it says, and with more rows is small."""
    failure = 0.2

    def risk(log_p: np.ndarray) -> float:
        return float(-(CHANCES[K] * log_p).sum(axis=1).mean())

    def of_weights(w: np.ndarray) -> float:
        z = np.outer(SUPPORT @ w, [-0.5, 0.5]) if K == 2 else SUPPORT @ w.reshape(K, 2).T
        return risk(log_softmax(z, axis=1))

    ball = {"type": "ineq", "fun": lambda w: base.radius**2 - w @ w}
    best = minimize(of_weights, np.zeros(2 if K == 2 else 2 * K), constraints=[ball], method="SLSQP", tol=1e-12).fun
    rng = np.random.default_rng(0)
    excess, bound = [], []
    for n in [300] * 40 + [4000]:
        drawn = rng.integers(4, size=n)
        y = (rng.random((n, 1)) > CHANCES[K][drawn].cumsum(axis=1)[:, :-1]).sum(axis=1)
        model = OnlineToBatch(base, "average").fit(SUPPORT[drawn], y, classes=range(K))
        excess.append(risk(np.log(model.predict_proba(SUPPORT))) - best)
        bound.append(model.excess_risk_bound(failure=failure))
    assert np.mean(np.array(excess) > bound) <= failure
    assert min(excess) > -1e-9
    assert bound[-1] < 0.1 * np.log(K)
    assert model.excess_risk_bound(failure=0.01) > bound[-1]


def test_the_inequalities_of_its_proof() -> None:
    """E e^(-alpha D) <= 1 over the best weights, and x <= c (1 - e^(-eta x)) / eta - ... up to the largest D."""
    for K, spread in ((2, 0.3), (2, 2.0), (4, 1.0), (3, 1e-6)):
        alpha = np.exp(-spread) / (K - 1)
        most = np.log1p((K - 1) * np.exp(spread)) - np.log1p((K - 1) * np.exp(-spread))
        for j in range(1, 9):
            eta = alpha / 2**j
            a, e = -np.expm1(-alpha * most) / alpha, -np.expm1(-eta * most) / eta
            c = max(1 / (1 - 0.5**j), (most - a) / (e - a) if spread > 1e-3 else 0.0)
            x = np.concatenate([-np.logspace(-3, 2, 200), np.linspace(0, most, 200)])
            right = -c * np.expm1(-eta * x) / eta + (c - 1) * np.expm1(-alpha * x) / alpha
            assert np.all(x <= right + 1e-9 * (1 + np.abs(right)))
    rng = np.random.default_rng(0)
    X, y = SUPPORT[rng.integers(4, size=40)], rng.integers(2, size=40) * 2 - 1
    ball = {"type": "ineq", "fun": lambda w: 1.0 - w @ w}
    u = minimize(lambda w: np.logaddexp(0, -y * (X @ w)).mean(), np.zeros(2), constraints=[ball], tol=1e-12).x
    for _ in range(200):
        w = rng.normal(size=2)
        w *= rng.random() / np.linalg.norm(w)
        D = np.logaddexp(0, -y * (X @ w)) - np.logaddexp(0, -y * (X @ u))
        assert np.exp(-np.exp(-1.0) * D).mean() <= 1 + 1e-7


@pytest.mark.parametrize(
    ("base", "method", "given", "words"),
    [
        (AIOLI(), "random", {"failure": 0.1}, "far above the mean"),
        (OGD(), "last", {"failure": 0.1}, "no theorem"),
        (OGD(loss="hinge"), "average", {"failure": 0.1}, "hinge loss over Ball"),
        (OGD(loss="squared"), "average", {"failure": 0.1}, "ShiftedLeastSquares"),
        (StronglyConvexOGD(loss="logistic", radius=1.0), "average", {"failure": 0.1}, "with regularization"),
        (OGD(), "average", {"failure": 0.1, "comparator_norm": 0.5}, "whole ball"),
        (OGD(), "average", {"failure": 1.0}, "between 0 and 1"),
        (ONS(gamma=5.0), "average", {"failure": 0.1}, "gamma"),
    ],
    ids=str,
)
def test_no_probability_is_said_not_guessed(base: Any, method: str, given: dict[str, float], words: str) -> None:
    X, y = stream(1 if is_regressor(base) else 2)
    with pytest.raises(NoBound, match=words):
        OnlineToBatch(base, method).fit(X, y).excess_risk_bound(**given)


def test_weights_have_no_probability() -> None:
    X, y = stream(2)
    with pytest.raises(NoBound, match="weight 1"):
        OnlineToBatch(OGD(), "average").fit(X, y, sample_weight=2.0).excess_risk_bound(failure=0.1)


# ---------------------------------------------------------------------- an estimator among others


@pytest.mark.parametrize("method", ["random", "last"])
def test_in_a_pipeline_under_cross_validation(method: str) -> None:
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    names = load_iris().target_names[y]
    model = OnlineToBatch(FOLKLORE(radius=5.0), method, random_state=4)
    assert cross_val_score(make_pipeline(StandardScaler(), model), X[order], names[order], cv=5).mean() > 0.7
    search = GridSearchCV(model, {"estimator__radius": [1e-3, 5.0], "method": ["last", "random"]}, cv=3)
    assert search.fit(X[order] - X.mean(axis=0), names[order]).best_params_["estimator__radius"] == 5.0


def test_of_numbers() -> None:
    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    model = OnlineToBatch(VovkAzouryWarmuth(regularization=0.01), "last")
    assert is_regressor(model)
    assert not is_classifier(model)
    assert is_classifier(OnlineToBatch(AIOLI()))
    assert cross_val_score(model, X[order], ((y - 150) / 80)[order], cv=4).mean() > 0.4
    assert not hasattr(model, "predict_proba")
    assert not hasattr(OnlineToBatch(Perceptron()), "predict_proba")


@pytest.mark.parametrize("method", ["random", "average", "suffix", "last"])
def test_it_is_pickled_and_cloned(method: str) -> None:
    X, y = stream(2)
    model = OnlineToBatch(OGD(), method).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert not hasattr(clone(model), "estimator_")
    before = fingerprint(model)
    model.predict(X)
    assert fingerprint(model) == before
    assert np.array_equal(OnlineToBatch(OGD(), method).fit(sparse.csr_matrix(X), y).predict(X), model.predict(X))


def test_bad_input_changes_nothing() -> None:
    X, y = stream(2)
    for wrong, words in (
        ({"method": "median"}, "method='median'"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": True}, "random_state"),
        ({"estimator": 3}, "estimator=3"),
    ):
        model = OnlineToBatch(AIOLI()).set_params(**wrong)
        with pytest.raises(ValueError, match=words):
            model.fit(X, y)
        assert set(vars(model)) == {"estimator", "method", "random_state"}
    model = OnlineToBatch(AIOLI()).fit(X, y)
    before = fingerprint(model)
    bad = X.copy()
    bad[40, 2] = np.inf
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(BadRow, match="row 40, column 2"):
            learn(bad, y)
        assert fingerprint(model) == before
    with pytest.raises(ValueError, match="suffix"):
        OnlineToBatch(OGD(), "suffix").partial_fit(X, y)
