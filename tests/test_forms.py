"""What users hand in: masks, dates, complex numbers, text, names, and labels that are missing or nearly alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from regretless import (
    AIOLI,
    FOLKLORE,
    BadRow,
    Gaptron,
    OnlineLogisticRegression,
    VovkAzouryWarmuth,
    best_in_hindsight,
    load,
)
from regretless.core.rows.labels import Labels, as_labels

X = np.array([[0.5, 0.1], [0.2, -0.3], [-0.4, 0.2], [0.1, 0.1]])
Y = [0, 1, 1, 0]
FRAME = pd.DataFrame(X, columns=["age", "size"])


def masked(values: Any, *at: int) -> np.ma.MaskedArray:
    found = np.ma.array(values)
    found[at] = np.ma.masked
    return found


BAD_ROWS = {
    "masked": (masked(X, 2, 1), "row 2, column 1: the value is masked"),
    "masked rows": ([X[0], masked(X[1], 0), X[2], X[3]], "row 1, column 0: the value is masked"),
    "dates": (X.astype("M8[s]"), "row 0, column 0: .*Encode timestamps"),
    "durations": (X.astype("m8[s]"), "row 0, column 0: .*Encode timestamps"),
    "a date": (
        [[1.0, 2.0], [1.0, np.datetime64("2020-01-01")], [1.0, 2.0], [1.0, 2.0]],
        "row 1, column 1: .*Encode timest",
    ),
    "complex": (X + 1j, "row 0, column 0: .*Complex data not supported"),
    "sparse complex": (sparse.csr_matrix(X + 1j), "Complex data not supported|[Ss]parse"),
    "text": ([["1", "2"], ["1", "x"], ["1", "2"], ["1", "2"]], "row 1, column 1: could not convert 'x'.*OneHotEncoder"),
    "huge": ([[1, 2], [1, 10**400], [1, 2], [1, 2]], "row 1, column 1: .*too large"),
    "uneven": ([[1.0, 2.0], [1.0], [1.0, 2.0], [1.0, 2.0]], "row 1 has 1 values"),
    "frame of text": (FRAME.assign(size=["1", "x", "1", "1"]), r"row 1, column 1 \('size'\): could not convert 'x'"),
    "frame of dates": (FRAME.assign(size=pd.Timestamp("2020")), r"row 0, column 1 \('size'\): .*Encode timestamps"),
    "frame with NA": (FRAME.astype(object).assign(size=[1, pd.NA, 1, 1]), r"row 1, column 1 \('size'\)"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_rows_that_are_no_numbers(name: str) -> None:
    given, words = BAD_ROWS[name]
    learned = VovkAzouryWarmuth().fit(X, Y)
    for call in (
        lambda: VovkAzouryWarmuth().fit(given, Y),
        lambda: learned.predict_then_learn(given, Y),
        lambda: AIOLI().partial_fit(given, Y),
    ):
        with pytest.raises(ValueError, match=words):
            call()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (masked(X[0], 1), "row 0, column 1: the value is masked"),
        (X[0].astype("M8[s]"), "Encode timestamps"),
        (X[0] + 1j, "Complex data"),
        ([1.0, np.complex128(1j)], "Complex data"),
        ([1.0, np.timedelta64(3, "s")], "Encode timestamps"),
        ([1.0, "x"], "row 0, column 1: could not convert 'x'"),
    ],
)
@pytest.mark.parametrize(
    "learner", [AIOLI(), VovkAzouryWarmuth(), OnlineLogisticRegression(missing="error")], ids=lambda each: str(each)
)
def test_one_row_that_is_no_numbers(learner: Any, given: Any, words: str) -> None:
    if isinstance(learner, OnlineLogisticRegression) and "masked" in words:
        words = "row 0, column 1: NaN"
    learner.fit(X, Y)
    for call in (lambda: learner.learn_one(given, 1), lambda: learner.predict_one(given)):
        with pytest.raises(BadRow, match=words):
            call()


def test_a_masked_value_is_a_missing_one() -> None:
    by_mask = OnlineLogisticRegression(missing="mean").fit(masked(X, 2, 1), Y)
    with_nan = X.copy()
    with_nan[2, 1] = np.nan
    by_nan = OnlineLogisticRegression(missing="mean").fit(with_nan, Y)
    np.testing.assert_array_equal(by_mask.predict_proba(X), by_nan.predict_proba(X))


def test_bad_cells_are_skipped_where_asked() -> None:
    given = X.astype(object)
    given[1, 0] = "x"
    learner = OnlineLogisticRegression(missing="error", on_bad_row="skip").fit(given, Y)
    assert learner.bad_rows_ == 1


@pytest.mark.parametrize("name", ["y", "sample_weight"])
@pytest.mark.parametrize(
    "given",
    [masked(np.ones(4), 2), np.array([1, 1, 1j, 1]), np.ones(4).astype("M8[s]"), [1, 1, "x", 1], [1, 1, None, 1]],
    ids=["masked", "complex", "dates", "text", "None"],
)
def test_targets_and_weights_that_are_no_numbers(name: str, given: Any) -> None:
    learner = VovkAzouryWarmuth()
    with pytest.raises(BadRow, match=r"row (2|0)"):
        learner.fit(X, **({"y": given} if name == "y" else {"y": Y, "sample_weight": given}))
    assert not hasattr(learner, "state_")


@pytest.mark.parametrize(
    "learner", [AIOLI(), OnlineLogisticRegression(), VovkAzouryWarmuth()], ids=lambda each: str(each)
)
def test_a_series_has_names(learner: Any) -> None:
    learner.fit(FRAME, Y)
    for wrong in (pd.Series(X[0], index=["size", "age"]), pd.Series(X[0], index=["a", "b"])):
        for call in (lambda: learner.learn_one(wrong, 1), lambda: learner.predict_one(wrong)):  # noqa: B023
            with pytest.raises(ValueError, match="feature names should match"):
                call()
    assert learner.predict_one(FRAME.iloc[1]) == learner.predict(FRAME)[1]
    learner.learn_one(FRAME.iloc[1], 1)
    learner.learn_one(pd.Series(X[1]), 1)


def test_the_first_row_may_be_a_series() -> None:
    learner = AIOLI()
    learner.learn_one(FRAME.iloc[0], 1, classes=[0, 1])
    assert learner.feature_names_in_.tolist() == ["age", "size"]


def test_a_bandit_knows_names_too(tmp_path: Any) -> None:
    learner = Gaptron(n_classes=2)
    action, _ = learner.act(FRAME.iloc[0])
    with pytest.raises(ValueError, match="feature names should match"):
        learner.feedback(pd.Series(X[0], index=["size", "age"]), action, True)
    learner.feedback(FRAME.iloc[0], action, True)
    with pytest.raises(BadRow, match="row 0, column 1"):
        learner.act(masked(X[1], 1))
    learner.save(tmp_path / "model")
    with pytest.raises(ValueError, match="feature names should match"):
        load(tmp_path / "model").act(pd.Series(X[0], index=["size", "age"]))


def test_hindsight_reads_the_same_forms() -> None:
    with pytest.raises(BadRow, match="row 2, column 1"):
        best_in_hindsight(masked(X, 2, 1), Y)


# ---------------------------------------------------------------------- labels

MISSING = [float("nan"), None, pd.NA, pd.NaT, np.ma.masked]


@pytest.mark.parametrize("nothing", MISSING, ids=repr)
@pytest.mark.parametrize("make", [AIOLI, FOLKLORE, OnlineLogisticRegression])
def test_a_missing_label_is_no_class(make: Any, nothing: Any) -> None:
    labels = np.array(["a", "b", "b", "a"], dtype=object)
    y: Any = masked(labels, 2) if nothing is np.ma.masked else labels.copy()
    if nothing is not np.ma.masked:
        y[2] = nothing
    learner = make()
    with pytest.raises(BadRow, match=r"row 2.*missing"):
        learner.fit(X, y)
    assert not hasattr(learner, "state_")
    learner.fit(X, labels)
    with pytest.raises(BadRow, match=r"row 2.*missing"):
        learner.partial_fit(X, y)
    if nothing is not np.ma.masked:
        with pytest.raises(BadRow, match=r"row 2.*missing"):
            make().fit(X, y.tolist())
        with pytest.raises(BadRow, match="missing"):
            make().partial_fit(X, labels, classes=["a", "b", nothing])
    with pytest.raises(BadRow, match="missing"):
        learner.learn_one(X[0], nothing)


ALIKE = [
    ["a", "a\0"],
    [b"a", b"a\0"],
    ["a", b"a"],
    [2**63, 2**63 + 1, -1],
    [2**53, 2**53 + 1, 0.5],
    ["1", 1],
]


@pytest.mark.parametrize("labels", ALIKE, ids=repr)
def test_labels_that_are_nearly_alike_stay_two(labels: list[Any]) -> None:
    assert as_labels(labels).tolist() == labels
    found = Labels.of(None, labels)
    assert found.codes(as_labels(labels))[0].tolist() == list(range(len(labels)))


@pytest.mark.parametrize("label", [(1, 2), np.timedelta64(3, "s")], ids=repr)
def test_labels_of_any_kind_are_learned_whole(label: Any) -> None:
    y = np.array(["a", "b", "b", None], dtype=object)
    y[3] = label
    assert set(OnlineLogisticRegression().fit(X, y).classes_.tolist()) == {"a", "b", label}


def test_dates_are_no_labels() -> None:
    with pytest.raises(ValueError, match="astype"):
        AIOLI().fit(X, np.array(Y).astype("M8[D]"))


KINDS: list[Any] = [
    ["a", "bbb"],
    np.array(["a", "bbb"], dtype=object),
    [b"a", b"bbb"],
    [b"a", "bbb"],
    [False, True],
    np.array([1, 2], dtype=np.int8),
    np.array([1, 2], dtype=">u2"),
    [2**40, 1],
    [2**70, 1],
    np.array([1, 2], dtype=np.float16),
    ["a", 2.5],
    ["a", "a\0"],
]


@pytest.mark.parametrize("labels", KINDS, ids=repr)
@pytest.mark.parametrize("make", [AIOLI, OnlineLogisticRegression])
def test_a_file_read_and_written_is_the_same_file(make: Any, labels: Any, tmp_path: Any) -> None:
    y = [labels[code] for code in Y]
    learner = make().fit(X, np.array(y, dtype=labels.dtype) if isinstance(labels, np.ndarray) else y)
    learner.save(tmp_path / "one")
    again = load(tmp_path / "one")
    again.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert again.classes_.tolist() == learner.classes_.tolist()
    assert [type(label) for label in again.classes_] == [type(label) for label in learner.classes_]
