"""Make docs/learners/ from the docstrings of the learners and the table of the README: `make docs`.

One page a learner: what it does, in mathematics; its guarantee, parameters, attributes, an example with the numbers it
prints, and references. The index is the README's table with links.
"""

from __future__ import annotations

import doctest
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

from regretless.core.registry import public_learners

FOLDER = Path(__file__).with_name("learners")
README = Path(__file__).parent.parent / "README.md"
NOTE = "<!-- Made from the docstring by docs/generate_learners.py (`make docs`). Do not edit. -->"
SECTIONS = ("Parameters", "Attributes", "Examples", "References")


def table() -> list[list[str]]:
    """The cells of the README's table of learners, a list a row, the header first."""
    text = README.read_text()
    lines = text[text.index("| learner | ") :].split("\n\n", 1)[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines]
    return [rows[0], *rows[2:]]


def parts(doc: str) -> dict[str, str]:
    """A docstring by its sections; what comes before the first is under ""."""
    found = re.split(rf"^({'|'.join(SECTIONS)})\n-+\n", doc, flags=re.MULTILINE)
    return {"": found[0].strip()} | {title: text.strip() for title, text in zip(found[1::2], found[2::2], strict=True)}


def inline(text: str, own: str) -> str:
    """Mathematics, citations and names as Markdown; learners, bounds and pages become links."""

    def link(name: re.Match[str]) -> str:
        code = name[1]
        if code in public_learners() and code != own:
            return f"[`{code}`]({code}.md)"
        return f"[`{code}`](../bounds.md)" if code.startswith("regretless.bounds.") else f"`{code}`"

    formulas: list[str] = []

    def keep(formula: re.Match[str]) -> str:
        formulas.append(" ".join(formula[1].split()))
        return f"\0{len(formulas) - 1}\0"

    text = re.sub(r":math:`([^`]*)`", keep, text)
    text = re.sub(r"`([^`]*)`", link, text)
    text = re.sub(r"\[(\w+)\]_", r"[[\1](#references)]", text)
    text = re.sub(r"\\\|", "|", text)
    text = text.replace("docs/errata.md", "[errata](../errata.md)")
    text = text.replace("REFERENCES.bib", "[REFERENCES.bib](../../REFERENCES.bib)")
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
    """The lines `names : meaning` of a section, with what follows them indented; none if it is prose."""
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
        raise ValueError(f"{own}: the docstring has the parameters {named}, the signature {list(signature)}.")
    rows = ["| parameter | default | meaning |", "| --- | --- | --- |"]
    for names, meaning in found:
        defaults = [signature[name].default for name in names.split(", ")]
        shown = ", ".join("none: give it" if value is inspect.Parameter.empty else f"`{value!r}`" for value in defaults)
        code = ", ".join(f"`{name}`" for name in names.split(", "))
        cell = re.sub(r"\$`.*?`\$", lambda formula: formula[0].replace("|", r"\vert "), inline(meaning, own))
        rows.append(f"| {code} | {shown} | {cell.replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def example(text: str) -> str:
    """The examples as Python that can be copied, with what is printed, and words between, as comments."""
    code = ""
    for piece in doctest.DocTestParser().parse(text):
        if not isinstance(piece, str):
            code += piece.source + "".join(f"# {line}\n" for line in piece.want.splitlines())
        elif piece.strip():
            code += "\n" + textwrap.indent(piece.strip(), "# ") + "\n"
    code = re.sub(r"\A((?:(?:import|from) .*\n)+)", r"\1\n", code.lstrip())  # as the formatter would have it
    return f"```python\n{code.strip()}\n```"


def references(text: str, own: str) -> str:
    """A list of texts."""
    cited = [" ".join(each.split()) for each in re.split(r"^\.\. ", text, flags=re.MULTILINE) if each.strip()]
    return "\n".join("- " + inline(re.sub(r"^\[(\w+)\] ", r"**\1**: ", each), own) for each in cited)


def page(name: str) -> str:
    """The page of one learner."""
    kind = public_learners()[name]
    section = parts(inspect.getdoc(kind) or "")
    head, guarantee = section[""].split("**Guarantee.** ", 1)
    summary, _, rest = head.partition("\n\n")
    pieces = [
        f"# {name}",
        NOTE,
        inline(" ".join(summary.split()), name) + " ([All learners](README.md))",
        *([f"## What it does\n\n{prose(rest.strip(), name)}"] if rest.strip() else []),
        f"## Guarantee\n\n{prose(guarantee, name)}",
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
    """The README's table, with a link from each learner to its page, and those that it does not have below."""
    header, *rows = table()
    linked = [[re.sub(r"`(\w+)`", r"[`\1`](\1.md)", row[0]), *row[1:]] for row in rows]
    lines = [header, ["---"] * len(header), *linked]
    others = [name for name in public_learners() if not any(f"`{name}`" in row[0] for row in rows)]
    return (
        f"# Learners\n\n{NOTE}\n\n"
        "One page each: the algorithm in mathematics, what is proved, parameters, an example. What the words mean:\n"
        "[concepts.md](../concepts.md). The theorems as functions: [bounds.md](../bounds.md).\n\n"
        + "".join(f"| {' | '.join(line)} |\n" for line in lines)
        + "".join(f"\nAnd [`{name}`]({name}.md): {inline(_first_line(name), name)}\n" for name in others)
    )


def _first_line(name: str) -> str:
    return (inspect.getdoc(public_learners()[name]) or "").split("\n\n")[0].replace("\n", " ")


def pages() -> dict[Path, str]:
    """Every page by its path."""
    return {FOLDER / "README.md": index()} | {FOLDER / f"{name}.md": page(name) for name in public_learners()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    made = pages()
    for old in set(FOLDER.glob("*.md")) - set(made):
        old.unlink()
    for path, text in made.items():
        path.write_text(text)
