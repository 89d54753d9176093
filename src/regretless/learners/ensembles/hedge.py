"""Hedge: follow several learners, weighted by their mistakes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from regretless.core.files import state_checks
from regretless.core.interrupts import uninterrupted
from regretless.core.kernels.copying import copy_line
from regretless.core.kernels.jit import kernel
from regretless.core.learner import OnlineClassifier
from regretless.core.numbers.links import leader
from regretless.core.numbers.tally import LOSS, ROWS, TALLIES, record, require_unit_weights
from regretless.core.scikit_learn import available_if, check_is_fitted
from regretless.core.types import Array
from regretless.learners.ensembles import side_by_side
from regretless.learners.ensembles.ensemble import Ensemble
from regretless.theory import bounds


class HedgeState(NamedTuple):
    """The state of Hedge over N experts, apart from what these have learned."""

    losses: Array  # (N,): the mistakes of each expert
    gap: Array  # (1,): the sum of the mixability gaps, which sets the rate
    tally: Array


def _forecasts_probabilities(hedge: Any) -> bool:
    """False: the shares of a vote are not probabilities of labels."""
    return False


class Hedge(Ensemble):
    r"""Hedge over any learners: almost as few mistakes as the best of N.

    **Choose it when** you have several classifiers, some without probabilities, and want almost as few mistakes as the
    best of them.

    Each expert votes for its most probable label. A label is drawn from the vote

    .. math:: p_k = \sum_{i\ \mathrm{says}\ k} w_i, \qquad w_i \propto e^{-\eta M_i}

    with :math:`M_i` the mistakes of expert i so far: :math:`1 - p_y` is the chance of a mistake, and its sum the number
    of mistakes expected. The rate needs no tuning (AdaHedge, [AdaHedge]_): :math:`\eta = \ln N / \Delta` with
    :math:`\Delta` the sum so far of :math:`h - m`, where h is the loss of the row, and :math:`m = -\frac1\eta \ln\sum_i
    w_i e^{-\eta \ell_i}`; before the first gap the leaders share the vote. Unlike in `Mixture`, experts need not
    forecast probabilities (a `Perceptron`, an online SVM or a boosting can be one): only mistakes count.

    **Guarantee.** The expected mistakes are at most those of the best expert plus :math:`1 + \sqrt{1 + n \ln N}`
    (`regretless.bounds.hedge`), and at most those plus :math:`2\Delta`, a small constant if one expert is clearly the
    best. The label with the largest vote (`predict`) has at most twice as many mistakes.

    Parameters
    ----------
    estimators : a list of classifiers. They are not changed: clones of them learn every row.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of votes.
    estimators_ : the fitted experts.
    weights_ : their current shares of the vote.
    state_ : `losses` (the mistakes of each expert), `gap` and `tally`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from regretless import FOLKLORE, Hedge, OnlineBoosting, Perceptron
    >>> X, y = load_digits(return_X_y=True)
    >>> learner = Hedge([Perceptron(), FOLKLORE(radius=10.0), OnlineBoosting()])
    >>> votes = learner.predict_then_learn(X / 64, y, classes=range(10))
    >>> print(learner.state_.losses, f"{learner.total_loss_:.1f} expected")
    [310. 140. 130.] 134.8 expected
    >>> print(f"{learner.regret_certificate():.1f} above the best <= {learner.regret_bound():.1f}")
    4.8 above the best <= 45.4

    References
    ----------
    .. [AdaHedge] de Rooij, van Erven, Grünwald and Koolen (2014), key `adahedge` of REFERENCES.bib; Hedge itself is of
       Freund and Schapire (1997), key `hedge`.
    """

    state_: HedgeState

    def __init__(self, estimators: Sequence[OnlineClassifier]) -> None:
        self.estimators = estimators

    @classmethod
    def _example(cls) -> Self:
        from regretless.learners.first_order.ogd import OGD

        return cls([OGD(), OGD()])

    def _begin(self, n_features: int) -> None:
        self.estimators_ = side_by_side.begin(self._members, self._labels, self)
        super()._begin(n_features)

    def _prepare(self, n_features: int, n_classes: int) -> None:
        """Hedge has no constants: the rate follows from the rows."""

    def _start(self, n_features: int, n_classes: int) -> HedgeState:
        return HedgeState(np.zeros(len(self.estimators_)), np.zeros(1), np.zeros(TALLIES))

    def _check_state(self) -> None:
        super()._check_state()
        state_checks.within("gap", self.state_.gap, 0.0, math.inf)

    # ------------------------------------------------------------------ the game

    @uninterrupted()
    def _run(self, X: Any, Y: Array, weight: Array, out: Array) -> None:
        said = np.empty((len(self.estimators_), *out.shape))
        side_by_side.run(self.estimators_, X, [Y] * len(said), weight, said)
        run(self.state_, said, Y, weight, out)

    def _forecast(self, X: Any, out: Array) -> None:
        said = np.empty((len(self.estimators_), *out.shape))
        side_by_side.forecast(self.estimators_, X, said)
        forecast_block(self.state_.losses, self.state_.gap, said, out)

    def _said(self, out: Array) -> Array:
        return out

    @available_if(_forecasts_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Not available: votes are not probabilities."""
        return super().predict_proba(X)

    @available_if(_forecasts_probabilities)
    def predict_proba_one(self, x: Any) -> Array:
        """Not available: votes are not probabilities."""
        return super().predict_proba_one(x)

    @property
    def weights_(self) -> Array:
        """The experts' current shares of the vote, which sum to 1."""
        check_is_fitted(self, "state_")
        w = np.empty(self.state_.losses.size)
        weigh(self.state_.losses, self.state_.gap[0], w)
        return w

    # ------------------------------------------------------------------ certificate and bound

    @property
    def competes_with(self) -> None:  # type: ignore[override]
        """No set of weights: the best of its experts, by mistakes."""
        return None

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        """The expected mistakes so far minus those of the best expert: an exact value."""
        check_is_fitted(self, "state_")
        return float(self.state_.tally[LOSS] - self.state_.losses.min())

    def regret_bound(self, n: int | None = None) -> float:
        """An upper bound on the expected mistakes minus those of the best expert."""
        check_is_fitted(self, "state_")
        require_unit_weights(self.state_.tally)
        return bounds.hedge(int(self.state_.tally[ROWS]) if n is None else n, n_experts=self.state_.losses.size)


@kernel
def rate(gap: float, N: int) -> float:
    """eta: infinite while the gap is 0."""
    return math.log(N) / gap if gap > 0.0 and N > 1 else math.inf


@kernel
def tilt(losses: Array, eta: float, w: Array) -> tuple[float, float]:
    """w = exp(-eta (losses - least)); returns the least and the sum of w."""
    least, total = np.min(losses), 0.0
    for i in range(losses.size):
        behind = losses[i] - least
        w[i] = 1.0 if behind == 0.0 else math.exp(-eta * behind)
        total += w[i]
    return least, total


@kernel
def weigh(losses: Array, gap: float, w: Array) -> None:
    """The shares of the vote."""
    _, total = tilt(losses, rate(gap, losses.size), w)
    for i in range(w.size):
        w[i] /= total


@kernel
def vote(w: Array, said: Array, t: int, out: Array) -> None:
    """Add each expert's share to its most probable label."""
    out[:] = 0.0
    for i in range(w.size):
        out[leader(said[i, t])] += w[i]


@kernel
def run(state: HedgeState, said: Array, Y: Array, weight: Array, out: Array) -> None:
    """The game over a block, given the experts' forecasts `said` of shape (N, n, K)."""
    losses, gap, tally = state
    N = losses.size
    w, after, scratch = np.empty(N), np.empty(N), np.empty(N)
    for t in range(Y.shape[0]):
        weigh(losses, gap[0], w)
        vote(w, said, t, out[t])
        if weight[t] == 0.0:
            continue
        h = 0.0
        for i in range(N):
            loss = weight[t] * (1.0 - Y[t, leader(said[i, t])])
            h += w[i] * loss
            after[i] = losses[i] + loss
        eta = rate(gap[0], N)
        least, total = tilt(losses, eta, scratch)
        least_after, total_after = tilt(after, eta, scratch)
        m = least_after - least - math.log(total_after / total) / eta  # -ln(sum w exp(-eta loss)) / eta
        gap[0] += max(0.0, h - m)
        copy_line(after, losses)
        record(tally, weight[t], h, h, 0.0)


@kernel
def forecast_block(losses: Array, gap: Array, said: Array, out: Array) -> None:
    """The votes for a block, all with the same shares."""
    w = np.empty(losses.size)
    weigh(losses, gap[0], w)
    for t in range(out.shape[0]):
        vote(w, said, t, out[t])
