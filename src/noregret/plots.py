"""Every picture, by matplotlib (the extra "cli" has it). Figures are returned, and shown or saved by the caller."""

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
    """Regret, certificate and bound of one game over time; for probabilities their reliability beside it."""
    figure, panels = _figure(2 if trace.kind == "probabilities" else 1)
    axes = panels[0]
    _draw_regret(axes, trace, REGRET, "regret")
    for values, colour, style, label in (
        (trace.certificate, CERTIFICATE, "-", "certificate"),
        (trace.bound, BOUND, "--", "bound of the theorem"),
    ):
        if np.isfinite(values).any():
            axes.plot(trace.rows, values, style, color=colour, label=label, linewidth=1.6)
    axes.set_xscale("log")
    _let_zero_show(axes)
    axes.legend(frameon=False)
    axes.set_title(trace.name)
    tidy(axes, "rows", "total loss above the best in hindsight")
    if trace.kind == "probabilities":
        _draw_reliability(panels[1], trace)
    return figure


def plot_traces(traces: Any) -> Any:
    """The regret of every game over time, and the mean loss beside it."""
    figure, (left, right) = _figure(2)
    for i, (name, trace) in enumerate(traces.items()):
        colour = f"C{i % 10}"
        if trace.stream is not None and trace.competition is not None:
            _draw_regret(left, trace, colour, name)
        right.plot(trace.rows, trace.loss / trace.rows, color=colour, label=name, linewidth=1.6)
    for axes in (left, right):
        axes.set_xscale("log")
    _let_zero_show(left)
    tidy(left, "rows", "total loss above the best in hindsight")
    tidy(right, "rows", "mean loss")
    right.legend(frameon=False)
    return figure


def _draw_regret(axes: Any, trace: Any, colour: str, label: str) -> None:
    """The interval as a band; it is thinner than the line where the comparator is known well."""
    low, high = (np.array(ends) for ends in zip(*trace.regret, strict=True))
    axes.fill_between(trace.rows, low, high, color=colour, alpha=0.3, linewidth=0)
    axes.plot(trace.rows, (low + high) / 2, color=colour, label=label, linewidth=1.6)


def _let_zero_show(axes: Any) -> None:
    """Logarithmic where the curves span decades, with room for regrets of 0 and below."""
    axes.set_yscale("symlog", linthresh=1.0)
    axes.axhline(0.0, color="black", linewidth=0.6)
    axes.autoscale_view()  # the margins of the scale it has now
    if axes.dataLim.y0 >= 0.0:
        axes.set_ylim(bottom=0.0)


def _draw_reliability(axes: Any, trace: Any) -> None:
    count, sure, right = trace.reliability.T
    axes.plot([0, 1], [0, 1], color=BOUND, linewidth=0.8)
    axes.scatter(sure, right, s=10 + 300 * count / count.sum(), color=REGRET, alpha=0.7, edgecolor="none")
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, 1.02)
    axes.set_title(f"calibration error {trace.calibration_error:.3f}")
    tidy(axes, "how sure of the class it named", "how often it was right")


def plot_bandits(traces: Any) -> Any:
    """Mistakes a round over time; beside them those above the log loss of the best in hindsight, and their bounds."""
    measured = [name for name, trace in traces.items() if trace.competition is not None and trace.classes is not None]
    figure, panels = _figure(2 if measured else 1)
    for i, (name, trace) in enumerate(traces.items()):
        colour = f"C{i % 10}"
        label = f"{name} (sees the labels)" if trace.told else name
        panels[0].plot(trace.rounds, trace.mistake_rate, color=colour, label=label, linewidth=1.6)
        if name in measured:
            panels[1].plot(trace.rounds, trace.relative_mistakes / trace.rounds, color=colour, linewidth=1.6)
        if name in measured and np.isfinite(trace.bound).any():
            label = f"{name}: bound on its mean"
            panels[1].plot(trace.rounds, trace.bound / trace.rounds, "--", color=colour, label=label, linewidth=1.2)
    panels[0].set_ylim(0.0, 1.02)
    tidy(panels[0], "rounds", "mistakes a round")
    if measured:
        panels[1].axhline(0.0, color="black", linewidth=0.6)
        tidy(panels[1], "rounds", "mistakes minus best log loss, a round")
    for axes in panels:
        axes.set_xscale("log")
    figure.set_figwidth(figure.get_figwidth() + 2.6)  # room for the names
    figure.legend(loc="outside right upper", frameon=False, fontsize="small")
    return figure
