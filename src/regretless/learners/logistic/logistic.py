"""OnlineLogisticRegression: calibrated probabilities from raw features in one pass, with nothing to tune."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from regretless.core import state_checks, validate
from regretless.core.errors import BadRow, NoBound, NoCertificate, TooLarge
from regretless.core.inputs import (
    as_block,
    as_floats,
    as_soft_block,
    has_names,
    in_rows,
    is_missing,
    plain_list,
    readable_rows,
)
from regretless.core.interrupts import listen, stretches
from regretless.core.labels import WITHOUT_ORDER, Labels, as_classes, as_distributions, as_labels
from regretless.core.learner import BLOCK, ONE, OnlineClassifier, is_plain_row
from regretless.core.setting import Setting
from regretless.core.tally import EXCESS, LOSS, ROWS, WIDEST, require_unit_weights
from regretless.core.types import Array
from regretless.core.validate import largest_square
from regretless.learners.logistic import reading, report
from regretless.learners.logistic.adagrad import GRADIENTS
from regretless.learners.logistic.game import ENTRIES, forecast, play
from regretless.learners.logistic.members import RADII, VIRTUAL_WEIGHT, Members, choose
from regretless.learners.logistic.mixing import reserve
from regretless.learners.logistic.reading import Block, Reader
from regretless.learners.logistic.scaling import rescale
from regretless.learners.logistic.state import (
    LogisticState,
    check,
    kept,
    size_in_bytes,
    start,
    with_class,
    with_columns,
)
from regretless.learners.second_order.curvature import SHARP, kappa
from regretless.learners.second_order.rounding import allowance, has_digits
from regretless.learners.second_order.surrogate import helmert
from regretless.theory import bounds
from regretless.theory.domains import Ball, Competition, RowBall

MISSING = ("error", "mean", "indicator")
DRIFT = ("none", "track")
ON_BAD_ROW = ("error", "skip")


@dataclass(frozen=True)
class Settings:
    """The parameters that a game is played with, from its first row on."""

    fit_intercept: bool
    missing: str
    drift: str
    radii: Any
    max_classes: int
    max_categories: int
    on_bad_row: str

    def __post_init__(self) -> None:
        for name, choices in (("missing", MISSING), ("drift", DRIFT), ("on_bad_row", ON_BAD_ROW)):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name}={getattr(self, name)!r} is unknown: choose one of {choices}.")
        for name, least in (("max_classes", 2), ("max_categories", 0)):
            validate.whole(name, getattr(self, name), least)
        if not isinstance(self.fit_intercept, bool | np.bool):
            raise ValueError(f"fit_intercept={self.fit_intercept!r} must be True or False.")


@dataclass(frozen=True)
class LogisticConstants:
    """What is fixed once the columns and the classes are."""

    members: Members
    tracks: bool
    helmert: Array


@dataclass(frozen=True)
class Part:
    """Rows that are played in one call, checked."""

    block: Block
    bad: np.ndarray  # which rows are not learned
    slots: np.ndarray  # of the labels
    soft: Array | None  # label probabilities instead
    weight: Array
    out: Array  # for the forecasts, or without rows

    def targets(self, some: slice, n_slots: int) -> Array:
        """Label probabilities of some rows, a column a slot."""
        if self.soft is not None:
            return np.ascontiguousarray(self.soft[some])
        slots = self.slots[some]
        found = np.zeros((len(slots), n_slots))
        met = np.flatnonzero((slots >= 0) & (slots < n_slots))
        found[met, slots[met]] = 1.0
        return found


def rows_at_once(width: int, n_classes: int) -> int:
    """How many rows a table is made of at a time."""
    return max(1, min(BLOCK, ENTRIES // max(width, n_classes)))


def memory() -> float:
    """Bytes that the machine has, infinity where it does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return math.inf


class OnlineLogisticRegression(OnlineClassifier):
    r"""Logistic regression on a stream, two classes or more, from features as they come. There is nothing to tune.

    Many learners run side by side on rows that are standardised on line, and their probabilities are mixed with
    weights in proportion to exp(-loss): implicit Newton steps of different certainty, AdaGrad at three rates,
    and `AIOLI` (two classes) or `FOLKLORE` (more) at three radii. The mixture is never worse than the best of its N
    members by more than ln N in total, so what would have to be tuned need not be.

    **Guarantee.** Rows are rescaled by what was seen of them so far, and the game is played on the rescaled rows: for
    every u of the class, on the same rescaled rows, regret is at most that of any member plus ln N. So
    `regret_certificate()` is the least over the members of their own certificate plus what the mixture has suffered
    more than they; `regret_bound()` is AIOLI's theorem plus ln N. Nothing is promised about weights on
    the raw features; but once means and deviations have settled, the two differ by a linear map and a constant.

    **Columns.** Frames and dictionaries may have text. A column's first value tells whether it holds numbers or
    categories; until then it is missing. Each category gets a column of its own at the row that first has it. Only rows
    that are learned count: those of weight 0, and bad ones, change nothing.

    **Labels never seen.** Without `classes` the learner starts with those it meets. Row t keeps 1/(t+2)^2 of its
    probability for a label never seen, which costs less than ln 2 in all; `predict_proba` tells the probabilities among
    the classes known, which sum to 1. A label that comes takes that part. What was learned stays: until then the game
    was among the classes known.

    Parameters
    ----------
    classes : the labels, where they are known beforehand; one that is not among them is then an error.
    fit_intercept : whether to add a constant column.
    missing : what NaN means: an "error", the column's "mean", or the mean and a column more that says it was missing
        ("indicator").
    drift : "none", or "track": members that forget, with half-lives of 7 to 7000 rows, join the mixture, and its
        weights are pulled back to the uniform ones by 1/t after row t (fixed share), so that another may take over.
    radii : of the class of comparators with the sharper certificate; "auto" leaves out what would take too long.
    max_classes : how many labels there may be.
    max_categories : how many categories a column of text may have; later ones are treated as none of these.
    on_bad_row : whether a row that cannot be learned from (infinite, not a number, no label) is an "error", or is
        forecast as far as it goes, not learned, and counted in `bad_rows_` ("skip").

    Attributes
    ----------
    classes_ : the labels met so far, sorted, in the order of the columns of probabilities.
    bad_rows_ : rows that were skipped.
    state_ : see `regretless.learners.logistic.state.LogisticState`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from regretless import OnlineLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> learner = OnlineLogisticRegression()
    >>> p = learner.predict_then_learn(X, y)
    >>> print(f"{(p.argmax(axis=1) != y).mean():.3f}")
    0.047

    One row at a time, with names and text:

    >>> shop = OnlineLogisticRegression()
    >>> for amount, country, label in [(3.0, "fr", "good"), (900.0, "xx", "fraud")] * 10:
    ...     shop.learn_one({"amount": amount, "country": country}, label)
    >>> print(shop.predict_one({"amount": 700.0, "country": "xx"}))
    fraud

    References
    ----------
    Mixing is the aggregating algorithm (key `aggregating` of REFERENCES.bib), sharing is of key `fixed-share`, implicit
    steps are of key `implicit`, and AdaGrad's of key `adagrad`.
    """

    state_: LogisticState
    _constants: LogisticConstants
    _settings: Settings
    _reader: Reader
    _open: bool  # whether labels never seen may come
    _learned = ("_settings", "_reader", "_open")
    _inner_loop = "_run_slots"
    _reads_tables = True
    _fewest_classes = 0

    def __init__(
        self,
        classes: Any = None,
        fit_intercept: bool = True,
        missing: str = "error",
        drift: str = "none",
        radii: Any = "auto",
        max_classes: int = 100,
        max_categories: int = 32,
        on_bad_row: str = "error",
    ) -> None:
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.missing = missing
        self.drift = drift
        self.radii = radii
        self.max_classes = max_classes
        self.max_categories = max_categories
        self.on_bad_row = on_bad_row

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        return {"OnlineLogisticRegression": cls()}

    # ------------------------------------------------------------------ the start

    @property
    def _n_classes(self) -> int:  # type: ignore[override]
        """Slots: the classes met, and two at least."""
        return max(2, int(self.classes_.size))

    def _begin(self, n_features: int) -> None:
        if not hasattr(self, "_reader"):  # a learner that holds this one has read rows and classes
            self._settle()
            self._reader, self._open, self.bad_rows_ = self._new_reader((reading.NUMBER,) * n_features), False, 0
        super()._begin(n_features)

    def _prepare(self, n_features: int, n_classes: int) -> LogisticConstants:
        self._require_room(self._reader, n_classes)
        return self._constants_for(self._reader, n_classes)

    def _settle(self) -> None:
        """Read the parameters, once."""
        self._settings = Settings(**{field.name: getattr(self, field.name) for field in fields(Settings)})

    def _constants_for(self, reader: Reader, n_classes: int) -> LogisticConstants:
        members = self._members(reader, n_classes)
        basis = helmert(n_classes) if len(members.radii) else np.empty((0, 0))  # FOLKLORE's alone
        return LogisticConstants(members, self._settings.drift == "track", basis)

    def _members(self, reader: Reader, n_classes: int) -> Members:
        s = self._settings
        return choose(reader.width + s.fit_intercept, n_classes, s.radii, s.drift == "track")

    def _start(self, n_features: int, n_classes: int) -> LogisticState:
        state = start(self._reader.width, self._settings.fit_intercept, n_classes, self._constants.members)
        if not self._open:
            state.slots[:] = np.arange(n_classes)
        return state

    def _limits(self) -> tuple[float, float]:
        return math.inf, reading.LARGEST

    def _meet_targets(self, y: Any, classes: Any) -> None:
        """Declared classes are all there will be; so are the columns of soft labels."""
        declared = self.classes if classes is None else classes
        self._open = declared is None and as_distributions(y) is None
        if self._open:
            self.classes_ = np.empty(0)
            self._labels = Labels(self.classes_)
        else:
            self._meet_classes(Labels.of(y, declared))
            self._require_few(self.classes_.size)

    def _require_few(self, n_classes: int) -> None:
        if n_classes > self._settings.max_classes:
            raise ValueError(
                f"{n_classes} classes are more than max_classes={self._settings.max_classes}. If the labels are right, "
                "raise max_classes; if y holds numbers to be forecast, use a regressor. Nothing was learned from this "
                "call."
            )

    def _aside(self) -> dict[str, Any]:
        """What a model file keeps beside parameters, classes and state."""
        reader = self._reader
        return {
            "open": self._open,
            "bad_rows": self.bad_rows_,
            "kinds": list(reader.kinds),
            "levels": [list(level) for level in reader.levels],
            "indicators": reader.indicators,
        }

    def _take_up(self, aside: dict[str, Any]) -> None:
        """What `_aside` said."""
        self._settle()
        names = {"open", "bad_rows", "kinds", "levels", "indicators"}
        state_checks.require(set(aside) == names, f"aside has {sorted(aside)}, and {sorted(names)} are kept")
        state_checks.require(isinstance(aside["open"], bool), f"open={aside['open']!r} must be true or false")
        self._open, self.bad_rows_ = aside["open"], validate.whole("bad_rows", aside["bad_rows"], 0)
        self._reader = Reader.kept(aside["kinds"], aside["levels"], aside["indicators"])
        expected = self._new_reader(self._reader.kinds)
        state_checks.require(
            self._reader.indicators == expected.indicators, "indicators are not those of the parameters"
        )
        state_checks.require(
            len(self._reader.kinds) == self.n_features_in_,
            f"there are kinds of {len(self._reader.kinds)} columns and {self.n_features_in_} features",
        )
        most = max(self._reader.counts().values(), default=0)
        state_checks.require(most <= self._settings.max_categories, f"a column has {most} categories, too many")
        self._require_few(self.classes_.size)

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        if not hasattr(self, "_reader"):
            return n_features
        members = self._members(self._reader, n_classes)
        d, C = self._reader.width + self._settings.fit_intercept, n_classes if n_classes > 2 else 1
        return (
            len(members.radii) * ((n_classes - 1) * d) ** 2 + (len(members.newton) * d + 3 * len(members.rates)) * C * d
        )

    def _check_state(self) -> None:
        state, m, K = self.state_, self._constants.members, self._n_classes
        check(state, m)
        places = state.slots[: self.classes_.size]
        state_checks.require(
            np.array_equal(np.sort(places), np.arange(places.size)) and np.all(state.slots[places.size :] == -1.0),
            f"slots are not the places of {places.size} classes",
        )
        state_checks.require(self._open or self.classes_.size == K, "a game with all classes declared lacks one")

    # ------------------------------------------------------------------ rows

    def _take_rows(self, X: Any, first: bool) -> Any:
        """Rows as `reading` takes them: an array, a CSR matrix, or rows with names."""
        if isinstance(X, list) and X and isinstance(X[0], dict):
            names = list(X[0]) if first else self._names()
            rows = reading.Dictionaries(X, names)
            if first:
                self.n_features_in_ = len(names)
                self.feature_names_in_ = np.array(names, dtype=object)
            return rows
        if (columns := reading.frame_columns(X)) is not None:
            validate_data(self, X, reset=first, skip_check_array=True)
            return reading.Columns(columns)
        if first or not self._is_plain(X, self.n_features_in_):
            instead = math.inf if self._settings.on_bad_row == "skip" else None
            X = validate_data(
                self,
                readable_rows(X, getattr(self, "feature_names_in_", None), masked=True, instead=instead),
                reset=first,
                accept_sparse="csr",
                dtype=np.float64,
                order="C",
                ensure_all_finite=False,
            )
        if sparse.issparse(X):
            return reading.canonical(X)
        return validate.writable(X)

    def _first_reader(self, rows: Any) -> Reader:
        """What is known of the columns before any row is learned: an array has numbers."""
        is_array = sparse.issparse(rows) or isinstance(rows, np.ndarray)
        return self._new_reader((reading.NUMBER if is_array else reading.UNKNOWN,) * self.n_features_in_)

    def _read(self, rows: Any, learns: np.ndarray) -> Block:
        """The rows as a table, and what they teach the reader."""
        s = self._settings
        missing_is_error = s.missing == "error"
        if sparse.issparse(rows) or isinstance(rows, np.ndarray):
            if reading.CATEGORY in self._reader.kinds:
                raise ValueError("this learner has met columns of text: give rows with names, as it knows them.")
            if self._reader.is_straight:
                block = reading.read_numbers(rows, self._reader, missing_is_error)
                return self._without_fault(block)
            rows = reading.Columns(list((rows.toarray() if sparse.issparse(rows) else rows).T))
        begun = bool(self.state_.tally[ROWS] > 0.0)
        return self._without_fault(reading.read(rows, self._reader, learns, s.max_categories, missing_is_error, begun))

    def _without_fault(self, block: Block) -> Block:
        """The block, unless a row of it is bad and that is an error: the complaint names row, column and remedy."""
        if block.fault is None or self._settings.on_bad_row == "skip":
            return block
        row, column, what = block.fault
        named = f" ({self.feature_names_in_[column]!r})" if hasattr(self, "feature_names_in_") else ""
        raise BadRow(
            f"row {row}, column {column}{named}: {what}. Input contains NaN or inf, or what is no number: fill "
            'the value in or drop the row; or choose missing="mean" for values that are missing, on_bad_row="skip" for '
            "rows that are wrong. Nothing was learned from this call."
        )

    def _read_unlearned(self, X: Any) -> Block:
        """Rows that teach nothing."""
        rows = self._take_rows(X, False)
        return self._read(rows, np.zeros(reading.number_of(rows), dtype=bool))

    def _new_reader(self, kinds: tuple[str, ...]) -> Reader:
        return Reader(kinds, indicators=self._settings.missing == "indicator")

    def _names(self) -> list[str]:
        if not hasattr(self, "feature_names_in_"):
            raise BadRow("this learner has met rows without names: give an array of its features.")
        return list(self.feature_names_in_)

    # ------------------------------------------------------------------ labels

    def _slot_of_place(self) -> np.ndarray:
        """The slot of each class, in the order of `classes_`."""
        return self.state_.slots[: self.classes_.size].argsort()

    def _read_labels(self, y: Any, weight: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The labels, the slot of each (-1 where it has none), and which are wrong: missing, or not declared."""
        labels = as_labels(y)
        codes, foreign = self._labels.codes(labels) if self.classes_.size else (None, np.ones(labels.size, dtype=bool))
        slots = np.full(labels.size, -1, dtype=np.intp)
        if codes is not None:
            slots[~foreign] = self._slot_of_place()[codes[~foreign]]
        wrong = np.zeros(labels.size, dtype=bool)
        for i in np.flatnonzero(foreign & (weight > 0.0)).tolist():
            wrong[i] = not self._open or is_missing(labels[i])
        if self._open and labels.dtype.kind == "f" and foreign.any():
            check_classification_targets(labels[foreign & ~np.isnan(labels)])
        return labels, slots, wrong

    def _require_labels(self, labels: np.ndarray, wrong: np.ndarray) -> None:
        if wrong.any() and self._settings.on_bad_row == "error":
            i = int(np.argmax(wrong))
            raise (
                self._labels.unknown(labels[i], i)
                if not self._open
                else BadRow(
                    f"row {i}: the label is missing, {labels[i]!r}. Leave the row out, or choose "
                    'on_bad_row="skip". Nothing was learned from this call.'
                )
            )

    def _arrivals(self, labels: np.ndarray, slots: np.ndarray, weight: Array) -> dict[int, Any]:
        """The rows that bring a label never seen, and the label; it has the next slot. (None comes with weight 0.)"""
        new: dict[Any, int] = {}
        rows: dict[int, Any] = {}
        at = np.flatnonzero((slots < 0) & (weight > 0.0))
        for i, label in zip(at.tolist(), labels[at].tolist(), strict=True):
            if label not in new:
                new[label] = int(self.classes_.size) + len(new)
                rows[i] = label
            slots[i] = new[label]
        if new:
            self._require_few(int(self.classes_.size) + len(new))
        return rows

    # ------------------------------------------------------------------ the game

    def _play(self, X: Any, y: Any, classes: Any, sample_weight: Any, keep: bool) -> tuple[Array, Array]:
        with self._untouched_on_error():
            first = not hasattr(self, "state_")
            if first:
                self._settle()
            rows = self._take_rows(X, first)
            n = reading.number_of(rows)
            if y is None:
                raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
            if not (isinstance(y, np.ndarray) and y.shape[:1] == (n,)):
                check_consistent_length(np.empty((n, 0)), y)
            weight = validate.weights(sample_weight, n)
            if first:
                self._reader = self._first_reader(rows)
                self._meet_targets(y, classes)
                self._begin(self.n_features_in_)
                self.bad_rows_ = 0
            elif not self._open:
                self._check_declared(classes)
            soft = as_distributions(y)
            if soft is not None:
                if self._open:
                    raise BadRow("label probabilities need classes that are declared in the first call, classes=[...].")
                soft = self._labels.distributions(y)
                slots, wrong = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=bool)
                labels = slots
            else:
                labels, slots, wrong = self._read_labels(y, weight)
            block = self._read(rows, (weight > 0.0) & ~wrong)
            self._require_labels(labels, wrong & ~block.bad)
            bad = block.bad | wrong
            if bad.any():
                weight = np.where(bad, 0.0, weight)
            arrivals = self._arrivals(labels, slots, weight)
            K = max(2, int(self.classes_.size) + len(arrivals))
            self._require_room(block.growth[-1][1] if block.growth else self._reader, K)
        part = Part(block, bad, slots, soft, weight, np.empty((n, K)) if keep else np.empty((0, K)))
        self._segments(part, arrivals)
        place = self._slot_of_place()
        targets = part.targets(slice(0, n if keep else 0), K)
        return part.out[:, place], targets[:, place]

    def _segments(self, part: Part, arrivals: dict[int, Any]) -> None:
        """Play the rows between those that bring something new, a column or a label; a new label's row by itself.

        What is new comes in at its row, not before, so that cuts into blocks do not show.
        """
        at, growth = 0, dict(part.block.growth)
        for row in sorted({*growth, *arrivals}):
            self._section(slice(at, row), part)
            at = row
            if row in growth:
                self._widen(growth[row])
            if row in arrivals:
                self._meet_label(row, arrivals[row], part)
                listen()
                at = row + 1
        self._section(slice(at, len(part.block)), part)

    def _meet_label(self, row: int, label: Any, part: Part) -> None:
        """Play a row that brings a label never seen."""
        slot, here = int(self.classes_.size), slice(row, row + 1)
        kept_for_it = reserve(float(self.state_.tally[ROWS]))
        if slot >= 2:
            self._add_slot(part.block.rows(here, self._reader))
        self._name_slot(label)
        self._run_rows(here, part, known=slot)
        if slot >= 2:
            self.state_.tally[LOSS] -= part.weight[row] * math.log(kept_for_it)

    def _section(self, rows: slice, part: Part) -> None:
        """Rows that bring nothing new, in blocks."""
        at_once = rows_at_once(self._reader.width, self.state_.slots.size)
        for begin in range(rows.start, rows.stop, at_once):
            for some in stretches(min(at_once, rows.stop - begin)):
                self._run_rows(slice(begin + some.start, begin + some.stop), part)

    def _run_rows(self, some: slice, part: Part, known: int | None = None) -> None:
        """Rows that bring nothing new, or, with `known`, the one that brings a label."""
        K = self.state_.slots.size
        reserves = self._open and known is None and self.classes_.size >= 2
        columns = K if known is None else max(2, known)  # what could be named before the label was seen
        out, before, weight = part.out, float(self.state_.tally[ROWS]), part.weight[some]
        said = np.empty((some.stop - some.start, K))
        self._run_slots(part.block.rows(some, self._reader), part.targets(some, K), weight, said, reserves)
        self.bad_rows_ += int(np.count_nonzero(part.bad[some]))
        if not len(out):
            return
        out[some, :columns] = said[:, :columns]
        unnamed = out.shape[1] - columns
        if unnamed:
            if columns < K:  # as if the class were not there
                out[some, :columns] -= np.logaddexp.reduce(said[:, :columns], axis=1, keepdims=True)
            learned = before + np.cumsum(weight > 0.0) - (weight > 0.0)
            aside = 1.0 / (learned + 2.0) ** 2
            out[some, :columns] += np.log1p(-aside)[:, None]
            out[some, columns:] = np.log(aside / unnamed)[:, None]

    def _run_slots(self, table: Array, Y: Array, weight: Array, out: Array, reserves: bool) -> None:
        c = self._constants
        m = c.members
        play(
            *self.state_,
            table,
            Y,
            weight,
            m.radii,
            m.regularization,
            m.newton,
            m.rates,
            c.helmert,
            c.tracks,
            reserves,
            out,
        )

    def _run(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        self._run_slots(X, Y, weight, out, reserves=False)

    def _forecast(self, X: Array, out: Array) -> None:
        state, c = self.state_, self._constants
        if not state.moments.flags.writeable:  # a state that joblib has mapped into memory
            state = LogisticState(*(array.copy() for array in state))
        forecast(
            state.moments,
            state.P,
            state.w,
            state.tallies,
            state.weights,
            state.tables,
            state.log_weight,
            X,
            c.helmert,
            out,
        )

    def _forecasts(self, X: Any) -> Array:
        self._require_class()
        block = self._read_unlearned(X)
        K = self.state_.slots.size
        said, at_once = np.empty((len(block), K)), rows_at_once(self._reader.width, K)
        for begin in range(0, len(block), at_once):
            some = slice(begin, min(begin + at_once, len(block)))
            self._forecast(block.rows(some, self._reader), said[some])
        return said.take(self._slot_of_place(), axis=1)

    def _require_class(self) -> None:
        if "state_" not in self.__dict__:  # scikit-learn's own look takes as long as the forecast
            check_is_fitted(self, "state_")
        if not self.classes_.size:
            raise NotFittedError(
                f"this {type(self).__name__} has met no label yet, so there is no class to forecast: learn from a row "
                "of weight > 0, or declare classes=[...] in the first call."
            )

    def _forecast_of_one(self, x: Any) -> Array:
        row = self._plain_row(x)
        if row is None:
            return self._forecasts(self._as_block(x))
        self._require_class()
        said = np.empty((1, self.state_.slots.size))
        self._forecast(row, said)
        return said.take(self._slot_of_place(), axis=1)

    def learn_one(self, x: Any, y: Any, classes: Any = None) -> None:
        """Learn from one row: an array, or a dictionary of names and values."""
        try:
            self._learn_one(x, y, classes)
        except TooLarge:
            raise
        except (BadRow, TypeError, ValueError):
            if "state_" not in self.__dict__ or self._settings.on_bad_row == "error":
                raise
            self.bad_rows_ += 1

    def _learn_one(self, x: Any, y: Any, classes: Any) -> None:
        row = self._plain_row(x) if classes is None else None
        if row is not None:
            try:
                place = self._labels.code[y]
            except (KeyError, TypeError):  # a new label, or label probabilities
                pass
            else:
                K = self.state_.slots.size
                label = np.zeros((1, K))
                label[0, self._slot_of_place()[place]] = 1.0
                self._run_slots(row, label, ONE, np.empty((1, K)), self._open and self.classes_.size >= 2)
                return
        self.partial_fit(self._as_block(x), as_soft_block(y) if np.ndim(y) == 1 else [y], classes)

    def _plain_row(self, x: Any) -> Array | None:
        """x as a block of one if it is a row of good numbers into which nothing has to be read: the usual case."""
        if "state_" not in self.__dict__ or "feature_names_in_" in self.__dict__ or not self._reader.is_plain:
            return None
        row = plain_list(x) if type(x) is list else x
        if row is None or not is_plain_row(row, self.n_features_in_):
            return None
        block: Array = row[None]
        return block if largest_square(block) <= reading.LARGEST**2 else None

    def _as_block(self, x: Any) -> Any:
        if isinstance(x, dict):
            return [x]
        if sparse.issparse(x) or has_names(x):
            return as_block(x)
        row = as_floats(x, in_rows(getattr(self, "feature_names_in_", None)), masked=True)
        if hasattr(self, "state_") and row.shape != (self.n_features_in_,):
            raise BadRow(f"x has shape {row.shape}; this learner takes {self.n_features_in_} features.")
        return row.reshape(1, -1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        tags.input_tags.categorical = True
        return tags

    # ------------------------------------------------------------------ growing

    def _add_slot(self, row: Array) -> None:
        """One class more, which this row brings: the members for it, and the state."""
        constants = self._constants_for(self._reader, self.state_.slots.size + 1)
        state = kept(self.state_, self._constants.members, constants.members)
        x = np.empty((1, state.tables.shape[3]))
        rescale(state.moments.copy(), row, np.zeros(1), x)
        self.state_ = with_class(state, constants.members, x[0], self._settings.fit_intercept)
        self._constants = constants

    def _name_slot(self, label: Any) -> None:
        """The first slot without a class takes the label; `classes_` stays sorted where labels can be."""
        labels = as_classes([*self.classes_.tolist(), label])
        try:
            order = np.argsort(labels, kind="stable")
        except WITHOUT_ORDER:
            order = np.arange(labels.size)
        place = np.empty(labels.size, dtype=np.intp)
        place[order] = np.arange(labels.size)
        self.state_.slots[: labels.size] = place[np.append(self.state_.slots[: labels.size - 1].astype(np.intp), -1)]
        self.classes_ = labels[order]
        self._labels = Labels(self.classes_)

    def _widen(self, reader: Reader) -> None:
        """What the reader has met more: columns for it."""
        state, rows, intercept = self.state_, float(self.state_.tally[ROWS]), self._settings.fit_intercept
        constants = self._constants_for(reader, state.slots.size)
        if rows == 0.0:
            state = start(reader.width, intercept, state.slots.size, constants.members)._replace(slots=state.slots)
        elif new := reader.levels[len(self._reader.levels) :]:
            met = np.array([0.0 if category is None else rows for _, category in new])
            state = with_columns(
                kept(state, self._constants.members, constants.members), constants.members, met, intercept
            )
        self.state_, self._constants, self._reader = state, constants, reader

    def _require_room(self, reader: Reader, n_classes: int) -> None:
        """Refuse to begin, or to grow, where what is needed exceeds the memory there is."""
        intercept = self._settings.fit_intercept
        needed = size_in_bytes(reader.width, intercept, n_classes, self._members(reader, n_classes))
        if needed > memory():
            raise TooLarge(
                f"{reader.width + intercept} columns and {n_classes} classes need {needed / 2**30:,.1f} GiB, and this "
                f'machine has {memory() / 2**30:,.1f}. Leave radii="auto", which has as many members as pay; or give '
                "fewer columns (lower max_categories), or fewer classes. Nothing was learned from this call."
            )

    # ------------------------------------------------------------------ regret

    @property
    def competes_with(self) -> Competition:
        """The best weights in a ball, on the rescaled rows, under the log loss."""
        sizes = self._constants.members.radii if hasattr(self, "_constants") else np.array(RADII)
        largest = float(sizes.max()) if sizes.size else RADII[-1]
        if hasattr(self, "classes_") and self._n_classes > 2:
            return Competition("softmax", RowBall(largest))
        return Competition("logistic", Ball(2.0 * largest))

    def _for_comparators(self, X: Any) -> Any:
        """The rows as they were rescaled, X being all that were learned from, in their order."""
        block = self._read_unlearned(X)
        table = block.rows(slice(0, len(block)), self._reader)
        rescaled = np.empty((len(table), self.state_.tables.shape[3]))
        rescale(np.zeros_like(self.state_.moments), table, np.ones(len(table)), rescaled)
        return rescaled

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        r"""An upper bound on the regret so far, on the rescaled rows, against the class (or weights of a given norm).

        For each member, its own certificate plus what the mixture has suffered more than it; the least of these.
        AIOLI's and FOLKLORE's are from their quadratics, AdaGrad's from the sum of its gradients.
        """
        check_is_fitted(self, "state_")
        state, m = self.state_, self._constants.members
        two = self._n_classes == 2
        domain = self.competes_with.domain
        largest = domain.largest_norm(self._n_classes)
        size = largest
        if comparator_norm is not None:
            size = validate.positive("comparator_norm", comparator_norm, zero=True)
        if size > largest * (1 + 1e-12):
            raise NoCertificate(f"a comparator of norm {size:.4g} lies outside {domain}: give larger radii.")
        lead = float(state.tally[LOSS]) - state.losses  # over each member
        found = []
        for i, radius in enumerate(m.radii):
            reach = 2.0 * radius if two else radius  # of a row, or of the margin's weights
            inside = size <= reach if comparator_norm is not None else radius == m.radii.max()
            if inside and has_digits(state.P[i], state.tallies[i]):
                lam = (0.5 if two else 1.0) * m.regularization[i]
                excess = state.tallies[i, EXCESS] + allowance(state.P[i], state.tallies[i])
                found.append(lam * size**2 + excess + lead[i])
        first = len(m.radii) + len(m.newton)
        for i in range(len(m.rates)):
            gradients = state.tables[i, GRADIENTS]
            if comparator_norm is None and not two:
                steepest = float(np.linalg.norm(gradients, axis=1).sum()) * float(m.radii.max(initial=0.0) or RADII[-1])
            else:
                steepest = float(np.linalg.norm(gradients)) * size
            found.append(state.slopes[i] + steepest + lead[first + i])
        return float(min(found))

    def regret_bound(self, n: int | None = None) -> float:
        """AIOLI's theorem on the rescaled rows, plus what mixing costs; for two classes."""
        check_is_fitted(self, "state_")
        state, m = self.state_, self._constants.members
        require_unit_weights(state.tally)
        if self._n_classes > 2 or not len(m.radii):
            raise NoBound("the theorem is for two classes, with radii; regret_certificate() says what the regret is.")
        rows = int(state.tally[ROWS]) if n is None else n
        radius, R = float(m.radii.max()), float(state.tally[WIDEST])
        theorem = bounds.aioli(
            rows,
            n_features=state.tables.shape[3],
            radius=2.0 * radius,
            feature_bound=R,
            regularization=0.5 * float(m.regularization[m.radii.argmax()]),
            curvature=float(kappa(SHARP, 0.0, radius * R, 2)),
            virtual_weight=VIRTUAL_WEIGHT,
        )
        mixing = math.log(m.count) + (math.log(rows + 1.0) if self._constants.tracks else 0.0)
        return theorem + mixing + (math.log(2.0) if self._open else 0.0)

    # ------------------------------------------------------------------ at one glance

    @property
    def weights_(self) -> Array:
        """Of the members in the mixture, in the order of `members_`; they sum to 1."""
        check_is_fitted(self, "state_")
        weights: Array = np.exp(self.state_.log_weight)
        return weights / weights.sum()

    @property
    def members_(self) -> list[str]:
        """What is mixed, as people would call it."""
        check_is_fitted(self, "state_")
        return report.names(self)

    def report(self) -> str:
        """Rows, classes, log loss, Brier score, calibration error, certificate, and the members that lead: a table."""
        check_is_fitted(self, "state_")
        return report.of(self)
