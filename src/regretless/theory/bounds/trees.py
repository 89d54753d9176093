"""Bounds of the learners in `regretless.learners.trees`."""

from __future__ import annotations

import math

from regretless.core.errors import NoBound
from regretless.theory.bounds.assumptions import check_classes, check_counts, check_nonnegative


def mondrian_pruning(n: int, *, n_leaves: int) -> float:
    r"""The log loss of `MondrianForest` above the mean of one pruning per tree (`amf`, with the prior of this library).

    .. math:: (2m + 1) \ln 2 + (m-1) \ln(2n^2)

    for prunings with m leaves, whose nodes forecast as they do in the tree. Mixing the cautious with the bold forest
    costs ln 2. The log loss is convex, so the loss of the cautious forest is at most the mean of those of its trees.
    That of a tree is at most :math:`-\ln\sum_{\mathcal P} \pi(\mathcal P) e^{-L(\mathcal P)}`, because splits divide
    the prior of a pruning among its refinements, and it remains to bound :math:`\ln(1/\pi(\mathcal P))`. Undo the
    splits of the tree, the last one first, and join the parts of a split node where both are leaves of the pruning. A
    leaf of the pruning that was split later costs ln 2 once, and the splits above it while it was an inner node a
    factor :math:`\prod_k (1 - 1/(k+1)^2) \ge \frac12`. Joining, m - 1 times, costs ln 2 if the node was a leaf, and
    :math:`\ln(2k(k+1))` at the k-th split above an inner node, where :math:`k \le n - 2`; or nothing, if the pruning
    goes on below the copy.

    **Order.** O(m log n) above the log loss of the best prunings with m leaves.

    **Assumes.** rows of weight 1; at most as many leaves as rows.

    >>> round(mondrian_pruning(1000, n_leaves=4), 2)
    49.76
    """
    check_counts(n_leaves=n_leaves)
    check_nonnegative(n=n)
    if n_leaves > max(n, 1):
        raise NoBound(f"every leaf has a row, so n_leaves is at most n; here n_leaves={n_leaves} and n={n}.")
    joins = (n_leaves - 1) * math.log(2 * n * n) if n_leaves > 1 else 0.0
    return (2 * n_leaves + 1) * math.log(2) + joins


def mondrian_constants(n: int, *, n_leaves: int, n_classes: int, dirichlet: float | None = None) -> float:
    r"""The log loss of `MondrianForest` above the best constants in the leaves of one pruning per tree (`amf`).

    .. math:: (2m + 1) \ln 2 + (m-1) \ln(2n^2) + (m-1) \ln\left(1 + \frac n{Ks}\right) + m R(n/m),\quad
        R(n) = K\left(\tfrac12 - s\right) \ln\left(\tfrac nK + s\right) + n + Ks - \tfrac K2 \ln 2\pi +
        K \ln\Gamma(s) + \ln\frac{\Gamma(n + Ks)}{\Gamma(Ks)} - n \ln n

    The first two terms are `mondrian_pruning`. R bounds the loss of the forecasts :math:`(n_k + s)/(n + Ks)` above that
    of the best constant, for n rows: their loss is :math:`\ln\frac{\Gamma(n+Ks)}{\Gamma(Ks)} -
    \sum_k \ln\frac{\Gamma(n_k+s)}{\Gamma(s)}`, where :math:`\ln\Gamma(x) \ge (x - \frac12)\ln x - x +
    \frac12\ln 2\pi`, and the sum of the concave bounds is largest for equal :math:`n_k`. R is concave, so the sum over
    the leaves is largest for equal leaves. Instead of 1/K, the first forecast in each leaf but that of the first row is
    one of the tree's, which is at least :math:`s/(n + Ks)`: this is the third term.

    **Order.** O(m K log n) above the best constants in the leaves of the best prunings with m leaves.

    **Assumes.** rows of weight 1; one label per row; 0 < s <= 1/2 (None: 1/K); otherwise as `mondrian_pruning`.

    >>> round(mondrian_constants(1000, n_leaves=4, n_classes=2), 2)
    86.44
    """
    check_classes(n_classes)
    pruning = mondrian_pruning(n, n_leaves=n_leaves)
    s = 1 / n_classes if dirichlet is None else dirichlet
    if not 0 < s <= 0.5:
        raise NoBound(f"dirichlet must be in (0, 1/2] for the theorem to hold; here dirichlet={s}.")
    if n == 0:
        return pruning
    K, each = n_classes, n / n_leaves
    constants = (
        K * (0.5 - s) * math.log(each / K + s)
        + (each + K * s - K / 2 * math.log(2 * math.pi))
        + K * math.lgamma(s)
        + (math.lgamma(each + K * s) - math.lgamma(K * s) - each * math.log(each))
    )
    return pruning + (n_leaves - 1) * math.log1p(n / (K * s)) + n_leaves * constants
