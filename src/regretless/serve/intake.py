"""Intake: forecasts and labels from a stream of messages, into a service.

A message is a JSON object like a line of `POST /bulk`: a row to forecast, `{"id": "a1", "x": {...}}`, or a label,
`{"id": "a1", "y": "yes"}`. An id is needed: a message may be delivered more than once, and by its id the service knows
that it has seen it. `"model": NAME` chooses one of several models.

A label that comes before its forecast is parked in the log's database, so that its message can be acknowledged. When
the forecast comes, the label is learned; if none comes in time, the label expires and is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from regretless.serve.host import ModelHost, decode, encode
from regretless.serve.log import Parked, now
from regretless.serve.replies import Forecast, Label, Learned, Operation, Predict, Refused, Reply, ServiceError
from regretless.serve.service import Service

PARK_SECONDS = 3600.0
MOST_PARKED = 100_000
FIRST_WAIT, LONGEST_WAIT = 0.05, 2.0  # seconds between two attempts while the log is not available


class Message(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A row x to forecast, or the label y of a forecast."""

    id: str
    x: Any = msgspec.UNSET
    y: Any = msgspec.UNSET
    weight: float | None = None
    model: str | None = None

    def operation(self) -> Operation:
        """What the message asks for."""
        if self.x is not msgspec.UNSET and self.y is msgspec.UNSET and self.weight is None:
            return Predict(self.x, self.id)
        if self.y is not msgspec.UNSET and self.x is msgspec.UNSET:
            return Label(self.id, self.y, self.weight)
        raise ValueError("a message has an id and x, or an id, y and perhaps a weight.")


read_message = msgspec.json.Decoder(Message).decode


class Asked(NamedTuple):
    """An operation on a model."""

    host: ModelHost
    operation: Any  # a Label or a Predict


class Counts(msgspec.Struct):
    """What became of the messages, since the start."""

    forecasts: int = 0
    learned: int = 0
    repeated: int = 0
    parked: int = 0
    expired: int = 0
    refused: int = 0


class Intake:
    """Carries out messages, in order.

    Parameters
    ----------
    service : the service, with at least one model.
    model : the model of messages that name none; None means the default one.
    park_seconds : how long a label waits for its forecast.
    most_parked : labels that may wait; if there are more, the oldest expire.
    """

    def __init__(
        self,
        service: Service,
        model: str | None = None,
        *,
        park_seconds: float = PARK_SECONDS,
        most_parked: int = MOST_PARKED,
    ) -> None:
        self.service, self.model = service, model
        self.park_seconds, self.most_parked = park_seconds, most_parked
        self.counts = Counts()
        self._parked: dict[tuple[int, str], Parked] = {}  # oldest first, as in the log
        self._turn = asyncio.Lock()
        service.messages = lambda: msgspec.structs.asdict(self.counts) | {"waiting": self.waiting}

    async def begin(self) -> None:
        """Read the parked labels of the log, and learn those whose forecasts have come meanwhile."""
        found = await self._in_log(self.service.log.parked)
        self._parked = {(label.model, label.id): label for label in found}
        await self._learn_parked([*self._parked])

    async def take(self, bodies: Sequence[bytes]) -> list[bytes]:
        """Carry out messages, and return the replies to publish: forecasts and refusals.

        When it returns, everything is committed, and the messages may be acknowledged. While the log is not
        available, it waits.
        """
        async with self._turn:
            return await self._take(bodies)

    async def _take(self, bodies: Sequence[bytes]) -> list[bytes]:
        asked: list[Asked] = []
        said: list[bytes] = []
        for body in bodies:
            try:
                message = read_message(body)
                asked.append(Asked(self.service.host(message.model or self.model), message.operation()))
            except (ValueError, RecursionError) as error:  # ValueError: of msgspec, and of UTF-8
                said.append(self._refuse(None, Refused(422, f"a message cannot be read: {error}")))
            except ServiceError as error:
                said.append(self._refuse(message.id, Refused(error.status, str(error))))
        forecast: list[tuple[int, str]] = []
        early: list[Asked] = []
        for each, reply in zip(asked, await self._answers(asked), strict=True):
            if isinstance(reply, Forecast):
                forecast.append((each.host.number, reply.id))
                self.counts.forecasts += 1
                said.append(b'{"status":200,' + encode(reply)[1:])
            elif isinstance(reply, Learned):
                self._count(reply)
            elif reply.status == 404 and type(each.operation) is Label:
                early.append(each)
            else:
                said.append(self._refuse(each.operation.id, reply))
        if early:
            said += await self._park(early)
        if self._parked:
            await self._learn_parked([key for key in forecast if key in self._parked])
        return said

    async def expire(self) -> list[bytes]:
        """Give up the labels that have waited too long; returns the replies to publish."""
        async with self._turn:
            return await self._expire()

    async def _expire(self) -> list[bytes]:
        clock, too_many = now(), len(self._parked) - self.most_parked
        over = []
        for i, label in enumerate(self._parked.values()):
            if i >= too_many and label.at + self.park_seconds > clock:
                break
            over.append(label)
        if not over:
            return []
        await self._learn_parked([(label.model, label.id) for label in over])  # a forecast may have come by HTTP
        over = [label for label in over if (label.model, label.id) in self._parked]
        await self._forget(over)
        self.counts.expired += len(over)
        told = f"no forecast with this id came within {self.park_seconds:g} seconds."
        return [_told(label.id, Refused(404, told)) for label in over]

    # ------------------------------------------------------------------ asking

    async def _answers(self, asked: Sequence[Asked]) -> list[Reply]:
        """A reply per operation, once the log is available."""
        replies: list[Any] = [None] * len(asked)
        left, wait = [*range(len(asked))], FIRST_WAIT
        while left:
            by_host: dict[str, list[int]] = {}
            for i in left:
                by_host.setdefault(asked[i].host.name, []).append(i)
            for name, places in by_host.items():
                found = await self.service.answers([asked[i].operation for i in places], name)
                for i, reply in zip(places, found, strict=True):
                    replies[i] = reply
            left = [i for i in left if replies[i].status == 503]
            if left:
                await asyncio.sleep(wait)
                wait = min(2.0 * wait, LONGEST_WAIT)
        return replies

    async def _in_log(self, function: Any) -> Any:
        """Call a function in the writer's thread, once the log is available."""
        wait = FIRST_WAIT
        while True:
            try:
                return await self.service.read(lambda: self.service.with_log(function))
            except ServiceError as error:
                if error.status != 503:
                    raise
            await asyncio.sleep(wait)
            wait = min(2.0 * wait, LONGEST_WAIT)

    # ------------------------------------------------------------------ labels before their forecasts

    async def _park(self, early: Sequence[Asked]) -> list[bytes]:
        """Park labels; returns the replies to those that contradict a parked one."""
        said: list[bytes] = []
        new: dict[tuple[int, str], Parked] = {}
        for host, label in early:
            key = host.number, label.id
            row = Parked(*key, now(), encode(label.y), label.weight)
            known = self._parked.get(key) or new.get(key)
            if known is None:
                new[key] = row
            elif (known.body, known.weight) != (row.body, row.weight):
                said.append(
                    self._refuse(label.id, Refused(409, f"another label of the id {label.id!r} waits already."))
                )
            else:
                self.counts.repeated += 1
        if new:
            await self._in_log(lambda: self.service.log.park([*new.values()]))
            self._parked |= new
            self.counts.parked += len(new)
        return said

    async def _learn_parked(self, keys: Sequence[tuple[int, str]]) -> None:
        """Learn parked labels whose forecasts have come; others stay."""
        if not keys:
            return
        hosts = {host.number: host for host in self.service.hosts.values()}
        labels = [self._parked[key] for key in dict.fromkeys(keys)]
        asked = [Asked(hosts[each.model], Label(each.id, decode(each.body), each.weight)) for each in labels]
        done = []
        for label, reply in zip(labels, await self._answers(asked), strict=True):
            if isinstance(reply, Learned):
                self._count(reply)
            elif reply.status != 404:  # another label came by HTTP
                self.counts.refused += 1
            if reply.status != 404:
                done.append(label)
        await self._forget(done)

    async def _forget(self, labels: Sequence[Parked]) -> None:
        if labels:
            await self._in_log(lambda: self.service.log.unpark(labels))
            for label in labels:
                del self._parked[label.model, label.id]

    # ------------------------------------------------------------------ counting

    @property
    def waiting(self) -> int:
        """Labels that are parked now."""
        return len(self._parked)

    def _count(self, reply: Learned) -> None:
        self.counts.learned += reply.learned
        self.counts.repeated += reply.repeated

    def _refuse(self, id: str | None, refused: Refused) -> bytes:
        self.counts.refused += 1
        return _told(id, refused)


def _told(id: str | None, refused: Refused) -> bytes:
    return encode({"id": id, "status": refused.status, "error": refused.error})
