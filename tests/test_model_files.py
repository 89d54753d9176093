"""Model files that were changed, or made to harm: a ValueError says what is wrong, before memory is taken."""

from __future__ import annotations

import copy
import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import regretless
from regretless import (
    AIOLI,
    FOLKLORE,
    GAF,
    AggregatingForecaster,
    Banditron,
    EpsilonGreedy,
    KernelAIOLI,
    MirrorDescentAggregator,
    Mixture,
    MondrianForest,
    OneVsRest,
    OnlineBoosting,
    OnlineLogisticRegression,
    VovkAzouryWarmuth,
    stumps,
)
from regretless.core.files import archive, packed, persist
from regretless.learners.first_order.base_functions import Stumps
from regretless.learners.second_order.rounding import ROOT
from regretless.learners.trees.mixtures import GO, LEFT_OUT, STOP
from regretless.learners.trees.mondrian_tree import BOLD, CAUTIOUS, COUNTS, FEATURE, LEFT, PRODUCT, THRESHOLD, TIME
from regretless.learners.trees.mondrian_tree import LOSS as NODE_LOSS

Change = Callable[[dict[str, Any], dict[str, np.ndarray]], Any]
X = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [-0.5, 0.2]])
y = np.array([0, 1, 0, 1])


def saved(learner: Any, path: Path, change: Change | None = None, compression: int = zipfile.ZIP_STORED) -> Path:
    """The file of what has learned the rows, with something changed in it."""
    learner = clone(learner)
    learner.fit(X, y) if hasattr(learner, "fit") else learner.act(X[0])
    learner.save(path)
    with zipfile.ZipFile(path) as found:
        header = json.loads(found.read("header.json"))
        arrays = {name[:-4]: np.load(io.BytesIO(found.read(name))) for name in found.namelist() if name[-4:] == ".npy"}
    if change is not None:
        change(header, arrays)
    with zipfile.ZipFile(path, "w", compression) as new:
        new.writestr("header.json", json.dumps(header))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array)
            new.writestr(f"{name}.npy", buffer.getvalue())
    return path


def set_entry(name: str, place: Any, value: float) -> Change:
    def change(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arrays[name][place] = value

    return change


def set_param(name: str, value: Any) -> Change:
    return lambda header, arrays: header["params"].update({name: value})


def set_header(**fields: Any) -> Change:
    return lambda header, arrays: header.update(fields)


FOREST = MondrianForest(n_estimators=2)


def in_a_circle(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """The nodes of the first tree are no longer below its root, but below each other."""
    nodes = arrays["state.nodes"]
    first = int(nodes[0, LEFT])
    nodes[first, LEFT] = nodes[0, LEFT]
    nodes[0, LEFT] = 0.0


IMPOSSIBLE: dict[str, tuple[Any, Change, str]] = {
    "more features than the state has": (OnlineLogisticRegression(), set_header(n_features=50), "50 features"),
    "fewer": (OnlineLogisticRegression(), set_header(n_features=1), "1 features"),
    "slots beyond the classes": (OnlineLogisticRegression(), set_entry("state.slots", 0, 7.0), "slots"),
    "a slot twice": (OnlineLogisticRegression(), set_entry("state.slots", slice(None), 0.0), "slots"),
    "a column of no kind": (
        OnlineLogisticRegression(),
        lambda header, arrays: header["aside"].update(kinds=["number", "colour"]),
        "kinds",
    ),
    "a category of a column that is not there": (
        OnlineLogisticRegression(),
        lambda header, arrays: header["aside"].update(levels=[[9, "a"]]),
        "no category",
    ),
    "a matrix that is not symmetric": (AIOLI(), set_entry("state.P", (0, 1), 1e-3), "not symmetric"),
    "a matrix that is not positive": (VovkAzouryWarmuth(), set_entry("state.P", (0, 0), -1.0), "not positive definite"),
    "a matrix beyond its start": (FOLKLORE(), set_entry("state.P", (0, 0), 1e9), "'?P'?"),
    "a negative count": (AIOLI(), set_entry("state.tally", 0, -1.0), "rows"),
    "half a row": (AIOLI(), set_entry("state.tally", 0, 3.5), "rows"),
    "more uneven rows than rows": (AIOLI(), set_entry("state.tally", 1, 9.0), "weight other than 1"),
    "a scale below the largest row": (AIOLI(), set_entry("state.tally", 4, 100.0), "scale"),
    "weights without a score": (AIOLI(), set_entry("state.w", 0, 1e200), "scores overflow"),
    "weights of a mixture": (Mixture([AIOLI()]), set_entry("state.log_weight", 0, 3.0), "log_weight"),
    "members of other rows": (Mixture([AIOLI()]), set_entry("estimators.0.state.tally", 0, 9.0), "other rows"),
    "a factor of no matrix": (KernelAIOLI(), set_entry("state.triangle", 1, 5.0), "triangle"),
    "walkers outside": (
        AggregatingForecaster(method="langevin", n_samples=16),
        set_entry("state.walkers", (0, 0), 5.0),
        "walkers",
    ),
    "a weight of no stump": (
        OnlineBoosting("stump", n_estimators=2),
        set_entry("state.memory", (0, 0, 0), 99.0),
        "shifts",
    ),
    "a fern of no column": (OnlineBoosting(n_estimators=2), set_entry("state.memory", (0, 0, 0), 99.0), "columns"),
    "a fern between columns": (OnlineBoosting(n_estimators=2), set_entry("state.memory", (0, 0, 0), 0.5), "columns"),
    "an action that is none": (
        EpsilonGreedy(AIOLI(), n_classes=2),
        set_entry("state.pending", 1, 7.0),
        "action",
    ),
    "a child of no tree": (FOREST, set_entry("state.nodes", (0, LEFT), 40.0), "children"),
    "a child twice": (FOREST, set_entry("state.nodes", (0, LEFT), 3.0), "children"),
    "a tree in a circle": (FOREST, in_a_circle, "children|does not have"),
    "children of a leaf": (FOREST, set_entry("state.nodes", (0, LEFT), 0.0), "children"),
    "a feature of no column": (FOREST, set_entry("state.nodes", (0, FEATURE), 2.0), "features"),
    "a threshold beside the rows": (FOREST, set_entry("state.nodes", (0, THRESHOLD), 9.0), "thresholds"),
    "a node before its parent": (FOREST, set_entry("state.nodes", (slice(2, 4), TIME), -1.0), "times"),
    "a box without its rows": (FOREST, set_entry("state.nodes", (0, -1), 9.0), "boxes"),
    "a box inside out": (FOREST, set_entry("state.nodes", (2, -1), -9.0), "boxes"),
    "class weights without rows": (FOREST, set_entry("state.nodes", (0, COUNTS), 9.0), "totals"),
    "a probability above 1": (FOREST, set_entry("state.nodes", (0, CAUTIOUS + STOP), 3.0), "probabilities"),
    "a probability of 0": (FOREST, set_entry("state.nodes", (0, BOLD + GO), 0.0), "probabilities"),
    "probabilities of more than 1": (FOREST, set_entry("state.nodes", (0, CAUTIOUS + STOP), 1.0), "sum to 1"),
    "half a factor left out": (FOREST, set_entry("state.nodes", (0, BOLD + LEFT_OUT), 0.5), "factors left out"),
    "a factor left out of nothing": (
        FOREST,
        set_entry("state.nodes", (0, CAUTIOUS + LEFT_OUT), 1.0),
        "left out of large",
    ),
    "a product above 1": (FOREST, set_entry("state.nodes", (0, PRODUCT), 2.0), "products"),
    "a loss that overflows": (FOREST, set_entry("state.nodes", (0, NODE_LOSS), 1e300), "losses"),
    "nodes beyond the trees": (FOREST, set_entry("state.nodes", (-1, 0), 1.0), "beyond its trees"),
    "an even number of nodes": (FOREST, set_entry("state.sizes", 0, 2.0), "sizes"),
    "trees without rows": (FOREST, set_entry("state.tally", slice(None), 0.0), "rows"),
    "trees better than their mean": (FOREST, set_entry("state.losses", slice(None), 0.0), "losses"),
    "a class twice": (AIOLI(), lambda header, arrays: arrays.update(classes=np.array([1, 1])), "twice"),
    "a class too many": (AIOLI(), lambda header, arrays: arrays.update(classes=np.arange(3)), "binary|numbers"),
    "names of other features": (AIOLI(), set_header(feature_names=["a", "b", "c"]), "feature_names"),
    "an array of nobody": (AIOLI(), lambda header, arrays: arrays.update({"state.x": np.zeros(2)}), "no learner"),
    "other fields": (AIOLI(), set_header(state=["P", "w"]), "fields"),
    "a copy less": (OneVsRest(AIOLI()), lambda header, arrays: header["holds"]["estimator"].pop(), "copies"),
    "copies that differ": (
        OneVsRest(AIOLI()),
        lambda header, arrays: header["holds"]["estimator"][1]["params"].update(radius=2.0),
        "copies",
    ),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_impossible_contents_are_refused(what: str, tmp_path: Path) -> None:
    learner, change, words = IMPOSSIBLE[what]
    regretless.load(saved(learner, tmp_path / "sound.npz"))
    with pytest.raises(ValueError, match=f"is damaged: .*(?:{words})"):
        regretless.load(saved(learner, tmp_path / "model.npz", change))


# ---------------------------------------------------------------------- stumps


@pytest.mark.parametrize("columns", [(-1,), (0, -(2**40)), (0.5,), ("x",), ()])
def test_stumps_are_of_columns(columns: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"features=|at least one"):
        Stumps(columns, (0.0,) * len(columns), ("a",) * len(columns))


@pytest.mark.parametrize("base", [Stumps((5,), (0.0,), ("a",)), [Stumps((0, 10**12), (0.0, 0.0), ("a", "b"))]])
def test_stumps_do_not_read_beside_the_rows(base: Any) -> None:
    stump = base[0] if isinstance(base, list) else base
    with pytest.raises(ValueError, match="a stump of column"):
        stump(X)
    with pytest.raises(ValueError, match="a stump of column"):
        MirrorDescentAggregator(base).fit(X, y)


@pytest.mark.parametrize("wrap", [lambda base: base, lambda base: [base]])
@pytest.mark.parametrize("column", [-1, 2, 10**6, 2**70])
def test_a_file_with_stumps_beside_the_rows_is_refused(wrap: Any, column: int, tmp_path: Path) -> None:
    def change(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        base = header["params"]["base"]
        (base[0] if isinstance(base, list) else base)["features"]["tuple"][0] = column

    learner = MirrorDescentAggregator(wrap(stumps(X, 2)))
    with pytest.raises(ValueError, match="is damaged"):
        regretless.load(saved(learner, tmp_path / "model.npz", change))


# ---------------------------------------------------------------------- files that ask for memory

BOMBS: dict[str, tuple[Any, Change]] = {
    "features": (AIOLI(), set_header(n_features=40_000)),
    "features of members": (Mixture([AIOLI(), AIOLI()]), set_header(n_features=40_000)),
    "features of copies": (OneVsRest(AIOLI()), set_header(n_features=40_000)),
    "features of a base": (EpsilonGreedy(AIOLI(), n_classes=2), set_header(n_features=40_000)),
    "features of many": (OnlineLogisticRegression(), set_header(n_features=40_000)),
    "features of a billion": (OnlineLogisticRegression(), set_header(n_features=10**9)),
    "categories": (
        OnlineLogisticRegression(max_categories=10**6),
        lambda header, arrays: header["aside"].update(
            kinds=["number", "category"], levels=[[1, str(i)] for i in range(20_000)]
        ),
    ),
    "landmarks": (KernelAIOLI(approximation="nystrom", budget=4), set_param("budget", 40_000)),
    "walkers": (AggregatingForecaster(method="langevin", n_samples=16), set_param("n_samples", 10**9)),
    "stages": (OnlineBoosting(n_estimators=2), set_param("n_estimators", 10**8)),
    "stages of learners": (OnlineBoosting(AIOLI(), n_estimators=2), set_param("n_estimators", 10**8)),
    "classes": (Banditron(n_classes=2), set_param("n_classes", 10**9)),
    "trees": (MondrianForest(n_estimators=2), set_param("n_estimators", 10**9)),
    "columns of nodes": (MondrianForest(n_estimators=2), set_header(n_features=10**9)),
    "samples": (GAF(expectation="sobol"), set_param("n_samples", 10**9)),
}


@pytest.mark.parametrize("what", BOMBS)
def test_sizes_are_believed_where_the_bytes_are(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner, change = BOMBS[what]
    path = saved(learner, tmp_path / "model.npz", change)
    monkeypatch.setattr(
        np, "eye", lambda *shape: pytest.fail("memory was taken") if max(shape) > 1000 else np.identity(*shape)
    )
    with pytest.raises(ValueError, match="is damaged"):
        regretless.load(path)


def test_an_array_has_the_bytes_of_its_shape(tmp_path: Path) -> None:
    path = saved(AIOLI(), tmp_path / "model.npz")
    data = path.read_bytes()
    with zipfile.ZipFile(path) as found:
        array = found.read("state.w.npy")
    with zipfile.ZipFile(path, "a") as changed:
        changed.writestr("state.x.npy", array.replace(b"(2,), }         ", b"(1600000000,), }"))
    assert len(data) < 3000
    with pytest.raises(ValueError, match=r"claims the shape \(1600000000,\)"):
        regretless.load(path)


def test_nothing_is_inflated(tmp_path: Path) -> None:
    path = saved(AIOLI(), tmp_path / "model.npz", compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="is compressed"):
        regretless.load(path)


def test_members_may_not_overlap(tmp_path: Path) -> None:
    """Many entries of the directory for the same bytes would be read again and again."""
    path = saved(AIOLI(), tmp_path / "model.npz")
    with zipfile.ZipFile(path, "a") as changed:
        changed.writestr("big.npy", bytes(10_000))
        for i in range(20):
            info = zipfile.ZipInfo(f"again{i}.npy")
            big = changed.getinfo("big.npy")
            info.header_offset, info.file_size, info.compress_size, info.CRC = (
                big.header_offset,
                10_000,
                10_000,
                big.CRC,
            )
            changed.filelist.append(info)
    with pytest.raises(ValueError, match="claim"):
        regretless.load(path)


def test_headers_have_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(AIOLI(), tmp_path / "model.npz")
    monkeypatch.setattr(archive, "LARGEST_HEADER", 100)
    with pytest.raises(ValueError, match="more than 100"):
        regretless.load(path)
    with pytest.raises(ValueError, match="the limit is 100"):
        AIOLI().fit(X, y).save(path)


def nested(depth: int, learner: Any) -> Any:
    for _ in range(depth):
        learner = Mixture([learner])
    return learner


def test_learners_nest_so_deep_and_no_deeper(tmp_path: Path) -> None:
    regretless.load(saved(nested(persist.MOST_NESTED - 1, AIOLI()), tmp_path / "model.npz"))
    with pytest.raises(ValueError, match="deep"):
        nested(persist.MOST_NESTED, AIOLI()).fit(X, y).save(tmp_path / "deeper.npz")

    def deepen(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        for _ in range(300):
            header["holds"] = {"learners": [{key: header[key] for key in ("learner", "params", "state", "holds")}]}

    with pytest.raises(ValueError, match="deep"):
        regretless.load(saved(Mixture([AIOLI()]), tmp_path / "model.npz", deepen))


def test_nesting_costs_no_multiple_a_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = AIOLI.competes_with.fget
    counts = []
    for depth in (2, 4, 6):
        path = saved(nested(depth, AIOLI()), tmp_path / "model.npz")
        calls: list[Any] = []
        counted = property(lambda self, calls=calls: (calls.append(self), asked(self))[1])
        with monkeypatch.context() as patched:
            patched.setattr(AIOLI, "competes_with", counted)
            regretless.load(path)
        counts.append(len(calls))
    assert counts[2] - counts[1] <= 2 * (counts[1] - counts[0]) + 4, counts


# ---------------------------------------------------------------------- files that are none


def central(data: bytearray) -> int:
    """Where the first entry of the archive's directory begins."""
    return data.index(b"PK\x01\x02")


def patched(offset: int, value: bytes) -> Callable[[bytearray], bytearray]:
    def change(data: bytearray) -> bytearray:
        at = central(data) + offset
        data[at : at + len(value)] = value
        return data

    return change


BROKEN: dict[str, Callable[[bytearray], bytes | bytearray]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "text": lambda data: b"hello",
    "encrypted (RuntimeError)": patched(8, struct.pack("<H", 1)),
    "strongly encrypted (NotImplementedError)": patched(8, struct.pack("<H", 64)),
    "a method nobody knows (NotImplementedError)": patched(10, struct.pack("<H", 77)),
    "too new a version (NotImplementedError)": patched(6, struct.pack("<H", 999)),
    "a member beyond the end (EOFError)": patched(42, struct.pack("<L", 2**31)),
    "a directory that begins before the file (OSError)": lambda data: data[data.index(b"PK\x01\x02") :],
    "a header that is no text": lambda data: data.replace(b'"learner"', b'"\xff\xff\xff\xff\xff\xff\xff"'),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_no_archive_is_refused(what: str, tmp_path: Path) -> None:
    path = saved(AIOLI(), tmp_path / "model.npz")
    path.write_bytes(BROKEN[what](bytearray(path.read_bytes())))
    with pytest.raises(ValueError, match="is damaged"):
        regretless.load(path)


HEADERS = {
    "a list": "[]",
    "nested without end (RecursionError)": "[" * 100_000,
    "a number of thousands of digits": '{"format": 3, "n_features": ' + "9" * 5000 + "}",
    "no learner": '{"format": 3}',
    "an abstract learner": '{"format": 3, "learner": "LinearLearner", "params": {}, "state": []}',
    "parameters of nobody": '{"format": 3, "learner": "AIOLI", "params": {"wings": 2}, "state": []}',
    "a set that is none": '{"format": 3, "learner": "FollowTheLeader", "params": {"domain": {"recipe": "os"}}}',
    "deep parameters": '{"format": 3, "learner": "AIOLI", "params": {"radius": ' + "[" * 900 + "]" * 900 + "}}",
}


@pytest.mark.parametrize("what", HEADERS)
def test_headers_that_are_none_are_refused(what: str, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    with zipfile.ZipFile(path, "w") as new:
        new.writestr("header.json", HEADERS[what])
    with pytest.raises(ValueError, match="is damaged"):
        regretless.load(path)


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        regretless.load(tmp_path / "nothing.npz")
    with pytest.raises(OSError, match="directory"):
        regretless.load(tmp_path)


def test_members_are_stored_as_they_are(tmp_path: Path) -> None:
    AIOLI().fit(X, y).save(tmp_path / "model.npz")
    with zipfile.ZipFile(tmp_path / "model.npz") as found:
        assert {info.compress_type for info in found.infolist()} == {zipfile.ZIP_STORED}


def test_every_size_of_a_state_is_told_before_it_is_taken() -> None:
    """`_state_numbers` is at most what a fresh state has, and of learners with matrices nearly that."""
    for learner in (AIOLI(), FOLKLORE(), GAF(), VovkAzouryWarmuth(), OnlineLogisticRegression()):
        rows = np.random.default_rng(0).normal(size=(6, 20))
        learner.fit(rows, np.arange(6) % (2 if isinstance(learner, AIOLI) else 3))
        have = sum(array.size for array in learner.state_)
        told = learner._state_numbers(20, getattr(learner, "_n_classes", 1))
        assert 0.5 * have <= told <= have, learner


def test_learners_whose_bytes_share_a_header_are_apart_and_all_checked() -> None:
    """`from_bytes` remembers headers: nothing but the parameters may be shared, and every state is checked."""
    first, other = (AIOLI().fit(np.eye(3), labels) for labels in (["a", "b", "b"], ["c", "d", "d"]))
    data = first.to_bytes()
    one, two = AIOLI.from_bytes(data), AIOLI.from_bytes(data)
    two.set_params(radius=1.0).partial_fit(np.ones((1, 3)), ["a"])
    assert one.to_bytes() == AIOLI.from_bytes(data).to_bytes() == data and one.radius == 10.0
    assert packed.header_of(other.to_bytes()) == packed.header_of(data)
    assert AIOLI.from_bytes(other.to_bytes()).classes_.tolist() == ["c", "d"]
    for field, value, message in (("state.P", -1.0, "P is not positive"), ("state.w", np.nan, "finite float64")):
        header, arrays = packed.unpack(data)
        arrays[field].flat[0] = value
        with pytest.raises(ValueError, match=message):
            AIOLI.from_bytes(packed.pack(header, arrays))
    with pytest.raises(ValueError, match="the check sum differs"):
        AIOLI.from_bytes(data[:-1] + b"?")


@pytest.mark.parametrize("learner", [AIOLI(), AIOLI(precision="single"), FOLKLORE()], ids=repr)
def test_states_are_checked_together_as_one_by_one(learner: Any) -> None:
    rng = np.random.default_rng(0)
    one = learner.fit(rng.normal(size=(30, 3)), rng.integers(0, 2, 30))
    rooted = AIOLI(regularization=1e-8).fit(1e4 * rng.normal(size=(30, 3)), rng.integers(0, 2, 30))
    assert rooted.state_.tally[ROOT] and rooted._first_invalid(stacked(rooted, 2)) == -1
    assert one._first_invalid(stacked(one, 4)) == -1
    for field in one.state_._fields:
        for place in range(getattr(one.state_, field).size):
            stack = stacked(one, 4)
            getattr(stack, field)[2].flat[place] = -1e200 if field == "tally" else 1e30 if field == "P" else 1e306
            bad = copy.copy(one)
            bad.state_ = type(stack)(*(arrays[2] for arrays in stack))
            try:
                bad._check_state()
            except ValueError:
                assert one._first_invalid(stack) == 2
            else:
                assert one._first_invalid(stack) == -1


def stacked(learner: Any, n: int) -> Any:
    return type(learner.state_)(*(np.repeat(array[None], n, axis=0) for array in learner.state_))
