"""OnlineLogisticRegression's members, mixture and rescaling, each against its definition."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

from learners import changed, standardised
from logistic_reference import (
    adagrad_member,
    by_range,
    certified_member,
    frequencies_member,
    mixture,
    newton_member,
    some_rows,
)
from regretless.core.errors import TooLarge
from regretless.core.numbers.scores import new_scores
from regretless.core.numbers.tally import LOSS, ROWS, TALLIES
from regretless.learners.logistic import adagrad, certified, folds, frequencies, members, newton
from regretless.learners.logistic.linear import forecast_block
from regretless.learners.logistic.members import ADAGRAD, BUDGET, HALF_LIVES, NEWTON, Constants, choose, names
from regretless.learners.logistic.mixing import MixtureState, blend, mix, reserve, write_forecasts
from regretless.learners.logistic.newton import INTERCEPT, LAM, VERSION, first_variance, settle
from regretless.learners.logistic.scaling import RANGED, STANDARDISED, rescale
from regretless.learners.logistic.settings import Settings
from regretless.learners.second_order import aioli, multiclass
from regretless.learners.second_order.rounding import SUMS
from regretless.learners.second_order.surrogate import SurrogateState, helmert

NO_STACK = np.empty((0, 0)), np.empty(0)


class Stream:
    """Rescaled rows, soft labels and weights."""

    def __init__(self, K: int, n: int = 60, d: int = 4) -> None:
        X, y = some_rows(n, d, K)
        rng = np.random.default_rng(5)
        self.X = standardised(X)
        self.Y = np.where(rng.random((n, 1)) < 0.3, rng.dirichlet(np.ones(K), size=n), np.eye(K)[y])
        self.weight = rng.choice([0.5, 1.0, 2.0], size=n)
        self.out = np.empty((n, K))
        self.n, self.d, self.K = n, self.X.shape[1], K
        self.matrices = K if K > 2 else 1

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.X, self.Y, self.weight


# ---------------------------------------------------------------------- which there are


def test_there_are_as_many_members_as_time_allows() -> None:
    assert len(choose(20, 2, "auto", False).newton) == len(NEWTON)
    assert len(choose(20, 10, "auto", False).radii) == 1
    assert not len(choose(65, 10, "auto", False).radii)
    wide = choose(3000, 2, "auto", False)
    assert len(wide.newton) == len(wide.radii) == 0
    assert len(wide.rates) == len(ADAGRAD)


@pytest.mark.parametrize("budget", [BUDGET, 10.0, 1e3, 1e5])
def test_those_for_more_classes_are_the_first_of_those_for_fewer(
    budget: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left out forgets everything, so it cannot come back with a new class."""
    monkeypatch.setattr(members, "BUDGET", budget)
    for width in (1, 5, 30, 100, 300):
        for K in (2, 3, 10, 30):
            few, many = choose(width, K + 1, "auto", True), choose(width, K, "auto", True)
            assert np.array_equal(few.newton, many.newton[: len(few.newton)])
            assert np.array_equal(few.radii, many.radii[: len(few.radii)])
            assert len(few.newton) * (K + 1) * width**2 <= budget


def test_members_have_names() -> None:
    found = names(choose(20, 2, (0.5,), True), 2)
    assert found[0] == "AIOLI, radius 0.5"
    assert names(choose(20, 3, (0.5,), False), 3)[0] == "FOLKLORE, radius 0.5"
    assert found[1] == "Newton steps, learning rate 3.33, regularization 0.3"
    assert found[2] == "Newton steps, learning rate 1, regularization 0.3, half-life 7 rows"
    assert found[6] == "Newton steps, learning rate 1, regularization 30, of the intercept 0.3, 0/1 columns by range"
    assert found[-2] == "AdaGrad, learning rate 0.1, 0/1 columns by range"
    assert found[-1] == "label frequencies"
    assert len(found) == choose(20, 2, (0.5,), True).total == 1 + len(NEWTON) + len(HALF_LIVES) + len(ADAGRAD) + 1


def test_the_intercept_has_its_own_prior_and_rate() -> None:
    with_one, without = choose(500, 2, "auto", True), choose(500, 2, "auto", True, intercept=False)
    assert set(with_one.newton[:, INTERCEPT]) <= {0.1, 0.3, 1.0, 3.0}
    assert np.array_equal(without.newton[:, INTERCEPT], without.newton[:, LAM])
    assert with_one.rates[0].tolist() == pytest.approx([0.02, 0.1, 0.0])
    assert np.array_equal(without.rates[:, 1], without.rates[:, 0])


def test_weights_before_the_first_row_are_those_of_all_members() -> None:
    narrow, wide = choose(20, 2, "auto", False), choose(1200, 2, "auto", False)
    assert narrow.prior.sum() == pytest.approx(1.0)
    assert wide.total < narrow.total
    assert wide.prior[0] == narrow.prior[len(narrow.radii)]  # so that ln(1/prior) covers members that were dropped
    assert set(wide.newton[:, VERSION]) == {
        STANDARDISED,
        RANGED,
    }  # a cautious member on columns by range is among the first


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"missing": "zero"}, "missing='zero' is not supported: choose one of"),
        ({"drift": True}, "drift=True is not supported"),
        ({"on_bad_row": "raise"}, "on_bad_row='raise' is not supported"),
        ({"max_classes": 1}, "max_classes=1"),
        ({"max_categories": -1}, "max_categories=-1"),
        ({"fit_intercept": 1}, "fit_intercept=1 is not supported: give True or False"),
    ],
)
def test_settings_are_validated(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Settings(**wrong)


def test_radii_are_validated() -> None:
    for wrong in ("none", 3.0, [0.0], [-1.0]):
        with pytest.raises(ValueError, match="radii="):
            choose(3, 2, wrong, False)


def test_constants_that_would_not_fit_into_memory() -> None:
    assert Settings().constants(5, 3).helmert.shape == (3, 2)
    assert Settings().constants(5000, 3).helmert.shape == (0, 0)
    assert Settings(drift="track").constants(5, 2).shares
    with pytest.raises(TooLarge, match=r"1000001 columns and 2 classes need [\d,]+\.\d GiB"):
        Settings(radii=(1.0,)).constants(10**6, 2)


# ---------------------------------------------------------------------- one by one


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("rho", [1.0, 0.9])
def test_a_newton_member(K: int, rho: float) -> None:
    s, intercept = Stream(K), 0.02 if rho == 1.0 else 0.3
    P = np.tile(first_variance(np.array([0.3]), K)[0] * np.eye(s.d), (s.matrices, 1, 1))
    P[:, -1, -1] = first_variance(np.array([intercept]), K)
    P, w = folds.folded(P), np.zeros((s.matrices, s.d))
    steps = np.array([[0.5, 0.3, rho, RANGED]])
    newton.run(P[None], w[None], steps, (np.empty_like(s.X), s.X), s.Y, s.weight, False, s.out[None])
    expected = newton_member(*s.rows, 0.5, 0.3, rho, intercept)
    np.testing.assert_allclose(log_softmax(s.out, axis=1), log_softmax(expected, axis=1), atol=1e-9)


@pytest.mark.parametrize("d", [1, 7, 80, 81, 130])
def test_the_matrices_are_updated_with_the_next_row(d: int) -> None:
    rng = np.random.default_rng(0)
    A, X, U = rng.normal(size=(2, d, d)), rng.normal(size=(3, d)), 0.1 * rng.normal(size=(3, 2, d)) / np.sqrt(d)
    P = np.eye(d) + A @ A.transpose(0, 2, 1)
    stored = folds.folded(P)
    assert np.array_equal(folds.unfolded(stored, d), P)
    row, V = folds.zeros(3, stored.shape[2]), folds.zeros(2, stored.shape[2])
    for x, U_x in zip(X, U, strict=True):
        row[0, :d] = x
        for k in range(2):
            folds.fold(stored, k, row, V)
        np.testing.assert_allclose(V[:, :d], P @ x, atol=1e-9)
        stored[:, -1, :d] = U_x
        P -= U_x[:, :, None] * U_x[:, None, :]
    found = folds.unfolded(stored, d)
    np.testing.assert_allclose(found, P, atol=1e-12)
    assert np.array_equal(found, found.transpose(0, 2, 1))
    folds.check("P", folds.folded(found), d, np.linalg.eigvalsh(found)[:, -1])
    for place in [
        *[(0, 0, d)] * (stored.shape[2] > d),
        *[(1, d, 0)] * (stored.shape[1] > d + 1),
        *[(0, 0, 16)] * (d > 80),
    ]:
        with pytest.raises(ValueError, match="entries where none are used"):
            folds.check("P", changed(folds.folded(found), place, 1.0), d, np.linalg.eigvalsh(found)[:, -1])


@pytest.mark.parametrize("K", [2, 3])
def test_an_adagrad_member_of_rows_without_columns_writes_nothing(K: int) -> None:
    memory, n, C = np.arange(20.0), 4, 1 if K == 2 else K
    X, Y = np.ndarray((n, 0), buffer=memory, offset=80), np.eye(K)[np.arange(n) % K]
    table = np.ndarray((1, 3, C, 0), buffer=memory, offset=80)
    rates = np.array([[0.3, 0.8, STANDARDISED]])
    adagrad.run(table, np.zeros(1), rates, (X, X), Y, np.ones(n), np.empty((1, n, K)))
    assert np.array_equal(memory, np.arange(20.0))


@pytest.mark.parametrize("K", [2, 3])
def test_an_adagrad_member_and_its_certificate(K: int) -> None:
    s = Stream(K)
    table, slope, rates = np.zeros((3, s.matrices, s.d)), np.zeros(1), np.array([[0.3, 0.8, STANDARDISED]])
    adagrad.run(table[None], slope, rates, (s.X, np.empty_like(s.X)), s.Y, s.weight, s.out[None])
    expected = log_softmax(adagrad_member(*s.rows, 0.3, 0.8), axis=1)
    np.testing.assert_allclose(log_softmax(s.out, axis=1), expected, atol=1e-9)
    gradients = table[adagrad.GRADIENTS]
    loss = -s.weight @ np.sum(s.Y * expected, axis=1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        u = rng.normal(size=(s.matrices, s.d))
        logits = s.X @ u.T if K > 2 else np.column_stack([-s.X @ u[0], s.X @ u[0]]) / 2
        of_u = -s.weight @ np.sum(s.Y * log_softmax(logits, axis=1), axis=1)
        assert loss - of_u <= slope[0] - np.sum(gradients * u) + 1e-9


@pytest.mark.parametrize("K", [2, 3])
def test_the_label_frequencies(K: int) -> None:
    s, counts = Stream(K), np.zeros(K)
    frequencies.run(counts, s.Y, s.weight, s.out)
    np.testing.assert_allclose(log_softmax(s.out, axis=1), frequencies_member(s.Y, s.weight), atol=1e-12)
    np.testing.assert_allclose(counts, s.weight @ s.Y)
    frequencies.forecast_block(counts, s.out)
    np.testing.assert_allclose(softmax(s.out, axis=1), np.tile((counts + 1) / (counts.sum() + K), (s.n, 1)))


@pytest.mark.parametrize("K", [2, 3])
def test_a_certified_member(K: int) -> None:
    s, lam = Stream(K), 0.5
    size = (K - 1) * s.d
    state = SurrogateState((2.0 if K == 2 else 1.0) / lam * np.eye(size), np.zeros(size), np.zeros(SUMS))
    members = choose(s.d, K, (1.0,), False)
    assert members.regularization == [lam]
    c = Constants(*members, helmert=helmert(K), blind=np.empty(0, np.int64), shares=False)
    run, forecast, constants_of = (
        (aioli.run, aioli.forecast_block, certified.aioli_constants)
        if K == 2
        else (multiclass.run, multiclass.forecast_block, certified.folklore_constants)
    )
    run(state, *s.rows, constants_of(c, 0), s.out)
    np.testing.assert_allclose(log_softmax(s.out, axis=1), certified_member(*s.rows, 1.0), atol=1e-12)
    assert state.tally[ROWS] == s.n
    again = np.empty_like(s.out)
    run(SurrogateState(*(array.copy() for array in state)), s.X, s.Y, 0 * s.weight, constants_of(c, 0), again)
    forecast(state, s.X, constants_of(c, 0), s.out)
    np.testing.assert_array_equal(s.out, again)


@pytest.mark.parametrize("C", [1, 4])
def test_linear_logits(C: int) -> None:
    rng = np.random.default_rng(0)
    w, X = rng.normal(size=(C, 3)), rng.normal(size=(5, 3))
    out = np.empty((5, max(C, 2)))
    forecast_block(w, X, out)
    scores = X @ w.T
    np.testing.assert_allclose(out, scores if C > 1 else np.hstack([-scores, scores]) / 2)


@settings(max_examples=200, deadline=None)
@given(st.integers(3, 8), st.floats(-8.0, 8.0), st.floats(-3.0, 3.0), st.integers(0, 2**32 - 1))
def test_an_implicit_step_settles(K: int, size: float, doubt: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, q = 10.0 ** (size / 4) * rng.normal(size=K), 10.0 ** rng.uniform(-3, doubt + 1e-3, size=K)
    y = rng.dirichlet(np.full(K, 0.2))
    z, p = np.empty(K), np.empty(K)
    settle(m, q, 1.5, y, z, p)
    residual = z - m - 1.5 * q * (y - softmax(z))
    assert np.abs(residual).max() <= 1e-9 * (1 + np.abs(m).max() + q.max())


# ---------------------------------------------------------------------- mixing


@pytest.mark.parametrize("shares", [False, True])
def test_the_mixture(shares: bool) -> None:
    s, N = Stream(3), 5
    logits = 3.0 * np.random.default_rng(0).normal(size=(N, s.n + 1, 3))[:, :-1]  # in a larger array, as in games
    prior = np.array([4.0, 1.0, 2.0, 2.0, 1.0])
    state = MixtureState(prior, np.log(prior / 4.0), np.zeros(N), *new_scores(), np.zeros(TALLIES), *NO_STACK)
    mix(state, logits, s.Y, s.weight, np.ones(s.n), shares, False, s.out)
    expected = mixture(list(logits), s.Y, s.weight, shares, prior)
    np.testing.assert_allclose(np.exp(s.out), expected, atol=1e-12)
    losses = -np.sum(s.weight[:, None] * s.Y * log_softmax(logits, axis=2), axis=(1, 2))
    np.testing.assert_allclose(state.losses, losses)
    assert state.tally[LOSS] == pytest.approx(-s.weight @ np.sum(s.Y * np.log(expected), axis=1))
    assert state.scores[0] == state.tally[ROWS] == s.n
    assert state.log_weight.max() <= 0.0
    blended, unlearned = np.empty_like(s.out), np.empty_like(s.out)
    blend(state.log_weight, state.stack_weights, logits, blended)
    before = [array.copy() for array in state]
    mix(state, logits, s.Y, 0 * s.weight, np.ones(s.n), shares, True, unlearned)
    np.testing.assert_array_equal(blended, unlearned)
    assert all(np.array_equal(a, b) for a, b in zip(before, state, strict=True))


def test_what_is_kept_for_labels_never_seen_costs_less_than_ln_2() -> None:
    s = Stream(2, n=500)
    logits = np.zeros((1, s.n + 1, 2))[:, :-1]
    totals = []
    for reserves in (False, True):
        state = MixtureState(np.ones(1), np.zeros(1), np.zeros(1), *new_scores(), np.zeros(TALLIES), *NO_STACK)
        mix(state, logits, s.Y, np.ones(s.n), np.ones(s.n), False, reserves, s.out)
        totals.append(state.tally[LOSS])
    cost = -sum(math.log1p(-reserve(t)) for t in range(s.n))
    assert totals[1] - totals[0] == pytest.approx(cost)
    assert cost < math.log(2)


def test_forecasts_have_columns_for_labels_to_come() -> None:
    said, weight = np.log([[0.5, 0.25, 0.25], [0.2, 0.4, 0.4]]), np.array([0.0, 1.0])
    out = np.empty((2, 3))
    write_forecasts(said, 3, 8.0, weight, out)
    np.testing.assert_array_equal(out, said)
    wide = np.empty((2, 5))
    write_forecasts(said, 3, 8.0, weight, wide)  # both rows after 8: the first is not learned
    np.testing.assert_allclose(np.exp(wide[:, 3:]), 0.01 / 2)
    np.testing.assert_allclose(np.exp(wide[:, :3]), 0.99 * np.exp(said))
    write_forecasts(said, 2, 8.0, weight, out)  # the third class appears in these rows
    np.testing.assert_allclose(np.exp(out), [[0.99 * 2 / 3, 0.99 / 3, 0.01], [0.99 / 3, 0.99 * 2 / 3, 0.01]])


# ---------------------------------------------------------------------- rescaling


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=20))
def test_sums_of_squares_of_any_size(values: list[float]) -> None:
    """Against numbers without bounds."""
    moments, out = np.zeros((6, 1)), np.empty((1, 1))
    for t, value in enumerate(values):
        before = [Fraction(x) for x in values[:t]]
        rescale(moments, np.array([[value]]), np.ones(1), out, np.empty((1, 1)))
        away = Fraction(value) - sum(before) / max(t, 1)
        square = sum((x - sum(before) / t) ** 2 for x in before) + away**2 * Fraction(t, t + 1)
        z = 0.0 if square == 0 else math.copysign(math.sqrt(away**2 * t / square), away)
        rounding = 1e-15 * t * float(max(map(abs, map(Fraction, values[: t + 1])))) + 1e-321
        if abs(away) > 1e6 * Fraction(rounding):
            assert out[0, 0] == pytest.approx(min(max(z, -4.0), 4.0), rel=1e-5)
        assert abs(out[0, 0]) <= 4.0


def test_rows_of_weight_0_are_rescaled_and_not_counted() -> None:
    moments, out = np.zeros((6, 2)), np.empty((3, 3))
    X = np.array([[1.0, np.nan], [2.0, 5.0], [4.0, 7.0]])
    rescale(moments, X, np.array([1.0, 0.0, 1.0]), out, np.empty_like(out))
    assert moments[3:].tolist() == [[1.0, 7.0], [4.0, 7.0], [0.0, 0.0]]
    assert moments[0].tolist() == [2.0, 1.0]
    assert moments[1].tolist() == [2.5, 7.0]
    assert out[:, 2].tolist() == [1.0, 1.0, 1.0]  # the intercept
    assert out[0].tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("scale", [1.0, 2.0**-1000, 1e100])
def test_a_column_of_two_values_is_divided_by_its_range(scale: float) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(40) < 0.1, 3.0 * (rng.random(40) < 0.5) - 5.0, rng.normal(size=40), np.ones(40)])
    X[30, 0] = 2.0  # a third value: standardised from here on
    out, ranged = np.empty((2, 40, 5))
    rescale(np.zeros((6, 4)), X * scale, np.ones(40), out, ranged)
    np.testing.assert_allclose(ranged, by_range(X), atol=1e-9)
    np.testing.assert_allclose(out, standardised(X), atol=1e-9)
    assert np.array_equal(ranged[30:, 0], out[30:, 0])
    assert np.abs(ranged[:30, :2]).max() <= 2.0


@pytest.mark.parametrize("radius", [1e308, 1e-160])
def test_radii_whose_squares_overflow_are_refused(radius: float) -> None:
    with pytest.raises(ValueError, match=r"radii=.*1e-50 to 1e.50"):
        choose(3, 2, (1.0, radius), False)
