"""Kernels that other kernels call: nothing that Python could call, the same results, and found again on disk."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from regretless.core.kernels import jit
from regretless.core.kernels.linked import LinkableLibrary

SCALES = np.array([0.1, 1 / 3, 7.0])  # a constant of the compiled code


@jit.summing_kernel
def scaled(x: np.ndarray) -> float:
    if x.size == 0:
        raise ValueError("no numbers")
    total = 0.0
    for i in range(x.size):
        total += SCALES[i % 3] * x[i]
    return total


@jit.kernel
def between(x: np.ndarray) -> float:
    return 2.0 * scaled(x)


@jit.kernel
def caller(x: np.ndarray) -> float:
    return between(x) + 1.0


@jit.shared_kernel
def shared(x: np.ndarray) -> float:
    return 3.0 * scaled(x)


@jit.kernel
def through(x: np.ndarray) -> float:
    return shared(x) - 1.0


@jit.kernel
def calls_both(x: np.ndarray) -> float:
    return through(x) + shared(x) + between(x)


compiled = pytest.mark.skipif(not hasattr(caller, "linked"), reason="compilation is disabled")


@compiled
def test_only_what_python_calls_can_be_called_by_it() -> None:
    x = np.arange(40.0) / 7.0
    value = caller(x)
    assert not between.overloads and not scaled.overloads
    for inner in (between, scaled):
        inner.linked.compile((numba.typeof(x),))  # an earlier run may have left `caller` on disk
        (found,) = inner.linked.overloads.values()
        assert isinstance(found.library, LinkableLibrary)
        assert not found.library.get_pointer_to_function(found.fndesc.llvm_cpython_wrapper_name)
    # called from Python, they are compiled for it, and round alike
    assert 2.0 * scaled(x) + 1.0 == between(x) + 1.0 == value
    assert between.overloads and scaled.overloads


@compiled
def test_a_shared_kernel_is_called_and_not_linked() -> None:
    x = np.arange(40.0) / 7.0
    value = calls_both(x)
    assert value == (3.0 * scaled(x) - 1.0) + 3.0 * scaled(x) + between(x)
    (found,) = calls_both.overloads.values()
    shared.linked.compile((numba.typeof(x),))
    (callee,) = shared.linked.overloads.values()
    code = shared.overloads[(numba.typeof(x),)]
    assert callee.fndesc.llvm_func_name != code.fndesc.llvm_func_name  # which differs between processes
    assert code.fndesc.llvm_func_name not in {each.name for each in found.library._final_module.functions}


@pytest.mark.parametrize("outer", [caller, through, calls_both], ids=lambda outer: outer.__name__)
def test_errors_of_an_inner_kernel_reach_python(outer) -> None:
    with pytest.raises(ValueError, match="no numbers"):
        outer(np.zeros(0))


PROGRAM = """
import numpy as np
import test_linked as kernels

@kernels.jit.kernel
def {name}(x):
    return kernels_between(x) - 3.0 * kernels_through(x)

kernels_between, kernels_through = kernels.between, kernels.through
x = np.arange(40.0) / 7.0
print(repr({name}(x)), repr(kernels.caller(x)), repr(kernels.calls_both(x)))
print(*(sum(each.stats.cache_hits.values()) for each in (
    kernels.between.linked, kernels.caller, kernels.calls_both, kernels.shared)))
try:
    {name}(np.zeros(0))
except ValueError as error:
    print(error)
"""


@compiled
def test_another_process_links_what_it_finds_on_disk(tmp_path) -> None:
    """The code of `between` is read from the cache and linked into a kernel that is new; `shared` is called by both."""
    env = {**os.environ, "REGRETLESS_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(name: str) -> list[str]:
        (tmp_path / f"{name}.py").write_text(PROGRAM.format(name=name))
        done = subprocess.run(
            [sys.executable, tmp_path / f"{name}.py"], env=env, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    first, second = run("one"), run("another")
    assert first[0] == second[0]
    assert first[2] == second[2] == "no numbers"
    assert (first[1], second[1]) == ("0 0 0 0", "1 1 1 1")
