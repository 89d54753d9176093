"""as_river: a classifier of this library as a classifier of River."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

from regretless.core.learner import OnlineClassifier
from regretless.core.scikit_learn import clone


def as_river(learner: Any, classes: Any = None) -> Any:
    """A classifier of River that learns with `learner`, for River's pipelines, metrics and evaluation.

    `predict_proba_one` returns a dictionary from class to probability, empty before the first row. Learners that take
    arrays get the values in the order of the names of the first row. River must be installed.

    Parameters
    ----------
    learner : a classifier of this library.
    classes : the labels. `OnlineLogisticRegression` needs none; other learners need them before the first row, and
        None means False and True.

    Examples
    --------
    >>> import regretless
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | regretless.as_river(regretless.AIOLI())
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 88.07%
    """
    if not isinstance(learner, OnlineClassifier):
        raise ValueError(f"{type(learner).__name__} is not a classifier of this library: as_river takes one of them.")
    if classes is None and not learner.reads_tables:
        classes = [False, True]
    return _classifier()(learner, classes)


@cache
def _classifier() -> type[Any]:
    """The class, made when River is there."""
    try:
        from river import base
    except ImportError as error:
        raise ImportError("as_river needs River: pip install river.") from error

    class RegretlessClassifier(base.Classifier):
        """A classifier of River around a learner of this library."""

        def __init__(self, learner: Any, classes: Any) -> None:
            self.learner, self.classes = learner, classes
            self._names: list[Any] | None = None  # of the first row, for learners that take arrays

        @property
        def _multiclass(self) -> bool:
            return not self.learner.binary_only

        def _row(self, x: dict[Any, Any], learns: bool) -> Any:
            if self.learner.reads_tables:
                return dict(x)
            if self._names is None and learns:
                self._names = list(x)
            names = self._names or list(x)
            if x.keys() != {*names}:
                raise ValueError(
                    f"the row has the names {sorted(map(str, x))}, and {type(self.learner).__name__} learns {names}, "
                    "those of the first row: give these, or use OnlineLogisticRegression, which takes new names."
                )
            return [float(x[name]) for name in names]

        def clone(self, new_params: Any = None, include_attributes: bool = False) -> Any:
            """A classifier that has learned nothing, with `include_attributes` a copy."""
            if include_attributes:
                return copy.deepcopy(self)
            return type(self)(**{"learner": clone(self.learner), "classes": self.classes} | (new_params or {}))

        def learn_one(self, x: dict[Any, Any], y: Any) -> None:
            """Learn from one row."""
            row = self._row(x, learns=True)
            self.learner.learn_one(row, y, None if hasattr(self.learner, "state_") else self.classes)

        def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
            """The probability of each class; empty before the first row."""
            if not hasattr(self.learner, "state_"):
                return {}
            p = self.learner.predict_proba_one(self._row(x, learns=False))
            return dict(zip(self.learner.classes_.tolist(), p.tolist(), strict=True))

    return RegretlessClassifier
