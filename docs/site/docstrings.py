"""Docstrings of this project as reStructuredText: sections become headings in bold, `name : meaning` a list."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Examples", "References", "Notes")


def sections(lines: list[str]) -> list[tuple[str, list[str]]]:
    """The parts of a docstring with their titles; the first part has the title ""."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if line in SECTIONS and re.fullmatch("-{3,}", following):
            parts.append((line, []))
        elif not (re.fullmatch("-{3,}", line) and i and lines[i - 1] in SECTIONS):
            parts[-1][1].append(line)
    return parts


def entries(lines: list[str]) -> list[str]:
    """`names : meaning` as a list with the names in bold; other text stays as it is."""
    out: list[str] = []
    for line in lines:
        if match := re.fullmatch(r"(\*{0,2}\w[\w, ]*) : (.*)", line):
            names = ", ".join(f"**{name}**" for name in match[1].split(", "))
            out += ["", f"- {names}: {match[2]}"]
        else:
            out.append(f"  {line.strip()}" if line.startswith(" ") and out else line)
    return [*out, ""]


def references(lines: list[str]) -> list[str]:
    """The cited works as a list."""
    works = re.split(r"^\.\. ", "\n".join(lines).strip(), flags=re.MULTILINE)
    return [re.sub(r"^\[(\w+)\] ", r"- **\1**: ", " ".join(work.split())) for work in works if work] + [""]


def links(text: str) -> str:
    """Citations and bars as plain text; pages and the list of references as links. Code and formulas stay."""
    blocks = text.split("\n\n")
    for i, block in enumerate(blocks):
        if not block.lstrip().startswith((">>>", ".. math::")):
            parts = re.split(r"(`[^`]*`)", block)
            parts[::2] = [re.sub(r"(?<!\\)\|", r"\|", re.sub(r"\[(\w+)\]_", r"[\1]", part)) for part in parts[::2]]
            block = re.sub(r"\bdocs/([\w-]+)\.md", r":doc:`\1 </\1>`", "".join(parts)).replace(
                "</bounds>", "</bounds/index>"
            )
            blocks[i] = block.replace("REFERENCES.bib", ":doc:`the references </references>`")
    return "\n\n".join(blocks)


def listed(lines: list[str]) -> list[str]:
    """Tables as a directive, and paragraphs that begin with a letter in parentheses as a list."""
    out: list[str] = []
    joined = re.sub(r"^(\|.*[^|\n])\n(?=\|)", r"\1 ", "\n".join(lines), flags=re.MULTILINE)  # rows on two lines
    for line in joined.splitlines():
        if line.startswith("| --- "):
            out[-1:] = ["", ".. list-table::", "   :header-rows: 1", "", *_row(out[-1])]
        elif line.startswith("|") and (not out or out[-1].startswith(("   ", "|")) or not out[-1]):
            out += _row(line) if out and out[-1].startswith("     - ") else [line]
        elif match := re.match(r"\((\w+)\)  +(.*)", line):
            out += ["", f"- ({match[1]}) {match[2]}"]
        elif out and out[-1].startswith("- (") and line.startswith("  "):
            out[-1] += f" {line.strip()}"
        else:
            out.append(line)
    return out


def _row(line: str) -> list[str]:
    """The cells of a line of a table."""
    cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
    return [f"   {'* ' if not i else '  '}- {cell}" for i, cell in enumerate(cells)]


def rewritten(lines: list[str]) -> list[str]:
    """The docstring as reStructuredText."""
    out: list[str] = []
    for title, text in sections(lines):
        if title:
            out += ["", f".. rubric:: {title}", ""]
        if title in ("Parameters", "Attributes"):
            text = entries(text)
        elif title == "References":
            text = references(text)
        elif not title:
            text = listed(text)
        out += text
    return links("\n".join(out)).splitlines()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""

    def process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
        lines[:] = rewritten(lines)

    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}
