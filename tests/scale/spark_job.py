"""A streaming job of one learner per key: python spark_job.py ROWS FORECASTS CHECKPOINT RADIUS."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from regretless.scale import spark

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # half the processor time of a job of a few seconds
SCHEMA = "key string, t bigint, x0 double, x1 double, x2 double, y bigint"


def session() -> SparkSession:
    """Two local workers and a state store on disk."""
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .config("spark.python.worker.faulthandler.enabled", "false")
        .config("spark.driver.extraJavaOptions", QUICK_START)
        .getOrCreate()
    )


def main(rows: str, forecasts: str, checkpoint: str, radius: str) -> None:
    stream = session().readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(rows)
    said = spark.keyed(
        stream,
        key="key",
        features=["x0", "x1", "x2"],
        target="y",
        order="t",
        learner=f"AIOLI(radius={radius})",
        classes=[0, 1],
    )
    query = (
        said.writeStream.format("parquet")
        .option("path", forecasts)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
