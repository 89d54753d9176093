"""The parts of a game of OnlineLogisticRegression: one for each kind of members.

A part is compiled when the first learner that has such members plays. The game calls it by the address of its machine
code, with that of the table in which the state is listed (core/kernels/one_row.py). So a learner compiles what it has:
two thirds of what its game could have, with two classes and medium effort.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from regretless.core.kernels.jit import inlined_kernel, named_kernel
from regretless.core.kernels.one_row import Kinds, MachineCode, name_of, reader, type_of
from regretless.core.types import Array
from regretless.learners.logistic import adagrad, certified, expanded, forest, frequencies, newton
from regretless.learners.logistic.adagrad import WEIGHTS
from regretless.learners.logistic.forest import forest_of
from regretless.learners.logistic.linear import forecast_block
from regretless.learners.logistic.members import Constants, Told
from regretless.learners.logistic.newton import VERSION
from regretless.learners.logistic.scaling import RANGED
from regretless.learners.logistic.state import LogisticState

newton_run, adagrad_run, frequencies_run = newton.run, adagrad.run, frequencies.run
frequencies_forecast = frequencies.forecast_block
forest_run, forest_forecast = forest.run, forest.forecast_block


class Parts(NamedTuple):
    """The address of each part; 0 where there are no such members."""

    certified: int = 0  # part(address, told, first, last, logits), with its members from `first` to `last` - 1
    linear: int = 0
    splines: int = 0
    fourier: int = 0
    products: int = 0
    forest: int = 0  # part(address, known, X, Y, weight, said), or part(address, X, said) to forecast


# ---------------------------------------------------------------------- members on rescaled rows


@inlined_kernel
def run_linear(s: LogisticState, c: Constants, told: Told, first: int, last: int, logits: Array) -> None:
    """Play a block with some members from Newton to the label frequencies; `logits` as in certified.py."""
    M, N, R = s.P.shape[0], s.matrices.shape[0], s.tables.shape[0]
    Y, weight, versions, ready = told.Y, told.weight, (told.rows, told.ranged), told.ready
    i, j = first, min(last, N)
    if i < j:
        newton_run(s.matrices[i:j], s.weights[i:j], c.newton[i:j], versions, Y, weight, ready, logits[M + i : M + j])
    i, j = max(first - N, 0), min(last - N, R)
    if i < j:
        said = logits[M + N + i : M + N + j]
        adagrad_run(s.tables[i:j], s.slopes[i:j], c.rates[i:j], versions, Y, weight, said)
    if last > N + R:
        frequencies_run(s.counts, Y, weight, logits[M + N + R, : Y.shape[0]])


@inlined_kernel
def forecast_linear(s: LogisticState, c: Constants, told: Told, first: int, last: int, logits: Array) -> None:
    """The logits of a block, all from the same state, of all of these members."""
    M, N, R, n = s.P.shape[0], s.weights.shape[0], s.tables.shape[0], told.rows.shape[0]
    for i in range(N):
        rows = told.ranged if c.newton[i, VERSION] == RANGED else told.rows
        forecast_block(s.weights[i], rows, logits[M + i, :n])
    for i in range(R):
        rows = told.ranged if c.rates[i, 2] == RANGED else told.rows
        forecast_block(s.tables[i, WEIGHTS], rows, logits[M + N + i, :n])
    frequencies_forecast(s.counts, logits[M + N + R, :n])


# ---------------------------------------------------------------------- parts, compiled

RUN: dict[str, Any] = {
    "aioli": certified.run_aioli,
    "folklore": certified.run_folklore,
    "linear": run_linear,
    "splines": expanded.run_splines,
    "fourier": expanded.run_fourier,
    "products": expanded.run_products,
}
FORECAST: dict[str, Any] = {
    "aioli": certified.forecast_aioli,
    "folklore": certified.forecast_folklore,
    "linear": forecast_linear,
    "splines": expanded.forecast_splines,
    "fourier": expanded.forecast_fourier,
    "products": expanded.forecast_products,
}
TABLE, LINE = np.empty((0, 0)), np.empty(0)


def some_rows() -> Told:
    """No rows, for the types that parts are called with."""
    return Told(TABLE, TABLE, TABLE, LINE, TABLE, LINE, TABLE, np.empty(0, dtype=np.int64), False)


PART: Kinds = tuple(map(type_of, (0, some_rows(), 0, 0, np.empty((0, 0, 0)))))
FOREST_RUN: Kinds = tuple(map(type_of, (0, TABLE, TABLE, TABLE, LINE, TABLE)))
FOREST_FORECAST: Kinds = tuple(map(type_of, (0, TABLE, TABLE)))


class Part:
    """A part, compiled."""

    __slots__ = ("address", "play")

    def __init__(self, play: Callable[..., Any], name: str, kinds: Kinds) -> None:
        self.play = named_kernel(play, name)
        self.address: int = MachineCode(self.play, kinds).address


class Code:
    """The parts for tables of one Numba type, `game.Listed`."""

    def __init__(self, kind: Any) -> None:
        self.kind, self.opened = kind, reader(kind)
        self._found: dict[tuple[str, str], Part] = {}

    def part(self, verb: str, name: str) -> Part:
        """The part that runs or forecasts members of this name; it is compiled on first use."""
        if (verb, name) not in self._found:
            if name == "forest":
                play: Callable[..., Any] = self._forest_run() if verb == "run" else self._forest_forecast()
                kinds = FOREST_RUN if verb == "run" else FOREST_FORECAST
            else:
                play, kinds = self._members(RUN[name] if verb == "run" else FORECAST[name]), PART
            self._found[verb, name] = Part(play, name_of(self.kind, verb, name), kinds)
        return self._found[verb, name]

    def addresses(self, verb: str, names: dict[str, str]) -> Parts:
        """Those of the parts of these names, by the fields of `Parts`."""
        return Parts(**{field: self.part(verb, name).address for field, name in names.items()})

    def _members(self, play: Any) -> Callable[..., None]:
        opened = self.opened

        def part(address: int, told: Told, first: int, last: int, logits: Array) -> None:
            listed = opened(address)
            play(listed.state, listed.constants, told, first, last, logits)

        return part

    def _forest_run(self) -> Callable[..., int]:
        opened = self.opened

        def run(address: int, known: Array, X: Array, Y: Array, weight: Array, said: Array) -> int:
            found: int = forest_run(forest_of(opened(address).state), known, X, Y, weight, said)
            return found

        return run

    def _forest_forecast(self) -> Callable[..., None]:
        opened = self.opened

        def forecast(address: int, X: Array, said: Array) -> None:
            state = opened(address).state
            forest_forecast(forest_of(state), state.moments, X, said)

        return forecast


def parts_of(state: LogisticState, constants: Constants) -> dict[str, str]:
    """The names of the parts that a state has members for, by the fields of `Parts`."""
    found = {
        "certified": len(state.P) and ("aioli" if state.slots.size == 2 else "folklore"),
        "linear": "linear",
        "splines": len(constants.splines) and "splines",
        "fourier": len(constants.fourier) and "fourier",
        "products": len(constants.products) and "products",
        "forest": state.forest_sizes.size and "forest",
    }
    return {field: str(name) for field, name in found.items() if name}
