"""Ctrl-C in the middle of an update is heard at its end: nothing is left half updated."""

from __future__ import annotations

import signal
import threading
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from regretless import (
    AIOLI,
    FOLKLORE,
    FTRL,
    ONS,
    BanditMulticlass,
    Hedge,
    KernelAIOLI,
    Mixture,
    OneVsRest,
    OnlineBoosting,
    OnlineLogisticRegression,
)
from regretless.core.interrupts import uninterrupted
from regretless.core.learner import OnlineLearner
from regretless.core.numbers.tally import ROWS
from regretless.learners.logistic import sparse_game
from regretless.learners.logistic.hashing import Index
from regretless.learners.refitting.remembering import RememberingClassifier
from regretless.learners.second_order import panels


def stream(n: int, d: int, K: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    y = rng.integers(0, K, n)
    y[:K] = np.arange(K)
    return X, y


def everything(learner: OnlineLearner) -> list[np.ndarray]:
    """The states of a learner and of those it holds."""
    held = [each for name in learner.holds.values() for each in np.atleast_1d(np.asarray(getattr(learner, name)))]
    return [*learner.state_, *(array for each in held for array in everything(each))]


def interrupting(original):
    """The same function, in the middle of which somebody presses Ctrl-C."""

    def pressed(*args, **kwargs):
        signal.raise_signal(signal.SIGINT)
        return original(*args, **kwargs)

    return pressed


def check(learner: OnlineLearner, X: np.ndarray, y: np.ndarray, where: object, name: str) -> None:
    """Rows 10 on are learned whole although the function `name` is interrupted, and the interrupt is heard."""
    classes = np.unique(y)
    calm, disturbed = clone(learner), clone(learner)
    for each in (calm, disturbed):
        each.partial_fit(X[:10], y[:10], classes=classes)
    calm.partial_fit(X[10:], y[10:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, name, interrupting(getattr(where, name)))
        with pytest.raises(KeyboardInterrupt):
            disturbed.partial_fit(X[10:], y[10:])
    for ours, theirs in zip(everything(disturbed), everything(calm), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("ensemble", [Mixture, Hedge])
def test_members_have_met_the_same_rows(ensemble):
    X, y = stream(40, 3)
    check(ensemble([AIOLI(), AIOLI(radius=2.0), FOLKLORE()]), X, y, AIOLI, "_run")


def test_one_vs_rest_is_whole():
    X, y = stream(40, 3, 3)
    check(OneVsRest(AIOLI()), X, y, AIOLI, "_run")


def test_panel_is_whole():
    X, y = stream(10 + panels.rows_at_once(240, 1), 240)
    check(AIOLI(), X, y, panels, "finish")
    check(ONS(), X, y, panels, "finish")


def test_features_are_whole():
    X, y = stream(30, 3)
    check(KernelAIOLI(approximation="random-features", budget=8), X, y, KernelAIOLI, "_features")


def test_remembered_row_is_whole():
    X, y = stream(11, 3)
    check(FTRL(), X, y, RememberingClassifier, "_remember")


def test_boosted_row_is_whole():
    X, y = stream(11, 3, 3)
    check(OnlineBoosting(FOLKLORE(), n_estimators=3), X, y, FOLKLORE, "_run")


def wide_stream(n: int) -> tuple[Any, np.ndarray]:
    """CSR rows; the third of three labels appears late."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((n, 5000), density=4 / 5000, format="csr", rng=rng)
    y = rng.integers(0, 2, n)
    y[n // 2 :: 3] = 2
    return X, y


@pytest.mark.parametrize("where", ["index", "pass", "class"])
def test_sparse_rows_are_whole(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows before Ctrl-C are learned, those after it are not; learning these later gives the same state."""
    X, y = wide_stream(2000)
    calm = OnlineLogisticRegression(sketch=3).partial_fit(X, y)
    disturbed = OnlineLogisticRegression(sketch=3).partial_fit(X[:10], y[:10])
    place, name = {"index": (Index, "add"), "pass": (sparse_game, "run"), "class": (sparse_game, "add_class")}[where]
    with monkeypatch.context() as patch:
        patch.setattr(place, name, interrupting(getattr(place, name)))
        with pytest.raises(KeyboardInterrupt):
            disturbed.partial_fit(X[10:], y[10:])
    learned = int(disturbed.state_.tally[ROWS])
    assert 10 < learned < 2000
    prefix = OnlineLogisticRegression(sketch=3).partial_fit(X[:learned], y[:learned])
    for ours, theirs in zip(disturbed.state_, prefix.state_, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(disturbed.classes_, prefix.classes_)
    disturbed.partial_fit(X[learned:], y[learned:])
    for ours, theirs in zip(disturbed.state_, calm.state_, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_round_of_a_bandit_is_whole():
    X, y = stream(12, 3, 3)
    calm, disturbed = (BanditMulticlass(FOLKLORE(), n_classes=3, exploration=0.2) for _ in range(2))
    for t in range(len(X)):
        for learner in (calm, disturbed):
            action, _ = learner.act(X[t])
            if t == len(X) - 1 and learner is disturbed:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(BanditMulticlass, "_learn", interrupting(BanditMulticlass._learn))
                    with pytest.raises(KeyboardInterrupt):
                        learner.feedback(X[t], action, bool(action == y[t]))
            else:
                learner.feedback(X[t], action, bool(action == y[t]))
    for ours, theirs in zip(everything(disturbed), everything(calm), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_handlers_are_put_back():
    calls = []
    before = signal.signal(signal.SIGINT, lambda *event: calls.append(event[0]))
    try:
        with uninterrupted(), uninterrupted():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            assert not calls
        assert calls == [signal.SIGINT]
        with pytest.raises(ZeroDivisionError), uninterrupted():
            _ = 1 / 0
        signal.raise_signal(signal.SIGINT)
        assert calls == [signal.SIGINT] * 2
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with uninterrupted():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_do_not_touch_signals():
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def work():
        with uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
