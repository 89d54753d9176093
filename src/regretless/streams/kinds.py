"""Kinds of columns: inferred from a sample of text, and conversion of text to each kind.

number     float64; null if missing
comma      numbers with a decimal comma, and perhaps dots between thousands
truth      true or false, as 1.0 and 0.0
time       dates and times (ISO 8601), as timestamps of what their own clocks show: 09:00+02:00 is nine o'clock
trend      the same as days since 1970, for a trend; never inferred
whole      integers, for labels only
category   text
label      text, for labels only: fewer words mean that it is missing
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import numpy as np

KINDS = ("number", "comma", "truth", "time", "trend", "category")
WORDS = {
    "number": "not a number",
    "comma": "not a number with a decimal comma",
    "truth": "not true or false",
    "time": "not a date",
    "trend": "not a date",
    "whole": "not an integer",
}
NO_LABEL = ("", "na", "n/a", "#n/a", "nan", "null", "?")  # in upper or lower case
MISSING = (*NO_LABEL, "none", "nil", "-", "--")
NUMBER = r"^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)$"
COMMA = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)?(,\d+)?([eE][+-]?\d+)?$"
WHOLE = r"^[+-]?\d{1,18}$"
TRUTH = r"^([tT]rue|TRUE|[fF]alse|FALSE)$"
TIME = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?$"
OFFSET = r"(:\d\d(?:\.\d+)?) ?(?:Z|[+-]\d\d(?::?\d\d)?)$"  # the time zone after a time
A_DAY = 86_400_000_000  # microseconds
MOST = 0.9  # a column has a kind if this share of its sample has; the other rows are bad

Bad = np.ndarray[Any, Any]  # a boolean mask, one entry per row


def trimmed(text: Any, missing: tuple[str, ...] = MISSING) -> Any:
    """Strings without surrounding whitespace, null if they are one of the words for a missing value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(text)
    is_missing = pc.is_in(pc.utf8_lower(text), value_set=pa.array(missing))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), text)


PATTERNS = {"number": NUMBER, "comma": COMMA, "truth": TRUTH, "time": TIME, "whole": WHOLE}


def guess(text: Any, among: tuple[str, ...] = ("number", "truth", "time")) -> str:
    """The first of the kinds that most of the text has, else "category"; the first if all is missing."""
    if among[0] == "number" and _as_numbers(text) is not None:
        return "number"
    known = trimmed(text).drop_null()
    if len(known) == 0:
        return "comma" if among[0] == "comma" else "number"
    return next((kind for kind in among if _share(known, PATTERNS[kind]) >= MOST), "category")


def _as_numbers(text: Any) -> Any:
    """The text as numbers if all of it is numeric, else None. Faster than checking each value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(text, pa.float64())
    except pa.ArrowInvalid:
        return None


def guess_label(text: Any, among: tuple[str, ...] = ("whole", "number")) -> str:
    """The first of the kinds that all labels have, else "label"."""
    known = trimmed(text, NO_LABEL).drop_null()
    fitting = (kind for kind in among if len(known) and _share(known, PATTERNS[kind]) == 1.0)
    return next(fitting, "label")


def _share(known: Any, pattern: str) -> float:
    import pyarrow.compute as pc

    return pc.sum(pc.match_substring_regex(known, pattern)).as_py() / len(known)


def convert(text: Any, kind: str) -> tuple[Any, Bad]:
    """Convert text to values of the kind, null if missing; also returns a mask of values that do not fit (or inf)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind == "number" and (numbers := _as_numbers(text)) is not None:
        return finite(numbers)
    known = trimmed(text, NO_LABEL if kind == "label" else MISSING)
    if kind in ("category", "label"):
        values = pc.if_else(pc.is_valid(known), text, pa.scalar(None, pa.string()))
        return values, np.zeros(len(text), dtype=bool)
    if kind == "comma":
        fits = pc.fill_null(pc.match_substring_regex(known, COMMA), True)
        plain = pc.replace_substring(pc.replace_substring(known, ".", ""), ",", ".")
        values, bad = convert(pc.if_else(fits, plain, "no number"), "number")
        return values, bad
    if kind == "trend":
        values, bad = convert(text, "time")
        return as_days(values), bad
    try:
        if kind == "time" and pc.all(pc.match_substring_regex(known, TIME)).as_py() is not False:
            return _as_timestamps(known), np.zeros(len(text), dtype=bool)
        if kind == "number":
            return finite(pc.cast(known, pa.float64()))
        if kind == "whole" and pc.all(pc.match_substring_regex(known, WHOLE)).as_py() is not False:
            return pc.cast(known, pa.int64()), np.zeros(len(text), dtype=bool)
    except pa.ArrowInvalid:
        pass  # some value does not fit, or is written in an unusual way: check each value
    found = [None if value is None else _SINGLY[kind](value) for value in known.to_pylist()]
    bad = np.array([value is _UNFIT for value in found], dtype=bool)
    values = pa.array([None if value is _UNFIT else value for value in found], type_of(kind))
    if kind in ("whole", "time"):
        return values, bad
    values, infinite = finite(values)
    return values, bad | infinite


def type_of(kind: str) -> Any:
    """The PyArrow type of a converted column."""
    import pyarrow as pa

    if kind in ("category", "label", "id"):
        return pa.string()
    return {"whole": pa.int64(), "time": pa.timestamp("us")}.get(kind, pa.float64())


def as_days(times: Any) -> Any:
    """Timestamps in microseconds as days since 1970."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.divide(times.cast(pa.int64()).cast(pa.float64(), safe=False), float(A_DAY))


def _as_timestamps(known: Any) -> Any:
    """Dates and times as timestamps, without their time zones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.cast(pc.replace_substring_regex(known, OFFSET, r"\1"), pa.timestamp("us"))


def finite(values: Any) -> tuple[Any, Bad]:
    """Numbers with null for NaN, and a mask of the infinite ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if values.null_count == 0 and np.isfinite(values.to_numpy(zero_copy_only=False)).all():
        return values, np.zeros(len(values), dtype=bool)
    values = pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
    infinite = pc.fill_null(pc.is_inf(values), False)
    return values, np.asarray(infinite.to_numpy(zero_copy_only=False), dtype=bool)


class _Unfit:
    """Marks a value that does not fit its kind."""


_UNFIT = _Unfit()


def _number(value: str) -> Any:
    if value.lstrip("+-")[:3].lower() == "nan":  # as in the cast of a whole block
        return None
    return float(value) if re.match(NUMBER, value) else _UNFIT


def _whole(value: str) -> Any:
    return int(value) if re.match(WHOLE, value) else _UNFIT


def _truth(value: str) -> Any:
    return float(value[0] in "tT") if re.match(TRUTH, value) else _UNFIT


def _time(value: str) -> Any:
    try:
        when = datetime.fromisoformat(value) if re.match(TIME, value) else None
    except ValueError:
        when = None
    return _UNFIT if when is None else when.replace(tzinfo=None)


_SINGLY = {"number": _number, "whole": _whole, "truth": _truth, "time": _time}
