"""kill -9 at injected points, with clients that repeat, reorder and contradict themselves.

No answered forecast is lost or changed, no label is learned twice, and the log gives the live state, to the byte.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from games import rows

from regretless.serve import EventLog
from regretless.serve.replay import verify
from regretless.serve.snapshots import Snapshots

pytestmark = pytest.mark.services

KILLS = int(os.environ.get("REGRETLESS_KILLS", "5"))
POINTS = ["transaction", "committed", "learned", "snapshot", "file"]
CLIENTS = 3


@pytest.fixture(scope="module")
def nursery():
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, str(here / "nursery.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert process.stdout.readline() == "ready\n"
    yield process
    process.stdin.close()
    process.wait(30)


class Restarting:
    """A service at one port that is started again whenever it has died, to die at the next point."""

    def __init__(self, nursery, log, folder, deaths):
        self.nursery, self.deaths = nursery, list(deaths)
        with socket.socket() as place:
            place.bind(("127.0.0.1", 0))
            self.port = place.getsockname()[1]
        self.told = {"log": log, "snapshots": str(folder), "port": self.port}
        self.process, self.kills, self.given_up = 0, 0, False
        self.lock = threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        point, after = self.deaths.pop(0) if self.deaths else ("", 0)
        self.nursery.stdin.write(json.dumps(self.told | {"point": point, "after": after}) + "\n")
        self.nursery.stdin.flush()
        self.process = int(self.nursery.stdout.readline())

    def revive(self):
        """Start the service if it is dead."""
        with self.lock:
            if self.process and not is_alive(self.process):
                self.kills += 1
                self.process = 0
            if not self.process:
                self.start()

    def end(self):
        os.kill(self.process, signal.SIGTERM)
        while is_alive(self.process):
            time.sleep(0.02)


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Client:
    """Asks until it is answered; notes every answer."""

    def __init__(self, server, seed):
        self.server, self.random = server, random.Random(seed)
        self.prefix, self.n = f"c{seed}", 0
        self.world = rows(5000, seed)
        self.open: list[str] = []
        self.labels: dict[str, str] = {}
        self.x: dict[str, dict] = {}
        self.forecasts: dict[str, list[dict]] = {}
        self.learned: dict[str, int] = {}
        self.http = httpx.Client(base_url=server.url, timeout=20.0)

    def ask(self, path, body, kind="application/json"):
        while True:
            try:
                found = self.http.post(path, content=body, headers={"content-type": kind})
                if found.status_code != 503:
                    return found
            except httpx.TransportError:
                self.server.revive()
            time.sleep(0.02)

    def new(self):
        id = f"{self.prefix}-{self.n}"
        self.x[id], self.labels[id] = self.world[self.n]
        self.n += 1
        self.open.append(id)
        return id

    def note(self, status, told, expected):
        assert status in expected, told
        if status == 200:
            if "probabilities" in told:
                self.forecasts.setdefault(told["id"], []).append(told)
            elif told["learned"]:
                self.learned[told["id"]] = self.learned.get(told["id"], 0) + 1

    def single(self, path, body, *expected):
        found = self.ask(path, json.dumps(body))
        self.note(found.status_code, found.json(), expected)

    def step(self):
        choice = self.random.random()
        if choice < 0.45 or len(self.open) < 3:
            id = self.new()
            for _ in range(self.random.choice([1, 1, 2])):  # some come twice
                self.single("/predict", {"id": id, "x": self.x[id]}, 200)
        elif choice < 0.8:
            id = self.open.pop(self.random.randrange(len(self.open)))  # in any order
            for _ in range(self.random.choice([1, 1, 2])):
                self.single("/label", {"id": id, "y": self.labels[id]}, 200)
            if self.random.random() < 0.3:
                other = "no" if self.labels[id] == "yes" else "yes"
                self.single("/label", {"id": id, "y": other}, 409)
                self.single("/predict", {"id": id, "x": {"a": 77.0}}, 409)
        elif choice < 0.85:
            self.single("/label", {"id": f"{self.prefix}-none-{self.n}", "y": "no"}, 404)
        else:
            ids = [self.new() for _ in range(self.random.randrange(1, 60))]
            lines = [{"id": id, "x": self.x[id]} for id in ids]
            lines += [{"id": id, "y": self.labels[id]} for id in self.open if id not in ids][:30]
            self.open = [id for id in self.open if id not in {line["id"] for line in lines if "y" in line}]
            found = self.ask("/bulk", "\n".join(map(json.dumps, lines)), "application/x-ndjson")
            for line in found.text.splitlines():
                told = json.loads(line)
                self.note(told["status"], told, (200,))

    def run(self):
        while self.server.kills < KILLS and not self.server.given_up:
            self.step()
        for _ in range(20):
            self.step()


def test_kill_9(nursery, log_url, tmp_path):
    chance = random.Random(0)
    deaths = [(POINTS[i % len(POINTS)], chance.choice([1, 2, 5, 11])) for i in range(KILLS)]
    deaths = [(point, min(after, 2) if point in ("snapshot", "file") else after) for point, after in deaths]
    server = Restarting(nursery, log_url, tmp_path / "snapshots", deaths)
    server.revive()
    clients = [Client(server, seed) for seed in range(CLIENTS)]
    failures = []

    def go(client):
        try:
            client.run()
        except BaseException as error:
            failures.append(error)
            server.given_up = True

    threads = [threading.Thread(target=go, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    server.end()
    assert server.kills == KILLS

    log = EventLog(log_url, write=False)
    in_log = {event.id: event for chunk in log.read() for event in chunk if event.kind == 0}
    labelled = [event.id for chunk in log.read() for event in chunk if event.kind == 1]
    assert len(labelled) == len({*labelled})
    for client in clients:
        assert all(times == 1 for times in client.learned.values())
        assert client.learned.keys() <= {*labelled}
        for id, answers in client.forecasts.items():
            event = in_log[id]
            assert all(answer == answers[0] for answer in answers)
            assert (answers[0]["seq"], answers[0]["version"]) == (event.seq, event.version)
            assert bytes(event.forecast) == b"".join(map(as_float, answers[0]["probabilities"].values()))
    found = verify(log, snapshots=Snapshots(tmp_path / "snapshots"))
    assert found.is_exact and found.snapshots >= 1 and found.labels == len(labelled)
    last = Snapshots(tmp_path / "snapshots").all(1, log.models()[0].identity)[-1]
    assert last == found.state._replace(seq=last.seq)  # the live state when it ended
    log.close()


def as_float(p):
    return struct.pack("<d", p)
