"""Make docs/bounds.md from the docstrings of regretless.bounds: `make docs`.

Every number on the page is computed by the call beside it.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from regretless import bounds

PAGE = Path(__file__).with_name("bounds.md")

INTRODUCTION = """\
# Bounds

<!-- Made from the docstrings of regretless.bounds by docs/generate_bounds.py (`make docs`). Do not edit. -->

One function of `regretless.bounds` per theorem, with explicit constants: what it bounds, the formula, what it assumes
and a worked number. Where a printed theorem is wrong or wasteful, the function follows the correction in
[errata.md](errata.md). A learner's `regret_bound()` calls its function with the learner's own numbers. Assumptions that
are numbers are checked, and a violated one is named:

```python
from regretless import NoBound, bounds

given = {"n_features": 5, "radius": 3.0, "feature_bound": 1.0, "regularization": 1 / 9}
print(round(bounds.aioli(1000, **given, curvature=1 / 8), 2))  # 81.95

try:
    bounds.aioli(1000, **given, curvature=1 / 8, virtual_weight=0.4)
except NoBound as refusal:
    print(refusal)  # AIOLI's theorem needs virtual_weight >= 1/2; this learner has 0.4.
```

Letters, where a row does not say otherwise:

- the stream: $n$ rows, $d$ `n_features`, $K$ `n_classes`, $R$ `feature_bound`, $Y$ `label_bound`, $G$ `gradient_bound`;
- the comparators: $B$ `radius`, $\\lvert u\\rvert$ `comparator_norm`, $L$ the total loss of the best, $D$ `diameter`;
- the learner: $\\lambda$ `regularization`, $\\kappa$ `curvature`, $a$ `virtual_weight`, $\\mu$ `smoothing`, $m$
  `n_samples`, $\\eta$ `step`; of mirror maps $V$ `spread`, $\\sigma$ `strong_convexity`, $\\beta_0$ `temperature`, and
  $t$ weights in the mean;
- reductions: $\\mathcal R$ `regret`, the bound of the learner inside, $N$ `n_estimators`, $M$ `n_functions`, $S$
  `sample_complexity`; the bound may fail with probability $\\delta$, `failure`.

A curvature is *proved* if it is at most the `"sharp"` constant: $1/(2 + w)$ with $w + \\ln w = 2C + \\ln(K-1) - 1$ for
logits up to $C$, or, for two classes, that of AIOLI's Lemma 5. Texts go by their keys in `REFERENCES.bib`.

"""


HEADER = ("what is bounded", "by", "formula", "assumptions", "call", "number")


class Entry(NamedTuple):
    """One row of the table."""

    bounded: str
    theorem: str
    formula: str
    assumptions: str
    call: str
    number: str


def theorems() -> list[Callable[..., float]]:
    """The public functions of regretless.bounds, in the order of the file."""
    return [
        function
        for name, function in vars(bounds).items()
        if inspect.isfunction(function) and function.__module__ == bounds.__name__ and not name.startswith("_")
    ]


def entry(function: Callable[..., float]) -> Entry:
    """The row of one theorem, from its docstring; an error names the part that is missing."""
    doc = inspect.getdoc(function) or ""
    parts = [" ".join(paragraph.split()) for paragraph in doc.split("\n\n")]
    title = re.fullmatch(r"(.*) \((`.*)\)\.", parts[0])
    formula = next((part for part in parts if part.startswith(".. math::")), None)
    assumes = next((part for part in parts if part.startswith("**Assumes.**")), None)
    call = example(function, doc)
    if title is None or formula is None or assumes is None or call is None:
        raise ValueError(
            f"regretless.bounds.{function.__name__}: its docstring must begin with 'What is bounded (`key`, theorem).' "
            "and have a '.. math::' paragraph, an '**Assumes.**' paragraph and an example that calls it."
        )
    number = eval(call, vars(bounds))
    return Entry(
        bounded=title[1],
        theorem=title[2],
        formula=cell(f"${formula.removeprefix('.. math:: ')}$"),
        assumptions=cell(assumes.removeprefix("**Assumes.** ").removesuffix(".")),
        call=f"`{call}`",
        number=f"{number:.5g}" if number < 1e4 else f"{number:.0f}",
    )


def example(function: Callable[..., float], doc: str) -> str | None:
    """The call in the last example of the docstring, without what is done to its value, and all arguments spelt out."""
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
    """Text fit for a table: no bar of its own, and mathematics set as such."""
    text = re.sub(r":math:`([^`]*)`", r"$\1$", text)
    return re.sub(r"\$[^$]*\$", lambda formula: formula[0].replace("|", r"\vert "), text)


def page() -> str:
    """The whole page."""
    rows = [HEADER, ("---",) * len(HEADER), *map(entry, theorems())]
    return INTRODUCTION + "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    PAGE.write_text(page())
