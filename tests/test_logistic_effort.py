"""OnlineLogisticRegression's expanded rows, their members, their sizes and the stack, each against its definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

import regretless
from learners import assert_same_state, standardised, through_file
from logistic_reference import chance, fourier_rows, play, pooled_member, product_rows, rank_of, some_rows, spline_rows
from regretless import OnlineLogisticRegression
from regretless.core.numbers.tally import LOSS
from regretless.learners.logistic import effort, folds, linear, newton, splines, stacking, state
from regretless.learners.logistic.effort import (
    BUDGETS,
    EFFORTS,
    FOURIER,
    PRODUCTS,
    SPLINES,
    cost,
    expansion,
    forest_cost,
)
from regretless.learners.logistic.fourier_rows import fourier_rows as write_fourier_rows
from regretless.learners.logistic.fourier_rows import frequencies, next_octave
from regretless.learners.logistic.game import Game
from regretless.learners.logistic.newton import first_variance
from regretless.learners.logistic.product_rows import choose_pairs
from regretless.learners.logistic.product_rows import product_rows as write_product_rows
from regretless.learners.logistic.scaling import STANDARDISED
from regretless.learners.logistic.settings import Settings
from regretless.learners.logistic.splines import SAMPLE, Ranks
from test_logistic_members import Stream

# ---------------------------------------------------------------------- sizes


def test_sizes_stay_within_the_budget_and_members_never_come_back() -> None:
    for name in ("medium", "high"):
        for K in (2, 3, 10, 40, 200):
            before = None
            for d in (0, 1, 5, 20, 60, 100, 140, 200, 500, 2000, 10**6):
                found = expansion(name, d, d, K, True)
                sizes, budget = found.sizes, BUDGETS[name]
                if found.splines:
                    assert cost(splines.width(d, d, sizes.levels, True), K) <= budget
                if found.fourier:
                    width = 2 * sizes.directions + sizes.direct * d + 1
                    assert cost(width, K) + sizes.directions * d <= budget
                if found.products:
                    assert cost(sizes.pairs + d + 1, K) <= budget
                assert forest_cost(sizes.trees, d, K) <= budget
                kinds = [len(found.splines), len(found.fourier), len(found.products), sizes.trees]
                assert before is None or all(now <= then for now, then in zip(kinds, before, strict=True))
                before = kinds
            assert found.stacks
            assert not any(before)


def test_what_each_effort_has() -> None:
    low, medium, high = (expansion(name, 20, 20, 2, True) for name in EFFORTS)
    assert low == effort.Expansion()
    assert (medium.splines, medium.fourier, medium.products) == (SPLINES[:-1], (), ())
    assert (high.splines, high.fourier, high.products) == (SPLINES[:-1], FOURIER, PRODUCTS[:-1])
    few = expansion("high", 10, 10, 2, True)  # more members where each is cheap
    assert (few.splines, few.fourier, few.products) == (SPLINES, FOURIER, PRODUCTS)
    assert medium.sizes.trees == 0
    assert high.sizes == effort.Sizes(3, 75, True, 210, 10)
    assert expansion("medium", 30, 30, 2, True).sizes.levels == 2  # wider rows have fewer hats
    assert expansion("medium", 130, 5, 2, True).sizes.levels == 3  # categories have none
    with pytest.raises(ValueError, match="effort='most' is not supported: choose one of"):
        Settings(effort="most")


def test_the_weights_before_the_first_row_cost_the_linear_members_little() -> None:
    for name in EFFORTS:
        prior = OnlineLogisticRegression(effort=name).fit(*some_rows(30, 3, 2))._constants.prior
        assert prior.sum() == pytest.approx(1.0)
        linear = prior[: OnlineLogisticRegression(effort="low").fit(*some_rows(30, 3, 2))._constants.prior.size]
        assert -math.log(linear.sum()) <= {"low": 1e-12, "medium": 0.05, "high": 0.13}[name]


# ---------------------------------------------------------------------- expanded rows


def test_spline_rows() -> None:
    rng = np.random.default_rng(0)
    n, d = 400, 4
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 5, n), np.full(n, 7.0), rng.lognormal(sigma=20, size=n)])
    Z, levels = standardised(X), 3
    out = np.empty((n, splines.width(d, d, levels, True)))
    ranks = Ranks(np.zeros((d, SAMPLE)), np.zeros(d), np.arange(d), levels)
    splines.spline_rows(ranks, X, np.ones(n), Z, out)
    np.testing.assert_allclose(out, spline_rows(X, Z, levels), atol=1e-12)
    assert not out[:, d:-1].reshape(n, -1, d)[:, :, 2].any()  # a column that never changed
    splines.check(ranks.samples, ranks.counts)
    assert set(ranks.samples[3]) <= set(X[:, 3])
    # ranks do not depend on the unit
    scaled = np.empty_like(out)
    again = Ranks(np.zeros((d, SAMPLE)), np.zeros(d), np.arange(d), levels)
    splines.spline_rows(again, np.cbrt(X), np.ones(n), Z, scaled)
    np.testing.assert_array_equal(scaled, out)


def test_a_missing_value_and_a_row_of_weight_0_leave_the_sample_unchanged() -> None:
    X, weight = np.array([[1.0], [np.nan], [2.0], [3.0]]), np.array([1.0, 1.0, 0.0, 1.0])
    ranks, out = Ranks(np.zeros((1, SAMPLE)), np.zeros(1), np.arange(1), 2), np.empty((4, 5))
    splines.spline_rows(ranks, X, weight, np.zeros((4, 2)), out)
    assert not out[1].any()
    assert ranks.counts.tolist() == [2.0]
    assert ranks.samples[0, :3].tolist() == [1.0, 3.0, 0.0]
    assert out[3, 1] == -abs(2 * rank_of(3.0, [1.0]) - 1)


def test_every_value_has_the_same_chance_to_stay_in_a_sample() -> None:
    n = 20_000
    ranks, out = Ranks(np.zeros((1, SAMPLE)), np.zeros(1), np.arange(1), 1), np.empty((n, 2))
    X = np.arange(n, dtype=float)[:, None]
    splines.spline_rows(ranks, X, np.ones(n), np.zeros((n, 1)), out)
    quarters = np.bincount((4 * ranks.samples[0] / n).astype(int), minlength=4)
    assert quarters.sum() == SAMPLE
    assert quarters.min() >= 16  # of 32 expected
    assert [splines.chance(i) for i in (1, 129, 10**9)] == [chance(i) for i in (1, 129, 10**9)]


def test_samples_that_no_run_has_are_refused() -> None:
    good = np.zeros((1, SAMPLE))
    good[0, :2] = 1.0, 3.0
    splines.check(good, np.array([2.0]))
    for wrong, words in ((good[:, ::-1].copy(), "more values"), (-good, "not sorted"), (good * 1e200, "samples")):
        with pytest.raises(ValueError, match=words):
            splines.check(wrong, np.array([2.0]))


@pytest.mark.parametrize("octave", [0, 1, 2])
def test_fourier_rows(octave: int) -> None:
    X, _ = some_rows(80, 3, 2)
    Z, waves, spread = standardised(X), frequencies(7, 3), np.zeros(2)
    out = np.empty((80, 2 * 7 + 4))
    write_fourier_rows(waves, spread, np.ones(80), Z, out)
    for _ in range(octave):
        next_octave(7, out)
    np.testing.assert_allclose(out, fourier_rows(Z, waves, octave), atol=1e-12)
    assert spread.tolist() == pytest.approx([80.0, np.sum(Z[:, :-1] ** 2)])
    alone = np.empty((80, 2 * 7 + 1))  # without the rescaled row
    write_fourier_rows(waves, np.zeros(2), np.ones(80), Z, alone)
    np.testing.assert_array_equal(alone[:, -1], 1.0)
    np.testing.assert_array_equal(frequencies(7, 9)[:, :3], waves)


def test_product_rows() -> None:
    X, _ = some_rows(20, 4, 2)
    Z = standardised(X)
    pairs = choose_pairs(10, 4, np.empty((0, 2)))
    out = np.empty((20, 10 + 5))
    write_product_rows(pairs, Z, out)
    np.testing.assert_allclose(out, product_rows(Z))
    few = choose_pairs(30, 100, np.empty((0, 2)))
    assert len({tuple(pair) for pair in few.tolist()}) == 30
    more = choose_pairs(40, 101, few)
    assert np.array_equal(more[:30], few)
    assert len({tuple(pair) for pair in more.tolist()}) == 40
    assert np.array_equal(choose_pairs(12, 101, few), few[:12])


# ---------------------------------------------------------------------- members


@pytest.mark.parametrize("K", [2, 3])
def test_a_pooled_member(K: int) -> None:
    s = Stream(K)
    P, w = folds.folded(first_variance(np.array(0.7), K) * np.eye(s.d)[None]), np.zeros((s.matrices, s.d))
    one, steps = (P[None], w[None]), np.array([[0.4, 0.7, 1.0, STANDARDISED]])
    newton.run(*one, steps, (s.X, s.X), s.Y, s.weight, False, s.out[None])
    expected = log_softmax(pooled_member(*s.rows, 0.4, 0.7, 0.7), axis=1)
    np.testing.assert_allclose(log_softmax(s.out, axis=1), expected, atol=1e-9)
    again, told = (w.copy(), P.copy()), np.empty_like(s.out)
    newton.run(*one, steps, (s.X, s.X), s.Y, 0.0 * s.weight, False, told[None])
    assert np.array_equal(w, again[0])
    assert np.array_equal(P, again[1])
    linear.forecast_block(w, s.X, s.out)
    assert np.array_equal(s.out, told)


@pytest.mark.parametrize("K", [2, 5])
def test_a_step_of_the_stack_minimises_along_its_direction(K: int) -> None:
    rng = np.random.default_rng(0)
    for size in np.repeat((0.1, 1.0, 15.0), 20):
        F, y, weight = rng.uniform(-size, size, (4, K)), rng.dirichlet(np.full(K, 0.3)), 1.7
        P, w = np.eye(4) / 0.01, np.zeros(4)
        z = w @ F
        stacking.learn(P, w, F, z, y, weight, (np.empty((3, K)), np.empty((3, 4))))
        g = F @ (y - softmax(z))
        v = g / 0.01

        def objective(s: float, v: np.ndarray = v, g: np.ndarray = g, F: np.ndarray = F, y: np.ndarray = y) -> float:
            return -1.7 * float(y @ log_softmax(s * v @ F)) + s * s * float(v @ g) / 2

        s = float(w @ v / (v @ v))
        np.testing.assert_allclose(w, s * v)
        assert 0.0 <= s <= weight
        assert objective(s) <= min(objective(s - 1e-4), objective(s + 1e-4)) + 1e-12
        p = softmax(s * v @ F)
        H = F @ (np.diag(p) - np.outer(p, p)) @ F.T
        grown = np.linalg.inv(P) - 0.01 * np.eye(4)
        np.testing.assert_allclose(grown, weight * np.outer(H @ v, H @ v) / (v @ H @ v), atol=1e-6 * np.abs(H).max())
        assert np.linalg.eigvalsh(weight * H - grown).min() >= -1e-6 * np.abs(H).max()


# ---------------------------------------------------------------------- streams


def circle(n: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(n, 2))
    return X, (np.sum(X**2, axis=1) < 0.5).astype(int)


def test_more_effort_learns_more() -> None:
    X, y = circle()
    product = (X[:, 0] * X[:, 1] > 0.0).astype(int)
    losses = {
        (name, shape): OnlineLogisticRegression(effort=name).fit(X, labels).total_loss_ / len(y)
        for name in EFFORTS
        for shape, labels in (("sum", y), ("product", product))
    }
    assert losses["low", "sum"] > 0.6
    assert losses["medium", "sum"] < 0.25
    assert losses["medium", "product"] > 0.6  # a sum of functions of one column each cannot tell
    assert losses["high", "product"] < 0.2
    learner = OnlineLogisticRegression(effort="high").fit(X, product)
    assert "stack of all others" in learner.report()
    assert len(learner.members_) == learner.weights_.size == learner._constants.members.total


@pytest.mark.parametrize("name", ["medium", "high"])
def test_cuts_into_blocks_and_files_change_nothing(name: str, tmp_path: Any) -> None:
    X, y = some_rows(300, 6, 4)
    y[:80] %= 2
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    X[:60] = np.nan_to_num(X[:60])
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], size=300)
    whole, parts = OnlineLogisticRegression(effort=name), OnlineLogisticRegression(effort=name)
    whole.partial_fit(X, y, sample_weight=weight)
    for i in range(0, 300, 37):
        parts.partial_fit(X[i : i + 37], y[i : i + 37], sample_weight=weight[i : i + 37])
        parts = through_file(parts, tmp_path)
    assert_same_state(whole, parts)
    before = [array.copy() for array in whole.state_]
    said = whole.predict_proba(X[:5])
    assert all(np.array_equal(a, b) for a, b in zip(before, whole.state_, strict=True))
    np.testing.assert_allclose(said, np.vstack([whole.predict_proba_one(x) for x in X[:5]]), atol=0.0)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("effort", ["low", "high"])
def test_columns_that_come_later_are_as_if_they_had_been_there(effort: str, K: int) -> None:
    X, y = some_rows(60, 3, K)
    settings = Settings(effort=effort)
    numbers = np.arange(3)
    narrow, wide = settings.constants(3, K, numbers), settings.constants(5, K, numbers)
    few = state.start(3, True, K, narrow.members)
    few = play(few, narrow, X, np.eye(K)[y])
    grown = state.add_columns(few, narrow.members, wide.members, 5, np.array([60.0, 60.0]))
    many = state.start(5, True, K, wide.members)
    padded = np.hstack([X, np.zeros((60, 2))])
    many = play(many, wide, padded, np.eye(K)[y])
    for field, a, b in zip(many._fields, state.unfolded(grown), state.unfolded(many), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9, err_msg=field)
    state.check(grown, wide.members)
    fresh = state.add_columns(state.start(3, True, K, narrow.members), narrow.members, wide.members, 5, np.empty(0))
    assert fresh.moments.shape == (6, 5)
    assert state.add_columns(few, narrow.members, narrow.members, 3, np.empty(0)) is few


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_class_more_leaves_the_odds_of_the_others(K: int, intercept: bool) -> None:
    settings = Settings(effort="high", fit_intercept=intercept)
    before, after = settings.constants(3, K), settings.constants(3, K + 1)
    X, y = some_rows(80, 3, K)
    found = play(state.start(3, intercept, K, before.members), before, X, np.eye(K)[y])
    grown = state.add_class(found, before.members, after.members, X[:1])
    fresh = state.start(3, intercept, K + 1, after.members)
    shapes = {name: array.shape for name, array in fresh._asdict().items()}
    shapes["forest_nodes"] = (len(found.forest_nodes), shapes["forest_nodes"][1])
    assert {name: array.shape for name, array in grown._asdict().items()} == shapes
    for kind in ("spline", "fourier", "product"):
        old, new = getattr(found, f"{kind}_weights"), getattr(grown, f"{kind}_weights")
        odds = np.diff(old, axis=1) if K > 2 else old
        np.testing.assert_allclose(np.diff(new[:, :K], axis=1), odds, atol=1e-12)
    said = np.empty((80, K + 1))
    Game(grown, after).forecast(X, said)
    np.testing.assert_allclose(np.exp(said).sum(axis=1), 1.0)
    assert grown.tally[LOSS] == found.tally[LOSS]


@pytest.mark.slow
@pytest.mark.parametrize("effort", ["medium", "high"])
def test_rows_that_grow_wide_lose_hats_and_members_at_their_row(effort: str) -> None:
    rng = np.random.default_rng(0)
    rows = [{f"n{j}": float(rng.normal()) for j in range(30)} for _ in range(90)]
    for i, row in enumerate(rows):
        row |= {f"late{j}": float(rng.normal()) for j in range(i)} if i < 80 else {f"late{j}": 1.0 for j in range(80)}
        row |= {f"late{j}": math.nan for j in range(80) if f"late{j}" not in row}
    y = rng.integers(0, 3, 90)
    whole, parts = (OnlineLogisticRegression(effort=effort, missing="mean", classes=range(3)) for _ in range(2))
    p = whole.predict_then_learn(rows, y)
    for row, label in zip(rows, y, strict=True):
        parts.learn_one(row, int(label))
    assert_same_state(whole, parts)
    assert np.isfinite(p).all()
    assert effort == "high" or not len(whole.state_.spline_weights)
    assert len(whole.state_.stack_weights) == len(whole.members_)
    state.check(whole.state_, whole._constants.members)


def hard_rows(n: int, d: int) -> np.ndarray:
    """Columns: constant, one value that differs, ranges of 10^9, integer codes, no values; and duplicated rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X[:, 0], X[:, 1], X[:, 2] = 5.0, np.where(np.arange(n) == n // 2, 1.0, 0.0), 1e9 * rng.standard_cauchy(size=n)
    X[:, 3], X[:, 4] = rng.integers(0, 1000, n), np.nan
    X[n // 2 :] = X[: n - n // 2]
    return X


@pytest.mark.parametrize(("K", "d", "n"), [(2, 6, 200), (200, 6, 60), (3, 2000, 12)])
def test_bad_input(K: int, d: int, n: int) -> None:
    X, y = hard_rows(n, d), np.random.default_rng(1).integers(0, K, n)
    learner = OnlineLogisticRegression(effort="high", classes=range(K), max_classes=200)
    assert np.isfinite(learner.predict_then_learn(X, y)).all()
    assert all(np.isfinite(array).all() for array in learner.state_)
    assert np.isfinite(learner.regret_certificate())
    state.check(learner.state_, learner._constants.members)


def test_categories_have_no_hats() -> None:
    rng = np.random.default_rng(0)
    rows = [{"size": float(rng.normal()), "colour": str(rng.choice(list("abcd"))), "late": None} for _ in range(120)]
    for row in rows[40:]:
        row["late"] = float(rng.normal())
    y = [int(row["size"] ** 2 > 1.0) for row in rows]
    learner = OnlineLogisticRegression(effort="high")
    for row, label in zip(rows, y, strict=True):
        learner.learn_one(row, label)
    numbers, schema = learner._constants.numbers, learner._encoder.schema
    assert len(numbers) == len(learner.state_.samples) == 2
    assert schema.width > 6
    assert learner.state_.moments[0, numbers].tolist() == [120.0, 80.0]
    assert_same_state(OnlineLogisticRegression(effort="high").partial_fit(rows, y), learner)


# ---------------------------------------------------------------------- regret


@pytest.mark.parametrize("K", [2, 3])
def test_the_certificate_holds_with_every_effort(K: int) -> None:
    X, y = some_rows(200, 3, K)
    Z, rng = standardised(X), np.random.default_rng(0)
    learner = OnlineLogisticRegression(effort="high", classes=range(K)).fit(X, y)
    largest = learner.competes_with.domain.largest_norm(K)
    for _ in range(30):
        W = rng.normal(size=(K, 4))
        W *= rng.uniform(0.2, 1.0) * 4.0 / np.linalg.norm(W, axis=1, keepdims=True)
        if K == 2:
            W[0] = -W[1]
        loss = -log_softmax(Z @ W.T, axis=1)[np.arange(200), y].sum()
        assert learner.total_loss_ - loss <= learner.regret_certificate() + 1e-9
    assert largest > 0.0
    prior = learner._constants.prior
    assert learner.total_loss_ <= np.min(learner.state_.losses - np.log(prior)) + 1e-9


# ---------------------------------------------------------------------- files

DAMAGE: list[tuple[str, Any, str]] = [
    ("samples", lambda a: -a, "samples are not sorted"),
    ("spline_matrices", lambda a: 2.0 * a, "spline_matrices"),
    ("fourier_matrices", lambda a: -a, "fourier_matrices"),
    ("product_matrices", lambda a: a + np.triu(np.full(a.shape[1:], 0.01), 1), "not symmetric"),
    ("spline_weights", lambda a: a + 1e250, "spline_weights"),
    ("fourier_weights", lambda a: a + 1e250, "fourier_weights"),
    ("product_weights", lambda a: a + 1e250, "product_weights"),
    ("frequencies", lambda a: a + 1e3, "frequencies"),
    ("spread", lambda a: a + 1.0, "spread counts other rows"),
    ("spread", lambda a: a * [1.0, 1e6], "spread, squares"),
    ("pairs", lambda a: a + 1.0, "pairs"),
    ("pairs", lambda a: a + 0.5, "pairs"),
    ("pairs", lambda a: a[:, ::-1].copy(), "pairs are not in order"),
    ("pairs", lambda a: 0.0 * a, "pairs: one occurs twice"),
    ("forest_tally", lambda a: a + 1.0, "forest_tally counts other rows"),
    ("forest_sizes", lambda a: a + 2.0, "forest: "),
    ("forest_nodes", lambda a: a + 1.0, "forest: "),
    ("forest_nodes", lambda a: a[:40], "forest: nodes has room for 40 nodes"),
    ("forest_nodes", lambda a: a[:, :-1].copy(), "forest_nodes"),
    ("forest_losses", lambda a: a - 1e3, "forest: losses"),
    ("forest_played", lambda a: a - 1e3, "forest: "),
    ("stack_matrix", lambda a: 2.0 * a, "stack_matrix"),
    ("stack_weights", lambda a: a + 1e250, "stack_weights"),
]


@pytest.mark.parametrize(("field", "damage", "words"), DAMAGE, ids=[f"{i}-{d[0]}" for i, d in enumerate(DAMAGE)])
def test_a_damaged_file_is_refused(field: str, damage: Any, words: str, tmp_path: Any) -> None:
    learner = OnlineLogisticRegression(effort="high").fit(*some_rows(20, 3, 3))
    learner.state_ = learner.state_._replace(**{field: damage(getattr(learner.state_, field))})
    learner.save(tmp_path / "model")
    with pytest.raises(ValueError, match=words):
        regretless.load(tmp_path / "model")


def test_the_size_of_a_state() -> None:
    for name in EFFORTS:
        for d, K in ((3, 2), (30, 4)):
            members = Settings(effort=name).constants(d, K).members
            found = state.start(d, True, K, members)
            fixed = ("tallies", "slopes", "log_weight", "losses", "scores", "bins", "tally")
            growing = sum(array.size for field, array in found._asdict().items() if field not in fixed)
            assert state.size(d, True, K, members) == growing
