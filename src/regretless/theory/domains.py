r"""Sets of weights: the comparators of a learner, and the sets onto which first-order learners project.

====================  ==========================================  ==============================================
set                   elements                                    where it appears
====================  ==========================================  ==============================================
`Ball(radius)`        \|theta\|_2 <= radius                       projected gradient descent (ogd-notes), AIOLI
`RowBall(radius)`     each row's \|.\|_2 <= radius                FOLKLORE
`Simplex(size)`       theta >= 0, sum = size                      mirror descent with averaging (mda)
`SubSimplex(size)`    theta >= 0, sum <= size                     mda, section 6.2
`Octahedron(size)`    \|theta\|_1 <= size                         mda, section 6.2
`Box(radius)`         \|theta\|_inf <= radius                     the alternating losses of ogd-notes
`WholeSpace()`        all                                         Vovk-Azoury-Warmuth, the Perceptron
`Growing(set, ...)`   those of a set whose size grows with t      mda, Remark 3
====================  ==========================================  ==============================================

Every set has four methods. ``project(theta)`` returns the nearest element in Euclidean norm, computed exactly (no
iteration) and without overflow for any finite theta. ``minimise_linear(g)`` returns an element that minimises g.theta;
ties go to the first coordinate. ``contains(theta, tolerance)`` allows each constraint to be violated by `tolerance`
times the size of the set. ``diameter(shape)`` is the largest distance between two elements of that shape: a number of
coordinates, or (rows, columns). Only `RowBall` depends on the shape of theta; it treats a one-dimensional theta as a
single row. All methods return new arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from regretless.core.files.stored import Recipe
from regretless.core.types import Array

Shape = int | tuple[int, ...]


@dataclass(frozen=True)
class Ball(Recipe):
    """All weights of Euclidean (Frobenius) norm at most `radius`.

    >>> ball = Ball(1.0)
    >>> ball.project([3.0, 4.0])
    array([0.6, 0.8])
    >>> ball.minimise_linear([3.0, 4.0])
    array([-0.6, -0.8])
    >>> ball.diameter(2), ball.contains([1.0, 1.0])
    (2.0, False)
    """

    radius: float

    def __post_init__(self) -> None:
        _require_size(self, "radius", self.radius)

    def largest_norm(self, n_rows: int) -> float:
        """The largest Frobenius norm of an element with `n_rows` rows."""
        return self.radius

    def project(self, theta: Any) -> Array:
        """The nearest element."""
        theta = _finite(theta)
        return _rows_into_ball(theta.reshape(1, -1), self.radius).reshape(theta.shape)

    def contains(self, theta: Any, tolerance: float = 1e-9) -> bool:
        """Whether theta is an element, up to `tolerance * radius`."""
        scaled = _scaled(theta, self.radius)
        return bool(np.all(_norms(scaled.reshape(1, -1)) <= 1 + tolerance))

    def diameter(self, shape: Shape) -> float:
        """The largest distance between two elements."""
        return 2 * self.radius

    def minimise_linear(self, g: Any) -> Array:
        """An element that minimises g.theta."""
        g = _finite(g)
        return -self.radius * _directions(g.reshape(1, -1)).reshape(g.shape)


@dataclass(frozen=True)
class RowBall(Recipe):
    """All weight matrices whose rows (one per class) each have Euclidean norm at most `radius`.

    >>> RowBall(1.0).project([[3.0, 4.0], [0.0, 0.5]])
    array([[0.6, 0.8],
           [0. , 0.5]])
    >>> RowBall(1.0).diameter((4, 2))
    4.0
    """

    radius: float

    def __post_init__(self) -> None:
        _require_size(self, "radius", self.radius)

    def largest_norm(self, n_rows: int) -> float:
        """The largest Frobenius norm of an element with `n_rows` rows."""
        return math.sqrt(n_rows) * self.radius

    def project(self, theta: Any) -> Array:
        """The nearest element, row by row."""
        theta = _finite(theta)
        return _rows_into_ball(np.atleast_2d(theta), self.radius).reshape(theta.shape)

    def contains(self, theta: Any, tolerance: float = 1e-9) -> bool:
        """Whether theta is an element, up to `tolerance * radius` in each row."""
        scaled = np.atleast_2d(_scaled(theta, self.radius))
        return bool(np.all(_norms(scaled) <= 1 + tolerance))

    def diameter(self, shape: Shape) -> float:
        """The largest distance between two elements of that shape, (rows, columns); a single number means one row."""
        n_rows = shape[0] if isinstance(shape, tuple) and len(shape) > 1 else 1
        return 2 * math.sqrt(n_rows) * self.radius

    def minimise_linear(self, g: Any) -> Array:
        """An element that minimises g.theta, row by row."""
        g = _finite(g)
        return -self.radius * _directions(np.atleast_2d(g)).reshape(g.shape)


@dataclass(frozen=True)
class WholeSpace(Recipe):
    """All weights.

    >>> WholeSpace().project([3.0, 4.0]), WholeSpace().diameter(2)
    (array([3., 4.]), inf)
    """

    def largest_norm(self, n_rows: int) -> float:
        """Infinite."""
        return math.inf

    def project(self, theta: Any) -> Array:
        """A copy of theta."""
        return _finite(theta).copy()

    def contains(self, theta: Any, tolerance: float = 1e-9) -> bool:
        """Whether theta is finite."""
        return bool(np.isfinite(np.asarray(theta, dtype=np.float64)).all())

    def diameter(self, shape: Shape) -> float:
        """Infinite."""
        return math.inf

    def minimise_linear(self, g: Any) -> Array:
        """Raises ValueError: a linear function has no minimum on the whole space."""
        raise ValueError("A linear function has no minimum over WholeSpace(): choose a bounded set, such as Ball.")


@dataclass(frozen=True)
class Simplex(Recipe):
    """All non-negative weights that sum to `size`.

    >>> simplex = Simplex(1.0)
    >>> simplex.project([0.75, 0.75, -5.0])
    array([0.5, 0.5, 0. ])
    >>> simplex.minimise_linear([3.0, 1.0, 2.0])
    array([0., 1., 0.])
    >>> round(simplex.diameter(3), 4), simplex.contains([0.5, 0.6, 0.0])
    (1.4142, False)
    """

    size: float

    def __post_init__(self) -> None:
        _require_size(self, "size", self.size)

    def largest_norm(self, n_rows: int) -> float:
        """The largest Euclidean norm of an element, attained at a vertex."""
        return self.size

    def project(self, theta: Any) -> Array:
        """The nearest element."""
        return _onto_simplex(_finite(theta), self.size)

    def contains(self, theta: Any, tolerance: float = 1e-9) -> bool:
        """Whether theta is an element, up to `tolerance * size` in each weight and in the sum."""
        scaled = _scaled(theta, self.size)
        return bool(scaled.min() >= -tolerance and abs(_sum(scaled) - 1) <= tolerance)

    def diameter(self, shape: Shape) -> float:
        """The largest distance between two elements, attained at two vertices."""
        return math.sqrt(2) * self.size if _count(shape) > 1 else 0.0

    def minimise_linear(self, g: Any) -> Array:
        """A vertex that minimises g.theta."""
        g = _finite(g)
        return _vertex(g, int(g.argmin()), self.size)


@dataclass(frozen=True)
class SubSimplex(Recipe):
    """All non-negative weights that sum to at most `size`.

    >>> SubSimplex(1.0).project([0.25, -1.0]), SubSimplex(1.0).project([2.0, 2.0])
    (array([0.25, 0.  ]), array([0.5, 0.5]))
    >>> SubSimplex(1.0).minimise_linear([1.0, 2.0])
    array([0., 0.])
    """

    size: float

    def __post_init__(self) -> None:
        _require_size(self, "size", self.size)

    def largest_norm(self, n_rows: int) -> float:
        """The largest Euclidean norm of an element, attained at a vertex."""
        return self.size

    def project(self, theta: Any) -> Array:
        """The nearest element: the positive part, or if its sum is too large, the projection onto the simplex."""
        theta = _finite(theta)
        positive = np.maximum(theta, 0.0)
        return positive if _sum(positive) <= self.size else _onto_simplex(theta, self.size)

    def contains(self, theta: Any, tolerance: float = 1e-9) -> bool:
        """Whether theta is an element, up to `tolerance * size` in each weight and in the sum."""
        scaled = _scaled(theta, self.size)
        return bool(scaled.min() >= -tolerance and _sum(scaled) <= 1 + tolerance)

    def diameter(self, shape: Shape) -> float:
        """The largest distance between two elements, attained at two vertices (one coordinate: at 0 and a vertex)."""
        return math.sqrt(2) * self.size if _count(shape) > 1 else self.size

    def minimise_linear(self, g: Any) -> Array:
        """A vertex that minimises g.theta; 0 if no entry of g is negative."""
        g = _finite(g)
        j = int(g.argmin())
        return _vertex(g, j, self.size if g.flat[j] < 0 else 0.0)


@dataclass(frozen=True)
class Octahedron(Recipe):
    """All weights whose absolute values sum to at most `size`.

    >>> Octahedron(1.0).project([-2.0, 1.5])
    array([-0.75,  0.25])
    >>> Octahedron(1.0).minimise_linear([1.0, -2.0])
    array([0., 1.])
    """

    size: float

    def __post_init__(self) -> None:
        _require_size(self, "size", self.size)

    def largest_norm(self, n_rows: int) -> float:
        """The largest Euclidean norm of an element, attained at a vertex."""
        return self.size

    def project(self, theta: Any) -> Array:
        """The nearest element, in the orthant of theta, where the set is a `SubSimplex`."""
        theta = _finite(theta)
        return np.copysign(SubSimplex(self.size).project(np.abs(theta)), theta)

    def contains(self, theta: Any, tolerance: float = 1e-9) -> bool:
        """Whether theta is an element, up to `tolerance * size`."""
        return bool(_sum(np.abs(_scaled(theta, self.size))) <= 1 + tolerance)

    def diameter(self, shape: Shape) -> float:
        """The largest distance between two elements, attained at two opposite vertices."""
        return 2 * self.size

    def minimise_linear(self, g: Any) -> Array:
        """A vertex that minimises g.theta (0 for g = 0)."""
        g = _finite(g)
        j = int(np.abs(g).argmax())
        return _vertex(g, j, -self.size * float(np.sign(g.flat[j])))


@dataclass(frozen=True)
class Box(Recipe):
    """All weights of absolute value at most `radius`, coordinate by coordinate.

    >>> Box(1.0).project([-2.0, 0.5]), Box(1.0).minimise_linear([3.0, -0.1])
    (array([-1. ,  0.5]), array([-1.,  1.]))
    >>> Box(1.0).diameter(4), Box(1.0).diameter((2, 8))
    (4.0, 8.0)
    """

    radius: float

    def __post_init__(self) -> None:
        _require_size(self, "radius", self.radius)

    def largest_norm(self, n_rows: int) -> float:
        """Infinite: the norm grows with the number of columns, which is unknown here. See `diameter`."""
        return math.inf

    def project(self, theta: Any) -> Array:
        """The nearest element."""
        return np.clip(_finite(theta), -self.radius, self.radius)

    def contains(self, theta: Any, tolerance: float = 1e-9) -> bool:
        """Whether theta is an element, up to `tolerance * radius` in each coordinate."""
        return bool(np.all(np.abs(_scaled(theta, self.radius)) <= 1 + tolerance))

    def diameter(self, shape: Shape) -> float:
        """The largest distance between two elements, attained at two opposite vertices."""
        return 2 * math.sqrt(_count(shape)) * self.radius

    def minimise_linear(self, g: Any) -> Array:
        """An element that minimises g.theta (0 where g is 0)."""
        return -self.radius * np.sign(_finite(g))


Domain = Ball | RowBall | WholeSpace | Simplex | SubSimplex | Octahedron | Box
Sized = Ball | Simplex | SubSimplex | Octahedron | Box


@dataclass(frozen=True)
class Growing(Recipe):
    """A set whose size grows with the rows: lambda depends on t, as Remark 3 of `mda` proposes.

    After t rows the size is that of `domain` times `growth(t)`. `growth` is a function of t, or an array with its
    values for t = 0, 1, 2, ...; it is positive and never falls. Model files can store arrays, not functions.

    >>> Growing(Ball(1.0), lambda t: 1 + t**0.5).at(4)
    Ball(radius=3.0)
    """

    domain: Sized
    growth: Callable[[int], float] | tuple[float, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Sized):
            raise ValueError(f"Growing({self.domain!r}): only a Ball, Simplex, SubSimplex, Octahedron or Box can grow.")
        if not callable(self.growth):
            factors = np.asarray(self.growth, dtype=np.float64)
            if factors.ndim != 1 or factors.size == 0:
                raise ValueError(f"Growing(growth={self.growth!r}): give a function of t, or an array of numbers.")
            object.__setattr__(self, "growth", tuple(factors.tolist()))
            self.sizes(factors.size)

    def sizes(self, n: int) -> Array:
        """The sizes after 0, 1, ..., n - 1 rows."""
        if callable(self.growth):
            factors = [self.growth(t) for t in range(n)]
        elif n <= len(self.growth):
            factors = list(self.growth[:n])
        else:
            raise ValueError(
                f"Growing: growth is given up to t = {len(self.growth) - 1}, and t = {n - 1} is needed: pass a longer "
                "array, or a function of t."
            )
        size: Array = np.asarray(factors, dtype=np.float64) * _size_of(self.domain)
        wrong = ~((size > 0) & np.isfinite(size))
        wrong[1:] |= np.diff(size) < 0
        if wrong.any():
            t = int(wrong.argmax())
            raise ValueError(
                f"Growing: growth at t = {t} is {factors[t]!r}; it must be positive, finite and never fall."
            )
        return size

    def at(self, t: int) -> Sized:
        """The set after t rows."""
        factor = self.growth(t) if callable(self.growth) else self.growth[t]
        return type(self.domain)(_size_of(self.domain) * float(factor))


def _size_of(domain: Sized) -> float:
    return float(domain.radius if isinstance(domain, Ball | Box) else domain.size)


class Competition(NamedTuple):
    """The problem that a learner competes on: the best element of `domain` in hindsight, under `loss`.

    `loss` is a name in `regretless.losses`. For "logistic" and the other two-class losses, elements are the weights of
    the margin of the second class; for "softmax" they have one row per class. For every row of the stream,
    `regularization` times the squared norm is added to the loss.

    >>> Competition("logistic", Ball(2.0)).domain
    Ball(radius=2.0)
    """

    loss: str
    domain: Domain
    regularization: float = 0.0


def _require_size(domain: object, name: str, value: Any) -> None:
    """Refuse a value that is not a finite number > 0."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and value > 0):
        raise ValueError(f"{type(domain).__name__}({name}={value!r}): {name} must be a finite number > 0.")


def _finite(theta: Any) -> Array:
    """Theta as float64, without NaN or infinity, which have no nearest point."""
    array: Array = np.asarray(theta, dtype=np.float64)
    if array.size == 0:
        raise ValueError("theta is empty: a set of weights needs at least one coordinate.")
    finite = np.isfinite(array)
    if not finite.all():
        j = int(np.argmin(finite))
        raise ValueError(f"entry {j} is {array.flat[j]}: weights and gradients must be finite.")
    return array


def _scaled(theta: Any, size: float) -> Array:
    """Theta in units of the set's size. Overflow gives infinity and NaN stays NaN; neither is in any set."""
    with np.errstate(over="ignore"):
        return np.asarray(theta, dtype=np.float64) / size


def _sum(theta: Array) -> float:
    """The sum; infinite or NaN if it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(theta.sum())


def _norms(rows: Array) -> Array:
    """The norm of each row; infinite if its square overflows."""
    with np.errstate(over="ignore"):
        norms: Array = np.linalg.norm(rows, axis=1)
    return norms


def _count(shape: Shape) -> int:
    return shape if isinstance(shape, int) else math.prod(shape)


def _vertex(g: Array, j: int, value: float) -> Array:
    vertex = np.zeros_like(g)
    vertex.flat[j] = value
    return vertex


def _directions(rows: Array) -> Array:
    """Each row divided by its norm, and 0 for 0. Squares are taken after scaling the largest entry to 1."""
    unit = rows / _or_one(np.abs(rows).max(axis=1, keepdims=True))
    return unit / _or_one(np.linalg.norm(unit, axis=1, keepdims=True))


def _or_one(positive: Array) -> Array:
    return np.where(positive > 0, positive, 1.0)


def _rows_into_ball(rows: Array, radius: float) -> Array:
    """Each row unchanged if its norm is at most `radius`, else scaled down to it."""
    outside = _norms(_scaled(rows, radius)) > 1
    inside = rows.copy()
    inside[outside] = radius * _directions(rows[outside])
    return inside


def _onto_simplex(theta: Array, size: float) -> Array:
    """The nearest point of the simplex is (theta - tau)_+ for the tau that makes it sum to `size`.

    Computed in units of size and with the largest entry shifted to 0, which does not change the projection. Then
    -1 <= tau < 0, entries below -1 can be replaced by -1, and nothing overflows or cancels. For v sorted in descending
    order, sum_i (v_i - tau)_+ = 1 is at least v_1 + ... + v_j - j tau for every j, with equality for j = the number of
    positive weights, so tau is the maximum of (v_1 + ... + v_j - 1)/j.
    """
    with np.errstate(over="ignore"):
        v = np.maximum((theta - theta.max()) / size, -1.0)
    down = np.sort(v, axis=None)[::-1]
    tau = ((np.cumsum(down) - 1) / np.arange(1, v.size + 1)).max()
    active = v[v > tau]
    tau = (active.sum() - 1) / active.size  # again, summed pairwise: a running sum of a million terms loses digits
    return np.maximum(v - tau, 0.0) * size
