"""The report of a run: summary, trace, plots, and an HTML page that shows them."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from regretless.evaluate.run.hindsight import Tell, trace_of
from regretless.evaluate.run.page import page
from regretless.evaluate.run.run import Run
from regretless.evaluate.run.summary import summary_of
from regretless.evaluate.run.tables import lines_of
from regretless.evaluate.trace import Trace


def write(run: Run, tell: Tell = lambda what, done, total: None, hindsight: bool = True) -> dict[str, Any]:
    """Write the report; returns the summary. `tell` is called as it proceeds."""
    trace, regret, why = trace_of(run, tell, hindsight)
    summary = summary_of(run, trace, regret, why)
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows(lines_of(trace))
    tell("drawing", 0, None)
    pictures = write_pictures(run, trace)
    for name, text in (
        ("summary.json", json.dumps(summary, indent=1, ensure_ascii=False) + "\n"),
        ("trace.csv", lines.getvalue()),
        ("index.html", page(summary, pictures, run.learner)),
    ):
        with run.folder.new_file(name) as file:
            file.write(text.encode("utf-8"))
    return summary


def write_pictures(run: Run, trace: Trace) -> list[str]:
    """Plot the regret, and the reliability of probabilities; returns the file names."""
    from regretless.evaluate import plots

    drawn = {"regret.png": plots.regret(trace)}
    if trace.kind == "probabilities":
        drawn["reliability.png"] = plots.reliability(trace)
    for name, axes in drawn.items():
        with run.folder.new_file(name) as file:
            axes.figure.savefig(file, format="png", dpi=120, metadata={"Software": None})
    return list(drawn)
