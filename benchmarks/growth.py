"""(c) Growth of the time with columns, classes and rows: log-log slopes and the theoretical exponents.

In theory a second-order learner needs 4 d^2 operations per row for two classes, and 2 K ((K-1) d)^2 for K; a
first-order learner d, or K d with more classes. In n every learner is linear. The sizes of one slope are measured in
turns, and the slope is a least-squares fit to the logarithms of the smallest times. In d and K the fixed costs of a
call flatten it and cache limits steepen it; in n it should not exceed 1, except for noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks.clicks import clicks
from benchmarks.floors import a_stream, in_panels, loop
from benchmarks.page import goal, nanoseconds, table
from benchmarks.timing import Contender, in_turns
from regretless import AIOLI, FOLKLORE, GAF, OGD, ONS, LinearizedFTRL, OnlineLogisticRegression, VovkAzouryWarmuth

TITLE = "Growth"


def slope(sizes: list[int], times: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def a_line(
    what: str, letter: str, theory: float, contenders: dict[int, Contender], budget: float, whole: bool = False
) -> dict[str, Any]:
    """One slope: of the time per row, or of the whole run."""
    times = in_turns(f"growth: {what} in {letter}", {str(size): each for size, each in contenders.items()}, budget)
    sizes = list(contenders)
    scale = {size: contenders[size].rows if whole else 1 for size in sizes}
    least = [scale[size] * times[str(size)]["least_ns"] for size in sizes]
    median = [scale[size] * times[str(size)]["median_ns"] for size in sizes]
    return {
        "what": what,
        "letter": letter,
        "theory": theory,
        "sizes": sizes,
        "least_ns": least,
        "median_ns": median,
        "slope": slope(sizes, least),
        "slope_of_medians": slope(sizes, median),
    }


def fresh(learner: Any, X: Any, y: np.ndarray, classes: Any = None) -> Contender:
    """A new learner's call."""
    return Contender(y.size, lambda: clone(learner).partial_fit(X, y, classes=classes))


def looped(learner: Any, shapes: dict[int, tuple[int, int]], work: float, blocked: bool) -> dict[int, Contender]:
    """The compiled loop at every size -> (d, K), with rows for about `work` operations."""
    out = {}
    for size, (d, K) in shapes.items():
        n = int(max(256 if blocked else 2 * K + 20, min(20_000, work / (2 * K * ((K - 1) * d) ** 2))))
        X, y = a_stream(n, d, K)
        out[size] = loop(learner, X, y, blocked)
    return out


def in_columns(quick: bool, budget: float) -> list[dict[str, Any]]:
    columns, work = ([20, 40, 80], 1e7) if quick else ([50, 100, 200, 400, 800], 1e8)
    lines = []
    for what, learner, sizes, blocked in (
        ("AIOLI, row by row", AIOLI(), columns, False),
        ("AIOLI, panels", AIOLI(), columns if quick else [250, 500, 1000, 2000], True),
        ("VovkAzouryWarmuth, row by row", VovkAzouryWarmuth(), columns, False),
        ("ONS, no projection", ONS(radius=1000.0, gamma=0.5, epsilon=1.0), columns, False),
    ):
        contenders = looped(learner, {d: (d, 2) for d in sizes}, work, blocked)
        lines.append(a_line(what, "d", 2, contenders, budget))
    wide = [20, 40] if quick else [25, 50, 100, 200]
    contenders = looped(FOLKLORE(), {d: (d, 4) for d in wide}, work, False)
    lines.append(a_line("FOLKLORE, row by row, K = 4", "d", 2, contenders, budget))
    long = [100, 1000] if quick else [250, 500, 1000, 2000, 4000]
    lines.append(a_line("OGD", "d", 1, {d: loop(OGD(), *a_stream(1000, d, 2)) for d in long}, budget))
    entries = {}
    for nonzeros in [10, 100] if quick else [25, 50, 100, 200]:
        block = next(clicks(1000, nonzeros))
        entries[nonzeros] = fresh(LinearizedFTRL(), block.X, block.y, [0, 1])
    lines.append(a_line("LinearizedFTRL, sparse, 2^18 columns", "entries", 1, entries, budget))
    return lines


def in_classes(quick: bool, budget: float) -> list[dict[str, Any]]:
    many = [3, 5] if quick else [5, 10, 20]
    shapes = {K: (20, K) for K in many}
    return [
        a_line("FOLKLORE, row by row, d = 20", "K", 3, looped(FOLKLORE(), shapes, 1e8, False), budget),
        a_line("FOLKLORE, panels, d = 20", "K", 3, looped(FOLKLORE(), shapes, 1e8, True), budget),
        a_line("GAF, row by row, d = 20", "K", 3, looped(GAF(), shapes, 1e8, False), budget),
        a_line("OGD, d = 200", "K", 1, {K: loop(OGD(), *a_stream(1000, 200, K)) for K in many}, budget),
    ]


def in_rows(quick: bool, budget: float) -> list[dict[str, Any]]:
    most = 2000 if quick else 64_000
    lines = []
    for what, learner, d, K, part in (
        ("AIOLI, d = 20", AIOLI(), 20, 2, 1),
        ("AIOLI, panels, d = 200", AIOLI(), 200, 2, 8),
        ("FOLKLORE, d = 10, K = 4", FOLKLORE(), 10, 4, 8),
        ("GAF, d = 10, K = 2", GAF(), 10, 2, 8),
        ("ONS, d = 20", ONS(radius=1000.0, gamma=0.5, epsilon=1.0), 20, 2, 2),
        ("VovkAzouryWarmuth, d = 20", VovkAzouryWarmuth(), 20, 2, 1),
        ("OGD, d = 20", OGD(), 20, 2, 1),
        ("LinearizedFTRL, d = 20", LinearizedFTRL(), 20, 2, 1),
        ("OnlineLogisticRegression, d = 20", OnlineLogisticRegression(), 20, 2, 8),
    ):
        X, y = a_stream(most // part, d, K)
        contenders = {n: call_of(learner, X[:n], y[:n], "panels" in what) for n in (y.size // 16, y.size // 4, y.size)}
        lines.append(a_line(what, "n", 1, contenders, budget, whole=True))
    return lines


def call_of(learner: Any, X: Any, y: np.ndarray, blocked: bool) -> Contender:
    """A new learner's call, in the given form."""
    target = y - 0.5 if isinstance(learner, VovkAzouryWarmuth) else y

    def run() -> None:
        with in_panels(blocked):
            clone(learner).partial_fit(X, target)

    return Contender(y.size, run)


def measure(quick: bool) -> dict[str, Any]:
    """All numbers of the section."""
    budget = 0.1 if quick else 1.2
    with threadpool_limits(1):
        lines = in_columns(quick, budget) + in_classes(quick, budget) + in_rows(quick, budget)
    steepest = max((line for line in lines if line["letter"] == "n"), key=lambda line: line["slope"])
    what = f"the steepest slope in n ({steepest['what']})"
    return {"lines": lines, "goals": [goal(what, steepest["slope"], 1.05, False, "")]}


def markdown(result: dict[str, Any]) -> list[str]:
    """The section as Markdown."""
    body = []
    for line in result["lines"]:
        sizes, times = line["sizes"], line["least_ns"]
        ends = f"{nanoseconds(times[0])} to {nanoseconds(times[-1])}"
        span = f"{sizes[0]:,} to {sizes[-1]:,}"
        slopes = f"{line['slope']:.2f} ({line['slope_of_medians']:.2f})"
        body.append([line["what"], line["letter"], span, ends, slopes, f"{line['theory']:g}"])
    heads = ["", "in", "sizes", "time of a row (of the run, in n)", "slope (of medians)", "theory"]
    return [
        "Slopes of log time against log size, by least squares, with the exponent of the number of operations",
        "for large sizes. Fixed costs per row flatten a slope, and matrices that exceed a cache steepen it.",
        "",
        *table(heads, body, words=(0, 1)),
    ]
