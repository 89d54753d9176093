"""fit_sharded: learn one stream with several workers in parallel."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed

from regretless.core.blocks import Block
from regretless.core.learner import OnlineLearner
from regretless.core.merging import BY_ROWS, RULES, require_rule, require_sums
from regretless.core.rows import validate
from regretless.core.scikit_learn import clone
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
    rule: str = "balanced",
) -> Learner:
    r"""Learn the rows in `n_shards` parallel parts and merge them. Returns a new learner.

    The stream is cut into stretches of `n_shards` times m rows, and each stretch into `n_shards` parts of m rows. All
    workers start a stretch from the same state and learn one part; their new quadratics are added to that state, so
    that the common part counts once. Without `sync_every` there is one stretch: every part starts from the initial
    state, and all are merged at the end. The result depends on `n_shards` and m, not on the number of workers.

    **Guarantee.** That of `merge`: `regret_certificate()` covers all rows, with the losses of the forecasts that the
    workers made; each forecast misses at most the `n_shards` m rows of its own stretch. One shard equals one pass, to
    the bit.

    Parameters
    ----------
    learner : a learner that can be merged: `AIOLI`, `FOLKLORE`, `GAF` or `VovkAzouryWarmuth`. It is not changed.
    X, y, classes, sample_weight : as in `fit`. All rows are checked before any is learned.
    n_shards : the number of parts learned in parallel.
    sync_every : m, the rows per part; None means the number of rows divided by `n_shards`.
    n_jobs : the number of workers, as in joblib; `joblib.parallel_config` chooses the backend. The compiled loops
        release the GIL, so threads are sufficient.
    rule : how the first stretch is merged, as in `merge`. "rows" uses those of the second stretch, before they are
        learned. Later stretches are always added exactly: the rows of the common state may count only
        once in the certificate.

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
    8 None 1866.9 regret <= 165.8
    8 50 1818.0 regret <= 92.5
    """
    shards = validate.whole("n_shards", n_shards, 1)
    require_sums(learner)
    require_rule(rule, *RULES, BY_ROWS)
    game: Any = clone(learner)
    X, Y, weight = game._take_in(X, y, classes, sample_weight)
    n = X.shape[0]
    m = max(1, math.ceil(n / shards)) if sync_every is None else validate.whole("sync_every", sync_every, 1)
    if rule == BY_ROWS and shards > 1 and n <= shards * m:
        raise ValueError(
            f'rule="rows" uses the rows after the first {shards * m}, and there are {n}: choose a smaller '
            f"sync_every, or one of {RULES}."
        )
    with Parallel(n_jobs=n_jobs) as workers:
        for start in range(0, n, shards * m):
            stop = min(start + shards * m, n)
            parts = [slice(i, min(i + m, stop)) for i in range(start, stop, m)]
            states = workers(delayed(_learned)(game, X[part], Y[part], weight[part]) for part in parts)
            following = slice(stop, stop + shards * m)
            by_rows = rule == BY_ROWS and start == 0 and shards > 1
            join(game, states, rule, (X[following], Y[following], weight[following]) if by_rows else None)
    return game


def join(game: Any, states: Sequence[Any], rule: str, rows: tuple[Any, Array, Array] | None = None) -> None:
    """Give a learner the rows of several states, which started from its own; the given rows choose the rule."""
    game._parts = max(game._parts, len(states))
    by = rule if rows is None else game._rule_by(states, *rows)
    game.state_ = states[0] if len(states) == 1 else game._merged(states, game.state_, by)


def _learned(learner: Any, X: Any, Y: Array, weight: Array) -> Any:
    """The state after these rows. The learner is not changed."""
    own = copy.copy(learner)
    own.state_ = type(own.state_)(*(np.array(array) for array in own.state_))
    Block(own, X, Y, weight, keep=False).learn_to(X.shape[0])
    return own.state_
