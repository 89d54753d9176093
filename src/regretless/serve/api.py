"""The HTTP interface besides `/predict`, `/label` and `/bulk` (see `gate.py`), by FastAPI.

Paths about a model exist twice: `/regret` is about the default model, `/models/{name}/regret` about any.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

import regretless
from regretless.core.errors import BadRow
from regretless.serve import live, openapi
from regretless.serve.gate import Gate
from regretless.serve.host import ModelHost, decode
from regretless.serve.keys import Keys
from regretless.serve.metrics import CONTENT_TYPE, metrics
from regretless.serve.models import DEFAULT_MODEL, ModelSpec
from regretless.serve.page_data import page_data
from regretless.serve.replies import ServiceError
from regretless.serve.service import Service
from regretless.serve.traffic import Traffic

PAGE = Path(__file__).parent / "page"


class Problem(BaseModel):
    """Why a request was refused."""

    status: int
    error: str


class NewModel(BaseModel):
    """A model to add."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$", examples=["shop"])
    model: str = Field(DEFAULT_MODEL, max_length=2000, description="a learner, such as AIOLI(radius=5)")
    features: Annotated[int, Field(ge=1, strict=True)] | list[str] = Field(
        description="the names of the columns, or their number", examples=[["amount", "country"]]
    )
    classes: list[str | Annotated[int, Field(strict=True)] | bool | float] = Field(
        min_length=2, max_length=1000, examples=[["good", "fraud"]]
    )


class ModelInfo(BaseModel):
    """A model."""

    name: str
    recipe: str
    features: int | list[str]
    classes: list[Any]
    created: float
    version: int = Field(description="labels learned")
    seq: int = Field(description="the last event of the log")
    summary: dict[str, float | int | None]
    report: str | None = None
    sha256: str | None = Field(None, description="of the learner's state and the sums, with digest=true")


class Regret(BaseModel):
    """The regret of the served forecasts: at most `live_regret_at_most` = certificate + delay_cost."""

    labels: int
    served_loss: float
    learner_loss: float
    delay_cost: float = Field(description="served_loss - learner_loss: what it costs that labels come late")
    delay_seconds: float | None
    delay_labels: float | None
    certificate: float | None
    bound: float | None
    live_regret_at_most: float | None
    against: str | None
    why_not: str | None


class Explanation(BaseModel):
    """A forecast, its row and label, and what the model would say now."""

    id: str
    seq: int
    at: float
    version: int
    x: Any
    probabilities: dict[str, float]
    y: Any = None
    weight: float | None = None
    label_seq: int | None = None
    probabilities_now: dict[str, float] | None
    members: list[dict[str, Any]] = Field(description="members of a mixture with their weights now, largest first")


class Health(BaseModel):
    """Whether the process answers, and whether it can write."""

    status: str


Name = Annotated[str, InPath(description="the name of a model", max_length=64)]
Id = Annotated[str, InPath(description="the id of a forecast")]
Digest = Annotated[bool, Query(description="whether to hash the state, which takes longer")]


def make_app(
    service: Service,
    keys: Keys | None = None,
    traffic: Traffic | None = None,
    ending: Callable[[], bool] = lambda: False,
) -> Gate:
    """The ASGI application of a service.

    Parameters
    ----------
    keys : None means that no key is needed.
    ending : tells that the server shuts down: streams of events end then.
    """
    keys = keys or Keys(None)
    traffic = traffic or Traffic()
    api = FastAPI(
        title="regretless",
        version=regretless.__version__,
        description="Forecasts now, labels later: every forecast and label is in a log before it is answered.",
        docs_url=None,
        redoc_url=None,
    )
    _add_errors(api)
    _add_models(api, service)
    _add_model_paths(api, service, traffic, ending)
    _add_process(api, service, traffic)
    openapi.describe(api, with_keys=keys.file is not None)
    return Gate(service, api, keys, traffic)  # type: ignore[arg-type]


def _add_errors(api: FastAPI) -> None:
    def answer(status: int, error: str, headers: Any = None) -> JSONResponse:
        told = error.encode(errors="backslashreplace").decode()  # names in a body may have halves of characters
        return JSONResponse({"status": status, "error": told}, status, headers)

    @api.exception_handler(ServiceError)
    def refused(_: Request, error: ServiceError) -> JSONResponse:
        return answer(error.status, str(error), {"retry-after": "1"} if error.status == 503 else None)

    @api.exception_handler(HTTPException)
    def http(_: Request, error: HTTPException) -> JSONResponse:
        return answer(error.status_code, str(error.detail), error.headers)

    @api.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        told = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5])
        return answer(422, told)


def _refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": Problem, "description": openapi.REASONS[code]} for code in codes}


def _info(host: ModelHost, seq: int) -> dict[str, Any]:
    return {
        "name": host.name,
        "recipe": host.recipe,
        "features": host.features,
        "classes": host.classes,
        "created": host.created,
        "version": host.version,
        "seq": seq,
        "summary": host.sums.summary(),
    }


def _add_models(api: FastAPI, service: Service) -> None:
    @api.get("/models", tags=["models"], operation_id="models", responses=_refusals(401, 403, 429))
    async def models() -> list[ModelInfo]:
        """All models."""
        found = await service.read(lambda: [_info(host, service.seq) for host in service.hosts.values()])
        return [ModelInfo(**each) for each in found]

    @api.post(
        "/models",
        status_code=201,
        tags=["models"],
        operation_id="add_model",
        responses=_refusals(400, 401, 403, 408, 409, 413, 422, 429, 503),
    )
    async def add(new: NewModel) -> ModelInfo:
        """Add a model (scope admin). If it exists and is the same, nothing changes."""

        def prepare() -> ModelSpec:
            spec = ModelSpec.of(new.model, new.features, new.classes, name=new.name, limits=service.limits)
            ModelHost.compile(spec)
            return spec

        try:
            spec = await asyncio.to_thread(prepare)  # others are answered meanwhile
        except (ValueError, TypeError, MemoryError, RecursionError) as error:
            raise ServiceError(422, str(error)) from None
        return ModelInfo(**await service.read(lambda: _info(service._add_model(spec), service.seq)))

    @api.post(
        "/snapshots",
        status_code=204,
        tags=["models"],
        operation_id="snapshot",
        responses=_refusals(400, 401, 403, 408, 413, 429),
    )
    async def snapshot() -> None:
        """Write a snapshot of every model now (scope admin)."""
        await service.read(lambda: service._save_all(changed_only=False))


def _add_model_paths(api: FastAPI, service: Service, traffic: Traffic, ending: Callable[[], bool]) -> None:
    streams = 0

    async def read(name: str | None, function: Callable[[ModelHost], Any]) -> Any:
        return await service.read(lambda: function(service.host(name)))

    async def model(name: str | None, digest: bool) -> ModelInfo:
        def look(host: ModelHost) -> dict[str, Any]:
            found = _info(host, service.seq)
            if hasattr(host.learner, "report") and host.version:
                found["report"] = host.learner.report()
            if digest:
                found["sha256"] = hashlib.sha256(host.snapshot(service.seq).pack()).hexdigest()
            return found

        return ModelInfo(**await read(name, look))

    async def explain(name: str | None, id: str) -> Explanation:
        return Explanation(**await read(name, lambda host: _explanation(service, host, id)))

    async def stream(name: str | None) -> Response:
        nonlocal streams
        if name is not None:
            service.host(name)
        if streams >= service.limits.streams:
            raise ServiceError(503, f"{streams} streams are open: the limit.")

        async def counted() -> Any:
            nonlocal streams
            streams += 1
            try:
                async for each in live.events(service, traffic, ending, name):
                    yield each
            finally:
                streams -= 1

        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(counted(), media_type="text/event-stream", headers=headers)

    common: dict[str, Any] = {"tags": ["model"], "responses": _refusals(401, 403, 404, 422, 429, 503)}
    events: dict[str, Any] = {
        "response_class": StreamingResponse,
        "tags": ["model"],
        "responses": _refusals(401, 403, 404, 422, 429, 503)
        | {200: {"description": "server-sent events: see page_data.py", "content": {"text/event-stream": {}}}},
    }

    @api.get("/model", operation_id="model", **common)
    async def default_model(digest: Digest = False) -> ModelInfo:
        """The default model."""
        return await model(None, digest)

    @api.get("/models/{name}/model", operation_id="model_of", **common)
    async def any_model(name: Name, digest: Digest = False) -> ModelInfo:
        """A model."""
        return await model(name, digest)

    @api.get("/regret", operation_id="regret", **common)
    async def default_regret() -> Regret:
        """The regret of the default model's served forecasts."""
        return Regret(**await read(None, ModelHost.regret))

    @api.get("/models/{name}/regret", operation_id="regret_of", **common)
    async def any_regret(name: Name) -> Regret:
        """The regret of a model's served forecasts."""
        return Regret(**await read(name, ModelHost.regret))

    @api.get("/explain/{id:path}", operation_id="explain", **common)
    async def default_explain(id: Id) -> Explanation:
        """A forecast of the default model, its row and label, and what the model would say now."""
        return await explain(None, id)

    @api.get("/models/{name}/explain/{id:path}", operation_id="explain_of", **common)
    async def any_explain(name: Name, id: Id) -> Explanation:
        """A forecast, its row and label, and what the model would say now."""
        return await explain(name, id)

    @api.get("/page-data", operation_id="page_data", **common)
    async def default_page_data() -> dict[str, Any]:
        """What the page shows of the default model: see page_data.py."""
        found: dict[str, Any] = await read(None, lambda host: page_data(host, service.seq, traffic))
        return found

    @api.get("/models/{name}/page-data", operation_id="page_data_of", **common)
    async def any_page_data(name: Name) -> dict[str, Any]:
        """What the page shows of a model: see page_data.py."""
        found: dict[str, Any] = await read(name, lambda host: page_data(host, service.seq, traffic))
        return found

    @api.get("/live", operation_id="live", **events)
    async def default_live() -> Response:
        """Server-sent events about all models, about one per second."""
        return await stream(None)

    @api.get("/models/{name}/live", operation_id="live_of", **events)
    async def any_live(name: Name) -> Response:
        """Server-sent events about a model, about one per second."""
        return await stream(name)


def _explanation(service: Service, host: ModelHost, id: str) -> dict[str, Any]:
    entry = service.lookup(host, id) if 1 <= len(id) <= service.limits.text and "\0" not in id else None
    if entry is None:
        raise ServiceError(404, f"there is no forecast with the id {id[:200]!r}.")
    x = decode(entry.x)
    row = host.columns.row(x)
    p = host.forecast([row])[0]
    return {
        "id": entry.id,
        "seq": entry.seq,
        "at": entry.at,
        "version": entry.version,
        "x": x,
        "probabilities": host.named(entry.forecast),
        "y": None if entry.y is None else decode(entry.y),
        "weight": entry.weight,
        "label_seq": entry.label_seq,
        "probabilities_now": None if isinstance(p, BadRow) else host.named(p),
        "members": host.members(row),
    }


def _add_process(api: FastAPI, service: Service, traffic: Traffic) -> None:
    @api.get("/healthz", tags=["process"], operation_id="healthz")
    async def healthz() -> Health:
        """Whether the process answers."""
        return Health(status="ok")

    @api.get("/readyz", tags=["process"], operation_id="readyz", responses=_refusals(503))
    async def readyz() -> Health:
        """Whether the log can be written."""
        if service.unavailable is not None:
            raise ServiceError(503, f"the log is not available ({service.unavailable}).")
        return Health(status="ready")

    text: dict[str, Any] = {
        "description": "metrics for Prometheus",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }

    @api.get(
        "/metrics",
        tags=["process"],
        operation_id="metrics",
        response_class=Response,
        responses=_refusals(401, 403, 429) | {200: text},
    )
    async def prometheus() -> Response:
        """Metrics for Prometheus."""
        return Response(await service.read(lambda: metrics(service, traffic)), media_type=CONTENT_TYPE)

    @api.get("/", include_in_schema=False)
    async def page() -> Response:
        """The page."""
        return FileResponse(PAGE / "index.html", headers=PAGE_HEADERS)

    @api.get("/page/{file}", include_in_schema=False)
    async def part(file: str) -> Response:
        """A file of the page."""
        if file not in {each.name for each in PAGE.iterdir()}:
            raise HTTPException(404, f"there is no file {file[:50]!r}.")
        return FileResponse(PAGE / file, headers=PAGE_HEADERS)


PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}
