"""One row, one compiled call: what `learn_one` and `predict_one` of every learner use in the usual case.

A call from Python to compiled code takes about 80 ns per array, and half a microsecond for a NamedTuple: more than the
arithmetic of a short row. So the arrays and numbers of a learner are listed once, as addresses, sizes and values in one
table (`RowCall`), and a call passes the table's address, the row and the label. Compiled code rebuilds the NamedTuples
from the table, which costs nothing measurable, checks the row, and calls the kernels that learn and forecast blocks. It
calls them by the addresses of their machine code, which are in the table too: called by name, they would be compiled
once more, as a part of each call. Results are the same to the bit.

A `RowCall` belongs to one state and to one tuple of constants, and holds references to both. It is no part of the
learner: copies, pickles and model files are without it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from itertools import count
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numpy import ndarray
from numpy.typing import NDArray
from scipy import sparse

from regretless.core.kernels.borrow import keep
from regretless.core.kernels.jit import inlined_kernel, kernel, named_kernel, summing_kernel
from regretless.core.numbers.links import leader, to_probabilities
from regretless.core.rows.compressed import Entries, grid_of_one
from regretless.core.rows.validate import LARGEST_TARGET
from regretless.core.types import FLOAT, Array

Kinds = tuple[Any, ...]  # Numba types
TUPLE: Any = types.BaseTuple
numba_config: Any = config  # has no types
type_of: Any = numba.typeof
fill: Any = populate_array
element: Any = cgutils.gep_inbounds
unpack: Any = cgutils.unpack_tuple
if_unlikely: Any = cgutils.if_unlikely
tuple_of: Any = types.Tuple
INDEX = np.dtype(np.int32)
ROW: Any = types.Array(types.float64, 1, "A")
COMPRESSED_ROW: Kinds = (type_of(np.empty(0, INDEX)), type_of(np.empty(0, INDEX)), type_of(np.empty(0)))
CSR = {sparse.csr_matrix, sparse.csr_array}
WIDEST_DENSE = 2**18  # columns of a dense row that is learned in compressed form


class RowKernels(NamedTuple):
    """The kernels of a learner, for blocks, and what they are called with: a row is a block of length one."""

    run: Callable[..., Any]  # run(state, rows, Y, weight, constants, out); may return the number of rows learned
    forecast: Callable[..., Any]  # forecast(state, rows, constants, out)
    state: Any  # a tuple of arrays, or the address of a `Table`: a large state takes longer to pass than a short row
    constants: Any  # a NamedTuple of numbers and arrays
    entries: bool = False  # whether the kernels take rows in compressed form, `Entries`
    codes: dict[Any, int] | None = None  # the columns of Y by label; None for a regressor
    order: NDArray[np.intp] | None = None  # the columns of the forecasts by class; None if they are in order
    width: int = 0  # the number of columns
    largest: float = math.inf  # |x|
    largest_entry: float = math.inf
    largest_target: float = LARGEST_TARGET  # of a regressor
    held: Any = None  # where `state` is the address of a table: the `Table`, which must live as long as the calls


class Workspace(NamedTuple):
    """What compiled calls use besides the state and the constants."""

    Y: Array
    weight: Array
    out: Array
    indptr: NDArray[np.int64]  # of a dense row in compressed form
    indices: NDArray[np.uint32]
    width: int  # the number of columns
    dense: int  # the same, -1 if dense rows are too wide for this
    largest_square: float  # |x|^2
    largest_entry: float
    run: int  # the addresses of the kernels
    forecast: int


class Listed(NamedTuple):
    """Everything that is in the table."""

    state: Any
    constants: Any
    work: Workspace


class RowCall:
    """The compiled calls of a learner for its present state, constants and labels; `calls` is None if it has none."""

    __slots__ = ("address", "calls", "codes", "constants", "held", "kernels", "labels", "order", "shape", "state")

    def __init__(self, learner: Any) -> None:
        attributes = learner.__dict__
        self.state, self.constants = attributes["state_"], attributes["_constants"]
        self.labels = attributes.get("_labels")
        self.calls: Calls | None = None
        self.shape: tuple[int, ...] = ()
        self.order: NDArray[np.intp] | None = None
        kernels: RowKernels | None = None if numba_config.DISABLE_JIT else learner._row_kernels()
        if kernels is None or not can_be_listed((kernels.state, kernels.constants)):
            return
        out: Array = learner._new_forecasts(1)
        width = kernels.width or learner.n_features_in_
        self.kernels, self.shape, self.codes, self.order = kernels, out.shape, kernels.codes, kernels.order
        too_wide = kernels.entries and width > WIDEST_DENSE
        indptr, indices = grid_of_one(width if kernels.entries and not too_wide else 0)
        work = Workspace(
            Y=np.zeros(out.shape),
            weight=np.ones(1),
            out=out,
            indptr=indptr,
            indices=indices,
            width=width,
            dense=-1 if too_wide else width,
            largest_square=kernels.largest * kernels.largest,
            largest_entry=kernels.largest_entry,
            run=0,
            forecast=0,
        )
        listed = Listed(kernels.state, kernels.constants, work)
        kind = type_of(listed)
        self.calls = ready_calls(kernels.run, kernels.forecast, kernels.entries, kind)
        work = work._replace(run=self.calls.learning.address, forecast=self.calls.saying.address)
        self.held = Table(listed._replace(work=work), kind)
        self.address = self.held.address

    def learn(self, row: Any, y: Any) -> bool:
        """Learn a row; False, without any change, if that is not possible: a row or a label may be unusual."""
        calls = self.calls
        if calls is None:
            return False
        try:
            target = self.target(y) if self.codes is None else self.codes[y]
        except (KeyError, TypeError):  # an unknown label, or label probabilities
            return False
        if target is None:
            return False
        if type(row) is ndarray:
            return calls.learn(self.address, row, target)
        return calls.learn_entries is not None and calls.learn_entries(self.address, *row, target)

    def target(self, y: Any) -> float | None:
        """The number of a usual target of a regressor; None for others."""
        largest = self.kernels.largest_target
        return float(y) if isinstance(y, float | int) and -largest < y < largest else None

    def scores(self, row: Any) -> Array | None:
        """The forecast of a row, as a block of length one; None if that is not possible."""
        out = np.empty(self.shape)
        if self._forecast(row, out, False) < 0:
            return None
        return out if self.order is None else out.take(self.order, axis=1)

    def probabilities(self, row: Any) -> Array | None:
        """The same as probabilities, without the axis of the block."""
        out, order = np.empty(self.shape), self.order
        if self._forecast(row, out, order is None) < 0:
            return None
        if order is not None:
            out = out.take(order, axis=1)
            to_probabilities(out)
        found: Array = out[0]
        return found

    def winner(self, row: Any) -> int | None:
        """The index of the first class with the largest score."""
        if self.order is not None:
            out = self.scores(row)
            return None if out is None else int(out.argmax())
        found = self._forecast(row, np.empty(self.shape), False)
        return None if found < 0 else found

    def _forecast(self, row: Any, out: Array, as_probabilities: bool) -> int:
        """Forecast a row; returns what `winner` does if slots and classes are in the same order, -1 if not possible."""
        calls = self.calls
        if calls is None:
            return -1
        if type(row) is ndarray:
            return calls.forecast(self.address, row, out, as_probabilities)
        found = calls.forecast_entries
        return -1 if found is None else found(self.address, *row, out, as_probabilities)


def entries_of(x: Any, width: int) -> tuple[Any, Any, Any] | None:
    """`indptr`, `indices` and `data` of a SciPy CSR row in the types of the kernels; None if it has others."""
    if type(x) not in CSR or x.shape != (1, width):
        return None
    indptr, indices, data = x.indptr, x.indices, x.data
    plain = data.dtype is FLOAT and indices.dtype is INDEX and indptr.dtype is INDEX
    aligned = data.flags.carray and indices.flags.carray and indptr.flags.carray
    return (indptr, indices, data) if plain and aligned else None


# ---------------------------------------------------------------------- the table


class Table:
    """Arrays and numbers in tuples, listed once for compiled calls. The address is valid as long as this object."""

    __slots__ = ("address", "held", "kind")

    def __init__(self, contents: tuple[Any, ...], kind: Any = None) -> None:
        self.kind = type_of(contents) if kind is None and not numba_config.DISABLE_JIT else kind
        self.address: Any = contents
        self.held: tuple[Any, ...] = (contents,)
        if not numba_config.DISABLE_JIT:
            table = np.array([*_numbers(contents)], dtype=np.int64)
            self.held, self.address = (contents, table), table.ctypes.data


def can_be_listed(value: Any) -> bool:
    """Whether a `Table` can have it: arrays as they lie in memory, and numbers."""
    if isinstance(value, tuple):
        return all(can_be_listed(part) for part in value)
    if isinstance(value, np.ndarray):
        return bool(value.flags.c_contiguous and value.flags.aligned)
    return value is None or type(value) in (bool, int, float)


def form_of(value: Any) -> Any:
    """What the Numba type of a table's contents depends on: `type_of` takes as long as some rows for many arrays."""
    if isinstance(value, tuple):
        return type(value), *map(form_of, value)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.ndim, value.flags.writeable, value.flags.c_contiguous
    return type(value)


def _numbers(value: Any) -> Iterator[int]:
    """Tuples part by part; an array by its address and shape; a float by its bits."""
    if isinstance(value, tuple):
        for part in value:
            yield from _numbers(part)
    elif isinstance(value, np.ndarray):
        yield value.ctypes.data
        yield from value.shape
    elif isinstance(value, float):
        yield int(np.float64(value).view(np.int64))
    elif value is not None:
        yield int(value)


def reader(kind: Any) -> Any:
    """A function for compiled code: from the address of a table to its contents, which are of this Numba type."""
    if numba_config.DISABLE_JIT:
        return lambda contents: contents

    @intrinsic
    def opened(context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            number = context.get_value_type(types.intp)
            table, place = builder.inttoptr(given[0], number.as_pointer()), count()

            nothing = builder.module.add_metadata([])

            def read() -> Any:
                found = builder.load(element(builder, table, next(place)))
                found.set_metadata("invariant.load", nothing)  # so it is read where it is used, or not at all
                return found

            def build(kind: Any) -> Any:
                if isinstance(kind, TUPLE):
                    return context.make_tuple(builder, kind, [build(part) for part in kind])
                if isinstance(kind, types.Array):
                    return _array(context, builder, kind, read)
                if isinstance(kind, types.NoneType):
                    return context.get_dummy_value()
                value = read()
                if isinstance(kind, types.Float):
                    return builder.bitcast(value, context.get_value_type(kind))
                return builder.trunc(value, context.get_value_type(kind)) if kind == types.boolean else value

            return build(kind)

        return kind(types.intp), generate

    return opened


def _array(context: Any, builder: Any, kind: Any, read: Callable[[], Any]) -> Any:
    """An array that does not own its memory."""
    found = context.make_array(kind)(context, builder)
    data = builder.inttoptr(read(), found.data.type)
    shape = [read() for _ in range(kind.ndim)]
    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = [itemsize]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    fill(found, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return found._getvalue()


# ---------------------------------------------------------------------- kernels by their addresses


class MachineCode:
    """The code of a kernel for arguments of these Numba types; the address is valid as long as the kernel."""

    __slots__ = ("address", "kinds", "returns")

    def __init__(self, compiled: Any, kinds: Kinds) -> None:
        self.kinds, self.returns, self.address = kinds, types.none, compiled
        if numba_config.DISABLE_JIT:
            return
        compiled.compile(kinds)
        found = compiled.overloads[kinds]
        self.returns = found.signature.return_type
        self.address = found.library.get_pointer_to_function(found.fndesc.llvm_func_name)


def caller(kinds: Kinds, returns: Any = types.none) -> Any:
    """A function for compiled code: it calls the kernel at an address with arguments of these Numba types."""
    if numba_config.DISABLE_JIT:
        return lambda function, arguments: function(*arguments)

    @intrinsic
    def call(context: Any, address: Any, arguments: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            convention = context.call_conv
            function = builder.inttoptr(given[0], convention.get_function_type(returns, kinds).as_pointer())
            values = unpack(builder, given[1], len(kinds))
            status, found = convention.call_function(builder, function, returns, kinds, values)
            with if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return found

        return returns(types.intp, tuple_of(kinds)), generate

    return call


# ---------------------------------------------------------------------- room that one thread uses at a time


def _take(context: Any, marks: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place, number = _first(context, builder, signature, given), context.get_constant
        swapped = builder.cmpxchg(place, number(types.int64, 0), number(types.int64, 1), "acq_rel", "monotonic")
        return builder.extract_value(swapped, 1)

    return types.boolean(marks), generate


def _give_back(context: Any, marks: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = _first(context, builder, signature, given)
        builder.store_atomic(context.get_constant(types.int64, 0), place, "release", 8)
        return context.get_dummy_value()

    return types.none(marks), generate


def _first(context: Any, builder: Any, signature: Any, given: Any) -> Any:
    """Where the first number of an array is."""
    return context.make_array(signature.args[0])(context, builder, given[0]).data


def _take_plainly(marks: NDArray[np.int64]) -> bool:
    free = marks[0] == 0
    marks[0] = 1
    return bool(free)


def _give_back_plainly(marks: NDArray[np.int64]) -> None:
    marks[0] = 0


# For compiled code, in which threads run at the same time. `take(marks)`: marks[0] becomes 1, and whether it was 0
# before, which is so for one thread alone. `give_back(marks)`: it becomes 0.
take: Any = _take_plainly if numba_config.DISABLE_JIT else intrinsic(_take)
give_back: Any = _give_back_plainly if numba_config.DISABLE_JIT else intrinsic(_give_back)


# ---------------------------------------------------------------------- the calls


@summing_kernel
def fits(x: Array, largest_square: float, largest_entry: float) -> bool:
    """Whether all numbers of a row are finite, and they and its norm are within the limits."""
    square = 0.0
    for i in range(x.size):
        square += x[i] * x[i]
    if largest_entry < math.inf:
        for i in range(x.size):
            if abs(x[i]) > largest_entry:
                return False
    return square <= largest_square


def _as_row(context: Any, x: Any) -> Any:
    kind = types.Array(x.dtype, 2, "C")

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        there = context.make_array(x)(context, builder, given[0])
        size, number = builder.extract_value(there.shape, 0), context.get_constant
        itemsize = number(types.intp, x.dtype.bitwidth // 8)
        strides, shape = [builder.mul(size, itemsize), itemsize], [number(types.intp, 1), size]
        found = context.make_array(kind)(context, builder)
        fill(found, data=there.data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
        return found._getvalue()

    return kind(x), generate


# An array (d,) whose numbers lie side by side as a block of one row; the array must exist as long as the block.
as_row: Any = intrinsic(_as_row)


@inlined_kernel
def one_row(x: Array, work: Any) -> tuple[Array, Array, bool]:
    """x as a block of one row, and whether it can be played; before them what owns the numbers, if x does not.

    A row whose numbers are apart is copied here, and not in Python, where that takes five times as long.
    """
    apart = x.strides[0] != x.itemsize
    own = x.copy() if apart else work.weight
    row = as_row(own) if apart else as_row(x)
    usual = x.size == work.dense and x.ctypes.data % x.itemsize == 0
    return own, row, usual and fits(row[0], work.largest_square, work.largest_entry)


@inlined_kernel
def as_it_is(row: Array, work: Any) -> Array:
    """A row in the form of kernels that take arrays."""
    return row


@inlined_kernel
def compressed(row: Array, work: Any) -> Entries:
    """A row in the form of kernels that take entries."""
    return Entries(work.indptr, work.indices, row[0])


@kernel
def set_target(Y: Array, target: float) -> None:
    """The target of a row: a number, or the class with probability 1."""
    numbers = Y.reshape(Y.size)
    if numbers.size == 1:
        numbers[0] = target
        return
    for k in range(numbers.size):
        numbers[k] = 0.0
    numbers[int(target)] = 1.0


@kernel
def winner_of(scores: Array, as_probabilities: bool) -> int:
    """The first class with the largest score; the scores of the row become probabilities if asked."""
    found = leader(scores[0])
    if as_probabilities:
        to_probabilities(scores)
    return found


@inlined_kernel
def can_be_learned(indptr: NDArray[np.int32], indices: NDArray[np.int32], data: Array, work: Any) -> bool:
    """Whether these are the entries of one usual row: columns that exist, in order, each once."""
    in_order = are_in_order(indptr, indices, data.size, work.width)
    return in_order and fits(data, work.largest_square, work.largest_entry)


@kernel
def are_in_order(indptr: NDArray[np.int32], indices: NDArray[np.int32], n: int, width: int) -> bool:
    """Whether a row in compressed form has n entries, in columns that exist, in order, each once."""
    if indptr.size != 2 or indptr[0] != 0 or indptr[1] != n or indices.size != n:
        return False
    last = -1
    for i in range(n):
        if not last < indices[i] < width:
            return False
        last = indices[i]
    return True


def name_of(*parts: Any) -> str:
    """A name for a kernel that another function makes of these parts."""
    return hashlib.sha256(str(parts).encode()).hexdigest()[:16]


@cache  # per type: a new learner should not have to look anything up in Numba
def ready_calls(run: Any, forecast: Any, takes_entries: bool, kind: Any) -> Calls:
    """The calls for these kernels and a table of this Numba type, `Listed`."""
    state, constants, work = kind.types
    of = dict(zip(Workspace._fields, work.types, strict=True))
    row = type_of(Entries(*grid_of_one(1), np.ones(1))) if takes_entries else type_of(np.ones((1, 1)))
    learning = MachineCode(run, (state, row, of["Y"], of["weight"], constants, of["out"]))
    saying = MachineCode(forecast, (state, row, constants, of["out"]))
    return Calls(learning, saying, takes_entries, kind)


class Calls:
    """The compiled calls, each compiled on first use.

    They do not look at the types of their arguments, which takes Numba as long as the rest of a call. The caller does:
    x is an array (d,) of float64 in any layout, or the three arrays that `entries_of` returns.
    """

    def __init__(self, learning: MachineCode, saying: MachineCode, takes_entries: bool, kind: Any) -> None:
        self.learning, self.saying, self.takes_entries = learning, saying, takes_entries
        self.opened, self.name = reader(kind), name_of(learning.kinds, saying.kinds, kind)
        self.run, self.foresee = caller(learning.kinds, learning.returns), caller(saying.kinds)
        self.form: Any = compressed if takes_entries else as_it_is

    def _compiled(self, call: Callable[..., Any], *kinds: Any) -> Callable[..., Any]:
        compiled: Any = named_kernel(call, self.name)
        signature = (types.intp, *kinds)
        compiled.compile(signature)
        found: Callable[..., Any] = compiled.overloads[signature].entry_point
        return found

    @cached_property
    def learn(self) -> Callable[..., bool]:
        """Learn a row: learn(address, x, target). False, without any change, for rows that are not usual."""
        opened, run, form = self.opened, self.run, self.form

        def learn(address: int, x: Array, target: float) -> bool:
            state, constants, work = opened(address)
            own, row, can_be_played = one_row(x, work)
            if can_be_played:
                set_target(work.Y, target)
                run(work.run, (state, form(row, work), work.Y, work.weight, constants, work.out))
            keep(own)
            return can_be_played

        def learn_if_there_is_room(address: int, x: Array, target: float) -> bool:
            state, constants, work = opened(address)
            own, row, is_learned = one_row(x, work)
            if is_learned:
                set_target(work.Y, target)
                is_learned = run(work.run, (state, form(row, work), work.Y, work.weight, constants, work.out)) > 0
            keep(own)
            return is_learned

        counts = isinstance(self.learning.returns, types.Integer)  # the rows that were learned: none without room
        return self._compiled(learn_if_there_is_room if counts else learn, ROW, types.float64)

    @cached_property
    def forecast(self) -> Callable[..., int]:
        """Forecast a row, and return the first class with the largest score; -1 for rows that are not usual.

        The call is forecast(address, x, out, as_probabilities).
        """
        opened, foresee, form = self.opened, self.foresee, self.form

        def say(address: int, x: Array, out: Array, as_probabilities: bool) -> int:
            state, constants, work = opened(address)
            own, row, can_be_played = one_row(x, work)
            found = -1
            if can_be_played:
                foresee(work.forecast, (state, form(row, work), constants, out))
                found = winner_of(out.reshape(1, out.size), as_probabilities)
            keep(own)
            return found

        return self._compiled(say, ROW, self.saying.kinds[-1], types.boolean)

    @cached_property
    def learn_entries(self) -> Callable[..., bool] | None:
        """The same as `learn` for a row in compressed form, with (indptr, indices, data) for x."""
        opened, run = self.opened, self.run

        def learn_entries(address: int, indptr: Any, indices: Any, data: Array, target: float) -> bool:
            state, constants, work = opened(address)
            if not can_be_learned(indptr, indices, data, work):
                return False
            set_target(work.Y, target)
            row = Entries(indptr.astype(np.int64), indices.view(np.uint32), data)
            run(work.run, (state, row, work.Y, work.weight, constants, work.out))
            return True

        return self._compiled(learn_entries, *COMPRESSED_ROW, types.float64) if self.takes_entries else None

    @cached_property
    def forecast_entries(self) -> Callable[..., int] | None:
        """The same as `forecast` for a row in compressed form."""
        opened, foresee = self.opened, self.foresee

        def say_entries(
            address: int, indptr: Any, indices: Any, data: Array, out: Array, as_probabilities: bool
        ) -> int:
            state, constants, work = opened(address)
            if not can_be_learned(indptr, indices, data, work):
                return -1
            row = Entries(indptr.astype(np.int64), indices.view(np.uint32), data)
            foresee(work.forecast, (state, row, constants, out))
            return winner_of(out.reshape(1, out.size), as_probabilities)

        if not self.takes_entries:
            return None
        return self._compiled(say_entries, *COMPRESSED_ROW, self.saying.kinds[-1], types.boolean)
