"""The cost of learning in shards: the loss of fit_sharded above that of one pass, AIOLI on a logistic stream.

    python -m benchmarks.merge

Rows are n_shards, columns the rows between synchronisations; each entry is the loss above that of one pass, and below
it the certificate. The last column has no synchronisation before the end.
"""

from __future__ import annotations

import numpy as np

from regretless import AIOLI, best_in_hindsight, fit_sharded
from regretless.theory.domains import Ball

N, D, RADIUS = 65_536, 10, 5.0
SHARDS = (2, 4, 8, 16, 32, 64)
SYNCS = (8, 32, 128, 512, 2048, None)


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) / np.sqrt(D)
    weights = rng.normal(size=D)
    weights *= 4.0 / np.linalg.norm(weights)
    y = rng.random(N) < 1 / (1 + np.exp(-X @ weights))
    one = AIOLI(radius=RADIUS).fit(X, y)
    best = best_in_hindsight(X, y, domain=Ball(RADIUS))
    print(f"n = {N}, d = {D}, B = {RADIUS}")
    print(f"one pass: regret {one.total_loss_ - best.loss:.2f}, certificate {one.regret_certificate():.2f}")
    print("regret above that of one pass (certificate)")
    print("shards" + "".join(f"{'end' if m is None else m:>18}" for m in SYNCS))
    for n_shards in SHARDS:
        cells = []
        for m in SYNCS:
            learner = fit_sharded(AIOLI(radius=RADIUS), X, y, n_shards, sync_every=m)
            cells.append(f"{learner.total_loss_ - one.total_loss_:.2f} ({learner.regret_certificate():.1f})")
        print(f"{n_shards:>6}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
