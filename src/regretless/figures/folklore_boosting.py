"""FOLKLORE's online boosting (AdaBoost.OLM++, Algorithms 3 and 4): more weak learners, fewer mistakes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.evaluate.plots import draw_band, panels, style, tidy
from regretless.figures.common import SPREAD, Table, Work, quartiles
from regretless.learners.ensembles.boosting import OnlineBoosting

LEARNERS = ("stump", "naive-bayes")
ONLINE, HELD_OUT = "label drawn, online", "last stage, held out"


@dataclass(frozen=True)
class Settings:
    """Our own: the paper has no experiment. scikit-learn's digits, 10 classes, in random orders."""

    stages: tuple[int, ...] = (1, 2, 5, 10, 20, 40, 80)
    orders: int = 10
    rows: int = 1297  # learned, out of 1797; the others are held out


SETTINGS = Settings()
QUICK = Settings(stages=(1, 5, 20), orders=2, rows=600)


def compute(settings: Settings, seed: int, work: Work) -> Table:
    """Error rates and bounds by the number of weak learners, and the edges for the largest number."""
    cells = [(weak, N) for weak in LEARNERS for N in settings.stages]
    tasks = [(weak, N, settings.rows, seed, order) for weak, N in cells for order in range(settings.orders)]
    found = dict(zip(tasks, work.each("games", game, tasks[::-1])[::-1], strict=True))
    rows: list[tuple[Any, ...]] = []
    for weak, N in cells:
        games = [found[weak, N, settings.rows, seed, order] for order in range(settings.orders)]
        for what in (ONLINE, HELD_OUT, "bound"):
            rows.append(("error", weak, what, N, *quartiles([each[what] for each in games])))
    for weak in LEARNERS:
        most = [found[weak, settings.stages[-1], settings.rows, seed, order] for order in range(settings.orders)]
        for stage, *three in zip(
            range(1, settings.stages[-1] + 1), *quartiles([g["edges"] for g in most]), strict=True
        ):
            rows.append(("edge", weak, "edge", stage, *three))
    return Table.of(("panel", "estimator", "what", "stages", "quartile_1", "median", "quartile_3"), rows)


def game(weak: str, n_learners: int, rows: int, seed: int, order: int) -> dict[str, Any]:
    """One pass in one order; then the labels of the last stage on held-out rows."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    shuffled = np.random.default_rng([seed, order]).permutation(len(y))
    learned, held_out = shuffled[:rows], shuffled[rows:]
    learner = OnlineBoosting(weak, n_estimators=n_learners, random_state=order)
    learner.fit(X[learned], y[learned], classes=range(10))
    last = learner.stage_scores(X[held_out])[:, -1].argmax(axis=1)
    return {
        ONLINE: learner.mistakes_ / rows,
        HELD_OUT: float((last != y[held_out]).mean()),
        "bound": learner.mistake_bound() / rows,
        "edges": learner.edges_,
    }


def draw(table: Table) -> Any:
    """Errors by the number of stages, and the edges."""
    figure, axes = panels(1, 2)
    left, right = axes[0]
    errors = table.where(panel="error")
    curves = [(weak, what) for weak in LEARNERS for what in (ONLINE, HELD_OUT)]
    for i, (weak, what) in enumerate(curves):
        rows = errors.where(estimator=weak, what=what)
        draw_band(left, rows["stages"], [rows[f] for f in SPREAD], i, f"{weak}: {what}")
    for i, (weak, rows) in enumerate(table.where(panel="edge").each("estimator")):
        look = style(2 * i)
        low, middle, high = (rows[f] for f in SPREAD)
        right.fill_between(rows["stages"], low, high, color=look["color"], alpha=0.2, linewidth=0)
        right.plot(rows["stages"], middle, label=weak, markevery=max(1, len(rows.rows) // 12), **look)
    left.set_xscale("log")
    stages = sorted(set(errors["stages"]))
    left.set_xticks(stages, stages)
    left.minorticks_off()
    left.set_ylim(bottom=0.0)
    right.axhline(0.0, color="black", linewidth=0.6)
    left.legend(frameon=False, fontsize="small")
    right.legend(frameon=False)
    tidy(left, "N, weak learners", "error rate")
    tidy(right, "stage i", "edge γᵢ (0: chance, 1: always right)")
    return figure
