"""
Curves and trees
================

A chessboard and a ring: no linear model learns them. The default learner has splines, which are curves of single
columns; `effort="high"` adds smooth functions of several columns; a Mondrian forest has sharp steps. Run it with
``python examples/curves_and_trees.py``.
"""

import matplotlib.pyplot as plt
import numpy as np

from regretless import MondrianForest, OnlineLogisticRegression, play

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(3000, 2))
streams = {
    "chessboard": (np.floor(2 * X).sum(axis=1) % 2).astype(int),
    "ring": (np.abs(np.hypot(*X.T) - 0.65) < 0.2).astype(int),
}
grid = np.stack(np.meshgrid(np.linspace(-1, 1, 60), np.linspace(-1, 1, 60)), axis=-1).reshape(-1, 2)

# %%
# Every row is forecast before it is learned; the pictures show the probability of class 1 after all rows.
figure, axes = plt.subplots(2, 4, figsize=(9, 4.8), layout="constrained")
for line, (name, y) in zip(axes, streams.items(), strict=True):
    learners = {
        "effort low": OnlineLogisticRegression(effort="low"),
        "effort medium": OnlineLogisticRegression(),
        "effort high": OnlineLogisticRegression(effort="high"),
        "forest": MondrianForest(),
    }
    traces = play(learners, X, y, progress=False, hindsight=False)
    for panel, (title, learner) in zip(line, learners.items(), strict=True):
        errors = traces[title].error_rate
        print(f"{name:11} {title:14} log loss {traces[title].mean_log_loss:.3f}, errors {errors:.1%}")
        panel.imshow(
            learner.predict_proba(grid)[:, 1].reshape(60, 60),
            origin="lower",
            extent=(-1, 1, -1, 1),
            cmap="RdBu",
            vmin=0,
            vmax=1,
        )
        panel.set(title=f"{title}: {errors:.0%} errors", xticks=[], yticks=[])
        panel.title.set_fontsize("small")
    line[0].set_ylabel(name)
plt.show()
