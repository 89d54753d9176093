"""Mixture: a weighted mean of several learners, almost as good as the best of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from regretless.core.errors import NoBound, NoCertificate
from regretless.core.files import state_checks
from regretless.core.interrupts import uninterrupted
from regretless.core.kernels.jit import kernel
from regretless.core.learner import OnlineClassifier, OnlineLearner
from regretless.core.numbers.tally import LOSS, TALLIES, record, require_unit_weights
from regretless.core.rows import validate
from regretless.core.rows.labels import Labels
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.types import Array
from regretless.learners.ensembles import side_by_side
from regretless.learners.ensembles.ensemble import Ensemble
from regretless.theory import bounds
from regretless.theory.domains import Ball, Competition, RowBall, WholeSpace

LOG_LOSS = ("logistic", "softmax")


class MixtureState(NamedTuple):
    """The state of a mixture of N members, apart from what these have learned."""

    log_weight: Array  # (N,): logarithms of the weights, which sum to 1
    losses: Array  # (N,): the total loss of each member
    tally: Array


class MixtureConstants(NamedTuple):
    """The numbers the kernel reads."""

    log_prior: Array
    share: float


class Mixture(Ensemble):
    r"""A mixture of learners: the mean of their probabilities, weighted by their losses.

    **Choose it when** you have several learners with probabilities, or several values of a parameter, and want almost
    the log loss of the best. With `share`, also when the best one changes.

    .. math:: p = \sum_i w_i p_i, \qquad w_i \propto \pi_i \exp\bigl(-\sum_s \ell_{s,i}\bigr)

    with :math:`\ell_{s,i}` the log loss of member i on row s (the cross-entropy for a soft label; a row of weight
    c counts c times). Each member learns every row independently. With `share` > 0 every row ends with
    :math:`w \leftarrow (1 - \alpha) w + \alpha\pi`: no weight vanishes, and the mixture adapts when another member
    becomes the best ([FixedShare]_). A grid over a parameter that is hard to choose, such as the radius, replaces
    tuning.

    **Guarantee.** For rows of weight up to 1 the loss is at most that of any member i plus :math:`\ln(1/\pi_i)`,
    which is ln N for equal priors, for any number of rows: :math:`e^{-\ell}` is the probability itself, so the
    total loss is :math:`-\ln \sum_i \pi_i e^{-L_i}`, and at most that for soft labels
    ([Aggregating]_; `regretless.bounds.mixture`). With `share` and equal priors, the loss on n rows is at most
    :math:`\ln N + k\ln\frac N\alpha + (n-1-k)\ln\frac1{1-\alpha+\alpha/N}` above that of any sequence of
    members with k changes (`regretless.bounds.fixed_share`). `regret_certificate()` is valid for all weights.

    Parameters
    ----------
    estimators : a list of classifiers with log loss. They are not changed: clones of them learn.
    prior : pi, positive numbers that sum to 1, one per member; None means 1/N each.
    share : alpha, at least 0 and below 1. A good value is (changes expected) / (rows expected).

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of probabilities.
    estimators_ : the fitted members.
    weights_ : the current weights of the members.
    state_ : `log_weight`, `losses` (the total loss of each member) and `tally`.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import AIOLI, Mixture
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5)) / np.sqrt(5)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-X @ [3, -3, 2, 0, 1]))
    >>> learner = Mixture([AIOLI(radius=radius) for radius in (0.1, 1.0, 10.0, 100.0)])
    >>> p = learner.predict_then_learn(X, y)
    >>> print(f"{-np.log(np.where(y, p[:, 1], p[:, 0])).mean():.4f}")
    0.4611
    >>> print(learner.weights_.round(3), f"{learner.total_loss_ - learner.state_.losses.min():.2f} above the best")
    [0.    0.989 0.011 0.   ] 1.38 above the best
    >>> print(f"regret <= {learner.regret_certificate(comparator_norm=5.0):.1f}")
    regret <= 51.4

    References
    ----------
    .. [Aggregating] Vovk (1998), key `aggregating` of REFERENCES.bib.
    .. [FixedShare] Herbster and Warmuth (1998), key `fixed-share`.
    """

    state_: MixtureState
    _constants: MixtureConstants

    def __init__(
        self, estimators: Sequence[OnlineClassifier], prior: Sequence[float] | None = None, share: float = 0.0
    ) -> None:
        self.estimators = estimators
        self.prior = prior
        self.share = share

    @classmethod
    def _example(cls) -> Self:
        from regretless.learners.second_order.aioli import AIOLI

        return cls([AIOLI(), AIOLI()])

    # ------------------------------------------------------------------ the members

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; if deep, also the members (`estimator0`) and their parameters (`estimator0__radius`)."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep and isinstance(self.estimators, list | tuple):
            for i, learner in enumerate(self.estimators):
                params[f"estimator{i}"] = learner
                if isinstance(learner, OnlineLearner):  # others are refused at the first row
                    params |= {f"estimator{i}__{name}": value for name, value in learner.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, by the names of `get_params`. A game in play keeps the parameters it began with."""
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        if isinstance(self.estimators, list | tuple):
            names = [f"estimator{i}" for i in range(len(self.estimators))]
            if params.keys() & set(names):
                given = [params.pop(name, learner) for name, learner in zip(names, self.estimators, strict=True)]
                self.estimators = type(self.estimators)(given)
        super().set_params(**params)
        return self

    # ------------------------------------------------------------------ the numbers, and the start

    def _meet_classes(self, labels: Labels) -> None:
        for i, learner in enumerate(self._members):
            _require_log_loss(i, learner)
        super()._meet_classes(labels)

    def _begin(self, n_features: int) -> None:
        members = side_by_side.begin(self._members, self._labels, self)
        for i, member in enumerate(members):
            _require_log_loss(i, member)  # now that the classes are known: the loss for three classes may differ
        self.estimators_ = members
        super()._begin(n_features)

    def _prepare(self, n_features: int, n_classes: int) -> MixtureConstants:
        share = validate.positive("share", self.share, zero=True)
        if share >= 1.0:
            raise ValueError(f"share={self.share!r} must be below 1: at 1 the weights would stay equal to the prior.")
        return MixtureConstants(np.log(self._checked_prior(len(self._members))), share)

    def _checked_prior(self, n: int) -> Array:
        if self.prior is None:
            return np.full(n, 1.0 / n)
        try:
            prior = np.array(self.prior, dtype=np.float64)
        except (TypeError, ValueError):
            prior = np.empty(0)
        if prior.shape != (n,) or not (prior > 0).all() or not abs(prior.sum() - 1.0) <= 1e-9:
            raise ValueError(f"prior={self.prior!r}: give {n} positive numbers that sum to 1, one per learner.")
        return prior / prior.sum()

    def _start(self, n_features: int, n_classes: int) -> MixtureState:
        log_prior = self._constants.log_prior
        return MixtureState(log_prior.copy(), np.zeros(log_prior.size), np.zeros(TALLIES))

    def _check_state(self) -> None:
        super()._check_state()
        state_checks.log_weights("log_weight", self.state_.log_weight, mixed=True)

    # ------------------------------------------------------------------ the game

    @property
    def weights_(self) -> Array:
        """The members' current weights, which sum to 1."""
        check_is_fitted(self, "state_")
        return np.exp(self.state_.log_weight)

    @uninterrupted()
    def _run(self, X: Any, Y: Array, weight: Array, out: Array) -> None:
        logits = np.empty((len(self.estimators_), *out.shape))
        side_by_side.run(self.estimators_, X, [Y] * len(logits), weight, logits)
        run(self.state_, logits, Y, weight, self._constants, out)

    def _forecast(self, X: Any, out: Array) -> None:
        logits = np.empty((len(self.estimators_), *out.shape))
        side_by_side.forecast(self.estimators_, X, logits)
        forecast_block(self.state_.log_weight, logits, out)

    # ------------------------------------------------------------------ certificate and bound

    def _competitions(self) -> list[Competition]:
        """What each member competes with. Computed once per call, because a mixture of mixtures recurses."""
        return [member.competes_with for member in self._members]

    def _disagreement(self, found: list[Competition]) -> str:
        """Why the members have no common class of comparators; empty if they have one."""
        domains = {competition.domain for competition in found}
        if not all(_sees_the_rows(member) for member in self._members):
            return "a member competes with functions of its own features"
        if any(competition.regularization for competition in found):
            return "a member competes with weights that are regularized in every row"
        if len({competition.loss for competition in found}) > 1:
            return "some members compete with weights of the margin, others with one row of weights per class"
        kinds = {type(domain) for domain in domains if not isinstance(domain, WholeSpace)}
        if len(domains) > 1 and not (kinds == {Ball} or kinds == {RowBall}):
            return f"the members compete with {' and '.join(sorted(map(str, domains)))}"
        return ""

    @property
    def competes_with(self) -> Competition:
        """The largest of the members' sets. (Without a common class: that of the first member.)"""
        found = self._competitions()
        if self._disagreement(found):
            return found[0]
        return max(found, key=lambda competition: _reach(competition.domain))

    def for_comparators(self, X: Any) -> Any:
        """The rows as the comparators of the members see them."""
        return self._members[0].for_comparators(X)

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        """An upper bound on the regret against every comparator of the class (or of a given norm).

        The least, over the members whose set contains these comparators, of the member's own certificate plus the
        mixture's total loss minus the member's.
        """
        check_is_fitted(self, "state_")
        if reason := self._disagreement(self._competitions()):
            raise NoCertificate(
                f"{reason}, so that there is no common certificate. Use those of the members, estimators_."
            )
        if comparator_norm is not None:
            validate.positive("comparator_norm", comparator_norm, zero=True)
        lead = float(self.state_.tally[LOSS]) - self.state_.losses
        found, reason = [], ""
        for member, more in zip(self.estimators_, lead.tolist(), strict=True):
            if self._covers(member, comparator_norm):
                try:
                    found.append(member.regret_certificate(comparator_norm) + more)
                except NoCertificate as refusal:
                    reason = f" {type(member).__name__}: {refusal}"
        if not found:
            raise NoCertificate(f"no member has a certificate for these comparators of {self._domain}.{reason}")
        return min(found)

    def regret_bound(self, n: int | None = None) -> float:
        """The least bound of a member plus ln(1/prior), for `share` = 0."""
        check_is_fitted(self, "state_")
        c = self._constants
        if c.share > 0:
            raise NoBound(
                f"share={c.share:.4g}: the cost of sharing grows with the number of rows. Use "
                "regretless.bounds.fixed_share, a bound against sequences of members."
            )
        require_unit_weights(self.state_.tally)
        if reason := self._disagreement(self._competitions()):
            raise NoBound(f"{reason}, so that there is no common bound. Use those of the members, estimators_.")
        found, reason = [], ""
        for member, log_prior in zip(self.estimators_, c.log_prior.tolist(), strict=True):
            if self._covers(member, None):
                try:
                    found.append(member.regret_bound(n) + bounds.mixture(prior=math.exp(log_prior)))
                except NoBound as refusal:
                    reason = f" {type(member).__name__}: {refusal}"
        if not found:
            raise NoBound(f"no member has a bound for all of {self._domain}.{reason}")
        return min(found)

    @property
    def _domain(self) -> Any:
        return self.competes_with.domain

    def _covers(self, member: Any, comparator_norm: float | None) -> bool:
        """Whether the member competes with all comparators of that norm in the class."""
        domain = member.competes_with.domain
        return domain == self._domain or (
            comparator_norm is not None and not validate.beyond(comparator_norm, _reach(domain))
        )


def _require_log_loss(i: int, learner: Any) -> None:
    """Refuse a learner without log loss."""
    loss = getattr(learner.competes_with, "loss", None)
    if loss not in LOG_LOSS:
        raise ValueError(
            f"estimators[{i}]={learner!r} has the loss {loss!r}, and only the log loss of probabilities can be mixed: "
            f"choose a loss of {LOG_LOSS}, or leave the learner out."
        )


def _sees_the_rows(learner: Any) -> bool:
    """Whether its comparators are functions of the rows themselves."""
    if isinstance(learner, Mixture):
        return all(_sees_the_rows(member) for member in learner._members)
    return type(learner).for_comparators is OnlineLearner.for_comparators


def _reach(domain: Any) -> float:
    """The radius of a ball; infinite for other sets."""
    return domain.radius if isinstance(domain, Ball | RowBall) else math.inf


@kernel
def log_sum(a: Array) -> tuple[float, float]:
    """The largest entry, and the logarithm of the sum of exp(entry - largest)."""
    top = a[0]
    for i in range(1, a.size):
        top = max(top, a[i])
    total = 0.0
    for i in range(a.size):
        total += math.exp(a[i] - top)
    return top, math.log(total)


@kernel
def normalise(a: Array) -> None:
    """Subtract the log of the sum of exp(a): the largest entry first, so that small remainders keep their digits."""
    top, rest = log_sum(a)
    for i in range(a.size):
        a[i] = (a[i] - top) - rest


@kernel
def mix(log_weight: Array, logits: Array, t: int, scratch: Array, out: Array) -> None:
    """Write the log probabilities of the mixture for row t; the members' logits become log probabilities."""
    for i in range(log_weight.size):
        normalise(logits[i, t])
    for k in range(out.size):
        for i in range(log_weight.size):
            scratch[i] = log_weight[i] + logits[i, t, k]
        top, rest = log_sum(scratch)
        out[k] = top + rest


@kernel
def cross_entropy(log_p: Array, y: Array) -> float:
    """The log loss of a label distribution."""
    loss = 0.0
    for k in range(y.size):
        loss -= y[k] * log_p[k]
    return loss


@kernel
def run(state: MixtureState, logits: Array, Y: Array, weight: Array, constants: MixtureConstants, out: Array) -> None:
    """The game over a block, given the members' forecasts `logits` of shape (N, n, K)."""
    log_weight, losses, tally = state
    log_prior, share = constants
    scratch = np.empty(log_weight.size)
    for t in range(Y.shape[0]):
        mix(log_weight, logits, t, scratch, out[t])
        if weight[t] == 0.0:
            continue
        record(tally, weight[t], weight[t] * cross_entropy(out[t], Y[t]), 0.0, 0.0)
        for i in range(log_weight.size):
            loss = weight[t] * cross_entropy(logits[i, t], Y[t])
            losses[i] += loss
            log_weight[i] -= loss
        normalise(log_weight)
        if share > 0.0:
            for i in range(log_weight.size):
                a, b = log_weight[i] + math.log1p(-share), log_prior[i] + math.log(share)
                log_weight[i] = max(a, b) + math.log1p(math.exp(-abs(a - b)))


@kernel
def forecast_block(log_weight: Array, logits: Array, out: Array) -> None:
    """The mixed forecasts of a block, all with the same weights."""
    scratch = np.empty(log_weight.size)
    for t in range(out.shape[0]):
        mix(log_weight, logits, t, scratch, out[t])
