"""svmlight and LIBSVM text: `label index:value index:value ... # comment`."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from scipy import sparse

from regretless.streams.sparse_lines import Parsed, SparseFormat, rows_not_finite


class Svmlight(SparseFormat):
    """Parsed by scikit-learn; if it rejects a block, the block is halved until the bad lines are found.

    The first index (0 or 1) and the number of columns are taken from the first rows, unless they are given.
    """

    comment = b"#"

    def __init__(self, columns: int | None, base: int | None, labelled: bool) -> None:
        self.columns = columns
        self.told = columns is not None
        self.base = base
        self.guessing = base is None
        self.largest = -1
        self.labelled = labelled

    def parse(self, lines: list[bytes]) -> Parsed:
        """Columns are the indices as written."""
        if not self.labelled:
            lines = [line if b":" not in (line.split() or [b""])[0] else b"0 " + line for line in lines]
        why: dict[int, str] = {}
        X, y = _parse(lines, 0, why)
        for i in rows_not_finite(X):
            why.setdefault(i, "it has a value that is not finite.")
        return Parsed(X, y, None, why)

    def settle(self, X: Any) -> None:
        """Start at index 0 if it occurs; the largest index gives the number of columns."""
        if self.guessing:
            self.base = 0 if self.base == 0 or (X.nnz and X.indices.min() == 0) else 1
        self.largest = max(self.largest, int(X.indices.max()) if X.nnz else -1)
        if not self.told:
            self.columns = max(1, self.largest + 1 - (self.base or 0))

    def fit(self, X: Any, why: dict[int, str]) -> Any:
        """Shift the indices to start at 0, and refuse indices beyond the last column."""
        base, columns = self.base or 0, self.columns or 1
        wrong = np.flatnonzero((X.indices < base) | (X.indices >= columns + base))
        for at in wrong:
            i = int(np.searchsorted(X.indptr, at, side="right") - 1)
            index = X.indices[at]
            if index < base:
                reason = f"it has index {index}, but indices start at 1; if they start at 0, pass format='svmlight0'."
            else:
                told = "columns" if self.told else "the first rows"
                reason = f"it has index {index}, but {told} end at {columns - 1 + base}: pass a larger columns=."
            why.setdefault(i, reason)
        if wrong.size:
            keep = np.ones(X.shape[0])
            keep[[*why]] = 0.0
            X = sparse.csr_matrix(sparse.diags_array(keep) @ X)
            X.eliminate_zeros()
        return sparse.csr_matrix((X.data, X.indices - base, X.indptr), shape=(X.shape[0], columns))


def _parse(lines: list[bytes], at: int, why: dict[int, str]) -> tuple[Any, Any]:
    from sklearn.datasets import load_svmlight_file

    if not lines:
        return sparse.csr_matrix((0, 1)), np.zeros(0)
    try:
        X, y = load_svmlight_file(BytesIO(b"\n".join(lines)), zero_based=True)
        if len(y) == len(lines):
            return X, y
        error = "it is not one row"
    except (ValueError, OverflowError) as refusal:
        error = str(refusal)
    if len(lines) == 1:
        why[at] = f"it is not svmlight text, 'label index:value ...' with increasing indices ({error})."
        return sparse.csr_matrix((1, 1)), np.zeros(1)
    half = len(lines) // 2
    parts = [_parse(lines[:half], at, why), _parse(lines[half:], at + half, why)]
    width = max(X.shape[1] for X, _ in parts)
    for X, _ in parts:
        X.resize((X.shape[0], width))
    return sparse.vstack([X for X, _ in parts], format="csr"), np.concatenate([y for _, y in parts])
