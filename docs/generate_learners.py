"""Generate docs/learners/ from the docstrings: `make docs`.

One page per learner: when to choose it, the algorithm, its guarantee, parameters, attributes, an example with the
numbers it prints, and references. The table has the first line of each docstring, and the order of the learner's
bound.
"""

from __future__ import annotations

import doctest
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

from regretless import bounds
from regretless.evaluate.registry import public_predictors

FOLDER = Path(__file__).with_name("learners")
NOTE = "<!-- Generated from the docstrings by docs/generate_learners.py (`make docs`). Do not edit. -->"
FAMILIES = (
    "logistic",
    "second_order",
    "first_order",
    "refitting",
    "trees",
    "ensembles",
    "bandits",
    "wrappers",
    "batch",
)
SECTIONS = ("Parameters", "Attributes", "Examples", "References")


def family(name: str) -> str:
    """The package of a learner below `regretless.learners`."""
    return public_predictors()[name].__module__.split(".")[2]


def names() -> list[str]:
    """The public learners in the order of the tables: by family, then as in the list of public names."""
    order = {each: i for i, each in enumerate(FAMILIES)}
    return sorted(public_predictors(), key=lambda name: order.get(family(name), len(order)))


def learners_folder(docs: str) -> str:
    """The path of docs/learners from a page, where `docs` is that of docs; pages in docs/learners have "../"."""
    return "" if docs == "../" else f"{docs}learners/"


def bounds_named(kind: Any) -> list[str]:
    """The functions of `regretless.bounds` that the learner's docstring names."""
    named = re.findall(r"`regretless\.bounds\.(\w+)`", inspect.getdoc(kind) or "")
    return [name for name in dict.fromkeys(named) if name in bounds.__all__]


def bounds_called(kind: Any) -> list[str]:
    """The functions of `regretless.bounds` that the learner's code calls, in its own class or else in the next base."""
    for owner in kind.__mro__:
        if owner.__module__.startswith("regretless."):
            called = dict.fromkeys(re.findall(r"\bbounds\.(\w+)\(", inspect.getsource(owner)))
            if called:
                return [name for name in called if name in bounds.__all__]
    return []


def guarantee(name: str, docs: str) -> str:
    """The order of the first bound that the docstring names, or a link to the page; then links to the bounds."""
    kind = public_predictors()[name]
    if named := bounds_named(kind):
        text = inspect.getdoc(getattr(bounds, named[0])) or ""
        [order] = re.findall(r"^\*\*Order\.\*\* (.*?)\.$", text, re.MULTILINE | re.DOTALL)
        promise = " ".join(order.split())
    else:
        promise = f"[see its page]({learners_folder(docs)}{name}.md#guarantee)"
    links = [f"[`{each}`]({docs}bounds.md)" for each in named or bounds_called(kind)]
    return f"{promise} ({', '.join(links)})" if links else promise


def table(docs: str) -> str:
    """The table of learners; `docs` is the path of the folder docs from the page that has the table."""
    rows = [["learner", "what it does", "guarantee"], ["---"] * 3]
    for name in names():
        link = f"[`{name}`]({learners_folder(docs)}{name}.md)"
        rows.append([link, inline(_first_line(name), name, docs), guarantee(name, docs)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def parts(doc: str) -> dict[str, str]:
    """The sections of a docstring by title; the text before the first section has the title ""."""
    found = re.split(rf"^({'|'.join(SECTIONS)})\n-+\n", doc, flags=re.MULTILINE)
    return {"": found[0].strip()} | {title: text.strip() for title, text in zip(found[1::2], found[2::2], strict=True)}


def inline(text: str, own: str, docs: str = "../") -> str:
    """Mathematics, citations and names as Markdown; names of learners, bounds and pages become links.

    `own` is the learner described (no link to itself), `docs` the path of the folder docs from the page.
    """

    def link(name: re.Match[str]) -> str:
        code = name[1]
        if code in public_predictors() and code != own:
            return f"[`{code}`]({learners_folder(docs)}{code}.md)"
        return f"[`{code}`]({docs}bounds.md)" if code.startswith("regretless.bounds.") else f"`{code}`"

    formulas: list[str] = []

    def keep(formula: re.Match[str]) -> str:
        formulas.append(" ".join(formula[1].split()))
        return f"\0{len(formulas) - 1}\0"

    text = re.sub(r":math:`([^`]*)`", keep, text)
    text = re.sub(r"`([^`]*)`", link, text)
    text = re.sub(r"\[(\w+)\]_", r"[[\1](#references)]", text)
    text = re.sub(r"\\\|", "|", text)
    text = text.replace("docs/errata.md", f"[errata]({docs}errata.md)")
    text = text.replace("REFERENCES.bib", f"[REFERENCES.bib]({docs}../REFERENCES.bib)")
    return re.sub("\0(\\d+)\0", lambda at: f"$`{formulas[int(at[1])]}`$", text)


def prose(text: str, own: str) -> str:
    """Paragraphs, lists and displayed formulas."""
    blocks = []
    for block in re.split(r"\n\n", text):
        for piece in re.split(r"^(?=\.\. math::)", block, flags=re.MULTILINE):
            if piece.startswith(".. math::"):
                formula = textwrap.dedent(" " * 10 + piece.removeprefix(".. math::").strip())
                blocks.append(f"```math\n{formula.strip()}\n```")
            elif piece.strip():
                blocks.append(inline(piece.strip(), own))
    return "\n\n".join(blocks)


def entries(text: str) -> list[tuple[str, str]]:
    """The entries `names : meaning` of a section, with their indented continuation lines; none if it is prose."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith(" ") and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
        elif match := re.fullmatch(r"([\w, ]+) : (.*)", line):
            found.append((match[1], match[2]))
        else:
            return []
    return found


def parameters(kind: Any, text: str, own: str) -> str:
    """A table of parameters with their defaults."""
    found = entries(text)
    if not found:
        return prose(text, own)
    signature = inspect.signature(kind).parameters
    named = [name for names, _ in found for name in names.split(", ")]
    if sorted(named) != sorted(signature):
        raise ValueError(f"{own}: the docstring lists the parameters {named}, the signature has {list(signature)}.")
    rows = ["| parameter | default | meaning |", "| --- | --- | --- |"]
    for names, meaning in found:
        defaults = [signature[name].default for name in names.split(", ")]
        shown = ", ".join("required" if value is inspect.Parameter.empty else f"`{value!r}`" for value in defaults)
        code = ", ".join(f"`{name}`" for name in names.split(", "))
        cell = re.sub(r"\$`.*?`\$", lambda formula: formula[0].replace("|", r"\vert "), inline(meaning, own))
        rows.append(f"| {code} | {shown} | {cell.replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def example(text: str) -> str:
    """The examples as Python that can be copied; their output and the text between them become comments."""
    code = ""
    for piece in doctest.DocTestParser().parse(text):
        if not isinstance(piece, str):
            code += piece.source + "".join(f"# {line}\n" for line in piece.want.splitlines())
        elif piece.strip():
            code += "\n" + textwrap.indent(piece.strip(), "# ") + "\n"
    code = re.sub(r"\A((?:(?:import|from) .*\n)+)", r"\1\n", code.lstrip())  # as the formatter would have it
    return f"```python\n{code.strip()}\n```"


def references(text: str, own: str) -> str:
    """The list of references."""
    cited = [" ".join(each.split()) for each in re.split(r"^\.\. ", text, flags=re.MULTILINE) if each.strip()]
    return "\n".join("- " + inline(re.sub(r"^\[(\w+)\] ", r"**\1**: ", each), own) for each in cited)


def page(name: str) -> str:
    """The page of one learner."""
    kind = public_predictors()[name]
    section = parts(inspect.getdoc(kind) or "")
    head, proved = section[""].split("**Guarantee.** ", 1)
    summary, choosing, *rest = head.split("\n\n")
    pieces = [
        f"# {name}",
        NOTE,
        inline(" ".join(choosing.split()), name),
        inline(" ".join(summary.split()), name) + " ([All learners](README.md))",
        *([f"## Algorithm\n\n{prose(algorithm, name)}"] if (algorithm := "\n\n".join(rest).strip()) else []),
        f"## Guarantee\n\n{prose(proved, name)}",
        f"## Parameters\n\n{parameters(kind, section['Parameters'], name)}",
    ]
    attributes = entries(section.get("Attributes", ""))
    if attributes:
        listed = (
            f"- {', '.join(f'`{each}`' for each in names.split(', '))}: {inline(meaning, name)}"
            for names, meaning in attributes
        )
        pieces.append("## Attributes\n\n" + "\n".join(listed))
    pieces.append(f"## Example\n\n{example(section['Examples'])}")
    pieces.append(f"## References\n\n{references(section['References'], name)}")
    return "\n\n".join(pieces) + "\n"


def index() -> str:
    """The index of the pages: the table of learners."""
    return (
        f"# Learners\n\n{NOTE}\n\n"
        "Each page says when to choose the learner, then has the algorithm, its guarantee, its "
        "parameters and an example.\n"
        "[Which learner?](../which-learner.md) leads to one by questions. The terms are defined in\n"
        "[concepts.md](../concepts.md), the theorems as functions in [bounds.md](../bounds.md). Here n "
        "is the number of rows,\n"
        "d of features, K of classes, N of members; B bounds the comparator, G the gradients, and rows "
        "have norm at most 1.\n\n" + table("../")
    )


def _first_line(name: str) -> str:
    return (inspect.getdoc(public_predictors()[name]) or "").split("\n\n")[0].replace("\n", " ")


def pages() -> dict[Path, str]:
    """Every generated page by its path."""
    learners = {FOLDER / f"{name}.md": page(name) for name in public_predictors()}
    return {FOLDER / "README.md": index()} | learners


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    generated = pages()
    for old in set(FOLDER.glob("*.md")) - set(generated):
        old.unlink()
    for path, text in generated.items():
        path.write_text(text)
