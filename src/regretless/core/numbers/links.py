"""From scores to probabilities: sigmoid and softmax, with full precision at any scale."""

from __future__ import annotations

import math

from regretless.core.kernels.jit import inlined_kernel, kernel, merged_kernel
from regretless.core.types import Array


@kernel
def sigmoid(a: float) -> float:
    """1 / (1 + e^-a), with full relative precision in both tails."""
    e = math.exp(-abs(a))
    return 1.0 / (1.0 + e) if a >= 0.0 else e / (1.0 + e)


@kernel
def leader(z: Array) -> int:
    """The first class with the largest score."""
    top = 0
    for k in range(1, z.size):
        if z[k] > z[top]:
            top = k
    return top


@merged_kernel
def softmax(z: Array, p: Array) -> float:
    """p = softmax(z); returns lse(z)."""
    top = z[0]
    for a in range(1, z.size):
        top = max(top, z[a])
    total = 0.0
    for a in range(z.size):
        p[a] = math.exp(z[a] - top)
        total += p[a]
    for a in range(z.size):
        p[a] /= total
    return top + math.log(total)


@inlined_kernel
def softmax_of_two(first: float, second: float) -> tuple[float, float]:
    """`softmax` of two numbers, with one exponential and without an unpredictable branch."""
    apart = second - first
    e = math.exp(-abs(apart))
    # Always true; it keeps LLVM from using 512-bit shuffles in a loop, which slow a processor down for half a
    # millisecond.
    assert not e > 1.0
    likelier = 1.0 / (1.0 + e)
    other = e * likelier
    return (other if apart >= 0.0 else likelier), (likelier if apart >= 0.0 else other)


@kernel
def to_probabilities(logits: Array) -> None:
    """softmax of every row, in place."""
    n, K = logits.shape
    if K != 2:
        for t in range(n if K > 0 else 0):  # no label may be known yet
            softmax(logits[t], logits[t])
        return
    for t in range(n):
        logits[t, 0], logits[t, 1] = softmax_of_two(logits[t, 0], logits[t, 1])
