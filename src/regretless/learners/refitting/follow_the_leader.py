"""Follow the leader on linear losses, which fails for lack of regularization."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from regretless.core.errors import NoBound
from regretless.core.rows.compressed import Entries
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.types import Array
from regretless.learners.first_order.learner import LinearLearner
from regretless.learners.first_order.linear import (
    FIRST_ORDER_TALLIES,
    GRADIENTS,
    WEIGHTS,
    count,
    loss_and_slope,
    move,
    product,
    publish,
    scores,
)
from regretless.theory.domains import Box, Competition, Domain, RowBall, WholeSpace
from regretless.theory.losses import LINEAR


class LeaderState(NamedTuple):
    """The state of `FollowTheLeader`."""

    table: Array  # (d, 2, 1): the leader, and the sum of gradients
    tally: Array  # see tally.py and linear.py


class LeaderConstants(NamedTuple):
    """The loss, by its code, and the set of weights."""

    loss: int
    domain: Domain


class FollowTheLeader(LinearLearner):
    r"""Follow the leader: play the weights of the set that were best so far, for linear losses.

    **Choose it when** you want to show why regularization is needed. Not for forecasting.

    .. math:: w_{t+1} = \arg\min_{w \in W} \sum_{s \le t} y_s\, w \cdot x_s

    The loss of the forecast z = w.x is y z: the target is the slope. The first weights are those of the set nearest
    to 0; `regretless.domains` says how ties are broken. In statistics this is empirical risk minimisation; against an
    adversary it fails. On [-1, 1] with the losses w/2, -w, w, -w, ... the leader jumps from end to end and loses 1 per
    row, T - 1 in total, while w = 0 loses nothing ([notes]_). Regularization solves this: see `FTRL`, and for linear
    losses `OGD` and `MirrorDescent`.

    **Guarantee.** None. `regret_certificate()` is exactly the regret so far.

    Parameters
    ----------
    domain : a bounded set of `regretless.domains`: Box, Ball, Simplex, SubSimplex or Octahedron.

    Attributes
    ----------
    coef_ : the leader, (1, d).
    state_ : `table` (weights and sum of gradients) and `tally`.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import FollowTheLeader
    >>> from regretless.theory.domains import Box
    >>> slope = np.where(np.arange(1000) % 2, -1.0, 1.0)
    >>> slope[0] = 0.5
    >>> learner = FollowTheLeader(Box(1.0))
    >>> forecast = learner.predict_then_learn(np.ones((1000, 1)), slope)
    >>> print(forecast @ slope, learner.regret_certificate())
    999.0 999.5

    References
    ----------
    .. [notes] Key `ogd-notes` of REFERENCES.bib, the need for regularization.
    """

    loss = "linear"
    multiclass = "softmax"  # not used: the loss is for regression
    state_: LeaderState
    _constants: LeaderConstants
    _one_step = False

    def __init__(self, domain: Domain = Box(1.0)) -> None:  # noqa: B008 (frozen)
        self.domain = domain

    def _prepare(self, n_features: int, n_classes: int) -> LeaderConstants:
        if not isinstance(self.domain, Domain) or isinstance(self.domain, WholeSpace | RowBall):
            raise ValueError(
                f"domain={self.domain!r}: a linear loss has a leader only on a bounded set. Choose Box, Ball, Simplex, "
                "SubSimplex or Octahedron from regretless.domains."
            )
        return LeaderConstants(LINEAR, self.domain)

    def _start(self, n_features: int, n_classes: int) -> LeaderState:
        table = np.zeros((n_features, 2, 1))
        table[:, WEIGHTS, 0] = self._constants.domain.project(np.zeros(n_features))
        return LeaderState(table, np.zeros(FIRST_ORDER_TALLIES))

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        return 2 * n_features

    @property
    def competes_with(self) -> Competition:
        """The best weights of the set, under the linear loss."""
        return Competition("linear", self._in_play.domain)

    def regret_bound(self, n: int | None = None) -> float:
        """Raises `NoBound`."""
        check_is_fitted(self, "state_")
        raise NoBound(
            "FollowTheLeader has no regret bound: on the losses w/2, -w, w, -w, ... over [-1, 1] it loses 1 per row. "
            "regret_certificate() is its regret so far; FTRL, OGD and MirrorDescent have bounds."
        )

    def _learn(self, rows: Entries, Y: Array, weight: Array, out: Array) -> None:
        table, tally = self.state_
        w, gradients = table[:, WEIGHTS], table[:, GRADIENTS]
        z, s, scratch = np.empty(1), np.empty(1), np.empty(1)
        indptr, indices, data = rows
        for t in range(indptr.size - 1):
            first, last = indptr[t], indptr[t + 1]
            square = scores(w, indices, data, first, last, z)
            publish(z, out[t])
            if weight[t] == 0.0:
                continue
            loss = loss_and_slope(LINEAR, z, Y[t], s, scratch)
            size = float(weight[t] * abs(s[0]) * square**0.5)
            count(tally, weight[t], loss, weight[t] * product(s, z), square, size)
            move(gradients, indices, data, first, last, weight[t], s)
            w[:, 0] = self._constants.domain.minimise_linear(gradients[:, 0])
