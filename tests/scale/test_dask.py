"""Learners on Dask: two workers of a local cluster. Skipped without dask.distributed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import joblib
import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("distributed", reason="Dask is not installed: pip install 'regretless[dask]'")
frames = pytest.importorskip("dask.dataframe")

from dask.distributed import Client, LocalCluster  # noqa: E402

from regretless import AIOLI, OGD, fit_sharded, merge  # noqa: E402
from regretless.evaluate.race import race  # noqa: E402
from regretless.scale import dask  # noqa: E402

FEATURES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def client():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as found:
        yield found


def rows_of(n, seed=0):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(rng.normal(size=(n, 3)), columns=FEATURES)
    rows["y"] = np.where(rng.random(n) < 1 / (1 + np.exp(-2 * rows.a)), "yes", "no")
    return rows


def test_partitions_are_learned_and_merged(client, capsys):
    rows = rows_of(900)
    settings = {"features": FEATURES, "target": "y", "learner": "AIOLI(radius=3)", "classes": ["no", "yes"]}
    parts = frames.from_pandas(rows, npartitions=3)
    found = dask.fit(parts, **settings)
    assert capsys.readouterr().out.startswith("900 rows in 3 shards: regret <= ")
    bounds = np.cumsum([0, *parts.map_partitions(len).compute()])
    separate = [
        AIOLI(radius=3).begin(FEATURES, ["no", "yes"]).partial_fit(rows[FEATURES].iloc[i:j], rows.y.iloc[i:j])
        for i, j in pairwise(bounds)
    ]
    assert found.to_bytes() == merge(separate).to_bytes()
    often = dask.fit(parts, **settings, sync_every=30)
    assert "synchronised every 30 rows: regret <= " in capsys.readouterr().out
    assert often.regret_certificate() < found.regret_certificate()
    assert often.state_.tally[0] == 900


def test_one_partition_is_one_pass(client):
    rows = rows_of(200)
    parts = frames.from_pandas(rows, npartitions=1)
    one = AIOLI().begin(FEATURES, ["no", "yes"]).partial_fit(rows[FEATURES], rows.y)
    for every in (None, 60):
        found = dask.fit(parts, features=FEATURES, target="y", learner=AIOLI(), classes=["no", "yes"], sync_every=every)
        assert found.to_bytes() == one.to_bytes()


def test_fit_sharded_on_dask_equals_threads(client):
    rows = rows_of(600)
    X, y = rows[FEATURES].to_numpy(), rows.y.to_numpy()
    here = fit_sharded(AIOLI(), X, y, 4, sync_every=40)
    with joblib.parallel_config(backend="dask"):
        there = fit_sharded(AIOLI(), X, y, 4, sync_every=40, n_jobs=2)
    assert here.to_bytes() == there.to_bytes()


def test_a_race_on_dask_equals_the_serial_one(client):
    settings = {"orders": 2, "rows": 60}
    grid = {"one": AIOLI(radius=1.0), "three": AIOLI(radius=3.0), "OGD": OGD()}
    serial = race("breast-cancer", grid, **settings)
    with joblib.parallel_config(backend="dask"):
        spread = race("breast-cancer", grid, **settings, jobs=2)
    timeless = [[replace(line, microseconds=0.0) for line in each.lines()] for each in (serial, spread)]
    assert timeless[0] == timeless[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": ["a", "nothing"]}, "there is no column 'nothing'"),
        ({"classes": None}, "AIOLI is a classifier: declare all labels"),
        ({"learner": "OGD"}, "OGD cannot be merged"),
        ({"learner": 5}, "learner=5 is not a learner"),
        ({"sync_every": 0}, "sync_every"),
        ({"rule": "best"}, "rule='best' is unknown"),
    ],
)
def test_bad_settings_are_refused(client, change, message):
    parts = frames.from_pandas(rows_of(20), npartitions=2)
    settings = {"features": FEATURES, "target": "y", "learner": "AIOLI", "classes": ["no", "yes"], **change}
    with pytest.raises(ValueError, match=message):
        dask.fit(parts, **settings)
    with pytest.raises(ValueError, match="rows is a DataFrame: pass a Dask DataFrame"):
        dask.fit(rows_of(20), features=FEATURES, target="y", learner="AIOLI", classes=["no", "yes"])
