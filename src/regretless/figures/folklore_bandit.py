"""FOLKLORE's bandit reduction (Algorithm 2, Theorem 9)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.core.types import Array
from regretless.evaluate.play_bandit import play_bandit
from regretless.evaluate.plots import draw_band, panels, style, tidy
from regretless.figures.baselines import newtron
from regretless.figures.common import SPREAD, Table, Work, log_marks, quartiles
from regretless.learners.bandits.bandit_multiclass import BanditMulticlass
from regretless.learners.bandits.banditron import Banditron
from regretless.learners.bandits.epsilon_greedy import EpsilonGreedy
from regretless.learners.bandits.gaptron import Gaptron
from regretless.learners.second_order.folklore import FOLKLORE
from regretless.theory.domains import RowBall

REDUCTION = "FOLKLORE's reduction"
BETA = 0.01  # of Newtron, as in its paper's experiments


@dataclass(frozen=True)
class Settings:
    """Our own: the paper has no experiment."""

    classes: int = 3
    radius: float = 5.0
    horizons: tuple[int, ...] = (100, 300, 1000, 3000, 10_000)
    runs: int = 20
    scale: float = 20.0  # of the true logits; larger than the radius, so that the labels have little noise


SETTINGS = Settings()
QUICK = Settings(horizons=(100, 600), runs=2)


def compute(settings: Settings, seed: int, work: Work) -> Table:
    """For each horizon the mistakes above the best log loss; for the longest, mistakes over time, also of rivals."""
    longest = settings.horizons[-1]
    tasks = [(settings, T, seed, run) for T in settings.horizons[::-1] for run in range(settings.runs)]
    found = dict(zip([(T, run) for _, T, _, run in tasks], work.each("games", game, tasks), strict=True))
    rows: list[tuple[Any, ...]] = []
    for T in settings.horizons:
        runs = [found[T, run] for run in range(settings.runs)]
        relative = np.array([run["relative"] for run in runs])
        row = (relative.mean(), *quartiles(relative), runs[0]["bound"])
        rows.append(("horizon", REDUCTION, T, runs[0]["exploration"], *row))
    for name in found[longest, 0]["rates"]:
        rates = quartiles([found[longest, run]["rates"][name] for run in range(settings.runs)])
        means = np.mean([found[longest, run]["rates"][name] for run in range(settings.runs)], axis=0)
        for t, mean, *three in zip(log_marks(longest), means, *rates, strict=True):
            rows.append(("time", name, t, math.nan, mean, *three, math.nan))
    names = ("mean", "quartile_1", "median", "quartile_3", "bound")
    return Table.of(("panel", "learner", "rounds", "exploration", *names), rows)


def game(settings: Settings, T: int, seed: int, run: int) -> dict[str, Any]:
    """One stream of T rounds: the reduction with the theory's gamma for T, and its rivals for the longest T."""
    K, B = settings.classes, settings.radius
    rng = np.random.default_rng([seed, T, run])
    angle = rng.uniform(0, 2 * np.pi, size=T)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    centres = 2 * np.pi * np.arange(K) / K
    logits = settings.scale * X @ np.array([np.cos(centres), np.sin(centres)])
    y = np.argmax(logits + rng.gumbel(size=(T, K)), axis=1)
    base = FOLKLORE(radius=B, feature_bound=1.0)
    learners: dict[str, Any] = {REDUCTION: BanditMulticlass(base, n_classes=K, horizon=T, random_state=run)}
    gamma = float(min(0.5, math.sqrt(K / T)))  # the exploration for sqrt(K T) mistakes
    if settings.horizons[-1] == T:
        learners |= {
            "ε-greedy over FOLKLORE": EpsilonGreedy(base, epsilon=gamma, n_classes=K, random_state=run),
            "Banditron": Banditron(gamma=min(0.5, T ** (-1 / 3)), n_classes=K, random_state=run),
            "Gaptron": Gaptron(gamma=gamma, n_classes=K, random_state=run),
        }
    traces: Any = play_bandit(learners, X, y, domain=RowBall(B), checkpoints=log_marks(T), progress=False)
    rates = {name: trace.mistake_rate for name, trace in traces.items()}
    if settings.horizons[-1] == T:
        marks = np.asarray(log_marks(T))
        rates["Newtron"] = np.cumsum(newtron(X, y, K, B, gamma, BETA, seed=run))[marks - 1] / marks
    return {
        "relative": _above_best_log_loss(traces[REDUCTION]),
        "bound": traces[REDUCTION].bound[-1],
        "exploration": learners[REDUCTION].exploration_,
        "rates": rates,
    }


def _above_best_log_loss(trace: Any) -> float:
    above: Array = trace.relative_mistakes
    return float(above[-1])


def draw(table: Table) -> Any:
    """Mistakes per round over time, and the excess at each horizon with its bound, as printed and as proved."""
    figure, axes = panels(1, 2)
    left, right = axes[0]
    for i, (name, rows) in enumerate(table.where(panel="time").each("learner")):
        spread = [rows[column] for column in SPREAD]
        draw_band(left, rows["rounds"], spread, i, name)
    rows = table.where(panel="horizon")
    spread = [rows[column] for column in SPREAD]
    draw_band(right, rows["rounds"], spread, 0, "mistakes − best log loss")
    unclipped = rows["exploration"] < 1
    right.plot(rows["rounds"], rows["bound"], label=r"bound on its mean (proved: $2\sqrt{KTR}$)", **style(1))
    printed = (rows["exploration"] * rows["rounds"])[unclipped]  # gamma = sqrt(K R / T)
    right.plot(rows["rounds"][unclipped], printed, label=r"as printed: $\sqrt{KTR}$", **style(2))
    right.plot(rows["rounds"], rows["rounds"], color="0.5", linewidth=1.0, label="T: bounds above are trivial")
    left.set_ylim(0.0, 1.0)
    left.set_xlim(left=5)
    left.set_title(f"over time, {int(rows['rounds'].max())} rounds")
    right.set_yscale("log")
    right.set_title("each horizon with its own exploration")
    for panel in (left, right):
        panel.set_xscale("log")
        panel.legend(frameon=False, fontsize="small")
    tidy(left, "rounds", "mistakes per round")
    tidy(right, "T, rounds", "mistakes above the best log loss")
    return figure
