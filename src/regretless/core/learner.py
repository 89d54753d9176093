"""OnlineLearner: everything public that learners share, written once.

A learner is a scikit-learn estimator. Its hyper-parameters are read when the first row arrives; what it
has learned since is `state_`, a NamedTuple of float64 arrays. A learner's own file supplies

- `_prepare(n_features, n_classes)`: the validated numbers its kernels read;
- `_start(n_features, n_classes)`: the state before the first row;
- `_run(X, Y, weight, out)`: the game over a block, in place on the state (a row is a block of length one);
- `_forecast(X, out)`: the forecasts for a block, changing nothing;
- `_limits()`: the largest rows it takes;

and says what it competes with, its certificate and its bound.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from regretless.core import state_checks, validate
from regretless.core.errors import BadRow, NoBound
from regretless.core.inputs import as_block, as_floats, as_soft_block, has_names, in_rows, readable_rows
from regretless.core.interrupts import stretches, uninterrupted
from regretless.core.labels import Labels
from regretless.core.links import to_probabilities
from regretless.core.rows import SparseRows
from regretless.core.stored import Stored
from regretless.core.tally import LOSS
from regretless.core.turns import alone
from regretless.core.types import Array

if TYPE_CHECKING:
    from regretless.theory.domains import Competition

BLOCK = 16_384  # rows handed to a kernel at a time: bounds the memory that labels and forecasts take
ONE = np.ones(1)
FLOAT = np.dtype(np.float64)
LARGEST_TARGET = 1e150  # its square is a number


class OnlineLearner(Stored):
    """A learner that meets its rows one at a time: forecast, see the label, suffer the loss, update."""

    _learned: ClassVar[tuple[str, ...]] = ("_largest", "_parts")
    _largest: tuple[float, float]

    # ------------------------------------------------------------------ what a learner supplies

    @abstractmethod
    def _prepare(self, n_features: int, n_classes: int) -> Any: ...

    @abstractmethod
    def _start(self, n_features: int, n_classes: int) -> NamedTuple: ...

    @abstractmethod
    def _run(self, X: Any, Y: Array, weight: Array, out: Array) -> None: ...

    @abstractmethod
    def _forecast(self, X: Any, out: Array) -> None: ...

    @abstractmethod
    def _limits(self) -> tuple[float, float]:
        """The largest |x| declared (infinity if none), and the largest |x| sqrt(weight) the arithmetic stands."""

    @property
    @abstractmethod
    def competes_with(self) -> Competition:
        """The loss and the set of comparators of this learner's regret."""

    @property
    def total_loss_(self) -> float:
        """What the learner has suffered so far, in the loss of `competes_with`."""
        check_is_fitted(self, "state_")
        return float(self.state_.tally[LOSS])

    @property
    def _in_play(self) -> Any:
        """The constants of the game in play; before the first row the learner, whose parameters have the same names."""
        return self.__dict__.get("_constants", self)

    def _aside(self) -> dict[str, Any]:
        """What a model file must keep beside parameters, classes and state, as JSON can."""
        return {"parts": self._parts} if self._parts > 1 else {}

    def _take_up(self, aside: dict[str, Any]) -> None:
        """Take back what `_aside` gave, before the state is there; refuse what it cannot have given."""
        state_checks.require(set(aside) <= {"parts"}, f"aside={aside!r} is not what this learner keeps aside")
        if "parts" in aside:
            self._parts = validate.whole("parts", aside["parts"], 2)

    @property
    def _least_rows(self) -> int:
        """Blocks cut at multiples of this, a power of two, give the same bits; but for 1, none may be shorter."""
        return 1

    def _iterate(self) -> Array | None:
        """The weights that forecast, where the forecast is linear in the row.

        A learner that has them also has `_forecast_by(weights, X, out)`, which is `_forecast` by other weights.
        """
        return None

    def _merged(self, states: Sequence[Any], common: Any) -> Any:
        """The state with the rows of all these, which went on from a common one: where states are sums over rows."""
        reason = "each of its steps starts where the last one ended, so that its state is not a sum over rows."
        if self._growing:
            reason = "it remembers its rows and looks at all of them anew: give those of the other to `partial_fit`."
        elif self._holds:
            reason = "what it knows of its members is of one run: merge these, `estimators_`, and begin anew with them."
        raise ValueError(
            f"{type(self).__name__} cannot be merged: {reason} AIOLI, FOLKLORE, GAF and VovkAzouryWarmuth can."
        )

    def _require_one_game(self) -> None:
        """Theorems speak of forecasts made one after another."""
        if self._parts > 1:
            raise NoBound(
                f"the rows were forecast by {self._parts} learners, each from what it had learned itself, and the "
                "theorem is about one that meets them all in turn. regret_certificate() covers what was merged."
            )

    def _for_comparators(self, X: Any) -> Any:
        """The rows as the comparators see them."""
        return X

    @abstractmethod
    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        """An upper bound on the regret so far, from what the learner itself has added up."""

    @abstractmethod
    def regret_bound(self, n: int | None = None) -> float:
        """What the learner's theorem promises for the regret after `n` rows (default: the rows so far)."""

    # ------------------------------------------------------------------ what depends on the kind of target

    _n_classes: int
    _takes_sparse: ClassVar[bool] = False  # scipy's CSR rows: they reach `_run` as `SparseRows`
    _reads_tables: ClassVar[bool] = False  # tables with columns of text
    _inner_loop: ClassVar[str] = "_run"  # the method that a run calls with every block
    _one_step: ClassVar[bool] = False  # whether `_run` learns one row by one compiled call, which nothing interrupts
    _parts: int = 1  # the learners that were merged into this one

    @abstractmethod
    def _meet_targets(self, y: Any, classes: Any) -> None:
        """Read the kind of target off the first labels."""

    @abstractmethod
    def _targets(self, y: Any, classes: Any) -> Array: ...

    @abstractmethod
    def _target(self, y: Any, classes: Any) -> Array:
        """The target of one row, as a block of length one."""

    @abstractmethod
    def _new_forecasts(self, n: int) -> Array: ...

    @abstractmethod
    def _said(self, out: Array) -> Array: ...

    # ------------------------------------------------------------------ the game

    def _play(self, X: Any, y: Any, classes: Any, sample_weight: Any, keep: bool) -> tuple[Array, Array]:
        """One pass over a block: what the kernels wrote, and the targets. All is checked before any is learned."""
        X, Y, weight = self._take_in(X, y, classes, sample_weight)
        return self._run_through(X, Y, weight, keep), Y

    def _take_in(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
        """Rows, targets and weights as `_run` takes them; the first time the game begins with them."""
        with self._untouched_on_error():
            first = not hasattr(self, "state_")
            X = self._rows(X, reset=first)
            if y is None:
                raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
            if not (isinstance(y, np.ndarray) and y.shape[:1] == X.shape[:1]):
                check_consistent_length(X, y)
            if first:
                self._meet_targets(y, classes)
            Y = self._targets(y, None if first else classes)
            weight = validate.weights(sample_weight, X.shape[0])
            if first:
                self._begin(X.shape[1])
            self._check_rows(X, ONE if sample_weight is None else weight)
        return X, Y, weight

    def _run_through(self, X: Any, Y: Array, weight: Array, keep: bool) -> Array:
        """`_run` over checked rows, a block at a time; all forecasts, or those of the last block."""
        out = self._new_forecasts(X.shape[0] if keep else min(BLOCK, X.shape[0]))
        for i in range(0, X.shape[0], BLOCK):
            block = slice(i, i + BLOCK)
            forecasts = out[block] if keep else out[: X.shape[0] - i]
            self._run_block(X[block], Y[block], weight[block], forecasts)
        return out

    def _run_block(self, X: Any, Y: Array, weight: Array, out: Array) -> None:
        for rows in stretches(X.shape[0], self._least_rows, bool(self._holds)):
            self._run(X[rows], Y[rows], weight[rows], out[rows])

    def _begin(self, n_features: int) -> None:
        self._constants = self._prepare(n_features, self._n_classes)
        self._played_with = self.get_params(deep=False)
        self._largest = self._limits()
        self.state_ = self._start(n_features, self._n_classes)

    def _rows(self, X: Any, reset: bool) -> Array | SparseRows:
        if self._is_plain(X, None if reset else self.n_features_in_):
            self.n_features_in_ = X.shape[1]
        else:  # scikit-learn's checks take as long as a thousand rows
            X = validate_data(
                self,
                readable_rows(X, getattr(self, "feature_names_in_", None)),
                reset=reset,
                accept_sparse="csr" if self._takes_sparse else False,
                dtype=np.float64,
                order="C",
                ensure_all_finite=False,
                copy=None,
            )
        return SparseRows.of(X) if sparse.issparse(X) else validate.writable(X)

    def _is_plain(self, X: Any, width: int | None) -> bool:
        """Whether this is a block of rows as they are kept, of the width expected (None: any), without names."""
        return (
            (type(X) is np.ndarray or (self._takes_sparse and sparse.issparse(X) and X.format == "csr"))
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[0] > 0
            and (X.shape[1] == width if width else X.shape[1] > 0)
            and not hasattr(self, "feature_names_in_")
        )

    def _row(self, x: Any) -> Array | SparseRows:
        """One row as a block of length one."""
        if is_plain_row(x, self.n_features_in_):
            row = x[None]
            self._check_rows(row, ONE)
            return row
        if sparse.issparse(x) or has_names(x):
            found = self._rows(as_block(x), reset=False)
            if found.shape[0] != 1:
                raise BadRow(f"x has shape {found.shape}: give one row.")
            self._check_rows(found, ONE)
            return found
        row = np.ascontiguousarray(as_floats(x, in_rows(getattr(self, "feature_names_in_", None))))
        if row.shape != (self.n_features_in_,):
            raise BadRow(f"x has shape {row.shape}; this learner takes {self.n_features_in_} features.")
        row = validate.writable(row.reshape(1, -1))
        self._check_rows(row, ONE)
        return row

    def _check_rows(self, X: Array | SparseRows, weight: Array) -> None:
        bound, reach = self._largest
        if weight is ONE and type(X) is np.ndarray:
            most = min(bound, reach)
            if validate.largest_square(X) <= most * most:
                return
        names = getattr(self, "feature_names_in_", None)
        if isinstance(X, SparseRows):
            X.check(weight, bound, reach, names)
        else:
            validate.rows(X, weight, bound, reach, names)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a block of rows, in order."""
        self._play(X, y, classes, sample_weight, keep=False)
        return self

    def fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Forget everything, then learn from the rows in one pass, in the order given."""
        with self._untouched_on_error():
            self._forget()
            return self.partial_fit(X, y, classes, sample_weight)

    def _forecasts(self, X: Any) -> Array:
        check_is_fitted(self, "state_")
        X = self._rows(X, reset=False)
        self._check_rows(X, ONE)
        out = self._new_forecasts(X.shape[0])
        self._forecast(X, out)
        return out

    def _forecast_of_one(self, x: Any) -> Array:
        if "state_" not in self.__dict__:
            check_is_fitted(self, "state_")
        row = self._row(x)
        out = self._new_forecasts(1)
        self._forecast(row, out)
        return out

    @alone
    def learn_one(self, x: Any, y: Any, classes: Any = None) -> None:
        """Learn from one row. (A classifier's first needs `classes`, unless a block has been learned before.)"""
        if "state_" in self.__dict__:
            row, target, out = self._row(x), self._target(y, classes), self._new_forecasts(1)
            if self._one_step:
                self._run(row, target, ONE, out)
                return
            with uninterrupted():
                self._run(row, target, ONE, out)
        else:
            self.partial_fit(as_block(x), as_soft_block(y) if np.ndim(y) == 1 else [y], classes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags

    def merge(self, *others: Self) -> Self:
        """A new learner that has learned the rows of all (`regretless.merge`)."""
        from regretless.core.merging import merge

        return merge([self, *others])


class OnlineClassifier(ClassifierMixin, OnlineLearner):
    """A learner of classes: it forecasts probabilities and suffers their log loss."""

    _binary_only: ClassVar[bool] = False

    @property
    def _n_classes(self) -> int:  # type: ignore[override]
        return int(self.classes_.size)

    def _meet_targets(self, y: Any, classes: Any) -> None:
        self._meet_classes(Labels.of(y, classes))

    def _meet_classes(self, labels: Labels) -> None:
        if self._binary_only and labels.classes.size > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"{type(self).__name__} forecasts two classes and there are {labels.classes.size} "
                "here. Use FOLKLORE or GAF."
            )
        super()._meet_classes(labels)

    def _targets(self, y: Any, classes: Any) -> Array:
        self._check_declared(classes)
        return self._labels.distributions(y)

    def _target(self, y: Any, classes: Any) -> Array:
        self._check_declared(classes)
        try:
            return self._labels.target_of[y]
        except (KeyError, TypeError):  # label probabilities, or no class
            pass
        if np.ndim(y) == 1:
            return self._labels.distributions(as_soft_block(y))
        raise self._labels.unknown(y, 0)

    def _check_declared(self, classes: Any) -> None:
        if classes is not None and list(classes) != self.classes_.tolist():
            raise ValueError(f"classes={list(classes)} differs from those of the first call, {self.classes_.tolist()}.")

    def _new_forecasts(self, n: int) -> Array:
        return np.empty((n, self._n_classes))

    def predict_then_learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Array:
        """Play the game: row t's probabilities are made before row t's label is used. Returns (n, K)."""
        return self._said(self._play(X, y, classes, sample_weight, keep=True)[0])

    def _said(self, out: Array) -> Array:
        """What the kernels wrote, as `predict_then_learn` returns it."""
        to_probabilities(out)
        return out

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K), columns in the order of `classes_`. Changes nothing."""
        out = self._forecasts(X)
        to_probabilities(out)
        return out

    def decision_function(self, X: Any) -> Array:
        """The margin (n,) of the second class for two classes, else logits (n, K)."""
        out = self._forecasts(X)
        return out[:, 1] - out[:, 0] if out.shape[1] == 2 else out

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        winners = np.argmax(self._forecasts(X), axis=1)
        return self.classes_[winners]

    def predict_proba_one(self, x: Any) -> Array:
        """Probabilities (K,) of one row."""
        out = self._forecast_of_one(x)
        to_probabilities(out)
        return out[0]

    def predict_one(self, x: Any) -> Any:
        """The most probable class of one row."""
        winner = int(np.argmax(self._forecast_of_one(x)))
        return self.classes_[winner]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._binary_only
        return tags


class OnlineRegressor(RegressorMixin, OnlineLearner):
    """A learner of real numbers: it forecasts a number and suffers the squared loss."""

    _n_classes = 1

    def _meet_targets(self, y: Any, classes: Any) -> None:
        if classes is not None:
            raise ValueError(f"{type(self).__name__} forecasts numbers; it takes no classes.")

    def _targets(self, y: Any, classes: Any) -> Array:
        return validate.numbers(y, LARGEST_TARGET)

    def _target(self, y: Any, classes: Any) -> Array:
        return self._targets([y], classes)

    def _new_forecasts(self, n: int) -> Array:
        return np.empty(n)

    def predict_then_learn(self, X: Any, y: Any, sample_weight: Any = None) -> Array:
        """Play the game: row t's forecast is made before row t's number is used. Returns (n,)."""
        return self._said(self._play(X, y, None, sample_weight, keep=True)[0])

    def _said(self, out: Array) -> Array:
        return out

    def predict(self, X: Any) -> Array:
        """Forecasts (n,). Changes nothing."""
        return self._forecasts(X)

    def predict_one(self, x: Any) -> float:
        """The forecast of one row."""
        return float(self._forecast_of_one(x)[0])


def is_plain_row(x: Any, width: int) -> bool:
    """Whether x is a row as the kernels take it: the usual case, and the fast one."""
    return type(x) is np.ndarray and x.dtype is FLOAT and x.shape == (width,) and x.flags.carray
