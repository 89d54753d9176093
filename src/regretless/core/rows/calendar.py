"""Calendar features of dates and times: the hour of the day as waves, the day of the week and the month as 0 and 1.

A date as a number of seconds tells a linear model one thing only, a trend, which goes on after the last row learned. So
do slow waves: within a few weeks, a sine over the year is a trend as well. A day of the week or a month that was never
learned has no weight.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from regretless.core.rows.inputs import is_missing
from regretless.core.types import Array

WAVES = ("hour_sin", "hour_cos", "half_day_sin", "half_day_cos")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = tuple(f"month_{m}" for m in range(1, 13))
CALENDAR = WAVES + DAYS + MONTHS
UNIT = "datetime64[us]"
A_DAY = np.timedelta64(1, "D")
MONDAY = np.datetime64("1970-01-05", "D")


def calendar_features(values: Any) -> Array:
    """One row of features (named in `CALENDAR`) per date or time; NaN where it is missing.

    The hour of the day includes minutes and seconds; a date without a time is midnight.

    Parameters
    ----------
    values : datetime64 array, PyArrow timestamps or dates, or a sequence of `datetime`, `date`, datetime64 or None. The
        clock that counts is that of the value: 09:00+02:00 is nine o'clock.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless.core.rows.calendar import CALENDAR, calendar_features
    >>> found = calendar_features(np.array(["2024-01-01T06:00", "NaT"], dtype="datetime64[s]")).round(3)
    >>> [name for name, value in zip(CALENDAR, found[0]) if value == 1]
    ['hour_sin', 'monday', 'month_1']
    """
    times = wall_times(values)
    days = times.astype("datetime64[D]")
    missing = np.isnat(times)
    there = np.flatnonzero(~missing)
    found = np.zeros((times.size, len(CALENDAR)))
    found[missing] = np.nan
    turns = 2 * np.pi * ((times - days)[there] / A_DAY)
    for i, wave in enumerate((np.sin(turns), np.cos(turns), np.sin(2 * turns), np.cos(2 * turns))):
        found[there, i] = wave
    weekday = (days[there] - MONDAY).astype(np.int64) % 7
    month = days[there].astype("datetime64[M]").astype(np.int64) % 12
    found[there, len(WAVES) + weekday] = 1.0
    found[there, len(WAVES) + len(DAYS) + month] = 1.0
    return found


def calendar_names(name: Any) -> list[str]:
    """The names of the calendar features of a column.

    >>> calendar_names("day")[:2]
    ['day, hour sin', 'day, hour cos']
    """
    return [f"{name}, {part.replace('_', ' ')}" for part in CALENDAR]


def is_date(value: Any) -> bool:
    """Whether a value is a date or a time."""
    return isinstance(value, datetime.date | np.datetime64)


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
