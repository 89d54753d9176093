"""Losses that a user brings: value and slope, compiled or plain, in learners, hindsight and model files."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from numba import njit
from sklearn.base import clone

import regretless
from regretless import (
    FTRL,
    OGD,
    ExponentiatedGradient,
    LinearizedFTRL,
    MirrorDescent,
    NoBound,
    StronglyConvexOGD,
    best_in_hindsight,
)
from regretless.theory.domains import Ball, Octahedron, Simplex, WholeSpace
from regretless.theory.losses import Custom, loss


def absolute(z: float, y: float) -> float:
    return abs(z - y)


def side(z: float, y: float) -> float:
    return 1.0 if z > y else (-1.0 if z < y else 0.0)


def hinge(z: float, y: float) -> float:
    return max(1.0 - y * z, 0.0)


def hinge_slope(z: float, y: float) -> float:
    return -y if y * z < 1.0 else 0.0


def log_cosh(z: float, y: float) -> float:
    a = abs(z - y)
    return a + math.log1p(math.exp(-2.0 * a)) - math.log(2.0)


def tanh(z: float, y: float) -> float:
    return math.tanh(z - y)


def bend(z: float, y: float) -> float:
    return 1.0 / math.cosh(min(abs(z - y), 300.0)) ** 2


PLAIN = Custom("my absolute", absolute, side, slope_bound=1.0)
COMPILED = Custom("my compiled absolute", njit(absolute), njit(side), slope_bound=1.0)
HINGE = Custom("my hinge", hinge, hinge_slope, "margin", slope_bound=1.0)
SMOOTH = Custom("my log cosh", log_cosh, tanh, slope_bound=1.0, curvature=bend)
FREE = Custom("my absolute, slopes unknown", absolute, side)


def rows(n: int = 60, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d))
    return X, X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)


LEARNERS = {
    "OGD": lambda loss: OGD(loss, radius=2.0),
    "eager": lambda loss: MirrorDescent(loss, Ball(2.0), lazy=False, averaging=False, gradient_bound=2.0),
    "averaged": lambda loss: MirrorDescent(loss, Octahedron(2.0), "entropy", gradient_bound=1.0),
    "EG": lambda loss: ExponentiatedGradient(loss, signed=True),
    "FTRL-Proximal": lambda loss: LinearizedFTRL(loss, radius=1.0),
    "strongly convex": lambda loss: StronglyConvexOGD(loss, regularization=0.1),
}


SLOW = ("FTRL-Proximal", "strongly convex")  # to compile


@pytest.mark.parametrize(
    "make",
    [pytest.param(make, marks=[pytest.mark.slow] * (name in SLOW)) for name, make in LEARNERS.items()],
    ids=LEARNERS,
)
@pytest.mark.parametrize(
    ("own", "named"),
    [(PLAIN, "absolute"), (COMPILED, "absolute"), (HINGE, "hinge")],
    ids=["plain", "compiled", "hinge"],
)
def test_a_named_loss_written_by_the_user_gives_the_same_run(make, own, named):
    X, y = rows()
    y = y if named == "absolute" else np.where(y > 0, "yes", "no")
    mine, theirs = make(own), make(named)
    said = mine.predict_then_learn(X, y, sample_weight=np.arange(60) % 3)
    assert np.array_equal(said, theirs.predict_then_learn(X, y, sample_weight=np.arange(60) % 3))
    for one, other in zip(mine.state_, theirs.state_, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)
    assert mine.regret_certificate(0.5) == pytest.approx(theirs.regret_certificate(0.5), rel=1e-12)
    assert mine.competes_with.loss == own.name


def test_soft_labels_weigh_both_signs():
    X, _ = rows()
    Y = np.random.default_rng(1).dirichlet([1, 1], size=60)
    mine, theirs = (OGD(each).fit(X, Y, classes=[0, 1]) for each in (HINGE, "hinge"))
    np.testing.assert_allclose(mine.coef_, theirs.coef_, rtol=1e-12)


@pytest.mark.parametrize("make", [LEARNERS["OGD"], LEARNERS["eager"], LEARNERS["EG"]], ids=["OGD", "eager", "EG"])
@pytest.mark.parametrize("order", ["random", "flipping"])
def test_regret_is_below_certificate_and_bound(make, order):
    """Pinball losses, whose slopes differ on both sides, on random and on alternating targets."""
    pinball = Custom("pinball", lambda z, y: max(0.9 * (y - z), 0.1 * (z - y)), lambda z, y: -0.9 if z < y else 0.1,
                     slope_bound=0.9)  # fmt: skip
    X, y = rows(300)
    y = y if order == "random" else np.where(np.arange(300) % 2, 3.0, -3.0)
    learner = make(pinball)
    z = learner.predict_then_learn(X, y)
    suffered = np.where(y > z, 0.9 * (y - z), 0.1 * (z - y)).sum()
    assert learner.total_loss_ == pytest.approx(suffered)
    domain = learner.competes_with.domain
    for u in np.random.default_rng(2).normal(size=(200, 3)):
        u = domain.project(3 * u)
        regret = suffered - np.where(y > X @ u, 0.9 * (y - X @ u), 0.1 * (X @ u - y)).sum()
        assert regret <= learner.regret_certificate() + 1e-9 <= learner.regret_bound() + 2e-9


@pytest.mark.slow
def test_the_best_in_hindsight_under_a_custom_loss():
    X, y = rows(100)
    for domain in (Ball(0.5), Simplex(1.0), WholeSpace()):
        for own, named in ((Custom("my squared", lambda z, y: (z - y) ** 2, lambda z, y: 2 * (z - y),
                                   curvature=lambda z, y: 2.0), "squared"),):  # fmt: skip
            mine = best_in_hindsight(X, y, own, domain, regularization=0.1)
            theirs = best_in_hindsight(X, y, named, domain, regularization=0.1)
            assert mine.loss == pytest.approx(theirs.loss, rel=1e-9)
            np.testing.assert_allclose(mine.w, theirs.w, atol=1e-4)
            assert mine.gap <= 1e-8 * (1 + mine.loss)
    with pytest.warns(Warning, match="gap"):  # no second derivative: slower, and the gap says how far it came
        rough = best_in_hindsight(X, y, PLAIN, Ball(0.5))
    exact = best_in_hindsight(X, y, "absolute", Ball(0.5))
    assert rough.loss - rough.gap <= exact.loss <= rough.loss + 1e-9


def test_a_model_file_has_the_name_only(tmp_path):
    X, y = rows()
    learner = OGD(PLAIN).fit(X, y)
    learner.save(tmp_path / "model.npz")
    again = regretless.load(tmp_path / "model.npz")
    assert again.loss is PLAIN
    assert np.array_equal(again.fit(X, y).coef_, learner.coef_)
    gone = Custom("soon gone", absolute, side)
    OGD(gone).fit(X, y).save(tmp_path / "gone.npz")
    del type(gone).announced["soon gone"]
    with pytest.raises(ValueError, match="'soon gone', which a program defines and no file contains: create it first"):
        regretless.load(tmp_path / "gone.npz")


def test_copies_pickles_and_names():
    X, y = rows()
    learner = OGD(PLAIN).fit(X, y)
    assert clone(learner).loss is PLAIN and copy.deepcopy(learner).loss is PLAIN
    again = pickle.loads(pickle.dumps(learner))
    assert np.array_equal(again.partial_fit(X, y).coef_, learner.partial_fit(X, y).coef_)
    assert loss("my absolute") is loss(PLAIN)
    assert np.array_equal(OGD("my compiled absolute").fit(X, y).coef_, OGD(COMPILED).fit(X, y).coef_)


def test_a_loss_that_fails_changes_nothing():
    X, y = rows()

    def fails(z: float, y: float) -> float:
        if y > 10:
            raise KeyError("no such target")
        return side(z, y)

    learner = OGD(Custom("fails", absolute, fails)).fit(X, y)
    before = learner.coef_.copy()
    with pytest.raises(KeyError, match="no such target") as error:
        learner.partial_fit(X, np.append(y[:-1], 11.0))
    assert "Nothing was learned from these 60 rows" in str(error.value.__notes__)
    assert np.array_equal(learner.coef_, before)
    learner.partial_fit(X, y)
    infinite = OGD(Custom("infinite", lambda z, y: math.inf if y > 10 else absolute(z, y), side)).fit(X, y)
    with pytest.raises(ValueError, match="'infinite' returned NaN or infinity"):
        infinite.learn_one(X[0], 11.0)
    infinite.learn_one(X[0], 1.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("hinge", hinge, hinge_slope), "name='hinge': give a name that no other loss has"),
        (("", hinge, hinge_slope), "name='': give a name"),
        (("x", hinge, hinge_slope, "ranking"), "kind='ranking': choose"),
        (("x", hinge, 3.0), "slope=3.0 must be a function of the score z"),
        (("x", hinge, lambda z, y: -hinge_slope(z, y), "margin"), "not convex in z, or slope is not its subgradient"),
        (("x", lambda z, y: -((z - y) ** 2), lambda z, y: -2 * (z - y)), "the loss is not convex in z"),
        (("x", hinge, hinge_slope, "margin", 0.5), "is beyond slope_bound=0.5"),
        (("x", hinge, hinge_slope, "margin", -1.0), "slope_bound=-1.0 must be a positive finite number"),
        (("x", hinge, hinge_slope, "margin", 1.0, 2.0), "curvature=2.0 must be a function"),
    ],
)
def test_bad_losses_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        Custom(*arguments)


def test_missing_constants_are_named():
    X, y = rows()
    with pytest.raises(ValueError, match="slope_bound of the loss 'my absolute, slopes unknown' is needed"):
        ExponentiatedGradient(FREE).fit(X, y)
    with pytest.raises(ValueError, match="unless its slopes are bounded: give its slope_bound"):
        OGD(FREE, radius=None, step=0.1).fit(X, y)
    with pytest.raises(ValueError, match="has no curvature: FTRL refits with second derivatives"):
        FTRL(FREE).fit(X, y)
    free = Custom("log cosh, slopes unknown", log_cosh, tanh, curvature=bend)
    learner = FTRL(free, radius=1.0).fit(X[:5], y[:5])
    with pytest.raises(NoBound, match="needs a bound on the slopes of 'log cosh, slopes unknown'"):
        learner.regret_bound()
    assert learner.regret_certificate() > 0
    with pytest.raises(ValueError, match="'my hinge' is for two classes, and there are 3"):
        OGD(HINGE).fit(X, np.arange(60) % 3)


def test_a_compiled_function_must_have_two_numbers():
    with pytest.raises(ValueError, match="does not compile as a function of two floats"):
        OGD(Custom("no number", njit(lambda z, y: "a"), njit(lambda z, y: "b"))).fit(*rows())
