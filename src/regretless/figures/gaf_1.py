"""Figure 1 of the GAF paper: average loss over time on three data sets, best of a grid, in random orders."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from regretless.core.types import Array
from regretless.evaluate.play import play
from regretless.evaluate.plots import draw_band, panels, tidy
from regretless.figures.common import SPREAD, Table, Work, log_marks, quartiles
from regretless.learners.first_order.ogd import OGD
from regretless.learners.first_order.schedules import InverseRootStep
from regretless.learners.second_order.gaf import GAF
from regretless.learners.second_order.ons import ONS
from regretless.streams import Dataset, load_dataset

FAR = 1e6  # the radius of a ball that no learner leaves: the paper gives none


@dataclass(frozen=True)
class Settings:
    """Section 5: the grid and 20 repetitions. The paper does not say how many orders select the parameters."""

    names: tuple[str, ...] = ("vehicle", "shuttle", "segment")
    grid: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    orders: int = 20
    games: int = 50_000  # approximate rows to select the parameters: five orders of small sets, one of shuttle
    rows: int | None = None  # of each data set; None: all
    samples: int = 100  # m


SETTINGS = Settings()
QUICK = Settings(names=("vehicle",), grid=(0.1, 1.0), orders=3, games=1000, rows=300)


def compute(settings: Settings, seed: int, work: Work) -> Table:
    """Quartiles over the orders of the average loss up to each row, with the parameters that are best at the end."""
    data = {name: load_dataset(name) for name in settings.names}  # first, because it may be missing
    length = {name: min(settings.rows or len(each.y), len(each.y)) for name, each in data.items()}
    choose = {name: max(1, min(settings.orders, 5, settings.games // n)) for name, n in length.items()}
    trials = [
        (settings, name, learner, lam, beta, seed, order)
        for name in settings.names
        for learner, betas in (("GAF", settings.grid), ("ONS", settings.grid), ("OGD", (np.nan,)))
        for lam in settings.grid
        for beta in betas
        for order in range(choose[name])
    ]
    trials.sort(key=lambda trial: -length[trial[1]])
    finals: dict[tuple[str, str, float, float], list[float]] = {}
    for trial, curve in zip(trials, work.each("choosing parameters", averages, trials), strict=True):
        finals.setdefault(trial[1:5], []).append(float(curve[-1]))
    rows = []
    for name in settings.names:
        for learner in ("GAF", "ONS", "OGD"):
            scores = {key[2:]: np.mean(values) for key, values in finals.items() if key[:2] == (name, learner)}
            lam, beta = min(scores, key=lambda key: scores[key])
            tasks = [(settings, name, learner, lam, beta, seed, order) for order in range(settings.orders)]
            low, middle, high = quartiles(work.each(f"{name}, {learner}", averages, tasks))
            for t, *three in zip(log_marks(length[name], 8), low, middle, high, strict=True):
                rows.append((name, learner, lam, beta, settings.orders, t, *three))
    columns = ("data", "learner", "lambda", "beta", "orders", "rows", *SPREAD)
    return Table.of(columns, rows)


@cache
def _kept(name: str) -> Dataset:
    """Load once per process."""
    return load_dataset(name)


def averages(settings: Settings, name: str, learner: str, lam: float, beta: float, seed: int, order: int) -> Array:
    """The average log loss up to each checkpoint, of one game in one random order."""
    data = _kept(name)
    some = np.random.default_rng([seed, order]).permutation(len(data.y))[: settings.rows]
    players: dict[str, Any] = {
        "GAF": lambda: GAF(
            radius=FAR,
            regularization=lam,
            curvature=beta / 2,
            expectation="monte-carlo",
            n_samples=settings.samples,
            random_state=order,
        ),
        # The same lambda |W|^2 in both: ONS's quadratics have the sum (beta/2) (W - w)' A (W - w), A = epsilon I + ...
        "ONS": lambda: ONS(radius=FAR, gamma=beta, epsilon=2 * lam / beta),
        "OGD": lambda: OGD(radius=FAR, step=InverseRootStep(lam)),
    }
    trace: Any = play(
        players[learner](),
        data.X[some],
        data.y[some],
        classes=data.classes,
        checkpoints=log_marks(len(some), 8),
        hindsight=False,
        progress=False,
    )
    means: Array = trace.log_loss / trace.rows
    return means


def draw(table: Table) -> Any:
    """One panel per data set: medians, and quartiles as bands."""
    sets = table.each("data")
    figure, axes = panels(1, len(sets), width=4.3, height=4.0)
    for panel, (name, rows) in zip(axes[0], sets, strict=True):
        for i, (learner, curve) in enumerate(rows.each("learner")):
            chosen = f"λ = {curve['lambda'][0]:g}, β = {curve['beta'][0]:g}" if learner != "OGD" else ""
            chosen = chosen or f"η = {curve['lambda'][0]:g}"
            spread = [curve[column] for column in SPREAD]
            draw_band(panel, curve["rows"], spread, i, f"{learner} ({chosen})")
        panel.set_xscale("log")
        panel.set_xlim(left=4)
        shown = rows["rows"] >= 4
        low, high = rows["quartile_1"][shown].min() / 1.2, 2.0 * rows["quartile_3"][shown].max()  # room for the legend
        ticks = [tick for tick in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0) if low < tick < high]
        panel.set_yscale("log")
        panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.yaxis.minorticks_off()
        panel.set_ylim(low, high)
        panel.set_title(name)
        panel.legend(frameon=False, fontsize="small")
        tidy(panel, "rows", "average log loss (nats)")
    return figure
