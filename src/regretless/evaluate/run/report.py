"""The report of a run: summary, trace, plots, and an HTML page that shows them."""

from __future__ import annotations

import csv
import html
import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import regretless
from regretless.evaluate.run.rows_for import rows_for
from regretless.evaluate.run.run import Run
from regretless.evaluate.run.tables import lines_of
from regretless.evaluate.trace import Interval, Rows, Trace

WIDEST = 10_000  # most columns of sparse rows for which comparators are computed
OF_WEIGHT_1 = "comparators need rows of weight 1, no rows skipped by the learner, and a learner without earlier rows"
NOT_FROM_THE_START = "the model had learned other rows before, and its certificate and bound cover all its rows"
CURVE, END = 3_000_000, 60_000_000  # most numbers for comparators at every line of the trace, or only at its end


def rows_again(run: Run) -> tuple[Any, Any, str]:
    """All rows and labels of a run, for its comparators, or the reason why there are no comparators."""
    import numpy as np
    from scipy import sparse

    why = _no_comparator(run)
    if why:
        return None, None, why
    blocks = list(run.read_again())
    if any(block.weight is not None and (block.weight != 1.0).any() for block in blocks):
        return None, None, OF_WEIGHT_1
    y = np.concatenate([np.asarray(block.y) for block in blocks])
    rows = [rows_for(run.learner, block.X) for block in blocks]
    if hasattr(rows[0], "column_names"):
        import pyarrow as pa

        return pa.concat_tables(rows), y, ""
    return (sparse.vstack(rows).tocsr() if sparse.issparse(rows[0]) else np.concatenate(rows)), y, ""


def _no_comparator(run: Run) -> str:
    """The reason why there is no comparator, if known without reading the rows; else an empty string."""
    settings, learner = run.settings, run.learner
    if learner.competes_with is None:
        return f"{type(learner).__name__} does not declare a fixed set of comparators"
    if len(getattr(learner, "classes_", (0, 1))) < 2:
        return "all rows have the same label, and comparators need at least two classes"
    if settings.source == "-":
        return "standard input cannot be read a second time"
    if settings.weight is not None or run.bad_of_learner or Path(settings.model).is_file():
        return OF_WEIGHT_1
    rows, width = run.match.rows, _width(learner)
    if isinstance(run.columns, int) and run.columns > WIDEST:
        return f"{run.columns:,} columns are too many to compute a comparator"
    if rows * width > END:
        return f"{rows:,} rows of {width:,} numbers are too many to compute a comparator"
    return ""


def trace_of(run: Run) -> tuple[Trace, Interval | None, str]:
    """The trace of the run, and its regret at the end, or the reason why it is not known.

    Only shorter runs have the regret at every line of the trace.
    """
    X, y, why = rows_again(run)
    if X is None:
        return run.match.trace(), None, why
    trace = run.match.trace(Rows([X], [y]))
    if run.match.rows * _width(run.learner) <= CURVE:
        return trace, trace.regret[-1], ""
    return run.match.trace(), replace(trace, checkpoints=trace.checkpoints[-1:]).regret[-1], ""


def _width(learner: Any) -> int:
    """Numbers per row in the computation of a comparator."""
    return int(learner.n_features_in_) * max(len(getattr(learner, "classes_", ())) - 1, 1)


def summary_of(run: Run, trace: Trace, regret: Interval | None, why: str) -> dict[str, Any]:
    """The results of the run. They contain no times, so that equal runs write equal files."""
    last = trace.checkpoints[-1]
    document: dict[str, Any] = {
        "regretless": regretless.__version__,
        "data": run.settings.source,
        "target": run.settings.target,
        "learner": repr(run.learner),
        "rows": int(last.rows),
        "bad_rows": run.bad_count,
        "features": int(run.learner.n_features_in_),
        "columns": run.columns,
        "format": run.reading.format,
    }
    if trace.classes is not None:
        document["classes"] = trace.classes.tolist()
    if trace.kind == "numbers":
        document |= {"mean_squared_error": last.log_loss / last.rows, "mean_absolute_error": trace.error_rate}
    else:
        document |= {
            "mean_log_loss": _plain(trace.mean_log_loss),
            "error_rate": trace.error_rate,
            "brier_score": _plain(trace.brier_score),
            "calibration_error": _plain(trace.calibration_error),
        }
    document |= {
        "competes_with": None if trace.competition is None else str(trace.competition.domain),
        "total_loss": last.loss,
        "regret_certificate": _plain(last.certificate),
        "regret_bound": _plain(last.bound),
    }
    if run.match.player.before.learned:
        document["no_certificate_because"] = NOT_FROM_THE_START
    if regret is not None:
        return document | {"regret": [_plain(end) for end in regret]}
    return document | {"regret": None, "no_regret_because": why}


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def write(run: Run) -> dict[str, Any]:
    """Write the report; returns the summary."""
    trace, regret, why = trace_of(run)
    summary = summary_of(run, trace, regret, why)
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows(lines_of(trace))
    pictures = write_pictures(run, trace)
    for name, text in (
        ("summary.json", json.dumps(summary, indent=1, ensure_ascii=False) + "\n"),
        ("trace.csv", lines.getvalue()),
        ("index.html", page(summary, pictures, run)),
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


STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse } td { padding: .2rem 1.5rem .2rem 0; vertical-align: top }
td:first-child { color: #666 } img { max-width: 100% } code { background: #f3f3f3; padding: 0 .2rem }
"""
NAMES = {
    "rows": "rows",
    "bad_rows": "bad rows (skipped)",
    "features": "features",
    "classes": "classes",
    "mean_log_loss": "log loss per row",
    "error_rate": "error rate",
    "brier_score": "Brier score",
    "calibration_error": "calibration error",
    "mean_squared_error": "mean squared error",
    "mean_absolute_error": "mean absolute error",
    "competes_with": "competes with",
    "total_loss": "total loss",
    "regret": "regret",
    "no_regret_because": "no regret because",
    "regret_certificate": "regret at most (certificate)",
    "regret_bound": "regret at most (theorem)",
    "no_certificate_because": "no certificate because",
}


def shown(name: str, value: Any) -> str:
    """A value of the summary as text."""
    if value is None:
        return "not known"
    if name == "regret":
        low, high = value
        if low is None or high is None:  # the comparator's gap is infinite
            return "not known" if low is None else f"{low:.4g} or more"
        return f"{low:.4g}" if high - low <= 1e-3 * max(abs(high), 1.0) else f"{low:.4g} to {high:.4g}"
    if name == "error_rate":
        return f"{value:.2%}"
    if isinstance(value, list):
        return ", ".join(map(str, value[:12])) + (", ..." if len(value) > 12 else "")
    return f"{value:,.4f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def entries(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """The lines of the page's table: names and values."""
    return [(title, shown(name, summary[name])) for name, title in NAMES.items() if name in summary]


def page(summary: dict[str, Any], pictures: list[str], run: Run) -> str:
    """The report page, in HTML."""
    rows = "\n".join(f"<tr><td>{html.escape(a)}</td><td>{html.escape(b)}</td></tr>" for a, b in entries(summary))
    images = "\n".join(f'<p><img src="{name}" alt="{name.removesuffix(".png")}"></p>' for name in pictures)
    told = run.learner.report() if hasattr(run.learner, "report") else repr(run.learner)
    title = f"{Path(summary['data']).name}: {summary['target']}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style></head>
<body>
<h1>{html.escape(title)}</h1>
<table>
{rows}
</table>
{images}
<p>Every row was forecast before its label was used. The regret is the learner's total loss minus that of the best fixed
model in the set that the learner competes with, chosen with all rows known. The certificate is an upper bound on the
regret.</p>
<pre>{html.escape(told)}</pre>
<p>Forecasts, trace and model are in the same folder as this page. <code>regretless predict model.npz DATA</code>
forecasts other rows.</p>
</body></html>
"""
