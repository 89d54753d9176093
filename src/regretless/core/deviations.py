"""How far values are from their mean, at any scale from the smallest number there is to 1e150.

The sum of squared deviations of values below 1e-154 is no number of floating point. So a sum to which every deviation
added less than `SMALL` squared is kept as minus `UP` squared times itself: the sign tells the two apart, and both are
powers of two, so that nothing is rounded. A larger deviation makes it a plain sum, in which smaller ones no longer
show.
"""

from __future__ import annotations

import math

from regretless.core.jit import kernel

SMALL = 2.0**-450
UP = 2.0**600
LARGEST_SUM = 1e308
LEAST = 2.0**-1022  # below, a number has fewer digits


@kernel
def joined(square: float, away: float, other: float, share: float) -> float:
    """The sum once away * other * share, the square of a deviation, joins it; |other| <= |away|, share <= 1."""
    if square <= 0.0 and abs(away) < SMALL:
        return square - (UP * away) * (UP * other) * share
    return min(plain(square) + away * other * share, LARGEST_SUM)


@kernel
def standardised(square: float, away: float, count: float) -> float:
    """away * sqrt(count / sum), infinite where it would be too large, and 0 where nothing has changed so far."""
    if away == 0.0 or square == 0.0:
        return 0.0
    if square < 0.0 and abs(away) < SMALL:
        return UP * away * math.sqrt(count / -square)
    return away * math.sqrt(count / max(plain(square), LEAST))


@kernel
def plain(square: float) -> float:
    """The sum itself."""
    return square if square >= 0.0 else -square / UP / UP
