"""Players: a common interface to learners of this and other libraries. Forecast a block and learn it, row by row."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from regretless.core.errors import NoBound, NoCertificate
from regretless.core.learner import OnlineLearner
from regretless.core.rows.labels import Labels
from regretless.core.rows.validate import numbers
from regretless.core.scikit_learn import is_regressor
from regretless.core.types import Array
from regretless.theory.domains import Competition, Domain, WholeSpace


def player(learner: Any, classes: Any, batch: int) -> Player:
    """The player for this learner."""
    if isinstance(learner, OnlineLearner):
        return OwnPlayer(learner, classes)
    if hasattr(learner, "learn_one"):
        return RowPlayer(learner, classes)
    if hasattr(learner, "partial_fit"):
        return BatchPlayer(learner, classes, batch)
    raise ValueError(
        f"{type(learner).__name__} cannot learn row by row: it has neither `learn_one` nor `partial_fit`. Pass a "
        "learner with one of them."
    )


class Before(NamedTuple):
    """The state of a learner before its match."""

    learned: bool
    loss: float


class Played(Protocol):
    """A block that is played in steps: `core.blocks.BlockPlay` or `RivalBlock`."""

    def __iter__(self) -> Iterator[int]:
        """Learn up to the next stop, and yield the number of rows learned."""
        ...

    @property
    def forecasts(self) -> Array:
        """Forecasts of all rows."""
        ...

    @property
    def targets(self) -> Array:
        """Targets of all rows: numbers (n,), or probabilities (n, K)."""
        ...


class Player(ABC):
    """The interface of a learner to a match."""

    regresses: bool  # forecasts numbers
    probabilities: bool  # forecasts probabilities of classes

    def __init__(self, learner: Any, classes: Any) -> None:
        self.learner = learner
        self.declared = classes
        self.before = Before(False, 0.0)

    def meet_classes(self, y: Any) -> None:
        """Set the classes to those of the first labels, unless they were declared."""
        if self.declared is None and self.classes is None and not self.regresses:
            self.declared = Labels.of(y, None).classes

    @abstractmethod
    def play(self, X: Any, y: Any, weight: Any, stops: list[int]) -> Played:
        """Play a block with pauses at `stops` and at the end; every row is forecast before its label is used."""

    @abstractmethod
    def forecast(self, x: Array) -> Any:
        """The forecast of one row (1, d); None until the learner knows its classes."""

    @property
    @abstractmethod
    def classes(self) -> Any:
        """The labels in the order of the columns of forecasts; None for numbers."""

    def total_loss(self) -> float | None:
        """The loss of the match so far, as used in the regret; None if the learner does not sum it."""
        return None

    @abstractmethod
    def competition(self, domain: Domain | None) -> Competition | None:
        """The loss and the set of comparators of the regret; None if none is declared."""

    def promises(self, domain: Domain | None) -> tuple[float, float]:
        """Certificate and bound, NaN where there is none."""
        return math.nan, math.nan

    def for_comparators(self, X: Any) -> Any:
        """The rows as comparators see them."""
        return X


class OwnPlayer(Player):
    """A learner of this library."""

    def __init__(self, learner: Any, classes: Any) -> None:
        super().__init__(learner, classes)
        self.regresses = is_regressor(learner)
        if hasattr(learner, "state_"):
            self.before = Before(True, float(learner.total_loss_))

    @property
    def probabilities(self) -> bool:  # type: ignore[override]
        """A property, because for some losses this depends on the number of classes."""
        return hasattr(self.learner, "predict_proba")

    def play(self, X: Any, y: Any, weight: Any, stops: list[int]) -> Played:
        """Play by the learner's `play_block`."""
        declared = None if self.regresses or hasattr(self.learner, "state_") else self.declared
        played: Played = self.learner.play_block(X, y, declared, weight, stops=stops)
        return played

    def forecast(self, x: Array) -> Any:
        """The forecast that `predict_then_learn` would return."""
        return self.learner._said(self.learner._forecasts(x))[0] if hasattr(self.learner, "state_") else None

    @property
    def classes(self) -> Any:
        """The learner's `classes_`, once known."""
        return getattr(self.learner, "classes_", None)

    def total_loss(self) -> float | None:
        """The learner's total loss since the match began."""
        return float(self.learner.total_loss_) - self.before.loss

    def competition(self, domain: Domain | None) -> Competition | None:
        """The learner's own competition, with another set if `domain` is given."""
        own: Competition | None = self.learner.competes_with
        return own if own is None or domain is None else own._replace(domain=domain)

    def for_comparators(self, X: Any) -> Any:
        """The rows as transformed by the learner."""
        return self.learner.for_comparators(X)

    def promises(self, domain: Domain | None) -> tuple[float, float]:
        """The learner's certificate and bound; for another set, those for the largest norm in it."""
        if self.before.learned:
            return math.nan, math.nan
        asked: dict[str, float] = {}
        if self.learner.competes_with is not None and domain is not None and not isinstance(domain, WholeSpace):
            n_rows = len(self.classes) if self.learner.competes_with.loss in ("softmax", "multiclass hinge") else 1
            asked = {"comparator_norm": domain.largest_norm(n_rows)}
        certificate, bound = math.nan, math.nan
        try:
            certificate = float(self.learner.regret_certificate(**asked))
        except NoCertificate:
            if asked:  # the set is larger than the one the learner competes with
                return certificate, bound
        try:
            takes = inspect.signature(self.learner.regret_bound).parameters
            bound = float(self.learner.regret_bound(**{k: v for k, v in asked.items() if k in takes}))
        except NoBound:
            pass
        return certificate, bound


class RivalBlock:
    """A block for a learner of another library, in pieces that end at the stops."""

    def __init__(self, rival: RivalPlayer, X: Any, y: Any, stops: list[int]) -> None:
        self.rival, self.X, self.y, self.stops = rival, X, y, stops
        self.targets = rival._targets(y)
        self._said: list[Array] = []

    def __iter__(self) -> Iterator[int]:
        """Play the next piece, and yield the number of rows learned."""
        for first, stop in pairwise(sorted({0, *self.stops, self.targets.shape[0]})):
            some = slice(first, stop)
            self._said.append(self.rival._play(take(self.X, some), take(self.y, some), self.targets[some]))
            yield stop

    @property
    def forecasts(self) -> Array:
        """Forecasts of all rows."""
        return np.concatenate(self._said)


class RivalPlayer(Player):
    """The base class for learners of other libraries: scored by the log loss, without certificate."""

    _labels: Labels | None = None

    @property
    def classes(self) -> Any:
        """The declared classes, or those of the first block."""
        return None if self._labels is None else self._labels.classes

    def _targets(self, y: Any) -> Array:
        if self.regresses:
            return numbers(y, math.inf)
        if self._labels is None:
            self._labels = Labels.of(y, self.declared)
        return self._labels.distributions(y)

    def play(self, X: Any, y: Any, weight: Any, stops: list[int]) -> Played:
        """Play the block in pieces that end at the stops."""
        if weight is not None:
            raise ValueError(f"{type(self.learner).__name__} does not support weights here: omit sample_weight.")
        return RivalBlock(self, X, y, stops)

    @abstractmethod
    def _play(self, X: Any, y: Any, targets: Array) -> Array:
        """Forecast and learn some rows."""

    def competition(self, domain: Domain | None) -> Competition | None:
        """Linear predictors under the same loss, if `domain` is given."""
        loss = "squared" if self.regresses else "logistic" if len(self.classes) == 2 else "softmax"
        return None if domain is None or not (self.probabilities or self.regresses) else Competition(loss, domain)


class RowPlayer(RivalPlayer):
    """A learner that gets one row at a time as a dictionary of features, as in River."""

    def __init__(self, learner: Any, classes: Any) -> None:
        super().__init__(learner, classes)
        kind = type(learner).__module__ + " ".join(base.__name__ for base in type(learner).__mro__)
        self.regresses = not hasattr(learner, "predict_proba_one") and "Regressor" in kind
        self.probabilities = hasattr(learner, "predict_proba_one")
        self._names: list[Any] | None = None  # what the learner calls the classes, decided by its first forecast

    def _play(self, X: Any, y: Any, targets: Array) -> Array:
        """Forecast and learn one row at a time."""
        out = np.empty(targets.shape)
        for t, (row, label) in enumerate(zip(dictionaries(X), np.asarray(y).tolist(), strict=True)):
            out[t] = self._one(row)
            self.learner.learn_one(row, label if self._names is None else self._names[self._code_of(label)])
        return out

    def forecast(self, x: Array) -> Any:
        """The forecast of one row, passed as a dictionary."""
        return None if self._labels is None and not self.regresses else self._one(dictionaries(x)[0])

    def _code_of(self, label: Any) -> int:
        assert self._labels is not None  # a row was forecast before
        return self._labels.code[label]

    def _one(self, row: dict[Any, float]) -> Any:
        if self.regresses:
            return float(self.learner.predict_one(row) or 0.0)
        if not self.probabilities:
            said = self.learner.predict_one(row)
            return np.array([float(said == name) for name in self._names_by([] if said is None else [said])])
        given = self.learner.predict_proba_one(row)
        if isinstance(given, Mapping):
            p = np.array([float(given.get(name, 0.0)) for name in self._names_by(given)])
        else:
            p = self._in_order(given)
        return p / p.sum() if 0 < p.sum() < math.inf else np.full(p.size, 1 / p.size)  # no usable forecast: uniform

    def _names_by(self, said: Iterable[Any]) -> list[Any]:
        """What the learner calls the classes, given the classes that it forecasts.

        Two classes are False and True, which River's classifiers of two classes expect, unless it forecasts the labels.
        """
        if self._names is None:
            labels, own = self.classes.tolist(), [*said]
            has_them = bool(own) and all(name in labels and type(name) is not bool for name in own)
            self._names = labels if len(labels) != 2 or has_them else [False, True]
        return self._names

    def _in_order(self, given: Any) -> Array:
        """Probabilities given as an array, in the order of the classes."""
        labels = self.classes.tolist()
        self._names = self._names or labels
        p = np.asarray(given, dtype=np.float64).ravel()
        if p.size != len(labels):
            raise ValueError(
                f"{type(self.learner).__name__}.predict_proba_one returned {p.size} numbers for {len(labels)} classes. "
                f"Return a dictionary from class to probability, or one number per class in the order {labels}."
            )
        return p


def dictionaries(X: Any) -> list[dict[Any, float]]:
    """Rows as dictionaries from column (name or number) to value; for sparse rows, of the stored entries."""
    if hasattr(X, "to_dict"):
        rows: list[dict[Any, float]] = X.to_dict(orient="records")
        return rows
    if sparse.issparse(X):
        X = X.tocsr()
        ends = X.indptr.tolist()
        return [dict(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True)) for a, b in pairwise(ends)]
    return [dict(enumerate(row)) for row in np.asarray(X).tolist()]


class BatchPlayer(RivalPlayer):
    """A scikit-learn estimator: forecasts `batch` rows, then learns them."""

    def __init__(self, learner: Any, classes: Any, batch: int) -> None:
        super().__init__(learner, classes)
        self.batch = batch
        self.begun = hasattr(learner, "n_features_in_")
        self.regresses = is_regressor(learner)
        self.probabilities = hasattr(learner, "predict_proba")

    def _play(self, X: Any, y: Any, targets: Array) -> Array:
        """Forecast each batch before any of its rows is learned."""
        out = []
        for i in range(0, targets.shape[0], self.batch):
            some = slice(i, i + self.batch)
            rows, labels = take(X, some), take(y, some)
            out.append(self._forecasts(rows, targets[some].shape[0]))
            self.learner.partial_fit(rows, labels, **({} if self.regresses else {"classes": self.classes}))
            self.begun = True
        return np.concatenate(out)

    def forecast(self, x: Array) -> Any:
        """The forecast of one row."""
        return None if self._labels is None and not self.regresses else self._forecasts(x, 1)[0]

    def _forecasts(self, rows: Any, n: int) -> Array:
        if not self.begun:  # it cannot forecast before its first row: use 0, or uniform probabilities
            return np.zeros(n) if self.regresses else np.full((n, len(self.classes)), 1 / len(self.classes))
        if self.regresses:
            return np.asarray(self.learner.predict(rows), dtype=np.float64)
        if self.probabilities:
            p = np.array(self.learner.predict_proba(rows), dtype=np.float64)
            p[~np.isfinite(p).all(axis=1)] = 1 / p.shape[1]  # not finite: uniform
            return p
        return margin_as_scores(np.asarray(self.learner.decision_function(rows), dtype=np.float64))


def take(rows: Any, some: slice) -> Any:
    """A slice of the rows of an array, a data frame, a table, a sparse matrix or a list."""
    if hasattr(rows, "column_names"):  # a PyArrow table
        return rows.slice(some.start, some.stop - some.start)
    return rows.iloc[some] if hasattr(rows, "iloc") else rows[some]


def number_of_rows(rows: Any) -> int:
    """The number of rows."""
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def margin_as_scores(forecasts: Array) -> Array:
    """Scores (n, K); margins (n,) of two classes become (n, 2)."""
    return np.column_stack([-forecasts, forecasts]) if forecasts.ndim == 1 else forecasts
