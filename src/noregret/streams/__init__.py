"""Streams to play on: files read in blocks, data sets by name, drawn ones, and adversaries."""

from __future__ import annotations

from noregret.streams.adversaries import against_the_forecast, alternating
from noregret.streams.datasets import load_dataset
from noregret.streams.named import BUNDLED, NAMES, stream
from noregret.streams.reading import Reading, read
from noregret.streams.synthetic import (
    adversarial,
    drifting,
    label_noise,
    logistic,
    separable,
    softmax,
    sparse_signal,
)
from noregret.streams.types import BadLine, Block, Dataset, Stream

__all__ = [
    "BUNDLED",
    "NAMES",
    "BadLine",
    "Block",
    "Dataset",
    "Reading",
    "Stream",
    "adversarial",
    "against_the_forecast",
    "alternating",
    "drifting",
    "label_noise",
    "load_dataset",
    "logistic",
    "read",
    "separable",
    "softmax",
    "sparse_signal",
    "stream",
]
