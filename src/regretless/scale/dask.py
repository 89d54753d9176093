"""One learner on Dask: `fit`. It needs `pip install 'regretless[dask]'`.

`regretless.fit_sharded` runs on Dask too, for arrays of this process: under `joblib.parallel_config(backend="dask")`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regretless.core.learner import OnlineLearner
from regretless.scale.shards import fit_rounds, learn_part
from regretless.scale.starting import start_of


def fit(
    rows: Any,
    *,
    features: Sequence[str],
    target: str,
    learner: OnlineLearner | str,
    classes: Sequence[Any] | None = None,
    sync_every: int | None = None,
    rule: str = "balanced",
) -> Any:
    """One learner of all rows: each partition is learned where it lies, and the states are merged. Prints the price.

    The certificate of the result covers all rows, and exceeds that of one pass (docs/past-one-machine.md has figures).
    It runs on the current Dask client, or on threads if there is none.

    Parameters
    ----------
    rows : a Dask DataFrame. Each partition is a shard, learned in its order; `rows.persist()` keeps the partitions on
        the workers, which pays with `sync_every`.
    features, target : the columns.
    learner : a learner that can be merged, or its text: `AIOLI`, `FOLKLORE`, `GAF` or `VovkAzouryWarmuth`.
    classes : the labels, for a classifier.
    sync_every : merge after this many rows of each partition, and continue from the merged state.
    rule : "balanced" or "sum", as in `merge`.
    """
    import dask

    start = start_of(learner, features, classes)
    names = start.feature_names_in_.tolist()
    if not hasattr(rows, "to_delayed") or not hasattr(rows, "columns"):
        raise ValueError(f"rows is a {type(rows).__name__}: pass a Dask DataFrame, such as dask.dataframe.from_pandas.")
    missing = [name for name in (*names, target) if name not in rows.columns]
    if missing:
        raise ValueError(f"there is no column {missing[0]!r}: the columns are {', '.join(map(str, rows.columns))}.")
    parts = rows[[*names, target]].to_delayed()

    def learn(state: bytes, first: int, stop: int | None) -> list[bytes]:
        learned = dask.delayed(_learned)
        found = dask.compute(*(learned(state, part, names, target, first, stop) for part in parts))
        return [each for each in found if each is not None]

    return fit_rounds(start, learn, sync_every, rule)


def _learned(state: bytes, frame: Any, features: list[str], target: str, first: int, stop: int | None) -> bytes | None:
    """The state after these rows of a partition, or None if it has none."""
    block = frame.iloc[first:stop]
    return learn_part(state, block[features], block[target].to_numpy()) if len(block) else None
