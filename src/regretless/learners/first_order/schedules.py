r"""Schedules of step sizes.

A schedule gives round t = 1, 2, ... a step gamma_t and a temperature beta_t. The lazy scheme adds
:math:`\gamma_t u_t` to the dual point and takes the mirror step with :math:`\beta_t`; the eager scheme steps from the
last weights with the rate :math:`\gamma_t / \beta_t`. Multiplying both by one number changes neither scheme (contrary
to Remark 4 of `mda`).

Users pass the frozen dataclasses; the kernels read their `code` and `number`. Where a step depends on the gradients so
far, `rate` reads them from the learner's tally; AdaGrad, with one step per coordinate, has its own kernel. `Sequence`
has any steps and temperatures: it is a constant step to the kernels, which read this round's number from a `Table`.
They choose between number and table when they are compiled.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import types

from regretless.core.files.stored import Recipe
from regretless.core.kernels.jit import chosen_by_type, inlined_kernel, kernel
from regretless.core.rows.validate import positive
from regretless.core.types import Array
from regretless.learners.first_order.mirrors import Mirror

LARGEST_STEP = 1e150  # its square is a number

CONSTANT, INVERSE_ROOT, INVERSE_TIME, GROWING, HORIZON, OBSERVED_ROOT, ADAGRAD_NORM, ADAGRAD = range(8)
FIRST_ROWS = 64  # of a table, which then doubles


class Table(NamedTuple):
    """The first steps and temperatures of a `Sequence`."""

    steps: Array  # gamma_1, gamma_2, ...
    temperatures: Array  # beta_0, beta_1, ...


@inlined_kernel
def step(code: int, number: float, t: int) -> float:
    """gamma_t, for t = 1, 2, ..."""
    if code == CONSTANT:
        return number
    if code == INVERSE_ROOT:
        return number / math.sqrt(t)
    if code == INVERSE_TIME:
        return 1.0 / (number * t)
    return 1.0


@inlined_kernel
def temperature(code: int, number: float, t: int) -> float:
    """beta_t, for t = 0, 1, 2, ...: the weights of round t + 1 are the mirror step of t gradients with it."""
    if code == GROWING:
        return number * math.sqrt(t + 1.0)
    if code == HORIZON:
        return number
    return 1.0


@inlined_kernel
def rate(code: int, number: float, t: int, largest: float, squares: float) -> float:
    """gamma_t / beta_t: the step of an eager scheme in round t = 1, 2, ...

    `largest` and `squares` are the largest norm and the sum of squared norms of the gradients so far, this round's
    included; while they are 0, or too small to divide by, the rate is 0.
    """
    if code == OBSERVED_ROOT:
        return number / (largest * math.sqrt(t)) if largest > 1e-280 * number else 0.0
    if code == ADAGRAD_NORM:
        return number / math.sqrt(squares) if squares > 0.0 else 0.0
    return step(code, number, t) / temperature(code, number, t)


def step_number(number: float | Table, t: int) -> float:
    """The number of `step`: that of the schedule, or of a table gamma_t."""
    return float(number.steps[int(t) - 1]) if isinstance(number, Table) else number


def rate_number(number: float | Table, t: int) -> float:
    """The number of `rate`: that of the schedule, or of a table gamma_t / beta_t."""
    return float(number.steps[int(t) - 1] / number.temperatures[int(t)]) if isinstance(number, Table) else number


def temperature_of(code: int, number: float | Table, t: int) -> float:
    """beta_t of the schedule, or of a table."""
    return float(number.temperatures[int(t)]) if isinstance(number, Table) else temperature(code, number, t)


@chosen_by_type(step_number)
def _step_number(number: Any, t: Any) -> Callable[..., float]:
    return (lambda number, t: number.steps[int(t) - 1]) if _is_table(number) else (lambda number, t: number)


@chosen_by_type(rate_number)
def _rate_number(number: Any, t: Any) -> Callable[..., float]:
    if _is_table(number):
        return lambda number, t: number.steps[int(t) - 1] / number.temperatures[int(t)]
    return lambda number, t: number


@chosen_by_type(temperature_of)
def _temperature_of(code: Any, number: Any, t: Any) -> Callable[..., float]:
    if _is_table(number):
        return lambda code, number, t: number.temperatures[int(t)]
    return lambda code, number, t: temperature(code, number, t)


def _is_table(number: Any) -> bool:
    return isinstance(number, types.BaseTuple)


@kernel
def adagrad(u: Array, eta: float, squares: Array, steps: Array) -> None:
    """Add u_j^2 to squares[j]; steps[j] = eta / sqrt(squares[j]), or 0 while every u_j has been 0."""
    for j in range(u.size):
        squares[j] += u[j] * u[j]
        steps[j] = eta / math.sqrt(squares[j]) if squares[j] > 0.0 else 0.0


@dataclass(frozen=True)
class Schedule(Recipe, ABC):
    """Base class: `step(t)` and `temperature(t)` from the integer `code` and one `number`."""

    code: ClassVar[int]

    @property
    @abstractmethod
    def number(self) -> Any:
        """The number that the kernels read, or a table with one per row."""

    def step(self, t: int) -> float:
        """gamma_t, for t = 1, 2, ..."""
        return float(step(self.code, self.number, t))

    def temperature(self, t: int) -> float:
        """beta_t, for t = 0, 1, 2, ..."""
        return float(temperature(self.code, self.number, t))


def _require_step(eta: float) -> None:
    if positive("eta", eta) > LARGEST_STEP:
        raise ValueError(f"eta={eta!r} must be at most {LARGEST_STEP:.0e}: squares of larger steps overflow.")


@dataclass(frozen=True)
class ConstantStep(Schedule):
    r"""gamma_t = eta.

    **Guarantee.** From the minimiser of V, lazily or eagerly, for gradients of dual norm at most L: regret against
    any theta of the set after T rounds is at most :math:`(V(\theta) - \min V)/\eta + \eta L^2 T / (2\alpha)`. With T
    known the best eta gives the bound of `KnownHorizon`.

    >>> ConstantStep(0.5).step(100)
    0.5
    """

    eta: float
    code: ClassVar[int] = CONSTANT

    def __post_init__(self) -> None:
        _require_step(self.eta)

    @property
    def number(self) -> float:
        """Eta."""
        return self.eta


@dataclass(frozen=True)
class InverseRootStep(Schedule):
    r"""gamma_t = eta / sqrt(t).

    **Guarantee.** Projected gradient descent (the eager Euclidean scheme) on the l2 ball of radius U with gradients
    of norm at most G: regret after T rounds is at most :math:`2U^2\sqrt{T}/\eta + \eta G^2\sqrt{T}`, which for
    :math:`\eta = \sqrt{2}\,U/G`, see `of_ball`, is :math:`UG\sqrt{8T}` (`ogd-notes`, eq. 9). The proof needs a bounded
    divergence on the set. The entropy's is unbounded: use the lazy scheme and `GrowingTemperature` instead.

    >>> InverseRootStep.of_ball(radius=2.0, gradient=1.0).step(4).__round__(4)
    1.4142
    """

    eta: float
    code: ClassVar[int] = INVERSE_ROOT

    def __post_init__(self) -> None:
        _require_step(self.eta)

    @classmethod
    def of_ball(cls, radius: float, gradient: float) -> InverseRootStep:
        """The eta of the bound, for a ball of `radius` and gradients of norm at most `gradient`."""
        return cls(math.sqrt(2.0) * positive("radius", radius) / positive("gradient", gradient))

    @property
    def number(self) -> float:
        """Eta."""
        return self.eta


@dataclass(frozen=True)
class InverseTimeStep(Schedule):
    r"""gamma_t = 1 / (sigma t).

    **Guarantee.** Gradient descent, with or without projection, on sigma-strongly convex losses with gradients of norm
    at most G at the weights played: regret after T rounds is at most :math:`G^2 (1 + \ln T) / (2\sigma)` (`ogd-notes`).

    >>> InverseTimeStep(sigma=0.5).step(4)
    0.5
    """

    sigma: float
    code: ClassVar[int] = INVERSE_TIME

    def __post_init__(self) -> None:
        positive("sigma", self.sigma)

    @property
    def number(self) -> float:
        """Sigma."""
        return self.sigma


@dataclass(frozen=True)
class GrowingTemperature(Schedule):
    r"""gamma_t = 1, beta_t = beta_0 sqrt(t + 1): eq. (17) of `mda`; no horizon is needed.

    **Guarantee.** The lazy scheme from the minimiser of V, on gradients of dual norm at most L: regret after T rounds
    is at most :math:`(\beta_0 V^* + L^2/(\alpha\beta_0))\sqrt{T+1}`. For :math:`\beta_0 = L/\sqrt{\alpha V^*}`, see
    `of`, this is :math:`2L\sqrt{V^*/\alpha}\sqrt{T+1}`. With the entropy on the simplex :math:`\beta_0` is
    :math:`L/\sqrt{\ln M}`, (18), for every lam, and the bound :math:`2\lambda L\sqrt{\ln M}\sqrt{T+1}`: T times that of
    Theorem 1. (The weights of round T + 1 are not played, so the proof may stop at :math:`\beta_{T-1}`: every T + 1 may
    be read as T.)

    >>> entropy = Mirror("entropy", "simplex", dimension=8, size=3.0)
    >>> round(GrowingTemperature.of(entropy, gradient=1.0).temperature(0), 4)  # 1 / sqrt(ln 8), for every size
    0.6935
    """

    beta: float
    code: ClassVar[int] = GROWING

    def __post_init__(self) -> None:
        positive("beta", self.beta)

    @classmethod
    def of(cls, mirror: Mirror, gradient: float, spread: float | None = None) -> GrowingTemperature:
        """The beta_0 of the bound, for gradients of dual norm at most `gradient` (and V* = `spread`, from a start)."""
        return cls(_best_temperature(mirror, gradient, 1.0, spread))

    @property
    def number(self) -> float:
        """beta_0."""
        return self.beta


@dataclass(frozen=True)
class KnownHorizon(Schedule):
    r"""gamma_t and beta_t constant, for a game of T rounds: eq. (37) of `mda`.

    The text takes :math:`\gamma = 1/\sqrt{T}`, :math:`\beta = L/\sqrt{2\alpha V^*}`. Only their ratio matters, so here
    gamma is 1 and the temperature :math:`\beta\sqrt{T}`.

    **Guarantee.** On gradients of dual norm at most L, regret after T rounds is at most
    :math:`L\sqrt{2 T V^*/\alpha}`, a factor sqrt 2 below `GrowingTemperature`; with the entropy on the simplex
    :math:`\lambda L\sqrt{2 T \ln M}`, T times (38). After t < T rounds it is still at most that.

    >>> entropy = Mirror("entropy", "simplex", dimension=8)
    >>> round(KnownHorizon.of(entropy, gradient=1.0, horizon=100).temperature(7), 4)  # 10 / sqrt(2 ln 8)
    4.9036
    """

    beta: float
    horizon: int
    code: ClassVar[int] = HORIZON

    def __post_init__(self) -> None:
        positive("beta", self.beta)
        positive("horizon", self.horizon)

    @classmethod
    def of(cls, mirror: Mirror, gradient: float, horizon: int, spread: float | None = None) -> KnownHorizon:
        """The beta of the bound, for gradients of dual norm at most `gradient` (and V* = `spread`, from a start)."""
        return cls(_best_temperature(mirror, gradient, 2.0, spread), horizon)

    @property
    def number(self) -> float:
        """Beta sqrt(T)."""
        return self.beta * math.sqrt(self.horizon)


def _best_temperature(mirror: Mirror, gradient: float, factor: float, spread: float | None) -> float:
    positive("gradient", gradient)
    V = mirror.spread if spread is None else spread
    if math.isinf(V):
        raise ValueError(
            f"proxy={mirror.proxy!r} on domain={mirror.domain!r} is unbounded, so no temperature is best: give beta."
        )
    if V == 0.0:  # one weight on the simplex: there is nothing to choose
        return gradient
    return gradient / math.sqrt(factor * mirror.strong_convexity * V)


@dataclass(frozen=True)
class ObservedRootStep(Schedule):
    r"""gamma_t = eta / (G_t sqrt(t)), G_t the largest gradient so far, this round's included.

    **Guarantee.** That of `InverseRootStep` with :math:`\eta = \sqrt2\,U`, for G the largest gradient observed:
    the steps never grow, and up to round t no gradient is larger than :math:`G_t`. No bound is needed in advance.

    >>> ObservedRootStep.of_ball(radius=2.0).eta.__round__(4)
    2.8284
    """

    eta: float
    code: ClassVar[int] = OBSERVED_ROOT

    def __post_init__(self) -> None:
        positive("eta", self.eta)

    @classmethod
    def of_ball(cls, radius: float) -> ObservedRootStep:
        """The eta of the bound, for a ball of `radius`."""
        return cls(math.sqrt(2.0) * positive("radius", radius))

    @property
    def number(self) -> float:
        """Eta."""
        return self.eta


@dataclass(frozen=True)
class AdaGradNorm(Schedule):
    r"""Step eta over the root of the sum of all squared gradients so far, this round's included.

    **Guarantee.** Projected gradient descent on a set of l2 diameter D: regret is at most
    :math:`(D^2/(2\eta) + \eta) \sqrt{\sum_t |u_t|^2}`, which for :math:`\eta = D/\sqrt{2}`, see `of_diameter`, is
    :math:`\sqrt{2}\,D \sqrt{\sum_t |u_t|^2}`: sqrt 2 times what the best constant step in hindsight would give from the
    worst start. No bound on the gradients is needed.

    >>> AdaGradNorm.of_diameter(2.0).eta.__round__(4)
    1.4142
    """

    eta: float
    code: ClassVar[int] = ADAGRAD_NORM

    def __post_init__(self) -> None:
        positive("eta", self.eta)

    @classmethod
    def of_diameter(cls, diameter: float) -> AdaGradNorm:
        """The eta of the bound."""
        return cls(positive("diameter", diameter) / math.sqrt(2.0))

    @property
    def number(self) -> float:
        """Eta."""
        return self.eta


@dataclass(frozen=True)
class AdaGrad(Schedule):
    r"""`AdaGradNorm` for each coordinate separately (Duchi, Hazan and Singer 2011, the diagonal version).

    **Guarantee.** On a box whose sides are at most D long, with each coordinate clipped separately: regret is at most
    :math:`\sqrt{2}\,D \sum_j \sqrt{\sum_t u_{t,j}^2}` for :math:`\eta = D/\sqrt{2}`, see `of_diameter`. On other sets
    the projection would have to use the norm of the steps. The kernel is `adagrad`.

    >>> AdaGrad.of_diameter(2.0).eta.__round__(4)
    1.4142
    """

    eta: float
    code: ClassVar[int] = ADAGRAD

    def __post_init__(self) -> None:
        positive("eta", self.eta)

    @classmethod
    def of_diameter(cls, diameter: float) -> AdaGrad:
        """The eta of the bound, for sides of at most `diameter`."""
        return cls(positive("diameter", diameter) / math.sqrt(2.0))

    @property
    def number(self) -> float:
        """Eta."""
        return self.eta


@dataclass(frozen=True)
class Sequence(Schedule):
    r"""Any steps and temperatures: eqs. (11), (25) and (26) of `mda`.

    Each is a function of t, or an array: gamma_1, gamma_2, ... and beta_0, beta_1, .... All must be positive. An array
    must be as long as the stream, and one longer for temperatures and for the steps of an average. Model files can
    store arrays, not functions.

    **Guarantee.** The lazy scheme with non-decreasing temperatures, on gradients of dual norm at most L: with
    averaging, excess risk at most :math:`\bigl(\beta_t V^* + \frac{L^2}{2\alpha} \sum_{i \le t}
    \gamma_i^2/\beta_{i-1}\bigr) / \sum_{i \le t} \gamma_i`, (26); without it and with constant steps, regret at most
    t times that. The eager Euclidean scheme on a set of diameter D with non-increasing :math:`\eta_t =
    \gamma_t/\beta_t`: regret at most :math:`D^2/(2\eta_n) + \frac{L^2}{2} \sum_t \eta_t` (`ogd-notes`, eq. 8). Other
    sequences run, and have a certificate only.

    >>> Sequence(steps=lambda t: t**-0.25).step(16)
    0.5
    >>> Sequence(temperatures=[1.0, 1.5, 2.0]).temperature(2)
    2.0
    """

    steps: Callable[[int], float] | tuple[float, ...] | None = None
    temperatures: Callable[[int], float] | tuple[float, ...] | None = None
    code: ClassVar[int] = CONSTANT

    def __post_init__(self) -> None:
        if self.steps is None and self.temperatures is None:
            raise ValueError("Sequence(): give steps, temperatures, or both.")
        for name in ("steps", "temperatures"):
            given = getattr(self, name)
            if given is None or callable(given):
                continue
            try:
                numbers = np.asarray(given, dtype=np.float64)
            except (TypeError, ValueError):
                numbers = np.empty(0)
            if numbers.ndim != 1 or numbers.size == 0:
                raise ValueError(f"Sequence({name}={given!r}): give a function of t, or an array of numbers.")
            first = 1 if name == "steps" else 0
            for t, number in enumerate(numbers.tolist(), first):
                _positive_at(name, t, number)
            object.__setattr__(self, name, tuple(numbers.tolist()))

    @property
    def number(self) -> Table:
        """The table, as long as the arrays, or for the first rounds."""
        lengths = [len(each) for each in (self.steps, self.temperatures) if isinstance(each, tuple)]
        return self.table(min(lengths, default=FIRST_ROWS))

    def table(self, n: int) -> Table:
        """gamma_1..gamma_n, and beta_0..beta_n as far as they are given."""
        return Table(self._numbers("steps", 1, n), self._numbers("temperatures", 0, n))

    def _numbers(self, name: str, first: int, last: int) -> Array:
        given = getattr(self, name)
        if given is None:
            return np.ones(last - first + 1)
        if isinstance(given, tuple):
            return np.array(given[: last - first + 1])
        return np.array([_positive_at(name, t, given(t)) for t in range(first, last + 1)])

    def rates(self, n: int) -> Array:
        """gamma_t / beta_t for t = 1..n: the steps of the eager scheme."""
        table = self.covering(self.table(n), n)
        return table.steps[:n] / table.temperatures[1 : n + 1]

    def covering(self, table: Table, n: int, ahead: int = 0) -> Table:
        """A table with gamma_1..gamma_(n + ahead) and beta_0..beta_n, twice as long where the old one was too short."""
        if min(table.steps.size, table.temperatures.size - 1) < n + ahead:
            table = self.table(max(n + ahead, 2 * FIRST_ROWS, 2 * table.steps.size))
        for name, last, needed in (
            ("steps", table.steps.size, n + ahead),
            ("temperatures", table.temperatures.size - 1, n),
        ):
            if last < needed:
                raise ValueError(
                    f"Sequence: {name} is given up to t = {last}, and t = {needed} is needed: pass a longer array, or "
                    "a function of t. These rows were not learned."
                )
        return table

    def step(self, t: int) -> float:
        """gamma_t, for t = 1, 2, ..."""
        return self._at("steps", t, 1)

    def temperature(self, t: int) -> float:
        """beta_t, for t = 0, 1, 2, ..."""
        return self._at("temperatures", t, 0)

    def _at(self, name: str, t: int, first: int) -> float:
        given = getattr(self, name)
        if given is None:
            return 1.0
        return _positive_at(name, t, given(t) if callable(given) else given[t - first])


def _positive_at(name: str, t: int, number: Any) -> float:
    """The number of round t, if it is positive and within the range of a step."""
    try:
        found = float(number)
    except (TypeError, ValueError):
        found = math.nan
    if not 0.0 < found <= LARGEST_STEP:
        raise ValueError(
            f"Sequence: {name} at t = {t} is {number!r}; it must be a number > 0, at most {LARGEST_STEP:.0e}."
        )
    return found
