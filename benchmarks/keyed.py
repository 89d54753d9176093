"""docs/past-one-machine.md: one learner per key, and one learner over shards, with what each costs.

    python -m benchmarks.keyed                  # the parts whose packages are installed
    python -m benchmarks.keyed keyed,memory     # some of them: keyed, memory, bytes, shards, dask, spark

PySpark needs an environment of its own. Each part is printed, and written to the page.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe, in_words
from benchmarks.page import count, nanoseconds, put, table
from benchmarks.timing import Contender, in_turns, ratio

PAGE = Path(__file__).parent.parent / "docs" / "past-one-machine.md"
KEYS, ROWS, D = 10_000, 200_000, 10
MANY = 1_000_000
MICRO_BATCHES, WARM = 6, 3  # of Spark: its Java code is compiled while it runs


def rows_of(n: int, d: int = D, keys: int = KEYS, seed: int = 0) -> tuple[Any, Any, Any]:
    """Keys, rows and labels of a logistic model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    weights = np.where(np.arange(d) % 2, -3.0, 3.0)
    return rng.integers(0, keys, n), X, (rng.random(n) < 1 / (1 + np.exp(-X @ weights))).astype(np.int64)


def keyed() -> list[str]:
    """KeyedLearner against River's dictionary of models, and against a dictionary of learners."""
    from river import linear_model

    from regretless import AIOLI, OGD, KeyedLearner

    keys, X, y = rows_of(ROWS)
    text = [f"user-{key}" for key in keys]
    few = ROWS // 10
    dictionaries = [dict(zip(map(str, range(D)), x.tolist(), strict=True)) for x in X]
    labels = y.astype(bool).tolist()

    def river() -> None:
        models: dict[int, Any] = {}
        for key, x, label in zip(keys.tolist(), dictionaries, labels, strict=True):
            if key not in models:
                models[key] = linear_model.LogisticRegression()
            models[key].predict_proba_one(x)
            models[key].learn_one(x, label)

    def separate() -> None:
        models: dict[int, Any] = {}
        for key, x, label in zip(keys[:few].tolist(), X[:few], y[:few].tolist(), strict=True):
            if key not in models:
                models[key] = AIOLI().begin(D, classes=[0, 1])
            models[key].predict_proba_one(x)
            models[key].learn_one(x, label)

    def ours(learner: Any, given: Any, pooled: bool = False) -> Contender:
        return Contender(
            ROWS, lambda: KeyedLearner(learner, pooled=pooled).predict_then_learn(given, X, y, classes=[0, 1])
        )

    def one_by_one() -> None:
        learner = KeyedLearner(AIOLI()).begin(D, classes=[0, 1])
        for i in range(few):
            learner.predict_then_learn(keys[i : i + 1], X[i : i + 1], y[i : i + 1])

    contenders = {
        "River, a dictionary of `LogisticRegression`": Contender(ROWS, river),
        "a dictionary of `AIOLI`": Contender(few, separate),
        "`KeyedLearner(AIOLI())`, integer keys": ours(AIOLI(), keys),
        "`KeyedLearner(AIOLI())`, text keys in a list": ours(AIOLI(), text),
        "`KeyedLearner(AIOLI())`, text keys in an array": ours(AIOLI(), np.array(text)),
        "`KeyedLearner(AIOLI(), pooled=True)`": ours(AIOLI(), keys, pooled=True),
        "`KeyedLearner(AIOLI())`, one row per call": Contender(few, one_by_one),
        "`KeyedLearner(OGD())`, integer keys": ours(OGD(), keys),
    }
    walls: dict[str, list[float]] = {name: [] for name in contenders}
    timed = {name: in_cpu_time(each, walls[name]) for name, each in contenders.items()}
    times = in_turns("keyed", timed, budget=90.0)
    first = next(iter(contenders))
    body = [
        [name, nanoseconds(found["least_ns"]), f"{ratio(times, first, name):.1f}", count(1.0 / min(walls[name]))]
        for name, found in times.items()
    ]
    return table(["10,000 keys, d = 10", "CPU time per row", "River's time / this", "rows/s of wall time"], body)


def in_cpu_time(contender: Contender, walls: list[float] | None = None) -> Contender:
    """The same, measured in CPU time of all threads, which depends less on what else the machine does.

    The seconds of wall time per row are added to `walls`.
    """

    def run() -> float:
        began, cpu = time.perf_counter(), time.process_time()
        contender.run()
        cpu = time.process_time() - cpu
        if walls is not None:
            walls.append((time.perf_counter() - began) / contender.rows)
        return cpu

    return Contender(contender.rows, run)


def memory() -> list[str]:
    """The memory of a million keys, in a process of its own."""
    code = f"import benchmarks.keyed as k; k.grow({MANY})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return table(["a million keys of `AIOLI`, d = 10", ""], [line.split("\t") for line in done.stdout.splitlines()])


def grow(keys: int) -> None:
    """Print what the given number of keys takes."""
    from regretless import AIOLI, KeyedLearner, load

    def resident() -> float:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 2**20

    learner = KeyedLearner(AIOLI(), max_keys=keys).begin(D, classes=[0, 1])
    learner.learn(np.arange(3), *rows_of(3)[1:])
    before, spent = resident(), 0.0
    for i in range(0, keys, 50_000):
        rows = rows_of(50_000, seed=i)[1:]
        began = time.process_time()
        learner.learn(np.arange(i, i + 50_000), *rows)
        spent += time.process_time() - began
    print(f"resident memory\t{resident() - before:.2f} GiB")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"largest while it grew\t{peak - before:.2f} GiB")
    print(f"the first row of each key\t{nanoseconds(1e9 * spent / keys)} of CPU time")

    def seconds(call: Callable[[], Any]) -> str:
        began, cpu = time.perf_counter(), time.process_time()
        call()
        return f"{time.perf_counter() - began:.1f} s, {time.process_time() - cpu:.1f} s of CPU time"

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/keyed.npz"
        took = seconds(lambda: learner.save(path))
        print(f"saved, {Path(path).stat().st_size / 2**30:.2f} GiB\t{took}")
        load(path)  # compiles the checks
        print(f"loaded, with every state checked\t{seconds(lambda: load(path))}")


def as_bytes() -> list[str]:
    """The cost of to_bytes and from_bytes, which Spark pays per key and micro-batch."""
    from regretless import AIOLI

    _, X, y = rows_of(200)
    learner = AIOLI().fit(X, y)
    data = learner.to_bytes()
    calls = {"`to_bytes`": learner.to_bytes, "`from_bytes`": lambda: AIOLI.from_bytes(data)}
    repeats = 500

    def often(call: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(repeats):
                call()

        return run

    times = in_turns(
        "bytes", {name: in_cpu_time(Contender(repeats, often(call))) for name, call in calls.items()}, budget=5.0
    )
    body = [[name, nanoseconds(found["least_ns"])] for name, found in times.items()]
    return table([f"`AIOLI`, d = 10: {len(data):,} bytes", "CPU time per call"], body)


def shards() -> list[str]:
    """The price of shards in certificate."""
    from regretless import AIOLI, fit_sharded

    _, X, y = rows_of(400_000, d=20)
    body = []
    for n, every in ((1, None), (4, None), (4, 500), (16, None), (16, 500)):
        found = fit_sharded(AIOLI(radius=10.0), X, y, n, sync_every=every)
        how = "one pass" if n == 1 else f"{n} shards" + (f", synchronised every {every} rows" if every else "")
        body.append([how, f"{found.regret_certificate():,.0f}", f"{found.total_loss_ / len(y):.4f}"])
    return table(["400,000 rows, d = 20", "certificate", "mean loss"], body)


def dask() -> list[str]:
    """Data-local shards on two workers against one process, both warm."""
    import dask.dataframe as frames
    import pandas as pd
    from dask.distributed import Client, LocalCluster

    from regretless import AIOLI
    from regretless.scale import dask as engine

    _, X, y = rows_of(2_000_000, d=20)
    names = [f"x{i}" for i in range(20)]
    rows = pd.DataFrame(X, columns=names).assign(y=y)
    one = Contender(len(y), lambda: AIOLI().begin(names, [0, 1]).partial_fit(rows[names], rows.y.to_numpy()))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        parts = frames.from_pandas(rows, npartitions=2).persist()
        both = Contender(len(y), lambda: engine.fit(parts, features=names, target="y", learner="AIOLI", classes=[0, 1]))
        times = in_turns("dask", {"one process": one, "Dask, 2 workers": both}, budget=30.0)
    body = [
        [name, nanoseconds(found["least_ns"]), f"{ratio(times, name, 'one process'):.2f}"]
        for name, found in times.items()
    ]
    return table(["2,000,000 rows, d = 20", "per row", "time / one process"], body)


def spark() -> list[str]:
    """Keyed streaming on two local cores, without the first micro-batch, which starts the workers."""
    import pandas as pd
    from pyspark.sql import SparkSession

    from regretless.scale import spark as engine

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .getOrCreate()
    )
    names, body = [f"x{i}" for i in range(D)], []
    for keys, per_key in ((200, 200), (2000, 20)):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "rows").mkdir()
            for i in range(MICRO_BATCHES):
                n = keys * per_key
                _, X, y = rows_of(n, seed=i)
                rows = pd.DataFrame(X, columns=names).assign(key=np.arange(n) % keys, t=np.arange(n) + i * n, y=y)
                rows.to_parquet(f"{folder}/rows/{i}.parquet")
            schema = session.read.parquet(f"{folder}/rows").schema
            stream = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/rows")
            said = engine.keyed(
                stream, key="key", features=names, target="y", order="t", learner="AIOLI", classes=[0, 1]
            )
            query = (
                said.writeStream.format("parquet")
                .option("path", f"{folder}/said")
                .option("checkpointLocation", f"{folder}/checkpoint")
                .trigger(availableNow=True)
                .start()
            )
            while query.isActive and len(query.recentProgress) < WARM:
                time.sleep(0.02)
            warm, cpu = len(query.recentProgress), cpu_of_descendants()
            query.awaitTermination()
            steps = [each for each in query.recentProgress if each["numInputRows"]]
            cpu = (cpu_of_descendants() - cpu) / (len(steps) - warm)
            seconds = min(each["durationMs"]["triggerExecution"] for each in steps[1:]) / 1000
            body.append(
                [
                    f"{keys:,} keys, {per_key} rows each",
                    count(keys * per_key / seconds),
                    nanoseconds(1e9 * cpu / (keys * per_key)),
                    nanoseconds(1e9 * cpu / keys),
                ]
            )
    session.stop()
    return table(["`scale.spark.keyed`, one micro-batch", "rows/s of wall time", "CPU per row", "CPU per key"], body)


def cpu_of_descendants() -> float:
    """The seconds of CPU time of the processes that this one has started, and of theirs: Java and Python workers."""
    parents, seconds = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            fields = path.read_text().rpartition(")")[2].split()
            number = int(path.parent.name)
            parents[number] = int(fields[1])
            seconds[number] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def is_ours(number: int) -> bool:
        parent = parents.get(number, 0)
        return parent == os.getpid() or (parent > 0 and is_ours(parent))

    return sum(spent for number, spent in seconds.items() if is_ours(number))


PARTS: dict[str, Callable[[], list[str]]] = {
    "keyed": keyed,
    "memory": memory,
    "bytes": as_bytes,
    "shards": shards,
    "dask": dask,
    "spark": spark,
}


def main() -> None:
    asked = sys.argv[1].split(",") if len(sys.argv) > 1 else list(PARTS)
    for name in asked:
        try:
            part = PARTS[name]()
        except ImportError as error:
            print(f"{name}: left out, {error}", file=sys.stderr)
            continue
        print("\n".join(part))
        begin, end = f"<!-- {name}: begin, written by python -m benchmarks.keyed {name} -->", f"<!-- {name}: end -->"
        put(begin, end, [*part, "", f"Measured on {in_words(describe())}"], f"## {name}", PAGE)


if __name__ == "__main__":
    main()
