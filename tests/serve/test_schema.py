"""Schemathesis over the whole interface: no 500, no status that is not documented, forecasts followed by labels."""

from __future__ import annotations

import pytest

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

from games import LOW, service  # noqa: E402
from hypothesis import HealthCheck, Phase, settings  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402

from regretless.serve.api import make_app  # noqa: E402

CHECKS = [
    not_a_server_error,
    schemathesis.checks.CHECKS.get_one("status_code_conformance"),
    schemathesis.checks.CHECKS.get_one("content_type_conformance"),
    schemathesis.checks.CHECKS.get_one("response_schema_conformance"),
]
QUICK = settings(
    max_examples=15,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    with service(tmp_path_factory.mktemp("log") / "log.db", LOW) as engine:
        app = make_app(engine, ending=lambda: True)  # streams end at once
        yield schemathesis.openapi.from_asgi("/openapi.json", app)


lazy = schemathesis.pytest.from_fixture("schema")


@lazy.parametrize()
@QUICK
def test_every_path(case):
    case.call_and_validate(checks=CHECKS)


def test_forecasts_and_then_labels(schema):
    machine = schema.as_state_machine()
    machine.run(settings=settings(QUICK, max_examples=10, stateful_step_count=6))
