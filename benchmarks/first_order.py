"""First-order learners on a sparse stream like one of clicks, against scikit-learn's SGD and Vowpal Wabbit.

    python -m benchmarks.first_order                  # a few minutes
    python -m benchmarks.first_order --quick
    python -m benchmarks.first_order --json first_order.json

The stream: 2^18 features, 30 non-zeros a row, all of them 1, one of them constant; the others are distinct and drawn
by a power law; the labels come from a logistic model with few weights, about one in four of them positive.

Speed: every contender starts fresh and learns the same blocks of 1,000 rows, in turns, several times; the least and
the median time of a row are printed. noregret and scikit-learn get CSR blocks through `partial_fit`, with all checks.
Vowpal Wabbit gets one row at a time, as its binding wants it, in three ways: `text` parses a line that is there
already, `examples` makes an example of a list of ids, and `prebuilt` learns from examples made while the clock stood
still. Ratios are against the fastest of the three. The constant is the one feature that Vowpal Wabbit is not given: it
adds its own. Two figures are there for scale: `VW file` is its own program on a file of such lines (parsing and
learning in two threads, no Python), and `floor` is a bare compiled loop in one thread over the same float64 arrays,
one product and one plain step a row, without checks or anything to remember but the weights.

scikit-learn is there twice: as it is installed, and with BLAS held to one thread, its best case. `SGDClassifier` asks
BLAS for passes over all 2^18 weights every block, and where several threads share busy cores these were measured 3 to
10 times slower than in one. What a user gets is the first; what its loop costs is nearer to the second.

Progressive log loss: every row is forecast before it is learned. noregret: `predict_then_learn`. Vowpal Wabbit: the
prediction `learn` makes before its update. scikit-learn: `predict_proba` of a block, then `partial_fit`.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit
from threadpoolctl import threadpool_limits

from noregret import OGD, LinearizedFTRL, MirrorDescentAggregator
from noregret._jit import kernel
from noregret._types import Array

FEATURES = 1 << 18
NONZEROS = 30
BLOCK = 1000
WABBIT = "--loss_function logistic -b 18 --quiet"
CLASSES = [0, 1]


class Block(NamedTuple):
    X: csr_array
    y: np.ndarray  # 0 or 1
    truth: Array  # the probability that y was drawn with


def distinct_ranks(rng: np.random.Generator, law: Array, shape: tuple[int, int]) -> np.ndarray:
    """Rows of distinct ranks: draws by the cumulated law, those that repeat drawn again."""
    ranks = np.sort(np.searchsorted(law, rng.random(shape)), axis=1)
    while True:
        repeated = ranks[:, 1:] == ranks[:, :-1]
        rows = np.flatnonzero(repeated.any(axis=1))
        if rows.size == 0:
            return ranks
        some, again = ranks[rows], repeated[rows]
        some[:, 1:][again] = np.searchsorted(law, rng.random(int(again.sum())))
        ranks[rows] = np.sort(some, axis=1)


def clicks(
    rows: int, exponent: float = 1.1, density: float = 0.2, scale: float = 0.7, seed: int = 0
) -> Iterator[Block]:
    """Blocks of the stream. Id 0 is the constant; rank r of the others is drawn with probability ~ r^-exponent."""
    rng = np.random.default_rng(seed)
    law = np.cumsum(np.arange(1, FEATURES) ** -exponent)
    law /= law[-1]
    id_of_rank = 1 + rng.permutation(FEATURES - 1)  # popular ids lie anywhere, as after hashing
    weights = rng.normal(scale=scale, size=FEATURES) * (rng.random(FEATURES) < density)
    pilot = weights[id_of_rank[distinct_ranks(rng, law, (5000, NONZEROS - 1))]].sum(axis=1)
    low, high = -30.0, 30.0
    for _ in range(50):  # the constant's weight makes one label in four positive
        weights[0] = 0.5 * (low + high)
        low, high = (weights[0], high) if expit(pilot + weights[0]).mean() < 0.25 else (low, weights[0])
    for start in range(0, rows, BLOCK):
        n = min(BLOCK, rows - start)
        ids = np.zeros((n, NONZEROS), dtype=np.int32)
        ids[:, 1:] = np.sort(id_of_rank[distinct_ranks(rng, law, (n, NONZEROS - 1))], axis=1)
        truth = expit(weights[ids].sum(axis=1))
        ends = np.arange(0, n * NONZEROS + 1, NONZEROS, dtype=np.int32)
        X = csr_array((np.ones(n * NONZEROS), ids.ravel(), ends), shape=(n, FEATURES))
        yield Block(X, (rng.random(n) < truth).astype(np.int64), truth)


def log_loss(p: Array, y: np.ndarray) -> float:
    """The mean log loss of probabilities of label 1, clipped at 1e-15."""
    p = np.clip(p, 1e-15, 1.0 - 1e-15)
    return float(-np.mean(np.where(y == 1, np.log(p), np.log1p(-p))))


# ---------------------------------------------------------------------- the contenders: each returns seconds


@kernel
def bare_loop(ids: np.ndarray, ends: np.ndarray, values: Array, y: Array, w: Array) -> None:
    """One product with the weights, one step along the row: nothing else."""
    for t in range(y.size):
        z = 0.0
        for j in range(ends[t], ends[t + 1]):
            z += w[ids[j]] * values[j]
        step = 0.1 * (y[t] - 1.0 / (1.0 + math.exp(-z)))
        for j in range(ends[t], ends[t + 1]):
            w[ids[j]] += step * values[j]


def floor(blocks: list[Block]) -> float:
    targets = [y.astype(np.float64) for _, y, _ in blocks]
    w = np.zeros(FEATURES)
    started = time.perf_counter()
    for (X, _, _), y in zip(blocks, targets, strict=True):
        bare_loop(X.indices, X.indptr, X.data, y, w)
    return time.perf_counter() - started


def partial_fits(learner: Any, blocks: list[Block]) -> float:
    started = time.perf_counter()
    for X, y, _ in blocks:
        learner.partial_fit(X, y, classes=CLASSES)
    return time.perf_counter() - started


def scikit() -> Any:
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(loss="log_loss")


def wabbit(options: str = "") -> Any:
    from vowpalwabbit import Workspace

    return Workspace(f"{WABBIT} {options}")


def ids_of(block: Block) -> list[list[int]]:
    """The ids of every row, without the constant."""
    ids: list[list[int]] = block.X.indices.reshape(-1, NONZEROS)[:, 1:].tolist()
    return ids


def lines_of(block: Block) -> list[str]:
    """The rows as Vowpal Wabbit's text."""
    labels = ["1 | " if y else "-1 | " for y in block.y]
    return [label + " ".join(map(str, ids)) for label, ids in zip(labels, ids_of(block), strict=True)]


def wabbit_text(blocks: list[list[str]]) -> float:
    model = wabbit()
    started = time.perf_counter()
    for lines in blocks:
        for line in lines:
            model.learn(line)
    seconds = time.perf_counter() - started
    model.finish()
    return seconds


def wabbit_examples(blocks: list[Block], building: bool) -> float:
    """Learning from examples made of ids; the time of making them counts if `building`."""
    model = wabbit()
    seconds = 0.0
    for block in blocks:
        rows, labels = ids_of(block), ["1" if y else "-1" for y in block.y]
        started = time.perf_counter()
        examples = []
        for ids, label in zip(rows, labels, strict=True):
            example = model.example({" ": ids})
            example.set_label_string(label)
            example.setup_example()
            examples.append(example)
        if not building:
            started = time.perf_counter()
        for example in examples:
            model.learn(example)
        seconds += time.perf_counter() - started
        for example in examples:
            model.finish_example(example)
    model.finish()
    return seconds


def wabbit_file(path: Path) -> float:
    started = time.perf_counter()
    wabbit(f"-d {path}").finish()
    return time.perf_counter() - started


# ---------------------------------------------------------------------- the three tables


def in_turns(repeats: int, contenders: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    """The seconds of each contender, taken in turns after a warm-up."""
    for contender in contenders.values():
        contender()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, contender in contenders.items():
            seconds[name].append(contender())
    return seconds


def in_one_thread(contender: Callable[[], float]) -> float:
    """The seconds of a contender while BLAS has one thread."""
    with threadpool_limits(1):
        return contender()


def speed(blocks: list[Block], repeats: int, wabbit_there: bool) -> dict[str, Any]:
    contenders: dict[str, Callable[[], float]] = {
        "floor": lambda: floor(blocks),
        "OGD": lambda: partial_fits(OGD(), blocks),
        "LinearizedFTRL": lambda: partial_fits(LinearizedFTRL(), blocks),
        "scikit-learn SGD": lambda: partial_fits(scikit(), blocks),
        "  in one thread": lambda: in_one_thread(lambda: partial_fits(scikit(), blocks)),
    }
    n = sum(block.y.size for block in blocks)
    with tempfile.TemporaryDirectory() as folder:
        if wabbit_there:
            lines = [lines_of(block) for block in blocks]
            path = Path(folder) / "stream.vw"
            path.write_text("".join(f"{line}\n" for some in lines for line in some))
            contenders["VW text"] = lambda: wabbit_text(lines)
            contenders["VW examples"] = lambda: wabbit_examples(blocks, building=True)
            contenders["VW prebuilt"] = lambda: wabbit_examples(blocks, building=False)
            contenders["VW file"] = lambda: wabbit_file(path)
        seconds = in_turns(repeats, contenders)
    least = {name: min(times) for name, times in seconds.items()}
    median = {name: statistics.median(times) for name, times in seconds.items()}
    print(f"\nSpeed: {n:,} rows in blocks of {BLOCK:,}, {repeats} repeats in turns")
    print(f"  {'':18} {'least µs/row':>13} {'median µs/row':>14} {'rows/s':>12}")
    for name in contenders:
        a, b = 1e6 * least[name] / n, 1e6 * median[name] / n
        print(f"  {name:18} {a:13.2f} {b:14.2f} {n / least[name]:12,.0f}")
    rivals = [("scikit-learn SGD", 10.0), ("  in one thread", 0.0)]
    if wabbit_there:
        rivals.append((min(("VW text", "VW examples", "VW prebuilt"), key=least.__getitem__), 3.0))
    ratios = []
    for name in ("OGD", "LinearizedFTRL", "floor"):
        for rival, wanted in rivals:
            by_least, by_median = least[rival] / least[name], median[rival] / median[name]
            verdict = f"; wanted {wanted:.0f} x: {'reached' if by_median >= wanted else 'MISSED'}"
            if name == "floor" or wanted == 0.0:
                verdict = ""
            print(f"  {name:15} {by_least:5.1f} x the rows/s of {rival.strip()} (medians {by_median:.1f} x){verdict}")
            ratios.append({"learner": name, "rival": rival, "least": by_least, "median": by_median, "wanted": wanted})
    micro = {name: [1e6 * s / n for s in times] for name, times in seconds.items()}
    return {"rows": n, "repeats": repeats, "microseconds_a_row": micro, "ratios": ratios}


def wabbit_progressive(stream: Iterator[Block]) -> Array:
    """The margin of every row before it was learned."""
    model = wabbit()
    margins = []
    for block in stream:
        for line in lines_of(block):
            example = model.parse(line)
            model.learn(example)
            margins.append(example.get_simplelabel_prediction())
            model.finish_example(example)
    model.finish()
    return np.array(margins)


def scikit_progressive(stream: Iterator[Block]) -> Array:
    """Probabilities of label 1, block by block; the first block is forecast 1/2."""
    learner, out = scikit(), []
    for i, (X, y, _) in enumerate(stream):
        out.append(learner.predict_proba(X)[:, 1] if i else np.full(y.size, 0.5))
        learner.partial_fit(X, y, classes=CLASSES)
    return np.concatenate(out)


def progressive(stream: Callable[[], Iterator[Block]], wabbit_there: bool) -> dict[str, float]:
    y = np.concatenate([block.y for block in stream()])
    truth = np.concatenate([block.truth for block in stream()])
    losses = {"the true model": log_loss(truth, y), "the base rate": log_loss(np.full(y.size, y.mean()), y)}
    for learner in (OGD(), LinearizedFTRL()):
        p = np.concatenate([learner.predict_then_learn(X, y, classes=CLASSES)[:, 1] for X, y, _ in stream()])
        losses[type(learner).__name__] = log_loss(p, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        losses["scikit-learn SGD"] = log_loss(scikit_progressive(stream()), y)
    if wabbit_there:
        losses["VW"] = log_loss(expit(wabbit_progressive(stream())), y)
    print(f"\nProgressive log loss: {y.size:,} rows, {100 * y.mean():.1f} % positive")
    for name, loss in losses.items():
        print(f"  {name:18} {loss:.5f}")
    if wabbit_there:
        verdict = "no worse" if losses["LinearizedFTRL"] <= losses["VW"] else "WORSE"
        print(f"  LinearizedFTRL with defaults is {verdict} than VW with defaults")
    return losses


def aggregation(M: int, rows: int, repeats: int) -> dict[str, float]:
    """The time of a row of M base functions, with the entropy; the floor is one softmax of M numbers by NumPy."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.0, 1.0, size=(rows, M))
    y = (X[:, 0] > 0.0).astype(np.int64)
    y[:2] = CLASSES

    def floor() -> float:
        started = time.perf_counter()
        for x in X:
            weights = np.exp(x)
            weights /= weights.sum()
        return time.perf_counter() - started

    def learn() -> float:
        learner = MirrorDescentAggregator(base="columns", mirror="entropy")
        started = time.perf_counter()
        learner.partial_fit(X, y, classes=CLASSES)
        return time.perf_counter() - started

    seconds = in_turns(repeats, {"softmax": floor, "MirrorDescentAggregator": learn})
    result = {name: 1e3 * min(times) / rows for name, times in seconds.items()}
    print(f"\nAggregation: {M:,} base functions, entropy, blocks of {rows} rows, least of {repeats}")
    for name, each in result.items():
        print(f"  {name:24} {each:.3f} ms a row")
    return result


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--quick", action="store_true", help="a short stream, few repeats")
    arguments.add_argument("--rows", type=int, help="rows of the progressive loss (200,000; quick: 20,000)")
    arguments.add_argument("--timed-rows", type=int, help="rows of the speed (50,000; quick: 10,000)")
    arguments.add_argument("--repeats", type=int, help="repeats of the speed (7; quick: 3)")
    arguments.add_argument("--seed", type=int, default=0, help="seed of the stream")
    arguments.add_argument("--json", type=Path, metavar="FILE", help="write every figure to FILE")
    given = arguments.parse_args()
    rows = given.rows or (20_000 if given.quick else 200_000)
    timed_rows = given.timed_rows or (10_000 if given.quick else 50_000)
    repeats = given.repeats or (3 if given.quick else 7)

    wabbit_there = find_spec("vowpalwabbit") is not None
    packages = ["noregret", "scikit-learn", "numba", "numpy", *(["vowpalwabbit"] if wabbit_there else [])]
    versions = {name: version(name) for name in packages}
    machine = platform.processor() or platform.machine()
    print(
        ", ".join(f"{name} {number}" for name, number in versions.items())
        + f", Python {platform.python_version()}, {machine}"
    )
    if not wabbit_there:
        print("vowpalwabbit is not installed (pip install vowpalwabbit): its rows are left out.")

    result = {
        "versions": versions,
        "machine": machine,
        "speed": speed(list(clicks(timed_rows, seed=given.seed)), repeats, wabbit_there),
        "progressive_log_loss": progressive(lambda: clicks(rows, seed=given.seed), wabbit_there),
        "milliseconds_a_row_of_100000": aggregation(100_000, 20 if given.quick else 50, repeats),
    }
    if given.json:
        given.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
