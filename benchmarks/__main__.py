"""Speed: learners against their floors and against others, growth, cold start, quality per second.

    python -m benchmarks --quick                      # a minute: small sizes, figures that mean little
    REGRETLESS_DATA=folder python -m benchmarks --write # ten minutes, of a machine that does nothing else
    python -m benchmarks --only a,c

Prints the sections, and with --write puts them into docs/benchmarks.json and the speed part of docs/benchmarks.md;
sections that are not measured this time stay as they were. Every figure is a ratio, or stands beside what it is to be
compared with, taken in the same run and in turns; least and median of the repeats are shown.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
import traceback
from importlib import import_module
from typing import Any

from benchmarks.machine import describe, in_words
from benchmarks.page import PAGE, goals_table, put
from benchmarks.timing import progress

SECTIONS = {"a": "floors", "b": "rivals", "c": "growth", "d": "cold_start", "e": "quality_per_second"}
DATA = PAGE.with_suffix(".json")
BEGIN, END = "<!-- speed: begin, written by python -m benchmarks --write -->", "<!-- speed: end -->"
INTRODUCTION = """\
## Speed

Every figure stands beside what it is to be compared with, taken in the same run: contenders take turns, and the least
time of the repeats is given, with the median in brackets, so that the noise of the machine can be seen. BLAS has one
thread, as the compiled loops have. All figures are in docs/benchmarks.json. Made by

    REGRETLESS_DATA=folder python -m benchmarks --write
"""


def sections(text: str) -> list[str]:
    letters = [letter.strip() for letter in text.split(",")]
    unknown = [letter for letter in letters if letter not in SECTIONS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: sections are {', '.join(SECTIONS)}")
    return letters


def markdown(found: dict[str, Any]) -> list[str]:
    """The speed part: what is wanted, then the sections."""
    letters = [letter for letter in SECTIONS if letter in found]
    goals = [each for letter in letters for each in found[letter]["figures"]["goals"]]
    out = ["### What is wanted", "", *goals_table(goals)] if goals else []
    for letter in letters:
        module = import_module(f"benchmarks.{SECTIONS[letter]}")
        out += ["", f"### {module.TITLE}", "", *module.markdown(found[letter]["figures"])]
        about = f"Taken on {in_words(found[letter]['machine'])}"
        if found[letter]["quick"]:
            about += " A quick run: sizes are small, and the figures mean little."
        out += ["", *textwrap.wrap(about, 118, break_on_hyphens=False)]
    return out


def main() -> int:
    arguments = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--quick", action="store_true", help="small sizes, few repeats: does everything run?")
    arguments.add_argument("--only", type=sections, default=list(SECTIONS), metavar="a,b,c,d,e", help="some sections")
    arguments.add_argument("--write", action="store_true", help="write docs/benchmarks.md and docs/benchmarks.json")
    given = arguments.parse_args()
    found: dict[str, Any] = {}
    failed: list[str] = []
    for letter in given.only:
        module = import_module(f"benchmarks.{SECTIONS[letter]}")
        machine = describe()
        try:
            figures = module.measure(given.quick)
        except Exception:  # the other sections are worth having
            traceback.print_exc()
            failed.append(letter)
            continue
        found[letter] = {"machine": machine, "quick": given.quick, "figures": figures}
        if given.write:  # at once, lest the process end early
            write(found)
    print("\n".join(markdown(found)))
    progress(f"failed: {', '.join(failed)}" if failed else "done")
    return 1 if failed else 0


def write(found: dict[str, Any]) -> None:
    before = json.loads(DATA.read_text()) if DATA.exists() else {}
    merged = {letter: (before | found)[letter] for letter in SECTIONS if letter in before | found}
    DATA.write_text(json.dumps(merged, indent=1) + "\n")
    put(BEGIN, END, markdown(merged), INTRODUCTION)


if __name__ == "__main__":
    sys.exit(main())
