"""borrowed: an array, or a tuple with arrays, as its owner lends it, without a count of its references.

Compiled code counts the references to every array, by an instruction that takes as long as ten multiplications. Where
a loop over rows passes a dozen small arrays to kernels, or takes slices of them, counting takes longer than the
arithmetic. Slices of a borrowed array are not counted either. The owner must exist as long as they do: a kernel may
borrow its arguments, and its own arrays if it calls `keep` with them after the loop.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from regretless.core.kernels.jit import kernel

numba_config: Any = config  # has no types
TUPLE: Any = types.BaseTuple
ARRAY: Any = types.Array


def _plainly(lent: Any) -> Any:
    """In plain Python, nothing changes."""
    return lent


def _compiled(context: Any, lent: Any) -> Any:
    """Compiled: without the address of the count."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def lend(kind: Any, value: Any) -> Any:
            if isinstance(kind, TUPLE):
                parts = [lend(part, builder.extract_value(value, i)) for i, part in enumerate(kind)]
                return context.make_tuple(builder, kind, parts)
            if not isinstance(kind, ARRAY):
                return value
            found = context.make_array(kind)(context, builder, value)
            found.meminfo = ir.Constant(found.meminfo.type, None)
            found.parent = ir.Constant(found.parent.type, None)
            return found._getvalue()

        return lend(signature.args[0], given[0])

    return lent(lent), generate


# Not an overload with inline="always": after such an inlining Numba removes writes to arrays that are not read again,
# unless it can see that they are arguments, and it does not see through tuples.
borrowed: Any = _plainly if numba_config.DISABLE_JIT else intrinsic(_compiled)


@kernel
def keep(owner: Any) -> None:
    """Do nothing: compiled code frees an array, or a tuple of them, after its last use."""
