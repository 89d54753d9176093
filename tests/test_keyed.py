"""KeyedLearner against its definition: a dictionary of separate learners."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import regretless
from regretless import (
    AIOLI,
    FOLKLORE,
    GAF,
    OGD,
    ONS,
    BadRow,
    KeyedLearner,
    Mixture,
    NoCertificate,
    OnlineLearner,
    OnlineLogisticRegression,
    Perceptron,
    VovkAzouryWarmuth,
    merge,
)
from regretless.learners.wrappers import keyed as keyed_module
from regretless.learners.wrappers import routing

LEARNERS = [
    (AIOLI(radius=3.0), 2),
    (AIOLI(precision="single"), 2),
    (AIOLI(solver="descent", steps=5), 2),
    (FOLKLORE(), 3),
    (GAF(random_state=3), 3),
    (VovkAzouryWarmuth(), 1),
    (OGD(), 3),
    (OGD(loss="squared", step="adagrad-norm"), 1),
    (ONS(), 2),
    (Perceptron(), 2),
]
IDS = [repr(learner) for learner, _ in LEARNERS]
FAST = (0, 4, 6)  # of LEARNERS: those whose loops differ in more than types
EACH_LEARNER = [each if i in FAST else pytest.param(*each, marks=pytest.mark.slow) for i, each in enumerate(LEARNERS)]
TEXT = [f"user {i}" for i in range(23)]
WHOLE = [-(2**62), *range(0, 10**12, 10**11), 2**63 - 1]


def stream(n, n_classes, keys, seed=0, d=4):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n) if n_classes > 1 else rng.normal(size=n)
    return [keys[i] for i in rng.integers(0, len(keys), n)], rng.normal(size=(n, d)) / 2, y


def declared(n_classes):
    return {"classes": list(range(n_classes))} if n_classes > 1 else {}


class Dictionary:
    """What KeyedLearner promises to be equal to, row by row."""

    def __init__(self, learner, pooled, d, n_classes):
        self.pool = OnlineLearner.begin(clone(learner), d, declared(n_classes).get("classes"))
        self.pooled, self.learners = pooled, {}

    def predict_then_learn(self, keys, X, y, weight=None):
        found = []
        weight = np.ones(len(y)) if weight is None else weight
        for key, x, label, w in zip(keys, X, y, weight, strict=True):
            if key not in self.learners:
                self.learners[key] = copy.deepcopy(self.pool)
            found.append(self.learners[key].predict_then_learn(x[None], [label], sample_weight=[w])[0])
            if self.pooled:
                self.pool.partial_fit(x[None], [label], sample_weight=[w])
        return np.array(found)


@pytest.mark.parametrize("keys", [TEXT, WHOLE], ids=["text", "integers"])
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize(("learner", "n_classes"), EACH_LEARNER, ids=IDS)
def test_equals_a_dictionary_of_learners_to_the_bit(learner, n_classes, pooled, keys):
    keys, X, y = stream(420, n_classes, keys)
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0], 420)
    keyed, one_by_one = KeyedLearner(learner, pooled=pooled), Dictionary(learner, pooled, 4, n_classes)
    for some in (slice(0, 1), slice(1, 300), slice(300, 420)):
        rows = keys[some], X[some], y[some]
        said = keyed.predict_then_learn(*rows, **declared(n_classes), sample_weight=weight[some])
        assert np.array_equal(said, one_by_one.predict_then_learn(*rows, weight[some]))
    assert keyed.keys_ == list(one_by_one.learners) and len(keyed) == len(one_by_one.learners)
    for key, other in one_by_one.learners.items():
        mine = keyed.learner_of(key)
        assert all(np.array_equal(a, b) for a, b in zip(mine.state_, other.state_, strict=True))
        try:
            assert keyed.regret_certificates([key])[0] == other.regret_certificate()
        except (NoCertificate, ValueError):
            assert np.isnan(keyed.regret_certificates([key])[0])
    newcomer = [*keys[:50], "somebody" if isinstance(keys[0], str) else 77]
    X = X[:51]
    wanted = [
        one_by_one.learners.get(key, one_by_one.pool).predict(x[None])[0] for key, x in zip(newcomer, X, strict=True)
    ]
    assert np.array_equal(keyed.predict(newcomer, X), np.array(wanted))
    assert len(keyed) == len(one_by_one.learners)  # a forecast adds no key


def test_the_compiled_loop_is_used_where_it_is_claimed():
    compiled = {repr(learner) for learner, k in LEARNERS if routing.is_compiled(Dictionary(learner, False, 4, k).pool)}
    assert compiled == {repr(learner) for learner, _ in LEARNERS} - {"AIOLI(solver='descent', steps=5)"}


def test_threads_and_divisions_change_nothing(monkeypatch):
    keys, X, y = stream(3000, 2, TEXT)
    whole = KeyedLearner(AIOLI()).predict_then_learn(keys, X, y)
    monkeypatch.setattr(routing, "WORTH_A_THREAD", 10)
    assert np.array_equal(KeyedLearner(AIOLI()).predict_then_learn(keys, X, y), whole)
    monkeypatch.setattr(routing, "MOST_PER_ROW", 0)  # by sorting
    assert np.array_equal(KeyedLearner(AIOLI()).predict_then_learn(keys, X, y), whole)


@pytest.mark.parametrize("pooled", [False, True])
def test_keys_start_even_if_their_rows_are_not_reached(pooled, monkeypatch):
    rng = np.random.default_rng(0)
    X, y, keys = rng.normal(size=(600, 4)), rng.integers(0, 2, 600), np.arange(600) // 2
    keyed = KeyedLearner(AIOLI(), pooled=pooled).learn(keys[:100], X[:100], y[:100], classes=[0, 1])
    start = copy.deepcopy(keyed.learner_)
    monkeypatch.setattr(keyed_module, "AT_ONCE", 1)
    play = KeyedLearner._learn_stretch

    def stop_at_the_second(self, *rows):
        if self._n_rows > 100:
            raise KeyboardInterrupt
        play(self, *rows)

    with monkeypatch.context() as broken, pytest.raises(KeyboardInterrupt):
        broken.setattr(KeyedLearner, "_learn_stretch", stop_at_the_second)
        keyed.learn(keys[100:], X[100:], y[100:])
    assert keyed.last_rows_.max() == 356 and keyed.keys_ == list(range(300))
    for key in range(178, 300):
        assert all(np.array_equal(a, b) for a, b in zip(keyed.learner_of(key).state_, start.state_, strict=True))
    assert KeyedLearner.from_bytes(keyed.to_bytes()).keys_ == keyed.keys_
    keyed.learn(keys[356:], X[356:], y[356:])
    assert keyed.to_bytes() == KeyedLearner(AIOLI(), pooled=pooled).learn(keys, X, y).to_bytes()


def test_wide_states_agree_up_to_rounding():
    """From 224 numbers on a learner plays panels, and their divisions change the last digits."""
    keys, X, y = stream(300, 2, TEXT[:2], d=230)
    said = KeyedLearner(AIOLI()).predict_then_learn(keys, X, y)
    assert np.allclose(said, Dictionary(AIOLI(), False, 230, 2).predict_then_learn(keys, X, y), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("keys", [TEXT, np.array(TEXT), WHOLE], ids=["text", "array", "integers"])
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize(("learner", "n_classes"), [(AIOLI(), 2), (VovkAzouryWarmuth(), 1)], ids=["AIOLI", "Vovk"])
def test_rows_one_by_one_are_those_of_a_block(learner, n_classes, pooled, keys):
    given, X, y = stream(120, n_classes, keys)
    given = np.array(given) if isinstance(keys, np.ndarray) else given
    whole = KeyedLearner(learner, pooled=pooled)
    wanted = whole.predict_then_learn(given, X, y, **declared(n_classes))
    one_by_one = KeyedLearner(learner, pooled=pooled).begin(4, **declared(n_classes))
    for i, row in enumerate(wanted):
        labels = [y[i].item()] if i % 2 else y[i : i + 1]
        before = one_by_one.predict(given[i : i + 1], X[i : i + 1])
        said = one_by_one.predict_then_learn(given[i : i + 1], X[i : i + 1], labels)
        assert np.array_equal(said[0], row)
        assert before[0] == (np.argmax(row) if n_classes > 1 else row)
    assert one_by_one.to_bytes() == whole.to_bytes()


def test_single_bad_rows_are_refused_before_anything_changes():
    keyed = KeyedLearner(AIOLI(feature_bound=10.0)).learn(["p", "q"], np.eye(2), [0, 1])
    named = KeyedLearner(AIOLI()).begin(["a", "b"], classes=[0, 1])
    before, plain = keyed.to_bytes(), np.ones((1, 2))
    for keys, X, y in (
        (["new"], np.full((1, 2), np.nan), [0]),
        (["new"], 100.0 * plain, [0]),
        (["new"], plain, [7]),
        (["new"], plain, np.array([np.nan])),
        (["new"], plain, [0, 1]),
        (["new"], np.ones((1, 3)), [0]),
        ([None], plain, [0]),
        ([], plain, [0]),
        (np.array([3]), plain, [0]),
    ):
        with pytest.raises(ValueError, match=r"."):
            keyed.learn(keys, X, y)
        assert keyed.to_bytes() == before
    with pytest.warns(UserWarning, match="feature names"):
        named.learn(["new"], plain, [0])


def test_a_copy_and_its_original_grow_apart():
    keys, X, y = stream(40, 2, TEXT)
    first = KeyedLearner(AIOLI()).learn(keys, X, y)
    second = copy.deepcopy(first)
    for i in range(20):
        first.learn([f"first {i}"], X[i : i + 1], y[i : i + 1])
        second.learn([f"second {i}"], X[i + 20 : i + 21], y[i + 20 : i + 21])
    for i in range(20):
        for keyed, name, row in ((first, "first", i), (second, "second", i + 20)):
            alone = AIOLI().begin(4, classes=[0, 1]).partial_fit(X[row : row + 1], y[row : row + 1])
            mine = keyed.learner_of(f"{name} {i}")
            assert all(np.array_equal(a, b) for a, b in zip(mine.state_, alone.state_, strict=True))


@pytest.mark.parametrize("keys", [TEXT, WHOLE], ids=["text", "integers"])
@pytest.mark.parametrize("pooled", [False, True])
def test_files_and_bytes_continue_to_the_bit(keys, pooled, tmp_path):
    keys, X, y = stream(300, 2, keys)
    keyed = KeyedLearner(AIOLI(), max_keys=50, pooled=pooled).learn(keys[:200], X[:200], y[:200])
    keyed.save(tmp_path / "keyed.npz")
    copies = [
        regretless.load(tmp_path / "keyed.npz"),
        KeyedLearner.from_bytes(keyed.to_bytes()),
        copy.deepcopy(keyed),
        pickle.loads(pickle.dumps(keyed)),
    ]
    long = [*keys[200:], "x" * 100 if isinstance(keys[0], str) else 12345]  # a new key, longer than all others
    said = keyed.predict_then_learn(long, X[199:], y[199:])
    for again in copies:
        assert again.max_keys == 50 and again.keys_ == keyed.keys_[:-1]
        assert np.array_equal(again.predict_then_learn(long, X[199:], y[199:]), said)
        assert again.to_bytes() == keyed.to_bytes()


def test_an_empty_one_can_be_saved_and_forecasts_before_the_first_row():
    keyed = KeyedLearner(AIOLI()).begin(2, classes=["no", "yes"])
    assert keyed.predict_proba(["a"], [[1.0, 2.0]]).tolist() == [[0.5, 0.5]]
    again = KeyedLearner.from_bytes(keyed.to_bytes())
    assert again.keys_ == [] and again.learn(["a"], [[1.0, 2.0]], ["yes"]).keys_ == ["a"]
    with pytest.raises(ValueError, match="has begun already"):
        keyed.begin(2, classes=["no", "yes"])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["a", None, "b"], "row 1: the key is missing"),
        (["a", float("nan"), "b"], "row 1: the key is missing"),
        (["a", "b", 3], "row 2: key 3 is integers, and the other keys are text"),
        ([1, 2, 3], "key 1 is integers, and the other keys are text"),
        ([0.5, 1.0, 2.0], "row 0: key 0.5 is a float"),
        ([True, False, True], "row 0: key True is a bool"),
        (np.zeros(3), "row 0: key 0.0 is a float"),
        ([b"a", b"b", b"c"], "row 0: key b'a' is a bytes"),
        (["a", "b"], "there are 2 keys and 3 rows"),
        (["a", "b", "c" * 200], "row 2: key 'cccccccccccccccccccc'... has 200 characters"),
        (["a", "b\0", "c"], "row 1: key 'b.x00' contains the character NUL"),
        ([1, 2**70, 3], "row 1: key 1180591620717411303424 does not fit in 64 bits"),
        ("abc", "pass a list or a column of keys"),
        (np.zeros((3, 1), dtype=int), "keys have the shape"),
        (["x", "y", "z"], "there are 2 keys, and 3 more in this call, the first of them 'x'; max_keys=4"),
    ],
)
def test_bad_keys_are_refused_before_anything_changes(keys, message):
    keyed = KeyedLearner(AIOLI(), max_keys=4).learn(["p", "q"], np.eye(2), [0, 1])
    before = keyed.to_bytes()
    with pytest.raises(ValueError, match=message):
        keyed.learn(keys, np.ones((3, 2)), [0, 1, 1])
    assert keyed.to_bytes() == before


def test_bad_rows_are_refused_before_anything_changes():
    keyed = KeyedLearner(AIOLI(feature_bound=10.0)).learn(["p", "q"], np.eye(2), [0, 1])
    before = keyed.to_bytes()
    for X, y, error in (
        ([[1.0, np.nan]], [0], BadRow),
        ([[1.0, 100.0]], [0], BadRow),
        ([[1.0, 1.0]], [7], BadRow),
        ([[1.0, 1.0, 1.0]], [0], ValueError),
        (sparse.csr_matrix([[1.0, 1.0]]), [0], ValueError),
    ):
        with pytest.raises(error):
            keyed.learn(["new"], X, y)
        assert keyed.to_bytes() == before
    unlearned = KeyedLearner(AIOLI())
    with pytest.raises(ValueError, match="the key is missing"):
        unlearned.learn([None], [[1.0]], [0], classes=[0, 1])
    assert not hasattr(unlearned, "state_") and len(unlearned) == 0
    with pytest.raises(NotFittedError):
        unlearned.predict_proba(["a"], [[1.0]])


@pytest.mark.parametrize("learner", [OnlineLogisticRegression(), Mixture([AIOLI(), AIOLI()]), "AIOLI"], ids=repr)
def test_learners_without_a_state_of_fixed_size_are_refused(learner):
    with pytest.raises(ValueError, match="learner="):
        KeyedLearner(learner).learn(["a"], [[1.0]], [0], classes=[0, 1])


def test_keys_are_removed_and_taken_up_again():
    keys, X, y = stream(300, 2, TEXT)
    keyed, twin = (KeyedLearner(AIOLI(), max_keys=23).learn(keys, X, y) for _ in range(2))
    last = {key: row for row, key in enumerate(keys, 1)}
    idle = sorted(last, key=last.get)[:3]
    assert keyed.idle_keys(3) == idle
    aside = {key: AIOLI.from_bytes(keyed.learner_of(key).to_bytes()) for key in idle}
    keyed.remove(idle)
    assert keyed.keys_ == [key for key in twin.keys_ if key not in idle]
    with pytest.raises(KeyError, match=f"key '{idle[0]}' has no learner"):
        keyed.learner_of(idle[0])
    assert keyed.predict_proba([idle[0]], X[:1]).tolist() == [[0.5, 0.5]]
    for key, learner in aside.items():
        keyed.put(key, learner)
    rows = stream(100, 2, TEXT, seed=1)
    assert np.array_equal(keyed.predict_then_learn(*rows), twin.predict_then_learn(*rows))
    assert dict(zip(keyed.keys_, keyed.total_losses_, strict=True)) == dict(
        zip(twin.keys_, twin.total_losses_, strict=True)
    )
    assert keyed.row_counts_.sum() == 400 and keyed.last_rows_.max() == 400


def test_only_learners_that_fit_can_be_put():
    keyed = KeyedLearner(AIOLI()).learn(["a"], [[1.0, 2.0]], [1], classes=[0, 1])
    parts = [AIOLI().fit(np.eye(2), [0, 1]) for _ in range(2)]
    for wrong in (
        AIOLI(radius=3.0).fit(np.eye(2), [0, 1]),
        AIOLI().fit(np.eye(2), [0, 2]),
        AIOLI().fit(np.eye(3), [0, 1, 1]),
        OGD().fit(np.eye(2), [0, 1]),
        merge(parts),
    ):
        with pytest.raises(ValueError, match="learner="):
            keyed.put("b", wrong)
    assert keyed.put("b", parts[0]).keys_ == ["a", "b"]


def test_the_limit_of_keys_can_be_raised():
    keyed = KeyedLearner(AIOLI(), max_keys=2).learn(["a", "b"], np.eye(2), [0, 1])
    assert keyed.set_params(max_keys=3).learn(["c"], [[1.0, 1.0]], [0]).keys_ == ["a", "b", "c"]
    assert KeyedLearner.from_bytes(keyed.to_bytes()).max_keys == 3


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda arrays, header: arrays["state.keys"].__setitem__(1, arrays["state.keys"][0]), "a key occurs twice"),
        (lambda arrays, header: arrays["state.P"].__setitem__((1, 0, 0), -1.0), "key 8: .*P"),
        (lambda arrays, header: arrays["state.last_rows"].__setitem__(0, 99), "last_rows"),
        (lambda arrays, header: header["aside"].update(kind="colours"), "kind='colours'"),
        (lambda arrays, header: header["aside"].pop("rows"), "aside="),
    ],
)
def test_damaged_bytes_are_refused(damage, message):
    from regretless.core.files import packed

    keyed = KeyedLearner(AIOLI()).learn([7, 8, 7], np.eye(3), [0, 1, 1])
    header, arrays = packed.unpack(keyed.to_bytes())
    damage(arrays, header)
    with pytest.raises(ValueError, match=message):
        KeyedLearner.from_bytes(packed.pack(header, arrays))


def test_a_pool_helps_new_keys():
    """Users of one taste: with a pool, a user's first rows are forecast from what others liked."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5)) / 2
    y = rng.random(4000) < 1 / (1 + np.exp(-X @ [3, -3, 2, 0, 1]))
    users = np.repeat(np.arange(400), 10)
    loss = [KeyedLearner(AIOLI(), pooled=pooled).learn(users, X, y) for pooled in (False, True)]
    p = [KeyedLearner(AIOLI(), pooled=pooled).predict_then_learn(users, X, y) for pooled in (False, True)]
    alone, pooled = (-np.log(each[np.arange(4000), y.astype(int)]).mean() for each in p)
    assert pooled < 0.85 * alone
    assert loss[1].learner_.state_.tally[0] == 4000
