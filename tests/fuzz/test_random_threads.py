"""Learners in several threads: predictions side by side, and learning that waits until it is alone."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from subjects import SUBJECTS, Subject, every_subject

import regretless
from held import held
from regretless import AIOLI, GAF, Mixture, OnlineLogisticRegression, fit_sharded, load
from regretless.core.turns import LEARNING, OF_PARAMETERS, WRITER, Turn, turn_of
from regretless.evaluate.registry import public_learners

N_ROWS = 12
STRANGER = 1  # a thread that is none


@pytest.fixture
def eager_switches():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*works: Callable[[], None]) -> None:
    """Do all at a time; the first error of any is raised."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30.0)
        assert not thread.is_alive(), "a thread waits for ever"
    if errors:
        raise errors[0]


def begun(subject: Subject, X: np.ndarray, y: np.ndarray) -> Any:
    """A learner of the first row (or round)."""
    learner = subject.new()
    learn(subject, learner, X, y, 0)
    return learner


def learn(subject: Subject, learner: Any, X: np.ndarray, y: np.ndarray, t: int) -> None:
    if subject.is_bandit:
        action, _ = learner.act(X[t])
        learner.feedback(X[t], action, bool(action == y[t]))
    else:
        learner.partial_fit(X[t : t + 1], y[t : t + 1], **({} if t else subject.first))


def forecast(subject: Subject, learner: Any, X: np.ndarray) -> np.ndarray:
    if subject.is_bandit:
        return learner.probabilities(X[0])
    verb = next(verb for verb in ("predict_proba", "decision_function", "predict") if hasattr(learner, verb))
    return getattr(learner, verb)(X)


# ---------------------------------------------------------------------- every verb


def public_names(kind: type) -> list[str]:
    """The verbs and properties that a class or one of those it inherits from here defines."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("regretless")]
    found = {name: inspect.getattr_static(kind, name) for base in ours for name in vars(base)}
    return [
        name
        for name, value in found.items()
        if not name.startswith("_")
        and name not in OF_PARAMETERS
        and (inspect.isfunction(value) or isinstance(value, property) or hasattr(value, "check"))
    ]


@every_subject
def test_every_verb_waits_for_who_learns(subject, monkeypatch):
    """With another thread at the learner, no public verb or property gets through."""

    class Waits(Exception):
        pass

    def wait(turn: Turn, me: int) -> None:
        raise Waits

    X, y = subject.stream(np.random.default_rng(0), 3, 3)
    learner = begun(subject, X, y)
    turn_of(learner).writer[WRITER] = STRANGER
    monkeypatch.setattr(Turn, "wait_to_read", wait)
    monkeypatch.setattr(Turn, "wait_to_write", wait)
    x = X[0]
    for name in public_names(type(learner)):
        static = inspect.getattr_static(type(learner), name)
        if not isinstance(static, property) and not hasattr(learner, name):
            continue  # not for this loss
        with pytest.raises(Waits):
            verb = getattr(learner, name)
            required = [
                parameter
                for parameter in inspect.signature(verb).parameters.values()
                if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            ]
            verb(*[x if name.endswith("_one") or name in LEARNING else X for _ in required])


@pytest.mark.slow
def test_learners_of_others_take_turns_too():
    class Own(AIOLI):
        def surprise(self) -> float:
            return float(self.state_.w.sum())

    assert hasattr(Own.surprise, "takes_its_turn")
    for kind in public_learners().values():
        for name in public_names(kind):
            static = inspect.getattr_static(kind, name)
            if inspect.isfunction(static) and not getattr(static, "__isabstractmethod__", False):
                assert hasattr(static, "takes_its_turn"), f"{kind.__name__}.{name}"


# ---------------------------------------------------------------------- the games


def test_forecasts_while_learning_are_those_of_a_prefix(cases, eager_switches):
    for rng in cases:
        subject = SUBJECTS[int(rng.integers(len(SUBJECTS)))]
        X, y = subject.stream(rng, N_ROWS, 3)
        fresh = rng.uniform(-0.5, 0.5, size=(4, 3))  # within every declared bound
        calm = begun(subject, X, y)
        expected = [forecast(subject, calm, fresh)]
        for t in range(1, N_ROWS):
            learn(subject, calm, X, y, t)
            expected.append(forecast(subject, calm, fresh))
        learner = begun(subject, X, y)
        found: list[np.ndarray] = []
        done = threading.Event()

        def learning(learner=learner, subject=subject, X=X, y=y, done=done):
            try:
                for t in range(1, N_ROWS):
                    learn(subject, learner, X, y, t)
            finally:
                done.set()

        def predicting(learner=learner, subject=subject, fresh=fresh, done=done, found=found):
            while True:
                last = done.is_set()
                found.append(forecast(subject, learner, fresh))
                if last:
                    return

        together(learning, predicting, predicting)
        for said in found:
            assert any(np.array_equal(said, each, equal_nan=True) for each in expected), f"{subject}: of no prefix"
        assert held(vars(learner)) == held(vars(calm)), str(subject)


def test_two_threads_that_learn_take_turns(cases, eager_switches):
    """Both teach the same row, so that their order does not matter."""
    for rng in cases:
        subject = SUBJECTS[int(rng.integers(len(SUBJECTS)))]
        if subject.is_bandit:  # whose rounds are two calls
            continue
        X, y = subject.stream(rng, 1, 3)
        X, y = np.repeat(X, 9, axis=0), np.repeat(y, 9, axis=0)
        calm, learner = begun(subject, X, y), begun(subject, X, y)
        for t in range(1, 9):
            learn(subject, calm, X, y, t)

        def half(learner=learner, subject=subject, X=X, y=y):
            for t in range(1, 5):
                learn(subject, learner, X, y, t)

        together(half, half)
        assert held(vars(learner)) == held(vars(calm)), str(subject)


def test_saving_while_learning_gives_a_prefix(tmp_path, eager_switches):
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 2
    for kind in (OnlineLogisticRegression(), Mixture([AIOLI(), AIOLI(radius=1.0)])):
        learner = clone(kind).partial_fit(X[:1], y[:1], classes=[0, 1])
        states, done = [], threading.Event()

        def learning(learner=learner, done=done):
            for t in range(1, len(X)):
                learner.partial_fit(X[t : t + 1], y[t : t + 1])
            done.set()

        def saving(learner=learner, done=done, states=states):
            while not done.is_set():
                learner.save(tmp_path / "model.npz")
                states.append(load(tmp_path / "model.npz"))
                learner.regret_certificate()

        together(learning, saving)
        for saved in states:
            calm = clone(kind).partial_fit(X[:1], y[:1], classes=[0, 1])
            rows = int(saved.state_.tally[0])
            if rows > 1:
                calm.partial_fit(X[1:rows], y[1:rows])
            assert held(saved.state_) == held(calm.state_)


def frozen(learner: Any) -> int:
    """Make the arrays of a learner and of those it holds read-only; returns how many they are."""
    count = 0
    for array in getattr(learner, "state_", ()):
        array.flags.writeable = False
        count += 1
    for name in ("estimators_", "estimators_", "estimator_", "kept_", "estimator_", "_weak"):
        found = vars(learner).get(name, [])
        count += sum(frozen(each) for each in (found if isinstance(found, list) else [found]))
    return count


def predict_from_frozen_states() -> None:
    """What `test_predicting_writes_nothing` runs."""
    for subject in SUBJECTS:
        X, y = subject.stream(np.random.default_rng(0), 2, 3)
        learner = begun(subject, X, y)
        before, expected = held(vars(learner)), forecast(subject, learner, X)
        assert frozen(learner), str(subject)
        np.testing.assert_array_equal(forecast(subject, learner, X), expected, str(subject))
        assert held(vars(learner)) == before, str(subject)


@pytest.mark.slow
def test_predicting_writes_nothing():
    """Not even for a moment: the arrays are read-only, in plain Python, which minds."""
    program = "import test_random_threads; test_random_threads.predict_from_frozen_states()"
    folder = Path(__file__).parent
    given = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    done = subprocess.run([sys.executable, "-c", program], env=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------------- the lock


def test_copies_have_their_own_lock():
    learner = AIOLI().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    turn = turn_of(learner)
    turn.writer[WRITER] = STRANGER  # a stranger learns with this one alone
    for other in (copy.copy(learner), copy.deepcopy(learner), pickle.loads(pickle.dumps(learner)), clone(learner)):
        assert turn_of(other) is not turn
        other.partial_fit([[0.0, 1.0]], [0], classes=[0, 1])
    assert "_turn" not in vars(learner) and "_turn" not in learner.get_params()


def test_an_error_gives_the_lock_back():
    learner = AIOLI().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    for verb in (learner.predict, lambda rows: learner.partial_fit(rows, [0]), lambda rows: learner.learn_one(rows, 0)):
        with pytest.raises(ValueError):
            verb([[np.nan, 0.0]])
    turn = turn_of(learner)
    assert (turn.readers, turn.waiting, turn.writer) == ([], [], {})


def test_a_thread_does_not_wait_for_itself():
    """A callback may predict with the learner that learns, and a prediction may learn."""

    class Curious(AIOLI):
        asked = False

        def _run(self, X, Y, weight, out):
            super()._run(X, Y, weight, out)
            self.predict_proba(X)

        def _forecast(self, X, out):
            super()._forecast(X, out)
            if self.asked:
                self.asked = False
                self.partial_fit(X, [0] * len(X))

    learner = Curious().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    learner.asked = True
    learner.predict_proba([[0.5, 0.5]])
    assert learner.state_.tally[0] == 3


def test_two_predictions_that_want_to_learn_do_not_wait_for_each_other():
    both = threading.Barrier(2)

    class Greedy(AIOLI):
        def _forecast(self, X, out):
            super()._forecast(X, out)
            both.wait(10.0)
            self.partial_fit(X, [0] * len(X))

    learner = Greedy().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    with pytest.raises(RuntimeError, match="own learner"):
        together(*[lambda: learner.predict_proba([[0.5, 0.5]])] * 2)


def test_who_waits_to_predict_is_next():
    """A thread that learns without pause does not keep the others out."""
    learner = AIOLI().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    done, x = threading.Event(), np.array([0.5, 0.5])

    def learning():
        while not done.is_set():
            learner.learn_one(x, 1)

    def predicting():
        try:
            for _ in range(20):
                learner.predict_proba_one(x)
        finally:
            done.set()

    began = time.monotonic()
    together(learning, predicting)
    assert time.monotonic() - began < 10.0


def test_other_learners_do_not_wait():
    learner, other = (AIOLI().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1]) for _ in range(2))
    turn_of(learner).writer[WRITER] = STRANGER
    together(lambda: other.partial_fit([[0.0, 1.0]], [1]), lambda: other.predict([[0.0, 1.0]]))


@pytest.mark.slow
def test_workers_of_one_learner_have_their_own_room():
    """Monte Carlo draws of several shards are not written into one array."""
    X, y = np.random.default_rng(0).normal(size=(400, 3)), np.arange(400) % 4
    learner = GAF(radius=1.0, expectation="monte-carlo", n_samples=64)
    one, more = (fit_sharded(learner, X, y, 4, n_jobs=jobs) for jobs in (1, 4))
    assert held(one.state_) == held(more.state_)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_forgets_the_threads_it_leaves_behind():
    learner = AIOLI().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    turn = turn_of(learner)
    turn.readers.append(STRANGER)
    turn.forked()
    learner.partial_fit([[0.0, 1.0]], [0])
    turn.writer[WRITER] = STRANGER - 1
    turn.forked()
    for verb in (learner.predict, lambda rows: learner.partial_fit(rows, [0])):
        with pytest.raises(RuntimeError, match="forked"):
            verb([[0.0, 1.0]])


def test_no_process_is_forked():
    """BLAS hangs in a fork that is made while another thread is in it: joblib's own workers are started anew."""
    sources = Path(regretless.__file__).parent.rglob("*.py")
    found = [path for path in sources if re.search(r"multiprocessing|ProcessPool|os\.fork\(", path.read_text())]
    assert not found
    assert type(joblib.Parallel(2)._backend).__name__ == "LokyBackend"
