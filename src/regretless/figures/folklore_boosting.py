"""FOLKLORE's online boosting (AdaBoost.OLM++, Algorithms 3 and 4): more weak learners, fewer mistakes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.evaluate.plots import draw_band, panels, style, tidy
from regretless.figures.baselines import Named, adaboost_olm
from regretless.figures.common import SPREAD, Table, Work, quartiles
from regretless.learners.ensembles.boosting import OnlineBoosting
from regretless.learners.ensembles.weak import WeakLearner
from regretless.theory import bounds

LEARNERS = ("ferns", "stump", "naive-bayes")
RIVALS = ("ferns", "stump")  # the weak learners of AdaBoost.OL and AdaBoost.OLM
ONLINE, HELD_OUT = "label drawn, online", "last stage, held out"
OLM, OL = "AdaBoost.OLM, online", "AdaBoost.OL, online"
DIGITS, PARITY = "error", "parity"  # ten classes; even digits against odd ones


@dataclass(frozen=True)
class Settings:
    """Our own: the paper has no experiment. scikit-learn's digits, 10 classes, in random orders."""

    stages: tuple[int, ...] = (1, 2, 5, 10, 20, 40, 80)
    orders: int = 10
    rows: int = 1297  # learned, out of 1797; the others are held out


SETTINGS = Settings()
QUICK = Settings(stages=(1, 4, 12), orders=2, rows=500)


def compute(settings: Settings, seed: int, work: Work) -> Table:
    """Error rates and bounds by the number of weak learners, and the edges for the largest number."""
    cells = [(panel, weak, N) for panel in (DIGITS, PARITY) for weak in LEARNERS for N in settings.stages]
    tasks = [(*cell, settings.rows, seed, order) for cell in cells for order in range(settings.orders)]
    found = dict(zip(tasks, work.each("games", game, tasks[::-1])[::-1], strict=True))
    rows: list[tuple[Any, ...]] = []

    def games(*cell: Any) -> list[dict[str, Any]]:
        return [found[*cell, settings.rows, seed, order] for order in range(settings.orders)]

    for cell in cells:
        for what in games(*cell)[0]:
            if what != "edges":
                rows.append((*cell[:2], what, cell[2], *quartiles([each[what] for each in games(*cell)])))
    for weak in LEARNERS:
        most = settings.stages[-1]
        edges = quartiles([each["edges"] for each in games(DIGITS, weak, most)])
        rows += [
            ("edge", weak, "edge", stage, *three) for stage, *three in zip(range(1, most + 1), *edges, strict=True)
        ]
    return Table.of(("panel", "estimator", "what", "stages", "quartile_1", "median", "quartile_3"), rows)


def game(panel: str, weak: str, n_learners: int, rows: int, seed: int, order: int) -> dict[str, Any]:
    """One pass in one order, also of the rival; then the labels of the last stage on held-out rows."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    y, K = (y % 2, 2) if panel == PARITY else (y, 10)
    shuffled = np.random.default_rng([seed, order]).permutation(len(y))
    learned, held_out = shuffled[:rows], shuffled[rows:]
    learner = OnlineBoosting(weak, n_estimators=n_learners, random_state=order)
    learner.fit(X[learned], y[learned], classes=range(K))
    last = learner.stage_scores(X[held_out])[:, -1].argmax(axis=1)
    found = {
        ONLINE: learner.mistakes_ / rows,
        HELD_OUT: float((last != y[held_out]).mean()),
        "bound": proposition_12(learner, K, rows) / rows,
        "edges": learner.edges_,
    }
    if weak in RIVALS:
        stages: list[WeakLearner] = [Named(weak) for _ in range(n_learners)]
        for i, stage in enumerate(stages):
            stage.start(X.shape[1], K, order + i)
        name, scale = (OL, 4.0) if panel == PARITY else (OLM, None)
        found[name] = adaboost_olm(stages, X[learned], y[learned], K, order, scale).mean()
    return found


def proposition_12(learner: OnlineBoosting, n_classes: int, rows: int) -> float:
    """The bound as the paper has it, which may exceed the number of rows (`mistake_bound` does not)."""
    edges = np.clip(learner.edges_, -1.0, 1.0).tolist()
    regret = float(learner.stage_regret_.max())
    return bounds.boosting(rows, n_classes=n_classes, edges=edges, regret=regret, failure=0.05)


def draw(table: Table) -> Any:
    """Errors by the number of stages, for ten classes and two, and the edges."""
    figure, axes = panels(1, 3)
    left, middle_panel, right = axes[0]
    for panel, place, rival in ((DIGITS, left, OLM), (PARITY, middle_panel, OL)):
        curves = [(weak, what) for weak in RIVALS for what in (ONLINE, rival)] + [("naive-bayes", ONLINE)]
        for i, (weak, what) in enumerate(curves):
            rows = table.where(panel=panel, estimator=weak, what=what)
            draw_band(place, rows["stages"], [rows[f] for f in SPREAD], i, f"{weak}: {what}")
        stages = sorted(set(table.where(panel=panel)["stages"]))
        place.set_xscale("log")
        place.set_xticks(stages, stages)
        place.minorticks_off()
        place.set_ylim(bottom=0.0)
        place.legend(frameon=False, fontsize="small")
        tidy(place, "N, weak learners", "error rate")
    left.set_title("digits, 10 classes")
    middle_panel.set_title("digits, even or odd")
    for i, (weak, rows) in enumerate(table.where(panel="edge").each("estimator")):
        look = style(2 * i)
        low, middle, high = (rows[f] for f in SPREAD)
        right.fill_between(rows["stages"], low, high, color=look["color"], alpha=0.2, linewidth=0)
        right.plot(rows["stages"], middle, label=weak, markevery=max(1, len(rows.rows) // 12), **look)
    right.axhline(0.0, color="black", linewidth=0.6)
    right.legend(frameon=False)
    right.set_title("edges, 10 classes")
    tidy(right, "stage i", "edge γᵢ (0: chance, 1: always right)")
    return figure
