"""All plots, with matplotlib (in the extra "cli"). Functions return axes; `axes.figure.savefig(path)` saves them."""

from __future__ import annotations

from typing import Any

import numpy as np

REGRET, CERTIFICATE, BOUND = "#1f77b4", "#d62728", "#7f7f7f"

COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d1f")
LINES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")


def panels(n_rows: int, n_columns: int, width: float = 5.5, height: float = 4.2, **shared: Any) -> tuple[Any, Any]:
    """A figure and its (n_rows, n_columns) axes, without a display; `width` and `height` of a panel in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False, **shared)


def _figure(n_panels: int) -> tuple[Any, Any]:
    """A figure with panels side by side."""
    figure, axes = panels(1, n_panels)
    return figure, axes[0]


def style(i: int) -> dict[str, Any]:
    """The style of the i-th curve: curves differ in colour, and in greyscale by line and marker."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "linestyle": LINES[i % len(LINES)],
        "marker": MARKERS[i % len(MARKERS)],
        "markersize": 4.5,
        "linewidth": 1.5,
    }


def draw_band(axes: Any, x: Any, quartiles: Any, i: int, label: str) -> None:
    """Draw a median with markers, and the quartiles as a band: `quartiles` has three rows, low to high."""
    low, middle, high = quartiles
    look = style(i)
    axes.fill_between(x, low, high, color=look["color"], alpha=0.2, linewidth=0)
    axes.plot(x, middle, label=label, **look)


def tidy(axes: Any, x: str, y: str) -> None:
    """Set the axis labels and a light grid, and remove the box."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)


def plot_trace(trace: Any) -> Any:
    """Plot regret, certificate and bound of one game, and the reliability of probabilities. Returns the axes."""
    _, panels = _figure(2 if trace.kind == "probabilities" else 1)
    regret(trace, panels[0])
    if trace.kind == "probabilities":
        reliability(trace, panels[1])
    return panels


def regret(trace: Any, axes: Any = None) -> Any:
    """Plot the regret of a game over time, if it is known, with certificate and bound. Returns the axes.

    If `axes` is None, draws on a new figure (`axes.figure.savefig(path)` saves it).
    """
    axes = _figure(1)[1][0] if axes is None else axes
    known = trace.stream is not None and trace.competition is not None
    if known:
        _draw_regret(axes, trace, "regret", color=REGRET, linewidth=1.6)
    promised = False
    for values, colour, line, label in (
        (trace.certificate, CERTIFICATE, "-.", "certificate"),
        (trace.bound, BOUND, "--", "theorem's bound"),
    ):
        if np.isfinite(values).any():
            promised = True
            axes.plot(trace.rows, values, linestyle=line, color=colour, label=label, linewidth=1.6)
    if known or promised:
        _let_zero_show(axes)
        axes.legend(frameon=False)
        tidy(axes, "rows", "total loss above the best in hindsight")
    else:  # neither comparators nor bounds: show the loss
        axes.plot(trace.rows, trace.loss / trace.rows, color=REGRET, linewidth=1.6)
        tidy(axes, "rows", "mean loss")
    axes.set_xscale("log")
    axes.set_title(trace.name)
    return axes


def plot_traces(traces: Any) -> Any:
    """Plot the regret and the mean loss of every game over time. Returns the two axes."""
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
    """Draw the interval as a band; it is thinner than the line if the gap is small."""
    low, high = (np.array(ends) for ends in zip(*trace.regret, strict=True))
    axes.fill_between(trace.rows, low, high, color=look["color"], alpha=0.3, linewidth=0)
    axes.plot(trace.rows, (low + high) / 2, label=label, **look)


def _let_zero_show(axes: Any) -> None:
    """A logarithmic scale that includes zero and negative regret."""
    axes.set_yscale("symlog", linthresh=1.0)
    axes.axhline(0.0, color="black", linewidth=0.6)
    axes.autoscale_view()  # margins for the new scale
    if axes.dataLim.y0 >= 0.0:
        axes.set_ylim(bottom=0.0)


def reliability(trace: Any, axes: Any = None) -> Any:
    """Plot accuracy against confidence, both of the most probable class. Returns the axes.

    One dot per bin; its size grows with the number of forecasts. Calibrated forecasts lie on the diagonal.
    """
    axes = _figure(1)[1][0] if axes is None else axes
    count, sure, right = trace.reliability.T
    axes.plot([0, 1], [0, 1], color=BOUND, linewidth=0.8)
    axes.scatter(sure, right, s=10 + 300 * count / count.sum(), color=REGRET, alpha=0.7, edgecolor="none")
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, 1.02)
    axes.set_title(f"calibration error {trace.calibration_error:.3f}")
    tidy(axes, "confidence", "accuracy")
    return axes


def plot_bandits(traces: Any) -> Any:
    """Plot mistakes per round, and mistakes above the best log loss with their bounds, over time. Returns the axes."""
    measured = [name for name, trace in traces.items() if trace.competition is not None and trace.classes is not None]
    figure, panels = _figure(2 if measured else 1)
    for i, (name, trace) in enumerate(traces.items()):
        look = style(i)
        label = f"{name} (sees the labels)" if trace.told else name
        panels[0].plot(trace.rounds, trace.mistake_rate, label=label, **look)
        if name in measured:
            panels[1].plot(trace.rounds, trace.relative_mistakes / trace.rounds, **look)
        if name in measured and np.isfinite(trace.bound).any():
            label = f"{name}: bound on the mean"
            panels[1].plot(trace.rounds, trace.bound / trace.rounds, color=look["color"], label=label, linewidth=0.8)
    panels[0].set_ylim(0.0, 1.02)
    tidy(panels[0], "rounds", "mistakes per round")
    if measured:
        panels[1].axhline(0.0, color="black", linewidth=0.6)
        tidy(panels[1], "rounds", "mistakes minus best log loss, per round")
    for axes in panels:
        axes.set_xscale("log")
    figure.set_figwidth(figure.get_figwidth() + 2.6)  # space for the legend
    figure.legend(loc="outside right upper", frameon=False, fontsize="small")
    return panels


SCORES = {"log_loss": "mean log loss", "error": "error rate"}


def plot_race(results: Any) -> Any:
    """Plot mean log loss and error rate of every learner of a race on one stream, with a legend. Returns the axes."""
    forecasters = [name for name in results.games if results.curve(name) is not None]
    scores = ["log_loss", "error"] if forecasters else ["error"]
    figure, grid = panels(1, len(scores), height=5.0)
    for score, axes in zip(scores, grid[0], strict=True):
        race(results, axes, score)
        axes.get_legend().remove()
    figure.set_figwidth(figure.get_figwidth() + 2.8)  # space for the legend
    over = f"medians and quartiles over {results.orders} orders" if results.orders > 1 else "one order"
    figure.suptitle(f"{results.name}: {over}")
    handles, labels = grid[0, -1].get_legend_handles_labels()  # every learner has an error rate
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize="small", handlelength=3.5)
    return grid[0]


def race(results: Any, axes: Any = None, score: str = "log_loss") -> Any:
    """Plot the median of a score over rows for every learner of a race, with quartiles over the orders as a band.

    `results` are those of one stream (`regretless.evaluate.race.race(...).streams[0]`); `score` is "error", or
    "log_loss" for learners that forecast probabilities. Curves are numbered by rank. Returns the axes.
    """
    axes = panels(1, 1, 7.5, 5.0)[1][0, 0] if axes is None else axes
    curves = [(i, name, results.curve(name, score)) for i, name in enumerate(results.games)]
    curves = [(i, name, curve) for i, name, curve in curves if curve is not None]
    if not curves:
        raise ValueError(f"no learner of this race has a {SCORES[score]}: choose another score.")
    least = min(30, curves[0][2].rows[-1])  # earlier values are noise
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
    """Styles for more curves than `style` has: other combinations of colour, line and marker."""
    round_ = i // len(COLOURS)
    return style(i) | {
        "linestyle": LINES[(i + round_) % len(LINES)],
        "marker": MARKERS[(i + 2 * round_) % len(MARKERS)],
        "markevery": (i % 3, 3),
        "markersize": 4.0,
        "linewidth": 1.3,
    }


def _ticks_in_full(axes: Any) -> None:
    """Label ticks as 0.2 and 300 rather than as powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis, scale in ((axes.xaxis, axes.get_xscale()), (axes.yaxis, axes.get_yscale())):
        if scale == "log":
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())


def _number_ends(axes: Any, ends: list[tuple[float, str, str]]) -> None:
    """Write the numbers of the curves at their ends, moved apart so that they do not overlap."""
    axes.autoscale_view()  # fixes the positions used below
    top = axes.transAxes.inverted()
    x = max(line.get_xdata()[-1] for line in axes.lines)
    heights = [float(top.transform(axes.transData.transform((x, end)))[1]) for end, _, _ in ends]
    order = np.argsort(heights, kind="stable")
    gap = 0.032
    placed = np.array(heights)[order]
    for _ in range(200):  # move neighbours apart, each by half
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
