"""The service: forecasts now, labels later, nothing lost, every decision replayable. Needs `regretless[serve]`.

`Service` is the engine: models, the log, and one thread that writes. Everything else asks it.

- From threads: `service.predict(x, id)`, `service.label(id, y)`, or many at once with
  `service.answer([Predict(x, id), Label(id, y)], model)`, which returns one reply per operation:
  `Forecast`, `Learned` or `Refused`, each with a `status` as in HTTP.
- From an event loop: `await service.answers([...], model)`.
- To look at models: `service.call(function)`, or `await service.read(function)`, runs a function in the writer's thread
  between two groups, so that it may read any `ModelHost` of `service.hosts`.
- When a reply arrives, its event is committed: a consumer of a broker may acknowledge the message.
- A 503 means that nothing is known to be written: ask again with the same id, and nothing happens twice.

`Client` and `AsyncClient` talk to a service over HTTP.
"""

from importlib import import_module as _import_module

_HOME = {
    "AsyncClient": "client",
    "Client": "client",
    "EventLog": "log",
    "Forecast": "replies",
    "Label": "replies",
    "Learned": "replies",
    "Limits": "settings",
    "ModelSpec": "models",
    "Predict": "replies",
    "Refused": "replies",
    "Service": "service",
    "ServiceError": "replies",
}
__all__ = [
    "AsyncClient",
    "Client",
    "EventLog",
    "Forecast",
    "Label",
    "Learned",
    "Limits",
    "ModelSpec",
    "Predict",
    "Refused",
    "Service",
    "ServiceError",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'regretless.serve' has no attribute {name!r}")
    try:
        return getattr(_import_module(f"regretless.serve.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("regretless"):
            raise
        raise ImportError(f'{error.name} is missing: pip install "regretless[serve]"') from error
