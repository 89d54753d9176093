"""Read a whole file as a numeric data set, for a race, which needs several passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from regretless.core.calendar import calendar_features
from regretless.core.types import Array
from regretless.streams.reading import read
from regretless.streams.types import Dataset

MOST_CLASSES = 256  # with more classes, the target is probably a quantity
MOST_LEVELS = 100  # columns per category: its most frequent values
MOST_NUMBERS = 100_000_000  # rows times columns


def read_whole(path: str | Path, target: str = "label", format: str | None = None) -> Dataset:
    """All rows of a file that `read` can read, as numbers.

    Missing numbers become the mean of the column. A date becomes its calendar features (`core.calendar`). A category
    becomes one column of zeros and ones for each of its 100 most frequent values; a missing category has only zeros.
    Empty columns of sparse files are dropped.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "fruit.csv"
    ...     _ = file.write_text("size,colour,kind\\n1,red,a\\n?,blue,b\\n3,red,b\\n")
    ...     data = read_whole(file, "kind")
    >>> data.X.tolist(), data.classes
    ([[1.0, 0.0, 1.0], [2.0, 1.0, 0.0], [3.0, 0.0, 1.0]], ['a', 'b'])
    """
    path = Path(path)
    blocks = list(read(str(path), target, format=format))
    if not blocks:
        raise ValueError(f"{path} has no rows.")
    y = np.concatenate([np.asarray(block.y) for block in blocks])
    classes = np.unique(y).tolist()
    if not 2 <= len(classes) <= MOST_CLASSES:
        raise ValueError(
            f"{path}: the target has {len(classes)} different values; a race needs from 2 to "
            f"{MOST_CLASSES} classes. Choose another target column."
        )
    X = _of_sparse(blocks, path) if sparse.issparse(blocks[0].X) else _of_tables(blocks, path)
    about = f"{X.shape[0]} rows, {X.shape[1]} columns, {len(classes)} classes; {path.name}"
    return Dataset(path.name.split(".")[0], X, y, classes, about)


def _of_sparse(blocks: list[Any], path: Path) -> Array:
    X = sparse.vstack([block.X for block in blocks]).tocsc()
    X = X[:, np.unique(X.nonzero()[1])]
    _check_size(X.shape[0], X.shape[1], path)
    filled: Array = X.toarray()
    return filled


def _of_tables(blocks: list[Any], path: Path) -> Array:
    import pyarrow as pa

    table = pa.concat_tables([block.X for block in blocks])
    columns: list[Array] = []
    for name in table.column_names:
        values = table[name]
        if pa.types.is_floating(values.type):
            columns.append(_numbers(np.array(values.to_numpy(), dtype=np.float64))[:, None])
        elif pa.types.is_timestamp(values.type):
            columns += [_numbers(feature)[:, None] for feature in calendar_features(values).T]
        else:
            columns.append(_one_hot(np.array(values.to_pylist(), dtype=object)))
        _check_size(table.num_rows, sum(each.shape[1] for each in columns), path)
    return np.hstack(columns)


def _numbers(column: Array) -> Array:
    missing = np.isnan(column)
    if missing.any():
        column[missing] = 0.0 if missing.all() else column[~missing].mean()
    return column


def _one_hot(column: Any) -> Array:
    there = np.array([value is not None for value in column], dtype=bool)
    levels, counts = np.unique(column[there].astype(str), return_counts=True)
    commonest = np.sort(levels[np.argsort(-counts, kind="stable")[:MOST_LEVELS]])
    return np.where(there[:, None], column.astype(str)[:, None] == commonest, False).astype(np.float64)


def _check_size(rows: int, columns: int, path: Path) -> None:
    if rows * columns > MOST_NUMBERS:
        raise ValueError(
            f"{path} has {rows} rows and {columns} columns, too many for memory: race on a part of it, or use "
            "`regretless run`, which reads it in blocks."
        )
