"""Shared parts of the figures: tables of numbers, work in several processes, files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from regretless.core.files.writing import replacing, write_text
from regretless.core.types import Array

QUARTILES = (0.25, 0.5, 0.75)
SPREAD = ("quartile_1", "median", "quartile_3")  # the columns of quartiles
DOTS_PER_INCH, SHADES = 100, 64


@dataclass(frozen=True)
class Table:
    """Named columns of numbers and text. Numbers have ten digits, here as in the file."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
        """A table with these rows."""
        return cls(tuple(columns), tuple(tuple(map(_plain, row)) for row in rows))

    def __getitem__(self, column: str) -> np.ndarray[Any, Any]:
        i = self.columns.index(column)
        return np.array([row[i] for row in self.rows])

    def where(self, **values: Any) -> Table:
        """The rows with these values."""
        keys = {self.columns.index(name): value for name, value in values.items()}
        return Table(self.columns, tuple(row for row in self.rows if all(row[i] == v for i, v in keys.items())))

    def each(self, column: str) -> list[tuple[Any, Table]]:
        """The distinct values of a column, in order of appearance, each with its rows."""
        return [(value, self.where(**{column: value})) for value in dict.fromkeys(self[column].tolist())]

    def write(self, path: Path) -> None:
        """As CSV."""
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_text(value) for value in row] for row in self.rows)
        write_text(path, lines.getvalue())


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return float(_text(value)) if isinstance(value, float) else value


def _text(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Work:
    """How tasks are run: the number of processes, and a callback (what, number done, total)."""

    jobs: int = 1
    told: Callable[[str, int, int], None] = lambda what, done, total: None

    def each(self, what: str, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
        """function(*task) for every task, in order. The results do not depend on the number of processes."""
        self.told(what, 0, len(tasks))
        parallel = joblib.Parallel(n_jobs=min(self.jobs, len(tasks)), return_as="generator")
        results = []
        for result in parallel(joblib.delayed(_alone)(function, task) for task in tasks):
            results.append(result)
            self.told(what, len(results), len(tasks))
        return results


def _alone(function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    """Use one thread per task, so that the order of summation is fixed."""
    with threadpool_limits(1):
        return function(*task)


def quartiles(samples: Sequence[Any] | Array) -> Array:
    """The quartiles over the first axis, (3, ...)."""
    found: Array = np.quantile(np.asarray(samples), QUARTILES, axis=0)
    return found


def log_marks(n: int, a_decade: int = 5) -> list[int]:
    """Numbers of rows up to n, a given number per decade, and n."""
    steps = np.arange(0, a_decade * np.log10(n) + 1e-9) / a_decade
    return sorted({*np.round(10**steps).astype(int).tolist(), n})


def save(name: str, folder: Path, table: Table, figure: Any) -> list[Path]:
    """Write NAME.csv, NAME.png and NAME.svg; equal tables give equal bytes."""
    from matplotlib import rc_context
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{kind}" for kind in ("csv", "png", "svg")]
    table.write(paths[0])
    full = io.BytesIO()
    figure.savefig(full, format="png", dpi=DOTS_PER_INCH)
    shades = Image.open(full).convert("RGB").quantize(SHADES, dither=Image.Dither.NONE)
    with replacing(paths[1]) as file:
        shades.save(file, format="png", optimize=True)
    with rc_context({"svg.hashsalt": name}), replacing(paths[2]) as file:
        figure.savefig(file, format="svg", metadata={"Date": None})
    return paths
