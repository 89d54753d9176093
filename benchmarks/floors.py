"""(a) Learners against their floor: a bare loop with only the product and the update of a row.

The floor of a second-order learner is the better of two loops: the plain one, and the lazy one, where row t's update is
folded into row t+1's product so that the matrix is read once per row. The other reference is the machine's matrix
product, in the same turns, counting 4 d^2 operations per row for two classes and 2 K ((K-1) d)^2 for K. The floor of a
first-order learner is a bare product and a step along the row; on sparse rows it is the better of two such loops, with
the sum of the product in order or in any order.

`loop` is a learner's compiled code on a learner that has seen the rows before; `call` is `partial_fit` of a new
learner, including checks, labels and its state. BLAS has one thread, like the loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks.machine import SIDE, matrix_product
from benchmarks.page import goal, least_and_median, nanoseconds, table
from benchmarks.plain_folklore import PlainFolklore
from benchmarks.timing import Contender, in_turns, ratio
from regretless import (
    AIOLI,
    FOLKLORE,
    GAF,
    OGD,
    ONS,
    ExponentiatedGradient,
    LinearizedFTRL,
    MirrorDescent,
    MirrorDescentAggregator,
    OnlineLogisticRegression,
    Perceptron,
    StronglyConvexOGD,
    VovkAzouryWarmuth,
)
from regretless.core.kernels.jit import FUSED
from regretless.core.types import Array
from regretless.learners.second_order import panels

TITLE = "Against the floor"
# Compiled like the library, but without the disk cache, which does not check the files in this folder.
bare = njit(fastmath=FUSED, nogil=True, error_model="numpy")
summing = njit(fastmath=FUSED | {"reassoc"}, nogil=True, error_model="numpy")

SMALL = {(5, 2): 6, (5, 3): 6, (20, 5): 2}  # sizes where the K x K algebra counts, and how often FOLKLORE's floor

# ---------------------------------------------------------------------- the floors


@bare
def plain_one(P: Array, X: Array, shrink: float) -> None:
    """v = P x, then P -= u u^T with u = shrink v."""
    n, d = X.shape
    v = np.empty(d)
    for t in range(n):
        v[:] = 0.0
        for j in range(d):
            xj = X[t, j]
            for i in range(d):
                v[i] += xj * P[j, i]
        for i in range(d):
            v[i] *= shrink
        for j in range(d):
            u = v[j]
            for i in range(d):
                P[j, i] -= u * v[i]


@bare
def lazy_one(P: Array, X: Array, shrink: float) -> None:
    """The same, row t's update within row t+1's product."""
    n, d = X.shape
    v, u = np.empty(d), np.zeros(d)
    for t in range(n):
        v[:] = 0.0
        for j in range(d):
            xj = X[t, j]
            uj = u[j]
            for i in range(d):
                entry = P[j, i] - uj * u[i]
                P[j, i] = entry
                v[i] += xj * entry
        for i in range(d):
            u[i] = shrink * v[i]
    for j in range(d):
        uj = u[j]
        for i in range(d):
            P[j, i] -= uj * u[i]


@bare
def plain_many(P: Array, X: Array, r: int, shrink: float) -> None:
    """V = P (I ⊗ x), r copies of x, then P -= U^T U with U = shrink V."""
    n, d = X.shape
    size = P.shape[0]
    V = np.empty((r, size))
    for t in range(n):
        for k in range(r):
            V[k, :] = 0.0
            for j in range(d):
                xj = X[t, j]
                for i in range(size):
                    V[k, i] += xj * P[k * d + j, i]
        for k in range(r):
            for i in range(size):
                V[k, i] *= shrink
        for row in range(size):
            for k in range(r):
                u = V[k, row]
                for i in range(size):
                    P[row, i] -= u * V[k, i]


@bare
def lazy_many(P: Array, X: Array, r: int, shrink: float) -> None:
    """The same, row t's update within row t+1's product."""
    n, d = X.shape
    size = P.shape[0]
    V, U = np.empty((r, size)), np.zeros((r, size))
    for t in range(n):
        for k in range(r):
            V[k, :] = 0.0
            for j in range(d):
                row = k * d + j
                for l in range(r - 1):
                    u = U[l, row]
                    for i in range(size):
                        P[row, i] -= u * U[l, i]
                u = U[r - 1, row]
                xj = X[t, j]
                for i in range(size):
                    entry = P[row, i] - u * U[r - 1, i]
                    P[row, i] = entry
                    V[k, i] += xj * entry
        for k in range(r):
            for i in range(size):
                U[k, i] = shrink * V[k, i]
    for row in range(size):
        for k in range(r):
            u = U[k, row]
            for i in range(size):
                P[row, i] -= u * U[k, i]


@summing
def dot_and_step(w: Array, X: Array, y: Array, rate: float) -> None:
    """z = w.x, then w += rate (y - sigmoid(z)) x."""
    n, d = X.shape
    for t in range(n):
        z = 0.0
        for i in range(d):
            z += w[i] * X[t, i]
        step = rate * (y[t] - 1.0 / (1.0 + math.exp(-z)))
        for i in range(d):
            w[i] += step * X[t, i]


def sparse_dot_and_step(w: Array, indptr: np.ndarray, indices: np.ndarray, data: Array, y: Array, rate: float) -> None:
    """`dot_and_step` over the entries of rows in compressed form."""
    for t in range(y.size):
        z = 0.0
        for i in range(indptr[t], indptr[t + 1]):
            z += w[indices[i]] * data[i]
        step = rate * (y[t] - 1.0 / (1.0 + math.exp(-z)))
        for i in range(indptr[t], indptr[t + 1]):
            w[indices[i]] += step * data[i]


SPARSE_FLOORS = {"floor, in order": bare(sparse_dot_and_step), "floor, in any order": summing(sparse_dot_and_step)}


# ---------------------------------------------------------------------- the learners


@contextmanager
def in_panels(wanted: bool) -> Iterator[None]:
    """Blocked updates, or row by row, regardless of the library's choice."""
    chosen = panels.pays
    panels.pays = lambda *sizes: wanted
    try:
        yield
    finally:
        panels.pays = chosen


def a_stream(n: int, d: int, K: int) -> tuple[Array, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) / math.sqrt(d)
    y = np.argmax(X @ rng.normal(size=(d, K)) * 3 + rng.gumbel(size=(n, K)), axis=1)
    y[:K] = np.arange(K)
    return X, y


def loop(learner: Any, X: Array, y: np.ndarray, blocked: bool = False) -> Contender:
    """The learner's own loop, after it has seen the rows."""
    with in_panels(blocked):
        learner = clone(learner).partial_fit(X, y)
    Y, weight, out = learner._targets(y, None), np.ones(y.size), learner._new_forecasts(y.size)

    def run() -> None:
        with in_panels(blocked):
            learner._run(X, Y, weight, out)

    return Contender(y.size, run)


def call(learner: Any, X: Array, y: np.ndarray) -> Contender:
    """A new learner's `partial_fit`, with panels if the library chooses them."""
    return Contender(y.size, lambda: clone(learner).partial_fit(X, y))


def second_order(d: int, K: int, budget: float) -> dict[str, Any]:
    """Times of one shape: floors, the matrix product, and every learner in both forms."""
    r = K - 1
    size = r * d
    work = 2 * K * size * size  # 4 d^2 for two classes
    n = max(2 * K + 20 if size >= 1000 else 64, min(20_000, 100_000_000 // work))
    many = max(n, min(2048, max(256, 4_000_000_000 // work)))
    X, y = a_stream(max(many, 2 * K), d, K)
    X_few = X[:n]
    if K == 2:
        floors = {
            "plain floor": Contender(n, lambda: plain_one(np.eye(d), X_few, 1e-3)),
            "lazy floor": Contender(n, lambda: lazy_one(np.eye(d), X_few, 1e-3)),
        }
        # far from the boundary of the ball, so that no projection is needed
        newton = ONS(radius=1000.0, gamma=0.5, epsilon=1.0)
        learners: dict[str, tuple[Any, np.ndarray]] = {
            "AIOLI": (AIOLI(), y),
            "VovkAzouryWarmuth": (VovkAzouryWarmuth(), y - 0.5),
            "FOLKLORE": (FOLKLORE(), y),
            "GAF": (GAF(), y),
            "ONS": (newton, y),
        }
    else:
        floors = {
            "plain floor": Contender(n, lambda: plain_many(np.eye(size), X_few, r, 1e-3)),
            "lazy floor": Contender(n, lambda: lazy_many(np.eye(size), X_few, r, 1e-3)),
        }
        learners = {"FOLKLORE": (FOLKLORE(), y), "GAF": (GAF(), y)}
    contenders = {**floors, "matrix product": matrix_product()}
    for name, (learner, target) in learners.items():
        contenders[f"{name} loop"] = loop(learner, X_few, target[:n])
        rows = n if name == "ONS" else y.size  # it has no panels and is slow
        contenders[f"{name} call"] = call(learner, X[:rows], target[:rows])
        if name != "ONS" and size >= 50:
            contenders[f"{name} panels"] = loop(learner, X, target, blocked=True)
    if (d, K) == (64, 10):
        contenders["plain NumPy"] = Contender(24, lambda: PlainFolklore(d, K).predict_then_learn(X[:24], y[:24]))
        contenders["OnlineLogisticRegression call"] = call(OnlineLogisticRegression(classes=list(range(K))), X, y)
    times = in_turns(f"floors: d = {d}, K = {K}", contenders, budget)
    floor = min(("plain floor", "lazy floor"), key=lambda name: times[name]["least_ns"])
    per_operation = times["matrix product"]["least_ns"]
    for figure in times.values():
        figure["of_floor"] = figure["least_ns"] / times[floor]["least_ns"]
        figure["of_floor_medians"] = figure["median_ns"] / times[floor]["median_ns"]
        figure["of_product_rate"] = work * per_operation / figure["least_ns"]
    del times["matrix product"]["of_floor"], times["matrix product"]["of_product_rate"]
    times["matrix product"]["gigaflops"] = 1.0 / per_operation
    return {"d": d, "K": K, "operations": work, "floor": floor, "times": times}


def first_order(d: int, budget: float) -> dict[str, Any]:
    n = max(500, min(20_000, 20_000_000 // d))
    X, y = a_stream(n, d, 2)
    target = y.astype(np.float64)
    learners = [
        OGD(),
        LinearizedFTRL(),
        StronglyConvexOGD(),
        MirrorDescent(),
        ExponentiatedGradient(feature_bound=10.0),
        Perceptron(),
    ]
    contenders = {"floor": Contender(n, lambda: dot_and_step(np.zeros(d), X, target, 0.1))}
    for learner in learners:
        name = type(learner).__name__
        contenders[f"{name} loop"] = loop(learner, X, y)
        contenders[f"{name} call"] = call(learner, X, y)
    times = in_turns(f"floors: first order, d = {d}", contenders, budget)
    for figure in times.values():
        figure["of_floor"] = figure["least_ns"] / times["floor"]["least_ns"]
    return {"d": d, "times": times}


def sparse_first_order(n_columns: int, entries: int, n: int, budget: float) -> dict[str, Any]:
    """Rows of few entries among many columns: `partial_fit` of a learner that has met them, against the bare loop."""
    rng = np.random.default_rng(0)
    columns = np.array([np.sort(rng.choice(n_columns, entries, replace=False)) for _ in range(n)], dtype=np.int32)
    indptr, data = np.arange(0, n * entries + 1, entries), rng.normal(size=n * entries) / math.sqrt(entries)
    X = sparse.csr_matrix((data, columns.ravel(), indptr), shape=(n, n_columns))
    y = rng.integers(0, 2, n)
    target, indices = y.astype(np.float64), columns.ravel().view(np.uint32)
    contenders = {}
    for name, floor in SPARSE_FLOORS.items():
        given = (np.zeros(n_columns), indptr, indices, data, target, 0.1)
        contenders[name] = Contender(n, lambda floor=floor, given=given: floor(*given))
    for learner in (OGD(), LinearizedFTRL()):
        learner.partial_fit(X, y)
        name = type(learner).__name__
        contenders[f"{name} learning"] = Contender(n, lambda learner=learner: learner.partial_fit(X, y))
        contenders[f"{name} forecasting"] = Contender(n, lambda learner=learner: learner.predict_proba(X))
    times = in_turns(f"floors: {entries} entries among {n_columns:,} columns", contenders, budget)
    least = min(times[name]["least_ns"] for name in SPARSE_FLOORS)
    for figure in times.values():
        figure["of_floor"] = figure["least_ns"] / least
    return {"columns": n_columns, "entries": entries, "times": times}


def aggregation(M: int, rows: int, budget: float) -> dict[str, Any]:
    """A row of M base functions with the entropy, against one softmax of M numbers by NumPy."""
    X = np.random.default_rng(1).uniform(-1.0, 1.0, size=(rows, M))
    y = (X[:, 0] > 0.0).astype(np.int64)
    y[:2] = [0, 1]

    def floor() -> None:
        for x in X:
            weights = np.exp(x)
            weights /= weights.sum()

    learner = MirrorDescentAggregator(base="columns", mirror="entropy")
    contenders = {"softmax": Contender(rows, floor), "MirrorDescentAggregator call": call(learner, X, y)}
    times = in_turns(f"floors: {M:,} base functions", contenders, budget)
    return {"functions": M, "times": times, "of_floor": ratio(times, "MirrorDescentAggregator call", "softmax")}


# ---------------------------------------------------------------------- the section


def measure(quick: bool) -> dict[str, Any]:
    """All numbers of the section."""
    two = (5, 20, 100) if quick else (5, 10, 20, 50, 100, 200, 500, 1000, 2000)
    more = ((5, 3), (20, 5)) if quick else ((5, 3), (100, 3), (500, 3), (20, 5), (100, 5), (20, 10), (64, 10), (64, 20))
    budget = 0.3 if quick else 3.0
    with threadpool_limits(1):
        shapes = [second_order(d, 2, budget) for d in two] + [second_order(d, K, budget) for d, K in more]
        first = [first_order(d, budget / 3) for d in ((20,) if quick else (5, 20, 100, 1000, 2000))]
        functions = aggregation(*((1000, 10) if quick else (100_000, 30)), budget)
        few = [sparse_first_order(2**18, entries, 500 if quick else 20_000, budget) for entries in (30, 100)]
    result = {"second_order": shapes, "first_order": first, "sparse": few, "aggregation": functions}
    return {**result, "goals": goals(shapes) + sparse_goals(few)}


def sparse_goals(shapes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        goal(f"{name}, {shape['entries']} entries among 2^18 columns, over its floor", figure["of_floor"], 2, False)
        for shape in shapes
        for name, figure in shape["times"].items()
        if name.endswith(" learning")
    ]


def goals(shapes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for shape in shapes:
        d, K, times = shape["d"], shape["K"], shape["times"]
        if K == 2 and d in (20, 50, 100):
            ours = times["AIOLI loop"]["of_floor"]
            found.append(goal(f"AIOLI row by row, d = {d}, over its floor", ours, 1.3, False))
        if (d, K) in SMALL:
            ours = times["FOLKLORE loop"]["of_floor"]
            found.append(goal(f"FOLKLORE row by row, d = {d}, K = {K}, over its floor", ours, SMALL[d, K], False))
            both = ratio(times, "GAF loop", "FOLKLORE loop")
            found.append(goal(f"GAF over FOLKLORE, row by row, d = {d}, K = {K}", both, 2, False))
        if (d, K) == (1000, 2):
            blocked = times["AIOLI panels"]
            rate = 100 * blocked["of_product_rate"]
            found.append(goal("AIOLI in panels, d = 1000, of the matrix product's rate", rate, 60, True, "%"))
            gain = ratio(times, "AIOLI loop", "AIOLI panels")
            found.append(goal("AIOLI in panels over row by row, d = 1000", gain, 4, True))
        if (d, K) == (64, 10):
            gain = ratio(times, "plain NumPy", "FOLKLORE call")
            found.append(goal("FOLKLORE, d = 64, K = 10, over plain NumPy", gain, 5, True))
            rate = 100 * times["FOLKLORE call"]["of_product_rate"]
            found.append(goal("FOLKLORE, d = 64, K = 10, of the matrix product's rate", rate, 30, True, "%"))
            flagship = times["OnlineLogisticRegression call"]["least_ns"] / 1000.0
            found.append(goal("OnlineLogisticRegression, d = 64, K = 10, per row", flagship, 200, False, "µs"))
    return found


def against_floor(figure: dict[str, Any] | None) -> str:
    """Time and ratio to the floor, or nothing if it was not measured."""
    return f"{nanoseconds(figure['least_ns'])}, {figure['of_floor']:.2f} x" if figure else ""


def of_rate(figure: dict[str, Any] | None) -> str:
    return f"{nanoseconds(figure['least_ns'])}, {100 * figure['of_product_rate']:.0f} %" if figure else ""


def markdown(result: dict[str, Any]) -> list[str]:
    """The section as Markdown."""
    shapes, out = result["second_order"], []
    rates = [shape["times"]["matrix product"]["gigaflops"] for shape in shapes]
    out += [
        "Time per row (smallest of the repeats) and its ratio to the floor, the better of two bare loops: product and",
        "update in turn (plain), or each update folded into the next product (lazy). `loop` is the compiled code,",
        "row by row; `call` is `partial_fit` of a new learner, which uses panels where the library expects a",
        "gain; panels are shown with their rate relative to that of the machine's matrix product in the",
        f"same run, {min(rates):.0f} to {max(rates):.0f} GFLOP/s in one thread ({SIDE} x {SIDE}); 4 d^2 operations",
        "per row for two classes and 2 K ((K-1) d)^2 for K.",
        "",
    ]

    def block(shapes: list[dict[str, Any]], names: list[str], read: Callable[[dict[str, Any], str], str]) -> list[str]:
        body = []
        for shape in shapes:
            floor = shape["times"][shape["floor"]]
            head = [str(shape["d"]), str(shape["K"]), f"{least_and_median(floor)} {shape['floor'].split()[0]}"]
            body.append(head + [read(shape["times"], name) for name in names])
        return table(["d", "K", "floor (median)", *names], body, words=())

    two = [shape for shape in shapes if shape["K"] == 2]
    more = [shape for shape in shapes if shape["K"] > 2]
    for some, names in ((two, ["AIOLI", "VovkAzouryWarmuth", "FOLKLORE", "GAF", "ONS"]), (more, ["FOLKLORE", "GAF"])):
        for kind, read in (("loop", against_floor), ("call", against_floor), ("panels", of_rate)):
            wanted = [f"{name} {kind}" for name in names if any(f"{name} {kind}" in shape["times"] for shape in some)]
            kept = [shape for shape in some if any(name in shape["times"] for name in wanted)]
            if kept:
                out += [*block(kept, wanted, lambda times, name, read=read: read(times.get(name))), ""]
    for shape in more:
        times = shape["times"]
        if "plain NumPy" in times:
            ours = times["FOLKLORE call"]
            automatic = times["OnlineLogisticRegression call"]
            out += [
                f"FOLKLORE at d = {shape['d']}, K = {shape['K']}: {least_and_median(ours)} per row as called, "
                f"{100 * ours['of_product_rate']:.0f} % of the matrix product's",
                f"rate; plain NumPy (`benchmarks/plain_folklore.py`) takes {least_and_median(times['plain NumPy'])}, "
                f"{ratio(times, 'plain NumPy', 'FOLKLORE call'):.1f} times that.",
                f"`OnlineLogisticRegression` takes {least_and_median(automatic)}.",
                "",
            ]
    out += ["First-order learners, against one product and one step along the row:", ""]
    names = [name for name in result["first_order"][0]["times"] if name != "floor"]
    body = [
        [name, *(against_floor(shape["times"][name]) for shape in result["first_order"])] for name in ["floor", *names]
    ]
    out += [*table(["", *(f"d = {shape['d']}" for shape in result["first_order"])], body), ""]
    if few := result.get("sparse"):  # results of an earlier version lack it
        body = [[name, *(against_floor(shape["times"][name]) for shape in few)] for name in few[0]["times"]]
        out += ["The same on sparse rows among 2^18 columns, `partial_fit` and `predict_proba`:", ""]
        out += [*table(["", *(f"{shape['entries']} entries" for shape in few)], body), ""]
    functions = result["aggregation"]
    out += [
        f"`MirrorDescentAggregator` with {functions['functions']:,} base functions takes "
        f"{least_and_median(functions['times']['MirrorDescentAggregator call'])} per row,",
        f"{functions['of_floor']:.1f} times one softmax of as many numbers by NumPy.",
    ]
    return out
