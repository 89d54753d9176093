"""Tables in chunks to blocks of rows: kinds are inferred once, every value is checked, bad rows reported in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from regretless.streams.kinds import KINDS, WORDS, Bad, type_of
from regretless.streams.ledger import Ledger
from regretless.streams.types import BadLine, Block

MOST_COMPARED = 1000  # names searched for a close match


class Chunk(NamedTuple):
    """Consecutive rows of a table, as stored in the file."""

    columns: dict[str, Any]
    lines: np.ndarray[Any, Any]  # the line on which each row begins
    consumed: int  # lines read so far
    text: Callable[[int], str]  # the text of a row, for messages
    broken: list[BadLine]  # lines that are not rows
    sampled: bool  # whether the sample ends with these rows or earlier


class Table(ABC):
    """A file of rows with named columns."""

    unit = "line"
    names: list[str] | None = None  # None if the file has no header
    wanted: Collection[str] | None = None  # the columns in use, once known
    strict = True  # whether a row with other columns is bad

    @abstractmethod
    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Iterate over the rows, at most `rows` at a time."""

    def settle(self, wanted: Collection[str], strict: bool) -> None:
        """Set the columns in use, after the sample was read."""
        self.wanted, self.strict = wanted, strict

    @abstractmethod
    def guess(self, parts: list[Any]) -> str:
        """The kind of a column, from its values in the sample."""

    @abstractmethod
    def guess_label(self, parts: list[Any]) -> str:
        """The kind of the labels, from their values in the sample."""

    @abstractmethod
    def convert(self, part: Any, kind: str) -> tuple[Any, Bad]:
        """Part of a column as values of its kind, null if missing, and a mask of the values that do not fit."""

    @abstractmethod
    def shown(self, part: Any, i: int) -> str:
        """A value as written in the file."""


class Request(NamedTuple):
    """What to read of a table."""

    target: str | None
    weight: str | None
    declared: Mapping[str, str]  # kinds of columns by name; "drop" leaves a column out, "id" keeps it aside
    infers: bool  # whether other columns are used too, with inferred kinds


class Plan(NamedTuple):
    """The columns in use, each with its kind."""

    features: dict[str, str]  # in the order of the file
    target: tuple[str, str] | None
    weight: tuple[str, str] | None
    ids: list[str]


def table_blocks(
    table: Table, request: Request, rows: int, ledger: Ledger, settle: Callable[[Plan], None]
) -> Iterator[Block]:
    """Iterate over the blocks of a table. `settle` is called with the plan before the first block."""
    chunks = table.chunks(rows)
    sample: list[Chunk] = []
    if request.infers or not (request.target is None or request.target in request.declared):  # some kind is inferred
        while (not sample or not sample[-1].sampled) and (chunk := next(chunks, None)) is not None:
            sample.append(chunk)
    plan = _plan(table, sample, request)
    settle(plan)
    others = [name for name in (request.target, request.weight) if name is not None]
    dropped = [name for name, kind in request.declared.items() if kind == "drop"]
    table.settle({*plan.features, *plan.ids, *others, *dropped}, request.infers)
    first = 0
    for chunk in chain(sample, chunks):
        block = _convert(table, chunk, plan, ledger, first)
        if block.X.num_rows:
            yield block
            first += block.X.num_rows


def _plan(table: Table, sample: list[Chunk], request: Request) -> Plan:
    target, weight, declared, infers = request
    names = table.names
    if names is None and infers:
        names = list(dict.fromkeys(chain(*(chunk.columns for chunk in sample))))
        if not names:
            raise ValueError(_no_row(sample))
    elif names is None:
        names = [name for name in (*declared, target, weight) if name is not None]
    _check_names(table, names, request)

    def parts(name: str) -> list[Any]:
        return [chunk.columns[name] for chunk in sample if name in chunk.columns]

    def kind_of(name: str) -> str:
        try:
            return declared.get(name) or table.guess(parts(name))
        except ValueError as error:
            raise ValueError(f"column {name!r}: {error}") from None

    others = {target, weight, *(name for name, kind in declared.items() if kind in ("drop", "id"))}
    features = {name: kind_of(name) for name in (names if infers else declared) if name not in others}
    if not features:
        raise ValueError(f"no feature columns left: the file has {_listed(names)}.")
    label = None if target is None else declared.get(target) or table.guess_label(parts(target))
    weigh = None if weight is None else "comma" if kind_of(weight) == "comma" else "number"
    return Plan(
        features,
        None if target is None else (target, "label" if label == "category" else str(label)),
        None if weight is None else (weight, str(weigh)),
        [name for name, kind in declared.items() if kind == "id"],
    )


def _no_row(sample: list[Chunk]) -> str:
    """Why the first lines have no row."""
    broken = next((bad for chunk in sample for bad in chunk.broken), None)
    if broken is None:
        return "it has no rows."
    return f"none of its first lines is a row. Line {broken.line}: {broken.why}"


def _check_names(table: Table, names: list[str], request: Request) -> None:
    target, weight, declared, infers = request
    for name, what in ((target, "target"), (weight, "weight")):
        if name is not None and name not in names:
            raise ValueError(f"no column {name!r} for the {what}: {_closest(name, names)}")
        if declared.get(name or "") in ("drop", "id"):
            raise ValueError(f"column {name!r} is the {what}: it cannot also be {declared[name or '']!r}.")
    for name, kind in declared.items():
        if name not in names and (infers or table.names is not None):
            raise ValueError(f"no column {name!r}: {_closest(name, names)}")
        if kind not in (*KINDS, "drop", "id") and not (name == target and kind == "whole"):
            raise ValueError(f"columns: {name!r} has kind {kind!r}; choose one of {', '.join(KINDS)}.")


def _closest(name: str, names: list[str]) -> str:
    near = get_close_matches(name, [each for each in names[:MOST_COMPARED] if len(each) < 100], n=1, cutoff=0.5)
    return f"the columns are {_listed(names)}." + (f" Did you mean {near[0]!r}?" if near else "")


def _listed(names: list[str]) -> str:
    return ", ".join(repr(each[:100]) for each in names[:50]) + (", ..." if len(names) > 50 else "")


def _convert(table: Table, chunk: Chunk, plan: Plan, ledger: Ledger, first: int) -> Block:
    import pyarrow as pa
    import pyarrow.compute as pc

    n = len(chunk.lines)
    why: dict[int, str] = {}  # bad row -> first problem

    def column(name: str, kind: str) -> Any:
        if name not in chunk.columns:
            return pa.nulls(n, type_of(kind))
        part = chunk.columns[name]
        values, bad = table.convert(part, kind)
        for i in np.flatnonzero(bad).tolist():
            why.setdefault(i, _misfit(name, kind, table.shown(part, i)))
        return values

    y = weights = None
    if plan.target is not None:
        y = column(*plan.target)
        empty = y.is_null() if plan.target[1] != "label" else pc.fill_null(pc.equal(y, ""), True)
        for i in np.flatnonzero(empty.to_numpy(zero_copy_only=False)).tolist():
            why.setdefault(i, f"column {plan.target[0]!r}, the target, is empty.")
        if plan.target[1] == "label":  # NumPy drops NUL characters at the end of text
            ending = pc.fill_null(pc.ends_with(y, "\0"), False)
            for i in np.flatnonzero(ending.to_numpy(zero_copy_only=False)).tolist():
                why.setdefault(i, f"column {plan.target[0]!r}, the target, ends with a NUL character.")
    if plan.weight is not None:
        weights = column(*plan.weight).to_numpy(zero_copy_only=False)
        for i in np.flatnonzero(~(weights >= 0)).tolist():
            why.setdefault(i, f"column {plan.weight[0]!r}, the weight, is {weights[i]}: weights must be numbers >= 0.")
    X = pa.table({name: column(name, kind) for name, kind in plan.features.items()})
    ids = pa.table({name: column(name, "id") for name in plan.ids}) if plan.ids else None
    bad = [BadLine(int(chunk.lines[i]), chunk.text(i), reason) for i, reason in why.items()]
    for each in sorted(bad + chunk.broken):
        ledger.add(each)
    places = chunk.lines
    good = np.ones(n, dtype=bool)
    good[list(why)] = False
    if not good.all():
        X = X.filter(pa.array(good))
        y = None if y is None else y.filter(pa.array(good))
        weights = None if weights is None else weights[good]
        ids = None if ids is None else ids.filter(pa.array(good))
        places = places[good]
    labels = None if y is None or plan.target is None else _labels(y, plan.target[1])
    return Block(X, labels, weights, first, chunk.consumed, places, ids)


def _misfit(name: str, kind: str, value: str) -> str:
    if kind in ("number", "comma", "whole") and value.strip(" +-").lower() in ("inf", "infinity"):
        return f"column {name!r} has {value}, which is not finite."
    return (
        f"column {name!r} has {value!r}, which is {WORDS[kind]}, unlike most of the column (if it holds categories, "
        f"pass declare={{{name!r}: 'category'}})."
    )


def _labels(y: Any, kind: str) -> Any:
    """Labels as a NumPy array of text, integers, floats or booleans."""
    if kind == "label":
        return np.array(y.to_pylist(), dtype=np.str_)
    values = y.to_numpy(zero_copy_only=False)
    return values.astype({"whole": np.int64, "truth": np.bool_}.get(kind, np.float64))
