"""FTRL: follow the regularized leader on the true losses, refitted after every row."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from regretless.core.errors import NoBound, NoCertificate
from regretless.core.files import state_checks
from regretless.core.kernels.copying import copy_line
from regretless.core.kernels.jit import kernel, shared_kernel
from regretless.core.numbers.links import softmax
from regretless.core.numbers.tally import EXCESS, LOSS, ROWS, SCALE, TALLIES, WIDEST, record, require_unit_weights
from regretless.core.rows import validate
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.types import Array
from regretless.learners.first_order.learner import LARGEST_ROW, ScoringLearner, ball_of
from regretless.learners.first_order.linear import loss_and_slope, publish
from regretless.learners.refitting.remembering import RememberingClassifier
from regretless.learners.second_order.algebra import backward, dot, forward, norm
from regretless.theory import bounds, losses
from regretless.theory.domains import Ball, Box, Competition, Domain, WholeSpace
from regretless.theory.hindsight.problem import Game
from regretless.theory.losses import LOGISTIC, SOFTMAX, Custom, Loss, Oracle

MOST_SCALE = 1e12  # of weight |x|^2 / regularization
GAP = TALLIES  # one more number than other learners have: how far the last refit may be above the minimum
CLOSE = 1e-6  # a Newton step that moves no score by more leaves an error of its square
SET_GAP = 1e-13  # the gap of refits by `Game`, relative to the loss if that is above 1
LOSSES = ("log", "logit", "hinge", "squared", "absolute", "linear")
REFUSED = ("exponential", "softmax", "multiclass hinge")  # it may overflow on the next row; see "log" and "hinge"
MOST_STEPS = 200  # only needed for rows so large that certificates are refused


class FTRLState(NamedTuple):
    """The state of FTRL: distinct rows with the sums of their weights, and the leader."""

    X: Array  # (m, d)
    Y: Array  # (m, K)
    weight: Array  # (m,)
    w: Array  # (d,) for two classes, (K, d) for more
    tally: Array  # see tally.py; then the gap


class FTRLConstants(NamedTuple):
    """The numbers the kernels read, and the set."""

    loss: int | Oracle
    regularization: float
    radius: float  # infinite: no ball
    domain: Domain
    newton: bool  # whether the refits are `refit`, for the log loss on a ball or without a set


class FTRL(RememberingClassifier, ScoringLearner):
    r"""Follow the regularized leader: forecast with the best regularized weights of all rows so far.

    **Choose it when** few rows, and the best regularized weights of all rows so far are worth a refit per row; also for
    losses of your own on any set.

    .. math:: w_t = \arg\min_{w \in W} F_{t-1}(w), \qquad F_t(w) = \sum_{s \le t} \ell_s(w) + \lambda |w|^2

    with the true losses, for two classes (w are the weights of the margin), more (one row per class) or regression. For
    the log loss without a set or on a ball, Newton's method starts from the last leader after every row and iterates
    until the scores are correct to 1e-12. Other losses and sets are solved as in `best_in_hindsight`, to a proved gap.
    The learner is proper: it chooses the weights before it sees the row. On the stream of [Hazan]_ its regret therefore
    grows like a power of n, while that of `AIOLI` is logarithmic. The cost per row is proportional to the number of
    distinct rows so far; equal rows with the same label are merged.

    **Guarantee.** For every u (of the set) regret at most
    :math:`\lambda|u|^2 + \sum_t |g_t|^2/(4\lambda) \le \lambda|u|^2 + nG^2/(4\lambda)`, G the largest slope times R,
    the largest :math:`|x|` (`regretless.bounds.ftrl`). The largest slope of the log loss is 1 for two classes and
    :math:`\sqrt2` for more, that of the hinge and absolute loss 1, and that of the squared loss is bounded on a bounded
    set. The best value, :math:`|u|G\sqrt n`, is at :math:`\lambda = G\sqrt n/(2|u|)`.

    Parameters
    ----------
    loss : "log", the log loss of probabilities, or "logit" or "hinge" for classification; "squared", "absolute" or
        "linear" for regression; or a `regretless.losses.Custom` with a `curvature`.
    regularization : lambda, the coefficient of :math:`|w|^2`. No intercept is added: append a constant column.
    radius : the radius of a ball that contains the leader; None means no ball.
    domain : a set of `regretless.domains` that contains the leader, in place of `radius`.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of probabilities.
    state_ : `X`, `Y` and `weight` (distinct rows and the sums of their weights), `w` (the leader) and `tally`.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import FTRL
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 5)) / np.sqrt(5)
    >>> y = rng.random(1000) < 1 / (1 + np.exp(-X @ [3, -3, 2, 0, 1]))
    >>> learner = FTRL(regularization=0.05)
    >>> p = learner.predict_then_learn(X, y)
    >>> print(f"{-np.log(np.where(y, p[:, 1], p[:, 0])).mean():.4f}")
    0.4601
    >>> print(f"regret <= {learner.regret_certificate(comparator_norm=5.0):.2f}")
    regret <= 16.42

    References
    ----------
    .. [Hazan] Hazan, Koren and Levy (2014), key `hazan2014` of REFERENCES.bib; the comparison is that of section 5 of
       key `aioli`, the bound is in key `ftrl-survey`, and the regularized risk minimiser in key `ogd-notes`.
    """

    state_: FTRLState
    _constants: FTRLConstants

    def __init__(
        self,
        loss: str | Custom = "log",
        regularization: float = 1.0,
        radius: float | None = None,
        domain: Domain | None = None,
    ) -> None:
        self.loss = loss
        self.regularization = regularization
        self.radius = radius
        self.domain = domain

    @property
    def _loss_name(self) -> str:
        return "logistic" if self.loss == "log" and "_constants" not in self.__dict__ else super()._loss_name

    def _chosen_loss(self, n_classes: int) -> Loss | Custom:
        if self.loss == "log":
            return losses.loss("softmax" if n_classes > 2 else "logistic")
        chosen = losses.loss(self.loss) if isinstance(self.loss, Custom) or self.loss not in REFUSED else None
        if chosen is None or chosen.kind == "multiclass":
            raise ValueError(
                f"loss={self.loss!r}: FTRL supports {LOSSES}, and losses.Custom with a curvature. "
                "OGD and MirrorDescent support other losses."
            )
        if isinstance(chosen, Custom) and chosen.curvature is None:
            raise ValueError(
                f"the loss {chosen.name!r} has no curvature: FTRL refits with second derivatives. Give "
                "Custom(..., curvature=...), or use OGD, MirrorDescent or LinearizedFTRL, which need slopes only."
            )
        if n_classes > 2 and chosen.name != "hinge":
            raise ValueError(f'loss={self.loss!r} is for two classes, and there are {n_classes}: use "log" or "hinge".')
        return losses.loss("multiclass hinge") if n_classes > 2 else chosen

    def _chosen_domain(self) -> Domain:
        if self.domain is None:
            return ball_of(math.inf if self.radius is None else validate.positive("radius", self.radius))
        if self.radius is not None:
            raise ValueError(f"radius={self.radius!r} and domain={self.domain!r}: give one of them.")
        if not isinstance(self.domain, Domain):
            raise ValueError(f"domain={self.domain!r}: give a set of regretless.domains, or None.")
        return self.domain

    def _prepare(self, n_features: int, n_classes: int) -> FTRLConstants:
        loss, domain = self._chosen_loss(n_classes), self._chosen_domain()
        lam = validate.positive("regularization", self.regularization)
        radius = domain.radius if isinstance(domain, Ball) else math.inf
        newton = loss.name in ("logistic", "softmax") and isinstance(domain, Ball | WholeSpace)
        return FTRLConstants(loss.code, lam, radius, domain, newton)

    def _start(self, n_features: int, n_classes: int) -> FTRLState:
        origin = np.zeros((n_classes, n_features) if n_classes > 2 else n_features)
        return FTRLState(
            X=np.empty((0, n_features)),
            Y=np.empty((0, n_classes)),
            weight=np.empty(0),
            w=self._constants.domain.project(origin),
            tally=np.zeros(TALLIES + 1),
        )

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        return n_features * (n_classes if n_classes > 2 else 1)

    @property
    def coef_(self) -> Array:
        """The weights that forecast: (1, d) for two classes or regression, else (K, d)."""
        check_is_fitted(self, "state_")
        return np.atleast_2d(self.state_.w).copy()

    def _check_state(self) -> None:
        super()._check_state()
        state_checks.weights("w", self.state_.w, min(self._largest))
        domain = self.competes_with.domain
        state_checks.require(domain.contains(self.state_.w, state_checks.ROUNDING), f"w is not in {domain}")
        state_checks.within("tally, the gap", self.state_.tally[GAP], 0.0, math.inf)

    def _check_labels(self, Y: Array) -> None:
        if self._regresses:
            validate.numbers(Y[:, 0], LARGEST_ROW)
        else:
            super()._check_labels(Y)

    def _limits(self) -> tuple[float, float]:
        return math.inf, validate.reach(self._constants.regularization)

    @property
    def competes_with(self) -> Competition:
        """All weights (or those of the set), under the loss."""
        begun = "_constants" in self.__dict__
        return Competition(self._loss_name, self._constants.domain if begun else self._chosen_domain())

    @property
    def _largest_norm(self) -> float:
        """The largest norm of the comparators; infinite without a set."""
        domain = self._constants.domain
        if isinstance(domain, Box):
            return domain.diameter(self.state_.w.size) / 2
        return domain.largest_norm(len(np.atleast_2d(self.state_.w)))

    def _norm(self, comparator_norm: float | None, refusal: type[ValueError]) -> float:
        """The norm of the comparator, after checking that a certificate or bound exists for it."""
        check_is_fitted(self, "state_")
        c, largest = self._constants, self._largest_norm
        scale = float(self.state_.tally[SCALE]) / c.regularization
        if scale > MOST_SCALE:
            raise refusal(
                f"weight |x|^2 / regularization reached {scale:.2g}, and beyond {MOST_SCALE:.0e} rounding in the "
                "refits may exceed the bound. Scale the features, for example to unit variance."
            )
        if comparator_norm is None and math.isinf(largest):
            raise refusal(
                "this learner competes with all linear predictors, and its regret grows with their norm: give "
                "comparator_norm."
            )
        return validate.comparator_norm(comparator_norm, c.domain, largest, refusal)

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        r"""An upper bound on the regret against every comparator of the given norm (default: all of the ball).

        :math:`\lambda|u|^2 + \sum_t loss_t - \min F_n`, because :math:`F_n(u)` is at least the minimum; the gradient at
        w bounds how far :math:`F_n(w)` is above it. It equals the total gain of the refits, the sum of :math:`F_t(w_t)
        - F_t(w_{t+1})`.
        """
        size = self._norm(comparator_norm, NoCertificate)
        return self._constants.regularization * size**2 + float(self.state_.tally[[EXCESS, GAP]].sum())

    def regret_bound(self, n: int | None = None, comparator_norm: float | None = None) -> float:
        """The theorem, with R the largest row so far."""
        size = self._norm(comparator_norm, NoBound)
        tally = self.state_.tally
        require_unit_weights(tally)
        return bounds.ftrl(
            int(tally[ROWS]) if n is None else n,
            comparator_norm=size,
            gradient_bound=self._largest_slope() * float(tally[WIDEST]),
            regularization=self._constants.regularization,
        )

    def _largest_slope(self) -> float:
        """A bound on the slopes of the loss at the leaders, for the rows and targets so far."""
        loss, name = self._custom_loss, self._loss_name
        if loss is not None:
            if loss.slope_bound is None:
                raise NoBound(f"the theorem needs a bound on the slopes of {name!r}: Custom(..., slope_bound=...).")
            return loss.slope_bound
        if name in ("softmax", "multiclass hinge"):
            return math.sqrt(2.0)  # |p - y| at most
        targets = float(np.abs(self.state_.Y).max(initial=0.0))
        if name == "linear":
            return targets
        if name == "squared":
            reach = self._largest_norm * float(self.state_.tally[WIDEST])
            if math.isinf(reach):
                raise NoBound(
                    "the slopes of the squared loss are bounded only on a bounded set: give radius or domain, or use "
                    "regret_certificate(norm)."
                )
            return 2.0 * (reach + targets)
        return 1.0 / math.log(2.0) if name == "logit" else 1.0

    def _refit(self, W: Array) -> tuple[float, float]:
        """Move W to the leader. Returns F there, and a bound on how far that is above the minimum."""
        state, c = self.state_, self._constants
        if c.newton:
            return refit(state.X, state.Y, state.weight, W, c.regularization, c.radius)
        loss = self._custom_loss or losses.loss(self._loss_name)
        y = state.Y[:, 0] if self._regresses else state.Y
        problem = Game(state.X, y, state.weight, loss, c.domain, c.regularization)
        found = problem.solve(len(state.X), SET_GAP, state.w)
        W[...] = found.w
        return found.loss, found.gap

    def _forecast_row(self, x: Array, out: Array) -> None:
        forecast(np.atleast_2d(self.state_.w), x, out)

    def _learn_row(self, x: Array, y: Array, weight: float, forecast: Array) -> None:
        state = self.state_
        W = np.atleast_2d(state.w)
        loss = weight * loss_of(self._constants.loss, W, x, y)
        same = find(state.X, state.Y, x, y)
        if same < 0:
            self._remember(x, y, weight)
        else:
            state.weight[same] += weight
        total, gap = self._refit(W)
        record(state.tally, weight, loss, 0.0, norm(x))
        # not as a sum of the gains of refits: each would add the rounding of all the rows
        state.tally[EXCESS] = state.tally[LOSS] - total
        state.tally[GAP] = gap


@kernel
def scores(W: Array, x: Array, z: Array) -> None:
    """z = W x."""
    for k in range(z.size):
        z[k] = dot(W[k], x)


@kernel
def forecast(W: Array, x: Array, out: Array) -> None:
    """The logits of the leader."""
    z = np.empty(W.shape[0])
    scores(W, x, z)
    publish(z, out)


@kernel
def loss_of(loss: int | Oracle, W: Array, x: Array, y: Array) -> float:
    """The loss of weights on a row."""
    r = W.shape[0]
    z, s, scratch = np.empty(r), np.empty(r), np.empty(r)
    scores(W, x, z)
    return loss_and_slope(loss, z, y, s, scratch)


@kernel
def find(X: Array, Y: Array, x: Array, y: Array) -> int:
    """The index of an equal row with the same label, or -1."""
    for i in range(X.shape[0]):
        same = True
        for j in range(x.size):
            if X[i, j] != x[j]:
                same = False
                break
        if same:
            for k in range(y.size):
                if Y[i, k] != y[k]:
                    same = False
                    break
        if same:
            return i
    return -1


@shared_kernel
def expand(X: Array, Y: Array, weight: Array, W: Array, lam: float, g: Array, M: Array) -> float:
    """The gradient g of F at W, and M, of which the lower triangle counts: the Hessian is 2 lam (I + M). Returns F."""
    d = X.shape[1]
    r = W.shape[0]
    z, s, p = np.empty(r), np.empty(r), np.empty(r)
    total = 0.0
    M[:] = 0.0
    for k in range(r):
        total += lam * dot(W[k], W[k])
        for j in range(d):
            g[k * d + j] = 2.0 * lam * W[k, j]
    for i in range(X.shape[0]):
        x = X[i]
        scores(W, x, z)
        total += weight[i] * loss_and_slope(LOGISTIC if r == 1 else SOFTMAX, z, Y[i], s, p)
        if r > 1:
            softmax(z, p)
        for k in range(r):
            slope = weight[i] * s[k]
            for a in range(d):
                g[k * d + a] += slope * x[a]
            for l in range(k + 1):
                h = weight[i] * second(z, p, k, l) / (2.0 * lam)
                for a in range(d):
                    bend = h * x[a]
                    for b in range(d if l < k else a + 1):
                        M[k * d + a, l * d + b] += bend * x[b]
    return total


@kernel
def second(z: Array, p: Array, k: int, l: int) -> float:
    """The second derivative of the log loss in the scores k and l, without cancellation."""
    if z.size == 1:
        e = math.exp(-abs(z[0]))
        return e / ((1.0 + e) * (1.0 + e))
    if k != l:
        return -p[k] * p[l]
    rest = 0.0
    for j in range(p.size):
        if j != k:
            rest += p[j]
    return p[k] * rest


@kernel
def factor(M: Array) -> None:
    """The lower Cholesky factor of I + M, in place, for M positive semi-definite.

    A pivot is at least 1, but for large M rounding may make it smaller: it is then raised to the size of the rounding.
    This gives the Newton step of a larger Hessian, along which F falls as well.
    """
    for j in range(M.shape[0]):
        pivot = 1.0 + M[j, j]
        least = max(1.0, 1e-14 * pivot)
        for k in range(j):
            pivot -= M[j, k] * M[j, k]
        M[j, j] = math.sqrt(max(pivot, least))
        for i in range(j + 1, M.shape[0]):
            for k in range(j):
                M[i, j] -= M[i, k] * M[j, k]
            M[i, j] /= M[j, j]


@kernel
def solve(M: Array, b: Array) -> None:
    """b = (M M^T)^{-1} b for a lower triangular M, in place."""
    forward(M, b)
    backward(M, b)


@kernel
def spread(X: Array, D: Array) -> float:
    """The largest change of the difference of two logits of a row, when the weights change by D."""
    r = D.shape[0]
    z = np.empty(r)
    widest = 0.0
    for i in range(X.shape[0]):
        scores(D, X[i], z)
        low, high = (0.0, 0.0) if r == 1 else (z[0], z[0])
        for k in range(r):
            low, high = min(low, z[k]), max(high, z[k])
        widest = max(widest, high - low)
    return widest


@kernel
def confine(M: Array, flat: Array, g: Array, lam: float, radius: float, direction: Array) -> None:
    """The step to the least point in the ball of the quadratic with Hessian 2 lam (I + M) and gradient g.

    It is -(I + M + nu)^{-1} (g/(2 lam) + nu w) for the nu >= 0 that brings the end to the border. In the eigenbasis of
    M the norm of the end is explicit, and 1/norm is nearly linear in nu: Newton from nu = 0 rises to the root.
    """
    size = flat.size
    for a in range(size):
        for b in range(a):
            M[b, a] = M[a, b]
    bends, basis = np.linalg.eigh(M)
    w, slope, ends = basis.T @ flat, basis.T @ g, np.empty(size)
    for j in range(size):
        bends[j] = 1.0 + max(bends[j], 0.0)
        slope[j] /= 2.0 * lam
        ends[j] = bends[j] * w[j] - slope[j]
    nu = 0.0
    for _ in range(MOST_STEPS):
        square, fall = 0.0, 0.0
        for j in range(size):
            end = ends[j] / (bends[j] + nu)
            square += end * end
            fall += end * end / (bends[j] + nu)
        if math.sqrt(square) <= radius * (1.0 + 1e-15):
            break
        nu += (math.sqrt(square) / radius - 1.0) * square / fall
    for j in range(size):
        ends[j] = -(slope[j] + nu * w[j]) / (bends[j] + nu)
    copy_line(basis @ ends, direction)


@shared_kernel
def gap_of(flat: Array, g: Array, lam: float, radius: float) -> float:
    r"""An upper bound on F minus its minimum, at a point with gradient g.

    F is 2 lam-strongly convex, so by no more than |g|^2 / (4 lam). On a ball, and for every mu >= 0, by no more than
    |g + 2 mu w|^2 / (4 lam) + 2 mu |w| (B - |w|): -w.(v - w) >= -|w| (B - |w|) for every v of it.
    """
    square = dot(flat, flat)
    gap = dot(g, g) / (4.0 * lam)
    inward = -dot(g, flat)
    if math.isinf(radius) or inward <= 0.0 or square == 0.0:
        return gap
    mu = 0.5 * inward / square
    rest = 0.0
    for j in range(g.size):
        rest += (g[j] + 2.0 * mu * flat[j]) ** 2
    size = math.sqrt(square)
    return min(gap, rest / (4.0 * lam) + 2.0 * mu * size * max(radius - size, 0.0))


@shared_kernel
def refit(X: Array, Y: Array, weight: Array, W: Array, lam: float, radius: float) -> tuple[float, float]:
    r"""Move W to argmin F (over the ball). Returns F there, and a bound on how far that is above the minimum.

    Damped Newton. The logits' third derivative along a direction is at most their spread times the second, so with d
    the Newton step, :math:`\lambda^2 = d^T H d` and :math:`\delta` the widest spread of d,

        F(w + t d) <= F(w) - t \lambda^2 + \lambda^2 (e^{t \delta} - 1 - t \delta) / \delta^2,

    which is least at t = ln(1 + \delta)/\delta: F falls at every step, without a line search. The same
    holds for the step to the minimum of the quadratic over a ball.
    """
    d = X.shape[1]
    r = W.shape[0]
    flat = W.reshape(-1)
    g, direction, M = np.empty(flat.size), np.empty(flat.size), np.empty((flat.size, flat.size))
    last = np.empty(flat.size)
    total = expand(X, Y, weight, W, lam, g, M)
    for _ in range(MOST_STEPS):
        bend = M.copy()
        factor(M)
        for j in range(flat.size):
            direction[j] = -g[j] / (2.0 * lam)
        solve(M, direction)
        end = norm(flat + direction)
        if radius < end < math.inf:
            confine(bend, flat, g, lam, radius, direction)
        delta = spread(X, direction.reshape((r, d)))
        step = 1.0 if delta <= CLOSE else math.log1p(delta) / delta
        copy_line(flat, last)
        for j in range(flat.size):
            flat[j] += step * direction[j]
        before, total = total, expand(X, Y, weight, W, lam, g, M)
        if not total <= before * (1.0 + 1e-9):  # for very large rows the step is only rounding
            copy_line(last, flat)
            total = expand(X, Y, weight, W, lam, g, M)
            break
        if delta <= CLOSE:
            break
    return total, gap_of(flat, g, lam, radius)
