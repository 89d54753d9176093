"""Tables with columns of text: OnlineLogisticRegression with and without offsets of categories, against rivals.

    python -m benchmarks.categories          # prints the table
    python -m benchmarks.categories --write  # and writes it to docs/benchmarks.md

All with their defaults. River and Vowpal Wabbit get each category as a feature of its own. The variances of the offsets
were chosen on the streams CHOSEN; OTHERS were run after the choice.
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from scipy.special import expit

from benchmarks.page import put, table
from benchmarks.quality import zipf
from regretless import OnlineLogisticRegression
from regretless.core.types import Array
from regretless.learners.logistic import offsets

BEGIN, END = (
    "<!-- categories: begin, written by python -m benchmarks.categories --write -->",
    "<!-- categories: end -->",
)
INTRODUCTION = "## Columns of text\n"


class Stream(NamedTuple):
    """Normal columns, fields of categories with normal effects, and labels of a logistic model."""

    rows: int
    levels: tuple[int, ...]  # of each field
    scale: float  # of the effects
    start: float  # the log-odds of an average row
    by_zipf: bool = True
    numbers: int = 3


CHOSEN = {
    "8 fields of 1,000": Stream(10_000, (1000,) * 8, 0.5, -3.0),
    "3 fields of 300": Stream(5_000, (300,) * 3, 0.7, 0.0),
    "200, equally frequent": Stream(3_000, (200,), 1.0, 0.0, by_zipf=False),
    "8 fields that tell nothing": Stream(5_000, (1000,) * 8, 0.0, -1.0),
    "20 fields of 100": Stream(8_000, (100,) * 20, 0.4, -1.0),
}
OTHERS = {
    "5 fields of 4 to 10,000": Stream(20_000, (4, 30, 200, 1500, 10_000), 0.6, -1.5),
    "12 fields of 60": Stream(6_000, (60,) * 12, 0.3, 0.0, by_zipf=False),
    "users": Stream(20_000, (50_000,), 1.5, -2.0, numbers=8),
    "2 fields of 2,000, many numbers": Stream(10_000, (2000, 2000), 1.0, 0.0, numbers=20),
    "names that never come back": Stream(5_000, (10**7,), 1.0, 0.0, by_zipf=False),
    "6 fields of 10": Stream(5_000, (10,) * 6, 0.5, -1.0),
}


def draw(stream: Stream, seed: int) -> tuple[list[dict[str, Any]], np.ndarray]:
    """The rows as dictionaries, and the labels."""
    rng = np.random.default_rng(seed)
    X, score = rng.normal(size=(stream.rows, stream.numbers)), np.full(stream.rows, stream.start)
    score += X @ rng.normal(size=stream.numbers) / np.sqrt(stream.numbers)
    rows: list[dict[str, Any]] = [dict(zip(map("x{}".format, range(len(x))), x, strict=True)) for x in X.tolist()]
    for j, levels in enumerate(stream.levels):
        found = rng.choice(levels, stream.rows, p=zipf(levels)) if stream.by_zipf else rng.integers(levels, size=len(X))
        score += stream.scale * rng.normal(size=levels)[found]
        for row, level in zip(rows, found.tolist(), strict=True):
            row[f"field{j}"] = f"level{level}"
    return rows, (rng.random(len(X)) < expit(score)).astype(np.int64)


def log_loss(p: Any, y: np.ndarray) -> float:
    said = np.clip(np.asarray(p, dtype=float), 1e-12, 1.0 - 1e-12)
    return float(-np.mean(np.where(y == 1, np.log(said), np.log1p(-said))))


def ours(rows: list[dict[str, Any]], y: np.ndarray) -> Array:
    found: Array = OnlineLogisticRegression().predict_then_learn(rows, y, classes=[0, 1])[:, 1]
    return found


def without_offsets(rows: list[dict[str, Any]], y: np.ndarray) -> Array:
    """The same where a column of offsets counts as missing, as with three classes."""
    with mock.patch.object(offsets, "run", lambda *given: given[-1].fill(np.nan)):
        return ours(rows, y)


def sparse(rows: list[dict[str, Any]], y: np.ndarray) -> Array:
    found: Array = OnlineLogisticRegression(sparse=True).predict_then_learn(rows, y, classes=[0, 1])[:, 1]
    return found


def vowpal_wabbit(rows: list[dict[str, Any]], y: np.ndarray) -> list[float]:
    import vowpalwabbit

    model = vowpalwabbit.Workspace("--loss_function logistic --link logistic --quiet")
    said = []
    for row, label in zip(rows, y.tolist(), strict=True):
        numbers = " ".join(f"{name}:{value:.6g}" for name, value in row.items() if name[0] == "x")
        names = " ".join(f"{name}={value}" for name, value in row.items() if name[0] == "f")
        example = model.example(f"{2 * label - 1} |n {numbers} |c {names}")
        said.append(model.predict(example))
        model.learn(example)
        model.finish_example(example)
    model.finish()
    return said


def river(rows: list[dict[str, Any]], y: np.ndarray) -> list[float]:
    from river import compose, linear_model, preprocessing

    numbers = compose.SelectType(float) | preprocessing.StandardScaler()
    model = (numbers + (compose.SelectType(str) | preprocessing.OneHotEncoder())) | linear_model.LogisticRegression()
    said = []
    for row, label in zip(rows, y.tolist(), strict=True):
        said.append(model.predict_proba_one(row)[True])
        model.learn_one(row, bool(label))
    return said


CONTESTANTS = {
    "regretless": ours,
    "without offsets": without_offsets,
    "sparse=True": sparse,
    "VW": vowpal_wabbit,
    "River": river,
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--write", action="store_true", help="write the table to docs/benchmarks.md")
    arguments.add_argument("--rows", type=int, help="use only the first rows of every stream")
    given = arguments.parse_args()
    missing = {"VW": "vowpalwabbit", "River": "river"}
    playing = {name: play for name, play in CONTESTANTS.items() if name not in missing or find_spec(missing[name])}
    warm_rows, warm_y = draw(CHOSEN["8 fields of 1,000"], seed=0)
    for play in playing.values():
        play(warm_rows[:300], warm_y[:300])  # compiles
    body = []
    for i, (name, stream) in enumerate((CHOSEN | OTHERS).items()):
        rows, y = draw(stream, seed=100 + i)
        rows, y = rows[: given.rows], y[: given.rows]
        cells = [name + "*" * (name in OTHERS), f"{len(y):,}"]
        for play in playing.values():
            start = time.process_time()
            loss = log_loss(play(rows, y), y)
            cells.append(f"{loss:.4f} ({1e6 * (time.process_time() - start) / len(y):,.0f})")
        body.append(cells)
        print(" | ".join(cells), flush=True)
    part = [
        "Log loss, and in brackets microseconds of CPU time per row. Streams with * were not used to choose anything.",
        "",
        *table(["stream", "rows", *playing], body),
    ]
    print("\n".join(part))
    if given.write:
        put(BEGIN, END, part, INTRODUCTION)


if __name__ == "__main__":
    main()
