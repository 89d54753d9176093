r"""Gaussian beliefs whose precision is diagonal plus of rank r: second-order learning on wide rows.

`sparse_members.py` has beliefs with one variance per weight. Where columns come together, this counts their evidence
once for each of them. Here the precision of the weights is

.. math:: \Lambda = V^{-1} + F\,(R - I)\,F^T, \qquad F^TVF \approx I,

with V a diagonal of variances, F a sketch of r directions for all columns, and R of size r x r. With
:math:`z = F^TVx` and :math:`M = I - R^{-1}`, the covariance that is used is

.. math:: \Sigma = V - VF\,M\,F^TV, \qquad q = x^T\Sigma x = \sum v x^2 - z^TMz, \qquad \Sigma x = Vx - VF\,Mz.

The step is the implicit one of the other beliefs, :math:`w \leftarrow w + (y-p)\,\Sigma x`. The second term of Sigma x
moves the weights of all columns, so it is stored as r numbers: :math:`w = u + VF\beta`. The curvature
:math:`b = \kappa p(1-p)` of a row goes to R along the sketch, and to the variances along the rest of the row:

.. math:: R \leftarrow R + b\,zz^T, \qquad 1/v \leftarrow 1/v + b\,(x - Fz)^2.

(The rest is not 0 in columns that the row lacks. These are left out, so a row costs O(r) per entry and O(r^2).)

The directions are those of the largest curvature: a power method over the stream. :math:`Y = \sum b\,x z^T` is the
curvature of the rows since the last turn, times VF. At a turn, after half as many rows again, u becomes w. The new F
is :math:`L = F(R_0 - I) + Y`, with the R after the last turn, orthonormalised in the norm of V. The lengths of its
columns before that become the diagonal of R - I: they do not exceed the largest eigenvalues of the curvature. A turn
takes O(r^2) per column seen.

Since V only decreases, :math:`F^TVF \le I` between turns: so :math:`\Sigma` is positive semidefinite and not below
:math:`\Lambda^{-1}`, whatever was rounded. Before the first turn F is random, M = 0, and this is one of the other
beliefs.

The sketch of Online Newton steps is Luo et al.'s (key `sketched-newton` of REFERENCES.bib); diagonal plus low rank with
the rest of a row on the diagonal is Chang et al.'s (key `lofi`); the power method in blocks is Mitliagkas et al.'s (key
`streaming-pca`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.core.files import state_checks
from regretless.core.kernels.copying import copy_line, copy_lines
from regretless.core.kernels.jit import kernel
from regretless.core.types import Array
from regretless.learners.logistic.hashing import LARGEST_ID, scramble
from regretless.learners.logistic.newton import settle
from regretless.learners.logistic.sparse_members import SKETCHED, settled

G = len(SKETCHED)
MOST_DIRECTIONS = 100
FIRST_TURN = 32  # rows
LEAST = 1e-14  # the least part of the largest eigenvalue of L^T V L that is not taken for rounding
# A line of a column (G C, 2 + 2r): u, v, then F and Y, for each of the C vectors of weights of G members, which do not
# depend on each other. `turns`: the row after which the next turn comes; the slots met so far.
U, V, F = 0, 1, 2
NEXT, MET = 0, 1


class Sketch(NamedTuple):
    """What the sketched beliefs know: S slots of columns, G C vectors of weights, r directions; without them r = 0."""

    lines: Array  # (S, G C, 2 + 2r); (S, G C, 0) if r = 0
    shift: Array  # (G C, r) beta
    inverse: Array  # (G C, r, r) of R
    strength: Array  # (G C, r) the diagonal of R - I after the last turn; all 0 before the first
    turns: Array  # (2,)


class View(NamedTuple):
    """What the sketched beliefs say about one row, and learn from it, for each of the G C vectors."""

    score: Array  # w.x
    spread: Array  # q
    z: Array  # (G C, r)
    damped: Array  # (G C, r) M z
    step: Array  # y - p after the implicit step
    bend: Array  # b


def line_length(r: int) -> int:
    """How many numbers a weight has."""
    return 2 + 2 * r if r else 0


def start(r: int, C: int) -> Sketch:
    """The sketch before the first row."""
    n = G * C
    return Sketch(
        np.empty((0, n, line_length(r))),
        np.zeros((n, r)),
        np.tile(np.eye(r), (n, 1, 1)),
        np.zeros((n, r)),
        np.array([float(FIRST_TURN), 0.0]),
    )


def begin_lines(sketch: Sketch, before: int, variance: Array) -> None:
    """Write the lines of slots from `before` on: new columns, in no direction once the directions are known."""
    if not sketch.lines.shape[2]:
        return
    sketch.lines[before:] = 0.0
    sketch.lines[before:, :, V] = np.repeat(variance, sketch.lines.shape[1] // G)
    scatter(sketch.lines, np.all(sketch.strength == 0.0, axis=1), before)


def with_class(sketch: Sketch, variance: Array) -> Sketch:
    """The sketch with one more class. From two classes, each gets half of the margin's weights and variances."""
    (S, n, length), r = sketch.lines.shape, sketch.shift.shape[1]
    C = n // G
    lines = sketch.lines.reshape(S, G, C, length)
    shift, inverse = sketch.shift.reshape(G, C, r), sketch.inverse.reshape(G, C, r, r)
    strength = sketch.strength.reshape(G, C, r)
    if C == 1:
        root = math.sqrt(2.0)
        lines = np.concatenate([lines, lines], axis=2)
        lines[..., :F] *= 0.5  # u and v
        lines[:, :, 0, U : U + 1] *= -1.0
        lines[..., F:] *= root
        shift = np.concatenate([-shift, shift], axis=1) / root
        inverse, strength = (np.concatenate([each, each], axis=1) for each in (inverse, strength))
    new = np.zeros((S, G, length))
    new[:, :, V : V + 1] = variance[:, None]
    if r:
        scatter(new, np.ones(G, dtype=np.bool_), 0)
    lines = np.concatenate([lines, new[:, :, None]], axis=2)
    shift, strength = (np.concatenate([each, np.zeros((G, 1, r))], axis=1) for each in (shift, strength))
    inverse = np.concatenate([inverse, np.tile(np.eye(r), (G, 1, 1, 1))], axis=1)
    n += G if C > 1 else 2 * G
    return Sketch(
        lines.reshape(S, n, length), shift.reshape(n, r), inverse.reshape(n, r, r), strength.reshape(n, r), sketch.turns
    )


def weights(sketch: Sketch, slots: NDArray[np.int64]) -> Array:
    """The weights (n, G, C) of some slots."""
    lines, r = sketch.lines[slots], sketch.shift.shape[1]
    found: Array = lines[:, :, U] + lines[:, :, V] * np.einsum("ski,ki->sk", lines[:, :, F : F + r], sketch.shift)
    return found.reshape(len(slots), G, -1)


def check(sketch: Sketch, variance: Array, rows: float) -> None:
    """Refuse a sketch that no run can have led to: a file may hold anything."""
    S, n, length = sketch.lines.shape
    state_checks.sums("sketch_lines", sketch.lines)
    if length:
        v = sketch.lines[:, :, V]
        good = (v > 0.0) & (v <= np.repeat(variance, n // G))
        state_checks.require(np.all(good), "sketch_lines, variances")
    state_checks.sums("sketch_shift", sketch.shift)
    state_checks.within("sketch_inverse", sketch.inverse, -1.01, 1.01)
    state_checks.within("sketch_strength", sketch.strength, 0.0, math.inf)
    state_checks.whole("sketch_turns", sketch.turns, math.inf)
    state_checks.require(sketch.turns[MET] <= S, "sketch_turns: more slots than there are")
    state_checks.require(not length or sketch.turns[NEXT] > rows, "sketch_turns: a turn was missed")


# ---------------------------------------------------------------------- a row


@kernel
def new_view(n: int, r: int) -> View:
    """Room for one row."""
    return View(np.empty(n), np.empty(n), np.empty((n, r)), np.empty((n, r)), np.empty(n), np.empty(n))


@kernel
def look(sketch: Sketch, slots: NDArray[np.uintp], x: Array, n: int, view: View) -> None:
    """The scores, the spreads and the place in the sketch of a row of n entries."""
    lines, r = sketch.lines, sketch.shift.shape[1]
    for k in range(lines.shape[1]):
        score = spread = 0.0
        z, damped = view.z[k], view.damped[k]
        z[:] = 0.0
        for e in range(n):
            at, value = slots[e], x[e]
            reach = lines[at, k, V] * value
            score += lines[at, k, U] * value
            spread += reach * value
            for i in range(r):
                z[i] += reach * lines[at, k, F + i]
        for i in range(r):
            kept = 0.0
            for j in range(r):
                kept += sketch.inverse[k, i, j] * z[j]
            damped[i] = z[i] - kept
            score += z[i] * sketch.shift[k, i]
        for i in range(r):
            spread -= z[i] * damped[i]
        view.score[k], view.spread[k] = score, max(spread, 0.0)


@kernel
def publish(view: View, logits: Array) -> None:
    """Write the scores as logits, the last G of (members, K)."""
    K, first = logits.shape[1], logits.shape[0] - G
    for g in range(G):
        if K == 2:
            logits[first + g, 0], logits[first + g, 1] = -0.5 * view.score[g], 0.5 * view.score[g]
        else:
            copy_line(view.score[g * K : (g + 1) * K], logits[first + g])


@kernel
def judge(view: View, y: Array, weight: float, sketched: Array) -> None:
    """How the label moves each member: step and bend."""
    K = y.size
    if K == 2:
        for g in range(G):
            p = settled(view.score[g], weight * view.spread[g], y[1])
            view.step[g] = weight * (y[1] - p)
            view.bend[g] = weight * sketched[g, 0] * p * (1.0 - p)
        return
    z, said = np.empty(K), np.empty(K)
    for g in range(G):
        settle(view.score[g * K : (g + 1) * K], view.spread[g * K : (g + 1) * K], weight, y, z, said)
        for k in range(K):
            view.step[g * K + k] = weight * (y[k] - said[k])
            view.bend[g * K + k] = weight * sketched[g, 0] * said[k] * (1.0 - said[k])


@kernel
def learn(sketch: Sketch, slots: NDArray[np.uintp], x: Array, n: int, view: View) -> None:
    """Move the weights and make them more certain; Y gets the row."""
    lines, shift, r = sketch.lines, sketch.shift, sketch.shift.shape[1]
    for k in range(lines.shape[1]):
        z, damped, step, bend = view.z[k], view.damped[k], view.step[k], view.bend[k]
        begun = 1.0 if sketch.strength[k].any() else 0.0
        for i in range(r):
            shift[k, i] -= step * damped[i]
        for e in range(n):
            at, value = slots[e], x[e]
            known = moved = 0.0
            for i in range(r):
                known += lines[at, k, F + i] * z[i]
                moved += lines[at, k, F + i] * shift[k, i]
            rest = value - begun * known
            v = lines[at, k, V]
            after = v / (1.0 + bend * rest * rest * v)
            lines[at, k, U] += step * v * value + (v - after) * moved  # so that w changes by the step alone
            lines[at, k, V] = after
            for i in range(r):
                lines[at, k, F + r + i] += bend * value * z[i]
        if begun == 1.0:
            remember(sketch.inverse[k], z, damped, bend)


@kernel
def remember(inverse: Array, z: Array, damped: Array, bend: float) -> None:
    """The inverse of R + bend z z^T; damped = z - R^-1 z."""
    r = z.size
    size = 0.0
    for i in range(r):
        size += z[i] * (z[i] - damped[i])
    part = bend / (1.0 + bend * max(size, 0.0))
    for i in range(r):
        for j in range(r):
            inverse[i, j] -= part * (z[i] - damped[i]) * (z[j] - damped[j])


# ---------------------------------------------------------------------- a turn


@kernel
def scatter(lines: Array, which: NDArray[np.bool_], before: int) -> None:
    """Random signs as directions, for some of the vectors; the same for a slot whenever it is added."""
    r = (lines.shape[2] - 2) // 2
    for at in range(before, lines.shape[0]):
        for i in range(r):
            sign = 1.0 - 2.0 * ((scramble((at * MOST_DIRECTIONS + i) & LARGEST_ID) >> 7) & 1)
            for k in range(lines.shape[1]):
                if which[k]:
                    lines[at, k, F + i] = sign


@kernel
def meet(turns: Array, slots: NDArray[np.uintp], n: int, rows: float) -> bool:
    """Count the slots of a learned row, the last of so many; returns whether a turn is due."""
    for e in range(n):
        turns[MET] = max(turns[MET], slots[e] + 1.0)
    if rows < turns[NEXT]:
        return False
    turns[NEXT] = rows + max(FIRST_TURN, rows // 2)
    return True


@kernel
def turn(sketch: Sketch) -> None:
    """New directions from the curvature of the rows so far. Slots that no learned row has met play no part."""
    lines, shift, r = sketch.lines, sketch.shift, sketch.shift.shape[1]
    S = int(sketch.turns[MET])
    found, old, L = np.empty((r, r)), np.empty((r, r)), np.empty(r)
    for k in range(lines.shape[1]):
        found[:], old[:] = 0.0, 0.0
        for at in range(S):
            line = lines[at, k]
            v = line[V]
            for i in range(r):
                line[U] += v * line[F + i] * shift[k, i]
                L[i] = line[F + i] * sketch.strength[k, i] + line[F + r + i]
            for i in range(r):
                for j in range(i + 1):
                    old[i, j] += v * line[F + i] * line[F + j]
                    found[i, j] += v * L[i] * L[j]
        shift[k] = 0.0
        new, strength = directions(old, found)
        if not strength.any():
            continue  # no curvature: the random directions stay
        for at in range(S):
            line = lines[at, k]
            for i in range(r):
                L[i] = line[F + i] * sketch.strength[k, i] + line[F + r + i]
                line[F + i] = line[F + r + i] = 0.0
            for j in range(r):
                for i in range(r):
                    line[F + i] += L[j] * new[j, i]
        lines[S:, k, F:] = 0.0  # as columns that are added later have it
        copy_line(strength, sketch.strength[k])
        copy_lines(np.diag(1.0 / (1.0 + strength)), sketch.inverse[k])


@kernel
def directions(old: Array, found: Array) -> tuple[Array, Array]:
    """The matrix that takes L to F, and the strengths, from the lower halves of F^T V F and L^T V L."""
    r = old.shape[0]
    new, strength = np.zeros((r, r)), np.zeros(r)
    for i in range(r):
        for j in range(i):
            old[j, i], found[j, i] = old[i, j], found[i, j]
    if not (np.isfinite(old).all() and np.isfinite(found).all() and old.any() and found.any()):
        return new, strength
    root = inverse_root(old)
    sizes, vectors = np.linalg.eigh(root @ found @ root)
    for i in range(r):
        if sizes[i] > LEAST * sizes[r - 1]:
            strength[i] = math.sqrt(sizes[i])
            copy_line(root @ np.ascontiguousarray(vectors[:, i]) / strength[i], new[:, i])
    return new, strength


@kernel
def inverse_root(A: Array) -> Array:
    """A^(-1/2) of a positive semidefinite matrix, 0 in directions that rounding hides."""
    sizes, vectors = np.linalg.eigh(A)
    scale = np.zeros(sizes.size)
    for i in range(sizes.size):
        if sizes[i] > LEAST * sizes[sizes.size - 1]:
            scale[i] = 1.0 / math.sqrt(sizes[i])
    found: Array = np.ascontiguousarray(vectors * scale) @ np.ascontiguousarray(vectors.T)
    return found
