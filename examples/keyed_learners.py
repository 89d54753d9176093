"""
Many keys: one learner per customer
===================================

Two thousand customers with tastes of their own, and most of them have few rows. One model for all of them misses what
differs, one model per customer starts from nothing. `KeyedLearner` has one learner per key in shared arrays; with
`pooled=True` a new key starts from what was learned about all of them. Run it with
``python examples/keyed_learners.py``.
"""

import matplotlib.pyplot as plt
import numpy as np

from regretless import AIOLI, KeyedLearner

rng = np.random.default_rng(0)
CUSTOMERS, ROWS, FEATURES = 2000, 40_000, 4
common = np.array([3.0, -2.0, 1.0, 0.0])
own = common + 1.5 * rng.normal(size=(CUSTOMERS, FEATURES))
keys = np.minimum(rng.geometric(1 / 300, size=ROWS) - 1, CUSTOMERS - 1)  # some come often, most rarely
X = rng.normal(size=(ROWS, FEATURES)) / np.sqrt(FEATURES)
y = (rng.random(ROWS) < 1 / (1 + np.exp(-2 * np.sum(X * own[keys], axis=1)))).astype(int)

# %%
# Three ways to forecast each row before it is learned.
rows = np.arange(ROWS)
base = AIOLI(radius=15.0)
forecasts = {
    "one for all": AIOLI(radius=15.0).predict_then_learn(X, y),
    "one per key": KeyedLearner(base).predict_then_learn(keys, X, y),
}
pooled = KeyedLearner(base, pooled=True)
forecasts["one per key, pooled start"] = pooled.predict_then_learn(keys, X, y)
losses = {name: -np.log(p[rows, y]) for name, p in forecasts.items()}
for name, loss in losses.items():
    print(f"{name:26} log loss {loss.mean():.4f}")
print(f"{len(pooled.keys_)} keys")

# %%
# By how many rows of its key a learner had seen: at first the common start helps, later a learner of one's own.
seen = np.zeros(ROWS, dtype=int)
count = np.zeros(CUSTOMERS, dtype=int)
for t, key in enumerate(keys):
    seen[t] = count[key]
    count[key] += 1
edges = [0, 1, 3, 10, 30, 100, ROWS]
group = np.digitize(seen, edges[1:-1])
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, loss in losses.items():
    axes.plot(range(len(edges) - 1), [loss[group == k].mean() for k in range(len(edges) - 1)], marker="o", label=name)
axes.set_xticks(range(len(edges) - 1), ["0", "1-2", "3-9", "10-29", "30-99", "100+"])
axes.set(xlabel="rows of the key before", ylabel="mean log loss")
axes.legend(frameon=False)
plt.show()
