"""(e) Quality per second: the progressive log loss of each contender against its wall time.

Every row is forecast before its label is used. A contender is a generator: it yields the probabilities of the true
labels of the rows it has just processed, and the time is taken at each yield; the loss so far is computed later. Rows
are converted (to dictionaries or text) before. All contenders have default parameters, know the classes, and run as in
the quality table: River after its StandardScaler; scikit-learn after a StandardScaler that has seen the features of the
rows, ten rows at a time; Vowpal Wabbit from text.

AIOLI and FOLKLORE get rows standardised by a running StandardScaler that has seen the features of the block, clipped at
4 standard deviations, divided by sqrt(d) and with a constant column, in blocks of 200 rows. The stream of clicks, with
2^18 sparse columns, is for the first-order learners; all its columns are 0 or 1 and are not scaled.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.sparse import vstack
from scipy.special import expit
from threadpoolctl import threadpool_limits

from benchmarks.clicks import NONZEROS, clicks
from benchmarks.page import count, table
from benchmarks.quality import STREAMS, Rows, first, is_there, mean_loss
from benchmarks.timing import progress
from regretless import AIOLI, FOLKLORE, OGD, LinearizedFTRL, OnlineLogisticRegression
from regretless.core.types import Array

TITLE = "Quality per second"
Player = Callable[[Rows], Iterator[Array]]
CHECKPOINTS = 12
BLOCK = 200


def blocks(rows: Rows, size: int) -> Iterator[tuple[Any, np.ndarray]]:
    for start in range(0, rows.y.size, size):
        yield rows.X[start : start + size], rows.y[start : start + size]


# ---------------------------------------------------------------------- contenders


def automatic(rows: Rows) -> Iterator[Array]:
    learner = OnlineLogisticRegression(classes=list(range(rows.K)))
    for X, y in blocks(rows, BLOCK):
        yield learner.predict_then_learn(X, y)[np.arange(y.size), y]


def second_order(rows: Rows) -> Iterator[Array]:
    from sklearn.preprocessing import StandardScaler

    learner: Any = AIOLI() if rows.K == 2 else FOLKLORE()
    scaler, classes = StandardScaler(), np.arange(rows.K)
    for X, y in blocks(rows, BLOCK):
        Z = np.clip(scaler.partial_fit(X).transform(X), -4.0, 4.0) / np.sqrt(X.shape[1])
        Z = np.column_stack([Z, np.ones(y.size)])
        yield learner.predict_then_learn(Z, y, classes=classes)[np.arange(y.size), y]


def plain(learner: Callable[[], Any]) -> Player:
    """A learner on the unscaled rows."""

    def play(rows: Rows) -> Iterator[Array]:
        fresh, classes = learner(), np.arange(rows.K)
        for X, y in blocks(rows, 1000):
            yield fresh.predict_then_learn(X, y, classes=classes)[np.arange(y.size), y]

    return play


def river(rows: Rows) -> Iterator[Array]:
    from river import linear_model, preprocessing

    model: Any = linear_model.LogisticRegression()
    labels = (rows.y == 1).tolist()
    if rows.K > 2:
        model, labels = linear_model.SoftmaxRegression(), rows.y.tolist()
        for label in range(rows.K):  # declares the classes
            model.weights[label]
    pipeline = preprocessing.StandardScaler() | model
    X = [dict(enumerate(row)) for row in rows.X.tolist()]
    yield np.zeros(0)
    for start in range(0, len(labels), BLOCK):
        p = []
        for x, label in zip(X[start : start + BLOCK], labels[start : start + BLOCK], strict=True):
            p.append(pipeline.predict_proba_one(x)[label])
            pipeline.learn_one(x, label)
        yield np.array(p)


def wabbit(rows: Rows) -> Iterator[Array]:
    from vowpalwabbit import Workspace

    targets = (2 * rows.y - 1 if rows.K == 2 else rows.y + 1).tolist()
    if isinstance(rows.X, np.ndarray):
        texts = [" ".join(f"{j}:{v:.9g}" for j, v in enumerate(x.tolist()) if v) for x in rows.X]
    else:
        texts = [" ".join(map(str, ids.tolist())) for ids in rows.X.indices.reshape(-1, NONZEROS)[:, 1:]]
    lines = [f"{target} | {text}" for target, text in zip(targets, texts, strict=True)]
    many = f"--oaa {rows.K} --probabilities" if rows.K > 2 else ""
    model = Workspace(f"--loss_function=logistic -b 18 {many} --quiet")
    yield np.zeros(0)
    for start in range(0, len(lines), BLOCK):
        said = []
        for line in lines[start : start + BLOCK]:
            example = model.parse(line)
            model.learn(example)  # returns the prediction before the update
            said.append(example.get_prediction())
            model.finish_example(example)
        p, some = np.array(said), slice(start, start + BLOCK)
        yield expit(p * targets[some]) if rows.K == 2 else p[np.arange(p.shape[0]), rows.y[some]]
    model.finish()


def scikit(rows: Rows) -> Iterator[Array]:
    from sklearn import config_context
    from sklearn.linear_model import SGDClassifier
    from sklearn.preprocessing import StandardScaler

    dense, classes = isinstance(rows.X, np.ndarray), np.arange(rows.K)
    model: Any = SGDClassifier(loss="log_loss", random_state=np.random.RandomState(0))
    scaler = StandardScaler()
    with config_context(skip_parameter_validation=True, assume_finite=True):
        for i, (X, y) in enumerate(blocks(rows, 10 if dense else 1000)):
            Z = scaler.partial_fit(X).transform(X) if dense else X
            p = model.predict_proba(Z)[np.arange(y.size), y] if i else np.full(y.size, 1.0 / rows.K)
            model.partial_fit(Z, y, classes=classes)
            yield p


# ---------------------------------------------------------------------- running


def clicks_rows(n: int) -> tuple[Rows, dict[str, float]]:
    """The rows, and the losses of two references: the model that generated the labels, and the base rate."""
    found = list(clicks(n))
    y, truth = np.concatenate([block.y for block in found]), np.concatenate([block.truth for block in found])
    known = {
        "the true model": mean_loss(np.where(y == 1, truth, 1.0 - truth)),
        "the base rate": mean_loss(np.where(y == 1, y.mean(), 1.0 - y.mean())),
    }
    return Rows(vstack([block.X for block in found]).tocsr(), y, 2), known


def game(player: Player, rows: Rows) -> tuple[Array, Array, Array]:
    """Seconds and rows at each yield, and the probability of every true label.

    The part of a player before a first empty yield is preparation, and is not timed.
    """
    seconds, counts, said = [], [], []
    started = time.perf_counter()
    for p in player(rows):
        now = time.perf_counter()
        if p.size == 0:
            started = now
            continue
        seconds.append(now - started)
        counts.append(p.size)
        said.append(p)
    return np.array(seconds), np.cumsum(counts), np.concatenate(said)


def curve(seconds: Array, counts: Array, p: Array) -> dict[str, list[float]]:
    """The loss so far at a few times, evenly spaced in the logarithm of rows."""
    losses = -np.log(np.clip(np.nan_to_num(p), 1e-15, 1.0))
    so_far = np.cumsum(losses)[counts - 1] / counts
    wanted = np.geomspace(counts[0], counts[-1], CHECKPOINTS)
    at = np.unique(np.searchsorted(counts, wanted - 0.5))
    return {"seconds": seconds[at].tolist(), "rows": counts[at].tolist(), "loss": so_far[at].tolist()}


def seconds_until(seconds: Array, counts: Array, p: Array, level: float) -> float | None:
    """The time after which the loss so far stays at or below a level; None if there is none."""
    losses = -np.log(np.clip(np.nan_to_num(p), 1e-15, 1.0))
    above = np.flatnonzero(np.cumsum(losses)[counts - 1] / counts > level * (1.0 + 1e-12))
    if above.size == 0:
        return float(seconds[0])
    return float(seconds[above[-1] + 1]) if above[-1] + 1 < seconds.size else None


def a_stream(name: str, rows: Rows, players: dict[str, Player], repeats: int) -> dict[str, Any]:
    for player in players.values():  # compiles and imports
        for _ in player(first(rows, 400)):
            pass
    games: dict[str, list[tuple[Array, Array, Array]]] = {each: [] for each in players}
    for i in range(repeats):
        for each, player in players.items():
            progress(f"quality per second: {name}, {each}, round {i + 1}")
            games[each].append(game(player, rows))
    final = {each: mean_loss(played[0][2]) for each, played in games.items()}
    rivals = [each for each in players if each in RIVALS]
    level = min((final[each] for each in rivals), default=None)
    lines = {}
    for each, played in games.items():
        fastest = min(played, key=lambda one: one[0][-1])
        ends = [float(one[0][-1]) for one in played]
        lines[each] = {
            "loss": final[each],
            "seconds": min(ends),
            "seconds_median": statistics.median(ends),
            "repeats": repeats,
            "seconds_to_best_rival": None if level is None else seconds_until(*fastest, level),
            "curve": curve(*fastest),
        }
    n, d = rows.X.shape
    return {"stream": name, "rows": n, "features": d, "classes": rows.K, "best_rival_loss": level, "lines": lines}


RIVALS: dict[str, tuple[str, Player]] = {
    "River": ("river", river),
    "VW": ("vowpalwabbit", wabbit),
    "scikit-learn SGD": ("sklearn", scikit),
}


def measure(quick: bool) -> dict[str, Any]:
    """All numbers of the section."""
    missing = [name for name, (package, _) in RIVALS.items() if not find_spec(package)]
    for name in missing:
        progress(f"quality per second: {name} is not installed, skipped")
    rivals = {name: play for name, (_, play) in RIVALS.items() if name not in missing}
    names = ["a9a", "elec2", "digits"]
    absent = [name for name in names if not is_there(name)]
    for name in absent:
        progress(f"quality per second: {name} is not in the folder REGRETLESS_DATA, skipped")
    streams, repeats = [], 1 if quick else 2
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow warnings of scikit-learn and River
        for name in names:
            if name in absent:
                continue
            rows = first(STREAMS[name](0), 600 if quick else None)
            surrogate = "AIOLI" if rows.K == 2 else "FOLKLORE"
            players: dict[str, Player] = {"OnlineLogisticRegression": automatic, surrogate: second_order, **rivals}
            streams.append(a_stream(name, rows, players, repeats))
        players = {"OGD": plain(OGD), "LinearizedFTRL": plain(LinearizedFTRL)}
        players |= {name: play for name, play in rivals.items() if name != "River"}
        rows, known = clicks_rows(2000 if quick else 30_000)
        streams.append({**a_stream("clicks", rows, players, repeats), "known": known})
    return {"streams": streams, "missing": missing, "absent": absent, "goals": []}


def markdown(result: dict[str, Any]) -> list[str]:
    """The section as Markdown."""
    out = [
        "Mean progressive log loss of the whole stream and its wall time, with default parameters, in one order. The",
        "last column is the time after which a contender's loss so far stays at or below the final loss of the",
        "best rival. docs/benchmarks.json has the loss over time. AIOLI and FOLKLORE get rows",
        "standardised by a running scaler, whose time is included, as for River and scikit-learn.",
    ]
    out += [f"{name} was not installed." for name in result["missing"]]
    out += [f"{name} was not available." for name in result["absent"]]
    for stream in result["streams"]:
        body = []
        for name, line in stream["lines"].items():
            reached = line["seconds_to_best_rival"]
            cells = [name, f"{line['loss']:.4f}", f"{line['seconds']:.2f} ({line['seconds_median']:.2f})"]
            cells.append(count(stream["rows"] / line["seconds"]))
            body.append([*cells, "never" if reached is None else f"{reached:.2f} s"])
        about = f"{stream['rows']:,} rows, {stream['features']:,} features, {stream['classes']} classes"
        heads = ["", "log loss", "seconds (median)", "rows/s", "at the best rival's loss from"]
        out += ["", f"{stream['stream']}, {about}:", "", *table(heads, body)]
        if "known" in stream:
            known = " and ".join(f"{name} {loss:.4f}" for name, loss in stream["known"].items())
            out += ["", f"For comparison, {known}."]
    return out
