"""Learn from a click log in one pass: numbers, categories, missing values, no tuning.

    python examples/click_stream.py                  # writes a small click log into a temporary folder
    python examples/click_stream.py clicks.csv click # your file and its label column

Every row is forecast before its label is used, so the report shows the performance of a live system. Only one block of
the file is in memory at a time. (Requires pyarrow: pip install "regretless[cli]".)
"""

from __future__ import annotations

import csv
import sys
import tempfile
from pathlib import Path

import numpy as np

from regretless import OnlineLogisticRegression
from regretless.streams import read


def write_clicks(path: Path, rows: int = 4000) -> None:
    """Write a typical click log: devices, hours, ages that are often missing, prices in some unit."""
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["device", "hour", "age", "price", "click"])
        for _ in range(rows):
            device = rng.choice(["phone", "tablet", "desk"], p=[0.6, 0.1, 0.3])
            hour, age, price = rng.integers(24), rng.integers(18, 80), 100 * rng.lognormal()
            margin = 1.5 * (device == "phone") - 0.6 * np.log(price / 100) - (age - 45) / 25 - 1.5
            click = "yes" if rng.random() < 1 / (1 + np.exp(-margin)) else "no"
            table.writerow([device, hour, "" if rng.random() < 0.2 else age, f"{price:.2f}", click])


def main(path: Path, target: str) -> None:
    """Stream the file through a learner and print the report."""
    learner = OnlineLogisticRegression(missing="indicator")
    reading = read(path, target=target, rows_at_once=500, on_bad="skip")
    for block in reading:
        forecasts = learner.predict_then_learn(block.X, block.y)
    print("columns:", ", ".join(f"{name} ({kind})" for name, kind in reading.columns.items()))
    print("bad rows:", reading.bad_count)
    print("last forecast:", ", ".join(f"{c} {p:.3f}" for c, p in zip(learner.classes_, forecasts[-1], strict=True)))
    print(learner.report())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "click")
    else:
        with tempfile.TemporaryDirectory() as folder:
            write_clicks(Path(folder, "clicks.csv"))
            main(Path(folder, "clicks.csv"), "click")
