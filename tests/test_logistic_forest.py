"""The Mondrian forest in OnlineLogisticRegression: against MondrianForest, and how it grows with rows and columns."""

from __future__ import annotations

import copy
import signal
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import regretless
from learners import assert_same_state
from logistic_reference import forest_member, play, some_rows
from regretless import MondrianForest, OnlineLogisticRegression
from regretless.core.numbers.tally import ROWS
from regretless.learners.logistic import forest, state
from regretless.learners.logistic.settings import Settings
from regretless.learners.trees.mondrian_tree import COUNTS

HIGH = Settings(effort="high")


def played(X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, Any]:
    """The forest's forecasts of a block, and the state; no other member plays, so the moments stay those of no row."""
    n, K = Y.shape
    found, out, done = state.start(X.shape[1], True, K, HIGH.members(X.shape[1], K)), np.empty((n, K)), 0
    seen = forest.known(found.moments)
    while done < n:
        done += forest.run(forest.forest_of(found), seen, X[done:], Y[done:], weight[done:], out[done:])
        if done < n:
            found = forest.with_room(found)
    return out, found


@pytest.mark.parametrize("K", [2, 3])
def test_the_member_is_a_mondrian_forest(K: int) -> None:
    X, y = some_rows(200, 4, K)
    rng = np.random.default_rng(5)
    Y = np.where(rng.random((200, 1)) < 0.3, rng.dirichlet(np.ones(K), size=200), np.eye(K)[y])
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], size=200)
    said, found = played(X, Y, weight)
    np.testing.assert_allclose(said, forest_member(X, Y, weight), rtol=0.0, atol=1e-12)
    alone = MondrianForest().partial_fit(X, Y, classes=range(K), sample_weight=weight)
    for name, array in alone.state_._asdict().items():
        np.testing.assert_allclose(getattr(found, f"forest_{name}"), array, rtol=0.0, atol=1e-12, err_msg=name)
    now = np.empty((5, K))
    forest.forecast_block(forest.forest_of(found), found.moments, X[:5], now)
    np.testing.assert_allclose(np.exp(now), alone.predict_proba(X[:5]), rtol=0.0, atol=1e-12)


def test_a_missing_value_is_the_mean_so_far_and_at_first_the_first_value() -> None:
    X, y = some_rows(150, 3, 2)
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:40, 1], X[:, 2] = np.nan, np.nan  # a column that starts late, far from 0, and one without values
    X[40:, 1] += 1e6
    filled = X.copy()
    for j in range(3):
        values = X[~np.isnan(X[:, j]), j]
        for t in np.flatnonzero(np.isnan(X[:, j])):
            before = X[:t, j][~np.isnan(X[:t, j])]
            filled[t, j] = before.mean() if before.size else values[0] if values.size else 0.0
    Y, weight = np.eye(2)[y], np.ones(150)
    said, found = played(X, Y, weight)
    np.testing.assert_allclose(said, forest_member(filled, Y, weight), rtol=0.0, atol=1e-9)
    lower = -found.forest_nodes[: int(found.forest_sizes.sum()), COUNTS + 3]  # ends of column 1
    assert (lower > 1e5).all()


@pytest.mark.parametrize("K", [2, 4])
def test_a_class_more_keeps_the_trees(K: int) -> None:
    X, y = some_rows(60, 3, K)
    before, after = HIGH.constants(3, K), HIGH.constants(3, K + 1)
    found = play(state.start(3, True, K, before.members), before, X, np.eye(K)[y])
    grown = state.add_class(found, before.members, after.members, X[:1])
    assert not grown.forest_nodes[:, COUNTS + K].any()
    assert np.array_equal(np.delete(grown.forest_nodes, COUNTS + K, axis=1), found.forest_nodes)
    again = play(grown, after, X[:20], np.eye(K + 1)[np.arange(20) % (K + 1)])
    forest.check(again, 80.0)
    assert again.forest_nodes[0, COUNTS + K] == 20 // (K + 1)


def some_people(n: int) -> tuple[list[dict[str, Any]], list[str]]:
    rng = np.random.default_rng(2)
    rows = [{"size": float(rng.normal()), "colour": str(rng.choice(list("abcd")[: 2 + i // 30]))} for i in range(n)]
    for i, row in enumerate(rows):
        if i % 9 == 8:
            row["size"] = None  # type: ignore[assignment]
        if i > 40:
            row["late"] = 2000.0 + float(rng.integers(0, 20))
    labels = ["yes" if abs(row["size"] or 0.0) > 0.7 else "no" for row in rows]
    labels[61::5] = ["new"] * len(labels[61::5])
    return rows, labels


@pytest.mark.parametrize("drift", ["none", "track"])
def test_rows_one_by_one_blocks_files_and_copies_are_the_same(drift: str) -> None:
    rows, labels = some_people(110)
    weight = np.random.default_rng(1).choice([0.0, 1.0, 2.0], size=110)
    weight[61:] = 1.0
    whole, blocks, single = (OnlineLogisticRegression(effort="high", drift=drift) for _ in range(3))
    p = whole.predict_then_learn(rows, labels, sample_weight=weight)
    assert np.isfinite(p).all()
    for i in range(0, 110, 13):
        some = slice(i, i + 13)
        blocks.partial_fit(rows[some], labels[some], sample_weight=weight[some])
        blocks = copy.deepcopy(type(blocks).from_bytes(blocks.to_bytes()))
    for row, label, each in zip(rows[:61], labels, weight, strict=False):
        single.partial_fit([row], [label], sample_weight=[each])
    for row, label in zip(rows[61:], labels[61:], strict=True):
        single.learn_one(row, label)
    assert_same_state(whole, blocks)
    assert_same_state(whole, single)
    state.check(whole.state_, whole._constants.members)
    assert whole.state_.forest_tally[ROWS] == np.count_nonzero(weight)
    assert whole.members_[-2] == "Mondrian forest, 10 trees"
    np.testing.assert_array_equal(whole.predict_proba(rows[:3]), [whole.predict_proba_one(row) for row in rows[:3]])


def test_it_helps_with_steps_along_the_columns() -> None:
    X = np.random.default_rng(0).uniform(size=(1500, 2))
    y = (np.floor(4.0 * X).sum(axis=1) % 2).astype(int)
    learner = OnlineLogisticRegression(effort="high", classes=[0, 1]).fit(X, y)
    losses = dict(zip(learner.members_, learner.state_.losses.tolist(), strict=True))
    smooth = min(loss for name, loss in losses.items() if "forest" not in name and "stack" not in name)
    assert losses["Mondrian forest, 10 trees"] < 1.2 * smooth
    assert learner.total_loss_ < 0.8 * smooth  # the stack combines the two


def test_the_table_grows_up_to_the_largest_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest, "MAX_NODES", 5)
    found = state.start(2, True, 2, HIGH.members(2, 2))
    assert forest.fits(found, 1) and not forest.fits(found, 2)
    found = forest.with_room(found)
    assert len(found.forest_nodes) == 50
    assert forest.fits(found, 10**6)


@pytest.mark.parametrize("verb", ["learn_one", "partial_fit"])
def test_ctrl_c_while_the_table_grows_leaves_a_row_whole(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = some_rows(40, 3, 2)
    calm, disturbed = (OnlineLogisticRegression(effort="high", classes=[0, 1]) for _ in range(2))
    larger, presses = forest.with_room, []

    def pressed(grown: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        presses.append(len(grown.forest_nodes))
        return larger(grown)

    for x, label in zip(X, y.tolist(), strict=True):
        given = (x, label) if verb == "learn_one" else ([x], [label])
        getattr(calm, verb)(*given)
        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            patch.setattr(forest, "with_room", pressed)
            getattr(disturbed, verb)(*given)
        assert_same_state(calm, disturbed)
    assert len(presses) >= 3


def test_wide_rows_have_no_forest_and_their_files_no_nodes(tmp_path: Any) -> None:
    X, y = some_rows(12, 200, 2)
    learner = OnlineLogisticRegression(effort="high").fit(X, y)
    assert not any("forest" in name for name in learner.members_)
    assert all(array.size == 0 for name, array in learner.state_._asdict().items() if name.startswith("forest_"))
    learner.save(tmp_path / "model")
    assert_same_state(regretless.load(tmp_path / "model"), learner)
    learner.state_ = learner.state_._replace(forest_nodes=np.empty((3, 0)))
    learner.save(tmp_path / "model")
    with pytest.raises(ValueError, match="forest_nodes has nodes of no tree"):
        regretless.load(tmp_path / "model")


def test_rows_that_grow_too_wide_lose_the_forest() -> None:
    X, y = some_rows(30, 112, 2)
    before, after = HIGH.constants(112, 2), HIGH.constants(120, 2)
    found = play(state.start(112, True, 2, before.members), before, X, np.eye(2)[y])
    assert len(found.forest_nodes)
    grown = state.add_columns(found, before.members, after.members, 120, np.full(8, 30.0))
    assert not grown.forest_nodes.size
    assert len(grown.losses) == len(grown.log_weight) == len(grown.stack_weights) == after.members.total
    state.check(grown, after.members)
    play(grown, after, np.hstack([X, np.ones((30, 8))]), np.eye(2)[y])
