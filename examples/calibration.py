"""
Calibrated probabilities of a rare event
========================================

One row in twelve is positive. Errors say little here: always "no" is wrong in 8 % of the rows. What matters is
whether a forecast of 30 % happens in 30 % of the cases, because decisions weigh costs with it. Nothing is tuned and
nothing is scaled. Run it with ``python examples/calibration.py``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import SGDClassifier

from regretless import OnlineLogisticRegression

rng = np.random.default_rng(0)
n, d = 10_000, 8
X = rng.normal(size=(n, d)) * np.logspace(-2, 3, d)  # columns of very different size
margin = X / np.logspace(-2, 3, d) @ np.linspace(1.5, -1.5, d) - 4.5
y = (rng.random(n) < 1 / (1 + np.exp(-margin))).astype(int)
print(f"{y.mean():.1%} positive")

# %%
# Every row is forecast before its label is used; so does the rival, scikit-learn's SGD with default settings on columns
# that were standardised in hindsight, one row at a time.
p = OnlineLogisticRegression().predict_then_learn(X, y)[:, 1]
rival, q = SGDClassifier(loss="log_loss", random_state=0), np.empty(n)
Z = (X - X.mean(axis=0)) / X.std(axis=0)
rival.partial_fit(Z[:1], y[:1], classes=[0, 1])
for t in range(n):
    q[t] = rival.predict_proba(Z[t : t + 1])[0, 1]
    rival.partial_fit(Z[t : t + 1], y[t : t + 1])


def log_loss(forecast: np.ndarray) -> float:
    """The mean log loss; a probability of 0 counts as 1e-15."""
    return float(-np.log(np.clip(np.where(y == 1, forecast, 1 - forecast), 1e-15, 1)).mean())


base = y.mean()
for name, forecast in {"OnlineLogisticRegression": p, "SGDClassifier": q, "best constant": np.full(n, base)}.items():
    print(f"{name:25} log loss {log_loss(forecast):.4f}")

# %%
# Reliability: rows grouped by their forecast. On the diagonal, forecasts mean what they say.
edges = np.array([0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0])
figure, axes = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
for name, forecast in {"OnlineLogisticRegression": p, "SGDClassifier": q}.items():
    group = np.digitize(forecast, edges[1:-1])
    some = [k for k in range(len(edges) - 1) if np.sum(group == k) >= 20]
    axes.plot([forecast[group == k].mean() for k in some], [y[group == k].mean() for k in some], marker="o", label=name)
axes.plot([0, 1], [0, 1], color="0.5", linestyle="--")
axes.set(xlabel="forecast probability", ylabel="share that was positive")
axes.legend(frameon=False)
plt.show()

# %%
# With costs, the threshold follows: a miss costs 20 times a false alarm, so act above 1/21.
for name, forecast in {"OnlineLogisticRegression": p, "SGDClassifier": q}.items():
    act = forecast >= 1 / 21
    print(f"{name:25} cost per row {(np.sum(act & (y == 0)) + 20 * np.sum(~act & (y == 1))) / n:.3f}")
