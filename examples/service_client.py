"""
A service: forecasts now, labels later
======================================

`regretless serve` answers over HTTP: a forecast for an id now, its label by the same id later. Every forecast and label
is in a log before it is answered, so that a restarted service is the same to the byte. Run it with
``python examples/service_client.py``; it needs ``pip install "regretless[serve]"``.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from regretless.serve import Client

# %%
# A service of its own, on any free port, with its log in a temporary folder. In a terminal this is
# ``regretless serve --features amount,country --classes good,fraud``.
folder = tempfile.TemporaryDirectory()
COMMAND = [sys.executable, "-m", "regretless", "serve", "--model", "OnlineLogisticRegression(effort='low')"]
COMMAND += ["--features", "amount,country", "--classes", "good,fraud"]
COMMAND += ["--log", str(Path(folder.name) / "log.db"), "--port", "0"]


def start() -> tuple[subprocess.Popen[str], str]:
    """The process, and the address that it prints."""
    process = subprocess.Popen(COMMAND, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    address = next(line.split()[1] for line in process.stderr if line.startswith("page: "))
    return process, address.rstrip("/")


# %%
# Orders are forecast one by one. The label of an order comes ten orders later, by the order's id. The forecast that was
# given is the one that is scored.


def orders(client: Client) -> list[float]:
    """The log loss of every forecast that was given."""
    rng = np.random.default_rng(0)
    losses, waiting = [], []
    for i in range(400):
        amount, country = 20 * rng.lognormal(), str(rng.choice(["fr", "de", "xx"]))
        label = "fraud" if rng.random() < 1 / (1 + np.exp(4 - np.log(amount) - 2 * (country == "xx"))) else "good"
        said = client.predict({"amount": amount, "country": country}, id=f"order-{i}")
        losses.append(-np.log(said.probabilities[label]))
        waiting.append((said.id, label))
        if len(waiting) > 10:
            client.label(*waiting.pop(0))
    for late in waiting:
        client.label(*late)
    return losses


service, address = start()
try:
    with Client(address) as client:
        losses = orders(client)
        repeated = client.label("order-0", client.get("/explain/order-0")["y"])
        told = client.get("/regret")
finally:
    service.kill()  # as a crash would
    service.wait()
print(
    f"log loss {np.mean(losses):.4f} per order, {told['labels']} labels, learned again by a repeat: {repeated.learned}"
)
print(f"the delay cost {told['delay_cost']:+.2f}; the regret is at most {told['live_regret_at_most']:.1f}")

# %%
# The service is started again after the crash: the log has everything.
service, address = start()
try:
    with Client(address) as client:
        again = client.get("/regret")
finally:
    service.terminate()
    service.wait()
folder.cleanup()
print(f"after the crash: {again['labels']} labels, the same loss: {again['served_loss'] == told['served_loss']}")

# %%
# The running mean of the log loss.
plt.figure(figsize=(7, 3.5), layout="constrained")
plt.plot(np.cumsum(losses) / np.arange(1, len(losses) + 1), color="tab:blue", label="this service")
plt.axhline(np.log(2), color="grey", linestyle="--", linewidth=1, label="always one half")
plt.xlabel("order")
plt.ylabel("log loss per order")
plt.legend(frameon=False)
plt.show()
