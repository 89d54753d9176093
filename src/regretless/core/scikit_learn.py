"""What the package uses of scikit-learn, imported without scipy.stats and pandas.

`sklearn.utils` imports scipy.stats for a function that no learner needs, and pandas for none: half of the time of a
first forecast. So stand-ins are in their place meanwhile. Afterwards the first use of `scipy.stats`, here or in
scikit-learn, imports it, and so does that of `pandas`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "ConvergenceWarning",
    "NotFittedError",
    "RegressorMixin",
    "RegressorTags",
    "_num_samples",
    "available_if",
    "check_classification_targets",
    "check_consistent_length",
    "check_is_fitted",
    "clone",
    "column_or_1d",
    "is_classifier",
    "is_regressor",
    "validate_data",
]


class StandIn(ModuleType):
    """A module that is imported when another thread, or an import that is not expected, uses it."""

    def __getattr__(self, name: str) -> Any:
        self.step_aside()
        return getattr(import_module(self.__name__), name)

    def step_aside(self) -> None:
        """Let the next import find the module itself."""
        if sys.modules.get(self.__name__) is self:
            sys.modules.pop(self.__name__, None)


@contextmanager
def put_off(name: str) -> Iterator[None]:
    """Inside, `import name` does not import the module."""
    stand_in = StandIn(name)
    sys.modules.setdefault(name, stand_in)
    try:
        yield
    finally:
        stand_in.step_aside()


with put_off("scipy.stats"), put_off("pandas"):
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
    from sklearn.exceptions import ConvergenceWarning, NotFittedError
    from sklearn.utils import RegressorTags, check_consistent_length, column_or_1d
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data
