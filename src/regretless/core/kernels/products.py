"""Matrix products for panels: SciPy's BLAS with one thread per call, shared among this library's own threads.

NumPy and SciPy each bring a BLAS with as many threads as there are cores, and these wait for work in a loop. Products
that use both in turn, and compiled loops between them, then compete with waiting threads for the cores: the result is
several times slower than one thread, and worse if another program is running. So

- all products of a panel use SciPy's BLAS, inside `one_thread_per_product`: its calls run on the thread that makes
  them. The limit ends with the panel, also after an error, and NumPy's BLAS keeps its threads;
- `share` divides a large product among threads that sleep while there is nothing to do. Its parts depend on the sizes
  alone, so that results do not depend on the number of cores.

The limits of the user hold: `OPENBLAS_NUM_THREADS`, `threadpoolctl.threadpool_limits` and `NUMBA_NUM_THREADS`.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import numba
import numpy as np
from scipy.linalg import cython_blas

from regretless.core.types import Array

MOST_THREADS = 8  # with more, a panel takes as long as its serial loop
WORTH_A_THREAD = 4e6  # multiplications and additions: waking a thread takes as long as about a million
LETTER = {np.dtype(np.float64): "d", np.dtype(np.float32): "s"}
NUMBER = {"d": ctypes.c_double, "s": ctypes.c_float}
ARGUMENTS = {"gemm": 13, "symm": 12, "syrk": 10}

# ---------------------------------------------------------------------- threads


class _Limit:
    """How many calls of `one_thread_per_product` are open in this process, and what to restore after the last."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.before: list[int] = []
        self.threads = 1  # that a shared product may use
        self.pool: ThreadPoolExecutor | None = None

    def enter(self) -> None:
        with self.lock:
            if self.depth == 0:
                self.before = _allowed()
                self.threads = _most(self.before)
                for library in _libraries():
                    library.set_num_threads(1)
            self.depth += 1

    def leave(self) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                self.restore()

    def restore(self) -> None:
        for library, before in zip(_libraries(), self.before, strict=True):
            library.set_num_threads(before)

    def workers(self) -> ThreadPoolExecutor:
        with self.lock:
            if self.pool is None:
                self.pool = ThreadPoolExecutor(MOST_THREADS - 1, thread_name_prefix="regretless")
            return self.pool


_limit = _Limit()


@cache
def _libraries() -> list[Any]:
    """threadpoolctl's controllers of the BLAS that SciPy uses: its own, or one that it shares with NumPy."""
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    own = [
        each for each in found if "scipy" in os.path.dirname(each.filepath).replace(os.sep, "/").split("-packages")[-1]
    ]
    return own or found


def _allowed() -> list[int]:
    """The threads of each library."""
    return [library.get_num_threads() for library in _libraries()]


def _most(allowed: list[int]) -> int:
    """How many threads a shared product may use, where the libraries may use so many."""
    return min([numba.get_num_threads(), MOST_THREADS, *allowed])


def several_threads() -> bool:
    """Whether `share` would use more than one thread for any work."""
    limit = _limit
    return (limit.threads if limit.depth else _most(_allowed())) > 1


def _after_fork() -> None:
    """The child has one thread, which is in no panel: the others, and their limits, stay with the parent."""
    global _limit
    if _limit.depth:
        _limit.restore()
    _limit = _Limit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def one_thread_per_product() -> Iterator[None]:
    """Inside, SciPy's BLAS uses one thread per call; `share` may use several."""
    limit = _limit
    limit.enter()
    try:
        yield
    finally:
        limit.leave()


def share(work: Callable[[Any], Any], parts: Iterable[Any], operations: float) -> None:
    """Call `work` for each part, on as many threads as pay for this number of operations in total.

    >>> found = []
    >>> share(found.append, [3, 1, 2], 0)
    >>> found
    [3, 1, 2]
    """
    left = deque(parts)
    threads = min(len(left), int(operations / WORTH_A_THREAD), _limit.threads)

    def some() -> None:
        while True:
            try:
                part = left.popleft()
            except IndexError:
                return
            work(part)

    helpers = [_limit.workers().submit(some) for _ in range(threads - 1)]
    try:
        some()
    finally:
        for helper in helpers:
            if not helper.cancel():  # it has begun
                helper.result()


def pieces(n: int, length: int) -> list[slice]:
    """Slices of n numbers, of this length; the last may be shorter."""
    return [slice(first, min(first + length, n)) for first in range(0, n, length)]


# ---------------------------------------------------------------------- products


@cache
def _routine(name: str) -> Callable[..., None]:
    """A function of SciPy's BLAS. A call releases the GIL."""
    capsule, python = cython_blas.__pyx_capi__[name], ctypes.pythonapi
    python.PyCapsule_GetName.restype, python.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = python.PyCapsule_GetPointer(capsule, python.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * ARGUMENTS[name[1:]])(address)


def _call(name: str, dtype: Any, *given: Any) -> None:
    """Call a routine: letters as bytes, sizes as int, factors as float, matrices as arrays."""
    letter = LETTER[dtype]
    passed: list[Any] = []
    for each in given:
        if isinstance(each, np.ndarray):
            passed.append(each.ctypes.data)
        elif isinstance(each, bytes):
            passed.append(each)
        else:
            passed.append(ctypes.byref(ctypes.c_int(each) if isinstance(each, int) else NUMBER[letter](each)))
    _routine(letter + name)(*passed)


def _layout(A: Array) -> tuple[bytes, int]:
    """How Fortran reads A^T in A's memory: as it is or transposed, and the distance between its columns."""
    (m, n), (down, right), size = A.shape, A.strides, A.itemsize
    if n == 1 or right == size:
        return b"N", n if m == 1 else max(down // size, n)
    if m == 1 or down == size:
        return b"T", max(right // size, m)
    raise ValueError(f"strides {A.strides} of a matrix of {A.dtype}: its rows or its columns must be contiguous")


def multiply(A: Array, B: Array, out: Array | None = None, factor: float = 1.0, keep: float = 0.0) -> Array:
    """out = keep * out + factor * A B, for matrices of one type whose rows or columns are contiguous.

    >>> multiply(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]))
    array([[11.]])
    """
    (m, k), n = A.shape, B.shape[1]
    if out is None:
        out = np.empty((m, n), dtype=A.dtype)
    if not (B.shape[0] == k and out.shape == (m, n) and A.dtype == B.dtype == out.dtype):
        raise ValueError(f"products of {A.dtype} {A.shape} and {B.dtype} {B.shape} to {out.dtype} {out.shape}")
    (turned, below), (turned_too, below_too), (_, below_out) = _layout(A), _layout(B), _layout(out)
    _call("gemm", A.dtype, turned_too, turned, n, m, k, factor, B, below_too, A, below, keep, out, below_out)
    return out


def multiply_symmetric(x: Array, P: Array, out: Array) -> None:
    """out = x P, with P given by its upper triangle."""
    n, m = P.shape[0], x.shape[0]
    _call("symm", P.dtype, b"L", b"L", n, m, 1.0, P, _layout(P)[1], x, _layout(x)[1], 0.0, out, _layout(out)[1])


def subtract_square(U: Array, P: Array) -> None:
    """P -= U^T U, of which only the upper triangle is computed."""
    k, n = U.shape
    _call("syrk", P.dtype, b"L", b"N", n, k, -1.0, U, _layout(U)[1], 1.0, P, _layout(P)[1])
