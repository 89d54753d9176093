"""What a learner has to say of itself, at one glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from regretless.core.scores import N_SCORED, N_WRONG, TOTAL_BRIER
from regretless.core.tally import LOSS, ROWS

if TYPE_CHECKING:
    from regretless.learners.logistic.logistic import OnlineLogisticRegression

LEADING = 3


def names(learner: OnlineLogisticRegression) -> list[str]:
    """The members, as people would call them."""
    members = learner._constants.members
    kind = "AIOLI" if learner._n_classes == 2 else "FOLKLORE"
    found = [f"{kind}, radius {radius:g}" for radius in members.radii]
    for kappa, lam, rho in members.newton:
        half_life = "" if rho == 1.0 else f", half-life {np.log(0.5) / np.log(rho):.0f} rows"
        found.append(f"Newton, certainty {kappa:g}, prior {lam:g}{half_life}")
    return found + [f"AdaGrad, rate {rate:g}" for rate in members.rates]


def calibration_error(bins: np.ndarray) -> float:
    """How far the probability of the class named is from how often it was right, on average."""
    return float(np.abs(bins[:, 1] - bins[:, 2]).sum() / max(bins[:, 0].sum(), 1.0))


def of(learner: OnlineLogisticRegression) -> str:
    """The report, as text."""
    state = learner.state_
    rows = max(float(state.tally[ROWS]), 1.0)
    scored = max(float(state.scores[N_SCORED]), 1.0)
    classes = ", ".join(str(label) for label in learner.classes_[:8]) + (", ..." if learner.classes_.size > 8 else "")
    certificate = learner.regret_certificate()
    lines = [
        ("rows", f"{int(state.tally[ROWS]):,}" + (f" (and {learner.bad_rows_:,} bad)" if learner.bad_rows_ else "")),
        ("features", f"{learner.n_features_in_:,}"),
        ("classes", f"{learner.classes_.size} ({classes})"),
        ("log loss a row", f"{state.tally[LOSS] / rows:.4f}"),
        ("errors", f"{state.scores[N_WRONG] / scored:.2%}"),
        ("Brier score", f"{state.scores[TOTAL_BRIER] / scored:.4f}"),
        ("calibration error", f"{calibration_error(state.bins):.4f}"),
        (
            "regret",
            f"<= {certificate:.4g} in all, {certificate / rows:.4f} a row, against {learner.competes_with.domain}",
        ),
    ]
    weights = learner.weights_
    titles = names(learner)
    for i in np.argsort(-weights, kind="stable")[:LEADING]:
        lines.append((f"{weights[i]:.0%} of the weight", f"{titles[i]} (log loss {state.losses[i] / rows:.4f})"))
    width = max(len(title) for title, _ in lines)
    return "\n".join(f"{title:<{width}}  {text}" for title, text in lines)
