"""Several learners side by side: each meets every row as if it were alone, in one pass over the rows.

States of one kind and shape are put on one leading axis, so that K matrices of d by d are one array (K, d, d), of which
each learner has its slice. A few rows at a time go to all learners before the next rows, so that they are read from
memory once; kernels hold no lock, so learners run on several threads. Neither changes a bit of what a learner does:
blocks are rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
from sklearn.base import clone

from regretless.core.labels import Labels
from regretless.core.types import Array

CACHED = 1 << 17  # numbers: rows that stay in a cache while all learners meet them
WORTH_A_THREAD = 1 << 20  # multiplications: starting threads takes as long as some 100 000 of them
_inside = threading.local()  # a stack within a stack runs on the thread that it is on


def begin(learners: Sequence[Any], labels: Labels, like: Any) -> list[Any]:
    """Clones of learners that have begun a game on the rows that `like` plays, their states on one axis."""
    members = [clone(learner) for learner in learners]
    for member in members:
        member.n_features_in_ = like.n_features_in_
        if hasattr(like, "feature_names_in_"):
            member.feature_names_in_ = like.feature_names_in_
        member._meet_classes(labels)
        member._begin(like.n_features_in_)
    join(members)
    return members


def join(members: Sequence[Any]) -> None:
    """Put the states of learners on one leading axis, where they are of one kind and shape and do not grow."""
    states = [member.state_ for member in members]
    alike = {(type(state), *(array.shape for array in state)) for state in states}
    if len(alike) > 1 or any(member._growing or member._holds for member in members):
        return
    axis = [np.stack(arrays) for arrays in zip(*states, strict=True)]
    for i, member in enumerate(members):
        member.state_ = type(member.state_)(*(arrays[i] for arrays in axis))


def run(members: Sequence[Any], X: Any, targets: Any, weight: Array, out: Array) -> None:
    """The game of every member over a block, member i with `targets[i]`, its forecasts into `out[i]`."""
    some = max(64, 1 << (CACHED // max(X.shape[1], 1)).bit_length())
    n, least = X.shape[0], max(member._least_rows for member in members)
    stops = [*range(some, n - least + 1, some), n]

    def play(mine: Sequence[int]) -> None:
        for rows in map(slice, [0, *stops], stops):
            for i in mine:
                members[i]._run(X[rows], targets[i][rows], weight[rows], out[i][rows])

    _in_threads(play, members, X.shape[0])


def forecast(members: Sequence[Any], X: Any, out: Array) -> None:
    """The forecasts of every member for a block, changing nothing."""

    def say(mine: Sequence[int]) -> None:
        for i in mine:
            members[i]._forecast(X, out[i])

    _in_threads(say, members, X.shape[0])


def _in_threads(work: Callable[[Sequence[int]], None], members: Sequence[Any], n_rows: int) -> None:
    """Do the work of all members, shared among threads where there is enough of it."""
    numbers = sum(array.size for member in members for array in member.state_)
    threads = min(len(members), numba.get_num_threads())
    if threads == 1 or getattr(_inside, "a_stack", False) or n_rows * numbers < WORTH_A_THREAD:
        work(range(len(members)))
        return

    def shared(mine: Sequence[int]) -> None:
        _inside.a_stack = True
        work(mine)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(shared, [range(i, len(members), threads) for i in range(threads)]))
