"""Any steps, temperatures and starting points, and sets that grow: against the definitions, and their bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import softmax

import regretless
from reference.mirror import ReferenceMirror
from regretless import OGD, ExponentiatedGradient, MirrorDescent, NoBound, bounds
from regretless.learners.first_order.mirrors import MIRRORS, Mirror
from regretless.learners.first_order.schedules import AdaGrad, ConstantStep, InverseRootStep, KnownHorizon, Sequence
from regretless.theory.domains import Ball, Box, Growing, Octahedron, Simplex, SubSimplex, WholeSpace

SETS = {"simplex": Simplex, "subsimplex": SubSimplex, "octahedron": Octahedron, "ball": Ball, "box": Box}
GRADIENTS = np.random.default_rng(0).normal(size=(40, 3))


def gamma(t: int) -> float:
    return (1 + t % 3) / math.sqrt(t)


def beta(t: int) -> float:
    return math.sqrt(1 + t) + 0.1 * (t % 2)


def played(learner, gradients=GRADIENTS):
    """The weights of each round, from the first to one after the last gradient, and the learner."""
    learner = type(learner)(**learner.get_params()).begin(gradients.shape[1])
    weights = [learner.weights_]
    for g in gradients:
        learner.learn_gradient(g)
        weights.append(learner.weights_)
    return np.array(weights), learner


# ---------------------------------------------------------------------- steps and temperatures


@pytest.mark.parametrize("form", ["functions", "arrays"])
@pytest.mark.parametrize("averaging", [False, True])
def test_the_lazy_scheme_is_eqs_11_and_12(form, averaging):
    n = len(GRADIENTS)
    sequence = Sequence(gamma, beta)
    if form == "arrays":
        sequence = Sequence([gamma(t) for t in range(1, n + 1 + averaging)], np.array([beta(t) for t in range(n + 1)]))
    learner = MirrorDescent("linear", Simplex(2.0), "entropy", sequence, averaging=averaging)
    weights, learner = played(learner)
    zeta, expected = np.zeros(3), [np.full(3, 2 / 3)]
    for t, g in enumerate(GRADIENTS, 1):
        zeta = zeta + gamma(t) * g
        expected.append(2 * softmax(-zeta / beta(t)))
    np.testing.assert_allclose(weights, expected, atol=1e-9)
    if averaging:
        steps = [gamma(t) for t in range(1, n + 2)]
        np.testing.assert_allclose(learner.coef_[0], np.average(expected, axis=0, weights=steps), atol=1e-9)


def test_the_eager_scheme_and_ogd_have_the_rate_gamma_over_beta():
    w, expected = np.zeros(3), [np.zeros(3)]
    for t, g in enumerate(GRADIENTS, 1):
        w = Ball(1.0).project(w - gamma(t) / beta(t) * g)
        expected.append(w)
    eager, _ = played(MirrorDescent("linear", Ball(1.0), "euclidean", Sequence(gamma, beta), False, False))
    descent, _ = played(OGD("linear", radius=1.0, step=Sequence(gamma, beta)))
    np.testing.assert_allclose(eager, expected, atol=1e-9)
    np.testing.assert_allclose(descent, expected, atol=1e-9)


def adversarial(learner, T=150, d=3, kind="against"):
    """Gradients with entries up to 1, chosen with the weights in sight; returns the regret over the set."""
    learner = type(learner)(**learner.get_params()).begin(d)
    rng, suffered, G = np.random.default_rng(1), 0.0, np.zeros(d)
    for t in range(T):
        w = learner.weights_
        g = {"against": np.sign(w) + (w == 0), "random": rng.choice([-1.0, 1.0], d),
             "alternating": np.full(d, (-1.0) ** t) / (2 if t == 0 else 1)}[kind]  # fmt: skip
        suffered, G = suffered + g @ w, G + g
        learner.learn_gradient(g)
    domain = learner.competes_with.domain
    return suffered - G @ domain.minimise_linear(G), learner


KINDS = ["against", "random", "alternating"]


@pytest.mark.parametrize("kind", KINDS)
def test_proposition_2_bounds_the_regret_of_any_rising_temperatures(kind):
    temperatures = [1.0, 1.0, 5.0, *np.linspace(5.0, 20.0, 148)]
    for mirror, domain in (("entropy", Octahedron(1.5)), ("p-norm", Ball(1.0)), ("euclidean", Box(1.0))):
        G = math.sqrt(3) if mirror == "euclidean" else 1.0
        learner = MirrorDescent("linear", domain, mirror, Sequence(temperatures=temperatures), True, False, G)
        regret, learner = adversarial(learner, kind=kind)
        V = Mirror.on(mirror, domain, 3)
        expected = 20.0 * V.spread + G**2 / (2 * V.strong_convexity) * sum(1 / b for b in temperatures[:150])
        assert learner.regret_bound() == pytest.approx(expected)
        assert regret == pytest.approx(learner.regret_certificate(), abs=1e-9)
        assert regret <= expected


@pytest.mark.parametrize("kind", KINDS)
def test_eq_8_bounds_the_regret_of_any_falling_steps(kind):
    steps = np.minimum(1.0, 3.0 / np.arange(1, 151))
    G = math.sqrt(3)
    for learner in (
        OGD("linear", radius=1.0, step=Sequence(steps), gradient_bound=G),
        MirrorDescent("linear", Ball(1.0), schedule=Sequence(steps), lazy=False, averaging=False, gradient_bound=G),
    ):
        regret, learner = adversarial(learner, kind=kind)
        assert learner.regret_bound() == pytest.approx(2 / steps[-1] + 1.5 * steps.sum())
        assert regret <= learner.regret_bound()


def test_the_known_schedules_are_sequences_and_so_are_their_bounds():
    named = MirrorDescent("linear", Simplex(1.0), "entropy", KnownHorizon(2.0, 40), averaging=True, gradient_bound=4.0)
    tabled = named.__class__(**named.get_params() | {"schedule": Sequence(temperatures=[2 * math.sqrt(40)] * 42)})
    one, _ = played(named)
    other, second = played(tabled)
    np.testing.assert_allclose(one, other, atol=1e-12)
    expected = bounds.averaging_excess_risk(40, spread=math.log(3), strong_convexity=1.0, gradient_bound=4.0,
                                            temperature=2 * math.sqrt(40), known_horizon=True)  # fmt: skip
    assert second.excess_risk_bound(40) == pytest.approx(expected)


def test_where_the_theorem_needs_monotone_sequences_others_run_without_a_bound():
    falling = MirrorDescent("linear", Simplex(1.0), "entropy", Sequence(temperatures=lambda t: 1 / (1 + t)),
                            averaging=False)  # fmt: skip
    changing = MirrorDescent("linear", Simplex(1.0), "entropy", Sequence(gamma), averaging=False)
    growing = OGD("linear", radius=1.0, step=Sequence(lambda t: float(t)))
    for learner, words in ((falling, "do not fall"), (changing, "the steps of the sequence change"),
                           (growing, "do not grow")):  # fmt: skip
        _, learner = played(learner)
        assert math.isfinite(learner.regret_certificate())
        with pytest.raises(NoBound, match=words):
            learner.regret_bound()
    _, averaged = played(MirrorDescent("linear", Simplex(1.0), "entropy", Sequence(gamma)))
    with pytest.raises(NoBound, match="give gradient_bound"):
        averaged.excess_risk_bound()


def test_bad_sequences_are_refused_before_anything_is_learned(tmp_path):
    for steps, words in (
        ([1.0, 0.0], "steps at t = 2 is 0.0"),
        ([1.0, math.nan], "t = 2 is nan"),
        ("fast", "give a function of t, or an array"),
        ([], "or an array"),
        (None, "give steps"),
    ):
        with pytest.raises(ValueError, match=words):
            Sequence(steps)
    learner = OGD("linear", step=Sequence([1.0, 0.5, 0.2]))
    learner.partial_fit(np.ones((3, 1)), [1.0, 1.0, 1.0], sample_weight=[1, 0, 1])  # weight 0 takes no step
    before = learner.coef_.copy()
    with pytest.raises(ValueError, match="steps is given up to t = 3, and t = 4 is needed: pass a longer array"):
        learner.partial_fit(np.ones((2, 1)), [1.0, 1.0])
    assert np.array_equal(learner.coef_, before)
    learner.save(tmp_path / "array.npz")
    assert regretless.load(tmp_path / "array.npz").step == learner.step
    negative = OGD("linear", step=Sequence(lambda t: 100.0 - t))
    negative.partial_fit(np.ones((60, 1)), np.ones(60))
    with pytest.raises(ValueError, match="steps at t = 100 is"):
        negative.partial_fit(np.ones((60, 1)), np.ones(60))
    with pytest.raises(ValueError, match="cannot be saved"):
        negative.save(tmp_path / "function.npz")


def test_blocks_do_not_change_a_sequence():
    X, y = np.random.default_rng(2).normal(size=(300, 3)), np.ones(300)
    one, other = (OGD("linear", step=Sequence(gamma)) for _ in range(2))
    one.fit(X, y)
    for i in range(0, 300, 7):
        other.partial_fit(X[i : i + 7], y[i : i + 7])
    assert np.array_equal(one.coef_, other.coef_)


# ---------------------------------------------------------------------- starting points


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize(("proxy", "name"), [(p, n) for p in MIRRORS for n in MIRRORS[p] if n != "whole"])
def test_mirror_descent_from_any_start_minimises_the_divergence_from_it(proxy, name, lazy):
    """Each step, argmin of zeta.theta + beta D_V(theta, theta_0) over the set, from the reference's conditions."""
    domain, start = SETS[name](1.0), np.array([0.5, 0.2, 0.1] if name != "simplex" else [0.5, 0.3, 0.2])
    sequence = Sequence(temperatures=beta)
    learner = MirrorDescent("linear", domain, proxy, sequence, lazy, False, start=start)
    weights, _ = played(learner, GRADIENTS[:12])
    slow = ReferenceMirror(proxy, name, 3, 1.0)
    fast = Mirror(proxy, name, 3, 1.0)
    origin, theta, zeta = fast.gradient(start), start, np.zeros(3)
    np.testing.assert_array_equal(weights[0], start)
    for t, g in enumerate(GRADIENTS[:12], 1):
        if lazy:
            zeta = zeta + g
            point = slow.lift(zeta - beta(t) * origin)
            theta = np.asarray(slow.fold(slow.minimise(point, beta(t))), dtype=float)
        else:
            point = slow.lift(g / beta(t) - fast.gradient(theta))
            theta = np.asarray(slow.fold(slow.minimise(point, 1.0)), dtype=float)
        np.testing.assert_allclose(weights[t], theta, atol=1e-9)
        theta = weights[t]


def test_exponentiated_gradient_from_any_start_is_eq_23():
    start = np.array([0.7, 0.2, 0.1])
    learner = ExponentiatedGradient("linear", feature_bound=4.0, horizon=40, start=start)
    weights, learner = played(learner)
    V = math.log(10)  # the divergence of the farthest vertex
    eta = math.sqrt(2 * V / 40) / 4.0
    theta = start.copy()
    for t, g in enumerate(GRADIENTS, 1):
        theta = theta * np.exp(-eta * g)
        theta /= theta.sum()
        np.testing.assert_allclose(weights[t], theta, atol=1e-9)
    assert learner.regret_bound() == pytest.approx(4.0 * math.sqrt(2 * 40 * V))
    uniform, _ = played(ExponentiatedGradient("linear", feature_bound=4.0, start=[1 / 3] * 3))
    usual, _ = played(ExponentiatedGradient("linear", feature_bound=4.0))
    np.testing.assert_allclose(uniform, usual, atol=1e-12)


@pytest.mark.parametrize(("proxy", "name"), [(p, n) for p in MIRRORS for n in MIRRORS[p] if n != "whole"])
def test_the_spread_from_a_start_bounds_every_divergence(proxy, name):
    rng = np.random.default_rng(3)
    domain, mirror = SETS[name](1.3), Mirror(proxy, name, 3, 1.3)
    for _ in range(20):
        start = domain.project(rng.normal(size=3))
        start = 0.8 * start + 0.2 * (mirror.start() if name != "simplex" else np.full(3, 1.3 / 3))
        if proxy == "entropy" and name == "subsimplex":
            start = np.maximum(start, 0.01)
        V, here, slope = mirror.spread_from(start), mirror.value(start), mirror.gradient(start)
        found = []
        for g in rng.normal(size=(60, 3)):
            u = domain.minimise_linear(g)
            found.append(mirror.value(u) - here - slope @ (u - start))
        assert max(found) <= V * (1 + 1e-12) + 1e-12
        if (proxy, name) not in (("p-norm", "ball"), ("p-norm", "box")):
            assert max(found) >= 0.8 * V
    centre = np.full(3, 1.3 / 3) if name == "simplex" else mirror.start()
    assert mirror.spread_from(centre) == pytest.approx(mirror.spread)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lazy", [True, False])
def test_bounds_hold_from_any_start(kind, lazy):
    for mirror, domain, start in (
        ("entropy", Simplex(1.0), [0.9, 0.05, 0.05]),
        ("entropy", Octahedron(2.0), [-1.5, 0.1, 0.0]),
        ("p-norm", Ball(1.0), [0.9, -0.3, 0.0]),
        ("power", Octahedron(1.0), [0.5, -0.5, 0.0]),
        ("euclidean", Ball(1.0), [0.0, 1.0, 0.0]),
    ):
        learner = MirrorDescent("linear", domain, mirror, ConstantStep(0.05), lazy, False, start=start)
        regret, learner = adversarial(learner, kind=kind)
        assert regret <= learner.regret_bound()
        assert regret == pytest.approx(learner.regret_certificate(), abs=1e-9)
    everywhere = MirrorDescent("linear", WholeSpace(), schedule=0.1, lazy=lazy, averaging=False, start=[1.0, 2.0, 3.0])
    weights, learner = played(everywhere)
    np.testing.assert_allclose(weights[-1], np.array([1, 2, 3]) - 0.1 * GRADIENTS.sum(axis=0), atol=1e-9)
    assert learner.regret_certificate(2.0) <= learner.regret_bound(comparator_norm=2.0)


def test_start_with_classes_adagrad_and_files(tmp_path):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 3, 30)
    start = [[0.1, 0.2], [0.3, -0.1], [0.0, 0.5]]
    learner = MirrorDescent(domain=Box(1.0), schedule=AdaGrad(0.5), lazy=False, averaging=False, start=start)
    first = learner.fit(X[:2], y[:2], classes=[0, 1, 2], sample_weight=[0, 0]).weights_
    np.testing.assert_array_equal(first, start)
    learner.partial_fit(X, y).save(tmp_path / "model.npz")
    again = regretless.load(tmp_path / "model.npz").partial_fit(X, y)
    assert np.array_equal(again.coef_, learner.partial_fit(X, y).coef_)


def test_bad_starts_are_refused():
    for domain, mirror, start, words in (
        (Ball(1.0), "euclidean", [1.0, 1.0], "is not in Ball"),
        (Ball(1.0), "euclidean", [1.0, 0.0, 0.0], r"numbers of shape \(2,\)"),
        (Ball(1.0), "euclidean", "centre", "give the first weights"),
        (Ball(1.0), "euclidean", [math.nan, 0.0], "is not in Ball"),
        (Simplex(1.0), "entropy", [1.0, 0.0], "the entropy has no gradient. Choose weights inside"),
    ):
        with pytest.raises(ValueError, match=words):
            MirrorDescent("linear", domain, mirror, start=start, averaging=False).begin(2)


# ---------------------------------------------------------------------- sets that grow


def test_the_weights_of_round_t_are_in_the_set_of_round_t():
    sizes = [0.1 * math.log(2 + t) for t in range(41)]
    descent = MirrorDescent("linear", Growing(Ball(0.1), lambda t: math.log(2 + t)), schedule=0.3, lazy=False,
                            averaging=False)  # fmt: skip
    weights, learner = played(descent)
    w = np.zeros(3)
    for t, g in enumerate(GRADIENTS, 1):
        w = Ball(sizes[t]).project(w - 0.3 * g)
        np.testing.assert_allclose(weights[t], w, atol=1e-9)
    assert learner.competes_with.domain == Ball(0.1 * math.log(42))
    eg = MirrorDescent("linear", Growing(Simplex(0.1), np.log(2 + np.arange(41))), "entropy", ConstantStep(0.2),
                       averaging=False)  # fmt: skip
    weights, _ = played(eg)
    expected = [sizes[t] * softmax(-0.2 * GRADIENTS[:t].sum(axis=0)) for t in range(1, 41)]
    np.testing.assert_allclose(weights[1:], expected, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("schedule", [ConstantStep(0.1), InverseRootStep(0.4), Sequence(lambda t: 0.5 / t**0.5)])
def test_regret_on_growing_balls_is_below_certificate_and_bound(kind, schedule):
    learner = MirrorDescent("linear", Growing(Ball(0.5), lambda t: 1 + math.log1p(t)), "euclidean", schedule, False,
                            False)  # fmt: skip
    regret, learner = adversarial(learner, kind=kind)
    assert regret == pytest.approx(learner.regret_certificate(), abs=1e-9)
    assert regret <= learner.regret_bound() + 1e-9
    for norm in (0.2, 0.6, 1.5, 3.0):
        assert learner.regret_certificate(norm) <= learner.regret_bound(comparator_norm=norm) + 1e-9
    assert learner.regret_bound(10_000, comparator_norm=0.5) < 10_000  # of order sqrt(n) once the ball contains it


def test_growing_sets_are_checked():
    with pytest.raises(ValueError, match="never fall"):
        Growing(Ball(1.0), [1.0, 0.5])
    with pytest.raises(ValueError, match="can grow"):
        Growing(WholeSpace(), [1.0])
    with pytest.raises(ValueError, match="changes with the size of the set"):
        MirrorDescent("linear", Growing(Octahedron(1.0), [1.0] * 9), "p-norm", averaging=False).begin(3)
    with pytest.raises(ValueError, match="needs bounded weights"):
        MirrorDescent("squared", Growing(Ball(1.0), [1.0] * 9), schedule=0.1).fit([[1.0]], [1.0])
    learner = MirrorDescent("linear", Growing(Ball(1.0), [1.0, 2.0, 3.0]), schedule=0.1, averaging=False).begin(1)
    learner.learn_gradient([1.0]).learn_gradient([1.0])
    with pytest.raises(ValueError, match="growth is given up to t = 2, and t = 3 is needed"):
        learner.learn_gradient([1.0])
    with pytest.raises(NoBound, match="only for the eager Euclidean scheme on a Ball"):
        learner.regret_bound()
