"""The tables of the log. `migrations/` creates them; schema versions are those of Alembic."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

FORECAST, LABEL = 0, 1  # kinds of events

tables = sa.MetaData()

models = sa.Table(
    "models",
    tables,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("recipe", sa.Text, nullable=False),  # as text, for people and for what-if replays
    sa.Column("features", sa.Text, nullable=False),  # JSON: a number of columns, or their names
    sa.Column("classes", sa.Text, nullable=False),  # JSON: a list
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("start_seq", sa.BigInteger, nullable=False),  # the event up to which `start` has learned
    sa.Column("start", sa.LargeBinary, nullable=False),  # the model at that event: see snapshots.py
)

events = sa.Table(
    "events",
    tables,
    # SQLite numbers rows by an INTEGER primary key without an index of its own
    sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=False),
    sa.Column("model", sa.Integer, nullable=False),
    sa.Column("kind", sa.SmallInteger, nullable=False),  # FORECAST or LABEL
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("batch", sa.BigInteger, nullable=False),  # the first event of the same commit
    sa.Column("at", sa.Float, nullable=False),  # seconds since 1970
    sa.Column("body", sa.LargeBinary, nullable=False),  # JSON: the row, or the label
    sa.Column("forecast", sa.LargeBinary),  # of a FORECAST: probabilities as float64, little-endian
    sa.Column("version", sa.BigInteger),  # of a FORECAST: the labels that the model had learned
    sa.Column("weight", sa.Float),  # of a LABEL
    sa.Index("event_of_id", "model", "id", "kind", unique=True),  # an id is forecast once and labelled once
)

parked = sa.Table(  # labels that came before their forecasts; they are no events, and nothing was learned from them
    "parked",
    tables,
    sa.Column("model", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),  # JSON: the label
    sa.Column("weight", sa.Float),
)

COLUMNS = tuple(column.name for column in events.columns)


def as_event(row: Any) -> dict[str, Any]:
    """A row of `events` as a dictionary of plain values."""
    return dict(zip(COLUMNS, row, strict=True))
