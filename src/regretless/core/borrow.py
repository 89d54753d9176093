"""borrowed: an array, or a tuple of them, as its owner lends it, without a count of its references.

Compiled code counts the references to every array, by an instruction that takes as long as ten multiplications. Where
a loop over rows passes a dozen small arrays to kernels, or takes slices of them, counting takes longer than the
arithmetic. Slices of a borrowed array are not counted either. The owner must exist as long as they do: a kernel may
borrow its arguments, and its own arrays if it calls `keep` with them after the loop.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from regretless.core.jit import kernel

TUPLE: Any = types.BaseTuple


def borrowed(lent: Any) -> Any:
    """The same array, or the same tuple of arrays. In plain Python, nothing changes."""
    return lent


@kernel
def keep(owner: Any) -> None:
    """Do nothing: compiled code frees an array, or a tuple of them, after its last use."""


@intrinsic
def _borrowed(context: Any, lent: Any) -> Any:
    """Compiled: without the address of the count."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def lend(kind: Any, value: Any) -> Any:
            if isinstance(kind, TUPLE):
                parts = [lend(part, builder.extract_value(value, i)) for i, part in enumerate(kind)]
                return context.make_tuple(builder, kind, parts)
            found = context.make_array(kind)(context, builder, value)
            found.meminfo = ir.Constant(found.meminfo.type, None)
            found.parent = ir.Constant(found.parent.type, None)
            return found._getvalue()

        return lend(signature.args[0], given[0])

    return lent(lent), generate


@overload(borrowed, inline="always")
def _compiled(lent: Any) -> Any:
    def lend(lent: Any) -> Any:
        return _borrowed(lent)  # type: ignore[call-arg]  # the context is for the compiler

    return lend
