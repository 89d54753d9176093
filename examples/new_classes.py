"""
New classes in the middle of a stream
=====================================

Digits 0 to 4 for 600 rows, then all ten. The classes are not declared. The learner reserves a small probability for
labels that it has not seen, and adds a class when its first label appears. Run it with
``python examples/new_classes.py``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from regretless import OnlineLogisticRegression

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
early = order[y[order] < 5][:600]
order = np.concatenate([early, np.setdiff1d(order, early, assume_unique=True)])
X, y = X[order], np.array([f"digit {label}" for label in y[order]])

# %%
# For every 200 rows, the number of known classes and the share of errors. In the fourth block five labels are new.
learner = OnlineLogisticRegression()
rows, known, errors = [], [], []
for first in range(0, len(y), 200):
    block = slice(first, first + 200)
    p = learner.predict_then_learn(X[block], y[block])  # one column per class known after the block
    rows.append(first + len(p))
    known.append(learner.classes_.size)
    errors.append(np.mean(learner.classes_[p.argmax(axis=1)] != y[block]))
    print(f"rows {first:4d} to {rows[-1] - 1:4d}: {known[-1]:2d} classes, {errors[-1]:6.1%} errors")
print()
print(learner.report())

# %%
figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.plot(rows, [100 * share for share in errors], marker="o")
axes.axvline(600, color="0.5", linestyle="--")
axes.annotate("five new digits", (600, 100 * max(errors)), xytext=(8, -4), textcoords="offset points", va="top")
axes.set(xlabel="rows", ylabel="errors in the last 200 rows, %", ylim=(0, None))
plt.show()
