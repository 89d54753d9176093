"""Run several independent learners in one pass over the rows.

States of the same type and shape share one array with a leading axis: K matrices of d by d are one array (K, d, d), and
each learner has a slice of it. All learners process a chunk of rows before the next chunk is read, so that rows are
read from memory once. Kernels release the GIL, so learners run on several threads. Neither changes the results by a
bit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np

from regretless.core.rows.labels import Labels
from regretless.core.scikit_learn import clone
from regretless.core.types import Array

CACHED = 1 << 17  # numbers: a chunk of rows that stays in the cache for all learners
WORTH_A_THREAD = 1 << 20  # multiplications: starting threads takes as long as about 100 000
_inside = threading.local()  # nested calls stay on the thread of the outer one


def begin(learners: Sequence[Any], labels: Labels, like: Any) -> list[Any]:
    """Clones of learners, ready for rows of the form that `like` takes, with joined states."""
    members = [clone(learner)._begin_like(like, labels) for learner in learners]
    join(members)
    return members


def join(members: Sequence[Any]) -> None:
    """Store the states of learners in shared arrays, if all have the same type and shape and do not grow."""
    states = [member.state_ for member in members]
    alike = {(type(state), *(array.shape for array in state)) for state in states}
    if len(alike) > 1 or any(member.grows or member.holds for member in members):
        return
    axis = [np.stack(arrays) for arrays in zip(*states, strict=True)]
    for i, member in enumerate(members):
        member.state_ = type(member.state_)(*(arrays[i] for arrays in axis))


def run(members: Sequence[Any], X: Any, targets: Any, weight: Array, out: Array) -> None:
    """Play every member over a block: member i with `targets[i]`, and its forecasts in `out[i]`."""
    some = max(64, 1 << (CACHED // max(X.shape[1], 1)).bit_length())
    n, least = X.shape[0], max(member.least_rows for member in members)
    stops = [*range(some, n - least + 1, some), n]

    def play(mine: Sequence[int]) -> None:
        for rows in map(slice, [0, *stops], stops):
            for i in mine:
                members[i]._run(X[rows], targets[i][rows], weight[rows], out[i][rows])

    _in_threads(play, members, X.shape[0])


def forecast(members: Sequence[Any], X: Any, out: Array) -> None:
    """The forecasts of every member for a block. Changes nothing else."""

    def say(mine: Sequence[int]) -> None:
        for i in mine:
            members[i]._forecast(X, out[i])

    _in_threads(say, members, X.shape[0])


def _in_threads(work: Callable[[Sequence[int]], None], members: Sequence[Any], n_rows: int) -> None:
    """Do the work of all members, on several threads if it is large enough."""
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
