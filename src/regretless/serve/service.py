"""Service: the models of a log, and the one thread that writes to it.

Operations wait in a queue. The writer takes all that wait (up to a limit), and carries them out as one group:

1. it forecasts the rows, with the state before the group;
2. it writes forecasts and labels to the log, in one transaction, and commits;
3. it learns the labels and answers.

So nothing is learned or answered that is not in the log, and a commit is shared by all who wait for it. In a group all
forecasts come before all labels. Two operations of a group never depend on each other, except that a label may follow
the forecast of its id: where an id comes again, a new group begins.

If a commit fails, everyone in the group gets a 503 and nothing is learned. The writer then connects again and
reads what the log has beyond its own state, because the commit may have succeeded.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from uuid import uuid4

import msgspec

from regretless.core.errors import BadRow
from regretless.serve.host import RECENT, Due, Entry, ModelHost, decode, encode, entry_of
from regretless.serve.log import DuplicateId, Event, EventLog, LogUnavailable, ModelRow, now
from regretless.serve.models import DEFAULT_NAME, ModelSpec
from regretless.serve.replies import Forecast, Label, Learned, Operation, Predict, Refused, Reply, ServiceError
from regretless.serve.restore import catch_up, restored
from regretless.serve.rows import check_id, check_weight
from regretless.serve.settings import Limits
from regretless.serve.snapshots import Snapshots
from regretless.serve.tables import FORECAST, LABEL

GROUP = 1024  # operations that share a commit
SLOW_COMMIT = 0.001  # seconds: beyond, it pays to wait a quarter of a commit for more operations to share the next one
RETRY_SECONDS = 0.5  # between two attempts to reach the log
IDLE_SECONDS = 1.0  # between two looks at the clock

Found = TypeVar("Found")
Doors = dict["Door", list[tuple[Any, list[Reply]]]]


class Door:
    """Where the answers of a group go: one call per group, from the writer's thread."""

    def deliver(self, answers: list[tuple[Any, list[Reply]]]) -> None:
        """Take answers, each with the token that was submitted with the operations."""
        for token, replies in answers:
            token.set_result(replies)


class LoopDoor(Door):
    """Delivers to futures of an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    def deliver(self, answers: list[tuple[Any, list[Reply]]]) -> None:
        """Wake the loop once."""
        with suppress(RuntimeError):  # the loop has ended, and with it those who waited
            self.loop.call_soon_threadsafe(self._set, answers)

    def _set(self, answers: list[tuple[Any, list[Reply]]]) -> None:
        for future, replies in answers:
            if not future.done():  # the client may have gone
                future.set_result(replies)


class Job(msgspec.Struct, gc=False):
    """Operations of one caller on one model."""

    host: ModelHost
    operations: Sequence[Operation]
    door: Door
    token: Any


class Work(msgspec.Struct, gc=False):
    """One operation of a group, and where its reply goes."""

    host: ModelHost
    operation: Any  # a Label or a Predict
    labels: bool
    replies: list[Any]
    place: int


class Service:
    """Models, their log, and the thread that writes.

    Parameters
    ----------
    log : a path or URL; see `EventLog`.
    snapshots : the folder of snapshots; None keeps none, and a start then reads the whole log.
    sync : "normal" or "full"; see `EventLog`.
    limits : see `Limits`.
    snapshot_every : labels between two snapshots of a model.
    snapshot_seconds : seconds after which a changed model is written, however few labels it has learned.
    reached : called with the name of each step of the writer: "transaction" (before the commit), "committed",
        "learned", "snapshot". For tests and measurements.

    Examples
    --------
    >>> import tempfile
    >>> from regretless.serve import ModelSpec, Service
    >>> with tempfile.TemporaryDirectory() as folder, Service(f"{folder}/log.db") as service:
    ...     _ = service.add_model(ModelSpec.of("OnlineLogisticRegression", ["amount"], ["good", "fraud"]))
    ...     said = service.predict({"amount": 3.0}, id="order-1")
    ...     learned = service.label("order-1", "good")
    >>> said.probabilities, learned.learned
    ({'good': 0.5, 'fraud': 0.5}, True)
    """

    def __init__(
        self,
        log: str | Path | EventLog,
        *,
        snapshots: str | Path | None = None,
        sync: str = "normal",
        limits: Limits | None = None,
        snapshot_every: int = 50_000,
        snapshot_seconds: float = 60.0,
        reached: Callable[[str], None] = lambda step: None,
    ) -> None:
        self.limits = limits or Limits()
        self.log = log if isinstance(log, EventLog) else EventLog(log, sync=sync)
        self.snapshots = Snapshots(None if snapshots is None else Path(snapshots))
        self.hosts: dict[str, ModelHost] = {}
        self.unavailable: str | None = None  # why the log cannot be written, as long as it cannot
        self.commits = 0
        self.messages: Callable[[], dict[str, int]] = dict  # counts of messages, if an `Intake` takes them
        self._snapshot_every, self._snapshot_seconds = snapshot_every, snapshot_seconds
        self._reached = reached
        self._saved: dict[int, tuple[int, int, float]] = {}  # model -> labels, forecasts, time of its last snapshot
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._waiting = 0
        self._stopping = False
        self._commit_seconds = 0.0  # of the last commit
        self._callers = 0  # that waited when it ended, those whom it served included
        self._next_attempt = 0.0
        self._stale = False  # whether models must be read again
        self._listeners: list[Callable[[], None]] = []
        try:
            self.seq = self.log.last_seq()
            for row in self.log.models():
                self._host(row)
        except BaseException:
            self.log.close()
            raise
        self._thread = threading.Thread(target=self._write, name="regretless-writer", daemon=True)
        self._thread.start()

    def _host(self, row: ModelRow) -> ModelHost:
        host = restored(self.log, row, self.snapshots, self.seq, self.limits.ids_in_memory)
        last = self.log.last(row.number, RECENT)
        host.take_up(self.log.find(row.number, [event.id for event in last]))
        host.show(last)
        self.hosts[row.name] = host
        self._saved[row.number] = host.version, host.sums.forecasts, time.monotonic()
        return host

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish what waits, write snapshots, and release the log."""
        if not self._stopping:
            self._stopping = True
            self._queue.put(None)
            self._thread.join()

    # ------------------------------------------------------------------ models

    def add_model(self, spec: ModelSpec) -> ModelHost:
        """Add a model, or find the one of the same name, which must be the same model."""
        return self.call(lambda: self._add_model(spec)).result()

    def _add_model(self, spec: ModelSpec) -> ModelHost:
        host = self.hosts.get(spec.name)
        if host is not None:
            if (host.recipe, host.features, host.classes) != (spec.recipe, spec.features, spec.classes):
                raise ServiceError(
                    409,
                    f"the log has a model {spec.name!r} already: {host.recipe} with the features {host.features} and "
                    f"the classes {host.classes}. Choose another name, or the same model.",
                )
            return host
        if len(self.hosts) >= self.limits.models:
            raise ServiceError(422, f"the service has {len(self.hosts)} models; the limit is {self.limits.models}.")
        number = 1 + max((each.number for each in self.hosts.values()), default=0)
        row = ModelHost.row_of(spec, number, self.seq)
        with self._log_at_hand():
            self.log.add_model(row)
            return self._host(row)

    def host(self, name: str | None = None) -> ModelHost:
        """A model by name; without one, the model named "default", or else the first."""
        if name is None:
            name = DEFAULT_NAME if DEFAULT_NAME in self.hosts else next(iter(self.hosts), DEFAULT_NAME)
        try:
            return self.hosts[name]
        except KeyError:
            raise ServiceError(404, f"there is no model {name!r}.") from None

    # ------------------------------------------------------------------ asking

    def submit(self, host: ModelHost, operations: Sequence[Operation], door: Door, token: Any) -> bool:
        """Queue operations on a model; `door` gets (token, replies). False if too many wait, or the service ends."""
        if self._stopping or self._waiting >= self.limits.waiting:
            return False
        self._waiting += len(operations)
        self._queue.put(Job(host, operations, door, token))
        return True

    def answer(self, operations: Sequence[Operation], model: str | None = None) -> list[Reply]:
        """Carry out operations on a model, and wait. There is one reply per operation, refusals included."""
        future: Future[list[Reply]] = Future()
        if not self.submit(self.host(model), operations, _FUTURES, future):
            return [BUSY] * len(operations)
        return future.result()

    async def answers(self, operations: Sequence[Operation], model: str | None = None) -> list[Reply]:
        """`answer` for an event loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Reply]] = loop.create_future()
        if not self.submit(self.host(model), operations, LoopDoor(loop), future):
            return [BUSY] * len(operations)
        return await future

    def predict(self, x: Any, id: str | None = None, model: str | None = None) -> Forecast:
        """Forecast one row; a `ServiceError` if it is refused."""
        found = required(self.answer([Predict(x, id)], model)[0])
        assert isinstance(found, Forecast)
        return found

    def label(self, id: str, y: Any, weight: float | None = None, model: str | None = None) -> Learned:
        """Learn the label of an earlier forecast; a `ServiceError` if it is refused."""
        found = required(self.answer([Label(id, y, weight)], model)[0])
        assert isinstance(found, Learned)
        return found

    def call(self, function: Callable[[], Found]) -> Future[Found]:
        """Call a function in the writer's thread, between two groups: hosts do not change meanwhile."""
        future: Future[Found] = Future()
        self._queue.put((function, future))
        return future

    async def read(self, function: Callable[[], Found]) -> Found:
        """`call` for an event loop."""
        return await asyncio.wrap_future(self.call(function))

    def lookup(self, host: ModelHost, id: str) -> Entry | None:
        """A forecast by id, from memory or the log. Only for functions that `call` runs."""
        if host.find(id) is None:
            with self._log_at_hand():
                host.take_up(self.log.find(host.number, [id]))
        return host.find(id)

    def with_log(self, function: Callable[[], Found]) -> Found:
        """Call a function that uses the log; a `ServiceError` if it is not available. Only within `call`."""
        with self._log_at_hand():
            return function()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call a function in the writer's thread after each group that changed something."""
        self._listeners.append(listener)

    # ------------------------------------------------------------------ the writer

    def _write(self) -> None:
        try:
            going = True
            while going:
                try:
                    first = self._queue.get(timeout=IDLE_SECONDS)
                except Empty:
                    self._look_after()
                    continue
                going = self._take(first)
                self._look_after()
        finally:
            self._stopping = True
            while True:  # nobody waits for ever
                try:
                    left = self._queue.get_nowait()
                except Empty:
                    break
                if isinstance(left, Job):
                    left.door.deliver([(left.token, [BUSY] * len(left.operations))])
                elif left is not None:
                    left[1].set_exception(ServiceError(503, "the service ends."))
            self._save_all(changed_only=True)
            self.log.close()

    def _take(self, first: Any) -> bool:
        """Carry out what waits; False if the service ends."""
        jobs: list[Job] = []
        calls: list[tuple[Callable[[], Any], Future[Any]]] = []
        n, going, item, patient = 0, True, first, True
        while True:
            if item is None:
                going = False
            elif isinstance(item, Job):
                jobs.append(item)
                n += len(item.operations)
            else:
                calls.append(item)
            if n >= GROUP or not going:
                break
            if patient and self._commit_seconds > SLOW_COMMIT and 0 < len(jobs) < self._callers:
                if self._queue.empty():
                    time.sleep(0.25 * min(self._commit_seconds, 0.1))
                    patient = False
            try:
                item = self._queue.get_nowait()
            except Empty:
                break
        if jobs:
            self._carry_out(jobs)
            self._waiting -= n
        for function, future in calls:
            try:
                future.set_result(function())
            except Exception as error:
                future.set_exception(error)
        return going

    def _carry_out(self, jobs: list[Job]) -> None:
        answers: Doors = {}
        work: list[Work] = []
        for job in jobs:
            replies: list[Any] = [None] * len(job.operations)
            answers.setdefault(job.door, []).append((job.token, replies))
            work += [Work(job.host, each, type(each) is Label, replies, i) for i, each in enumerate(job.operations)]
        try:
            at = 0
            while at < len(work):
                group = _independent(work, at)
                self._carry_out_safely(group)
                at += len(group)
        except LogUnavailable as error:
            if self.unavailable is None:
                self._lose(error)
            refusal = Refused(503, f"the log is not available ({error}). Nothing was learned; try again.")
            for each in work:
                if each.replies[each.place] is None:
                    each.replies[each.place] = refusal
        finally:
            self._callers = len(jobs) + self._queue.qsize()
            for door, several in answers.items():
                door.deliver(several)
        for listener in self._listeners:
            listener()

    def _carry_out_safely(self, group: list[Work]) -> None:
        """Carry out a group. An error that nobody expected hurts the operation that caused it, and no other."""
        before = self.commits
        try:
            self._carry_out_group(group)
        except LogUnavailable:
            raise
        except Exception as error:
            if self.commits > before:  # a model may be half updated: the log has everything
                self._stale = True
                raise LogUnavailable(f"the models are read again, after {type(error).__name__}: {error}") from error
            if len(group) > 1:
                for each in group:
                    self._carry_out_safely([each])
            else:
                told = f"an error of the service, not of the request: {type(error).__name__}: {error}"
                group[0].replies[group[0].place] = Refused(500, told)

    def _carry_out_group(self, group: list[Work]) -> None:
        self._require_log()
        try:
            self._commit_and_learn(group)
        except DuplicateId:  # forecast long ago, and not in memory
            for host in {work.host.number: work.host for work in group}.values():
                ids = [work.operation.id for work in group if work.host is host and work.operation.id is not None]
                host.take_up(self.log.find(host.number, ids))
            self._commit_and_learn(group)

    def _commit_and_learn(self, group: list[Work]) -> None:
        self._look_up(group)
        at, batch = now(), self.seq + 1
        forecasts = self._forecasts(group, at, batch)
        written = [event for _, event in forecasts]
        labels = self._labels(group, at, batch + len(forecasts), written)
        written += [_event_of(work.host, due, batch) for work, due in labels]
        if not written:
            return
        started = time.monotonic()
        self.log.append(written, self._before_commit)
        self._commit_seconds = time.monotonic() - started
        self.commits += 1
        self._reached("committed")
        self.seq = written[-1].seq
        new = {}
        for work, event in forecasts:
            host = work.host
            entry = new[host.number, event.id] = host.served(event)
            host.sums.forecasts += 1
            work.replies[work.place] = Forecast(entry.id, entry.seq, entry.version, host.named(entry.forecast))
        by_host: dict[int, list[tuple[Work, Due]]] = {}
        for work, due in labels:
            due.entry = new.get((work.host.number, due.entry.id), due.entry)
            by_host.setdefault(work.host.number, []).append((work, due))
        for several in by_host.values():
            host = several[0][0].host
            learned = host.learn([due for _, due in several])
            version = host.version
            for (work, due), done in zip(several, learned, strict=True):
                work.replies[work.place] = Learned(due.entry.id, due.seq, version, done, False)
        self._reached("learned")

    def _before_commit(self) -> None:
        self._reached("transaction")

    def _look_up(self, group: list[Work]) -> None:
        """Bring the forecasts of labels into memory."""
        missing = [work for work in group if work.labels and work.host.find(work.operation.id) is None]
        if not missing:
            return
        asked = {(work.host.number, work.operation.id) for work in group if not work.labels}
        ids: dict[int, tuple[ModelHost, list[str]]] = {}
        for work in missing:
            host, id = work.host, work.operation.id
            if (host.number, id) not in asked and _is_id(id, self.limits):
                ids.setdefault(host.number, (host, []))[1].append(id)
        for host, several in ids.values():
            host.take_up(self.log.find(host.number, several))

    def _forecasts(self, group: list[Work], at: float, batch: int) -> list[tuple[Work, Event]]:
        """The new forecasts of a group; other requests for forecasts are answered here."""
        fresh: dict[int, list[tuple[Work, Any, bytes]]] = {}
        for work in group:
            operation, host = work.operation, work.host
            if work.labels:
                continue
            try:
                if operation.id is None:
                    operation.id = uuid4().hex
                check_id(operation.id, self.limits)
                host.columns.check(operation.x, self.limits)
                known = host.find(operation.id)
                if known is None:
                    asked = work, host.columns.row(operation.x), encode(operation.x)
                    fresh.setdefault(host.number, []).append(asked)
                elif decode(known.x) == operation.x:
                    work.replies[work.place] = Forecast(known.id, known.seq, known.version, host.named(known.forecast))
                else:
                    work.replies[work.place] = Refused(
                        409, f"id {known.id!r} was forecast with other features: use a new id for a new row."
                    )
            except BadRow as error:
                work.replies[work.place] = Refused(422, str(error))
        found: list[tuple[Work, Event]] = []
        for several in fresh.values():
            host = several[0][0].host
            said, version = host.forecast([row for _, row, _ in several]), host.version
            for (work, _, x), p in zip(several, said, strict=True):
                if isinstance(p, BadRow):
                    work.replies[work.place] = Refused(422, str(p))
                    continue
                seq, id = batch + len(found), work.operation.id
                found.append((work, Event(seq, host.number, FORECAST, id, batch, at, x, p, version, None)))
        return found

    def _labels(self, group: list[Work], at: float, first: int, forecasts: list[Event]) -> list[tuple[Work, Due]]:
        """The new labels of a group, whose new forecasts are given; other labels are answered here."""
        found: list[tuple[Work, Due]] = []
        fresh: dict[tuple[int, str], Event] | None = None
        for work in group:
            operation, host = work.operation, work.host
            if not work.labels:
                continue
            try:
                entry = host.find(check_id(operation.id, self.limits))
                y, weight = host.class_of(operation.y), check_weight(operation.weight)
            except BadRow as error:
                work.replies[work.place] = Refused(422, str(error))
                continue
            if entry is None:
                if fresh is None:
                    fresh = {(event.model, event.id): event for event in forecasts}
                event = fresh.get((host.number, operation.id))
                entry = None if event is None else entry_of(event)
            if entry is None:
                work.replies[work.place] = Refused(404, f"there is no forecast with the id {operation.id!r}.")
            elif entry.y is None:
                found.append((work, Due(first + len(found), at, y, weight, entry)))
            elif decode(entry.y) == y and entry.weight == weight:
                assert entry.label_seq is not None
                work.replies[work.place] = Learned(entry.id, entry.label_seq, host.version, False, True)
            else:
                work.replies[work.place] = Refused(
                    409, f"id {entry.id!r} has the label {entry.y.decode()} with weight {entry.weight:g} already."
                )
        return found

    # ------------------------------------------------------------------ the log comes and goes

    def _lose(self, error: Exception) -> None:
        self.unavailable = str(error)
        self._next_attempt = time.monotonic() + RETRY_SECONDS

    @contextmanager
    def _log_at_hand(self) -> Iterator[None]:
        """For single uses of the log: a `ServiceError` if it is not available."""
        try:
            self._require_log()
            yield
        except LogUnavailable as error:
            if self.unavailable is None:
                self._lose(error)
            raise ServiceError(503, f"the log is not available ({error}).") from error

    def _require_log(self) -> None:
        if self.unavailable is not None:
            raise LogUnavailable(self.unavailable)

    def _look_after(self) -> None:
        """Return to a log that was lost; write snapshots that are due."""
        if self.unavailable is not None and time.monotonic() >= self._next_attempt:
            try:
                self.log.connect()
                if self._stale:
                    self._read_again()
                for host in self.hosts.values():
                    catch_up(self.log, host, self.seq)  # the failed commit may have succeeded
                self.seq = self.log.last_seq()
                self.unavailable = None
            except (LogUnavailable, ValueError) as error:  # ValueError: another writer has the log
                self._lose(error)
        if self.unavailable is None:
            self._save_all(changed_only=True, due_only=True)

    def _read_again(self) -> None:
        """Replace the state of every model by that of the log. Hosts stay the same objects: others hold them."""
        self.seq = self.log.last_seq()
        for row in self.log.models():
            fresh = restored(self.log, row, self.snapshots, self.seq, self.limits.ids_in_memory)
            vars(self.hosts[row.name]).update(vars(fresh))
        self._stale = False

    # ------------------------------------------------------------------ snapshots

    def save(self) -> None:
        """Write a snapshot of every model now."""
        self.call(lambda: self._save_all(changed_only=False)).result()

    def _save_all(self, changed_only: bool, due_only: bool = False) -> None:
        clock = time.monotonic()
        for host in self.hosts.values():
            labels, forecasts, saved = self._saved[host.number]
            due = host.version >= labels + self._snapshot_every or clock >= saved + self._snapshot_seconds
            same = (host.version, host.sums.forecasts) == (labels, forecasts)
            if (changed_only and same) or (due_only and not due):
                continue
            data = host.snapshot(self.seq).pack()
            self._reached("snapshot")
            try:
                self.snapshots.write(host.number, self.seq, data)
            except OSError as error:  # the log has everything
                self.unsaved = f"{type(error).__name__}: {os.strerror(error.errno or 0)}"
            self._saved[host.number] = host.version, host.sums.forecasts, clock

    unsaved: str | None = None  # why the last snapshot could not be written


BUSY = Refused(503, "the service is busy or ends: try again.")
_FUTURES = Door()


def _is_id(id: Any, limits: Limits) -> bool:
    try:
        check_id(id, limits)
    except BadRow:
        return False
    return True


def _independent(work: list[Work], at: int) -> list[Work]:
    """The next operations that may share a group: an id comes once, or as a forecast and then its label."""
    used: dict[tuple[int, Any], bool] = {}
    for i in range(at, len(work)):
        each = work[i]
        id = each.operation.id
        if id is None:
            continue
        key = each.host.number, id
        if key in used and (not each.labels or used[key]):
            return work[at:i]
        used[key] = each.labels
    return work[at:]


def _event_of(host: ModelHost, due: Due, batch: int) -> Event:
    return Event(due.seq, host.number, LABEL, due.entry.id, batch, due.at, encode(due.y), None, None, due.weight)


def required(reply: Reply) -> Forecast | Learned:
    """The reply, or a `ServiceError` if it is a refusal."""
    if isinstance(reply, Refused):
        raise ServiceError(reply.status, reply.error)
    return reply
