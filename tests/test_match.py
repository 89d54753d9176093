"""The one loop that scores: marks, pauses, JSON, and a learner that has learned before."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from typer.testing import CliRunner

import regretless
from regretless import AIOLI, FOLKLORE, OGD, Mixture, OnlineLogisticRegression, VovkAzouryWarmuth, play
from regretless.cli import app
from regretless.evaluate.match import Match, marks_of


def stream(n: int = 80, K: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) / 2.0
    return X, rng.integers(0, K, n)


LEARNERS = [AIOLI(radius=3.0), FOLKLORE(radius=2.0), OGD(radius=2.0), OnlineLogisticRegression(), VovkAzouryWarmuth()]


# ---------------------------------------------------------------------- the verb


@pytest.mark.parametrize("learner", [*LEARNERS, Mixture([AIOLI(), OGD()])], ids=lambda learner: type(learner).__name__)
def test_a_block_in_steps_is_the_block(learner: Any) -> None:
    X, y = stream()
    whole, stepped, pieces = clone(learner), clone(learner), clone(learner)
    out = whole.predict_then_learn(X, y)
    game, losses = stepped.play_block(X, y, stops=[1, 7, 50]), []
    for rows in game:
        losses.append((rows, stepped.total_loss_))
        assert not hasattr(stepped, "classes_") or list(stepped.classes_) == [0, 1] or rows < 7
    assert [rows for rows, _ in losses] == [1, 7, 50, 80]
    assert np.array_equal(game.forecasts, out)
    assert stepped.total_loss_ == whole.total_loss_
    classes = {} if isinstance(learner, VovkAzouryWarmuth) else {"classes": [0, 1]}
    if not isinstance(learner, OnlineLogisticRegression):  # which names its classes as they come
        pieces.partial_fit(X[:7], y[:7], **classes)
        assert pieces.total_loss_ == dict(losses)[7]


def test_all_rows_are_checked_before_the_first_step() -> None:
    X, y = stream()
    X[60] = np.nan
    learner = AIOLI()
    with pytest.raises(regretless.BadRow, match="row 60"):
        learner.play_block(X, y, stops=[10])
    assert not hasattr(learner, "state_")


def test_a_game_that_is_left_has_learned_the_rows_up_to_its_pause() -> None:
    X, y = stream()
    learner = AIOLI()
    game = learner.play_block(X, y, stops=[10, 20])
    for rows in game:
        if rows == 20:
            break
    assert learner.state_.tally[0] == 20
    with pytest.raises(ValueError, match="20 of 80 rows have been learned"):
        _ = game.forecasts
    assert learner.total_loss_ == AIOLI().fit(X[:20], y[:20]).total_loss_


@pytest.mark.parametrize("stops", [[0], [81], [-1, 3]])
def test_stops_outside_the_block_are_refused(stops: list[int]) -> None:
    with pytest.raises(ValueError, match=rf"stops=\[{stops[0]}\] must be row counts from 1 to 80"):
        AIOLI().play_block(*stream(), stops=stops)


# ---------------------------------------------------------------------- the match


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_marks_inside_a_block_are_cuts(learner: Any) -> None:
    X, y = stream()
    whole = Match(clone(learner), marks=[5, 33, 80])
    whole.player.meet_classes(y)
    whole.feed(X, y)
    pieces = Match(clone(learner), marks=[5, 33, 80])
    pieces.player.meet_classes(y)
    for some in (slice(0, 20), slice(20, 33), slice(33, 80)):
        pieces.feed(X[some], y[some])
    assert [line[:7] for line in whole.trace().checkpoints] == [line[:7] for line in pieces.trace().checkpoints]
    own = clone(learner).fit(X[:33], y[:33], **({} if isinstance(learner, VovkAzouryWarmuth) else {"classes": [0, 1]}))
    assert whole.checkpoints[1].rows == 33
    assert whole.checkpoints[1].loss == own.total_loss_
    if not isinstance(learner, VovkAzouryWarmuth):  # which has a certificate for a given norm only
        assert whole.checkpoints[1].certificate == pytest.approx(own.regret_certificate(), rel=1e-12)


def test_a_match_goes_on_from_json(tmp_path: Path) -> None:
    X, y = stream()
    whole = Match(AIOLI())
    whole.feed(X, y)
    first = Match(AIOLI())
    first.feed(X[:30], y[:30])
    first.learner.save(tmp_path / "model.npz")
    again = Match(regretless.load(tmp_path / "model.npz"))
    again.take_up(json.loads(json.dumps(first.as_json())))
    again.feed(X[30:], y[30:])
    assert [line[:7] for line in again.trace().checkpoints] == [line[:7] for line in whole.trace().checkpoints]
    assert again.rows == 80
    assert again.mean_loss == whole.mean_loss


def test_a_refused_block_changes_nothing() -> None:
    X, y = stream()
    match = Match(AIOLI())
    match.feed(X[:30], y[:30])
    before = json.dumps(match.as_json() | {"seconds": 0})
    bad = X[30:].copy()
    bad[20] = np.inf
    with pytest.raises(regretless.BadRow):
        match.feed(bad, y[30:])
    assert json.dumps(match.as_json() | {"seconds": 0}) == before
    match.feed(X[30:], y[30:])
    assert match.trace().loss[-1] == play(AIOLI(), X, y, progress=False).loss[-1]


def test_a_rival_s_loss_is_counted_by_the_match() -> None:
    X, y = stream()
    match = Match(SGDClassifier(loss="log_loss", random_state=0), classes=[0, 1], marks=[10, 40])
    forecasts, targets = match.feed(X, y)
    losses = -np.log((forecasts * targets).sum(axis=1))
    trace = match.trace()
    assert trace.rows.tolist() == [10, 40, 80]
    np.testing.assert_allclose(trace.loss, np.cumsum(losses)[[9, 39, 79]], rtol=1e-12)
    assert np.isnan(trace.certificate).all()
    with pytest.raises(ValueError, match="does not support weights"):
        match.feed(X, y, np.ones(80))


def test_marks() -> None:
    assert marks_of([30, 3, 3]) == [3, 30]
    assert len(marks_of("log")) == len(set(marks_of("log")))
    for wrong in ("every", [0, 3]):
        with pytest.raises(ValueError, match="checkpoints="):
            marks_of(wrong)


# ---------------------------------------------------------------------- learners that have learned before


def test_play_and_run_report_the_rows_of_this_game(tmp_path: Path) -> None:
    """50 rows learned before, 30 played: loss of the 30, and no certificate, because it would cover all 80."""
    X, y = stream()
    AIOLI().fit(X[:50], y[:50]).save(tmp_path / "before.npz")
    learner = regretless.load(tmp_path / "before.npz")
    p = clone(learner).fit(X[:50], y[:50]).predict_then_learn(X[50:], y[50:])
    loss = float(-np.log(p[np.arange(30), y[50:]]).sum())

    trace = play(learner, X[50:], y[50:], progress=False)
    assert trace.loss[-1] == pytest.approx(loss, rel=1e-12)
    assert math.isnan(trace.certificate[-1])
    assert math.isnan(trace.bound[-1])

    rows = np.column_stack([X[50:], y[50:]])
    data = tmp_path / "rows.csv"
    data.write_text("a,b,c,y\n" + "".join(f"{a!r},{b!r},{c!r},{int(k)}\n" for a, b, c, k in rows.tolist()))
    out = tmp_path / "out"
    given = ["run", str(data), "--target", "y", "--model", str(tmp_path / "before.npz"), "--out", str(out)]
    assert CliRunner().invoke(app, given).exit_code == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["rows"] == 30
    assert summary["total_loss"] == pytest.approx(loss, rel=1e-12)
    assert summary["mean_log_loss"] == pytest.approx(loss / 30, rel=1e-12)
    assert summary["regret_certificate"] is None
    assert summary["regret_bound"] is None
    assert "had learned other rows before" in summary["no_certificate_because"]
