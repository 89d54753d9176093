"""Generate docs/bounds.md from the docstrings of regretless.bounds: `make docs`.

Every number on the page is computed by the call next to it.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from regretless import bounds
from regretless.theory.bounds import bandits, batch, ensembles, first_order, refitting, second_order, trees

PAGE = Path(__file__).with_name("bounds.md")
FAMILIES = (second_order, first_order, refitting, trees, ensembles, bandits, batch)

INTRODUCTION = """\
# Bounds

<!-- Generated from the docstrings of regretless.bounds by docs/generate_bounds.py (`make docs`). Do not edit. -->

`regretless.bounds` has one function per theorem, with explicit constants. The tables below list the bounded quantity,
the formula, the assumptions and a worked example. Where a printed theorem is wrong or loose, the function follows the
correction in [errata.md](errata.md). A learner's `regret_bound()` calls its function with the learner's own parameters.
Numeric assumptions are checked, and a violated one raises `NoBound`:

```python
from regretless import NoBound, bounds

given = {"n_features": 5, "radius": 3.0, "feature_bound": 1.0, "regularization": 1 / 9}
print(round(bounds.aioli(1000, **given, curvature=1 / 8), 2))  # 81.95

try:
    bounds.aioli(1000, **given, curvature=1 / 8, virtual_weight=0.4)
except NoBound as error:
    print(error)  # AIOLI's theorem needs virtual_weight >= 1/2; this learner has 0.4.
```

Notation, unless a row says otherwise:

- the stream: $n$ rows, $d$ `n_features`, $K$ `n_classes`, $R$ `feature_bound`, $Y$ `label_bound`, $G$ `gradient_bound`;
- the comparators: $B$ `radius`, $\\lvert u\\rvert$ `comparator_norm`, $L$ the total loss of the best comparator, $D$
  `diameter`;
- the learner: $\\lambda$ `regularization`, $\\kappa$ `curvature`, $a$ `virtual_weight`, $\\mu$ `smoothing`, $m$
  `n_samples`, $\\eta$ `step`; for mirror maps $V$ `spread`, $\\sigma$ `strong_convexity`, $\\beta_0$ `temperature`, and
  $t$ weight vectors in the mean;
- ensembles and reductions: $\\mathcal R$ `regret`, the bound of the inner learner, $N$ `n_estimators`, $M$
  `n_functions`, $S$ `sample_complexity`; the bound may fail with probability $\\delta$, `failure`.

A curvature is *proved* if it is at most the `"sharp"` constant, $1/(2 + w)$ with $w + \\ln w = 2C + \\ln(K-1) - 1$ for
logits up to $C$, or, for two classes, the constant of AIOLI's Lemma 5. The column "theorem" starts with the key of the
text in `REFERENCES.bib`.
"""


HEADER = ("bounded quantity", "theorem", "formula", "order", "assumptions", "call", "value")


class Entry(NamedTuple):
    """One row of a table."""

    bounded: str
    theorem: str
    formula: str
    order: str
    assumptions: str
    call: str
    number: str


def theorems(*families: ModuleType) -> list[Callable[..., float]]:
    """The public functions of these modules (default: of all), in the order of their definition."""
    return [
        function
        for family in families or FAMILIES
        for name, function in vars(family).items()
        if name in bounds.__all__ and function.__module__ == family.__name__
    ]


def entry(function: Callable[..., float]) -> Entry:
    """The table row of one theorem, from its docstring. Raises ValueError if a part of the docstring is missing."""
    doc = inspect.getdoc(function) or ""
    parts = [" ".join(paragraph.split()) for paragraph in doc.split("\n\n")]
    title = re.fullmatch(r"(.*) \((`.*)\)\.", parts[0])
    formula = next((part for part in parts if part.startswith(".. math::")), None)
    order = next((part for part in parts if part.startswith("**Order.**")), None)
    assumes = next((part for part in parts if part.startswith("**Assumes.**")), None)
    call = example(function, doc)
    if title is None or formula is None or order is None or assumes is None or call is None:
        raise ValueError(
            f"regretless.bounds.{function.__name__}: the docstring must begin with 'Bounded quantity (`key`, "
            "theorem).' and have a '.. math::' paragraph, an '**Order.**' paragraph, an '**Assumes.**' paragraph and "
            "an example that calls it."
        )
    number = eval(call, vars(bounds))
    return Entry(
        bounded=title[1],
        theorem=title[2],
        formula=cell(f"${formula.removeprefix('.. math:: ')}$"),
        order=order.removeprefix("**Order.** ").removesuffix("."),
        assumptions=cell(assumes.removeprefix("**Assumes.** ").removesuffix(".")),
        call=f"`{call}`",
        number=f"{number:.5g}" if number < 1e4 else f"{number:.0f}",
    )


def example(function: Callable[..., float], doc: str) -> str | None:
    """The call in the last example of the docstring, without the code around it, and with all arguments written out."""
    call: ast.Call | None = None
    given: list[ast.keyword] = []
    for line in doctest.DocTestParser().get_examples(doc):
        for node in ast.walk(ast.parse(line.source)):
            if isinstance(node, ast.Dict):  # the arguments of `**given`, written above the call
                given = [
                    ast.keyword(ast.literal_eval(key), value) for key, value in zip(node.keys, node.values, strict=True)
                ]
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function.__name__:
                call = node
    if call is None:
        return None
    call.keywords = [part for keyword in call.keywords for part in ([keyword] if keyword.arg else given)]
    return ast.unparse(call)


def cell(text: str) -> str:
    """Text for a table cell: formulas between dollar signs, and no vertical bars."""
    text = re.sub(r":math:`([^`]*)`", r"$\1$", text)
    return re.sub(r"\$[^$]*\$", lambda formula: formula[0].replace("|", r"\vert "), text)


def page() -> str:
    """The whole page: the introduction, then one table per family, titled by the first line of its module."""
    text = INTRODUCTION
    for family in FAMILIES:
        title, _, members = (family.__doc__ or "").strip().partition(": ")
        rows = [HEADER, ("---",) * len(HEADER), *map(entry, theorems(family))]
        text += f"\n## {title}\n\n{members[:1].upper()}{members[1:]}\n\n"
        text += "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return text


if __name__ == "__main__":
    PAGE.write_text(page())
