"""FOLKLORE over MNIST on a GPU: `python -m benchmarks.gpu [ROWS]`, with MNIST in REGRETLESS_DATA, or drawn rows.

One exact pass: 785 features (with a constant), 10 classes, a matrix P of 7,065 x 7,065. The processor plays a part of
the rows, in the same run, for comparison.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from regretless import FOLKLORE, load_dataset
from regretless.learners.second_order import device as devices

ROWS, ON_PROCESSOR = 60_000, 512
WANTED = 5.0  # seconds for all rows


def rows(n: int) -> tuple[Any, Any, str]:
    """MNIST in its order, or rows of its size."""
    try:
        data = load_dataset("mnist")
        X, y = data.X[:n].toarray() / 255.0, data.y[:n]
        source = "MNIST"
    except (ValueError, OSError):
        rng = np.random.default_rng(0)
        X = np.maximum(rng.normal(size=(n, 784)) - 0.9, 0.0)
        y = np.argmax(X[:, :10] + rng.normal(size=(n, 10)), axis=1)
        source = "drawn rows"
    return np.ascontiguousarray(np.column_stack([X, np.ones(len(X))]) / np.sqrt(100.0)), y, source


def seconds(learner: Any, X: Any, y: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    p = learner.predict_then_learn(X, y, classes=np.arange(10))
    return time.perf_counter() - began, p


def main() -> None:
    X, y, source = rows(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
    torch, _ = devices.torch_device("cuda")
    few = slice(0, ON_PROCESSOR)
    seconds(FOLKLORE(device="cuda"), X[few], y[few])  # compiles
    here, p = seconds(FOLKLORE(), X[few], y[few])
    print(f"{source}, {len(X):,} rows; {torch.cuda.get_device_name()}")
    print(f"processor: {1e6 * here / ON_PROCESSOR:,.0f} µs per row")
    for rank in (144, 216):
        devices.RANK = rank
        took, q = seconds(FOLKLORE(device="cuda"), X, y)
        again = seconds(FOLKLORE(device="cuda"), X[few], y[few])[1]
        loss = -np.log(q[np.arange(len(y)), y]).mean()
        print(
            f"cuda, {rank} rows of V_0: {took:.2f} s (wanted {WANTED * len(X) / ROWS:.1f}), "
            f"{1e6 * took / len(X):.0f} µs per row, log loss {loss:.4f}; forecasts differ by "
            f"{np.abs(again - p).max():.1e}"
        )


if __name__ == "__main__":
    main()
