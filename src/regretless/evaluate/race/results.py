"""What a race leaves behind: tables, an overall ranking, curves, as text, files and pictures."""

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

from regretless.core.files import replacing, write_text
from regretless.core.types import Array
from regretless.evaluate.race.games import Game, Refusal

QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Line:
    """A learner on a stream: medians over the orders. NaN where there is nothing to say."""

    stream: str
    place: int
    learner: str
    log_loss: float
    error: float
    regret_low: float
    regret_high: float
    certificate: float
    bound: float
    microseconds: float  # a row
    loss: str | None  # what regret, certificate and bound are measured in


class Curve(NamedTuple):
    """A score over rows: quartiles over the orders, low to high, one row each."""

    rows: Any
    quartiles: Array


@dataclass(frozen=True)
class StreamRace:
    """The race on one stream.

    Attributes
    ----------
    name, about, radius : of the stream.
    orders : how many.
    games : for each learner, in the order of the table, one game an order.
    refusals : who did not play, or broke down, and why.
    """

    name: str
    about: str
    radius: float
    orders: int
    games: dict[str, list[Game]] = field(repr=False)
    refusals: list[Refusal] = field(repr=False)

    @staticmethod
    def of(name: str, about: str, radius: float, orders: int, played: Sequence[Game | Refusal]) -> StreamRace:
        """Sorted: those with probabilities by median log loss, then the others by median error."""
        out = {each.learner: each for each in played if isinstance(each, Refusal)}
        games: dict[str, list[Game]] = {}
        for each in played:
            if isinstance(each, Game) and each.learner not in out:
                games.setdefault(each.learner, []).append(each)
        if not games:
            raise ValueError(f"no learner can play {name}: {refused(next(iter(out.values())))}.")
        ranked = sorted(games.values(), key=_worth)
        return StreamRace(name, about, radius, orders, {each[0].learner: each for each in ranked}, [*out.values()])

    def lines(self) -> list[Line]:
        """The table, best first."""
        return [_line(self.name, place + 1, games) for place, games in enumerate(self.games.values())]

    def curve(self, learner: str, score: str = "log_loss") -> Curve | None:
        """`log_loss` or `error`, the mean over the rows so far; None where no probabilities are forecast."""
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
        """Axes of matplotlib: mean log loss and error rate over rows, medians and quartiles over the orders."""
        from regretless.evaluate.plots import plot_race

        return plot_race(self)


@dataclass(frozen=True)
class Race:
    """The race on every stream: `streams`, one `StreamRace` each."""

    streams: list[StreamRace]

    def lines(self) -> list[Line]:
        """All tables, one after another."""
        return [line for stream in self.streams for line in stream.lines()]

    def overall(self) -> list[tuple[str, float]]:
        """Mean place over the streams, best first, of the learners that played all of them, among themselves."""
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
        """Tables, who sat out, and the overall ranking."""
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
        """A table a stream, the overall ranking, and what the columns mean."""
        parts = ["# Leaderboard"]
        for stream in self.streams:
            parts += [f"## {stream.name}", _sentence(about(stream)), markdown(HEADINGS, cells(stream))]
            parts += [f"- {_sentence(refused(each))}" for each in stream.refusals]
        if len(self.streams) > 1:
            body = [[name, f"{place:.2f}"] for name, place in self.overall()]
            parts += ["## Overall", OVERALL, markdown(["learner", "mean place"], body)]
        return "\n\n".join([*parts, NOTE]) + "\n"

    def plot(self) -> Any:
        """The axes of the first stream's race; `streams[i].plot()` is another's."""
        return self.streams[0].plot()

    def save(self, folder: str | Path) -> list[Path]:
        """Write leaderboard.md, .json and .csv, and for each stream its picture and curves. Returns the pictures."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / "leaderboard.md", self.to_markdown())
        write_text(folder / "leaderboard.json", self.to_json())
        write_text(folder / "leaderboard.csv", self.to_csv())
        pictures = []
        for stream in self.streams:
            write_text(folder / f"{stream.name}.csv", stream.curves_csv())
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


# ---------------------------------------------------------------------- words

HEADINGS = ["", "learner", "log loss", "error", "regret", "certificate", "bound", "µs a row"]
OVERALL = "Mean place of the learners that played every stream, among themselves."
NOTE = (
    "All figures are medians over the orders (of the regret interval, of each of its ends). Log loss and error rate "
    "are means over all rows, each forecast before its label was used. Regret: total loss minus that of the best fixed "
    "model in hindsight, in the learner's own loss and over its own set (of the stream's radius where it has none). "
    "Certificate: what the learner can prove of its regret on these very rows. Bound: what its theorem says "
    "beforehand. A dash where there is none. The learner's own loss is the log loss; where no log loss is shown, the "
    "hinge loss (Perceptron: mistakes, against the hinge loss), and for Vovk-Azoury-Warmuth the squared loss of -1 "
    "and +1."
)


def cells(stream: StreamRace) -> list[list[str]]:
    """The table in words."""
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
    """The stream in a line."""
    orders = "1 order" if stream.orders == 1 else f"{stream.orders} orders"
    return f"{stream.about}; radius {stream.radius:.4g}; {orders}"


def markdown(headings: list[str], body: list[list[str]]) -> str:
    """A table; the learner's column is aligned to the left."""
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
    """One number where both ends look the same."""
    ends = _number(low), _number(high)
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def refused(refusal: Refusal) -> str:
    """Who did not play, and why, in a line."""
    return f"{refusal.learner} did not play: {' '.join(refusal.why.split()).rstrip('.')}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


# ---------------------------------------------------------------------- forms


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
