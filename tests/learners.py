"""The test matrix: every public learner that the promises are tested on, and the streams it meets.

To join, a learner adds an entry to `MATRIX`, with its reference function (tests/definitions.py). All files named
test_checks*.py, the bad-parameter and scikit-learn checks and the fuzz tests run over it.
"""

from __future__ import annotations

import inspect
import math
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import definitions as by
import regretless
from each import for_each
from regretless import (
    AIOLI,
    FOLKLORE,
    FTRL,
    GAF,
    OGD,
    ONS,
    AggregatingForecaster,
    BanditMulticlass,
    Banditron,
    EpsilonGreedy,
    ExponentiatedGradient,
    FollowTheLeader,
    Gaptron,
    GeneralGAF,
    Hedge,
    KernelAIOLI,
    KernelGAF,
    LinearizedFTRL,
    MirrorDescent,
    MirrorDescentAggregator,
    Mixture,
    MondrianForest,
    OneVsRest,
    OnlineBoosting,
    OnlineLogisticRegression,
    OnlineToBatch,
    Perceptron,
    Stack,
    StronglyConvexOGD,
    VovkAzouryWarmuth,
    stumps,
)
from regretless.core.learner import OnlineLearner
from regretless.learners.first_order.learner import LinearLearner
from regretless.learners.first_order.schedules import AdaGrad, InverseRootStep, InverseTimeStep
from regretless.learners.second_order.mixable import MixableLoss, SquaredLoss
from regretless.learners.second_order.rounding import ROOT, covariance
from regretless.theory.domains import Ball, Box, Octahedron, Simplex, WholeSpace

# ---------------------------------------------------------------------- losses, from their definitions


def margins(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By how much the score of the true class leads: z is (n, 1), the second class's lead, or (n, K)."""
    if z.shape[1] == 1:
        return (2 * y - 1) * z[:, 0]
    others = np.where(np.arange(z.shape[1]) == y[:, None], -np.inf, z)
    return z[np.arange(len(y)), y] - others.max(axis=1)


LOSSES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {  # of scores (n, r) and labels
    "logistic": lambda z, y: np.logaddexp(0.0, -margins(z, y)),
    "logit": lambda z, y: np.logaddexp(0.0, -margins(z, y)) / np.log(2.0),
    "hinge": lambda z, y: np.maximum(0.0, 1.0 - margins(z, y)),
    "exponential": lambda z, y: np.exp(np.minimum(-margins(z, y), 700.0)),
    "softmax": lambda z, y: np.logaddexp.reduce(z, axis=1) - z[np.arange(len(y)), y],
    "squared": lambda z, y: (z[:, 0] - y) ** 2,
    "absolute": lambda z, y: np.abs(z[:, 0] - y),
    "linear": lambda z, y: z[:, 0] * y,
    "mistake": lambda z, y: (margins(z, y) <= 0.0).astype(float),
    "votes": lambda z, y: 1.0 - z[np.arange(len(y)), y],
}


@dataclass(frozen=True)
class Entry:
    """A learner in one configuration, and what the suite must know to play with it."""

    learner: Any
    n_classes: int  # 1: it forecasts numbers
    margin: bool = False  # comparators are weights of the margin of the second class, not one row a class
    certificate: bool = True  # whether the configuration has one
    theorem: bool = True  # whether the assumptions of its theorem hold on rows of norm up to 1
    rounding: float = 1e-12  # how far compiled and plain Python may differ
    believes: bool = False  # it is told of a curvature that the streams' losses do not have, and promises by it
    reference: Callable[..., np.ndarray] | str | None = None  # its definition, or the file with a test against it

    def __str__(self) -> str:
        return f"{self.learner!r}-K={self.n_classes}".replace(" ", "").replace("\n", "")

    def new(self, **params: Any) -> Any:
        """A learner that has met no row."""
        fresh = clone(self.learner, safe=not isinstance(self.learner, Stack))
        return fresh.set_params(**params) if params else fresh

    def taking(self, size: float, **params: Any) -> Entry:
        """The same for rows of norm up to `size`, whatever bound is declared, and with those of `params` it has."""
        declared = {"feature_bound": size, "bound": size} if self.bounds_entries else {"feature_bound": None}
        params = declared | params
        names = params.keys() & self.learner.get_params(deep=False).keys()
        return replace(self, learner=self.new(**{name: params[name] for name in names}))

    @property
    def remembers(self) -> bool:
        """Whether a row costs more the more there were, so that streams of it are short."""
        return "X" in self.learner.grows and getattr(self.learner, "approximation", "exact") == "exact"

    @property
    def slow(self) -> bool:
        """Whether long streams take too long: it remembers its rows, or plays each of them in Python."""
        return self.remembers or (
            isinstance(getattr(self.learner, "estimator", None), OnlineLearner)
            and isinstance(self.learner, OnlineBoosting)
        )

    @property
    def single(self) -> bool:
        """Whether it keeps its matrix in float32."""
        return getattr(self.learner, "precision", "double") == "single"

    @property
    def path(self) -> tuple[Any, ...]:
        """What distinguishes the code that reads its input: entries of equal paths share it."""
        return type(self.learner), min(self.n_classes, 3), isinstance(self.learner, OnlineLearner) and self.remembers

    @property
    def is_bandit(self) -> bool:
        """Whether it is played by `act` and `feedback`."""
        return hasattr(self.learner, "act")

    @property
    def compares(self) -> bool:
        """Whether it competes with weights of its own features."""
        return getattr(self.learner, "competes_with", None) is not None

    @property
    def takes_soft_labels(self) -> bool:
        return not isinstance(self.learner, OnlineBoosting)  # which counts mistakes

    # ------------------------------------------------------------------ what it forecasts

    @property
    def first_order(self) -> bool:
        return isinstance(self.learner, LinearLearner)

    @property
    def classifies(self) -> bool:
        return self.n_classes > 1

    @property
    def probabilities(self) -> bool:
        """Whether it forecasts probabilities, and not scores or numbers."""
        if self.first_order:
            return self.classifies and self.loss in ("logistic", "logit", "softmax")
        return hasattr(self.learner, "predict_proba")

    @property
    def first(self) -> dict[str, Any]:
        """What a first call declares."""
        return {"classes": np.arange(self.n_classes)} if self.classifies else {}

    def forecast(self, learner: Any, X: Any) -> np.ndarray:
        if self.probabilities:
            return learner.predict_proba(X)
        return learner.decision_function(X) if self.classifies else learner.predict(X)

    def forecast_one(self, learner: Any, x: Any) -> Any:
        if self.probabilities:
            return learner.predict_proba_one(x)
        if self.classifies:  # scores have no verb for one row
            return learner.decision_function(np.reshape(x, (1, -1)))[0]
        return learner.predict_one(x)

    # ------------------------------------------------------------------ what it suffers, and what comparators do

    @property
    def loss(self) -> str:
        """The name in `LOSSES` of what comparators suffer."""
        if self.first_order:
            return self.learner.multiclass if self.n_classes > 2 else self.learner.loss
        if isinstance(self.learner, Hedge):
            return "votes"
        return "squared" if not self.classifies else "logistic" if self.margin else "softmax"

    @property
    def decay(self) -> float:
        """The lambda of the lambda/2 |w|^2 that everyone pays each row."""
        return self.learner.regularization if isinstance(self.learner, StronglyConvexOGD) else 0.0

    @property
    def comparator_rows(self) -> int:
        return 1 if self.margin or (self.first_order and self.n_classes == 2) else self.n_classes

    def features(self, X: np.ndarray) -> np.ndarray:
        """What has a weight each: the columns, or the values of base functions, or columns as they were rescaled."""
        if isinstance(self.learner, OnlineLogisticRegression):
            return standardised(X)
        if isinstance(self.learner, MirrorDescentAggregator):
            base = self.learner.base
            H = X if base == "columns" else np.where(X[:, base.features] > base.thresholds, 1.0, -1.0)
            return np.hstack([H, -H]) if self.learner.symmetric else H
        return X

    def losses(self, W: np.ndarray, stream: Stream) -> np.ndarray:
        """Of a comparator (rows, features), on every row; the stream has `features`."""
        return LOSSES[self.loss](stream.X @ W.T, stream.y) + self.decay / 2 * np.sum(W**2)

    def losses_suffered(self, forecasts: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Of forecasts, on every row. (Without the decay: forecasts do not tell the weights.)"""
        if self.probabilities:
            return -np.log(forecasts[np.arange(len(y)), y]) / (np.log(2.0) if self.loss == "logit" else 1.0)
        loss = "mistake" if isinstance(self.learner, Perceptron) else self.loss
        return LOSSES[loss](forecasts.reshape(len(y), -1), y)

    # ------------------------------------------------------------------ what it takes

    @property
    def bounds_entries(self) -> str | None:
        """The parameter that bounds each entry of a row."""
        if isinstance(self.learner, MirrorDescentAggregator):
            return "bound" if self.learner.base == "columns" else None
        return "feature_bound" if isinstance(self.learner, ExponentiatedGradient) else None

    @property
    def bounds_rows(self) -> str | None:
        """The parameter that bounds the norm of a row."""
        declared = getattr(self.learner, "feature_bound", None) is not None and not self.bounds_entries
        return "feature_bound" if declared else None

    @property
    def largest_row(self) -> float:
        """The norm up to which rows are taken where no bound is declared (and rounding does not decide)."""
        if isinstance(self.learner, AggregatingForecaster):
            return 0.999e6 / self.learner.radius  # by walkers
        if isinstance(self.learner, Hedge):
            return min(replace(self, learner=member).largest_row for member in self.learner.estimators)
        if self.slow and isinstance(self.learner, OnlineBoosting):
            return replace(self, learner=self.learner.estimator).largest_row
        if isinstance(self.learner, OnlineBoosting):
            return 0.999e150
        if not self.first_order:
            return 1e150
        if isinstance(self.learner, StronglyConvexOGD):
            return 0.999e70 * min(1.0, math.sqrt(self.learner.regularization + self.learner.sigma))
        steep = self.loss == "exponential" and hasattr(self.learner, "radius")
        return 0.999 * (300.0 / self.learner.radius if steep else 1e70)

    @property
    def largest_target(self) -> float:
        if isinstance(given := getattr(self.learner, "loss", None), MixableLoss):
            return given.target_bound
        largest = 1e70 if self.first_order else 1e150
        if self.loss == "squared" and hasattr(self.learner, "scale"):
            return min(largest, self.learner.scale * getattr(self.learner, self.bounds_entries))
        return largest

    def stream(self, kind: str = "iid", n: int = 100, d: int = 4, seed: int = 0) -> Stream:
        """A stream of `KINDS` that this configuration accepts."""
        X, y = make_stream(kind, n, d, self.n_classes, seed)
        if self.bounds_entries:
            X = within(X, getattr(self.learner, self.bounds_entries), np.inf)
        elif self.bounds_rows:
            X = within(X, self.learner.feature_bound)
        return Stream(X, y if self.classifies else np.clip(y, -self.largest_target, self.largest_target))


def standardised(X: np.ndarray) -> np.ndarray:
    """Each entry by the mean and deviation of its column up to there, within 4 of them, and a column of ones."""
    Z = np.zeros_like(X)
    for t in range(1, len(X)):
        mean = X[:t].mean(axis=0)
        away = X[t] - mean
        deviation = np.sqrt((np.sum((X[:t] - mean) ** 2, axis=0) + away**2 * t / (t + 1)) / t)
        Z[t] = np.clip(away / np.where(deviation > 0, deviation, 1.0), -4.0, 4.0)
    return np.hstack([Z, np.ones((len(X), 1))])


def defined(reference: Callable[..., np.ndarray] | str, *entries: Entry) -> list[Entry]:
    """Entries with the same definition."""
    return [replace(entry, reference=reference) for entry in entries]


STUMPS = stumps(np.linspace(-1.0, 1.0, 9)[:, None], 5)  # of the first column, so that rows may have any width
MATRIX = [
    *defined(
        "test_logistic.py",
        Entry(OnlineLogisticRegression(missing="error"), 2, margin=True),
        Entry(OnlineLogisticRegression(missing="error", radii=(1.0,), drift="track", effort="high"), 3, theorem=False),
    ),
    *defined(
        "test_exact.py",
        Entry(FTRL(regularization=0.3), 2, margin=True),
        Entry(FTRL(regularization=0.1, radius=2.0), 3),
        Entry(FollowTheLeader(Box(1.0)), 1, theorem=False),
    ),
    *defined(
        "test_kernel_aioli.py",
        Entry(KernelAIOLI("linear", approximation="nystrom", budget=24, radius=3.0), 2, margin=True),
    ),
    *defined(
        "test_aggregating.py",
        # the theorem is about quadrature, which is for two features at most
        Entry(AggregatingForecaster(radius=3.0, method="langevin", n_samples=80), 2, margin=True, theorem=False),
        Entry(
            AggregatingForecaster(radius=2.0, method="langevin", n_samples=80, feature_bound=2.0),
            2,
            margin=True,
            theorem=False,
        ),
    ),
    *defined(
        by.aioli,
        Entry(KernelAIOLI("linear", radius=3.0), 2, margin=True),
        Entry(AIOLI(radius=3.0), 2, margin=True),
        Entry(AIOLI(radius=2.0, virtual_weight=0.5, feature_bound=3.0), 2, margin=True),
    ),
    *defined("test_descent.py", Entry(AIOLI(radius=2.0, solver="descent", steps=40), 2, margin=True, theorem=False)),
    *defined(
        by.folklore,
        Entry(FOLKLORE(radius=2.0), 2),
        Entry(FOLKLORE(radius=2.0), 3),
        Entry(FOLKLORE(radius=1.0, curvature="gaf", feature_bound=2.0), 5),
    ),
    *defined(
        by.gaf,
        Entry(GAF(radius=2.0), 2),
        Entry(GAF(radius=2.0, regularization=64.0, feature_bound=1.0), 2),
        Entry(KernelGAF("linear", radius=2.0), 2),
        # a round covariance has only the principal axes that rounding gives it, and the quadrature's grid lies along
        # them
        Entry(GAF(radius=2.0, regularization=1.0), 3, theorem=False, rounding=1e-11),
    ),
    Entry(GAF(radius=2.0, expectation="sobol", n_samples=64), 4, theorem=False),
    Entry(GAF(radius=2.0, expectation="monte-carlo", n_samples=32, smoothing=0.01), 3, theorem=False),
    *defined(
        "test_panels.py",
        Entry(AIOLI(radius=3.0, precision="single"), 2, margin=True, rounding=1e-4),
        Entry(FOLKLORE(radius=2.0, precision="single"), 3, rounding=1e-4),
        Entry(GAF(radius=2.0, precision="single"), 2, rounding=1e-4),
    ),
    *defined(
        by.ons,
        Entry(ONS(radius=1.0, gamma=0.5, epsilon=0.5), 2, margin=True, certificate=False, theorem=False),
        Entry(ONS(radius=1.0, gamma=0.5, epsilon=0.5), 3, certificate=False, theorem=False),
        Entry(ONS(radius=0.5, feature_bound=1.0), 2, margin=True),
        Entry(ONS(radius=0.5, feature_bound=1.0), 3),
    ),
    *defined(
        by.mixture,
        Entry(Mixture([AIOLI(radius=1.0), AIOLI(radius=3.0)]), 2, margin=True),
        Entry(Mixture([FOLKLORE(radius=0.5), FOLKLORE(radius=2.0)], [0.25, 0.75], share=0.05), 3, theorem=False),
    ),
    *defined(
        by.one_vs_rest,
        Entry(OneVsRest(AIOLI(radius=2.0)), 3, certificate=False, theorem=False),
        Entry(OneVsRest(FOLKLORE(radius=2.0)), 2, certificate=False, theorem=False),
    ),
    *defined(
        by.vovk,
        Entry(VovkAzouryWarmuth(), 1),
        Entry(VovkAzouryWarmuth(regularization=0.05), 1),
        Entry(GeneralGAF(SquaredLoss(target_bound=1e4), radius=3.0, regularization=0.1), 1),
    ),
    *defined(
        by.perceptron,
        Entry(Perceptron(), 2),
        Entry(Perceptron(), 3),
    ),
    *defined(
        by.ogd,
        Entry(OGD(radius=2.0), 2),
        Entry(OGD(radius=2.0), 3),
        Entry(OGD(loss="hinge", radius=2.0, step="adagrad-norm"), 2),
        Entry(OGD(radius=2.0, gradient_bound=1.5, multiclass="hinge"), 3),
        Entry(OGD(loss="exponential", radius=0.25, step=InverseRootStep(0.3)), 2),
        Entry(OGD(loss="squared", radius=2.0), 1),
        Entry(OGD(loss="absolute", radius=1.0, step=0.1), 1),
        Entry(OGD(loss="linear", radius=1.0, step=InverseTimeStep(0.5)), 1, theorem=False),
    ),
    *defined(
        by.strongly_convex,
        Entry(StronglyConvexOGD(), 2),
        Entry(StronglyConvexOGD(regularization=0.1), 3),
        Entry(StronglyConvexOGD(loss="logistic", regularization=0.1, sigma=0.2), 2, believes=True),
        Entry(StronglyConvexOGD(regularization=0.3, radius=0.5, multiclass="softmax"), 3),
        Entry(StronglyConvexOGD(loss="squared", regularization=0.1, radius=2.0), 1),
    ),
    *defined(
        by.linearized_ftrl,
        Entry(LinearizedFTRL(alpha=0.5), 2, theorem=False),
        Entry(LinearizedFTRL(alpha=0.5, l1=1.0, l2=0.1), 3, theorem=False),
        Entry(LinearizedFTRL(loss="hinge", alpha=1.0, beta=0.0, radius=1.0), 2),
        Entry(LinearizedFTRL(loss="squared", alpha=0.5, l1=0.1, l2=0.1, radius=0.5), 1),
    ),
    *defined(
        by.mirror_descent,
        Entry(MirrorDescent(domain=Ball(2.0), averaging=False, gradient_bound=1.0), 2),
        Entry(MirrorDescent(domain=Ball(2.0), lazy=False, averaging=False, gradient_bound=1.5), 3),
        Entry(MirrorDescent(domain=Simplex(2.0), mirror="entropy", gradient_bound=1.0), 2, theorem=False),
        Entry(
            MirrorDescent("absolute", domain=Octahedron(2.0), mirror="power", averaging=False, gradient_bound=1.0), 1
        ),
    ),
    Entry(MirrorDescent("hinge", Box(1.0), schedule=AdaGrad.of_diameter(2.0), lazy=False, averaging=False), 2),
    *defined(
        by.mirror_descent,
        Entry(MirrorDescent(domain=WholeSpace(), schedule=0.02, lazy=False, averaging=False), 2),
        Entry(MirrorDescent(domain=WholeSpace(), mirror="p-norm", schedule=InverseRootStep(0.02)), 3, theorem=False),
    ),
    *defined(
        by.exponentiated_gradient,
        Entry(ExponentiatedGradient(scale=2.0), 2),
        Entry(ExponentiatedGradient(loss="hinge", scale=2.0, signed=True, feature_bound=2.0), 2),
        Entry(ExponentiatedGradient(loss="squared", signed=True, horizon=200), 1),
    ),
    *defined(
        by.aggregator,
        Entry(MirrorDescentAggregator(), 2, theorem=False),
        Entry(MirrorDescentAggregator(STUMPS, loss="exponential", scale=2.0, symmetric=True), 2, theorem=False),
        Entry(
            MirrorDescentAggregator(loss="logit", domain="subsimplex", mirror="power", horizon=100), 2, theorem=False
        ),
        Entry(
            MirrorDescentAggregator(loss="squared", scale=2.0, domain="octahedron", mirror="p-norm"), 1, theorem=False
        ),
    ),
    *defined(by.hedge, Entry(Hedge([OGD(radius=2.0), OGD(radius=2.0, step=0.5)]), 3)),  # their first scores tie exactly
    *defined("test_hedge.py", Entry(Hedge([FOLKLORE(radius=2.0), OGD(radius=1.0)]), 3)),
    *defined(
        "test_boosting.py",
        Entry(OnlineBoosting(n_estimators=3), 3, certificate=False, theorem=False),
        Entry(OnlineBoosting("stump", n_estimators=3), 3, certificate=False, theorem=False),
        Entry(OnlineBoosting("naive-bayes", n_estimators=2), 2, certificate=False, theorem=False),
        Entry(OnlineBoosting(OGD(radius=2.0), n_estimators=2), 3, certificate=False, theorem=False),
    ),
    *defined(
        by.mondrian_forest,
        Entry(MondrianForest(n_estimators=3), 2),
        Entry(MondrianForest(n_estimators=2, dirichlet=0.3, max_nodes=15, random_state=5), 3),
    ),
    *defined("test_hedge.py", Entry(Stack([AIOLI(radius=1.0), AIOLI(radius=3.0)]), 2)),
    *defined(
        "test_online_to_batch.py",
        Entry(OnlineToBatch(AIOLI(radius=2.0)), 2),
        Entry(OnlineToBatch(FOLKLORE(radius=2.0), "last"), 3),
        Entry(OnlineToBatch(OGD(radius=2.0), "average"), 2),
        Entry(OnlineToBatch(VovkAzouryWarmuth(), "last"), 1),
    ),
    *defined(
        "test_bandit.py",
        Entry(BanditMulticlass(FOLKLORE(radius=2.0), n_classes=3, exploration=0.2), 3),
        Entry(BanditMulticlass(FOLKLORE(radius=2.0, feature_bound=1.0), n_classes=3, exploration="anytime"), 3),
        Entry(EpsilonGreedy(FOLKLORE(radius=2.0), 0.3, n_classes=3), 3),
        Entry(EpsilonGreedy(Perceptron(), 0.3, n_classes=3), 3),
        Entry(Banditron(0.2, n_classes=3), 3),
        Entry(Gaptron(gamma=0.2, n_classes=3), 3),
        Entry(Gaptron("full", gamma=0.2, n_classes=3), 3),
    ),
]
LEARNERS = [entry for entry in MATRIX if isinstance(entry.learner, OnlineLearner)]
BANDITS = [entry for entry in MATRIX if entry.is_bandit]
WRAPPERS = [entry for entry in MATRIX if not entry.is_bandit and not isinstance(entry.learner, OnlineLearner)]
CLASSIFIERS = [entry for entry in LEARNERS if entry.classifies]
ONE_OF_EACH = list({type(entry.learner): entry for entry in reversed(LEARNERS)}.values())
ONE_PER_PATH = list({entry.path: entry for entry in reversed(LEARNERS)}.values())[::-1]


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


def within(X: np.ndarray, bound: float, order: float = 2) -> np.ndarray:
    """Rows of a norm beyond the bound, scaled back to it."""
    norms = np.linalg.norm(X, order, axis=1, keepdims=True)
    return X * (bound / np.maximum(norms, bound))


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
    precision = getattr(one, "precision", "double")
    for name, array in one.state_._asdict().items():
        assert array.dtype == (np.float32 if (name, precision) == ("P", "single") else np.float64)
        assert np.array_equal(array, getattr(other.state_, name)), name
    for mine, others in zip(members(one), members(other), strict=True):
        assert_same_state(mine, others)


def members(learner: Any) -> list[Any]:
    """The learners that it holds."""
    return getattr(learner, "estimators_", [])


def state_bytes(learner: Any) -> list[bytes]:
    arrays = [array.tobytes() for array in learner.state_]
    return arrays + [array for member in members(learner) for array in state_bytes(member)]


def recipe(given: Any) -> Any:
    """Parameters with what is in the learners among them in their place, for no learner equals another."""
    if isinstance(given, dict):
        return {name: recipe(value) for name, value in given.items()}
    if isinstance(given, list | tuple):
        return [recipe(value) for value in given]
    return (type(given), contents(given)) if isinstance(given, OnlineLearner) else given


def params(learner: Any) -> dict[str, Any]:
    return recipe(learner.get_params(deep=False))


def contents(learner: Any) -> dict[str, Any]:
    """All that a learner holds, which before the first row is its parameters."""
    return recipe(vars(learner))


def fingerprint(learner: Any) -> bytes:
    """All that a learner holds, public or private."""
    return pickle.dumps(vars(learner))


# ---------------------------------------------------------------------- the same games without compilation


def short_games(path: str) -> None:
    """Play a short game with every learner and write forecasts and states to `path`."""
    found = {}
    for i, entry in enumerate(LEARNERS):
        for kind in KINDS:
            learner, forecasts = play(entry, entry.stream(kind, n=14, d=3))
            found[f"{i}.{kind}.forecasts"] = forecasts
            found[f"{i}.{kind}.later"] = entry.forecast(learner, entry.stream(kind, n=6, d=3, seed=1).X)
            found |= {f"{i}.{kind}.{name}": array for name, array in learner.state_._asdict().items()}
    np.savez(path, **found)


OTHER_WIDTHS = [  # that have kernels of their own: quadrature, and panels
    *((Entry(AggregatingForecaster(radius=3.0), 2), d) for d in (1, 2)),
    (Entry(AIOLI(radius=3.0), 2), 230),
    (Entry(FOLKLORE(radius=2.0), 3), 115),
    (Entry(GAF(radius=2.0), 3), 115),
    (Entry(ONS(radius=0.5, feature_bound=1.0), 3), 115),
    (Entry(VovkAzouryWarmuth(), 1), 230),
]


def compile_for(kind: type) -> None:
    """Play a few rows with every configuration of a learner, in the forms that most tests use."""
    for entry, d in [*((entry, 3) for entry in LEARNERS), *OTHER_WIDTHS]:
        if type(entry.learner) is kind:
            stream = entry.stream(n=40, d=d)
            learner, _ = play(entry, stream)
            entry.forecast(learner, stream.X)
            entry.forecast_one(learner, stream.X[0])
            learner.learn_one(stream.X[0], stream.y[0])
            if learner.takes_sparse:
                entry.new().predict_then_learn(sparse.csr_array(stream.X), stream.y, **entry.first)


every_learner = pytest.mark.parametrize("entry", LEARNERS, ids=str)
every_classifier = pytest.mark.parametrize("entry", CLASSIFIERS, ids=str)
every_class = pytest.mark.parametrize("entry", ONE_OF_EACH, ids=str)
every_path = pytest.mark.parametrize("entry", ONE_PER_PATH, ids=str)  # for checks of shared code that reads input
every_bandit = pytest.mark.parametrize("entry", BANDITS, ids=str)
every_wrapper = pytest.mark.parametrize("entry", WRAPPERS, ids=str)
every_kind = for_each("kind", KINDS)


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
    return regretless.load(folder / "model.npz")


@contextmanager
def refused(what: Any, words: str, kind: type[Exception] = ValueError) -> Iterator[None]:
    """The block raises, with these words (a regular expression); `what` names the case."""
    try:
        yield
    except kind as refusal:
        assert re.search(words, str(refusal)), f"{what}: {refusal}"
    else:
        raise AssertionError(f"{what}: not refused")


def changed(array: np.ndarray, place: Any, value: Any) -> np.ndarray:
    array = array.copy()
    array[place] = value
    return array


def certificate(learner: Any) -> float:
    whole = learner.competes_with and isinstance(learner.competes_with.domain, WholeSpace)
    return learner.regret_certificate(LARGEST_NUMBER_WEIGHTS if whole else None)


def bound(learner: Any) -> float:
    whole = learner.competes_with and isinstance(learner.competes_with.domain, WholeSpace)
    asks = whole and "comparator_norm" in inspect.signature(learner.regret_bound).parameters
    return learner.regret_bound(**({"comparator_norm": LARGEST_NUMBER_WEIGHTS} if asks else {}))


PREDICTIONS = ["predict", "predict_proba", "decision_function"]


ONE_ROW_PREDICTIONS = ["predict_one", "predict_proba_one"]


def weights(learner: Any) -> np.ndarray:
    """The weights that forecast."""
    if members(learner):
        return np.concatenate([weights(member).ravel() for member in members(learner)])
    if isinstance(learner, LinearLearner):
        return learner.coef_
    names = learner.state_._fields
    return getattr(learner.state_, next(name for name in ("w", "alpha", "log_weight", "losses") if name in names))


def learned(learner: Any) -> np.ndarray:
    """The array of the state that every row moves."""
    moved = ("P", "w", "alpha", "table", "zeta", "walkers", "log_weight", "losses")
    return next(array for name, array in learner.state_._asdict().items() if name in moved)


def assert_sound(entry: Entry, learner: Any) -> None:
    """A state without NaN or infinity, weights in their set, P exactly symmetric, and variances >= 0 up to rounding."""
    for name, array in learner.state_._asdict().items():
        assert np.isfinite(array).all(), name
    if entry.first_order:
        assert learner.competes_with.domain.contains(learner.coef_, 1e-9)
        return
    if isinstance(entry.learner, OnlineLogisticRegression):
        return
    if members(learner):
        if isinstance(learner, Mixture):
            assert learner.weights_.sum() == pytest.approx(1.0, rel=1e-12)
        for member in members(learner):
            assert_sound(replace(entry, learner=member), member)
        return
    if "P" not in learner.state_._fields or entry.remembers:
        return
    P = covariance(learner.state_.P, learner.state_.tally)
    assert np.allclose(P, P.T, rtol=0.0, atol=0.0 if not learner.state_.tally[ROOT] else 1e-15 * np.abs(P).max())
    assert np.diagonal(P).min() >= -1e-10 / start_of(learner)
    if isinstance(entry.learner, ONS):
        assert np.linalg.norm(learner.state_.w) <= learner.radius * (1 + 1e-9)


LARGEST_NUMBER_WEIGHTS = 2.0  # the comparators' norm where the class is all of space


def start_of(learner: Any) -> float:
    """The multiple of the identity that A starts as."""
    return learner._constants.epsilon if isinstance(learner, ONS) else learner._constants.regularization
