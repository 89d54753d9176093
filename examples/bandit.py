"""Bandit feedback: which of four articles to show, if only the article shown can be clicked.

    python examples/bandit.py

`act` chooses a label and `feedback` reports whether it was right; the correct label is not revealed. The script
compares two learners around the same FOLKLORE: BanditMulticlass, which explores with a fixed probability and has a
regret theorem, and EpsilonGreedy, which learns from every right guess and has a weaker theorem. For reference, it also
runs FOLKLORE with all labels.
"""

from __future__ import annotations

import numpy as np

from regretless import FOLKLORE, BanditMulticlass, EpsilonGreedy, play, play_bandit

ROUNDS, ARTICLES, FEATURES = 3000, 4, 5


def main() -> None:
    """Play both on one stream."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(ROUNDS, FEATURES)) / np.sqrt(FEATURES)  # features of a visitor, |x| <= 1
    taste = 6 * rng.normal(size=(FEATURES, ARTICLES))
    wanted = np.argmax(X @ taste + rng.gumbel(size=(ROUNDS, ARTICLES)), axis=1)

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


if __name__ == "__main__":
    main()
