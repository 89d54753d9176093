"""Every mirror step against its definition: optimality conditions, a slow solver, and long arithmetic."""

from __future__ import annotations

import itertools
import math
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from each import for_each
from regretless.learners.first_order import mirror_steps
from regretless.learners.first_order.mirror_steps import eager_step, mirror_step, power_sums, waterline
from regretless.learners.first_order.mirrors import DOMAINS, MIRRORS, Mirror

PAIRS = [(proxy, domain) for proxy, domains in MIRRORS.items() for domain in domains]
SIZES = [1, 2, 3, 10, 1000]
BOUNDED = [pair for pair in PAIRS if pair[1] != "whole"]
pairs = pytest.mark.parametrize(("proxy", "domain"), PAIRS)


def name_of(mirror):
    return f"{mirror.proxy} on {mirror.domain}, M={mirror.dimension}, lam={mirror.size}"


def lowest(mirror, g):
    """The least g.theta over the set."""
    if mirror.domain == "simplex":
        return mirror.size * g.min()
    if mirror.domain == "subsimplex":
        return mirror.size * min(0.0, g.min())
    if mirror.domain == "octahedron":
        return -mirror.size * np.abs(g).max()
    if mirror.domain == "ball":
        return -mirror.size * np.linalg.norm(g)
    if mirror.domain == "box":
        return -mirror.size * np.abs(g).sum()
    return 0.0 if np.abs(g).max() == 0.0 else -np.inf


def violation(mirror, theta):
    """How far theta lies outside the set."""
    l1 = np.abs(theta).sum() - mirror.size
    if mirror.domain == "simplex":
        return max(abs(l1), -theta.min())
    if mirror.domain == "subsimplex":
        return max(l1, -theta.min())
    if mirror.domain == "octahedron":
        return l1
    if mirror.domain == "ball":
        return np.linalg.norm(theta) - mirror.size
    if mirror.domain == "box":
        return np.abs(theta).max() - mirror.size
    return -1.0


def test_the_search_for_the_multiplier_is_short():
    """Newton's steps, counted: on geometric gaps too, where plain Newton drops one weight a step."""
    calls = 0

    def counted(*arguments):
        nonlocal calls
        calls += 1
        return power_sums(*arguments)

    count = types.FunctionType(
        getattr(waterline, "py_func", waterline).__code__, {**vars(mirror_steps), "power_sums": counted}, "waterline"
    )
    rng = np.random.default_rng(0)
    worst = 0
    for M in (1, 2, 3, 10, 100, 1000):
        for delta in (
            np.zeros(M),
            2.0 ** -np.arange(M),
            1 - 2.0 ** -np.arange(M),
            rng.random(M) / M,
            rng.random(M) * 30,
        ):
            for pnorm, r in ((False, 1.0), (False, max(1.0, math.log(M))), (True, max(1.0, math.log(M)))):
                calls = 0
                count(delta - delta.min(), pnorm, r, 1.0)
                worst = max(worst, calls)
    assert worst <= 20


def inside(mirror, rng, boundary=0.0):
    """A random point of the set, some of its weights 0 with probability `boundary`."""
    w = rng.exponential(size=mirror.dimension) ** rng.choice([1.0, 3.0])
    w[rng.random(w.size) < boundary] = 0.0
    if w.sum() == 0.0:
        w[0] = 1.0
    w *= mirror.size / w.sum()
    if mirror.domain == "simplex":
        return w
    if mirror.domain == "subsimplex":
        return w * rng.uniform(0.01, 0.99)
    signs = rng.choice([-1.0, 1.0], w.size)
    if mirror.domain == "ball":
        return w * signs * (mirror.size / np.linalg.norm(w) * rng.uniform(0.01, 0.99))
    if mirror.domain == "box":
        return w * signs * (mirror.size / np.abs(w).max() * rng.uniform(0.01, 0.99))
    return w * signs * rng.uniform(0.01, 0.99)


def optimality_gap(mirror, zeta, beta, theta):
    """A bound on objective(theta) - minimum, by convexity: g.theta - min over the set of g.v, g the gradient.

    Relative to what the objective is made of.
    """
    g = zeta + beta * mirror.gradient(theta)
    scale = (np.abs(zeta).max() + beta * np.abs(mirror.gradient(theta)).max()) * max(np.abs(theta).max(), mirror.size)
    if mirror.domain == "whole":
        return np.abs(g).max() / (np.abs(zeta).max() + 1e-300)
    return (g @ theta - lowest(mirror, g)) / (scale + 1e-300)


@pairs
def test_step_satisfies_the_optimality_conditions(proxy, domain):
    for M, size in itertools.product(SIZES, [1.0, 0.01, 30.0]):
        rng = np.random.default_rng(M)
        mirror = Mirror(proxy, domain, M, size)
        for beta, spread in itertools.product((0.03, 1.0, 50.0), (1e-3, 1.0, 10.0)):
            zeta = beta * rng.normal(size=M) * spread + rng.choice([-1.0, 0.0, 1.0])
            theta = mirror.step(zeta, beta)
            assert violation(mirror, theta) <= 1e-13 * size, name_of(mirror)
            if proxy == "entropy" and (theta == 0.0).any():
                continue
            if proxy == "entropy" and domain != "simplex" and size - np.abs(theta).sum() <= 1e-6 * size:
                continue  # the gradient cannot be told from theta any more; long arithmetic below judges
            assert optimality_gap(mirror, zeta, beta, theta) <= 1e-9, name_of(mirror)


def slow_step(mirror, zeta, beta):
    """The same point in long arithmetic: bisection for the multiplier, in the textbook formulas."""
    z, beta, lam = np.asarray(zeta, np.longdouble), np.longdouble(beta), np.longdouble(mirror.size)
    M, s = mirror.dimension, np.longdouble(1) / max(np.longdouble(1), np.log(np.longdouble(mirror.dimension)))
    if mirror.proxy == "entropy":
        long = {"simplex": z, "subsimplex": np.append(z, 0), "octahedron": np.append(z, -z)}[mirror.domain]
        e = np.exp((long.min() - long) / beta)
        e *= lam / e.sum()
        return e[:M] - e[M:] if mirror.domain == "octahedron" else e[:M]
    if mirror.domain == "ball":
        w = -z / beta
        return w * min(np.longdouble(1), lam / max(np.sqrt(w @ w), np.longdouble(1e-300)))
    if mirror.proxy == "euclidean" and mirror.domain in ("whole", "box"):
        return -z / beta if mirror.domain == "whole" else np.clip(-z / beta, -lam, lam)
    signs = -np.sign(z) if mirror.domain in ("octahedron", "whole") else np.ones(M)
    cost = -np.abs(z) if mirror.domain in ("octahedron", "whole") else z

    def weights(mu):
        d = np.maximum(mu - cost, 0) / beta  # the gradient of V to be reached
        if mirror.proxy == "euclidean":
            return d
        if mirror.proxy == "power":
            return lam * (d * s / lam) ** (1 / s)
        q = 1 + 1 / s  # the gradient of |.|_p^2 / 2 is inverted by that of |.|_q^2 / 2
        high = d.max()
        if high == 0:
            return d
        return lam**2 * high * (d / high) ** (q - 1) / ((d / high) ** q).sum() ** ((q - 2) / q)

    if mirror.domain != "simplex":
        theta = weights(np.longdouble(0))
        if mirror.domain == "whole" or theta.sum() <= lam:
            return signs * theta
    low, high = cost.min(), cost.min() + 1
    while weights(high).sum() < lam:
        high = cost.min() + 2 * (high - cost.min())
    for _ in range(75):
        middle = (low + high) / 2
        low, high = (low, middle) if weights(middle).sum() > lam else (middle, high)
    return signs * weights(high)


def assert_optimal(mirror, zeta, beta, theta):
    """No point of the ball or box is better: g.(u - theta) >= 0 for the gradient g of the strongly convex objective."""
    g = zeta + beta * mirror.gradient(theta)
    least = -mirror.size * (np.linalg.norm(g) if mirror.domain == "ball" else np.abs(g).sum())
    scale = mirror.size * (np.abs(zeta).sum() + beta * np.abs(mirror.gradient(theta)).sum())
    assert g @ theta - least <= 1e-13 * scale
    assert violation(mirror, theta) <= 1e-12 * mirror.size


@for_each("M", SIZES)
@pairs
def test_step_agrees_with_long_arithmetic(proxy, domain, M):
    rng = np.random.default_rng(M + 1)
    for size in (1.0, 7.0) if M < 1000 else (0.2,):
        mirror = Mirror(proxy, domain, M, size)
        for scale in (1e-4, 0.1, 1.0, 30.0):
            for beta in (0.1, 3.0):
                zeta = scale * rng.normal(size=M) * size ** (-1.0 if proxy == "p-norm" else 0.0)
                theta = mirror.step(zeta, beta)
                if proxy == "p-norm" and domain in ("ball", "box"):
                    assert_optimal(mirror, zeta, beta, theta)
                    continue
                slow = slow_step(mirror, zeta, beta)
                error = float(np.abs(theta - slow).max() / max(np.abs(slow).max(), 1e-300))
                assert error <= 1e-12, (name_of(mirror), scale, beta, error)


@for_each("M", [1, 2, 3, 5])
@pairs
def test_step_agrees_with_direct_minimisation(proxy, domain, M):
    """SLSQP on zeta.theta + beta V(theta), with nothing but `value`: from two starts, never better than the step."""
    rng = np.random.default_rng(M)
    mirror = Mirror(proxy, domain, M, 1.5)
    zeta, beta = rng.normal(size=M), 0.8

    def objective(theta):
        return zeta @ theta + beta * mirror.value(theta)

    bounds = {"box": [(-1.5, 1.5)] * M}.get(domain, [(1e-12, None)] * M if "simplex" in domain else None)
    constraints = {
        "simplex": [{"type": "eq", "fun": lambda x: x.sum() - 1.5}],
        "subsimplex": [{"type": "ineq", "fun": lambda x: 1.5 - 1e-9 - x.sum()}],
        "ball": [{"type": "ineq", "fun": lambda x: 1.5**2 - x @ x}],
        "whole": [],
        "box": [],
        "octahedron": [
            {"type": "ineq", "fun": lambda x, sign=sign: 1.5 - sign @ x}
            for sign in np.array(np.meshgrid(*[[-1.0, 1.0]] * M)).reshape(M, -1).T
        ],
    }[domain]
    theta = mirror.step(zeta, beta)
    start = mirror.start()
    for first in (start, start + 0.1 * (inside(mirror, rng) - start)):
        found = minimize(
            objective, first, bounds=bounds, constraints=constraints, method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )  # fmt: skip
        length = np.linalg.norm(found.x, {"ball": 2, "box": np.inf}.get(domain, 1))
        feasible = found.x if domain == "whole" else found.x / max(1.0, length / 1.5)
        assert objective(theta) <= objective(feasible) + 1e-9
    assert objective(feasible) <= objective(theta) + 1e-5
    np.testing.assert_allclose(found.x, theta, atol=5e-3)


@for_each("M", [2, 3, 10])
@pairs
def test_no_point_of_the_set_does_better(proxy, domain, M):
    rng = np.random.default_rng(2)
    mirror = Mirror(proxy, domain, M, 2.0)
    zeta, beta = 3.0 * rng.normal(size=M), 0.7
    theta = mirror.step(zeta, beta)
    best = zeta @ theta + beta * mirror.value(theta)
    for boundary in (0.0, 0.5):
        for _ in range(100):
            other = inside(mirror, rng, boundary)
            for x in (other, theta + 1e-3 * (other - theta)):
                assert zeta @ x + beta * mirror.value(x) >= best - 1e-11


@pairs
def test_the_start_is_the_minimiser_and_the_step_of_zero(proxy, domain):
    rng = np.random.default_rng(0)
    for M in SIZES:
        mirror = Mirror(proxy, domain, M, 3.0)
        start = mirror.start()
        np.testing.assert_allclose(mirror.step(np.zeros(M), 0.5), start, rtol=1e-13, atol=0)
        least = mirror.value(start)
        if domain != "simplex" or proxy in ("entropy", "power"):
            assert abs(least) <= 1e-13 * (1 + (mirror.spread if domain != "whole" else 0))
        for _ in range(20):
            assert mirror.value(inside(mirror, rng, 0.3)) >= least - 1e-12


@for_each("M", SIZES)
@pytest.mark.parametrize(("proxy", "domain"), BOUNDED)
def test_spread_is_attained_at_a_vertex_and_nowhere_exceeded(proxy, domain, M):
    rng = np.random.default_rng(M)
    for size in (0.3, 4.0):
        mirror = Mirror(proxy, domain, M, size)
        least = mirror.value(mirror.start())
        vertex = np.full(M, size if domain == "box" else 0.0)
        vertex[M // 2] = size
        if (proxy, domain) == ("p-norm", "ball"):  # p < 2: at equal weights
            vertex[:] = size / math.sqrt(M)
        np.testing.assert_allclose(mirror.value(vertex) - least, mirror.spread, rtol=1e-11, atol=1e-13)
        for _ in range(50):
            assert mirror.value(inside(mirror, rng, 0.5)) - least <= mirror.spread * (1 + 1e-12) + 1e-13


def divergence(mirror, x, y):
    return mirror.value(x) - mirror.value(y) - mirror.gradient(y) @ (x - y)


def least_ratio(mirror, rng):
    """The least 2 D_V(x, y) / |x - y|^2 found: random pairs, and pairs close to equal or two-valued weights."""
    order = 1 if mirror.norm == "l1" else 2
    M, worst = mirror.dimension, np.inf
    equal = np.full(M, mirror.size / M) * (1.0 if mirror.domain == "simplex" else 0.999)
    two = np.full(M, 1e-9)
    two[:2] = 0.5
    two *= mirror.size / two.sum() * (1.0 if mirror.domain == "simplex" else 1 - 1e-9)
    alternating = np.where(np.arange(M) % 2, 1.0, -1.0)
    first = np.zeros(M)
    first[:2] = 1.0, -1.0
    for i in range(100):
        y = inside(mirror, rng)
        x = inside(mirror, rng)
        if i % 2:
            x = y + 1e-3 * (x - y)
        pair = [(x, y)]
        if M % 2 == 0 and i == 0:
            pair += [(equal * (1 + 1e-3 * alternating), equal), (two + 1e-3 * mirror.size * first, two)]
        for x, y in pair:
            distance = np.linalg.norm(x - y, order)
            if distance > 1e-9:
                worst = min(worst, 2 * divergence(mirror, x, y) / distance**2)
    return worst


@for_each("M", [2, 3, 4, 10, 30])
@pairs
def test_strong_convexity(proxy, domain, M):
    for size in (1.0, 5.0):
        mirror = Mirror(proxy, domain, M, size)
        worst = least_ratio(mirror, np.random.default_rng(M))
        assert worst >= mirror.strong_convexity * (1 - 1e-5), name_of(mirror)
        if M % 2 == 0 and domain != "whole" and (proxy, domain) != ("entropy", "octahedron"):
            assert worst <= mirror.strong_convexity * 1.01, name_of(mirror)  # and no better constant is true


def test_constants_of_the_text():
    """Errata of mda: V* and alpha of (35) and (36), and the proxies that beat the entropy for small M."""
    for M in (3, 4, 100):
        log = math.log(M)
        power, pnorm = Mirror("power", "simplex", M, 2.0), Mirror("p-norm", "simplex", M, 2.0)
        assert power.spread == pytest.approx(4 * (1 - 1 / math.e) * log**2 / (1 + log))
        assert power.strong_convexity == pytest.approx(1 / math.e)
        assert pnorm.strong_convexity >= 1 / (math.e**2 * 4 * log)
        assert 0.08 < pnorm.value(pnorm.start()) < 0.23  # not 0
    ratios = {name: Mirror(name, "simplex", 3).spread / Mirror(name, "simplex", 3).strong_convexity for name in MIRRORS}
    assert ratios["power"] == pytest.approx(0.988, abs=1e-3) and ratios["entropy"] == pytest.approx(math.log(3))
    two = Mirror("power", "simplex", 2)
    assert two.spread / two.strong_convexity == pytest.approx(0.5)


def test_any_start_is_not_enough():
    """mda, Proposition 2 with theta_0 = e_1 in place of the minimiser: one round already breaks it."""
    u, theta = np.array([1.0, -1.0]), np.array([0.5, 0.5])
    mirror = Mirror("entropy", "simplex", 2)
    beta_0 = 1 / math.sqrt(math.log(2))
    right_side = math.sqrt(2) * beta_0 * mirror.value(theta) + 1 / (2 * mirror.strong_convexity * beta_0)
    assert (np.array([1.0, 0.0]) - theta) @ u == 1.0 > right_side
    assert (mirror.start() - theta) @ u <= right_side


finite = st.floats(-100, 100).map(lambda x: x if abs(x) > 1e-6 else 0.0)


@pairs
@settings(max_examples=15)
@given(
    zeta=st.lists(finite, min_size=1, max_size=12),
    power=st.integers(-20, 20),
    beta=st.floats(0.01, 100),
    data=st.data(),
)
def test_symmetries(proxy, domain, zeta, power, beta, data):
    zeta = np.array(zeta)
    mirror = Mirror(proxy, domain, zeta.size, 1.5)
    theta = mirror.step(zeta, beta)
    tolerance = 1e-12 * max(1.0, np.abs(theta).max())
    # Joint scaling of gamma and beta changes nothing (mda, Remark 4, says it might): by powers of 2, not a bit.
    np.testing.assert_array_equal(mirror.step(zeta * 2.0**power, beta * 2.0**power), theta)
    np.testing.assert_allclose(mirror.step(zeta * 3.7, beta * 3.7), theta, rtol=0, atol=tolerance * 10)
    order = np.array(data.draw(st.permutations(range(zeta.size))))
    np.testing.assert_allclose(mirror.step(zeta[order], beta), theta[order], rtol=0, atol=tolerance)
    if domain == "simplex":
        np.testing.assert_allclose(mirror.step(zeta + 64.0, beta), theta, rtol=0, atol=1e-10 / beta)
    if domain in ("octahedron", "ball", "box", "whole"):
        np.testing.assert_array_equal(mirror.step(-zeta, beta), -theta)
        assert np.all(theta * zeta <= 0)
    rising = np.argsort(zeta, kind="stable")
    assert np.all(np.diff(theta[rising]) <= tolerance)  # the dearer, the lighter


@for_each("M", [1, 2, 3, 10, 1000])
@pairs
def test_extremes(proxy, domain, M):
    rng = np.random.default_rng(0)
    candidates = [
        np.full(M, 1e6), np.full(M, -1e6), np.zeros(M), 1e6 * rng.choice([-1.0, 1.0], M), 1e6 * rng.normal(size=M),
        np.where(np.arange(M) < 2, -1e6, 1e6), 1e6 + np.arange(M) * 1e-10, 1e-300 * rng.normal(size=M),
        np.arange(M) - 3.0, 1e150 * rng.normal(size=M),
    ]  # fmt: skip
    for size in (1e-3, 1.0, 1e3):
        mirror = Mirror(proxy, domain, M, size)
        for beta in (1e-6, 1e-3, 1.0, 1e3, 1e6):
            for zeta in candidates:
                theta = mirror.step(zeta, beta)
                assert np.isfinite(theta).all(), (name_of(mirror), beta, zeta[:3])
                assert violation(mirror, theta) <= 1e-12 * size
                same = zeta == zeta[0]
                assert np.ptp(theta[same]) == 0.0  # ties
                if domain == "simplex":
                    assert theta[np.argmin(zeta)] >= size / M * (1 - 1e-12)
                    if same.all():
                        np.testing.assert_allclose(theta, size / M, rtol=1e-12)


def test_steps_do_not_overflow_at_the_ends_of_floating_point():
    for proxy, domain in BOUNDED:
        mirror = Mirror(proxy, domain, 3, 1.0)
        for beta in (1e-320, 1e-300, 1e300):
            with np.errstate(over="ignore"):  # an infinite gap is meant; only plain Python remarks on it
                theta = mirror.step([-1e308, 0.0, 1e308], beta)
            assert np.isfinite(theta).all() and violation(mirror, theta) <= 1e-12


@pairs
def test_eager_step_minimises_its_definition(proxy, domain):
    rng = np.random.default_rng(4)
    for M in (2, 3, 10):
        mirror = Mirror(proxy, domain, M, 1.5)
        for rate in (0.1, 2.0):
            y, u = inside(mirror, rng), rng.normal(size=M)
            theta = mirror.step_from(y, u, rate)
            best = rate * u @ theta + divergence(mirror, theta, y)
            for _ in range(40):
                other = inside(mirror, rng, 0.3)
                for x in (other, theta + 1e-3 * (other - theta)):
                    assert rate * u @ x + divergence(mirror, x, y) >= best - 1e-11


@pairs
def test_the_eager_kernel_steps_from_its_last_weights(proxy, domain):
    """Along a run, `eager_step`'s dual point gives what `step_from` gives from the weights alone."""
    rng = np.random.default_rng(5)
    M = 5
    mirror = Mirror(proxy, domain, M, 1.5)
    zeta, theta = np.zeros(M), mirror.start()
    for t in range(30):
        u, rate = rng.normal(size=M), 0.5 / math.sqrt(t + 1)
        expected = mirror.step_from(theta, u, rate)
        eager_step(*mirror.codes, mirror.size, zeta, u, rate, theta)
        np.testing.assert_allclose(theta, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("domain", ["simplex", "subsimplex", "octahedron"])
@settings(max_examples=40)
@given(data=st.data())
def test_exponentiated_gradient_is_lazy_and_eager(domain, data):
    """(23): at a constant temperature both schemes are EG, from equal weights; its first line too."""
    M = data.draw(st.integers(1, 6))
    mirror = Mirror("entropy", domain, M, 2.0)
    steps = data.draw(st.lists(st.lists(st.floats(-2, 2), min_size=M, max_size=M), min_size=1, max_size=8))
    zeta, total, theta = np.zeros(M), np.zeros(M), mirror.start()
    weights = mirror.start()
    for u in np.array(steps):
        eager_step(*mirror.codes, 2.0, zeta, u, 0.3 / 0.7, theta)
        total += 0.3 * u
        np.testing.assert_allclose(mirror.step(total, 0.7), theta, rtol=1e-12, atol=1e-13)
        if domain == "simplex":
            weights = weights * np.exp(-0.3 / 0.7 * u)
            weights *= 2.0 / weights.sum()
            np.testing.assert_allclose(theta, weights, rtol=1e-12)


def test_lazy_and_eager_differ_once_the_boundary_is_met():
    mirror = Mirror("euclidean", "simplex", 2)
    zeta, theta = np.zeros(2), mirror.start()
    for u in ([5.0, 0.0], [0.0, 1.0]):
        eager_step(*mirror.codes, 1.0, zeta, np.array(u), 1.0, theta)
    assert theta.tolist() == [0.5, 0.5] and mirror.step([5.0, 1.0]).tolist() == [0.0, 1.0]


def test_entropy_weights_come_back_from_underflow():
    mirror = Mirror("entropy", "simplex", 2)
    zeta, theta = np.zeros(2), mirror.start()
    for u in ([3000.0, 0.0], [0.0, 3001.0]):
        eager_step(*mirror.codes, 1.0, zeta, np.array(u), 1.0, theta)
    assert theta[0] == pytest.approx(1 / (1 + math.exp(-1)))


@pytest.mark.parametrize("M", [1, 2, 5])
@settings(max_examples=40)
@given(data=st.data())
def test_entropy_on_larger_sets_is_the_simplex_with_more_functions(M, data):
    """A zero base function, or the negated ones: M + 1 and 2M weights."""
    zeta = np.array(data.draw(st.lists(st.floats(-50, 50), min_size=M, max_size=M)))
    beta = data.draw(st.floats(0.05, 20))
    wide = Mirror("entropy", "simplex", M + 1, 3.0).step(np.append(zeta, 0.0), beta)
    np.testing.assert_allclose(
        Mirror("entropy", "subsimplex", M, 3.0).step(zeta, beta), wide[:M], rtol=1e-12, atol=1e-300
    )
    wide = Mirror("entropy", "simplex", 2 * M, 3.0).step(np.append(zeta, -zeta), beta)
    theta = Mirror("entropy", "octahedron", M, 3.0).step(zeta, beta)
    np.testing.assert_allclose(theta, wide[:M] - wide[M:], rtol=0, atol=1e-14)
    if 3.0 - np.abs(theta).sum() > 1e-3:
        value = Mirror("entropy", "octahedron", M, 3.0).value(theta)
        assert value == pytest.approx(Mirror("entropy", "simplex", 2 * M, 3.0).value(wide), rel=1e-9, abs=1e-12)


def test_power_is_euclidean_for_two_weights():
    zeta = np.array([0.3, -0.2])
    euclidean = Mirror("euclidean", "octahedron", 2, 1.0).step(zeta, 0.5)
    np.testing.assert_allclose(Mirror("power", "octahedron", 2, 1.0).step(zeta, 0.5), euclidean, rtol=1e-14)
    np.testing.assert_allclose(Mirror("p-norm", "octahedron", 2, 1.0).step(zeta, 0.5), euclidean, rtol=1e-14)


@pytest.mark.parametrize("proxy", MIRRORS)
def test_a_hundred_thousand_weights(proxy):
    M = 100_000
    zeta = np.random.default_rng(0).normal(size=M)
    mirror = Mirror(proxy, "simplex", M)
    for beta in (0.01, 1.0, 100.0):
        theta = np.empty(M)
        mirror_step(*mirror.codes, 1.0, zeta, beta, theta)
        assert abs(theta.sum() - 1.0) <= 1e-12
        if proxy == "entropy":
            slow = slow_step(mirror, zeta, beta)
            assert np.abs(theta - slow).max() <= 1e-12 * slow.max()
        else:
            assert optimality_gap(mirror, zeta, beta, theta) <= 1e-12


def test_refusals_name_both_and_list_the_choices():
    for proxy in MIRRORS:
        for domain in DOMAINS:
            if domain not in MIRRORS[proxy]:
                with pytest.raises(ValueError, match=f"proxy='{proxy}' has no step on domain='{domain}'"):
                    Mirror(proxy, domain, 3)
    with pytest.raises(ValueError, match=r"'bregman' is unknown: choose one of \['entropy', 'euclidean'"):
        Mirror("bregman", "simplex", 3)
    with pytest.raises(ValueError, match=r"'cube' is unknown: choose one of \['ball', 'box', 'octahedron'"):
        Mirror("entropy", "cube", 3)
    for arguments in ({"dimension": 0}, {"dimension": 2, "size": 0.0}, {"dimension": 2, "size": math.nan}):
        with pytest.raises(ValueError, match="must be"):
            Mirror("entropy", "simplex", **arguments)
    mirror = Mirror("entropy", "simplex", 3)
    with pytest.raises(ValueError, match="zeta has shape"):
        mirror.step([1.0, 2.0])
    with pytest.raises(ValueError, match="zeta must be finite"):
        mirror.step([1.0, 2.0, math.nan])
    with pytest.raises(ValueError, match="beta="):
        mirror.step([1.0, 2.0, 3.0], beta=0.0)
    with pytest.raises(ValueError, match="boundary of the simplex"):
        mirror.step_from([1.0, 0.0, 0.0], [1.0, 0.0, 0.0])


def test_the_callers_arrays_are_left_alone():
    zeta, theta = np.array([1.0, -2.0, 0.5]), np.array([0.2, 0.3, 0.5])
    for proxy in MIRRORS:
        mirror = Mirror(proxy, "simplex", 3)
        mirror.step(zeta), mirror.step_from(theta, zeta), mirror.value(theta), mirror.gradient(theta)
    assert zeta.tolist() == [1.0, -2.0, 0.5] and theta.tolist() == [0.2, 0.3, 0.5]
