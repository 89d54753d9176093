"""What every run adds up: the sums that certificates and bounds read."""

from __future__ import annotations

from regretless.core.errors import NoBound
from regretless.core.jit import kernel
from regretless.core.types import Array

# Rows learned, those whose weight is not 1, loss suffered, excess, largest |x|, largest max(1, weight) |x|^2.
# excess = loss suffered - (lower bounds of the losses, as far as no comparator enters): the certificate's running part.
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
    """The theorems speak of rows of weight 1."""
    if tally[UNEVEN] > 0:
        raise NoBound("the theorem speaks of rows of weight 1; regret_certificate() covers weights.")
