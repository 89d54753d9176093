"""The report of a run: summary, trace, plots, and an HTML page that shows them."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from regretless.evaluate.run import leading
from regretless.evaluate.run.decision import Decision, decision_of
from regretless.evaluate.run.hindsight import Tell, trace_of
from regretless.evaluate.run.page import page
from regretless.evaluate.run.run import Run
from regretless.evaluate.run.scores import Scores, scores_of
from regretless.evaluate.run.summary import summary_of
from regretless.evaluate.run.tables import lines_of, windows_of
from regretless.evaluate.trace import Trace


def write(
    run: Run,
    tell: Tell = lambda what, done, total: None,
    hindsight: bool = True,
    decision: Decision | None = None,
) -> dict[str, Any]:
    """Write the report; returns the summary. `tell` is called as it proceeds."""
    trace, regret, why = trace_of(run, tell, hindsight)
    tell("scores", 0, None)
    if decision is None and trace.kind == "probabilities":
        decision = decision_of(run.learner.classes_.tolist(), None, None)
    scores = scores_of(run.forecasts(), run.match, decision)
    features = leading.as_table(
        leading.leading_features(run), getattr(run.learner, "classes_", np.empty(0)).tolist() or None
    )
    summary = summary_of(run, trace, regret, why) | scores.found | {"leading_features": features}
    tell("drawing", 0, None)
    pictures = write_pictures(run, trace, scores, features)
    for name, text in (
        ("summary.json", json.dumps(summary, indent=1, ensure_ascii=False) + "\n"),
        ("trace.csv", _as_csv(lines_of(trace))),
        ("over_time.csv", _as_csv(windows_of(scores.over_time))),
        ("index.html", page(summary, pictures, run.learner)),
    ):
        with run.folder.new_file(name) as file:
            file.write(text.encode("utf-8"))
    return summary


def _as_csv(lines: Iterable[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def write_pictures(run: Run, trace: Trace, scores: Scores, features: list[dict[str, Any]]) -> list[str]:
    """Plot scores over time, the reliability of probabilities, leading features, and the regret.

    Returns the file names.
    """
    from regretless.evaluate import plots
    from regretless.evaluate.run import pictures

    drawn = {"over_time.png": pictures.over_time(scores.over_time, scores.found["baseline"], trace.kind == "numbers")}
    if scores.bins is not None:
        labels = run.learner.classes_.tolist()
        only = labels.index(scores.found["positive"]) if "positive" in scores.found else None
        drawn["reliability.png"] = pictures.reliability(scores.bins, labels, only)
    if features:
        drawn["features.png"] = leading.draw(features)
    drawn["regret.png"] = plots.regret(trace).figure
    for name, figure in drawn.items():
        with run.folder.new_file(name) as file, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph")  # letters of labels that the font lacks
            figure.savefig(file, format="png", dpi=120, metadata={"Software": None})
    return list(drawn)
