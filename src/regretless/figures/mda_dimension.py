"""Excess risk of mirror descent with averaging against the number M of base functions (MDA, Theorem 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.evaluate.plots import draw_band, panels, tidy
from regretless.figures.common import SPREAD, Table, Work, quartiles
from regretless.learners.first_order.aggregator import MirrorDescentAggregator
from regretless.learners.first_order.mirror_descent import MirrorDescent
from regretless.theory import bounds
from regretless.theory.domains import Simplex

ENTROPY, EUCLIDEAN = "entropy (MDA)", "Euclidean (gradient descent)"


@dataclass(frozen=True)
class Settings:
    """Our own: the paper has no experiment. Hinge loss, functions with values 1 and -1, weights that sum to 1."""

    counts: tuple[int, ...] = (2, 4, 10, 30, 100, 300, 1000, 3000)
    rows: int = 1000  # t, if M varies
    functions: int = 100  # M, if t varies
    lengths: tuple[int, ...] = (30, 100, 300, 1000, 3000, 10_000)
    edges: tuple[float, ...] = (0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 0.8)  # E[Y h(X)] of the one good function
    runs: int = 20  # for each edge; the other functions have edge 0


SETTINGS = Settings()
QUICK = Settings(counts=(2, 30, 300), rows=300, lengths=(30, 300, 1000), edges=(0.08, 0.2, 0.5), runs=5)


def compute(settings: Settings, seed: int, work: Work) -> Table:
    """Mean and quartiles over the runs of the excess risk, at the edge with the largest mean, and Theorem 1."""
    cells = [("M", M, settings.rows) for M in settings.counts]
    cells += [("t", settings.functions, t) for t in settings.lengths]
    tasks = [(M, t, edge, seed, run) for _, M, t in cells for edge in settings.edges for run in range(settings.runs)]
    found = iter(work.each("runs", excess_risks, tasks))
    rows: list[tuple[Any, ...]] = []
    for varied, M, t in cells:
        risks = np.array([[next(found) for _ in range(settings.runs)] for _ in settings.edges])
        bound = bounds.aggregation_excess_risk(t, n_functions=M, radius=1.0, gradient_bound=1.0)
        for i, mirror in enumerate((ENTROPY, EUCLIDEAN)):
            worst = int(risks[:, :, i].mean(axis=1).argmax())
            some = risks[worst, :, i]
            row = (settings.edges[worst], some.mean(), *quartiles(some), bound if mirror == ENTROPY else math.nan)
            rows.append((varied, mirror, M, t, *row))
    names = ("edge", "mean", "quartile_1", "median", "quartile_3", "bound")
    return Table.of(("varied", "mirror", "functions", "t", *names), rows)


def excess_risks(M: int, t: int, edge: float, seed: int, run: int) -> tuple[float, float]:
    """The excess risk of the mean of t weights, learned from t - 1 rows, for each mirror.

    Y h_j(X) are independent signs, of mean `edge` for j = 0 and 0 for the others. With |theta|_1 = 1 the hinge loss is
    1 - Y theta.H(X), so the risk is 1 - edge theta_0, its least value 1 - edge, and the excess edge (1 - theta_0).
    """
    rng = np.random.default_rng([seed, M, t, run])
    y = rng.choice([-1.0, 1.0], size=t - 1)
    agree = rng.integers(0, 2, size=(t - 1, M), dtype=np.int8) * 2.0 - 1.0
    agree[:, 0] = np.where(rng.random(t - 1) < (1 + edge) / 2, 1.0, -1.0)
    H = agree * y[:, None]
    entropy = MirrorDescentAggregator("columns", loss="hinge", scale=1.0).fit(H, y, classes=[-1, 1])
    euclidean = MirrorDescent(loss="hinge", domain=Simplex(1.0), gradient_bound=math.sqrt(M)).fit(H, y, classes=[-1, 1])
    return edge * (1 - float(entropy.average_theta_[0])), edge * (1 - float(euclidean.coef_[0, 0]))


def draw(table: Table) -> Any:
    """Against M, and against t."""
    figure, axes = panels(1, 2)
    for panel, (varied, rows) in zip(axes[0], table.each("varied"), strict=True):
        x = "functions" if varied == "M" else "t"
        for i, (mirror, curve) in enumerate(rows.each("mirror")):
            spread = [curve[column] for column in SPREAD]
            draw_band(panel, curve[x], spread, i, mirror)
        bounded = rows.where(mirror=ENTROPY)
        label = r"Theorem 1: $2\sqrt{\ln M}\,\sqrt{t+1}/t$"
        panel.plot(bounded[x], bounded["bound"], color="0.5", linewidth=1.0, label=label)
        panel.set_xscale("log")
        panel.set_yscale("log")
        lowest, highest = rows["quartile_1"].min(), max(np.nanmax(rows["bound"]), rows["quartile_3"].max())
        ticks = [t for t in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if lowest / 2 < t < 2 * highest]
        panel.set_yticks(ticks, ticks)
        panel.yaxis.minorticks_off()
        fixed = f"t = {rows['t'][0]}" if varied == "M" else f"M = {rows['functions'][0]}"
        panel.set_title(fixed)
        tidy(panel, "M, base functions" if varied == "M" else "t, weights averaged", "excess hinge risk, worst edge")
    axes[0, 1].legend(frameon=False, fontsize="small")
    return figure
