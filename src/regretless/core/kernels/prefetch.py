"""prefetch: tell the processor which line of an array a kernel will need soon. from_a_line: place an array for this.

A kernel that reads lines of a large table in random order waits for memory at each of them. If it knows the next ones
in advance, they can be on their way while it computes. This changes no result.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from regretless.core.types import FLOAT, Array

numba_config: Any = config  # has no types
CACHE_LINE = 64  # bytes
FOR_WRITING, KEEP, DATA = 1, 3, 1  # the arguments of LLVM's instruction


def from_a_line(*shape: int) -> Array:
    """Zeros that begin with a cache line. Short lines of an array then do not extend over two of them."""
    room = np.zeros(math.prod(shape) + CACHE_LINE // FLOAT.itemsize)
    start = -room.ctypes.data % CACHE_LINE // FLOAT.itemsize
    return room[start : start + math.prod(shape)].reshape(shape)


def _plainly(array: Any, line: int) -> None:
    """In plain Python, do nothing."""


def _compiled(context: Any, array: Any, line: Any) -> Any:
    """Compiled: one instruction per cache line, and one for the last byte."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        byte, number = ir.IntType(8), ir.IntType(32)
        found = context.make_array(signature.args[0])(context, builder, given[0])
        length = builder.extract_value(found.strides, 0)
        start = builder.gep(builder.bitcast(found.data, byte.as_pointer()), [builder.mul(given[1], length)])
        signs = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), number, number, number])
        instruction = builder.module.declare_intrinsic("llvm.prefetch", (byte.as_pointer(),), signs)

        def fetch(at: Any) -> None:
            builder.call(instruction, [builder.gep(start, [at]), number(FOR_WRITING), number(KEEP), number(DATA)])

        lines: Any = cgutils.for_range_slice(builder, length.type(0), length, length.type(CACHE_LINE), length.type)
        with lines as (at, _):
            fetch(at)
        fetch(builder.sub(length, length.type(1)))  # the last byte may be in one more cache line than the first ones
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


# prefetch(array, line): fetch array[line], for reading and writing; the array is C-ordered.
prefetch: Any = _plainly if numba_config.DISABLE_JIT else intrinsic(_compiled)
