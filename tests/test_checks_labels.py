"""Over every learner: labels of any kind, consistent forecasts, names of features, parameters."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.base import clone

from learners import (
    ONE_PER_PATH,
    STUMPS,
    Entry,
    Stream,
    assert_same_game,
    assert_same_state,
    certificate,
    changed,
    directions,
    every_class,
    every_classifier,
    every_kind,
    every_learner,
    fingerprint,
    learned,
    learners_that,
    params,
    play,
    recipe,
    through_file,
    within,
)
from regretless import (
    AIOLI,
    FTRL,
    BadRow,
    GeneralGAF,
    MirrorDescentAggregator,
    OnlineBoosting,
    OnlineLogisticRegression,
)
from regretless.core.learner import OnlineLearner
from regretless.core.numbers.tally import LOSS
from regretless.core.rows.labels import Labels
from regretless.learners.second_order.mixable import LogCoshLoss
from regretless.theory.domains import Octahedron, Simplex

# ---------------------------------------------------------------------- labels

KINDS_OF_LABELS: dict[str, tuple[list[Any], list[Any]]] = {  # labels for codes 0 and 1, and their order
    "text": (["yes", "no"], ["no", "yes"]),
    "bool": ([True, False], [False, True]),
    "signs": ([1, -1], [-1, 1]),
    "ints": ([7, 3], [3, 7]),
    "whole floats": ([2.0, 1.0], [1.0, 2.0]),
    "mixed": (["a", 1], ["a", 1]),
}
SOME_CODES = np.array([0, 1, 1, 0, 1, 0, 0, 1, 0, 1])


@pytest.mark.parametrize("entry", [entry for entry in ONE_PER_PATH if entry.n_classes == 2], ids=str)
@pytest.mark.parametrize("kind", KINDS_OF_LABELS)
def test_labels_of_any_kind(entry: Entry, kind: str, tmp_path: Path) -> None:
    every = isinstance(entry.learner, AIOLI | OnlineLogisticRegression)  # which reads labels by itself
    for as_array, declared in itertools.product((False, True), repeat=2):
        if every or as_array != declared:
            check_labels(entry, kind, as_array, declared, tmp_path)


def check_labels(entry: Entry, kind: str, as_array: bool, declared: bool, tmp_path: Path) -> None:
    names, order = KINDS_OF_LABELS[kind]
    X = directions(10, 4) / 2
    y: Any = [names[code] for code in SOME_CODES]
    if as_array:
        y = np.array(y, dtype=object if kind == "mixed" else None)
    learner = entry.new().partial_fit(X, y, classes=order if declared else None)
    assert learner.classes_.tolist() == order
    places = {} if not declared else {"classes": [0, 1]}
    coded = entry.new().partial_fit(X, [order.index(names[code]) for code in SOME_CODES], **places)
    assert_same_state(learner, coded)
    assert learner.predict(X).tolist() == [order[code] for code in coded.predict(X)]
    learner.learn_one(X[0], names[0])
    copy = through_file(learner, tmp_path)
    assert copy.classes_.tolist() == order
    assert [type(label) for label in copy.classes_.tolist()] == [type(label) for label in order]
    if declared or not isinstance(entry.learner, OnlineLogisticRegression):  # which else would learn it
        with pytest.raises(BadRow, match="row 1"):
            learner.partial_fit(X[:2], [names[0], "other"])


@every_classifier
def test_declared_classes_keep_their_order(entry: Entry) -> None:
    order = list(range(entry.n_classes))[::-1]
    stream = entry.stream()
    learner = entry.new().partial_fit(*stream, classes=order)
    assert learner.classes_.tolist() == order
    assert_same_state(learner, play(entry, Stream(stream.X, entry.n_classes - 1 - stream.y))[0])


@every_classifier
def test_classes_declared_later_must_agree(entry: Entry) -> None:
    stream = entry.stream()
    learner, _ = play(entry, stream)
    learner.partial_fit(*stream, classes=range(entry.n_classes))
    learner.partial_fit(*stream, classes=np.arange(entry.n_classes))
    before = fingerprint(learner)
    for wrong in (range(entry.n_classes + 1), range(entry.n_classes)[::-1], ["a", "b"]):
        with pytest.raises(ValueError, match="differs from"):
            learner.partial_fit(*stream, classes=wrong)
        with pytest.raises(ValueError, match="differs from"):
            learner.learn_one(stream.X[0], stream.y[0], classes=wrong)
    assert fingerprint(learner) == before


@every_classifier
def test_a_class_may_be_met_late(entry: Entry) -> None:
    stream = entry.stream()
    learner = entry.new().partial_fit(stream.X[:1], [0], **entry.first)
    margins = entry.n_classes == 2 and not entry.probabilities
    assert entry.forecast(learner, stream.X).shape == ((100,) if margins else (100, entry.n_classes))
    assert learner.predict(stream.X).shape == (100,)


soft_classifiers = learners_that(lambda entry: entry.classifies and entry.takes_soft_labels)


@learners_that(lambda entry: not entry.takes_soft_labels)
def test_soft_labels_are_refused_where_mistakes_are_counted(entry: Entry) -> None:
    stream = entry.stream()
    soft = changed(np.eye(entry.n_classes)[stream.y], 2, np.full(entry.n_classes, 1 / entry.n_classes))
    learner, _ = play(entry, stream)
    before = fingerprint(learner)
    with pytest.raises(BadRow, match="row 2: a soft label"):
        learner.partial_fit(stream.X, soft)
    with pytest.raises(BadRow, match="row 0: a soft label"):
        learner.learn_one(stream.X[0], soft[2])
    assert fingerprint(learner) == before
    assert_same_state(entry.new().partial_fit(stream.X, np.eye(entry.n_classes)[stream.y], **entry.first), learner)


@soft_classifiers
def test_soft_labels(entry: Entry) -> None:
    stream = entry.stream("uneven")
    hard = np.eye(entry.n_classes)[stream.y]
    soft = softmax(np.random.default_rng(1).normal(size=hard.shape), axis=1)
    declared = entry.new().partial_fit(stream.X, hard, **entry.first)
    assert_same_state(declared, play(entry, stream)[0])
    inferred = entry.new().partial_fit(stream.X, soft)
    assert inferred.classes_.tolist() == list(range(entry.n_classes))
    forecasts = entry.new().predict_then_learn(stream.X, soft)
    suffered = sum(soft[:, k] @ entry.losses_suffered(forecasts, np.full(100, k)) for k in range(entry.n_classes))
    assert inferred.state_.tally[LOSS] == pytest.approx(suffered, rel=1e-9)
    frame = pd.DataFrame(soft)
    assert_same_state(inferred, entry.new().partial_fit(stream.X, frame))
    inferred.partial_fit(*stream)  # hard labels may follow soft ones
    inferred.learn_one(stream.X[0], stream.y[0])


@soft_classifiers
def test_one_soft_label(entry: Entry) -> None:
    stream = entry.stream()
    soft = np.full((1, entry.n_classes), 1 / entry.n_classes)
    one, block = play(entry, stream)[0], play(entry, stream)[0]
    one.learn_one(stream.X[0], soft[0])
    assert_same_state(one, block.partial_fit(stream.X[:1], soft))


# ---------------------------------------------------------------------- forecasts


@every_classifier
@every_kind
def test_what_is_forecast_is_consistent(entry: Entry, kind: str) -> None:
    learner, _ = play(entry, entry.stream(kind))
    X = entry.stream(kind, seed=1).X
    z = learner.decision_function(X)
    assert z.shape == ((100,) if entry.n_classes == 2 else (100, entry.n_classes))
    logits = np.column_stack([np.zeros(100), z]) if entry.n_classes == 2 else z
    assert np.array_equal(learner.predict(X), learner.classes_[logits.argmax(axis=1)])
    if not entry.probabilities:
        assert not hasattr(learner, "predict_proba")
        assert not hasattr(learner, "predict_proba_one")
        return
    p = learner.predict_proba(X)
    assert p.shape == (100, entry.n_classes)
    assert p.min() >= 0
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(softmax(logits, axis=1), p, rtol=1e-12, atol=1e-300)
    assert np.array_equal(learner.predict(X), learner.classes_[p.argmax(axis=1)])


@every_learner
def test_a_block_of_forecasts_is_its_rows(entry: Entry) -> None:
    learner, _ = play(entry, entry.stream("uneven"))
    X = entry.stream("uneven", seed=1).X
    assert np.array_equal(entry.forecast(learner, X), [entry.forecast_one(learner, x) for x in X])
    assert np.array_equal(learner.predict(X), [learner.predict_one(x) for x in X])


# ---------------------------------------------------------------------- names of features


@every_class
def test_columns_keep_their_names(entry: Entry, tmp_path: Path) -> None:
    stream = entry.stream()
    frame = pd.DataFrame(stream.X, columns=["a", "b", "c", "d"])
    learner = entry.new().partial_fit(frame, stream.y, **entry.first)
    assert learner.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    copy = through_file(learner, tmp_path)
    for model in (learner, copy):
        before = fingerprint(model)
        for wrong in (frame[["b", "a", "c", "d"]], frame.rename(columns={"a": "z"})):
            with pytest.raises(ValueError, match="feature names"):
                model.partial_fit(wrong, stream.y)
            with pytest.raises(ValueError, match="feature names"):
                entry.forecast(model, wrong)
        with pytest.raises(BadRow, match=r"row 3, column 1 \('b'\): NaN"):
            model.partial_fit(frame.assign(b=changed(stream.X[:, 1], 3, np.nan)), stream.y)
        assert fingerprint(model) == before
    assert np.array_equal(entry.forecast(learner, frame), entry.forecast(copy, frame))


# ---------------------------------------------------------------------- parameters


CHOICES: dict[str, tuple[Any, Any]] = {  # two values of a parameter, of which every one goes with all others
    "curvature": ("gaf", "sharp"),
    "expectation": ("sobol", "monte-carlo"),
    "multiclass": ("softmax", "hinge"),
    "step": ("adagrad-norm", 0.2),
    "schedule": (0.2, 0.3),
    "mirror": ("p-norm", "power"),
    "horizon": (50, 60),
    "base": ("columns", STUMPS),
    "kernel": ("linear", "rbf"),
    "approximation": ("random-features", "nystrom"),
    "feature_bound": (2.0, 1.25),
    "budget": (10, 20),
    "max_nodes": (15, 25),
    "classes": (None, [0, 1, 2, 3, 4]),
    "missing": ("mean", "error"),
    "precision": ("double", "single"),
    "drift": ("none", "track"),
    "radii": ("auto", [2.0]),
    "on_bad_row": ("skip", "error"),
    "method": ("langevin", "auto"),
    "steps": (30, 50),
    "interaction_bits": (18, 12),
    "effort": ("medium", "low"),
    "class_weight": (None, {0: 2.0}),
    "prior": ([0.3, 0.7], [0.6, 0.4]),
}


def choices(entry: Entry, name: str) -> tuple[Any, Any] | None:
    aggregates = isinstance(entry.learner, MirrorDescentAggregator)
    if name == "loss" and isinstance(entry.learner, GeneralGAF):
        return LogCoshLoss(scale=1e4, target_bound=1e4), LogCoshLoss(scale=2e4, target_bound=1e4)
    if name == "loss":
        return ("hinge", "logit") if entry.classifies else ("squared", "absolute")
    if name == "estimator" and isinstance(entry.learner, OnlineBoosting):
        return "stump", "naive-bayes"
    if name == "domain":
        return ("simplex", "octahedron") if aggregates else (Simplex(0.8), Octahedron(0.8))
    return CHOICES.get(name)


def has_one_value(entry: Entry, name: str) -> bool:
    """Whether a parameter has one legal value alone: that of MDA for numbers, or where others say the rest."""
    learner = entry.learner
    if name == "virtual_weight":
        return getattr(learner, "solver", "exact") == "descent"
    if name == "loss":
        return isinstance(learner, FTRL) or (isinstance(learner, MirrorDescentAggregator) and not entry.classifies)
    # a start depends on the number of columns, solver="descent" needs one virtual weight, sparse rows no radii, and
    # FTRL has a radius or a domain
    # (devices other than None need PyTorch: tests/test_device.py)
    alone = ("start", "solver", "sparse", "interactions", "device")
    return name in alone or (name == "domain" and isinstance(learner, FTRL))


def other_value(entry: Entry, name: str, value: Any) -> Any:
    """A value that is not the parameter's and that it might have had."""
    if has_one_value(entry, name):
        return value
    if isinstance(value, OnlineLearner) and not isinstance(entry.learner, OnlineBoosting):
        return clone(value).set_params(radius=0.75 * value.radius)  # type: ignore[attr-defined]
    if (pair := choices(entry, name)) and (name != "curvature" or isinstance(value, str)):
        return pair[value == pair[0]]
    if name == "estimators":
        return [clone(learner).set_params(radius=0.75 * learner.radius) for learner in value]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return 2 * value + 1
    return 0.75 * value if value else 0.75


def change_every_parameter(entry: Entry, learner: Any) -> None:
    before = learner.get_params(deep=False)
    after = {name: other_value(entry, name, value) for name, value in before.items()}
    same = {name for name in before if recipe(before[name]) == recipe(after[name])}
    assert same == {name for name in before if has_one_value(entry, name)}
    learner.set_params(**after)


@every_learner
def test_parameters_are_stored_untouched(entry: Entry) -> None:
    learner, _ = play(entry, entry.stream())
    assert params(learner) == params(entry.learner)
    for name, value in entry.learner.get_params(deep=False).items():
        assert recipe(getattr(learner, name)) == recipe(value)
        marker = object()
        assert getattr(entry.new(**{name: marker}), name) is marker
    with pytest.raises(ValueError, match="Invalid parameter"):
        learner.set_params(momentum=0.9)


@every_learner
def test_a_running_game_keeps_its_parameters(entry: Entry, tmp_path: Path) -> None:
    stream = entry.stream()
    learner, before = play(entry, Stream(stream.X[:50], stream.y[:50]))
    competition = learner.competes_with
    said = learner.regret_certificate(0.2) if entry.certificate else None
    learner.save(tmp_path / "before.npz")
    change_every_parameter(entry, learner)
    assert learner.competes_with == competition
    assert not entry.certificate or learner.regret_certificate(0.2) == said
    learner.save(tmp_path / "after.npz")
    assert (tmp_path / "before.npz").read_bytes() == (tmp_path / "after.npz").read_bytes()
    after = learner.predict_then_learn(stream.X[50:], stream.y[50:])
    whole = play(entry, stream)
    assert_same_game(whole, (learner, np.concatenate([before, after])))
    if entry.certificate:
        assert certificate(learner) == certificate(whole[0])


@learners_that(lambda entry: entry.learner.get_params(deep=False))
def test_new_parameters_begin_with_a_new_game(entry: Entry) -> None:
    X, y = entry.stream()
    stream = Stream(within(X, 0.5), y if entry.classifies else y / 4)
    learner, _ = play(entry, stream)
    change_every_parameter(entry, learner)
    fresh = clone(learner).fit(*stream, **entry.first)
    assert not np.array_equal(learned(fresh), learned(learner))
    assert_same_state(learner.fit(*stream, **entry.first), fresh)
    assert learner.competes_with == fresh.competes_with


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.uint64, np.float64, bool])
def test_codes_of_numbers(kind):
    """Labels that are their own codes, of any type of number, and those that are none."""
    labels = Labels(np.array([0, 1, 2]))
    given = np.array([2, 0, 1, 1]).astype(kind)
    codes, foreign = labels.codes(given)
    np.testing.assert_array_equal(codes, given)
    assert not foreign.any()
    stray = np.array([1, 3, 100, -1]).astype(kind)
    codes, foreign = labels.codes(stray)
    np.testing.assert_array_equal(foreign, ~np.isin(stray, [0, 1, 2]))
    assert codes.dtype == np.intp and codes.min() >= 0 and codes.max() <= 2
    np.testing.assert_array_equal(labels.distributions(given), np.eye(3)[given.astype(int)])
    if foreign.any():
        with pytest.raises(BadRow, match=f"row {int(np.argmax(foreign))}: label"):
            labels.distributions(stray)
