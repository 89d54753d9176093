"""OnlineLearner, OnlineClassifier and OnlineRegressor: the base classes of all learners.

A learner is a scikit-learn estimator. Its hyper-parameters are read with the first row; everything learned is in
`state_`, a NamedTuple of float64 arrays. A learner implements

- `_prepare(n_features, n_classes)`: validates the hyper-parameters and returns the constants of its kernels;
- `_start(n_features, n_classes)`: returns the state before the first row;
- `_run(X, Y, weight, out)`: forecasts and learns a block, in place on the state (a row is a block of length one);
- `_forecast(X, out)`: forecasts a block and changes nothing;
- `_limits()`: returns the largest rows that it accepts;

and `competes_with`, `regret_certificate` and `regret_bound`. docs/architecture.md lists the optional methods.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy import ndarray
from scipy import sparse

from regretless.core.blocks import Block, BlockPlay
from regretless.core.effects import ONE_MORE, Effect, largest_first, names_of
from regretless.core.errors import BadRow, NoBound
from regretless.core.files import state_checks
from regretless.core.files.stored import Stored
from regretless.core.interrupts import uninterrupted
from regretless.core.kernels.one_row import CSR, RowCall, RowKernels, entries_of
from regretless.core.numbers.links import to_probabilities
from regretless.core.numbers.tally import LOSS, ROWS
from regretless.core.rows import validate
from regretless.core.rows.compressed import SparseRows
from regretless.core.rows.inputs import as_block, as_floats, as_soft_block, has_names, in_rows, readable_rows
from regretless.core.rows.labels import Labels
from regretless.core.rows.validate import LARGEST_TARGET
from regretless.core.scikit_learn import ClassifierMixin, RegressorMixin, check_is_fitted, validate_data
from regretless.core.tickets import Settled, Ticket, copy_of_row, loss_of
from regretless.core.turns import WRITER, alone, learns, reads, takes_its_turn, turn_of
from regretless.core.types import FLOAT, Array

if TYPE_CHECKING:
    from regretless.theory.domains import Competition

ONE = np.ones(1)
NO_TARGETS = np.empty(0)


class OnlineLearner(Stored):
    """A learner that processes rows one at a time: forecast, see the label, incur the loss, update."""

    _learned: ClassVar[tuple[str, ...]] = ("_largest", "_parts")
    _largest: tuple[float, float]

    # ------------------------------------------------------------------ methods that a learner implements

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
        """The largest declared |x| (infinity if none), and the largest |x| sqrt(weight) that does not overflow."""

    @property
    @abstractmethod
    def competes_with(self) -> Competition:
        """The loss and the set of comparators of this learner's regret."""

    @property
    def total_loss_(self) -> float:
        """The total loss so far, in the loss of `competes_with`."""
        check_is_fitted(self, "state_")
        return float(self.state_.tally[LOSS])

    @property
    def _in_play(self) -> Any:
        """The constants of the game in play; before the first row the learner, whose parameters have the same names."""
        return self.__dict__.get("_constants", self)

    def _aside(self) -> dict[str, Any]:
        """Data that a model file stores in addition to parameters, classes and state, as JSON."""
        return {"parts": self._parts} if self._parts > 1 else {}

    def _take_up(self, aside: dict[str, Any]) -> None:
        """Restore the data of `_aside`, before the state is created; refuse invalid data."""
        state_checks.require(set(aside) <= {"parts"}, f"aside={aside!r} is not expected")
        if "parts" in aside:
            self._parts = validate.whole("parts", aside["parts"], 2)

    def _first_invalid(self, stack: Any) -> int:
        """The first of many states, in arrays with one more axis, that `_check_state` refuses; -1 if there is none."""
        one = copy.copy(self)
        for i in range(len(stack[0])):
            one.state_ = type(stack)(*(arrays[i] for arrays in stack))
            try:
                one._check_state()
            except ValueError:
                return i
        return -1

    def _end_block(self) -> None:
        """Called after the rows of a block, also after an error: brings the state back from wherever `_run` had it."""
        for attribute in self.holds.values():
            held = getattr(self, attribute, [])
            for each in held if isinstance(held, list) else [held]:
                if isinstance(each, OnlineLearner):
                    each._end_block()

    @property
    def least_rows(self) -> int:
        """Divisions into blocks at multiples of this power of two give identical results; above 1, none is shorter."""
        return 1

    def _iterate(self) -> Array | None:
        """The weights of the forecast, if it is linear in the row; else None.

        A learner that has them also has `_forecast_by(weights, X, out)`, which is `_forecast` with other weights.
        """
        return None

    def _follow(self, parts: Sequence[Any]) -> None:
        """Take over what these learners know besides their states, before they are merged into this one."""
        self._parts = sum(part._parts for part in parts)

    def _merged(self, states: Sequence[Any], common: Any, rule: str | float) -> Any:
        """The state with the rows of all these, which started from a common one, if states are sums over rows.

        For rule see `merge`; a number is one that `_rule_by` returned.
        """
        reason = "each of its steps depends on the last one, so its state is not a sum over rows."
        if "X" in self.grows:
            reason = "it stores its rows and uses all of them in every step: pass the other rows to `partial_fit`."
        elif self.holds:
            reason = "its weights belong to one run: merge its members, `estimators_`, and start again with them."
        raise ValueError(
            f"{type(self).__name__} cannot be merged: {reason} AIOLI, FOLKLORE, GAF and VovkAzouryWarmuth can."
        )

    def _rule_by(self, states: Sequence[Any], X: Any, Y: Array, weight: Array) -> str | float:
        """The rule by which these states, merged into this learner, forecast some rows well.

        A learner with more than one rule implements it.
        """
        return "sum"

    def _require_one_game(self) -> None:
        """Refuse merged learners: theorems are about consecutive forecasts of one learner."""
        if self._parts > 1:
            raise NoBound(
                f"the rows were forecast by {self._parts} learners that were merged, and the theorem is about a single "
                "learner that sees all rows. regret_certificate() covers merged learners."
            )

    def for_comparators(self, X: Any) -> Any:
        """The rows as used by the comparators."""
        return X

    @abstractmethod
    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        """An upper bound on the regret so far, computed from the learner's running sums."""

    @abstractmethod
    def regret_bound(self, n: int | None = None) -> float:
        """The bound of the learner's theorem on the regret after `n` rows (default: the rows so far)."""

    def to_udf(self) -> Any:
        """A pandas UDF for Spark of this learner as it is now: see `regretless.scale.spark.to_udf`.

        ``rows.withColumn("p", learner.to_udf()("age", "income"))``
        """
        engine: Any = import_module("regretless.scale.spark")  # by name: this layer is below all engines
        return engine.to_udf(self)

    # ------------------------------------------------------------------ depends on the target type

    _n_classes: int
    takes_sparse: ClassVar[bool] = False  # SciPy CSR rows: passed to `_run` as `SparseRows`
    reads_tables: ClassVar[bool] = False  # tables with text columns
    _one_step: ClassVar[bool] = False  # whether `_run` learns one row with one compiled call, without interrupts
    _parts: int = 1  # the number of learners merged into this one

    @abstractmethod
    def _meet_targets(self, y: Any, classes: Any) -> None:
        """Determine the target type from the first labels."""

    @abstractmethod
    def _targets(self, y: Any, classes: Any) -> Array: ...

    @abstractmethod
    def _target(self, y: Any, classes: Any) -> Array:
        """The target of one row, as a block of length one."""

    @abstractmethod
    def _new_forecasts(self, n: int) -> Array: ...

    @abstractmethod
    def _said(self, out: Array) -> Array: ...

    # ------------------------------------------------------------------ learning

    def play_block(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, stops: Iterable[int] = ()
    ) -> BlockPlay:
        """Check a block of rows, then learn it in steps: iterate over the result.

        It yields the number of rows learned at each of `stops` and at the end. At a pause the learner has learned
        exactly those rows, so that one can read its certificate or copy it. After the last step, the result has the
        `forecasts` and `targets` of all rows.

        >>> import regretless
        >>> learner, X = regretless.AIOLI(), [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
        >>> game = learner.play_block(X, ["no", "yes", "yes"], stops=[2])
        >>> [(rows, round(learner.total_loss_, 3)) for rows in game]
        [(2, 1.386), (3, 2.079)]
        >>> game.forecasts.shape
        (3, 2)
        """
        return BlockPlay(self, self._open_block(X, y, classes, sample_weight, keep=True), stops)

    @learns
    def _learn_to(self, block: Any, stop: int) -> None:
        block.learn_to(stop)

    def _play(self, X: Any, y: Any, classes: Any, sample_weight: Any, keep: bool) -> tuple[Array, Array]:
        """Learn a block; returns the output of the kernels, and the targets. Everything is checked before learning."""
        block = self._open_block(X, y, classes, sample_weight, keep)
        block.learn_to(block.n)
        found: tuple[Array, Array] = block.results()
        return found

    def _open_block(self, X: Any, y: Any, classes: Any, sample_weight: Any, keep: bool) -> Any:
        """Check rows, labels and weights; nothing is learned yet."""
        X, Y, weight = self._take_in(X, y, classes, sample_weight)
        return Block(self, X, Y, weight, keep)

    def _take_in(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
        """Rows, targets and weights in the form of `_run`; creates the state on the first call."""
        with self._untouched_on_error():
            first = not hasattr(self, "state_")
            X = self._rows(X, reset=first)
            if y is None:
                raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
            validate.one_per_row(y, X.shape[0])
            if first:
                self._meet_targets(y, classes)
            Y = self._targets(y, None if first else classes)
            weight = validate.weights(sample_weight, X.shape[0])
            if first:
                self._begin(X.shape[1])
            self._check_rows(X, ONE if sample_weight is None else weight)
        return X, Y, weight

    def begin(self, features: int | Sequence[Any], classes: Any = None) -> Self:
        """Begin before the first row, so that there is a forecast before there is a label.

        Parameters
        ----------
        features : the number of columns, or their names. Rows are then data frames with these names, or, where a
            learner reads them, dictionaries.
        classes : the labels, for a classifier.

        >>> import regretless
        >>> regretless.AIOLI().begin(2, classes=["no", "yes"]).predict_proba_one([0.3, 0.1])
        array([0.5, 0.5])
        """
        if hasattr(self, "state_"):
            raise ValueError(f"this {type(self).__name__} has begun already; use a clone, or `fit`, to start again.")
        with self._untouched_on_error():
            self._meet_columns(features)
            self._meet_targets(NO_TARGETS, classes)
            self._begin(self.n_features_in_)
        return self

    def _meet_columns(self, features: int | Sequence[Any]) -> None:
        """Take the number of columns, or their names, before there is a row."""
        if isinstance(features, int | np.integer):
            self.n_features_in_ = validate.whole("features", features, 1)
            return
        names = list(features)
        if not names or len({*names}) < len(names) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"features={features!r}: pass the number of columns, or different names as text.")
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)

    def _begin(self, n_features: int) -> None:
        self._constants = self._prepare(n_features, self._n_classes)
        self.params_ = self.get_params(deep=False)
        self._largest = self._limits()
        self.state_ = self._start(n_features, self._n_classes)

    def _rows(self, X: Any, reset: bool) -> Array | SparseRows:
        if self._is_plain(X, None if reset else self.n_features_in_):
            self.n_features_in_ = X.shape[1]
        else:  # scikit-learn's checks take as long as learning a thousand rows
            X = validate_data(
                self,
                readable_rows(X, getattr(self, "feature_names_in_", None)),
                reset=reset,
                accept_sparse="csr" if self.takes_sparse else False,
                dtype=np.float64,
                order="C",
                ensure_all_finite=False,
                copy=None,
            )
        return SparseRows.of(X) if sparse.issparse(X) else validate.writable(X)

    def _is_plain(self, X: Any, width: int | None) -> bool:
        """Whether X is a block in the form of the kernels, with the given width (None: any), without names."""
        return (
            (type(X) is np.ndarray or (self.takes_sparse and sparse.issparse(X) and X.format == "csr"))
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
                raise BadRow(f"x has shape {found.shape}: pass one row.")
            self._check_rows(found, ONE)
            return found
        row = np.ascontiguousarray(as_floats(x, in_rows(getattr(self, "feature_names_in_", None))))
        if row.shape != (self.n_features_in_,):
            raise BadRow(f"x has shape {row.shape}; this learner expects {self.n_features_in_} features.")
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
        """Forget everything, then learn from the rows in one pass, in the given order."""
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

    @reads
    def _forecast_of_one(self, x: Any) -> Array:
        """The forecast of one row, as a block of length one, by the methods for blocks."""
        if "state_" not in self.__dict__:
            check_is_fitted(self, "state_")
        row = self._row(x)
        out = self._new_forecasts(1)
        self._forecast(row, out)
        return out

    # ------------------------------------------------------------------ one row by one compiled call

    # The cost of one row is mostly that of Python. A usual row is learned and forecast by one compiled call, which
    # checks it (core/kernels/one_row.py). All other rows, and rows with errors, use the methods for blocks, which raise
    # the errors. So do calls that must wait for another thread: the code below is `turns.alone` and `turns.reads`,
    # written out for a learner that no other thread uses. A compiled call is not interrupted by Ctrl-C, so nothing has
    # to be undone.

    def _row_kernels(self) -> RowKernels | None:
        """The kernels that learn and forecast one row of the present state; None if a row takes more than these."""
        return None

    def _by_kernels(self, run: Any, forecast: Any, **more: Any) -> RowKernels:
        """These kernels with the state, constants, labels and limits of the learner."""
        codes = None if self._n_classes == 1 else self._labels.code
        more = {"constants": self._constants, "codes": codes, "largest": min(self._largest)} | more
        return RowKernels(run, forecast, self.state_, **more)

    def _row_call_now(self) -> RowCall:
        """The compiled calls for the present state, constants and labels."""
        try:
            call: RowCall = self._row_call
            has = self.__dict__
            if (
                call.state is has["state_"]
                and call.constants is has["_constants"]
                and call.labels is has.get("_labels")
            ):
                return call
        except AttributeError:
            pass
        self._row_call = call = RowCall(self)
        return call

    @takes_its_turn
    def learn_one(self, x: Any, y: Any, classes: Any = None) -> None:
        """Learn from one row. (The first row of a classifier needs `classes`, unless a block was learned before.)"""
        row = self._usual_row(x) if classes is None and "state_" in self.__dict__ else None
        if row is not None:
            try:
                turn = self._turn
            except AttributeError:
                turn = turn_of(self)
            me, writer = get_ident(), turn.writer
            if not writer and not turn.waiting:
                try:
                    if writer.setdefault(WRITER, me) == me and not turn.readers:
                        if self._row_call_now().learn(row, y):
                            return
                finally:
                    if writer and writer[WRITER] == me:
                        del writer[WRITER]
        self._learn_any(x, y, classes)

    def _usual_row(self, x: Any) -> Any:
        """x as a row that a compiled call takes: an array, or the three arrays of a CSR row; None for all others."""
        if type(x) is ndarray:
            if x.dtype is FLOAT and x.ndim == 1:
                return x
        elif type(x) in CSR:
            return entries_of(x, self.n_features_in_)
        return None

    @alone
    def _learn_any(self, x: Any, y: Any, classes: Any) -> None:
        """Learn from one row by the methods for blocks."""
        if "state_" in self.__dict__:
            row, target, out = self._row(x), self._target(y, classes), self._new_forecasts(1)
            if self._one_step:
                self._run(row, target, ONE, out)
                return
            with uninterrupted():
                self._run(row, target, ONE, out)
        else:
            self._learn_block_of_one(x, y, classes, None)

    def _learn_block_of_one(self, x: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        self.partial_fit(as_block(x), as_soft_block(y) if np.ndim(y) == 1 else [y], classes, sample_weight)

    # ------------------------------------------------------------------ explanations

    def effects(self, names: Sequence[Any] | None = None) -> list[Effect]:
        """How the forecast changes with each feature, largest change first.

        For a linear learner, these are the weights. Columns of different scales have weights of different scales:
        compare them after standardising, or use `OnlineLogisticRegression`, which does that itself.

        Parameters
        ----------
        names : the names of the features; None means those of the data frame that was learned, or x0, x1, ...
        """
        check_is_fitted(self, "state_")
        weights = getattr(self, "coef_", None)
        if weights is None:
            raise ValueError(f"{type(self).__name__} has no weights per feature, so that it has no effects to show.")
        titles = names_of(self, names, weights.shape[1])
        return largest_first(map(Effect, titles, [ONE_MORE] * len(titles), weights.T))

    # ------------------------------------------------------------------ labels that come later

    def forecast(self, x: Any) -> Ticket:
        """Forecast one row whose label comes later; pass the ticket to `learn` when it is known.

        >>> import regretless
        >>> learner = regretless.AIOLI().begin(2, classes=["no", "yes"])
        >>> ticket, other = learner.forecast([0.0, 1.0]), learner.forecast([1.0, 0.0])
        >>> print(f"{learner.learn(other, 'no').loss:.3f}")
        0.693
        >>> print(learner.learn(ticket, "yes").delay, ticket.forecast)
        1 [0.5 0.5]
        """
        check_is_fitted(self, "state_")
        said, classes = self._forecast_and_classes(x)
        return Ticket(copy_of_row(x), said, classes, self._count_learned())

    @learns
    def learn(self, ticket: Ticket, y: Any, sample_weight: float | None = None) -> Settled:
        """Learn the row of a ticket, whose label is now known. Returns the losses of both forecasts.

        The forecast in the ticket is older than the learner by `delay` rows. The loss of the forecasts in all tickets
        exceeds the best in hindsight by at most the certificate plus the sum of the costs, if the learner has the log
        loss or the squared one and the weights are 1.
        """
        if not isinstance(ticket, Ticket):
            raise TypeError(f"learn takes a ticket that forecast() returned, not a {type(ticket).__name__}.")
        if ticket.learned:
            raise ValueError("this ticket was learned already: each is learned once.")
        said, classes = self._forecast_and_classes(ticket.x)
        settled = Settled(
            loss_of(ticket.forecast, ticket.classes, y),
            loss_of(said, classes, y),
            self._count_learned() - ticket.rows,
        )
        if sample_weight is None:
            self.learn_one(ticket.x, y)
        else:
            self._learn_block_of_one(ticket.x, y, None, [sample_weight])
        ticket.learned = True
        return settled

    def _forecast_and_classes(self, x: Any) -> tuple[Any, Array | None]:
        """The forecast of one row, and the classes that it is about."""
        if not hasattr(self, "classes_"):
            return self.predict_one(x), None
        says = getattr(self, "predict_proba_one", None) or self.predict_one
        return says(x), self.classes_

    def _count_learned(self) -> int:
        return int(self.state_.tally[ROWS])

    def _ask(self, x: Any, question: Callable[[RowCall, Any], Any]) -> Any:
        """What the compiled calls say of one row; None for an unusual row, or one that waits for another thread."""
        row = self._usual_row(x) if "state_" in self.__dict__ else None
        if row is None:
            return None
        try:
            turn = self._turn
        except AttributeError:
            turn = turn_of(self)
        me, readers = get_ident(), turn.readers
        try:
            readers.append(me)
            return None if turn.writer else question(self._row_call_now(), row)
        finally:
            readers.remove(me)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.takes_sparse
        return tags

    def merge(self, *others: Self, rule: str = "balanced", X: Any = None, y: Any = None) -> Self:
        """A new learner that has learned the rows of all of them (`regretless.merge`)."""
        from regretless.core.merging import merge

        return merge([self, *others], rule, X, y)


class OnlineClassifier(ClassifierMixin, OnlineLearner):
    """A classifier: forecasts probabilities and is scored by their log loss."""

    binary_only: ClassVar[bool] = False

    @property
    def _n_classes(self) -> int:  # type: ignore[override]
        return int(self.classes_.size)

    def _meet_targets(self, y: Any, classes: Any) -> None:
        self._meet_classes(Labels.of(y, classes))

    def _meet_classes(self, labels: Labels) -> None:
        if self.binary_only and labels.classes.size > 2:
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
        except (KeyError, TypeError):  # label probabilities, or an unknown label
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
        """Forecast and learn: row t's probabilities are computed before row t's label is used. Returns (n, K)."""
        return self._said(self._play(X, y, classes, sample_weight, keep=True)[0])

    def _said(self, out: Array) -> Array:
        """The output of the kernels as returned by `predict_then_learn`."""
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

    @takes_its_turn
    def predict_proba_one(self, x: Any) -> Array:
        """Probabilities (K,) of one row."""
        found: Array | None = self._ask(x, RowCall.probabilities)
        if found is None:
            out = self._forecast_of_one(x)
            to_probabilities(out)
            found = out[0]
        return found

    @takes_its_turn
    def predict_one(self, x: Any) -> Any:
        """The most probable class of one row."""
        winner: int | None = self._ask(x, RowCall.winner)
        if winner is None:
            winner = int(self._forecast_of_one(x).argmax())  # before `classes_`, which an unfitted learner lacks
        return self.classes_[winner]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self.binary_only
        return tags


class OnlineRegressor(RegressorMixin, OnlineLearner):
    """A regressor: forecasts a number, or a vector if it `takes_vectors`."""

    _n_classes = 1
    takes_vectors: ClassVar[bool] = False  # targets (n, m): `_run` then gets them as such if m > 1
    n_outputs_: int = 1  # m, the numbers per target

    def _meet_targets(self, y: Any, classes: Any) -> None:
        if classes is not None:
            raise ValueError(f"{type(self).__name__} is a regressor; it does not accept classes.")
        if self.takes_vectors:
            self.n_outputs_ = validate.n_outputs(y)

    def _targets(self, y: Any, classes: Any) -> Array:
        if self.n_outputs_ > 1:
            return validate.vectors(y, self.n_outputs_, LARGEST_TARGET)
        return validate.numbers(y, LARGEST_TARGET)

    def _target(self, y: Any, classes: Any) -> Array:
        return self._targets([y], classes)

    def _new_forecasts(self, n: int) -> Array:
        return np.empty((n, self.n_outputs_) if self.n_outputs_ > 1 else n)

    def predict_then_learn(self, X: Any, y: Any, sample_weight: Any = None) -> Array:
        """Forecast and learn: row t's forecast is computed before row t's target is used. Returns (n,) or (n, m)."""
        return self._said(self._play(X, y, None, sample_weight, keep=True)[0])

    def _said(self, out: Array) -> Array:
        return out

    def predict(self, X: Any) -> Array:
        """Forecasts (n,), or (n, m) for targets of m numbers. Changes nothing."""
        return self._forecasts(X)

    @takes_its_turn
    def predict_one(self, x: Any) -> Any:
        """The forecast of one row."""
        scores: Array | None = self._ask(x, RowCall.scores)
        found = (self._forecast_of_one(x) if scores is None else scores)[0]
        return found if self.n_outputs_ > 1 else float(found)

    def _begin_like(self, other: Any, labels: Labels | None) -> Self:
        self.n_outputs_ = getattr(other, "n_outputs_", 1)
        return super()._begin_like(other, labels)

    def _aside(self) -> dict[str, Any]:
        return super()._aside() | ({"outputs": self.n_outputs_} if self.n_outputs_ > 1 else {})

    def _take_up(self, aside: dict[str, Any]) -> None:
        if self.takes_vectors and "outputs" in aside:
            self.n_outputs_ = validate.whole("outputs", aside["outputs"], 2)
            aside = {name: value for name, value in aside.items() if name != "outputs"}
        super()._take_up(aside)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.takes_vectors
        tags.target_tags.single_output = True
        return tags


def is_plain_row(x: Any, width: int) -> bool:
    """Whether x is a row in the form of the kernels: the usual case, and the fast one."""
    return type(x) is np.ndarray and x.dtype is FLOAT and x.shape == (width,) and x.flags.carray
