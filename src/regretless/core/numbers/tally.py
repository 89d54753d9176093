"""The sums that every run keeps, for certificates and bounds."""

from __future__ import annotations

from regretless.core.errors import NoBound
from regretless.core.kernels.jit import kernel
from regretless.core.types import Array

# Rows learned, rows with weight other than 1, total loss, excess, largest |x|, largest max(1, weight) |x|^2.
# excess = total loss - (lower bounds of the losses, without comparator): the running part of the certificate.
ROWS, UNEVEN, LOSS, EXCESS, WIDEST, SCALE = range(6)
TALLIES = 6


@kernel
def record(tally: Array, weight: float, loss: float, excess: float, size: float) -> None:
    """Count one row of norm `size`."""
    tally[ROWS] += 1.0
    if weight != 1.0:
        tally[UNEVEN] += 1.0
    tally[LOSS] += loss
    tally[EXCESS] += excess
    tally[WIDEST] = max(tally[WIDEST], size)
    tally[SCALE] = max(tally[SCALE], max(1.0, weight) * size * size)


def require_unit_weights(tally: Array) -> None:
    """Refuse rows with weights other than 1, which the theorems do not cover."""
    if tally[UNEVEN] > 0:
        raise NoBound("the theorem is about rows of weight 1; regret_certificate() covers other weights.")
