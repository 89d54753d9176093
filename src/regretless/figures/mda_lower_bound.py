"""No method has a much smaller excess risk than mirror descent with averaging (MDA, Remark 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.evaluate.plots import panels, style, tidy
from regretless.figures.common import Table, Work
from regretless.learners.first_order.aggregator import MirrorDescentAggregator
from regretless.theory import bounds

MDA, BAYES = "mirror descent with averaging", "the best possible method"


@dataclass(frozen=True)
class Settings:
    """Our own: the paper has no experiment. Hinge loss, functions with values 1 and -1, weights that sum to 1."""

    functions: int = 100  # M, if t varies
    lengths: tuple[int, ...] = (30, 100, 300, 1000, 3000)
    counts: tuple[int, ...] = (3, 10, 30, 100, 300, 1000)  # M, if t is `rows`
    rows: int = 1000
    edges: tuple[float, ...] = (0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5)  # E[Y h(X)] of the one good function
    runs: int = 60  # for each edge


SETTINGS = Settings()
QUICK = Settings(functions=30, lengths=(30, 100, 300), counts=(3, 30, 300), rows=300, edges=(0.08, 0.2, 0.4), runs=12)


def compute(settings: Settings, seed: int, work: Work) -> Table:
    """The mean excess risk at each method's worst edge, between the lower bound and Theorem 1."""
    cells = [("t", settings.functions, t) for t in settings.lengths]
    cells += [("M", M, settings.rows) for M in settings.counts]
    tasks = [(M, t, edge, seed, run) for _, M, t in cells for edge in settings.edges for run in range(settings.runs)]
    found = iter(work.each("runs", excess_risks, tasks))
    rows: list[tuple[Any, ...]] = []
    for varied, M, t in cells:
        risks = np.array([[next(found) for _ in range(settings.runs)] for _ in settings.edges]).mean(axis=1)
        size: dict[str, Any] = {"n_functions": M, "radius": 1.0, "gradient_bound": 1.0}
        ends = bounds.aggregation_lower_bound(t - 1, **size), bounds.aggregation_excess_risk(t, **size)
        for i, method in enumerate((MDA, BAYES)):
            worst = int(risks[:, i].argmax())
            rows.append((varied, method, M, t, settings.edges[worst], float(risks[worst, i]), *ends))
    return Table.of(("varied", "method", "functions", "t", "edge", "mean", "lower", "upper"), rows)


def excess_risks(M: int, t: int, edge: float, seed: int, run: int) -> tuple[float, float]:
    """The excess risk after t - 1 rows of mirror descent, and of the most probable function.

    Y h_j(X) are independent signs, of mean `edge` for one unknown j and 0 for the others; here it is j = 0. The excess
    is edge (1 - theta_0), linear in theta. A method that knows the edge and all but j therefore does best by choosing
    the most probable function, the one that agreed most often (a draw among equals).
    """
    rng = np.random.default_rng([seed, M, t, run])
    y = rng.choice([-1.0, 1.0], size=t - 1)
    agree = rng.integers(0, 2, size=(t - 1, M), dtype=np.int8) * 2.0 - 1.0
    agree[:, 0] = np.where(rng.random(t - 1) < (1 + edge) / 2, 1.0, -1.0)
    learner = MirrorDescentAggregator("columns", loss="hinge", scale=1.0).fit(agree * y[:, None], y, classes=[-1, 1])
    votes = agree.sum(axis=0)
    best = votes == votes.max()
    guessed = float(best[0]) / float(best.sum())
    return edge * (1 - float(learner.average_theta_[0])), edge * (1 - guessed)


def draw(table: Table) -> Any:
    """Against t, and against M."""
    figure, axes = panels(1, 2)
    for panel, (varied, rows) in zip(axes[0], table.each("varied"), strict=True):
        x = "t" if varied == "t" else "functions"
        for i, (method, curve) in enumerate(rows.each("method")):
            panel.plot(curve[x], curve["mean"], label=method, **style(i))
        ends = rows.where(method=MDA)
        panel.plot(ends[x], ends["upper"], color="0.5", linewidth=1.0, label="Theorem 1")
        panel.plot(ends[x], ends["lower"], color="0.5", linewidth=1.0, linestyle=":", label="lower bound, every method")
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_title(f"M = {rows['functions'][0]}" if varied == "t" else f"t = {rows['t'][0]}")
        tidy(panel, "t, weights averaged" if varied == "t" else "M, base functions", "excess hinge risk, worst edge")
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure
