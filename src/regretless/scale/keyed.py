"""The rows of one key, forecast and learned where an engine brings them together.

An engine calls `KeyedGame.play` with the rows of one key and what `Held` kept of it before. It returns the forecasts
and what to keep now. Nothing here knows an engine. Rows are learned in the order of their column `order`, and rows with
equal values in the order of their features, so that the result does not depend on how the engine has mixed them.

A row that cannot be learned does not stop the job: its line of the result has the reason in `error`, and nothing of it
is learned. A job whose learner does not fit the states it finds is stopped, because no row could be learned rightly.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from regretless.core.errors import NoCertificate
from regretless.core.files import packed
from regretless.core.files.persist import from_bytes
from regretless.core.rows.inputs import is_missing
from regretless.core.types import Array

MOST_WAITING = 10_000  # rows of a key that wait for their labels
COMPLETE, UNLABELLED, LABEL = "complete", "unlabelled", "label"
REFUSED = (ValueError, TypeError)  # what a learner raises for rows that it does not take


class Held(NamedTuple):
    """What is kept of a key between two calls."""

    model: bytes  # the learner
    last: Any  # the order of the last row
    waiting: bytes  # the rows that wait for their labels


class Lines(NamedTuple):
    """The result: one line per forecast, and one per row that was refused."""

    rows: Any  # the rows, as a frame
    forecasts: list[Any]  # probabilities, or a number; None if the row was refused
    certificates: list[float | None]
    errors: list[str | None]


@dataclass(frozen=True)
class KeyedGame:
    """One learner per key: the columns, and the learner from which every key starts, as bytes."""

    start: bytes
    key: str
    features: tuple[str, ...]
    target: str
    order: str
    id: str | None = None
    _learner: list[Any] = field(default_factory=list, compare=False, repr=False)  # `start`, read once per worker

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_learner": []}

    def fresh(self) -> Any:
        """A learner without rows."""
        return from_bytes(self.start)

    def play(self, key: Any, rows: Any, held: Held | None) -> tuple[Lines, Held | None]:
        """Forecast and learn the rows of a key. Returns the lines of the result and what to keep."""
        import pandas as pd

        if not is_increasing(rows[self.order]):
            ties = (
                [*([self.id] if self.id else []), *self.features, self.target]
                if rows[self.order].duplicated().any()
                else []
            )
            rows = rows.sort_values([self.order, *ties], kind="stable", ignore_index=True)
        turn = _Turn(self, key, rows)
        if is_missing(key) or key is pd.NA:
            turn.refuse(range(len(rows)), "the key is missing: drop the row, or give it a key.")
            return turn.lines(), held
        try:
            turn.begin(held)
        except _Damaged as damage:
            turn.refuse(range(len(rows)), str(damage))
            return turn.lines(), held
        turn.play()
        return turn.lines(), turn.held()

    def require_same(self, learner: Any, key: Any) -> None:
        """Refuse a learner from a checkpoint that is not the one of this job."""
        if not self._learner:
            self._learner.append(self.fresh())
        mine = self._learner[0]
        if (
            type(mine) is type(learner)
            and mine.params_ == learner.params_
            and _classes(mine) == _classes(learner)
            and _names(mine) == _names(learner)
        ):
            return
        for what, ours, theirs in (
            ("learner", type(mine).__name__, type(learner).__name__),
            ("parameters", mine.params_, learner.params_),
            ("classes", _classes(mine), _classes(learner)),
            ("features", _names(mine), _names(learner)),
        ):
            if repr(ours) != repr(theirs):
                raise ValueError(
                    f"key {key!r}: the checkpoint has the {what} {theirs}, and this job has {ours}. Start the job as "
                    "before, or give it a new checkpoint, in which every key starts again. Nothing was changed."
                )


class _Damaged(ValueError):
    """The state of a key cannot be read."""


class _Turn:
    """One call for one key."""

    def __init__(self, game: KeyedGame, key: Any, rows: Any) -> None:
        self.game, self.key, self.rows = game, key, rows
        n = len(rows)
        self.forecasts: list[Any] = [None] * n
        self.errors: list[str | None] = [None] * n
        self.certificates: list[float | None] = [None] * n
        self.speaks = np.zeros(n, dtype=bool)  # rows with a line in the result
        self.last: Any = None
        self.waiting: dict[Any, Array] = {}

    def begin(self, held: Held | None) -> None:
        if held is None:
            self.learner = self.game.fresh()
            return
        try:
            self.learner = from_bytes(held.model)
            self.waiting = _unpacked(held.waiting)
        except REFUSED as error:
            raise _Damaged(
                f"key {self.key!r}: its state in the checkpoint cannot be used ({error}) It is left as it is, and the "
                "row is not learned. Restore the checkpoint from a copy, or start a new one."
            ) from error
        self.game.require_same(self.learner, self.key)
        self.last = held.last

    def held(self) -> Held:
        return Held(self.learner.to_bytes(), self.last, _packed(self.waiting))

    def refuse(self, rows: Sequence[int] | range, why: str) -> None:
        for i in rows:
            self.errors[i] = why
            self.speaks[i] = True

    def play(self) -> None:
        """Play the rows in order: those of one kind that follow each other as a block."""
        for kind, rows in self._runs(self._in_time()):
            try:
                self._play_block(kind, rows)
            except REFUSED:
                for i in rows:  # find the rows that are at fault; the others are learned
                    try:
                        self._play_block(kind, [i])
                    except REFUSED as error:
                        self.refuse([i], f"key {self.key!r}, {self.game.order}={self._order(i)}: {error}")
        self._certify()

    def _order(self, i: int) -> Any:
        value = self.rows[self.game.order].iloc[i]
        return value.item() if isinstance(value, np.generic) else value

    def _in_time(self) -> list[int]:
        """The rows that do not come before one that is learned already."""
        order = self.rows[self.game.order]
        if is_increasing(order) and (self.last is None or order.iloc[0] >= self.last):
            self.last = self._order(len(order) - 1)
            return list(range(len(order)))
        missing = order.isna().to_numpy()
        self.refuse(
            np.flatnonzero(missing).tolist(),
            f"key {self.key!r}: {self.game.order} is missing. Rows are learned in its order: fill it in.",
        )
        late = ~missing & (order < self.last).to_numpy() if self.last is not None else np.zeros(len(order), dtype=bool)
        for i in np.flatnonzero(late).tolist():
            self.refuse(
                [i],
                f"key {self.key!r}, {self.game.order}={self._order(i)}: a row with {self.game.order}={self.last} is "
                "learned already. Wait longer for late rows before the job reads them, or leave this one out.",
            )
        taken = np.flatnonzero(~missing & ~late).tolist()
        if taken:
            self.last = self._order(taken[-1])
        return taken

    def _runs(self, taken: list[int]) -> Iterator[tuple[str, list[int]]]:
        """The rows by kind, in order."""
        if self.game.id is None:
            kinds = np.full(len(self.rows), COMPLETE, dtype=object)
        else:
            labelled = self.rows[self.game.target].notna().to_numpy()
            described = self.rows[list(self.game.features)].notna().any(axis=1).to_numpy()
            kinds = np.where(labelled, np.where(described, COMPLETE, LABEL), UNLABELLED)
        begin = 0
        for i in range(1, len(taken) + 1):
            if i == len(taken) or kinds[taken[i]] != kinds[taken[begin]]:
                yield kinds[taken[begin]], taken[begin:i]
                begin = i

    def _play_block(self, kind: str, rows: list[int]) -> None:
        block = self.rows if len(rows) == len(self.rows) else self.rows.iloc[rows]
        if kind == LABEL:
            self._learn_waiting(block)
            return
        X = self._features(block)
        if kind == COMPLETE:
            y = block[self.game.target]
            if y.hasnans:
                raise ValueError(f"{self.game.target} is missing in {int(y.isna().sum())} rows: rows need a label.")
            with _without_names(self.learner, X):
                found = self.learner.predict_then_learn(X, y.to_numpy())
        else:
            self._require_room(block)
            forecast = getattr(self.learner, "predict_proba", self.learner.predict)
            with _without_names(self.learner, X):
                found = forecast(X)
            self.waiting |= dict(zip(block[self.game.id].tolist(), np.asarray(X, dtype=np.float64), strict=True))
        for i, one in zip(rows, found.tolist(), strict=True):
            self.forecasts[i] = one
        self.speaks[rows] = True

    def _features(self, block: Any) -> Any:
        """The features as an array, if all are numbers; otherwise as a frame, which the learner reads or refuses."""
        columns = [block[name].to_numpy() for name in self.game.features]
        if self.learner.reads_tables or any(column.dtype.kind not in "fiub" for column in columns):
            return block[list(self.game.features)]
        return np.stack(columns, axis=1, dtype=np.float64, casting="unsafe")

    def _require_room(self, block: Any) -> None:
        """Refuse ids that are missing or wait already, and rows beyond the limit."""
        ids = block[self.game.id].tolist()
        if any(is_missing(each) for each in ids):
            raise ValueError(f"{self.game.id} is missing: a row without a label needs an id, by which the label comes.")
        if len({*ids}) < len(ids) or self.waiting.keys() & {*ids}:
            raise ValueError(f"{self.game.id}={ids[0]!r} waits for its label already: ids must be different.")
        if len(self.waiting) + len(ids) > MOST_WAITING:
            raise ValueError(
                f"{len(self.waiting):,} rows of this key wait for their labels, and the limit is {MOST_WAITING:,}: "
                "send labels, or leave the row out."
            )

    def _learn_waiting(self, block: Any) -> None:
        import pandas as pd

        ids = block[self.game.id].tolist()
        unknown = [each for each in ids if is_missing(each) or each not in self.waiting]
        if unknown:
            raise ValueError(
                f"{self.game.id}={unknown[0]!r}: no row with this id waits for a label. It was learned already, or "
                "came to another key."
            )
        if len({*ids}) < len(ids):
            raise ValueError(f"{self.game.id}: two labels for one row.")
        X = pd.DataFrame([self.waiting[each] for each in ids], columns=list(self.game.features))
        self.learner.partial_fit(X, block[self.game.target].to_numpy())
        for each in ids:
            del self.waiting[each]

    def _certify(self) -> None:
        """The certificate after all rows, in the line of the last forecast."""
        said = [i for i, forecast in enumerate(self.forecasts) if forecast is not None]
        if said:
            try:
                self.certificates[said[-1]] = float(self.learner.regret_certificate())
            except NoCertificate:
                pass

    def lines(self) -> Lines:
        if self.speaks.all():
            return Lines(self.rows, self.forecasts, self.certificates, self.errors)
        kept = np.flatnonzero(self.speaks).tolist()
        return Lines(
            self.rows.iloc[kept],
            [self.forecasts[i] for i in kept],
            [self.certificates[i] for i in kept],
            [self.errors[i] for i in kept],
        )


def is_increasing(order: Any) -> bool:
    """Whether each value of a column of numbers or times is larger than the one before, so that none is missing."""
    values = order.to_numpy()
    known = values.dtype.kind in "iufM" and len(values) > 0 and not is_missing(order.iloc[0])
    return known and bool((values[1:] > values[:-1]).all())


@contextmanager
def _without_names(learner: Any, X: Any) -> Iterator[None]:
    """Let a learner with names of columns take an array whose columns are known to be these, without their check.

    Its check takes longer than learning two hundred rows.
    """
    names = learner.__dict__.pop("feature_names_in_", None) if isinstance(X, np.ndarray) else None
    try:
        yield
    finally:
        if names is not None:
            learner.feature_names_in_ = names


def _names(learner: Any) -> list[str]:
    return list(getattr(learner, "feature_names_in_", []))


def _classes(learner: Any) -> list[Any]:
    return learner.classes_.tolist() if hasattr(learner, "classes_") else []


def _packed(waiting: dict[Any, Array]) -> bytes:
    if not waiting:
        return b""
    return packed.pack({"ids": list(waiting)}, {"X": np.array(list(waiting.values()))})


def _unpacked(data: bytes) -> dict[Any, Array]:
    if not data:
        return {}
    header, arrays = packed.unpack(bytes(data))
    return dict(zip(header["ids"], arrays["X"], strict=True))


# ---------------------------------------------------------------------- idle keys in a table


def put_away(folder: str, key: Any, held: Held) -> None:
    """Write what is kept of an idle key to a Parquet file of its own, atomically. A repeated call writes the same.

    All files of a folder together are a table with the columns key, last, model and waiting.
    """
    import pyarrow as pa
    from pyarrow import parquet

    path = _place(folder, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    line = pa.table({name: [value] for name, value in {"key": key, **held._asdict()}.items()})
    temporary = path.with_name(f"_{path.name}.{uuid4().hex}")  # engines do not read files with such names
    parquet.write_table(line, temporary, coerce_timestamps="us", write_page_checksum=True)
    os.replace(temporary, path)


def take_back(folder: str, key: Any) -> Held | None:
    """What `put_away` wrote, or None. The file stays, so that a repeated micro-batch finds it again."""
    import pandas as pd
    from pyarrow import parquet

    path = _place(folder, key)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        [line] = parquet.ParquetFile(BytesIO(data), page_checksum_verification=True).read().to_pylist()
        if line["key"] != key:
            raise ValueError(f"it is the file of the key {line['key']!r}")
        last = line["last"]
        return Held(line["model"], pd.Timestamp(last) if isinstance(last, datetime) else last, line["waiting"])
    except (ValueError, LookupError, OSError) as error:
        raise ValueError(
            f"key {key!r}: {path} cannot be used: {error}. Restore it from a copy, or delete it; the key then starts "
            "again."
        ) from error


def _place(folder: str, key: Any) -> Path:
    digest = hashlib.sha256(f"{type(key).__name__}:{key}".encode()).hexdigest()
    return Path(folder) / digest[:2] / f"{digest}.parquet"
