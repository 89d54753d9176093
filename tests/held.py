"""All that a learner holds, in a form that compares: members, labels, averages and snapshots included."""

from __future__ import annotations

import dataclasses
import types
from typing import Any

import numpy as np


def held(found: Any) -> Any:
    """What `found` consists of, arrays to the bit."""
    if isinstance(found, np.ndarray):
        content = held(found.tolist()) if found.dtype.hasobject else found.tobytes()
        return str(found.dtype), found.shape, content
    if isinstance(found, dict):
        return {name: held(value) for name, value in found.items()}
    if isinstance(found, list | tuple):
        return type(found).__name__, [held(value) for value in found]
    if isinstance(found, float):
        return repr(found)
    if isinstance(found, types.FunctionType | type) or not hasattr(found, "__dict__"):
        return found
    if dataclasses.is_dataclass(found):  # which may have computed more from its fields
        return type(found).__name__, {
            field.name: held(getattr(found, field.name)) for field in dataclasses.fields(found)
        }
    return type(found).__name__, held(vars(found))
