"""Random runs of OnlineLogisticRegression and OnlineBoosting: cuts, rows that add nothing, features of any scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from regretless import OnlineBoosting, OnlineLogisticRegression, load
from regretless.learners.logistic import members

pytestmark = pytest.mark.slow

CATEGORIES = ["a", "b", "c", "d", "e", 3.5]


def some_column(rng: np.random.Generator, n: int, holes: bool) -> list[Any]:
    """Numbers, text, or nothing, some of it missing or wrong."""
    kind = rng.integers(4)
    if kind == 0:
        values: list[Any] = rng.choice(CATEGORIES[: rng.integers(1, 6)], n).tolist()
    elif kind == 1 and holes:
        values = [CATEGORIES[rng.integers(len(CATEGORIES))] if rng.random() < 0.9 else 1e200 for _ in range(n)]
    else:
        values = (10.0 ** rng.integers(-3, 4) * rng.normal(size=n)).tolist()
    if holes:
        rate = rng.choice([0.0, 0.2, 0.9])
        lost = rng.random(n) < rate
        if rng.random() < 0.3:
            lost[: rng.integers(n + 1)] = True
        values = [None if gone else value for gone, value in zip(lost, values, strict=True)]
    return values


class Game:
    """A learner's parameters, rows in some form, labels and weights."""

    def __init__(self, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
        self.n = n = int(rng.integers(1, 30))
        d = int(rng.integers(1, 5))
        monkeypatch.setattr(members, "BUDGET", 10.0 ** rng.uniform(1.0, 6.0))  # so that members are dropped
        self.labels = int(rng.integers(1, 6))
        self.y = rng.integers(0, rng.integers(1, self.labels + 1), n).astype(object if rng.random() < 0.5 else int)
        self.weight = rng.choice([0.0, 1.0, 1.0, 2.5], n) if rng.random() < 0.6 else np.ones(n)
        holes = rng.random() < 0.7
        self.params: dict[str, Any] = {
            "missing": str(rng.choice(["mean", "indicator", "error"])) if holes else "mean",
            "on_bad_row": "skip",
            "drift": str(rng.choice(["none", "track"])),
            "fit_intercept": bool(rng.random() < 0.8),
            "max_categories": int(rng.integers(0, 6)),
            "radii": "auto" if rng.random() < 0.8 else (1.0,),
        }
        if rng.random() < 0.3:
            self.params["classes"] = list(range(self.labels + 1))
        elif self.y.dtype == object and holes:
            self.y[rng.random(n) < 0.1] = None
        self.form = str(rng.choice(["array", "sparse", "frame", "dictionaries"]))
        if self.form in ("array", "sparse"):
            self.X = rng.normal(size=(n, d))
            if holes:
                self.X[rng.random((n, d)) < 0.1] = rng.choice([np.nan, np.inf])
            if self.form == "sparse":
                self.X = sparse.csr_array(np.where(rng.random((n, d)) < 0.5, self.X, 0.0))
        else:
            self.columns = {f"x{j}": some_column(rng, n, holes) for j in range(d)}

    def rows(self, some: np.ndarray) -> Any:
        if self.form in ("array", "sparse"):
            return self.X[some]
        columns = {name: [values[t] for t in some] for name, values in self.columns.items()}
        if self.form == "frame":
            return pd.DataFrame(columns)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def play(self, blocks: list[np.ndarray]) -> tuple[OnlineLogisticRegression, list[np.ndarray]]:
        learner, said = OnlineLogisticRegression(**self.params), []
        for some in blocks:
            said.append(learner.predict_then_learn(self.rows(some), self.y[some], sample_weight=self.weight[some]))
        return learner, said

    def play_one_by_one(self, tmp_path: Path) -> OnlineLogisticRegression:
        """With `learn_one` where weights are 1, and once through a file."""
        learner = OnlineLogisticRegression(**self.params)
        for t in range(self.n):
            row, label = self.rows(np.array([t])), self.y[t]
            if self.weight[t] == 1.0 and self.form != "frame":
                learner.learn_one(row if self.form == "sparse" else row[0], label)
            else:
                learner.partial_fit(row, self.y[[t]], sample_weight=self.weight[[t]])
            if t == self.n // 2 and learner.classes_.size:
                learner.save(tmp_path / "model.npz")
                learner = load(tmp_path / "model.npz")
        return learner


def assert_alike(a: OnlineLogisticRegression, b: OnlineLogisticRegression) -> None:
    assert a._encoder == b._encoder
    assert a.classes_.tolist() == b.classes_.tolist()
    for name, left, right in zip(a.state_._fields, a.state_, b.state_, strict=True):
        assert np.isfinite(left).all(), name
        assert np.array_equal(left, right), name


def test_cuts_do_not_show(cases, monkeypatch, tmp_path):
    for rng in cases:
        game = Game(rng, monkeypatch)
        whole, said = game.play([np.arange(game.n)])
        cuts = np.flatnonzero(rng.random(game.n - 1) < rng.choice([0.1, 0.4, 1.0])) + 1
        parts, told = game.play(np.split(np.arange(game.n), cuts))
        assert_alike(whole, parts)
        assert_alike(whole, game.play_one_by_one(tmp_path))
        assert whole.bad_rows_ == parts.bad_rows_
        if "classes" in game.params:
            assert np.array_equal(said[0], np.vstack(told))


def test_rows_that_are_not_learned_change_nothing(cases, monkeypatch):
    for rng in cases:
        game = Game(rng, monkeypatch)
        played, _ = game.play([np.arange(game.n)])
        counted = []
        learner = OnlineLogisticRegression(**game.params)
        for t in range(game.n):  # one by one, to see which are learned
            some = np.array([t])
            before = learner.state_ if hasattr(learner, "state_") else None
            rows = 0.0 if before is None else before.tally[0]
            learner.partial_fit(game.rows(some), game.y[some], sample_weight=game.weight[some])
            if learner.state_.tally[0] > rows:
                counted.append(t)
        if counted:
            alone, _ = game.play([np.array(counted)])
            assert_alike(played, alone)
            if hasattr(played, "feature_names_in_"):
                assert played.feature_names_in_.tolist() == alone.feature_names_in_.tolist()


def test_features_of_any_scale(cases):
    learners = [
        OnlineLogisticRegression(),
        OnlineLogisticRegression(classes=[0, 1, 2], drift="track"),
        OnlineBoosting(n_estimators=3),
        OnlineBoosting("naive-bayes", n_estimators=3),
    ]
    for rng in cases:
        n, d = int(rng.integers(2, 30)), int(rng.integers(1, 4))
        X = rng.choice([0.0, 1.0, -1.0, 0.5], (n, d)) if rng.random() < 0.5 else rng.normal(size=(n, d))
        y = rng.integers(0, 2, n)
        y[:2] = 0, 1
        learner = learners[rng.integers(len(learners))]
        with np.errstate(all="ignore"):
            wild = np.clip(
                X * 10.0 ** rng.uniform(-323.0, 150.0, rng.choice([1, n, n * d])).reshape(-1, 1)[:n], -1e149, 1e149
            )
        p = learner.fit(wild[:2], y[:2]).predict_then_learn(wild, y)
        assert np.isfinite(p).all()
        assert all(np.isfinite(array).all() for array in learner.state_)
        assert np.isfinite(learner.predict_proba(wild)).all()
        plain = learner.fit(X, y).predict_proba(X)
        power = 2.0 ** rng.integers(-900, 400, d)
        assert np.array_equal(learner.fit(X * power, y).predict_proba(X * power), plain)
