"""Streams by name, and the race over them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from noregret.race import entrants, race
from noregret.streams import BUNDLED
from noregret.streams import stream as named


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


def test_race_reports_what_the_learners_say():
    stream = named("breast-cancer", 100)
    field = entrants(stream)
    told = []
    results = race(stream, field, lambda name, rows: told.append((name, rows)))
    assert {r.learner for r in results} == set(field) == {name for name, _ in told}
    assert sum(rows for _, rows in told) == 100 * len(field)
    losses = [r.log_loss for r in results if r.log_loss is not None]
    assert losses == sorted(losses)
    assert results[0].log_loss < math.log(2)
    proved = next(r for r in results if r.certificate is not None)
    assert proved.certificate == pytest.approx(field[proved.learner].regret_certificate())
    assert all((r.certificate is None) == (r.learner == "ONS, gamma = 1/4") for r in results)


def test_digits_field_leaves_out_what_would_take_minutes():
    assert "ONS, gamma = 1/4" not in entrants(named("digits", 20))
    assert "AIOLI" not in entrants(named("digits", 20))
