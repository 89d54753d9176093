"""The one place that knows about compilation and its disk cache.

Numba keeps compiled code on disk, but it looks only at the file of the function it is asked for: edit a
kernel in one file and a caller in another file silently keeps the old code. So the cache lives in a folder
named by a stamp of *all* sources that kernels can see: any edit of these opens a fresh folder. The folder is the user's
(never the package's own, which may be read-only) and private to the user: Numba's index is a pickle, and nothing here
unpickles what somebody else may have written. A folder that others could have written is left alone, and a fresh one
that lasts as long as the process takes its place.

``REGRETLESS_CACHE_DIR`` moves the cache; with ``NUMBA_DISABLE_JIT=1`` every kernel is plain Python; with
``NUMBA_BOUNDSCHECK=1`` an index outside an array is an error (such code has a folder of its own).
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import config, njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.compiler import Compiler

from regretless.core.compile_cache import cache_home, make_private, private_folder, why_distrusted

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# What LLVM may do: fuse multiply-adds. Not: forget NaN and inf, nor regroup (a / b) * c, which overflows elsewhere.
FUSED = {"contract", "nsz"}


# Packages without a kernel, above all that have one: their edits change no compiled code (a test checks).
WITHOUT_KERNELS = ("cli", "evaluate", "figures", "streams")


@cache
def source_stamp() -> str:
    """A digest of every source file of the package that has kernels, or that kernels can see."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0].removesuffix(".py") in WITHOUT_KERNELS:
            continue
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path | None:
    """The folder of this version's compiled code, ours alone; or None where none can be written."""
    chosen = cache_home() / f"kernels-{source_stamp()}{'-checked' if getattr(config, 'BOUNDSCHECK', None) else ''}"
    try:
        make_private(chosen)
        folder = Path(os.path.realpath(chosen))  # a link of somebody else's may point elsewhere tomorrow
        if not os.access(folder, os.W_OK):
            return None
        reason = why_distrusted(folder, own=2)
        if not reason:
            return folder
        warnings.warn(
            f"compiled code is not kept: {reason}, and to load it is to run it. Delete {chosen} and let only yourself "
            "write there (chmod 700), or let REGRETLESS_CACHE_DIR name another folder. Until then every process "
            "compiles again.",
            stacklevel=2,
        )
        fresh = private_folder()
        return None if why_distrusted(fresh) else fresh
    except OSError:
        return None


class _StampedLocator(_CacheLocator):
    """Tells Numba where a kernel's compiled code lies and when it is stale."""

    def __init__(self, py_func: Any, folder: Path) -> None:
        self._folder = folder
        self._place = f"{py_func.__module__.replace('.', '-')}-{py_func.__code__.co_firstlineno}"

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _StampedLocator | None:
        folder = cache_folder()
        return None if folder is None else cls(py_func, folder)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return source_stamp()

    def get_disambiguator(self) -> str:
        return self._place


class _StampedCacheImpl(CompileResultCacheImpl):
    _locator_classes = [_StampedLocator]


class _StampedCache(FunctionCache):
    _impl_class = _StampedCacheImpl


class _Apart(Compiler):
    """Tells LLVM that a function's arrays do not overlap, which it must otherwise see for itself before every loop."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)  # type: ignore[no-untyped-call]
        self.state.flags.noalias = True


def _compile(function: Kernel, liberties: set[str], **options: Any) -> Kernel:
    stamped: Any = _StampedCache
    compiled: Any = njit(function, fastmath=liberties, nogil=True, error_model="numpy", **options)
    if hasattr(compiled, "py_func") and cache_folder() is not None:  # plain Python where compilation is disabled
        compiled._cache = stamped(function)
    return compiled


def kernel(function: Kernel) -> Kernel:
    """Compile ``function`` once per machine; later processes load it from disk."""
    return _compile(function, FUSED)


def inlined_kernel(function: Kernel) -> Kernel:
    """A `kernel` copied into its callers: for an inner loop short enough that a call would show."""
    return _compile(function, FUSED, inline="always")


def apart_kernel(function: Kernel) -> Kernel:
    """A `kernel` whose arrays must not overlap, copied into its callers once it is compiled."""
    return _compile(function, FUSED, forceinline=True, pipeline_class=_Apart)


def summing_kernel(function: Kernel) -> Kernel:
    """A `kernel` whose sums may be taken in any order, so that dot products vectorise."""
    return _compile(function, FUSED | {"reassoc"})


def exact_kernel(function: Kernel) -> Kernel:
    """A `kernel` whose every operation rounds as written: for sums that keep track of their rounding."""
    return _compile(function, set())
