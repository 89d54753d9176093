"""Effect: how a forecast changes with one feature."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from regretless.core.types import Array

ONE_MORE = "one more"


class Effect(NamedTuple):
    """How the forecast changes with one feature, the others being as they are.

    `change` is that of the log-odds of the second class for two classes, of the logit of each class for more, of the
    forecast for a regressor.
    """

    feature: str
    step: str  # of the feature: "one more", "mean - deviation to mean + deviation", "0 to 1"
    change: Array


def largest_first(effects: Iterable[Effect]) -> list[Effect]:
    """Sorted by the size of the change."""
    return sorted(effects, key=lambda effect: -float(np.abs(effect.change).max()))


def names_of(learner: Any, names: Sequence[Any] | None, n: int) -> list[str]:
    """The given names of n features, or those that the learner has learned, or x0, x1, ..."""
    found = names if names is not None else getattr(learner, "feature_names_in_", None)
    if found is None:
        return [f"x{j}" for j in range(n)]
    if len(found) != n:
        raise ValueError(f"there are {len(found)} names for {n} features: give one for each.")
    return [str(name) for name in found]


def from_logits(Z: Array) -> Array:
    """Logits, one row per class, as `coef_` has them: the difference for two classes, else relative to their mean."""
    return (Z[1] - Z[0])[None] if len(Z) == 2 else Z - Z.mean(axis=0)
