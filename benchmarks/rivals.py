"""(b) Rows per second against River, scikit-learn and Vowpal Wabbit: in blocks, and one row at a time.

All contenders forecast each row and then learn it, two classes, from the same rows in their preferred format, converted
before the measurement: arrays or CSR blocks for regretless and scikit-learn, dictionaries for River, lines of text or
parsed examples for Vowpal Wabbit, whose `learn` forecasts first. Our blocks go through `predict_then_learn`, with all
checks; scikit-learn's blocks are forecast by `predict_proba` with the weights before the block, which is less work.
Blocks have 1,000 rows. BLAS has one thread, which is scikit-learn's best case: its passes over all weights in every
block take longer when several threads share busy cores.
"""

from __future__ import annotations

import os
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks.clicks import BLOCK, FEATURES, NONZEROS, Block, clicks
from benchmarks.floors import bare
from benchmarks.page import count, goal, least_and_median, table
from benchmarks.timing import Contender, in_turns, progress, ratio
from regretless import AIOLI, OGD, ONS, LinearizedFTRL, OnlineLogisticRegression
from regretless.core.types import Array

TITLE = "Against others"
CLASSES = [0, 1]
FEW = 30  # entries per row of the second sparse stream
WABBIT = "--loss_function logistic -b 18 --quiet"
MISSING = {"river": "River", "vowpalwabbit": "Vowpal Wabbit"}


def missing() -> list[str]:
    return [package for package in MISSING if find_spec(package) is None]


def a_stream(n: int, d: int) -> tuple[Array, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    y = (rng.random(n) < 1 / (1 + np.exp(-3 * X @ rng.normal(size=d)))).astype(np.int64)
    y[:2] = CLASSES
    return X, y


# ---------------------------------------------------------------------- contenders


def in_blocks(learner: Any, blocks: list[tuple[Any, np.ndarray]], forecasting: bool = True) -> Contender:
    def run() -> None:
        fresh = clone(learner)
        play = fresh.predict_then_learn if forecasting else fresh.partial_fit
        for X, y in blocks:
            play(X, y, classes=CLASSES)

    return Contender(sum(y.size for _, y in blocks), run)


def one_by_one(learner: Any, rows: list[Any], y: np.ndarray, start: tuple[Any, np.ndarray]) -> Contender:
    labels = y.tolist()

    def run() -> float:
        fresh = clone(learner).partial_fit(*start, classes=CLASSES)
        started = time.perf_counter()
        for x, label in zip(rows, labels, strict=True):
            fresh.predict_proba_one(x)
            fresh.learn_one(x, label)
        return time.perf_counter() - started

    return Contender(len(labels), run)


def river(rows: list[dict[int, float]], y: np.ndarray, newton: bool = False) -> Contender:
    from river import linear_model, optim

    labels = [bool(label) for label in y]

    def run() -> None:
        model = linear_model.LogisticRegression(optim.Newton() if newton else optim.SGD(0.01))
        for x, label in zip(rows, labels, strict=True):
            model.predict_proba_one(x)
            model.learn_one(x, label)

    return Contender(len(labels), run)


def scikit(blocks: list[tuple[Any, np.ndarray]], forecasting: bool = True) -> Contender:
    from sklearn.linear_model import SGDClassifier

    def run() -> None:
        model = SGDClassifier(loss="log_loss", random_state=0)
        for i, (X, y) in enumerate(blocks):
            if i and forecasting:
                model.predict_proba(X)
            model.partial_fit(X, y, classes=CLASSES)

    return Contender(sum(y.size for _, y in blocks), run)


def with_all_threads(contender: Contender) -> Contender:
    def run() -> None:
        with threadpool_limits(os.cpu_count()):
            contender.run()

    return contender._replace(run=run)


def wabbit(options: str = "") -> Any:
    from vowpalwabbit import Workspace

    return Workspace(f"{WABBIT} {options}")


def wabbit_text(lines: list[str]) -> Contender:
    """Parsing the lines is included."""

    def run() -> float:
        model = wabbit()
        started = time.perf_counter()
        for line in lines:
            model.learn(line)
        seconds = time.perf_counter() - started
        model.finish()
        return seconds

    return Contender(len(lines), run)


def wabbit_examples(rows: list[list[Any]], y: np.ndarray, building: bool) -> Contender:
    """Examples from lists of ids (and values); the time to build them is included if `building`."""
    labels = ["1" if label else "-1" for label in y]

    def run() -> float:
        model = wabbit()
        started = time.perf_counter()
        examples = []
        for features, label in zip(rows, labels, strict=True):
            example = model.example({" ": features})
            example.set_label_string(label)
            example.setup_example()
            examples.append(example)
        if not building:
            started = time.perf_counter()
        for example in examples:
            model.learn(example)
        seconds = time.perf_counter() - started
        for example in examples:
            model.finish_example(example)
        model.finish()
        return seconds

    return Contender(len(labels), run)


def wabbit_file(path: Path, rows: int) -> Contender:
    """The vw program on a file, without Python."""
    return Contender(rows, lambda: wabbit(f"-d {path}").finish())


@bare
def sparse_floor(ids: np.ndarray, ends: np.ndarray, values: Array, y: Array, w: Array) -> None:
    """Only one product with the weights and one step along the row."""
    for t in range(y.size):
        z = 0.0
        for j in range(ends[t], ends[t + 1]):
            z += w[ids[j]] * values[j]
        step = 0.1 * (y[t] - 1.0 / (1.0 + np.exp(-z)))
        for j in range(ends[t], ends[t + 1]):
            w[ids[j]] += step * values[j]


# ---------------------------------------------------------------------- the tables


def labelled(y: np.ndarray) -> list[str]:
    return ["1 | " if label else "-1 | " for label in y]


def dense(d: int, scale: float, budget: float) -> dict[str, Any]:
    """Every contender at d columns; slow ones get fewer rows."""

    def rows(microseconds: float, least: int = 20) -> int:
        """The number of rows that take about a tenth of a second."""
        return int(min(20_000, max(least, scale * 1e5 / microseconds)))

    X, y = a_stream(20_000, d)
    start = (X[:100], y[:100])
    many = [(X[i : i + BLOCK], y[i : i + BLOCK]) for i in range(0, max(BLOCK, rows(0.1 + d * d / 3e3)), BLOCK)]
    linear = [(X[i : i + BLOCK], y[i : i + BLOCK]) for i in range(0, max(BLOCK, rows(0.3 + d / 100)), BLOCK)]
    few, slow = rows(10 + d * d / 1e3), min(BLOCK, rows(d * d / 400))
    contenders: dict[str, Contender] = {
        "AIOLI, blocks": in_blocks(AIOLI(), many),
        "ONS, blocks": in_blocks(ONS(radius=1000.0, gamma=0.5, epsilon=1.0), [(X[:slow], y[:slow])]),
        "OGD, blocks": in_blocks(OGD(), linear),
        "AIOLI, one row": one_by_one(AIOLI(), list(X[:few]), y[:few], start),
        "OGD, one row": one_by_one(OGD(), list(X[: rows(10)]), y[: rows(10)], start),
    }
    if d <= 100:
        n = rows(5 + d / 5)
        automatic = OnlineLogisticRegression()
        contenders["OnlineLogisticRegression, blocks"] = in_blocks(automatic, [(X[:n], y[:n])])
        n = rows(200)
        contenders["OnlineLogisticRegression, one row"] = one_by_one(automatic, list(X[:n]), y[:n], start)
    if find_spec("river"):
        n, n_newton = rows(10 + d / 4), rows(30 + d / 2 + d * d / 500)
        dictionaries = [dict(enumerate(row)) for row in X[: max(n, n_newton)].tolist()]
        contenders["River SGD, one row"] = river(dictionaries[:n], y[:n])
        contenders["River Newton, one row"] = river(dictionaries[:n_newton], y[:n_newton], newton=True)
    contenders["scikit-learn SGD, blocks"] = scikit(linear)
    n = rows(500)
    contenders["scikit-learn SGD, one row"] = scikit([(X[i : i + 1], y[i : i + 1]) for i in range(n)])
    if find_spec("vowpalwabbit"):
        n = rows(5 + d / 5)
        pairs = [list(enumerate(row)) for row in X[:n].tolist()]
        lines = [
            label + " ".join(f"{j}:{v:.9g}" for j, v in row) for label, row in zip(labelled(y[:n]), pairs, strict=True)
        ]
        contenders["VW text, one row"] = wabbit_text(lines)
        contenders["VW ready examples, one row"] = wabbit_examples(pairs, y[:n], building=False)
    return {"d": d, "times": in_turns(f"rivals: d = {d}", contenders, budget)}


def sparse(n: int, nonzeros: int, forecasting: bool, budget: float) -> dict[str, Any]:
    """2^18 columns; in blocks, regretless and scikit-learn may learn without forecasts."""
    blocks: list[Block] = list(clicks(n, nonzeros))
    pairs = [(block.X, block.y) for block in blocks]
    X, y = pairs[0]
    single = [X[[t]] for t in range(200)]
    targets = [block.y.astype(np.float64) for block in blocks]

    def floor() -> None:
        w = np.zeros(FEATURES)
        for (X, _), target in zip(pairs, targets, strict=True):
            sparse_floor(X.indices, X.indptr, X.data, target, w)

    contenders: dict[str, Contender] = {
        "bare loop, blocks": Contender(n, floor),
        "OGD, blocks": in_blocks(OGD(), pairs, forecasting),
        "LinearizedFTRL, blocks": in_blocks(LinearizedFTRL(), pairs, forecasting),
        "OGD, one row": one_by_one(OGD(), single, y[:200], pairs[-1]),
        "LinearizedFTRL, one row": one_by_one(LinearizedFTRL(), single, y[:200], pairs[-1]),
    }
    if find_spec("river"):
        few = min(n, 1000)
        dictionaries = [dict.fromkeys(row.tolist(), 1.0) for row in X.indices.reshape(-1, nonzeros)[:few]]
        contenders["River SGD, one row"] = river(dictionaries, y[:few])
    contenders["scikit-learn SGD, blocks"] = scikit(pairs, forecasting)
    contenders["scikit-learn SGD, blocks, all threads"] = with_all_threads(contenders["scikit-learn SGD, blocks"])
    contenders["scikit-learn SGD, one row"] = scikit([(single[t], y[t : t + 1]) for t in range(10)])
    with tempfile.TemporaryDirectory() as folder:
        if find_spec("vowpalwabbit"):
            # without the constant: it adds its own
            ids = [row.tolist() for block in blocks for row in block.X.indices.reshape(-1, nonzeros)[:, 1:]]
            labels = np.concatenate([block.y for block in blocks])
            lines = [label + " ".join(map(str, row)) for label, row in zip(labelled(labels), ids, strict=True)]
            path = Path(folder) / "stream.vw"
            path.write_text("".join(f"{line}\n" for line in lines))
            few = min(n, 2000)
            contenders["VW text, one row"] = wabbit_text(lines[:few])
            contenders["VW examples, one row"] = wabbit_examples(ids[:few], labels[:few], building=True)
            contenders["VW ready examples, one row"] = wabbit_examples(ids[:few], labels[:few], building=False)
            contenders["VW on a file"] = wabbit_file(path, n)
        times = in_turns(f"rivals: 2^18 sparse columns, {nonzeros} entries", contenders, budget)
    return {"d": FEATURES, "nonzeros": nonzeros, "forecasting": forecasting, "times": times}


def measure(quick: bool) -> dict[str, Any]:
    """All numbers of the section."""
    for package in missing():
        progress(f"rivals: {package} is not installed (pip install {package}), its rows are skipped")
    scale, budget = (0.05, 0.3) if quick else (1.0, 8.0)
    with threadpool_limits(1):
        shapes = [dense(d, scale, budget) for d in ((20,) if quick else (20, 100, 1000))]
        n = 1000 if quick else 20_000
        many = [sparse(n, NONZEROS, True, budget), sparse(n, FEW, False, budget)]
    return {"dense": shapes, "sparse": many, "missing": missing(), "goals": goals(shapes, many[1]["times"])}


def goals(shapes: list[dict[str, Any]], times: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    twenty = next((shape["times"] for shape in shapes if shape["d"] == 20), {})
    if "River SGD, one row" in twenty:
        value = ratio(twenty, "River SGD, one row", "AIOLI, blocks")
        found.append(goal("AIOLI in blocks over River's SGD, d = 20, rows/s", value, 25, True))
        value = ratio(twenty, "River Newton, one row", "AIOLI, blocks")
        found.append(goal("AIOLI in blocks over River's Online Newton Step, d = 20, rows/s", value, 100, True))
        value = ratio(twenty, "AIOLI, one row", "River SGD, one row")
        found.append(goal("AIOLI row by row calls over River's SGD, d = 20, time", value, 0.5, False))
    where = "2^18 columns, learning only, rows/s"
    for name in ("OGD", "LinearizedFTRL"):
        value = ratio(times, "scikit-learn SGD, blocks, all threads", f"{name}, blocks")
        found.append(goal(f"{name} over scikit-learn's SGD as installed, {where}", value, 10, True))
        one_row = [each for each in times if each.startswith("VW") and each.endswith("one row")]
        if one_row:
            fastest = min(one_row, key=lambda each: times[each]["least_ns"])
            value = ratio(times, fastest, f"{name}, blocks")
            found.append(goal(f"{name} over {fastest.split(',')[0]}, {where}", value, 3, True))
    return found


def shape_table(shape: dict[str, Any]) -> list[str]:
    times, body, rival = shape["times"], [], "River SGD, one row"
    for name, figure in times.items():
        over = f"{ratio(times, rival, name):.3g}" if rival in times else ""
        body.append([name, least_and_median(figure), count(1e9 / figure["least_ns"]), over])
    return table(["", "per row (median)", "rows/s", "x River's SGD"], body)


def markdown(result: dict[str, Any]) -> list[str]:
    """The section as Markdown."""
    out = [
        "Every row is forecast and then learned, two classes. Rows are converted to each contender's preferred format",
        "before the measurement. Blocks have 1,000 rows. Smallest time of the repeats, in turns; the last column",
        "is rows/s divided by that of River's `LogisticRegression` with SGD. River's Online Newton Step is",
        "`LogisticRegression(optim.Newton())`; it stores a matrix, and so is not run on 2^18 columns.",
    ]
    out += [f"{MISSING[package]} was not installed." for package in result["missing"]]
    for shape in result["dense"]:
        out += ["", f"{shape['d']} columns:", "", *shape_table(shape)]
    for shape in result["sparse"]:
        text = f"{shape['d']:,} sparse columns, {shape['nonzeros']} entries per row"
        text += (
            ":" if shape["forecasting"] else "; blocks of regretless and scikit-learn are learned without forecasts:"
        )
        out += ["", text, "", *shape_table(shape)]
    return out
