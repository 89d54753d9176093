"""Learners on Spark. Runs in an environment with PySpark and Java: .ci/run makes one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip(
    "pyspark", reason="PySpark is not installed: pip install 'regretless[spark]' in its own environment"
)
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java, and there is none", allow_module_level=True)

from pyspark.errors import StreamingQueryException  # noqa: E402

from regretless import AIOLI, NoCertificate, VovkAzouryWarmuth, merge  # noqa: E402
from regretless.scale import spark  # noqa: E402
from scale.spark_job import session  # noqa: E402

JOB = Path(__file__).parent / "spark_job.py"
FEATURES = ["x0", "x1", "x2"]
KILLS = 5


def rows_of(n, keys, seed=0):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(rng.normal(size=(n, 3)), columns=FEATURES)
    rows.insert(0, "key", [f"key {i}" for i in rng.integers(0, keys, n)])
    rows.insert(1, "t", np.arange(n))
    rows["y"] = (rng.random(n) < 1 / (1 + np.exp(-rows.x0 * np.where(rows.key == "key 0", -2, 2)))).astype(int)
    return rows


def in_one_process(rows, learner):
    """The forecast of each row, and the certificate after it, from a dictionary of learners."""
    forecasts, certificates, learners = {}, {}, {}
    for row in rows.itertuples():
        if row.key not in learners:
            learners[row.key] = learner().begin(FEATURES, None if learner is VovkAzouryWarmuth else [0, 1])
        one = learners[row.key]
        x = pd.DataFrame([[row.x0, row.x1, row.x2]], columns=FEATURES)
        forecasts[row.t] = one.predict_then_learn(x, [row.y])[0].tolist()
        with suppress(NoCertificate):
            certificates[row.t] = one.regret_certificate()
    return forecasts, certificates


@pytest.fixture(scope="module")
def engine():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    found = session()
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()


def test_a_killed_job_continues_and_every_forecast_appears_once(tmp_path):
    """Killed at least five times inside a micro-batch: the same forecasts, to the bit, as in one process."""
    files, rows = KILLS + 1, rows_of((KILLS + 1) * 200, 20)
    (tmp_path / "rows").mkdir()
    for i in range(files):
        part = rows.iloc[i * 200 : (i + 1) * 200].sample(frac=1.0, random_state=i)  # mixed within a micro-batch
        part.to_parquet(tmp_path / "rows" / f"{i}.parquet")
    folders = [str(tmp_path / name) for name in ("rows", "forecasts", "checkpoint")]
    killed = 0
    while True:
        job = subprocess.Popen(
            [sys.executable, str(JOB), *folders, "2.0"],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if killed < KILLS and _in_a_batch(job, tmp_path / "checkpoint", beyond=killed):
            time.sleep(0.1 * killed)  # at another point of the micro-batch each time
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
            killed += 1
            continue
        assert job.wait() == 0
        break
    assert killed == KILLS
    said = _sink(tmp_path / "forecasts")
    assert sorted(said.t) == list(range(len(rows)))
    assert said.error.isna().all()
    forecasts, certificates = in_one_process(rows, lambda: AIOLI(radius=2.0))
    for row in said.itertuples():
        assert row.probabilities == forecasts[row.t]
        assert np.isnan(row.certificate) or row.certificate == certificates[row.t]
    assert said.certificate.notna().sum() >= 20


def _in_a_batch(job, checkpoint, beyond):
    """Wait until a micro-batch after number `beyond` has begun and is not committed; False if the job ends before."""
    while job.poll() is None:
        begun, done = (
            {int(path.name) for path in (checkpoint / kind).glob("*") if path.name.isdigit()}
            for kind in ("offsets", "commits")
        )
        if any(number >= beyond for number in begun - done) and (checkpoint / "state").exists():
            return True
        time.sleep(0.01)
    return False


def _sink(folder):
    """The rows of a file sink: those of the files that its log names. (Without Spark, which takes long to start.)"""
    logs = [path for path in (folder / "_spark_metadata").iterdir() if not path.name.startswith(".")]
    named = {json.loads(line)["path"] for log in logs for line in log.read_text().splitlines()[1:]}
    found = pd.concat([pd.read_parquet(path.removeprefix("file://")) for path in sorted(named)], ignore_index=True)
    found["probabilities"] = [each if each is None else list(each) for each in found.probabilities]
    return found


def play(engine, tmp_path, batches, until=lambda: True, **settings):
    """Run a stream of the given micro-batches to its end, or on `until` something has happened; returns its rows."""
    folder = tmp_path / "stream"
    for i, batch in enumerate(batches):
        (folder / "rows").mkdir(parents=True, exist_ok=True)
        batch.to_parquet(folder / "rows" / f"{i:03}.parquet")
    schema = settings.pop("schema", "key string, t bigint, x0 double, x1 double, x2 double, y bigint")
    stream = engine.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "rows"))
    defaults = {"key": "key", "features": FEATURES, "target": "y", "order": "t", "learner": AIOLI(), "classes": [0, 1]}
    query = (
        spark.keyed(stream, **{**defaults, **settings})
        .writeStream.format("parquet")
        .option("path", str(folder / "said"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )
    try:
        if "idle_after" in settings:  # micro-batches without rows follow without end, to look for idle keys
            while query.isActive and not _has_said(folder / "said", sum(map(len, batches))):
                time.sleep(0.05)
        else:
            query.processAllAvailable()
        while query.isActive and not until():
            time.sleep(0.05)
    finally:
        query.stop()
    return _sink(folder / "said")


def _has_said(folder, n):
    try:
        return len(_sink(folder)) == n
    except (FileNotFoundError, ValueError):  # there is no file yet
        return False


@pytest.mark.parametrize("learner", [AIOLI, VovkAzouryWarmuth])
def test_the_batch_form_equals_one_process(engine, learner):
    rows = rows_of(400, 5)
    classes = [0, 1] if learner is AIOLI else None
    said = spark.keyed(
        engine.createDataFrame(rows), key="key", features=FEATURES, target="y", order="t", learner=learner(),
        classes=classes,
    ).toPandas()  # fmt: skip
    forecasts, certificates = in_one_process(rows, learner)
    column = said.probabilities if classes else said.forecast
    assert {t: list(p) if classes else p for t, p in zip(said.t, column, strict=True)} == forecasts
    last = rows.groupby("key").t.max()
    certified = said[said.certificate.notna()]
    wanted = {t: certificates[t] for t in last if t in certificates}
    assert dict(zip(certified.t, certified.certificate, strict=True)) == wanted


def test_bad_rows_have_an_error_and_the_others_are_learned(engine, tmp_path):
    rows = rows_of(60, 3)
    good = rows.copy()
    rows.loc[10, "x1"] = np.nan
    rows.loc[11, "y"] = 7
    rows["key"] = rows.key.where(rows.t != 12, None)
    said = play(engine, tmp_path, [rows.iloc[:40], rows.iloc[40:].assign(t=lambda r: r.t.where(r.t != 50, 3))])
    errors = said[said.error.notna()].set_index("t").error
    assert sorted(errors.index) == [3, 10, 11, 12]
    assert "Input contains NaN" in errors[10] and "label 7 is not one of the classes" in errors[11]
    assert "the key is missing" in errors[12] and "is learned already" in errors[3] and "key 'key" in errors[3]
    forecasts, _ = in_one_process(good.drop([10, 11, 12, 50]), AIOLI)
    fine = said[said.error.isna()]
    assert dict(zip(fine.t, fine.probabilities, strict=True)) == forecasts


def test_late_labels_find_their_rows_by_id(engine, tmp_path):
    rows = rows_of(30, 2).assign(id=lambda r: "row " + r.t.astype(str))
    asked = rows.assign(y=pd.Series([None] * len(rows), dtype="Int64"))
    labels = rows.assign(t=rows.t + 100, **dict.fromkeys(FEATURES, np.nan))
    labels.loc[len(labels)] = ["key 0", 200, np.nan, np.nan, np.nan, 1, "row 9999"]
    said = play(
        engine, tmp_path, [asked, labels, rows.assign(t=rows.t + 300)], id="id",
        schema="key string, t bigint, x0 double, x1 double, x2 double, y bigint, id string",
    )  # fmt: skip
    learner = {key: AIOLI().begin(FEATURES, [0, 1]) for key in rows.key.unique()}
    for row in said[said.t < 100].itertuples():
        assert row.probabilities == [0.5, 0.5]
    for row in rows.itertuples():
        learner[row.key].partial_fit(pd.DataFrame([[row.x0, row.x1, row.x2]], columns=FEATURES), [row.y])
    later = {}
    for row in rows.itertuples():
        x = pd.DataFrame([[row.x0, row.x1, row.x2]], columns=FEATURES)
        later[row.t + 300] = learner[row.key].predict_then_learn(x, [row.y])[0].tolist()
    found = said[said.t >= 300]
    assert dict(zip(found.t, found.probabilities, strict=True)) == later
    assert said[said.t == 200].error.str.contains("no row with this id waits").all()


def test_a_batch_hands_its_keys_to_a_stream(engine, tmp_path):
    rows, folder = rows_of(80, 3), str(tmp_path / "idle")
    settings = {"key": "key", "features": FEATURES, "target": "y", "order": "t", "learner": AIOLI(), "classes": [0, 1]}
    spark.keyed(engine.createDataFrame(rows.iloc[:50]), **settings, idle_folder=folder).toPandas()
    table = engine.read.option("recursiveFileLookup", "true").parquet(folder).toPandas()
    assert dict(zip(table.key, table["last"], strict=True)) == rows.iloc[:50].groupby("key").t.max().to_dict()
    assert AIOLI.from_bytes(table.model[0]).state_.tally[0] == (rows.iloc[:50].key == table.key[0]).sum()
    said = play(engine, tmp_path, [rows.iloc[50:]], idle_after=3600.0, idle_folder=folder)
    forecasts, _ = in_one_process(rows, AIOLI)
    assert dict(zip(said.t, said.probabilities, strict=True)) == {t: forecasts[t] for t in range(50, 80)}


def test_idle_keys_leave_and_come_back(engine, tmp_path):
    """A key without rows for a moment goes to the folder, and continues from there."""
    rows, folder = rows_of(60, 2), tmp_path / "idle"
    first, later = rows.iloc[:30], rows.iloc[30:]
    settings = {"idle_after": 0.1, "idle_folder": str(folder)}
    play(engine, tmp_path, [first], until=lambda: len([*folder.glob("*/*")]) == 2, **settings)
    said = play(engine, tmp_path, [first, later], **settings)
    forecasts, _ = in_one_process(rows, AIOLI)
    assert dict(zip(said.t, said.probabilities, strict=True)) == forecasts


def test_without_a_folder_idle_keys_are_forgotten(engine, tmp_path):
    rows = rows_of(20, 1)
    left = tmp_path / "left"

    def forgotten():
        time.sleep(3.0)
        return True

    play(engine, tmp_path, [rows.iloc[:10]], until=forgotten, idle_after=0.1)
    said = play(engine, tmp_path, [rows.iloc[:10], rows.iloc[10:]], idle_after=0.1)
    again, _ = in_one_process(rows.iloc[10:], AIOLI)
    found = said[said.t >= 10]
    assert dict(zip(found.t, found.probabilities, strict=True)) == again and not left.exists()


def test_a_changed_learner_or_schema_is_refused_at_its_checkpoint(engine, tmp_path):
    rows = rows_of(40, 2)
    play(engine, tmp_path, [rows.iloc[:20]])
    with pytest.raises(StreamingQueryException, match=r"key 'key \d': the checkpoint has the parameters"):
        play(engine, tmp_path, [rows.iloc[:20], rows.iloc[20:]], learner=AIOLI(radius=3.0))
    with pytest.raises(StreamingQueryException, match="the checkpoint has the features"):
        play(engine, tmp_path, [], features=["x1", "x0", "x2"])
    said = play(engine, tmp_path, [])  # as before: nothing is lost
    assert sorted(said.t) == list(range(40)) and said.error.isna().all()


def test_fit_merges_what_partitions_learned(engine, capsys):
    rows = rows_of(600, 1)
    frame = engine.createDataFrame(rows).repartitionByRange(3, "t")
    settings = {"features": FEATURES, "target": "y", "learner": "AIOLI", "classes": [0, 1], "order": "t"}
    found = spark.fit(frame, **settings)
    assert "600 rows in 3 shards: regret <=" in capsys.readouterr().out
    bounds = [row.t for row in frame.selectExpr("spark_partition_id() as p", "t").groupBy("p").min("t")
              .withColumnRenamed("min(t)", "t").orderBy("t").collect()]  # fmt: skip
    parts = np.split(np.arange(600), bounds[1:])
    wanted = merge([AIOLI().begin(FEATURES, [0, 1]).partial_fit(rows[FEATURES].iloc[p], rows.y.iloc[p]) for p in parts])
    assert np.array_equal(found.predict_proba(rows[FEATURES]), wanted.predict_proba(rows[FEATURES]))
    assert found.regret_certificate() == wanted.regret_certificate()
    often = spark.fit(frame, **settings, sync_every=50)
    assert often.regret_certificate() < found.regret_certificate()
    assert "synchronised every 50 rows" in capsys.readouterr().out


def test_a_frozen_learner_forecasts_in_a_udf(engine):
    rows = rows_of(50, 1)
    frame = engine.createDataFrame(rows)
    named = AIOLI().begin(FEATURES, [0, 1]).partial_fit(rows[FEATURES], rows.y)
    numbered = VovkAzouryWarmuth().fit(rows[FEATURES].to_numpy(), rows.y.to_numpy())
    for learner, forecast in (
        (named, named.predict_proba(rows[FEATURES])),
        (numbered, numbered.predict(rows[FEATURES].to_numpy())),
    ):
        said = frame.withColumn("said", learner.to_udf()(*FEATURES)).toPandas()
        assert np.array_equal(np.array(said.said.tolist()), forecast)
    with pytest.raises(ValueError, match="2 columns given: this learner has 3 features"):
        spark.to_udf(named)("x0", "x1")


def test_columns_that_do_not_fit_are_refused_at_once(engine):
    rows = rows_of(5, 1)
    frame = engine.createDataFrame(rows.assign(share=0.5))
    settings = {"key": "key", "features": FEATURES, "target": "y", "order": "t", "learner": "AIOLI", "classes": [0, 1]}
    for change, message in (
        ({"key": "share"}, "key='share' has the type double: cast it"),
        ({"key": "nobody"}, "there is no column 'nobody'"),
        ({"target": "x0"}, "column 'x0' is named twice"),
        ({"classes": None}, "AIOLI is a classifier: declare all labels"),
        ({"learner": "Nothing"}, "unknown learner"),
        ({"idle_after": 5.0}, "idle_after is for a stream"),
    ):
        with pytest.raises(ValueError, match=message):
            spark.keyed(frame, **{**settings, **change})
