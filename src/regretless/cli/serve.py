"""`regretless serve`: forecasts and labels over HTTP."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regretless.cli.exits import clean_errors
from regretless.cli.listing import complete_learner
from regretless.cli.options import Classes, Features, Host, Keys, Snapshots, Sync, SyncMode, names
from regretless.cli.terminal import say

if TYPE_CHECKING:
    from regretless.serve.service import Service


def serve(
    model: Annotated[
        str | None,
        typer.Option(
            help="A learner, 'AIOLI(radius=5)', or a model file (default: OnlineLogisticRegression).",
            autocompletion=complete_learner,
        ),
    ] = None,
    features: Features = None,
    classes: Classes = None,
    name: Annotated[str, typer.Option(help="The name of the model.")] = "default",
    log: Annotated[
        str | None,
        typer.Option(help="The log: an SQLite file (default: regretless.db), or postgresql://USER@HOST/NAME."),
    ] = None,
    snapshots: Snapshots = None,
    sync: SyncMode = Sync.normal,
    keys: Keys = None,
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 means any.")] = 8000,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Serve two models on a built-in stream, in a temporary log unless --log is given."),
    ] = False,
) -> None:
    """Serve models over HTTP: POST /predict, later POST /label, and a page with how well it goes.

    Every forecast and label is in the log before it is answered. After a restart the models are the same, to the byte.
    Models of the log are served again without any option.

    Example: regretless serve --features amount,country --classes good,fraud
    """
    with clean_errors(), ExitStack() as stack:
        try:
            from regretless.serve.demo import Demo, add_models
            from regretless.serve.server import require_keys, run
        except ModuleNotFoundError as error:
            raise ImportError(f'the service needs {error.name}: pip install "regretless[serve]"') from None
        require_keys(host, keys)
        if log is None and demo:
            log = str(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "demo.db")
        service = open_service(
            stack, log or "regretless.db", snapshots, sync, model, features, classes, name, add_models if demo else None
        )

        def started(address: str) -> None:
            told = ", ".join(f"{each.name} ({each.recipe}, {each.version} labels)" for each in service.hosts.values())
            say(f"models: {told}", sys.stderr)
            say(f"page: {address}/", sys.stderr)
            if demo:
                asking = Demo(address)
                asking.start()
                stack.callback(asking.stop)

        run(service, host=host, port=port, keys=keys, started=started)


def open_service(
    stack: ExitStack,
    log: str,
    snapshots: Path | None,
    sync: Sync,
    model: str | None,
    features: list[str] | None,
    classes: list[str] | None,
    name: str,
    add_models: Callable[[Service], None] | None = None,
) -> Service:
    """The service of a log, with the model that the options describe, or those that `add_models` adds."""
    from regretless.serve.models import DEFAULT_MODEL, ModelSpec, class_of
    from regretless.serve.replies import ServiceError
    from regretless.serve.service import Service

    if snapshots is None and "://" not in log:
        snapshots = Path(f"{log}.snapshots")
    service = stack.enter_context(Service(log, snapshots=snapshots, sync=sync.value))
    if add_models is not None:
        add_models(service)
    elif model is not None or features is not None or classes is not None:
        columns = names(features)
        n = int(columns[0]) if len(columns) == 1 and columns[0].isdigit() else None
        labels = [class_of(each) for each in names(classes)]
        spec = ModelSpec.of(
            model or DEFAULT_MODEL,
            n or columns or None,
            labels or None,
            name=name,
            limits=service.limits,
            files=True,
        )
        try:
            service.add_model(spec)
        except ServiceError as error:
            raise ValueError(str(error)) from None
    if not service.hosts:
        raise ValueError(f"the log {log} has no model yet: pass --features and --classes, or `serve --demo`.")
    return service
