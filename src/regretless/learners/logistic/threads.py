"""The game of OnlineLogisticRegression over a block, with its members divided among threads where that pays.

Members depend neither on one another nor on the mixture, so the result is that of `Game.run`, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable

from regretless.core.interrupts import uninterrupted
from regretless.core.kernels import products
from regretless.core.kernels.products import one_thread_per_product, several_threads, share
from regretless.core.types import Array
from regretless.learners.logistic import effort, forest
from regretless.learners.logistic.game import READY, Game, finish, mixture_of, new_desk, whole
from regretless.learners.logistic.members import Told
from regretless.learners.logistic.mixing import Rules
from regretless.learners.logistic.scaling import COUNT, blank, rescale
from regretless.learners.logistic.state import LogisticState

FOREST = "forest"


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
    state, constants, shape = game.state, game.constants, game.shape
    X, Y, weight = whole(X), whole(Y), whole(weight)
    n, m = len(X), min(len(X), shape.at_once)
    desk = new_desk(shape, m)
    logits, game.desk.marks[READY] = desk.logits, 0
    trees, grove = state.forest_sizes.size, forest.forest_of(state)
    for start in range(0, n, m):
        some = slice(start, min(n, start + m))
        wanted, shares, before = some.stop, longest_first(game), forest.known(state.moments)

        def play_forest(some: slice = some, before: Array = before) -> int:
            return forest.run(
                grove, before, X[some], Y[some], weight[some], logits[shape.forest, : some.stop - some.start]
            )

        if trees and forest.fits(state, some.stop - start):
            shares.insert(0, (FOREST, 0, 0))
        elif trees:  # the other members play the rows that it has room for
            some = slice(start, start + play_forest())
        r = some.stop - start
        own = X[some], desk.rows[:r], desk.ranged[:r], state.moments[COUNT].copy(), Y[some], weight[some]
        told = Told(*own, desk.splines, desk.places, False)
        rescale(state.moments, told.X, told.weight, told.rows, told.ranged)
        blank(told.ranged, constants.blind)

        def play_share(
            given: tuple[str, int, int], told: Told = told, play_forest: Callable[[], int] = play_forest
        ) -> None:
            name, first, last = given
            if name == FOREST:
                play_forest()
            else:
                game.play_part(name, told, first, last, logits)

        with one_thread_per_product():
            share(play_share, shares, r * _operations(state))
        finish(mixture_of(state, constants), told, desk, Rules(constants.shares, reserves, False), out[some])
        if some.stop < wanted:
            return some.stop
    return n


def longest_first(game: Game) -> list[tuple[str, int, int]]:
    """The parts, divided into members where a part allows it, and those that take longest first."""
    alone = [(name, 0, 0) for name in ("splines", "fourier", "products") if name in game.parts]
    certified = [("certified", i, i + 1) for i in range(game.shape.certified)]
    return [*certified, *alone, *(("linear", i, i + 1) for i in range(game.shape.linear))]
