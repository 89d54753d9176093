"""The folder of a run: parts as they are made, a checkpoint to go on from, and the whole at the end.

While a run goes on, `unfinished/` holds a checkpoint: the model, `run.json` with all that is needed to go on, and the
forecasts so far in parts, one a checkpoint. `run.json` is replaced last and in one step, so that whenever a run is
stopped there is one whole checkpoint; parts beyond it are made again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

UNFINISHED = "unfinished"
ROW_GROUP = 1 << 16


class Folder:
    """Where a run writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unfinished = path / UNFINISHED
        self._forecasts: list[Any] = []
        self._quarantined: list[dict[str, Any]] = []

    def begin(self) -> None:
        """An empty place."""
        if self.unfinished.exists():
            shutil.rmtree(self.unfinished)
        self.unfinished.mkdir(parents=True)

    def checkpoint(self) -> dict[str, Any] | None:
        """What `run.json` says, if there is one."""
        path = self.unfinished / "run.json"
        return json.loads(path.read_text()) if path.exists() else None

    # ------------------------------------------------------------------ while it goes on

    def add_forecasts(self, table: Any) -> None:
        """Some rows of forecasts; they are written with the next checkpoint."""
        self._forecasts.append(table)

    def add_bad(self, bad: dict[str, Any]) -> None:
        """A row that was set aside."""
        self._quarantined.append(bad)

    def write_checkpoint(self, learner: Any, number: int, progress: dict[str, Any]) -> None:
        """Everything up to now: the part, the model, and then the word that they are there."""
        import pyarrow as pa
        from pyarrow import ipc

        if self._forecasts:
            table = pa.concat_tables(self._forecasts, promote_options="permissive")
            with ipc.new_file(str(self._part(number)), table.schema) as part:
                part.write_table(table)
        with (self.unfinished / f"bad-{number:06d}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(bad, ensure_ascii=False) + "\n" for bad in self._quarantined)
        self._forecasts, self._quarantined = [], []
        learner.save(self._model(number))
        text = json.dumps({**progress, "number": number}, indent=1)
        temporary = self.unfinished / "run.json.part"
        temporary.write_text(text)
        os.replace(temporary, self.unfinished / "run.json")
        self._model(number - 1).unlink(missing_ok=True)

    def _part(self, number: int) -> Path:
        return self.unfinished / f"forecasts-{number:06d}.arrow"

    def _model(self, number: int) -> Path:
        return self.unfinished / f"model-{number:06d}.npz"

    def model_at(self, number: int) -> Path:
        """The model of a checkpoint."""
        return self._model(number)

    # ------------------------------------------------------------------ at the end

    def finish(self, number: int, columns: list[str], csv: bool, keep_bad: bool) -> None:
        """Put the parts together: forecasts, the rows set aside, the model."""
        import pyarrow as pa
        from pyarrow import ipc

        parts = [self._part(i) for i in range(1, number + 1) if self._part(i).exists()]
        schema = pa.unify_schemas([ipc.open_file(str(path)).schema for path in parts], promote_options="permissive")
        schema = pa.schema([schema.field(name) for name in columns])
        end = self.path / ("forecasts.csv" if csv else "forecasts.parquet")
        with writer(end, schema, csv) as file:
            for table in _even(_tables(parts, schema)):
                file.write_table(table)
        if keep_bad:
            with (self.path / "quarantine.jsonl").open("wb") as file:
                for i in range(1, number + 1):
                    file.write((self.unfinished / f"bad-{i:06d}.jsonl").read_bytes())
        os.replace(self._model(number), self.path / "model.npz")

    def clear(self) -> None:
        """The run is finished."""
        shutil.rmtree(self.unfinished)


def _tables(parts: list[Path], schema: Any) -> Iterator[Any]:
    """The parts one after another, each with the columns of the whole."""
    import pyarrow as pa
    from pyarrow import ipc

    for path in parts:
        with pa.memory_map(str(path)) as mapped:
            yield _with_columns(ipc.open_file(mapped).read_all(), schema)


def _even(tables: Iterator[Any]) -> Iterator[Any]:
    """The same rows in tables of one length: how often a run was interrupted does not show in its files."""
    import pyarrow as pa

    rest = None
    for table in tables:
        rest = table if rest is None else pa.concat_tables([rest, table])
        while len(rest) >= ROW_GROUP:
            yield rest.slice(0, ROW_GROUP).combine_chunks()
            rest = rest.slice(ROW_GROUP)
    if rest is not None and len(rest):
        yield rest.combine_chunks()


def writer(to: Any, schema: Any, csv: bool) -> Any:
    """What writes tables of the schema to a file, by its path or open."""
    to = str(to) if isinstance(to, Path) else to
    if csv:
        from pyarrow.csv import CSVWriter

        return CSVWriter(to, schema)
    from pyarrow.parquet import ParquetWriter

    return ParquetWriter(to, schema)


def _with_columns(table: Any, schema: Any) -> Any:
    """The table with the columns of the whole: null for classes that were not known yet."""
    import pyarrow as pa

    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
