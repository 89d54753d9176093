"""Drawn streams and adversaries do what they claim."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit, softmax

from regretless import AIOLI, FOLKLORE, OGD, FollowTheLeader, Perceptron, play, streams
from regretless.theory.domains import Box

DRAWN = {
    "logistic": streams.logistic,
    "softmax": streams.softmax,
    "drifting": streams.drifting,
    "separable": streams.separable,
    "label-noise": streams.label_noise,
    "sparse-signal": streams.sparse_signal,
}


@pytest.mark.parametrize("name", DRAWN)
def test_same_seed_same_stream(name):
    first, again, other = DRAWN[name](300, seed=3), DRAWN[name](300, seed=3), DRAWN[name](300, seed=4)
    assert first.name == name
    assert np.array_equal(first.X, again.X) and np.array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)
    assert set(first.y.tolist()) == set(first.classes)
    assert np.mean(np.linalg.norm(first.X, axis=1)) == pytest.approx(1.0, abs=0.1)
    assert np.linalg.norm(first.weights, axis=-1) == pytest.approx(first.radius)


@pytest.mark.parametrize("name", ["logistic", "drifting", "sparse-signal"])
def test_labels_are_those_of_the_logistic_model(name):
    stream = DRAWN[name](40_000, seed=1)
    p = expit((stream.X * stream.weights).sum(axis=1))
    for low in np.arange(0, 1, 0.1):
        some = (p >= low) & (p < low + 0.1)
        spread = math.sqrt((p[some] * (1 - p[some])).sum()) / some.sum()
        assert abs(np.mean(stream.y[some] == 1) - p[some].mean()) < 5 * spread


def test_labels_are_those_of_the_softmax_model():
    stream = streams.softmax(40_000, classes=4, radius=5.0, seed=2)
    P = softmax(stream.X @ stream.weights.T, axis=1)
    for k in range(4):
        spread = math.sqrt((P[:, k] * (1 - P[:, k])).sum())
        assert abs((stream.y == k).sum() - P[:, k].sum()) < 5 * spread
        assert np.cov(stream.y == k, P[:, k])[0, 1] == pytest.approx(P[:, k].var(), rel=0.1)


def test_sparse_signal_is_sparse():
    assert np.count_nonzero(streams.sparse_signal(10, d=50, relevant=7).weights) == 7


def test_drifting_weights_go_around():
    w = streams.drifting(1000, d=6, turns=2.0).weights
    assert w[0] == pytest.approx(w[500])
    assert w[0] == pytest.approx(-w[250])
    assert np.linalg.matrix_rank(w) == 2


def test_separable_has_its_margin_and_the_perceptron_its_bound():
    stream = streams.separable(5000, margin=0.2)
    assert (stream.y * (stream.X @ stream.weights)).min() >= 1 - 1e-12
    learner = Perceptron()
    forecast = learner.predict_then_learn(stream.X, stream.y)
    mistakes = np.sum(np.where(forecast > 0, 1, -1) != stream.y)
    assert mistakes <= (np.linalg.norm(stream.X, axis=1).max() / 0.2) ** 2


def test_noise_flips_its_share_of_labels():
    clean, noisy = streams.separable(20_000, seed=5), streams.label_noise(20_000, flip=0.2, seed=5)
    assert np.array_equal(clean.X, noisy.X)
    assert np.mean(clean.y != noisy.y) == pytest.approx(0.2, abs=0.015)


def test_alternating_losses_defeat_the_leader_and_not_gradient_descent():
    stream = streams.alternating(2000)
    forecast = FollowTheLeader(Box(1.0)).predict_then_learn(stream.X, stream.y)
    assert forecast @ stream.y == 1999
    forecast = OGD(loss="linear", radius=1.0).predict_then_learn(stream.X, stream.y)
    assert forecast @ stream.y < 3 * math.sqrt(2000)


@pytest.mark.parametrize(
    ("learner", "d", "classes"),
    [(AIOLI(radius=2.0), 3, (0, 1)), (FOLKLORE(radius=2.0), 2, ("a", "b", "c")), (Perceptron(), 3, (-1, 1))],
    ids=["AIOLI", "FOLKLORE", "Perceptron"],
)
def test_the_adversary_is_always_against_the_forecast(learner, d, classes):
    trace = play(learner, streams.against_the_forecast(150, d, classes), classes=list(classes))
    assert trace.checkpoints[-1].mistakes == 150
    if trace.kind == "probabilities":
        assert trace.checkpoints[-1].log_loss >= 150 * math.log(len(classes)) - 1e-9
        assert trace.regret[-1][1] <= trace.certificate[-1] + 1e-9


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: streams.logistic(0), "at least 1 row"),
        (lambda: streams.softmax(5, classes=1), "classes=1"),
        (lambda: streams.drifting(5, d=1), "plane"),
        (lambda: streams.separable(5, margin=0.0), "margin"),
        (lambda: streams.label_noise(5, flip=0.7), "flip"),
        (lambda: streams.sparse_signal(5, d=3, relevant=4), "relevant"),
        (lambda: streams.alternating(0), "at least 1 row"),
        (lambda: streams.against_the_forecast(5, classes=(1,)), "2 classes"),
    ],
)
def test_bad_requests_are_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()
