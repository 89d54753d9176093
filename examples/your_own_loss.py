"""
Your own loss: a quantile of the next value
===========================================

The pinball loss of the quantile 0.9: forecasts below the label cost nine times as much as forecasts above it. Any
convex loss of a score works, with a certificate: the theorems on gradient descent need nothing else. Run it with
``python examples/your_own_loss.py``.
"""

import matplotlib.pyplot as plt
import numpy as np
from numba import njit

from regretless import OGD, losses

# %%
# The loss, a subgradient in the score, and the largest slope.


def pinball(q: float) -> losses.Custom:
    """The loss whose best constant is the quantile q."""
    return losses.Custom(
        f"pinball {q}",
        njit(lambda z, y: max(q * (y - z), (1 - q) * (z - y))),
        njit(lambda z, y: -q if z < y else 1 - q),
        slope_bound=max(q, 1 - q),
    )


# %%
# The demand of a house: a daily wave, and noise that is larger in the evening. The rows are waves of the hour.
rng = np.random.default_rng(0)
hours = np.arange(24 * 300)
waves = [np.ones(len(hours))]
for k in (1, 2, 3):
    waves += [np.cos(2 * np.pi * k * hours / 24), np.sin(2 * np.pi * k * hours / 24)]
X = np.column_stack(waves) / 2
y = 2 + np.sin(2 * np.pi * (hours - 8) / 24) + rng.gamma(2.0, 0.1 + 0.3 * (hours % 24 > 16), size=len(hours))

forecasts = {}
for q in (0.1, 0.5, 0.9):
    learner = OGD(loss=pinball(q), radius=10.0)
    forecasts[q] = learner.predict_then_learn(X, y)
    late = slice(len(y) // 2, None)
    print(
        f"quantile {q}: {np.mean(y[late] <= forecasts[q][late]):.1%} of the labels below the forecast, "
        f"regret <= {learner.regret_certificate():.0f} in {len(y):,} rows"
    )

# %%
# The last four days.
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
last = slice(len(y) - 96, None)
axes.plot(hours[last], y[last], ".", color="0.4", label="demand")
axes.fill_between(hours[last], forecasts[0.1][last], forecasts[0.9][last], alpha=0.3, label="quantiles 0.1 to 0.9")
axes.plot(hours[last], forecasts[0.5][last], label="median")
axes.set(xlabel="hour", ylabel="demand")
axes.legend(frameon=False, ncols=3)
plt.show()
