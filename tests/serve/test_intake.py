"""Messages of a stream: what they may say, labels before their forecasts, and what is left after a restart."""

from __future__ import annotations

import asyncio
import json

import pytest
from games import CLASSES, COLUMNS, LOW, rows, service

from regretless.serve import EventLog, ModelSpec
from regretless.serve.intake import Intake
from regretless.serve.log import LogUnavailable
from regretless.serve.replay import verify
from regretless.serve.snapshots import Snapshots

pytestmark = pytest.mark.services


def message(**said) -> bytes:
    return json.dumps(said).encode()


def taken(intake, *messages):
    """The replies to messages that come in one batch."""
    return [json.loads(reply) for reply in asyncio.run(intake.take([*messages]))]


def begun(engine, **options):
    intake = Intake(engine, **options)
    asyncio.run(intake.begin())
    return intake


def test_forecasts_are_published_and_labels_are_learned(log_url):
    some = rows(6)
    with service(log_url) as engine:
        intake = begun(engine)
        said = taken(intake, *(message(id=f"r{i}", x=x) for i, (x, _) in enumerate(some)))
        assert [reply["id"] for reply in said] == [f"r{i}" for i in range(6)]
        assert said[0] == {"status": 200, "id": "r0", "seq": 1, "version": 0, "probabilities": {"no": 0.5, "yes": 0.5}}
        assert taken(intake, *(message(id=f"r{i}", y=y, weight=2) for i, (_, y) in enumerate(some))) == []
        assert engine.host().version == 6 and intake.counts.learned == 6
        again = taken(intake, message(id="r3", x=some[3][0]), message(id="r3", y=some[3][1], weight=2))
        assert again == [said[3]] and intake.counts.repeated == 1 and engine.host().version == 6


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"\xff{", 422, "cannot be read"),
        (b"[" * 100_000, 422, "cannot be read"),
        (message(x={"a": 1.0}), 422, "missing required field `id`"),
        (message(id="a"), 422, "an id and x, or"),
        (message(id="a", x={"a": 1.0}, y="yes"), 422, "an id and x, or"),
        (message(id="a", x={"a": 1.0}, extra=1), 422, "unknown field"),
        (message(id="a", x={"z": 1.0}), 422, "not a feature"),
        (message(id="a", x={"a": 1.0}, model="other"), 404, "no model 'other'"),
        (message(id="a", y="perhaps"), 422, "not one of the classes"),
        (message(id="", y="yes"), 422, "id must be"),
    ],
    ids=[
        "not text",
        "deep",
        "no id",
        "no content",
        "x and y",
        "unknown field",
        "unknown column",
        "unknown model",
        "unknown class",
        "empty id",
    ],
)
def test_a_bad_message_is_refused_and_the_others_are_carried_out(tmp_path, body, status, words):
    with service(tmp_path / "log.db") as engine:
        intake = begun(engine)
        said = taken(intake, message(id="one", x={"a": 1.0}), body, message(id="two", x={"a": 2.0}))
        refused = [reply for reply in said if reply["status"] != 200]
        assert [reply["id"] for reply in said if reply["status"] == 200] == ["one", "two"]
        assert len(refused) == 1 and refused[0]["status"] == status and words in refused[0]["error"]
        assert intake.counts.refused == 1 and intake.waiting == 0 and engine.host().version == 0


def test_messages_choose_their_model(tmp_path):
    with service(tmp_path / "log.db") as engine:
        engine.add_model(ModelSpec.of(LOW, COLUMNS, CLASSES, name="other"))
        intake = begun(engine, model="other")
        taken(intake, message(id="a", x={"a": 1.0}), message(id="a", x={"a": 1.0}, model="default"))
        taken(intake, message(id="a", y="yes"))
        assert (engine.host("other").version, engine.host("default").version) == (1, 0)


# ---------------------------------------------------------------------- labels before their forecasts


def test_a_label_before_its_forecast_is_learned_when_the_forecast_comes(log_url):
    with service(log_url) as engine:
        intake = begun(engine)
        assert taken(intake, message(id="a", y="yes", weight=0.5)) == []
        assert intake.waiting == 1 and engine.host().version == 0
        said = taken(intake, message(id="a", x={"a": 1.0}))
        assert said[0]["probabilities"] == {"no": 0.5, "yes": 0.5}
        assert intake.waiting == 0 and engine.host().version == 1 and engine.host().sums.weight == 0.5
        assert engine.call(engine.log.parked).result() == []


def test_both_in_one_batch(tmp_path):
    with service(tmp_path / "log.db") as engine:
        intake = begun(engine)
        taken(intake, message(id="a", y="yes"), message(id="a", x={"a": 1.0}), message(id="b", y="no"))
        assert intake.waiting == 1 and engine.host().version == 1


def test_a_parked_label_survives_a_restart(log_url):
    with service(log_url) as engine:
        taken(begun(engine), message(id="a", y="yes"), message(id="b", y="no"))
    with service(log_url) as engine:
        engine.predict({"a": 1.0}, id="b")  # while no consumer runs
        intake = begun(engine)
        assert intake.waiting == 1 and intake.counts.learned == 1
        taken(intake, message(id="a", x={"a": 1.0}))
        assert intake.waiting == 0 and engine.host().version == 2


def test_a_repeat_of_a_parked_label_changes_nothing_and_another_label_is_refused(tmp_path):
    with service(tmp_path / "log.db") as engine:
        intake = begun(engine)
        said = taken(intake, message(id="a", y="yes"), message(id="a", y="yes"), message(id="a", y="no"))
        assert [reply["status"] for reply in said] == [409] and intake.waiting == 1 and intake.counts.repeated == 1


def test_a_label_whose_forecast_does_not_come_expires(log_url):
    with service(log_url) as engine:
        intake = begun(engine, park_seconds=0.0)
        taken(intake, message(id="a", y="yes"))
        said = [json.loads(reply) for reply in asyncio.run(intake.expire())]
        assert [(reply["id"], reply["status"]) for reply in said] == [("a", 404)]
        assert (intake.waiting, intake.counts.expired, intake.counts.refused) == (0, 1, 0)
        assert engine.call(engine.log.parked).result() == []
        assert asyncio.run(intake.expire()) == []


def test_the_oldest_labels_expire_where_too_many_wait(tmp_path):
    with service(tmp_path / "log.db") as engine:
        intake = begun(engine, most_parked=2)
        for name in "abcd":
            taken(intake, message(id=name, y="yes"))
        said = [json.loads(reply)["id"] for reply in asyncio.run(intake.expire())]
        assert said == ["a", "b"] and intake.waiting == 2


def test_before_it_expires_a_label_is_tried_once_more(tmp_path):
    with service(tmp_path / "log.db") as engine:
        intake = begun(engine, park_seconds=0.0)
        taken(intake, message(id="a", y="yes"))
        engine.predict({"a": 1.0}, id="a")  # by HTTP
        assert asyncio.run(intake.expire()) == [] and intake.counts.expired == 0 and engine.host().version == 1


# ---------------------------------------------------------------------- faults


class Failing(EventLog):
    """A log whose next commits fail."""

    failures = 0

    def append(self, rows, before_commit=lambda: None):
        self._fail()
        super().append(rows, before_commit)

    def park(self, labels):
        self._fail()
        super().park(labels)

    def _fail(self):
        if self.failures:
            self.failures -= 1
            raise LogUnavailable("the disk is full")


def test_messages_wait_while_the_log_is_not_available(tmp_path):
    log = Failing(tmp_path / "log.db")
    with service(log) as engine:
        intake = begun(engine)
        log.failures = 2
        said = taken(intake, message(id="a", x={"a": 1.0}), message(id="b", y="no"))
        assert [reply["status"] for reply in said] == [200] and log.failures == 0
        log.failures = 1
        taken(intake, message(id="c", y="no"))
        assert intake.waiting == 2


def test_what_came_by_messages_can_be_verified(tmp_path):
    some = rows(40)
    with service(tmp_path / "log.db", snapshots=tmp_path) as engine:
        intake = begun(engine)
        messages = [message(id=f"r{i}", x=x) for i, (x, _) in enumerate(some)]
        labels = [message(id=f"r{i}", y=y) for i, (_, y) in enumerate(some)]
        taken(intake, *labels[:5], *messages[:20], *labels[:10])
        taken(intake, *messages[20:], *labels[10:])
        assert engine.host().version == 40 and intake.waiting == 0
    found = verify(EventLog(tmp_path / "log.db", write=False), snapshots=Snapshots(tmp_path))
    assert (found.forecasts, found.labels, found.different, found.different_snapshots) == (40, 40, [], [])
    assert found.snapshots == 1
