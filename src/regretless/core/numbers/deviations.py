"""Sums of squared deviations from the mean, at any scale from the smallest float to 1e150.

The square of a deviation below 1e-154 underflows. So a sum in which every deviation is below `SMALL` is stored as minus
`UP` squared times its value: the sign distinguishes the two forms, and both constants are powers of two, so nothing is
rounded. A larger deviation turns it into a plain sum, in which the smaller ones are negligible.
"""

from __future__ import annotations

import math

from regretless.core.kernels.jit import kernel

SMALL = 2.0**-450
UP = 2.0**600
LARGEST_SUM = 1e308
LEAST = 2.0**-1022  # smaller numbers have fewer digits


@kernel
def joined(square: float, away: float, other: float, share: float) -> float:
    """The sum after adding away * other * share, the square of a deviation; |other| <= |away|, share <= 1."""
    if square <= 0.0 and abs(away) < SMALL:
        return square - (UP * away) * (UP * other) * share
    return min(plain(square) + away * other * share, LARGEST_SUM)


@kernel
def standardised(square: float, away: float, count: float) -> float:
    """away * sqrt(count / sum); infinite if it would overflow, and 0 if nothing has changed so far."""
    if away == 0.0 or square == 0.0:
        return 0.0
    if square < 0.0 and abs(away) < SMALL:
        return UP * away * math.sqrt(count / -square)
    return away * math.sqrt(count / max(plain(square), LEAST))


@kernel
def plain(square: float) -> float:
    """The sum itself."""
    return square if square >= 0.0 else -square / UP / UP
