"""Brokers on this machine (NATS with JetStream, Redis, RabbitMQ), and Kafka in FastStream's memory.

Tests of a broker that does not run at its usual port skip and say so.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from uuid import uuid4

import httpx
import pytest
from games import LOW, rows, service

pytest.importorskip("faststream", reason="FastStream is not installed: pip install regretless[brokers]")

from commands import command
from regretless.serve import Client, EventLog
from regretless.serve.brokers import Names, connection_of, consume
from regretless.serve.intake import Intake
from regretless.serve.replay import verify
from regretless.serve.tables import FORECAST, LABEL

pytestmark = pytest.mark.services


def message(**said) -> bytes:
    return json.dumps(said).encode()


class Nats:
    url, port = "nats://127.0.0.1:4222", 4222

    def __init__(self, names: Names) -> None:
        self.names, self.stream = names, f"{names.group}-stream"  # not the name that a consumer would choose

    async def open(self) -> None:
        nats = pytest.importorskip("nats", reason="nats-py is not installed")
        self.client = await nats.connect(self.url)
        self.jetstream = self.client.jetstream()
        try:
            await self.jetstream.account_info()
        except nats.js.errors.ServiceUnavailableError:
            pytest.skip("the NATS server runs without JetStream")
        await self.jetstream.add_stream(name=self.stream, subjects=[self.names.subject], retention="workqueue")
        await self.jetstream.add_stream(name=f"{self.stream}-replies", subjects=[self.names.replies])

    async def send(self, messages: list[bytes]) -> None:
        for each in messages:
            await self.jetstream.publish(self.names.subject, each)

    async def left(self) -> int:
        return (await self.jetstream.stream_info(self.stream)).state.messages

    async def replies(self) -> list[bytes]:
        name = f"{self.stream}-replies"
        n = (await self.jetstream.stream_info(name)).state.last_seq
        return [(await self.jetstream.get_msg(name, seq)).data for seq in range(1, n + 1)]

    async def close(self) -> None:
        for name in (self.stream, f"{self.stream}-replies"):
            await self.jetstream.delete_stream(name)
        await self.client.close()


class Redis:
    url, port = "redis://127.0.0.1:6379/0", 6379

    def __init__(self, names: Names) -> None:
        self.names = names

    async def open(self) -> None:
        redis = pytest.importorskip("redis.asyncio", reason="redis-py is not installed")
        self.client = redis.from_url(self.url)

    async def send(self, messages: list[bytes]) -> None:
        for each in messages:
            await self.client.xadd(self.names.subject, {"message": each})

    async def left(self) -> int:
        group = (await self.client.xinfo_groups(self.names.subject))[0]
        return group["pending"] + (group["lag"] or 0)

    async def replies(self) -> list[bytes]:
        return [fields[b"message"] for _, fields in await self.client.xrange(self.names.replies)]

    async def close(self) -> None:
        await self.client.delete(self.names.subject, self.names.replies)
        await self.client.aclose()


class Rabbit:
    url, port = "amqp://guest:guest@127.0.0.1:5672/", 5672

    def __init__(self, names: Names) -> None:
        self.names = names

    async def open(self) -> None:
        aio_pika = pytest.importorskip("aio_pika", reason="aio-pika is not installed")
        self.message = aio_pika.Message
        self.connection = await aio_pika.connect(self.url)
        self.channel = await self.connection.channel()
        await self.channel.declare_queue(self.names.subject, durable=True)
        self.queue = await self.channel.declare_queue(self.names.replies, durable=True)

    async def send(self, messages: list[bytes]) -> None:
        for each in messages:
            await self.channel.default_exchange.publish(self.message(each), self.names.subject)

    async def left(self) -> int:
        """Messages that wait. Those that were delivered come back when the consumer ends without an acknowledgement."""
        return (await self.channel.declare_queue(self.names.subject, passive=True)).declaration_result.message_count

    async def replies(self) -> list[bytes]:
        found = []
        while (each := await self.queue.get(fail=False)) is not None:
            await each.ack()
            found.append(each.body)
        return found

    async def close(self) -> None:
        for name in (self.names.subject, self.names.replies):
            await self.channel.queue_delete(name)
        await self.connection.close()


@pytest.fixture(params=[Nats, Redis, Rabbit], ids=["nats", "redis", "rabbitmq"])
def kind(request):
    try:
        socket.create_connection(("127.0.0.1", request.param.port), 1.0).close()
    except OSError:
        pytest.skip(f"no {request.param.__name__} runs at port {request.param.port} of this machine")
    return request.param


@pytest.fixture
def names():
    some = uuid4().hex[:10]
    return Names(f"test-{some}.events", f"test-{some}.replies", f"test-{some}")


async def until(condition, seconds=300.0):
    """Wait for something that another task or process does."""
    end = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.05)


def test_messages_are_carried_out_answered_and_acknowledged(kind, names, tmp_path):
    some = rows(30)
    forecasts = [message(id=f"r{i}", x=x) for i, (x, _) in enumerate(some)]
    labels = [message(id=f"r{i}", y=y) for i, (_, y) in enumerate(some)]

    async def play(engine):
        broker, intake, stop = kind(names), Intake(engine), asyncio.Event()
        await broker.open()
        try:
            await broker.send(forecasts[:5])  # before the consumer's first start
            task = asyncio.create_task(consume(connection_of(kind.url, intake, names), stop))
            await broker.send([labels[7], b"\xff{", *forecasts[5:], *labels])

            async def done():
                return engine.host().version == 30 and not await broker.left()

            await until(done)
            stop.set()
            await task
            assert await broker.left() == 0
            return intake, [json.loads(each) for each in await broker.replies()]
        finally:
            stop.set()
            await broker.close()

    with service(tmp_path / "log.db") as engine:
        engine.call(engine.host().warm_up).result()
        intake, said = asyncio.run(play(engine))
    assert [reply["id"] for reply in said if reply["status"] == 200] == [f"r{i}" for i in range(30)]
    assert [reply["status"] for reply in said if reply["status"] != 200] == [422]
    assert intake.counts.parked == 1 and intake.waiting == 0 and intake.counts.learned == 30


CHILD = """
import asyncio, os, signal, sys
from games import service
from regretless.serve import brokers
from regretless.serve.intake import Intake

url, log, subject, replies, group, step, left = sys.argv[1:]
left = int(left)
brokers.AT_ONCE, brokers.LOST_SECONDS = 20, 2.0

def reached(name):
    global left
    if name == step:
        left -= 1
        if left == 0:
            os._exit(9)

async def run(engine):
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await brokers.consume(brokers.connection_of(url, Intake(engine), brokers.Names(subject, replies, group)), stop)

with service(log, reached=reached) as engine:
    asyncio.run(run(engine))
"""


def test_a_killed_consumer_gets_its_messages_again_and_says_the_same(kind, names, tmp_path):
    n = 300
    some = rows(n)
    messages = []
    for i, (x, _) in enumerate(some):
        messages.append(message(id=f"r{i}", x=x))
        if i >= 25:
            messages.append(message(id=f"r{i - 25}", y=some[i - 25][1]))
    messages += [message(id=f"r{i}", y=some[i][1]) for i in range(n - 25, n)]
    log = tmp_path / "log.db"

    def start(step, left):
        command = [sys.executable, "-c", CHILD, kind.url, str(log), *names, step, str(left)]
        return subprocess.Popen(command, cwd=__file__.rpartition("/")[0])

    async def play():
        broker = kind(names)
        await broker.open()
        try:
            await broker.send(messages)
            for step, left in (("transaction", 4), ("committed", 6), ("learned", 5)):
                child = start(step, left)
                assert await asyncio.to_thread(child.wait, 300) == 9, step
            child = start("never", 0)

            async def done():
                assert child.poll() is None
                return await labels_in(log) == n and not await broker.left()

            await until(done)
            child.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(child.wait, 60) == 0
            assert await broker.left() == 0
            return await broker.replies()
        finally:
            await broker.close()

    said = defaultdict(set)
    for reply in asyncio.run(play()):
        said[json.loads(reply)["id"]].add(reply)
    assert said.keys() == {f"r{i}" for i in range(n)}
    assert all(len(several) == 1 for several in said.values())  # the same bytes, however often
    found = verify(EventLog(log, write=False))
    assert (found.forecasts, found.labels, found.different) == (n, n, [])


def test_one_process_takes_messages_and_serves_http(kind, names, tmp_path):
    log = tmp_path / "log.db"
    options = ["--log", log, "--features", "a,b,c", "--classes", "no,yes", "--model", LOW, "--park-seconds", "0.1"]
    places = ["--subject", names.subject, "--replies", names.replies, "--group", names.group]

    async def play():
        broker = kind(names)
        await broker.open()
        child = subprocess.Popen(
            [sys.executable, "-m", "regretless", "consume", kind.url, "--port", "0", *map(str, options), *places],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            address = (await asyncio.to_thread(child.stderr.readline)).split()[1].rstrip("/")
            await broker.send([message(id="m1", x={"a": 1.0}), message(id="nobody", y="yes")])

            async def done():
                told = (await asyncio.to_thread(httpx.get, f"{address}/metrics")).text
                return 'messages_total{outcome="expired"} 1.0' in told and "regretless_parked_labels 0.0" in told

            await until(done)
            with Client(address) as client:  # a forecast by message, its label by HTTP
                assert await asyncio.to_thread(lambda: client.label("m1", "yes").learned)
            for another in (["serve", "--port", "0"], ["consume", kind.url]):
                refused = command(*another, "--log", log)
                assert refused.exit_code == 3 and "a log has one writer" in refused.output
            child.send_signal(signal.SIGTERM)
            return await asyncio.to_thread(child.communicate, timeout=60), child.returncode
        finally:
            child.kill()
            await broker.close()

    (_, told), status = asyncio.run(play())
    assert "1 forecasts, 0 labels learned, 0 repeats, 0 labels wait, 1 expired" in told and status == 0


async def labels_in(log) -> int:
    found = EventLog(log, write=False)
    try:
        return found.count(1, LABEL)
    finally:
        found.close()


def test_kafka_in_memory(names, tmp_path):
    pytest.importorskip("aiokafka", reason="aiokafka is not installed")
    from faststream.kafka import TestKafkaBroker

    said: list[bytes] = []

    async def listen(replies):
        said.extend(each.value for each in replies.raw_message)

    async def play(engine):
        connection = connection_of("kafka://localhost:9092,localhost:9093", Intake(engine), names)
        connection.broker.subscriber(names.replies, batch=True)(listen)
        async with TestKafkaBroker(connection.broker) as broker:
            x = {"a": 1.0}
            await broker.publish(message(id="late", y="no"), topic=names.subject)
            await broker.publish_batch(message(id="one", x=x), message(id="late", x=x), topic=names.subject)
            await broker.publish_batch(message(id="one", y="yes"), b"\xff", topic=names.subject)
            return connection.intake

    with service(tmp_path / "log.db") as engine:
        intake = asyncio.run(play(engine))
        assert engine.host().version == 2 and intake.waiting == 0
        assert engine.call(lambda: engine.log.count(1, FORECAST)).result() == 2
    assert [json.loads(each).get("id") for each in said] == ["one", "late", None]


@pytest.mark.parametrize("url", ["localhost", "http://localhost", "mqtt://localhost", "nats:localhost"])
def test_an_address_that_is_no_broker(url, tmp_path):
    with service(tmp_path / "log.db") as engine, pytest.raises(ValueError, match=r"use nats://, redis://"):
        connection_of(url, Intake(engine))


@pytest.mark.parametrize("url", ["nats://127.0.0.1:1", "redis://127.0.0.1:1", "amqp://me:secret@127.0.0.1:1/"])
def test_a_broker_that_does_not_answer(url, tmp_path, monkeypatch):
    monkeypatch.setattr("regretless.serve.brokers.START_SECONDS", 0.5)
    with service(tmp_path / "log.db") as engine:
        connection = connection_of(url, Intake(engine))
        with pytest.raises(ValueError, match=r"no broker answers at [a-z]+://127.0.0.1:1"):
            asyncio.run(consume(connection, asyncio.Event()))
