"""CSR matrices as users give them: a damaged one, or one that stores an entry twice, is refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from regretless.core.errors import BadRow
from regretless.core.kernels.jit import kernel
from regretless.core.rows.inputs import UNLEARNED
from regretless.learners.logistic.hashing import Ids

MOST_COLUMNS = 1 << 60  # ids of missing values and pairs are above


def check_matrix(X: Any, declared: int | None) -> None:
    """Refuse a matrix with other columns than declared, and one that is damaged: compiled code trusts its indices."""
    n_columns = X.shape[1]
    if n_columns > MOST_COLUMNS:
        raise BadRow(f"the matrix has {n_columns:,} columns; the limit is 2^60: hash them to fewer. {UNLEARNED}")
    if declared is not None and n_columns != declared:
        where = np.flatnonzero(X.indices >= declared)[:1].tolist()
        at = "".join(f"row {np.searchsorted(X.indptr, i, side='right') - 1}, column {X.indices[i]}: " for i in where)
        raise BadRow(
            f"{at}X has {n_columns} features, but {declared} were declared in the first call. Give all blocks the same "
            f"shape, X.resize(X.shape[0], {declared}), or learn dictionaries, whose names need not be declared. "
            f"{UNLEARNED}"
        )
    t, i = first_damaged(X.indptr, X.indices, min(X.indices.size, X.data.size), n_columns)
    if t == X.shape[0]:
        return
    if i < 0:
        raise BadRow(f"row {t}: entries are missing. The matrix is damaged: rebuild it. {UNLEARNED}")
    column = X.indices[i]
    if not 0 <= column < n_columns:
        raise BadRow(
            f"row {t}: column {column} among {n_columns} columns. The matrix is damaged: rebuild it. {UNLEARNED}"
        )
    raise BadRow(f"row {t}: column {column} occurs twice. Call X.sum_duplicates() first. {UNLEARNED}")


@kernel
def first_damaged(indptr: Ids, indices: Ids, stored: int, n_columns: int) -> tuple[int, int]:
    """The first row with an entry or a column that does not exist or occurs twice, and the entry (-1: beyond them)."""
    n = indptr.size - 1
    for t in range(n):
        first, last = indptr[t], indptr[t + 1]
        if first < 0 or last < first or last > stored:
            return t, -1
        increasing = True
        for i in range(first, last):
            if indices[i] < 0 or indices[i] >= n_columns:
                return t, i
            if i > first and indices[i] <= indices[i - 1]:
                increasing = False
        if not increasing:
            order = np.argsort(indices[first:last])
            for j in range(1, last - first):
                if indices[first + order[j]] == indices[first + order[j - 1]]:
                    return t, first + order[j]
    return n, 0
