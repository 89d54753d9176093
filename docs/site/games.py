"""One game per bound: what a theorem promises, what the learner certifies, and what happened, on a hard stream.

`GAMES` has a function for each name in `regretless.bounds`. It plays with the library and returns a `Picture`, whose
curves the theorem cards show. Every game takes at most a few seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from regretless import (
    AIOLI,
    FOLKLORE,
    FTRL,
    GAF,
    OGD,
    ONS,
    AggregatingForecaster,
    BanditMulticlass,
    Banditron,
    BoostingRegression,
    ExponentiatedGradient,
    Gaptron,
    GeneralGAF,
    Hedge,
    KernelAIOLI,
    KernelGAF,
    LinearizedFTRL,
    MirrorDescent,
    MirrorDescentAggregator,
    Mixture,
    MondrianForest,
    OnlineBoosting,
    OnlineToBatch,
    Perceptron,
    SampleMinmaxPredictor,
    ShiftedLeastSquares,
    StronglyConvexOGD,
    VovkAzouryWarmuth,
    best_in_hindsight,
    bounds,
    mixable,
    play,
)
from regretless.learners.first_order.schedules import AdaGradNorm
from regretless.learners.first_order.schedules import Sequence as Steps
from regretless.streams import against_the_forecast, label_noise, softmax
from regretless.theory.domains import Ball, Growing, RowBall, Simplex

BOUND, CERTIFICATE = "bound", "certificate"
ROWS = 1000
STEPS = tuple(1.0 / math.sqrt(t) for t in range(1, ROWS + 2))
MARKS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)


@dataclass(frozen=True)
class Picture:
    """Curves over the same x: the bound, the certificate if there is one, and what was measured."""

    about: str  # the stream and the learner
    x: Sequence[float]
    curves: dict[str, Sequence[float]]
    x_label: str = "rows"
    y_label: str = "regret (total loss)"
    log_y: bool = False


# ---------------------------------------------------------------------- regret


def regret(learner: Any, stream: Any, about: str, bound: Callable[[int], float] | None = None, **how: Any) -> Picture:
    """The regret of a learner on a stream (arrays, or an adversary); `bound` replaces the learner's own theorem."""
    arrays = stream if isinstance(stream, tuple) else (stream,)
    rows = len(arrays[0]) if len(arrays) == 2 else how.pop("rows", ROWS)
    marks = [n for n in MARKS if n <= rows]
    trace: Any = play(learner, *arrays, checkpoints=marks, progress=False, **how)
    promised = trace.bound if bound is None else [bound(n) for n in marks]
    curves = {BOUND: promised, CERTIFICATE: trace.certificate, "regret": [high for _, high in trace.regret]}
    if not np.isfinite(curves[CERTIFICATE]).any():
        del curves[CERTIFICATE]
    return Picture(about, marks, curves)


def against_the_sign(n: int, d: int, seed: int = 0) -> Callable[[], Generator[Any, Any, None]]:
    """An adversary for forecasts of numbers: unit rows, and the label -1 or 1 on the other side of the forecast."""

    def start() -> Generator[Any, Any, None]:
        rng = np.random.default_rng(seed)
        for _ in range(n):
            x = rng.normal(size=d)
            forecast = yield x / np.linalg.norm(x)
            yield -1.0 if forecast is not None and forecast > 0 else 1.0

    return start


def with_the_sign(n: int, d: int, seed: int = 0) -> Callable[[], Generator[Any, Any, None]]:
    """An adversary for linear losses: unit rows, and the slope for which the forecast is a loss."""

    def start() -> Generator[Any, Any, None]:
        rng = np.random.default_rng(seed)
        for _ in range(n):
            x = rng.normal(size=d)
            forecast = yield x / np.linalg.norm(x)
            yield 1.0 if forecast is None or forecast >= 0 else -1.0

    return start


def two_labels(learner: Any, bound: Callable[[int], float] | None = None, rows: int = ROWS) -> Picture:
    """A binary learner against the adversary of `streams.against_the_forecast`."""
    about = (
        f"`{learner!r}` on {rows} rows of norm 1 with 3 features; every label is the one that it thought less likely."
    )
    return regret(learner, against_the_forecast(rows, d=3), about, bound, classes=[-1, 1], rows=rows)


def three_labels(learner: Any, bound: Callable[[int], float] | None = None, rows: int = ROWS) -> Picture:
    """A multiclass learner against the same adversary."""
    about = f"`{learner!r}` on {rows} rows of norm 1 with 3 features; every label is the least likely of three."
    return regret(learner, against_the_forecast(rows, 3, (0, 1, 2)), about, bound, classes=[0, 1, 2], rows=rows)


def slopes(learner: Any, bound: Callable[[int], float] | None = None, d: int = 3, **how: Any) -> Picture:
    """A first-order learner on linear losses whose sign is chosen against its weights."""
    about = f"`{learner!r}` on {ROWS} linear losses with unit gradients and {d} weights; every loss is positive."
    return regret(learner, with_the_sign(ROWS, d), about, bound, **how)


def growing_balls() -> Picture:
    """Gradient descent on a ball that grows from radius 1/2 to 2, against weights of norm 1."""
    radii = tuple(min(2.0, 0.5 * (t + 1) ** 0.25) for t in range(ROWS + 2))
    learner = MirrorDescent(
        "linear", Growing(Ball(1.0), radii), "euclidean", Steps(STEPS), lazy=False, averaging=False, gradient_bound=1.0
    )

    def theorem(n: int) -> float:
        given = {"steps": STEPS[:n], "radii": radii[:n], "gradient_bound": 1.0}
        return bounds.growing_balls(**given, comparator_norm=1.0)

    about = (
        "`MirrorDescent` on a ball whose radius grows from 1/2 to 2, on linear losses that are never "
        "negative, against weights of norm at most 1."
    )
    return regret(learner, with_the_sign(ROWS, 3), about, theorem, domain=Ball(1.0))


def aioli_inexact() -> Picture:
    """AIOLI's definition with weights that are moved by epsilon against the coming label."""
    n, d, B, error = 300, 2, 3.0, 1e-3
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    A, b, y = np.eye(d) / B**2, np.zeros(d), np.empty(n)
    losses, found, marks = 0.0, [], [k for k in MARKS if k <= n]
    for t, x in enumerate(X):
        m, q = x @ np.linalg.solve(A, b), x @ np.linalg.solve(A, x)
        low, high = -abs(m), abs(m)
        for _ in range(60):  # u + (q/2) tanh(u/2) = m
            u = (low + high) / 2
            low, high = (u, high) if u + q / 2 * math.tanh(u / 2) < m else (low, u)
        y[t] = -1.0 if u >= 0 else 1.0
        u -= y[t] * error
        s = 1 / (1 + math.exp(y[t] * u))
        losses += math.log1p(math.exp(-y[t] * u))
        c = s * (1 - s) / (2 * (1 + B))
        A, b = A + c * np.outer(x, x), b + (c * u + y[t] * s / 2) * x
        if t + 1 in marks:
            best = best_in_hindsight(X[: t + 1], y[: t + 1], loss="logistic", domain=Ball(B), classes=[-1, 1])
            found.append(losses - best.loss)
    case = {"n_features": d, "radius": B, "feature_bound": 1.0, "regularization": 1 / B**2}
    promised = [bounds.aioli_inexact(k, **case, error=error) for k in marks]
    about = (
        f"AIOLI's definition, with weights {error} from the minimiser, moved against the coming label; 2 "
        "features, B = 3."
    )
    return Picture(about, marks, {BOUND: promised, "regret": found})


def gaf_sampled() -> Picture:
    """GAF by Monte Carlo draws."""
    n, failure = 100, 0.05
    learner = GAF(3.0, expectation="monte-carlo", n_samples=20_000, smoothing=0.02, feature_bound=1.0, random_state=0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.integers(3, size=n)
    about = f"`{learner!r}` on {n} rows of norm 1 with labels that are noise; the bound holds with probability 95 %."
    learner.fit(X[:1], y[:1], classes=[0, 1, 2])
    return regret(learner, (X, y), about, lambda k: learner.regret_bound(k, failure=failure), classes=[0, 1, 2])


def kernel(learner: Any, classes: int, n: int) -> Picture:
    """A kernel learner on rings, which no linear model separates."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n, 2))
    y = (np.hypot(*X.T) * 3).astype(int) % classes
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    # The comparator is a function of the kernel space, or, on these rows, weights of the columns of a root of the
    # matrix.
    root = np.linalg.cholesky(np.exp(-learner.gamma * distances) + 1e-9 * np.eye(n))
    loss, marks = 0.0, [k for k in MARKS if k <= n and k >= classes]
    found: dict[str, list[float]] = {BOUND: [], CERTIFICATE: [], "regret": []}
    for t in range(n):
        p = learner.predict_then_learn(X[t : t + 1], y[t : t + 1], classes=list(range(classes)))
        loss -= math.log(p[0, y[t]])
        if t + 1 in marks:
            known = {"domain": Ball(learner.radius), "classes": list(range(classes)), "tol": 1e-3}
            best = best_in_hindsight(root[: t + 1], y[: t + 1], **known)
            found[BOUND].append(learner.regret_bound())
            found[CERTIFICATE].append(learner.regret_certificate())
            found["regret"].append(loss - best.loss)
    return Picture(f"`{learner!r}` on {n} points, with labels by their distance from 0.", marks, found)


# ---------------------------------------------------------------------- mistakes


def perceptron() -> Picture:
    """Mistakes, and the bound for the weights that drew the labels."""
    stream = label_noise(ROWS, d=5, flip=0.05, margin=0.2, seed=1)
    learner, made, promised = Perceptron(), [], []
    best = best_in_hindsight(stream.X, stream.y, loss="hinge", domain=Ball(10.0), classes=stream.classes)
    signs = np.where(stream.y == stream.classes[1], 1.0, -1.0)
    u = best.w
    start = 0
    for n in MARKS:
        learner.partial_fit(stream.X[start:n], stream.y[start:n], classes=stream.classes)
        start = n
        hinge = np.maximum(0, 1 - signs[:n] * (stream.X[:n] @ u)).sum()
        made.append(learner.mistakes_)
        promised.append(
            bounds.perceptron(comparator_norm=float(np.linalg.norm(u)), feature_bound=1.0, hinge_loss=float(hinge))
        )
    about = (
        "`Perceptron()` on separable rows with 5 % of the labels flipped; u has the least hinge loss of norm "
        "at most 10."
    )
    return Picture(about, MARKS, {BOUND: promised, "mistakes": made}, y_label="mistakes")


def hedge() -> Picture:
    """Two experts that take turns to be wrong, whichever has the larger share."""
    experts = [AIOLI(radius=0.5), OGD(radius=5.0, step=2.0)]
    learner = Hedge(experts)
    found: dict[str, list[float]] = {BOUND: [], "expected mistakes above the best expert": []}
    start = against_the_forecast(ROWS, d=3)()
    said: Any = None
    for t in range(1, ROWS + 1):
        x = next(start)
        if hasattr(learner, "state_"):
            leading = learner.estimators_[int(np.argmax(learner.weights_))]
            said = leading.predict_proba_one(x)
        label = start.send(said)
        learner.partial_fit(x[None], [label], classes=[-1, 1])
        if t in MARKS:
            found[BOUND].append(bounds.hedge(t, n_experts=2))
            found["expected mistakes above the best expert"].append(learner.regret_certificate())
    about = f"`{learner!r}` on rows whose label is against the vote of the expert with the larger share."
    return Picture(about, MARKS, found, y_label="expected mistakes above the best")


def boosting_game() -> tuple[OnlineBoosting, list[int], list[float], list[float], list[float]]:
    """OnlineBoosting over stumps on three classes: rows, mistakes, edges' bound, and that of the best edge."""
    stream = softmax(3000, d=6, classes=3, radius=30.0, seed=2)
    learner = OnlineBoosting("stump", n_estimators=20)
    marks = [100, 200, 500, 1000, 2000, 3000]
    made, promised, best, start = [], [], [], 0
    for n in marks:
        learner.partial_fit(stream.X[start:n], stream.y[start:n], classes=[0, 1, 2])
        start = n
        regret_ = float(learner.stage_regret_.max())
        edges = np.clip(learner.edges_, -1, 1)
        made.append(learner.mistakes_)
        promised.append(bounds.boosting(n, n_classes=3, edges=edges.tolist(), regret=regret_, failure=0.05))
        given = {"n_classes": 3, "n_estimators": 20, "sample_complexity": 0.0, "regret": regret_, "failure": 0.05}
        best.append(bounds.weak_learning(n, edge=float(np.sqrt(np.mean(edges**2))), **given))
    return learner, marks, made, promised, best


def boosting() -> Picture:
    """Mistakes, and the bound from the edges measured."""
    learner, marks, made, promised, _ = boosting_game()
    about = (
        f"`{learner!r}` on three classes. After so few rows the bound is above the number of rows; it is for millions."
    )
    return Picture(about, marks, {BOUND: promised, "mistakes": made}, y_label="mistakes", log_y=True)


def weak_learning() -> Picture:
    """The same game, with one edge for all weak learners."""
    learner, marks, made, _, promised = boosting_game()
    about = (
        f"`{learner!r}` on three classes; the edge is the root mean square of the measured ones, and S = "
        "0. After so few "
        "rows the bound is above the number of rows."
    )
    return Picture(about, marks, {BOUND: promised, "mistakes": made}, y_label="mistakes", log_y=True)


def boosting_regression(known: bool) -> Picture:
    """The game of boosting regression, against the best alpha of a grid."""
    n, K = 1000, 3
    rng = np.random.default_rng(0)
    S = 0.1 * rng.normal(size=(n, K))
    named = rng.integers(K, size=n)
    y = np.where(rng.random(n) < 0.5, named, rng.integers(K, size=n))
    learner = BoostingRegression(K, n if known else None)
    alphas = np.linspace(-2, 2, 81)
    with_alpha = np.array([-log_softmax(S + a * np.eye(K)[named], axis=1)[np.arange(n), y] for a in alphas])
    marks, found = MARKS[3:], {BOUND: [], CERTIFICATE: [], "regret": []}
    for t in range(n):
        learner.update(S[t], int(named[t]), int(y[t]))
        if t + 1 in marks:
            theorem = (
                bounds.boosting_regression(t + 1, horizon=n) if known else bounds.boosting_regression_anytime(t + 1)
            )
            best = with_alpha[:, : t + 1].sum(axis=1).min()
            for name, value in zip(
                found, (theorem, learner.regret_certificate(), learner.total_loss_ - best), strict=True
            ):
                found[name].append(value)
    about = (
        f"`BoostingRegression({K}{f', horizon={n}' if known else ''})` on scores that are noise; two of three "
        "suggested labels are right."
    )
    return Picture(about, marks, found)


def bandit_stream(n: int) -> tuple[Any, Any]:
    """Two classes, in which a margin separates most rows."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    return np.column_stack([2.0 * y - 1, np.zeros(n)]), y


def bandit_mistakes(
    make: Callable[[int, int], Any], promise: Callable[[Any, int, Any, Any], float], about: str, told: bool = False
) -> Picture:
    """The mean over 10 seeds of the mistakes on one stream, for several lengths; `told`: labels are revealed."""
    lengths, made, promised = [50, 100, 200, 400, 800], [], []
    for n in lengths:
        X, y = bandit_stream(n)
        counts = []
        for seed in range(10):
            learner = make(n, seed)
            for x, label in zip(X, y, strict=True):
                action, _ = learner.act(x)
                learner.feedback(x, action, action == label, **({"label": label} if told else {}))
            counts.append(learner.mistakes_)
        made.append(float(np.mean(counts)))
        promised.append(promise(learner, n, X, y))
    curves = {BOUND: promised, "mistakes (mean of 10 runs)": made, "rows": lengths}
    return Picture(about, lengths, curves, y_label="mistakes")


def bandit() -> Picture:
    """The reduction, with the exploration of the theory."""
    base = FOLKLORE(radius=1.0, feature_bound=1.0)

    def promise(learner: Any, n: int, X: Any, y: Any) -> float:
        best = best_in_hindsight(X, y, loss="softmax", domain=RowBall(1.0), classes=[0, 1])
        return learner.mistake_bound(best.loss)

    return bandit_mistakes(
        lambda n, seed: BanditMulticlass(base, n_classes=2, horizon=n, random_state=seed),
        promise,
        f"`BanditMulticlass({base!r})`, which knows the length, on two classes that a margin separates.",
    )


def banditron() -> Picture:
    """Banditron on two classes that a margin separates."""
    return bandit_mistakes(
        lambda n, seed: Banditron(0.1, n_classes=2, random_state=seed),
        lambda learner, n, X, y: learner.mistake_bound(0.0, 0.5 * math.sqrt(2), 1.0, n),
        "`Banditron(gamma=0.1)` on two classes that a margin separates, so that the comparator has hinge loss 0.",
    )


def gaptron(information: str) -> Picture:
    """Gaptron with all labels or with bandit feedback."""
    size = 1.4

    def promise(learner: Any, n: int, X: Any, y: Any) -> float:
        scores = size * X @ np.array([[-1.0, 0.0], [1.0, 0.0]]).T
        loss = -log_softmax(scores, axis=1)[np.arange(n), y].sum()
        return learner.mistake_bound(float(loss), size * math.sqrt(2))

    def make(n: int, seed: int) -> Any:
        return Gaptron(information, gamma=0.1, n_classes=2, random_state=seed)

    size_text = f"{size * math.sqrt(2):.2f}"
    about = f"`Gaptron({information!r})` on two classes that a margin separates; the comparator has norm {size_text}."
    return bandit_mistakes(make, promise, about, told=information == "full")


# ---------------------------------------------------------------------- mixtures and trees


def mixture() -> Picture:
    """A mixture of three radii, against the best of them."""
    members = {radius: AIOLI(radius=radius) for radius in (0.3, 3.0, 30.0)}
    mixed: Any = play(
        Mixture(list(members.values())),
        against_the_forecast(ROWS, 3),
        classes=[-1, 1],
        checkpoints=MARKS,
        progress=False,
    )
    X, y = mixed.stream.joined()
    alone: Any = play(
        {str(r): each for r, each in members.items()}, X, y, classes=[-1, 1], checkpoints=MARKS, progress=False
    )
    best = np.min([trace.log_loss for trace in alone.values()], axis=0)
    about = (
        "`Mixture` of AIOLI with radius 0.3, 3 and 30, on labels that it thought less likely, against the "
        "best of the three."
    )
    curves = {BOUND: [bounds.mixture(prior=1 / 3)] * len(MARKS), "loss above the best member": mixed.log_loss - best}
    return Picture(about, MARKS, curves, y_label="log loss above the best")


def fixed_share() -> Picture:
    """Noise and signal in turn: a cautious member is best in one, a bold one in the other."""
    n, k, share = ROWS, 3, 3 / ROWS
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 1))
    noise = (np.arange(n) // (n // (k + 1))) % 2 == 1
    y = np.where(noise, rng.integers(2, size=n), X[:, 0] > 0)
    members = [OGD(radius=0.01), OGD(radius=10.0, step=3.0)]
    mixed = Mixture(members, share=share).predict_then_learn(X, y, classes=[0, 1])
    each = [member.predict_then_learn(X, y, classes=[0, 1]) for member in members]
    rows = np.arange(n)
    loss = -np.log(mixed[rows, y]).cumsum()
    losses = np.array([-np.log(p[rows, y]) for p in each])
    least = np.full((k + 1, 2), np.inf)  # by switches so far and the member in use
    least[0] = 0.0
    marks, found = [m for m in MARKS if m > k + 1], {BOUND: [], "loss above the best sequence": []}
    for t in range(n):
        moved = least.copy()
        if t:
            moved[1:] = np.minimum(least[1:], least[:-1, ::-1])
        least = moved + losses[:, t]
        if t + 1 in marks:
            found[BOUND].append(bounds.fixed_share(t + 1, switches=k, n_members=2, share=share))
            found["loss above the best sequence"].append(loss[t] - least.min())
    about = (
        f"`Mixture(share={share})` of a cautious and a bold OGD; labels are signal and noise in turn. The "
        "best sequence of members has at most 3 switches."
    )
    return Picture(about, marks, found, y_label="log loss above the best")


def mondrian(constants: bool) -> Picture:
    """A forest on a chessboard, against the best prunings of its trees."""
    n, K = 2000, 2
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 2))
    y = ((np.floor(2 * X).sum(axis=1) % 2) != (rng.random(n) < 0.1)).astype(int)
    learner, start = MondrianForest(n_estimators=1, random_state=0), 0
    marks = [10, 30, 100, 300, 1000, 2000]
    found: dict[str, list[float]] = {BOUND: [], "loss above the best prunings": []}
    for m in marks:
        learner.partial_fit(X[start:m], y[start:m], classes=[0, 1])
        start = m
        leaves = learner._best_prunings()[:, 1].astype(int).tolist()
        theorem = [
            bounds.mondrian_constants(m, n_leaves=k, n_classes=K)
            if constants
            else bounds.mondrian_pruning(m, n_leaves=k)
            for k in leaves
        ]
        found[BOUND].append(float(np.mean(theorem)))
        found["loss above the best prunings"].append(learner.regret_certificate())
    about = (
        "`MondrianForest(n_estimators=1)` on a noisy chessboard, against the best pruning of its tree. The "
        "certificate is the exact value."
    )
    if constants:
        about += (
            " The bound is for the best constants in the leaves, which have less loss than the leaves' own forecasts."
        )
    return Picture(about, marks, found, y_label="log loss above the best")


# ---------------------------------------------------------------------- excess risk

SUPPORT = np.array([[1.0, 0.0], [0.6, 0.8], [-0.6, 0.8], [0.0, -1.0]])
CHANCES = np.array([0.97, 0.1, 0.8, 0.5])  # of label 1; no weights explain them


def logistic_risk(p: Any) -> float:
    """The exact risk of probabilities of label 1, one per row of the support."""
    return float(-(CHANCES * np.log(p) + (1 - CHANCES) * np.log1p(-p)).mean())


def least_logistic_risk(radius: float) -> float:
    """The least risk of weights in a ball."""
    ball = {"type": "ineq", "fun": lambda w: radius**2 - w @ w}
    done = minimize(
        lambda w: logistic_risk(1 / (1 + np.exp(-SUPPORT @ w))),
        np.zeros(2),
        constraints=[ball],
        method="SLSQP",
        tol=1e-12,
    )
    return float(done.fun)


def drawn(rng: Any, n: int) -> tuple[Any, Any]:
    """Independent rows of the support with labels."""
    at = rng.integers(4, size=n)
    return SUPPORT[at], (rng.random(n) < CHANCES[at]).astype(int)


def excess_risk(
    model: Callable[[int], Any],
    radius: float,
    promise: Callable[[Any, int], float],
    about: str,
    lengths: Sequence[int],
    runs: int,
) -> Picture:
    """The mean over runs of the exact excess risk, with the bound."""
    best, rng = least_logistic_risk(radius), np.random.default_rng(0)
    found, promised = [], []
    for n in lengths:
        risks = []
        for seed in range(runs):
            X, y = drawn(rng, n)
            fitted = model(seed).fit(
                X, y, **({} if isinstance(model(seed), SampleMinmaxPredictor) else {"classes": [0, 1]})
            )
            risks.append(logistic_risk(fitted.predict_proba(SUPPORT)[:, 1]) - best)
        found.append(float(np.mean(risks)))
        promised.append(promise(fitted, n))
    curves = {BOUND: promised, f"excess risk (mean of {runs} runs)": found}
    return Picture(about, lengths, curves, y_label="excess risk", log_y=True)


FOUR_ROWS = "on independent draws of four rows whose labels no weights explain; risks are exact."


def aioli_excess_risk() -> Picture:
    """AIOLI stopped at a random row."""
    return excess_risk(
        lambda seed: OnlineToBatch(AIOLI(radius=3.0, feature_bound=1.0, curvature="aioli"), random_state=seed),
        3.0,
        lambda fitted, n: bounds.aioli_excess_risk(n, n_features=2, radius=3.0, feature_bound=1.0),
        f"`OnlineToBatch(AIOLI(radius=3.0))`, stopped at a random row, {FOUR_ROWS}",
        (30, 100, 300, 1000),
        20,
    )


def averaged_log_loss() -> Picture:
    """The mean weights of gradient descent, with probability 80 %."""
    return excess_risk(
        lambda seed: OnlineToBatch(OGD(radius=1.0), "average", random_state=seed),
        1.0,
        lambda fitted, n: fitted.excess_risk_bound(failure=0.2),
        f"`OnlineToBatch(OGD(radius=1.0), 'average')` {FOUR_ROWS} The bound holds with probability 80 %.",
        (100, 300, 1000, 3000),
        20,
    )


def sample_minmax() -> Picture:
    """The sample minmax predictor."""
    return excess_risk(
        lambda seed: SampleMinmaxPredictor(regularization=1.0, feature_bound=1.0),
        3.0,
        lambda fitted, n: fitted.excess_risk_bound(comparator_norm=3.0),
        f"`SampleMinmaxPredictor(regularization=1.0)` {FOUR_ROWS}",
        (20, 60, 200),
        6,
    )


def shifted_average() -> Picture:
    """Averaged forecasts on shifted labels."""
    means = np.array([0.3, -0.2, 0.5, 0.0])
    u = np.linalg.lstsq(SUPPORT, means, rcond=None)[0]
    best = ((SUPPORT @ u - means) ** 2).mean()
    rng = np.random.default_rng(0)
    lengths, found, promised = (100, 300, 1000, 3000), [], []
    for n in lengths:
        risks = []
        for _ in range(10):
            at = rng.integers(4, size=n)
            y = np.where(rng.random(n) < (1 + means[at]) / 2, 1.0, -1.0)
            model = ShiftedLeastSquares(label_bound=1.0, feature_bound=1.0).fit(SUPPORT[at], y)
            risks.append(((model.predict(SUPPORT) - means) ** 2).mean() - best)
        found.append(float(np.mean(risks)))
        promised.append(model.excess_risk_bound(comparator_norm=float(np.linalg.norm(u)), failure=0.2))
    about = (
        "`ShiftedLeastSquares(label_bound=1.0)` on independent draws of four rows with labels -1 and 1; "
        "risks are exact. The bound holds with probability 80 %."
    )
    return Picture(
        about, lengths, {BOUND: promised, "excess risk (mean of 10 runs)": found}, y_label="excess risk", log_y=True
    )


M = 50  # base functions


def aggregation(
    make: Callable[[int], Any], promise: Callable[[Any, int], float], about: str, lower: bool = False
) -> Picture:
    """M functions that guess, one of which is a little better: the exact excess risk of their mixture."""
    lengths, found, promised = (30, 100, 300, 1000), [], []
    for n in lengths:
        gap = min(1.0, math.sqrt(math.log(M) / n))
        p = np.full(M, 0.5)
        p[0] += gap / 2
        risks = []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            H = np.where(rng.random((n, M)) < p, 1.0, -1.0)
            learner = make(n).partial_fit(H, np.ones(n), classes=[-1, 1])
            theta = learner.average_theta_ if hasattr(learner, "average_theta_") else learner.coef_[0]  # the mean
            risks.append(gap * (1 - theta[0] / theta.sum()))
        found.append(float(np.mean(risks)))
        promised.append(promise(learner, n))
    curves = {BOUND: promised, "excess risk (mean of 20 runs)": found}
    if lower:
        curves = {"excess risk (mean of 20 runs)": found, "lower bound": promised}
    return Picture(
        f"{about} {M} functions guess, and one is right a little more often.",
        lengths,
        curves,
        y_label="excess risk",
        log_y=True,
    )


def mirror_average(n: int) -> MirrorDescent:
    """Averaged mirror descent on the simplex with the temperature of the theory."""
    return MirrorDescent("hinge", Simplex(1.0), "entropy", gradient_bound=1.0)


def known_steps(n: int) -> MirrorDescent:
    """The same, with temperatures of one's own."""
    schedule = Steps(temperatures=tuple(math.sqrt(t + 1) for t in range(n + 2)))
    return MirrorDescent("hinge", Simplex(1.0), "entropy", schedule, gradient_bound=1.0)


GIVEN = {"n_functions": M, "radius": 1.0, "gradient_bound": 1.0}

GAMES: dict[str, Callable[[], Picture]] = {
    "aioli": lambda: two_labels(AIOLI(radius=3.0, feature_bound=1.0)),
    "aioli_inexact": aioli_inexact,
    "aioli_descent": lambda: two_labels(
        AIOLI(radius=3.0, feature_bound=1.0, curvature="aioli", solver="descent"), rows=300
    ),
    "aioli_excess_risk": aioli_excess_risk,
    "folklore": lambda: three_labels(FOLKLORE(radius=3.0, feature_bound=1.0)),
    "gaf_general": lambda: regret(
        GeneralGAF(mixable.SquaredLoss(), radius=3.0, feature_bound=1.0),
        against_the_sign(ROWS, 3),
        "`GeneralGAF(SquaredLoss())` on rows of norm 1 with 3 features; every label is -1 or 1, on the "
        "other side of the forecast.",
    ),
    "gaf": lambda: three_labels(GAF(radius=3.0, feature_bound=1.0)),
    "gaf_logistic": lambda: three_labels(
        GAF(radius=3.0, feature_bound=1.0, curvature="gaf"),
        lambda n: bounds.gaf_logistic(n, n_features=3, n_classes=3, radius=3.0, feature_bound=1.0),
    ),
    "gaf_sampled": gaf_sampled,
    "online_newton_step": lambda: two_labels(ONS(radius=3.0, feature_bound=1.0)),
    "vovk_azoury_warmuth": lambda: regret(
        VovkAzouryWarmuth(regularization=1 / 9),
        against_the_sign(ROWS, 3),
        "`VovkAzouryWarmuth()` on rows of norm 1 with 3 features; every label is -1 or 1, on the other "
        "side of the forecast. Comparators have norm at most 3.",
        domain=Ball(3.0),
    ),
    "perceptron": perceptron,
    "online_gradient_descent": lambda: slopes(OGD("linear", radius=1.0, gradient_bound=1.0)),
    "gradient_descent": lambda: slopes(OGD("linear", radius=None, step=0.03), domain=Ball(1.0)),
    "descending_steps": lambda: slopes(
        OGD("linear", radius=1.0, step=Steps(STEPS), gradient_bound=1.0),
        lambda n: bounds.descending_steps(steps=STEPS[:n], diameter=2.0, gradient_bound=1.0),
    ),
    "growing_balls": growing_balls,
    "adagrad_norm": lambda: slopes(
        MirrorDescent("linear", Ball(1.0), "euclidean", AdaGradNorm(math.sqrt(2)), lazy=False, averaging=False),
    ),
    "strongly_convex": lambda: two_labels(StronglyConvexOGD("logistic", regularization=0.05)),
    "ftrl_proximal": lambda: slopes(LinearizedFTRL("linear", alpha=1.0, radius=1.0)),
    "mirror_descent": lambda: slopes(
        MirrorDescent("linear", Simplex(1.0), "entropy", 0.05, averaging=False, gradient_bound=1.0), d=10
    ),
    "dual_averaging": lambda: slopes(ExponentiatedGradient("linear"), d=10),
    "averaging_excess_risk": lambda: aggregation(
        mirror_average,
        lambda learner, n: learner.excess_risk_bound(),
        "`MirrorDescent` on the simplex with the entropy, averaged.",
    ),
    "averaging_sequences": lambda: aggregation(
        known_steps,
        lambda learner, n: learner.excess_risk_bound(),
        "`MirrorDescent` with the temperatures √(t + 1) given as a sequence.",
    ),
    "aggregation_excess_risk": lambda: aggregation(
        lambda n: MirrorDescentAggregator(),
        lambda learner, n: bounds.aggregation_excess_risk(n + 1, **GIVEN),
        "`MirrorDescentAggregator()`.",
    ),
    "aggregation_lower_bound": lambda: aggregation(
        lambda n: MirrorDescentAggregator(),
        lambda learner, n: bounds.aggregation_lower_bound(n, **GIVEN),
        "`MirrorDescentAggregator()`; no method can be below the lower bound on all such distributions.",
        lower=True,
    ),
    "aggregation_known_horizon": lambda: aggregation(
        lambda n: MirrorDescentAggregator(horizon=n + 1),
        lambda learner, n: bounds.aggregation_known_horizon(n + 1, **GIVEN),
        "`MirrorDescentAggregator(horizon=n + 1)`.",
    ),
    "ftrl": lambda: two_labels(FTRL("logistic", regularization=5.0, radius=3.0), rows=300),
    "kernel_aioli": lambda: kernel(KernelAIOLI(gamma=3.0, radius=10.0, feature_bound=1.0), 2, n=200),
    "kernel_gaf": lambda: kernel(KernelGAF(gamma=3.0, radius=10.0, feature_bound=1.0), 3, n=100),
    "aggregating": lambda: regret(
        AggregatingForecaster(radius=3.0, feature_bound=1.0),
        against_the_forecast(200),
        "`AggregatingForecaster(radius=3.0)` on rows with one feature; every label is the one that it "
        "thought less likely.",
        classes=[-1, 1],
        rows=200,
    ),
    "mondrian_pruning": lambda: mondrian(constants=False),
    "mondrian_constants": lambda: mondrian(constants=True),
    "mixture": mixture,
    "fixed_share": fixed_share,
    "hedge": hedge,
    "boosting": boosting,
    "weak_learning": weak_learning,
    "boosting_regression": lambda: boosting_regression(known=True),
    "boosting_regression_anytime": lambda: boosting_regression(known=False),
    "bandit": bandit,
    "banditron": banditron,
    "gaptron": lambda: gaptron("full"),
    "gaptron_bandit": lambda: gaptron("bandit"),
    "sample_minmax": sample_minmax,
    "averaged_log_loss": averaged_log_loss,
    "shifted_average": shifted_average,
}
