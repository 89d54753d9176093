"""A consumer of NATS under load: messages per second, and CPU seconds of the consumer per message.

`python -m benchmarks.brokers` fills a stream with forecasts and their labels, starts a consumer in a process of its
own, and measures until all messages are acknowledged. A NATS server with JetStream must run on this machine. CPU per
message does not depend on how busy the machine is; messages per second do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from uuid import uuid4

from benchmarks.serve import COLUMNS, cpu_of, rows

URL = "nats://127.0.0.1:4222"
CONSUMER = f"""
import asyncio, signal, sys
from regretless.serve import ModelSpec, Service
from regretless.serve.brokers import Names, connection_of, consume
from regretless.serve.intake import Intake
log, subject, replies, group = sys.argv[1:]

async def run(service):
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    connection = connection_of({URL!r}, Intake(service), Names(subject, replies, group))
    print("ready", flush=True)
    sys.stdin.readline()
    await consume(connection, stop)

with Service(log) as service:
    service.add_model(ModelSpec.of("OnlineLogisticRegression", {COLUMNS!r}, ["no", "yes"]))
    service.call(service.host().warm_up).result()
    asyncio.run(run(service))
"""


async def measure(n: int) -> None:
    import nats

    name = f"bench-{uuid4().hex[:8]}"
    client = await nats.connect(URL)
    jetstream = client.jetstream()
    await jetstream.add_stream(name=name, subjects=[f"{name}.events"], retention="workqueue")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", CONSUMER, f"{folder}/log.db", f"{name}.events", f"{name}.replies", name]
        consumer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert consumer.stdin is not None and consumer.stdout is not None
        try:
            for i, (x, y) in enumerate(rows(n // 2)):
                await client.publish(f"{name}.events", json.dumps({"id": f"r{i}", "x": x}).encode())
                await client.publish(f"{name}.events", json.dumps({"id": f"r{i}", "y": y}).encode())
                if i % 500 == 0:
                    await client.flush()
            await client.flush()
            assert consumer.stdout.readline() == "ready\n"
            replies = 0

            async def count(_: object) -> None:
                nonlocal replies
                replies += 1

            await client.subscribe(f"{name}.replies", cb=count)
            await client.flush()
            cpu, started = cpu_of(consumer.pid), time.perf_counter()
            consumer.stdin.write("go\n")
            consumer.stdin.flush()
            while (await jetstream.stream_info(name)).state.messages:
                assert consumer.poll() is None, "the consumer has ended"
                await asyncio.sleep(0.02)
            seconds = time.perf_counter() - started
            cpu = cpu_of(consumer.pid) - cpu
            await asyncio.sleep(0.5)
            print(
                f"NATS JetStream, {n} messages: {n / seconds:.0f} messages/s, {1e6 * cpu / n:.0f} µs CPU of the "
                f"consumer per message, {replies} forecasts published, load {os.getloadavg()[0]:.1f}"
            )
            consumer.send_signal(signal.SIGTERM)
            consumer.wait(20)
        finally:
            consumer.kill()
            await jetstream.delete_stream(name)
            await client.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=50_000)
    asyncio.run(measure(parser.parse_args().messages))
