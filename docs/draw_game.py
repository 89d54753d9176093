"""Draw docs/game.png, one round and a real run: `make docs`.

Left: one round. Right: totals over the rounds, for AIOLI on a stream of 150 rows: its loss, that of the best weights in
hindsight, and between the two the regret, with the certificate above.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from PIL import Image

from regretless import AIOLI, play
from regretless.streams import logistic

PICTURE = Path(__file__).with_name("game.png")
ROWS = 150
STEPS = (
    ("row  x", "arrives"),
    ("forecast  p", "before the label"),
    ("label  y", "is revealed"),
    ("loss  $-\\ln p_y$", "both totals grow"),
    ("update", "a single pass"),
)


def draw_round(axes: Any) -> None:
    """One round: five steps, and back to the first."""
    axes.set(xlim=(-0.9, 6.4), ylim=(-0.5, 5.3), title="one round")
    axes.axis("off")
    for i, (step, who) in enumerate(STEPS):
        y = 4.5 - i
        mine = i in (1, 4)
        box = FancyBboxPatch(
            (0, y - 0.3), 2.3, 0.6, boxstyle="round,pad=0.06", facecolor="0.82" if mine else "white", edgecolor="black"
        )
        axes.add_patch(box)
        axes.text(1.15, y, step, ha="center", va="center", fontsize=11)
        axes.text(2.75, y, who, va="center", fontsize=10)
        if i:
            axes.add_patch(
                FancyArrowPatch((1.15, y + 0.62), (1.15, y + 0.38), arrowstyle="-|>", mutation_scale=10, color="black")
            )
    back = FancyArrowPatch(
        (-0.08, 0.5),
        (-0.08, 4.5),
        arrowstyle="-|>",
        mutation_scale=12,
        color="black",
        connectionstyle="arc,angleA=180,angleB=180,armA=22,armB=22,rad=6",
    )
    axes.add_patch(back)


def draw_totals(axes: Any) -> None:
    """The totals over the rounds."""
    stream = logistic(ROWS, d=4, radius=5.0, seed=1)
    marks = [*range(10, ROWS, 10), ROWS]
    trace = play(AIOLI(radius=5.0), stream.X, stream.y, checkpoints=marks, progress=False)
    rows = np.array([0, *marks])
    loss = np.array([0.0, *trace.log_loss])
    regret = np.array([0.0, *(high for _, high in trace.regret)])
    certificate = np.array([np.nan, *trace.certificate])
    best = loss - regret
    axes.plot(rows, best + certificate, color="black", lw=1.5, ls=":", label="upper limit from the certificate")
    axes.plot(rows, loss, color="black", lw=2, label="the learner")
    axes.plot(rows, best, color="black", lw=1.5, ls="--", label="comparator: best weights in hindsight")
    axes.fill_between(rows, best, loss, color="0.8", lw=0)
    axes.set(xlim=(0, ROWS), ylim=(0, None), xlabel="rows", ylabel="total loss", title="totals (AIOLI, one run)")
    axes.legend(loc="upper left", frameon=False)
    at = 3 * len(rows) // 4
    axes.annotate(
        "regret",
        (rows[at], (best[at] + loss[at]) / 2),
        xytext=(0.85 * ROWS, 0.3 * loss[-1]),
        fontsize=11,
        ha="center",
        arrowprops={"arrowstyle": "-|>", "color": "black"},
    )
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw() -> Any:
    """The picture."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.2), width_ratios=[1, 1.05])
    draw_round(left)
    draw_totals(right)
    figure.tight_layout(rect=(0, 0, 0.985, 1))
    return figure


if __name__ == "__main__":
    matplotlib.use("agg")
    whole = BytesIO()
    draw().savefig(whole, dpi=110)
    Image.open(whole).convert("L").quantize(16).save(PICTURE, optimize=True)  # few grey levels: a small file
