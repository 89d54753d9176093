"""Offsets of categories in OnlineLogisticRegression: against plain Python, and in every way that rows can come."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

import regretless
from learners import assert_same_state
from regretless import OnlineLogisticRegression
from regretless.learners.logistic.offsets import RATE, VARIANCES, slot_of, slots_of
from regretless.learners.logistic.schema import AT_SIGHT, MOST_CATEGORIES


def shops(n: int, levels: int = 60, fields: int = 2, seed: int = 0) -> tuple[np.ndarray, list[list[str]], np.ndarray]:
    """Numbers, a list of categories per field, and labels that depend on both."""
    rng = np.random.default_rng(seed)
    X, found = rng.normal(size=(n, 2)), rng.integers(levels, size=(n, fields))
    effects = rng.normal(size=(fields, levels))
    score = X @ [1.0, -0.5] + effects[np.arange(fields), found].sum(axis=1)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-score))).astype(int)
    return X, [[f"level {i}" for i in column] for column in found.T], y


def as_dictionaries(X: np.ndarray, fields: list[list[str]]) -> list[dict[str, Any]]:
    return [
        {"a": a, "b": b} | {f"field {j}": field[t] for j, field in enumerate(fields)}
        for t, (a, b) in enumerate(X.tolist())
    ]


def standardised(X: np.ndarray) -> np.ndarray:
    """Each value by mean and deviation of the values before it, its own part of the deviation included; then a 1."""
    found = np.ones((len(X), X.shape[1] + 1))
    for j, column in enumerate(X.T):
        for t, x in enumerate(column):
            before = column[:t]
            if t == 0:
                found[t, j] = 0.0
                continue
            away = x - before.mean()
            square = ((before - before.mean()) ** 2).sum() + t / (t + 1.0) * away**2
            found[t, j] = max(-4.0, min(4.0, away / math.sqrt(square / t))) if square > 0.0 else 0.0
    return found


def offsets_in_plain_python(
    X: np.ndarray, fields: list[list[str]], y: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The sums of the offsets of every row before it is learned, one column per model."""
    Z, found = standardised(X), np.zeros((len(X), len(VARIANCES)))
    for i, variance in enumerate(VARIANCES):
        w, squares = np.zeros(Z.shape[1]), np.zeros(Z.shape[1])
        beliefs: dict[tuple[int, str], list[float]] = {}
        for t, x in enumerate(Z):
            own = [beliefs.setdefault((j, field[t]), [0.0, variance]) for j, field in enumerate(fields)]
            found[t, i] = sum(b for b, _ in own)
            p = 1.0 / (1.0 + math.exp(-(w @ x + found[t, i])))
            g, h = weight[t] * (p - y[t]), weight[t] * p * (1.0 - p)
            squares += (g * x) ** 2
            w -= RATE * g * x / np.sqrt(np.maximum(squares, 1e-300))
            total = sum(v for _, v in own)
            for belief in own:
                b, v = belief
                belief[:] = b - v * g / (1.0 + h * total), v - v * v * h / (1.0 + h * total)
    return found, Z


def test_the_learner_is_that_of_rows_with_these_columns() -> None:
    X, fields, y = shops(300)
    weight = np.random.default_rng(1).choice([0.5, 1.0, 3.0], size=300)
    offsets, _ = offsets_in_plain_python(X, fields, y, weight)
    learner = OnlineLogisticRegression(effort="low", max_categories=0)
    said = learner.predict_then_learn(as_dictionaries(X, fields), y, sample_weight=weight)
    plain = OnlineLogisticRegression(effort="low")
    expected = plain.predict_then_learn(np.column_stack([X, offsets]), y, sample_weight=weight)
    np.testing.assert_allclose(said, expected, rtol=0.0, atol=1e-9)
    assert learner.regret_certificate() == pytest.approx(plain.regret_certificate(), abs=1e-9)
    assert learner.get_feature_names_out()[2:].tolist() == [
        f"offsets of categories, variance {variance:g}" for variance in VARIANCES
    ]
    np.testing.assert_allclose(learner.coef_, plain.coef_, rtol=0.0, atol=1e-9)


def test_columns_are_coded_at_their_first_rare_category() -> None:
    X, fields, y = shops(400)
    fields[1] = ["one" if label == "level 1" else "two" for label in fields[1]]
    rows = as_dictionaries(X, fields)
    learner, names = OnlineLogisticRegression(), []
    for row, label in zip(rows, y, strict=True):
        if row["field 0"] not in names:
            names.append(row["field 0"])
        learner.learn_one(row, label)
        assert learner._encoder.schema.coded == ((2,) if len(names) > AT_SIGHT else ())
    wide = OnlineLogisticRegression(max_categories=10**6).partial_fit(*_wide_rows())
    assert wide._encoder.schema.n_categories == MOST_CATEGORIES
    assert len(wide._encoder.schema.coded) > 1


def _wide_rows() -> tuple[list[dict[str, Any]], np.ndarray]:
    X, fields, y = shops(600, levels=40, fields=12)
    return as_dictionaries(X, fields), y


@pytest.mark.parametrize("effort", ["low", "medium", pytest.param("high", marks=pytest.mark.slow)])
def test_any_cut_is_the_whole_stream(effort: str, tmp_path: Any) -> None:
    X, fields, y = shops(160)
    rows = as_dictionaries(X, fields)
    for t in range(7, 160, 31):
        rows[t]["field 0"] = None
    for t in range(5, 160, 37):
        del rows[t]["field 1"]
    whole, single, cut = (OnlineLogisticRegression(effort=effort, classes=[0, 1]) for _ in range(3))
    said = whole.predict_then_learn(rows, y)
    for t, (row, label) in enumerate(zip(rows, y, strict=True)):
        if t % 10 == 0:
            before = single.predict_proba_one(row)
            assert np.array_equal(before, single.predict_proba_one(row))  # forecasts change nothing
        single.learn_one(row, label)
    told = []
    for i, stop in enumerate((60, 61, 100, 160)):
        start = (0, 60, 61, 100)[i]
        told.append(cut.predict_then_learn(rows[start:stop], y[start:stop]))
        cut.save(tmp_path / "model")
        cut = regretless.load(tmp_path / "model")
    assert np.array_equal(said, np.vstack(told))
    assert whole._encoder.schema.coded
    assert_same_state(whole, single)
    assert_same_state(whole, cut)
    assert np.array_equal(
        whole.predict_proba(rows[:20]), np.vstack([cut.predict_proba(rows[i : i + 1]) for i in range(20)])
    )
    assert_same_state(whole, copy.deepcopy(whole))


def test_frames_and_dictionaries_have_the_same_slots() -> None:
    pd = pytest.importorskip("pandas")
    X, fields, y = shops(150)
    rows = as_dictionaries(X, fields)
    one, other = OnlineLogisticRegression().fit(rows, y), OnlineLogisticRegression().fit(pd.DataFrame(rows), y)
    assert_same_state(one, other)
    assert slot_of("a") == slot_of(np.str_("a"))
    assert math.isnan(slot_of(None))
    assert np.isnan(slots_of([None, float("nan"), ["not hashable"]])).all()


def test_with_a_third_class_offsets_end() -> None:
    X, fields, y = shops(300)
    rows = as_dictionaries(X, fields)
    learner = OnlineLogisticRegression()
    learner.partial_fit(rows[:200], y[:200])
    assert learner.state_.offsets.size
    later = y[200:] + 2 * (np.arange(100) % 3 == 0)
    whole = OnlineLogisticRegression().fit(rows, np.r_[y[:200], later])
    learner.partial_fit(rows[200:], later)
    assert not learner.state_.offsets.size
    assert_same_state(learner, whole)
    assert np.isfinite(learner.predict_proba(rows)).all()


def test_rows_for_comparators_are_without_offsets() -> None:
    X, fields, y = shops(200)
    rows = as_dictionaries(X, fields)
    learner = OnlineLogisticRegression(effort="low").fit(rows, y)
    found = learner.for_comparators(rows)
    schema = learner._encoder.schema
    assert not found[:, schema.offset_places].any()
    assert np.abs(found[:, :2]).max() > 0.5
    best = regretless.best_in_hindsight(found, y, domain=learner.competes_with.domain)
    assert learner.total_loss_ - best.loss <= learner.regret_certificate()


def test_a_damaged_file_is_refused(tmp_path: Any) -> None:
    X, fields, y = shops(150)
    learner = OnlineLogisticRegression().fit(as_dictionaries(X, fields), y)
    learner.state_.offsets[0, 0, 0, 1] = 2.0 * VARIANCES[0]
    learner.save(tmp_path / "model")
    with pytest.raises(ValueError, match="offsets, variances"):
        regretless.load(tmp_path / "model")


def test_offsets_help_where_a_column_has_many_categories() -> None:
    X, fields, y = shops(3000, levels=300, fields=1)
    rows = as_dictionaries(X, fields)
    with_them = OnlineLogisticRegression(effort="low").fit(rows, y)
    none = OnlineLogisticRegression(effort="low").fit(X, y)
    assert with_them.total_loss_ < 0.97 * none.total_loss_
