r"""The square-root form of the update: twice the digits, for streams where the digits of P run out.

P starts at I / lam and only decreases. Along a direction in which A has grown to :math:`\mu\lambda`, P has decreased
to :math:`1/\mu` of its start by subtraction: its relative error is about :math:`\mu` units of roundoff. So P is kept
while the game's `MASS`, which bounds every such :math:`\mu`, is below `FULL`. After that the array holds a root S with
:math:`SS^T = P` instead, and is updated by Potter's method: with :math:`f = S^T x`, :math:`q = |f|^2`,

.. math:: S \leftarrow S - \beta\,(Sf)\,f^T, \qquad \beta = c / (s(s+1)), \quad s = \sqrt{1 + cq},

adds :math:`c\,xx^T` to A. The condition number of S is the square root of that of P, and :math:`SS^T` is never
indefinite. A step with a large :math:`cq` would still lose digits; it is divided into parts, each of which multiplies A
along x by at most `GREATEST_PART`.

A row costs two passes over S, compared with one over P. `product` and `product_one` of surrogate.py, given S for P,
return f.
"""

from __future__ import annotations

import math

from regretless.core.kernels.jit import kernel, shared_kernel
from regretless.core.types import Array
from regretless.learners.second_order.algebra import dot

GREATEST_PART = 1e4


@kernel
def take_root(P: Array) -> None:
    """Replace P by its lower Cholesky factor, in place."""
    for i in range(P.shape[0]):
        for j in range(i + 1):
            entry = P[i, j] - dot(P[i, :j], P[j, :j])
            if j < i:
                P[i, j] = entry / P[j, j] if P[j, j] > 0.0 else 0.0
            else:
                P[i, i] = math.sqrt(max(entry, 0.0))
    for i in range(P.shape[0]):
        P[i, i + 1 :] = 0.0


@kernel
def direction(S: Array, phi: Array, f: Array) -> float:
    """f = S^T phi; returns |f|^2."""
    f[:] = 0.0
    for j in range(phi.size):
        for i in range(f.size):
            f[i] += phi[j] * S[j, i]
    return dot(f, f)


@shared_kernel
def shrink(S: Array, w: Array, phi: Array, f: Array, q: float, c: float, step: float) -> None:
    """w += step S f, then add c phi phi^T to A. f = S^T phi, q = |f|^2; f is overwritten."""
    rest = c
    while True:
        part = rest if rest * q <= GREATEST_PART else GREATEST_PART / q
        s = math.sqrt(1.0 + part * q)
        beta = part / (s * (s + 1.0))
        for i in range(w.size):
            v = dot(S[i], f)
            w[i] += step * v
            for j in range(w.size):
                S[i, j] -= beta * v * f[j]
        rest -= part
        if rest <= 0.0:
            return
        step, before = 0.0, q
        q = direction(S, phi, f)
        if not q <= 0.5 * before:  # only rounding is left (and no certificate holds for such rows)
            return
