"""Calendar features of dates and times: the position in the day, the week and the year, each as a sine and a cosine.

A date as a number of seconds tells a linear model little: only a trend. Its position in a period does, and a sine with
a cosine makes the end of a period a neighbour of its beginning.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from regretless.core.inputs import is_missing
from regretless.core.types import Array

CALENDAR = ("hour_sin", "hour_cos", "weekday_sin", "weekday_cos", "year_sin", "year_cos")
UNIT = "datetime64[us]"
A_DAY = np.timedelta64(1, "D")
MONDAY = np.datetime64("1970-01-05", "D")


def calendar_features(values: Any) -> Array:
    """One row of features (named in `CALENDAR`) per date or time; NaN where it is missing.

    The hour of the day includes minutes and seconds; the day of the week is a whole number; the position in the year
    is that of the day. A date without a time is midnight.

    Parameters
    ----------
    values : datetime64 array, PyArrow timestamps or dates, or a sequence of `datetime`, `date`, datetime64 or None. The
        clock that counts is that of the value: 09:00+02:00 is nine o'clock.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless.core.calendar import calendar_features
    >>> calendar_features(np.array(["2024-01-01T06:00", "NaT"], dtype="datetime64[s]")).round(3) + 0.0
    array([[ 1.,  0.,  0.,  1.,  0.,  1.],
           [nan, nan, nan, nan, nan, nan]])
    """
    times = wall_times(values)
    days, years = times.astype("datetime64[D]"), times.astype("datetime64[Y]")
    starts = years.astype("datetime64[D]")
    length = (years + np.timedelta64(1, "Y")).astype("datetime64[D]") - starts
    missing = np.isnat(times)
    found = np.empty((times.size, len(CALENDAR)))
    with np.errstate(invalid="ignore"):
        parts = ((times - days) / A_DAY, (days - MONDAY) / A_DAY % 7 / 7, (days - starts) / length)
    for i, part in enumerate(parts):
        found[:, 2 * i], found[:, 2 * i + 1] = np.sin(2 * np.pi * part), np.cos(2 * np.pi * part)
    found[missing] = np.nan
    return found


def wall_times(values: Any) -> np.ndarray[Any, np.dtype[np.datetime64]]:
    """Dates and times as a datetime64 array of what their own clocks show; NaT where one is missing."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        return values.astype(UNIT)
    if hasattr(values, "type") and hasattr(values, "null_count"):  # PyArrow
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_timestamp(values.type) and values.type.tz is not None:
            values = pc.local_timestamp(values)
        found: np.ndarray[Any, np.dtype[np.datetime64]] = values.to_numpy(zero_copy_only=False).astype(UNIT)
        return found
    return np.array([_wall_time(value) for value in values], dtype=UNIT)


def _wall_time(value: Any) -> Any:
    if is_missing(value):
        return "NaT"
    return value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value
