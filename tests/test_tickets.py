"""Forecasts before the first label, labels that come later, learners as bytes, and weights of classes."""

import math
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import regretless
from learners import ONE_PER_PATH, Entry, assert_same_state, play, refused
from regretless import AIOLI, OGD, OnlineBoosting, OnlineLogisticRegression, Perceptron, VovkAzouryWarmuth
from regretless.core.files import packed

ROWS = [{"amount": float(i % 7), "country": "fr" if i % 3 else "de"} for i in range(30)]
LABELS = ["yes" if i % 7 > 3 else "no" for i in range(30)]


# ---------------------------------------------------------------------- begin


@pytest.mark.parametrize("entry", ONE_PER_PATH, ids=str)
def test_begun_learners_play_the_same_game(entry: Entry) -> None:
    stream = entry.stream("uneven")
    begun = entry.new().begin(stream.X.shape[1], **entry.first)
    before = entry.forecast(begun, stream.X[:3])
    learner, forecasts = play(entry, stream)
    np.testing.assert_array_equal(before[0], forecasts[0])
    if entry.probabilities and not isinstance(begun, OnlineBoosting):  # which has a prior of its own
        np.testing.assert_allclose(before, 1.0 / entry.n_classes, atol=0.01)  # some learners sample
    begun.predict_then_learn(*stream)
    assert_same_state(begun, learner)
    with pytest.raises(ValueError, match="has begun already"):
        begun.begin(3, **entry.first)


def test_begin_with_names_reads_dictionaries_and_frames() -> None:
    named = OnlineLogisticRegression().begin(["amount", "country"], classes=["no", "yes"])
    assert named.column_kinds_ == ("unknown", "unknown")
    np.testing.assert_array_equal(named.predict_proba_one(ROWS[0]), [0.5, 0.5])
    named.partial_fit(ROWS, LABELS)
    assert named.to_bytes() == OnlineLogisticRegression().partial_fit(ROWS, LABELS, classes=["no", "yes"]).to_bytes()


@pytest.mark.parametrize("features", [2**18, ["amount"]])
def test_begin_with_wide_rows(features: Any) -> None:
    learner = OnlineLogisticRegression(sparse="auto" if features == 2**18 else True).begin(features, classes=[0, 1])
    row: Any = {"amount": 1.0} if isinstance(features, list) else sparse.csr_array(([1.0], ([0], [7])), (1, features))
    np.testing.assert_array_equal(learner.predict_proba_one(row), [0.5, 0.5])
    learner.learn_one(row, 1)
    assert learner.predict_proba_one(row)[1] > 0.5


def test_begin_without_classes_waits_for_labels() -> None:
    learner = OnlineLogisticRegression().begin(2)
    with pytest.raises(ValueError, match="no class to forecast"):
        learner.predict_proba_one([0.0, 1.0])
    learner.learn_one([0.0, 1.0], "a")
    assert learner.classes_.tolist() == ["a"]


@pytest.mark.parametrize("features", [0, -1, 2.5, [], ["a", "a"], [1, 2]])
def test_begin_refuses_features(features: Any) -> None:
    learner = AIOLI()
    with pytest.raises((ValueError, TypeError), match=r"features|float"):
        learner.begin(features, classes=[0, 1])
    assert not hasattr(learner, "state_") and not hasattr(learner, "n_features_in_")


def test_begin_needs_classes() -> None:
    with pytest.raises(ValueError, match="no classes are declared"):
        AIOLI().begin(3)


# ---------------------------------------------------------------------- tickets


@pytest.mark.parametrize("entry", ONE_PER_PATH, ids=str)
def test_tickets_without_delay_are_the_plain_game(entry: Entry) -> None:
    stream = entry.stream("uneven")
    learner = entry.new().begin(stream.X.shape[1], **entry.first)
    for x, y in zip(stream.X, stream.y, strict=True):
        settled = learner.learn(learner.forecast(x), y)
        assert settled.delay == 0 and settled.cost == 0.0
    rows = entry.new()
    for x, y in zip(stream.X, stream.y, strict=True):
        rows.learn_one(x, y, **({} if hasattr(rows, "state_") else entry.first))
    assert_same_state(learner, rows)


def test_what_a_delay_costs() -> None:
    """Served loss - the best in hindsight <= certificate + the sum of the costs, by the definition of the costs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) / 3.0
    y = (X @ [3.0, -1.0, 0.0] > rng.logistic(size=300)).astype(int)
    learner = AIOLI(radius=3.0).begin(3, classes=[0, 1])
    waiting: list[Any] = []
    served = cost = 0.0
    for t in range(len(X) + 20):
        if t < len(X):
            waiting.append((learner.forecast(X[t]), y[t]))
        if t >= 20:
            settled = learner.learn(*waiting.pop(0))

            served, cost = served + settled.loss, cost + settled.cost
    assert served == pytest.approx(learner.total_loss_ + cost)
    best = regretless.best_in_hindsight(X, y, domain=learner.competes_with.domain)
    assert served - best.loss <= learner.regret_certificate() + cost


def test_a_ticket_keeps_its_row_and_its_forecast() -> None:
    learner = AIOLI().begin(2, classes=["no", "yes"])
    x = np.array([1.0, 0.0])
    ticket = learner.forecast(x)
    x[:] = 7.0
    learner.learn_one([1.0, 0.0], "yes")
    settled = learner.learn(ticket, "yes")
    assert settled.loss == pytest.approx(math.log(2)) and settled.loss_now < settled.loss
    twice = AIOLI().begin(2, classes=["no", "yes"])
    for _ in range(2):
        twice.learn_one([1.0, 0.0], "yes")
    assert_same_state(learner, twice)


def test_tickets_are_refused_and_change_nothing() -> None:
    learner = AIOLI().begin(2, classes=["no", "yes"])
    ticket = learner.forecast([0.0, 1.0])
    before = learner.to_bytes()
    with refused("unknown label", "not one of the classes"):
        learner.learn(ticket, "maybe")
    with refused("a row", "takes a ticket", TypeError):
        learner.learn([0.0, 1.0], "no")
    with refused("weight", "sample_weight"):
        learner.learn(ticket, "no", sample_weight=-1.0)
    assert learner.to_bytes() == before
    learner.learn(ticket, "no")  # it is still open
    with refused("twice", "learned already"):
        learner.learn(ticket, "no")
    with pytest.raises(ValueError, match="not fitted"):
        AIOLI().forecast([0.0])


def test_tickets_of_numbers_classes_and_new_labels() -> None:
    regressor = VovkAzouryWarmuth().begin(1)
    assert regressor.learn(regressor.forecast([1.0]), 3.0).loss == 9.0
    votes = Perceptron().begin(1, classes=[0, 1])
    assert votes.learn(votes.forecast([1.0]), 1 - votes.forecast([1.0]).forecast).loss == 1.0
    growing = OnlineLogisticRegression().partial_fit([[1.0], [2.0]], ["a", "b"])
    ticket = growing.forecast([1.0])
    assert growing.learn(ticket, "c").loss == math.inf
    assert growing.classes_.tolist() == ["a", "b", "c"]


def test_a_weighted_ticket_is_a_weighted_row() -> None:
    learner, rows = (OGD().begin(2, classes=[0, 1]) for _ in range(2))
    learner.learn(learner.forecast([1.0, 0.0]), 1, sample_weight=3.0)
    rows.partial_fit([[1.0, 0.0]], [1], sample_weight=[3.0])
    assert_same_state(learner, rows)


# ---------------------------------------------------------------------- bytes


def sealed(data: bytes) -> bytes:
    """Bytes with the right check sum, whatever they are."""
    return data[:4] + struct.pack("<I", zlib.crc32(data[8:])) + data[8:]


def test_every_damaged_byte_is_refused() -> None:
    data = AIOLI().begin(2, classes=[0, 1]).to_bytes()
    for at in range(0, len(data), 7):
        with pytest.raises(ValueError, match="damaged"):
            AIOLI.from_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(ValueError, match="damaged"):
            AIOLI.from_bytes(data[:at])


def test_lying_bytes_are_refused() -> None:
    learner = AIOLI().begin(2, classes=[0, 1])
    data = learner.to_bytes()
    for old, new in (
        (b'["<f8",', b'["|O8",'),
        (b'"<f8",2', b'"<f8",9'),
        (b'"AIOLI"', b'"Popen"'),
        (b"state.P", b"state.Q"),
    ):
        assert old in data
        with pytest.raises(ValueError, match=r"damaged|unknown learner"):
            AIOLI.from_bytes(sealed(data.replace(old, new, 1)))
    with pytest.raises(ValueError, match="left over"):
        packed.unpack(sealed(data + b"1"))
    with pytest.raises(ValueError, match="claims"):
        packed.unpack(sealed(data[:8] + struct.pack("<I", 2**31) + data[12:]))
    with pytest.raises(TypeError, match="to_bytes"):
        AIOLI.from_bytes("text")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="hold a AIOLI, not a OGD"):
        OGD.from_bytes(data)


# ---------------------------------------------------------------------- weights of classes


def test_class_weights_are_sample_weights() -> None:
    weighted = OnlineLogisticRegression(effort="low", class_weight={"yes": 3.0})
    by_row = OnlineLogisticRegression(effort="low")
    p = weighted.predict_then_learn(ROWS, LABELS)
    weight = [3.0 if label == "yes" else 1.0 for label in LABELS]
    np.testing.assert_array_equal(p, by_row.predict_then_learn(ROWS, LABELS, sample_weight=weight))
    weighted.learn_one(ROWS[4], "yes")
    by_row.partial_fit([ROWS[4]], ["yes"], sample_weight=[3.0])
    assert_same_state(weighted, by_row)
    again = OnlineLogisticRegression.from_bytes(weighted.to_bytes())
    assert again.class_weight == {"yes": 3.0}


@pytest.mark.parametrize("weights", ["balanced", {"yes": 0.0}, {"yes": "2"}, {"yes": math.inf}])
def test_class_weights_that_are_refused(weights: Any) -> None:
    with pytest.raises(ValueError, match="class_weight"):
        OnlineLogisticRegression(class_weight=weights).partial_fit(ROWS, LABELS)


def test_class_weights_need_labels() -> None:
    with pytest.raises(ValueError, match="give sample_weight"):
        OnlineLogisticRegression(class_weight={0: 2.0}).partial_fit([[1.0]], np.array([[0.5, 0.5]]))
