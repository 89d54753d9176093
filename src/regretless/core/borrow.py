"""borrowed: an array as its owner lends it, without a count of its references.

Compiled code counts the references to every array, by an instruction that takes as long as ten multiplications. Where
a loop over rows passes a dozen small arrays to kernels, or takes slices of them, counting takes longer than the
arithmetic. Slices of a borrowed array are not counted either. The owner must exist as long as they do: a kernel may
borrow its arguments, and its own arrays if it calls `keep` with them after the loop.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.extending import intrinsic, overload

from regretless.core.jit import kernel


def borrowed(array: Any) -> Any:
    """The same array. In plain Python, nothing changes."""
    return array


@kernel
def keep(owner: Any) -> None:
    """Do nothing: compiled code frees an array, or a tuple of them, after its last use."""


@intrinsic
def _borrowed(context: Any, array: Any) -> Any:
    """Compiled: without the address of the count."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        found = context.make_array(signature.args[0])(context, builder, given[0])
        found.meminfo = ir.Constant(found.meminfo.type, None)
        found.parent = ir.Constant(found.parent.type, None)
        return found._getvalue()

    return array(array), generate


@overload(borrowed, inline="always")
def _compiled(array: Any) -> Any:
    def lend(array: Any) -> Any:
        return _borrowed(array)  # type: ignore[call-arg]  # the context is for the compiler

    return lend
