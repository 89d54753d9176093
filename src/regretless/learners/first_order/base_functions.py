"""Base functions h_1..h_M of x, which the aggregator combines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from regretless.core.errors import BadRow
from regretless.core.files.stored import Recipe
from regretless.core.kernels.jit import kernel
from regretless.core.rows import validate
from regretless.core.rows.compressed import SparseRows
from regretless.core.scikit_learn import check_is_fitted, is_classifier, is_regressor
from regretless.core.types import Array


@dataclass(frozen=True)
class Stumps(Recipe):
    """Decision stumps: h(x) = 1 if x_j > threshold, else -1."""

    features: tuple[int, ...]
    thresholds: tuple[float, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        M = len(self.features)
        if M == 0 or len(self.thresholds) != M or len(self.names) != M:
            raise ValueError(
                f"Stumps got {M} features, {len(self.thresholds)} thresholds and {len(self.names)} names: give equal "
                "numbers of each, at least one."
            )
        for j in self.features:
            validate.whole("features", j, 0)
        for threshold in self.thresholds:
            if not isinstance(threshold, int | float | np.number) or not math.isfinite(threshold):
                raise ValueError(f"thresholds: {threshold!r} must be a finite number.")

    def __call__(self, X: Any) -> Array:
        """The values (n, M)."""
        rows = np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        self.require_columns(rows.shape[1] if rows.ndim == 2 else 0)
        values = np.empty((rows.shape[0], len(self.features)))
        sides(rows, *self._arrays, values)
        return values

    def require_columns(self, n_columns: int) -> None:
        """Refuse rows that lack a column: compiled code does not check the index."""
        if self._last_column >= n_columns:
            raise ValueError(
                f"base has a stump of column {self._last_column}, but the rows have {n_columns} columns: pass rows "
                "with the columns that the stumps were made from."
            )

    @cached_property
    def _last_column(self) -> int:
        return max(self.features)

    @cached_property
    def _arrays(self) -> tuple[NDArray[np.int64], Array]:
        return np.array(self.features, dtype=np.int64), np.array(self.thresholds, dtype=np.float64)

    def __repr__(self) -> str:
        return f"Stumps({len(self.features)} of {len(set(self.features))} features)"


@kernel
def sides(X: Array, features: NDArray[np.int64], thresholds: Array, out: Array) -> None:
    """1 where the feature is above the threshold, else -1."""
    for t in range(X.shape[0]):
        for m in range(features.size):
            out[t, m] = 1.0 if X[t, features[m]] > thresholds[m] else -1.0


def stumps(X_sample: Any, n_per_feature: int = 10) -> Stumps:
    """Decision stumps with thresholds at quantiles of a sample: at most `n_per_feature` per column, without duplicates.

    >>> found = stumps([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0], [3.0, 5.0]], n_per_feature=3)
    >>> found.names
    ('x0 > 0.75', 'x0 > 1.5', 'x0 > 2.25')
    >>> found(np.array([[1.0, 5.0]])).tolist()
    [[1.0, -1.0, -1.0]]
    """
    if isinstance(n_per_feature, bool) or not isinstance(n_per_feature, int | np.integer) or n_per_feature < 1:
        raise ValueError(f"n_per_feature={n_per_feature!r} must be a whole number of at least 1.")
    columns = [str(name) for name in getattr(X_sample, "columns", [])]
    sample = np.asarray(X_sample.toarray() if hasattr(X_sample, "toarray") else X_sample, dtype=np.float64)
    if sample.ndim != 2 or sample.shape[0] == 0 or not np.isfinite(sample).all():
        raise ValueError(f"X_sample has shape {sample.shape}: give at least one row of finite numbers.")
    levels = np.arange(1, n_per_feature + 1) / (n_per_feature + 1)
    found = []
    for j in range(sample.shape[1]):
        quantiles = np.unique(np.quantile(sample[:, j], levels))
        found += [(j, float(q)) for q in quantiles if sample[:, j].min() <= q < sample[:, j].max()]
    if not found:
        raise ValueError(
            "every column of X_sample is constant, so that no threshold separates rows: give a larger sample."
        )
    names = [f"{columns[j] if columns else f'x{j}'} > {threshold:.6g}" for j, threshold in found]
    return Stumps(tuple(j for j, _ in found), tuple(q for _, q in found), tuple(names))


@dataclass(frozen=True)
class Functions:
    """The base functions of a `base` parameter, ready to evaluate."""

    parts: tuple[Callable[[Any], Array], ...]  # empty: the columns themselves
    names: tuple[str, ...]
    symmetric: bool

    def __len__(self) -> int:
        return len(self.names)

    def __call__(self, X: Array | SparseRows, first: int = 0) -> Array | SparseRows:
        """The values (n, M) of a block. Its rows are numbered from `first`."""
        if not self.parts:
            return X if not self.symmetric else _with_negated(_dense(X))
        rows = X.to_scipy() if isinstance(X, SparseRows) else X
        values = np.hstack([_as_columns(part(rows), X.shape[0], first) for part in self.parts])
        return _with_negated(values) if self.symmetric else values


def resolve(base: Any, symmetric: bool, X: Array | SparseRows, names: Any, classes: Any) -> Functions:
    """Base functions from "columns", stumps, or a list of fitted estimators and callables, counted on X."""
    if isinstance(base, str):
        if base != "columns":
            raise ValueError(f'base={base!r}: give "columns", stumps(...), or a list of classifiers or callables.')
        labels = [f"x{j}" for j in range(X.shape[1])] if names is None else [str(name) for name in names]
        return _named((), labels, symmetric)
    if isinstance(base, Stumps):
        base.require_columns(X.shape[1])
        return _named((base,), list(base.names), symmetric)
    if not isinstance(base, Sequence) or len(base) == 0:
        raise ValueError(f'base={base!r}: give "columns", stumps(...), or a list of classifiers or callables.')
    parts = tuple(_part(each, classes) for each in base)
    one = X[:1].to_scipy() if isinstance(X, SparseRows) else X[:1]
    labels = []
    for i, (each, part) in enumerate(zip(base, parts, strict=True)):
        width = _as_columns(part(one), 1).shape[1]
        if isinstance(each, Stumps):
            labels += each.names
        else:
            labels += [f"{_name(each)} {i}" + (f".{j}" if width > 1 else "") for j in range(width)]
    return _named(parts, labels, symmetric)


def _named(parts: tuple[Callable[[Any], Array], ...], labels: list[str], symmetric: bool) -> Functions:
    if not isinstance(symmetric, bool | np.bool_):
        raise ValueError(f"symmetric={symmetric!r} must be True or False.")
    return Functions(parts, tuple(labels + [f"-({name})" for name in labels] if symmetric else labels), bool(symmetric))


def _name(each: Any) -> str:
    return getattr(each, "__name__", type(each).__name__)


def _part(each: Any, classes: Any) -> Callable[[Any], Array]:
    """A function of rows: for a classifier 1 where it predicts the second class, and -1 for the first."""
    estimator = hasattr(each, "predict")
    if estimator and is_classifier(each):
        try:
            check_is_fitted(each)
        except Exception as error:
            raise ValueError(
                f"base: {each!r} is not fitted. (A clone of a list is a list of unfitted clones: wrap fitted "
                "estimators in sklearn.frozen.FrozenEstimator.)"
            ) from error
        if classes is None or list(each.classes_) != list(classes):
            raise ValueError(
                f"base: {each!r} has the classes {list(each.classes_)}, but the stream has {classes}: fit it on these."
            )
        return lambda X: np.where(np.asarray(each.predict(X)) == classes[1], 1.0, -1.0)
    if estimator and is_regressor(each):
        return lambda X: np.asarray(each.predict(X), dtype=np.float64)
    if callable(each):
        return each
    raise ValueError(f"base: {each!r} is not a classifier, regressor or callable.")


def _as_columns(values: Any, n: int, first: int = 0) -> Array:
    array = np.asarray(values.toarray() if sparse.issparse(values) else values, dtype=np.float64)
    array = array.reshape(n, -1) if array.ndim <= 1 and array.size == n else array
    if array.ndim != 2 or array.shape[0] != n:
        raise ValueError(
            f"a base function returned an array of shape {array.shape} for {n} rows: return one value per row."
        )
    if not np.isfinite(array).all():
        i, j = np.argwhere(~np.isfinite(array))[0]
        raise BadRow(f"row {first + i}: base function {j} is {array[i, j]}. Nothing was learned from this call.")
    return array


def _dense(X: Array | SparseRows) -> Array:
    return X.to_scipy().toarray() if isinstance(X, SparseRows) else X


def _with_negated(values: Array) -> Array:
    return np.hstack([values, -values])
