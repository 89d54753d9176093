"""OnlineLogisticRegression: calibrated probabilities from raw features in one pass, with nothing to tune."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

import numpy as np

from regretless.core.effects import Effect
from regretless.core.errors import BadRow, NoBound, TooLarge
from regretless.core.files import state_checks
from regretless.core.interrupts import uninterrupted
from regretless.core.kernels.one_row import RowKernels
from regretless.core.learner import ONE
from regretless.core.numbers.tally import ROWS
from regretless.core.rows import validate
from regretless.core.rows.inputs import as_soft_block
from regretless.core.rows.labels import Labels
from regretless.core.scikit_learn import NotFittedError, check_is_fitted
from regretless.core.setting import Setting
from regretless.core.turns import alone, reads
from regretless.core.types import FLOAT, Array
from regretless.learners.logistic import (
    effects,
    forest,
    members,
    offsets,
    regret,
    report,
    sparse_members,
    sparse_regret,
    sparse_state,
    state,
)
from regretless.learners.logistic.encoder import Encoder, as_rows, kind_of_rows, number_of, take_rows
from regretless.learners.logistic.game import Options
from regretless.learners.logistic.hashing import Index
from regretless.learners.logistic.learner import GrowingClassifier, Recent
from regretless.learners.logistic.members import RADII, Constants
from regretless.learners.logistic.scaling import LARGEST, rescale
from regretless.learners.logistic.schema import NUMBER, UNKNOWN
from regretless.learners.logistic.segments import Part, PartPlay, read
from regretless.learners.logistic.settings import Settings
from regretless.learners.logistic.slots import first_labels, require_few, weights_of_labels
from regretless.learners.logistic.sparse_game import foresee, play_known, require_room, rescaled_rows
from regretless.learners.logistic.sparse_members import SparseConstants
from regretless.learners.logistic.sparse_rows import Names, SparseEncoder, are_wide, is_wide, take_wide_rows
from regretless.learners.logistic.sparse_state import SparseState
from regretless.learners.logistic.state import LogisticState
from regretless.theory import bounds
from regretless.theory.domains import Competition

UNBEGUN = (
    "This %(name)s instance is not fitted yet: learn a row first, or declare classes=[...], and then forecasts of one "
    "row are uniform until the first row is learned."
)


class OnlineLogisticRegression(GrowingClassifier):
    r"""Logistic regression on a stream, for two or more classes, on raw features. There is nothing to tune.

    **Choose it when** you want good probabilities of classes from a stream and nothing to tune: raw numbers, text,
    dates, missing values, sparse rows, new classes. It is the one to try first.

    Many members run side by side on rows that are standardised online, and their probabilities are mixed with weights
    proportional to exp(-loss): implicit Newton steps of different certainty, AdaGrad at three rates, `AIOLI` (two
    classes) or `FOLKLORE` (more) at up to three radii, and the label frequencies. Others learn non-linear functions,
    on splines of the columns, Fourier features and products, one is a `MondrianForest`, and one combines the forecasts
    of all: see `effort`. The mixture's total loss is at most ln(1/w) above that of any member, w being the member's
    weight before the first row (1/15 to 1/134): this replaces the search for hyper-parameters.

    **Guarantee.** Each row is rescaled by what was seen before it, and the statements are about the rescaled rows: for
    every u of the class of comparators, on the same rescaled rows, regret is at most that of any member plus ln(1/w).
    So `regret_certificate()` is the least over the members of their own certificate plus the mixture's loss minus
    theirs; `regret_bound()` is AIOLI's theorem plus ln(1/w). Nothing is claimed about weights on the raw features; but
    once means and deviations have settled, the two differ by a linear map and a constant.

    **Columns.** Data frames and dictionaries may hold text and dates. The first value of a column tells what it holds;
    until then it counts as missing. Each category gets a column of its own at the row in which it appears: see
    `max_categories`. A date becomes its hour of the day, day of the week and month, never a trend. Dictionaries may
    bring new names, and lack others. Only learned rows count: rows of weight 0, and bad ones, change nothing.

    **Labels never seen.** Without `classes`, the learner adds classes as they appear. Row t keeps 1/(t+2)^2 of its
    probability for a label never seen, which costs less than ln 2 in total; `predict_proba` returns the probabilities
    among the known classes, which sum to 1. When a new label appears, that share is its probability. What was learned
    before stays valid: it was about the classes known at the time.

    Parameters
    ----------
    classes : the labels, if they are known in advance; any other label is then an error.
    fit_intercept : whether to add a constant column.
    missing : how to treat a missing value (NaN, None, a name that a row lacks): as the column's mean, plus a column
        that marks it, from the first missing value on ("indicator"); as the "mean"; or as an "error".
    drift : "none", or "track": members that forget, with half-lives of 7 to 7000 rows, join the mixture, and its
        weights move towards the uniform ones by 1/t after row t (fixed share), so that another member can take over.
    radii : the radii of AIOLI or FOLKLORE, the members with the sharper certificate; "auto" drops those that would take
        too long.
    max_classes : the largest number of classes.
    max_categories : the largest number of categories per column of text that have a column of their own. The first 32
        get it when they are first seen, later ones when they are seen again, as long as there are at most 256 of them
        in all. `report` counts the others. With two classes these have offsets: how far the labels of earlier rows with
        the same category were from what the rest of these rows says.
    on_bad_row : how to treat a row that cannot be learned from (infinite, not a number, no label): as an "error", or
        "skip": it is forecast from its good values, not learned, and counted in `bad_rows_`.
    sparse : whether rows are wide and sparse: then a row costs time per entry that is not 0, memory is that of the
        columns seen, dictionaries may bring new names at any time, and all members work entry by entry: AdaGrad, the
        regularized leader and a Gaussian belief per weight. "auto" means CSR rows with more than 1000 columns, or
        dictionaries with more than 1000 names in the first call.
    interactions : None, "pairs" (the product of every two entries of a row), or a list of pairs of columns or names.
        They make rows sparse.
    interaction_bits : b, where products of entries are hashed to 2^b columns of their own.
    sketch : r, the rank of two second-order members for sparse rows, 0 for none. Their precision matrix is diagonal
        plus of rank r, so they take correlated columns into account; a row costs O(r) per entry. 5 to 20 are usual.
        Other rows have members with full matrices, and ignore it.
    effort : "low" has linear members alone; "medium" adds splines of every column of numbers, and a member that
        combines all others; "high" adds random Fourier features, products of columns and a `MondrianForest` of ten
        trees. With 20 columns and two classes a row takes 5 and 22 times as long as with "low". Wide rows have fewer of
        these members, or none, so that a row stays within the effort's budget; sparse rows have none. The forest grows
        with the rows, up to 10,000 nodes of 8 (14 + K + 2d) bytes per tree: 45 MB with 20 columns and two classes.
    class_weight : None, or a dictionary from label to weight; labels that it lacks have weight 1. A row counts as many
        times as its weight in every loss and certificate. The probabilities are then those of the weighted rows: where
        mistakes have different costs, it is better to keep the probabilities and move the threshold.

    Attributes
    ----------
    classes_ : the labels seen so far, sorted, in the order of the columns of probabilities.
    bad_rows_ : the number of rows that were skipped.
    column_kinds_ : "number", "category", "date" or "unknown" (no value yet) for each column of the input.
    members_, weights_ : the members of the mixture and their weights.
    state_ : see `regretless.learners.logistic.state.LogisticState`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from regretless import OnlineLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> learner = OnlineLogisticRegression()
    >>> p = learner.predict_then_learn(X, y)
    >>> print(f"{(p.argmax(axis=1) != y).mean():.3f}")
    0.044

    One row at a time, with names and text:

    >>> shop = OnlineLogisticRegression()
    >>> for amount, country, label in [(3.0, "fr", "good"), (900.0, "xx", "fraud")] * 10:
    ...     shop.learn_one({"amount": amount, "country": country}, label)
    >>> print(shop.predict_one({"amount": 700.0, "country": "xx"}))
    fraud

    References
    ----------
    The mixture is the aggregating algorithm (key `aggregating` of REFERENCES.bib) with fixed share (key `fixed-share`);
    for implicit steps see key `implicit`, for AdaGrad key `adagrad`.
    """

    def __init__(
        self,
        classes: Any = None,
        fit_intercept: bool = True,
        missing: str = "indicator",
        drift: str = "none",
        radii: Any = "auto",
        max_classes: int = 200,
        max_categories: int = 128,
        on_bad_row: str = "error",
        sparse: bool | str = "auto",
        interactions: Any = None,
        interaction_bits: int = 18,
        sketch: int = 0,
        effort: str = "medium",
        class_weight: Any = None,
    ) -> None:
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.missing = missing
        self.drift = drift
        self.radii = radii
        self.max_classes = max_classes
        self.max_categories = max_categories
        self.on_bad_row = on_bad_row
        self.sparse = sparse
        self.interactions = interactions
        self.interaction_bits = interaction_bits
        self.sketch = sketch
        self.effort = effort
        self.class_weight = class_weight

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        return {"OnlineLogisticRegression": cls()}

    # ------------------------------------------------------------------ the start

    def _begin(self, n_features: int) -> None:
        if not hasattr(self, "_encoder"):  # another learner holds this one, and has read rows and classes
            self._settings, self._open, self.bad_rows_ = Settings.of(self), False, 0
            self._encoder = Encoder.start(self, self._settings)
        self._recent = Recent()
        super()._begin(n_features)

    def _meet_columns(self, features: int | Sequence[Any]) -> None:
        super()._meet_columns(features)
        self._settings, self.bad_rows_ = Settings.of(self), 0
        named = not isinstance(features, int | np.integer)
        if are_wide(self.n_features_in_, self._settings):
            if named:  # a dictionary may bring any name
                del self.feature_names_in_
                self.n_features_in_ = 1
            self._encoder = SparseEncoder.start(self._settings, named, self.n_features_in_)
        else:
            self._encoder = Encoder.start(self, self._settings, UNKNOWN if named else NUMBER)

    def _prepare(self, n_features: int, n_classes: int) -> Constants | SparseConstants:
        if self._is_sparse:
            return sparse_members.constants(n_classes, self._settings.fit_intercept, self._settings.tracks)
        schema = self._encoder.schema
        return self._settings.constants(schema.width, n_classes, schema.numbers, schema.singly)

    @property
    def _is_sparse(self) -> bool:
        return isinstance(self._encoder, SparseEncoder)

    def _start(self, n_features: int, n_classes: int) -> LogisticState | SparseState:
        found: LogisticState | SparseState
        if isinstance(self._encoder, SparseEncoder):
            found = sparse_state.start(n_classes, self._constants, self._settings.sketch, self._encoder.expected)
            self._encoder.index = Index(found.columns)
        else:
            s, schema = self._settings, self._encoder.schema
            found = state.start(schema.width, s.fit_intercept, n_classes, self._constants.members, len(schema.coded))
        if not self._open:
            found.slots[:] = np.arange(n_classes)
        return found

    def _limits(self) -> tuple[float, float]:
        return math.inf, LARGEST

    def _meet_targets(self, y: Any, classes: Any) -> None:
        labels, self._open = first_labels(y, self.classes if classes is None else classes)
        self._meet_classes(labels)
        require_few(self.classes_.size, self._settings.max_classes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        tags.input_tags.categorical = True
        return tags

    # ------------------------------------------------------------------ files

    @property
    def grows(self) -> tuple[str, ...]:  # type: ignore[override]
        """The nodes of the forest, which high effort has."""
        settings: Any = getattr(self, "_settings", self)
        return ("forest_nodes",) if settings.effort == "high" else ()

    def _aside(self) -> dict[str, Any]:
        """What a model file stores besides parameters, classes and state."""
        common = {"open": self._open, "bad_rows": self.bad_rows_}
        return common | self._encoder.to_file()

    def _take_up(self, aside: dict[str, Any]) -> None:
        """Restore what `_aside` returned."""
        self._settings, self._recent = Settings.of(self), Recent()
        is_sparse = "seen" in aside
        of_schema = ("kinds", "levels", "indicators", "rare", "coded")
        names = {"open", "bad_rows", *(("named", "seen") if is_sparse else of_schema)}
        state_checks.require(set(aside) == names, f"aside has the fields {sorted(aside)} instead of {sorted(names)}")
        state_checks.require(isinstance(aside["open"], bool), f"open={aside['open']!r} must be true or false")
        self._open, self.bad_rows_ = aside["open"], validate.whole("bad_rows", aside["bad_rows"], 0)
        require_few(self.classes_.size, self._settings.max_classes)
        if is_sparse:
            self._encoder = SparseEncoder.from_file(self._settings, aside["named"], aside["seen"], self.n_features_in_)
            return
        listed = isinstance(aside["kinds"], list) and len(aside["kinds"]) == self.n_features_in_
        state_checks.require(listed, f"kinds does not list {self.n_features_in_} features")  # before any are made
        first = Encoder.start(self, self._settings)
        self._encoder = first.from_file(**{name: aside[name] for name in of_schema})

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        if not hasattr(self, "_encoder"):
            return n_features
        if isinstance(self._encoder, SparseEncoder):
            return sparse_state.size(self._encoder.expected, n_classes, self._settings.sketch)
        s, schema = self._settings, self._encoder.schema
        members = s.members(schema.width, n_classes, schema.numbers)
        return state.size(schema.width, s.fit_intercept, n_classes, members, len(schema.coded))

    def _check_state(self) -> None:
        if isinstance(self._encoder, SparseEncoder):
            sparse_state.check(self.state_, self._constants)
            self._encoder.index = Index(self.state_.columns)
        else:
            state.check(self.state_, self._constants.members)
            self.state_ = state.aligned(self.state_)
        self._slots.check()

    # ------------------------------------------------------------------ rows and labels in

    def _open_block(self, X: Any, y: Any, classes: Any, sample_weight: Any, keep: bool) -> PartPlay:
        with self._untouched_on_error():
            part = self._read(X, y, classes, sample_weight)
            K = max(2, self.classes_.size + len(part.arrivals))
            self._require_room(part, K)
        return PartPlay(part, np.empty((len(part.block) if keep else 0, K)), self._learn_segment, self._slot_of_class)

    def _require_room(self, part: Part, n_classes: int) -> None:
        """Refuse now what would be too large later."""
        if part.arrivals:
            require_few(n_classes, self._settings.max_classes)
        if isinstance(self._encoder, SparseEncoder):
            require_room(self._encoder.index, part.block.entries, part.weight, n_classes, self._settings.sketch)
        elif part.arrivals or part.last_schema:
            schema = part.last_schema or self._encoder.schema
            self._settings.constants(schema.width, n_classes, schema.numbers)

    def _read(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Part:
        """Check and encode everything before any row is learned; in the first call, start the game."""
        first = not hasattr(self, "state_")
        if first:
            self._settings = Settings.of(self)
        wide = is_wide(X, self._settings) if first else self._is_sparse
        rows = self._take_rows(X, first, wide)
        n = number_of(rows)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        validate.one_per_row(y, n)
        weight = validate.weights(sample_weight, n)
        if self._settings.class_weight is not None:
            weight = weight * weights_of_labels(y, self._settings.class_weight)
        if first:
            if wide:
                self._encoder = SparseEncoder.start(self._settings, isinstance(rows, Names), self.n_features_in_)
            else:
                self._encoder = Encoder.start(self, self._settings, kind_of_rows(rows))
            self._meet_targets(y, classes)
            self._begin(self.n_features_in_)
            self.bad_rows_ = 0
        elif not self._open:
            self._check_declared(classes)
        return read(rows, y, weight, self._encoder, self._slots, begun=bool(self.state_.tally[ROWS] > 0.0))

    def _take_rows(self, X: Any, first: bool = False, wide: bool | None = None) -> Any:
        if self._is_sparse if wide is None else wide:
            return take_wide_rows(self, X, first, not first and self._encoder.named)
        if self._is_plain(X, None if first else self.n_features_in_):
            self.n_features_in_ = X.shape[1]
            return validate.writable(X)
        return take_rows(self, X, first, self._settings.skips_bad_rows)

    # ------------------------------------------------------------------ forecasts

    def _forecast(self, X: Any, out: Array) -> None:
        if not self._is_sparse and (schema := self._encoder.schema).coded:
            X = offsets.filled(self.state_, X, schema)
        self._forecast_filled(X, out)

    def _forecast_filled(self, X: Any, out: Array) -> None:
        """Forecast encoded rows that have offsets instead of slots."""
        if isinstance(self._encoder, SparseEncoder):
            foresee(self.state_, self._encoder.index, X, self._constants, out)
            return
        self._game.forecast(X, out)

    def _explained(self) -> effects.Explained:
        def logits(X: Any, n: int) -> Array:
            out = np.empty((n, self.state_.slots.size))
            self._forecast_filled(X, out)
            return self._slots.to_classes(out)

        return effects.Explained(self, self._encoder, logits)

    def _forecasts(self, X: Any) -> Array:
        self._require_class()
        block = self._encoder.encode_unlearned(self._take_rows(X))
        said, at_once = np.empty((len(block), self.state_.slots.size)), self._rows_at_once()
        for begin in range(0, len(block), at_once):
            some = slice(begin, min(begin + at_once, len(block)))
            self._forecast(block.rows(some, self._encoder.schema), said[some])
        return self._slots.to_classes(said)

    def _require_class(self) -> None:
        if "state_" not in self.__dict__:  # check_is_fitted takes as long as the forecast
            check_is_fitted(self, "state_", msg=UNBEGUN)
        if not self.classes_.size:
            raise NotFittedError(
                f"this {type(self).__name__} has seen no label yet, so there is no class to forecast: learn a row of "
                "weight > 0, or declare classes=[...] in the first call."
            )

    # ------------------------------------------------------------------ one row

    def _row_kernels(self) -> RowKernels | None:
        if self._is_sparse or self.classes_.size < 2 or self._settings.class_weight is not None:
            return None
        if self._encoder.schema.coded:
            return None
        by_class, game = self._slots.by_class.tolist(), self._game
        return RowKernels(
            game.kernels.run_row,
            game.kernels.forecast_row,
            game.table.address,
            Options(self._reserves),
            codes={label: by_class[k] for label, k in self._labels.code.items()},
            order=None if self._slots.are_in_order else self._slots.by_class,
            held=game.table,
            width=self._encoder.width,
            largest=LARGEST,
        )

    def _usual_row(self, x: Any) -> Any:
        encoder = self._encoder
        if type(encoder) is not Encoder:
            return None
        if type(x) is np.ndarray:
            if x.dtype is FLOAT and x.ndim == 1 and encoder.keeps_arrays:
                return x
        elif type(x) is dict:
            last = self._recent.dense
            try:  # the row that is learned is usually the one that was forecast last
                if last is not None and last[0] is encoder and last[1] == x:
                    return last[2]
            except (TypeError, ValueError):  # a value that cannot be compared, such as an array
                pass
            packed = encoder.packed(x)
            encoded = encoder.known_values(x) if packed is None else np.frombuffer(packed)
            if encoded is not None:
                self._recent.dense = encoder, x.copy(), encoded
            return encoded
        row = encoder.encode_one(x)
        return None if row is None else row[0]

    @alone
    def _learn_any(self, x: Any, y: Any, classes: Any) -> None:
        plain = classes is None and "state_" in self.__dict__ and self._settings.class_weight is None
        row = self._encode_one(x) if plain else None
        target = None if row is None else self._slots.one_hot(y)
        if target is not None and self._learn_known(row, target):
            return
        with uninterrupted():
            if row is None or target is None:
                self._learn_unusual(x, y, classes)
            else:  # some of its columns are new, or the forest grows
                if self._is_sparse:
                    require_room(self._encoder.index, row, ONE, self.state_.slots.size, self._settings.sketch)
                self._run_slots(row, target, ONE, np.empty(target.shape), self._reserves)

    def _encode_one(self, x: Any) -> Any:
        """x as a block of one row, or None if it is unusual.

        The row that is learned is usually the one that was forecast last, so the last dictionary is remembered.
        """
        encoder = self._encoder
        if type(x) is not dict:
            return encoder.encode_one(x)
        items, last = [*x.items()], self._recent.row
        with suppress(TypeError, ValueError):  # a value that cannot be compared, such as an array
            if last is not None and last[0] is encoder and last[1] == encoder.extent and last[2] == items:
                return last[3]
        row = encoder.encode_one(x)
        if row is not None:
            self._recent.row = encoder, encoder.extent, items, row
        return row

    def _learn_known(self, row: Any, target: Array) -> bool:
        """Learn a row by one compiled call, which Ctrl-C cannot divide; False if the state must grow for it."""
        if isinstance(self._encoder, SparseEncoder):
            return play_known(self.state_, self._encoder.index, row, target, self._constants, self._reserves)
        if self.state_.forest_sizes.size and not forest.fits(self.state_, 1):
            return False
        self._run_slots(row, target, ONE, np.empty(target.shape), self._reserves)
        return True

    def _learn_unusual(self, x: Any, y: Any, classes: Any) -> None:
        try:
            self._learn_block_of_one(x, y, classes, None)
        except TooLarge:
            raise
        except (BadRow, TypeError, ValueError):
            if "state_" not in self.__dict__ or not self._settings.skips_bad_rows:
                raise
            self.bad_rows_ += 1

    def _learn_block_of_one(self, x: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        self.partial_fit(as_rows(self, x), as_soft_block(y) if np.ndim(y) == 1 else [y], classes, sample_weight)

    @reads
    def _forecast_of_one(self, x: Any) -> Array:
        if "state_" not in self.__dict__ and self.classes is not None:  # a loop may forecast before it learns
            return np.zeros((1, Labels.of(None, self.classes).classes.size))
        row = self._encode_one(x) if "state_" in self.__dict__ else None
        if row is None:
            return self._forecasts(as_rows(self, x))
        self._require_class()
        said = np.empty((1, self.state_.slots.size))
        self._forecast(row, said)
        return self._slots.to_classes(said)

    def predict_one(self, x: Any) -> Any:
        """The most probable class of one row; before the first row, the first of `classes`."""
        if "state_" not in self.__dict__ and self.classes is not None:
            return Labels.of(None, self.classes).classes[0]
        return super().predict_one(x)

    # ------------------------------------------------------------------ regret

    @property
    def competes_with(self) -> Competition:
        """The best weights in a ball, on the rescaled rows, under the log loss."""
        begun = "_constants" in self.__dict__ and not self._is_sparse
        radii = self._constants.members.radii if begun else np.array(RADII)
        return regret.competition(radii, self._n_classes if hasattr(self, "classes_") else 2)

    def for_comparators(self, X: Any) -> Any:
        """The rows as they were rescaled; X must be all rows learned so far, in their order."""
        block = self._encoder.encode_unlearned(self._take_rows(X))
        if isinstance(self._encoder, SparseEncoder):
            return rescaled_rows(self.state_, self._encoder.index, block.entries, self._constants)
        schema = self._encoder.schema
        table = block.rows(slice(0, len(block)), schema)
        if schema.coded:  # offsets depend on labels: comparators do without
            table = table[:, : schema.width].copy()
            table[:, schema.offset_places] = np.nan
        rescaled = np.empty((len(table), self.state_.tables.shape[3]))
        rescale(np.zeros_like(self.state_.moments), table, np.ones(len(table)), rescaled, np.empty_like(rescaled))
        return rescaled

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        """An upper bound on the regret so far, on the rescaled rows, against the class (or weights of a given norm).

        It is the least over the members of their own certificate plus the mixture's loss minus theirs.
        """
        check_is_fitted(self, "state_")
        if self._is_sparse:
            return sparse_regret.certificate(self.state_, comparator_norm)
        return regret.certificate(self.state_, self._constants.members, comparator_norm)

    def regret_bound(self, n: int | None = None) -> float:
        """AIOLI's theorem on the rescaled rows plus the cost of mixing; for two classes."""
        check_is_fitted(self, "state_")
        if self._is_sparse:
            raise NoBound("no theorem covers the members for sparse rows: use regret_certificate() instead.")
        theorem = regret.theorem(self.state_, self._constants, n)
        return bounds.aioli(**theorem) + regret.mixing_cost(theorem["n"], self._constants, self._open)

    # ------------------------------------------------------------------ inspection

    @property
    def column_kinds_(self) -> tuple[str, ...]:
        """For each column of the input "number", "category", or "unknown" as long as no value was learned.

        Empty for sparse rows.
        """
        check_is_fitted(self, "state_")
        return self._encoder.schema.kinds

    @property
    def weights_(self) -> Array:
        """The weights of the members in the mixture, in the order of `members_`; they sum to 1."""
        check_is_fitted(self, "state_")
        weights: Array = np.exp(self.state_.log_weight)
        return weights / weights.sum()

    @property
    def members_(self) -> list[str]:
        """A description of each member of the mixture."""
        check_is_fitted(self, "state_")
        if self._is_sparse:
            return sparse_members.names(self._settings.sketch)
        return members.names(self._constants.members, self._n_classes)

    @property
    def coef_(self) -> Array:
        """The change of the log-odds per unit of each encoded column, at the mean of all columns: (1, d), or (K, d).

        `get_feature_names_out()` has the names of these columns. Members that are not linear have other slopes
        elsewhere.
        """
        self._require_class()
        return effects.slopes(self._explained())

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the encoded columns, such as "country = fr"."""
        check_is_fitted(self, "state_")
        return np.array(effects.column_names(self._explained(), input_features), dtype=object)

    def effects(self, names: Sequence[Any] | None = None) -> list[Effect]:
        """How the forecast changes with each encoded column, largest change first.

        A column of numbers moves from one standard deviation below its mean to one above it, a category from absent to
        present; all others stay at their means. For sparse rows: an entry 1 in an otherwise empty row.

        >>> from regretless import OnlineLogisticRegression
        >>> rows = [{"amount": float(i % 7), "country": "fr" if i % 2 else "de"} for i in range(100)]
        >>> shop = OnlineLogisticRegression().fit(rows, [row["amount"] > 3 for row in rows])
        >>> shop.effects()[0].feature
        'amount'
        """
        self._require_class()
        return effects.effects(self._explained(), names)

    def report(self) -> str:
        """A table of rows, classes, log loss, Brier score, calibration error, certificate and leading members."""
        check_is_fitted(self, "state_")
        return report.describe(self, self._encoder)
