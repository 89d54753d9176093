"""Log loss of OnlineLogisticRegression, without tuning, against River, Vowpal Wabbit and scikit-learn's SGD.

    python -m benchmarks.quality --streams iris wine breast_cancer        # a minute
    REGRETLESS_DATA=folder python -m benchmarks.quality --cache rivals.json --write

Every row is forecast before its label is used; the score is the mean of -ln(probability of the true class), clipped at
1e-15 for all contenders, over all rows, and then over several orders of the rows (or draws of a synthetic stream). All
contenders get the columns unscaled and know the classes. Rivals run with their defaults, and tuned: the best of a grid
of learning rates, the default included, chosen in hindsight, which is not possible on a running stream.

regretless: `OnlineLogisticRegression(classes=...)` and `predict_then_learn`.
River: `StandardScaler() | LogisticRegression()`, or `SoftmaxRegression()` for more than two classes. Rows are forecast
with the scaler before its update, as in River's pipelines. It is plain Python: on long streams the grid is run on the
first rows (20,000, or fewer with many features and classes), and the best three on all rows.
Vowpal Wabbit: `--loss_function=logistic`, or `--oaa K --probabilities` with it; it scales by itself. `--link=logistic`
is applied here, in double precision, so that forecasts near 0 and 1 are not rounded.
scikit-learn: `SGDClassifier(loss="log_loss")` after a `StandardScaler` that has seen the features of the row. Both get
one row at a time up to 4,000 rows, and ten at a time beyond (its calls cost more than its steps).

Streams: scikit-learn's data sets, synthetic ones, and public data sets in svmlight format from the folder in the
environment variable REGRETLESS_DATA. The losses of rivals are cached in the file given by --cache.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit, softmax
from threadpoolctl import threadpool_limits

from benchmarks import page
from regretless import OnlineLogisticRegression
from regretless.core.types import Array
from regretless.streams import adversarial

FILES = {
    "vehicle": "vehicle.scale",
    "segment": "segment.scale",
    "satimage": "satimage.scale.gz",
    "pendigits": "pendigits",
    "mushrooms": "mushrooms.gz",
    "phishing": "phishing.gz",
    "letter": "letter.scale.gz",
    "elec2": "elec2.gz",
    "a9a": "a9a.gz",
    "shuttle": "shuttle.scale.gz",
}
BUNDLED = ("iris", "wine", "breast_cancer", "digits")
LONG = 20_000  # rows: longer streams are run in one order only,
WIDE = 200_000  # as are those with more rows x classes
SINGLY = 4_000  # rows: on longer streams scikit-learn gets ten rows at a time
CONSTANT = " +1"  # River's softmax has no intercept: these settings get a constant column
RIVER_WORK = 2_500_000  # rows x features x vectors of weights that River's rates are picked on
BEGIN, END = "<!-- quality: begin, written by python -m benchmarks.quality --write -->", "<!-- quality: end -->"


class Rows(NamedTuple):
    X: Array
    y: np.ndarray  # 0, 1, ..., K - 1
    K: int
    names: list[str] | None = None  # of one category per row, in a column after X


# ---------------------------------------------------------------------- streams: seed -> rows in order


def shuffled(X: Any, y: np.ndarray, seed: int, passes: int = 1) -> Rows:
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(y.size) for _ in range(passes)])
    labels, y = np.unique(y, return_inverse=True)
    return Rows(np.ascontiguousarray(X[order]), y[order], labels.size)


def bundled(name: str, seed: int, passes: int = 1) -> Rows:
    """Unscaled columns; the library's streams of the same names are standardised in hindsight."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return shuffled(X, y, seed, passes)


def from_file(name: str, seed: int) -> Rows:
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(Path(os.environ["REGRETLESS_DATA"]) / FILES[name]))
    if name == "elec2":  # in time order
        return Rows(X.toarray(), np.unique(y, return_inverse=True)[1], 2)
    return shuffled(X.toarray(), y, seed)


def logistic(n: int, d: int, seed: int, relevant: int | None = None, norm: float = 2.2) -> Rows:
    """Normal rows, and labels of a logistic model with `relevant` nonzero weights."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=d) * (np.arange(d) < (relevant or d))
    w *= norm / np.linalg.norm(w)
    X = rng.normal(size=(n, d))
    return Rows(X, (rng.random(n) < expit(X @ w)).astype(np.int64), 2)


def multinomial(n: int, d: int, K: int, seed: int) -> Rows:
    """The same with K classes, whose weights have norm 2.2 each."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(K, d))
    W *= 2.2 / np.linalg.norm(W, axis=1, keepdims=True)
    X = rng.normal(size=(n, d))
    p = softmax(X @ W.T, axis=1)
    return Rows(X, np.minimum((rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1), K - 1), K)


def unscaled(n: int, d: int, seed: int) -> Rows:
    """Columns of sizes between 10^-6 and 10^6, with means of about three standard deviations."""
    rows = logistic(n, d, seed)
    rng = np.random.default_rng(1000 + seed)
    scale, shift = 10.0 ** rng.uniform(-6.0, 6.0, size=d), 3.0 * rng.normal(size=d)
    return rows._replace(X=(rows.X + shift) * scale)


def hard(n: int, seed: int) -> Rows:
    stream = adversarial(n, seed)
    return Rows(stream.X, (stream.y == 1).astype(np.int64), 2)


def rare(n: int, d: int, rate: float, seed: int) -> Rows:
    """Normal rows and a logistic model with weights of norm 1, in which about `rate` of the labels are positive."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=d)
    X, start = rng.normal(size=(n, d)), np.log(rate / (1.0 - rate)) - 0.5
    return Rows(X, (rng.random(n) < expit(X @ (w / np.linalg.norm(w)) + start)).astype(np.int64), 2)


def one_hot(n: int, fields: int, levels: int, seed: int) -> Rows:
    """Fields of `levels` categories each, by a Zipf law, in 0/1 columns; normal effects; few positive labels."""
    rng = np.random.default_rng(seed)
    found = rng.choice(levels, size=(n, fields), p=zipf(levels))
    score = -3.0 + 0.5 * rng.normal(size=(fields, levels))[np.arange(fields), found].sum(axis=1)
    return Rows(np.eye(levels)[found].reshape(n, -1), (rng.random(n) < expit(score)).astype(np.int64), 2)


def category(n: int, levels: int, seed: int) -> Rows:
    """Five normal columns and one of categories by a Zipf law, each with a normal effect."""
    rng = np.random.default_rng(seed)
    w, X, found = rng.normal(size=5), rng.normal(size=(n, 5)), rng.choice(levels, size=n, p=zipf(levels))
    score = X @ (w / np.linalg.norm(w)) + rng.normal(size=levels)[found]
    return Rows(X, (rng.random(n) < expit(score)).astype(np.int64), 2, [f"level {i}" for i in found])


def zipf(levels: int) -> Array:
    p: Array = 1.0 / np.arange(1, levels + 1)
    return p / p.sum()


DRAWN: dict[str, Callable[[int], Rows]] = {
    "digits_5_passes": lambda seed: bundled("digits", seed, passes=5),
    "sparse_signal": lambda seed: logistic(10_000, 50, seed, relevant=3),
    "adversarial": lambda seed: hard(10_000, seed),
    "unscaled": lambda seed: unscaled(20_000, 20, seed),
    "softmax_K5": lambda seed: multinomial(20_000, 20, 5, seed),
    "logistic_d20": lambda seed: logistic(100_000, 20, seed),
    "logistic_d100": lambda seed: logistic(50_000, 100, seed),
    "rare_1_percent": lambda seed: rare(10_000, 20, 0.01, seed),
    "one_hot_500": lambda seed: one_hot(10_000, 25, 20, seed),
    "category_5000": lambda seed: category(20_000, 5_000, seed),
}
STREAMS: dict[str, Callable[[int], Rows]] = {
    **{name: lambda seed, name=name: bundled(name, seed) for name in BUNDLED},
    **{name: lambda seed, name=name: from_file(name, seed) for name in FILES},
    **DRAWN,
}


def is_there(name: str) -> bool:
    return name not in FILES or (Path(os.environ.get("REGRETLESS_DATA", "/nowhere")) / FILES[name]).exists()


# ---------------------------------------------------------------------- contenders: probabilities of the true class


def mean_loss(p: Any) -> float:
    """NaN counts as 0."""
    return float(-np.mean(np.log(np.clip(np.nan_to_num(np.asarray(p, dtype=np.float64)), 1e-15, 1.0))))


def regretless(rows: Rows) -> float:
    X: Any = rows.X
    if rows.names is not None:
        X = [dict(enumerate([*x, name])) for x, name in zip(rows.X.tolist(), rows.names, strict=True)]
    p = OnlineLogisticRegression(classes=list(range(rows.K))).predict_then_learn(X, rows.y)
    return mean_loss(p[np.arange(rows.y.size), rows.y])


def river(rows: Rows, settings: list[str]) -> list[float]:
    """All settings in one pass, because they share the scaler; one that overflows has lost."""
    from river import linear_model, optim, preprocessing

    def model(setting: str) -> Any:
        optimizer = None
        if setting != "default":
            kind, rate = setting.removesuffix(CONSTANT).split()
            optimizer = getattr(optim, kind)(float(rate))
        if rows.K == 2:
            return linear_model.LogisticRegression(optimizer=optimizer)
        learner = linear_model.SoftmaxRegression(optimizer=optimizer)
        for label in range(rows.K):  # declares the classes; otherwise a first label would have probability 0
            learner.weights[label]
        return learner

    models: list[Any] = [model(setting) for setting in settings]
    p = np.zeros((len(models), rows.y.size))
    scaler, constant = preprocessing.StandardScaler(), {rows.X.shape[1]: 1.0}
    labels = (rows.y == 1).tolist() if rows.K == 2 else rows.y.tolist()
    for t, label in enumerate(labels):
        x = dict(enumerate(rows.X[t].tolist()))
        before = scaler.transform_one(x)
        scaler.learn_one(x)
        after = scaler.transform_one(x)
        for i, learner in enumerate(models):
            if learner is None:
                continue
            more = constant if settings[i].endswith(CONSTANT) else {}
            if rows.names is not None:
                more = more | {rows.names[t]: 1.0}
            try:
                p[i, t] = learner.predict_proba_one(before | more)[label]
                learner.learn_one(after | more, label)
            except (ArithmeticError, ValueError):
                models[i] = None
    return [mean_loss(one) if learner is not None else float("inf") for one, learner in zip(p, models, strict=True)]


def wabbit(rows: Rows, settings: list[str]) -> list[float]:
    from vowpalwabbit import Workspace

    targets = (2 * rows.y - 1 if rows.K == 2 else rows.y + 1).tolist()
    lines = [
        f"{target} | " + " ".join(f"{j}:{v:.9g}" for j, v in enumerate(x.tolist()) if v)
        for target, x in zip(targets, rows.X, strict=True)
    ]
    if rows.names is not None:
        lines = [f"{line} {name.replace(' ', '_')}" for line, name in zip(lines, rows.names, strict=True)]
    losses = []
    for setting in settings:
        many = f"--oaa {rows.K} --probabilities" if rows.K > 2 else ""
        rate = "" if setting == "default" else setting
        model = Workspace(f"--loss_function=logistic {many} {rate} --quiet")
        said = []
        for line in lines:
            example = model.parse(line)
            model.learn(example)  # returns the prediction before the update
            said.append(example.get_prediction())
            model.finish_example(example)
        model.finish()
        p = np.array(said)
        losses.append(mean_loss(expit(p * targets) if rows.K == 2 else p[np.arange(rows.y.size), rows.y]))
    return losses


def scikit(rows: Rows, settings: list[str]) -> list[float]:
    from sklearn import config_context
    from sklearn.linear_model import SGDClassifier
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    rng = np.random.RandomState(0)  # a generator: a seed would be unpacked at every call

    def model(setting: str) -> Any:
        if setting == "default":
            return SGDClassifier(loss="log_loss", random_state=rng)
        rate = float(setting.split()[1])
        return SGDClassifier(loss="log_loss", random_state=rng, learning_rate="constant", eta0=rate)

    n, classes = rows.y.size, np.arange(rows.K)
    block = 1 if n <= SINGLY else 10
    models: list[Any] = [model(setting) for setting in settings]
    p = np.full((len(models), n), 1.0 / rows.K)
    scaler = StandardScaler()
    columns = None if rows.names is None else OneHotEncoder().fit_transform(np.array(rows.names)[:, None]).tocsr()
    with config_context(skip_parameter_validation=True, assume_finite=True):
        for start in range(0, n, block):
            X, y = rows.X[start : start + block], rows.y[start : start + block]
            Z = scaler.partial_fit(X).transform(X)
            if columns is not None:
                Z = sparse.hstack([Z, columns[start : start + block]], format="csr")
            for i, learner in enumerate(models):
                if learner is None:
                    continue
                try:
                    if start:
                        p[i, start : start + block] = learner.predict_proba(Z)[np.arange(y.size), y]
                    learner.partial_fit(Z, y, classes=None if start else classes)
                except ValueError:  # its weights overflowed
                    models[i] = None
    return [mean_loss(one) if learner is not None else float("inf") for one, learner in zip(p, models, strict=True)]


class Rival(NamedTuple):
    name: str
    package: str
    play: Callable[[Rows, list[str]], list[float]]
    grid: list[str]


RIVALS = [
    Rival(
        "River",
        "river",
        river,
        [f"SGD {rate}" for rate in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)]
        + [f"AdaGrad {rate}" for rate in (0.03, 0.1, 0.3, 1.0)]
        + [f"Adam {rate}" for rate in (0.001, 0.01, 0.1)]
        + [f"AdaGrad {rate}{CONSTANT}" for rate in (0.1, 0.3, 1.0)],
    ),
    Rival("VW", "vowpalwabbit", wabbit, [f"-l {rate}" for rate in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)]),
    Rival("sklearn", "scikit-learn", scikit, [f"eta0 {rate}" for rate in (0.001, 0.01, 0.1)]),
]


# ---------------------------------------------------------------------- running


class Cache:
    """Losses of rivals, by stream, rows, seed, version and setting."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.losses: dict[str, float] = json.loads(path.read_text()) if path and path.exists() else {}

    def play(self, stream: str, seed: int, rows: Rows, rival: Rival, settings: list[str]) -> dict[str, float]:
        start = f"{stream} | {rows.y.size} rows | {seed} | {rival.package} {version(rival.package)}"
        missing = [setting for setting in settings if f"{start} | {setting}" not in self.losses]
        if missing:
            for setting, loss in zip(missing, rival.play(rows, missing), strict=True):
                self.losses[f"{start} | {setting}"] = loss
            if self.path:
                self.path.write_text(json.dumps(self.losses, indent=0) + "\n")
        return {setting: self.losses[f"{start} | {setting}"] for setting in settings}


def first(rows: Rows, n: int | None) -> Rows:
    return rows._replace(X=rows.X[:n], y=rows.y[:n], names=rows.names and rows.names[:n])


def averages(losses: list[dict[str, float]]) -> dict[str, float]:
    return {setting: float(np.mean([one[setting] for one in losses])) for setting in losses[0]}


def against(stream: str, orders: list[Rows], rival: Rival, tuned: bool, cache: Cache) -> dict[str, float]:
    """Mean losses by setting: the default and the grid, or the default and the three best on the first rows."""

    def played(settings: list[str], n: int | None = None) -> dict[str, float]:
        return averages([cache.play(stream, seed, first(rows, n), rival, settings) for seed, rows in enumerate(orders)])

    if not tuned:
        return played(["default"])
    n, d, K = *orders[0].X.shape, orders[0].K
    grid = [setting for setting in rival.grid if K > 2 or not setting.endswith(CONSTANT)]
    most = min(LONG, RIVER_WORK // (d * (1 if K == 2 else K)))
    if rival.name != "River" or n <= most:
        return played(["default", *grid])
    picking = played(grid, most)
    return played(["default", *sorted(picking, key=picking.__getitem__)[:3]])


class Line(NamedTuple):
    stream: str
    rows: int
    orders: int
    features: int
    classes: int
    ours: float
    default: tuple[str, float] | None
    tuned: tuple[str, float] | None


def compare(name: str, n_orders: int, n_rows: int | None, rivals: list[Rival], tuned: bool, cache: Cache) -> Line:
    rows = first(STREAMS[name](0), n_rows)
    n, d = rows.X.shape
    seeds = 1 if n > LONG or n * rows.K > WIDE or name == "elec2" else n_orders
    orders = [rows, *(first(STREAMS[name](seed), n_rows) for seed in range(1, seeds))]
    started = time.perf_counter()
    ours = float(np.mean([regretless(one) for one in orders]))
    seconds = time.perf_counter() - started
    print(f"\n{name}: {n:,} rows, {d} features, {rows.K} classes, {seeds} order{'s' * (seeds > 1)}")
    print(f"  {'regretless':8} {ours:.5f}   ({seconds:.0f} s)", flush=True)
    defaults, best = {}, {}
    for rival in rivals:
        started = time.perf_counter()
        losses = against(name, orders, rival, tuned, cache)
        setting = min(losses, key=losses.__getitem__)
        defaults[f"{rival.name}"] = losses["default"]
        best[f"{rival.name} {setting}"] = losses[setting]
        line = f"  {rival.name:8} {losses['default']:.5f}"
        if tuned:
            line += f"   tuned {losses[setting]:.5f}, {setting}"
        print(f"{line}   ({time.perf_counter() - started:.0f} s)", flush=True)
    return Line(
        name,
        n,
        seeds,
        d,
        rows.K,
        ours,
        min(defaults.items(), key=lambda item: item[1], default=None),
        min(best.items(), key=lambda item: item[1], default=None) if tuned else None,
    )


def table(lines: list[Line]) -> list[str]:
    """The table as Markdown, which reads well on a terminal too."""
    heads = ["stream", "rows", "orders", "features", "classes", "regretless"]
    heads += ["best default rival", "loss", "ratio", "", "best tuned rival", "loss", "ratio", ""]
    body = []
    for line in lines:
        cells = [line.stream, f"{line.rows:,}", str(line.orders), str(line.features), str(line.classes)]
        cells.append(f"{line.ours:.4f}")
        for rival in (line.default, line.tuned):
            if rival is None:
                cells += ["", "", "", ""]
            else:
                mark = "win" if line.ours < rival[1] else "**loss**"
                cells += [rival[0], f"{rival[1]:.4f}", f"{line.ours / rival[1]:.3f}", mark]
        body.append(cells)
    return page.table(heads, body, words=(0, 6, 9, 10, 13))


def verdict(lines: list[Line]) -> str:
    played = [line for line in lines if line.default is not None]
    wins = sum(line.ours < line.default[1] for line in played if line.default)
    text = f"lower than every rival's default on {wins} of {len(played)}"
    if any(line.tuned for line in lines):
        wins = sum(line.ours < line.tuned[1] for line in played if line.tuned)
        text += f"; than the best tuned on {wins} of {len(played)}"
    return text


def write(lines: list[Line], versions: dict[str, str]) -> None:
    """Write the table between its markers on the page; the rest stays unchanged."""
    left_out = [name for name in STREAMS if name not in {line.stream for line in lines}]
    about = ", ".join(f"{package} {number}" for package, number in versions.items())
    part = [
        *table(lines),
        "",
        f"`OnlineLogisticRegression` is {verdict(lines)} streams.",
        "Ratios are our loss divided by the rival's: below 1 is better.",
        "",
        f"Versions: {about}.",
        *([f"Not run for this table: {', '.join(left_out)}."] if left_out else []),
    ]
    page.put(BEGIN, END, part, INTRODUCTION)


INTRODUCTION = """\
## Quality

Mean progressive log loss: every row is forecast before its label is used, and the score is the mean of -ln(probability
of the true class), clipped at 1e-15 for all contenders, over all rows of a stream and, unless it is long, over several
orders of the rows (several draws, if the stream is synthetic). It does not depend on timing and, except for the last
digits, not on the machine.

`OnlineLogisticRegression` has its default parameters. All contenders know the classes and get the columns unscaled. A
rival's default is that of its library; "tuned" is the best of a grid of learning rates, chosen in hindsight (for River
three optimisers, and a constant column for some, marked +1), which is not possible on a running stream.

- River: `StandardScaler() | LogisticRegression()`, or `SoftmaxRegression()` (which has no intercept) for more than two
  classes. On long streams the grid is run on the first 20,000 rows, or fewer with many features and classes, and the
  best three on all rows.
- Vowpal Wabbit (VW): `--loss_function=logistic`, with `--oaa K --probabilities` for more than two classes.
- scikit-learn: `SGDClassifier(loss="log_loss")` after a running `StandardScaler`; one row at a time up to 4,000 rows,
  ten at a time beyond.

In category_5000 a column holds text: River and Vowpal Wabbit get each category as a feature of its own, unscaled, and
scikit-learn a `OneHotEncoder` that has seen all categories.

Streams: iris, wine, breast_cancer and digits come with scikit-learn, unscaled; vehicle to shuttle are public data in
svmlight format (in the folder `REGRETLESS_DATA`), shuffled except for elec2, which is in time order. The others are
synthetic: see `benchmarks/quality.py`. Generated by

    REGRETLESS_DATA=folder python -m benchmarks.quality --cache rivals.json --write
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--streams", nargs="+", metavar="NAME", choices=STREAMS, help=f"of {', '.join(STREAMS)}")
    arguments.add_argument("--orders", type=int, default=3, help=f"orders of a stream of up to {LONG:,} rows (3)")
    arguments.add_argument("--rows", type=int, help="use only the first rows of every stream")
    arguments.add_argument("--no-tuned", action="store_true", help="run rivals only with their defaults")
    arguments.add_argument("--cache", type=Path, metavar="FILE", help="cache the losses of rivals in FILE")
    arguments.add_argument("--write", action="store_true", help="write the table to docs/benchmarks.md")
    given = arguments.parse_args()

    rivals = [rival for rival in RIVALS if find_spec("sklearn" if rival.name == "sklearn" else rival.package)]
    for rival in RIVALS:
        if rival not in rivals:
            print(f"{rival.package} is not installed (pip install {rival.package}), skipped.")
    versions = {package: version(package) for package in ("regretless", *(rival.package for rival in rivals))}
    print(", ".join(f"{package} {number}" for package, number in versions.items()))
    wanted = given.streams or list(STREAMS)
    absent = [name for name in wanted if not is_there(name)]
    if absent:
        print(f"not in the folder REGRETLESS_DATA, skipped: {', '.join(absent)}")

    cache, lines = Cache(given.cache), []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow warnings of scikit-learn and River
        for name in wanted:
            if name not in absent:
                lines.append(compare(name, given.orders, given.rows, rivals, not given.no_tuned, cache))
    if lines:
        print("\n" + "\n".join(table(lines)))
        print(f"\nregretless is {verdict(lines)} streams")
    if given.write and lines:
        write(lines, versions)


if __name__ == "__main__":
    main()
