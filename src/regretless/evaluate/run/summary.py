"""The summary of a run: its results as a document."""

from __future__ import annotations

import math
from typing import Any

import regretless
from regretless.evaluate.run.run import Run
from regretless.evaluate.trace import Interval, Trace

NOT_FROM_THE_START = "the model had learned other rows before, and its certificate and bound cover all its rows"


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
    if run.identifiers:
        document["identifiers"] = run.identifiers
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
