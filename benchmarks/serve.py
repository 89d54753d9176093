"""The service under load: requests per second, latency, and CPU seconds of the service per request.

`python -m benchmarks.serve` starts services, each in a process of its own, and asks them from this process. CPU per
request does not depend on how busy the machine is; requests per second and latency do. The floors are measured in the
same way: a bare ASGI application, and a plain FastAPI route, that both read the body and answer the same bytes.
MLServer and BentoML, where they are installed, serve a function that returns a constant: no log, no labels.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

COLUMNS = list("abcde")
WHAT_IF = ["OnlineLogisticRegression", "AIOLI", "OGD"]
POSTGRES = "postgresql://root@127.0.0.1:5432/test"


class Load(NamedTuple):
    """What was measured under one load."""

    name: str
    per_second: float
    p50: float
    p99: float
    cpu_us: float  # of the service, per request or row
    wanted: str = ""


def rows(n: int, seed: int = 0) -> list[tuple[dict[str, float], str]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, len(COLUMNS))).round(4)
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-(X[:, 0] - X[:, 1])))
    return [(dict(zip(COLUMNS, x, strict=True)), "yes" if k else "no") for x, k in zip(X.tolist(), y, strict=True)]


def request(path: str, body: bytes, kind: str = "application/json") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Asking(asyncio.Protocol):
    """One connection: sends its requests one after another, and notes how long each takes."""

    def __init__(self, requests: Iterator[bytes], done: asyncio.Future[None], times: list[float]) -> None:
        self.requests, self.done, self.times = requests, done, times
        self.buffer = b""
        self.failed = 0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.next()

    def next(self) -> None:
        found = next(self.requests, None)
        if found is None:
            self.transport.close()
            self.done.set_result(None)
            return
        self.sent = time.perf_counter()
        self.transport.write(found)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head = self.buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self.buffer.find(b"content-length: ") + 16
        if len(self.buffer) < head + 4 + int(self.buffer[at : self.buffer.find(b"\r\n", at)]):
            return
        if not self.buffer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(self.buffer.decode())
        self.buffer = b""
        self.times.append(time.perf_counter() - self.sent)
        self.next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(f"the connection was lost: {error}"))


async def load(port: int, several: list[list[bytes]]) -> tuple[float, list[float]]:
    """Seconds, and the latency of every request, with one connection per list of requests."""
    loop = asyncio.get_running_loop()
    times: list[float] = []
    waits = [loop.create_future() for _ in several]
    started = time.perf_counter()
    for requests, done in zip(several, waits, strict=True):
        asking = Asking(iter(requests), done, times)
        await loop.create_connection(lambda asking=asking: asking, "127.0.0.1", port)
    await asyncio.gather(*waits)
    return time.perf_counter() - started, times


def cpu_of(process: int) -> float:
    """CPU seconds of a process, and of those that it has started and that still run."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    started = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + sum(cpu_of(int(each)) for each in started)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def running(code: str, *arguments: str, python: str = sys.executable) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: yields its port and process."""
    port = free_port()
    process = subprocess.Popen([python, "-c", code, str(port), *arguments])
    try:
        for _ in range(2400):
            try:
                socket.create_connection(("127.0.0.1", port), 0.1).close()
                break
            except OSError:
                if process.poll() is not None:
                    raise RuntimeError("the server has ended") from None
                time.sleep(0.05)
        yield port, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


SERVICE = f"""
import sys
from regretless.serve import ModelSpec, Service
from regretless.serve.server import run
port, log, sync, snapshots = sys.argv[1:]
with Service(log, sync=sync, snapshots=snapshots) as service:
    service.add_model(ModelSpec.of("OnlineLogisticRegression", {COLUMNS!r}, ["no", "yes"]))
    run(service, port=int(port))
"""
ANSWER = b'{"id":"a1","seq":1,"version":0,"probabilities":{"no":0.5,"yes":0.5}}'
BARE = f"""
import sys, uvicorn
async def app(scope, receive, send):
    await receive()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"{len(ANSWER)}")]
    await send({{"type": "http.response.start", "status": 200, "headers": headers}})
    await send({{"type": "http.response.body", "body": {ANSWER!r}}})
uvicorn.run(app, port=int(sys.argv[1]), access_log=False, log_level="warning", lifespan="off")
"""
FASTAPI = """
import sys, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
class Row(BaseModel):
    id: str
    x: dict[str, float]
class Said(BaseModel):
    id: str
    seq: int
    version: int
    probabilities: dict[str, float]
app = FastAPI()
@app.post("/predict")
async def predict(row: Row) -> Said:
    return Said(id=row.id, seq=1, version=0, probabilities={"no": 0.5, "yes": 0.5})
uvicorn.run(app, port=int(sys.argv[1]), access_log=False, log_level="warning", lifespan="off")
"""

MLSERVER = """
import asyncio, socket, sys
from mlserver import MLModel, MLServer, ModelSettings, Settings
from mlserver.types import InferenceResponse, ResponseOutput
class Constant(MLModel):
    async def load(self):
        return True
    async def predict(self, payload):
        outputs = [ResponseOutput(name="p", shape=[1, 2], datatype="FP64", data=[0.5, 0.5])]
        return InferenceResponse(model_name=self.name, outputs=outputs)
def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
async def serve():
    ports = {"http_port": int(sys.argv[1]), "grpc_port": free_port(), "metrics_port": free_port()}
    server = MLServer(Settings(host="127.0.0.1", parallel_workers=0, debug=False, **ports))
    await server.start([ModelSettings(name="constant", implementation=Constant)])
asyncio.run(serve())
"""
CONSTANT = """
import bentoml
@bentoml.service(logging={"access": {"enabled": False}})
class Constant:
    @bentoml.api
    def predict(self, id: str, x: dict[str, float]) -> dict[str, float]:
        return {"no": 0.5, "yes": 0.5}
"""
BENTOML = f"""
import os, sys
from pathlib import Path
port, folder = sys.argv[1:]
Path(folder, "constant.py").write_text({CONSTANT!r})
options = ["--working-dir", folder, "--host", "127.0.0.1", "--port", port]
os.execv(sys.executable, [sys.executable, "-m", "bentoml", "serve", "constant:Constant", *options])
"""


def has(python: str, module: str) -> bool:
    return not subprocess.run([python, "-c", f"import {module}"], check=False, capture_output=True).returncode


def rivals(python: str, n: int, folder: str) -> None:
    """Servers of models that return a constant."""
    if has(python, "mlserver"):
        path, inputs = "/v2/models/constant/infer", {"name": "x", "shape": [1, 5], "datatype": "FP64"}
        bodies = [json.dumps({"inputs": [inputs | {"data": [*x.values()]}]}).encode() for x, _ in rows(n)]
        with running(MLSERVER, python=python) as server:
            several = [[request(path, body) for body in bodies[i::16]] for i in range(16)]
            measure("MLServer, a constant, 16 connections", server, several, n)
    else:
        print("MLServer is not installed")
    if has(python, "bentoml"):
        with running(BENTOML, folder, python=python) as server:
            measure("BentoML, a constant, 16 connections", server, alternating(n, 16, labels=False), n)
    else:
        print("BentoML is not installed")


def alternating(n: int, connections: int, start: int = 0, labels: bool = True) -> list[list[bytes]]:
    found: list[list[bytes]] = [[] for _ in range(connections)]
    for i, (x, y) in enumerate(rows(n, seed=start)):
        some = found[i % connections]
        some.append(request("/predict", json.dumps({"id": f"{start}-{i}", "x": x}).encode()))
        if labels:
            some.append(request("/label", json.dumps({"id": f"{start}-{i}", "y": y}).encode()))
    return found


def bulk(n: int, at_once: int, start: int) -> list[list[bytes]]:
    """Bodies of rows, each followed by a body of their labels."""
    found = []
    some = rows(n, seed=start)
    for i in range(0, n, at_once):
        part = list(enumerate(some[i : i + at_once], start=i))
        for body in (
            "\n".join(json.dumps({"id": f"{start}-{j}", "x": x}) for j, (x, _) in part),
            "\n".join(json.dumps({"id": f"{start}-{j}", "y": y}) for j, (_, y) in part),
        ):
            found.append(request("/bulk", body.encode(), "application/x-ndjson"))
    return [found]


def measure(name: str, server: tuple[int, int], several: list[list[bytes]], n: int, wanted: str = "") -> Load:
    port, process = server
    before = cpu_of(process)
    seconds, times = asyncio.run(load(port, several))
    cpu = cpu_of(process) - before
    p50, p99 = np.quantile(times, [0.5, 0.99])
    found = Load(name, n / seconds, p50 * 1e3, p99 * 1e3, cpu / n * 1e6, wanted)
    print(
        f"{found.name:<48} {found.per_second:>9,.0f} /s  p50 {found.p50:6.1f} ms  p99 {found.p99:6.1f} ms  "
        f"CPU {found.cpu_us:6.1f} µs  load {os.getloadavg()[0]:4.1f}   {found.wanted}",
        flush=True,
    )
    return found


def has_postgres() -> bool:
    try:
        import psycopg
    except ImportError:
        return False
    try:
        psycopg.connect(POSTGRES, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


@contextmanager
def database() -> Iterator[str]:
    """An empty database."""
    import psycopg

    name = f"regretless_{os.getpid()}"
    with psycopg.connect(POSTGRES, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        yield POSTGRES.rpartition("/")[0] + f"/{name}"
    finally:
        with psycopg.connect(POSTGRES, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--only", default="", help="parts: floors, rivals, normal, full, bulk, postgres, restart")
    parser.add_argument("--rivals", default=sys.executable, help="the Python that has MLServer and BentoML")
    given = parser.parse_args()
    n, only = given.rows, given.only.split(",") if given.only else []

    def asked(part: str) -> bool:
        return not only or part in only

    if asked("floors"):
        for name, code in (("bare ASGI, 16 connections", BARE), ("plain FastAPI, 16 connections", FASTAPI)):
            with running(code) as server:
                measure(name, server, alternating(n // 2, 16, labels=False), n // 2)
    with tempfile.TemporaryDirectory() as folder:
        if asked("rivals"):
            rivals(given.rivals, n // 4, folder)
        if asked("normal") or asked("bulk") or asked("restart"):
            with running(SERVICE, f"{folder}/log.db", "normal", f"{folder}/snapshots") as server:
                measure("(warming up)", server, alternating(500, 16, start=1), 1000)
                if asked("normal"):
                    target = ">= 5,000 /s, p99 <= 25 ms, <= 120 µs"
                    measure(
                        "predict and label, SQLite, 16 connections", server, alternating(n, 16, start=2), 2 * n, target
                    )
                if asked("bulk"):
                    several = bulk(4 * n, 1000, start=3)
                    measure("/bulk, SQLite", server, several, 8 * n, ">= 40,000 rows/s")
        if asked("full"):
            with running(SERVICE, f"{folder}/full.db", "full", f"{folder}/full") as server:
                measure("(warming up)", server, alternating(500, 16, start=1), 1000)
                measure(
                    "predict and label, synchronous=FULL", server, alternating(n // 2, 16, start=2), n, ">= 3,000 /s"
                )
        if asked("restart"):
            restart(f"{folder}/log.db")
        if asked("postgres") and has_postgres():
            with database() as url, running(SERVICE, url, "normal", f"{folder}/pg") as server:
                measure("(warming up)", server, alternating(500, 16, start=1), 1000)
                measure(
                    "predict and label, PostgreSQL, 64 connections",
                    server,
                    alternating(n // 2, 64, start=2),
                    n,
                    ">= 3,000 /s",
                )
                measure("/bulk, PostgreSQL", server, bulk(2 * n, 1000, start=3), 4 * n, ">= 10,000 rows/s")


def restart(log: str) -> None:
    """The time to read a log from its start, and what-if replays; once before, for the compiled code to be loaded."""
    from regretless.serve import EventLog, Service
    from regretless.serve.replay import what_if

    Service(log).close()
    started, cpu = time.perf_counter(), time.process_time()
    with Service(log) as service:
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        events = service.seq
    print(
        f"restart, no snapshot: {events:,} events in {seconds:.1f} s, {cpu / events * 1e6:.1f} µs CPU per event   "
        "<= 5 s + 20 µs per event"
    )
    reading = EventLog(log, write=False)
    what_if(reading, WHAT_IF, until=1000)  # loads the compiled code
    _, lines = what_if(reading, WHAT_IF)
    for name, line in lines.items():
        if line.seconds:
            print(f"what-if {name}: {line.seconds / events * 1e6:.1f} µs CPU per event   <= 60")
    reading.close()


if __name__ == "__main__":
    main()
