"""Learners on Ray, through joblib. Skipped without Ray; what race needs of such an engine is tested without it."""

from __future__ import annotations

from dataclasses import replace

import joblib
import numpy as np
import pytest
from joblib._parallel_backends import ThreadingBackend

from regretless import AIOLI, fit_sharded
from regretless.evaluate.race import race


class AllAtOnce(ThreadingBackend):
    """An engine that, as Ray's, returns all results together."""

    supports_return_generator = False


def timeless(found):
    return [replace(line, microseconds=0.0) for line in found.lines()]


def test_a_race_on_an_engine_that_returns_all_results_together():
    settings = {"learners": ["AIOLI", "OGD"], "orders": 2, "rows": 40}
    serial = race("breast-cancer", **settings)
    joblib.register_parallel_backend("all at once", AllAtOnce)
    told = []
    with joblib.parallel_config(backend="all at once"):
        spread = race("breast-cancer", **settings, jobs=2, told=lambda *progress: told.append(progress))
    assert timeless(spread) == timeless(serial)
    assert [done for _, done, _ in told] == [1, 2, 3, 4]


def test_shards_and_races_on_ray():
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'regretless[ray]'")
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False)
    try:
        register_ray()
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(600, 3)), rng.integers(0, 2, 600)
        here, serial = fit_sharded(AIOLI(), X, y, 4), race("breast-cancer", ["AIOLI"], orders=2, rows=40)
        with joblib.parallel_config(backend="ray"):
            assert fit_sharded(AIOLI(), X, y, 4, n_jobs=2).to_bytes() == here.to_bytes()
            assert timeless(race("breast-cancer", ["AIOLI"], orders=2, rows=40, jobs=2)) == timeless(serial)
    finally:
        ray.shutdown()
