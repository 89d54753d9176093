"""The garbage collector under load: with the usual thresholds, its collections take a fifth of a second."""

from __future__ import annotations

import gc

THRESHOLDS = (100_000, 50, 50)


def calm() -> None:
    """Take what exists now out of the collector's sight, and let it run more rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
