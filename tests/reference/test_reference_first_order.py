"""The first-order reference learners against what is known about them by other means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax

from . import (
    ReferenceFTRL,
    ReferenceMirror,
    ReferenceMirrorDescent,
    ReferenceOGD,
    ReferencePerceptron,
    ReferenceStronglyConvexOGD,
    largest_slope,
    loss_and_slope,
    theory_schedule,
)
from .losses import MARGIN
from .newton import Long, long

pytestmark = pytest.mark.slow

MARGINS = ["logistic", "logit", "hinge", "exponential"]
NUMBERS = ["squared", "absolute", "linear"]
CLASSES = ["softmax", "multiclass hinge"]
CASES = [(name, 2) for name in MARGINS] + [(name, 1) for name in NUMBERS] + [(name, 3) for name in CLASSES]
PAIRS = [
    *(("euclidean", domain) for domain in ("simplex", "subsimplex", "octahedron", "ball", "box", "whole")),
    *(("entropy", domain) for domain in ("simplex", "subsimplex", "octahedron")),
    *(("p-norm", domain) for domain in ("simplex", "subsimplex", "octahedron", "whole")),
    *(("power", domain) for domain in ("simplex", "subsimplex", "octahedron")),
]
cases = pytest.mark.parametrize(("loss", "n_classes"), CASES)
pairs = pytest.mark.parametrize(("proxy", "domain"), PAIRS)


def stream(n: int, d: int, n_classes: int, seed: int = 0, weights: tuple = (1.0, 0.3, 0.0, 2.0)) -> list[tuple]:
    """Rows with soft and hard labels (or numbers) and sample weights."""
    rng = np.random.default_rng(seed)
    rows = []
    for t in range(n):
        soft = rng.dirichlet(np.full(max(n_classes, 2), 0.3)) if t % 3 else np.eye(max(n_classes, 2))[t % 2]
        y = rng.uniform(-1, 1) if n_classes == 1 else soft
        rows.append((rng.uniform(-1, 1, size=d), y, weights[t % len(weights)]))
    return rows


def play(learner: Any, rows: list[tuple]) -> Any:
    for row in rows:
        learner.update(*row)
    return learner


def total_loss(name: str, rows: list[tuple], U: np.ndarray) -> float:
    return float(sum(c * loss_and_slope(name, long(U @ x), y)[0] for x, y, c in rows))


# --- losses ----------------------------------------------------------------------------------------


def test_losses_at_known_points() -> None:
    z = np.array([0.3, -1.2, 2.0])
    for k in range(3):
        assert float(loss_and_slope("softmax", long(z), np.eye(3)[k])[0]) == pytest.approx(
            -log_softmax(z)[k], rel=1e-14
        )
    assert float(loss_and_slope("multiclass hinge", long(z), [1, 0, 0])[0]) == pytest.approx(2.7)
    assert float(loss_and_slope("multiclass hinge", long(z), [0, 0, 1])[0]) == 0.0
    for u, values in {
        0.5: (math.log1p(math.exp(-0.5)), 0.5, math.exp(-0.5), 0),
        -2.0: (2.126928, 3, math.exp(2), 1),
    }.items():
        for name, value in zip(("logistic", "hinge", "exponential", "mistake"), values, strict=True):
            assert float(MARGIN[name](Long(u))[0]) == pytest.approx(value, abs=1e-6)
        assert float(MARGIN["logit"](Long(u))[0]) == pytest.approx(values[0] / math.log(2), abs=1e-6)


@cases
def test_slopes_are_subgradients(loss: str, n_classes: int) -> None:
    rng = np.random.default_rng(0)
    r = n_classes if n_classes > 2 else 1
    for _, y, _ in stream(20, 1, n_classes):
        z = long(rng.normal(size=r))
        value, s = loss_and_slope(loss, z, y)
        for scale in (1e-3, 1.0):
            other = z + scale * rng.normal(size=r)
            assert loss_and_slope(loss, other, y)[0] >= value + np.sum(s * (other - z)) - 1e-15
        if loss not in ("hinge", "absolute", "multiclass hinge"):
            for j in range(r):
                e = 1e-6 * np.eye(r)[j]
                slope = (loss_and_slope(loss, z + e, y)[0] - loss_and_slope(loss, z - e, y)[0]) / 2e-6
                assert float(slope) == pytest.approx(float(s[j]), rel=1e-9, abs=1e-9)


def test_kinks_and_ties() -> None:
    assert loss_and_slope("hinge", long([1.0]), [0, 1])[1] == 0
    assert loss_and_slope("absolute", long([0.5]), 0.5)[1] == 0
    assert loss_and_slope("multiclass hinge", np.zeros(3, dtype=Long), [0, 1, 0])[1].tolist() == [1, -1, 0]
    assert loss_and_slope("multiclass hinge", np.zeros(3, dtype=Long), [1, 0, 0])[1].tolist() == [-1, 1, 0]


# --- the Perceptron ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_perceptron_mistake_bounds(n_classes: int) -> None:
    """M <= L(u) + (|u| X)^2 + |u| X sqrt(L(u)) for every u; more classes: sqrt(2) |u|. Weights up to 1, soft labels."""
    rng = np.random.default_rng(1)
    factor, hinge = (1.0, "hinge") if n_classes == 2 else (math.sqrt(2), "multiclass hinge")
    rows = stream(60, 3, n_classes, weights=(1.0, 0.3, 0.0))
    learner = play(ReferencePerceptron(n_classes, 3), rows)
    X = max(float(np.linalg.norm(x)) for x, _, _ in rows)
    M = float(learner.loss)
    assert M > 5
    for _ in range(300):
        u = rng.normal(size=learner.W.shape) * rng.choice([0.01, 0.1, 1.0, 3.0])
        L, size = total_loss(hinge, rows, u), float(np.linalg.norm(u))
        assert M - L <= learner.certificate(size) + 1e-12
        assert learner.certificate(size) <= factor * size * X * math.sqrt(M)
        assert M <= L + (factor * size * X) ** 2 + factor * size * X * math.sqrt(L)
    np.testing.assert_array_equal(learner.gradients, -learner.W)


def test_perceptron_by_hand() -> None:
    learner = ReferencePerceptron(3, 2)
    learner.update([1.0, 0.0], [0, 0, 1])  # all scores are 0: the first class is the rival
    assert learner.W.tolist() == [[-1, 0], [0, 0], [1, 0]]
    learner.update([2.0, 0.0], [0, 0, 1])
    learner.update([2.0, 1.0], [1, 0, 0], 0.5)
    assert learner.W.tolist() == [[0, 0.5], [0, 0], [0, -0.5]]
    assert learner.loss == 1.5
    two = play(ReferencePerceptron(2, 1), [([2.0], [0.25, 0.75], 1.0), ([-1.0], [0, 1], 2.0)])
    assert two.W.tolist() == [[1 - 2]]  # z = 0 is a mistake whatever the label: + 0.75 * 2 - 0.25 * 2
    assert two.loss == 3


# --- gradient descent and FTRL -----------------------------------------------------------------------


def test_strongly_convex_closed_form() -> None:
    """Without projection and with sigma = 0, W = -(sum of c g) / (lam (c_1 + ... + c_t))."""
    for loss, n_classes in (("hinge", 2), ("logistic", 2), ("absolute", 1), ("multiclass hinge", 3)):
        rows = stream(20, 3, n_classes)
        learner = ReferenceStronglyConvexOGD(loss, n_classes, 3, lam=0.1)
        for t, row in enumerate(rows):
            learner.update(*row)
            C = sum(c for _, _, c in rows[: t + 1])
            np.testing.assert_allclose(
                learner.W.astype(float), (-learner.gradients / (0.1 * C)).astype(float), atol=1e-13
            )


@cases
@pytest.mark.parametrize("radius", [None, 0.5])
def test_strongly_convex_certificate(loss: str, n_classes: int, radius: float | None) -> None:
    if radius is None and loss in ("squared", "exponential"):  # gradients grow without bound
        return
    rows, rng = stream(30, 3, n_classes), np.random.default_rng(2)
    learner = ReferenceStronglyConvexOGD(loss, n_classes, 3, lam=0.2, radius=radius)
    suffered = 0.0
    for x, y, c in rows:
        suffered += c * 0.1 * float(np.sum(learner.W**2))
        learner.update(x, y, c)
    suffered += float(learner.loss)
    weight = sum(c for _, _, c in rows)
    for _ in range(100):
        U = rng.normal(size=learner.W.shape)
        U *= rng.uniform(0, 0.5) / np.linalg.norm(U)
        assert suffered - total_loss(loss, rows, U) - 0.1 * weight * np.sum(U**2) <= float(learner.certificate)


@cases
def test_ftrl_without_regularisation_is_adagrad(loss: str, n_classes: int) -> None:
    """w <- w - alpha g / sqrt(sum of g^2), coordinate by coordinate."""
    learner = ReferenceFTRL(loss, n_classes, 3, alpha=0.3, beta=0.0)
    W, squares = np.zeros(learner.W.shape), np.zeros(learner.W.shape)
    for x, y, c in stream(25, 3, n_classes):
        before = learner.gradients
        learner.update(x, y, c)
        g = (learner.gradients - before).astype(float)
        squares += g * g
        W = W - 0.3 * g / np.sqrt(np.where(squares > 0, squares, 1.0))
        np.testing.assert_allclose(learner.W.astype(float), W, atol=1e-13)


@pytest.mark.parametrize(
    "options", [{}, {"l1": 0.2, "l2": 0.1}, {"l1": 0.5, "radius": 0.4}, {"beta": 0.0, "radius": 0.4}]
)
def test_ftrl_minimises_its_objective(options: dict) -> None:
    learner = play(ReferenceFTRL("logistic", 2, 3, alpha=0.5, **options), stream(20, 3, 2))
    beta, l1, l2 = (options.get(name, default) for name, default in (("beta", 1.0), ("l1", 0.0), ("l2", 0.0)))
    radius = options.get("radius", 50.0)
    seen = set()
    for j in range(3):
        g, w = (np.array([float(pair[i][0, j]) for pair in learner.past]) for i in (0, 1))
        sigma = np.diff(np.sqrt(np.cumsum(np.append(0.0, g * g)))) / 0.5

        def objective(v: float, g: np.ndarray = g, w: np.ndarray = w, sigma: np.ndarray = sigma) -> float:
            return np.sum(g * v + sigma / 2 * (v - w) ** 2) + beta / 1.0 * v * v + l1 * abs(v) + l2 / 2 * v * v

        best = float(learner.W[0, j])
        found = minimize_scalar(objective, bounds=(-radius, radius), method="bounded", options={"xatol": 1e-9})
        assert objective(best) <= found.fun + 1e-12
        assert abs(best) <= radius
        seen.add("0" if best == 0 else "radius" if abs(best) == radius else "inside")
    assert seen & {"inside", "0", "radius"}


def test_ogd_is_the_eager_euclidean_scheme() -> None:
    for step in (("inverse root", 0.7), ("constant", 0.3), ("inverse time", 0.5)):
        descent = ReferenceOGD("softmax", 3, 3, 0.3, step)
        mirror = ReferenceMirrorDescent(
            "softmax", 3, 3, proxy="euclidean", domain="ball", size=0.3, schedule=step, lazy=False
        )
        cut = 0
        for row in stream(25, 3, 3):
            np.testing.assert_allclose(descent.forecast(row[0]), mirror.forecast(row[0]), atol=1e-14)
            descent.update(*row), mirror.update(*row)
            cut += abs(float(np.sqrt(np.sum(descent.W**2))) - 0.3) < 1e-12
        assert cut > 3


def test_ogd_steps() -> None:
    """One weight and the slopes 0, -3 and 1: a row without gradient is a round, but no step."""
    root = math.sqrt(2)
    for step, weights in (
        (("theory", None), [0.0, 10.0, 10.0 - root * 10 / (3 * math.sqrt(3))]),  # cut at 10
        (("theory", 100.0), [0.0, 0.3, 0.3 - root * 10 / (100 * math.sqrt(3))]),
        (("adagrad norm", 2.0), [0.0, 2.0, 2.0 - 2 / math.sqrt(10)]),
        (("inverse time", 0.5), [0.0, 3.0, 3.0 - 2 / 3]),
    ):
        learner = ReferenceOGD("linear", 1, 1, 10.0, step)
        for y, w in zip([0.0, -3.0, 1.0], weights, strict=True):
            learner.update([1.0], y)
            assert float(learner.W[0, 0]) == pytest.approx(w)


# --- mirror steps ------------------------------------------------------------------------------------


def inside(mirror: ReferenceMirror, rng: np.random.Generator) -> np.ndarray:
    """A random point of the set (of the larger simplex, for the entropy)."""
    w = long(rng.exponential(size=mirror.points) ** 2)
    w *= mirror.lam / np.sum(w)
    if mirror.set == "simplex":
        return w
    w *= rng.uniform()
    return w if mirror.set == "subsimplex" else w * rng.choice([-1, 1], mirror.points)


@pairs
@pytest.mark.parametrize("M", [1, 2, 3, 9])
def test_steps_minimise_their_objective(proxy: str, domain: str, M: int) -> None:
    """No point of the set is better, near or far; the constants of V are what they are called."""
    rng = np.random.default_rng(M)
    mirror = ReferenceMirror(proxy, domain, M, 1.5)
    order = 2 if proxy == "euclidean" else 1
    for beta in (0.1, 1.0, 10.0):
        zeta = mirror.lift(rng.normal(size=M))
        theta = mirror.minimise(zeta, beta)
        best = np.sum(zeta * theta) + beta * mirror.value(theta)
        for _ in range(50):
            other = inside(mirror, rng)
            for x in (other, theta + 1e-4 * (other - theta)):
                value = np.sum(zeta * x) + beta * mirror.value(x)
                distance = np.sum(np.abs(x - theta) ** order) ** (2 / order)
                assert value >= best + beta * mirror.strong_convexity / 2 * distance - 1e-15
            if mirror.set != "whole":
                assert mirror.value(other) - mirror.value(mirror.start) <= mirror.spread + 1e-15


def test_entropic_steps_are_the_known_ones() -> None:
    rng = np.random.default_rng(3)
    for lam, beta in ((1.0, 0.3), (4.0, 1.0), (0.2, 5.0)):
        zeta = rng.normal(size=6) * 3
        simplex, sub, octahedron = (
            ReferenceMirror("entropy", name, 6, lam) for name in ("simplex", "subsimplex", "octahedron")
        )
        close = {"rtol": 1e-13, "atol": 1e-14}
        np.testing.assert_allclose(
            simplex.minimise(long(zeta), beta).astype(float), lam * softmax(-zeta / beta), **close
        )
        weights = sub.fold(sub.minimise(sub.lift(zeta), beta)).astype(float)
        np.testing.assert_allclose(weights, lam * softmax(np.append(-zeta / beta, 0.0))[:6], **close)
        weights = octahedron.fold(octahedron.minimise(octahedron.lift(zeta), beta)).astype(float)
        np.testing.assert_allclose(weights, -lam * np.sinh(zeta / beta) / np.cosh(zeta / beta).sum(), **close)
        assert simplex.spread == pytest.approx(lam * math.log(6))
        assert octahedron.spread == pytest.approx(lam * math.log(12))


# --- mirror descent ----------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", ["simplex", "subsimplex", "octahedron"])
def test_exponentiated_gradient_is_lazy_and_eager(domain: str) -> None:
    """At a constant rate both schemes with the entropy are EG, (23): w_j ∝ w_j exp(-gamma u_j)."""
    options = {"proxy": "entropy", "domain": domain, "size": 2.0, "schedule": ("constant", 0.4)}
    lazy = ReferenceMirrorDescent("logistic", 2, 4, **options)
    eager = ReferenceMirrorDescent("logistic", 2, 4, **options, lazy=False)
    weights = lazy.thetas[0].astype(float)
    for row in stream(15, 4, 2):
        before = lazy.gradients
        lazy.update(*row), eager.update(*row)
        np.testing.assert_allclose(lazy.W.astype(float), eager.W.astype(float), atol=1e-14)
        u = lazy.mirror.lift((lazy.gradients - before)[0]).astype(float)
        weights = weights * np.exp(-0.4 * u)
        weights *= 2 / weights.sum()
        np.testing.assert_allclose(lazy.thetas[-1].astype(float), weights, rtol=1e-12)


def test_lazy_is_eager_on_the_whole_space() -> None:
    for proxy in ("euclidean", "p-norm"):
        options = {"proxy": proxy, "domain": "whole", "schedule": ("inverse root", 0.5)}
        lazy = play(ReferenceMirrorDescent("softmax", 3, 2, **options), stream(20, 2, 3))
        eager = play(ReferenceMirrorDescent("softmax", 3, 2, **options, lazy=False), stream(20, 2, 3))
        np.testing.assert_allclose(lazy.W.astype(float), eager.W.astype(float), atol=1e-14)
    free = play(ReferenceOGD("softmax", 3, 2, None, ("inverse root", 0.5)), stream(20, 2, 3))
    options["proxy"] = "euclidean"
    lazy = play(ReferenceMirrorDescent("softmax", 3, 2, **options), stream(20, 2, 3))
    np.testing.assert_allclose(lazy.W.astype(float), free.W.astype(float), atol=1e-14)


def test_lazy_and_eager_differ_at_the_boundary() -> None:
    options = {"proxy": "euclidean", "domain": "simplex", "schedule": ("constant", 1.0)}
    rows = [([5.0, 0.0], 1.0, 1.0), ([0.0, 1.0], 1.0, 1.0)]
    lazy = play(ReferenceMirrorDescent("linear", 1, 2, **options), rows)
    eager = play(ReferenceMirrorDescent("linear", 1, 2, **options, lazy=False), rows)
    assert lazy.W.tolist() == [[0.0, 1.0]]
    np.testing.assert_allclose(eager.W.astype(float), [[0.5, 0.5]], atol=1e-15)


@pytest.mark.parametrize(
    "schedule", [("constant", 0.3), ("inverse root", 0.3), ("inverse time", 2.0), ("growing", 2.0)]
)
def test_averages(schedule: tuple) -> None:
    """The mean of theta_0 ... theta_t weighted by gamma_1 ... gamma_{t+1}, by its recursion (mda)."""
    options = {"proxy": "entropy", "domain": "simplex", "schedule": schedule}
    averaged = ReferenceMirrorDescent("hinge", 2, 3, **options, averaging=True)
    plain = ReferenceMirrorDescent("hinge", 2, 3, **options)
    mean, total = np.zeros(3), 0.0
    for row in stream(12, 3, 2, weights=(1.0, 2.0)):
        gamma = float(plain.gamma(plain.t + 1))
        total += gamma
        mean = mean + gamma / total * (plain.W[0].astype(float) - mean)
        assert averaged.forecast(row[0])[0] == pytest.approx(mean @ row[0], abs=1e-14)
        averaged.update(*row), plain.update(*row)
    np.testing.assert_array_equal(averaged.W, plain.W)  # averaging is for the forecasts alone


# --- certificates ------------------------------------------------------------------------------------


@pairs
@cases
@pytest.mark.parametrize("averaging", [False, True])
def test_linear_certificate(proxy: str, domain: str, loss: str, n_classes: int, averaging: bool) -> None:
    """It bounds the regret of the forecasts against points of the set and its vertices."""
    rows, rng = stream(6, 2, n_classes), np.random.default_rng(4)
    learner = ReferenceMirrorDescent(
        loss, n_classes, 2, proxy=proxy, domain=domain, schedule=("inverse root", 0.7), averaging=averaging
    )
    suffered = 0.0
    for x, y, c in rows:
        suffered += c * float(loss_and_slope(loss, long(learner.forecast(x)), y)[0])
        learner.update(x, y, c)
    assert float(learner.loss) == pytest.approx(suffered, rel=1e-12)
    mirror = learner.mirror
    points = [mirror.fold(inside(mirror, rng)) for _ in range(20)]
    points += [mirror.fold(row) for row in np.eye(mirror.points, dtype=Long)]
    if domain == "box":
        points += [long(rng.choice([-1.0, 1.0], mirror.points)) for _ in range(20)]
    for point in points:
        U = point.reshape(learner.W.shape).astype(float)
        size = float(np.linalg.norm(U)) if domain == "whole" else None
        assert suffered - total_loss(loss, rows, U) <= learner.certificate(size) + 1e-12


@pytest.mark.parametrize("horizon", [None, 40])
@pytest.mark.parametrize(("proxy", "domain"), [pair for pair in PAIRS if pair[1] != "whole"])
def test_lazy_regret_bounds(proxy: str, domain: str, horizon: int | None) -> None:
    """2 L sqrt(V*/alpha) sqrt(T + 1), with a horizon L sqrt(2 T V*/alpha), when gradients follow the weights."""
    T, rng = 40, np.random.default_rng(5)
    mirror = ReferenceMirror(proxy, domain, 4, 2.0)
    L = 2.0 if proxy == "euclidean" else 1.0  # of vectors with entries of +-1, in l2 and in the largest entry
    schedule = theory_schedule(mirror, L, horizon)
    learner = ReferenceMirrorDescent("linear", 1, 4, proxy=proxy, domain=domain, size=2.0, schedule=schedule)
    for _ in range(T):
        x = np.where(learner.W[0] > np.median(learner.W[0]), 1.0, -1.0) * rng.choice([1, 1, -1], size=4)
        learner.update(x, 1.0)
    factor = 2 * math.sqrt(T + 1) if horizon is None else math.sqrt(2 * T)
    assert 0 < learner.certificate() <= L * factor * math.sqrt(mirror.spread / mirror.strong_convexity)


def test_largest_slopes() -> None:
    """Each is met on its range, and by no more than rounding exceeded."""
    grid = np.linspace(-1.5, 1.5, 61)
    for loss in ("hinge", "logistic", "logit", "exponential"):
        slopes = [abs(float(loss_and_slope(loss, long([u]), [0, 1])[1][0])) for u in grid]
        assert largest_slope(loss, 0.5, 3.0) == pytest.approx(0.5 * max(slopes), rel=1e-13)
    slopes = [abs(float(loss_and_slope("squared", long([z]), y)[1][0])) for z in grid for y in (-1.5, 1.5)]
    assert largest_slope("squared", 0.5, 3.0) == pytest.approx(0.5 * max(slopes), rel=1e-13)


def test_rows_of_weight_zero_are_no_rounds() -> None:
    options = {"proxy": "entropy", "domain": "simplex", "schedule": ("growing", 1.0), "averaging": True}
    makers = [
        lambda: ReferencePerceptron(2, 2),
        lambda: ReferenceOGD("logistic", 2, 2, 1.0, ("theory", None)),
        lambda: ReferenceStronglyConvexOGD("hinge", 2, 2, 0.1),
        lambda: ReferenceFTRL("logistic", 2, 2, 0.5),
        lambda: ReferenceMirrorDescent("logistic", 2, 2, **options),
    ]
    rows = stream(12, 2, 2)
    for make in makers:
        with_them, without = play(make(), rows), play(make(), [row for row in rows if row[2] > 0])
        assert with_them.t == without.t == 9
        assert with_them.loss == without.loss
        np.testing.assert_array_equal(with_them.W, without.W)


def test_probabilities_of_the_logistic_slope() -> None:
    """Two classes by the margin and by the softmax of (0, z): the same slope."""
    for z in (-3.0, 0.2, 40.0):
        assert float(loss_and_slope("logistic", long([z]), [0.3, 0.7])[1][0]) == pytest.approx(
            expit(z) - 0.7, abs=1e-15
        )
