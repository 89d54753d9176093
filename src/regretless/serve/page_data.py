"""The numbers of the page, as JSON.

`GET /models/{name}/page-data` (and `/page-data`, for the default model) returns one object:

- `name`, `recipe`, `features` (a number), `classes`, `version` (labels learned), `seq`, `created`;
- `summary`: means over the labels so far (`log_loss`, `error`, `brier`, `baseline_log_loss`, `delay_seconds`,
  `delay_labels`), and the counts `forecasts`, `labels`, `refused`;
- `regret`: as `GET /regret`;
- `history`: arrays with one entry per point, at most 240: `labels`, `at` (seconds since 1970), `log_loss`, `error`,
  `baseline_log_loss` (means so far), `recent_log_loss`, `recent_error`, `recent_baseline_log_loss` (means since the
  point before: drift shows here), `live_regret`, `certificate`, `bound` (totals; null where there is none), and
  `shares`: for each class its share of the labels since the point before (null with more than 12 classes);
- `reliability`: `[count, mean confidence, accuracy]` of the non-empty bins of the likeliest class;
- `class_counts`: labels per class;
- `last`: up to 50 forecasts, oldest first: `id`, `seq`, `at`, `probabilities`, `y` (null until the label comes);
- `traffic`: `requests`, `p50_seconds`, `p99_seconds` since the start of the process, and `seconds`, an array of
  `[second, operations, mean latency, largest latency]` for the last 300 seconds. It is about all models.

`GET /live` sends server-sent events, one per second while something changes, and a comment otherwise. Each has the name
`update` and as data `{"models": {name: {...}}, "traffic": {...}}`. A model is there if it changed; it has the fields
above without `history`, whose newest point is `point`, an object with a number instead of each array, computed now.
Its `recent_` values are means since the last point of `history`. `last` has the forecasts that are new or newly
labelled since the event before; `traffic.seconds` the new seconds. `GET /models/{name}/live` is about one model.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from regretless.core.numbers.scores import N_WRONG, TOTAL_LOSS
from regretless.serve.host import Entry, ModelHost, decode
from regretless.serve.traffic import Traffic

LABELS, AT, LOSS, WRONG, BASELINE, SERVED, LEARNER, CERTIFICATE, BOUND, COUNTS = range(10)


def page_data(host: ModelHost, seq: int, traffic: Traffic) -> dict[str, Any]:
    """Everything that the page shows of a model."""
    points = [_point(host, before, after) for before, after in pairwise([_nothing(host), *host.sums.history])]
    names = [name for name in POINT if name != "shares"]
    history: dict[str, Any] = {name: [point[name] for point in points] for name in names}
    shares = [point["shares"] for point in points]
    history["shares"] = (
        None if None in shares else {name: [share[name] for share in shares] for name in host.class_names}
    )
    return summary(host, seq) | {
        "history": history,
        "last": [forecast_of(host, entry) for entry in host.recent],
        "traffic": traffic.summary() | {"seconds": traffic.recent()},
    }


def summary(host: ModelHost, seq: int) -> dict[str, Any]:
    """The fields of `page_data` that `/live` sends too."""
    sums = host.sums
    some = sums.bins[sums.bins[:, 0] > 0.0]
    return {
        "name": host.name,
        "recipe": host.recipe,
        "features": host.columns.n,
        "classes": host.classes,
        "version": host.version,
        "seq": seq,
        "created": host.created,
        "summary": sums.summary(),
        "regret": host.regret(),
        "reliability": np.column_stack([some[:, 0], some[:, 1] / some[:, 0], some[:, 2] / some[:, 0]]).tolist(),
        "class_counts": dict(zip(host.class_names, sums.counts, strict=True)),
    }


def point_now(host: ModelHost, at: float) -> dict[str, Any]:
    """The newest point, since the last one of the history."""
    sums = host.sums
    certificate, bound = host.promises()
    totals = [float(sums.scores[TOTAL_LOSS]), float(sums.scores[N_WRONG]), sums.baseline_loss, sums.served_loss]
    now = [sums.labels, at, *totals, host.learner_loss, certificate, bound, sums.counts]
    before = next((point for point in reversed(sums.history) if point[LABELS] < now[LABELS]), _nothing(host))
    return _point(host, before, now)


def forecast_of(host: ModelHost, entry: Entry) -> dict[str, Any]:
    """A forecast and its label."""
    return {
        "id": entry.id,
        "seq": entry.seq,
        "at": entry.at,
        "probabilities": host.named(entry.forecast),
        "y": None if entry.y is None else decode(entry.y),
    }


POINT = (
    "labels",
    "at",
    "log_loss",
    "error",
    "baseline_log_loss",
    "recent_log_loss",
    "recent_error",
    "recent_baseline_log_loss",
    "live_regret",
    "certificate",
    "bound",
    "shares",
)


def _nothing(host: ModelHost) -> list[Any]:
    return [0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, None, None, [0] * len(host.classes)]


def _point(host: ModelHost, before: list[Any], after: list[Any]) -> dict[str, Any]:
    n, new = max(after[LABELS], 1), max(after[LABELS] - before[LABELS], 1)
    certificate = after[CERTIFICATE]
    shares = None
    if after[COUNTS] is not None and before[COUNTS] is not None:
        counts = zip(host.class_names, after[COUNTS], before[COUNTS], strict=True)
        shares = {name: (now - then) / new for name, now, then in counts}
    totals = (after[i] / n for i in (LOSS, WRONG, BASELINE))
    recent = ((after[i] - before[i]) / new for i in (LOSS, WRONG, BASELINE))
    live = None if certificate is None else certificate + after[SERVED] - after[LEARNER]
    values = (after[LABELS], after[AT], *totals, *recent, live, certificate, after[BOUND], shares)
    return dict(zip(POINT, values, strict=True))
