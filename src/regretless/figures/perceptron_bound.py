"""The Perceptron's mistakes against the notes' bound L + (|u| X)^2 + |u| X sqrt(L)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from regretless.core.types import Array
from regretless.evaluate.play import play
from regretless.evaluate.plots import draw_band, panels, style, tidy
from regretless.figures.common import SPREAD, Table, Work, log_marks, quartiles
from regretless.learners.first_order.perceptron import Perceptron
from regretless.theory.domains import Ball
from regretless.theory.hindsight.comparator import best_in_hindsight

RADII = (0.3, 1.0, 3.0, 10.0)  # of the balls searched for comparators; every u has a bound, the smallest is used
RANDOM, WORST = "random rows", "orthonormal rows"


@dataclass(frozen=True)
class Settings:
    """Our own: the notes have no experiment."""

    rows: int = 2000
    features: int = 10
    runs: int = 20
    noise: tuple[float, ...] = (0.0, 0.05, 0.2)  # the fraction of flipped labels
    gap: float = 0.1  # of the noisy streams: |u.x| is at least this for the unit vector u
    margins: tuple[float, ...] = (0.3, 0.1, 0.03, 0.01)


SETTINGS = Settings()
QUICK = Settings(rows=200, runs=3, margins=(0.3, 0.1))


def compute(settings: Settings, seed: int, work: Work) -> Table:
    """Mistakes and bounds over time on noisy streams, and at the end of separable streams by margin."""
    marks = tuple(log_marks(settings.rows, 4))
    noisy = [(settings, marks, noise, seed, run) for noise in settings.noise for run in range(settings.runs)]
    clean = [(settings, margin, seed, run) for margin in settings.margins for run in range(settings.runs)]
    over_time = np.array(work.each("streams with noise", noisy_game, noisy))
    at_the_end = np.array(work.each("separable streams", separable_game, clean))
    rows: list[tuple[Any, ...]] = []
    for i, noise in enumerate(settings.noise):
        runs = over_time[i * settings.runs : (i + 1) * settings.runs]
        for t, mistakes, bound in zip(marks, *np.moveaxis(runs, 0, -1), strict=True):
            rows.append(("noise", RANDOM, noise, t, *quartiles(mistakes), *quartiles(bound), max(mistakes / bound)))
    for i, margin in enumerate(settings.margins):
        mistakes, bound = at_the_end[i * settings.runs : (i + 1) * settings.runs].T
        row = (*quartiles(mistakes), *quartiles(bound), max(mistakes / bound))
        rows.append(("margin", RANDOM, margin, settings.rows, *row))
    for margin in settings.margins:
        mistakes, bound, n = worst_game(margin)
        rows.append(("margin", WORST, margin, n, *[mistakes] * 3, *[bound] * 3, mistakes / bound))
    names = [f"{what}_{part}" for what in ("mistakes", "bound") for part in SPREAD]
    return Table.of(("panel", "stream", "level", "rows", *names, "largest_ratio"), rows)


def rows_with_gap(settings: Settings, gap: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Unit rows with |u.x| >= gap for the unit vector u = e_1, and its labels."""
    X = rng.normal(size=(settings.rows, settings.features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    close = np.abs(X[:, 0]) < gap
    X[close, 0] = np.where(X[close, 0] >= 0, gap, -gap)
    X[:, 1:] *= np.sqrt((1 - X[:, :1] ** 2) / (X[:, 1:] ** 2).sum(axis=1, keepdims=True))
    return X, np.where(X[:, 0] > 0, 1.0, -1.0)


def noisy_game(settings: Settings, marks: tuple[int, ...], noise: float, seed: int, run: int) -> Array:
    """Mistakes up to each mark, and the smallest bound of a few comparators of these rows."""
    rng = np.random.default_rng([seed, run])
    X, y = rows_with_gap(settings, settings.gap, rng)
    y *= np.where(rng.random(len(y)) < noise, -1.0, 1.0)
    trace: Any = play(Perceptron(), X, y, classes=[-1, 1], checkpoints=marks, hindsight=False, progress=False)
    return np.array([trace.loss, [least_bound(X[:t], y[:t]) for t in marks]])


def least_bound(X: Array, y: Array) -> float:
    """The smallest bound over the best models in hindsight of a few balls, and u = 0, whose hinge loss is n."""
    learner = Perceptron().fit(X, y, classes=[-1, 1])
    found = [best_in_hindsight(X, y, "hinge", Ball(radius), tol=1e-3, classes=[-1, 1]).w for radius in RADII]
    return min(float(len(y)), *(learner.mistake_bound(u, X, y) for u in found))


def separable_game(settings: Settings, margin: float, seed: int, run: int) -> tuple[float, float]:
    """Mistakes, and the bound of e_1 / margin, which has hinge loss 0."""
    X, y = rows_with_gap(settings, margin, np.random.default_rng([seed, run, 1]))
    learner = Perceptron().fit(X, y, classes=[-1, 1])
    return learner.mistakes_, learner.mistake_bound(np.eye(1, settings.features) / margin, X, y)


def worst_game(margin: float) -> tuple[float, float, int]:
    """d = 1/margin^2 orthonormal rows: each is unpredictable, and u = sum of y x has |u|^2 = d and hinge loss 0."""
    d = round(1 / margin**2)
    y = np.where(np.arange(d) % 2, -1.0, 1.0)
    X = sparse.eye_array(d, format="csr")
    learner = Perceptron().fit(X, y, classes=[-1, 1])
    return learner.mistakes_, learner.mistake_bound(y, X, y), d


def draw(table: Table) -> Any:
    """Over time on noisy streams, and against the bound on separable ones."""
    figure, axes = panels(1, 2)
    left, right = axes[0]
    for i, (noise, rows) in enumerate(table.where(panel="noise").each("level")):
        spread = [rows[f"mistakes_{part}"] for part in SPREAD]
        draw_band(left, rows["rows"], spread, i, f"mistakes, {noise:.0%} of labels flipped")
        look = style(i) | {"marker": "", "linewidth": 2.5, "alpha": 0.35}
        left.plot(rows["rows"], rows["bound_median"], label="its bound", **look)
    for i, (stream, rows) in enumerate(table.where(panel="margin").each("stream")):
        spread = [rows[f"mistakes_{part}"] for part in SPREAD]
        draw_band(right, rows["bound_median"], spread, i, stream)
    ends = right.get_xlim()
    right.plot([1, ends[1]], [1, ends[1]], color="0.5", linewidth=1.0, label="mistakes = bound")
    for panel in (left, right):
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.legend(frameon=False, fontsize="small")
    left.set_title("noisy labels")
    margins = table.where(panel="margin")["level"]
    right.set_title(f"separable, with margins from {margins.max():g} to {margins.min():g}")
    tidy(left, "rows", "mistakes")
    tidy(right, "bound $(|u|X)^2$ = 1 / margin²", "mistakes")
    return figure
