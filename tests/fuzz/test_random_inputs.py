"""Hostile labels, rows, targets and weights, in random forms: learned as meant, or refused with nothing changed."""

from __future__ import annotations

import io
import warnings
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from subjects import SUBJECTS, Subject

pytestmark = pytest.mark.slow

VALUES = [
    float("nan"), float("inf"), None, pd.NA, pd.NaT, np.ma.masked, "x", "", "1.5", b"2", "nan", 1 + 2j,
    np.complex64(1j), np.datetime64("2020-01-01"), np.timedelta64(3, "s"), datetime(2020, 1, 1), pd.Timestamp("2020"),
    10**400, 2**70, True, np.float32(0.25), [1.0], {}, object(),
]  # fmt: skip
LABELS = ["a", "a\0", b"a", 1, 1.0, True, 2**63, -1, 2**53 + 1, 0.5, "", "\0", (1, 2), np.str_("b"), *VALUES]
KINDS = ["f2", "f4", ">f8", "i1", "u8", "?", "c8", "M8[s]", "m8[s]", "O", "U32", "S32", "longdouble"]


def reformed(rng: np.random.Generator, values: np.ndarray, spoil: bool) -> Any:
    """The same numbers in another form, perhaps with something hostile among them."""
    table = values.astype(object)
    if spoil:
        table[tuple(rng.integers(0, n) for n in table.shape)] = VALUES[rng.integers(len(VALUES))]
    form = rng.integers(0, 7)
    if form == 0:
        return table
    if form == 1:
        return table.tolist()
    if form == 2:
        return values.astype(KINDS[rng.integers(len(KINDS))])
    if form == 3:
        return np.ma.array(values, mask=rng.random(values.shape) < 0.2)
    if form == 4 and values.ndim == 2:
        return [np.ma.array(row, mask=rng.random(row.size) < 0.1) for row in values]
    if form == 5 and values.ndim == 2:
        return pd.DataFrame(table, columns=[f"x{j}" for j in range(values.shape[1])])
    if form == 6 and values.ndim == 2:
        return sparse.csr_matrix(values.astype("c8" if spoil else "f4"))
    return pd.Series(table) if values.ndim == 1 else values.astype("f4")


def labels_of(rng: np.random.Generator, n: int, K: int) -> Any:
    few = [LABELS[i] for i in rng.choice(len(LABELS), K, replace=False)]
    y = [few[k] for k in rng.integers(0, K, n)]
    return y if rng.random() < 0.5 else objects(y)


def objects(values: list[Any]) -> np.ndarray:
    found = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        found[i] = value
    return found


def bytes_of(learner: Any) -> bytes:
    """Everything that the learner knows, to the byte."""
    found = io.BytesIO()

    def write(value: Any) -> None:
        if hasattr(value, "_fields"):
            for part in value:
                write(part)
        elif isinstance(value, np.ndarray):
            found.write(f"{value.dtype} {value.shape}".encode())
            found.write(repr(value.tolist()).encode() if value.dtype == object else value.tobytes())
        elif isinstance(value, list):
            for part in value:
                write(part)
        elif hasattr(value, "state_"):
            write_all(value)

    def write_all(each: Any) -> None:
        for name in sorted(name for name in vars(each) if name.endswith("_")):
            found.write(name.encode())
            write(vars(each)[name])

    write_all(learner)
    return found.getvalue()


def assert_finite(learner: Any) -> None:
    for each in getattr(learner, "estimators_", [learner]):
        for array in getattr(getattr(each, "estimator_", each), "state_", ()):
            assert np.isfinite(array).all()


def classes_of(learner: Any) -> list[Any]:
    of = learner if hasattr(learner, "classes_") else learner.estimators_[0]
    return list(of.classes_.tolist())


def a_call(rng: np.random.Generator, subject: Subject, X: np.ndarray, y: np.ndarray) -> tuple[str, Any]:
    """A verb and what it is called with; one of its arguments is hostile."""
    what = rng.choice(["X", "y", "sample_weight", "form"])
    rows: Any = reformed(rng, X, spoil=True) if what == "X" else X
    targets: Any = y
    weight: Any = None
    if what == "form":
        rows = reformed(rng, X, spoil=False)
    elif what == "y":
        targets = labels_of(rng, len(y), subject.n_classes) if subject.n_classes > 1 else reformed(rng, y, spoil=True)
    elif what == "sample_weight":
        weight = reformed(rng, np.ones(len(y)), spoil=True)
    verbs = ["partial_fit", "fit", "predict_then_learn", "learn_one", "predict", "predict_one"]
    verb = str(rng.choice([verb for verb in verbs if hasattr(subject.learner, verb)]))
    if verb == "learn_one":
        row = rows.iloc[0] if hasattr(rows, "iloc") else rows[0]
        return verb, lambda learner: learner.learn_one(row, targets[0])
    if verb == "predict_one":
        row = rows.iloc[0] if hasattr(rows, "iloc") else rows[0]
        return verb, lambda learner: learner.predict_one(row)
    if verb == "predict":
        return verb, lambda learner: learner.predict(rows)
    return verb, lambda learner: getattr(learner, verb)(rows, targets, sample_weight=weight)


@pytest.mark.filterwarnings("ignore")
def test_hostile_inputs_are_learned_as_meant_or_refused(cases: Any) -> None:
    learners = [subject for subject in SUBJECTS if not subject.is_bandit]
    for rng in cases:
        subject = learners[rng.integers(len(learners))]
        X, y = subject.stream(rng, 6, 3)
        learner = subject.new()
        begun = rng.random() < 0.6
        if begun:
            learner.partial_fit(X, y, **subject.first)
        before = bytes_of(learner)
        verb, call = a_call(rng, subject, X, y)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                call(learner)
        except (ValueError, TypeError) as error:
            assert str(error), (subject, verb)
            assert bytes_of(learner) == before, (subject, verb, error)
        else:
            assert_finite(learner)
            if verb.startswith("predict") and verb != "predict_then_learn":
                assert bytes_of(learner) == before, (subject, verb)


@pytest.mark.filterwarnings("ignore")
def test_classes_are_the_labels_that_differ(cases: Any) -> None:
    classifiers = [each for each in SUBJECTS if not each.is_bandit and each.n_classes > 1]
    for rng in cases:
        subject = classifiers[rng.integers(len(classifiers))]
        X, _ = subject.stream(rng, 6, 3)
        few = [LABELS[i] for i in rng.choice(len(LABELS), subject.n_classes, replace=False)]
        y = [few[t % subject.n_classes] for t in range(6)]
        learner = subject.new()
        try:
            learner.partial_fit(X, y if rng.random() < 0.5 else objects(y))
        except (ValueError, TypeError):
            assert bytes_of(learner) == b"" or not hasattr(learner, "state_")
            continue
        classes = classes_of(learner)
        assert set(classes) == set(few), (subject, few, classes)
        assert all(bool(label == label) for label in classes), (subject, few, classes)


@pytest.mark.filterwarnings("ignore")
def test_hostile_rounds_of_bandits_change_nothing(cases: Any) -> None:
    bandits = [subject for subject in SUBJECTS if subject.is_bandit]
    for rng in cases:
        subject = bandits[rng.integers(len(bandits))]
        X, _ = subject.stream(rng, 3, 3)
        learner = subject.new()
        action, _ = learner.act(X[0])
        if rng.random() < 0.5:
            learner.feedback(X[0], action, True)
        before = bytes_of(learner)
        rows = reformed(rng, X, spoil=True)
        row = rows.iloc[0] if hasattr(rows, "iloc") else rows[0]
        hostile = VALUES[rng.integers(len(VALUES))]
        for call in (
            lambda: learner.act(row),  # noqa: B023
            lambda: learner.feedback(X[0], hostile, True),  # noqa: B023
            lambda: learner.feedback(X[0], action, hostile),  # noqa: B023
            lambda: learner.probabilities(row),  # noqa: B023
        ):
            try:
                call()
            except (ValueError, TypeError):
                assert bytes_of(learner) == before, subject
            else:
                assert_finite(learner)
                before = bytes_of(learner)
