"""The notes' two rates of online gradient descent: sqrt T for convex losses, ln T for strongly convex ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.core.types import Array
from regretless.evaluate.play import play
from regretless.evaluate.plots import draw_band, panels, style, tidy
from regretless.figures.common import SPREAD, Table, Work, log_marks, quartiles
from regretless.learners.first_order.ogd import OGD
from regretless.learners.first_order.strongly_convex import StronglyConvexOGD

LINEAR, STRONG, SAME = "linear", "strongly convex", "strongly convex, larger steps"
LABELS = {
    LINEAR: "linear losses, steps $\\sim 1/\\sqrt{t}$",
    STRONG: "strongly convex losses, steps $1/(\\sigma t)$",
    SAME: "strongly convex losses, steps $\\sim 1/\\sqrt{t}$",
}


@dataclass(frozen=True)
class Settings:
    """Our own: the notes have no experiment."""

    rounds: int = 100_000
    runs: int = 100


SETTINGS = Settings()
QUICK = Settings(rounds=1000, runs=20)


def compute(settings: Settings, seed: int, work: Work) -> Table:
    """Mean and quartiles over the runs of the regret, with its bound."""
    marks = [t for t in log_marks(settings.rounds) if t >= 10]
    games = (LINEAR, STRONG, SAME)
    tasks = [(kind, settings.rounds, tuple(marks), seed, run) for kind in games for run in range(settings.runs)]
    found = work.each("games", game, tasks)
    rows = []
    for k, kind in enumerate(games):
        regret, bound = np.array(found[k * settings.runs : (k + 1) * settings.runs]).swapaxes(0, 1)
        columns = (marks, regret.mean(axis=0), *quartiles(regret), bound[0])
        rows += [(kind, *row) for row in zip(*columns, strict=True)]
    return Table.of(("game", "rounds", "mean", *SPREAD, "bound"), rows)


def game(kind: str, n: int, marks: tuple[int, ...], seed: int, run: int) -> Array:
    """Regret and bound on fair coin flips y: the losses w y, or (w - y)^2, over [-1, 1]."""
    y = np.random.default_rng([seed, run]).choice([-1.0, 1.0], size=n)
    learner = {
        LINEAR: OGD(loss="linear", radius=1.0, gradient_bound=1.0),
        STRONG: StronglyConvexOGD(loss="squared", regularization=0.0, sigma=2.0, radius=1.0),
        SAME: OGD(loss="squared", radius=1.0, gradient_bound=4.0),
    }[kind]
    trace: Any = play(learner, np.ones((n, 1)), y, checkpoints=marks, progress=False)
    return np.array([[interval.high for interval in trace.regret], trace.bound])


def draw(table: Table) -> Any:
    """Two scales, on which sqrt T and ln T are lines: means over the runs, with quartiles."""
    figure, axes = panels(1, 2)
    left, right = axes[0]
    for i, (kind, rows) in enumerate(table.each("game")):
        low, _, high = (rows[column] for column in SPREAD)
        for panel in (left, right) if kind == STRONG else (left,):
            draw_band(panel, rows["rounds"], (low, rows["mean"], high), i, LABELS[kind])
            if kind != SAME:
                look = style(i) | {"marker": "", "linewidth": 0.9}
                panel.plot(rows["rounds"], rows["bound"], label="its bound", **look)
    T = table.where(game=LINEAR)["rounds"]
    left.plot(T, np.sqrt(2 * T / np.pi), color="0.5", linewidth=1.0, label=r"$\sqrt{2T/\pi}$: mean for linear losses")
    left.set_yscale("log")
    left.set_ylim(bottom=0.1)
    for panel in (left, right):
        panel.set_xscale("log")
        tidy(panel, "rounds T", "regret")
        panel.legend(frameon=False, fontsize="small")
    left.set_title("logarithmic axes: $\\sqrt{T}$ is a line")
    right.set_title("linear regret axis: ln T is a line")
    right.set_ylim(bottom=0.0)
    return figure
