"""
Drift in electricity prices
===========================

Every half hour for two and a half years in New South Wales: does the price go up? Demand, prices and the market change,
so old rows mislead. `drift="track"` adds members that forget. Run it with ``python examples/electricity.py``; the data
set elec2 is read from the folder `REGRETLESS_DATA`, or downloaded.
"""

import matplotlib.pyplot as plt
import numpy as np

from regretless import OnlineLogisticRegression, load_dataset

data = load_dataset("elec2", progress=False)
X = data.X.toarray() if hasattr(data.X, "toarray") else np.asarray(data.X)
y = np.asarray(data.y)
X, y = X[:20_000], y[:20_000]
print(f"{len(y):,} rows, {X.shape[1]} columns, classes {np.unique(y).tolist()}")

# %%
# Both learners see the rows in the order of time, and forecast each before they learn it.
rows = np.arange(len(y))
losses = {}
for name in ("none", "track"):
    learner = OnlineLogisticRegression(drift=name)
    p = learner.predict_then_learn(X, y)
    losses[name] = -np.log(p[rows, np.searchsorted(learner.classes_, y)])
    print(f"drift={name!r:8} log loss {losses[name].mean():.4f}")

# %%
# The loss over time, as the mean of a week of rows. The last known label is a good guess here, which a learner of rows
# cannot use: a constant forecast of its share shows what the columns add.
week = 7 * 48
days = np.arange(week, len(y) + 1, week) / 48
figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name, loss in losses.items():
    means = loss[: len(days) * week].reshape(-1, week).mean(axis=1)
    axes.plot(days, means, label=f'drift="{name}"')
share = np.mean(y == np.unique(y)[1])
axes.axhline(-(share * np.log(share) + (1 - share) * np.log(1 - share)), color="0.5", linestyle="--", label="constant")
axes.set(xlabel="days", ylabel="mean log loss of a week")
axes.legend(frameon=False)
plt.show()
