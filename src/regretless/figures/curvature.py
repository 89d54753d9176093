"""The constants of the quadratic lower bounds on the log loss, against the best possible one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit

from regretless.evaluate.plots import panels, style, tidy
from regretless.figures.common import Table, Work
from regretless.learners.second_order.curvature import kappa, rule

NAMES = ("sharp", "gaf", "aioli", "folklore")
LABELS = {
    "sharp": "sharp: $1/(2 + W(e^{L-1}))$",
    "gaf": "GAF, Lemma 4",
    "aioli": "AIOLI, Lemma 5 (K = 2)",
    "folklore": "FOLKLORE, Lemma 1 (false)",
}


@dataclass(frozen=True)
class Settings:
    """The number of sizes C of logits, between 0.1 and 30, and the numbers of classes."""

    sizes: int = 25
    classes: tuple[int, ...] = (2, 10)


SETTINGS = Settings()
QUICK = Settings(sizes=7)


def compute(settings: Settings, seed: int, work: Work) -> Table:
    """Every constant and the best possible one. Nothing here is random."""
    sizes = np.geomspace(0.1, 30.0, settings.sizes)
    tasks = [(2 * C + math.log(K - 1),) for K in settings.classes for C in sizes]
    best = iter(work.each("optima", best_possible, tasks))
    rows = []
    for K in settings.classes:
        for C in sizes:
            optimum = next(best)
            for name in NAMES:
                if name != "aioli" or K == 2:
                    value = kappa(*rule(name, K), C, K)
                    rows.append((K, C, 2 * C + math.log(K - 1), name, value, optimum, value / optimum))
    return Table.of(("classes", "logit_bound", "L", "constant", "kappa", "best_possible", "ratio"), rows)


def best_possible(L: float) -> float:
    """The infimum of KL(v || w) / (v (1-v) (logit w - logit v)^2) over |logit w| <= L and all v, to 1e-6 of it.

    This is what remains of the inequality for K classes if all but one of them are equal, the worst case. A grid over
    both logits, then Brent's method in v for the best w (at the optimum logit w is at the boundary).
    """
    a, b = np.linspace(-L, L, 41)[:, None], np.linspace(-L - 10.0, L + 10.0, 2001)[None, :]
    values = ratio(a, b)
    i, j = divmod(int(np.argmin(values)), b.size)
    around = (b[0, max(j - 1, 0)], b[0, min(j + 1, b.size - 1)])
    found = minimize_scalar(lambda v: float(ratio(a[i, 0], v)), bounds=around, options={"xatol": 1e-10})
    return float(min(found.fun, values[i, j]))


def ratio(a: Any, b: Any) -> Any:
    """The quotient for a = logit w and b = logit v, with limit 1/2 where they are equal; without cancellation."""
    v, rest = expit(b), expit(-b)  # 1 - v, in full precision
    a_up, b_up = np.maximum(a, 0.0), np.maximum(b, 0.0)
    lines = a_up * rest - b_up * rest - (np.minimum(a, 0.0) - np.minimum(b, 0.0)) * v
    divergence = np.log1p(np.exp(-np.abs(a))) - np.log1p(np.exp(-np.abs(b))) + lines
    apart = np.abs(a - b) > 1e-3
    return np.where(apart, divergence / (v * rest * np.where(apart, a - b, 1.0) ** 2), 0.5)


def draw(table: Table) -> Any:
    """The constants for two classes, and their ratio to the best possible for two and more classes."""
    counts = table.each("classes")
    figure, axes = panels(1, 1 + len(counts), width=4.3, height=4.2)
    first = counts[0][1]
    optimum = first.where(constant="sharp")
    axes[0, 0].plot(optimum["logit_bound"], optimum["best_possible"], color="0.5", linewidth=4, label="best possible")
    for i, name in enumerate(NAMES):
        rows = first.where(constant=name)
        axes[0, 0].plot(rows["logit_bound"], rows["kappa"], label=LABELS[name], markevery=3, **style(i))
        for panel, (K, some) in zip(axes[0, 1:], counts, strict=True):
            rows = some.where(constant=name)
            panel.plot(rows["logit_bound"], rows["ratio"], markevery=3, **style(i))
            panel.axhline(1.0, color="0.5", linewidth=4)
            panel.set_title(f"K = {K}")
            panel.set_ylim(0.2, 3.2)
            tidy(panel, "C, largest logit of a comparator", "κ / best possible κ")
    axes[0, 0].set_yscale("log")
    axes[0, 0].set_title(f"K = {counts[0][0]}")
    tidy(axes[0, 0], "C, largest logit of a comparator", "κ")
    for panel in axes[0]:
        panel.set_xscale("log")
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure
