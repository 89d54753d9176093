"""Bandit learners: against their definitions, what they can know, their theorems, files, refusals; and play_bandit."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import regretless
from learners import make_stream, through_file, within
from reference.folklore import ReferenceFOLKLORE
from regretless import (
    AIOLI,
    FOLKLORE,
    FTRL,
    GAF,
    OGD,
    AggregatingForecaster,
    BadRow,
    BanditMulticlass,
    Banditron,
    BanditTrace,
    EpsilonGreedy,
    Gaptron,
    KernelAIOLI,
    Mixture,
    NoBound,
    Perceptron,
    StronglyConvexOGD,
    VovkAzouryWarmuth,
    best_in_hindsight,
    bounds,
    play_bandit,
)
from regretless.learners.bandits.learner import EXPLORED, EXPLORING, LEARNED
from regretless.theory.domains import RowBall

BASE = FOLKLORE(radius=2.0, feature_bound=1.0)
BANDITS: dict[str, Any] = {
    "theory": BanditMulticlass(BASE, n_classes=3, horizon=2000),
    "a number": BanditMulticlass(BASE, n_classes=3, exploration=0.4, random_state=5),
    "anytime": BanditMulticlass(BASE, n_classes=3, exploration="anytime"),
    "mixture": BanditMulticlass(Mixture([BASE, OGD()]), n_classes=3, exploration=0.5),
    "greedy": EpsilonGreedy(FOLKLORE(radius=2.0), 0.3, n_classes=3),
    "greedy perceptron": EpsilonGreedy(Perceptron(), 0.3, n_classes=3),
    "Banditron": Banditron(0.2, n_classes=3),
    "Gaptron": Gaptron(gamma=0.2, n_classes=3),
}
every_bandit = pytest.mark.parametrize("name", BANDITS)


def stream(n: int = 80, seed: int = 0, d: int = 3, K: int = 3) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_stream("iid", n, d, K, seed=seed)
    return within(X, 1.0), y


def game(learner: Any, X: np.ndarray, y: np.ndarray) -> list[tuple[Any, float]]:
    """Play, and say only right or wrong (the label too, to those of full information)."""
    played = []
    for x, label in zip(X, y, strict=True):
        action, probability = learner.act(x)
        learner.feedback(x, action, bool(action == label), *([label] if learner.needs_labels else []))
        played.append((action, probability))
    return played


def bits(learner: Any) -> bytes:
    """All that it has learned."""
    held = [bits(base) for base in getattr(learner, "estimators_", [])]
    held += [bits(learner.estimator_)] if hasattr(learner, "estimator_") else []
    return pickle.dumps(([array.tobytes() for array in learner.state_], held))


# ---------------------------------------------------------------------- the definitions


def algorithm_2(
    forecast: Callable[[list, np.ndarray], np.ndarray], gamma: Callable[[int], float], restart: Callable[[int], bool]
) -> Callable[..., list]:
    """FOLKLORE's Algorithm 2 as printed, with the random numbers of the class; `forecast` fits anew every round."""

    def run(X: np.ndarray, y: np.ndarray, seed: int, K: int) -> list[tuple[int, float, bool]]:
        lessons: list[tuple[np.ndarray, int]] = []
        played = []
        for t, (x, label) in enumerate(zip(X, y, strict=True)):
            lessons = [] if restart(t) else lessons
            rng = np.random.default_rng([seed, t])
            p = forecast(lessons, x)
            explores = rng.random() < gamma(t)
            if explores:
                guess = int(rng.integers(K))
                if guess == label:
                    lessons = [*lessons, (x, int(label))]
            else:
                u = rng.random()
                guess = next(k for k in range(K) if u < p[: k + 1].sum() or k == K - 1)
            played.append((guess, gamma(t) / K + (1 - gamma(t)) * p[guess], explores))
        return played

    return run


def never(t: int) -> bool:
    return False


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("gamma", [0.3, 1.0])
def test_algorithm_2(seed: int, gamma: float) -> None:
    X, y = stream(seed=seed)

    def forecast(lessons: list, x: np.ndarray) -> np.ndarray:
        fresh = clone(BASE).partial_fit(np.zeros((1, 3)), [0], classes=range(3), sample_weight=[0.0])
        for row, label in lessons:
            fresh.learn_one(row, label)
        return fresh.predict_proba_one(x)

    expected = algorithm_2(forecast, lambda t: gamma, never)(X, y, seed, 3)
    learner = BanditMulticlass(BASE, n_classes=3, exploration=gamma, random_state=seed)
    played = game(learner, X, y)
    assert [action for action, _ in played] == [guess for guess, _, _ in expected]
    np.testing.assert_allclose([p for _, p in played], [p for _, p, _ in expected], rtol=1e-12)
    right = [guess == label for (guess, _, _), label in zip(expected, y, strict=True)]
    assert learner.mistakes_ == 80 - sum(right)
    assert learner.state_.tally[EXPLORED] == sum(explores for _, _, explores in expected)
    assert learner.state_.tally[LEARNED] == sum(e and r for (_, _, e), r in zip(expected, right, strict=True))


def test_algorithm_2_with_the_reference_of_its_base() -> None:
    """The base by brute-force minimisation of its definition."""
    X, y = stream(n=25, d=2)

    def forecast(lessons: list, x: np.ndarray) -> np.ndarray:
        reference = ReferenceFOLKLORE(radius=2.0, feature_bound=1.0)
        for row, label in lessons:
            reference.learn(row, np.eye(3)[label])
        return softmax(reference.forecast(x))

    expected = algorithm_2(forecast, lambda t: 0.5, never)(X, y, 0, 3)
    played = game(BanditMulticlass(BASE, n_classes=3, exploration=0.5), X, y)
    assert [action for action, _ in played] == [guess for guess, _, _ in expected]
    np.testing.assert_allclose([p for _, p in played], [p for _, p, _ in expected], rtol=1e-9)


class Spy(FOLKLORE):
    """Writes down what it is taught."""

    lessons: list

    def _run(self, X: np.ndarray, Y: np.ndarray, weight: np.ndarray, out: np.ndarray) -> None:
        Spy.lessons.append((X[0].copy(), int(Y[0].argmax()), float(weight[0])))
        super()._run(X, Y, weight, out)


def test_the_base_learns_from_right_explorations_alone() -> None:
    X, y = stream(n=300)
    learner = BanditMulticlass(Spy(radius=2.0), n_classes=3, exploration=0.5)
    Spy.lessons, expected = [], []
    for x, label in zip(X, y, strict=True):
        action, _ = learner.act(x)
        if learner.state_.pending[EXPLORING] and action == label:
            expected.append((tuple(x), label, 1.0))
        learner.feedback(x, action, bool(action == label))
    assert [(tuple(x), k, w) for x, k, w in Spy.lessons] == expected
    assert 20 < len(expected) < 100
    assert learner.estimator_.state_.tally[0] == len(expected)


def test_greedy_learns_every_right_guess_by_its_weight() -> None:
    X, y = stream(n=200)
    learner = EpsilonGreedy(Spy(radius=2.0), 0.3, n_classes=3)
    Spy.lessons, expected = [], []
    for x, label in zip(X, y, strict=True):
        action, p = learner.act(x)
        best = learner.estimator_.predict_one(x)
        assert p == pytest.approx(0.1 + 0.7 * (action == best), rel=1e-15)
        if action == label:
            expected.append((tuple(x), label, 1 / p))
        learner.feedback(x, action, bool(action == label))
    assert [(tuple(x), k, w) for x, k, w in Spy.lessons] == expected
    fresh = FOLKLORE(radius=2.0).partial_fit(np.zeros((1, 3)), [0], classes=range(3), sample_weight=[0.0])
    for x, label, weight in expected:
        fresh.partial_fit([x], [label], sample_weight=[weight])
    assert pickle.dumps([a.tobytes() for a in fresh.state_]) == pickle.dumps(
        [a.tobytes() for a in learner.estimator_.state_]
    )


@pytest.mark.parametrize("gamma", [0.0, 0.2, 1.0])
def test_banditron(gamma: float) -> None:
    X, y = stream(n=150)
    W = np.zeros((3, 3))
    learner = Banditron(gamma, n_classes=3, random_state=7)
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        rng = np.random.default_rng([7, t])
        best = int(np.argmax(W @ x))
        P = np.full(3, gamma / 3) + (1 - gamma) * np.eye(3)[best]
        guess = int(rng.integers(3)) if rng.random() < gamma else best
        action, p = learner.act(x)
        assert action == guess
        assert p == pytest.approx(P[guess], rel=1e-15)
        learner.feedback(x, action, bool(action == label))
        for r, j in itertools.product(range(3), range(3)):
            W[r, j] += x[j] * ((guess == label) * (guess == r) / P[r] - (best == r) if P[r] else -(best == r))
        np.testing.assert_allclose(learner.coef_, W, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("information", ["full", "bandit"])
def test_gaptron(information: str) -> None:
    X, y = stream(n=400)
    W, gamma, full = np.zeros((3, 3)), 0.1, information == "full"
    eta = np.log(2) / (2 * 3 * 1.5**2) * (1.0 if full else 0.1)
    learner = Gaptron(information, gamma, feature_bound=1.5, n_classes=3, random_state=2)
    gaps = []
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        rng = np.random.default_rng([2, t])
        sigma = softmax(W @ x)
        best = int(np.argmax(sigma))
        gap = 1 - (sigma[best] >= 0.5) * sigma[best]
        gaps.append(gap)
        a = gap if full else max(gap, gamma)
        P = np.full(3, a / 3) + (1 - a) * np.eye(3)[best]
        guess = int(rng.integers(3)) if rng.random() < a else best
        action, p = learner.act(x)
        assert action == guess
        assert p == pytest.approx(P[guess], rel=1e-12)
        np.testing.assert_allclose(learner.state_.x, x)
        learner.feedback(x, action, bool(action == label), *([label] if full else []))
        scale = 1.0 if full else (guess == label) / P[guess]
        W -= eta * scale * np.outer(sigma - np.eye(3)[label], x) / np.log(2)
        np.testing.assert_allclose(learner.coef_, W, rtol=1e-9, atol=1e-13)
    assert not full or min(gaps) < 1.0


# ---------------------------------------------------------------------- what they can know


@every_bandit
def test_wrong_labels_are_all_the_same(name: str) -> None:
    """Whatever the label was where a guess was wrong, the game is the same, to the bit."""
    X, y = stream(n=120)
    learner, other = clone(BANDITS[name]), clone(BANDITS[name])
    played = game(learner, X, y)
    actions = np.array([action for action, _ in played])
    changed = np.where(actions == y, y, (3 - y - actions) % 3)
    assert (changed != y).sum() > 20
    assert game(other, X, changed) == played
    assert bits(learner) == bits(other)


@every_bandit
def test_probabilities_are_those_of_the_actions(name: str) -> None:
    X, y = stream(n=30)
    learner = clone(BANDITS[name])
    game(learner, X, y)
    before = bits(learner)
    x = np.array([0.3, -0.2, 0.5])
    p = learner.probabilities(x)
    assert p.sum() == pytest.approx(1.0, rel=1e-14)
    assert bits(learner) == before
    counts = np.zeros(3)
    kept = pickle.dumps(learner)
    for seed in range(600):
        again = pickle.loads(kept)
        again._seed = seed
        action, probability = again.act(x)
        counts[action] += 1
        assert probability == pytest.approx(p[action], rel=1e-14)
    np.testing.assert_allclose(counts / 600, p, atol=4 * 0.5 / math.sqrt(600))


def test_draws_do_not_depend_on_labels_or_names() -> None:
    X, y = stream(n=60)
    words = np.array(["c", "a", "b"])
    learner, named = (BanditMulticlass(BASE, exploration=0.4, **k) for k in ({"n_classes": 3}, {"classes": words}))
    played, said = game(learner, X, y), game(named, X, words[y])
    assert [words[action] for action, _ in played] == [action for action, _ in said]
    assert bits(learner) == bits(named)


# ---------------------------------------------------------------------- theorems

RIGHT = FOLKLORE(radius=1.0, feature_bound=1.0, regularization=0.7)


def against_the_base(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Fixed in advance: every fifth label is the one a base that sees all labels thinks least likely."""
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(n), rng.choice([-1.0, 1.0], size=n)]) / math.sqrt(2)
    y = np.zeros(n, dtype=int)
    spoilt = clone(RIGHT).partial_fit(np.zeros((1, 2)), [0], classes=[0, 1], sample_weight=[0.0])
    for t in range(n):
        if t % 5 == 0:
            y[t] = int(np.argmin(spoilt.predict_proba_one(X[t])))
        spoilt.learn_one(X[t], y[t])
    return X, y


def softmax_stream(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.argmax(X @ np.array([[4.0, -4.0], [2.0, -2.0]]) + rng.gumbel(size=(n, 2)), axis=1)


def assert_mean_below(mistakes: list[int], bound: float, n: int) -> None:
    """With three standard errors to spare; and the bound says something."""
    assert np.mean(mistakes) + 3 * np.std(mistakes, ddof=1) / math.sqrt(len(mistakes)) <= bound
    assert bound < 0.97 * n


@pytest.mark.slow
@pytest.mark.parametrize("make", [softmax_stream, against_the_base])
def test_expected_mistakes_of_algorithm_2(make: Callable[[int], tuple[np.ndarray, np.ndarray]]) -> None:
    n = 600
    X, y = make(n)
    comparator = best_in_hindsight(X, y, loss="softmax", domain=RowBall(1.0), classes=[0, 1])
    mistakes = []
    for seed in range(15):
        learner = BanditMulticlass(RIGHT, n_classes=2, horizon=n, random_state=seed)
        game(learner, X, y)
        mistakes.append(learner.mistakes_)
    bound = learner.mistake_bound(comparator.loss)
    R = learner.estimator_.regret_bound(n)
    assert bound == pytest.approx(comparator.loss + 2 * math.sqrt(2 * n * R))
    assert bound == pytest.approx(bounds.bandit(n, n_classes=2, regret=R, comparator_loss=comparator.loss))
    assert_mean_below(mistakes, bound, n)


@pytest.mark.slow
def test_expected_mistakes_of_the_linear_ones() -> None:
    """Two classes that a margin separates: the bounds are then informative after a few hundred rounds."""
    n = 500
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    X = np.column_stack([2.0 * y - 1, np.zeros(n)])
    banditron, gaptron, full = [], [], []
    for seed in range(6):
        learners = (
            Banditron(0.1, n_classes=2, random_state=seed),
            Gaptron(gamma=0.1, n_classes=2, random_state=seed),
            Gaptron("full", n_classes=2, random_state=seed),
        )
        for learner, found in zip(learners, (banditron, gaptron, full), strict=True):
            game(learner, X, y)
            found.append(learner.mistakes_)
    U = np.array([[-1.0, 0.0], [1.0, 0.0]])  # margin 2 s for weights s U, of norm s sqrt 2
    assert_mean_below(banditron, learners[0].mistake_bound(0.0, 0.5 * math.sqrt(2), 1.0, n), n)
    for found, learner in ((gaptron, learners[1]), (full, learners[2])):
        s = 1.4
        loss = -np.log(softmax(s * X @ U.T, axis=1)[np.arange(n), y]).sum()
        bound = learner.mistake_bound(loss, s * math.sqrt(2))
        assert_mean_below(found, bound, n)
    assert np.mean(full) < np.mean(gaptron) < n / 4


@pytest.mark.slow
def test_expected_mistakes_of_greedy() -> None:
    """(L + the base's certificate)/ln 2 + epsilon n, in the mean."""
    n, epsilon = 300, 0.2
    y = np.random.default_rng(0).integers(2, size=n)
    X = np.column_stack([2.0 * y - 1, np.zeros(n)])
    comparator = best_in_hindsight(X, y, loss="softmax", domain=RowBall(2.0), classes=[0, 1])
    above = []
    for seed in range(20):
        learner = EpsilonGreedy(FOLKLORE(radius=2.0), epsilon, n_classes=2, random_state=seed)
        game(learner, X, y)
        price = (comparator.loss + learner.estimator_.regret_certificate()) / math.log(2) + epsilon * n
        assert price < n
        above.append(learner.mistakes_ - price)
    assert np.mean(above) + 3 * np.std(above, ddof=1) / math.sqrt(20) <= 0


@pytest.mark.parametrize("K", [2, 3, 5, 20, 1000])
def test_the_inequalities_of_gaptrons_proof(K: int) -> None:
    """The chance of a mistake plus the price of the step is at most the loss in bits, row by row."""
    for gamma in (0.0, 1e-6, 1e-3, 0.01, 0.1, 0.25, 1 / (2 * K), 0.5, 0.51, 1.0):
        f = 0.5 if gamma == 0 else 0.5 * min(gamma, 1 / (2 * K))  # eta = f ln 2 / (K R^2)
        for p in np.concatenate([np.linspace(1 / K, 1, 400)[:-1], 1 - np.geomspace(1e-12, 0.5, 200)]):
            gap = 1 - p if p >= 0.5 else 1.0
            for right in (True, False):
                if right:
                    label = np.array([p])
                else:
                    label = np.minimum(1 - p, p) * np.array([1.0, 0.5, 1e-3, 1e-9])
                loss = -np.log2(label)
                square = 2 * (1 - label) ** 2 / np.log(2) ** 2  # |g|^2 / R^2 at most
                P = 1.0 if gamma == 0 else (1 - max(gap, gamma)) * right + max(gap, gamma) / K
                price = f * np.log(2) / K / 2 * square / P
                mistake = (1 - gap) * (not right) + gap * (1 - 1 / K)
                assert (mistake + price <= loss * (1 + 1e-9)).all(), (gamma, p, right)


def test_the_theorys_gamma() -> None:
    learner = BanditMulticlass(RIGHT, n_classes=2, horizon=10_000)
    learner.act([0.1, 0.2])
    R = clone(RIGHT).fit([[0.0, 0.0]], [0], classes=[0, 1]).regret_bound(10_000)
    assert learner.exploration_ == pytest.approx(math.sqrt(2 * R / 10_000), rel=1e-14)
    short = BanditMulticlass(RIGHT, n_classes=2, horizon=3)
    short.act([0.1, 0.2])
    assert short.exploration_ == 1.0
    assert short.mistake_bound(0.0, n=3) == 3.0


def test_epochs_double_and_restart() -> None:
    X, y = softmax_stream(70)
    learner = BanditMulticlass(RIGHT, n_classes=2, exploration="anytime")
    price, begun = 0.0, 0
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        action, _ = learner.act(x)
        length = 2 ** int(math.log2(t + 1))
        if t + 1 == length:
            begun = t
            assert learner.estimator_.state_.tally[0] == 0
        R = learner.estimator_.regret_bound(length)
        assert learner.exploration_ == min(1.0, math.sqrt(2 * R / length))
        learner.feedback(x, action, bool(action == label))
        if t + 2 == 2 * length:
            price += min(length, 2 * math.sqrt(2 * length * R))
    assert begun == 63
    assert learner.mistake_bound(10.0, n=63) == pytest.approx(min(63, 10 + price))

    R = clone(learner.estimator_).fit([[0.0, 0.0]], [0], classes=[0, 1]).regret_bound
    n, K = 2**14 - 1, 2
    price = sum(min(2**i, 2 * math.sqrt(K * 2**i * R(2**i))) for i in range(14))
    assert learner.mistake_bound(0.0, n=n) == pytest.approx(price)
    assert price < 6.83 * math.sqrt(K * 2**13 * R(2**13)) < n
    assert learner.mistake_bound(1e9, n=n) == n


@pytest.mark.parametrize(
    "base",
    [
        FOLKLORE(),
        OGD(),
        AggregatingForecaster(),
        FTRL(radius=1.0),
        Mixture([RIGHT, FOLKLORE(radius=1.0)]),
        StronglyConvexOGD(loss="logistic", radius=1.0),
    ],
    ids=lambda base: type(base).__name__,
)
@pytest.mark.parametrize("exploration", ["theory", "anytime"])
def test_a_bound_that_reads_the_rows_is_no_theory(base: Any, exploration: str) -> None:
    learner = BanditMulticlass(base, n_classes=2, exploration=exploration, horizon=100)
    with pytest.raises(ValueError, match=r"before the first row.*set exploration to a number"):
        learner.act([0.1])
    assert vars(learner) == vars(BanditMulticlass(base, n_classes=2, exploration=exploration, horizon=100))
    number = BanditMulticlass(base, n_classes=2, exploration=0.5)
    game(number, np.ones((4, 1)), np.ones(4))
    with pytest.raises(NoBound):
        number.mistake_bound(0.0)


@pytest.mark.parametrize(
    "base",
    [
        AIOLI(radius=1.0, feature_bound=1e-5),
        OGD(radius=1.0, gradient_bound=1.0),
        Mixture([RIGHT, clone(RIGHT).set_params(radius=0.5, regularization=1.0)]),
    ],
)
def test_bounds_that_are_declared_are_theory(base: Any) -> None:
    learner = BanditMulticlass(base, n_classes=2, horizon=10**6)
    learner.act([1e-5])
    assert 0 < learner.exploration_ < 0.2


# ---------------------------------------------------------------------- files and copies


@every_bandit
@pytest.mark.parametrize("open_round", [False, True])
def test_resuming_is_one_run(name: str, open_round: bool, tmp_path: Path) -> None:
    X, y = stream(n=60)
    whole = clone(BANDITS[name])
    played = game(whole, X, y)
    learner = clone(BANDITS[name])
    game(learner, X[:25], y[:25])
    if open_round:
        action, p = learner.act(X[25])
        assert (action, p) == played[25]
        learner = through_file(learner, tmp_path)
        learner.feedback(X[25], action, bool(action == y[25]))
    else:
        learner = through_file(learner, tmp_path)
    start = 25 + open_round
    assert game(learner, X[start:], y[start:]) == played[start:]
    assert bits(learner) == bits(whole)
    learner.save(tmp_path / "one.npz")
    whole.save(tmp_path / "other.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "other.npz").read_bytes()


def test_gaptron_of_full_information_resumes(tmp_path: Path) -> None:
    X, y = stream(n=40)
    whole, learner = Gaptron("full", classes=[0, 1, 2]), Gaptron("full", classes=[0, 1, 2])
    played = game(whole, X, y)
    game(learner, X[:10], y[:10])
    learner = through_file(learner, tmp_path)
    assert learner.needs_labels
    assert game(learner, X[10:], y[10:]) == played[10:]


def test_nothing_to_save(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not fitted"):
        BANDITS["theory"].save(tmp_path / "model.npz")


@every_bandit
def test_clones_know_nothing(name: str) -> None:
    X, y = stream(n=20)
    learner = clone(BANDITS[name])
    given = learner.get_params(deep=False)
    game(learner, X, y)
    fresh = clone(learner)
    assert not hasattr(fresh, "state_")
    assert learner.get_params(deep=False) == given
    for key, value in fresh.get_params(deep=False).items():
        assert key == "estimator" or value == given[key]
    assert game(fresh, X, y) == game(clone(BANDITS[name]), X, y)
    if "estimator" in given:
        assert not hasattr(given["estimator"], "state_")
        if not isinstance(given["estimator"], Perceptron | Mixture):
            fresh.set_params(estimator__radius=3.0)
            assert clone(fresh).estimator.radius == fresh.get_params()["estimator__radius"] == 3.0


def test_a_running_game_keeps_its_parameters() -> None:
    X, y = stream(n=64)
    learner = clone(BANDITS["anytime"])
    game(learner, X[:20], y[:20])
    learner.set_params(estimator=AIOLI(), exploration=0.9, random_state=8)
    game(learner, X[20:], y[20:])
    whole = clone(BANDITS["anytime"])
    game(whole, X, y)
    assert bits(learner) == bits(whole)


# ---------------------------------------------------------------------- refusals


@every_bandit
def test_a_round_is_an_act_and_its_feedback(name: str) -> None:
    X, y = stream(n=10)
    learner = clone(BANDITS[name])
    with pytest.raises(ValueError, match="call act"):
        learner.feedback(X[0], 0, True)
    with pytest.raises(NotFittedError):
        learner.mistakes_  # noqa: B018
    with pytest.raises(NotFittedError):
        learner.probabilities(X[0])
    game(learner, X, y)
    with pytest.raises(ValueError, match="call act"):
        learner.feedback(X[0], 0, True)
    action, _ = learner.act(X[0])
    before = bits(learner)
    for call, words in (
        (lambda: learner.act(X[0]), "no feedback yet"),
        (lambda: learner.feedback(X[1], action, True), "not the row"),
        (lambda: learner.feedback(X[0][:2], action, True), "shape"),
        (lambda: learner.feedback(X[0], (action + 1) % 3, True), "was not played"),
        (lambda: learner.feedback(X[0], "seven", True), "was not played"),
        (lambda: learner.feedback(X[0], [0], True), "was not played"),
        (lambda: learner.feedback(X[0], action, None), "True or False"),
        (lambda: learner.feedback(X[0], action, y[0]), "True or False"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
        assert bits(learner) == before
    learner.feedback(list(X[0]), action, np.bool_(False))
    assert learner.rounds_ == 11


@every_bandit
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_bad_rows_change_nothing(name: str, value: float) -> None:
    X, y = stream(n=10)
    for learner in (clone(BANDITS[name]), clone(BANDITS[name])):
        fresh = learner.get_params(deep=False)
        with pytest.raises(BadRow):
            learner.act([0.1, value, 0.2])
        assert vars(learner) == fresh
        game(learner, X, y)
        before = bits(learner)
        for bad in ([0.1, value, 0.2], [0.1], X[:2]):
            with pytest.raises(BadRow):
                learner.act(bad)
            assert bits(learner) == before
        learner.act(X[0])


def test_bad_parameters() -> None:
    x = [0.5]
    for learner, words in (
        (BanditMulticlass(RIGHT), "n_classes or classes"),
        (BanditMulticlass(RIGHT, n_classes=1), "integer >= 2"),
        (BanditMulticlass(RIGHT, n_classes=3, classes=[0, 1]), "leave one of them out"),
        (BanditMulticlass(RIGHT, classes=[0, 0]), "twice"),
        (BanditMulticlass(RIGHT, n_classes=2), "needs the number of rounds"),
        (BanditMulticlass(RIGHT, n_classes=2, horizon=0), "horizon=0"),
        (BanditMulticlass(RIGHT, n_classes=2, exploration=0.0), "above 0"),
        (BanditMulticlass(RIGHT, n_classes=2, exploration=1.1), "above 0"),
        (BanditMulticlass(RIGHT, n_classes=2, exploration="most"), "is unknown"),
        (BanditMulticlass(RIGHT, n_classes=2, exploration=0.1, random_state=-1), "random_state"),
        (BanditMulticlass(VovkAzouryWarmuth(), n_classes=2, exploration=0.1), "classifier of regretless"),
        (BanditMulticlass(OGD(loss="squared"), n_classes=2, exploration=0.1), "classifier of regretless"),
        (BanditMulticlass(Perceptron(), n_classes=2, exploration=0.1), "probabilities"),
        (BanditMulticlass(AIOLI(), n_classes=3, exploration=0.1), "Only binary"),
        (BanditMulticlass(FOLKLORE(radius=-1.0), n_classes=3, exploration=0.1), "radius"),
        (BanditMulticlass(GAF(feature_bound=1.0), n_classes=5, horizon=100), "exact expectations"),
        (EpsilonGreedy(RIGHT, 1.5, n_classes=2), "from 0 to 1"),
        (EpsilonGreedy(RIGHT, 1e-13, n_classes=2), "so small"),
        (EpsilonGreedy(OGD(loss="squared"), n_classes=2), "classifier of regretless"),
        (Banditron(-0.1, n_classes=2), "gamma"),
        (Banditron(1.1, n_classes=2), "probability"),
        (Banditron(1e-13, n_classes=2), "so small"),
        (Gaptron("some", n_classes=2), "information"),
        (Gaptron(gamma=0.0, n_classes=2), "gamma"),
        (Gaptron(gamma=1.1, n_classes=2), "gamma"),
        (Gaptron(gamma=1e-13, n_classes=2), "gamma"),
        (Gaptron(feature_bound=0.0, n_classes=2), "feature_bound"),
        (Gaptron(feature_bound=1e80, n_classes=2), "floating point"),
    ):
        before = dict(vars(learner))
        with pytest.raises(ValueError, match=words):
            learner.act(x)
        assert vars(learner) == before


def test_labels_are_for_full_information() -> None:
    full, bandit = Gaptron("full", n_classes=2), Gaptron(n_classes=2)
    for learner in (full, bandit):
        action, _ = learner.act([0.5])
    with pytest.raises(ValueError, match="needs the true label"):
        full.feedback([0.5], action, True)
    with pytest.raises(ValueError, match="not one of the classes"):
        full.feedback([0.5], action, False, 7)
    with pytest.raises(ValueError, match="but label="):
        full.feedback([0.5], action, False, action)
    with pytest.raises(ValueError, match="never sees"):
        bandit.feedback([0.5], action, True, action)
    with pytest.raises(BadRow, match="feature_bound"):
        Gaptron(n_classes=2).act([1.5])
    assert full.rounds_ == bandit.rounds_ == 0


def test_bounds_refuse() -> None:
    learner = BanditMulticlass(RIGHT, n_classes=2, exploration=0.5)
    learner.act([0.5])
    with pytest.raises(NoBound, match="comparator_loss"):
        learner.mistake_bound(math.nan)
    never_explores = Banditron(0.0, n_classes=2)
    never_explores.act([0.5])
    with pytest.raises(NoBound, match="never explores"):
        never_explores.mistake_bound(0.0, 1.0, 1.0, 10)


# ---------------------------------------------------------------------- play_bandit


def test_play_counts() -> None:
    X, y = stream(n=150)
    learners = {name: clone(learner) for name, learner in BANDITS.items()} | {"full": Gaptron("full", n_classes=3)}
    traces = play_bandit(learners, X, y, checkpoints=[10, 100], progress=False)
    for name, trace in traces.items():
        alone = Gaptron("full", n_classes=3) if name == "full" else clone(BANDITS[name])
        played = game(alone, X, y)
        actions = np.array([action for action, _ in played])
        assert bits(alone) == bits(learners[name])
        assert trace.rounds.tolist() == [10, 100, 150]
        assert trace.mistakes.tolist() == [int((actions != y)[:t].sum()) for t in (10, 100, 150)]
        assert trace.mistakes[-1] == learners[name].mistakes_
        assert np.array_equal(trace.actions, actions)
        assert np.array_equal(trace.correct, actions == y)
        assert trace.probabilities.tolist() == [p for _, p in played]
        assert trace.told == (name == "full")
    frame = traces.to_frame()
    assert len(frame) == 3 * len(traces)
    assert frame[frame.learner == "Banditron"].mistakes.tolist() == traces["Banditron"].mistakes.tolist()


def test_relative_mistakes_and_bound(tmp_path: Path) -> None:
    X, y = stream(n=120)
    trace = play_bandit(clone(BANDITS["theory"]), X, y, checkpoints=[1, 40, 120])
    assert isinstance(trace, BanditTrace)
    best = best_in_hindsight(X, y, loss="softmax", domain=RowBall(2.0), classes=[0, 1, 2])
    assert trace.relative_mistakes[-1] == pytest.approx(trace.mistakes[-1] - best.loss, abs=1e-6)
    assert trace.rounds[0] == 1
    assert trace.rounds[-1] == 120
    game_of = clone(BANDITS["theory"])
    game(game_of, X, y)
    assert trace.bound[-1] == game_of.mistake_bound(0.0)
    document = json.loads(trace.to_json(tmp_path / "trace.json"))
    assert document == json.loads((tmp_path / "trace.json").read_text())
    assert document["checkpoints"]["mistakes"] == trace.mistakes.tolist()
    assert document["checkpoints"]["bound"][-1] == trace.bound[-1]
    other = play_bandit({"b": Banditron(n_classes=3)}, X, y, domain=RowBall(2.0), checkpoints=[1, 120])
    assert other["b"].relative_mistakes[-1] == pytest.approx(other["b"].mistakes[-1] - best.loss, abs=1e-6)
    assert json.loads(other.to_json(tmp_path / "t.json"))["b"]["checkpoints"]["bound"][-1] is None
    wide = play_bandit(clone(BANDITS["theory"]), X, y, domain=RowBall(9.0), checkpoints=[1, 120])
    assert np.isnan(wide.bound).all()


def test_comparators_see_rows_as_the_base_does() -> None:
    X, y = stream(n=60, K=2)
    base = KernelAIOLI(radius=2.0, approximation="random-features", budget=8)
    learner = BanditMulticlass(base, n_classes=2, exploration=0.5)
    trace = play_bandit(learner, X, y, checkpoints=[60], progress=False)
    sight = learner.estimator_.for_comparators(X)
    competition = learner.competes_with
    best = best_in_hindsight(sight, y, loss=competition.loss, domain=competition.domain, classes=[0, 1])
    assert trace.relative_mistakes[-1] == pytest.approx(trace.mistakes[-1] - best.loss, abs=1e-6)


def test_going_on_sparse_rows_and_other_learners() -> None:
    X, y = stream(n=60)
    words = np.array(["no", "yes", "perhaps"], dtype=object)
    once, twice = (Banditron(0.3, classes=words) for _ in range(2))
    whole = play_bandit(once, X, words[y], progress=False)
    first = play_bandit(twice, X[:30], words[y[:30]], progress=False)
    second = play_bandit(twice, sparse.csr_matrix(X[30:]), words[y[30:]].tolist(), progress=False)
    assert whole.mistakes[-1] == first.mistakes[-1] + second.mistakes[-1]
    assert bits(once) == bits(twice)

    class Stubborn:
        told: list = []

        def act(self, x: np.ndarray) -> tuple[int, float]:
            return 1, 1.0

        def feedback(self, x: np.ndarray, action: int, correct: bool) -> None:
            self.told.append(correct)

    trace = play_bandit(Stubborn(), X, y, progress=False)
    assert trace.mistakes[-1] == (y != 1).sum()
    assert Stubborn.told == (y == 1).tolist()
    with pytest.raises(ValueError, match="need comparators"):
        trace.relative_mistakes  # noqa: B018
    assert "relative_mistakes" not in trace.to_frame()


@pytest.mark.slow
def test_pictures() -> None:
    pytest.importorskip("matplotlib")
    X, y = stream(n=40)
    one = play_bandit(clone(BANDITS["theory"]), X, y, progress=False)
    assert len(one.plot()) == 2
    two = play_bandit({"Banditron": Banditron(n_classes=3), "greedy": clone(BANDITS["greedy"])}, X, y, progress=False)
    assert len(two.plot()) == 1
    labels = [text.get_text() for text in two.plot()[0].figure.legends[0].get_texts()]
    assert labels == ["Banditron", "greedy"]


def test_play_refuses() -> None:
    X, y = stream(n=10)
    with pytest.raises(ValueError, match="at least one learner"):
        play_bandit({}, X, y)
    with pytest.raises(ValueError, match="does not implement act"):
        play_bandit(AIOLI(), X, y)
    with pytest.raises(ValueError, match="one label per row"):
        play_bandit(Banditron(n_classes=3), X, y[:5])
    with pytest.raises(ValueError, match="one label per row"):
        play_bandit(Banditron(n_classes=3), X[:0], y[:0])
    with pytest.raises(BadRow, match="row 4: label 3"):
        play_bandit(Banditron(n_classes=3), X, np.where(np.arange(10) == 4, 3, y))


def test_public_names() -> None:
    assert {"BanditMulticlass", "EpsilonGreedy", "Banditron", "Gaptron", "play_bandit"} <= set(regretless.__all__)


@pytest.mark.slow
@pytest.mark.parametrize("K", [2, 3])
def test_the_reduction_over_the_aggregating_forecaster(K: int) -> None:
    """Theorem 9 over Foster et al.: exploration by its bound, which needs the largest row in advance."""
    X = np.sin(np.arange(60.0))[:, None]
    y = np.digitize(X[:, 0], [-0.3, 0.3] if K == 3 else [0.0])
    base = AggregatingForecaster(radius=2.0, feature_bound=1.0)
    found = {}
    for exploration in ("theory", "anytime"):
        learner = BanditMulticlass(base, n_classes=K, exploration=exploration, horizon=60)
        for x, label in zip(X, y, strict=True):
            action, _ = learner.act(x)
            learner.feedback(x, action, bool(action == label))
        assert learner.mistakes_ <= learner.mistake_bound(60 * np.log(K)) <= 60
        found[exploration] = learner
    regret = bounds.aggregating(60, n_features=1, n_classes=K, radius=2.0, feature_bound=1.0)
    gamma = min(1.0, np.sqrt(K * regret / 60))
    assert found["theory"].exploration_ == pytest.approx(gamma, rel=1e-12)
    regret = bounds.aggregating(32, n_features=1, n_classes=K, radius=2.0, feature_bound=1.0)  # rounds 32 to 63
    assert found["anytime"].exploration_ == pytest.approx(min(1.0, np.sqrt(K * regret / 32)), rel=1e-12)
    with pytest.raises(ValueError, match="feature_bound"):
        BanditMulticlass(AggregatingForecaster(radius=2.0), n_classes=K, horizon=60).act(X[0])
    with pytest.raises(BadRow, match="feature_bound"):
        found["theory"].act([1.5])
