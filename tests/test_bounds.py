"""The theorems' values against the formulas written out once more, their assumptions, and the page made of them."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp, softmax

from each import for_each
from regretless import AIOLI, NoBound, bounds
from regretless.learners.second_order.curvature import SHARP, kappa
from regretless.theory.bounds.assumptions import check_curvature

ln, sqrt = math.log, math.sqrt

# One legal call of every theorem. The numbers are unlike one another, so that a formula that confuses two of them
# gives another value.
CALLS: dict[str, dict] = {
    "aioli": {
        "n": 1000,
        "n_features": 4,
        "radius": 3.0,
        "feature_bound": 2.0,
        "regularization": 0.2,
        "curvature": 0.07,
        "virtual_weight": 0.75,
    },
    "aioli_descent": {
        "n": 500,
        "n_features": 4,
        "radius": 3.0,
        "feature_bound": 0.5,
        "regularization": 0.2,
        "steps": 300,
        "curvature": 0.18,
    },
    "aioli_inexact": {
        "n": 500,
        "n_features": 4,
        "radius": 3.0,
        "feature_bound": 0.5,
        "regularization": 0.2,
        "error": 1e-6,
        "curvature": 0.18,
    },
    "aioli_excess_risk": {"n": 500, "n_features": 4, "radius": 3.0, "feature_bound": 0.5},
    "folklore": {
        "n": 700,
        "n_features": 5,
        "n_classes": 3,
        "radius": 2.0,
        "feature_bound": 1.5,
        "regularization": 1.1,
        "curvature": 0.08,
    },
    "bandit": {"n": 90_000, "n_classes": 7, "regret": 11.0, "comparator_loss": 250.0, "exploration": 0.3},
    "banditron": {
        "n": 90_000,
        "n_classes": 7,
        "comparator_norm": 2.0,
        "feature_bound": 1.5,
        "hinge_loss": 40.0,
        "exploration": 0.3,
    },
    "gaptron": {"n_classes": 7, "comparator_norm": 2.0, "feature_bound": 1.5, "comparator_loss": 250.0},
    "gaptron_bandit": {
        "n": 90_000,
        "n_classes": 7,
        "comparator_norm": 2.0,
        "feature_bound": 1.5,
        "comparator_loss": 250.0,
        "exploration": 0.02,
    },
    "boosting": {
        "n": 5000,
        "n_classes": 7,
        "edges": [0.1, -0.2, 0.3, 0.9],
        "regret": 11.0,
        "failure": 0.05,
    },
    "weak_learning": {
        "n": 5000,
        "n_classes": 7,
        "n_estimators": 30,
        "edge": 0.2,
        "sample_complexity": 13.0,
        "regret": 11.0,
        "failure": 0.05,
    },
    "boosting_regression": {"n": 300, "horizon": 1200, "curvature": 0.04},
    "boosting_regression_anytime": {"n": 300, "curvature": 0.04},
    "gaf": {
        "n": 700,
        "n_features": 5,
        "n_classes": 3,
        "radius": 2.0,
        "feature_bound": 1.5,
        "regularization": 140.0,
        "curvature": 0.08,
        "smoothing": 0.03,
    },
    "gaf_logistic": {"n": 700, "n_features": 5, "n_classes": 3, "radius": 2.0, "feature_bound": 1.5},
    "gaf_sampled": {
        "n": 700,
        "n_features": 5,
        "n_classes": 3,
        "radius": 2.0,
        "feature_bound": 1.5,
        "regularization": 140.0,
        "curvature": 0.08,
        "smoothing": 0.1,
        "n_samples": 10_000,
        "failure": 0.05,
    },
    "gaf_general": {
        "n": 700,
        "size": 15,
        "n_scores": 5,
        "radius": 2.0,
        "regularization": 40.0,
        "alpha": 0.5,
        "beta": 0.3,
        "zeta": 2.0,
        "gamma": 1.5,
    },
    "kernel_gaf": {
        "n": 700,
        "log_determinant": 17.0,
        "n_classes": 3,
        "radius": 2.0,
        "feature_bound": 1.5,
        "regularization": 140.0,
        "curvature": 0.08,
        "smoothing": 0.03,
    },
    "online_newton_step": {
        "n": 700,
        "size": 6,
        "radius": 2.0,
        "gradient_bound": 1.5,
        "gamma": 0.02,
        "epsilon": 31.0,
    },
    "vovk_azoury_warmuth": {
        "n": 700,
        "n_features": 5,
        "comparator_norm": 2.0,
        "feature_bound": 1.5,
        "label_bound": 3.0,
        "regularization": 0.4,
    },
    "perceptron": {"comparator_norm": 2.0, "feature_bound": 1.5, "hinge_loss": 7.0},
    "online_gradient_descent": {"n": 700, "radius": 2.0, "gradient_bound": 1.5, "step": 0.3},
    "gradient_descent": {"n": 700, "comparator_norm": 2.0, "gradient_bound": 1.5, "step": 0.3},
    "descending_steps": {"steps": [0.5, 0.4, 0.2], "diameter": 3.0, "gradient_bound": 1.5},
    "growing_balls": {
        "steps": [0.5, 0.4, 0.2, 0.2],
        "radii": [0.3, 0.5, 0.9, 1.6],
        "comparator_norm": 1.2,
        "gradient_bound": 1.5,
    },
    "averaging_sequences": {
        "steps": [1.0, 0.5],
        "temperatures": [1.0, 2.0, 4.0],
        "spread": 2.0,
        "strong_convexity": 0.5,
        "gradient_bound": 1.5,
    },
    "aggregation_lower_bound": {"t": 700, "n_functions": 50, "radius": 2.0, "gradient_bound": 1.5},
    "adagrad_norm": {"diameter": 3.0, "squares": 90.0, "step": 0.3},
    "strongly_convex": {"n": 700, "sigma": 0.3, "gradient_bound": 1.5},
    "ftrl_proximal": {
        "n": 700,
        "n_features": 5,
        "radius": 2.0,
        "gradient_bound": 1.5,
        "alpha": 0.3,
        "beta": 1.2,
        "l1": 0.1,
        "l2": 0.7,
    },
    "mirror_descent": {"n": 700, "spread": 2.0, "strong_convexity": 0.5, "gradient_bound": 1.5, "step": 0.3},
    "dual_averaging": {"n": 700, "spread": 2.0, "strong_convexity": 0.5, "gradient_bound": 1.5, "temperature": 0.3},
    "aggregation_excess_risk": {"t": 700, "n_functions": 9, "radius": 2.0, "gradient_bound": 1.5},
    "aggregation_known_horizon": {"t": 700, "n_functions": 9, "radius": 2.0, "gradient_bound": 1.5},
    "averaging_excess_risk": {
        "t": 700,
        "spread": 2.0,
        "strong_convexity": 0.5,
        "gradient_bound": 1.5,
        "temperature": 0.3,
    },
    "ftrl": {"n": 700, "comparator_norm": 2.0, "gradient_bound": 1.5, "regularization": 0.4},
    "sample_minmax": {
        "n": 700,
        "n_features": 5,
        "n_classes": 3,
        "comparator_norm": 2.0,
        "feature_bound": 1.5,
        "regularization": 3.0,
    },
    "averaged_log_loss": {
        "n": 700,
        "regret": 17.0,
        "n_classes": 3,
        "radius": 2.0,
        "feature_bound": 0.5,
        "failure": 0.05,
    },
    "shifted_average": {"n": 700, "regret": 17.0, "label_bound": 2.0, "prediction_bound": 3.0, "failure": 0.05},
    "kernel_aioli": {
        "log_determinant": 17.0,
        "radius": 3.0,
        "feature_bound": 2.0,
        "regularization": 0.2,
        "curvature": 0.07,
        "virtual_weight": 0.75,
    },
    "aggregating": {
        "n": 700,
        "n_features": 5,
        "n_classes": 3,
        "radius": 2.0,
        "feature_bound": 1.5,
        "smoothing": 0.03,
    },
    "mixture": {"prior": 0.2},
    "hedge": {"n": 700, "n_experts": 5},
    "fixed_share": {"n": 700, "switches": 3, "n_members": 5, "share": 0.02},
    "mondrian_pruning": {"n": 700, "n_leaves": 6},
    "mondrian_constants": {"n": 700, "n_leaves": 6, "n_classes": 5, "dirichlet": 0.25},
}


def shifted_rate(A: float, E: float) -> float:
    """eta by bisection: psi(eta E A) eta A^2 = 1/2."""
    low, high = 0.0, 1.0 / A**2
    for _ in range(200):
        eta = (low + high) / 2
        b = eta * E * A
        low, high = (low, eta) if (math.exp(b) - 1 - b) / b**2 * eta * A**2 > 0.5 else (eta, high)
    return low


def best_rate(alpha: float, b: float, regret: float, failure: float) -> float:
    """The minimum over the eight rates, with the factors as printed."""
    found = []
    a = (1 - math.exp(-alpha * b)) / alpha
    for eta in alpha / 2.0 ** np.arange(1, 9):
        c = max(1 / (1 - eta / alpha), (b - a) / ((1 - math.exp(-eta * b)) / eta - a))
        found.append(c * (regret + ln(8 / failure) / eta))
    return min(found)


def written_out() -> dict[str, float]:
    """The formulas of the texts (corrected where docs/errata.md says so) at CALLS, number by number."""
    e = math.e
    boosted = sqrt(1 + ln(1200) ** 2)
    theory = 2 / ln(2) * 2.0**2 * 1.5**2 + 15 * (0.5 + 2 * sqrt(3) * (ln(3) / 2 + 4)) * ln(
        1 + 700 / (4 / ln(2) * (ln(3) / 2 + 4))
    )
    smooth = 140 * 4 + 15 * (0.5 + 2 * sqrt(3) / 0.16) * ln(1 + 700 * 0.16 * 2.25 / 280)
    s = 2.0 * 1.5 * sqrt(2) / sqrt(2 * 12)
    share = 20 / (700 * ln(3) + sqrt((700 * ln(3)) ** 2 + 4 * 700 * s**2 * 10))  # where the derivative is 0
    return {
        "aioli": 0.2 * 9 + 0.75 * 4 / 0.14 * ln(1 + 0.07 * 1000 * 4 / (4 * 4 * 0.2)),
        "aioli_descent": 0.2 * 9 + 4 / 0.36 * ln(1 + 0.18 * 500 * 0.25 / (4 * 4 * 0.2)) + 1,
        "aioli_inexact": 0.2 * 9
        + 4 / 0.36 * ln(1 + 0.18 * 500 * 0.25 / (4 * 4 * 0.2))
        + 1500 * 0.5 * (503 * 0.25 / 3.2 + 1) * 1e-6,
        "aioli_excess_risk": (4 * 2.5 * ln(1 + 500 * 9 * 0.25 / (8 * 4 * 2.5)) + 1) / 500,
        "folklore": 1.1 * 3 * 4 + 2 * 5 / 0.32 * ln(1 + 0.16 * 700 * 2.25 / 1.1),
        "bandit": 250 + 7 * 11 / 0.3 + 0.3 * 90_000,
        "banditron": 40 + 0.3 * 90_000 + 3 * max(7 * 18 / 0.3, sqrt(18 * 0.3 * 90_000)) + sqrt(7 * 18 * 40 / 0.3),
        "gaptron": (250 + 7 * 9) / ln(2),
        "gaptron_bandit": (250 + 7 * 9 / 0.02) / ln(2) + 0.02 * 90_000,
        "boosting": 16 * (5000 * ln(7) + 4 * 11) / (0.01 + 0.04 + 0.09 + 0.81) + 2 * ln(4 / 0.05),
        "weak_learning": 16 * (5000 * ln(7) / (30 * 0.04) + 11 / 0.04 + 7 * 13 / 0.2) + 2 * ln(30 / 0.05),
        "boosting_regression": 4 * sqrt(2) * boosted
        + ln(1 + 0.04 * 300 * sqrt(2) * boosted) / 0.08
        + 300 * ln(1 + e**2 / 1200**2),
        "boosting_regression_anytime": 1 + ln(1 + 0.04 * 300 * (1 + ln(301) ** 2)) / 0.08 + e**2 * (math.pi**2 / 6 - 1),
        "gaf": smooth + 2 * 0.03 * 700,
        "gaf_general": 40 * 4 + 15 / 0.5 * (0.5 + 2 * sqrt(3) / 0.3) * ln(1 + 700 * 0.3 * 1.5 / 80),
        "kernel_gaf": 140 * 4 + 2 * (0.5 + sqrt(3) / 0.08) * 17 + 2 * 0.03 * 700,
        "gaf_logistic": theory,
        "gaf_sampled": smooth + 2 * 0.1 * 700 + 700 * sqrt(3 * ln(700 / 0.05) / (0.1 * 10_000)),
        "online_newton_step": 0.02 * 31 / 2 * 4 + 6 / 0.04 * ln(1 + 700 * 2.25 / (6 * 31)),
        "vovk_azoury_warmuth": 0.4 * 4 + 9 * 5 * ln(1 + 700 * 2.25 / (0.4 * 5)),
        "perceptron": 7 + 3.0**2 + 3 * sqrt(7),
        "online_gradient_descent": (2 * 4 / 0.3 + 0.3 * 2.25) * sqrt(700),
        "gradient_descent": 4 / 0.6 + 0.3 * 700 * 2.25 / 2,
        "descending_steps": 9 / 0.4 + 2.25 / 2 * 1.1,
        # The projections of rounds 1 and 2 are onto balls that do not contain u; that of round 3 is.
        "growing_balls": 1.5 * (0.3 + 0.5 + 2 * 1.2) + 2.8**2 / 0.4 + 2.25 / 2 * 0.4,
        "averaging_sequences": (4 * 2 + 2.25 / (2 * 0.5) * (1 + 0.25 / 2)) / 1.5,
        "aggregation_lower_bound": -3
        * minimize_scalar(
            lambda x: x * ((700 * x / 2 * ln((1 + x) / (1 - x)) + ln(2)) / ln(50) - 1),
            bounds=(1e-4, 0.5),
            method="bounded",
            options={"xatol": 1e-12},
        ).fun,
        "adagrad_norm": (9 / 0.6 + 0.3) * sqrt(90),
        "strongly_convex": 2.25 / 0.6 * (1 + ln(700)),
        "ftrl_proximal": 5 * ((8 / 0.3 + 0.3) * 1.5 * sqrt(700) + 4 * 1.2 / 0.6 + 0.1 * 2 + 0.7 * 4 / 2),
        "mirror_descent": 2 / 0.3 + 0.3 * 700 * 2.25 / 1,
        "dual_averaging": (0.3 * 2 + 2.25 / (0.5 * 0.3)) * sqrt(701),
        "aggregation_excess_risk": 2 * 2 * 1.5 * sqrt(ln(9)) * sqrt(701) / 700,
        "aggregation_known_horizon": 2 * 1.5 * sqrt(2 * ln(9) / 700),
        "averaging_excess_risk": (0.3 * 2 + 2.25 / (0.5 * 0.3)) * sqrt(701) / 700,
        "ftrl": 0.4 * 4 + 700 * 2.25 / (4 * 0.4),
        "kernel_aioli": 0.2 * 9 + 0.75 / 0.14 * 17,
        "sample_minmax": (3 * 4 + e**1.5 * (e**0.75 - 1) / 0.75 * 10 / (1 + 6 * 10 / (701 * 2.25 * 2 / 3))) / 701,
        "averaged_log_loss": best_rate(
            e ** -sqrt(2) / 2, ln((1 + 2 * e ** sqrt(2)) / (1 + 2 * e ** -sqrt(2))), 17.0, 0.05
        )
        / 700,
        "shifted_average": (8.5 + ln(20) / shifted_rate(8.5, 5.0)) / 700,
        "aggregating": 10 * ln(1 / share) + share * 700 * ln(3) + 350 * (share * s) ** 2 - 700 * ln(0.97),
        "mixture": ln(5),
        "hedge": 1 + sqrt(1 + 700 * ln(5)),
        "fixed_share": ln(5) + 3 * ln(5 / 0.02) + 696 * ln(1 / 0.984),
        "mondrian_pruning": 13 * ln(2) + 5 * ln(2 * 700**2),
        "mondrian_constants": 13 * ln(2)
        + 5 * ln(2 * 700**2)
        + 5 * ln(1 + 700 / (5 * 0.25))
        + 6 * (5 * 0.25 * ln(700 / 6 / 5 + 0.25) + 700 / 6 + 5 * 0.25 - 2.5 * ln(2 * math.pi) + 5 * math.lgamma(0.25))
        + 6 * (math.lgamma(700 / 6 + 1.25) - math.lgamma(1.25) - 700 / 6 * ln(700 / 6)),
    }


def call(name: str, **changes: object) -> float:
    return getattr(bounds, name)(**{**CALLS[name], **changes})


@pytest.mark.parametrize("name", CALLS)
def test_the_formula_of_the_text(name):
    assert call(name) == pytest.approx(written_out()[name], rel=1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_arguments_are_words_and_given_by_name(name):
    parameters = inspect.signature(getattr(bounds, name)).parameters
    assert set(CALLS[name]) <= set(parameters)
    for word, parameter in parameters.items():
        assert word in ("n", "t") or parameter.kind is inspect.Parameter.KEYWORD_ONLY


# --- what a choice left out means ------------------------------------------------------------------


def test_the_best_choice_is_taken_where_none_is_given():
    for name, choice, most in (
        ("online_gradient_descent", "step", 2.0 * 1.5 * sqrt(8 * 700)),
        ("dual_averaging", "temperature", 2 * 1.5 * sqrt(4) * sqrt(701)),
        ("averaging_excess_risk", "temperature", 2 * 1.5 * sqrt(4) * sqrt(701) / 700),
        ("bandit", "exploration", 250 + 2 * sqrt(7 * 90_000 * 11)),
    ):
        best = call(name, **{choice: None})
        assert best == pytest.approx(most, rel=1e-12)
        values = [call(name, **{choice: float(value)}) for value in np.geomspace(1e-3, 1, 200)]
        if name != "bandit":
            values += [call(name, **{choice: float(value)}) for value in np.geomspace(1, 1e3, 200)]
        assert best <= min(values) <= 1.001 * best


def test_the_known_horizon_of_equation_38():
    given = {**CALLS["averaging_excess_risk"], "known_horizon": True}
    t = given.pop("t")
    assert bounds.averaging_excess_risk(t, **given) == pytest.approx(0.3 * 2 / 700 + 2.25 / (2 * 0.5 * 0.3))
    best = bounds.averaging_excess_risk(t, **{**given, "temperature": None})
    assert best == pytest.approx(1.5 * sqrt(2 * 2 / (0.5 * 700)))
    temperature = 1.5 * sqrt(700 / (2 * 0.5 * 2))  # (37), for gamma = 1
    assert bounds.averaging_excess_risk(t, **{**given, "temperature": temperature}) == pytest.approx(best)
    assert best < bounds.averaging_excess_risk(t, **{**given, "temperature": None, "known_horizon": False})


def test_boosting_regression_without_a_curvature_takes_lemma_4():
    for name, last in (("boosting_regression", 1200), ("boosting_regression_anytime", 301)):
        reach = sqrt(2) * sqrt(1 + ln(last) ** 2)
        assert call(name, curvature=None) == call(name, curvature=1 / (ln(2) + 2 * (reach + 1)))


def test_boosting_regression_without_a_horizon_is_for_as_many_rounds():
    assert call("boosting_regression", horizon=None) == call("boosting_regression", horizon=300)


def test_aioli_with_its_own_constant_is_the_texts_theorem_1():
    n, d, B, R, lam = 1000, 4, 3.0, 2.0, 0.2
    text = lam * B**2 + d * (1 + B * R) * ln(1 + n * R**2 / (8 * d * (1 + B * R) * lam))
    ours = bounds.aioli(n, n_features=d, radius=B, feature_bound=R, regularization=lam, curvature=1 / (2 * (1 + B * R)))
    assert ours == pytest.approx(text)


def test_half_the_virtual_weight_halves_the_log_term():
    given = {"n_features": 3, "radius": 10.0, "feature_bound": 1.0, "regularization": 0.01, "curvature": 0.1}
    full, half = (bounds.aioli(300, **given, virtual_weight=a) for a in (1.0, 0.5))
    assert half - 1 == pytest.approx((full - 1) / 2)


def test_the_number_known_for_the_sharp_constant():
    """B = 10, R = 1, n = 300, d = 3, a = 1/2: 38.2 where the text's Theorem 1 gives 156.5."""
    sharp = kappa(SHARP, 0.0, 5.0, 2)
    given = {"n_features": 3, "radius": 10.0, "feature_bound": 1.0, "regularization": 0.01}
    norm_part = 0.01 * 10.0**2
    assert bounds.aioli(300, **given, curvature=sharp, virtual_weight=0.5) - norm_part == pytest.approx(38.2, abs=0.1)
    assert bounds.aioli(300, **given, curvature=1 / 22) - norm_part == pytest.approx(156.5, abs=0.1)


def test_no_rows_cost_what_the_regularization_costs():
    assert call("aioli", n=0) == pytest.approx(0.2 * 9)
    assert call("folklore", n=0) == pytest.approx(1.1 * 3 * 4)
    assert call("gaf_sampled", n=0) == pytest.approx(140 * 4)
    assert call("strongly_convex", n=0) == call("online_gradient_descent", n=0) == call("bandit", n=0) == 0.0


# --- more rows, larger balls, longer gradients -----------------------------------------------------

# What a bound grows (or shrinks) with, all else as in CALLS. Excess risks shrink as rows come.
GROWS = {
    "aioli": "n n_features radius feature_bound virtual_weight",
    "aioli_descent": "n n_features radius feature_bound",
    "aioli_inexact": "n n_features radius feature_bound error",
    "aioli_excess_risk": "n_features radius feature_bound",
    "folklore": "n n_features n_classes radius feature_bound",
    "bandit": "n n_classes regret comparator_loss",
    "banditron": "n n_classes comparator_norm feature_bound hinge_loss",
    "gaptron": "n_classes comparator_norm feature_bound comparator_loss",
    "gaptron_bandit": "n n_classes comparator_norm feature_bound comparator_loss",
    "boosting": "n n_classes regret",
    "weak_learning": "n n_classes regret sample_complexity",
    "boosting_regression": "n horizon",
    "boosting_regression_anytime": "n",
    "gaf": "n n_features n_classes radius feature_bound smoothing",
    "gaf_logistic": "n n_features n_classes radius feature_bound",
    "gaf_sampled": "n n_features n_classes radius feature_bound",
    "gaf_general": "n size radius gamma",
    "kernel_gaf": "n log_determinant n_classes radius smoothing",
    "online_newton_step": "n size radius gradient_bound",
    "vovk_azoury_warmuth": "n n_features comparator_norm feature_bound label_bound",
    "perceptron": "comparator_norm feature_bound hinge_loss",
    "online_gradient_descent": "n radius gradient_bound",
    "gradient_descent": "n comparator_norm gradient_bound",
    "descending_steps": "diameter gradient_bound",
    "growing_balls": "gradient_bound",
    "averaging_sequences": "spread gradient_bound",
    "aggregation_lower_bound": "n_functions radius gradient_bound",
    "adagrad_norm": "diameter squares",
    "strongly_convex": "n gradient_bound",
    "ftrl_proximal": "n n_features radius gradient_bound beta l1 l2",
    "mirror_descent": "n spread gradient_bound",
    "dual_averaging": "n spread gradient_bound",
    "aggregation_excess_risk": "n_functions radius gradient_bound",
    "aggregation_known_horizon": "n_functions radius gradient_bound",
    "averaging_excess_risk": "spread gradient_bound",
    "ftrl": "n comparator_norm gradient_bound",
    "sample_minmax": "n_features n_classes comparator_norm feature_bound",
    "averaged_log_loss": "regret n_classes radius feature_bound",
    "shifted_average": "regret label_bound prediction_bound",
    "kernel_aioli": "log_determinant radius virtual_weight",
    "aggregating": "n n_features n_classes radius feature_bound smoothing",
    "mixture": "",
    "hedge": "n n_experts",
    "fixed_share": "n switches n_members",
    "mondrian_pruning": "n n_leaves",
    "mondrian_constants": "n n_leaves n_classes",
}
SHRINKS = {
    "aioli_excess_risk": "n",
    "boosting": "failure",
    "sample_minmax": "n",
    "averaged_log_loss": "n failure",
    "shifted_average": "n failure",
    "weak_learning": "n_estimators edge failure",
    "gaf_sampled": "n_samples failure",
    "gaf_general": "alpha",
    "aggregation_excess_risk": "t",
    "aggregation_known_horizon": "t",
    "averaging_excess_risk": "t strong_convexity",
    "averaging_sequences": "strong_convexity",
    "aggregation_lower_bound": "t",
    "dual_averaging": "strong_convexity",
    "mirror_descent": "strong_convexity",
    "strongly_convex": "sigma",
    "mixture": "prior",
}
# Constants that leave every theorem room to move.
ROOM = {
    "aioli": {"curvature": 0.02},
    "aioli_descent": {"steps": 10**6},
    "folklore": {"curvature": 0.02, "regularization": 2.0},
    "gaf": {"curvature": 0.02, "regularization": 2000.0},
    "gaf_general": {"regularization": 2000.0},
    "gaf_sampled": {"curvature": 0.02, "regularization": 2000.0, "smoothing": 0.4},
    "kernel_gaf": {"curvature": 0.02, "regularization": 2000.0},
    "kernel_aioli": {"curvature": 0.02},
}
WAYS = [
    (name, word, sign)
    for table, sign in ((GROWS, 1), (SHRINKS, -1))
    for name, words in table.items()
    for word in words.split()
]


@for_each(("name", "word", "sign"), WAYS)
def test_bounds_move_the_right_way(name, word, sign):
    here = CALLS[name][word]
    for factors in ((1.0, 1.05), (0.3, 3.0), (0.3, 1.05), (0.999, 2.9), (0.5, 1.5), (0.71, 1.37)):
        low, high = (here * factor for factor in factors)
        if isinstance(here, int):
            low = max(2, round(low))
            high = max(low + 1, round(high))
        if word in ("edge", "failure"):
            high = min(high, 0.99)
        if word == "virtual_weight":
            low = max(0.5, low)
        values = [call(name, **{word: value}, **ROOM.get(name, {})) for value in (low, high)]
        assert sign * values[0] < sign * values[1], factors


def test_bounds_grow_logarithmically():
    given = {"n_features": 2, "n_classes": 3, "radius": 2.0, "feature_bound": 1.0, "curvature": 0.2}
    for bound, lam in ((bounds.folklore, 1.0), (bounds.gaf, 24.0)):
        steps = [bound(10**k, **given, regularization=lam) for k in range(4, 9)]
        growth = [b - a for a, b in itertools.pairwise(steps)]
        assert max(growth) == pytest.approx(min(growth), rel=0.01)


def test_boosting_regression_grows_like_the_square_of_a_logarithm():
    ratios = [bounds.boosting_regression(10**k) / ln(10**k) ** 2 for k in (3, 10, 30, 100, 150)]
    assert all(a > b > sqrt(2) for a, b in itertools.pairwise(ratios))
    assert ratios[-1] < 1.1 * sqrt(2)  # 4BR is of lower order, 1/(2 kappa) is about BR, and BR about sqrt(2) ln n


# --- refusals --------------------------------------------------------------------------------------

MAY_BE_ZERO = {
    "n",
    "error",
    "feature_bound",
    "gradient_bound",
    "comparator_norm",
    "comparator_loss",
    "log_determinant",
    "label_bound",
    "prediction_bound",
    "hinge_loss",
    "smoothing",
    "sample_complexity",
    "diameter",
    "squares",
    "spread",
    "beta",
    "l1",
    "l2",
    "switches",
    "zeta",
    "gamma",
}
NEEDS_ROWS = {"aioli_excess_risk", "boosting_regression", "averaged_log_loss", "shifted_average"}


@for_each(("name", "word"), [(name, word) for name, given in CALLS.items() for word in given if word != "edges"])
def test_a_size_out_of_range_is_named(name, word):
    wrong = [math.nan, -1.0] if word == "steps" else [math.nan, -1.0, math.inf]
    positive = word not in MAY_BE_ZERO or (word == "n" and name in NEEDS_ROWS)
    regret_counts = word == "regret" and name != "bandit"
    if positive and not regret_counts:
        wrong.append(0)
    if word == "n_classes" or word == "n_functions":
        wrong.append(1)
    for value in wrong:
        with pytest.raises(NoBound) as refusal:
            call(name, **{word: value})
        assert ("t=" if word == "t" else word) in str(refusal.value)


def test_assumptions_are_named():
    for name, changes, words in (
        ("aioli", {"virtual_weight": 0.49}, "virtual_weight >= 1/2"),
        ("aioli", {"curvature": 0.4}, "curvature=0.4 is not proved"),
        ("aioli_descent", {"steps": 10}, "at least .* steps"),
        ("folklore", {"regularization": 0.3}, "regularization / 2"),
        ("folklore", {"curvature": 0.2, "regularization": 9.0}, "not proved"),
        ("bandit", {"exploration": 1.5}, r"exploration must be in \(0, 1\]"),
        ("banditron", {"exploration": 0.6}, r"exploration must be in \(0, 1/2\]"),
        ("gaptron_bandit", {"exploration": 1.5}, r"exploration must be in \(0, 1\]"),
        ("boosting", {"edges": [0.0, 0.0]}, "edges must lie"),
        ("boosting", {"edges": [0.5, 1.5]}, "edges must lie"),
        ("boosting", {"edges": [0.5, math.nan]}, "edges must lie"),
        ("boosting", {"edges": []}, "n_estimators must be at least 1"),
        ("boosting", {"n": 1, "regret": 0.0, "edges": [1.0] * 10**5}, "Hedge"),
        ("boosting", {"failure": 1.0}, "failure is the probability"),
        ("weak_learning", {"edge": 1.01}, "edge=1.01"),
        ("boosting_regression", {"curvature": 0.2}, "not proved"),
        ("boosting_regression", {"n": 1201}, "n=1201 and horizon=1200"),
        ("boosting_regression_anytime", {"curvature": 0.2}, "not proved"),
        ("gaf", {"regularization": 6.4}, r"max\(4, m\) zeta / alpha = 6\.492 for m = 2 scores"),
        ("gaf_general", {"regularization": 19.0}, r"max\(4, m\) zeta / alpha = 20 for m = 5 scores"),
        ("kernel_gaf", {"regularization": 6.4}, r"max\(4, m\) zeta / alpha = 6\.492 for m = 2 scores"),
        ("kernel_gaf", {"smoothing": 0.51}, "mu <= 1/2"),
        ("gaf", {"smoothing": 0.51}, "mu <= 1/2"),
        ("gaf", {"curvature": 0.2}, "not proved"),
        ("gaf_logistic", {"feature_bound": 0.0}, "feature_bound must be a positive"),
        ("gaf_sampled", {"n_samples": 1000}, r"4 K ln\(n/delta\) / mu = 1146"),
        ("gaf_sampled", {"smoothing": 0.0}, "smoothing must be a positive"),
        ("averaging_excess_risk", {"t": 0}, "at least one weight vector"),
        ("mixture", {"prior": 1.1}, "prior=1.1"),
        ("fixed_share", {"share": 1.0}, "share=1.0"),
        ("fixed_share", {"n": 3}, "switches=3 and n=3"),
        ("mondrian_pruning", {"n": 5}, "n_leaves=6 and n=5"),
        ("mondrian_constants", {"dirichlet": 0.6}, "dirichlet=0.6"),
    ):
        with pytest.raises(NoBound, match=words):
            call(name, **changes)


@settings(max_examples=300)
@given(
    C=st.floats(0.0, 50.0),
    K=st.integers(2, 30),
    factor=st.sampled_from([0.3, 1 - 1e-6, 1.0, 1 + 1e-6, 1.5]),
)
def test_a_curvature_is_accepted_up_to_the_proved_constants(C, K, factor):
    most = kappa(SHARP, 0.0, C, K)
    if K == 2:
        most = max(most, 1 / (2 * (1 + 2 * C)))
    try:
        check_curvature(factor * most, logits=C, n_classes=K)
        accepted = True
    except NoBound:
        accepted = False
    assert accepted == (factor <= 1)


# --- the inequalities behind the constants ---------------------------------------------------------


def descend(X, labels, *, radius, lam, steps):
    """AIOLI as Theorem 4 has it: margins by gradient descent in the plane. Labels None: against the forecast."""
    n, d = X.shape
    A, b, margins, y = lam * np.eye(d), np.zeros(d), np.zeros(n), np.zeros(n)
    for t, x in enumerate(X):
        W = np.linalg.solve(np.linalg.cholesky(A), np.stack([b, x], axis=1))
        values, vectors = np.linalg.eigh(W.T @ W)
        u, v = (np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T).T
        omega = np.zeros(2)
        for _ in range(steps):
            omega = omega - lam / (4 * lam + 1.0) * (2 * omega - 2 * u + math.tanh(v @ omega / 2) * v)
        margins[t] = v @ omega
        y[t] = (-1.0 if margins[t] > 0 else 1.0) if labels is None else labels[t]
        p = expit(y[t] * margins[t])
        c = p * (1 - p) / (2 * (1 + radius))
        A += c * np.outer(x, x)
        b += (c * margins[t] + y[t] * (1 - p) / 2) * x
    return margins, y


def best_loss(X, y, radius):
    """The least total log loss in a disc, on a fine grid."""
    angle, size = np.meshgrid(np.linspace(0, 2 * np.pi, 361), np.linspace(0, radius, 101))
    theta = np.stack([size * np.cos(angle), size * np.sin(angle)]).reshape(2, -1)
    return np.logaddexp(0, -y[:, None] * (X @ theta)).sum(axis=0).min()


@pytest.mark.parametrize("radius", [0.5, 2.0])
def test_theorem_4_of_aioli_holds_with_its_number_of_steps(radius):
    rng = np.random.default_rng(0)
    n, lam = 40, 1 / radius**2
    X = rng.normal(size=(n, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    reach = 1 / lam
    steps = math.ceil((4 + reach) * ln(3 * n**2 * reach * (n * reach / 8 + 1)))
    bound = bounds.aioli_descent(n, n_features=2, radius=radius, feature_bound=1.0, regularization=lam, steps=steps)
    margins, y = descend(X, None, radius=radius, lam=lam, steps=steps)
    suffered = np.logaddexp(0, -y * margins).sum()
    assert 0 < suffered - best_loss(X, y, radius) <= bound

    learner = AIOLI(radius=radius, curvature="aioli", feature_bound=1.0)
    p = learner.predict_then_learn(X, y)
    exact = -np.log(p[np.arange(n), (y > 0).astype(int)]).sum()
    assert abs(suffered - exact) < 1e-6  # the theorem leaves room for 1
    few, _ = descend(X, y, radius=radius, lam=lam, steps=2)
    assert np.abs(few - margins).max() > 1e-3


def test_corollary_6_of_aioli_by_simulation():
    """The mean risk of the learners of the game, on fresh rows, exceeds the best by no more than regret / n."""
    rng = np.random.default_rng(1)
    points = np.array([[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8], [0.7, 0.7]])
    chance = np.array([0.9, 0.3, 0.2, 0.5])
    n, radius, repetitions = 12, 2.0, 60
    risks, games = [], []
    for _ in range(repetitions):
        rows = rng.integers(len(points), size=n)
        y = (rng.random(n) < chance[rows]).astype(int)
        learner = AIOLI(radius=radius, curvature="aioli", feature_bound=1.0)
        learner.partial_fit(points[:1], [0], classes=[0, 1], sample_weight=[0.0])  # begins without learning
        risk = game = 0.0
        for row, label in zip(rows, y, strict=True):
            p = learner.predict_proba(points)
            risk -= np.mean(chance * np.log(p[:, 1]) + (1 - chance) * np.log(p[:, 0])) / n
            game -= math.log(p[row, label]) / n
            learner.partial_fit(points[row : row + 1], [label])
        risks.append(risk)
        games.append(game)
    gap = np.array(risks) - np.array(games)  # in the mean the same: the corollary's equality (*)
    assert abs(gap.mean()) < 3 * gap.std() / sqrt(repetitions)
    angle, size = np.meshgrid(np.linspace(0, 2 * np.pi, 361), np.linspace(0, radius, 101))
    margin = points @ np.stack([size * np.cos(angle), size * np.sin(angle)]).reshape(2, -1)
    best = np.mean(chance[:, None] * np.logaddexp(0, -margin) + (1 - chance[:, None]) * np.logaddexp(0, margin), axis=0)
    excess = np.mean(risks) - best.min()
    assert 0 < excess <= bounds.aioli_excess_risk(n, n_features=2, radius=radius, feature_bound=1.0)


def test_proposition_12s_step_from_edges_to_losses():
    """A stage of edge gamma lowers the total loss by gamma^2/2 of its weight: Lemmas 18 and 19 of FOLKLORE."""
    alphas = np.linspace(-2, 2, 801)
    A, B = np.meshgrid(np.linspace(0, 1, 51), np.linspace(0, 1, 51))
    legal = A + B <= 1
    A, B = A[legal][:, None], B[legal][:, None]
    least = (A * (np.exp(alphas) - 1) + B * (np.exp(-alphas) - 1)).min(axis=1)
    assert np.all(least <= -((A - B)[:, 0] ** 2) / 2 + 1e-4)

    rng = np.random.default_rng(2)
    for _ in range(200):
        z, alpha = rng.normal(size=4) * 3, rng.uniform(-2, 2)
        p = softmax(z)
        for label in range(4):
            step = np.array([alpha, 0.0, 0.0, 0.0])
            rise = logsumexp(z + step) - step[label] - logsumexp(z)
            most = (math.exp(-alpha) - 1) * (1 - p[0]) if label == 0 else (math.exp(alpha) - 1) * p[0]
            assert rise <= most + 1e-12


def test_theorem_13s_comparators_rows_and_clipping():
    """Logits s + alpha e_l are W_alpha x up to a shift; clipping x raises the loss by at most ln(1 + e^2/T^2)."""
    rng = np.random.default_rng(3)
    T = 50
    for _ in range(500):
        s, alpha = rng.normal(size=2) * 8, rng.uniform(-2, 2)
        W = np.array([[1.0, alpha / 2], [-1.0, -alpha / 2]])
        x = np.array([(s[0] - s[1]) / 2, 1.0])
        clipped = np.array([np.clip(x[0], -ln(T), ln(T)), 1.0])
        assert np.linalg.norm(W, axis=1).max() <= sqrt(2) + 1e-12
        assert np.linalg.norm(clipped) <= math.hypot(1, ln(T)) + 1e-12
        shifted = s + np.array([alpha, 0.0])
        for label in (0, 1):
            loss, rough = (logsumexp(z) - z[label] for z in (W @ x, W @ clipped))
            assert loss == pytest.approx(logsumexp(shifted) - shifted[label], abs=1e-9)
            assert rough - loss <= math.log1p(math.e**2 / T**2) + 1e-12
    reach = math.hypot(1, ln(T))
    sharp = kappa(SHARP, 0.0, sqrt(2) * reach, 2)
    binary = bounds.folklore(
        T,
        n_features=2,
        n_classes=2,
        radius=sqrt(2),
        feature_bound=reach,
        regularization=sqrt(2) * reach,
        curvature=sharp,
    )
    assert bounds.boosting_regression(T, curvature=sharp) == pytest.approx(binary + T * math.log1p((math.e / T) ** 2))
    assert bounds.boosting_regression(T, curvature=sharp) < bounds.boosting_regression(T)


def test_corollary_2_covers_the_texts_order():
    """(7) up to a constant: with the paper's lambda, never more than 60 times what it prints; ours is often less."""
    rng = np.random.default_rng(4)
    less = 0
    for _ in range(200):
        n, d, K = int(10 ** rng.uniform(1, 6)), int(rng.integers(1, 30)), int(rng.integers(2, 20))
        B, R = 10 ** rng.uniform(-1, 1.5), 10 ** rng.uniform(-1, 1)
        D, slope = d * K, ln(K) + B * R
        printed = D * B**2 * R**2 + D * slope * ln(1 + n / (D * slope))
        case = {"n_features": d, "n_classes": K, "radius": B, "feature_bound": R}
        kappa = 1 / (ln(K) + 2 * (B * R + 1))
        theirs = bounds.gaf(n, **case, regularization=32 * D * R**2, curvature=kappa)
        assert theirs <= 60 * printed
        less += bounds.gaf_logistic(n, **case) < theirs
    assert less > 100


# --- the page --------------------------------------------------------------------------------------


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_bounds", Path("docs/generate_bounds.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_code_says():
    """docs/bounds.md is up to date; if this fails, run `make docs`."""
    assert Path("docs/bounds.md").read_text() == generator().page()


def test_every_theorem_is_tested_and_on_the_page():
    module = generator()
    names = [function.__name__ for function in module.theorems()]
    page = Path("docs/bounds.md").read_text()
    assert set(names) == set(bounds.__all__) == set(CALLS) == set(written_out()) == set(GROWS)
    for name in names:
        assert f"| `{name}(" in page
    keys = set(module.re.findall(r"^@\w+\{([\w-]+),", Path("REFERENCES.bib").read_text(), module.re.MULTILINE))
    for function in module.theorems():
        entry = module.entry(function)
        assert set(module.re.findall(r"`([\w-]+)`", entry.theorem)) <= keys
        assert "|" not in "".join(entry)
        assert "\\," not in entry.formula and "*" not in entry.formula  # which Markdown would take for its own
