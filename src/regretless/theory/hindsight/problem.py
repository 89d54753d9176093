"""Rows, targets, a loss and a set, in the form that the solvers need."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from regretless.core.rows import validate
from regretless.core.rows.compressed import SparseRows
from regretless.core.rows.inputs import as_floats, in_rows
from regretless.core.rows.labels import Labels
from regretless.core.scikit_learn import check_consistent_length
from regretless.core.types import Array
from regretless.theory.domains import Domain, Octahedron, WholeSpace
from regretless.theory.hindsight import dual, gradient, newton
from regretless.theory.hindsight.certificate import Record, Tangents
from regretless.theory.hindsight.design import Design
from regretless.theory.hindsight.pieces import ManyPieces, Pieces, TwoPieces
from regretless.theory.hindsight.smooth import Given, Linear, Margin, Smooth, Softmax, Squared
from regretless.theory.losses import LN2, Custom, Loss
from regretless.theory.losses import loss as named

LARGEST = 1e75  # bound on |x| and |y|: squares of products stay within floating point
MANY = 2000  # weights above which no Hessian is formed
MODERATE = 1e100  # a loss at which the search can start
SAMPLE = 16  # the first solution uses every 16th row
LARGE = 100_000  # rows above which a first solution saves time


@dataclass(frozen=True)
class Game:
    """Rows, targets and weights of a stream, before rows are dropped."""

    X: Any  # (n, d), dense or CSR
    y: Array  # (n,) numbers, or (n, K) label probabilities
    weight: Array
    loss: Loss | Custom
    domain: Domain
    regularization: float

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights of a model."""
        d = self.X.shape[1]
        return (self.y.shape[1], d) if self.loss.kind == "multiclass" else (d,)

    def solve(self, n: int, tol: float, start: Array | None = None, max_iterations: int | None = None) -> Record:
        """The best weights for the first n rows."""
        record = Record(tol)
        some = np.flatnonzero(self.weight[:n] > 0)
        rows = slice(0, n) if some.size == n else some
        X, y, weight = self.X[rows], self.y[rows], self.weight[rows]
        lam, n_classes = self.regularization, self.shape[0] if len(self.shape) == 2 else 0
        origin = self.domain.project(np.zeros(self.shape))
        if some.size == 0:
            record.offer(origin, lam * float((origin * origin).sum()))
            record.bound(record.loss * (1 - 1e-12))
            return record
        if self.loss.name in ("hinge", "multiclass hinge", "absolute"):
            design, pieces = _pieces(X, y, weight, self.loss.name, n_classes)
            if self._many(design):
                limit = gradient.ITERATIONS if max_iterations is None else max_iterations
                target = gradient.Softened(pieces)
                gradient.descend(design, target, self.domain, lam, origin, record, limit)
            else:
                limit = dual.ITERATIONS if max_iterations is None else max_iterations
                dual.solve_pieces(design, pieces, self.domain, lam, record, limit)
            return record
        design = Design(X, n_classes)
        smooth = _smooth(y, weight, self.loss)
        if isinstance(smooth, Linear):
            self._solve_linear(design, smooth, record)
            return record
        start = self._start(n, design, smooth, start if start is not None else origin)
        if self._many(design):
            limit = gradient.ITERATIONS if max_iterations is None else max_iterations
            gradient.descend(design, gradient.Plain(smooth), self.domain, lam, start, record, limit)
            return record
        limit = newton.ITERATIONS if max_iterations is None else max_iterations
        if design.n >= LARGE and max_iterations is None:
            rough = Record(1e-4)
            sample = slice(None, None, SAMPLE)
            some_rows = design.take(sample)
            newton.newton(some_rows, smooth.take(sample, SAMPLE), self.domain, lam, start, rough, limit)
            start = rough.w if smooth.look(design.forecasts(rough.w)).value < MODERATE else start
        newton.newton(design, smooth, self.domain, lam, start, record, limit)
        return record

    def _many(self, design: Design) -> bool:
        """Whether no Hessian is formed: too many weights, or a loss without a second derivative."""
        if isinstance(self.loss, Custom) and self.loss.curvature is None:
            return True
        return design.size * (2 if isinstance(self.domain, Octahedron) else 1) > MANY

    def _start(self, n: int, design: Design, smooth: Smooth, start: Array) -> Array:
        """Weights of moderate loss: the exponential loss overflows at many."""
        if smooth.look(design.forecasts(start)).value < MODERATE:
            return start
        found = replace(self, loss=named("logistic"), regularization=0.0).solve(n, 1e-6).w
        if smooth.look(design.forecasts(found)).value < MODERATE:
            return found
        raise ValueError(
            f"The exponential loss overflows at every starting point in {self.domain}: choose a "
            "smaller set, scale the features down, or use another loss."
        )

    def _solve_linear(self, design: Design, loss: Linear, record: Record) -> None:
        look = loss.look(np.zeros(design.n))
        g, lam = design.pull(look.slopes), self.regularization
        if lam == 0 and isinstance(self.domain, WholeSpace):
            if g.any():
                raise ValueError(
                    "The linear loss has no minimum over WholeSpace(): choose a bounded set, such as Ball, or a "
                    "regularization > 0."
                )
            record.bound(0.0)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            w = -g / (2 * lam)
        if lam > 0 and np.isfinite(w).all():
            w = self.domain.project(w)
        elif g.any():
            w = self.domain.minimise_linear(g)
        else:
            w = self.domain.project(np.zeros(self.shape))
        record.offer(w, float((g * w).sum()) + lam * float((w * w).sum()))
        record.prove(Tangents(0.0, look.slopes, look.uncertainty), design, self.domain, lam)


def game(
    X: Any, y: Any, loss: str | Custom, domain: Domain, regularization: float, sample_weight: Any, classes: Any
) -> Game:
    """The arguments of `best_in_hindsight`, checked."""
    if sparse.issparse(X):
        X = SparseRows.of(sparse.csr_array(X, dtype=np.float64)).to_scipy()
        X = sparse.csr_array(X)
    else:
        X = np.ascontiguousarray(as_floats(X, in_rows(None)))
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}: give an array of rows, at least one, with at least one column.")
    check_consistent_length(X, y)
    weight = validate.weights(sample_weight, X.shape[0])
    if sparse.issparse(X):
        SparseRows.of(X).check(weight, math.inf, LARGEST, None)
    else:
        validate.rows(X, weight, math.inf, LARGEST, None)
    targets: Array
    if loss in LOG or named(loss).kind != "real":
        labels = Labels.of(y, classes)
        targets = labels.distributions(y)
        n_classes = targets.shape[1]
        if loss == "log":
            loss = "logistic" if n_classes == 2 else "softmax"
        if named(loss).kind == "margin" and n_classes != 2:
            raise ValueError(
                f"loss={loss!r} needs two classes; here there are {n_classes}: use 'log', 'softmax' or "
                "'multiclass hinge', or declare two classes with classes=[...]."
            )
    else:
        targets = validate.numbers(y, LARGEST)
    regularization = validate.positive("regularization", regularization, zero=True)
    return Game(X, targets, weight, named(loss), domain, regularization)


LOG = ("log",)


def _smooth(y: Array, weight: Array, loss: Loss | Custom) -> Smooth:
    if isinstance(loss, Custom):
        return Given(loss, y, weight)
    name = loss.name
    if name == "squared":
        return Squared(y, weight)
    if name == "linear":
        return Linear(y, weight)
    sums = y.sum(axis=1)  # 1, up to the tolerance of the check
    if name == "softmax":
        return Softmax(np.ascontiguousarray((y / sums[:, None]).T), weight * sums)
    unit = 1 / LN2 if name == "logit" else 1.0
    return Margin(np.ascontiguousarray((y * (unit * weight)[:, None]).T), name == "exponential")


def _pieces(X: Any, y: Array, weight: Array, name: str, n_classes: int) -> tuple[Design, Pieces]:
    """One row of pieces per row and label that it has."""
    if name == "absolute":
        return Design(X), TwoPieces(y, weight, hinge=False)
    rows, labels = np.nonzero(y > 0)
    if rows.size > y.shape[0]:
        X = X[rows]
    c = weight[rows] * y[rows, labels]
    if n_classes:
        return Design(X, n_classes), ManyPieces(labels, c, n_classes)
    return Design(X), TwoPieces(np.asarray(2.0 * labels - 1.0, dtype=np.float64), c, hinge=True)
