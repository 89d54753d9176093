"""An adversary who sees every forecast and names the label it thinks least likely. Regret stays small all the same.

    python examples/adversary.py

Every learner is wrong in every row, and loses ln 2 = 0.693 a row or more. But then no fixed weights do well either,
and how much worse than these one may be, the regret, is what theorems bound. Printed for AIOLI and for online gradient
descent: the regret (an interval, since the best in hindsight is known up to a certified gap), the certificate, which
each adds up as it goes without knowing the best in hindsight, and the bound of its theorem.
"""

from __future__ import annotations

from regretless import AIOLI, OGD, play
from regretless.streams import against_the_forecast

ROWS, FEATURES, RADIUS = 2000, 5, 3.0


def main() -> None:
    """Let both meet the adversary."""
    learners = {"AIOLI": AIOLI(radius=RADIUS, feature_bound=1.0), "OGD": OGD(radius=RADIUS)}
    adversary = against_the_forecast(ROWS, d=FEATURES)
    traces = play(learners, adversary, classes=[-1, 1], checkpoints=[100, 500, ROWS], progress=False)
    for name, trace in traces.items():
        mistakes = trace.checkpoints[-1].mistakes
        print(f"{name}: {mistakes:.0f} mistakes in {ROWS} rows, log loss {trace.mean_log_loss:.3f} a row")
        for i, row in enumerate(trace.checkpoints):
            low, high = trace.regret[i]
            print(
                f"  after {row.rows:5.0f} rows: regret {low:7.3f} to {high:7.3f}"
                f" <= certificate {trace.certificate[i]:7.2f} <= bound {trace.bound[i]:7.2f}"
            )


if __name__ == "__main__":
    main()
