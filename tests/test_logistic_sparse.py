"""OnlineLogisticRegression on wide and sparse rows: its definition, its forms of input, and what it refuses."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import sparse
from scipy.special import log_softmax
from sklearn.datasets import load_digits

import regretless
from learners import through_file
from logistic_reference import mixture
from reference.sparse_logistic import belief, first_order, pair_products, rescale, sketched
from regretless import BadRow, NoBound, OnlineLogisticRegression
from regretless.core.errors import TooLarge
from regretless.core.rows.validate import HEAVIEST
from regretless.learners.logistic import sparse_game, sparse_sketch, sparse_state
from regretless.learners.logistic.hashing import Index, id_of, pair_id, scramble
from regretless.learners.logistic.sparse_members import BELIEFS, FIRST_ORDER, SKETCHED
from regretless.learners.logistic.sparse_rows import MANY_COLUMNS

WIDE = 1 << 24


def some_rows(n: int = 80, d: int = 9, K: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4) * rng.choice([0.01, 1.0, 300.0], size=d)
    return X, np.r_[np.arange(K), rng.integers(0, K, size=n - K)]


def spread_out(X: np.ndarray, width: int = WIDE) -> Any:
    """The same rows, with columns far apart."""
    X = sparse.csr_array(X)
    columns = np.linspace(0, width - 1, X.shape[1]).astype(np.int64)
    return sparse.csr_array((X.data, columns[X.indices], X.indptr), shape=(X.shape[0], width))


def named(X: np.ndarray) -> list[dict[str, float]]:
    return [{f"c{j}": row[j] for j in np.flatnonzero(row)} for row in X.tolist() for row in [np.array(row)]]


def assert_same(one: Any, other: Any) -> None:
    for name, array in one.state_._asdict().items():
        assert np.array_equal(array, getattr(other.state_, name)), name


# ---------------------------------------------------------------------- definition


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("drift", ["none", "track"])
def test_the_forecast_is_the_mixture_of_its_members(K: int, drift: str) -> None:
    X, y = some_rows(K=K)
    rng = np.random.default_rng(5)
    Y = np.where(rng.random((80, 1)) < 0.3, rng.dirichlet(np.ones(K), size=80), np.eye(K)[y])
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], size=80)
    Z = rescale(X, weight)
    found = [first_order(Z, Y, weight, rate, bool(keep)) for rate, keep in FIRST_ORDER]
    members = [logits for logits, _ in found] + [belief(Z, Y, weight, *each) for each in BELIEFS]
    learner = OnlineLogisticRegression(drift=drift)
    p = learner.predict_then_learn(spread_out(X), Y, classes=range(K), sample_weight=weight)
    np.testing.assert_allclose(p, mixture(members, Y, weight, drift == "track"), atol=1e-9)
    losses = [-weight @ np.sum(Y * log_softmax(logits, axis=1), axis=1) for logits in members]
    np.testing.assert_allclose(learner.state_.losses, losses, rtol=1e-9)
    assert len(learner.members_) == learner.weights_.size == len(members) >= 4
    lead = learner.total_loss_ - np.array(losses)
    certificates = [slope + lead[i] for i, (_, slope) in enumerate(found)]
    assert learner.regret_certificate(1.0) == pytest.approx(min(certificates), rel=1e-9)
    assert learner.state_.columns.size == 1 + np.count_nonzero((X * (weight > 0)[:, None]).any(axis=0))


@pytest.mark.parametrize("K", [2, 3])
def test_the_sketched_members(K: int) -> None:
    X, y = some_rows(260, 9, K=K, seed=1)
    X[:, 3:6] = X[:, :1] * np.array([1.0, 2.0, -1.0]) + 0.3 * X[:, 3:6]  # columns that come together
    rng = np.random.default_rng(5)
    Y = np.where(rng.random((260, 1)) < 0.3, rng.dirichlet(np.ones(K), size=260), np.eye(K)[y])
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], size=260)
    learner = OnlineLogisticRegression(sketch=3)
    p = learner.predict_then_learn(spread_out(X), Y, classes=range(K), sample_weight=weight)
    Z = rescale(X, weight)
    lines = np.zeros((learner.state_.columns.size, 1, 2 + 2 * 3))
    sparse_sketch.scatter(lines, np.ones(1, dtype=bool), 0)
    columns = np.linspace(0, WIDE - 1, 9).astype(np.int64)
    order = [learner.state_.columns.tolist().index(column) for column in [*columns, -1]]
    found = [first_order(Z, Y, weight, rate, bool(keep)) for rate, keep in FIRST_ORDER]
    members = [logits for logits, _ in found] + [belief(Z, Y, weight, *each) for each in BELIEFS]
    members += [sketched(Z, Y, weight, *each, lines[order, 0, 2:5]) for each in SKETCHED]
    losses = [-weight @ np.sum(Y * log_softmax(logits, axis=1), axis=1) for logits in members]
    np.testing.assert_allclose(learner.state_.losses, losses, rtol=1e-9)
    np.testing.assert_allclose(p, mixture(members, Y, weight, False), atol=1e-9)
    assert learner.members_[-2] == "Gaussian belief with a sketch of rank 3, learning rate 1, variance 0.1"
    assert len(learner.members_) == learner.weights_.size == len(members)


@pytest.mark.parametrize("K", [2, 3])
def test_regret_is_below_the_certificate(K: int) -> None:
    X, y = some_rows(300, 8, K)
    learner = OnlineLogisticRegression(sparse=True, sketch=4).partial_fit(X, y, classes=range(K))
    Z = learner.for_comparators(sparse.csr_array(X)).toarray()
    np.testing.assert_allclose(np.sort(np.abs(Z).sum(axis=0)), np.sort(np.abs(rescale(X, np.ones(300))).sum(axis=0)))
    best = regretless.best_in_hindsight(Z, y, learner.competes_with.loss, learner.competes_with.domain)
    assert learner.total_loss_ - best.loss <= learner.regret_certificate() + 1e-9
    with pytest.raises(NoBound, match="regret_certificate"):
        learner.regret_bound()


def covariance(state: Any, k: int) -> np.ndarray:
    """That of vector k of the sketched weights."""
    lines, r = state.sketch_lines[:, k], state.sketch_shift.shape[1]
    v, VF = lines[:, 1], lines[:, 1:2] * lines[:, 2 : 2 + r]
    return np.diag(v) - VF @ (np.eye(r) - state.sketch_inverse[k]) @ VF.T


def test_a_class_that_comes_late_changes_no_sketched_weight() -> None:
    X, _ = some_rows(100, 6)
    wide = spread_out(X)
    learner = OnlineLogisticRegression(sketch=3).partial_fit(wide, np.arange(100) % 2)
    every = np.arange(learner.state_.columns.size)
    before = sparse_sketch.weights(sparse_state.sketch_of(learner.state_), every)
    grown, _ = sparse_game.meet_class(
        learner.state_, learner._encoder.index, learner._encoder.encode_unlearned(wide[:1]).entries, False, True
    )
    after = sparse_sketch.weights(sparse_state.sketch_of(grown), every)
    np.testing.assert_allclose(after[:, :, :2], before * [-0.5, 0.5], atol=1e-14)
    assert np.all(after[1:, :, 2] == 0.0)
    for k in range(2):  # each class has half of the margin's covariance, in both members
        np.testing.assert_allclose(covariance(grown, k), 0.5 * covariance(learner.state_, 0), atol=1e-14)
        np.testing.assert_allclose(covariance(grown, 3 + k), 0.5 * covariance(learner.state_, 1), atol=1e-14)


def test_a_sketch_learns_correlated_columns_faster() -> None:
    X, y = load_digits(return_X_y=True)
    plain, sketched = (OnlineLogisticRegression(sparse=True, sketch=r).partial_fit(X, y % 2) for r in (0, 5))
    assert sketched.total_loss_ < 0.9 * plain.total_loss_
    assert "sketch of rank 5" in sketched.report()


def test_a_sketch_is_for_sparse_rows_alone() -> None:
    X, y = some_rows(30, 4)
    one, other = (OnlineLogisticRegression(sketch=r).partial_fit(X, y) for r in (0, 5))
    assert not other._is_sparse
    assert_same(one, other)


@pytest.mark.parametrize("weight", [1e-300, HEAVIEST])
def test_a_sketch_at_absurd_weights_and_without_curvature(weight: float) -> None:
    X, y = some_rows(120, 6, 3)
    for rows in (X, np.zeros((120, 6)), np.where(X != 0, 1e-300, 0.0)):
        for intercept in (True, False):
            learner = OnlineLogisticRegression(sparse=True, sketch=3, fit_intercept=intercept)
            p = learner.predict_then_learn(rows, y, sample_weight=np.full(120, weight))
            assert np.isfinite(p).all()
            assert all(np.isfinite(array).all() for array in learner.state_)


def test_certificate_of_many_columns_is_far_below_that_of_their_number() -> None:
    rng = np.random.default_rng(0)
    X = sparse.random_array((2000, WIDE), density=5 / WIDE, format="csr", rng=rng)
    learner = OnlineLogisticRegression().fit(X, rng.random(2000) < 0.1)
    assert learner.regret_certificate() < 2000


# ---------------------------------------------------------------------- the same game, however it is played


@pytest.mark.parametrize("sketch", [0, 4])
@pytest.mark.parametrize("K", [2, 3])
def test_blocks_files_copies_and_names_do_not_matter(K: int, sketch: int, tmp_path: Path) -> None:
    X, y = some_rows(120, 7, K)
    y = np.sort(y)[np.r_[0:60, 119:59:-1]]  # classes arrive late
    wide = spread_out(X)
    once = OnlineLogisticRegression(sketch=sketch)
    p = once.predict_then_learn(wide, y)
    cut = OnlineLogisticRegression(sketch=sketch)
    said = []
    for rows in np.split(np.arange(120), [1, 2, 30, 31, 77]):
        said.append(np.zeros((len(rows), K)))
        if hasattr(cut, "classes_") and cut.classes_.size == K:
            said[-1][:] = cut.predict_then_learn(wide[rows], y[rows])
        else:
            cut.partial_fit(wide[rows], y[rows])
            said[-1][:] = p[rows]
        cut = copy.deepcopy(pickle.loads(pickle.dumps(through_file(cut, tmp_path))))
        cut = joblib.load(joblib.dump(cut, tmp_path / "cut.joblib")[0], mmap_mode="r")  # read-only arrays
    assert_same(once, cut)
    np.testing.assert_array_equal(np.concatenate(said), p)
    once.save(tmp_path / "one.npz")
    cut.save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    one_by_one, names = (OnlineLogisticRegression(sparse=True, sketch=sketch) for _ in range(2))
    names.partial_fit(named(X), y)
    for row, label in zip(named(X), y.tolist(), strict=True):
        one_by_one.learn_one(row, label)
    assert_same(one_by_one, names)
    np.testing.assert_allclose(names.state_.table, once.state_.table, rtol=1e-12)
    np.testing.assert_array_equal(names.predict_proba(named(X[:9])), [names.predict_proba_one(x) for x in named(X[:9])])
    again = through_file(names, tmp_path)
    again.learn_one(named(X)[5], y[5])
    names.learn_one(named(X)[5], y[5])
    assert_same(again, names)


def test_forecasts_change_nothing_and_equal_those_before_learning() -> None:
    X, y = some_rows(60, 7)
    wide = spread_out(X)
    learner = OnlineLogisticRegression().partial_fit(wide[:40], y[:40])
    before = pickle.dumps((learner.state_, learner._encoder.index))
    p = learner.predict_proba(wide[40:41])
    learner.predict_proba(wide)
    assert pickle.dumps((learner.state_, learner._encoder.index)) == before
    np.testing.assert_array_equal(p, learner.predict_then_learn(wide[40:41], y[40:41]))


def test_rows_of_weight_0_and_unlearned_rows_add_no_columns() -> None:
    learner = OnlineLogisticRegression(sparse=True, classes=["no", "yes"])
    learner.partial_fit([{"a": 1.0}, {"b": 2.0}], ["no", "yes"], sample_weight=[1.0, 0.0])
    learner.predict_proba([{"c": "x", "a": 2.0}])
    assert learner.n_features_in_ == 1
    assert "b" not in learner._encoder.known
    learner.learn_one({"b": "text"}, "yes")  # what it held in the row of weight 0 does not count


def test_memory_is_that_of_the_columns_seen() -> None:
    rng = np.random.default_rng(0)
    X = sparse.csr_array((np.ones(3000), rng.integers(0, WIDE, 3000), np.arange(0, 3001, 3)), shape=(1000, WIDE))
    X.sum_duplicates()
    OnlineLogisticRegression().partial_fit(X[:10], np.arange(10) % 2)
    tracemalloc.start()
    learner = OnlineLogisticRegression().partial_fit(X, rng.integers(0, 2, 1000))
    learner.predict_proba(X)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 6e6
    assert learner.state_.columns.size == 1 + np.unique(X.indices).size


# ---------------------------------------------------------------------- which rows are wide


def test_which_rows_are_sparse() -> None:
    y = [0, 1]
    narrow, wide = sparse.csr_array(np.eye(2, MANY_COLUMNS)), sparse.csr_array(np.eye(2, MANY_COLUMNS + 1))
    many = [dict.fromkeys(map(str, range(MANY_COLUMNS + 1)), 1.0)] * 2

    def is_sparse(X: Any, **params: Any) -> bool:
        return OnlineLogisticRegression(**params).partial_fit(X, y)._is_sparse

    assert not is_sparse(narrow) and is_sparse(wide) and not is_sparse(wide[:, :50].toarray())
    assert is_sparse(many) and not is_sparse([{"a": 1.0}, {"a": 2.0}]) and is_sparse([{"a": 1.0}] * 2, sparse=True)
    assert is_sparse(np.eye(2), interactions="pairs") and not is_sparse(wide, sparse=False)


def test_frames_of_text_are_the_same_rows_as_dictionaries() -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    rows = [{"x": float(i), "site": f"s{i % 7}", "ok": i % 2 == 0} for i in range(40)]
    y = np.arange(40) % 3
    one, other = OnlineLogisticRegression(sparse=True), OnlineLogisticRegression(sparse=True)
    np.testing.assert_array_equal(one.predict_then_learn(pd.DataFrame(rows), y), other.predict_then_learn(rows, y))
    assert one.n_features_in_ == 2 + 7 + 1  # numbers, texts, and the column that remembers text


# ---------------------------------------------------------------------- bad input


def begun(**params: Any) -> OnlineLogisticRegression:
    X, y = some_rows(20, 5)
    return OnlineLogisticRegression(**params).partial_fit(spread_out(X, 5000), y)


def csr(indices: list[int], data: list[float], width: int = 5000) -> Any:
    X = sparse.csr_array((2, width))
    X.indptr = np.array([0, 1, len(data)])
    X.indices, X.data = np.array(indices), np.array(data)
    return X


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (csr([1, 2], [1.0, np.nan]), "row 1, column 2: .*NaN.*missing="),
        (csr([1, 2], [1.0, np.inf]), "row 1, column 2: .*infinity"),
        (csr([1, 2], [1.0, 1e200]), "row 1, column 2: .*too large.*scale"),
        (csr([1, 7, 7], [1.0, 2.0, 3.0]), "row 1: column 7 occurs twice.*sum_duplicates"),
        (csr([1, 7, 3, 7], [1.0, 2.0, 3.0, 4.0]), "row 1: column 7 occurs twice"),
        (csr([1, -4], [1.0, 2.0]), "row 1: column -4 among 5000.*rebuild"),
        (csr([1, 5000], [1.0, 2.0]), "row 1: column 5000 among 5000.*rebuild"),
        (csr([1, 6000], [1.0, 2.0], 7000), "row 1, column 6000: X has 7000 features, but 5000.*resize"),
        (csr([1], [1.0, 2.0]), "row 1: entries are missing"),
        ([{"a": 1.0}, {"a": 1.0}], "matrix"),
    ],
)
def test_bad_matrices_are_refused_and_change_nothing(X: Any, words: str) -> None:
    learner = begun(missing="error")
    before = pickle.dumps(vars(learner))
    for act in (lambda: learner.partial_fit(X, [0, 1]), lambda: learner.predict_proba(X)):
        with pytest.raises(BadRow, match=words):
            act()
        assert pickle.dumps(vars(learner)) == before
    with pytest.raises(BadRow):
        OnlineLogisticRegression(sparse=True, missing="error").partial_fit(X, [0, 1]).partial_fit(
            csr([0, 1], [1.0, 1.0]), [0, 1]
        )


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (csr([1, 7, 7], [1.0, 2.0, 3.0], 50), "row 1: column 7 occurs twice.*sum_duplicates.*Nothing was learned"),
        (csr([1, 7, 3, 7], [1.0, 2.0, 3.0, 4.0], 50), "row 1: column 7 occurs twice"),
        (csr([1, 50], [1.0, 2.0], 50), "row 1: column 50 among 50.*rebuild"),
    ],
)
def test_bad_matrices_of_few_columns_are_refused_too(X: Any, words: str) -> None:
    rows, y = some_rows(20, 50)
    learner = OnlineLogisticRegression().partial_fit(sparse.csr_array(rows), y)
    assert not learner._is_sparse
    before = pickle.dumps(vars(learner))
    for act in (lambda: learner.partial_fit(X, [0, 1]), lambda: learner.predict_proba(X)):
        with pytest.raises(BadRow, match=words):
            act()
        assert pickle.dumps(vars(learner)) == before
    with pytest.raises(BadRow, match=words):
        OnlineLogisticRegression().partial_fit(X, [0, 1])


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"n": "three"}, "row 1, column 'n': 'three' is text.*numbers before"),
        ({"t": 3.0}, "row 1, column 't': 3.0 is a number.*text before"),
        ({"n": None}, "row 1, column 'n': .*missing"),
        ({"n": float("inf")}, "row 1, column 'n': .*infinity"),
        ({"n": 10**400}, "row 1, column 'n'"),
        ({"n": [1.0]}, "row 1, column 'n': .*neither a number nor text"),
        ({"new": 1.0, "n": 1j}, "row 1, column 'n'"),
    ],
)
def test_bad_dictionaries_are_refused_and_change_nothing(row: dict[str, Any], words: str, tmp_path: Path) -> None:
    learner = OnlineLogisticRegression(sparse=True, missing="error", classes=[0, 1])
    learner.partial_fit([{"n": 1.0, "t": "a"}, {"n": 2.0, "t": "b"}], [0, 1])
    for each in (learner, through_file(learner, tmp_path)):
        each.save(tmp_path / "before.npz")
        with pytest.raises(BadRow, match=words):
            each.partial_fit([{"n": 3.0, "u": "c"}, row], [0, 1])
        with pytest.raises(BadRow, match=words.replace("row 1", "row 0")):
            each.learn_one(row, 1)
        each.save(tmp_path / "after.npz")
        assert (tmp_path / "before.npz").read_bytes() == (tmp_path / "after.npz").read_bytes()
    with pytest.raises(BadRow, match=r"row 1, column 'v': .*text before"):  # within one call
        learner.partial_fit([{"v": "c"}, {"v": 1.0}], [0, 1])
    skipping = OnlineLogisticRegression(sparse=True, missing="error", on_bad_row="skip", classes=[0, 1])
    skipping.partial_fit([{"n": 1.0, "t": "a"}, row], [0, 1])
    assert skipping.bad_rows_ == 1
    assert skipping.state_.columns.size == 4


@pytest.mark.parametrize("missing", ["mean", "indicator"])
def test_missing_values(missing: str) -> None:
    learner = OnlineLogisticRegression(sparse=True, missing=missing, classes=[0, 1])
    p = learner.predict_then_learn([{"a": 1.0}, {"a": None}, {}] * 20, [1, 0, 1] * 20)
    assert (p[-2, 1] < 0.5) == (missing == "indicator" or bool(p[-1, 1] < 0.5))
    X = sparse.csr_array(np.array([[1.0, 0.0], [np.nan, 1.0]] * 20))
    wide = OnlineLogisticRegression(sparse=True, missing=missing).partial_fit(X, [0, 1] * 20)
    assert wide.state_.columns.size == (4 if missing == "indicator" else 3)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"sparse": "yes"}, "sparse='yes'"),
        ({"interactions": "all"}, "interactions='all'.*pairs"),
        ({"interactions": [(0, 0)]}, "interactions"),
        ({"interactions": [(0, 5)]}, "5 is not a column"),
        ({"interactions": "pairs", "interaction_bits": 32}, "interaction_bits=32"),
        ({"interactions": "pairs", "sparse": False}, "sparse"),
        ({"sparse": True, "radii": (1.0,)}, "radii"),
        ({"sketch": -1}, "sketch=-1.*from 0 to 100"),
        ({"sketch": 101}, "sketch=101.*from 0 to 100"),
        ({"sketch": 2.5}, "sketch=2.5.*integer"),
        ({"sketch": True}, "sketch=True.*integer"),
        ({"sketch": None}, "sketch=None.*integer"),
        ({"sketch": 5, "sparse": False}, "sparse rows.*sketch=0"),
    ],
)
def test_bad_parameters(params: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        OnlineLogisticRegression(**params).fit(np.eye(2), [0, 1])


def test_columns_that_do_not_fit_into_memory_are_refused_before_any_row_is_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = sparse.csr_array(np.eye(1000, 2000))
    y = np.arange(1000) % 3
    learner = OnlineLogisticRegression().partial_fit(X[:100], y[:100])
    before = pickle.dumps(vars(learner))
    monkeypatch.setattr(sparse_state, "memory", lambda: 8.0 * sparse_state.size(501, 3, 0))
    with pytest.raises(TooLarge, match=r"1,001 columns seen and 3 classes need .* GiB.*hash.*Nothing was learned"):
        learner.partial_fit(X, y)
    with pytest.raises(TooLarge, match="501 columns seen and 4 classes"):
        learner.partial_fit(X[:500], np.r_[y[:499], 3])
    assert pickle.dumps(vars(learner)) == before
    learner.partial_fit(X, y, sample_weight=np.arange(1000) < 500)  # only the columns of learned rows count
    learner.partial_fit(X[:500], y[:500])
    assert learner.state_.columns.size == 501


def test_merging_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be merged"):
        regretless.merge([begun(), begun()])


@pytest.mark.parametrize(
    "field", ["columns", "scales", "table", "sketch_lines", "sketch_inverse", "sketch_strength", "sketch_turns"]
)
def test_damaged_files_are_refused(field: str, tmp_path: Path) -> None:
    learner = begun(sketch=3)
    learner.save(tmp_path / "good.npz")
    getattr(learner.state_, field)[:] = -7
    learner.save(tmp_path / "bad.npz")
    with pytest.raises(ValueError, match="damaged"):
        regretless.load(tmp_path / "bad.npz")
    assert regretless.load(tmp_path / "good.npz").classes_.size == 2


# ---------------------------------------------------------------------- hashing and interactions


def test_the_index_finds_every_column_and_scrambling_loses_none() -> None:
    rng = np.random.default_rng(0)
    columns = np.unique(np.r_[0, 1, (1 << 61) - 1, rng.integers(0, 1 << 61, 5000), np.arange(0, 1 << 20, 1 << 8)])
    index = Index(np.empty(0, dtype=np.int64))
    shuffled = rng.permutation(columns)
    slots = index.add(np.array([0, columns.size]), shuffled, np.ones(1))
    np.testing.assert_array_equal(slots, np.arange(columns.size))
    np.testing.assert_array_equal(index.find(np.array([0, columns.size]), shuffled), slots)
    assert np.unique([scramble(column) for column in columns.tolist()]).size == columns.size
    assert 2 not in index and int(shuffled[7]) in index
    assert len({id_of("a"), id_of("a", "b"), id_of("ab"), id_of(1), id_of("1"), id_of("a", None, "text")}) == 6


@pytest.mark.parametrize("pairs", ["pairs", [(3, 0), (1, 4)]])
@pytest.mark.parametrize("bits", [18, 2])
def test_interactions_are_products_in_hashed_columns(pairs: Any, bits: int) -> None:
    X, y = some_rows(60, 5, seed=2)
    products = pair_products(X, None if pairs == "pairs" else pairs)
    mask = (1 << bits) - 1
    hashed = [{pair_id(i, j, mask): 0.0 for i, j in row} for row in products]
    for row, found in zip(products, hashed, strict=True):
        for (i, j), value in row.items():
            found[pair_id(i, j, mask)] += value
    columns = {column: 5 + k for k, column in enumerate(sorted({c for row in hashed for c in row}))}
    table = np.zeros((60, 5 + len(columns)))
    table[:, :5] = X
    for t, found in enumerate(hashed):
        for column, value in found.items():
            table[t, columns[column]] = value
    p = OnlineLogisticRegression(interactions=pairs, interaction_bits=bits).predict_then_learn(X, y, classes=[0, 1])
    plain = OnlineLogisticRegression(sparse=True).predict_then_learn(table, y, classes=[0, 1])
    np.testing.assert_allclose(p, plain, atol=1e-12)


def test_interactions_of_names_learn_what_no_linear_model_can() -> None:
    rng = np.random.default_rng(0)
    rows = [{"a": str(i), "b": str(j), "noise": 1.0} for i, j in rng.integers(0, 2, size=(600, 2))]
    y = [row["a"] == row["b"] for row in rows]
    for pairs in ("pairs", [("a", "b")]):
        learner = OnlineLogisticRegression(interactions=pairs).partial_fit(rows, y)
        assert learner.total_loss_ / 600 < 0.2
        assert learner.predict_one({"b": "1", "a": "1"}) and not learner.predict_one({"a": "0", "b": "1"})
    assert OnlineLogisticRegression(sparse=True).partial_fit(rows, y).total_loss_ / 600 > 0.65


# ---------------------------------------------------------------------- files of sparse text


def test_svmlight_and_vw_files_stay_sparse(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ids = rng.integers(1, 1 << 20, size=(50, 6))
    y = rng.integers(0, 2, 50)
    lines = [f"{label} " + " ".join(f"{j}:1" for j in np.unique(row)) for label, row in zip(y, ids, strict=True)]
    (tmp_path / "a.svm").write_text("\n".join(lines))
    words = [f"{label} | " + " ".join(f"w{j}" for j in row) for label, row in zip(y, ids, strict=True)]
    (tmp_path / "a.vw").write_text("\n".join(words))
    for name, more in (("a.svm", {}), ("a.vw", {"bits": 24})):
        learner = OnlineLogisticRegression()
        for block in regretless.streams.read(tmp_path / name, "label", rows_at_once=20, **more):
            learner.partial_fit(block.X, block.y)
        assert learner._is_sparse
        assert 200 < learner.state_.columns.size <= 301


# ---------------------------------------------------------------------- one dictionary at a time


def growing_rows(n: int = 120, seed: int = 3) -> tuple[list[dict[Any, Any]], list[int]]:
    """Rows with numbers, text and missing values, whose names and texts appear over time."""
    rng = np.random.default_rng(seed)
    rows = []
    for t in range(n):
        words = {f"w{j}": float(rng.integers(1, 4)) for j in rng.integers(0, 4 + t, size=5)}
        text: dict[Any, Any] = {"shop": f"s{rng.integers(0, 3 + t // 4)}", "note": None if rng.random() < 0.1 else "n"}
        rows.append(words | text | {t // 50: True})
    return rows, rng.integers(0, 2, size=n).tolist()


@pytest.mark.parametrize("sparse_rows", [True, False])
def test_forecast_and_learn_one_dictionary_at_a_time(sparse_rows: bool) -> None:
    rows, y = growing_rows()
    if not sparse_rows:
        rows = [{"shop": row["shop"], "note": row["note"], "first": next(iter(row.values()))} for row in rows]
    block = OnlineLogisticRegression(classes=[0, 1], sparse=sparse_rows)
    said = block.predict_then_learn(rows, y)
    one = OnlineLogisticRegression(classes=[0, 1], sparse=sparse_rows)
    for t, (row, label) in enumerate(zip(rows, y, strict=True)):
        if t:
            found = one.predict_proba_one(row)
            if sparse_rows:  # others give a new category its column before its row is forecast
                assert np.allclose(found, said[t], rtol=0, atol=1e-15)
            one.predict_proba_one(rows[t - 1])  # the last forecast need not be of the row that is learned
        one.learn_one(row, label)
    assert_same(one, block)


def test_a_dictionary_changed_after_its_forecast_is_read_again() -> None:
    rows, y = growing_rows()
    first, second = (OnlineLogisticRegression(classes=[0, 1], sparse=True).partial_fit(rows, y) for _ in range(2))
    row = dict(rows[5])
    first.predict_proba_one(row)
    row["w0"] = row.get("w0", 0.0) + 1.0
    first.learn_one(row, 1)
    second.learn_one(dict(row), 1)
    assert_same(first, second)
    first.predict_proba_one(row)
    row["w0"] = np.ones(3)  # cannot be compared with the last row
    with pytest.raises(BadRow, match="'w0'"):
        first.learn_one(row, 1)
    assert_same(first, second)


def test_a_forecast_does_not_tell_what_a_name_holds() -> None:
    rows, y = growing_rows()
    learner = OnlineLogisticRegression(classes=[0, 1], sparse=True).partial_fit(rows, y)
    learner.predict_proba_one({"new": "text"})
    learner.learn_one({"new": 2.0}, 1)
    with pytest.raises(BadRow, match="'text' is text, and this column held numbers before"):
        learner.learn_one({"new": "text"}, 1)
    with pytest.raises(BadRow, match="'text' is text, and this column held numbers before"):
        learner.predict_proba_one({"new": "text"})
