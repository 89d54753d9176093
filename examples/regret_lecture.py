"""
A lecture on regret, in one notebook
====================================

Five experiments of a first lecture on online learning, each a few lines: why follow-the-leader fails, how fast regret
grows, what curvature buys, why an improper learner is better, and how experts are mixed. Run it with
``python examples/regret_lecture.py``.
"""

import matplotlib.pyplot as plt
import numpy as np

from regretless import AIOLI, OGD, ONS, FollowTheLeader, Mixture, StronglyConvexOGD, play
from regretless.streams import adversarial, against_the_forecast, alternating, logistic

# %%
# 1. Follow the leader fails
# --------------------------
# Linear losses w/2, -w, w, -w, ... on [-1, 1]. The best weight so far jumps from one end to the other, always too late:
# a loss of 1 on every row. The best fixed weight has loss 0. Gradient descent with small steps has a small regret.
stream = alternating(1000)
leader = FollowTheLeader()
print("follow the leader:", leader.predict_then_learn(stream.X, stream.y) @ stream.y)
descent = OGD(loss="linear", radius=1.0)
print("gradient descent: ", round(descent.predict_then_learn(stream.X, stream.y) @ stream.y, 2))

# %%
# 2. Regret grows like the root of n
# ----------------------------------
# Against an adversary that chooses the sign of every loss after the forecast, no learner can do better than order √n,
# and gradient descent does as well as that. The dashed line is the bound of the theorem, BG√(8n).
rng = np.random.default_rng(0)


def unlucky_signs():
    """Unit rows; the loss of the forecast is never negative."""
    for _ in range(2000):
        x = rng.normal(size=5)
        forecast = yield x / np.linalg.norm(x)
        yield 1.0 if forecast is None or forecast >= 0 else -1.0


root = play(OGD(loss="linear", radius=1.0, gradient_bound=1.0), unlucky_signs, progress=False)
figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.plot(root.rows, [high for _, high in root.regret], label="regret")
axes.plot(root.rows, root.bound, "--", color="0.5", label="bound")
axes.set(xlabel="rows", ylabel="total loss above the best", title="gradient descent on linear losses")
axes.legend(frameon=False)
plt.show()

# %%
# 3. Curvature buys a logarithm
# -----------------------------
# If losses are strongly convex with constant σ, steps 1/(σt) have regret of order ln n. Here the loss is the logistic
# loss plus a multiple of the squared norm.
labels = logistic(2000, d=5, radius=5.0, seed=1)
curved = play(StronglyConvexOGD("logistic", regularization=0.1), labels.X, labels.y, progress=False)
print(f"after 2000 rows: regret {curved.regret[-1][1]:.1f} <= {curved.bound[-1]:.1f}")

# %%
# 4. An improper learner is better
# --------------------------------
# The log loss is curved too, but the constant is exponential in the radius B for learners that choose weights before
# they see the row. AIOLI sees the row first, and moves an uncertain forecast towards 1/2: a factor B instead of e^B.
# The stream of Hazan, Koren and Levy (2014) shows the difference.
hard = adversarial(3000, seed=0)
traces = play(
    {"AIOLI": AIOLI(radius=hard.radius), "ONS": ONS(radius=hard.radius), "OGD": OGD(radius=hard.radius)},
    hard.X,
    hard.y,
    progress=False,
)
figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, trace in traces.items():
    axes.plot(trace.rows, [high for _, high in trace.regret], label=name)
axes.set(xscale="log", xlabel="rows", ylabel="regret", title="the stream that is hard for proper learners")
axes.legend(frameon=False)
plt.show()

# %%
# 5. Mixing costs a logarithm of the number of experts
# ----------------------------------------------------
# Which radius? Take three, and mix their probabilities with weights exp(-loss). The mixture has at most ln 3 = 1.0986
# more log loss than the best of them, on every stream.
members = {radius: AIOLI(radius=radius) for radius in (1.0, 5.0, 25.0)}
mixture = play(Mixture(list(members.values())), labels.X, labels.y, progress=False)
alone = play({str(radius): each for radius, each in members.items()}, labels.X, labels.y, progress=False)
for radius, trace in alone.items():
    print(f"radius {radius:>4}: total log loss {trace.log_loss[-1]:.2f}")
print(f"mixture:     total log loss {mixture.log_loss[-1]:.2f}")

# %%
# Last, everything at once: an adversary that sees the forecasts of a learner cannot make its regret large.
trace = play(AIOLI(radius=3.0, feature_bound=1.0), against_the_forecast(1000, d=3), classes=[-1, 1], progress=False)
low, high = trace.regret[-1]
print(
    f"wrong on {trace.checkpoints[-1].mistakes:.0f} of 1000 rows, and regret {high:.2f} <= certificate "
    f"{trace.certificate[-1]:.2f} <= bound {trace.bound[-1]:.2f}"
)
