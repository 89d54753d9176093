"""Names for array types."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FLOAT = np.dtype(np.float64)  # one object: arrays in native byte order have it
