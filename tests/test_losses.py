"""The losses are convex, the slopes are subgradients, and the constants are what a search finds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_softmax, softmax

from regretless.core.numbers.links import softmax_of_two
from regretless.theory.losses import (
    EXPONENTIAL,
    HINGE,
    LOGISTIC,
    LOSSES,
    MULTICLASS_HINGE,
    SOFTMAX,
    SQUARED,
    Loss,
    loss,
    slope,
    slope_multiclass,
    value,
    value_multiclass,
)

MARGIN = [each for each in LOSSES.values() if each.kind == "margin"]
REAL = [each for each in LOSSES.values() if each.kind == "real"]
MULTICLASS = [each for each in LOSSES.values() if each.kind == "multiclass"]
SCALAR = MARGIN + REAL
RANGES = [0.3, 1.0, 2.5, 6.0]

forecasts = st.one_of(st.floats(-50, 50), st.floats(-2, 2), st.sampled_from([0.0, 1.0, -1.0]))  # with the kinks
signs = st.sampled_from([-1.0, 1.0])
targets = st.one_of(st.floats(-50, 50), st.sampled_from([0.0, 1.0, -1.0]))
logits = arrays(np.float64, st.integers(2, 6), elements=forecasts)


def named(each: Loss) -> str:
    return each.name


def slopes(code, z, k):
    out = np.full(len(z), np.nan)
    slope_multiclass(code, z, k, out)
    return out


# -- The definitions, the slopes, convexity


DEFINITIONS = {
    "logistic": lambda z, y: math.log(1 + math.exp(-y * z)),
    "hinge": lambda z, y: max(0, 1 - y * z),
    "exponential": lambda z, y: math.exp(-y * z),
    "logit": lambda z, y: math.log2(1 + math.exp(-y * z)),
    "squared": lambda z, y: (z - y) ** 2,
    "absolute": lambda z, y: abs(z - y),
    "linear": lambda z, y: y * z,
}


@pytest.mark.parametrize("each", SCALAR, ids=named)
@given(z=st.floats(-20, 20), y=signs)
def test_values_are_those_of_the_definition(each, z, y):
    assert value(each.code, z, y) == pytest.approx(DEFINITIONS[each.name](z, y), rel=1e-13, abs=1e-14)


@given(z=logits, data=st.data())
def test_multiclass_values_are_those_of_the_definition(z, data):
    k = data.draw(st.integers(0, len(z) - 1))
    assert value_multiclass(SOFTMAX, z, k) == pytest.approx(-log_softmax(z)[k], rel=1e-12, abs=1e-14)
    rivals = [max(0.0, 1 + z[j] - z[k]) for j in range(len(z)) if j != k]
    assert value_multiclass(MULTICLASS_HINGE, z, k) == pytest.approx(max(rivals), rel=1e-14)


@pytest.mark.parametrize("each", SCALAR, ids=named)
@given(z=forecasts, w=forecasts, target=targets, sign=signs)
def test_slopes_are_subgradients_everywhere(each, z, w, target, sign):
    """loss(w) >= loss(z) + slope(z) (w - z) for all w and z: the loss is convex and the slope a subgradient."""
    y = target if each.kind == "real" else sign
    at_z, at_w, g = value(each.code, z, y), value(each.code, w, y), slope(each.code, z, y)
    assert at_w - at_z - g * (w - z) >= -1e-12 * (1 + abs(at_z) + abs(at_w) + abs(g * (w - z)))


@pytest.mark.parametrize("each", MULTICLASS, ids=named)
@given(data=st.data(), z=logits)
def test_multiclass_slopes_are_subgradients_everywhere(each, data, z):
    w = data.draw(arrays(np.float64, len(z), elements=forecasts))
    k = data.draw(st.integers(0, len(z) - 1))
    at_z, at_w, g = value_multiclass(each.code, z, k), value_multiclass(each.code, w, k), slopes(each.code, z, k)
    assert at_w - at_z - g @ (w - z) >= -1e-12 * (1 + abs(at_z) + abs(at_w) + np.abs(g) @ np.abs(w - z))
    assert abs(g.sum()) <= 1e-15 * len(z)


@pytest.mark.parametrize("each", SCALAR, ids=named)
@given(z=st.floats(-8, 8), target=st.floats(-8, 8), sign=signs)
def test_slopes_are_finite_differences(each, z, target, sign):
    y = target if each.kind == "real" else sign
    h = 1e-5
    kink = {"hinge": abs(y * z - 1), "absolute": abs(z - y)}.get(each.name, 1.0)
    if kink > h:
        difference = (value(each.code, z + h, y) - value(each.code, z - h, y)) / (2 * h)
        assert slope(each.code, z, y) == pytest.approx(difference, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("each", MULTICLASS, ids=named)
@pytest.mark.parametrize("K", [2, 3, 6])
def test_multiclass_slopes_are_finite_differences(each, K):
    rng = np.random.default_rng(K)
    h = 1e-6
    for _ in range(50):  # ties have probability 0
        z, k = rng.normal(size=K) * 2, int(rng.integers(K))
        steps = h * np.eye(K)
        difference = [
            (value_multiclass(each.code, z + s, k) - value_multiclass(each.code, z - s, k)) / (2 * h) for s in steps
        ]
        np.testing.assert_allclose(slopes(each.code, z, k), difference, atol=1e-8)


def test_the_hinge_has_its_kink_at_one():
    """Not at 0, as printed in ogd-notes (docs/errata.md): there the loss is 1 and falling."""
    assert slope(HINGE, 0.0, 1.0) == -1.0
    assert slope(HINGE, np.nextafter(1.0, 0.0), 1.0) == -1.0
    assert value(HINGE, 1.0, 1.0) == slope(HINGE, 1.0, 1.0) == slope(HINGE, -1.0, -1.0) == 0.0
    assert slope(HINGE, 1.0, -1.0) == 1.0
    np.testing.assert_array_equal(slopes(MULTICLASS_HINGE, np.array([1.0, 0.0, 0.0]), 0), 0.0)


def test_of_tied_rivals_the_first_is_pushed_down():
    np.testing.assert_array_equal(slopes(MULTICLASS_HINGE, np.zeros(4), 1), [1.0, -1.0, 0.0, 0.0])


# -- Far from zero


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("each", SCALAR, ids=named)
@given(z=st.floats(-1e6, 1e6), sign=signs)
def test_no_overflow_for_large_forecasts(each, z, sign):
    v, g = value(each.code, z, sign), slope(each.code, z, sign)
    if each.code == EXPONENTIAL and sign * z < -700:
        assert v == math.inf and g == -sign * math.inf, "counts as infinite, with the right sign"
    else:
        assert math.isfinite(v) and math.isfinite(g)


@pytest.mark.parametrize("each", MULTICLASS, ids=named)
@given(z=arrays(np.float64, st.integers(2, 6), elements=st.floats(-1e6, 1e6)))
def test_no_overflow_for_large_logits(each, z):
    for k in range(len(z)):
        assert math.isfinite(value_multiclass(each.code, z, k))
        assert np.isfinite(slopes(each.code, z, k)).all()


def test_tails_keep_their_digits():
    assert value(LOGISTIC, 50.0, 1.0) == pytest.approx(math.exp(-50), rel=1e-14)
    assert slope(LOGISTIC, 50.0, 1.0) == pytest.approx(-math.exp(-50), rel=1e-14)
    assert value(LOGISTIC, -1e6, 1.0) == 1e6 and slope(LOGISTIC, -1e6, 1.0) == -1.0
    assert value(EXPONENTIAL, -700.0, 1.0) == pytest.approx(math.exp(700))
    z = np.array([50.0, 0.0, 0.0])
    assert value_multiclass(SOFTMAX, z, 0) == pytest.approx(2 * math.exp(-50), rel=1e-14)
    np.testing.assert_allclose(slopes(SOFTMAX, z, 0), np.array([-2, 1, 1]) * math.exp(-50), rtol=1e-14)
    assert value_multiclass(SOFTMAX, np.array([-1e6, 1e6]), 0) == 2e6


@given(z=st.floats(-600, 600), y=signs)
def test_two_classes_are_the_margin_losses(z, y):
    pair, k = np.array([0.0, z]), 1 if y > 0 else 0
    assert value_multiclass(SOFTMAX, pair, k) == pytest.approx(value(LOGISTIC, z, y), rel=1e-14, abs=1e-300)
    assert slopes(SOFTMAX, pair, k)[1] == pytest.approx(slope(LOGISTIC, z, y), rel=1e-14, abs=1e-300)
    assert value_multiclass(MULTICLASS_HINGE, pair, k) == value(HINGE, z, y)


def test_a_kernel_of_the_other_kind_says_nan():
    assert math.isnan(value(SOFTMAX, 0.0, 1.0)) and math.isnan(slope(SOFTMAX, 0.0, 1.0))
    assert math.isnan(value_multiclass(HINGE, np.zeros(2), 0))
    assert np.isnan(slopes(HINGE, np.zeros(2), 0)).all()


# -- The constants, by search


def on_range(each: Loss, C: float, n: int = 4001):
    """Pairs (z, y) that sweep the range: every margin, every distance, or every slope."""
    if each.name == "linear":
        return [(z, y) for z in (-1.0, 0.5) for y in np.linspace(-C, C, n)]
    if each.kind == "real":
        return [(0.7 + r, 0.7) for r in np.linspace(-C, C, n)]
    return [(z, 1.0) for z in np.linspace(-C, C, n)] + [(z, -1.0) for z in (-C, C)]


def second_derivative(code, z, y, h=1e-4):
    """From the slopes; where these jump it is huge, which hurts no infimum."""
    return (slope(code, z + h, y) - slope(code, z - h, y)) / (2 * h)


@pytest.mark.parametrize("C", RANGES)
@pytest.mark.parametrize("each", SCALAR, ids=named)
def test_lipschitz_is_the_steepest_slope(each, C):
    steepest = max(abs(slope(each.code, z, y)) for z, y in on_range(each, C))
    assert each.lipschitz(C) == pytest.approx(steepest, rel=1e-12)


@pytest.mark.parametrize("C", RANGES)
@pytest.mark.parametrize("each", SCALAR, ids=named)
def test_strong_convexity_is_the_least_curvature(each, C):
    least = min(second_derivative(each.code, z, y) for z, y in on_range(each, C))
    assert each.strong_convexity(C) == pytest.approx(least, rel=1e-6, abs=1e-10)


@pytest.mark.parametrize("C", RANGES)
@pytest.mark.parametrize("each", SCALAR, ids=named)
def test_exp_concavity_is_the_largest(each, C):
    """exp(-alpha loss) lies above its chords for this alpha, and not for one 2% larger (or for any, where it is 0)."""

    def worst(alpha):
        """How far the middle of a short chord rises above the function, at most, relative to the chord's length."""
        worst = -math.inf
        h = min(C / 200, 0.005)
        for z, y in on_range(each, C - h if each.name != "linear" else C, 401):
            middle = value(each.code, z, y)
            ends = [math.exp(-alpha * (value(each.code, w, y) - middle)) for w in (z - h, z + h)]
            worst = max(worst, (sum(ends) / 2 - 1) / h**2)
        return worst

    alpha = each.exp_concavity(C)
    if alpha > 0:
        assert worst(alpha) <= 1e-10
        assert worst(1.02 * alpha) > 0
    else:
        assert worst(1e-3) > 1e-8


def answerable(losses_of, experts, weights, eta, forecasts_in, outcomes):
    """The least, over forecasts, of the largest excess over the mixture's loss: <= 0 if the loss is mixable."""
    mixture = {
        y: -math.log(sum(p * math.exp(-eta * losses_of(z, y)) for z, p in zip(experts, weights, strict=True))) / eta
        for y in outcomes
    }
    return minimize_scalar(  # a largest of convex functions: convex
        lambda z: max(losses_of(z, y) - mixture[y] for y in outcomes),
        bounds=forecasts_in,
        method="bounded",
        options={"xatol": 1e-10},
    ).fun


@pytest.mark.parametrize("C", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("each", SCALAR, ids=named)
def test_mixability_is_the_largest(each, C):
    rng = np.random.default_rng(0)
    if each.name == "linear":
        reach, outcomes = 1.0, np.linspace(-C, C, 5)
    elif each.kind == "real":  # targets and forecasts in [-Y, Y], C = 2Y
        reach, outcomes = C / 2, np.linspace(-C / 2, C / 2, 9)
    else:
        reach, outcomes = C, np.array([-1.0, 1.0])

    def excess(experts, weights, eta):
        return answerable(lambda z, y: value(each.code, z, y), experts, weights, eta, (-reach, reach), outcomes)

    grid = np.linspace(-reach, reach, 13)
    near = [pair for gap in (1, 2, 4, 12) for pair in zip(grid, grid[gap:], strict=False)]
    near += [(reach - 0.05, reach), (-reach, 0.05 - reach)]  # where the exponential loss is hardest
    eta = each.mixability(C)
    if eta == 0:
        assert max(excess(pair, (0.5, 0.5), 1e-2) for pair in near) > 1e-7
        return
    trials = [(pair, (p, 1 - p)) for pair in near for p in (0.5, 0.1, 0.9)]
    trials += [(rng.uniform(-reach, reach, 4), rng.dirichlet(np.ones(4))) for _ in range(40)]
    assert max(excess(*trial, eta) for trial in trials) <= 1e-8
    assert max(excess(*trial, 1.1 * eta) for trial in trials) > 1e-6


@pytest.mark.parametrize("C", RANGES)
@pytest.mark.parametrize("K", [2, 3, 6])
@pytest.mark.parametrize("each", MULTICLASS, ids=named)
def test_multiclass_lipschitz_is_the_steepest_slope(each, K, C):
    rng = np.random.default_rng(0)
    corners = [C * np.array(signs) for signs in itertools.product([-1.0, 1.0], repeat=K)]
    inner = list(rng.uniform(-C, C, size=(300, K)))
    norms = [np.linalg.norm(slopes(each.code, z, 0)) for z in corners + inner]
    assert each.lipschitz(C, n_classes=K) == pytest.approx(max(norms), rel=1e-12)


@pytest.mark.parametrize("C", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("K", [2, 3, 5])
def test_softmax_exp_concavity_is_the_largest(K, C):
    """By eigenvalues of (second differences of exp(-alpha loss))/exp(-alpha loss), over corners and inner points."""
    rng = np.random.default_rng(0)
    h = 1e-5
    corners = [C * np.array(signs) for signs in itertools.product([-1.0, 1.0], repeat=K)]

    def worst(alpha):
        largest = -math.inf
        for z in corners + list(rng.uniform(-C, C, size=(30, K))):
            hessian = np.array([slopes(SOFTMAX, z + s, 0) - slopes(SOFTMAX, z - s, 0) for s in h * np.eye(K)]) / (2 * h)
            g = slopes(SOFTMAX, z, 0)
            largest = max(largest, np.linalg.eigvalsh(alpha * np.outer(g, g) - (hessian + hessian.T) / 2)[-1])
        return largest

    alpha = loss("softmax").exp_concavity(C, n_classes=K)
    assert worst(alpha) <= 1e-9
    assert worst(1.01 * alpha) > 1e-6


def test_softmax_is_flat_along_the_all_ones_vector():
    assert loss("softmax").strong_convexity(1.0) == 0.0
    z = np.array([0.3, -1.0, 2.0])
    assert value_multiclass(SOFTMAX, z + 5, 1) == pytest.approx(value_multiclass(SOFTMAX, z, 1), rel=1e-14)


def test_softmax_is_mixable_with_one_and_no_more():
    """The mixture of the probabilities answers for eta = 1 with logits of the range. For larger eta some pair of
    forecasts has no answer: a sum of probabilities above 1 would be asked for.
    """
    rng = np.random.default_rng(0)
    C, K = 1.5, 4

    def asked(Z, weights, eta):
        losses = np.array([[value_multiclass(SOFTMAX, z, k) for k in range(K)] for z in Z])
        return -np.log(weights @ np.exp(-eta * losses)) / eta

    eta = loss("softmax").mixability(C)
    worst = 0.0
    for _ in range(100):
        Z, weights = rng.uniform(-C, C, size=(3, K)), rng.dirichlet(np.ones(3))
        answer = np.log(weights @ softmax(Z, axis=1))
        answer -= (answer.max() + answer.min()) / 2
        assert np.abs(answer).max() <= C + 1e-12
        answered = [value_multiclass(SOFTMAX, answer, k) for k in range(K)]
        assert np.all(answered <= asked(Z, weights, eta) + 1e-12)
        worst = max(worst, np.exp(-asked(Z, weights, 1.02 * eta)).sum())
    assert worst > 1 + 1e-5


@pytest.mark.parametrize("K", [2, 3, 5])
def test_the_multiclass_hinge_is_not_mixable(K):
    """Forecasts 0 and e_1/2: under the weights (1/2, the rest alike) no forecast has a smaller loss than their mean."""
    code = MULTICLASS_HINGE
    assert loss("multiclass hinge").mixability(1.0) == 0.0
    prior = np.array([0.5] + [0.5 / (K - 1)] * (K - 1))
    first = np.zeros(K)
    first[0] = 0.5
    losses = np.array([[value_multiclass(code, z, k) for k in range(K)] for z in (np.zeros(K), first)])
    rng = np.random.default_rng(0)
    reachable = min(
        prior @ [value_multiclass(code, z, k) for k in range(K)]
        for z in [np.zeros(K), first, *rng.normal(size=(2000, K))]
    )
    eta = 1e-3
    asked = prior @ (-np.log(np.mean(np.exp(-eta * losses), axis=0)) / eta)
    assert asked < reachable - 1e-6


def test_exp_concave_losses_are_mixable_with_at_least_as_much():
    for each, C in itertools.product(SCALAR, RANGES):
        assert each.mixability(C) >= each.exp_concavity(C)


def test_the_squared_loss_of_vovk():
    """1/(2 Y^2) for targets and forecasts in [-Y, Y]: the threshold found by bisection on the hardest pair."""
    Y = 1.7

    def excess(eta):
        return answerable(
            lambda z, y: value(SQUARED, z, y), (-0.05 * Y, 0.05 * Y), (0.5, 0.5), eta, (-Y, Y), np.array([-Y, Y])
        )

    threshold = brentq(excess, 0.2 / Y**2, 0.8 / Y**2, xtol=1e-6)
    assert loss("squared").mixability(2 * Y) == pytest.approx(threshold, rel=5e-3)


# -- The table


def test_the_table():
    assert [each.code for each in LOSSES.values()] == list(range(len(LOSSES)))
    assert all(name == each.name == loss(name).name for name, each in LOSSES.items())
    assert len({*LOSSES.values()}) == len(LOSSES)
    with pytest.raises(ValueError, match=r"'huber' is unknown.*'absolute'.*'multiclass hinge'.*'squared'"):
        loss("huber")


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize("constant", ["lipschitz", "strong_convexity", "exp_concavity", "mixability"])
def test_ranges_are_finite_and_not_negative(constant, bad):
    for each in LOSSES.values():
        with pytest.raises(ValueError, match="finite number >= 0"):
            getattr(each, constant)(bad)


@pytest.mark.parametrize("constant", ["lipschitz", "strong_convexity", "exp_concavity", "mixability"])
def test_the_exponential_loss_refuses_margins_beyond_700(constant):
    assert math.isfinite(getattr(loss("exponential"), constant)(700.0))
    with pytest.raises(ValueError, match="700"):
        getattr(loss("exponential"), constant)(701.0)


def test_extreme_ranges():
    for each, C in itertools.product(LOSSES.values(), [0.0, 1e-300, 1e6, 1e300]):
        if each.code == EXPONENTIAL and C > 700:
            continue
        constants = (each.lipschitz(C, 3), each.strong_convexity(C), each.exp_concavity(C, 3), each.mixability(C))
        assert not any(math.isnan(c) or c < 0 for c in constants)
    assert loss("softmax").lipschitz(1e6, 10) == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize("bad", [None, 1, 0])
def test_the_softmax_asks_for_the_number_of_classes(bad):
    for constant in (loss("softmax").lipschitz, loss("softmax").exp_concavity):
        with pytest.raises(ValueError, match="n_classes"):
            constant(1.0, n_classes=bad)


@given(st.floats(-800, 800), st.floats(-800, 800))
def test_softmax_of_two_keeps_all_digits(first, second):
    np.testing.assert_allclose(softmax_of_two(first, second), softmax([first, second]), rtol=1e-12, atol=0)
