"""Compilation and its disk cache.

Numba caches compiled code on disk, but checks only the file of the requested function: after an edit of a kernel in
one file, a caller in another file would silently keep the old code. So the cache folder is named by a digest of *all*
sources that kernels can use, and any edit of these opens a new folder. The folder belongs to the user (never to the
package, which may be read-only) and is private: Numba's index is a pickle, and files that another user may have written
must not be unpickled. A folder that others can write to is not used; a temporary one replaces it for this process.

``REGRETLESS_CACHE_DIR`` changes the folder. With ``NUMBA_DISABLE_JIT=1`` every kernel is plain Python; with
``NUMBA_BOUNDSCHECK=1`` an index outside an array is an error (with a separate cache folder).
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import config
from numba.core.caching import FunctionCache, _CacheLocator
from numba.core.compiler import Compiler
from numba.extending import overload, register_jitable

from regretless.core.kernels.compile_cache import cache_home, make_private, private_folder, why_distrusted
from regretless.core.kernels.linked import Kernel as Compiled
from regretless.core.kernels.linked import KernelCacheImpl, LinkableCacheImpl

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# LLVM may fuse multiply-adds. It may not assume finite numbers, nor regroup (a / b) * c, which could overflow.
FUSED = {"contract", "nsz"}


# Packages without kernels, above all packages with kernels: editing them changes no compiled code (a test checks).
WITHOUT_KERNELS = ("cli", "evaluate", "figures", "scale", "serve", "streams")


@cache
def source_stamp() -> str:
    """A digest of every source file with kernels, or that kernels can use."""
    package = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0].removesuffix(".py") in WITHOUT_KERNELS:
            continue
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path | None:
    """The private folder of this version's compiled code, or None if no folder is writable."""
    chosen = cache_home() / f"kernels-{source_stamp()}{'-checked' if getattr(config, 'BOUNDSCHECK', None) else ''}"
    try:
        make_private(chosen)
        folder = Path(os.path.realpath(chosen))  # a symbolic link of another user could change
        if not os.access(folder, os.W_OK):
            return None
        reason = why_distrusted(folder, own=2)
        if not reason:
            return folder
        warnings.warn(
            f"compiled code is not cached: {reason}, and loading it would run it. Delete {chosen} and make it writable "
            "only for yourself (chmod 700), or set REGRETLESS_CACHE_DIR to another folder. Until then every process "
            "compiles again.",
            stacklevel=2,
        )
        fresh = private_folder()
        return None if why_distrusted(fresh) else fresh
    except OSError:
        return None


class _StampedLocator(_CacheLocator):
    """Tells Numba where a kernel's compiled code is, and when it is stale."""

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


class _LinkableLocator(_StampedLocator):
    """The same for the form of a kernel that other kernels call."""

    def get_disambiguator(self) -> str:
        return f"{self._place}-linkable"


class _StampedCacheImpl(KernelCacheImpl):
    _locator_classes = [_StampedLocator]


class _LinkableCacheImpl(LinkableCacheImpl):
    _locator_classes = [_LinkableLocator]


class _StampedCache(FunctionCache):
    _impl_class = _StampedCacheImpl


class _LinkableCache(FunctionCache):
    _impl_class = _LinkableCacheImpl


class _NamedCache(_StampedCache):
    """The cache of a kernel that a function makes. By its name, not by what it refers to: that differs by process."""

    def __init__(self, py_func: Any, name: str) -> None:
        self._given_name = name
        super().__init__(py_func)  # type: ignore[no-untyped-call]

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple(), self._given_name


class _Apart(Compiler):
    """Tells LLVM that a function's arrays do not overlap, which it would otherwise check before every loop."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)  # type: ignore[no-untyped-call]
        self.state.flags.noalias = True


class _Lanes(_Apart):
    """Turns LLVM's vectoriser of straight code on, which Numba leaves off since errors of LLVM 14."""

    def _compile_core(self) -> Any:
        options: Any = config
        before, options.SLP_VECTORIZE = options.SLP_VECTORIZE, 1  # Numba compiles one function at a time
        try:
            found = super()._compile_core()  # type: ignore[no-untyped-call]
            found.library._ensure_finalized()  # which optimises it
            return found
        finally:
            options.SLP_VECTORIZE = before


def _compile(
    function: Kernel, liberties: set[str], pipeline_class: type[Compiler] = Compiler, name: str = "", **options: Any
) -> Kernel:
    """A kernel that Python and other kernels can call; if another function makes it, `name` stands for what it uses."""
    if getattr(config, "DISABLE_JIT", False):
        return function
    options = {"nopython": True, "nogil": True, "error_model": "numpy", "boundscheck": None} | options
    # forceinline is always said, or else a kernel would inherit it from the one that calls it
    options = {"forceinline": False, "fastmath": liberties} | options
    compiled: Any = Compiled(function, targetoptions=options, pipeline_class=pipeline_class)
    if cache_folder() is not None:
        stamped: Any = _StampedCache
        linkable: Any = _LinkableCache
        named: Any = _NamedCache
        compiled._cache = named(function, name) if name else stamped(function)
        if not name:
            compiled.linked._cache = linkable(function)
    return compiled


def kernel(function: Kernel) -> Kernel:
    """Compile ``function`` once per machine; later processes load it from disk."""
    return _compile(function, FUSED)


def shared_kernel(function: Kernel) -> Kernel:
    """A `kernel` whose machine code other kernels call, instead of having it compiled once more as a part of theirs."""
    compiled: Any = _compile(function, FUSED)
    if hasattr(compiled, "share"):
        compiled.share()
    found: Kernel = compiled
    return found


def named_kernel(function: Kernel, name: str) -> Kernel:
    """A `kernel` that another function makes and that Python calls; `name` stands for everything that it refers to."""
    function.__qualname__ = f"{function.__name__}_{name}"  # and of the file in the cache
    return _compile(function, FUSED, name=name)


def inlined_kernel(function: Kernel) -> Kernel:
    """A `kernel` inlined into its callers: for inner loops so short that a call would cost time."""
    return _compile(function, FUSED, inline="always")


def apart_kernel(function: Kernel) -> Kernel:
    """A `kernel` whose arrays must not overlap, inlined into its callers after compilation."""
    return _compile(function, FUSED, forceinline=True, pipeline_class=_Apart)


def merged_kernel(function: Kernel) -> Kernel:
    """A `kernel` inlined into its callers after compilation: arrays in a tuple are then not counted at every call."""
    return _compile(function, FUSED, forceinline=True)


def lanes_kernel(function: Kernel) -> Kernel:
    """An `apart_kernel` in which short loops of a fixed length become vector instructions. It calls no other kernel."""
    return _compile(function, FUSED, forceinline=True, pipeline_class=_Lanes)


def summing_kernel(function: Kernel) -> Kernel:
    """A `kernel` whose sums may be taken in any order, so that dot products vectorise."""
    return _compile(function, FUSED | {"reassoc"})


def apart_summing_kernel(function: Kernel) -> Kernel:
    """An `apart_kernel` whose sums may be taken in any order."""
    return _compile(function, FUSED | {"reassoc"}, forceinline=True, pipeline_class=_Apart)


def exact_kernel(function: Kernel) -> Kernel:
    """A `kernel` in which every operation rounds as written: for sums that track their rounding errors."""
    return _compile(function, set())


def jitable(function: Kernel) -> Kernel:
    """A function that kernels compile and that Python runs as it is: for loops that may call a user's functions."""
    found: Kernel = register_jitable(fastmath=FUSED, error_model="numpy")(function)
    return found


def chosen_by_type(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """For a function that kernels call: the decorated one returns its compiled form, from the types of the arguments.

    The choice is made when a kernel is compiled, so that it costs nothing per row.
    """
    options: Any = {"fastmath": FUSED, "nogil": True, "error_model": "numpy"}
    decorator: Callable[[Callable[..., Any]], Callable[..., Any]] = overload(function, options, strict=False)
    return decorator
