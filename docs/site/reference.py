"""The API reference: one page per public name, from its docstring."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import docstrings

import regretless
from regretless.evaluate.registry import public_predictors

INTRODUCTION = """\
API reference
=============

Every public name, from its docstring. ``import regretless`` is fast: a name is imported when it is first used.
Learners have the same methods, which :class:`~regretless.OnlineLearner` describes; how to choose one is on
:doc:`/which-learner`, and the mathematics of each on :doc:`its page </learners/index>`.

"""
GROUPS = {
    "Learners": "Every learner, with all its methods.",
    "Base classes": "What all learners have in common.",
    "Evaluation": "Play a stream, and read the result.",
    "Streams and data": "Files, data sets and synthetic streams.",
    "Theory": "Losses, sets of comparators, bounds, and the best model in hindsight.",
    "Saving, merging, other libraries": "Files, several workers, River.",
    "Errors": "What is raised, and when.",
}
BASES = ("OnlineLearner", "OnlineClassifier", "OnlineRegressor")


def is_public(name: str) -> bool:
    """Whether a name is public: no leading underscore."""
    return not name.startswith("_")


def group(name: str, thing: Any) -> str:
    """The section of the index."""
    module = thing.__name__ if isinstance(thing, ModuleType) else thing.__module__
    if name in public_predictors() or ("learners." in module and inspect.isclass(thing)):
        return "Learners"
    if name in BASES:
        return "Base classes"
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return "Errors"
    if ".evaluate" in module:
        return "Evaluation"
    if ".streams" in module:
        return "Streams and data"
    if ".theory" in module or isinstance(thing, ModuleType) or name == "stumps":
        return "Theory"
    return "Saving, merging, other libraries"


def members(kind: type) -> list[str]:
    """The public methods and properties of a class that are this library's own, inherited ones included."""
    own = []
    for name in filter(is_public, dir(kind)):
        for owner in kind.__mro__:
            if name in vars(owner):
                thing = inspect.unwrap(vars(owner)[name]) if callable(vars(owner)[name]) else vars(owner)[name]
                described = callable(thing) or isinstance(thing, property | classmethod | staticmethod)
                if owner.__module__.startswith("regretless.") and described and getattr(thing, "__doc__", None):
                    own.append(name)
                break
    return own


def public_in(module: ModuleType) -> list[str]:
    """The public names of a module: `__all__`, or what it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, thing in vars(module).items()
        if is_public(name)
        and (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ == module.__name__
        and thing.__doc__
    ]


def directive(name: str, thing: Any, home: str) -> str:
    """The autodoc directive of one name."""
    full = f"{home}.{name}"
    if inspect.isclass(thing):
        listed = members(thing)
        return f".. autoclass:: {full}\n" + (f"   :members: {', '.join(listed)}\n" if listed else "")
    if inspect.isroutine(thing):
        return f".. autofunction:: {full}\n"
    return f".. autodata:: {full}\n   :no-value:\n"


def title(text: str) -> str:
    """A heading."""
    return f"{text}\n{'=' * len(text)}\n\n"


def page(name: str, thing: Any) -> str:
    """The page of one public name."""
    text = title(name)
    if name in public_predictors():
        text += f"When to choose it, its algorithm and its guarantee are on :doc:`/learners/{name}`.\n\n"
    if not isinstance(thing, ModuleType):
        return text + ".. currentmodule:: regretless\n\n" + directive(name, thing, "regretless")
    text += f".. py:module:: regretless.{name}\n\n" + f".. currentmodule:: regretless.{name}\n\n"
    text += "\n".join(docstrings.rewritten((inspect.getdoc(thing) or "").splitlines())) + "\n\n"
    if name == "bounds":
        text += "Each function has a card with its statement and a picture: :doc:`/bounds/index`.\n\n"
    for each in public_in(thing):
        if each in regretless.__all__ and getattr(regretless, each) is getattr(thing, each):
            text += f":py:obj:`regretless.{each}` is also here.\n\n"
        else:
            text += directive(each, getattr(thing, each), f"regretless.{name}") + "\n"
    return text


def first_line(thing: Any) -> str:
    """The first sentence of a docstring."""
    doc = (inspect.getdoc(thing) or "").partition("\n\n")[0]
    return " ".join(doc.split())


def pages() -> dict[str, str]:
    """Every page of the reference, by its path on the site."""
    public = {name: getattr(regretless, name) for name in regretless.__all__ if is_public(name)}
    index = INTRODUCTION
    for heading, words in GROUPS.items():
        names = sorted((name for name, thing in public.items() if group(name, thing) == heading), key=str.lower)
        index += (
            f"{heading}\n{'-' * len(heading)}\n\n{words}\n\n.. list-table::\n   :class: names\n   :widths: 30 70\n\n"
        )
        for name in names:
            index += f"   * - :doc:`{name}`\n     - {first_line(public[name])}\n"
        index += "\n.. toctree::\n   :hidden:\n\n" + "".join(f"   {name}\n" for name in names) + "\n"
    return {"api/index.rst": index} | {f"api/{name}.rst": page(name, thing) for name, thing in public.items()}
