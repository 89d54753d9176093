"""An adversary that sees every forecast and chooses the least likely label. The regret stays small.

    python examples/adversary.py

Every learner is wrong on every row and has a log loss of at least ln 2 = 0.693 per row. No fixed weights do well
either, and the difference, the regret, is bounded by a theorem. The script prints, for AIOLI and for online gradient
descent, the regret (an interval, because the best model in hindsight is known up to a certified gap), the certificate,
which the learner computes without knowing the best model, and the bound of its theorem.
"""

from __future__ import annotations

from regretless import AIOLI, OGD, play
from regretless.streams import against_the_forecast

ROWS, FEATURES, RADIUS = 2000, 5, 3.0


def main() -> None:
    """Run both learners against the adversary."""
    learners = {"AIOLI": AIOLI(radius=RADIUS, feature_bound=1.0), "OGD": OGD(radius=RADIUS)}
    adversary = against_the_forecast(ROWS, d=FEATURES)
    traces = play(learners, adversary, classes=[-1, 1], checkpoints=[100, 500, ROWS], progress=False)
    for name, trace in traces.items():
        mistakes = trace.checkpoints[-1].mistakes
        print(f"{name}: {mistakes:.0f} mistakes in {ROWS} rows, log loss {trace.mean_log_loss:.3f} per row")
        for i, row in enumerate(trace.checkpoints):
            low, high = trace.regret[i]
            print(
                f"  after {row.rows:5.0f} rows: regret {low:7.3f} to {high:7.3f}"
                f" <= certificate {trace.certificate[i]:7.2f} <= bound {trace.bound[i]:7.2f}"
            )


if __name__ == "__main__":
    main()
