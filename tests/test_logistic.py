"""OnlineLogisticRegression against its definition, and on streams that are hard to read or to learn."""

from __future__ import annotations

import functools
import math
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import regretless
from learners import assert_same_state, standardised, through_file
from logistic_reference import (
    adagrad_member,
    by_range,
    certified_member,
    forest_member,
    fourier_rows,
    frequencies_member,
    mixture,
    newton_member,
    pooled_member,
    product_rows,
    some_rows,
    spline_rows,
    stacked_mixture,
)
from regretless import BadRow, NoBound, OnlineLogisticRegression
from regretless.core.errors import TooLarge
from regretless.learners.logistic import effort as efforts
from regretless.learners.logistic.members import (
    ADAGRAD,
    FORGETFUL,
    HALF_LIVES,
    NEWTON,
    RADII,
    Newton,
)
from regretless.learners.logistic.offsets import VARIANCES
from regretless.learners.logistic.scaling import RANGED, STANDARDISED
from regretless.streams import adversarial

# ---------------------------------------------------------------------- members and mixture


@functools.cache
def mixed_rows(K: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with columns of two values, hard and soft labels, and weights."""
    X, y = some_rows(60, 4, K)
    rng = np.random.default_rng(5)
    X[:, 1], X[:, 2] = 7.0 * (X[:, 1] > X[:, 1].mean()) - 3.0, rng.random(60) < 0.1  # columns of two values
    X[40:, 2] *= 1.0 + (rng.random(20) < 0.2)  # and one that has a third later
    Y = np.where(rng.random((60, 1)) < 0.3, rng.dirichlet(np.ones(K), size=60), np.eye(K)[y])
    return X, Y, rng.choice([0.5, 1.0, 2.0], size=60)


@functools.cache
def versions(K: int) -> dict[Any, np.ndarray]:
    X = mixed_rows(K)[0]
    return {STANDARDISED: standardised(X), RANGED: by_range(X)}


@functools.cache
def some_member(K: int, each: Any) -> np.ndarray:
    """The logits of a member on `mixed_rows`: a radius, or the settings of Newton's or AdaGrad's steps."""
    _, Y, weight = mixed_rows(K)
    if isinstance(each, float):
        return certified_member(versions(K)[STANDARDISED], Y, weight, each)
    Z = versions(K)[each.version]
    if isinstance(each, Newton):
        return newton_member(Z, Y, weight, each.kappa, each.lam, each.rho, min(each.lam, each.intercept))
    return adagrad_member(Z, Y, weight, each.rate, each.intercept)


@functools.cache
def spline_members(K: int) -> list[np.ndarray]:
    X, Y, weight = mixed_rows(K)
    F = spline_rows(X, versions(K)[STANDARDISED], 3)
    return [pooled_member(F, Y, weight, each.kappa, each.lam, each.intercept) for each in efforts.SPLINES]


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(
    ("drift", "effort"), [("none", "low"), ("track", "low"), ("none", "high"), ("track", "medium")]
)
def test_the_forecast_is_the_mixture_of_its_members(K: int, drift: str, effort: str) -> None:
    X, Y, weight = mixed_rows(K)
    newton = list(NEWTON)
    if drift == "track":
        newton[1:1] = [Newton(*FORGETFUL, rho=0.5 ** (1 / rows)) for rows in HALF_LIVES]
    members = [some_member(K, each) for each in (*RADII, *newton, *ADAGRAD)]
    members.append(frequencies_member(Y, weight))
    parts = [4.0] * len(RADII) + [each.parts for each in newton] + [each.parts for each in ADAGRAD] + [2.0]
    learner = OnlineLogisticRegression(drift=drift, effort=effort)
    p = learner.predict_then_learn(X, Y, classes=range(K), sample_weight=weight)
    if effort == "low":
        expected = mixture(members, Y, weight, drift == "track", parts)
    else:
        members += spline_members(K)
        parts += [each.parts for each in efforts.SPLINES]
        if effort == "high":
            Z, waves = versions(K)[STANDARDISED], learner.state_.frequencies
            expanded = [(each, fourier_rows(Z, waves, int(each.octave))) for each in efforts.FOURIER]
            expanded += [(each, product_rows(Z)) for each in efforts.PRODUCTS]
            members += [pooled_member(F, Y, weight, each.kappa, each.lam, each.intercept) for each, F in expanded]
            parts += [each.parts for each, _ in expanded]
            members.append(forest_member(X, Y, weight))
            parts.append(efforts.FOREST)
        parts.append(efforts.STACK)
        expected, combined = stacked_mixture(members, Y, weight, drift == "track", parts)
        members.append(combined)
    np.testing.assert_allclose(p, expected, atol=1e-9)
    losses = [-weight @ np.sum(Y * log_softmax(logits, axis=1), axis=1) for logits in members]
    np.testing.assert_allclose(learner.state_.losses, losses, rtol=1e-9)
    assert len(learner.members_) == learner.weights_.size == len(members)
    assert learner.weights_.sum() == pytest.approx(1.0)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 4), st.integers(1, 60), st.integers(0, 2**32 - 1), st.sampled_from(["none", "track"]))
def test_never_worse_than_the_best_member_by_more_than_mixing_costs(K: int, n: int, seed: int, drift: str) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.integers(0, K, size=n)
    learner = OnlineLogisticRegression(drift=drift).partial_fit(X, y, classes=range(K))
    prior = learner._constants.prior
    assert prior.sum() == pytest.approx(1.0)
    cost = -np.log(prior) + (math.log(n + 1) if drift == "track" else 0.0)
    assert learner.total_loss_ <= np.min(learner.state_.losses + cost) + 1e-9


def test_wide_rows_are_learned_without_matrices() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2500))
    y = X[:, 0] > 0
    learner = OnlineLogisticRegression()
    learner.fit(X, y)
    assert learner.state_.P.size == learner.state_.matrices.size == 0
    assert learner.total_loss_ / 300 < 0.75
    assert np.isfinite(learner.regret_certificate())
    with pytest.raises(NoBound, match="radii"):
        learner.regret_bound()


# ---------------------------------------------------------------------- scale


@pytest.mark.parametrize("K", [2, 3])
def test_units_do_not_matter(K: int) -> None:
    X, y = some_rows(300, 5, K)
    p = OnlineLogisticRegression().predict_then_learn(X, y)
    for scale in (1e-6, 1e-3, 7.0, 1e6):
        q = OnlineLogisticRegression().predict_then_learn(X * np.array([1.0, scale, 1.0, scale, 1.0]), y)
        np.testing.assert_allclose(q, p, atol=1e-9)
    # a shift of 1e6 costs six to nine digits: columns have deviations from 1e-3 to 1e3
    q = OnlineLogisticRegression().predict_then_learn(X + 1e6, y)
    np.testing.assert_allclose(q, p, atol=1e-4)


def test_a_power_of_two_changes_no_bit() -> None:
    X, y = some_rows(200, 3, 2)
    p = OnlineLogisticRegression().predict_then_learn(X, y)
    assert np.array_equal(OnlineLogisticRegression().predict_then_learn(X * 2.0**20, y), p)


def test_rescaled_rows_use_the_past_alone() -> None:
    X, y = some_rows(50, 3, 2)
    learner = OnlineLogisticRegression().fit(X, y)
    np.testing.assert_allclose(learner.for_comparators(X), standardised(X), atol=1e-10)
    later = X.copy()
    later[30:] *= 1e9
    assert np.array_equal(learner.for_comparators(later)[:30], learner.for_comparators(X)[:30])


def test_constant_and_late_columns() -> None:
    X, y = some_rows(200, 3, 2)
    X[:, 1] = 0.1
    X[:100, 2] = -3.0
    learner = OnlineLogisticRegression()
    assert np.isfinite(learner.predict_then_learn(X, y)).all()
    Z = learner.for_comparators(X)
    assert not Z[:, 1].any()
    assert np.abs(Z).max() <= 4.0


def test_tiny_and_huge_spreads_do_not_poison() -> None:
    learner = OnlineLogisticRegression()
    p = learner.predict_then_learn([[0.0], [1e-160], [5e-161], [1.0]], [0, 1, 0, 1])
    assert np.isfinite(p).all()
    assert all(np.isfinite(array).all() for array in learner.state_)
    X, y = some_rows(60, 2, 2)
    plain = OnlineLogisticRegression().predict_then_learn(X, y)
    for power in (-1060, -1000, -600, -450, -300, 400):  # below -1022 a number has few digits
        found = OnlineLogisticRegression().predict_then_learn(np.ldexp(X, power), y)
        np.testing.assert_allclose(found, plain, rtol=0.0, atol=0.01 if power < -1000 else 0.0)


def test_a_feature_of_scale_1e6_with_noisy_labels_stays_near_the_middle() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=2000), 1e6 * rng.normal(size=2000)])
    p = OnlineLogisticRegression().predict_then_learn(X, rng.integers(0, 2, 2000))
    assert np.abs(p[500:, 1] - 0.5).max() < 0.2


# ---------------------------------------------------------------------- labels


def test_a_label_that_comes_late_extends_the_model() -> None:
    X, y = some_rows(400, 4, 5)
    y[:150] %= 2
    whole = OnlineLogisticRegression()
    p = whole.predict_then_learn(X, y)
    assert whole.classes_.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert p.min() > 0.0
    first = int(np.argmax(y >= 2))
    assert p[first, y[first]] == pytest.approx(1 / (first + 2) ** 2 / 3)  # kept for three labels that were to come
    np.testing.assert_allclose(p[0], np.r_[[(1 - 0.25) / 2] * 2, [0.25 / 3] * 3])
    # one row at a time, and in blocks, the same is learned; forecasts differ by what is kept for columns not there yet
    rows, blocks = OnlineLogisticRegression(), OnlineLogisticRegression()
    for t in range(400):
        said = rows.predict_proba_one(X[t]) if t else np.array([1.0])
        assert said.sum() == pytest.approx(1.0)
        rows.learn_one(X[t], y[t])
    last = [blocks.predict_then_learn(X[i : i + 33], y[i : i + 33]) for i in range(0, 400, 33)][-1]
    assert_same_state(rows, whole)
    assert_same_state(blocks, whole)
    np.testing.assert_allclose(last, p[-len(last) :])
    # afterwards it is nearly as good as if it had known the classes from the start
    known = OnlineLogisticRegression(classes=range(5)).predict_then_learn(X, y)
    late = slice(250, None)
    gap = np.log(known[late][np.arange(150), y[late]]).sum() - np.log(p[late][np.arange(150), y[late]]).sum()
    assert gap < 8.0


def test_the_certificate_covers_labels_that_come_late() -> None:
    X, y = some_rows(300, 3, 4, seed=2)
    y[:100] %= 2
    learner = OnlineLogisticRegression(radii=(1.0, 3.0)).fit(X, y)
    Z = standardised(X)
    met = np.array([len(set(y[: t + 1].tolist())) for t in range(300)])
    new = np.r_[True, met[1:] > met[:-1]] & (met > 2)
    order = np.array(list(dict.fromkeys(y.tolist())))  # of first sight
    known = np.argsort(order) < np.maximum(2, met)[:, None]  # by row and class
    promised = learner.regret_certificate()
    rng = np.random.default_rng(0)
    for _ in range(100):
        W = rng.normal(size=(4, 4))
        W *= rng.choice([0.5, 3.0]) / np.linalg.norm(W, axis=1, keepdims=True)
        z = Z @ W.T
        loss = np.sum(logsumexp(z, axis=1, b=known) - z[np.arange(300), y])
        # what the learner paid for a label never seen, comparators pay too
        loss += 2 * np.log(np.arange(300)[new] + 2.0).sum()
        assert learner.total_loss_ - loss <= promised + 1e-9


def test_labels_beyond_the_limit_are_refused() -> None:
    X, y = some_rows(30, 2, 5)
    with pytest.raises(ValueError, match="max_classes=3"):
        OnlineLogisticRegression(max_classes=3).fit(X, y)
    learner = OnlineLogisticRegression(max_classes=3).fit(X, y % 3)
    before = [array.copy() for array in learner.state_]
    with pytest.raises(ValueError, match="max_classes=3"):
        learner.partial_fit(X, y)
    assert all(np.array_equal(a, b) for a, b in zip(before, learner.state_, strict=True))


def test_a_label_outside_a_declared_set_is_an_error() -> None:
    X, _ = some_rows(3, 2, 2)
    for learner in (OnlineLogisticRegression(classes=["a", "b"]), OnlineLogisticRegression()):
        declared = {} if learner.classes else {"classes": ["a", "b"]}
        learner.partial_fit(X[:2], ["a", "b"], **declared)
        with pytest.raises(BadRow, match="'c' is not one of the classes"):
            learner.partial_fit(X[2:], ["c"])


def test_one_class_then_two() -> None:
    X, _ = some_rows(40, 2, 2)
    learner = OnlineLogisticRegression().fit(X[:20], ["a"] * 20)
    assert learner.classes_.tolist() == ["a"]
    assert learner.predict_proba(X).tolist() == [[1.0]] * 40
    assert learner.predict_one(X[0]) == "a"
    p = learner.predict_then_learn(X[20:], ["b"] * 20)
    assert learner.classes_.tolist() == ["a", "b"]
    assert 0.0 < p[0, 1] < 0.2 < 0.5 < p[-1, 1]


def test_before_any_label_all_are_alike() -> None:
    X, _ = some_rows(5, 2, 3)
    learner = OnlineLogisticRegression().fit(X, [0] * 5, classes=[0, 1, 2], sample_weight=0.0)
    np.testing.assert_allclose(learner.predict_proba(X), 1 / 3)


# ---------------------------------------------------------------------- missing values and bad rows


def test_a_bad_row_does_not_poison() -> None:
    X, y = some_rows(200, 3, 2)
    spoilt = X.copy()
    spoilt[50, 1], spoilt[60, 0], spoilt[70] = np.nan, np.inf, -1e300
    with pytest.raises(BadRow, match=r"row 50, column 1: NaN.*missing="):
        OnlineLogisticRegression(missing="error").fit(spoilt, y)
    with pytest.raises(BadRow, match=r"row 60, column 0: inf.*Nothing was learned"):
        OnlineLogisticRegression().fit(spoilt, y)
    learner = OnlineLogisticRegression(missing="error", on_bad_row="skip")
    p = learner.predict_then_learn(spoilt, y)
    assert np.isfinite(p).all()
    assert learner.bad_rows_ == 3
    good = np.delete(np.arange(200), [50, 60, 70])
    same = OnlineLogisticRegression(missing="error", on_bad_row="skip").fit(X[good], y[good])
    assert_same_state(learner, same)
    labels = y.astype(float)
    labels[5] = np.nan
    assert OnlineLogisticRegression(on_bad_row="skip").fit(X, labels).bad_rows_ == 1
    with pytest.raises(BadRow, match="row 5: the label is missing"):
        OnlineLogisticRegression().fit(X, labels)


def test_a_single_bad_row_is_counted() -> None:
    X, y = some_rows(20, 3, 2)
    learner = OnlineLogisticRegression(on_bad_row="skip", classes=[0, 1]).fit(X, y)
    state = [array.copy() for array in learner.state_]
    for x, label in (([1.0, np.inf, 0.0], 1), ([1.0, 2.0], 1), (["a", "b", "c"], 0), (X[0], 7), ({"a": 1.0}, 1)):
        learner.learn_one(x, label)
    assert learner.bad_rows_ == 5
    assert all(np.array_equal(a, b) for a, b in zip(state, learner.state_, strict=True))


@pytest.mark.parametrize("missing", ["mean", "indicator"])
def test_missing_values(missing: str) -> None:
    X, y = some_rows(400, 3, 2)
    rng = np.random.default_rng(0)
    gone = rng.random(X.shape) < 0.2
    spoilt = np.where(gone, np.nan, X)
    learner = OnlineLogisticRegression(missing=missing)
    p = learner.predict_then_learn(spoilt, y)
    assert np.isfinite(p).all()
    assert learner.bad_rows_ == 0
    moments = learner.state_.moments
    np.testing.assert_allclose(moments[1, :3], np.nanmean(spoilt, axis=0), rtol=1e-9)
    assert -np.log(p[np.arange(400), y]).mean() < 0.68
    assert learner._encoder.width == (6 if missing == "indicator" else 3)


def test_that_a_value_is_missing_may_tell_something() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    X = rng.normal(size=(500, 1))
    X[(y == 1) & (rng.random(500) < 0.8)] = np.nan
    linear = {"effort": "low"}  # splines find that many values are the mean
    losses = {
        m: OnlineLogisticRegression(missing=m, **linear).fit(X, y).total_loss_ / 500 for m in ("mean", "indicator")
    }
    assert losses["indicator"] < 0.45 < 0.6 < losses["mean"]
    assert OnlineLogisticRegression(**linear).fit(X, y).total_loss_ / 500 == losses["indicator"]  # the default


@pytest.mark.parametrize("as_matrix", [np.asarray, scipy.sparse.csr_array])
def test_an_indicator_is_as_if_it_had_always_been_there(as_matrix: Any) -> None:
    X, y = some_rows(120, 3, 2)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    X[:50] = np.nan_to_num(X[:50])
    X[:, 2] = np.nan_to_num(X[:, 2])
    learner = OnlineLogisticRegression(effort="low").fit(as_matrix(X), y)  # indicators have no splines, columns have
    order = [level.column for level in learner._encoder.schema.levels]
    assert sorted(order) == [0, 1]
    marked = OnlineLogisticRegression(missing="mean", effort="low").fit(np.hstack([X, np.isnan(X[:, order])]), y)
    for found, expected in zip(learner.state_, marked.state_, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)
    rows = OnlineLogisticRegression(effort="low")
    for x, label in zip(X, y, strict=True):
        rows.learn_one(x, label)
    assert_same_state(rows, learner)


# ---------------------------------------------------------------------- frames and dictionaries


def shop(n: int = 300) -> tuple[dict[str, Any], np.ndarray]:
    rng = np.random.default_rng(0)
    country = rng.choice(list("abcdefg"), n)
    columns = {"amount": 1e3 * rng.lognormal(size=n), "country": country, "vip": rng.random(n) < 0.5}
    return columns, np.where(np.isin(country, ["a", "b"]) ^ (rng.random(n) < 0.1), "fraud", "good")


def test_frames_of_every_make_say_the_same(tmp_path: Any) -> None:
    columns, y = shop()
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    text = {**columns, "country": columns["country"].tolist()}
    frames = [pd.DataFrame(columns), pl.DataFrame(text), pa.table(text)]
    learners = [OnlineLogisticRegression() for _ in frames]
    forecasts = [learner.predict_then_learn(frame, y) for learner, frame in zip(learners, frames, strict=True)]
    for p in forecasts[1:]:
        assert np.array_equal(p, forecasts[0])
    assert learners[0].feature_names_in_.tolist() == list(columns)
    late = np.log(forecasts[0][150:][np.arange(150), (y == "good").astype(int)[150:]])
    assert -late.mean() < 0.45
    rows = OnlineLogisticRegression()
    for i in range(300):
        rows.learn_one({name: values[i] for name, values in text.items()}, y[i])
    np.testing.assert_allclose(rows.predict_proba(frames[0]), learners[0].predict_proba(frames[0]), atol=1e-12)
    copy = through_file(rows, tmp_path)
    assert copy.predict_proba_one({"amount": 3.0, "country": "z", "vip": True}) == pytest.approx(
        rows.predict_proba_one({"amount": 3.0, "country": "z", "vip": True})
    )
    with pytest.raises(ValueError, match="order"):
        learners[0].predict(frames[0][["country", "amount", "vip"]])
    assert rows.predict_one({"price": 3.0}) == rows.predict_one({"amount": None})  # other names are ignored


def rows_with_new_names(n: int = 60) -> tuple[list[dict[str, Any]], list[int]]:
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for t in range(n):
        row: dict[str, Any] = {"a": rng.normal()}
        if t % 3 == 0 and t > 5:
            row["b"] = rng.normal()
        if t > 20:
            row = {"c": f"u{rng.integers(3)}"} | row
        if t >= 40:
            row["d"] = None if t < 46 else float(t)
        rows.append(row)
    return rows, rng.integers(0, 2, size=n).tolist()


@pytest.mark.parametrize("missing", ["indicator", "mean"])
def test_dictionaries_may_bring_new_names(missing: str, tmp_path: Path) -> None:
    rows, y = rows_with_new_names()
    whole, one, cut = (OnlineLogisticRegression(classes=[0, 1], missing=missing) for _ in range(3))
    whole.partial_fit(rows, y)
    for row, label in zip(rows, y, strict=True):
        one.predict_proba_one(row)
        one.learn_one(row, label)
    for i in range(0, 60, 7):
        cut.partial_fit(rows[i : i + 7], y[i : i + 7])
    assert whole.feature_names_in_.tolist() == ["a", "b", "c", "d"] and whole.n_features_in_ == 4
    assert whole.column_kinds_ == ("number", "number", "category", "number")
    for other in (one, cut, through_file(whole, tmp_path)):
        assert other.feature_names_in_.tolist() == whole.feature_names_in_.tolist()
        for name, array in whole.state_._asdict().items():
            assert np.array_equal(array, getattr(other.state_, name)), name
        assert np.array_equal(other.predict_proba(rows), whole.predict_proba(rows))


def test_names_of_bad_and_unlearned_rows_are_not_kept() -> None:
    skips = OnlineLogisticRegression(on_bad_row="skip")
    skips.partial_fit([{"a": 1.0}, {"a": "x", "z": 2}, {"a": 2.0, "b": 3}], [0, 1, 1])
    assert skips.feature_names_in_.tolist() == ["a", "b"] and skips.bad_rows_ == 1
    skips.partial_fit([{"a": 1.0, "w": 2.0}], [1], sample_weight=[0.0])
    skips.predict_proba([{"a": 1.0, "w": 2.0}])
    assert skips.feature_names_in_.tolist() == ["a", "b"]
    strict = OnlineLogisticRegression(missing="error").partial_fit([{"a": 1.0}, {"a": 2.0}], [0, 1])
    with pytest.raises(BadRow, match="row 1: 'b' is not one of the features"):
        strict.partial_fit([{"a": 1.0}, {"a": 2.0, "b": 1.0}], [0, 1])
    assert strict.total_loss_ == pytest.approx(OnlineLogisticRegression().fit([[1.0], [2.0]], [0, 1]).total_loss_)
    many = [{"a": 1.0}, {f"n{i}": 1.0 for i in range(1000)}]
    with pytest.raises(BadRow, match="row 0: more than 1000 names"):
        OnlineLogisticRegression().partial_fit(many[:1], [0]).partial_fit(many[1:], [1])


def test_forecasts_before_the_first_row_are_uniform() -> None:
    early = OnlineLogisticRegression(classes=["no", "yes", "maybe"])
    assert early.predict_proba_one({"x": 1.0}).tolist() == [1 / 3] * 3
    assert early.predict_one([1.0, 2.0]) == "no"
    assert "state_" not in vars(early)
    with pytest.raises(NotFittedError, match=r"classes=\[\.\.\.\]"):
        OnlineLogisticRegression().predict_proba_one({"x": 1.0})


def test_a_complaint_names_the_column_given() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"country": ["a", "b", None], "amount": [1.0, np.nan, 2.0]})
    with pytest.raises(BadRow, match=r"row 1, column 1 \('amount'\): NaN"):
        OnlineLogisticRegression(missing="error").fit(frame[:2], ["x", "y"])
    with pytest.raises(BadRow, match=r"row 2, column 0 \('country'\): a category is missing"):
        OnlineLogisticRegression(missing="error").fit(frame.assign(amount=1.0), ["x", "y", "x"])


def test_categories_met_later_are_as_if_always_known() -> None:
    columns, y = shop(200)
    names = list(dict.fromkeys(columns["country"].tolist()))
    rows = [{name: columns[name][i] for name in columns} for i in range(200)]
    learner = OnlineLogisticRegression(effort="low")  # categories have no splines, columns of an array have
    for row, label in zip(rows, y, strict=True):
        learner.learn_one(row, label)
    one_hot = np.column_stack(
        [columns["amount"], columns["vip"], *(columns["country"] == name for name in names)]
    ).astype(float)
    plain = OnlineLogisticRegression(effort="low").fit(one_hot, y)
    for found, expected in zip(learner.state_, plain.state_, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)
    few = OnlineLogisticRegression(max_categories=2)
    few.partial_fit(rows, y)
    assert few._encoder.width == 4 + len(VARIANCES)  # and the offsets of the others
    assert "2 with a column, 5 pooled as rare or beyond max_categories" in few.report()
    assert "7 with a column, 0 pooled" in learner.report()


def test_members_are_dropped_at_the_row_that_makes_them_too_dear() -> None:
    rng = np.random.default_rng(0)
    names = [f"level {i}" for i in range(32)]
    rows = [{"a": names[i % 32], "b": names[rng.integers(32)]} for i in range(120)]
    y = rng.integers(0, 10, 120)
    whole = OnlineLogisticRegression(classes=range(10))
    said = whole.predict_then_learn(rows, y)
    parts = OnlineLogisticRegression(classes=range(10))
    told = [parts.predict_then_learn(rows[i : i + 1], y[i : i + 1]) for i in range(120)]
    assert np.array_equal(said, np.vstack(told))
    assert_same_state(whole, parts)
    assert len(whole.members_) < len(OnlineLogisticRegression(classes=range(10)).fit(rows[:1], y[:1]).members_)


@pytest.mark.parametrize("missing", ["mean", "indicator"])
def test_a_column_may_begin_with_a_missing_value(missing: str, tmp_path: Any) -> None:
    learner = OnlineLogisticRegression(missing=missing)
    learner.learn_one({"a": 1.0, "b": None, "c": None}, "x")
    learner.learn_one({"a": 2.0, "b": "text", "c": math.nan}, "y")
    learner.learn_one({"a": 0.5, "b": "other", "c": 7.0}, "x")
    again = through_file(learner, tmp_path)
    assert again._encoder == learner._encoder
    assert learner.column_kinds_ == ("number", "category", "number")
    for either in (learner, again):
        either.learn_one({"a": 0.5, "b": None, "c": 8.0}, "x")
    assert_same_state(learner, again)
    with pytest.raises(BadRow, match=r"column 2 \('c'\): 'text'"):
        learner.learn_one({"a": 2.0, "b": "text", "c": "text"}, "y")


def test_rows_that_are_not_learned_bring_nothing() -> None:
    rows = [{"a": 1.0, "b": "p"}, {"a": 2.0, "b": "q"}, {"a": math.inf, "b": "r"}, {"a": 0.0, "b": "s"}]
    learner = OnlineLogisticRegression(on_bad_row="skip", max_categories=2)
    learner.partial_fit(rows, ["x", "y", "x", "z"], sample_weight=[1.0, 0.0, 1.0, 1.0])
    alone = OnlineLogisticRegression(on_bad_row="skip", max_categories=2)
    alone.partial_fit([rows[0], rows[3]], ["x", "z"])
    assert learner._encoder == alone._encoder
    assert [level.category for level in learner._encoder.schema.levels] == ["p", "s"]
    assert_same_state(learner, alone)


def test_a_column_that_changes_from_numbers_to_text_is_refused() -> None:
    pd = pytest.importorskip("pandas")
    learner = OnlineLogisticRegression().fit([{"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 1.0}], [0, 1])
    before = [array.copy() for array in learner.state_]
    rows = [{"a": 3.0, "b": 1.0}, {"a": 3.0, "b": "red"}]
    for X in (rows, pd.DataFrame(rows)):
        with pytest.raises(
            BadRow, match=r"row 1, column 1 \('b'\): 'red' is text.*numbers so far.*Nothing was learned"
        ):
            learner.partial_fit(X, [0, 1])
    with pytest.raises(BadRow, match=r"column 1 \('b'\): 'red' is text"):
        learner.learn_one(rows[1], 1)
    assert all(np.array_equal(a, b) for a, b in zip(before, learner.state_, strict=True))


def test_rare_labels_are_forecast_as_well_as_by_their_frequencies() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 20)), (rng.random(1000) < 0.02).astype(int)
    learner = OnlineLogisticRegression(classes=[0, 1]).fit(X, y)
    frequencies = -frequencies_member(np.eye(2)[y], np.ones(1000))[np.arange(1000), y].sum()
    assert learner.total_loss_ < frequencies + 3.0
    assert learner.state_.losses[learner.members_.index("label frequencies")] == pytest.approx(frequencies)


def test_what_is_no_number_is_refused_by_name() -> None:
    for value in ("text", 1 + 2j, np.datetime64("2020-01-01"), 10**400, [1.0]):
        learner = OnlineLogisticRegression()
        learner.learn_one({"a": 1.0, "b": 1.0}, 0)
        with pytest.raises(BadRow, match=r"row 0, column 1 \('b'\)"):
            learner.learn_one({"a": 1.0, "b": value}, 1)


def test_many_keys_are_the_columns_of_an_array() -> None:
    d = 300
    X, y = np.random.default_rng(0).normal(size=(40, d)), np.arange(40) % 2
    names = [f"key {j}" for j in range(d)]
    rows = [dict(zip(names, x.tolist(), strict=True)) for x in X]
    of_arrays, of_rows = OnlineLogisticRegression().fit(X[:2], y[:2]), OnlineLogisticRegression().fit(rows[:2], y[:2])
    for t in range(2, 40):
        of_arrays.learn_one(X[t], y[t])
        of_rows.learn_one(rows[t], y[t])
    assert np.array_equal(of_arrays.predict_proba(X), of_rows.predict_proba(rows))
    assert_same_state(of_arrays, of_rows)


def test_the_kinds_of_columns() -> None:
    learner = OnlineLogisticRegression(missing="mean")
    assert not hasattr(learner, "column_kinds_")
    learner.learn_one({"a": 1.0, "b": "text", "c": None}, "x")
    assert learner.column_kinds_ == ("number", "category", "unknown")


def peak_memory(work: Any) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_members_that_are_not_there_take_no_memory() -> None:
    X = np.random.default_rng(0).normal(size=(2, 30_000))
    assert peak_memory(lambda: OnlineLogisticRegression().fit(X, [0, 1])) < 100e6
    many = OnlineLogisticRegression(classes=np.arange(40_000), max_classes=40_000)
    assert peak_memory(lambda: many.fit(X[:, :2], [0, 1])) < 300e6
    assert peak_memory(lambda: pickle.dumps(many._labels)) < 10e6
    wide = scipy.sparse.csr_array(([1.0, 2.0], ([0, 50], [3, 200_000])), shape=(100, 262_144))
    assert peak_memory(lambda: OnlineLogisticRegression().fit(wide, np.arange(100) % 2)) < 150e6


def test_what_does_not_fit_into_memory_is_refused_before_anything_is_allocated() -> None:
    greedy = OnlineLogisticRegression(radii=(1.0,), classes=np.arange(40_000), max_classes=40_000)
    with pytest.raises(TooLarge, match=r"need [\d,]+\.\d GiB.*radii=\"auto\"") as refused:
        greedy.fit(np.ones((2, 30)), [0, 1])
    assert isinstance(refused.value, MemoryError)
    assert not hasattr(greedy, "state_")


def test_there_is_no_forecast_before_any_class() -> None:
    learner = OnlineLogisticRegression().fit([[1.0]], [1], sample_weight=0.0)
    for verb in (learner.predict, learner.predict_proba, learner.decision_function):
        with pytest.raises(NotFittedError, match="no label"):
            verb([[1.0]])
    for verb in (learner.predict_one, learner.predict_proba_one):
        with pytest.raises(NotFittedError, match="no label"):
            verb([1.0])


def test_sparse_rows_are_rows() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    X, y = some_rows(50, 4, 2)
    X[np.random.default_rng(0).random(X.shape) < 0.6] = 0.0
    dense, thin = OnlineLogisticRegression().fit(X, y), OnlineLogisticRegression().fit(sparse.csr_array(X), y)
    assert_same_state(dense, thin)
    assert np.array_equal(dense.predict_proba(X), thin.predict_proba(sparse.csr_array(X)))


# ---------------------------------------------------------------------- drift


def test_tracking_pays_where_things_change_and_costs_little_where_not() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5))
    w = 2 * rng.normal(size=5)
    sign = np.where(np.arange(4000) // 1000 % 2, -1.0, 1.0)
    noise = rng.logistic(size=4000)
    for y, pays in (((sign * (X @ w) + noise) > 0, True), ((X @ w + noise) > 0, False)):
        for effort, gain in (("low", 50.0), ("medium", 25.0)):  # the stack follows change too
            static, tracking = (
                OnlineLogisticRegression(drift=drift, effort=effort).fit(X, y).total_loss_
                for drift in ("none", "track")
            )
            assert tracking < static - gain if pays else tracking < static + 12.0


# ---------------------------------------------------------------------- regret


def test_regret_is_small_and_promised() -> None:
    stream = adversarial(2000, seed=1)
    trace = regretless.play(OnlineLogisticRegression(), stream.X, stream.y, classes=stream.classes, progress=False)
    assert trace.regret[-1].high <= trace.certificate[-1] <= trace.bound[-1]
    X, y = some_rows(2000, 5, 2)
    trace = regretless.play(OnlineLogisticRegression(), X, y, progress=False)
    assert trace.regret[-1].high <= trace.certificate[-1] <= trace.bound[-1]
    assert trace.regret[-1].high < 50.0


def test_it_may_be_a_member_itself(tmp_path: Any) -> None:
    X, y = some_rows(100, 3, 3)
    mixture = regretless.Mixture([OnlineLogisticRegression(radii=(1.0,)), regretless.OGD()])
    mixture.partial_fit(X[:60], y[:60], classes=range(3))
    copy = through_file(mixture, tmp_path)
    assert np.array_equal(copy.predict_then_learn(X[60:], y[60:]), mixture.predict_then_learn(X[60:], y[60:]))
    lone = OnlineLogisticRegression(radii=(1.0,)).fit(X, y, classes=range(3))
    assert_same_state(mixture.estimators_[0], lone)


# ---------------------------------------------------------------------- dates


def shop_hours(n: int = 300, start: str = "2024-01-01") -> tuple[list[dict[str, Any]], list[int]]:
    """Visits, which happen by day and not on Sundays."""
    rng = np.random.default_rng(1)
    times = np.datetime64(start, "m") + np.sort(rng.integers(0, 60 * 24 * 30, size=n)).astype("timedelta64[m]")
    rows = [{"when": time, "x": float(rng.normal())} for time in times.astype("datetime64[us]").tolist()]
    return rows, [int(8 <= row["when"].hour < 20 and row["when"].weekday() < 6) for row in rows]


@pytest.mark.parametrize("missing", ["indicator", "mean"])
def test_dates_become_calendar_features(missing: str, tmp_path: Path) -> None:
    from regretless.core.rows.calendar import calendar_features

    rows, y = shop_hours()
    rows[20]["when"] = None
    whole, one, cut = (OnlineLogisticRegression(classes=[0, 1], missing=missing) for _ in range(3))
    whole.partial_fit(rows, y)
    assert whole.column_kinds_ == ("date", "number")
    for row, label in zip(rows, y, strict=True):
        one.predict_proba_one(row)
        one.learn_one(row, label)
    for i in range(0, 300, 37):
        cut.partial_fit(rows[i : i + 37], y[i : i + 37])
    for other in (one, cut, through_file(whole, tmp_path)):
        assert_same_state(other, whole)
        assert np.array_equal(other.predict_proba(rows), whole.predict_proba(rows))
    table = np.c_[[row["x"] for row in rows], calendar_features([row["when"] for row in rows])]
    linear = OnlineLogisticRegression(classes=[0, 1], missing="mean", effort="low")  # without splines of numbers
    if missing == "mean":
        np.testing.assert_allclose(
            linear.predict_then_learn(table, y), clone(linear).predict_then_learn(rows, y), rtol=0, atol=1e-12
        )


def test_dates_of_other_months_are_forecast_as_those_learned() -> None:
    rows, y = shop_hours(600)
    learner = OnlineLogisticRegression().fit(rows, y)
    for start in ("2019-06-01", "2024-02-05", "2031-01-01"):
        later, labels = shop_hours(200, start)
        assert abs(learner.predict_proba(later)[:, 1].mean() - np.mean(labels)) < 0.1


def test_frames_with_dates() -> None:
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    rows, y = shop_hours(60)
    rows[5]["when"] = None
    expected = OnlineLogisticRegression().fit(rows, y).predict_proba(rows)
    for frame in (pd.DataFrame(rows), pl.DataFrame(rows)):
        np.testing.assert_allclose(OnlineLogisticRegression().fit(frame, y).predict_proba(frame), expected, atol=1e-12)
    wide = OnlineLogisticRegression(sparse=True).fit(rows, y)
    assert wide.predict_proba(rows).shape == (60, 2)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"when": 3.0, "x": 1.0}, r"column 0 \('when'\): 3.0 is not a date, and this column holds dates"),
        ({"when": "2024-01-01", "x": 1.0}, "is not a date"),
    ],
    ids=["number", "text"],
)
def test_values_that_are_not_dates_are_refused(row: dict[str, Any], words: str) -> None:
    rows, y = shop_hours(30)
    learner = OnlineLogisticRegression().fit(rows, y)
    before = learner.predict_proba(rows)
    for call in (lambda: learner.learn_one(row, 1), lambda: learner.predict_one(row)):
        with pytest.raises(BadRow, match=words):
            call()
    with pytest.raises(BadRow, match="is a date, and this column has held numbers"):
        learner.learn_one({"when": rows[0]["when"], "x": rows[0]["when"]}, 1)
    with pytest.raises(BadRow, match="a date is missing"):
        OnlineLogisticRegression(missing="error").fit([*rows[:2], {"when": None, "x": 1.0}], [0, 1, 0])
    assert np.array_equal(learner.predict_proba(rows), before)
