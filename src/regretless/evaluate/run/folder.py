"""The output folder of a run: checkpoints during the run, and the result at the end.

During a run, `unfinished/` has a checkpoint: the model, `run.json` with everything needed to resume, and the forecasts
so far in parts, one per checkpoint. `run.json` is replaced last and atomically, so that there is one complete
checkpoint whenever a run is stopped; parts after it are written again. The report is made from these files and does not
change them. `unfinished/` is removed, atomically as well, after the report is complete. New files are written there and
then moved to their place, so that no incomplete file is ever visible.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from regretless.core.files.writing import replacing, write_text
from regretless.evaluate.run.lock import NAME, Lock

UNFINISHED, DONE = "unfinished", "unfinished.done"
RECIPE = "recipe.json"  # of the line of a leaderboard that is run again
RESULTS = (
    "forecasts.parquet",
    "forecasts.csv",
    "quarantine.jsonl",
    "model.npz",
    RECIPE,
    "summary.json",
    "trace.csv",
    "over_time.csv",
    "over_time.png",
    "index.html",
    "features.png",
    "regret.png",
    "reliability.png",
)
ROW_GROUP = 1 << 16
FORMULA = "^[=+@\\t\\r\\n-]"  # text that spreadsheets may interpret as a formula


class Folder:
    """The output folder of a run, locked while open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unfinished = path / UNFINISHED
        self._forecasts: list[Any] = []
        self._bad: BinaryIO | None = None
        self._written: set[str] = set()
        self._lock = Lock(path / NAME)

    def __enter__(self) -> Folder:
        self._is_new = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock.take()
        try:
            self._remove(self.path / DONE)  # left by a run that was stopped in `clear`
            if self.unfinished.is_symlink():
                raise ValueError(f"{self.unfinished} is a symbolic link, which is not followed: remove it.")
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._close_bad()
        self._lock.release()
        if self._is_new and not any(self.path.iterdir()):
            self.path.rmdir()

    def discard(self) -> None:
        """Remove `unfinished/`: there is nothing to resume."""
        self._close_bad()
        self._remove(self.unfinished)

    def begin(self, progress: dict[str, Any], recipe: str | None = None) -> None:
        """Start with an empty `unfinished/`, a recipe if there is one, and a checkpoint before the first row."""
        (self.unfinished / "run.json").unlink(missing_ok=True)  # first: without it nothing can be resumed
        self._remove(self.unfinished)
        self.unfinished.mkdir()
        if recipe is not None:
            write_text(self.unfinished / RECIPE, recipe)
        self._write_progress(progress, 0)

    def recipe(self) -> str:
        """The recipe of an interrupted run."""
        path = self.unfinished / RECIPE
        if not path.is_file():
            raise ValueError(f"{path} is missing: start again without --resume.")
        return path.read_text(encoding="utf-8")

    @staticmethod
    def _remove(folder: Path) -> None:
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            shutil.rmtree(folder)

    def checkpoint(self) -> dict[str, Any] | None:
        """The content of `run.json`, or None if there is none."""
        path = self.unfinished / "run.json"
        if not path.exists():
            return None
        try:
            return dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{path} is damaged ({error}): start again without --resume.") from error

    def finished(self) -> dict[str, Any] | None:
        """The summary of the last run in this folder, or None if it has not finished."""
        path = self.path / "summary.json"
        if self.unfinished.exists() or not path.is_file():
            return None
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def holds(self) -> str:
        """What is there of an earlier run: "an interrupted run", "a finished run" or ""."""
        if (self.unfinished / "run.json").exists():
            return "an interrupted run"
        return "a finished run" if (self.path / "summary.json").exists() else ""

    # ------------------------------------------------------------------ during the run

    def add_forecasts(self, table: Any) -> None:
        """Add forecasts, which are written with the next checkpoint."""
        self._forecasts.append(table)

    def add_bad(self, bad: dict[str, Any], number: int) -> None:
        """Add a quarantined row, found after the checkpoint of this number."""
        if self._bad is None:
            path = self._bad_lines(number + 1)
            path.unlink(missing_ok=True)  # rows after the checkpoint are written again
            self._bad = path.open("xb")
        self._bad.write(json.dumps(bad, ensure_ascii=False).encode("utf-8", errors="backslashreplace") + b"\n")

    def _close_bad(self) -> None:
        if self._bad is not None:
            self._bad.close()
        self._bad = None

    def write_checkpoint(self, learner: Any, number: int, progress: dict[str, Any]) -> None:
        """Write a checkpoint: the part, the model, and last `run.json`, which makes it valid."""
        import pyarrow as pa
        from pyarrow import ipc

        self._part(number).unlink(missing_ok=True)
        if self._forecasts:
            table = pa.concat_tables(self._forecasts, promote_options="permissive")
            with replacing(self._part(number)) as file, ipc.new_file(file, table.schema) as part:
                part.write_table(table)
        if self._bad is None:
            self._bad_lines(number).unlink(missing_ok=True)
        self._close_bad()
        self._forecasts = []
        learner.save(self._model(number))
        self._write_progress(progress, number)
        self._model(number - 1).unlink(missing_ok=True)

    def _write_progress(self, progress: dict[str, Any], number: int) -> None:
        write_text(self.unfinished / "run.json", json.dumps({**progress, "number": number}, indent=1))

    def _part(self, number: int) -> Path:
        return self.unfinished / f"forecasts-{number:06d}.arrow"

    def _model(self, number: int) -> Path:
        return self.unfinished / f"model-{number:06d}.npz"

    def _bad_lines(self, number: int) -> Path:
        return self.unfinished / f"bad-{number:06d}.jsonl"

    def model_at(self, number: int) -> Path:
        """The path of the model of a checkpoint."""
        return self._model(number)

    # ------------------------------------------------------------------ at the end

    def new_file(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Open a file of the report for writing; it appears when it is complete."""
        self._written.add(name)
        return replacing(self.path / name, self.unfinished)

    def forecasts(self, number: int, columns: list[str]) -> Iterator[Any]:
        """The forecasts up to a checkpoint, as tables of equal length with these columns."""
        import pyarrow as pa
        from pyarrow import ipc

        parts = [self._part(i) for i in range(1, number + 1) if self._part(i).exists()]
        schema = pa.unify_schemas([ipc.open_file(str(path)).schema for path in parts], promote_options="permissive")
        return _even(_tables(parts, pa.schema([schema.field(name) for name in columns])))

    def finish(self, number: int, forecasts: Iterator[Any], csv: bool, keep_bad: bool) -> None:
        """Write forecasts, quarantined rows and the model, from parts which are kept."""
        first = next(forecasts)
        with self.new_file("forecasts.csv" if csv else "forecasts.parquet") as end:
            with writer(end, first.schema, csv) as file:
                for table in chain([first], forecasts):
                    file.write_table(table)
        if keep_bad:
            with self.new_file("quarantine.jsonl") as end:
                for i in range(1, number + 1):
                    if self._bad_lines(i).exists():
                        end.write(self._bad_lines(i).read_bytes())
        with self.new_file("model.npz") as end, self._model(number).open("rb") as model:
            shutil.copyfileobj(model, end)
        if (recipe := self.unfinished / RECIPE).is_file():
            with self.new_file(RECIPE) as end:
                end.write(recipe.read_bytes())

    def clear(self) -> None:
        """Remove `unfinished/`, and results of an earlier run that this one does not have: the run is complete."""
        for name in set(RESULTS) - self._written:
            (self.path / name).unlink(missing_ok=True)
        os.rename(self.unfinished, self.path / DONE)
        shutil.rmtree(self.path / DONE)


def without_formulas(table: Any) -> Any:
    """The table with an apostrophe before text that a spreadsheet would interpret as a formula."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for i, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            text = table.column(i)
            marked = pc.binary_join_element_wise("'", text, "")
            table = table.set_column(i, field, pc.if_else(pc.match_substring_regex(text, FORMULA), marked, text))
    return table


def _tables(parts: list[Path], schema: Any) -> Iterator[Any]:
    """The parts in order, each with all columns of the result."""
    import pyarrow as pa
    from pyarrow import ipc

    for path in parts:
        with pa.memory_map(str(path)) as mapped:
            yield _with_columns(ipc.open_file(mapped).read_all(), schema)


def _even(tables: Iterator[Any]) -> Iterator[Any]:
    """The same rows in tables of equal length, so that interruptions do not change the output files."""
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
    """A writer of tables with this schema, to a path or an open file."""
    to = str(to) if isinstance(to, Path) else to
    if csv:
        from pyarrow.csv import CSVWriter

        return CSVWriter(to, schema)
    from pyarrow.parquet import ParquetWriter

    return ParquetWriter(to, schema)


def _with_columns(table: Any, schema: Any) -> Any:
    """The table with all columns of the result; null for classes that were not known yet."""
    import pyarrow as pa

    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
