"""Every learner the promises are tested on, and the streams it meets. To join, a learner adds a line to `LEARNERS`."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.base import clone

import noregret
from noregret import AIOLI, FOLKLORE, GAF, ONS, VovkAzouryWarmuth
from noregret.domains import WholeSpace


@dataclass(frozen=True)
class Entry:
    """A learner in one configuration, and what the suite must know to play with it."""

    learner: Any
    n_classes: int  # 1: it forecasts numbers
    margin: bool = False  # comparators are weights of the margin of the second class, not one row a class
    certificate: bool = True  # whether the configuration has one
    theorem: bool = True  # whether the assumptions of its theorem hold on rows of norm up to 1
    rounding: float = 1e-12  # how far compiled and plain Python may differ

    def __str__(self) -> str:
        return f"{self.learner!r}-K={self.n_classes}".replace(" ", "").replace("\n", "")

    def new(self, **params: Any) -> Any:
        """A learner that has met no row."""
        return clone(self.learner).set_params(**params)

    def unbounded(self, **params: Any) -> Any:
        """A new learner that takes rows of every norm, with those of `params` that it has."""
        params = {"feature_bound": None, **params}
        return self.new(**{name: params[name] for name in params.keys() & self.learner.get_params().keys()})

    @property
    def classifies(self) -> bool:
        return self.n_classes > 1

    @property
    def first(self) -> dict[str, Any]:
        """What a first call declares."""
        return {"classes": np.arange(self.n_classes)} if self.classifies else {}

    @property
    def comparator_rows(self) -> int:
        return 1 if self.margin else self.n_classes

    def forecast(self, learner: Any, X: Any) -> np.ndarray:
        return learner.predict_proba(X) if self.classifies else learner.predict(X)

    def forecast_one(self, learner: Any, x: Any) -> Any:
        return learner.predict_proba_one(x) if self.classifies else learner.predict_one(x)

    def stream(self, kind: str = "iid", n: int = 100, d: int = 4, seed: int = 0) -> Stream:
        """A stream of `KINDS` that this configuration accepts."""
        stream = make_stream(kind, n, d, self.n_classes, seed)
        bound = getattr(self.learner, "feature_bound", None)
        return stream if bound is None else Stream(within(stream.X, bound), stream.y)


LEARNERS = [
    Entry(AIOLI(radius=3.0), 2, margin=True),
    Entry(AIOLI(radius=2.0, virtual_weight=0.5, feature_bound=3.0), 2, margin=True),
    Entry(FOLKLORE(radius=2.0), 2),
    Entry(FOLKLORE(radius=2.0), 3),
    Entry(FOLKLORE(radius=1.0, curvature="gaf", feature_bound=2.0), 5),
    Entry(GAF(radius=2.0), 2, theorem=False),
    Entry(GAF(radius=2.0, regularization=64.0, feature_bound=1.0), 2),
    # a round covariance has no principal axes but those rounding gives it, and the quadrature's grid lies along them
    Entry(GAF(radius=2.0), 3, theorem=False, rounding=1e-11),
    Entry(GAF(radius=2.0, expectation="sobol", n_samples=64), 4, theorem=False),
    Entry(GAF(radius=2.0, expectation="monte-carlo", n_samples=32, smoothing=0.01), 3, theorem=False),
    Entry(ONS(radius=1.0, gamma=0.5, epsilon=0.5), 2, margin=True, certificate=False, theorem=False),
    Entry(ONS(radius=1.0, gamma=0.5, epsilon=0.5), 3, certificate=False, theorem=False),
    Entry(ONS(radius=0.5, feature_bound=1.0), 2, margin=True),
    Entry(ONS(radius=0.5, feature_bound=1.0), 3),
    Entry(VovkAzouryWarmuth(), 1),
    Entry(VovkAzouryWarmuth(regularization=0.05), 1),
]
CLASSIFIERS = [entry for entry in LEARNERS if entry.classifies]
ONE_OF_EACH = list({type(entry.learner): entry for entry in reversed(LEARNERS)}.values())


# ---------------------------------------------------------------------- streams


class Stream(NamedTuple):
    X: np.ndarray
    y: np.ndarray


def iid(rng: np.random.Generator, n: int, r: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=(n, d)) / np.sqrt(d), np.broadcast_to(2.0 * rng.normal(size=(r, d)), (n, r, d))


def drifting(rng: np.random.Generator, n: int, r: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """The true weights turn by half a circle: the best first half is the worst second half."""
    angle = np.linspace(0.0, np.pi, n)[:, None, None]
    start, quarter = 3.0 * rng.normal(size=(2, r, d))
    return rng.normal(size=(n, d)) / np.sqrt(d), np.cos(angle) * start + np.sin(angle) * quarter


def uneven(rng: np.random.Generator, n: int, r: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of norms from 1e-5 to 1e2, and some of zeros."""
    X, W = iid(rng, n, r, d)
    return X * (10.0 ** rng.uniform(-5.0, 2.0, size=(n, 1)) * (rng.random((n, 1)) < 0.95)), W


KINDS: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {
    "iid": iid,
    "drifting": drifting,
    "uneven": uneven,
}


def make_stream(kind: str, n: int, d: int, n_classes: int, seed: int) -> Stream:
    """Rows, and labels drawn from the logistic model (one class: numbers from the linear one)."""
    rng = np.random.default_rng([seed, n, d, n_classes])
    X, W = KINDS[kind](rng, n, n_classes, d)
    z = np.einsum("tkd,td->tk", W, X)
    if n_classes == 1:
        return Stream(X, z[:, 0] + 0.3 * rng.normal(size=n))
    return Stream(X, np.argmax(z + rng.gumbel(size=z.shape), axis=1))


def within(X: np.ndarray, bound: float) -> np.ndarray:
    """Rows beyond the bound, scaled back to it."""
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X * np.minimum(1.0, bound / np.maximum(norms, 1e-300))


# ---------------------------------------------------------------------- playing and comparing


def play(entry: Entry, stream: Stream, cuts: tuple[int, ...] = (), **kwargs: Any) -> tuple[Any, np.ndarray]:
    """A new learner that has met the stream in the blocks between the cuts, and its forecasts."""
    learner = entry.new()
    forecasts = []
    for start, stop in zip((0, *cuts), (*cuts, len(stream.y)), strict=True):
        rows = slice(start, stop)
        block = {name: value[rows] for name, value in kwargs.items()}
        declared = {} if start else entry.first
        forecasts.append(learner.predict_then_learn(stream.X[rows], stream.y[rows], **declared, **block))
    return learner, np.concatenate(forecasts)


def assert_same_state(one: Any, other: Any) -> None:
    """Every array of the two states is the same, bit for bit."""
    assert type(one.state_) is type(other.state_)
    for name, array in one.state_._asdict().items():
        assert array.dtype == np.float64
        assert np.array_equal(array, getattr(other.state_, name)), name


def state_bytes(learner: Any) -> list[bytes]:
    return [array.tobytes() for array in learner.state_]


def fingerprint(learner: Any) -> bytes:
    """All that a learner holds, public or private."""
    return pickle.dumps(vars(learner))


# ---------------------------------------------------------------------- the same games without compilation


def short_games(path: str) -> None:
    """Play a short game with every learner and write forecasts and states to `path`."""
    found = {}
    for i, entry in enumerate(LEARNERS):
        for kind in KINDS:
            learner, forecasts = play(entry, entry.stream(kind, n=24, d=3))
            found[f"{i}.{kind}.forecasts"] = forecasts
            found[f"{i}.{kind}.later"] = entry.forecast(learner, entry.stream(kind, n=6, d=3, seed=1).X)
            found |= {f"{i}.{kind}.{name}": array for name, array in learner.state_._asdict().items()}
    np.savez(path, **found)


every_learner = pytest.mark.parametrize("entry", LEARNERS, ids=str)
every_classifier = pytest.mark.parametrize("entry", CLASSIFIERS, ids=str)
every_class = pytest.mark.parametrize("entry", ONE_OF_EACH, ids=str)
every_kind = pytest.mark.parametrize("kind", KINDS)


def learners_that(select: Callable[[Entry], Any]) -> Any:
    return pytest.mark.parametrize("entry", [entry for entry in LEARNERS if select(entry)], ids=str)


def directions(n: int, d: int) -> np.ndarray:
    X = np.random.default_rng(3).normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


LABELLINGS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {  # labels from rows
    "separable": lambda X, K: np.argmax(X @ np.random.default_rng(4).normal(size=(3, K)), axis=1),
    "alternating": lambda X, K: np.arange(len(X)) % K,
    "constant": lambda X, K: np.full(len(X), K - 1),
}


def assert_same_game(one: tuple[Any, np.ndarray], other: tuple[Any, np.ndarray]) -> None:
    """The same forecasts and the same state, bit for bit."""
    assert np.array_equal(one[1], other[1])
    assert_same_state(one[0], other[0])


def through_file(learner: Any, folder: Path) -> Any:
    learner.save(folder / "model.npz")
    return noregret.load(folder / "model.npz")


def changed(array: np.ndarray, place: Any, value: Any) -> np.ndarray:
    array = array.copy()
    array[place] = value
    return array


def certificate(learner: Any) -> float:
    whole = isinstance(learner.competes_with.domain, WholeSpace)
    return learner.regret_certificate(LARGEST_NUMBER_WEIGHTS if whole else None)


def bound(learner: Any) -> float:
    whole = isinstance(learner.competes_with.domain, WholeSpace)
    return learner.regret_bound(**({"comparator_norm": LARGEST_NUMBER_WEIGHTS} if whole else {}))


PREDICTIONS = ["predict", "predict_proba", "decision_function"]


ONE_ROW_PREDICTIONS = ["predict_one", "predict_proba_one"]


def assert_sound(entry: Entry, learner: Any) -> None:
    """A state without NaN or infinity, P exactly symmetric, and no variance negative beyond rounding."""
    for name, array in learner.state_._asdict().items():
        assert np.isfinite(array).all(), name
    P = learner.state_.P
    assert np.array_equal(P, P.T)
    assert np.diagonal(P).min() >= -1e-10 / start_of(learner)
    if isinstance(entry.learner, ONS):
        assert np.linalg.norm(learner.state_.w) <= learner.radius * (1 + 1e-9)


LARGEST_NUMBER_WEIGHTS = 2.0  # the comparators' norm where the class is all of space


def start_of(learner: Any) -> float:
    """The multiple of the identity that A starts as."""
    return learner._constants.epsilon if isinstance(learner, ONS) else learner._constants.regularization
