"""`regretless consume`: forecasts and labels from a broker."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import AsyncExitStack, ExitStack
from typing import Annotated

import typer

from regretless.cli.exits import clean_errors
from regretless.cli.listing import complete_learner
from regretless.cli.options import Classes, Features, Host, Keys, Snapshots, Sync, SyncMode
from regretless.cli.serve import open_service
from regretless.cli.terminal import say


def consume(
    broker: Annotated[str, typer.Argument(help="nats://HOST, redis://HOST, amqp://USER:PASSWORD@HOST or kafka://HOST")],
    model: Annotated[
        str | None,
        typer.Option(help="A learner, or a model file; see `regretless serve`.", autocompletion=complete_learner),
    ] = None,
    features: Features = None,
    classes: Classes = None,
    name: Annotated[str, typer.Option(help="The model of messages that name none.")] = "default",
    log: Annotated[
        str, typer.Option(help="The log: an SQLite file, or postgresql://USER@HOST/NAME.")
    ] = "regretless.db",
    snapshots: Snapshots = None,
    sync: SyncMode = Sync.normal,
    subject: Annotated[
        str, typer.Option(help="The subject, stream, queue or topic of the messages.")
    ] = "regretless.events",
    replies: Annotated[str, typer.Option(help="The one that forecasts are published to.")] = "regretless.replies",
    group: Annotated[str, typer.Option(help="The consumer's name at the broker.")] = "regretless",
    park_seconds: Annotated[
        float, typer.Option(min=0.0, help="How long a label waits for its forecast, if it comes before it.")
    ] = 3600.0,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve the same log over HTTP too, at this port; 0 means any.")
    ] = None,
    host: Host = "127.0.0.1",
    keys: Keys = None,
) -> None:
    """Take forecasts and labels from a broker: NATS JetStream, Redis Streams, RabbitMQ or Kafka.

    A message is {"id": "a1", "x": {...}} or {"id": "a1", "y": "yes"}. It is acknowledged once it is in the log, and its
    forecast has been published. Messages that are delivered again change nothing. A log has one writer: pass --port to
    serve the log over HTTP at the same time.

    Example: regretless consume nats://localhost --features amount,country --classes good,fraud
    """
    with clean_errors(), ExitStack() as stack:
        try:
            from regretless.serve import brokers, intake
            from regretless.serve.server import require_keys, serving
        except ModuleNotFoundError as error:
            raise ImportError(f'the service needs {error.name}: pip install "regretless[serve]"') from None
        if port is not None:
            require_keys(host, keys)
        service = open_service(stack, log, snapshots, sync, model, features, classes, name)
        taking = intake.Intake(service, name if name in service.hosts else None, park_seconds=park_seconds)
        connection = brokers.connection_of(broker, taking, brokers.Names(subject, replies, group))
        for each in service.hosts.values():
            service.call(each.warm_up).result()

        async def until_signal() -> None:
            stop = asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
            async with AsyncExitStack() as beside:
                if port is not None:
                    page = await beside.enter_async_context(serving(service, host=host, port=port, keys=keys))
                    say(f"page: {page}/", sys.stderr)
                await brokers.consume(connection, stop, lambda: say(f"taking messages from {subject}", sys.stderr))

        asyncio.run(until_signal())
        counts = taking.counts
        say(
            f"{counts.forecasts} forecasts, {counts.learned} labels learned, {counts.repeated} repeats, "
            f"{taking.waiting} labels wait, {counts.expired} expired, {counts.refused} messages refused",
            sys.stderr,
        )
