"""race: every learner on several orders of every stream."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend

from regretless.evaluate.race.entrants import field_of
from regretless.evaluate.race.games import Source, order_of, play_game
from regretless.evaluate.race.kept import Kept
from regretless.evaluate.race.plan import ORDERS, Plan, plan, timed
from regretless.evaluate.race.recipes import recipes_of
from regretless.evaluate.race.results import Race, StreamRace
from regretless.evaluate.race.rivals import rivals_of
from regretless.streams import NAMES, Dataset, Stream
from regretless.streams.whole import read_whole

STREAMS = ("breast-cancer", "wine")  # two and three classes


def race(
    streams: str | Source | Path | Iterable[str | Source | Path] = STREAMS,
    learners: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    orders: int | None = None,
    jobs: int = 1,
    against: Sequence[str] = (),
    rows: int | None = None,
    seed: int = 0,
    order: str = "auto",
    budget: float | None = None,
    target: str = "label",
    format: str | None = None,
    read: Mapping[str, Any] | None = None,
    kept: Kept | None = None,
    planned: Callable[[Plan], None] = lambda plan: None,
    told: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Race:
    """Run learners on streams, each in several random orders or in its own order, and rank them.

    Parameters
    ----------
    streams : one or several names of `regretless.streams.NAMES`, paths of files, `Stream`s or `Dataset`s.
    learners : strings ("AIOLI", "FOLKLORE(radius=5)"), learners, or a dictionary of names and these. None means all
        that support the stream (`entrants`). A bare name uses the stream's radius.
    orders : the number of random orders of the rows (of draws, for synthetic streams), with seeds seed, seed + 1, ...
        None means 10, or fewer if the budget requires it.
    jobs : the number of processes. Results do not depend on it, except for the time per row.
    against : learners of other libraries, if installed: any of "river", "vw" and "sklearn".
    rows : the number of rows of each order (default: all, or fewer if the budget requires it; 1000 for synthetic
        streams).
    seed : the first seed.
    order : "random", or "file": one pass in the order of the file. "auto" means "file" where a file has a column of
        dates or times, because such rows drift, and "random" elsewhere.
    budget : the seconds that the race may take. A few rows are played first to measure each learner, and orders and
        rows are then chosen so that the race ends in about this time. None means no limit.
    target, format, read : for files: the label column, the file format, and other options of `regretless.streams.read`.
    kept : a `Kept`, to go on after an interruption.
    planned : a callback, called with the `Plan`.
    told : a callback for progress, called with a description of the game, the number of games done, and the total.

    Returns
    -------
    A `Race`: `to_frame()`, `to_markdown()`, `to_json()`, `to_csv()`, `plot()`, `save(folder)`.

    Examples
    --------
    >>> from regretless.evaluate.race import race
    >>> result = race("iris", ["FOLKLORE", "OGD", "Perceptron"], orders=2, rows=100)
    >>> [line.learner for line in result.lines()]
    ['FOLKLORE', 'OGD', 'Perceptron']
    """
    for name, value in (("orders", orders), ("rows", rows), ("budget", budget)):
        if value is not None and not value >= 1:
            raise ValueError(f"{name}={value} must be at least 1.")
    if order not in ("auto", "random", "file"):
        raise ValueError(f'order={order!r} is not supported: choose "auto", "random" or "file".')
    kept = kept or Kept(None)
    rivals = tuple(against)
    fields: list[Field] = []
    for each in _several(streams):
        found = _field(source_of(each, target, format, read), learners, rivals, order, seed)
        fields.append(replace(found, name=_unused(found.name, [field.name for field in fields])))
    wanted = orders or (1 if all(each.in_file_order for each in fields) else ORDERS)
    if kept.plan is None:
        lengths = [min(each.length, rows or each.length) for each in fields]
        measure = partial(_measure, fields, learners, rivals)
        chosen = plan(lengths, wanted, jobs, budget, measure, (rows is not None, orders is not None))
    else:
        chosen = Plan(*kept.plan)
    kept.begin(_identity(fields, learners, rivals, rows, orders, seed, order), chosen.to_json())
    planned(chosen)
    return _played(fields, learners, rivals, chosen, jobs, kept, told)


@dataclass(frozen=True)
class Field:
    """A stream of the race and who plays on it."""

    source: Source
    name: str
    names: list[str]  # of the learners
    length: int
    seed: int | None  # of the first order; None: the order of the file

    @property
    def in_file_order(self) -> bool:
        """Whether there is one order only."""
        return self.seed is None

    def seed_of(self, order: int) -> int | None:
        """The seed of an order."""
        return None if self.seed is None else self.seed + order


def _field(source: Source, learners: Any, against: tuple[str, ...], order: str, seed: int) -> Field:
    dated = isinstance(source, Dataset) and source.preparation is not None and source.preparation.has_dates
    own_order = order == "file" or (order == "auto" and dated)
    start = None if own_order else seed
    first = order_of(source, None, start)
    names = [*field_of(first, learners), *(rival.name for rival in rivals_of(against))]
    return Field(source, first.name, names, len(first.y), start)


def _measure(fields: list[Field], learners: Any, against: tuple[str, ...], stream: int, rows: int) -> float:
    field = fields[stream]
    seed = field.seed_of(rows)  # other rows than those measured before, whose comparators are known
    return sum(timed(partial(play_game, field.source, rows, seed, learners, against, name)) for name in field.names)


def _identity(fields: list[Field], learners: Any, against: tuple[str, ...], *options: Any) -> dict[str, Any]:
    """What makes two races the same."""
    data = {each.name: _digest(order_of(each.source, None, each.seed)) for each in fields}
    names = ("number of rows", "number of orders", "seed", "order")
    players = [each if isinstance(each, str) else repr(each) for each in learners] if learners else None
    return {"data": data, "learners": players, "rivals": against, **dict(zip(names, options, strict=True))}


def _digest(stream: Stream) -> str:
    content = np.ascontiguousarray(stream.X).tobytes() + repr(np.asarray(stream.y).tolist()).encode()
    return hashlib.sha256(content).hexdigest()


def _played(
    fields: list[Field],
    learners: Any,
    against: tuple[str, ...],
    chosen: Plan,
    jobs: int,
    kept: Kept,
    told: Callable[[str, int, int], None],
) -> Race:
    """Play the games that are not kept already."""
    games = [
        [(order, name) for order in range(1 if field.in_file_order else chosen.orders) for name in field.names]
        for field in fields
    ]
    total, done, results = sum(map(len, games)), len(kept.games), []
    for field, rows, pairs in zip(fields, chosen.rows, games, strict=True):
        missing = [(order, name) for order, name in pairs if (field.name, order, name) not in kept.games]
        tasks = (
            joblib.delayed(play_game)(field.source, rows, field.seed_of(order), learners, against, name)
            for order, name in missing
        )
        for (order, name), game in zip(missing, _side_by_side(jobs, tasks), strict=True):
            kept.add((field.name, order, name), game)
            done += 1
            told(f"{field.name}, order {order + 1}: {name}", done, total)
        first = order_of(field.source, rows, field.seed)
        played = [kept.games[(field.name, order, name)] for order, name in pairs]
        about = first.about.split(", order by seed")[0]
        orders = 1 if field.in_file_order else chosen.orders
        recipes = recipes_of(first, field.source, field_of(first, learners))
        results.append(StreamRace.of(field.name, about, first.radius, orders, played, recipes))
    return Race(results)


def _side_by_side(jobs: int, tasks: Iterable[Any]) -> Iterable[Any]:
    """The results of tasks in their order, as they come; at the end on engines that return them together, as Ray."""
    engine, _ = get_active_backend()
    found: Iterable[Any] = joblib.Parallel(jobs, return_as="generator" if engine.supports_return_generator else "list")(
        tasks
    )
    return found


def source_of(
    stream: Any, target: str = "label", format: str | None = None, options: Mapping[str, Any] | None = None
) -> Source:
    """The source for a name, a path or a stream; a file is read as a whole."""
    if not isinstance(stream, str | Path):
        found: Source = stream
        return found
    if stream in NAMES:
        return str(stream)
    if not Path(stream).is_file():
        raise ValueError(f"{str(stream)!r} is neither a stream ({', '.join(NAMES)}) nor a file.")
    return read_whole(stream, target, format, **(options or {}))


def _several(streams: Any) -> list[Any]:
    alone = isinstance(streams, str | Path) or hasattr(streams, "_fields")
    return [streams] if alone else list(streams)


def _unused(name: str, taken: list[str]) -> str:
    """A unique name for every stream, used in file names."""
    names = (name, *(f"{name}-{i}" for i in range(2, len(taken) + 3)))
    return next(each for each in names if each not in taken and each != "leaderboard")
