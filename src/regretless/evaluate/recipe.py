"""Learners from text: "AIOLI", "AIOLI(radius=5)", "Mixture([AIOLI(), OGD(radius=2)])". No code is evaluated."""

from __future__ import annotations

import ast
from difflib import get_close_matches
from typing import Any

import regretless
from regretless.evaluate.registry import public_learners


def learner_of(text: str) -> Any:
    """Make a learner from a name, or from a call with parameters in Python syntax.

    Names may be in lower case. Parameters are numbers, strings, True, False, None, lists of these, and learners.

    >>> from regretless.evaluate.recipe import learner_of
    >>> learner_of("mixture([AIOLI(radius=5), OGD()], share=0.01)")
    Mixture(estimators=[AIOLI(radius=5), OGD()], share=0.01)
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise ValueError(f'{text!r} is not a learner: write a name, "AIOLI", or a call, "AIOLI(radius=5)".') from None
    made = _made(ast.Call(tree, [], []) if isinstance(tree, ast.Name) else tree, text)
    if not hasattr(made, "get_params"):
        raise ValueError(f'{text!r} is not a learner: write a name, "AIOLI", or a call, "AIOLI(radius=5)".')
    return made


def _made(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        parameters = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise ValueError(f"{text!r} contains **: pass parameters by name, as in radius=5.")
            parameters[keyword.arg] = _made(keyword.value, text)
        try:
            return _kind(node.func.id)(*(_made(each, text) for each in node.args), **parameters)
        except TypeError as error:
            raise ValueError(f"{text!r}: {error}.") from None
    if isinstance(node, ast.List | ast.Tuple):
        found = [_made(each, text) for each in node.elts]
        return found if isinstance(node, ast.List) else tuple(found)
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise ValueError(
            f"{text!r}: {ast.unparse(node)!r} is neither a number, a string, a list nor a learner."
        ) from None


def _kind(name: str) -> Any:
    """The learner class of this name."""
    known = {each.lower(): each for each in learners()}
    if name.lower() not in known:
        near = get_close_matches(name.lower(), known, n=1)
        hint = f" Did you mean {known[near[0]]}?" if near else ""
        raise ValueError(f"unknown learner {name!r}: choose one of {', '.join(known.values())}.{hint}")
    return getattr(regretless, known[name.lower()])


def learners() -> list[str]:
    """The names of the public learners that accept rows and labels."""
    from regretless.core.learner import OnlineLearner

    return [name for name, kind in public_learners().items() if issubclass(kind, OnlineLearner)]
