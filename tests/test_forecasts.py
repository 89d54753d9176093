"""The scalar and the K-dimensional solves converge whatever m and Q are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import softmax

from regretless.learners.second_order.algebra import workspace
from regretless.learners.second_order.forecasts import (
    LARGEST_SLIGHT,
    ONE_STEP,
    THREE_STEPS,
    TWO_STEPS,
    solve_logits,
    solve_margin,
    tanh_of_half,
)


def margin(m, k):
    return solve_margin(m, tanh_of_half(m), k)


@given(st.floats(0, 1e4) | st.floats(0, 10), st.floats(0, 1e8) | st.floats(0, 2), st.sampled_from([-1, 1]))
@settings(max_examples=300)
def test_margin_is_the_root(m, k, sign):
    u, tanh = margin(sign * m, k)
    exact = brentq(lambda u: u + k * np.tanh(u / 2) - m, 0, m, xtol=1e-20, rtol=1e-15, maxiter=1000) if m > 0 else 0.0
    assert abs(sign * u - exact) <= 1e-13 * (1 + exact)
    assert abs(sign * tanh - np.tanh(exact / 2)) <= 1e-14


@pytest.mark.parametrize("largest", [ONE_STEP, TWO_STEPS, THREE_STEPS])
def test_so_many_steps_are_enough(largest):
    """At the largest k for one, two and three steps, T = tanh(m/2 - kT/2) to rounding; by bisection in long numbers."""
    m = np.concatenate([np.linspace(0, 12, 2001), [15, 20, 30, 40, 400]]).astype(np.longdouble)
    low, high = np.zeros_like(m), np.ones_like(m)
    for _ in range(70):
        middle = (low + high) / 2
        above = middle > np.tanh((m - largest * middle) / 2)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    found = [margin(float(each), largest)[1] for each in m]
    assert np.abs(found - low).max() <= 1e-14


@pytest.mark.parametrize("k", [1.01 * THREE_STEPS, 10.0, 1e3, 1e8, 1e300])
def test_one_step_is_enough_for_a_slight_margin(k):
    """Up to the largest m, u + k tanh(u/2) = m to rounding; by bisection in long numbers."""
    m = np.linspace(0.001, 1, 501).astype(np.longdouble) * np.longdouble(LARGEST_SLIGHT) * (2 + k)
    low, high = np.zeros_like(m), np.full_like(m, 2.0)
    for _ in range(70):
        middle = (low + high) / 2
        above = middle + k * np.tanh(middle / 2) > m
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    found = np.array([margin(float(each), k) for each in m])
    assert np.abs(found[:, 0] / low - 1).max() <= 1e-14
    assert np.abs(found[:, 1] / np.tanh(low / 2) - 1).max() <= 1e-14


@given(st.floats(-1e4, 1e4))
def test_margin_without_uncertainty_is_the_leaders(m):
    assert margin(m, 0.0)[0] == m


@st.composite
def problems(draw):
    """a and a positive semi-definite Q of any rank, any anisotropy, up to 1e8."""
    K = draw(st.integers(2, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    factor = rng.normal(size=(K, draw(st.integers(1, K)))) * 10 ** rng.uniform(-draw(st.integers(0, 4)), 0, size=(K, 1))
    Q = factor @ factor.T
    Q *= 10 ** draw(st.floats(-8, 8)) / np.abs(Q).max()
    a = rng.normal(size=K) * 10 ** draw(st.floats(-4, 4))
    if draw(st.booleans()):
        a = a + np.diag(Q) / 4
    return a, np.ascontiguousarray((Q + Q.T) / 2)


@given(problems())
@settings(max_examples=500, deadline=None)
def test_logits_are_the_root(problem):
    a, Q = problem
    z, p = np.empty(a.size), np.empty(a.size)
    solve_logits(a, Q, z, p, workspace(a.size, a.size - 1))
    residual = z - a + Q @ softmax(z) / 2
    residual -= residual.mean()
    # what rounding of a and Q themselves leaves
    assert np.abs(residual).max() <= 1e-8 * (1 + np.abs(a).max() + np.abs(Q).max())
    np.testing.assert_allclose(p, softmax(z), rtol=1e-12, atol=1e-300)


@given(problems())
@settings(max_examples=200, deadline=None)
def test_logits_minimise_the_convex_problem(problem):
    """pi = softmax(z) minimises pi'Q pi/4 - a.pi + sum pi log pi over the simplex: no vertex or random point
    is better.
    """
    a, Q = problem
    K = a.size
    z, p = np.empty(K), np.empty(K)
    solve_logits(a, Q, z, p, workspace(a.size, a.size - 1))

    def objective(pi):
        return pi @ Q @ pi / 4 - a @ pi + np.sum(pi * np.log(np.maximum(pi, 1e-300)))

    points = np.vstack([np.eye(K), np.random.default_rng(0).dirichlet(np.ones(K), 20)])
    scale = 1 + np.abs(a).max() + np.abs(Q).max()
    assert all(objective(p) <= objective(pi) + 1e-12 * scale for pi in points)


def test_two_classes_agree_with_the_margin_form():
    rng = np.random.default_rng(0)
    for _ in range(200):
        q, m = 10 ** rng.uniform(-3, 6), rng.normal() * 10
        Q = q * np.array([[0.5, -0.5], [-0.5, 0.5]])  # of the difference of the two logits: 2 q
        z, p = np.empty(2), np.empty(2)
        solve_logits(np.array([-m / 2, m / 2]), Q, z, p, workspace(2, 1))
        u, _ = margin(m, q / 2)
        assert abs(z[1] - z[0] - u) <= 1e-12 * (1 + abs(u))
