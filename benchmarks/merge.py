"""docs/merging.md: merged learners against one pass and against their parts; the cost of learning in shards.

    python -m benchmarks.merge

Variants of the rule were compared on the synthetic streams, on streams like RARE with other shares and sizes and on the
data sets SEEN; RARE and UNSEEN came after the choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, softmax
from sklearn.base import clone

from benchmarks.page import put, table
from regretless import AIOLI, FOLKLORE, GAF, best_in_hindsight, fit_sharded, load_dataset, merge
from regretless.core.types import Array
from regretless.theory.domains import Ball

PAGE = Path(__file__).parent.parent / "docs" / "merging.md"
PARTS = 8
SEEDS = 5
NEW_ROWS = 10_000
TRIED = 500  # rows for rule="rows", or a quarter of the new ones
SYNTHETIC = [  # learner, classes, features, rows
    *((AIOLI(radius=B), 2, d, n) for B in (2.0, 5.0, 20.0) for d, n in ((5, 500), (20, 500), (20, 4000))),
    *((FOLKLORE(radius=B), 3, d, n) for B in (2.0, 5.0, 20.0) for d, n in ((5, 500), (5, 4000), (20, 4000))),
    *((GAF(radius=B), 2, 5, n) for B in (2.0, 5.0) for n in (500, 4000)),
]
RARE = [  # learner, features, rows; two classes
    (kind(radius=B), 10, n) for kind in (AIOLI, FOLKLORE) for B in (10.0, 30.0) for n in (2000, 6000)
]
SHARE = 0.02  # of the rare class
SEEN = ("digits", "pendigits", "a9a", "breast-cancer", "wine", "vehicle", "segment")
UNSEEN = ("iris", "phishing", "mushrooms", "satimage")
MOST_ROWS = 8000
RADII = (3.0, 10.0, 30.0)

N, D, RADIUS = 65_536, 10, 5.0
SHARDS = (2, 8, 32)
SYNCS = (8, 128, 2048, None)


class Stream(NamedTuple):
    """Rows to learn and new rows."""

    X: Array
    y: Any
    tried_X: Array
    tried_y: Any
    new_X: Array
    new_y: Any
    least: float  # the mean loss of the true model on the new rows, or 0


def cut(X: Array, y: Any, n: int, p: Array | None = None) -> Stream:
    """The first n rows are learned; the next ones are for rule="rows", and the others are new."""
    tried = n + min(TRIED, (len(y) - n) // 4)
    least = 0.0 if p is None else mean_loss(p[tried:], y[tried:])
    return Stream(X[:n], y[:n], X[n:tried], y[n:tried], X[tried:], y[tried:], least)


def mean_loss(p: Array, y: Any) -> float:
    """The mean log loss."""
    return float(-np.log(p[np.arange(len(y)), y]).mean())


def synthetic(seed: int, K: int, d: int, n: int, radius: float) -> Stream:
    """Labels drawn from a logistic model whose weights have norms of 0.8 radius."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + NEW_ROWS, d)) / np.sqrt(d)
    W = rng.normal(size=(K, d))
    W *= 0.8 * radius / np.linalg.norm(W, axis=1, keepdims=True)
    W[0] *= K > 2  # two classes: the margin's weights
    p = softmax(X @ W.T, axis=1)
    y = (p.cumsum(axis=1) < rng.random((len(X), 1))).sum(axis=1)
    return cut(X, y, n, p)


def rare(seed: int, d: int, n: int) -> Stream:
    """A logistic model with a constant column and slopes of norm 4; SHARE of the rows have label 1."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n + NEW_ROWS, d)) / np.sqrt(d), np.ones(n + NEW_ROWS)]) / np.sqrt(2)
    w = rng.normal(size=d)
    z = X[:, :d] @ w * (4.0 / np.linalg.norm(w))
    z += brentq(lambda constant: expit(z + constant).mean() - SHARE, -50.0, 50.0)
    p = np.column_stack([expit(-z), expit(z)])
    return cut(X, (rng.random(len(z)) < p[:, 1]).astype(int), n, p)


def data_set(name: str, seed: int) -> Stream:
    """70% of the rows to learn, at most MOST_ROWS; columns standardised, a constant, and the largest row of norm 1."""
    found = load_dataset(name)
    X = found.X.toarray() if hasattr(found.X, "toarray") else np.asarray(found.X, dtype=float)
    y = np.unique(found.y, return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order], y[order]
    spread = X.std(axis=0)
    X = np.column_stack([(X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), np.ones(len(X))])
    X /= np.linalg.norm(X, axis=1).max()
    n = min(int(0.7 * len(y)), MOST_ROWS)
    return cut(X[: n + NEW_ROWS], y[: n + NEW_ROWS], n)


def losses(learner: Any, stream: Stream) -> list[float]:
    """Mean losses of new rows: one pass, the mean and the best of the parts, the three rules."""
    classes = np.unique(np.concatenate([stream.y, stream.tried_y, stream.new_y]))

    def above(fitted: Any) -> float:
        return mean_loss(fitted.predict_proba(stream.new_X), stream.new_y) - stream.least

    parts = [clone(learner).fit(stream.X[i::PARTS], stream.y[i::PARTS], classes=classes) for i in range(PARTS)]
    each = [above(part) for part in parts]
    once = clone(learner).fit(stream.X, stream.y, classes=classes)
    by_rows = merge(parts, rule="rows", X=stream.tried_X, y=stream.tried_y)
    merged = [merge(parts, rule="sum"), by_rows, merge(parts)]
    return [above(once), float(np.mean(each)), min(each), *map(above, merged)]


def row(name: str, learner: Any, streams: list[Stream]) -> list[str]:
    """One line of the table; losses times 1000."""
    found = 1000 * np.mean([losses(learner, stream) for stream in streams], axis=0)
    cells = [name, type(learner).__name__, f"{learner.radius:g}", *(f"{x:.1f}" for x in found)]
    print(*cells, flush=True)
    return [*cells, f"{found[-1] / found[0]:.2f}"]


def quality() -> Iterator[list[str]]:
    """Every stream and learner."""
    for learner, K, d, n in SYNTHETIC:
        streams = [synthetic(seed, K, d, n, learner.radius) for seed in range(SEEDS)]
        yield row(f"K = {K}, d = {d}, n = {n}", learner, streams)
    for learner, d, n in RARE:
        yield row(f"{SHARE:.0%} of one class, d = {d}, n = {n}*", learner, [rare(seed, d, n) for seed in range(SEEDS)])
    for name in SEEN + UNSEEN:
        stream = data_set(name, 0)
        two = len(np.unique(stream.y)) == 2
        for radius in RADII:
            for learner in [AIOLI(radius=radius)] * two + [FOLKLORE(radius=radius)]:
                yield row(name + "*" * (name in UNSEEN), learner, [stream])


def shards() -> tuple[str, list[list[str]]]:
    """The total loss of `fit_sharded` above that of one pass, and the certificate."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) / np.sqrt(D)
    weights = rng.normal(size=D)
    weights *= 4.0 / np.linalg.norm(weights)
    y = rng.random(N) < 1 / (1 + np.exp(-X @ weights))
    one = AIOLI(radius=RADIUS).fit(X, y)
    best = best_in_hindsight(X, y, domain=Ball(RADIUS))
    body = []
    for n_shards in SHARDS:
        games = [fit_sharded(AIOLI(radius=RADIUS), X, y, n_shards, sync_every=m) for m in SYNCS]
        cells = [f"{game.total_loss_ - one.total_loss_:.1f} ({game.regret_certificate():.0f})" for game in games]
        body.append([str(n_shards), *cells])
    regret = f"One pass has a regret of {one.total_loss_ - best.loss:.1f} (certificate {one.regret_certificate():.0f})."
    return regret, body


def main() -> None:
    """Write both tables."""
    heads = ["stream", "learner", "B", "one pass", "mean part", "best part"]
    heads += ["sum", "rows", "balanced", "balanced / one pass"]
    put("<!-- merge -->", "<!-- /merge -->", table(heads, list(quality()), (0, 1)), "", PAGE)
    regret, body = shards()
    heads = ["shards", *("end" if m is None else f"m = {m}" for m in SYNCS)]
    put("<!-- shards -->", "<!-- /shards -->", [regret, "", *table(heads, body)], "", PAGE)


if __name__ == "__main__":
    main()
