"""Callback: a user's function of two numbers, in a form that kernels can call."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

from numba import cfunc, types
from numba.core.errors import NumbaError
from numba.core.types import WrapperAddressProtocol

SIGNATURE = types.float64(types.float64, types.float64)
_C_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)


class Callback(WrapperAddressProtocol):
    """A function (float, float) -> float, called by its address.

    Kernels see only the signature, so that one compiled kernel serves all functions. A function compiled by Numba is
    called directly, which costs a few nanoseconds; any other one through the interpreter, about a microsecond.
    """

    def __init__(self, function: Callable[[float, float], float]) -> None:
        self.function = function
        self.error: BaseException | None = None  # the first exception: none can pass through a kernel
        self._compiled: Any
        if hasattr(function, "py_func"):
            try:
                self._compiled = cfunc(SIGNATURE)(function.py_func)
            except NumbaError as error:
                raise ValueError(
                    f"{function!r} does not compile as a function of two floats that returns a float: {error}"
                ) from error
            self._address = int(self._compiled.address)
        else:
            self._compiled = _C_FUNCTION(self)
            self._address = int(ctypes.cast(self._compiled, ctypes.c_void_p).value or 0)

    def __call__(self, a: float, b: float) -> float:
        """The function, or NaN once it has raised an exception."""
        if self.error is not None:
            return math.nan
        try:
            return float(self.function(a, b))
        except BaseException as error:
            self.error = error
            return math.nan

    def __wrapper_address__(self) -> int:
        """The address that kernels call."""
        return self._address

    def signature(self) -> Any:
        """The type of the function."""
        return SIGNATURE

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles contain the function only."""
        return Callback, (self.function,)

    def take_error(self) -> BaseException | None:
        """The first exception since the last call, if any."""
        error, self.error = self.error, None
        return error
