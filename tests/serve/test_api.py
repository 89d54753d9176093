"""The HTTP interface: status codes, keys, limits, clients, and how a server ends."""

from __future__ import annotations

import asyncio
import gzip
import json
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest
from games import LOW, rows, service

from commands import command
from regretless.serve import AsyncClient, Client, EventLog, Label, Limits, ModelSpec, Predict, Service, ServiceError
from regretless.serve.api import PAGE, make_app
from regretless.serve.keys import KeyFile, Keys
from regretless.serve.server import require_keys

pytestmark = pytest.mark.services

X = {"a": 1.0, "b": "k1"}


def ask(app, *requests, **options):
    """Send requests to an application, one after another, each (method, path) and what httpx takes."""

    async def all_of_them():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test", **options) as client:
            return [await client.request(method, path, **given) for method, path, given in requests]

    return asyncio.run(all_of_them())


def post(path, body, **options):
    return ("POST", path, {"json": body, **options})


def get(path, **options):
    return ("GET", path, options)


@pytest.fixture
def engine(tmp_path):
    with service(tmp_path / "log.db", snapshots=tmp_path / "snapshots") as found:
        yield found


@pytest.fixture
def app(engine):
    return make_app(engine)


def test_status_codes(app):
    asked = [
        (post("/predict", {"id": "one", "x": X}), 200),
        (post("/predict", {"id": "one", "x": X}), 200),
        (post("/predict", {"id": "one", "x": {"a": 2.0}}), 409),
        (post("/predict", {"x": {"d": 2.0}}), 422),
        (post("/predict", {"id": 3, "x": X}), 422),
        (post("/predict", {"id": "two", "x": X, "z": 1}), 422),
        (("POST", "/predict", {"content": b"{", "headers": {"content-type": "application/json"}}), 422),
        (("POST", "/predict", {"content": b'{"x": {"a": NaN}}', "headers": {"content-type": "application/json"}}), 422),
        (("POST", "/predict", {"content": b"[" * 100_000, "headers": {"content-type": "application/json"}}), 422),
        (("POST", "/predict", {"content": b'{"x": "\xff"}', "headers": {"content-type": "application/json"}}), 422),
        (("POST", "/predict", {"content": b"{}", "headers": {"content-type": "text/plain"}}), 415),
        (get("/predict"), 405),
        (post("/label", {"id": "one", "y": "yes"}), 200),
        (post("/label", {"id": "one", "y": "yes"}), 200),
        (post("/label", {"id": "one", "y": "no"}), 409),
        (post("/label", {"id": "nothing", "y": "no"}), 404),
        (post("/label", {"id": "one", "y": 3}), 422),
        (post("/models/default/predict", {"id": "one", "x": X}), 200),
        (post("/models/nothing/predict", {"x": X}), 404),
        (get("/model?digest=true"), 200),
        (get("/models"), 200),
        (get("/models/default/model"), 200),
        (get("/models/nothing/model"), 404),
        (get("/regret"), 200),
        (get("/models/default/regret"), 200),
        (get("/explain/one"), 200),
        (get("/explain/nothing"), 404),
        (get("/models/default/explain/one"), 200),
        (get("/page-data"), 200),
        (get("/models/default/page-data"), 200),
        (get("/metrics"), 200),
        (get("/healthz"), 200),
        (get("/readyz"), 200),
        (get("/openapi.json"), 200),
        (get("/"), 200),
        (get(f"/page/{next(each.name for each in PAGE.iterdir() if each.suffix == '.js')}"), 200),
        (get("/page/..%2fapi.py"), 404),
        (get("/nothing"), 404),
        (post("/models", {"name": "new", "model": "AIOLI", "features": 2, "classes": ["a", "b"]}), 201),
        (post("/models", {"name": "new", "model": "AIOLI", "features": 2, "classes": ["a", "b"]}), 201),
        (post("/models", {"name": "new", "model": "AIOLI", "features": 3, "classes": ["a", "b"]}), 409),
        (post("/models", {"name": "bad/name", "features": 3, "classes": ["a", "b"]}), 422),
        (post("/models", {"name": "x", "model": "__import__('os')", "features": 3, "classes": ["a", "b"]}), 422),
        (post("/models", {"name": "x", "model": "/etc/passwd", "features": 3, "classes": ["a", "b"]}), 422),
        (post("/models/new/predict", {"id": "one", "x": [0.1, 0.2]}), 200),
        (post("/snapshots", None), 204),
    ]
    replies = ask(app, *(request for request, _ in asked))
    for (request, expected), reply in zip(asked, replies, strict=True):
        assert reply.status_code == expected, (request, reply.text)
        if expected >= 400:
            assert reply.json()["status"] == expected and reply.json()["error"]
    assert (
        replies[0].json()
        == replies[1].json()
        == {
            "id": "one",
            "seq": 1,
            "version": 0,
            "probabilities": {"no": 0.5, "yes": 0.5},
        }
    )
    assert replies[11].headers["allow"] == "POST"
    repeated = replies[13].json()
    assert not repeated["learned"] and repeated["repeated"]


def test_an_explanation(app):
    replies = ask(
        app,
        post("/predict", {"id": "one/two", "x": X}),
        post("/label", {"id": "one/two", "y": "yes"}),
        get("/explain/one/two"),
    )
    told = replies[2].json()
    assert told["x"] == X and told["y"] == "yes" and told["probabilities"] == {"no": 0.5, "yes": 0.5}
    assert told["probabilities_now"]["yes"] > 0.5
    assert sum(member["weight"] for member in told["members"]) == pytest.approx(1.0)


def test_page_data_and_metrics(app, engine):
    some = rows(400)
    lines = [{"id": str(i), "x": x} for i, (x, _) in enumerate(some)]
    lines += [{"id": str(i), "y": y} for i, (_, y) in enumerate(some)]
    kind = {"content-type": "application/x-ndjson"}
    bodies = ["\n".join(map(json.dumps, lines[i : i + 40])) for i in range(0, 800, 40)]
    bulk = [("POST", "/bulk", {"content": body, "headers": kind}) for body in bodies]
    found, metrics = ask(app, *bulk, get("/page-data"), get("/metrics"))[-2:]
    data = found.json()
    assert data["version"] == 400 and data["summary"]["labels"] == 400 and sum(data["class_counts"].values()) == 400
    history = data["history"]
    assert len({len(values) for name, values in history.items() if name != "shares"}) == 1
    assert history["labels"][-1] == 400 and history["log_loss"][-1] == pytest.approx(data["summary"]["log_loss"])
    assert all(sum(shares) == pytest.approx(1.0) for shares in zip(*history["shares"].values(), strict=True))
    assert data["history"]["live_regret"][-1] == pytest.approx(data["regret"]["live_regret_at_most"])
    assert sum(count for count, _, _ in data["reliability"]) == 400
    assert len(data["last"]) == 50 and data["last"][-1]["y"] is not None
    assert 'regretless_model_labels{model="default"} 400.0' in metrics.text
    assert 'regretless_requests_total{path="/bulk",status="200"} 20.0' in metrics.text


def test_bulk(app):
    kind = {"content-type": "application/x-ndjson"}
    lines = ['{"id": "i", "x": {"a": 1}}', "", '{"id": "i", "y": "yes"}', "nonsense", '{"id": "j", "y": "yes"}']
    lines += ['{"x": {"a": 2}}', '{"id": "i", "y": "no", "x": {"a": 1}}', '{"y": "no"}']
    reply = ask(app, ("POST", "/bulk", {"content": "\n".join(lines), "headers": kind}))[0]
    told = [json.loads(line) for line in reply.text.splitlines()]
    assert [each["status"] for each in told] == [200, 200, 422, 404, 200, 422, 422]
    assert told[1]["learned"] and "line 3" in told[2]["error"]


def test_the_log_is_unavailable(app, engine):
    engine.call(engine.log._drop).result()
    engine._next_attempt, engine.unavailable = time.monotonic() + 3600.0, "told to fail"
    kind = {"content-type": "application/x-ndjson"}
    asked = [
        post("/predict", {"x": X}),
        post("/label", {"id": "one", "y": "yes"}),
        ("POST", "/bulk", {"content": '{"x": {"a": 1}}', "headers": kind}),
        get("/readyz"),
        get("/explain/one"),
        post("/models", {"name": "new", "model": "AIOLI", "features": 2, "classes": ["a", "b"]}),
    ]
    assert [reply.status_code for reply in ask(app, *asked)] == [503] * 6
    assert [reply.status_code for reply in ask(app, get("/healthz"), get("/regret"))] == [200, 200]
    engine._next_attempt = 0.0
    end = time.monotonic() + 60.0
    while ask(app, get("/readyz"))[0].status_code != 200:  # the service looks after its log at least once per second
        assert time.monotonic() < end, "the service did not return to its log"
        time.sleep(0.02)
    assert ask(app, post("/predict", {"x": X}))[0].status_code == 200


def test_sizes(tmp_path):
    with service(tmp_path / "log.db", limits=Limits(body_bytes=200, bulk_bytes=500, bulk_rows=3)) as engine:
        app = make_app(engine)
        kind = {"content-type": "application/x-ndjson"}

        async def pieces():
            for _ in range(100):
                yield b" " * 10

        replies = ask(
            app,
            post("/predict", {"x": X, "id": "i" * 300}),
            ("POST", "/predict", {"content": pieces(), "headers": {"content-type": "application/json"}}),
            ("POST", "/bulk", {"content": b"\n".join([b"{}"] * 4), "headers": kind}),
            ("POST", "/bulk", {"content": b" " * 600, "headers": kind}),
            post("/models", {"name": "n" * 300}),
            post("/predict", {"x": X}),
        )
        assert [reply.status_code for reply in replies] == [413, 413, 413, 413, 413, 200]


def test_a_new_model_named_default_is_the_default(tmp_path):
    with Service(tmp_path / "log.db") as engine:
        engine.add_model(ModelSpec.of("AIOLI", ["a", "b"], [0, 1], name="first"))
        new = {"name": "default", "model": "AIOLI", "features": ["c", "d"], "classes": [0, 1]}
        replies = ask(
            make_app(engine),
            post("/predict", {"x": {"a": 1.0, "b": 1.0}}),
            post("/models", new),
            post("/predict", {"x": {"c": 1.0, "d": 1.0}}),
            get("/model"),
        )
        assert [reply.status_code for reply in replies] == [200, 201, 200, 200]
        assert replies[-1].json()["name"] == "default"


def test_halves_of_characters_and_compressed_bodies(app):
    half = b'"\\ud800"'
    bodies = [
        b'{"name": "n", "features": [%s], "classes": [0, 1]}' % half,
        b'{"name": "n", "features": 1, "classes": [%s, "b"]}' % half,
        b'{"name": "n", "model": %s, "features": 1, "classes": [0, 1]}' % half,
        b'{"name": "n", %s: 1, "features": 1, "classes": [0, 1]}' % half,
    ]
    kind = {"content-type": "application/json"}
    replies = ask(
        app,
        *[("POST", "/models", {"content": body, "headers": kind}) for body in bodies],
        ("POST", "/predict", {"content": b'{"id": %s, "x": {"a": 1}}' % half, "headers": kind}),
    )
    assert [reply.status_code for reply in replies] == [422] * 5
    packed = {"content": gzip.compress(b'{"x": {"a": 1}}'), "headers": kind | {"content-encoding": "gzip"}}
    replies = ask(app, ("POST", "/predict", packed), ("POST", "/bulk", packed))
    assert [reply.status_code for reply in replies] == [415, 415] and "gzip" in replies[0].json()["error"]


def test_rates(tmp_path):
    with service(tmp_path / "log.db", limits=Limits(requests_per_second=2.0)) as engine:
        replies = ask(make_app(engine), *[post("/predict", {"x": X})] * 10)
        assert [reply.status_code for reply in replies[:4]] == [200] * 4
        assert replies[-1].status_code == 429 and replies[-1].headers["retry-after"] == "1"


def test_keys(engine, tmp_path):
    file = KeyFile(tmp_path / "keys.json")
    shop, reader = file.add("shop", ["predict"]), file.add("reader", ["read"])
    admin = file.add("boss", ["admin", "label"])
    text = (tmp_path / "keys.json").read_text()
    assert shop not in text and (tmp_path / "keys.json").stat().st_mode & 0o777 == 0o600
    keys = Keys(tmp_path / "keys.json")
    app = make_app(engine, keys)

    def status(request, key=None, header="authorization"):
        method, path, given = request
        headers = {} if key is None else {header: f"Bearer {key}" if header == "authorization" else key}
        return ask(app, (method, path, {**given, "headers": headers}))[0].status_code

    predict, label = post("/predict", {"id": "i", "x": X}), post("/label", {"id": "i", "y": "yes"})
    model = post("/models", {"name": "new", "model": "AIOLI", "features": 2, "classes": ["a", "b"]})
    assert status(predict) == status(predict, "wrong") == status(get("/model")) == status(model, "") == 401
    assert status(predict, shop) == status(predict, shop, "x-api-key") == 200
    assert status(predict, reader) == status(label, shop) == status(get("/model"), shop) == status(model, reader) == 403
    assert status(get("/model"), reader) == status(label, admin) == 200 and status(model, admin) == 201
    assert status(get("/healthz")) == status(get("/readyz")) == status(get("/")) == 200
    file.revoke("shop")
    keys._looked = 0.0
    assert status(predict, shop) == 401 and status(get("/model"), reader) == 200
    with pytest.raises(ValueError, match="already"):
        file.add("reader", ["read"])
    with pytest.raises(ValueError, match="unknown scope"):
        file.add("other", ["everything"])
    with pytest.raises(ValueError, match="no key named"):
        file.revoke("nobody")
    (tmp_path / "keys.json").write_text("damaged")
    keys._looked = 0.0
    assert status(get("/model"), reader) == 401
    with pytest.raises(ValueError, match="is not a file of keys"):
        Keys(tmp_path / "keys.json")


def test_no_public_address_without_keys(tmp_path):
    for host in ("127.0.0.1", "localhost", "::1"):
        require_keys(host, None)
    for host in ("0.0.0.0", "::", "example.org", "192.168.1.5"):
        with pytest.raises(ValueError, match="there are no keys"):
            require_keys(host, None)
        require_keys(host, tmp_path / "keys.json")
    refused = command("serve", "--host", "0.0.0.0", "--log", tmp_path / "log.db", "--demo")
    assert refused.exit_code == 3 and "regretless keys add" in refused.output


def test_commands_for_keys_and_logs(tmp_path):
    keys = tmp_path / "keys.json"
    made = command("keys", "add", "shop", "--scopes", "predict,label", "--file", keys)
    assert made.exit_code == 0 and made.output.startswith("rgl_")
    assert "shop  label,predict" in command("keys", "list", "--file", keys).output
    assert command("keys", "revoke", "shop", "--file", keys).exit_code == 0
    assert command("keys", "list", "--file", keys).output == ""
    log = tmp_path / "log.db"
    with service(log, snapshots=tmp_path / "log.db.snapshots") as engine:
        for i, (x, y) in enumerate(rows(60)):
            engine.answer([Predict(x, str(i))])
            engine.answer([Label(str(i), y)])
    verified = command("replay", log, "--verify")
    assert verified.exit_code == 0 and "60 forecasts, 60 labels, " in verified.output
    tried = command("replay", log, "--model", LOW, "--until", 100, "--out", tmp_path / "out")
    assert tried.exit_code == 0 and "as served" in tried.output
    assert (tmp_path / "out" / "replay.png").stat().st_size > 5000
    assert json.loads((tmp_path / "out" / "traces.json").read_text())[LOW]["checkpoints"]["rows"][-1] == 50
    assert command("replay", log).exit_code == 2
    assert command("log", "export", log, tmp_path / "log.parquet").output.startswith("120 events")
    assert command("log", "import", tmp_path / "other.db", tmp_path / "log.parquet").exit_code == 0
    assert command("log", "compact", log).output == "120 events removed\n"
    other = EventLog(tmp_path / "other.db")
    other._driver.execute("UPDATE events SET forecast = zeroblob(16) WHERE seq = 9")
    other._driver.commit()
    other.close()
    wrong = command("replay", tmp_path / "other.db", "--verify")
    assert wrong.exit_code == 3 and "1 forecasts differ, at the events 9" in wrong.output


class Unsteady(httpx.ASGITransport):
    """Loses every second answer, after it was made."""

    n = 0

    async def handle_async_request(self, request):
        response = await super().handle_async_request(request)
        self.n += 1
        if self.n % 2:
            raise httpx.ReadError("lost")
        return response


def test_a_client_asks_again_with_the_same_id(app, engine):
    async def talk():
        async with AsyncClient("http://test", transport=Unsteady(app)) as client:
            said = await client.predict(X)
            told = await client.label(said.id, "yes")
            assert told.repeated and not told.learned  # the lost answer had learned it
            replies = await client.bulk([Predict(X), Label(said.id, "no"), Label("nothing", "no")])
            assert [reply.status for reply in replies] == [200, 409, 404]
            assert (await client.get("/regret"))["labels"] == 1
            with pytest.raises(ServiceError, match="classes") as refused:
                await client.label(said.id, "perhaps")
            assert refused.value.status == 422

    asyncio.run(talk())
    assert engine.host().sums.forecasts == 2 and engine.host().version == 1


def test_a_client_gives_up():
    client = Client("http://127.0.0.1:9", attempts=2)
    with pytest.raises(httpx.ConnectError):
        client.predict(X)
    client.close()


SERVER = """
import sys
from regretless.serve import ModelSpec, Service
from regretless.serve.server import run
log, recipe = sys.argv[1:]
with Service(log, snapshots=log + ".snapshots") as service:
    service.add_model(ModelSpec.of(recipe, ["a", "b", "c"], ["no", "yes"]))
    run(service, port=0, started=lambda address: print(address, flush=True))
print("ended", flush=True)
"""


def test_a_server_ends_with_streams_open(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path / "log.db"), LOW], stdout=subprocess.PIPE, text=True
    )
    try:
        address = process.stdout.readline().strip()
        host, port = address.removeprefix("http://").split(":")
        streams = [socket.create_connection((host, int(port))) for _ in range(3)]
        for stream in streams:
            stream.sendall(b"GET /live HTTP/1.1\r\nhost: a\r\n\r\n")
            assert b"retry" in stream.recv(4096) + stream.recv(4096)
        slow = socket.create_connection((host, int(port)))
        slow.sendall(b"POST /predict HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n")
        slow.sendall(b"content-length: 99\r\n\r\n{")
        with Client(address) as client:
            said = client.predict(X, id="one")
            assert client.label("one", "yes").learned and said.probabilities == {"no": 0.5, "yes": 0.5}
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "ended\n" and process.wait(30) == 0
        assert time.monotonic() - started < 30.0  # five seconds, on a machine that is not busy
    finally:
        process.kill()
    assert len([*(tmp_path / "log.db.snapshots").iterdir()]) == 1
    assert not (tmp_path / "log.db.lock").exists()


def test_the_demonstration_ends_quietly(tmp_path):
    command = [sys.executable, "-c", "from regretless.cli import main; main()", "serve", "--demo", "--port", "0"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        address = next(line for line in process.stderr if line.startswith("page: ")).removeprefix("page: ").strip()
        with Client(address.rstrip("/")) as client:
            while client.get("/regret")["labels"] == 0:  # its own client is asking
                time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0 and "Traceback" not in errors


def test_live_events(engine):
    ended = False
    app = make_app(engine, ending=lambda: ended)

    async def listen():
        nonlocal ended
        from regretless.serve.live import events

        stream = events(engine, app.traffic, lambda: ended)
        assert await anext(stream) == b"retry: 2000\n\n"
        first = json.loads((await anext(stream)).split(b"data: ")[1])
        assert first["models"]["default"]["version"] == 0
        await engine.answers([Predict(X, "one")])
        await engine.answers([Label("one", "yes")])
        told = json.loads((await anext(stream)).split(b"data: ")[1])["models"]["default"]
        assert told["version"] == 1 and told["point"]["labels"] == 1
        assert [(each["id"], each["y"]) for each in told["last"]] == [("one", "yes")]
        ended = True
        assert [each async for each in stream] == []

    asyncio.run(listen())
