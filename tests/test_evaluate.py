"""Playing streams: what is scored, how it is cut, who may play, and what the trace says."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.metrics import brier_score_loss, log_loss

import regretless
from regretless import (
    AIOLI,
    FOLKLORE,
    OGD,
    LinearizedFTRL,
    MirrorDescentAggregator,
    OnlineLogisticRegression,
    Perceptron,
    VovkAzouryWarmuth,
    play,
)
from regretless.theory.domains import Ball, WholeSpace


def stream(n: int = 300, d: int = 3, n_classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / math.sqrt(d)
    z = X @ (3 * rng.normal(size=(d, n_classes)))
    return X, np.argmax(z + rng.gumbel(size=z.shape), axis=1)


# ---------------------------------------------------------------------- the score


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_score_is_scikit_learns(n_classes: int) -> None:
    X, y = stream(n_classes=n_classes)
    trace = play(FOLKLORE(radius=3.0), X, y, keep_forecasts=True, progress=False)
    p = FOLKLORE(radius=3.0).predict_then_learn(X, y, classes=range(n_classes))
    assert np.array_equal(trace.forecasts, p)
    assert trace.mean_log_loss == pytest.approx(log_loss(y, p, labels=range(n_classes)), rel=1e-12)
    assert trace.error_rate == np.mean(p.argmax(axis=1) != y)
    assert trace.brier_score == pytest.approx(np.mean(np.sum((p - np.eye(n_classes)[y]) ** 2, axis=1)), rel=1e-12)
    if n_classes == 2:
        assert trace.brier_score == pytest.approx(2 * brier_score_loss(y, p[:, 1]), rel=1e-12)
    assert trace.loss[-1] == pytest.approx(trace.log_loss[-1], rel=1e-12)


def test_calibration_is_by_bins_of_sureness() -> None:
    X, y = stream(n=2000)
    trace = play(AIOLI(radius=5.0), X, y, keep_forecasts=True)
    sure, right = trace.forecasts.max(axis=1), trace.forecasts.argmax(axis=1) == y
    bins = np.minimum((sure * 20).astype(int), 19)
    table = [[np.sum(bins == b), sure[bins == b].mean(), right[bins == b].mean()] for b in np.unique(bins)]
    np.testing.assert_allclose(trace.reliability, table, rtol=1e-12)
    count, said, was = np.array(table).T
    assert trace.calibration_error == pytest.approx(np.sum(count * np.abs(said - was)) / 2000, rel=1e-12)


def test_soft_labels_count_by_their_expectation() -> None:
    X, y = stream()
    hard, soft = np.eye(2)[y], np.full((300, 2), 0.5)
    assert play(AIOLI(), X, hard).log_loss[-1] == play(AIOLI(), X, y).log_loss[-1]
    trace = play(AIOLI(), X, soft)
    assert trace.error_rate == 0.5
    assert trace.log_loss[-1] == pytest.approx(trace.loss[-1])


def test_scores_and_numbers_have_no_log_loss() -> None:
    X, y = stream()
    perceptron = play(Perceptron(), X, y)
    assert perceptron.kind == "scores"
    assert math.isnan(perceptron.mean_log_loss)
    assert math.isnan(perceptron.brier_score)
    assert perceptron.loss[-1] == Perceptron().fit(X, y).mistakes_
    assert abs(perceptron.loss[-1] - perceptron.mistakes[-1]) <= 1  # a score of 0 is a mistake about either class
    vovk = play(VovkAzouryWarmuth(), X, X[:, 0])
    assert vovk.kind == "numbers"
    assert vovk.loss[-1] == pytest.approx(VovkAzouryWarmuth().fit(X, X[:, 0]).total_loss_)


# ---------------------------------------------------------------------- streams


def test_checkpoints_are_logarithmic_or_asked_for() -> None:
    X, y = stream(n=1234)
    rows = play(AIOLI(), X, y).rows
    assert rows[:10].tolist() == [1, 2, 3, 4, 5, 6, 8, 10, 13, 16]
    assert rows[-1] == 1234
    assert np.all(np.diff(np.log10(rows[12:-1])) == pytest.approx(0.1, abs=0.02))
    trace = play(AIOLI(), X, y, checkpoints=[7, 500, 10_000])
    assert trace.rows.tolist() == [7, 500, 1234]
    for t, certificate in zip((7, 500), trace.certificate[:2], strict=True):
        assert certificate == AIOLI().fit(X[:t], y[:t], classes=[0, 1]).regret_certificate()


def test_checkpoints_do_not_change_the_game() -> None:
    X, y = stream()
    plain = play(AIOLI(), X, y, checkpoints=[])
    assert plain.rows.tolist() == [300]
    assert plain.log_loss[-1] == pytest.approx(play(AIOLI(), X, y).log_loss[-1], rel=1e-13)
    assert np.array_equal(
        play(AIOLI(), X, y, keep_forecasts=True).forecasts, AIOLI().predict_then_learn(X, y, classes=[0, 1])
    )


def blocks(X: Any, y: Any, size: int) -> Iterator[tuple[Any, Any]]:
    for i in range(0, len(y), size):
        yield X[i : i + size], y[i : i + size]


@pytest.mark.parametrize("form", ["blocks", "sparse", "frame", "list"])
def test_streams_of_every_form(form: str) -> None:
    X, y = stream(n=500)
    checkpoints = [1, 100, 500]
    expected = play(OGD(), X, y, checkpoints=checkpoints).to_frame().drop(columns="seconds")
    given: tuple[Any, ...] = {
        "blocks": (blocks(X, y, 77),),
        "sparse": (sparse.csc_matrix(X), y),
        "frame": (pd.DataFrame(X, columns=["a", "b", "c"]), pd.Series(y)),
        "list": (X.tolist(), y.tolist()),
    }[form]
    trace = play(OGD(), *given, classes=[0, 1], checkpoints=checkpoints)
    pd.testing.assert_frame_equal(trace.to_frame().drop(columns="seconds"), expected)


def flipping(n: int) -> Any:
    """An adversary that says the opposite of what was forecast."""

    def adversary() -> Any:
        rng = np.random.default_rng(0)
        for _ in range(n):
            forecast = yield rng.normal(size=2)
            yield 0 if forecast is None or np.ravel(forecast)[-1] > 0.5 else 1

    return adversary


def test_an_adversary_sees_the_forecast_before_it_chooses() -> None:
    traces = play({"AIOLI": AIOLI(), "OGD": OGD(radius=1.0)}, flipping(300), classes=[0, 1], keep_forecasts=True)
    for trace in traces.values():
        assert trace.error_rate >= 299 / 300  # all but what is said before anything is known
        assert trace.mean_log_loss >= math.log(2) - 0.01
        assert trace.rows[-1] == 300
        assert trace.regret[-1].high <= trace.certificate[-1] <= trace.bound[-1]


def test_several_learners_play_one_pass() -> None:
    X, y = stream()
    met = []

    def once() -> Iterator[tuple[Any, Any]]:
        met.append("begun")
        yield from blocks(X, y, 100)

    traces = play({"one": AIOLI(), "two": FOLKLORE()}, once())
    assert met == ["begun"]
    assert list(traces) == ["one", "two"]
    assert traces["two"].loss[-1] == pytest.approx(play(FOLKLORE(), X, y).loss[-1], rel=1e-13)


def test_learners_go_on_from_what_they_know() -> None:
    X, y = stream()
    learner = AIOLI().partial_fit(X[:100], y[:100], classes=[0, 1])
    trace = play(learner, X[100:], y[100:], keep_forecasts=True)
    assert np.array_equal(trace.forecasts, AIOLI().predict_then_learn(X, y, classes=[0, 1])[100:])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (({}, [[1.0]], [1]), "at least one learner"),
        ((object(), [[1.0]], [1]), "neither `learn_one` nor `partial_fit`"),
        ((AIOLI(), iter([])), "empty"),
        ((AIOLI(), flipping(0)), "no row"),
        ((AIOLI(), flipping(3), [1, 0, 1]), "omit y"),
    ],
)
def test_what_cannot_be_played_is_said(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        play(*arguments)
    with pytest.raises(ValueError, match="checkpoints="):
        play(AIOLI(), *stream(), checkpoints="linear")
    with pytest.raises(ValueError, match="batch="):
        play(AIOLI(), *stream(), batch=0)


# ---------------------------------------------------------------------- rivals


class RowLearner:
    """The manners of River: rows are dictionaries, and probabilities too."""

    def __init__(self) -> None:
        self.seen: list[tuple[dict[Any, float], Any]] = []

    def predict_proba_one(self, x: dict[Any, float]) -> dict[Any, float]:
        if not self.seen:
            return {}
        yes = (1 + sum(label for _, label in self.seen)) / (2 + len(self.seen))
        return {0: 1 - yes, 1: yes}

    def learn_one(self, x: dict[Any, float], y: Any) -> None:
        self.seen.append((x, y))


@pytest.mark.parametrize("form", ["dense", "sparse", "frame"])
def test_learners_of_rows_as_dictionaries_are_played(form: str) -> None:
    X, y = stream(n=40)
    given: Any = {"dense": X, "sparse": sparse.csr_matrix(X), "frame": pd.DataFrame(X, columns=list("abc"))}[form]
    learner = RowLearner()
    trace = play(learner, given, y, domain=Ball(2.0), keep_forecasts=True)
    names = list("abc") if form == "frame" else [0, 1, 2]
    assert learner.seen[7] == (dict(zip(names, X[7].tolist(), strict=True)), y[7])
    before = np.concatenate([[0], np.cumsum(y)[:-1]])
    expected = np.where(np.arange(40) == 0, 0.5, (1 + before) / (2 + np.arange(40)))
    np.testing.assert_allclose(trace.forecasts[:, 1], expected, rtol=1e-12)
    assert math.isnan(trace.certificate[-1])
    assert trace.regret[-1].low <= trace.regret[-1].high


def test_a_batch_of_scikit_learn_is_forecast_before_it_is_learned() -> None:
    X, y = stream(n=60)
    model = SGDClassifier(loss="log_loss", random_state=0)
    trace = play(model, X, y, batch=20, checkpoints=[], keep_forecasts=True)
    again, expected = SGDClassifier(loss="log_loss", random_state=0), [np.full((20, 2), 0.5)]
    for i in (0, 20, 40):
        if i:
            expected.append(again.predict_proba(X[i : i + 20]))
        again.partial_fit(X[i : i + 20], y[i : i + 20], classes=[0, 1])
    np.testing.assert_allclose(trace.forecasts, np.concatenate(expected))
    assert play(SGDClassifier(loss="hinge"), X, y).kind == "scores"
    assert play(SGDRegressor(), X, X[:, 0]).kind == "numbers"


def test_river_itself() -> None:
    river = pytest.importorskip("river.linear_model", reason="River is not installed")
    X, y = stream()
    trace = play(river.LogisticRegression(), X, y.astype(bool), domain=Ball(3.0))
    assert 0.2 < trace.mean_log_loss < 0.8
    assert trace.regret[-1].high > 0


@pytest.mark.parametrize("labels", [(-1, 1), ("no", "yes"), (True, False), (2, 7)], ids=str)
def test_the_labels_of_a_foreign_learner_do_not_matter(labels: tuple[Any, Any]) -> None:
    river = pytest.importorskip("river", reason="River is not installed")
    from river import linear_model, tree

    X, y = stream()
    for make in (linear_model.LogisticRegression, tree.HoeffdingTreeClassifier, linear_model.Perceptron):
        expected = play(make(), X, y.astype(bool), classes=[False, True])
        trace = play(make(), X, np.array(labels)[y.astype(int)], classes=list(labels))
        assert trace.checkpoints[-1].log_loss == expected.checkpoints[-1].log_loss, river
        assert trace.error_rate == expected.error_rate


def test_a_foreign_learner_keeps_the_labels_that_it_forecasts() -> None:
    tree = pytest.importorskip("river.tree", reason="River is not installed")
    X, y = stream()
    names = np.where(y == 1, "yes", "no")
    learner = tree.HoeffdingTreeClassifier()
    for row, label in zip(X[:50].tolist(), names[:50].tolist(), strict=True):
        learner.learn_one(dict(enumerate(row)), label)
    play(learner, X[50:], names[50:])
    assert set(learner.predict_proba_one(dict(enumerate(X[0].tolist())))) == {"yes", "no"}


class GivesArrays:
    """A foreign learner that forecasts arrays."""

    def __init__(self, size: int) -> None:
        self.size = size

    def predict_proba_one(self, x: dict[Any, float]) -> np.ndarray:
        return np.arange(1.0, self.size + 1.0)

    def learn_one(self, x: dict[Any, float], y: Any) -> None:
        assert y in ("a", "b")


def test_foreign_forecasts_may_be_arrays() -> None:
    X, y = stream(n=20)
    names = np.where(y == 1, "b", "a")
    trace = play(GivesArrays(2), X, names, keep_forecasts=True)
    np.testing.assert_allclose(trace.forecasts, np.tile([1 / 3, 2 / 3], (20, 1)))
    with pytest.raises(ValueError, match="returned 3 numbers for 2 classes"):
        play(GivesArrays(3), X, names)


def test_as_river() -> None:
    pytest.importorskip("river", reason="River is not installed")
    from river import compose, datasets, evaluate, metrics, preprocessing

    rows = [(x, y) for x, y in datasets.Phishing().take(200)]
    model = compose.Pipeline(preprocessing.StandardScaler(), regretless.as_river(AIOLI()))
    assert 0.6 < evaluate.progressive_val_score(rows, model, metrics.Accuracy()).get() <= 1.0
    ours = regretless.as_river(OnlineLogisticRegression())
    assert ours.predict_proba_one(rows[0][0]) == {}
    evaluate.progressive_val_score(rows, ours, metrics.LogLoss())
    plain = OnlineLogisticRegression().partial_fit([x for x, _ in rows], [y for _, y in rows])
    said = ours.predict_proba_one(rows[0][0])
    assert said == pytest.approx(dict(zip([False, True], plain.predict_proba_one(rows[0][0]), strict=True)), abs=1e-15)
    assert not hasattr(ours.clone().learner, "state_")
    text = [({"word": "a" if i % 2 else "b", "n": i}, "yes" if i % 2 else "no") for i in range(60)]
    assert evaluate.progressive_val_score(text, ours.clone(), metrics.Accuracy()).get() > 0.9
    with pytest.raises(ValueError, match="those of the first row"):
        model[-1].learn_one({"other": 1.0}, True)
    with pytest.raises(ValueError, match="not a classifier of this library"):
        regretless.as_river(SGDClassifier())


def test_a_trace_shows_its_numbers() -> None:
    X, y = stream(n=60)
    trace = play(AIOLI(radius=2.0), X, y)
    assert {"certificate", "bound", "rows", "log_loss"} <= set(dir(trace))
    shown = repr(trace)
    for words in ("AIOLI", "rows 60", f"log loss per row {trace.mean_log_loss:.4f}", f"{trace.certificate[-1]:.4g}"):
        assert words in shown
    assert f"<td>{trace.mean_log_loss:.4f}</td>" in trace._repr_html_()
    assert "mean squared error" in repr(play(SGDRegressor(), X, X[:, 0]))
    both = play({"a<b": AIOLI(), "other": AIOLI(radius=2.0)}, X, y)
    assert "a&lt;b" in both._repr_html_()


# ---------------------------------------------------------------------- regret


@pytest.mark.parametrize(
    "learner", [AIOLI(radius=2.0), FOLKLORE(radius=1.0, feature_bound=5.0), OGD(radius=2.0)], ids=repr
)
def test_regret_is_an_interval_below_the_certificate_and_the_bound(learner: Any) -> None:
    trace = play(learner, *stream())
    for (low, high), certificate, bound in zip(trace.regret, trace.certificate, trace.bound, strict=True):
        assert low <= high <= low + 1e-6
        assert high <= certificate + 1e-9
        assert certificate <= bound + 1e-9


def test_a_learner_of_all_weights_is_measured_on_a_ball() -> None:
    X, y = stream()
    trace = play(LinearizedFTRL(), X, y, domain=Ball(2.0))
    assert trace.regret[-1].high <= trace.certificate[-1]
    whole = play(LinearizedFTRL(), X, y)
    assert isinstance(whole.competition.domain, WholeSpace)
    assert math.isnan(whole.certificate[-1])
    vovk = play(VovkAzouryWarmuth(), X, X[:, 0], domain=Ball(2.0))
    assert vovk.regret[-1].high <= vovk.certificate[-1] <= vovk.bound[-1]


def test_a_set_beyond_the_learners_has_no_certificate() -> None:
    trace = play(AIOLI(radius=1.0), *stream(), domain=Ball(5.0))
    assert math.isnan(trace.certificate[-1])
    assert math.isnan(trace.bound[-1])
    inside = play(AIOLI(radius=5.0), *stream(), domain=Ball(1.0))
    assert inside.regret[-1].high <= inside.certificate[-1]


def test_the_comparators_of_an_aggregate_weigh_its_base_functions() -> None:
    X, y = stream(n=400)
    base = regretless.stumps(X[:100], 3)
    trace = play(MirrorDescentAggregator(base, loss="logit", scale=3.0), X, y)
    assert trace.comparators[-1].w.shape == (9,)
    assert trace.regret[-1].high <= trace.certificate[-1]


def test_without_hindsight_no_row_is_kept() -> None:
    trace = play(AIOLI(), *stream(), hindsight=False)
    assert trace.stream is None
    with pytest.raises(ValueError, match="hindsight=True"):
        trace.regret  # noqa: B018
    with pytest.raises(ValueError, match="domain"):
        play(RowLearner(), *stream()).regret  # noqa: B018


# ---------------------------------------------------------------------- other forms


def test_frames_and_json_hold_the_trace(tmp_path: Any) -> None:
    X, y = stream(n=50)
    traces = play({"a": AIOLI(), "b": Perceptron()}, X, y)
    frame = traces["a"].to_frame()
    assert frame.columns.tolist()[:2] == ["rows", "log_loss"]
    assert {"regret_low", "regret_high", "certificate", "bound", "seconds"} <= set(frame.columns)
    assert frame["rows"].dtype == int
    both = traces.to_frame()
    assert both.groupby("learner").size().tolist() == [len(frame)] * 2
    document = json.loads(traces.to_json(tmp_path / "trace.json"))
    assert json.loads((tmp_path / "trace.json").read_text()) == document
    assert document["a"]["checkpoints"]["rows"][-1] == 50
    assert document["b"]["mean_log_loss"] is None
    assert json.loads(traces["a"].to_json())["calibration_error"] == traces["a"].calibration_error


@pytest.mark.slow
def test_pictures_are_drawn(tmp_path: Any) -> None:
    X, y = stream()
    traces = play({"AIOLI": AIOLI(), "Perceptron": Perceptron()}, X, y)
    for name, axes in (
        ("one", traces["AIOLI"].plot()), ("scores", traces["Perceptron"].plot()), ("both", traces.plot()),
    ):  # fmt: skip
        axes[0].figure.savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_forecasts_that_are_no_numbers_count_as_all_classes_alike():
    """Gaussian naive Bayes divides by a variance of 0 after one row."""
    from sklearn.naive_bayes import GaussianNB

    X = np.random.default_rng(0).normal(size=(60, 3))
    trace = play(GaussianNB(), X, X[:, 0] > 0, checkpoints=[1, 2, 60])
    assert trace.log_loss[1] == pytest.approx(2 * math.log(2))
    assert trace.reliability[:, 0].sum() == 60
    assert 0 < trace.mean_log_loss < math.inf
