"""MondrianForest against the sum over all prunings, its theorems on every pruning, full tables, and strange columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

import reference
from regretless import MondrianForest, NoBound
from regretless.learners.trees import mondrian_forest
from regretless.learners.trees.mondrian_forest import MEMORY, width, with_room
from regretless.theory.bounds import mondrian_constants, mondrian_pruning


def rows(n: int, d: int, K: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels that depend on thresholds, with some noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] > 0).astype(int) + (K > 2) * (X[:, -1] > 0.3)
    return X, np.where(rng.random(n) < 0.2, rng.integers(0, K, n), y)


def played(n: int, d: int, K: int, seed: int) -> tuple[MondrianForest, reference.ReferenceMondrianForest]:
    """A forest and its reference after the same rows."""
    X, y = rows(n, d, K, seed)
    learner = MondrianForest(n_estimators=2, random_state=seed).partial_fit(X, y, classes=range(K))
    slow = reference.ReferenceMondrianForest(2, None, None, seed, K)
    for x, label in zip(X, y, strict=True):
        slow.learn(x, np.eye(K)[label])
    return learner, slow


GAMES = [(16, 2, 2, 0), (16, 1, 3, 1), (14, 3, 2, 2), (16, 2, 3, 3)]


@pytest.mark.parametrize("kind", ["normal", "integers", "duplicates"])
def test_forecasts_are_the_sum_over_all_prunings(kind: str) -> None:
    X, y = rows(18, 2, 3, 5)
    if kind == "integers":
        X = np.round(2 * X)
    elif kind == "duplicates":
        X = np.repeat(X[:6], 3, axis=0)
    learner = MondrianForest(n_estimators=2, random_state=1)
    slow = reference.ReferenceMondrianForest(2, None, None, 1, 3)
    said = learner.predict_then_learn(X, y, classes=range(3))
    expected = []
    for x, label in zip(X, y, strict=True):
        expected.append(slow.forecast(x))
        slow.learn(x, np.eye(3)[label])
    np.testing.assert_allclose(said, expected, rtol=1e-9, atol=0.0)
    assert learner.n_nodes_.tolist() == [tree.size() for tree in slow.trees]
    assert learner.n_nodes_.min() > 5


@pytest.mark.parametrize("heaviest", [3.0, 200.0])
@pytest.mark.parametrize("soft", [False, True])
def test_weights_are_powers_of_the_probabilities(heaviest: float, soft: bool) -> None:
    """Also such that the powers are learned as logarithms."""
    X, y = rows(16, 2, 3, 4)
    rng = np.random.default_rng(0)
    Y = 0.7 * np.eye(3)[y] + 0.1 if soft else np.eye(3)[y]
    weight = rng.uniform(0.1, heaviest, size=16)
    learner = MondrianForest(n_estimators=2, random_state=1)
    slow = reference.ReferenceMondrianForest(2, None, None, 1, 3)
    for x, label, each in zip(X, Y, weight, strict=True):
        learner.partial_fit(x[None], label[None], classes=range(3), sample_weight=[each])
        slow.learn(x, label, each)
        np.testing.assert_allclose(learner.predict_proba(X[:4]), [slow.forecast(x) for x in X[:4]], rtol=1e-9, atol=0.0)
    best = [loss for loss, _ in slow.best_prunings()]
    assert learner.regret_certificate() == pytest.approx(learner.total_loss_ - np.mean(best), rel=1e-9)
    assert learner.n_nodes_.tolist() == [tree.size() for tree in slow.trees]
    learner._check_state()


@pytest.mark.parametrize("game", GAMES, ids=str)
def test_the_loss_of_a_tree_is_that_of_the_mixture_of_its_prunings(game: tuple[int, int, int, int]) -> None:
    learner, slow = played(*game)
    for tree, loss in zip(slow.trees, learner.state_.losses, strict=True):
        found = [(prior, sum(v.loss for v in leaves)) for prior, _, leaves in tree.prunings()]
        assert sum(prior for prior, _ in found) == pytest.approx(1.0, rel=1e-12)
        assert loss == pytest.approx(-math.log(sum(prior * math.exp(-L) for prior, L in found)), rel=1e-9)


def test_the_certificate_is_the_regret_against_the_best_prunings() -> None:
    for game in GAMES:
        learner, slow = played(*game)
        best = np.array(slow.best_prunings())
        regret = learner.total_loss_ - best[:, 0].mean()
        assert learner.regret_certificate() == pytest.approx(regret, abs=1e-9)
        each = [mondrian_pruning(game[0], n_leaves=int(m)) for m in best[:, 1]]
        assert regret <= learner.regret_bound() == pytest.approx(np.mean(each))


def test_the_bounds_hold_for_every_pruning() -> None:
    """Of the trees of the reference, some of which have splits above inner nodes."""
    raised = 0
    for n, d, K, seed in GAMES:
        learner, slow = played(n, d, K, seed)
        for tree, loss in zip(slow.trees, learner.state_.losses, strict=True):
            for prior, _, leaves in tree.prunings():
                m = len(leaves)
                assert -math.log(prior) <= mondrian_pruning(n, n_leaves=m) - math.log(2.0)  # of the cautious trees
                counts = np.array([v.counts() for v in leaves])
                best = -np.sum(counts * np.log(np.maximum(counts / counts.sum(axis=1, keepdims=True), 1e-300)))
                assert loss - best <= mondrian_constants(n, n_leaves=m, n_classes=K)
                raised = max([raised, *(v.above for v in leaves)])
    assert raised >= 2


@pytest.mark.parametrize("K", [2, 3, 4])
@pytest.mark.parametrize("s", [None, 0.5, 0.1])
def test_the_bound_of_constants_holds_for_all_counts(K: int, s: float | None) -> None:
    """The forecasts (n_k + s)/(n + K s) of one leaf, on every composition of n: their order does not matter."""
    a = 1 / K if s is None else s
    free = mondrian_pruning(1, n_leaves=1)  # one leaf: what remains bounds the constants
    for n in (1, 2, 7, 20):
        worst = -math.inf
        for some in itertools.product(range(n + 1), repeat=K - 1):
            if sum(some) > n:
                continue
            counts = [*some, n - sum(some)]
            loss = (
                math.lgamma(n + K * a) - math.lgamma(K * a) - sum(math.lgamma(c + a) - math.lgamma(a) for c in counts)
            )
            worst = max(worst, loss + sum(c * math.log(c / n) for c in counts if c))
        assert worst <= mondrian_constants(n, n_leaves=1, n_classes=K, dirichlet=s) - free


def test_the_bound_exists_for_the_rows_so_far() -> None:
    learner, _ = played(*GAMES[0])
    assert learner.regret_bound(16) == learner.regret_bound()
    with pytest.raises(NoBound, match="leave n out"):
        learner.regret_bound(1000)


def test_a_full_tree_keeps_learning() -> None:
    X, y = rows(400, 3, 3, 0)
    learner = MondrianForest(n_estimators=3, max_nodes=20).partial_fit(X[:200], y[:200], classes=range(3))
    assert learner.n_nodes_.tolist() == [19, 19, 19]  # a split adds two
    before = learner.predict_proba(X[:5])
    learner.partial_fit(X[200:], y[200:])
    assert learner.n_nodes_.tolist() == [19, 19, 19]
    assert learner.state_.nodes.nbytes == 3 * 20 * 8 * width(3, 3)
    assert not np.allclose(before, learner.predict_proba(X[:5]), atol=1e-3)
    assert learner.regret_certificate() <= learner.regret_bound()


def test_a_large_table_grows_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is copied where the memory behind it is in use, or at its end."""
    monkeypatch.setattr(mondrian_forest, "LARGE", 0)
    monkeypatch.setattr(mondrian_forest, "AHEAD", 4)
    first = with_room(np.ones((10, 5)), 2, 500)
    grown = with_room(first, 2, 500)
    grown[20:40] = 2.0
    largest = with_room(grown, 2, 500)
    assert [len(first), len(grown), len(largest)] == [20, 40, 80]
    assert np.shares_memory(first, grown) and np.shares_memory(grown, largest)
    assert np.array_equal(largest, np.repeat([[1.0], [0.0], [2.0], [0.0]], [10, 10, 20, 40], axis=0) * np.ones(5))
    for table in (first, largest):
        copied = with_room(table, 2, 500)
        assert not np.shares_memory(copied, table)
        assert np.array_equal(copied[: len(table)], table) and not copied[len(table) :].any()
    assert len(with_room(np.ones((900, 5)), 2, 500)) == 1000


@pytest.mark.parametrize(("d", "K"), [(16, 26), (2000, 200), (784, 10)])
def test_the_forest_fits_its_memory(d: int, K: int) -> None:
    learner = MondrianForest()
    most = learner._prepare(d, K).max_nodes
    assert 0.99 * MEMORY < most * learner.n_estimators * 8 * (2 * d + K + 14) <= MEMORY


def test_the_units_of_a_column_do_not_matter() -> None:
    X, y = rows(200, 3, 2, 1)
    said = MondrianForest().predict_then_learn(X, y)
    assert np.array_equal(said, MondrianForest().predict_then_learn(X * [2.0**40, 1.0, 2.0**-40], y))


def test_seeds_differ_and_trees_too() -> None:
    X, y = rows(100, 3, 2, 1)
    one, other = (MondrianForest(random_state=seed).partial_fit(X, y) for seed in (0, 1))
    assert len({*one.state_.losses.tolist(), *other.state_.losses.tolist()}) == 20


STRANGE: dict[str, Callable[[np.random.Generator], tuple[np.ndarray, int]]] = {
    "constant columns": lambda rng: (np.hstack([np.full((300, 3), 7.0), rng.normal(size=(300, 1))]), 3),
    "one distinct row": lambda rng: (np.full((300, 2), -1.5), 3),
    "two distinct values": lambda rng: (rng.integers(0, 2, (300, 2)) * 1.0, 3),
    "ranges of 1e9": lambda rng: (rng.normal(size=(300, 3)) * [1e9, 1.0, 1e-9], 3),
    "a far row": lambda rng: (np.vstack([rng.normal(size=(299, 2)), [[1e9, -1e9]]]), 3),
    "integer codes": lambda rng: (rng.integers(0, 10**6, (300, 2)) * 1.0, 3),
    "neighbouring numbers": lambda rng: (1.0 + rng.integers(0, 3, (300, 2)) * np.finfo(float).eps, 3),
    "duplicated rows": lambda rng: (np.repeat(rng.normal(size=(10, 3)), 30, axis=0), 3),
    "geometric": lambda rng: (2.0 ** np.arange(300)[:, None], 3),
    "200 classes": lambda rng: (rng.normal(size=(600, 3)), 200),
    "2000 columns": lambda rng: (rng.normal(size=(60, 2000)), 3),
}


@pytest.mark.parametrize("what", STRANGE)
@pytest.mark.filterwarnings("error")
def test_strange_columns_are_learned(what: str) -> None:
    rng = np.random.default_rng(0)
    X, K = STRANGE[what](rng)
    y = rng.integers(0, K, len(X))
    learner = MondrianForest()
    said = learner.predict_then_learn(X, y, classes=range(K))
    later = learner.predict_proba(np.vstack([X[:20], 3.0 * X[:20] + 1.0]))
    for p in (said, later):
        assert p.min() > 0.0
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert all(np.isfinite(array).all() for array in learner.state_)
    assert learner.regret_certificate() <= learner.regret_bound()
    learner._check_state()


def test_it_learns_what_no_linear_model_can() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(4000, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    p = MondrianForest().predict_then_learn(X, y)
    assert np.mean(p[2000:].argmax(axis=1) != y[2000:]) < 0.05


def test_noise_costs_little() -> None:
    """Labels that do not depend on the rows: the root is one of the prunings."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 4)), rng.integers(0, 2, 3000)
    learner = MondrianForest().partial_fit(X, y)
    assert learner.total_loss_ <= 3000 * math.log(2) + 12.0
