"""Ctrl-C at any moment leaves a learner that has learned the first rows of the call, and nothing of the others."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from subjects import SUBJECTS, Subject

from held import held
from regretless import (
    AIOLI,
    FOLKLORE,
    FTRL,
    OGD,
    AggregatingForecaster,
    BanditMulticlass,
    Hedge,
    KernelAIOLI,
    Mixture,
    OneVsRest,
    OnlineBoosting,
    OnlineLogisticRegression,
    OnlineToBatch,
)
from regretless.core import interrupts

pytestmark = pytest.mark.slow

N_ROWS = 9


@dataclass(frozen=True)
class Game:
    """Steps of one learner: each is a call, and has learned when it returns."""

    new: Callable[[], Any]
    learn: Callable[[Any, int, int], Any]  # rows `first` to `stop`, in one call
    n: int = N_ROWS

    def prefix(self, before: int, rows: int) -> Any:
        """A learner of `before` rows in one call and of `rows` in the next."""
        learner = self.new()
        for first, stop in ((0, before), (before, before + rows)):
            if stop > first:
                self.learn(learner, first, stop)
        return learner


def numbers(subject: Subject, rng: np.random.Generator, verb: str) -> Game:
    """Rows of numbers, by `partial_fit`, `predict_then_learn` or `learn_one`."""
    X, y = subject.stream(rng, N_ROWS, 3)
    weight = None if rng.random() < 0.7 or verb == "learn_one" else rng.integers(0, 3, N_ROWS).astype(float)

    def learn(learner: Any, first: int, stop: int) -> None:
        rows = slice(first, stop)
        declared = {} if first else subject.first
        if verb == "learn_one":
            for t in range(first, stop):
                learner.learn_one(X[t], y[t], **(declared if t == 0 else {}))
            return
        given = {} if weight is None else {"sample_weight": weight[rows]}
        getattr(learner, verb)(X[rows], y[rows], **declared, **given)

    return Game(subject.new, learn)


def rounds(subject: Subject, rng: np.random.Generator) -> Game:
    """A bandit: two steps a round."""
    X, y = subject.stream(rng, N_ROWS, 3)

    def learn(learner: Any, first: int, stop: int) -> None:
        for step in range(first, stop):
            t = step // 2
            if step % 2 == 0:
                learner.act(X[t])
            else:
                action = learner.classes_[int(learner.state_.pending[1])]
                learner.feedback(X[t], action, bool(action == y[t]))

    return Game(subject.new, learn, 2 * N_ROWS)


def tables(rng: np.random.Generator, verb: str) -> Game:
    """OnlineLogisticRegression on dictionaries, with labels and categories never seen, and bad rows."""
    texts = np.array(["a", "bb", "ccc", "d"])[rng.integers(0, 4, N_ROWS)].tolist()
    values = rng.normal(size=N_ROWS).tolist()
    y = np.array(["yes", "no", "perhaps", "never"])[rng.integers(0, 4, N_ROWS)].tolist()
    if rng.random() < 0.5:
        values[int(rng.integers(1, N_ROWS))] = float("inf")
    with_text = bool(rng.random() < 0.5)
    rows = [{"v": v, "t": t} if with_text else {"v": v} for v, t in zip(values, texts, strict=True)]

    def learn(learner: Any, first: int, stop: int) -> None:
        getattr(learner, verb)(rows[first:stop], y[first:stop])

    return Game(lambda: OnlineLogisticRegression(on_bad_row="skip"), learn)


WRAPPERS = [
    Subject(OnlineToBatch(OGD(radius=2.0), method="average")),
    Subject(OnlineToBatch(FOLKLORE(radius=2.0), method="last"), 3),
    Subject(OnlineToBatch(OnlineLogisticRegression())),
    Subject(OnlineBoosting(FOLKLORE(radius=1.0), n_estimators=2), 3),
    Subject(Mixture([FTRL(), KernelAIOLI(), AggregatingForecaster(method="langevin", n_samples=16)])),
    Subject(Hedge([Mixture([AIOLI(), FTRL()]), OneVsRest(AIOLI())])),
    Subject(BanditMulticlass(FOLKLORE(feature_bound=1.0), n_classes=3, exploration="anytime"), 3),
]


def drawn_game(rng: np.random.Generator) -> tuple[str, Game]:
    if rng.random() < 0.2:
        verb = str(rng.choice(["partial_fit", "predict_then_learn"]))
        return f"tables, {verb}", tables(rng, verb)
    subject = [*SUBJECTS, *WRAPPERS][int(rng.integers(len(SUBJECTS) + len(WRAPPERS)))]
    if subject.is_bandit:
        return str(subject), rounds(subject, rng)
    verbs = [verb for verb in ("partial_fit", "predict_then_learn", "learn_one") if hasattr(subject.learner, verb)]
    verb = str(rng.choice(verbs))
    return f"{subject}, {verb}", numbers(subject, rng, verb)


class Presses:
    """Ctrl-C at one of the moments where Python hears it: after a call of compiled code, or where a function begins."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.moments = 0

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if event not in ("call", "c_return"):
            return
        self.moments += 1
        if self.moments == self.at:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def pressing(at: int) -> Iterator[Presses]:
    presses = Presses(at)
    sys.setprofile(presses)
    try:
        yield presses
    finally:
        sys.setprofile(None)


@contextmanager
def timed(seconds: float) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch):
    monkeypatch.setattr(interrupts, "FIRST", 2)
    monkeypatch.setattr(interrupts, "FIRST_OF_SLOW", 2)
    monkeypatch.setattr(interrupts, "LONG", 0.0)


def play(game: Game, name: str, rng: np.random.Generator, press: Callable[[float], Any]) -> None:
    """Interrupt a call somewhere; what is left is a prefix, and goes on as if nothing had happened."""
    before = int(rng.integers(0, game.n))
    rows = game.n - before
    moment = rng.random()
    learner = game.prefix(before, 0)
    interrupted = False
    try:
        with press(moment):
            game.learn(learner, before, game.n)
    except KeyboardInterrupt:
        interrupted = True
    left = held(vars(learner))
    learned = next((k for k in range(rows, -1, -1) if held(vars(game.prefix(before, k))) == left), None)
    assert learned is not None, f"{name}: no prefix of {before} + {rows} rows"
    assert interrupted or learned == rows, name
    if learned < rows:
        game.learn(learner, before + learned, game.n)
        whole = game.prefix(before, rows)
        assert held(vars(learner)).keys() == held(vars(whole)).keys(), name
        if hasattr(whole, "state_"):
            assert held(learner.state_) == held(whole.state_), name


def test_any_moment_leaves_a_prefix(cases):
    for rng in cases:
        name, game = drawn_game(rng)
        seed = int(rng.integers(1 << 31))
        before = int(np.random.default_rng(seed).integers(0, game.n))
        learner = game.prefix(before, 0)
        with pressing(0) as presses:
            game.learn(learner, before, game.n)
        moments = presses.moments
        play(game, name, np.random.default_rng(seed), lambda part, moments=moments: pressing(1 + int(part * moments)))


def test_signals_at_random_times_leave_a_prefix(cases):
    """By a clock, without looking where they come."""
    for rng in cases:
        name, game = drawn_game(rng)
        seed = int(rng.integers(1 << 31))
        before = int(np.random.default_rng(seed).integers(0, game.n))
        learner = game.prefix(before, 0)
        began = time.perf_counter()
        game.learn(learner, before, game.n)
        took = time.perf_counter() - began
        play(game, name, np.random.default_rng(seed), lambda part, took=took: timed(1e-6 + part * took))


def test_fit_is_done_or_not(cases):
    """Who fits anew keeps what was learned before until all is learned."""
    for rng in cases:
        subject = SUBJECTS[int(rng.integers(len(SUBJECTS)))]
        if not hasattr(subject.learner, "fit"):
            continue
        X, y = subject.stream(rng, N_ROWS, 3)
        old, learner = (subject.new().fit(X[:4], y[:4], **subject.first) for _ in range(2))
        new = subject.new().fit(X, y, **subject.first)
        with pressing(0) as presses:
            subject.new().fit(X, y, **subject.first)
        try:
            with pressing(1 + int(rng.integers(presses.moments))):
                learner.fit(X, y, **subject.first)
        except KeyboardInterrupt:
            pass
        assert held(vars(learner)) in (held(vars(old)), held(vars(new))), str(subject)


@pytest.mark.parametrize("learner", [FTRL(), KernelAIOLI(), Mixture([FTRL(), KernelAIOLI()])], ids=str)
def test_slow_learners_hear_within_a_second(learner, monkeypatch):
    monkeypatch.setattr(interrupts, "FIRST_OF_SLOW", 32)
    monkeypatch.setattr(interrupts, "LONG", 0.5)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 4)) / 2.0, rng.integers(0, 2, 20_000)
    own = clone(learner).partial_fit(X[:50], y[:50])
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), timed(0.3):
        own.partial_fit(X, y)
    assert time.monotonic() - began < 3.0  # on a machine that has other things to do
    assert 50 < own.state_.tally[0] < 20_000


def test_a_handler_that_goes_on_is_heard_once_and_changes_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    for learner in (AIOLI(), FTRL(), KernelAIOLI(), Mixture([AIOLI(), FTRL()])):
        calm, heard = clone(learner).fit(X[:2], [0, 1]), []
        own = clone(learner).fit(X[:2], [0, 1])
        before = signal.signal(signal.SIGINT, lambda *event, heard=heard: heard.append(event))
        try:
            with pressing(20):
                own.partial_fit(X, y)
        finally:
            signal.signal(signal.SIGINT, before)
        assert len(heard) == 1
        assert held(vars(own)) == held(vars(calm.partial_fit(X, y)))
