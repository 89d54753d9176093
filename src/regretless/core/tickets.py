"""Ticket: a forecast whose label comes later, and what the delay cost once it is there."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from regretless.core.types import Array


@dataclass
class Ticket:
    """A row that was forecast, to be learned when its label is known: `learner.learn(ticket, y)`."""

    x: Any = field(repr=False)  # a copy of the row
    forecast: Any  # probabilities in the order of `classes`; a number for a regressor; a class if there are none
    classes: Array | None = field(repr=False)
    rows: int = field(repr=False)  # that the learner had learned
    learned: bool = False


class Settled(NamedTuple):
    """A ticket whose label came."""

    loss: float  # of the forecast that was given
    loss_now: float  # of the forecast that the learner would have given just before it learned the label
    delay: int  # rows learned in between

    @property
    def cost(self) -> float:
        """What the delay cost: the difference of the two losses. It may be negative on a single row."""
        return 0.0 if self.loss == self.loss_now else self.loss - self.loss_now


def copy_of_row(x: Any) -> Any:
    """A copy, as the caller may change the row before its label comes."""
    return x.copy() if hasattr(x, "copy") else np.array(x)


def loss_of(forecast: Any, classes: Array | None, y: Any) -> float:
    """The log loss of probabilities, the squared error of a number, 0 or 1 for a class.

    It is infinite if the label was not among the classes.
    """
    if classes is None:
        return float(np.sum((np.asarray(forecast) - np.asarray(y, dtype=np.float64)) ** 2))
    if not isinstance(forecast, np.ndarray):
        return float(forecast != y)
    if np.ndim(y) == 1:  # label probabilities
        share = np.asarray(y, dtype=np.float64)
        return float(-np.sum(share[share > 0] * np.log(forecast[share > 0])))
    found = [k for k, label in enumerate(classes.tolist()) if label == y]
    return -math.log(forecast[found[0]]) if found else math.inf
