"""
Fraud: labels that come weeks later
===================================

A payment is forecast when it is made; whether it was fraud is known when the customer complains, hundreds of payments
later. `forecast` returns a ticket, and `learn` settles it: the row is learned with its late label, and the answer
says what the delay cost. Run it with ``python examples/delayed_labels.py``.
"""

import heapq

import matplotlib.pyplot as plt
import numpy as np

from regretless import OnlineLogisticRegression

# %%
# Payments with an amount, a country and an hour. Fraud is rare, and the delay of a label is random.
rng = np.random.default_rng(0)
ROWS = 3000


def payment() -> tuple[dict[str, object], str]:
    """A payment, and what it turned out to be."""
    amount, country, night = (
        20 * rng.lognormal(),
        rng.choice(["fr", "de", "xx"], p=[0.6, 0.35, 0.05]),
        rng.random() < 0.2,
    )
    margin = 0.8 * np.log(amount / 20) + 3.0 * (country == "xx") + 1.2 * night - 4.0
    row = {"amount": amount, "country": str(country), "night": bool(night)}
    return row, "fraud" if rng.random() < 1 / (1 + np.exp(-margin)) else "good"


stream = [payment() for _ in range(ROWS)]
print(f"{np.mean([label == 'fraud' for _, label in stream]):.1%} fraud")

# %%
# Tickets wait in a heap until their labels come. `learn` returns the loss of the forecast that was given, the loss of
# the forecast that the learner would give now, and how many rows it has learned in between.


def delayed(mean_delay: float) -> tuple[np.ndarray, np.ndarray]:
    """The losses of the forecasts that were given, and what the delay cost, payment by payment."""
    delays = np.random.default_rng(1).exponential(mean_delay, size=ROWS)
    learner = OnlineLogisticRegression(classes=["fraud", "good"])
    learner.learn_one(stream[0][0], stream[0][1])
    waiting: list = []
    loss, cost = np.zeros(ROWS), np.zeros(ROWS)
    for now in range(1, ROWS + 1):
        while waiting and (waiting[0][0] <= now or now == ROWS):
            _, i, ticket = heapq.heappop(waiting)
            settled = learner.learn(ticket, stream[i][1])
            loss[i], cost[i] = settled.loss, settled.cost
        if now < ROWS:
            heapq.heappush(waiting, (now + delays[now], now, learner.forecast(stream[now][0])))
    return loss, cost


results = {delay: delayed(delay) for delay in (0.0, 100.0, 500.0)}
for delay, (loss, cost) in results.items():
    print(f"mean delay {delay:4.0f} payments: log loss {loss.mean():.4f}, of which the delay {cost.mean():+.4f}")

# %%
# The total loss over time: the delay costs in the beginning, while little is known.
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
for delay, (loss, _) in results.items():
    axes.plot(np.cumsum(loss), label=f"labels after {delay:.0f} payments" if delay else "labels at once")
axes.set(xlabel="payments", ylabel="total log loss")
axes.legend(frameon=False)
plt.show()
