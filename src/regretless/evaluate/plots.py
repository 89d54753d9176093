"""Every picture, by matplotlib (the extra "cli" has it). Axes are returned; `axes.figure.savefig(path)` saves them."""

from __future__ import annotations

from typing import Any

import numpy as np

REGRET, CERTIFICATE, BOUND = "#1f77b4", "#d62728", "#7f7f7f"

COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d1f")
LINES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")


def panels(n_rows: int, n_columns: int, width: float = 5.5, height: float = 4.2, **shared: Any) -> tuple[Any, Any]:
    """A figure and its (n_rows, n_columns) axes, that needs no screen; sizes of a panel in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False, **shared)


def _figure(n_panels: int) -> tuple[Any, Any]:
    """A figure of panels side by side."""
    figure, axes = panels(1, n_panels)
    return figure, axes[0]


def style(i: int) -> dict[str, Any]:
    """Of the i-th curve of several: told apart by colour, and in grey by line and marker."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "linestyle": LINES[i % len(LINES)],
        "marker": MARKERS[i % len(MARKERS)],
        "markersize": 4.5,
        "linewidth": 1.5,
    }


def draw_band(axes: Any, x: Any, quartiles: Any, i: int, label: str) -> None:
    """A median with a marker a point, and the quartiles as a band: `quartiles` has three rows, low to high."""
    low, middle, high = quartiles
    look = style(i)
    axes.fill_between(x, low, high, color=look["color"], alpha=0.2, linewidth=0)
    axes.plot(x, middle, label=label, **look)


def tidy(axes: Any, x: str, y: str) -> None:
    """Names of the axes, a light grid, no box."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)


def plot_trace(trace: Any) -> Any:
    """Regret, certificate and bound of one game over time; for probabilities their reliability beside it: the axes."""
    _, panels = _figure(2 if trace.kind == "probabilities" else 1)
    regret(trace, panels[0])
    if trace.kind == "probabilities":
        reliability(trace, panels[1])
    return panels


def regret(trace: Any, axes: Any = None) -> Any:
    """Regret of a game over time, where it is known, and beside it certificate and bound. Returns the axes.

    Without axes to draw on, those of a figure of their own (`axes.figure.savefig(path)` saves it).
    """
    axes = _figure(1)[1][0] if axes is None else axes
    known = trace.stream is not None and trace.competition is not None
    if known:
        _draw_regret(axes, trace, "regret", color=REGRET, linewidth=1.6)
    promised = False
    for values, colour, line, label in (
        (trace.certificate, CERTIFICATE, "-.", "certificate"),
        (trace.bound, BOUND, "--", "bound of the theorem"),
    ):
        if np.isfinite(values).any():
            promised = True
            axes.plot(trace.rows, values, linestyle=line, color=colour, label=label, linewidth=1.6)
    if known or promised:
        _let_zero_show(axes)
        axes.legend(frameon=False)
        tidy(axes, "rows", "total loss above the best in hindsight")
    else:  # nothing is proved and nothing was compared: what was suffered
        axes.plot(trace.rows, trace.loss / trace.rows, color=REGRET, linewidth=1.6)
        tidy(axes, "rows", "mean loss")
    axes.set_xscale("log")
    axes.set_title(trace.name)
    return axes


def plot_traces(traces: Any) -> Any:
    """The regret of every game over time, and the mean loss beside it: the two axes."""
    _, both = _figure(2)
    left, right = both
    for i, (name, trace) in enumerate(traces.items()):
        if trace.stream is not None and trace.competition is not None:
            _draw_regret(left, trace, name, **style(i))
        right.plot(trace.rows, trace.loss / trace.rows, label=name, **style(i))
    for axes in (left, right):
        axes.set_xscale("log")
    _let_zero_show(left)
    tidy(left, "rows", "total loss above the best in hindsight")
    tidy(right, "rows", "mean loss")
    right.legend(frameon=False)
    return both


def _draw_regret(axes: Any, trace: Any, label: str, **look: Any) -> None:
    """The interval as a band; it is thinner than the line where the comparator is known well."""
    low, high = (np.array(ends) for ends in zip(*trace.regret, strict=True))
    axes.fill_between(trace.rows, low, high, color=look["color"], alpha=0.3, linewidth=0)
    axes.plot(trace.rows, (low + high) / 2, label=label, **look)


def _let_zero_show(axes: Any) -> None:
    """Logarithmic where the curves span decades, with room for regrets of 0 and below."""
    axes.set_yscale("symlog", linthresh=1.0)
    axes.axhline(0.0, color="black", linewidth=0.6)
    axes.autoscale_view()  # the margins of the scale it has now
    if axes.dataLim.y0 >= 0.0:
        axes.set_ylim(bottom=0.0)


def reliability(trace: Any, axes: Any = None) -> Any:
    """How often the class named was right, against how sure the forecast was of it. Returns the axes.

    A dot a bin, of a size that grows with its forecasts; on the diagonal they keep their word.
    """
    axes = _figure(1)[1][0] if axes is None else axes
    count, sure, right = trace.reliability.T
    axes.plot([0, 1], [0, 1], color=BOUND, linewidth=0.8)
    axes.scatter(sure, right, s=10 + 300 * count / count.sum(), color=REGRET, alpha=0.7, edgecolor="none")
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, 1.02)
    axes.set_title(f"calibration error {trace.calibration_error:.3f}")
    tidy(axes, "how sure of the class it named", "how often it was right")
    return axes


def plot_bandits(traces: Any) -> Any:
    """Mistakes a round over time; beside them those above the best log loss in hindsight, with bounds: the axes."""
    measured = [name for name, trace in traces.items() if trace.competition is not None and trace.classes is not None]
    figure, panels = _figure(2 if measured else 1)
    for i, (name, trace) in enumerate(traces.items()):
        look = style(i)
        label = f"{name} (sees the labels)" if trace.told else name
        panels[0].plot(trace.rounds, trace.mistake_rate, label=label, **look)
        if name in measured:
            panels[1].plot(trace.rounds, trace.relative_mistakes / trace.rounds, **look)
        if name in measured and np.isfinite(trace.bound).any():
            label = f"{name}: bound on its mean"
            panels[1].plot(trace.rounds, trace.bound / trace.rounds, color=look["color"], label=label, linewidth=0.8)
    panels[0].set_ylim(0.0, 1.02)
    tidy(panels[0], "rounds", "mistakes a round")
    if measured:
        panels[1].axhline(0.0, color="black", linewidth=0.6)
        tidy(panels[1], "rounds", "mistakes minus best log loss, a round")
    for axes in panels:
        axes.set_xscale("log")
    figure.set_figwidth(figure.get_figwidth() + 2.6)  # room for the names
    figure.legend(loc="outside right upper", frameon=False, fontsize="small")
    return panels


SCORES = {"log_loss": "mean log loss", "error": "error rate"}


def plot_race(results: Any) -> Any:
    """Mean log loss and error rate of every learner of a race on one stream, the names beside them: the axes."""
    forecasters = [name for name in results.games if results.curve(name) is not None]
    scores = ["log_loss", "error"] if forecasters else ["error"]
    figure, grid = panels(1, len(scores), height=5.0)
    for score, axes in zip(scores, grid[0], strict=True):
        race(results, axes, score)
        axes.get_legend().remove()
    figure.set_figwidth(figure.get_figwidth() + 2.8)  # room for the names
    over = f"medians and quartiles over {results.orders} orders" if results.orders > 1 else "one order"
    figure.suptitle(f"{results.name}: {over}")
    handles, labels = grid[0, -1].get_legend_handles_labels()  # everybody has an error rate
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize="small", handlelength=3.5)
    return grid[0]


def race(results: Any, axes: Any = None, score: str = "log_loss") -> Any:
    """The median of a score over rows, and its quartiles over the orders as a band, for every learner of a race.

    `results` are those of one stream (`regretless.evaluate.race.race(...).streams[0]`); `score` is "log_loss", for
    learners that forecast probabilities, or "error". Curves are numbered by the learners' places. Returns the axes.
    """
    axes = panels(1, 1, 7.5, 5.0)[1][0, 0] if axes is None else axes
    curves = [(i, name, results.curve(name, score)) for i, name in enumerate(results.games)]
    curves = [(i, name, curve) for i, name, curve in curves if curve is not None]
    if not curves:
        raise ValueError(f"no learner of this race has a {SCORES[score]}.")
    least = min(30, curves[0][2].rows[-1])  # before, chance decides
    ends = []
    for i, name, curve in curves:
        late = curve.rows >= least
        low, middle, high = curve.quartiles[:, late]
        look = _numbered(i)
        axes.fill_between(
            curve.rows[late], low, high, color=look["color"], alpha=0.12 if len(curves) <= 8 else 0.07, linewidth=0
        )
        axes.plot(curve.rows[late], middle, label=f"{i + 1}  {name}", **look)
        ends.append((middle[-1], str(i + 1), look["color"]))
    axes.set_xscale("log")
    if min(end for end, _, _ in ends) > 0.0:
        axes.set_yscale("log")
    _ticks_in_full(axes)
    tidy(axes, "rows", f"{SCORES[score]} of the rows so far")
    _number_ends(axes, ends)
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), frameon=False, fontsize="small", handlelength=3.5)
    return axes


def _numbered(i: int) -> dict[str, Any]:
    """A look for more curves than `style` tells apart: colour, line and marker come in another combination."""
    round_ = i // len(COLOURS)
    return style(i) | {
        "linestyle": LINES[(i + round_) % len(LINES)],
        "marker": MARKERS[(i + 2 * round_) % len(MARKERS)],
        "markevery": (i % 3, 3),
        "markersize": 4.0,
        "linewidth": 1.3,
    }


def _ticks_in_full(axes: Any) -> None:
    """0.2 and 300 rather than powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis, scale in ((axes.xaxis, axes.get_xscale()), (axes.yaxis, axes.get_yscale())):
        if scale == "log":
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())


def _number_ends(axes: Any, ends: list[tuple[float, str, str]]) -> None:
    """The numbers of curves at their ends, moved apart until they can be read."""
    axes.autoscale_view()  # where things are is settled now
    top = axes.transAxes.inverted()
    x = max(line.get_xdata()[-1] for line in axes.lines)
    heights = [float(top.transform(axes.transData.transform((x, end)))[1]) for end, _, _ in ends]
    order = np.argsort(heights, kind="stable")
    gap = 0.032
    placed = np.array(heights)[order]
    for _ in range(200):  # push neighbours apart by halves
        short = gap - np.diff(placed)
        if not (short > 1e-4).any():
            break
        for k in np.flatnonzero(short > 0):
            placed[k] -= short[k] / 2
            placed[k + 1] += short[k] / 2
    edge = float(top.transform(axes.transData.transform((x, ends[0][0])))[0])
    for height, k in zip(placed, order, strict=True):
        _, number, colour = ends[k]
        there: dict[str, Any] = {"transform": axes.transAxes, "color": colour}
        axes.plot([edge, edge + 0.03], [heights[k], height], linewidth=0.5, clip_on=False, **there)
        axes.text(edge + 0.035, height, number, fontsize="small", va="center", **there)
