"""Streams by name, prepared for a race."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from regretless.streams import synthetic
from regretless.streams.datasets import DATASETS, SKLEARN, load_dataset
from regretless.streams.preparation import standardised
from regretless.streams.types import Dataset, Stream

DRAWN: dict[str, Callable[..., Stream]] = {
    "adversarial": synthetic.adversarial,
    "logistic": synthetic.logistic,
    "softmax": synthetic.softmax,
    "drifting": synthetic.drifting,
    "separable": synthetic.separable,
    "label-noise": synthetic.label_noise,
    "sparse-signal": synthetic.sparse_signal,
}
BUNDLED = (*SKLEARN, *DRAWN)  # need no file
NAMES = (*BUNDLED, *DATASETS)


def stream(name: str, rows: int | None = None, seed: int | None = 0) -> Stream:
    """A stream by name (see `NAMES`), with at most `rows` rows.

    Data sets are shuffled by `seed` (None keeps their order); their columns are standardised, a constant column is
    appended, and rows are scaled to norm about 1. Synthetic streams are generated from `seed`, with 1000 rows by
    default.

    >>> some = stream("iris", rows=100)
    >>> some.X.shape, some.classes
    ((100, 5), [0, 1, 2])
    """
    if rows is not None and rows < 1:
        raise ValueError(f"rows={rows}: a stream needs at least 1 row.")
    if name in DRAWN:
        return DRAWN[name](1000 if rows is None else rows, seed=seed or 0)
    if name not in NAMES:
        raise ValueError(f"unknown stream {name!r}: choose one of {', '.join(NAMES)}.")
    return prepared(load_dataset(name), rows, seed)


def prepared(data: Dataset, rows: int | None = None, seed: int | None = 0) -> Stream:
    """A stream from a data set: shuffled by `seed`, columns standardised, a constant appended, rows scaled.

    None as the seed means the order of the file.
    """
    from sklearn.preprocessing import StandardScaler

    X = data.X.toarray() if sparse.issparse(data.X) else data.X
    n, d = X.shape
    order = row_order(n, rows, seed)
    scaler = StandardScaler().fit(X)  # all rows, also of a shorter stream
    return Stream(
        name=data.name,
        X=standardised(X[order], scaler.mean_, scaler.scale_),
        y=data.y[order],
        classes=data.classes,
        radius=10.0,
        about=f"{len(order)} rows, {d + 1} features, {len(data.classes)} classes; columns standardised, "
        f"rows of norm about 1, {'the order of the file' if seed is None else f'order by seed {seed}'}",
    )


def row_order(n: int, rows: int | None, seed: int | None) -> np.ndarray:
    """The first `rows` of n rows in the random order of a seed, or in their own order (None)."""
    return (np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n))[:rows]
