"""The results of a race: tables, an overall ranking and curves, as text, files and plots."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regretless.core.files.writing import replacing, write_text
from regretless.core.types import Array
from regretless.evaluate.race.games import Game, Refusal
from regretless.evaluate.race.recipes import FOLDER as RECIPES

QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Line:
    """One learner on one stream: medians over the orders. NaN where a value does not exist."""

    stream: str
    place: int
    learner: str
    log_loss: float
    error: float
    regret_low: float
    regret_high: float
    certificate: float
    bound: float
    microseconds: float  # per row
    loss: str | None  # the loss of regret, certificate and bound


class Curve(NamedTuple):
    """A score over rows: quartiles over the orders, one row each, low to high."""

    rows: Any
    quartiles: Array


@dataclass(frozen=True)
class StreamRace:
    """The race on one stream.

    Attributes
    ----------
    name, about, radius : the stream's name, description and radius.
    orders : the number of orders.
    games : for each learner, ranked as in the table, one game per order.
    refusals : the learners that did not support the stream or failed on it, with the reason.
    recipes : what `regretless run --race` needs to play a line again, as JSON; None if the rows were not read from a
        file.
    """

    name: str
    about: str
    radius: float
    orders: int
    games: dict[str, list[Game]] = field(repr=False)
    refusals: list[Refusal] = field(repr=False)
    recipes: str | None = field(default=None, repr=False)

    @staticmethod
    def of(
        name: str,
        about: str,
        radius: float,
        orders: int,
        played: Sequence[Game | Refusal],
        recipes: str | None = None,
    ) -> StreamRace:
        """Rank the learners: those with probabilities by median log loss, then the others by median error."""
        out = {each.learner: each for each in played if isinstance(each, Refusal)}
        games: dict[str, list[Game]] = {}
        for each in played:
            if isinstance(each, Game) and each.learner not in out:
                games.setdefault(each.learner, []).append(each)
        if not games:
            raise ValueError(f"no learner can play {name}: {refused(next(iter(out.values())))}. Choose other learners.")
        ranked = sorted(games.values(), key=_worth)
        by_name = {each[0].learner: each for each in ranked}
        return StreamRace(name, about, radius, orders, by_name, [*out.values()], recipes)

    def lines(self) -> list[Line]:
        """The table, best first."""
        return [_line(self.name, place + 1, games) for place, games in enumerate(self.games.values())]

    def curve(self, learner: str, score: str = "log_loss") -> Curve | None:
        """`log_loss` or `error`, the mean over the rows so far; None if the learner has no probabilities."""
        games = self.games[learner]
        values = [getattr(game, score) for game in games]
        return None if values[0] is None else Curve(games[0].rows, np.quantile(np.array(values), QUARTILES, axis=0))

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame."""
        return _frame(self.lines())

    def curves_csv(self) -> str:
        """Quartiles of both scores over rows, for every learner."""
        lines: list[list[Any]] = [["learner", "score", "rows", "low_quartile", "median", "high_quartile"]]
        for learner in self.games:
            for score in ("log_loss", "error"):
                if curve := self.curve(learner, score):
                    for rows, quartiles in zip(curve.rows, curve.quartiles.T, strict=True):
                        lines.append([learner, score, int(rows), *(float(q) for q in quartiles)])
        return _csv(lines)

    def plot(self) -> Any:
        """Plot mean log loss and error rate over rows, medians and quartiles over the orders. Returns the axes."""
        from regretless.evaluate.plots import plot_race

        return plot_race(self)


@dataclass(frozen=True)
class Race:
    """The race on every stream: `streams`, one `StreamRace` each."""

    streams: list[StreamRace]

    def lines(self) -> list[Line]:
        """The lines of all tables."""
        return [line for stream in self.streams for line in stream.lines()]

    def overall(self) -> list[tuple[str, float]]:
        """Mean rank over the streams, best first, among the learners that played all streams."""
        everywhere = set.intersection(*(set(stream.games) for stream in self.streams))
        places = [[name for name in stream.games if name in everywhere] for stream in self.streams]
        means = {name: float(np.mean([1 + each.index(name) for each in places])) for name in places[0]}
        return sorted(means.items(), key=lambda item: item[1])

    def to_frame(self) -> Any:
        """All tables as one pandas DataFrame."""
        return _frame(self.lines())

    def to_csv(self) -> str:
        """All tables as CSV."""
        lines = [asdict(line) for line in self.lines()]
        return _csv([list(lines[0]), *([_blank(v) for v in line.values()] for line in lines)])

    def to_json(self) -> str:
        """Tables, learners that did not play, and the overall ranking, as JSON."""
        document: dict[str, Any] = {
            "streams": [
                {
                    "name": stream.name,
                    "about": stream.about,
                    "radius": stream.radius,
                    "orders": stream.orders,
                    "learners": [{k: _plain(v) for k, v in asdict(line).items()} for line in stream.lines()],
                    "not_played": [{"learner": each.learner, "why": each.why} for each in stream.refusals],
                }
                for stream in self.streams
            ],
            "overall": [{"learner": name, "mean_place": place} for name, place in self.overall()],
        }
        return json.dumps(document, indent=1) + "\n"

    def to_markdown(self) -> str:
        """One table per stream, the overall ranking, and the meaning of the columns, as Markdown."""
        parts = ["# Leaderboard"]
        for stream in self.streams:
            parts += [f"## {stream.name}", _sentence(about(stream)), markdown(HEADINGS, cells(stream))]
            parts += [f"- {_sentence(refused(each))}" for each in stream.refusals]
        if len(self.streams) > 1:
            body = [[name, f"{place:.2f}"] for name, place in self.overall()]
            parts += ["## Overall", OVERALL, markdown(["learner", "mean place"], body)]
        return "\n\n".join([*parts, NOTE]) + "\n"

    def plot(self) -> Any:
        """Plot the first stream; `streams[i].plot()` plots another. Returns the axes."""
        return self.streams[0].plot()

    def save(self, folder: str | Path) -> list[Path]:
        """Write leaderboard.md, .json and .csv, and a plot, curves and recipes per stream. Returns the plots' paths."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / "leaderboard.md", self.to_markdown())
        write_text(folder / "leaderboard.json", self.to_json())
        write_text(folder / "leaderboard.csv", self.to_csv())
        for old in (folder / RECIPES).glob("*.json"):  # of an earlier race
            old.unlink()
        pictures = []
        for stream in self.streams:
            write_text(folder / f"{stream.name}.csv", stream.curves_csv())
            if stream.recipes is not None:
                (folder / RECIPES).mkdir(exist_ok=True)
                write_text(folder / RECIPES / f"{stream.name}.json", stream.recipes)
            pictures.append(folder / f"{stream.name}.png")
            with replacing(pictures[-1]) as file:
                stream.plot()[0].figure.savefig(file, format="png", dpi=150)
        return pictures


# ---------------------------------------------------------------------- lines


def _worth(games: list[Game]) -> tuple[bool, float, float]:
    line = _line("", 0, games)
    nothing = math.isnan(line.log_loss)
    return nothing, 0.0 if nothing else line.log_loss, line.error


def _line(stream: str, place: int, games: list[Game]) -> Line:
    def median(values: Sequence[float]) -> float:
        return float(np.median(values))

    return Line(
        stream=stream,
        place=place,
        learner=games[0].learner,
        log_loss=median([math.nan if game.log_loss is None else game.log_loss[-1] for game in games]),
        error=median([game.error[-1] for game in games]),
        regret_low=median([game.regret[0] for game in games]),
        regret_high=median([game.regret[1] for game in games]),
        certificate=median([game.certificate for game in games]),
        bound=median([game.bound for game in games]),
        microseconds=median([game.microseconds for game in games]),
        loss=games[0].loss,
    )


# ---------------------------------------------------------------------- text

HEADINGS = ["", "learner", "log loss", "error", "regret", "certificate", "bound", "µs/row"]
OVERALL = "Mean place among the learners that played every stream."
NOTE = (
    "All figures are medians over the orders (for the regret interval, medians of both ends). Log loss and error rate "
    "are means over all rows; every row is forecast before its label is used. Regret: total loss minus that of the "
    "best fixed model in hindsight, in the learner's own loss and set (if it has no set, a ball of the stream's "
    "radius). Certificate: the upper bound on the regret that the learner computed on these rows. Bound: the upper "
    "bound of its theorem. A dash means that there is none. The learner's own loss is the log loss if one is shown; "
    "otherwise it is the hinge loss (Perceptron: mistakes, compared with the hinge loss), and for Vovk-Azoury-Warmuth "
    "the squared loss of targets -1 and +1."
)


def cells(stream: StreamRace) -> list[list[str]]:
    """The cells of the table as text."""
    return [
        [
            str(line.place),
            line.learner,
            _number(line.log_loss, ".4f"),
            f"{line.error:.1%}",
            _interval(line.regret_low, line.regret_high),
            _number(line.certificate),
            _number(line.bound),
            f"{line.microseconds:.1f}",
        ]
        for line in stream.lines()
    ]


def about(stream: StreamRace) -> str:
    """A description of the stream in one line."""
    orders = "1 order" if stream.orders == 1 else f"{stream.orders} orders"
    return f"{stream.about}; radius {stream.radius:.4g}; {orders}"


def markdown(headings: list[str], body: list[list[str]]) -> str:
    """A Markdown table; the learner column is left-aligned."""
    left = headings.index("learner")
    widths = [max(len(heading), 3, *(len(row[i]) for row in body)) for i, heading in enumerate(headings)]

    def row(values: Sequence[str]) -> str:
        padded = [v.ljust(w) if i == left else v.rjust(w) for i, (v, w) in enumerate(zip(values, widths, strict=True))]
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * w if i == left else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return "\n".join([row(headings), row(rule), *map(row, body)])


def _number(value: float, form: str = "") -> str:
    if math.isnan(value):
        return "-"
    return f"{value:{form}}" if form else f"{value:.1f}" if abs(value) < 1e6 else f"{value:.1e}"


def _interval(low: float, high: float) -> str:
    """One number if both ends round to the same."""
    ends = _number(low), _number(high)
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def refused(refusal: Refusal) -> str:
    """A learner that did not play, and the reason, in one line."""
    return f"{refusal.learner} did not play: {' '.join(refusal.why.split()).rstrip('.')}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


# ---------------------------------------------------------------------- formats


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _blank(value: Any) -> Any:
    return "" if _plain(value) is None else value


def _csv(lines: list[list[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


def _frame(lines: list[Line]) -> Any:
    import pandas as pd

    return pd.DataFrame([asdict(line) for line in lines])
