"""Exponentials in vector instructions, against those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from regretless.core.numbers.exponentials import LEAST, exponentiate


@pytest.mark.parametrize("n", [1, 7, 1000])
def test_they_are_exact_to_the_last_digit(n: int) -> None:
    rng = np.random.default_rng(n)
    for largest in (1e-300, 1e-3, 1.0, 700.0):
        z = rng.uniform(-min(largest, -LEAST), largest, size=n)
        found = z.copy()
        exponentiate(found)
        np.testing.assert_allclose(found, np.exp(z), rtol=3e-16, atol=0.0)


def test_ends() -> None:
    z = np.array([0.0, -0.0, LEAST, np.nextafter(LEAST, -np.inf), -1e300, -np.inf, 700.0])
    exponentiate(z)
    np.testing.assert_allclose(z[[0, 1, 2, 6]], [1.0, 1.0, np.exp(LEAST), np.exp(700.0)], rtol=3e-16)
    assert z[3:6].tolist() == [0.0, 0.0, 0.0]
