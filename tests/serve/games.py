"""Rows, labels and services that the tests share."""

from __future__ import annotations

import math

import numpy as np

from regretless.serve import ModelSpec, Service

COLUMNS, CLASSES = ["a", "b", "c"], ["no", "yes"]
LOW = "OnlineLogisticRegression(effort='low')"


def rows(n, seed=0):
    """Dictionaries and labels: text, missing values and numbers."""
    rng = np.random.default_rng(seed)
    found = []
    for a, b, u in zip(rng.normal(size=n).round(3), rng.integers(4, size=n), rng.random(n), strict=True):
        x = {"a": float(a), "b": f"k{b}", "c": None if u < 0.2 else float(u)}
        found.append((x, "yes" if u < 1.0 / (1.0 + math.exp(-2.0 * a)) else "no"))
    return found


def service(log, recipe=LOW, features=COLUMNS, classes=CLASSES, **options):
    found = Service(log, **options)
    found.add_model(ModelSpec.of(recipe, features, classes))
    return found
