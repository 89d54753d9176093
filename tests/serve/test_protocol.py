"""A server as clients see it on the wire: slow ones, those that do not wait, and those that send strange bytes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest
from games import CLASSES, COLUMNS, LOW

pytestmark = pytest.mark.services

SERVER = """
import sys
from regretless.serve import ModelSpec, Service
from regretless.serve.server import run
log, recipe, features, classes = sys.argv[1:]
with Service(log) as service:
    service.add_model(ModelSpec.of(recipe, features.split(","), classes.split(",")))
    run(service, port=0, started=lambda address: print(address, flush=True))
"""
PREDICT = b"POST /predict HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A server that gives clients half a second for a request."""
    log = tmp_path_factory.mktemp("protocol") / "log.db"
    limits = {"REGRETLESS_SERVE_HEAD_SECONDS": "0.5", "REGRETLESS_SERVE_BODY_SECONDS": "0.5"}
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(log), LOW, ",".join(COLUMNS), ",".join(CLASSES)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | limits,
    )
    host, port = process.stdout.readline().strip().removeprefix("http://").split(":")
    yield host, int(port)
    process.kill()
    process.wait()


@pytest.fixture
def connection(address):
    with socket.create_connection(address, timeout=60.0) as found:
        yield found


def everything(connection):
    """All bytes until the server closes the connection."""
    found = b""
    while part := connection.recv(65536):
        found += part
    return found


def answer(connection):
    """Status and body of the next answer."""
    file = connection.makefile("rb")
    status = int(file.readline().split()[1])
    length = 0
    while (line := file.readline()) != b"\r\n":
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return status, file.read(length)


def predict(id):
    body = json.dumps({"id": id, "x": {"a": 1.0}}).encode()
    return PREDICT + b"content-length: %d\r\n\r\n" % len(body) + body


def test_a_client_that_says_nothing(connection):
    assert everything(connection) == b""


def test_a_client_that_sends_empty_lines_only(connection):
    connection.sendall(predict("empty-lines") + b"\r\n")
    assert everything(connection).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("sent", "what"),
    [
        (b"POST /pre", b"head"),
        (PREDICT, b"head"),
        (predict("before") + PREDICT, b"head"),
        (PREDICT + b"content-length: 99\r\n\r\n", b"body"),
        (PREDICT + b"content-length: 99\r\n\r\n{", b"body"),
        (PREDICT + b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n", b"body"),
        (b"POST /snapshots HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n", b"body"),
    ],
)
def test_a_slow_request(connection, sent, what):
    connection.sendall(sent)
    found = everything(connection)
    assert found.count(b"HTTP/1.1 408 ") == 1 and what + b" of the request did not arrive within 0.5 seconds" in found


def test_a_body_that_never_ends_after_its_answer(connection):
    connection.sendall(PREDICT + b"content-length: 99999999\r\n\r\n{")
    assert everything(connection).startswith(b"HTTP/1.1 413 ")


def test_a_stream_outlives_the_limits(connection):
    connection.sendall(b"GET /live HTTP/1.1\r\nhost: a\r\n\r\n")
    found = b""
    while found.count(b": nothing new") + found.count(b"event: update") < 3:  # about one per second
        found += connection.recv(65536)
    assert found.startswith(b"HTTP/1.1 200 ") and b"retry: 2000" in found


def test_requests_that_do_not_wait_for_answers(connection):
    ids = [f"pipelined-{i}" for i in range(50)]
    connection.sendall(b"".join(map(predict, ids)))
    file = connection.makefile("rb")
    found = []
    for _ in ids:
        assert file.readline() == b"HTTP/1.1 200 OK\r\n"
        length = 0
        while (line := file.readline()) != b"\r\n":
            length = int(line.split()[1]) if line.startswith(b"content-length") else length
        found.append(json.loads(file.read(length))["id"])
    assert found == ids


def test_answers_without_a_body(connection):
    connection.sendall(b"HEAD /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
    assert connection.recv(65536).endswith(b"\r\n\r\n")
    connection.sendall(predict("after-head"))
    assert answer(connection)[0] == 200


def test_a_client_that_waits_for_permission(connection):
    body = b'{"x": {"a": 2.0}}'
    connection.sendall(PREDICT + b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(body))
    assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(body)
    assert answer(connection)[0] == 200


def test_the_last_answer_of_a_connection(connection):
    connection.sendall(predict("last").replace(b"host: a", b"connection: close"))
    assert everything(connection).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("sent", [b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00"])
def test_bytes_that_are_not_http(connection, sent):
    connection.sendall(sent)
    assert everything(connection).startswith(b"HTTP/1.1 400 ")


def test_websockets_are_not_spoken(connection):
    upgrade = b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
    connection.sendall(b"GET /live2 HTTP/1.1\r\nhost: a\r\n" + upgrade + b"sec-websocket-key: AAAA\r\n\r\n")
    assert answer(connection)[0] == 404
