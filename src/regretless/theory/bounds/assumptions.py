"""Checks of the theorems' assumptions. Each raises `NoBound` with the parameter and its value."""

from __future__ import annotations

import math

from regretless.core.errors import NoBound


def check_positive(**sizes: float) -> None:
    """Refuse a size that is not a positive finite number."""
    for name, size in sizes.items():
        if not 0 < size < math.inf:
            raise NoBound(f"{name} must be a positive finite number for the theorem to hold; here {name}={size}.")


def check_nonnegative(**sizes: float) -> None:
    """Refuse a size that is negative, infinite or NaN."""
    for name, size in sizes.items():
        if not 0 <= size < math.inf:
            raise NoBound(f"{name} must be a finite number >= 0 for the theorem to hold; here {name}={size}.")


def check_counts(**counts: int) -> None:
    """Refuse a count below 1."""
    for name, count in counts.items():
        if not 1 <= count < math.inf:
            raise NoBound(f"{name} must be at least 1 for the theorem to hold; here {name}={count}.")


def check_classes(n_classes: int) -> None:
    """Refuse fewer than two classes."""
    if not 2 <= n_classes < math.inf:
        raise NoBound(f"the theorem needs two or more classes; here n_classes={n_classes}.")


def check_failure(failure: float) -> None:
    """Refuse a failure probability outside (0, 1)."""
    if not 0 < failure < 1:
        raise NoBound(f"failure is the probability that the bound fails, between 0 and 1; here failure={failure}.")


# (A2) of `gaf` for the log loss: along v the third derivative is at most c = sqrt(2) |v| times the second one, so that
# the loss is at most (e^c - c - 1)/c^2 <= e^c/2 times the quadratic above its tangent, and e^c/2 <= e^(zeta |v|^2).
SOFTMAX_ZETA = 1 / (2 * math.log(2))


def least_gaf_regularization(*, n_scores: int, alpha: float, zeta: float) -> float:
    """The smallest lambda of GAF's Theorem 1."""
    return max(4, n_scores) * zeta / alpha


def check_gaf_regularization(regularization: float, *, n_scores: int, alpha: float, zeta: float) -> None:
    """Refuse a lambda below that of GAF's Theorem 1."""
    least = least_gaf_regularization(n_scores=n_scores, alpha=alpha, zeta=zeta)
    if regularization < least * (1 - 1e-12):
        raise NoBound(
            f"GAF's theorem needs regularization >= max(4, m) zeta / alpha = {least:.4g} for m = {n_scores} scores; "
            f"this learner has {regularization:.4g}. (The certificate does not need this.)"
        )


def check_smoothing(smoothing: float) -> None:
    """Refuse a mu whose cost is not proved."""
    if smoothing > 0.5:
        raise NoBound(
            f"the cost of smoothing, 2 mu per row, is proved for mu <= 1/2; this learner has {smoothing:.4g}."
        )


def check_curvature(curvature: float, *, logits: float, n_classes: int) -> None:
    r"""Refuse a curvature above the "sharp" and (for two classes) the "aioli" constant, for logits up to `logits`.

    With :math:`L = 2C + \ln(K-1)`, the sharp condition is :math:`\kappa \le 1/(2+w)` where :math:`w + \ln w = L - 1`.
    Equivalently, :math:`w = 1/\kappa - 2` satisfies :math:`w + \ln w \ge L - 1`.
    """
    L = 2 * logits + math.log(n_classes - 1)
    w = 1 / curvature - 2
    if w > 0 and w + math.log(w) >= L - 1 - 1e-9 * (1 + L):
        return
    if n_classes == 2 and curvature <= (1 + 1e-9) / (2 * (1 + L)):
        return
    raise NoBound(
        f"curvature={curvature:.4g} is not proved to keep the quadratics below the log loss for logits up to "
        f"{logits:.4g} and {n_classes} classes: lower it, or the radius, or scale the rows down."
    )
