"""Formulas as MathML, which browsers draw themselves: no script and no font is loaded from elsewhere."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

# What the converter does not know, and what it makes of it.
SHORT = {
    r"\tfrac": r"\frac",
    r"\textstyle": "",
    r"\mathrel{+}=": r"\; {+}{=} \;",
    r"\Big/": r"\; / \;",
    r"\dots": r"\ldots",
}


def mathml(tex: str, block: bool) -> str:
    """A formula as an element <math>."""
    for long, short in SHORT.items():
        tex = tex.replace(long, short)
    tex = re.sub(r"\\frac\s*([^\s{\\])\s*([^\s{\\])", r"\\frac{\1}{\2}", tex)  # \frac1n
    return str(tex2mathml(tex, as_block=block))


def visit_math(self: Any, node: nodes.math) -> None:
    """A formula in a line of text."""
    self.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    """A formula on lines of its own, which scrolls if the screen is narrow."""
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append(mathml(node.astext(), block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))  # type: ignore[arg-type]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
