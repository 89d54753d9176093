"""The pictures of the benchmarks page, from docs/benchmarks.json and the tables of docs/benchmarks.md."""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any

from regretless.evaluate import plots

DOCS = Path(__file__).parents[1]
INTRODUCTION = """\
## In pictures

![Ratios of log losses on every stream](/charts/quality.png)

*Our mean log loss divided by that of the best rival with default settings, and by that of the best rival tuned in
hindsight, on every stream of [the table](#quality). Left of the line is better.*

![Mean log loss against seconds](/charts/seconds.png)

*Mean log loss of all rows so far against the seconds that they took, row by row, on one core: the numbers of
[quality per second](#quality-per-second).*

![Time per row against the number of features, classes and rows](/charts/growth.png)

*Time per row against the number of features, time per row against the number of classes, and time of a whole stream
against its rows; both axes are logarithmic. The slopes are in [the table](#growth).*

![Time per row with fixed numbers of threads, relative to the library's choice](/charts/threads.png)

*Time per row with a fixed number of BLAS threads, divided by that with no number set, where the library chooses: above
1, the fixed number is slower. The times are in [the table](#threads).*

### What was missed

"""


def numbers() -> dict[str, Any]:
    """The measured numbers."""
    found: dict[str, Any] = json.loads((DOCS / "benchmarks.json").read_text("utf-8"))
    return found


def quality_rows() -> list[tuple[str, float, float]]:
    """Stream, ratio to the best default rival and to the best tuned one, from the table of the page."""
    text = (DOCS / "benchmarks.md").read_text("utf-8")
    table = text[text.index("<!-- quality: begin") : text.index("<!-- quality: end")]
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")
    ]
    at = [i for i, title in enumerate(lines[0]) if title == "ratio"]
    return [(row[0], float(row[at[0]]), float(row[at[1]])) for row in lines[2:]]


def quality() -> Any:
    """Ratios of losses, one line per stream."""
    rows = sorted(quality_rows(), key=lambda row: -row[2])
    figure, axes = plots.panels(1, 1, width=7.0, height=0.24 * len(rows) + 0.9)
    panel = axes[0, 0]
    y = range(len(rows))
    panel.scatter(
        [row[1] for row in rows], y, marker="o", color=plots.COLOURS[1], label="best rival by default", zorder=3
    )
    panel.scatter(
        [row[2] for row in rows], y, marker="D", color=plots.COLOURS[2], label="best rival tuned in hindsight", zorder=3
    )
    panel.axvline(1.0, color="black", linewidth=0.8)
    panel.set_xscale("log")
    panel.set_xticks([0.03, 0.1, 0.3, 1.0], ["0.03", "0.1", "0.3", "1"])
    panel.set_yticks(list(y), [row[0] for row in rows], fontsize="small")
    plots.tidy(panel, "our log loss / theirs", "")
    panel.legend(frameon=False, fontsize="small", loc="lower left")
    return figure


def seconds() -> Any:
    """Loss against time, one panel per stream."""
    streams = numbers()["e"]["figures"]["streams"]
    figure, axes = plots.panels(len(streams), 1, width=7.0, height=2.9)
    for panel, stream in zip(axes[:, 0], streams, strict=True):
        for i, (name, line) in enumerate(stream["lines"].items()):
            panel.plot(line["curve"]["seconds"], line["curve"]["loss"], label=name, **plots.style(i))
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_title(f"{stream['stream']}: {stream['rows']:,} rows", fontsize="medium")
        plots.tidy(panel, "seconds", "mean log loss so far")
        panel.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def growth() -> Any:
    """Time against size, one panel per letter."""
    titles = {"d": "features", "K": "classes", "n": "rows"}
    lines = numbers()["c"]["figures"]["lines"]
    figure, axes = plots.panels(len(titles), 1, width=7.0, height=2.9)
    for panel, (letter, title) in zip(axes[:, 0], titles.items(), strict=True):
        shown = [line for line in lines if line["letter"] == letter]
        for i, line in enumerate(shown):
            panel.plot(line["sizes"], [ns / 1000 for ns in line["least_ns"]], label=line["what"], **plots.style(i))
        panel.set_xscale("log")
        panel.set_yscale("log")
        if letter == "K":  # too few numbers for powers of ten
            sizes = sorted({size for line in shown for size in line["sizes"]})
            panel.set_xticks(sizes, sizes)
            panel.set_xticks([], minor=True)
        plots.tidy(panel, title, "microseconds per row" if letter != "n" else "microseconds")
        panel.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def threads() -> Any:
    """Time with fixed numbers of threads, relative to that of the library's choice; one panel per number of classes."""
    lines = numbers()["f"]["figures"]["lines"]
    classes = sorted({line["K"] for line in lines})
    figure, axes = plots.panels(len(classes), 1, width=7.0, height=2.9)
    for panel, K in zip(axes[:, 0], classes, strict=True):
        for i, line in enumerate(line for line in lines if line["K"] == K):
            fixed = [name for name in line["times"] if name != "unset"]
            ratios = [line["times"][name]["median_ns"] / line["times"]["unset"]["median_ns"] for name in fixed]
            panel.plot(range(len(fixed)), ratios, label=f"{line['learner']}, d = {line['d']}", **plots.style(i))
        panel.axhline(1.0, color="black", linewidth=0.8)
        panel.set_xticks(range(len(fixed)), fixed)
        panel.set_title(f"{K} classes", fontsize="medium")
        plots.tidy(panel, "threads", "time / time with none set")
        panel.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def pictures() -> dict[str, bytes]:
    """Every picture as PNG, by its path on the site."""
    found = {}
    for draw in (quality, seconds, growth, threads):
        out = BytesIO()
        draw().savefig(out, dpi=130, metadata={"Software": None})
        found[f"charts/{draw.__name__}.png"] = out.getvalue()
    return found


def missed() -> str:
    """The goals that were not reached, and the streams on which a rival is better."""
    goals = [goal for part in numbers().values() for goal in part["figures"].get("goals", []) if not goal["reached"]]
    lines = [
        f"- {goal['what']}: wanted {'at least' if goal['at_least'] else 'at most'} {goal['wanted']:g} {goal['unit']}, "
        f"found {goal['value']:.3g} {goal['unit']}."
        for goal in goals
    ]
    lines += [
        f"- Log loss on {name}: {tuned:g} times that of the best tuned rival."
        for name, _, tuned in quality_rows()
        if tuned > 1
    ]
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The page with its pictures first."""
    return re.sub(r"\A# Benchmarks\n\n", f"# Benchmarks\n\n{INTRODUCTION}{missed()}\n".replace("\\", r"\\"), text)
