"""The description of the interface: FastAPI's, and the paths of `gate.py`, with links from forecasts to labels."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

REASONS = {
    400: "the body could not be read",
    401: "no key, or an unknown one",
    403: "the key lacks the scope",
    404: "there is no such model, or no forecast with this id",
    405: "use another method",
    408: "the body did not arrive in time",
    409: "the id was used for something else: other features, or another label",
    413: "the body is too large",
    415: "the body is not JSON",
    422: "the row, the label or the body is not valid; nothing was learned",
    429: "too many requests per second",
    503: "the log is not available: nothing was learned; try again",
}
ID = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": r"^[^\x00-\x1f\x7f]+$"}
VALUE = {"type": ["number", "string", "boolean", "null"]}
LABEL = {"type": ["string", "number", "boolean"]}
SCHEMAS: dict[str, Any] = {
    "Predict": {
        "type": "object",
        "description": "A row to forecast. Without an id, one is made.",
        "properties": {
            "id": {"anyOf": [ID, {"type": "null"}]},
            "x": {
                "description": "names and values, or values by position",
                "anyOf": [{"type": "object", "additionalProperties": VALUE}, {"type": "array", "items": VALUE}],
            },
        },
        "required": ["x"],
        "additionalProperties": False,
    },
    "Forecast": {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "seq": {"type": "integer", "description": "the number of the event in the log"},
            "version": {"type": "integer", "description": "labels that the model had learned"},
            "probabilities": {"type": "object", "additionalProperties": {"type": "number"}},
        },
        "required": ["id", "seq", "version", "probabilities"],
    },
    "Label": {
        "type": "object",
        "description": "The label of an earlier forecast.",
        "properties": {
            "id": ID,
            "y": LABEL,
            "weight": {"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 1e6}, {"type": "null"}]},
        },
        "required": ["id", "y"],
        "additionalProperties": False,
    },
    "Learned": {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "seq": {"type": "integer", "description": "the number of the label's event in the log"},
            "version": {"type": "integer", "description": "labels that the model has learned now"},
            "learned": {"type": "boolean", "description": "whether this request taught the model"},
            "repeated": {"type": "boolean", "description": "whether the label had come before"},
        },
        "required": ["id", "seq", "version", "learned", "repeated"],
    },
}
NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "maxLength": 64}}


def describe(api: FastAPI, with_keys: bool) -> None:
    """Let `api` describe all paths."""

    def openapi() -> dict[str, Any]:
        if api.openapi_schema is None:
            found = get_openapi(title=api.title, version=api.version, description=api.description, routes=api.routes)
            found["components"]["schemas"] |= SCHEMAS
            for path in ("/predict", "/label", "/bulk"):
                found["paths"][path] = {"post": _operation(path[1:], of_any=False)}
                found["paths"][f"/models/{{name}}{path}"] = {"post": _operation(path[1:], of_any=True)}
            if with_keys:
                found["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
                found["security"] = [{"key": []}]
                for path in ("/healthz", "/readyz"):
                    found["paths"][path]["get"]["security"] = []
            api.openapi_schema = found
        return api.openapi_schema

    api.openapi = openapi  # type: ignore[method-assign]


def _operation(verb: str, of_any: bool) -> dict[str, Any]:
    suffix, where = ("_of", "a model") if of_any else ("", "the default model")
    refusals = {
        str(code): {"description": REASONS[code], "content": {"application/json": {"schema": _ref("Problem")}}}
        for code in (400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503)
        if verb != "bulk" or code not in (404, 409, 422, 503) or (of_any and code == 404)
    }
    parameters = [NAME] if of_any else []
    if verb == "bulk":
        lines = {"application/x-ndjson": {"schema": {"type": "string"}}}
        told = "one line per line of the request, with its status and what /predict or /label would answer"
        answers = {"200": {"description": told, "content": lines}}
        answers["503"] = {"description": "the same; at least one line has the status 503", "content": lines}
        return {
            "operationId": f"bulk{suffix}",
            "summary": f"Forecast rows of {where} and learn labels: one JSON object per line, {{id, x}} or {{id, y}}",
            "description": "Within each thousand lines, all rows are forecast before any label is learned.",
            "tags": ["events"],
            "parameters": parameters,
            "requestBody": {"required": True, "content": lines},
            "responses": answers | refusals,
        }
    predicts = verb == "predict"
    answer: dict[str, Any] = {
        "description": "the forecast" if predicts else "what became of the label",
        "content": {"application/json": {"schema": _ref("Forecast" if predicts else "Learned")}},
    }
    if predicts:
        named = {"name": "$request.path.name"} if of_any else {}
        answer["links"] = {
            "label": {
                "operationId": f"label{suffix}",
                "parameters": named,
                "requestBody": {"id": "$response.body#/id", "y": "no"},
            },
            "explain": {"operationId": f"explain{suffix}", "parameters": {"id": "$response.body#/id"} | named},
        }
    return {
        "operationId": f"{verb}{suffix}",
        "summary": f"Forecast a row of {where}" if predicts else f"Tell {where} the label of a forecast",
        "tags": ["events"],
        "parameters": parameters,
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _ref("Predict" if predicts else "Label")}},
        },
        "responses": {"200": answer} | refusals,
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
