"""The engine: what is forecast and learned, what is refused, what is left after a restart."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import Future

import numpy as np
import pytest
from games import CLASSES, COLUMNS, LOW, rows, service

import regretless
from regretless.serve import (
    EventLog,
    Forecast,
    Label,
    Learned,
    Limits,
    ModelSpec,
    Predict,
    Refused,
    Service,
    ServiceError,
)
from regretless.serve.log import LogUnavailable
from regretless.serve.replay import verify, what_if
from regretless.serve.service import Door
from regretless.serve.snapshots import Snapshots
from regretless.serve.tables import LABEL
from regretless.serve.transfer import bring_in, compact, export

pytestmark = pytest.mark.services


def digest(engine, name="default"):
    return engine.call(lambda: engine.host(name).snapshot(0).pack()).result()


def play(engine, some, prefix="r", delay=7, at_once=5):
    """Forecast rows in groups; labels come `delay` rows later."""
    waiting, replies = [], []
    for begin in range(0, len(some), at_once):
        part = some[begin : begin + at_once]
        asked = [Predict(x, f"{prefix}{begin + i}") for i, (x, _) in enumerate(part)]
        waiting += [Label(f"{prefix}{begin + i}", y) for i, (_, y) in enumerate(part)]
        while len(waiting) > delay:
            asked.append(waiting.pop(0))
        replies += engine.answer(asked)
    return replies


def test_a_forecast_and_its_label(log_url):
    with service(log_url) as engine:
        said = engine.predict({"a": 1.0, "b": "k1", "c": None}, id="one")
        assert said.probabilities == {"no": 0.5, "yes": 0.5} and (said.seq, said.version) == (1, 0)
        assert engine.predict({"a": 1.0, "b": "k1", "c": None}, id="one") == said  # a repeat, whatever was learned
        told = engine.label("one", "yes")
        assert told == Learned("one", 2, 1, learned=True, repeated=False)
        assert engine.label("one", "yes") == Learned("one", 2, 1, learned=False, repeated=True)
        assert engine.predict({"a": 1.0, "b": "k1", "c": None}, id="one") == said
        assert engine.predict({"a": 1.0}).id != engine.predict({"a": 1.0}).id


@pytest.mark.parametrize(
    ("operation", "status", "words"),
    [
        (Label("nothing", "yes"), 404, "no forecast"),
        (Label("known", "no"), 409, "already"),
        (Label("known", "yes", 2.0), 409, "weight 1 already"),
        (Predict({"a": 2.0}, "known"), 409, "other features"),
        (Label("open", "perhaps"), 422, "not one of the classes"),
        (Label("open", ["yes"]), 422, "not one of the classes"),
        (Label("open", "yes", 0.0), 422, "weight"),
        (Label("", "yes"), 422, "id"),
        (Label("a\0b", "yes"), 422, "id"),
        (Predict({"a": "text", "d": 1.0}), 422, "'d'"),
        (Predict({"a": [1.0]}), 422, "numbers, texts"),
        (Predict({"a": "long" * 100}), 422, "400 characters"),
        (Predict([1.0, 2.0]), 422, "2 values"),
        (Predict("text"), 422, "object"),
        (Predict({"a": 1.0}, "i" * 300), 422, "id"),
        (Predict({"a": 10**400, "b": "k1"}), 422, ""),
    ],
    ids=str,
)
def test_refusals_change_nothing(tmp_path, operation, status, words):
    with service(tmp_path / "log.db") as engine:
        play(engine, rows(30))
        engine.predict({"a": 1.0}, id="known")
        engine.predict({"a": 1.0}, id="open")
        engine.label("known", "yes")
        before = digest(engine), engine.seq
        found = engine.answer([operation])[0]
        assert isinstance(found, Refused) and found.status == status and words in found.error
        assert (digest(engine), engine.seq) == before


def test_a_bad_row_does_not_spoil_its_group(tmp_path):
    with service(tmp_path / "log.db", features=3, recipe="AIOLI") as engine:
        good = [[0.1 * i, 0.2, 0.3] for i in range(6)]
        asked = [Predict(x) for x in good[:3]] + [Predict([1e200, 1e200, 1e200]), Predict([1, "text", 2])]
        replies = engine.answer([*asked, *(Predict(x) for x in good[3:])])
        assert [reply.status for reply in replies] == [200] * 3 + [422] * 2 + [200] * 3


def test_an_id_that_comes_again_in_a_group(tmp_path):
    with service(tmp_path / "log.db") as engine:
        x, y = {"a": 1.0}, {"a": 2.0}
        asked = [Label("i", "no"), Predict(x, "i"), Label("i", "yes"), Predict(x, "i"), Label("i", "yes")]
        asked += [Label("i", "no"), Predict(y, "i")]
        replies = engine.answer(asked)
        assert [reply.status for reply in replies] == [404, 200, 200, 200, 200, 409, 409]
        assert replies[1] == replies[3] and replies[2].learned and replies[4].repeated
        assert engine.host().version == 1


def test_labels_are_learned_once_by_many_threads(tmp_path):
    some = rows(200)
    with service(tmp_path / "log.db") as engine:
        learned = []

        def ask(seed):
            order = list(range(len(some)))
            random.Random(seed).shuffle(order)
            for i in order:
                engine.predict(some[i][0], id=str(i))
                learned.append(engine.label(str(i), some[i][1]).learned)

        threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(learned) == 200 and engine.host().version == 200 and engine.seq == 400
    assert verify(EventLog(tmp_path / "log.db", write=False)).is_exact


def test_the_learner_learns_what_was_labelled(tmp_path):
    """As a learner that gets the same rows in the order of their labels, to the bit."""
    some = rows(120)
    with service(tmp_path / "log.db") as engine:
        play(engine, some, at_once=50, delay=0)  # blocks of 50 rows
        alone = regretless.OnlineLogisticRegression(effort="low").begin(COLUMNS, CLASSES)
        for x, y in some:
            alone.learn_one(x, y)
        assert engine.host().learner.to_bytes() == alone.to_bytes()


def test_restart_is_exact(log_url, tmp_path):
    some = rows(300)
    with service(log_url, snapshots=tmp_path / "snapshots", snapshot_every=100) as engine:
        play(engine, some[:200])
        middle = digest(engine)
    again = Service(log_url, snapshots=tmp_path / "snapshots")
    assert digest(again) == middle
    play(again, some[200:], prefix="s")
    end = digest(again)
    again.close()
    for folder in (tmp_path / "snapshots", None):  # the newest snapshot and the tail, or everything
        last = Service(log_url, snapshots=folder)
        assert digest(last) == end
        last.close()
    log = EventLog(log_url, write=False)
    found = verify(log, snapshots=Snapshots(tmp_path / "snapshots"))
    assert found.is_exact and found.snapshots == 2
    assert (found.forecasts, found.labels) == (300, 286)
    log.close()


def test_late_labels_are_scored_by_the_served_forecast(tmp_path):
    some = rows(150)
    with service(tmp_path / "log.db", limits=Limits(ids_in_memory=1000)) as engine:
        first = engine.predict(some[0][0], id="early")
        play(engine, some[1:], delay=0)
        before = engine.call(lambda: engine.host().sums.served_loss).result()
        engine.label("early", "yes")
        regret = engine.call(engine.host().regret).result()
        assert regret["served_loss"] - before == pytest.approx(-np.log(first.probabilities["yes"]))
        assert regret["delay_cost"] == regret["served_loss"] - regret["learner_loss"]
        assert regret["live_regret_at_most"] == regret["certificate"] + regret["delay_cost"]
        assert regret["delay_labels"] > 0.0


def test_the_live_regret_covers_the_served_forecasts(tmp_path):
    """At most: the loss as served minus that of the best weights in hindsight, on the learner's own rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=400) > 0).astype(int)
    with service(tmp_path / "log.db", "AIOLI(radius=5)", 2, [0, 1]) as engine:
        play(engine, [(x, k) for x, k in zip(X.tolist(), y.tolist(), strict=True)], delay=40)
        for i in range(360, 400):
            engine.label(f"r{i}", int(y[i]))
        found = engine.call(engine.host().regret).result()
    best = regretless.hindsight.best_in_hindsight(X, y, loss="logistic", domain=regretless.domains.Ball(5.0))
    assert found["served_loss"] - best.loss <= found["live_regret_at_most"]
    assert found["delay_cost"] > 0.0


def test_ids_beyond_memory_are_found_in_the_log(tmp_path):
    with service(tmp_path / "log.db", limits=Limits(ids_in_memory=1000)) as engine:
        first = engine.predict({"a": 1.0}, id="first")
        engine.answer([Predict({"a": float(i)}, f"i{i}") for i in range(1500)])
        assert engine.host().find("first") is None
        assert engine.predict({"a": 1.0}, id="first") == first
        engine.host().forget("first")
        assert engine.answer([Predict({"a": 2.0}, "first")])[0].status == 409
        engine.host().forget("first")
        assert engine.label("first", "yes").learned
        engine.host().forget("first")
        assert engine.label("first", "yes").repeated


def test_weights(tmp_path):
    with service(tmp_path / "log.db", features=1) as engine:
        for i, (x, y) in enumerate(rows(50)):
            engine.predict([x["a"]], id=str(i))
            engine.label(str(i), y, weight=1.0 + i % 3)
        host = engine.host()
        assert host.sums.weight == sum(1.0 + i % 3 for i in range(50))
        assert host.sums.served_loss == pytest.approx(host.learner_loss)  # each label came at once
    assert verify(EventLog(tmp_path / "log.db", write=False)).is_exact


def test_many_weights_are_replayed_in_the_same_batches(tmp_path):
    """From 224 weights on, the cuts of blocks show in the last bits; commits are in the log."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 230)) / 10
    y = (X[:, 0] > 0).astype(int).tolist()
    with service(tmp_path / "log.db", "AIOLI", 230, [0, 1]) as engine:
        assert engine.host().learner.least_rows > 1
        for begin, at_once in ((0, 100), (100, 37), (137, 163)):
            some = range(begin, begin + at_once)
            engine.answer([Predict(X[i].tolist(), str(i)) for i in some])
            engine.answer([Label(str(i), y[i]) for i in some])
        end = digest(engine)
    again = Service(tmp_path / "log.db")
    assert digest(again) == end
    again.close()
    assert verify(EventLog(tmp_path / "log.db", write=False)).is_exact


def test_several_models(tmp_path):
    with service(tmp_path / "log.db") as engine:
        engine.add_model(ModelSpec.of("AIOLI", 2, [0, 1], name="other"))
        assert engine.predict([0.1, 0.2], id="same", model="other").probabilities == {"0": 0.5, "1": 0.5}
        assert engine.predict({"a": 1.0}, id="same").probabilities == {"no": 0.5, "yes": 0.5}
        assert engine.label("same", 1, model="other").learned and engine.host().version == 0
        with pytest.raises(ServiceError, match="no model"):
            engine.predict([1.0], model="nothing")
        with pytest.raises(ServiceError, match="already"):
            engine.add_model(ModelSpec.of("AIOLI", 3, [0, 1], name="other"))
        assert engine.add_model(ModelSpec.of("AIOLI", 2, [0, 1], name="other")).version == 1
    with Service(tmp_path / "log.db") as engine:
        assert {name: host.version for name, host in engine.hosts.items()} == {"default": 0, "other": 1}


@pytest.mark.parametrize("x", [["text", 1.0], [10**400, 1.0], [None, 1.0], {"a": "text", "b": 1.0}, {"a": 1.0}])
def test_rows_that_are_not_numbers(tmp_path, x):
    with service(tmp_path / "log.db", recipe="AIOLI", features=["a", "b"]) as engine:
        replies = [reply.status for reply in engine.answer([Predict(x, "one")])]
        assert replies == [422] and engine.seq == 0


def test_models_that_share_a_commit_and_an_id(tmp_path):
    with service(tmp_path / "log.db") as engine:
        other = engine.add_model(ModelSpec.of("AIOLI", 2, [0, 1], name="other"))
        entered, leave = threading.Event(), threading.Event()
        engine.call(lambda: (entered.set(), leave.wait(60)))
        entered.wait(60)
        first, second = Future(), Future()
        engine.submit(engine.host(), [Predict({"a": 1.0}, "same"), Label("same", "yes")], Door(), first)
        engine.submit(other, [Predict([0.1, 0.2], "same")], Door(), second)
        leave.set()
        assert [reply.status for reply in first.result(60) + second.result(60)] == [200, 200, 200]
        assert engine.commits == 1 and engine.host().version == 1 and other.version == 0


def test_a_model_from_a_file_has_no_regret_of_its_own(tmp_path):
    learner = regretless.AIOLI().fit([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"])
    learner.save(tmp_path / "model.npz")
    with Service(tmp_path / "log.db") as engine:
        engine.add_model(ModelSpec.of(str(tmp_path / "model.npz"), files=True))
        said = engine.predict([1.0, 0.0], id="one")
        assert list(said.probabilities.values()) == learner.predict_proba_one([1.0, 0.0]).tolist()
        engine.label("one", "yes")
        regret = engine.call(engine.host().regret).result()
        assert regret["certificate"] is None and "before" in regret["why_not"]
        assert regret["learner_loss"] == pytest.approx(regret["served_loss"])


@pytest.mark.parametrize(
    ("recipe", "features", "classes", "words"),
    [
        ("VovkAzouryWarmuth", 2, None, "classes"),
        ("VovkAzouryWarmuth", 2, [0, 1], "classifier"),
        ("AIOLI", None, [0, 1], "features"),
        ("AIOLI", 2, [0, 1, 2], "binary"),
        ("AIOLI", 2, ["1", 1], "same as text"),
        ("AIOLI", 2000, [0, 1], "limit"),
        ("AIOLI", ["a", "a"], [0, 1], "different names"),
        ("OnlineLogisticRegression(on_bad_row='skip')", 2, [0, 1], "on_bad_row"),
        ("OnlineLogisticRegression(max_categories=100000)", 2, [0, 1], "max_categories"),
        ("Nothing", 2, [0, 1], "unknown learner"),
    ],
)
def test_models_that_cannot_be_served(recipe, features, classes, words):
    with pytest.raises(ValueError, match=words):
        ModelSpec.of(recipe, features, classes)


def test_a_second_writer_is_refused(log_url):
    with service(log_url), pytest.raises(ValueError, match="one writer"):
        Service(log_url)
    Service(log_url).close()


def test_an_event_loop(tmp_path):
    async def ask(engine):
        said = await asyncio.gather(*(engine.answers([Predict({"a": float(i)}, str(i))]) for i in range(50)))
        assert all(isinstance(found[0], Forecast) for found in said)
        assert await engine.read(lambda: engine.host().sums.forecasts) == 50

    with service(tmp_path / "log.db") as engine:
        asyncio.run(ask(engine))


class Failing(EventLog):
    """Fails when it is told to: before the commit, or after it, so that nobody knows whether it succeeded."""

    fails = None
    reachable = True

    def append(self, events, before_commit=lambda: None):
        if self.fails == "after":
            super().append(events, before_commit)
        if self.fails or not self.reachable:
            raise LogUnavailable("told to fail")
        super().append(events, before_commit)

    def connect(self):
        if not self.reachable:
            raise LogUnavailable("told to fail")
        super().connect()


@pytest.mark.parametrize("fails", ["before", "after"])
def test_a_failing_commit(log_url, fails, monkeypatch):
    monkeypatch.setattr("regretless.serve.service.RETRY_SECONDS", 0.01)
    some = rows(40)
    log = Failing(log_url)
    with service(log) as engine:
        play(engine, some[:20], delay=0)
        engine.predict(some[20][0], id="open")
        before = digest(engine)
        log.fails = fails
        replies = engine.answer([Predict(some[21][0], "new"), Label("open", "yes")])
        assert [reply.status for reply in replies] == [503, 503]
        assert engine.answer([Label("open", "yes")])[0].status == 503
        log.fails = None
        replies = until_available(engine, [Predict(some[21][0], "new"), Label("open", "yes")])
        assert [reply.status for reply in replies] == [200, 200]
        assert replies[1].learned is (fails == "before") and engine.host().version == 21
        assert digest(engine) != before
        play(engine, some[22:], prefix="s", delay=0)
        end = digest(engine)
    again = Service(log_url)
    assert digest(again) == end
    again.close()
    assert verify(EventLog(log_url, write=False)).is_exact


def until_available(engine, operations):
    for _ in range(1000):
        replies = engine.answer(operations)
        if all(reply.status != 503 for reply in replies):
            return replies
        threading.Event().wait(0.01)
    raise AssertionError("the service did not recover")


def test_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("regretless.serve.service.RETRY_SECONDS", 0.01)
    with service(tmp_path / "log.db") as engine:
        play(engine, rows(20), delay=0)
        pages = engine.log._driver.execute("PRAGMA page_count").fetchone()[0]
        engine.call(lambda: engine.log._driver.execute(f"PRAGMA max_page_count = {pages}")).result()
        statuses, before = set(), digest(engine)
        for i in range(200):
            reply = engine.answer([Predict({"a": 1.0, "b": "x" * 190}, f"full{i}")])[0]
            statuses.add(reply.status)
            if reply.status == 503:
                assert "full" in reply.error
                break
        assert statuses == {200, 503}
        assert engine.host().version == 20
        assert digest(engine) != before  # forecasts are counted
        assert until_available(
            engine, [Label("r3", "no"), Predict({"a": 1.0}, "later")]
        )  # a new connection has no limit
    assert verify(EventLog(tmp_path / "log.db", write=False)).is_exact


def test_a_database_that_ends_connections(postgres, monkeypatch):
    monkeypatch.setattr("regretless.serve.service.RETRY_SECONDS", 0.01)
    import psycopg

    some = rows(30)
    with service(postgres) as engine:
        play(engine, some, delay=0)
        before = digest(engine)
        with psycopg.connect(postgres, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                "AND datname = current_database()"
            )
        assert engine.answer([Label("r0", "perhaps"), Predict(some[0][0], "new")])[1].status == 503
        assert digest(engine) == before
        until_available(engine, [Predict(some[0][0], "new"), Label("new", "yes")])
        assert engine.host().version == 31
    assert verify(EventLog(postgres, write=False)).is_exact


def test_an_unexpected_error_hurts_one_operation(tmp_path, monkeypatch):
    monkeypatch.setattr("regretless.serve.service.RETRY_SECONDS", 0.01)
    with service(tmp_path / "log.db") as engine:
        play(engine, rows(20), delay=0)
        host = engine.host()
        forecast = host.forecast

        def sometimes(rows):
            if any(row.get("a") == 13.0 for row in rows):
                raise RuntimeError("a fault")
            return forecast(rows)

        monkeypatch.setattr(host, "forecast", sometimes)
        replies = engine.answer([Predict({"a": a}) for a in (1.0, 13.0, 2.0)])
        assert [reply.status for reply in replies] == [200, 500, 200]
        monkeypatch.setattr(host, "forecast", forecast)

        engine.predict({"a": 1.0}, id="open")
        learn = type(host).learn

        def half(self, batch):
            learn(self, batch)
            raise RuntimeError("a fault")

        monkeypatch.setattr(type(host), "learn", half)
        assert engine.answer([Label("open", "yes")])[0].status == 503
        monkeypatch.setattr(type(host), "learn", learn)
        assert until_available(engine, [Label("open", "yes")])[0].repeated  # it was committed, and is learned once
        assert host.version == 21
        end = digest(engine)
    again = Service(tmp_path / "log.db")
    assert digest(again) == end
    again.close()


def test_damaged_snapshots_are_passed_over(tmp_path):
    with service(tmp_path / "log.db", snapshots=tmp_path / "s", snapshot_every=20) as engine:
        play(engine, rows(100), delay=0)
        end = digest(engine)
    files = sorted((tmp_path / "s").iterdir())
    assert len(files) == 2
    files[-1].write_bytes(files[-1].read_bytes()[:-5])
    (tmp_path / "s" / "model-1-000000000000999.snapshot").write_bytes(b"nothing")
    again = Service(tmp_path / "log.db", snapshots=tmp_path / "s")
    assert digest(again) == end
    again.close()


def test_snapshots_of_another_log_are_not_used(tmp_path):
    with service(tmp_path / "first.db", snapshots=tmp_path / "s") as engine:
        play(engine, rows(30))
    with service(tmp_path / "second.db", snapshots=tmp_path / "s") as engine:
        play(engine, rows(60, seed=1))
    again = Service(tmp_path / "first.db", snapshots=tmp_path / "s")
    assert again.host().version == 23
    again.close()


def test_what_if(tmp_path):
    some = rows(300)
    with service(tmp_path / "log.db") as engine:
        play(engine, some)
        loss = engine.host().sums.scores[1]
    log = EventLog(tmp_path / "log.db", write=False)
    traces, lines = what_if(log, [LOW, "OnlineLogisticRegression(effort='low', drift='track')"])
    assert traces["as served"].log_loss[-1] == loss == traces[LOW].log_loss[-1]  # the same learner does the same
    assert traces[LOW].rows[-1] == 293 and lines[LOW].seconds > 0.0
    assert np.isfinite(traces[LOW].certificate).all()
    early, _ = what_if(log, [LOW], until=100)
    assert early[LOW].rows[-1] < 100
    with pytest.raises(ValueError, match="no labels"):
        what_if(log, [LOW], until=2)
    log.close()


def test_export_import_and_compact(tmp_path):
    some = rows(200)
    with service(tmp_path / "log.db") as engine:
        play(engine, some)
        end = digest(engine)
    log = EventLog(tmp_path / "log.db")
    n = export(log, tmp_path / "log.parquet")
    assert n == log.last_seq() == 200 + 193
    other = EventLog(tmp_path / "other.db")
    assert bring_in(other, tmp_path / "log.parquet") == n
    with pytest.raises(ValueError, match="not empty"):
        bring_in(other, tmp_path / "log.parquet")
    assert [*other.read()] == [*log.read()] and verify(other).is_exact
    other.close()
    assert compact(log, Snapshots(None)) == 2 * 193
    assert log.count(1, LABEL) == 0
    log.close()
    with Service(tmp_path / "log.db") as engine:
        assert digest(engine) == end
        assert engine.answer([Label("r0", some[0][1])])[0].status == 404
        assert engine.label("r199", some[199][1]).learned  # it had waited for its label
        play(engine, some, prefix="later")
    assert verify(EventLog(tmp_path / "log.db", write=False)).is_exact
    (tmp_path / "no.parquet").write_bytes(b"nothing")
    empty = EventLog(tmp_path / "empty.db")
    with pytest.raises(ValueError, match="is not a log"):
        bring_in(empty, tmp_path / "no.parquet")
    empty.close()


def test_schema_versions(tmp_path):
    service(tmp_path / "log.db").close()
    log = EventLog(tmp_path / "log.db")
    log._driver.execute("UPDATE alembic_version SET version_num = '9999'")
    log._driver.commit()
    log.close()
    with pytest.raises(ValueError, match="newer release"):
        Service(tmp_path / "log.db")
    with pytest.raises(ValueError, match="schema version 9999"):
        EventLog(tmp_path / "log.db", write=False)
    with pytest.raises(ValueError, match="there is no log"):
        EventLog(tmp_path / "nothing.db", write=False)


def change(log, statement, *values):
    with sqlite3.connect(log) as connection:
        connection.execute(statement, values)
    connection.close()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda log: log.write_bytes(log.read_bytes()[:20_000]), "cannot be opened: database disk image is malformed"),
        (lambda log: log.write_text("not a database\n" * 1000), "cannot be opened: file is not a database"),
        (lambda log: change(log, "UPDATE alembic_version SET version_num = '9999'"), "use a newer release"),
        (lambda log: change(log, "DELETE FROM alembic_version"), "damaged: it has events, and no schema version"),
        (lambda log: change(log, "UPDATE models SET start = ?", b"junk"), "first state of the model 'default'"),
        (lambda log: change(log, "UPDATE events SET body = ? WHERE seq = 3", b"{junk"), "the event 3 cannot be read"),
        (lambda log: change(log, "UPDATE events SET body = ? WHERE kind = 1", b"{"), "event [0-9]+ cannot be read"),
    ],
)
def test_damaged_logs(tmp_path, damage, words):
    log = tmp_path / "log.db"
    with service(log) as engine:
        play(engine, rows(20))
    damage(log)
    with pytest.raises((ValueError, OSError), match=words):
        Service(log)
    with pytest.raises((ValueError, OSError), match=words):
        verify(EventLog(log, write=False))
    assert not log.with_name("log.db.lock").exists()


def test_a_log_that_has_no_place(tmp_path):
    with pytest.raises(ValueError, match="is a folder"):
        Service(tmp_path)
    with pytest.raises(ValueError, match="there is no folder"):
        Service(tmp_path / "nothing" / "log.db")


DIES = """
import os, sys
import sqlalchemy as sa
from regretless.serve import EventLog

@sa.event.listens_for(sa.Engine, "after_cursor_execute")
def die(connection, cursor, statement, *_):
    if statement.strip().startswith("CREATE") and sys.argv[2] in statement:
        os._exit(9)

EventLog(sys.argv[1])
"""


@pytest.mark.parametrize("table", ["alembic_version", "models", "events", "event_of_id", "parked"])
def test_a_death_within_a_migration(tmp_path, table):
    log = tmp_path / "log.db"
    assert subprocess.run([sys.executable, "-c", DIES, str(log), table], check=False).returncode == 9
    with service(log) as engine:
        assert engine.predict({"a": 1.0}).seq == 1


def test_too_many_operations_wait(tmp_path):
    with service(tmp_path / "log.db", limits=Limits(waiting=100)) as engine:
        entered, leave = threading.Event(), threading.Event()
        engine.call(lambda: (entered.set(), leave.wait(60)))
        entered.wait(60)
        ask = threading.Thread(target=engine.answer, args=([Predict({"a": 1.0})] * 100,))
        ask.start()
        while engine._waiting < 100:
            threading.Event().wait(0.001)
        assert [reply.status for reply in engine.answer([Predict({"a": 1.0})])] == [503]
        leave.set()
        ask.join()


def test_nobody_waits_for_a_service_that_has_ended(tmp_path):
    engine = service(tmp_path / "log.db")
    engine.close()
    assert engine.answer([Predict({"a": 1.0})])[0].status == 503
