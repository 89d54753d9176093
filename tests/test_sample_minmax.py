"""SampleMinmaxPredictor: its definition, its theorem row by row and in expectation, and what it refuses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logsumexp, softmax
from sklearn.base import clone

from reference import sample_minmax as naive
from regretless import BadRow, NoBound, SampleMinmaxPredictor, bounds
from regretless.learners.batch import rows


def sample(n, d, K, seed=0, size=1.0):
    rng = np.random.default_rng(seed)
    X = size * rng.normal(size=(n, d))
    return X, np.append(np.arange(K), rng.integers(K, size=n - K))


# ---------------------------------------------------------------------- the definition


@pytest.mark.parametrize("K", [2, 3, 4])
@pytest.mark.parametrize("radius", [None, 0.7])
@pytest.mark.parametrize("lam", [None, 0.01, 30.0])
def test_against_brute_force(K, radius, lam):
    X, y = sample(25, 3, K)
    new = np.random.default_rng(1).normal(size=(4, 3)) * np.array([0.1, 1.0, 3.0, 20.0])[:, None]
    model = SampleMinmaxPredictor(regularization=lam, radius=radius).fit(X, y)
    expected = np.array([naive.hedges(X, y, x, model.regularization_, K, radius or np.inf) for x in new])
    np.testing.assert_allclose(model.predict_proba(new), softmax(expected, axis=1), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(model.predict(new), np.argmax(expected, axis=1))
    scores = expected[:, 1] - expected[:, 0] if K == 2 else expected
    np.testing.assert_allclose(model.decision_function(new), scores, rtol=1e-9, atol=1e-9)
    fitted = naive.refitted(X, y, model.regularization_, K, radius or np.inf)
    np.testing.assert_allclose(model.coef_, np.atleast_2d(fitted), rtol=0, atol=1e-9)
    estimate = np.mean(logsumexp(expected, axis=1)) + model.regularization_ * 0.25 / 26
    assert model.excess_risk_estimate(new, comparator_norm=0.5) == pytest.approx(estimate, abs=1e-9)


def test_refits_that_do_not_settle_take_damped_steps(monkeypatch):
    """The steps with the fitted Hessian are only a shortcut."""
    X, y = sample(30, 2, 2)
    new = X[:5] + 1.0
    model = SampleMinmaxPredictor(regularization=0.5).fit(X, y)
    quick = model.predict_proba(new)
    model._leader = model._leader._replace(L=model._leader.L / 100)  # a wrong Hessian: steps are far too long
    np.testing.assert_allclose(model.predict_proba(new), quick, atol=1e-10)


def test_a_block_is_its_rows():
    X, y = sample(50, 3, 3)
    model = SampleMinmaxPredictor().fit(X, y)
    whole = model.predict_proba(X)
    np.testing.assert_array_equal(whole, np.vstack([model.predict_proba(x[None]) for x in X]))


def test_weights_are_repetitions_and_order_is_nothing():
    X, y = sample(40, 3, 3)
    weight = np.random.default_rng(2).integers(0, 4, size=40)
    one = SampleMinmaxPredictor(regularization=1.0).fit(X, y, sample_weight=weight)
    again = np.repeat(np.arange(40), weight)[::-1]
    two = SampleMinmaxPredictor(regularization=1.0).fit(X[again], y[again])
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-10)
    assert one.n_rows_ == two.n_rows_ == weight.sum()


def test_far_from_the_sample_it_is_less_certain_than_the_fit():
    X, y = sample(60, 2, 2)
    y = (X[:, 0] > 0).astype(int)
    model = SampleMinmaxPredictor(regularization=0.1).fit(X, y)
    far = np.array([[0.0, 50.0]])  # a direction in which labels say little
    certain = expit(abs(far @ model.coef_[0]))
    assert np.abs(model.predict_proba(far) - 0.5).max() < certain - 0.5


# ---------------------------------------------------------------------- the theorem


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("radius", [None, 0.5])
def test_the_normaliser_is_within_the_leverage(K, radius):
    """The inequality of the proof, for every row and each label, also for labels that no weights explain."""
    closest = 0.0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(K, 12)), int(rng.integers(1, 4))
        X, y = sample(n, d, K, seed)
        x = rng.normal(size=d)
        R = max(np.linalg.norm(X, axis=1).max(), np.linalg.norm(x))
        lam = R**2 * rng.choice([0.25, 1.0, 4.0, 50.0])
        grown = np.vstack([X, x])
        rho = R**2 / (2 * lam)
        factor = np.expm1(2 * rho) / (2 * rho) * (1.0 if K == 2 else np.exp(4 * rho))
        refits = [naive.refitted(grown, np.append(y, label), lam, K, radius or np.inf) for label in range(K)]
        chances = [softmax(naive.logits(w, grown, K), axis=1) for w in refits]
        excess = sum(p[-1, label] for label, p in enumerate(chances)) - 1
        for p in chances:
            if K == 2:
                h = p[:, 0] * p[:, 1]
                H = (grown.T * h) @ grown + 2 * lam * np.eye(d)
                leverage = h[-1] * x @ np.linalg.solve(H, x)
            else:
                S = [np.diag(row) - np.outer(row, row) for row in p]
                parts = [np.kron(s, np.outer(row, row)) for s, row in zip(S, grown, strict=True)]
                leverage = np.trace(np.linalg.solve(sum(parts) + 2 * lam * np.eye(K * d), parts[-1]))
            assert -1e-12 <= excess <= factor * leverage * (1 + 1e-9)
            closest = max(closest, excess / (factor * leverage))
    assert closest > (0.2 if radius is None else 0.0)  # the constant is not far from the truth


RISKY = {  # rows, and the probabilities of their labels: no weights explain them
    2: (np.array([[1.0, 0.0], [0.6, 0.8], [-0.6, 0.8], [0.0, 1.0]]), np.array([0.97, 0.1, 0.9, 0.5])),
    3: (
        np.array([[1.0, 0.0], [0.6, 0.8], [-0.6, 0.8]]),
        np.array([[0.9, 0.05, 0.05], [0.0, 0.2, 0.8], [0.5, 0.5, 0.0]]),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("K", [2, 3])
def test_the_expected_excess_risk_is_within_the_bound(K):
    """Exact risks, over the drawn samples; the estimate from rows alone is between the two."""
    support, chances = RISKY[K]
    chances = np.stack([1 - chances, chances], axis=1) if K == 2 else chances
    n, B, lam = 60, 3.0, K - 1.0

    def risk(log_p):
        return -(chances * log_p).sum(axis=1).mean()

    def of_weights(w):
        return risk(log_softmax(naive.logits(w if K == 2 else w.reshape(K, 2), support, K), axis=1))

    start = np.zeros(2 if K == 2 else 6)
    ball = {"type": "ineq", "fun": lambda w: B**2 - w @ w}
    best = minimize(of_weights, start, constraints=[ball], method="SLSQP", tol=1e-12)
    excess, estimate = [], []
    rng = np.random.default_rng(0)
    for _ in range(150):
        drawn = rng.integers(len(support), size=n)
        y = (rng.random((n, 1)) > chances[drawn].cumsum(axis=1)[:, :-1]).sum(axis=1)
        if len(np.unique(y)) < K:
            continue
        model = SampleMinmaxPredictor(regularization=lam, feature_bound=1.0).fit(support[drawn], y)
        excess.append(risk(np.log(model.predict_proba(support))) - best.fun)
        estimate.append(model.excess_risk_estimate(support, comparator_norm=B))
    assert len(excess) > 140
    assert np.mean(excess) < np.mean(estimate) < model.excess_risk_bound(comparator_norm=B) < np.log(K)


def test_the_bound():
    X, y = sample(200, 3, 2)
    model = SampleMinmaxPredictor(radius=2.0, feature_bound=6.0).fit(X, y)
    assert model.regularization_ == 36.0
    given = {"n_features": 3, "n_classes": 2, "feature_bound": 6.0, "regularization": 36.0}
    assert model.excess_risk_bound() == bounds.sample_minmax(200, comparator_norm=2.0, **given)
    # the form of the docstring, for many rows
    many = bounds.sample_minmax(10**9, comparator_norm=2.0, **given) * (10**9 + 1)
    assert many == pytest.approx(4.0 * 36.0 + (np.e - 1) * 3, rel=1e-6)
    assert bounds.sample_minmax(10, n_features=3, n_classes=2, comparator_norm=1.0, feature_bound=0.0,
                                regularization=2.0) == 2.0 / 11  # fmt: skip
    assert bounds.sample_minmax(10, comparator_norm=0.0, **(given | {"regularization": 1e-3})) == np.inf
    # many features: the leverages of n rows cannot exceed their trace
    wide = bounds.sample_minmax(100, comparator_norm=0.0, **(given | {"n_features": 10**9}))
    assert wide < (np.e - 1) / 8


# ---------------------------------------------------------------------- refusals


def test_no_bound_is_said_not_guessed():
    X, y = sample(40, 3, 2)
    with pytest.raises(NoBound, match="pass comparator_norm"):
        SampleMinmaxPredictor().fit(X, y).excess_risk_bound()
    with pytest.raises(NoBound, match="outside the ball of radius 2"):
        SampleMinmaxPredictor(radius=2.0).fit(X, y).excess_risk_bound(comparator_norm=3.0)
    with pytest.raises(NoBound, match="weight 1"):
        SampleMinmaxPredictor(radius=2.0).fit(X, y, sample_weight=2.0).excess_risk_bound()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"regularization": 0.0}, "regularization=0.0"),
        ({"radius": -1.0}, "radius=-1.0"),
        ({"feature_bound": "1"}, "feature_bound='1'"),
        ({"feature_bound": 1e-3}, "beyond feature_bound"),
    ],
)
def test_bad_input_changes_nothing(wrong, words):
    X, y = sample(40, 3, 2)
    model = SampleMinmaxPredictor().fit(X, y)
    before = pickle.dumps(vars(model.set_params(**wrong)))
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)
    assert pickle.dumps(vars(model)) == before
    bad = X.copy()
    bad[7, 1] = np.nan
    model = SampleMinmaxPredictor().fit(X, y)
    for call in (lambda: model.fit(bad, y), lambda: model.predict_proba(bad)):
        with pytest.raises(BadRow, match="row 7, column 1"):
            call()
    for labels, words in ((y[:-1], "40 rows"), (np.zeros(40), "only one class"), (np.full((40, 2), 0.5), "one label")):
        with pytest.raises(ValueError, match=words):
            model.fit(X, labels)
    with pytest.raises(ValueError, match="all weights are zero"):
        model.fit(X, y, sample_weight=0.0)
    assert not hasattr(clone(model), "coef_")


def test_rows_of_any_size():
    X, _ = sample(20, 2, 2)
    for size in (0.0, 1e-150, 1e-8, 1e8, 1e148):
        for K in (2, 3):
            model = SampleMinmaxPredictor().fit(size * X, np.arange(20) % K)
            p = model.predict_proba(np.vstack([size * X, 1e3 * size * X]))
            assert np.isfinite(p).all()
            np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)


def test_a_long_call_shows_its_progress(monkeypatch):
    bars = []

    def recording(wanted, total, *args, **kwargs):
        bars.append((wanted, total))
        return bar(wanted, total, *args, **kwargs)

    bar = rows.progress_bar
    monkeypatch.setattr(rows, "progress_bar", recording)
    X, y = sample(200, 2, 2)
    model = SampleMinmaxPredictor().fit(X, y)
    model.predict_proba(X)
    monkeypatch.setattr(rows, "LONG", 0.0)
    model.predict_proba(X)
    assert bars == [(False, 168), (True, 168)]
