"""ShiftedLeastSquares: its definition, the inequality of its theorem and its probability, and what it refuses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from reference import shifted as naive
from regretless import BadRow, NoBound, ShiftedLeastSquares, bounds


def sample(n=40, d=3, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    return X, np.clip(X @ np.linspace(1.0, -1.0, d) + noise * rng.normal(size=n), -1.0, 1.0)


# ---------------------------------------------------------------------- the definition


@pytest.mark.parametrize("lam", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("label_bound", [None, 1.0, 3.0])
def test_against_the_definition(lam, label_bound):
    X, y = sample()
    model = ShiftedLeastSquares(lam, label_bound).fit(X, y)
    Y = np.abs(y).max() if label_bound is None else label_bound
    new = np.vstack([sample(5, seed=1)[0], 20 * sample(2, seed=2)[0], np.zeros(3)])
    expected = [naive.mean_forecast(X, y, x, lam, Y) for x in new]
    np.testing.assert_allclose(model.predict(new), expected, rtol=0, atol=1e-9)
    labels, forecasts = naive.shifted_labels(X, y, lam, Y)
    w = np.linalg.solve(lam * np.eye(3) + X.T @ X, X.T @ labels)
    least = ((X @ w - labels) ** 2).sum() + lam * w @ w
    assert model.excess_ == pytest.approx(((forecasts - labels) ** 2).sum() - least, abs=1e-9)
    # the theorem of the forecaster, for labels up to 3 Y
    R = np.linalg.norm(X, axis=1).max()
    most = bounds.vovk_azoury_warmuth(40, n_features=3, comparator_norm=0.0, feature_bound=R, label_bound=3 * Y,
                                      regularization=lam)  # fmt: skip
    assert model.excess_ <= most


def test_a_block_is_its_rows():
    X, y = sample()
    model = ShiftedLeastSquares().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), [model.predict(x[None])[0] for x in X])


# ---------------------------------------------------------------------- the theorem


@pytest.mark.parametrize("M", [0.0, 0.5, 1.0, 4.0])
def test_the_inequality_of_the_proof(M):
    """e^(-eta zeta) <= 1 - eta Delta for all labels, forecasts and comparators; with 4 times the eta it is false."""
    eta = 1 / bounds.shifted_average(1, regret=0.0, label_bound=1.0, prediction_bound=M, failure=np.exp(-1))
    grid = np.linspace(-1, 1, 41)
    y, forecast, f = np.meshgrid(grid, grid, M * grid, indexing="ij")
    delta = (forecast - y) ** 2 - (f - y) ** 2
    zeta = 2 * ((forecast - y) ** 2 - ((f + forecast) / 2 - y) ** 2)
    assert np.all(np.exp(-eta * zeta) <= 1 - eta * delta + 1e-12)
    assert np.any(np.exp(-4 * eta * zeta) > 1 - 4 * eta * delta + 1e-6)


def test_the_excess_risk_is_within_the_bound_with_its_probability():
    """Exact risks for rows of a finite set whose labels are noise of size Y: deviations are as large as they can be."""
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-0.8, 0.6]])
    means = np.array([0.3, -0.2, 0.5, 0.0])  # of labels -1 and 1; no weights explain them
    u = np.linalg.lstsq(rows, means, rcond=None)[0]
    best = 1 - means @ means / 4 + ((rows @ u - means) ** 2).mean()
    failure, n = 0.2, 2000
    rng = np.random.default_rng(0)
    excess, bound = [], []
    for _ in range(60):
        drawn = rng.integers(4, size=n)
        y = np.where(rng.random(n) < (1 + means[drawn]) / 2, 1.0, -1.0)
        model = ShiftedLeastSquares(label_bound=1.0, feature_bound=1.0).fit(rows[drawn], y)
        excess.append(1 - means @ means / 4 + ((model.predict(rows) - means) ** 2).mean() - best)
        bound.append(model.excess_risk_bound(comparator_norm=np.linalg.norm(u), failure=failure))
    assert np.mean(np.array(excess) > bound) <= failure
    assert np.mean(bound) < 0.4 * (means @ means / 4)  # forecasts of 0 have a larger excess risk
    assert model.excess_risk_bound(comparator_norm=np.linalg.norm(u), failure=0.01) > bound[-1]


# ---------------------------------------------------------------------- refusals


def test_no_bound_is_said_not_guessed():
    X, y = sample()
    with pytest.raises(NoBound, match="declare label_bound"):
        ShiftedLeastSquares().fit(X, y).excess_risk_bound(comparator_norm=1.0)
    model = ShiftedLeastSquares(label_bound=1.0).fit(X, y)
    with pytest.raises(NoBound, match="between 0 and 1"):
        model.excess_risk_bound(comparator_norm=1.0, failure=0.0)
    with pytest.raises(ValueError, match="comparator_norm=-1"):
        model.excess_risk_bound(comparator_norm=-1.0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"regularization": 0.0}, "regularization=0.0"),
        ({"regularization": 1e-13}, "loses digits"),
        ({"label_bound": 0.5}, r"row \d+: y = .* is beyond label_bound = 0.5"),
        ({"feature_bound": 1e-3}, "beyond feature_bound"),
    ],
)
def test_bad_input_changes_nothing(wrong, words):
    X, y = sample()
    model = ShiftedLeastSquares().fit(X, y)
    before = pickle.dumps(vars(model.set_params(**wrong)))
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)
    assert pickle.dumps(vars(model)) == before
    bad = X.copy()
    bad[7, 1] = np.nan
    model = ShiftedLeastSquares().fit(X, y)
    for call in (lambda: model.fit(bad, y), lambda: model.predict(bad)):
        with pytest.raises(BadRow, match="row 7, column 1"):
            call()
    with pytest.raises(ValueError, match="40 rows and y has 39"):
        model.fit(X, y[:-1])
    assert not hasattr(clone(model), "excess_")
