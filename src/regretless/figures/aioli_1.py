"""Figure 1 of the AIOLI paper: the forecast as a function of x, after some rows, for FTRL, AIOLI and aggregating."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.core.types import Array
from regretless.evaluate.plots import panels, style, tidy
from regretless.figures.common import Table, Work
from regretless.learners.refitting.aggregating_forecaster import AggregatingForecaster
from regretless.learners.refitting.ftrl import FTRL
from regretless.learners.second_order.aioli import AIOLI
from regretless.streams import stream as by_name


@dataclass(frozen=True)
class Settings:
    """The paper gives none for this figure; FTRL's lambda and the first stream are those of its section 5."""

    rows: int = 100  # of the stream of section 5, with B = ln(rows)
    few: int = 10  # rows on [-1, 1] whose labels are their signs
    few_radius: float = 5.0
    points: int = 161
    reach: float = 2.0  # the functions are shown on [-reach, reach]


SETTINGS = Settings()
QUICK = Settings(points=41)


def compute(settings: Settings, seed: int, work: Work) -> Table:
    """The margin that each learner would forecast at each point, after each stream."""
    results = work.each("streams", functions, [(settings, seed, stream) for stream in ("section 5", "separable")])
    return Table.of(("stream", "learner", "x", "margin"), [row for rows in results for row in rows])


def functions(settings: Settings, seed: int, stream: str) -> list[tuple[str, str, float, float]]:
    """The margins of one stream."""
    if stream == "section 5":
        played = by_name("adversarial", settings.rows, 2 * seed)
        X, y, B = played.X, played.y, played.radius
    else:
        X = np.random.default_rng([seed, 1]).uniform(-1, 1, size=(settings.few, 1))
        y, B = np.where(X[:, 0] > 0, 1, -1), settings.few_radius
    learners = {
        "FTRL": FTRL(regularization=1.0),
        "AIOLI": AIOLI(radius=B, regularization=1 / B**2, curvature="aioli", feature_bound=max(1.0, settings.reach)),
        "Foster et al. 2018": AggregatingForecaster(radius=B),
    }
    points = np.linspace(-settings.reach, settings.reach, settings.points)
    rows = []
    for name, learner in learners.items():
        learner.fit(X, y, classes=[-1, 1])
        rows += [(stream, name, x, margin) for x, margin in zip(points, margins(learner, points), strict=True)]
    return rows


def margins(learner: Any, points: Array) -> Array:
    """The log-odds of +1."""
    log_p = np.log(learner.predict_proba(points[:, None]))
    odds: Array = log_p[:, 1] - log_p[:, 0]
    return odds


def draw(table: Table) -> Any:
    """One panel per stream."""
    streams = table.each("stream")
    figure, axes = panels(1, len(streams))
    for panel, (stream, rows) in zip(axes[0], streams, strict=True):
        for i, (learner, curve) in enumerate(rows.each("learner")):
            every = math.ceil(len(curve.rows) / 12)
            panel.plot(curve["x"], curve["margin"], label=learner, markevery=(i * every // 3, every), **style(i))
        panel.axhline(0.0, color="black", linewidth=0.6)
        panel.set_title("after the stream of section 5" if stream == "section 5" else "after a few separable rows")
        tidy(panel, "x", "forecast: the margin ŷ")
    axes[0, 0].legend(frameon=False)
    return figure
