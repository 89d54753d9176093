"""The inequality behind each constant, and the closed form of the sharp one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax, wrightomega

import reference
from regretless.learners.second_order import curvature
from regretless.learners.second_order.curvature import QUARTERS, kappa, lambert_of_exp, proved, rule, sharp


def gap(a, b, constant):
    """How far the quadratic at b lies below the loss at a, for points in rows: non-negative for a valid constant."""
    p = softmax(b, axis=-1)
    u = a - b
    mean = (p * u).sum(axis=-1)
    spread = (p * u**2).sum(axis=-1) - mean**2
    return logsumexp(a, axis=-1) - logsumexp(b, axis=-1) - mean - constant * spread


def smallest_gap(K, C, constant, rng, tries=4000):
    """Random search over a in the box and b anywhere, corners and two-valued points among them."""
    corner = np.arange(tries) % 2 == 0
    a = np.where(corner[:, None], C * rng.choice([-1.0, 1.0], (tries, K)), rng.uniform(-C, C, (tries, K)))
    b = a + rng.normal(size=(tries, K)) * rng.choice([0.1, 1.0, 3.0, 10.0], (tries, 1))
    extremal = np.arange(tries) % 3 == 0  # one class against all others, alike
    a[extremal], b[extremal] = C, 0.0
    a[extremal, 0] = -C
    b[extremal, 0] = rng.uniform(-3, 3, extremal.sum()) * (1 + C)
    return gap(a, b, constant).min()


CASES = [(2, 0.25), (2, 1.0), (2, 5.0), (2, 20.0), (3, 0.5), (3, 2.0), (5, 1.0), (5, 5.0), (10, 2.0)]


@pytest.mark.parametrize(("K", "C"), CASES)
@pytest.mark.parametrize("name", ["sharp", "gaf", "aioli"])
def test_named_constants_keep_the_quadratic_below_the_loss(name, K, C):
    if name == "aioli" and K > 2:
        pytest.skip("a lemma about two classes")
    constant = kappa(*rule(name, K), C, K)
    assert smallest_gap(K, C, constant, np.random.default_rng(0)) >= -1e-12


@pytest.mark.parametrize(("K", "C"), CASES)
def test_folklores_constant_does_not(K, C):
    constant = kappa(*rule("folklore", K), C, K)
    assert smallest_gap(K, C, constant, np.random.default_rng(0)) < -1e-3


def test_folklores_constant_fails_by_the_amount_known():
    a, b = np.array([-1.0, 1.0]), np.array([0.265, -0.265])
    assert gap(a, b, kappa(*rule("folklore", 2), 1.0, 2)) == pytest.approx(-0.382, abs=1e-3)


@pytest.mark.parametrize(("K", "C"), CASES)
def test_sharp_lies_between_the_papers_and_the_best_possible(K, C):
    sharp = kappa(*rule("sharp", K), C, K)
    best = reference.best_curvature(2 * C + math.log(K - 1))
    assert kappa(*rule("gaf", K), C, K) <= sharp <= best
    assert sharp >= best / 1.35, "little is left"
    assert smallest_gap(K, C, best * 1.01, np.random.default_rng(0), tries=40_000) < 0 or K > 2


@pytest.mark.parametrize("choice", ["sharp", "gaf", "folklore", 0.07])
@pytest.mark.parametrize(("K", "C"), CASES)
def test_constants_equal_the_reference(choice, K, C):
    expected = reference.curvature(choice, radius=C, norm=1.0, n_classes=K)
    assert kappa(*rule(choice, K), C, K) == pytest.approx(expected, rel=1e-12)


def test_sharp_is_tabulated_to_rounding():
    """On every quarter, at its ends and beyond the last: within 1e-14 of what scipy's function gives."""
    L = np.concatenate([np.linspace(0.0, QUARTERS / 4 + 2.0, 20_011), np.arange(QUARTERS + 1) / 4, [1e3, 1e10]])
    np.testing.assert_allclose([sharp(each) for each in L], 1.0 / (2.0 + wrightomega(L - 1.0)), rtol=1e-14)
    assert np.isnan(sharp(np.nan))


@given(st.floats(-1.0, 1e12))
def test_lambert_of_exp_is_the_root(a):
    w = lambert_of_exp(a)
    assert w == pytest.approx(float(wrightomega(a)), rel=4e-16 * 8)


@given(st.floats(0, 50), st.integers(2, 12))
def test_the_supremum_behind_sharp(C, K):
    """X - EX <= W(e^(L-1)) when the probabilities differ by at most e^(2C) (the step of GAF's Lemma 4 that is
    sharpened).
    """
    L = 2 * C + math.log(K - 1)
    D = np.linspace(0, L + 20, 20_001)
    assert np.max(D / (1 + np.exp(np.minimum(D - L, 700)))) <= lambert_of_exp(L - 1) * (1 + 1e-9)


def test_a_number_is_proved_up_to_sharp():
    sharp = kappa(*rule("sharp", 3), 2.0, 3)
    assert proved(*rule(sharp, 3), 2.0, 3)
    assert not proved(*rule(sharp * 1.01, 3), 2.0, 3)
    assert not proved(*rule("folklore", 3), 2.0, 3)


@pytest.mark.parametrize("bad", ["sharper", -1.0, 0, float("nan"), float("inf"), None])
def test_unknown_curvature_lists_the_choices(bad):
    with pytest.raises(ValueError, match="sharp"):
        rule(bad, 2)


def test_aiolis_lemma_is_refused_for_more_classes():
    with pytest.raises(ValueError, match="two classes"):
        rule("aioli", 3)
    assert rule("aioli", 2) == (curvature.AIOLI, 0.0)
