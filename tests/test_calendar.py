"""Calendar features of dates, compared with Python's own calendar."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regretless.core.rows.calendar import CALENDAR, calendar_features


def by_hand(when: datetime) -> list[float]:
    day = (when - datetime(when.year, when.month, when.day)) / timedelta(days=1)
    waves = [wave(2 * math.pi * times * day) for times in (1, 2) for wave in (math.sin, math.cos)]
    return [*waves, *(when.weekday() == d for d in range(7)), *(when.month == m for m in range(1, 13))]


@given(st.lists(st.datetimes(), min_size=1, max_size=5))
def test_the_features_are_those_of_the_calendar(times):
    expected = np.array([by_hand(when) for when in times])
    np.testing.assert_allclose(calendar_features(np.array(times, dtype="datetime64[us]")), expected, atol=1e-9)
    np.testing.assert_allclose(calendar_features(times), expected, atol=1e-9)
    assert expected.shape[1] == len(CALENDAR)


def test_every_kind_of_date_is_read_by_its_own_clock():
    pa = pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    nine = by_hand(datetime(2024, 3, 5, 9))
    there = datetime(2024, 3, 5, 9, tzinfo=timezone(timedelta(hours=-7)))
    zoned = pa.array([datetime(2024, 3, 5, 8), None], pa.timestamp("ms", "Europe/Paris"))  # written in UTC
    for values in (
        [there, None],
        [np.datetime64("2024-03-05T09"), np.datetime64("NaT")],
        [pd.Timestamp("2024-03-05 09:00", tz="Asia/Tokyo"), pd.NaT],
        zoned,
        pa.chunked_array([zoned.slice(0, 1), zoned.slice(1)]),
        np.array(["2024-03-05T09", "NaT"], dtype="datetime64[h]"),
    ):
        found = calendar_features(values)
        np.testing.assert_allclose(found[0], nine, atol=1e-12)
        assert np.isnan(found[1]).all()
    midnight = by_hand(datetime(2024, 3, 5))
    for days in ([date(2024, 3, 5)], pa.array([date(2024, 3, 5)]), np.array(["2024-03-05"], dtype="datetime64[D]")):
        np.testing.assert_allclose(calendar_features(days)[0], midnight, atol=1e-12)
    assert calendar_features([]).shape == (0, len(CALENDAR))
