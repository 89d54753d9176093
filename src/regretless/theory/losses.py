r"""The losses of the first-order learners: values, subgradients, and the constants in the theorems.

==================  ==========  ==================================================  ===================
name                kind        loss                                                range of size C
==================  ==========  ==================================================  ===================
"logistic"          margin      ln(1 + e^-u)                                        \|u\| <= C
"hinge"             margin      (1 - u)_+                                           \|u\| <= C
"exponential"       margin      e^-u, for \|u\| <= 700                              \|u\| <= C
"logit"             margin      log2(1 + e^-u), as in mda                           \|u\| <= C
"squared"           real        (z - y)^2                                           \|z - y\| <= C
"absolute"          real        \|z - y\|                                           \|z - y\| <= C
"linear"            real        y z: the target is the slope                        \|y\| <= C
"softmax"           multiclass  ln sum_j e^(z_j) - z_k                              all \|z_j\| <= C
"multiclass hinge"  multiclass  max over j != k of (1 + z_j - z_k)_+                all \|z_j\| <= C
==================  ==========  ==================================================  ===================

A margin is u = y z with y = +1 or -1 and z the forecast; k is the true class among K logits z.

The kernels select a loss by its integer code. They stay within floating point for every \|z\| up to 1e6, except for the
exponential loss: below u = -700 it counts as infinite (which keeps it convex), and its constants refuse C > 700.

`Custom` is a loss of your own, from its value and its subgradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from regretless.core.files.stored import ByName
from regretless.core.kernels.callbacks import Callback
from regretless.core.kernels.jit import kernel
from regretless.core.numbers.links import sigmoid, softmax
from regretless.core.types import Array

LOGISTIC, HINGE, EXPONENTIAL, LOGIT, SQUARED, ABSOLUTE, LINEAR, SOFTMAX, MULTICLASS_HINGE = range(9)
LARGEST_EXPONENT = 700.0
LN2 = math.log(2.0)


@kernel
def _log_one_plus_exp(a: float) -> float:
    """ln(1 + e^a); only a non-positive number is exponentiated."""
    return max(a, 0.0) + math.log1p(math.exp(-abs(a)))


@kernel
def value(code: int, z: float, y: float) -> float:
    """The loss of the forecast z under the target y (for margin losses y = +1 or -1).

    >>> value(HINGE, 0.25, 1.0), value(SQUARED, 3.0, 1.0)
    (0.75, 4.0)
    """
    if code == LOGISTIC:
        return _log_one_plus_exp(-y * z)
    if code == HINGE:
        return max(1.0 - y * z, 0.0)
    if code == EXPONENTIAL:
        return math.exp(-y * z) if -y * z <= LARGEST_EXPONENT else math.inf
    if code == LOGIT:
        return _log_one_plus_exp(-y * z) / LN2
    if code == SQUARED:
        return (z - y) * (z - y)
    if code == ABSOLUTE:
        return abs(z - y)
    if code == LINEAR:
        return y * z
    return math.nan  # a multiclass code: makes the mistake visible


@kernel
def slope(code: int, z: float, y: float) -> float:
    """A subgradient of the loss in z. At a kink it is 0.

    >>> slope(HINGE, 0.25, -1.0), slope(HINGE, 1.0, 1.0), slope(SQUARED, 3.0, 1.0)
    (1.0, 0.0, 4.0)
    """
    if code == LOGISTIC:
        return -y * sigmoid(-y * z)
    if code == HINGE:
        return -y if y * z < 1.0 else 0.0
    if code == EXPONENTIAL:
        return -y * math.exp(-y * z) if -y * z <= LARGEST_EXPONENT else -y * math.inf
    if code == LOGIT:
        return -y * sigmoid(-y * z) / LN2
    if code == SQUARED:
        return 2.0 * (z - y)
    if code == ABSOLUTE:
        return 1.0 if z > y else (-1.0 if z < y else 0.0)
    if code == LINEAR:
        return y
    return math.nan


@kernel
def value_and_slope(code: int, z: float, y: float) -> tuple[float, float]:
    """`value` and `slope`: for the logistic loss with one exponential, and no branch that depends on the forecast.

    >>> value_and_slope(HINGE, 0.25, 1.0)
    (0.75, -1.0)
    """
    if code == LOGISTIC:
        a = -y * z
        e = math.exp(-abs(a))
        likelier = 1.0 / (1.0 + e)
        other = e * likelier
        return max(a, 0.0) + math.log1p(e), -y * (likelier if a >= 0.0 else other)
    return value(code, z, y), slope(code, z, y)


@kernel
def rival(z: Array, but: int) -> int:
    """The first index of the largest entry, other than `but`; -1 if there is none."""
    best = -1
    for j in range(z.shape[0]):
        if j != but and (best < 0 or z[j] > z[best]):
            best = j
    return best


@kernel
def value_multiclass(code: int, z: Array, k: int) -> float:
    """The loss of the logits z if the class is k.

    >>> import numpy as np
    >>> value_multiclass(MULTICLASS_HINGE, np.array([2.0, 0.5, 1.5]), 0)
    0.5
    >>> round(value_multiclass(SOFTMAX, np.zeros(4), 2), 6)  # ln 4
    1.386294
    """
    if code == SOFTMAX:
        top = rival(z, -1)
        rest = 0.0  # without the leading class, whose e^0 = 1 would absorb small losses
        for j in range(z.shape[0]):
            if j != top:
                rest += math.exp(z[j] - z[top])
        return (z[top] - z[k]) + math.log1p(rest)
    if code == MULTICLASS_HINGE:
        j = rival(z, k)
        return max(1.0 + (z[j] - z[k]), 0.0) if j >= 0 else 0.0
    return math.nan


@kernel
def slope_multiclass(code: int, z: Array, k: int, out: Array) -> None:
    """Write a subgradient in z to `out`. Among tied rivals the first counts, and at the hinge's kink it is 0.

    >>> import numpy as np
    >>> out = np.empty(3)
    >>> slope_multiclass(MULTICLASS_HINGE, np.array([2.0, 0.5, 1.5]), 0, out)
    >>> out
    array([-1.,  0.,  1.])
    """
    K = z.shape[0]
    if code == SOFTMAX:
        softmax(z, out)
        others = 0.0
        for j in range(K):
            if j != k:
                others += out[j]
        out[k] = -others  # p_k - 1 without the cancellation
    elif code == MULTICLASS_HINGE:
        for j in range(K):
            out[j] = 0.0
        j = rival(z, k)
        if j >= 0 and 1.0 + (z[j] - z[k]) > 0.0:
            out[j] = 1.0
            out[k] = -1.0
    else:
        for j in range(K):
            out[j] = math.nan


@dataclass(frozen=True)
class Loss:
    """A loss, its integer code for the kernels, and its constants on a range of size C (see the table above).

    All constants are those of the loss as a function of the forecast z. For z = w.x, multiply `lipschitz` by the
    largest x|. Exp-concavity is the same in w; strong convexity does not carry over (x x' has rank one).

    >>> logistic = loss("logistic")
    >>> logistic.kind, round(logistic.lipschitz(2.0), 4), round(logistic.exp_concavity(2.0), 4)
    ('margin', 0.8808, 0.1353)
    >>> value(logistic.code, 0.0, 1.0) == math.log(2)
    True
    """

    name: str
    code: int
    kind: Literal["margin", "real", "multiclass"]

    def lipschitz(self, C: float, n_classes: int | None = None) -> float:
        """The largest |slope| on the range (Euclidean norm for logits; the softmax needs `n_classes`).

        >>> loss("squared").lipschitz(3.0), loss("hinge").lipschitz(3.0)
        (6.0, 1.0)
        """
        C = self._range(C)
        if self.code == LOGISTIC:  # |phi'| = 1/(1 + e^u) falls with u: largest at u = -C
            return 1.0 / (1.0 + math.exp(-C))
        if self.code == LOGIT:  # the logistic loss divided by ln 2
            return 1.0 / (1.0 + math.exp(-C)) / LN2
        if self.code == EXPONENTIAL:  # |phi'| = e^-u, largest at u = -C
            return math.exp(C)
        if self.code == SQUARED:  # |2 (z - y)|
            return 2.0 * C
        if self.code == LINEAR:  # |y|
            return C
        if self.code == MULTICLASS_HINGE:  # |e_j - e_k|; at z = 0 the loss is positive, so some slope is nonzero
            return math.sqrt(2.0)
        if self.code == SOFTMAX:
            return _softmax_lipschitz(C, self._classes(n_classes))
        return 1.0  # hinge: -1 at u = 0; absolute: +-1

    def strong_convexity(self, C: float) -> float:
        """The smallest second derivative on the range; 0 if the loss has a linear piece.

        >>> loss("squared").strong_convexity(3.0), loss("hinge").strong_convexity(3.0)
        (2.0, 0.0)
        """
        C = self._range(C)
        if self.code in (LOGISTIC, LOGIT):  # phi'' = s(1 - s), s = 1/(1 + e^u): even, decreasing in |u|
            least = math.exp(-C) / (1.0 + math.exp(-C)) ** 2
            return least if self.code == LOGISTIC else least / LN2
        if self.code == EXPONENTIAL:  # phi'' = e^-u, smallest at u = C
            return math.exp(-C)
        if self.code == SQUARED:  # constant
            return 2.0
        return 0.0  # piecewise linear; the softmax is constant along the all-ones vector

    def exp_concavity(self, C: float, n_classes: int | None = None) -> float:
        """The largest alpha for which exp(-alpha loss) is concave on the range; 0 if there is none.

        exp(-alpha f) is concave where alpha f'^2 <= f'', so alpha is the minimum of f''/f'^2 (the softmax needs
        `n_classes`).

        >>> loss("squared").exp_concavity(2.0), loss("absolute").exp_concavity(2.0)
        (0.125, 0.0)
        """
        C = self._range(C)
        if self.code in (LOGISTIC, EXPONENTIAL):  # s(1 - s)/s^2 = e^u, and e^-u/e^-2u = e^u: smallest at u = -C
            return math.exp(-C)
        if self.code == LOGIT:  # f = g/c is (c alpha)-exp-concave where g is alpha-exp-concave; c = ln 2
            return LN2 * math.exp(-C)
        if self.code == SQUARED:  # 2/(2r)^2 with r = z - y, smallest at |r| = C
            return 0.5 / C / C if C > 0.0 else math.inf
        if self.code == SOFTMAX:
            # g = p - e_k = -H e_k/p_k with H = diag p - pp', so H >= alpha gg' up to alpha = 1/(g'H^+ g)
            # = p_k/(1 - p_k), smallest where z_k = -C and all others are C.
            return math.exp(-2.0 * C) / (self._classes(n_classes) - 1)
        return 0.0  # linear with a nonzero slope somewhere: f'' = 0 < f'^2

    def mixability(self, C: float) -> float:
        """The largest eta for which the loss is eta-mixable on the range; 0 if there is none.

        Mixable: for all forecasts z_i and weights p_i there is a forecast z with loss(z, y) <= -ln(sum_i p_i
        exp(-eta loss(z_i, y)))/eta for all y at once. For the squared loss, targets and forecasts lie in one interval
        of length C (so C = 2Y for [-Y, Y]); for z_i in the range, z can be chosen in the range.

        For two outcomes with losses l and r, l' < 0 < r', the largest eta is the minimum of
        (l''r' - l'r'')/(-l'r'(r' - l')), where the curve (e^(-eta l), e^(-eta r)) is concave.

        >>> loss("logistic").mixability(9.0), loss("squared").mixability(2.0)
        (1.0, 0.5)
        """
        C = self._range(C)
        if self.code in (LOGISTIC, SOFTMAX):  # e^-loss is the probability of y, and mixtures are probabilities
            return 1.0
        if self.code == LOGIT:  # (log loss)/c is c-mixable; c = ln 2
            return LN2
        if self.code == EXPONENTIAL:  # l = e^-u, r = e^u: (1 + 1)/(e^u + e^-u), smallest at |u| = C
            return 1.0 / math.cosh(C)
        if self.code == SQUARED:  # outcomes +-Y are the worst: 1/(2 (Y^2 - z^2)), smallest at z = 0; Y = C/2
            return 2.0 / C / C if C > 0.0 else math.inf
        # Piecewise linear: for some pair of forecasts, no forecast is better than their average loss for every y, but
        # eta > 0 requires one. (Hinges: the forecasts 0 and t, or 0 and t e_1, for t <= 1.)
        return 0.0

    def _range(self, C: float) -> float:
        if not (math.isfinite(C) and C >= 0.0):
            raise ValueError(f"C={C!r} must be a finite number >= 0, the size of the range for the {self.name} loss.")
        if self.code == EXPONENTIAL and C > LARGEST_EXPONENT:
            raise ValueError(
                f"The exponential loss overflows beyond margins of {LARGEST_EXPONENT:g}, and the margins reach "
                f"{C:.6g}: reduce the radius, scale the features down, or use another loss."
            )
        return float(C)

    def _classes(self, n_classes: int | None) -> int:
        if n_classes is None or n_classes < 2:
            raise ValueError(f"This constant of the {self.name} loss needs n_classes >= 2; here n_classes={n_classes}.")
        return n_classes


def _softmax_lipschitz(C: float, K: int) -> float:
    """The largest |p - e_k| with p = softmax(z), z in [-C, C]^K.

    Changing only z_j changes p_j = s and scales the other p_i by 1 - s; |p - e_k|^2 is then a convex quadratic in s,
    and for j = k it decreases in s. So z_k = -C, and among the other logits m are C and the rest -C, for the best m (K
    - 1 for small C, 1 for large).
    """
    low = math.exp(-2.0 * C)

    def square(m: int) -> float:
        total = m + (K - m) * low
        missed = (m + (K - 1 - m) * low) / total
        return missed * missed + (m + (K - 1 - m) * low * low) / total / total

    return math.sqrt(max(square(m) for m in range(1, K)))


LOSSES: dict[str, Loss] = {
    each.name: each
    for each in (
        Loss("logistic", LOGISTIC, "margin"),
        Loss("hinge", HINGE, "margin"),
        Loss("exponential", EXPONENTIAL, "margin"),
        Loss("logit", LOGIT, "margin"),
        Loss("squared", SQUARED, "real"),
        Loss("absolute", ABSOLUTE, "real"),
        Loss("linear", LINEAR, "real"),
        Loss("softmax", SOFTMAX, "multiclass"),
        Loss("multiclass hinge", MULTICLASS_HINGE, "multiclass"),
    )
}


class Oracle(NamedTuple):
    """The functions of a `Custom` loss, for the kernels: where a named loss has its code."""

    value: Callback
    slope: Callback


Function = Callable[[float, float], float]
SCORES = (-3.0, -1.0, -0.4, 0.0, 0.3, 1.0, 2.5)  # where a custom loss is checked
TARGETS = {"margin": (-1.0, 1.0), "real": (-1.0, 0.0, 0.5, 2.0)}


@dataclass(frozen=True, eq=False)
class Custom(ByName):
    r"""A convex loss of your own: the loss of the score z = w.x under the target y, and a subgradient in z.

    Regrets, certificates and bounds rely on three promises: for every y the loss is convex in z, `slope` is a
    subgradient of it, and no :math:`|slope|` is above `slope_bound`. They are checked at a few points when the loss
    is created.

    Functions compiled by `numba.njit` are called from the kernels directly, a few nanoseconds per row; other functions
    take about a microsecond. A model file contains the name only. To load it, create the loss first.

    Parameters
    ----------
    name : the name of the loss, which `loss=` then also accepts. It replaces a custom loss of the same name.
    value, slope : functions (z, y) -> float.
    kind : "real" (regression) or "margin" (two classes: y is 1 for the second class and -1 for the first).
    slope_bound : the largest :math:`|slope|`, if there is one. Needed on unbounded sets, and by the bounds of learners
        that do not observe it.
    curvature : the second derivative in z, (z, y) -> float, if there is one. `FTRL` and `best_in_hindsight` then use
        Newton's method.

    Examples
    --------
    >>> from regretless import OGD
    >>> pinball = Custom("pinball 0.9", lambda z, y: max(0.9 * (y - z), 0.1 * (z - y)),
    ...                  lambda z, y: -0.9 if z < y else 0.1, slope_bound=0.9)
    >>> learner = OGD(loss=pinball, radius=2.0).fit([[1.0]] * 1000, [0.1 * (t % 11) for t in range(1000)])
    >>> print(f"{learner.coef_[0, 0]:.1f}")  # the quantile 0.9 of 0, 0.1, ..., 1
    0.9

    References
    ----------
    "Any convex loss" of `ogd-notes`, and Theorem 2 of `mda`.
    """

    name: str
    value: Function
    slope: Function
    kind: Literal["margin", "real"] = "real"
    slope_bound: float | None = None
    curvature: Function | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or self.name in LOSSES:
            raise ValueError(f"name={self.name!r}: give a name that no other loss has; {sorted(LOSSES)} are taken.")
        if self.kind not in TARGETS:
            raise ValueError(f'kind={self.kind!r}: choose "real" for regression, or "margin" for two classes.')
        for what, function in (("value", self.value), ("slope", self.slope), ("curvature", self.curvature)):
            if not callable(function) and not (what == "curvature" and function is None):
                raise ValueError(f"{what}={function!r} must be a function of the score z and the target y.")
        bound = self.slope_bound
        if bound is not None and not (isinstance(bound, int | float) and 0.0 < bound < math.inf):
            raise ValueError(f"slope_bound={bound!r} must be a positive finite number, or None.")
        self._check_promises()
        self.announce()

    def _check_promises(self) -> None:
        """Refuse a slope that is no subgradient somewhere on a small grid; points where the loss fails are skipped."""
        value, slope = (getattr(each, "py_func", each) for each in (self.value, self.slope))
        for y in TARGETS[self.kind]:
            try:
                points = [(z, float(value(z, y)), float(slope(z, y))) for z in SCORES]
            except (ArithmeticError, ValueError):  # not defined for this target
                continue
            for z, height, s in points:
                if self.slope_bound is not None and abs(s) > self.slope_bound * (1 + 1e-12):
                    raise ValueError(
                        f"{self.name}: slope({z}, {y}) = {s:.6g} is beyond slope_bound={self.slope_bound}."
                    )
                for other, there, _ in points:
                    tangent = height + s * (other - z)
                    if there < tangent - 1e-9 * (1 + abs(there) + abs(tangent)):
                        raise ValueError(
                            f"{self.name}: the loss is not convex in z, or slope is not its subgradient. For y={y} the "
                            f"tangent at z={z} is {tangent:.6g} at z={other}, above the loss there, {there:.6g}."
                        )

    def __deepcopy__(self, memo: Any) -> Custom:
        return self

    @property
    def code(self) -> Oracle:
        """What the kernels read."""
        return self._oracle

    @cached_property
    def _oracle(self) -> Oracle:
        return Oracle(Callback(self.value), Callback(self.slope))

    @cached_property
    def bend(self) -> Callback | None:
        """The second derivative, as kernels call it."""
        return None if self.curvature is None else Callback(self.curvature)

    def __getstate__(self) -> dict[str, Any]:
        return {name: held for name, held in vars(self).items() if name not in ("_oracle", "bend")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        ByName.announced.setdefault(self.name, self)

    def lipschitz(self, C: float, n_classes: int | None = None) -> float:
        """`slope_bound`, on every range. Raises ValueError if it was not given."""
        if self.slope_bound is None:
            raise ValueError(f"slope_bound of the loss {self.name!r} is needed here: Custom(..., slope_bound=...).")
        return float(self.slope_bound)


def loss(name: str | Loss | Custom) -> Loss | Custom:
    """The loss with this name, which may also be that of a `Custom` loss.

    Raises ValueError with the list of names if there is none.

    >>> loss("multiclass hinge").kind
    'multiclass'
    """
    if isinstance(name, Loss | Custom):
        return name
    found = LOSSES.get(name) if isinstance(name, str) else None
    if found is None:
        announced = ByName.announced.get(name) if isinstance(name, str) else None
        if isinstance(announced, Custom):
            return announced
        raise ValueError(f"loss={name!r} is unknown: choose one of {sorted(LOSSES)}, or pass a losses.Custom.")
    return found
