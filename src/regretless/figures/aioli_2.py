"""Figure 2 of the AIOLI paper: regret against n on a stream that is hard for proper learners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.evaluate.play import play
from regretless.evaluate.plots import panels, style, tidy
from regretless.figures.common import Table, Work
from regretless.learners.refitting.aggregating_forecaster import AggregatingForecaster
from regretless.learners.refitting.ftrl import FTRL
from regretless.learners.second_order.aioli import AIOLI
from regretless.streams import stream as by_name
from regretless.theory import bounds
from regretless.theory.domains import Ball

AIOLI_THEORY = "AIOLI, λ = 1/B²"


@dataclass(frozen=True)
class Settings:
    """Section 5: ten runs for chi = +1 and ten for -1, B = ln n, epsilon = 0.01. The paper does not list n."""

    runs: int = 10
    sizes: tuple[int, ...] = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000)


SETTINGS = Settings()
QUICK = Settings(runs=3, sizes=(10, 100, 1000))


def compute(settings: Settings, seed: int, work: Work) -> Table:
    """For each n and learner, the mean regret for each chi, and the worse of the two."""
    first = 2 * seed * settings.runs  # an even seed of the stream gives chi = +1, an odd one -1
    tasks = [(n, first + i) for n in settings.sizes for i in range(2 * settings.runs)]
    found = dict(zip(tasks, work.each("games", regrets, tasks[::-1])[::-1], strict=True))
    rows = []
    for n in settings.sizes:
        plus, minus = ([found[n, first + i + odd] for i in range(0, 2 * settings.runs, 2)] for odd in (0, 1))
        for learner in plus[0]:
            means = [float(np.mean([run[learner] for run in chi])) for chi in (plus, minus)]
            rows.append((n, np.log(n), learner, *means, max(means), _bound(n) if learner == AIOLI_THEORY else np.nan))
    return Table.of(("n", "radius", "learner", "regret_plus", "regret_minus", "regret", "bound"), rows)


def regrets(n: int, seed: int) -> dict[str, float]:
    """The regret of each learner on one stream, against the best weights in the ball of radius ln n."""
    stream = by_name("adversarial", n, seed)
    B = stream.radius
    learners = {
        "FTRL, λ = 1": FTRL(regularization=1.0),
        "AIOLI, λ = 1": AIOLI(radius=B, regularization=1.0, curvature="aioli", feature_bound=1.0),
        AIOLI_THEORY: AIOLI(radius=B, regularization=1 / B**2, curvature="aioli", feature_bound=1.0),
        "Foster et al. 2018": AggregatingForecaster(radius=B),
    }
    options: dict[str, Any] = {"classes": stream.classes, "domain": Ball(B), "checkpoints": [n], "progress": False}
    traces: Any = play(learners, stream.X, stream.y, **options)
    return {name: trace.regret[-1].high for name, trace in traces.items()}


def _bound(n: int) -> float:
    B = float(np.log(n))
    return bounds.aioli(
        n, n_features=1, radius=B, feature_bound=1.0, regularization=1 / B**2, curvature=1 / (2 * (1 + B))
    )


def draw(table: Table) -> Any:
    """Logarithmic axes as in the paper, extended to negative values."""
    figure, axes = panels(1, 1, width=7.5, height=5.0)
    panel = axes[0, 0]
    for i, (learner, rows) in enumerate(table.each("learner")):
        panel.plot(rows["n"], rows["regret"], label=learner, **style(i))
    theory = table.where(learner=AIOLI_THEORY)
    panel.plot(theory["n"], theory["bound"], color="0.5", linewidth=1.0, label="AIOLI, λ = 1/B²: its bound")
    n = theory["n"]
    panel.plot(n, (n / n[0]) ** (1 / 3), color="0.5", linewidth=1.0, linestyle=(0, (1, 3)), label="slope of $n^{1/3}$")
    panel.set_xscale("log")
    panel.set_yscale("symlog", linthresh=1.0)
    panel.axhline(0.0, color="black", linewidth=0.6)
    tidy(panel, "n, rows", "regret, mean of the worse χ (nats)")
    panel.legend(frameon=False, fontsize="small", loc="lower left")
    return figure
