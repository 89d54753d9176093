"""The summary of a run: its results as a document, and as lines of text."""

from __future__ import annotations

import math
from typing import Any

import regretless
from regretless.evaluate.run.run import Run
from regretless.evaluate.trace import Interval, Trace

NOT_FROM_THE_START = "the model had learned other rows before, and its certificate and bound cover all its rows"
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
    if run.settings.encoding is not None:
        document["encoding"] = run.settings.encoding
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
