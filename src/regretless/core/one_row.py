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
from functools import cache
from itertools import count
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray
from scipy import sparse

from regretless.core.jit import kernel, named_kernel, summing_kernel
from regretless.core.links import to_probabilities
from regretless.core.rows import Entries, grid_of_one
from regretless.core.types import FLOAT, Array
from regretless.core.validate import LARGEST_TARGET

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
CSR = {sparse.csr_matrix, sparse.csr_array}
WIDEST_DENSE = 2**18  # columns of a dense row that is learned in compressed form


class RowKernels(NamedTuple):
    """The kernels of a learner, for blocks, and what they are called with: a row is a block of length one."""

    run: Callable[..., Any]  # run(state, rows, Y, weight, constants, out)
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
    width: int
    largest_square: float  # |x|^2
    largest_entry: float
    run: int  # the addresses of the kernels
    forecast: int


class Listed(NamedTuple):
    """Everything that is in the table."""

    state: Any
    constants: Any
    work: Workspace


class Calls(NamedTuple):
    """The compiled calls; the last two are for rows in compressed form."""

    learn: Callable[..., bool]  # learn(address, x, target)
    forecast: Callable[..., bool]  # forecast(address, x, out, as_probabilities)
    learn_entries: Callable[..., bool] | None  # with (indptr, indices, data) for x
    forecast_entries: Callable[..., bool] | None


class RowCall:
    """The compiled calls of a learner for its present state, constants and labels; `calls` is None if it has none."""

    __slots__ = ("address", "calls", "codes", "constants", "held", "kernels", "labels", "order", "shape", "state")

    def __init__(self, learner: Any) -> None:
        attributes = learner.__dict__
        self.state, self.constants = attributes["state_"], attributes["_constants"]
        self.labels = attributes.get("_labels")
        self.calls: Calls | None = None
        kernels: RowKernels | None = None if numba_config.DISABLE_JIT else learner._row_kernels()
        if kernels is None or not can_be_listed((kernels.state, kernels.constants)):
            return
        out: Array = learner._new_forecasts(1)
        width = kernels.width or learner.n_features_in_
        self.kernels, self.shape, self.codes, self.order = kernels, out.shape, kernels.codes, kernels.order
        indptr, indices = grid_of_one(width if kernels.entries and width <= WIDEST_DENSE else 0)
        work = Workspace(
            Y=np.zeros(out.shape),
            weight=np.ones(1),
            out=out,
            indptr=indptr,
            indices=indices,
            width=width,
            largest_square=kernels.largest * kernels.largest,
            largest_entry=kernels.largest_entry,
            run=0,
            forecast=0,
        )
        listed = Listed(kernels.state, kernels.constants, work)
        kind = type_of(listed)
        ready = ready_calls(kernels.run, kernels.forecast, kernels.entries, kind)
        work = work._replace(run=ready.run, forecast=ready.forecast)
        self.held, self.calls = Table(listed._replace(work=work), kind), ready.calls
        self.address = self.held.address

    def is_of(self, attributes: dict[str, Any]) -> bool:
        """Whether the learner with these attributes still has the same state, constants and labels."""
        return (
            self.state is attributes.get("state_")
            and self.constants is attributes.get("_constants")
            and self.labels is attributes.get("_labels")
        )

    def target(self, y: Any) -> Any:
        """The class code, or the number, of a usual label; None for others. May raise KeyError or TypeError."""
        if self.codes is not None:
            return self.codes[y]
        largest = self.kernels.largest_target
        return float(y) if isinstance(y, float | int) and -largest < y < largest else None


def entries_of(x: Any, width: int) -> tuple[Any, Any, Any] | None:
    """`indptr`, `indices` and `data` of a SciPy CSR row in the types of the kernels; None if it has others."""
    if type(x) not in CSR or x.shape != (1, width):
        return None
    indptr, indices, data = x.indptr, x.indices, x.data
    plain = data.dtype is FLOAT and indices.dtype is INDEX and indptr.dtype is INDEX
    return (indptr, indices, data) if plain and data.flags.carray and indices.flags.carray else None


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

            def read() -> Any:
                return builder.load(element(builder, table, next(place)))

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
def are_in_order(indptr: NDArray[np.int32], indices: NDArray[np.int32], data: Array, width: int) -> bool:
    """Whether these are the entries of one row: columns that exist, in order, each once."""
    n = data.size
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


class Ready(NamedTuple):
    """The calls for learners of one kind, and the addresses of their kernels."""

    calls: Calls
    run: int
    forecast: int


@cache  # per type: a new learner should not have to look anything up in Numba
def ready_calls(run: Any, forecast: Any, takes_entries: bool, kind: Any) -> Ready:
    """The calls for these kernels and a table of this Numba type, `Listed`."""
    state, constants, work = kind.types
    of = dict(zip(Workspace._fields, work.types, strict=True))
    row = type_of(Entries(*grid_of_one(1), np.ones(1))) if takes_entries else type_of(np.ones((1, 1)))
    learning = MachineCode(run, (state, row, of["Y"], of["weight"], constants, of["out"]))
    saying = MachineCode(forecast, (state, row, constants, of["out"]))
    calls = compiled_calls(learning, saying, takes_entries, kind)
    return Ready(calls, learning.address, saying.address)


def compiled_calls(learning: MachineCode, saying: MachineCode, takes_entries: bool, kind: Any) -> Calls:
    """The calls for kernels with arguments of the same Numba types as these, and a table of this one."""
    opened, run, forecast = reader(kind), caller(learning.kinds, learning.returns), caller(saying.kinds)
    name = name_of(learning.kinds, saying.kinds, kind)

    def learn(address: int, x: Array, target: float) -> bool:
        state, constants, work = opened(address)
        if x.size != work.width or not fits(x, work.largest_square, work.largest_entry):
            return False
        set_target(work.Y, target)
        run(work.run, (state, x.reshape(1, x.size), work.Y, work.weight, constants, work.out))
        return True

    def say(address: int, x: Array, out: Array, as_probabilities: bool) -> bool:
        state, constants, work = opened(address)
        if x.size != work.width or not fits(x, work.largest_square, work.largest_entry):
            return False
        forecast(work.forecast, (state, x.reshape(1, x.size), constants, out))
        if as_probabilities:
            to_probabilities(out.reshape(1, out.size))
        return True

    def learn_full(address: int, x: Array, target: float) -> bool:
        state, constants, work = opened(address)
        if x.size != work.width or x.size > work.indices.size or not fits(x, work.largest_square, work.largest_entry):
            return False
        set_target(work.Y, target)
        row = Entries(work.indptr, work.indices, x)
        run(work.run, (state, row, work.Y, work.weight, constants, work.out))
        return True

    def say_full(address: int, x: Array, out: Array, as_probabilities: bool) -> bool:
        state, constants, work = opened(address)
        if x.size != work.width or x.size > work.indices.size or not fits(x, work.largest_square, work.largest_entry):
            return False
        forecast(work.forecast, (state, Entries(work.indptr, work.indices, x), constants, out))
        if as_probabilities:
            to_probabilities(out.reshape(1, out.size))
        return True

    def learn_entries(address: int, indptr: Any, indices: Any, data: Array, target: float) -> bool:
        state, constants, work = opened(address)
        if not are_in_order(indptr, indices, data, work.width) or not fits(
            data, work.largest_square, work.largest_entry
        ):
            return False
        set_target(work.Y, target)
        row = Entries(indptr.astype(np.int64), indices.view(np.uint32), data)
        run(work.run, (state, row, work.Y, work.weight, constants, work.out))
        return True

    def say_entries(address: int, indptr: Any, indices: Any, data: Array, out: Array, as_probabilities: bool) -> bool:
        state, constants, work = opened(address)
        if not are_in_order(indptr, indices, data, work.width) or not fits(
            data, work.largest_square, work.largest_entry
        ):
            return False
        row = Entries(indptr.astype(np.int64), indices.view(np.uint32), data)
        forecast(work.forecast, (state, row, constants, out))
        if as_probabilities:
            to_probabilities(out.reshape(1, out.size))
        return True

    if not takes_entries:
        return Calls(named_kernel(learn, name), named_kernel(say, name), None, None)
    return Calls(*(named_kernel(call, name) for call in (learn_full, say_full, learn_entries, say_entries)))
