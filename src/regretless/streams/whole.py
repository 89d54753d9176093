"""Read a whole file as a numeric data set, for a race, which needs several passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from regretless.streams.preparation import MOST_LEVELS, Preparation
from regretless.streams.reading import read
from regretless.streams.types import Dataset

MOST_CLASSES = 256  # with more classes, the target is probably a quantity
MOST_NUMBERS = 100_000_000  # rows times columns


def read_whole(path: str | Path, target: str = "label", format: str | None = None, **options: Any) -> Dataset:
    """All rows of a file that `read` can read, as numbers; `options` are those of `read`.

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
    blocks = list(read(str(path), target, format=format, **options))
    if not blocks:
        raise ValueError(f"{path} has no rows.")
    y = np.concatenate([np.asarray(block.y) for block in blocks])
    classes = np.unique(y).tolist()
    if not 2 <= len(classes) <= MOST_CLASSES:
        raise ValueError(
            f"{path}: the target has {len(classes)} different values; a race needs from 2 to "
            f"{MOST_CLASSES} classes. Choose another target column."
        )
    table = _joined([block.X for block in blocks])
    _check_size(len(y), _width(table), path)
    preparation, X = Preparation.of(table)
    about = f"{X.shape[0]} rows, {X.shape[1]} columns, {len(classes)} classes; {path.name}"
    return Dataset(path.name.split(".")[0], X, y, classes, about, preparation)


def _joined(parts: list[Any]) -> Any:
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts).tocsc()
    import pyarrow as pa

    return pa.concat_tables(parts)


def _width(table: Any) -> int:
    """The most columns of numbers that these can become."""
    if sparse.issparse(table):
        return len(np.unique(table.nonzero()[1]))
    import pyarrow as pa
    import pyarrow.compute as pc

    words = [name for name in table.column_names if pa.types.is_string(table[name].type)]
    levels = sum(min(pc.count_distinct(table[name]).as_py(), MOST_LEVELS) for name in words)
    return int(len(table.column_names) - len(words) + levels)


def _check_size(rows: int, columns: int, path: Path) -> None:
    if rows * columns > MOST_NUMBERS:
        raise ValueError(
            f"{path} has {rows} rows and {columns} columns, too many for memory: race on a part of it, or use "
            "`regretless run`, which reads it in blocks."
        )
