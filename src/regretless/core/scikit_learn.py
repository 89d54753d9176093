"""What the package uses of scikit-learn, imported without what takes half of the time of a first forecast."""

from __future__ import annotations

from regretless.core.first_import import put_off

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


with put_off("scipy.stats", "scipy.special", "pandas"):
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier, is_regressor
    from sklearn.exceptions import ConvergenceWarning, NotFittedError
    from sklearn.utils import RegressorTags, check_consistent_length, column_or_1d
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data
