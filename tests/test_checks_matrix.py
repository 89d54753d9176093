"""The matrix is complete, and every learner agrees with its definition (tests/reference)."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

from learners import MATRIX, Entry, learners_that, play
from regretless.evaluate.registry import public_learners


def test_every_public_learner_is_in_the_matrix() -> None:
    missing = public_learners().keys() - {type(entry.learner).__name__ for entry in MATRIX}
    assert not missing, f"add an entry to MATRIX in tests/learners.py for {sorted(missing)}"


@pytest.mark.parametrize("name", public_learners())
def test_every_public_learner_has_a_reference(name: str) -> None:
    entries = [entry for entry in MATRIX if type(entry.learner).__name__ == name]
    assert any(entry.reference for entry in entries), "give an entry its definition: tests/definitions.py"
    for entry in entries:
        if isinstance(entry.reference, str):
            assert name in (Path(__file__).parent / entry.reference).read_text()


@pytest.mark.parametrize("name", public_learners())
def test_every_value_of_a_precision_is_in_the_matrix(name: str) -> None:
    learners = [entry.learner for entry in MATRIX if type(entry.learner).__name__ == name]
    if "precision" in inspect.signature(type(learners[0])).parameters:
        assert {learner.precision for learner in learners} == {"double", "single"}


@learners_that(lambda entry: callable(entry.reference))
@pytest.mark.parametrize("soft", [False, True])
def test_forecasts_are_those_of_the_reference(entry: Entry, soft: bool) -> None:
    """Rows of weight 0, 1/2, 1 and 5/2, hard and soft labels."""
    if soft and not entry.classifies:
        pytest.skip("numbers have no distributions")
    stream = entry.stream(n=12, d=3)
    rng = np.random.default_rng(6)
    weight = rng.choice([0.0, 0.5, 1.0, 2.5], size=12)
    Y = stream.y * 1.0
    if entry.classifies:
        Y = rng.dirichlet(np.full(entry.n_classes, 0.3), size=12) if soft else np.eye(entry.n_classes)[stream.y]
    expected = entry.reference(entry.learner, stream.X, Y, weight)
    learner = entry.new()
    forecasts = learner.predict_then_learn(stream.X, Y if soft else stream.y, sample_weight=weight, **entry.first)
    np.testing.assert_allclose(forecasts, expected, rtol=1e-9, atol=1e-8 if entry.rounding > 1e-12 else 1e-9)
    assert np.ptp(expected) > 1e-3  # the stream moved it
    if not soft:
        assert np.array_equal(play(entry, stream, sample_weight=weight)[1], forecasts)
