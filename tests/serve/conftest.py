"""Logs for the tests of the service: an SQLite file, and a new database where PostgreSQL runs on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

for needed in (
    "fastapi",
    "uvicorn",
    "sqlalchemy",
    "alembic",
    "msgspec",
    "prometheus_client",
    "pydantic_settings",
    "httpx",
):
    pytest.importorskip(needed, reason=f"the service needs {needed}: pip install regretless[serve]")

POSTGRES = os.environ.get("REGRETLESS_TEST_POSTGRES", "postgresql://root@127.0.0.1:5432/postgres")


def require_postgres():
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    try:
        return psycopg.connect(POSTGRES, autocommit=True, connect_timeout=3)
    except psycopg.OperationalError as error:
        pytest.skip(f"PostgreSQL does not run at {POSTGRES}: {str(error).strip().splitlines()[0]}")


@pytest.fixture
def postgres(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a new database."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    name = f"regretless_test_{worker}_{os.getpid()}"
    with require_postgres() as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
    yield POSTGRES.rpartition("/")[0] + f"/{name}"
    with require_postgres() as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgres"])
def log_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new log, in each kind of database."""
    if request.param == "sqlite":
        return str(tmp_path / "log.db")
    return request.getfixturevalue("postgres")
