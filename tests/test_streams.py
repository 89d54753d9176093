"""Streams by name."""

from __future__ import annotations

import math

import numpy as np
import pytest

from regretless.streams import BUNDLED
from regretless.streams import stream as named


@pytest.mark.parametrize("name", BUNDLED)
def test_streams_are_reproducible_and_scaled(name):
    stream, again, other = named(name, 120), named(name, 120), named(name, 120, seed=1)
    assert stream.X.shape[0] == len(stream.y) == 120
    assert np.array_equal(stream.X, again.X)
    assert not np.array_equal(stream.X, other.X)
    assert set(np.unique(stream.y)) <= set(stream.classes)
    assert np.linalg.norm(stream.X, axis=1).max() < 5


def test_the_adversarial_stream_is_that_of_the_text():
    n = 200_000
    for seed, chi in ((0, 1), (1, -1)):
        stream = named("adversarial", n, seed)
        B = math.log(n)
        assert stream.radius == B
        assert np.mean(stream.y == 1) == pytest.approx(0.1 / (2 * B) + chi * 0.01 / B, rel=0.05)
        assert set(np.unique(stream.X)) == {0.1 / B, 1 - 0.1 / (2 * B)}


@pytest.mark.parametrize("bad", [("titanic", 10), ("iris", 0)])
def test_bad_requests_are_refused(bad):
    with pytest.raises(ValueError, match=r"choose one of|at least 1"):
        named(*bad)
