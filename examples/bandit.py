"""
Bandit feedback: which article to show
======================================

Only the article that is shown can be clicked: `act` chooses a label, and `feedback` reports whether it was right. The
correct label is not revealed. Two learners around the same FOLKLORE: `BanditMulticlass`, which explores with a fixed
probability and has a regret theorem, and `EpsilonGreedy`, which learns from every right guess and has a weaker theorem.
For reference, FOLKLORE with all labels. Run it with ``python examples/bandit.py``.
"""

import matplotlib.pyplot as plt
import numpy as np

from regretless import FOLKLORE, BanditMulticlass, EpsilonGreedy, play, play_bandit

ROUNDS, ARTICLES, FEATURES = 3000, 4, 5
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(ROUNDS, FEATURES)) / np.sqrt(FEATURES)  # features of a visitor, |x| <= 1
taste = 6 * rng.normal(size=(FEATURES, ARTICLES))
wanted = np.argmax(X @ taste + rng.gumbel(size=(ROUNDS, ARTICLES)), axis=1)

# %%
base = FOLKLORE(radius=15.0, feature_bound=1.0)
learners = {
    "BanditMulticlass": BanditMulticlass(base, n_classes=ARTICLES, exploration=0.2),
    "EpsilonGreedy": EpsilonGreedy(base, n_classes=ARTICLES, epsilon=0.1),
}
traces = play_bandit(learners, X, wanted, progress=False)
labelled = play(base, X, wanted, classes=range(ARTICLES), progress=False)

print(f"{ROUNDS} rounds, {ARTICLES} labels; random guesses are wrong in 75.0% of them")
for name, trace in traces.items():
    late = 1 - trace.correct[-1000:].mean()
    print(f"{name:<18} {trace.mistake_rate[-1]:6.1%} wrong, {late:6.1%} in the last 1000")
print(f"{'with all labels':<18} {labelled.error_rate:6.1%} wrong")

# %%
# The share of mistakes so far. Exploration has a price that never ends; what it buys is the knowledge of all labels.
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, trace in traces.items():
    mistakes = np.cumsum(~np.asarray(trace.correct, dtype=bool)) / np.arange(1, ROUNDS + 1)
    axes.plot(np.arange(1, ROUNDS + 1), 100 * mistakes, label=name)
axes.axhline(100 * labelled.error_rate, color="0.5", linestyle="--", label="with all labels")
axes.set(xscale="log", xlabel="rounds", ylabel="mistakes so far, %", ylim=(0, 100))
axes.legend(frameon=False)
plt.show()
