"""fit_sharded: one stream, learned by several workers at a time."""

from __future__ import annotations

import copy
import math
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from regretless.core import validate
from regretless.core.blocks import Block
from regretless.core.learner import OnlineLearner
from regretless.core.merging import require_sums
from regretless.core.types import Array

Learner = TypeVar("Learner", bound=OnlineLearner)


def fit_sharded(
    learner: Learner,
    X: Any,
    y: Any,
    n_shards: int,
    sync_every: int | None = None,
    classes: Any = None,
    n_jobs: int | None = None,
    sample_weight: Any = None,
) -> Learner:
    r"""A new learner of these rows, learned in `n_shards` parts at a time and merged.

    The stream is cut into stretches of `n_shards` times m rows, each into `n_shards` parts of m rows. All workers start
    a stretch from the same state, learn their part of it, and their new quadratics are added to that state; what they
    had in common is counted once. Without `sync_every` there is one stretch: every worker starts from nothing, and all
    is merged at the end. The result depends on `n_shards` and m, not on how many workers there are.

    **Guarantee.** That of `merge`: `regret_certificate()` covers all rows, with the losses of the forecasts that the
    workers made, each of which lacks at most the `n_shards` m rows of its own stretch. One shard is one pass, to the
    bit.

    Parameters
    ----------
    learner : what can be merged: `AIOLI`, `FOLKLORE`, `GAF`, `VovkAzouryWarmuth`. It stays as it is.
    X, y, classes, sample_weight : as `fit` takes them. All rows are checked before any is learned.
    n_shards : the parts that are learned at a time.
    sync_every : m, the rows of a part; None means as many as there are, divided by `n_shards`.
    n_jobs : workers, as joblib counts them; `joblib.parallel_config` chooses their kind. The compiled loops leave
        Python's lock alone, so threads do.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import AIOLI, fit_sharded
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 5)) / np.sqrt(5)
    >>> y = rng.random(4000) < 1 / (1 + np.exp(-X @ [3, -3, 2, 0, 1]))
    >>> for n_shards, m in ((1, None), (8, None), (8, 50)):
    ...     learner = fit_sharded(AIOLI(radius=5.0), X, y, n_shards, sync_every=m)
    ...     print(n_shards, m, f"{learner.total_loss_:.1f} regret <= {learner.regret_certificate():.1f}")
    1 None 1787.8 regret <= 34.7
    8 None 1866.9 regret <= 166.5
    8 50 1824.4 regret <= 95.0
    """
    shards = validate.whole("n_shards", n_shards, 1)
    require_sums(learner)
    game: Any = clone(learner)
    X, Y, weight = game._take_in(X, y, classes, sample_weight)
    n = X.shape[0]
    m = max(1, math.ceil(n / shards)) if sync_every is None else validate.whole("sync_every", sync_every, 1)
    with Parallel(n_jobs=n_jobs) as workers:
        for start in range(0, n, shards * m):
            stop = min(start + shards * m, n)
            parts = [slice(i, min(i + m, stop)) for i in range(start, stop, m)]
            states = workers(delayed(_learned)(game, X[part], Y[part], weight[part]) for part in parts)
            game.state_ = states[0] if len(states) == 1 else game._merged(states, game.state_)
            game._parts = max(game._parts, len(states))
    return game


def _learned(learner: Any, X: Any, Y: Array, weight: Array) -> Any:
    """The state after these rows, of a learner that stays as it is."""
    own = copy.copy(learner)
    own.state_ = type(own.state_)(*(np.array(array) for array in own.state_))
    Block(own, X, Y, weight, keep=False).learn_to(X.shape[0])
    return own.state_
