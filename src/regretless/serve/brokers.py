"""Brokers: where messages come from and replies go, by FastStream and its clients. Needs `regretless[brokers]`.

Each broker takes messages in batches, lets an `Intake` carry them out, publishes the replies, and only then
acknowledges the messages. What was not acknowledged is delivered again after a failure; the service has seen it, and
publishes the same forecasts again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from regretless.serve.collector import calm
from regretless.serve.intake import Intake

AT_ONCE = 1000  # messages of a batch
UNACKNOWLEDGED = 4 * AT_ONCE  # messages that a broker delivers before the first is acknowledged
START_SECONDS = 10.0  # until the broker must have answered
STOP_SECONDS = 3.0  # for the batch that is being carried out
EVERY_SECONDS = 1.0  # between two looks at labels that wait too long
LOST_SECONDS = 30.0  # after which a message that was delivered and not acknowledged is delivered again
MOST_REPLIES = 100_000  # of a stream of Redis, about

logger = logging.getLogger("regretless.brokers")
logger.addHandler(logging.StreamHandler())


class Names(NamedTuple):
    """Where messages come from, where replies go, and as whom we read: a subject, queue, stream or topic each."""

    subject: str = "regretless.events"
    replies: str = "regretless.replies"
    group: str = "regretless"


Delivered = tuple[bytes, Callable[[], Awaitable[Any]]]  # a message, and what acknowledges it


class Connection:
    """A broker. Subclasses have a FastStream `broker` whose subscriber calls `carry_out`, or a client of their own."""

    def __init__(self, url: str, intake: Intake, names: Names) -> None:
        self.url, self.intake, self.names = url, intake, names
        self.broker: Any = None

    @property
    def _options(self) -> dict[str, Any]:
        """Options of all FastStream brokers: handlers get whole messages; errors are logged by `carry_out`."""
        return {"apply_types": False, "decoder": _whole, "logger": None, "graceful_timeout": STOP_SECONDS}

    async def start(self) -> None:
        """Connect, and begin to take messages."""
        await self.broker.start()

    async def stop(self) -> None:
        """Take no more."""
        await self.broker.stop()

    async def publish(self, replies: Sequence[bytes]) -> None:
        """Publish replies; they have arrived when it returns."""
        raise NotImplementedError

    async def recover(self, seconds: float) -> None:
        """Take messages that were delivered some seconds ago and not acknowledged, where the broker does not."""

    async def carry_out(self, bodies: Sequence[bytes], acknowledge: Callable[[], Awaitable[Any]]) -> bool:
        """Carry out a batch, publish the replies, and acknowledge; False if that failed, as with a lost connection."""
        try:
            replies = await self.intake.take(bodies)
            if replies:
                await self.publish(replies)
            await acknowledge()
        except Exception:
            logger.exception("a batch of %d messages was not acknowledged, and will be delivered again", len(bodies))
            return False
        return True


async def _whole(message: Any) -> Any:
    return message


class Collecting(Connection):
    """A broker that delivers messages one by one, and more of them before the earlier ones are acknowledged.

    They are collected here: while a batch is carried out, the next one grows.
    """

    def __init__(self, url: str, intake: Intake, names: Names) -> None:
        super().__init__(url, intake, names)
        self._collected: list[Delivered] = []
        self._worker: asyncio.Task[None] | None = None
        self._stopping = False

    async def stop(self) -> None:
        """Finish the batch that is being carried out, and take no more."""
        await self._finish()
        await super().stop()

    async def _finish(self) -> None:
        self._collected = []
        self._stopping = True
        if self._worker is not None:
            await asyncio.wait([self._worker], timeout=STOP_SECONDS)
            self._worker.cancel()

    def _collect(self, body: bytes, acknowledge: Callable[[], Awaitable[Any]]) -> None:
        # in a long wait for the log, messages are delivered again and again: those beyond come again later
        if self._stopping or len(self._collected) >= 2 * UNACKNOWLEDGED:
            return
        self._collected.append((body, acknowledge))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())

    async def _work(self) -> None:
        """Carry out what has been collected, until nothing is left."""
        while self._collected:
            batch, self._collected = self._collected[:AT_ONCE], self._collected[AT_ONCE:]
            await self.carry_out([body for body, _ in batch], partial(_acknowledge, batch))


async def _acknowledge(batch: Sequence[Delivered]) -> None:
    for _, acknowledge in batch:
        await acknowledge()


class Nats(Collecting):
    """NATS JetStream: a durable consumer. A stream is made unless one has the subject.

    It uses the client below FastStream: FastStream's handling of single messages takes three fifths of the time.
    """

    def __init__(self, url: str, intake: Intake, names: Names) -> None:
        from nats import connect

        super().__init__(url, intake, names)
        self._connect = connect

    async def start(self) -> None:
        """Connect, make the stream, and begin."""
        from nats.errors import NoRespondersError
        from nats.js.api import ConsumerConfig, RetentionPolicy
        from nats.js.errors import NotFoundError, ServiceUnavailableError

        self._client = await self._connect(self.url, max_reconnect_attempts=-1, error_cb=_told)
        streams = self._client.jetstream()
        try:
            stream = await streams.find_stream_name_by_subject(self.names.subject)
        except NotFoundError:
            stream = self.names.subject.translate(str.maketrans(".*>", "---"))
            await streams.add_stream(name=stream, subjects=[self.names.subject], retention=RetentionPolicy.WORK_QUEUE)
        except (ServiceUnavailableError, NoRespondersError):
            raise ValueError(
                f"the NATS server at {self.url} runs without JetStream, which keeps messages until they are "
                "acknowledged: start it with `nats-server -js`."
            ) from None
        await streams.subscribe(
            self.names.subject,
            queue=self.names.group,
            stream=stream,
            config=ConsumerConfig(ack_wait=LOST_SECONDS, max_ack_pending=UNACKNOWLEDGED),
            manual_ack=True,
            cb=self._handle,
        )

    async def _handle(self, message: Any) -> None:
        self._collect(message.data, message.ack)

    async def stop(self) -> None:
        """Finish the batch that is being carried out, and take no more."""
        await self._finish()
        await self._client.close()

    async def publish(self, replies: Sequence[bytes]) -> None:
        """Publish to the subject of replies, whoever listens; a stream may keep it."""
        for reply in replies:
            await self._client.publish(self.names.replies, reply)
        await self._client.flush()


async def _told(error: Exception) -> None:
    logger.warning("NATS: %s", str(error) or type(error).__name__)


class Redis(Connection):
    """A stream of Redis, read by a consumer group. An entry has one field, of any name, that holds the message."""

    def __init__(self, url: str, intake: Intake, names: Names) -> None:
        from faststream import AckPolicy
        from faststream.redis import RedisBroker, StreamSub

        super().__init__(url, intake, names)
        self.broker = RedisBroker(url, **self._options)
        stream = StreamSub(
            names.subject,
            group=names.group,
            consumer=names.group,  # a log has one writer, so there is one consumer
            batch=True,
            max_records=AT_ONCE,
            polling_interval=int(1000 * EVERY_SECONDS),
        )
        self.broker.subscriber(stream=stream, ack_policy=AckPolicy.MANUAL, parser=_unparsed)(self._handle)

    async def start(self) -> None:
        """Connect, make the group, take what an earlier consumer had not acknowledged, and begin."""
        import redis.asyncio
        from redis.exceptions import ResponseError

        self._client = redis.asyncio.from_url(self.url)
        try:
            await self._client.xgroup_create(self.names.subject, self.names.group, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
        await self.recover(0.0)
        await super().start()

    async def stop(self) -> None:
        """Take no more."""
        await super().stop()
        await self._client.aclose()

    async def recover(self, seconds: float) -> None:
        """Take entries that were delivered some seconds ago and not acknowledged."""
        subject, _, group = self.names
        while True:
            _, entries, *_ = await self._client.xautoclaim(
                subject, group, group, min_idle_time=int(1000 * seconds), start_id="0", count=AT_ONCE
            )
            if not entries:
                return
            ids = [entry[0] for entry in entries]
            if not await self._carry_out([entry[1] for entry in entries], ids):
                return

    async def _handle(self, message: Any) -> None:
        raw = message.raw_message
        await self._carry_out(raw["data"], raw["message_ids"])

    async def _carry_out(self, entries: Sequence[dict[bytes, bytes] | None], ids: Sequence[bytes]) -> bool:
        bodies = [_field(each) for each in entries if each]  # none, if the entry was deleted meanwhile
        return await self.carry_out(bodies, lambda: self._client.xack(self.names.subject, self.names.group, *ids))

    async def publish(self, replies: Sequence[bytes]) -> None:
        """Add to the stream of replies, which keeps the newest."""
        async with self._client.pipeline(transaction=False) as pipeline:
            for reply in replies:
                pipeline.xadd(self.names.replies, {"message": reply}, maxlen=MOST_REPLIES, approximate=True)
            await pipeline.execute()


async def _unparsed(raw: Any) -> Any:
    """FastStream's own parser fails for the whole batch if one message is not text."""
    from faststream.message import StreamMessage

    return StreamMessage(raw_message=raw, body=b"")


def _field(entry: dict[bytes, bytes]) -> bytes:
    """The message of an entry; FastStream's own publishers put it into an envelope."""
    from faststream.redis.parser import BinaryMessageFormatV1 as Envelope

    value = next(iter(entry.values()))
    return Envelope.parse(value)[0] if value.startswith(Envelope.IDENTITY_HEADER) else value


class Rabbit(Collecting):
    """A durable queue of RabbitMQ."""

    def __init__(self, url: str, intake: Intake, names: Names) -> None:
        from faststream import AckPolicy
        from faststream.rabbit import Channel, RabbitBroker, RabbitQueue

        super().__init__(url, intake, names)
        self.broker = RabbitBroker(url, default_channel=Channel(prefetch_count=UNACKNOWLEDGED), **self._options)
        queue = RabbitQueue(names.subject, durable=True)
        self.broker.subscriber(queue, ack_policy=AckPolicy.MANUAL)(self._handle)

    async def _handle(self, message: Any) -> None:
        self._collect(message.body, message.ack)

    async def publish(self, replies: Sequence[bytes]) -> None:
        """Send to the queue of replies, if there is one, and wait until RabbitMQ has confirmed it."""
        await asyncio.gather(
            *(self.broker.publish(reply, self.names.replies, persist=True, timeout=START_SECONDS) for reply in replies)
        )


class Kafka(Connection):
    """A topic of Kafka, read by a consumer group whose offset is committed after each batch."""

    def __init__(self, url: str, intake: Intake, names: Names) -> None:
        from faststream import AckPolicy
        from faststream.kafka import KafkaBroker

        super().__init__(url, intake, names)
        self.broker = KafkaBroker(url.removeprefix("kafka://").rstrip("/").split(","), **self._options)
        subscriber = self.broker.subscriber(
            names.subject,
            group_id=names.group,
            batch=True,
            max_records=AT_ONCE,
            batch_timeout_ms=50,
            auto_offset_reset="earliest",
            ack_policy=AckPolicy.MANUAL,
        )
        subscriber(self._handle)

    async def _handle(self, message: Any) -> None:
        await self.carry_out([each.value or b"" for each in message.raw_message], message.ack)

    async def publish(self, replies: Sequence[bytes]) -> None:
        """Send to the topic of replies."""
        await self.broker.publish_batch(*replies, topic=self.names.replies)


KINDS: dict[str, type[Connection]] = {
    "nats": Nats,
    "tls": Nats,
    "redis": Redis,
    "rediss": Redis,
    "amqp": Rabbit,
    "amqps": Rabbit,
    "kafka": Kafka,
}


def connection_of(url: str, intake: Intake, names: Names | None = None) -> Connection:
    """The broker of an address."""
    kind = KINDS.get(url.partition("://")[0])
    if kind is None or "://" not in url:
        raise ValueError(f"{url!r} is not the address of a broker: use nats://, redis://, amqp:// or kafka://.")
    try:
        return kind(url, intake, names or Names())
    except ImportError as error:
        raise ImportError(f'{kind.__name__} needs more packages ({error}): pip install "regretless[brokers]"') from None


async def consume(connection: Connection, stop: asyncio.Event, started: Callable[[], None] = lambda: None) -> None:
    """Take messages until `stop` is set."""
    await connection.intake.begin()
    try:
        async with asyncio.timeout(START_SECONDS):
            await connection.start()
    except ValueError:
        raise
    except Exception as error:  # each client has errors of its own
        told = f"{type(error).__name__}: {error}".rstrip(": ")
        raise ValueError(f"no broker answers at {_without_password(connection.url)} ({told}).") from error
    calm()
    started()
    recovered = asyncio.get_running_loop().time()
    try:
        while not stop.is_set():
            try:
                await asyncio.wait_for(stop.wait(), EVERY_SECONDS)
            except TimeoutError:
                pass
            replies = await connection.intake.expire()
            if replies:
                await connection.publish(replies)
            if asyncio.get_running_loop().time() > recovered + LOST_SECONDS:
                await connection.recover(LOST_SECONDS)
                recovered = asyncio.get_running_loop().time()
    finally:
        await connection.stop()


def _without_password(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
