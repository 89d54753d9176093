"""OnlineLogisticRegression's encoder: schemas, tables, blocks of rows, one row, and where a block is cut."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from regretless import BadRow
from regretless.core.rows.labels import Labels
from regretless.learners.logistic.encoder import Encoder, as_rows, kind_of_rows, number_of, take_rows
from regretless.learners.logistic.offsets import VARIANCES, slot_of
from regretless.learners.logistic.schema import (
    AT_SIGHT,
    CATEGORY,
    MISSING,
    MOST_RARE,
    NUMBER,
    OFFSET,
    UNKNOWN,
    Level,
    Schema,
)
from regretless.learners.logistic.segments import PartPlay, Segment, read
from regretless.learners.logistic.settings import Settings
from regretless.learners.logistic.slots import Slots
from regretless.learners.logistic.tables import Columns, Dictionaries, as_numbers, frame_columns

SHOP = Schema(
    (NUMBER, CATEGORY, NUMBER),
    (Level(1, CATEGORY, "fr"), Level(0, MISSING), Level(2, NUMBER), Level(1, CATEGORY, "xx")),
    indicators=True,
    rare=frozenset({(1, "zz")}),
)


def encoder_of(schema: Schema, names: str | None = None, **parameters: Any) -> Encoder:
    """An encoder with that schema; `names` has one letter per column."""
    estimator = SimpleNamespace(n_features_in_=len(schema.kinds))
    if names is not None:
        estimator.feature_names_in_ = list(names)
    missing = "indicator" if schema.indicators else parameters.pop("missing", "mean")
    return Encoder.start(estimator, Settings(missing=missing, **parameters)).with_schema(schema)


def table_of(rows: list[dict[str, Any]]) -> Dictionaries:
    return Dictionaries(rows, list(rows[0]))


# ---------------------------------------------------------------------- schemas


def test_the_layout_of_a_schema() -> None:
    assert SHOP.width == 1 + 4
    assert SHOP.number_columns == [0, 2]
    assert SHOP.other_columns == [1]
    assert SHOP.missing_places == {0: 2}
    assert SHOP.number_places.tolist() == [0, 3]
    assert SHOP.category_places == {1: {"fr": 1, "xx": 4}}
    assert SHOP.counts() == {1: 2}
    assert SHOP.rare_counts == {1: 1}
    assert SHOP.has_settled(1, "zz", most=2)
    assert not SHOP.has_settled(1, "zz", most=3)  # it would get a column
    assert not SHOP.has_settled(1, "new", most=2)  # it would be counted
    assert not SHOP.is_numeric
    assert Schema((NUMBER,), indicators=True).is_numeric
    marked = Schema((NUMBER,), (Level(0, MISSING),), indicators=True)
    assert marked.is_numeric
    assert not marked.is_identity
    assert Schema((NUMBER,)).is_identity
    assert not Schema((UNKNOWN,)).is_numeric
    assert Schema((NUMBER, UNKNOWN)).width == 1


def test_new_categories_were_0_in_all_rows_and_late_numbers_in_none() -> None:
    before = Schema(SHOP.kinds, SHOP.levels[:1], True)
    assert SHOP.rows_seen(before, 7.0).tolist() == [7.0, 0.0, 7.0]
    assert SHOP.rows_seen(SHOP, 7.0).size == 0


def test_a_schema_through_a_file() -> None:
    assert Schema.from_file(**SHOP.to_file()) == SHOP
    for wrong in (
        {"kinds": ["colour"]},
        {"kinds": "number"},
        {"levels": [[9, CATEGORY, "a"]]},
        {"levels": [[0, CATEGORY, "a"]]},
        {"levels": [[1, NUMBER, None]]},
        {"levels": [[1, CATEGORY, math.nan]]},
        {"levels": [[1, CATEGORY, "fr"], [1, CATEGORY, "fr"]]},
        {"levels": [["1", CATEGORY, "fr"]]},
        {"levels": [[1, "fr"]]},
        {"levels": [[1, "colour", None]]},
        {"indicators": 1},
        {"indicators": False},
        {"rare": {}},
        {"rare": [[0, "a"]]},
        {"rare": [[1, "fr"]]},
        {"rare": [[1, f"level {i}"] for i in range(MOST_RARE + 1)]},
        {"coded": 1},
        {"coded": [0]},
        {"coded": [9]},
        {"coded": ["1"]},
        {"coded": [1]},  # without columns of offsets
        {"levels": [[1, OFFSET, 0]]},  # and the other way round
        {"coded": [1], "levels": [[1, OFFSET, i] for i in range(2)]},
        {"coded": [1, 1], "levels": [[1, OFFSET, i] for i in range(len(VARIANCES))]},
    ):
        with pytest.raises(ValueError, match=r"kinds|categor|indicators|late column|level|rare|coded|offsets"):
            Schema.from_file(**(SHOP.to_file() | wrong))
    encoder = encoder_of(SHOP, "abc")
    assert encoder.from_file(**SHOP.to_file()) == encoder
    coded = SHOP.with_code(1)
    assert coded.offset_places.tolist() == [5, 6, 7] and coded.singly.tolist() == [1, 4]
    assert Schema.from_file(**coded.to_file()) == coded
    with pytest.raises(ValueError, match="max_categories"):
        encoder_of(SHOP, "abc", max_categories=1).from_file(**SHOP.to_file())
    with pytest.raises(ValueError, match="1 entries for 3 features"):
        encoder.from_file(kinds=[NUMBER], levels=[], indicators=True, rare=[], coded=[])
    with pytest.raises(ValueError, match="indicators contradict"):
        encoder.from_file(**Schema(SHOP.kinds).to_file())


# ---------------------------------------------------------------------- tables


def test_columns_and_dictionaries_are_the_same_table() -> None:
    rows = [{"a": 1.0, "b": "x"}, {"b": "y", "a": 2}, {"a": None}]
    by_row, by_column = Dictionaries(rows, ["a", "b"]), Columns([[1.0, 2, None], ["x", "y", None]])
    for table in (by_row, by_column):
        assert number_of(table) == 3
        assert table.value(1, 1) == "y"
        assert list(table.column(0)) == [1.0, 2, None]
        assert [list(row) for row in table.rows([1])] == [["x"], ["y"], [None]]
        assert [list(row) for row in table.rows([])] == [[], [], []]
        np.testing.assert_array_equal(table.numbers([0]), [[1.0], [2.0], [np.nan]])
    other = Dictionaries([{"c": 1, "a": 2}, {"b": 3, "a": 4}], ["a", "b"])
    assert other.values == [[2, None], [4, 3]] and other.foreign() == {0: ["c"]}


def test_values_as_numbers() -> None:
    given = [1, 2.5, True, np.float64(3.0), None, math.nan, "4", 1j, 10**400, np.datetime64("2020-01-01"), [1.0]]
    expected = [1, 2.5, 1, 3, np.nan, np.nan, 4, np.inf, np.inf, np.inf, np.inf]
    np.testing.assert_array_equal(as_numbers(given), expected)
    np.testing.assert_array_equal(as_numbers(np.array([1, 2])), [1.0, 2.0])


def test_frames_become_columns() -> None:
    pl = pytest.importorskip("polars")
    columns = frame_columns(pl.DataFrame({"a": [1, 2], "b": ["x", None], "c": [True, None], "d": [None, None]}))
    assert columns is not None
    np.testing.assert_array_equal(columns[0], [1.0, 2.0])
    assert columns[1] == ["x", None]
    np.testing.assert_array_equal(columns[2], [1.0, np.nan])
    assert columns[3] == [None, None]
    for other in ([[1.0]], np.ones((1, 1)), sparse.csr_array((1, 1)), object()):
        assert frame_columns(other) is None
    day = datetime.date(2020, 1, 1)
    assert frame_columns(pl.DataFrame({"when": [day]})) == [[day]]
    with pytest.raises(ValueError, match=r"column 'long' has type Duration.*, which is not supported"):
        frame_columns(pl.DataFrame({"long": [datetime.timedelta(days=1)]}))


# ---------------------------------------------------------------------- rows in


class Owner:
    """What `take_rows` asks of an estimator."""

    def __sklearn_tags__(self) -> Any:
        from regretless import OnlineLogisticRegression

        return OnlineLogisticRegression().__sklearn_tags__()


def test_rows_of_every_form_are_taken() -> None:
    pd = pytest.importorskip("pandas")
    forms = {
        "array": np.arange(6.0).reshape(2, 3),
        "lists": [[0, 1, 2], [3, 4, 5]],
        "sparse": sparse.csr_array(np.arange(6.0).reshape(2, 3)),
        "frame": pd.DataFrame({"a": [0, 3], "b": [1, 4], "c": [2, 5]}),
        "dictionaries": [{"a": 0, "b": 1, "c": 2}, {"a": 3, "b": 4, "c": 5}],
    }
    for name, X in forms.items():
        owner: Any = Owner()
        rows = take_rows(owner, X, first=True, skips_bad_rows=False)
        assert owner.n_features_in_ == 3, name
        assert number_of(rows) == 2
        named = name in ("frame", "dictionaries")
        assert hasattr(owner, "feature_names_in_") == named
        assert kind_of_rows(rows) == (UNKNOWN if named else NUMBER)
        encoder = Encoder.start(owner, Settings(), NUMBER)
        block = encoder.encode(rows, np.ones(2, dtype=bool), begun=False)
        np.testing.assert_array_equal(block.rows(slice(0, 2), encoder.schema), np.arange(6.0).reshape(2, 3))


def test_entries_may_come_in_any_order() -> None:
    X = sparse.csr_array((np.array([1.0, 2.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    owner: Any = Owner()
    found = take_rows(owner, X, first=True, skips_bad_rows=False)
    assert found.indices.tolist() == [0, 2] and found.data.tolist() == [2.0, 1.0]
    assert X.indices.tolist() == [2, 0]  # the caller's matrix is not changed


def test_dictionaries_need_names() -> None:
    owner: Any = Owner()
    take_rows(owner, np.ones((1, 2)), first=True, skips_bad_rows=False)
    with pytest.raises(BadRow, match="rows without names: give an array"):
        take_rows(owner, [{"a": 1.0}], first=False, skips_bad_rows=False)


def test_one_row_in_any_form() -> None:
    begun = SimpleNamespace(n_features_in_=2, state_=())
    assert as_rows(begun, {"a": 1}) == [{"a": 1}]
    assert as_rows(begun, [1, 2]).tolist() == [[1.0, 2.0]]
    with pytest.raises(BadRow, match=r"x has shape \(3,\); this learner takes 2 features"):
        as_rows(begun, [1, 2, 3])


# ---------------------------------------------------------------------- blocks


@pytest.mark.parametrize("as_matrix", [np.asarray, sparse.csr_array])
def test_numbers_and_what_is_wrong_with_them(as_matrix: Any) -> None:
    X = np.array([[1.0, 2.0], [np.nan, 4.0], [5.0, np.inf], [6.0, 1e200]])
    encoder = encoder_of(Schema((NUMBER, NUMBER)), on_bad_row="skip")
    block = encoder.encode(as_matrix(X), np.ones(4, dtype=bool), begun=False)
    assert block.bad.tolist() == [False, False, True, True]
    assert block.fault is not None
    assert block.fault[:2] == (2, 1)
    found = block.rows(slice(0, 4), encoder.schema)
    np.testing.assert_array_equal(found, [[1, 2], [np.nan, 4], [5, np.nan], [6, np.nan]])
    with pytest.raises(BadRow, match="row 1, column 0: NaN"):
        encoder_of(Schema((NUMBER, NUMBER)), missing="error").encode(as_matrix(X), np.ones(4, dtype=bool), True)
    with pytest.raises(BadRow, match=r"row 3, column 1 \('b'\): 1e\+200, which is too large.*Scale the features"):
        encoder_of(Schema((NUMBER, NUMBER)), "ab").encode(as_matrix(X[[0, 1, 0, 3]]), np.ones(4, dtype=bool), True)
    with_marks = encoder_of(Schema((NUMBER, NUMBER), indicators=True), on_bad_row="skip")
    block = with_marks.encode(as_matrix(X), np.ones(4, dtype=bool), begun=False)
    assert block.growth == [(1, Schema((NUMBER, NUMBER), (Level(0, MISSING),), indicators=True))]
    grown = block.growth[0][1]
    np.testing.assert_array_equal(block.rows(slice(0, 4), grown)[:, 2:], [[0], [1], [0], [0]])
    np.testing.assert_array_equal(block.rows(slice(0, 1), with_marks.schema), [[1, 2]])
    later = with_marks.with_schema(grown).encode(as_matrix(X[:1]), np.ones(1, dtype=bool), begun=True)
    assert later.growth == []
    np.testing.assert_array_equal(later.rows(slice(0, 1), grown), [[1, 2, 0]])
    assert with_marks.encode_unlearned(as_matrix(X)).growth == []


def test_an_array_has_no_text() -> None:
    with pytest.raises(ValueError, match="columns of text: give a data frame or dictionaries"):
        encoder_of(Schema((CATEGORY,)), "a").encode(np.ones((1, 1)), np.ones(1, dtype=bool), begun=True)


def test_a_block_says_where_its_schema_grows() -> None:
    rows = [
        {"a": 1.0, "b": "p", "c": None},
        {"a": 2.0, "b": "q", "c": None},
        {"a": math.inf, "b": "r", "c": 1.0},
        {"a": None, "b": "q", "c": 3.0},
        {"a": 4.0, "b": "s", "c": 4.0},
    ]
    encoder = encoder_of(Schema((UNKNOWN,) * 3), "abc", on_bad_row="skip", max_categories=2)
    block = encoder.encode(table_of(rows), np.array([True, True, True, True, True]), begun=False)
    assert block.bad.tolist() == [False, False, True, False, False]
    assert [row for row, _ in block.growth] == [0, 1, 3, 4]
    p, q = Level(1, CATEGORY, "p"), Level(1, CATEGORY, "q")
    assert block.growth[0][1] == Schema((NUMBER, CATEGORY, UNKNOWN), (p,))
    after = block.growth[-1][1]
    plain = Schema((NUMBER, CATEGORY, NUMBER), (p, q, Level(2, NUMBER)), rare=frozenset({(1, "s")}))
    assert after == plain.with_code(1)
    expected = [[1, 1, 0, np.nan], [2, 0, 1, np.nan], [np.nan, 0, 0, 1], [np.nan, 0, 1, 3], [4, 0, 0, 4]]
    np.testing.assert_array_equal(block.table[:, :4], expected)
    assert not block.table[:, 4:].any() and block.table.shape[1] == 4 + len(VARIANCES)  # offsets come later
    np.testing.assert_array_equal(block.rows(slice(1, 2), block.growth[1][1]), [[2, 0, 1]])
    np.testing.assert_array_equal(block.rows(slice(4, 5), after), [[4, 0, 0, 4, 0, 0, 0, slot_of("s")]])
    unlearned = encoder.encode_unlearned(table_of(rows))
    assert unlearned.growth == []
    assert unlearned.table.shape == (5, 0)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([1.0, 2, True, None, math.nan, "text", 1e200]),
            st.sampled_from(["p", "q", "r", "s", None, 3.5, ["odd"]]),
            st.booleans(),
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(["mean", "indicator"]),
)
def test_one_row_is_a_block_of_one(values: list[tuple[Any, Any, bool]], missing: str) -> None:
    """Where `encode_one` takes a row, `encode` gives the same numbers and finds nothing new and nothing wrong."""
    start = Schema((UNKNOWN, UNKNOWN), indicators=missing == "indicator")
    encoder = encoder_of(start, "ab", on_bad_row="skip", max_categories=2)
    for t, (number, category, reverse) in enumerate(values):
        row = {"b": category, "a": number} if reverse else {"a": number, "b": category}
        block = encoder.encode(Dictionaries([row], ["a", "b"]), np.ones(1, dtype=bool), begun=t > 0)
        found = encoder.encode_one(row)
        if found is not None:
            assert not block.growth
            assert not block.bad.any()
            np.testing.assert_array_equal(found, block.rows(slice(0, 1), encoder.schema))
        elif block.growth:
            encoder = encoder.with_schema(block.growth[-1][1])


def test_one_row_that_is_usual() -> None:
    plain = encoder_of(Schema((NUMBER, NUMBER)))
    row = np.array([1.0, 2.0])
    block = plain.encode_one(row)
    assert block is not None
    assert np.shares_memory(block, row)
    assert plain.encode_one([1, 2.0]) is not None
    for other in (
        [1.0],
        [1.0, "2"],
        [1.0, math.nan],
        [1.0, 1e200],
        [1, 10**400],
        np.ones(3),
        np.ones((1, 2)),
        {"a": 1},
    ):
        assert plain.encode_one(other) is None
    marked = encoder_of(Schema((NUMBER, NUMBER), (Level(1, MISSING),), indicators=True))
    for x in (row, [1.0, 2.0]):
        assert marked.encode_one(x).tolist() == [[1.0, 2.0, 0.0]]
    for x in ([1.0, math.nan], [1.0], np.ones(3)):
        assert marked.encode_one(x) is None
    named = encoder_of(SHOP, "abc", max_categories=2)
    assert named.encode_one(np.ones(3)) is None
    for x, expected in (
        ({"a": 1, "b": "xx", "c": 2.5}, [1, 0, 0, 2.5, 1]),
        ({"a": 1, "b": "zz", "c": 2.5}, [1, 0, 0, 2.5, 0]),  # beyond max_categories
        ({"b": "xx", "a": 1, "c": 2.5}, [1, 0, 0, 2.5, 1]),  # in another order
        ({"b": "xx", "c": 2.5}, [math.nan, 0, 1, 2.5, 1]),  # a value is missing, and its indicator is there
        ({"a": None, "b": "xx", "c": 2.5}, [math.nan, 0, 1, 2.5, 1]),
    ):
        assert np.array_equal(named.encode_one(x), [expected], equal_nan=True)
        whole = named.encode(Dictionaries([x], list("abc")), np.ones(1, dtype=bool), begun=True)
        assert np.array_equal(whole.table, [expected], equal_nan=True) and not whole.growth
    for x in (
        {"a": 1, "b": "xx"},
        {"a": 1, "b": "xx", "c": 2.5, "new": 1.0},
        {"a": "1", "b": "xx", "c": 2.5},
        {"a": 1, "b": None, "c": 2.5},
        {"a": 1, "b": ["xx"], "c": 2.5},
        {"a": 1, "b": "xx", "c": 10**400},
    ):
        assert named.encode_one(x) is None
    assert encoder_of(SHOP, "abc").encode_one({"a": 1, "b": "zz", "c": 2.5}) is None  # it gets a column
    assert named.encode_one({"a": 1, "b": "new", "c": 2.5}) is None  # it is counted


def test_rare_categories_get_a_column_when_they_come_back() -> None:
    names = [f"level {i}" for i in range(AT_SIGHT + 6)]
    rows = [{"a": name} for name in [*names, *names[-4:], *names[-4:]]]
    whole = encoder_of(Schema((UNKNOWN,)), "a", max_categories=AT_SIGHT + 3)
    block = whole.encode(table_of(rows), np.ones(len(rows), dtype=bool), begun=False)
    after = block.growth[-1][1]
    assert [level.category for level in after.levels if level.what == CATEGORY] == [*names[:AT_SIGHT], *names[-4:-1]]
    assert after.coded == (0,)
    assert after.rare == {(0, names[-6]), (0, names[-5]), (0, names[-1])}
    parts, marked = whole, []
    for t, row in enumerate(rows):
        found = parts.encode(table_of([row]), np.ones(1, dtype=bool), begun=t > 0)
        for _, schema in found.growth:
            parts = parts.with_schema(schema)
        marked.append(found.rows(slice(0, 1), parts.schema)[0, : parts.schema.width].sum())
    assert parts.schema == after
    assert marked == [1] * AT_SIGHT + [0] * 6 + [1, 1, 1, 0] * 2


# ---------------------------------------------------------------------- segments


def test_a_part_is_cut_where_something_appears() -> None:
    rows = [{"a": "p"}, {"a": "p"}, {"a": "q"}, {"a": "q"}, {"a": "q"}, {"a": "r"}]
    y = ["x", "x", "x", "y", "y", "z"]
    slots = Slots(Labels(np.empty(0)), np.full(2, -1.0), is_open=True)
    part = read(table_of(rows), y, np.ones(6), encoder_of(Schema((UNKNOWN,)), "a"), slots, begun=False)
    grown = dict(part.block.growth)
    assert list(grown) == [0, 2, 5]
    assert part.last_schema == grown[5]
    assert part.arrivals == {0: "x", 3: "y", 5: "z"}
    assert [segment for segment in part.segments(0, 6) if segment.rows.start < segment.rows.stop] == [
        Segment(slice(0, 1), grown[0], True),
        Segment(slice(1, 2), None, False),
        Segment(slice(2, 3), grown[2], False),
        Segment(slice(3, 4), None, True),
        Segment(slice(4, 5), None, False),
        Segment(slice(5, 6), grown[5], True),
    ]
    assert [segment.rows for segment in part.segments(1, 4)] == [slice(1, 2), slice(2, 3), slice(3, 4), slice(4, 4)]


def test_a_part_is_learned_in_steps() -> None:
    slots = Slots(Labels(np.arange(2)), np.array([1.0, 0.0]), is_open=True)
    part = read(np.ones((6, 1)), [0, 1, 1, 2, 0, 1], np.ones(6), encoder_of(Schema((NUMBER,))), slots, begun=True)
    learned: list[Segment] = []

    def learn(segment: Segment, part: Any, out: np.ndarray) -> Iterator[int]:
        learned.append(segment)
        out[segment.rows] = learned.index(segment)
        yield segment.rows.stop

    play = PartPlay(part, np.empty((6, 3)), learn, lambda: np.array([1, 0, 2]))
    assert (play.n, play.at) == (6, 0)
    for stop in (2, 5, 6):
        play.learn_to(stop)
        assert play.at == stop
    rows = [segment.rows for segment in learned if segment.rows.start < segment.rows.stop]
    assert rows == [slice(0, 2), slice(2, 3), slice(3, 4), slice(4, 5), slice(5, 6)]
    assert [segment.rows for segment in learned if segment.new_label] == [slice(3, 4)]
    forecasts, targets = play.results()
    assert forecasts.shape == (6, 3)
    np.testing.assert_array_equal(targets, np.eye(3)[[0, 1, 1, 2, 0, 1]])


def test_bad_rows_of_a_part_have_weight_0() -> None:
    X, y = np.array([[1.0], [np.inf], [2.0]]), np.array([0.0, 1.0, np.nan])
    slots = Slots(Labels(np.arange(2)), np.arange(2.0), is_open=True)
    part = read(X, y, np.full(3, 2.0), encoder_of(Schema((NUMBER,)), on_bad_row="skip"), slots, begun=True)
    assert part.bad.tolist() == [False, True, True]
    assert part.weight.tolist() == [2.0, 0.0, 0.0]
    assert part.last_schema is None
    with pytest.raises(BadRow, match="row 2: the label is missing"):
        read(X[[0, 0, 2]], y, np.ones(3), encoder_of(Schema((NUMBER,))), slots, begun=True)
