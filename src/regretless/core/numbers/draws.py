"""Random numbers that depend on a seed and a counter only, so that no generator must be stored."""

from __future__ import annotations

import numpy as np

from regretless.core.kernels.jit import kernel


@kernel
def uniform(seed: int, counter: float) -> float:
    """A number in [0, 1) for each seed and counter (splitmix64)."""
    state = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(counter) * np.uint64(0xD1B54A32D192ED03)
    state += np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state = state ^ (state >> np.uint64(31))
    return float(state >> np.uint64(11)) / 9007199254740992.0
