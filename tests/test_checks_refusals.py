"""Over every learner: a bad row, label, weight or parameter is refused, and nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from learners import (
    ONE_ROW_PREDICTIONS,
    PREDICTIONS,
    Entry,
    Stream,
    changed,
    contents,
    every_learner,
    every_path,
    fingerprint,
    learners_that,
    params,
    play,
    refused,
    state_bytes,
)
from regretless import (
    AIOLI,
    FTRL,
    GAF,
    BadRow,
    GeneralGAF,
    Hedge,
    KernelGAF,
    OnlineLogisticRegression,
    StronglyConvexOGD,
    VovkAzouryWarmuth,
)
from regretless.learners.first_order.schedules import AdaGrad
from regretless.theory.domains import RowBall

# ---------------------------------------------------------------------- 8. what is refused


@dataclass(frozen=True)
class Mistake:
    """A call that must fail: what it changes in a good one, and words of the complaint."""

    name: str
    spoil: Callable[[Entry, Stream], dict[str, Any]]
    words: str  # a regular expression
    of: str = "all"  # "classifiers" or "regressors" alone
    when: str = "always"  # "first": in a first call alone, "later": in a running game alone

    def __str__(self) -> str:
        return self.name


def bad_rows(name: str, change: Callable[[np.ndarray], Any], words: str, when: str = "always") -> Mistake:
    return Mistake(name, lambda entry, stream: {"X": change(stream.X)}, words, when=when)


def bad_labels(name: str, change: Callable[[np.ndarray], Any], words: str, of: str = "all") -> Mistake:
    return Mistake(name, lambda entry, stream: {"y": change(stream.y)}, words, of)


def bad_soft_labels(name: str, change: Callable[[np.ndarray], Any], words: str) -> Mistake:
    def spoil(entry: Entry, stream: Stream) -> dict[str, Any]:
        return {"y": change(np.full((len(stream.y), entry.n_classes), 1 / entry.n_classes))}

    return Mistake(name, spoil, words, "classifiers")


def bad_classes(name: str, classes: Any, words: str, when: str) -> Mistake:
    return Mistake(name, lambda entry, stream: {"y": 0 * stream.y, "classes": classes}, words, "classifiers", when)


def bad_weights(name: str, change: Callable[[np.ndarray], Any], words: str) -> Mistake:
    return Mistake(name, lambda entry, stream: {"sample_weight": change(np.ones(len(stream.y)))}, words)


ROW_MISTAKES = [
    bad_rows("NaN", lambda X: changed(X, (3, 1), np.nan), "row 3, column 1: NaN.*fill"),
    bad_rows("inf", lambda X: changed(X, (3, 1), np.inf), "row 3, column 1: inf"),
    bad_rows("-inf", lambda X: changed(X, (3, 1), -np.inf), "row 3, column 1: -inf"),
    bad_rows("1e200", lambda X: changed(X, (3, 1), -1e200), r"row 3(, column 1: -|: \|x\| = )1e\+200.*Scale"),
    bad_rows("empty block", lambda X: X[:0], r"0 sample\(s\)"),
    bad_rows("no columns", lambda X: X[:, :0], r"0 feature\(s\)"),
    bad_rows("wrong width", lambda X: X[:, :3], "3 features.*expecting 4 features", when="later"),
    bad_rows("one dimension", lambda X: X[0], "2D array"),
    bad_rows("three dimensions", lambda X: X[None], "dim 3"),
    bad_rows("text", lambda X: X.astype(str).astype(object) + "?", "could not convert"),
]
LABEL_MISTAKES = [
    bad_labels("short y", lambda y: y[:-1], "inconsistent numbers of samples"),
    bad_labels("empty y", lambda y: y[:0], "inconsistent numbers of samples"),
    bad_labels("y of three dimensions", lambda y: y.reshape(-1, 1, 1), "y has shape"),
    bad_labels("no y", lambda y: None, "y is None"),
    bad_labels("unknown label", lambda y: changed(y, 2, 9), "row 2: label .*9.*Correct", "classifiers"),
    bad_labels("NaN label", lambda y: changed(y * 1.0, 2, np.nan), "row 2: label .*nan", "classifiers"),
    bad_labels("NaN target", lambda y: changed(y, 2, np.nan), "row 2: y = nan", "regressors"),
    bad_labels("inf target", lambda y: changed(y, 2, -np.inf), "row 2: y = -inf", "regressors"),
    bad_labels("text target", lambda y: ["a"] * len(y), "could not convert", "regressors"),
    bad_labels("two targets", lambda y: np.column_stack([y, y]), "y has shape", "regressors"),
    bad_soft_labels("soft labels off", lambda y: changed(y, (2, 0), 0.9), "row 2: .*sum to.*Divide"),
    bad_soft_labels("negative soft label", lambda y: changed(y, (2, 0), -0.1), "row 2, label column 0: -0.1"),
    bad_soft_labels("NaN soft label", lambda y: changed(y, (2, 1), np.nan), "row 2, label column 1: nan"),
    bad_soft_labels("soft labels too wide", lambda y: np.column_stack([y, 0 * y[:, 0]]), "columns"),
    bad_classes("other classes", [0, 7], "classes=.*differ", "later"),
    bad_classes("a class twice", [0, 1, 1], "twice", "first"),
    bad_classes("one class declared", [0], "one class", "first"),
    bad_classes("one class met", None, "one class.*declare", "first"),
]
WEIGHT_MISTAKES = [
    bad_weights("negative weight", lambda w: changed(w, 4, -0.5), "row 4: sample_weight -0.5"),
    bad_weights("NaN weight", lambda w: changed(w, 4, np.nan), "row 4: sample_weight nan"),
    bad_weights("inf weight", lambda w: changed(w, 4, np.inf), "row 4: sample_weight inf"),
    bad_weights("short weights", lambda w: w[:-1], "sample_weight has shape"),
    bad_weights("matrix of weights", lambda w: w[:, None], "sample_weight has shape"),
    bad_weights("text weights", lambda w: ["a"] * len(w), "could not convert"),
]
MISTAKES = ROW_MISTAKES + LABEL_MISTAKES + WEIGHT_MISTAKES


def mistakes_of(entry: Entry, mistakes: list[Mistake], when: str) -> list[Mistake]:
    """Those that can be made with this learner."""
    kinds = ("all", "classifiers" if entry.classifies else "regressors")
    waits = isinstance(entry.learner, OnlineLogisticRegression)  # for the other classes
    allowed = (
        {"one class met"} if waits else {"two targets"} if getattr(entry.learner, "takes_vectors", False) else set()
    )
    return [
        mistake
        for mistake in mistakes
        if mistake.when in ("always", when) and mistake.of in kinds and mistake.name not in allowed
    ]


def spoilt(entry: Entry, mistake: Mistake, declared: dict[str, Any]) -> dict[str, Any]:
    stream = entry.stream(seed=1, n=20)
    return {"X": stream.X, "y": stream.y, **declared, **mistake.spoil(entry, stream)}


@every_path
def test_a_refused_first_call_leaves_no_trace(entry: Entry) -> None:
    for mistake in mistakes_of(entry, MISTAKES, "first"):
        for verb in ("partial_fit", "predict_then_learn", "fit"):
            learner = entry.new()
            with refused(f"{mistake}, {verb}", mistake.words):
                getattr(learner, verb)(**spoilt(entry, mistake, entry.first))
            assert contents(learner) == params(entry.learner), (mistake, verb)


@every_path
def test_a_refused_later_call_changes_nothing(entry: Entry) -> None:
    learner, _ = play(entry, entry.stream())
    before = fingerprint(learner), state_bytes(learner)
    for mistake in mistakes_of(entry, MISTAKES, "later"):
        for verb in ("partial_fit", "predict_then_learn"):
            with refused(f"{mistake}, {verb}", mistake.words):
                getattr(learner, verb)(**spoilt(entry, mistake, {}))
            assert (fingerprint(learner), state_bytes(learner)) == before, (mistake, verb)


@every_path
def test_a_refused_fit_forgets_nothing(entry: Entry) -> None:
    learner, _ = play(entry, entry.stream())
    before = fingerprint(learner)
    for mistake in mistakes_of(entry, MISTAKES, "first"):
        with refused(mistake, mistake.words):
            learner.fit(**spoilt(entry, mistake, entry.first))
        assert fingerprint(learner) == before, mistake


@every_path
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_bad_rows_are_not_forecast_either(entry: Entry) -> None:
    learner, _ = play(entry, entry.stream())
    before = fingerprint(learner)
    for mistake in mistakes_of(entry, ROW_MISTAKES, "later"):
        X = mistake.spoil(entry, entry.stream(n=20))["X"]
        for verb in (verb for verb in PREDICTIONS if hasattr(learner, verb)):
            with refused(f"{mistake}, {verb}", mistake.words):
                getattr(learner, verb)(X)
            assert fingerprint(learner) == before, (mistake, verb)


ONE_BAD_ROW: list[tuple[Any, str]] = [
    ([1.0, 2.0, np.nan, 0.0], "row 0, column 2: NaN"),
    ([np.inf] * 4, "row 0, column 0: inf"),
    ([1.0] * 3, r"shape \(3,\).*4 features"),
    ([[1.0] * 4], r"shape \(1, 4\)"),
    (1.0, r"shape \((1,)?\).*4 features"),
    ([1e200] * 4, r"row 0(, column 0: 1e\+200|: \|x\| = 2e\+200)"),
]


@every_path
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_one_bad_row_is_refused(entry: Entry) -> None:
    learner, _ = play(entry, entry.stream())
    before = fingerprint(learner)
    for bad, words in ONE_BAD_ROW:
        with refused(bad, words, BadRow):
            learner.learn_one(bad, 1)
        for verb in (verb for verb in ONE_ROW_PREDICTIONS if hasattr(learner, verb)):
            with refused(f"{bad}, {verb}", words, BadRow):
                getattr(learner, verb)(bad)
        assert fingerprint(learner) == before, bad


@every_path
def test_one_unknown_label_is_refused(entry: Entry) -> None:
    learner, _ = play(entry, entry.stream())
    before = fingerprint(learner)
    classes = [9, "a", None, float("nan"), [0.5, 0.1], np.full(9, 1 / 9)]
    for bad in classes if entry.classifies else [np.nan, np.inf, "a", None, [0.5, 0.1]]:
        with refused(bad, r"label|classes" if entry.classifies else r"y = |y has shape|could not convert|float"):
            learner.learn_one(np.ones(4) / 8, bad)
        assert fingerprint(learner) == before, bad


@learners_that(lambda entry: entry.bounds_rows or entry.bounds_entries)
def test_a_row_beyond_the_declared_bound_is_refused(entry: Entry) -> None:
    stream = entry.stream()
    learner, _ = play(entry, stream)
    name = entry.bounds_rows or entry.bounds_entries
    R = getattr(entry.learner, name)
    on_the_border = np.full((1, 4), -R) if entry.bounds_entries else np.array([[R, 0.0, 0.0, 0.0]])
    beyond = changed(stream.X, 5, [0.0, -1.001 * R, 0.0, 0.0])
    where = "row 5, column 1.*: -" if entry.bounds_entries else r"row 5: \|x\| = "
    before = fingerprint(learner)
    for call in (learner.partial_fit, learner.predict_then_learn, entry.new().partial_fit):
        with pytest.raises(BadRow, match=f"{where}.* beyond {name}"):
            call(beyond, stream.y, **entry.first)
    with pytest.raises(BadRow, match="row 5"):
        entry.forecast(learner, beyond)
    with pytest.raises(BadRow, match=name):
        learner.learn_one(beyond[5], stream.y[5])
    assert fingerprint(learner) == before
    learner.partial_fit(on_the_border, stream.y[:1])


@learners_that(lambda entry: not entry.classifies)
def test_a_target_beyond_the_largest_is_refused(entry: Entry) -> None:
    stream = entry.stream()
    learner, _ = play(entry, stream)
    beyond = changed(stream.y, 5, -1.001 * entry.largest_target)
    before = fingerprint(learner)
    for call in (learner.partial_fit, learner.predict_then_learn, entry.new().partial_fit):
        with pytest.raises(BadRow, match="row 5: y = -"):
            call(stream.X, beyond)
    with pytest.raises(BadRow, match="y = -"):
        learner.learn_one(stream.X[5], beyond[5])
    assert fingerprint(learner) == before
    learner.partial_fit(stream.X[:1], [0.999 * entry.largest_target])


@learners_that(lambda entry: not entry.classifies)
def test_numbers_have_no_classes(entry: Entry) -> None:
    learner = entry.new()
    with pytest.raises(ValueError, match=r"(takes no|does not accept) classes"):
        learner.partial_fit(*entry.stream(), classes=[0, 1])
    assert contents(learner) == params(entry.learner)
    assert not hasattr(learner.partial_fit(*entry.stream()), "classes_")


@learners_that(lambda entry: entry.classifies and getattr(entry.learner, "binary_only", False))
def test_two_class_learners_refuse_three(entry: Entry) -> None:
    learner = entry.new()
    with pytest.raises(ValueError, match=r"binary.*3 here"):
        learner.partial_fit(np.eye(3) / 8, [0, 1, 2])
    assert contents(learner) == params(entry.learner)


BAD_PARAMETERS: dict[str, list[Any]] = {
    "radius": [0.0, -1.0, np.nan, np.inf, "big", True],
    "regularization": [0.0, -1.0, np.nan, np.inf, "big"],
    "curvature": [0.0, -1.0, np.nan, "steep"],
    "virtual_weight": [-1.0, np.nan, "heavy", None],
    "feature_bound": [0.0, -1.0, np.nan, "big"],
    "precision": ["half", 32, None],
    "gamma": [0.0, -1.0, np.nan],
    "epsilon": [0.0, -1.0, np.nan],
    "expectation": ["exact", 3],
    "n_samples": [0, -1, 1.5],
    "smoothing": [-0.1, 1.1, np.nan, "some", "theory"],
    "random_state": [-1, 0.5, "seed"],
    "horizon": [0, -1, 1.5, "long", True],
    "loss": ["log", "softmax", "multiclass hinge", "", None, 3],
    "multiclass": ["logistic", "squared", "", None, 3],
    "step": ["newton", -0.1, 0.0, np.nan, np.inf, None, AdaGrad(1.0)],
    "gradient_bound": [0.0, -1.0, np.nan, np.inf, "big"],
    "sigma": [-0.1, np.nan, np.inf, "some", None],
    "alpha": [0.0, -1.0, np.nan, np.inf, "fast", None],
    "beta": [-1.0, np.nan, np.inf, "slow", None],
    "l1": [-1.0, np.nan, np.inf, "sparse", None],
    "l2": [-1.0, np.nan, np.inf, "small", None],
    "domain": ["cube", RowBall(1.0), None, 3],
    "mirror": ["log", "", None, 3],
    "schedule": ["adagrad", -0.1, 0.0, np.nan, np.inf, None],
    "lazy": ["yes", None, 2],
    "averaging": ["yes", None, 2],
    "scale": [0.0, -1.0, np.nan, np.inf, "big", None],
    "signed": ["yes", None, 2],
    "base": ["rows", [], None, 3, [3]],
    "estimator": [None, 3, "AIOLI", AIOLI, VovkAzouryWarmuth()],
    "n_estimators": [0, -1, 1.5, "many", None],
    "symmetric": ["yes", None, 2],
    "kernel": ["cosine", None, 3],
    "degree": [0, 1.5, "two"],
    "coef0": [-1.0, np.nan, "some"],
    "approximation": ["some", None],
    "budget": [0, -1, 1.5, "all"],
    "dirichlet": [0.0, -1.0, np.nan, np.inf, 1e-200, "flat"],
    "max_nodes": [0, -1, 1.5, "all"],
    "method": ["laplace", None, 3],
    "bound": [0.0, -1.0, np.nan, np.inf, "big", None],
    "classes": [[0], [0, 0]],
    "fit_intercept": ["yes", None, 2],
    "missing": ["drop", None, 0],
    "drift": ["some", None, True],
    "radii": ["large", 3.0, None, [-1.0], [np.nan], [0.0]],
    "max_classes": [1, 2.5, None, "all"],
    "max_categories": [-1, 2.5, None, "all"],
    "on_bad_row": ["drop", None, 0],
    "estimators": [[], None, 3, "AIOLI", ["AIOLI", "ONS"], [AIOLI], [AIOLI(), StronglyConvexOGD()]],
    "prior": [[0.5], [0.5, 0.6], [1.0, 0.0], [np.nan, 1.0], [[0.5, 0.5]], "flat", 0.5],
    "share": [-0.1, 1.0, np.nan, "some", None],
}


def reads(entry: Entry, name: str, value: Any) -> bool:
    """Whether the configuration reads that parameter, so that it must complain."""
    if name == "loss" and isinstance(entry.learner, FTRL):
        return value != "log"
    if name == "budget" and entry.remembers:
        return False
    if name == "classes" and type(value) is object:
        return False  # refused as labels of a wrong shape
    if name == "estimators" and isinstance(entry.learner, Hedge):
        return not (isinstance(value, list) and len(value) == 2 and isinstance(value[0], AIOLI))  # of any loss
    if name == "steps":
        return entry.learner.get_params()["solver"] == "descent"
    if name == "domain" and isinstance(entry.learner, FTRL):
        return value is not None and not isinstance(value, RowBall)
    if name == "loss" and isinstance(entry.learner, GeneralGAF):
        return value is not None
    if name == "horizon" and value == 1.5:
        return not isinstance(entry.learner, GAF | KernelGAF)  # a number in a formula there
    if name == "regularization" and value == 0.0 and isinstance(entry.learner, StronglyConvexOGD):
        return entry.learner.sigma == 0.0
    return True


@every_learner
def test_bad_parameters_are_named_at_the_first_row(entry: Entry) -> None:
    """Also a value of no kind at all: so a parameter that is not in the list is tried too."""
    for name in entry.learner.get_params(deep=False):
        for value in [value for value in [*BAD_PARAMETERS.get(name, []), object()] if reads(entry, name, value)]:
            learner = entry.new(**{name: value})
            if name == "horizon" and isinstance(learner, GAF | KernelGAF):
                learner.set_params(smoothing="theory")  # which alone reads it
            with refused(f"{name}={value!r}", name):  # classes declared in the first call would go first
                learner.partial_fit(*entry.stream(), **({} if name == "classes" else entry.first))
            assert not hasattr(learner, "state_")


@every_learner
def test_before_the_first_row_there_is_nothing_to_say(entry: Entry) -> None:
    X = entry.stream().X
    for verb in PREDICTIONS + ONE_ROW_PREDICTIONS:
        if hasattr(entry.learner, verb):
            with pytest.raises(NotFittedError):
                getattr(entry.new(), verb)(X[0] if verb.endswith("_one") else X)
    for verb in ("regret_certificate", "regret_bound", "excess_risk_bound"):
        if hasattr(entry.learner, verb):
            with pytest.raises(NotFittedError):
                getattr(entry.new(), verb)()
