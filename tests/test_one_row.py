"""Rows one at a time and four at a time: the bits of the long way, and its refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.base import clone

from regretless import AIOLI, OnlineLogisticRegression, VovkAzouryWarmuth
from regretless.core.errors import BadRow
from regretless.learners.second_order.surrogate import LEAST_IN_FOUR, LEAST_ROWS_IN_FOUR


def stream(n: int, d: int, names: list[str]) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(d)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    return X, names + [names[int(2.0 * x[0] + rng.normal() > 0)] for x in X[2:]]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"precision": "single"},
        {"virtual_weight": 0.5, "feature_bound": 30.0, "regularization": 3.0},
        {"curvature": 0.05, "virtual_weight": 0.0},
        {"radius": 1e-3, "curvature": "gaf"},
    ],
)
@pytest.mark.parametrize("d", [1, 5, 20, 23])
def test_short_cut_is_the_long_way(settings, d):
    X, y = stream(150, d, ["no", "yes"])
    X[7] = 0.0
    X[20:30] = X[20]  # variances that shrink
    short, long, block = (AIOLI(**settings) for _ in range(3))
    first = X[:10], y[:10]
    for learner in (short, long, block):
        learner.partial_fit(*first, classes=["no", "yes"])
    said = block.predict_then_learn(X[10:], y[10:])
    for t in range(10, 150):
        p = short.predict_proba_one(X[t])
        np.testing.assert_array_equal(p, long.predict_proba_one(X[t].tolist()))
        np.testing.assert_array_equal(p, said[t - 10])
        short.learn_one(X[t], y[t])
        long.learn_one(X[t].tolist(), y[t])
    for state in (long.state_, block.state_):
        for ours, theirs in zip(short.state_, state, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("d", [LEAST_IN_FOUR - 1, LEAST_IN_FOUR, LEAST_IN_FOUR + 3, 50])
@pytest.mark.parametrize(
    "learner",
    [AIOLI(), AIOLI(precision="single"), VovkAzouryWarmuth(), OnlineLogisticRegression(classes=["no", "yes"])],
    ids=lambda learner: type(learner).__name__ + getattr(learner, "precision", ""),
)
def test_four_rows_at_a_time_are_one_at_a_time(learner, d):
    """Blocks that are long enough for `in_four`, and those that are not, leave the same bits."""
    X, y = stream(120, d, ["no", "yes"])
    weight = np.random.default_rng(1).integers(0, 3, 120).astype(float)
    target = [float(label == "yes") for label in y] if isinstance(learner, VovkAzouryWarmuth) else y
    whole, pieces = clone(learner), clone(learner)
    said = whole.predict_then_learn(X, target, sample_weight=weight)
    cuts = [0, 4, 3 + LEAST_ROWS_IN_FOUR, 3 + 2 * LEAST_ROWS_IN_FOUR, 80, 81, 120]
    for a, b in itertools.pairwise(cuts):
        heard = pieces.predict_then_learn(X[a:b], target[a:b], sample_weight=weight[a:b])
        np.testing.assert_array_equal(heard, said[a:b])
    for ours, theirs in zip(pieces.state_, whole.state_, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
def test_bad_rows_change_nothing(bad):
    X, y = stream(50, 4, ["no", "yes"])
    learner = AIOLI(feature_bound=100.0).partial_fit(X, y)
    before = [array.copy() for array in learner.state_]
    row = X[0].copy()
    row[2] = bad
    for call in (learner.predict_proba_one, lambda x: learner.learn_one(x, "no")):
        with pytest.raises(BadRow, match="row 0"):
            call(row)
    for wrong in (X[0, :3].copy(), np.append(X[0], 1.0)):
        with pytest.raises(BadRow, match="expects 4 features"):
            learner.predict_proba_one(wrong)
        with pytest.raises(BadRow, match="expects 4 features"):
            learner.learn_one(wrong, "no")
    with pytest.raises(BadRow, match="'perhaps' is not one of the classes"):
        learner.learn_one(X[0], "perhaps")
    for now, then in zip(learner.state_, before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_soft_labels_and_views_go_the_long_way():
    X, y = stream(60, 6, ["no", "yes"])
    learner, other = (AIOLI().partial_fit(X, y) for _ in range(2))
    learner.learn_one(X[0], [0.3, 0.7])
    other.partial_fit(X[:1], np.array([[0.3, 0.7]]))
    wide = np.repeat(X, 2, axis=1)
    learner.learn_one(wide[1, ::2], "yes")  # not contiguous
    other.learn_one(X[1], "yes")
    for ours, theirs in zip(learner.state_, other.state_, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_rows_of_any_memory_layout_are_the_same_row():
    X = np.random.default_rng(0).normal(size=(30, 6))
    y = np.arange(30) % 2
    by_column = np.asfortranarray(X)
    one, other = OnlineLogisticRegression(classes=[0, 1]), OnlineLogisticRegression(classes=[0, 1])
    for t in range(30):
        one.learn_one(X[t], y[t])
        assert not by_column[t].flags.c_contiguous
        other.learn_one(by_column[t], y[t])
        assert np.array_equal(one.predict_proba_one(by_column[t]), other.predict_proba_one(X[t]))
