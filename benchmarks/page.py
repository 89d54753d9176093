"""docs/benchmarks.md: parts between markers, each written by its own command; the rest stays unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


def put(begin: str, end: str, part: Sequence[str], introduction: str, page: Path = PAGE) -> None:
    """Write a part between its markers; without markers, append the introduction and the part."""
    text = page.read_text() if page.exists() else "# Benchmarks\n"
    if begin not in text:
        text += f"\n{introduction}\n{begin}\n{end}\n"
    before, rest = text.split(begin)
    page.write_text(before + "\n".join([begin, "", *part, "", end]) + rest.split(end, 1)[1])


def table(heads: Sequence[str], body: Sequence[Sequence[str]], words: Sequence[int] = (0,)) -> list[str]:
    """A Markdown table that is also readable in a terminal; the columns `words` are left-aligned."""
    widths = [max(3, len(head), *(len(cells[i]) for cells in body)) for i, head in enumerate(heads)]
    rule = ["-" * w if i in words else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    out = []
    for cells in [heads, rule, *body]:
        padded = [
            cell.ljust(w) if i in words else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(cells, widths, strict=True))
        ]
        out.append("| " + " | ".join(padded) + " |")
    return out


def nanoseconds(ns: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)):
        if ns < 1000 * size or unit == "s":
            return f"{ns / size:.3g} {unit}"
    raise AssertionError


def least_and_median(figure: dict[str, Any]) -> str:
    return f"{nanoseconds(figure['least_ns'])} ({nanoseconds(figure['median_ns'])})"


def count(number: float) -> str:
    """A rate or a number of rows, to three digits."""
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 100 else f"{number:.3g}"


def goal(what: str, value: float, wanted: float, at_least: bool, unit: str = "x") -> dict[str, Any]:
    """A number and its goal."""
    reached = value >= wanted if at_least else value <= wanted
    return {"what": what, "value": value, "wanted": wanted, "at_least": at_least, "unit": unit, "reached": reached}


def goals_table(goals: Sequence[dict[str, Any]]) -> list[str]:
    body = [
        [
            each["what"],
            f"{'>=' if each['at_least'] else '<='} {each['wanted']:g} {each['unit']}",
            f"{each['value']:.3g} {each['unit']}",
            "reached" if each["reached"] else "**missed**",
        ]
        for each in goals
    ]
    return table(["figure", "wanted", "found", ""], body, words=(0, 3))
