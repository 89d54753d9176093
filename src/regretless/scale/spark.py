"""Learners on Spark: `keyed`, one per key, streaming or batch; `fit`, one over all rows; `to_udf`, frozen forecasts.

It needs `pip install 'regretless[spark]'`, and regretless installed on every worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from regretless.core.files.persist import from_bytes
from regretless.core.learner import OnlineLearner
from regretless.core.rows import validate
from regretless.scale.keyed import Held, KeyedGame, Lines, put_away, take_back
from regretless.scale.shards import fit_rounds, learn_part
from regretless.scale.starting import start_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY_TYPES = ("string", "tinyint", "smallint", "int", "bigint")
ORDER_TYPES = (
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "date",
    "timestamp",
    "timestamp_ntz",
    "string",
)


def keyed(
    rows: DataFrame,
    *,
    key: str,
    features: Sequence[str],
    target: str,
    order: str,
    learner: OnlineLearner | str,
    classes: Sequence[Any] | None = None,
    id: str | None = None,
    idle_after: float | None = None,
    idle_folder: str | None = None,
) -> DataFrame:
    """One learner per key: a DataFrame of forecasts, each made before its row's label is used.

    `rows` is streaming or static. On a stream the state of each key is in Spark's state store and in the checkpoint of
    the query, so that a job that is killed and started again continues where it was: every forecast appears once, and
    is the same to the bit. Set ``spark.sql.streaming.stateStore.providerClass`` to Spark's RocksDB provider, so that
    the states need not fit in memory.

    The result has the columns `key`, `order` and, if given, `id`; `probabilities`, an array in the order of `classes`
    (for a regressor `forecast`, a number); `certificate`, the learner's regret certificate after the last row of the
    key in the micro-batch, null in its other rows; and `error`, null unless the row was refused. A refused row changes
    nothing, and does not stop the job: missing keys, features or labels, unknown labels, rows older than one of their
    key that is learned already, and states that cannot be read.

    Parameters
    ----------
    rows : the rows. Their keys are text or integers.
    key, features, target : the columns.
    order : the column by which the rows of a key are sorted, within each micro-batch. Rows with equal values are sorted
        by their features.
    learner : a learner, or its text, such as "AIOLI(radius=5)".
    classes : the labels, for a classifier.
    id : the column of an identifier, if labels come late: a row without a label is forecast and waits, and a row with
        the same key and id, a label and no features is its label. At most 10,000 rows per key wait.
    idle_after : seconds (of processing time) after which a key without rows leaves the state store.
    idle_folder : a folder that all workers reach, to which such keys go, one Parquet file each, and from which they are
        taken up again with their next row. The folder is a table of key, last, model and waiting, which
        ``spark.read.option("recursiveFileLookup", "true").parquet(folder)`` reads. None: they are
        forgotten, which makes `idle_after` a time to live. For a static DataFrame: the folder to which all keys go in
        the end, from which a stream can take them up.
    """
    start = start_of(learner, features, classes)
    columns = (key, *start.feature_names_in_, target, order, *([id] if id else []))
    _require_columns(rows, columns)
    _require_type(rows, "key", key, KEY_TYPES)
    _require_type(rows, "order", order, ORDER_TYPES)
    if id and start.reads_tables:
        raise ValueError(
            f"{type(start).__name__} reads text columns, which cannot wait for labels: use AIOLI or another."
        )
    streams = rows.isStreaming
    if idle_after is not None:
        validate.positive("idle_after", idle_after)
    if streams and idle_folder is not None and idle_after is None:
        raise ValueError("idle_folder needs idle_after, the seconds after which a key leaves the state store.")
    if not streams and idle_after is not None:
        raise ValueError("idle_after is for a stream: a static DataFrame has all rows of a key.")
    game = KeyedGame(start.to_bytes(), key, tuple(start.feature_names_in_.tolist()), target, order, id)
    regresses = not hasattr(start, "classes_")
    types = dict(rows.dtypes)
    result = ", ".join(
        [
            *(f"`{name}` {types[name]}" for name in (key, order, *([id] if id else []))),
            "forecast double" if regresses else "probabilities array<double>",
            "certificate double",
            "error string",
        ]
    )
    groups = rows.select(*columns).groupBy(key)
    if not streams:
        return groups.applyInPandas(_batch_turn(game, regresses, idle_folder), result)
    from pyspark.sql.streaming.state import GroupStateTimeout

    timeout = GroupStateTimeout.NoTimeout if idle_after is None else GroupStateTimeout.ProcessingTimeTimeout
    return groups.applyInPandasWithState(
        _stream_turn(game, regresses, idle_after, idle_folder),
        result,
        f"model binary, last {types[order]}, waiting binary",
        "append",
        timeout,
    )


# Spark takes plain functions only, so the functions that run on workers are made by others.


def _batch_turn(game: KeyedGame, regresses: bool, folder: str | None) -> Callable[[tuple[Any, ...], Any], Any]:
    """The function that Spark calls with all rows of a key."""

    def turn(keys: tuple[Any, ...], rows: Any) -> Any:
        key = _plain(keys[0])
        lines, held = game.play(key, rows, None)
        if folder is not None and held is not None:
            put_away(folder, key, held)
        return _frame(game, lines, regresses)

    return turn


def _stream_turn(
    game: KeyedGame, regresses: bool, idle_after: float | None, folder: str | None
) -> Callable[[tuple[Any, ...], Iterator[Any], Any], Iterator[Any]]:
    """The function that Spark calls with the new rows of a key, or when it has been idle for too long."""

    def turn(keys: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
        import pandas as pd

        key = _plain(keys[0])
        if state.hasTimedOut:
            if folder is not None:
                put_away(folder, key, _held(state))
            state.remove()
            return
        parts = list(frames)
        rows = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
        before = _held(state) if state.exists else None
        if before is None and folder is not None and key is not None:
            before = take_back(folder, key)
        lines, after = game.play(key, rows, before)
        if after is not None:
            state.update((after.model, after.last, after.waiting))
            if idle_after is not None:
                state.setTimeoutDuration(int(1000 * idle_after))
        yield _frame(game, lines, regresses)

    return turn


def _held(state: Any) -> Held:
    model, last, waiting = state.get
    return Held(bytes(model), last, bytes(waiting))


def _plain(key: Any) -> Any:
    return key.item() if isinstance(key, np.generic) else key


def _frame(game: KeyedGame, lines: Lines, regresses: bool) -> Any:
    """The result as Spark reads it."""
    import pandas as pd

    columns = {name: lines.rows[name].array for name in (game.key, game.order, *([game.id] if game.id else []))}
    if regresses:
        columns["forecast"] = np.array(lines.forecasts, dtype=np.float64)  # None becomes NaN
    else:
        columns["probabilities"] = lines.forecasts
    columns["certificate"] = np.array(lines.certificates, dtype=np.float64)
    columns["error"] = np.array(lines.errors, dtype=object)
    return pd.DataFrame(columns)


def fit(
    rows: DataFrame,
    *,
    features: Sequence[str],
    target: str,
    learner: OnlineLearner | str,
    classes: Sequence[Any] | None = None,
    order: str | None = None,
    shards: int | None = None,
    sync_every: int | None = None,
    rule: str = "balanced",
) -> Any:
    """One learner of all rows: each partition is learned where it lies, and the states are merged. Prints the price.

    The certificate of the result covers all rows, and exceeds that of one pass (docs/past-one-machine.md has figures).

    Parameters
    ----------
    rows : a static DataFrame.
    features, target, classes : as in `keyed`.
    learner : a learner that can be merged, or its text: `AIOLI`, `FOLKLORE`, `GAF` or `VovkAzouryWarmuth`.
    order : the column by which the rows of each partition are sorted; None: as they lie.
    shards : the number of partitions; None: as many as there are.
    sync_every : merge after this many rows of each partition, and continue from the merged state. Every round is one
        Spark job over the cached rows.
    rule : "balanced" or "sum", as in `merge`.
    """
    start = start_of(learner, features, classes)
    names = start.feature_names_in_.tolist()
    _require_columns(rows, (*names, target, *([order] if order else [])))
    if rows.isStreaming:
        raise ValueError("rows is a stream: fit takes a static DataFrame. For a stream use keyed.")
    chosen = rows.select(*names, target, *([order] if order else []))
    if shards is not None:
        chosen = chosen.repartition(validate.whole("shards", shards, 1))
    if order is not None:
        chosen = chosen.sortWithinPartitions(order)
    chosen = chosen.cache()

    def learn(state: bytes, first: int, stop: int | None) -> list[bytes]:
        part = _part_of(state, names, target, first, stop)
        return [bytes(line.model) for line in chosen.mapInPandas(part, "model binary").collect()]

    try:
        return fit_rounds(start, learn, sync_every, rule)
    finally:
        chosen.unpersist()


def _part_of(
    start: bytes, features: list[str], target: str, first: int, stop: int | None
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that Spark calls with the rows of a partition, in blocks."""

    def part(frames: Iterator[Any]) -> Iterator[Any]:
        import pandas as pd

        state, seen, learned = start, 0, False
        for frame in frames:
            begin, end = max(0, first - seen), len(frame) if stop is None else max(0, stop - seen)
            seen += len(frame)
            block = frame.iloc[begin:end]
            if len(block):
                state, learned = learn_part(state, block[features], block[target].to_numpy()), True
        if learned:
            yield pd.DataFrame({"model": [state]})

    return part


def to_udf(learner: OnlineLearner) -> Callable[..., Column]:
    """A pandas UDF of a frozen learner: call it with its feature columns, in order.

    The result is an array of probabilities, or for a regressor a number. The learner travels to each Python worker
    once, and later changes of it have no effect.

    ``rows.withColumn("p", to_udf(learner)("age", "income"))``
    """
    from pyspark.sql.functions import pandas_udf

    if not hasattr(learner, "state_"):
        raise ValueError(f"this {type(learner).__name__} is not fitted: there is nothing to forecast with.")
    said = "array<double>" if hasattr(learner, "classes_") else "double"
    frozen = pandas_udf(_frozen(learner.to_bytes()), said)
    n = learner.n_features_in_

    def forecast(*columns: Any) -> Column:
        if len(columns) != n:
            raise ValueError(f"{len(columns)} columns given: this learner has {n} features.")
        found: Column = frozen(*columns)
        return found

    return forecast


def _frozen(model: bytes) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that Spark calls once per worker with blocks of columns."""
    import pandas as pd

    def forecasts(blocks: Iterator[Any]) -> Iterator[Any]:
        learner = from_bytes(model)
        names = getattr(learner, "feature_names_in_", None)
        forecast = getattr(learner, "predict_proba", learner.predict)
        for block in blocks:
            X = pd.concat(block if isinstance(block, tuple) else [block], axis=1)
            if names is not None:
                X.columns = list(names)
            yield pd.Series(list(forecast(X if names is not None else X.to_numpy())))

    # Spark derives the kind of function from its annotations.
    forecasts.__annotations__ = {"blocks": Iterator[tuple[pd.Series, ...]], "return": Iterator[pd.Series]}
    return forecasts


def _require_columns(rows: Any, columns: Sequence[str]) -> None:
    missing = [name for name in columns if name not in rows.columns]
    if missing:
        raise ValueError(f"there is no column {missing[0]!r}: the columns are {', '.join(rows.columns)}.")
    if len({*columns}) < len(columns):
        twice = next(name for name in columns if list(columns).count(name) > 1)
        raise ValueError(f"column {twice!r} is named twice: key, features, target, order and id are different columns.")


def _require_type(rows: Any, what: str, name: str, allowed: Sequence[str]) -> None:
    found = dict(rows.dtypes)[name]
    if found not in allowed:
        raise ValueError(f"{what}={name!r} has the type {found}: cast it to one of {', '.join(allowed)}.")
