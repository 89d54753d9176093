"""ONS's projection: by products with P as by its eigenvectors."""

from __future__ import annotations

import numpy as np
import pytest

from regretless.learners.second_order.projection import project, project_by_eigenvectors, project_by_steps


def a_projection(rng, d):
    """P after some rows, a point and a radius it is outside of."""
    gradients = rng.normal(size=(rng.integers(0, 3 * d + 1), d)) * 10 ** rng.uniform(-1, 0.5)
    P = np.linalg.inv(10 ** rng.uniform(-2, 2) * np.eye(d) + gradients.T @ gradients)
    w = rng.normal(size=d)
    return (P + P.T) / 2, w, np.linalg.norm(w) * rng.choice([0.999, 0.9, 0.5, 0.1])


@pytest.mark.parametrize("d", [1, 2, 3, 7, 30, 90])
def test_products_and_eigenvectors_agree(d):
    rng = np.random.default_rng(d)
    by_steps = 0
    for _ in range(20):
        P, w, radius = a_projection(rng, d)
        expected, found, tried = w.copy(), w.copy(), w.copy()
        project_by_eigenvectors(P, expected, radius)
        project(P, found, radius)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * radius)
        if project_by_steps(P, tried, radius):
            by_steps += 1
        else:
            np.testing.assert_array_equal(tried, w)
    assert by_steps > 10
