"""(g) One row per call: forecast, then learn, as a service or a game against an adversary does.

The overhead of a learner is its time per row minus that of the same rows in one block, its own arithmetic. Rows come as
arrays, as every second number of a longer array (strided), as SciPy CSR rows and as dictionaries.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks.floors import a_stream
from benchmarks.page import goal, least_and_median, table
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
    OnlineLogisticRegression,
    Perceptron,
    StronglyConvexOGD,
    VovkAzouryWarmuth,
)

TITLE = "One row per call"
ENTRIES, COLUMNS = 30, 100_000
OVERHEAD, STRIDED = 1.5, 1.1
RIVER, PIPELINE, RIVER_SPARSE = "River SGD, dictionaries", "River pipeline, dictionaries", "River SGD, 30 entries"


def learners() -> list[Any]:
    return [
        AIOLI(),
        OGD(),
        LinearizedFTRL(),
        StronglyConvexOGD(),
        MirrorDescent(),
        ExponentiatedGradient(feature_bound=10.0),
        Perceptron(),
        VovkAzouryWarmuth(),
        ONS(),
        FOLKLORE(),
        GAF(),
    ]


def forecaster(learner: Any) -> Any:
    return learner.predict_proba_one if hasattr(learner, "predict_proba_one") else learner.predict_one


def one_by_one(learner: Any, rows: list[Any], labels: list[Any]) -> Contender:
    """Forecast and learn row after row, with a learner that has seen some rows."""
    say = forecaster(learner)

    def run() -> None:
        for x, label in zip(rows, labels, strict=True):
            say(x)
            learner.learn_one(x, label)

    return Contender(len(rows), run)


def in_a_block(learner: Any, X: Any, labels: np.ndarray) -> Contender:
    """The same rows, forecast and learned in one call each."""
    say = learner.predict_proba if hasattr(learner, "predict_proba") else learner.predict

    def run() -> None:
        say(X)
        learner.partial_fit(X, labels)

    return Contender(len(labels), run)


def some_sparse_rows(n: int) -> Any:
    rng = np.random.default_rng(1)
    columns = np.array([np.sort(rng.choice(COLUMNS, ENTRIES, replace=False)) for _ in range(n)], dtype=np.int32)
    values = rng.normal(size=n * ENTRIES) / ENTRIES**0.5
    return sparse.csr_matrix((values, columns.ravel(), np.arange(0, n * ENTRIES + 1, ENTRIES)), shape=(n, COLUMNS))


def measure(quick: bool) -> dict[str, Any]:
    """All numbers of the section."""
    with threadpool_limits(1):
        return _measured(300 if quick else 1000, 20, 0.5 if quick else 15.0)


def _measured(n: int, d: int, budget: float) -> dict[str, Any]:
    X, y = a_stream(n, d, 2)
    labels, wide = y.tolist(), np.repeat(X, 2, axis=1)
    names = [f"x{j}" for j in range(d)]
    dictionaries = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    contenders: dict[str, Contender] = {}
    for learner in learners():
        name, target = type(learner).__name__, y - 0.5 if isinstance(learner, VovkAzouryWarmuth) else y
        contenders[f"{name}, arrays"] = one_by_one(clone(learner).partial_fit(X, target), list(X), target.tolist())
        contenders[f"{name}, block"] = in_a_block(clone(learner).partial_fit(X, target), X, target)
        if name in ("AIOLI", "OGD"):
            strided = [row[::2] for row in wide]
            contenders[f"{name}, strided"] = one_by_one(clone(learner).partial_fit(X, target), strided, labels)
    for effort in ("low", "medium"):
        automatic = OnlineLogisticRegression(classes=[0, 1], effort=effort)
        name = f'OnlineLogisticRegression, effort="{effort}"'
        contenders[f"{name}, arrays"] = one_by_one(clone(automatic).partial_fit(X, y), list(X), labels)
        contenders[f"{name}, dictionaries"] = one_by_one(
            clone(automatic).partial_fit(dictionaries, y), dictionaries, labels
        )
    S = some_sparse_rows(n)
    rows = [S[i] for i in range(n)]
    for learner in (OGD(), LinearizedFTRL()):
        contenders[f"{type(learner).__name__}, CSR"] = one_by_one(learner.partial_fit(S, y), rows, labels)
    if importlib.util.find_spec("river"):
        from river import linear_model, preprocessing

        pipeline = preprocessing.StandardScaler() | linear_model.LogisticRegression()
        short = [dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in rows]
        contenders[RIVER] = one_by_one(linear_model.LogisticRegression(), dictionaries, labels)
        contenders[PIPELINE] = one_by_one(pipeline, dictionaries, labels)
        contenders[RIVER_SPARSE] = one_by_one(linear_model.LogisticRegression(), short, labels)
    times = in_turns(f"one row per call, d = {d}", contenders, budget)
    return {"d": d, "times": times, "goals": goals(times)}


def overhead(times: dict[str, Any], name: str) -> float:
    """Nanoseconds per row beyond those in a block."""
    return float(times[f"{name}, arrays"]["least_ns"] - times[f"{name}, block"]["least_ns"])


def goals(times: dict[str, Any]) -> list[dict[str, Any]]:
    others = [type(learner).__name__ for learner in learners() if not isinstance(learner, AIOLI)]
    worst = max(others, key=lambda name: overhead(times, name))
    found = [
        goal(
            f"one row per call, overhead over AIOLI's, at worst ({worst})",
            overhead(times, worst) / overhead(times, "AIOLI"),
            OVERHEAD,
            False,
        )
    ]
    for name in ("AIOLI", "OGD"):
        strided = ratio(times, f"{name}, strided", f"{name}, arrays")
        found.append(goal(f"{name}, strided rows over contiguous ones", strided, STRIDED, False))
    if RIVER not in times:
        return found
    for name in ("OGD", "LinearizedFTRL"):
        found.append(
            goal(
                f"{name}, CSR rows of {ENTRIES} entries, over River's SGD",
                ratio(times, f"{name}, CSR", RIVER_SPARSE),
                1,
                False,
            )
        )
    for effort in ("low", "medium"):
        for form in ("arrays", "dictionaries"):
            name = f'OnlineLogisticRegression, effort="{effort}", {form}'
            found.append(goal(f"{name}, over River's pipeline", ratio(times, name, PIPELINE), 1, False))
    return found


def markdown(result: dict[str, Any]) -> list[str]:
    """The section as Markdown."""
    times = result["times"]
    body = [
        [name, least_and_median(figure), f"{figure['least_ns'] / times['AIOLI, arrays']['least_ns']:.2f} x"]
        for name, figure in times.items()
    ]
    return [
        f"One forecast and one update per row, d = {result['d']}, two classes; `block` is the same in one call each.",
        "",
        *table(["", "per row (median)", "of AIOLI"], body),
    ]
