"""A row that is learned after its own forecast uses what the forecast computed, to the same bits."""

from __future__ import annotations

import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from regretless import OnlineLogisticRegression, load
from regretless.learners.logistic.game import READY

N, BEFORE = 60, 25


def some_rows(n_classes: int = 2, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, d)) * 10.0 ** np.arange(d)
    X[:, 1] = rng.integers(0, 2, N)
    X[::7, 2] = X[0, 2]
    return X, rng.integers(0, n_classes, N)


def begun(X: np.ndarray, y: np.ndarray, **parameters: Any) -> OnlineLogisticRegression:
    learner = OnlineLogisticRegression(classes=np.unique(y).tolist(), **parameters)
    return learner.partial_fit(X[:BEFORE], y[:BEFORE])


def is_ready(learner: OnlineLogisticRegression) -> bool:
    return bool(learner._game.desk.marks[READY])


def assert_same_state(one: OnlineLogisticRegression, other: OnlineLogisticRegression) -> None:
    for name, a, b in zip(one.state_._fields, one.state_, other.state_, strict=True):
        assert np.array_equal(a, b), name


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("effort", ["low", "medium", "high"])
def test_forecast_then_learn_is_the_block(effort: str, n_classes: int) -> None:
    X, y = some_rows(n_classes)
    whole, one = begun(X, y, effort=effort), begun(X, y, effort=effort)
    said = whole.predict_then_learn(X[BEFORE:], y[BEFORE:])
    for t in range(BEFORE, N):
        assert np.array_equal(one.predict_proba_one(X[t]), said[t - BEFORE])
        assert is_ready(one)
        one.learn_one(X[t], y[t])
        assert not is_ready(one)
    assert_same_state(whole, one)


def test_missing_values() -> None:
    X, y = some_rows()
    X[::3, 0] = np.nan
    whole, one = begun(X, y), begun(X, y)
    whole.partial_fit(X[BEFORE:], y[BEFORE:])
    for t in range(BEFORE, N):
        one.predict_proba_one(X[t])
        one.learn_one(X[t], y[t])
    assert_same_state(whole, one)


@pytest.mark.parametrize(
    "between", ["another row is learned", "another row is forecast", "a block", "changed in place"]
)
def test_a_forecast_that_is_not_of_this_row_and_state_is_not_used(between: str) -> None:
    X, y = some_rows()
    one, plain = begun(X, y), begun(X, y)
    row = X[30].copy()
    one.predict_proba_one(row)
    if between == "another row is learned":
        one.learn_one(X[31], y[31])
        plain.learn_one(X[31], y[31])
    elif between == "another row is forecast":
        one.predict_proba_one(X[31])
    elif between == "a block":
        one.partial_fit(X[40:45], y[40:45])
        plain.partial_fit(X[40:45], y[40:45])
    else:
        row[0] += 1.0
    one.learn_one(row, y[30])
    plain.learn_one(row, y[30])
    assert_same_state(one, plain)
    assert np.array_equal(one.predict_proba_one(X[50]), plain.predict_proba_one(X[50]))


def test_weight_zero_and_other_weights() -> None:
    X, y = some_rows()
    one, plain = begun(X, y), begun(X, y)
    for t, weight in ((30, 0.0), (31, 2.5)):
        one.predict_proba_one(X[t])
        for learner in (one, plain):
            learner.partial_fit(X[t : t + 1], y[t : t + 1], sample_weight=[weight])
    assert_same_state(one, plain)


def test_new_columns_and_parameters_begin_with_an_empty_desk() -> None:
    rows = [{"a": float(i % 5), "b": float(i % 3)} for i in range(20)]
    labels = [i % 2 for i in range(20)]
    one, plain = (OnlineLogisticRegression().partial_fit(rows, labels) for _ in range(2))
    one.predict_proba_one(rows[3])
    for learner in (one, plain):
        learner.learn_one({"a": 1.0, "b": 2.0, "c": "new"}, 1)
        learner.learn_one({**rows[3], "c": "new"}, 0)
    assert_same_state(one, plain)
    one.predict_proba_one({**rows[3], "c": "new"})
    one.set_params(effort="low").fit(rows, labels)
    assert not is_ready(one)
    assert_same_state(one, OnlineLogisticRegression(effort="low").fit(rows, labels))


def test_files_and_pickles_are_those_of_a_learner_that_has_not_forecast(tmp_path: Any) -> None:
    X, y = some_rows()
    one, plain = begun(X, y), begun(X, y)
    one.learn_one(X[30], y[30])
    plain.learn_one(X[30], y[30])
    one.predict_proba_one(X[31])
    assert is_ready(one)
    assert pickle.dumps(one) == pickle.dumps(plain)
    assert one.to_bytes() == plain.to_bytes()
    one.save(tmp_path / "model.npz")
    for copy in (pickle.loads(pickle.dumps(one)), load(tmp_path / "model.npz")):
        assert not is_ready(copy)
        copy.learn_one(X[31], y[31])
        whole = begun(X, y).partial_fit(X[30:32], y[30:32])
        assert_same_state(copy, whole)


def test_another_thread_may_use_the_desk() -> None:
    X, y = some_rows()
    one, plain = begun(X, y), begun(X, y)
    one._game.desk.marks[0] = 1  # as if another thread were forecasting
    assert np.array_equal(one.predict_proba_one(X[30]), plain.predict_proba_one(X[30]))
    assert not is_ready(one)
    one.learn_one(X[30], y[30])
    plain.learn_one(X[30], y[30])
    assert_same_state(one, plain)
    assert one._game.desk.marks[0] == 1


def test_copies_and_files_have_their_matrices_where_they_are_read_fastest() -> None:
    X, y = some_rows(d=30)
    learner = begun(X, y)
    again = type(learner).from_bytes(learner.to_bytes())
    for other in (learner, deepcopy(learner), pickle.loads(pickle.dumps(learner)), again):
        assert other.state_.spline_matrices.size and other.state_.matrices.size
        assert other.state_.spline_matrices.ctypes.data % 64 == other.state_.matrices.ctypes.data % 64 == 0
        assert_same_state(learner, other)
