"""The best in hindsight: its certificate never lies, and the gap is small."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from regretless import best_constant, best_in_hindsight, best_shifting_constants, hindsight_curve
from regretless.theory.domains import Ball, Box, Octahedron, RowBall, Simplex, SubSimplex, WholeSpace
from regretless.theory.hindsight.problem import game
from regretless.theory.losses import LOSSES, value, value_multiclass

TWO_CLASSES = ["logistic", "logit", "hinge", "exponential"]
MANY_CLASSES = ["softmax", "multiclass hinge"]
NUMBERS = ["squared", "absolute", "linear"]
SETS = {
    "ball": Ball, "box": Box, "simplex": Simplex, "subsimplex": SubSimplex, "octahedron": Octahedron,
}  # fmt: skip


def total(loss: str, W: np.ndarray, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """The total loss, by the kernels of one row."""
    code = LOSSES[loss].code
    if LOSSES[loss].kind == "multiclass":
        each = [value_multiclass(code, np.ascontiguousarray(W @ x), int(k)) for x, k in zip(X, y, strict=True)]
    else:
        target = 2.0 * y - 1.0 if LOSSES[loss].kind == "margin" else y
        each = [value(code, float(W @ x), float(t)) for x, t in zip(X, target, strict=True)]
    return float(weight @ each)


def problem(seed: int, loss: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that may be collinear, repeated or zero; labels that may be separable; weights that may be 0."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 12)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 1)
    if rng.random() < 0.3:
        X[:, -1] = X[:, 0]
    X[rng.random(n) < 0.1] = 0.0
    if loss in NUMBERS:
        y = X @ rng.normal(size=d) + rng.normal(size=n)
    elif loss in MANY_CLASSES:
        y = np.argmax(X @ rng.normal(size=(d, 3)) + rng.choice([0.0, 2.0]) * rng.normal(size=(n, 3)), axis=1)
    else:
        y = (X @ rng.normal(size=d) + rng.choice([0.0, 2.0]) * rng.normal(size=n) > 0).astype(int)
    weight = rng.choice([1.0, 1.0, 0.0, 0.3, 5.0], size=n)
    return X, y, weight


def independent_minimum(loss: str, domain: Any, lam: float, X: Any, y: Any, weight: Any, shape: Any) -> float:
    """By an interior-point solver of conic programs."""
    cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed")
    W = cp.Variable(shape)
    size = getattr(domain, "radius", getattr(domain, "size", None))
    flat = W if len(shape) == 1 else cp.vec(W, order="C")
    constraints = {
        Ball: lambda: [cp.norm(flat, 2) <= size],
        RowBall: lambda: [cp.norm(W, 2, axis=1) <= size],
        Box: lambda: [cp.abs(flat) <= size],
        Simplex: lambda: [flat >= 0, cp.sum(flat) == size],
        SubSimplex: lambda: [flat >= 0, cp.sum(flat) <= size],
        Octahedron: lambda: [cp.norm(flat, 1) <= size],
        WholeSpace: list,
    }[type(domain)]()
    if loss in MANY_CLASSES:
        Z = X @ W.T
        true = cp.sum(cp.multiply(Z, np.eye(shape[0])[y]), axis=1)
        if loss == "softmax":
            each = cp.log_sum_exp(Z, axis=1) - true
        else:
            each = cp.pos(cp.max(Z + 1.0 - np.eye(shape[0])[y], axis=1) - true)
    else:
        z = X @ W
        m = cp.multiply(2.0 * y - 1.0, z)
        each = {
            "logistic": lambda: cp.logistic(-m), "logit": lambda: cp.logistic(-m) / math.log(2.0),
            "hinge": lambda: cp.pos(1 - m), "exponential": lambda: cp.exp(-m), "squared": lambda: cp.square(z - y),
            "absolute": lambda: cp.abs(z - y), "linear": lambda: cp.multiply(y, z),
        }[loss]()  # fmt: skip
    objective = cp.Minimize(weight @ each + lam * cp.sum_squares(flat))
    found = cp.Problem(objective, constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.solve(solver=cp.CLARABEL)
    return float(found.value) if found.value is not None else math.nan


def check(seed: int, loss: str, domain: Any, lam: float) -> None:
    X, y, weight = problem(seed, loss)
    classes = {} if loss in NUMBERS else {"classes": range(3 if loss in MANY_CLASSES else 2)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        found = best_in_hindsight(X, y, loss, domain, lam, weight, **classes)
    assert domain.contains(found.w, 1e-9)
    assert found.loss == pytest.approx(
        total(loss, found.w, X, y, weight) + lam * np.sum(found.w**2), rel=1e-9, abs=1e-9
    )
    assert 0 <= found.gap <= 1e-9 * max(1.0, abs(found.loss)) * (1 + 1e-9)
    least = independent_minimum(loss, domain, lam, X, y, weight, found.w.shape)
    doubt = 2e-6 * max(1.0, abs(found.loss))  # of the independent solver
    if math.isfinite(least):
        assert found.loss - found.gap <= least + doubt
        assert found.loss >= least - doubt


CASES = [
    *itertools.product([*TWO_CLASSES, *NUMBERS], SETS),
    *itertools.product(MANY_CLASSES, ["ball", "rows"]),
]


@pytest.mark.parametrize(("loss", "kind"), CASES)
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6), size=st.sampled_from([1e-2, 1.0, 3.0]), lam=st.sampled_from([0.0, 0.0, 0.1]))
def test_the_certificate_never_lies(loss: str, kind: str, seed: int, size: float, lam: float) -> None:
    domain = RowBall(size) if kind == "rows" else SETS[kind](size)
    if loss == "exponential" and kind in ("ball", "box", "simplex", "octahedron", "subsimplex") and size > 2:
        return  # e^30 and more is beyond the independent solver, not beyond this one
    check(seed, loss, domain, lam)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "absolute", "softmax", "multiclass hinge"])
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6))
def test_with_regularization_all_of_space_will_do(loss: str, seed: int) -> None:
    check(seed, loss, WholeSpace(), 0.1)


@pytest.mark.parametrize("loss", [*TWO_CLASSES, "squared", "absolute"])
def test_a_search_stopped_early_has_an_honest_gap(loss: str) -> None:
    for seed in range(6):
        X, y, weight = problem(seed, loss)
        played = game(X, y, loss, Ball(2.0), 0.0, weight, None if loss in NUMBERS else [0, 1])
        best = played.solve(len(y), 1e-9)
        for iterations in range(4):
            early = played.solve(len(y), 1e-9, None, iterations)
            assert early.loss - early.gap <= best.loss + 1e-12 * max(1.0, best.loss), (seed, iterations)
            assert early.loss >= best.loss - best.gap, (seed, iterations)


def test_separable_rows_in_a_ball_and_beyond() -> None:
    X = np.array([[1.0, 0.2], [2.0, -0.1], [-1.0, 0.3], [-3.0, -0.2]])
    y = [1, 1, 0, 0]
    inside = best_in_hindsight(X, y, domain=Ball(2.0))
    assert np.linalg.norm(inside.w) == pytest.approx(2.0)
    far = best_in_hindsight(X, y, domain=Ball(100.0))
    assert -1e-15 <= far.loss - far.gap <= far.loss <= 1e-8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        whole = best_in_hindsight(X, y, domain=WholeSpace())
    assert 0.0 <= whole.loss <= 1e-6
    assert whole.loss - whole.gap <= 0.0


def test_sparse_rows_and_soft_labels_are_the_same_problem() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 4)), rng.integers(0, 3, size=50)
    dense = best_in_hindsight(X, y, domain=RowBall(1.0))
    for other in (
        best_in_hindsight(sparse.csr_matrix(X), y, domain=RowBall(1.0)),
        best_in_hindsight(X, np.eye(3)[y], domain=RowBall(1.0)),
    ):
        assert other.loss == pytest.approx(dense.loss, abs=1e-8)
    assert dense.w.shape == (3, 4)


def test_a_curve_is_its_points() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, size=300)
    curve = hindsight_curve(X, y, domain=Ball(1.0), classes=[0, 1])
    assert [t for t, _ in curve][-2:] == [251, 300]
    for t, found in curve:
        alone = best_in_hindsight(X[:t], y[:t], domain=Ball(1.0), classes=[0, 1])
        assert found.loss == pytest.approx(alone.loss, abs=2e-9 * max(1.0, alone.loss))
    with pytest.raises(ValueError, match="300 rows"):
        hindsight_curve(X, y, [301])


def test_what_has_no_minimum_is_refused() -> None:
    with pytest.raises(ValueError, match="no minimum"):
        best_in_hindsight(np.ones((2, 1)), [1.0, 2.0], "linear", WholeSpace())
    with pytest.raises(ValueError, match="two classes"):
        best_in_hindsight(np.ones((3, 1)), [0, 1, 2], "hinge", Ball(1.0))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["multiple", "sum", "standardised", "scales"])
def test_least_squares_with_columns_that_depend_up_to_rounding(kind: str, weighted: bool) -> None:
    """The gap is small, and holds in exact arithmetic for the weights it is for."""
    rng = np.random.default_rng(0)
    A, group = rng.normal(size=(60, 3)), np.eye(4)[rng.integers(0, 4, size=60)]
    X = {
        "multiple": np.column_stack([A, 0.3 * A[:, 0]]),
        "sum": np.column_stack([A, 0.1 * A[:, 0] + A[:, 1]]),
        "standardised": np.column_stack([A, (group - group.mean(axis=0)) / group.std(axis=0), np.ones(60)]),
        "scales": np.column_stack([1e-6 * A, A[:, 0] + A[:, 1], 1e5 * np.ones(60), np.full(60, 1 / 3)]),
    }[kind]
    y = A @ [1.0, 2.0, 3.0] + rng.normal(size=60)
    weight = rng.uniform(0.1, 2.0, size=60) if weighted else np.ones(60)
    best = best_in_hindsight(X, y, "squared", WholeSpace(), sample_weight=weight)
    assert best.gap <= 1e-9 * best.loss
    flat = np.linalg.svd(X / np.linalg.norm(X, axis=0))[2][-1] / np.linalg.norm(X, axis=0)
    largest = 0.9e4 * np.linalg.norm(y) / np.abs(flat * np.linalg.norm(X, axis=0)).max()
    rows, targets = ([list(map(Fraction, row)) for row in table.tolist()] for table in (X, np.c_[y, weight]))
    for far in (0.0, -largest, largest, 1e-3 * largest):
        w = list(map(Fraction, (best.w + far * flat).tolist()))
        misses = (
            sum(a * x for a, x in zip(w, row, strict=True)) - target
            for row, (target, _) in zip(rows, targets, strict=True)
        )
        loss = sum(c * miss**2 for miss, (_, c) in zip(misses, targets, strict=True))
        assert loss >= Fraction(best.loss) - Fraction(best.gap)


# ---------------------------------------------------------------------- constants


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_the_best_constant_of_numbers(loss: str) -> None:
    rng = np.random.default_rng(0)
    y, weight = rng.normal(size=30), rng.uniform(size=30)
    forecast, least = best_constant(y, loss, weight)
    power = 2 if loss == "squared" else 1
    for other in np.append(y, np.linspace(-3, 3, 201)):
        assert weight @ np.abs(y - other) ** power >= least - 1e-12
    assert weight @ np.abs(y - forecast) ** power == pytest.approx(least)


def test_the_best_constant_of_classes() -> None:
    forecast, least = best_constant([0, 1, 1, 2], classes=[0, 1, 2, 3])
    assert forecast.tolist() == [0.25, 0.5, 0.25, 0.0]
    assert least == pytest.approx(-(math.log(0.25) * 2 + math.log(0.5) * 2))
    assert best_constant([0, 1, 1, 1], "hinge").loss == pytest.approx(2.0)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 7), N=st.integers(1, 3), k=st.integers(0, 4))
def test_the_best_shifting_path_is_that_of_all_paths(seed: int, n: int, N: int, k: int) -> None:
    losses = np.random.default_rng(seed).normal(size=(n, N)).round(1)
    path, least = best_shifting_constants(losses, k)
    rows = np.arange(n)
    totals = [
        losses[rows, list(other)].sum()
        for other in itertools.product(range(N), repeat=n)
        if np.count_nonzero(np.diff(other)) <= k
    ]
    assert least == pytest.approx(min(totals), abs=1e-12)
    assert losses[rows, path].sum() == pytest.approx(least, abs=1e-12)
    assert np.count_nonzero(np.diff(path)) <= k


def test_many_classes_on_positive_rows_take_few_steps() -> None:
    """All rows pull the weights the same way, far from the start of the dual of the ball."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(400, 16))) / 4
    y = (X @ rng.normal(size=(10, 16)).T).argmax(axis=1)
    for radius in (1.0, 5.0):
        found = game(X, y, "multiclass hinge", Ball(radius), 0.0, None, range(10)).solve(400, 1e-4, max_iterations=25)
        assert found.done


@pytest.mark.slow
def test_many_pieces_in_a_large_ball_take_few_steps() -> None:
    """52,000 pieces and one ball, whose surface the weights follow; 83 steps if the ball counts as one piece."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2000, 16))
    y = (X @ rng.normal(size=(16, 26)) + 0.5 * rng.gumbel(size=(2000, 26))).argmax(axis=1)
    played = game(X, y, "multiclass hinge", Ball(100.0), 0.0, None, range(26))
    assert played.solve(2000, 1e-4, max_iterations=55).done
