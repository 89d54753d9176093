"""What a client asks of the service, and what it answers."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec


class Predict(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Ask for a forecast of the row x. Without an id, one is made."""

    x: Any
    id: str | None = None


class Label(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Tell the label of an earlier forecast."""

    id: str
    y: Any
    weight: float | None = None


class Forecast(msgspec.Struct, gc=False):
    """The forecast of an id: the probability of each class."""

    status: ClassVar[int] = 200
    id: str
    seq: int
    version: int
    probabilities: dict[str, float]


class Learned(msgspec.Struct, gc=False):
    """What became of a label: whether this request taught the model, or repeated an earlier one."""

    status: ClassVar[int] = 200
    id: str
    seq: int
    version: int
    learned: bool
    repeated: bool


class Refused(msgspec.Struct, gc=False):
    """Why an operation was refused: 404, 409, 422 or 503. Nothing was changed."""

    status: int
    error: str


Operation = Predict | Label
Reply = Forecast | Learned | Refused


class ServiceError(Exception):
    """A refusal, for callers in Python."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status
