"""Limits: how much a client may send, and how much the service keeps in memory.

Every limit can be set in the environment, `REGRETLESS_SERVE_BODY_BYTES=100000`, or in Python.
"""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Limits(BaseSettings):
    """Limits on what a client sends and on what the service keeps in memory.

    >>> Limits(columns=20).columns
    20
    """

    model_config = SettingsConfigDict(env_prefix="REGRETLESS_SERVE_", frozen=True)

    body_bytes: int = Field(default=1 << 20, ge=100, description="bytes of the body of /predict and /label")
    bulk_bytes: int = Field(default=1 << 24, ge=100, description="bytes of the body of /bulk")
    bulk_rows: int = Field(default=20_000, ge=1, description="lines of the body of /bulk")
    head_seconds: float = Field(default=10.0, gt=0.0, description="seconds for the head of a request to arrive")
    body_seconds: float = Field(default=10.0, gt=0.0, description="seconds for a request with its body to arrive")
    requests_per_second: float = Field(
        default=0.0, ge=0.0, description="requests per second and key, or per address without keys; 0 means no limit"
    )
    columns: int = Field(default=1000, ge=1, description="columns of a model")
    classes: int = Field(default=100, ge=2, description="classes of a model")
    categories: int = Field(default=1000, ge=1, description="categories per column of a model (its max_categories)")
    text: int = Field(default=200, ge=1, description="characters of a text value, of a name and of an id")
    models: int = Field(default=100, ge=1, description="models of a service")
    ids_in_memory: int = Field(default=50_000, ge=1000, description="forecasts per model in memory; others are queried")
    waiting: int = Field(default=20_000, ge=100, description="operations that wait for the writer; more get a 503")
    streams: int = Field(default=100, ge=1, description="open connections to /live")
