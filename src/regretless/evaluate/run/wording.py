"""The summary of a run in words: a title and a text for each line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

SCORES = {
    "mean_log_loss": "log loss per row",
    "error_rate": "error rate",
    "brier_score": "Brier score",
    "mean_squared_error": "mean squared error",
    "mean_absolute_error": "mean absolute error",
}
MOST = 12  # classes that are listed


def entries(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """The lines of the report's table."""
    found: list[tuple[str, str]] = []
    for part in (_data, _scores, _decisions, _hindsight):
        found += part(summary)
    return found


def _data(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    bad = summary["bad_rows"]
    yield "rows", f"{summary['rows']:,}" + (f" (and {bad:,} bad rows skipped)" if bad else "")
    yield "features", f"{summary['features']:,}"
    if "identifiers" in summary:
        names = ", ".join(summary["identifiers"])
        yield "identifiers?", f"{names}: if so, leave them out with --drop, or copy them to the forecasts with --id"
    if "classes" in summary:
        labels = [str(label) for label in summary["classes"]]
        yield "classes", ", ".join(labels[:MOST]) + (f", ... ({len(labels)} in all)" if len(labels) > MOST else "")


def _scores(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    baseline = summary["baseline"]
    for name, title in SCORES.items():
        if summary.get(name) is not None:
            constant = f"  (best constant: {_score(name, baseline[name])})" if name in baseline else ""
            yield title, _score(name, summary[name]) + constant
    if summary.get("calibration_error") is not None:
        yield "calibration error", f"{summary['calibration_error']:.4f}"
    if summary.get("auc") is not None:
        yield "AUC", f"{summary['auc']:.4f}"


def _score(name: str, value: float) -> str:
    return f"{value:.2%}" if name == "error_rate" else f"{value:,.4f}"


def _decisions(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for each in summary.get("per_class", [])[:MOST]:
        if "positive" in summary and each["label"] != summary["positive"]:
            continue
        values = ("unknown" if each[name] is None else f"{each[name]:.3f}" for name in ("precision", "recall", "f1"))
        text = "precision {}, recall {}, F1 {}".format(*values)
        if "threshold" in summary:
            text += f", if forecast from a probability of {summary['threshold']:.3g} on"
        yield f"class {each['label']}", text
    if "cost" in summary:
        cost = summary["cost"]
        yield (
            "cost per row",
            (
                f"{cost['per_row']:,.4f}  (best constant decision: {summary['baseline_cost_per_row']:,.4f}), with "
                f"{cost['fp']:g} per false positive and {cost['fn']:g} per false negative"
            ),
        )


def _hindsight(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """How the run compares with the best fixed model, and what is guaranteed."""
    rows, loss, model = summary["rows"], _loss(summary), _model(summary["competes_with"])
    if summary["regret"] is None:
        yield "best in hindsight", f"unknown, because {summary['no_regret_because']}"
    elif summary["regret"][0] is None:
        yield "best in hindsight", "unknown, because its computation did not converge"
    else:
        low, high = summary["regret"]
        yield "best in hindsight", f"{difference(low, high, rows)} {loss} per row, by the best {model}"
    if summary.get("no_certificate_because"):
        yield "guarantee", f"unknown, because {summary['no_certificate_because']}"
    elif summary["regret_certificate"] is not None:
        most = f"{summary['regret_certificate'] / rows:.4f}"
        yield "guarantee", f"no {model} has more than {most} less {loss} per row, whatever the data"


def difference(low: float, high: float | None, rows: int) -> str:
    """How much less, or more, the best model's loss per row is."""
    end = low if high is None or high - low < 1e-4 * rows else high
    word, ends = ("less", (low, end)) if end > 0.0 else ("more", (-end, -low))
    first, last = (f"{each / rows:.4f}" for each in ends)
    return f"{first} {word}" if low == end else f"{first} to {last} {word}"


def _loss(summary: dict[str, Any]) -> str:
    """The name of the loss that is compared. (A learner's log loss includes its reserve for labels never seen.)"""
    for name, words in (("mean_log_loss", "log loss"), ("mean_squared_error", "squared error")):
        value = summary.get(name)
        if value is not None and abs(value * summary["rows"] - summary["total_loss"]) <= 0.01 * summary["total_loss"]:
            return words
    return "loss"


def _model(domain: str | None) -> str:
    """A member of the set of comparators, in words."""
    ball = re.fullmatch(r"(Row)?Ball\(radius=([0-9.e+-]+)\)", domain or "")
    if ball:
        per_class = " per class" if ball[1] else ""
        return f"linear model with weights of norm at most {float(ball[2]):g}{per_class}"
    return "linear model" if domain == "WholeSpace()" else f"linear model with weights in {domain}"
