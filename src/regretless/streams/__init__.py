"""Streams to evaluate on: files read in blocks, named data sets, synthetic streams and adversaries."""

from __future__ import annotations

from regretless.streams.adversaries import against_the_forecast, alternating
from regretless.streams.datasets import load_dataset
from regretless.streams.named import BUNDLED, NAMES, stream
from regretless.streams.reading import Reading, read
from regretless.streams.synthetic import (
    adversarial,
    drifting,
    label_noise,
    logistic,
    separable,
    softmax,
    sparse_signal,
)
from regretless.streams.types import BadLine, Block, Dataset, Stream

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
