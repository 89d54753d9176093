"""`regretless list`: the names of learners, streams and figures, and their completion in a shell."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import typer

import regretless


class What(StrEnum):
    """What has names."""

    learners = "learners"
    streams = "streams"
    figures = "figures"


def list_names(
    what: Annotated[What | None, typer.Argument(help="What to list (default: all).")] = None,
) -> None:
    """List the names of learners (for --model), streams (for race) and figures, one per line, with a description.

    Example: regretless list learners
    """
    for each in What if what is None else [what]:
        if what is None:
            print(f"{each.value}:")
        names = _ABOUT[each]()
        width = max(map(len, names))
        for name, about in names.items():
            print(f"{'' if what else '  '}{name:{width}}  {about}".rstrip())


def _learners() -> dict[str, str]:
    from regretless.evaluate.recipe import learners
    from regretless.evaluate.registry import public_learners

    kinds = public_learners()
    return {name: _first_line(kinds[name]) for name in learners()}


def _streams() -> dict[str, str]:
    from regretless.streams.named import DRAWN, NAMES

    return {name: _first_line(DRAWN[name]) if name in DRAWN else "a data set" for name in NAMES}


def _figures() -> dict[str, str]:
    from regretless.figures import ABOUT

    return ABOUT


_ABOUT = {What.learners: _learners, What.streams: _streams, What.figures: _figures}


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").split("\n")[0]


def complete_learner(incomplete: str) -> list[str]:
    """Learners whose names begin so. From the list of public names: a shell does not wait for imports."""
    return _beginning(incomplete, (name for name, home in vars(regretless)["_HOME"].items() if ".learners." in home))


def complete_figure(incomplete: str) -> list[str]:
    """Figures whose names begin so."""
    return _beginning(incomplete, _figures())


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.lower().startswith(incomplete.lower())]
