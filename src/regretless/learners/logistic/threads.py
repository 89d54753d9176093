"""The game of OnlineLogisticRegression over a block, with its members divided among threads where that pays.

Members depend neither on one another nor on the mixture, so the result is that of `Game.run`, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable

from regretless.core import products
from regretless.core.interrupts import uninterrupted
from regretless.core.products import one_thread_per_product, several_threads, share
from regretless.core.types import Array
from regretless.learners.logistic import effort, forest
from regretless.learners.logistic.expanded import forest_place
from regretless.learners.logistic.game import READY, Game, Told, finish, known, new_desk, rows_at_once, whole
from regretless.learners.logistic.scaling import COUNT, blank, rescale
from regretless.learners.logistic.state import LogisticState

FOREST = -1


def play(game: Game, X: Array, Y: Array, weight: Array, reserves: bool, out: Array) -> int:
    """`Game.run`, on threads where that pays."""
    playing = run if pays(game.state, len(X)) and several_threads() else Game.run
    return playing(game, X, Y, weight, reserves, out)


def pays(state: LogisticState, n_rows: int) -> bool:
    """Whether two threads or more are worth waking for a block."""
    return min(n_rows, 64) * _operations(state) >= 2.0 * products.WORTH_A_THREAD


def _operations(state: LogisticState) -> float:
    """Multiplications and additions per row: nearly all are those of matrices."""
    matrices = state.matrices.size + state.spline_matrices.size + state.fourier_matrices.size
    K = state.slots.size
    of_forest = effort.forest_cost(state.forest_sizes.size, state.moments.shape[1], K)
    return 4.0 * (matrices + state.product_matrices.size) + 2.0 * state.P.size * (K if K > 2 else 2) + of_forest


@uninterrupted()
def run(game: Game, X: Array, Y: Array, weight: Array, reserves: bool, out: Array) -> int:
    """`Game.run` with its members divided among threads."""
    state, constants = game.state, game.constants
    X, Y, weight = whole(X), whole(Y), whole(weight)
    n, m = len(X), rows_at_once(state, constants, len(X))
    desk = new_desk(state, constants, m)
    logits, game.desk.marks[READY] = desk.logits, 0
    certified, expanded, trees = len(constants.radii), constants.members.linear, state.forest_sizes.size
    longest_first = [*range(certified), expanded, *range(certified, expanded)]
    for start in range(0, n, m):
        some = slice(start, min(n, start + m))
        wanted, parts, before = some.stop, longest_first, known(state)

        def play_forest(some: slice = some, before: Array = before) -> int:
            said = logits[forest_place(constants), : some.stop - some.start]
            return forest.run(state, before, X[some], Y[some], weight[some], said)

        if trees and forest.fits(state, some.stop - start):
            parts = [FOREST, *longest_first]
        elif trees:  # the other members play the rows that it has room for
            some = slice(start, start + play_forest())
        r = some.stop - start
        own = X[some], desk.rows[:r], desk.ranged[:r], state.moments[COUNT].copy(), Y[some], weight[some]
        told = Told(*own, desk.splines, desk.places, False)
        rescale(state.moments, told.X, told.weight, told.rows, told.ranged)
        blank(told.ranged, constants.blind)

        def play_part(i: int, told: Told = told, r: int = r, play_forest: Callable[[], int] = play_forest) -> None:
            if i == FOREST:
                play_forest()
            else:
                game.kernels.members(game.table.address, i, i + 1, told, logits)

        with one_thread_per_product():
            share(play_part, parts, r * _operations(state))
        finish(state, constants, told, logits[:, :r], desk.room, reserves, out[some])
        if some.stop < wanted:
            return some.stop
    return n
