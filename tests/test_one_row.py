"""Rows one at a time and four at a time: the bits of the long way, and its refusals."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from regretless import (
    AIOLI,
    FOLKLORE,
    GAF,
    OGD,
    ONS,
    ExponentiatedGradient,
    LinearizedFTRL,
    OnlineLogisticRegression,
    VovkAzouryWarmuth,
)
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


LEARNERS = [AIOLI(), OGD(), LinearizedFTRL(), FOLKLORE(), GAF(), ONS(), OnlineLogisticRegression(classes=["no", "yes"])]


def of_type(learner):
    return type(learner).__name__


def same_state(one, other):
    for ours, theirs in zip(one.state_, other.state_, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("learner", LEARNERS, ids=of_type)
def test_one_compiled_call_is_a_block_of_one_row(learner):
    X, y = stream(60, 5, ["no", "yes"])
    one, block = (clone(learner).partial_fit(X[:20], y[:20], classes=["no", "yes"]) for _ in range(2))
    read_only = X[30].copy()
    read_only.flags.writeable = False
    rows = [
        X[20],
        np.repeat(X[21], 2)[::2],
        np.asfortranarray(X)[22],
        X[23].tolist(),
        X[24].astype(np.float32),
        read_only,
    ]
    for x, label in zip(rows, y[20:26], strict=True):
        X_one = np.array(x, dtype=np.float64)[None]
        np.testing.assert_array_equal(one.predict_proba_one(x), block.predict_proba(X_one)[0])
        assert one.predict_one(x) == block.predict(X_one)[0]
        one.learn_one(x, label)
        block.partial_fit(X_one, [label])
    same_state(one, block)
    assert one._row_call.calls is not None  # these learners have compiled calls


@pytest.mark.parametrize("learner", [OGD(), LinearizedFTRL(), OGD(loss="squared")], ids=repr)
def test_sparse_rows_are_dense_rows(learner):
    X, labels = stream(60, 8, ["no", "yes"])
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    y = [float(label == "yes") for label in labels] if learner.loss == "squared" else labels
    one, other = (clone(learner).partial_fit(X[:20], y[:20]) for _ in range(2))
    S = sparse.csr_matrix(X)
    for t in range(20, 60):
        for kind in (sparse.csr_matrix, sparse.csr_array):
            assert one.predict_one(kind(S[[t]])) == other.predict_one(X[t])
        one.learn_one(S[t], y[t])
        other.learn_one(X[t], y[t])
    same_state(one, other)


def test_sparse_rows_out_of_order_or_damaged():
    X, y = stream(30, 6, ["no", "yes"])
    one, other = (OGD().partial_fit(X, y) for _ in range(2))
    mixed = sparse.csr_matrix((np.array([1.0, 2.0, 0.5]), np.array([4, 1, 4]), np.array([0, 3])), shape=(1, 6))
    one.learn_one(mixed, "no")
    other.learn_one(mixed.toarray()[0], "no")
    same_state(one, other)
    before = [array.copy() for array in one.state_]
    damaged = sparse.csr_matrix((1, 6))
    damaged.data, damaged.indices, damaged.indptr = np.ones(1), np.array([6], np.int32), np.array([0, 1], np.int32)
    for bad, message in ((damaged, "column 6"), (sparse.csr_matrix([[0, 0, np.nan, 0, 0, 0]]), "NaN")):
        with pytest.raises(BadRow, match=message):
            one.learn_one(bad, "no")
        with pytest.raises(BadRow, match=message):
            one.predict_one(bad)
    for now, then in zip(one.state_, before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda learner: pickle.loads(pickle.dumps(learner))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_have_calls_of_their_own(copied):
    X, y = stream(40, 4, ["no", "yes"])
    learner = OGD().partial_fit(X, y)
    learner.learn_one(X[0], y[0])  # makes its compiled calls
    other = copied(learner)
    if copied is copy.copy:  # it shares the arrays
        other.state_ = type(learner.state_)(*(array.copy() for array in learner.state_))
    before = [array.copy() for array in learner.state_]
    other.learn_one(X[1], y[1])
    for now, then in zip(learner.state_, before, strict=True):
        np.testing.assert_array_equal(now, then)
    learner.learn_one(X[1], y[1])
    same_state(learner, other)


def test_a_new_state_has_new_calls():
    X, y = stream(40, 4, ["no", "yes"])
    learner, other = OGD().partial_fit(X[:20], y[:20]), OGD().partial_fit(X, y)
    learner.learn_one(X[20], y[20])
    learner.fit(X, y)
    learner.learn_one(X[0], y[0])
    other.learn_one(X[0], y[0])
    same_state(learner, other)


def test_targets_of_a_regressor_are_checked():
    X, _ = stream(30, 3, ["no", "yes"])
    for learner in (VovkAzouryWarmuth(), OGD(loss="squared")):
        learner.partial_fit(X, X[:, 0])
        before = [array.copy() for array in learner.state_]
        for bad in (np.nan, np.inf, 1e200):
            with pytest.raises(BadRow, match="row 0"):
                learner.learn_one(X[0], bad)
        for now, then in zip(learner.state_, before, strict=True):
            np.testing.assert_array_equal(now, then)
        learner.learn_one(X[0], 1)
        learner.learn_one(X[0], np.float32(0.5))


def test_entries_beyond_the_bound_are_refused():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(30, 4))
    learner = ExponentiatedGradient(feature_bound=1.0).partial_fit(X, np.arange(30) % 2)
    learner.learn_one(np.array([1.0, -1.0, 1.0, 1.0]), 1)
    with pytest.raises(BadRow, match="beyond feature_bound"):
        learner.learn_one(np.array([0.0, 1.5, 0.0, 0.0]), 1)


def test_missing_values_of_a_dictionary_take_the_long_way():
    rows = [{"a": 1.0, "b": float(t)} for t in range(20)] + [{"a": None, "b": 2.0}, {"b": 3.0}]
    y = [t % 2 for t in range(22)]
    one, block = (OnlineLogisticRegression(classes=[0, 1], effort="low") for _ in range(2))
    for x, label in zip(rows, y, strict=True):
        one.learn_one(x, label)
    block.partial_fit(rows, y)
    for x in ({"a": None, "b": 1.0}, {"a": float("nan"), "b": 1.0}, {"a": 1.0, "b": 1.0}):
        np.testing.assert_array_equal(one.predict_proba_one(x), block.predict_proba([x])[0])
        one.learn_one(x, 1)
        block.partial_fit([x], [1])
    same_state(one, block)
    for bad in ({"a": 1e200, "b": 1.0}, {"a": float("inf"), "b": 1.0}):
        with pytest.raises(BadRow):
            one.learn_one(bad, 1)
    same_state(one, block)
