"""Read-only arrays of a model file that joblib has mapped into memory.

Kernels are compiled for writable arrays only: for others they would be compiled again, and could not learn.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def in_memory(value: Any) -> Any:
    """The value, with writable copies of the read-only arrays in it and in its tuples and lists."""
    if isinstance(value, np.ndarray):
        return value if value.flags.writeable else np.array(value, subok=False)
    if isinstance(value, tuple):
        found = [in_memory(each) for each in value]
        return type(value)(*found) if hasattr(value, "_fields") else tuple(found)
    if type(value) is list:
        return [in_memory(each) for each in value]
    return value
