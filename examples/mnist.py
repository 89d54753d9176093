"""
MNIST in one pass
=================

60,000 handwritten digits, each forecast before it is learned, in less than half a minute. A linear model of the pixels,
and the same model on 1,500 random features of them, which approximate a Gaussian kernel. Only one block of rows is
expanded at a time. Run it with ``python examples/mnist.py``; the data set is read from the folder `REGRETLESS_DATA`, or
downloaded.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import RBFSampler

from regretless import LinearizedFTRL, load_dataset

data = load_dataset("mnist", progress=False)
X, y = data.X.tocsr() / 255.0, np.asarray(data.y)
features = RBFSampler(gamma=0.02, n_components=1500, random_state=0).fit(X[:1])

# %%
# Blocks of 2,000 rows. How a stream is divided into blocks changes nothing in the forecasts.
ROWS = 2000
learners = {"pixels": LinearizedFTRL(alpha=0.1), "random features": LinearizedFTRL(alpha=0.3)}
named = {name: np.empty(len(y), dtype=int) for name in learners}
for first in range(0, len(y), ROWS):
    block = slice(first, first + ROWS)
    rows = {"pixels": X[block], "random features": features.transform(X[block]) * np.sqrt(7.5)}
    for name, learner in learners.items():
        named[name][block] = learner.predict_then_learn(rows[name], y[block], classes=list(range(10))).argmax(axis=1)
for name, forecast in named.items():
    wrong = forecast != y
    print(f"{name:16} {wrong.mean():.2%} errors, {wrong[-10_000:].mean():.2%} in the last 10,000 rows")

# %%
# The share of errors in each block.
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, forecast in named.items():
    axes.plot(np.arange(ROWS, len(y) + 1, ROWS), 100 * (forecast != y).reshape(-1, ROWS).mean(axis=1), label=name)
axes.set(
    xlabel="rows", ylabel="errors, %", yscale="log", yticks=[3, 5, 10, 20, 50], yticklabels=["3", "5", "10", "20", "50"]
)
axes.legend(frameon=False)
plt.show()

# %%
# The last eight rows that were wrong, with the digit that was named.
figure, axes = plt.subplots(1, 8, figsize=(8, 1.5), layout="constrained")
for panel, row in zip(axes, np.flatnonzero(named["random features"] != y)[-8:], strict=True):
    panel.imshow(X[[row]].toarray().reshape(28, 28), cmap="gray_r")
    panel.set_title(f"{y[row]}, not {named['random features'][row]}", fontsize="small")
    panel.axis("off")
plt.show()
