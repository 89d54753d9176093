"""ONS's projection: by products with P as by its eigenvectors, and no slow trap."""

from __future__ import annotations

import time

import numpy as np
import pytest

from noregret import GAF, ONS
from noregret.second_order.projection import project, project_by_eigenvectors, project_by_steps


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


def seconds(learner, X, y):
    """The least of three runs over the same rows."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        learner.fit(X, y)
        times.append(time.perf_counter() - start)
    return min(times)


def test_rows_that_project_are_not_a_thousand_times_slower():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 150)) / np.sqrt(150)
    y = np.arange(300) % 2
    never = seconds(ONS(radius=1e6, gamma=0.25, epsilon=1.0), X, y)
    assert seconds(ONS(radius=0.5), X, y) < 20 * never  # 5; by eigenvectors 70 and more


def test_three_classes_with_large_features_are_not_a_hundred_times_slower():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)) / np.sqrt(5)
    y = np.arange(300) % 3
    assert seconds(GAF(), 100 * X, y) < 30 * seconds(GAF(), X, y)  # 10; on a grid 180 and more
