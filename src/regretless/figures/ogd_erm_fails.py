"""The notes' example of why empirical risk minimisation needs regularization: alternating linear losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.evaluate.play import play
from regretless.evaluate.plots import panels, style, tidy
from regretless.figures.common import Table, Work, log_marks
from regretless.learners.first_order.mirror_descent import MirrorDescent
from regretless.learners.first_order.ogd import OGD
from regretless.learners.refitting.follow_the_leader import FollowTheLeader
from regretless.theory.domains import Ball, Box

LEADER = "follow the leader (ERM)"


@dataclass(frozen=True)
class Settings:
    """The losses w/2, -w, w, -w, ... over [-1, 1] are those of the notes; their number is our own."""

    rounds: int = 10_000
    shown: int = 20  # rounds whose weights are plotted


SETTINGS = Settings()
QUICK = Settings(rounds=1000)


def compute(settings: Settings, seed: int, work: Work) -> Table:
    """The weight, the regret and its bound, at the first rounds and then ten per decade. Nothing here is random."""
    marks = sorted({*range(1, settings.shown + 1), *log_marks(settings.rounds, 10)})
    found = work.each("games", rounds, [(settings.rounds, tuple(marks), name) for name in players()])
    columns = ("learner", "round", "weight", "loss", "regret", "bound")
    return Table.of(columns, [row for rows in found for row in rows])


def players() -> dict[str, Any]:
    """Follow-the-leader without regularization, and two ways to regularize."""
    lazy = MirrorDescent(loss="linear", domain=Ball(1.0), averaging=False, gradient_bound=1.0)
    return {
        LEADER: FollowTheLeader(Box(1.0)),
        "regularized leader": lazy,
        "projected OGD": OGD(loss="linear", radius=1.0, gradient_bound=1.0),
    }


def rounds(n: int, marks: tuple[int, ...], name: str) -> list[tuple[Any, ...]]:
    """One game."""
    slopes = np.where(np.arange(n) % 2, -1.0, 1.0)
    slopes[0] = 0.5
    options: dict[str, Any] = {"checkpoints": marks, "keep_forecasts": True, "progress": False}
    trace: Any = play(players()[name], np.ones((n, 1)), slopes, **options)
    weights = trace.forecasts[np.array(marks) - 1]
    regret = [interval.high for interval in trace.regret]
    return list(zip([name] * len(marks), marks, weights, trace.loss, regret, trace.bound, strict=True))


def draw(table: Table) -> Any:
    """The weights of the first rounds, and regret over time."""
    figure, axes = panels(1, 2)
    left, right = axes[0]
    for i, (learner, rows) in enumerate(table.each("learner")):
        first = rows["round"] <= 20
        left.plot(rows["round"][first], rows["weight"][first], label=learner, **style(i))
        decades = np.isin(rows["round"], log_marks(int(rows["round"].max())))
        right.plot(rows["round"][decades], rows["regret"][decades], label=learner, **style(i))
    bounded = table.where(learner="projected OGD")
    right.plot(bounded["round"], bounded["bound"], color="0.5", linewidth=1.0, label=r"OGD's bound $\sqrt{8T}$")
    left.set_xticks(range(0, 21, 5))
    tidy(left, "round t", "weight $w_t$ played")
    right.set_xscale("log")
    right.set_yscale("log")
    tidy(right, "rounds T", "regret")
    right.legend(frameon=False)
    return figure
