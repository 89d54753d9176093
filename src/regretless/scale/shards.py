"""One learner over data in shards: each is learned where it lies, and the states are merged on the driver.

An engine brings each shard's rows to `learn_part`, with the state that all shards start from, and returns the new
states as bytes, which are small. With `sync_every` there are rounds of that many rows per shard, and every round starts
from the merged state of the last one, as in `regretless.fit_sharded`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from regretless.core.errors import NoCertificate
from regretless.core.files.persist import from_bytes
from regretless.core.merging import RULES, require_rule, require_sums
from regretless.core.numbers.tally import ROWS
from regretless.core.rows import validate
from regretless.learners.wrappers.sharding import join

Round = Callable[[bytes, int, int | None], Sequence[bytes]]
"""Learn rows `first` to `stop` of every shard, from the given state; returns the states of the shards with rows."""


def learn_part(start: bytes, X: Any, y: Any) -> bytes:
    """The state after these rows, as bytes."""
    return from_bytes(start).partial_fit(X, y).to_bytes()


def fit_rounds(start: Any, learn: Round, sync_every: int | None, rule: str) -> Any:
    """The merged learner of all shards, and one printed line with its certificate."""
    require_sums(start)
    require_rule(rule, *RULES)
    every = None if sync_every is None else validate.whole("sync_every", sync_every, 1)
    game, first, most = start, 0, 0
    alone: list[float] = []
    while True:
        parts = [from_bytes(data) for data in learn(game.to_bytes(), first, None if every is None else first + every)]
        if parts:
            join(game, [part.state_ for part in parts], rule)
        if first == 0:
            most, alone = len(parts), [certificate for part in parts if (certificate := _certificate(part)) is not None]
        if not parts and first == 0:
            raise ValueError("there are no rows.")
        if every is None or not parts:
            break
        first += every
    print(_price(game, most, every, alone))
    return game


def _price(game: Any, shards: int, every: int | None, alone: Sequence[float]) -> str:
    rows, certificate = int(game.state_.tally[ROWS]), _certificate(game)
    text = f"{rows:,} rows in {shards} shards" + ("" if every is None else f", synchronised every {every:,} rows")
    if certificate is None:
        return f"{text}; no certificate"
    text += f": regret <= {certificate:,.1f}, {certificate / max(rows, 1):.2g} per row"
    if every is None and shards > 1 and alone:
        text += f" (of a single shard, for its own rows: {min(alone):,.1f} to {max(alone):,.1f})"
    return text


def _certificate(learner: Any) -> float | None:
    try:
        return float(learner.regret_certificate())
    except NoCertificate:
        return None
