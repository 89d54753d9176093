"""The parameters of OnlineLogisticRegression, validated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from regretless.core.rows import validate
from regretless.learners.logistic.effort import EFFORTS, expansion
from regretless.learners.logistic.members import NO_COLUMNS, Constants, Members, choose
from regretless.learners.logistic.sparse_sketch import MOST_DIRECTIONS
from regretless.learners.logistic.state import require_memory
from regretless.learners.second_order.surrogate import helmert

MISSING = ("indicator", "mean", "error")
DRIFT = ("none", "track")
ON_BAD_ROW = ("error", "skip")


@dataclass(frozen=True)
class Settings:
    """The parameters of a run, fixed at its first row. `classes` is read with the first labels."""

    fit_intercept: bool = True
    missing: str = "indicator"
    drift: str = "none"
    radii: Any = "auto"
    max_classes: int = 100
    max_categories: int = 128
    on_bad_row: str = "error"
    sparse: Any = "auto"
    interactions: Any = None
    interaction_bits: int = 18
    sketch: int = 0
    effort: str = "medium"
    class_weight: Any = None

    def __post_init__(self) -> None:
        listed = (("missing", MISSING), ("drift", DRIFT), ("on_bad_row", ON_BAD_ROW), ("effort", EFFORTS))
        for name, choices in listed:
            if getattr(self, name) not in choices:
                raise ValueError(f"{name}={getattr(self, name)!r} is not supported: choose one of {choices}.")
        for name, least in (("max_classes", 2), ("max_categories", 0)):
            validate.whole(name, getattr(self, name), least)
        if not isinstance(self.fit_intercept, bool | np.bool):
            raise ValueError(f"fit_intercept={self.fit_intercept!r} is not supported: give True or False.")
        if not (isinstance(self.sparse, bool | np.bool) or (isinstance(self.sparse, str) and self.sparse == "auto")):
            raise ValueError(f'sparse={self.sparse!r} is not supported: give "auto", True or False.')
        if self.interactions is not None and self.sparse is False:
            raise ValueError('interactions are learned entry by entry: leave sparse="auto", or set it to True.')
        check_interactions(self.interactions, self.interaction_bits)
        check_sketch(self.sketch, self.sparse)
        check_class_weight(self.class_weight)

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """The parameters of an estimator."""
        return cls(**{field.name: getattr(estimator, field.name) for field in fields(cls)})

    @property
    def tracks(self) -> bool:
        """Whether the mixture follows change."""
        return self.drift == "track"

    @property
    def skips_bad_rows(self) -> bool:
        """Whether a bad row is counted and left out instead of raising an error."""
        return self.on_bad_row == "skip"

    def members(self, n_columns: int, n_classes: int, numbers: Any = None) -> Members:
        """The members for so many encoded columns and classes; `numbers` are those columns that hold numbers (all)."""
        intercept = bool(self.fit_intercept)
        places = np.arange(n_columns) if numbers is None else np.asarray(numbers, dtype=np.int64)
        expanded = expansion(self.effort, n_columns, len(places), n_classes, intercept)
        return choose(n_columns + intercept, n_classes, self.radii, self.tracks, intercept, expanded, places)

    def constants(
        self, n_columns: int, n_classes: int, numbers: Any = None, singly: NDArray[np.int64] = NO_COLUMNS
    ) -> Constants:
        """What the kernels read, for so many columns and classes; an error if the state would not fit into memory.

        `singly` are the columns of single categories of coded columns, which have offsets with two classes.
        """
        members = self.members(n_columns, n_classes, numbers)
        require_memory(n_columns, self.fit_intercept, n_classes, members)
        basis = helmert(n_classes) if len(members.radii) else np.empty((0, 0))
        return Constants(*members, basis, singly if n_classes == 2 else NO_COLUMNS, self.tracks)


def check_sketch(sketch: Any, sparse: Any) -> None:
    """Refuse anything but a number of directions, and a sketch of rows that are never sparse."""
    if isinstance(sketch, bool | np.bool) or not isinstance(sketch, int | np.integer):
        raise ValueError(f"sketch={sketch!r} is not supported: give an integer, 0 for no sketch.")
    if not 0 <= sketch <= MOST_DIRECTIONS:
        raise ValueError(f"sketch={sketch} is not supported: give an integer from 0 to {MOST_DIRECTIONS}.")
    if sketch and sparse is False:
        raise ValueError('a sketch is for sparse rows: leave sparse="auto", or set it to True, or set sketch=0.')


def check_interactions(interactions: Any, bits: Any) -> None:
    """Refuse anything but None, "pairs" or a list of pairs, and bits that are not 1 to 31."""
    if isinstance(bits, bool) or not isinstance(bits, int | np.integer) or not 1 <= bits <= 31:
        raise ValueError(f"interaction_bits={bits!r} is not supported: give an integer from 1 to 31.")
    if interactions is None or (isinstance(interactions, str) and interactions == "pairs"):
        return
    listed: Iterable[Any] = interactions if isinstance(interactions, list | tuple) else ()
    good = [pair for pair in listed if isinstance(pair, list | tuple) and len(pair) == 2 and pair[0] != pair[1]]
    if not good or len(good) != len(interactions):
        raise ValueError(
            f'interactions={interactions!r} is not supported: give None, "pairs", or a list of pairs of different '
            "columns, such as [(0, 3)] or [('site', 'device')]."
        )


def check_class_weight(class_weight: Any) -> None:
    """Refuse anything but None, or a dictionary from label to a positive weight."""
    if class_weight is None:
        return
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight={class_weight!r} is not supported: give None, or a weight for each label.")
    for label, weight in class_weight.items():
        validate.positive(f"class_weight[{label!r}]", weight)
