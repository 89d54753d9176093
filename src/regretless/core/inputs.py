"""Numbers in the forms that users have them in, as float64; what is no number is refused by its place.

NumPy reads a date as a count of days, drops the imaginary part of a complex number, looks past the mask of a masked
array, and says of text neither where it was nor what to do. Nothing of that passes here.
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

Place = Callable[[tuple[int, ...]], str]  # from an index to words: "row 3, column 1 ('age')"

NUMERIC = "biuf"  # kinds of dtypes that are numbers
PLAIN = {float, int, np.float64}
DATES = (np.datetime64, np.timedelta64, datetime.date, datetime.time, datetime.timedelta)
NOT_REAL = (complex, np.complexfloating, *DATES)  # which `float` may yet take for a number
UNLEARNED = "Nothing was learned from this call."


def column(names: Sequence[str] | None, j: int) -> str:
    """A column in words."""
    return f"column {j}" if names is None else f"column {j} ({names[j]!r})"


def in_rows(names: Sequence[str] | None) -> Place:
    """The words for the place of a feature; of one row given as such, the row is 0."""
    return lambda at: f"row {at[0] if len(at) > 1 else 0}, {column(names, at[-1])}" if at else "x"


def is_missing(value: Any) -> bool:
    """None, NaN of any kind, pandas' NA and NaT, NumPy's `masked`."""
    if value is None or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float | complex | np.inexact | np.datetime64 | np.timedelta64) and bool(value != value)


def as_floats(given: Any, place: Place, masked: bool = False, instead: float | None = None) -> Array:
    """Numbers as float64, what is missing as NaN.

    A masked value is missing where that is allowed; what is no number becomes `instead` where one is given.
    """
    if type(given) is np.ndarray and given.dtype == np.float64:
        return given
    if type(given) is list and (plain := plain_list(given)) is not None:
        return plain
    array = _as_array(given, place, masked)
    if array.dtype.kind in NUMERIC:
        with np.errstate(over="ignore"):  # a larger float becomes infinity, which is refused by its place
            return np.asarray(array, dtype=np.float64)
    found = np.empty(array.size)
    # a date stays what it is: `tolist` may make a number of it
    for i, value in enumerate(array.ravel() if array.dtype.kind in "mM" else array.ravel().tolist()):
        try:
            found[i] = as_number(value)
        except (TypeError, ValueError, OverflowError) as error:
            if instead is None:
                raise _complaint(place(_index(i, array.shape)), value, error) from error
            found[i] = instead
    return found.reshape(array.shape)


def readable_rows(X: Any, names: Sequence[str] | None, masked: bool = False, instead: float | None = None) -> Any:
    """Rows that scikit-learn's checks read without loss: a frame or a matrix as it is, anything else as an array."""
    if sparse.issparse(X):
        if X.dtype.kind not in NUMERIC:
            raise BadRow(f"the matrix is of type {X.dtype}: give real numbers. Complex data not supported. {UNLEARNED}")
        return X
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        _refuse_columns(X)
        return X
    if type(X) is np.ndarray and X.dtype.kind in NUMERIC:
        return X
    readable = isinstance(X, list | tuple) or hasattr(X, "__array__")
    return as_floats(X, in_rows(names), masked, instead) if readable else X


def plain_list(x: list[Any]) -> Array | None:
    """The numbers of a list, or None if it holds anything else."""
    try:
        return np.array(x, dtype=np.float64) if {*map(type, x)} <= PLAIN else None
    except OverflowError:  # a whole number beyond floats
        return None


def has_names(x: Any) -> bool:
    """Whether x is a row whose values have names: a pandas Series."""
    return hasattr(x, "to_frame") and hasattr(x, "index") and any(isinstance(name, str) for name in x.index)


def as_block(x: Any) -> Any:
    """One row as a block, with its names if it has them."""
    if sparse.issparse(x):
        return x
    if has_names(x):
        return x.to_frame().T
    return x.reshape(1, -1) if isinstance(x, np.ndarray) else np.reshape(np.asarray(x), (1, -1))


def as_soft_block(y: Any) -> Any:
    """The label probabilities of one row as a block; a mask stays."""
    return (y if isinstance(y, np.ndarray) else np.asarray(y))[None, :]


def _as_array(given: Any, place: Place, masked: bool) -> np.ndarray:
    """As NumPy reads it, masks heeded."""
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
            f"{place(at)}: the value is masked, so Input contains NaN. Fill it in (for example "
            f"with the column's mean), or drop the row. {UNLEARNED}"
        )
    array = array.astype(object)
    array[mask] = None
    return array


def _uneven(given: Any) -> str:
    """Which row has another length than the first."""
    sizes = [len(row) if hasattr(row, "__len__") and not isinstance(row, str) else None for row in given]
    i = next((i for i, size in enumerate(sizes) if size != sizes[0]), 0)
    if i == 0:
        return "the rows are no table of numbers: give as many numbers in every row."
    told = "a single value" if sizes[i] is None else f"{sizes[i]} values"
    return f"row {i}: {told}, and row 0 is of another length: give as many numbers in every row."


def _refuse_columns(X: Any) -> None:
    """Refuse what is no number in a data frame, by row, column and name."""
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
                f"row {np.argmax(np.isnan(found))}, {column(names, j)}: Input contains NaN. Drop the row, or fill the "
                f"value in (for example with the column's mean). {UNLEARNED}"
            )


def _index(i: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(k) for k in np.unravel_index(i, shape)) if shape else ()


def as_number(value: Any) -> float:
    """One value, NaN if it is missing; what is no number is an error without words."""
    if isinstance(value, NOT_REAL):
        raise ValueError
    return math.nan if is_missing(value) else float(value)


def _complaint(place: str, value: Any, error: Exception) -> Exception:
    """What is wrong with a value, and what to do."""
    value = value.item() if isinstance(value, np.str_ | np.bytes_ | np.complexfloating) else value
    shown = repr(value)[:80]
    if isinstance(error, TypeError):
        return TypeError(f"{place}: {shown} is no number: {error}. {UNLEARNED}")
    remedy = "It is too large for floating point arithmetic: scale it down."
    if isinstance(value, DATES):
        remedy = "Encode timestamps as numbers, such as the hour, or the days since a fixed date."
    elif isinstance(value, complex):
        remedy = "Complex data not supported: give the real and the imaginary part as two numbers."
    elif isinstance(value, str | bytes):
        remedy = (
            "Encode text as numbers, for example by scikit-learn's OneHotEncoder; OnlineLogisticRegression reads text "
            "in data frames and dictionaries."
        )
    return BadRow(f"{place}: could not convert {shown} to a number to learn from. {remedy} {UNLEARNED}")
