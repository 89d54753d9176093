"""Schemathesis over the whole interface: no 500, no status that is not documented, forecasts followed by labels."""

from __future__ import annotations

import pytest

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

from games import service  # noqa: E402
from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from regretless.serve.api import make_app  # noqa: E402

pytestmark = pytest.mark.services

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
QUICK = settings(
    max_examples=15,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@schemathesis.serializer("application/x-ndjson")
def lines(ctx, value):
    return str(value).encode("utf-8", errors="replace")


class Fresh:
    """An application whose service can be replaced by a new one, so that every run begins alike."""

    def __init__(self, folder):
        self.folder, self.n, self.engine = folder, 0, None
        self.begin()

    def begin(self):
        self.end()
        self.n += 1
        self.engine = service(self.folder / f"log-{self.n}.db")
        self.app = make_app(self.engine, ending=lambda: True)  # streams end at once

    def end(self):
        if self.engine is not None:
            self.engine.close()

    async def __call__(self, scope, receive, send):
        await self.app(scope, receive, send)


@pytest.fixture
def fresh(tmp_path):
    found = Fresh(tmp_path)
    yield found
    found.end()


def test_every_path(fresh):
    schema = schemathesis.openapi.from_asgi("/openapi.json", fresh)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) >= 20
    for operation in operations:

        @QUICK
        @given(case=operation.as_strategy())
        def conforms(case):
            case.call_and_validate(checks=CHECKS)

        conforms()


def test_forecasts_and_then_labels(fresh):
    schema = schemathesis.openapi.from_asgi("/openapi.json", fresh)

    class Machine(schema.as_state_machine()):
        def setup(self):
            fresh.begin()

        def validate_response(self, response, case, **_):
            case.validate_response(response, checks=CHECKS)

    Machine.run(settings=settings(QUICK, max_examples=10, stateful_step_count=6))
