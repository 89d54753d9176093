"""Pictures of a run: scores over time, and the reliability of the probabilities of each class."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from regretless.core.types import Array
from regretless.evaluate.plots import BOUND, REGRET, panels, tidy
from regretless.evaluate.run.scores import OverTime

MOST_CLASSES = 6  # the most frequent ones have a panel


def over_time(scores: OverTime, baseline: dict[str, float], is_numbers: bool) -> Any:
    """Draw the scores in windows of rows, with what a constant scores over all rows. Returns the figure."""
    names = ("mean_squared_error", "mean_absolute_error") if is_numbers else ("mean_log_loss", "error_rate")
    words = ("squared error", "absolute error") if is_numbers else ("log loss per row", "error rate")
    triples = zip(scores[1:], names, words, strict=True)
    shown = [(values, name, word) for values, name, word in triples if values is not None]
    figure, axes = panels(1, len(shown))
    edges = np.concatenate([[0], scores.ends])
    for (values, name, word), each in zip(shown, axes[0], strict=True):
        each.stairs(values, edges, color=REGRET, linewidth=1.6, baseline=None, label="this run")
        each.axhline(baseline[name], color=BOUND, linestyle="--", linewidth=1.2, label="best constant for all rows")
        each.set_ylim(bottom=0.0)
        each.set_title(f"{word}, in windows of {scores.ends[0]:,} rows", fontsize="medium")
        tidy(each, "row", word)
        each.legend(frameon=False, fontsize="small")
    return figure


def reliability(bins: Array, labels: list[Any], only: int | None) -> Any:
    """Draw for each class how often it came against its probability; of two classes, only one. Returns the figure."""
    counts = bins[:, :, 2].sum(axis=1)
    places = [only] if only is not None else sorted(np.argsort(-counts, kind="stable")[:MOST_CLASSES].tolist())
    columns = min(math.isqrt(len(places) - 1) + 1, 3)
    figure, axes = panels(-(-len(places) // columns), columns, 4.4, 4.2)
    for each in axes.ravel()[len(places) :]:
        each.set_axis_off()
    for k, each in zip(places, axes.ravel(), strict=False):
        some = bins[k][bins[k, :, 0] > 0]
        n, said, came = some[:, 0], some[:, 1] / some[:, 0], some[:, 2] / some[:, 0]
        each.plot([0, 1], [0, 1], color=BOUND, linewidth=0.8)
        each.scatter(said, came, s=_area(n, n.max()), color=REGRET, alpha=0.7, edgecolor="none")
        for size in _round_numbers(int(n.max())):
            each.scatter([], [], s=_area(size, n.max()), color=REGRET, alpha=0.7, edgecolor="none", label=f"{size:,}")
        each.set_xlim(-0.02, 1.02)
        each.set_ylim(-0.02, 1.02)
        each.set_title(f"{str(labels[k])[:30]}", fontsize="medium", parse_math=False)
        tidy(each, "forecast probability", "how often it came")
        each.legend(title="forecasts", frameon=False, fontsize="small", loc="upper left", labelspacing=0.9)
    return figure


def _area(n: Any, largest: float) -> Any:
    return 6 + 250 * n / largest


def _round_numbers(largest: int) -> list[int]:
    """Numbers of forecasts for the legend: the largest power of ten, a tenth and a hundredth of it."""
    top = 10 ** (len(str(largest)) - 1)
    return sorted({max(1, top // 100), max(1, top // 10), top})
