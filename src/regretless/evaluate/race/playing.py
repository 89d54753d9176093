"""race: every learner on several orders of every stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
from joblib.parallel import get_active_backend

from regretless.evaluate.race.entrants import field_of
from regretless.evaluate.race.games import Source, order_of, play_game
from regretless.evaluate.race.results import Race, StreamRace
from regretless.evaluate.race.rivals import rivals_of
from regretless.streams import NAMES, Stream
from regretless.streams.whole import read_whole

STREAMS = ("breast-cancer", "wine")  # two and three classes
ORDERS = 10


def race(
    streams: str | Source | Path | Iterable[str | Source | Path] = STREAMS,
    learners: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    orders: int = ORDERS,
    jobs: int = 1,
    against: Sequence[str] = (),
    rows: int | None = None,
    seed: int = 0,
    target: str = "label",
    format: str | None = None,
    told: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Race:
    """Run learners on streams, each in several random orders, and rank them.

    Parameters
    ----------
    streams : one or several names of `regretless.streams.NAMES`, paths of files, `Stream`s or `Dataset`s.
    learners : strings ("AIOLI", "FOLKLORE(radius=5)"), learners, or a dictionary of names and these. None means all
        that support the stream (`entrants`). A bare name uses the stream's radius.
    orders : the number of random orders of the rows (of draws, for synthetic streams), with seeds seed, seed + 1, ...
    jobs : the number of processes. Results do not depend on it, except for the time per row.
    against : learners of other libraries, if installed: any of "river", "vw" and "sklearn".
    rows : the number of rows of each order (default: all; 1000 for synthetic streams).
    seed : the first seed.
    target, format : for files: the label column, and the file format (`regretless.streams.read`).
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
    for name, value in (("orders", orders), ("rows", 1 if rows is None else rows)):
        if value < 1:
            raise ValueError(f"{name}={value} must be at least 1.")
    rivals = rivals_of(against)
    sources = [source_of(each, target, format) for each in _several(streams)]
    plans: list[tuple[Source, Stream, list[tuple[int, str]]]] = []
    for source in sources:
        first = order_of(source, rows, seed)
        names = [*field_of(first, learners), *(rival.name for rival in rivals)]
        called = _unused(first.name, [plan[1].name for plan in plans])
        plans.append(
            (source, first._replace(name=called), [(order, name) for order in range(orders) for name in names])
        )
    total = sum(len(games) for _, _, games in plans)
    results, done = [], 0
    for source, first, games in plans:
        tasks = (
            joblib.delayed(play_game)(source, rows, seed + order, learners, tuple(against), name)
            for order, name in games
        )
        played = []
        for (order, name), game in zip(games, _side_by_side(jobs, tasks), strict=True):
            played.append(game)
            done += 1
            told(f"{first.name}, order {order + 1}: {name}", done, total)
        about = first.about.split(", order by seed")[0]
        results.append(StreamRace.of(first.name, about, first.radius, orders, played))
    return Race(results)


def _side_by_side(jobs: int, tasks: Iterable[Any]) -> Iterable[Any]:
    """The results of tasks in their order, as they come; at the end on engines that return them together, as Ray."""
    engine, _ = get_active_backend()
    found: Iterable[Any] = joblib.Parallel(jobs, return_as="generator" if engine.supports_return_generator else "list")(
        tasks
    )
    return found


def source_of(stream: Any, target: str = "label", format: str | None = None) -> Source:
    """The source for a name, a path or a stream; a file is read as a whole."""
    if not isinstance(stream, str | Path):
        found: Source = stream
        return found
    if stream in NAMES:
        return str(stream)
    if not Path(stream).is_file():
        raise ValueError(f"{str(stream)!r} is neither a stream ({', '.join(NAMES)}) nor a file.")
    return read_whole(stream, target, format)


def _several(streams: Any) -> list[Any]:
    alone = isinstance(streams, str | Path) or hasattr(streams, "_fields")
    return [streams] if alone else list(streams)


def _unused(name: str, taken: list[str]) -> str:
    """A unique name for every stream, used in file names."""
    names = (name, *(f"{name}-{i}" for i in range(2, len(taken) + 3)))
    return next(each for each in names if each not in taken and each != "leaderboard")
