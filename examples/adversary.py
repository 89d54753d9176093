"""
An adversary that sees every forecast
=====================================

The adversary chooses the label that the learner thought less likely. Every learner is then wrong on every row, and
has a log loss of at least ln 2 = 0.693 per row. No fixed weights do well either, and the difference, the regret, is
bounded by a theorem. Run it with ``python examples/adversary.py``.
"""

import matplotlib.pyplot as plt

from regretless import AIOLI, OGD, play
from regretless.streams import against_the_forecast

ROWS, FEATURES, RADIUS = 2000, 5, 3.0

# %%
# For AIOLI and for online gradient descent: the regret (an interval, because the best model in hindsight is known up to
# a certified gap), the certificate, which the learner computes without knowing the best model, and the bound of its
# theorem.
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

# %%
# AIOLI's regret grows like the logarithm of the rows, that of gradient descent like their root.
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained", sharey=True)
for panel, (name, trace) in zip(axes, traces.items(), strict=True):
    rows = [row.rows for row in trace.checkpoints]
    panel.plot(rows, trace.bound, "--", color="0.5", marker="o", label="bound")
    panel.plot(rows, trace.certificate, "-.", color="tab:red", marker="o", label="certificate")
    panel.plot(rows, [high for _, high in trace.regret], color="tab:blue", marker="o", label="regret")
    panel.set(title=name, xlabel="rows", yscale="log")
axes[0].set_ylabel("total loss above the best weights")
axes[0].legend(frameon=False)
plt.show()
