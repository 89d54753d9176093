"""EventLog: forecasts and labels in the order in which they count, in SQLite or PostgreSQL.

The log is append-only and has one writer. A second one is refused: by a lock file beside an SQLite file, by an advisory
lock in PostgreSQL. Readers, such as `regretless replay`, need no lock.

SQLite runs in WAL mode. With `sync="normal"` a commit survives the death of the process; the last commits before a
power failure may be lost. With `sync="full"` they are not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import exc

from regretless.evaluate.run.lock import Lock
from regretless.serve import schema
from regretless.serve.tables import COLUMNS, FORECAST, LABEL, events, models, parked

ADVISORY_LOCK = 0x72677274  # any number, the same for all services on a database
IDS_PER_QUERY = 500
TIMEOUT = 5  # seconds for a connection, a lock or a statement


class LogUnavailable(OSError):
    """The log cannot be read or written now. Nothing was written, or it is not known whether it was."""


class DuplicateId(Exception):
    """An id of the new events is in the log already. Nothing was written."""


class Event(NamedTuple):
    """One event, in the order of the columns of the table."""

    seq: int
    model: int
    kind: int
    id: str
    batch: int
    at: float
    body: bytes
    forecast: bytes | None
    version: int | None
    weight: float | None


class Labelled(NamedTuple):
    """A label and its forecast."""

    seq: int
    batch: int
    at: float
    y: bytes
    weight: float
    id: str
    forecast_seq: int
    forecast_at: float
    x: bytes
    forecast: bytes
    version: int


class Parked(NamedTuple):
    """A label that waits for its forecast, in the order of the columns of the table."""

    model: int
    id: str
    at: float
    body: bytes
    weight: float | None


class ModelRow(NamedTuple):
    """A row of `models`."""

    number: int
    name: str
    recipe: str
    features: str
    classes: str
    created: float
    start_seq: int
    start: bytes

    @property
    def identity(self) -> str:
        """Tells this model from those of other logs."""
        return f"{self.name} {self.created!r}"


def url_of(log: str | Path) -> sa.URL:
    """The address of a log: a path is an SQLite file; `sqlite:///PATH` and `postgresql://...` are URLs.

    >>> url_of("events.db").drivername, url_of("postgresql://me@host/base").drivername
    ('sqlite', 'postgresql+psycopg')
    """
    text = str(log)
    url = sa.make_url(text) if "://" in text else sa.URL.create("sqlite", database=text)
    if url.get_backend_name() == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite" and url.database and url.database != ":memory:":
        return url
    raise ValueError(
        f"{text!r} is not the address of a log: use a path, sqlite:///PATH or postgresql://USER@HOST/NAME."
    )


@contextmanager
def reporting() -> Iterator[None]:
    """Errors of the database as errors of the log."""
    try:
        yield
    except exc.IntegrityError as error:
        raise DuplicateId(str(error.orig)) from error
    except (exc.DBAPIError, exc.InvalidRequestError, OSError) as error:
        raise LogUnavailable(str(getattr(error, "orig", error))) from error


class EventLog:
    """The log of a service.

    Parameters
    ----------
    log : a path, or a URL of SQLite or PostgreSQL.
    sync : "normal" or "full", for SQLite; see above. PostgreSQL follows its own `synchronous_commit`.
    write : whether to take the lock, create and migrate tables. Otherwise the log is only read.
    """

    def __init__(self, log: str | Path, *, sync: str = "normal", write: bool = True) -> None:
        if sync not in ("normal", "full"):
            raise ValueError(f"sync={sync!r}: choose normal or full.")
        self.url = url_of(log)
        self.writes = write
        self._sync = sync
        self._lock: Lock | None = None
        self._postgres = self.url.get_backend_name() == "postgresql"
        self._engine = self._make_engine()
        self._connection: sa.Connection | None = None
        self._driver: Any = None  # the connection of sqlite3 or psycopg within it
        self._errors: Any = self._engine.dialect.import_dbapi()
        try:
            if write and not self._postgres:
                self._require_place()
                self._lock = Lock(
                    self.path.with_name(f"{self.path.name}.lock"),
                    "another service",
                    f"a log has one writer. Stop it, or choose another log than {self.path}.",
                )
                self._lock.take()
            elif not self._postgres and not self.path.is_file():
                raise ValueError(f"there is no log {self.path}.")
            self.connect()
        except LogUnavailable as error:
            self.close()
            raise LogUnavailable(f"the log {self.url.render_as_string()} cannot be opened: {error}.") from error
        except BaseException:
            self.close()
            raise

    def _require_place(self) -> None:
        if self.path.is_dir():
            raise ValueError(f"{self.path} is a folder: choose a file for the log.")
        if not self.path.parent.is_dir():
            raise ValueError(f"there is no folder {self.path.parent} for the log {self.path.name}: make it first.")

    @property
    def path(self) -> Path:
        """The file of an SQLite log."""
        return Path(str(self.url.database))

    def _make_engine(self) -> sa.Engine:
        if self._postgres:
            try:
                return sa.create_engine(
                    self.url,
                    poolclass=sa.pool.NullPool,
                    connect_args={
                        "connect_timeout": TIMEOUT,
                        "options": f"-c statement_timeout={TIMEOUT}s -c lock_timeout={TIMEOUT}s",
                        "tcp_user_timeout": 1000 * TIMEOUT,
                    },
                )
            except ImportError:
                raise ValueError('PostgreSQL needs psycopg: pip install "regretless[postgres]"') from None
        engine = sa.create_engine(
            self.url, poolclass=sa.pool.NullPool, connect_args={"timeout": TIMEOUT, "check_same_thread": False}
        )

        @sa.event.listens_for(engine, "connect")
        def configure(connection: Any, _: Any) -> None:
            connection.execute("PRAGMA journal_mode = WAL" if self.writes else "PRAGMA query_only = ON")
            connection.execute(f"PRAGMA synchronous = {self._sync.upper()}")
            connection.execute("PRAGMA wal_autocheckpoint = 4000")

        return engine

    # ------------------------------------------------------------------ connection

    def connect(self) -> None:
        """Open the connection, again if it was lost; a writer takes the lock and brings the tables up to date."""
        self._drop()
        with reporting():
            connection = self._engine.connect()
            try:
                if self.writes and self._postgres:
                    self._take_advisory_lock(connection)
                if self.writes:
                    schema.migrate(connection)
                else:
                    schema.require_head(connection)
                connection.commit()
            except BaseException:
                connection.close()
                raise
        self._connection = connection
        self._driver = connection.connection.driver_connection

    def _take_advisory_lock(self, connection: sa.Connection) -> None:
        if not connection.execute(sa.select(sa.func.pg_try_advisory_lock(ADVISORY_LOCK))).scalar():
            raise ValueError(
                f"another service is writing to the log in the database {self.url.database!r}: a log has one writer. "
                "Stop it, or choose another database."
            )

    def _drop(self) -> None:
        connection, self._connection, self._driver = self._connection, None, None
        if connection is not None:
            try:
                connection.close()
            except exc.DBAPIError:
                connection.invalidate()

    def close(self) -> None:
        """Close the connection and release the lock."""
        self._drop()
        self._engine.dispose()
        if self._lock is not None:
            self._lock.release()

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        """The connection, in a transaction: committed at the end, rolled back on an error."""
        with reporting():
            if self._connection is None:
                raise LogUnavailable("there is no connection to the log")
            with self._connection.begin():
                yield self._connection

    # ------------------------------------------------------------------ writing

    def append(self, rows: Sequence[Event], before_commit: Callable[[], None] = lambda: None) -> None:
        """Write the events and commit. All or none of them are in the log afterwards.

        After `LogUnavailable` it may be unknown which: `connect()` and `last_seq()` tell.
        """
        if self._driver is None:
            raise LogUnavailable("there is no connection to the log")
        try:  # by the driver itself: this is called for every group, and SQLAlchemy would take as long as SQLite
            cursor = self._driver.cursor()
            if self._postgres:
                cursor.execute(INSERT_ARRAYS, [[*column] for column in zip(*rows, strict=True)])
            else:
                cursor.executemany(INSERT_FORECAST, [OF_FORECAST(row) for row in rows if row.kind == FORECAST])
                cursor.executemany(INSERT_LABEL, [OF_LABEL(row) for row in rows if row.kind == LABEL])
            before_commit()
            self._driver.commit()
        except self._errors.Error as error:
            try:
                self._driver.rollback()
            except self._errors.Error:
                self._drop()
            if isinstance(error, self._errors.IntegrityError):
                raise DuplicateId(str(error)) from error
            raise LogUnavailable(str(error)) from error

    def add_model(self, row: ModelRow) -> None:
        """Add a model."""
        with self._transaction() as connection:
            connection.execute(models.insert(), row._asdict())

    def park(self, labels: Sequence[Parked]) -> None:
        """Keep labels whose forecasts have not come, one per id. It may be repeated."""
        with self._transaction() as connection:
            connection.execute(UNPARK, [{"of": label.model, "named": label.id} for label in labels])
            connection.execute(parked.insert(), [label._asdict() for label in labels])

    def unpark(self, labels: Sequence[Parked]) -> None:
        """Remove labels that were learned, or that waited too long."""
        with self._transaction() as connection:
            connection.execute(UNPARK, [{"of": label.model, "named": label.id} for label in labels])

    def parked(self) -> list[Parked]:
        """All labels that wait, oldest first."""
        with self._transaction() as connection:
            return [Parked(*row) for row in connection.execute(sa.select(parked).order_by(parked.c.at, parked.c.id))]

    def replace_start(self, number: int, seq: int, start: bytes) -> int:
        """Let a model start at a later event, and remove the events before it that are both forecast and labelled.

        Returns the number of events that were removed.
        """
        forecast, label = events.alias("forecast"), events.alias("label")
        ended = (
            sa.select(label.c.id)
            .join(forecast, sa.and_(forecast.c.model == label.c.model, forecast.c.id == label.c.id))
            .where(forecast.c.kind == FORECAST, label.c.model == number, label.c.kind == LABEL, label.c.seq <= seq)
        )
        with self._transaction() as connection:
            connection.execute(models.update().where(models.c.number == number).values(start_seq=seq, start=start))
            done = connection.execute(events.delete().where(events.c.model == number, events.c.id.in_(ended)))
            return int(done.rowcount)

    def shrink(self) -> None:
        """Give the space of removed events back."""
        if not self._postgres and self._connection is not None:
            with reporting():
                self._connection.exec_driver_sql("VACUUM")
                self._connection.commit()

    # ------------------------------------------------------------------ reading

    def models(self) -> list[ModelRow]:
        """All models, in the order in which they were added."""
        with self._transaction() as connection:
            return [ModelRow(*row) for row in connection.execute(sa.select(models).order_by(models.c.number))]

    def last_seq(self) -> int:
        """The number of the last event; 0 for an empty log."""
        with self._transaction() as connection:
            last = connection.execute(sa.select(sa.func.max(events.c.seq))).scalar() or 0
            start = connection.execute(sa.select(sa.func.max(models.c.start_seq))).scalar() or 0
            return max(int(last), int(start))

    def count(self, model: int, kind: int, after: int = 0, until: int | None = None) -> int:
        """The number of events of a kind."""
        chosen = [events.c.model == model, events.c.kind == kind, events.c.seq > after]
        if until is not None:
            chosen.append(events.c.seq <= until)
        with self._transaction() as connection:
            return int(connection.execute(sa.select(sa.func.count()).select_from(events).where(*chosen)).scalar() or 0)

    def find(self, model: int, ids: Sequence[str]) -> list[Event]:
        """The events of these ids, forecasts before their labels."""
        found: list[Event] = []
        with self._transaction() as connection:
            for at in range(0, len(ids), IDS_PER_QUERY):
                chosen = (events.c.model == model, events.c.id.in_(ids[at : at + IDS_PER_QUERY]))
                found += [Event(*row) for row in connection.execute(sa.select(events).where(*chosen))]
        return sorted(found)

    def last(self, model: int, n: int) -> list[Event]:
        """The last forecasts of a model."""
        chosen = sa.select(events).where(events.c.model == model, events.c.kind == FORECAST)
        with self._transaction() as connection:
            found = connection.execute(chosen.order_by(events.c.seq.desc()).limit(n))
            return [Event(*row) for row in found][::-1]

    def read(
        self, model: int | None = None, after: int = 0, until: int | None = None, at_once: int = 5000
    ) -> Iterator[list[Event]]:
        """The events after one and until another, in order, in chunks. A commit is never divided."""
        query = sa.select(events).where(events.c.seq > sa.bindparam("after")).order_by(events.c.seq).limit(at_once)
        if model is not None:
            query = query.where(events.c.model == model)
        if until is not None:
            query = query.where(events.c.seq <= until)
        rest: list[Event] = []
        while True:
            with self._transaction() as connection:
                found = [Event(*row) for row in connection.execute(query, {"after": after})]
            rest += found
            if len(found) < at_once:
                if rest:
                    yield rest
                return
            after = found[-1].seq
            whole = next((i for i in range(len(rest) - 1, 0, -1) if rest[i].batch != rest[i - 1].batch), 0)
            if whole:
                yield rest[:whole]
                rest = rest[whole:]

    def labelled(self, model: int, after: int = 0, until: int | None = None, at_once: int = 5000) -> Iterator[Labelled]:
        """The labels of a model after one event and until another, in order, with their forecasts."""
        label, forecast = events.alias("label"), events.alias("forecast")
        chosen = [label.c.model == model, label.c.kind == LABEL, label.c.seq > sa.bindparam("after")]
        if until is not None:
            chosen.append(label.c.seq <= until)
        same = (forecast.c.model == label.c.model, forecast.c.id == label.c.id, forecast.c.kind == FORECAST)
        of_label = (label.c.seq, label.c.batch, label.c.at, label.c.body, label.c.weight, label.c.id)
        of_forecast = (forecast.c.seq, forecast.c.at, forecast.c.body, forecast.c.forecast, forecast.c.version)
        query = (
            sa.select(*of_label, *of_forecast)
            .select_from(label.join(forecast, sa.and_(*same)))
            .where(*chosen)
            .order_by(label.c.seq)
            .limit(at_once)
        )
        while True:
            with self._transaction() as connection:
                found = connection.execute(query, {"after": after}).all()
            yield from (Labelled(*row) for row in found)
            if len(found) < at_once:
                return
            after = found[-1][0]


UNPARK = parked.delete().where(parked.c.model == sa.bindparam("of"), parked.c.id == sa.bindparam("named"))


def _insertion(without: set[str]) -> tuple[str, Callable[[Event], tuple[Any, ...]]]:
    """A statement of SQLite that inserts events, and the values of an event that it takes."""
    names = [name for name in COLUMNS if name not in without]
    places = [COLUMNS.index(name) for name in names]
    return f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", itemgetter(*places)


# one statement for each kind: sqlite3 takes longer for a None than for a number
INSERT_FORECAST, OF_FORECAST = _insertion(without={"weight"})
INSERT_LABEL, OF_LABEL = _insertion(without={"forecast", "version"})
ARRAYS = "bigint[] integer[] smallint[] text[] bigint[] float8[] bytea[] bytea[] bigint[] float8[]".split()
INSERT_ARRAYS = (
    f"INSERT INTO events ({', '.join(COLUMNS)}) SELECT * FROM unnest({', '.join(f'%s::{kind}' for kind in ARRAYS)})"
)


def now() -> float:
    """Seconds since 1970."""
    return time.time()
