"""
Clicks: learn from a file in one pass
=====================================

Numbers, categories and missing values, with nothing to tune. Every row is forecast before its label is used, so the
report shows the performance of a live system. Only one block of the file is in memory at a time. Run it with
``python examples/click_stream.py``; for a file of your own, ``regretless run clicks.csv --target click`` does the same.
(Requires pyarrow: ``pip install "regretless[cli]"``.)
"""

import csv
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from regretless import OnlineLogisticRegression
from regretless.streams import read

# %%
# A typical click log: devices, hours, ages that are often missing, prices in some unit.


def write_clicks(path: Path, rows: int = 4000) -> None:
    """Write a click log."""
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


folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "clicks.csv")
write_clicks(path)

# %%
# `read` infers the kinds of the columns once, and yields blocks. `predict_then_learn` forecasts each row before it
# learns it.
learner = OnlineLogisticRegression()
reading = read(path, target="click", rows_at_once=500, on_bad="skip")
losses = []
for block in reading:
    p = learner.predict_then_learn(block.X, block.y)
    position = np.searchsorted(learner.classes_, block.y)
    losses.append(-np.log(p[np.arange(len(p)), position]).mean())
print("columns:", ", ".join(f"{name} ({kind})" for name, kind in reading.columns.items()))
print("bad rows:", reading.bad_count)
print("last forecast:", ", ".join(f"{c} {q:.3f}" for c, q in zip(learner.classes_, p[-1], strict=True)))
print(learner.report())
folder.cleanup()

# %%
# The loss of each block of 500 rows, next to that of always forecasting the share of clicks.
share = learner.predict_proba_one({"device": None, "hour": None, "age": None, "price": None})[1]
figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.plot(np.arange(1, len(losses) + 1) * 500, losses, marker="o", label="OnlineLogisticRegression")
axes.axhline(
    -(share * np.log(share) + (1 - share) * np.log(1 - share)), color="0.5", linestyle="--", label="the share of clicks"
)
axes.set(xlabel="rows", ylabel="mean log loss of a block")
axes.legend(frameon=False)
plt.show()
