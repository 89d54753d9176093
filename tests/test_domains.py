"""Sets of weights: the projection is the nearest element, the diameter is reached, linear functions are minimised."""

from __future__ import annotations

import itertools
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from each import for_each
from regretless.theory.domains import Ball, Box, Competition, Octahedron, RowBall, Simplex, SubSimplex, WholeSpace

BOUNDED = [Ball, RowBall, Simplex, SubSimplex, Octahedron, Box]
FLAT = [Ball, Simplex, SubSimplex, Octahedron, Box]
few = settings(max_examples=40)  # for each set

sizes = st.floats(1e-3, 1e3)
entries = st.one_of(st.floats(-10, 10), st.floats(-1e6, 1e6), st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0]))  # with ties
points = arrays(np.float64, st.integers(1, 12), elements=entries)
pairs = st.integers(1, 12).flatmap(lambda n: st.tuples(*[arrays(np.float64, n, elements=entries)] * 2))
matrices = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 5)), elements=entries)
huge = arrays(
    np.float64,
    st.integers(1, 8),
    elements=st.one_of(
        st.sampled_from([1e300, -1e300, 1.7e308, -1.7e308, 1e154, 1e-300, 5e-324, 0.0, 1.0]), st.floats(-1e300, 1e300)
    ),
)


def element(domain, n, rng):
    """A random element, on the border or inside: each set by its own definition."""
    if isinstance(domain, Ball | RowBall):
        v = rng.normal(size=n)
        return domain.radius * v / np.linalg.norm(v) * rng.choice([1.0, rng.uniform()])
    if isinstance(domain, Box):
        return domain.radius * rng.choice([rng.uniform(-1, 1, n), rng.choice([-1.0, 1.0], n)])
    p = rng.dirichlet(np.full(n, rng.choice([0.1, 1.0])))
    if isinstance(domain, SubSimplex):
        p *= rng.choice([0.0, rng.uniform(), 1.0])
    if isinstance(domain, Octahedron):
        p *= rng.choice([-1.0, 1.0], n) * rng.choice([rng.uniform(), 1.0])
    return domain.size * p


def vertices(domain, n):
    if isinstance(domain, Box):
        return domain.radius * np.array(list(itertools.product([-1.0, 1.0], repeat=n)))
    identity = domain.size * np.eye(n)
    return {
        Simplex: identity,
        SubSimplex: np.vstack([identity, np.zeros(n)]),
        Octahedron: np.vstack([identity, -identity]),
    }[type(domain)]


def elements(domain, n, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([element(domain, n, rng) for _ in range(20)])


@pytest.mark.parametrize("kind", [*BOUNDED, lambda _: WholeSpace()])
@few
@given(theta=points, size=sizes)
def test_projections_lie_in_the_set_and_stay_there(kind, theta, size):
    domain = kind(size)
    before = theta.copy()
    projected = domain.project(theta)
    assert projected.shape == theta.shape
    assert domain.contains(projected, 1e-12)
    np.testing.assert_allclose(domain.project(projected), projected, rtol=1e-13, atol=1e-14 * size)
    assert not np.shares_memory(projected, theta)
    np.testing.assert_array_equal(theta, before)


@pytest.mark.parametrize("kind", [*BOUNDED, lambda _: WholeSpace()])
@few
@given(pair=pairs, size=sizes)
def test_projections_bring_no_two_points_further_apart(kind, pair, size):
    domain = kind(size)
    x, y = pair
    apart = np.linalg.norm(domain.project(x) - domain.project(y))
    assert apart <= np.linalg.norm(x - y) * (1 + 1e-12) + 1e-14 * size * len(x)


@pytest.mark.parametrize("kind", BOUNDED)
@few
@given(theta=points, size=sizes, seed=st.integers(0, 9))
def test_projections_are_nearest(kind, theta, size, seed):
    """(x - Px).(v - Px) <= 0 for all elements v: this characterises Px."""
    domain = kind(size)
    n = len(theta)
    P = domain.project(theta)
    V = elements(domain, n, seed)
    if not isinstance(domain, Ball | RowBall) and n <= 6:
        V = np.vstack([V, vertices(domain, n)])
    assert np.max((V - P) @ (theta - P)) <= 1e-13 * n * (1 + np.abs(theta).max()) * size


@pytest.mark.parametrize("kind", FLAT)
@pytest.mark.parametrize("seed", range(6))
def test_projections_equal_a_solvers(kind, seed):
    rng = np.random.default_rng(seed)
    domain = kind(rng.choice([0.5, 1.0, 3.0]))
    n = 4
    theta = rng.normal(size=n) * rng.choice([0.3, 1.0, 5.0])
    theta[1] = theta[0]
    size = getattr(domain, "size", None) or domain.radius
    # The octahedron is the shadow of a simplex: theta = plus - minus.
    signed = isinstance(domain, Octahedron)
    lift = np.hstack([np.eye(n), -np.eye(n)]) if signed else np.eye(n)
    bounds, constraints = None, []
    if isinstance(domain, Box):
        bounds = [(-size, size)] * n
    elif isinstance(domain, Ball):
        constraints = [{"type": "ineq", "fun": lambda w: size**2 - w @ w}]
    else:
        bounds = [(0, None)] * lift.shape[1]
        kind_of = "eq" if isinstance(domain, Simplex) else "ineq"
        constraints = [{"type": kind_of, "fun": lambda w: size - w.sum()}]
    start = np.full(lift.shape[1], size / (2 * lift.shape[1]))
    found = minimize(
        lambda w: np.sum((lift @ w - theta) ** 2),
        start,
        method="SLSQP",
        bounds=bounds,
        constraints=constraints,
        options={"ftol": 1e-15, "maxiter": 500},
    )
    np.testing.assert_allclose(domain.project(theta), lift @ found.x, atol=2e-6)


@given(W=matrices, size=sizes)
def test_rows_of_a_matrix_are_projected_one_by_one(W, size):
    rows = np.array([Ball(size).project(row) for row in W])
    np.testing.assert_array_equal(RowBall(size).project(W), rows)
    best = np.array([Ball(size).minimise_linear(row) for row in W])
    np.testing.assert_array_equal(RowBall(size).minimise_linear(W), best)
    assert RowBall(size).contains(rows, 1e-12)
    assert RowBall(size).contains(W, 0.0) == all(Ball(size).contains(row, 0.0) for row in W)


@pytest.mark.parametrize("kind", FLAT)
@few
@given(W=matrices, size=sizes)
def test_other_sets_do_not_look_at_the_shape(kind, W, size):
    domain = kind(size)
    np.testing.assert_array_equal(domain.project(W), domain.project(W.ravel()).reshape(W.shape))
    np.testing.assert_array_equal(domain.minimise_linear(W), domain.minimise_linear(W.ravel()).reshape(W.shape))
    assert domain.contains(W) == domain.contains(W.ravel())
    assert domain.diameter(W.shape) == domain.diameter(W.size)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("kind", BOUNDED)
@few
@given(theta=huge)
def test_no_finite_point_is_too_large(kind, theta, size):
    domain = kind(size)
    projected = domain.project(theta)
    assert np.isfinite(projected).all()
    assert domain.contains(projected, 1e-12)
    best = domain.minimise_linear(theta)
    assert domain.contains(best, 1e-12)
    domain.contains(theta)


@pytest.mark.filterwarnings("error")
def test_huge_points_go_where_they_should():
    big = np.array([1e300, 1e300, -1e300])
    np.testing.assert_array_equal(Simplex(1.0).project(big), [0.5, 0.5, 0.0])
    np.testing.assert_array_equal(SubSimplex(1.0).project(big), [0.5, 0.5, 0.0])
    np.testing.assert_allclose(Octahedron(1.0).project(big), np.array([1, 1, -1]) / 3, rtol=1e-15)
    np.testing.assert_allclose(Ball(1.0).project(big), np.array([1, 1, -1]) / math.sqrt(3), rtol=1e-15)
    np.testing.assert_array_equal(Box(1.0).project(big), [1, 1, -1])
    np.testing.assert_allclose(Ball(1.0).minimise_linear([1e-300, 0.0]), [-1.0, 0.0])
    np.testing.assert_array_equal(Simplex(2.0).project([1.0, 1.0 - 1e308]), [2.0, 0.0])
    np.testing.assert_array_equal(Simplex(1.0).project([1.7e308, -1.7e308]), [1.0, 0.0])


@given(st.integers(1, 2000), entries, sizes)
def test_ties_share_alike(n, value, size):
    np.testing.assert_allclose(Simplex(size).project(np.full(n, value)), size / n, rtol=1e-12)


def test_a_million_coordinates_keep_their_digits():
    theta = np.random.default_rng(0).normal(size=1_000_000) * 1e-7
    assert Simplex(1.0).contains(Simplex(1.0).project(theta), 1e-12)
    assert Octahedron(1e-2).contains(Octahedron(1e-2).project(theta), 1e-12)


@pytest.mark.parametrize("kind", [SubSimplex, Octahedron, Box, Ball, RowBall])
@few
@given(n=st.integers(1, 8), seed=st.integers(0, 99))
def test_inner_points_do_not_move_at_all(kind, n, seed):
    domain = kind(2.0)
    theta = 0.9 * element(domain, n, np.random.default_rng(seed))
    np.testing.assert_array_equal(domain.project(theta), theta)


@pytest.mark.parametrize("kind", BOUNDED)
@few
@given(g=points, size=sizes, seed=st.integers(0, 9))
def test_no_element_has_a_smaller_linear_function(kind, g, size, seed):
    domain = kind(size)
    best = domain.minimise_linear(g)
    assert domain.contains(best, 1e-12)
    slack = 1e-12 * size * np.abs(g).sum()
    assert np.min(elements(domain, len(g), seed) @ g) >= best @ g - slack
    if not isinstance(domain, Ball | RowBall) and len(g) <= 6:
        assert np.min(vertices(domain, len(g)) @ g) == pytest.approx(best @ g, rel=1e-12, abs=slack)


@pytest.mark.parametrize("kind", BOUNDED)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_diameters_are_not_exceeded_and_are_reached(kind, n):
    domain = kind(1.5)
    V = elements(domain, n)
    if not isinstance(domain, Ball | RowBall):
        V = np.vstack([V, vertices(domain, n)])
    else:
        V = np.vstack([V, 1.5 * np.eye(n), -1.5 * np.eye(n)])
    widest = np.max(np.linalg.norm(V[:, None] - V[None], axis=2))
    assert widest == pytest.approx(domain.diameter(n), rel=1e-12, abs=1e-12)


def test_a_row_balls_diameter_counts_rows():
    far = np.full((3, 4), 1.0)  # each row of norm 2
    assert RowBall(2.0).diameter((3, 4)) == pytest.approx(np.linalg.norm(far - -far))
    assert RowBall(2.0).diameter(4) == RowBall(2.0).diameter((4,)) == RowBall(2.0).diameter((1, 4)) == 4.0


@pytest.mark.parametrize("kind", [Ball, RowBall, Simplex, SubSimplex, Octahedron])
def test_largest_norms(kind):
    domain = kind(1.5)
    norms = np.linalg.norm(elements(domain, 4), axis=1)
    assert norms.max() <= domain.largest_norm(1) * (1 + 1e-12)
    assert np.linalg.norm(domain.minimise_linear(np.array([0.0, -1.0, 0.0, 0.0]))) == domain.largest_norm(1)
    assert RowBall(1.5).largest_norm(4) == 3.0
    assert Box(1.0).largest_norm(1) == WholeSpace().largest_norm(1) == math.inf


@pytest.mark.parametrize(
    ("domain", "inside", "outside"),
    [
        (Ball(2.0), [2.0, 0.0], [2.0, 0.1]),
        (RowBall(2.0), [[2.0, 0.0], [0.0, 2.0]], [[0.0, 0.0], [2.0, 0.1]]),
        (Simplex(2.0), [1.5, 0.5], [2.1, -0.1]),
        (Simplex(2.0), [0.0, 2.0], [0.5, 0.5]),
        (SubSimplex(2.0), [0.5, 0.5], [-0.1, 0.5]),
        (SubSimplex(2.0), [1.5, 0.5], [1.5, 0.6]),
        (Octahedron(2.0), [-1.5, 0.5], [-1.5, 0.6]),
        (Box(2.0), [2.0, -2.0], [0.0, -2.1]),
        (WholeSpace(), [1e300, 0.0], [math.inf, 0.0]),
    ],
)
def test_membership(domain, inside, outside):
    assert domain.contains(inside, 0.0)
    assert not domain.contains(outside)
    assert not domain.contains([[math.nan, 1.0]])
    assert not domain.contains([[math.inf, 1.0]])
    if not isinstance(domain, WholeSpace):
        assert domain.contains(outside, 0.5), "the tolerance is relative to the size"


@pytest.mark.parametrize("kind", BOUNDED)
@for_each("bad", [0, -1.0, math.nan, math.inf, None, "1", True, [1.0]])
def test_sizes_are_positive_finite_numbers(kind, bad):
    with pytest.raises(ValueError, match=f"{kind.__name__}.*must be a finite number > 0"):
        kind(bad)


@pytest.mark.parametrize("good", [1, 0.5, np.float64(2.0), np.float32(0.5), np.int64(3)])
def test_numpys_numbers_are_numbers(good):
    assert Simplex(good).contains(Simplex(good).project([1, 2, 3]))


@pytest.mark.parametrize("kind", [*BOUNDED, lambda _: WholeSpace()])
def test_points_that_are_not_finite_are_refused(kind):
    with pytest.raises(ValueError, match="entry 1 is nan"):
        kind(1.0).project([0.0, math.nan])
    with pytest.raises(ValueError, match="entry 0 is -inf"):
        kind(1.0).project([-math.inf, 1.0])
    with pytest.raises(ValueError, match="empty"):
        kind(1.0).project([])


def test_the_whole_space_has_no_least_point():
    with pytest.raises(ValueError, match="WholeSpace"):
        WholeSpace().minimise_linear([1.0])
    assert WholeSpace().diameter(3) == math.inf


def test_sets_are_values():
    assert Box(1.0) == Box(1.0) != Box(2.0)
    assert len({Simplex(1.0), Simplex(1.0), SubSimplex(1.0)}) == 2
    assert Competition("squared", Box(1.0)).domain == Box(1.0)
    with pytest.raises(FrozenInstanceError):
        Ball(1.0).radius = 2.0  # type: ignore[misc]
