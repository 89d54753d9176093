"""The parameters of OnlineLogisticRegression, validated."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from regretless.core import validate
from regretless.learners.logistic.members import Constants, Members, choose
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

    def __post_init__(self) -> None:
        for name, choices in (("missing", MISSING), ("drift", DRIFT), ("on_bad_row", ON_BAD_ROW)):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name}={getattr(self, name)!r} is not supported: choose one of {choices}.")
        for name, least in (("max_classes", 2), ("max_categories", 0)):
            validate.whole(name, getattr(self, name), least)
        if not isinstance(self.fit_intercept, bool | np.bool):
            raise ValueError(f"fit_intercept={self.fit_intercept!r} is not supported: give True or False.")

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

    def members(self, n_columns: int, n_classes: int) -> Members:
        """The members for so many encoded columns and classes."""
        return choose(n_columns + self.fit_intercept, n_classes, self.radii, self.tracks, bool(self.fit_intercept))

    def constants(self, n_columns: int, n_classes: int) -> Constants:
        """What the kernels read, for so many columns and classes; an error if the state would not fit into memory."""
        members = self.members(n_columns, n_classes)
        require_memory(n_columns, self.fit_intercept, n_classes, members)
        return Constants(*members, helmert(n_classes) if len(members.radii) else np.empty((0, 0)), self.tracks)
