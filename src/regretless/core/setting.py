"""Setting: the facts about a stream that are known before a race."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from regretless.core.types import Array


class Setting(NamedTuple):
    """The facts about a stream from which a learner may choose its parameters (`Stored._entrants`)."""

    X: Array  # all rows
    n_classes: int
    radius: float  # the largest norm of the weights of one class

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self.X.shape[1])

    @property
    def feature_bound(self) -> float:
        """The largest norm of a row."""
        return float(np.linalg.norm(self.X, axis=1).max())

    @property
    def entry_bound(self) -> float:
        """The largest absolute entry of a row."""
        return float(np.abs(self.X).max())

    @property
    def matrix_radius(self) -> float:
        """The Frobenius norm of weights with one row of norm `radius` per class (two classes have one row)."""
        return self.radius * (1.0 if self.n_classes == 2 else self.n_classes**0.5)
