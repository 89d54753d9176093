"""Forecasts of a saved model for the rows of a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regretless.core.errors import BadRow
from regretless.core.files.persist import load
from regretless.core.scikit_learn import is_regressor
from regretless.evaluate.race.recipes import Recipe
from regretless.evaluate.run.decision import Decision, decided, decision_of
from regretless.evaluate.run.folder import RECIPE, without_formulas, writer
from regretless.evaluate.run.rows_for import part_of, refusal, rows_for
from regretless.evaluate.run.run import Progress
from regretless.evaluate.run.tables import id_columns
from regretless.streams import BadLine, Block, read
from regretless.streams.sources import format_of


class Request(NamedTuple):
    """What to forecast."""

    data: str
    format: str | None
    encoding: str | None  # None: that of the file that the model has learned
    bits: int | None  # None: those of the VW text that the model has learned
    ids: list[str]  # columns to copy
    on_bad: str
    positive: str | None = None
    costs: tuple[float, float] | None = None

    def decision(self, learner: Any) -> Decision | None:
        """The decision between the learner's classes, if costs were given."""
        return None if self.costs is None else decision_of(learner.classes_.tolist(), self.positive, self.costs)


def predict_file(
    model: Path,
    request: Request,
    to: Any,
    csv: bool,
    escape_formulas: bool,
    tell: Callable[[Progress], None],
    bad: Any = None,
) -> tuple[int, int]:
    """Write a forecast for every row to an open file, as CSV or Parquet; returns the numbers of rows and of bad rows.

    Bad rows are written to the open file `bad`, as JSON lines.
    """
    learner, about = load(model), _summary(model)
    recipe = _recipe(model)
    rows = skipped = 0
    writing = None

    def hear(line: BadLine) -> None:
        nonlocal skipped
        skipped += 1
        if bad is not None:
            bad.write(json.dumps(line._asdict(), ensure_ascii=False).encode("utf-8", errors="backslashreplace") + b"\n")

    try:
        for block in _read(request, learner, about, hear):
            X = rows_for(learner, block.X) if recipe is None else recipe.rows(block.X)
            for table in _tables(learner, block._replace(X=X), request, hear):
                writing = writing or writer(to, table.schema, csv)
                writing.write_table(without_formulas(table) if csv and escape_formulas else table)
                rows += len(table)
            tell(Progress(rows, block.lines, float("nan"), float("nan")))
    finally:
        if writing is not None:
            writing.close()
    return rows, skipped


def _recipe(model: Path) -> Recipe | None:
    """The recipe of the race in which the model took part, if it is beside the model."""
    beside = model.parent / RECIPE
    return Recipe(beside.read_text(encoding="utf-8")) if beside.exists() else None


def _summary(model: Path) -> dict[str, Any]:
    """The summary of the model's run, if it is beside the model."""
    beside = model.parent / "summary.json"
    found: dict[str, Any] = json.loads(beside.read_text(encoding="utf-8")) if beside.exists() else {}
    return found


def _read(request: Request, learner: Any, about: dict[str, Any], hear: Callable[[BadLine], None]) -> Any:
    bits = request.bits
    return read(
        request.data,
        None,
        format=request.format,
        on_bad=request.on_bad,  # type: ignore[arg-type]
        on_bad_line=hear,
        columns=_columns(about, learner, request),
        declare=dict.fromkeys(request.ids, "id"),
        encoding=request.encoding or about.get("encoding"),
        bits=min(30, max(1, (int(learner.n_features_in_) - 1).bit_length())) if bits is None else bits,
    )


def _columns(about: dict[str, Any], learner: Any, request: Request) -> Any:
    """The kinds of the columns: from the summary of the model's run, else from the model itself."""
    if about:
        told = about.get("columns")
        return told if isinstance(told, dict) or format_of(request.data, request.format) != "vw" else None
    names = getattr(learner, "feature_names_in_", None)
    if names is None:
        return None
    # a column without learned values is ignored by the model, text or numbers
    known = getattr(learner, "column_kinds_", ["number"] * len(names))
    kinds = [{"number": "number", "date": "time"}.get(kind, "category") for kind in known]
    return dict(zip(map(str, names), kinds, strict=True))


def _tables(learner: Any, block: Block, request: Request, hear: Callable[[BadLine], None]) -> Iterator[Any]:
    """The forecasts of a block. If the learner refuses some row, those of its halves, which isolates it."""
    n = len(block.places)
    try:
        yield _forecasts(learner, block, request.decision(learner))
    except BadRow as error:
        if n > 1:
            for some in (slice(0, n // 2), slice(n // 2, n)):
                yield from _tables(learner, part_of(block, some), request, hear)
        elif request.on_bad == "error":
            raise refusal(block, request.data, error) from None
        else:
            hear(BadLine(int(block.places[0]), "", str(error)))


def _forecasts(learner: Any, block: Block, decision: Decision | None) -> Any:
    import pyarrow as pa

    columns: dict[str, Any] = {"row": block.places}
    if block.ids is not None:
        columns |= dict(zip(id_columns(block.ids.column_names), block.ids.columns, strict=True))
    if is_regressor(learner):
        return pa.table(columns | {"forecast": learner.predict(block.X)})
    if not hasattr(learner, "predict_proba"):
        return pa.table(columns | {"forecast": pa.array(learner.predict(block.X).tolist())})
    p = learner.predict_proba(block.X)
    columns["forecast"] = pa.array(np.asarray(learner.classes_)[p.argmax(axis=1)].tolist())
    columns |= {f"p_{label}": p[:, k] for k, label in enumerate(learner.classes_.tolist())}
    return decided(pa.table(columns), learner.classes_.tolist(), decision)
