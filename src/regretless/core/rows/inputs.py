"""User input as float64. Non-numeric values are refused with their row and column.

NumPy reads a date as a number of days, drops the imaginary part of a complex number, ignores the mask of a masked
array, and reports text without its place. This module refuses all of these.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from scipy import sparse

from regretless.core.errors import BadRow
from regretless.core.types import Array

Place = Callable[[tuple[int, ...]], str]  # from an index to its description: "row 3, column 1 ('age')"

NUMERIC = "biuf"  # dtype kinds of real numbers
PLAIN = {float, int, np.float64}
DATES = (np.datetime64, np.timedelta64, datetime.date, datetime.time, datetime.timedelta)
NOT_REAL = (complex, np.complexfloating, *DATES)  # which `float` may accept
UNLEARNED = "Nothing was learned from this call."


def column(names: Sequence[str] | None, j: int) -> str:
    """The description of a column."""
    return f"column {j}" if names is None else f"column {j} ({names[j]!r})"


def in_rows(names: Sequence[str] | None) -> Place:
    """The description of an entry; a single row is row 0."""
    return lambda at: f"row {at[0] if len(at) > 1 else 0}, {column(names, at[-1])}" if at else "x"


def is_missing(value: Any) -> bool:
    """Whether a value is None, any NaN, pandas' NA or NaT, or NumPy's `masked`."""
    if value is None or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float | complex | np.inexact | np.datetime64 | np.timedelta64) and bool(value != value)


def as_floats(given: Any, place: Place, masked: bool = False, instead: float | None = None) -> Array:
    """Numbers as float64, with NaN for missing values.

    Masked values are missing if that is allowed. Non-numeric values become `instead` if it is given.
    """
    if type(given) is np.ndarray and given.dtype == np.float64:
        return given
    if type(given) is list and (plain := plain_list(given)) is not None:
        return plain
    array = _as_array(given, place, masked)
    if array.dtype.kind in NUMERIC:
        with np.errstate(over="ignore"):  # a larger float becomes infinity, which is refused later
            return np.asarray(array, dtype=np.float64)
    found = np.empty(array.size)
    # dates stay dates: `tolist` may turn them into numbers
    for i, value in enumerate(array.ravel() if array.dtype.kind in "mM" else array.ravel().tolist()):
        try:
            found[i] = as_number(value)
        except (TypeError, ValueError, OverflowError) as error:
            if instead is None:
                raise _complaint(place(_index(i, array.shape)), value, error) from error
            found[i] = instead
    return found.reshape(array.shape)


def readable_rows(X: Any, names: Sequence[str] | None, masked: bool = False, instead: float | None = None) -> Any:
    """Rows that scikit-learn's checks read without loss: a frame or a matrix unchanged, anything else as an array."""
    if sparse.issparse(X):
        if X.dtype.kind not in NUMERIC:
            raise BadRow(f"the matrix has dtype {X.dtype}: use real numbers. Complex data not supported. {UNLEARNED}")
        return X
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        _refuse_columns(X)
        return X
    if type(X) is np.ndarray and X.dtype.kind in NUMERIC:
        return X
    readable = isinstance(X, list | tuple) or hasattr(X, "__array__")
    return as_floats(X, in_rows(names), masked, instead) if readable else X


def plain_list(x: list[Any]) -> Array | None:
    """The numbers of a list, or None if it contains anything else."""
    try:
        return np.array(x, dtype=np.float64) if {*map(type, x)} <= PLAIN else None
    except OverflowError:  # an integer beyond the range of floats
        return None


def has_names(x: Any) -> bool:
    """Whether x is a row with named values: a pandas Series."""
    return hasattr(x, "to_frame") and hasattr(x, "index") and any(isinstance(name, str) for name in x.index)


def as_block(x: Any) -> Any:
    """One row as a block, with its names if any."""
    if sparse.issparse(x):
        return x
    if has_names(x):
        return x.to_frame().T
    return x.reshape(1, -1) if isinstance(x, np.ndarray) else np.reshape(np.asarray(x), (1, -1))


def as_soft_block(y: Any) -> Any:
    """The label probabilities of one row as a block; a mask is kept."""
    return (y if isinstance(y, np.ndarray) else np.asarray(y))[None, :]


def _as_array(given: Any, place: Place, masked: bool) -> np.ndarray:
    """As read by NumPy, but masks are respected."""
    if isinstance(given, list | tuple) and any(isinstance(part, np.ma.MaskedArray) for part in given):
        given = np.ma.array(list(given))
    if not isinstance(given, np.ma.MaskedArray):
        try:
            return np.asarray(given)
        except ValueError as error:  # rows of different lengths
            raise BadRow(f"{_uneven(given)} {UNLEARNED}") from error
    array, mask = np.asarray(given.data), np.ma.getmaskarray(given)
    if not mask.any():
        return array
    if not masked:
        at = tuple(int(i) for i in np.argwhere(mask)[0])
        raise BadRow(
            f"{place(at)}: the value is masked, so Input contains NaN. Impute it (for example "
            f"with the column's mean), or drop the row. {UNLEARNED}"
        )
    array = array.astype(object)
    array[mask] = None
    return array


def _uneven(given: Any) -> str:
    """The first row whose length differs from that of row 0."""
    sizes = [len(row) if hasattr(row, "__len__") and not isinstance(row, str) else None for row in given]
    i = next((i for i, size in enumerate(sizes) if size != sizes[0]), 0)
    if i == 0:
        return "the rows are not a table of numbers: every row needs the same number of values."
    told = "a single value" if sizes[i] is None else f"{sizes[i]} values"
    return f"row {i} has {told}, unlike row 0: every row needs the same number of values."


def _refuse_columns(X: Any) -> None:
    """Refuse non-numeric values in a data frame, with row, column and name."""
    names = [str(name) for name in (X.columns if hasattr(X, "columns") else X.column_names)]
    if not hasattr(X, "iloc"):  # not pandas: as one array
        as_floats(np.asarray(X), in_rows(names))
        return
    for j, dtype in enumerate(X.dtypes):
        if dtype.kind in NUMERIC:
            continue
        found = as_floats(np.asarray(X.iloc[:, j]), lambda at, j=j: f"row {at[0]}, {column(names, j)}")  # type: ignore[misc]
        if np.isnan(found).any():
            raise BadRow(
                f"row {np.argmax(np.isnan(found))}, {column(names, j)}: Input contains NaN. Drop the row, or impute "
                f"the value (for example with the column's mean). {UNLEARNED}"
            )


def _index(i: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(k) for k in np.unravel_index(i, shape)) if shape else ()


def as_number(value: Any) -> float:
    """One value as a float, NaN if it is missing. Raises an empty error for non-numeric values."""
    if isinstance(value, NOT_REAL):
        raise ValueError
    return math.nan if is_missing(value) else float(value)


def _complaint(place: str, value: Any, error: Exception) -> Exception:
    """The error for a value, with a remedy."""
    value = value.item() if isinstance(value, np.str_ | np.bytes_ | np.complexfloating) else value
    shown = repr(value)[:80]
    if isinstance(error, TypeError):
        return TypeError(f"{place}: {shown} is not a number: {error}. {UNLEARNED}")
    remedy = "It is too large for a float: scale it down."
    if isinstance(value, DATES):
        remedy = "Encode timestamps as numbers, such as the hour, or the days since a fixed date."
    elif isinstance(value, complex):
        remedy = "Complex data not supported: pass the real and the imaginary part as two numbers."
    elif isinstance(value, str | bytes):
        remedy = (
            "Encode text as numbers, for example by scikit-learn's OneHotEncoder. OnlineLogisticRegression takes text "
            "in data frames and dictionaries."
        )
    return BadRow(f"{place}: could not convert {shown} to a number. {remedy} {UNLEARNED}")
