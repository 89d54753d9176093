"""Forecasts of a saved model for the rows of a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from regretless.core.persist import load
from regretless.evaluate.run.folder import without_formulas, writer
from regretless.evaluate.run.rows_for import rows_for
from regretless.evaluate.run.run import Progress
from regretless.streams import read
from regretless.streams.sources import format_of


def predict_file(
    model: Path,
    data: str,
    to: Any,
    csv: bool,
    format: str | None,
    bits: int | None,
    tell: Callable[[Progress], None],
    escape_formulas: bool = False,
) -> int:
    """Write a forecast for every row to an open file, as CSV or Parquet; returns the number of rows.

    `bits` are by default those of the VW text that the model has learned.
    """
    learner = load(model)
    bits = min(30, max(1, (int(learner.n_features_in_) - 1).bit_length())) if bits is None else bits
    reading = read(data, None, format=format, columns=_columns(model, learner, data, format), bits=bits)
    rows, writing = 0, None
    try:
        for block in reading:
            table = _forecasts(learner, rows_for(learner, block.X), block.first)
            writing = writing or writer(to, table.schema, csv)
            writing.write_table(without_formulas(table) if csv and escape_formulas else table)
            rows = block.first + len(table)
            tell(Progress(rows, block.lines, float("nan"), float("nan")))
    finally:
        if writing is not None:
            writing.close()
    return rows


def _columns(model: Path, learner: Any, data: str, format: str | None) -> Any:
    """The kinds of the columns: from the summary of the model's run, else from the model itself."""
    beside = model.parent / "summary.json"
    if beside.exists():
        told = json.loads(beside.read_text(encoding="utf-8")).get("columns")
        if isinstance(told, dict) or format_of(data, format) != "vw":
            return told
        return None
    names = getattr(learner, "feature_names_in_", None)
    if names is None:
        return None
    # a column without learned values is ignored by the model, text or numbers
    known = getattr(learner, "column_kinds_", ["number"] * len(names))
    kinds = [kind if kind == "number" else "category" for kind in known]
    return dict(zip(map(str, names), kinds, strict=True))


def _forecasts(learner: Any, X: Any, first: int) -> Any:
    import pyarrow as pa

    n = int(X.shape[0])
    columns: dict[str, Any] = {"row": np.arange(first, first + n)}
    if is_regressor(learner):
        return pa.table(columns | {"forecast": learner.predict(X)})
    if not hasattr(learner, "predict_proba"):
        return pa.table(columns | {"forecast": pa.array(learner.predict(X).tolist())})
    p = learner.predict_proba(X)
    columns["forecast"] = pa.array(learner.classes_[p.argmax(axis=1)].tolist())
    columns |= {f"p_{label}": p[:, k] for k, label in enumerate(learner.classes_.tolist())}
    return pa.table(columns)
