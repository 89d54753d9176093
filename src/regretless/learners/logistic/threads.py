"""The game of OnlineLogisticRegression with its members divided among threads, for wide rows or many classes.

Members depend neither on one another nor on the mixture, so the result is that of `game.run`, to the bit.
"""

from __future__ import annotations

import numpy as np

from regretless.core import products
from regretless.core.interrupts import uninterrupted
from regretless.core.products import one_thread_per_product, share
from regretless.core.types import Array
from regretless.learners.logistic import expanded
from regretless.learners.logistic.expanded import Given
from regretless.learners.logistic.game import Told, finish, play_linear, rows_at_once
from regretless.learners.logistic.members import Constants
from regretless.learners.logistic.scaling import COUNT, rescale
from regretless.learners.logistic.state import LogisticState

EXPANDED = -1  # all members on expanded rows, which take turns in one block of memory


def pays(state: LogisticState, n_rows: int) -> bool:
    """Whether two threads or more are worth waking for a block."""
    return min(n_rows, 64) * _operations(state) >= 2.0 * products.WORTH_A_THREAD


def _operations(state: LogisticState) -> float:
    """Multiplications and additions per row: nearly all are those of matrices."""
    matrices = state.matrices.size + state.spline_matrices.size + state.fourier_matrices.size
    K = state.slots.size
    return 4.0 * (matrices + state.product_matrices.size) + 2.0 * state.P.size * (K if K > 2 else 2)


@uninterrupted()
def run(
    state: LogisticState, X: Array, Y: Array, weight: Array, constants: Constants, reserves: bool, out: Array
) -> None:
    """`game.run` with its members divided among threads."""
    n, K, d = len(X), Y.shape[1], state.tables.shape[3]
    m = rows_at_once(state, constants, n)
    Z, by_range, logits = np.empty((m, d)), np.empty((m, d)), np.empty((constants.prior.size, m, K))
    certified, linear = len(constants.radii), constants.members.linear
    longest_first = [*range(certified), EXPANDED, *range(certified, linear)]
    for start in range(0, n, m):
        some = slice(start, min(n, start + m))
        r = some.stop - start
        told = Told(X[some], Z[:r], by_range[:r], state.moments[COUNT].copy(), Y[some], weight[some])
        rescale(state.moments, told.X, told.weight, told.rows, told.ranged)

        def play(i: int, told: Told = told, r: int = r) -> None:
            if i == EXPANDED:
                given = Given(told.X, told.rows, told.counts)
                expanded.run(state, constants, given, told.Y, told.weight, logits)
            else:
                play_linear(state, constants, i, told, logits[i, :r])

        with one_thread_per_product():
            share(play, longest_first, r * _operations(state))
        finish(state, constants, told, logits[:, :r], reserves, out[some])
