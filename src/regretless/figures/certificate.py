"""Regret, certificate and bound over time, for each second-order learner."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.evaluate.play import play
from regretless.evaluate.plots import BOUND, CERTIFICATE, REGRET, panels, tidy
from regretless.figures.common import Table, Work, log_marks
from regretless.learners.second_order.aioli import AIOLI
from regretless.learners.second_order.folklore import FOLKLORE
from regretless.learners.second_order.gaf import GAF
from regretless.learners.second_order.ons import ONS
from regretless.learners.second_order.vovk import VovkAzouryWarmuth
from regretless.theory.domains import Ball

STREAMS = {"random": "labels drawn from a logistic model", "adversary": "labels against the forecast"}
LEARNERS = ("AIOLI", "FOLKLORE", "GAF", "ONS", "Vovk-Azoury-Warmuth")


@dataclass(frozen=True)
class Settings:
    """Our own. Parameters are those of each theorem, for rows of norm 1."""

    rows: int = 10_000
    features: int = 3
    radius: float = 3.0


SETTINGS = Settings()
QUICK = Settings(rows=100)


def compute(settings: Settings, seed: int, work: Work) -> Table:
    """Both ends of the regret interval, the certificate and the bound at every checkpoint of every game."""
    tasks = [(settings, stream, learner, seed) for stream in STREAMS for learner in LEARNERS]
    columns = ("stream", "learner", "rows", "regret_low", "regret_high", "certificate", "bound")
    return Table.of(columns, [row for rows in work.each("games", game, tasks) for row in rows])


def player(settings: Settings, name: str) -> Any:
    """A learner with the parameters of its theorem."""
    B, d = settings.radius, settings.features
    return {
        "AIOLI": AIOLI(radius=B, feature_bound=1.0),
        "FOLKLORE": FOLKLORE(radius=B, feature_bound=1.0),
        "GAF": GAF(radius=B, regularization=4.0 * max(4, 2 * d), feature_bound=1.0),
        "ONS": ONS(radius=B, feature_bound=1.0),
        "Vovk-Azoury-Warmuth": VovkAzouryWarmuth(regularization=1 / B**2),
    }[name]


def game(settings: Settings, stream: str, name: str, seed: int) -> list[tuple[Any, ...]]:
    """The checkpoints of one learner on one stream."""
    learner, numbers = player(settings, name), name == "Vovk-Azoury-Warmuth"
    options: dict[str, Any] = {"checkpoints": log_marks(settings.rows), "progress": False}
    options |= {"domain": Ball(settings.radius)} if numbers else {"classes": [-1, 1]}
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(settings.rows, settings.features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    if stream == "random":
        u = settings.radius * np.eye(1, settings.features)[0]
        y = np.where(rng.random(settings.rows) < 1 / (1 + np.exp(-X @ u)), 1, -1)
        trace: Any = play(learner, X, y * 1.0 if numbers else y, **options)
    else:
        trace = play(learner, adversary(X, numbers), **options)
    low, high = zip(*trace.regret, strict=True)
    rows = trace.rows.astype(int)
    n = len(rows)
    return list(zip([stream] * n, [name] * n, rows, low, high, trace.certificate, trace.bound, strict=True))


def adversary(X: Any, numbers: bool) -> Callable[[], Generator[Any, Any, None]]:
    """The less likely label according to the forecast; for a number, the opposite sign."""

    def start() -> Generator[Any, Any, None]:
        for x in X:
            forecast = yield x
            towards = 0.0 if forecast is None else forecast if numbers else forecast[1] - 0.5
            label = -1 if towards > 0 else 1
            yield float(label) if numbers else label

    return start


def draw(table: Table) -> Any:
    """One row per stream, one column per learner."""
    streams = table.each("stream")
    names = [name for name, _ in table.each("learner")]
    figure, axes = panels(len(streams), len(names), width=2.6, height=2.9, sharex=True, sharey=True)
    for i, (stream, rows) in enumerate(streams):
        for panel, name in zip(axes[i], names, strict=True):
            some = rows.where(learner=name)
            n, low, high = some["rows"], some["regret_low"], some["regret_high"]
            panel.fill_between(n, low, high, color=REGRET, alpha=0.4, linewidth=0)
            panel.plot(n, high, color=REGRET, linewidth=1.6, marker="o", markersize=3, markevery=2, label="regret")
            panel.plot(n, some["certificate"], color=CERTIFICATE, linestyle="--", label="certificate")
            panel.plot(n, some["bound"], color=BOUND, linestyle=":", linewidth=1.8, label="bound of the theorem")
            panel.set_xscale("log")
            panel.set_yscale("symlog", linthresh=1.0)
            panel.axhline(0.0, color="black", linewidth=0.6)
            tidy(panel, "rows" if i == len(streams) - 1 else "", "")
            if i == 0:
                panel.set_title(name, fontsize="medium")
        axes[i, 0].set_ylabel(f"{STREAMS[stream]}\nregret (total loss)", fontsize="small")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    return figure
