"""The theorems' values, and their assumptions."""

from __future__ import annotations

import itertools
import math

import pytest

from noregret import NoBound, bounds


def test_aioli_with_its_own_constant_is_the_texts_theorem_1():
    n, d, B, R, lam = 1000, 4, 3.0, 2.0, 0.2
    text = lam * B**2 + d * (1 + B * R) * math.log(1 + n * R**2 / (8 * d * (1 + B * R) * lam))
    ours = bounds.aioli(n, n_features=d, radius=B, feature_bound=R, regularization=lam, curvature=1 / (2 * (1 + B * R)))
    assert ours == pytest.approx(text)


def test_half_the_virtual_weight_halves_the_log_term():
    given = {"n_features": 3, "radius": 10.0, "feature_bound": 1.0, "regularization": 0.01, "curvature": 0.1}
    full, half = (bounds.aioli(300, **given, virtual_weight=a) for a in (1.0, 0.5))
    assert half - 1 == pytest.approx((full - 1) / 2)
    with pytest.raises(NoBound, match="virtual_weight"):
        bounds.aioli(300, **given, virtual_weight=0.4)


def test_the_number_known_for_the_sharp_constant():
    """B = 10, R = 1, n = 300, d = 3, a = 1/2: 38.2 where the text's Theorem 1 gives 156.5."""
    from noregret.second_order.curvature import SHARP, kappa

    sharp = kappa(SHARP, 0.0, 5.0, 2)
    given = {"n_features": 3, "radius": 10.0, "feature_bound": 1.0, "regularization": 0.01}
    norm_part = 0.01 * 10.0**2
    assert bounds.aioli(300, **given, curvature=sharp, virtual_weight=0.5) - norm_part == pytest.approx(38.2, abs=0.1)
    assert bounds.aioli(300, **given, curvature=1 / 22) - norm_part == pytest.approx(156.5, abs=0.1)


def test_assumptions_are_named():
    with pytest.raises(NoBound, match="regularization / 2"):
        bounds.folklore(10, n_features=2, n_classes=3, radius=1.0, feature_bound=5.0, regularization=0.1, curvature=0.1)
    with pytest.raises(NoBound, match="max"):
        bounds.gaf(10, n_features=2, n_classes=3, radius=1.0, feature_bound=1.0, regularization=1.0, curvature=0.1)


def test_bounds_grow_logarithmically():
    given = {"n_features": 2, "n_classes": 3, "radius": 2.0, "feature_bound": 1.0, "curvature": 0.2}
    for bound, lam in ((bounds.folklore, 1.0), (bounds.gaf, 24.0)):
        steps = [bound(10**k, **given, regularization=lam) for k in range(4, 9)]
        growth = [b - a for a, b in itertools.pairwise(steps)]
        assert max(growth) == pytest.approx(min(growth), rel=0.01)
