"""The table of contents: which page stands under which."""

from __future__ import annotations

import re

START = ["quickstart", "which-learner", "concepts", "coming-from"]
THEORY = ["errata", "rounding", "figures/index"]
PROJECT = ["changelog", "contributing", "architecture", "security", "references"]

START_PAGE = """\
# Start

- [Quickstart](quickstart.md): install, run a race, train on a file, use a learner in Python, save and load.
- [Which learner?](which-learner.md) A few questions lead to a learner.
- [Concepts](concepts.md): online learning, loss, regret, comparator, certificate and bound, in one page.
- [From River, scikit-learn and Vowpal Wabbit](coming-from.md): their commonest lines, and ours.
"""
PROJECT_PAGE = """\
# Project

- [Changelog](changelog.md)
- [Contributing](contributing.md): how to add a learner, a bound, a stream, an example.
- [Architecture](architecture.md): the structure of the code, and the contract of a learner.
- [Security](security.md): what model files and data files can do, and how to report a problem.
- [References](references.md): the texts behind the learners and bounds.
"""


def toctree(names: list[str]) -> str:
    """A hidden table of contents."""
    return "\n```{toctree}\n:hidden:\n\n" + "".join(f"/{name}\n" for name in names) + "```\n"


def linked(text: str) -> list[str]:
    """The pages that a page links to, in order."""
    return list(dict.fromkeys(re.findall(r"\]\(/([\w/-]+)\.(?:md|rst)\)", text)))


def arranged(pages: dict[str, str]) -> dict[str, str]:
    """The Markdown pages with tables of contents. Pages of docs/ with no other place stand in the user guide."""
    names = [path.removesuffix(".md") for path in pages]
    placed = {*START, *THEORY, *PROJECT, "start", "project", "index", "benchmarks", "bounds/index"}
    guide = [name for name in linked(pages["guide/index.md"]) if name in names and name not in placed]
    guide += [name for name in sorted(names) if "/" not in name and name not in placed and name not in guide]
    below = {
        "start": START,
        "project": PROJECT,
        "guide/index": guide,
        "learners/index": [name for name in linked(pages["learners/index.md"]) if name.startswith("learners/")],
        "figures/index": [name for name in linked(pages["figures/index.md"]) if name.startswith("figures/")],
        "bounds/index": [*sorted(name for name in names if re.fullmatch(r"bounds/(?!index)\w+", name)), *THEORY],
    }
    return pages | {f"{name}.md": pages[f"{name}.md"] + toctree(some) for name, some in below.items()}
