"""The leading features of a run: a table for the summary and a picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from regretless.core.effects import Effect
from regretless.evaluate.plots import BOUND, REGRET, panels, tidy
from regretless.evaluate.run.run import Run

MOST = 20  # features that are listed


def leading_features(run: Run) -> list[Effect]:
    """The features with the largest effects on the forecasts of the learner, if it has them."""
    try:
        return [effect for effect in run.learner.effects(run.names_of_columns())[:MOST] if effect.change.any()]
    except (ValueError, AttributeError):  # not linear, or only one class so far
        return []


def as_table(effects: list[Effect], classes: list[Any] | None) -> list[dict[str, Any]]:
    """Each effect with the class whose log-odds, or logit, it changes most."""
    return [
        {"feature": effect.feature, "step": effect.step, "change": change, "class": label}
        for effect, (change, label) in ((effect, _largest(effect, classes)) for effect in effects)
    ]


def _largest(effect: Effect, classes: list[Any] | None) -> tuple[float, Any]:
    k = int(np.abs(effect.change).argmax())
    label = None if classes is None else classes[-1] if len(effect.change) == 1 else classes[k]
    return float(effect.change[k]), label


def draw(table: list[dict[str, Any]]) -> Any:
    """Draw the changes as bars. Returns the figure."""
    figure, axes = panels(1, 1, 7.5, 1.2 + 0.28 * len(table))
    axis = axes[0, 0]
    several = len({row["class"] for row in table}) > 1
    names = [row["feature"][:40] + (f" ({row['class']})" if several else "") for row in table]
    places = np.arange(len(table))[::-1]
    changes = [row["change"] for row in table]
    axis.barh(places, changes, color=[REGRET if change > 0 else BOUND for change in changes], height=0.7)
    axis.set_yticks(places, names, fontsize="small", parse_math=False)
    axis.axvline(0.0, color="black", linewidth=0.8)
    label = table[0]["class"]
    what = "change of the forecast" if label is None else "change of the log-odds"
    tidy(axis, what if several or label is None else f"{what} of {label}", "")
    axis.set_title("leading features, from low to high or from absent to present", fontsize="medium")
    return figure
