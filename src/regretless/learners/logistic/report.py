"""The report of a learner as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from regretless.core.numbers.scores import N_SCORED, N_WRONG, TOTAL_BRIER
from regretless.core.numbers.tally import LOSS, ROWS
from regretless.learners.logistic.schema import CATEGORY, MOST_RARE
from regretless.learners.logistic.sparse_rows import SparseEncoder
from regretless.theory.domains import RowBall

if TYPE_CHECKING:
    from regretless.learners.logistic.encoder import Encoder
    from regretless.learners.logistic.logistic import OnlineLogisticRegression

LEADING = 3  # members that are listed
MOST_CLASSES = 8  # classes that are listed


def calibration_error(bins: np.ndarray) -> float:
    """The mean distance between the probability of the predicted class and how often it was right, over the bins."""
    return float(np.abs(bins[:, 1] - bins[:, 2]).sum() / max(bins[:, 0].sum(), 1.0))


def _categories(encoder: Encoder | SparseEncoder, kinds: Sequence[str]) -> list[tuple[str, str]]:
    """How many categories have their own column, and how many share the encoding "none of these"."""
    if CATEGORY not in kinds or isinstance(encoder, SparseEncoder):
        return []
    schema = encoder.schema
    least = "at least " if max(schema.rare_counts.values(), default=0) >= MOST_RARE else ""
    pooled = f"{least}{len(schema.rare):,} pooled as rare or beyond max_categories"
    names = encoder.names or range(len(schema.kinds))
    most = schema.rare_counts.most_common(MOST_CLASSES)
    where = ", ".join(f"{names[j]} {count:,}" for j, count in most) + (
        ", ..." if len(schema.rare_counts) > len(most) else ""
    )
    counts = f"{schema.counts().total():,} with a column, {pooled}"
    return [("categories", counts + (f" (by column: {where})" if most else ""))]


def _features(learner: OnlineLogisticRegression, encoder: Encoder | SparseEncoder) -> str:
    """How many columns the rows have, and how many of those of a wide matrix have been seen."""
    if not isinstance(encoder, SparseEncoder) or encoder.named:
        return f"{learner.n_features_in_:,}"
    pairs = " with those of interactions" if encoder.interactions is not None else ""
    return f"{learner.n_features_in_:,}; columns seen: {encoder.index.n - learner.fit_intercept:,}{pairs}"


def _guarantee(per_row: float, domain: Any) -> str:
    """What the certificate says, in words."""
    norm = f"of norm at most {domain.radius:g}" + (" per class" if isinstance(domain, RowBall) else "")
    models = f"linear model with weights {norm}, on the rescaled columns,"
    if per_row >= 0:
        return f"no {models} has more than {per_row:.4f} less log loss per row"
    return f"every {models} has at least {-per_row:.4f} more log loss per row"


def describe(learner: OnlineLogisticRegression, encoder: Encoder | SparseEncoder) -> str:
    """A table of rows, classes, log loss, errors, Brier score, calibration, certificate and the leading members."""
    state = learner.state_
    rows = max(float(state.tally[ROWS]), 1.0)
    scored = max(float(state.scores[N_SCORED]), 1.0)
    n_classes = learner.classes_.size
    classes = ", ".join(map(str, learner.classes_[:MOST_CLASSES])) + (", ..." if n_classes > MOST_CLASSES else "")
    certificate = learner.regret_certificate()
    lines = [
        ("rows", f"{int(state.tally[ROWS]):,}" + (f" (and {learner.bad_rows_:,} bad)" if learner.bad_rows_ else "")),
        ("features", _features(learner, encoder)),
        *_categories(encoder, learner.column_kinds_),
        ("classes", f"{n_classes} ({classes})"),
        ("log loss per row", f"{state.tally[LOSS] / rows:.4f}"),
        ("errors", f"{state.scores[N_WRONG] / scored:.2%}"),
        ("Brier score", f"{state.scores[TOTAL_BRIER] / scored:.4f}"),
        ("calibration error", f"{calibration_error(state.bins):.4f}"),
        ("guarantee", _guarantee(certificate / rows, learner.competes_with.domain)),
    ]
    weights, members = learner.weights_, learner.members_
    for i in np.argsort(-weights, kind="stable")[:LEADING]:
        lines.append((f"{weights[i]:.0%} of the weight", f"{members[i]} (log loss {state.losses[i] / rows:.4f})"))
    width = max(len(title) for title, _ in lines)
    return "\n".join(f"{title:<{width}}  {text}" for title, text in lines)
